//! The hash of labels.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};

/// H(x, i) = π(σ(x) ⊕ i) ⊕ σ(x) ⊕ i, which is the circular correlation robust hash of Guo, Katz, Wang and Yu at the point
/// x ⊕ σ⁻¹(i). π is AES-128 under a key that is drawn for each session, so that an attacker of many sessions has to work
/// on each: after q gates and p computations of AES the bound is about q·p / 2^128 for a session.
pub struct LabelHash(Aes128);

/// σ(l ‖ r) = (l ⊕ r) ‖ l: linear, and x ↦ σ(x) ⊕ x is a permutation too.
fn sigma(x: u128) -> u128 {
    let left = x >> 64;
    let right = x & u128::from(u64::MAX);
    (left ^ right) << 64 | left
}

impl LabelHash {
    pub fn new(key: &[u8; 16]) -> LabelHash {
        LabelHash(Aes128::new(&(*key).into()))
    }

    /// The hashes of some labels, each with its index.
    #[inline]
    pub fn hash<const N: usize>(&self, inputs: [(u128, u128); N]) -> [u128; N] {
        let masked = inputs.map(|(x, i)| sigma(x) ^ i);
        let mut blocks = masked.map(u128::to_le_bytes);
        self.0.encrypt_blocks(Block::cast_slice_from_core_mut(&mut blocks));
        let mut out = masked;
        for (out, block) in out.iter_mut().zip(&blocks) {
            *out ^= u128::from_le_bytes(*block);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigma_is_linear_and_leaves_no_point_fixed_but_zero() {
        let points = [1u128, 3 << 64, u128::MAX, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef, 1 << 127];
        for a in points {
            assert_ne!(sigma(a), a);
            for b in points {
                assert_eq!(sigma(a ^ b), sigma(a) ^ sigma(b));
            }
        }
    }

    #[test]
    fn a_hash_depends_on_label_index_and_key() {
        let hash = LabelHash::new(&[1; 16]);
        let [a, b, c] = hash.hash([(1, 0), (1, 1), (2, 0)]);
        let [d] = LabelHash::new(&[2; 16]).hash([(1, 0)]);
        assert!(a != b && a != c && b != c && a != d);
        assert_eq!(hash.hash([(1, 0)]), [a]);
    }
}
