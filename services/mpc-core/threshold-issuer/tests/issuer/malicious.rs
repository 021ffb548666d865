//! A party of a join that does not follow the rules: each field of each of its messages, the cause, and the culprit.
//! In every case the member gets a credential that verifies or none, and no other party is convicted.

use engine::forge::Forged;
use engine::session::NOTICE_ROUND;
use engine::{AbortCause, PartyId, Reject, Secret};
use primitives::bls12_381::{G1, Scalar};
use primitives::ot::{CORRECTION_BYTES, REQUEST_BYTES, RESPONSE_BYTES};
use sim::{Faults, Packet};
use threshold_issuer::JoinInput;
use threshold_issuer::key::forge::shifted;
use threshold_issuer::multiply::{MULTIPLY_BYTES, SAMPLE_BYTES};

use crate::installation::{
    ABOVE, BELOW, Installation, Outcomes, duplicate, evidence_key, key_of, party, rng,
};

const SEED: usize = 32;
const LENGTH: usize = 4;
const POINT: usize = 48;
const SCALAR: usize = 32;
/// Parties of each join here: two issuers and the member.
const ZERO_POINTS: usize = 2 * POINT;
/// Where the parts of the message of round 5 begin.
const PRODUCT_POINT: usize = ZERO_POINTS;
const MASK: usize = PRODUCT_POINT + POINT;
const MESSAGE: usize = MASK + SCALAR;

fn secret(seed: u64) -> Secret<Scalar> {
    Secret::new(Scalar::random(&mut rng(seed)))
}

/// The sender of the altered message, and its recipient.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub member: u32,
    pub from: u32,
    pub to: u32,
    /// Whether the sender is the initiator of the pair.
    asks: bool,
}

const fn way(member: u32, from: u32, to: u32, asks: bool) -> Way {
    Way { member, from, to, asks }
}

/// Issuers 11 and 12; each party asks the one that follows it, and the last one the first.
pub const WAYS: [Way; 6] = [
    way(ABOVE, 11, 12, true),
    way(ABOVE, 12, 11, false),
    way(ABOVE, 11, ABOVE, false),
    way(ABOVE, ABOVE, 11, true),
    way(BELOW, 11, BELOW, false),
    way(BELOW, BELOW, 11, true),
];

/// A join in which `change` is made to the message of one round on one way. The liar does not say what it finds itself.
pub fn altered(way: Way, round: u8, session: u64, change: &dyn Fn(&mut Vec<u8>)) -> Outcomes {
    let liar = party(way.from);
    let tamper = move |mut packet: Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        if packet.from == liar && forged.round == NOTICE_ROUND {
            return Vec::new();
        }
        if packet.from == liar && packet.to == Some(party(way.to)) && forged.round == round {
            change(&mut forged.body);
            packet.bytes = forged.encode(&evidence_key(liar));
        }
        vec![packet]
    };
    let faults = Faults { tamper: Some(Box::new(tamper)), ..Faults::default() };
    let secret = secret(session);
    let mut outcomes = Installation::usual().join(&[11, 12], (way.member, &secret), session, faults);
    if let Some(key) = key_of(&mut outcomes, way.member) {
        assert_eq!(*key.credential(), Installation::usual().credential(&secret));
    }
    for (address, outcome) in outcomes.iter().filter(|(address, _)| **address != Some(liar)) {
        for abort in &outcome.aborts {
            let blamed: Vec<_> = abort.culprits.iter().filter(|culprit| **culprit != liar).collect();
            assert!(blamed.is_empty(), "{way:?}, round {round}: {address:?} blames {blamed:?}");
        }
    }
    outcomes
}

/// The verdict of one party.
fn verdict(outcomes: &Outcomes, of: u32) -> Option<(AbortCause, Vec<PartyId>)> {
    outcomes[&Some(party(of))].abort().map(|abort| (abort.cause, abort.culprits.clone()))
}

/// A change of a body.
type Change = Box<dyn Fn(&mut Vec<u8>)>;

fn flip(places: Vec<usize>) -> Change {
    Box::new(move |body| places.iter().for_each(|place| body[*place] ^= 1))
}

fn put(start: usize, bytes: Vec<u8>) -> Change {
    Box::new(move |body| body[start..start + bytes.len()].copy_from_slice(&bytes))
}

/// One deviation and the cause that its recipient finds, with the sender as culprit.
struct Row {
    name: &'static str,
    round: u8,
    change: Change,
    cause: AbortCause,
}

fn row(name: &'static str, round: u8, change: Change, cause: AbortCause) -> Row {
    Row { name, round, change, cause }
}

/// The rows of one way.
fn rows(asks: bool) -> Vec<Row> {
    use AbortCause::{
        InconsistentShares, InvalidPoint, InvalidScalar, MalformedBody, TransferCheckFailed, WrongProduct,
    };
    let generator = || G1::generator().to_compressed().to_vec();
    let long = || -> Change { Box::new(|body| body.push(0)) };
    let short = || -> Change { Box::new(|body| body.truncate(body.len() - 1)) };
    let empty = || -> Change { Box::new(Vec::clear) };
    let mut rows = vec![row("half of the seed", 1, flip(vec![0]), InconsistentShares)];
    for round in 1..=6 {
        rows.push(row("too long", round, long(), MalformedBody));
        rows.push(row("too short", round, short(), MalformedBody));
        rows.push(row("empty", round, empty(), MalformedBody));
    }
    if asks {
        rows.push(row("request: no point", 1, put(SEED + LENGTH, vec![0xff; 32]), InvalidPoint));
        let last = SEED + LENGTH + REQUEST_BYTES - 32;
        rows.push(row("request: last is no point", 1, put(last, vec![0xff; 32]), InvalidPoint));
        rows.push(row("salt of the corrections", 3, flip(vec![LENGTH]), TransferCheckFailed));
        // Both branches of one level, so that the one that the recipient takes is hit.
        let both = vec![LENGTH + 16, LENGTH + 16 + 16];
        rows.push(row("corrections", 3, flip(both), TransferCheckFailed));
        rows.push(row(
            "digest of the trees",
            3,
            flip(vec![LENGTH + CORRECTION_BYTES - 1]),
            TransferCheckFailed,
        ));
    } else {
        rows.push(row("response: no point", 2, put(LENGTH, vec![0xff; 32]), InvalidPoint));
        let both = vec![LENGTH + 32 + 8, LENGTH + 32 + 8 + 16];
        rows.push(row("response: corrections", 2, flip(both), TransferCheckFailed));
        let last = LENGTH + RESPONSE_BYTES - 1;
        rows.push(row("response: extension", 2, flip(vec![last]), TransferCheckFailed));
        rows.push(row("response: another point", 2, put(LENGTH, ristretto()), TransferCheckFailed));
    }
    for (name, place) in [
        ("sample: salt", 0),
        ("sample: columns", 16),
        ("sample: middle", SAMPLE_BYTES / 2),
        ("sample: hash of the choices", SAMPLE_BYTES - 40),
        ("sample: digest", SAMPLE_BYTES - 1),
    ] {
        rows.push(row(name, 4, flip(vec![place]), TransferCheckFailed));
    }
    rows.push(row("product point", 5, put(PRODUCT_POINT, generator()), WrongProduct));
    rows.push(row("product point: no point", 5, put(PRODUCT_POINT, vec![0xff; POINT]), InvalidPoint));
    rows.push(row("product point: identity", 5, put(PRODUCT_POINT, identity()), InvalidPoint));
    rows.push(row("product point: small order", 5, put(PRODUCT_POINT, small_order()), InvalidPoint));
    rows.push(row("zero point: no point", 5, put(0, vec![0xff; POINT]), InvalidPoint));
    rows.push(row("zero point: small order", 5, put(0, small_order()), InvalidPoint));
    rows.push(row("last zero point: identity", 5, put(POINT, identity()), InvalidPoint));
    rows.push(row("mask: no scalar", 5, put(MASK, vec![0xff; SCALAR]), InvalidScalar));
    for (name, place) in [
        ("answer: salt", 0),
        ("answer: first masked scalar", 16 + 31),
        ("answer: middle", MULTIPLY_BYTES / 2),
        ("answer: check scalar", MULTIPLY_BYTES - 33),
        ("answer: check digest", MULTIPLY_BYTES - 1),
    ] {
        rows.push(row(name, 5, flip(vec![MESSAGE + place]), TransferCheckFailed));
    }
    let masked = put(MESSAGE + 16, vec![0xff; SCALAR]);
    rows.push(row("answer: masked scalar out of range", 5, masked, TransferCheckFailed));
    rows
}

fn identity() -> Vec<u8> {
    let mut bytes = vec![0; POINT];
    bytes[0] = 0xc0;
    bytes
}

/// A point of order 11.
pub fn small_order() -> Vec<u8> {
    let text =
        "99b3e2c8c6bbf59d3c326b531fc1e639d29200c28624ac604f251a12908c9b7f735318617f625954cc71cdf03229b1ef";
    (0..POINT).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

/// The encoding of the base point of Ristretto.
fn ristretto() -> Vec<u8> {
    let text = "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76";
    (0..32).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

#[test]
fn every_altered_field_convicts_its_sender() {
    let mut session = 1000;
    for way in WAYS {
        for Row { name, round, change, cause } in rows(way.asks) {
            session += 1;
            let mut outcomes = altered(way, round, session, &change);
            let joined = key_of(&mut outcomes, way.member).is_some();
            // In the last round the member needs what comes to itself.
            assert!(!joined || round == 6 && way.to != way.member, "{way:?}, round {round}: {name}");
            // A body that is longer than any of its round is not even read.
            let victim = &outcomes[&Some(party(way.to))];
            if name == "too long" && victim.rejects.contains(&(party(way.from), Reject::Size)) {
                assert!(victim.done.is_none() && victim.aborts.is_empty(), "{way:?}, round {round}");
                continue;
            }
            let abort = victim.abort().unwrap_or_else(|| panic!("{way:?}, round {round}: {name}"));
            let liar = party(way.from);
            assert_eq!(abort.cause, cause, "{way:?}, round {round}: {name}");
            // The third party sees two who show different shares of zero, and may say so first.
            let found = outcomes[&abort.reporter].abort().unwrap();
            let told = round == 1 && abort.culprits.is_empty() && found.suspects.contains(&liar);
            assert!(abort.culprits == [liar] || told, "{way:?}, round {round}: {name}: {abort}");
        }
    }
}

/// Shares of zero that a party shows in another way than it has them: to the party that has the other half, and to the
/// third party, which only sees that one of the two lies.
#[test]
fn another_share_of_zero_is_found() {
    for (way, own) in [
        (way(ABOVE, 12, 11, false), 0),
        (way(ABOVE, ABOVE, 12, false), POINT),
        (way(ABOVE, 11, ABOVE, false), POINT),
    ] {
        let generator = G1::generator().to_compressed().to_vec();
        let outcomes = altered(way, 5, 2000, &put(own, generator.clone()));
        let said = verdict(&outcomes, way.to);
        assert_eq!(said, Some((AbortCause::InconsistentShares, vec![party(way.from)])), "{way:?}");
        let outcomes = altered(way, 5, 2001, &put(POINT - own, generator));
        let abort = outcomes[&Some(party(way.to))].abort().unwrap();
        assert_eq!((abort.cause, abort.culprits.len()), (AbortCause::InconsistentShares, 0), "{way:?}");
        assert!(abort.suspects.contains(&party(way.from)) && abort.suspects.len() == 2, "{way:?}");
    }
}

/// Faults that show only in the sum: a wrong mask towards one party, and the issuers' parts of the answer. The member
/// has no key, and one of the issuers has done it.
#[test]
fn wrong_masks_and_answers_give_no_key() {
    let generator = || G1::generator().to_compressed().to_vec();
    let mut session = 3000;
    let mut unsigned = |way: Way, round, change: &Change, name: &str| {
        session += 1;
        let mut outcomes = altered(way, round, session, change);
        assert!(key_of(&mut outcomes, way.member).is_none(), "{way:?}: {name}");
        let abort = outcomes[&Some(party(way.member))].abort().unwrap();
        assert_eq!((abort.cause, abort.culprits.len()), (AbortCause::InvalidSignature, 0), "{name}");
        assert_eq!(abort.suspects, [party(11), party(12)], "{name}");
    };
    for way in WAYS {
        unsigned(way, 5, &flip(vec![MASK + SCALAR - 1]), "mask");
    }
    for way in WAYS.into_iter().filter(|way| way.to == way.member) {
        unsigned(way, 6, &put(1, generator()), "point of the mask");
        unsigned(way, 6, &flip(vec![1 + POINT + SCALAR - 1]), "share");
        let convicts = |session, change: Change, cause, name| {
            let said = verdict(&altered(way, 6, session, &change), way.to);
            assert_eq!(said, Some((cause, vec![party(way.from)])), "{way:?}: {name}");
        };
        convicts(3100, put(1, vec![0xff; POINT]), AbortCause::InvalidPoint, "no point");
        convicts(3101, put(1, identity()), AbortCause::InvalidPoint, "identity");
        convicts(3105, put(1, small_order()), AbortCause::InvalidPoint, "small order");
        convicts(3102, put(1 + POINT, vec![0xff; SCALAR]), AbortCause::InvalidScalar, "no scalar");
        convicts(3103, put(0, vec![2]), AbortCause::MalformedBody, "neither");
        let nothing: Change = Box::new(|body| *body = vec![0]);
        convicts(3104, nothing, AbortCause::InvalidSignature, "nothing");
    }
    // Something for a party that gets nothing.
    for way in WAYS.into_iter().filter(|way| way.to != way.member) {
        let parts: Change = Box::new(|body| {
            *body = [&[1], G1::generator().to_compressed().as_slice(), &[1; 32]].concat();
        });
        let said = verdict(&altered(way, 6, 3200, &parts), way.to);
        assert_eq!(said, Some((AbortCause::InvalidSignature, vec![party(way.from)])), "{way:?}");
    }
}

/// Bodies of an earlier join of the same ticket and parties, in the place of those of this one.
#[test]
fn messages_of_another_session_are_refused() {
    for way in WAYS {
        for round in 1..=6u8 {
            let mut earlier = Vec::new();
            let record = |packet: Packet| {
                let forged = Forged::open(&packet.bytes).unwrap();
                if (packet.from, packet.to, forged.round) == (party(way.from), Some(party(way.to)), round) {
                    earlier = forged.body;
                }
                vec![packet]
            };
            let faults = Faults { tamper: Some(Box::new(record)), ..Faults::default() };
            let secret = secret(4001);
            Installation::usual().join(&[11, 12], (way.member, &secret), 4000, faults);
            let replay = |body: &mut Vec<u8>| body.clone_from(&earlier);
            let mut outcomes = altered(way, round, 4001, &replay);
            let due = earlier.len() > LENGTH;
            if !due {
                continue; // nothing was due on this way in this round
            }
            assert!(key_of(&mut outcomes, way.member).is_none(), "{way:?}, round {round}");
            let said = verdict(&outcomes, way.to);
            match round {
                // The liar asked with another request, finds that the answer does not fit, and says no more.
                1 if way.asks => {}
                1 => assert_eq!(said, Some((AbortCause::InconsistentShares, vec![party(way.from)]))),
                // A wrong share of zero would show first, were the check of the message not before it.
                5 => assert_eq!(said, Some((AbortCause::InconsistentShares, vec![party(way.from)]))),
                6 => assert!(matches!(said, Some((AbortCause::InvalidSignature, _)))),
                _ => assert_eq!(said, Some((AbortCause::TransferCheckFailed, vec![party(way.from)]))),
            }
        }
    }
}

/// Whole envelopes of an earlier session are not even heard.
#[test]
fn envelopes_of_another_session_are_dropped() {
    let installation = Installation::usual();
    let own = secret(4100);
    let mut earlier = Vec::new();
    let record = |packet: Packet| {
        earlier.push(packet.clone());
        vec![packet]
    };
    let faults = Faults { tamper: Some(Box::new(record)), ..Faults::default() };
    installation.join(&[11, 12], (ABOVE, &own), 4100, faults);
    let mut replayed = earlier.into_iter();
    let both = move |packet: Packet| replayed.next().into_iter().chain([packet]).collect();
    let faults = Faults { tamper: Some(Box::new(both)), ..Faults::default() };
    let mut outcomes = installation.join(&[11, 12], (ABOVE, &own), 4101, faults);
    assert!(outcomes.values().all(|outcome| !outcome.rejects.is_empty() && outcome.aborts.is_empty()));
    assert!(key_of(&mut outcomes, ABOVE).is_some());
}

/// A member that enters another secret than the one of its point, and an issuer another share than its own: both follow
/// the rules otherwise.
#[test]
fn another_secret_or_share_is_found_by_every_other_party() {
    let installation = Installation::usual();
    for member in [ABOVE, BELOW] {
        let own = secret(5000);
        let other = Secret::new(own.expose().add(&Scalar::one()));
        let run = |session| installation.attempt((member, &own), session);
        let terms = |session| installation.terms(run(session));
        let issuer = |number: u32, session| (number, installation.issuer_input(party(number), run(session)));
        let liar = (member, JoinInput::Liar { terms: terms(5000), secret: other });
        let outcomes =
            installation.run(vec![issuer(11, 5000), issuer(12, 5000), liar], 5000, Faults::default());
        convicted(&outcomes, member, &[11, 12]);
        let share = shifted(installation.share(party(12)));
        let liar = (12, JoinInput::Issuer { terms: terms(5001), share: share.into() });
        let honest = (member, JoinInput::Member { terms: terms(5001), secret: duplicate(&own) });
        let outcomes = installation.run(vec![issuer(11, 5001), liar, honest], 5001, Faults::default());
        convicted(&outcomes, 12, &[11, member]);
    }
}

/// Each of these finds it itself, or hears it from the other.
fn convicted(outcomes: &Outcomes, culprit: u32, by: &[u32]) {
    let mut found = 0;
    for finder in by {
        let abort = outcomes[&Some(party(*finder))].abort().expect("an abort");
        assert_eq!(abort.cause, AbortCause::WrongProduct);
        assert!(abort.culprits.iter().all(|named| *named == party(culprit)));
        found += usize::from(abort.culprits == [party(culprit)]);
    }
    assert!(found > 0);
}

/// A run that was spoilt costs the ticket that run; the next one, with a new session, goes well.
#[test]
fn an_aborted_join_can_be_repeated() {
    let installation = Installation::usual();
    let own = secret(6000);
    let way = way(ABOVE, 11, ABOVE, false);
    let spoilt = altered(way, 4, 6000, &flip(vec![0]));
    assert!(spoilt.values().all(|outcome| outcome.done.is_none()));
    let mut outcomes = installation.join(&[12, 13], (ABOVE, &own), 6001, Faults::default());
    assert_eq!(*key_of(&mut outcomes, ABOVE).unwrap().credential(), installation.credential(&own));
}
