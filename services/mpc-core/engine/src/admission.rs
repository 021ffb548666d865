//! Whether a received message belongs to a session, and where: decided from the session's context, how much it still
//! hears, and its round.

use zeroize::Zeroizing;

use crate::context::SessionContext;
use crate::envelope::{ENVELOPE_OVERHEAD_BYTES, Envelope};
use crate::error::Reject;
use crate::evidence::EvidenceKey;
use crate::limits::rule_of;
use crate::mailbox::Window;
use crate::party::PartyId;
use crate::private::{self, Cover};
use crate::rounds::{DISCLOSURE_ROUND, Delivery, NOTICE_ROUND, RoundRule};
use crate::wire::Malformed;

/// The terms on which a session admits messages now.
pub(crate) struct Admission<'a> {
    pub(crate) ctx: &'a SessionContext,
    /// Whether the protocol signs its envelopes.
    pub(crate) signed: bool,
    pub(crate) hearing: Hearing,
    /// The round that the session is in, or ended in.
    pub(crate) round: u8,
}

/// How much a session still hears.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hearing {
    /// Messages of its rounds, and what shows a deviation.
    Rounds,
    /// Messages that show a deviation.
    Deviations,
    Nothing,
}

/// Where an admitted message goes.
pub(crate) enum Place {
    Round(Window),
    Notice,
    Disclosure,
    /// Of this round or the next, after the run has ended here.
    Late,
}

/// Where a message says that it belongs.
struct Header<'a> {
    protocol: u16,
    session: &'a [u8; 32],
    round: u8,
    sender: PartyId,
    recipient: Option<PartyId>,
}

impl Admission<'_> {
    /// Decides whether a message belongs here at all. Until every check has passed nobody is blamed for it.
    pub(crate) fn admit(&self, from: PartyId, envelope: &Envelope) -> Result<Place, Reject> {
        let header = Header {
            protocol: envelope.protocol,
            session: &envelope.session,
            round: envelope.round(),
            sender: envelope.sender(),
            recipient: envelope.recipient(),
        };
        let (place, rule) = self.admit_header(from, &header)?;
        if envelope.signature.is_some() != self.signed {
            return Err(Reject::Delivery);
        }
        if envelope.body().len() > rule.max_body {
            return Err(Reject::Size);
        }
        if self.signed && !envelope.signature_verifies(self.ctx) {
            return Err(Reject::Signature);
        }
        Ok(place)
    }

    /// The envelope inside a sealed one; `None` for one that travels as it is. `key` is this party's, if envelopes are
    /// signed.
    pub(crate) fn open(
        &self,
        key: Option<&EvidenceKey>,
        from: PartyId,
        bytes: &[u8],
    ) -> Result<Option<Zeroizing<Vec<u8>>>, Reject> {
        let Some(key) = key else { return Ok(None) };
        if private::is_sealed(bytes) {
            self.admit_cover(from, bytes)?;
            return private::open(self.ctx, key, bytes).map(Some);
        }
        match Envelope::decode(bytes)?.delivery() {
            Delivery::Broadcast => Ok(None),
            Delivery::Private => Err(Reject::Unsealing),
        }
    }

    /// Decides from the outside of a sealed envelope whether it is worth opening.
    fn admit_cover(&self, from: PartyId, bytes: &[u8]) -> Result<(), Reject> {
        let cover = Cover::read(bytes).map_err(|Malformed| Reject::Malformed)?;
        let header = Header {
            protocol: cover.protocol,
            session: &cover.session,
            round: cover.round,
            sender: cover.sender,
            recipient: Some(cover.recipient),
        };
        let (_, rule) = self.admit_header(from, &header)?;
        if cover.inside > rule.max_body + ENVELOPE_OVERHEAD_BYTES {
            return Err(Reject::Size);
        }
        Ok(())
    }

    /// The part of [`Admission::admit`] that costs nothing: where the message says that it belongs.
    fn admit_header(&self, from: PartyId, header: &Header<'_>) -> Result<(Place, RoundRule), Reject> {
        if header.protocol != self.ctx.protocol().number {
            return Err(Reject::Protocol);
        }
        if header.session != self.ctx.digest() {
            return Err(Reject::Session);
        }
        let sender = header.sender;
        if sender != from || Some(sender) == self.ctx.me() || !self.ctx.parties().contains(sender) {
            return Err(Reject::Sender);
        }
        if header.recipient.is_some_and(|recipient| Some(recipient) != self.ctx.me()) {
            return Err(Reject::Recipient);
        }
        let place = self.place(header.round)?;
        let rule = rule_of(self.ctx, header.round).ok_or(Reject::RoundFuture)?;
        let delivery = if header.recipient.is_some() { Delivery::Private } else { Delivery::Broadcast };
        if delivery != rule.delivery {
            return Err(Reject::Delivery);
        }
        Ok((place, rule))
    }

    fn place(&self, round: u8) -> Result<Place, Reject> {
        match round {
            _ if self.hearing == Hearing::Nothing => Err(Reject::RoundPast),
            NOTICE_ROUND if self.signed => Ok(Place::Notice),
            DISCLOSURE_ROUND if self.signed => Ok(Place::Disclosure),
            _ if round < self.round => Err(Reject::RoundPast),
            _ if round > self.round + 1 => Err(Reject::RoundFuture),
            _ if self.hearing == Hearing::Deviations => Ok(Place::Late),
            _ if round == self.round => Ok(Place::Round(Window::Current)),
            _ => Ok(Place::Round(Window::Next)),
        }
    }
}
