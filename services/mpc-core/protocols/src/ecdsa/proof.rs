//! Proof of knowledge of a discrete logarithm (Schnorr), bound to the session, the prover and the purpose.

use engine::wire::{Malformed, Reader, Writer};
use engine::{AbortCause, PartyId, SessionContext, Tag};
use primitives::secp256k1::{
    POINT_BYTES, Point, SCALAR_BYTES, Scalar, combine_public, decode_point, decode_scalar, encode_point,
    encode_scalar, mul_generator, random_scalar, reduce_wide,
};
use rand_core::CryptoRng;
use zeroize::Zeroize;

/// Bytes of a proof.
pub(super) const PROOF_BYTES: usize = POINT_BYTES + SCALAR_BYTES;

/// A nonce point and a response.
#[derive(Clone)]
pub(super) struct Proof {
    nonce_point: Point,
    response: Scalar,
}

impl Proof {
    /// Proves knowledge of `secret`, the logarithm of `point`. `statement` is whatever else the proof is about.
    pub(super) fn new(
        ctx: &SessionContext,
        (tag, prover): (Tag, PartyId),
        statement: &[u8],
        secret: &Scalar,
        rng: &mut dyn CryptoRng,
    ) -> Self {
        let mut nonce = random_scalar(rng);
        let nonce_point = mul_generator(&nonce);
        let point = mul_generator(secret);
        let challenge = challenge(ctx, (tag, prover), statement, &point, &nonce_point);
        let response = nonce + challenge * secret;
        nonce.zeroize();
        Self { nonce_point, response }
    }

    pub(super) fn verifies(
        &self,
        ctx: &SessionContext,
        (tag, prover): (Tag, PartyId),
        statement: &[u8],
        point: &Point,
    ) -> bool {
        let challenge = challenge(ctx, (tag, prover), statement, point, &self.nonce_point);
        combine_public(&self.response, &-challenge, point) == self.nonce_point
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.bytes(&encode_point(&self.nonce_point));
        writer.bytes(&encode_scalar(&self.response));
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, AbortCause> {
        Ok(Self { nonce_point: read_point(reader)?, response: read_scalar(reader)? })
    }
}

fn challenge(
    ctx: &SessionContext,
    (tag, prover): (Tag, PartyId),
    statement: &[u8],
    point: &Point,
    nonce_point: &Point,
) -> Scalar {
    let mut transcript = ctx.transcript().fork(tag, prover);
    transcript.append("statement", statement);
    transcript.append("point", &encode_point(point));
    transcript.append("nonce_point", &encode_point(nonce_point));
    reduce_wide(&transcript.wide())
}

/// A point that is not the identity, or the cause to abort for.
pub(super) fn read_point(reader: &mut Reader<'_>) -> Result<Point, AbortCause> {
    let bytes = reader.array().map_err(|Malformed| AbortCause::MalformedBody)?;
    decode_point(bytes).ok_or(AbortCause::InvalidPoint)
}

/// A scalar below the group order, or the cause to abort for.
pub(super) fn read_scalar(reader: &mut Reader<'_>) -> Result<Scalar, AbortCause> {
    let bytes = reader.array().map_err(|Malformed| AbortCause::MalformedBody)?;
    decode_scalar(bytes).ok_or(AbortCause::InvalidScalar)
}
