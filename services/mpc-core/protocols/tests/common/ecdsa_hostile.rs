//! What is done with hostile bytes in threshold ECDSA, once for the property tests and for the fuzz targets: nothing may panic, nobody
//! but the sender is blamed, and what is signed is a signature.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use engine::forge::Forged;
use engine::seal::{SealKind, ShareLabel};
use engine::wire::{Reader, Writer};
use engine::{Protocol, SessionSettings};
use protocols::ecdsa::{
    DerivationPath, KeyPublic, KeyShare, Presigning, Refresh, Reshare, SignInput, Signing, decode_point,
    encode_point,
};
use sim::{Address, Faults, Outcome, Packet};

use super::common::{evidence_key, party, rng, settings};
use super::ecdsa_common::{
    Change, Shares, data_key, keygen, keygen_with, payload, presign, presign_with, reopen, reshare_with,
    sign_presigned, sign_with, verify_outside,
};

const SIGNERS: [u32; 2] = [1, 2];
const DIGEST: [u8; 32] = [0x77; 32];
/// Who sends the hostile bytes, to all others.
const ATTACKER: u32 = 2;
/// Party 2 deals and receives, 1 only deals, 3 only receives.
const CHANGE: Change<'static> = Change { dealers: &[1, 2], receivers: &[2, 3], t: 2 };

static SHARES: LazyLock<Shares> = LazyLock::new(|| keygen(&SIGNERS, 2, 1));

/// Replaces the body in one round, or changes a part of it.
fn bend(round: u8, data: &[u8]) -> Faults<'_> {
    let tamper = move |packet: Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        if packet.from != party(ATTACKER) || forged.round != round {
            return vec![packet];
        }
        match data.split_first_chunk::<3>() {
            Some(([mode, high, low], bytes)) if mode & 1 == 1 && !forged.body.is_empty() => {
                let at = usize::from(u16::from_be_bytes([*high, *low])) % forged.body.len();
                for (place, byte) in forged.body[at..].iter_mut().zip(bytes) {
                    *place ^= byte;
                }
            }
            _ => forged.body = data.to_vec(),
        }
        vec![Packet { bytes: forged.encode(&evidence_key(packet.from)), ..packet }]
    };
    Faults { tamper: Some(Box::new(tamper)), ..Faults::default() }
}

fn only_the_attacker_is_blamed<T>(outcomes: &BTreeMap<Address, Outcome<T>>) {
    for (_, outcome) in outcomes.iter().filter(|(address, _)| **address != Some(party(ATTACKER))) {
        for abort in &outcome.aborts {
            assert!(abort.culprits.iter().all(|culprit| *culprit == party(ATTACKER)), "{abort}");
        }
    }
}

/// Any bytes as a body of any round of any protocol, from a party of the session. The first byte chooses which.
pub fn body(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let request = payload(DIGEST, &[3]);
    let child = || SHARES[&1].public().derive(&request.path).unwrap().public_key;
    match choice % 18 {
        place @ 0..6 => only_the_attacker_is_blamed(&keygen_with(&SIGNERS, 2, 2, bend(1 + place, rest))),
        place @ 6..12 => {
            let outcomes = reshare_with(&SHARES, &CHANGE, 3, bend(place - 5, rest));
            only_the_attacker_is_blamed(&outcomes);
            for done in outcomes.values().filter_map(|outcome| outcome.done.as_ref()) {
                assert_eq!(done.public.public_key, SHARES[&1].public().public_key);
            }
        }
        place @ 12..15 => {
            let outcomes = sign_with(&SHARES, &SIGNERS, 4, &request, bend(place - 11, rest));
            only_the_attacker_is_blamed(&outcomes);
            for signature in outcomes.values().filter_map(|outcome| outcome.done.as_ref()) {
                verify_outside(&child(), DIGEST, signature);
            }
        }
        place @ 15..17 => {
            only_the_attacker_is_blamed(&presign_with(&SHARES, &SIGNERS, 5, &[3], bend(place - 14, rest)));
        }
        _ => {
            let made = presign(&SHARES, &SIGNERS, 6, &[3]);
            let request = protocols::ecdsa::SignPayload { presignature: Some(*made[&1].id()), ..request };
            let outcomes = sign_presigned(SHARES[&1].public(), made, 7, &request, bend(1, rest));
            only_the_attacker_is_blamed(&outcomes);
            for signature in outcomes.values().filter_map(|outcome| outcome.done.as_ref()) {
                verify_outside(
                    &SHARES[&1].public().derive(&request.path).unwrap().public_key,
                    DIGEST,
                    signature,
                );
            }
        }
    }
}

/// Any bytes as a sealed share or presignature, and as the contents of one.
pub fn sealed(data: &[u8]) {
    let label = SHARES[&1].label();
    assert!(KeyShare::unseal(&data_key(), data, &label).is_err());
    assert!(protocols::ecdsa::Presignature::unseal(&data_key(), data).is_err());
    let seal = |kind, public: &[u8], label: &[u8], secret: &[u8]| {
        data_key().seal(kind, public, label, secret, &mut rng(1))
    };
    let blob = seal(SealKind::KeyShare, &label.encode(), &[], data).unwrap();
    if let Ok(share) = KeyShare::unseal(&data_key(), &blob, &label) {
        assert_eq!(share.label(), label);
    }
    if let Some(blob) = seal(SealKind::KeyShare, data, &[], b"") {
        let _ = ShareLabel::peek(&blob);
        assert!(KeyShare::unseal(&data_key(), &blob, &label).is_err());
    }
    let cut = data.first().map_or(0, |first| usize::from(*first).min(data.len()));
    let (public, secret) = data.split_at(cut);
    if let Some(blob) = seal(SealKind::Other, public, b"ecdsa-secp256k1 presignature 1", secret) {
        let _ = protocols::ecdsa::Presignature::unseal(&data_key(), &blob);
    }
}

/// Starts a session of a party, or of an observer, with any bytes as its payload.
fn start<P: Protocol>(me: Option<u32>, epoch: u32, data: &[u8], input: P::Input) {
    let settings = SessionSettings { epoch, ..settings(me.map(party), &SIGNERS, 2, 1, data) };
    let key = me.map(|me| evidence_key(party(me)));
    let _ = engine::Session::<P>::start(settings, key, input, &mut rng(1));
}

/// Any bytes as what the parties of a session agreed on, and as public data.
pub fn agreed(data: &[u8]) {
    let own = || reopen(&SHARES[&1]);
    start::<Signing>(Some(1), 1, data, SignInput::Party(Box::new(own())));
    start::<Signing>(None, 1, data, SignInput::Observer(Box::new(SHARES[&1].public().clone())));
    start::<Presigning>(Some(1), 1, data, own());
    start::<Refresh>(Some(1), 2, data, own());
    start::<Reshare>(Some(1), 2, data, Some(own()));
    start::<Reshare>(Some(1), 2, data, None);
    let mut reader = Reader::new(data);
    if let Ok(public) = KeyPublic::decode(&mut reader) {
        let mut writer = Writer::default();
        public.encode(&mut writer);
        let again = writer.finish();
        assert_eq!(again, data[..again.len()]);
        let _ = public.derive(&DerivationPath::default());
    }
    if let Some(point) = data.first_chunk().and_then(decode_point) {
        assert_eq!(encode_point(&point), data[..33]);
    }
}
