//! A group's keys: the issuing key, and what everybody knows.

use engine::wire::{Reader, Writer};
use engine::{PartyId, Secret, Transcript};
use primitives::bls12_381::{G1, G2, Scalar, pairings_are_equal};
use rand_core::CryptoRng;

use crate::error::GroupError;
use crate::group_id::{GroupId, MAX_GROUP_BYTES};
use crate::opener::{AttestedKey, MAX_OPENERS, OpenerKey, Openers};
use crate::sigma::{KnowledgeProof, hedged, read_point};
use crate::tags;

/// sk_m, in one hand. Its holder can invent members. It is made with the public data of one epoch of one group, and is
/// the key of no other: with the key of an earlier epoch everybody who was a member then would be one now, and have a
/// second tag.
pub struct IssuingKey {
    secret: Secret<Scalar>,
    group: [u8; 32],
}

impl IssuingKey {
    /// [G2] a fresh key, and the public data of the group and epoch that the openers have signed.
    pub fn create(opener: AttestedKey, rng: &mut dyn CryptoRng) -> Result<(Self, GroupPublic), GroupError> {
        // From a generator that repeats itself another epoch still gets another key.
        let mut own = hedged(tags::ISSUING_KEY, &[&opener.digest], rng);
        let secret = Secret::new(Scalar::random(&mut own));
        let (issuer, issuer_in_g2) = (G1::mul_generator(&secret), G2::mul_generator(&secret));
        if issuer.is_identity() {
            return Err(GroupError::Malformed);
        }
        let group = GroupPublic::new(opener, issuer, issuer_in_g2, &secret, rng);
        Ok((Self { secret, group: group.digest }, group))
    }

    /// For tests: a manager that makes a second group with its key.
    #[cfg(feature = "forge")]
    pub fn reused(&self, opener: AttestedKey, rng: &mut dyn CryptoRng) -> GroupPublic {
        let (issuer, issuer_in_g2) = (G1::mul_generator(&self.secret), G2::mul_generator(&self.secret));
        GroupPublic::new(opener, issuer, issuer_in_g2, &self.secret, rng)
    }

    /// The exponent.
    pub fn scalar(&self) -> &Secret<Scalar> {
        &self.secret
    }

    /// The digest of the group that it is the key of.
    pub fn group(&self) -> &[u8; 32] {
        &self.group
    }
}

/// The public data of a group whose issuing key is shared, before its holders have proven that they know it.
pub struct GroupDraft {
    opener: AttestedKey,
    issuer: G1,
    issuer_in_g2: G2,
    digest: [u8; 32],
}

impl GroupDraft {
    /// [D3] refused unless both points have one logarithm.
    pub fn new(opener: AttestedKey, issuer: G1, issuer_in_g2: G2) -> Result<Self, GroupError> {
        check_points(&issuer, &issuer_in_g2)?;
        let digest = digest(&opener.digest, &issuer, &issuer_in_g2);
        Ok(Self { opener, issuer, issuer_in_g2, digest })
    }

    /// The challenge of the proof for the joint commitment of the holders.
    pub fn challenge(&self, commitment: &G1) -> Scalar {
        KnowledgeProof::challenge(proof_transcript(&self.digest), &self.issuer, commitment)
    }

    /// The group, with the joint response: nonce + challenge * sk_m.
    pub fn prove(self, challenge: Scalar, response: Scalar) -> Result<GroupPublic, GroupError> {
        let Self { opener, issuer, issuer_in_g2, digest } = self;
        let proof = KnowledgeProof { challenge, response };
        if !proof.verify(proof_transcript(&digest), &issuer) {
            return Err(GroupError::Proof);
        }
        Ok(GroupPublic { opener, issuer, issuer_in_g2, proof, digest })
    }
}

/// The public data of one epoch of a group. Checked when decoded.
pub struct GroupPublic {
    opener: AttestedKey,
    issuer: G1,
    issuer_in_g2: G2,
    proof: KnowledgeProof,
    digest: [u8; 32],
}

impl GroupPublic {
    fn new(
        opener: AttestedKey,
        issuer: G1,
        issuer_in_g2: G2,
        secret: &Secret<Scalar>,
        rng: &mut dyn CryptoRng,
    ) -> Self {
        let digest = digest(&opener.digest, &issuer, &issuer_in_g2);
        let proof = KnowledgeProof::prove(proof_transcript(&digest), &issuer, secret, rng);
        Self { opener, issuer, issuer_in_g2, proof, digest }
    }

    /// Name and epoch.
    pub fn id(&self) -> &GroupId {
        &self.opener.group
    }

    /// The group's name.
    pub fn name(&self) -> &str {
        self.id().name()
    }

    /// The epoch.
    pub fn epoch(&self) -> u32 {
        self.id().epoch()
    }

    /// g1^{sk_m}.
    pub fn issuer(&self) -> &G1 {
        &self.issuer
    }

    /// pk_m = g2^{sk_m}.
    pub fn issuer_in_g2(&self) -> &G2 {
        &self.issuer_in_g2
    }

    /// O, the opener's key.
    pub fn opener(&self) -> &G1 {
        self.opener.key.key()
    }

    /// O with the openers' verification shares.
    pub fn opener_key(&self) -> &OpenerKey {
        &self.opener.key
    }

    /// The same with name, epoch and the openers' signatures.
    pub fn opener_attested(&self) -> &AttestedKey {
        &self.opener
    }

    /// Hash of everything but the proof and the openers' signatures.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Name, epoch, points of the issuing key, number, point and signature of each opener, proof.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.sized(self.name().as_bytes());
        writer.u32(self.epoch());
        writer.bytes(&self.issuer.to_compressed());
        writer.bytes(&self.issuer_in_g2.to_compressed());
        let openers: Vec<_> = self.opener.attestations.iter().collect();
        writer.u32(u32::try_from(openers.len()).unwrap_or(u32::MAX));
        for (party, signature) in openers {
            writer.u32(u32::from(party.get()));
            let share = self.opener.key.share(*party).map_or([0; 48], G1::to_compressed);
            writer.bytes(&share);
            writer.bytes(signature);
        }
        self.proof.encode(&mut writer);
        writer.finish()
    }

    /// [G3] decodes and checks: elements in their subgroups, the issuing key one logarithm in both groups and known to
    /// whoever made the group, the opener's key signed by all `openers`, who come from the caller's configuration.
    pub fn decode(bytes: &[u8], openers: &Openers) -> Result<Self, GroupError> {
        let mut reader = Reader::new(bytes);
        let name = reader.sized(MAX_GROUP_BYTES)?;
        let name = core::str::from_utf8(name).map_err(|_| GroupError::Name)?.to_owned();
        let id = GroupId::new(&name, reader.u32()?)?;
        let issuer = read_point(&mut reader)?;
        let issuer_in_g2 = G2::from_compressed(reader.array()?).ok_or(GroupError::Malformed)?;
        let count = usize::try_from(reader.u32()?).map_err(|_| GroupError::Malformed)?;
        if count > MAX_OPENERS {
            return Err(GroupError::Malformed);
        }
        let (mut shares, mut attestations) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for _ in 0..count {
            let party = PartyId::new(reader.u32()?).ok_or(GroupError::Malformed)?;
            // Ascending, so that the same data have one encoding.
            if shares.last().is_some_and(|(last, _)| *last >= party) {
                return Err(GroupError::Malformed);
            }
            shares.push((party, read_point(&mut reader)?));
            attestations.push((party, *reader.array()?));
        }
        let proof = KnowledgeProof::decode(&mut reader)?;
        reader.finish()?;
        check_points(&issuer, &issuer_in_g2)?;
        let opener = OpenerKey::new(openers, &shares)?.attested(id, &attestations)?;
        let digest = digest(&opener.digest, &issuer, &issuer_in_g2);
        if !proof.verify(proof_transcript(&digest), &issuer) {
            return Err(GroupError::Proof);
        }
        Ok(Self { opener, issuer, issuer_in_g2, proof, digest })
    }

    /// [G4] whether it may take the place of an earlier epoch: its issuing key must be another one, or members of the
    /// earlier epoch would be members of this one without having joined.
    pub fn check_after(&self, earlier: &GroupPublic) -> Result<(), GroupError> {
        if self.name() != earlier.name() || self.epoch() <= earlier.epoch() {
            return Err(GroupError::NotLater);
        }
        if self.issuer == earlier.issuer {
            return Err(GroupError::KeyOfEarlierEpoch);
        }
        Ok(())
    }
}

/// Whether the points of the issuing key have one logarithm.
fn check_points(issuer: &G1, issuer_in_g2: &G2) -> Result<(), GroupError> {
    if issuer.is_identity() {
        return Err(GroupError::Malformed);
    }
    if !pairings_are_equal((issuer, &G2::generator()), (&G1::generator(), issuer_in_g2)) {
        return Err(GroupError::DifferentKeys);
    }
    Ok(())
}

fn digest(opener: &[u8; 32], issuer: &G1, issuer_in_g2: &G2) -> [u8; 32] {
    let mut transcript = Transcript::new(tags::GROUP);
    transcript.append("opener", opener);
    transcript.append("issuer", &issuer.to_compressed());
    transcript.append("issuer in G2", &issuer_in_g2.to_compressed());
    transcript.digest()
}

fn proof_transcript(digest: &[u8; 32]) -> Transcript {
    let mut transcript = Transcript::new(tags::ISSUING_KEY_PROOF);
    transcript.append("group", digest);
    transcript
}
