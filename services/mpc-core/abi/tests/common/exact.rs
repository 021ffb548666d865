//! An imported Ed25519 key: the owner who splits it, parties that take their shares, and sessions of a pair.

#![allow(dead_code, reason = "every test binary uses its own part")]

use std::collections::BTreeMap;

use coterie_mpc::proto::import::{
    DropPair, FindPair, ImportCall, ImportCallKind, ImportReply, ImportReplyKind, KeySplit, ShareTaken,
    SplitKey, TakeShare,
};
use coterie_mpc::proto::{self, Done, ProtocolId, SessionConfig};
use coterie_mpc::*;
use prost::Message;

use crate::common::{self, Party, Refused, Session, Vault, config, parties, replied};

pub const SEED: [u8; 32] = [7; 32];
pub const KEY: &str = "keys/ffi";
pub const MESSAGE: &[u8] = b"transfer 12";

/// One call as a C program makes it.
pub fn raw(vault: Option<&Vault>, identity: &[u8], call: &[u8]) -> Result<Vec<u8>, Refused> {
    replied(mpc_import_call, vault, identity, call)
}

pub fn call(
    vault: Option<&Vault>,
    identity: &[u8],
    call: ImportCallKind,
) -> Result<ImportReplyKind, Refused> {
    let reply = raw(vault, identity, &ImportCall { call: Some(call) }.encode_to_vec())?;
    Ok(ImportReply::decode(reply.as_slice()).unwrap().reply.unwrap())
}

pub fn split_call(secret: &[u8], parties: &[Party]) -> SplitKey {
    let party = |party: &Party| proto::Party { id: party.id, evidence_key: party.evidence_key.clone() };
    SplitKey { secret: secret.to_vec(), key_id: KEY.to_owned(), parties: parties.iter().map(party).collect() }
}

pub fn split(secret: &[u8], parties: &[Party]) -> KeySplit {
    match call(None, &[], ImportCallKind::SplitKey(split_call(secret, parties))) {
        Ok(ImportReplyKind::KeySplit(split)) => split,
        other => panic!("{other:?}"),
    }
}

pub fn take_call(party: &Party, share: &[u8]) -> Result<ImportReplyKind, Refused> {
    let take = TakeShare { key_id: KEY.to_owned(), party: party.id, share: share.to_vec() };
    call(Some(&party.vault), &party.identity, ImportCallKind::TakeShare(take))
}

pub fn taken(party: &Party, share: &[u8]) -> ShareTaken {
    match take_call(party, share) {
        Ok(ImportReplyKind::ShareTaken(taken)) => taken,
        other => panic!("{other:?}"),
    }
}

/// Parties 1 to 3 with their shares; parties 2 and 3 are a pair.
pub struct Keys {
    pub parties: Vec<Party>,
    pub shares: Vec<Vec<u8>>,
}

pub const PAIR: [u32; 2] = [2, 3];

pub type Settings<'a> = &'a dyn Fn(u32, &mut SessionConfig);

impl Keys {
    pub fn new() -> Keys {
        Keys::of(&SEED)
    }

    pub fn of(seed: &[u8]) -> Keys {
        let parties = parties(3);
        let split = split(seed, &parties);
        let taken = parties.iter().zip(&split.shares).map(|(party, share)| taken(party, &share.value));
        let shares = taken.map(|taken| taken.sealed_share).collect();
        Keys { parties, shares }
    }

    /// The party opens its vault again.
    pub fn restart(&mut self, id: u32) {
        self.parties[id as usize - 1].vault = Vault::new(u8::try_from(id).unwrap());
    }

    pub fn party(&self, id: u32) -> &Party {
        &self.parties[id as usize - 1]
    }

    pub fn config(&self, protocol: ProtocolId, id: u32, session: u8) -> SessionConfig {
        let pair = PAIR.map(|id| self.party(id));
        SessionConfig { session_id: vec![session; 32], ..config(protocol, id, &pair, 2) }
    }

    pub fn set(&self, protocol: ProtocolId, id: u32, session: u8, settings: Settings<'_>) -> SessionConfig {
        let mut config = self.config(protocol, id, session);
        settings(id, &mut config);
        config
    }

    pub fn start(&self, config: &SessionConfig) -> Result<(Session, proto::Step), Refused> {
        self.start_at(config.own, config)
    }

    pub fn start_at(&self, id: u32, config: &SessionConfig) -> Result<(Session, proto::Step), Refused> {
        let party = self.party(id);
        let pairs = config.protocol == i32::from(ProtocolId::Ed25519ExactPair);
        let share: &[u8] = if pairs { &self.shares[id as usize - 1] } else { &[] };
        Session::start(Some(&party.vault), &config.encode_to_vec(), &[], share)
    }

    pub fn both(&self, protocol: ProtocolId, session: u8, settings: Settings<'_>) -> BTreeMap<u32, Done> {
        let sessions = PAIR.map(|id| {
            let config = self.set(protocol, id, session, settings);
            (id, self.start(&config).unwrap_or_else(|refused| panic!("{protocol:?}: {refused:?}")))
        });
        common::run(sessions.into())
    }

    pub fn pair(&self, session: u8) -> BTreeMap<u32, Done> {
        self.both(ProtocolId::Ed25519ExactPair, session, &|_, _| ())
    }

    pub fn prepare(&self, session: u8) {
        let done =
            self.both(ProtocolId::Ed25519ExactPrepare, session, &|_, config| config.message_blocks = 1);
        assert!(done.values().all(|done| done.presignatures[0].id == [session; 32]));
    }

    /// The nonce of the message, by what `prepared` made.
    pub fn nonce(&self, session: u8, prepared: u8) -> Vec<u8> {
        let done = self.both(ProtocolId::Ed25519ExactNonce, session, &nonce_of(prepared));
        assert_eq!(done[&2].nonce_point, done[&3].nonce_point);
        done[&2].nonce_point.clone()
    }

    pub fn answer(&self, session: u8, opened: u8, nonce: &[u8]) -> Vec<u8> {
        let done = self.both(ProtocolId::Ed25519ExactAnswer, session, &answer_of(opened, nonce));
        assert_eq!(done[&2].signature, done[&3].signature);
        done[&2].signature.clone()
    }

    pub fn refused(&self, protocol: ProtocolId, settings: Settings<'_>) -> String {
        match self.start_at(2, &self.set(protocol, 2, 99, settings)) {
            Err((code, detail)) => {
                assert_eq!(code, MPC_SETUP_REFUSED);
                detail
            }
            Ok(_) => panic!("{protocol:?} starts"),
        }
    }
}

pub fn nonce_of(prepared: u8) -> impl Fn(u32, &mut SessionConfig) {
    move |_, config| {
        config.presignature_id = vec![prepared; 32];
        config.payload = MESSAGE.to_vec();
    }
}

pub fn answer_of(opened: u8, nonce: &[u8]) -> impl Fn(u32, &mut SessionConfig) {
    move |_, config| {
        config.presignature_id = vec![opened; 32];
        config.payload = MESSAGE.to_vec();
        config.recorded_nonce = nonce.to_vec();
    }
}

pub fn drop_pair(party: &Party, peer: u32) {
    drop_one(party, party.id, peer, &[]);
}

pub fn drop_one(party: &Party, id: u32, peer: u32, set_up: &[u8]) {
    let drop = DropPair { key_id: KEY.to_owned(), party: id, peer, set_up: set_up.to_vec() };
    let dropped = call(Some(&party.vault), &[], ImportCallKind::DropPair(drop));
    assert!(matches!(dropped, Ok(ImportReplyKind::PairDropped(_))));
}

pub fn found_pair(party: &Party, peer: u32) -> Vec<u8> {
    let find = FindPair { key_id: KEY.to_owned(), party: party.id, peer };
    match call(Some(&party.vault), &[], ImportCallKind::FindPair(find)) {
        Ok(ImportReplyKind::PairFound(found)) => found.set_up,
        other => panic!("{other:?}"),
    }
}

/// Makes a presignature useless, as a C program does.
pub fn discard(party: &Party, id: u8) {
    let code = unsafe { mpc_vault_drop_presignature(party.vault.0, common::view(&[id; 32])) };
    assert_eq!(code, MPC_OK);
}
