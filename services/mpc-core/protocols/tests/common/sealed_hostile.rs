//! Hostile bytes in the place of sealed private envelopes: one that does not open changes nothing, and one that opens
//! can be held against its sender only.

#![allow(dead_code, reason = "every test binary uses its own part")]

use std::sync::OnceLock;

use engine::forge::Forged;
use engine::session::{Progress, Session};
use engine::{Envelope, Protocol, Reject, SEALED_ENVELOPE_FORMAT};
use sim::{Faults, Packet};

use super::common::{Started, evidence_key, keygen_with, party, rng, start_keygen};
use super::ecdsa_common;

const PARTIES: [u32; 2] = [1, 2];
const T: u32 = 2;
const SEED: u64 = 12;

/// An honest run: the envelopes to party 1 in the order of their rounds.
struct Recorded(Vec<Vec<u8>>);

impl Recorded {
    fn of(run: impl FnOnce(Faults<'_>)) -> Self {
        let mut packets: Vec<Packet> = Vec::new();
        let record = |packet: Packet| {
            packets.push(packet.clone());
            vec![packet]
        };
        run(Faults { tamper: Some(Box::new(record)), ..Faults::default() });
        let mut to_first: Vec<Vec<u8>> = packets
            .into_iter()
            .filter(|packet| packet.to == Some(party(1)))
            .map(|packet| packet.bytes)
            .collect();
        to_first.sort_by_key(|bytes| Forged::open(bytes).unwrap().round);
        Self(to_first)
    }
}

/// The first byte chooses the scheme and what is done with the rest: bytes as they are, a genuine sealed envelope that
/// they change, or a body, signed and sealed as it should be. ECDSA has two further private rounds, which the second
/// byte chooses from.
pub fn sealed_envelope(data: &[u8]) {
    static BLS: OnceLock<Recorded> = OnceLock::new();
    static ECDSA: OnceLock<Recorded> = OnceLock::new();
    let Some(([choice, round], data)) = data.split_first_chunk::<2>() else { return };
    let how = choice >> 1;
    if choice & 1 == 0 {
        let recorded =
            BLS.get_or_init(|| Recorded::of(|faults| drop(keygen_with(&PARTIES, T, SEED, faults))));
        let start = |me: u32| start_keygen(me, &PARTIES, T, 1, SEED);
        private_round(start, recorded, 3, how, data);
    } else {
        let recorded = ECDSA.get_or_init(|| {
            Recorded::of(|faults| drop(ecdsa_common::keygen_with(&PARTIES, T, SEED, faults)))
        });
        let start = |me: u32| ecdsa_common::start_keygen(me, &PARTIES, T, 1, SEED);
        // Party 1 draws other values than the recorded one in later rounds, so that only round 3 is reached with
        // messages that fit.
        private_round(start, recorded, 3 + round % 3, how, data);
    }
}

fn private_round<P: Protocol>(
    start: impl Fn(u32) -> Started<P>,
    Recorded(recorded): &Recorded,
    round: u8,
    how: u8,
    data: &[u8],
) {
    let (mut session, _) = start(1);
    let (sender, _) = start(2);
    let due = recorded.iter().map(|bytes| Forged::open(bytes).unwrap()).find(|forged| forged.round == round);
    let mut due = due.unwrap();
    for bytes in recorded.iter().filter(|bytes| Forged::open(bytes).unwrap().round < 3) {
        session.handle(party(2), bytes, &mut rng(1));
    }
    assert_eq!(session.round(), 3);
    match how % 3 {
        0 => {
            let reject = opened(&mut session, data);
            // A corpus may hold an envelope that party 2 once sealed: its key is the same in every test.
            assert!(reject.is_some() || data.first() == Some(&SEALED_ENVELOPE_FORMAT));
        }
        1 => {
            let genuine = sealed(&sender, &due);
            let mut bytes = genuine.clone();
            for (byte, change) in bytes.iter_mut().zip(data) {
                *byte ^= change;
            }
            let reject = opened(&mut session, &bytes);
            if bytes != genuine {
                assert!(reject.is_some(), "a changed envelope opens");
            } else if round == 3 {
                assert_eq!(reject, None, "a genuine envelope does not open");
            }
        }
        _ => {
            due.body = data.to_vec();
            let plain = due.encode(&evidence_key(party(2)));
            assert_eq!(opened(&mut session, &plain), Some(Reject::Unsealing));
            opened(&mut session, &sealed(&sender, &due));
        }
    }
}

fn sealed<P: Protocol>(sender: &Session<P>, forged: &Forged) -> Vec<u8> {
    let plain = forged.encode(&evidence_key(party(2)));
    sender.seal(&Envelope::decode(&plain).unwrap(), &mut rng(2)).unwrap()
}

/// Why the bytes were dropped, if they were.
fn opened<P: Protocol>(session: &mut Session<P>, bytes: &[u8]) -> Option<Reject> {
    match session.open(party(2), bytes, &mut rng(1)).progress {
        Progress::Dropped(reject) => Some(reject),
        Progress::Aborted(abort) => {
            assert!(abort.culprits.iter().all(|culprit| *culprit == party(2)), "{abort}");
            None
        }
        Progress::Waiting { .. } | Progress::Done(_) => None,
    }
}

/// Inputs that begin with a genuine sealed envelope, a change of it, and a genuine body: for the fuzzer to start from.
pub fn seeds() -> Vec<Vec<u8>> {
    let run = Recorded::of(|faults| drop(keygen_with(&PARTIES, T, SEED, faults)));
    let (sender, _) = start_keygen(2, &PARTIES, T, 1, SEED);
    let due =
        run.0.iter().map(|bytes| Forged::open(bytes).unwrap()).find(|forged| forged.round == 3).unwrap();
    let mut seeds = vec![vec![2, 0], vec![2, 0, 0, 1], [&[0, 0], &sealed(&sender, &due)[..]].concat()];
    for scheme in [0, 1] {
        seeds.push([&[4 | scheme, 0], &due.body[..]].concat());
    }
    seeds.extend([vec![3, 0], vec![3, 1], vec![3, 2], vec![5, 1, 0], vec![5, 2, 0]]);
    seeds
}
