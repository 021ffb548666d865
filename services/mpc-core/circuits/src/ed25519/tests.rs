//! The signatures of RFC 8032, by two parties and the whole circuit.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use primitives::Secret;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::{Import, NonceCircuit, NonceRecord, PairKey, Ready, blocks};
use crate::authenticated::wire::{both, honest, seeded, set_up};
use crate::authenticated::{Abort, Pair};

/// A party's record. It outlives the processes that use it.
#[derive(Clone, Default)]
pub(super) struct Memory(Arc<Mutex<HashMap<Vec<u8>, [u8; 32]>>>);

impl NonceRecord for Memory {
    fn settle(&mut self, key: &[u8; 32], message: &[u8; 64], nonce: &[u8; 32]) -> io::Result<[u8; 32]> {
        let place = [key.as_slice(), message].concat();
        Ok(*self.0.lock().unwrap().entry(place).or_insert(*nonce))
    }
}

fn bytes(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// RFC 8032, section 7.1: seed, public key, message and signature.
const VECTORS: &[[&str; 4]] = &[
    [
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ],
    [
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ],
    [
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ],
    [
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    ],
];

fn import(seed: &[u8; 32], parties: u16) -> Import {
    Import::from_seed(&Secret::new(*seed), parties, &mut ChaCha20Rng::seed_from_u64(77)).unwrap()
}

/// Both sides of a key, not confirmed.
fn join(pairs: &[Pair; 2], import: &Import, numbers: [u16; 2]) -> [PairKey; 2] {
    both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
        let share = &import.shares[usize::from(numbers[index]) - 1];
        let rng = &mut seeded(5, index);
        share.join(&pairs[index], numbers[1 - index], channel, rng).await.unwrap().unchecked()
    })
    .results
}

fn sign(pairs: &[Pair; 2], keys: &[PairKey; 2], circuit: &NonceCircuit, message: &[u8]) -> [u8; 64] {
    let [first, second] = both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
        let ready = Ready::new(&pairs[index], circuit, channel, &mut seeded(6, index)).await.unwrap();
        keys[index]
            .sign(&pairs[index], circuit, ready, message, &mut Memory::default(), channel)
            .await
            .unwrap()
    })
    .results;
    assert_eq!(first, second);
    first
}

/// Whether another implementation accepts a signature.
pub(super) fn verifies(public_key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    let key = VerifyingKey::from_bytes(public_key).unwrap();
    key.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
}

#[test]
fn signatures_are_those_of_rfc_8032() {
    let pairs = set_up(1);
    let circuit = NonceCircuit::new(1).unwrap();
    for [seed, public_key, message, expected] in VECTORS {
        let import = import(&bytes(seed).try_into().unwrap(), 2);
        assert_eq!(import.public_key.as_slice(), bytes(public_key));
        let message = bytes(message);
        let keys = join(&pairs, &import, [1, 2]);
        let signature = sign(&pairs, &keys, &circuit, &message);
        assert_eq!(signature.as_slice(), bytes(expected));
        assert!(verifies(&import.public_key, &message, &signature));
    }
}

#[test]
fn each_pair_makes_the_same_signature_of_a_longer_message() {
    let seed = [9; 32];
    let message = [3; 200];
    let circuit = NonceCircuit::new(blocks(message.len())).unwrap();
    assert_eq!(circuit.blocks(), 2);
    let import = import(&seed, 3);
    let expected = SigningKey::from_bytes(&seed).sign(&message).to_bytes();
    for (number, numbers) in [[1, 3], [2, 3]].into_iter().enumerate() {
        let pairs = set_up(2 + number as u64);
        let keys = join(&pairs, &import, numbers);
        assert_eq!(sign(&pairs, &keys, &circuit, &message), expected);
    }
}

#[test]
fn an_import_ends_with_the_owners_test_signature_and_with_no_other() {
    for wrong in [false, true] {
        let mut import = import(&[4; 32], 2);
        if wrong {
            import.shares[1].prefixes.get_mut(&1).unwrap().expose_mut()[0] ^= 1;
        }
        let pairs = set_up(4);
        let records = <[Memory; 2]>::default();
        let ran = both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
            let rng = &mut seeded(7, index);
            let key = import.shares[index].join(&pairs[index], 2 - index as u16, channel, rng).await?;
            key.confirm(&pairs[index], &mut records[index].clone(), channel, rng).await
        });
        // A wrong nonce point is not recorded: with the correct shares the import is repeated.
        assert!(records.iter().all(|record| record.0.lock().unwrap().is_empty() == wrong));
        for result in ran.results {
            match result {
                Ok(key) => assert!(!wrong && *key.public_key() == import.public_key),
                Err(abort) => assert!(wrong && matches!(abort, Abort::Import | Abort::Channel(_)), "{abort}"),
            }
        }
    }
}
