//! Seeded simulation of whole sessions over a network that delays, reorders, duplicates, drops and alters.
//!
//! Everything that happens follows from the seed, so a failing run is repeated by its number. Checkers live with the
//! tests, apart from this code.

#![forbid(unsafe_code)]

pub mod lies;
pub mod schedule;
pub mod seeds;
mod stuck;

use std::collections::BTreeMap;

use engine::session::{Progress, Protocol, Session, Step};
use engine::{Abort, Envelope, PartyId, PartySet, Reject};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

pub use stuck::Stuck;

/// A party, or `None` for the observer.
pub type Address = Option<PartyId>;

/// One message under way.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Whom the channel proves it is from.
    pub from: PartyId,
    /// Whom it goes to.
    pub to: Address,
    /// The envelope.
    pub bytes: Vec<u8>,
}

/// The faults of the network and of the parties on it. None by default, but order is random always.
#[derive(Default)]
pub struct Faults<'a> {
    /// Of every 100 messages this many arrive twice.
    pub duplicated_percent: u32,
    /// Of every 100 messages this many never arrive.
    pub dropped_percent: u32,
    /// This party receives no more after that many messages.
    pub crash: Option<(PartyId, usize)>,
    /// The replacement of each message on its way: itself, others, or nothing.
    pub tamper: Option<Box<dyn FnMut(Packet) -> Vec<Packet> + 'a>>,
}

/// The result that one party, or the observer, ended with.
pub struct Outcome<T> {
    /// The result.
    pub done: Option<T>,
    /// Every abort it reported, in order. More than one only if a proof came after an abort without culprit.
    pub aborts: Vec<Abort>,
    /// Every message it ignored.
    pub rejects: Vec<(PartyId, Reject)>,
    /// Whom it waited for last.
    pub missing: PartySet,
}

impl<T> Outcome<T> {
    fn new() -> Self {
        Self { done: None, aborts: Vec::new(), rejects: Vec::new(), missing: PartySet::new() }
    }

    /// The last abort, which is the one that counts.
    pub fn abort(&self) -> Option<&Abort> {
        self.aborts.last()
    }
}

/// One session of all its parties.
pub struct World<'a, P: Protocol> {
    sessions: BTreeMap<Address, Session<P>>,
    outcomes: BTreeMap<Address, Outcome<P::Output>>,
    queue: Vec<Packet>,
    received: BTreeMap<Address, usize>,
    faults: Faults<'a>,
    rng: ChaCha20Rng,
}

/// Most messages delivered in one run; a session that needs more does not end.
const MAX_DELIVERIES: usize = 1_000_000;

impl<'a, P: Protocol> World<'a, P> {
    /// Started sessions with their first steps, one for each party and perhaps one observer.
    pub fn new(
        seed: u64,
        faults: Faults<'a>,
        started: impl IntoIterator<Item = (Address, (Session<P>, Step<P::Output>))>,
    ) -> Self {
        let mut world = Self {
            sessions: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            queue: Vec::new(),
            received: BTreeMap::new(),
            faults,
            rng: ChaCha20Rng::seed_from_u64(seed),
        };
        let mut first_steps = Vec::new();
        for (address, (session, step)) in started {
            world.sessions.insert(address, session);
            world.outcomes.insert(address, Outcome::new());
            first_steps.push((address, step));
        }
        for (address, step) in first_steps {
            world.apply(address, None, step);
        }
        world
    }

    /// Delivers until nothing is under way.
    pub fn run(mut self) -> BTreeMap<Address, Outcome<P::Output>> {
        for _ in 0..MAX_DELIVERIES {
            let Some(packet) = self.pick() else { return self.outcomes };
            self.deliver(packet);
        }
        self.outcomes
    }

    fn pick(&mut self) -> Option<Packet> {
        let count = u64::try_from(self.queue.len()).ok().filter(|count| *count > 0)?;
        let index = usize::try_from(self.rng.next_u64() % count).ok()?;
        Some(self.queue.swap_remove(index))
    }

    fn deliver(&mut self, packet: Packet) {
        let received = self.received.entry(packet.to).or_default();
        *received += 1;
        let crashed =
            self.faults.crash.is_some_and(|(party, after)| packet.to == Some(party) && *received > after);
        let Some(session) = self.sessions.get_mut(&packet.to).filter(|_| !crashed) else { return };
        let step = session.handle(packet.from, &packet.bytes, &mut self.rng);
        self.apply(packet.to, Some(packet.from), step);
    }

    fn apply(&mut self, address: Address, from: Option<PartyId>, step: Step<P::Output>) {
        if let Some(outcome) = self.outcomes.get_mut(&address) {
            match step.progress {
                Progress::Waiting { missing } => outcome.missing = missing,
                Progress::Dropped(reject) => outcome.rejects.extend(from.map(|from| (from, reject))),
                Progress::Done(output) => outcome.done = Some(output),
                Progress::Aborted(abort) => outcome.aborts.push(abort),
            }
        }
        let Some(sender) = address else { return };
        for envelope in &step.outgoing {
            for to in self.recipients(sender, envelope) {
                self.post(Packet { from: sender, to, bytes: envelope.encode() });
            }
        }
    }

    fn recipients(&self, sender: PartyId, envelope: &Envelope) -> Vec<Address> {
        match envelope.recipient() {
            Some(recipient) => vec![Some(recipient)],
            None => self.sessions.keys().copied().filter(|address| *address != Some(sender)).collect(),
        }
    }

    fn post(&mut self, packet: Packet) {
        let packets = match &mut self.faults.tamper {
            Some(tamper) => tamper(packet),
            None => vec![packet],
        };
        for packet in packets {
            if self.chance(self.faults.dropped_percent) {
                continue;
            }
            if self.chance(self.faults.duplicated_percent) {
                self.queue.push(packet.clone());
            }
            self.queue.push(packet);
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        percent > 0 && self.rng.next_u32() % 100 < percent
    }
}
