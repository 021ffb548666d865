//! Threshold ECDSA in the schedules of `schedules`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

#[path = "../../protocols/tests/common/mod.rs"]
mod common;
#[path = "../../protocols/tests/ecdsa_common/mod.rs"]
mod ecdsa_common;
mod schedules;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ecdsa_common::{Shares, data_key, keygen, payload, presign_payload, reopen};
use engine::forge::Forged;
use primitives::secp256k1::{Scalar, decode_scalar, encode_scalar};
use primitives::vole::MULTIPLY_BYTES;
use protocols::ecdsa::{
    KeyShare, Presignature, PresignedSigning, Presigning, SignInput, SignPayload, Signature, Signing,
};
use rand_chacha::ChaCha20Rng;
use schedules::{BATCH, Checker, Digest, Name, PARTIES, Scheme, T};
use sim::lies::Lie;

static SHARES: LazyLock<Shares> = LazyLock::new(|| keygen(&PARTIES, T, 1));
static LARGE_COMMITTEE: LazyLock<Shares> = LazyLock::new(|| keygen(&[1, 2, 3, 4, 5], 3, 2));

struct Ecdsa;

impl Scheme for Ecdsa {
    type Share = KeyShare;
    type Presignature = Presignature;
    type Signature = Signature;
    type Memory = ();
    type Presigning = Presigning;
    type Signing = Signing;
    type PresignedSigning = PresignedSigning;
    /// Only the last round has the same for several recipients.
    const RARE_LIES: &'static [Lie] = &[Lie::Equivocates];
    const ONE_TIME: &'static [(&'static str, u8)] = &[
        ("commitment", 1),
        ("salt of the extension", 1),
        ("nonce point of a party", 2),
        ("pads of a multiplication", 2),
        ("nonce point", 1),
        ("share of the masked nonce", 1),
    ];

    fn shares() -> &'static BTreeMap<u32, KeyShare> {
        &SHARES
    }

    fn reopen(share: &KeyShare) -> KeyShare {
        reopen(share)
    }

    fn presign_payload() -> Vec<u8> {
        presign_payload(&[], BATCH)
    }

    fn sign_payload(digest: Digest, presignature: Option<Name>) -> Vec<u8> {
        SignPayload { presignature, ..payload(digest, &[]) }.encode()
    }

    fn party(share: KeyShare) -> SignInput<KeyShare> {
        SignInput::Party(Box::new(share))
    }

    fn observer() -> SignInput<KeyShare> {
        SignInput::Observer(Box::new(SHARES[&1].public().clone()))
    }

    fn holder(presignature: Presignature) -> SignInput<Presignature> {
        SignInput::Party(Box::new(presignature))
    }

    fn presigned_observer() -> SignInput<Presignature> {
        SignInput::Observer(Box::new(SHARES[&1].public().clone()))
    }

    fn id(presignature: &Presignature) -> Name {
        *presignature.id()
    }

    fn seal(presignature: Presignature, rng: &mut ChaCha20Rng) -> Vec<u8> {
        presignature.seal(&data_key(), rng).unwrap()
    }

    fn unseal(blob: &[u8]) -> Option<Presignature> {
        Presignature::unseal(&data_key(), blob).ok()
    }

    fn large_committee() -> &'static Shares {
        &LARGE_COMMITTEE
    }

    fn verifies_with(share: &KeyShare, signature: &Signature, digest: &Digest) -> bool {
        signature.verifies(&share.public().public_key, digest)
    }

    fn nonce_point(signature: &Signature) -> Vec<u8> {
        signature.to_compact()[..32].to_vec()
    }

    fn seen(message: &Forged, (): &mut (), checker: &mut Checker<Self>) {
        let body = &message.body;
        match (message.protocol, message.round) {
            (4 | 5, 1) => {
                for one in places(message) {
                    checker.once("commitment", message, &one[..32]);
                    checker.once("salt of the extension", message, &one[32..48]);
                }
            }
            (4 | 5, 2) => {
                for one in places(message) {
                    checker.once("nonce point of a party", message, &one[64..97]);
                    for difference in pad_differences(one) {
                        checker.once("pads of a multiplication", message, &difference);
                    }
                }
            }
            (4, 3) | (6, 1) => {
                checker.once("nonce point", message, &body[..33]);
                checker.once("share of the masked nonce", message, &body[33..65]);
                checker.partial(message, &body[..33]);
            }
            other => panic!("{other:?} is no round of these protocols"),
        }
    }
}

/// The body of each signature or presignature that a pairwise round is about.
fn places(message: &Forged) -> impl Iterator<Item = &[u8]> {
    let count = if message.protocol == 5 { usize::from(BATCH) } else { 1 };
    message.body.chunks(message.body.len() / count)
}

/// Of each column, by how much the first two rows of a multiplication's answer differ. All rows of a column mask one
/// scalar, so the difference depends on the pads alone: two answers under the same pads show the same one, whatever
/// they mask.
fn pad_differences(body: &[u8]) -> [[u8; 32]; 3] {
    let masked = &body[body.len() - MULTIPLY_BYTES + 16..];
    let scalar = |row: usize, column: usize| {
        decode_scalar(masked[96 * row + 32 * column..][..32].try_into().unwrap()).unwrap()
    };
    [0, 1, 2].map(|column| encode_scalar(&(scalar(0, column) - scalar(1, column))))
}

#[test]
fn nothing_is_used_twice_and_every_request_has_one_answer() {
    schedules::nothing_is_used_twice_and_every_request_has_one_answer::<Ecdsa>();
}

#[test]
fn each_check_of_requests_finds_its_mutant() {
    schedules::each_check_of_requests_finds_its_mutant::<Ecdsa>();
}

#[test]
fn nothing_is_used_twice_whatever_corrupt_parties_and_storage_do() {
    schedules::hostile::nothing_is_used_twice_whatever_corrupt_parties_and_storage_do::<Ecdsa>();
}

#[test]
fn each_check_finds_its_mutant() {
    schedules::hostile::each_check_finds_its_mutant::<Ecdsa>();
}

/// Two answers under the same pads, which mask different scalars, have the same differences; answers under other pads
/// have not.
#[test]
fn the_checker_sees_pads_that_come_back() {
    let mut answer = vec![0; MULTIPLY_BYTES];
    let mut row = |row: usize, values: [u64; 3]| {
        for (column, value) in values.into_iter().enumerate() {
            let at = 16 + 96 * row + 32 * column;
            answer[at..at + 32].copy_from_slice(&encode_scalar(&Scalar::from(value)));
        }
        answer.clone()
    };
    row(0, [10, 20, 30]);
    let first = row(1, [7, 5, 3]);
    row(0, [10 + 4, 20 + 5, 30 + 6]);
    let same_pads = row(1, [7 + 4, 5 + 5, 3 + 6]);
    let other_pads = row(1, [8 + 4, 6 + 5, 4 + 6]);
    assert_eq!(pad_differences(&first), pad_differences(&same_pads));
    assert!(pad_differences(&first).iter().zip(pad_differences(&other_pads)).all(|(a, b)| *a != b));
}
