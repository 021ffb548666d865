//! The parties of groups, their keys and the groups themselves, from the messages in which they come.

use engine::{EvidencePublicKey, MAX_PARTIES, PartyId, SIGNATURE_BYTES, SetupError, Threshold};
use group_signatures::{AttestedKey, GroupId, Openers};
use protocols::bls::Subgroup;
use protocols::dealing::{Curve, Public};
use threshold_issuer::key::{Holders, Purpose, ToOpen};
use threshold_issuer::{AttestedGroup, NamedIssuers};

use crate::inputs::bounded_shares;
use crate::proto;
use crate::refusal::Failure;

/// The configured issuers and openers.
pub(crate) struct Configured {
    pub(crate) issuers: NamedIssuers,
    pub(crate) openers: Openers,
}

impl Configured {
    /// From the caller's configuration; refused as the caller's mistake.
    pub(crate) fn new(parties: Option<&proto::GroupParties>) -> Result<Self, SetupError> {
        let parties = parties.ok_or(SetupError::GroupTermsMissing)?;
        let made = || {
            let threshold = Threshold::new(parties.issuer_threshold)?;
            let issuers = NamedIssuers::new(&parties.installation, threshold, &keys(&parties.issuers)?)?;
            let threshold = usize::try_from(parties.opener_threshold).ok()?;
            let openers = Openers::new(threshold, &keys(&parties.openers)?)?;
            Some(Self { issuers, openers })
        };
        made().ok_or(SetupError::GroupTermsInvalid)
    }

    /// [G1.3] the openers' key, signed by all openers.
    pub(crate) fn attested_key(&self, key: &proto::OpenersKey) -> Result<AttestedKey, Failure> {
        let holders: Holders<ToOpen> = shown(key.key.as_ref(), "the openers' key")?;
        let signatures = signatures(&key.signatures)?;
        Ok(holders.of(&self.openers)?.attested(GroupId::new(&key.group, key.epoch)?, &signatures)?)
    }

    /// [D4.3] a group that these issuers have signed.
    pub(crate) fn group(&self, attested: &[u8]) -> Result<AttestedGroup, Failure> {
        Ok(AttestedGroup::decode(attested, &self.openers, &self.issuers)?)
    }
}

/// Numbers and keys; `None` if they are too many, not ascending or no keys.
fn keys(parties: &[proto::Party]) -> Option<Vec<(PartyId, EvidencePublicKey)>> {
    let ascending = parties.is_sorted_by(|a, b| a.id < b.id);
    if parties.len() > MAX_PARTIES || !ascending {
        return None;
    }
    let key = |party: &proto::Party| {
        Some((PartyId::new(party.id)?, EvidencePublicKey::from_bytes(&party.evidence_key)?))
    };
    parties.iter().map(key).collect()
}

/// The number of a party that the caller names.
pub(crate) fn party(number: u32) -> Result<PartyId, SetupError> {
    PartyId::new(number).ok_or(SetupError::PartyIdRange)
}

/// The contributions of parties, each decoded. More than one of a party is refused by whoever uses them.
pub(crate) fn contributions<T>(
    given: &[proto::PartyBytes],
    what: &str,
    decode: impl Fn(&[u8]) -> Option<T>,
) -> Result<Vec<(PartyId, T)>, Failure> {
    // Twice as many as there can be, so that a list with one of them twice still says so.
    if given.len() > 2 * MAX_PARTIES {
        return Err(Failure::malformed(what));
    }
    let one = |given: &proto::PartyBytes| {
        let party = PartyId::new(given.party).ok_or_else(|| Failure::malformed(what))?;
        let value = decode(&given.value).ok_or_else(|| Failure::malformed_from(party, what))?;
        Ok((party, value))
    };
    given.iter().map(one).collect()
}

/// The signatures of parties.
pub(crate) fn signatures(
    given: &[proto::PartyBytes],
) -> Result<Vec<(PartyId, [u8; SIGNATURE_BYTES])>, Failure> {
    contributions(given, "the signature", |bytes| bytes.try_into().ok())
}

/// The public data of a shared key, from which its points must follow.
pub(crate) fn holders<K: Purpose>(key: Option<&proto::KeyPublic>) -> Result<Holders<K>, SetupError> {
    let key = key.ok_or(SetupError::KeyPublicMissing)?;
    let point = |bytes: &[u8]| Subgroup::decode_point(bytes);
    let decode = || {
        let share =
            |share: &proto::VerificationShare| Some((PartyId::new(share.party)?, point(&share.point)?));
        let shares = bounded_shares(key)?.iter().map(share).collect::<Option<_>>()?;
        let named = (key.key_id.as_str(), key.epoch);
        let made = Holders::new(named, Threshold::new(key.threshold)?, point(&key.public_key)?, shares)?;
        (key.proof_of_possession.is_empty() && key.chain_code.is_empty()).then_some(made)
    };
    decode().ok_or(SetupError::KeyPublicInvalid)
}

/// The same of a key that others show: a fault of it is theirs, and not the caller's.
pub(crate) fn shown<K: Purpose>(key: Option<&proto::KeyPublic>, what: &str) -> Result<Holders<K>, Failure> {
    holders(key).map_err(|_| Failure::malformed(what))
}

/// The same for the caller.
pub(crate) fn holders_message<K: Purpose>(holders: &Holders<K>) -> proto::KeyPublic {
    let share = |party: PartyId| {
        let point = holders.share(party).map_or_else(Vec::new, |point| point.to_compressed().to_vec());
        proto::VerificationShare { party: party.get().into(), point }
    };
    proto::KeyPublic {
        public_key: holders.public_key().to_compressed().to_vec(),
        threshold: u32::try_from(holders.threshold().get()).unwrap_or(u32::MAX),
        key_id: Public::key_id(holders).to_owned(),
        epoch: Public::epoch(holders),
        verification_shares: holders.parties().iter().map(share).collect(),
        proof_of_possession: Vec::new(),
        chain_code: Vec::new(),
    }
}
