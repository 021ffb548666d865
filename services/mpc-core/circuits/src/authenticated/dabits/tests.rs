//! daBits under attack, by the prover and by the verifier.

use curve25519_dalek::constants::EIGHT_TORSION;
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::Scalar;

use super::super::wire::{Edit, End, both, cut, flip, honest, seeded, set_up};
use super::super::{Entry, evaluate};
use super::*;
use crate::build::Builder;
use crate::circuit::{Circuit, Lit, Recorder};

const COUNT: usize = 20;
/// Messages before the garbler's corrections and the evaluator's: one of the link, and one that authenticates bits.
const CORRECTIONS: [usize; 2] = [2, 2];
/// Bytes of a column in these messages; the evaluator's challenge comes first.
const COLUMN: usize = 16 * (COUNT + PARITIES) + 64;

fn run(pairs: &[Pair; 2], edits: [Edit; 2]) -> [Result<DaBits, Abort>; 2] {
    both(edits, [&pairs[0], &pairs[1]], async |index, pair, channel| {
        let rng = &mut seeded(1, index);
        pair.guard(async {
            DaBits::random(&mut Link::begin(pair, [9; 32], channel, rng).await?, COUNT, rng).await
        })
        .await
    })
    .results
}

/// Whether both sides hold what they should.
fn consistent(pairs: &[Pair; 2], bits: &[DaBits; 2]) -> bool {
    (0..2).all(|own| {
        let (prover, verifier) = (&bits[own], &bits[1 - own]);
        let delta = *pairs[1 - own].state.sender.global_key();
        (0..prover.tags.len()).all(|i| {
            let bit = prover.input.bits[i];
            bit < 2
                && prover.input.macs[i] == verifier.input.keys[i] ^ (delta * u128::from(bit))
                // Over the integers, so modulo any order.
                && prover.tags[i] == {
                    let [low, high] = verifier.keys[i];
                    let (low, carry) = low.overflowing_add(*verifier.gamma * u128::from(bit));
                    [low, high + u128::from(carry)]
                }
        })
    })
}

#[test]
fn a_bit_has_both_macs() {
    let pairs = set_up(1);
    let bits = run(&pairs, [honest(), honest()]).map(Result::unwrap);
    assert!(consistent(&pairs, &bits));
    let ones: usize = bits.iter().map(|b| b.input.bits.iter().filter(|bit| **bit == 1).count()).sum();
    assert!((8..=32).contains(&ones), "{ones} of 40");
    let [mut own, mut theirs] = bits;
    let (first, second) = (own.take(5), theirs.take(5));
    assert_eq!((first.tags.len(), own.tags.len()), (5, COUNT - 5));
    assert!(consistent(&pairs, &[first, second]));
    for range in [0..3, 2..15] {
        same_number::<Ed25519>(&own, &theirs, range.clone());
        same_number::<Secp256k1>(&own, &theirs, range);
    }
}

/// As zero, a mask would hide nothing.
#[test]
fn bits_that_are_not_there_make_no_number() {
    let pairs = set_up(16);
    let [mut own, _] = run(&pairs, [honest(), honest()]).map(Result::unwrap);
    assert!(own.number::<Ed25519>(0..COUNT).is_ok());
    for range in [0..COUNT + 1, COUNT..COUNT + 1, COUNT + 1..COUNT + 2] {
        assert!(matches!(own.number::<Ed25519>(range), Err(Abort::Caller(_))));
    }
    let _ = own.take(1);
    assert!(matches!(own.number::<Secp256k1>(0..COUNT), Err(Abort::Caller(_))));
}

/// Both sides of a number fit in a group.
fn same_number<G: Group>(own: &DaBits, theirs: &DaBits, range: std::ops::Range<usize>) {
    let (a, b) = (own.number::<G>(range.clone()).unwrap(), theirs.number::<G>(range.clone()).unwrap());
    let bits = own.input.bits[range].iter().rev().fold(0u64, |sum, bit| 2 * sum + u64::from(*bit));
    assert_eq!(G::bytes(&a.value), G::bytes(&G::Scalar::from(bits)));
    for (prover, verifier) in [(&a, &b), (&b, &a)] {
        assert_eq!(G::bytes(&prover.tag), G::bytes(&(*verifier.key + *prover.value * *verifier.gamma)));
        let point = G::mul_base(&prover.value);
        verifier.check(&point, &prover.tag()).unwrap();
        let other = point + G::mul_base(&G::Scalar::from(1));
        assert!(matches!(verifier.check(&other, &prover.tag()), Err(Abort::Point)));
        assert!(matches!(prover.check(&point, &prover.tag()), Err(Abort::Point)));
    }
}

/// The attack that the two readings invite: another bit in one column. It passes if and only if that bit of the
/// verifier's Γ is 0, in every row alike: so it tells a bit of Γ, which is of this session, at the risk of being
/// caught, and nothing of a bit of the prover.
#[test]
fn another_bit_in_one_column_is_a_guess_of_gamma_whatever_the_bit() {
    let [left, _] = run(&set_up(2), [honest(), honest()]).map(Result::unwrap);
    let gamma = left.gamma.to_le_bytes();
    let mut passed = 0;
    for column in [0, 1, 2, 3, 63, 126, 127] {
        let zero = gamma[column / 8] >> (column % 8) & 1 == 0;
        for place in [0, 16, 16 * (COUNT - 1) + 15, 16 * (COUNT + 5) + 7, COLUMN - 64, COLUMN - 32] {
            let pairs = set_up(2);
            let edit = flip(CORRECTIONS[1], 32 + COLUMN * column + place, 1);
            let [garbler, evaluator] = run(&pairs, [honest(), edit]);
            assert_eq!(pairs[0].ended(), !zero, "column {column} place {place}");
            match garbler {
                Ok(bits) => {
                    assert!(zero && consistent(&pairs, &[bits, evaluator.unwrap()]));
                    passed += 1;
                }
                Err(abort) => assert!(!zero && matches!(abort, Abort::DaBit), "{abort}"),
            }
        }
    }
    assert!(passed > 0);
}

/// The prover goes on with any message of a verifier: no deviation of a verifier ends the run for one value of a bit
/// only.
#[test]
fn a_verifier_cannot_make_the_prover_stop() {
    for place in 0..32 {
        let pairs = set_up(3);
        // The evaluator's challenge, and then the garbler's, which follows its answer.
        let [garbler, evaluator] = run(&pairs, [honest(), flip(CORRECTIONS[1], place, 1)]);
        assert!(matches!(garbler, Err(Abort::Channel(_))), "the prover goes on until the verifier leaves");
        assert!(matches!(evaluator, Err(Abort::DaBit)), "the verifier cannot check what it did not ask");
        let pairs = set_up(3);
        let [garbler, evaluator] = run(&pairs, [flip(CORRECTIONS[0] + 1, 176 + place, 1), honest()]);
        assert!(matches!(garbler, Err(Abort::DaBit)) && evaluator.is_ok());
    }
}

#[test]
fn an_altered_answer_is_refused() {
    for place in (0..176).step_by(7).chain([31, 63, 95, 127, 143, 175]) {
        let pairs = set_up(4);
        let [garbler, evaluator] = run(&pairs, [flip(CORRECTIONS[0] + 1, place, 4), honest()]);
        assert!(matches!(evaluator, Err(Abort::DaBit | Abort::Malformed)), "place {place}");
        assert!(garbler.is_err() && pairs[1].ended());
    }
}

#[test]
fn a_peer_that_leaves_is_no_deviation() {
    for message in 0..4 {
        let pairs = set_up(5);
        let [garbler, evaluator] = run(&pairs, [cut(message), honest()]);
        assert!(garbler.is_err() && matches!(evaluator, Err(Abort::Channel(_))), "message {message}");
        assert!(pairs.iter().all(|pair| !pair.ended()));
    }
}

/// The values, beside its true bits, that a garbler commits to and answers with.
#[derive(Clone, Copy)]
struct Cheat {
    committed: u8,
    answered: u8,
    /// The bit of which the parities are: another one than that of the sums.
    parities: Option<u8>,
}

/// A garbler that commits to another number in one row, in all columns alike, and answers as suits it best.
fn cheat(cheat: Option<Cheat>) -> Result<(), Abort> {
    let pairs = set_up(6);
    let [_, evaluator] = both([honest(), honest()], [&pairs[0], &pairs[1]], async |index, pair, channel| {
        let rng = &mut seeded(1, index);
        let link = &mut Link::begin(pair, [9; 32], channel, rng).await?;
        let shares = link.random_shares(COUNT + PARITIES + COLUMNS, rng).await?;
        let (bits, choices) = shares.split_at(COUNT + PARITIES);
        let step = link.step("coterie/dabits/1", Role::Garbler);
        if index == 1 {
            let verifier = Verifier::receive(link, bits, choices).await?;
            link.channel.say(&[3; 32])?;
            let answer = link.channel.block()?;
            return verifier.check(bits, *link.delta, &Challenge::new(&step, &[3; 32], COUNT), &answer);
        }
        let (mut committed, mut answered) = (bits.to_vec(), bits.to_vec());
        // A row whose true bit is 0.
        let row = bits.iter().position(|share| share.bit == 0);
        if let Some((cheat, row)) = cheat.zip(row) {
            committed[row].bit = cheat.committed;
            answered[row].bit = cheat.answered;
        }
        let prover = Prover::correct(link, &step, &committed, choices, rng)?;
        link.channel.flush()?;
        let challenge = link.channel.block()?;
        let challenge = Challenge::new(&step, &challenge, COUNT);
        let mut answer = prover.answer(&answered, &challenge);
        if let Some((row, bit)) = cheat.and_then(|cheat| Some((row?, cheat.parities?))) {
            answered[row].bit = bit;
            answer[128..].copy_from_slice(&prover.answer(&answered, &challenge)[128..]);
        }
        Ok(link.channel.say(&answer)?)
    })
    .results;
    evaluator
}

#[test]
fn a_number_that_is_no_bit_or_another_bit_is_refused() {
    cheat(None).unwrap();
    for (committed, answered) in [(2, 2), (2, 0), (254, 254), (1, 1), (1, 0), (3, 3), (0, 1), (0, 2)] {
        let refused = cheat(Some(Cheat { committed, answered, parities: None }));
        assert!(matches!(refused, Err(Abort::DaBit)), "{committed} {answered}");
    }
    // A bit as a scalar, and the other one under Δ: each of the parities' MACs finds it where the other does not.
    for parities in [0, 1] {
        let refused = cheat(Some(Cheat { committed: 1, answered: 1, parities: Some(parities) }));
        assert!(matches!(refused, Err(Abort::DaBit)), "parities of {parities}");
    }
}

#[test]
fn a_point_opens_with_its_mac_only_and_never_with_a_part_of_small_order() {
    let pairs = set_up(7);
    let [own, theirs] = run(&pairs, [honest(), honest()]).map(Result::unwrap);
    let [own, theirs] = [own, theirs].map(|bits| bits.number::<Ed25519>(0..COUNT).unwrap());
    let point = EdwardsPoint::mul_base(own.value());
    theirs.check(&point, &own.tag()).unwrap();
    let refused = |point: &EdwardsPoint, tag: &[u8; 32]| {
        assert!(matches!(theirs.check(point, tag), Err(Abort::Point)));
    };
    let base = EdwardsPoint::mul_base(&Scalar::ONE);
    refused(&(point + base), &own.tag());
    refused(&-point, &own.tag());
    refused(&point, &theirs.tag());
    for (number, torsion) in EIGHT_TORSION.iter().enumerate().skip(1) {
        // One of these tags fits Γ times the part of small order.
        for part in &EIGHT_TORSION {
            let tag = (EdwardsPoint::mul_base(&own.tag) + part).compress().to_bytes();
            refused(&(point + torsion), &tag);
            if number == 1 && *part != EIGHT_TORSION[0] {
                refused(&point, &tag);
            }
        }
    }
    for guess in 0..64u64 {
        let tag = EdwardsPoint::mul_base(&(*own.tag + Scalar::from(guess))).compress().to_bytes();
        refused(&(point + base), &tag);
    }
}

/// Adds two numbers below q modulo q.
fn add_modulo(builder: &mut Builder<'_>, a: &[Lit], b: &[Lit]) -> Vec<Lit> {
    let order: Vec<Lit> = (-Scalar::ONE)
        .to_bytes()
        .iter()
        .enumerate()
        // q - 1 is even.
        .flat_map(|(i, byte)| (0..8).map(move |j| Lit::constant((byte | u8::from(i == 0)) >> j & 1 == 1)))
        .take(253)
        .collect();
    let sum = builder.add(a, b, Lit::FALSE, 254);
    let less = builder.less(&sum, &order);
    let reduced = builder.sub(&sum, &order, 254);
    let mut chosen = builder.select(less, &sum, &reduced);
    chosen.truncate(253);
    chosen
}

const SHARE_BITS: usize = Ed25519::SHARE_BITS;

/// The sum of two bound shares: 252 bits of each party, and two corrections of 256 bits.
fn sum_circuit() -> Circuit {
    let mut recorder = Recorder::default();
    let mut builder = Builder::new(&mut recorder);
    let parts = [builder.input(0, SHARE_BITS), builder.input(1, SHARE_BITS)];
    let known = builder.input(2, 512);
    let shares: Vec<Vec<Lit>> = parts
        .iter()
        .zip(known.chunks(256))
        .map(|(bits, correction)| add_modulo(&mut builder, bits, &correction[..253]))
        .collect();
    let sum = add_modulo(&mut builder, &shares[0], &shares[1]);
    builder.finish(&sum).unwrap();
    let mut circuit = recorder.circuit;
    circuit.prune();
    circuit.compact()
}

/// Both parties enter shares: the sum as each sees it, and the sum of the true shares.
fn enter(
    edits: [Edit; 2],
    alter: impl Fn(&mut BoundShare<Ed25519>) + Sync,
    online: [Edit; 2],
) -> ([Result<Vec<bool>, Abort>; 2], Vec<bool>) {
    let pairs = set_up(8);
    let circuit = sum_circuit();
    let shares = [[3; 64], [250; 64]].map(|bytes| Scalar::from_bytes_mod_order_wide(&bytes));
    let points = shares.map(|share| EdwardsPoint::mul_base(&share));
    let made =
        both([honest(), honest()], [&pairs[0], &pairs[1]], async |index, pair, channel: &mut End<'_>| {
            Prepared::with_dabits(pair, &circuit, SHARE_BITS, channel, &mut seeded(1, index)).await.unwrap()
        })
        .results;
    let bound = both(edits, made, async |index, (prepared, bits), channel: &mut End<'_>| {
        bits.bind_share(&pairs[index], &prepared, &shares[index], &points[1 - index], channel)
            .await
            .map(|bound| (prepared, bound))
    })
    .results;
    let bound = match bound {
        [Ok(first), Ok(second)] => [first, second],
        [first, second] => {
            let none = |(_, _): (Prepared, BoundShare<Ed25519>)| Vec::new();
            return ([first.map(none), second.map(none)], Vec::new());
        }
    };
    let sum = (shares[0] + shares[1]).to_bytes();
    let expected = (0..253).map(|i| sum[i / 8] >> (i % 8) & 1 == 1).collect();
    let results = both(online, bound, async |index, (prepared, mut bound), channel: &mut End<'_>| {
        if index == 0 {
            alter(&mut bound);
        }
        let public: Vec<u8> = bound
            .corrections
            .iter()
            .flat_map(Scalar::to_bytes)
            .flat_map(|b| (0..8).map(move |i| b >> i & 1))
            .collect();
        let entry = Entry::Fixed { input: &bound.input, public: &public, purpose: [1; 32] };
        evaluate(&pairs[index], prepared, entry, channel).await
    })
    .results;
    (results, expected)
}

#[test]
fn shares_enter_as_their_points_say() {
    let (results, expected) = enter([honest(), honest()], |_| {}, [honest(), honest()]);
    for result in results {
        assert_eq!(result.unwrap(), expected);
    }
}

/// Feeding share + q would compute the same key, and tell by a comparison in the circuit whether the other share is
/// large. Here there is nothing to feed: the correction is below q, and the bits are fixed.
#[test]
fn another_share_or_share_plus_q_is_refused() {
    // The correction plus q is no encoding of a scalar.
    let plus_order: Edit = Box::new(|_, start, bytes| {
        if start == 0 {
            let mut carry = 1u16;
            for (byte, order) in bytes[..32].iter_mut().zip((-Scalar::ONE).to_bytes()) {
                carry += u16::from(*byte) + u16::from(order);
                *byte = carry as u8;
                carry >>= 8;
            }
        }
    });
    let ([_, evaluator], _) = enter([plus_order, honest()], |_| {}, [honest(), honest()]);
    assert!(matches!(evaluator, Err(Abort::Malformed)));
    // Another share, or the same with another MAC.
    for place in [0, 17, 32, 50] {
        let ([_, evaluator], _) = enter([flip(0, place, 1), honest()], |_| {}, [honest(), honest()]);
        assert!(matches!(evaluator, Err(Abort::Point)), "place {place}");
        let ([garbler, _], _) = enter([honest(), flip(0, place, 1)], |_| {}, [honest(), honest()]);
        assert!(matches!(garbler, Err(Abort::Point)), "place {place}");
    }
    // Other bits than the bound ones: entered, or on the way.
    let other_bit = |bound: &mut BoundShare<Ed25519>| bound.input.bits[100] ^= 1;
    let ([_, evaluator], _) = enter([honest(), honest()], other_bit, [honest(), honest()]);
    assert!(matches!(evaluator, Err(Abort::Input)));
    let ([garbler, _], _) = enter([honest(), honest()], |_| {}, [honest(), flip(0, 35, 1)]);
    assert!(matches!(garbler, Err(Abort::Input)));
    // Another correction than the one that was opened.
    let other_correction = |bound: &mut BoundShare<Ed25519>| bound.corrections[0] += Scalar::ONE;
    let ([garbler, _], _) = enter([honest(), honest()], other_correction, [honest(), honest()]);
    assert!(matches!(garbler, Err(Abort::Disagreement)));
}
