//! Set-ups of pairs, prepared signatures and open nonces of one vault. They are gone with it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use circuit_sessions::{Nonce, Paired};
use circuits::ed25519::{NonceCircuit, Ready};
use engine::{PartyId, SetupError};

/// Most blocks of messages for which a vault has prepared signatures: each takes some 20 MB.
pub(crate) const MAX_PREPARED_BLOCKS: usize = 48;

/// Two parties of a key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PairName {
    pub(crate) key_id: String,
    pub(crate) me: PartyId,
    pub(crate) peer: PartyId,
}

/// Shared by the vault and its sessions.
#[derive(Clone, Default)]
pub(crate) struct Exact {
    table: Arc<Mutex<Table>>,
    used: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Table {
    circuits: BTreeMap<usize, Arc<NonceCircuit>>,
    pairs: BTreeMap<PairName, Arc<Paired>>,
    /// By the session that prepared it.
    ready: BTreeMap<[u8; 32], (PairName, Made<Ready>)>,
    /// By the session that opened it.
    nonces: BTreeMap<[u8; 32], (PairName, Nonce, Place)>,
}

impl Table {
    fn drop_pair(&mut self, name: &PairName) {
        if let Some(paired) = self.pairs.remove(name) {
            paired.end();
        }
        self.ready.retain(|_, (of, _)| of != name);
        self.nonces.retain(|_, (of, _, _)| of != name);
    }
}

/// Something of a pair for one signature, with its place.
pub(crate) struct Made<T> {
    pub(crate) paired: Arc<Paired>,
    pub(crate) circuit: Arc<NonceCircuit>,
    pub(crate) place: Place,
    pub(crate) what: T,
}

impl Made<()> {
    /// The same with a result.
    pub(crate) fn with<T>(self, what: T) -> Made<T> {
        let Self { paired, circuit, place, what: () } = self;
        Made { paired, circuit, place, what }
    }
}

/// Room for a prepared signature. Given back when dropped.
pub(crate) struct Place {
    used: Arc<AtomicUsize>,
    blocks: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.used.fetch_sub(self.blocks, Ordering::Relaxed);
    }
}

impl Exact {
    /// The circuit for so many blocks, compiled once.
    pub(crate) fn circuit(&self, blocks: usize) -> Result<Arc<NonceCircuit>, SetupError> {
        if let Some(circuit) = self.table().circuits.get(&blocks) {
            return Ok(Arc::clone(circuit));
        }
        // Others may compile it at the same time, to the same gates.
        let circuit = Arc::new(NonceCircuit::new(blocks).ok_or(SetupError::MessageBlocks)?);
        self.table().circuits.insert(blocks, Arc::clone(&circuit));
        Ok(circuit)
    }

    /// Room for a signature of so many blocks.
    pub(crate) fn reserve(&self, blocks: usize) -> Result<Place, SetupError> {
        let more = |used: usize| used.checked_add(blocks).filter(|sum| *sum <= MAX_PREPARED_BLOCKS);
        let updated = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        updated.map_err(|_| SetupError::PresignaturesFull)?;
        Ok(Place { used: Arc::clone(&self.used), blocks })
    }

    /// The set-up with a peer, unless it has ended.
    pub(crate) fn pair(&self, name: &PairName) -> Result<Arc<Paired>, SetupError> {
        let table = self.table();
        let paired = table.pairs.get(name).filter(|paired| !paired.ended());
        paired.map(Arc::clone).ok_or(SetupError::PairUnknown)
    }

    /// Keeps a set-up, in place of the one that there was and of what was made with that.
    pub(crate) fn put_pair(&self, name: PairName, paired: Paired) {
        let mut table = self.table();
        table.drop_pair(&name);
        table.pairs.insert(name, Arc::new(paired));
    }

    /// Ends a set-up, also for sessions that are under way, and forgets everything that was made with the peer; if
    /// `set_up` names one, only that.
    pub(crate) fn drop_pair(&self, name: &PairName, set_up: &[u8]) {
        let mut table = self.table();
        let present = table.pairs.get(name).map(|paired| paired.identity());
        if set_up.is_empty() || present.is_some_and(|present| present == set_up) {
            table.drop_pair(name);
        }
    }

    /// The same with every peer of a key.
    pub(crate) fn drop_pairs(&self, key_id: &str) {
        let mut table = self.table();
        let of_key = table.pairs.keys().filter(|name| name.key_id == key_id);
        for name in of_key.cloned().collect::<Vec<_>>() {
            table.drop_pair(&name);
        }
    }

    /// Keeps a prepared signature under the session that prepared it, unless its set-up has ended. If there is one of
    /// that name, a session was run twice: nobody can be sure of either, and both are gone.
    pub(crate) fn put_ready(&self, session: [u8; 32], name: PairName, ready: Made<Ready>) {
        let mut table = self.table();
        if table.ready.remove(&session).is_none() && !ready.paired.ended() {
            table.ready.insert(session, (name, ready));
        }
    }

    /// Makes a prepared signature useless without using it.
    pub(crate) fn discard(&self, session: &[u8; 32]) {
        self.table().ready.remove(session);
    }

    /// Hands out a prepared signature of this pair, once. One for messages of another length stays.
    pub(crate) fn take_ready(
        &self,
        session: &[u8; 32],
        name: &PairName,
        blocks: usize,
    ) -> Result<Made<Ready>, SetupError> {
        let mut table = self.table();
        match table.ready.get(session) {
            Some((of, made)) if of == name => {
                if made.circuit.blocks() != blocks {
                    return Err(SetupError::MessageBlocks);
                }
            }
            Some(_) | None => return Err(SetupError::PresignatureUnknown),
        }
        let (_, made) = table.ready.remove(session).ok_or(SetupError::PresignatureUnknown)?;
        if made.paired.ended() { Err(SetupError::PairUnknown) } else { Ok(made) }
    }

    /// Keeps an open nonce under the session that opened it, unless its set-up has ended.
    pub(crate) fn put_nonce(&self, session: [u8; 32], name: PairName, nonce: Nonce, place: Place) {
        let mut table = self.table();
        if !nonce.ended() {
            table.nonces.insert(session, (name, nonce, place));
        }
    }

    /// Hands out an open nonce of this pair, once.
    pub(crate) fn take_nonce(&self, session: &[u8; 32], name: &PairName) -> Result<Nonce, SetupError> {
        let mut table = self.table();
        if table.nonces.get(session).is_none_or(|(of, _, _)| of != name) {
            return Err(SetupError::PresignatureUnknown);
        }
        let (_, nonce, _) = table.nonces.remove(session).ok_or(SetupError::PresignatureUnknown)?;
        if nonce.ended() { Err(SetupError::PairUnknown) } else { Ok(nonce) }
    }

    /// Every operation leaves the table whole, so one that panicked elsewhere does not spoil it.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_bounded_and_given_back() {
        let stock = Exact::default();
        let most = stock.reserve(MAX_PREPARED_BLOCKS - 1).unwrap();
        assert!(matches!(stock.reserve(2), Err(SetupError::PresignaturesFull)));
        let last = stock.reserve(1).unwrap();
        assert!(stock.reserve(1).is_err() && stock.reserve(usize::MAX).is_err());
        drop(last);
        assert!(stock.reserve(1).is_ok());
        drop(most);
        assert!(stock.reserve(MAX_PREPARED_BLOCKS).is_ok());
    }

    #[test]
    fn a_circuit_is_compiled_once() {
        let stock = Exact::default();
        let [one, same] = [1, 1].map(|blocks| stock.circuit(blocks).unwrap());
        assert!(Arc::ptr_eq(&one, &same));
        assert!(matches!(stock.circuit(0), Err(SetupError::MessageBlocks)));
    }
}
