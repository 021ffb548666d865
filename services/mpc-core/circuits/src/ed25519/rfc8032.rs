//! The challenge and the encoding of a signature, as RFC 8032 has them.

use curve25519_dalek::scalar::Scalar;
use sha2::{Digest, Sha512};

/// k of RFC 8032, section 5.1.6, step 4.
pub(super) fn challenge(nonce_point: &[u8; 32], public_key: &[u8; 32], message: &[u8]) -> Scalar {
    let hash = Sha512::new().chain_update(nonce_point).chain_update(public_key).chain_update(message);
    Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
}

/// A signature as RFC 8032 encodes it: the nonce point, then S.
pub(super) fn signature(nonce_point: &[u8; 32], response: &Scalar) -> [u8; 64] {
    let mut bytes = [0u8; 64];
    let (first, second) = bytes.split_at_mut(32);
    first.copy_from_slice(nonce_point);
    second.copy_from_slice(response.as_bytes());
    bytes
}
