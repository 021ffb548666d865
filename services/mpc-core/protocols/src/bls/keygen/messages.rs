//! The messages of key generation, round by round.

use std::collections::BTreeMap;

use engine::wire::{Reader, Writer};
use engine::{
    AbortCause, Body, BroadcastBody, MAX_PARTIES, PartyId, PrivateBody, Route, Secret, SessionContext,
    Transcript, hedged,
};
use primitives::bls12_381::{CurveG1, G1, G1_UNCOMPRESSED_BYTES, G2, Scalar};
use primitives::schnorr::Statement;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::hash_input::{Field, HashInput, hash_input};
use crate::tags;

use super::proof::{PROOF_BYTES, Proof, read_point, read_scalar};

/// Bytes of a commitment, and of a contribution to the joint randomness.
pub(super) const DIGEST_BYTES: usize = 32;
/// Twice as many points as any honest opening has, so that a vector that is too long is blamed and not only dropped.
pub(super) const MAX_OPENING_BYTES: usize =
    1 + 2 * MAX_PARTIES * G1_UNCOMPRESSED_BYTES + PROOF_BYTES + DIGEST_BYTES;

/// Round 1: commitment to the opening.
pub(super) struct Commitment {
    pub(super) digest: [u8; DIGEST_BYTES],
}

/// Round 2: the opening of the commitment.
pub(super) struct Opening {
    /// The sender's polynomial in the exponent, constant term first; `threshold` of them.
    pub(super) points: Vec<CurveG1>,
    /// Of the constant term.
    pub(super) proof: Proof,
    /// To the randomness that round 4 is bound to.
    pub(super) contribution: [u8; DIGEST_BYTES],
}

/// Round 3: the sender's polynomial at the recipient's number.
pub(super) struct Share {
    pub(super) value: Secret<Scalar>,
}

/// Round 4: the sender holds the share that the commitments say it does.
pub(super) struct Confirmation {
    /// Of the signing share.
    pub(super) proof: Proof,
    /// Signature of the joint public key under the sender's signing share.
    pub(super) partial_possession: G2,
}

impl Body for Commitment {
    const ROUND: u8 = 1;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.digest);
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        Ok(Self { digest: *reader.array()? })
    }
}

impl BroadcastBody for Commitment {}

impl Body for Opening {
    const ROUND: u8 = 2;

    fn encode(&self, writer: &mut Writer) {
        writer.u8(u8::try_from(self.points.len()).unwrap_or(u8::MAX));
        for point in &self.points {
            writer.bytes(&point.to_uncompressed());
        }
        self.proof.encode(writer);
        writer.bytes(&self.contribution);
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        if usize::from(reader.u8()?) != ctx.threshold().get() {
            return Err(AbortCause::WrongDegree);
        }
        let points = (0..ctx.threshold().get()).map(|_| read_point(reader)).collect::<Result<_, _>>()?;
        Ok(Self { points, proof: Proof::decode(reader)?, contribution: *reader.array()? })
    }
}

impl BroadcastBody for Opening {}

hash_input! {
    /// The prover knows the constant term of the polynomial with these points.
    ConstantTerm<'a> by prover under tags::BLS_CONSTANT_TERM_PROOF {
        points: &'a [CurveG1],
    }
}

hash_input! {
    /// An opening, as its sender commits to it.
    CommittedTo<'a> by sender under tags::BLS_COMMITMENT {
        points: &'a [CurveG1],
        proof_commitment: &'a [u8] as "proof commitment",
        proof_response: &'a [u8] as "proof response",
        contribution: &'a [u8; DIGEST_BYTES],
    }
}

impl Field for &[CurveG1] {
    fn absorb(&self, name: &'static str, transcript: &mut Transcript) {
        transcript.append_list(name, self.iter().map(CurveG1::to_uncompressed));
    }
}

/// Each party with its points and its contribution, which have names of their own.
impl Field for &BTreeMap<PartyId, Opening> {
    fn absorb(&self, party: &'static str, transcript: &mut Transcript) {
        for (sender, opening) in *self {
            sender.absorb(party, transcript);
            opening.points.as_slice().absorb("points", transcript);
            (&opening.contribution).absorb("contribution", transcript);
        }
    }
}

impl Opening {
    /// Opens to the polynomial with these points.
    pub(super) fn new(
        ctx: &SessionContext,
        sender: PartyId,
        (constant_term, points): (&Secret<Scalar>, Vec<CurveG1>),
        rng: &mut dyn CryptoRng,
    ) -> Self {
        // [K1.2] proof of knowledge of the constant term, bound to everything agreed and to all points.
        let proof = Proof::new(ctx, constant_term, &ConstantTerm { prover: sender, points: &points }, rng);
        // [K1.3] 32 bytes of randomness, which also hide the commitment.
        let wide = hedged(ctx, tags::BLS_CONTRIBUTION, &[], rng);
        let mut contribution = [0u8; DIGEST_BYTES];
        for (out, byte) in contribution.iter_mut().zip(wide.expose()) {
            *out = *byte;
        }
        Self { points, proof, contribution }
    }

    /// The commitment to it.
    pub(super) fn digest(&self, ctx: &SessionContext, sender: PartyId) -> [u8; DIGEST_BYTES] {
        let committed_to = CommittedTo {
            sender,
            points: &self.points,
            proof_commitment: &self.proof.commitment.to_uncompressed(),
            proof_response: &self.proof.response.to_bytes(),
            contribution: &self.contribution,
        };
        committed_to.digest(ctx)
    }

    /// The equation that holds if the sender knows its constant term.
    pub(super) fn constant_term(&self, ctx: &SessionContext, sender: PartyId) -> Statement {
        // Decoding has made sure of `threshold` >= 1 points; without one the generator stands for a statement that is
        // false.
        let point = self.points.first().copied().unwrap_or_else(|| G1::generator().into());
        self.proof.equation(ctx, point, &ConstantTerm { prover: sender, points: &self.points })
    }
}

impl Body for Share {
    const ROUND: u8 = 3;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(Zeroizing::new(self.value.expose().to_bytes()).as_slice());
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        let value = Secret::new(read_scalar(reader)?);
        if value.expose().is_zero() { Err(AbortCause::InvalidScalar) } else { Ok(Self { value }) }
    }
}

impl PrivateBody for Share {}

impl Body for Confirmation {
    const ROUND: u8 = 4;

    fn encode(&self, writer: &mut Writer) {
        self.proof.encode(writer);
        writer.bytes(&self.partial_possession.to_uncompressed());
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        let proof = Proof::decode(reader)?;
        let partial_possession = G2::from_uncompressed(reader.array()?).ok_or(AbortCause::InvalidPoint)?;
        Ok(Self { proof, partial_possession })
    }
}

impl BroadcastBody for Confirmation {}
