//! Signatures of several messages, verified at once.

use std::collections::BTreeMap;

use primitives::bls12_381::{G1, G2, HashedMessage, Statement};
use rand_core::CryptoRng;

use super::sign::SIGNATURE_DOMAIN;
use crate::MAX_MESSAGE_BYTES;

/// Bytes that somebody takes for a signature. Nothing of them is checked.
#[derive(Clone, Copy)]
pub struct Claim<'a> {
    /// Compressed point of G1.
    pub public_key: &'a [u8],
    /// At most [`MAX_MESSAGE_BYTES`].
    pub message: &'a [u8],
    /// Compressed point of G2.
    pub signature: &'a [u8],
}

/// Whether every claim is true. One that is not passes with chance 2^-128. An empty list holds.
pub fn verify_all(claims: &[Claim<'_>], rng: &mut dyn CryptoRng) -> bool {
    let mut keys = BTreeMap::new();
    let statements: Option<Vec<Statement>> = claims.iter().map(|claim| statement(claim, &mut keys)).collect();
    statements.is_some_and(|statements| primitives::bls12_381::verify_all(&statements, rng))
}

/// The claim as points of the right groups. A key is decoded once, which costs as much as a part of the check.
fn statement<'a>(claim: &Claim<'a>, keys: &mut BTreeMap<&'a [u8], G1>) -> Option<Statement> {
    let key = if let Some(key) = keys.get(claim.public_key) {
        *key
    } else {
        let key = G1::from_compressed(claim.public_key.try_into().ok()?)?;
        keys.insert(claim.public_key, key);
        key
    };
    if claim.message.len() > MAX_MESSAGE_BYTES {
        return None;
    }
    let signature = G2::from_compressed(claim.signature.try_into().ok()?)?;
    Some(Statement { key, message: HashedMessage::new(claim.message, SIGNATURE_DOMAIN), signature })
}
