//! A signer that follows the rules: `KeyActivation`, `PartyStore` and the orders for another epoch of `SessionDriver`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use engine::PartyId;
use rand_chacha::ChaCha20Rng;

use crate::run::{Made, Running, Turn};
use crate::scheme::{Facts, Name, Order, Scheme, encoded};
use crate::statement::{Certificate, Pen, Report, Signed, Statement};
use crate::{Message, Mutant};

/// Abandoned shares that a party keeps before it leaves those out that declined them.
const MAX_ABANDONED: usize = 8;
/// Abandoned shares that a party keeps in all, whichever parties declined them.
const MAX_ABANDONED_IN_ALL: usize = MAX_ABANDONED + 20;

#[derive(Clone, PartialEq)]
pub enum State {
    Provisional,
    /// Abandoned, because of the party that has declined if there is one.
    Abandoned(Option<u32>),
    Active(Option<Certificate>),
}

/// A row of the table of shares.
pub struct Held<S: Scheme> {
    pub statement: Statement,
    pub request: Option<u64>,
    pub members: Vec<u32>,
    pub public: S::Public,
    pub facts: Facts,
    /// The new share; none at a party that leaves.
    pub share: Option<Rc<S::Share>>,
    pub number: usize,
    pub state: State,
}

impl<S: Scheme> Clone for Held<S> {
    fn clone(&self) -> Self {
        Self {
            statement: self.statement.clone(),
            members: self.members.clone(),
            public: self.public.clone(),
            facts: self.facts.clone(),
            share: self.share.clone(),
            state: self.state.clone(),
            ..*self
        }
    }
}

impl<S: Scheme> Held<S> {
    pub fn first(share: S::Share) -> Self {
        let public = S::public_of(&share).clone();
        let facts = S::facts(&public);
        let statement = Statement { session: [0; 32], epoch: 1, public: Rc::new(encoded::<S>(&public)) };
        let members = facts.parties.clone();
        let share = Some(Rc::new(share));
        Self {
            statement,
            request: None,
            members,
            public,
            facts,
            share,
            number: 0,
            state: State::Active(None),
        }
    }

    pub fn is_active(&self) -> bool {
        matches!(self.state, State::Active(_))
    }

    pub fn session(&self) -> Name {
        self.statement.session
    }
}

/// State on disk; each method of [`Signer`] that changes it is one transaction.
pub struct Store<S: Scheme> {
    pub held: Vec<Held<S>>,
    /// Sessions it has said it will never complete.
    pub declined: BTreeSet<Name>,
    pub claimed: BTreeSet<Name>,
}

impl<S: Scheme> Clone for Store<S> {
    fn clone(&self) -> Self {
        Self { held: self.held.clone(), declined: self.declined.clone(), claimed: self.claimed.clone() }
    }
}

impl<S: Scheme> Store<S> {
    pub fn active(&self) -> Option<&Held<S>> {
        self.held.iter().find(|held| held.is_active())
    }

    pub fn provisional(&self) -> Option<&Held<S>> {
        self.held.iter().find(|held| held.state == State::Provisional)
    }

    pub fn of(&self, session: Name) -> Option<&Held<S>> {
        self.held.iter().find(|held| held.session() == session)
    }

    /// Whether it takes part with these members: with many abandoned shares it leaves out the parties that declined
    /// them, and with too many everybody.
    fn follows(&self, members: &[u32]) -> bool {
        let abandoned: Vec<_> = self
            .held
            .iter()
            .filter_map(|held| match held.state {
                State::Abandoned(decliner) => Some(decliner),
                _ => None,
            })
            .collect();
        abandoned.len() < MAX_ABANDONED
            || abandoned.len() < MAX_ABANDONED_IN_ALL
                && !abandoned.iter().flatten().any(|decliner| members.contains(decliner))
    }
}

/// A share that is not decided, or whose session runs.
struct Candidate {
    members: Vec<u32>,
    reports: BTreeMap<u32, (Statement, Signed)>,
    asked: bool,
}

pub struct Run<S: Scheme> {
    pub order: Rc<Order<S>>,
    pub running: Running<S>,
    pub missing: Vec<PartyId>,
}

/// State that is lost when the signer stops.
pub struct Memory<S: Scheme> {
    pub running: Option<Run<S>>,
    /// Messages that came before their order.
    pub early: BTreeMap<Name, Vec<(u32, Vec<u8>)>>,
    candidates: BTreeMap<Name, Candidate>,
}

pub struct Signer<S: Scheme> {
    pub number: u32,
    pen: Pen,
    mutant: Mutant,
    pub store: Store<S>,
    pub memory: Memory<S>,
    /// Sessions that it has switched to since somebody looked.
    pub switches: Vec<Name>,
}

impl<S: Scheme> Signer<S> {
    pub fn new(number: u32, mutant: Mutant) -> Self {
        let held = S::shares().get(&number).map(|share| Held::first(S::reopen(share)));
        let store =
            Store { held: held.into_iter().collect(), declined: BTreeSet::new(), claimed: BTreeSet::new() };
        let memory = Memory { running: None, early: BTreeMap::new(), candidates: BTreeMap::new() };
        Self { number, pen: Pen::of(number), mutant, store, memory, switches: Vec::new() }
    }

    /// Stops, and starts again from its store or an older one.
    pub fn restart(&mut self, store: Option<Store<S>>) {
        if let Some(store) = store {
            self.store = store;
        }
        if self.mutant == Mutant::StoresInMemory {
            self.store.held.retain(Held::is_active);
        }
        let candidates = self.store.held.iter().filter(|held| !held.is_active()).map(|held| {
            let members = held.members.clone();
            (held.session(), Candidate { members, reports: BTreeMap::new(), asked: false })
        });
        let candidates = candidates.collect();
        self.memory = Memory { running: None, early: BTreeMap::new(), candidates };
    }

    /// The session ended without a share.
    pub fn forget(&mut self, session: Name) {
        if self.memory.running.as_ref().is_some_and(|run| run.order.session == session) {
            self.memory.running = None;
        }
        let forgets_held = self.mutant == Mutant::ReplayForgets;
        if forgets_held || self.store.of(session).is_none_or(Held::is_active) {
            self.memory.candidates.remove(&session);
        }
    }

    /// Claims an order and starts it. `None` if it is refused.
    pub fn begin(
        &mut self,
        order: &Rc<Order<S>>,
        rng: &mut ChaCha20Rng,
        out: &mut Vec<Message<S>>,
    ) -> Option<Turn<S>> {
        let session = order.session;
        if self.memory.running.as_ref().is_some_and(|run| run.order.session == session) {
            return None;
        }
        let base = S::facts(&order.base);
        let (active, provisional) = (self.store.active(), self.store.provisional());
        if let Some(made) =
            provisional.into_iter().chain(active).find(|held| held.request == Some(order.request))
        {
            self.announce(made.session(), out);
            return None;
        }
        let deals = order.dealers().contains(&self.number);
        let mut share = None;
        if deals {
            let held = active.filter(|held| held.public == order.base)?;
            let left = held.facts.parties.iter().filter(|party| !order.parties().contains(party)).count();
            if order.change.is_some() && left >= held.facts.threshold as usize {
                return None;
            }
            share = Some(S::reopen(held.share.as_ref()?));
        } else if active.is_some_and(|held| held.facts.epoch > base.epoch) {
            return None;
        }
        let undecided = provisional.filter(|held| held.facts.epoch > base.epoch);
        if let Some(undecided) = undecided
            && self.mutant != Mutant::NewerReplaces
        {
            self.announce(undecided.session(), out);
            return None;
        }
        if !self.store.follows(&order.parties()) {
            return None;
        }
        // One run at a time: the newer order counts.
        if let Some(older) = self.memory.running.take() {
            self.forget(older.order.session);
        }
        let candidate = || Candidate { members: order.parties(), reports: BTreeMap::new(), asked: false };
        self.memory.candidates.entry(session).or_insert_with(candidate);
        if !self.store.claimed.insert(session) {
            self.forget(session);
            return None;
        }
        let Some((running, turn)) = Running::start(order, self.number, share, rng) else {
            self.forget(session);
            return None;
        };
        self.memory.running = Some(Run { order: Rc::clone(order), running, missing: Vec::new() });
        Some(turn)
    }

    /// Stores what its session made, or, if something else was stored or switched to meanwhile, does not.
    pub fn store(&mut self, order: &Order<S>, made: Made<S>, out: &mut Vec<Message<S>>) {
        let (public, share) = made;
        let facts = S::facts(&public);
        let session = order.session;
        self.memory.running = None;
        let deals = order.dealers().contains(&self.number);
        let members = order.parties();
        if self.mutant == Mutant::NewerReplaces {
            self.store.held.retain(|held| held.state != State::Provisional);
        }
        let taken =
            |held: &Held<S>| held.facts.epoch >= facts.epoch && !matches!(held.state, State::Abandoned(_));
        let dealt = self.store.active().is_some_and(|held| held.facts.epoch + 1 == facts.epoch);
        let wanted = !self.store.held.iter().any(taken)
            && (!deals || dealt)
            && !self.store.declined.contains(&session)
            && self.store.follows(&members);
        if !wanted {
            self.forget(session);
            return;
        }
        for held in &mut self.store.held {
            if held.state == State::Provisional {
                held.state = State::Abandoned(None);
            }
        }
        let number = self.store.held.iter().map(|held| held.number).max().unwrap_or(0) + 1;
        let statement = Statement { session, epoch: facts.epoch, public: Rc::new(encoded::<S>(&public)) };
        self.store.held.push(Held {
            statement,
            request: Some(order.request),
            members,
            public,
            facts,
            share: share.map(Rc::new),
            number,
            state: State::Provisional,
        });
        self.announce(session, out);
        self.activate_if_agreed(session, out);
    }

    /// A peer says that it has stored its end.
    pub fn take(&mut self, from: u32, report: Report, out: &mut Vec<Message<S>>) {
        let Report { statement, signature, active, certificate, asks } = report;
        let session = statement.session;
        if !signature.verifies(from, &statement) {
            return;
        }
        let has_from = self.has_from(session, from);
        let own = self.store.of(session).map(|held| (held.statement.clone(), held.members.clone()));
        let is_candidate = self.memory.candidates.contains_key(&session);
        if let Some(candidate) =
            self.memory.candidates.get_mut(&session).filter(|candidate| candidate.members.contains(&from))
        {
            if !has_from {
                candidate.reports.insert(from, (statement.clone(), signature));
            }
            if let (Some(certificate), Some((own, members))) = (certificate, own)
                && (certificate.certifies(&own, &members) || self.mutant == Mutant::CertificatesUnread)
            {
                for (member, signed) in members.iter().zip(certificate.0) {
                    candidate.reports.insert(*member, (own.clone(), signed));
                }
            }
            self.activate_if_agreed(session, out);
        }
        match self.store.of(session) {
            Some(held) if held.members.contains(&from) && asks && !(held.is_active() && active) => {
                self.tell(session, from, false, out);
            }
            // In the signer it answers a party once in a second, so that two do not contradict each other for ever.
            None if !is_candidate && asks => {
                let next = statement.epoch > self.store.active().map_or(1, |held| held.facts.epoch);
                if next && self.store.of(session).is_none() {
                    self.store.declined.insert(session);
                    out.push(Message::Declined { from: self.number, to: from, session });
                }
            }
            _ => (),
        }
    }

    /// A peer says that it has no share of a session and never will.
    pub fn declined(&mut self, from: u32, session: Name, out: &mut Vec<Message<S>>) {
        let has_from = self.has_from(session, from);
        if !self.memory.candidates.contains_key(&session) {
            // A party that says so of a session whose certificate is here is shown it.
            if self.store.of(session).is_some_and(|held| held.is_active() && held.members.contains(&from)) {
                self.tell(session, from, false, out);
            }
            return;
        }
        let destroys = self.mutant == Mutant::AbandonDestroys;
        let Some(at) = self.store.held.iter().position(|held| {
            held.session() == session && held.state == State::Provisional && held.members.contains(&from)
        }) else {
            return;
        };
        if has_from {
            return;
        }
        if destroys {
            self.store.held.remove(at);
            self.memory.candidates.remove(&session);
            return;
        }
        self.store.held[at].state = State::Abandoned(Some(from));
        if let Some(candidate) = self.memory.candidates.get_mut(&session) {
            candidate.asked = true;
        }
        // If that was a lie, somebody may know better.
        self.announce(session, out);
        self.activate_if_agreed(session, out);
    }

    fn has_from(&self, session: Name, from: u32) -> bool {
        let own = self.store.of(session).filter(|held| !held.is_active());
        let report = self.memory.candidates.get(&session).and_then(|candidate| candidate.reports.get(&from));
        own.zip(report).is_some_and(|(own, (statement, _))| own.statement == *statement)
    }

    fn activate_if_agreed(&mut self, session: Name, out: &mut Vec<Message<S>>) {
        let Some(own) = self.store.of(session).filter(|held| !held.is_active()) else { return };
        let Some(candidate) = self.memory.candidates.get(&session) else { return };
        let mut missing = 0;
        let mut proof = Vec::new();
        for member in &own.members {
            match candidate.reports.get(member) {
                _ if *member == self.number => proof.push(self.pen.signs(&own.statement)),
                Some((statement, signed)) if *statement == own.statement => proof.push(signed.clone()),
                _ => missing += 1,
            }
        }
        if missing > usize::from(self.mutant == Mutant::SwitchesWithoutOne) {
            return;
        }
        let asked = candidate.asked;
        let (epoch, number, members) = (own.facts.epoch, own.number, own.members.clone());
        self.memory.candidates.remove(&session);
        let later = |held: &Held<S>| held.is_active() && (held.facts.epoch, held.number) > (epoch, number);
        if self.store.held.iter().any(later) {
            return;
        }
        let goes = |held: &Held<S>| held.is_active() || (held.facts.epoch, held.number) < (epoch, number);
        self.store.held.retain(|held| held.session() == session || !goes(held));
        for held in &mut self.store.held {
            if held.session() == session {
                held.state = State::Active(Some(Certificate(proof.clone())));
            }
        }
        self.store.declined.clear();
        let (store, memory) = (&self.store, &mut self.memory);
        let running = memory.running.take().map(|run| run.order.session);
        memory.candidates.retain(|other, _| store.of(*other).is_some() && Some(*other) != running);
        self.switches.push(session);
        if asked {
            // A party that did not say it at once may have said something else to somebody.
            members.iter().for_each(|to| self.tell(session, *to, false, out));
        }
    }

    /// Reports a share to all of its parties.
    fn announce(&self, session: Name, out: &mut Vec<Message<S>>) {
        let members = self.store.of(session).map(|held| held.members.clone()).unwrap_or_default();
        members.into_iter().for_each(|to| self.tell(session, to, true, out));
    }

    fn tell(&self, session: Name, to: u32, asks: bool, out: &mut Vec<Message<S>>) {
        let Some(held) = self.store.of(session).filter(|_| to != self.number) else { return };
        let certificate = match &held.state {
            State::Active(certificate) => certificate.clone(),
            _ => None,
        };
        let statement = held.statement.clone();
        let signature = self.pen.signs(&statement);
        let report = Report { statement, signature, active: held.is_active(), certificate, asks };
        out.push(Message::Completed { from: self.number, to, report });
    }

    /// Asks peers about what is not decided, as it does now and then.
    pub fn asks(&mut self, out: &mut Vec<Message<S>>) {
        let sessions: Vec<Name> = self.memory.candidates.keys().copied().collect();
        for session in sessions {
            if self.store.of(session).is_some()
                && let Some(candidate) = self.memory.candidates.get_mut(&session)
            {
                candidate.asked = true;
                self.announce(session, out);
            }
        }
    }

    /// Whether a share of this session, or one that it cannot take the place of, is here.
    pub fn can_follow(&self, session: Name, epoch: u32) -> bool {
        self.store.of(session).is_some() || self.store.active().is_some_and(|held| held.facts.epoch >= epoch)
    }
}
