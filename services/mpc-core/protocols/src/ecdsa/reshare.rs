//! What the parties of a reshare agree on.

use engine::wire::{Reader, Writer};
use engine::{PartyId, PartySet, SessionContext, SetupError};
use primitives::secp256k1::{Point, Scalar};

use super::key::{KeyPublic, lagrange};
use crate::roles::Roles;

/// What the parties of a reshare agree on before its first message. Its encoding is the payload of the session, whose threshold and
/// epoch are the new ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReshareTerms {
    /// Parties of the key that deal with their old shares: at least the old threshold.
    pub dealers: PartySet,
    /// Parties that get a share: at least the new threshold.
    pub receivers: PartySet,
    /// The key's public data as it was.
    pub base: KeyPublic,
}

impl ReshareTerms {
    /// Dealers and receivers as a count and numbers, then the public data.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        Roles::encode(&self.dealers, &self.receivers, &mut writer);
        self.base.encode(&mut writer);
        writer.finish()
    }

    /// What [`ReshareTerms::encode`] wrote, not checked against a session.
    pub(super) fn of(ctx: &SessionContext) -> Option<Self> {
        let mut reader = Reader::new(ctx.payload());
        let (dealers, receivers) = Roles::decode(&mut reader).ok()?.into_sets();
        let base = KeyPublic::decode(&mut reader).ok()?;
        reader.finish().ok().map(|()| Self { dealers, receivers, base })
    }

    /// Whether these are terms for the session: roles, thresholds, epoch, and old shares that are shares of the key.
    pub(super) fn check(&self, ctx: &SessionContext) -> Result<(), SetupError> {
        let Self { dealers, receivers, base } = self;
        Roles::check(ctx, (dealers, receivers), &base.parties(), base.threshold)?;
        if base.epoch.checked_add(1) != Some(ctx.epoch()) {
            return Err(SetupError::EpochRange);
        }
        let constants = dealers.iter().map(|dealer| self.constant_point(dealer));
        let joint: Option<Point> = constants.sum();
        if base.key_id != ctx.key_id() || joint != Some(base.public_key) {
            return Err(SetupError::KeyPublicInvalid);
        }
        Ok(())
    }

    /// With which factor a dealer's old share enters the key.
    pub(super) fn weight(&self, dealer: PartyId) -> Option<Scalar> {
        lagrange(&self.dealers, dealer)
    }

    /// The constant term of a dealer's polynomial, as a point: known to everybody beforehand.
    pub(super) fn constant_point(&self, dealer: PartyId) -> Option<Point> {
        let (_, point) = self.base.verification_shares.iter().find(|(party, _)| *party == dealer)?;
        Some(*point * self.weight(dealer)?)
    }
}
