//! A corrupt party accuses an honest one with genuine envelopes, in any combination: the accusation falls back on it.

use std::collections::BTreeMap;

use engine::forge::{Forged, notice};
use engine::session::{NOTICE_ROUND, Progress, Protocol};
use engine::{AbortCause, Delivery};
use protocols::dealing::Generated;
use sim::{Faults, Packet};

use crate::common::{Started, evidence_key, party, rng};
use crate::dealing::for_schemes;
use crate::dealing::harness::{
    Change, Tested, keygen_with, refresh_with, reshare_with, start_keygen, start_refresh, start_reshare,
};

const ACCUSER: u32 = 2;
const ACCUSED: u32 = 3;
/// The party that hears it.
const HONEST: u32 = 1;
/// Party 2 deals and receives, 1 only deals, 3 deals and receives, 4 only receives.
const CHANGE: Change<'static> = Change { dealers: &[1, 2, 3], receivers: &[2, 3, 4], t: 2 };

/// Everything that is sent in an honest run, once for each recipient.
fn recorded(run: impl FnOnce(Faults<'_>)) -> Vec<Packet> {
    let mut packets: Vec<Packet> = Vec::new();
    let record = |packet: Packet| {
        packets.push(packet.clone());
        vec![packet]
    };
    run(Faults { tamper: Some(Box::new(record)), ..Faults::default() });
    packets.sort_by_key(|packet| Forged::open(&packet.bytes).unwrap().round);
    packets
}

/// Gives the honest party what was recorded up to a round, then each complaint: it must blame the accuser, and only the
/// accuser.
fn fall_back_on_the_accuser<P: Protocol>(packets: &[Packet], start: &dyn Fn() -> Started<P>) {
    let last = u8::try_from(P::ROUNDS.len()).unwrap();
    let mut sent: BTreeMap<(u32, u8), Vec<u8>> = BTreeMap::new();
    for packet in packets {
        let forged = Forged::open(&packet.bytes).unwrap();
        let from = u32::from(packet.from.get());
        // Of private ones, those between the accused and the accuser, which both know.
        let other = if from == ACCUSER { ACCUSED } else { ACCUSER };
        if forged.recipient.is_none_or(|to| to == party(other)) {
            sent.insert((from, forged.round), packet.bytes.clone());
        }
    }
    let of = |from: u32, round: u8| sent[&(from, round)].clone();
    let genuine = |round: u8| of(ACCUSED, round);
    let own = |round: u8| of(ACCUSER, round);
    let mut history = Vec::new();
    for (round, _) in (1u8..).zip(P::ROUNDS).filter(|(_, rule)| rule.delivery == Delivery::Broadcast) {
        history
            .extend(sent.iter().filter(|((_, of), _)| *of == round && round < last).map(|(_, e)| e.clone()));
    }
    let with_history = |end: Vec<u8>| history.iter().cloned().chain([end]).collect::<Vec<_>>();
    let mut doubled = history.clone();
    doubled.extend([own(2), genuine(last)]);
    let mut complaints = vec![
        (AbortCause::WrongShare, vec![genuine(2), genuine(3)]),
        (AbortCause::WrongShare, vec![genuine(2)]),
        (AbortCause::WrongShare, vec![]),
        (AbortCause::WrongShare, vec![own(2), own(3)]),
        (AbortCause::WrongShare, vec![own(2), genuine(3)]),
        (AbortCause::WrongOpening, vec![genuine(1), genuine(2)]),
        (AbortCause::WrongOpening, vec![own(1), genuine(2)]),
        (AbortCause::WrongOpening, vec![genuine(2)]),
        (AbortCause::InvalidPoint, vec![genuine(2)]),
        (AbortCause::WrongDegree, vec![genuine(2)]),
        (AbortCause::InvalidScalar, vec![genuine(3)]),
        (AbortCause::WrongProof, vec![genuine(2)]),
        (AbortCause::WrongProof, vec![genuine(last)]),
        (AbortCause::WrongProof, vec![own(2), genuine(last)]),
        (AbortCause::WrongProof, with_history(genuine(last))),
        (AbortCause::WrongProof, with_history(own(last))),
        (AbortCause::WrongProof, doubled),
        (AbortCause::WrongPartialSignature, with_history(genuine(last))),
        (AbortCause::Equivocation, vec![genuine(1), genuine(1)]),
        (AbortCause::Equivocation, vec![genuine(1), genuine(2)]),
        (AbortCause::Equivocation, vec![genuine(1), own(1)]),
        (AbortCause::FalseComplaint, vec![genuine(1)]),
        (AbortCause::FalseComplaint, vec![genuine(2), genuine(1)]),
    ];
    complaints.extend((1..=last).map(|round| (AbortCause::MalformedBody, vec![genuine(round)])));
    // Round 4 is the last one before the exchange of pairs, in which every run differs.
    for heard_in in [2, 4] {
        for (cause, evidence) in &complaints {
            let (mut session, _) = start();
            for packet in packets.iter().filter(|packet| packet.to == Some(party(HONEST))) {
                if Forged::open(&packet.bytes).unwrap().round < heard_in {
                    session.handle(packet.from, &packet.bytes, &mut rng(1));
                }
            }
            let body = notice(*cause, u16::try_from(ACCUSED).unwrap(), evidence);
            let mut forged = Forged::new(P::ID.number, session.context(), NOTICE_ROUND, party(ACCUSER), body);
            forged.run = Forged::open(&own(1)).unwrap().run;
            let bytes = forged.encode(&evidence_key(party(ACCUSER)));
            match session.handle(party(ACCUSER), &bytes, &mut rng(1)).progress {
                Progress::Aborted(abort) => {
                    let blamed = (abort.cause, abort.culprits.as_slice());
                    assert_eq!(blamed, (AbortCause::FalseComplaint, [party(ACCUSER)].as_slice()), "{cause}");
                }
                _ => panic!("{cause} with {} envelopes in round {heard_in} was not heard", evidence.len()),
            }
        }
    }
}

fn in_key_generation<S: Tested + Generated>() {
    let parties = [1, 2, 3];
    let packets = recorded(|faults| drop(keygen_with::<S>(&parties, 2, (1, 4), faults)));
    fall_back_on_the_accuser(&packets, &|| start_keygen::<S>(HONEST, &parties, 2, (1, 4)));
}

fn in_a_refresh<S: Tested>() {
    let shares = S::keys(&[1, 2, 3], 2, 5);
    let packets = recorded(|faults| drop(refresh_with::<S>(&shares, 1, faults)));
    fall_back_on_the_accuser(&packets, &|| start_refresh::<S>(HONEST, S::reopen(&shares[&HONEST]), 1));
}

fn in_a_reshare<S: Tested>() {
    let shares = S::keys(&[1, 2, 3], 2, 6);
    let packets = recorded(|faults| drop(reshare_with::<S>(&shares, &CHANGE, 1, faults)));
    let base = S::public_of(&shares[&1]).clone();
    let start = || start_reshare::<S>(HONEST, Some(S::reopen(&shares[&HONEST])), &base, &CHANGE, 1).unwrap();
    fall_back_on_the_accuser(&packets, &start);
}

for_schemes!(Ecdsa as ecdsa, Ed25519 as ed25519, Bip340 as bip340:
    [in_key_generation, in_a_refresh, in_a_reshare]);
for_schemes!(Bls as bls: [in_a_refresh, in_a_reshare]);
