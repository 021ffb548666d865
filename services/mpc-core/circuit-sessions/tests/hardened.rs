//! Sessions of hardened derivation: keys that wallets show, and parties that deviate in frames, paths and settings.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "test code")]

mod common;

use std::sync::Arc;

use circuit_sessions::{
    Child, Derivation, Deriving, DerivingInput, MAX_ROUNDS, PairedSeed, SeedPairing, SeedPairingInput,
    Slip10Deriving, Slip10DerivingInput, Slip10Keying, Slip10KeyingInput, Slip10Level, Slip10Start, Subject,
};
use circuits::hardened::{KeyShares, Node, PublicNode, SeedShare, Step, StepCircuit, split_seed};
use engine::session::Progress;
use engine::{AbortCause, Secret, SessionSettings, SetupError, Threshold};
use primitives::secp256k1::{Scalar, decode_scalar, encode_point, encode_scalar, mul_generator};

use common::{Change, Ran, flipped, found, honest, party, refused, rng, run, settings, talk};

const H: u32 = 1 << 31;
/// BIP-39's seed of the words "abandon" eleven times and "about" has this root in BIP-32: private key and chain code.
const ROOT: [&str; 2] = [
    "1837c1be8e2995ec11cda2b066151be2cfb48adf9e47b151d46adab3a21cdf67",
    "7923408dadd3c7b56eed15567707ae5e5dca089de972e07f3b860450e2a3b70e",
];
/// BIP-84, test vectors: its first receiving key, m/84'/0'/0'/0/0.
const RECEIVING: &str = "0330d54fd0dd420a6e5f8d3624f5f3482cae350f79d5f0753bf5beef9c2d91af3c";
/// The seed of the first vectors of BIP-32 and SLIP-10.
const SEED: &str = "000102030405060708090a0b0c0d0e0f";

fn hex<const N: usize>(text: &str) -> [u8; N] {
    let byte = |i: usize| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap();
    std::array::from_fn(byte)
}

fn payload(child: &str, known: usize, path: &[u32]) -> Vec<u8> {
    Derivation { child_key_id: child.to_owned(), known, path: path.to_vec() }.encode().unwrap()
}

/// The shares of parties 1 and 2 of a key whose private key is on a line of this slope.
fn parents(slope: u64) -> [Node; 2] {
    let (key, slope) = (decode_scalar(&hex(ROOT[0])).unwrap(), Scalar::from(slope));
    let public = PublicNode { public_key: encode_point(&mul_generator(&key)), chain_code: hex(ROOT[1]) };
    let shares = [1u64, 2].map(|number| key + slope * Scalar::from(number));
    let points = shares.map(|share| encode_point(&mul_generator(&share)));
    [(0, 1), (1, 0)].map(|(own, peer): (usize, usize)| {
        let share = Secret::new(encode_scalar(&shares[own]));
        let held = KeyShares { share: &share, point: &points[own], their_point: &points[peer] };
        Node::from_shamir(public, &held, own as u16 + 1, peer as u16 + 1).unwrap()
    })
}

fn circuit(step: Step) -> Arc<StepCircuit> {
    Arc::new(StepCircuit::new(step).unwrap())
}

fn derive(circuit: &Arc<StepCircuit>, path: &[u32], change: Change<'_>) -> Ran<Option<Child>> {
    let inputs =
        parents(5).map(|parent| DerivingInput { parent, held: [1; 32], circuit: Arc::clone(circuit) });
    run::<Deriving>(inputs, &payload("child", 0, path), change)
}

/// The public part of a key that is on the line through both parties' shares.
fn joined(nodes: &[Child; 2]) -> PublicNode {
    let [first, second] = nodes.each_ref().map(|node| decode_scalar(node.shares.share.expose()).unwrap());
    let points = [first, second].map(|share| encode_point(&mul_generator(&share)));
    assert_eq!((nodes[0].shares.points, nodes[1].shares.points), (points, [points[1], points[0]]));
    assert_eq!(nodes[0].public, nodes[1].public);
    assert_eq!(encode_point(&mul_generator(&(first + first - second))), nodes[0].public.public_key);
    nodes[0].public
}

/// As many hardened levels as one session does.
#[test]
fn two_parties_of_a_key_derive_the_key_that_a_wallet_shows() {
    let circuit = circuit(Step::Child);
    let ran = derive(&circuit, &[84 + H, H, H, 0, 0], &mut honest);
    assert!(ran.envelopes.iter().all(|count| *count <= MAX_ROUNDS), "{:?}", ran.envelopes);
    let nodes = ran.both().map(Option::unwrap);
    assert_eq!(joined(&nodes).public_key, hex(RECEIVING));
}

fn shares(seed: u64) -> [SeedShare; 2] {
    let shares = split_seed(&Secret::new(hex::<16>(SEED).to_vec()), 3, &mut rng(seed)).unwrap();
    let [first, second, _] = <[_; 3]>::try_from(shares).ok().unwrap();
    [first, second]
}

fn join(shares: [SeedShare; 2]) -> Ran<PairedSeed> {
    let circuit = circuit(Step::Master(16));
    let payload = SeedPairing::payload(&shares[0]);
    let inputs = shares.map(|share| SeedPairingInput { share, circuit: Arc::clone(&circuit) });
    run::<SeedPairing>(inputs, &payload, &mut honest)
}

fn levels(
    start: [Slip10Start; 2],
    known: usize,
    path: &[u32],
    circuit: &Arc<StepCircuit>,
) -> [Arc<Slip10Level>; 2] {
    let inputs = start.map(|start| Slip10DerivingInput { start, circuit: Arc::clone(circuit) });
    let ran = run::<Slip10Deriving>(inputs, &payload("", known, path), &mut honest);
    ran.both().map(Arc::new)
}

/// The first vectors of BIP-32 and SLIP-10: the root on secp256k1, and m/0'/1' for Ed25519 in two sessions.
#[test]
fn a_pair_with_a_seed_finds_its_root_and_derives_a_key_of_slip10() {
    let paired = join(shares(1)).both().map(Arc::new);
    let root = paired[0].root();
    assert_eq!(root, paired[1].root());
    let expected = "0339a36013301597daef41fbe593a02cc513d0b55527ec2df1050e2e8ff49c85c2";
    assert_eq!(root.public_key, hex(expected));
    let (master, child) = (circuit(Step::Slip10Master(16)), circuit(Step::Slip10Child));
    let seeds = || paired.each_ref().map(|paired| Slip10Start::Seed(Arc::clone(paired), Arc::clone(&master)));
    let first = levels(seeds(), 0, &[H], &child);
    let expected = "8b59aa11380b624e81507a27fedda59fea6d0b779a778918a2fd3590e16e9c69";
    assert_eq!(first.each_ref().map(|level| *level.chain_code()), [hex(expected); 2]);
    let second =
        levels(first.each_ref().map(|level| Slip10Start::Level(Arc::clone(level))), 1, &[H, 1 + H], &child);
    let key = circuit(Step::Slip10Key);
    let inputs = || {
        second
            .each_ref()
            .map(|level| Slip10KeyingInput { level: Arc::clone(level), circuit: Arc::clone(&key) })
    };
    let keys = run::<Slip10Keying>(inputs(), &payload("child", 2, &[H, 1 + H]), &mut honest).both();
    let expected = "1932a5270f335bed617d5b935c80aedb1a35bd9fc1e31acafd5372c30f5c1187";
    assert_eq!(keys.map(|key| key.public_key), [hex(expected); 2]);

    // Payloads that are not of the node or the seed that they are about.
    let [level, _] = &second;
    let from_level = |payload: &[u8]| {
        let start = Slip10Start::Level(Arc::clone(level));
        let input = Slip10DerivingInput { start, circuit: Arc::clone(&child) };
        refused::<Slip10Deriving>(settings(1, &[1, 2], payload), input)
    };
    for wrong in
        [(2, &[H, 1 + H][..]), (1, &[H, 1 + H, H]), (2, &[H, 2 + H, H]), (2, &[H, 1 + H, 1]), (0, &[H])]
    {
        assert_eq!(from_level(&payload("", wrong.0, wrong.1)), SetupError::PayloadInvalid, "{wrong:?}");
    }
    let four = payload("", 2, &[H, 1 + H, H, H, H, H]);
    assert_eq!(from_level(&four), SetupError::DerivationPathInvalid);
    assert_eq!(from_level(&payload("name", 2, &[H, 1 + H, H])), SetupError::KeyIdLength);
    let from_seed = |payload: &[u8]| {
        let [start, _] = seeds();
        let input = Slip10DerivingInput { start, circuit: Arc::clone(&child) };
        refused::<Slip10Deriving>(settings(1, &[1, 2], payload), input)
    };
    assert_eq!(from_seed(&payload("", 0, &[])), SetupError::PayloadInvalid);
    assert_eq!(from_seed(&payload("", 1, &[H])), SetupError::PayloadInvalid);
    assert_eq!(from_seed(&payload("", 0, &[H, H, H])), SetupError::DerivationPathInvalid);
    let keying = |payload: &[u8]| {
        let [input, _] = inputs();
        refused::<Slip10Keying>(settings(1, &[1, 2], payload), input)
    };
    for wrong in [(2, &[H, 2 + H][..]), (1, &[H, 1 + H]), (1, &[H])] {
        assert_eq!(keying(&payload("child", wrong.0, wrong.1)), SetupError::PayloadInvalid, "{wrong:?}");
    }
    // Another party than that of the set-up.
    let [input, _] = inputs();
    let other = settings(1, &[1, 3], &payload("child", 2, &[H, 1 + H]));
    assert_eq!(refused::<Slip10Keying>(other, input), SetupError::ShareMismatch);
    assert!(paired.iter().all(|paired| !paired.ended()), "a caller's mistake excludes nobody");

    // The session runs, and a party ends its set-up meanwhile.
    let ran = run::<Slip10Keying>(inputs(), &payload("child", 2, &[H, 1 + H]), &mut |from, at, envelope| {
        if (from, at) == (1, 1) {
            paired[1].end();
        }
        envelope
    });
    let [None, Some(abort)] = &ran.aborts else { panic!("{:?}", ran.aborts) };
    assert!(abort.culprits.is_empty() && abort.suspects.is_empty(), "{abort:?}");
    assert!(ran.done.iter().all(Option::is_none) && !paired[0].ended());
}

/// A bit is flipped in frames of the set-up, of the preparation, and of the derivation after it. The latter's places
/// are counted from the end.
#[test]
fn what_is_wrong_in_a_derivation_has_a_cause_and_names_its_sender() {
    let circuit = circuit(Step::Child);
    let [_, count] = derive(&circuit, &[H], &mut honest).envelopes;
    for (sender, number, cause, blamed) in [
        (1, 0, AbortCause::TransferCheckFailed, true),
        (2, 0, AbortCause::TransferCheckFailed, true),
        // It names the circuit that it means to evaluate first.
        (2, 1, AbortCause::CircuitMismatch, false),
        (1, 2, AbortCause::TransferCheckFailed, true),
        (2, 2, AbortCause::TransferCheckFailed, true),
        (2, count - 5, AbortCause::DabitCheckFailed, true),
        (2, count - 4, AbortCause::WrongInput, true),
        (2, count - 3, AbortCause::WrongLabel, true),
        (1, count - 2, AbortCause::WrongAuthenticator, true),
    ] {
        let ran = derive(&circuit, &[H], &mut |from, at, envelope| {
            if (from, at) == (sender, number) { flipped(&envelope) } else { envelope }
        });
        let (none, one) = (vec![], vec![party(sender)]);
        let [culprits, suspects] = if blamed { [one, none] } else { [none, one] };
        assert_eq!(found(&ran, sender), (cause, culprits, suspects), "frame {number} of {sender}");
    }
}

/// A party's share of the seed is another one than the owner's, whoever has changed it.
#[test]
fn a_root_that_is_not_the_owners_is_a_suspicion() {
    let [first, second] = shares(1);
    let mut bytes = second.encode().expose().clone();
    let share_with_first = 70 + 2;
    bytes[share_with_first] ^= 1;
    let ran = join([first, SeedShare::decode(&bytes).unwrap()]);
    let aborts: Vec<_> = ran.aborts.iter().flatten().collect();
    assert!(!aborts.is_empty() && ran.done.iter().all(Option::is_none));
    for abort in aborts {
        assert_eq!((abort.cause, abort.culprits.as_slice()), (AbortCause::WrongTestSignature, &[][..]));
        assert_eq!(abort.suspects.len(), 1);
    }
}

/// They mean different keys, paths, names or seeds.
#[test]
fn parties_that_mean_different_things_do_not_understand_each_other_and_blame_nobody() {
    fn apart<S: Subject>(inputs: [(S::Input, Vec<u8>); 2]) {
        let [(first, one), (second, other)] = inputs;
        let (from, opening) = talk::<S>(1, first, &one);
        let (mut to, _) = talk::<S>(2, second, &other);
        let said = from.seal(&opening.outgoing[0], &mut rng(1)).unwrap();
        let step = to.handle(party(1), &said, &mut rng(1));
        assert!(matches!(step.progress, Progress::Dropped(_)) && step.outgoing.is_empty());
    }
    let child = circuit(Step::Child);
    let own = payload("child", 0, &[H, 1]);
    let key = |held: u8, payload: &[u8]| {
        let [first, second] =
            parents(5).map(|parent| DerivingInput { parent, held: [held; 32], circuit: Arc::clone(&child) });
        let (mine, theirs) = ((first, own.clone()), (second, payload.to_vec()));
        [mine, theirs]
    };
    // A hash of the key's public data: its chain code, its shares' points.
    let [mine, _] = key(1, &own);
    let [_, theirs] = key(2, &own);
    apart::<Deriving>([mine, theirs]);
    for other in
        [payload("child", 0, &[H, 2]), payload("child", 0, &[1 + H, 1]), payload("other", 0, &[H, 1])]
    {
        apart::<Deriving>(key(1, &other));
    }
    // Another seed, or one that is said to have another root.
    let master = circuit(Step::Master(16));
    let [first, _] = shares(1);
    let others = split_seed(&Secret::new(vec![1; 16]), 3, &mut rng(1)).unwrap();
    let other = others.into_iter().nth(1).unwrap();
    let inputs = [first, other].map(|share| {
        let payload = SeedPairing::payload(&share);
        (SeedPairingInput { share, circuit: Arc::clone(&master) }, payload)
    });
    apart::<SeedPairing>(inputs);
}

#[test]
fn payloads_and_settings_that_do_not_fit_are_refused() {
    let child = circuit(Step::Child);
    let refusal = |settings: SessionSettings| {
        let [parent, _] = parents(5);
        refused::<Deriving>(settings, DerivingInput { parent, held: [1; 32], circuit: Arc::clone(&child) })
    };
    let with = |payload: &[u8]| refusal(settings(1, &[1, 2], payload));
    let right = payload("child", 0, &[H, 1]);
    for cut in 0..right.len() {
        assert_eq!(with(&right[..cut]), SetupError::PayloadInvalid, "{cut} bytes");
    }
    assert_eq!(with(&[right.as_slice(), &[0]].concat()), SetupError::PayloadInvalid);
    for path in [&[][..], &[1, 2]] {
        assert_eq!(with(&payload("child", 0, path)), SetupError::PayloadInvalid);
    }
    assert_eq!(with(&payload("child", 1, &[H, H])), SetupError::PayloadInvalid);
    assert_eq!(with(&payload("child", 0, &[H, 0, H, H, 1, H])), SetupError::DerivationPathInvalid);
    for name in ["", "imported"] {
        assert_eq!(with(&payload(name, 0, &[H])), SetupError::KeyIdLength, "a child has a name of its own");
    }
    let long = |name: usize, levels: usize| {
        Derivation { child_key_id: "k".repeat(name), known: 0, path: vec![H; levels] }.encode().err()
    };
    assert_eq!(long(129, 1), Some(SetupError::KeyIdLength));
    assert_eq!(long(1, 11), Some(SetupError::DerivationPathInvalid));
    assert_eq!(long(128, 10), None);
    // A count beyond what a path has, as no encoder writes it.
    let mut many = [&right[..10], &[11]].concat();
    many.extend([0x80; 44]);
    assert_eq!(with(&many), SetupError::PayloadInvalid);
    assert_eq!(refusal(settings(0, &[1, 2], &right)), SetupError::ObserverNotAllowed);
    assert_eq!(refusal(settings(1, &[1, 2, 3], &right)), SetupError::PartyCount);
    let three = SessionSettings { threshold: Threshold::new(3).unwrap(), ..settings(1, &[1, 2], &right) };
    assert_eq!(refusal(three), SetupError::ThresholdRange);

    let master = circuit(Step::Master(16));
    let seed = |settings: SessionSettings| {
        let [share, _] = shares(1);
        refused::<SeedPairing>(settings, SeedPairingInput { share, circuit: Arc::clone(&master) })
    };
    let root = SeedPairing::payload(&shares(1)[0]);
    assert_eq!(seed(settings(1, &[1, 2], &root[1..])), SetupError::PayloadInvalid);
    assert_eq!(seed(settings(2, &[1, 2], &root)), SetupError::ShareMismatch);
    assert_eq!(seed(settings(1, &[1, 4], &root)), SetupError::ShareMismatch);
}
