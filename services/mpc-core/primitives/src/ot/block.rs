//! 128-bit blocks: hashing with labels, fixed-key AES on many at once, and the transposition of bit matrices.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// SHA-256 of a tag and parts, each with its length.
pub(crate) fn hash(tag: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    absorb(&mut hash, tag.as_bytes());
    for part in parts {
        absorb(&mut hash, part);
    }
    hash.finalize().into()
}

/// One length-prefixed part.
pub(crate) fn absorb(hash: &mut Sha256, part: &[u8]) {
    hash.update((part.len() as u64).to_be_bytes());
    hash.update(part);
}

/// The first half of a digest.
pub(crate) fn half(digest: &[u8; 32]) -> [u8; 16] {
    let mut half = [0u8; 16];
    half.copy_from_slice(digest.split_at(16).0);
    half
}

/// Consecutive little-endian blocks.
pub(crate) fn read_all(bytes: &[u8]) -> Vec<u128> {
    bytes.as_chunks::<16>().0.iter().map(|chunk| u128::from_le_bytes(*chunk)).collect()
}

/// A public random permutation of blocks: AES-128 under a key that is a hash.
pub(crate) struct Permutation(Aes128);

impl Permutation {
    pub(crate) fn new(tag: &str, parts: &[&[u8]]) -> Self {
        Self(Aes128::new(&half(&hash(tag, parts)).into()))
    }

    /// Encrypts each block in place.
    pub(crate) fn apply(&self, blocks: &mut [[u8; 16]]) {
        self.0.encrypt_blocks(Block::cast_slice_from_core_mut(blocks));
    }

    /// π(x) ⊕ x for each x (Matyas, Meyer, Oseas): one-way, and pseudorandom for uniform x.
    pub(crate) fn compress(&self, inputs: &[u128]) -> Zeroizing<Vec<u128>> {
        let mut blocks: Zeroizing<Vec<[u8; 16]>> =
            Zeroizing::new(inputs.iter().map(|input| input.to_le_bytes()).collect());
        self.apply(&mut blocks);
        Zeroizing::new(
            blocks.iter().zip(inputs).map(|(block, input)| u128::from_le_bytes(*block) ^ input).collect(),
        )
    }
}

/// Transposes 128 rows of 128 bits in place: bit c of row r becomes bit r of row c.
pub(crate) fn transpose(rows: &mut [u128; 128]) {
    let mut width = 64;
    let mut mask = u128::from(u64::MAX);
    while width > 0 {
        for pair in rows.chunks_exact_mut(2 * width) {
            let (low, high) = pair.split_at_mut(width);
            for (a, b) in low.iter_mut().zip(high) {
                let swapped = ((*a >> width) ^ *b) & mask;
                *a ^= swapped << width;
                *b ^= swapped;
            }
        }
        width /= 2;
        mask ^= mask << width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposition_moves_each_bit_to_its_mirror() {
        for (row, column) in [(0, 0), (0, 127), (1, 2), (63, 64), (127, 3), (100, 101)] {
            let mut matrix = [0u128; 128];
            matrix[row] = 1 << column;
            transpose(&mut matrix);
            let mut mirror = [0u128; 128];
            mirror[column] = 1 << row;
            assert_eq!(matrix, mirror);
        }
    }
}
