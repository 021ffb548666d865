//! Registration: applicant and issuer choose a member's secret together, once for each ticket.
//!
//! Weak Boneh-Boyen signatures are unforgeable for messages chosen before the key is seen; a secret to which the
//! issuer has added its own random part is chosen by nobody. Steps are cited as [R1].

use core::fmt;

use engine::wire::{Malformed, Reader, Writer};
use engine::{Secret, Transcript};
use primitives::bls12_381::{G1, G1_COMPRESSED_BYTES, SCALAR_BYTES, Scalar};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::group::GroupPublic;
use crate::sigma::{KnowledgeProof, hedged, read_point, read_scalar};
use crate::tags;

/// Bytes of a ticket's name.
pub const TICKET_BYTES: usize = 32;
/// Runs of the join that a ticket pays for: each failed one may tell a bit.
pub const MAX_ATTEMPTS: u8 = 8;

/// Why a registration or a join ends before it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegistrationError {
    /// The encoding is wrong, or a point is the identity or outside the subgroup.
    Malformed,
    /// The applicant does not show that it knows its half.
    Proof,
    /// The ticket was used with another point.
    TicketBound,
    /// The member's point is the identity, or registered already.
    PointTaken,
    /// The answer is not one to this application.
    WrongAnswer,
    /// The ticket has paid for as many joins as it can.
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
            RegistrationError::Proof => "the proof of the applicant's point does not verify",
            RegistrationError::TicketBound => "the ticket is bound to another point",
            RegistrationError::PointTaken => "the member's point is the identity or registered already",
            RegistrationError::WrongAnswer => "the answer does not belong to this application",
            RegistrationError::AttemptsSpent => "the ticket has paid for as many joins as it can",
        })
    }
}

impl std::error::Error for RegistrationError {}

/// The applicant's half, a.
#[must_use]
pub struct Applicant {
    half: Secret<Scalar>,
    point: G1,
}

/// The applicant's message: g1^a with a proof of knowledge, bound to group and ticket.
pub struct Application {
    point: G1,
    proof: KnowledgeProof,
}

/// The issuer's record of a ticket, to be stored durably before anything is answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    application: [u8; G1_COMPRESSED_BYTES],
    /// The issuer's part, b. Not secret: it only makes that the applicant has not chosen the sum.
    part: [u8; SCALAR_BYTES],
    member: [u8; G1_COMPRESSED_BYTES],
    attempts: u8,
}

fn proof_transcript(group: &GroupPublic, ticket: &[u8; TICKET_BYTES]) -> Transcript {
    let mut transcript = Transcript::new(tags::APPLICATION_PROOF);
    transcript.append("group", group.digest());
    transcript.append("ticket", ticket);
    transcript
}

impl Applicant {
    /// [R1] draws a, and proves that it is known.
    pub fn apply(
        group: &GroupPublic,
        ticket: &[u8; TICKET_BYTES],
        rng: &mut dyn CryptoRng,
    ) -> (Self, Application) {
        let parts: [&[u8]; 2] = [group.digest(), ticket];
        let half = Secret::new(Scalar::random(&mut hedged(tags::APPLICANT_HALF, &parts, rng)));
        let point = G1::mul_generator(&half);
        let proof = KnowledgeProof::prove(proof_transcript(group, ticket), &point, &half, rng);
        (Self { half, point }, Application { point, proof })
    }

    /// [R3] the member's secret sk_i = a + b, with its public point.
    pub fn accept(self, ticket: &Ticket) -> Result<(Secret<Scalar>, G1), RegistrationError> {
        if ticket.application != self.point.to_compressed() {
            return Err(RegistrationError::WrongAnswer);
        }
        let part = Scalar::from_bytes(&ticket.part).ok_or(RegistrationError::Malformed)?;
        let secret = Secret::new(self.half.expose().add(&part));
        let point = G1::mul_generator(&secret);
        if point.to_compressed() != ticket.member || point.is_identity() {
            return Err(RegistrationError::WrongAnswer);
        }
        Ok((secret, point))
    }
}

impl Application {
    /// Point and proof.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.bytes(&self.point.to_compressed());
        self.proof.encode(&mut writer);
        writer.finish()
    }

    /// The point is in the subgroup; the proof is checked by [`Ticket::bind`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RegistrationError> {
        let mut reader = Reader::new(bytes);
        let application =
            Self { point: read_point(&mut reader)?, proof: KnowledgeProof::decode(&mut reader)? };
        reader.finish()?;
        Ok(application)
    }
}

impl Ticket {
    /// [R2] binds a ticket to its first application. `bound` is the record if there is one: then the same
    /// application gets the same answer, and another one none. `is_registered` says whether a point is some
    /// member's.
    pub fn bind(
        group: &GroupPublic,
        ticket: &[u8; TICKET_BYTES],
        bound: Option<&Ticket>,
        application: &Application,
        is_registered: impl Fn(&G1) -> bool,
        rng: &mut dyn CryptoRng,
    ) -> Result<Ticket, RegistrationError> {
        if !application.proof.verify(proof_transcript(group, ticket), &application.point) {
            return Err(RegistrationError::Proof);
        }
        let point = application.point.to_compressed();
        if let Some(bound) = bound {
            return if bound.application == point {
                Ok(bound.clone())
            } else {
                Err(RegistrationError::TicketBound)
            };
        }
        let part = Scalar::random(rng);
        let member = application.point.plus(&G1::generator().times_public(&part));
        // The second: a secret that is the negative of the issuing key has no signature.
        if member.is_identity() || member.plus(group.issuer()).is_identity() || is_registered(&member) {
            return Err(RegistrationError::PointTaken);
        }
        Ok(Ticket { application: point, part: part.to_bytes(), member: member.to_compressed(), attempts: 0 })
    }

    /// Counts one more run of the join. The record is stored again before the run begins.
    pub fn begin_attempt(&mut self) -> Result<u8, RegistrationError> {
        if self.attempts >= MAX_ATTEMPTS {
            return Err(RegistrationError::AttemptsSpent);
        }
        self.attempts += 1;
        Ok(self.attempts)
    }

    /// Y_i, the member's registered point.
    pub fn member(&self) -> Result<G1, RegistrationError> {
        G1::from_compressed(&self.member).ok_or(RegistrationError::Malformed)
    }

    /// The applicant's point, the issuer's part, the member's point, the count of attempts.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.bytes(&self.application);
        writer.bytes(&self.part);
        writer.bytes(&self.member);
        writer.u8(self.attempts);
        writer.finish()
    }

    /// The points belong together.
    pub fn decode(bytes: &[u8]) -> Result<Self, RegistrationError> {
        let mut reader = Reader::new(bytes);
        let application = read_point(&mut reader)?;
        let part = read_scalar(&mut reader)?;
        let member = read_point(&mut reader)?;
        let attempts = reader.u8()?;
        reader.finish()?;
        if application.plus(&G1::generator().times_public(&part)) != member || attempts > MAX_ATTEMPTS {
            return Err(RegistrationError::Malformed);
        }
        Ok(Self {
            application: application.to_compressed(),
            part: part.to_bytes(),
            member: member.to_compressed(),
            attempts,
        })
    }
}

/// The payload of a join: hash of group, ticket, attempt, member's point and the digests of what else both sides use.
pub fn join_terms(
    group: &GroupPublic,
    ticket: &[u8; TICKET_BYTES],
    attempt: u8,
    member: &G1,
    parameters: &[&[u8; 32]],
) -> [u8; 32] {
    let mut transcript = Transcript::new(tags::JOIN_TERMS);
    transcript.append("group", group.digest());
    transcript.append("ticket", ticket);
    transcript.append_u64("attempt", u64::from(attempt));
    transcript.append("member", &member.to_compressed());
    transcript.append_list("parameters", parameters.iter());
    transcript.digest()
}

/// For stores: a member's secret as bytes that wipe themselves.
pub(crate) fn secret_bytes(secret: &Secret<Scalar>) -> Zeroizing<[u8; SCALAR_BYTES]> {
    Zeroizing::new(secret.expose().to_bytes())
}
