//! Set-ups of pairs with seeds, and nodes of SLIP-10, of one vault. They are gone with it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use circuit_sessions::{PairedSeed, Slip10Level};
use circuits::hardened::{Step, StepCircuit};
use engine::SetupError;

use crate::pairs::PairName;

/// Most nodes for which a vault lets a session begin.
const MAX_NODES: usize = 1024;

/// Bytes of the seeds that the words of BIP-39 make: the only ones whose circuits stay compiled.
const USUAL_SEED_BYTES: usize = 64;

/// Shared by the vault and its sessions.
#[derive(Clone, Default)]
pub(crate) struct Seeds(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    circuits: Vec<Arc<StepCircuit>>,
    pairs: BTreeMap<PairName, Arc<PairedSeed>>,
    /// By the session that derived it.
    nodes: BTreeMap<[u8; 32], (PairName, Arc<Slip10Level>)>,
}

impl Table {
    fn drop_pair(&mut self, name: &PairName) {
        if let Some(paired) = self.pairs.remove(name) {
            paired.end();
        }
        self.nodes.retain(|_, (of, _)| of != name);
    }
}

impl Seeds {
    /// The circuit of a step, compiled once unless its seed has an unusual length.
    pub(super) fn circuit(&self, step: Step) -> Result<Arc<StepCircuit>, SetupError> {
        if let Some(circuit) = self.table().circuits.iter().find(|circuit| circuit.step() == step) {
            return Ok(Arc::clone(circuit));
        }
        let circuit = Arc::new(StepCircuit::new(step).ok_or(SetupError::ShareInvalid)?);
        let stays = match step {
            Step::Master(seed) | Step::Slip10Master(seed) => seed == USUAL_SEED_BYTES,
            Step::Child | Step::Slip10Child | Step::Slip10Key => true,
        };
        let mut table = self.table();
        // Others may have compiled it at the same time, to the same gates.
        if stays && table.circuits.iter().all(|circuit| circuit.step() != step) {
            table.circuits.push(Arc::clone(&circuit));
        }
        Ok(circuit)
    }

    /// The set-up with a peer, unless it has ended.
    pub(crate) fn pair(&self, name: &PairName) -> Result<Arc<PairedSeed>, SetupError> {
        let table = self.table();
        let paired = table.pairs.get(name).filter(|paired| !paired.ended());
        paired.map(Arc::clone).ok_or(SetupError::PairUnknown)
    }

    /// Keeps a set-up, in place of the one that there was and of what was made with that.
    pub(super) fn put_pair(&self, name: PairName, paired: PairedSeed) {
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

    /// The same with every peer of a seed.
    pub(crate) fn drop_pairs(&self, key_id: &str) {
        let mut table = self.table();
        let of_key = table.pairs.keys().filter(|name| name.key_id == key_id);
        for name in of_key.cloned().collect::<Vec<_>>() {
            table.drop_pair(&name);
        }
    }

    /// Refuses where a session would make a node too many. Sessions that are under way are bounded by their room.
    pub(super) fn has_room(&self) -> Result<(), SetupError> {
        if self.table().nodes.len() < MAX_NODES { Ok(()) } else { Err(SetupError::PresignaturesFull) }
    }

    /// Keeps a node under the session that derived it, unless its set-up has ended. If there is one of that name, a
    /// session was run twice: nobody can be sure of either, and both are gone.
    pub(super) fn put_node(&self, session: [u8; 32], name: PairName, node: Slip10Level) {
        let mut table = self.table();
        if table.nodes.remove(&session).is_none() && !node.ended() {
            table.nodes.insert(session, (name, Arc::new(node)));
        }
    }

    /// A node of this pair, which stays.
    pub(super) fn node(&self, session: &[u8; 32], name: &PairName) -> Result<Arc<Slip10Level>, SetupError> {
        let table = self.table();
        match table.nodes.get(session) {
            Some((of, node)) if of == name => {
                if node.ended() {
                    Err(SetupError::PairUnknown)
                } else {
                    Ok(Arc::clone(node))
                }
            }
            Some(_) | None => Err(SetupError::PresignatureUnknown),
        }
    }

    /// Forgets a node.
    pub(crate) fn discard(&self, session: &[u8; 32]) {
        self.table().nodes.remove(session);
    }

    /// Every operation leaves the table whole, so one that panicked elsewhere does not spoil it.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circuits_of_usual_steps_are_compiled_once() {
        let seeds = Seeds::default();
        for (step, stays) in [(Step::Slip10Key, true), (Step::Slip10Master(16), false)] {
            let [one, same] = [step, step].map(|step| seeds.circuit(step).unwrap());
            assert_eq!(Arc::ptr_eq(&one, &same), stays, "{step:?}");
        }
        assert!(matches!(seeds.circuit(Step::Master(15)), Err(SetupError::ShareInvalid)));
    }
}
