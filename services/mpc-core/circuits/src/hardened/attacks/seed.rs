//! Seeds: the import, the root of BIP-32, and a path of SLIP-10 down to its key.

use std::array::from_fn;

use primitives::Secret;
use primitives::secp256k1::{decode_scalar, encode_point, mul_generator};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::super::{PairSeed, PublicNode, Ready, SeedShare, Step, StepCircuit, UnconfirmedSeed, split_seed};
use super::{Row, check, labels, row};
use crate::authenticated::flips::{Unread, everywhere};
use crate::authenticated::wire::{Edit, End, Ran, again, both, cut, flip, honest, seeded, set_up};
use crate::authenticated::{Abort, Pair};
use crate::line::now;

/// Bytes of the seed.
const BYTES: usize = 16;
const SEED: [u8; BYTES] = [0x1b; BYTES];

/// The left half is the seed twice, and the right one its complement.
const ROOT: &str = "package main

type Garbler struct {
	seed [SEED]byte
	mask uint352
}

type Evaluator struct {
	seed [SEED]byte
	mask uint352
}

func main(garbler Garbler, evaluator Evaluator) (uint354, bool, [32]byte) {
	var left uint354
	var chain [32]byte
	for i := 0; i < 32; i++ {
		part := garbler.seed[i%SEED] ^ evaluator.seed[i%SEED]
		left = left<<8 | uint354(part)
		chain[i] = part ^ 0xff
	}
	return left + uint354(garbler.mask) + uint354(evaluator.mask), left != 0, chain
}
";

/// The chain code is public, and the key sums of bytes of the seed.
const SLIP10_ROOT: &str = "package main

type Garbler struct {
	seed [SEED]byte
}

type Evaluator struct {
	seed [SEED]byte
}

func main(garbler Garbler, evaluator Evaluator) ([32]byte, [32]byte) {
	var key, chain [32]byte
	for i := 0; i < 32; i++ {
		part := garbler.seed[i%SEED] ^ evaluator.seed[i%SEED]
		key[i] = part + part<<1
		chain[i] = key[i] & 0x77
	}
	return chain, key
}
";

const SLIP10_CHILD: &str = "package main

type Garbler struct {
	key [32]byte
}

type Evaluator struct {
	key   [32]byte
	chain [32]byte
	index uint32
}

func main(garbler Garbler, evaluator Evaluator) ([32]byte, [32]byte) {
	var key, chain [32]byte
	for i := 0; i < 32; i++ {
		part := garbler.key[i] ^ evaluator.key[i]
		key[i] = part + evaluator.chain[i]
		chain[i] = part & byte(evaluator.index>>(8*(i%4)))
	}
	return chain, key
}
";

const SLIP10_KEY: &str = "package main

type Garbler struct {
	key  [32]byte
	mask uint352
}

type Evaluator struct {
	key  [32]byte
	mask uint352
}

func main(garbler Garbler, evaluator Evaluator) (uint354, [32]byte) {
	var scalar uint354
	var prefix [32]byte
	for i := 0; i < 32; i++ {
		part := garbler.key[i] ^ evaluator.key[i]
		scalar = scalar<<8 | uint354(part)
		prefix[i] = part & (garbler.key[31-i] ^ evaluator.key[31-i])
	}
	return scalar + uint354(garbler.mask) + uint354(evaluator.mask), prefix
}
";

/// The circuits of a path, in its order.
fn circuits() -> [StepCircuit; 4] {
    [
        (Step::Master(BYTES), ROOT),
        (Step::Slip10Master(BYTES), SLIP10_ROOT),
        (Step::Slip10Child, SLIP10_CHILD),
        (Step::Slip10Key, SLIP10_KEY),
    ]
    .map(|(step, text)| StepCircuit::of(step, text).unwrap())
}

/// The root that these circuits give, and the key of the path's end.
fn expected() -> (PublicNode, [u8; 32]) {
    let left: [u8; 32] = from_fn(|i| SEED[i % BYTES]);
    let root = PublicNode {
        public_key: encode_point(&mul_generator(&decode_scalar(&left).unwrap())),
        chain_code: left.map(|byte| byte ^ 0xff),
    };
    let key = left.map(|byte| byte.wrapping_add(byte << 1));
    let mut child = key.map(|byte| byte.wrapping_add(byte & 0x77));
    child.reverse();
    let scalar = curve25519_dalek::Scalar::from_bytes_mod_order(child);
    (root, curve25519_dalek::EdwardsPoint::mul_base(&scalar).compress().to_bytes())
}

fn shares() -> Vec<SeedShare> {
    let rng = &mut ChaCha20Rng::seed_from_u64(2);
    let mut shares = split_seed(&Secret::new(SEED.to_vec()), 3, rng).unwrap();
    shares.iter_mut().for_each(|share| share.root = expected().0);
    shares
}

fn joined(
    pairs: &[Pair; 2],
    shares: &[SeedShare],
    numbers: [u16; 2],
    edits: [Edit; 2],
) -> Ran<Result<UnconfirmedSeed, Abort>> {
    both(edits, [0, 1], async |index, _: usize, channel| {
        let share = &shares[usize::from(numbers[index]) - 1];
        share.join(&pairs[index], numbers[1 - index], channel, &mut seeded(1, index)).await
    })
}

/// One side's material for all steps.
fn ready(pair: &Pair, circuits: &[StepCircuit; 4], index: usize, channel: &mut End<'_>) -> [Ready; 4] {
    from_fn(|step| now(Ready::new(pair, &circuits[step], channel, &mut seeded(7, index))).unwrap())
}

/// One side of all steps: the public key at the end, after the owner's root.
async fn path(
    pair: &Pair,
    circuits: &[StepCircuit; 4],
    seed: UnconfirmedSeed,
    [first, second, third, fourth]: [Ready; 4],
    channel: &mut End<'_>,
) -> Result<[u8; 32], Abort> {
    let (seed, _): (PairSeed, _) = seed.confirm(pair, &circuits[0], first, channel).await?;
    let node = seed.slip10(pair, &circuits[1], second, channel).await?;
    let node = node.child(pair, &circuits[2], third, 501, channel).await?;
    Ok(*node.key(pair, &circuits[3], fourth, channel).await?.public_key())
}

type Walked = Ran<Result<[u8; 32], Abort>>;

/// Two parties that have fixed a seed, with the material for all steps.
#[derive(Clone)]
struct Couple {
    seeds: [UnconfirmedSeed; 2],
    ready: [[Ready; 4]; 2],
}

impl Couple {
    fn new(
        circuits: &[StepCircuit; 4],
        pairs: &[Pair; 2],
        shares: &[SeedShare],
        numbers: [u16; 2],
    ) -> Couple {
        let seeds = joined(pairs, shares, numbers, [honest(), honest()]).results.map(Result::unwrap);
        let ran = both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
            ready(&pairs[index], circuits, index, channel)
        });
        Couple { seeds, ready: ran.results }
    }

    /// All steps with changed messages.
    fn walk(self, circuits: &[StepCircuit; 4], pairs: &[Pair; 2], edits: [Edit; 2]) -> Walked {
        let ([one, two], [first, second]) = (self.seeds, self.ready);
        both(edits, [(one, first), (two, second)], async |index, (seed, ready), channel| {
            path(&pairs[index], circuits, seed, ready, channel).await
        })
    }
}

/// All steps, for parties of these numbers.
fn walk(
    circuits: &[StepCircuit; 4],
    pairs: &[Pair; 2],
    shares: &[SeedShare],
    numbers: [u16; 2],
    edits: [Edit; 2],
) -> Walked {
    Couple::new(circuits, pairs, shares, numbers).walk(circuits, pairs, edits)
}

const ROWS: &[Row] = &[
    row("seed, for the root", 0, 0, &[0, 15], &[12]),
    row("mask of the root", 0, 0, &[16, 59], &[12]),
    row("result of the root", 0, 2, &[0, 76, 80], &[4, 8]),
    row("point of the root", 0, 3, &[0, 20, 33, 60], &[4, 13]),
    row("seed", 0, 4, &[0, 15], &[12]),
    row("tables", 0, 5, &[0], &[10]),
    row("chain code of the root", 0, 6, &[0, 31, 40], &[4, 8]),
    row("key that stayed shared", 0, 7, &[0, 31], &[12]),
    row("proof of it", 0, 7, &[32, 63], &[12]),
    labels("labels of it", 0, 7, &[64, 1968]),
    row("key of the child", 0, 10, &[0, 31], &[12]),
    row("mask of the scalar", 0, 10, &[32, 75], &[12]),
    row("masked scalar", 0, 12, &[0, 44, 50], &[4, 8]),
    row("point of the scalar", 0, 13, &[0, 31, 32, 63], &[4, 13]),
    row("seed, for the root", 1, 0, &[32, 47], &[12]),
    row("mask of the root", 1, 0, &[48, 91], &[12]),
    row("point of the root", 1, 3, &[0, 20, 33, 60], &[4, 13]),
    row("seed", 1, 4, &[32, 47], &[12]),
    row("chain code of the root", 1, 6, &[0, 31, 40], &[4, 8]),
    row("number and parent", 1, 7, &[0], &[3]),
    row("key that stayed shared", 1, 7, &[32, 63], &[12]),
    row("named public bits", 1, 8, &[0, 10], &[9]),
    row("key of the child", 1, 10, &[32, 63], &[12]),
    row("mask of the scalar", 1, 10, &[64, 107], &[12]),
    row("point of the scalar", 1, 13, &[0, 31, 32, 63], &[4, 13]),
];

/// Labels, from the place on where they begin: some are of bits that no AND gate reads here.
const UNREAD: &[Unread] = &[
    Unread { by: 0, message: 0, bytes: 92..usize::MAX },
    Unread { by: 0, message: 4, bytes: 48..usize::MAX },
    Unread { by: 0, message: 7, bytes: 64..usize::MAX },
    Unread { by: 0, message: 10, bytes: 108..usize::MAX },
];

#[test]
fn a_changed_message_ends_in_its_cause_and_excludes_its_sender() {
    let (circuits, shares) = (circuits(), shares());
    let first = set_up(30);
    let couple = Couple::new(&circuits, &first, &shares, [1, 2]);
    let ran = couple.clone().walk(&circuits, &first, [honest(), honest()]);
    assert_eq!(ran.sent, [14, 14]);
    assert_eq!(ran.results.map(Result::unwrap), [expected().1; 2]);
    // All of them go on from one preparation.
    let run = |edits: [Edit; 2]| {
        let pairs = again(&first);
        let ran = couple.clone().walk(&circuits, &pairs, edits);
        (ran.results, pairs.each_ref().map(Pair::ended))
    };
    check(ROWS, &expected().1, run);
    everywhere(1, UNREAD, &expected().1, run);
}

#[test]
fn a_path_that_ends_anywhere_is_repeated_with_the_same_result() {
    let (circuits, shares, pairs) = (circuits(), shares(), set_up(31));
    let couple = Couple::new(&circuits, &pairs, &shares, [1, 2]);
    for role in 0..2 {
        for message in 0..14 {
            let mut edits = [honest(), honest()];
            edits[role] = cut(message);
            let ran = couple.clone().walk(&circuits, &pairs, edits);
            assert!(matches!(ran.results[role], Err(Abort::Channel(_))));
            assert!(pairs.iter().all(|pair| !pair.ended()));
        }
    }
    let ran = walk(&circuits, &pairs, &shares, [1, 2], [honest(), honest()]);
    assert_eq!(ran.results.map(Result::unwrap), [expected().1; 2]);
}

/// Every pair finds the same key, and one with another share of the seed ends with the root.
#[test]
fn pairs_agree_or_one_has_other_shares_and_ends_at_the_root() {
    let (circuits, mut shares) = (circuits(), shares());
    for numbers in [[1, 3], [2, 3]] {
        let ran = walk(&circuits, &set_up(32), &shares, numbers, [honest(), honest()]);
        assert_eq!(ran.results.map(Result::unwrap), [expected().1; 2]);
    }
    // The owner's mistake.
    shares[2].shares.get_mut(&1).unwrap().expose_mut()[9] ^= 4;
    let pairs = set_up(33);
    let ran = walk(&circuits, &pairs, &shares, [1, 3], [honest(), honest()]);
    assert!(ran.results.iter().any(|result| matches!(result, Err(Abort::Import))));
    assert!(ran.results.iter().all(|result| matches!(result, Err(Abort::Import | Abort::Channel(_)))));
    // So does another chain code of the owner's root, beside the right key.
    let mut shares = self::shares();
    shares.iter_mut().for_each(|share| share.root.chain_code[31] ^= 1);
    let ran = walk(&circuits, &set_up(37), &shares, [1, 2], [honest(), honest()]);
    assert!(ran.results.iter().all(|result| matches!(result, Err(Abort::Import))));
    // A party that fixes another share than it got: the last message of the import.
    for corrupt in 0..2 {
        let pairs = set_up(34);
        let mut edits = [honest(), honest()];
        edits[corrupt] = flip(2, 5, 1);
        let seeds = joined(&pairs, &shares, [1, 2], edits).results.map(Result::unwrap);
        let ran = both([honest(), honest()], seeds, async |index, seed, channel| {
            let ready = ready(&pairs[index], &circuits, index, channel);
            path(&pairs[index], &circuits, seed, ready, channel).await
        });
        // The corrupt party keeps another share than the one it sent, which its own proof does not fit.
        assert!(matches!(ran.results[1 - corrupt], Err(Abort::Input)));
        assert!(pairs[1 - corrupt].ended());
    }
}

#[test]
fn other_roles_parties_and_seeds_are_refused() {
    let shares = shares();
    for numbers in [[2, 1], [1, 4], [1, 1]] {
        let pairs = set_up(35);
        let ran = both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
            shares[0]
                .join(&pairs[index], numbers[1 - index], channel, &mut seeded(1, index))
                .await
                .map(|_| ())
        });
        assert!(ran.results.iter().any(|result| matches!(result, Err(Abort::Caller(_)))), "{numbers:?}");
    }
    // Something prepared for another step.
    let (circuits, pairs) = (circuits(), set_up(36));
    let seeds = joined(&pairs, &shares, [1, 2], [honest(), honest()]).results.map(Result::unwrap);
    let ran = both([honest(), honest()], seeds, async |index, seed, channel| {
        let ready = Ready::new(&pairs[index], &circuits[1], channel, &mut seeded(7, index)).await.unwrap();
        seed.confirm(&pairs[index], &circuits[0], ready, channel).await.map(|_| ())
    });
    assert!(ran.results.iter().all(|result| matches!(result, Err(Abort::Caller(_)))));
    assert!(pairs.iter().all(|pair| !pair.ended()));
}
