//! Checks of signatures and of products by pairing.

use blst::{
    blst_final_exp, blst_fp12, blst_fp12_is_one, blst_miller_loop_n, blst_p1, blst_p1_affine,
    blst_p1_affine_generator, blst_p1_affine_is_inf, blst_p1_cneg, blst_p1_from_affine, blst_p2_affine,
    blst_p2_affine_is_inf,
};
use rand_core::CryptoRng;

use super::affine::{affine1, affine2, negate1};
use super::combine::{combine1, combine2};
use super::g1::G1;
use super::g2::{G2, HashedMessage};

/// Bits of the random coefficients with which checks are batched: a false statement passes with chance 2^-128.
const BATCH_COEFFICIENT_BITS: usize = 128;

/// Whether `signature` is that of `message` under `key`: e(key, message) = e(generator, signature).
pub fn verify(key: &G1, message: &HashedMessage, signature: &G2) -> bool {
    // SAFETY: valid places.
    let degenerate = key.is_identity() || unsafe { blst_p2_affine_is_inf(&signature.0) };
    !degenerate && pairing_product_is_one(&[(&key.0, &message.affine), (&negated_generator(), &signature.0)])
}

/// Whether every one of `signatures` is that of `message` under the key at the same place. One pairing check over a
/// random combination; a wrong set passes with chance 2^-128. An empty set holds.
pub fn verify_batch(
    keys: &[G1],
    message: &HashedMessage,
    signatures: &[G2],
    rng: &mut dyn CryptoRng,
) -> bool {
    if keys.len() != signatures.len() || keys.iter().any(G1::is_identity) {
        return false;
    }
    if keys.is_empty() {
        return true;
    }
    let coefficients: Vec<[u8; 32]> = keys.iter().map(|_| batch_coefficient(rng)).collect();
    let keys: Vec<blst_p1_affine> = keys.iter().map(|key| key.0).collect();
    let signatures: Vec<blst_p2_affine> = signatures.iter().map(|signature| signature.0).collect();
    let key = affine1(&combine1(&keys, &coefficients, BATCH_COEFFICIENT_BITS));
    let signature = affine2(&combine2(&signatures, &coefficients, BATCH_COEFFICIENT_BITS));
    pairing_product_is_one(&[(&key, &message.affine), (&negated_generator(), &signature)])
}

/// That `signature` is the one of `message` under `key`.
#[derive(Clone)]
pub struct Statement {
    /// A public key.
    pub key: G1,
    /// The message, hashed.
    pub message: HashedMessage,
    /// A point that may be its signature.
    pub signature: G2,
}

/// Whether every statement holds. One pairing check over a random combination, with one pair for each key that is not
/// the same; a list with a false statement passes with chance 2^-128. An empty list holds.
pub fn verify_all(statements: &[Statement], rng: &mut dyn CryptoRng) -> bool {
    // SAFETY: a valid place.
    let degenerate = |statement: &Statement| unsafe {
        statement.key.is_identity() || blst_p2_affine_is_inf(&statement.signature.0)
    };
    if statements.iter().any(degenerate) {
        return false;
    }
    if statements.is_empty() {
        return true;
    }
    let coefficients: Vec<[u8; 32]> = statements.iter().map(|_| batch_coefficient(rng)).collect();
    let signatures: Vec<blst_p2_affine> = statements.iter().map(|statement| statement.signature.0).collect();
    let signature = affine2(&combine2(&signatures, &coefficients, BATCH_COEFFICIENT_BITS));
    let mut keys: Vec<G1> = Vec::new();
    for statement in statements {
        if !keys.contains(&statement.key) {
            keys.push(statement.key);
        }
    }
    let message_of = |key: &G1| {
        let (messages, coefficients): (Vec<blst_p2_affine>, Vec<[u8; 32]>) = statements
            .iter()
            .zip(&coefficients)
            .filter(|(statement, _)| statement.key == *key)
            .map(|(statement, coefficient)| (statement.message.affine, *coefficient))
            .unzip();
        affine2(&combine2(&messages, &coefficients, BATCH_COEFFICIENT_BITS))
    };
    let messages: Vec<blst_p2_affine> = keys.iter().map(message_of).collect();
    let generator = negated_generator();
    let mut pairs: Vec<(&blst_p1_affine, &blst_p2_affine)> =
        keys.iter().map(|key| &key.0).zip(&messages).collect();
    pairs.push((&generator, &signature));
    pairing_product_is_one(&pairs)
}

/// Whether e(left.0, left.1) = e(right.0, right.1).
pub fn pairings_are_equal(left: (&G1, &G2), right: (&G1, &G2)) -> bool {
    pairing_product_is_one(&[(&left.0.0, &left.1.0), (&negate1(&right.0.0), &right.1.0)])
}

fn batch_coefficient(rng: &mut dyn CryptoRng) -> [u8; 32] {
    let mut coefficient = [0u8; 32];
    let (low, _) = coefficient.split_at_mut(BATCH_COEFFICIENT_BITS / 8);
    rng.fill_bytes(low);
    coefficient
}

fn negated_generator() -> blst_p1_affine {
    let mut point = blst_p1::default();
    // SAFETY: valid places; the generator is a constant of blst.
    unsafe {
        blst_p1_from_affine(&mut point, blst_p1_affine_generator());
        blst_p1_cneg(&mut point, true);
    }
    affine1(&point)
}

/// A pair with the identity contributes one, as it should.
fn pairing_product_is_one(pairs: &[(&blst_p1_affine, &blst_p2_affine)]) -> bool {
    // SAFETY: valid places.
    let finite = |pair: &&(&blst_p1_affine, &blst_p2_affine)| unsafe {
        !blst_p1_affine_is_inf(pair.0) && !blst_p2_affine_is_inf(pair.1)
    };
    let (in_g1, in_g2): (Vec<*const blst_p1_affine>, Vec<*const blst_p2_affine>) = pairs
        .iter()
        .filter(finite)
        .map(|(left, right)| (core::ptr::from_ref(*left), core::ptr::from_ref(*right)))
        .unzip();
    if in_g1.is_empty() {
        return true;
    }
    let mut product = blst_fp12::default();
    let mut reduced = blst_fp12::default();
    // SAFETY: two lists of the same length of pointers to points that outlive the call.
    unsafe {
        blst_miller_loop_n(&mut product, in_g2.as_ptr(), in_g1.as_ptr(), in_g1.len());
        blst_final_exp(&mut reduced, &product);
        blst_fp12_is_one(&reduced)
    }
}
