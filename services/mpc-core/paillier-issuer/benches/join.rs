//! Group membership and approvals, measured: the join of the paper without proofs and with them, and what approvals
//! cost.
//!
//! Prints CSV lines `scenario,scheme,t,n,mode,phase,metric,unit,median,p95,runs`, the format of
//! `build/bench/results.csv`. Mode is the length of the moduli; `ratio` is the median over that of the floor in the
//! same run: one multiplication in G1 by blst for approvals, one power modulo n^2 by libcrypto for joins. Scenario
//! `members-50` is a row of the paper's table: the joins of so many members, one after another. Arguments: the number
//! of runs, 20 by default; `long` for five set-ups and five tables instead of one. Times are processor time.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a bench fails by panicking"
)]

use std::sync::Arc;
use std::time::Duration;

use engine::session::{Progress, Session, Step};
use engine::{PartyId, RosterEntry, Secret, SessionId, SessionSettings, Threshold};
use group_signatures::forge::{Custody, admit, attempt};
use group_signatures::{
    Approval, Decision, GroupPublic, IssuingKey, MemberKey, OpeningShare, Request, complete, count,
};
use paillier_issuer::join::unproven;
use paillier_issuer::{
    FactorProof, Issuer, Join, JoinInput, JoinOutput, JoinTerms, ManagerInput, MemberInput, ModulusBits,
    Parameters, SecretParameters,
};
use primitives::bls12_381::{G1, Scalar};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use rustix::time::{ClockId, clock_gettime};

const DEFAULT_RUNS: usize = 20;
/// Rows of the paper's table.
const MEMBERS: [usize; 3] = [1, 50, 100];

/// Processor time of this thread, so that other work on the machine disturbs a measurement as little as possible.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// Milliseconds of each run, by name.
struct Row {
    scenario: String,
    mode: String,
    phase: &'static str,
    times_ms: Vec<f64>,
}

impl Row {
    fn of(mode: &str, phase: &'static str, times_ms: Vec<f64>) -> Self {
        Row { scenario: "core".to_owned(), mode: mode.to_owned(), phase, times_ms }
    }

    fn print(mut self, floor: f64) -> f64 {
        self.times_ms.sort_by(f64::total_cmp);
        let at = |share: usize| self.times_ms[(self.times_ms.len() - 1) * share / 100];
        let (median, p95, runs) = (at(50), at(95), self.times_ms.len());
        let Row { scenario, mode, phase, .. } = self;
        println!("{scenario},wbb,1,1,{mode},{phase},time,ms,{median:.3},{p95:.3},{runs}");
        if floor > 0.0 {
            let (median, p95) = (median / floor, p95 / floor);
            println!("{scenario},wbb,1,1,{mode},{phase},ratio,floors,{median:.2},{p95:.2},{runs}");
        }
        median
    }
}

fn print_bytes(mode: &str, phase: &str, bytes: usize) {
    println!("core,wbb,1,1,{mode},{phase},bytes_sent,B,{bytes},{bytes},1");
}

/// The joins of as many members as the largest table has, in each repetition after one that warms up: a row for one
/// join, and those of the table.
fn print_joins<const SIDES: usize>(
    (mode, phases): (&str, [&'static str; SIDES]),
    repetitions: usize,
    floor: f64,
    mut join: impl FnMut() -> [f64; SIDES],
) {
    join();
    let most = MEMBERS.into_iter().max().unwrap();
    let joins: Vec<[f64; SIDES]> = (0..repetitions * most).map(|_| join()).collect();
    for (side, phase) in phases.into_iter().enumerate() {
        Row::of(mode, phase, joins.iter().map(|times| times[side]).collect()).print(floor);
        for members in MEMBERS {
            let of_all = |joins: &[[f64; SIDES]]| joins[..members].iter().map(|times| times[side]).sum();
            let times_ms = joins.chunks(most).map(of_all).collect();
            Row { scenario: format!("members-{members}"), ..Row::of(mode, phase, times_ms) }.print(0.0);
        }
    }
}

/// Milliseconds of `what`.
fn timed<T>(what: impl FnOnce() -> T) -> f64 {
    let start = processor_time();
    std::hint::black_box(what());
    (processor_time() - start).as_secs_f64() * 1e3
}

fn measure<T>(mode: &str, phase: &'static str, runs: usize, floor: f64, mut what: impl FnMut() -> T) -> f64 {
    what();
    Row::of(mode, phase, (0..runs).map(|_| timed(&mut what)).collect()).print(floor)
}

fn main() {
    let runs = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(DEFAULT_RUNS);
    let repetitions = if std::env::args().any(|text| text == "long") { 5 } else { 1 };
    let mut rng = ChaCha20Rng::seed_from_u64(rand_seed());
    println!("scenario,scheme,t,n,mode,phase,metric,unit,median,p95,runs");
    let custody = Custody::new(1, 1, &mut rng).unwrap();
    let (issuing_key, group) = custody.group("bench", 1, &mut rng).unwrap();
    let (issuing_key, group) = (Arc::new(issuing_key), Arc::new(group));
    approvals(&issuing_key, &group, &custody, runs, &mut rng);
    for bits in [ModulusBits::STANDARD, ModulusBits::PAPER] {
        joins(&issuing_key, &group, bits, (runs, repetitions), &mut rng);
    }
}

fn rand_seed() -> u64 {
    u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() & u128::from(u64::MAX)).unwrap()
}

fn approvals(key: &IssuingKey, group: &GroupPublic, custody: &Custody, runs: usize, rng: &mut ChaCha20Rng) {
    let base = G1::hash(b"floor", b"bench");
    let scalar = Secret::new(Scalar::random(rng));
    let floor = measure("g1", "floor", runs * 10, 0.0, || base.times_secret(&scalar));
    let members: Vec<MemberKey> =
        (0..20).map(|_| admit(key, group, &Secret::new(Scalar::random(rng))).unwrap()).collect();
    let request = Request { digest: [7; 32], decision: Decision::Approve };
    measure("g1", "sign", runs, floor, || members[0].approve(group, &request, rng).unwrap());
    let all: Vec<[u8; group_signatures::APPROVAL_BYTES]> =
        members.iter().map(|member| member.approve(group, &request, rng).unwrap().encode()).collect();
    measure("g1", "verify", runs, floor, || {
        Approval::decode(&all[0]).unwrap().verify(group, &request).unwrap()
    });
    measure("g1", "verify_20", runs, floor, || {
        let read: Vec<Approval> = all.iter().map(|bytes| Approval::decode(bytes).unwrap()).collect();
        count(group, &request, &read, 20, rng).unwrap()
    });
    let approval = Approval::decode(&all[0]).unwrap();
    let auditor = PartyId::new(1).unwrap();
    let share = custody.share(auditor);
    measure("g1", "open", runs, floor, || {
        OpeningShare::new(group, &request, &approval, auditor, &share, rng).unwrap()
    });
    print_bytes("g1", "sign", group_signatures::APPROVAL_BYTES);
}

fn joins(
    key: &Arc<IssuingKey>,
    group: &Arc<GroupPublic>,
    bits: ModulusBits,
    (runs, repetitions): (usize, usize),
    rng: &mut ChaCha20Rng,
) {
    let mode = bits.get().to_string();
    let mut setups = Vec::new();
    let mut labels = ["manager", "member"].into_iter().cycle();
    // A search for primes: its time varies, and few runs are taken as they come.
    let set_up = |_| timed(|| unproven::set_up(bits, rng).unwrap());
    Row::of(&mode, "setup_unproven", (0..repetitions).map(set_up).collect()).print(0.0);
    measure(&mode, "setup", repetitions, 0.0, || {
        let label = labels.next().unwrap();
        setups.push(SecretParameters::generate(bits, label.as_bytes(), rng).unwrap());
    });
    let (manager, member) = (Arc::new(setups.remove(0)), Arc::new(setups.remove(0)));
    let check = |bytes: &[u8], label: &str| Parameters::check(bytes, bits, label.as_bytes()).unwrap();
    measure(&mode, "check_setup", 2, 0.0, || check(manager.proven(), "manager"));
    let manager_public = Arc::new(check(manager.proven(), "manager"));
    let member_public = Arc::new(check(member.proven(), "member"));
    let proof = FactorProof::prove(&manager, &member_public, rng).unwrap();
    let proof = proof.encode(manager.public(), &member_public).unwrap();
    measure(&mode, "prove_factors", 2, 0.0, || FactorProof::prove(&manager, &member_public, rng).unwrap());
    let issuer = Arc::new(Issuer::check(Arc::clone(&manager_public), &proof, &member).unwrap());
    print_bytes(&mode, "setup", manager.proven().len());

    let floor = measure(&mode, "floor", runs, 0.0, || unproven::power(&manager_public, rng).unwrap());
    measure(&mode, "nth_power", runs, floor, || unproven::prepare(&manager_public, rng).unwrap());
    let secret = Secret::new(Scalar::random(rng));
    let names = ["join_unproven_manager", "join_unproven_member", "join_unproven_member_prepared"];
    print_joins((&mode, names), repetitions, floor, || {
        let start = processor_time();
        let encrypted = unproven::encrypt(key, &manager, rng).unwrap();
        let encrypting = processor_time() - start;
        let start = processor_time();
        let prepared = unproven::prepare(&manager_public, rng).unwrap();
        let preparing = processor_time() - start;
        let start = processor_time();
        let (factor, combined) =
            unproven::combine(&secret, &manager_public, &encrypted, prepared, rng).unwrap();
        let combining = processor_time() - start;
        let start = processor_time();
        let masked = unproven::answer(&manager, &combined).unwrap();
        let answering = processor_time() - start;
        let start = processor_time();
        let credential = masked.times_secret(&factor);
        complete(group, Secret::new(secret.expose().copy()), credential).unwrap();
        let finishing = processor_time() - start;
        [encrypting + answering, preparing + combining + finishing, combining + finishing]
            .map(|time| time.as_secs_f64() * 1e3)
    });

    let pair = Pair { key, group, manager, member, manager_public, member_public, issuer };
    let (names, mut sent) = (["join_manager", "join_member"], [0; 2]);
    print_joins((&mode, names), repetitions, floor, || {
        let (times, bytes) = pair.join(rng);
        sent = bytes;
        times
    });
    for (phase, bytes) in names.into_iter().zip(sent) {
        print_bytes(&mode, phase, bytes);
    }
}

struct Pair<'a> {
    key: &'a Arc<IssuingKey>,
    group: &'a Arc<GroupPublic>,
    manager: Arc<SecretParameters>,
    member: Arc<SecretParameters>,
    manager_public: Arc<Parameters>,
    member_public: Arc<Parameters>,
    issuer: Arc<Issuer>,
}

impl Pair<'_> {
    /// One join with all proofs: milliseconds and bytes of each side, manager first.
    fn join(&self, rng: &mut ChaCha20Rng) -> ([f64; 2], [usize; 2]) {
        let secret = Secret::new(Scalar::random(rng));
        let point = G1::mul_generator(&secret);
        let terms =
            || JoinTerms { group: Arc::clone(self.group), attempt: attempt(self.group, [1; 32], 1, point) };
        let payload = terms().payload(&self.manager_public, &self.member_public);
        let mut id = [0u8; 32];
        rng.fill_bytes(&mut id);
        let parties = [1u32, 2].map(|number| PartyId::new(number).unwrap());
        let settings = |me: PartyId| SessionSettings {
            session_id: SessionId::new(id),
            me: Some(me),
            roster: parties.map(|id| RosterEntry { id, evidence_key: None }).to_vec(),
            threshold: Threshold::new(2).unwrap(),
            key_id: "bench".to_owned(),
            epoch: 1,
            payload: payload.to_vec(),
        };
        let manager = ManagerInput {
            terms: terms(),
            issuing_key: Arc::clone(self.key),
            own: Arc::clone(&self.manager),
            peer: Arc::clone(&self.member_public),
        };
        let member = MemberInput {
            terms: terms(),
            secret,
            own: Arc::clone(&self.member),
            issuer: Arc::clone(&self.issuer),
        };
        let mut times = [0.0; 2];
        let mut bytes = [0; 2];
        let mut timed = |side: usize, step: &mut dyn FnMut() -> Step<JoinOutput>| {
            let start = processor_time();
            let step = step();
            times[side] += (processor_time() - start).as_secs_f64() * 1e3;
            let sent: Vec<Vec<u8>> = step.outgoing.iter().map(|envelope| envelope.encode()).collect();
            bytes[side] += sent.iter().map(Vec::len).sum::<usize>();
            (sent, step.progress)
        };
        let mut sessions = Vec::new();
        let mut first = Vec::new();
        for (side, input) in [JoinInput::Manager(manager), JoinInput::Member(member)].into_iter().enumerate()
        {
            let mut input = Some(input);
            let (sent, _) = timed(side, &mut || {
                let (session, step) =
                    Session::<Join>::start(settings(parties[side]), None, input.take().unwrap(), rng)
                        .unwrap();
                sessions.push(session);
                step
            });
            first.extend(sent);
        }
        // The manager speaks first; then each answers the other.
        let (mut side, mut message) = (1, first.remove(0));
        loop {
            let from = parties[1 - side];
            let (mut sent, progress) = timed(side, &mut || sessions[side].handle(from, &message, rng));
            match progress {
                Progress::Done(JoinOutput::Joined(_)) => return (times, bytes),
                Progress::Aborted(abort) => panic!("{abort}"),
                Progress::Done(_) | Progress::Waiting { .. } | Progress::Dropped(_) => {}
            }
            message = sent.remove(0);
            side = 1 - side;
        }
    }
}
