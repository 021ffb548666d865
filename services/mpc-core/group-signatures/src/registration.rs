//! Registration: applicant and issuer choose a member's secret together, once for each ticket.
//!
//! Weak Boneh-Boyen signatures are unforgeable for messages chosen before the key is seen; a secret to which the
//! issuer has added its own random part is chosen by nobody. A ticket is used by the one identity that it was made for,
//! which signs its point twice: before the issuer answers, and the member's point after that. Steps are cited as [R1].

mod run;
mod ticket;

use core::fmt;

use engine::wire::{Malformed, Reader, Writer};
use engine::{EVIDENCE_KEY_BYTES, EvidenceKey, EvidencePublicKey, SIGNATURE_BYTES, Secret, Tag, Transcript};
use primitives::bls12_381::{G1, G1_COMPRESSED_BYTES, SCALAR_BYTES, Scalar};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::group::GroupPublic;
use crate::opener::signed_statement;
use crate::sigma::{KnowledgeProof, hedged, read_point, read_scalar};
use crate::tags;

pub use run::RunOrder;
pub use ticket::{Register, Ticket};

/// Bytes of a ticket's name.
pub const TICKET_BYTES: usize = 32;
/// Runs of the join that a ticket pays for: each failed one may tell a bit.
pub const MAX_ATTEMPTS: u8 = 8;
/// Members for one issuing key: an attack on it gains half the bits of their number (Cheon 2006).
pub const MAX_MEMBERS: usize = 1 << 14;

/// Why a registration or a join ends before it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegistrationError {
    /// The encoding is wrong, or a point is the identity or outside the subgroup.
    Malformed,
    /// It is not signed by the identity that the ticket is for.
    Identity,
    /// The applicant does not show that it knows its half.
    Proof,
    /// The ticket was used with another point.
    TicketBound,
    /// The identity is a member by another ticket.
    IdentityTaken,
    /// The member's point is the identity, or registered already.
    PointTaken,
    /// There are as many members as one issuing key may have.
    GroupFull,
    /// The answer is not one to this application, or the acceptance not one of this answer.
    WrongAnswer,
    /// The member has not accepted its point.
    NotAccepted,
    /// The stored record is not what this registrar has made for the group.
    WrongRecord,
    /// The ticket has paid for as many joins as it can, or for the one with this number.
    AttemptsSpent,
}

impl From<Malformed> for RegistrationError {
    fn from(_: Malformed) -> Self {
        RegistrationError::Malformed
    }
}

impl fmt::Display for RegistrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RegistrationError::Malformed => "the application or its answer is malformed",
            RegistrationError::Identity => "the signature is not by the identity that the ticket is for",
            RegistrationError::Proof => "the proof of the applicant's point does not verify",
            RegistrationError::TicketBound => "the ticket is bound to another point",
            RegistrationError::IdentityTaken => "the identity is a member by another ticket",
            RegistrationError::PointTaken => "the member's point is the identity or registered already",
            RegistrationError::GroupFull => "the group has as many members as an issuing key may have",
            RegistrationError::WrongAnswer => "the answer does not belong to this application",
            RegistrationError::NotAccepted => "the member has not accepted its point",
            RegistrationError::WrongRecord => "the record is not one of this registrar and group",
            RegistrationError::AttemptsSpent => "the ticket has paid for as many joins as it can",
        })
    }
}

impl std::error::Error for RegistrationError {}

/// A ticket, for one identity. The name alone is worth nothing, so it may be seen.
#[derive(Clone)]
pub struct Invitation {
    /// The ticket's name.
    pub ticket: [u8; TICKET_BYTES],
    /// The key that the applicant signs with.
    pub identity: EvidencePublicKey,
}

/// The issuer's secret from which its part of each member's secret follows, so that a store that has lost a record
/// gives the same member again.
pub struct RegistrarKey(Secret<[u8; 32]>);

impl RegistrarKey {
    /// A fresh one.
    pub fn generate(rng: &mut dyn CryptoRng) -> Self {
        let mut key = Secret::new([0u8; 32]);
        rng.fill_bytes(key.expose_mut());
        Self(key)
    }

    /// From a store that encrypts it.
    pub fn from_bytes(bytes: Secret<[u8; 32]>) -> Self {
        Self(bytes)
    }

    /// For a store that encrypts it.
    pub fn bytes(&self) -> &Secret<[u8; 32]> {
        &self.0
    }
}

/// Where the issuer's part of a member's secret comes from. It is the same for the same application ever after, and
/// nobody but the issuer, or enough of several, can tell it before the answer.
pub trait Registrar {
    /// b. `None` if this is not the registrar of the group, ticket and application.
    fn part(
        &self,
        group: &GroupPublic,
        ticket: &[u8; TICKET_BYTES],
        identity: &[u8; EVIDENCE_KEY_BYTES],
        application: &[u8; G1_COMPRESSED_BYTES],
    ) -> Option<Scalar>;
}

impl Registrar for RegistrarKey {
    fn part(
        &self,
        group: &GroupPublic,
        ticket: &[u8; TICKET_BYTES],
        identity: &[u8; EVIDENCE_KEY_BYTES],
        application: &[u8; G1_COMPRESSED_BYTES],
    ) -> Option<Scalar> {
        let mut transcript = Transcript::new(tags::ISSUER_PART);
        transcript.append("key", self.0.expose());
        transcript.append("group", group.digest());
        transcript.append("ticket", ticket);
        transcript.append("identity", identity);
        transcript.append("application", application);
        Some(Scalar::from_wide(&Zeroizing::new(transcript.wide())))
    }
}

/// The applicant's half, a, until it has become a [`Candidate`]. To be stored before the application is sent.
#[must_use]
pub struct Applicant {
    group: [u8; 32],
    ticket: [u8; TICKET_BYTES],
    half: Secret<Scalar>,
    point: G1,
}

/// The applicant's message: g1^a with a proof of knowledge and the identity's signature, both for group and ticket.
pub struct Application {
    point: G1,
    proof: KnowledgeProof,
    signature: [u8; SIGNATURE_BYTES],
}

/// The issuer's answer, b. It is not secret: it only makes that the applicant has not chosen the sum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer([u8; SCALAR_BYTES]);

/// The identity's signature of the member's point. With it the registry shows whose point it is, to the member's cost
/// or to the issuer's who would enter another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acceptance([u8; SIGNATURE_BYTES]);

/// A registered member before it has its credential: sk_i = a + b. It stays until a join has gone well, so that one
/// that fails does not cost the ticket.
pub struct Candidate {
    group: [u8; 32],
    ticket: [u8; TICKET_BYTES],
    secret: Secret<Scalar>,
    attempts: u8,
}

/// One run of the join, counted at the side that has it. Nothing else makes one.
#[must_use]
#[derive(Debug)]
pub struct Attempt {
    pub(crate) group: [u8; 32],
    pub(crate) ticket: [u8; TICKET_BYTES],
    pub(crate) number: u8,
    pub(crate) member: G1,
    pub(crate) order: Option<Ordered>,
}

/// The content that the ticket's identity signed when it ordered a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ordered {
    pub(crate) session: [u8; 32],
    pub(crate) identity: [u8; EVIDENCE_KEY_BYTES],
}

fn proof_transcript(group: &[u8; 32], ticket: &[u8; TICKET_BYTES]) -> Transcript {
    let mut transcript = Transcript::new(tags::APPLICATION_PROOF);
    transcript.append("group", group);
    transcript.append("ticket", ticket);
    transcript
}

/// The statement that an identity signs about a point.
fn statement(tag: Tag, group: &[u8; 32], ticket: &[u8; TICKET_BYTES], point: &G1) -> Vec<u8> {
    let mut transcript = Transcript::new(tag);
    transcript.append("group", group);
    transcript.append("ticket", ticket);
    transcript.append("point", &point.to_compressed());
    signed_statement(tag, &transcript.digest())
}

impl Applicant {
    /// [R1.1] draws a.
    pub fn new(group: &GroupPublic, ticket: &[u8; TICKET_BYTES], rng: &mut dyn CryptoRng) -> Self {
        let parts: [&[u8]; 2] = [group.digest(), ticket];
        let half = Secret::new(Scalar::random(&mut hedged(tags::APPLICANT_HALF, &parts, rng)));
        let point = G1::mul_generator(&half);
        Self { group: *group.digest(), ticket: *ticket, half, point }
    }

    /// The ticket that it applies for.
    pub fn ticket(&self) -> &[u8; TICKET_BYTES] {
        &self.ticket
    }

    /// [R1.2] proves that a is known, and signs its point.
    pub fn apply(&self, identity: &EvidenceKey, rng: &mut dyn CryptoRng) -> Application {
        let transcript = proof_transcript(&self.group, &self.ticket);
        let proof = KnowledgeProof::prove(transcript, &self.point, &self.half, rng);
        let said = statement(tags::APPLICATION_SIGNATURE, &self.group, &self.ticket, &self.point);
        Application { point: self.point, proof, signature: identity.sign_statement(&said) }
    }

    /// [R3] the member's secret sk_i = a + b, and the identity's signature of its point. An answer that was altered on
    /// the way gives an acceptance that the issuer refuses; the applicant is still there for the right one.
    pub fn accept(
        &self,
        answer: &Answer,
        identity: &EvidenceKey,
    ) -> Result<(Candidate, Acceptance), RegistrationError> {
        let part = Scalar::from_bytes(&answer.0).ok_or(RegistrationError::Malformed)?;
        let secret = Secret::new(self.half.expose().add(&part));
        let point = G1::mul_generator(&secret);
        if point.is_identity() {
            return Err(RegistrationError::WrongAnswer);
        }
        let said = statement(tags::ACCEPTANCE_SIGNATURE, &self.group, &self.ticket, &point);
        let candidate = Candidate { group: self.group, ticket: self.ticket, secret, attempts: 0 };
        Ok((candidate, Acceptance(identity.sign_statement(&said))))
    }

    /// Group, ticket and half, for a store that encrypts them.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut writer = Writer::default();
        writer.bytes(&self.group);
        writer.bytes(&self.ticket);
        writer.bytes(secret_bytes(&self.half).as_slice());
        Zeroizing::new(writer.finish())
    }

    /// Takes what [`Applicant::encode`] made.
    pub fn decode(bytes: &[u8]) -> Result<Self, RegistrationError> {
        let mut reader = Reader::new(bytes);
        let (group, ticket) = (*reader.array()?, *reader.array()?);
        let half = Secret::new(read_scalar(&mut reader)?);
        reader.finish()?;
        let point = G1::mul_generator(&half);
        if point.is_identity() {
            return Err(RegistrationError::Malformed);
        }
        Ok(Self { group, ticket, half, point })
    }
}

impl Application {
    /// g1^a.
    pub fn point(&self) -> &G1 {
        &self.point
    }

    /// [R2] whether the invited identity has signed it, and knows a.
    pub fn verify(&self, group: &GroupPublic, invitation: &Invitation) -> Result<(), RegistrationError> {
        let Invitation { ticket, identity } = invitation;
        let said = statement(tags::APPLICATION_SIGNATURE, group.digest(), ticket, &self.point);
        if !identity.verify_statement(&said, &self.signature) {
            return Err(RegistrationError::Identity);
        }
        if !self.proof.verify(proof_transcript(group.digest(), ticket), &self.point) {
            return Err(RegistrationError::Proof);
        }
        Ok(())
    }

    /// Point, proof, signature.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.bytes(&self.point.to_compressed());
        self.proof.encode(&mut writer);
        writer.bytes(&self.signature);
        writer.finish()
    }

    /// The point is in the subgroup; proof and signature are checked by [`Ticket::bind`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RegistrationError> {
        let mut reader = Reader::new(bytes);
        let application = Self {
            point: read_point(&mut reader)?,
            proof: KnowledgeProof::decode(&mut reader)?,
            signature: *reader.array()?,
        };
        reader.finish()?;
        Ok(application)
    }
}

impl Answer {
    /// 32 bytes.
    pub fn encode(&self) -> [u8; SCALAR_BYTES] {
        self.0
    }

    /// Checked by [`Applicant::accept`].
    pub fn decode(bytes: [u8; SCALAR_BYTES]) -> Self {
        Self(bytes)
    }
}

impl Acceptance {
    /// 64 bytes.
    pub fn encode(&self) -> [u8; SIGNATURE_BYTES] {
        self.0
    }

    /// Checked by [`Ticket::accept`].
    pub fn decode(bytes: [u8; SIGNATURE_BYTES]) -> Self {
        Self(bytes)
    }

    /// [R7] whether the identity that the ticket was for has said that this point is its own. Openers ask this of the
    /// registry's entry before they say that an approval was somebody's.
    pub fn shows(&self, group: &GroupPublic, invitation: &Invitation, member: &G1) -> bool {
        let Invitation { ticket, identity } = invitation;
        let said = statement(tags::ACCEPTANCE_SIGNATURE, group.digest(), ticket, member);
        identity.verify_statement(&said, &self.0)
    }
}

impl Candidate {
    /// Y_i.
    pub fn point(&self) -> G1 {
        G1::mul_generator(&self.secret)
    }

    /// [R6] counts the run that the issuer says is the one with this number, and returns it with sk_i. The record is
    /// stored again before the run begins: an issuer that asks for more runs than a ticket pays for gets no answer.
    pub fn begin_attempt(&mut self, number: u8) -> Result<(Attempt, Secret<Scalar>), RegistrationError> {
        if number <= self.attempts || number > MAX_ATTEMPTS {
            return Err(RegistrationError::AttemptsSpent);
        }
        self.attempts = number;
        let attempt =
            Attempt { group: self.group, ticket: self.ticket, number, member: self.point(), order: None };
        Ok((attempt, Secret::new(self.secret.expose().copy())))
    }

    /// Group, ticket, secret and count of attempts, for a store that encrypts them.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut writer = Writer::default();
        writer.bytes(&self.group);
        writer.bytes(&self.ticket);
        writer.bytes(secret_bytes(&self.secret).as_slice());
        writer.u8(self.attempts);
        Zeroizing::new(writer.finish())
    }

    /// Takes what [`Candidate::encode`] made.
    pub fn decode(bytes: &[u8]) -> Result<Self, RegistrationError> {
        let mut reader = Reader::new(bytes);
        let (group, ticket) = (*reader.array()?, *reader.array()?);
        let secret = Secret::new(read_scalar(&mut reader)?);
        let attempts = reader.u8()?;
        reader.finish()?;
        if attempts > MAX_ATTEMPTS {
            return Err(RegistrationError::Malformed);
        }
        Ok(Self { group, ticket, secret, attempts })
    }
}

impl Attempt {
    /// The digest of the group.
    pub fn group(&self) -> &[u8; 32] {
        &self.group
    }

    /// Which run it is for its ticket, from 1. The issuer tells the member.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Y_i.
    pub fn member(&self) -> &G1 {
        &self.member
    }

    /// The session that the ticket's identity has ordered the run for, where several issuers count.
    pub fn session(&self) -> Option<&[u8; 32]> {
        self.order.as_ref().map(|order| &order.session)
    }

    /// The identity that has ordered it. The member signs its messages with this key.
    pub fn identity(&self) -> Option<EvidencePublicKey> {
        self.order.as_ref().and_then(|order| EvidencePublicKey::from_bytes(&order.identity))
    }

    /// The payload of the join: hash of group, ticket, number, member's point and the digests of what else both sides
    /// use.
    pub fn terms(&self, parameters: &[&[u8; 32]]) -> [u8; 32] {
        let mut transcript = Transcript::new(tags::JOIN_TERMS);
        transcript.append("group", &self.group);
        transcript.append("ticket", &self.ticket);
        transcript.append_u64("attempt", u64::from(self.number));
        transcript.append("member", &self.member.to_compressed());
        if let Some(Ordered { session, identity }) = &self.order {
            transcript.append("session", session);
            transcript.append("identity", identity);
        }
        transcript.append_list("parameters", parameters.iter());
        transcript.digest()
    }
}

/// For stores: a member's secret as bytes that wipe themselves.
pub(crate) fn secret_bytes(secret: &Secret<Scalar>) -> Zeroizing<[u8; SCALAR_BYTES]> {
    Zeroizing::new(secret.expose().to_bytes())
}
