//! Threshold Schnorr signatures through the interface: whole lives of keys, presignatures that work once, inputs that
//! do not fit.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Party, Session, Vault, config, parties, run};
use coterie_mpc::proto::{Done, ProtocolId, SessionConfig, Step};
use coterie_mpc::*;
use prost::Message;

type Dones = BTreeMap<u32, Done>;
type Started = (Session, Step);
type Refusal = (i32, String);

/// Presignatures that a session makes here.
const MADE: u32 = 3;

/// One suite through the interface.
#[derive(Clone, Copy)]
struct Scheme {
    keygen: ProtocolId,
    sign: ProtocolId,
    presign: ProtocolId,
    sign_presigned: ProtocolId,
    refresh: ProtocolId,
    reshare: ProtocolId,
    /// Bytes of the public key and of the chain code.
    public: (usize, usize),
    path: &'static [u32],
    root: Option<&'static [u8]>,
}

const ED25519: Scheme = Scheme {
    keygen: ProtocolId::Ed25519Keygen,
    sign: ProtocolId::Ed25519Sign,
    presign: ProtocolId::Ed25519Presign,
    sign_presigned: ProtocolId::Ed25519SignPresigned,
    refresh: ProtocolId::Ed25519Refresh,
    reshare: ProtocolId::Ed25519Reshare,
    public: (32, 0),
    path: &[],
    root: None,
};

const BIP340: Scheme = Scheme {
    keygen: ProtocolId::Bip340Keygen,
    sign: ProtocolId::Bip340Sign,
    presign: ProtocolId::Bip340Presign,
    sign_presigned: ProtocolId::Bip340SignPresigned,
    refresh: ProtocolId::Bip340Refresh,
    reshare: ProtocolId::Bip340Reshare,
    public: (33, 32),
    path: &[86, 1],
    root: Some(&[]),
};

fn refused(reason: &str) -> Option<Refusal> {
    Some((MPC_SETUP_REFUSED, reason.to_owned()))
}

fn start(party: &Party, config: &SessionConfig, share: &[u8]) -> Result<Started, Refusal> {
    Session::start(Some(&party.vault), &config.encode_to_vec(), &party.identity, share)
}

impl Scheme {
    fn keygen(&self, parties: &[Party]) -> Dones {
        let all: Vec<&Party> = parties.iter().collect();
        let start = |party: &Party| start(party, &config(self.keygen, party.id, &all, 2), &[]).unwrap();
        run(parties.iter().map(|party| (party.id, start(party))).collect())
    }

    fn signing(&self, protocol: ProtocolId, own: u32, signers: &[&Party]) -> SessionConfig {
        SessionConfig {
            payload: vec![0xd1; 32],
            derivation_path: self.path.to_vec(),
            taproot_merkle_root: self.root.map(<[u8]>::to_vec),
            ..config(protocol, own, signers, 2)
        }
    }

    fn presigning(&self, own: u32, signers: &[&Party]) -> SessionConfig {
        let signing = self.signing(self.presign, own, signers);
        SessionConfig { payload: Vec::new(), presignature_count: MADE, ..signing }
    }

    /// Signing with the presignature of a session at that place.
    fn using(&self, made: &Done, place: usize, own: u32, signers: &[&Party]) -> SessionConfig {
        SessionConfig {
            presignature_id: made.presignatures[place].id.clone(),
            sealed_presignature: made.presignatures[place].sealed.clone(),
            ..self.signing(self.sign_presigned, own, signers)
        }
    }

    fn presign(&self, signers: &[&Party], keys: &Dones) -> Dones {
        let start = |party: &Party| {
            start(party, &self.presigning(party.id, signers), &keys[&party.id].sealed_share).unwrap()
        };
        run(signers.iter().map(|party| (party.id, start(party))).collect())
    }

    fn sign(&self, signers: &[&Party], keys: &Dones, epoch: u32) -> Dones {
        let config = |own| SessionConfig { epoch, ..self.signing(self.sign, own, signers) };
        let mut sessions: BTreeMap<u32, Started> = signers
            .iter()
            .map(|party| (party.id, start(party, &config(party.id), &keys[&party.id].sealed_share).unwrap()))
            .collect();
        sessions.insert(0, observer(config(0), keys).unwrap());
        run(sessions)
    }
}

fn observer(config: SessionConfig, keys: &Dones) -> Result<Started, Refusal> {
    let public = keys.values().next().unwrap().key_public.clone();
    let config = SessionConfig { own: 0, key_public: public, sealed_presignature: Vec::new(), ..config };
    Session::start(None, &config.encode_to_vec(), &[], &[])
}

fn same_signature(signatures: &Dones) {
    let first = &signatures[&0];
    assert!(signatures.values().all(|done| done == first));
    assert_eq!((first.signature.len(), first.recovery_id), (64, None));
    assert!(first.sealed_share.is_empty() && first.presignatures.is_empty());
}

#[test]
fn keys_signatures_and_refresh() {
    for scheme in [ED25519, BIP340] {
        let parties = parties(3);
        let all: Vec<&Party> = parties.iter().collect();
        let keys = scheme.keygen(&parties);
        let public = keys[&1].key_public.clone().unwrap();
        assert!(keys.values().all(|done| done.key_public.as_ref() == Some(&public)));
        assert_eq!((public.public_key.len(), public.chain_code.len()), scheme.public);
        let signers = [&parties[0], &parties[2]];
        same_signature(&scheme.sign(&signers, &keys, 1));

        let made = scheme.presign(&signers, &keys);
        let ids = |party: u32| -> BTreeSet<&[u8]> {
            made[&party].presignatures.iter().map(|one| &*one.id).collect()
        };
        assert_eq!((ids(1), ids(1).len()), (ids(3), MADE as usize));
        assert!(ids(1).iter().all(|id| id.len() == 32));
        for place in [2, 0, 1] {
            let mut sessions: BTreeMap<u32, Started> = signers
                .iter()
                .map(|party| {
                    let config = scheme.using(&made[&party.id], place, party.id, &signers);
                    (party.id, start(party, &config, &[]).unwrap())
                })
                .collect();
            sessions.insert(0, observer(scheme.using(&made[&1], place, 0, &signers), &keys).unwrap());
            same_signature(&run(sessions));
        }

        let refresh = |party: &Party| {
            start(party, &config(scheme.refresh, party.id, &all, 2), &keys[&party.id].sealed_share).unwrap()
        };
        let new = run(parties.iter().map(|party| (party.id, refresh(party))).collect());
        let after = new[&1].key_public.clone().unwrap();
        assert_eq!((after.epoch, &after.public_key), (2, &public.public_key));
        assert_eq!(after.chain_code, public.chain_code);
        same_signature(&scheme.sign(&signers, &new, 2));
        let stale = SessionConfig { epoch: 2, ..scheme.signing(scheme.sign, 1, &signers) };
        let mismatch = refused("the share is of another protocol, key, party, epoch or threshold");
        assert_eq!(start(&parties[0], &stale, &keys[&1].sealed_share).err(), mismatch);
    }
}

#[test]
fn reshare_moves_the_key_to_other_parties() {
    for scheme in [ED25519, BIP340] {
        let parties = parties(4);
        let all: Vec<&Party> = parties.iter().collect();
        let old = scheme.keygen(&parties[..3]);
        let before = old[&1].key_public.clone().unwrap();
        // Party 1 leaves, party 2 deals and stays, 3 has lost its share, 4 joins.
        let order = |own| SessionConfig {
            dealers: vec![1, 2],
            receivers: vec![2, 3, 4],
            key_public: Some(before.clone()),
            ..config(scheme.reshare, own, &all, 2)
        };
        let share_of = |own: u32| if own < 3 { old[&own].sealed_share.as_slice() } else { &[] };
        let new = run(parties
            .iter()
            .map(|party| (party.id, start(party, &order(party.id), share_of(party.id)).unwrap()))
            .collect());
        let after = new[&1].key_public.clone().unwrap();
        assert!(new.values().all(|done| done.key_public.as_ref() == Some(&after)));
        assert_eq!(new.values().filter(|done| done.sealed_share.is_empty()).count(), 1);
        assert!(new[&1].sealed_share.is_empty());
        assert_eq!((&after.public_key, &after.chain_code), (&before.public_key, &before.chain_code));
        assert_eq!((after.epoch, after.threshold, after.verification_shares.len()), (2, 2, 3));
        same_signature(&scheme.sign(&[&parties[2], &parties[3]], &new, 2));

        let mismatch = refused("the share is of another protocol, key, party, epoch or threshold");
        assert_eq!(start(&parties[0], &order(1), &[]).err(), refused("sealed share is missing"));
        assert_eq!(start(&parties[0], &order(1), share_of(2)).err(), mismatch);
        assert_eq!(start(&parties[1], &order(2), &new[&2].sealed_share).err(), mismatch);
        let unexpected = refused("an input was given that the protocol does not take");
        assert_eq!(start(&parties[3], &order(4), share_of(1)).err(), unexpected);
        let few = SessionConfig { dealers: vec![1], ..order(1) };
        let roles = refused("dealers and receivers do not fit the parties and the old threshold");
        assert_eq!(start(&parties[0], &few, share_of(1)).err(), roles);
    }
}

#[test]
fn a_presignature_works_once_and_in_its_vault_only() {
    let unknown = refused("the vault has no such presignature, or had it and it was used");
    for scheme in [ED25519, BIP340] {
        let parties = parties(2);
        let keys = scheme.keygen(&parties);
        let signers = [&parties[0], &parties[1]];
        let made = scheme.presign(&signers, &keys);
        let order = scheme.using(&made[&1], 0, 1, &signers);
        // A vault of the same data key is another vault: after a restart nothing opens.
        let again = Vault::new(1);
        assert_eq!(Session::start(Some(&again), &order.encode_to_vec(), &[], &[]).err(), unknown);
        drop(start(&parties[0], &order, &[]).unwrap());
        assert_eq!(start(&parties[0], &order, &[]).err(), unknown);
        // An attempt that does not fit uses it up as well.
        let made = scheme.presign(&signers, &keys);
        let order = scheme.using(&made[&1], 0, 1, &signers);
        let wrong = SessionConfig { key_id: "keys/other".to_owned(), ..order.clone() };
        let mismatch = refused("the share is of another protocol, key, party, epoch or threshold");
        assert_eq!(start(&parties[0], &wrong, &[]).err(), mismatch);
        assert_eq!(start(&parties[0], &order, &[]).err(), unknown);
        // And none of the others that its session made.
        assert!(start(&parties[0], &scheme.using(&made[&1], 1, 1, &signers), &[]).is_ok());
        let blob_of_another = SessionConfig {
            sealed_presignature: made[&1].presignatures[0].sealed.clone(),
            ..scheme.using(&made[&1], 2, 1, &signers)
        };
        let unsealed = Some((MPC_UNSEAL_FAILED, String::new()));
        assert_eq!(start(&parties[0], &blob_of_another, &[]).err(), unsealed);
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let parties = parties(2);
    let signers = [&parties[0], &parties[1]];
    let unexpected = refused("an input was given that the protocol does not take");
    let length = refused("payload has a length that the protocol does not allow");
    let keys = ED25519.keygen(&parties);
    let share = &keys[&1].sealed_share;
    let order = ED25519.signing(ED25519.sign, 1, &signers);
    let tapped = SessionConfig { taproot_merkle_root: Some(Vec::new()), ..order.clone() };
    assert_eq!(start(&parties[0], &tapped, share).err(), unexpected);
    let derived = SessionConfig { derivation_path: vec![1], ..order.clone() };
    assert_eq!(start(&parties[0], &derived, share).err(), unexpected);
    let long = SessionConfig { payload: vec![0; 65_537], ..order.clone() };
    assert_eq!(start(&parties[0], &long, share).err(), length);
    for bad in [0, 17, 256, u32::MAX] {
        let order = SessionConfig { presignature_count: bad, ..ED25519.presigning(1, &signers) };
        let expected = refused("presignature_count is not one that a session can make");
        assert_eq!(start(&parties[0], &order, share).err(), expected);
    }
    let most = SessionConfig { presignature_count: 16, ..ED25519.presigning(1, &signers) };
    assert_eq!(start(&parties[0], &most, share).err(), None);
    // A share of one suite is none of another.
    let mismatch = refused("the share is of another protocol, key, party, epoch or threshold");
    let other = SessionConfig { taproot_merkle_root: None, ..BIP340.signing(BIP340.sign, 1, &signers) };
    assert_eq!(start(&parties[0], &other, share).err(), mismatch);

    let keys = BIP340.keygen(&parties);
    let share = &keys[&1].sealed_share;
    let order = BIP340.signing(BIP340.sign, 1, &signers);
    for payload in [vec![], vec![0; 31], vec![0; 33]] {
        let order = SessionConfig { payload, ..order.clone() };
        assert_eq!(start(&parties[0], &order, share).err(), length);
    }
    let root = SessionConfig { taproot_merkle_root: Some(vec![0; 31]), ..order.clone() };
    let vague = refused("payload does not say what the protocol needs");
    assert_eq!(start(&parties[0], &root, share).err(), vague);
    let hardened = SessionConfig { derivation_path: vec![1 << 31], ..order.clone() };
    assert_eq!(
        start(&parties[0], &hardened, share).err(),
        refused("derivation_path is too long or has a hardened step")
    );
    // An observer's public data: lengths and points.
    let public = keys[&1].key_public.clone().unwrap();
    let invalid = refused("key_public is not valid for this key, epoch and threshold");
    let observe = |change: &dyn Fn(&mut coterie_mpc::proto::KeyPublic)| {
        let mut public = public.clone();
        change(&mut public);
        let config = SessionConfig { own: 0, key_public: Some(public), ..order.clone() };
        Session::start(None, &config.encode_to_vec(), &[], &[]).err()
    };
    assert_eq!(observe(&|_| ()), None);
    assert_eq!(observe(&|p| p.chain_code.clear()), invalid);
    assert_eq!(observe(&|p| p.public_key.truncate(32)), invalid);
    assert_eq!(observe(&|p| p.proof_of_possession = vec![1]), invalid);
    assert_eq!(observe(&|p| p.verification_shares.reverse()), invalid);
    assert!(observe(&|p| p.public_key = vec![0; 33]).is_some());
}
