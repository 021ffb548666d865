//! The bodies of messages: encoded for one round, and checked when they are decoded.

use crate::context::SessionContext;
use crate::envelope::Envelope;
use crate::error::AbortCause;
use crate::party::PartyId;
use crate::wire::{Reader, Writer};

/// The body of one kind of message.
pub trait Body: Sized {
    /// The round it belongs to, from 1.
    const ROUND: u8;

    /// Writes the encoding.
    fn encode(&self, writer: &mut Writer);

    /// Reads and checks everything that can be checked without another message. The cause says what was wrong.
    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause>;
}

/// Between whom a body travels: its contents may depend on their roles.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The party that sent it.
    pub sender: PartyId,
    /// Whom it is for; `None` for all.
    pub recipient: Option<PartyId>,
}

/// A body that all parties get alike.
pub trait BroadcastBody: Body {}

/// A body that one party gets. Implementations hold what is secret in [`crate::Secret`].
pub trait PrivateBody: Body {}

/// Decodes the whole body of an envelope.
pub fn parse<B: Body>(ctx: &SessionContext, envelope: &Envelope) -> Result<B, AbortCause> {
    if envelope.round() != B::ROUND {
        return Err(AbortCause::MalformedBody);
    }
    let mut reader = Reader::new(envelope.body());
    let route = Route { sender: envelope.sender(), recipient: envelope.recipient() };
    let body = B::decode(&mut reader, ctx, route)?;
    reader.finish()?;
    Ok(body)
}
