//! Hardened derivation through the interface: from shared keys and from seeds to children that all parties sign with.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
#[path = "common/exact.rs"]
mod exact;
#[path = "common/hardened.rs"]
mod hardened;

use coterie_mpc::proto::import::{
    ImportCall, ImportCallKind, ImportReply, ImportReplyKind, SplitSeed, TakeSeedShare,
};
use coterie_mpc::proto::{ProtocolId, SessionConfig};
use coterie_mpc::*;
use ed25519_dalek::{Signature as Ed25519Signature, VerifyingKey};
use prost::Message;
use protocols::ecdsa::{Signature, decode_point};

use common::{Party, parties, run_with};
use exact::{call, discard, drop_one, drop_pair, found_pair, raw};
use hardened::{
    CHILD, Change, H, Holders, KEY, SEED, child, key_of, node, split, split_call, take_call, taken,
};

const DIGEST: [u8; 32] = [0xd1; 32];
const UNKNOWN: &str = "the vault has no such presignature, or had it and it was used";
const FULL: &str = "the vault has as many presignatures as it can have";
const NO_PAIR: &str = "the vault has no set-up with this peer, or its check has failed";
const MISMATCH: &str = "the share is of another protocol, key, party, epoch or threshold";
const LONG: &str = "derivation_path is too long or has a hardened step";
const PAYLOAD: &str = "payload does not say what the protocol needs";
const NAME: &str = "key_id is empty or too long";
const UNEXPECTED: &str = "an input was given that the protocol does not take";

fn setup(detail: &str) -> (i32, String) {
    (MPC_SETUP_REFUSED, detail.to_owned())
}

/// Whether some signature of the digest verifies under a key of 33 bytes.
fn verifies(public_key: &[u8], signature: &[u8]) -> bool {
    let key = decode_point(public_key.try_into().unwrap()).unwrap();
    (0..4).any(|recovery_id| {
        Signature::from_compact(signature.try_into().unwrap(), recovery_id)
            .is_some_and(|signature| signature.verifies(&key, &DIGEST))
    })
}

#[test]
fn a_child_of_a_shared_key_is_found_by_two_pairs_and_is_shared_anew_and_signs() {
    let (holders, parent) = Holders::with_key();
    let derive = |pair, session, path: &[u32]| {
        let done = holders.both(ProtocolId::HardenedEcdsaChild, pair, session, &child(path));
        assert_eq!(done[&pair[0]].key_public, done[&pair[1]].key_public);
        done
    };
    let (first, second) = (derive([1, 3], 10, &[H, 7]), derive([2, 3], 11, &[H, 7]));
    let [one, other] = [&first, &second].map(|done| done[&3].key_public.clone().unwrap());
    // The second pair has to compare these.
    assert_eq!((&one.public_key, &one.chain_code), (&other.public_key, &other.chain_code));
    assert_ne!(one.public_key, parent.public_key);
    assert_eq!((one.key_id.as_str(), one.epoch, one.threshold), (CHILD, 1, 2));
    let holders_of = |public: &coterie_mpc::proto::KeyPublic| {
        public.verification_shares.iter().map(|share| share.party).collect::<Vec<_>>()
    };
    assert_eq!((holders_of(&one), holders_of(&other)), (vec![1, 3], vec![2, 3]));

    // The two parties have nothing to multiply with: they reshare before they sign.
    let sign = |config: &mut SessionConfig| {
        config.key_id = CHILD.to_owned();
        config.payload = DIGEST.to_vec();
    };
    let config = holders.config(ProtocolId::EcdsaSign, [1, 3], 20, &sign);
    let refused = holders.start_with(1, &config, &first[&1].sealed_share).err();
    assert_eq!(refused, Some(setup("a signer is excluded by this party's share")));
    // A share of the other pair does not fit this pair's public data.
    let all: Vec<&Party> = holders.parties.iter().collect();
    let mixed = SessionConfig {
        key_id: CHILD.to_owned(),
        key_public: Some(one.clone()),
        dealers: vec![1, 3],
        receivers: vec![1, 2, 3],
        ..common::config(ProtocolId::EcdsaReshare, 3, &all, 2)
    };
    assert_eq!(holders.start_with(3, &mixed, &second[&3].sealed_share).err(), Some(setup(MISMATCH)));
    assert!(holders.start_with(3, &mixed, &first[&3].sealed_share).is_ok());

    let new = holders.reshare(ProtocolId::EcdsaReshare, &first);
    for signers in [[1, 2], [2, 3]] {
        let signature = holders.sign(ProtocolId::EcdsaSign, &new, signers, &DIGEST);
        assert!(verifies(&one.public_key, &signature));
        assert!(!verifies(&parent.public_key, &signature));
    }
}

/// m/0'/1 of the first vector of BIP-32, and m/0'/1/2' from the share of two.
#[test]
fn a_pair_with_a_seed_derives_children_that_all_parties_sign_with() {
    let holders = Holders::of(&SEED);
    let pair = [1, 2];
    let root = holders.join(pair, 1);
    let expected = "0339a36013301597daef41fbe593a02cc513d0b55527ec2df1050e2e8ff49c85c2";
    assert_eq!(hex::encode(&root.public_key), expected);
    let done = holders.both(ProtocolId::HardenedSeedEcdsaChild, pair, 2, &child(&[H, 1]));
    let public = done[&1].key_public.clone().unwrap();
    assert_eq!(done[&2].key_public.as_ref(), Some(&public));
    let expected = "03501e454bf00751f24b1b489aa925215d66af2234e3891c3b21a52bedb3cd711c";
    assert_eq!(hex::encode(&public.public_key), expected);
    let expected = "2a7857631386ba23dacac34180dd1983734e444fdbf774041578e9b6adb37c19";
    assert_eq!(hex::encode(&public.chain_code), expected);

    // A child of two parties is a key whose child they derive: m/0'/1/2'.
    let next = |config: &mut SessionConfig| {
        config.key_id = CHILD.to_owned();
        config.child_key_id = "keys/grandchild".to_owned();
        config.derivation_path = vec![2 + H];
    };
    let starts = pair.map(|id| {
        let config = holders.config(ProtocolId::HardenedEcdsaChild, [id, 3 - id], 3, &next);
        (id, holders.start_with(id, &config, &done[&id].sealed_share).unwrap())
    });
    let grandchild = common::run(starts.into());
    let expected = "0357bfe1e341d01c69fe5654309956cbea516822fba8a601743a012a7896ee8dc2";
    assert_eq!(hex::encode(&grandchild[&2].key_public.as_ref().unwrap().public_key), expected);

    let new = holders.reshare(ProtocolId::EcdsaReshare, &grandchild);
    let signature = holders.sign(ProtocolId::EcdsaSign, &new, [2, 3], &DIGEST);
    assert!(verifies(&grandchild[&1].key_public.as_ref().unwrap().public_key, &signature));
}

/// m/0'/1' of the first vector of SLIP-10 for Ed25519, whose shares go into those of FROST.
#[test]
fn a_pair_with_a_seed_derives_a_key_of_slip10_that_all_parties_sign_with() {
    let holders = Holders::of(&SEED);
    let pair = [2, 3];
    let (nodes, keys) = (ProtocolId::HardenedSlip10Node, ProtocolId::HardenedSlip10Key);
    // A session that is cut at a message leaves the same as before that message arrives: nothing, but at the party that
    // sends the last one.
    let observed = |protocol, session, change: Change<'_>, has: &dyn Fn(u32) -> bool| {
        let mut seen = Vec::new();
        let (done, aborts) = run_with(holders.starts(protocol, pair, session, change), |_, _, _| {
            seen.push(pair.map(has));
        });
        assert!(aborts.is_empty() && done[&2] == done[&3], "{aborts:?}");
        let (last, before) = seen.split_last().unwrap();
        assert!(before.iter().all(|has| *has == [false; 2]) && *last != [true; 2], "{seen:?}");
        (seen.len(), hex::encode(&done[&2].chain_code))
    };
    let has_pair = |id| !found_pair(holders.party(id), 5 - id).is_empty();
    observed(ProtocolId::HardenedSeedPair, 1, &|_| (), &has_pair);
    let has_node = |id: u32, session| {
        holders.start(id, &holders.config(keys, [id, 5 - id], 50, &key_of(session))).is_ok()
    };
    let (_, chain) = observed(nodes, 2, &node(None, &[H]), &|id| has_node(id, 2));
    assert_eq!(chain, "8b59aa11380b624e81507a27fedda59fea6d0b779a778918a2fd3590e16e9c69");
    let (messages, chain) = observed(nodes, 3, &node(Some(2), &[1 + H]), &|id| has_node(id, 3));
    let expected = "a320425f77d1b5c2505a6b1b27382b37368ee640e3557c315416801243552f14";
    assert_eq!(chain, expected);
    let done = holders.both(ProtocolId::HardenedSlip10Key, pair, 4, &key_of(3));
    assert_eq!(done[&2].key_public, done[&3].key_public);
    assert_eq!(hex::encode(&done[&3].chain_code), expected);
    let public = done[&2].key_public.clone().unwrap();
    let expected = "1932a5270f335bed617d5b935c80aedb1a35bd9fc1e31acafd5372c30f5c1187";
    assert_eq!((hex::encode(&public.public_key).as_str(), public.chain_code.len()), (expected, 0));
    let new = holders.reshare(ProtocolId::Ed25519Reshare, &done);
    let signature = holders.sign(ProtocolId::Ed25519Sign, &new, [1, 2], b"transfer 12");
    let key = VerifyingKey::from_bytes(public.public_key.as_slice().try_into().unwrap()).unwrap();
    let signature = Ed25519Signature::from_slice(&signature).unwrap();
    key.verify_strict(b"transfer 12", &signature).unwrap();

    slip10_refusals(&holders);

    // The last message is lost: one party has a node, and the other has not.
    let cut = |session: u8, at: usize| {
        let mut said = 0;
        let starts = holders.starts(nodes, pair, session, &node(Some(2), &[1 + H]));
        let (done, aborts) = run_with(starts, |_, _, envelope| {
            said += 1;
            if said > at {
                envelope.clear();
            }
        });
        assert!(aborts.is_empty(), "{aborts:?}");
        done.into_keys().collect::<Vec<u32>>()
    };
    let [has] = cut(31, messages - 1)[..] else { panic!("both or none") };
    assert!(has_node(has, 31) && !has_node(5 - has, 31));
    // Twice under one name: nobody can be sure of either.
    assert_eq!(cut(3, messages), pair);
    assert_eq!(pair.map(|id| has_node(id, 3)), [false; 2]);

    // Things that go with a node, with its set-up, and with a set-up in its place.
    let both = || pair.map(|id| found_pair(holders.party(id), 5 - id));
    let [one, same] = both();
    assert!(one == same && one.len() == 32);
    discard(holders.party(3), 2);
    assert_eq!(pair.map(|id| has_node(id, 2)), [true, false]);
    drop_one(holders.party(2), 2, 3, &[1; 32]);
    assert!(has_node(2, 2));
    drop_one(holders.party(2), 2, 3, &one);
    assert!(!has_node(2, 2));
    assert_eq!(holders.refused(nodes, [2, 3], &node(None, &[H])), setup(NO_PAIR));
    assert_eq!(both(), [vec![], one]);
    drop_one(holders.party(3), 0, 0, &[]);
    assert_eq!(both(), [vec![], vec![]]);
}

/// Of another pair, another seed, and forms that do not fit. Parties 2 and 3 have the node of session 3.
fn slip10_refusals(holders: &Holders) {
    let (nodes, keys) = (ProtocolId::HardenedSlip10Node, ProtocolId::HardenedSlip10Key);
    let refused = |protocol, pair, change: Change<'_>| holders.refused(protocol, pair, change);
    assert_eq!(refused(keys, [2, 1], &key_of(3)), setup(UNKNOWN));
    assert_eq!(refused(nodes, [2, 3], &node(Some(9), &[H])), setup(UNKNOWN));
    let other_seed = |config: &mut SessionConfig| {
        node(Some(3), &[H])(config);
        config.key_id = "keys/other".to_owned();
    };
    assert_eq!(refused(nodes, [2, 3], &other_seed), setup(UNKNOWN));
    assert_eq!(refused(nodes, [2, 1], &node(None, &[H])), setup(NO_PAIR));
    assert_eq!(refused(nodes, [2, 3], &node(None, &[])), setup(PAYLOAD));
    assert_eq!(refused(nodes, [2, 3], &node(Some(3), &[])), setup(PAYLOAD));
    assert_eq!(refused(nodes, [2, 3], &node(Some(3), &[1])), setup(PAYLOAD));
    assert_eq!(refused(nodes, [2, 3], &node(None, &[H, H, H])), setup(LONG));
    assert_eq!(refused(nodes, [2, 3], &node(Some(3), &[H; 9])), setup(LONG));
    let named = |config: &mut SessionConfig| {
        node(Some(3), &[H])(config);
        config.child_key_id = CHILD.to_owned();
    };
    assert_eq!(refused(nodes, [2, 3], &named), setup(UNEXPECTED));
    let short = |config: &mut SessionConfig| config.presignature_id = vec![3; 31];
    assert_eq!(refused(nodes, [2, 3], &short), setup("presignature_id is not 32 bytes"));
    let unnamed = |config: &mut SessionConfig| config.presignature_id = vec![3; 32];
    assert_eq!(refused(keys, [2, 3], &unnamed), setup(NAME));
    let with_path = |config: &mut SessionConfig| {
        key_of(3)(config);
        config.derivation_path = vec![H];
    };
    assert_eq!(refused(keys, [2, 3], &with_path), setup(UNEXPECTED));
    let later = |config: &mut SessionConfig| {
        key_of(3)(config);
        config.epoch = 2;
    };
    assert_eq!(refused(keys, [2, 3], &later), setup("epoch is not possible here"));
}

/// The set-up of a session in which a frame is wrong ends, and the session names who has sent it.
#[test]
fn a_wrong_frame_names_its_sender_and_ends_the_set_up() {
    let holders = Holders::of(&SEED);
    let pair = [1, 3];
    holders.join(pair, 1);
    let derive = &child(&[H]);
    let protocol = ProtocolId::HardenedSeedEcdsaChild;
    let mut sent = 0;
    let (done, aborts) = run_with(holders.starts(protocol, pair, 2, derive), |from, _, envelope| {
        sent += usize::from(from == 1);
        if from == 1 && sent == 2 {
            *envelope.last_mut().unwrap() ^= 1;
        }
    });
    assert!(done.is_empty(), "{done:?}");
    let abort = &aborts[&3];
    assert_eq!((abort.culprits.as_slice(), abort.advice), ([1].as_slice(), 2), "{abort:?}");
    assert!(abort.sealed_share.is_empty());
    assert_eq!(holders.refused(protocol, [3, 1], derive), setup(NO_PAIR));
    // The peer that deviated has not noticed; its vault forgets the pair when it is told.
    assert!(holders.start(1, &holders.config(protocol, [1, 3], 3, derive)).is_ok());
    drop_pair(holders.party(1), 3);
    assert_eq!(holders.refused(protocol, [1, 3], derive), setup(NO_PAIR));
}

/// Sessions that are cut leave nothing behind, and a vault has room for some at a time.
#[test]
fn sessions_that_are_cut_leave_nothing_behind() {
    let (holders, _) = Holders::with_key();
    let (pair, derive) = ([1, 2], &child(&[H]));
    for cut in [3, 100] {
        let mut said = 0;
        let starts = holders.starts(ProtocolId::HardenedEcdsaChild, pair, 7, derive);
        let (done, aborts) = run_with(starts, |_, _, envelope| {
            said += 1;
            if said > cut {
                envelope.clear();
            }
        });
        assert!(done.is_empty() && aborts.is_empty(), "cut after {cut}: {aborts:?}");
    }
    let start =
        |session| holders.start(1, &holders.config(ProtocolId::HardenedEcdsaChild, pair, session, derive));
    let open: Vec<_> = (0..24).map(|session| start(session).unwrap()).collect();
    assert_eq!(start(24).err(), Some(setup(FULL)));
    drop(open);
    assert!(start(25).is_ok());
}

#[test]
fn what_does_not_fit_a_key_or_a_seed_is_refused() {
    let (holders, _) = Holders::with_key();
    let refused = |change: Change<'_>| {
        holders.refused(ProtocolId::HardenedEcdsaChild, [1, 3], &|config| {
            child(&[H, 1])(config);
            change(config);
        })
    };
    assert_eq!(refused(&|config| config.key_id = "keys/other".to_owned()), setup(MISMATCH));
    assert_eq!(refused(&|config| config.epoch = 2), setup(MISMATCH));
    assert_eq!(refused(&|config| config.threshold = 3), setup(MISMATCH));
    assert_eq!(refused(&|config| config.own = 3), setup(MISMATCH));
    assert_eq!(refused(&|config| config.own = 0), setup("an observer cannot run this protocol"));
    let count = "the number of parties is not within 1..20";
    assert_eq!(refused(&|config| config.parties.truncate(1)), setup(count));
    assert_eq!(refused(&|config| config.parties[1].id = 4), setup("a signer holds no share of the key"));
    assert_eq!(refused(&|config| config.derivation_path.clear()), setup(PAYLOAD));
    assert_eq!(refused(&|config| config.derivation_path = vec![1]), setup(PAYLOAD));
    assert_eq!(refused(&|config| config.derivation_path = vec![H; 4]), setup(LONG));
    assert_eq!(refused(&|config| config.derivation_path = vec![1; 11]), setup(LONG));
    for name in ["", KEY, &"k".repeat(129)] {
        assert_eq!(refused(&|config| config.child_key_id = name.to_owned()), setup(NAME));
    }
    assert_eq!(refused(&|config| config.presignature_id = vec![1; 32]), setup(UNEXPECTED));
    let config = holders.config(ProtocolId::HardenedEcdsaChild, [1, 3], 1, &child(&[H]));
    assert_eq!(holders.start_with(1, &config, &[]).err(), Some(setup("sealed share is missing")));
    assert_eq!(holders.start_with(1, &config, &holders.shares[1]).err(), Some(setup(MISMATCH)));
    let mut damaged = holders.shares[0].clone();
    *damaged.last_mut().unwrap() ^= 1;
    let unsealed = (MPC_UNSEAL_FAILED, String::new());
    assert_eq!(holders.start_with(1, &config, &damaged).err(), Some(unsealed));
    // A name of a child belongs to nothing else.
    let sign = |config: &mut SessionConfig| {
        config.payload = DIGEST.to_vec();
        config.child_key_id = CHILD.to_owned();
    };
    let config = holders.config(ProtocolId::EcdsaSign, [1, 3], 1, &sign);
    assert_eq!(holders.start_with(1, &config, &holders.shares[0]).err(), Some(setup(UNEXPECTED)));

    let seeds = Holders::of(&SEED);
    let refused =
        |change: &dyn Fn(&mut SessionConfig)| seeds.refused(ProtocolId::HardenedSeedPair, [1, 3], change);
    assert_eq!(refused(&|config| config.key_id = "keys/other".to_owned()), setup(MISMATCH));
    assert_eq!(refused(&|config| config.epoch = 2), setup(MISMATCH));
    assert_eq!(refused(&|config| config.parties[1].id = 4), setup(MISMATCH));
    assert_eq!(refused(&|config| config.child_key_id = CHILD.to_owned()), setup(UNEXPECTED));
    let config = seeds.config(ProtocolId::HardenedSeedPair, [1, 3], 1, &|_| ());
    // A share of a key is none of a seed, and the other way round.
    assert_eq!(seeds.start_with(1, &config, &holders.shares[0]).err(), Some(setup(MISMATCH)));
    let config = seeds.config(ProtocolId::HardenedEcdsaChild, [1, 3], 1, &child(&[H]));
    assert_eq!(seeds.start_with(1, &config, &seeds.shares[0]).err(), Some(setup(MISMATCH)));
    let config = seeds.config(ProtocolId::HardenedSeedEcdsaChild, [1, 3], 1, &child(&[H]));
    assert_eq!(seeds.start(1, &config).err(), Some(setup(NO_PAIR)));
}

#[test]
fn a_share_of_a_seed_is_taken_by_its_party_alone() {
    let parties = parties(3);
    let split = split(&[9; 64], &parties);
    let root = split.key_public.as_ref().unwrap();
    assert_eq!((root.public_key.len(), root.chain_code.len(), root.threshold, root.epoch), (33, 32, 2, 1));
    for (party, share) in parties.iter().zip(&split.shares) {
        assert_eq!(taken(party, &share.value).key_public.as_ref(), Some(root));
    }
    let refused = |reply| assert!(matches!(reply, Ok(ImportReplyKind::ShareRefused(_))), "{reply:?}");
    let [first, second, _] = &parties[..] else { panic!() };
    let share = &split.shares[0].value;
    refused(take_call(second, share));
    refused(take_call(first, &[]));
    let mut changed = share.clone();
    *changed.last_mut().unwrap() ^= 1;
    refused(take_call(first, &changed));
    // A share of a key is none of a seed, and the other way round.
    refused(take_call(first, &exact::split(&[7; 32], &parties).shares[0].value));
    refused(exact::take_call(first, share));
    let take = |key_id: &str, party| TakeSeedShare { key_id: key_id.into(), party, share: share.clone() };
    let other = ImportCallKind::TakeSeedShare(take("keys/other", 1));
    refused(call(Some(&first.vault), &first.identity, other));
    for (vault, identity, code) in [
        (None, &first.identity[..], MPC_SETUP_REFUSED),
        (Some(&first.vault), &[][..], MPC_SETUP_REFUSED),
        (Some(&second.vault), &first.identity[..], MPC_UNSEAL_FAILED),
    ] {
        let reply = call(vault, identity, ImportCallKind::TakeSeedShare(take(KEY, 1)));
        assert_eq!(reply.err().unwrap().0, code);
    }
    let detail = |change: &dyn Fn(&mut SplitSeed)| {
        let mut split = split_call(&[9; 64], &parties);
        change(&mut split);
        call(None, &[], ImportCallKind::SplitSeed(split)).err().unwrap()
    };
    for wrong in [0, 15, 65] {
        let refused = detail(&|split| split.seed = vec![1; wrong]);
        assert_eq!(refused, setup("payload has a length that the protocol does not allow"));
    }
    assert_eq!(detail(&|split| split.key_id.clear()), setup(NAME));
    let count = "the number of parties is not within 1..20";
    assert_eq!(detail(&|split| split.parties.truncate(1)), setup(count));
    assert_eq!(detail(&|split| split.parties.swap(0, 1)), setup("party ids are not strictly ascending"));
}

/// Cut at every byte, and with every byte another one: a reply or a refusal, and never a share that another split made.
#[test]
fn no_call_of_another_form_gets_through() {
    let parties = parties(2);
    let share = split(&SEED, &parties).shares[0].value.clone();
    let take = TakeSeedShare { key_id: KEY.into(), party: 1, share };
    let party = &parties[0];
    for kind in [ImportCallKind::SplitSeed(split_call(&SEED, &parties)), ImportCallKind::TakeSeedShare(take)]
    {
        let call = ImportCall { call: Some(kind) }.encode_to_vec();
        for place in 0..call.len() {
            let mut changed = call.clone();
            changed[place] ^= 0x81;
            for wrong in [changed.as_slice(), &call[..place]] {
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
