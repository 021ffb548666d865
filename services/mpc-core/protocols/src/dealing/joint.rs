//! The new public data of a key, and the proofs of its shares.

use engine::{PartyId, Secret, SessionContext};
use rand_core::CryptoRng;

use crate::bip32::CHAIN_CODE_BYTES;
use crate::hash_input::hash_input;

use super::proof::Proof;
use super::tags;
use crate::curve::Curve;

/// Bytes of a hash, and of a contribution to the joint randomness.
pub(super) const DIGEST_BYTES: usize = 32;

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
    pub(super) fn proves_share(
        &self,
        ctx: &SessionContext,
        party: PartyId,
        proof: Option<&Proof<C>>,
    ) -> bool {
        match (self.verification_share(party), proof) {
            (Some(share), Some(proof)) => {
                proof.verifies(ctx, &SigningShare { prover: party, openings: &self.digest }, share)
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

hash_input! {
    /// The prover knows the signing share that these openings give it.
    SigningShare<'a> under tags::SIGNING_SHARE {
        prover: PartyId,
        openings: &'a [u8; DIGEST_BYTES],
    }
}
