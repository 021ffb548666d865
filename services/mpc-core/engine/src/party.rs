//! Parties of a session: their numbers, sets of them, and the threshold.

use core::fmt;
use core::num::NonZeroU16;

/// Most parties a key can have.
pub const MAX_PARTIES: usize = 20;

/// The number of one holder of a share: 1 to 65535, stable for the life of a key.
///
/// It is also the point at which the sharing polynomial is evaluated, which is why zero cannot be one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartyId(NonZeroU16);

impl PartyId {
    /// The party with this number, or `None` if it is 0 or above 65535.
    pub fn new(number: u32) -> Option<Self> {
        u16::try_from(number).ok().and_then(NonZeroU16::new).map(Self)
    }

    /// The number, 1 to 65535.
    pub fn get(self) -> u16 {
        self.0.get()
    }
}

impl fmt::Debug for PartyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "party {}", self.get())
    }
}

impl fmt::Display for PartyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

/// Parties in ascending order, each once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PartySet(Vec<PartyId>);

impl PartySet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `party` is one of them.
    pub fn contains(&self, party: PartyId) -> bool {
        self.0.binary_search(&party).is_ok()
    }

    /// Adds `party`; false if it was there already.
    pub fn insert(&mut self, party: PartyId) -> bool {
        match self.0.binary_search(&party) {
            Ok(_) => false,
            Err(at) => {
                self.0.insert(at, party);
                true
            }
        }
    }

    /// Those that are not in `other`.
    pub fn minus(&self, other: &PartySet) -> PartySet {
        self.iter().filter(|party| !other.contains(*party)).collect()
    }

    /// Ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = PartyId> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<PartyId> for PartySet {
    fn from_iter<I: IntoIterator<Item = PartyId>>(parties: I) -> Self {
        let mut list: Vec<PartyId> = parties.into_iter().collect();
        list.sort_unstable();
        list.dedup();
        Self(list)
    }
}

/// The number of parties needed to sign, t. At least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Threshold(NonZeroU16);

impl Threshold {
    /// `None` unless 1 <= number <= [`MAX_PARTIES`].
    pub fn new(number: u32) -> Option<Self> {
        let number = u16::try_from(number).ok().and_then(NonZeroU16::new)?;
        (usize::from(number.get()) <= MAX_PARTIES).then_some(Self(number))
    }

    /// t, as a count.
    pub fn get(self) -> usize {
        usize::from(self.0.get())
    }

    /// How many corrupt parties the key survives: t - 1.
    pub fn max_corrupt(self) -> MaxCorrupt {
        MaxCorrupt(self.get() - 1)
    }
}

/// How many parties may be corrupt. A type of its own, so that it is never taken for a [`Threshold`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxCorrupt(usize);

impl MaxCorrupt {
    /// The count.
    pub fn get(self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn party_number_zero_and_above_sixteen_bits_are_refused() {
        assert!(PartyId::new(0).is_none());
        assert!(PartyId::new(65_536).is_none());
        assert_eq!(PartyId::new(65_535).map(PartyId::get), Some(65_535));
    }

    #[test]
    fn set_is_ordered_and_has_no_duplicates() {
        let id = |n| PartyId::new(n).unwrap();
        let mut set: PartySet = [id(3), id(1), id(3)].into_iter().collect();
        assert_eq!(set.iter().map(PartyId::get).collect::<Vec<_>>(), [1, 3]);
        assert!(!set.insert(id(1)));
        assert!(set.insert(id(2)));
        assert_eq!(set.minus(&[id(2)].into_iter().collect()).len(), 2);
    }

    #[test]
    fn threshold_leaves_no_room_for_zero() {
        assert!(Threshold::new(0).is_none());
        assert!(Threshold::new(21).is_none());
        assert_eq!(Threshold::new(1).map(|t| t.max_corrupt().get()), Some(0));
    }
}
