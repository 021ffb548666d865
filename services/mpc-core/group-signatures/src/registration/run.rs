//! The member's order of one run of the join, for issuers that count by themselves.

use engine::wire::{Reader, Writer};
use engine::{EvidenceKey, SIGNATURE_BYTES, Secret, Transcript};
use primitives::bls12_381::Scalar;

use super::{Attempt, Candidate, Invitation, Ordered, RegistrationError, TICKET_BYTES};
use crate::group::GroupPublic;
use crate::opener::signed_statement;
use crate::tags;

/// The number of a run and the id of its session, signed by the ticket's identity for group and ticket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunOrder {
    number: u8,
    session: [u8; 32],
    signature: [u8; SIGNATURE_BYTES],
}

fn statement(group: &[u8; 32], ticket: &[u8; TICKET_BYTES], number: u8, session: &[u8; 32]) -> Vec<u8> {
    let mut transcript = Transcript::new(tags::RUN_SIGNATURE);
    transcript.append("group", group);
    transcript.append("ticket", ticket);
    transcript.append_u64("number", u64::from(number));
    transcript.append("session", session);
    signed_statement(tags::RUN_SIGNATURE, &transcript.digest())
}

impl RunOrder {
    pub(crate) fn sign(
        group: &[u8; 32],
        ticket: &[u8; TICKET_BYTES],
        (number, session): (u8, [u8; 32]),
        identity: &EvidenceKey,
    ) -> Self {
        let said = statement(group, ticket, number, &session);
        Self { number, session, signature: identity.sign_statement(&said) }
    }

    /// Which run it is for its ticket, from 1.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// The id of the run's session.
    pub fn session(&self) -> &[u8; 32] {
        &self.session
    }

    /// Whether the ticket's identity has signed it.
    pub(super) fn is_by(&self, group: &GroupPublic, invitation: &Invitation) -> bool {
        let said = statement(group.digest(), &invitation.ticket, self.number, &self.session);
        invitation.identity.verify_statement(&said, &self.signature)
    }

    /// Number, session id, signature.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u8(self.number);
        writer.bytes(&self.session);
        writer.bytes(&self.signature);
        writer.finish()
    }

    /// Checked by `Ticket::begin_ordered`.
    pub fn decode(bytes: &[u8]) -> Result<Self, RegistrationError> {
        let mut reader = Reader::new(bytes);
        let order = Self { number: reader.u8()?, session: *reader.array()?, signature: *reader.array()? };
        reader.finish()?;
        Ok(order)
    }
}

impl Candidate {
    /// [R6] counts a run of the member's own choice, and orders it from several issuers. The record is stored again
    /// before the order is sent.
    pub fn order_run(
        &mut self,
        number: u8,
        session: [u8; 32],
        identity: &EvidenceKey,
    ) -> Result<(RunOrder, Attempt, Secret<Scalar>), RegistrationError> {
        let (mut attempt, secret) = self.begin_attempt(number)?;
        attempt.order = Some(Ordered { session, identity: *identity.public().as_bytes() });
        let order = RunOrder::sign(&self.group, &self.ticket, (number, session), identity);
        Ok((order, attempt, secret))
    }
}
