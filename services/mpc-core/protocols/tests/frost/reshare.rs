//! Reshare: the same key for other parties, with another threshold, or for a party that has lost its share.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use engine::forge::{Forged, echo_of};
use engine::session::{DISCLOSURE_ROUND, NOTICE_ROUND, Session};
use engine::{AbortCause, Envelope, SessionContext, SessionSettings, SetupError};
use protocols::frost::{KeyPublic, KeyShare, Reshare, Reshared, Suite};
use sim::{Faults, Packet, World};

use crate::common::{evidence_key, party, rng, roster, threshold};
use crate::frost::both_suites;
use crate::harness::{
    Change, Shares, Tested, by_number, check, everybody, keygen, message, payload, reopen, reshare_settings,
    reshare_with, set, sign_with, start_reshare, start_sign,
};

fn reshare<S: Suite + core::fmt::Debug>(shares: &Shares<S>, change: &Change<'_>) -> Shares<S> {
    let reshared = by_number(reshare_with(shares, change, 9, Faults::default()));
    let public = reshared.values().next().unwrap().public.clone();
    let mut new = Shares::new();
    for (number, Reshared { public: seen, share }) in reshared {
        assert_eq!(seen, public);
        assert_eq!(share.is_some(), change.receivers.contains(&number));
        new.extend(share.map(|share| (number, share)));
    }
    new
}

fn signs<S: Tested>(public: &KeyPublic<S>, shares: &Shares<S>, signers: &[u32]) {
    for target in S::targets() {
        let request = payload(message(3), &target);
        check(public, &request, &by_number(sign_with(shares, signers, 5, &request, Faults::default())));
    }
}

/// The shares of before, who deals and receives, and quorums of the receivers that sign.
type Case<'a, S> = (&'a Shares<S>, Change<'a>, &'a [&'a [u32]]);

fn the_key_stays_and_the_parties_change<S: Tested>() {
    let of_three = keygen::<S>(&[1, 2, 3], 2, 1);
    let of_five = keygen::<S>(&[1, 3, 4, 7, 9], 3, 2);
    let cases: [Case<'_, S>; 6] = [
        // Party 2 lost its share and gets one from the others.
        (
            &of_three,
            Change { dealers: &[1, 3], receivers: &[1, 2, 3], t: 2 },
            &[&[1, 2], &[2, 3], &[1, 2, 3]],
        ),
        // One leaves, one joins.
        (&of_three, Change { dealers: &[1, 2, 3], receivers: &[1, 2, 8], t: 2 }, &[&[1, 8], &[2, 8]]),
        // More parties, a higher threshold.
        (
            &of_three,
            Change { dealers: &[1, 2], receivers: &[2, 3, 4, 5, 6], t: 3 },
            &[&[2, 4, 6], &[3, 4, 5, 6]],
        ),
        // Fewer parties, a lower threshold, nobody in common.
        (&of_five, Change { dealers: &[1, 4, 7, 9], receivers: &[20, 300], t: 2 }, &[&[20, 300]]),
        // Only the threshold changes.
        (
            &of_five,
            Change { dealers: &[1, 3, 4, 7, 9], receivers: &[1, 3, 4, 7, 9], t: 2 },
            &[&[1, 9], &[3, 4]],
        ),
        (&of_five, Change { dealers: &[3, 4, 9], receivers: &[1, 3, 4, 7, 9], t: 5 }, &[&[1, 3, 4, 7, 9]]),
    ];
    for (old, change, quorums) in cases {
        let new = reshare(old, &change);
        let before = old.values().next().unwrap().public();
        let after = new.values().next().unwrap().public().clone();
        assert_eq!((&after.public_key, after.chain_code), (&before.public_key, before.chain_code));
        assert_eq!((after.epoch, after.threshold), (2, threshold(change.t)));
        assert_eq!(after.parties(), set(change.receivers));
        for (party, point) in &after.verification_shares {
            assert!(before.verification_shares.iter().all(|(other, old)| other != party || old != point));
        }
        for quorum in quorums {
            signs(before, &new, quorum);
        }
        // Again, from the new shares.
        let all: Vec<u32> = new.keys().copied().collect();
        let again = reshare(&new, &Change { dealers: &all, receivers: &all, t: change.t });
        assert_eq!(again[&all[0]].public().epoch, 3);
        signs(before, &again, quorums[0]);
    }
}

fn old_shares_do_not_mix_with_new_ones<S: Tested>() {
    let old = keygen::<S>(&[1, 2, 3], 2, 3);
    let new = reshare(&old, &Change { dealers: &[1, 2], receivers: &[1, 2, 3], t: 2 });
    let request = payload(message(1), &S::targets()[0]);
    assert!(start_sign(reopen(&old[&1]), &[1, 2], 1, &request).is_ok());
    let sessions = [(1, &new[&1]), (2, &old[&2])].map(|(number, share)| {
        (Some(party(number)), start_sign(reopen(share), &[1, 2], 1, &request).unwrap())
    });
    let outcomes = World::new(1, Faults::default(), Vec::from(sessions)).run();
    assert!(outcomes.values().all(|outcome| outcome.done.is_none() && !outcome.rejects.is_empty()));
}

/// A party that only leaves gets no share value; one that only joins deals none.
fn nothing_secret_goes_to_those_who_leave<S: Tested>() {
    let old = keygen::<S>(&[1, 2, 3], 2, 4);
    let change = Change { dealers: &[1, 2], receivers: &[2, 3], t: 2 };
    let seen = Cell::new(0);
    let watch = |packet: Packet| {
        let forged = Forged::open(&packet.bytes).unwrap();
        if forged.round == 3 && packet.to == Some(party(1)) {
            assert!(forged.body.is_empty());
            seen.set(seen.get() + 1);
        }
        if forged.round == 3 && packet.from == party(1) {
            assert_eq!(forged.body.len(), 32);
        }
        if forged.round == 2 && packet.from == party(3) {
            assert_eq!(forged.body.len(), 1 + 32);
        }
        vec![packet]
    };
    by_number(reshare_with(&old, &change, 1, Faults { tamper: Some(Box::new(watch)), ..Faults::default() }));
    assert_eq!(seen.get(), 2);
}

fn reshare_refuses_what_cannot_be<S: Tested>() {
    let old = keygen::<S>(&[1, 2, 3], 2, 5);
    let base = old[&1].public();
    let own = || Some(reopen(&old[&1]));
    let good = Change { dealers: &[1, 2], receivers: &[2, 3, 4], t: 2 };
    let try_as = |me: u32, share: Option<KeyShare<S>>, change: &Change<'_>| {
        start_reshare(me, share, base, change, 1).err()
    };
    assert_eq!(try_as(1, own(), &good), None);
    assert_eq!(try_as(3, None, &good), None);
    assert_eq!(try_as(4, None, &good), None);
    assert_eq!(try_as(1, None, &good), Some(SetupError::ShareMissing));
    assert_eq!(try_as(3, Some(reopen(&old[&3])), &good), Some(SetupError::InputUnexpected));
    assert_eq!(try_as(1, Some(reopen(&old[&2])), &good), Some(SetupError::ShareMismatch));
    let other = keygen::<S>(&[1, 2, 3], 2, 6);
    assert_eq!(try_as(1, Some(reopen(&other[&1])), &good), Some(SetupError::ShareMismatch));
    let with = |dealers: &'static [u32], receivers: &'static [u32], t| {
        try_as(1, own(), &Change { dealers, receivers, t })
    };
    assert_eq!(with(&[1], &[1, 2, 3], 2), Some(SetupError::RolesInvalid));
    assert_eq!(with(&[1, 4], &[1, 2, 3, 4], 2), Some(SetupError::SigningSetNotOfKey));
    assert_eq!(with(&[1, 2], &[3], 2), Some(SetupError::ThresholdRange));
    assert_eq!(with(&[1, 2], &[2, 3], 1), Some(SetupError::ThresholdRange));
    assert_eq!(with(&[1, 2], &[2, 3], 3), Some(SetupError::ThresholdRange));
    assert_eq!(with(&[1, 2], &[], 2), Some(SetupError::ThresholdRange));
    let settings_with = |alter: &dyn Fn(&mut SessionSettings)| {
        let mut settings = reshare_settings(Some(1), base, &good, 1);
        alter(&mut settings);
        Session::<Reshare<S>>::start(settings, Some(evidence_key(party(1))), own(), &mut rng(1)).err()
    };
    assert_eq!(settings_with(&|_| ()), None);
    assert_eq!(settings_with(&|s| s.epoch = 1), Some(SetupError::EpochRange));
    assert_eq!(settings_with(&|s| s.epoch = 3), Some(SetupError::EpochRange));
    assert_eq!(settings_with(&|s| s.key_id.push('x')), Some(SetupError::KeyPublicInvalid));
    assert_eq!(settings_with(&|s| s.roster.push(roster(&[9]).remove(0))), Some(SetupError::RolesInvalid));
    assert_eq!(settings_with(&|s| s.roster.truncate(3)), Some(SetupError::RolesInvalid));
    // Other roles may be possible ones, in another session; other public data never are.
    let roles = 1 + 2 * good.dealers.len() + 1 + 2 * good.receivers.len();
    for place in 0..reshare_settings(None, base, &good, 1).payload.len() {
        let refused = settings_with(&|s| s.payload[place] ^= 1);
        assert!(refused.is_some() || place < roles, "payload byte {place}");
        assert!(settings_with(&|s| s.payload.truncate(place)).is_some(), "payload of {place}");
    }
    assert_eq!(settings_with(&|s| s.payload.push(0)), Some(SetupError::PayloadInvalid));
    // Public data that are not of one key fool not even a party that has no share.
    let mut wrong = base.clone();
    wrong.public_key.clone_from(&other[&1].public().public_key);
    assert_eq!(start_reshare(4, None, &wrong, &good, 1).err(), Some(SetupError::KeyPublicInvalid));
}

/// The case that the attacks below are tried on. Party 2 deals and receives, 1 only deals, 3 and 4 only receive.
const CASE: Change<'static> = Change { dealers: &[1, 2], receivers: &[2, 3, 4], t: 2 };

/// Lets `attacker` change the bodies it sends and stand by them: its echo digests are those of what it sent, and it
/// neither complains nor discloses.
fn forging<'a, S: Suite>(
    attacker: u32,
    base: &KeyPublic<S>,
    session: u8,
    mut change: impl FnMut(u8, u32, &mut Vec<u8>) + 'a,
) -> Faults<'a> {
    let settings = reshare_settings(None, base, &CASE, session);
    let ctx = SessionContext::for_test::<Reshare<S>>(settings).unwrap();
    let mut seen: BTreeMap<(u8, u32), Arc<Envelope>> = BTreeMap::new();
    let tamper = move |packet: Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        let from = u32::from(packet.from.get());
        let mut bytes = packet.bytes.clone();
        if from == attacker {
            if forged.round == NOTICE_ROUND || forged.round == DISCLOSURE_ROUND {
                return Vec::new();
            }
            change(forged.round, packet.to.map_or(0, |party| u32::from(party.get())), &mut forged.body);
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

fn deviations_name_the_party_and_leave_the_old_shares_as_they_were<S: Tested>() {
    type Bend = fn(u32, &mut Vec<u8>, usize);
    let old = keygen::<S>(&[1, 2, 3], 2, 7);
    let base = old[&1].public();
    let cases: [(&str, u32, u8, Bend, AbortCause); 15] = [
        // Threshold raising: one more coefficient would make a key that the agreed number of parties cannot use.
        ("raised", 1, 2, |_, body, _| body[0] += 1, AbortCause::WrongDegree),
        ("lowered", 1, 2, |_, body, _| body[0] -= 1, AbortCause::WrongDegree),
        ("receiver deals", 4, 2, |_, body, _| body[0] = 2, AbortCause::WrongDegree),
        ("other opening", 1, 2, |_, body, _| *body.last_mut().unwrap() ^= 1, AbortCause::WrongOpening),
        ("other commitment", 1, 1, |_, body, _| body[0] ^= 1, AbortCause::WrongOpening),
        ("other contribution", 4, 2, |_, body, _| *body.last_mut().unwrap() ^= 1, AbortCause::WrongOpening),
        ("no point", 1, 2, |_, body, _| body[1..=S::POINT_BYTES].fill(0xff), AbortCause::InvalidPoint),
        (
            "share that is none",
            2,
            3,
            |to, body, _| {
                if to == 4 {
                    body.copy_from_slice(&S::NO_SCALAR)
                }
            },
            AbortCause::InvalidScalar,
        ),
        (
            "confirmation without nonce point",
            3,
            4,
            |_, body, _| body[..S::POINT_BYTES].fill(0xff),
            AbortCause::WrongProof,
        ),
        // Forget and forgive: a bad share for one receiver only, so that some would go on to the new epoch and some
        // not.
        (
            "share for one",
            2,
            3,
            |to, body, low| {
                if to == 4 {
                    body[low] ^= 1
                }
            },
            AbortCause::WrongShare,
        ),
        (
            "no share",
            1,
            3,
            |to, body, _| {
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
            |to, body, _| {
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
            |to, body, _| {
                if to == 4 {
                    body.push(1)
                }
            },
            AbortCause::MalformedBody,
        ),
        (
            "confirmation",
            3,
            4,
            |_, body, low| *body.iter_mut().rev().nth(31 - low).unwrap() ^= 1,
            AbortCause::WrongProof,
        ),
        ("confirmation by who leaves", 1, 4, |_, body, _| body.push(0), AbortCause::MalformedBody),
    ];
    for (session, (case, attacker, round, bend, cause)) in (1u8..).zip(cases) {
        let faults = forging(attacker, base, session, |of_round, to, body| {
            if of_round == round {
                bend(to, body, S::LOW_BYTE);
            }
        });
        let outcomes = reshare_with(&old, &CASE, session, faults);
        for (address, outcome) in outcomes.iter().filter(|(a, _)| **a != Some(party(attacker))) {
            let abort = outcome.abort().unwrap_or_else(|| panic!("{case}: {address:?} did not abort"));
            let blamed = (abort.cause, abort.culprits.as_slice());
            assert_eq!(blamed, (cause, [party(attacker)].as_slice()), "{case}");
            // In the last round some may be done before the proof of the deviation reaches them; then they are told.
            assert!(outcome.done.is_none() || round == 4, "{case}: {address:?}");
        }
    }
    // Nothing of that cost the key anything.
    signs(base, &old, &[1, 3]);
    signs(base, &reshare(&old, &CASE), &[3, 4]);
}

/// A dealer with another secret than its verification share says deals a good polynomial of another key, and proves
/// that it knows its constant term.
fn a_dealer_cannot_change_the_key<S: Tested>() {
    let old = keygen::<S>(&[1, 2, 3], 2, 8);
    let base = old[&1].public();
    let started: Vec<_> = everybody(&CASE)
        .into_iter()
        .map(|me| {
            let share = CASE.dealers.contains(&me).then(|| reopen(&old[&me]));
            let share = share.map(|share| if me == 2 { share.shifted() } else { share });
            (Some(party(me)), start_reshare(me, share, base, &CASE, 1).unwrap())
        })
        .collect();
    let outcomes = World::new(1, Faults::default(), started).run();
    for honest in [1, 3, 4] {
        let abort = outcomes[&Some(party(honest))].abort().unwrap();
        assert_eq!(
            (abort.cause, abort.culprits.as_slice()),
            (AbortCause::WrongOpening, [party(2)].as_slice())
        );
        assert_eq!(abort.evidence.len(), 1);
    }
    assert!(outcomes.values().all(|outcome| outcome.done.is_none()));
}

/// Drops and duplicates over many seeds: one set of public data, or no end.
fn reshare_over_a_network_that_fails<S: Tested>() {
    let old = keygen::<S>(&[1, 2, 3], 2, 10);
    let (mut finished, mut stuck) = (0, 0);
    for session in 0..30u8 {
        let faults = Faults {
            duplicated_percent: 30,
            dropped_percent: u32::from(session % 2) * 4,
            crash: (session % 5 == 4).then(|| (party(3), usize::from(session))),
            ..Faults::default()
        };
        let outcomes = reshare_with(&old, &CASE, session, faults);
        assert!(outcomes.values().all(|outcome| outcome.aborts.is_empty()));
        let mut publics =
            outcomes.values().filter_map(|outcome| outcome.done.as_ref()).map(|done| &done.public);
        match publics.next() {
            Some(public) => {
                assert_eq!(public.public_key, old[&1].public().public_key);
                assert!(publics.all(|other| other == public));
                finished += 1;
            }
            None => stuck += 1,
        }
    }
    assert!(finished > 3 && stuck > 1, "{finished} finished, {stuck} stuck");
}

both_suites!(
    the_key_stays_and_the_parties_change,
    old_shares_do_not_mix_with_new_ones,
    nothing_secret_goes_to_those_who_leave,
    reshare_refuses_what_cannot_be,
    deviations_name_the_party_and_leave_the_old_shares_as_they_were,
    a_dealer_cannot_change_the_key,
    reshare_over_a_network_that_fails,
);
