//! Import and signature as dialogues: both parties in one thread, and each frame changed on its way.

use std::sync::Arc;

use ed25519_dalek::{Signer, SigningKey};
use primitives::Secret;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::attacks::circuit;
use super::tests::{Memory, verifies};
use super::{Import, MAX_BLOCKS, NonceCircuit, OpenNonce, PairKey, Ready, blocks};
use crate::authenticated::wire::{percent, seeded};
use crate::authenticated::{Abort, Pair, Role};
use crate::dialogue::talk::{Started, Talked, talk, talk_until};
use crate::dialogue::{Dialogue, DialogueLine, DialogueRng};

const SEED: [u8; 32] = [5; 32];
/// Frames of an engine's session, at most: its rounds have numbers below this.
const ROUNDS: usize = 253;

fn import() -> Import {
    Import::from_seed(&Secret::new(SEED), 3, &mut ChaCha20Rng::seed_from_u64(9)).unwrap()
}

fn honest(_: usize, _: usize, _: &mut Vec<u8>) {}

/// Both results of a run without a deviation.
fn agreed<T>(talked: Talked<T>) -> [T; 2] {
    talked.results.map(|result| result.unwrap().unwrap())
}

fn pairs(seed: u64) -> [Arc<Pair>; 2] {
    let side = |role: Role| -> Started<Pair> {
        let protocol = async move |mut line: DialogueLine, mut rng: DialogueRng| {
            Pair::set_up(role, &[7; 32], &mut line, &mut rng).await
        };
        Dialogue::start(protocol, &mut seeded(seed, usize::from(role == Role::Evaluator)))
    };
    agreed(talk([side(Role::Garbler), side(Role::Evaluator)], &mut honest)).map(Arc::new)
}

struct Couple {
    circuit: Arc<NonceCircuit>,
    pairs: [Arc<Pair>; 2],
    keys: [Arc<PairKey>; 2],
}

impl Couple {
    /// Two parties that have taken a key over, but for the test signature.
    fn new(circuit: NonceCircuit, seed: u64) -> Couple {
        let pairs = pairs(seed);
        let [first, second, _] = <[_; 3]>::try_from(import().shares).ok().unwrap();
        let sides = [(first, 2), (second, 1)];
        let mut all = sides.into_iter().zip(&pairs).enumerate().map(|(index, ((share, peer), pair))| {
            let pair = Arc::clone(pair);
            let protocol = async move |mut line: DialogueLine, mut rng: DialogueRng| {
                Ok(share.join(&pair, peer, &mut line, &mut rng).await?.unchecked())
            };
            Dialogue::start(protocol, &mut seeded(seed, index))
        });
        let sides = [all.next().unwrap(), all.next().unwrap()];
        let keys = agreed(talk(sides, &mut honest)).map(Arc::new);
        Couple { circuit: Arc::new(circuit), pairs, keys }
    }

    fn ready(&self, seed: u64) -> Talked<Ready> {
        let sides = [0, 1].map(|index| {
            let (pair, circuit) = (Arc::clone(&self.pairs[index]), Arc::clone(&self.circuit));
            let protocol = async move |mut line: DialogueLine, mut rng: DialogueRng| {
                Ready::new(&pair, &circuit, &mut line, &mut rng).await
            };
            Dialogue::start(protocol, &mut seeded(seed, index))
        });
        talk(sides, &mut honest)
    }

    /// One side of the first half.
    fn opening(&self, index: usize, ready: Ready) -> Started<OpenNonce> {
        let (pair, circuit) = (Arc::clone(&self.pairs[index]), Arc::clone(&self.circuit));
        let key = Arc::clone(&self.keys[index]);
        let protocol = async move |mut line: DialogueLine, _: DialogueRng| {
            key.open_nonce(&pair, &circuit, ready, b"message", &mut line).await
        };
        Dialogue::start(protocol, &mut seeded(1, index))
    }

    fn open(&self, seed: u64, change: &mut dyn FnMut(usize, usize, &mut Vec<u8>)) -> Talked<OpenNonce> {
        let mut ready = agreed(self.ready(seed)).map(Some);
        let sides = [0, 1].map(|index| self.opening(index, ready[index].take().unwrap()));
        talk(sides, change)
    }

    fn answers(&self, nonces: [OpenNonce; 2], recorded: [[u8; 32]; 2]) -> [Started<[u8; 64]>; 2] {
        let mut nonces = nonces.map(Some);
        [0, 1].map(|index| {
            let (pair, circuit) = (Arc::clone(&self.pairs[index]), Arc::clone(&self.circuit));
            let (key, nonce) = (Arc::clone(&self.keys[index]), nonces[index].take().unwrap());
            let protocol = async move |mut line: DialogueLine, _: DialogueRng| {
                key.answer(&pair, &circuit, nonce, b"message", &recorded[index], &mut line).await
            };
            Dialogue::start(protocol, &mut seeded(1, index))
        })
    }

    fn signature(&self, seed: u64) -> [u8; 64] {
        let nonces = agreed(self.open(seed, &mut honest));
        let points = nonces.each_ref().map(|nonce| *nonce.point());
        let [first, second] = agreed(talk(self.answers(nonces, points), &mut honest));
        assert_eq!(first, second);
        first
    }
}

#[test]
fn a_signature_by_dialogues_is_that_of_rfc_8032() {
    let couple = Couple::new(NonceCircuit::new(blocks(b"message".len())).unwrap(), 1);
    assert_eq!(couple.signature(2), SigningKey::from_bytes(&SEED).sign(b"message").to_bytes());
    // The rounds of a session have room for the preparation, whose tables take two frames.
    let prepared = couple.ready(3).frames.map(|frames| frames.len());
    assert!(prepared.iter().all(|frames| *frames < ROUNDS / 4), "{prepared:?}");
}

/// Some gigabytes, so that it runs where all runs are made.
#[test]
fn the_longest_message_is_prepared_in_as_many_frames_as_a_session_has_rounds() {
    if percent() >= 100 {
        let couple = Couple::new(NonceCircuit::new(MAX_BLOCKS).unwrap(), 6);
        let frames = couple.ready(7).frames.map(|frames| frames.len());
        assert!(frames.iter().all(|frames| (200..ROUNDS).contains(frames)), "{frames:?}");
    }
}

#[test]
fn an_import_by_dialogues_ends_with_the_owners_signature() {
    let pairs = pairs(4);
    let [first, second, _] = <[_; 3]>::try_from(import().shares).ok().unwrap();
    let mut shares = [Some((first, 2)), Some((second, 1))];
    let sides = [0, 1].map(|index| {
        let (pair, (share, peer)) = (Arc::clone(&pairs[index]), shares[index].take().unwrap());
        let protocol = async move |mut line: DialogueLine, mut rng: DialogueRng| {
            let key = share.join(&pair, peer, &mut line, &mut rng).await?;
            key.confirm(&pair, &mut Memory::default(), &mut line, &mut rng).await
        };
        Dialogue::start(protocol, &mut seeded(4, index))
    });
    let talked = talk(sides, &mut honest);
    assert!(talked.frames.iter().all(|frames| frames.len() < ROUNDS));
    let keys = agreed(talked);
    assert!(keys.iter().all(|key| *key.public_key() == import().public_key));
}

/// One way in which a frame changes.
type Change = fn(&mut Vec<u8>);

const CHANGES: &[(&str, Change)] = &[
    ("cut", |frame| frame.truncate(frame.len() - 1)),
    ("longer", |frame| frame.push(0)),
    ("gone", Vec::clear),
    ("without a message", |frame| frame.truncate(1)),
    ("half", |frame| frame.truncate(frame.len() / 2)),
    ("twice", |frame| frame.extend_from_within(1..)),
    ("goes on", |frame| frame[0] = 1),
    ("go on", |frame| *frame = vec![2]),
    ("of no kind", |frame| frame[0] = 77),
    ("too long", |frame| frame.resize((1 << 20) + 1, 0)),
];

#[test]
fn a_frame_of_another_form_ends_the_run_and_the_set_up_before_the_nonce_is_used() {
    let expected = Couple::new(circuit(), 20).open(1, &mut honest);
    let counts = expected.frames.each_ref().map(Vec::len);
    for (name, change) in CHANGES {
        for role in 0..2 {
            for number in 0..counts[role] {
                let couple = Couple::new(circuit(), 20);
                let talked = couple.open(1, &mut |from, at, frame| {
                    if (from, at) == (role, number) {
                        change(frame);
                    }
                });
                let place = format!("{name}: frame {number} of {role}");
                let victim = 1 - role;
                match &talked.results[victim] {
                    Some(Err(abort)) => assert!(matches!(abort, Abort::Malformed), "{place}: {abort}"),
                    _ => panic!("{place} is taken"),
                }
                // Bytes after the last message are found when the step is over.
                let after = role == 0 && number + 1 == counts[0] && ["longer", "twice"].contains(name);
                assert_eq!(couple.pairs[victim].ended(), !after, "{place}");
                // The evaluator speaks first.
                assert!(talked.frames[victim].len() <= number + victim, "{place}: goes on");
            }
        }
    }
}

#[test]
fn dialogues_that_are_left_anywhere_are_repeated_with_the_same_signature() {
    let couple = Couple::new(circuit(), 30);
    let expected = couple.signature(1);
    assert!(verifies(couple.keys[0].public_key(), b"message", &expected));
    let frames: usize = couple.open(2, &mut honest).frames.iter().map(Vec::len).sum();
    for most in 0..frames {
        let mut ready = agreed(couple.ready(3)).map(Some);
        let sides = [0, 1].map(|index| couple.opening(index, ready[index].take().unwrap()));
        let left = talk_until(sides, &mut honest, most);
        assert!(left.results.iter().any(Option::is_none), "{most}");
    }
    // After the garbler's contribution to S, and after both.
    for most in [0, 1] {
        let nonces = agreed(couple.open(4, &mut honest));
        let points = nonces.each_ref().map(|nonce| *nonce.point());
        let left = talk_until(couple.answers(nonces, points), &mut honest, most);
        assert!(left.results[0].is_none(), "the garbler hears last");
    }
    assert!(couple.pairs.iter().all(|pair| !pair.ended()));
    assert_eq!(couple.signature(5), expected);
}

#[test]
fn another_recorded_nonce_gets_no_answer() {
    for victim in 0..2 {
        let couple = Couple::new(circuit(), 40);
        let nonces = agreed(couple.open(1, &mut honest));
        let mut points = nonces.each_ref().map(|nonce| *nonce.point());
        points[victim][3] ^= 1;
        let talked = talk(couple.answers(nonces, points), &mut honest);
        assert!(matches!(talked.results[victim], Some(Err(Abort::OtherNonce))));
        assert!(talked.frames[victim].is_empty() && couple.pairs[victim].ended());
    }
}

/// Caller's mistakes: nobody is excluded for them.
#[test]
fn a_nonce_of_another_set_up_or_message_gets_no_answer() {
    let (couple, other) = (Couple::new(circuit(), 50), Couple::new(circuit(), 51));
    let nonces = agreed(other.open(1, &mut honest));
    let points = nonces.each_ref().map(|nonce| *nonce.point());
    for started in couple.answers(nonces, points) {
        assert!(matches!(started, Err(Abort::Caller(_))));
    }
    assert!(couple.pairs.iter().chain(&other.pairs).all(|pair| !pair.ended()));
}
