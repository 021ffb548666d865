//! Opening: t holders of the opener's key say together who made one approval, and nothing about any other.
//!
//! The opener's key is shared like any key of G1, or held by one auditor, who is then party 1 of 1. Steps are cited
//! as [O1].

use engine::wire::{Reader, Writer};
use engine::{PartyId, Secret, Transcript};
use primitives::bls12_381::{G1, G1_COMPRESSED_BYTES, SCALAR_BYTES, Scalar};
use primitives::shamir::Weights;
use rand_core::CryptoRng;

use crate::approval::Approval;
use crate::group::GroupPublic;
use crate::sigma::{drawn, read_point, read_scalar};
use crate::tags;

/// Bytes of an encoded share of an opening.
pub const OPENING_SHARE_BYTES: usize = G1_COMPRESSED_BYTES + 2 * SCALAR_BYTES;

/// One holder's part, c1^{o_j}, with the proof that o_j is the holder's share of the opener's key.
pub struct OpeningShare {
    point: G1,
    challenge: Scalar,
    response: Scalar,
}

impl OpeningShare {
    /// [O1] makes the share for one approval, which the caller has verified.
    pub fn new(
        group: &GroupPublic,
        approval: &Approval,
        share: &Secret<Scalar>,
        rng: &mut dyn CryptoRng,
    ) -> Self {
        let (ephemeral, _) = approval.ciphertext();
        let point = ephemeral.times_secret(share);
        let nonce = drawn(tags::OPENING_NONCE, share, &context(group, approval).digest(), rng);
        let commitments = [G1::mul_generator(&nonce), ephemeral.times_secret(&nonce)];
        let challenge = challenge(group, approval, &G1::mul_generator(share), &point, &commitments);
        let response = nonce.expose().add(&challenge.mul(share.expose()));
        Self { point, challenge, response }
    }

    /// [O2] whether it is the share of the holder with this verification share.
    pub fn verify(&self, group: &GroupPublic, approval: &Approval, verification_share: &G1) -> bool {
        let (ephemeral, _) = approval.ciphertext();
        let negative = Scalar::zero().sub(&self.challenge);
        let commitment = |base: &G1, power: &G1| {
            G1::combination(&[*base, *power], &[self.response.copy(), negative.copy()])
        };
        let commitments =
            [commitment(&G1::generator(), verification_share), commitment(ephemeral, &self.point)];
        let expected = challenge(group, approval, verification_share, &self.point, &commitments);
        expected.to_bytes() == self.challenge.to_bytes()
    }

    /// Point, challenge, response.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.bytes(&self.point.to_compressed());
        writer.bytes(&self.challenge.to_bytes());
        writer.bytes(&self.response.to_bytes());
        writer.finish()
    }

    /// `None` unless an encoding with a point of the subgroup other than the identity.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let point = read_point(&mut reader).ok()?;
        let share = Self {
            point,
            challenge: read_scalar(&mut reader).ok()?,
            response: read_scalar(&mut reader).ok()?,
        };
        reader.finish().ok()?;
        Some(share)
    }
}

/// [O3] Y_i of the member that made the approval, from the verified shares of as many holders as the key needs.
/// `None` if a holder is there twice, or none is.
pub fn open(approval: &Approval, shares: &[(PartyId, OpeningShare)]) -> Option<G1> {
    let numbers: Vec<u16> = shares.iter().map(|(party, _)| party.get()).collect();
    let points: Vec<G1> = shares.iter().map(|(_, share)| share.point).collect();
    let mask = G1::combination(&points, &Weights::at_zero(&numbers)?.to_scalars());
    let (_, encrypted) = approval.ciphertext();
    Some(encrypted.plus(&mask.negated()))
}

fn context(group: &GroupPublic, approval: &Approval) -> Transcript {
    let mut transcript = Transcript::new(tags::OPENING_PROOF);
    transcript.append("group", group.digest());
    transcript.append("approval", &approval.encode());
    transcript
}

fn challenge(
    group: &GroupPublic,
    approval: &Approval,
    verification_share: &G1,
    point: &G1,
    commitments: &[G1; 2],
) -> Scalar {
    let mut transcript = context(group, approval);
    transcript.append("verification share", &verification_share.to_compressed());
    transcript.append("point", &point.to_compressed());
    for commitment in commitments {
        transcript.append("commitment", &commitment.to_uncompressed());
    }
    Scalar::from_wide(&transcript.wide())
}
