//! An imported Ed25519 key through the interface: from the owner's seed to signatures, and every refusal.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
#[path = "common/exact.rs"]
mod exact;

use std::collections::BTreeMap;

use coterie_mpc::proto::import::{
    DropPair, FindPair, ImportCall, ImportCallKind, ImportReply, ImportReplyKind, SplitKey, TakeShare,
};
use coterie_mpc::proto::{ProtocolId, SessionConfig};
use coterie_mpc::*;
use ed25519_dalek::{Signer, SigningKey};
use prost::Message;
use sha2::{Digest, Sha512};

use common::{Party, deliver, parties, run_with};
use exact::{
    KEY, Keys, MESSAGE, PAIR, SEED, Settings, answer_of, call, drop_pair, nonce_of, raw, split, split_call,
    take_call, taken,
};

const OTHER_NONCE: &str = "the recorded nonce is another than the opened one";
const UNKNOWN: &str = "the vault has no such presignature, or had it and it was used";
const NO_PAIR: &str = "the vault has no set-up with this peer, or its check has failed";

#[test]
fn a_key_is_imported_and_signs_as_its_owner_does() {
    let keys = Keys::new();
    let owner = SigningKey::from_bytes(&SEED);
    let paired = keys.pair(1);
    let public = paired[&2].key_public.as_ref().unwrap();
    assert_eq!(public.public_key, owner.verifying_key().to_bytes());
    assert_eq!((public.threshold, public.epoch, public.verification_shares.len()), (2, 1, 3));
    assert_eq!(paired[&3].key_public.as_ref(), Some(public));
    // The same message twice, with fresh material.
    for round in 0..2 {
        keys.prepare(10 + round);
        let nonce = keys.nonce(20 + round, 10 + round);
        let expected = owner.sign(MESSAGE).to_bytes();
        assert_eq!(nonce, expected[..32]);
        assert_eq!(keys.answer(30 + round, 20 + round, &nonce), expected);
    }
    // All of it is used up.
    assert_eq!(keys.refused(ProtocolId::Ed25519ExactNonce, &nonce_of(10)), UNKNOWN);
    assert_eq!(keys.refused(ProtocolId::Ed25519ExactAnswer, &answer_of(20, &[1; 32])), UNKNOWN);
}

#[test]
fn what_the_vault_does_not_have_is_refused() {
    let keys = Keys::new();
    let prepare = |_: u32, config: &mut SessionConfig| config.message_blocks = 1;
    assert_eq!(keys.refused(ProtocolId::Ed25519ExactPrepare, &prepare), NO_PAIR);
    keys.pair(1);
    keys.prepare(2);
    for blocks in [0, 12] {
        let detail =
            keys.refused(ProtocolId::Ed25519ExactPrepare, &|_, config| config.message_blocks = blocks);
        assert_eq!(detail, "message_blocks is not the number of blocks of a message");
    }
    // A longer message; it leaves what was prepared.
    let long = keys.refused(ProtocolId::Ed25519ExactNonce, &|id, config| {
        nonce_of(2)(id, config);
        config.payload = vec![1; 80];
    });
    assert_eq!(long, "message_blocks is not the number of blocks of a message");
    assert_eq!(keys.refused(ProtocolId::Ed25519ExactNonce, &nonce_of(3)), UNKNOWN);
    let other_key = keys.refused(ProtocolId::Ed25519ExactNonce, &|id, config| {
        nonce_of(2)(id, config);
        config.key_id = "keys/other".to_owned();
    });
    assert_eq!(other_key, UNKNOWN);
    let unexpected = keys.refused(ProtocolId::Ed25519ExactNonce, &|id, config| {
        nonce_of(2)(id, config);
        config.message_blocks = 1;
    });
    assert_eq!(unexpected, "an input was given that the protocol does not take");
    let nonce = keys.nonce(4, 2);
    let short = keys.refused(ProtocolId::Ed25519ExactAnswer, &answer_of(4, &nonce[..31]));
    assert_eq!(short, "recorded_nonce is not 32 bytes");
    // Another nonce in the record: the nonce that was opened is gone, and so is the set-up.
    assert_eq!(keys.refused(ProtocolId::Ed25519ExactAnswer, &answer_of(4, &[1; 32])), OTHER_NONCE);
    assert_eq!(keys.refused(ProtocolId::Ed25519ExactAnswer, &answer_of(4, &nonce)), UNKNOWN);
    assert_eq!(keys.refused(ProtocolId::Ed25519ExactPrepare, &prepare), NO_PAIR);
}

#[test]
fn a_wrong_frame_names_its_sender_and_ends_the_set_up() {
    let keys = Keys::new();
    keys.pair(1);
    keys.prepare(2);
    let sessions = PAIR
        .map(|id| (id, keys.start(&keys.set(ProtocolId::Ed25519ExactNonce, id, 5, &nonce_of(2))).unwrap()));
    let mut sent = 0;
    let (done, aborts) = run_with(sessions.into(), |from, _, envelope| {
        sent += usize::from(from == 2);
        if from == 2 && sent == 2 {
            *envelope.last_mut().unwrap() ^= 1;
        }
    });
    assert!(done.is_empty(), "{done:?}");
    let abort = &aborts[&3];
    assert_eq!((abort.culprits.as_slice(), abort.advice), ([2].as_slice(), 2), "{abort:?}");
    let mut config = keys.config(ProtocolId::Ed25519ExactPrepare, 3, 6);
    config.message_blocks = 1;
    assert_eq!(keys.start(&config).err().unwrap(), (MPC_SETUP_REFUSED, NO_PAIR.to_owned()));
    // The peer that deviated has not noticed; its vault forgets the pair when it is told.
    config.own = 2;
    assert!(keys.start(&config).is_ok());
    drop_pair(keys.party(2), 3);
    assert_eq!(keys.start(&config).err().unwrap(), (MPC_SETUP_REFUSED, NO_PAIR.to_owned()));
    // A new set-up takes its place.
    keys.pair(7);
    keys.prepare(8);
}

#[test]
fn a_new_set_up_takes_the_place_of_what_the_old_one_made() {
    let keys = Keys::new();
    keys.pair(1);
    keys.prepare(2);
    keys.prepare(3);
    keys.nonce(4, 3);
    keys.pair(5);
    assert_eq!(keys.refused(ProtocolId::Ed25519ExactNonce, &nonce_of(2)), UNKNOWN);
    assert_eq!(keys.refused(ProtocolId::Ed25519ExactAnswer, &answer_of(4, &[1; 32])), UNKNOWN);
    keys.prepare(6);
}

/// It is dropped at the last frame of the peer, and one before.
#[test]
fn a_session_of_a_set_up_that_was_dropped_leaves_nothing_behind() {
    let keys = Keys::new();
    let prepare = |_: u32, config: &mut SessionConfig| config.message_blocks = 1;
    let drop = || drop_pair(keys.party(3), 2);
    for (session, protocol, settings, using, use_it) in [
        (
            4,
            ProtocolId::Ed25519ExactPrepare,
            &prepare as Settings<'_>,
            ProtocolId::Ed25519ExactNonce,
            &nonce_of(4) as Settings<'_>,
        ),
        (
            5,
            ProtocolId::Ed25519ExactNonce,
            &nonce_of(2),
            ProtocolId::Ed25519ExactAnswer,
            &answer_of(5, &[1; 32]),
        ),
    ] {
        let run = |drop_at: usize| {
            keys.pair(1);
            keys.prepare(2);
            let sessions =
                PAIR.map(|id| (id, keys.start(&keys.set(protocol, id, session, settings)).unwrap()));
            let mut said = 0;
            let ends = run_with(sessions.into(), |from, _, _| {
                said += usize::from(from == 2);
                if (from, said) == (2, drop_at) {
                    drop();
                }
            });
            (said, ends)
        };
        let (frames, (done, _)) = run(0);
        assert_eq!(done.len(), 2);
        for drop_at in [frames - 1, frames] {
            let (_, (_, aborts)) = run(drop_at);
            assert!(aborts.values().all(|abort| abort.culprits.is_empty()), "{aborts:?}");
            let refused = keys.start(&keys.set(using, 3, 9, use_it)).err().unwrap();
            assert_eq!(refused, (MPC_SETUP_REFUSED, UNKNOWN.to_owned()), "{protocol:?}, frame {drop_at}");
        }
    }
}

#[test]
fn the_expanded_key_is_taken_as_well() {
    let parties = parties(2);
    let mut bytes = Sha512::digest(SEED).to_vec();
    bytes[0] &= 248;
    bytes[31] = bytes[31] & 127 | 64;
    let split = split(&bytes, &parties);
    let public = split.key_public.as_ref().unwrap();
    assert_eq!(public.public_key, SigningKey::from_bytes(&SEED).verifying_key().to_bytes());
    for (party, share) in parties.iter().zip(&split.shares) {
        assert_eq!(taken(party, &share.value).key_public.as_ref(), Some(public));
    }
}

#[test]
fn a_share_is_taken_by_its_party_alone() {
    let parties = parties(3);
    let split = split(&SEED, &parties);
    let refused = |party: &Party, share: &[u8]| {
        let reply = take_call(party, share);
        assert!(matches!(reply, Ok(ImportReplyKind::ShareRefused(_))), "{reply:?}");
    };
    let [first, second, _] = &parties[..] else { panic!() };
    refused(second, &split.shares[0].value);
    refused(first, &[]);
    let mut changed = split.shares[0].value.clone();
    *changed.last_mut().unwrap() ^= 1;
    refused(first, &changed);
    let take = TakeShare { key_id: "keys/other".into(), party: 1, share: split.shares[0].value.clone() };
    let other = call(Some(&first.vault), &first.identity, ImportCallKind::TakeShare(take));
    assert!(matches!(other, Ok(ImportReplyKind::ShareRefused(_))), "{other:?}");
    let take = TakeShare { key_id: KEY.into(), party: 1, share: split.shares[0].value.clone() };
    for (vault, identity, code) in [
        (None, &first.identity[..], MPC_SETUP_REFUSED),
        (Some(&first.vault), &[][..], MPC_SETUP_REFUSED),
        (Some(&second.vault), &first.identity[..], MPC_UNSEAL_FAILED),
    ] {
        let reply = call(vault, identity, ImportCallKind::TakeShare(take.clone()));
        assert_eq!(reply.err().unwrap().0, code);
    }
}

#[test]
fn keys_and_parties_that_cannot_be_are_refused() {
    let parties = parties(3);
    let detail = |change: &dyn Fn(&mut SplitKey)| {
        let mut split = split_call(&SEED, &parties);
        change(&mut split);
        let (code, detail) = call(None, &[], ImportCallKind::SplitKey(split)).err().unwrap();
        assert_eq!(code, MPC_SETUP_REFUSED);
        detail
    };
    let length = "payload has a length that the protocol does not allow";
    for wrong in [0, 31, 33, 63, 65] {
        assert_eq!(detail(&|split| split.secret = vec![1; wrong]), length);
    }
    assert_eq!(detail(&|split| split.key_id.clear()), "key_id is empty or too long");
    assert_eq!(detail(&|split| split.key_id = "k".repeat(129)), "key_id is empty or too long");
    assert_eq!(detail(&|split| split.parties.truncate(1)), "the number of parties is not within 1..20");
    assert_eq!(detail(&|split| split.parties.swap(0, 1)), "party ids are not strictly ascending");
    assert_eq!(detail(&|split| split.parties[0].id = 0), "a party id is not within 1..65535");
    let shared = detail(&|split| split.parties[1].evidence_key = split.parties[0].evidence_key.clone());
    assert_eq!(shared, "two parties have the same evidence key");
    let invalid = detail(&|split| split.parties[1].evidence_key = vec![0; 32]);
    assert_eq!(invalid, "an evidence key is not valid, or not that of its party");
    assert_eq!(raw(None, &[], &[0xff]).err().unwrap().0, MPC_INVALID_ARGUMENT);
    assert_eq!(raw(None, &[], &[]).err().unwrap().0, MPC_INVALID_ARGUMENT);
}

/// Cut at every byte, and with every byte another one: a reply or a refusal, and never a key that another split made.
#[test]
fn no_call_of_another_form_gets_through() {
    let parties = parties(2);
    let made = split(&SEED, &parties);
    let encoded = |kind| ImportCall { call: Some(kind) }.encode_to_vec();
    let share = made.shares[0].value.clone();
    let calls = [
        encoded(ImportCallKind::SplitKey(split_call(&SEED, &parties))),
        encoded(ImportCallKind::TakeShare(TakeShare { key_id: KEY.into(), party: 1, share })),
        encoded(ImportCallKind::DropPair(DropPair {
            key_id: KEY.into(),
            party: 1,
            peer: 2,
            set_up: vec![1; 32],
        })),
        encoded(ImportCallKind::FindPair(FindPair { key_id: KEY.into(), party: 1, peer: 2 })),
    ];
    for call in calls {
        let party = &parties[0];
        for place in 0..call.len() {
            let changed = [0x01, 0x80, 0xff].map(|bits| {
                let mut changed = call.clone();
                changed[place] ^= bits;
                changed
            });
            for wrong in changed.iter().map(Vec::as_slice).chain([&call[..place]]) {
                for (vault, identity) in [(Some(&party.vault), &party.identity[..]), (None, &[])] {
                    match raw(vault, identity, wrong) {
                        Ok(reply) => {
                            let reply = ImportReply::decode(reply.as_slice()).unwrap().reply.unwrap();
                            assert!(!matches!(reply, ImportReplyKind::ShareTaken(_)), "byte {place}");
                        }
                        Err((code, _)) => {
                            assert!(
                                [MPC_INVALID_ARGUMENT, MPC_SETUP_REFUSED].contains(&code),
                                "byte {place}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// Sessions of three, of one, of a party that is not the share's, and of another threshold or epoch.
#[test]
fn settings_that_do_not_fit_the_share_are_refused() {
    let keys = Keys::new();
    let pair = |change: &dyn Fn(&mut SessionConfig)| {
        keys.refused(ProtocolId::Ed25519ExactPair, &|_, config| change(config))
    };
    let mismatch = "the share is of another protocol, key, party, epoch or threshold";
    assert_eq!(pair(&|config| config.key_id = "keys/other".to_owned()), mismatch);
    assert_eq!(pair(&|config| config.threshold = 3), mismatch);
    assert_eq!(pair(&|config| config.epoch = 2), "epoch is not possible here");
    assert_eq!(pair(&|config| config.parties.truncate(1)), "the number of parties is not within 1..20");
    assert_eq!(pair(&|config| config.own = 0), "an observer cannot run this protocol");
    let sessions =
        PAIR.map(|id| (id, keys.start(&keys.config(ProtocolId::Ed25519ExactPair, id, 3)).unwrap()));
    // Nothing arrives: the sessions are only dropped.
    let mut sessions: BTreeMap<_, _> = sessions.into();
    sessions.remove(&3);
    let (done, aborts) = deliver(&mut sessions, |_, _, _| ());
    assert!(done.is_empty() && aborts.is_empty());
}
