//! The data key of one party, what is sealed under it, and what lives only as long as the vault does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::seal::{DATA_KEY_BYTES, DataKey, MAX_LABEL_BYTES, SealKind, ShareLabel, UnsealFailed};
use engine::{EvidenceKey, PartyId, PartySet, Secret, SetupError};
use rand_core::Rng;
use zeroize::Zeroize;

use crate::memory::lock;
use crate::os_rng::os_rng;
use crate::pairs::Exact;
use crate::proto;
use crate::runs::Runs;
use crate::seeds::Seeds;

/// Most presignatures that a vault can have: those that are kept and those being made.
pub(crate) const MAX_PRESIGNATURES: usize = 65_536;
/// Bytes of the number that names a presignature.
pub(crate) const PRESIGNATURE_ID_BYTES: usize = 32;

/// Bytes of the longest statement that is signed.
pub(crate) const MAX_STATEMENT_BYTES: usize = 65_536;

/// Shared by the vault handle and the sessions started with it.
pub struct Vault {
    pub(crate) key: Arc<DataKey>,
    pub(crate) one_time_keys: OneTimeKeys,
    pub(crate) exclusions: Exclusions,
    pub(crate) runs: Runs,
    pub(crate) exact: Exact,
    pub(crate) seeds: Seeds,
}

/// An argument that no correct caller passes.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidArgument;

/// Why a statement was not signed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StatementError {
    /// It has more than [`MAX_STATEMENT_BYTES`].
    Long,
    /// The identity is not one of this vault.
    Unseal,
}

impl Vault {
    pub(crate) fn open(data_key: &[u8]) -> Result<Self, InvalidArgument> {
        let mut key = Secret::new([0u8; DATA_KEY_BYTES]);
        if data_key.len() != DATA_KEY_BYTES {
            return Err(InvalidArgument);
        }
        lock(key.expose());
        key.expose_mut().copy_from_slice(data_key);
        Ok(Self {
            key: Arc::new(DataKey::new(key)),
            one_time_keys: OneTimeKeys::default(),
            exclusions: Exclusions::default(),
            runs: Runs::default(),
            exact: Exact::default(),
            seeds: Seeds::default(),
        })
    }

    pub(crate) fn seal(&self, label: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, InvalidArgument> {
        self.key.seal(SealKind::Other, &[], label, plaintext, &mut os_rng()).ok_or(InvalidArgument)
    }

    pub(crate) fn unseal(&self, label: &[u8], sealed: &[u8]) -> Result<Secret<Vec<u8>>, UnsealFailed> {
        self.key.unseal(SealKind::Other, label, sealed).map(|unsealed| unsealed.secret)
    }

    /// A new evidence key: the sealed identity and the public key.
    pub(crate) fn create_identity(&self, party_name: &[u8]) -> Result<(Vec<u8>, Vec<u8>), InvalidArgument> {
        let named = !party_name.is_empty() && party_name.len() <= MAX_LABEL_BYTES;
        if !named || core::str::from_utf8(party_name).is_err() {
            return Err(InvalidArgument);
        }
        let identity = EvidenceKey::generate(&mut os_rng());
        let sealed = self
            .key
            .seal(SealKind::Identity, party_name, &[], identity.seed().expose(), &mut os_rng())
            .ok_or(InvalidArgument)?;
        Ok((sealed, identity.public().as_bytes().to_vec()))
    }

    pub(crate) fn open_identity(&self, sealed: &[u8]) -> Result<EvidenceKey, UnsealFailed> {
        let unsealed = self.key.unseal(SealKind::Identity, &[], sealed)?;
        let mut seed = Secret::new([0u8; 32]);
        let stored: &[u8; 32] = unsealed.secret.expose().as_slice().try_into().map_err(|_| UnsealFailed)?;
        seed.expose_mut().copy_from_slice(stored);
        let key = EvidenceKey::from_seed(&seed);
        seed.expose_mut().zeroize();
        Ok(key)
    }

    /// Signs a statement of the service with the evidence key.
    pub(crate) fn sign_statement(&self, sealed: &[u8], statement: &[u8]) -> Result<Vec<u8>, StatementError> {
        if statement.len() > MAX_STATEMENT_BYTES {
            return Err(StatementError::Long);
        }
        let key = self.open_identity(sealed).map_err(|_| StatementError::Unseal)?;
        Ok(key.sign_statement(statement).to_vec())
    }

    /// Makes a presignature useless without using it; forgets a node of a seed.
    pub(crate) fn drop_presignature(&self, id: &[u8]) -> Result<(), InvalidArgument> {
        let id = id.try_into().map_err(|_| InvalidArgument)?;
        self.one_time_keys.discard(id);
        self.exact.discard(&id);
        self.seeds.discard(&id);
        Ok(())
    }
}

/// The key under which each presignature is sealed: random, one for each, never outside this process, and gone before
/// the presignature is used. So no blob opens twice, or after a restart, or from a copy of a store, whoever kept it.
#[derive(Clone, Default)]
pub(crate) struct OneTimeKeys(Arc<Mutex<KeyTable>>);

#[derive(Default)]
struct KeyTable {
    /// Boxed, so that no copy of a key stays behind when the map moves its entries.
    keys: BTreeMap<([u8; PRESIGNATURE_ID_BYTES], PartyId), Box<DataKey>>,
    /// Places of presignatures that are being made.
    reserved: usize,
}

/// Places in the table for presignatures that are being made. Given back when dropped.
pub(crate) struct ReservedPlaces {
    keys: OneTimeKeys,
    count: usize,
}

impl OneTimeKeys {
    /// Places, so that what the rounds made cannot fail to find one.
    pub(crate) fn reserve(&self, count: u8) -> Result<ReservedPlaces, SetupError> {
        let count = usize::from(count);
        let mut table = self.table();
        if table.keys.len() + table.reserved + count > MAX_PRESIGNATURES {
            return Err(SetupError::PresignaturesFull);
        }
        table.reserved += count;
        drop(table);
        Ok(ReservedPlaces { keys: self.clone(), count })
    }

    /// Hands out the key of a presignature, once.
    pub(crate) fn take(&self, id: &[u8; PRESIGNATURE_ID_BYTES], party: PartyId) -> Option<Box<DataKey>> {
        self.table().keys.remove(&(*id, party))
    }

    fn discard(&self, id: [u8; PRESIGNATURE_ID_BYTES]) {
        let mut table = self.table();
        let Some(lowest) = PartyId::new(1) else { return };
        let of_this_name = |(name, _): &&([u8; PRESIGNATURE_ID_BYTES], PartyId)| *name == id;
        let keys: Vec<_> =
            table.keys.range((id, lowest)..).map(|(key, _)| key).take_while(of_this_name).copied().collect();
        for key in keys {
            table.keys.remove(&key);
        }
    }

    /// Every operation leaves the table whole, so one that panicked elsewhere does not spoil it.
    fn table(&self) -> MutexGuard<'_, KeyTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReservedPlaces {
    /// [`ReservedPlaces::fill`] for each of what one session made. `None`, and none of them can be used, if that fails
    /// for one.
    pub(crate) fn fill_all<P>(
        &self,
        made: Vec<P>,
        name: impl Fn(&P) -> ([u8; PRESIGNATURE_ID_BYTES], PartyId),
        seal: impl Fn(P, &DataKey) -> Option<Vec<u8>>,
    ) -> Option<Vec<proto::Presignature>> {
        let names: Vec<_> = made.iter().map(name).collect();
        let blobs: Option<Vec<Vec<u8>>> = made
            .into_iter()
            .zip(&names)
            .map(|(presignature, (id, party))| self.fill(*id, *party, |key| seal(presignature, key)))
            .collect();
        let Some(blobs) = blobs else {
            names.iter().for_each(|(id, _)| self.keys.discard(*id));
            return None;
        };
        let named = names.iter().zip(blobs);
        Some(named.map(|((id, _), sealed)| proto::Presignature { id: id.to_vec(), sealed }).collect())
    }

    /// Puts a new key into a place for what `seal` seals under it. `None`, and no key, if there is one for this name
    /// already.
    fn fill(
        &self,
        id: [u8; PRESIGNATURE_ID_BYTES],
        party: PartyId,
        seal: impl FnOnce(&DataKey) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let mut random = Secret::new([0u8; DATA_KEY_BYTES]);
        lock(random.expose());
        os_rng().fill_bytes(random.expose_mut());
        let key = Box::new(DataKey::new(random));
        let blob = seal(&key)?;
        let mut table = self.keys.table();
        if table.keys.contains_key(&(id, party)) {
            return None;
        }
        table.keys.insert((id, party), key);
        Some(blob)
    }
}

impl Drop for ReservedPlaces {
    fn drop(&mut self) {
        let mut table = self.keys.table();
        table.reserved = table.reserved.saturating_sub(self.count);
    }
}

/// Peers whose pair with a share was abandoned. Sessions that ran side by side all began with the share as it was
/// before: the share that one of them returns must not bring back a pair that another one destroyed.
#[derive(Clone, Default)]
pub(crate) struct Exclusions(Arc<Mutex<ExclusionTable>>);

#[derive(Default)]
struct ExclusionTable(BTreeMap<Vec<u8>, PartySet>);

impl Exclusions {
    /// Decides in one step whether what a session has found may leave it. Each check tells a peer whether a guess at
    /// this party's secrets was right, so of the sessions that run side by side under one share the first failure must
    /// be the last answer. Sessions compute without waiting for each other; the order in which they come here is the
    /// order of their answers.
    ///
    /// `failed` are the peers whose check has failed in this session; they are excluded from here on. An error names
    /// those of `peers` that were excluded before: then nothing of the step may leave, and its own failures are not
    /// told either.
    pub(crate) fn settle(
        &self,
        share: &ShareLabel,
        peers: &PartySet,
        failed: &[PartyId],
    ) -> Result<(), Vec<PartyId>> {
        let mut table = self.table();
        let excluded = table.0.entry(share.encode()).or_default();
        let earlier: Vec<PartyId> = peers.iter().filter(|peer| excluded.contains(*peer)).collect();
        if !earlier.is_empty() {
            return Err(earlier);
        }
        *excluded = excluded.iter().chain(failed.iter().copied()).collect();
        Ok(())
    }

    /// Adds `culprits` to those excluded from a share, and returns them all.
    pub(crate) fn add(&self, share: &ShareLabel, culprits: &[PartyId]) -> PartySet {
        let mut table = self.table();
        let excluded = table.0.entry(share.encode()).or_default();
        *excluded = excluded.iter().chain(culprits.iter().copied()).collect();
        excluded.clone()
    }

    /// Those excluded from a share.
    pub(crate) fn of(&self, share: &ShareLabel) -> PartySet {
        self.table().0.get(&share.encode()).cloned().unwrap_or_default()
    }

    /// Every operation leaves the table whole, so one that panicked elsewhere does not spoil it.
    fn table(&self) -> MutexGuard<'_, ExclusionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(keys: &OneTimeKeys) -> (usize, usize) {
        let table = keys.table();
        (table.reserved, table.keys.len())
    }

    #[test]
    fn table_of_one_time_keys_is_bounded() {
        let keys = OneTimeKeys::default();
        let party = PartyId::new(1).unwrap();
        let place = keys.reserve(1).unwrap();
        keys.table().reserved = MAX_PRESIGNATURES;
        assert!(matches!(keys.reserve(1), Err(SetupError::PresignaturesFull)));
        keys.table().reserved = MAX_PRESIGNATURES - 2;
        assert!(keys.reserve(3).is_err());
        let last = keys.reserve(2).unwrap();
        assert!(keys.reserve(1).is_err());
        // A place that is given back, or whose presignature was used, is free again.
        drop(last);
        assert!(place.fill([1; 32], party, |_| Some(Vec::new())).is_some());
        drop(place);
        assert_eq!(counts(&keys), (MAX_PRESIGNATURES - 3, 1));
        let another = keys.reserve(2).unwrap();
        assert!(keys.reserve(1).is_err());
        assert!(keys.take(&[1; 32], party).is_some());
        assert!(keys.take(&[1; 32], party).is_none());
        assert!(keys.reserve(1).is_ok());
        drop(another);
    }

    #[test]
    fn a_name_has_one_key() {
        let keys = OneTimeKeys::default();
        let (one, two) = (PartyId::new(1).unwrap(), PartyId::new(2).unwrap());
        let seal = |_: &DataKey| Some(vec![1]);
        assert!(keys.reserve(1).unwrap().fill([1; 32], one, seal).is_some());
        assert!(keys.reserve(1).unwrap().fill([1; 32], one, seal).is_none());
        assert!(keys.reserve(1).unwrap().fill([1; 32], two, seal).is_some());
        assert!(keys.reserve(1).unwrap().fill([2; 32], one, |_| None).is_none());
        keys.discard([1; 32]);
        assert_eq!(counts(&keys), (0, 0));
    }

    #[test]
    fn what_one_session_made_has_all_its_keys_or_none() {
        let keys = OneTimeKeys::default();
        let party = PartyId::new(1).unwrap();
        let fill = |names: &[u8]| {
            let made: Vec<[u8; 32]> = names.iter().map(|name| [*name; 32]).collect();
            keys.reserve(3).unwrap().fill_all(made, |id| (*id, party), |id, _| Some(id.to_vec()))
        };
        let made = fill(&[1, 2, 3]).unwrap();
        assert_eq!(counts(&keys), (0, 3));
        assert!(made.iter().zip(1u8..).all(|(one, name)| one.id == [name; 32] && one.sealed == one.id));
        // The name twice; a name that is there already, which nobody can be sure of any more.
        assert!(fill(&[4, 5, 4]).is_none());
        assert_eq!(counts(&keys), (0, 3));
        assert!(fill(&[6, 2, 7]).is_none());
        assert_eq!(counts(&keys), (0, 2));
        assert!(keys.take(&[2; 32], party).is_none());
    }

    fn label(epoch: u32) -> ShareLabel {
        ShareLabel {
            family: "f".to_owned(),
            key_id: "k".to_owned(),
            party: PartyId::new(1).unwrap(),
            epoch,
            threshold: engine::Threshold::new(2).unwrap(),
        }
    }

    #[test]
    fn exclusions_of_a_share_add_up() {
        let exclusions = Exclusions::default();
        let (two, three) = (PartyId::new(2).unwrap(), PartyId::new(3).unwrap());
        assert_eq!(exclusions.add(&label(1), &[two]).len(), 1);
        assert_eq!(exclusions.add(&label(1), &[three, two]).len(), 2);
        assert_eq!(exclusions.of(&label(1)).len(), 2);
        assert!(exclusions.of(&label(2)).is_empty());
    }

    /// Sessions with the same peer in many threads. All of them have computed before the first one may answer, so no
    /// session waits for another one's computing; one failure is told, and nothing is answered after it.
    #[test]
    fn of_many_guesses_at_a_time_one_is_answered() {
        use std::sync::Barrier;
        let exclusions = Exclusions::default();
        let [two, three, four] = [2, 3, 4].map(|number| PartyId::new(number).unwrap());
        let sets: Vec<PartySet> =
            [vec![two], vec![two, three], vec![two, four], vec![two, three, four], vec![three, four]]
                .into_iter()
                .map(|set| set.into_iter().collect())
                .collect();
        let computed = Barrier::new(4 * sets.len());
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for (set, wrong) in
                sets.iter().flat_map(|set| [(set, true), (set, true), (set, false), (set, false)])
            {
                let (computed, order, exclusions) = (&computed, &order, &exclusions);
                scope.spawn(move || {
                    let failed: &[PartyId] =
                        if wrong && set.contains(two) { core::slice::from_ref(&two) } else { &[] };
                    computed.wait();
                    let mut order = order.lock().unwrap();
                    let settled = exclusions.settle(&label(1), set, failed);
                    order.push((set.contains(two), !failed.is_empty(), settled));
                });
            }
        });
        let order = order.into_inner().unwrap();
        let first = order.iter().position(|(_, failed, _)| *failed).unwrap();
        for (place, (with_two, _, settled)) in order.iter().enumerate() {
            let expected = if *with_two && place > first { Err(vec![two]) } else { Ok(()) };
            assert_eq!(settled, &expected, "{place} of {order:?}");
        }
        assert!(exclusions.of(&label(2)).is_empty());
    }

    #[test]
    fn a_failure_after_an_exclusion_is_neither_told_nor_noted() {
        let exclusions = Exclusions::default();
        let [two, three] = [2, 3].map(|number| PartyId::new(number).unwrap());
        let both: PartySet = [two, three].into_iter().collect();
        assert_eq!(exclusions.settle(&label(1), &both, &[two]), Ok(()));
        assert_eq!(exclusions.settle(&label(1), &both, &[three]), Err(vec![two]));
        assert_eq!(exclusions.of(&label(1)).iter().collect::<Vec<_>>(), [two]);
        let only_three: PartySet = [three].into_iter().collect();
        assert_eq!(exclusions.settle(&label(1), &only_three, &[three]), Ok(()));
        assert_eq!(exclusions.settle(&label(2), &both, &[]), Ok(()));
    }
}
