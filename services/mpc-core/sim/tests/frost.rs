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
use std::sync::LazyLock;

use engine::PartyId;
use engine::forge::Forged;
use harness::{Keyed, Shares, Tested, data_key, keygen, payload, reopen};
use protocols::frost::{
    Bip340, Ed25519, KeyShare, PresignPayload, Presignature, PresignedSigning, Presigning, SignInput,
    SignPayload, Signature, Signing, Target,
};
use rand_chacha::ChaCha20Rng;
use schedules::{BATCH, Checker, Digest, Name, Scheme};
use sim::lies::Lie;

/// With BIP-340 a child's output key.
fn target<S: Tested>() -> Target {
    S::targets().pop().unwrap()
}

struct Frost<S>(PhantomData<S>);

/// A suite with a key of parties 1 to 5, three of whom sign.
trait Committee: Keyed {
    fn large_committee() -> &'static Shares<Self>;
}

macro_rules! committee {
    ($($suite:ident),+) => {
        $(impl Committee for $suite {
            fn large_committee() -> &'static Shares<Self> {
                static SHARES: LazyLock<Shares<$suite>> = LazyLock::new(|| keygen(&[1, 2, 3, 4, 5], 3, 12));
                &SHARES
            }
        })+
    };
}

committee!(Ed25519, Bip340);

impl<S: Committee> Scheme for Frost<S> {
    type Share = KeyShare<S>;
    type Presignature = Presignature<S>;
    type Signature = Signature;
    /// The values shown, by sender, session and run.
    type Memory = BTreeMap<(PartyId, Name, [u8; 16]), Vec<u8>>;
    type Presigning = Presigning<S>;
    type Signing = Signing<S>;
    type PresignedSigning = PresignedSigning<S>;
    const RARE_LIES: &'static [Lie] = &[];
    const ONE_TIME: &'static [(&'static str, u8)] = &[("nonce commitments", 1), ("nonces used", 1)];

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

    fn large_committee() -> &'static BTreeMap<u32, KeyShare<S>> {
        S::large_committee()
    }

    fn verifies_with(share: &KeyShare<S>, signature: &Signature, digest: &Digest) -> bool {
        let key = share.public().verifier_key(&target::<S>()).unwrap();
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
            shown.insert((message.sender, message.session, message.run), body.clone());
        } else if message.protocol == sign && message.round == 2 {
            let commitments = &shown[&(message.sender, message.session, message.run)];
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
            fn nothing_is_used_twice_whatever_corrupt_parties_and_storage_do() {
                schedules::hostile::nothing_is_used_twice_whatever_corrupt_parties_and_storage_do::<Frost<$suite>>();
            }

            #[test]
            fn each_check_finds_its_mutant() {
                schedules::hostile::each_check_finds_its_mutant::<Frost<$suite>>();
            }

            #[test]
            fn each_check_of_requests_finds_its_mutant() {
                schedules::each_check_of_requests_finds_its_mutant::<Frost<$suite>>();
            }
        })+
    };
}

both_suites!(Ed25519 in ed25519, Bip340 in bip340);
