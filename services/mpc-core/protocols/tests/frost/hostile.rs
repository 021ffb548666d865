//! Hostile bytes at every decoder, as many as a test run has time for. The fuzz targets run the same code for longer.

use proptest::prelude::*;
use sim::seeds::cases;

use crate::corpus::replay;
use crate::frost_hostile::{frost_agreed, frost_body, frost_keygen_message, frost_notice, frost_sealed};

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12_800), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bodies(data in bytes(300)) {
        frost_body(&data);
    }

    #[test]
    fn messages_of_key_generation(data in bytes(300)) {
        frost_keygen_message(&data);
    }

    #[test]
    fn accusations(data in bytes(60)) {
        frost_notice(&data);
    }

    #[test]
    fn sealed_contents(data in bytes(600)) {
        frost_sealed(&data);
    }

    #[test]
    fn what_parties_agree_on(data in bytes(200)) {
        frost_agreed(&data);
    }
}

fn bytes(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..longest)
}

/// A few changed bytes anywhere in a genuine body, in every round of every protocol of both suites.
#[test]
fn nearly_genuine_bodies() {
    for (suite, choice) in (0..16u8).flat_map(|choice| [(0, choice), (1, choice)]) {
        for at in [0u16, 1, 33, 70, 0xfffe] {
            let [high, low] = at.to_be_bytes();
            frost_body(&[suite, choice, 1, high, low, 0x80, 0, 0x01]);
        }
    }
}

#[test]
fn what_the_fuzzer_kept() {
    replay("frost_agreed", frost_agreed);
    replay("frost_body", frost_body);
    replay("frost_keygen_message", frost_keygen_message);
    replay("frost_notice", frost_notice);
    replay("frost_sealed", frost_sealed);
}
