//! All-but-one transfers from trees (Roy 2022, section 6): the receiver of the extension knows all leaves of each of
//! its trees, the sender all but the one at its digit of Δ.
//!
//! A tree of 2^k leaves is grown from a root; for each level the base transfers carry the sum of the left and of the
//! right nodes, of which the sender gets the side its path does not take. Each leaf gives a seed and a check value; a
//! hash of all check values shows the sender that every leaf it knows is the receiver's.

use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::{Zeroize, Zeroizing};

use super::block::{Permutation, absorb, read_all};
use super::check::{OtError, same_digest};
use super::parameters::{CORRELATION_BITS, FIELD_BITS, LEAVES, TREES};

/// Two sums for each base transfer.
const SUM_BYTES: usize = 2 * 16 * CORRELATION_BITS;
/// The sum of the check values of each tree.
const CHECK_SUM_BYTES: usize = 32 * TREES;
/// The sums, the sums of check values, the hash of all check values.
pub(crate) const CORRECTION_BYTES: usize = SUM_BYTES + CHECK_SUM_BYTES + 32;

const GROW: &str = "coterie/ot-tree/1";
const CHECK: &str = "coterie/ot-tree-check/1";

/// The five public functions that a tree is grown with, specific to the set-up.
struct Functions {
    left: Permutation,
    right: Permutation,
    seed: Permutation,
    check_low: Permutation,
    check_high: Permutation,
}

impl Functions {
    fn new(binding: &[u8; 32]) -> Self {
        let function = |number: u8| Permutation::new(GROW, &[binding, &[number]]);
        Self {
            left: function(0),
            right: function(1),
            seed: function(2),
            check_low: function(3),
            check_high: function(4),
        }
    }

    /// The children of all nodes of one level of all trees.
    fn children(&self, nodes: &[u128]) -> Zeroizing<Vec<u128>> {
        let (left, right) = (self.left.compress(nodes), self.right.compress(nodes));
        // With room for all: a vector that grows leaves copies behind.
        let mut children = Zeroizing::new(Vec::with_capacity(2 * nodes.len()));
        children.extend(left.iter().zip(right.iter()).flat_map(|(left, right)| [*left, *right]));
        children
    }

    /// The check value of each leaf, as two blocks.
    fn checks(&self, leaves: &[u128]) -> Zeroizing<Vec<[u128; 2]>> {
        let (low, high) = (self.check_low.compress(leaves), self.check_high.compress(leaves));
        Zeroizing::new(low.iter().zip(high.iter()).map(|(low, high)| [*low, *high]).collect())
    }
}

/// The choice of each base transfer: at each level the side that the path to Δ's leaf does not take, from the root
/// down.
pub(crate) fn choices(delta: u128) -> Zeroizing<[u8; CORRELATION_BITS]> {
    let mut choices = Zeroizing::new([0u8; CORRELATION_BITS]);
    for (tree, levels) in choices.chunks_exact_mut(FIELD_BITS).enumerate() {
        for (level, choice) in levels.iter_mut().enumerate() {
            *choice = 1 ^ path_bit(delta, tree, level);
        }
    }
    choices
}

/// The inverse of [`choices`]: the Δ whose choices these are.
pub(crate) fn delta_of(choices: impl Iterator<Item = u8>) -> u128 {
    let places = (0..TREES).flat_map(|tree| (0..FIELD_BITS).map(move |level| (tree, level)));
    choices.zip(places).fold(0, |delta, (choice, (tree, level))| {
        delta | (u128::from(1 ^ choice) << (FIELD_BITS * tree + FIELD_BITS - 1 - level))
    })
}

/// Which child the path to Δ's leaf takes below `level`: the digit's bits from the highest down.
fn path_bit(delta: u128, tree: usize, level: usize) -> u8 {
    u8::from((delta >> (FIELD_BITS * tree + FIELD_BITS - 1 - level)) & 1 == 1)
}

/// All seeds of all trees.
pub(crate) fn leaves(binding: &[u8; 32], roots: &[u128]) -> Zeroizing<Vec<u128>> {
    let functions = Functions::new(binding);
    let mut nodes = Zeroizing::new(roots.to_vec());
    for _ in 0..FIELD_BITS {
        nodes = functions.children(&nodes);
    }
    functions.seed.compress(&nodes)
}

/// Grows the trees and appends to `message` what lets the other side have all leaves but its own.
pub(crate) fn correct(binding: &[u8; 32], roots: &[u128], keys: &[[u128; 2]], message: &mut Vec<u8>) {
    let functions = Functions::new(binding);
    let mut sums = vec![[[0u8; 16]; 2]; CORRELATION_BITS];
    let mut nodes = Zeroizing::new(roots.to_vec());
    for level in 0..FIELD_BITS {
        nodes = functions.children(&nodes);
        // The transfers of this level: one of each tree.
        let transfers = sums.iter_mut().zip(keys).skip(level).step_by(FIELD_BITS);
        for (tree, (sums, keys)) in nodes.chunks_exact(2 << level).zip(transfers) {
            let side = |parity| tree.iter().skip(parity).step_by(2).fold(0, |sum, node| sum ^ node);
            let [left, right] = keys;
            *sums = [(side(0) ^ left).to_le_bytes(), (side(1) ^ right).to_le_bytes()];
        }
    }
    message.extend(sums.iter().flatten().flatten());
    let checks = functions.checks(&nodes);
    for tree in checks.chunks_exact(LEAVES) {
        let [low, high] = sum_pairs(tree);
        message.extend_from_slice(&low.to_le_bytes());
        message.extend_from_slice(&high.to_le_bytes());
    }
    message.extend_from_slice(&digest(binding, &checks));
}

/// Recovers all leaves but those at Δ, checks them, and orders the seeds of each tree by the difference of their place
/// to Δ's. Neither the time nor the memory touched depends on Δ.
pub(crate) fn puncture(
    binding: &[u8; 32],
    delta: u128,
    keys: &[u128],
    corrections: &[u8; CORRECTION_BYTES],
) -> Result<Zeroizing<Vec<u128>>, OtError> {
    let functions = Functions::new(binding);
    let (sums, rest) = corrections.split_at(SUM_BYTES);
    let (check_sums, check_digest) = rest.split_at(CHECK_SUM_BYTES);
    let sums = read_all(sums);

    let mut nodes = Zeroizing::new(vec![0u128; TREES]);
    for level in 0..FIELD_BITS {
        nodes = functions.children(&nodes);
        let transfers = sums.as_chunks::<2>().0.iter().zip(keys).skip(level).step_by(FIELD_BITS);
        for (tree, (nodes, (sums, key))) in nodes.chunks_exact_mut(2 << level).zip(transfers).enumerate() {
            fill_sibling(nodes, delta, tree, level, sums, *key);
        }
    }
    let digit = |tree: usize| (delta >> (FIELD_BITS * tree)) as u32 & (LEAVES as u32 - 1);

    let mut checks = functions.checks(&nodes);
    let check_sums = read_all(check_sums);
    for (tree, (checks, sums)) in
        checks.chunks_exact_mut(LEAVES).zip(check_sums.as_chunks::<2>().0).enumerate()
    {
        let [low, high] = sum_pairs(checks);
        for (place, [check_low, check_high]) in (0u32..).zip(checks.iter_mut()) {
            // At Δ's leaf the value is garbage: the difference that the sum lacks takes its place.
            let missing = place.ct_eq(&digit(tree));
            let [sum_low, sum_high] = sums;
            check_low.conditional_assign(&(*check_low ^ low ^ sum_low), missing);
            check_high.conditional_assign(&(*check_high ^ high ^ sum_high), missing);
        }
    }
    let expected = check_digest.first_chunk::<32>().ok_or(OtError::Malformed)?;
    if !same_digest(&digest(binding, &checks), expected) {
        return Err(OtError::CheckFailed);
    }

    let mut seeds = functions.seed.compress(&nodes);
    let mut kept = Zeroizing::new(Vec::with_capacity(TREES * (LEAVES - 1)));
    for (tree, seeds) in seeds.chunks_exact_mut(LEAVES).enumerate() {
        for bit in 0..FIELD_BITS {
            let swap = Choice::from((digit(tree) >> bit) as u8 & 1);
            for pair in seeds.chunks_exact_mut(2 << bit) {
                let (low, high) = pair.split_at_mut(1 << bit);
                for (a, b) in low.iter_mut().zip(high) {
                    u128::conditional_swap(a, b, swap);
                }
            }
        }
        kept.extend(seeds.iter().skip(1));
    }
    Ok(kept)
}

/// Puts the node beside the path where it belongs, and zero on the path.
fn fill_sibling(nodes: &mut [u128], delta: u128, tree: usize, level: usize, sums: &[u128; 2], key: u128) {
    let on_path = ((delta >> (FIELD_BITS * tree)) as u32 & (LEAVES as u32 - 1)) >> (FIELD_BITS - 1 - level);
    let beside = on_path ^ 1;
    let side = Choice::from((beside & 1) as u8);
    let [left, right] = sums;
    let mut sibling = u128::conditional_select(left, right, side) ^ key;
    for (place, node) in (0u32..).zip(nodes.iter()) {
        let same_side = Choice::from((place & 1) as u8).ct_eq(&side);
        sibling ^= u128::conditional_select(&0, node, same_side & !place.ct_eq(&beside));
    }
    for (place, node) in (0u32..).zip(nodes.iter_mut()) {
        node.conditional_assign(&sibling, place.ct_eq(&beside));
        node.conditional_assign(&0, place.ct_eq(&on_path));
    }
    sibling.zeroize();
}

fn sum_pairs(pairs: &[[u128; 2]]) -> [u128; 2] {
    pairs.iter().fold([0, 0], |[low, high], [a, b]| [low ^ a, high ^ b])
}

fn digest(binding: &[u8; 32], checks: &[[u128; 2]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    absorb(&mut hash, CHECK.as_bytes());
    absorb(&mut hash, binding);
    for check in checks.iter().flatten() {
        hash.update(check.to_le_bytes());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINDING: [u8; 32] = [9; 32];
    const DELTA: u128 = 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978;

    fn set_up() -> (Zeroizing<Vec<u128>>, Vec<u128>, Vec<u8>) {
        let roots: Vec<u128> = (0..TREES as u128).map(|tree| tree * 0x1_0001 + 5).collect();
        let keys: Vec<[u128; 2]> = (0..CORRELATION_BITS as u128).map(|n| [n * 77 + 1, n * 99 + 3]).collect();
        let chosen =
            keys.iter().zip(choices(DELTA).iter()).map(|(pair, choice)| pair[usize::from(*choice)]).collect();
        let mut message = Vec::new();
        correct(&BINDING, &roots, &keys, &mut message);
        (leaves(&BINDING, &roots), chosen, message)
    }

    #[test]
    fn choices_name_their_delta() {
        assert_eq!(delta_of(choices(DELTA).iter().copied()), DELTA);
    }

    #[test]
    fn punctured_trees_have_all_leaves_but_one() {
        let (all, keys, message) = set_up();
        let kept = puncture(&BINDING, DELTA, &keys, message.as_slice().try_into().unwrap()).unwrap();
        for (tree, (all, kept)) in all.chunks(LEAVES).zip(kept.chunks(LEAVES - 1)).enumerate() {
            let digit = (DELTA >> (FIELD_BITS * tree)) as usize & (LEAVES - 1);
            for (difference, seed) in (1..LEAVES).zip(kept) {
                assert_eq!(*seed, all[digit ^ difference]);
            }
            assert!(!kept.contains(&all[digit]));
        }
    }

    /// A receiver that corrects one side wrongly guesses a bit of Δ: it is caught whenever the other side was taken,
    /// and by the hash of the check values always.
    #[test]
    fn any_altered_correction_on_the_side_taken_fails() {
        let (_, keys, message) = set_up();
        let choices = choices(DELTA);
        for transfer in [0, 1, 5, CORRELATION_BITS - 1] {
            for side in 0..2u8 {
                let mut altered: [u8; CORRECTION_BYTES] = message.as_slice().try_into().unwrap();
                altered[32 * transfer + 16 * usize::from(side)] ^= 1;
                let result = puncture(&BINDING, DELTA, &keys, &altered);
                assert_eq!(result.err(), (choices[transfer] == side).then_some(OtError::CheckFailed));
            }
        }
        for place in [SUM_BYTES, SUM_BYTES + CHECK_SUM_BYTES - 1, CORRECTION_BYTES - 1] {
            let mut altered: [u8; CORRECTION_BYTES] = message.as_slice().try_into().unwrap();
            altered[place] ^= 0x80;
            assert_eq!(puncture(&BINDING, DELTA, &keys, &altered).err(), Some(OtError::CheckFailed));
        }
    }
}
