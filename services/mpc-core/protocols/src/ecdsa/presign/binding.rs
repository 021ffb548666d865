//! Hashes that bind the pairwise rounds to their session and to each other.

use std::collections::BTreeMap;

use engine::{PartyId, Secret, SessionContext};
use primitives::secp256k1::{Point, Scalar, encode_points, reduce_wide};
use zeroize::Zeroizing;

use crate::ecdsa::tags;
use crate::hash_input::{HashInput, hash_input};

pub(super) const DIGEST_BYTES: usize = 32;

hash_input! {
    /// A nonce point, as its maker commits to it.
    CommittedTo<'a> by party under tags::NONCE_COMMITMENT {
        place: u8,
        nonce_point: &'a [u8],
        salt: &'a [u8; DIGEST_BYTES],
    }
}

hash_input! {
    /// All commitments of one place, ascending by party.
    Commitments<'a> under tags::COMMITMENTS as "purpose" {
        place: u8,
        commitments: &'a BTreeMap<PartyId, [u8; DIGEST_BYTES]> as "commitment",
    }
}

hash_input! {
    /// One multiplication of one pair.
    Multiplication by alice under tags::MULTIPLICATION {
        place: u8,
        bob: PartyId,
    }
}

hash_input! {
    /// The share of zero of one pair.
    ZeroShare<'a> by lower under tags::ZERO_SHARE {
        higher: PartyId,
        commitments: &'a [u8; DIGEST_BYTES],
        seed: &'a [u8; 32],
    }
}

pub(super) fn commitment_of(
    ctx: &SessionContext,
    (party, place): (PartyId, u8),
    nonce_point: &Point,
    salt: &[u8; DIGEST_BYTES],
) -> [u8; DIGEST_BYTES] {
    let [nonce_point] = encode_points(&[*nonce_point]);
    CommittedTo { party, place, nonce_point: &nonce_point, salt }.digest(ctx)
}

pub(super) fn digest_of(
    ctx: &SessionContext,
    place: u8,
    commitments: &BTreeMap<PartyId, [u8; DIGEST_BYTES]>,
) -> [u8; DIGEST_BYTES] {
    Commitments { place, commitments }.digest(ctx)
}

/// The digest that one multiplication is bound to.
pub(super) fn multiplication(
    ctx: &SessionContext,
    place: u8,
    alice: PartyId,
    bob: PartyId,
) -> [u8; DIGEST_BYTES] {
    Multiplication { alice, place, bob }.digest(ctx)
}

/// The share of zero that `me` adds for the pair with `peer`; the peer subtracts it.
pub(super) fn zero_share(
    ctx: &SessionContext,
    agreed: &[u8; DIGEST_BYTES],
    (me, peer): (PartyId, PartyId),
    seed: &Secret<[u8; 32]>,
) -> Secret<Scalar> {
    let (lower, higher) = (me.min(peer), me.max(peer));
    let share = ZeroShare { lower, higher, commitments: agreed, seed: seed.expose() };
    let share = reduce_wide(&Zeroizing::new(share.wide(ctx)));
    Secret::new(if me < peer { share } else { -share })
}
