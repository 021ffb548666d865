//! The data key of one party and what is sealed under it.

use std::sync::Arc;

use engine::seal::{DataKey, MAX_LABEL_BYTES, SealKind, UnsealFailed};
use engine::{EvidenceKey, Secret};
use zeroize::Zeroize;

use crate::os_rng::OsRng;

/// Shared by the vault handle and the sessions started with it.
pub struct Vault {
    pub(crate) key: Arc<DataKey>,
}

/// An argument that no correct caller passes.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidArgument;

impl Vault {
    pub(crate) fn open(data_key: &[u8]) -> Result<Self, InvalidArgument> {
        let mut key = Secret::new([0u8; engine::seal::DATA_KEY_BYTES]);
        if data_key.len() != engine::seal::DATA_KEY_BYTES {
            return Err(InvalidArgument);
        }
        key.expose_mut().copy_from_slice(data_key);
        Ok(Self { key: Arc::new(DataKey::new(key)) })
    }

    pub(crate) fn seal(&self, label: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, InvalidArgument> {
        self.key.seal(SealKind::Other, &[], label, plaintext, &mut OsRng).ok_or(InvalidArgument)
    }

    pub(crate) fn unseal(&self, label: &[u8], sealed: &[u8]) -> Result<Secret<Vec<u8>>, UnsealFailed> {
        self.key.unseal(SealKind::Other, label, sealed).map(|unsealed| unsealed.secret)
    }

    /// A new evidence key: the sealed identity and the public key.
    pub(crate) fn create_identity(&self, party_name: &[u8]) -> Result<(Vec<u8>, Vec<u8>), InvalidArgument> {
        let named = !party_name.is_empty() && party_name.len() <= MAX_LABEL_BYTES;
        if !named || core::str::from_utf8(party_name).is_err() {
            return Err(InvalidArgument);
        }
        let identity = EvidenceKey::generate(&mut OsRng);
        let sealed = self
            .key
            .seal(SealKind::Identity, party_name, &[], identity.seed().expose(), &mut OsRng)
            .ok_or(InvalidArgument)?;
        Ok((sealed, identity.public().as_bytes().to_vec()))
    }

    pub(crate) fn open_identity(&self, sealed: &[u8]) -> Result<EvidenceKey, UnsealFailed> {
        let unsealed = self.key.unseal(SealKind::Identity, &[], sealed)?;
        let mut seed = Secret::new([0u8; 32]);
        let stored: &[u8; 32] = unsealed.secret.expose().as_slice().try_into().map_err(|_| UnsealFailed)?;
        seed.expose_mut().copy_from_slice(stored);
        let key = EvidenceKey::from_seed(&seed);
        seed.expose_mut().zeroize();
        Ok(key)
    }
}
