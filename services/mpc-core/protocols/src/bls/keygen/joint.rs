//! The values that follow from all openings together.

use std::collections::BTreeMap;

use engine::{AbortCause, PartyId, Secret, SessionContext};
use primitives::bls12_381::{CurveG1, G1, HashedMessage, Scalar};
use primitives::schnorr::Statement;
use rand_core::CryptoRng;

use crate::bls::key::POSSESSION_DOMAIN;
use crate::hash_input::{HashInput, hash_input};
use crate::tags;

use super::messages::{DIGEST_BYTES, Opening};
use super::proof::Proof;

/// The values that follow from all openings together.
pub(super) struct Joint {
    /// The joint polynomial in the exponent; the first one is the public key.
    pub(super) points: Vec<G1>,
    /// Hash of all openings, contributions included.
    digest: [u8; DIGEST_BYTES],
}

impl Joint {
    /// Sums the points term by term. Each sum is checked to be in the subgroup, exactly and without randomness; sums
    /// are all that the key is made of. Only if one fails is every sender's point looked at.
    pub(super) fn of(
        ctx: &SessionContext,
        openings: &BTreeMap<PartyId, Opening>,
    ) -> Result<Self, AbortCause> {
        let mut points = Vec::with_capacity(ctx.threshold().get());
        for term in 0..ctx.threshold().get() {
            let sum = CurveG1::sum(openings.values().filter_map(|opening| opening.points.get(term)))
                .ok_or(AbortCause::DegenerateKey)?;
            points.push(sum.check().ok_or(AbortCause::InvalidPoint)?);
        }
        Ok(Self { points, digest: Openings { openings }.digest(ctx) })
    }

    /// The point of a party's signing share.
    pub(super) fn verification_point(&self, party: PartyId) -> G1 {
        G1::evaluate(&self.points, party.get())
    }

    /// [K4.2] proof of knowledge of a signing share, bound to all openings.
    pub(super) fn prove_share(
        &self,
        ctx: &SessionContext,
        party: PartyId,
        (signing_share, point): (&Secret<Scalar>, &G1),
        rng: &mut dyn CryptoRng,
    ) -> Proof {
        let verification_share = point.to_uncompressed();
        Proof::new(ctx, signing_share, &self.signing_share(party, &verification_share), rng)
    }

    /// The equation that holds if a party knows the signing share with this point.
    pub(super) fn share_equation(
        &self,
        ctx: &SessionContext,
        party: PartyId,
        point: &G1,
        proof: &Proof,
    ) -> Statement {
        let verification_share = point.to_uncompressed();
        proof.equation(ctx, (*point).into(), &self.signing_share(party, &verification_share))
    }

    fn signing_share<'a>(&'a self, prover: PartyId, verification_share: &'a [u8]) -> SigningShare<'a> {
        SigningShare { prover, openings: &self.digest, verification_share }
    }

    /// The message that a proof of possession of the key signs.
    pub(super) fn possession_message(&self) -> Option<HashedMessage> {
        let public_key = self.points.first()?;
        Some(HashedMessage::new(&public_key.to_compressed(), POSSESSION_DOMAIN))
    }
}

hash_input! {
    /// All openings, ascending by party.
    Openings<'a> under tags::BLS_OPENINGS as "openings" {
        openings: &'a BTreeMap<PartyId, Opening> as "party",
    }
}

hash_input! {
    /// The prover knows the signing share that these openings give it.
    SigningShare<'a> by prover under tags::BLS_SIGNING_SHARE_PROOF {
        openings: &'a [u8; DIGEST_BYTES],
        verification_share: &'a [u8] as "verification share",
    }
}
