//! Parties that deviate while they sign. A hash of a few gates takes the place of SHA-512, so that there is time for
//! many runs; everything after the hash is the code that signs.

use std::io;

use curve25519_dalek::constants::EIGHT_TORSION;
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::Scalar;
use primitives::Secret;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use sha2::{Digest, Sha512};

use super::rfc8032::challenge;
use super::tests::{Memory, verifies};
use super::{Import, NonceCircuit, NonceRecord, PairKey, Ready};
use crate::authenticated::dabits::point;
use crate::authenticated::flips::{Unread, everywhere};
use crate::authenticated::wire::{Edit, Ran, again, both, cut, flip, hold, honest, seeded, set_up};
use crate::authenticated::{Abort, Pair};

/// Mixes prefix and message, reads all of both, and has the ports of the nonce's circuit.
const HASH: &str = "package main

type Garbler struct {
	prefix [32]byte
	mask   uint608
}

type Evaluator struct {
	prefix [32]byte
	mask   uint608
	known  [KNOWN]byte
}

func main(garbler Garbler, evaluator Evaluator) uint610 {
	var nonce uint610
	for i := 0; i < 64; i++ {
		secret := garbler.prefix[i%32] ^ evaluator.prefix[i%32]
		mixed := secret + evaluator.known[i] ^ secret<<3 & evaluator.known[i+32]
		nonce |= uint610(mixed) << (8 * i)
	}
	return nonce + uint610(garbler.mask) + uint610(evaluator.mask)
}
";

pub(super) fn circuit() -> NonceCircuit {
    NonceCircuit::of(HASH, 1).unwrap()
}

/// A record whose storage is gone.
struct Broken;

impl NonceRecord for Broken {
    fn settle(&mut self, _: &[u8; 32], _: &[u8; 64], _: &[u8; 32]) -> io::Result<[u8; 32]> {
        Err(io::ErrorKind::StorageFull.into())
    }
}

fn import() -> Import {
    Import::from_seed(&Secret::new([5; 32]), 3, &mut ChaCha20Rng::seed_from_u64(9)).unwrap()
}

/// Two parties of a key with their set-up.
struct Couple {
    circuit: NonceCircuit,
    pairs: [Pair; 2],
    keys: [PairKey; 2],
}

fn join(import: &Import, parties: [usize; 2], seed: u64) -> Couple {
    let pairs = set_up(seed);
    let shares = parties.map(|number| &import.shares[number - 1]);
    let peers = [shares[1].number, shares[0].number];
    let keys = both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
        let rng = &mut seeded(100 + seed, index);
        shares[index].join(&pairs[index], peers[index], channel, rng).await.unwrap().unchecked()
    });
    Couple { circuit: circuit(), pairs, keys: keys.results }
}

type Signed = Ran<Result<[u8; 64], Abort>>;

impl Couple {
    fn ready(&self, seed: u64) -> [Ready; 2] {
        both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
            Ready::new(&self.pairs[index], &self.circuit, channel, &mut seeded(seed, index)).await.unwrap()
        })
        .results
    }

    /// Signs online with changed messages.
    fn sign<N: NonceRecord + Send>(
        &self,
        message: &[u8],
        seed: u64,
        records: [N; 2],
        edits: [Edit; 2],
    ) -> Signed {
        self.sign_prepared(&self.pairs, message, self.ready(seed), records, edits)
    }

    /// The same from a preparation, under these set-ups.
    fn sign_prepared<N: NonceRecord + Send>(
        &self,
        pairs: &[Pair; 2],
        message: &[u8],
        [first, second]: [Ready; 2],
        [one, two]: [N; 2],
        edits: [Edit; 2],
    ) -> Signed {
        both(edits, [(first, one), (second, two)], async |index, (ready, mut record), channel| {
            self.keys[index].sign(&pairs[index], &self.circuit, ready, message, &mut record, channel).await
        })
    }

    fn signature(&self, message: &[u8], seed: u64, records: [Memory; 2]) -> [u8; 64] {
        let [first, second] =
            self.sign(message, seed, records, [honest(), honest()]).results.map(Result::unwrap);
        assert_eq!(first, second);
        assert!(verifies(self.keys[0].public_key(), message, &first));
        first
    }
}

/// The number of the message that opens R, of the garbler and of the evaluator; the next one is the contribution to S,
/// and the last.
const POINT: [usize; 2] = [3, 3];
/// Messages of a party that refuses the peer's contribution to R: the evaluator has said its own before it hears that,
/// the garbler has not.
const STOPPED: [usize; 2] = [POINT[0], POINT[1] + 1];

/// A change of one message by one role, with the causes that the honest peer may give. `always` if each such change is
/// found.
struct Row {
    name: &'static str,
    by: usize,
    message: usize,
    places: &'static [usize],
    causes: &'static [u32],
    always: bool,
}

const ROWS: &[Row] = &[
    Row { name: "share of the prefix", by: 0, message: 0, places: &[0, 18, 31], causes: &[12], always: true },
    Row { name: "mask", by: 0, message: 0, places: &[32, 68, 107], causes: &[12], always: true },
    Row { name: "proof of the input", by: 0, message: 0, places: &[108, 139], causes: &[12], always: true },
    Row { name: "labels", by: 0, message: 0, places: &[140, 13_963], causes: &[9, 10], always: false },
    Row {
        name: "labels of the peer's input",
        by: 0,
        message: 0,
        places: &[13_967, 18_964],
        causes: &[9, 10],
        always: false,
    },
    Row {
        name: "labels of public wires",
        by: 0,
        message: 0,
        places: &[27_788, 27_812],
        causes: &[9, 10],
        always: false,
    },
    Row { name: "proof of the tables", by: 0, message: 1, places: &[0, 31], causes: &[10], always: true },
    Row {
        name: "masks of the result",
        by: 0,
        message: 2,
        places: &[0, 40, 100],
        causes: &[4, 8],
        always: true,
    },
    Row { name: "nonce point", by: 0, message: 3, places: &[0, 13, 31], causes: &[4, 13], always: true },
    Row { name: "MAC of the nonce point", by: 0, message: 3, places: &[32, 63], causes: &[13], always: true },
    Row { name: "part of S", by: 0, message: 4, places: &[0, 20, 31], causes: &[4, 14], always: true },
    Row { name: "key and message", by: 1, message: 0, places: &[0, 31], causes: &[3], always: true },
    Row {
        name: "share of the prefix",
        by: 1,
        message: 0,
        places: &[32, 50, 63],
        causes: &[12],
        always: true,
    },
    Row { name: "mask", by: 1, message: 0, places: &[64, 100, 139], causes: &[12], always: true },
    Row { name: "proof of the input", by: 1, message: 0, places: &[140, 171], causes: &[12], always: true },
    Row { name: "named public bits", by: 1, message: 1, places: &[0, 100], causes: &[9], always: true },
    Row {
        name: "masks of the result",
        by: 1,
        message: 2,
        places: &[0, 40, 100],
        causes: &[4, 8],
        always: true,
    },
    Row { name: "nonce point", by: 1, message: 3, places: &[0, 13, 31], causes: &[4, 13], always: true },
    Row { name: "MAC of the nonce point", by: 1, message: 3, places: &[32, 63], causes: &[13], always: true },
    Row { name: "part of S", by: 1, message: 4, places: &[0, 20, 31], causes: &[4, 14], always: true },
];

/// Some are of bits that no AND gate reads here.
const LABELS: Unread = Unread { by: 0, message: 0, bytes: 140..usize::MAX };

#[test]
fn a_changed_message_ends_in_its_cause_and_excludes_its_sender() {
    let couple = join(&import(), [1, 2], 20);
    let expected = couple.signature(b"message", 1, Default::default());
    // All of them go on from one preparation.
    let ready = couple.ready(1);
    let sign = |edits: [Edit; 2]| {
        let pairs = again(&couple.pairs);
        let records = <[Memory; 2]>::default();
        let ran = couple.sign_prepared(&pairs, b"message", ready.clone(), records, edits);
        (ran, pairs.each_ref().map(Pair::ended))
    };
    everywhere(1, &[LABELS], &expected, |edits| {
        let (ran, ended) = sign(edits);
        (ran.results, ended)
    });
    for row in ROWS {
        let mut found = 0;
        for place in row.places {
            let mut edits = [honest(), honest()];
            edits[row.by] = flip(row.message, *place, 2);
            let (ran, ended) = sign(edits);
            let name = format!("{} of {} at {place}", row.name, row.by);
            let mut aborted = false;
            let sent = ran.sent;
            for (index, result) in ran.results.into_iter().enumerate() {
                match result {
                    Ok(signature) => assert_eq!(signature, expected, "{name}"),
                    Err(Abort::Channel(_)) => {}
                    Err(abort) => {
                        aborted = true;
                        // The garbler speaks first, so it has said its contribution to S before it hears another.
                        let said = row.by == 1 && abort.number() == 14;
                        assert!(
                            index == row.by || said || sent[index] <= POINT[index] + 1,
                            "{name}: part of S"
                        );
                        assert!(row.causes.contains(&abort.number()), "{name}: {abort:?}");
                        assert_eq!(ended[index], abort.excludes_peer(), "{name}");
                        // A changed label may show first at the garbler, in the evaluator's names of what it got.
                        assert!(index != row.by || row.causes.contains(&9), "{name}");
                    }
                }
            }
            assert!(aborted || !row.always, "{name}: nobody noticed");
            found += usize::from(aborted);
        }
        assert!(found > 0, "{} of {}", row.name, row.by);
    }
}

/// The secret scalar, which two answers under one nonce and different challenges give away.
fn extract(responses: [Scalar; 2], challenges: [Scalar; 2]) -> Scalar {
    (responses[0] - responses[1]) * (challenges[0] - challenges[1]).invert()
}

#[test]
fn two_answers_under_one_nonce_would_give_the_key() {
    let (nonce, secret) = (Scalar::from(3u8), Scalar::from(5u8));
    let challenges = [[1; 32], [2; 32]].map(|point| challenge(&point, &[0; 32], b"message"));
    assert_eq!(extract(challenges.map(|c| nonce + c * secret), challenges), secret);
}

/// Replaces the nonce point by itself plus another, with its MAC plus that times a guess of Γ.
fn shifted(role: usize, by: EdwardsPoint, guess: Scalar) -> Edit {
    Box::new(move |number, start, bytes| {
        if number == POINT[role] && start == 0 {
            for (place, by) in bytes.as_chunks_mut::<32>().0.iter_mut().zip([by, -(by * guess)]) {
                *place = (point(place).unwrap() + by).compress().to_bytes();
            }
        }
    })
}

/// The trap of deterministic signatures: the first run on a message is honest, and in the second the corrupt party
/// opens another R. The honest party must not answer: a contribution to S under another challenge is all that the
/// extraction needs.
#[test]
fn another_nonce_point_in_a_second_run_gets_no_answer() {
    let import = import();
    let base = EdwardsPoint::mul_base(&Scalar::ONE);
    let shifts =
        [(base, Scalar::ZERO), (base, Scalar::from(1u128 << 100)), (-base, -Scalar::ONE)].into_iter().chain(
            EIGHT_TORSION[1..].iter().flat_map(|torsion| [(*torsion, Scalar::ZERO), (*torsion, Scalar::ONE)]),
        );
    for (number, (by, guess)) in shifts.enumerate() {
        let corrupt = number % 2;
        let records = <[Memory; 2]>::default();
        let couple = join(&import, [1, 2], 30);
        if number < 2 {
            couple.signature(b"message", 1, records.clone());
        }
        let mut edits = [honest(), honest()];
        edits[corrupt] = shifted(corrupt, by, guess);
        let ran = couple.sign(b"message", 2, records, edits);
        let victim = &ran.results[1 - corrupt];
        assert!(matches!(victim, Err(Abort::Point)), "shift {number}");
        assert!(couple.pairs[1 - corrupt].ended());
        assert_eq!(ran.sent[1 - corrupt], STOPPED[1 - corrupt], "no part of S");
        // The set-up is gone for good.
        let again = both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
            Ready::new(&couple.pairs[index], &couple.circuit, channel, &mut seeded(3, index))
                .await
                .map(|_| ())
        });
        assert!(matches!(again.results[1 - corrupt], Err(Abort::Caller(_))));
    }
}

/// The corrupt party plays the same with two honest partners, whose records know nothing of each other, and with one
/// whose record was restored from before: the MAC of R stops it, not the record.
#[test]
fn two_honest_partners_or_a_restored_record_give_no_second_answer() {
    let import = import();
    let base = EdwardsPoint::mul_base(&Scalar::ONE);
    // Party 2 is corrupt; with 1 it evaluates, with 3 it garbles.
    let first = join(&import, [1, 2], 40);
    let second = join(&import, [2, 3], 41);
    let signature = first.signature(b"message", 1, Default::default());
    let ran =
        second.sign(b"message", 2, <[Memory; 2]>::default(), [shifted(0, base, Scalar::ZERO), honest()]);
    assert!(matches!(ran.results[1], Err(Abort::Point)) && ran.sent[1] == STOPPED[1]);
    // Restored: the honest party 1 has forgotten the message.
    let ran = first.sign(b"message", 3, <[Memory; 2]>::default(), [honest(), shifted(1, base, Scalar::ZERO)]);
    assert!(matches!(ran.results[0], Err(Abort::Point)) && ran.sent[0] == STOPPED[0]);
    // Honestly, all pairs and all restored records give one signature.
    let third = join(&import, [1, 3], 42);
    let fourth = join(&import, [2, 3], 43);
    for couple in [&third, &fourth] {
        assert_eq!(couple.signature(b"message", 4, Default::default()), signature);
    }
}

/// The second line: where an import gave two pairs different prefixes, the record of the party in both refuses the
/// second R.
#[test]
fn the_record_refuses_another_nonce_for_the_same_message() {
    let mut import = import();
    let wrong = import.shares[2].prefixes.get_mut(&1).unwrap();
    wrong.expose_mut()[7] ^= 1;
    let memory = Memory::default();
    let first = join(&import, [1, 2], 50);
    first.signature(b"message", 1, [memory.clone(), Memory::default()]);
    let second = join(&import, [1, 3], 51);
    let ran = second.sign(b"message", 2, [memory.clone(), Memory::default()], [honest(), honest()]);
    assert!(matches!(ran.results[0], Err(Abort::OtherNonce)));
    assert_eq!(ran.sent[0], POINT[0] + 1, "no part of S");
    assert!(matches!(ran.results[1], Err(Abort::Channel(_))) && second.pairs[0].ended());
    // Another message has no record yet, and a correct prefix gives the same point again.
    first.signature(b"message", 3, [memory, Memory::default()]);
}

#[test]
fn nothing_is_signed_where_the_record_fails() {
    let couple = join(&import(), [1, 2], 60);
    let ran = couple.sign(b"message", 1, [Broken, Broken], [honest(), honest()]);
    for result in ran.results {
        assert!(matches!(result, Err(Abort::Record(_) | Abort::Channel(_))));
    }
    assert_eq!(ran.sent, [POINT[0] + 1, POINT[1] + 1]);
    assert!(couple.pairs.iter().all(|pair| !pair.ended()));
}

/// A peer that failed a check in one run gets no contribution to S in another that is under way.
#[test]
fn a_check_that_fails_in_another_run_stops_the_signature() {
    let couple = join(&import(), [1, 2], 65);
    let (held, reached, go_on) = hold(POINT[1]);
    std::thread::scope(|scope| {
        let couple = &couple;
        let run = scope.spawn(|| couple.sign(b"message", 1, <[Memory; 2]>::default(), [honest(), held]));
        reached.recv().unwrap();
        let other = both([honest(), flip(1, 0, 1)], [0, 1], async |index, _: usize, channel| {
            Ready::new(&couple.pairs[index], &couple.circuit, channel, &mut seeded(2, index))
                .await
                .map(|_| ())
        });
        assert!(matches!(other.results[0], Err(Abort::Transfer)));
        go_on.send(()).unwrap();
        let ran = run.join().unwrap();
        assert!(matches!(ran.results[0], Err(Abort::Caller(_))), "{:?}", ran.results);
        assert_eq!(ran.sent[0], POINT[0], "no nonce point, and no part of S");
    });
}

/// A share that changed in memory: its contribution to S, beside the correct points, would tell what it should be.
#[test]
fn a_party_whose_share_is_damaged_says_no_part_of_it() {
    for (role, damaged) in [(0, [7; 32]), (1, [7; 32]), (1, [255; 32])] {
        let mut couple = join(&import(), [1, 2], 66);
        couple.keys[role].share = Secret::new(damaged);
        let ran = couple.sign(b"message", 1, <[Memory; 2]>::default(), [honest(), honest()]);
        assert!(matches!(ran.results[role], Err(Abort::Caller(_))), "{:?}", ran.results);
        assert_eq!(ran.sent[role], POINT[role] + 1, "no part of S");
        assert!(couple.pairs.iter().all(|pair| !pair.ended()));
    }
}

/// A fault between the record and S would make a second message under the nonce of the first.
#[test]
fn a_message_that_changed_in_memory_has_no_challenge() {
    let couple = join(&import(), [1, 2], 67);
    let of = |message: &[u8], public: &[u8], digest: &[u8; 64]| {
        couple.keys[0].challenge(&couple.circuit, &[9; 32], message, public, digest)
    };
    let digest: [u8; 64] = Sha512::digest(b"message").into();
    let public = couple.circuit.public_wires(b"message").unwrap();
    assert_eq!(
        of(b"message", &public, &digest).unwrap(),
        challenge(&[9; 32], couple.keys[0].public_key(), b"message")
    );
    let other = couple.circuit.public_wires(b"massage").unwrap();
    for (message, public, digest) in [
        (b"massage", &public, digest),
        (b"message", &public, Sha512::digest(b"massage").into()),
        (b"message", &other, digest),
    ] {
        assert!(matches!(of(message, public, &digest), Err(Abort::Caller(_))));
    }
}

/// A party killed at any step, and the run repeated: the same signature, and nobody is excluded.
#[test]
fn a_run_that_ends_anywhere_is_repeated_with_the_same_result() {
    let import = import();
    let couple = join(&import, [1, 2], 70);
    let records = <[Memory; 2]>::default();
    let expected = couple.signature(b"other", 1, <[Memory; 2]>::default());
    let ready = couple.ready(10);
    for role in 0..2 {
        for message in 0..=POINT[role] + 1 {
            let mut edits = [honest(), honest()];
            edits[role] = cut(message);
            let ran = couple.sign_prepared(&couple.pairs, b"other", ready.clone(), records.clone(), edits);
            for result in ran.results {
                match result {
                    Ok(signature) => assert_eq!(signature, expected),
                    Err(abort) => assert!(matches!(abort, Abort::Channel(_)), "{abort:?}"),
                }
            }
            assert!(couple.pairs.iter().all(|pair| !pair.ended()));
        }
    }
    assert_eq!(couple.signature(b"other", 2, records), expected);
}

#[test]
fn parties_that_sign_other_messages_or_with_other_keys_stop_before_anything_is_said() {
    let import = import();
    let couple = join(&import, [1, 2], 80);
    let [first, second] = couple.ready(1);
    let given = [(first, b"one"), (second, b"two")];
    let ran = both([honest(), honest()], given, async |index, (ready, message), channel| {
        let (pair, key) = (&couple.pairs[index], &couple.keys[index]);
        key.sign(pair, &couple.circuit, ready, message, &mut Memory::default(), channel).await
    });
    assert!(matches!(ran.results[0], Err(Abort::Disagreement)) && ran.sent[0] == 0);
    assert!(couple.pairs.iter().all(|pair| !pair.ended()));
}

#[test]
fn a_share_of_another_key_or_place_is_refused() {
    let import = import();
    let pairs = set_up(90);
    let other = Import::from_seed(&Secret::new([6; 32]), 2, &mut ChaCha20Rng::seed_from_u64(1)).unwrap();
    // Set up in the other role; a peer without a share; and different keys.
    for (shares, peers) in [
        ([&import.shares[1], &import.shares[0]], [1, 2]),
        ([&import.shares[0], &import.shares[1]], [4, 1]),
        ([&import.shares[0], &other.shares[1]], [2, 1]),
    ] {
        let ran = both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
            shares[index].join(&pairs[index], peers[index], channel, &mut seeded(1, index)).await.map(|_| ())
        });
        assert!(ran.results.iter().any(|r| matches!(r, Err(Abort::Caller(_) | Abort::Disagreement))));
    }
    // A share that is at another place of the line.
    let mut moved = self::import();
    moved.shares[1].number = 3;
    let ran = both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
        let peers = [3, 1];
        let shares = &moved.shares;
        shares[index].join(&pairs[index], peers[index], channel, &mut seeded(2, index)).await.map(|_| ())
    });
    assert!(matches!(ran.results[1], Err(Abort::Caller(_))) && ran.sent[1] == 0);
    for parties in [0, 1, 21] {
        let rng = &mut ChaCha20Rng::seed_from_u64(1);
        assert!(Import::from_seed(&Secret::new([6; 32]), parties, rng).is_none());
    }
}
