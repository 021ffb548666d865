//! The library as C sees it: every function with every bad argument, and whole sessions through it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
#[path = "../../protocols/tests/common/corpus.rs"]
mod corpus;
#[path = "common/start_parts.rs"]
mod start_parts;

use std::collections::BTreeMap;
use std::ptr::{null, null_mut};

use common::{NOTHING, Party, Session, Vault, config, empty, is_empty, parties, run, stale, take, view};
use coterie_mpc::proto::{self, Progress, SessionConfig};
use coterie_mpc::*;
use prost::Message;

fn keygen(parties: &[Party], threshold: u32) -> BTreeMap<u32, proto::Done> {
    let all: Vec<&Party> = parties.iter().collect();
    let sessions = parties
        .iter()
        .map(|party| {
            let config = config(proto::ProtocolId::BlsKeygen, party.id, &all, threshold).encode_to_vec();
            (party.id, Session::start(Some(&party.vault), &config, &party.identity, &[]).unwrap())
        })
        .collect();
    run(sessions)
}

#[test]
fn key_generation_and_signing_through_the_interface() {
    assert_eq!(mpc_abi_version(), MPC_ABI_VERSION);
    let parties = parties(3);
    let keys = keygen(&parties, 2);
    assert_eq!(keys.len(), 3);
    let public = keys[&1].key_public.clone().unwrap();
    assert!(keys.values().all(|done| done.key_public.as_ref() == Some(&public)));
    let signers = [&parties[0], &parties[2]];
    let mut sessions = BTreeMap::new();
    for party in signers {
        let config = SessionConfig {
            payload: b"message".to_vec(),
            ..config(proto::ProtocolId::BlsSign, party.id, &signers, 2)
        };
        // The vault may go before the session does.
        let vault = Vault::new(u8::try_from(party.id).unwrap());
        let share = &keys[&party.id].sealed_share;
        sessions.insert(party.id, Session::start(Some(&vault), &config.encode_to_vec(), &[], share).unwrap());
    }
    let observer = SessionConfig {
        payload: b"message".to_vec(),
        key_public: Some(public),
        ..config(proto::ProtocolId::BlsSign, 0, &signers, 2)
    };
    sessions.insert(0, Session::start(None, &observer.encode_to_vec(), &[], &[]).unwrap());
    let signatures = run(sessions);
    assert_eq!(signatures.len(), 3);
    assert_eq!(signatures[&0].signature.len(), 96);
    assert!(
        signatures
            .values()
            .all(|done| done.signature == signatures[&0].signature && done.culprits.is_empty())
    );
}

/// (code, valid, detail) of one call.
fn verified(call: &proto::VerifyCall) -> (mpc_code, i32, String) {
    let (mut valid, mut detail) = (7, empty());
    let code = unsafe { mpc_verify(view(&call.encode_to_vec()), &mut valid, &mut detail) };
    (code, valid, String::from_utf8(take(detail)).unwrap())
}

#[test]
fn an_observer_may_leave_verification_to_a_call_about_many() {
    let parties = parties(2);
    let keys = keygen(&parties, 2);
    let public = keys[&1].key_public.clone().unwrap();
    let signers = [&parties[0], &parties[1]];
    let sign = |message: &[u8], party: &Party| {
        let config = SessionConfig {
            payload: message.to_vec(),
            ..config(proto::ProtocolId::BlsSign, party.id, &signers, 2)
        };
        let share = &keys[&party.id].sealed_share;
        Session::start(Some(&party.vault), &config.encode_to_vec(), &[], share).unwrap()
    };
    let observer = |unverified: bool, message: &[u8]| SessionConfig {
        payload: message.to_vec(),
        key_public: Some(public.clone()),
        unverified,
        ..config(proto::ProtocolId::BlsSign, 0, &signers, 2)
    };
    let combined = |message: &[u8]| {
        let config = observer(true, message).encode_to_vec();
        let mut sessions = BTreeMap::from([(0, Session::start(None, &config, &[], &[]).unwrap())]);
        for party in signers {
            sessions.insert(party.id, sign(message, party));
        }
        run(sessions)[&0].signature.clone()
    };
    let claim = |payload: &[u8]| proto::SignatureClaim {
        public_key: public.public_key.clone(),
        payload: payload.to_vec(),
        signature: combined(payload),
    };
    let call = proto::VerifyCall {
        protocol: proto::ProtocolId::BlsSign as i32,
        claims: vec![claim(b"one"), claim(b"two")],
    };
    assert_eq!(verified(&call), (MPC_OK, 1, String::new()));
    let mut wrong = call.clone();
    wrong.claims[1].payload = b"three".to_vec();
    assert_eq!(verified(&wrong), (MPC_OK, 0, String::new()));
    let mut many = call.clone();
    many.claims = vec![call.claims[0].clone(); coterie_mpc::verify::MAX_CLAIMS];
    assert_eq!(verified(&many), (MPC_OK, 1, String::new()));
    many.claims.push(call.claims[0].clone());
    let unexpected = "an input was given that the protocol does not take".to_owned();
    assert_eq!(verified(&many), (MPC_SETUP_REFUSED, 0, unexpected.clone()));
    for protocol in [0, proto::ProtocolId::Ed25519Sign as i32, 999] {
        let other = proto::VerifyCall { protocol, ..call.clone() };
        assert_eq!(verified(&other).0, MPC_SETUP_REFUSED);
    }
    // Only an observer of this protocol may leave it.
    let party = SessionConfig { own: 1, key_public: None, ..observer(true, b"m") };
    let refused =
        Session::start(Some(&parties[0].vault), &party.encode_to_vec(), &[], &keys[&1].sealed_share).err();
    assert_eq!(refused, Some((MPC_SETUP_REFUSED, unexpected)));
}

#[test]
fn one_party_alone() {
    let parties = parties(1);
    let party = &parties[0];
    let config_bytes = config(proto::ProtocolId::BlsKeygen, 1, &[party], 1).encode_to_vec();
    let (_, step) = Session::start(Some(&party.vault), &config_bytes, &party.identity, &[]).unwrap();
    let Some(Progress::Done(done)) = step.progress else { panic!("not done at once") };
    let sign = SessionConfig { payload: b"m".to_vec(), ..config(proto::ProtocolId::BlsSign, 1, &[party], 1) };
    let (_, step) =
        Session::start(Some(&party.vault), &sign.encode_to_vec(), &[], &done.sealed_share).unwrap();
    assert!(matches!(step.progress, Some(Progress::Done(_))));
}

#[test]
fn vault_seals_under_its_label() {
    let (vault, other) = (Vault::new(1), Vault::new(2));
    for plaintext in [&b""[..], b"x", &[7; 100_000]] {
        let mut sealed = empty();
        assert_eq!(
            unsafe { mpc_vault_seal(vault.0, view(b"channel"), view(plaintext), &mut sealed) },
            MPC_OK
        );
        let sealed = take(sealed);
        let open = |vault: &Vault, label: &[u8], blob: &[u8]| {
            let mut plain = stale();
            let code = unsafe { mpc_vault_unseal(vault.0, view(label), view(blob), &mut plain) };
            if code == MPC_OK { Ok(take(plain)) } else { Err((code, is_empty(&plain))) }
        };
        assert_eq!(open(&vault, b"channel", &sealed).unwrap(), plaintext);
        let failed = Err((MPC_UNSEAL_FAILED, true));
        assert_eq!(open(&other, b"channel", &sealed), failed);
        assert_eq!(open(&vault, b"channe1", &sealed), failed);
        assert_eq!(open(&vault, b"", &sealed), failed);
        assert_eq!(open(&vault, b"channel", &[]), failed);
        for at in [0, 1, 3, 4, 15, sealed.len() - 1] {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            assert_eq!(open(&vault, b"channel", &altered), failed, "byte {at}");
        }
        for length in [0, 1, 4, 16, 31, sealed.len() - 1] {
            assert_eq!(open(&vault, b"channel", &sealed[..length]), failed, "length {length}");
        }
    }
    let (identity, _) = vault.identity("me");
    let mut plain = stale();
    assert_eq!(
        unsafe { mpc_vault_unseal(vault.0, view(b""), view(&identity), &mut plain) },
        MPC_UNSEAL_FAILED
    );
    assert!(is_empty(&plain));
}

#[test]
fn statement_is_signed_by_the_identity_of_this_vault() {
    use ed25519_dalek::{Signature, VerifyingKey};
    use sha2::{Digest, Sha256};
    let (vault, other) = (Vault::new(1), Vault::new(2));
    let (identity, evidence_key) = vault.identity("me");
    let sign = |vault: &Vault, identity: &[u8], statement: &[u8]| {
        let mut out = stale();
        let code = unsafe { mpc_identity_sign(vault.0, view(identity), view(statement), &mut out) };
        if code == MPC_OK { Ok(take(out)) } else { Err((code, is_empty(&out))) }
    };
    let key = VerifyingKey::from_bytes(&evidence_key.try_into().unwrap()).unwrap();
    for statement in [&b""[..], b"a statement", &[7; MPC_MAX_STATEMENT]] {
        let signature = sign(&vault, &identity, statement).unwrap();
        assert_eq!(sign(&vault, &identity, statement).unwrap(), signature);
        let signature = Signature::from_slice(&signature).unwrap();
        let signed = [&b"coterie/statement-signature/1"[..], &Sha256::digest(statement)].concat();
        key.verify_strict(&signed, &signature).unwrap();
        assert!(key.verify_strict(statement, &signature).is_err());
    }
    let failed = Err((MPC_UNSEAL_FAILED, true));
    assert_eq!(sign(&other, &identity, b"s"), failed);
    assert_eq!(sign(&vault, &other.identity("me").0, b"s"), failed);
    assert_eq!(sign(&vault, &[], b"s"), failed);
    for at in [0, 1, 3, 15, identity.len() - 1] {
        let mut altered = identity.clone();
        altered[at] ^= 1;
        assert_eq!(sign(&vault, &altered, b"s"), failed, "byte {at}");
        assert_eq!(sign(&vault, &identity[..at], b"s"), failed, "length {at}");
    }
    let mut sealed = empty();
    assert_eq!(unsafe { mpc_vault_seal(vault.0, view(b""), view(&[1; 32]), &mut sealed) }, MPC_OK);
    assert_eq!(sign(&vault, &take(sealed), b"s"), failed, "not an identity");
    assert_eq!(sign(&vault, &identity, &[0; MPC_MAX_STATEMENT + 1]), Err((MPC_INVALID_ARGUMENT, true)));
}

#[test]
fn every_function_refuses_every_bad_argument() {
    let vault = Vault::new(1);
    let hole = mpc_view { data: null(), len: 1 };
    let huge = mpc_view { data: [0u8; 1].as_ptr(), len: MPC_MAX_INPUT + 1 };
    let invalid = MPC_INVALID_ARGUMENT;
    unsafe {
        let mut handle = std::ptr::without_provenance_mut(8);
        assert_eq!(mpc_vault_open(view(&[1; 32]), null_mut()), invalid);
        for key in [hole, huge, NOTHING, view(&[1; 31]), view(&[1; 33])] {
            handle = std::ptr::without_provenance_mut(8);
            assert_eq!(mpc_vault_open(key, &mut handle), invalid);
            assert!(handle.is_null());
        }
        assert!(handle.is_null());
        mpc_vault_free(null_mut());

        let long = [b'n'; 256];
        for bad in [hole, huge, view(&long)] {
            let mut out = stale();
            assert_eq!(mpc_vault_seal(vault.0, bad, NOTHING, &mut out), invalid);
            assert!(is_empty(&out));
            if bad.len != 256 {
                let mut out = stale();
                assert_eq!(mpc_vault_seal(vault.0, NOTHING, bad, &mut out), invalid);
                assert!(is_empty(&out));
                let mut out = stale();
                assert_eq!(mpc_vault_unseal(vault.0, bad, NOTHING, &mut out), invalid);
                assert!(is_empty(&out));
                let mut out = stale();
                assert_eq!(mpc_vault_unseal(vault.0, NOTHING, bad, &mut out), invalid);
                assert!(is_empty(&out));
            }
        }
        let mut out = stale();
        assert_eq!(mpc_vault_seal(null(), NOTHING, NOTHING, &mut out), invalid);
        assert!(is_empty(&out));
        let mut out = stale();
        assert_eq!(mpc_vault_unseal(null(), NOTHING, NOTHING, &mut out), invalid);
        assert!(is_empty(&out));
        assert_eq!(mpc_vault_seal(vault.0, NOTHING, NOTHING, null_mut()), invalid);
        assert_eq!(mpc_vault_unseal(vault.0, NOTHING, NOTHING, null_mut()), invalid);

        for id in [hole, huge, NOTHING, view(&[1; 31]), view(&[1; 33])] {
            assert_eq!(mpc_vault_drop_presignature(vault.0, id), invalid);
        }
        assert_eq!(mpc_vault_drop_presignature(null(), view(&[1; 32])), invalid);
        assert_eq!(mpc_vault_drop_presignature(vault.0, view(&[1; 32])), MPC_OK);

        for name in [hole, huge, NOTHING, view(&long), view(&[0xff, 0xfe])] {
            let (mut sealed, mut public) = (stale(), stale());
            assert_eq!(mpc_identity_create(vault.0, name, &mut sealed, &mut public), invalid);
            assert!(is_empty(&sealed) && is_empty(&public));
        }
        let (mut sealed, mut public) = (stale(), stale());
        assert_eq!(mpc_identity_create(null(), view(b"me"), &mut sealed, &mut public), invalid);
        assert!(is_empty(&sealed) && is_empty(&public));
        assert_eq!(mpc_identity_create(vault.0, view(b"me"), null_mut(), &mut public), invalid);
        assert_eq!(mpc_identity_create(vault.0, view(b"me"), &mut sealed, null_mut()), invalid);

        let (identity, _) = vault.identity("me");
        for bad in [hole, huge] {
            let (mut first, mut second) = (stale(), stale());
            assert_eq!(mpc_identity_sign(vault.0, bad, NOTHING, &mut first), invalid);
            assert_eq!(mpc_identity_sign(vault.0, view(&identity), bad, &mut second), invalid);
            assert!(is_empty(&first) && is_empty(&second));
        }
        let mut out = stale();
        assert_eq!(mpc_identity_sign(null(), view(&identity), NOTHING, &mut out), invalid);
        assert!(is_empty(&out));
        assert_eq!(mpc_identity_sign(vault.0, view(&identity), NOTHING, null_mut()), invalid);

        let (mut session, mut step, mut detail) = (null_mut(), empty(), empty());
        let start = |config, identity, share, out, step_out, detail_out| {
            mpc_session_start(vault.0, config, identity, share, out, step_out, detail_out)
        };
        for bad in [hole, huge] {
            assert_eq!(start(bad, NOTHING, NOTHING, &mut session, &mut step, &mut detail), invalid);
            assert_eq!(start(NOTHING, bad, NOTHING, &mut session, &mut step, &mut detail), invalid);
            assert_eq!(start(NOTHING, NOTHING, bad, &mut session, &mut step, &mut detail), invalid);
        }
        assert_eq!(start(NOTHING, NOTHING, NOTHING, null_mut(), &mut step, &mut detail), invalid);
        assert_eq!(start(NOTHING, NOTHING, NOTHING, &mut session, null_mut(), &mut detail), invalid);
        assert_eq!(start(NOTHING, NOTHING, NOTHING, &mut session, &mut step, null_mut()), invalid);
        assert_eq!(start(view(&[0xff; 9]), NOTHING, NOTHING, &mut session, &mut step, &mut detail), invalid);
        assert_eq!(String::from_utf8(take(detail)).unwrap(), "config is not a SessionConfig");
        assert!(session.is_null() && is_empty(&step));

        for (config, accusation) in [(hole, NOTHING), (NOTHING, hole), (huge, NOTHING), (NOTHING, huge)] {
            let (mut verdict, mut detail) = (7, stale());
            assert_eq!(mpc_judge(config, accusation, &mut verdict, &mut detail), invalid);
            assert_eq!(verdict, 0);
            assert!(is_empty(&detail));
        }
        let (mut verdict, mut detail) = (7, empty());
        assert_eq!(mpc_judge(NOTHING, NOTHING, null_mut(), &mut detail), invalid);
        assert_eq!(mpc_judge(NOTHING, NOTHING, &mut verdict, null_mut()), invalid);
        assert_eq!(mpc_judge(view(&[0xff; 9]), NOTHING, &mut verdict, &mut detail), invalid);
        assert_eq!(verdict, 0);
        assert_eq!(String::from_utf8(take(detail)).unwrap(), "config or accusation does not decode");

        for call in [hole, huge] {
            let (mut valid, mut detail) = (7, stale());
            assert_eq!(mpc_verify(call, &mut valid, &mut detail), invalid);
            assert_eq!(valid, 0);
            assert!(is_empty(&detail));
        }
        let (mut valid, mut detail) = (7, empty());
        assert_eq!(mpc_verify(NOTHING, null_mut(), &mut detail), invalid);
        assert_eq!(mpc_verify(NOTHING, &mut valid, null_mut()), invalid);
        assert_eq!(mpc_verify(view(&[0xff; 9]), &mut valid, &mut detail), invalid);
        assert_eq!(valid, 0);
        assert_eq!(String::from_utf8(take(detail)).unwrap(), "call is not a VerifyCall");

        let mut out = stale();
        assert_eq!(mpc_session_handle(null_mut(), 1, NOTHING, &mut out), invalid);
        assert!(is_empty(&out));
        mpc_session_free(null_mut());
        mpc_buffer_free(null_mut());
        let mut nothing = empty();
        mpc_buffer_free(&mut nothing);
    }
    let parties = parties(2);
    let all: Vec<&Party> = parties.iter().collect();
    let config = config(proto::ProtocolId::BlsKeygen, 1, &all, 2).encode_to_vec();
    let (mut running, _) =
        Session::start(Some(&parties[0].vault), &config, &parties[0].identity, &[]).unwrap();
    for bad in [hole, huge] {
        let mut out = stale();
        assert_eq!(unsafe { mpc_session_handle(running.0, 2, bad, &mut out) }, invalid);
        assert!(is_empty(&out));
    }
    assert_eq!(unsafe { mpc_session_handle(running.0, 2, NOTHING, null_mut()) }, invalid);
    // None of that hurt the session.
    for (sender, reason) in [(0, 5), (1, 1), (70_000, 5)] {
        let step = running.handle(sender, &[]);
        assert_eq!(step.progress, Some(Progress::Dropped(proto::Dropped { reason })), "sender {sender}");
        assert_eq!(step.round, 1);
    }
}

#[test]
fn setup_is_refused_with_a_reason() {
    let parties = parties(3);
    let all: Vec<&Party> = parties.iter().collect();
    let me = &parties[0];
    let base = config(proto::ProtocolId::BlsKeygen, 1, &all, 2);
    let start = |change: &dyn Fn(&mut SessionConfig)| {
        let mut config = base.clone();
        change(&mut config);
        Session::start(Some(&me.vault), &config.encode_to_vec(), &me.identity, &[]).err()
    };
    let refused = |reason: &str| Some((MPC_SETUP_REFUSED, reason.to_owned()));
    assert!(start(&|_| ()).is_none());
    assert_eq!(start(&|c| c.protocol = 0), refused("unknown protocol"));
    assert_eq!(start(&|c| c.protocol = 77), refused("unknown protocol"));
    for length in [0, 31, 33] {
        assert_eq!(start(&|c| c.session_id = vec![1; length]), refused("session_id is not 32 bytes"));
    }
    assert_eq!(start(&|c| c.own = 0), refused("an observer cannot run this protocol"));
    assert_eq!(start(&|c| c.own = 4), refused("self is not among the parties"));
    assert_eq!(start(&|c| c.own = 65_536), refused("a party id is not within 1..65535"));
    assert_eq!(start(&|c| c.own = 2), refused("identity does not match the evidence key of self"));
    assert_eq!(start(&|c| c.parties[1].id = 0), refused("a party id is not within 1..65535"));
    assert_eq!(start(&|c| c.parties[1].id = 1), refused("party ids are not strictly ascending"));
    assert_eq!(start(&|c| c.parties.reverse()), refused("party ids are not strictly ascending"));
    assert_eq!(start(&|c| c.parties.clear()), refused("the number of parties is not within 1..20"));
    assert_eq!(
        start(&|c| c.parties = (1..=21).map(|id| proto::Party { id, ..c.parties[0].clone() }).collect()),
        refused("the number of parties is not within 1..20")
    );
    for threshold in [0, 4, 21, u32::MAX] {
        assert_eq!(
            start(&|c| c.threshold = threshold),
            refused("threshold is not within 1..number of parties"),
            "threshold {threshold}"
        );
    }
    let invalid_key = refused("an evidence key is not valid, or not that of its party");
    assert_eq!(start(&|c| c.parties[2].evidence_key.clear()), invalid_key);
    assert_eq!(start(&|c| c.parties[2].evidence_key = vec![0; 32]), invalid_key);
    assert_eq!(start(&|c| c.parties[2].evidence_key.push(0)), invalid_key);
    assert_eq!(
        start(&|c| c.parties[2].evidence_key = c.parties[1].evidence_key.clone()),
        refused("two parties have the same evidence key")
    );
    assert_eq!(start(&|c| c.key_id.clear()), refused("key_id is empty or too long"));
    assert_eq!(start(&|c| c.key_id = "k".repeat(129)), refused("key_id is empty or too long"));
    for epoch in [0, 2] {
        assert_eq!(start(&|c| c.epoch = epoch), refused("epoch is not possible here"));
    }
    assert_eq!(
        start(&|c| c.payload = vec![1]),
        refused("payload has a length that the protocol does not allow")
    );
    let unexpected = refused("an input was given that the protocol does not take");
    assert_eq!(start(&|c| c.key_public = Some(proto::KeyPublic::default())), unexpected);
    assert_eq!(start(&|c| c.derivation_path = vec![0]), unexpected);
    assert_eq!(start(&|c| c.presignature_id = vec![1; 32]), unexpected);
    assert_eq!(start(&|c| c.sealed_presignature = vec![1]), unexpected);
    assert_eq!(start(&|c| c.presignature_count = 1), unexpected);
    let bytes = base.encode_to_vec();
    assert_eq!(Session::start(Some(&me.vault), &bytes, &me.identity, &[1]).err(), unexpected);
    assert_eq!(
        Session::start(Some(&me.vault), &bytes, &[], &[]).err(),
        refused("sealed identity is missing")
    );
    assert_eq!(Session::start(None, &bytes, &me.identity, &[]).err(), refused("vault is missing"));
    let unseal = Some((MPC_UNSEAL_FAILED, String::new()));
    assert_eq!(Session::start(Some(&me.vault), &bytes, &parties[1].identity, &[]).err(), unseal);
    assert_eq!(Session::start(Some(&parties[1].vault), &bytes, &me.identity, &[]).err(), unseal);
}

#[test]
fn signing_setup_is_refused_with_a_reason() {
    let parties = parties(3);
    let keys = keygen(&parties, 2);
    let signers = [&parties[0], &parties[1]];
    let me = &parties[0];
    let base = config(proto::ProtocolId::BlsSign, 1, &signers, 2);
    let start = |change: &dyn Fn(&mut SessionConfig), share: &[u8]| {
        let mut config = base.clone();
        change(&mut config);
        Session::start(Some(&me.vault), &config.encode_to_vec(), &[], share).err()
    };
    let own = &keys[&1].sealed_share;
    let refused = |reason: &str| Some((MPC_SETUP_REFUSED, reason.to_owned()));
    let mismatch = refused("the share is of another protocol, key, party, epoch or threshold");
    assert_eq!(start(&|_| (), own), None);
    // Evidence keys do not matter here.
    assert_eq!(start(&|c| c.parties[1].evidence_key.clear(), own), None);
    assert_eq!(start(&|_| (), &[]), refused("sealed share is missing"));
    assert_eq!(start(&|_| (), &keys[&2].sealed_share), mismatch);
    assert_eq!(start(&|c| c.own = 2, own), mismatch);
    assert_eq!(start(&|c| c.threshold = 1, own), mismatch);
    assert_eq!(start(&|c| c.key_id.push('2'), own), mismatch);
    assert_eq!(start(&|c| c.epoch = 2, own), mismatch);
    assert_eq!(start(&|c| c.parties.truncate(1), own), refused("fewer signers than the threshold"));
    assert_eq!(start(&|c| c.parties[1].id = 9, own), refused("a signer holds no share of the key"));
    assert_eq!(
        start(&|c| c.key_public = keys[&1].key_public.clone(), own),
        refused("an input was given that the protocol does not take")
    );
    let unseal = Some((MPC_UNSEAL_FAILED, String::new()));
    assert_eq!(start(&|_| (), &me.identity), unseal);
    assert_eq!(start(&|_| (), &own[..own.len() - 1]), unseal);
    let mut altered = own.clone();
    *altered.last_mut().unwrap() ^= 1;
    assert_eq!(start(&|_| (), &altered), unseal);
    // Another party's data key does not open it, whatever the label says.
    let config = base.encode_to_vec();
    assert_eq!(Session::start(Some(&parties[1].vault), &config, &[], own).err(), unseal);

    let observe = |public: Option<proto::KeyPublic>, share: &[u8]| {
        let config = SessionConfig { own: 0, key_public: public, ..base.clone() };
        Session::start(None, &config.encode_to_vec(), &[], share).err()
    };
    let public = keys[&1].key_public.clone().unwrap();
    let invalid = refused("key_public is not valid for this key, epoch and threshold");
    assert_eq!(observe(Some(public.clone()), &[]), None);
    assert_eq!(observe(None, &[]), refused("key_public is missing"));
    assert_eq!(
        observe(Some(public.clone()), own),
        refused("an input was given that the protocol does not take")
    );
    assert_eq!(observe(Some(proto::KeyPublic::default()), &[]), invalid);
    assert_eq!(observe(Some(proto::KeyPublic { public_key: vec![0; 48], ..public.clone() }), &[]), invalid);
    assert_eq!(observe(Some(proto::KeyPublic { chain_code: vec![0; 32], ..public.clone() }), &[]), invalid);
    assert_eq!(observe(Some(proto::KeyPublic { threshold: 3, ..public.clone() }), &[]), invalid);
    assert_eq!(
        observe(Some(proto::KeyPublic { proof_of_possession: vec![], ..public.clone() }), &[]),
        invalid
    );
    let mut shares = public.verification_shares.clone();
    shares[0].party = 0;
    assert_eq!(observe(Some(proto::KeyPublic { verification_shares: shares, ..public }), &[]), invalid);
}

/// A judge that went on with such data would find no deviation in anything.
#[test]
fn judge_refuses_public_data_that_no_key_has() {
    let parties = parties(2);
    let all: Vec<&Party> = parties.iter().collect();
    let public = keygen(&parties, 2)[&1].key_public.clone().unwrap();
    let judge = |config: &SessionConfig| {
        let accusation = proto::Accusation { cause: 2, accused: 2, ..proto::Accusation::default() };
        let (mut verdict, mut detail) = (7, empty());
        let (config, accusation) = (config.encode_to_vec(), accusation.encode_to_vec());
        let code = unsafe { mpc_judge(view(&config), view(&accusation), &mut verdict, &mut detail) };
        (code, String::from_utf8(take(detail)).unwrap())
    };
    let refresh = config(proto::ProtocolId::BlsRefresh, 0, &all, 2);
    let reshare = SessionConfig {
        dealers: vec![1, 2],
        receivers: vec![1, 2],
        ..config(proto::ProtocolId::BlsReshare, 0, &all, 2)
    };
    for base in [refresh, reshare] {
        let with = |change: &dyn Fn(&mut proto::KeyPublic)| {
            let mut changed = public.clone();
            change(&mut changed);
            judge(&SessionConfig { key_public: Some(changed), ..base.clone() })
        };
        assert_eq!(with(&|_| ()), (MPC_OK, String::new()));
        let invalid =
            (MPC_SETUP_REFUSED, "key_public is not valid for this key, epoch and threshold".to_owned());
        assert_eq!(with(&|public| public.verification_shares.reverse()), invalid);
        assert_eq!(with(&|public| public.verification_shares.clear()), invalid);
        assert_eq!(with(&|public| public.verification_shares[1].party = 1), invalid);
        assert_eq!(with(&|public| public.threshold = 3), invalid);
        assert_eq!(with(&|public| public.epoch = 0), invalid);
        assert_eq!(with(&|public| public.key_id.clear()), invalid);
        assert_eq!(with(&|public| public.key_id = "k".repeat(129)), invalid);
        assert_eq!(with(&|public| public.chain_code = vec![0; 32]), invalid);
        let many = |public: &mut proto::KeyPublic| {
            let one = public.verification_shares[0].clone();
            public.verification_shares =
                (1..=21).map(|party| proto::VerificationShare { party, ..one.clone() }).collect();
        };
        assert_eq!(with(&many), invalid);
    }
}

#[test]
fn random_calls_never_panic_and_never_hurt() {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};
    let parties = parties(2);
    let all: Vec<&Party> = parties.iter().collect();
    let base = config(proto::ProtocolId::BlsKeygen, 1, &all, 2).encode_to_vec();
    let mut runner = TestRunner::new(Config {
        cases: sim::seeds::cases(20_000),
        failure_persistence: None,
        ..Config::default()
    });
    let bytes = || proptest::collection::vec(any::<u8>(), 0..200);
    runner
        .run(
            &(bytes(), bytes(), any::<u32>(), 0..base.len(), any::<u8>()),
            |(config, envelope, sender, at, flip)| {
                let _ = Session::start(Some(&parties[0].vault), &config, &envelope, &config);
                let mut altered = base.clone();
                altered[at] ^= flip;
                let _ = Session::start(Some(&parties[0].vault), &altered, &parties[0].identity, &[]);
                let (mut session, first) =
                    Session::start(Some(&parties[0].vault), &base, &parties[0].identity, &[]).unwrap();
                let mut genuine = first.outgoing[0].envelope.clone();
                session.handle(sender, &envelope);
                let position = at % genuine.len();
                genuine[position] ^= flip;
                session.handle(2, &genuine);
                Ok(())
            },
        )
        .unwrap();
}

/// Inputs that start a key generation, with a genuine identity, and a signing, with a genuine share.
fn seeds() -> Vec<Vec<u8>> {
    let parties = parties(1);
    let party = &parties[0];
    let generate = config(proto::ProtocolId::BlsKeygen, 1, &[party], 1);
    let share = keygen(&parties, 1).remove(&1).unwrap().sealed_share;
    let sign = SessionConfig { payload: b"m".to_vec(), ..config(proto::ProtocolId::BlsSign, 1, &[party], 1) };
    [(generate, &party.identity[..], &[][..]), (sign, &[], &share)]
        .map(|(config, identity, share)| {
            let config = config.encode_to_vec();
            let lengths = [config.len(), identity.len()].map(|length| (length as u16).to_be_bytes());
            [lengths.as_flattened(), &config, identity, share].concat()
        })
        .to_vec()
}

#[test]
fn what_the_fuzzer_kept() {
    if std::env::var("SEEDS").is_ok_and(|value| value == "write") {
        corpus::add("session_config", seeds());
    }
    let vault = Vault::new(1);
    let started = |data: &[u8]| {
        let [config, identity, share] = start_parts::split(data);
        let started = Session::start(Some(&vault), config, identity, share);
        assert!(!matches!(started, Err((MPC_INTERNAL, _))));
        started.is_ok().then_some((identity.is_empty(), share.is_empty()))
    };
    for seed in seeds() {
        assert!(started(&seed).is_some());
    }
    let all = corpus::replay("session_config", started);
    assert!(all.contains(&Some((false, true))), "no kept input has an identity that opens");
    assert!(all.contains(&Some((true, false))), "no kept input has a share that opens");
}
