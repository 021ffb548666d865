//! Calls about imported keys and seeds that need no session: of the owner, and of a party that takes its share.

use circuits::ed25519::{Import, ImportedShare};
use engine::seal::SealKind;
use engine::{EvidencePublicKey, PartyId, Secret, SetupError, hand_over};
use prost::Message;

use super::{key_public, label};
use crate::hardened;
use crate::inputs::StartError;
use crate::os_rng::os_rng;
use crate::pairs::PairName;
use crate::proto::import::{
    DropPair, FindPair, ImportCall, ImportCallKind, ImportReply, ImportReplyKind, KeySplit, PairDropped,
    PairFound, ShareRefused, ShareTaken, SplitKey, TakeShare,
};
use crate::proto::{Party, PartyBytes};
use crate::session::sealed;
use crate::vault::Vault;

/// Does one encoded call; returns the encoded reply.
pub(crate) fn call(
    vault: Option<&Vault>,
    sealed_identity: &[u8],
    call: &[u8],
) -> Result<Vec<u8>, StartError> {
    let call = ImportCall::decode(call).map_err(|_| StartError::Undecodable)?;
    let reply = match call.call.ok_or(StartError::Undecodable)? {
        ImportCallKind::SplitKey(call) => ImportReplyKind::KeySplit(split_key(call)?),
        ImportCallKind::TakeShare(call) => {
            let vault = vault.ok_or(SetupError::VaultMissing)?;
            match take_share(vault, sealed_identity, &call)? {
                Some(taken) => ImportReplyKind::ShareTaken(taken),
                None => ImportReplyKind::ShareRefused(ShareRefused {}),
            }
        }
        ImportCallKind::SplitSeed(call) => ImportReplyKind::KeySplit(hardened::split_seed(call)?),
        ImportCallKind::TakeSeedShare(call) => {
            let vault = vault.ok_or(SetupError::VaultMissing)?;
            match hardened::take_share(vault, sealed_identity, &call)? {
                Some(taken) => ImportReplyKind::ShareTaken(taken),
                None => ImportReplyKind::ShareRefused(ShareRefused {}),
            }
        }
        ImportCallKind::DropPair(DropPair { key_id, party, peer, set_up }) => {
            let Vault { exact, seeds, .. } = vault.ok_or(SetupError::VaultMissing)?;
            if [party, peer] == [0, 0] {
                exact.drop_pairs(&key_id);
                seeds.drop_pairs(&key_id);
            } else {
                let name = PairName { key_id, me: number(party)?, peer: number(peer)? };
                exact.drop_pair(&name, &set_up);
                seeds.drop_pair(&name, &set_up);
            }
            ImportReplyKind::PairDropped(PairDropped {})
        }
        ImportCallKind::FindPair(FindPair { key_id, party, peer }) => {
            let name = PairName { key_id, me: number(party)?, peer: number(peer)? };
            let Vault { exact, seeds, .. } = vault.ok_or(SetupError::VaultMissing)?;
            let found = exact.pair(&name).map(|paired| paired.identity());
            let found = found.or_else(|_| seeds.pair(&name).map(|paired| paired.identity()));
            let set_up = found.map(|identity| identity.to_vec()).unwrap_or_default();
            ImportReplyKind::PairFound(PairFound { set_up })
        }
    };
    Ok(ImportReply { reply: Some(reply) }.encode_to_vec())
}

pub(crate) fn number(party: u32) -> Result<PartyId, SetupError> {
    PartyId::new(party).ok_or(SetupError::PartyIdRange)
}

/// The parties of a key or seed, each with the key that its share is encrypted to.
pub(crate) fn holders(parties: &[Party]) -> Result<Vec<(PartyId, EvidencePublicKey)>, SetupError> {
    if !(2..=engine::MAX_PARTIES).contains(&parties.len()) {
        return Err(SetupError::PartyCount);
    }
    let mut holders: Vec<(PartyId, EvidencePublicKey)> = Vec::new();
    for party in parties {
        let (id, key) = (number(party.id)?, EvidencePublicKey::from_bytes(&party.evidence_key));
        let key = key.ok_or(SetupError::EvidenceKeyInvalid)?;
        if holders.last().is_some_and(|(last, _)| *last >= id) {
            return Err(SetupError::PartiesNotAscending);
        }
        if holders.iter().any(|(_, other)| *other == key) {
            return Err(SetupError::EvidenceKeyShared);
        }
        holders.push((id, key));
    }
    Ok(holders)
}

/// [Ed25519 1] the owner splits a key.
fn split_key(SplitKey { secret, key_id, parties }: SplitKey) -> Result<KeySplit, StartError> {
    let secret = Secret::new(secret);
    let holders = holders(&parties)?;
    let numbers: Vec<u16> = holders.iter().map(|(party, _)| party.get()).collect();
    let rng = &mut os_rng();
    let import = match secret.expose().len() {
        32 => Import::from_seed_for(&fixed(&secret)?, &numbers, rng),
        64 => Import::from_expanded_for(&fixed(&secret)?, &numbers, rng),
        _ => return Err(SetupError::PayloadLength.into()),
    };
    let import = import.ok_or(SetupError::PartyCount)?;
    let mut shares = Vec::with_capacity(holders.len());
    for (share, (party, key)) in import.shares.iter().zip(&holders) {
        let label = label(&key_id, *party)?.encode();
        let value = sealed(hand_over(key, &label, &share.encode(), rng));
        shares.push(PartyBytes { party: party.get().into(), value });
    }
    let public = import.shares.first().and_then(|share| key_public(share, &key_id));
    Ok(KeySplit { key_public: Some(public.ok_or(SetupError::ShareInvalid)?), shares })
}

/// A secret of a fixed length.
fn fixed<const N: usize>(bytes: &Secret<Vec<u8>>) -> Result<Secret<[u8; N]>, SetupError> {
    let mut fixed = Secret::new([0; N]);
    let bytes: &[u8; N] = bytes.expose().as_slice().try_into().map_err(|_| SetupError::PayloadLength)?;
    fixed.expose_mut().copy_from_slice(bytes);
    Ok(fixed)
}

/// [Ed25519 1] a party takes its share; `None` if it is not one that the owner has made for this party and key.
fn take_share(
    vault: &Vault,
    sealed_identity: &[u8],
    TakeShare { key_id, party, share }: &TakeShare,
) -> Result<Option<ShareTaken>, StartError> {
    let label = label(key_id, number(*party)?)?;
    if sealed_identity.is_empty() {
        return Err(SetupError::IdentityMissing.into());
    }
    let identity = vault.open_identity(sealed_identity).map_err(|_| StartError::Unseal)?;
    let Ok(bytes) = identity.take_over(&label.encode(), share) else { return Ok(None) };
    let share = ImportedShare::decode(bytes.expose()).filter(|share| share.number == label.party.get());
    let Some((public, share)) = share.and_then(|share| Some((key_public(&share, key_id)?, share))) else {
        return Ok(None);
    };
    let (kind, secret) = (SealKind::KeyShare, share.encode());
    let sealed_share = sealed(vault.key.seal(kind, &label.encode(), &[], secret.expose(), &mut os_rng()));
    Ok(Some(ShareTaken { sealed_share, key_public: Some(public) }))
}
