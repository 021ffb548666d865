//! The issuer's side of a registration: the record that binds a ticket to one member.

use engine::wire::{Reader, Writer};
use engine::{EVIDENCE_KEY_BYTES, EvidencePublicKey, SIGNATURE_BYTES};
use primitives::bls12_381::{G1, G1_COMPRESSED_BYTES, SCALAR_BYTES};

use super::{
    Acceptance, Answer, Application, Attempt, Invitation, MAX_ATTEMPTS, MAX_MEMBERS, Ordered, Registrar,
    RegistrationError, RunOrder, TICKET_BYTES,
};
use crate::group::GroupPublic;
use crate::sigma::{read_point, read_scalar};

/// The issuer's records of one epoch of a group. Looking up and storing what [`Ticket::bind`] returns are one
/// transaction.
pub trait Register {
    /// How many members are registered.
    fn members(&self) -> usize;
    /// The record of a ticket.
    fn ticket(&self, ticket: &[u8; TICKET_BYTES]) -> Option<Ticket>;
    /// Whether a point is some member's.
    fn has_point(&self, point: &G1) -> bool;
    /// Whether an identity is some member's.
    fn has_identity(&self, identity: &EvidencePublicKey) -> bool;
}

/// The issuer's record of a ticket, to be stored durably before anything is answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    ticket: [u8; TICKET_BYTES],
    identity: [u8; EVIDENCE_KEY_BYTES],
    application: [u8; G1_COMPRESSED_BYTES],
    part: [u8; SCALAR_BYTES],
    member: [u8; G1_COMPRESSED_BYTES],
    acceptance: Option<[u8; SIGNATURE_BYTES]>,
    attempts: u8,
}

impl Ticket {
    /// [R2] binds a ticket to its first application: the same application gets the same answer ever after, and another
    /// one none.
    pub fn bind(
        group: &GroupPublic,
        invitation: &Invitation,
        register: &dyn Register,
        application: &Application,
        registrar: &dyn Registrar,
    ) -> Result<Ticket, RegistrationError> {
        let Invitation { ticket, identity } = invitation;
        application.verify(group, invitation)?;
        let point = application.point.to_compressed();
        if let Some(bound) = register.ticket(ticket) {
            if bound.application != point || bound.identity != *identity.as_bytes() {
                return Err(RegistrationError::TicketBound);
            }
            bound.check(group, registrar)?;
            return Ok(bound);
        }
        if register.has_identity(identity) {
            return Err(RegistrationError::IdentityTaken);
        }
        if register.members() >= MAX_MEMBERS {
            return Err(RegistrationError::GroupFull);
        }
        let part = registrar
            .part(group, ticket, identity.as_bytes(), &point)
            .ok_or(RegistrationError::WrongAnswer)?;
        let member = application.point.plus(&G1::generator().times_public(&part));
        // The second: a secret that is the negative of the issuing key has no signature.
        if member.is_identity() || member.plus(group.issuer()).is_identity() || register.has_point(&member) {
            return Err(RegistrationError::PointTaken);
        }
        Ok(Ticket {
            ticket: *ticket,
            identity: *identity.as_bytes(),
            application: point,
            part: part.to_bytes(),
            member: member.to_compressed(),
            acceptance: None,
            attempts: 0,
        })
    }

    /// The answer to the applicant, after the record is stored.
    pub fn answer(&self) -> Answer {
        Answer(self.part)
    }

    /// [R4] takes the identity's signature of the member's point. The record is stored again.
    pub fn accept(&mut self, group: &GroupPublic, acceptance: &Acceptance) -> Result<(), RegistrationError> {
        if !self.is_accepted_by(group, acceptance)? {
            return Err(RegistrationError::WrongAnswer);
        }
        self.acceptance = Some(acceptance.0);
        Ok(())
    }

    /// [R5] counts one more run of the join. The record is stored again before the run begins. The record that the
    /// store returns is checked: the issuer's part against its secret, the point against the identity's signature.
    pub fn begin_attempt(
        &mut self,
        group: &GroupPublic,
        registrar: &dyn Registrar,
    ) -> Result<Attempt, RegistrationError> {
        self.count(group, registrar, (self.attempts.saturating_add(1), None))
    }

    /// [R5] the same for the run that the ticket's identity orders, where several issuers count: its number is above
    /// those of all runs that this one has counted, some of which others may have had alone. Nothing is counted without
    /// the identity's signature, or one order with a high number would use up the ticket.
    pub fn begin_ordered(
        &mut self,
        group: &GroupPublic,
        registrar: &dyn Registrar,
        order: &RunOrder,
    ) -> Result<Attempt, RegistrationError> {
        let identity = EvidencePublicKey::from_bytes(&self.identity).ok_or(RegistrationError::WrongRecord)?;
        if !order.is_by(group, &Invitation { ticket: self.ticket, identity }) {
            return Err(RegistrationError::Identity);
        }
        let ordered = Ordered { session: *order.session(), identity: self.identity };
        self.count(group, registrar, (order.number(), Some(ordered)))
    }

    fn count(
        &mut self,
        group: &GroupPublic,
        registrar: &dyn Registrar,
        (number, order): (u8, Option<Ordered>),
    ) -> Result<Attempt, RegistrationError> {
        self.check(group, registrar)?;
        let acceptance = self.acceptance().ok_or(RegistrationError::NotAccepted)?;
        if !self.is_accepted_by(group, &acceptance)? {
            return Err(RegistrationError::NotAccepted);
        }
        if number <= self.attempts || number > MAX_ATTEMPTS {
            return Err(RegistrationError::AttemptsSpent);
        }
        self.attempts = number;
        let member = self.member()?;
        Ok(Attempt { group: *group.digest(), ticket: self.ticket, number, member, order })
    }

    fn check(&self, group: &GroupPublic, registrar: &dyn Registrar) -> Result<(), RegistrationError> {
        let part = registrar
            .part(group, &self.ticket, &self.identity, &self.application)
            .ok_or(RegistrationError::WrongRecord)?;
        let application = G1::from_compressed(&self.application).ok_or(RegistrationError::WrongRecord)?;
        let member = application.plus(&G1::generator().times_public(&part));
        let same = part.to_bytes() == self.part && member.to_compressed() == self.member;
        if same { Ok(()) } else { Err(RegistrationError::WrongRecord) }
    }

    fn is_accepted_by(
        &self,
        group: &GroupPublic,
        acceptance: &Acceptance,
    ) -> Result<bool, RegistrationError> {
        let identity = EvidencePublicKey::from_bytes(&self.identity).ok_or(RegistrationError::WrongRecord)?;
        let invitation = Invitation { ticket: self.ticket, identity };
        Ok(acceptance.shows(group, &invitation, &self.member()?))
    }

    /// The identity's signature of the member's point, for the registry.
    pub fn acceptance(&self) -> Option<Acceptance> {
        self.acceptance.map(Acceptance)
    }

    /// Y_i, the member's registered point.
    pub fn member(&self) -> Result<G1, RegistrationError> {
        G1::from_compressed(&self.member).ok_or(RegistrationError::Malformed)
    }

    /// The ticket's name.
    pub fn name(&self) -> &[u8; TICKET_BYTES] {
        &self.ticket
    }

    /// The bytes of the identity that the ticket is for.
    pub fn identity(&self) -> &[u8; EVIDENCE_KEY_BYTES] {
        &self.identity
    }

    /// Ticket, identity, the applicant's point, the issuer's part, the member's point, whether it is accepted and by
    /// which signature, the count of attempts.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.bytes(&self.ticket);
        writer.bytes(&self.identity);
        writer.bytes(&self.application);
        writer.bytes(&self.part);
        writer.bytes(&self.member);
        writer.u8(u8::from(self.acceptance.is_some()));
        writer.bytes(&self.acceptance.unwrap_or([0; SIGNATURE_BYTES]));
        writer.u8(self.attempts);
        writer.finish()
    }

    /// The points belong together. [`Ticket::begin_attempt`] checks the rest.
    pub fn decode(bytes: &[u8]) -> Result<Self, RegistrationError> {
        let mut reader = Reader::new(bytes);
        let (ticket, identity) = (*reader.array()?, *reader.array()?);
        let application = read_point(&mut reader)?;
        let part = read_scalar(&mut reader)?;
        let member = read_point(&mut reader)?;
        let (accepted, signature) = (reader.u8()?, *reader.array()?);
        let attempts = reader.u8()?;
        reader.finish()?;
        let acceptance = match accepted {
            0 if signature == [0; SIGNATURE_BYTES] => None,
            1 => Some(signature),
            _ => return Err(RegistrationError::Malformed),
        };
        if application.plus(&G1::generator().times_public(&part)) != member || attempts > MAX_ATTEMPTS {
            return Err(RegistrationError::Malformed);
        }
        Ok(Self {
            ticket,
            identity,
            application: application.to_compressed(),
            part: part.to_bytes(),
            member: member.to_compressed(),
            acceptance,
            attempts,
        })
    }
}
