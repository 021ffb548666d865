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
    pub(crate) fn new(tag: &str, binding: &[u8; 32], number: u8) -> Self {
        Self(Aes128::new(&half(&hash(tag, &[binding, &[number]])).into()))
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

/// AES-128 in counter mode under a secret key: `output` becomes the key stream from `start` on.
pub(crate) fn key_stream(key: u128, start: u128, output: &mut [u128]) {
    let cipher = Aes128::new(&key.to_le_bytes().into());
    let mut blocks: [[u8; 16]; 8] = [[0; 16]; 8];
    let mut counter = start;
    for chunk in output.chunks_mut(blocks.len()) {
        for block in &mut blocks {
            *block = counter.to_le_bytes();
            counter = counter.wrapping_add(1);
        }
        if let Some(used) = blocks.get_mut(..chunk.len()) {
            cipher.encrypt_blocks(Block::cast_slice_from_core_mut(used));
        }
        for (word, block) in chunk.iter_mut().zip(&blocks) {
            *word = u128::from_le_bytes(*block);
        }
    }
    zeroize::Zeroize::zeroize(&mut blocks);
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

    #[test]
    fn key_stream_is_one_stream_whatever_its_length() {
        let (mut short, mut long) = ([0u128; 5], [0u128; 19]);
        key_stream(7, u128::MAX, &mut short);
        key_stream(7, u128::MAX, &mut long);
        assert_eq!(short, long[..5]);
        let first = u128::from_le_bytes({
            let mut block = [[0xffu8; 16]];
            Aes128::new(&7u128.to_le_bytes().into())
                .encrypt_blocks(Block::cast_slice_from_core_mut(&mut block));
            block[0]
        });
        assert_eq!(long[0], first);
    }
}
