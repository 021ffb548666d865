//! Who deals and who receives: everybody in key generation and refresh; in a reshare, parties of the old shares and parties of the
//! new ones.

use engine::wire::{Malformed, Reader, Writer};
use engine::{MAX_PARTIES, PartyId, PartySet, SessionContext, SetupError};
use primitives::secp256k1::{Point, Scalar};

use super::key::{KeyPublic, lagrange};

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
        for set in [&self.dealers, &self.receivers] {
            writer.u8(u8::try_from(set.len()).unwrap_or(u8::MAX));
            for party in set.iter() {
                writer.u16(party.get());
            }
        }
        self.base.encode(&mut writer);
        writer.finish()
    }

    /// What [`ReshareTerms::encode`] wrote, not checked against a session.
    pub(super) fn of(ctx: &SessionContext) -> Option<Self> {
        let mut reader = Reader::new(ctx.payload());
        let Roles { dealers, receivers } = Roles::decode(&mut reader).ok()?;
        let base = KeyPublic::decode(&mut reader).ok()?;
        reader.finish().ok().map(|()| Self { dealers, receivers, base })
    }

    /// Whether these are terms for the session: roles, thresholds, epoch, and old shares that are shares of the key.
    pub(super) fn check(&self, ctx: &SessionContext) -> Result<(), SetupError> {
        let Self { dealers, receivers, base } = self;
        let everybody: PartySet = dealers.iter().chain(receivers.iter()).collect();
        if &everybody != ctx.parties() || dealers.len() < base.threshold.get() {
            return Err(SetupError::RolesInvalid);
        }
        if !dealers.minus(&base.parties()).is_empty() {
            return Err(SetupError::SigningSetNotOfKey);
        }
        if !(2..=receivers.len()).contains(&ctx.threshold().get()) {
            return Err(SetupError::ThresholdRange);
        }
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

/// Who deals and who receives in a session.
pub(super) struct Roles {
    dealers: PartySet,
    receivers: PartySet,
}

impl Roles {
    /// Everybody does both.
    pub(super) fn everybody(ctx: &SessionContext) -> Self {
        Self { dealers: ctx.parties().clone(), receivers: ctx.parties().clone() }
    }

    /// What the payload of a reshare says.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut set = || {
            let count = usize::from(reader.u8()?);
            if count > MAX_PARTIES {
                return Err(Malformed);
            }
            let numbers = (0..count).map(|_| PartyId::new(reader.u16()?.into()).ok_or(Malformed));
            let list = numbers.collect::<Result<Vec<_>, Malformed>>()?;
            if list.is_sorted_by(|a, b| a < b) { Ok(list.into_iter().collect()) } else { Err(Malformed) }
        };
        Ok(Self { dealers: set()?, receivers: set()? })
    }

    /// Whether `party` has a polynomial.
    pub(super) fn deals(&self, party: PartyId) -> bool {
        self.dealers.contains(party)
    }

    /// Whether `party` gets a share.
    pub(super) fn receives(&self, party: PartyId) -> bool {
        self.receivers.contains(party)
    }

    /// Whether two parties will multiply with each other.
    pub(super) fn paired(&self, one: PartyId, other: PartyId) -> bool {
        self.receives(one) && self.receives(other)
    }
}
