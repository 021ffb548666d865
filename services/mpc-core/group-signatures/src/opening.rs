//! Opening: t holders of the opener's key say together who made one approval, and nothing about any other.
//!
//! The opener's key is shared like any key of G1, or held by one auditor, who is then party 1 of 1. The group's public
//! data have each opener's point, so nothing is opened by a share that is not proven. Steps are cited as [O1].

use core::fmt;
use std::collections::BTreeMap;

use engine::wire::{Reader, Writer};
use engine::{PartyId, Secret, Transcript};
use primitives::bls12_381::{G1, G1_COMPRESSED_BYTES, SCALAR_BYTES, Scalar};
use primitives::shamir::Weights;
use rand_core::CryptoRng;

use crate::approval::{Approval, ApprovalError, Request};
use crate::group::GroupPublic;
use crate::sigma::{drawn, read_point, read_scalar};
use crate::tags;

/// Bytes of an encoded share of an opening.
pub const OPENING_SHARE_BYTES: usize = G1_COMPRESSED_BYTES + 2 * SCALAR_BYTES;

/// Why an approval is not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpeningError {
    /// The approval does not hold for the request: openers decrypt nothing else.
    Approval(ApprovalError),
    /// This party is no opener of the group, or its share of the key has another point.
    NotAnOpener(PartyId),
    /// This opener's share of the opening is wrong.
    WrongShare(PartyId),
    /// This opener has more than one share.
    Twice(PartyId),
    /// There are only so many shares.
    TooFew(usize),
}

impl fmt::Display for OpeningError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpeningError::Approval(error) => error.fmt(f),
            OpeningError::NotAnOpener(party) => write!(f, "party {party} is no opener of the group"),
            OpeningError::WrongShare(party) => write!(f, "the share of opener {party} is wrong"),
            OpeningError::Twice(party) => write!(f, "opener {party} has more than one share"),
            OpeningError::TooFew(count) => write!(f, "only {count} shares of the opening"),
        }
    }
}

impl std::error::Error for OpeningError {}

/// One opener's contribution, c1^{o_j}, with the proof that o_j is its share of the opener's key.
#[derive(Debug)]
pub struct OpeningShare {
    point: G1,
    challenge: Scalar,
    response: Scalar,
}

impl OpeningShare {
    /// [O1] makes the share for one approval, which must hold for the request: an opener that raised any other element
    /// to its share would open approvals that nobody has decided to open.
    pub fn new(
        group: &GroupPublic,
        request: &Request,
        approval: &Approval,
        me: PartyId,
        share: &Secret<Scalar>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Self, OpeningError> {
        approval.verify(group, request).map_err(OpeningError::Approval)?;
        let own = G1::mul_generator(share);
        if group.opener_key().share(me) != Some(&own) {
            return Err(OpeningError::NotAnOpener(me));
        }
        let (ephemeral, _) = approval.ciphertext();
        let point = ephemeral.times_secret(share);
        let nonce = drawn(tags::OPENING_NONCE, share, &context(group, approval).digest(), rng);
        let commitments = [G1::mul_generator(&nonce), ephemeral.times_secret(&nonce)];
        let challenge = challenge(group, approval, &own, &point, &commitments);
        let response = nonce.expose().add(&challenge.mul(share.expose()));
        Ok(Self { point, challenge, response })
    }

    /// [O2] whether it is the share of this opener.
    pub fn verify(&self, group: &GroupPublic, approval: &Approval, opener: PartyId) -> bool {
        let Some(verification_share) = group.opener_key().share(opener) else { return false };
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

/// [O3] Y_i of the member that made the approval, from the shares of as many openers as the key needs, each of which is
/// verified. A wrong share is named; the others may open without it.
pub fn open(
    group: &GroupPublic,
    request: &Request,
    approval: &Approval,
    shares: &[(PartyId, OpeningShare)],
) -> Result<G1, OpeningError> {
    approval.verify(group, request).map_err(OpeningError::Approval)?;
    let mut good: BTreeMap<PartyId, &OpeningShare> = BTreeMap::new();
    for (party, share) in shares {
        if group.opener_key().share(*party).is_none() {
            return Err(OpeningError::NotAnOpener(*party));
        }
        if !share.verify(group, approval, *party) {
            return Err(OpeningError::WrongShare(*party));
        }
        if good.insert(*party, share).is_some() {
            return Err(OpeningError::Twice(*party));
        }
    }
    let too_few = OpeningError::TooFew(good.len());
    if good.len() < group.opener_key().openers().threshold() {
        return Err(too_few);
    }
    let numbers: Vec<u16> = good.keys().map(|party| party.get()).collect();
    let points: Vec<G1> = good.values().map(|share| share.point).collect();
    let weights = Weights::at_zero(&numbers).ok_or(too_few)?;
    let mask = G1::combination(&points, &weights.to_scalars());
    let (_, encrypted) = approval.ciphertext();
    Ok(encrypted.plus(&mask.negated()))
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
