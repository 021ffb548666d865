//! Measures the core alone: the time that one party computes, without channel, service or network.
//!
//! Prints CSV lines `scenario,scheme,t,n,mode,phase,metric,unit,median,p95,runs`, the format of
//! `build/bench/results.csv`. One argument: the number of runs, 30 by default.
//!
//! Times are processor time of this thread, so that other work on the machine disturbs them as little as possible.
//! Rows: `compute` is the time of the slowest party in all its steps, `session` that of all parties one after another,
//! `round_<i>` that of the steps which make a party leave round i, `bytes_sent` what one party hands to the channel.

#![allow(clippy::print_stdout, reason = "the output is what it is for")]

use std::collections::{BTreeMap, VecDeque};
use std::process::ExitCode;
use std::time::Duration;

use engine::session::{Progress, Protocol, Session, Step};
use engine::{EvidenceKey, EvidencePublicKey, PartyId, RosterEntry, SessionId, SessionSettings, Threshold};
use getrandom::SysRng;
use protocols::bls::{KeyShare, Keygen, SignInput, Signing};
use rand_core::{TryRng, UnwrapErr};
use rustix::time::{ClockId, clock_gettime};

const CASES: [(u32, u32); 7] = [(3, 3), (4, 4), (5, 5), (2, 3), (3, 5), (7, 10), (10, 20)];
const DEFAULT_RUNS: usize = 30;

type Rng = UnwrapErr<SysRng>;
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let runs = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_RUNS);
    match measure(runs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("failed: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure(runs: usize) -> Result<(), Failure> {
    println!("scenario,scheme,t,n,mode,phase,metric,unit,median,p95,runs");
    for (t, n) in CASES {
        let mut table = Table::default();
        for run in 0..=runs {
            let (keys, measured) = keygen(t, n)?;
            let signed = sign(&keys, t)?;
            // The first one warms caches and is not counted.
            if run > 0 {
                table.add("keygen", measured);
                table.add("sign", signed);
            }
        }
        table.print(t, n);
    }
    Ok(())
}

/// The cost of one session.
#[derive(Default)]
struct Measured {
    by_party: BTreeMap<PartyId, Duration>,
    by_round: BTreeMap<u8, Duration>,
    bytes: BTreeMap<PartyId, usize>,
}

/// Samples by (phase, metric, unit).
#[derive(Default)]
struct Table(BTreeMap<(&'static str, String, &'static str), Vec<f64>>);

impl Table {
    fn add(&mut self, phase: &'static str, measured: Measured) {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let slowest = measured.by_party.values().max().copied().unwrap_or_default();
        let total: Duration = measured.by_party.values().sum();
        self.push(phase, "compute".to_owned(), "us", micros(slowest));
        self.push(phase, "session".to_owned(), "us", micros(total));
        for (round, time) in measured.by_round {
            let share = micros(time) / measured.by_party.len().max(1) as f64;
            self.push(phase, format!("round_{round}"), "us", share);
        }
        let most = measured.bytes.values().max().copied().unwrap_or_default();
        self.push(phase, "bytes_sent".to_owned(), "bytes", most as f64);
    }

    fn push(&mut self, phase: &'static str, metric: String, unit: &'static str, sample: f64) {
        self.0.entry((phase, metric, unit)).or_default().push(sample);
    }

    fn print(self, t: u32, n: u32) {
        for ((phase, metric, unit), mut samples) in self.0 {
            samples.sort_by(f64::total_cmp);
            let at = |percent: usize| {
                samples.get((samples.len() - 1) * percent / 100).copied().unwrap_or_default()
            };
            let (median, p95, runs) = (at(50), at(95), samples.len());
            println!("core,bls12-381,{t},{n},core,{phase},{metric},{unit},{median:.1},{p95:.1},{runs}");
        }
    }
}

fn keygen(t: u32, n: u32) -> Result<(Vec<KeyShare>, Measured), Failure> {
    let mut rng = UnwrapErr(SysRng);
    let identities: Vec<EvidenceKey> = (0..n).map(|_| EvidenceKey::generate(&mut rng)).collect();
    let keys: Vec<EvidencePublicKey> = identities.iter().map(EvidenceKey::public).collect();
    let roster: Vec<RosterEntry> = (1..=n)
        .zip(&keys)
        .filter_map(|(number, key)| {
            Some(RosterEntry { id: PartyId::new(number)?, evidence_key: Some(key.clone()) })
        })
        .collect();
    let mut session_id = [0; 32];
    rng.try_fill_bytes(&mut session_id)?;
    let mut bench = Bench::<Keygen>::default();
    for (entry, identity) in roster.iter().zip(identities) {
        let settings = settings(entry.id, roster.clone(), t, session_id, Vec::new())?;
        bench.start(entry.id, settings, Some(identity), ())?;
    }
    bench.run()
}

fn sign(keys: &[KeyShare], t: u32) -> Result<Measured, Failure> {
    let signers = keys.iter().take(usize::try_from(t)?);
    let roster: Vec<RosterEntry> =
        signers.clone().map(|share| RosterEntry { id: share.party(), evidence_key: None }).collect();
    let mut bench = Bench::<Signing>::default();
    for share in signers {
        let settings = settings(share.party(), roster.clone(), t, [1; 32], vec![0x5a; 32])?;
        bench.start(share.party(), settings, None, SignInput::Party(Box::new(reopened(share)?)))?;
    }
    bench.run().map(|(_, measured)| measured)
}

fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// A share of its own for each signing, as a signer unseals it. Not part of what is measured.
fn reopened(share: &KeyShare) -> Result<KeyShare, Failure> {
    let key = engine::seal::DataKey::new(engine::Secret::new([0; 32]));
    let blob = share.seal(&key, &mut UnwrapErr(SysRng)).ok_or("share is not sealed")?;
    KeyShare::unseal(&key, &blob, &share.label()).map_err(|error| format!("{error:?}").into())
}

fn settings(
    me: PartyId,
    roster: Vec<RosterEntry>,
    t: u32,
    session_id: [u8; 32],
    payload: Vec<u8>,
) -> Result<SessionSettings, Failure> {
    Ok(SessionSettings {
        session_id: SessionId::new(session_id),
        me: Some(me),
        roster,
        threshold: Threshold::new(t).ok_or("threshold")?,
        key_id: "keys/bench".to_owned(),
        epoch: 1,
        payload,
    })
}

/// All parties of one session, each on its own clock.
struct Bench<P: Protocol> {
    sessions: BTreeMap<PartyId, (Session<P>, u8)>,
    queue: VecDeque<(PartyId, PartyId, Vec<u8>)>,
    first: Vec<(PartyId, Step<P::Output>, Duration)>,
    outputs: BTreeMap<PartyId, P::Output>,
    measured: Measured,
    rng: Rng,
}

impl<P: Protocol> Default for Bench<P> {
    fn default() -> Self {
        Self {
            sessions: BTreeMap::new(),
            queue: VecDeque::new(),
            first: Vec::new(),
            outputs: BTreeMap::new(),
            measured: Measured::default(),
            rng: UnwrapErr(SysRng),
        }
    }
}

impl<P: Protocol> Bench<P> {
    fn start(
        &mut self,
        id: PartyId,
        settings: SessionSettings,
        identity: Option<EvidenceKey>,
        input: P::Input,
    ) -> Result<(), Failure> {
        let clock = processor_time();
        let (session, step) = Session::start(settings, identity, input, &mut self.rng)?;
        let time = processor_time().saturating_sub(clock);
        self.sessions.insert(id, (session, 0));
        self.first.push((id, step, time));
        Ok(())
    }

    fn run(mut self) -> Result<(Vec<P::Output>, Measured), Failure> {
        for (id, step, time) in std::mem::take(&mut self.first) {
            self.take(id, step, time)?;
        }
        while let Some((from, to, bytes)) = self.queue.pop_front() {
            let Some((session, _)) = self.sessions.get_mut(&to) else { continue };
            let clock = processor_time();
            let step = session.handle(from, &bytes, &mut self.rng);
            let time = processor_time().saturating_sub(clock);
            self.take(to, step, time)?;
        }
        if self.outputs.len() == self.sessions.len() {
            Ok((self.outputs.into_values().collect(), self.measured))
        } else {
            Err("a party did not finish".into())
        }
    }

    fn take(&mut self, id: PartyId, step: Step<P::Output>, time: Duration) -> Result<(), Failure> {
        let mut bytes = 0;
        let peers: Vec<PartyId> = self.sessions.keys().copied().filter(|peer| *peer != id).collect();
        for envelope in &step.outgoing {
            let encoded = envelope.encode();
            bytes += encoded.len();
            match envelope.recipient() {
                Some(recipient) => self.queue.push_back((id, recipient, encoded)),
                None => self.queue.extend(peers.iter().map(|peer| (id, *peer, encoded.clone()))),
            }
        }
        *self.measured.by_party.entry(id).or_default() += time;
        *self.measured.bytes.entry(id).or_default() += bytes;
        if let Some((_, round)) = self.sessions.get_mut(&id) {
            *self.measured.by_round.entry(*round).or_default() += time;
            if step.round != 0 {
                *round = step.round;
            }
        }
        match step.progress {
            Progress::Done(output) => {
                self.outputs.insert(id, output);
            }
            Progress::Aborted(abort) => return Err(abort.to_string().into()),
            // Once a signature is there, what still comes is late.
            Progress::Waiting { .. } | Progress::Dropped(_) => {}
        }
        Ok(())
    }
}
