//! Proof of knowledge of a discrete logarithm (Schnorr), bound to the session, the prover and the purpose.

use engine::wire::{Reader, Writer};
use engine::{AbortCause, SessionContext};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::hash_input::{HashInput, hash_input};
use crate::hedged::HedgedRng;

use super::tags;
use crate::curve::{Curve, SCALAR_BYTES, encoding};

/// A nonce point and a response. The point stays encoded: a verifier computes the only one that fits and compares the
/// encodings, so that there is nothing to decode, and no second encoding or point of another order to refuse.
pub(crate) struct Proof<C: Curve> {
    nonce_point: Vec<u8>,
    response: C::Scalar,
}

/// Bytes of a proof.
pub(crate) const fn proof_bytes<C: Curve>() -> usize {
    C::POINT_BYTES + SCALAR_BYTES
}

hash_input! {
    /// The challenge that the response answers.
    Challenge<'a> under tags::CHALLENGE {
        statement: &'a [u8; 32],
        point: &'a [u8],
        nonce_point: &'a [u8],
    }
}

impl<C: Curve> Proof<C> {
    /// Proves knowledge of `secret`, the logarithm of the point encoded as `point`. The statement says who proves what.
    pub(crate) fn new(
        ctx: &SessionContext,
        statement: &impl HashInput,
        (secret, point): (&C::Scalar, &[u8]),
        rng: &mut dyn CryptoRng,
    ) -> Self {
        let statement = statement.digest(ctx);
        let mut known = Zeroizing::new(Vec::with_capacity(SCALAR_BYTES + statement.len()));
        known.extend_from_slice(&C::encode_scalar(secret));
        known.extend_from_slice(&statement);
        let nonce = HedgedRng::new(ctx, tags::PROOF_NONCE, &known, rng).scalar::<C>();
        let nonce_point = encoding::<C>(&C::mul_generator(nonce.expose()));
        let challenge = Challenge { statement: &statement, point, nonce_point: &nonce_point };
        let challenge = C::reduce_wide(&challenge.wide(ctx));
        Self { nonce_point, response: C::add(nonce.expose(), &C::mul(&challenge, secret)) }
    }

    /// Whether the prover knows the logarithm of `point`, which comes with its encoding.
    pub(crate) fn verifies(
        &self,
        ctx: &SessionContext,
        statement: &impl HashInput,
        (point, encoded): (&C::Point, &[u8]),
    ) -> bool {
        let statement = statement.digest(ctx);
        let challenge = Challenge { statement: &statement, point: encoded, nonce_point: &self.nonce_point };
        let challenge = C::reduce_wide(&challenge.wide(ctx));
        let expected = C::combine_public(&self.response, &C::sub(&C::scalar(0), &challenge), point);
        C::encode_point(&expected).is_some_and(|expected| expected == self.nonce_point)
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.nonce_point);
        writer.bytes(&C::encode_scalar(&self.response));
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, AbortCause> {
        let nonce_point = reader.bytes(C::POINT_BYTES)?.to_vec();
        Ok(Self { nonce_point, response: read_scalar::<C>(reader)? })
    }
}

/// A scalar below the group order, or the cause to abort for.
pub(crate) fn read_scalar<C: Curve>(reader: &mut Reader<'_>) -> Result<C::Scalar, AbortCause> {
    C::decode_scalar(reader.bytes(SCALAR_BYTES)?).ok_or(AbortCause::InvalidScalar)
}
