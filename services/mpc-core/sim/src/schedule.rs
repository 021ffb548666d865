//! The common code of the schedules of several tests: choices, sums, and who is corrupt.

use std::collections::{BTreeMap, BTreeSet};

use engine::PartyId;
use rand_core::Rng;

/// Below `count`, or 0 if that is 0.
pub fn pick(rng: &mut impl Rng, count: usize) -> usize {
    let count = u64::try_from(count).unwrap_or(u64::MAX).max(1);
    usize::try_from(rng.next_u64() % count).unwrap_or(0)
}

/// Adds the counts of one schedule to the total, key by key.
pub fn sum<K: Ord + Copy>(total: &mut BTreeMap<K, usize>, other: &BTreeMap<K, usize>) {
    other.iter().for_each(|(key, count)| *total.entry(*key).or_default() += count);
}

/// The parties of a schedule that need not follow the rules.
#[derive(Clone, Default, Debug)]
pub struct Corrupt(BTreeSet<u32>);

impl Corrupt {
    /// Up to `most` of these, drawn with repetition.
    pub fn draw(rng: &mut impl Rng, parties: &[u32], most: usize) -> Self {
        Self((0..most).filter_map(|_| parties.get(pick(rng, parties.len())).copied()).collect())
    }

    /// Whether the party of this number is one.
    pub fn has(&self, number: u32) -> bool {
        self.0.contains(&number)
    }

    /// Whether this party is one.
    pub fn has_party(&self, id: PartyId) -> bool {
        self.has(id.get().into())
    }

    /// Ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }
}
