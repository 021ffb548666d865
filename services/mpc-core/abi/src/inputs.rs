//! The inputs that a caller gives to start a session. Each is taken at most once; one that nobody took is refused.

use core::mem::take;
use std::sync::Arc;

use engine::seal::{DataKey, ShareLabel};
use engine::session::Protocol;
use engine::{
    EvidenceKey, EvidencePublicKey, PartyId, PartySet, RosterEntry, SessionId, SessionSettings, SetupError,
    Threshold,
};

use crate::pairs::PairName;
use crate::proto;
use crate::vault::Vault;

/// Why no session was started.
#[derive(Debug, PartialEq, Eq)]
pub enum StartError {
    /// The configuration does not decode.
    Undecodable,
    /// A sealed input does not open.
    Unseal,
    /// The inputs do not fit each other.
    Setup(SetupError),
}

impl From<SetupError> for StartError {
    fn from(error: SetupError) -> Self {
        StartError::Setup(error)
    }
}

/// The arguments of a start, decoded but not believed.
pub(crate) struct Inputs<'a> {
    vault: Option<&'a Vault>,
    config: proto::SessionConfig,
    sealed_identity: &'a [u8],
    sealed_share: &'a [u8],
}

/// A sealed key share that has not been opened, with what it has to say of itself.
pub(crate) struct SealedShare<'a> {
    pub(crate) blob: &'a [u8],
    pub(crate) label: ShareLabel,
    pub(crate) key: Arc<DataKey>,
}

impl<'a> Inputs<'a> {
    pub(crate) fn new(
        vault: Option<&'a Vault>,
        config: proto::SessionConfig,
        sealed_identity: &'a [u8],
        sealed_share: &'a [u8],
    ) -> Self {
        Self { vault, config, sealed_identity, sealed_share }
    }

    /// Whether the session is an observer's.
    pub(crate) fn is_observer(&self) -> bool {
        self.config.own == 0
    }

    /// For protocols without observers.
    pub(crate) fn party_only(&self) -> Result<(), SetupError> {
        if self.is_observer() { Err(SetupError::ObserverNotAllowed) } else { Ok(()) }
    }

    /// The vault, which every party needs.
    pub(crate) fn vault(&self) -> Result<&'a Vault, SetupError> {
        self.vault.ok_or(SetupError::VaultMissing)
    }

    /// The evidence key of this party.
    pub(crate) fn identity(&self) -> Result<EvidenceKey, StartError> {
        let vault = self.vault()?;
        if self.sealed_identity.is_empty() {
            return Err(SetupError::IdentityMissing.into());
        }
        vault.open_identity(self.sealed_identity).map_err(|_| StartError::Unseal)
    }

    /// The sealed key share, which must be of `family` and of what the configuration says.
    pub(crate) fn sealed_share(&mut self, family: &str) -> Result<SealedShare<'a>, SetupError> {
        let label = ShareLabel {
            family: family.to_owned(),
            key_id: self.config.key_id.clone(),
            party: self.own()?,
            epoch: self.config.epoch,
            threshold: Threshold::new(self.config.threshold).ok_or(SetupError::ThresholdRange)?,
        };
        self.share_of(label)
    }

    /// The sealed key share of this label.
    pub(crate) fn share_of(&mut self, label: ShareLabel) -> Result<SealedShare<'a>, SetupError> {
        let vault = self.vault()?;
        let blob = take(&mut self.sealed_share);
        if blob.is_empty() {
            return Err(SetupError::ShareMissing);
        }
        Ok(SealedShare { blob, label, key: Arc::clone(&vault.key) })
    }

    /// The terms of a session of issuers.
    pub(crate) fn group_terms(&mut self) -> Result<proto::GroupTerms, SetupError> {
        self.config.group.take().ok_or(SetupError::GroupTermsMissing)
    }

    /// The public data of the key.
    pub(crate) fn key_public(&mut self) -> Result<proto::KeyPublic, SetupError> {
        self.config.key_public.take().ok_or(SetupError::KeyPublicMissing)
    }

    /// Whether the result of an observer is verified elsewhere.
    pub(crate) fn unverified(&mut self) -> bool {
        take(&mut self.config.unverified)
    }

    /// The payload that is signed.
    pub(crate) fn payload(&mut self) -> Vec<u8> {
        take(&mut self.config.payload)
    }

    /// Child numbers, not checked.
    pub(crate) fn derivation_path(&mut self) -> Vec<u32> {
        take(&mut self.config.derivation_path)
    }

    /// The root of Taproot's tweak, not checked: none for no tweak, empty for one without a root.
    pub(crate) fn taproot_merkle_root(&mut self) -> Option<Vec<u8>> {
        self.config.taproot_merkle_root.take()
    }

    /// How many presignatures to make: 1 to `most`.
    pub(crate) fn presignature_count(&mut self, most: u8) -> Result<u8, SetupError> {
        match u8::try_from(take(&mut self.config.presignature_count)) {
            Ok(count) if (1..=most).contains(&count) => Ok(count),
            _ => Err(SetupError::PresignatureCount),
        }
    }

    /// Names the presignature to use.
    pub(crate) fn presignature_id(&mut self) -> Result<[u8; 32], SetupError> {
        let id = take(&mut self.config.presignature_id);
        id.as_slice().try_into().map_err(|_| SetupError::PresignatureIdLength)
    }

    /// Blocks of the message of an exact signature, not checked.
    pub(crate) fn message_blocks(&mut self) -> u32 {
        take(&mut self.config.message_blocks)
    }

    /// Our name for the key that a derivation makes, not checked.
    pub(crate) fn child_key_id(&mut self) -> String {
        take(&mut self.config.child_key_id)
    }

    /// The earlier session whose result is used; none if none is named.
    pub(crate) fn earlier_session(&mut self) -> Result<Option<[u8; 32]>, SetupError> {
        if self.config.presignature_id.is_empty() { Ok(None) } else { self.presignature_id().map(Some) }
    }

    /// The nonce point that the caller has stored.
    pub(crate) fn recorded_nonce(&mut self) -> Result<[u8; 32], SetupError> {
        let point = take(&mut self.config.recorded_nonce);
        point.as_slice().try_into().map_err(|_| SetupError::NonceLength)
    }

    /// The sealed presignature.
    pub(crate) fn sealed_presignature(&mut self) -> Result<Vec<u8>, SetupError> {
        let blob = take(&mut self.config.sealed_presignature);
        if blob.is_empty() { Err(SetupError::PresignatureMissing) } else { Ok(blob) }
    }

    /// Those that deal in a reshare, and those that receive.
    pub(crate) fn roles(&mut self) -> Result<(PartySet, PartySet), SetupError> {
        Ok((party_set(&take(&mut self.config.dealers))?, party_set(&take(&mut self.config.receivers))?))
    }

    /// This party.
    pub(crate) fn own(&self) -> Result<PartyId, SetupError> {
        PartyId::new(self.config.own).ok_or(SetupError::PartyIdRange)
    }

    /// This party and its only peer, of the key that the configuration names.
    pub(crate) fn pair_name(&self) -> Result<PairName, SetupError> {
        let [first, second] = self.config.parties.as_slice() else { return Err(SetupError::PartyCount) };
        let me = self.own()?;
        let peer = if first.id == self.config.own { second.id } else { first.id };
        let peer = PartyId::new(peer).ok_or(SetupError::PartyIdRange)?;
        Ok(PairName { key_id: self.config.key_id.clone(), me, peer })
    }

    /// Whether this party is one of `parties`.
    pub(crate) fn is_one_of(&self, parties: &PartySet) -> bool {
        PartyId::new(self.config.own).is_some_and(|own| parties.contains(own))
    }

    /// The settings of a session of `P` about `payload`, once everything that `P` takes has been taken.
    pub(crate) fn settings<P: Protocol>(&mut self, payload: Vec<u8>) -> Result<SessionSettings, SetupError> {
        let config = take(&mut self.config);
        let left_over = !self.sealed_share.is_empty()
            || config.key_public.is_some()
            || config.group.is_some()
            || config.unverified
            || !config.derivation_path.is_empty()
            || config.taproot_merkle_root.is_some()
            || config.presignature_count != 0
            || !config.presignature_id.is_empty()
            || !config.sealed_presignature.is_empty()
            || config.message_blocks != 0
            || !config.recorded_nonce.is_empty()
            || !config.child_key_id.is_empty()
            || !config.dealers.is_empty()
            || !config.receivers.is_empty();
        if left_over {
            return Err(SetupError::InputUnexpected);
        }
        if !config.payload.is_empty() {
            return Err(SetupError::PayloadLength);
        }
        let session_id: [u8; 32] =
            config.session_id.as_slice().try_into().map_err(|_| SetupError::SessionIdLength)?;
        let me = match config.own {
            0 => None,
            number => Some(PartyId::new(number).ok_or(SetupError::PartyIdRange)?),
        };
        if config.parties.len() > engine::MAX_PARTIES {
            return Err(SetupError::PartyCount);
        }
        let roster = config.parties.iter().map(roster_entry::<P>).collect::<Result<_, _>>()?;
        Ok(SessionSettings {
            session_id: SessionId::new(session_id),
            me,
            roster,
            threshold: Threshold::new(config.threshold).ok_or(SetupError::ThresholdRange)?,
            key_id: config.key_id,
            epoch: config.epoch,
            payload,
        })
    }
}

/// The verification shares of a key, not checked but for their number: each of them costs the decoding of a point.
/// `None` if there are more than a key can have.
pub(crate) fn bounded_shares(public: &proto::KeyPublic) -> Option<&[proto::VerificationShare]> {
    let shares = public.verification_shares.as_slice();
    (shares.len() <= engine::MAX_PARTIES).then_some(shares)
}

fn party_set(numbers: &[u32]) -> Result<PartySet, SetupError> {
    if !numbers.is_sorted_by(|a, b| a < b) {
        return Err(SetupError::PartiesNotAscending);
    }
    if numbers.len() > engine::MAX_PARTIES {
        return Err(SetupError::PartyCount);
    }
    numbers.iter().map(|number| PartyId::new(*number).ok_or(SetupError::PartyIdRange)).collect()
}

/// Evidence keys matter, and are looked at, only where envelopes are signed.
fn roster_entry<P: Protocol>(party: &proto::Party) -> Result<RosterEntry, SetupError> {
    let id = PartyId::new(party.id).ok_or(SetupError::PartyIdRange)?;
    let evidence_key = if P::SIGNED {
        Some(EvidencePublicKey::from_bytes(&party.evidence_key).ok_or(SetupError::EvidenceKeyInvalid)?)
    } else {
        None
    };
    Ok(RosterEntry { id, evidence_key })
}
