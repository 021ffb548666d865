//! Published vectors, and what an implementation that is not ours (arkworks, another code base in another language
//! family than blst's) says of our keys and signatures.

use crate::common::{keygen, party, rng, sign_with};
use ark_bls12_381::{Bls12_381, G1Affine, G2Affine, G2Projective, g2};
use ark_ec::hashing::HashToCurve;
use ark_ec::hashing::curve_maps::wb::WBMap;
use ark_ec::hashing::map_to_curve_hasher::MapToCurveBasedHasher;
use ark_ec::pairing::Pairing;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::field_hashers::DefaultFieldHasher;
use ark_serialize::CanonicalDeserialize;
use primitives::Secret;
use primitives::bls12_381::{G1, G2, HashedMessage, Scalar, UncheckedG2, verify};
use primitives::shamir::Weights;
use protocols::bls::{POSSESSION_DOMAIN, SIGNATURE_DOMAIN, Subgroup};
use protocols::dealing::Polynomial;
use serde_json::Value;
use sim::Faults;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../vectors/bls12_381.json")).unwrap()
}

fn bytes<const N: usize>(value: &Value) -> [u8; N] {
    hex::decode(value.as_str().unwrap()).unwrap().try_into().unwrap()
}

fn secret(value: &Value) -> Secret<Scalar> {
    Secret::new(Scalar::from_bytes(&bytes(value)).unwrap())
}

#[test]
fn ethereum_signatures() {
    let vectors = vectors();
    let cases = vectors["sign"].as_array().unwrap();
    assert_eq!(cases.len(), 9);
    for case in cases {
        let key = secret(&case["private_key"]);
        let public = G1::mul_generator(&key);
        assert_eq!(public.to_compressed(), bytes(&case["public_key"]));
        let message = HashedMessage::new(&bytes::<32>(&case["message"]), SIGNATURE_DOMAIN);
        let signature = message.sign(&key);
        assert_eq!(signature.to_compressed(), bytes(&case["signature"]));
        assert!(verify(&public, &message, &signature));
        let other = HashedMessage::new(b"another", SIGNATURE_DOMAIN);
        assert!(!verify(&public, &other, &signature));
    }
}

#[test]
fn shares_of_a_known_key_sign_as_the_key() {
    for (t, signers) in
        [(1, vec![3]), (2, vec![1, 3]), (3, vec![2, 5, 9]), (10, (1..=10).collect::<Vec<u16>>())]
    {
        for case in vectors()["sign"].as_array().unwrap() {
            let mut rng = rng(t);
            let random = (1..t).map(|_| Secret::new(Scalar::random(&mut rng)));
            let coefficients = std::iter::once(secret(&case["private_key"])).chain(random).collect();
            let polynomial = Polynomial::<Subgroup>::of(coefficients);
            let message = HashedMessage::new(&bytes::<32>(&case["message"]), SIGNATURE_DOMAIN);
            let partials: Vec<UncheckedG2> =
                signers.iter().map(|x| message.sign(&polynomial.at(party(u32::from(*x)))).into()).collect();
            let combined = UncheckedG2::combine(&partials, &Weights::at_zero(&signers).unwrap());
            assert_eq!(combined.to_compressed(), bytes(&case["signature"]));
        }
    }
}

#[test]
fn rejected_encodings() {
    let vectors = vectors();
    for (name, key) in vectors["rejected_public_keys"].as_object().unwrap() {
        assert!(G1::from_compressed(&bytes(key)).is_none(), "{name}");
    }
    for (name, signature) in vectors["rejected_signatures"].as_object().unwrap() {
        let decoded = UncheckedG2::from_compressed(&bytes(signature)).and_then(|point| point.check());
        assert!(decoded.is_none(), "{name}");
    }
}

#[test]
fn hash_to_curve_of_rfc_9380() {
    // RFC 9380, appendix J.10.1: BLS12381G2_XMD:SHA-256_SSWU_RO_, message "", x coordinate (imaginary part first).
    let message = HashedMessage::new(b"", b"QUUX-V01-CS02-with-BLS12381G2_XMD:SHA-256_SSWU_RO_");
    let point = message.sign(&Secret::new(Scalar::one())).to_uncompressed();
    let expected = "05cb8437535e20ecffaef7752baddf98034139c38452458baeefab379ba13dff5bf5dd71b72418717047f5b0f37da03d\
                    0141ebfbdca40eb85b87142e130ab689c673cf60f1a3e98d69335266f30d9b8d4ac44c1038e9dcdd5393faf5c41fb78a";
    assert_eq!(hex::encode(&point[..96]), expected);
}

fn outside_verifies(public_key: &[u8], message: &[u8], domain: &[u8], signature: &[u8]) -> bool {
    type Hasher =
        MapToCurveBasedHasher<G2Projective, DefaultFieldHasher<sha2_for_ark::Sha256, 128>, WBMap<g2::Config>>;
    let key = G1Affine::deserialize_compressed(public_key).unwrap();
    let signature = G2Affine::deserialize_compressed(signature).unwrap();
    assert!(!key.is_zero() && !signature.is_zero());
    let hashed = Hasher::new(domain).unwrap().hash(message).unwrap();
    let pairs = Bls12_381::multi_pairing(
        [key, (-G1Affine::generator().into_group()).into_affine()],
        [hashed, signature],
    );
    pairs == ark_ec::pairing::PairingOutput::<Bls12_381>::default()
}

#[test]
fn outside_verifier_accepts_ours_and_only_ours() {
    for (t, n, signers) in
        [(1, 1, vec![1]), (2, 3, vec![1, 3]), (3, 5, vec![1, 2, 4, 5]), (7, 10, (2..=8).collect())]
    {
        let parties: Vec<u32> = (1..=n).collect();
        let shares = keygen(&parties, t, 42);
        let public = shares[&1].public();
        assert!(outside_verifies(
            &public.public_key,
            &public.public_key,
            POSSESSION_DOMAIN,
            &public.proof_of_possession
        ));
        for message in [&b""[..], b"message", &[0xa5; 65_536]] {
            let outcomes = sign_with(&shares, &signers, message, 1, Faults::default());
            let signature = outcomes[&None].done.as_ref().unwrap().signature;
            assert!(outside_verifies(&public.public_key, message, SIGNATURE_DOMAIN, &signature));
            assert!(!outside_verifies(&public.public_key, message, POSSESSION_DOMAIN, &signature));
            assert!(!outside_verifies(&public.public_key, b"other", SIGNATURE_DOMAIN, &signature));
        }
    }
}

#[test]
fn encodings_agree_with_outside() {
    let mut rng = rng(3);
    for _ in 0..20 {
        let secret = Secret::new(Scalar::random(&mut rng));
        let point = G1::mul_generator(&secret);
        let theirs = G1Affine::deserialize_compressed(point.to_compressed().as_slice()).unwrap();
        assert_eq!(G1Affine::deserialize_uncompressed(point.to_uncompressed().as_slice()).unwrap(), theirs);
        let signature: G2 = HashedMessage::new(b"m", SIGNATURE_DOMAIN).sign(&secret);
        let theirs = G2Affine::deserialize_compressed(signature.to_compressed().as_slice()).unwrap();
        assert_eq!(
            G2Affine::deserialize_uncompressed(signature.to_uncompressed().as_slice()).unwrap(),
            theirs
        );
    }
}
