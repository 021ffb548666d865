//! Signing and presigning from seeds among parties of whom up to t - 1 are corrupt, under a coordinator that is corrupt
//! too.
//!
//! The adversary gives orders at will: new ones, old ones again, to some parties only, one session id for two payloads,
//! one presignature for two digests. It orders the messages, and it kills honest parties, starts them again from an
//! older store, or starts a copy of their store beside them, so that an honest party runs one session several times.
//! Corrupt parties tell every lie of [`sim::lies`] that fits, and use their presignatures as often as they like.
//!
//! The checks read the wire and the outcomes alone. Each has a control: a [`Mutant`] of the world in which it must find
//! something.

mod checks;

use core::any::type_name;
use std::collections::{BTreeMap, BTreeSet};

use engine::forge::Forged;
use engine::session::Session;
use engine::{Abort, PartyId};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sim::lies::{self, Coverage, Liar};
use sim::schedule::{Corrupt, pick, sum};
use sim::seeds;

use super::{BATCH, Checker, Digest, Made, Name, Order, Running, Scheme, Turn, Work, settings_of, turn};
use crate::common::{evidence_key, party};

/// Things that happen in one schedule.
const EVENTS: usize = 160;
/// Orders of one schedule at most, repetitions left out.
const MAX_ORDERS: usize = 12;
/// Processes of one party at a time, at most.
const MAX_PROCESSES: usize = 3;

/// How a world departs from the rules of honest parties, so that a check has something to find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// A party that runs a session again draws the same values.
    GeneratorRepeats,
    /// A party says in this round of each session of a protocol what it said there first.
    ValuesStay(u8),
    /// Presignatures outlive their use and their process.
    PresignaturesStay,
    /// The channel changes messages of honest parties.
    ChannelAlters,
    /// A party takes the signature over one digest for that over another.
    AnswersMixed,
    /// Parties take every failure for an error of their own.
    CausesForgotten,
    /// Parties forget whom they suspect and whom they wait for.
    NamesForgotten,
    /// An honest party is not started again after the faults.
    StaysDown,
}

/// A party's disk, as far as it matters here.
#[derive(Clone, Default)]
struct Store {
    claimed: BTreeSet<Name>,
    excluded: BTreeSet<u32>,
}

/// A session that a process runs, or ran.
struct Run<S: Scheme> {
    order: Order,
    running: Running<S>,
    done: bool,
    aborts: Vec<Abort>,
    missing: Vec<PartyId>,
}

/// A process of a party: all that it loses when it is killed, and the store that it uses.
struct Process<S: Scheme> {
    party: u32,
    /// Of no other process of the schedule.
    number: usize,
    store: Store,
    runs: BTreeMap<Name, Run<S>>,
    pool: BTreeMap<Name, S::Presignature>,
    /// Copies of presignatures: of corrupt parties, and of a mutant.
    copies: BTreeMap<Name, Vec<u8>>,
    /// Messages that came before their order.
    early: BTreeMap<Name, Vec<(u32, Vec<u8>)>>,
}

impl<S: Scheme> Process<S> {
    fn new(party: u32, number: usize, store: Store) -> Self {
        let (runs, pool, copies, early) = Default::default();
        Self { party, number, store, runs, pool, copies, early }
    }
}

struct Packet {
    from: u32,
    to: u32,
    session: Name,
    bytes: Vec<u8>,
}

#[derive(Default, Debug)]
struct Counts {
    orders: usize,
    repeated: usize,
    presignatures: usize,
    signatures: usize,
    from_presignatures: usize,
    kills: usize,
    old_stores: usize,
    clones: usize,
    convictions: BTreeMap<u8, usize>,
    suspicions: BTreeMap<u8, usize>,
    stragglers: usize,
    lies: Coverage,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.orders += other.orders;
        self.repeated += other.repeated;
        self.presignatures += other.presignatures;
        self.signatures += other.signatures;
        self.from_presignatures += other.from_presignatures;
        self.kills += other.kills;
        self.old_stores += other.old_stores;
        self.clones += other.clones;
        self.stragglers += other.stragglers;
        sum(&mut self.convictions, &other.convictions);
        sum(&mut self.suspicions, &other.suspicions);
        sum(&mut self.lies, &other.lies);
    }
}

struct World<S: Scheme> {
    mutant: Mutant,
    rng: ChaCha20Rng,
    shares: &'static BTreeMap<u32, S::Share>,
    parties: Vec<u32>,
    t: u32,
    corrupt: Corrupt,
    liar: Liar,
    processes: Vec<Process<S>>,
    /// How many processes there have been.
    started: usize,
    older: BTreeMap<u32, Store>,
    queue: Vec<Packet>,
    orders: Vec<Order>,
    /// Names and signers of the presignatures that somebody has reported.
    presignatures: Vec<(Name, Vec<u32>)>,
    remembered: S::Memory,
    checker: Checker<S>,
    counts: Counts,
    /// Sessions that honest parties were not given all alike, or that a kill or the network disturbed.
    disturbed: BTreeSet<Name>,
    dropped_percent: u64,
    next_digest: u64,
    /// For a mutant: the first body of each sender to each recipient in the round that it is about.
    first_bodies: BTreeMap<(u16, PartyId, Option<PartyId>), Vec<u8>>,
}

impl<S: Scheme> World<S> {
    fn new(seed: u64, mutant: Mutant) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let large = pick(&mut rng, 6) == 0;
        let (shares, t) = if large { (S::large_committee(), 3) } else { (S::shares(), super::T) };
        let parties: Vec<u32> = shares.keys().copied().collect();
        let corrupt = Corrupt::draw(&mut rng, &parties, t as usize - 1);
        let percent = [3, 10, 25][pick(&mut rng, 3)];
        let dropped_percent = [0, 0, 0, 4][pick(&mut rng, 4)];
        // A corrupt party may run every order twice.
        let doubled = corrupt.iter().filter(|_| pick(&mut rng, 3) == 0);
        let of_parties = parties.iter().copied().chain(doubled).zip(0..);
        let processes: Vec<Process<S>> =
            of_parties.map(|(party, number)| Process::new(party, number, Store::default())).collect();
        Self {
            mutant,
            rng,
            shares,
            parties,
            t,
            corrupt,
            liar: Liar::new(percent, evidence_key),
            started: processes.len(),
            processes,
            older: BTreeMap::new(),
            queue: Vec::new(),
            orders: Vec::new(),
            presignatures: Vec::new(),
            remembered: S::Memory::default(),
            checker: Checker::new(),
            counts: Counts::default(),
            disturbed: BTreeSet::new(),
            dropped_percent,
            next_digest: 0,
            first_bodies: BTreeMap::new(),
        }
    }

    fn pick(&mut self, count: usize) -> usize {
        pick(&mut self.rng, count)
    }

    fn say(&mut self, violation: String) {
        self.checker.violations.push(violation);
    }

    fn honest(&self) -> Vec<u32> {
        self.parties.iter().copied().filter(|number| !self.corrupt.has(*number)).collect()
    }

    fn process(&mut self, party: u32, store: Store) -> Process<S> {
        self.started += 1;
        Process::new(party, self.started, store)
    }

    fn name(&mut self) -> Name {
        let mut name = [0; 32];
        self.rng.fill_bytes(&mut name);
        name
    }

    fn digest(&mut self) -> Digest {
        self.next_digest += 1;
        let mut digest = [0x51; 32];
        digest[..8].copy_from_slice(&self.next_digest.to_be_bytes());
        digest
    }

    /// At least t, some of them perhaps corrupt.
    fn signing_set(&mut self) -> Vec<u32> {
        let count = self.t as usize + self.pick(2);
        let mut set = BTreeSet::new();
        while set.len() < count {
            let at = self.pick(self.parties.len());
            set.insert(self.parties[at]);
        }
        set.into_iter().collect()
    }

    /// The corrupt coordinator gives an order.
    fn order_something(&mut self) {
        let again = !self.orders.is_empty() && (self.orders.len() >= MAX_ORDERS || self.pick(3) == 0);
        if again {
            // An order that was given already, to one party or all; perhaps with another payload under the same session
            // id.
            self.counts.repeated += 1;
            let at = self.pick(self.orders.len());
            let mut order = self.orders[at].clone();
            let everybody = order.signers.clone();
            if self.pick(4) == 0 {
                self.disturbed.insert(order.session);
                if let Work::Sign { digest, .. } = &mut order.work {
                    digest[31] ^= 1;
                }
            }
            let to = match self.pick(2) {
                0 => everybody,
                _ => vec![everybody[self.pick(everybody.len())]],
            };
            self.give(&order, &to);
            return;
        }
        let (signers, work) = match self.pick(5) {
            0 | 1 => (self.signing_set(), Work::Presign),
            2 if !self.presignatures.is_empty() => {
                // It never forgets a presignature, so that it orders used ones too.
                let at = self.pick(self.presignatures.len());
                let (name, signers) = self.presignatures[at].clone();
                (signers, Work::Sign { request: 0, digest: self.digest(), presignature: Some(name) })
            }
            _ => (self.signing_set(), Work::Sign { request: 0, digest: self.digest(), presignature: None }),
        };
        let order = Order { session: self.name(), given: 0, signers, work };
        self.counts.orders += 1;
        self.orders.push(order.clone());
        let mut to = order.signers.clone();
        if self.pick(8) == 0 {
            self.disturbed.insert(order.session);
            to.remove(self.pick(to.len()));
        }
        self.give(&order, &to);
    }

    fn give(&mut self, order: &Order, to: &[u32]) {
        for at in 0..self.processes.len() {
            if to.contains(&self.processes[at].party) {
                self.begin(at, order);
            }
        }
    }

    /// A process claims an order and runs it, unless it refuses.
    fn begin(&mut self, at: usize, order: &Order) {
        let number = self.processes[at].party;
        let corrupt = self.corrupt.has(number);
        let keeps = corrupt || self.mutant == Mutant::PresignaturesStay;
        let mut rng = match self.mutant {
            // Of the session and the party, so that it repeats with them.
            Mutant::GeneratorRepeats => {
                ChaCha20Rng::seed_from_u64(u64::from(order.session[0]) << 8 | u64::from(number))
            }
            _ => ChaCha20Rng::seed_from_u64(self.rng.next_u64()),
        };
        let runs_it =
            |process: &Process<S>| process.party == number && process.runs.contains_key(&order.session);
        let twice = self.processes.iter().any(runs_it);
        let process = &mut self.processes[at];
        let excluded = order.signers.iter().any(|signer| process.store.excluded.contains(signer));
        if !corrupt && (excluded || !process.store.claimed.insert(order.session)) {
            if excluded {
                self.disturbed.insert(order.session);
            }
            return;
        }
        if twice {
            self.disturbed.insert(order.session);
        }
        let settings = |payload| settings_of((number, self.t), order, payload);
        let share = &self.shares[&number];
        let started = match &order.work {
            Work::Presign => Session::<S::Presigning>::start(
                settings(S::presign_payload()),
                None,
                S::reopen(share),
                &mut rng,
            )
            .map(|(session, step)| (Running::Presign(session), turn(step, Made::Presignatures))),
            Work::Sign { digest, presignature: Some(name), .. } => {
                let copy = process.copies.get(name).filter(|_| keeps);
                let Some(burnt) = process.pool.remove(name).or_else(|| S::unseal(copy?)) else {
                    self.disturbed.insert(order.session);
                    return;
                };
                let payload = S::sign_payload(*digest, Some(*name));
                Session::<S::PresignedSigning>::start(settings(payload), None, S::holder(burnt), &mut rng)
                    .map(|(session, step)| (Running::Presigned(session), turn(step, Made::Signature)))
            }
            Work::Sign { digest, presignature: None, .. } => {
                let payload = S::sign_payload(*digest, None);
                Session::<S::Signing>::start(settings(payload), None, S::party(S::reopen(share)), &mut rng)
                    .map(|(session, step)| (Running::Sign(session), turn(step, Made::Signature)))
            }
        };
        let Ok((running, first)) = started else {
            self.disturbed.insert(order.session);
            return;
        };
        let run = Run { order: order.clone(), running, done: false, aborts: Vec::new(), missing: Vec::new() };
        process.runs.insert(order.session, run);
        let early = process.early.remove(&order.session).unwrap_or_default();
        self.apply(at, order, first);
        for (from, bytes) in early {
            self.queue.push(Packet { from, to: number, session: order.session, bytes });
        }
    }

    fn apply(&mut self, at: usize, order: &Order, turn: Turn<S>) {
        let Turn { outgoing, made, aborted, missing } = turn;
        let process = &mut self.processes[at];
        let number = process.party;
        let Some(run) = process.runs.get_mut(&order.session) else { return };
        run.missing = missing.unwrap_or(core::mem::take(&mut run.missing));
        run.done |= made.is_some();
        if let Some(abort) = aborted {
            let culprits = abort.culprits.iter().map(|culprit| u32::from(culprit.get()));
            process.store.excluded.extend(culprits);
            run.aborts.push(abort);
        }
        for (recipient, bytes) in outgoing {
            let peers = order.signers.iter().copied().filter(|to| *to != number);
            let to: Vec<u32> = if recipient == 0 { peers.collect() } else { vec![recipient] };
            if self.corrupt.has(number) {
                let recipients: Vec<PartyId> = to.iter().map(|to| party(*to)).collect();
                for told in self.liar.says(&mut self.rng, &bytes, &recipients) {
                    let to = told.to.get().into();
                    self.queue.push(Packet { from: number, to, session: order.session, bytes: told.bytes });
                }
            } else {
                self.checker.process = self.processes[at].number;
                self.send(number, order, &to, bytes);
            }
        }
        match (made, &order.work) {
            (Some(Made::Presignatures(made)), _) => self.keep(at, order, made),
            (Some(Made::Signature(signature)), Work::Sign { presignature, .. }) => {
                self.counts.signatures += 1;
                self.counts.from_presignatures += usize::from(presignature.is_some());
                let mut digest = self.digest_of(at, &order.session);
                if self.mutant == Mutant::AnswersMixed && number != order.signers[0] {
                    digest[0] ^= 1;
                }
                if !S::verifies_with(&self.shares[&number], &signature, &digest) {
                    self.say("a signature that does not verify".to_owned());
                }
                self.checker.nonce_of(digest, &signature);
            }
            (Some(Made::Signature(_)), Work::Presign) | (None, _) => (),
        }
    }

    fn digest_of(&self, at: usize, session: &Name) -> Digest {
        match self.processes[at].runs[session].order.work {
            Work::Sign { digest, .. } => digest,
            Work::Presign => panic!("a presigning makes no signature"),
        }
    }

    fn keep(&mut self, at: usize, order: &Order, made: Vec<S::Presignature>) {
        assert_eq!(made.len(), usize::from(BATCH));
        let keeps = self.corrupt.has(self.processes[at].party) || self.mutant == Mutant::PresignaturesStay;
        for presignature in made {
            let name = S::id(&presignature);
            self.counts.presignatures += 1;
            if !self.presignatures.iter().any(|(known, _)| *known == name) {
                self.presignatures.push((name, order.signers.clone()));
            }
            let process = &mut self.processes[at];
            if keeps {
                process.copies.insert(name, S::seal(presignature, &mut self.rng));
            } else {
                process.pool.insert(name, presignature);
            }
        }
    }

    /// An honest party's message.
    fn send(&mut self, from: u32, order: &Order, to: &[u32], mut bytes: Vec<u8>) {
        if let Mutant::ValuesStay(round) = self.mutant {
            let mut forged = Forged::open(&bytes).unwrap();
            if forged.round == round {
                let place = (forged.protocol, forged.sender, forged.recipient);
                forged.body = self.first_bodies.entry(place).or_insert(forged.body).clone();
                bytes = forged.encode(&evidence_key(forged.sender));
            }
        }
        S::seen(&Forged::open(&bytes).unwrap(), &mut self.remembered, &mut self.checker);
        if to.iter().any(|to| self.corrupt.has(*to)) {
            self.liar.hears(&bytes);
        }
        if self.mutant == Mutant::ChannelAlters && self.pick(5) == 0 {
            *bytes.last_mut().unwrap() ^= 1;
        }
        for to in to.iter().copied() {
            if self.rng.next_u64() % 100 < self.dropped_percent {
                self.disturbed.insert(order.session);
                continue;
            }
            let copies = 1 + usize::from(self.pick(10) == 0);
            for _ in 0..copies {
                self.queue.push(Packet { from, to, session: order.session, bytes: bytes.clone() });
            }
        }
    }

    /// Gives a packet to one process of its recipient; a corrupt party shows it to all of its own.
    fn deliver(&mut self) {
        let at = self.pick(self.queue.len());
        let Packet { from, to, session, bytes } = self.queue.swap_remove(at);
        let mut hearers: Vec<usize> =
            (0..self.processes.len()).filter(|at| self.processes[*at].party == to).collect();
        if !self.corrupt.has(to) && hearers.len() > 1 {
            self.disturbed.insert(session);
            hearers = vec![hearers[self.pick(hearers.len())]];
        }
        for at in hearers {
            let process = &mut self.processes[at];
            let Some(run) = process.runs.get_mut(&session) else {
                process.early.entry(session).or_default().push((from, bytes.clone()));
                continue;
            };
            let order = run.order.clone();
            let turn = run.running.handle(from, &bytes, &mut self.rng);
            self.apply(at, &order, turn);
        }
    }

    /// Kills an honest party, starts it again from its store or from an older one, or starts a copy beside it.
    fn disturb(&mut self) {
        let honest = self.honest();
        let number = honest[self.pick(honest.len())];
        let own: Vec<usize> =
            (0..self.processes.len()).filter(|at| self.processes[*at].party == number).collect();
        let of = own[self.pick(own.len())];
        let current = self.processes[of].store.clone();
        if self.pick(3) == 0 {
            self.older.insert(number, current);
            return;
        }
        let older = self.older.get(&number).cloned().unwrap_or_default();
        let old = self.pick(2) == 0;
        self.counts.old_stores += usize::from(old);
        let mut started = self.process(number, if old { older } else { current });
        if self.mutant == Mutant::PresignaturesStay {
            started.copies = self.processes[of].copies.clone();
        }
        if own.len() >= MAX_PROCESSES || self.pick(2) == 0 {
            self.counts.kills += 1;
            for at in own.into_iter().rev() {
                let killed = self.processes.swap_remove(at);
                self.disturbed.extend(killed.runs.keys().chain(killed.early.keys()));
                self.check_runs(&killed, false);
            }
        } else {
            self.counts.clones += 1;
        }
        self.processes.push(started);
    }

    /// The faults end: honest parties are started again from whatever store they have, and sign in both ways.
    fn heal(&mut self) {
        let honest = self.honest();
        for at in (0..self.processes.len()).rev() {
            if !self.corrupt.has(self.processes[at].party) {
                let ended = self.processes.swap_remove(at);
                self.check_runs(&ended, true);
                self.older.insert(ended.party, ended.store);
            }
        }
        self.queue.clear();
        (self.dropped_percent, self.processes) = (0, Vec::new());
        let signers = honest[..self.t as usize].to_vec();
        let down = usize::from(self.mutant == Mutant::StaysDown);
        for number in &signers[down..] {
            let store = self.older.remove(number).unwrap_or_default();
            let process = self.process(*number, store);
            self.processes.push(process);
        }
        let interactive = Work::Sign { request: 0, digest: self.digest(), presignature: None };
        self.must_end(&signers, interactive);
        self.must_end(&signers, Work::Presign);
        let made = self.processes.iter().find_map(|process| process.pool.keys().next().copied());
        if let Some(name) = made {
            let presigned = Work::Sign { request: 0, digest: self.digest(), presignature: Some(name) };
            self.must_end(&signers, presigned);
        }
    }

    fn must_end(&mut self, signers: &[u32], work: Work) {
        let order = Order { session: self.name(), given: 0, signers: signers.to_vec(), work };
        self.give(&order, signers);
        while !self.queue.is_empty() {
            self.deliver();
        }
        let done = |number: &u32| {
            let process = self.processes.iter().find(|process| process.party == *number);
            process.and_then(|process| process.runs.get(&order.session)).is_some_and(|run| run.done)
        };
        if !signers.iter().all(done) {
            self.say(format!("a session of honest parties does not end: {:?}", order.work));
        }
    }

    fn run(mut self) -> (Vec<String>, Counts) {
        for _ in 0..EVENTS {
            match self.pick(100) {
                0..8 => self.order_something(),
                8..12 => self.disturb(),
                _ if self.queue.is_empty() => self.order_something(),
                _ => self.deliver(),
            }
        }
        while !self.queue.is_empty() {
            self.deliver();
        }
        self.check_names();
        self.heal();
        self.counts.lies = self.liar.coverage().clone();
        (self.checker.violations, self.counts)
    }
}

/// The test of a scheme.
pub fn nothing_is_used_twice_whatever_corrupt_parties_and_storage_do<S: Scheme>() {
    let seeds = seeds::wanted(&format!("hostile {}", type_name::<S>()), 10_000);
    let mut total = Counts::default();
    seeds::run_all(
        &seeds,
        |seed| World::<S>::new(seed, Mutant::None).run(),
        |violations, counts| {
            total.add(counts);
            violations.clone()
        },
    );
    let runs = seeds.len();
    let untold = lies::untold(&total.lies, false);
    println!("{runs} schedules: {total:?}; never told: {untold:?}");
    if runs >= 100 {
        assert!(total.signatures > runs && total.from_presignatures > runs / 4, "{total:?}");
        assert!(
            total.kills > runs / 2 && total.old_stores > runs / 2 && total.clones > runs / 2,
            "{total:?}"
        );
        assert!(total.convictions.values().sum::<usize>() > runs / 10 && total.stragglers > 0, "{total:?}");
    }
    assert_eq!(lies::overdue(untold, S::RARE_LIES, runs), [], "{total:?}");
}

/// The checks find what each mutant does wrong, at or after a seed that has shown it.
pub fn each_check_finds_its_mutant<S: Scheme>() {
    for (mutant, expected, first) in [
        (Mutant::GeneratorRepeats, "in two runs", 0),
        (Mutant::PresignaturesStay, "two partial signatures for one nonce", 0),
        (Mutant::ChannelAlters, "convicts an honest party", 0),
        (Mutant::AnswersMixed, "a signature that does not verify", 0),
        (Mutant::AnswersMixed, "one nonce in two signatures", 0),
        (Mutant::CausesForgotten, "blames an error of its own", 0),
        (Mutant::NamesForgotten, "names nobody", 0),
        (Mutant::NamesForgotten, "waits for nobody", 0),
        (Mutant::NamesForgotten, "no corrupt party is named", 59),
        (Mutant::StaysDown, "does not end", 0),
    ] {
        let run = |seed| World::<S>::new(seed, mutant).run().0;
        seeds::must_find(first..first + 500, &format!("{mutant:?}"), expected, run);
    }
    for (value, round) in S::ONE_TIME {
        let mutant = Mutant::ValuesStay(*round);
        let expected = format!("{value} of party");
        let run = |seed| World::<S>::new(seed, mutant).run().0;
        seeds::must_find(0..100, &format!("{mutant:?}"), &expected, run);
    }
}
