//! Set-ups that pairs of parties make while shares are dealt: none, or those that they need to multiply.

use std::collections::BTreeMap;

use engine::wire::{Reader, Writer};
use engine::{AbortCause, PartyId, Route, SessionContext};
use rand_core::CryptoRng;

use super::roles::Roles;

/// The session, the roles in it and what all openings hash to.
pub struct Setting<'a> {
    /// The agreed terms.
    pub ctx: &'a SessionContext,
    /// This party.
    pub me: PartyId,
    /// The dealers and the receivers.
    pub roles: &'a Roles,
    /// Hash of all openings.
    pub openings: &'a [u8; 32],
}

/// An exchange between each two receivers. Its first message travels with the share, each further one in a round of its
/// own, before the confirmations.
pub trait Companion: Sized {
    /// One party's message to one peer.
    type Message;
    /// The data that a receiver keeps.
    type Output;

    /// Rounds of its own.
    const ROUNDS: u8;
    /// Longest message beside the share and in each own round, in bytes; zeros beyond.
    const MAX_MESSAGE: [usize; 3];

    /// Begins the exchange, with a message for each peer.
    fn begin(setting: &Setting<'_>, rng: &mut dyn CryptoRng) -> (Self, BTreeMap<PartyId, Self::Message>);

    /// Takes the messages of one step, 0 beside the shares, and makes those of the next one. The error names the peer
    /// whose message failed a check that convinces this party only.
    fn advance(
        &mut self,
        step: u8,
        setting: &Setting<'_>,
        received: BTreeMap<PartyId, Self::Message>,
        rng: &mut dyn CryptoRng,
    ) -> Result<BTreeMap<PartyId, Self::Message>, CheckFailed>;

    /// The set-up that was made.
    fn finish(self) -> Self::Output;

    /// Writes the encoding.
    fn encode(message: &Self::Message, writer: &mut Writer);

    /// Reads the message of a step and checks all that can be checked without another message.
    fn decode(
        step: u8,
        reader: &mut Reader<'_>,
        roles: &Roles,
        route: Route,
    ) -> Result<Self::Message, AbortCause>;
}

/// A check of the exchange with this peer failed. The set-up of the pair must never be used.
pub struct CheckFailed(pub PartyId);

/// Nothing is set up.
impl Companion for () {
    type Message = ();
    type Output = ();

    const ROUNDS: u8 = 0;
    const MAX_MESSAGE: [usize; 3] = [0; 3];

    fn begin(setting: &Setting<'_>, _: &mut dyn CryptoRng) -> (Self, BTreeMap<PartyId, ()>) {
        ((), setting.ctx.peers().iter().map(|peer| (peer, ())).collect())
    }

    fn advance(
        &mut self,
        _: u8,
        _: &Setting<'_>,
        received: BTreeMap<PartyId, ()>,
        _: &mut dyn CryptoRng,
    ) -> Result<BTreeMap<PartyId, ()>, CheckFailed> {
        Ok(received)
    }

    fn finish(self) {}

    fn encode((): &(), _: &mut Writer) {}

    fn decode(_: u8, _: &mut Reader<'_>, _: &Roles, _: Route) -> Result<(), AbortCause> {
        Ok(())
    }
}
