//! Joins that go well, and inputs with which none starts.

use engine::session::Session;
use engine::{PartyId, Secret, SetupError};
use group_signatures::forge::{attempt, ordered};
use group_signatures::{Approval, Attempt, Decision, Request, count};
use primitives::bls12_381::{G1, Scalar};
use sim::{Faults, Packet};
use threshold_issuer::{Join, JoinInput, JoinOutput};

use crate::installation::{
    ABOVE, BELOW, Installation, SESSION, TICKET, duplicate, evidence_key, key_of, party, rng,
};

fn secret(seed: u64) -> Secret<Scalar> {
    Secret::new(Scalar::random(&mut rng(seed)))
}

/// Every threshold, some sets of issuers, more of them than it takes, and a member before and after them.
#[test]
fn every_set_of_enough_issuers_gives_the_same_credential() {
    let cases: [(u32, u32, &[&[u32]]); 4] = [
        (2, 2, &[&[11, 12]]),
        (2, 3, &[&[11, 12], &[11, 13], &[12, 13], &[11, 12, 13]]),
        (3, 4, &[&[11, 12, 13], &[11, 13, 14], &[11, 12, 13, 14]]),
        (4, 7, &[&[12, 14, 16, 17]]),
    ];
    let mut session = 0;
    for (threshold, size, sets) in cases {
        let installation = Installation::new(threshold, size);
        let secret = secret(u64::from(size));
        for (set, member) in sets.iter().flat_map(|set| [(set, ABOVE), (set, BELOW)]) {
            session += 1;
            let mut outcomes = installation.join(set, (member, &secret), session, Faults::default());
            for issuer in *set {
                let done = &outcomes[&Some(party(*issuer))].done;
                assert!(matches!(done, Some(JoinOutput::Answered)), "{threshold} of {size}, {set:?}");
            }
            let key = key_of(&mut outcomes, member).unwrap();
            assert_eq!(*key.credential(), installation.credential(&secret), "{threshold} of {size}, {set:?}");
            assert_eq!(key.point(), G1::mul_generator(&secret));
        }
    }
}

/// Nothing of an approval tells how many issuers there were.
#[test]
fn members_approve_as_those_of_one_manager_do() {
    let installation = Installation::usual();
    let request = Request { digest: [7; 32], decision: Decision::Approve };
    let approvals: Vec<Approval> = (0..3)
        .map(|number| {
            let secret = secret(60 + number);
            let faults = Faults::default();
            let mut outcomes = installation.join(&[11, 13], (ABOVE, &secret), 60 + number, faults);
            let key = key_of(&mut outcomes, ABOVE).unwrap();
            let approval = key.approve(&installation.group, &request, &mut rng(number)).unwrap();
            Approval::decode(&approval.encode()).unwrap()
        })
        .collect();
    assert!(count(&installation.group, &request, &approvals, 3, &mut rng(9)).is_ok());
    let other = Request { digest: [8; 32], decision: Decision::Approve };
    assert!(approvals[0].verify(&installation.group, &other).is_err());
}

/// Two joins of one ticket: the same credential, and no body of one is a body of the other.
#[test]
fn a_join_that_is_repeated_shows_nothing_alike() {
    let installation = Installation::usual();
    let secret = secret(70);
    let mut bodies = [Vec::new(), Vec::new()];
    let mut credentials = Vec::new();
    for (session, bodies) in [71, 72].into_iter().zip(&mut bodies) {
        let record = |packet: Packet| {
            let body = engine::forge::Forged::open(&packet.bytes).unwrap().body;
            // Empty ones, of who has nothing to say in a round.
            if body.len() > 4 {
                bodies.push(body);
            }
            vec![packet]
        };
        let faults = Faults { tamper: Some(Box::new(record)), ..Faults::default() };
        let mut outcomes = installation.join(&[11, 12], (ABOVE, &secret), session, faults);
        credentials.push(*key_of(&mut outcomes, ABOVE).unwrap().credential());
    }
    assert_eq!(credentials[0], credentials[1]);
    // Six of round 1, three each of rounds 2 and 3, six each of rounds 4 and 5, two of round 6.
    assert_eq!(bodies.each_ref().map(Vec::len), [26, 26]);
    assert!(bodies[0].iter().all(|body| !bodies[1].contains(body)));
}

fn refused(me: u32, parties: &[u32], input: JoinInput, payload: &[u8]) -> Option<SetupError> {
    let parties: Vec<PartyId> = parties.iter().map(|number| party(*number)).collect();
    let settings = Installation::usual().settings(party(me), &parties, 80, payload);
    Session::<Join>::start(settings, Some(evidence_key(party(me))), input, &mut rng(1)).err()
}

#[test]
fn sessions_that_do_not_fit_do_not_start() {
    let installation = Installation::usual();
    let secret = secret(81);
    let terms = || installation.terms(installation.attempt(&secret));
    let payload = terms().payload();
    let issuer = |number: u32| installation.issuer_input(party(number), installation.attempt(&secret));
    let member = |own: &Secret<Scalar>| JoinInput::Member { terms: terms(), secret: duplicate(own) };
    assert_eq!(refused(11, &[11, 12, ABOVE], issuer(11), &payload), None);
    assert_eq!(refused(ABOVE, &[11, 12, ABOVE], member(&secret), &payload), None);
    // Too few issuers; two members; none.
    let short = refused(11, &[11, ABOVE], issuer(11), &payload);
    assert_eq!(short, Some(SetupError::SigningSetTooSmall));
    let two = refused(11, &[11, 12, 99, ABOVE], issuer(11), &payload);
    assert_eq!(two, Some(SetupError::PartyCount));
    assert_eq!(refused(11, &[11, 12], issuer(11), &payload), Some(SetupError::PartyCount));
    // Another payload; another's share; an issuer in the member's place.
    let other = refused(11, &[11, 12, ABOVE], issuer(11), &[0; 32]);
    assert_eq!(other, Some(SetupError::PayloadInvalid));
    let share = refused(11, &[11, 12, ABOVE], issuer(12), &payload);
    assert_eq!(share, Some(SetupError::ShareMismatch));
    let place = refused(11, &[11, 12, ABOVE], member(&secret), &payload);
    assert_eq!(place, Some(SetupError::InputUnexpected));
    // A member with another secret than the registered one.
    let another = Secret::new(secret.expose().add(&Scalar::one()));
    let wrong = refused(ABOVE, &[11, 12, ABOVE], member(&another), &payload);
    assert_eq!(wrong, Some(SetupError::ShareInvalid));
}

/// The identity, and the negative of X_m, whose joint key is zero.
#[test]
fn points_without_a_signature_do_not_start() {
    let installation = Installation::usual();
    for point in [G1::identity(), installation.group.issuer().negated()] {
        let run = || ordered(attempt(&installation.group, TICKET, 1, point), SESSION);
        let payload = installation.terms(run()).payload();
        let input = installation.issuer_input(party(11), run());
        let refused = refused(11, &[11, 12, ABOVE], input, &payload);
        assert_eq!(refused, Some(SetupError::PayloadInvalid));
    }
}

/// A run that the ticket's identity has not ordered, and one whose order is not the one of the payload.
#[test]
fn runs_that_nobody_ordered_do_not_start() {
    let installation = Installation::usual();
    let point = G1::mul_generator(&secret(83));
    let unordered = || attempt(&installation.group, TICKET, 1, point);
    let other = || ordered(unordered(), [1; 32]);
    let start = |run: Attempt, payload: Attempt| {
        let payload = installation.terms(payload).payload();
        refused(11, &[11, 12, ABOVE], installation.issuer_input(party(11), run), &payload)
    };
    assert_eq!(start(unordered(), unordered()), Some(SetupError::PayloadInvalid));
    assert_eq!(start(other(), ordered(unordered(), SESSION)), Some(SetupError::PayloadInvalid));
    assert_eq!(start(other(), other()), None);
}

/// Runs of another group, and the issuers of another key.
#[test]
fn another_group_does_not_start() {
    let installation = Installation::usual();
    let stranger = Installation::new(2, 4);
    let secret = secret(82);
    let foreign: Attempt = stranger.attempt(&secret);
    let payload = installation.terms(stranger.attempt(&secret)).payload();
    let input = installation.issuer_input(party(11), foreign);
    let refusal = refused(11, &[11, 12, ABOVE], input, &payload);
    assert_eq!(refusal, Some(SetupError::ShareMismatch));
    let mut terms = installation.terms(installation.attempt(&secret));
    terms.issuers = stranger.issuers.clone();
    let payload = terms.payload();
    let input = JoinInput::Issuer { terms, share: stranger.share(party(11)).into() };
    let refusal = refused(11, &[11, 12, ABOVE], input, &payload);
    assert_eq!(refusal, Some(SetupError::KeyPublicInvalid));
}
