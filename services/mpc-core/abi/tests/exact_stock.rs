//! Signatures that a pair has prepared ahead of need, through the interface: each is good for one attempt of the two
//! parties that made it, whoever orders what, and is gone when its set-up is.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
#[path = "common/exact.rs"]
mod exact;

use coterie_mpc::proto::ProtocolId;
use coterie_mpc::proto::SessionConfig;
use coterie_mpc::*;
use ed25519_dalek::{Signer, SigningKey};

use common::run_with;
use exact::{Keys, MESSAGE, PAIR, SEED, discard, drop_one, found_pair, nonce_of};

const UNKNOWN: &str = "the vault has no such presignature, or had it and it was used";
const FULL: &str = "the vault has as many presignatures as it can have";
const NO_PAIR: &str = "the vault has no set-up with this peer, or its check has failed";

/// Whether a party has what a session prepared. Asking uses it up.
fn has(keys: &Keys, party: u32, prepared: u8, session: u8) -> bool {
    match keys.start(&keys.set(ProtocolId::Ed25519ExactNonce, party, session, &nonce_of(prepared))) {
        Ok(_) => true,
        Err(refused) => {
            assert_eq!(refused, (MPC_SETUP_REFUSED, UNKNOWN.to_owned()));
            false
        }
    }
}

#[test]
fn several_are_kept_and_used_in_any_order() {
    let keys = Keys::new();
    keys.pair(1);
    for prepared in 2..5 {
        keys.prepare(prepared);
    }
    let expected = SigningKey::from_bytes(&SEED).sign(MESSAGE).to_bytes();
    for prepared in [3, 4, 2] {
        let nonce = keys.nonce(10 + prepared, prepared);
        assert_eq!(keys.answer(20 + prepared, 10 + prepared, &nonce), expected);
    }
}

/// A coordinator orders the same one for another message, in another session, of another pair, and while the first
/// session is under way.
#[test]
fn the_first_session_takes_it_out_whatever_comes_after() {
    let keys = Keys::new();
    keys.pair(1);
    keys.prepare(2);
    // It is of another pair, or of another key: it stays.
    let foreign = |change: &dyn Fn(&mut SessionConfig)| {
        keys.refused(ProtocolId::Ed25519ExactNonce, &|id, config| {
            nonce_of(2)(id, config);
            change(config);
        })
    };
    assert_eq!(foreign(&|config| config.parties[1].id = 4), UNKNOWN);
    assert_eq!(foreign(&|config| config.key_id = "keys/other".to_owned()), UNKNOWN);
    let first = PAIR.map(|id| keys.start(&keys.set(ProtocolId::Ed25519ExactNonce, id, 3, &nonce_of(2))));
    assert!(first.iter().all(Result::is_ok));
    for (id, session) in PAIR.into_iter().zip([4, 5]) {
        let again = keys.set(ProtocolId::Ed25519ExactNonce, id, session, &|id, config| {
            nonce_of(2)(id, config);
            config.payload = b"another message".to_vec();
        });
        assert_eq!(keys.start(&again).err().unwrap(), (MPC_SETUP_REFUSED, UNKNOWN.to_owned()));
    }
    drop(first);
    assert!(PAIR.iter().all(|id| !has(&keys, *id, 2, 6)));
}

/// Everything that is sent from some message on is lost.
#[test]
fn a_session_that_is_cut_at_any_message_leaves_nothing_of_it() {
    let keys = Keys::new();
    keys.pair(1);
    let run = |prepared: u8, cut: usize| {
        keys.prepare(prepared);
        let starts = PAIR.map(|id| {
            (id, keys.start(&keys.set(ProtocolId::Ed25519ExactNonce, id, 100, &nonce_of(prepared))).unwrap())
        });
        let mut said = 0;
        let (done, aborts) = run_with(starts.into(), |_, _, envelope| {
            said += 1;
            if said > cut {
                envelope.clear();
            }
        });
        assert!(aborts.is_empty(), "{aborts:?}");
        assert!(PAIR.iter().all(|id| !has(&keys, *id, prepared, 101)), "cut after {cut}");
        (said, done.len())
    };
    let (messages, ended) = run(2, usize::MAX);
    assert_eq!(ended, 2);
    for cut in 0..messages {
        let (_, ended) = run(3 + u8::try_from(cut).unwrap(), cut);
        assert!(ended < 2, "cut after {cut}");
    }
    // Nothing of it took the set-up away, or room in the vault.
    keys.prepare(90);
    assert_eq!(keys.nonce(91, 90), SigningKey::from_bytes(&SEED).sign(MESSAGE).to_bytes()[..32]);
}

/// A peer starts with another one than the order says: both are gone, and the honest party has said nothing that the
/// peer understands.
#[test]
fn parties_that_take_two_different_ones_do_not_understand_each_other() {
    let keys = Keys::new();
    keys.pair(1);
    keys.prepare(2);
    keys.prepare(3);
    let starts = [(2, 2), (3, 3)].map(|(id, prepared)| {
        (id, keys.start(&keys.set(ProtocolId::Ed25519ExactNonce, id, 4, &nonce_of(prepared))).unwrap())
    });
    let mut from = Vec::new();
    let (done, aborts) = run_with(starts.into(), |sender, _, _| from.push(sender));
    assert!(done.is_empty() && aborts.is_empty(), "{done:?} {aborts:?}");
    assert_eq!(from, [3], "the evaluator's first message, and no answer");
    assert!(!has(&keys, 2, 2, 5) && !has(&keys, 3, 3, 5));
    // The halves that nobody will use.
    assert!(has(&keys, 2, 3, 6) && has(&keys, 3, 2, 6));
}

/// A session of the same name that runs twice: nobody can be sure of what either has made.
#[test]
fn two_of_one_name_are_both_gone() {
    let keys = Keys::new();
    keys.pair(1);
    keys.prepare(2);
    keys.prepare(2);
    assert!(PAIR.iter().all(|id| !has(&keys, *id, 2, 3)));
}

#[test]
fn one_that_is_discarded_is_gone_and_gives_its_room_back() {
    let keys = Keys::new();
    keys.pair(1);
    keys.prepare(2);
    keys.prepare(3);
    let preparing = |session: u8, blocks: u32| {
        let prepare = move |_: u32, config: &mut SessionConfig| config.message_blocks = blocks;
        keys.start(&keys.set(ProtocolId::Ed25519ExactPrepare, 2, session, &prepare))
    };
    // With both of them, as many blocks as a vault has room for.
    let open: Vec<_> = [(50, 11), (51, 11), (52, 11), (53, 11), (54, 2)]
        .map(|(session, blocks)| preparing(session, blocks).unwrap())
        .into();
    assert_eq!(preparing(55, 1).err().unwrap(), (MPC_SETUP_REFUSED, FULL.to_owned()));
    for _ in 0..2 {
        PAIR.iter().for_each(|id| discard(keys.party(*id), 2));
    }
    discard(keys.party(2), 77);
    assert!(preparing(56, 1).is_ok());
    assert!(PAIR.iter().all(|id| !has(&keys, *id, 2, 4)));
    drop(open);
    keys.nonce(5, 3);
}

#[test]
fn a_party_tells_which_set_up_it_has() {
    let keys = Keys::new();
    let both = || PAIR.map(|id| found_pair(keys.party(id), 5 - id));
    assert_eq!(both(), [vec![], vec![]]);
    keys.pair(1);
    let [first, same] = both();
    assert!(first == same && first.len() == 32);
    assert_eq!(found_pair(keys.party(2), 1), []);
    keys.prepare(2);
    keys.pair(3);
    let [second, same] = both();
    assert!(second == same && second != first);
    // One that is gone already takes nothing with it.
    drop_one(keys.party(2), 2, 3, &first);
    assert_eq!(both(), [second.clone(), second.clone()]);
    drop_one(keys.party(2), 2, 3, &second);
    assert_eq!(both(), [vec![], second]);
    // All of a key.
    drop_one(keys.party(3), 0, 0, &[]);
    assert_eq!(both(), [vec![], vec![]]);
    let prepare = |_: u32, config: &mut SessionConfig| config.message_blocks = 1;
    let refused = keys.start(&keys.set(ProtocolId::Ed25519ExactPrepare, 3, 5, &prepare)).err().unwrap();
    assert_eq!(refused, (MPC_SETUP_REFUSED, NO_PAIR.to_owned()));
}

/// A restart: the vault is another one, and the peer's half is of no use to anybody.
#[test]
fn what_one_party_prepared_is_gone_with_its_vault() {
    let mut keys = Keys::new();
    keys.pair(1);
    keys.prepare(2);
    keys.restart(3);
    assert_eq!(found_pair(keys.party(3), 2), []);
    assert!(!has(&keys, 3, 2, 3));
    keys.pair(4);
    assert!(!has(&keys, 2, 2, 5), "a new set-up ends what the old one made");
    keys.prepare(6);
    keys.nonce(7, 6);
}
