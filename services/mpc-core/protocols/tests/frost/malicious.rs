//! A party that does not follow the rules: its changes, the ends of honest parties, and the culprits that they name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::forge::{Forged, echo_of};
use engine::session::Session;
use engine::{AbortCause, Advice, Envelope, PartyId, Reject, SessionContext, SessionSettings, SetupError};
use protocols::dealing::forged_commitment;
use protocols::frost::presign::MAX_BATCH;
use protocols::frost::{
    KeyShare, Keygen, PresignPayload, Presignature, SignInput, SignPayload, Signature, Signing, Suite, Target,
};
use sim::{Address, Faults, Outcome, Packet, World};

use crate::common::{evidence_key, party, rng, roster, settings, threshold};
use crate::frost::both_suites;
use crate::harness::{
    Tested, by_number, check, keygen, keygen_with, message, payload, presign, presign_all, presign_with,
    refresh_with, reopen, sign_presigned, sign_with, start_observer, start_presign, start_presigned,
    start_sign,
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

/// As [`cheating`], in key generation, by a party that stands by what it sent: its echo digests are those of the
/// altered broadcasts, and it neither complains nor discloses.
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

/// As [`in_round`], in what goes to one party only.
fn for_one<'a>(victim: u32, round: u8, change: impl Fn(&mut Vec<u8>) + 'a) -> Change<'a> {
    Box::new(move |forged, to| {
        if forged.round == round && to == Some(party(victim)) {
            change(&mut forged.body);
        }
    })
}

/// The body that party 2 broadcasts in a round of an honest key generation of this session.
fn honest_body<S: Suite>(session: u8, of_round: u8) -> Vec<u8> {
    honest::<S>(session, |forged| forged.round == of_round)
}

/// The body that party 2 sends one peer as its share in an honest key generation of this session.
fn honest_share<S: Suite>(session: u8, peer: u32) -> Vec<u8> {
    honest::<S>(session, |forged| forged.round == 3 && forged.recipient == Some(party(peer)))
}

/// A body of party 2 in an honest key generation of this session.
fn honest<S: Suite>(session: u8, wanted: impl Fn(&Forged) -> bool) -> Vec<u8> {
    let mut found = None;
    let record = |packet: Packet| {
        let forged = Forged::open(&packet.bytes).unwrap();
        if packet.from == party(CHEAT) && wanted(&forged) {
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
    forged_commitment(&ctx, party(CHEAT), opening)
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
        ("empty opening", in_round(2, Vec::clear), C::MalformedBody),
        ("opening of another session", in_round(2, |b| b.clone_from(&foreign)), C::WrongOpening),
        ("other contribution", in_round(2, |b| *b.last_mut().unwrap() ^= 1), C::WrongOpening),
        ("long opening", in_round(2, |b| b.push(0)), C::MalformedBody),
        ("one point more", in_round(2, |b| b[0] += 1), C::WrongDegree),
        ("one point less", in_round(2, |b| b[0] -= 1), C::WrongDegree),
        ("no points", in_round(2, |b| b[0] = 0), C::WrongDegree),
        ("no point", in_round(2, |b| b[1..=point].fill(0xff)), C::InvalidPoint),
        ("identity or small order", in_round(2, |b| b[1..=point].fill(0)), C::InvalidPoint),
        ("no second point", in_round(2, |b| b[1 + point..][..point].fill(0xff)), C::InvalidPoint),
        ("other point", in_round(2, |b| b[1..=2 * point].rotate_left(point)), C::WrongOpening),
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
            "proof without nonce point, committed to",
            committed::<S>(|b| b[1 + 2 * point..][..point].fill(0xff)),
            C::WrongProof,
        ),
        (
            "proof with a nonce point of small order, committed to",
            committed::<S>(|b| b[1 + 2 * point..][..point].fill(0)),
            C::WrongProof,
        ),
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
        ("wrong share for one", for_one(3, 3, |b| b[low] ^= 1), C::WrongShare),
        (
            "share of another peer",
            {
                let body = honest_share::<S>(1, 3);
                for_one(1, 3, move |b| b.clone_from(&body))
            },
            C::WrongShare,
        ),
        (
            "share of another session",
            {
                let body = honest_share::<S>(2, 1);
                for_one(1, 3, move |b| b.clone_from(&body))
            },
            C::WrongShare,
        ),
        ("wrong confirmation", in_round(4, |b| b[point + low] ^= 1), C::WrongProof),
        ("confirmation without nonce point", in_round(4, |b| b[..point].fill(0xff)), C::WrongProof),
        (
            "confirmation that is no scalar",
            in_round(4, |b| b[point..].copy_from_slice(&S::NO_SCALAR)),
            C::InvalidScalar,
        ),
        ("short confirmation", in_round(4, |b| b.truncate(point)), C::MalformedBody),
        (
            "confirmation of another session",
            {
                let body = honest_body::<S>(2, 4);
                in_round(4, move |b| b.clone_from(&body))
            },
            C::WrongProof,
        ),
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

/// A broadcast copied from another party, which is sent as soon as that one is known.
fn copying<S: Tested>(round: u8) -> BTreeMap<Address, Outcome<KeyShare<S>>> {
    let mut stolen: Option<Vec<u8>> = None;
    let mut held = Vec::new();
    let tamper = |packet: Packet| {
        let forged = Forged::open(&packet.bytes).unwrap();
        if forged.round != round {
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
    keygen_with::<S>(&PARTIES, 2, (1, 6), faults)
}

fn broadcasts_of_another_party<S: Tested>() {
    expect("copied confirmation", &copying::<S>(4), AbortCause::WrongProof, &[CHEAT]);
    expect("copied opening", &copying::<S>(2), AbortCause::WrongOpening, &[CHEAT]);
    // The cheat's later echo digests are of the commitment that it has made and not sent.
    expect("copied commitment", &copying::<S>(1), AbortCause::Equivocation, &[CHEAT]);
}

fn deviations_in_signing<S: Tested>() {
    use AbortCause as C;
    let (point, low) = (S::POINT_BYTES, S::LOW_BYTE);
    let shares = keygen::<S>(&PARTIES, 2, 5);
    let table: Vec<(&str, Change<'_>, C, &[u32])> = vec![
        ("no point", in_round(1, |b| b[..point].fill(0xff)), C::InvalidPoint, &[CHEAT]),
        ("identity or small order", in_round(1, |b| b[point..].fill(0)), C::InvalidPoint, &[CHEAT]),
        ("short commitments", in_round(1, |b| b.truncate(point)), C::MalformedBody, &[CHEAT]),
        ("no commitments", in_round(1, Vec::clear), C::MalformedBody, &[CHEAT]),
        // Good points that are not its nonces: its own view is another one.
        ("hiding for binding", in_round(1, |b| b.rotate_left(point)), C::BroadcastMismatch, &[]),
        ("wrong partial signature", in_round(2, |b| b[32 + low] ^= 1), C::WrongPartialSignature, &[CHEAT]),
        ("zero", in_round(2, |b| b[32..].fill(0)), C::WrongPartialSignature, &[CHEAT]),
        ("no scalar", in_round(2, |b| b[32..].copy_from_slice(&S::NO_SCALAR)), C::InvalidScalar, &[CHEAT]),
        ("short partial", in_round(2, |b| b.truncate(63)), C::MalformedBody, &[CHEAT]),
        // A party that says it saw other commitments may have been lied to.
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

/// Two parties sign with shares that are off by one. Among 1, 2 and 3 their weights are 3 and -3, so that the sum is
/// right: it is the signature that was asked for, and nobody looks further. With 4 in place of 3 the sum is wrong, and
/// both are convicted.
fn colluders_whose_shares_make_up_for_each_other_change_nothing<S: Tested>() {
    let shares = keygen::<S>(&[1, 2, 3, 4], 3, 19);
    let share_of = |number: u32| {
        let share = reopen(&shares[&number]);
        if number < 3 { share.shifted() } else { share }
    };
    let public = shares[&3].public();
    let expect = |request: &SignPayload, outcomes: BTreeMap<Address, Outcome<Signature>>, honest: u32| {
        if honest == 3 {
            return check(public, request, &by_number(outcomes));
        }
        for address in [Some(party(honest)), None] {
            let abort = outcomes[&address].abort().unwrap_or_else(|| panic!("{address:?} took it"));
            let colluders = [party(1), party(2)];
            assert_eq!((abort.cause, &*abort.culprits), (AbortCause::WrongPartialSignature, &colluders[..]));
            assert!(outcomes[&address].done.is_none());
        }
    };
    for (honest, target) in
        [3, 4].into_iter().flat_map(|honest| S::targets().into_iter().map(move |t| (honest, t)))
    {
        let signers = [1, 2, honest];
        let request = payload(message(1), &target);
        let started = signers.map(|number| {
            (Some(party(number)), start_sign(share_of(number), &signers, 1, &request).unwrap())
        });
        let observer = (None, start_observer(public, &signers, 1, &request).unwrap());
        let world = World::new(1, Faults::default(), started.into_iter().chain([observer]));
        expect(&request, world.run(), honest);

        let wanted = PresignPayload { target: target.clone(), count: 1 }.encode();
        let started = signers.map(|number| {
            (Some(party(number)), start_presign(share_of(number), &signers, 2, &wanted).unwrap())
        });
        let mut made = by_number(World::new(2, Faults::default(), started).run());
        let request = SignPayload { presignature: Some(*made[&honest][0].id()), ..request };
        let started = signers.map(|number| {
            let presignature = made.get_mut(&number).unwrap().pop().unwrap();
            let started = start_presigned(presignature, public, (number, &signers), 3, &request);
            (Some(party(number)), started.unwrap())
        });
        let observer = (None, start_observer(public, &signers, 3, &request).unwrap());
        let world = World::new(3, Faults::default(), started.into_iter().chain([observer]));
        expect(&request, world.run(), honest);
    }
}

/// Different commitments to different parties: each honest party's part is right for what it saw, and nobody honest is
/// named.
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

/// Commitments of another session: its maker has no nonces for them any more, and its contribution names others.
fn commitments_of_another_session<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 5);
    let request = payload(message(1), &Target::default());
    let mut recorded = None;
    let record = |packet: Packet| {
        let forged = Forged::open(&packet.bytes).unwrap();
        if packet.from == party(CHEAT) && forged.round == 1 {
            recorded = Some(forged.body);
        }
        vec![packet]
    };
    let faults = Faults { tamper: Some(Box::new(record)), ..Faults::default() };
    sign_with(&shares, &PARTIES, 1, &request, faults);
    let replay = in_round(1, move |b| b.clone_from(recorded.as_ref().unwrap()));
    let outcomes = sign_with(&shares, &PARTIES, 2, &request, cheating(replay));
    expect("commitments of another session", &outcomes, AbortCause::BroadcastMismatch, &[]);
}

/// Envelopes of another session are not even looked at.
fn replayed_envelopes_are_dropped<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 8);
    let request = payload(message(1), &Target::default());
    let mut old: Vec<Packet> = Vec::new();
    let record = |packet: Packet| {
        old.push(packet.clone());
        vec![packet]
    };
    let faults = Faults { tamper: Some(Box::new(record)), ..Faults::default() };
    sign_with(&shares, &PARTIES, 1, &request, faults);
    let replay = move |packet: Packet| {
        let same_way = |other: &&Packet| other.to == packet.to;
        let mut packets: Vec<Packet> = old.iter().filter(same_way).cloned().collect();
        packets.push(packet);
        packets
    };
    let faults = Faults { tamper: Some(Box::new(replay)), ..Faults::default() };
    for outcome in sign_with(&shares, &PARTIES, 2, &request, faults).values() {
        assert!(outcome.done.is_some() && outcome.aborts.is_empty());
        assert!(!outcome.rejects.is_empty());
        assert!(outcome.rejects.iter().all(|(_, reject)| *reject == Reject::Session));
    }
}

/// Headers that do not say what the channel, the session and the round say: nobody is blamed for them, and nothing
/// comes of them.
fn wrong_headers_are_dropped<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 8);
    let request = payload(message(1), &Target::default());
    let table: [(Change<'_>, Reject); 6] = [
        (Box::new(|forged, _| forged.sender = party(3)), Reject::Sender),
        (Box::new(|forged, _| forged.sender = party(9)), Reject::Sender),
        (Box::new(|forged, _| forged.protocol = S::PRESIGN.number), Reject::Protocol),
        (Box::new(|forged, _| forged.session[0] ^= 1), Reject::Session),
        (Box::new(|forged, _| forged.recipient = Some(party(1))), Reject::Delivery),
        (Box::new(|forged, _| forged.round = 7), Reject::RoundFuture),
    ];
    for (change, expected) in table {
        // Only to party 1, so that the envelope is one that it could have got.
        let one = |forged: &mut Forged, to: Address| {
            if to == Some(party(1)) && forged.round == 1 {
                change(forged, to);
            }
        };
        let outcomes = sign_with(&shares, &PARTIES, 2, &request, cheating(Box::new(one)));
        let outcome = &outcomes[&Some(party(1))];
        assert!(outcome.done.is_none() && outcome.aborts.is_empty(), "{expected:?}");
        assert!(outcome.rejects.contains(&(party(CHEAT), expected)), "{expected:?}: {:?}", outcome.rejects);
    }
}

fn shares_of_another_epoch_key_or_party_are_refused<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 10);
    let request = payload(message(1), &Target::default());
    let start = |change: &dyn Fn(&mut SessionSettings)| {
        let mut settings = settings(Some(party(1)), &[1, 2], 2, 1, &request.encode());
        change(&mut settings);
        let input = SignInput::Party(Box::new(reopen(&shares[&1])));
        Session::<Signing<S>>::start(settings, None, input, &mut rng(1)).err()
    };
    assert_eq!(start(&|_| ()), None);
    assert_eq!(start(&|s| s.epoch = 2), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.key_id = "keys/other".to_owned()), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.me = Some(party(2))), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.threshold = threshold(3)), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.roster = roster(&[1])), Some(SetupError::SigningSetTooSmall));
    assert_eq!(start(&|s| s.roster = roster(&[1, 9])), Some(SetupError::SigningSetNotOfKey));
    assert_eq!(start(&|s| s.payload.truncate(32)), Some(SetupError::PayloadInvalid));
    assert_eq!(start(&|s| s.payload.push(0)), Some(SetupError::PayloadInvalid));
    // One hardened step.
    let hardened = [&[1, 0x80, 0, 0, 0][..], &request.encode()[1..]].concat();
    assert_eq!(start(&|s| s.payload.clone_from(&hardened)), Some(SetupError::PayloadInvalid));
}

/// A party that has kept its share of the epoch before, and says that it is the one of this epoch.
fn an_old_share_in_a_new_epoch_is_named<S: Tested>() {
    let old = keygen::<S>(&PARTIES, 2, 11);
    let mut shares = by_number(refresh_with(&old, Faults::default()));
    let public = shares[&1].public().clone();
    let request = payload(message(1), &Target::default());
    let sessions: Vec<_> = PARTIES
        .iter()
        .map(|number| {
            let share = match *number {
                CHEAT => reopen(&old[number]).posing_as(&public),
                _ => shares.remove(number).unwrap(),
            };
            (Some(party(*number)), start_sign(share, &PARTIES, 1, &request).unwrap())
        })
        .collect();
    let outcomes = World::new(1, Faults::default(), sessions).run();
    expect("old share", &outcomes, AbortCause::WrongPartialSignature, &[CHEAT]);
    assert!(outcomes.values().all(|outcome| outcome.done.is_none()));
}

fn deviations_in_presigning<S: Tested>() {
    use AbortCause as C;
    let point = S::POINT_BYTES;
    let shares = keygen::<S>(&PARTIES, 2, 5);
    let target = S::targets().pop().unwrap();
    let table: Vec<(&str, Change<'_>, C)> = vec![
        ("no hiding point", in_round(1, |b| b[..point].fill(0xff)), C::InvalidPoint),
        ("no binding point", in_round(1, |b| b[point..2 * point].fill(0xff)), C::InvalidPoint),
        ("identity or small order", in_round(1, |b| b[..point].fill(0)), C::InvalidPoint),
        ("identity or small order, last", in_round(1, |b| b[5 * point..].fill(0)), C::InvalidPoint),
        ("short", in_round(1, |b| b.truncate(6 * point - 1)), C::MalformedBody),
        ("one pair less", in_round(1, |b| b.truncate(4 * point)), C::MalformedBody),
        ("one pair more", in_round(1, |b| b.extend_from_within(..2 * point)), C::MalformedBody),
        ("half a pair more", in_round(1, |b| b.extend_from_within(..point)), C::MalformedBody),
        ("empty", in_round(1, Vec::clear), C::MalformedBody),
        ("a pair twice", in_round(1, |b| b.copy_within(..2 * point, 4 * point)), C::MalformedBody),
        ("a point twice", in_round(1, |b| b.copy_within(..point, 3 * point)), C::MalformedBody),
        ("a point twice in a pair", in_round(1, |b| b.copy_within(..point, point)), C::MalformedBody),
    ];
    for (name, change, cause) in table {
        let outcomes = presign_with(&shares, &PARTIES, 1, (&target, 3), cheating(change));
        expect(name, &outcomes, cause, &[CHEAT]);
    }
}

/// More pairs than any session makes: not even looked at.
fn more_than_any_session_makes_is_dropped<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 5);
    let pair = 2 * S::POINT_BYTES;
    let change = in_round(1, |b| b.extend_from_within(..pair));
    let outcomes = presign_with(&shares, &PARTIES, 1, (&Target::default(), MAX_BATCH), cheating(change));
    for number in [1, 3] {
        let outcome = &outcomes[&Some(party(number))];
        assert!(outcome.done.is_none() && outcome.aborts.is_empty());
        assert!(outcome.rejects.contains(&(party(CHEAT), Reject::Size)), "{:?}", outcome.rejects);
    }
}

/// A session is about a number of presignatures that all its parties know, from one to the most there is.
fn a_number_that_no_session_makes_is_refused<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 5);
    let target = S::targets().pop().unwrap();
    let start = |payload: &[u8]| start_presign(reopen(&shares[&1]), &[1, 2], 1, payload).err();
    let wanted = |count| PresignPayload { target: target.clone(), count }.encode();
    assert_eq!(start(&wanted(1)), None);
    assert_eq!(start(&wanted(MAX_BATCH)), None);
    for count in [0, MAX_BATCH + 1, u8::MAX] {
        assert_eq!(start(&wanted(count)), Some(SetupError::PayloadInvalid));
    }
    assert_eq!(start(&target.to_bytes()), Some(SetupError::PayloadInvalid));
    assert_eq!(start(&[wanted(1), vec![0]].concat()), Some(SetupError::PayloadInvalid));
    // Parties that were told different numbers are in different sessions.
    let sessions = [(1, 2), (2, 3)].map(|(number, count)| {
        let started = start_presign(reopen(&shares[&number]), &[1, 2], 1, &wanted(count));
        (Some(party(number)), started.unwrap())
    });
    for outcome in World::new(1, Faults::default(), sessions).run().values() {
        assert!(outcome.done.is_none() && outcome.aborts.is_empty());
        assert!(outcome.rejects.iter().all(|(_, reject)| *reject == Reject::Session));
    }
}

/// Presignatures of one session are as apart as those of several: other names, other nonces, and nothing of one signs
/// under another.
fn presignatures_of_one_session_are_apart<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 5);
    let public = shares[&1].public();
    let target = S::targets().pop().unwrap();
    let mut made = presign_all(&shares, &[1, 3], 1, (&target, MAX_BATCH));
    let ids: BTreeSet<_> = made.iter().map(|one| *one[&1].id()).collect();
    assert_eq!(ids.len(), usize::from(MAX_BATCH));
    assert!(made.iter().all(|one| one[&1].id() == one[&3].id()));
    // Of two messages, used in another order than made, the signatures have nothing in common.
    let (last, first) = (made.pop().unwrap(), made.swap_remove(0));
    let mut nonces = BTreeSet::new();
    for (session, one) in [(2, last), (3, first)] {
        let mut request = payload(message(1), &target);
        request.presignature = Some(*one[&1].id());
        let signatures = by_number(sign_presigned(public, one, session, &request, Faults::default()));
        check(public, &request, &signatures);
        assert!(nonces.insert(signatures[&0][..32].to_vec()));
    }
    // One party's part of one with the other's of another.
    let (mut one, other) = (made.swap_remove(0), made.swap_remove(1));
    let mut request = payload(message(1), &target);
    request.presignature = Some(*one[&1].id());
    let foreign = other.into_values().next_back().unwrap();
    let started = start_presigned(foreign, public, (3, &[1, 3]), 4, &request);
    assert_eq!(started.err(), Some(SetupError::ShareMismatch));
    let own = one.remove(&1).unwrap();
    assert!(start_presigned(own, public, (1, &[1, 3]), 4, &request).is_ok());
}

/// A party's data of one presignature put under the name of another: all of it, and its partial signature alone.
fn presignatures_do_not_mix<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 5);
    let public = shares[&1].public();
    let target = S::targets().pop().unwrap();
    let request = |made: &BTreeMap<u32, Presignature<S>>| {
        let mut request = payload(message(1), &target);
        request.presignature = Some(*made[&1].id());
        request
    };
    let mut recorded = None;
    let record = |packet: Packet| {
        if packet.from == party(CHEAT) {
            recorded = Forged::open(&packet.bytes).map(|forged| forged.body);
        }
        vec![packet]
    };
    let other = presign(&shares, &[1, 2], 2, &target);
    let faults = Faults { tamper: Some(Box::new(record)), ..Faults::default() };
    let other_request = request(&other);
    sign_presigned(public, other, 3, &other_request, faults);
    let body = recorded.unwrap();
    for (mixed_from, at_party, at_observer) in [
        (0, (AbortCause::WrongOpening, vec![party(CHEAT)]), (AbortCause::BroadcastMismatch, Vec::new())),
        (
            2 * S::POINT_BYTES,
            (AbortCause::WrongPartialSignature, vec![party(CHEAT)]),
            (AbortCause::WrongPartialSignature, vec![party(CHEAT)]),
        ),
    ] {
        let made = presign(&shares, &[1, 2], 1, &target);
        let request = request(&made);
        let change = in_round(1, |b| b[mixed_from..].copy_from_slice(&body[mixed_from..]));
        let outcomes = sign_presigned(public, made, 4, &request, cheating(change));
        for (address, expected) in [(Some(party(1)), at_party), (None, at_observer)] {
            let abort = outcomes[&address].abort().unwrap();
            assert_eq!((abort.cause, abort.culprits.clone()), expected, "from {mixed_from} at {address:?}");
        }
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
        row("zero", in_round(1, move |b| b[2 * point..].fill(0)), both(C::WrongPartialSignature)),
        row("short", in_round(1, |b| b.truncate(70)), both(C::MalformedBody)),
        row("empty", in_round(1, Vec::clear), both(C::MalformedBody)),
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
            // Of the first of two.
            forged.body[..2 * point].rotate_left(point);
        }
    };
    let outcomes = presign_with(&shares, &PARTIES, 1, (&Target::default(), 2), cheating(Box::new(change)));
    let id = |number, place: usize| *outcomes[&Some(party(number))].done.as_ref().unwrap()[place].id();
    assert_eq!((id(1, 0), id(1, 1)), (id(2, 0), id(2, 1)));
    assert_ne!(id(1, 0), id(3, 0));
    assert_eq!(id(1, 1), id(3, 1));
}

both_suites!(
    deviations_in_key_generation,
    equivocation_in_key_generation,
    broadcasts_of_another_party,
    deviations_in_signing,
    commitments_that_are_not_the_nonces,
    colluders_whose_shares_make_up_for_each_other_change_nothing,
    equivocation_in_signing_names_nobody_honest,
    commitments_of_another_session,
    replayed_envelopes_are_dropped,
    wrong_headers_are_dropped,
    shares_of_another_epoch_key_or_party_are_refused,
    an_old_share_in_a_new_epoch_is_named,
    deviations_in_presigning,
    more_than_any_session_makes_is_dropped,
    a_number_that_no_session_makes_is_refused,
    presignatures_of_one_session_are_apart,
    presignatures_do_not_mix,
    replay_between_sessions,
    deviations_with_a_presignature,
    equivocation_in_presigning_splits_the_name,
);
