//! The moves of a corrupt party in a session with signed envelopes, chosen by a generator: of a property test, or of a
//! fuzzer.

#![allow(dead_code, reason = "every target uses its own part")]

use core::convert::Infallible;

use engine::forge::{Forged, disclosure, header};
use engine::session::{DISCLOSURE_ROUND, NOTICE_ROUND};
use engine::{AbortCause, Protocol};
use rand_core::{Rng, TryRng};

use crate::common::Started;
use crate::table::{ALL, CORRUPT, Check, Mail, PROTOCOLS, Table, every_protocol, pick, resigned, round_of};

/// Runs the session to its end: honest messages in any order, the corrupt party's dropped, doubled, altered and signed
/// again, and notices and disclosures made of whatever it has seen.
pub fn play<P: Protocol>(table: &mut Table<P>, rng: &mut impl Rng) {
    let mut known: Vec<Vec<u8>> = Vec::new();
    while !table.queue.is_empty() {
        let at = pick(rng, table.queue.len());
        let mail = table.queue.remove(at);
        if mail.from != CORRUPT {
            if mail.to == CORRUPT {
                known.push(mail.bytes.clone());
            }
            table.deliver(&mail);
            continue;
        }
        for bytes in versions(&mail.bytes, rng, 12) {
            known.push(bytes.clone());
            table.deliver(&Mail { bytes, ..mail.clone() });
        }
        if pick(rng, 10) == 0 {
            accuse(table, &mut known, rng);
        }
    }
    for _ in 0..4 {
        accuse(table, &mut known, rng);
        table.run(|mail| vec![mail.bytes.clone()]);
    }
}

/// Choices out of bytes, one byte each; when they are used up, the choice is to follow the rules.
struct Choices<'a>(&'a [u8]);

impl TryRng for Choices<'_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let (first, rest) = self.0.split_first().unwrap_or((&11, &[]));
        self.0 = rest;
        Ok(u32::from(*first))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.try_next_u32().map(u64::from)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for byte in bytes {
            *byte = self.try_next_u32()? as u8;
        }
        Ok(())
    }
}

/// A whole session of a protocol with signed envelopes, with what `data` chooses; the first byte chooses the protocol.
pub fn history_of(data: &[u8]) {
    outcome_of(data);
}

/// The end of a history: which honest parties finished, and the causes of the aborts of each.
pub type HistoryOutcome = [(bool, Vec<AbortCause>); 2];

/// As [`history_of`]. `None` without input.
pub fn outcome_of(data: &[u8]) -> Option<HistoryOutcome> {
    let (protocol, choices) = data.split_first()?;
    let mut history =
        History { protocol: usize::from(*protocol) % PROTOCOLS, choices: Choices(choices), outcome: None };
    every_protocol(&mut history);
    history.outcome
}

/// A history of the protocol at one place of [`every_protocol`].
struct History<'a> {
    protocol: usize,
    choices: Choices<'a>,
    outcome: Option<HistoryOutcome>,
}

impl Check for History<'_> {
    fn wants(&self, place: usize) -> bool {
        place == self.protocol
    }

    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        let mut table = Table::start(start);
        play(&mut table, &mut self.choices);
        table.assert_no_honest_party_is_blamed(name);
        self.outcome = Some([1, 2].map(|me| {
            let causes = table.aborts.get(&me).into_iter().flatten().map(|abort| abort.cause).collect();
            (table.done.contains_key(&me), causes)
        }));
    }
}

/// The last round.
pub fn last<P: Protocol>() -> u8 {
    u8::try_from(P::ROUNDS.len()).unwrap()
}

/// All broadcasts before a round.
pub fn history<P: Protocol>(table: &Table<P>, before: u8) -> Vec<Vec<u8>> {
    let broadcast = |mail: &&Mail| {
        let forged = Forged::open(&mail.bytes).unwrap();
        forged.recipient.is_none() && forged.round < before && mail.to == mail.from % 3 + 1
    };
    table.sent.iter().filter(broadcast).map(|mail| mail.bytes.clone()).collect()
}

/// The corrupt party's versions of one of its messages: mostly the message itself.
fn versions(bytes: &[u8], rng: &mut impl Rng, odds: usize) -> Vec<Vec<u8>> {
    let other = |change: &dyn Fn(&mut Forged)| resigned(bytes, |forged| change(forged));
    match pick(rng, odds) {
        0 => Vec::new(),
        1 => vec![bytes.to_vec(), bytes.to_vec()],
        2 => vec![bytes.to_vec(), other(&flip(rng.next_u64()))],
        3 => vec![other(&flip(rng.next_u64()))],
        4 => vec![other(&|forged| forged.run[0] ^= 1)],
        5 => vec![bytes.to_vec(), other(&|forged| forged.run[0] ^= 1)],
        6 => vec![other(&|forged| forged.echo = Some([7; 32]))],
        _ => vec![bytes.to_vec()],
    }
}

fn flip(at: u64) -> impl Fn(&mut Forged) {
    move |forged| {
        let length = u64::try_from(forged.body.len()).unwrap().max(1);
        if let Some(byte) = forged.body.get_mut(usize::try_from(at % length).unwrap()) {
            *byte ^= 1;
        }
    }
}

/// A notice or a disclosure made of what is known, if anything is.
fn accuse<P: Protocol>(table: &mut Table<P>, known: &mut Vec<Vec<u8>>, rng: &mut impl Rng) {
    if known.is_empty() {
        return;
    }
    let any = |rng: &mut _| known[pick(rng, known.len())].clone();
    let of_round = |round: u8, known: &[Vec<u8>]| {
        known.iter().filter(|bytes| round_of(bytes) == round).cloned().collect::<Vec<_>>()
    };
    let accused = ALL[pick(rng, 3)];
    let cause = AbortCause::ALL[pick(rng, AbortCause::ALL.len())];
    let bytes = match pick(rng, 6) {
        0 => {
            let evidence: Vec<_> = (0..pick(rng, 4)).map(|_| any(rng)).collect();
            table.notice(cause, accused, &evidence)
        }
        // A history as a judge wants it, with a place changed, left out or there twice.
        1 => {
            let mut evidence = history(table, last::<P>());
            match pick(rng, 4) {
                0 => drop(evidence.remove(pick(rng, evidence.len()))),
                1 => evidence.push(any(rng)),
                2 => {
                    let second = resigned(&table.message(CORRUPT, 1, 1), flip(rng.next_u64()));
                    evidence.insert(pick(rng, evidence.len()), second);
                }
                _ => {}
            }
            evidence.extend(of_round(last::<P>(), known).into_iter().take(1));
            table.notice(
                [AbortCause::WrongProof, AbortCause::WrongPartialSignature][pick(rng, 2)],
                accused,
                &evidence,
            )
        }
        2 => {
            let pair = [any(rng), any(rng)];
            if pick(rng, 2) == 0 {
                table.notice(AbortCause::Equivocation, accused, &pair)
            } else {
                let headers = pair.map(|envelope| header(&envelope).unwrap());
                table.notice(AbortCause::PartyRestarted, accused, &headers)
            }
        }
        3 => {
            let shown: Vec<_> = (0..pick(rng, 6)).map(|_| any(rng)).collect();
            let claims = [any(rng), any(rng)];
            let body = disclosure([&claims[0], &claims[1]], &shown).unwrap();
            table.forge(DISCLOSURE_ROUND, body)
        }
        // A word, or one that it passes on.
        4 => {
            let words = of_round(NOTICE_ROUND, known);
            let word = words.get(pick(rng, words.len())).filter(|_| pick(rng, 2) == 0);
            let pointed = [0, accused][pick(rng, 2)];
            table.notice(
                cause,
                if word.is_some() { 0 } else { pointed },
                word.map(core::slice::from_ref).unwrap_or_default(),
            )
        }
        _ => {
            let kinds = [of_round(NOTICE_ROUND, known), of_round(DISCLOSURE_ROUND, known)].concat();
            let count = 1 + pick(rng, 2);
            let about: Vec<_> =
                (0..count).filter_map(|_| kinds.get(pick(rng, kinds.len())).cloned()).collect();
            table.notice(AbortCause::FalseComplaint, accused, &about)
        }
    };
    known.push(bytes.clone());
    for to in [1, 2] {
        if pick(rng, 3) > 0 {
            table.deliver(&Mail { from: CORRUPT, to, bytes: bytes.clone() });
        }
    }
}
