//! Threshold Ed25519 and BIP-340 in the schedules of `schedules`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

#[path = "../../protocols/tests/common/mod.rs"]
mod common;
#[allow(dead_code, reason = "the part that is about whole sessions")]
#[path = "../../protocols/tests/frost/harness.rs"]
mod harness;
mod schedules;

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use engine::PartyId;
use engine::forge::Forged;
use harness::{Keyed, Tested, data_key, payload, reopen};
use protocols::frost::{
    KeyShare, PresignPayload, Presignature, PresignedSigning, Presigning, SignInput, SignPayload, Signature,
    Signing, Target,
};
use rand_chacha::ChaCha20Rng;
use schedules::{BATCH, Checker, Digest, Name, Scheme};

/// With BIP-340 a child's output key.
fn target<S: Tested>() -> Target {
    S::targets().pop().unwrap()
}

struct Frost<S>(PhantomData<S>);

impl<S: Keyed> Scheme for Frost<S> {
    type Share = KeyShare<S>;
    type Presignature = Presignature<S>;
    type Signature = Signature;
    /// What was shown, by sender and session.
    type Memory = BTreeMap<(PartyId, Name), Vec<u8>>;
    type Presigning = Presigning<S>;
    type Signing = Signing<S>;
    type PresignedSigning = PresignedSigning<S>;

    fn shares() -> &'static BTreeMap<u32, KeyShare<S>> {
        S::keyed()
    }

    fn reopen(share: &KeyShare<S>) -> KeyShare<S> {
        reopen(share)
    }

    fn presign_payload() -> Vec<u8> {
        PresignPayload { target: target::<S>(), count: BATCH }.encode()
    }

    fn sign_payload(digest: Digest, presignature: Option<Name>) -> Vec<u8> {
        SignPayload { presignature, ..payload(digest.to_vec(), &target::<S>()) }.encode()
    }

    fn party(share: KeyShare<S>) -> SignInput<S, KeyShare<S>> {
        SignInput::Party(Box::new(share))
    }

    fn observer() -> SignInput<S, KeyShare<S>> {
        SignInput::Observer(Box::new(S::keyed()[&1].public().clone()))
    }

    fn holder(presignature: Presignature<S>) -> SignInput<S, Presignature<S>> {
        SignInput::Party(Box::new(presignature))
    }

    fn presigned_observer() -> SignInput<S, Presignature<S>> {
        SignInput::Observer(Box::new(S::keyed()[&1].public().clone()))
    }

    fn id(presignature: &Presignature<S>) -> Name {
        *presignature.id()
    }

    fn seal(presignature: Presignature<S>, rng: &mut ChaCha20Rng) -> Vec<u8> {
        presignature.seal(&data_key(), rng).unwrap()
    }

    fn unseal(blob: &[u8]) -> Option<Presignature<S>> {
        Presignature::unseal(&data_key(), blob).ok()
    }

    fn verifies(signature: &Signature, digest: &Digest) -> bool {
        let key = S::keyed()[&1].public().verifier_key(&target::<S>()).unwrap();
        S::verify_outside(&key, digest, signature)
    }

    fn nonce_point(signature: &Signature) -> Vec<u8> {
        signature[..32].to_vec()
    }

    fn seen(message: &Forged, shown: &mut Self::Memory, checker: &mut Checker<Self>) {
        let body = &message.body;
        let (sign, presign, presigned) = (S::SIGN.number, S::PRESIGN.number, S::SIGN_PRESIGNED.number);
        if message.round == 1 && message.protocol == presign {
            let pairs: BTreeSet<&[u8]> = body.chunks(2 * S::POINT_BYTES).collect();
            assert_eq!(pairs.len(), usize::from(BATCH));
            pairs.iter().for_each(|pair| checker.once("nonce commitments", message, pair));
        } else if message.round == 1 && message.protocol == sign {
            checker.once("nonce commitments", message, body);
            shown.insert((message.sender, message.session), body.clone());
        } else if message.protocol == sign && message.round == 2 {
            let commitments = &shown[&(message.sender, message.session)];
            checker.once("nonces used", message, commitments);
            checker.partial(message, commitments);
        } else if message.protocol == presigned && message.round == 1 {
            let commitments = &body[..body.len() - 32];
            checker.once("nonces used", message, commitments);
            checker.partial(message, commitments);
        } else {
            panic!("{} {} is no round of these protocols", message.protocol, message.round);
        }
    }
}

macro_rules! both_suites {
    ($($suite:ident in $module:ident),+) => {
        $(mod $module {
            use super::{Frost, schedules};
            use protocols::frost::$suite;

            #[test]
            fn nothing_is_used_twice_and_every_request_has_one_answer() {
                schedules::nothing_is_used_twice_and_every_request_has_one_answer::<Frost<$suite>>();
            }

            #[test]
            fn the_checker_sees_presignatures_that_come_back() {
                schedules::the_checker_sees_presignatures_that_come_back::<Frost<$suite>>();
            }
        })+
    };
}

both_suites!(Ed25519 in ed25519, Bip340 in bip340);
