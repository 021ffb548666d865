//! Calls about seeds that need no session: of the owner, and of a party that takes its share.

use circuits::hardened::{PublicNode, SEED_BYTES, SeedShare, split_seed_for};
use engine::seal::SealKind;
use engine::{Secret, SetupError, hand_over};

use crate::exact::{EPOCH, holders, imported, number};
use crate::inputs::StartError;
use crate::os_rng::os_rng;
use crate::proto::import::{KeySplit, ShareTaken, SplitSeed, TakeSeedShare};
use crate::proto::{KeyPublic, PartyBytes};
use crate::session::sealed;
use crate::vault::Vault;

/// Names the shares of seeds.
pub(super) const FAMILY: &str = "hardened-seed";

/// The root of a seed.
pub(super) fn root_public(root: &PublicNode, key_id: &str) -> KeyPublic {
    KeyPublic {
        public_key: root.public_key.to_vec(),
        threshold: 2,
        key_id: key_id.to_owned(),
        epoch: EPOCH,
        chain_code: root.chain_code.to_vec(),
        ..KeyPublic::default()
    }
}

/// [Hardened 7] the owner splits a seed.
pub(crate) fn split_seed(SplitSeed { seed, key_id, parties }: SplitSeed) -> Result<KeySplit, StartError> {
    let seed = Secret::new(seed);
    let holders = holders(&parties)?;
    if !SEED_BYTES.contains(&seed.expose().len()) {
        return Err(SetupError::PayloadLength.into());
    }
    let numbers: Vec<u16> = holders.iter().map(|(party, _)| party.get()).collect();
    let rng = &mut os_rng();
    // The parties were checked: it is a seed without a root, if ever there is one.
    let shares = split_seed_for(&seed, &numbers, rng).ok_or(SetupError::PayloadInvalid)?;
    let root = shares.first().map(|share| root_public(&share.root, &key_id));
    let mut encrypted = Vec::with_capacity(shares.len());
    for (share, (party, key)) in shares.iter().zip(&holders) {
        let label = imported(FAMILY, &key_id, *party)?.encode();
        let value = sealed(hand_over(key, &label, &share.encode(), rng));
        encrypted.push(PartyBytes { party: party.get().into(), value });
    }
    Ok(KeySplit { key_public: root, shares: encrypted })
}

/// [Hardened 7] a party takes its share; `None` if it is not one that the owner has made for this party and seed.
pub(crate) fn take_share(
    vault: &Vault,
    sealed_identity: &[u8],
    TakeSeedShare { key_id, party, share }: &TakeSeedShare,
) -> Result<Option<ShareTaken>, StartError> {
    let label = imported(FAMILY, key_id, number(*party)?)?;
    if sealed_identity.is_empty() {
        return Err(SetupError::IdentityMissing.into());
    }
    let identity = vault.open_identity(sealed_identity).map_err(|_| StartError::Unseal)?;
    let Ok(bytes) = identity.take_over(&label.encode(), share) else { return Ok(None) };
    let share = SeedShare::decode(bytes.expose()).filter(|share| share.number == label.party.get());
    let Some(share) = share else { return Ok(None) };
    let public = root_public(&share.root, key_id);
    let (kind, secret) = (SealKind::KeyShare, share.encode());
    let sealed_share = sealed(vault.key.seal(kind, &label.encode(), &[], secret.expose(), &mut os_rng()));
    Ok(Some(ShareTaken { sealed_share, key_public: Some(public) }))
}
