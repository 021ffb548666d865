//! The uses of hostile bytes in FROST, once for the property tests and for the fuzz targets: nothing may panic, nobody
//! but the sender is blamed, what is signed is a signature, and what decodes encodes to the same.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use engine::forge::Forged;
use engine::seal::SealKind;
use engine::session::Progress;
use engine::wire::{Reader, Writer};
use engine::{AbortCause, Protocol, SessionSettings};
use protocols::frost::suite::{decode_point_of, encode_point};
use protocols::frost::{
    Bip340, Ed25519, KeyPublic, KeyShare, PresignPayload, Presignature, PresignedSigning, Presigning,
    Refresh, Reshare, SignInput, Signature, Signing, Target,
};
use sim::{Address, Faults, Outcome, Packet};

use super::accusation::{accuse, recorded};
use super::common::{AS_IT_IS, bent, evidence_key, party, rng, settings};
use super::harness::{
    Change, Keyed, data_key, keygen_with, message, payload, presign, presign_with, refresh_settings,
    refresh_with, reopen, reshare_settings, reshare_with, sign_presigned, sign_with, start_keygen,
};

const SIGNERS: [u32; 2] = [1, 2];
const PARTIES: [u32; 3] = [1, 2, 3];
/// The party that sends the hostile bytes, to all others.
const ATTACKER: u32 = 2;
/// Party 2 deals and receives, 1 only deals, 3 only receives.
const CHANGE: Change<'static> = Change { dealers: &[1, 2], receivers: &[2, 3], t: 2 };

/// The first bit chooses the suite.
fn either(data: &[u8], ed25519: fn(&[u8]), bip340: fn(&[u8])) {
    match data.split_first() {
        Some((choice, rest)) if choice & 1 == 0 => ed25519(rest),
        Some((_, rest)) => bip340(rest),
        None => (),
    }
}

/// Any bytes as a body, or laid over one.
pub fn frost_body(data: &[u8]) {
    either(data, body::<Ed25519>, body::<Bip340>);
}

/// Any bytes as a message of a running key generation.
pub fn frost_keygen_message(data: &[u8]) {
    either(data, keygen_message::<Ed25519>, keygen_message::<Bip340>);
}

/// Any accusation, with any evidence.
pub fn frost_notice(data: &[u8]) {
    either(data, notice::<Ed25519>, notice::<Bip340>);
}

/// Any bytes as what is stored.
pub fn frost_sealed(data: &[u8]) {
    either(data, sealed::<Ed25519>, sealed::<Bip340>);
}

/// Any bytes as what parties agreed on.
pub fn frost_agreed(data: &[u8]) {
    either(data, agreed::<Ed25519>, agreed::<Bip340>);
}

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

fn only_signatures_are_made<S: Keyed>(
    outcomes: &BTreeMap<Address, Outcome<Signature>>,
    target: &Target,
    message: &[u8],
) {
    only_the_attacker_is_blamed(outcomes);
    let key = S::keyed()[&1].public().verifier_key(target).unwrap();
    for (_, outcome) in outcomes.iter().filter(|(address, _)| **address != Some(party(ATTACKER))) {
        if let Some(signature) = &outcome.done {
            assert!(S::verify_outside(&key, message, signature));
        }
    }
}

/// A body of any round of any protocol, from a party of the session. The first byte chooses which.
fn body<S: Keyed>(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let target = S::targets().pop().unwrap();
    let mut request = payload(message(1), &target);
    let key = &S::keyed()[&1].public().public_key;
    match choice % 16 {
        place @ 0..4 => {
            only_the_attacker_is_blamed(&keygen_with::<S>(&SIGNERS, 2, (1, 2), bend(1 + place, rest)));
        }
        place @ 4..8 => {
            let outcomes = refresh_with(S::keyed(), bend(place - 3, rest));
            only_the_attacker_is_blamed(&outcomes);
            for done in outcomes.values().filter_map(|outcome| outcome.done.as_ref()) {
                assert_eq!(&done.public().public_key, key);
            }
        }
        place @ 8..12 => {
            let outcomes = reshare_with(S::keyed(), &CHANGE, 3, bend(place - 7, rest));
            only_the_attacker_is_blamed(&outcomes);
            for done in outcomes.values().filter_map(|outcome| outcome.done.as_ref()) {
                assert_eq!(&done.public.public_key, key);
            }
        }
        place @ 12..14 => {
            let outcomes = sign_with(S::keyed(), &SIGNERS, 1, &request, bend(place - 11, rest));
            only_signatures_are_made::<S>(&outcomes, &target, &request.message);
        }
        14 => {
            let outcomes = presign_with(S::keyed(), &SIGNERS, 1, (&target, 3), bend(1, rest));
            only_the_attacker_is_blamed(&outcomes);
        }
        _ => {
            let made = presign(S::keyed(), &SIGNERS, 1, &target);
            request.presignature = Some(*made[&1].id());
            let outcomes = sign_presigned(S::keyed()[&1].public(), made, 2, &request, bend(1, rest));
            only_signatures_are_made::<S>(&outcomes, &target, &request.message);
        }
    }
}

fn keygen_message<S: Keyed>(data: &[u8]) {
    let (mut session, _) = start_keygen::<S>(1, &PARTIES, 2, 1, 11);
    let step = session.handle(party(ATTACKER), data, &mut rng(1));
    assert!(matches!(step.progress, Progress::Dropped(_)));
}

/// An accusation in a key generation.
fn notice<S: Keyed>(data: &[u8]) {
    static ED25519: OnceLock<Vec<Packet>> = OnceLock::new();
    static BIP340: OnceLock<Vec<Packet>> = OnceLock::new();
    let packets = if S::DERIVES { &BIP340 } else { &ED25519 };
    let packets = packets.get_or_init(|| {
        recorded(|faults| {
            keygen_with::<S>(&PARTIES, 2, (1, 11), faults);
        })
    });
    let (session, _) = start_keygen::<S>(1, &PARTIES, 2, 1, 11);
    accuse(session, packets, data);
}

/// Contents of a sealed share and of a sealed presignature of party 1: the public and the secret part of each.
struct Contents {
    share: Vec<u8>,
    presignature: (Vec<u8>, Vec<u8>),
}

fn contents<S: Keyed>() -> Contents {
    let key = data_key();
    let blob = S::keyed()[&1].seal(&key, &mut rng(1)).unwrap();
    let share = key.unseal(SealKind::KeyShare, &[], &blob).unwrap().secret.expose().clone();
    let made = presign(S::keyed(), &SIGNERS, 1, &S::targets().pop().unwrap()).remove(&1).unwrap();
    let blob = made.seal(&key, &mut rng(1)).unwrap();
    let opened = key.unseal(SealKind::Other, b"frost presignature 1", &blob).unwrap();
    Contents { share, presignature: (opened.public, opened.secret.expose().clone()) }
}

/// A sealed share or presignature, and the contents of one.
fn sealed<S: Keyed>(data: &[u8]) {
    static ED25519: OnceLock<Contents> = OnceLock::new();
    static BIP340: OnceLock<Contents> = OnceLock::new();
    let genuine = if S::DERIVES { &BIP340 } else { &ED25519 };
    let genuine = genuine.get_or_init(contents::<S>);
    let (key, label) = (data_key(), S::keyed()[&1].label());
    assert!(KeyShare::<S>::unseal(&key, data, &label).is_err());
    assert!(Presignature::<S>::unseal(&key, data).is_err());
    let seal =
        |kind, public: &[u8], label: &[u8], secret: &[u8]| key.seal(kind, public, label, secret, &mut rng(1));
    let blob = seal(SealKind::KeyShare, &label.encode(), &[], &bent(&genuine.share, data)).unwrap();
    if let Ok(share) = KeyShare::<S>::unseal(&key, &blob, &label) {
        assert_eq!(share.label(), label);
    }
    let (public, secret) = &genuine.presignature;
    let cut = data.first().map_or(0, |first| usize::from(*first).min(data.len()));
    for (public, secret) in [
        (data[..cut].to_vec(), data[cut..].to_vec()),
        (public.clone(), bent(secret, data)),
        (bent(public, data), secret.clone()),
    ] {
        let blob = seal(SealKind::Other, &public, b"frost presignature 1", &secret);
        if let Some(Ok(presignature)) = blob.map(|blob| Presignature::<S>::unseal(&key, &blob)) {
            assert_eq!(presignature.party(), party(1));
        }
    }
}

/// Starts a session with these settings and a payload bent like that.
fn start<P: Protocol>(settings: SessionSettings, data: &[u8], input: P::Input) {
    let key = settings.me.map(evidence_key);
    let payload = bent(&settings.payload, data);
    let _ = engine::Session::<P>::start(SessionSettings { payload, ..settings }, key, input, &mut rng(1));
}

/// The terms that the parties of a session agreed on, and public data.
fn agreed<S: Keyed>(data: &[u8]) {
    let own = || reopen(&S::keyed()[&1]);
    let public = S::keyed()[&1].public();
    let target = S::targets().pop().unwrap();
    let mut request = payload(message(1), &target);
    let signing = |me: Option<u32>, payload: &[u8]| settings(me.map(party), &SIGNERS, 2, 1, payload);
    let plain = request.encode();
    request.presignature = Some([7; 32]);
    let presigned = request.encode();
    start::<Signing<S>>(signing(Some(1), &plain), data, SignInput::Party(Box::new(own())));
    start::<Signing<S>>(signing(None, &plain), data, SignInput::Observer(Box::new(public.clone())));
    start::<PresignedSigning<S>>(
        signing(None, &presigned),
        data,
        SignInput::Observer(Box::new(public.clone())),
    );
    let presigning = PresignPayload { target: target.clone(), count: 2 }.encode();
    start::<Presigning<S>>(signing(Some(1), &presigning), data, own());
    start::<Refresh<S>>(refresh_settings(1, public), data, own());
    start::<Reshare<S>>(reshare_settings(Some(1), public, &CHANGE, 1), data, Some(own()));
    start::<Reshare<S>>(reshare_settings(Some(3), public, &CHANGE, 1), data, None);
    let mut encoded = Writer::default();
    public.encode(&mut encoded);
    let bytes = bent(&encoded.finish(), data);
    if let Ok(public) = KeyPublic::<S>::decode(&mut Reader::new(&bytes)) {
        let mut again = Writer::default();
        public.encode(&mut again);
        assert!(bytes.starts_with(&again.finish()));
        let _ = public.verifier_key(&target);
        start::<Signing<S>>(signing(None, &plain), &AS_IT_IS, SignInput::Observer(Box::new(public)));
    }
    let bytes = bent(&target.to_bytes(), data);
    if let Ok(target) = Target::decode(&mut Reader::new(&bytes)) {
        assert!(bytes.starts_with(&target.to_bytes()));
        let _ = public.verifier_key(&target);
    }
    let bytes = bent(&public.public_key, data);
    if let Some(point) = bytes.get(..S::POINT_BYTES).and_then(decode_point_of::<S>) {
        assert_eq!(encode_point::<S>(&point).unwrap(), bytes[..S::POINT_BYTES]);
    }
}
