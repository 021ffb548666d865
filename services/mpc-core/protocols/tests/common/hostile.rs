//! The uses of hostile bytes, once for the property tests and for the fuzz targets: nothing may panic, and what decodes
//! must encode to the same.

#[allow(dead_code, reason = "it needs the renewals of BLS only")]
#[path = "../dealing/harness.rs"]
mod harness;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use engine::forge::Forged;
use engine::seal::{DataKey, SealKind, ShareLabel};
use engine::session::{DISCLOSURE_ROUND, NOTICE_ROUND, Progress, Session};
use engine::wire::{Reader, Writer};
use engine::{Abort, AbortCause, Envelope, Protocol, Secret, SessionSettings};
use protocols::bls::{KeyPublic, KeyShare, Refresh, Reshare, SignInput, Signing};
use sim::{Address, Faults, Outcome, Packet};

use super::accusation::{accuse, recorded as recording};
use super::common::{
    AS_IT_IS, bent, evidence_key, keygen, keygen_context, keygen_with, party, reopen, rng, settings,
    start_keygen,
};
use harness::{Bls, Change};

const PARTIES: [u32; 3] = [1, 2, 3];
const T: u32 = 2;
const SEED: u64 = 11;
/// The party that sends the hostile bytes.
const ATTACKER: u32 = 2;
/// Party 2 deals and receives, 1 only deals, 3 only receives.
const CHANGE: Change<'static> = Change { dealers: &[1, 2], receivers: &[2, 3], t: 2 };

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

/// Any bytes as a body of key generation, refresh or reshare, as a notice or a disclosure there, properly signed by a
/// party of the session; or as what the parties of a refresh or reshare agree on. The first byte chooses which: its
/// bits from the lowest are round, kind and protocol, two bits each. Tells whether the run goes on.
pub fn keygen_body(data: &[u8]) -> bool {
    let Some((choice, body)) = data.split_first() else { return false };
    let round = 1 + choice % 4;
    let kind = match choice >> 2 & 3 {
        0 | 1 => round,
        2 => NOTICE_ROUND,
        _ => DISCLOSURE_ROUND,
    };
    match choice >> 4 & 3 {
        0 => body_of_keygen((round, kind), body),
        1 => {
            let outcomes = harness::refresh_with::<Bls>(shares(), 3, told((round, kind), body));
            key_stays(&outcomes, |share| share.public()) && kind == round
        }
        2 => {
            let outcomes = harness::reshare_with::<Bls>(shares(), &CHANGE, 4, told((round, kind), body));
            key_stays(&outcomes, |reshared| &reshared.public) && kind == round
        }
        _ => agreed(body),
    }
}

/// A body for party 1 of a key generation.
fn body_of_keygen((round, kind): (u8, u8), body: &[u8]) -> bool {
    let (mut session, _) = start_keygen(1, &PARTIES, T, 1, SEED);
    for ((of_round, sender), bytes) in recorded() {
        if *of_round < round || *of_round == round && *sender == 3 {
            session.handle(party(*sender), bytes, &mut rng(1));
        }
    }
    let mut forged = Forged::open(&recorded()[&(round, ATTACKER)]).unwrap();
    if kind != round {
        let ctx = keygen_context(&PARTIES, T, 1);
        forged = Forged::new(forged.protocol, &ctx, kind, party(ATTACKER), Vec::new());
    }
    forged.body = bent(&forged.body, body);
    let step = session.handle(party(ATTACKER), &forged.encode(&evidence_key(party(ATTACKER))), &mut rng(1));
    if let Progress::Aborted(abort) = &step.progress {
        only_the_attacker_is_blamed(Some(party(1)), abort);
        return false;
    }
    kind == round && !matches!(step.progress, Progress::Dropped(_))
}

/// Bends the attacker's body of a round for everybody, or sends a notice or a disclosure before it.
fn told((round, kind): (u8, u8), data: &[u8]) -> Faults<'_> {
    let tamper = move |packet: Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        if packet.from != party(ATTACKER) || forged.round != round {
            return vec![packet];
        }
        let signed = |forged: Forged| forged.encode(&evidence_key(party(ATTACKER)));
        if kind == round {
            // A party that gets no share gets an empty body, which is not bent but replaced.
            if data != AS_IT_IS {
                forged.body = bent(&forged.body, data);
            }
            return vec![Packet { bytes: signed(forged), ..packet }];
        }
        let notice = Forged { round: kind, recipient: None, body: data.to_vec(), ..forged };
        vec![Packet { bytes: signed(notice), ..packet.clone() }, packet]
    };
    Faults { tamper: Some(Box::new(tamper)), ..Faults::default() }
}

/// For all bytes: nobody but their sender is blamed for them, and no party finds an error of its own.
fn only_the_attacker_is_blamed(me: Address, abort: &Abort) {
    assert!(abort.culprits.iter().all(|culprit| *culprit == party(ATTACKER)), "{abort}");
    assert!(abort.cause != AbortCause::Internal || abort.reporter != me, "{abort}");
}

/// Nobody but the attacker is blamed, and whoever finishes has the key as it was. Tells whether all others finish.
fn key_stays<T>(outcomes: &BTreeMap<Address, Outcome<T>>, public: impl Fn(&T) -> &KeyPublic) -> bool {
    let others = || outcomes.iter().filter(|(address, _)| **address != Some(party(ATTACKER)));
    for (address, outcome) in others() {
        outcome.aborts.iter().for_each(|abort| only_the_attacker_is_blamed(*address, abort));
        if let Some(done) = &outcome.done {
            assert_eq!(public(done).public_key, shares()[&1].public().public_key);
        }
    }
    others().all(|(_, outcome)| outcome.done.is_some())
}

/// Any bytes, or genuine ones bent, as what the parties of a refresh or reshare agree on, and as public data. Tells
/// whether all of them start.
fn agreed(data: &[u8]) -> bool {
    fn starts<P: Protocol>(settings: SessionSettings, data: &[u8], input: P::Input) -> bool {
        let key = settings.me.map(evidence_key);
        let payload = bent(&settings.payload, data);
        Session::<P>::start(SessionSettings { payload, ..settings }, key, input, &mut rng(1)).is_ok()
    }
    let own = || reopen(&shares()[&1]);
    let public = shares()[&1].public();
    let mut encoded = Writer::default();
    public.encode(&mut encoded);
    let bytes = bent(&encoded.finish(), data);
    if let Ok(public) = KeyPublic::decode(&mut Reader::new(&bytes)) {
        let mut again = Writer::default();
        public.encode(&mut again);
        assert!(bytes.starts_with(&again.finish()));
    }
    let reshare = |me: u32| harness::reshare_settings::<Bls>(Some(me), public, &CHANGE, 4);
    let started = [
        starts::<Refresh>(harness::refresh_settings::<Bls>(Some(1), public, 3), data, own()),
        starts::<Reshare>(reshare(1), data, Some(own())),
        starts::<Reshare>(reshare(3), data, None),
    ];
    started == [true; 3]
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
