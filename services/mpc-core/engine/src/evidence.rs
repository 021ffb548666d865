//! The Ed25519 keys with which parties sign the envelopes that may have to convince others.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use primitives::Secret;
use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::tags;

/// Bytes of an evidence public key.
pub const EVIDENCE_KEY_BYTES: usize = 32;
/// Bytes of an evidence signature.
pub const SIGNATURE_BYTES: usize = 64;

/// A party's secret evidence key. Boxed, so that it does not move; wiped on drop; has no `Clone` and no `Debug`.
pub struct EvidenceKey(Box<SigningKey>);

impl EvidenceKey {
    /// A new key.
    pub fn generate(rng: &mut dyn CryptoRng) -> Self {
        let mut seed = Secret::new([0u8; 32]);
        rng.fill_bytes(seed.expose_mut());
        Self::from_seed(&seed)
    }

    /// The key of a stored seed.
    pub fn from_seed(seed: &Secret<[u8; 32]>) -> Self {
        Self(Box::new(SigningKey::from_bytes(seed.expose())))
    }

    /// The seed that has to be stored, sealed, to have this key again.
    pub fn seed(&self) -> Secret<[u8; 32]> {
        Secret::new(self.0.to_bytes())
    }

    /// The public key, which the roster pins.
    pub fn public(&self) -> EvidencePublicKey {
        EvidencePublicKey(self.0.verifying_key())
    }

    /// Signs `tag || SHA-256(statement)` with [`tags::STATEMENT_SIGNATURE`]. The signed bytes of an envelope begin with
    /// another tag, neither being the beginning of the other, so no statement is ever taken for an envelope.
    pub fn sign_statement(&self, statement: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.sign(&statement_message(statement))
    }

    /// The X25519 private key of the same pair (RFC 8032, section 5.1.5, steps 1 and 2; clamped by who uses it).
    pub(crate) fn agreement_key(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_scalar_bytes())
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.0.sign(message).to_bytes()
    }
}

/// A party's pinned evidence key.
#[derive(Clone, PartialEq, Eq)]
pub struct EvidencePublicKey(VerifyingKey);

impl EvidencePublicKey {
    /// `None` unless a canonical point of large order.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let key = VerifyingKey::from_bytes(bytes.try_into().ok()?).ok()?;
        (!key.is_weak()).then_some(Self(key))
    }

    /// The RFC 8032 encoding.
    pub fn as_bytes(&self) -> &[u8; EVIDENCE_KEY_BYTES] {
        self.0.as_bytes()
    }

    /// The X25519 public key of the same pair (RFC 7748, section 4.1).
    pub(crate) fn agreement_key(&self) -> [u8; 32] {
        self.0.to_montgomery().to_bytes()
    }

    /// Whether [`EvidenceKey::sign_statement`] of this key made the signature for this statement.
    pub fn verify_statement(&self, statement: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        self.verify(&statement_message(statement), signature)
    }

    pub(crate) fn verify(&self, message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

fn statement_message(statement: &[u8]) -> Vec<u8> {
    let mut message = tags::STATEMENT_SIGNATURE.as_bytes().to_vec();
    message.extend_from_slice(&Sha256::digest(statement));
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statement_is_no_envelope_whatever_it_says() {
        let key = EvidenceKey::from_seed(&Secret::new([7; 32]));
        let envelope = [tags::ENVELOPE_SIGNATURE.as_bytes(), b"header and body"].concat();
        for statement in [&envelope[..], b"header and body", b""] {
            let signature = key.sign_statement(statement);
            let signed = [tags::STATEMENT_SIGNATURE.as_bytes(), &Sha256::digest(statement)].concat();
            assert!(key.public().verify(&signed, &signature));
            assert!(key.public().verify_statement(statement, &signature));
            assert!(!key.public().verify_statement(&signed, &signature));
            assert!(!key.public().verify(&envelope, &signature));
            assert!(!key.public().verify(statement, &signature));
        }
        for tag in tags::ALL.iter().filter(|tag| **tag != tags::STATEMENT_SIGNATURE) {
            assert!(!tag.as_bytes().starts_with(tags::STATEMENT_SIGNATURE.as_bytes()));
            assert!(!tags::STATEMENT_SIGNATURE.as_bytes().starts_with(tag.as_bytes()));
        }
    }
}
