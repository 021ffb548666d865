//! The terms on which the parties of one session agreed before its first message.

use crate::error::SetupError;
use crate::evidence::EvidencePublicKey;
use crate::party::{MAX_PARTIES, PartyId, PartySet, Threshold};
use crate::rounds::RoundRule;
use crate::tags;
use crate::transcript::Transcript;

/// Longest key id, in bytes.
pub const MAX_KEY_ID_BYTES: usize = 128;

/// Scheme, operation and version, from the closed registry that `core.proto` lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProtocolId {
    /// The number in `core.proto` and in envelopes.
    pub number: u16,
    /// For people and hashes, for example `bls/keygen/1`.
    pub name: &'static str,
}

/// 32 bytes, jointly made, never used twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionId([u8; 32]);

impl SessionId {
    /// Any 32 bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// One holder of a share, as the roster pins it.
#[derive(Clone)]
pub struct RosterEntry {
    /// Its number.
    pub id: PartyId,
    /// Its evidence key; protocols that sign envelopes require one of every party.
    pub evidence_key: Option<EvidencePublicKey>,
}

/// The caller's description of a session, still to be checked.
pub struct SessionSettings {
    /// Never used twice.
    pub session_id: SessionId,
    /// This party, or `None` for an observer.
    pub me: Option<PartyId>,
    /// Key generation: all parties of the key. Signing: the signing set. Strictly ascending.
    pub roster: Vec<RosterEntry>,
    /// Parties needed to sign.
    pub threshold: Threshold,
    /// Our name for the key, for ever.
    pub key_id: String,
    /// Generation of the key's shares, from 1.
    pub epoch: u32,
    /// The payload that is signed; empty where nothing is.
    pub payload: Vec<u8>,
}

/// A checked session description, and the digest that every envelope and every challenge is bound to.
pub struct SessionContext {
    protocol: ProtocolId,
    rounds: &'static [RoundRule],
    settings: SessionSettings,
    parties: PartySet,
    digest: [u8; 32],
}

impl SessionContext {
    /// Checks what holds for every protocol. `signed` says whether envelopes of this protocol carry evidence
    /// signatures: then every party needs an evidence key of its own, and the keys are part of what is agreed. So is
    /// `held`, see [`crate::Protocol::held_alike`].
    pub(crate) fn new(
        protocol: ProtocolId,
        signed: bool,
        rounds: &'static [RoundRule],
        settings: SessionSettings,
        held: Option<[u8; 32]>,
    ) -> Result<Self, SetupError> {
        if settings.roster.is_empty() || settings.roster.len() > MAX_PARTIES {
            return Err(SetupError::PartyCount);
        }
        if !settings.roster.is_sorted_by(|a, b| a.id < b.id) {
            return Err(SetupError::PartiesNotAscending);
        }
        let parties: PartySet = settings.roster.iter().map(|entry| entry.id).collect();
        if settings.me.is_some_and(|me| !parties.contains(me)) {
            return Err(SetupError::SelfNotInParties);
        }
        if settings.key_id.is_empty() || settings.key_id.len() > MAX_KEY_ID_BYTES {
            return Err(SetupError::KeyIdLength);
        }
        if settings.epoch == 0 {
            return Err(SetupError::EpochRange);
        }
        if signed {
            check_evidence_keys(&settings.roster)?;
        }
        let digest = session_digest(protocol, signed, &settings, held);
        Ok(Self { protocol, rounds, settings, parties, digest })
    }

    /// The protocol that runs.
    pub fn protocol(&self) -> ProtocolId {
        self.protocol
    }

    /// The rounds of the protocol, the first one first.
    pub fn rounds(&self) -> &'static [RoundRule] {
        self.rounds
    }

    /// Its id.
    pub fn session_id(&self) -> SessionId {
        self.settings.session_id
    }

    /// This party; `None` for an observer.
    pub fn me(&self) -> Option<PartyId> {
        self.settings.me
    }

    /// Everyone in the session.
    pub fn parties(&self) -> &PartySet {
        &self.parties
    }

    /// Everyone in the session but this party.
    pub fn peers(&self) -> PartySet {
        self.parties.iter().filter(|party| Some(*party) != self.settings.me).collect()
    }

    /// Parties needed to sign.
    pub fn threshold(&self) -> Threshold {
        self.settings.threshold
    }

    /// Our name for the key.
    pub fn key_id(&self) -> &str {
        &self.settings.key_id
    }

    /// Generation of the key's shares.
    pub fn epoch(&self) -> u32 {
        self.settings.epoch
    }

    /// The payload that is signed.
    pub fn payload(&self) -> &[u8] {
        &self.settings.payload
    }

    /// Hash of everything agreed; two parties that were told different things have different ones.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// A transcript seeded with everything agreed.
    pub fn transcript(&self) -> Transcript {
        let mut transcript = Transcript::new(tags::SESSION);
        transcript.append("session", &self.digest);
        transcript
    }

    /// The key that a party signs its envelopes with; `None` for a stranger, or where nothing is signed.
    pub fn evidence_key(&self, party: PartyId) -> Option<&EvidencePublicKey> {
        self.settings.roster.iter().find(|entry| entry.id == party)?.evidence_key.as_ref()
    }
}

fn check_evidence_keys(roster: &[RosterEntry]) -> Result<(), SetupError> {
    for (position, entry) in roster.iter().enumerate() {
        let key = entry.evidence_key.as_ref().ok_or(SetupError::EvidenceKeyInvalid)?;
        if roster.iter().take(position).any(|earlier| earlier.evidence_key.as_ref() == Some(key)) {
            return Err(SetupError::EvidenceKeyShared);
        }
    }
    Ok(())
}

fn session_digest(
    protocol: ProtocolId,
    signed: bool,
    settings: &SessionSettings,
    held: Option<[u8; 32]>,
) -> [u8; 32] {
    let mut transcript = Transcript::new(tags::SESSION);
    transcript.append("protocol", protocol.name.as_bytes());
    transcript.append("session_id", &settings.session_id.0);
    transcript.append_list("parties", settings.roster.iter().map(|entry| entry.id.get().to_be_bytes()));
    if signed {
        let keys = settings.roster.iter().map(|entry| match &entry.evidence_key {
            Some(key) => key.as_bytes().to_vec(),
            None => Vec::new(),
        });
        transcript.append_list("evidence_keys", keys);
    }
    transcript.append_u64("threshold", settings.threshold.get() as u64);
    transcript.append("key_id", settings.key_id.as_bytes());
    transcript.append_u64("epoch", u64::from(settings.epoch));
    transcript.append("payload", &settings.payload);
    if let Some(held) = &held {
        transcript.append("held", held);
    }
    transcript.digest()
}
