//! Digests of what both parties must have in common.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::circuit::{Circuit, Lit};

/// Whether two digests are equal, in constant time.
pub fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.as_slice().ct_eq(b.as_slice()).into()
}

/// SHA-256 of a tag and parts, each with its length.
pub fn tagged(tag: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [tag.as_bytes()].into_iter().chain(parts.iter().copied()) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// A digest of a circuit: all that both parties must agree on.
pub fn digest_of(circuit: &Circuit) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"coterie/authenticated-garbling-circuit/1");
    for list in [&circuit.inputs, &circuit.outputs] {
        hash.update((list.len() as u64).to_be_bytes());
        list.iter().for_each(|size| hash.update((*size as u64).to_be_bytes()));
    }
    hash.update((circuit.gates.len() as u64).to_be_bytes());
    for gate in &circuit.gates {
        let literal = |lit: Lit| lit.slot() << 1 | u32::from(lit.inverted());
        hash.update([u8::from(gate.is_and())]);
        for word in [literal(gate.a), literal(gate.b), gate.out()] {
            hash.update(word.to_be_bytes());
        }
    }
    circuit.results.iter().for_each(|lit| hash.update([u8::from(lit.inverted())]));
    circuit.results.iter().for_each(|lit| hash.update(lit.slot().to_be_bytes()));
    hash.finalize().into()
}
