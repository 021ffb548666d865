//! Party 2 deviates in every field of every message: the expected cause, the expected culprit, and no signature that
//! does not verify.

use crate::common;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{evidence_key, party, settings};
use crate::ecdsa_common::{
    Shares, by_number, data_key, keygen, keygen_with, payload, presign, presign_all, presign_payload,
    presign_with, reopen, sign_presigned, sign_with, start_observer, start_presign, start_presigned,
    start_sign, verify_outside,
};
use engine::forge::{Forged, echo_of};
use engine::session::Session;
use engine::{AbortCause, Advice, Envelope, Reject, SetupError};
use primitives::secp256k1::{
    Scalar, decode_point, decode_scalar, encode_point, encode_scalar, mul_generator,
};
use protocols::dealing::forged_commitment;
use protocols::ecdsa::presign::MAX_BATCH;
use protocols::ecdsa::{Keygen, Presignature, SignPayload, Signature, Signing};
use sim::{Address, Faults, Outcome, Packet, World};

const ATTACKER: u32 = 2;
const PARTIES: [u32; 3] = [1, 2, 3];
const DIGEST: [u8; 32] = [0xd1; 32];

/// A change of a body.
type Change = fn(&mut Vec<u8>);

/// Changes what the attacker sends in `round`: to `only`, or to everybody.
fn tampering(round: u8, only: Option<u32>, change: Change) -> Faults<'static> {
    forging(move |from, to, forged| {
        let hit = from == ATTACKER && forged.round == round && only.is_none_or(|only| to == only);
        if hit {
            change(&mut forged.body);
        }
    })
}

/// Lets the attacker replace anything in its envelopes; they are signed again.
fn forging<'a>(mut change: impl FnMut(u32, u32, &mut Forged) + 'a) -> Faults<'a> {
    let tamper = move |packet: Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        let number = |address: Address| address.map_or(0, |party| u32::from(party.get()));
        change(number(Some(packet.from)), number(packet.to), &mut forged);
        let bytes = forged.encode(&evidence_key(packet.from));
        vec![Packet { bytes, ..packet }]
    };
    Faults { tamper: Some(Box::new(tamper)), ..Faults::default() }
}

/// As [`forging`], in key generation, by an attacker that stands by what it sent: its echo digests are those of the
/// altered broadcasts, and it neither complains nor discloses.
fn forging_keygen<'a>(mut change: impl FnMut(u32, u32, &mut Forged) + 'a) -> Faults<'a> {
    let ctx = keygen_context(2);
    let mut seen: BTreeMap<(u8, u32), Arc<Envelope>> = BTreeMap::new();
    let tamper = move |packet: Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        let from = u32::from(packet.from.get());
        let mut bytes = packet.bytes.clone();
        if from == ATTACKER {
            if forged.round > 6 {
                return Vec::new();
            }
            change(from, packet.to.map_or(0, |party| u32::from(party.get())), &mut forged);
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

fn flip(body: &mut [u8], place: usize) {
    body[place] ^= 1;
}

fn add_one(scalar: &mut [u8]) {
    let value = decode_scalar((&*scalar).try_into().unwrap()).unwrap() + Scalar::ONE;
    scalar.copy_from_slice(&encode_scalar(&value));
}

fn other_point(point: &mut [u8]) {
    point.copy_from_slice(&encode_point(&mul_generator(&Scalar::from(77u64))));
}

/// Checks one honest party's end. Anything it did produce must be a signature of the digest.
fn expect<T>(
    case: &str,
    outcomes: &BTreeMap<Address, Outcome<T>>,
    honest: u32,
    cause: AbortCause,
    culprits: &[u32],
) {
    let outcome = &outcomes[&Some(party(honest))];
    let abort = outcome.abort().unwrap_or_else(|| panic!("{case}: party {honest} did not abort"));
    assert_eq!(abort.cause, cause, "{case}: party {honest}");
    let named: Vec<u32> = abort.culprits.iter().map(|party| u32::from(party.get())).collect();
    assert_eq!(named, culprits, "{case}: party {honest}");
    let advice = if culprits.is_empty() { Advice::Retry } else { Advice::ExcludeParty };
    assert_eq!(abort.advice(), advice, "{case}");
    assert!(outcome.done.is_none(), "{case}");
}

/// No honest party ever blames an honest one, and no result is anything but a signature of the digest.
fn expect_no_harm<T>(case: &str, outcomes: &BTreeMap<Address, Outcome<T>>) {
    for (address, outcome) in outcomes.iter().filter(|(address, _)| **address != Some(party(ATTACKER))) {
        for abort in &outcome.aborts {
            assert!(abort.culprits.iter().all(|culprit| *culprit == party(ATTACKER)), "{case} {address:?}");
        }
    }
}

/// Offsets in the round 2 body.
const SALT: usize = 32;
const NONCE_POINT: usize = 64;
const KEY_POINT: usize = 97;
const PRODUCT_POINTS: usize = 130;
const MASK_MINUS_FACTOR: usize = 196;
const MESSAGE: usize = 228;
/// Alice's masked scalars, after her salt.
const MASKED: usize = MESSAGE + 16;

/// Name, round, change, cause at party 1, whether the attacker is named.
const SIGN_CASES: &[(&str, u8, Change, AbortCause, bool)] = &[
    ("commitment", 1, |b| flip(b, 0), AbortCause::BroadcastMismatch, false),
    ("salt of the extension", 1, |b| flip(b, 32), AbortCause::TransferCheckFailed, true),
    ("difference of a column", 1, |b| flip(b, 48 + 68 * 7), AbortCause::TransferCheckFailed, true),
    (
        "hash of the choices",
        1,
        |b| {
            let n = b.len() - 48;
            flip(b, n)
        },
        AbortCause::TransferCheckFailed,
        true,
    ),
    (
        "digest of the columns",
        1,
        |b| {
            let n = b.len() - 1;
            flip(b, n)
        },
        AbortCause::TransferCheckFailed,
        true,
    ),
    (
        "short round 1",
        1,
        |b| {
            b.pop();
        },
        AbortCause::MalformedBody,
        true,
    ),
    ("empty round 1", 1, Vec::clear, AbortCause::MalformedBody, true),
    ("hash of the commitments", 2, |b| flip(b, 0), AbortCause::BroadcastMismatch, false),
    ("salt of the commitment", 2, |b| flip(b, SALT), AbortCause::WrongOpening, true),
    ("nonce point", 2, |b| other_point(&mut b[NONCE_POINT..KEY_POINT]), AbortCause::WrongOpening, true),
    (
        "nonce point off the curve",
        2,
        |b| b[NONCE_POINT..KEY_POINT].fill(0xff),
        AbortCause::InvalidPoint,
        true,
    ),
    ("nonce point identity", 2, |b| b[NONCE_POINT..KEY_POINT].fill(0), AbortCause::InvalidPoint, true),
    ("key point", 2, |b| other_point(&mut b[KEY_POINT..PRODUCT_POINTS]), AbortCause::WrongProduct, true),
    (
        "product point of the nonce",
        2,
        |b| other_point(&mut b[PRODUCT_POINTS..][..33]),
        AbortCause::WrongProduct,
        true,
    ),
    (
        "product point of the key",
        2,
        |b| other_point(&mut b[PRODUCT_POINTS + 33..][..33]),
        AbortCause::WrongProduct,
        true,
    ),
    (
        "mask minus factor",
        2,
        |b| add_one(&mut b[MASK_MINUS_FACTOR..MESSAGE]),
        AbortCause::InvalidSignature,
        false,
    ),
    (
        "mask minus factor too large",
        2,
        |b| b[MASK_MINUS_FACTOR..MESSAGE].fill(0xff),
        AbortCause::InvalidScalar,
        true,
    ),
    ("salt of the answer", 2, |b| flip(b, MESSAGE), AbortCause::TransferCheckFailed, true),
    ("masked scalar", 2, |b| flip(b, MASKED + 32 * 100 + 31), AbortCause::TransferCheckFailed, true),
    ("masked scalar too large", 2, |b| b[MASKED..MASKED + 32].fill(0xff), AbortCause::MalformedBody, true),
    ("masked check scalar", 2, |b| flip(b, MASKED + 95), AbortCause::TransferCheckFailed, true),
    (
        "check scalar",
        2,
        |b| {
            let n = b.len() - 33;
            flip(b, n)
        },
        AbortCause::TransferCheckFailed,
        true,
    ),
    (
        "check digest",
        2,
        |b| {
            let n = b.len() - 1;
            flip(b, n)
        },
        AbortCause::TransferCheckFailed,
        true,
    ),
    (
        "short round 2",
        2,
        |b| {
            b.pop();
        },
        AbortCause::MalformedBody,
        true,
    ),
    ("nonce point of round 3", 3, |b| other_point(&mut b[..33]), AbortCause::InvalidSignature, true),
    ("masked nonce", 3, |b| add_one(&mut b[33..65]), AbortCause::InvalidSignature, false),
    ("masked signature", 3, |b| add_one(&mut b[65..]), AbortCause::InvalidSignature, false),
    ("scalars zero", 3, |b| b[33..].fill(0), AbortCause::InvalidSignature, false),
    ("masked nonce too large", 3, |b| b[33..65].fill(0xff), AbortCause::InvalidScalar, true),
];

#[test]
fn every_field_of_signing() {
    let shares = keygen(&PARTIES, 3, 5);
    let request = payload(DIGEST, &[1]);
    let child = shares[&1].public().derive(&request.path).unwrap().public_key;
    for (session, (name, round, change, cause, named)) in (1u8..).zip(SIGN_CASES) {
        let culprits: &[u32] = if *named { &[ATTACKER] } else { &[] };
        let outcomes = sign_with(&shares, &PARTIES, session, &request, tampering(*round, Some(1), *change));
        expect(name, &outcomes, 1, *cause, culprits);
        expect_no_harm(name, &outcomes);
        for outcome in outcomes.values() {
            if let Some(signature) = &outcome.done {
                verify_outside(&child, DIGEST, signature);
            }
        }
    }
}

/// A party that tells all others the same wrong thing.
#[test]
fn wrong_to_everybody() {
    let shares = keygen(&PARTIES, 2, 6);
    let request = payload(DIGEST, &[]);
    for (session, (name, round, change, cause, named)) in (1u8..).zip(SIGN_CASES).step_by(5) {
        let culprits: &[u32] = if *named { &[ATTACKER] } else { &[] };
        let outcomes = sign_with(&shares, &PARTIES, session, &request, tampering(*round, None, *change));
        expect(name, &outcomes, 1, *cause, culprits);
        expect(name, &outcomes, 3, *cause, culprits);
        expect_no_harm(name, &outcomes);
    }
}

/// Two parties show some peers key points that are off by what makes up for each other, to each peer by something else:
/// the points still add up to the key, but what each multiplied is no longer the logarithm of what it shows.
#[test]
fn colluders_whose_key_points_make_up_for_each_other_are_named() {
    const SIGNERS: [u32; 4] = [1, 2, 3, 4];
    let shares = keygen(&SIGNERS, 4, 17);
    let request = payload(DIGEST, &[]);
    let shift = |point: &mut [u8], by: Scalar| {
        let shifted = decode_point((&*point).try_into().unwrap()).unwrap() + mul_generator(&by);
        point.copy_from_slice(&encode_point(&shifted));
    };
    // By peer: the amount that the one colluder adds and the other takes away.
    for (session, by_peer) in [(1, [5u64, 0]), (2, [5, 7]), (3, [0, 0])] {
        let outcomes = sign_with(
            &shares,
            &SIGNERS,
            session,
            &request,
            forging(|from, to, forged| {
                if forged.round != 2 || from < 3 || !(1..=2).contains(&to) {
                    return;
                }
                let by = Scalar::from(by_peer[to as usize - 1]);
                shift(&mut forged.body[KEY_POINT..PRODUCT_POINTS], if from == 3 { by } else { -by });
            }),
        );
        for (honest, by) in [(1, by_peer[0]), (2, by_peer[1])] {
            match outcomes[&Some(party(honest))].abort() {
                Some(abort) => {
                    assert_ne!(by, 0, "party {honest} of session {session}: {abort}");
                    assert_eq!(
                        (abort.cause, abort.culprits.as_slice()),
                        (AbortCause::WrongProduct, [party(3)].as_slice())
                    );
                }
                None => assert_eq!(by, 0, "party {honest} of session {session} took it"),
            }
        }
        assert_eq!(outcomes[&None].done.is_some(), by_peer == [0, 0]);
    }
}

/// Two parties of three shift what they contribute by amounts that make up for each other: shares of another polynomial
/// (at 1, 2 and 3 the weights of 1 and 2 are 3 and -3), masks, masked nonces, masked keys. Every sum is right, so the
/// same comes out as without: a signature of the digest under the key. Other shifts end without a signature.
#[test]
fn colluders_whose_shifts_make_up_for_each_other_change_nothing() {
    const SIGNERS: [u32; 3] = [1, 2, 3];
    let shares = keygen(&[1, 2, 3, 4], 3, 19);
    let public = shares[&3].public();
    let share_of = |number: u32| {
        let share = reopen(&shares[&number]);
        if number < 3 { share.shifted() } else { share }
    };
    let request = payload(DIGEST, &[1]);
    let key = public.derive(&request.path).unwrap().public_key;
    let harmless = |outcomes: BTreeMap<Address, Outcome<Signature>>| {
        by_number(outcomes).values().for_each(|signature| verify_outside(&key, DIGEST, signature));
    };
    let started = SIGNERS
        .map(|number| (Some(party(number)), start_sign(share_of(number), &SIGNERS, 1, &request).unwrap()));
    let observer = (None, start_observer(public, &SIGNERS, 1, &request).unwrap());
    harmless(World::new(1, Faults::default(), started.into_iter().chain([observer])).run());
    let wanted = presign_payload(&[1], 1);
    let started = SIGNERS
        .map(|number| (Some(party(number)), start_presign(share_of(number), &SIGNERS, 2, &wanted).unwrap()));
    let made = by_number(World::new(2, Faults::default(), started).run());
    let made: BTreeMap<u32, Presignature> =
        made.into_iter().map(|(number, mut made)| (number, made.pop().unwrap())).collect();
    let presigned = SignPayload { presignature: Some(*made[&3].id()), ..payload(DIGEST, &[1]) };
    harmless(sign_presigned(public, made, 3, &presigned, Faults::default()));
    for (round, from, to) in [(2, MASK_MINUS_FACTOR, MESSAGE), (3, 33, 65), (3, 65, 97)] {
        for (session, by_second) in [(4, -Scalar::ONE), (5, Scalar::ONE)] {
            let faults = forging(|sender, recipient, forged| {
                // Towards the honest party and the observer: between themselves they need no messages.
                if sender > 2 || forged.round != round || [1, 2].contains(&recipient) {
                    return;
                }
                let by = if sender == 1 { Scalar::ONE } else { by_second };
                let value = decode_scalar((&forged.body[from..to]).try_into().unwrap()).unwrap() + by;
                forged.body[from..to].copy_from_slice(&encode_scalar(&value));
            });
            let outcomes = sign_with(&shares, &SIGNERS, session, &request, faults);
            if session == 4 {
                harmless(outcomes);
                continue;
            }
            let honest = &outcomes[&Some(party(3))];
            let abort = honest.abort().unwrap_or_else(|| panic!("round {round} at {from}: taken"));
            assert_eq!((abort.cause, &*abort.culprits), (AbortCause::InvalidSignature, &[][..]), "{abort}");
            assert_eq!(abort.suspects, [party(1), party(2)], "{abort}");
            assert!(honest.done.is_none());
        }
    }
}

/// Messages of another session, or of this one meant for another peer, in envelopes of this one.
#[test]
fn transplanted_bodies() {
    let shares = keygen(&PARTIES, 3, 7);
    let request = payload(DIGEST, &[]);
    for round in [1u8, 2] {
        for (from_session, meant_for) in [(1u8, 1u32), (2, 3)] {
            let recorded = RefCell::new(None);
            let record = forging(|from, to, forged| {
                if from == ATTACKER && to == meant_for && forged.round == round {
                    *recorded.borrow_mut() = Some(forged.body.clone());
                }
            });
            sign_with(&shares, &PARTIES, from_session, &request, record);
            let body = recorded.borrow().clone().unwrap();
            let outcomes = sign_with(
                &shares,
                &PARTIES,
                2,
                &request,
                forging(|from, to, forged| {
                    if from == ATTACKER && to == 1 && forged.round == round {
                        forged.body.clone_from(&body);
                    }
                }),
            );
            let name = format!("round {round} of session {from_session} for {meant_for}");
            let abort = outcomes[&Some(party(1))].abort().unwrap();
            let expected = match (round, from_session) {
                (1, _) | (2, 2) => (AbortCause::TransferCheckFailed, 1),
                _ => (AbortCause::BroadcastMismatch, 0),
            };
            assert_eq!((abort.cause, abort.culprits.len()), expected, "{name}");
            expect_no_harm(&name, &outcomes);
        }
    }
}

/// Envelopes of another session are not even looked at.
#[test]
fn replayed_envelopes_are_dropped() {
    let shares = keygen(&PARTIES, 2, 8);
    let request = payload(DIGEST, &[]);
    let recorded = RefCell::new(Vec::new());
    let record = Faults {
        tamper: Some(Box::new(|packet: Packet| {
            recorded.borrow_mut().push(packet.clone());
            vec![packet]
        })),
        ..Faults::default()
    };
    by_number(sign_with(&shares, &PARTIES, 1, &request, record));
    let old = recorded.borrow().clone();
    let replay = Faults {
        tamper: Some(Box::new(move |packet: Packet| {
            let mut packets: Vec<Packet> = old.iter().filter(|old| old.to == packet.to).cloned().collect();
            packets.push(packet);
            packets
        })),
        ..Faults::default()
    };
    let outcomes = sign_with(&shares, &PARTIES, 2, &request, replay);
    for outcome in outcomes.values() {
        assert!(outcome.done.is_some());
        assert!(outcome.rejects.iter().all(|(_, reject)| matches!(
            reject,
            Reject::Session | Reject::RoundPast | Reject::Sender | Reject::Recipient
        )));
    }
}

/// After a failed check the pair is gone from the share, and so are sessions with that peer.
#[test]
fn exclusion_is_lasting() {
    let shares = keygen(&PARTIES, 2, 9);
    let mut share = reopen(&shares[&1]);
    share.exclude(party(ATTACKER));
    let share = reopen(&share);
    assert!(!share.usable_peers().contains(party(ATTACKER)));
    let request = payload(DIGEST, &[]);
    let refused = start_sign(reopen(&share), &[1, 2], 1, &request);
    assert_eq!(refused.err(), Some(SetupError::PeerExcluded));
    assert!(start_sign(share, &[1, 3], 1, &request).is_ok());
}

#[test]
fn shares_of_another_epoch_key_or_party_are_refused() {
    let shares = keygen(&PARTIES, 2, 10);
    let request = payload(DIGEST, &[]);
    let start = |change: &dyn Fn(&mut engine::SessionSettings)| {
        let mut settings = settings(Some(party(1)), &[1, 2], 2, 1, &request.encode());
        change(&mut settings);
        let input = protocols::ecdsa::SignInput::Party(Box::new(reopen(&shares[&1])));
        Session::<Signing>::start(settings, None, input, &mut common::rng(1)).err()
    };
    assert_eq!(start(&|_| ()), None);
    assert_eq!(start(&|s| s.epoch = 2), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.key_id = "keys/other".to_owned()), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.me = Some(party(2))), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.threshold = common::threshold(3)), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.roster = common::roster(&[1])), Some(SetupError::SigningSetTooSmall));
    assert_eq!(start(&|s| s.roster = common::roster(&[1, 9])), Some(SetupError::SigningSetNotOfKey));
    assert_eq!(start(&|s| s.payload.truncate(32)), Some(SetupError::PayloadInvalid));
    assert_eq!(start(&|s| s.payload.push(0)), Some(SetupError::PayloadInvalid));
    // One hardened step.
    let hardened = [DIGEST.as_slice(), &[1, 0x80, 0, 0, 0]].concat();
    assert_eq!(start(&|s| s.payload.clone_from(&hardened)), Some(SetupError::PayloadInvalid));
}

#[test]
fn presignatures_are_bound_to_what_they_were_made_for() {
    let shares = keygen(&PARTIES, 2, 11);
    let public = shares[&1].public().clone();
    let mut first = presign(&shares, &[1, 2], 1, &[4]);
    let mut second = presign(&shares, &[1, 2], 2, &[4]);
    assert_ne!(first[&1].id(), second[&1].id());
    let request = |path: &[u32], id: &[u8; 32]| {
        let mut request = payload(DIGEST, path);
        request.presignature = Some(*id);
        request
    };
    let id = *first[&1].id();
    let blob = first.remove(&1).unwrap().seal(&data_key(), &mut common::rng(1)).unwrap();
    let open = || Presignature::unseal(&data_key(), &blob).unwrap();
    // Another derivation, another signing set, another presignature of the same set, another party.
    for (me, signers, request) in [
        (1, vec![1, 2], request(&[5], &id)),
        (1, vec![1, 2], request(&[], &id)),
        (1, vec![1, 3], request(&[4], &id)),
        (1, vec![1, 2, 3], request(&[4], &id)),
        (1, vec![1, 2], request(&[4], second[&1].id())),
        (2, vec![1, 2], request(&[4], &id)),
    ] {
        let refused = start_presigned(open(), &public, (me, &signers), 3, &request);
        assert_eq!(refused.err(), Some(SetupError::ShareMismatch));
    }
    // Mixed between parties: party 2 puts the scalars of another presignature under the same name.
    let recorded = RefCell::new(None);
    let other = request(&[4], second[&1].id());
    let mixed = BTreeMap::from([(1, second.remove(&1).unwrap()), (2, second.remove(&2).unwrap())]);
    let record = forging(|from, _, forged| {
        if from == ATTACKER {
            *recorded.borrow_mut() = Some(forged.body.clone());
        }
    });
    sign_presigned(&public, mixed, 4, &other, record);
    let body = recorded.borrow().clone().unwrap();
    let presignatures = BTreeMap::from([(1, open()), (2, first.remove(&2).unwrap())]);
    let swap = forging(|from, _, forged| {
        if from == ATTACKER {
            forged.body.clone_from(&body);
        }
    });
    let outcomes = sign_presigned(&public, presignatures, 5, &request(&[4], &id), swap);
    expect("mixed", &outcomes, 1, AbortCause::InvalidSignature, &[ATTACKER]);
    // The observer cannot tell which of two nonce points is the one.
    assert!(outcomes[&None].abort().unwrap().culprits.is_empty());
    // Altered at rest.
    for place in [5, 40, blob.len() - 1] {
        let mut altered = blob.clone();
        altered[place] ^= 1;
        assert!(Presignature::unseal(&data_key(), &altered).is_err());
    }
}

/// The nonce of a presigned signature depends on the digest, so a forger cannot know it beforehand.
#[test]
fn presigned_nonce_depends_on_digest_and_session() {
    let shares = keygen(&[1, 2], 2, 12);
    let public = shares[&1].public().clone();
    let presignatures = presign(&shares, &[1, 2], 1, &[]);
    let id = *presignatures[&1].id();
    let blobs: Vec<(u32, Vec<u8>)> = presignatures
        .into_iter()
        .map(|(number, presignature)| (number, presignature.seal(&data_key(), &mut common::rng(1)).unwrap()))
        .collect();
    let mut seen: Vec<Signature> = Vec::new();
    for (session, digest) in [(1u8, [1u8; 32]), (2, [1; 32]), (3, [2; 32])] {
        let opened = blobs
            .iter()
            .map(|(number, blob)| (*number, Presignature::unseal(&data_key(), blob).unwrap()))
            .collect();
        let mut request = payload(digest, &[]);
        request.presignature = Some(id);
        let signed = by_number(sign_presigned(&public, opened, session, &request, Faults::default()));
        verify_outside(&public.public_key, digest, &signed[&0]);
        let r = |signature: &Signature| signature.to_compact()[..32].to_vec();
        assert!(seen.iter().all(|earlier| r(earlier) != r(&signed[&0])));
        seen.push(signed[&0].clone());
    }
}

/// In what the last of two presignatures needs.
#[test]
fn every_field_of_presigning() {
    let shares = keygen(&PARTIES, 3, 13);
    for (session, (name, round, change, cause, named)) in (1u8..).zip(SIGN_CASES) {
        if *round == 3 || *cause == AbortCause::InvalidSignature {
            continue;
        }
        let culprits: &[u32] = if *named { &[ATTACKER] } else { &[] };
        let tamper = forging(|from, to, forged| {
            if from == ATTACKER && to == 1 && forged.round == *round {
                let mut last = forged.body.split_off(forged.body.len() / 2);
                change(&mut last);
                forged.body.append(&mut last);
            }
        });
        let outcomes = presign_with(&shares, &PARTIES, session, (&[], 2), tamper);
        expect(name, &outcomes, 1, *cause, culprits);
        expect_no_harm(name, &outcomes);
    }
}

/// Bodies of one presignature in the place of another of the same session, one too few and one too many.
#[test]
fn presignatures_of_one_session_do_not_mix() {
    let shares = keygen(&[1, 2], 2, 14);
    let swap: Change = |body| {
        let half = body.len() / 2;
        body.rotate_left(half);
    };
    let same: Change = |body| {
        let half = body.len() / 2;
        body.copy_within(..half, half);
    };
    let fewer: Change = |body| body.truncate(body.len() / 2);
    let more: Change = |body| body.extend_from_within(..body.len() / 2);
    let table: [(&str, u8, Change, AbortCause, &[u32]); 7] = [
        ("swapped samples", 1, swap, AbortCause::TransferCheckFailed, &[ATTACKER]),
        ("a sample twice", 1, same, AbortCause::TransferCheckFailed, &[ATTACKER]),
        ("a sample less", 1, fewer, AbortCause::MalformedBody, &[ATTACKER]),
        ("a sample more", 1, more, AbortCause::MalformedBody, &[ATTACKER]),
        ("swapped answers", 2, swap, AbortCause::BroadcastMismatch, &[]),
        ("an answer twice", 2, same, AbortCause::BroadcastMismatch, &[]),
        ("an answer less", 2, fewer, AbortCause::MalformedBody, &[ATTACKER]),
    ];
    for (name, round, change, cause, culprits) in table {
        let outcomes = presign_with(&shares, &[1, 2], 1, (&[4], 2), tampering(round, None, change));
        expect(name, &outcomes, 1, cause, culprits);
        expect_no_harm(name, &outcomes);
    }
}

#[test]
fn a_session_makes_as_many_as_were_ordered() {
    let shares = keygen(&[1, 2], 2, 15);
    let public = shares[&1].public().clone();
    let start = |payload: &[u8]| start_presign(reopen(&shares[&1]), &[1, 2], 1, payload).err();
    assert_eq!(start(&presign_payload(&[4], MAX_BATCH)), None);
    for count in [0, MAX_BATCH + 1, u8::MAX] {
        assert_eq!(start(&presign_payload(&[4], count)), Some(SetupError::PayloadInvalid));
    }
    assert_eq!(start(&[presign_payload(&[4], 1), vec![0]].concat()), Some(SetupError::PayloadInvalid));
    let made = presign_all(&shares, &[1, 2], 1, (&[4], MAX_BATCH));
    let mut seen: Vec<[u8; 32]> = Vec::new();
    for (session, one) in (2u8..).zip(made) {
        let mut request = payload(DIGEST, &[4]);
        let id = *one[&1].id();
        request.presignature = Some(id);
        let child = public.derive(&request.path).unwrap().public_key;
        let signed = by_number(sign_presigned(&public, one, session, &request, Faults::default()));
        verify_outside(&child, DIGEST, &signed[&0]);
        let nonce: [u8; 32] = signed[&0].to_compact()[..32].try_into().unwrap();
        assert!(!seen.contains(&id) && !seen.contains(&nonce));
        seen.extend([id, nonce]);
    }
    assert_eq!(seen.len(), 2 * usize::from(MAX_BATCH));
}

/// Offsets in the round 3 body of key generation: share, half of the seed, length, request.
const SEED_HALF: usize = 32;
const REQUEST: usize = 68;

/// Name, round, recipient or all, change, cause at every honest party, whether the attacker is named.
#[allow(clippy::type_complexity)]
const KEYGEN_CASES: &[(&str, u8, Option<u32>, Change, AbortCause, bool)] = &[
    ("commitment", 1, None, |b| flip(b, 3), AbortCause::WrongOpening, true),
    ("commitment to one", 1, Some(1), |b| flip(b, 3), AbortCause::Equivocation, true),
    (
        "short commitment",
        1,
        None,
        |b| {
            b.pop();
        },
        AbortCause::MalformedBody,
        true,
    ),
    ("degree too high", 2, None, |b| b[0] += 1, AbortCause::WrongDegree, true),
    ("degree too low", 2, None, |b| b[0] -= 1, AbortCause::WrongDegree, true),
    ("coefficient point", 2, None, |b| other_point(&mut b[34..67]), AbortCause::WrongOpening, true),
    ("coefficient point identity", 2, None, |b| b[34..67].fill(0), AbortCause::InvalidPoint, true),
    ("proof", 2, None, |b| add_one(&mut b[100..132]), AbortCause::WrongOpening, true),
    ("contribution", 2, None, |b| flip(b, 140), AbortCause::WrongOpening, true),
    ("opening to one", 2, Some(3), |b| flip(b, 140), AbortCause::WrongOpening, true),
    ("share", 3, Some(1), |b| add_one(&mut b[..32]), AbortCause::WrongShare, true),
    ("share too large", 3, Some(3), |b| b[..32].fill(0xff), AbortCause::InvalidScalar, true),
    (
        "request of the wrong role",
        3,
        Some(1),
        |b| {
            b[64..68].copy_from_slice(&8192u32.to_be_bytes());
            b.extend([0; 8192]);
        },
        AbortCause::MalformedBody,
        true,
    ),
    (
        "request missing",
        3,
        Some(3),
        |b| {
            b.truncate(REQUEST);
            b[64..].fill(0)
        },
        AbortCause::MalformedBody,
        true,
    ),
    (
        "request with a bad point",
        3,
        Some(3),
        |b| b[REQUEST..][..32].fill(0xff),
        AbortCause::MalformedBody,
        true,
    ),
    (
        "response missing",
        4,
        Some(1),
        |b| {
            b.truncate(4);
            b.fill(0)
        },
        AbortCause::MalformedBody,
        true,
    ),
    ("response with a bad point", 4, Some(1), |b| b[4..36].fill(0), AbortCause::MalformedBody, true),
    (
        "response, both sums",
        4,
        Some(1),
        |b| {
            flip(b, 40);
            flip(b, 56)
        },
        AbortCause::TransferCheckFailed,
        false,
    ),
    (
        "response, extension",
        4,
        Some(1),
        |b| {
            let n = b.len() - 60;
            flip(b, n)
        },
        AbortCause::TransferCheckFailed,
        false,
    ),
    (
        "corrections missing",
        5,
        Some(3),
        |b| {
            b.truncate(4);
            b.fill(0)
        },
        AbortCause::MalformedBody,
        true,
    ),
    (
        "corrections",
        5,
        Some(3),
        |b| {
            let n = b.len() - 1;
            flip(b, n)
        },
        AbortCause::TransferCheckFailed,
        false,
    ),
    ("confirmation", 6, None, |b| add_one(&mut b[33..]), AbortCause::WrongProof, true),
    ("confirmation point", 6, None, |b| other_point(&mut b[..33]), AbortCause::WrongProof, true),
    ("confirmation to one", 6, Some(1), |b| add_one(&mut b[33..]), AbortCause::WrongProof, true),
];

#[test]
fn every_field_of_key_generation() {
    for (seed, (name, round, only, change, cause, named)) in (0u64..).zip(KEYGEN_CASES) {
        let culprits: &[u32] = if *named { &[ATTACKER] } else { &[] };
        let faults = forging_keygen(|_, to, forged| {
            if forged.round == *round && only.is_none_or(|only| only == to) {
                change(&mut forged.body);
            }
        });
        let outcomes = keygen_with(&PARTIES, 2, seed, faults);
        for honest in [1, 3] {
            let outcome = &outcomes[&Some(party(honest))];
            // In the last round the other parties may be done before the proof of a deviation reaches them.
            let abort = outcome.abort().unwrap_or_else(|| panic!("{name}: party {honest} did not abort"));
            assert_eq!(abort.cause, *cause, "{name}: party {honest}");
            let named: Vec<u32> = abort.culprits.iter().map(|party| u32::from(party.get())).collect();
            assert_eq!(named, culprits, "{name}: party {honest}");
            assert!(outcome.done.is_none() || *only == Some(1), "{name}");
        }
        expect_no_harm(name, &outcomes);
    }
}

/// An opening that matches its commitment, but whose proof is wrong: the attacker commits to the altered opening.
#[test]
fn proof_that_was_committed_to() {
    for (seed, change) in [
        (21, (|b: &mut Vec<u8>| add_one(&mut b[100..132])) as Change),
        (22, |b| other_point(&mut b[1..34])),
        (23, |b| other_point(&mut b[34..67])),
    ] {
        let recorded = RefCell::new(Vec::new());
        let record = forging(|from, _, forged| {
            if from == ATTACKER && forged.round == 2 {
                recorded.borrow_mut().clone_from(&forged.body);
            }
        });
        keygen_with(&PARTIES, 2, seed, record);
        let mut opening = recorded.borrow().clone();
        change(&mut opening);
        let ctx = keygen_context(2);
        let commitment = forged_commitment(&ctx, party(ATTACKER), &opening);
        let faults = forging_keygen(|from, _, forged| match (from, forged.round) {
            (ATTACKER, 1) => forged.body.clone_from(&commitment),
            (ATTACKER, 2) => forged.body.clone_from(&opening),
            _ => (),
        });
        let outcomes = keygen_with(&PARTIES, 2, seed, faults);
        for honest in [1, 3] {
            expect("committed proof", &outcomes, honest, AbortCause::WrongProof, &[ATTACKER]);
        }
    }
}

fn keygen_context(t: u32) -> engine::SessionContext {
    engine::SessionContext::for_test::<Keygen>(settings(None, &PARTIES, t, 1, &[])).unwrap()
}

/// Different seeds on both sides of a pair show when the pair signs, and in no other quorum.
#[test]
fn seed_that_differs_shows_in_signing() {
    let faults = tampering(3, Some(1), |b| flip(b, SEED_HALF));
    let shares: Shares = by_number(keygen_with(&PARTIES, 2, 31, faults));
    let request = payload(DIGEST, &[]);
    let outcomes = sign_with(&shares, &[1, 2], 1, &request, Faults::default());
    expect("seed", &outcomes, 1, AbortCause::InconsistentShares, &[]);
    by_number(sign_with(&shares, &[1, 3], 1, &request, Faults::default()));
    by_number(sign_with(&shares, &[2, 3], 1, &request, Faults::default()));
}

#[test]
fn key_generation_refuses_what_cannot_be() {
    let start = |parties: &[u32], t: u32, change: &dyn Fn(&mut engine::SessionSettings)| {
        let mut settings = settings(Some(party(1)), parties, t, 1, &[]);
        change(&mut settings);
        Session::<Keygen>::start(settings, Some(evidence_key(party(1))), (), &mut common::rng(1)).err()
    };
    assert_eq!(start(&[1, 2], 2, &|_| ()), None);
    assert_eq!(start(&[1, 2], 1, &|_| ()), Some(SetupError::ThresholdRange));
    assert_eq!(start(&[1, 2], 3, &|_| ()), Some(SetupError::ThresholdRange));
    assert_eq!(start(&[1, 2], 2, &|s| s.epoch = 2), Some(SetupError::EpochRange));
    assert_eq!(start(&[1, 2], 2, &|s| s.payload.push(1)), Some(SetupError::PayloadLength));
}
