//! Hostile bytes at every decoder, as many as a test run has time for. The fuzz targets run the same code for longer.

use crate::corpus;
use crate::hostile;
use proptest::prelude::*;
use sim::seeds::cases;

fn bytes(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..longest)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(6_400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn envelopes(data in bytes(400)) {
        hostile::envelope(&data);
    }

    #[test]
    fn bodies(data in bytes(500)) {
        hostile::keygen_body(&data);
    }

    #[test]
    fn accusations(data in bytes(60)) {
        hostile::keygen_notice(&data);
    }

    #[test]
    fn partial_signatures(data in bytes(100)) {
        hostile::partial_signature(&data);
    }

    #[test]
    fn messages_of_key_generation(data in bytes(300)) {
        hostile::keygen_message(&data);
    }

    #[test]
    fn sealed_shares(data in bytes(600)) {
        hostile::sealed_share(&data);
    }
}

/// Chooses what the parties of a refresh or reshare agree on.
const AGREED: u8 = 0x30;

/// Genuine bodies, which the fuzzers bend, reach the rules of their round; a changed one does not pass.
#[test]
fn bodies_of_every_round_are_decoded() {
    for (protocol, round) in (0..3u8).flat_map(|protocol| (0..4).map(move |round| (protocol, round))) {
        let choice = protocol << 4 | round;
        assert!(hostile::keygen_body(&[choice, 1, 0, 0]), "protocol {protocol}, round {}", round + 1);
        for at in [0, 1, 33, 70] {
            hostile::keygen_body(&[choice, 1, 0, at, 0x80, 0, 1]);
        }
    }
    assert!(hostile::keygen_body(&[AGREED, 1, 0, 0]));
    for renewal in [0x10, 0x20] {
        assert!(!hostile::keygen_body(&[renewal, 1, 0, 0, 1]), "a changed commitment");
        assert!(!hostile::keygen_body(&[renewal | 2, 1, 0, 0, 1]), "a changed share");
    }
    assert!(!hostile::keygen_body(&[AGREED, 1, 0, 0, 1]));
    assert!(hostile::partial_signature(&[1, 0, 0]));
    assert!(!hostile::partial_signature(&[1, 0, 50, 1]));
    assert!(hostile::sealed_share(&[1, 0, 0]));
}

#[test]
fn what_the_fuzzer_kept() {
    corpus::replay("envelope", hostile::envelope);
    corpus::replay_that_reaches("keygen_body", hostile::keygen_body);
    corpus::replay("keygen_message", hostile::keygen_message);
    corpus::replay("keygen_notice", hostile::keygen_notice);
    corpus::replay_that_reaches("partial_signature", hostile::partial_signature);
    corpus::replay_that_reaches("sealed_share", hostile::sealed_share);
}
