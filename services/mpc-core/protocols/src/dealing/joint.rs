//! What follows from all openings together.

use std::collections::BTreeMap;

use engine::{AbortCause, PartyId, Secret, SessionContext};
use rand_core::CryptoRng;

use crate::bip32::CHAIN_CODE_BYTES;
use crate::hash_input::{HashInput, hash_input};

use super::curve::{Curve, evaluate_public};
use super::messages::{Confirmation, DIGEST_BYTES, Opening};
use super::proof::Proof;
use super::scheme::{PointOf, Public, Scheme};
use super::tags;
use super::terms::{Operation, base_of, roles_of};

/// The new public data, before they have a name.
pub struct Joint<C: Curve> {
    /// The joint key, encoded.
    pub public_key: Vec<u8>,
    /// The points of the receivers' signing shares with their encodings, ascending by party.
    pub verification_shares: Vec<(PartyId, C::Point, Vec<u8>)>,
    /// The BIP-32 chain code; zeros if the scheme has none.
    pub chain_code: [u8; CHAIN_CODE_BYTES],
    /// Hash of all openings, contributions included.
    pub(super) digest: [u8; DIGEST_BYTES],
}

impl<C: Curve> Joint<C> {
    pub(super) fn of<S: Scheme<Curve = C>>(
        ctx: &SessionContext,
        openings: &BTreeMap<PartyId, Opening<S>>,
    ) -> Result<Self, AbortCause> {
        let mut points = vec![C::identity(); ctx.threshold().get()];
        for opening in openings.values() {
            for (sum, point) in points.iter_mut().zip(&opening.points) {
                *sum = C::add_points(sum, point);
            }
        }
        let opened = openings.iter().map(|(party, opening)| (*party, opening.digest(ctx, *party))).collect();
        let digest = Openings { opened: &opened }.digest(ctx);
        let mut public_key = points.first().copied().unwrap_or_else(C::identity);
        let roles = roles_of::<S>(ctx)?;
        let receivers = ctx.parties().iter().filter(|party| roles.receives(*party));
        let mut verification_shares: Vec<(PartyId, PointOf<S>)> =
            receivers.map(|party| (party, evaluate_public::<C>(&points, party))).collect();
        let mut chain_code = [0; CHAIN_CODE_BYTES];
        if S::CHAINED {
            chain_code = ChainCode { openings: &digest }.digest(ctx);
        }
        let operation = Operation::of::<S>(ctx);
        if operation != Operation::Keygen {
            let base = base_of::<S>(ctx).ok_or(AbortCause::Internal)?;
            let old_key = base.public_point().ok_or(AbortCause::Internal)?;
            chain_code = base.chain_code();
            if operation == Operation::Refresh {
                public_key = C::add_points(&public_key, &old_key);
                for (party, point) in &mut verification_shares {
                    let old = base.verification_point(*party).ok_or(AbortCause::Internal)?;
                    *point = C::add_points(point, &old);
                }
            }
            // [H3] whatever the openings were, the key is the same.
            if public_key != old_key {
                return Err(AbortCause::Internal);
            }
        }
        // The identity has no encoding.
        let encode = |point: &C::Point| C::encode_point(point).ok_or(AbortCause::DegenerateKey);
        let verification_shares = verification_shares
            .into_iter()
            .map(|(party, point)| Ok((party, point, encode(&point)?)))
            .collect::<Result<_, AbortCause>>()?;
        Ok(Self { public_key: encode(&public_key)?, verification_shares, chain_code, digest })
    }

    /// A party's verification share and its encoding.
    pub(super) fn verification_share(&self, party: PartyId) -> Option<(&C::Point, &[u8])> {
        let share = self.verification_shares.iter().find(|(holder, _, _)| *holder == party);
        share.map(|(_, point, encoded)| (point, encoded.as_slice()))
    }

    /// Proof of knowledge of a signing share, bound to all openings; none for a party that gets no share.
    pub(super) fn prove_share(
        &self,
        ctx: &SessionContext,
        party: PartyId,
        signing_share: &Secret<C::Scalar>,
        rng: &mut dyn CryptoRng,
    ) -> Option<Proof<C>> {
        let (_, encoded) = self.verification_share(party)?;
        let statement = SigningShare { prover: party, openings: &self.digest };
        Some(Proof::new(ctx, &statement, (signing_share.expose(), encoded), rng))
    }

    /// Whether a party proves its new share, if it has one.
    pub(super) fn proves_share<S: Scheme<Curve = C>>(
        &self,
        ctx: &SessionContext,
        party: PartyId,
        confirmation: &Confirmation<S>,
    ) -> bool {
        match (self.verification_share(party), &confirmation.proof) {
            (Some(share), Some(proof)) => {
                proof.verifies(ctx, &SigningShare { prover: party, openings: &self.digest }, share)
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

hash_input! {
    /// All openings, each as what its sender had committed to.
    Openings<'a> under tags::OPENINGS {
        opened: &'a Vec<(PartyId, [u8; DIGEST_BYTES])>,
    }
}

hash_input! {
    /// The prover knows the signing share that these openings give it.
    SigningShare<'a> under tags::SIGNING_SHARE {
        prover: PartyId,
        openings: &'a [u8; DIGEST_BYTES],
    }
}

hash_input! {
    /// The chain code of a new key: a hash of all contributions.
    ChainCode<'a> under tags::CHAIN_CODE {
        openings: &'a [u8; DIGEST_BYTES],
    }
}
