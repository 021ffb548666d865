//! The inputs that the fuzzers start from hold genuine messages and whole histories of today's format.
//!
//! `SEEDS=write cargo test -p protocols all_schemes::fuzz_seeds`, which `make corpus` runs, adds them to the corpus.
//! Other inputs there are those that the fuzzers kept.

use crate::anything;
use crate::corpus;
use crate::sealed_hostile;
use std::collections::BTreeSet;

use crate::anything::outcome_of;
use crate::common::{AS_IT_IS, rng, start_keygen};
use crate::corpus::{add, kept};
use crate::table::{ALL, PROTOCOLS, Table, round_of};
use engine::envelope::ENVELOPE_VERSION;
use engine::session::{DISCLOSURE_ROUND, NOTICE_ROUND};
use engine::{Envelope, Protocol, SEALED_ENVELOPE_FORMAT};
use proptest::prelude::*;
use protocols::bls::Keygen;
use rand_core::Rng;
use sim::seeds::cases;

/// The fuzzers' inputs are shorter, in bytes.
const LONGEST: usize = 2048;
/// Bytes of a history's choices: a key generation of three parties with everything that follows it needs fewer.
const CHOICES: usize = 400;
/// Histories of one protocol that are looked at, and that are kept at most.
const LOOKED_AT: u64 = 40;
const KEPT: usize = 4;

/// Every kind of envelope: of each round, a notice and a disclosure.
fn envelopes() -> Vec<Vec<u8>> {
    let start = |me: u32, run: u64| start_keygen(me, &ALL, 2, 1, run);
    let mut of_rounds = BTreeSet::new();
    let mut found = Vec::new();
    for seed in 0..100 {
        let mut table = Table::<Keygen>::start(&start);
        match seed {
            0 => table.run(|mail| vec![mail.bytes.clone()]),
            _ => anything::play(&mut table, &mut rng(seed)),
        }
        for mail in &table.sent {
            if mail.bytes.len() < LONGEST && of_rounds.insert(round_of(&mail.bytes)) {
                found.push(mail.bytes.clone());
            }
        }
    }
    found
}

/// The message that the target `keygen_message` waits for.
fn expected_message() -> Vec<u8> {
    let (_, step) = start_keygen(2, &ALL, 2, 1, 11);
    step.outgoing[0].encode()
}

/// Histories of each protocol that end differently.
fn histories() -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for protocol in 0..PROTOCOLS as u8 {
        let mut outcomes = BTreeSet::new();
        for seed in 0..LOOKED_AT {
            let mut data = vec![0; CHOICES];
            rng(seed << 8 | u64::from(protocol)).fill_bytes(&mut data);
            data[0] = protocol;
            if outcomes.len() < KEPT && outcomes.insert(format!("{:?}", outcome_of(&data))) {
                found.push(data);
            }
        }
    }
    found
}

#[test]
fn the_corpus_holds_genuine_messages_and_whole_histories() {
    if std::env::var("SEEDS").is_ok_and(|value| value == "write") {
        add("envelope", envelopes());
        add("keygen_message", vec![expected_message()]);
        add("sealed_envelope", sealed_hostile::seeds());
        add("history", histories());
        // A genuine body, share or presignature, which the fuzzers bend; of each round where there are several, and of
        // key generation, refresh and reshare, with what the parties of the latter two agree on.
        let choices =
            [0x00, 0x10, 0x20].into_iter().flat_map(|protocol| protocol..protocol + 4).chain([0x30]);
        add("keygen_body", choices.map(|choice: u8| [&[choice], &AS_IT_IS[..]].concat()).collect());
        for target in ["partial_signature", "sealed_share", "ecdsa_sealed"] {
            add(target, vec![AS_IT_IS.to_vec()]);
        }
    }
    let kept_envelopes = kept("envelope").into_iter().filter_map(|bytes| Envelope::decode(&bytes).ok());
    let rounds: BTreeSet<u8> = kept_envelopes.map(|envelope| envelope.round()).collect();
    for round in (1..=Keygen::ROUNDS.len() as u8).chain([NOTICE_ROUND, DISCLOSURE_ROUND]) {
        assert!(rounds.contains(&round), "no envelope of version {ENVELOPE_VERSION} and round {round}");
    }
    assert!(kept("keygen_message").iter().any(|bytes| Envelope::decode(bytes).is_ok()));
    assert!(kept("sealed_envelope").iter().any(|input| input.get(2) == Some(&SEALED_ENVELOPE_FORMAT)));
    let mut outcomes = vec![BTreeSet::new(); PROTOCOLS];
    for input in kept("history") {
        let outcome = format!("{:?}", outcome_of(&input));
        if input.len() == CHOICES {
            outcomes[usize::from(input[0]) % PROTOCOLS].insert(outcome);
        }
    }
    for (protocol, outcomes) in outcomes.iter().enumerate() {
        assert!(outcomes.len() >= 2, "histories of protocol {protocol} with {} outcomes", outcomes.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(6_400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sealed_envelopes(data in proptest::collection::vec(any::<u8>(), 0..300)) {
        sealed_hostile::sealed_envelope(&data);
    }
}

#[test]
fn what_the_fuzzer_kept() {
    corpus::replay("sealed_envelope", sealed_hostile::sealed_envelope);
}
