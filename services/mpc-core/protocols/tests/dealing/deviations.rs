//! A corrupt party deviates in a refresh or reshare of a BLS key and is named by all honest ones. FROST and ECDSA have
//! these tables beside their own tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::forge::{Forged, echo_of};
use engine::session::{DISCLOSURE_ROUND, NOTICE_ROUND, Protocol};
use engine::{AbortCause, Envelope, SessionContext, SessionSettings};
use protocols::dealing::{Refresh, Reshare, forged_commitment};
use sim::{Address, Faults, Outcome, Packet, World};

use crate::common::{evidence_key, party};
use crate::dealing::harness::{
    Bls, Change, Tested, number_of, refresh_settings, refresh_with, reshare_settings, reshare_with,
    start_reshare,
};

/// Party 2 deals and receives, 1 only deals, 3 and 4 only receive.
const CASE: Change<'static> = Change { dealers: &[1, 2], receivers: &[2, 3, 4], t: 2 };

/// Lets `attacker` change the bodies it sends and stand by them: its echo digests are those of what it sent, and it
/// neither complains nor discloses.
fn forging<'a, P: Protocol>(
    attacker: u32,
    settings: SessionSettings,
    mut change: impl FnMut(u8, u32, &mut Vec<u8>) + 'a,
) -> Faults<'a> {
    let ctx = SessionContext::for_test::<P>(settings).unwrap();
    let mut seen: BTreeMap<(u8, u32), Arc<Envelope>> = BTreeMap::new();
    let tamper = move |packet: Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        let from = number_of(packet.from);
        let mut bytes = packet.bytes.clone();
        if from == attacker {
            if forged.round == NOTICE_ROUND || forged.round == DISCLOSURE_ROUND {
                return Vec::new();
            }
            change(forged.round, packet.to.map_or(0, number_of), &mut forged.body);
            let earlier: Vec<Arc<Envelope>> =
                seen.range(..(forged.round, 0)).map(|(_, envelope)| Arc::clone(envelope)).collect();
            forged.echo = Some(echo_of(&ctx, forged.round, &earlier));
            bytes = forged.encode(&evidence_key(packet.from));
        }
        if forged.recipient.is_none() {
            seen.insert((forged.round, from), Arc::new(Envelope::decode(&bytes).unwrap()));
        }
        vec![Packet { bytes, ..packet }]
    };
    Faults { tamper: Some(Box::new(tamper)), ..Faults::default() }
}

fn named<T>(case: &str, outcomes: &BTreeMap<Address, Outcome<T>>, attacker: u32, cause: AbortCause) {
    for (address, outcome) in outcomes.iter().filter(|(address, _)| **address != Some(party(attacker))) {
        let abort = outcome.abort().unwrap_or_else(|| panic!("{case}: {address:?} did not abort"));
        assert_eq!((abort.cause, abort.culprits.as_slice()), (cause, [party(attacker)].as_slice()), "{case}");
    }
}

type Bend = fn(u32, &mut Vec<u8>);

/// An encoding of a point of the curve outside the subgroup: x = 4 has one.
fn outside_the_subgroup() -> Vec<u8> {
    let mut point = vec![0u8; Bls::POINT];
    (point[0], point[47]) = (0x80, 4);
    point
}

#[test]
fn deviations_in_a_refresh_name_the_party() {
    let shares = Bls::keys(&[1, 2, 3], 2, 3);
    let cases: [(&str, u8, Bend, AbortCause); 9] = [
        ("commitment", 1, |_, body| body[0] ^= 1, AbortCause::WrongOpening),
        ("contribution", 2, |_, body| *body.last_mut().unwrap() ^= 1, AbortCause::WrongOpening),
        ("no point", 2, |_, body| body[1..=48].fill(0xff), AbortCause::InvalidPoint),
        (
            "outside the subgroup",
            2,
            |_, body| body[1..=48].copy_from_slice(&outside_the_subgroup()),
            AbortCause::InvalidPoint,
        ),
        (
            "the identity",
            2,
            |_, body| {
                body[1..=48].fill(0);
                body[1] = 0xc0
            },
            AbortCause::InvalidPoint,
        ),
        // One point more, as if the polynomial had a constant term.
        ("constant term", 2, |_, body| body[0] += 1, AbortCause::WrongDegree),
        ("share", 3, |_, body| body[31] ^= 1, AbortCause::WrongShare),
        ("no share", 3, |_, body| body.clear(), AbortCause::MalformedBody),
        ("confirmation", 4, |_, body| *body.last_mut().unwrap() ^= 1, AbortCause::WrongProof),
    ];
    for (session, (case, round, bend, cause)) in (1u8..).zip(cases) {
        let settings = refresh_settings::<Bls>(None, shares[&1].public(), session);
        let faults = forging::<Refresh<Bls>>(2, settings, |of_round, to, body| {
            if of_round == round {
                bend(to, body);
            }
        });
        named(case, &refresh_with::<Bls>(&shares, session, faults), 2, cause);
    }
}

#[test]
fn deviations_in_a_reshare_name_the_party() {
    let shares = Bls::keys(&[1, 2, 3], 2, 7);
    let base = shares[&1].public();
    let cases: [(&str, u32, u8, Bend, AbortCause); 12] = [
        ("raised", 1, 2, |_, body| body[0] += 1, AbortCause::WrongDegree),
        ("lowered", 1, 2, |_, body| body[0] -= 1, AbortCause::WrongDegree),
        ("receiver deals", 4, 2, |_, body| body[0] = 2, AbortCause::WrongDegree),
        ("other opening", 1, 2, |_, body| *body.last_mut().unwrap() ^= 1, AbortCause::WrongOpening),
        (
            "outside the subgroup",
            1,
            2,
            |_, body| body[1..=48].copy_from_slice(&outside_the_subgroup()),
            AbortCause::InvalidPoint,
        ),
        (
            "no scalar",
            2,
            3,
            |to, body| {
                if to == 4 {
                    body.copy_from_slice(&Bls::NO_SCALAR)
                }
            },
            AbortCause::InvalidScalar,
        ),
        // A bad share for one receiver only, so that some would go on to the new epoch and some not.
        (
            "share for one",
            2,
            3,
            |to, body| {
                if to == 4 {
                    body[Bls::LOW_BYTE] ^= 1
                }
            },
            AbortCause::WrongShare,
        ),
        (
            "no share",
            1,
            3,
            |to, body| {
                if to == 4 {
                    body.clear()
                }
            },
            AbortCause::MalformedBody,
        ),
        (
            "share for who leaves",
            2,
            3,
            |to, body| {
                if to == 1 {
                    body.push(1)
                }
            },
            AbortCause::MalformedBody,
        ),
        (
            "share from who joins",
            3,
            3,
            |to, body| {
                if to == 4 {
                    body.push(1)
                }
            },
            AbortCause::MalformedBody,
        ),
        ("confirmation", 3, 4, |_, body| *body.last_mut().unwrap() ^= 1, AbortCause::WrongProof),
        ("confirmation by who leaves", 1, 4, |_, body| body.push(0), AbortCause::MalformedBody),
    ];
    for (session, (case, attacker, round, bend, cause)) in (1u8..).zip(cases) {
        let settings = reshare_settings::<Bls>(None, base, &CASE, session);
        let faults = forging::<Reshare<Bls>>(attacker, settings, |of_round, to, body| {
            if of_round == round {
                bend(to, body);
            }
        });
        named(case, &reshare_with::<Bls>(&shares, &CASE, session, faults), attacker, cause);
    }
}

/// A proof over other bytes than those committed to would be a forged opening; with a commitment that fits, the proof
/// itself is what is wrong.
#[test]
fn a_constant_term_without_proof_is_named() {
    let shares = Bls::keys(&[1, 2, 3], 2, 8);
    let base = shares[&1].public();
    let settings = || reshare_settings::<Bls>(None, base, &CASE, 1);
    let ctx = SessionContext::for_test::<Reshare<Bls>>(settings()).unwrap();
    let mut opening = Vec::new();
    let watch = forging::<Reshare<Bls>>(1, settings(), |round, _, body| {
        if round == 2 {
            opening.clone_from(body);
        }
    });
    reshare_with::<Bls>(&shares, &CASE, 1, watch);
    // The response of the proof, before the contribution.
    let at = opening.len() - 33;
    opening[at] ^= 1;
    let commitment = forged_commitment(&ctx, party(1), &opening);
    let faults = forging::<Reshare<Bls>>(1, settings(), |round, _, body| match round {
        1 => body.clone_from(&commitment),
        2 => body.clone_from(&opening),
        _ => (),
    });
    named("proof", &reshare_with::<Bls>(&shares, &CASE, 1, faults), 1, AbortCause::WrongProof);
}

/// A dealer with another secret than its verification share says deals a good polynomial of another key, and proves
/// that it knows its constant term.
#[test]
fn a_dealer_cannot_change_the_key() {
    let old = Bls::keys(&[1, 2, 3], 2, 8);
    let base = old[&1].public();
    let start = |me: u32| {
        let share = CASE.dealers.contains(&me).then(|| Bls::reopen(&old[&me]));
        let share = share.map(|share| if me == 2 { Bls::shifted(share) } else { share });
        (Some(party(me)), start_reshare::<Bls>(me, share, base, &CASE, 1).unwrap())
    };
    let started: Vec<_> = CASE.everybody().into_iter().map(start).collect();
    let outcomes = World::new(1, Faults::default(), started).run();
    named("other key", &outcomes, 2, AbortCause::WrongOpening);
    assert!(outcomes.values().all(|outcome| outcome.done.is_none()));
}
