//! The material that the pairwise rounds start from, checked against the session.

use std::collections::BTreeMap;

use engine::{PartyId, PartySet, Secret, SessionContext, SetupError};
use primitives::secp256k1::{Point, Scalar};

use crate::bip32::DerivationPath;
use crate::ecdsa::key::{KeyPublic, KeyShare, Pair, lagrange};

/// The material that a session of a party starts from, checked against its context.
pub(in crate::ecdsa) struct Material {
    pub(super) me: PartyId,
    pub(super) public: KeyPublic,
    pub(super) path: DerivationPath,
    /// The key that is signed for: the joint key, or its child at `path`.
    pub(super) child_key: Point,
    /// Additive share of that key's secret among the signers.
    pub(super) key: Secret<Scalar>,
    pub(super) pairs: BTreeMap<PartyId, Pair>,
}

impl Material {
    pub(in crate::ecdsa) fn new(
        ctx: &SessionContext,
        share: KeyShare,
        path: DerivationPath,
    ) -> Result<Self, SetupError> {
        let me = ctx.me().ok_or(SetupError::ObserverNotAllowed)?;
        let KeyShare { public, party, signing_share, pairs } = share;
        if party != me {
            return Err(SetupError::ShareMismatch);
        }
        check_key(ctx, &public)?;
        if ctx.peers().iter().any(|peer| !pairs.contains_key(&peer)) {
            return Err(SetupError::PeerExcluded);
        }
        let derived = public.derive(&path).ok_or(SetupError::PayloadInvalid)?;
        // The tweak is the same at every number, so adding it to each share adds it to the secret.
        let weight = lagrange(ctx.parties(), me).ok_or(SetupError::SigningSetNotOfKey)?;
        let key = Secret::new((signing_share.expose() + derived.tweak) * weight);
        Ok(Self { me, public, path, child_key: derived.public_key, key, pairs })
    }
}

/// Whether the key is the one, and its parties include the signers, that the context names.
pub(in crate::ecdsa) fn check_key(ctx: &SessionContext, public: &KeyPublic) -> Result<(), SetupError> {
    let of_this_key = public.key_id == ctx.key_id() && public.epoch == ctx.epoch();
    if !of_this_key || public.threshold != ctx.threshold() {
        return Err(if ctx.me().is_some() {
            SetupError::ShareMismatch
        } else {
            SetupError::KeyPublicInvalid
        });
    }
    if !ctx.parties().minus(&public.parties()).is_empty() {
        return Err(SetupError::SigningSetNotOfKey);
    }
    if ctx.parties().len() < ctx.threshold().get() {
        return Err(SetupError::SigningSetTooSmall);
    }
    Ok(())
}

/// The peers whose messages a session still needs. An observer needs none in the pairwise rounds.
pub(in crate::ecdsa) fn pairwise_ready(ctx: &SessionContext, waiting: &PartySet) -> bool {
    ctx.me().is_none() || ctx.peers().minus(waiting).is_empty()
}
