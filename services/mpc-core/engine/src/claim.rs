//! An envelope without its body: its sender's signed words about itself and about the broadcasts that it had seen.
//!
//! Two of them show that two parties saw different broadcasts, also where the envelopes are private and their bodies
//! must not be shown: a share of a party that follows the rules stays between it and its recipient.

use crate::context::SessionContext;
use crate::envelope::{CLAIM_BYTES, Envelope, Head};
use crate::evidence::SIGNATURE_BYTES;
use crate::limits::rule_of;
use crate::party::PartyId;
use crate::rounds::{DISCLOSURE_ROUND, NOTICE_ROUND};
use crate::wire::{Malformed, Reader, Writer};

/// See the module.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    head: Head,
    body_digest: [u8; 32],
    signature: [u8; SIGNATURE_BYTES],
}

impl Claim {
    /// The claim that a signed envelope makes; none without a signature.
    pub(crate) fn of(envelope: &Envelope) -> Option<Self> {
        Some(Self {
            head: envelope.head(),
            body_digest: envelope.body_digest(),
            signature: envelope.signature?,
        })
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        self.head.write(writer);
        writer.bytes(&self.body_digest);
        writer.bytes(&self.signature);
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(CLAIM_BYTES);
        self.encode(&mut writer);
        writer.finish()
    }

    /// One that is all of `bytes`.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let claim = Self::decode(&mut reader)?;
        reader.finish()?;
        Ok(claim)
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let head = Head::read(reader)?;
        if head.echo.is_none() {
            return Err(Malformed);
        }
        Ok(Self { head, body_digest: *reader.array()?, signature: *reader.array()? })
    }

    pub(crate) fn sender(&self) -> PartyId {
        self.head.sender
    }

    pub(crate) fn round(&self) -> u8 {
        self.head.round
    }

    pub(crate) fn run(&self) -> &[u8; 16] {
        &self.head.run
    }

    /// Whether it is of a round of the protocol: only there an echo digest says what its sender had seen.
    pub(crate) fn of_a_round(&self) -> bool {
        self.head.round != NOTICE_ROUND && self.head.round != DISCLOSURE_ROUND
    }

    pub(crate) fn echo(&self) -> Option<&[u8; 32]> {
        self.head.echo.as_ref()
    }

    /// Whether the sender it names signed it in this session.
    pub(crate) fn genuine(&self, ctx: &SessionContext) -> bool {
        let Head { protocol, session, round, sender, recipient, .. } = &self.head;
        *protocol == ctx.protocol().number
            && session == ctx.digest()
            && ctx.parties().contains(*sender)
            && recipient.is_none_or(|recipient| ctx.parties().contains(recipient))
            && rule_of(ctx, *round).is_some_and(|rule| self.head.delivery() == rule.delivery)
            && self.head.signature_verifies(ctx, &self.body_digest, &self.signature)
    }
}
