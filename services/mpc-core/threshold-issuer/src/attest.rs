//! The issuers sign what they have published: that the group's issuing key is shared among them, and for which
//! threshold. Steps are cited as [D4] (`docs/protocols/wbb.md`).
//!
//! The proof in a group's public data shows that somebody knows sk_m, and nothing of how many hands it is in: whoever
//! has what the openers have signed can publish a group of the same name and epoch with a key of its own, and invent
//! members. Parties whom everybody has configured must say that the key is theirs.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::wire::{Malformed, Reader, Writer};
use engine::{EvidenceKey, EvidencePublicKey, MAX_PARTIES, PartyId, SIGNATURE_BYTES, Threshold, Transcript};
use group_signatures::{GroupError, GroupPublic, Openers};
use primitives::bls12_381::G1;
use primitives::declassify::published;

use crate::key::{IssuerShare, Issuers, MAX_THRESHOLD, key_id};
use crate::tags;

/// Longest name of an installation, in bytes.
pub const MAX_INSTALLATION_BYTES: usize = 63;
/// Most bytes of an encoded group or of the issuers' public data: more than 32 openers and 20 issuers need.
const MAX_PART_BYTES: usize = 8192;

/// Why a group is not taken for one of the named issuers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttestationError {
    /// The encoding is wrong, or the issuers' points are not shares of one key.
    Malformed,
    /// The group itself is refused.
    Group(GroupError),
    /// The key is shared among others than the named issuers, or a signature is there that is none of theirs.
    Members,
    /// It takes another number of issuers than the configuration says.
    WrongThreshold,
    /// The issuers' key is not that of the group, or was not made for it.
    OtherKey,
    /// This issuer's share has another point, or it signs with another key than its own.
    WrongShare(PartyId),
    /// This issuer has not signed these data for this installation.
    NotAttested(PartyId),
}

impl fmt::Display for AttestationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttestationError::Malformed => f.write_str("the attested group is malformed"),
            AttestationError::Group(error) => error.fmt(f),
            AttestationError::Members => f.write_str("the key is not shared among the named issuers"),
            AttestationError::WrongThreshold => f.write_str("the key has another threshold"),
            AttestationError::OtherKey => f.write_str("the issuers' key is not the one of this group"),
            AttestationError::WrongShare(party) => {
                write!(f, "issuer {party} has another share, or signs with another key")
            }
            AttestationError::NotAttested(party) => write!(f, "issuer {party} has not signed the group"),
        }
    }
}

impl std::error::Error for AttestationError {}

impl From<Malformed> for AttestationError {
    fn from(_: Malformed) -> Self {
        AttestationError::Malformed
    }
}

impl From<GroupError> for AttestationError {
    fn from(error: GroupError) -> Self {
        AttestationError::Group(error)
    }
}

/// The issuers of one installation, and how many of them it takes. Every party has them from its configuration, never
/// from who shows a group.
#[derive(Clone)]
pub struct NamedIssuers {
    installation: String,
    threshold: Threshold,
    identities: BTreeMap<PartyId, EvidencePublicKey>,
}

impl NamedIssuers {
    /// `None` unless there are at most [`MAX_PARTIES`] with different numbers and different keys, the threshold is 2
    /// to their number and at most [`MAX_THRESHOLD`], and the installation has a name.
    pub fn new(
        installation: &str,
        threshold: Threshold,
        identities: &[(PartyId, EvidencePublicKey)],
    ) -> Option<Self> {
        let count = identities.len();
        let keys: BTreeSet<_> = identities.iter().map(|(_, key)| *key.as_bytes()).collect();
        let identities: BTreeMap<_, _> = identities.iter().cloned().collect();
        let distinct = keys.len() == count && identities.len() == count;
        let fits = count <= MAX_PARTIES && (2..=count.min(MAX_THRESHOLD)).contains(&threshold.get());
        let named = (1..=MAX_INSTALLATION_BYTES).contains(&installation.len());
        let issuers = Self { installation: installation.to_owned(), threshold, identities };
        (distinct && fits && named).then_some(issuers)
    }

    /// How many issuers it takes.
    pub fn threshold(&self) -> Threshold {
        self.threshold
    }

    /// The issuers in ascending order, with the keys that they sign with.
    pub fn identities(&self) -> impl Iterator<Item = (PartyId, &EvidencePublicKey)> {
        self.identities.iter().map(|(party, key)| (*party, key))
    }

    /// The key that an issuer signs with.
    pub fn identity(&self, party: PartyId) -> Option<&EvidencePublicKey> {
        self.identities.get(&party)
    }

    /// [D4.1] the issuing key is that of the group, was made for it, and is shared among these issuers.
    fn check(&self, group: &GroupPublic, issuers: &Issuers) -> Result<(), AttestationError> {
        if !issuers.parties().iter().eq(self.identities.keys().copied()) {
            return Err(AttestationError::Members);
        }
        if issuers.threshold() != self.threshold {
            return Err(AttestationError::WrongThreshold);
        }
        if issuers.public_key() != group.issuer() || issuers.name() != key_id(group.opener_attested()) {
            return Err(AttestationError::OtherKey);
        }
        if issuers.consistent() { Ok(()) } else { Err(AttestationError::Malformed) }
    }

    /// The bytes that an issuer signs. They begin with a tag, so that no other statement of the same key is taken for
    /// one. The digest of the group has name, epoch, openers with their threshold and key, X_m and pk_m.
    fn statement(&self, group: &GroupPublic, issuers: &Issuers) -> Vec<u8> {
        let mut transcript = Transcript::new(tags::ATTESTATION);
        transcript.append("installation", self.installation.as_bytes());
        transcript.append("group", group.digest());
        // Threshold, the key's name, the epoch of the shares, numbers and points of the issuers.
        transcript.append("issuers", &issuers.to_bytes());
        transcript.append_list("identities", self.identities.values().map(|key| *key.as_bytes()));
        [tags::ATTESTATION.as_bytes(), &transcript.digest()].concat()
    }
}

impl IssuerShare {
    /// [D4.2] an issuer says that the key is shared among the named issuers, one share of it its own. It signs one key
    /// for each group and epoch, the one that its key generation has ended with, and again after a refresh.
    pub fn attest(
        &self,
        group: &GroupPublic,
        named: &NamedIssuers,
        identity: &EvidenceKey,
    ) -> Result<[u8; SIGNATURE_BYTES], AttestationError> {
        named.check(group, self.issuers())?;
        let me = self.party();
        let own_key = named.identities.get(&me) == Some(&identity.public());
        let own_point = published(G1::mul_generator(self.secret()));
        if !own_key || self.issuers().share(me) != Some(&own_point) {
            return Err(AttestationError::WrongShare(me));
        }
        Ok(identity.sign_statement(&named.statement(group, self.issuers())))
    }
}

/// A group whose issuing key is shared among the named issuers: all of them have signed that. Nothing else makes one.
pub struct AttestedGroup {
    group: Arc<GroupPublic>,
    issuers: Arc<Issuers>,
    named: NamedIssuers,
    signatures: BTreeMap<PartyId, [u8; SIGNATURE_BYTES]>,
}

impl AttestedGroup {
    /// [D4.3] every issuer has signed: one that keeps to the rules is enough for the key not to be in one hand.
    pub fn new(
        group: Arc<GroupPublic>,
        issuers: Arc<Issuers>,
        named: &NamedIssuers,
        signatures: &[(PartyId, [u8; SIGNATURE_BYTES])],
    ) -> Result<Self, AttestationError> {
        named.check(&group, &issuers)?;
        let count = signatures.len();
        let signatures: BTreeMap<_, _> = signatures.iter().copied().collect();
        let statement = named.statement(&group, &issuers);
        for (party, identity) in &named.identities {
            let signature = signatures.get(party);
            if !signature.is_some_and(|signature| identity.verify_statement(&statement, signature)) {
                return Err(AttestationError::NotAttested(*party));
            }
        }
        if count != named.identities.len() {
            return Err(AttestationError::Members);
        }
        Ok(Self { group, issuers, named: named.clone(), signatures })
    }

    /// The group, for approvals and their verifiers.
    pub fn group(&self) -> &Arc<GroupPublic> {
        &self.group
    }

    /// The public data of the issuing key, for members that join.
    pub fn issuers(&self) -> &Arc<Issuers> {
        &self.issuers
    }

    /// The configured issuers that have signed it.
    pub fn named(&self) -> &NamedIssuers {
        &self.named
    }

    /// Group, issuers, number and signature of each.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.sized(&self.group.encode());
        writer.sized(&self.issuers.to_bytes());
        writer.u8(u8::try_from(self.signatures.len()).unwrap_or(u8::MAX));
        for (party, signature) in &self.signatures {
            writer.u16(party.get());
            writer.bytes(signature);
        }
        writer.finish()
    }

    /// [D4.3] decodes and checks. Openers and issuers come from the caller's configuration.
    pub fn decode(bytes: &[u8], openers: &Openers, named: &NamedIssuers) -> Result<Self, AttestationError> {
        let mut reader = Reader::new(bytes);
        let group = reader.sized(MAX_PART_BYTES)?;
        let issuers = reader.sized(MAX_PART_BYTES)?;
        let count = usize::from(reader.u8()?);
        if count > MAX_PARTIES {
            return Err(AttestationError::Malformed);
        }
        let mut signatures = Vec::with_capacity(count);
        for _ in 0..count {
            let party = PartyId::new(reader.u16()?.into()).ok_or(AttestationError::Malformed)?;
            signatures.push((party, *reader.array()?));
        }
        reader.finish()?;
        // Ascending, so that the same data have one encoding.
        if !signatures.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err(AttestationError::Malformed);
        }
        let group = GroupPublic::decode(group, openers)?;
        Self::new(Arc::new(group), Arc::new(Issuers::from_bytes(issuers)?), named, &signatures)
    }
}
