//! The openers: their names, the key that they share, and their signatures of it.
//!
//! A proof that somebody knows the opener's key would not do: the manager can make one for a key of its own, and then
//! open every approval. Parties whom everybody has configured must say that the key is theirs. Steps are cited as [G1].

use std::collections::{BTreeMap, BTreeSet};

use engine::{EvidenceKey, EvidencePublicKey, PartyId, SIGNATURE_BYTES, Secret, Transcript};
use primitives::bls12_381::{G1, Scalar};
use primitives::shamir::Weights;

use crate::error::OpenerError;
use crate::group_id::GroupId;
use crate::tags;

/// Most openers of a group.
pub const MAX_OPENERS: usize = 32;

/// The parties that open approvals, and how many of them it takes. Every party has them from its configuration,
/// never from the maker of the group.
#[derive(Clone)]
pub struct Openers {
    threshold: usize,
    identities: BTreeMap<PartyId, EvidencePublicKey>,
}

impl Openers {
    /// `None` unless there are 1 to [`MAX_OPENERS`] with different numbers and different keys, and the threshold is 1
    /// to their number. One auditor is party 1 of 1.
    pub fn new(threshold: usize, identities: &[(PartyId, EvidencePublicKey)]) -> Option<Self> {
        let count = identities.len();
        let keys: BTreeSet<_> = identities.iter().map(|(_, key)| *key.as_bytes()).collect();
        let identities: BTreeMap<_, _> = identities.iter().cloned().collect();
        let distinct = keys.len() == count && identities.len() == count;
        let fits = distinct && count <= MAX_OPENERS && (1..=count).contains(&threshold);
        fits.then_some(Self { threshold, identities })
    }

    /// How many openers it takes.
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// The openers in ascending order, with the keys that they sign with.
    pub fn identities(&self) -> impl Iterator<Item = (PartyId, &EvidencePublicKey)> {
        self.identities.iter().map(|(party, key)| (*party, key))
    }
}

/// O = g1^o with each opener's g1^{o_j}: the result of a key generation among the openers.
#[derive(Clone)]
pub struct OpenerKey {
    openers: Openers,
    shares: BTreeMap<PartyId, G1>,
    key: G1,
}

impl OpenerKey {
    /// [G1.1] the points are shares of one key for the openers' threshold.
    pub fn new(openers: &Openers, shares: &[(PartyId, G1)]) -> Result<Self, OpenerError> {
        let count = shares.len();
        let shares: BTreeMap<PartyId, G1> = shares.iter().copied().collect();
        if shares.len() != count || !shares.keys().eq(openers.identities.keys()) {
            return Err(OpenerError::Members);
        }
        let parties: Vec<PartyId> = shares.keys().copied().collect();
        let (first, others) = parties.split_at_checked(openers.threshold).ok_or(OpenerError::Members)?;
        let key = interpolate(&shares, first)?;
        // The key and all but one of the first fix the polynomial; each other share has to lie on it.
        let (_, fixed) = first.split_last().ok_or(OpenerError::Members)?;
        for other in others {
            let parties: Vec<PartyId> = fixed.iter().chain([other]).copied().collect();
            if interpolate(&shares, &parties)? != key {
                return Err(OpenerError::Sharing);
            }
        }
        if key.is_identity() || shares.values().any(G1::is_identity) {
            return Err(OpenerError::Sharing);
        }
        Ok(Self { openers: openers.clone(), shares, key })
    }

    /// O.
    pub fn key(&self) -> &G1 {
        &self.key
    }

    /// g1^{o_j} of an opener.
    pub fn share(&self, party: PartyId) -> Option<&G1> {
        self.shares.get(&party)
    }

    /// The openers.
    pub fn openers(&self) -> &Openers {
        &self.openers
    }

    /// [G1.2] an opener says that the key is the openers', for one group and epoch. It signs one key for each group and
    /// epoch, the one that its key generation has ended with.
    pub fn attest(
        &self,
        group: &GroupId,
        me: PartyId,
        share: &Secret<Scalar>,
        identity: &EvidenceKey,
    ) -> Result<[u8; SIGNATURE_BYTES], OpenerError> {
        if self.shares.get(&me) != Some(&G1::mul_generator(share)) {
            return Err(OpenerError::WrongShare(me));
        }
        Ok(identity.sign_statement(&statement(&self.digest(group))))
    }

    /// [G1.3] every opener has signed: one that keeps to the rules is enough for the key not to be another's.
    pub fn attested(
        self,
        group: GroupId,
        attestations: &[(PartyId, [u8; SIGNATURE_BYTES])],
    ) -> Result<AttestedKey, OpenerError> {
        let attestations: BTreeMap<_, _> = attestations.iter().copied().collect();
        let digest = self.digest(&group);
        for (party, identity) in &self.openers.identities {
            let signed = attestations
                .get(party)
                .is_some_and(|signature| identity.verify_statement(&statement(&digest), signature));
            if !signed {
                return Err(OpenerError::NotAttested(*party));
            }
        }
        if attestations.len() != self.shares.len() {
            return Err(OpenerError::Members);
        }
        Ok(AttestedKey { group, key: self, attestations, digest })
    }

    fn digest(&self, group: &GroupId) -> [u8; 32] {
        let mut transcript = Transcript::new(tags::OPENER_ATTESTATION);
        transcript.append("name", group.name().as_bytes());
        transcript.append_u64("epoch", u64::from(group.epoch()));
        transcript.append_u64("threshold", self.openers.threshold as u64);
        transcript.append_u64("openers", self.shares.len() as u64);
        for ((party, share), identity) in self.shares.iter().zip(self.openers.identities.values()) {
            transcript.append_u64("opener", u64::from(party.get()));
            transcript.append("identity", identity.as_bytes());
            transcript.append("share", &share.to_compressed());
        }
        transcript.append("key", &self.key.to_compressed());
        transcript.digest()
    }
}

/// An opener's key that every opener has signed for one group and epoch.
#[derive(Clone)]
pub struct AttestedKey {
    pub(crate) group: GroupId,
    pub(crate) key: OpenerKey,
    pub(crate) attestations: BTreeMap<PartyId, [u8; SIGNATURE_BYTES]>,
    pub(crate) digest: [u8; 32],
}

impl AttestedKey {
    /// Name and epoch of the group.
    pub fn group(&self) -> &GroupId {
        &self.group
    }

    /// Hash of what the openers have signed.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

/// A statement begins with its tag, so that no other statement of the same key is taken for it.
pub(crate) fn signed_statement(tag: engine::Tag, digest: &[u8; 32]) -> Vec<u8> {
    [tag.as_bytes(), digest].concat()
}

fn statement(digest: &[u8; 32]) -> Vec<u8> {
    signed_statement(tags::OPENER_ATTESTATION, digest)
}

fn interpolate(shares: &BTreeMap<PartyId, G1>, parties: &[PartyId]) -> Result<G1, OpenerError> {
    let numbers: Vec<u16> = parties.iter().map(|party| party.get()).collect();
    let points: Vec<G1> = parties.iter().filter_map(|party| shares.get(party)).copied().collect();
    let weights = Weights::at_zero(&numbers).ok_or(OpenerError::Members)?;
    Ok(G1::combination(&points, &weights.to_scalars()))
}
