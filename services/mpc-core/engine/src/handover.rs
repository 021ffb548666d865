//! A secret on its way to a party outside of any session, from somebody who holds no key of the parties: encrypted to
//! the party's pinned evidence key.
//!
//! ```text
//! offset  bytes
//!      0  1      format: 0x82
//!      1  32     encapsulated key
//!     33  32     commitment to the key
//!     65  n      the secret, encrypted
//!      .  16     tag
//! ```
//!
//! HPKE as for [private envelopes](crate::SEALED_ENVELOPE_FORMAT), under a tag of its own; associated data are the
//! first byte and a label that is not stored. Nothing says who the sender is: that the caller knows by another way.

use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{Deserializable, Kem, OpModeR, OpModeS, Serializable, setup_receiver, setup_sender_with_rng};
use primitives::Secret;
use primitives::hedge::HedgedRng;
use rand_core::CryptoRng;
use subtle::ConstantTimeEq;

use crate::evidence::{EvidenceKey, EvidencePublicKey};
use crate::seal::{MAX_LABEL_BYTES, UnsealFailed};
use crate::tags;

const FORMAT: u8 = 0x82;
const KEY_BYTES: usize = 32;
const COMMITMENT_BYTES: usize = 32;

type PublicKey = <X25519HkdfSha256 as Kem>::PublicKey;
type PrivateKey = <X25519HkdfSha256 as Kem>::PrivateKey;
type EncappedKey = <X25519HkdfSha256 as Kem>::EncappedKey;

/// Encrypts a secret to the holder of an evidence key; `label` says for what it is. `None` if the label is longer than
/// [`MAX_LABEL_BYTES`].
pub fn hand_over(
    recipient: &EvidencePublicKey,
    label: &[u8],
    secret: &Secret<Vec<u8>>,
    rng: &mut dyn CryptoRng,
) -> Option<Vec<u8>> {
    let recipient = PublicKey::from_bytes(&recipient.agreement_key()).ok()?;
    // Two secrets never have the same ephemeral key, whatever the generator does.
    let mut rng = HedgedRng::new("handover", &[label, secret.expose()], rng);
    let (encapped, mut context) = setup_sender_with_rng::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
        &OpModeS::Base,
        &recipient,
        tags::HANDOVER.as_bytes(),
        &mut rng,
    )
    .ok()?;
    let mut commitment = [0; COMMITMENT_BYTES];
    context.export(tags::HANDOVER_COMMITMENT.as_bytes(), &mut commitment).ok()?;
    let ciphertext = context.seal(secret.expose(), &associated_data(label)?).ok()?;
    let mut sealed = vec![FORMAT];
    sealed.extend_from_slice(&encapped.to_bytes());
    sealed.extend_from_slice(&commitment);
    sealed.extend_from_slice(&ciphertext);
    Some(sealed)
}

impl EvidenceKey {
    /// Decrypts what [`hand_over`] encrypted to this key under this label.
    ///
    /// # Errors
    /// It was altered, or is for another key or label. Which one is not said.
    pub fn take_over(&self, label: &[u8], sealed: &[u8]) -> Result<Secret<Vec<u8>>, UnsealFailed> {
        let opened = || {
            let (format, rest) = sealed.split_first()?;
            let (encapped, rest) = rest.split_first_chunk::<KEY_BYTES>()?;
            let (committed, ciphertext) = rest.split_first_chunk::<COMMITMENT_BYTES>()?;
            let own = PrivateKey::from_bytes(self.agreement_key().as_slice()).ok()?;
            let encapped = EncappedKey::from_bytes(encapped).ok()?;
            let mut context = setup_receiver::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
                &OpModeR::Base,
                &own,
                &encapped,
                tags::HANDOVER.as_bytes(),
            )
            .ok()?;
            let mut commitment = [0; COMMITMENT_BYTES];
            context.export(tags::HANDOVER_COMMITMENT.as_bytes(), &mut commitment).ok()?;
            if *format != FORMAT || !bool::from(commitment.ct_eq(committed)) {
                return None;
            }
            context.open(ciphertext, &associated_data(label)?).ok().map(Secret::new)
        };
        opened().ok_or(UnsealFailed)
    }
}

fn associated_data(label: &[u8]) -> Option<Vec<u8>> {
    (label.len() <= MAX_LABEL_BYTES).then(|| [[FORMAT].as_slice(), label].concat())
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    fn key(party: u8) -> EvidenceKey {
        EvidenceKey::from_seed(&Secret::new([party; 32]))
    }

    fn sealed(seed: u64, secret: &[u8]) -> Vec<u8> {
        let rng = &mut ChaCha20Rng::seed_from_u64(seed);
        hand_over(&key(1).public(), b"label", &Secret::new(secret.to_vec()), rng).unwrap()
    }

    #[test]
    fn only_the_recipient_reads_it_and_under_its_label_only() {
        let bytes = sealed(1, b"a secret");
        assert_eq!(key(1).take_over(b"label", &bytes).unwrap().expose(), b"a secret");
        assert!(key(2).take_over(b"label", &bytes).is_err());
        assert!(key(1).take_over(b"labels", &bytes).is_err());
        assert!(key(1).take_over(&[0; MAX_LABEL_BYTES + 1], &bytes).is_err());
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 0x10;
            assert!(key(1).take_over(b"label", &changed).is_err(), "byte {place}");
            assert!(key(1).take_over(b"label", &bytes[..place]).is_err(), "{place} bytes");
        }
    }

    #[test]
    fn an_ephemeral_key_is_of_one_secret_and_one_draw() {
        let ephemeral = |seed, secret| sealed(seed, secret)[1..33].to_vec();
        assert_eq!(ephemeral(1, b"a"), ephemeral(1, b"a"));
        assert_ne!(ephemeral(1, b"a"), ephemeral(1, b"b"));
        assert_ne!(ephemeral(1, b"a"), ephemeral(2, b"a"));
    }

    #[test]
    fn a_long_label_is_refused() {
        let rng = &mut ChaCha20Rng::seed_from_u64(1);
        let secret = Secret::new(vec![1]);
        assert!(hand_over(&key(1).public(), &[0; MAX_LABEL_BYTES + 1], &secret, rng).is_none());
    }
}
