//! Wrong, missing, replayed and unwanted partial signatures: the good ones still make the signature if there are
//! enough, the bad ones are named, and nobody else is.

use crate::common;
use std::collections::BTreeMap;

use crate::common::{
    evidence_key, keygen, party, reopen, rng, settings, sign_with, start_observer, start_sign, threshold,
};
use engine::forge::Forged;
use engine::session::{Progress, Session};
use engine::{AbortCause, PartyId, Reject, SetupError};
use primitives::bls12_381::UncheckedG2;
use primitives::shamir::Weights;
use protocols::bls::{Claim, KeyShare, MAX_MESSAGE_BYTES, SignInput, Signing, verify_all};
use sim::{Address, Faults, Outcome, Packet};

type Outcomes = BTreeMap<Address, Outcome<protocols::bls::SignOutput>>;

const MESSAGE: &[u8] = b"pay nobody";

/// The corrupt parties' partial signatures are changed on their way to everybody.
fn sign_altered(
    shares: &BTreeMap<u32, KeyShare>,
    signers: &[u32],
    corrupt: &[u32],
    seed: u64,
    change: impl Fn(&mut Vec<u8>),
) -> Outcomes {
    let tamper = |packet: Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        if corrupt.contains(&u32::from(packet.from.get())) {
            change(&mut forged.body);
        }
        vec![Packet { bytes: forged.encode(&evidence_key(packet.from)), ..packet }]
    };
    sign_with(shares, signers, MESSAGE, seed, Faults { tamper: Some(Box::new(tamper)), ..Faults::default() })
}

/// Some point of the curve outside the subgroup.
fn outside_subgroup() -> [u8; 96] {
    (1u8..)
        .map(|last| {
            let mut bytes = [0u8; 96];
            (bytes[0], bytes[95]) = (0x80, last);
            bytes
        })
        .find(|bytes| UncheckedG2::from_compressed(bytes).is_some_and(|point| point.check().is_none()))
        .unwrap()
}

fn honest(outcomes: &Outcomes, corrupt: &[u32]) -> Vec<Address> {
    outcomes
        .keys()
        .copied()
        .filter(|address| !address.is_some_and(|id| corrupt.contains(&u32::from(id.get()))))
        .collect()
}

fn reference(shares: &BTreeMap<u32, KeyShare>, signers: &[u32]) -> [u8; 96] {
    sign_with(shares, signers, MESSAGE, 0, Faults::default())[&None].done.as_ref().unwrap().signature
}

/// Bodies that are put in the place of a partial signature, and the cause that each is rejected for.
fn changes(shares: &BTreeMap<u32, KeyShare>) -> Vec<(&'static str, Vec<u8>, AbortCause)> {
    let (_, step) = start_sign(&shares[&1], &[1, 2, 3], 9, b"another message").unwrap();
    let other_message = step.outgoing[0].body().to_vec();
    let mut identity = vec![0u8; 96];
    identity[0] = 0xc0;
    let mut not_canonical = vec![0xff; 96];
    not_canonical[0] = 0x9f;
    vec![
        ("another message", other_message, AbortCause::WrongPartialSignature),
        ("joint signature", reference(shares, &[1, 2, 3]).to_vec(), AbortCause::WrongPartialSignature),
        (
            "proof of possession",
            shares[&1].public().proof_of_possession.to_vec(),
            AbortCause::WrongPartialSignature,
        ),
        ("outside the subgroup", outside_subgroup().to_vec(), AbortCause::InvalidPoint),
        ("identity", identity, AbortCause::InvalidPoint),
        ("not canonical", not_canonical, AbortCause::InvalidPoint),
        ("no compression flag", vec![0; 96], AbortCause::InvalidPoint),
        ("short", vec![0x80; 95], AbortCause::MalformedBody),
        ("empty", vec![], AbortCause::MalformedBody),
    ]
}

#[test]
fn enough_good_ones_remain() {
    let shares = keygen(&[1, 2, 3, 4, 5], 3, 1);
    let signers = [1, 2, 3, 4, 5];
    let expected = reference(&shares, &signers);
    for corrupt in [vec![1], vec![3], vec![2, 5]] {
        for (name, body, cause) in changes(&shares) {
            for seed in 0..4 {
                let outcomes = sign_altered(&shares, &signers, &corrupt, seed, |b| b.clone_from(&body));
                for address in honest(&outcomes, &corrupt) {
                    let done =
                        outcomes[&address].done.as_ref().unwrap_or_else(|| panic!("{name} at {address:?}"));
                    assert_eq!(done.signature, expected, "{name}");
                    for (culprit, found) in &done.culprits {
                        assert!(corrupt.contains(&u32::from(culprit.get())), "{name}");
                        assert_eq!(*found, cause, "{name}");
                    }
                }
            }
        }
    }
}

#[test]
fn too_few_good_ones_remain() {
    let shares = keygen(&[1, 2, 3, 4], 3, 2);
    for (signers, corrupt) in [(vec![1, 2, 4], vec![2]), (vec![1, 2, 3, 4], vec![1, 4])] {
        for (name, body, _) in changes(&shares) {
            let outcomes = sign_altered(&shares, &signers, &corrupt, 1, |b| b.clone_from(&body));
            let culprits: Vec<PartyId> = corrupt.iter().map(|number| party(*number)).collect();
            for address in honest(&outcomes, &corrupt) {
                let outcome = &outcomes[&address];
                assert!(outcome.done.is_none());
                let abort = outcome.abort().unwrap_or_else(|| panic!("{name} at {address:?}"));
                assert_eq!(
                    (abort.cause, &abort.culprits),
                    (AbortCause::NotEnoughPartials, &culprits),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn errors_that_cancel_are_no_errors() {
    // For the parties 1, 2, 3 the weights are 3, -3, 1: the same error on the first two is none in the sum.
    let shares = keygen(&[1, 2, 3], 3, 3);
    let expected = reference(&shares, &[1, 2, 3]);
    let error = UncheckedG2::from_compressed(&expected).unwrap();
    let add = |body: &mut Vec<u8>| {
        let point = UncheckedG2::from_compressed(body.as_slice().try_into().unwrap()).unwrap();
        let sum = Weights::Small { numerators: vec![1, 1], denominator: 1 };
        *body = UncheckedG2::combine(&[point, error], &sum).to_compressed().to_vec();
    };
    let outcomes = sign_altered(&shares, &[1, 2, 3], &[1, 2], 1, add);
    let done = outcomes[&None].done.as_ref().unwrap();
    assert_eq!(done.signature, expected);
    assert!(done.culprits.is_empty());
}

#[test]
fn silent_party_is_missing_and_not_blamed() {
    let shares = keygen(&[1, 2, 3], 3, 4);
    let tamper = |packet: Packet| if packet.from == party(2) { vec![] } else { vec![packet] };
    let faults = Faults { tamper: Some(Box::new(tamper)), ..Faults::default() };
    let outcomes = sign_with(&shares, &[1, 2, 3], MESSAGE, 1, faults);
    for address in [None, Some(party(1)), Some(party(3))] {
        let outcome = &outcomes[&address];
        assert!(outcome.done.is_none() && outcome.aborts.is_empty());
        assert_eq!(outcome.missing.iter().collect::<Vec<_>>(), [party(2)]);
    }
}

#[test]
fn observer_finds_the_same_without_a_share() {
    let shares = keygen(&[1, 2, 3], 2, 5);
    let outcomes =
        sign_altered(&shares, &[1, 2, 3], &[1], 3, |body| body.clone_from(&outside_subgroup().to_vec()));
    let done = outcomes[&None].done.as_ref().unwrap();
    assert_eq!(done.signature, reference(&shares, &[2, 3]));
}

#[test]
fn every_header_field_matters() {
    let shares = keygen(&[1, 2], 2, 6);
    let public = shares[&1].public().clone();
    let (_, step) = start_sign(&shares[&2], &[1, 2], 2, MESSAGE).unwrap();
    let genuine = step.outgoing[0].encode();
    let (mut observer, _) = start_observer(&public, &[1, 2], 2, MESSAGE).unwrap();
    let mut dropped = |from: u32, change: &dyn Fn(&mut Forged)| {
        let mut forged = Forged::open(&genuine).unwrap();
        change(&mut forged);
        match observer.handle(party(from), &forged.encode(&evidence_key(party(2))), &mut rng(1)).progress {
            Progress::Dropped(reject) => reject,
            _ => panic!("not dropped"),
        }
    };
    assert_eq!(dropped(2, &|f| f.protocol = 1), Reject::Protocol);
    assert_eq!(dropped(2, &|f| f.session[31] ^= 1), Reject::Session);
    assert_eq!(dropped(2, &|f| f.round = 0), Reject::RoundPast);
    assert_eq!(dropped(2, &|f| f.round = 2), Reject::RoundFuture);
    assert_eq!(dropped(2, &|f| f.round = 255), Reject::RoundFuture);
    assert_eq!(dropped(2, &|f| f.sender = party(1)), Reject::Sender);
    assert_eq!(dropped(1, &|_| ()), Reject::Sender);
    assert_eq!(dropped(3, &|f| f.sender = party(3)), Reject::Sender);
    assert_eq!(dropped(2, &|f| f.recipient = Some(party(1))), Reject::Recipient);
    assert_eq!(dropped(2, &|f| f.echo = Some([0; 32])), Reject::Delivery);
    assert_eq!(dropped(2, &|f| f.body.push(0)), Reject::Size);
    for length in 0..genuine.len() {
        let step = observer.handle(party(2), &genuine[..length], &mut rng(1));
        assert!(matches!(step.progress, Progress::Dropped(Reject::Malformed)));
    }
    assert!(matches!(
        observer.handle(party(2), &genuine, &mut rng(1)).progress,
        Progress::Waiting { missing } if missing.iter().collect::<Vec<_>>() == [party(1)]
    ));
    assert!(matches!(
        observer.handle(party(2), &genuine, &mut rng(1)).progress,
        Progress::Dropped(Reject::Duplicate)
    ));
}

#[test]
fn partial_of_another_session_or_message_is_dropped() {
    let shares = keygen(&[1, 2], 2, 7);
    let (mut session, _) = start_sign(&shares[&1], &[1, 2], 2, MESSAGE).unwrap();
    let (_, other_session) = start_sign(&shares[&2], &[1, 2], 3, MESSAGE).unwrap();
    let (_, other_message) = start_sign(&shares[&2], &[1, 2], 2, b"pay everybody").unwrap();
    for step in [other_session, other_message] {
        let bytes = step.outgoing[0].encode();
        assert!(matches!(
            session.handle(party(2), &bytes, &mut rng(1)).progress,
            Progress::Dropped(Reject::Session)
        ));
    }
}

#[test]
fn nothing_is_heard_after_the_end() {
    let shares = keygen(&[1, 2], 1, 8);
    let (mut session, step) = start_sign(&shares[&1], &[1, 2], 2, MESSAGE).unwrap();
    assert!(matches!(step.progress, Progress::Done(_)), "with t = 1 the own partial is enough");
    assert_eq!(step.round, 0);
    assert_eq!(step.outgoing.len(), 1);
    let (_, other) = start_sign(&shares[&2], &[1, 2], 2, MESSAGE).unwrap();
    let step = session.handle(party(2), &other.outgoing[0].encode(), &mut rng(1));
    assert!(matches!(step.progress, Progress::Dropped(Reject::RoundPast)));
    assert!(step.outgoing.is_empty());
}

#[test]
fn setup_is_refused() {
    let shares = keygen(&[1, 2, 3], 2, 9);
    let start = |change: &dyn Fn(&mut engine::SessionSettings)| {
        let mut settings = settings(Some(party(1)), &[1, 2], 2, 2, MESSAGE);
        change(&mut settings);
        let input = SignInput::Party(Box::new(reopen(&shares[&1])));
        Session::<Signing>::start(settings, None, input, &mut rng(1)).err()
    };
    assert_eq!(start(&|_| ()), None);
    assert_eq!(start(&|s| s.roster.truncate(1)), Some(SetupError::SigningSetTooSmall));
    assert_eq!(start(&|s| s.roster = common::roster(&[1, 4])), Some(SetupError::SigningSetNotOfKey));
    assert_eq!(start(&|s| s.roster = common::roster(&[2, 3])), Some(SetupError::SelfNotInParties));
    assert_eq!(start(&|s| s.roster = common::roster(&[1, 1, 2])), Some(SetupError::PartiesNotAscending));
    assert_eq!(start(&|s| s.roster = common::roster(&[2, 1])), Some(SetupError::PartiesNotAscending));
    assert_eq!(start(&|s| s.roster.clear()), Some(SetupError::PartyCount));
    assert_eq!(start(&|s| s.me = Some(party(2))), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.me = None), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.threshold = threshold(1)), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.threshold = threshold(3)), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.key_id = "keys/other".into()), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.key_id.clear()), Some(SetupError::KeyIdLength));
    assert_eq!(start(&|s| s.key_id = "k".repeat(129)), Some(SetupError::KeyIdLength));
    assert_eq!(start(&|s| s.epoch = 2), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.epoch = 0), Some(SetupError::EpochRange));
    assert_eq!(start(&|s| s.payload = vec![0; MAX_MESSAGE_BYTES]), None);
    assert_eq!(start(&|s| s.payload = vec![0; MAX_MESSAGE_BYTES + 1]), Some(SetupError::PayloadLength));
}

#[test]
fn observer_setup_is_refused() {
    let shares = keygen(&[1, 2, 3], 2, 10);
    let public = shares[&1].public();
    let start = |change: &dyn Fn(&mut protocols::bls::KeyPublic)| {
        let mut public = public.clone();
        change(&mut public);
        let settings = settings(None, &[1, 2], 2, 2, MESSAGE);
        Session::<Signing>::start(settings, None, SignInput::Observer(Box::new(public)), &mut rng(1)).err()
    };
    let invalid = Some(SetupError::KeyPublicInvalid);
    assert_eq!(start(&|_| ()), None);
    assert_eq!(start(&|p| p.public_key = [0; 48]), invalid);
    assert_eq!(start(&|p| p.public_key[47] ^= 1), invalid);
    assert_eq!(start(&|p| p.threshold = threshold(3)), invalid);
    assert_eq!(start(&|p| p.key_id.push('x')), invalid);
    assert_eq!(start(&|p| p.epoch = 7), invalid);
    assert_eq!(start(&|p| p.verification_shares.clear()), invalid);
    assert_eq!(start(&|p| p.verification_shares.swap(0, 1)), invalid);
    assert_eq!(start(&|p| p.verification_shares[0].party = party(9)), invalid);
}

/// A combiner gets to the same signature without looking, and to none, or to a wrong one, if a partial signature is
/// wrong; an observer that is given the same envelopes names the sender.
#[test]
fn a_combiner_does_not_look() {
    let shares = keygen(&[1, 2, 3], 2, 11);
    let public = shares[&1].public();
    let combine = |input: SignInput, bodies: &[(u32, Vec<u8>)]| {
        let settings = settings(None, &[1, 2], 2, 2, MESSAGE);
        let (mut session, mut step) = Session::<Signing>::start(settings, None, input, &mut rng(1)).unwrap();
        for (number, bytes) in bodies {
            step = session.open(party(*number), bytes, &mut rng(3));
        }
        step.progress
    };
    let envelope = |number: u32, change: &dyn Fn(&mut Vec<u8>)| {
        let (session, step) = start_sign(&shares[&number], &[1, 2], 2, MESSAGE).unwrap();
        let bytes = session.seal(&step.outgoing[0], &mut rng(4)).unwrap();
        let mut forged = Forged::open(&bytes).unwrap();
        change(&mut forged.body);
        (number, forged.encode(&evidence_key(party(number))))
    };
    let combiner = || SignInput::Combiner(Box::new(public.clone()));
    let claimed = |signature: &[u8]| {
        let claim = Claim { public_key: &public.public_key, message: MESSAGE, signature };
        verify_all(&[claim], &mut rng(5))
    };
    let expected = reference(&shares, &[1, 2]);
    let honest = [envelope(1, &|_| ()), envelope(2, &|_| ())];
    let Progress::Done(done) = combine(combiner(), &honest) else { panic!("not done") };
    assert_eq!((done.signature, done.culprits.len()), (expected, 0));
    assert!(claimed(&done.signature));
    for (name, body, cause) in changes(&shares) {
        let bodies = [envelope(1, &|_| ()), envelope(2, &|own| own.clone_from(&body))];
        match combine(combiner(), &bodies) {
            Progress::Done(done) => assert!(!claimed(&done.signature), "{name}"),
            Progress::Aborted(abort) => {
                assert_eq!((abort.cause, &*abort.culprits), (AbortCause::NotEnoughPartials, &[party(2)][..]));
                assert_ne!(cause, AbortCause::WrongPartialSignature, "{name}");
            }
            _ => panic!("{name} waits"),
        }
        let observer = SignInput::Observer(Box::new(public.clone()));
        let Progress::Aborted(abort) = combine(observer, &bodies) else { panic!("{name} is not noticed") };
        assert_eq!(
            (abort.cause, &*abort.culprits),
            (AbortCause::NotEnoughPartials, &[party(2)][..]),
            "{name}"
        );
    }
    let own = settings(Some(party(1)), &[1, 2], 2, 2, MESSAGE);
    let refused = Session::<Signing>::start(own, None, combiner(), &mut rng(1)).err();
    assert_eq!(refused, Some(SetupError::ShareMissing));
}

#[test]
fn claims_stand_and_fall_together() {
    let shares = keygen(&[1, 2], 2, 12);
    let key = shares[&1].public().public_key;
    let other = keygen(&[1, 2], 2, 13)[&1].public().clone();
    let signature = reference(&shares, &[1, 2]);
    let right = Claim { public_key: &key, message: MESSAGE, signature: &signature };
    let check = |claims: &[Claim<'_>]| verify_all(claims, &mut rng(6));
    assert!(check(&[]));
    assert!(check(&[right]));
    assert!(check(&[right, right]));
    let outside = outside_subgroup();
    let long = vec![0; MAX_MESSAGE_BYTES + 1];
    for wrong in [
        Claim { message: b"pay somebody", ..right },
        Claim { message: &long, ..right },
        Claim { public_key: &other.public_key, ..right },
        Claim { public_key: &[0; 48], ..right },
        Claim { public_key: &key[1..], ..right },
        Claim { signature: &other.proof_of_possession, ..right },
        Claim { signature: &outside, ..right },
        Claim { signature: &signature[1..], ..right },
        Claim { signature: &[], ..right },
    ] {
        assert!(!check(&[wrong]));
        assert!(!check(&[right, wrong, right]));
    }
}
