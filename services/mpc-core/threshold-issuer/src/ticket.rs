//! Registration with several issuers: each binds a ticket and its identity to one application, and all of them to one
//! member's point.
//! Steps are cited as [U1] (`docs/protocols/wbb.md`).
//!
//! The issuers' part b of a member's secret follows from H^{sk_m}, where H is a hash to G1 of group, ticket, identity
//! and application. So b is the same whichever t issuers answer, nobody knows it before t have answered, and fewer than
//! t cannot choose it; with a sum of parts, the last issuer to answer could. Everybody checks it by pairing with pk_m.
//! H^{sk_m} shows nothing of sk_m: as long as H is a random oracle it is X_m to a power that everybody may choose.

use core::fmt;
use std::collections::BTreeSet;

use engine::wire::{Reader, Writer};
use engine::{EVIDENCE_KEY_BYTES, EvidencePublicKey, PartyId, PartySet, Transcript};
use group_signatures::{
    Acceptance, Answer, Application, GroupPublic, Invitation, MAX_MEMBERS, Register, Registrar,
    RegistrationError, TICKET_BYTES, Ticket,
};
use primitives::Secret;
use primitives::bls12_381::{G1, G1_COMPRESSED_BYTES, G2, SCALAR_BYTES, Scalar, pairings_are_equal};
use primitives::hedge::HedgedRng;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::key::{IssuerShare, Issuers};
use crate::tags;

/// Bytes of an encoded share of a part.
pub const PART_SHARE_BYTES: usize = G1_COMPRESSED_BYTES + 2 * SCALAR_BYTES;
const MAX_APPLICATION_BYTES: usize = 256;

/// Why the shares of a part do not make one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartError {
    /// This party is no issuer.
    NotAnIssuer(PartyId),
    /// This issuer's share is wrong.
    WrongShare(PartyId),
    /// This issuer has more than one share.
    Twice(PartyId),
    /// There are only so many shares.
    TooFew(usize),
    /// The issuers' public data are not those of the group's issuing key.
    WrongIssuers,
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartError::NotAnIssuer(party) => write!(f, "party {party} is no issuer of the group"),
            PartError::WrongShare(party) => write!(f, "the share of issuer {party} is wrong"),
            PartError::Twice(party) => write!(f, "issuer {party} has more than one share"),
            PartError::TooFew(count) => write!(f, "only {count} shares of the issuers' part"),
            PartError::WrongIssuers => f.write_str("the issuers' data are not those of the group's key"),
        }
    }
}

impl std::error::Error for PartError {}

/// Why an issuer registers no member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegisterError {
    /// The shares of the part do not show that enough issuers have bound the ticket.
    Part(PartError),
    /// As with one issuer.
    Registration(RegistrationError),
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterError::Part(error) => error.fmt(f),
            RegisterError::Registration(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RegisterError {}

impl From<PartError> for RegisterError {
    fn from(error: PartError) -> Self {
        RegisterError::Part(error)
    }
}

impl From<RegistrationError> for RegisterError {
    fn from(error: RegistrationError) -> Self {
        RegisterError::Registration(error)
    }
}

/// An issuer's reservations of one epoch of a group. Looking up and storing what [`Reservation::make`] returns are one
/// transaction.
pub trait Reservations {
    /// The reservation of a ticket.
    fn reservation(&self, ticket: &[u8; TICKET_BYTES]) -> Option<Reservation>;
    /// Whether a ticket of this identity is reserved.
    fn has_identity(&self, identity: &EvidencePublicKey) -> bool;
}

/// An issuer's record that a ticket and its identity are for one application, to be stored durably before anything is
/// answered. The member's point follows from it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reservation {
    group: [u8; 32],
    ticket: [u8; TICKET_BYTES],
    identity: [u8; EVIDENCE_KEY_BYTES],
    application: Vec<u8>,
}

/// One issuer's answer: H^{s_j}, with the proof that s_j is its share of the issuing key.
pub struct PartShare {
    element: G1,
    challenge: Scalar,
    response: Scalar,
}

/// H^{sk_m}, from which b follows. Checked by whoever uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part(G1);

/// The application that a part is for.
struct Asked<'a> {
    group: &'a [u8; 32],
    ticket: &'a [u8; TICKET_BYTES],
    identity: &'a [u8; EVIDENCE_KEY_BYTES],
    point: &'a [u8; G1_COMPRESSED_BYTES],
}

impl Asked<'_> {
    fn digest(&self) -> [u8; 32] {
        let mut transcript = Transcript::new(tags::PART);
        transcript.append("group", self.group);
        transcript.append("ticket", self.ticket);
        transcript.append("identity", self.identity);
        transcript.append("application", self.point);
        transcript.digest()
    }

    /// H.
    fn base(&self) -> G1 {
        G1::hash(&self.digest(), tags::PART.as_bytes())
    }
}

impl Reservation {
    /// [U1] binds a ticket and its identity to the first application: the same one gets the same answer ever after,
    /// another one none, and neither does another ticket of the identity.
    pub fn make(
        group: &GroupPublic,
        invitation: &Invitation,
        (register, reservations): (&dyn Register, &dyn Reservations),
        application: &Application,
    ) -> Result<Self, RegistrationError> {
        application.verify(group, invitation)?;
        let Invitation { ticket, identity } = invitation;
        let point = application.point();
        if let Some(held) = reservations.reservation(ticket) {
            let same = held.group == *group.digest()
                && held.identity == *identity.as_bytes()
                && held.application()?.point() == point;
            return if same { Ok(held) } else { Err(RegistrationError::TicketBound) };
        }
        // A ticket whose reservation was lost is bound by its member's record as well.
        if register.ticket(ticket).is_some() {
            return Err(RegistrationError::TicketBound);
        }
        // Not only a member's: two tickets that different issuers register first would make two members.
        if register.has_identity(identity) || reservations.has_identity(identity) {
            return Err(RegistrationError::IdentityTaken);
        }
        if register.members() >= MAX_MEMBERS {
            return Err(RegistrationError::GroupFull);
        }
        let application = application.encode();
        Ok(Self { group: *group.digest(), ticket: *ticket, identity: *identity.as_bytes(), application })
    }

    /// [U2] the answer of an issuer, after the record is stored.
    pub fn answer(
        &self,
        group: &GroupPublic,
        share: &IssuerShare,
        rng: &mut dyn CryptoRng,
    ) -> Result<PartShare, RegistrationError> {
        self.is_of(group)?;
        if share.issuers().public_key() != group.issuer() {
            return Err(RegistrationError::WrongRecord);
        }
        let application = self.application()?;
        let point = application.point().to_compressed();
        let asked = self.asked(group, &point);
        let base = asked.base();
        let known = Zeroizing::new(share.secret().expose().to_bytes());
        let parts: [&[u8]; 3] = [tags::PART_RANDOMNESS.as_bytes(), known.as_slice(), &asked.digest()];
        let mut rng = HedgedRng::new("share of a part", &parts, rng);
        let nonce = Secret::new(Scalar::random(&mut rng));
        let own = G1::mul_generator(share.secret());
        let element = base.times_secret(share.secret());
        let commitments = [G1::mul_generator(&nonce), base.times_secret(&nonce)];
        let challenge = challenge(&asked, &own, &element, &commitments);
        let response = nonce.expose().add(&challenge.mul(share.secret().expose()));
        Ok(PartShare { element, challenge, response })
    }

    /// [U4] the member's record, to be stored as durably: as many issuers as [`Issuers::quorum`] says have bound the
    /// ticket to this application, the point follows from their part, and the identity has signed it. Refused if it is
    /// the identity element, registered, or the negative of X_m.
    pub fn register(
        &self,
        group: &GroupPublic,
        issuers: &Issuers,
        register: &dyn Register,
        shares: &[(PartyId, PartShare)],
        acceptance: &Acceptance,
    ) -> Result<Ticket, RegisterError> {
        let part = self.part(group, issuers, shares)?;
        let mut ticket = Ticket::bind(group, &self.invitation()?, register, &self.application()?, &part)?;
        ticket.accept(group, acceptance)?;
        Ok(ticket)
    }

    /// [U4] the issuers' part, from the shares of as many issuers as have to bind the ticket. It is kept with the
    /// member's record, which each of its runs is checked with.
    pub fn part(
        &self,
        group: &GroupPublic,
        issuers: &Issuers,
        shares: &[(PartyId, PartShare)],
    ) -> Result<Part, RegisterError> {
        self.is_of(group)?;
        // A share has a proof that its issuer alone can make, so it also says that this issuer has bound the ticket.
        // Fewer of them could be those of a set that shares no honest issuer with the set of another application.
        let part = Part::combine(group, issuers, &self.invitation()?, &self.application()?, shares)?;
        if shares.len() < issuers.quorum() {
            return Err(PartError::TooFew(shares.len()).into());
        }
        Ok(part)
    }

    fn invitation(&self) -> Result<Invitation, RegistrationError> {
        let identity = EvidencePublicKey::from_bytes(&self.identity).ok_or(RegistrationError::WrongRecord)?;
        Ok(Invitation { ticket: self.ticket, identity })
    }

    /// The ticket's name.
    pub fn name(&self) -> &[u8; TICKET_BYTES] {
        &self.ticket
    }

    /// The bytes of the identity that the ticket is for.
    pub fn identity(&self) -> &[u8; EVIDENCE_KEY_BYTES] {
        &self.identity
    }

    /// Group, ticket, identity, application.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.bytes(&self.group);
        writer.bytes(&self.ticket);
        writer.bytes(&self.identity);
        writer.sized(&self.application);
        writer.finish()
    }

    /// Takes what [`Reservation::encode`] made.
    pub fn decode(bytes: &[u8]) -> Result<Self, RegistrationError> {
        let mut reader = Reader::new(bytes);
        let (group, ticket, identity) = (*reader.array()?, *reader.array()?, *reader.array()?);
        let application = reader.sized(MAX_APPLICATION_BYTES)?.to_vec();
        reader.finish()?;
        let reservation = Self { group, ticket, identity, application };
        reservation.application()?;
        Ok(reservation)
    }

    /// A record of another group, or of another epoch of it, is none of this one.
    fn is_of(&self, group: &GroupPublic) -> Result<(), RegistrationError> {
        if self.group == *group.digest() { Ok(()) } else { Err(RegistrationError::WrongRecord) }
    }

    fn application(&self) -> Result<Application, RegistrationError> {
        Application::decode(&self.application)
    }

    fn asked<'a>(&'a self, group: &'a GroupPublic, point: &'a [u8; G1_COMPRESSED_BYTES]) -> Asked<'a> {
        Asked { group: group.digest(), ticket: &self.ticket, identity: &self.identity, point }
    }
}

impl PartShare {
    fn verify(&self, asked: &Asked<'_>, point: &G1) -> bool {
        let negative = Scalar::zero().sub(&self.challenge);
        let commitment = |base: &G1, power: &G1| {
            G1::combination(&[*base, *power], &[self.response.copy(), negative.copy()])
        };
        let commitments = [commitment(&G1::generator(), point), commitment(&asked.base(), &self.element)];
        let expected = challenge(asked, point, &self.element, &commitments);
        expected.to_bytes() == self.challenge.to_bytes()
    }

    /// Element, challenge, response.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.bytes(&self.element.to_compressed());
        writer.bytes(&self.challenge.to_bytes());
        writer.bytes(&self.response.to_bytes());
        writer.finish()
    }

    /// `None` unless an encoding with an element of the subgroup other than the identity.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let element = G1::from_compressed(reader.array().ok()?)?;
        let challenge = Scalar::from_bytes(reader.array().ok()?)?;
        let response = Scalar::from_bytes(reader.array().ok()?)?;
        reader.finish().ok()?;
        Some(Self { element, challenge, response })
    }
}

impl Part {
    /// [U3] the applicant checks the shares that came and combines those of as many issuers as the threshold says.
    pub fn combine(
        group: &GroupPublic,
        issuers: &Issuers,
        invitation: &Invitation,
        application: &Application,
        shares: &[(PartyId, PartShare)],
    ) -> Result<Self, PartError> {
        if issuers.public_key() != group.issuer() {
            return Err(PartError::WrongIssuers);
        }
        let point = application.point().to_compressed();
        let identity = invitation.identity.as_bytes();
        let asked = Asked { group: group.digest(), ticket: &invitation.ticket, identity, point: &point };
        let mut seen = BTreeSet::new();
        for (party, share) in shares {
            let point = issuers.share(*party).ok_or(PartError::NotAnIssuer(*party))?;
            if !seen.insert(*party) {
                return Err(PartError::Twice(*party));
            }
            if !share.verify(&asked, point) {
                return Err(PartError::WrongShare(*party));
            }
        }
        let chosen: PartySet = seen.into_iter().collect();
        let weights = issuers.weights(&chosen).ok_or(PartError::TooFew(chosen.len()))?;
        let elements: Vec<G1> = chosen
            .iter()
            .filter_map(|party| shares.iter().find(|(sender, _)| *sender == party))
            .map(|(_, share)| share.element)
            .collect();
        Ok(Self(G1::combination(&elements, &weights)))
    }

    /// The answer that `Applicant::accept` takes, after the check by pairing. `None` if it is not the part of this
    /// application.
    pub fn answer(
        &self,
        group: &GroupPublic,
        invitation: &Invitation,
        application: &Application,
    ) -> Option<Answer> {
        let Invitation { ticket, identity } = invitation;
        let point = application.point().to_compressed();
        self.part(group, ticket, identity.as_bytes(), &point).map(|part| Answer::decode(part.to_bytes()))
    }

    /// 48 bytes.
    pub fn encode(&self) -> [u8; G1_COMPRESSED_BYTES] {
        self.0.to_compressed()
    }

    /// `None` unless an element of the subgroup other than the identity.
    pub fn decode(bytes: &[u8; G1_COMPRESSED_BYTES]) -> Option<Self> {
        G1::from_compressed(bytes).map(Self)
    }
}

impl Registrar for Part {
    /// e(H^{sk_m}, g2) = e(H, pk_m), and the hash of the element.
    fn part(
        &self,
        group: &GroupPublic,
        ticket: &[u8; TICKET_BYTES],
        identity: &[u8; EVIDENCE_KEY_BYTES],
        application: &[u8; G1_COMPRESSED_BYTES],
    ) -> Option<Scalar> {
        let asked = Asked { group: group.digest(), ticket, identity, point: application };
        if !pairings_are_equal((&self.0, &G2::generator()), (&asked.base(), group.issuer_in_g2())) {
            return None;
        }
        let mut transcript = Transcript::new(tags::PART_SCALAR);
        transcript.append("asked", &asked.digest());
        transcript.append("element", &self.0.to_compressed());
        Some(Scalar::from_wide(&transcript.wide()))
    }
}

fn challenge(asked: &Asked<'_>, own: &G1, element: &G1, commitments: &[G1; 2]) -> Scalar {
    let mut transcript = Transcript::new(tags::PART_PROOF);
    transcript.append("asked", &asked.digest());
    transcript.append("own", &own.to_compressed());
    transcript.append("element", &element.to_compressed());
    transcript.append_list("commitments", commitments.iter().map(G1::to_compressed));
    Scalar::from_wide(&transcript.wide())
}
