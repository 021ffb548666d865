//! From ticket to counted run, at the issuers and at the applicant.

use engine::EvidencePublicKey;
use engine::seal::SealKind;
use group_signatures::{
    Acceptance, Applicant, Application, Candidate, Invitation, Register, RegistrationError, RunOrder,
    TICKET_BYTES, Ticket,
};
use protocols::bls::Subgroup;
use protocols::dealing::{Curve, PointOf};
use threshold_issuer::key::Issuing;
use threshold_issuer::{AttestedGroup, Part, PartError, PartShare, Reservation, Reservations};

use super::caller::{Caller, exactly, group};
use crate::group_parties::{contributions, party};
use crate::issuing::label;
use crate::os_rng::os_rng;
use crate::proto::PartyBytes;
use crate::proto::group_call::{
    AcceptAnswers, AnswerApplication, Apply, CheckRegistration, CountRun, IssuerRecords, OrderRun,
    RegisterMember, Reserve,
};
use crate::proto::group_reply::{
    AnswersAccepted, ApplicationAnswered, Applied, MemberRegistered, RegistrationChecked, Reserved,
    RunCounted, RunOrdered,
};
use crate::refusal::Failure;
use crate::runs::Run;

/// An issuer's store, as far as the caller has looked it up.
struct Known {
    reservation: Option<Reservation>,
    member: Option<Ticket>,
    identity_reserved: bool,
    identity_registered: bool,
    members: usize,
}

impl Known {
    fn new(records: Option<&IssuerRecords>) -> Result<Self, Failure> {
        let records = records.cloned().unwrap_or_default();
        let wrong = |_| RegistrationError::WrongRecord;
        let stored = |bytes: &[u8]| (!bytes.is_empty()).then(|| bytes.to_vec());
        let reservation = stored(&records.reservation).map(|bytes| Reservation::decode(&bytes));
        let member = stored(&records.member).map(|bytes| Ticket::decode(&bytes));
        Ok(Self {
            reservation: reservation.transpose().map_err(wrong)?,
            member: member.transpose().map_err(wrong)?,
            identity_reserved: records.identity_reserved,
            identity_registered: records.identity_registered,
            members: usize::try_from(records.members).unwrap_or(usize::MAX),
        })
    }
}

impl Reservations for Known {
    fn reservation(&self, ticket: &[u8; TICKET_BYTES]) -> Option<Reservation> {
        self.reservation.clone().filter(|reservation| reservation.name() == ticket)
    }

    fn has_identity(&self, _: &EvidencePublicKey) -> bool {
        self.identity_reserved
    }
}

impl Register for Known {
    fn members(&self) -> usize {
        self.members
    }

    fn ticket(&self, ticket: &[u8; TICKET_BYTES]) -> Option<Ticket> {
        self.member.clone().filter(|member| member.name() == ticket)
    }

    /// A constraint of the caller's store says so when it takes the record: the point is not known before.
    fn has_point(&self, _: &PointOf<Issuing>) -> bool {
        false
    }

    fn has_identity(&self, _: &EvidencePublicKey) -> bool {
        self.identity_registered
    }
}

fn identity(bytes: &[u8]) -> Result<EvidencePublicKey, Failure> {
    EvidencePublicKey::from_bytes(bytes).ok_or_else(|| Failure::malformed("the identity"))
}

fn shares(given: &[PartyBytes]) -> Result<Vec<(engine::PartyId, PartShare)>, Failure> {
    contributions(given, "the share", PartShare::decode)
}

/// A record that an issuer has stored.
fn reservation(bytes: &[u8]) -> Result<Reservation, Failure> {
    Ok(Reservation::decode(bytes).map_err(|_| RegistrationError::WrongRecord)?)
}

/// [R1] the applicant.
pub(super) fn apply(caller: &Caller<'_>, call: &Apply) -> Result<Applied, Failure> {
    let group = group(call.group.as_ref())?;
    let ticket = exactly(&call.ticket, "the ticket")?;
    let identity = caller.identity()?;
    let applicant = Applicant::new(group.group(), &ticket, &mut os_rng());
    let application = applicant.apply(&identity, &mut os_rng()).encode();
    let digest = group.group().digest();
    let sealed_applicant = caller.seal(SealKind::Applicant, digest, &applicant.encode())?;
    Ok(Applied { sealed_applicant, application })
}

/// [U1] binds a ticket.
pub(super) fn reserve(call: &Reserve) -> Result<Reserved, Failure> {
    let group = group(call.group.as_ref())?;
    let known = Known::new(call.records.as_ref())?;
    let ticket = exactly(&call.ticket, "the ticket")?;
    let invitation = Invitation { ticket, identity: identity(&call.identity)? };
    let application = Application::decode(&call.application)?;
    let made = Reservation::make(group.group(), &invitation, (&known, &known), &application)?;
    Ok(Reserved { reservation: made.encode() })
}

/// [U2] answers what a stored reservation is for.
pub(super) fn answer_application(
    caller: &Caller<'_>,
    call: &AnswerApplication,
) -> Result<ApplicationAnswered, Failure> {
    let group = group(call.group.as_ref())?;
    let reservation = reservation(&call.reservation)?;
    let share = caller.labelled(&label(&group, party(call.party)?), &call.sealed_share)?;
    let answer = reservation.answer(group.group(), &share, &mut os_rng())?;
    Ok(ApplicationAnswered { share: answer.encode() })
}

/// [U3], [R3] the applicant becomes a candidate.
pub(super) fn accept_answers(caller: &Caller<'_>, call: &AcceptAnswers) -> Result<AnswersAccepted, Failure> {
    let group = group(call.group.as_ref())?;
    let (public, issuers) = (group.group(), group.issuers());
    let identity = caller.identity()?;
    let stored = caller.unseal(SealKind::Applicant, public.digest(), &call.sealed_applicant)?;
    let applicant = Applicant::decode(stored.expose())?;
    let invitation = Invitation { ticket: *applicant.ticket(), identity: identity.public() };
    let application = applicant.apply(&identity, &mut os_rng());
    let shares = shares(&call.shares)?;
    let part = Part::combine(public, issuers, &invitation, &application, &shares)?;
    // So many have to bind the ticket before it gives a member.
    if shares.len() < issuers.quorum() {
        return Err(PartError::TooFew(shares.len()).into());
    }
    let answer = part.answer(public, &invitation, &application).ok_or(RegistrationError::WrongAnswer)?;
    let (candidate, acceptance) = applicant.accept(&answer, &identity)?;
    Ok(AnswersAccepted {
        sealed_candidate: sealed_candidate(caller, &group, &candidate)?,
        acceptance: acceptance.encode().to_vec(),
        point: candidate.point().to_compressed().to_vec(),
    })
}

fn sealed_candidate(
    caller: &Caller<'_>,
    group: &AttestedGroup,
    candidate: &Candidate,
) -> Result<Vec<u8>, Failure> {
    caller.seal(SealKind::Candidate, group.group().digest(), &candidate.encode())
}

/// [U4] the member's record.
pub(super) fn register_member(call: &RegisterMember) -> Result<MemberRegistered, Failure> {
    let group = group(call.group.as_ref())?;
    let (public, issuers) = (group.group(), group.issuers());
    let known = Known::new(call.records.as_ref())?;
    let reservation = reservation(&call.reservation)?;
    let acceptance = Acceptance::decode(exactly(&call.acceptance, "the acceptance")?);
    let shares = shares(&call.shares)?;
    let part = reservation.part(public, issuers, &shares)?;
    let member = reservation.register(public, issuers, &known, &shares, &acceptance)?;
    Ok(MemberRegistered {
        member: member.encode(),
        part: part.encode().to_vec(),
        point: member.member()?.to_compressed().to_vec(),
        identity: member.identity().to_vec(),
        acceptance: acceptance.encode().to_vec(),
    })
}

/// [R6], [U5] the member counts and orders a run.
pub(super) fn order_run(caller: &Caller<'_>, call: &OrderRun) -> Result<RunOrdered, Failure> {
    let group = group(call.group.as_ref())?;
    let identity = caller.identity()?;
    let session: [u8; 32] = exactly(&call.session_id, "the session id")?;
    let stored = caller.unseal(SealKind::Candidate, group.group().digest(), &call.sealed_candidate)?;
    let mut candidate = Candidate::decode(stored.expose())?;
    // A number that does not fit is above all that a ticket pays for.
    let number = u8::try_from(call.number).unwrap_or(u8::MAX);
    let (order, attempt, secret) = candidate.order_run(number, session, &identity)?;
    let sealed_candidate = sealed_candidate(caller, &group, &candidate)?;
    let run = Run::Member(attempt, Box::new(secret));
    caller.vault()?.runs.keep(session, run).map_err(|_| Failure::runs_full())?;
    Ok(RunOrdered { sealed_candidate, order: order.encode() })
}

/// [U5] an issuer counts it.
pub(super) fn count_run(caller: &Caller<'_>, call: &CountRun) -> Result<RunCounted, Failure> {
    let group = group(call.group.as_ref())?;
    let vault = caller.vault()?;
    let mut member = Ticket::decode(&call.member).map_err(|_| RegistrationError::WrongRecord)?;
    let part = exactly(&call.part, "the part")?;
    let part = Part::decode(&part).ok_or(RegistrationError::WrongRecord)?;
    let session: [u8; 32] = exactly(&call.session_id, "the session id")?;
    let order = RunOrder::decode(&call.order)?;
    // An order for the session of another member would put its run in the place of the one that is counted for it.
    if order.session() != &session {
        return Err(RegistrationError::Identity.into());
    }
    let attempt = member.begin_ordered(group.group(), &part, &order)?;
    vault.runs.keep(session, Run::Issuer(attempt)).map_err(|_| Failure::runs_full())?;
    Ok(RunCounted { member: member.encode(), number: order.number().into() })
}

/// [R7] whether an entry of the registry names somebody.
pub(super) fn check_registration(call: &CheckRegistration) -> Result<RegistrationChecked, Failure> {
    let group = group(call.group.as_ref())?;
    let ticket = exactly(&call.ticket, "the ticket")?;
    let invitation = Invitation { ticket, identity: identity(&call.identity)? };
    let point = Subgroup::decode_point(&call.point).ok_or_else(|| Failure::malformed("the point"))?;
    let acceptance = Acceptance::decode(exactly(&call.acceptance, "the acceptance")?);
    if !acceptance.shows(group.group(), &invitation, &point) {
        return Err(RegistrationError::NotAccepted.into());
    }
    Ok(RegistrationChecked {})
}
