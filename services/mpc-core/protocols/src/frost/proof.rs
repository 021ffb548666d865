//! Proof of knowledge of a discrete logarithm (Schnorr), bound to the session, the prover and the purpose.

use engine::wire::{Reader, Writer};
use engine::{AbortCause, PartyId, SessionContext, Tag};
use rand_core::CryptoRng;

use super::suite::{
    HedgedRng, PointOf, SCALAR_BYTES, ScalarOf, Suite, decode_scalar, encode_point, encode_scalar_of, zero,
};

/// A nonce point and a response. The point stays encoded: who verifies computes the only one that fits and compares the encodings, so
/// that there is nothing to decode, and no second encoding or point of another order to refuse.
pub(super) struct Proof<S: Suite> {
    nonce_point: Vec<u8>,
    response: ScalarOf<S>,
}

/// Bytes of a proof.
pub(super) const fn proof_bytes<S: Suite>() -> usize {
    S::POINT_BYTES + SCALAR_BYTES
}

impl<S: Suite> Proof<S> {
    /// Proves knowledge of `secret`, the logarithm of the point encoded as `point`. `statement` is whatever else the proof is about.
    pub(super) fn new(
        ctx: &SessionContext,
        (tag, prover): (Tag, PartyId),
        statement: &[u8],
        (secret, point): (&ScalarOf<S>, &[u8]),
        rng: &mut dyn CryptoRng,
    ) -> Self {
        let nonce = HedgedRng::new(ctx, tag, &encode_scalar_of::<S>(secret), rng).scalar::<S>();
        let nonce_point = encoding::<S>(&S::mul_generator(&nonce.expose().to_scalar()));
        let challenge = challenge::<S>(ctx, (tag, prover), statement, point, &nonce_point);
        Self { nonce_point, response: nonce.expose().to_scalar() + challenge * *secret }
    }

    /// `point` comes with its encoding.
    pub(super) fn verifies(
        &self,
        ctx: &SessionContext,
        (tag, prover): (Tag, PartyId),
        statement: &[u8],
        (point, encoded): (&PointOf<S>, &[u8]),
    ) -> bool {
        let challenge = challenge::<S>(ctx, (tag, prover), statement, encoded, &self.nonce_point);
        let expected = S::combine_public(&self.response, &(zero::<S>() - challenge), point);
        encode_point::<S>(&expected).is_some_and(|expected| expected == self.nonce_point)
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.nonce_point);
        writer.bytes(&encode_scalar_of::<S>(&self.response));
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, AbortCause> {
        let nonce_point = reader.bytes(S::POINT_BYTES)?.to_vec();
        Ok(Self { nonce_point, response: read_scalar::<S>(reader)? })
    }
}

fn challenge<S: Suite>(
    ctx: &SessionContext,
    (tag, prover): (Tag, PartyId),
    statement: &[u8],
    point: &[u8],
    nonce_point: &[u8],
) -> ScalarOf<S> {
    let mut transcript = ctx.transcript().fork(tag, prover);
    transcript.append("statement", statement);
    transcript.append("point", point);
    transcript.append("nonce_point", nonce_point);
    S::reduce_wide(&transcript.wide())
}

/// Zeros in place of the identity, which is not sent by who follows the rules and not accepted by anybody.
pub(super) fn encoding<S: Suite>(point: &PointOf<S>) -> Vec<u8> {
    encode_point::<S>(point).unwrap_or_else(|| vec![0; S::POINT_BYTES])
}

/// A scalar below the group order, or the cause to abort for.
pub(super) fn read_scalar<S: Suite>(reader: &mut Reader<'_>) -> Result<ScalarOf<S>, AbortCause> {
    decode_scalar::<S>(reader.bytes(SCALAR_BYTES)?).ok_or(AbortCause::InvalidScalar)
}
