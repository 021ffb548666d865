//! The join by several issuers, measured: processor time and bytes of an issuer and of the member, with the signatures
//! and the sealing of messages.
//!
//! Prints CSV lines `scenario,scheme,t,n,mode,phase,metric,unit,median,p95,runs`, the format of
//! `build/bench/results.csv`. `ratio` is the median over that of the floor in the same run: one multiplication in G1 by
//! blst. Scenario `members-50` is the joins of so many members one after another. Arguments: the number of runs, 20 by
//! default; `long` for five such tables instead of one.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a bench fails by panicking"
)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use engine::session::{Progress, Session, Step};
use engine::{Envelope, EvidenceKey, PartyId, RosterEntry, Secret, SessionId, SessionSettings, Threshold};
use group_signatures::GroupDraft;
use group_signatures::forge::{Custody, attempt, ordered};
use primitives::bls12_381::{G1, G2, Scalar};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use rustix::time::{ClockId, clock_gettime};
use threshold_issuer::key::forge::deal;
use threshold_issuer::{AttestedGroup, IssuerShare, Join, JoinInput, JoinOutput, JoinTerms, NamedIssuers};

const DEFAULT_RUNS: usize = 20;
const SHAPES: [(u32, u32); 3] = [(2, 3), (3, 5), (5, 9)];
/// The shape whose joins are counted as the paper's table counts them, and its rows.
const TABLED: (u32, u32) = (2, 3);
const MEMBERS: [usize; 3] = [1, 50, 100];
const MEMBER: u32 = 100;

/// Processor time of this thread, so that other work on the machine disturbs a measurement as little as possible.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// Milliseconds of `what`.
fn timed<T>(what: impl FnOnce() -> T) -> (T, f64) {
    let start = processor_time();
    let value = std::hint::black_box(what());
    (value, (processor_time() - start).as_secs_f64() * 1e3)
}

/// The median, after it was printed.
fn print((scenario, shape, phase): (&str, &str, &str), mut times_ms: Vec<f64>, floor: f64) -> f64 {
    times_ms.sort_by(f64::total_cmp);
    let at = |share: usize| times_ms[(times_ms.len() - 1) * share / 100];
    let (median, p95, runs) = (at(50), at(95), times_ms.len());
    println!("{scenario},wbb,{shape},threshold,{phase},time,ms,{median:.3},{p95:.3},{runs}");
    if floor > 0.0 {
        let (median, p95) = (median / floor, p95 / floor);
        println!("{scenario},wbb,{shape},threshold,{phase},ratio,floors,{median:.2},{p95:.2},{runs}");
    }
    median
}

fn main() {
    let runs = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(DEFAULT_RUNS);
    let repetitions = if std::env::args().any(|text| text == "long") { 5 } else { 1 };
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() & u128::from(u64::MAX);
    let mut rng = ChaCha20Rng::seed_from_u64(u64::try_from(now).unwrap());
    println!("scenario,scheme,t,n,mode,phase,metric,unit,median,p95,runs");
    let base = G1::hash(b"floor", b"bench");
    let scalar = Secret::new(Scalar::random(&mut rng));
    let floors = (0..runs * 10).map(|_| timed(|| base.times_secret(&scalar)).1).collect();
    let floor = print(("core", "1,1", "floor"), floors, 0.0);
    let most = MEMBERS.into_iter().max().unwrap();
    for (threshold, count) in SHAPES {
        let issuing = Issuing::new(threshold, count, &mut rng);
        let shape = format!("{threshold},{count}");
        let tabled = (threshold, count) == TABLED;
        issuing.join(&mut rng);
        let count = if tabled { repetitions * most } else { runs };
        let joins: Vec<[Cost; 2]> = (0..count).map(|_| issuing.join(&mut rng)).collect();
        for (side, phase) in ["join_issuer", "join_member"].into_iter().enumerate() {
            print(("core", &shape, phase), joins.iter().map(|costs| costs[side].0).collect(), floor);
            let bytes = joins[0][side].1;
            println!("core,wbb,{shape},threshold,{phase},bytes_sent,B,{bytes},{bytes},1");
            for members in MEMBERS.into_iter().filter(|_| tabled) {
                let of_all = |joins: &[[Cost; 2]]| joins[..members].iter().map(|costs| costs[side].0).sum();
                let scenario = format!("members-{members}");
                print((&scenario, &shape, phase), joins.chunks(most).map(of_all).collect(), 0.0);
            }
        }
    }
}

/// The key that a party signs its messages with.
fn evidence_key(party: u32) -> EvidenceKey {
    let mut seed = [3; 32];
    seed[..4].copy_from_slice(&party.to_be_bytes());
    EvidenceKey::from_seed(&Secret::new(seed))
}

/// Issuers of one group, of whom the first take part.
struct Issuing {
    group: Arc<AttestedGroup>,
    shares: Vec<Arc<IssuerShare>>,
}

/// Milliseconds, bytes sent.
type Cost = (f64, usize);

impl Issuing {
    fn new(threshold: u32, count: u32, rng: &mut ChaCha20Rng) -> Self {
        let custody = Custody::new(1, 1, rng).unwrap();
        let opener = custody.attested("bench", 1).unwrap();
        let parties: Vec<PartyId> = (1..=count).map(|number| PartyId::new(number).unwrap()).collect();
        let (shares, key) = deal(&opener, Threshold::new(threshold).unwrap(), &parties, rng);
        let draft = GroupDraft::new(opener, G1::mul_generator(&key), G2::mul_generator(&key)).unwrap();
        let nonce = Secret::new(Scalar::random(rng));
        let challenge = draft.challenge(&G1::mul_generator(&nonce));
        let response = nonce.expose().add(&challenge.mul(key.expose()));
        let group = Arc::new(draft.prove(challenge, response).unwrap());
        let identities: Vec<_> =
            parties.iter().map(|party| (*party, evidence_key(party.get().into()).public())).collect();
        let named = NamedIssuers::new("bench", Threshold::new(threshold).unwrap(), &identities).unwrap();
        let sign = |share: &IssuerShare| {
            let me = share.party();
            (me, share.attest(&group, &named, &evidence_key(me.get().into())).unwrap())
        };
        let signatures: Vec<_> = shares.iter().map(sign).collect();
        let issuers = Arc::new(shares[0].issuers().clone());
        let group = Arc::new(AttestedGroup::new(group, issuers, &named, &signatures).unwrap());
        Self { group, shares: shares.into_iter().map(Arc::new).collect() }
    }

    /// One join: the cost of the issuer with the highest cost, and of the member.
    fn join(&self, rng: &mut ChaCha20Rng) -> [Cost; 2] {
        let secret = Secret::new(Scalar::random(rng));
        let point = G1::mul_generator(&secret);
        let mut id = [0u8; 32];
        rng.fill_bytes(&mut id);
        let identity = evidence_key(MEMBER).public();
        let terms = || JoinTerms {
            group: Arc::clone(&self.group),
            attempt: ordered(attempt(self.group.group(), [1; 32], 1, point), id, &identity),
        };
        let payload = terms().payload();
        let member = PartyId::new(MEMBER).unwrap();
        let mut inputs: Vec<(PartyId, JoinInput)> = self
            .shares
            .iter()
            .take(self.group.issuers().threshold().get())
            .map(|share| (share.party(), JoinInput::Issuer { terms: terms(), share: Arc::clone(share) }))
            .collect();
        inputs.push((member, JoinInput::Member { terms: terms(), secret }));
        let key = |party: PartyId| evidence_key(party.get().into());
        let entry = |(id, _): &(PartyId, _)| RosterEntry { id: *id, evidence_key: Some(key(*id).public()) };
        let roster: Vec<RosterEntry> = inputs.iter().map(entry).collect();
        let mut sides = Vec::new();
        let mut queue = VecDeque::new();
        for (me, input) in inputs {
            let settings = SessionSettings {
                session_id: SessionId::new(id),
                me: Some(me),
                roster: roster.clone(),
                threshold: self.group.issuers().threshold(),
                key_id: "bench".to_owned(),
                epoch: 1,
                payload: payload.to_vec(),
            };
            let (started, time) = timed(|| {
                let (session, step) = Session::<Join>::start(settings, Some(key(me)), input, rng).unwrap();
                let sealed = seal(&session, &step, rng);
                (session, sealed)
            });
            let (session, sealed) = started;
            let mut side = Side { me, session, cost: (time, 0) };
            side.send(sealed, &mut queue);
            sides.push(side);
        }
        let mut joined = false;
        while let Some((from, to, bytes)) = queue.pop_front() {
            let side = sides.iter_mut().find(|side| side.me == to).unwrap();
            let (result, time) = timed(|| {
                let step = side.session.open(from, &bytes, rng);
                let sealed = seal(&side.session, &step, rng);
                (sealed, step.progress)
            });
            let (sealed, progress) = result;
            side.cost.0 += time;
            side.send(sealed, &mut queue);
            match progress {
                Progress::Done(JoinOutput::Joined(_)) => joined = true,
                Progress::Aborted(abort) => panic!("{abort}"),
                Progress::Done(JoinOutput::Answered) | Progress::Waiting { .. } => {}
                Progress::Dropped(reject) => panic!("{reject:?}"),
            }
        }
        assert!(joined);
        let issuers = sides.iter().filter(|side| side.me != member).map(|side| side.cost);
        let issuer = issuers.max_by(|one, other| one.0.total_cmp(&other.0)).unwrap();
        let member = sides.iter().find(|side| side.me == member).unwrap().cost;
        [issuer, member]
    }
}

struct Side {
    me: PartyId,
    session: Session<Join>,
    cost: Cost,
}

impl Side {
    fn send(&mut self, sealed: Vec<(PartyId, Vec<u8>)>, queue: &mut VecDeque<(PartyId, PartyId, Vec<u8>)>) {
        for (to, bytes) in sealed {
            self.cost.1 += bytes.len();
            queue.push_back((self.me, to, bytes));
        }
    }
}

/// The messages of a step as they leave the core. Every one of a join is private.
fn seal(session: &Session<Join>, step: &Step<JoinOutput>, rng: &mut ChaCha20Rng) -> Vec<(PartyId, Vec<u8>)> {
    let sealed = |envelope: &Envelope| (envelope.recipient().unwrap(), session.seal(envelope, rng).unwrap());
    step.outgoing.iter().map(sealed).collect()
}
