//! Hashes that bind the pairwise rounds to their session and to each other.

use std::collections::BTreeMap;

use engine::{PartyId, Secret, SessionContext};
use primitives::secp256k1::{Point, Scalar, encode_points, reduce_wide};
use zeroize::Zeroizing;

use crate::ecdsa::tags;

pub(super) const DIGEST_BYTES: usize = 32;

pub(super) fn commitment_of(
    ctx: &SessionContext,
    (party, place): (PartyId, u8),
    nonce_point: &Point,
    salt: &[u8; DIGEST_BYTES],
) -> [u8; DIGEST_BYTES] {
    let [point] = encode_points(&[*nonce_point]);
    let mut transcript = ctx.transcript().fork(tags::NONCE_COMMITMENT, party);
    transcript.append_u64("place", u64::from(place));
    transcript.append("nonce_point", &point);
    transcript.append("salt", salt);
    transcript.digest()
}

pub(super) fn digest_of(
    ctx: &SessionContext,
    place: u8,
    commitments: &BTreeMap<PartyId, [u8; DIGEST_BYTES]>,
) -> [u8; DIGEST_BYTES] {
    let mut transcript = ctx.transcript();
    transcript.append("purpose", tags::COMMITMENTS.as_bytes());
    transcript.append_u64("place", u64::from(place));
    for (party, commitment) in commitments {
        transcript.append_u64("party", u64::from(party.get()));
        transcript.append("commitment", commitment);
    }
    transcript.digest()
}

/// What one multiplication is bound to.
pub(super) fn multiplication(
    ctx: &SessionContext,
    place: u8,
    alice: PartyId,
    bob: PartyId,
) -> [u8; DIGEST_BYTES] {
    let mut transcript = ctx.transcript().fork(tags::MULTIPLICATION, alice);
    transcript.append_u64("place", u64::from(place));
    transcript.append_u64("bob", u64::from(bob.get()));
    transcript.digest()
}

/// What `me` adds for the pair with `peer`; the peer subtracts it.
pub(super) fn zero_share(
    ctx: &SessionContext,
    agreed: &[u8; DIGEST_BYTES],
    (me, peer): (PartyId, PartyId),
    seed: &Secret<[u8; 32]>,
) -> Secret<Scalar> {
    let mut transcript = ctx.transcript().fork(tags::ZERO_SHARE, me.min(peer));
    transcript.append_u64("higher", u64::from(me.max(peer).get()));
    transcript.append("commitments", agreed);
    transcript.append("seed", seed.expose());
    let share = reduce_wide(&Zeroizing::new(transcript.wide()));
    Secret::new(if me < peer { share } else { -share })
}
