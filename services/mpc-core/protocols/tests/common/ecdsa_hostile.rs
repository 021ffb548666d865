//! The uses of hostile bytes in threshold ECDSA, once for the property tests and for the fuzz targets: nothing may
//! panic, nobody but the sender is blamed, and what is signed is a signature.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use engine::forge::Forged;
use engine::seal::{SealKind, ShareLabel};
use engine::wire::{Reader, Writer};
use engine::{AbortCause, Protocol, SessionSettings};
use protocols::ecdsa::{
    DerivationPath, KeyPublic, KeyShare, Presignature, PresignedSigning, Presigning, Refresh, Reshare,
    SignInput, Signing, decode_point, encode_point,
};
use sim::{Address, Faults, Outcome, Packet};

use super::accusation::{accuse, recorded};
use super::common::{bent, evidence_key, party, rng, settings};
use super::ecdsa_common::{
    Change, Shares, data_key, keygen, keygen_with, payload, presign, presign_payload, presign_with,
    refresh_settings, refresh_with, reopen, reshare_settings, reshare_with, sign_presigned, sign_with,
    start_keygen, verify_outside,
};

const SIGNERS: [u32; 2] = [1, 2];
const DIGEST: [u8; 32] = [0x77; 32];
/// The party that sends the hostile bytes, to all others.
const ATTACKER: u32 = 2;
/// Party 2 deals and receives, 1 only deals, 3 only receives.
const CHANGE: Change<'static> = Change { dealers: &[1, 2], receivers: &[2, 3], t: 2 };

const PRESIGNATURE_LABEL: &[u8] = b"ecdsa-secp256k1 presignature 1";

static SHARES: LazyLock<Shares> = LazyLock::new(|| keygen(&SIGNERS, 2, 1));

/// Contents of a sealed share and of a sealed presignature of party 1: the public and the secret part of each.
struct Contents {
    share: Vec<u8>,
    presignature: (Vec<u8>, Vec<u8>),
}

static GENUINE: LazyLock<Contents> = LazyLock::new(|| {
    let key = data_key();
    let blob = SHARES[&1].seal(&key, &mut rng(1)).unwrap();
    let share = key.unseal(SealKind::KeyShare, &[], &blob).unwrap().secret.expose().clone();
    let made = presign(&SHARES, &SIGNERS, 6, &[3]).remove(&1).unwrap();
    let blob = made.seal(&key, &mut rng(1)).unwrap();
    let opened = key.unseal(SealKind::Other, PRESIGNATURE_LABEL, &blob).unwrap();
    Contents { share, presignature: (opened.public, opened.secret.expose().clone()) }
});

/// Bends the attacker's body of one round.
fn bend(round: u8, data: &[u8]) -> Faults<'_> {
    let tamper = move |packet: Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        if packet.from != party(ATTACKER) || forged.round != round {
            return vec![packet];
        }
        forged.body = bent(&forged.body, data);
        vec![Packet { bytes: forged.encode(&evidence_key(packet.from)), ..packet }]
    };
    Faults { tamper: Some(Box::new(tamper)), ..Faults::default() }
}

fn only_the_attacker_is_blamed<T>(outcomes: &BTreeMap<Address, Outcome<T>>) {
    for (address, outcome) in outcomes.iter().filter(|(address, _)| **address != Some(party(ATTACKER))) {
        for abort in &outcome.aborts {
            assert!(abort.culprits.iter().all(|culprit| *culprit == party(ATTACKER)), "{abort}");
            // A party that convicted itself would find an error of its own.
            assert!(abort.cause != AbortCause::Internal || abort.reporter != *address, "{abort}");
        }
    }
}

/// Any bytes as a body of any round of any protocol, from a party of the session. The first byte chooses which.
pub fn body(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let request = payload(DIGEST, &[3]);
    let child = || SHARES[&1].public().derive(&request.path).unwrap().public_key;
    match choice % 24 {
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
            let outcomes = presign_with(&SHARES, &SIGNERS, 5, (&[3], 2), bend(place - 14, rest));
            only_the_attacker_is_blamed(&outcomes);
        }
        place @ 17..23 => {
            let outcomes = refresh_with(&SHARES, bend(place - 16, rest));
            only_the_attacker_is_blamed(&outcomes);
            for done in outcomes.values().filter_map(|outcome| outcome.done.as_ref()) {
                assert_eq!(done.public().public_key, SHARES[&1].public().public_key);
            }
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

/// Any accusation, with any evidence, in a key generation.
pub fn notice(data: &[u8]) {
    static PACKETS: LazyLock<Vec<Packet>> = LazyLock::new(|| {
        recorded(|faults| {
            keygen_with(&[1, 2, 3], 2, 1, faults);
        })
    });
    let (session, _) = start_keygen(1, &[1, 2, 3], 2, 1, 1);
    accuse(session, &PACKETS, data);
}

/// Any bytes as a sealed share or presignature, and as the contents of one. Tells whether one of each was opened.
pub fn sealed(data: &[u8]) -> bool {
    let label = SHARES[&1].label();
    assert!(KeyShare::unseal(&data_key(), data, &label).is_err());
    assert!(Presignature::unseal(&data_key(), data).is_err());
    let seal = |kind, public: &[u8], label: &[u8], secret: &[u8]| {
        data_key().seal(kind, public, label, secret, &mut rng(1))
    };
    let genuine = LazyLock::force(&GENUINE);
    let blob = seal(SealKind::KeyShare, &label.encode(), &[], &bent(&genuine.share, data)).unwrap();
    let share = KeyShare::unseal(&data_key(), &blob, &label);
    if let Ok(share) = &share {
        assert_eq!(share.label(), label);
    }
    if let Some(blob) = seal(SealKind::KeyShare, data, &[], b"") {
        let _ = ShareLabel::peek(&blob);
        assert!(KeyShare::unseal(&data_key(), &blob, &label).is_err());
    }
    let (public, secret) = &genuine.presignature;
    let cut = data.first().map_or(0, |first| usize::from(*first).min(data.len()));
    let mut opened = false;
    for (public, secret) in [
        (data[..cut].to_vec(), data[cut..].to_vec()),
        (public.clone(), bent(secret, data)),
        (bent(public, data), secret.clone()),
    ] {
        let blob = seal(SealKind::Other, &public, PRESIGNATURE_LABEL, &secret);
        if let Some(Ok(presignature)) = blob.map(|blob| Presignature::unseal(&data_key(), &blob)) {
            assert!(presignature.signers().contains(presignature.party()));
            opened = true;
        }
    }
    opened && share.is_ok()
}

/// Starts a session with these settings and a payload bent like that.
fn start<P: Protocol>(settings: SessionSettings, data: &[u8], input: P::Input) {
    let key = settings.me.map(evidence_key);
    let payload = bent(&settings.payload, data);
    let _ = engine::Session::<P>::start(SessionSettings { payload, ..settings }, key, input, &mut rng(1));
}

/// Any bytes, or genuine ones bent, as what the parties of a session agreed on, and as public data.
pub fn agreed(data: &[u8]) {
    let own = || reopen(&SHARES[&1]);
    let public = SHARES[&1].public();
    let signing = |me: Option<u32>, payload: &[u8]| settings(me.map(party), &SIGNERS, 2, 1, payload);
    let mut request = payload(DIGEST, &[3]);
    let plain = request.encode();
    request.presignature = Some([7; 32]);
    start::<Signing>(signing(Some(1), &plain), data, SignInput::Party(Box::new(own())));
    start::<Signing>(signing(None, &plain), data, SignInput::Observer(Box::new(public.clone())));
    start::<PresignedSigning>(
        signing(None, &request.encode()),
        data,
        SignInput::Observer(Box::new(public.clone())),
    );
    start::<Presigning>(signing(Some(1), &presign_payload(&[3], 2)), data, own());
    start::<Refresh>(refresh_settings(1, public), data, own());
    start::<Reshare>(reshare_settings(Some(1), public, &CHANGE, 1), data, Some(own()));
    start::<Reshare>(reshare_settings(Some(3), public, &CHANGE, 1), data, None);
    let mut encoded = Writer::default();
    public.encode(&mut encoded);
    let bytes = bent(&encoded.finish(), data);
    if let Ok(public) = KeyPublic::decode(&mut Reader::new(&bytes)) {
        let mut again = Writer::default();
        public.encode(&mut again);
        assert!(bytes.starts_with(&again.finish()));
        let _ = public.derive(&DerivationPath::default());
    }
    if let Some(point) = data.first_chunk().and_then(decode_point) {
        assert_eq!(encode_point(&point), data[..33]);
    }
}
