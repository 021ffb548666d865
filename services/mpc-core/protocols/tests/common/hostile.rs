//! What is done with hostile bytes, once for the property tests and for the fuzz targets: nothing may panic, and what
//! decodes must encode to the same.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use engine::forge::Forged;
use engine::seal::{DataKey, SealKind, ShareLabel};
use engine::session::{DISCLOSURE_ROUND, NOTICE_ROUND, Progress, Session};
use engine::{Envelope, Secret};
use protocols::bls::{KeyShare, SignInput, Signing};
use sim::{Faults, Packet};

use super::accusation::{accuse, recorded as recording};
use super::common::{
    bent, evidence_key, keygen, keygen_context, keygen_with, party, reopen, rng, settings, start_keygen,
};

const PARTIES: [u32; 3] = [1, 2, 3];
const T: u32 = 2;
const SEED: u64 = 11;

/// Everything sent to party 1 in an honest key generation, by (round, sender).
fn recorded() -> &'static BTreeMap<(u8, u32), Vec<u8>> {
    static RECORDED: OnceLock<BTreeMap<(u8, u32), Vec<u8>>> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let mut messages = BTreeMap::new();
        let record = |packet: Packet| {
            if packet.to == Some(party(1)) {
                let round = Forged::open(&packet.bytes).unwrap().round;
                messages.insert((round, u32::from(packet.from.get())), packet.bytes.clone());
            }
            vec![packet]
        };
        keygen_with(&PARTIES, T, SEED, Faults { tamper: Some(Box::new(record)), ..Faults::default() });
        messages
    })
}

fn shares() -> &'static BTreeMap<u32, KeyShare> {
    static SHARES: OnceLock<BTreeMap<u32, KeyShare>> = OnceLock::new();
    SHARES.get_or_init(|| keygen(&PARTIES, T, SEED))
}

/// Any bytes as an envelope.
pub fn envelope(data: &[u8]) {
    if let Ok(envelope) = Envelope::decode(data) {
        assert_eq!(envelope.encode(), data);
    }
}

/// Any bytes as a body of key generation, a notice or a disclosure, properly signed by a party of the session. The
/// first byte chooses which. Tells whether the run goes on.
pub fn keygen_body(data: &[u8]) -> bool {
    let Some((choice, body)) = data.split_first() else { return false };
    let round = 1 + choice % 4;
    let kind = match choice >> 2 & 3 {
        0 | 1 => round,
        2 => NOTICE_ROUND,
        _ => DISCLOSURE_ROUND,
    };
    let (mut session, _) = start_keygen(1, &PARTIES, T, 1, SEED);
    for ((of_round, sender), bytes) in recorded() {
        if *of_round < round || *of_round == round && *sender == 3 {
            session.handle(party(*sender), bytes, &mut rng(1));
        }
    }
    let mut forged = Forged::open(&recorded()[&(round, 2)]).unwrap();
    if kind != round {
        forged = Forged::new(forged.protocol, &keygen_context(&PARTIES, T, 1), kind, party(2), Vec::new());
    }
    forged.body = bent(&forged.body, body);
    let step = session.handle(party(2), &forged.encode(&evidence_key(party(2))), &mut rng(1));
    if let Progress::Aborted(abort) = &step.progress {
        // Whatever it was, nobody but its sender can be blamed for it.
        assert!(abort.culprits.iter().all(|culprit| *culprit == party(2)), "{abort}");
        return false;
    }
    kind == round && !matches!(step.progress, Progress::Dropped(_))
}

/// Any accusation, with any evidence, in a key generation.
pub fn keygen_notice(data: &[u8]) {
    static PACKETS: OnceLock<Vec<Packet>> = OnceLock::new();
    let packets = PACKETS.get_or_init(|| {
        recording(|faults| {
            keygen_with(&PARTIES, T, SEED, faults);
        })
    });
    let (session, _) = start_keygen(1, &PARTIES, T, 1, SEED);
    accuse(session, packets, data);
}

/// Any bytes as a partial signature.
/// Tells whether the signature was made.
pub fn partial_signature(data: &[u8]) -> bool {
    let share = &shares()[&1];
    let start = |me: u32| {
        let settings = settings(Some(party(me)), &[1, 2], T, 2, b"m");
        let input = SignInput::Party(Box::new(reopen(&shares()[&me])));
        Session::<Signing>::start(settings, None, input, &mut rng(1)).unwrap()
    };
    let (mut session, _) = start(u32::from(share.party().get()));
    let (_, step) = start(2);
    let mut forged = Forged::open(&step.outgoing[0].encode()).unwrap();
    forged.body = bent(&forged.body, data);
    let step = session.handle(party(2), &forged.encode(&evidence_key(party(2))), &mut rng(1));
    matches!(step.progress, Progress::Done(_))
}

/// Any bytes as a message of a running key generation.
pub fn keygen_message(data: &[u8]) {
    let (mut session, _) = start_keygen(1, &PARTIES, T, 1, SEED);
    let step = session.handle(party(2), data, &mut rng(1));
    assert!(matches!(step.progress, Progress::Dropped(_)) || recorded().values().any(|bytes| bytes == data));
}

/// Any bytes as a sealed share, and as the contents of one.
/// Tells whether the contents are a share.
pub fn sealed_share(data: &[u8]) -> bool {
    let key = DataKey::new(Secret::new([9; 32]));
    let label = shares()[&1].label();
    let _ = ShareLabel::peek(data);
    assert!(KeyShare::unseal(&key, data, &label).is_err());
    let genuine = shares()[&1].seal(&key, &mut rng(1)).unwrap();
    let genuine = key.unseal(SealKind::KeyShare, &[], &genuine).unwrap().secret;
    let contents = bent(genuine.expose(), data);
    let blob = key.seal(SealKind::KeyShare, &label.encode(), &[], &contents, &mut rng(1)).unwrap();
    let opened = KeyShare::unseal(&key, &blob, &label);
    if let Some(blob) = key.seal(SealKind::KeyShare, data, &[], b"", &mut rng(1)) {
        let _ = ShareLabel::peek(&blob);
        assert!(KeyShare::unseal(&key, &blob, &label).is_err());
    }
    opened.is_ok_and(|share| share.label() == label)
}
