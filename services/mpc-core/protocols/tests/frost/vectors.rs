//! Published vectors, and what libraries that are not ours make of the same input. Those of RFC 9591 are checked beside
//! the code, in `frost/signing.rs`.

use frost_core::{Signature, VerifyingKey};
use frost_secp256k1_tr::Secp256K1Sha256TR;
use protocols::bip32::DerivationPath;
use protocols::frost::{Bip340, Taproot, Target};
use serde_json::Value;

use sha2::{Digest, Sha256};

use crate::harness::keygen;

/// BIP-340, as the code that verifies every combined signature decides.
#[test]
fn bip340_verification() {
    let file: Value = serde_json::from_str(include_str!("../vectors/bip340.json")).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 15);
    for vector in vectors {
        let bytes = |name: &str| hex::decode(vector[name].as_str().unwrap()).unwrap();
        let key = [vec![2], bytes("public_key")].concat();
        let verified = VerifyingKey::<Secp256K1Sha256TR>::deserialize(&key).is_ok_and(|key| {
            Signature::deserialize(&bytes("signature"))
                .is_ok_and(|signature| key.verify(&bytes("message"), &signature).is_ok())
        });
        assert_eq!(verified, vector["valid"].as_bool().unwrap(), "vector {}", vector["index"]);
    }
}

/// Output keys are those that libsecp256k1 computes from the internal key and the hash of BIP-341.
#[test]
fn taproot_output_keys() {
    for seed in 0..8 {
        let shares = keygen::<Bip340>(&[1, 2], 2, seed);
        let public = shares[&1].public();
        for (steps, taproot) in [
            (vec![], Taproot::KeyOnly),
            (vec![86, 0], Taproot::KeyOnly),
            (vec![7], Taproot::MerkleRoot([seed as u8; 32])),
        ] {
            let path = DerivationPath::new(&steps).unwrap();
            let internal = Target { path: path.clone(), taproot: None };
            let internal = public.verifier_key(&internal).unwrap();
            let expected = tap_tweak(&internal, taproot.root());
            let output = public.verifier_key(&Target { path, taproot: Some(taproot) }).unwrap();
            assert_eq!(output, expected);
        }
    }
}

/// BIP-341: P + H_TapTweak(x(P) || root) G.
fn tap_tweak(internal: &[u8; 32], root: Option<&[u8]>) -> [u8; 32] {
    let tag = Sha256::digest(b"TapTweak");
    let input = [tag.as_slice(), tag.as_slice(), internal, root.unwrap_or_default()].concat();
    let tweak = secp256k1::Scalar::from_be_bytes(Sha256::digest(&input).into()).unwrap();
    let internal = secp256k1::XOnlyPublicKey::from_byte_array(*internal).unwrap();
    internal.add_tweak(&tweak).unwrap().0.to_byte_array()
}
