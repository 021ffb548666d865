//! The terms that the parties of a refresh or a reshare agree on beforehand: the key as it was and, in a reshare, who
//! deals to whom.

use engine::wire::{Malformed, Reader, Writer};
use engine::{AbortCause, PartyId, PartySet, SessionContext, SetupError};

use super::roles::Roles;
use super::scheme::{PointOf, Public, ScalarOf, Scheme};
use crate::curve::{Curve, lagrange};

/// Which of the three a session is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Keygen,
    Refresh,
    Reshare,
}

impl Operation {
    pub(super) fn of<S: Scheme>(ctx: &SessionContext) -> Self {
        if ctx.protocol() == S::REFRESH {
            Self::Refresh
        } else if ctx.protocol() == S::RESHARE {
            Self::Reshare
        } else {
            Self::Keygen
        }
    }
}

/// The dealers and the receivers. The payload was checked when the session started.
pub(super) fn roles_of<S: Scheme>(ctx: &SessionContext) -> Result<Roles, AbortCause> {
    match Operation::of::<S>(ctx) {
        Operation::Keygen | Operation::Refresh => Ok(Roles::everybody(ctx)),
        Operation::Reshare => {
            Roles::decode(&mut Reader::new(ctx.payload())).map_err(|Malformed| AbortCause::Internal)
        }
    }
}

/// In a refresh or reshare, the key as it was: all parties agreed on it as the payload or a part of it.
pub(super) fn base_of<S: Scheme>(ctx: &SessionContext) -> Option<S::Public> {
    match Operation::of::<S>(ctx) {
        Operation::Keygen => None,
        Operation::Refresh => {
            let mut reader = Reader::new(ctx.payload());
            let public = S::Public::decode(&mut reader).ok()?;
            reader.finish().ok().map(|()| public)
        }
        Operation::Reshare => ReshareTerms::<S>::of(ctx).map(|terms| terms.base),
    }
}

/// The terms that the parties of a reshare agree on before its first message. Their encoding is the payload of the
/// session, whose threshold and epoch are the new ones.
pub struct ReshareTerms<S: Scheme> {
    /// Parties of the key that deal with their old shares: at least the old threshold.
    pub dealers: PartySet,
    /// Parties that get a share: at least the new threshold.
    pub receivers: PartySet,
    /// The key's public data as it was.
    pub base: S::Public,
}

impl<S: Scheme> ReshareTerms<S> {
    /// Dealers and receivers as a count and numbers, then the public data.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        Roles::encode(&self.dealers, &self.receivers, &mut writer);
        self.base.encode(&mut writer);
        writer.finish()
    }

    /// Reads what [`ReshareTerms::encode`] wrote, not checked against a session.
    pub(super) fn of(ctx: &SessionContext) -> Option<Self> {
        let mut reader = Reader::new(ctx.payload());
        let (dealers, receivers) = Roles::decode(&mut reader).ok()?.into_sets();
        let base = S::Public::decode(&mut reader).ok()?;
        reader.finish().ok().map(|()| Self { dealers, receivers, base })
    }

    /// Whether these are terms for the session: roles, thresholds, epoch, and old shares that are shares of the key.
    pub(super) fn check(&self, ctx: &SessionContext) -> Result<(), SetupError> {
        let Self { dealers, receivers, base } = self;
        Roles::check(ctx, (dealers, receivers), &base.parties(), base.threshold())?;
        if base.epoch().checked_add(1) != Some(ctx.epoch()) {
            return Err(SetupError::EpochRange);
        }
        let add = |sum, point| S::Curve::add_points(&sum, &point);
        let constants: Option<Vec<_>> = dealers.iter().map(|dealer| self.constant_point(dealer)).collect();
        let joint = constants.map(|points| points.into_iter().fold(S::Curve::identity(), add));
        let key = base.public_point();
        if base.key_id() != ctx.key_id() || key.is_none() || joint != key {
            return Err(SetupError::KeyPublicInvalid);
        }
        Ok(())
    }

    /// With which factor a dealer's old share enters the key.
    pub(super) fn weight(&self, dealer: PartyId) -> Option<ScalarOf<S>> {
        lagrange::<S::Curve>(&self.dealers, dealer)
    }

    /// The constant term of a dealer's polynomial, as a point: known to everybody beforehand.
    fn constant_point(&self, dealer: PartyId) -> Option<PointOf<S>> {
        Some(S::Curve::mul_point(&self.base.verification_point(dealer)?, &self.weight(dealer)?))
    }

    /// Whether this party may deal `points`: with its weighted share of the key as constant term, or none if it does
    /// not deal.
    pub(super) fn allow(&self, sender: PartyId, points: &[PointOf<S>]) -> bool {
        let expected = self.dealers.contains(sender).then(|| self.constant_point(sender)).flatten();
        points.first() == expected.as_ref()
    }
}
