//! Reshare: the same key for other parties or with another threshold; dealers that deviate; runs that end half-way.

use crate::common;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{evidence_key, party, rng, settings, threshold};
use crate::ecdsa_common::{
    Change, Shares, by_number, keygen, payload, reopen, reshare_from, reshare_settings, reshare_with, set,
    sign_with, start_reshare, verify_outside,
};
use engine::forge::{Forged, echo_of};
use engine::session::{DISCLOSURE_ROUND, NOTICE_ROUND, Session};
use engine::{AbortCause, Envelope, SessionContext, SessionSettings, SetupError};
use protocols::ecdsa::{KeyPublic, KeyShare, Reshare, Reshared, SignInput, Signature, Signing};
use sim::{Address, Faults, Outcome, Packet, World};

const DIGEST: [u8; 32] = [0x3c; 32];

/// A whole reshare in which nothing happens.
fn reshare(shares: &Shares, change: &Change<'_>) -> Shares {
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

fn sign(shares: &Shares, signers: &[u32]) -> Signature {
    let request = payload(DIGEST, &[4, 2]);
    let public = shares[&signers[0]].public().clone();
    let started = signers.iter().map(|number| {
        let t = u32::try_from(public.threshold.get()).unwrap();
        let mut settings = settings(Some(party(*number)), signers, t, 1, &request.encode());
        settings.epoch = public.epoch;
        let input = SignInput::Party(Box::new(reopen(&shares[number])));
        let session = Session::<Signing>::start(settings, None, input, &mut rng(u64::from(*number)));
        (Some(party(*number)), session.unwrap())
    });
    let signatures = by_number(World::new(1, Faults::default(), started.collect::<Vec<_>>()).run());
    let signature = signatures[&signers[0]].clone();
    verify_outside(&public.derive(&request.path).unwrap().public_key, DIGEST, &signature);
    signature
}

#[test]
fn the_key_stays_and_the_parties_change() {
    let of_three = keygen(&[1, 2, 3], 2, 1);
    let of_five = keygen(&[1, 3, 4, 7, 9], 3, 2);
    let cases: [(&Shares, Change<'_>, &[&[u32]]); 6] = [
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
        let (before, after) =
            (old.values().next().unwrap().public(), new.values().next().unwrap().public().clone());
        assert_eq!((after.public_key, after.chain_code), (before.public_key, before.chain_code));
        assert_eq!((after.epoch, after.threshold), (2, threshold(change.t)));
        assert_eq!(after.parties(), set(change.receivers));
        for (party, point) in &after.verification_shares {
            assert!(before.verification_shares.iter().all(|(other, old)| other != party || old != point));
        }
        for quorum in quorums {
            sign(&new, quorum);
        }
        // Again, from the new shares.
        let all: Vec<u32> = new.keys().copied().collect();
        let again = reshare(&new, &Change { dealers: &all, receivers: &all, t: change.t });
        assert_eq!(again[&all[0]].public().epoch, 3);
        sign(&again, quorums[0]);
    }
}

/// An old share and a new one are not shares of one polynomial, and no session takes them for that.
#[test]
fn old_shares_do_not_mix_with_new_ones() {
    let old = keygen(&[1, 2, 3], 2, 3);
    let new = reshare(&old, &Change { dealers: &[1, 2], receivers: &[1, 2, 3], t: 2 });
    let request = payload(DIGEST, &[]);
    let start = |share: &KeyShare, epoch: u32| {
        let mut settings = settings(Some(party(1)), &[1, 2], 2, 1, &request.encode());
        settings.epoch = epoch;
        Session::<Signing>::start(settings, None, SignInput::Party(Box::new(reopen(share))), &mut rng(1))
            .err()
    };
    assert_eq!(start(&old[&1], 1), None);
    assert_eq!(start(&old[&1], 2), Some(SetupError::ShareMismatch));
    assert_eq!(start(&new[&1], 1), Some(SetupError::ShareMismatch));
    assert_eq!(start(&new[&1], 2), None);
    let at_zero = |first: &KeyPublic, second: &KeyPublic| {
        let (one, two) = (first.verification_shares[0].1, second.verification_shares[1].1);
        one + one - two
    };
    assert_eq!(at_zero(new[&1].public(), new[&1].public()), old[&1].public().public_key);
    assert_ne!(at_zero(old[&1].public(), new[&1].public()), old[&1].public().public_key);
}

/// A party that only leaves gets no share value, whatever arrives; one that only joins deals none.
#[test]
fn nothing_secret_goes_to_those_who_leave() {
    let old = keygen(&[1, 2, 3], 2, 4);
    let change = Change { dealers: &[1, 2], receivers: &[2, 3], t: 2 };
    let seen = Cell::new(0);
    let watch = |packet: Packet| {
        let forged = Forged::open(&packet.bytes).unwrap();
        if (3..=5).contains(&forged.round) && packet.to == Some(party(1)) {
            assert_eq!(forged.body, [0; 4], "round {}", forged.round);
            seen.set(seen.get() + 1);
        }
        if forged.round == 3 && packet.from == party(1) {
            assert_eq!(forged.body.len(), 32 + 4);
        }
        if forged.round == 2 && packet.from == party(3) {
            assert_eq!(forged.body.len(), 1 + 32);
        }
        vec![packet]
    };
    by_number(reshare_with(&old, &change, 1, Faults { tamper: Some(Box::new(watch)), ..Faults::default() }));
    assert_eq!(seen.get(), 6);
}

#[test]
fn reshare_refuses_what_cannot_be() {
    let old = keygen(&[1, 2, 3], 2, 5);
    let base = old[&1].public();
    let own = || Some(reopen(&old[&1]));
    let good = Change { dealers: &[1, 2], receivers: &[2, 3, 4], t: 2 };
    let try_as = |me: u32, share: Option<KeyShare>, change: &Change<'_>| {
        start_reshare(me, share, base, change, 1).err()
    };
    assert_eq!(try_as(1, own(), &good), None);
    assert_eq!(try_as(3, None, &good), None);
    assert_eq!(try_as(4, None, &good), None);
    assert_eq!(try_as(1, None, &good), Some(SetupError::ShareMissing));
    assert_eq!(try_as(3, Some(reopen(&old[&3])), &good), Some(SetupError::InputUnexpected));
    assert_eq!(try_as(1, Some(reopen(&old[&2])), &good), Some(SetupError::ShareMismatch));
    let other = keygen(&[1, 2, 3], 2, 6);
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
        Session::<Reshare>::start(settings, Some(evidence_key(party(1))), own(), &mut rng(1)).err()
    };
    assert_eq!(settings_with(&|_| ()), None);
    assert_eq!(settings_with(&|s| s.epoch = 1), Some(SetupError::EpochRange));
    assert_eq!(settings_with(&|s| s.epoch = 3), Some(SetupError::EpochRange));
    assert_eq!(settings_with(&|s| s.key_id.push('x')), Some(SetupError::KeyPublicInvalid));
    // A party too many, one too few.
    assert_eq!(
        settings_with(&|s| s.roster.push(common::roster(&[9]).remove(0))),
        Some(SetupError::RolesInvalid)
    );
    assert_eq!(settings_with(&|s| s.roster.truncate(3)), Some(SetupError::RolesInvalid));
    // Other roles may be possible ones, in another session; other public data never are.
    let roles = 1 + 2 * good.dealers.len() + 1 + 2 * good.receivers.len();
    for place in 0..base_payload_bytes(base, &good) {
        let refused = settings_with(&|s| s.payload[place] ^= 1);
        assert!(refused.is_some() || place < roles, "payload byte {place}");
        assert!(settings_with(&|s| s.payload.truncate(place)).is_some(), "payload of {place}");
    }
    assert_eq!(settings_with(&|s| s.payload.push(0)), Some(SetupError::PayloadInvalid));
    // Public data that are not of one key fool not even a party that has no share.
    let mut wrong = base.clone();
    wrong.public_key = other[&1].public().public_key;
    assert_eq!(start_reshare(4, None, &wrong, &good, 1).err(), Some(SetupError::KeyPublicInvalid));
}

fn base_payload_bytes(base: &KeyPublic, change: &Change<'_>) -> usize {
    reshare_settings(None, base, change, 1).payload.len()
}

/// The case that the attacks below are tried on. Party 2 deals and receives, 1 only deals, 4 only receives.
const CASE: Change<'static> = Change { dealers: &[1, 2], receivers: &[2, 3, 4], t: 2 };

/// Lets `attacker` change the bodies it sends in rounds 1 to 6 and stand by them: its echo digests are those of what it
/// sent, and it neither complains nor discloses.
fn forging<'a>(
    attacker: u32,
    base: &KeyPublic,
    session: u8,
    mut change: impl FnMut(u8, u32, &mut Vec<u8>) + 'a,
) -> Faults<'a> {
    let ctx = SessionContext::for_test::<Reshare>(reshare_settings(None, base, &CASE, session)).unwrap();
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

/// Nobody but `attacker` is blamed, everybody else blames it for `cause`, and nobody has a share.
fn expect_blamed(
    case: &str,
    outcomes: &BTreeMap<Address, Outcome<Reshared>>,
    attacker: u32,
    cause: AbortCause,
) {
    for (address, outcome) in outcomes.iter().filter(|(address, _)| **address != Some(party(attacker))) {
        let abort = outcome.abort().unwrap_or_else(|| panic!("{case}: {address:?} did not abort"));
        assert_eq!((abort.cause, abort.culprits.as_slice()), (cause, [party(attacker)].as_slice()), "{case}");
        assert!(outcome.done.is_none(), "{case}: {address:?}");
    }
}

#[test]
fn deviations_name_the_party_and_leave_the_old_shares_as_they_were() {
    type Bend = fn(u32, &mut Vec<u8>);
    let old = keygen(&[1, 2, 3], 2, 7);
    let base = old[&1].public();
    let point = primitives::secp256k1::encode_point(&base.public_key);
    let cases: [(&str, u32, u8, Bend, AbortCause); 12] = [
        // Threshold raising: one more coefficient would make a key that the agreed number of parties cannot use.
        ("raised", 1, 2, |_, body| body[0] += 1, AbortCause::WrongDegree),
        ("lowered", 1, 2, |_, body| body[0] -= 1, AbortCause::WrongDegree),
        ("receiver deals", 4, 2, |_, body| body[0] = 2, AbortCause::WrongDegree),
        ("other opening", 1, 2, |_, body| *body.last_mut().unwrap() ^= 1, AbortCause::WrongOpening),
        ("point off the curve", 1, 2, |_, body| body[1..34].fill(0xff), AbortCause::InvalidPoint),
        // Forget and forgive: a bad share for one receiver only, so that some would go on to the new epoch and some
        // not.
        (
            "share for one",
            1,
            3,
            |to, body| {
                if to == 3 {
                    body[31] ^= 1
                }
            },
            AbortCause::WrongShare,
        ),
        (
            "share for one, by a receiver",
            2,
            3,
            |to, body| {
                if to == 4 {
                    body[31] ^= 1
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
                    body.drain(..32);
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
                    body.splice(..0, [1; 32]);
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
                    body.splice(..0, [1; 32]);
                }
            },
            AbortCause::MalformedBody,
        ),
        ("confirmation", 3, 6, |_, body| body[64] ^= 1, AbortCause::WrongProof),
        ("confirmation by who leaves", 1, 6, |_, body| body.push(0), AbortCause::MalformedBody),
    ];
    for (session, (case, attacker, round, bend, cause)) in (1u8..).zip(cases) {
        let faults = forging(attacker, base, session, |of_round, to, body| {
            if of_round == round {
                bend(to, body);
                if case == "raised" {
                    body.splice(34..34, point);
                }
            }
        });
        let outcomes = reshare_with(&old, &CASE, session, faults);
        if case.starts_with("confirmation") {
            // In the last round some may be done before the proof of the deviation reaches them; then they are told.
            for (address, outcome) in outcomes.iter().filter(|(a, _)| **a != Some(party(attacker))) {
                let abort = outcome.abort().unwrap_or_else(|| panic!("{case}: {address:?}"));
                assert_eq!(
                    (abort.cause, abort.culprits.as_slice()),
                    (cause, [party(attacker)].as_slice()),
                    "{case}"
                );
            }
        } else {
            expect_blamed(case, &outcomes, attacker, cause);
        }
    }
    // Nothing of that cost the key anything.
    sign(&old, &[1, 3]);
    sign(&reshare(&old, &CASE), &[3, 4]);
}

/// A dealer with another secret than its verification share says deals a good polynomial of another key, and proves
/// that it knows its constant term.
#[test]
fn a_dealer_cannot_change_the_key() {
    let old = keygen(&[1, 2, 3], 2, 8);
    let deal = |me: u32, share: KeyShare| if me == 2 { share.shifted() } else { share };
    let outcomes = reshare_from(&old, deal, &CASE, 1, Faults::default());
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

/// The last message that gets through may be any: no receiver has a share that others refuse, the old shares sign
/// still, a new run succeeds, and those who were done in the first one have, like the others, a share of the second.
#[test]
fn runs_that_end_half_way_cost_nothing() {
    let old = keygen(&[1, 2, 3], 2, 9);
    let mut done_by_some = 0;
    // 12 messages a round; the last one matters most.
    for limit in (1..61).step_by(12).chain((62..73).step_by(2)) {
        let mut left = limit;
        let tamper = move |packet: Packet| {
            left = usize::saturating_sub(left, 1);
            if left > 0 { vec![packet] } else { Vec::new() }
        };
        let faults = Faults { tamper: Some(Box::new(tamper)), ..Faults::default() };
        let outcomes = reshare_with(&old, &CASE, 10, faults);
        assert!(outcomes.values().all(|outcome| outcome.aborts.is_empty()));
        let done = outcomes.values().filter(|outcome| outcome.done.is_some()).count();
        done_by_some += usize::from(done > 0 && done < outcomes.len());
    }
    assert!(done_by_some > 0);
    by_number(sign_with(&old, &[2, 3], 1, &payload(DIGEST, &[]), Faults::default()));
    sign(&reshare(&old, &CASE), &[2, 4]);
}

/// Drops and duplicates over many seeds: one set of public data, or no end.
#[test]
fn reshare_over_a_network_that_fails() {
    let old = keygen(&[1, 2, 3], 2, 10);
    let (mut finished, mut stuck) = (0, 0);
    for session in 0..20u8 {
        let faults = Faults {
            duplicated_percent: 30,
            dropped_percent: u32::from(session % 2) * 2,
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
