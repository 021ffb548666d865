//! For tests: the means by which a party that breaks the rules would be consistent with itself.

use engine::wire::{Reader, Writer};
use engine::{Body, Outbox, PartyId, Route, SessionContext, SetupError};
use primitives::bls12_381::CurveG1;
use rand_core::CryptoRng;

use super::messages::{Commitment, Opening};
use super::rounds::{self, Committed, Keygen};

/// The body of the commitment that `opening`, an encoded body that need not be valid otherwise, belongs to.
pub fn commitment(ctx: &SessionContext, sender: PartyId, opening: &[u8]) -> Option<Vec<u8>> {
    let route = Route { sender, recipient: None };
    let opening = Opening::decode(&mut Reader::new(opening), ctx, route).ok()?;
    let mut writer = Writer::default();
    Commitment { digest: opening.digest(ctx, sender) }.encode(&mut writer);
    Some(writer.finish())
}

/// Starts with other points than those of the polynomial, and proofs and commitment that fit them.
pub fn start(
    ctx: &SessionContext,
    change: impl FnOnce(&mut Vec<CurveG1>),
    rng: &mut dyn CryptoRng,
) -> Result<(Keygen, Outbox), SetupError> {
    let (honest, _) = rounds::start(ctx, rng)?;
    let Keygen::Committed(Committed { me, polynomial, opening }) = honest else {
        return Err(SetupError::UnknownProtocol);
    };
    let mut points = opening.points;
    change(&mut points);
    Committed::commit(ctx, me, (polynomial, points), rng)
}
