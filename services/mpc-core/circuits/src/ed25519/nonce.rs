//! The circuit of the nonce, which depends on the number of blocks of the message only.

use crate::circuit::public::Split;
use crate::circuit::{Circuit, Recorder};
use crate::compile::{Limits, compile};
use crate::program::Program;
use crate::stack::with_stack;

const PROGRAM: &str = include_str!("nonce.mpcl");

/// Bytes of the prefix.
pub(super) const PREFIX: usize = 32;
/// Bits of a mask: the masked nonce of 512 bits tells of it at most 2^-96.
pub(super) const MASK_BITS: usize = 608;
/// Blocks of SHA-512 that one message takes, at most: a full transaction of Solana. More cost time and memory, not
/// security.
pub const MAX_BLOCKS: usize = 11;
/// Bytes of a block.
const BLOCK: usize = 128;

/// Blocks of SHA-512 that the prefix and a message of this many bytes take.
#[must_use]
pub fn blocks(message: usize) -> usize {
    (PREFIX + message + 17).div_ceil(BLOCK)
}

/// The circuit for messages of some number of blocks. Both parties compile it for themselves.
pub struct NonceCircuit {
    blocks: usize,
    /// The gates that depend on the message alone, computed in the clear.
    public: Circuit,
    /// Inputs: prefix and mask of the garbler, those of the evaluator, and the wires that the public part gives.
    pub(super) private: Circuit,
}

impl NonceCircuit {
    /// The circuit for so many blocks, from 1 to [`MAX_BLOCKS`]; `None` otherwise.
    #[must_use]
    pub fn new(blocks: usize) -> Option<NonceCircuit> {
        Self::of(PROGRAM, (1..=MAX_BLOCKS).contains(&blocks).then_some(blocks)?)
    }

    /// The circuit of a program with the ports of [`PROGRAM`].
    pub(super) fn of(program: &str, blocks: usize) -> Option<NonceCircuit> {
        let known = blocks * BLOCK - PREFIX;
        let text = program.replace("KNOWN", &known.to_string());
        let mut circuit = with_stack(move || {
            let program = Program::from_text("nonce.mpcl", &text, &[]).ok()?;
            let mut recorder = Recorder::default();
            compile(&program, &[vec![], vec![]], Limits::default(), &mut recorder).ok()?;
            Some(recorder.circuit)
        })??;
        circuit.prune();
        let own = 8 * PREFIX + MASK_BITS;
        circuit.inputs = vec![own, own, 8 * known];
        let Split { public, private } = Split::new(&circuit);
        Some(NonceCircuit { blocks, public, private })
    }

    /// Blocks of the messages that this is for.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// AND gates that are garbled.
    #[must_use]
    pub fn ands(&self) -> usize {
        self.private.gates.iter().filter(|gate| gate.is_and()).count()
    }

    /// The public wires of a message; `None` if it takes another number of blocks.
    pub(super) fn public_wires(&self, message: &[u8]) -> Option<Vec<u8>> {
        if blocks(message.len()) != self.blocks {
            return None;
        }
        let mut known = message.to_vec();
        known.push(0x80);
        known.resize(self.blocks * BLOCK - PREFIX - 8, 0);
        known.extend_from_slice(&(8 * (PREFIX + message.len()) as u64).to_be_bytes());
        let bits: Vec<bool> = known.iter().flat_map(|byte| (0..8).map(move |i| byte >> i & 1 == 1)).collect();
        Some(self.public.evaluate(&bits).into_iter().map(u8::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;
    use sha2::{Digest, Sha512};

    #[test]
    fn the_circuit_adds_masks_to_the_hash() {
        for (count, lengths) in [(1, vec![0, 1, 79]), (2, vec![80, 207]), (3, vec![208])] {
            let circuit = NonceCircuit::new(count).unwrap();
            for length in lengths {
                let message: Vec<u8> = (0..length).map(|i| (7 * i + length) as u8).collect();
                let share = |seed: u8| -> Vec<u8> {
                    (0..PREFIX + MASK_BITS / 8).map(|i| (i as u8).wrapping_mul(37) ^ seed).collect()
                };
                let (first, second) = (share(0xff), share(0x5a));
                let prefix: Vec<u8> = first.iter().zip(&second).take(32).map(|(a, b)| a ^ b).collect();
                let digest = Sha512::new().chain_update(&prefix).chain_update(&message).finalize();
                let expected = BigUint::from_bytes_le(&digest)
                    + BigUint::from_bytes_le(&first[32..])
                    + BigUint::from_bytes_le(&second[32..]);
                let secret = first.iter().chain(&second).flat_map(|b| (0..8).map(move |i| b >> i & 1 == 1));
                let public = circuit.public_wires(&message).unwrap().into_iter().map(|bit| bit == 1);
                let sum = circuit.private.evaluate(&secret.chain(public).collect::<Vec<_>>());
                assert_eq!(sum.len(), MASK_BITS + 2);
                let bits: Vec<u8> = sum.into_iter().map(u8::from).collect();
                assert_eq!(BigUint::from_radix_le(&bits, 2).unwrap(), expected);
            }
            assert!(circuit.public_wires(&[0; 700]).is_none());
        }
        assert!(NonceCircuit::new(0).is_none() && NonceCircuit::new(MAX_BLOCKS + 1).is_none());
        let sizes = [0, 79, 80, 207, 208, 1359, 1360].map(blocks);
        assert_eq!(sizes, [1, 1, 2, 2, 3, 11, 12]);
    }
}
