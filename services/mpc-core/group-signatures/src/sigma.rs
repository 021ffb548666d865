//! Proofs of knowledge of logarithms, as challenge and response.

use engine::wire::{Malformed, Reader, Writer};
use engine::{Tag, Transcript};
use primitives::Secret;
use primitives::bls12_381::{G1, Scalar};
use primitives::hedge::HedgedRng;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::tags;

/// Schnorr's proof of knowledge of the logarithm of one point.
pub(crate) struct KnowledgeProof {
    pub(crate) challenge: Scalar,
    pub(crate) response: Scalar,
}

impl KnowledgeProof {
    /// `transcript` holds everything the proof is bound to.
    pub(crate) fn prove(
        transcript: Transcript,
        point: &G1,
        secret: &Secret<Scalar>,
        rng: &mut dyn CryptoRng,
    ) -> Self {
        let mut known = transcript.clone();
        known.append("point", &point.to_compressed());
        let nonce = drawn(tags::KNOWLEDGE_NONCE, secret, &known.digest(), rng);
        let challenge = Self::challenge(transcript, point, &G1::mul_generator(&nonce));
        let response = nonce.expose().add(&challenge.mul(secret.expose()));
        Self { challenge, response }
    }

    pub(crate) fn challenge(mut transcript: Transcript, point: &G1, commitment: &G1) -> Scalar {
        transcript.append("point", &point.to_compressed());
        transcript.append("commitment", &commitment.to_uncompressed());
        Scalar::from_wide(&transcript.wide())
    }

    pub(crate) fn verify(&self, transcript: Transcript, point: &G1) -> bool {
        let negative = Scalar::zero().sub(&self.challenge);
        let commitment = G1::combination(&[G1::generator(), *point], &[self.response.copy(), negative]);
        Self::challenge(transcript, point, &commitment).to_bytes() == self.challenge.to_bytes()
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.challenge.to_bytes());
        writer.bytes(&self.response.to_bytes());
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { challenge: read_scalar(reader)?, response: read_scalar(reader)? })
    }
}

/// A secret scalar from fresh randomness, a secret and everything it is for: a generator that repeats itself, as on a
/// machine started twice from one image, gives the same scalar for the same purpose only.
pub(crate) fn drawn(
    purpose: Tag,
    secret: &Secret<Scalar>,
    context: &[u8],
    rng: &mut dyn CryptoRng,
) -> Secret<Scalar> {
    let known = Zeroizing::new(secret.expose().to_bytes());
    Secret::new(Scalar::random(&mut hedged(purpose, &[known.as_slice(), context], rng)))
}

/// The same as a generator, for several values.
pub(crate) fn hedged(purpose: Tag, parts: &[&[u8]], rng: &mut dyn CryptoRng) -> HedgedRng {
    let parts: Vec<&[u8]> = core::iter::once(purpose.as_bytes()).chain(parts.iter().copied()).collect();
    HedgedRng::new("group-signatures", &parts, rng)
}

pub(crate) fn read_scalar(reader: &mut Reader<'_>) -> Result<Scalar, Malformed> {
    Scalar::from_bytes(reader.array()?).ok_or(Malformed)
}

pub(crate) fn read_point(reader: &mut Reader<'_>) -> Result<G1, Malformed> {
    G1::from_compressed(reader.array()?).ok_or(Malformed)
}
