//! One session of a schedule: its processes, the network between them, and the checks of what they came to.

use std::collections::{BTreeMap, BTreeSet};

use engine::forge::Forged;
use engine::notice::{Verdict, judge_report};
use engine::session::{DISCLOSURE_ROUND, Progress, Session, Step};
use engine::{Abort, AbortCause, Envelope, PartyId, Protocol, SessionSettings};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sim::lies::{Cover, Liar};
use sim::schedule::{Corrupt, pick, sum};

use crate::Mutant;
use crate::checker::{Checker, Counts, ENCAPSULATED_KEY};
use crate::common::{evidence_key, party};

/// Sessions of one schedule in which parties lie.
const HOSTILE_SESSIONS: u8 = 2;
/// Times that an honest party is killed or started once more, in one schedule at most.
const MAX_RESTARTS: usize = 3;
/// Accusations that are made up after each session.
const ACCUSATIONS: usize = 6;

/// One protocol with the parties that run it.
pub struct Case<'a, P: Protocol> {
    pub parties: Vec<u32>,
    /// t - 1.
    pub most_corrupt: usize,
    pub settings: &'a dyn Fn(Option<u32>, u8) -> SessionSettings,
    pub input: &'a dyn Fn(u32) -> P::Input,
    /// The public data of what a session made.
    pub key: &'a dyn Fn(&P::Output) -> Vec<u8>,
}

/// A run of a session by one party.
struct Process<P: Protocol> {
    party: u32,
    /// Its number among all processes of the schedule.
    number: usize,
    session: Session<P>,
    rng: ChaCha20Rng,
    alive: bool,
    key: Option<Vec<u8>>,
    aborts: Vec<Abort>,
    missing: Vec<PartyId>,
}

impl<P: Protocol> Process<P> {
    /// Has a result that nobody has contradicted.
    fn stands(&self) -> bool {
        self.key.is_some() && self.aborts.is_empty()
    }
}

struct Packet {
    from: u32,
    to: u32,
    bytes: Vec<u8>,
}

/// One session of a schedule.
struct World<'a, P: Protocol> {
    case: &'a Case<'a, P>,
    mutant: Mutant,
    session: u8,
    rng: &'a mut ChaCha20Rng,
    liar: &'a mut Liar,
    checker: &'a mut Checker,
    counts: &'a mut Counts,
    corrupt: Corrupt,
    processes: Vec<Process<P>>,
    queue: Vec<Packet>,
    /// Everything that honest parties signed and did not send to each other alone.
    wire: Vec<Vec<u8>>,
    /// Honest parties that were killed or started twice.
    disturbed: BTreeSet<u32>,
    /// The key of an earlier session.
    earlier: Option<&'a Vec<u8>>,
    hostile_storage: bool,
    /// Everybody follows the rules.
    calm: bool,
    dropped_percent: u64,
    /// Whether the network lost a message between honest parties.
    lossy: bool,
}

impl<'a, P: Protocol> World<'a, P> {
    fn start(&mut self, number: u32) {
        let seed = match self.mutant {
            Mutant::GeneratorRepeats => 1000 * u64::from(self.session) + u64::from(number),
            _ => self.rng.next_u64(),
        };
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let settings = (self.case.settings)(Some(number), self.session);
        let key = Some(evidence_key(party(number)));
        let input = (self.case.input)(number);
        let (session, step) = Session::<P>::start(settings, key, input, &mut rng).unwrap();
        let at = self.processes.len();
        let process = Process {
            party: number,
            number: 100 * usize::from(self.session) + at,
            session,
            rng,
            alive: true,
            key: None,
            aborts: Vec::new(),
            missing: Vec::new(),
        };
        self.processes.push(process);
        self.apply(at, step);
    }

    fn apply(&mut self, at: usize, step: Step<P::Output>) {
        let process = &mut self.processes[at];
        match step.progress {
            Progress::Waiting { missing } => process.missing = missing.iter().collect(),
            Progress::Dropped(_) => (),
            Progress::Done(output) => process.key = Some((self.case.key)(&output)),
            Progress::Aborted(abort) => process.aborts.push(abort),
        }
        for envelope in &step.outgoing {
            let number = self.processes[at].party;
            let recipients: Vec<PartyId> = match envelope.recipient() {
                Some(recipient) => vec![recipient],
                None => self.case.parties.iter().filter(|to| **to != number).map(|to| party(*to)).collect(),
            };
            if self.corrupt.has(number) {
                self.lie(at, &envelope.encode(), &recipients);
            } else {
                self.send(at, envelope, &recipients);
            }
        }
    }

    /// The mutants of what an honest party says.
    fn depart(&mut self, at: usize, bytes: Vec<u8>) -> Vec<u8> {
        let process = &self.processes[at];
        let mut forged = Forged::open(&bytes).unwrap();
        match self.mutant {
            Mutant::RunNonceStays => {
                let first = self.processes.iter().find(|other| other.party == process.party).unwrap();
                let seed = 1000 * u128::from(self.session) + first.number as u128;
                forged.run = seed.to_be_bytes();
            }
            Mutant::ValuesStay(round) if forged.round == round => {
                let place = (forged.sender, forged.recipient);
                forged.body = self.checker.first_bodies.entry(place).or_insert(forged.body).clone();
            }
            _ => return bytes,
        }
        forged.encode(&evidence_key(forged.sender))
    }

    /// An honest party's envelope.
    fn send(&mut self, at: usize, envelope: &Envelope, recipients: &[PartyId]) {
        let bytes = self.depart(at, envelope.encode());
        let process = &self.processes[at];
        let forged = Forged::open(&bytes).unwrap();
        self.checker.sees(process.number, &forged, P::ROUNDS.len() as u8);
        if recipients.iter().any(|to| self.corrupt.has_party(*to)) {
            self.liar.hears(&bytes);
            self.wire.push(bytes.clone());
        }
        let process = &mut self.processes[at];
        let sealed = match Envelope::decode(&bytes).unwrap() {
            private if private.recipient().is_some() => {
                let mut sealed = process.session.seal(&private, &mut process.rng).unwrap();
                if self.mutant == Mutant::EncapsulatedKeyStays {
                    sealed[ENCAPSULATED_KEY].fill(process.number as u8);
                }
                self.checker.sees_sealed(process.number, &sealed);
                sealed
            }
            _ => bytes,
        };
        let from = process.party;
        for to in recipients {
            let to = u32::from(to.get());
            if self.rng.next_u64() % 100 < self.dropped_percent {
                self.lossy |= !self.corrupt.has(to);
                continue;
            }
            if self.rng.next_u64().is_multiple_of(10) {
                self.queue.push(Packet { from, to, bytes: sealed.clone() });
            }
            self.queue.push(Packet { from, to, bytes: sealed.clone() });
        }
    }

    /// A corrupt party's envelope.
    fn lie(&mut self, at: usize, bytes: &[u8], recipients: &[PartyId]) {
        for told in self.liar.says(self.rng, bytes, recipients) {
            let process = &mut self.processes[at];
            let Ok(envelope) = Envelope::decode(&told.bytes) else { continue };
            let mut bytes = told.bytes;
            if envelope.recipient().is_some() && told.cover != Cover::None {
                let Some(sealed) = process.session.seal(&envelope, &mut process.rng) else { continue };
                bytes = sealed;
                if told.cover == Cover::Broken {
                    let last = bytes.len() - 1 - pick(self.rng, bytes.len());
                    bytes[last] ^= 1;
                }
            }
            self.queue.push(Packet { from: process.party, to: told.to.get().into(), bytes });
        }
    }

    /// Gives a packet to one process of its recipient; a corrupt party shows it to all of its own.
    fn deliver(&mut self) {
        let at = pick(self.rng, self.queue.len());
        let packet = self.queue.swap_remove(at);
        let of_recipient = |process: &Process<P>| process.alive && process.party == packet.to;
        let mut hearers: Vec<usize> =
            (0..self.processes.len()).filter(|at| of_recipient(&self.processes[*at])).collect();
        if !self.corrupt.has(packet.to) && hearers.len() > 1 {
            hearers = vec![hearers[pick(self.rng, hearers.len())]];
        }
        for at in hearers {
            let process = &mut self.processes[at];
            let step = process.session.open(party(packet.from), &packet.bytes, &mut process.rng);
            self.apply(at, step);
        }
    }

    /// Kills an honest party's process, starts it again from the store that has not seen the session, or starts a copy
    /// of that store beside it.
    fn disturb(&mut self) {
        let honest: Vec<u32> =
            self.case.parties.iter().copied().filter(|number| !self.corrupt.has(*number)).collect();
        let number = honest[pick(self.rng, honest.len())];
        self.disturbed.insert(number);
        let kind = pick(self.rng, 3);
        if kind < 2 {
            self.counts.kills += 1;
            let own = self.processes.iter_mut().filter(|process| process.party == number);
            own.for_each(|process| process.alive = false);
        }
        if kind > 0 {
            self.counts.restarts += 1;
            self.start(number);
        }
    }

    /// Runs the session until nothing is under way, and checks what it came to.
    fn run(&mut self) {
        let mut order = self.case.parties.clone();
        if self.calm && self.mutant == Mutant::StaysDown {
            self.disturbed.extend(order.pop());
        }
        while !order.is_empty() {
            let at = pick(self.rng, order.len());
            let number = order.swap_remove(at);
            self.start(number);
            if self.corrupt.has(number) && pick(self.rng, 6) == 0 {
                self.counts.runs_doubled += 1;
                self.start(number);
            }
        }
        let mut left = if self.hostile_storage { MAX_RESTARTS } else { 0 };
        while !self.queue.is_empty() {
            if left > 0 && pick(self.rng, 30) == 0 {
                left -= 1;
                self.disturb();
            } else {
                self.deliver();
            }
        }
        self.counts.sessions += 1;
        self.check();
    }

    fn honest(&self) -> impl Iterator<Item = &Process<P>> {
        self.processes.iter().filter(|process| !self.corrupt.has(process.party))
    }

    /// The mutants of what honest parties remember of a session.
    fn forget(&mut self) {
        let honest = self.processes.iter_mut().filter(|process| !self.corrupt.has(process.party));
        match self.mutant {
            Mutant::NamesForgotten => honest.for_each(|process| {
                process.missing.clear();
                process.aborts.iter_mut().for_each(|abort| abort.suspects.clear());
            }),
            Mutant::EvidenceForgotten => {
                honest.flat_map(|process| &mut process.aborts).for_each(|abort| abort.evidence.clear());
            }
            Mutant::KeyStays => {
                let with_key = honest.filter(|process| process.key.is_some());
                if let (Some(last), Some(earlier)) = (with_key.last(), self.earlier) {
                    last.key = Some(earlier.clone());
                }
            }
            _ => (),
        }
    }

    fn check(&mut self) {
        self.forget();
        let mut found = Vec::new();
        for process in self.honest() {
            let me = process.party;
            for abort in &process.aborts {
                found.extend(
                    self.faults_of(party(me), abort)
                        .into_iter()
                        .map(|what| format!("party {me}: {what}: {abort}")),
                );
            }
            let waits = process.alive && process.key.is_none() && process.aborts.is_empty();
            if waits && process.missing.is_empty() {
                found.push(format!("party {me} waits for nobody"));
            }
        }
        let standing: BTreeSet<&Vec<u8>> = self
            .honest()
            .filter(|process| process.stands())
            .filter_map(|process| process.key.as_ref())
            .collect();
        if standing.len() > 1 {
            found.push("two keys of one session".to_owned());
        }
        found.extend(self.unnamed());
        found.extend(self.prosecute());
        found.into_iter().for_each(|violation| self.checker.say(violation));
        self.count();
    }

    fn count(&mut self) {
        let (mut convictions, mut suspicions) = (BTreeMap::new(), BTreeMap::new());
        let (mut stragglers, mut finished) = (0, 0);
        for process in self.honest() {
            finished += usize::from(process.stands());
            stragglers += usize::from(process.key.is_none() && process.aborts.is_empty() && process.alive);
            for abort in &process.aborts {
                let of = if abort.culprits.is_empty() { &mut suspicions } else { &mut convictions };
                *of.entry(abort.cause.number()).or_default() += 1;
            }
        }
        self.counts.finished += finished;
        self.counts.stragglers += stragglers;
        sum(&mut self.counts.convictions, &convictions);
        sum(&mut self.counts.suspicions, &suspicions);
    }

    /// The faults of an honest party's abort.
    fn faults_of(&self, me: PartyId, abort: &Abort) -> Vec<&'static str> {
        let mut faults = Vec::new();
        if !abort.culprits.iter().all(|culprit| self.corrupt.has_party(*culprit)) {
            faults.push("convicts an honest party");
        }
        if abort.reporter.is_none() || abort.culprits.is_empty() && abort.suspects.is_empty() {
            faults.push("names nobody");
        }
        if abort.cause == AbortCause::Internal && abort.reporter == Some(me) {
            faults.push("blames an error of its own");
        }
        if let Some(culprit) = abort.culprits.first() {
            let verdict = self.judge(abort.cause, *culprit, &abort.evidence);
            if !matches!(verdict, Verdict::Proven(fault) if fault.culprits() == [*culprit]) {
                faults.push("convicts without evidence that convinces others");
            }
        }
        faults
    }

    fn judge(&self, cause: AbortCause, accused: PartyId, evidence: &[Vec<u8>]) -> Verdict {
        judge_report::<P>((self.case.settings)(None, self.session), cause, accused, evidence).unwrap()
    }

    /// If honest parties and their storage did nothing wrong and no message between them was lost, every abort names a
    /// corrupt party, and so do those that the parties of a failed run wait for.
    fn unnamed(&self) -> Option<String> {
        if self.lossy || !self.disturbed.is_empty() {
            return None;
        }
        let failed: Vec<&Process<P>> = self.honest().filter(|process| !process.stands()).collect();
        let named = failed.iter().flat_map(|process| {
            let of_abort =
                |abort: &Abort| [&abort.culprits[..], &abort.suspects, abort.reporter.as_slice()].concat();
            let waited_for = if process.aborts.is_empty() { process.missing.clone() } else { Vec::new() };
            process.aborts.iter().flat_map(of_abort).chain(waited_for).collect::<Vec<_>>()
        });
        let names_corrupt = |abort: &&Abort| {
            abort.culprits.iter().chain(&abort.suspects).any(|id| self.corrupt.has_party(*id))
        };
        if let Some(abort) =
            failed.iter().flat_map(|process| &process.aborts).find(|abort| !names_corrupt(abort))
        {
            return Some(format!("an abort names honest parties only: {abort}"));
        }
        let corrupt_named = named.into_iter().any(|id| self.corrupt.has_party(id));
        (!failed.is_empty() && !corrupt_named).then(|| {
            let aborts: Vec<_> = failed.iter().map(|process| (process.party, &process.aborts)).collect();
            format!("no corrupt party is named: {aborts:?}")
        })
    }

    /// Accuses honest parties of everything by what they have signed, in all runs.
    fn prosecute(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        let honest: Vec<u32> =
            self.case.parties.iter().copied().filter(|number| !self.corrupt.has(*number)).collect();
        for _ in 0..ACCUSATIONS {
            let accused = party(honest[pick(self.rng, honest.len())]);
            let by_accused: Vec<&Vec<u8>> =
                self.wire.iter().filter(|bytes| Forged::open(bytes).unwrap().sender == accused).collect();
            if by_accused.is_empty() {
                continue;
            }
            let cause = AbortCause::ALL[pick(self.rng, AbortCause::ALL.len())];
            let last = by_accused[pick(self.rng, by_accused.len())];
            let mut evidence: Vec<Vec<u8>> = match pick(self.rng, 3) {
                0 => vec![by_accused[pick(self.rng, by_accused.len())].clone()],
                1 => Vec::new(),
                _ => {
                    let of = Forged::open(last).unwrap();
                    let earlier = |other: &Forged| {
                        other.session == of.session
                            && other.recipient.is_none()
                            && other.round < of.round.min(DISCLOSURE_ROUND)
                    };
                    let known = self.liar.known().iter();
                    known
                        .filter(|bytes| Forged::open(bytes).is_some_and(|other| earlier(&other)))
                        .cloned()
                        .collect()
                }
            };
            evidence.push(last.clone());
            if let Verdict::Proven(fault) = self.judge(cause, accused, &evidence)
                && fault.culprits().contains(&accused)
            {
                found.push(format!("{cause} of the honest {accused} is proven"));
            }
        }
        found
    }
}

/// One schedule: sessions in which parties lie, and one in which all follow the rules.
pub fn schedule<P: Protocol>(
    case: &Case<'_, P>,
    rng: &mut ChaCha20Rng,
    mutant: Mutant,
) -> (Vec<String>, Counts) {
    let (mut checker, mut counts) = (Checker::default(), Counts::default());
    let mut corrupt = Corrupt::draw(rng, &case.parties, case.most_corrupt);
    if pick(rng, 8) == 0 {
        corrupt = Corrupt::default();
    }
    let percent = [4, 10, 20, 40][pick(rng, 4)];
    let mut liar = Liar::new(percent, evidence_key);
    let mut earlier: Option<Vec<u8>> = None;
    for session in 0..=HOSTILE_SESSIONS {
        let calm = session == HOSTILE_SESSIONS;
        let hostile_storage = !calm && pick(rng, 3) == 0;
        let dropped_percent = if !calm && pick(rng, 4) == 0 { 3 } else { 0 };
        let mut world = World {
            case,
            mutant,
            session: 10 + session,
            rng,
            liar: &mut liar,
            checker: &mut checker,
            counts: &mut counts,
            corrupt: if calm { Corrupt::default() } else { corrupt.clone() },
            processes: Vec::new(),
            queue: Vec::new(),
            wire: Vec::new(),
            disturbed: BTreeSet::new(),
            earlier: earlier.as_ref(),
            hostile_storage,
            calm,
            dropped_percent,
            lossy: false,
        };
        world.run();
        let keys: Vec<Option<Vec<u8>>> =
            world.honest().map(|process| process.key.clone().filter(|_| process.stands())).collect();
        if calm {
            if keys.iter().any(Option::is_none) {
                checker.say("a session without faults does not end".to_owned());
            }
            if !keys.windows(2).all(|pair| pair[0] == pair[1]) {
                checker.say("parties have different keys".to_owned());
            }
        } else if let Some(Some(key)) = keys.into_iter().find(Option::is_some) {
            earlier = Some(key);
        }
    }
    counts.lies = liar.coverage().clone();
    (checker.violations, counts)
}
