//! Pads of one session of one pair: rows become pads once both sides have had a part in the key.
//!
//! A session that runs twice at one side, because its number was given out twice or because a store was put back, meets
//! there the same binding, and from a corrupt peer the same message. So neither side's word is enough for a pad: the
//! receiver's part is all of its message, with a fresh salt in it, and the sender's a salt that it draws after it has
//! that message. [`RowHash`] can only be made of a [`JointKey`], and that only of both.

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::block::{Permutation, absorb, hash};
use crate::hedge::HedgedRng;

/// Bytes of a salt.
pub(crate) const SALT_BYTES: usize = 16;

const SENT: &str = "coterie/ot-sent/2";
const JOINT: &str = "coterie/ot-joint/2";
const ROW_HASH: &str = "coterie/ot-row-hash/2";

/// The receiver's part: a hash of the binding and of its whole message.
pub(crate) struct Sent([u8; 32]);

impl Sent {
    pub(crate) fn new(binding: &[u8; 32], message: &[u8]) -> Self {
        Self(hash(SENT, &[binding, message]))
    }

    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The sender's part.
pub(crate) struct SenderSalt([u8; SALT_BYTES]);

impl SenderSalt {
    /// Draws a salt from the randomness of a step that answers the receiver's message.
    pub(crate) fn draw(rng: &mut HedgedRng) -> Self {
        let mut salt = [0u8; SALT_BYTES];
        rand_core::Rng::fill_bytes(rng, &mut salt);
        Self(salt)
    }

    /// The salt that the sender has sent.
    pub(crate) fn new(bytes: &[u8; SALT_BYTES]) -> Self {
        Self(*bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; SALT_BYTES] {
        &self.0
    }
}

/// The key of pads and of everything that hangs on them: a hash of both parts.
pub(crate) struct JointKey([u8; 32]);

impl JointKey {
    pub(crate) fn new(receiver: &Sent, sender: &SenderSalt) -> Self {
        Self(hash(JOINT, &[&receiver.0, &sender.0]))
    }

    /// The hash of further parts under this key.
    pub(crate) fn hash(&self, tag: &str, parts: &[&[u8]]) -> [u8; 32] {
        parts
            .iter()
            .fold(self.hasher(tag), |mut hash, part| {
                absorb(&mut hash, part);
                hash
            })
            .finalize()
            .into()
    }

    /// The same, of what comes bit by bit.
    pub(crate) fn hasher(&self, tag: &str) -> Sha256 {
        let mut hash = Sha256::new();
        absorb(&mut hash, tag.as_bytes());
        absorb(&mut hash, &self.0);
        hash
    }
}

/// `N` blocks of pad for each transfer.
pub(crate) type Pads<const N: usize> = Zeroizing<Vec<[[u8; 16]; N]>>;

/// Makes pads out of rows: a tweakable hash that stays random under the correlation (π(π(x) ⊕ i) ⊕ π(x); Guo, Katz,
/// Wang, Yu 2020, section 7.4), with a permutation of its own for each session.
pub(crate) struct RowHash(Permutation);

impl RowHash {
    pub(crate) fn new(key: &JointKey) -> Self {
        Self(Permutation::new(ROW_HASH, &[&key.0]))
    }

    /// `N` blocks for each row.
    pub(crate) fn pads<const N: usize>(&self, rows: &[u128]) -> Pads<N> {
        let mut inner: Zeroizing<Vec<[u8; 16]>> =
            Zeroizing::new(rows.iter().map(|row| row.to_le_bytes()).collect());
        self.0.apply(&mut inner);
        let mut pads: Pads<N> = Zeroizing::new(vec![[[0; 16]; N]; rows.len()]);
        let mut tweak = 0u128;
        for (pad, inner) in pads.iter_mut().zip(inner.iter()) {
            for block in pad.iter_mut() {
                *block = (u128::from_le_bytes(*inner) ^ tweak).to_le_bytes();
                tweak += 1;
            }
        }
        self.0.apply(pads.as_flattened_mut());
        for (pad, inner) in pads.iter_mut().zip(inner.iter()) {
            for block in pad.iter_mut() {
                *block = (u128::from_le_bytes(*block) ^ u128::from_le_bytes(*inner)).to_le_bytes();
            }
        }
        pads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pads(binding: u8, message: &[u8], salt: u8) -> Vec<[[u8; 16]; 2]> {
        let key = JointKey::new(&Sent::new(&[binding; 32], message), &SenderSalt::new(&[salt; SALT_BYTES]));
        RowHash::new(&key).pads::<2>(&[1, 2, 3]).to_vec()
    }

    #[test]
    fn either_side_alone_renews_every_pad() {
        let first = pads(1, b"message", 1);
        assert_eq!(first, pads(1, b"message", 1));
        for other in [pads(2, b"message", 1), pads(1, b"massage", 1), pads(1, b"message", 2)] {
            assert!(first.iter().flatten().all(|block| !other.as_flattened().contains(block)));
        }
    }
}
