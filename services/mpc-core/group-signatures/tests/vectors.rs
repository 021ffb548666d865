//! Credentials and approvals under a verifier that is not ours: arkworks' pairing, hash-to-curve and field, with the
//! hashing written out from the page; and bytes that must not change.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use ark_bls12_381::{Bls12_381, Fr, G1Affine, G1Projective, G2Affine, g1};
use ark_ec::hashing::HashToCurve;
use ark_ec::hashing::curve_maps::wb::WBMap;
use ark_ec::hashing::map_to_curve_hasher::MapToCurveBasedHasher;
use ark_ec::pairing::Pairing;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::PrimeField;
use ark_ff::field_hashers::DefaultFieldHasher;
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use engine::{EvidencePublicKey, Secret};
use group_signatures::forge::{Custody, admit};
use group_signatures::{Decision, GroupPublic, MemberKey, Request};
use primitives::bls12_381::Scalar;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use serde_json::Value;
use sha2_for_ark::{Digest, Sha256, Sha512};

const TAG_DOMAIN: &[u8] = b"COTERIE-WBB-TAG-V01-CS01-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors/wbb.json")).unwrap()
}

fn bytes(vectors: &Value, name: &str) -> Vec<u8> {
    hex::decode(vectors[name].as_str().unwrap()).unwrap()
}

fn point(bytes: &[u8]) -> G1Affine {
    let point = G1Affine::deserialize_compressed(bytes).unwrap();
    assert!(!point.is_zero());
    point
}

fn scalar(bytes: &[u8]) -> Fr {
    let scalar = Fr::from_be_bytes_mod_order(bytes);
    let mut little = Vec::new();
    scalar.serialize_compressed(&mut little).unwrap();
    assert!(little.iter().rev().eq(bytes.iter()), "a scalar is not below the order");
    scalar
}

/// The hash of the page: each label and each item with its length in front.
fn hash(tag: &str, items: &[(&str, &[u8])]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (label, item) in std::iter::once(("tag", tag.as_bytes())).chain(items.iter().copied()) {
        for part in [label.as_bytes(), item] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    hash.finalize().into()
}

/// The public data of a group as the page describes them.
struct Group {
    digest: [u8; 32],
    issuer_in_g2: G2Affine,
    opener: G1Affine,
}

impl Group {
    /// Of a group with one opener, whose key is that of `made`.
    fn read(bytes: &[u8]) -> Self {
        let length = u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize;
        let (name, rest) = bytes[4..].split_at(length);
        let number = |bytes: &[u8]| u64::from(u32::from_be_bytes(bytes.try_into().unwrap())).to_be_bytes();
        let (epoch, issuer, in_g2) = (number(&rest[..4]), &rest[4..52], &rest[52..148]);
        let (count, party) = (number(&rest[148..152]), number(&rest[152..156]));
        assert_eq!(count, 1u64.to_be_bytes());
        let (opener, signature) = (&rest[156..204], &rest[204..268]);
        let identity = identity();
        let one = 1u64.to_be_bytes();
        let signed = [
            ("name", name),
            ("epoch", &epoch),
            ("threshold", &one),
            ("openers", &count),
            ("opener", &party),
            ("identity", identity.as_bytes()),
            ("share", opener),
            ("key", opener),
        ];
        let signed = hash("coterie/wbb/opener-attestation/1", &signed);
        let statement = [b"coterie/wbb/opener-attestation/1".as_slice(), &signed].concat();
        assert!(identity.verify_statement(&statement, signature.try_into().unwrap()));
        let items = [("opener", &signed[..]), ("issuer", issuer), ("issuer in G2", in_g2)];
        let issuer_in_g2 = G2Affine::deserialize_compressed(in_g2).unwrap();
        let left = Bls12_381::pairing(point(issuer), G2Affine::generator());
        assert_eq!(left, Bls12_381::pairing(G1Affine::generator(), issuer_in_g2));
        Self { digest: hash("coterie/wbb/group/1", &items), issuer_in_g2, opener: point(opener) }
    }
}

fn identity() -> EvidencePublicKey {
    let (_, key) = custody(&mut ChaCha20Rng::seed_from_u64(21))
        .openers
        .identities()
        .next()
        .map(|(party, key)| (party, key.clone()))
        .unwrap();
    key
}

fn custody(rng: &mut ChaCha20Rng) -> Custody {
    Custody::new(1, 1, rng).unwrap()
}

/// Verification as the page describes it.
fn outside_accepts(group: &Group, request: &[u8; 32], decision: u8, approval: &[u8]) -> bool {
    type Hasher = MapToCurveBasedHasher<G1Projective, DefaultFieldHasher<Sha256, 128>, WBMap<g1::Config>>;
    let elements: Vec<G1Affine> = approval[..6 * 48].chunks(48).map(point).collect();
    let [blinded, credential, bound, tag, ephemeral, encrypted] = elements[..] else {
        panic!("six elements")
    };
    let scalars: Vec<Fr> = approval[6 * 48..].chunks(32).map(scalar).collect();
    let [c, z_secret, z_blinding, z_ephemeral] = scalars[..] else { panic!("four scalars") };
    let message = [&group.digest[..], request, &[decision]].concat();
    let base: G1Affine = Hasher::new(TAG_DOMAIN).unwrap().hash(&message).unwrap();
    let g = G1Affine::generator();
    let commitments = [
        g * z_blinding - blinded * c,
        -(credential * z_secret) - bound * c,
        base * z_secret - tag * c,
        g * z_ephemeral - ephemeral * c,
        group.opener * z_ephemeral + g * z_secret - encrypted * c,
    ];
    let decision = u64::from(decision).to_be_bytes();
    let mut items: Vec<(&str, Vec<u8>)> = vec![
        ("group", group.digest.to_vec()),
        ("request", request.to_vec()),
        ("decision", decision.to_vec()),
    ];
    let uncompressed = |point: G1Affine| {
        let mut bytes = Vec::new();
        point.serialize_uncompressed(&mut bytes).unwrap();
        bytes
    };
    items.extend(elements.iter().map(|element| ("element", uncompressed(*element))));
    items.extend(commitments.iter().map(|point| ("commitment", uncompressed(point.into_affine()))));
    let items: Vec<(&str, &[u8])> = items.iter().map(|(label, item)| (*label, item.as_slice())).collect();
    let wide = Sha512::digest(hash("coterie/wbb/approval/1", &items));
    let left = Bls12_381::pairing((bound + blinded).into_affine(), G2Affine::generator());
    Fr::from_be_bytes_mod_order(&wide) == c && left == Bls12_381::pairing(credential, group.issuer_in_g2)
}

/// Everything made from one seed.
fn made() -> (GroupPublic, MemberKey, Request, Vec<u8>) {
    let mut rng = ChaCha20Rng::seed_from_u64(21);
    let (issuing_key, group) = custody(&mut rng).group("vectors", 7, &mut rng).unwrap();
    let member = admit(&issuing_key, &group, &Secret::new(Scalar::random(&mut rng))).unwrap();
    let request = Request { digest: [0x5a; 32], decision: Decision::Approve };
    let approval = member.approve(&group, &request, &mut rng).unwrap().encode().to_vec();
    (group, member, request, approval)
}

#[test]
fn bytes_do_not_drift() {
    let vectors = vectors();
    let (group, member, _, approval) = made();
    for (name, made) in
        [("group", group.encode()), ("member", member.encode().to_vec()), ("approval", approval)]
    {
        assert_eq!(hex::encode(made), vectors[name].as_str().unwrap(), "{name}");
    }
}

#[test]
fn outside_verifier_accepts_credentials() {
    let vectors = vectors();
    let group = Group::read(&bytes(&vectors, "group"));
    let member = bytes(&vectors, "member");
    let (secret, credential) = (scalar(&member[..32]), point(&member[32..]));
    let key = (group.issuer_in_g2 + G2Affine::generator() * secret).into_affine();
    let one = Bls12_381::pairing(G1Affine::generator(), G2Affine::generator());
    assert_eq!(Bls12_381::pairing(credential, key), one);
    assert_ne!(Bls12_381::pairing(credential, group.issuer_in_g2), one);
}

#[test]
fn outside_verifier_accepts_approvals_and_only_ours() {
    let vectors = vectors();
    let group = Group::read(&bytes(&vectors, "group"));
    let approval = bytes(&vectors, "approval");
    assert!(outside_accepts(&group, &[0x5a; 32], 1, &approval));
    assert!(!outside_accepts(&group, &[0x5b; 32], 1, &approval));
    assert!(!outside_accepts(&group, &[0x5a; 32], 2, &approval));
    for place in [approval.len() - 1, approval.len() - 33, approval.len() - 65, approval.len() - 97] {
        let mut changed = approval.clone();
        changed[place] ^= 1;
        assert!(!outside_accepts(&group, &[0x5a; 32], 1, &changed), "byte {place}");
    }
}
