//! The envelope on the wire: its bytes, and what becomes of bytes that are none.

#![cfg(feature = "forge")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use engine::forge::Forged;
use engine::{Envelope, EvidenceKey, PartyId, Reject, Secret};
use proptest::prelude::*;

fn key() -> EvidenceKey {
    EvidenceKey::from_seed(&Secret::new([1; 32]))
}

fn forged(recipient: Option<u32>, signed: bool, body: &[u8]) -> Forged {
    Forged {
        protocol: 0x0102,
        session: [0xaa; 32],
        round: 3,
        sender: PartyId::new(0x0405).unwrap(),
        recipient: recipient.map(|number| PartyId::new(number).unwrap()),
        run: [0xcc; 16],
        echo: signed.then_some([0xbb; 32]),
        body: body.to_vec(),
    }
}

#[test]
fn bytes_do_not_drift() {
    let cases = [
        forged(None, false, b""),
        forged(None, false, b"broadcast"),
        forged(Some(0x0607), false, b"private"),
        forged(None, true, b"broadcast"),
        forged(Some(0x0607), true, b"private"),
    ];
    if std::env::var("GOLDEN").is_ok_and(|value| value == "write") {
        let lines = cases.iter().map(|case| hex::encode(case.encode(&key())) + "\n").collect::<String>();
        std::fs::write("tests/golden/envelopes-v2.txt", lines).unwrap();
    }
    let golden = std::fs::read_to_string("tests/golden/envelopes-v2.txt").unwrap();
    assert_eq!(golden.lines().count(), cases.len());
    for (line, case) in golden.lines().zip(cases) {
        let bytes = case.encode(&key());
        assert_eq!(hex::encode(&bytes), line);
        let envelope = Envelope::decode(&bytes).unwrap();
        assert_eq!(envelope.encode(), bytes);
        assert_eq!(envelope.round(), 3);
        assert_eq!(envelope.sender().get(), 0x0405);
        assert_eq!(envelope.recipient(), case.recipient);
        assert_eq!(envelope.run(), &case.run);
        assert_eq!(envelope.echo(), case.echo.as_ref());
        assert_eq!(envelope.body(), case.body);
    }
}

#[test]
fn every_cut_and_every_addition_is_malformed() {
    for case in [forged(None, false, b"body"), forged(Some(9), true, b"body")] {
        let bytes = case.encode(&key());
        for length in 0..bytes.len() {
            assert_eq!(Envelope::decode(&bytes[..length]).err(), Some(Reject::Malformed), "length {length}");
        }
        assert_eq!(Envelope::decode(&[&bytes[..], &[0]].concat()).err(), Some(Reject::Malformed));
    }
}

#[test]
fn fields_out_of_range_are_malformed() {
    let bytes = forged(Some(9), true, b"body").encode(&key());
    let altered = |at: usize, value: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        Envelope::decode(&bytes).err()
    };
    assert_eq!(altered(0, &[3]), Some(Reject::Version));
    assert_eq!(altered(0, &[1]), Some(Reject::Version));
    assert_eq!(altered(36, &[0]), Some(Reject::Malformed), "broadcast with a recipient");
    assert_eq!(altered(36, &[2]), Some(Reject::Malformed), "unknown delivery");
    assert_eq!(altered(37, &[0, 0]), Some(Reject::Malformed), "no sender");
    assert_eq!(altered(39, &[0, 0]), Some(Reject::Malformed), "private without a recipient");
    assert_eq!(altered(41, &[2]), Some(Reject::Malformed), "unknown signature flag");
    assert_eq!(altered(41, &[0]), Some(Reject::Malformed), "signed, but says it is not");
    assert_eq!(altered(42, &[0xff; 4]), Some(Reject::Malformed), "length beyond the end");
}

#[test]
fn longer_than_any_envelope_is_not_even_read() {
    let bytes = vec![2u8; engine::envelope::MAX_ENVELOPE_BYTES + 1];
    assert_eq!(Envelope::decode(&bytes).err(), Some(Reject::Size));
}

#[test]
fn digest_leaves_the_signature_out_and_nothing_else() {
    let bytes = forged(None, true, b"body").encode(&key());
    let digest = Envelope::decode(&bytes).unwrap().content_digest();
    for at in 0..bytes.len() {
        let mut altered = bytes.clone();
        altered[at] ^= 1;
        if let Ok(envelope) = Envelope::decode(&altered) {
            assert_eq!(envelope.content_digest() == digest, at >= bytes.len() - 64, "byte {at}");
        }
    }
}

#[test]
fn printing_shows_no_body() {
    let bytes = forged(Some(9), true, b"secret").encode(&key());
    let text = format!("{:?}", Envelope::decode(&bytes).unwrap());
    assert_eq!(text, "Envelope(round 3 from 1029 to 9, 6 bytes)");
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Envelope::decode(&bytes);
    }

    #[test]
    fn what_decodes_encodes_the_same(
        mut bytes in proptest::collection::vec(any::<u8>(), 62..300),
        private in any::<bool>(),
        signed in any::<bool>(),
    ) {
        // Steered towards what decodes.
        bytes[0] = 2;
        bytes[36] = u8::from(private);
        if !private {
            bytes[39..41].fill(0);
        }
        bytes[41] = u8::from(signed);
        let rest = bytes.len() - 62;
        let overhead = if signed { 96 } else { 0 };
        let length = u32::try_from(rest.saturating_sub(overhead)).unwrap();
        bytes[42..46].copy_from_slice(&length.to_be_bytes());
        if let Ok(envelope) = Envelope::decode(&bytes) {
            prop_assert_eq!(envelope.encode(), bytes);
        }
    }
}
