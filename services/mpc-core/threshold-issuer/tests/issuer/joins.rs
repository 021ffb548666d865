//! Joins that go well, and inputs with which none starts.

use engine::forge::Forged;
use engine::session::Session;
use engine::{EvidenceKey, PartyId, PartySet, Secret, SessionId, SetupError};
use group_signatures::forge::{attempt, ordered};
use group_signatures::{Approval, Attempt, Decision, Request, count};
use primitives::bls12_381::{G1, Scalar};
use sim::{Faults, Packet, World};
use threshold_issuer::{Join, JoinInput, JoinOutput, JoinTerms};

use crate::installation::{
    ABOVE, BELOW, Installation, Outcomes, SESSION, TICKET, duplicate, evidence_key, identity, key_of, party,
    rng, session_id,
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
    let settings = Installation::usual().settings(party(me), &parties, SESSION, payload);
    Session::<Join>::start(settings, Some(evidence_key(party(me))), input, &mut rng(1)).err()
}

#[test]
fn sessions_that_do_not_fit_do_not_start() {
    let installation = Installation::usual();
    let secret = secret(81);
    let run = || installation.attempt((ABOVE, &secret), SESSION);
    let terms = || installation.terms(run());
    let payload = terms().payload();
    let issuer = |number: u32| installation.issuer_input(party(number), run());
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
        let run =
            || ordered(attempt(&installation.group, TICKET, 1, point), session_id(SESSION), &identity(ABOVE));
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
    let right = || ordered(unordered(), session_id(SESSION), &identity(ABOVE));
    let other = || ordered(unordered(), [1; 32], &identity(ABOVE));
    let start = |run: Attempt, payload: Attempt| {
        let payload = installation.terms(payload).payload();
        refused(11, &[11, 12, ABOVE], installation.issuer_input(party(11), run), &payload)
    };
    assert_eq!(start(unordered(), unordered()), Some(SetupError::PayloadInvalid));
    assert_eq!(start(other(), right()), Some(SetupError::PayloadInvalid));
    assert_eq!(start(right(), right()), None);
    // A run of another session than this one; a member's place with another key than the identity's.
    assert_eq!(start(other(), other()), Some(SetupError::PayloadInvalid));
    let stranger = || ordered(unordered(), session_id(SESSION), &identity(BELOW));
    assert_eq!(start(stranger(), stranger()), Some(SetupError::EvidenceKeyInvalid));
}

/// Another party's place under another key than the configured one. The own place the engine looks at itself.
#[test]
fn sessions_with_other_keys_do_not_start() {
    let installation = Installation::usual();
    let secret = secret(85);
    let run = || installation.attempt((ABOVE, &secret), SESSION);
    let payload = installation.terms(run()).payload();
    let parties = [11, 12, ABOVE].map(party);
    for place in 1..3 {
        let mut settings = installation.settings(party(11), &parties, SESSION, &payload);
        settings.roster[place].evidence_key = Some(evidence_key(party(99)).public());
        let input = installation.issuer_input(party(11), run());
        let started = Session::<Join>::start(settings, Some(evidence_key(party(11))), input, &mut rng(1));
        assert_eq!(started.err(), Some(SetupError::EvidenceKeyInvalid), "place {place}");
    }
}

/// Runs of another group, and the issuers of another key.
#[test]
fn another_group_does_not_start() {
    let installation = Installation::usual();
    let stranger = Installation::new(2, 4);
    let secret = secret(82);
    let run = |of: &Installation| of.attempt((ABOVE, &secret), SESSION);
    let foreign: Attempt = run(&stranger);
    let payload = installation.terms(run(&stranger)).payload();
    let input = installation.issuer_input(party(11), foreign);
    let refusal = refused(11, &[11, 12, ABOVE], input, &payload);
    assert_eq!(refusal, Some(SetupError::ShareMismatch));
    let terms = installation.terms(run(installation));
    let payload = terms.payload();
    let input = JoinInput::Issuer { terms, share: stranger.share(party(11)).into() };
    let refusal = refused(11, &[11, 12, ABOVE], input, &payload);
    assert_eq!(refusal, Some(SetupError::ShareMismatch));
}

/// The run of a ticket of this identity.
fn run_of(identity: &EvidenceKey) -> JoinTerms {
    let installation = Installation::usual();
    let run = attempt(&installation.group, TICKET, 1, G1::mul_generator(&secret(84)));
    installation.terms(ordered(run, session_id(SESSION), &identity.public()))
}

/// A join of issuers 11 and 12 in the session that its terms make, for a ticket of the usual identity. The party in
/// the member's place has the member's secret, makes its session for the identity `claimed`, and signs with `signing`.
fn joined_by(claimed: &EvidenceKey, signing: &EvidenceKey) -> Outcomes {
    let installation = Installation::usual();
    let identity = evidence_key(party(ABOVE));
    let issuers: PartySet = [11, 12].map(party).into_iter().collect();
    let start = |number: u32| {
        let me = party(number);
        let (key, terms, input) = if number == ABOVE {
            let input = JoinInput::Member { terms: run_of(claimed), secret: secret(84) };
            (EvidenceKey::from_seed(&claimed.seed()), run_of(claimed), input)
        } else {
            let share = installation.share(me).into();
            (evidence_key(me), run_of(&identity), JoinInput::Issuer { terms: run_of(&identity), share })
        };
        let settings = terms.settings(me, party(ABOVE), &issuers).unwrap();
        let mut rng = rng(u64::from(number));
        (Some(me), Session::<Join>::start(settings, Some(key), input, &mut rng).unwrap())
    };
    let tamper = |mut packet: Packet| {
        if packet.from == party(ABOVE) {
            packet.bytes = Forged::open(&packet.bytes).unwrap().encode(signing);
        }
        vec![packet]
    };
    let faults = Faults { tamper: Some(Box::new(tamper)), ..Faults::default() };
    World::<Join>::new(84, faults, [11, 12, ABOVE].map(start)).run()
}

/// A thief that has all secrets of a member but the key of its identity gets nothing, and nobody is blamed for it.
#[test]
fn only_the_tickets_identity_takes_the_members_place() {
    let (identity, thief) = (evidence_key(party(ABOVE)), evidence_key(party(99)));
    let mut outcomes = joined_by(&identity, &identity);
    let key = key_of(&mut outcomes, ABOVE).unwrap();
    assert_eq!(*key.credential(), Installation::usual().credential(&secret(84)));
    // A session of its own, and messages in the identity's session under the thief's signature.
    for claimed in [&thief, &identity] {
        let outcomes = joined_by(claimed, &thief);
        assert!(outcomes.values().all(|outcome| outcome.done.is_none() && outcome.aborts.is_empty()));
        for issuer in [11, 12] {
            let outcome = &outcomes[&Some(party(issuer))];
            assert!(outcome.rejects.iter().any(|(sender, _)| *sender == party(ABOVE)));
            assert_eq!(outcome.missing.iter().collect::<Vec<_>>(), [party(ABOVE)]);
        }
    }
}

/// The session is the ordered one, with configured keys; there is none for a stranger or without an order.
#[test]
fn a_session_follows_from_its_order() {
    let installation = Installation::usual();
    let identity = evidence_key(party(ABOVE));
    let terms = run_of(&identity);
    let made = |terms: &JoinTerms, member: u32, issuers: &[u32]| {
        let issuers: PartySet = issuers.iter().map(|number| party(*number)).collect();
        terms.settings(party(11), party(member), &issuers)
    };
    for (member, expected) in [(ABOVE, [11, 13, ABOVE]), (BELOW, [BELOW, 11, 13])] {
        let settings = made(&terms, member, &[11, 13]).unwrap();
        assert!(
            settings.session_id == SessionId::new(session_id(SESSION)) && settings.payload == terms.payload()
        );
        assert_eq!(settings.roster.iter().map(|entry| entry.id).collect::<Vec<_>>(), expected.map(party));
        for entry in settings.roster {
            let key =
                if entry.id == party(member) { identity.public() } else { evidence_key(entry.id).public() };
            assert!(entry.evidence_key == Some(key));
        }
    }
    assert_eq!(made(&terms, 13, &[11, 12]).err(), Some(SetupError::PartyCount));
    assert_eq!(made(&terms, ABOVE, &[11, 14]).err(), Some(SetupError::SigningSetNotOfKey));
    let unordered = attempt(&installation.group, TICKET, 1, G1::mul_generator(&secret(84)));
    let refused = made(&installation.terms(unordered), ABOVE, &[11, 12]).err();
    assert_eq!(refused, Some(SetupError::PayloadInvalid));
    // Sides that do not agree whose ticket it is agree on no payload.
    assert_ne!(terms.payload(), run_of(&evidence_key(party(99))).payload());
}
