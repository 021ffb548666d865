//! A party that does not follow the rules: what it changes, what honest parties end with, whom they name.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::forge::Forged;
use engine::session::echo_of;
use engine::{AbortCause, Advice, Envelope, PartyId, SessionContext};
use protocols::frost::{KeyShare, Keygen, Suite, Target, tags};
use sim::{Address, Faults, Outcome, Packet};

use crate::both_suites;
use crate::common::{evidence_key, party, settings};
use crate::harness::{
    Tested, keygen, keygen_with, message, payload, presign, presign_with, sign_presigned, sign_with,
};

const PARTIES: [u32; 3] = [1, 2, 3];
const CHEAT: u32 = 2;

type Change<'a> = Box<dyn Fn(&mut Forged, Address) + 'a>;

/// Party 2's messages, changed and signed again.
fn cheating(change: Change<'_>) -> Faults<'_> {
    let tamper = move |packet: Packet| {
        if packet.from != party(CHEAT) {
            return vec![packet];
        }
        let mut forged = Forged::open(&packet.bytes).unwrap();
        change(&mut forged, packet.to);
        vec![Packet { bytes: forged.encode(&evidence_key(packet.from)), ..packet }]
    };
    Faults { tamper: Some(Box::new(tamper)), ..Faults::default() }
}

/// As [`cheating`], in key generation, by a party that stands by what it sent: its echo digests are those of the altered broadcasts,
/// and it neither complains nor discloses.
fn cheating_keygen<S: Suite>(change: Change<'_>) -> Faults<'_> {
    let ctx = SessionContext::for_test::<Keygen<S>>(settings(None, &PARTIES, 2, 1, &[])).unwrap();
    let mut seen: BTreeMap<(u8, PartyId), Arc<Envelope>> = BTreeMap::new();
    let tamper = move |packet: Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        let mut bytes = packet.bytes.clone();
        if packet.from == party(CHEAT) {
            if forged.round > 4 {
                return Vec::new();
            }
            change(&mut forged, packet.to);
            let earlier: Vec<_> = seen
                .iter()
                .filter(|((round, _), _)| *round < forged.round)
                .map(|(_, envelope)| Arc::clone(envelope))
                .collect();
            forged.echo = Some(echo_of(&ctx, forged.round, &earlier));
            bytes = forged.encode(&evidence_key(packet.from));
        }
        if forged.recipient.is_none() {
            seen.insert((forged.round, packet.from), Arc::new(Envelope::decode(&bytes).unwrap()));
        }
        vec![Packet { bytes, ..packet }]
    };
    Faults { tamper: Some(Box::new(tamper)), ..Faults::default() }
}

fn in_round<'a>(round: u8, change: impl Fn(&mut Vec<u8>) + 'a) -> Change<'a> {
    Box::new(move |forged, _| {
        if forged.round == round {
            change(&mut forged.body);
        }
    })
}

/// Every party but the cheat, and the observer if there is one, ended with `cause` and named `culprits`.
fn expect<T>(name: &str, outcomes: &BTreeMap<Address, Outcome<T>>, cause: AbortCause, culprits: &[u32]) {
    let culprits: Vec<_> = culprits.iter().map(|number| party(*number)).collect();
    for (address, outcome) in outcomes.iter().filter(|(address, _)| **address != Some(party(CHEAT))) {
        let abort = outcome.abort().unwrap_or_else(|| panic!("{name}: {address:?} did not abort"));
        assert_eq!((abort.cause, &abort.culprits), (cause, &culprits), "{name} at {address:?}");
        let advice = if culprits.is_empty() { Advice::Retry } else { Advice::ExcludeParty };
        assert_eq!(abort.advice(), advice);
    }
}

/// What party 2 broadcasts in a round of an honest key generation of this session.
fn honest_body<S: Suite>(session: u8, of_round: u8) -> Vec<u8> {
    let mut found = None;
    let record = |packet: Packet| {
        let forged = Forged::open(&packet.bytes).unwrap();
        if packet.from == party(CHEAT) && forged.round == of_round {
            found = Some(forged.body);
        }
        vec![packet]
    };
    keygen_with::<S>(
        &PARTIES,
        2,
        (session, 5),
        Faults { tamper: Some(Box::new(record)), ..Faults::default() },
    );
    found.unwrap()
}

/// The commitment to an opening of party 2, whatever is in it.
fn commitment_to<S: Suite>(opening: &[u8]) -> Vec<u8> {
    let settings = settings(None, &PARTIES, 2, 1, &[]);
    let ctx = SessionContext::for_test::<Keygen<S>>(settings).unwrap();
    let mut transcript = ctx.transcript().fork(tags::KEYGEN_COMMITMENT, party(CHEAT));
    transcript.append("opening", opening);
    transcript.digest().to_vec()
}

/// Commits to a changed opening and shows that.
fn committed<S: Suite>(change: impl Fn(&mut Vec<u8>)) -> Change<'static> {
    let mut opening = honest_body::<S>(1, 2);
    change(&mut opening);
    let commitment = commitment_to::<S>(&opening);
    Box::new(move |forged, _| match forged.round {
        1 => forged.body.clone_from(&commitment),
        2 => forged.body.clone_from(&opening),
        _ => (),
    })
}

fn deviations_in_key_generation<S: Tested>() {
    use AbortCause as C;
    let point = S::POINT_BYTES;
    let low = S::LOW_BYTE;
    let foreign = honest_body::<S>(2, 2);
    let foreign_commitment = honest_body::<S>(2, 1);
    let table: Vec<(&str, Change<'_>, C)> = vec![
        ("other commitment", in_round(1, |b| b[0] ^= 1), C::WrongOpening),
        ("short commitment", in_round(1, |b| b.truncate(31)), C::MalformedBody),
        (
            "commitment of another session",
            in_round(1, |b| b.clone_from(&foreign_commitment)),
            C::WrongOpening,
        ),
        ("opening of another session", in_round(2, |b| b.clone_from(&foreign)), C::WrongOpening),
        ("other contribution", in_round(2, |b| *b.last_mut().unwrap() ^= 1), C::WrongOpening),
        ("long opening", in_round(2, |b| b.push(0)), C::MalformedBody),
        ("one point more", in_round(2, |b| b[0] += 1), C::WrongDegree),
        ("one point less", in_round(2, |b| b[0] -= 1), C::WrongDegree),
        ("no points", in_round(2, |b| b[0] = 0), C::WrongDegree),
        ("no point", in_round(2, |b| b[1..=point].fill(0xff)), C::InvalidPoint),
        ("identity or small order", in_round(2, |b| b[1..=point].fill(0)), C::InvalidPoint),
        (
            "proof with a response that is no scalar",
            in_round(2, |b| {
                let at = 1 + 3 * point;
                b[at..at + 32].copy_from_slice(&S::NO_SCALAR);
            }),
            C::InvalidScalar,
        ),
        ("wrong proof, committed to", committed::<S>(|b| b[1 + 3 * point + low] ^= 1), C::WrongProof),
        (
            "points of another session, committed to",
            {
                let foreign = foreign.clone();
                // The same polynomial, as the seed is the same, with a proof made for another session.
                committed::<S>(move |b| b[1..].copy_from_slice(&foreign[1..]))
            },
            C::WrongProof,
        ),
        (
            "points in another order, committed to",
            committed::<S>(|b| b[1..=2 * point].rotate_left(point)),
            C::WrongProof,
        ),
        ("wrong share", in_round(3, |b| b[low] ^= 1), C::WrongShare),
        ("share that is no scalar", in_round(3, |b| b.copy_from_slice(&S::NO_SCALAR)), C::InvalidScalar),
        ("short share", in_round(3, |b| b.truncate(31)), C::MalformedBody),
        ("wrong confirmation", in_round(4, |b| b[point + low] ^= 1), C::WrongProof),
        (
            "proof from key generation as confirmation",
            {
                let opening = honest_body::<S>(1, 2);
                in_round(4, move |b| b.copy_from_slice(&opening[1 + 2 * point..][..point + 32]))
            },
            C::WrongProof,
        ),
    ];
    for (name, change, cause) in table {
        let outcomes = keygen_with::<S>(&PARTIES, 2, (1, 5), cheating_keygen::<S>(change));
        expect::<KeyShare<S>>(name, &outcomes, cause, &[CHEAT]);
    }
}

/// Another broadcast to one party, in each round in which that can be told apart later.
fn equivocation_in_key_generation<S: Tested>() {
    for round in [1, 2] {
        let change = move |forged: &mut Forged, to: Address| {
            if forged.round == round && to == Some(party(3)) {
                // In round 2 the contribution, so that the opening decodes and does not fit the commitment.
                *forged.body.last_mut().unwrap() ^= 1;
            }
        };
        let outcomes = keygen_with::<S>(&PARTIES, 2, (1, 5), cheating(Box::new(change)));
        for honest in [1, 3] {
            let abort = outcomes[&Some(party(honest))].abort().unwrap();
            assert_eq!(abort.culprits, [party(CHEAT)], "round {round}");
            let shown = [AbortCause::Equivocation, AbortCause::WrongOpening];
            assert!(shown.contains(&abort.cause), "round {round}: {}", abort.cause);
        }
    }
}

/// A confirmation copied from another party, which is sent as soon as that one is known.
fn confirmation_of_another_party<S: Tested>() {
    let mut stolen: Option<Vec<u8>> = None;
    let mut held = Vec::new();
    let tamper = |packet: Packet| {
        let forged = Forged::open(&packet.bytes).unwrap();
        if forged.round != 4 {
            return vec![packet];
        }
        let mut out = Vec::new();
        if packet.from == party(CHEAT) {
            held.push(packet);
        } else {
            if packet.from == party(1) {
                stolen = Some(forged.body);
            }
            out.push(packet);
        }
        if let Some(body) = &stolen {
            out.extend(held.drain(..).map(|packet| {
                let mut forged = Forged::open(&packet.bytes).unwrap();
                forged.body.clone_from(body);
                Packet { bytes: forged.encode(&evidence_key(packet.from)), ..packet }
            }));
        }
        out
    };
    let faults = Faults { tamper: Some(Box::new(tamper)), ..Faults::default() };
    let outcomes = keygen_with::<S>(&PARTIES, 2, (1, 6), faults);
    expect("copied confirmation", &outcomes, AbortCause::WrongProof, &[CHEAT]);
}

fn deviations_in_signing<S: Tested>() {
    use AbortCause as C;
    let (point, low) = (S::POINT_BYTES, S::LOW_BYTE);
    let shares = keygen::<S>(&PARTIES, 2, 5);
    let table: Vec<(&str, Change<'_>, C, &[u32])> = vec![
        ("no point", in_round(1, |b| b[..point].fill(0xff)), C::InvalidPoint, &[CHEAT]),
        ("identity or small order", in_round(1, |b| b[point..].fill(0)), C::InvalidPoint, &[CHEAT]),
        ("short commitments", in_round(1, |b| b.truncate(point)), C::MalformedBody, &[CHEAT]),
        ("wrong partial signature", in_round(2, |b| b[32 + low] ^= 1), C::WrongPartialSignature, &[CHEAT]),
        ("zero", in_round(2, |b| b[32..].fill(0)), C::WrongPartialSignature, &[CHEAT]),
        ("no scalar", in_round(2, |b| b[32..].copy_from_slice(&S::NO_SCALAR)), C::InvalidScalar, &[CHEAT]),
        ("short partial", in_round(2, |b| b.truncate(63)), C::MalformedBody, &[CHEAT]),
        // Who says it saw other commitments may have been lied to.
        ("other commitments claimed", in_round(2, |b| b[0] ^= 1), C::BroadcastMismatch, &[]),
    ];
    for target in S::targets() {
        let request = payload(message(1), &target);
        for (name, change, cause, culprits) in &table {
            let change = |forged: &mut Forged, to| change(forged, to);
            let outcomes = sign_with(&shares, &[1, 2, 3], 1, &request, cheating(Box::new(change)));
            expect(name, &outcomes, *cause, culprits);
        }
    }
}

/// Swapped points are good points: their maker's partial signature does not fit them.
fn commitments_that_are_not_the_nonces<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 5);
    let request = payload(message(1), &Target::default());
    let point = S::POINT_BYTES;
    let swap = |forged: &mut Forged, _| {
        if forged.round == 1 {
            forged.body.rotate_left(point);
        }
    };
    // The cheat's own view names other commitments than the others': it lies about that too, as it would.
    let outcomes = sign_with(&shares, &[1, 2, 3], 1, &request, cheating(Box::new(swap)));
    expect("swapped", &outcomes, AbortCause::BroadcastMismatch, &[]);
}

/// Different commitments to different parties: each honest party's part is right for what it saw, and nobody honest is named.
fn equivocation_in_signing_names_nobody_honest<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 5);
    let request = payload(message(1), &Target::default());
    let point = S::POINT_BYTES;
    for victim in [Some(party(1)), Some(party(3)), None] {
        let change = move |forged: &mut Forged, to: Address| {
            if forged.round == 1 && to == victim {
                forged.body.rotate_left(point);
            }
        };
        let outcomes = sign_with(&shares, &[1, 2, 3], 1, &request, cheating(Box::new(change)));
        for outcome in outcomes.values() {
            assert!(outcome.aborts.iter().all(|abort| abort.culprits.is_empty()));
        }
        let cheated = &outcomes[&victim];
        assert_eq!(cheated.abort().unwrap().cause, AbortCause::BroadcastMismatch);
    }
}

/// A partial signature replayed from a session about another message, made with the same nonces.
fn replay_between_sessions<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 5);
    let target = Target::default();
    let mut recorded = None;
    let record = |packet: Packet| {
        let forged = Forged::open(&packet.bytes).unwrap();
        if packet.from == party(CHEAT) && forged.round == 2 {
            recorded = Some(forged.body);
        }
        vec![packet]
    };
    let faults = Faults { tamper: Some(Box::new(record)), ..Faults::default() };
    sign_with(&shares, &[1, 2], 1, &payload(message(1), &target), faults);
    let replay = in_round(2, move |b| b[32..].copy_from_slice(&recorded.as_ref().unwrap()[32..]));
    let outcomes = sign_with(&shares, &[1, 2], 1, &payload(message(2), &target), cheating(replay));
    expect("replay", &outcomes, AbortCause::WrongPartialSignature, &[CHEAT]);
}

fn deviations_with_a_presignature<S: Tested>() {
    use AbortCause as C;
    let (point, low) = (S::POINT_BYTES, S::LOW_BYTE);
    let shares = keygen::<S>(&PARTIES, 2, 5);
    let public = shares[&1].public();
    let target = S::targets().pop().unwrap();
    // Name, change, and what party 1 and the observer end with.
    type Row<'a> = (&'a str, Change<'a>, (C, &'a [u32]), (C, &'a [u32]));
    let both = |cause| ((cause, &[CHEAT][..]), (cause, &[CHEAT][..]));
    let row = |name, change, (party, observer)| -> Row<'_> { (name, change, party, observer) };
    let table: Vec<Row<'_>> = vec![
        row("wrong", in_round(1, move |b| b[2 * point + low] ^= 1), both(C::WrongPartialSignature)),
        row(
            "no scalar",
            in_round(1, move |b| b[2 * point..].copy_from_slice(&S::NO_SCALAR)),
            both(C::InvalidScalar),
        ),
        row("short", in_round(1, |b| b.truncate(70)), both(C::MalformedBody)),
        row(
            "other commitments",
            in_round(1, move |b| b[..2 * point].rotate_left(point)),
            ((C::WrongOpening, &[CHEAT]), (C::BroadcastMismatch, &[])),
        ),
        row(
            "no points",
            in_round(1, move |b| b[..point].fill(0xff)),
            ((C::WrongOpening, &[CHEAT]), (C::InvalidPoint, &[CHEAT])),
        ),
    ];
    for (name, change, at_party, at_observer) in table {
        let presignatures = presign(&shares, &[1, 2], 1, &target);
        let mut request = payload(message(1), &target);
        request.presignature = Some(*presignatures[&1].id());
        let outcomes = sign_presigned(public, presignatures, 2, &request, cheating(change));
        for (address, (cause, culprits)) in [(Some(party(1)), at_party), (None, at_observer)] {
            let abort = outcomes[&address].abort().unwrap();
            let named: Vec<u32> = abort.culprits.iter().map(|culprit| culprit.get().into()).collect();
            assert_eq!((abort.cause, named.as_slice()), (cause, culprits), "{name} at {address:?}");
        }
    }
}

/// Different commitments to different parties give presignatures of different names, which no session brings together.
fn equivocation_in_presigning_splits_the_name<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 5);
    let point = S::POINT_BYTES;
    let change = move |forged: &mut Forged, to: Address| {
        if to == Some(party(3)) {
            forged.body.rotate_left(point);
        }
    };
    let outcomes = presign_with(&shares, &PARTIES, 1, &Target::default(), cheating(Box::new(change)));
    let id = |number| *outcomes[&Some(party(number))].done.as_ref().unwrap().id();
    assert_eq!(id(1), id(2));
    assert_ne!(id(1), id(3));
}

both_suites!(
    deviations_in_key_generation,
    equivocation_in_key_generation,
    confirmation_of_another_party,
    deviations_in_signing,
    commitments_that_are_not_the_nonces,
    equivocation_in_signing_names_nobody_honest,
    replay_between_sessions,
    deviations_with_a_presignature,
    equivocation_in_presigning_splits_the_name,
);
