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
use protocols::ecdsa::{
    KeyShare, Presignature, PresignedSigning, Presigning, SignInput, SignPayload, Signature, Signing,
};
use rand_chacha::ChaCha20Rng;
use schedules::{BATCH, Checker, Digest, Name, PARTIES, Scheme, T};

static SHARES: LazyLock<Shares> = LazyLock::new(|| keygen(&PARTIES, T, 1));

struct Ecdsa;

impl Scheme for Ecdsa {
    type Share = KeyShare;
    type Presignature = Presignature;
    type Signature = Signature;
    type Memory = ();
    type Presigning = Presigning;
    type Signing = Signing;
    type PresignedSigning = PresignedSigning;

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

    fn verifies(signature: &Signature, digest: &Digest) -> bool {
        signature.verifies(&SHARES[&1].public().public_key, digest)
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

#[test]
fn nothing_is_used_twice_and_every_request_has_one_answer() {
    schedules::nothing_is_used_twice_and_every_request_has_one_answer::<Ecdsa>();
}

#[test]
fn the_checker_sees_presignatures_that_come_back() {
    schedules::the_checker_sees_presignatures_that_come_back::<Ecdsa>();
}
