//! Blame: no party that follows the rules is ever blamed for anything that a corrupt party signs and shows.

use crate::anything;
use crate::anything::{history, last, play};
use crate::common::{Started, evidence_key, party, rng};
use crate::corpus;
use crate::table::{CORRUPT, Check, Mail, Table, every_protocol, resigned, round_of};
use engine::envelope::MAX_BODY_BYTES;
use engine::forge::{Forged, echo_of, header, sealed};
use engine::session::{DISCLOSURE_ROUND, NOTICE_ROUND, Progress};
use engine::{AbortCause, Advice, Protocol, Reject};

struct DoubleOpening {
    ended: bool,
}

impl Check for DoubleOpening {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        for (victim, hearer) in [(1, 2), (2, 1), (1, 1)] {
            let mut table = Table::start(start);
            table.run(|mail| {
                let withheld = !self.ended && round_of(&mail.bytes) == last::<P>();
                if withheld { Vec::new() } else { vec![mail.bytes.clone()] }
            });
            assert_eq!(table.done.contains_key(&1), self.ended, "{name}");
            let mut evidence = history(&table, last::<P>());
            evidence.push(resigned(&table.message(CORRUPT, 2, 1), |f| *f.body.last_mut().unwrap() ^= 1));
            evidence.push(table.message(victim, last::<P>(), 3));
            let framing = table.notice(AbortCause::WrongProof, victim, &evidence);
            table.tell(hearer, framing);
            table.assert_no_honest_party_is_blamed(name);
            for me in [1, 2] {
                let abort = table.aborts[&me].last().unwrap();
                assert_eq!(
                    (abort.cause, &*abort.culprits),
                    (AbortCause::Equivocation, &[party(3)][..]),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn second_opening_in_evidence_convicts_its_signer_while_the_run_goes_on() {
    every_protocol(&mut DoubleOpening { ended: false });
}

#[test]
fn second_opening_in_evidence_convicts_its_signer_after_the_end() {
    every_protocol(&mut DoubleOpening { ended: true });
}

struct IncompleteView;

impl Check for IncompleteView {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        let mut table = Table::start(start);
        let (session, _) = start(1, 1);
        let seen_nothing = echo_of(session.context(), 2, &[]);
        table.run(|mail| match round_of(&mail.bytes) {
            1 => vec![mail.bytes.clone()],
            2 => vec![resigned(&mail.bytes, |forged| forged.echo = Some(seen_nothing))],
            // It discloses that it saw what it had claimed: nothing.
            DISCLOSURE_ROUND => vec![resigned(&mail.bytes, |forged| {
                forged.body.truncate(2 * 190);
                forged.body.extend([0, 0]);
            })],
            _ => Vec::new(),
        });
        table.assert_no_honest_party_is_blamed(name);
        for me in [1, 2] {
            let abort = table.aborts[&me].last().unwrap();
            assert_eq!(
                (abort.cause, &*abort.culprits),
                (AbortCause::FalseComplaint, &[party(3)][..]),
                "{name}"
            );
        }
    }
}

#[test]
fn party_that_claims_an_incomplete_view_is_convicted_by_its_own_disclosure() {
    every_protocol(&mut IncompleteView);
}

struct SilentLiar;

impl Check for SilentLiar {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        let mut table = Table::start(start);
        table.run(|mail| match round_of(&mail.bytes) {
            1 => vec![mail.bytes.clone()],
            2 => vec![resigned(&mail.bytes, |forged| forged.echo = Some([3; 32]))],
            _ => Vec::new(),
        });
        for me in [1, 2] {
            assert!(!table.aborts.contains_key(&me), "{name}");
            assert_eq!(
                table.waiting[&me],
                [CORRUPT],
                "{name}: the one that does not disclose is the straggler"
            );
        }
    }
}

#[test]
fn party_that_lies_and_does_not_disclose_is_the_straggler() {
    every_protocol(&mut SilentLiar);
}

struct Restart {
    /// In which round the second run is seen first.
    round: u8,
}

impl Check for Restart {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        let mut table = Table::start(start);
        let (_, again) = start(CORRUPT, 2);
        let other = Forged::open(&again.outgoing[0].encode()).unwrap();
        // Its messages come first, so that they meet in one round.
        table.queue.sort_by_key(|mail| mail.from != CORRUPT);
        table.run(|mail| match round_of(&mail.bytes) {
            1 if self.round == 1 => vec![mail.bytes.clone(), again.outgoing[0].encode()],
            round if round == self.round => vec![resigned(&mail.bytes, |forged| forged.run = other.run)],
            round if round < self.round => vec![mail.bytes.clone()],
            _ => Vec::new(),
        });
        table.assert_no_honest_party_is_blamed(name);
        for me in [1, 2] {
            let abort = &table.aborts[&me][0];
            assert_eq!(abort.cause, AbortCause::PartyRestarted, "{name}");
            assert_eq!((&*abort.culprits, abort.advice()), (&[][..], Advice::Retry), "{name}: {abort}");
            assert_eq!(
                (&*abort.suspects, abort.evidence.len()),
                (&[party(CORRUPT)][..], 2),
                "{name}: {abort}"
            );
        }
    }
}

#[test]
fn party_that_runs_a_session_twice_is_named_and_not_blamed() {
    for round in [1, 2, 3] {
        every_protocol(&mut Restart { round });
    }
}

struct PrivateRestart;

impl Check for PrivateRestart {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        // A message that would convict its sender travels in the name of another run, and to one party alone.
        let mut table = Table::start(start);
        table.run(|mail| match (round_of(&mail.bytes), mail.to) {
            (1 | 2, _) => vec![mail.bytes.clone()],
            (3, 1) => vec![resigned(&mail.bytes, |forged| {
                forged.run[0] ^= 1;
                forged.body.iter_mut().for_each(|byte| *byte = 0xff);
            })],
            _ => Vec::new(),
        });
        table.assert_no_honest_party_is_blamed(name);
        let evidence = table.aborts[&1][0].evidence.clone();
        for me in [1, 2] {
            let abort = &table.aborts[&me][0];
            assert_eq!(
                (abort.cause, &*abort.suspects),
                (AbortCause::PartyRestarted, &[party(3)][..]),
                "{name}"
            );
            assert_eq!((&abort.evidence, abort.reporter), (&evidence, Some(party(1))), "{name}");
            let body = Forged::open(&table.message(CORRUPT, 3, 1)).unwrap().body;
            // A party that deals nothing to the other sends an empty body.
            let length = body.len().max(1);
            let shown = |part: &[u8]| evidence.iter().any(|item| item.windows(length).any(|w| w == part));
            assert!(!shown(&body) && !shown(&vec![0xff; body.len()]), "{name}: no private body is shown");
        }
    }
}

#[test]
fn second_run_in_a_private_message_is_named_alike_by_everybody() {
    every_protocol(&mut PrivateRestart);
}

struct Word;

impl Check for Word {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        for (pointed, named) in [(0, vec![party(3)]), (2, vec![party(2), party(3)])] {
            let mut table = Table::start(start);
            let word = table.notice(AbortCause::TransferCheckFailed, pointed, &[]);
            table.queue.clear();
            table.tell(1, word.clone());
            for me in [1, 2] {
                let abort = &table.aborts[&me][0];
                assert_eq!(
                    (abort.cause, &abort.suspects),
                    (AbortCause::TransferCheckFailed, &named),
                    "{name}"
                );
                assert_eq!(
                    (abort.reporter, &*abort.evidence),
                    (Some(party(3)), &[word.clone()][..]),
                    "{name}"
                );
            }
            // The messenger has no word of its own that could be taken for the reason.
            let passed_on = Forged::open(&table.message(1, NOTICE_ROUND, 2)).unwrap().body;
            let lone = table.notice(AbortCause::TransferCheckFailed, 0, core::slice::from_ref(&word));
            assert_eq!(passed_on, Forged::open(&lone).unwrap().body, "{name}");
        }
        // Another's word cannot be changed on the way, and what nobody said is nobody's word.
        let start_table = || {
            let mut table = Table::start(start);
            table.queue.clear();
            table
        };
        let table = start_table();
        let honest = resigned(&table.notice(AbortCause::Internal, 0, &[]), |forged| {
            forged.sender = party(2);
            forged.run = Forged::open(&table.message(2, 1, 1)).unwrap().run;
        });
        let mut changed = honest.clone();
        *changed.last_mut().unwrap() ^= 1;
        for (cause, word) in [
            (AbortCause::Internal, changed),
            (AbortCause::DegenerateKey, honest.clone()),
            (AbortCause::Internal, table.message(2, 1, 1)),
        ] {
            let mut table = start_table();
            let passed_on = table.notice(cause, 0, &[word]);
            table.tell(1, passed_on);
            assert!(!table.aborts.contains_key(&1), "{name}");
        }
        let mut table = start_table();
        let passed_on = table.notice(AbortCause::Internal, 0, &[honest]);
        table.tell(1, passed_on);
        assert_eq!(table.aborts[&1][0].suspects, [party(2)], "{name}");
    }
}

#[test]
fn a_run_that_ends_by_a_word_names_who_said_it_and_not_who_passed_it_on() {
    every_protocol(&mut Word);
}

struct OwnWord;

impl Check for OwnWord {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        // Party 1 ended its run by its word, was restored, and runs the session again; the keeper of the word shows it.
        let mut table = Table::start(start);
        let (_, earlier) = start(1, 2);
        let run = Forged::open(&earlier.outgoing[0].encode()).unwrap().run;
        let word = resigned(&table.notice(AbortCause::TransferCheckFailed, CORRUPT, &[]), |forged| {
            forged.sender = party(1);
            forged.run = run;
        });
        table.queue.clear();
        let passed_on = table.notice(AbortCause::TransferCheckFailed, 0, &[word]);
        table.tell(1, passed_on);
        for me in [1, 2] {
            let abort = &table.aborts[&me][0];
            assert_eq!(abort.cause, AbortCause::PartyRestarted, "{name}: {abort}");
            assert_eq!((&*abort.suspects, abort.evidence.len()), (&[party(1)][..], 2), "{name}: {abort}");
            assert_eq!((abort.reporter, abort.advice()), (Some(party(1)), Advice::Retry), "{name}: {abort}");
        }
    }
}

#[test]
fn a_party_that_is_shown_its_word_of_another_run_says_that_it_ran_twice() {
    every_protocol(&mut OwnWord);
}

struct EquivocationAndWord {
    /// Whether the word comes before the messages that would show that views differ.
    first: bool,
}

impl Check for EquivocationAndWord {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        let mut table = Table::start(start);
        let word = table.notice(AbortCause::Internal, 0, &[]);
        let (_, other) = start(CORRUPT, 2);
        let run = Forged::open(&table.message(CORRUPT, 1, 1)).unwrap().run;
        let mut second = Forged::open(&other.outgoing[0].encode()).unwrap();
        second.run = run;
        let second = second.encode(&evidence_key(party(CORRUPT)));
        let mut later = Vec::new();
        for mail in core::mem::take(&mut table.queue) {
            let equivocates = mail.from == CORRUPT && mail.to == 2;
            let bytes = if equivocates { second.clone() } else { mail.bytes.clone() };
            table.deliver(&Mail { bytes, ..mail });
        }
        // Both are in round 2 now, each with its own view.
        core::mem::swap(&mut later, &mut table.queue);
        if self.first {
            for to in [1, 2] {
                table.deliver(&Mail { from: CORRUPT, to, bytes: word.clone() });
            }
            table.queue.append(&mut later);
        } else {
            later.retain(|mail| mail.from != CORRUPT);
            for mail in later {
                table.deliver(&mail);
            }
            for to in [1, 2] {
                table.deliver(&Mail { from: CORRUPT, to, bytes: word.clone() });
            }
        }
        table.run(|_| Vec::new());
        table.assert_no_honest_party_is_blamed(name);
        for me in [1, 2] {
            let abort = table.aborts[&me].last().unwrap();
            assert_eq!(
                (abort.cause, &*abort.culprits),
                (AbortCause::Equivocation, &[party(CORRUPT)][..]),
                "{name}: {:?}",
                table.aborts
            );
        }
    }
}

#[test]
fn a_word_does_not_save_who_told_two_parties_different_things() {
    for first in [false, true] {
        every_protocol(&mut EquivocationAndWord { first });
    }
}

struct MixedRuns;

impl Check for MixedRuns {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        // Party 1 was restored and ran the session twice; the corrupt party has messages of both of its runs.
        let mut table = Table::start(start);
        table.run(
            |mail| if round_of(&mail.bytes) == last::<P>() { Vec::new() } else { vec![mail.bytes.clone()] },
        );
        let (_, again) = start(1, 2);
        let restarted = again.outgoing[0].encode();
        let (first, opening) = (table.message(1, 1, 3), table.message(1, 2, 3));
        let accusations = [
            (AbortCause::Equivocation, vec![first.clone(), restarted.clone()]),
            (AbortCause::WrongOpening, vec![restarted.clone(), opening]),
        ];
        for (cause, evidence) in accusations {
            let mut table = Table::start(start);
            table.run(|mail| if round_of(&mail.bytes) == 1 { vec![mail.bytes.clone()] } else { Vec::new() });
            let framing = table.notice(cause, 1, &evidence);
            table.tell(2, framing);
            table.assert_no_honest_party_is_blamed(name);
            assert_eq!(table.aborts[&2][0].culprits, [party(CORRUPT)], "{name} {cause:?}");
        }
        let mut table = Table::start(start);
        table.run(|mail| if round_of(&mail.bytes) == 1 { vec![mail.bytes.clone()] } else { Vec::new() });
        let headers = [first, restarted].map(|envelope| header(&envelope).unwrap());
        let true_notice = table.notice(AbortCause::PartyRestarted, 1, &headers);
        table.tell(2, true_notice);
        let abort = &table.aborts[&2][0];
        assert_eq!((abort.cause, &*abort.suspects), (AbortCause::PartyRestarted, &[party(1)][..]), "{name}");
        assert!(abort.culprits.is_empty() && abort.reporter == Some(party(CORRUPT)), "{name}: {abort}");
    }
}

#[test]
fn messages_of_two_runs_of_a_restored_party_are_no_evidence_against_it() {
    every_protocol(&mut MixedRuns);
}

struct OwnFault;

impl Check for OwnFault {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        // As if a copy of party 1, with its nonce, had signed something else.
        let mut table = Table::start(start);
        let first = table.message(1, 1, 3);
        let copy = resigned(&first, |forged| forged.body[0] ^= 1);
        let proof = table.notice(AbortCause::Equivocation, 1, &[first, copy]);
        table.deliver(&Mail { from: CORRUPT, to: 1, bytes: proof });
        let abort = &table.aborts[&1][0];
        assert_eq!((abort.cause, abort.advice()), (AbortCause::Internal, Advice::Retry), "{name}");
        assert!(abort.culprits.is_empty() && abort.reporter == Some(party(1)), "{name}: {abort}");
    }
}

#[test]
fn proof_against_oneself_is_an_internal_error_and_no_exclusion() {
    every_protocol(&mut OwnFault);
}

struct Chains;

impl Check for Chains {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        let start_table = || Table::start(start);
        let table = start_table();
        let bogus = table.notice(AbortCause::WrongShare, 1, &[table.message(1, 1, 3)]);
        let about_it = table.notice(AbortCause::FalseComplaint, 3, core::slice::from_ref(&bogus));
        let about_that = table.notice(AbortCause::FalseComplaint, 3, core::slice::from_ref(&about_it));
        for (depth, chain) in [bogus, about_it, about_that].into_iter().enumerate() {
            let mut table = start_table();
            table.queue.clear();
            table.tell(1, chain);
            table.assert_no_honest_party_is_blamed(name);
            assert_eq!(table.aborts.contains_key(&2), depth < 2, "{name}: {:?}", table.rejects);
        }
        // A complaint about a notice that is true: the proof in that notice is passed on.
        let mut table = start_table();
        table.queue.clear();
        let first = table.message(3, 1, 1);
        let second = resigned(&first, |forged| forged.body[0] ^= 1);
        table.deliver(&Mail { from: 3, to: 1, bytes: first });
        table.deliver(&Mail { from: 3, to: 1, bytes: second });
        let honest = table.message(1, NOTICE_ROUND, 2);
        table.queue.clear();
        let complaint = table.notice(AbortCause::FalseComplaint, 1, &[honest]);
        table.tell(2, complaint);
        table.assert_no_honest_party_is_blamed(name);
        assert_eq!(table.aborts[&2][0].cause, AbortCause::Equivocation, "{name}");
    }
}

#[test]
fn whatever_a_party_blames_the_others_hear() {
    every_protocol(&mut Chains);
}

struct Largest;

impl Check for Largest {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        let attempt = |length: usize| {
            let mut table = Table::start(start);
            table.queue.clear();
            let junk = resigned(&table.message(3, 1, 1), |forged| forged.body = vec![0; length]);
            let notice = table.notice(AbortCause::WrongShare, 1, &[junk]);
            table.tell(1, notice);
            table
        };
        // The longest notice that is judged, by halving.
        let (mut fits, mut too_long) = (0, 4 << 20);
        while too_long - fits > 1 {
            let middle = usize::midpoint(fits, too_long);
            if attempt(middle).aborts.contains_key(&1) { fits = middle } else { too_long = middle }
        }
        let table = attempt(fits);
        table.assert_no_honest_party_is_blamed(name);
        assert_eq!(table.aborts[&2][0].culprits, [party(CORRUPT)], "{name}");
        assert!(
            attempt(too_long).rejects.iter().any(|(_, _, reject)| *reject == Reject::Malformed),
            "{name}"
        );
        let largest = table.sent.iter().map(|mail| mail.bytes.len()).max().unwrap();
        assert!(largest <= 256 * 1024, "{name}: what the services carry is shorter than {largest} bytes");
    }
}

#[test]
fn notice_about_the_longest_notice_is_heard() {
    every_protocol(&mut Largest);
}

struct Work;

impl Check for Work {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        let mut table = Table::start(start);
        // The same again is not judged, and costs its sender nothing.
        for byte in [0, 0, 0, 1, 2, 3u8] {
            let malformed = table.forge(NOTICE_ROUND, vec![byte]);
            table.tell(1, malformed);
        }
        let of_notices = table.rejects.iter().filter(|(from, to, _)| (*from, *to) == (CORRUPT, 1));
        let reasons: Vec<Reject> = of_notices.map(|(_, _, reject)| *reject).collect();
        let again = vec![Reject::Duplicate; 2];
        let expected = [vec![Reject::Malformed], again.clone(), vec![Reject::Malformed], again].concat();
        assert!(reasons.ends_with(&expected), "{name}: {reasons:?}");
    }
}

#[test]
fn notices_of_one_sender_are_judged_twice_at_most() {
    every_protocol(&mut Work);
}

/// Honest messages in any order, the corrupt party's dropped, doubled, altered and signed again, and notices and
/// disclosures made of whatever it has seen.
struct Anything {
    full: u64,
    blamed: u64,
    ended: u64,
}

impl Check for Anything {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        for seed in 0..sim::seeds::runs(self.full) {
            let mut rng = rng(seed ^ 0xb1a3_e000);
            let mut table = Table::start(start);
            play(&mut table, &mut rng);
            table.assert_no_honest_party_is_blamed(&format!("{name}, seed {seed}"));
            self.blamed +=
                u64::from(table.aborts.get(&1).is_some_and(|a| a.iter().any(|a| !a.culprits.is_empty())));
            self.ended += u64::from(table.done.contains_key(&1));
        }
    }
}

#[test]
fn nothing_that_a_corrupt_party_signs_and_shows_convicts_an_honest_one() {
    let mut check = Anything { full: 10_000, blamed: 0, ended: 0 };
    every_protocol(&mut check);
    assert!(check.blamed > 0 && check.ended > 0, "{} blamed, {} ended", check.blamed, check.ended);
}

#[test]
fn what_the_fuzzer_kept() {
    corpus::replay("history", anything::history_of);
}

struct Covers;

impl Check for Covers {
    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>) {
        let mut table = Table::start(start);
        let private = |mail: &Mail| Forged::open(&mail.bytes).unwrap().recipient.is_some();
        // Party 1 gets one private message after the other, so that it stands in a round of them.
        let due = loop {
            let mail = table.queue.remove(0);
            if mail.from == CORRUPT && mail.to == 1 && private(&mail) {
                break mail;
            }
            table.deliver(&mail);
        };
        let session = table.sessions.get_mut(&1).unwrap();
        let round = session.round();
        assert_eq!(round_of(&due.bytes), round, "{name}");
        let genuine = sealed(session.context(), &evidence_key(party(CORRUPT)), &due.bytes, &mut rng(1));
        let mut open = |from: u32, change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = genuine.clone();
            // Nothing of it opens any more.
            bytes[40..].fill(7);
            change(&mut bytes);
            match session.open(party(from), &bytes, &mut rng(1)).progress {
                Progress::Dropped(reject) => reject,
                Progress::Waiting { .. } | Progress::Done(_) | Progress::Aborted(_) => panic!("{name}"),
            }
        };
        let at = |place: usize, byte: u8| move |bytes: &mut Vec<u8>| bytes[place] = byte;
        assert_eq!(open(CORRUPT, &|_| ()), Reject::Unsealing, "{name}");
        assert_eq!(open(CORRUPT, &at(1, 0x70)), Reject::Protocol, "{name}");
        assert_eq!(open(CORRUPT, &at(34, 7)), Reject::Session, "{name}");
        assert_eq!(open(CORRUPT, &at(35, round - 1)), Reject::RoundPast, "{name}");
        assert_eq!(open(CORRUPT, &at(35, round + 2)), Reject::RoundFuture, "{name}");
        assert_eq!(open(CORRUPT, &at(35, NOTICE_ROUND)), Reject::Delivery, "{name}");
        assert_eq!(open(2, &|_| ()), Reject::Sender, "{name}");
        assert_eq!(open(CORRUPT, &at(37, 9)), Reject::Sender, "{name}");
        assert_eq!(open(1, &at(37, 1)), Reject::Sender, "{name}");
        assert_eq!(open(CORRUPT, &at(39, 2)), Reject::Recipient, "{name}");
        assert_eq!(open(CORRUPT, &|bytes| bytes.resize(MAX_BODY_BYTES, 7)), Reject::Size, "{name}");
        assert_eq!(open(CORRUPT, &|bytes| bytes.truncate(119)), Reject::Malformed, "{name}");
        // The message itself is still heard.
        let heard = session.open(party(CORRUPT), &genuine, &mut rng(1));
        assert!(!matches!(heard.progress, Progress::Dropped(_)), "{name}");
    }
}

#[test]
fn sealed_message_with_the_cover_of_another_place_is_not_opened() {
    every_protocol(&mut Covers);
}
