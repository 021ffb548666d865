//! Hostile bytes at every decoder of threshold ECDSA, as many as a test run has time for. The fuzz targets run the same code for longer.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
mod ecdsa_common;
#[path = "common/ecdsa_hostile.rs"]
mod hostile_code;

use proptest::prelude::*;

fn bytes(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..longest)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bodies(data in bytes(300)) {
        hostile_code::body(&data);
    }

    #[test]
    fn sealed_blobs(data in bytes(600)) {
        hostile_code::sealed(&data);
    }

    #[test]
    fn what_parties_agree_on(data in bytes(300)) {
        hostile_code::agreed(&data);
    }
}

/// A few changed bytes anywhere in a genuine body, in every round of every protocol.
#[test]
fn nearly_genuine_bodies() {
    for choice in 0..18u8 {
        for at in [0u16, 1, 33, 70, 0xfffe] {
            let [high, low] = at.to_be_bytes();
            hostile_code::body(&[choice, 1, high, low, 0x80, 0, 0x01]);
        }
    }
}
