//! Hardened children of BIP-32.

use std::sync::LazyLock;

use primitives::Secret;
use primitives::secp256k1::{
    Point, Scalar, decode_point, decode_scalar, encode_point, encode_scalar, mul_generator,
};

use super::super::tests::{join, split};
use super::super::{KeyShares, Node, PublicNode, Ready, Step, StepCircuit};
use super::{Row, check, labels, row};
use crate::authenticated::dabits::{Group, Secp256k1};
use crate::authenticated::flips::{Unread, everywhere};
use crate::authenticated::wire::{Edit, Ran, again, both, cut, flip, hold, honest, seeded, set_up};
use crate::authenticated::{Abort, Pair};

/// Has the ports of the circuit of a child, reads all of them, and its left half is the parent's key ⊕ the chain code.
const MIX: &str = "package main

const Order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141
const Excess = 0x14551231950b75fc4402da1732fc9bebf

type Garbler struct {
	share uint256
	mask  uint352
}

type Evaluator struct {
	share      uint256
	mask       uint352
	correction uint256
	chain      [32]byte
	index      uint32
}

func main(garbler Garbler, evaluator Evaluator) (uint354, bool, [32]byte) {
	sum := uint258(garbler.share) + uint258(evaluator.share) + uint258(evaluator.correction)
	var once, twice uint258
	if sum>>256&1 == 1 {
		once = Excess
	}
	if sum>>257&1 == 1 {
		twice = Excess << 1
	}
	key := uint258(uint256(sum)) + (once ^ twice)
	less := key + Excess
	if less>>256 != 0 {
		key = less
	}
	var left uint354
	var chain [32]byte
	for i := 0; i < 32; i++ {
		part := byte(key >> (248 - 8*i))
		left = left<<8 | uint354(part^evaluator.chain[i])
		chain[i] = part&evaluator.chain[31-i] + byte(evaluator.index>>(i%4*8))
	}
	return left + uint354(garbler.mask) + uint354(evaluator.mask), left < Order, chain
}
";

const KEY: [u8; 32] = [0x5a; 32];
const CHAIN: [u8; 32] = [0x21; 32];
const INDEX: u32 = 44;

/// Two parties of a key with their set-up.
struct Couple {
    circuit: &'static StepCircuit,
    pairs: [Pair; 2],
    nodes: [Node; 2],
}

type Derived = Ran<Result<Option<Node>, Abort>>;

impl Couple {
    /// All couples begin with the same set-up.
    fn new(chain: &[u8; 32], seed: u64) -> Couple {
        static CIRCUIT: LazyLock<StepCircuit> = LazyLock::new(|| StepCircuit::of(Step::Child, MIX).unwrap());
        static PAIRS: LazyLock<[Pair; 2]> = LazyLock::new(|| set_up(20));
        Couple { circuit: &CIRCUIT, pairs: again(&PAIRS), nodes: split(&KEY, chain, true, seed) }
    }

    /// The preparation of every couple's first derivation.
    fn first(&self) -> [Ready; 2] {
        static FIRST: LazyLock<[Ready; 2]> = LazyLock::new(|| Couple::new(&CHAIN, 20).ready(1));
        FIRST.clone()
    }

    fn ready(&self, seed: u64) -> [Ready; 2] {
        both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
            Ready::new(&self.pairs[index], self.circuit, channel, &mut seeded(seed, index)).await.unwrap()
        })
        .results
    }

    /// Derives online with changed messages.
    fn derive_prepared(&self, ready: [Ready; 2], numbers: [u32; 2], edits: [Edit; 2]) -> Derived {
        let [first, second] = ready;
        both(edits, [(first, numbers[0]), (second, numbers[1])], async |index, (ready, number), channel| {
            self.nodes[index].hardened(&self.pairs[index], self.circuit, ready, number, channel).await
        })
    }

    fn derive(&self, edits: [Edit; 2]) -> Derived {
        self.derive_prepared(self.first(), [INDEX; 2], edits)
    }

    /// The private key and the chain code of the child, with this preparation.
    fn child(&self, ready: [Ready; 2]) -> ([u8; 32], [u8; 32]) {
        let nodes = self
            .derive_prepared(ready, [INDEX; 2], [honest(), honest()])
            .results
            .map(|node| node.unwrap().unwrap());
        (join(&nodes), nodes[0].public().chain_code)
    }
}

/// The results of the circuit: key and chain code.
fn expected(key: &[u8; 32], chain: &[u8; 32]) -> ([u8; 32], [u8; 32]) {
    let index = (INDEX | 1 << 31).to_le_bytes();
    let left: [u8; 32] = std::array::from_fn(|i| key[i] ^ chain[i]);
    let right = std::array::from_fn(|i| (key[i] & chain[31 - i]).wrapping_add(index[i % 4]));
    (encode_scalar(&(decode_scalar(&left).unwrap() + decode_scalar(key).unwrap())), right)
}

/// The number of the message that opens a point, of the garbler and of the evaluator; both are the last.
const POINT: [usize; 2] = [4, 4];

const ROWS: &[Row] = &[
    row("key and number", 0, 0, &[0, 31], &[3]),
    row("another share", 0, 0, &[32, 50, 63], &[13]),
    row("MAC of the share", 0, 0, &[64, 65, 96], &[13]),
    row("bits of the share", 0, 1, &[0, 31], &[12]),
    row("mask", 0, 1, &[32, 68, 75], &[12]),
    row("proof of the input", 0, 1, &[76, 107], &[12]),
    labels("labels", 0, 1, &[108, 4168, 9835]),
    labels("labels of the peer's input", 0, 1, &[9839, 14_836]),
    labels("labels of public wires", 0, 1, &[19_564, 23_696]),
    row("proof of the tables", 0, 2, &[0, 31], &[10]),
    row("masks of the result", 0, 3, &[0, 40, 75, 100], &[4, 8]),
    row("point", 0, 4, &[0, 1, 32], &[4, 13]),
    row("MAC of the point", 0, 4, &[33, 34, 65], &[13]),
    row("another share", 1, 0, &[0, 20, 31], &[13]),
    row("MAC of the share", 1, 0, &[32, 33, 64], &[13]),
    row("agreement", 1, 1, &[0, 31], &[3]),
    row("bits of the share", 1, 1, &[32, 63], &[12]),
    row("mask", 1, 1, &[64, 107], &[12]),
    row("proof of the input", 1, 1, &[108, 139], &[12]),
    row("named public bits", 1, 2, &[0, 100], &[9]),
    row("masks of the result", 1, 3, &[0, 40, 75, 100], &[4, 8]),
    row("point", 1, 4, &[0, 1, 32], &[4, 13]),
    row("MAC of the point", 1, 4, &[33, 34, 65], &[13]),
];

/// Some are of bits that no AND gate reads here.
const LABELS: Unread = Unread { by: 0, message: 1, bytes: 108..usize::MAX };

#[test]
fn a_changed_message_ends_in_its_cause_and_excludes_its_sender() {
    let couple = Couple::new(&CHAIN, 20);
    let key = join(&couple.nodes);
    assert_eq!(key, KEY);
    let expected = expected(&KEY, &CHAIN);
    assert_eq!(couple.child(couple.first()), expected);
    let key = mul_generator(&decode_scalar(&expected.0).unwrap());
    let honest = PublicNode { public_key: encode_point(&key), chain_code: expected.1 };
    let run = |edits: [Edit; 2]| {
        let couple = Couple::new(&CHAIN, 20);
        let ran = couple.derive(edits);
        let results = ran.results.map(|result| result.map(|node| *node.unwrap().public()));
        (results, couple.pairs.each_ref().map(Pair::ended))
    };
    check(ROWS, &honest, run);
    everywhere(1, &[LABELS], &honest, run);
}

/// A child of another key would be found by no wallet, and its public key would tell about the honest share.
#[test]
fn a_party_with_another_share_than_its_point_says_is_refused() {
    for corrupt in 0..2 {
        let mut couple = Couple::new(&CHAIN, 21);
        let share = &mut couple.nodes[corrupt].share;
        let other = decode_scalar(share.expose()).unwrap() + Scalar::ONE;
        *share = Secret::new(encode_scalar(&other));
        let ran = couple.derive([honest(), honest()]);
        assert!(matches!(ran.results[1 - corrupt], Err(Abort::Point)), "{corrupt}");
        assert!(couple.pairs[1 - corrupt].ended());
        // The garbler's share comes first, and an evaluator says nothing before it is checked.
        assert_eq!(ran.sent[1 - corrupt], corrupt, "nothing was evaluated");
    }
}

/// A child is a parent like any other, and the share of one level opens no other.
#[test]
fn a_child_has_children_and_takes_no_share_of_its_parent() {
    let first = expected(&KEY, &CHAIN);
    for corrupt in 0..2 {
        let mut couple = Couple::new(&CHAIN, 28);
        let nodes = couple.derive([honest(), honest()]).results.map(|node| node.unwrap().unwrap());
        let parents = std::mem::replace(&mut couple.nodes, nodes);
        assert_eq!(couple.child(couple.ready(2)), expected(&first.0, &first.1));
        couple.nodes[corrupt].share = Secret::new(*parents[corrupt].share().expose());
        let ran = couple.derive([honest(), honest()]);
        assert!(matches!(ran.results[1 - corrupt], Err(Abort::Point)), "{corrupt}");
        assert!(couple.pairs[1 - corrupt].ended());
    }
}

/// Feeding share + q would compute the same child, and tell by a comparison in the circuit whether the other share is
/// large.
#[test]
fn share_plus_q_has_no_encoding() {
    let mut couple = Couple::new(&CHAIN, 22);
    let ready = couple.first();
    // A share for which even what is missing in it plus q would fit 32 bytes.
    let bound = ready[0].bits.number::<Secp256k1>(0..Secp256k1::SHARE_BITS).unwrap();
    let own = *bound.value() + Scalar::from(5u64);
    let other = decode_scalar(&[3; 32]).unwrap();
    let points = [own, other].map(|share| mul_generator(&share));
    let public = PublicNode { public_key: encode_point(&(points[0] + points[1])), chain_code: CHAIN };
    couple.nodes = [(own, 0), (other, 1)].map(|(share, index): (Scalar, usize)| {
        let share = Secret::new(encode_scalar(&share));
        let [point, their_point] = [index, 1 - index].map(|index| encode_point(&points[index]));
        Node::from_sum(public, &KeyShares { share: &share, point: &point, their_point: &their_point })
            .unwrap()
    });
    let plus_order: Edit = Box::new(|number, start, bytes| {
        if number == 0 && start == 0 {
            assert_eq!(bytes[32], 5);
            let mut carry = 1u16;
            for (byte, order) in bytes[32..64].iter_mut().zip(Secp256k1::bytes(&-Scalar::ONE)) {
                carry += u16::from(*byte) + u16::from(order);
                *byte = carry as u8;
                carry >>= 8;
            }
            assert_eq!(carry, 0);
        }
    });
    let ran = couple.derive_prepared(ready, [INDEX; 2], [plus_order, honest()]);
    assert!(matches!(ran.results[1], Err(Abort::Malformed)) && couple.pairs[1].ended());
}

/// Replaces the point by itself plus another, with its MAC plus that times a guess of Γ.
fn shifted(role: usize, by: Point, guess: Scalar) -> Edit {
    Box::new(move |number, start, bytes| {
        if number == POINT[role] && start == 0 {
            for (place, by) in bytes.as_chunks_mut::<33>().0.iter_mut().zip([by, -(by * guess)]) {
                *place = encode_point(&(decode_point(place).unwrap() + by));
            }
        }
    })
}

#[test]
fn another_point_has_no_mac() {
    let guesses = [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(1u64 << 63)];
    for (number, guess) in guesses.into_iter().enumerate() {
        for corrupt in 0..2 {
            let couple = Couple::new(&CHAIN, 23);
            let mut edits = [honest(), honest()];
            edits[corrupt] = shifted(corrupt, mul_generator(&Scalar::from(1 + number as u64)), guess);
            let ran = couple.derive(edits);
            assert!(matches!(ran.results[1 - corrupt], Err(Abort::Point)), "{number} {corrupt}");
            assert!(couple.pairs[1 - corrupt].ended());
            // The set-up is gone for good.
            let again = both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
                Ready::new(&couple.pairs[index], couple.circuit, channel, &mut seeded(3, index))
                    .await
                    .map(|_| ())
            });
            assert!(matches!(again.results[1 - corrupt], Err(Abort::Caller(_))));
        }
    }
}

/// daBits whose answer to the check is another one: the last message of a preparation.
#[test]
fn a_wrong_dabit_ends_the_preparation() {
    let prepare = |edits: [Edit; 2]| {
        let couple = Couple::new(&CHAIN, 24);
        let ran = both(edits, [0, 1], async |index, _: usize, channel| {
            Ready::new(&couple.pairs[index], couple.circuit, channel, &mut seeded(1, index)).await.map(|_| ())
        });
        (ran, couple)
    };
    let last = prepare([honest(), honest()]).0.sent;
    for corrupt in 0..2 {
        let mut edits = [honest(), honest()];
        edits[corrupt] = flip(last[corrupt] - 1, 3, 1);
        let (ran, couple) = prepare(edits);
        assert!(matches!(ran.results[1 - corrupt], Err(Abort::DaBit)), "{corrupt}");
        assert!(couple.pairs[1 - corrupt].ended());
    }
}

/// The evaluator stops between the garbler's point, which it has checked, and its own.
#[test]
fn a_check_that_fails_in_another_run_stops_the_derivation() {
    let couple = Couple::new(&CHAIN, 29);
    let (held, reached, go_on) = hold(POINT[0]);
    std::thread::scope(|scope| {
        let couple = &couple;
        let run = scope.spawn(|| couple.derive([held, honest()]));
        reached.recv().unwrap();
        let other = both([flip(1, 0, 1), honest()], [0, 1], async |index, _: usize, channel| {
            Ready::new(&couple.pairs[index], couple.circuit, channel, &mut seeded(2, index)).await.map(|_| ())
        });
        assert!(matches!(other.results[1], Err(Abort::Transfer)));
        go_on.send(()).unwrap();
        let ran = run.join().unwrap();
        assert!(matches!(ran.results[1], Err(Abort::Caller(_))), "{:?}", ran.results[1].as_ref().err());
        assert_eq!(ran.sent, [POINT[0] + 1, POINT[1]], "no point of the evaluator");
    });
}

/// A party killed at any step, and the derivation repeated: the same child, and nobody is excluded.
#[test]
fn a_derivation_that_ends_anywhere_is_repeated_with_the_same_result() {
    let couple = Couple::new(&CHAIN, 25);
    let expected = expected(&KEY, &CHAIN);
    for role in 0..2 {
        for message in 0..=POINT[role] {
            let mut edits = [honest(), honest()];
            edits[role] = cut(message);
            let ran = couple.derive(edits);
            assert!(matches!(ran.results[role], Err(Abort::Channel(_))));
            for result in ran.results {
                match result {
                    Ok(node) => assert_eq!(node.unwrap().public().chain_code, expected.1),
                    Err(abort) => assert!(matches!(abort, Abort::Channel(_)), "{abort:?}"),
                }
            }
            assert!(couple.pairs.iter().all(|pair| !pair.ended()));
        }
    }
    assert_eq!(couple.child(couple.ready(2)), expected);
}

#[test]
fn parties_that_mean_other_keys_or_children_stop_before_anything_is_said() {
    let couple = Couple::new(&CHAIN, 26);
    let ran = couple.derive_prepared(couple.first(), [1, 2], [honest(), honest()]);
    assert!(matches!(ran.results[1], Err(Abort::Disagreement)) && ran.sent[1] == 0);
    let mut other = Couple::new(&CHAIN, 26);
    other.nodes[1] = split(&[0x5b; 32], &CHAIN, true, 26).into_iter().nth(1).unwrap();
    let ran = other.derive([honest(), honest()]);
    assert!(matches!(ran.results[1], Err(Abort::Disagreement)) && ran.sent[1] == 0);
    let mut other = Couple::new(&CHAIN, 26);
    other.nodes[1] = split(&KEY, &[0x22; 32], true, 26).into_iter().nth(1).unwrap();
    let ran = other.derive([honest(), honest()]);
    assert!(matches!(ran.results[1], Err(Abort::Disagreement)) && ran.sent[1] == 0);
    assert!(couple.pairs.iter().chain(&other.pairs).all(|pair| !pair.ended()));
    // Numbers that are hardened already.
    let ran = couple.derive_prepared(couple.first(), [1 << 31; 2], [honest(), honest()]);
    assert!(ran.results.iter().all(|result| matches!(result, Err(Abort::Caller(_)))) && ran.sent == [0, 0]);
}

/// A party that prepared under another set-up with the same peer would fail its check, and be excluded.
#[test]
fn material_of_another_set_up_derives_nothing_and_excludes_nobody() {
    let mut couple = Couple::new(&CHAIN, 37);
    let ready = couple.first();
    couple.pairs = set_up(38);
    let ran = couple.derive_prepared(ready, [INDEX; 2], [honest(), honest()]);
    assert!(ran.results.iter().all(|result| matches!(result, Err(Abort::Caller(_)))) && ran.sent == [0, 0]);
    assert!(couple.pairs.iter().all(|pair| !pair.ended()));
}

/// The chain code for which the left half is this number.
fn chain_for(left: &[u8; 32]) -> [u8; 32] {
    std::array::from_fn(|i| left[i] ^ KEY[i])
}

#[test]
fn a_child_that_bip32_does_not_have_ends_in_none_and_excludes_nobody() {
    let order = {
        let mut bytes = encode_scalar(&-Scalar::ONE);
        bytes[31] += 1;
        bytes
    };
    let zero = encode_scalar(&-decode_scalar(&KEY).unwrap());
    for (left, sent) in [([0xff; 32], POINT), (order, POINT), (zero, POINT.map(|last| last + 1))] {
        let couple = Couple::new(&chain_for(&left), 27);
        let ran = couple.derive([honest(), honest()]);
        assert!(ran.results.iter().all(|result| matches!(result, Ok(None))), "{left:x?}");
        assert_eq!(ran.sent, sent);
        assert!(couple.pairs.iter().all(|pair| !pair.ended()));
    }
    // Below the order there is one, and for 0 it is the parent's key.
    for left in [encode_scalar(&-Scalar::ONE), [0; 32]] {
        let chain = chain_for(&left);
        assert_eq!(
            {
                let couple = Couple::new(&chain, 27);
                couple.child(couple.first())
            },
            expected(&KEY, &chain)
        );
    }
}
