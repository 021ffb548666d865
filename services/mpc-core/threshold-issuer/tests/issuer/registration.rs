//! Registration with several issuers: one ticket, one application, one member, at every issuer.

use engine::{EvidenceKey, EvidencePublicKey, PartyId, Secret};
use group_signatures::forge::{Records, order};
use group_signatures::{
    Acceptance, Answer, Applicant, Application, Candidate, Invitation, MAX_ATTEMPTS, MAX_MEMBERS,
    RegistrationError, RunOrder, TICKET_BYTES, Ticket,
};
use primitives::bls12_381::{G1, Scalar};
use sim::Faults;
use threshold_issuer::key::forge::shifted;
use threshold_issuer::{
    JoinInput, PART_SHARE_BYTES, Part, PartError, PartShare, RegisterError, Reservation, Reservations,
};

use crate::installation::{ABOVE, Installation, SESSION, evidence_key, key_of, party, rng, session_id};
use crate::malicious::small_order;

/// Reservations in memory.
#[derive(Clone, Default)]
pub struct Shelf(Vec<Reservation>);

impl Reservations for Shelf {
    fn reservation(&self, ticket: &[u8; TICKET_BYTES]) -> Option<Reservation> {
        self.0.iter().find(|reservation| reservation.name() == ticket).cloned()
    }

    fn has_identity(&self, identity: &EvidencePublicKey) -> bool {
        self.0.iter().any(|reservation| reservation.identity() == identity.as_bytes())
    }
}

/// The store of one issuer.
#[derive(Clone, Default)]
pub struct Store {
    pub reservations: Shelf,
    pub records: Records,
}

impl Store {
    /// Binds the ticket, stores that, and answers.
    pub fn ask(
        &mut self,
        issuer: u32,
        invitation: &Invitation,
        application: &Application,
    ) -> Result<(PartyId, PartShare), RegistrationError> {
        let installation = Installation::usual();
        let stores =
            (&self.records as &dyn group_signatures::Register, &self.reservations as &dyn Reservations);
        let reservation = Reservation::make(&installation.group, invitation, stores, application)?;
        let stored = Reservation::decode(&reservation.encode()).unwrap();
        assert_eq!(stored, reservation);
        if self.reservations.reservation(&invitation.ticket).is_none() {
            self.reservations.0.push(stored);
        }
        let share = installation.share(party(issuer));
        let answer = reservation.answer(&installation.group, &share, &mut rng(u64::from(issuer))).unwrap();
        Ok((party(issuer), PartShare::decode(&answer.encode()).unwrap()))
    }

    pub fn register(
        &mut self,
        ticket: &[u8; TICKET_BYTES],
        shares: &[(PartyId, PartShare)],
        acceptance: &Acceptance,
    ) -> Result<Ticket, RegisterError> {
        let Installation { group, issuers, .. } = Installation::usual();
        let reservation = self.reservations.reservation(ticket).expect("a reservation");
        let ticket = reservation.register(group, issuers, &self.records, shares, acceptance)?;
        let stored = Ticket::decode(&ticket.encode()).unwrap();
        self.records.store(&stored);
        Ok(stored)
    }
}

/// An applicant with its ticket.
struct Person {
    identity: EvidenceKey,
    invitation: Invitation,
    applicant: Applicant,
    application: Application,
}

impl Person {
    fn new(seed: u64) -> Self {
        let identity = EvidenceKey::generate(&mut rng(seed));
        Self::with(seed, [u8::try_from(seed).unwrap(); 32], identity)
    }

    fn with(seed: u64, ticket: [u8; 32], identity: EvidenceKey) -> Self {
        let group = &Installation::usual().group;
        let invitation = Invitation { ticket, identity: identity.public() };
        let applicant = Applicant::new(group, &ticket, &mut rng(seed));
        let application = applicant.apply(&identity, &mut rng(seed + 1));
        let application = Application::decode(&application.encode()).unwrap();
        Self { identity, invitation, applicant, application }
    }

    /// An order of a run, as of a member that does not count.
    fn order(&self, number: u8) -> RunOrder {
        let group = &Installation::usual().group;
        order(group, &self.invitation.ticket, (number, session_id(SESSION)), &self.identity)
    }

    fn combine(&self, shares: &[(PartyId, PartShare)]) -> Result<Part, PartError> {
        let Installation { group, issuers, .. } = Installation::usual();
        Part::combine(group, issuers, &self.invitation, &self.application, shares)
    }

    fn accept(&self, part: &Part) -> (Candidate, Acceptance) {
        let answer = part.answer(&Installation::usual().group, &self.invitation, &self.application).unwrap();
        self.applicant.accept(&answer, &self.identity).unwrap()
    }
}

/// The answers of these issuers.
fn asked(person: &Person, stores: &mut [(u32, Store)]) -> Vec<(PartyId, PartShare)> {
    let ask = |(issuer, store): &mut (u32, Store)| {
        store.ask(*issuer, &person.invitation, &person.application).unwrap()
    };
    stores.iter_mut().map(ask).collect()
}

/// Asks these issuers, and registers with all of them.
fn registered(person: &Person, stores: &mut [(u32, Store)]) -> (Candidate, Part) {
    let shares = asked(person, stores);
    let part = person.combine(&shares).unwrap();
    let (candidate, acceptance) = person.accept(&part);
    for (_, store) in stores {
        let ticket = store.register(&person.invitation.ticket, &shares, &acceptance).unwrap();
        assert_eq!(ticket.member().unwrap(), candidate.point());
    }
    (candidate, part)
}

fn stores(issuers: &[u32]) -> Vec<(u32, Store)> {
    issuers.iter().map(|issuer| (*issuer, Store::default())).collect()
}

/// From ticket to credential, with a run that fails between.
#[test]
fn an_applicant_becomes_a_member() {
    let installation = Installation::usual();
    let person = Person::with(1, [1; 32], evidence_key(party(ABOVE)));
    let mut stores = stores(&[11, 12, 13]);
    let (mut candidate, part) = registered(&person, &mut stores);
    let mut joined = Vec::new();
    // The second run is with issuers of whom one has not counted the first.
    for (number, chosen, dropped_percent) in [(1, [11, 12], 100), (2, [12, 13], 0), (3, [11, 13], 0)] {
        let (order, own, secret) =
            candidate.order_run(number, session_id(number.into()), &person.identity).unwrap();
        let order = RunOrder::decode(&order.encode()).unwrap();
        let mut inputs = Vec::new();
        for (issuer, store) in stores.iter_mut().filter(|(issuer, _)| chosen.contains(issuer)) {
            let mut ticket = store.records.tickets[0].clone();
            let run = ticket.begin_ordered(&installation.group, &part, &order).unwrap();
            store.records.store(&ticket);
            assert_eq!(run.member(), own.member());
            assert!(run.identity() == Some(person.identity.public()) && run.identity() == own.identity());
            inputs.push((*issuer, installation.issuer_input(party(*issuer), run)));
        }
        inputs.push((ABOVE, JoinInput::Member { terms: installation.terms(own), secret }));
        let faults = Faults { dropped_percent, ..Faults::default() };
        joined.push(key_of(&mut installation.run(inputs, u64::from(number), faults), ABOVE));
    }
    assert!(joined[0].is_none());
    let credential = |place: usize| *joined[place].as_ref().unwrap().credential();
    assert_eq!(credential(1), credential(2));
    assert_eq!(joined[1].as_ref().unwrap().point(), candidate.point());
}

#[test]
fn any_issuers_give_the_same_part() {
    let person = Person::new(2);
    let mut all = stores(&[11, 12, 13]);
    let mut shares = || -> Vec<_> {
        all.iter_mut()
            .map(|(issuer, store)| store.ask(*issuer, &person.invitation, &person.application).unwrap())
            .collect()
    };
    let whole = person.combine(&shares()).unwrap();
    for left_out in 0..3 {
        let mut some = shares();
        some.remove(left_out);
        assert_eq!(person.combine(&some).unwrap(), whole);
        some.reverse();
        assert_eq!(person.combine(&some).unwrap(), whole);
    }
    assert_eq!(Part::decode(&whole.encode()), Some(whole));
    // Another person, ticket or group half has another part.
    let other = Person::new(3);
    let (_, part) = registered(&other, &mut stores(&[11, 12, 13]));
    assert_ne!(part, whole);
}

#[test]
fn wrong_shares_are_refused_with_their_issuer() {
    let person = Person::new(4);
    let group = &Installation::usual().group;
    let ask = |issuer| Store::default().ask(issuer, &person.invitation, &person.application).unwrap();
    let refused = |shares: Vec<(PartyId, PartShare)>| person.combine(&shares).err();
    assert_eq!(refused(vec![ask(11), ask(12)]), None);
    assert_eq!(refused(vec![ask(11)]), Some(PartError::TooFew(1)));
    assert_eq!(refused(vec![ask(11), ask(11)]), Some(PartError::Twice(party(11))));
    let (_, share) = ask(12);
    assert_eq!(refused(vec![ask(11), (party(13), share)]), Some(PartError::WrongShare(party(13))));
    let (_, share) = ask(12);
    assert_eq!(refused(vec![ask(11), (party(14), share)]), Some(PartError::NotAnIssuer(party(14))));
    for place in [1, PART_SHARE_BYTES - 33, PART_SHARE_BYTES - 1] {
        let mut bytes = ask(12).1.encode();
        bytes[place] ^= 1;
        let Some(share) = PartShare::decode(&bytes) else { continue };
        let refusal = refused(vec![ask(11), (party(12), share)]);
        assert_eq!(refusal, Some(PartError::WrongShare(party(12))), "byte {place}");
    }
    let mut outside = ask(12).1.encode();
    outside[..48].copy_from_slice(&small_order());
    assert!(PartShare::decode(&outside).is_none());
    assert!(Part::decode(&small_order().try_into().unwrap()).is_none());
    // Another element with its own proof: of a share that is not the issuer's.
    let stores = (&Records::default() as _, &Shelf::default() as _);
    let reservation = Reservation::make(group, &person.invitation, stores, &person.application).unwrap();
    let wrong = shifted(Installation::usual().share(party(12)));
    let share = reservation.answer(group, &wrong, &mut rng(1)).unwrap();
    let refusal = refused(vec![ask(11), (party(12), share)]);
    assert_eq!(refusal, Some(PartError::WrongShare(party(12))));
    // Shares for another applicant.
    let other = Person::new(5);
    let foreign = Store::default().ask(12, &other.invitation, &other.application).unwrap();
    assert_eq!(refused(vec![ask(11), foreign]), Some(PartError::WrongShare(party(12))));
}

/// A part that a member has chosen with fewer issuers than the threshold, and a member that too few have bound.
#[test]
fn a_part_that_issuers_have_not_made_is_refused() {
    let person = Person::new(6);
    let installation = Installation::usual();
    let mut all = stores(&[11, 12, 13]);
    let shares = asked(&person, &mut all);
    let (_, store) = &mut all[0];
    let chosen = Part::decode(&G1::hash(b"chosen", b"test").to_compressed()).unwrap();
    assert_eq!(chosen.answer(&installation.group, &person.invitation, &person.application), None);
    let (_, another) = person.applicant.accept(&Answer::decode([0; 32]), &person.identity).unwrap();
    let part = person.combine(&shares).unwrap();
    let (_, acceptance) = person.accept(&part);
    let ticket = &person.invitation.ticket;
    // The right part, and an acceptance of another point.
    let refused = store.register(ticket, &shares, &another).err();
    assert_eq!(refused, Some(RegisterError::Registration(RegistrationError::WrongAnswer)));
    // Enough to combine, and too few to register; the same issuer twice; the data of other issuers.
    let refused = store.register(ticket, &shares[..2], &acceptance).err();
    assert_eq!(refused, Some(RegisterError::Part(PartError::TooFew(2))));
    let mut twice = asked(&person, &mut stores(&[11, 12]));
    twice.extend(asked(&person, &mut stores(&[12])));
    let refused = store.register(ticket, &twice, &acceptance).err();
    assert_eq!(refused, Some(RegisterError::Part(PartError::Twice(party(12)))));
    let others = Installation::new(2, 4);
    let reservation = store.reservations.reservation(ticket).unwrap();
    let register = |group, issuers| {
        reservation.register(group, issuers, &Records::default(), &shares, &acceptance).err()
    };
    let refused = register(&installation.group, &others.issuers);
    assert_eq!(refused, Some(RegisterError::Part(PartError::WrongIssuers)));
    let refused = register(&others.group, &others.issuers);
    assert_eq!(refused, Some(RegisterError::Registration(RegistrationError::WrongRecord)));
    assert!(store.records.tickets.is_empty());
    assert!(store.register(ticket, &shares, &acceptance).is_ok());
}

/// A record of one group is none of another, and a share of one key answers for no other's group.
#[test]
fn a_reservation_is_of_its_group() {
    let (installation, other) = (Installation::usual(), Installation::new(2, 4));
    let person = Person::new(17);
    let stores = (&Records::default() as _, &Shelf::default() as _);
    let reservation =
        Reservation::make(&installation.group, &person.invitation, stores, &person.application).unwrap();
    let answer = |group, share| reservation.answer(group, &share, &mut rng(1)).err();
    assert_eq!(answer(&installation.group, installation.share(party(11))), None);
    let refused = Some(RegistrationError::WrongRecord);
    assert_eq!(answer(&other.group, other.share(party(11))), refused);
    assert_eq!(answer(&installation.group, other.share(party(11))), refused);
}

#[test]
fn a_ticket_is_for_one_application_at_each_issuer() {
    let person = Person::new(7);
    let mut store = Store::default();
    let (_, first) = store.ask(11, &person.invitation, &person.application).unwrap();
    // The same application again: the same element, though the proof has another nonce.
    let (_, again) = store.ask(11, &person.invitation, &person.application).unwrap();
    assert_eq!(first.encode()[..48], again.encode()[..48]);
    let another = Person::with(8, person.invitation.ticket, EvidenceKey::from_seed(&person.identity.seed()));
    let refused = store.ask(11, &another.invitation, &another.application).err();
    assert_eq!(refused, Some(RegistrationError::TicketBound));
    // After the registration too, also at an issuer that has lost the reservation.
    let mut stores = [(11, store), (12, Store::default()), (13, Store::default())];
    registered(&person, &mut stores);
    let [(_, mut store), _, _] = stores;
    let refused = store.ask(11, &another.invitation, &another.application).err();
    assert_eq!(refused, Some(RegistrationError::TicketBound));
    store.reservations = Shelf::default();
    for application in [&person.application, &another.application] {
        let refused = store.ask(11, &person.invitation, application).err();
        assert_eq!(refused, Some(RegistrationError::TicketBound));
    }
    // The same identity with a second ticket.
    let second = Person::with(9, [99; 32], EvidenceKey::from_seed(&person.identity.seed()));
    let refused = store.ask(11, &second.invitation, &second.application).err();
    assert_eq!(refused, Some(RegistrationError::IdentityTaken));
}

#[test]
fn an_application_is_the_invited_identitys() {
    let (person, other) = (Person::new(10), Person::new(11));
    let refused = |invitation: &Invitation, application: &Application| {
        Store::default().ask(11, invitation, application).err()
    };
    assert_eq!(refused(&person.invitation, &person.application), None);
    let stolen = refused(&person.invitation, &other.application);
    assert_eq!(stolen, Some(RegistrationError::Identity));
    let mut bytes = person.application.encode();
    bytes[48 + 63] ^= 1;
    let unproven = Application::decode(&bytes).unwrap();
    assert_eq!(refused(&person.invitation, &unproven), Some(RegistrationError::Proof));
    let mut full = Store::default();
    full.records.others = MAX_MEMBERS;
    let refusal = full.ask(11, &person.invitation, &person.application).err();
    assert_eq!(refusal, Some(RegistrationError::GroupFull));
}

/// A member's point that somebody else has already.
#[test]
fn a_registered_point_is_refused() {
    let person = Person::new(12);
    let mut two = stores(&[11, 12, 13]);
    let (candidate, part) = registered(&person, &mut two);
    let (_, acceptance) = person.accept(&part);
    let mut other = Store::default();
    other.ask(13, &person.invitation, &person.application).unwrap();
    let shares = asked(&person, &mut two);
    // The same point under another ticket's name.
    let mut taken = two[0].1.records.tickets[0].encode();
    taken[..32].fill(1);
    taken[32..64].copy_from_slice(EvidenceKey::generate(&mut rng(50)).public().as_bytes());
    other.records.store(&Ticket::decode(&taken).unwrap());
    assert!(other.records.tickets[0].member().unwrap() == candidate.point());
    let refused = other.register(&person.invitation.ticket, &shares, &acceptance).err();
    assert_eq!(refused, Some(RegisterError::Registration(RegistrationError::PointTaken)));
}

/// Runs are counted by each issuer, and a number is used once there.
#[test]
fn runs_are_bounded_at_every_issuer() {
    let installation = Installation::usual();
    let person = Person::new(13);
    let mut two = stores(&[11, 12, 13]);
    let (mut candidate, part) = registered(&person, &mut two);
    let mut ticket = two[0].1.records.tickets[0].clone();
    let begin =
        |ticket: &mut Ticket, order: &RunOrder| ticket.begin_ordered(&installation.group, &part, order).err();
    // The last number without the identity's signature: nothing is counted, and the ticket is as it was.
    let mut forged = person.order(1).encode();
    forged[0] = MAX_ATTEMPTS;
    let mut elsewhere = person.order(MAX_ATTEMPTS).encode();
    elsewhere[1] ^= 1;
    let mut unsigned = person.order(MAX_ATTEMPTS).encode();
    unsigned[33] ^= 1;
    let stranger = Person::with(50, person.invitation.ticket, EvidenceKey::generate(&mut rng(50)));
    let foreign = stranger.order(MAX_ATTEMPTS).encode();
    let (other_ticket, other_identity) = ([51; 32], EvidenceKey::from_seed(&person.identity.seed()));
    let other_ticket = Person::with(51, other_ticket, other_identity).order(MAX_ATTEMPTS).encode();
    let before = ticket.encode();
    for bytes in [forged, elsewhere, unsigned, foreign, other_ticket] {
        let refused = begin(&mut ticket, &RunOrder::decode(&bytes).unwrap());
        assert_eq!(refused, Some(RegistrationError::Identity));
        assert_eq!(ticket.encode(), before);
    }
    for never in [0, MAX_ATTEMPTS + 1, u8::MAX] {
        assert_eq!(begin(&mut ticket, &person.order(never)), Some(RegistrationError::AttemptsSpent));
    }
    assert_eq!(begin(&mut ticket, &person.order(3)), None);
    for used in 1..=3 {
        assert_eq!(begin(&mut ticket, &person.order(used)), Some(RegistrationError::AttemptsSpent));
    }
    assert_eq!(begin(&mut ticket, &person.order(MAX_ATTEMPTS)), None);
    assert!(ticket.begin_attempt(&installation.group, &part).is_err());
    assert!(candidate.begin_attempt(1).is_ok());
    assert!(candidate.begin_attempt(1).is_err());
    // The part of another ticket is no key to this record.
    let (_, other) = registered(&Person::new(14), &mut stores(&[11, 12, 13]));
    let mut fresh = two[1].1.records.tickets[0].clone();
    let refused = fresh.begin_ordered(&installation.group, &other, &person.order(1)).err();
    assert_eq!(refused, Some(RegistrationError::WrongRecord));
}

/// A record that was altered in the store: the point is checked against the part before a run begins.
#[test]
fn an_altered_record_begins_no_run() {
    let installation = Installation::usual();
    let person = Person::new(15);
    let mut two = stores(&[11, 12, 13]);
    let (_, part) = registered(&person, &mut two);
    let bytes = two[0].1.records.tickets[0].encode();
    // Ticket, identity, application, part, member's point: another part with the point that follows from it.
    let (scalar, point) = (32 + 32 + 48, 32 + 32 + 48 + 32);
    let mut altered = bytes.clone();
    let other = Secret::new(Scalar::from_u64(3));
    let moved = person.application.point().plus(&G1::mul_generator(&other));
    altered[scalar..point].copy_from_slice(&other.expose().to_bytes());
    altered[point..point + 48].copy_from_slice(&moved.to_compressed());
    let mut ticket = Ticket::decode(&altered).unwrap();
    let refused = ticket.begin_ordered(&installation.group, &part, &person.order(1)).err();
    assert_eq!(refused, Some(RegistrationError::WrongRecord));
    let mut unsigned = bytes;
    let signature = point + 48 + 1;
    unsigned[signature] ^= 1;
    let mut ticket = Ticket::decode(&unsigned).unwrap();
    let refused = ticket.begin_ordered(&installation.group, &part, &person.order(1)).err();
    assert_eq!(refused, Some(RegistrationError::NotAccepted));
}

/// Issuer 12 and the applicant are corrupt, and 11 and 13 follow the rules. One ticket, one identity, two applications:
/// issuer 12 answers both, and each of the others has heard of one.
#[test]
fn one_corrupt_issuer_does_not_make_two_members_of_one_ticket() {
    let person = Person::new(40);
    let again = Person::with(41, person.invitation.ticket, EvidenceKey::from_seed(&person.identity.seed()));
    let mut honest = [Store::default(), Store::default()];
    for (applicant, issuer, store) in [(&person, 11, 0), (&again, 13, 1)] {
        let own = honest[store].ask(issuer, &applicant.invitation, &applicant.application).unwrap();
        let corrupt = Store::default().ask(12, &applicant.invitation, &applicant.application).unwrap();
        let shares = [own, corrupt];
        let (_, acceptance) = applicant.accept(&applicant.combine(&shares).unwrap());
        let refused = honest[store].register(&applicant.invitation.ticket, &shares, &acceptance).err();
        assert_eq!(refused, Some(RegisterError::Part(PartError::TooFew(2))));
        assert!(honest[store].records.tickets.is_empty());
    }
    // The share that is missing is that of the issuer that has bound the ticket to the other application.
    let refused = honest[1].ask(13, &person.invitation, &person.application).err();
    assert_eq!(refused, Some(RegistrationError::TicketBound));
    let refused = honest[0].ask(11, &again.invitation, &again.application).err();
    assert_eq!(refused, Some(RegistrationError::TicketBound));
}

/// A person whom all issuers have answered for one ticket, and none has registered: a second ticket of the same
/// identity finds it taken, after a restart too, and the first still gives its member.
#[test]
fn an_identity_with_two_tickets_stays_with_the_first() {
    let person = Person::new(60);
    let second = Person::with(62, [63; 32], EvidenceKey::from_seed(&person.identity.seed()));
    let mut stores = stores(&[11, 12, 13]);
    let before = asked(&person, &mut stores);
    for restarted in [false, true] {
        for (issuer, store) in &mut stores {
            if restarted {
                let kept =
                    store.reservations.0.iter().map(|held| Reservation::decode(&held.encode()).unwrap());
                store.reservations.0 = kept.collect();
            }
            let refused = store.ask(*issuer, &second.invitation, &second.application).err();
            assert_eq!(refused, Some(RegistrationError::IdentityTaken), "issuer {issuer}");
            assert_eq!(store.reservations.0.len(), 1);
        }
    }
    let (candidate, part) = registered(&person, &mut stores);
    assert_eq!(part, person.combine(&before).unwrap());
    for (issuer, store) in &mut stores {
        let refused = store.ask(*issuer, &second.invitation, &second.application).err();
        assert_eq!(refused, Some(RegistrationError::IdentityTaken));
        assert_eq!(store.records.tickets[0].member().unwrap(), candidate.point());
    }
    // Somebody else is not held up.
    registered(&Person::new(65), &mut stores);
}

/// Issuer 12 and the applicant are corrupt, and 11 and 13 follow the rules. One identity, two tickets: issuer 12
/// answers both, and each of the others has heard of one. Both would be members, one in the records of 11 and one in
/// those of 13, if only members counted as taken.
#[test]
fn one_corrupt_issuer_does_not_make_two_members_of_one_identity() {
    let person = Person::new(66);
    let again = Person::with(67, [68; 32], EvidenceKey::from_seed(&person.identity.seed()));
    let mut honest = [Store::default(), Store::default()];
    let applicants = [(&person, 11, 0), (&again, 13, 1)];
    for (applicant, issuer, store) in applicants {
        honest[store].ask(issuer, &applicant.invitation, &applicant.application).unwrap();
    }
    for (applicant, issuer, store) in applicants {
        let (other, number) = if store == 0 { (1, 13) } else { (0, 11) };
        let refused = honest[other].ask(number, &applicant.invitation, &applicant.application).err();
        assert_eq!(refused, Some(RegistrationError::IdentityTaken), "issuer {number}");
        let own = honest[store].ask(issuer, &applicant.invitation, &applicant.application).unwrap();
        let corrupt = Store::default().ask(12, &applicant.invitation, &applicant.application).unwrap();
        let shares = [own, corrupt];
        let (_, acceptance) = applicant.accept(&applicant.combine(&shares).unwrap());
        let refused = honest[store].register(&applicant.invitation.ticket, &shares, &acceptance).err();
        assert_eq!(refused, Some(RegisterError::Part(PartError::TooFew(2))));
        assert!(honest[store].records.tickets.is_empty());
    }
}

/// 2 of 4, and nobody corrupt but the applicant: two pairs of issuers that have not met, and three that have.
#[test]
fn issuers_that_have_not_met_register_nobody() {
    let installation = Installation::new(2, 4);
    let Installation { group, issuers, .. } = &installation;
    let identity = EvidenceKey::generate(&mut rng(1));
    let ticket = [9; 32];
    let invitation = Invitation { ticket, identity: identity.public() };
    assert_eq!(issuers.quorum(), 3);
    let mut outcomes = Vec::new();
    for (seed, asked) in [(910u64, [11u32, 12].as_slice()), (911, &[13, 14]), (912, &[11, 12, 14])] {
        let applicant = Applicant::new(group, &ticket, &mut rng(seed));
        let application = applicant.apply(&identity, &mut rng(seed));
        let empty = (&Records::default() as _, &Shelf::default() as _);
        let reservation = Reservation::make(group, &invitation, empty, &application).unwrap();
        let answer = |issuer: &u32| {
            let share = installation.share(party(*issuer));
            (party(*issuer), reservation.answer(group, &share, &mut rng(seed)).unwrap())
        };
        let shares: Vec<_> = asked.iter().map(answer).collect();
        let part = Part::combine(group, issuers, &invitation, &application, &shares).unwrap();
        let answer = part.answer(group, &invitation, &application).unwrap();
        let (_, acceptance) = applicant.accept(&answer, &identity).unwrap();
        let made = reservation.register(group, issuers, &Records::default(), &shares, &acceptance);
        outcomes.push(made.map(|_| ()));
    }
    let refused = Err(RegisterError::Part(PartError::TooFew(2)));
    assert_eq!(outcomes, [refused, refused, Ok(())]);
}

/// Any two sets that are large enough to register share more issuers than may be corrupt, and no smaller ones do.
#[test]
fn quorums_meet_in_an_honest_issuer() {
    for (threshold, count) in [(2, 2), (2, 3), (2, 4), (3, 4), (3, 5), (4, 7), (5, 9)] {
        let quorum = Installation::new(threshold, count).issuers.quorum();
        let (threshold, count) = (usize::try_from(threshold).unwrap(), usize::try_from(count).unwrap());
        assert!(quorum >= threshold && quorum <= count);
        assert!(2 * quorum >= count + threshold, "{threshold} of {count}");
        assert!(2 * (quorum - 1) < count + threshold, "{threshold} of {count}");
    }
}
