//! Derivation by two parties, against a plain implementation and vectors.

use ed25519_dalek::{Signer, SigningKey};
use hmac::{Hmac, KeyInit, Mac};
use num_bigint::BigUint;
use primitives::Secret;
use primitives::secp256k1::{
    Scalar, decode_scalar, encode_point, encode_scalar, mul_generator, random_scalar,
};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use sha2::{Digest, Sha256, Sha512};

use super::vectors::{BIP84, HARDENED, SOLANA, VECTORS, WALLET};
use super::{KeyShares, Node, PairSeed, PublicNode, Ready, Step, StepCircuit, split_seed};
use crate::authenticated::wire::{End, both, honest, percent, seeded, set_up};
use crate::authenticated::{Abort, Pair, Role};
use crate::ed25519::{self, NonceCircuit, NonceRecord, PairKey};

/// HMAC-SHA512, in two halves.
pub(super) fn hmac(key: &[u8], parts: &[&[u8]]) -> [[u8; 32]; 2] {
    let mut mac = Hmac::<Sha512>::new_from_slice(key).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    let digest: [u8; 64] = mac.finalize().into_bytes().into();
    [digest[..32].try_into().unwrap(), digest[32..].try_into().unwrap()]
}

/// BIP-32's child of a whole private key: key and chain code.
pub(super) fn child(key: &[u8; 32], chain: &[u8; 32], index: u32) -> ([u8; 32], [u8; 32]) {
    let key = decode_scalar(key).unwrap();
    let secret = [[0].as_slice(), &encode_scalar(&key)].concat();
    let known = encode_point(&mul_generator(&key));
    let parent = if index >= HARDENED { secret.as_slice() } else { known.as_slice() };
    let [left, chain] = hmac(chain, &[parent, &index.to_be_bytes()]);
    (encode_scalar(&(decode_scalar(&left).unwrap() + key)), chain)
}

/// BIP-32's root of a seed.
pub(super) fn root(seed: &[u8]) -> ([u8; 32], [u8; 32]) {
    let [key, chain] = hmac(b"Bitcoin seed", &[seed]);
    (key, chain)
}

/// Chain code and key of an extended key in base58 with a checksum.
pub(super) fn parse(extended: &str) -> ([u8; 32], [u8; 33]) {
    const DIGITS: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let number = extended
        .chars()
        .fold(BigUint::ZERO, |sum, digit| sum * 58u32 + BigUint::from(DIGITS.find(digit).unwrap()));
    let bytes = number.to_bytes_be();
    assert_eq!(bytes.len(), 82);
    let (body, checksum) = bytes.split_at(78);
    assert_eq!(Sha256::digest(Sha256::digest(body))[..4], *checksum);
    (body[13..45].try_into().unwrap(), body[45..].try_into().unwrap())
}

/// A parent key with its shares: by addition, or by Shamir's scheme for parties 3 and 7.
pub(super) fn split(key: &[u8; 32], chain_code: &[u8; 32], shamir: bool, seed: u64) -> [Node; 2] {
    let rng = &mut ChaCha20Rng::seed_from_u64(seed);
    let (key, random) = (decode_scalar(key).unwrap(), random_scalar(rng));
    let public = PublicNode { public_key: encode_point(&mul_generator(&key)), chain_code: *chain_code };
    let shares = match shamir {
        true => [3u64, 7].map(|number| key + random * Scalar::from(number)),
        false => [key - random, random],
    };
    let points = shares.each_ref().map(|share| encode_point(&mul_generator(share)));
    [0, 1].map(|own: usize| {
        let share = Secret::new(encode_scalar(&shares[own]));
        let shares = KeyShares { share: &share, point: &points[own], their_point: &points[1 - own] };
        let numbers = [3u16, 7];
        let node = match shamir {
            true => Node::from_shamir(public, &shares, numbers[own], numbers[1 - own]),
            false => Node::from_sum(public, &shares),
        };
        node.unwrap()
    })
}

/// The private key of both shares, which are those of their points.
pub(super) fn join(nodes: &[Node; 2]) -> [u8; 32] {
    let shares = nodes.each_ref().map(|node| decode_scalar(node.share().expose()).unwrap());
    let points = shares.map(|share| encode_point(&mul_generator(&share)));
    assert_eq!(nodes[0].points(), points);
    assert_eq!(nodes[1].points(), [points[1], points[0]]);
    assert_eq!(nodes[0].public(), nodes[1].public());
    let key = shares[0] + shares[1];
    assert_eq!(encode_point(&mul_generator(&key)), nodes[0].public().public_key);
    encode_scalar(&key)
}

pub(super) fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// Two parties with their set-up and a seed that they share.
struct Couple {
    pairs: [Pair; 2],
    seeds: [PairSeed; 2],
}

impl Couple {
    /// A seed of three parties for two of them.
    fn new(seed: &[u8], numbers: [u16; 2]) -> Couple {
        let rng = &mut ChaCha20Rng::seed_from_u64(3);
        let shares = split_seed(&Secret::new(seed.to_vec()), 3, rng).unwrap();
        let pairs = set_up(u64::from(numbers[0]));
        let joined = both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
            let share = &shares[usize::from(numbers[index]) - 1];
            share
                .join(&pairs[index], numbers[1 - index], channel, &mut seeded(1, index))
                .await
                .unwrap()
                .unchecked()
        });
        Couple { pairs, seeds: joined.results }
    }

    /// Does one step on both sides, prepared for it.
    fn both<T: Send>(
        &self,
        circuit: &StepCircuit,
        step: impl AsyncFn(usize, &Pair, Ready, &mut End<'_>) -> Result<T, Abort> + Sync,
    ) -> [T; 2] {
        both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
            let pair = &self.pairs[index];
            let ready = Ready::new(pair, circuit, channel, &mut seeded(2, index)).await.unwrap();
            step(index, pair, ready, channel).await.unwrap()
        })
        .results
    }

    /// The key that signs for a path of SLIP-10.
    fn slip10(&self, path: &[u32]) -> [PairKey; 2] {
        let circuit = StepCircuit::new(Step::Slip10Master(self.seeds[0].bytes())).unwrap();
        let mut nodes = self.both(&circuit, async |index, pair, ready, channel| {
            self.seeds[index].slip10(pair, &circuit, ready, channel).await
        });
        let circuit = StepCircuit::new(Step::Slip10Child).unwrap();
        for number in path {
            nodes = self.both(&circuit, async |index, pair, ready, channel| {
                nodes[index].child(pair, &circuit, ready, *number, channel).await
            });
        }
        assert_eq!(nodes[0].chain_code(), nodes[1].chain_code());
        let circuit = StepCircuit::new(Step::Slip10Key).unwrap();
        let keys = self.both(&circuit, async |index, pair, ready, channel| {
            nodes[index].key(pair, &circuit, ready, channel).await
        });
        assert_eq!(keys[0].public_key(), keys[1].public_key());
        assert_eq!(keys[0].points()[0], keys[1].points()[1]);
        keys
    }

    /// The node of BIP-32 for a path.
    fn bip32(&self, path: &[u32]) -> PublicNode {
        let circuit = StepCircuit::new(Step::Master(self.seeds[0].bytes())).unwrap();
        let mut nodes = self.both(&circuit, async |index, pair, ready, channel| {
            self.seeds[index].root(pair, &circuit, ready, channel).await
        });
        let circuit = StepCircuit::new(Step::Child).unwrap();
        for number in path {
            nodes = match number.checked_sub(HARDENED) {
                None => [Role::Garbler, Role::Evaluator]
                    .map(|role| nodes[role as usize].normal(role, *number).unwrap()),
                Some(number) => self
                    .both(&circuit, async |index, pair, ready, channel| {
                        nodes[index].hardened(pair, &circuit, ready, number, channel).await
                    })
                    .map(Option::unwrap),
            };
        }
        join(&nodes);
        *nodes[0].public()
    }
}

/// The first level of vector 4, and all of the ways where all runs are made. `clear.rs` walks all of them through the
/// circuits always.
#[test]
fn two_parties_derive_the_vectors_of_bip32_from_seeds() {
    let full = percent() >= 100;
    for (seed, levels) in if full { &VECTORS[..] } else { &VECTORS[3..] } {
        let couple = Couple::new(&hex(seed), [1, 2]);
        let levels = if full { levels } else { &levels[..1] };
        let path: Vec<u32> = levels.iter().map(|(number, _)| *number).collect();
        let public = couple.bip32(&path);
        assert_eq!((public.chain_code, public.public_key), parse(levels[levels.len() - 1].1));
    }
    if full {
        let couple = Couple::new(&hex(WALLET), [1, 3]);
        let path = [84 + HARDENED, HARDENED, HARDENED, 0, 0];
        let public = couple.bip32(&path[..3]);
        assert_eq!((public.chain_code, public.public_key), parse(BIP84[0]));
        assert_eq!(couple.bip32(&path).public_key.as_slice(), hex(BIP84[1]));
        assert_eq!(couple.slip10(&[44, 501, 0, 0])[0].public_key().as_slice(), hex(SOLANA));
    }
}

#[test]
fn children_that_are_not_hardened_are_those_of_a_plain_implementation() {
    let (mut key, mut chain) = root(&[7; 32]);
    let mut nodes = split(&key, &chain, true, 4);
    for index in [0, 1, HARDENED - 1] {
        nodes =
            [Role::Garbler, Role::Evaluator].map(|role| nodes[role as usize].normal(role, index).unwrap());
        (key, chain) = child(&key, &chain, index);
        assert_eq!((join(&nodes), nodes[0].public().chain_code), (key, chain));
    }
    assert!(nodes[0].normal(Role::Garbler, HARDENED).is_none());
}

#[test]
fn a_sum_and_shares_by_shamirs_scheme_are_the_same_key() {
    let (key, chain) = root(&[8; 32]);
    let numbers = [3, 7];
    for shamir in [false, true] {
        let nodes = split(&key, &chain, shamir, 5);
        let shares = [0, 1].map(|own: usize| nodes[own].to_shamir(numbers[own], numbers[1 - own]).unwrap());
        let again = [0, 1].map(|own: usize| {
            let [point, their_point] = &shares[own].points;
            let held = KeyShares { share: &shares[own].share, point, their_point };
            Node::from_shamir(*nodes[own].public(), &held, numbers[own], numbers[1 - own]).unwrap()
        });
        assert_eq!(join(&again), key);
        assert_eq!(shares[0].points[0], shares[1].points[1]);
        assert_eq!(again[0].share().expose(), nodes[0].share().expose());
        for (own, peer) in [(0, 1), (1, 0), (3, 3)] {
            assert!(nodes[0].to_shamir(own, peer).is_none());
        }
    }
    // A peer whose share is zero leaves the whole key to this party.
    let share = decode_scalar(&key).unwrap();
    let point = mul_generator(&share);
    let alone = Node::sum(chain, &share, point, point - point).unwrap();
    assert!(alone.to_shamir(3, 7).is_none());
}

struct Fresh;

impl NonceRecord for Fresh {
    fn settle(&mut self, _: &[u8; 32], _: &[u8; 64], nonce: &[u8; 32]) -> std::io::Result<[u8; 32]> {
        Ok(*nonce)
    }
}

/// SLIP-10, test vector 1 for Ed25519, at m/0': the key signs what the whole private key signs.
#[test]
fn a_key_of_slip10_signs_as_the_whole_private_key_does() {
    let couple = Couple::new(&hex("000102030405060708090a0b0c0d0e0f"), [1, 2]);
    let keys = couple.slip10(&[0]);
    let key = SigningKey::from_bytes(
        &hex("68e0fe46dfb67e368c75379acec591dad19df3cde26e63b93a8e704f1dade7a3").try_into().unwrap(),
    );
    assert_eq!(*keys[0].public_key(), key.verifying_key().to_bytes());
    let circuit = NonceCircuit::new(1).unwrap();
    let signatures = both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
        let pair = &couple.pairs[index];
        let ready = ed25519::Ready::new(pair, &circuit, channel, &mut seeded(4, index)).await.unwrap();
        keys[index].sign(pair, &circuit, ready, b"message", &mut Fresh, channel).await.unwrap()
    });
    assert_eq!(signatures.results, [key.sign(b"message").to_bytes(); 2]);
}

#[test]
fn shares_that_are_not_those_of_their_points_or_of_the_key_are_refused() {
    let one = encode_scalar(&Scalar::ONE);
    let (share, zero) = (Secret::new(one), Secret::new([0; 32]));
    let point = encode_point(&mul_generator(&Scalar::ONE));
    let other = encode_point(&mul_generator(&Scalar::from(4u64)));
    let sum = encode_point(&mul_generator(&Scalar::from(5u64)));
    let public = PublicNode { public_key: sum, chain_code: [7; 32] };
    let fits = KeyShares { share: &share, point: &point, their_point: &other };
    assert!(Node::from_sum(public, &fits).is_some());
    for wrong in [
        KeyShares { share: &share, point: &other, their_point: &point },
        KeyShares { share: &share, point: &point, their_point: &point },
        KeyShares { share: &zero, point: &point, their_point: &other },
        KeyShares { share: &share, point: &[0; 33], their_point: &other },
    ] {
        assert!(Node::from_sum(public, &wrong).is_none());
    }
    assert!(Node::from_shamir(public, &fits, 1, 2).is_none(), "the sum is another key of this scheme");
    for (own, peer) in [(1, 1), (0, 1), (1, 0)] {
        assert!(Node::from_shamir(public, &fits, own, peer).is_none());
    }
    // Shares whose sum is zero.
    let negated = encode_point(&mul_generator(&-Scalar::ONE));
    let zero = PublicNode { public_key: [0; 33], chain_code: [7; 32] };
    let shares = KeyShares { share: &share, point: &point, their_point: &negated };
    assert!(Node::from_sum(zero, &shares).is_none());
}
