//! The inputs that calls have in common, the caller's sealed secrets and the group.

use engine::seal::{SealKind, ShareLabel};
use engine::{EvidenceKey, Secret, SetupError};
use protocols::dealing::Public;
use threshold_issuer::AttestedGroup;
use threshold_issuer::key::{Holders, KeyShare, Purpose};

use crate::group_parties::{Configured, party};
use crate::inputs::StartError;
use crate::os_rng::os_rng;
use crate::proto::group_call::Group;
use crate::refusal::Failure;
use crate::vault::Vault;

/// The caller, with what opens its secrets.
pub(super) struct Caller<'a> {
    pub(super) vault: Option<&'a Vault>,
    pub(super) sealed_identity: &'a [u8],
}

impl<'a> Caller<'a> {
    /// The vault of a caller that needs one.
    pub(super) fn vault(&self) -> Result<&'a Vault, Failure> {
        Ok(self.vault.ok_or(SetupError::VaultMissing)?)
    }

    /// The key that the caller signs with.
    pub(super) fn identity(&self) -> Result<EvidenceKey, Failure> {
        let vault = self.vault()?;
        if self.sealed_identity.is_empty() {
            return Err(SetupError::IdentityMissing.into());
        }
        vault.open_identity(self.sealed_identity).map_err(|_| StartError::Unseal.into())
    }

    /// A share of a key with these public data.
    pub(super) fn share<K: Purpose>(
        &self,
        holders: &Holders<K>,
        number: u32,
        blob: &[u8],
    ) -> Result<KeyShare<K>, Failure> {
        let label = ShareLabel {
            family: K::FAMILY.to_owned(),
            key_id: Public::key_id(holders).to_owned(),
            party: party(number)?,
            epoch: Public::epoch(holders),
            threshold: holders.threshold(),
        };
        self.labelled(&label, blob)
    }

    /// A share of this label.
    pub(super) fn labelled<K: Purpose>(
        &self,
        label: &ShareLabel,
        blob: &[u8],
    ) -> Result<KeyShare<K>, Failure> {
        let vault = self.vault()?;
        if blob.is_empty() {
            return Err(SetupError::ShareMissing.into());
        }
        KeyShare::unseal(&vault.key, blob, label).map_err(|error| StartError::from(error).into())
    }

    /// Seals a secret of a group.
    pub(super) fn seal(&self, kind: SealKind, group: &[u8; 32], secret: &[u8]) -> Result<Vec<u8>, Failure> {
        let sealed = self.vault()?.key.seal(kind, &[], group, secret, &mut os_rng());
        sealed.ok_or(SetupError::InputUnexpected.into())
    }

    /// Opens what [`Caller::seal`] made.
    pub(super) fn unseal(
        &self,
        kind: SealKind,
        group: &[u8; 32],
        blob: &[u8],
    ) -> Result<Secret<Vec<u8>>, Failure> {
        let opened = self.vault()?.key.unseal(kind, group, blob);
        Ok(opened.map_err(|_| StartError::Unseal)?.secret)
    }
}

/// [D4.3] the group of a call, under the caller's configuration.
pub(super) fn group(group: Option<&Group>) -> Result<AttestedGroup, Failure> {
    let group = group.ok_or(SetupError::GroupTermsMissing)?;
    Configured::new(group.parties.as_ref())?.group(&group.attested)
}

/// Bytes of a fixed length.
pub(super) fn exactly<const N: usize>(bytes: &[u8], what: &str) -> Result<[u8; N], Failure> {
    bytes.try_into().map_err(|_| Failure::malformed(what))
}
