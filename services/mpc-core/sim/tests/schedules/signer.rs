//! Signers and their coordinator, with their stores, and with the memory that they lose when they stop.

use std::collections::{BTreeMap, BTreeSet};

use engine::session::Session;
use rand_chacha::ChaCha20Rng;

use super::{Digest, Made, Mutant, Name, Order, Running, Scheme, Turn, Work, settings, turn};

/// The content of a signer's disk.
#[derive(Clone, Default)]
pub struct Store {
    pub claims: BTreeMap<u8, Digest>,
    pub sessions: BTreeSet<Name>,
}

/// The memory of a signer, which it loses when it stops.
pub struct Memory<S: Scheme> {
    pub sessions: BTreeMap<Name, (Order, Running<S>)>,
    pub pool: BTreeMap<Name, S::Presignature>,
    /// Came before their order.
    pub early: BTreeMap<Name, Vec<(u32, Vec<u8>)>>,
}

impl<S: Scheme> Default for Memory<S> {
    fn default() -> Self {
        Self { sessions: BTreeMap::new(), pool: BTreeMap::new(), early: BTreeMap::new() }
    }
}

pub struct Signer<S: Scheme> {
    pub number: u32,
    pub store: Store,
    pub older: Store,
    pub memory: Memory<S>,
    /// Orders from before this moment are refused, as if past their deadline. This is so only that each request here
    /// has one answer: `hostile.rs` repeats an order to a signer whose store was put back.
    pub not_before: usize,
    pub mutant: Mutant,
    /// For a mutant: copies of presignatures, which outlive use and restart.
    pub copies: BTreeMap<Name, Vec<u8>>,
}

impl<S: Scheme> Signer<S> {
    pub fn new(number: u32, mutant: Mutant) -> Self {
        Self {
            number,
            store: Store::default(),
            older: Store::default(),
            memory: Memory::default(),
            not_before: 0,
            mutant,
            copies: BTreeMap::new(),
        }
    }

    pub fn crash(&mut self, restore: bool, now: usize) {
        self.memory = Memory::default();
        if restore {
            self.store = self.older.clone();
            self.not_before = now;
        }
    }

    fn take_presignature(&mut self, name: &Name) -> Option<S::Presignature> {
        let kept = self.memory.pool.remove(name);
        kept.or_else(|| S::unseal(self.copies.get(name)?))
    }

    /// Checks an order, claims it, starts it. `None` if it is refused.
    pub fn begin(&mut self, order: &Order, rng: &mut ChaCha20Rng) -> Option<(Running<S>, Turn<S>)> {
        let share = &S::shares()[&self.number];
        if order.given < self.not_before || !self.store.sessions.insert(order.session) {
            return None;
        }
        let Work::Sign { request, digest, presignature } = &order.work else {
            let settings = settings(self.number, order, S::presign_payload());
            let (session, step) =
                Session::<S::Presigning>::start(settings, None, S::reopen(share), rng).ok()?;
            return Some((Running::Presign(session), turn(step, Made::Presignatures)));
        };
        // Out of the pool before anything else, never to come back.
        let burnt = presignature.and_then(|name| self.take_presignature(&name));
        let claimed = self.store.claims.get(request).filter(|_| self.mutant != Mutant::ClaimsForgotten);
        if claimed.is_some_and(|claimed| claimed != digest) {
            return None;
        }
        self.store.claims.insert(*request, *digest);
        let settings = settings(self.number, order, S::sign_payload(*digest, *presignature));
        if presignature.is_some() {
            let input = S::holder(burnt?);
            let (session, step) = Session::<S::PresignedSigning>::start(settings, None, input, rng).ok()?;
            Some((Running::Presigned(session), turn(step, Made::Signature)))
        } else {
            let input = S::party(S::reopen(share));
            let (session, step) = Session::<S::Signing>::start(settings, None, input, rng).ok()?;
            Some((Running::Sign(session), turn(step, Made::Signature)))
        }
    }
}

pub struct Coordinator<S: Scheme> {
    /// Durable.
    pub answers: BTreeMap<u8, S::Signature>,
    /// Running attempts with their observers.
    pub attempts: BTreeMap<Name, (u8, Digest, Running<S>)>,
    /// Presignings, and who has reported.
    pub making: BTreeMap<Name, (Vec<u32>, BTreeSet<u32>)>,
    pub pool: Vec<(Name, Vec<u32>)>,
}

impl<S: Scheme> Coordinator<S> {
    pub fn with(answers: BTreeMap<u8, S::Signature>) -> Self {
        Self { answers, attempts: BTreeMap::new(), making: BTreeMap::new(), pool: Vec::new() }
    }

    /// Only the answers are on disk.
    pub fn crash(&mut self) {
        *self = Self::with(core::mem::take(&mut self.answers));
    }
}
