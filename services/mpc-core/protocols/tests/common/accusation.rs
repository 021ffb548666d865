//! Accusations that a party makes up: nobody but itself may be blamed for what comes of them.

#![allow(dead_code, reason = "every fuzz target uses its own part")]

use engine::forge::Forged;
use engine::session::{DISCLOSURE_ROUND, NOTICE_ROUND, Progress, Session};
use engine::wire::Writer;
use engine::{AbortCause, Envelope, Protocol};
use sim::{Faults, Packet};

use super::common::{evidence_key, party, rng};

/// The party that accuses.
const ATTACKER: u32 = 2;

/// Everything that is sent in an honest run, by round.
pub fn recorded(run: impl FnOnce(Faults<'_>)) -> Vec<Packet> {
    let mut packets: Vec<Packet> = Vec::new();
    let record = |packet: Packet| {
        packets.push(packet.clone());
        vec![packet]
    };
    run(Faults { tamper: Some(Box::new(record)), ..Faults::default() });
    packets.sort_by_key(round_of);
    packets
}

fn round_of(packet: &Packet) -> u8 {
    Forged::open(&packet.bytes).unwrap().round
}

/// Gives party 1 an accusation or a disclosure by the attacker after the round that the first byte says; the next two
/// are cause and accused. Each piece of evidence is a genuine envelope of the session, or one that the attacker made
/// out of its own: with another body, or moved to another round or recipient.
pub fn accuse<P: Protocol>(mut session: Session<P>, packets: &[Packet], data: &[u8]) {
    let Some(([choice, cause, accused], mut rest)) = data.split_first_chunk::<3>() else { return };
    let last = usize::from(choice & 0x7f) % (P::ROUNDS.len() + 1);
    // The messages that the others have sent, and those that this run of party 1 sends: its later rounds draw other
    // randomness than the recorded ones.
    let of_others = packets.iter().filter(|packet| packet.from != party(1));
    let mut genuine: Vec<Vec<u8>> = of_others.map(|packet| packet.bytes.clone()).collect();
    for packet in packets.iter().filter(|packet| packet.to == Some(party(1))) {
        if usize::from(round_of(packet)) <= last {
            let step = session.handle(packet.from, &packet.bytes, &mut rng(1));
            genuine.extend(step.outgoing.iter().map(Envelope::encode));
        }
    }
    let mut evidence = Vec::new();
    while let Some(([pick, mode, count], bytes)) = rest.split_first_chunk::<3>() {
        let (change, following) = bytes.split_at(bytes.len().min(usize::from(*count)));
        rest = following;
        let mut forged = Forged::open(&genuine[usize::from(*pick) % genuine.len()]).unwrap();
        if forged.sender == party(ATTACKER) {
            match mode % 4 {
                0 => (),
                1 => {
                    let length = forged.body.len().max(1);
                    for (place, byte) in
                        forged.body.iter_mut().skip(usize::from(mode / 4) % length).zip(change)
                    {
                        *place ^= byte;
                    }
                }
                2 => forged.round = change.first().map_or(NOTICE_ROUND, |round| 1 + round % 8),
                _ => forged.recipient = change.first().map(|to| party(1 + u32::from(to % 3))),
            }
        }
        evidence.push(forged.encode(&evidence_key(forged.sender)));
    }
    let mut body = Writer::default();
    let kind = if choice & 0x80 == 0 { NOTICE_ROUND } else { DISCLOSURE_ROUND };
    if kind == NOTICE_ROUND {
        let cause = AbortCause::from_number(*cause).unwrap_or(AbortCause::WrongShare);
        body.u8(cause.number());
        body.u16(u16::from(accused % 4));
    }
    body.u16(u16::try_from(evidence.len()).unwrap());
    evidence.iter().for_each(|envelope| body.sized(envelope));
    let forged = Forged::new(P::ID.number, session.context(), kind, party(ATTACKER), body.finish());
    let bytes = forged.encode(&evidence_key(party(ATTACKER)));
    let step = session.handle(party(ATTACKER), &bytes, &mut rng(1));
    if let Progress::Aborted(abort) = step.progress {
        assert!(abort.culprits.iter().all(|culprit| *culprit == party(ATTACKER)), "{abort}");
    }
    for envelope in step.outgoing {
        assert!(Envelope::decode(&envelope.encode()).is_ok());
    }
}
