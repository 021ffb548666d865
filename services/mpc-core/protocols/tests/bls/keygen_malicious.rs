//! One party does not follow the rules of key generation: which message, which field, what change, and what all honest
//! parties must then say. The corrupt party runs honest code behind a network that alters what it sends, signed with
//! its own key, which is as much as a corrupt party can do.

use crate::common;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::common::{evidence_key, keygen_context, keygen_with, party, start_keygen};
use engine::forge::{Forged, disclosure, notice};
use engine::session::{DISCLOSURE_ROUND, History, NOTICE_ROUND, Progress};
use engine::{
    Abort, AbortCause, Envelope, Fault, Inbox, Next, Outbox, PartyId, Protocol, ProtocolId, Reject,
    RoundRule, Secret, Session, SessionContext, SetupError,
};
use primitives::bls12_381::{CurveG1, G1, G2, Scalar, UncheckedG2};
use primitives::schnorr::Nonce;
use protocols::bls::keygen::forge;
use protocols::bls::{KeyShare, Keygen};
use rand_core::CryptoRng;
use sim::{Address, Faults, Outcome, Packet, Stuck, World};

const SCALAR_ORDER: &str = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";
/// Offsets in an opening with t points: 1 + 96 t, then the proof.
const POINT: usize = 96;

/// The parties, the corrupt one, and the messages that it would have sent.
struct Setup {
    parties: Vec<u32>,
    t: u32,
    corrupt: u32,
    seed: u64,
    ctx: SessionContext,
    /// Everything sent in the same session when nobody does anything wrong, by (sender, round, recipient).
    honest_run: BTreeMap<(PartyId, u8, Address), Forged>,
}

impl Setup {
    fn new(parties: &[u32], t: u32, corrupt: u32) -> Self {
        let seed = u64::from(t * 100 + corrupt);
        let mut honest_run = BTreeMap::new();
        let record = |packet: Packet| {
            let forged = Forged::open(&packet.bytes).unwrap();
            honest_run.insert((packet.from, forged.round, packet.to), forged);
            vec![packet]
        };
        keygen_with(parties, t, seed, Faults { tamper: Some(Box::new(record)), ..Faults::default() });
        let ctx = keygen_context(parties, t, 1);
        Self { parties: parties.to_vec(), t, corrupt, seed, ctx, honest_run }
    }

    fn me(&self) -> PartyId {
        party(self.corrupt)
    }

    fn honest(&self) -> Vec<PartyId> {
        self.parties.iter().filter(|p| **p != self.corrupt).map(|p| party(*p)).collect()
    }

    fn sent(&self, from: PartyId, round: u8, to: PartyId) -> &Forged {
        &self.honest_run[&(from, round, Some(to))]
    }

    fn own_opening(&self) -> Vec<u8> {
        self.sent(self.me(), 2, self.honest()[0]).body.clone()
    }

    fn run(&self, tamper: Tamper<'_>) -> BTreeMap<Address, Outcome<KeyShare>> {
        keygen_with(&self.parties, self.t, self.seed, Faults { tamper: Some(tamper), ..Faults::default() })
    }
}

type Tamper<'a> = Box<dyn FnMut(Packet) -> Vec<Packet> + 'a>;

/// Applies `change` to what the corrupt party sends in `round` to those that `whom` selects.
fn alter<'a>(
    setup: &'a Setup,
    round: u8,
    whom: impl Fn(PartyId) -> bool + 'a,
    change: impl Fn(&mut Forged) + 'a,
) -> Tamper<'a> {
    Box::new(move |packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        if packet.from == setup.me() && forged.round == round && packet.to.is_some_and(&whom) {
            change(&mut forged);
            vec![Packet { bytes: forged.encode(&evidence_key(setup.me())), ..packet }]
        } else {
            vec![packet]
        }
    })
}

fn all(_: PartyId) -> bool {
    true
}

/// Opens something else than the honest opening, and commits to it in round 1. Anything that the corrupt party's honest
/// code would say about the difference stays unsaid.
fn commit_to<'a>(setup: &'a Setup, opening: Vec<u8>) -> Tamper<'a> {
    let commitment = forge::commitment(&setup.ctx, setup.me(), &opening).unwrap();
    Box::new(move |packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        if packet.from == setup.me() && forged.round >= DISCLOSURE_ROUND {
            return vec![];
        }
        if packet.from == setup.me() && forged.round <= 2 {
            forged.body = if forged.round == 1 { commitment.clone() } else { opening.clone() };
            // The echo of round 2 covers our own changed commitment.
            if forged.round == 2 {
                forged.echo = Some(echo_with(setup, &commitment));
            }
            vec![Packet { bytes: forged.encode(&evidence_key(setup.me())), ..packet }]
        } else {
            vec![packet]
        }
    })
}

/// The echo digest of round 2 if the corrupt party's commitment is this one.
fn echo_with(setup: &Setup, commitment: &[u8]) -> [u8; 32] {
    let envelopes: Vec<_> = setup
        .parties
        .iter()
        .map(|number| {
            let from = party(*number);
            let to = setup.parties.iter().map(|p| party(*p)).find(|p| *p != from).unwrap();
            let mut forged = Forged::open(&setup.sent(from, 1, to).encode(&evidence_key(from))).unwrap();
            if from == setup.me() {
                forged.body = commitment.to_vec();
            }
            Arc::new(Envelope::decode(&forged.encode(&evidence_key(from))).unwrap())
        })
        .collect();
    engine::forge::echo_of(&setup.ctx, 2, &envelopes)
}

fn hex(text: &str) -> Vec<u8> {
    hex::decode(text).unwrap()
}

fn put(body: &mut [u8], at: usize, bytes: &[u8]) {
    body[at..at + bytes.len()].copy_from_slice(bytes);
}

fn generator() -> [u8; 96] {
    G1::generator().to_uncompressed()
}

/// On the curve, of order 11. (Those of order 3 have x = 0, and blst refuses them when it decodes.)
const ORDER_11: (&str, &str, &str) = (
    "19b3e2c8c6bbf59d3c326b531fc1e639d29200c28624ac604f251a12908c9b7f735318617f625954cc71cdf03229b1ef",
    "15d1455562b9a28d0f11a69ecd34f5a8ade01df410168a09cf16ccfbcbfc69403c7c5771a05d217a122b795529939e03",
    "042fcc94d6c6440d3c0a01177616b72eb6972d90e36e88b5981a05a52ab48ce3e22fa88d10f6de85a7d386aad66c0ca8",
);

fn small_order() -> [u8; 96] {
    hex(&[ORDER_11.0, ORDER_11.1].concat()).try_into().unwrap()
}

fn small_order_negated() -> [u8; 96] {
    hex(&[ORDER_11.0, ORDER_11.2].concat()).try_into().unwrap()
}

fn identity() -> [u8; 96] {
    let mut point = [0u8; 96];
    point[0] = 0x40;
    point
}

fn off_curve() -> [u8; 96] {
    let mut point = generator();
    point[95] ^= 1;
    point
}

/// The x coordinate of the generator plus the field modulus does not fit, so: x = p.
fn not_canonical() -> [u8; 96] {
    let mut point = [0u8; 96];
    point[..48].copy_from_slice(&hex(
        "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
    ));
    point[95] = 2;
    point
}

/// The sum of two encoded points.
fn plus(point: &[u8], other: &[u8; 96]) -> [u8; 96] {
    let point = CurveG1::from_uncompressed(point.try_into().unwrap()).unwrap();
    let other = CurveG1::from_uncompressed(other).unwrap();
    CurveG1::sum([point, other].iter()).unwrap().to_uncompressed()
}

/// Some point of the curve over Fp2 outside the subgroup, uncompressed.
fn g2_outside_subgroup() -> Vec<u8> {
    for candidate in 1u8.. {
        let mut bytes = [0u8; 96];
        bytes[0] = 0x80;
        bytes[95] = candidate;
        if let Some(point) = UncheckedG2::from_compressed(&bytes)
            && point.check().is_none()
        {
            return point.to_uncompressed().to_vec();
        }
    }
    unreachable!("half of all coordinates are on the curve")
}

fn aborts(outcomes: &BTreeMap<Address, Outcome<KeyShare>>, setup: &Setup) -> Vec<(PartyId, AbortCause)> {
    setup
        .honest()
        .into_iter()
        .map(|honest| {
            let outcome = &outcomes[&Some(honest)];
            let abort: &Abort = outcome.abort().unwrap_or_else(|| {
                panic!(
                    "{honest} did not abort: done {}, waits for {:?}",
                    outcome.done.is_some(),
                    outcome.missing
                )
            });
            assert_eq!(abort.culprits, [setup.me()], "{honest}: {abort}");
            assert!(!abort.evidence.is_empty(), "{honest}: {abort}");
            (honest, abort.cause)
        })
        .collect()
}

/// Every honest party names the corrupt one, and gives this cause.
#[track_caller]
fn blamed(name: &str, setup: &Setup, tamper: Tamper<'_>, cause: AbortCause) {
    let outcomes = setup.run(tamper);
    for (honest, found) in aborts(&outcomes, setup) {
        assert_eq!(found, cause, "{name}, (t, n) = ({}, {}), at {honest}", setup.t, setup.parties.len());
    }
}

/// Every honest party names the corrupt one; the fault that it saw first decides on the cause.
#[track_caller]
fn blamed_for_any(name: &str, setup: &Setup, tamper: Tamper<'_>, causes: &[AbortCause]) {
    let outcomes = setup.run(tamper);
    for (honest, found) in aborts(&outcomes, setup) {
        assert!(causes.contains(&found), "{name} at {honest}: {found:?}");
    }
}

/// Every honest party that gets it ignores the message, waits for the corrupt one, and blames nobody.
#[track_caller]
fn rejected(name: &str, setup: &Setup, tamper: Tamper<'_>, reason: Reject) {
    let outcomes = setup.run(tamper);
    let mut seen = 0;
    for honest in setup.honest() {
        let outcome = &outcomes[&Some(honest)];
        assert!(outcome.aborts.is_empty() && outcome.done.is_none(), "{name} at {honest}");
        assert!(outcome.missing.contains(setup.me()), "{name} at {honest}: waits for {:?}", outcome.missing);
        seen +=
            outcome.rejects.iter().filter(|(from, found)| *from == setup.me() && *found == reason).count();
    }
    assert!(seen > 0, "{name}: nobody saw {reason:?}");
}

fn setups() -> Vec<Setup> {
    vec![
        Setup::new(&[1, 2, 3], 2, 1),
        Setup::new(&[1, 2, 3], 2, 3),
        Setup::new(&[1, 2], 1, 2),
        Setup::new(&[4, 9, 11, 200], 3, 9),
        Setup::new(&[1, 2, 3, 4], 4, 4),
    ]
}

#[test]
fn honest_run_is_honest() {
    for setup in setups() {
        let outcomes = setup.run(Box::new(|packet| vec![packet]));
        assert!(outcomes.values().all(|outcome| outcome.done.is_some() && outcome.rejects.is_empty()));
    }
}

#[test]
fn commitment_altered_truncated() {
    for setup in &setups() {
        let case = |change: fn(&mut Forged)| alter(setup, 1, all, change);
        blamed_for_any(
            "digest",
            setup,
            // The corrupt party's own echo still covers its honest commitment: its signed words contradict each other.
            case(|f| f.body[5] ^= 1),
            &[AbortCause::Equivocation, AbortCause::FalseComplaint],
        );
        blamed("truncated", setup, case(|f| f.body.truncate(31)), AbortCause::MalformedBody);
        rejected("too long", setup, case(|f| f.body.push(0)), Reject::Size);
    }
}

#[test]
fn opening_altered_in_every_field() {
    for setup in &setups() {
        let t = setup.t as usize;
        let (proof_point, response, contribution) = (1 + POINT * t, 1 + POINT * t + 96, 1 + POINT * t + 128);
        let case = |name: &str, change: &dyn Fn(&mut Vec<u8>), cause| {
            blamed(name, setup, alter(setup, 2, all, |forged| change(&mut forged.body)), cause);
        };
        case("no points", &|b| b[0] = 0, AbortCause::WrongDegree);
        case("count too large", &|b| b[0] += 1, AbortCause::WrongDegree);
        case(
            "threshold raised by a long vector",
            &|b| {
                b[0] += 1;
                b.splice(1..1, generator());
            },
            AbortCause::WrongDegree,
        );
        case("as long as can be", &|b| b.splice(0..=0, [20].into_iter().chain([0; 1000])).for_each(drop), {
            AbortCause::WrongDegree
        });
        case("truncated", &|b| b.truncate(b.len() - 1), AbortCause::MalformedBody);
        case("lengthened", &|b| b.push(0), AbortCause::MalformedBody);
        for at in [1, 1 + POINT * (t - 1), proof_point] {
            case("identity", &|b| put(b, at, &identity()), AbortCause::InvalidPoint);
            case("off curve", &|b| put(b, at, &off_curve()), AbortCause::InvalidPoint);
            case("not canonical", &|b| put(b, at, &not_canonical()), AbortCause::InvalidPoint);
            case("compressed flag", &|b| b[at] |= 0x80, AbortCause::InvalidPoint);
            case("another point", &|b| put(b, at, &generator()), AbortCause::WrongOpening);
            case("small order", &|b| put(b, at, &small_order()), AbortCause::WrongOpening);
        }
        case(
            "response not below the order",
            &|b| put(b, response, &hex(SCALAR_ORDER)),
            AbortCause::InvalidScalar,
        );
        case("response", &|b| b[response + 31] ^= 1, AbortCause::WrongOpening);
        case("contribution", &|b| b[contribution] ^= 1, AbortCause::WrongOpening);
    }
}

#[test]
fn opening_committed_to_but_wrong() {
    for setup in &setups() {
        let t = setup.t as usize;
        let (proof_point, response) = (1 + POINT * t, 1 + POINT * t + 96);
        let opening = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut opening = setup.own_opening();
            change(&mut opening);
            commit_to(setup, opening)
        };
        let last = 1 + POINT * (t - 1);
        blamed("response", setup, opening(&|b| b[response + 31] ^= 1), AbortCause::WrongProof);
        blamed("proof point", setup, opening(&|b| put(b, proof_point, &generator())), AbortCause::WrongProof);
        blamed("constant term", setup, opening(&|b| put(b, 1, &generator())), AbortCause::WrongProof);
        blamed("last term", setup, opening(&|b| put(b, last, &generator())), AbortCause::WrongProof);
        // A proof copied from another party, with that party's points: the challenge names the prover.
        let theirs = setup.sent(setup.honest()[0], 2, setup.me()).body.clone();
        blamed("copied opening", setup, commit_to(setup, theirs), AbortCause::WrongProof);
    }
}

#[test]
fn opening_outside_the_subgroup() {
    // The proof has to be made over the point with the foreign component; t >= 2 puts it into another term.
    for setup in setups().iter().filter(|setup| setup.t >= 2) {
        let at = 1 + POINT;
        let mut opening = setup.own_opening();
        let moved = plus(&opening[at..at + POINT], &small_order());
        put(&mut opening, at, &moved);
        // The challenge covers all points, so this proof is wrong as well, and proofs are checked first.
        blamed("torsion", setup, commit_to(setup, opening), AbortCause::WrongProof);
    }
}

#[test]
fn copied_commitment() {
    for setup in &setups() {
        let theirs = setup.sent(setup.honest()[0], 1, setup.me()).body.clone();
        let tamper: Tamper<'_> = Box::new(|packet| {
            let mut forged = Forged::open(&packet.bytes).unwrap();
            if packet.from != setup.me() || forged.round == 3 || forged.round == 4 {
                return vec![packet];
            }
            if forged.round >= DISCLOSURE_ROUND {
                return vec![];
            }
            if forged.round == 1 {
                forged.body = theirs.clone();
            } else {
                forged.body = setup.sent(setup.honest()[0], 2, setup.me()).body.clone();
                forged.echo = Some(echo_with(setup, &theirs));
            }
            vec![Packet { bytes: forged.encode(&evidence_key(setup.me())), ..packet }]
        });
        blamed("copied", setup, tamper, AbortCause::WrongOpening);
    }
}

#[test]
fn share_altered_for_one_or_for_all() {
    for setup in &setups() {
        let victim = setup.honest()[0];
        for only_one in [true, false] {
            let whom = move |to: PartyId| !only_one || to == victim;
            let case = |name: &str, change: &dyn Fn(&mut Vec<u8>), cause| {
                blamed(name, setup, alter(setup, 3, whom, |forged| change(&mut forged.body)), cause);
            };
            case("value", &|b| b[31] ^= 1, AbortCause::WrongShare);
            case("zero", &|b| b.fill(0), AbortCause::InvalidScalar);
            case("not below the order", &|b| put(b, 0, &hex(SCALAR_ORDER)), AbortCause::InvalidScalar);
            case("truncated", &|b| b.truncate(31), AbortCause::MalformedBody);
        }
        rejected("too long", setup, alter(setup, 3, all, |forged| forged.body.push(0)), Reject::Size);
    }
}

#[test]
fn share_of_another_recipient() {
    for setup in setups().iter().filter(|setup| setup.parties.len() > 2 && setup.t > 1) {
        let (one, other) = (setup.honest()[0], setup.honest()[1]);
        let theirs = setup.sent(setup.me(), 3, other).body.clone();
        let tamper = alter(setup, 3, move |to| to == one, move |forged| forged.body.clone_from(&theirs));
        blamed("swapped", setup, tamper, AbortCause::WrongShare);
    }
}

#[test]
fn confirmation_altered_in_every_field() {
    for setup in &setups() {
        let (response, partial) = (96, 128);
        let case = |name: &str, change: &dyn Fn(&mut Vec<u8>), cause| {
            blamed(name, setup, alter(setup, 4, all, |forged| change(&mut forged.body)), cause);
        };
        case("proof point identity", &|b| put(b, 0, &identity()), AbortCause::InvalidPoint);
        case("proof point off curve", &|b| put(b, 0, &off_curve()), AbortCause::InvalidPoint);
        case("proof point not canonical", &|b| put(b, 0, &not_canonical()), AbortCause::InvalidPoint);
        case("proof point", &|b| put(b, 0, &generator()), AbortCause::WrongProof);
        case("proof point of small order", &|b| put(b, 0, &small_order()), AbortCause::WrongProof);
        case(
            "response not below the order",
            &|b| put(b, response, &hex(SCALAR_ORDER)),
            AbortCause::InvalidScalar,
        );
        case("response", &|b| b[response + 31] ^= 1, AbortCause::WrongProof);
        case("partial off curve", &|b| b[partial + 191] ^= 1, AbortCause::InvalidPoint);
        case(
            "partial outside the subgroup",
            &|b| put(b, partial, &g2_outside_subgroup()),
            AbortCause::InvalidPoint,
        );
        case(
            "partial identity",
            &|b| {
                b[partial..].fill(0);
                b[partial] = 0x40;
            },
            AbortCause::InvalidPoint,
        );
        let theirs = setup.sent(setup.honest()[0], 4, setup.me()).body.clone();
        if setup.t > 1 {
            // With t = 1 all signing shares are the same.
            case(
                "partial copied",
                &|b| put(b, partial, &theirs[partial..]),
                AbortCause::WrongPartialSignature,
            );
        }
        case("proof copied", &|b| put(b, 0, &theirs[..partial]), AbortCause::WrongProof);
        case("truncated", &|b| b.truncate(319), AbortCause::MalformedBody);
        rejected("too long", setup, alter(setup, 4, all, |forged| forged.body.push(0)), Reject::Size);
    }
}

#[test]
fn header_altered_in_every_field() {
    for setup in &setups() {
        for round in 1..=4u8 {
            let case = |change: &dyn Fn(&mut Forged), reason| {
                rejected("header", setup, alter(setup, round, all, change), reason);
            };
            let other = setup.honest()[0];
            case(&|f| f.protocol = 2, Reject::Protocol);
            case(&|f| f.session[0] ^= 1, Reject::Session);
            case(&|f| f.round = 0, Reject::RoundPast);
            case(&|f| f.round = 9, Reject::RoundFuture);
            case(&|f| f.echo = None, Reject::Delivery);
            if setup.parties.len() > 2 {
                case(&|f| f.sender = other, Reject::Sender);
            }
            if round == 3 {
                case(&|f| f.recipient = None, Reject::Delivery);
                case(&|f| f.recipient = Some(setup.me()), Reject::Recipient);
            } else {
                case(&|f| f.recipient = Some(setup.me()), Reject::Recipient);
            }
            let signature: Tamper<'_> = Box::new(move |mut packet| {
                let forged = Forged::open(&packet.bytes).unwrap();
                if packet.from == setup.me() && forged.round == round {
                    *packet.bytes.last_mut().unwrap() ^= 1;
                }
                vec![packet]
            });
            rejected("signature", setup, signature, Reject::Signature);
            let version: Tamper<'_> = Box::new(move |mut packet| {
                let forged = Forged::open(&packet.bytes).unwrap();
                if packet.from == setup.me() && forged.round == round {
                    packet.bytes[0] = 1;
                }
                vec![packet]
            });
            rejected("version", setup, version, Reject::Version);
        }
    }
}

#[test]
fn broadcast_sent_privately_is_dropped() {
    let setup = Setup::new(&[1, 2, 3], 2, 1);
    for round in [1, 2, 4] {
        let tamper: Tamper<'_> = Box::new(|packet| {
            let mut forged = Forged::open(&packet.bytes).unwrap();
            if packet.from == setup.me() && forged.round == round {
                forged.recipient = packet.to;
            }
            vec![Packet { bytes: forged.encode(&evidence_key(packet.from)), ..packet }]
        });
        rejected("private broadcast", &setup, tamper, Reject::Delivery);
    }
}

#[test]
fn sender_is_whom_the_channel_proves() {
    let setup = Setup::new(&[1, 2, 3], 2, 1);
    // Party 1 passes on what party 2 signed, over its own channel, and says nothing itself.
    let mut stolen = Vec::new();
    let tamper: Tamper<'_> = Box::new(move |packet| {
        if packet.from == party(2) {
            stolen.push(packet.bytes.clone());
        }
        if packet.from != setup.me() {
            return vec![packet];
        }
        stolen.pop().map(|bytes| Packet { bytes, ..packet }).into_iter().collect()
    });
    let setup = Setup::new(&[1, 2, 3], 2, 1);
    rejected("stolen", &setup, tamper, Reject::Sender);
}

#[test]
fn silence_is_nobodys_fault() {
    for setup in &setups() {
        for round in 1..=4 {
            let tamper: Tamper<'_> = Box::new(move |packet| {
                let forged = Forged::open(&packet.bytes).unwrap();
                if packet.from == setup.me() && forged.round == round { vec![] } else { vec![packet] }
            });
            for (address, outcome) in setup.run(tamper) {
                if address == Some(setup.me()) {
                    continue;
                }
                assert!(outcome.aborts.is_empty() && outcome.done.is_none());
                assert_eq!(outcome.missing.iter().collect::<Vec<_>>(), [setup.me()]);
            }
        }
    }
}

#[test]
fn two_different_broadcasts() {
    for setup in setups().iter().filter(|setup| setup.parties.len() > 2) {
        let victim = setup.honest()[0];
        // Round 1: the victim gets another commitment.
        let tamper = alter(setup, 1, move |to| to == victim, |forged| forged.body[3] ^= 1);
        blamed("commitment", setup, tamper, AbortCause::Equivocation);
        // Round 2: the victim gets another opening, to the same commitment; or one that also fits another commitment.
        let tamper = alter(setup, 2, move |to| to == victim, |forged| forged.body[3] ^= 1);
        blamed_for_any(
            "opening",
            setup,
            tamper,
            &[AbortCause::InvalidPoint, AbortCause::Equivocation, AbortCause::WrongOpening],
        );
        // Round 4: too late for an echo; proof of it reaches those that are done.
        for at in [127, 128 + 60] {
            let tamper = alter(setup, 4, move |to| to == victim, move |forged| forged.body[at] ^= 1);
            blamed_for_any(
                "confirmation",
                setup,
                tamper,
                &[AbortCause::WrongProof, AbortCause::InvalidPoint, AbortCause::Equivocation],
            );
        }
    }
}

#[test]
fn two_consistent_worlds() {
    // The victim gets a commitment and an opening that fit each other but are not what the others get; both are valid.
    let setup = Setup::new(&[1, 2, 3, 4], 2, 4);
    let victim = party(1);
    let other_run = start_keygen(4, &setup.parties, setup.t, 1, 999);
    let mut world = BTreeMap::new();
    let (_, step) = other_run;
    world.insert(1u8, Forged::open(&step.outgoing[0].encode()).unwrap().body);
    let tamper: Tamper<'_> = Box::new(|packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        if packet.from == setup.me() && packet.to == Some(victim) && forged.round == 1 {
            forged.body.clone_from(&world[&1]);
        }
        vec![Packet { bytes: forged.encode(&evidence_key(packet.from)), ..packet }]
    });
    blamed("worlds", &setup, tamper, AbortCause::Equivocation);
}

#[test]
fn second_different_message_is_evidence_and_second_equal_one_is_not() {
    for setup in &setups() {
        for round in 1..=4u8 {
            let twice = |differ: bool| -> Tamper<'_> {
                Box::new(move |packet| {
                    let mut forged = Forged::open(&packet.bytes).unwrap();
                    if packet.from != setup.me() || forged.round != round {
                        return vec![packet];
                    }
                    if differ {
                        *forged.body.last_mut().unwrap() ^= 1;
                    }
                    let second = Packet { bytes: forged.encode(&evidence_key(setup.me())), ..packet.clone() };
                    vec![packet, second]
                })
            };
            let outcomes = setup.run(twice(false));
            for honest in setup.honest() {
                assert!(outcomes[&Some(honest)].done.is_some(), "round {round}");
            }
            let outcomes = setup.run(twice(true));
            for honest in setup.honest() {
                // A party that has finished the round before the second one comes is not concerned by it.
                if let Some(abort) = outcomes[&Some(honest)].abort() {
                    assert_eq!(abort.culprits, [setup.me()], "round {round}: {abort}");
                }
            }
        }
    }
}

#[test]
fn lie_about_what_was_seen() {
    for setup in &setups() {
        for round in 1..=4u8 {
            for only_one in [true, false] {
                let victim = setup.honest()[0];
                let whom = move |to: PartyId| !only_one || to == victim;
                let tamper = alter(setup, round, whom, |forged| forged.echo = Some([3; 32]));
                blamed_for_any(
                    "echo",
                    setup,
                    tamper,
                    &[AbortCause::FalseComplaint, AbortCause::Equivocation],
                );
            }
        }
    }
}

/// Sends a notice along with what the corrupt party sends in `round`.
fn with_notice<'a>(setup: &'a Setup, round: u8, only: Option<PartyId>, body: Vec<u8>) -> Tamper<'a> {
    Box::new(move |packet| {
        let forged = Forged::open(&packet.bytes).unwrap();
        let mut packets = vec![packet.clone()];
        let wanted = only.is_none_or(|only| packet.to == Some(only));
        if packet.from == setup.me() && forged.round == round && wanted {
            let mut notice = Forged::new(1, &setup.ctx, NOTICE_ROUND, setup.me(), body.clone());
            notice.run = forged.run;
            packets.push(Packet { bytes: notice.encode(&evidence_key(setup.me())), ..packet });
        }
        packets
    })
}

#[test]
fn false_complaints_fall_back_on_the_accuser() {
    for setup in setups().iter().step_by(2) {
        let accused = setup.honest()[0];
        let genuine = |round: u8| setup.sent(accused, round, setup.me()).encode(&evidence_key(accused));
        let own = |round: u8| setup.sent(setup.me(), round, accused).encode(&evidence_key(setup.me()));
        let history: Vec<Vec<u8>> = [1, 2]
            .into_iter()
            .flat_map(|round| setup.parties.iter().map(move |number| (round, party(*number))))
            .map(|(round, from)| {
                let to = setup.parties.iter().map(|p| party(*p)).find(|p| *p != from).unwrap();
                setup.sent(from, round, to).encode(&evidence_key(from))
            })
            .collect();
        let with_history = |last: Vec<u8>| history.iter().cloned().chain([last]).collect::<Vec<_>>();
        let complaints: Vec<(AbortCause, Vec<Vec<u8>>)> = vec![
            (AbortCause::WrongShare, vec![genuine(2), genuine(3)]),
            (AbortCause::WrongShare, vec![genuine(2)]),
            (AbortCause::WrongShare, vec![]),
            (AbortCause::WrongShare, vec![own(2), own(3)]),
            (AbortCause::WrongShare, vec![own(2), genuine(3)]),
            (AbortCause::WrongOpening, vec![genuine(1), genuine(2)]),
            (AbortCause::WrongOpening, vec![own(1), genuine(2)]),
            (AbortCause::InvalidPoint, vec![genuine(2)]),
            (AbortCause::WrongDegree, vec![genuine(2)]),
            (AbortCause::InvalidScalar, vec![genuine(3)]),
            (AbortCause::MalformedBody, vec![genuine(1)]),
            (AbortCause::WrongProof, vec![genuine(2)]),
            (AbortCause::WrongProof, with_history(genuine(4))),
            (AbortCause::WrongPartialSignature, with_history(genuine(4))),
            (AbortCause::WrongPartialSignature, vec![genuine(4)]),
            (AbortCause::Equivocation, vec![genuine(1), genuine(1)]),
            (AbortCause::Equivocation, vec![genuine(1), genuine(2)]),
            (AbortCause::Equivocation, vec![genuine(1), own(1)]),
            (AbortCause::FalseComplaint, vec![genuine(1)]),
            (AbortCause::FalseComplaint, vec![genuine(2), genuine(1)]),
        ];
        let mut heard = 0;
        for round in 1..=4 {
            for only in [None, Some(accused)] {
                for (cause, evidence) in &complaints {
                    let body = notice(*cause, accused.get(), evidence);
                    let outcomes = setup.run(with_notice(setup, round, only, body));
                    let mut named = 0;
                    for honest in setup.honest() {
                        let outcome = &outcomes[&Some(honest)];
                        if let Some(abort) = outcome.abort() {
                            assert_eq!(abort.culprits, [setup.me()], "{cause:?} in round {round}: {abort}");
                            assert_eq!(abort.cause, AbortCause::FalseComplaint);
                            named += 1;
                        } else {
                            // It was done before the complaint came, which then changes nothing.
                            assert!(outcome.done.is_some(), "{cause:?} in round {round}");
                        }
                    }
                    heard += named;
                }
            }
        }
        assert!(heard > 0);
    }
}

#[test]
fn notice_without_accused_ends_the_run_and_blames_nobody() {
    let mut heard = 0;
    for setup in &setups() {
        for cause in [AbortCause::Internal, AbortCause::BroadcastMismatch, AbortCause::DegenerateKey] {
            let outcomes = setup.run(with_notice(setup, 2, None, notice(cause, 0, &[])));
            for honest in setup.honest() {
                let outcome = &outcomes[&Some(honest)];
                let Some(abort) = outcome.abort() else {
                    // It was done before the notice came.
                    assert!(outcome.done.is_some());
                    continue;
                };
                assert!(abort.culprits.is_empty());
                assert_eq!(abort.cause, cause);
                // Also where another party brought it.
                assert_eq!((&*abort.suspects, abort.reporter), (&[setup.me()][..], Some(setup.me())));
                heard += 1;
            }
        }
    }
    assert!(heard > 0);
}

#[test]
fn implausible_notice_is_ignored() {
    for setup in &setups() {
        let bodies = [
            notice(AbortCause::WrongShare, 0, &[]),
            notice(AbortCause::WrongShare, 9_999, &[]),
            vec![0, 0, 0, 0, 0],
            vec![99, 0, 1, 0, 0],
            vec![],
            notice(AbortCause::Internal, 0, &[vec![1, 2, 3]]),
            notice(AbortCause::WrongShare, setup.honest()[0].get(), &[vec![1, 2, 3]]),
        ];
        for body in bodies {
            let outcomes = setup.run(with_notice(setup, 1, None, body));
            assert!(outcomes.values().all(|outcome| outcome.done.is_some()));
        }
    }
}

#[test]
fn disclosure_without_two_claims_that_differ_convicts_its_sender() {
    for setup in &setups() {
        let (me, honest) = (setup.me(), setup.honest()[0]);
        let own = |round: u8| setup.sent(me, round, honest).encode(&evidence_key(me));
        let theirs = |round: u8| setup.sent(honest, round, me).encode(&evidence_key(honest));
        let other_echo = |round: u8| {
            let mut forged = Forged::open(&own(round)).unwrap();
            forged.echo = Some([3; 32]);
            forged.encode(&evidence_key(me))
        };
        let bodies = [
            ("garbage", vec![1, 2, 3]),
            ("equal views", disclosure([&own(2), &theirs(2)], &[own(1), theirs(1)]).unwrap()),
            ("own claims only", disclosure([&own(2), &other_echo(2)], &[own(1), theirs(1)]).unwrap()),
            ("two rounds", disclosure([&own(1), &theirs(2)], &[own(1), theirs(1)]).unwrap()),
            ("a place twice", disclosure([&other_echo(2), &theirs(2)], &[own(1), own(1)]).unwrap()),
        ];
        for (name, body) in bodies {
            let disclose: Tamper<'_> = Box::new(|packet| {
                let forged = Forged::open(&packet.bytes).unwrap();
                let mut packets = vec![packet.clone()];
                if packet.from == me && forged.round == 2 {
                    let mut disclosure = Forged::new(1, &setup.ctx, DISCLOSURE_ROUND, me, body.clone());
                    disclosure.run = forged.run;
                    packets.push(Packet { bytes: disclosure.encode(&evidence_key(me)), ..packet });
                }
                packets
            });
            blamed(name, setup, disclose, AbortCause::MalformedBody);
        }
    }
}

#[test]
fn replay_from_another_session() {
    for setup in &setups() {
        let mut old = BTreeMap::new();
        let record = |packet: Packet| {
            let round = Forged::open(&packet.bytes).unwrap().round;
            old.insert((packet.from, round, packet.to), packet.bytes.clone());
            vec![packet]
        };
        let started = setup
            .parties
            .iter()
            .map(|number| (Some(party(*number)), start_keygen(*number, &setup.parties, setup.t, 77, 5)));
        World::new(5, Faults { tamper: Some(Box::new(record)), ..Faults::default() }, started).run();
        let replay: Tamper<'_> = Box::new(|packet| {
            let round = Forged::open(&packet.bytes).unwrap().round;
            let bytes = old[&(packet.from, round, packet.to)].clone();
            if packet.from == setup.me() {
                vec![Packet { bytes, ..packet.clone() }, packet]
            } else {
                vec![packet]
            }
        });
        let outcomes = setup.run(replay);
        for honest in setup.honest() {
            let outcome = &outcomes[&Some(honest)];
            assert!(outcome.done.is_some());
            assert_eq!(outcome.rejects.len(), 4);
            assert!(outcome.rejects.iter().all(|(_, reason)| *reason == Reject::Session));
        }
    }
}

#[test]
fn bodies_of_another_session_are_refused_by_their_proofs() {
    // Re-signed for this session, the proofs in them still name the other one.
    let setup = Setup::new(&[1, 2, 3], 2, 2);
    let (_, other) = start_keygen(2, &setup.parties, setup.t, 77, 5);
    let body = Forged::open(&other.outgoing[0].encode()).unwrap().body;
    let tamper = alter(&setup, 1, all, move |forged| forged.body.clone_from(&body));
    blamed_for_any(
        "replayed commitment",
        &setup,
        tamper,
        &[AbortCause::Equivocation, AbortCause::FalseComplaint],
    );
}

/// Key generation in which some parties use other points than those of their polynomial, consistently.
struct Bent(Keygen);

type Bend = fn(&mut Vec<CurveG1>);

impl Protocol for Bent {
    const ID: ProtocolId = Keygen::ID;
    const SIGNED: bool = Keygen::SIGNED;
    const ROUNDS: &'static [RoundRule] = Keygen::ROUNDS;
    type Input = Bend;
    type Output = KeyShare;

    fn start(
        ctx: &SessionContext,
        bend: Bend,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        forge::start(ctx, bend, rng).map(|(state, outbox)| (Self(state), outbox))
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        Ok(match self.0.advance(ctx, inbox, history, rng)? {
            Next::Round(state, outbox) => Next::Round(Self(state), outbox),
            Next::Stay(state) => Next::Stay(Self(state)),
            Next::Done(output) => Next::Done(output),
        })
    }

    fn judge(ctx: &SessionContext, cause: AbortCause, accused: PartyId, evidence: &[Arc<Envelope>]) -> bool {
        Keygen::judge(ctx, cause, accused, evidence)
    }
}

fn bent(n: u32, t: u32, bends: &[(u32, Bend)]) -> BTreeMap<Address, Outcome<KeyShare>> {
    let parties: Vec<u32> = (1..=n).collect();
    let started = parties.iter().map(|number| {
        let bend = bends.iter().find(|(who, _)| who == number).map_or((|_| ()) as Bend, |(_, bend)| *bend);
        let settings = common::settings(Some(party(*number)), &parties, t, 1, &[]);
        let identity = evidence_key(party(*number));
        let session =
            Session::<Bent>::start(settings, Some(identity), bend, &mut common::rng(u64::from(*number)));
        (Some(party(*number)), session.unwrap())
    });
    World::new(1, Faults::default(), started).run()
}

fn bent_is_blamed(n: u32, t: u32, bend: Bend, cause: AbortCause) {
    let outcomes = bent(n, t, &[(2, bend)]);
    for honest in (1..=n).filter(|number| *number != 2) {
        let abort = outcomes[&Some(party(honest))].abort().unwrap();
        assert_eq!((abort.cause, abort.culprits.as_slice()), (cause, [party(2)].as_slice()), "{abort}");
    }
}

fn add_torsion(point: &mut CurveG1) {
    *point = CurveG1::from_uncompressed(&plus(&point.to_uncompressed(), &small_order())).unwrap();
}

fn take_torsion(point: &mut CurveG1) {
    *point = CurveG1::from_uncompressed(&plus(&point.to_uncompressed(), &small_order_negated())).unwrap();
}

#[test]
fn points_outside_the_subgroup_with_valid_proofs() {
    for (n, t) in [(3, 2), (4, 4), (5, 3)] {
        bent_is_blamed(n, t, |points| add_torsion(&mut points[0]), AbortCause::InvalidPoint);
        bent_is_blamed(n, t, |points| add_torsion(&mut points[1]), AbortCause::InvalidPoint);
        bent_is_blamed(n, t, |points| points.iter_mut().for_each(add_torsion), AbortCause::InvalidPoint);
        let small: Bend = |points| points[1] = CurveG1::from_uncompressed(&small_order()).unwrap();
        bent_is_blamed(n, t, small, AbortCause::InvalidPoint);
    }
}

#[test]
fn points_of_another_polynomial_with_valid_proofs() {
    for (n, t) in [(3, 2), (4, 4), (5, 3)] {
        bent_is_blamed(n, t, |points| points[1] = G1::generator().into(), AbortCause::WrongShare);
        bent_is_blamed(n, t, |points| points.swap(0, 1), AbortCause::WrongProof);
    }
}

#[test]
fn colluders_whose_torsion_cancels_change_nothing() {
    // In the sums, which are all that the key is made of, there is none left: the key is as good as any.
    let bends: [(u32, Bend); 2] =
        [(1, |points| add_torsion(&mut points[1])), (2, |points| take_torsion(&mut points[1]))];
    let outcomes = bent(4, 3, &bends);
    let shares: BTreeMap<u32, KeyShare> = outcomes
        .into_iter()
        .map(|(address, outcome)| (u32::from(address.unwrap().get()), outcome.done.unwrap()))
        .collect();
    for outcome in common::sign_with(&shares, &[1, 3, 4], b"m", 1, Faults::default()).values() {
        assert!(outcome.done.as_ref().unwrap().culprits.is_empty());
    }
}

/// A party that knows the other's secret in advance, as commitments keep it from doing, can make the sum of both
/// vanish. Then there is no key, and the party that finds it says so: the corrupt one broke no rule that a signed
/// message could show.
#[test]
fn contributions_that_cancel_make_no_key() {
    // With t = 1 the share is the secret itself.
    let setup = Setup::new(&[1, 2], 1, 2);
    let theirs = Scalar::from_bytes(setup.sent(party(1), 3, setup.me()).body.as_slice().try_into().unwrap());
    let negated = Secret::new(Scalar::zero().sub(&theirs.unwrap()));
    let point = CurveG1::from(G1::mul_generator(&negated)).to_uncompressed();
    let nonce = Nonce::new(&Secret::new([9; 64]));
    let commitment = CurveG1::from(*nonce.commitment()).to_uncompressed();
    let mut statement = setup.ctx.transcript().fork(protocols::tags::BLS_CONSTANT_TERM_PROOF, setup.me());
    statement.append_list("points", [point].iter());
    statement.append("proof commitment", &commitment);
    let response = nonce.respond(&Scalar::from_wide(&statement.wide()), &negated).to_bytes();
    let opening = [&[1][..], &point, &commitment, &response, &[7; 32]].concat();
    assert_eq!(opening.len(), setup.own_opening().len());

    let outcomes = setup.run(commit_to(&setup, opening));
    let [abort] = outcomes[&Some(party(1))].aborts.as_slice() else { panic!("one abort") };
    assert_eq!((abort.cause, &*abort.culprits), (AbortCause::DegenerateKey, &[][..]), "{abort}");
    assert_eq!((&*abort.suspects, abort.reporter), (&[setup.me()][..], Some(party(1))), "{abort}");
    assert!(outcomes[&Some(party(1))].done.is_none());
}

/// Two parties add to their proofs what makes up for each other. A party whose generator gives the same bytes for ever
/// weighs them differently all the same, because it draws the weights with its secret, and names one of the two.
#[test]
fn errors_that_cancel_are_found_with_a_stuck_generator() {
    let all = [1, 2, 3];
    let (mut sessions, mut queue) = (BTreeMap::new(), VecDeque::new());
    let post = |queue: &mut VecDeque<(u32, u32, Vec<u8>)>, from: u32, outgoing: &[Envelope]| {
        for envelope in outgoing {
            let to = all.into_iter().filter(|to| envelope.recipient().is_none_or(|one| one == party(*to)));
            queue.extend(to.filter(|to| *to != from).map(|to| (from, to, envelope.encode())));
        }
    };
    for me in all {
        let (session, step) = start_keygen(me, &all, 2, 1, 5);
        post(&mut queue, me, &step.outgoing);
        sessions.insert(me, session);
    }
    let five = Secret::new(Scalar::from_u64(5));
    let errors = [five.expose().copy(), Scalar::zero().sub(five.expose())]
        .map(|error| G2::mul_generator(&Secret::new(error)));
    let mut aborts = Vec::new();
    while let Some((from, to, mut bytes)) = queue.pop_front() {
        let mut forged = Forged::open(&bytes).unwrap();
        if to == 1 && forged.round == 4 {
            let at = forged.body.len() - 192;
            let partial = G2::from_uncompressed(forged.body[at..].try_into().unwrap()).unwrap();
            let bent = partial.plus(&errors[from as usize - 2]);
            forged.body[at..].copy_from_slice(&bent.to_uncompressed());
            bytes = forged.encode(&evidence_key(party(from)));
        }
        let session = sessions.get_mut(&to).unwrap();
        let step = match to {
            1 => session.handle(party(from), &bytes, &mut Stuck(7)),
            _ => session.handle(party(from), &bytes, &mut common::rng(u64::from(to) + 99)),
        };
        post(&mut queue, to, &step.outgoing);
        match step.progress {
            Progress::Aborted(abort) if to == 1 => aborts.push(abort),
            Progress::Done(_) => assert_ne!(to, 1, "party 1 took a wrong proof of possession"),
            _ => (),
        }
    }
    let [abort] = aborts.as_slice() else { panic!("one abort: {aborts:?}") };
    assert_eq!(abort.cause, AbortCause::WrongPartialSignature, "{abort}");
    assert!(abort.culprits == [party(2)] || abort.culprits == [party(3)], "{abort}");
}
