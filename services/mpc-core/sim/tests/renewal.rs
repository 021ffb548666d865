//! Refresh and reshare among signers that store, switch and give up by the rules of `docs/protocols/session.md`, over a
//! network that fails, from seeds: orders, messages that are late, lost or come twice, deadlines, crashes and restarts
//! between any two transactions.
//!
//! What must hold ([`Checker`]): the key stays the key; no party switches to shares that another has given up; no epoch
//! is made twice; at every moment enough parties hold shares of one epoch; and when the faults end, exactly one epoch
//! is usable, and it signs.
//!
//! `SEED=<number>` repeats one seed, `RUNS=<count>` runs that many; see [`sim::seeds`].

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

#[path = "../../protocols/tests/common/mod.rs"]
mod common;
#[allow(dead_code, reason = "the part that is about dealing")]
#[path = "../../protocols/tests/dealing/harness.rs"]
mod dealing;
#[path = "../../protocols/tests/ecdsa_common/mod.rs"]
mod ecdsa_common;
#[allow(dead_code, reason = "the part that is about whole sessions")]
#[path = "../../protocols/tests/frost/harness.rs"]
mod harness;

use core::any::type_name;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::LazyLock;

use common::{evidence_key, party, roster, threshold};
use dealing::{Bip340, Bls, Ecdsa, Ed25519, Shares, Tested, numbers, set};
use engine::session::{Progress, Session, Step};
use engine::wire::Writer;
use engine::{SessionId, SessionSettings};
use protocols::dealing::{Curve, Public, Refresh, Reshare, ReshareTerms, Reshared};
use protocols::frost;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sim::{Faults, seeds};

/// Everyone who may ever hold a share. The first three hold the key to begin with, two of whom sign.
const PARTIES: [u32; 4] = [1, 2, 3, 4];
/// Things that happen while faults do.
const FAULTY_EVENTS: usize = 250;
/// Rounds of telling each other that may follow before all must have decided.
const HEALING_ROUNDS: usize = 40;

/// Of a session.
type Name = [u8; 32];

/// What everybody may know of a key.
#[derive(Clone, PartialEq)]
struct Facts {
    key: Vec<u8>,
    epoch: u32,
    threshold: u32,
    parties: Vec<u32>,
}

/// What the schedules need of a scheme.
trait Scheme: Tested + 'static {
    fn shares() -> &'static Shares<Self>;
    /// Signs with these shares and has the signature verified.
    fn signs(shares: &Shares<Self>, signers: &[u32]);

    fn facts(public: &Self::Public) -> Facts {
        Facts {
            key: Self::Curve::encode_point(&public.public_point().unwrap()).unwrap(),
            epoch: public.epoch(),
            threshold: public.threshold().get() as u32,
            parties: numbers(&public.parties()),
        }
    }
}

impl Scheme for Bls {
    fn shares() -> &'static Shares<Self> {
        static SHARES: LazyLock<Shares<Bls>> = LazyLock::new(|| Bls::keys(&PARTIES[..3], 2, 1));
        &SHARES
    }

    fn signs(shares: &Shares<Self>, signers: &[u32]) {
        let outcomes = common::sign_with(shares, signers, b"renewed", 1, Faults::default());
        // The core verifies each signature under the key before it gives it out.
        let signatures: BTreeSet<_> =
            outcomes.into_values().map(|outcome| outcome.done.unwrap().signature).collect();
        assert_eq!(signatures.len(), 1);
    }
}

impl Scheme for Ecdsa {
    fn shares() -> &'static Shares<Self> {
        static SHARES: LazyLock<Shares<Ecdsa>> = LazyLock::new(|| Ecdsa::keys(&PARTIES[..3], 2, 1));
        &SHARES
    }

    fn signs(shares: &Shares<Self>, signers: &[u32]) {
        let request = ecdsa_common::payload([0x21; 32], &[]);
        let outcomes = ecdsa_common::sign_with(shares, signers, 1, &request, Faults::default());
        let key = shares[&signers[0]].public().public_key;
        for signature in ecdsa_common::by_number(outcomes).values() {
            ecdsa_common::verify_outside(&key, request.digest, signature);
        }
    }
}

macro_rules! schnorr {
    ($($suite:ident),+) => {
        $(impl Scheme for $suite {
            fn shares() -> &'static Shares<Self> {
                static SHARES: LazyLock<Shares<$suite>> = LazyLock::new(|| $suite::keys(&PARTIES[..3], 2, 1));
                &SHARES
            }

            fn signs(shares: &Shares<Self>, signers: &[u32]) {
                type Suite = frost::$suite;
                let target = <Suite as harness::Tested>::targets().remove(0);
                let request = harness::payload(harness::message(1), &target);
                let outcomes = harness::sign_with(shares, signers, 1, &request, Faults::default());
                harness::check(shares[&signers[0]].public(), &request, &harness::by_number(outcomes));
            }
        })+
    };
}

schnorr!(Ed25519, Bip340);

/// What a coordinator tells signers to do with the key as it believes it to be.
struct Order<S: Scheme> {
    session: Name,
    base: S::Public,
    /// Dealers, receivers, threshold; none of it in a refresh.
    change: Option<(Vec<u32>, Vec<u32>, u32)>,
}

impl<S: Scheme> Order<S> {
    fn parties(&self) -> Vec<u32> {
        match &self.change {
            None => S::facts(&self.base).parties,
            Some((dealers, receivers, _)) => {
                dealers.iter().chain(receivers).copied().collect::<BTreeSet<_>>().into_iter().collect()
            }
        }
    }

    fn settings(&self, me: u32) -> SessionSettings {
        let base = S::facts(&self.base);
        let payload = match &self.change {
            None => {
                let mut writer = Writer::default();
                self.base.encode(&mut writer);
                writer.finish()
            }
            Some((dealers, receivers, _)) => {
                let (dealers, receivers) = (set(dealers), set(receivers));
                ReshareTerms::<S> { dealers, receivers, base: self.base.clone() }.encode()
            }
        };
        SessionSettings {
            session_id: SessionId::new(self.session),
            me: Some(party(me)),
            roster: roster(&self.parties()),
            threshold: threshold(self.change.as_ref().map_or(base.threshold, |(_, _, t)| *t)),
            key_id: common::KEY_ID.to_owned(),
            epoch: base.epoch + 1,
            payload,
        }
    }
}

/// Under way.
enum Message<S: Scheme> {
    Order {
        to: u32,
        order: Rc<Order<S>>,
    },
    Envelope {
        from: u32,
        to: u32,
        session: Name,
        bytes: Vec<u8>,
    },
    /// "I have stored my end of it", and perhaps: "have you?"
    Completed {
        from: u32,
        to: u32,
        session: Name,
        public: S::Public,
        asks: bool,
    },
    /// "I have not, and never will."
    Forsaken {
        to: u32,
        session: Name,
    },
}

impl<S: Scheme> Clone for Message<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Order { to, order } => Self::Order { to: *to, order: Rc::clone(order) },
            Self::Envelope { from, to, session, bytes } => {
                Self::Envelope { from: *from, to: *to, session: *session, bytes: bytes.clone() }
            }
            Self::Completed { from, to, session, public, asks } => {
                let (from, to, session, asks) = (*from, *to, *session, *asks);
                Self::Completed { from, to, session, public: public.clone(), asks }
            }
            Self::Forsaken { to, session } => Self::Forsaken { to: *to, session: *session },
        }
    }
}

enum Running<S: Scheme> {
    Refresh(Session<Refresh<S>>),
    Reshare(Session<Reshare<S>>),
}

/// What a session came to: the key's public data, and the new share unless its party leaves.
type Made<S> = (<S as protocols::dealing::Scheme>::Public, Option<<S as protocols::dealing::Scheme>::Share>);

struct Turn<S: Scheme> {
    /// To one, or to all.
    outgoing: Vec<(Option<u32>, Vec<u8>)>,
    made: Option<Made<S>>,
}

fn turn<S: Scheme, T>(step: Step<T>, made: impl FnOnce(T) -> Made<S>) -> Turn<S> {
    let outgoing = step
        .outgoing
        .iter()
        .map(|envelope| (envelope.recipient().map(|to| to.get().into()), envelope.encode()))
        .collect();
    let made = match step.progress {
        Progress::Done(output) => Some(made(output)),
        // Among parties that all follow the rules nothing can fail.
        Progress::Aborted(abort) => panic!("{abort}"),
        Progress::Waiting { .. } | Progress::Dropped(_) => None,
    };
    Turn { outgoing, made }
}

fn refreshed<S: Scheme>(share: S::Share) -> Made<S> {
    (S::public_of(&share).clone(), Some(share))
}

fn reshared<S: Scheme>(Reshared { public, share }: Reshared<S>) -> Made<S> {
    (public, share)
}

/// A share that is on disk and not decided yet.
struct Stored<S: Scheme> {
    session: Name,
    parties: Vec<u32>,
    made: Made<S>,
}

/// What a signer's disk holds; each method of [`Signer`] that changes it is one transaction.
struct Store<S: Scheme> {
    active: Option<S::Share>,
    stored: Option<Stored<S>>,
    /// Sessions it has switched in, and to what.
    switched: BTreeMap<Name, S::Public>,
    /// Sessions it has said it will never complete.
    forsaken: BTreeSet<Name>,
    claimed: BTreeSet<Name>,
}

/// What a signer loses when it stops.
struct Memory<S: Scheme> {
    running: BTreeMap<Name, (Rc<Order<S>>, Running<S>)>,
    /// Came before their order.
    early: BTreeMap<Name, Vec<(u32, Vec<u8>)>>,
    /// Who has said that it has completed what.
    completed: BTreeMap<Name, BTreeMap<u32, S::Public>>,
}

impl<S: Scheme> Default for Memory<S> {
    fn default() -> Self {
        Self { running: BTreeMap::new(), early: BTreeMap::new(), completed: BTreeMap::new() }
    }
}

struct Signer<S: Scheme> {
    number: u32,
    store: Store<S>,
    memory: Memory<S>,
}

impl<S: Scheme> Signer<S> {
    /// Whether it is of the epoch that the order is about, or is to join it: without a share, or with one that is of no
    /// use any more.
    fn fits(&self, order: &Order<S>) -> bool {
        let Some(public) = self.store.active.as_ref().map(S::public_of) else { return true };
        let deals = order.change.as_ref().is_none_or(|(dealers, _, _)| dealers.contains(&self.number));
        public == &order.base || !deals && S::facts(public).epoch < S::facts(&order.base).epoch
    }

    /// Claims an order and starts it. `None` if it is refused.
    fn begin(&mut self, order: &Rc<Order<S>>, rng: &mut ChaCha20Rng) -> Option<Turn<S>> {
        let fits = self.fits(order);
        let store = &mut self.store;
        if store.stored.is_some() || store.forsaken.contains(&order.session) || !fits {
            return None;
        }
        if !store.claimed.insert(order.session) {
            return None;
        }
        let own = || store.active.as_ref().map(S::reopen);
        let (settings, key) = (order.settings(self.number), Some(evidence_key(party(self.number))));
        let (running, turn) = match &order.change {
            None => {
                let (session, step) = Session::<Refresh<S>>::start(settings, key, own()?, rng).ok()?;
                (Running::Refresh(session), turn(step, refreshed::<S>))
            }
            Some((dealers, _, _)) => {
                let share = own().filter(|_| dealers.contains(&self.number));
                let (session, step) = Session::<Reshare<S>>::start(settings, key, share, rng).ok()?;
                (Running::Reshare(session), turn(step, reshared::<S>))
            }
        };
        self.memory.running.insert(order.session, (Rc::clone(order), running));
        Some(turn)
    }

    fn handle(&mut self, session: Name, from: u32, bytes: &[u8], rng: &mut ChaCha20Rng) -> Option<Turn<S>> {
        match &mut self.memory.running.get_mut(&session)?.1 {
            Running::Refresh(session) => Some(turn(session.handle(party(from), bytes, rng), refreshed::<S>)),
            Running::Reshare(session) => Some(turn(session.handle(party(from), bytes, rng), reshared::<S>)),
        }
    }

    /// Stores what its session made, or, if something else was stored or switched to meanwhile, never will.
    fn store(&mut self, order: &Order<S>, made: Made<S>) {
        self.memory.running.remove(&order.session);
        let fits = self.fits(order);
        let store = &mut self.store;
        if store.stored.is_some() || !fits {
            store.forsaken.insert(order.session);
        } else {
            store.stored = Some(Stored { session: order.session, parties: order.parties(), made });
        }
    }

    /// Switches if all parties have said that they have completed the same.
    fn switch(&mut self, checker: &mut Checker) {
        let Some(Stored { session, parties, made: (public, _) }) = &self.store.stored else { return };
        let told = self.memory.completed.get(session);
        let all = parties
            .iter()
            .filter(|other| **other != self.number)
            .all(|other| told.and_then(|told| told.get(other)).is_some_and(|theirs| theirs == public));
        if !all {
            return;
        }
        let Some(Stored { session, made: (public, share), .. }) = self.store.stored.take() else { return };
        checker.switched(session, &S::facts(&public));
        self.store.active = share;
        self.store.switched.insert(session, public);
        self.memory.running.clear();
    }

    fn give_up(&mut self, session: Name, checker: &mut Checker) {
        if self.store.stored.as_ref().is_some_and(|stored| stored.session == session) {
            self.store.stored = None;
            checker.given_up(session);
        }
    }

    /// What it answers to a `completed` of a session: its own, or that it never will; nothing while it may yet.
    fn answer(&mut self, session: Name) -> Option<Result<S::Public, ()>> {
        if let Some(stored) = self.store.stored.as_ref().filter(|stored| stored.session == session) {
            return Some(Ok(stored.made.0.clone()));
        }
        if let Some(public) = self.store.switched.get(&session) {
            return Some(Ok(public.clone()));
        }
        if self.memory.running.contains_key(&session) {
            return None;
        }
        self.store.forsaken.insert(session);
        Some(Err(()))
    }
}

/// What is seen from outside.
#[derive(Default)]
struct Checker {
    key: Vec<u8>,
    switched: BTreeMap<Name, Facts>,
    given_up: BTreeSet<Name>,
    epochs: BTreeMap<u32, Name>,
    violations: Vec<String>,
}

impl Checker {
    fn switched(&mut self, session: Name, facts: &Facts) {
        if facts.key != self.key {
            self.violations.push("another key".to_owned());
        }
        if self.given_up.contains(&session) {
            self.violations.push("switched to what another party has given up".to_owned());
        }
        if self.switched.entry(session).or_insert_with(|| facts.clone()) != facts {
            self.violations.push("switched to two different things in one session".to_owned());
        }
        if *self.epochs.entry(facts.epoch).or_insert(session) != session {
            self.violations.push(format!("epoch {} made twice", facts.epoch));
        }
    }

    fn given_up(&mut self, session: Name) {
        self.given_up.insert(session);
        if self.switched.contains_key(&session) {
            self.violations.push("gave up what another party has switched to".to_owned());
        }
    }
}

#[derive(Default, Debug)]
struct Counts {
    refreshed: usize,
    reshared: usize,
    given_up: usize,
    crashes: usize,
    deadlines: usize,
}

struct World<S: Scheme> {
    rng: ChaCha20Rng,
    signers: BTreeMap<u32, Signer<S>>,
    network: Vec<Message<S>>,
    orders: BTreeMap<Name, Rc<Order<S>>>,
    checker: Checker,
    counts: Counts,
    dropped_percent: u64,
    duplicated_percent: u64,
    faulty: bool,
}

impl<S: Scheme> World<S> {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let signers = PARTIES.map(|number| {
            let store = Store {
                active: S::shares().get(&number).map(S::reopen),
                stored: None,
                switched: BTreeMap::new(),
                forsaken: BTreeSet::new(),
                claimed: BTreeSet::new(),
            };
            (number, Signer { number, store, memory: Memory::default() })
        });
        let first = S::facts(S::public_of(&S::shares()[&1]));
        let (dropped_percent, duplicated_percent) = (rng.next_u64() % 4, rng.next_u64() % 30);
        Self {
            rng,
            signers: signers.into_iter().collect(),
            network: Vec::new(),
            orders: BTreeMap::new(),
            checker: Checker { key: first.key, ..Checker::default() },
            counts: Counts::default(),
            dropped_percent,
            duplicated_percent,
            faulty: true,
        }
    }

    fn pick(&mut self, count: usize) -> usize {
        (self.rng.next_u64() % count as u64) as usize
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.faulty && self.rng.next_u64() % 100 < percent
    }

    /// At least `least` of these, in order.
    fn some_of(&mut self, from: &[u32], least: usize) -> Vec<u32> {
        let mut chosen: BTreeSet<u32> = BTreeSet::new();
        let wanted = least + self.pick(from.len() - least + 1);
        while chosen.len() < wanted {
            chosen.insert(from[self.pick(from.len())]);
        }
        chosen.into_iter().collect()
    }

    fn post(&mut self, message: Message<S>) {
        if self.chance(self.dropped_percent) {
            return;
        }
        if self.chance(self.duplicated_percent) {
            self.network.push(message.clone());
        }
        self.network.push(message);
    }

    /// A coordinator that takes the key for what one of its parties, perhaps one that is behind, says it is.
    fn order(&mut self) {
        let holders: Vec<u32> =
            PARTIES.into_iter().filter(|number| self.signers[number].store.active.is_some()).collect();
        let asked = holders[self.pick(holders.len())];
        let base = S::public_of(self.signers[&asked].store.active.as_ref().unwrap()).clone();
        let Facts { threshold, parties, .. } = S::facts(&base);
        let change = (self.pick(2) == 0).then(|| {
            let receivers = self.some_of(&PARTIES, 2);
            let t = 2 + self.pick(receivers.len() - 1) as u32;
            // Fewer than the old threshold are left out, so that they can do nothing with what they keep.
            let dealers = loop {
                let dealers = self.some_of(&parties, threshold as usize);
                let left_out = parties.iter().filter(|p| !dealers.contains(p) && !receivers.contains(p));
                if left_out.count() < threshold as usize {
                    break dealers;
                }
            };
            (dealers, receivers, t)
        });
        let mut session = [0; 32];
        self.rng.fill_bytes(&mut session);
        let order = Rc::new(Order { session, base, change });
        self.orders.insert(session, Rc::clone(&order));
        for to in order.parties() {
            self.post(Message::Order { to, order: Rc::clone(&order) });
        }
    }

    fn signer(&mut self, number: u32) -> &mut Signer<S> {
        self.signers.get_mut(&number).unwrap()
    }

    fn deliver(&mut self) {
        let at = self.pick(self.network.len());
        match self.network.swap_remove(at) {
            Message::Order { to, order } => {
                let signer = self.signers.get_mut(&to).unwrap();
                let Some(first) = signer.begin(&order, &mut self.rng) else { return };
                let early = signer.memory.early.remove(&order.session).unwrap_or_default();
                self.apply(to, &order, first);
                for (from, bytes) in early {
                    self.network.push(Message::Envelope { from, to, session: order.session, bytes });
                }
            }
            Message::Envelope { from, to, session, bytes } => {
                let signer = self.signers.get_mut(&to).unwrap();
                if let Some(turn) = signer.handle(session, from, &bytes, &mut self.rng) {
                    let order = Rc::clone(&self.orders[&session]);
                    self.apply(to, &order, turn);
                } else if !signer.store.claimed.contains(&session) {
                    signer.memory.early.entry(session).or_default().push((from, bytes));
                }
            }
            Message::Completed { from, to, session, public, asks } => {
                let Self { signers, checker, .. } = self;
                let signer = signers.get_mut(&to).unwrap();
                signer.memory.completed.entry(session).or_default().insert(from, public);
                let answer = asks.then(|| signer.answer(session)).flatten();
                signer.switch(checker);
                match answer {
                    Some(Ok(public)) => {
                        self.post(Message::Completed { from: to, to: from, session, public, asks: false });
                    }
                    Some(Err(())) => self.post(Message::Forsaken { to: from, session }),
                    None => (),
                }
            }
            Message::Forsaken { to, session } => {
                let Self { signers, checker, .. } = self;
                signers.get_mut(&to).unwrap().give_up(session, checker);
            }
        }
    }

    /// What a signer's session sent and made.
    fn apply(&mut self, from: u32, order: &Rc<Order<S>>, turn: Turn<S>) {
        let session = order.session;
        for (recipient, bytes) in turn.outgoing {
            let all = order.parties().into_iter().filter(|to| *to != from);
            for to in all.filter(|to| recipient.is_none_or(|recipient| recipient == *to)) {
                self.post(Message::Envelope { from, to, session, bytes: bytes.clone() });
            }
        }
        if let Some(made) = turn.made {
            self.signer(from).store(order, made);
            self.tell(from);
        }
    }

    /// A signer with a share that is not decided tells all parties of it.
    fn tell(&mut self, from: u32) {
        let Some(stored) = &self.signers[&from].store.stored else { return };
        let (session, public) = (stored.session, stored.made.0.clone());
        for to in stored.parties.clone().into_iter().filter(|to| *to != from) {
            self.post(Message::Completed { from, to, session, public: public.clone(), asks: true });
        }
        let Self { signers, checker, .. } = self;
        signers.get_mut(&from).unwrap().switch(checker);
    }

    fn something_happens(&mut self) {
        let one = PARTIES[self.pick(PARTIES.len())];
        match self.pick(100) {
            0..3 => self.order(),
            3 => {
                self.counts.crashes += 1;
                self.signer(one).memory = Memory::default();
            }
            4 => {
                let memory = &mut self.signer(one).memory;
                if let Some(session) = memory.running.keys().next().copied() {
                    memory.running.remove(&session);
                    self.counts.deadlines += 1;
                }
            }
            5..9 => self.tell(one),
            _ if self.network.is_empty() => (),
            _ => self.deliver(),
        }
    }

    /// Epochs of which enough shares are held to sign: as many as the threshold, counting those that are stored if a
    /// party has switched.
    fn usable(&self) -> Vec<u32> {
        let mut held: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        let mut hold = |public: &S::Public| {
            let facts = S::facts(public);
            held.entry(facts.epoch).or_insert((0, facts.threshold)).0 += 1;
        };
        for signer in self.signers.values() {
            if let Some(share) = &signer.store.active {
                hold(S::public_of(share));
            }
            let stored = signer.store.stored.as_ref();
            let decided = stored.filter(|stored| self.checker.switched.contains_key(&stored.session));
            if let Some(Stored { made: (public, Some(_)), .. }) = decided {
                hold(public);
            }
        }
        held.into_iter().filter(|(_, (count, t))| count >= t).map(|(epoch, _)| epoch).collect()
    }

    /// Nothing fails any more: all decide.
    fn heal(&mut self) {
        self.faulty = false;
        for _ in 0..HEALING_ROUNDS {
            while !self.network.is_empty() {
                self.deliver();
            }
            // What has not ended by now misses a message that was lost.
            self.signers.values_mut().for_each(|signer| signer.memory.running.clear());
            if self.signers.values().all(|signer| signer.store.stored.is_none()) {
                return;
            }
            PARTIES.into_iter().for_each(|number| self.tell(number));
        }
        self.checker.violations.push("undecided after the faults".to_owned());
    }

    /// One epoch is usable, all its parties have it, and they sign.
    fn check_the_end(&mut self) {
        let usable = self.usable();
        let [epoch] = usable[..] else {
            self.checker.violations.push(format!("usable at the end: {usable:?}"));
            return;
        };
        let shares: BTreeMap<u32, S::Share> = self
            .signers
            .iter()
            .filter_map(|(number, signer)| Some((*number, S::reopen(signer.store.active.as_ref()?))))
            .filter(|(_, share)| S::facts(S::public_of(share)).epoch == epoch)
            .collect();
        let facts = S::facts(S::public_of(shares.values().next().unwrap()));
        if shares.keys().copied().collect::<Vec<_>>() != facts.parties {
            self.checker.violations.push(format!("epoch {epoch} is not at all of its parties"));
            return;
        }
        let signers = self.some_of(&facts.parties, facts.threshold as usize);
        S::signs(&shares, &signers);
    }

    fn run(mut self) -> (Vec<String>, Counts) {
        for _ in 0..FAULTY_EVENTS {
            self.something_happens();
            if self.usable().is_empty() {
                self.checker.violations.push("no epoch is usable".to_owned());
            }
        }
        self.heal();
        self.check_the_end();
        // And it goes on from there.
        let before = self.checker.switched.len();
        while self.checker.switched.len() == before && self.checker.violations.is_empty() {
            self.order();
            self.heal();
        }
        self.check_the_end();
        for session in self.checker.switched.keys() {
            match self.orders[session].change {
                None => self.counts.refreshed += 1,
                Some(_) => self.counts.reshared += 1,
            }
        }
        self.counts.given_up = self.checker.given_up.len();
        (self.checker.violations, self.counts)
    }
}

fn exactly_one_epoch_is_usable<S: Scheme>(full: u64) {
    let seeds = seeds::wanted(&format!("renewal {}", type_name::<S>()), full);
    let mut total = Counts::default();
    seeds::run_all(
        &seeds,
        |seed| World::<S>::new(seed).run(),
        |violations, counts| {
            total.refreshed += counts.refreshed;
            total.reshared += counts.reshared;
            total.given_up += counts.given_up;
            total.crashes += counts.crashes;
            total.deadlines += counts.deadlines;
            violations.clone()
        },
    );
    let runs = seeds.len();
    println!("{runs} schedules: {total:?}");
    if runs >= 100 {
        assert!(
            total.refreshed > runs / 4 && total.reshared > runs / 4 && total.crashes > runs / 2,
            "{total:?}"
        );
        assert!(total.given_up > 0 && total.deadlines > 0, "{total:?}");
    }
}

/// Schedules of schemes that take several times as long in debug builds.
const SLOW_SCHEME: u64 = if cfg!(debug_assertions) { 1_000 } else { 10_000 };

#[test]
fn bls() {
    exactly_one_epoch_is_usable::<Bls>(SLOW_SCHEME);
}

#[test]
fn ecdsa() {
    exactly_one_epoch_is_usable::<Ecdsa>(SLOW_SCHEME);
}

#[test]
fn ed25519() {
    exactly_one_epoch_is_usable::<Ed25519>(10_000);
}

#[test]
fn bip340() {
    exactly_one_epoch_is_usable::<Bip340>(10_000);
}
