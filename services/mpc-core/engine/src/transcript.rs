//! The running hash of agreed data from which commitments and challenges are drawn.

use sha2::{Digest, Sha256, Sha512};
use zeroize::Zeroize;

use crate::party::PartyId;
use crate::tags::Tag;

/// SHA-256 over (label, length, bytes) items, so that no two different lists of items hash the same bytes.
#[derive(Clone)]
pub struct Transcript(Sha256);

impl Transcript {
    /// Empty but for the tag.
    pub fn new(tag: Tag) -> Self {
        let mut transcript = Self(Sha256::new());
        transcript.append("tag", tag.as_bytes());
        transcript
    }

    /// One labelled item.
    pub fn append(&mut self, label: &'static str, bytes: &[u8]) {
        self.item(label.as_bytes());
        self.item(bytes);
    }

    /// One labelled number.
    pub fn append_u64(&mut self, label: &'static str, number: u64) {
        self.append(label, &number.to_be_bytes());
    }

    /// A labelled list: its count, then its items.
    pub fn append_list<I>(&mut self, label: &'static str, items: I)
    where
        I: ExactSizeIterator<Item: AsRef<[u8]>>,
    {
        self.append_u64(label, items.len() as u64);
        for item in items {
            self.item(item.as_ref());
        }
    }

    /// A copy that continues under `tag`, for something that `party` says.
    pub fn fork(&self, tag: Tag, party: PartyId) -> Self {
        let mut fork = self.clone();
        fork.append("fork", tag.as_bytes());
        fork.append_u64("party", u64::from(party.get()));
        fork
    }

    /// 32 bytes that depend on everything appended.
    pub fn digest(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    /// 64 bytes that depend on everything appended: enough to be reduced to a uniform scalar.
    pub fn wide(self) -> [u8; 64] {
        let mut digest = self.digest();
        let wide = Sha512::digest(digest).into();
        digest.zeroize();
        wide
    }

    fn item(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: Tag = Tag::new("coterie/test/1");

    #[test]
    fn item_borders_are_part_of_the_hash() {
        let digest = |items: &[&[u8]]| {
            let mut transcript = Transcript::new(TAG);
            transcript.append_list("list", items.iter());
            transcript.digest()
        };
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
        assert_ne!(digest(&[b"ab"]), digest(&[b"ab", b""]));
        let mut joined = Transcript::new(TAG);
        joined.append("ab", b"c");
        let mut split = Transcript::new(TAG);
        split.append("a", b"bc");
        assert_ne!(joined.digest(), split.digest());
    }

    #[test]
    fn forks_differ_by_tag_and_party() {
        let party = |n| PartyId::new(n).unwrap();
        let root = Transcript::new(TAG);
        let other = Tag::new("coterie/test/2");
        assert_ne!(root.fork(TAG, party(1)).digest(), root.fork(TAG, party(2)).digest());
        assert_ne!(root.fork(TAG, party(1)).digest(), root.fork(other, party(1)).digest());
        assert_eq!(root.fork(TAG, party(1)).digest(), root.fork(TAG, party(1)).digest());
    }
}
