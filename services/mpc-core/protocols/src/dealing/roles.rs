//! Dealers and receivers: everybody in key generation and refresh; in a reshare, parties of the old shares and parties
//! of the new ones.

use engine::wire::{Malformed, Reader, Writer};
use engine::{MAX_PARTIES, PartyId, PartySet, SessionContext, SetupError, Threshold};

/// The dealers and the receivers of a session.
pub struct Roles {
    dealers: PartySet,
    receivers: PartySet,
}

impl Roles {
    /// Everybody does both.
    pub(crate) fn everybody(ctx: &SessionContext) -> Self {
        Self { dealers: ctx.parties().clone(), receivers: ctx.parties().clone() }
    }

    /// Both as a count and numbers: the beginning of the payload of a reshare.
    pub(crate) fn encode(dealers: &PartySet, receivers: &PartySet, writer: &mut Writer) {
        for set in [dealers, receivers] {
            writer.u8(u8::try_from(set.len()).unwrap_or(u8::MAX));
            for party in set.iter() {
                writer.u16(party.get());
            }
        }
    }

    /// Whether these are roles for the session, given the parties and the threshold of the old shares.
    pub(crate) fn check(
        ctx: &SessionContext,
        (dealers, receivers): (&PartySet, &PartySet),
        holders: &PartySet,
        threshold: Threshold,
    ) -> Result<(), SetupError> {
        let everybody: PartySet = dealers.iter().chain(receivers.iter()).collect();
        if &everybody != ctx.parties() || dealers.len() < threshold.get() {
            return Err(SetupError::RolesInvalid);
        }
        if !dealers.minus(holders).is_empty() {
            return Err(SetupError::SigningSetNotOfKey);
        }
        if !(2..=receivers.len()).contains(&ctx.threshold().get()) {
            return Err(SetupError::ThresholdRange);
        }
        Ok(())
    }

    /// Those that deal, and those that receive.
    pub(crate) fn into_sets(self) -> (PartySet, PartySet) {
        (self.dealers, self.receivers)
    }

    /// Reads the roles that the payload of a reshare names.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
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
    pub(crate) fn deals(&self, party: PartyId) -> bool {
        self.dealers.contains(party)
    }

    /// Whether `party` gets a share.
    pub(crate) fn receives(&self, party: PartyId) -> bool {
        self.receivers.contains(party)
    }

    /// Whether two parties will multiply with each other.
    pub(crate) fn paired(&self, one: PartyId, other: PartyId) -> bool {
        self.receives(one) && self.receives(other)
    }
}
