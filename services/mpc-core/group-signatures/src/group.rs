//! A group's keys: the issuing key, and what everybody knows.

use core::fmt;

use engine::wire::{Malformed, Reader, Writer};
use engine::{Secret, Transcript};
use primitives::bls12_381::{G1, G2, Scalar, pairings_are_equal};
use rand_core::CryptoRng;

use crate::sigma::{KnowledgeProof, read_point};
use crate::tags;

/// Longest name of a group, in bytes.
pub const MAX_GROUP_BYTES: usize = 128;

/// Why a group's public data are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupError {
    /// The encoding is wrong, or an element is the identity or outside its subgroup.
    Malformed,
    /// The name is empty or too long, or the epoch is 0.
    Name,
    /// The issuing key's two points have different logarithms.
    DifferentKeys,
    /// The maker of the group does not prove that it knows the issuing key.
    Proof,
}

impl From<Malformed> for GroupError {
    fn from(_: Malformed) -> Self {
        GroupError::Malformed
    }
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GroupError::Malformed => "the group's public data are malformed",
            GroupError::Name => "the group's name is empty or too long, or its epoch is 0",
            GroupError::DifferentKeys => "the points of the issuing key do not belong together",
            GroupError::Proof => "the proof of the issuing key does not verify",
        })
    }
}

impl std::error::Error for GroupError {}

/// sk_m, in one hand. Whoever holds it can invent members.
pub struct IssuingKey(Secret<Scalar>);

impl IssuingKey {
    /// A fresh one.
    pub fn generate(rng: &mut dyn CryptoRng) -> Self {
        Self(Secret::new(Scalar::random(rng)))
    }

    /// The exponent.
    pub fn scalar(&self) -> &Secret<Scalar> {
        &self.0
    }

    /// [G1] the public data of a group under this key.
    pub fn group(
        &self,
        name: &str,
        epoch: u32,
        opener: G1,
        rng: &mut dyn CryptoRng,
    ) -> Result<GroupPublic, GroupError> {
        if name.is_empty() || name.len() > MAX_GROUP_BYTES || epoch == 0 {
            return Err(GroupError::Name);
        }
        let (in_g1, in_g2) = (G1::mul_generator(&self.0), G2::mul_generator(&self.0));
        if in_g1.is_identity() || opener.is_identity() {
            return Err(GroupError::Malformed);
        }
        let digest = digest(name, epoch, &in_g1, &in_g2, &opener);
        let proof = KnowledgeProof::prove(proof_transcript(&digest), &in_g1, &self.0, rng);
        Ok(GroupPublic {
            name: name.to_owned(),
            epoch,
            issuer: in_g1,
            issuer_in_g2: in_g2,
            opener,
            proof,
            digest,
        })
    }
}

/// The public data of one epoch of a group. Checked when decoded.
pub struct GroupPublic {
    name: String,
    epoch: u32,
    issuer: G1,
    issuer_in_g2: G2,
    opener: G1,
    proof: KnowledgeProof,
    digest: [u8; 32],
}

impl GroupPublic {
    /// The group's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The epoch, from 1: a new one has a new issuing key, and the members join again.
    pub fn epoch(&self) -> u32 {
        self.epoch
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
        &self.opener
    }

    /// Hash of everything but the proof.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Name, epoch, points, proof.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.sized(self.name.as_bytes());
        writer.u32(self.epoch);
        writer.bytes(&self.issuer.to_compressed());
        writer.bytes(&self.issuer_in_g2.to_compressed());
        writer.bytes(&self.opener.to_compressed());
        self.proof.encode(&mut writer);
        writer.finish()
    }

    /// [G2] decodes and checks: elements in their subgroups, one logarithm in both, and known to whoever made the
    /// group.
    pub fn decode(bytes: &[u8]) -> Result<Self, GroupError> {
        let mut reader = Reader::new(bytes);
        let name = reader.sized(MAX_GROUP_BYTES)?;
        let name = core::str::from_utf8(name).map_err(|_| GroupError::Name)?.to_owned();
        let epoch = reader.u32()?;
        if name.is_empty() || epoch == 0 {
            return Err(GroupError::Name);
        }
        let issuer = read_point(&mut reader)?;
        let issuer_in_g2 = G2::from_compressed(reader.array()?).ok_or(GroupError::Malformed)?;
        let opener = read_point(&mut reader)?;
        let proof = KnowledgeProof::decode(&mut reader)?;
        reader.finish()?;
        if !pairings_are_equal((&issuer, &G2::generator()), (&G1::generator(), &issuer_in_g2)) {
            return Err(GroupError::DifferentKeys);
        }
        let digest = digest(&name, epoch, &issuer, &issuer_in_g2, &opener);
        if !proof.verify(proof_transcript(&digest), &issuer) {
            return Err(GroupError::Proof);
        }
        Ok(Self { name, epoch, issuer, issuer_in_g2, opener, proof, digest })
    }
}

fn digest(name: &str, epoch: u32, issuer: &G1, issuer_in_g2: &G2, opener: &G1) -> [u8; 32] {
    let mut transcript = Transcript::new(tags::GROUP);
    transcript.append("name", name.as_bytes());
    transcript.append_u64("epoch", u64::from(epoch));
    transcript.append("issuer", &issuer.to_compressed());
    transcript.append("issuer in G2", &issuer_in_g2.to_compressed());
    transcript.append("opener", &opener.to_compressed());
    transcript.digest()
}

fn proof_transcript(digest: &[u8; 32]) -> Transcript {
    let mut transcript = Transcript::new(tags::ISSUING_KEY_PROOF);
    transcript.append("group", digest);
    transcript
}
