//! Proof of knowledge of a discrete logarithm (Schnorr), bound to the session, the prover and the purpose.

use engine::wire::{Malformed, Reader, Writer};
use engine::{AbortCause, PartyId, SessionContext, Tag};
use rand_core::CryptoRng;

use super::suite::{
    HedgedRng, PointOf, SCALAR_BYTES, ScalarOf, Suite, decode_point_of, decode_scalar, encode_point,
    encode_scalar_of, zero,
};

/// A nonce point and a response.
pub(super) struct Proof<S: Suite> {
    nonce_point: PointOf<S>,
    response: ScalarOf<S>,
}

/// Bytes of a proof.
pub(super) const fn proof_bytes<S: Suite>() -> usize {
    S::POINT_BYTES + SCALAR_BYTES
}

impl<S: Suite> Proof<S> {
    /// Proves knowledge of `secret`, the logarithm of `point`. `statement` is whatever else the proof is about.
    pub(super) fn new(
        ctx: &SessionContext,
        (tag, prover): (Tag, PartyId),
        statement: &[u8],
        (secret, point): (&ScalarOf<S>, &PointOf<S>),
        rng: &mut dyn CryptoRng,
    ) -> Self {
        let nonce = HedgedRng::new(ctx, tag, &encode_scalar_of::<S>(secret), rng).scalar::<S>();
        let nonce_point = S::mul_generator(&nonce.expose().to_scalar());
        let challenge = challenge::<S>(ctx, (tag, prover), statement, point, &nonce_point);
        Self { nonce_point, response: nonce.expose().to_scalar() + challenge * *secret }
    }

    pub(super) fn verifies(
        &self,
        ctx: &SessionContext,
        (tag, prover): (Tag, PartyId),
        statement: &[u8],
        point: &PointOf<S>,
    ) -> bool {
        let challenge = challenge::<S>(ctx, (tag, prover), statement, point, &self.nonce_point);
        S::combine_public(&self.response, &(zero::<S>() - challenge), point) == self.nonce_point
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        write_point::<S>(&self.nonce_point, writer);
        writer.bytes(&encode_scalar_of::<S>(&self.response));
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, AbortCause> {
        Ok(Self { nonce_point: read_point::<S>(reader)?, response: read_scalar::<S>(reader)? })
    }
}

fn challenge<S: Suite>(
    ctx: &SessionContext,
    (tag, prover): (Tag, PartyId),
    statement: &[u8],
    point: &PointOf<S>,
    nonce_point: &PointOf<S>,
) -> ScalarOf<S> {
    let mut transcript = ctx.transcript().fork(tag, prover);
    transcript.append("statement", statement);
    // No identity is ever proved about: its encoding would be refused.
    transcript.append("point", &encode_point::<S>(point).unwrap_or_default());
    transcript.append("nonce_point", &encode_point::<S>(nonce_point).unwrap_or_default());
    S::reduce_wide(&transcript.wide())
}

/// Zeros in place of the identity, which is not sent by who follows the rules and not accepted by anybody.
pub(super) fn write_point<S: Suite>(point: &PointOf<S>, writer: &mut Writer) {
    writer.bytes(&encode_point::<S>(point).unwrap_or_else(|| vec![0; S::POINT_BYTES]));
}

/// A point that is not the identity, or the cause to abort for.
pub(super) fn read_point<S: Suite>(reader: &mut Reader<'_>) -> Result<PointOf<S>, AbortCause> {
    let bytes = reader.bytes(S::POINT_BYTES).map_err(|Malformed| AbortCause::MalformedBody)?;
    decode_point_of::<S>(bytes).ok_or(AbortCause::InvalidPoint)
}

/// A scalar below the group order, or the cause to abort for.
pub(super) fn read_scalar<S: Suite>(reader: &mut Reader<'_>) -> Result<ScalarOf<S>, AbortCause> {
    let bytes = reader.bytes(SCALAR_BYTES).map_err(|Malformed| AbortCause::MalformedBody)?;
    decode_scalar::<S>(bytes).ok_or(AbortCause::InvalidScalar)
}
