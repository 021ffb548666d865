//! Sessions of an imported Ed25519 key: the owner's signatures, and parties that deviate in frames and settings.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "test code")]

mod common;

use std::sync::Arc;

use circuit_sessions::{
    Answer, AnswerInput, MAX_ROUNDS, Nonce, NonceInput, OpenNonce, Paired, Pairing, Preparing, PreparingInput,
};
use circuits::ed25519::{Import, ImportedShare, NonceCircuit, Ready, blocks};
use ed25519_dalek::{Signer, SigningKey};
use engine::session::Progress;
use engine::{AbortCause, Secret, SessionSettings, SetupError, Threshold};

use common::{Change, Ran, body, flipped, found, honest, party, refused, rng, run, run_from, settings, talk};

const SEED: [u8; 32] = [5; 32];
const MESSAGE: &[u8] = b"message";

fn shares() -> [ImportedShare; 2] {
    let import = Import::from_seed(&Secret::new(SEED), 3, &mut rng(9)).unwrap();
    let [first, second, _] = <[_; 3]>::try_from(import.shares).ok().unwrap();
    [first, second]
}

fn paired() -> [Arc<Paired>; 2] {
    paired_from(3)
}

fn paired_from(seed: u64) -> [Arc<Paired>; 2] {
    let ran = run_from::<Pairing>(seed, shares(), &[], &mut honest);
    assert!(ran.envelopes.iter().all(|count| *count <= MAX_ROUNDS));
    ran.both().map(Arc::new)
}

fn circuit() -> Arc<NonceCircuit> {
    Arc::new(NonceCircuit::new(blocks(MESSAGE.len())).unwrap())
}

fn prepare(paired: &[Arc<Paired>; 2], circuit: &Arc<NonceCircuit>) -> [Ready; 2] {
    prepare_from(3, paired, circuit)
}

fn prepare_from(seed: u64, paired: &[Arc<Paired>; 2], circuit: &Arc<NonceCircuit>) -> [Ready; 2] {
    let inputs = paired
        .each_ref()
        .map(|paired| PreparingInput { paired: Arc::clone(paired), circuit: Arc::clone(circuit) });
    run_from::<Preparing>(seed, inputs, &[], &mut honest).both()
}

fn open(paired: &[Arc<Paired>; 2], circuit: &Arc<NonceCircuit>, change: Change<'_>) -> Ran<Nonce> {
    let mut ready = prepare(paired, circuit).map(Some);
    let inputs = [0, 1].map(|side| NonceInput {
        paired: Arc::clone(&paired[side]),
        circuit: Arc::clone(circuit),
        ready: ready[side].take().unwrap(),
    });
    run::<OpenNonce>(inputs, MESSAGE, change)
}

#[test]
fn a_key_is_taken_over_and_signs_as_its_owner_does() {
    let (paired, circuit) = (paired(), circuit());
    let nonces = open(&paired, &circuit, &mut honest).both();
    let inputs = nonces.map(|nonce| AnswerInput { recorded: *nonce.point(), nonce });
    let [first, second] = run::<Answer>(inputs, MESSAGE, &mut honest).both();
    assert_eq!(first, second);
    assert_eq!(first, SigningKey::from_bytes(&SEED).sign(MESSAGE).to_bytes());
}

#[test]
fn a_frame_of_another_form_names_its_sender() {
    let changes: [fn(&mut Vec<u8>); 6] = [
        Vec::clear,
        |body| body.truncate(1),
        |body| body.push(0),
        |body| body.truncate(body.len() - 1),
        |body| body[0] = 1,
        |body| body[0] = 9,
    ];
    for sender in [1, 2] {
        for (kind, change) in changes.into_iter().enumerate() {
            for number in 0..4 {
                let ran = run::<Pairing>(shares(), &[], &mut |from, at, envelope| {
                    if (from, at) == (sender, number) { body(&envelope, change) } else { envelope }
                });
                let victim = 2 - sender as usize;
                let place = format!("frame {number} of {sender}, change {kind}");
                let abort = ran.aborts[victim].as_ref().unwrap_or_else(|| panic!("{place}"));
                assert_eq!(
                    (abort.cause, abort.culprits.as_slice()),
                    (AbortCause::MalformedBody, &[party(sender)][..])
                );
                assert!(ran.done.iter().all(Option::is_none), "{place}");
            }
        }
    }
}

#[test]
fn what_is_wrong_in_a_nonce_has_a_cause_names_its_sender_and_ends_the_set_up() {
    let circuit = circuit();
    for (sender, number, cause) in [
        (1, 1, AbortCause::WrongAuthenticator),
        (2, 0, AbortCause::WrongInput),
        (2, 1, AbortCause::WrongLabel),
        (2, 2, AbortCause::WrongAuthenticator),
    ] {
        let paired = paired();
        let ran = open(&paired, &circuit, &mut |from, at, envelope| {
            if (from, at) == (sender, number) { flipped(&envelope) } else { envelope }
        });
        assert_eq!(found(&ran, sender), (cause, vec![party(sender)], vec![]), "frame {number} of {sender}");
        assert!(paired[2 - sender as usize].ended());
    }
}

#[test]
fn what_is_wrong_in_a_preparation_has_a_cause() {
    let circuit = circuit();
    for (sender, number, cause, blamed) in [
        (1, 1, AbortCause::TransferCheckFailed, true),
        (2, 1, AbortCause::TransferCheckFailed, true),
        (2, 10, AbortCause::TripleCheckFailed, true),
        // Both name the circuit that they mean to evaluate first.
        (1, 0, AbortCause::CircuitMismatch, false),
        (2, 0, AbortCause::CircuitMismatch, false),
    ] {
        let paired = paired();
        let inputs = paired
            .each_ref()
            .map(|paired| PreparingInput { paired: Arc::clone(paired), circuit: Arc::clone(&circuit) });
        let ran = run::<Preparing>(inputs, &[], &mut |from, at, envelope| {
            if (from, at) == (sender, number) { flipped(&envelope) } else { envelope }
        });
        let (none, one) = (vec![], vec![party(sender)]);
        let [culprits, suspects] = if blamed { [one, none] } else { [none, one] };
        assert_eq!(found(&ran, sender), (cause, culprits, suspects), "frame {number} of {sender}");
        assert_eq!(paired[2 - sender as usize].ended(), blamed);
    }
}

/// One of them was killed when the other had its new set-up, or uses what another session made.
#[test]
fn parties_that_hold_different_things_do_not_understand_each_other_and_blame_nobody() {
    let circuit = circuit();
    let [first, second] = [3, 4].map(paired_from);
    let input =
        |paired: &Arc<Paired>| PreparingInput { paired: Arc::clone(paired), circuit: Arc::clone(&circuit) };
    let (from, opening) = talk::<Preparing>(1, input(&first[0]), &[]);
    let (mut other, _) = talk::<Preparing>(2, input(&second[1]), &[]);
    let said = from.seal(&opening.outgoing[0], &mut rng(1)).unwrap();
    let step = other.handle(party(1), &said, &mut rng(1));
    assert!(matches!(step.progress, Progress::Dropped(_)) && step.outgoing.is_empty());
    assert!(first.iter().chain(&second).all(|paired| !paired.ended()));
    let mut ready = [3, 4].map(|seed| prepare_from(seed, &first, &circuit).map(Some));
    let mut input = |side: usize, which: usize| NonceInput {
        paired: Arc::clone(&first[side]),
        circuit: Arc::clone(&circuit),
        ready: ready[which][side].take().unwrap(),
    };
    let (from, opening) = talk::<OpenNonce>(2, input(1, 0), MESSAGE);
    let (mut other, _) = talk::<OpenNonce>(1, input(0, 1), MESSAGE);
    let said = from.seal(&opening.outgoing[0], &mut rng(1)).unwrap();
    let step = other.handle(party(2), &said, &mut rng(1));
    assert!(matches!(step.progress, Progress::Dropped(_)) && step.outgoing.is_empty());
    assert!(first.iter().all(|paired| !paired.ended()));
}

/// Also in a session that is under way.
#[test]
fn a_set_up_that_its_party_ended_has_no_result() {
    let (paired, circuit) = (paired(), circuit());
    let ran = open(&paired, &circuit, &mut |from, at, envelope| {
        if (from, at) == (1, 1) {
            paired[1].end();
        }
        envelope
    });
    let [None, Some(abort)] = &ran.aborts else { panic!("{:?}", ran.aborts) };
    assert!(abort.culprits.is_empty() && abort.suspects.is_empty(), "{abort:?}");
    assert!(ran.done.iter().all(Option::is_none) && !paired[0].ended());
}

/// The owner's shares of the prefix do not belong together, or a party has changed its own.
#[test]
fn a_test_signature_that_is_not_the_owners_is_a_suspicion() {
    let [first, second] = shares();
    let mut bytes = second.encode().expose().clone();
    let prefix_with_first = 164 + 2;
    bytes[prefix_with_first] ^= 1;
    let ran = run::<Pairing>([first, ImportedShare::decode(&bytes).unwrap()], &[], &mut honest);
    // The first that has the nonce says nothing more, so the other waits.
    let [Some(abort), None] = &ran.aborts else { panic!("{:?}", ran.aborts) };
    assert_eq!((abort.cause, abort.culprits.as_slice()), (AbortCause::WrongTestSignature, &[][..]));
    assert_eq!(abort.suspects, [party(2)]);
    assert!(ran.done.iter().all(Option::is_none));
}

#[test]
fn settings_that_do_not_fit_the_share_are_refused() {
    let first = || {
        let [first, _] = shares();
        first
    };
    assert_eq!(refused::<Pairing>(settings(0, &[1, 2], &[]), first()), SetupError::ObserverNotAllowed);
    assert_eq!(refused::<Pairing>(settings(1, &[1, 2, 3], &[]), first()), SetupError::PartyCount);
    assert_eq!(refused::<Pairing>(settings(1, &[1], &[]), first()), SetupError::PartyCount);
    assert_eq!(refused::<Pairing>(settings(2, &[1, 2], &[]), first()), SetupError::ShareMismatch);
    assert_eq!(refused::<Pairing>(settings(1, &[1, 4], &[]), first()), SetupError::ShareMismatch);
    let three = SessionSettings { threshold: Threshold::new(3).unwrap(), ..settings(1, &[1, 2], &[]) };
    assert_eq!(refused::<Pairing>(three, first()), SetupError::ThresholdRange);
}

#[test]
fn an_answer_is_for_its_message_and_for_the_recorded_nonce() {
    let (paired, circuit) = (paired(), circuit());
    let nonces = open(&paired, &circuit, &mut honest).both();
    let [first, second] = nonces.map(|nonce| AnswerInput { recorded: *nonce.point(), nonce });
    assert_eq!(refused::<Answer>(settings(1, &[1, 2], b"massage"), first), SetupError::PayloadInvalid);
    assert!(paired.iter().all(|paired| !paired.ended()), "a caller's mistake excludes nobody");
    let other = AnswerInput { recorded: [1; 32], ..second };
    assert_eq!(refused::<Answer>(settings(2, &[1, 2], MESSAGE), other), SetupError::OtherNonce);
    assert!(paired[1].ended(), "another nonce ends the use of the key with this peer");
}
