//! The keys of a group: the openers' key is made and signed, the issuers' is named, and all of it is put together.

use std::sync::Arc;

use engine::SetupError;
use group_signatures::{GroupId, GroupPublic};
use threshold_issuer::key::{Holders, ToIssue, ToOpen};
use threshold_issuer::{AttestedGroup, OpenerShare, key_id};

use super::caller::{Caller, group};
use crate::group_parties::{Configured, holders, holders_message, party, shown, signatures};
use crate::os_rng::os_rng;
use crate::proto::group_call::{
    AssembleGroup, AttestGroup, AttestOpenersKey, CheckGroup, CreateOpenerKey, NameIssuingKey,
};
use crate::proto::group_reply::{Attested, GroupChecked, IssuingKeyNamed, OpenerKeyCreated};
use crate::proto::{GroupParties, OpenersKey};
use crate::refusal::Failure;

/// [G1] an auditor draws its key alone.
pub(super) fn create_opener_key(
    caller: &Caller<'_>,
    call: &CreateOpenerKey,
) -> Result<OpenerKeyCreated, Failure> {
    let (vault, me) = (caller.vault()?, party(call.party)?);
    let share = OpenerShare::alone(&call.key_id, me, &mut os_rng()).ok_or(SetupError::KeyIdLength)?;
    let sealed_share = share.seal(&vault.key, &mut os_rng()).ok_or(SetupError::KeyIdLength)?;
    Ok(OpenerKeyCreated { sealed_share, key_public: Some(holders_message(share.holders())) })
}

/// [G1.2] an opener signs the openers' key.
pub(super) fn attest_openers_key(caller: &Caller<'_>, call: &AttestOpenersKey) -> Result<Attested, Failure> {
    let configured = Configured::new(call.parties.as_ref())?;
    let key = call.openers.as_ref().ok_or(SetupError::GroupTermsMissing)?;
    let public: Holders<ToOpen> = holders(key.key.as_ref())?;
    let share = caller.share(&public, call.party, &call.sealed_share)?;
    if share.holders() != &public {
        return Err(SetupError::KeyPublicInvalid.into());
    }
    let id = GroupId::new(&key.group, key.epoch)?;
    let signature = share.attest(&configured.openers, &id, &caller.identity()?)?;
    Ok(Attested { signature: signature.to_vec() })
}

/// [D1] the issuing key's name.
pub(super) fn name_issuing_key(call: &NameIssuingKey) -> Result<IssuingKeyNamed, Failure> {
    let (parties, openers): (Option<&GroupParties>, Option<&OpenersKey>) =
        (call.parties.as_ref(), call.openers.as_ref());
    let key = Configured::new(parties)?.attested_key(openers.ok_or(SetupError::GroupTermsMissing)?)?;
    Ok(IssuingKeyNamed { key_id: key_id(&key) })
}

/// [D4.2] an issuer signs the group.
pub(super) fn attest_group(caller: &Caller<'_>, call: &AttestGroup) -> Result<Attested, Failure> {
    let configured = Configured::new(call.parties.as_ref())?;
    let published = GroupPublic::decode(&call.published, &configured.openers)?;
    let public: Holders<ToIssue> = holders(call.issuers.as_ref())?;
    let share = caller.share(&public, call.party, &call.sealed_share)?;
    if share.holders() != &public {
        return Err(SetupError::KeyPublicInvalid.into());
    }
    let signature = share.attest(&published, &configured.issuers, &caller.identity()?)?;
    Ok(Attested { signature: signature.to_vec() })
}

/// [D4.3] puts a group together.
pub(super) fn assemble_group(call: &AssembleGroup) -> Result<GroupChecked, Failure> {
    let configured = Configured::new(call.parties.as_ref())?;
    let published = Arc::new(GroupPublic::decode(&call.published, &configured.openers)?);
    let public: Holders<ToIssue> = shown(call.issuers.as_ref(), "the issuing key")?;
    let signatures = signatures(&call.signatures)?;
    let group = AttestedGroup::new(published, Arc::new(public), &configured.issuers, &signatures)?;
    Ok(checked(&group))
}

/// [G3], [G4], [D4.3] checks a group.
pub(super) fn check_group(call: &CheckGroup) -> Result<GroupChecked, Failure> {
    let taken = group(call.group.as_ref())?;
    for earlier in &call.earlier {
        taken.group().check_after(group(Some(earlier))?.group())?;
    }
    Ok(checked(&taken))
}

fn checked(group: &AttestedGroup) -> GroupChecked {
    let public = group.group();
    GroupChecked {
        attested: group.encode(),
        name: public.name().to_owned(),
        epoch: public.epoch(),
        digest: public.digest().to_vec(),
        issuers: Some(holders_message(group.issuers().as_ref())),
    }
}
