//! The values that follow from all openings together.

use std::collections::BTreeMap;

use engine::{AbortCause, PartyId, SessionContext};

use crate::bip32::CHAIN_CODE_BYTES;
use crate::hash_input::{HashInput, hash_input};

use super::joint::{DIGEST_BYTES, Joint};
use super::messages::Opening;
use super::scheme::{PointOf, Public, Scheme};
use super::tags;
use super::terms::{Operation, base_of, roles_of};
use crate::curve::{Curve, evaluate_public};

/// The joint public data of a run, from the openings of all its parties.
pub(super) fn join<S: Scheme>(
    ctx: &SessionContext,
    openings: &BTreeMap<PartyId, Opening<S>>,
) -> Result<Joint<S::Curve>, AbortCause> {
    let mut points = vec![S::Curve::identity(); ctx.threshold().get()];
    for opening in openings.values() {
        for (sum, point) in points.iter_mut().zip(&opening.points) {
            *sum = S::Curve::add_points(sum, point);
        }
    }
    let opened = openings.iter().map(|(party, opening)| (*party, opening.digest(ctx, *party))).collect();
    let digest = Openings { opened: &opened }.digest(ctx);
    let mut public_key = points.first().copied().unwrap_or_else(S::Curve::identity);
    let roles = roles_of::<S>(ctx)?;
    let receivers = ctx.parties().iter().filter(|party| roles.receives(*party));
    let mut verification_shares: Vec<(PartyId, PointOf<S>)> =
        receivers.map(|party| (party, evaluate_public::<S::Curve>(&points, party))).collect();
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
            public_key = S::Curve::add_points(&public_key, &old_key);
            for (party, point) in &mut verification_shares {
                let old = base.verification_point(*party).ok_or(AbortCause::Internal)?;
                *point = S::Curve::add_points(point, &old);
            }
        }
        // [H3] whatever the openings were, the key is the same.
        if public_key != old_key {
            return Err(AbortCause::Internal);
        }
    }
    // The identity has no encoding.
    let encode = |point: &PointOf<S>| S::Curve::encode_point(point).ok_or(AbortCause::DegenerateKey);
    let verification_shares = verification_shares
        .into_iter()
        .map(|(party, point)| Ok((party, point, encode(&point)?)))
        .collect::<Result<_, AbortCause>>()?;
    Ok(Joint { public_key: encode(&public_key)?, verification_shares, chain_code, digest })
}

hash_input! {
    /// All openings, each as what its sender had committed to.
    Openings<'a> under tags::OPENINGS {
        opened: &'a Vec<(PartyId, [u8; DIGEST_BYTES])>,
    }
}

hash_input! {
    /// The chain code of a new key: a hash of all contributions.
    ChainCode<'a> under tags::CHAIN_CODE {
        openings: &'a [u8; DIGEST_BYTES],
    }
}
