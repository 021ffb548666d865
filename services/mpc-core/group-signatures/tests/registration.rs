//! Registration against a thief of tickets, a store that goes back or is altered, and a network that alters messages.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use engine::EvidenceKey;
use group_signatures::forge::{Custody, Records};
use group_signatures::{
    Acceptance, Answer, Applicant, Application, Candidate, GroupPublic, Invitation, MAX_ATTEMPTS,
    MAX_MEMBERS, RegistrarKey, RegistrationError, Ticket,
};
use primitives::bls12_381::{G1, Scalar};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

const TICKET: [u8; 32] = [5; 32];

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// An issuer with one ticket, and the identity that it is for.
struct Issuer {
    group: GroupPublic,
    registrar: RegistrarKey,
    identity: EvidenceKey,
    records: Records,
}

impl Issuer {
    fn new() -> Self {
        let mut rng = rng(1);
        let (_, group) = Custody::new(1, 1, &mut rng).unwrap().group("approvers", 1, &mut rng).unwrap();
        let (registrar, identity) = (RegistrarKey::generate(&mut rng), EvidenceKey::generate(&mut rng));
        Self { group, registrar, identity, records: Records::default() }
    }

    fn applicant(&self, seed: u64) -> Applicant {
        Applicant::new(&self.group, &TICKET, &mut rng(seed))
    }

    fn apply(&self, applicant: &Applicant) -> Application {
        Application::decode(&applicant.apply(&self.identity, &mut rng(2)).encode()).unwrap()
    }

    fn bind_ticket(
        &self,
        ticket: [u8; 32],
        identity: &EvidenceKey,
        application: &Application,
    ) -> Result<Ticket, RegistrationError> {
        let invitation = Invitation { ticket, identity: identity.public() };
        Ticket::bind(&self.group, &invitation, &self.records, application, &self.registrar)
    }

    fn bind(&self, application: &Application) -> Result<Ticket, RegistrationError> {
        self.bind_ticket(TICKET, &self.identity, application)
    }

    /// Applied, answered, accepted.
    fn registered(&self) -> (Ticket, Candidate) {
        let applicant = self.applicant(3);
        let mut ticket = self.bind(&self.apply(&applicant)).unwrap();
        let (candidate, acceptance) = applicant.accept(&ticket.answer(), &self.identity).unwrap();
        ticket.accept(&self.group, &acceptance).unwrap();
        (ticket, candidate)
    }
}

#[test]
fn ticket_is_bound_to_its_first_point() {
    let mut issuer = Issuer::new();
    let first = issuer.apply(&issuer.applicant(3));
    let ticket = issuer.bind(&first).unwrap();
    issuer.records.store(&ticket);
    assert_eq!(issuer.bind(&first), Ok(ticket.clone()));
    let second = issuer.apply(&issuer.applicant(4));
    assert_eq!(issuer.bind(&second), Err(RegistrationError::TicketBound));
    // The applicant comes back after a crash, and its proof is another one.
    let again = Applicant::decode(&issuer.applicant(3).encode()).unwrap();
    assert_eq!(issuer.bind(&issuer.apply(&again)), Ok(ticket.clone()));
    // Only the same ticket and identity.
    let moved = issuer.bind_ticket([6; 32], &issuer.identity, &first);
    assert_eq!(moved, Err(RegistrationError::Identity));
    let elsewhere = Applicant::new(&issuer.group, &[6; 32], &mut rng(3));
    let second_ticket = issuer.bind_ticket([6; 32], &issuer.identity, &issuer.apply(&elsewhere));
    assert_eq!(second_ticket, Err(RegistrationError::IdentityTaken));
    assert_eq!(Ticket::decode(&ticket.encode()), Ok(ticket));
}

/// A party that sees a ticket on its way is not the one that it is for.
#[test]
fn stolen_ticket_is_worth_nothing() {
    let issuer = Issuer::new();
    let thief = EvidenceKey::generate(&mut rng(9));
    let own = issuer.applicant(4).apply(&thief, &mut rng(2));
    assert_eq!(issuer.bind(&own), Err(RegistrationError::Identity));
    // The member's application with the thief's point, and the thief's with the member's signature.
    let (real, own) = (issuer.apply(&issuer.applicant(3)).encode(), own.encode());
    let mixed = [&own[..48 + 64], &real[48 + 64..]].concat();
    let refused = issuer.bind(&Application::decode(&mixed).unwrap());
    assert_eq!(refused, Err(RegistrationError::Identity));
    let mixed = [&real[..48], &own[48..48 + 64], &real[48 + 64..]].concat();
    let refused = issuer.bind(&Application::decode(&mixed).unwrap());
    assert_eq!(refused, Err(RegistrationError::Proof));
    for place in 0..real.len() {
        let mut changed = real.clone();
        changed[place] ^= 1;
        let refused = Application::decode(&changed).and_then(|changed| issuer.bind(&changed));
        assert!(refused.is_err(), "byte {place}");
    }
    assert!(issuer.bind(&Application::decode(&real).unwrap()).is_ok());
}

/// A member that signs for itself with the signature that it gives to applications, or that of another ticket.
#[test]
fn join_begins_after_the_member_has_signed_its_point() {
    let issuer = Issuer::new();
    let applicant = issuer.applicant(3);
    let application = issuer.apply(&applicant);
    let mut ticket = issuer.bind(&application).unwrap();
    let begun = |ticket: &mut Ticket| ticket.begin_attempt(&issuer.group, &issuer.registrar).err();
    assert_eq!(begun(&mut ticket), Some(RegistrationError::NotAccepted));
    let encoded = application.encode();
    let signature = Acceptance::decode(encoded[encoded.len() - 64..].try_into().unwrap());
    assert_eq!(ticket.accept(&issuer.group, &signature), Err(RegistrationError::WrongAnswer));
    // An answer that was altered on the way: the issuer refuses the acceptance, and the applicant accepts again.
    let mut altered = ticket.answer().encode();
    altered[31] ^= 1;
    let (_, acceptance) = applicant.accept(&Answer::decode(altered), &issuer.identity).unwrap();
    assert_eq!(ticket.accept(&issuer.group, &acceptance), Err(RegistrationError::WrongAnswer));
    let malformed = applicant.accept(&Answer::decode([0xff; 32]), &issuer.identity).err();
    assert_eq!(malformed, Some(RegistrationError::Malformed));
    let (_, acceptance) = applicant.accept(&ticket.answer(), &EvidenceKey::generate(&mut rng(9))).unwrap();
    assert_eq!(ticket.accept(&issuer.group, &acceptance), Err(RegistrationError::WrongAnswer));
    assert_eq!(begun(&mut ticket), Some(RegistrationError::NotAccepted));
    let (candidate, acceptance) = applicant.accept(&ticket.answer(), &issuer.identity).unwrap();
    let acceptance = Acceptance::decode(acceptance.encode());
    assert_eq!(ticket.accept(&issuer.group, &acceptance), Ok(()));
    assert_eq!(begun(&mut ticket), None);
    assert_eq!(candidate.point(), ticket.member().unwrap());
}

/// The registry cannot say that a point is somebody else's.
#[test]
fn registry_shows_whose_point_it_is() {
    let issuer = Issuer::new();
    let (ticket, candidate) = issuer.registered();
    let acceptance = ticket.acceptance().unwrap();
    let invitation = Invitation { ticket: TICKET, identity: issuer.identity.public() };
    assert!(acceptance.shows(&issuer.group, &invitation, &candidate.point()));
    assert!(!acceptance.shows(&issuer.group, &invitation, &G1::generator()));
    let other = Invitation { ticket: [6; 32], ..invitation.clone() };
    assert!(!acceptance.shows(&issuer.group, &other, &candidate.point()));
    let victim = EvidenceKey::generate(&mut rng(9)).public();
    let framed = Invitation { identity: victim, ..invitation.clone() };
    assert!(!acceptance.shows(&issuer.group, &framed, &candidate.point()));
    let mut rng = rng(10);
    let (_, next) = Custody::new(1, 1, &mut rng).unwrap().group("approvers", 2, &mut rng).unwrap();
    assert!(!acceptance.shows(&next, &invitation, &candidate.point()));
}

/// b follows from the application: a store that has forgotten the ticket gives no second member for it.
#[test]
fn store_that_went_back_gives_the_same_member() {
    let issuer = Issuer::new();
    let application = issuer.apply(&issuer.applicant(3));
    let first = issuer.bind(&application).unwrap();
    let second = issuer.bind(&application).unwrap();
    assert_eq!(first, second);
    // And the applicant does not choose the sum: b is another one for another point, and for another issuer.
    let other = issuer.bind(&issuer.apply(&issuer.applicant(4))).unwrap();
    assert_ne!(first.answer(), other.answer());
    let mut elsewhere = Issuer::new();
    elsewhere.registrar = RegistrarKey::generate(&mut rng(8));
    assert_ne!(first.answer(), elsewhere.bind(&application).unwrap().answer());
}

/// The store may forget, but what it changes is found: other points, another identity, a signature of nobody.
#[test]
fn record_that_was_altered_pays_for_nothing() {
    let issuer = Issuer::new();
    let (ticket, _) = issuer.registered();
    let encoded = ticket.encode();
    let count = encoded.len() - 1;
    for place in 0..count {
        let mut changed = encoded.clone();
        changed[place] ^= 1;
        let begun = Ticket::decode(&changed)
            .and_then(|mut changed| changed.begin_attempt(&issuer.group, &issuer.registrar).map(|_| ()));
        assert!(begun.is_err(), "byte {place}");
    }
    // Points that belong together, of the store's own choice.
    let (applicant, mut other) = (issuer.applicant(4), Issuer::new());
    other.registrar = RegistrarKey::generate(&mut rng(8));
    let mut forged = other.bind(&issuer.apply(&applicant)).unwrap();
    let (_, acceptance) = applicant.accept(&forged.answer(), &issuer.identity).unwrap();
    forged.accept(&issuer.group, &acceptance).unwrap();
    let mut forged = Ticket::decode(&forged.encode()).unwrap();
    let begun = forged.begin_attempt(&issuer.group, &issuer.registrar).err();
    assert_eq!(begun, Some(RegistrationError::WrongRecord));
    other.records.store(&forged);
    other.registrar = RegistrarKey::from_bytes(engine::Secret::new(*issuer.registrar.bytes().expose()));
    assert_eq!(other.bind(&issuer.apply(&applicant)), Err(RegistrationError::WrongRecord));
}

#[test]
fn both_sides_count_the_runs() {
    let issuer = Issuer::new();
    let (mut ticket, mut candidate) = issuer.registered();
    for number in 1..=MAX_ATTEMPTS {
        ticket = Ticket::decode(&ticket.encode()).unwrap();
        candidate = Candidate::decode(&candidate.encode()).unwrap();
        let attempt = ticket.begin_attempt(&issuer.group, &issuer.registrar).unwrap();
        assert_eq!((attempt.number(), attempt.group()), (number, issuer.group.digest()));
        let (own, secret) = candidate.begin_attempt(attempt.number()).unwrap();
        assert_eq!(G1::mul_generator(&secret), *attempt.member());
        assert_eq!(own.terms(&[]), attempt.terms(&[]));
        // An issuer that says a number again asks for a run that is not counted.
        assert_eq!(candidate.begin_attempt(number).err(), Some(RegistrationError::AttemptsSpent));
    }
    let spent = Some(RegistrationError::AttemptsSpent);
    assert_eq!(ticket.begin_attempt(&issuer.group, &issuer.registrar).err(), spent);
    assert_eq!(candidate.begin_attempt(MAX_ATTEMPTS + 1).err(), spent);
    assert_eq!(issuer.registered().1.begin_attempt(0).err(), spent);
}

#[test]
fn group_has_no_more_members_than_its_key_bears() {
    let mut issuer = Issuer::new();
    let application = issuer.apply(&issuer.applicant(3));
    issuer.records.others = MAX_MEMBERS;
    assert_eq!(issuer.bind(&application), Err(RegistrationError::GroupFull));
    issuer.records.others = MAX_MEMBERS - 1;
    let ticket = issuer.bind(&application).unwrap();
    // The last one comes back to a full group.
    issuer.records.store(&ticket);
    assert_eq!(issuer.bind(&application), Ok(ticket));
}

/// A point that is registered, by whatever mistake, is no second member's.
#[test]
fn registered_points_are_taken() {
    struct Taken;
    impl group_signatures::Register for Taken {
        fn members(&self) -> usize {
            0
        }
        fn ticket(&self, _: &[u8; 32]) -> Option<Ticket> {
            None
        }
        fn has_point(&self, _: &G1) -> bool {
            true
        }
        fn has_identity(&self, _: &engine::EvidencePublicKey) -> bool {
            false
        }
    }
    let issuer = Issuer::new();
    let invitation = Invitation { ticket: TICKET, identity: issuer.identity.public() };
    let application = issuer.apply(&issuer.applicant(3));
    let refused = Ticket::bind(&issuer.group, &invitation, &Taken, &application, &issuer.registrar);
    assert_eq!(refused, Err(RegistrationError::PointTaken));
    assert!(Scalar::from_bytes(&issuer.bind(&application).unwrap().answer().encode()).is_some());
}
