//! Hostile bytes at every decoder of threshold ECDSA, as many as a test run has time for. The fuzz targets run the same
//! code for longer.

use crate::corpus;
use crate::ecdsa_hostile;
use proptest::prelude::*;
use sim::seeds::cases;

fn bytes(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..longest)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(9_600), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bodies(data in bytes(300)) {
        ecdsa_hostile::body(&data);
    }

    #[test]
    fn accusations(data in bytes(60)) {
        ecdsa_hostile::notice(&data);
    }

    #[test]
    fn sealed_blobs(data in bytes(600)) {
        ecdsa_hostile::sealed(&data);
    }

    #[test]
    fn what_parties_agree_on(data in bytes(300)) {
        ecdsa_hostile::agreed(&data);
    }
}

/// A few changed bytes anywhere in a genuine body, in every round of every protocol.
#[test]
fn nearly_genuine_bodies() {
    for choice in 0..24u8 {
        for at in [0u16, 1, 33, 70, 0xfffe] {
            let [high, low] = at.to_be_bytes();
            ecdsa_hostile::body(&[choice, 1, high, low, 0x80, 0, 0x01]);
        }
    }
}

#[test]
fn what_the_fuzzer_kept() {
    corpus::replay("ecdsa_agreed", ecdsa_hostile::agreed);
    corpus::replay("ecdsa_body", ecdsa_hostile::body);
    corpus::replay("ecdsa_notice", ecdsa_hostile::notice);
    corpus::replay_that_reaches("ecdsa_sealed", ecdsa_hostile::sealed);
}
