//! Keys and seeds of three parties, and sessions of pairs that derive from them.

#![allow(dead_code, reason = "every test binary uses its own part")]

use std::collections::BTreeMap;

use coterie_mpc::proto::import::{
    ImportCallKind, ImportReplyKind, KeySplit, ShareTaken, SplitSeed, TakeSeedShare,
};
use coterie_mpc::proto::{self, Done, KeyPublic, ProtocolId, SessionConfig, Step};
use prost::Message;

use crate::common::{Party, Refused, Session, config, parties, run};
use crate::exact::call;

/// Bit 31 of a child's number.
pub const H: u32 = 1 << 31;
/// The key or seed; `config` of the common part names it.
pub const KEY: &str = "keys/ffi";
pub const CHILD: &str = "keys/child";
/// The seed of the first vectors of BIP-32 and SLIP-10.
pub const SEED: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

pub fn split_call(seed: &[u8], parties: &[Party]) -> SplitSeed {
    let party = |party: &Party| proto::Party { id: party.id, evidence_key: party.evidence_key.clone() };
    SplitSeed { seed: seed.to_vec(), key_id: KEY.to_owned(), parties: parties.iter().map(party).collect() }
}

pub fn split(seed: &[u8], parties: &[Party]) -> KeySplit {
    match call(None, &[], ImportCallKind::SplitSeed(split_call(seed, parties))) {
        Ok(ImportReplyKind::KeySplit(split)) => split,
        other => panic!("{other:?}"),
    }
}

pub fn take_call(party: &Party, share: &[u8]) -> Result<ImportReplyKind, Refused> {
    let take = TakeSeedShare { key_id: KEY.to_owned(), party: party.id, share: share.to_vec() };
    call(Some(&party.vault), &party.identity, ImportCallKind::TakeSeedShare(take))
}

pub fn taken(party: &Party, share: &[u8]) -> ShareTaken {
    match take_call(party, share) {
        Ok(ImportReplyKind::ShareTaken(taken)) => taken,
        other => panic!("{other:?}"),
    }
}

pub type Change<'a> = &'a dyn Fn(&mut SessionConfig);
pub type Started = (Session, Step);

/// Parties 1 to 3, each with a sealed share of a key or a seed.
pub struct Holders {
    pub parties: Vec<Party>,
    pub shares: Vec<Vec<u8>>,
}

impl Holders {
    /// Of a seed.
    pub fn of(seed: &[u8]) -> Holders {
        let parties = parties(3);
        let split = split(seed, &parties);
        let taken = parties.iter().zip(&split.shares).map(|(party, share)| taken(party, &share.value));
        let shares = taken.map(|taken| taken.sealed_share).collect();
        Holders { parties, shares }
    }

    /// Of an ECDSA key that they make, with its public data.
    pub fn with_key() -> (Holders, KeyPublic) {
        let parties = parties(3);
        let all: Vec<&Party> = parties.iter().collect();
        let starts = parties.iter().map(|party| {
            let config = config(ProtocolId::EcdsaKeygen, party.id, &all, 2).encode_to_vec();
            (party.id, Session::start(Some(&party.vault), &config, &party.identity, &[]).unwrap())
        });
        let keys = run(starts.collect());
        let public = keys[&1].key_public.clone().unwrap();
        let shares = keys.into_values().map(|done| done.sealed_share).collect();
        (Holders { parties, shares }, public)
    }

    pub fn party(&self, id: u32) -> &Party {
        &self.parties[id as usize - 1]
    }

    pub fn config(
        &self,
        protocol: ProtocolId,
        [own, peer]: [u32; 2],
        session: u8,
        change: Change<'_>,
    ) -> SessionConfig {
        let mut pair = [own, peer];
        pair.sort_unstable();
        let pair = pair.map(|id| self.party(id));
        let mut config = SessionConfig { session_id: vec![session; 32], ..config(protocol, own, &pair, 2) };
        change(&mut config);
        config
    }

    /// Starts at a party, with its share where the protocol takes one.
    pub fn start(&self, id: u32, config: &SessionConfig) -> Result<Started, Refused> {
        let takes = [ProtocolId::HardenedEcdsaChild, ProtocolId::HardenedSeedPair].map(i32::from);
        let share: &[u8] = if takes.contains(&config.protocol) { &self.shares[id as usize - 1] } else { &[] };
        self.start_with(id, config, share)
    }

    pub fn start_with(&self, id: u32, config: &SessionConfig, share: &[u8]) -> Result<Started, Refused> {
        let party = self.party(id);
        Session::start(Some(&party.vault), &config.encode_to_vec(), &party.identity, share)
    }

    pub fn starts(
        &self,
        protocol: ProtocolId,
        [one, other]: [u32; 2],
        session: u8,
        change: Change<'_>,
    ) -> BTreeMap<u32, Started> {
        let start = |own, peer| {
            let config = self.config(protocol, [own, peer], session, change);
            (own, self.start(own, &config).unwrap_or_else(|refused| panic!("{protocol:?}: {refused:?}")))
        };
        [start(one, other), start(other, one)].into()
    }

    /// The results of a session of two.
    pub fn both(
        &self,
        protocol: ProtocolId,
        pair: [u32; 2],
        session: u8,
        change: Change<'_>,
    ) -> BTreeMap<u32, Done> {
        run(self.starts(protocol, pair, session, change))
    }

    pub fn join(&self, pair: [u32; 2], session: u8) -> KeyPublic {
        let done = self.both(ProtocolId::HardenedSeedPair, pair, session, &|_| ());
        let [one, other] = pair.map(|id| done[&id].key_public.clone().unwrap());
        assert_eq!(one, other);
        one
    }

    /// The code and the detail of a refusal at a party.
    pub fn refused(&self, protocol: ProtocolId, pair: [u32; 2], change: Change<'_>) -> Refused {
        match self.start(pair[0], &self.config(protocol, pair, 99, change)) {
            Err(refused) => refused,
            Ok(_) => panic!("{protocol:?} starts"),
        }
    }

    /// Shares a key of two parties anew among all three.
    pub fn reshare(&self, protocol: ProtocolId, from: &BTreeMap<u32, Done>) -> BTreeMap<u32, Done> {
        let dealers: Vec<u32> = from.keys().copied().collect();
        let public = from[&dealers[0]].key_public.clone();
        let all: Vec<&Party> = self.parties.iter().collect();
        let starts = self.parties.iter().map(|party| {
            let config = SessionConfig {
                key_id: public.as_ref().unwrap().key_id.clone(),
                key_public: public.clone(),
                dealers: dealers.clone(),
                receivers: vec![1, 2, 3],
                ..config(protocol, party.id, &all, 2)
            };
            let share = from.get(&party.id).map_or(&[][..], |done| &done.sealed_share);
            (party.id, self.start_with(party.id, &config, share).unwrap())
        });
        let new = run(starts.collect());
        let [before, after] = [public.as_ref(), new[&1].key_public.as_ref()].map(|public| public.unwrap());
        assert_eq!((&after.public_key, &after.chain_code), (&before.public_key, &before.chain_code));
        assert_eq!((after.epoch, after.threshold, after.verification_shares.len()), (2, 2, 3));
        new
    }

    /// Two parties sign with new shares.
    pub fn sign(
        &self,
        protocol: ProtocolId,
        keys: &BTreeMap<u32, Done>,
        signers: [u32; 2],
        payload: &[u8],
    ) -> Vec<u8> {
        let starts = signers.map(|id| {
            let change = |config: &mut SessionConfig| {
                config.key_id = keys[&id].key_public.as_ref().unwrap().key_id.clone();
                config.epoch = 2;
                config.payload = payload.to_vec();
            };
            let peer = signers.iter().find(|signer| **signer != id).unwrap();
            let config = self.config(protocol, [id, *peer], 77, &change);
            (id, self.start_with(id, &config, &keys[&id].sealed_share).unwrap())
        });
        let signatures = run(starts.into());
        signatures[&signers[0]].signature.clone()
    }
}

/// A derivation of a child.
pub fn child(path: &[u32]) -> impl Fn(&mut SessionConfig) {
    move |config| {
        config.child_key_id = CHILD.to_owned();
        config.derivation_path = path.to_vec();
    }
}

/// A node of SLIP-10 below that of an earlier session, or below the seed.
pub fn node(earlier: Option<u8>, path: &[u32]) -> impl Fn(&mut SessionConfig) {
    move |config| {
        config.presignature_id = earlier.map(|session| vec![session; 32]).unwrap_or_default();
        config.derivation_path = path.to_vec();
    }
}

/// The key of the node of an earlier session.
pub fn key_of(earlier: u8) -> impl Fn(&mut SessionConfig) {
    move |config| {
        config.presignature_id = vec![earlier; 32];
        config.child_key_id = CHILD.to_owned();
    }
}
