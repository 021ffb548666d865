//! Threshold ECDSA through the interface: whole lives of keys, presignatures that work once, and garbage in every
//! field.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;

use common::{Party, Session, Vault, config, parties, run, run_with, view};
use coterie_mpc::proto::{self, Done, Progress, ProtocolId, SessionConfig, Step};
use coterie_mpc::*;
use prost::Message;
use protocols::bip32::{DerivationPath, derive};
use protocols::ecdsa::{Point, Signature, decode_point};

const DIGEST: [u8; 32] = [0xd1; 32];
const PATH: [u32; 3] = [44, 0, 7];
const TRANSFER_CHECK_FAILED: i32 = 15;

type Dones = BTreeMap<u32, Done>;
type Started = (Session, Step);
type Refusal = (i32, String);

fn refused(reason: &str) -> Option<Refusal> {
    Some((MPC_SETUP_REFUSED, reason.to_owned()))
}

fn unsealed() -> Option<Refusal> {
    Some((MPC_UNSEAL_FAILED, String::new()))
}

fn keygen(parties: &[Party], threshold: u32) -> Dones {
    let all: Vec<&Party> = parties.iter().collect();
    run(parties
        .iter()
        .map(|party| {
            let config = config(ProtocolId::EcdsaKeygen, party.id, &all, threshold).encode_to_vec();
            (party.id, Session::start(Some(&party.vault), &config, &party.identity, &[]).unwrap())
        })
        .collect())
}

/// Presignatures that a session makes here.
const MADE: u32 = 2;

fn signing(protocol: ProtocolId, own: u32, signers: &[&Party]) -> SessionConfig {
    SessionConfig {
        payload: DIGEST.to_vec(),
        derivation_path: PATH.to_vec(),
        ..config(protocol, own, signers, 2)
    }
}

fn presigning(own: u32, signers: &[&Party], session: u8) -> SessionConfig {
    SessionConfig {
        payload: Vec::new(),
        session_id: vec![session; 32],
        presignature_count: MADE,
        ..signing(ProtocolId::EcdsaPresign, own, signers)
    }
}

/// Signing with the first presignature of a session.
fn using(made: &Done, own: u32, signers: &[&Party]) -> SessionConfig {
    using_one(&made.presignatures[0], own, signers)
}

fn using_one(made: &proto::Presignature, own: u32, signers: &[&Party]) -> SessionConfig {
    SessionConfig {
        presignature_id: made.id.clone(),
        sealed_presignature: made.sealed.clone(),
        ..signing(ProtocolId::EcdsaSignPresigned, own, signers)
    }
}

fn start(party: &Party, config: &SessionConfig, share: &[u8]) -> Result<Started, Refusal> {
    Session::start(Some(&party.vault), &config.encode_to_vec(), &party.identity, share)
}

fn presign(signers: &[&Party], keys: &Dones, session: u8) -> Dones {
    run(signers
        .iter()
        .map(|party| {
            let share = &keys[&party.id].sealed_share;
            (party.id, start(party, &presigning(party.id, signers, session), share).unwrap())
        })
        .collect())
}

fn observer(config: SessionConfig, keys: &Dones) -> Result<Started, Refusal> {
    let public = keys.values().next().unwrap().key_public.clone();
    let config = SessionConfig { own: 0, key_public: public, sealed_presignature: Vec::new(), ..config };
    Session::start(None, &config.encode_to_vec(), &[], &[])
}

fn sign(signers: &[&Party], keys: &Dones, epoch: u32) -> Dones {
    let config = |own| SessionConfig { epoch, ..signing(ProtocolId::EcdsaSign, own, signers) };
    let mut sessions: BTreeMap<u32, Started> = signers
        .iter()
        .map(|party| (party.id, start(party, &config(party.id), &keys[&party.id].sealed_share).unwrap()))
        .collect();
    sessions.insert(0, observer(config(0), keys).unwrap());
    run(sessions)
}

fn sign_presigned(signers: &[&Party], keys: &Dones, made: &Dones) -> Dones {
    let mut sessions: BTreeMap<u32, Started> = signers
        .iter()
        .map(|party| {
            let config = using(&made[&party.id], party.id, signers);
            (party.id, start(party, &config, &[]).unwrap())
        })
        .collect();
    sessions.insert(0, observer(using(&made[&signers[0].id], 0, signers), keys).unwrap());
    run(sessions)
}

fn child(keys: &Dones) -> Point {
    let public = keys.values().next().unwrap().key_public.clone().unwrap();
    let joint = decode_point(public.public_key.as_slice().try_into().unwrap()).unwrap();
    let chain_code = public.chain_code.as_slice().try_into().unwrap();
    derive(&joint, &chain_code, &DerivationPath::new(&PATH).unwrap()).unwrap().public_key
}

/// All have the same signature, and it is one of the child key.
fn check(keys: &Dones, signatures: &Dones) {
    let first = signatures.values().next().unwrap();
    assert!(signatures.values().all(|done| done == first));
    assert!(first.sealed_share.is_empty() && first.presignatures.is_empty());
    let recovery_id = u8::try_from(first.recovery_id.unwrap()).unwrap();
    let signature =
        Signature::from_compact(first.signature.as_slice().try_into().unwrap(), recovery_id).unwrap();
    assert!(signature.verifies(&child(keys), &DIGEST));
}

#[test]
fn key_generation_and_both_ways_of_signing() {
    let parties = parties(3);
    let keys = keygen(&parties, 2);
    let public = keys[&1].key_public.clone().unwrap();
    assert!(keys.values().all(|done| done.key_public.as_ref() == Some(&public)));
    assert_eq!((public.public_key.len(), public.chain_code.len(), public.epoch), (33, 32, 1));
    assert_eq!((public.verification_shares.len(), public.threshold), (3, 2));
    assert!(public.proof_of_possession.is_empty());

    let signers = [&parties[0], &parties[2]];
    let signatures = sign(&signers, &keys, 1);
    assert_eq!(signatures.len(), 3);
    check(&keys, &signatures);

    let made = presign(&signers, &keys, 1);
    let ids = |party: u32| -> Vec<&[u8]> { made[&party].presignatures.iter().map(|one| &*one.id).collect() };
    assert_eq!(ids(1), ids(3));
    assert_eq!(ids(1).len(), MADE as usize);
    assert!(ids(1).iter().all(|id| id.len() == 32));
    assert_ne!(ids(1)[0], ids(1)[1]);
    assert!(made[&1].signature.is_empty() && made[&1].recovery_id.is_none());
    let presigned = sign_presigned(&signers, &keys, &made);
    assert_eq!(presigned.len(), 3);
    check(&keys, &presigned);
    assert_ne!(presigned[&0].signature, signatures[&0].signature);
}

#[test]
fn a_presignature_works_once_and_in_its_vault_only() {
    let parties = parties(3);
    let keys = keygen(&parties, 2);
    let signers = [&parties[0], &parties[1]];
    let me = &parties[0];
    let unknown = refused("the vault has no such presignature, or had it and it was used");
    let made = presign(&signers, &keys, 1);
    let order = using(&made[&1], 1, &signers);
    // A vault of the same data key is another vault: after a restart nothing opens.
    let again = Vault::new(1);
    assert_eq!(Session::start(Some(&again), &order.encode_to_vec(), &[], &[]).err(), unknown);
    // The peer's vault knows the id, but not this blob.
    let swapped = SessionConfig { own: 2, ..order.clone() };
    assert_eq!(start(&parties[1], &swapped, &[]).err(), unsealed());
    // The right vault takes it once, whatever became of the session.
    drop(start(me, &order, &[]).unwrap());
    assert_eq!(start(me, &order, &[]).err(), unknown);

    // An attempt that does not fit uses it up as well.
    type Change = fn(&mut SessionConfig);
    let attempts: [(Change, Option<Refusal>); 6] = [
        (
            |c| c.derivation_path[0] ^= 1,
            refused("the share is of another protocol, key, party, epoch or threshold"),
        ),
        (
            |c| c.parties[1].id = 3,
            refused("the share is of another protocol, key, party, epoch or threshold"),
        ),
        (|c| c.epoch = 2, refused("the share is of another protocol, key, party, epoch or threshold")),
        (|c| c.key_id.push('x'), refused("the share is of another protocol, key, party, epoch or threshold")),
        (|c| c.sealed_presignature[40] ^= 1, unsealed()),
        (|c| c.sealed_presignature.truncate(50), unsealed()),
    ];
    for (session, (change, expected)) in (2..).zip(attempts) {
        let made = presign(&signers, &keys, session);
        let order = using(&made[&1], 1, &signers);
        let mut wrong = order.clone();
        change(&mut wrong);
        assert_eq!(start(me, &wrong, &[]).err(), expected, "case {session}");
        assert_eq!(start(me, &order, &[]).err(), unknown, "case {session}");
    }

    // Two presignatures do not open in each other's place.
    let (one, two) = (presign(&signers, &keys, 20), presign(&signers, &keys, 21));
    let mixed = SessionConfig {
        sealed_presignature: two[&1].presignatures[0].sealed.clone(),
        ..using(&one[&1], 1, &signers)
    };
    assert_eq!(start(me, &mixed, &[]).err(), unsealed());
    assert!(start(me, &using(&two[&1], 1, &signers), &[]).is_ok());

    // Dropped is dropped, and again is no error.
    let made = presign(&signers, &keys, 30);
    for _ in 0..2 {
        let code = unsafe { mpc_vault_drop_presignature(me.vault.0, view(&made[&1].presignatures[0].id)) };
        assert_eq!(code, MPC_OK);
    }
    assert_eq!(start(me, &using(&made[&1], 1, &signers), &[]).err(), unknown);
    // The others of its session are not touched by that.
    assert!(start(me, &using_one(&made[&1].presignatures[1], 1, &signers), &[]).is_ok());
    assert!(start(&parties[1], &using(&made[&2], 2, &signers), &[]).is_ok());
}

/// A presignature that outlives its vault handle can be finished, but not used.
#[test]
fn the_vault_may_go_before_a_presigning_session() {
    let parties = parties(2);
    let keys = keygen(&parties, 2);
    let signers = [&parties[0], &parties[1]];
    let mut sessions = BTreeMap::new();
    for party in signers {
        let vault = Vault::new(u8::try_from(party.id).unwrap());
        let config = presigning(party.id, &signers, 1).encode_to_vec();
        let share = &keys[&party.id].sealed_share;
        sessions.insert(party.id, Session::start(Some(&vault), &config, &[], share).unwrap());
    }
    let made = run(sessions);
    let unknown = refused("the vault has no such presignature, or had it and it was used");
    assert_eq!(start(&parties[0], &using(&made[&1], 1, &signers), &[]).err(), unknown);
}

#[test]
fn refresh_makes_the_old_share_useless() {
    let parties = parties(3);
    let all: Vec<&Party> = parties.iter().collect();
    let old = keygen(&parties, 2);
    let signers = [&parties[0], &parties[1]];
    let presignature = presign(&signers, &old, 1);
    let order = |own| SessionConfig { epoch: 1, ..config(ProtocolId::EcdsaRefresh, own, &all, 2) };
    let refresh = |keys: &Dones, epoch| {
        run(parties
            .iter()
            .map(|party| {
                let config = SessionConfig { epoch, ..order(party.id) };
                (party.id, start(party, &config, &keys[&party.id].sealed_share).unwrap())
            })
            .collect())
    };
    let new = refresh(&old, 1);
    let (before, after) = (old[&1].key_public.clone().unwrap(), new[&1].key_public.clone().unwrap());
    assert_eq!((&after.public_key, &after.chain_code), (&before.public_key, &before.chain_code));
    assert_eq!((before.epoch, after.epoch), (1, 2));
    check(&old, &sign(&signers, &new, 2));
    assert_eq!(refresh(&new, 2)[&1].key_public.clone().unwrap().epoch, 3);

    let mismatch = refused("the share is of another protocol, key, party, epoch or threshold");
    let me = &parties[0];
    let sign = SessionConfig { epoch: 2, ..signing(ProtocolId::EcdsaSign, 1, &signers) };
    assert_eq!(start(me, &sign, &old[&1].sealed_share).err(), mismatch);
    assert_eq!(start(me, &SessionConfig { epoch: 1, ..sign.clone() }, &new[&1].sealed_share).err(), mismatch);
    let stale = SessionConfig { epoch: 2, ..using(&presignature[&1], 1, &signers) };
    assert_eq!(start(me, &stale, &[]).err(), mismatch);
    // Refresh wants the share of the epoch it names, all parties, and nothing else.
    let own = &old[&1].sealed_share;
    let try_refresh = |change: &dyn Fn(&mut SessionConfig), share: &[u8]| {
        let mut config = order(1);
        change(&mut config);
        start(me, &config, share).err()
    };
    assert_eq!(try_refresh(&|_| (), own), None);
    assert_eq!(try_refresh(&|c| c.epoch = 2, own), mismatch);
    assert_eq!(try_refresh(&|c| c.epoch = 0, own), mismatch);
    assert_eq!(try_refresh(&|c| c.epoch = u32::MAX, own), mismatch);
    assert_eq!(try_refresh(&|_| (), &new[&1].sealed_share), mismatch);
    assert_eq!(try_refresh(&|_| (), &old[&2].sealed_share), mismatch);
    assert_eq!(try_refresh(&|_| (), &[]), refused("sealed share is missing"));
    assert_eq!(
        try_refresh(
            &|c| {
                c.parties.pop();
            },
            own
        ),
        refused("a signer holds no share of the key")
    );
    assert_eq!(try_refresh(&|c| c.own = 0, own), refused("an observer cannot run this protocol"));
    assert_eq!(
        try_refresh(&|c| c.payload = vec![1], own),
        refused("payload has a length that the protocol does not allow")
    );
    let unexpected = refused("an input was given that the protocol does not take");
    assert_eq!(try_refresh(&|c| c.key_public = Some(before.clone()), own), unexpected);
    assert_eq!(try_refresh(&|c| c.derivation_path = vec![1], own), unexpected);
}

#[test]
fn reshare_moves_the_key_to_other_parties() {
    let parties = parties(4);
    let (old_parties, all): (&[Party], Vec<&Party>) = (&parties[..3], parties.iter().collect());
    let old = keygen(old_parties, 2);
    let before = old[&1].key_public.clone().unwrap();
    // Party 1 leaves, party 2 deals and stays, 3 has lost its share, 4 joins; then all three are needed.
    let order = |own| SessionConfig {
        dealers: vec![1, 2],
        receivers: vec![2, 3, 4],
        key_public: Some(before.clone()),
        ..config(ProtocolId::EcdsaReshare, own, &all, 3)
    };
    let share_of = |own: u32| if own < 3 { old[&own].sealed_share.as_slice() } else { &[] };
    let new = run(parties
        .iter()
        .map(|party| (party.id, start(party, &order(party.id), share_of(party.id)).unwrap()))
        .collect());
    let after = new[&1].key_public.clone().unwrap();
    assert!(new.values().all(|done| done.key_public.as_ref() == Some(&after)));
    assert_eq!(
        new.values().map(|done| done.sealed_share.is_empty()).collect::<Vec<_>>(),
        [true, false, false, false]
    );
    assert_eq!((&after.public_key, &after.chain_code), (&before.public_key, &before.chain_code));
    assert_eq!((after.epoch, after.threshold, after.verification_shares.len()), (2, 3, 3));
    let signers = [&parties[1], &parties[2], &parties[3]];
    let signing =
        |own| SessionConfig { threshold: 3, epoch: 2, ..signing(ProtocolId::EcdsaSign, own, &signers) };
    let sessions = signers
        .iter()
        .map(|party| (party.id, start(party, &signing(party.id), &new[&party.id].sealed_share).unwrap()));
    check(&old, &run(sessions.collect()));

    let attempt = |own: u32, change: &dyn Fn(&mut SessionConfig), share: &[u8]| {
        let mut config = order(own);
        change(&mut config);
        start(&parties[own as usize - 1], &config, share).err()
    };
    let mismatch = refused("the share is of another protocol, key, party, epoch or threshold");
    let unexpected = refused("an input was given that the protocol does not take");
    let roles = refused("dealers and receivers do not fit the parties and the old threshold");
    let invalid = refused("key_public is not valid for this key, epoch and threshold");
    let own = share_of(1);
    assert_eq!(attempt(1, &|_| (), own), None);
    assert_eq!(attempt(4, &|_| (), &[]), None);
    assert_eq!(attempt(1, &|_| (), &[]), refused("sealed share is missing"));
    assert_eq!(attempt(4, &|_| (), own), unexpected);
    assert_eq!(attempt(1, &|_| (), share_of(2)), mismatch);
    assert_eq!(attempt(2, &|_| (), &new[&2].sealed_share), mismatch);
    assert_eq!(attempt(1, &|c| c.own = 0, own), refused("an observer cannot run this protocol"));
    assert_eq!(attempt(1, &|c| c.dealers.clear(), &[]), roles);
    assert_eq!(attempt(1, &|c| c.dealers = vec![1], own), roles);
    assert_eq!(attempt(1, &|c| c.dealers = vec![2, 1], own), refused("party ids are not strictly ascending"));
    assert_eq!(attempt(1, &|c| c.receivers = vec![0, 2], own), refused("a party id is not within 1..65535"));
    assert_eq!(
        attempt(1, &|c| c.receivers = (1..=21).collect(), own),
        refused("the number of parties is not within 1..20")
    );
    assert_eq!(
        attempt(1, &|c| c.threshold = 4, own),
        refused("threshold is not within 1..number of parties")
    );
    assert_eq!(attempt(1, &|c| c.epoch = 2, own), mismatch);
    assert_eq!(attempt(4, &|c| c.epoch = 2, &[]), refused("epoch is not possible here"));
    assert_eq!(attempt(4, &|c| c.epoch = u32::MAX, &[]), refused("epoch is not possible here"));
    assert_eq!(attempt(1, &|c| c.key_public = None, own), refused("key_public is missing"));
    assert_eq!(attempt(4, &|c| c.key_public.as_mut().unwrap().key_id.push('x'), &[]), invalid);
    assert_eq!(
        attempt(
            4,
            &|c| c.key_public.as_mut().unwrap().verification_shares[0].point = after.public_key.clone(),
            &[]
        ),
        invalid
    );
    assert_eq!(
        attempt(1, &|c| c.payload = vec![1], own),
        refused("payload has a length that the protocol does not allow")
    );
    // Roles belong to nothing else.
    let all: Vec<&Party> = old_parties.iter().collect();
    for field in [0, 1] {
        let mut config = config(ProtocolId::EcdsaKeygen, 1, &all, 2);
        if field == 0 {
            config.dealers = vec![1]
        } else {
            config.receivers = vec![1]
        }
        assert_eq!(start(&parties[0], &config, &[]).err(), unexpected);
    }
}

/// Flips one bit in what party 2 sends party 1 in round 1, inside the part that the transfers check.
fn spoil(from: u32, to: u32, envelope: &mut [u8]) {
    if (from, to) == (2, 1) && envelope.len() > 2000 {
        let middle = envelope.len() / 2;
        envelope[middle] ^= 1;
    }
}

#[test]
fn a_failed_check_returns_the_share_without_the_peer() {
    let parties = parties(3);
    let keys = keygen(&parties, 2);
    let (me, signers) = (&parties[0], [&parties[0], &parties[1]]);
    let excluded = refused("a signer is excluded by this party's share");
    for presigned in [false, true] {
        let session = |party: &Party, signers: &[&Party]| {
            if presigned {
                presigning(party.id, signers, 9)
            } else {
                signing(ProtocolId::EcdsaSign, party.id, signers)
            }
        };
        // A vault of its own, so that what it remembers is of this case only.
        let vault = Vault::new(1);
        let own = &keys[&1].sealed_share;
        let begin = |signers: &[&Party], share: &[u8]| {
            Session::start(Some(&vault), &session(me, signers).encode_to_vec(), &[], share)
        };
        let other = start(&parties[1], &session(&parties[1], &signers), &keys[&2].sealed_share).unwrap();
        let sessions = BTreeMap::from([(1, begin(&signers, own).unwrap()), (2, other)]);
        let (done, aborts) = run_with(sessions, |from, to, envelope| spoil(from, to, envelope));
        assert!(done.is_empty());
        let abort = &aborts[&1];
        assert_eq!((abort.cause, abort.culprits.as_slice()), (TRANSFER_CHECK_FAILED, [2].as_slice()));
        assert_eq!(abort.advice, 2);
        let resealed = &abort.sealed_share;
        assert_ne!(resealed, own);
        // The share that came back refuses the peer anywhere, the old one in this vault.
        assert_eq!(start(me, &session(me, &signers), resealed).err(), excluded);
        assert_eq!(begin(&signers, own).err(), excluded);
        assert_eq!(begin(&signers, resealed).err(), excluded);
        // Without the peer it is as good as before.
        let rest = [&parties[0], &parties[2]];
        let third = start(&parties[2], &session(&parties[2], &rest), &keys[&3].sealed_share).unwrap();
        assert_eq!(run(BTreeMap::from([(1, begin(&rest, resealed).unwrap()), (3, third)])).len(), 2);
    }
}

/// Two sessions begin with the same share, and each fails with another peer: the share that comes back last has
/// neither.
#[test]
fn exclusions_of_sessions_side_by_side_add_up() {
    let parties = parties(3);
    let keys = keygen(&parties, 2);
    let me = &parties[0];
    let pair = |peer: usize| [&parties[0], &parties[peer]];
    let begin = |peer: usize| {
        let (signers, other) = (pair(peer), &parties[peer]);
        let config = |own| signing(ProtocolId::EcdsaSign, own, &signers);
        let mine = start(me, &config(1), &keys[&1].sealed_share).unwrap();
        let theirs = start(other, &config(other.id), &keys[&other.id].sealed_share).unwrap();
        (mine, theirs)
    };
    let fail = |(mine, theirs): (Started, Started), peer: u32| {
        let sessions = BTreeMap::from([(1, mine), (peer, theirs)]);
        let (_, aborts) =
            run_with(sessions, |from, _, envelope| spoil(if from == 1 { 0 } else { 2 }, 1, envelope));
        aborts[&1].sealed_share.clone()
    };
    let (with_two, with_three) = (begin(1), begin(2));
    assert!(!fail(with_two, 2).is_empty());
    let last = fail(with_three, 3);
    let elsewhere = Vault::new(1);
    for peer in [1, 2] {
        let config = signing(ProtocolId::EcdsaSign, 1, &pair(peer)).encode_to_vec();
        let refusal = Session::start(Some(&elsewhere), &config, &[], &last).err();
        assert_eq!(refusal, refused("a signer is excluded by this party's share"));
    }
}

/// A peer that runs many sessions at a time has one guess, not as many as there are sessions.
#[test]
fn a_failed_check_ends_all_sessions_with_the_peer() {
    let parties = parties(3);
    let keys = keygen(&parties, 2);
    let me = &parties[0];
    let begin = |session: u8, peer: usize| {
        let signers = [me, &parties[peer]];
        let id = parties[peer].id;
        let config = |own| SessionConfig {
            session_id: vec![session; 32],
            ..signing(ProtocolId::EcdsaSign, own, &signers)
        };
        let mine = start(me, &config(1), &keys[&1].sealed_share).unwrap();
        let theirs = start(&parties[peer], &config(id), &keys[&id].sealed_share).unwrap();
        (mine, theirs)
    };
    let (mut waiting, with_third) = (begin(1, 1), begin(2, 2));
    let (mine, theirs) = begin(3, 1);
    // One more has sent its last message: nothing in it can fail any more.
    let (mut last, (mut peer, first)) = begin(4, 1);
    let mut partial = Vec::new();
    let (mut to_peer, mut to_me) = (std::mem::take(&mut last.1.outgoing), first.outgoing);
    for _ in 0..2 {
        let (mine, theirs) = (last.0.handle(2, &to_me[0].envelope), peer.handle(1, &to_peer[0].envelope));
        (to_peer, to_me) = (mine.outgoing, theirs.outgoing);
        partial = to_me[0].envelope.clone();
    }
    let (_, aborts) =
        run_with(BTreeMap::from([(1, mine), (2, theirs)]), |from, to, bytes| spoil(from, to, bytes));
    assert_eq!(aborts[&1].culprits, [2]);
    let genuine = waiting.1.1.outgoing[0].envelope.clone();
    let step = waiting.0.0.handle(2, &genuine);
    let Some(Progress::Abort(abort)) = step.progress else { panic!("the session went on") };
    assert_eq!((abort.cause, abort.culprits.as_slice()), (TRANSFER_CHECK_FAILED, [2].as_slice()));
    assert!(!abort.sealed_share.is_empty() && step.outgoing.is_empty());
    assert!(matches!(waiting.0.0.handle(2, &genuine).progress, Some(Progress::Dropped(_))));
    assert!(matches!(last.0.handle(2, &partial).progress, Some(Progress::Done(_))));
    assert_eq!(run(BTreeMap::from([(1, with_third.0), (3, with_third.1)])).len(), 2);
}

/// Sessions with one peer in as many threads, some of which it spoils: in any order of the threads, each either
/// answered before the check that failed or names the peer; and sessions with overlapping signing sets do not wait for
/// each other for ever.
#[test]
fn threads_answer_no_guess_after_the_one_that_failed() {
    /// A session is used by one thread at a time.
    struct Sent(Session);
    unsafe impl Send for Sent {}
    impl Sent {
        fn handle_all(mut self, envelopes: &[(u32, Vec<u8>)]) -> Vec<Step> {
            envelopes.iter().map(|(from, envelope)| self.0.handle(*from, envelope)).collect()
        }
    }

    let parties = parties(3);
    let keys = keygen(&parties, 2);
    let begin = |session: u8, set: &[usize]| {
        let signers: Vec<&Party> = set.iter().map(|place| &parties[*place]).collect();
        let config = |own| SessionConfig {
            session_id: vec![session; 32],
            ..signing(ProtocolId::EcdsaSign, own, &signers)
        };
        let started = |party: &Party| start(party, &config(party.id), &keys[&party.id].sealed_share).unwrap();
        let mine = started(signers[0]);
        let to_me = signers[1..].iter().map(|peer| {
            let to_me = started(peer).1.outgoing.into_iter().find(|outgoing| outgoing.recipient == 1);
            (peer.id, to_me.unwrap().envelope)
        });
        (Sent(mine.0), to_me.collect::<Vec<_>>())
    };
    let sets: [&[usize]; 4] = [&[0, 1], &[0, 1, 2], &[0, 2], &[0, 1]];
    let sessions: Vec<_> = (0..12u8)
        .map(|number| {
            let (session, mut to_me) = begin(20 + number, sets[usize::from(number) % sets.len()]);
            let spoilt = number % 4 < 2;
            if spoilt {
                spoil(2, 1, &mut to_me[0].1);
            }
            (spoilt, session, to_me)
        })
        .collect();
    let barrier = std::sync::Barrier::new(sessions.len());
    let ends: Vec<(bool, bool, Step)> = std::thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .into_iter()
            .map(|(spoilt, session, to_me)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    let with_attacker = to_me[0].0 == 2;
                    (spoilt, with_attacker, session.handle_all(&to_me).pop().unwrap())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (spoilt, with_attacker, step) in ends {
        match step.progress {
            Some(Progress::Abort(abort)) => {
                assert!(with_attacker);
                assert_eq!((abort.cause, abort.culprits.as_slice()), (TRANSFER_CHECK_FAILED, [2].as_slice()));
                assert!(!abort.sealed_share.is_empty() && step.outgoing.is_empty());
            }
            // A session of three hears nothing more of the attacker once it has stopped.
            Some(Progress::Dropped(_)) => assert!(with_attacker && step.outgoing.is_empty()),
            _ => assert!(!spoilt && !step.outgoing.is_empty()),
        }
    }
    // Sessions that were begun before, and those that begin now, answer that peer no more.
    let again = signing(ProtocolId::EcdsaSign, 1, &[&parties[0], &parties[1]]);
    let refusal = start(&parties[0], &again, &keys[&1].sealed_share).err();
    assert_eq!(refusal, refused("a signer is excluded by this party's share"));
    let (session, to_me) = begin(50, &[0, 2]);
    assert!(!session.handle_all(&to_me)[0].outgoing.is_empty());
}

#[test]
fn other_aborts_return_no_share() {
    let parties = parties(2);
    let keys = keygen(&parties, 2);
    let signers = [&parties[0], &parties[1]];
    let sessions = signers
        .iter()
        .map(|party| {
            let config = signing(ProtocolId::EcdsaSign, party.id, &signers);
            (party.id, start(party, &config, &keys[&party.id].sealed_share).unwrap())
        })
        .collect();
    // The last byte of the body of the only short message: the partial signature.
    let (done, aborts) = run_with(sessions, |from, _, envelope| {
        if from == 2 && envelope.len() < 300 {
            *envelope.last_mut().unwrap() ^= 1;
        }
    });
    assert!(!done.contains_key(&1));
    assert!(aborts[&1].sealed_share.is_empty() && aborts[&1].culprits.is_empty());
}

#[test]
fn setups_are_refused_with_a_reason() {
    let parties = parties(3);
    let keys = keygen(&parties, 2);
    let (me, signers) = (&parties[0], [&parties[0], &parties[1]]);
    let own = &keys[&1].sealed_share;
    let made = presign(&signers, &keys, 1);
    let attempt = |base: &SessionConfig, change: &dyn Fn(&mut SessionConfig), share: &[u8]| {
        let mut config = base.clone();
        change(&mut config);
        start(me, &config, share).err()
    };
    let length = refused("payload has a length that the protocol does not allow");
    let path = refused("derivation_path is too long or has a hardened step");
    let unexpected = refused("an input was given that the protocol does not take");
    let mismatch = refused("the share is of another protocol, key, party, epoch or threshold");

    let sign = signing(ProtocolId::EcdsaSign, 1, &signers);
    let presign = presigning(1, &signers, 1);
    for (base, digest) in [(&sign, true), (&presign, false)] {
        assert_eq!(attempt(base, &|_| (), own), None);
        for bad in [0usize, 1, 31, 32, 33, 65_536] {
            let fits = if digest { bad == 32 } else { bad == 0 };
            let expected = if fits { None } else { length.clone() };
            assert_eq!(attempt(base, &|c| c.payload = vec![1; bad], own), expected, "payload of {bad}");
        }
        assert_eq!(attempt(base, &|c| c.derivation_path = vec![0; 11], own), path);
        assert_eq!(attempt(base, &|c| c.derivation_path = vec![1 << 31], own), path);
        assert_eq!(attempt(base, &|c| c.derivation_path = vec![0; 10_000], own), path);
        assert_eq!(attempt(base, &|c| c.derivation_path.clear(), own), None);
        assert_eq!(attempt(base, &|c| c.presignature_id = vec![1; 32], own), unexpected);
        assert_eq!(attempt(base, &|c| c.sealed_presignature = vec![1], own), unexpected);
        assert_eq!(attempt(base, &|c| c.key_public = keys[&1].key_public.clone(), own), unexpected);
        assert_eq!(attempt(base, &|_| (), &[]), refused("sealed share is missing"));
        assert_eq!(attempt(base, &|_| (), &keys[&2].sealed_share), mismatch);
        assert_eq!(attempt(base, &|_| (), &me.identity), unsealed());
        assert_eq!(attempt(base, &|_| (), &made[&1].presignatures[0].sealed), unsealed());
        assert_eq!(attempt(base, &|_| (), &own[..own.len() - 1]), unsealed());
        assert_eq!(attempt(base, &|c| c.threshold = 3, own), mismatch);
        assert_eq!(
            attempt(base, &|c| c.threshold = 0, own),
            refused("threshold is not within 1..number of parties")
        );
        assert_eq!(attempt(base, &|c| c.own = 2, own), mismatch);
        assert_eq!(attempt(base, &|c| c.own = 65_536, own), refused("a party id is not within 1..65535"));
        assert_eq!(
            attempt(
                base,
                &|c| {
                    c.parties.pop();
                },
                own
            ),
            refused("fewer signers than the threshold")
        );
        assert_eq!(
            attempt(base, &|c| c.session_id = vec![1; 31], own),
            refused("session_id is not 32 bytes")
        );
        let bytes = base.encode_to_vec();
        assert_eq!(Session::start(None, &bytes, &[], own).err(), refused("vault is missing"));
        assert_eq!(Session::start(Some(&parties[1].vault), &bytes, &[], own).err(), unsealed());
    }
    assert_eq!(attempt(&sign, &|c| c.presignature_count = 1, own), unexpected);
    for bad in [0, 5, 256, 257, u32::MAX] {
        let expected = refused("presignature_count is not one that a session can make");
        assert_eq!(attempt(&presign, &|c| c.presignature_count = bad, own), expected);
    }
    assert_eq!(attempt(&presign, &|c| c.presignature_count = 4, own), None);
    assert_eq!(attempt(&presign, &|c| c.own = 0, &[]), refused("an observer cannot run this protocol"));

    let presigned = using(&made[&1], 1, &signers);
    assert_eq!(attempt(&presigned, &|c| c.payload = vec![1; 31], &[]), length);
    assert_eq!(attempt(&presigned, &|c| c.derivation_path = vec![u32::MAX], &[]), path);
    for bad in [0, 31, 33] {
        let expected = refused("presignature_id is not 32 bytes");
        assert_eq!(attempt(&presigned, &|c| c.presignature_id = vec![1; bad], &[]), expected);
    }
    assert_eq!(
        attempt(&presigned, &|c| c.sealed_presignature.clear(), &[]),
        refused("sealed presignature is missing")
    );
    assert_eq!(attempt(&presigned, &|c| c.key_public = keys[&1].key_public.clone(), &[]), unexpected);
    assert_eq!(attempt(&presigned, &|_| (), own), unexpected);
    assert_eq!(Session::start(None, &presigned.encode_to_vec(), &[], &[]).err(), refused("vault is missing"));
    // None of these was an attempt at a presignature that could be one.
    assert_eq!(attempt(&presigned, &|_| (), &[]), None);

    // A share of the other scheme is of no use, either way round.
    let all: Vec<&Party> = parties.iter().collect();
    let bls = config(ProtocolId::BlsSign, 1, &all, 2);
    assert_eq!(attempt(&bls, &|_| (), own), mismatch);
    for (epoch, threshold, expected) in [
        (2, 2, refused("epoch is not possible here")),
        (1, 1, refused("threshold is not within 1..number of parties")),
        (1, 4, refused("threshold is not within 1..number of parties")),
    ] {
        let order = SessionConfig { epoch, ..config(ProtocolId::EcdsaKeygen, 1, &all, threshold) };
        assert_eq!(attempt(&order, &|_| (), &[]), expected);
    }
}

#[test]
fn observers_check_the_public_data() {
    let parties = parties(3);
    let keys = keygen(&parties, 2);
    let signers = [&parties[0], &parties[1]];
    let public = keys[&1].key_public.clone().unwrap();
    for protocol in [ProtocolId::EcdsaSign, ProtocolId::EcdsaSignPresigned] {
        let base = SessionConfig {
            presignature_id: if protocol == ProtocolId::EcdsaSign { vec![] } else { vec![1; 32] },
            ..signing(protocol, 0, &signers)
        };
        let observe = |public: Option<proto::KeyPublic>| {
            let config = SessionConfig { key_public: public, ..base.clone() };
            Session::start(None, &config.encode_to_vec(), &[], &[]).err()
        };
        let invalid = refused("key_public is not valid for this key, epoch and threshold");
        assert_eq!(observe(Some(public.clone())), None);
        assert_eq!(observe(None), refused("key_public is missing"));
        assert_eq!(observe(Some(proto::KeyPublic::default())), invalid);
        let shares = |change: &dyn Fn(&mut Vec<proto::VerificationShare>)| {
            let mut shares = public.verification_shares.clone();
            change(&mut shares);
            proto::KeyPublic { verification_shares: shares, ..public.clone() }
        };
        let with = |change: &dyn Fn(&mut proto::KeyPublic)| {
            let mut changed = public.clone();
            change(&mut changed);
            changed
        };
        for bad in [
            with(&|p| p.public_key = vec![0; 33]),
            with(&|p| p.public_key[0] = 5),
            with(&|p| p.public_key.push(0)),
            with(&|p| p.chain_code.clear()),
            with(&|p| p.chain_code.push(0)),
            with(&|p| p.proof_of_possession = vec![0; 96]),
            with(&|p| p.threshold = 3),
            with(&|p| p.threshold = 0),
            with(&|p| p.epoch = 0),
            with(&|p| p.epoch = 2),
            with(&|p| p.key_id.push('x')),
            with(&|p| p.key_id.clear()),
            shares(&|s| s.clear()),
            shares(&|s| s.reverse()),
            shares(&|s| s[0].party = 0),
            shares(&|s| s[0].party = 65_536),
            shares(&|s| s[1].party = 1),
            shares(&|s| s[0].point = vec![2; 32]),
            shares(&|s| s[0].point = vec![0xff; 33]),
            shares(&|s| {
                *s = (1..=21).map(|party| proto::VerificationShare { party, ..s[0].clone() }).collect()
            }),
        ] {
            assert_eq!(observe(Some(bad.clone())), invalid, "{bad:?}");
        }
        let without_one = shares(&|s| {
            s.remove(0);
        });
        assert_eq!(observe(Some(without_one)), refused("a signer holds no share of the key"));
    }
}

#[test]
fn garbage_in_every_field_never_panics() {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};
    let parties = parties(2);
    let keys = keygen(&parties, 2);
    let signers = [&parties[0], &parties[1]];
    let made = presign(&signers, &keys, 1);
    let share = keys[&1].sealed_share.clone();
    let bases = [
        (config(ProtocolId::EcdsaKeygen, 1, &signers, 2), Vec::new()),
        (signing(ProtocolId::EcdsaSign, 1, &signers), share.clone()),
        (presigning(1, &signers, 1), share.clone()),
        (using(&made[&1], 1, &signers), Vec::new()),
        (config(ProtocolId::EcdsaRefresh, 1, &signers, 2), share.clone()),
    ];
    let mut runner = TestRunner::new(Config {
        cases: sim::seeds::cases(15_000),
        failure_persistence: None,
        ..Config::default()
    });
    let bytes = || proptest::collection::vec(any::<u8>(), 0..100);
    runner
        .run(
            &(0..bases.len(), 0..12usize, bytes(), any::<u32>(), any::<prop::sample::Index>()),
            |(which, field, garbage, number, at)| {
                let (mut config, mut share) = bases[which].clone();
                match field {
                    0 => config.session_id = garbage,
                    1 => config.own = number,
                    2 => config.parties[1].id = number,
                    3 => config.parties[1].evidence_key = garbage,
                    4 => config.threshold = number,
                    5 => config.epoch = number,
                    6 => config.payload = garbage,
                    7 => {
                        config.derivation_path =
                            garbage.into_iter().map(|byte| u32::from(byte) << 24).collect()
                    }
                    8 => config.presignature_id = garbage,
                    9 => config.sealed_presignature = garbage,
                    10 => config.presignature_count = number,
                    _ if share.is_empty() => share = garbage,
                    _ => {
                        let at = at.index(share.len());
                        share[at] ^= 1;
                    }
                }
                let _ = start(&parties[0], &config, &share);
                // The encoding itself, bent.
                let mut encoded = bases[which].0.encode_to_vec();
                let at = at.index(encoded.len());
                encoded[at] ^= u8::try_from(number & 0xff).unwrap();
                let _ = Session::start(Some(&parties[0].vault), &encoded, &parties[0].identity, &share);
                Ok(())
            },
        )
        .unwrap();
    // Garbage received by a running session is dropped.
    let (mut session, _) = start(&parties[0], &bases[1].0, &share).unwrap();
    let step = session.handle(2, &[7; 100]);
    assert!(matches!(step.progress, Some(Progress::Dropped(_))));
}
