//! Schnorr proofs over points that may not be in the subgroup, made so that many are checked at once.

use engine::wire::{Reader, Writer};
use engine::{AbortCause, Secret, SessionContext, hedged};
use primitives::bls12_381::{CurveG1, G1_UNCOMPRESSED_BYTES, SCALAR_BYTES, Scalar};
use primitives::schnorr::{Nonce, Statement};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::hash_input::HashInput;

pub(super) const PROOF_BYTES: usize = G1_UNCOMPRESSED_BYTES + SCALAR_BYTES;

/// A Schnorr proof as it travels.
pub(super) struct Proof {
    pub(super) commitment: CurveG1,
    pub(super) response: Scalar,
}

impl Proof {
    /// Proves knowledge of `secret` for what `statement` says of it. The nonce depends on the secret and on the
    /// statement, so that a generator that repeats gives no nonce twice for two challenges.
    pub(super) fn new<S: HashInput>(
        ctx: &SessionContext,
        secret: &Secret<Scalar>,
        statement: &S,
        rng: &mut dyn CryptoRng,
    ) -> Self {
        let secret_bytes = Zeroizing::new(secret.expose().to_bytes());
        let digest = statement.digest(ctx);
        let mut known = Zeroizing::new(Vec::with_capacity(SCALAR_BYTES + digest.len()));
        known.extend_from_slice(secret_bytes.as_slice());
        known.extend_from_slice(&digest);
        let nonce = Nonce::new(&hedged(ctx, S::TAG, &known, rng));
        let commitment = CurveG1::from(*nonce.commitment());
        let response = nonce.respond(&challenge(ctx, statement, &commitment), secret);
        Self { commitment, response }
    }

    /// The equation that holds if the prover knows the logarithm of `point` for what `statement` says of it.
    pub(super) fn equation(
        &self,
        ctx: &SessionContext,
        point: CurveG1,
        statement: &impl HashInput,
    ) -> Statement {
        let challenge = challenge(ctx, statement, &self.commitment);
        Statement { point, commitment: self.commitment, challenge, response: self.response.copy() }
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.commitment.to_uncompressed());
        writer.bytes(&self.response.to_bytes());
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, AbortCause> {
        Ok(Self { commitment: read_point(reader)?, response: read_scalar(reader)? })
    }
}

/// The transcript of the statement, continued with the nonce point.
fn challenge(ctx: &SessionContext, statement: &impl HashInput, commitment: &CurveG1) -> Scalar {
    let mut transcript = statement.transcript(ctx);
    transcript.append("proof commitment", &commitment.to_uncompressed());
    Scalar::from_wide(&transcript.wide())
}

/// A point of the curve that may be outside the subgroup, or the cause to abort for.
pub(super) fn read_point(reader: &mut Reader<'_>) -> Result<CurveG1, AbortCause> {
    CurveG1::from_uncompressed(reader.array()?).ok_or(AbortCause::InvalidPoint)
}

/// A scalar below the group order, or the cause to abort for.
pub(super) fn read_scalar(reader: &mut Reader<'_>) -> Result<Scalar, AbortCause> {
    Scalar::from_bytes(reader.array()?).ok_or(AbortCause::InvalidScalar)
}
