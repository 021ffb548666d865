//! Sessions of a group's issuers, openers and members through the interface.

use std::sync::Arc;

use engine::seal::{DataKey, SealKind, ShareLabel};
use engine::{PartyId, SessionSettings, SetupError};
use group_signatures::GroupPublic;
use protocols::OpenShareError;
use protocols::dealing::Public;
use threshold_issuer::key::{Holders, KeyShare, Purpose, Shared, ToIssue};
use threshold_issuer::{
    AttestedGroup, IssuerShare, Join, JoinInput, JoinOutput, JoinTerms, Keygen, Publish, PublishInput, key_id,
};

use crate::dealing::{Dealt, share_done};
use crate::group_parties::{Configured, holders, holders_message};
use crate::inputs::{Inputs, SealedShare, StartError};
use crate::judge::Judged;
use crate::os_rng::os_rng;
use crate::proto;
use crate::refusal::Failure;
use crate::runs::{Run, Side};
use crate::session::{Offered, Prepared, sealed};

impl<K: Purpose> Dealt for Shared<K> {
    const FAMILY: &'static str = K::FAMILY;

    fn unseal(share: &SealedShare<'_>) -> Result<KeyShare<K>, OpenShareError> {
        KeyShare::unseal(&share.key, share.blob, &share.label)
    }

    fn seal(share: &KeyShare<K>, key: &DataKey) -> Option<Vec<u8>> {
        share.seal(key, &mut os_rng())
    }

    fn public_of(share: &KeyShare<K>) -> &Holders<K> {
        share.holders()
    }

    fn from_message(public: &proto::KeyPublic) -> Result<Holders<K>, SetupError> {
        holders(Some(public))
    }

    fn to_message(public: &Holders<K>) -> proto::KeyPublic {
        holders_message(public)
    }
}

/// Terms of a session that are not valid are the caller's mistake: it could have had them checked before.
fn valid<T>(checked: Result<T, Failure>) -> Result<T, StartError> {
    checked.map_err(|failure| match failure {
        Failure::Start(error) => error,
        Failure::Refused(_) => SetupError::GroupTermsInvalid.into(),
    })
}

/// The openers' key in the terms of a session of these issuers.
fn openers(inputs: &mut Inputs<'_>) -> Result<(Configured, group_signatures::AttestedKey), StartError> {
    let terms = inputs.group_terms()?;
    if !terms.attested.is_empty() {
        return Err(SetupError::InputUnexpected.into());
    }
    let configured = Configured::new(terms.parties.as_ref())?;
    let key = terms.openers.as_ref().ok_or(SetupError::GroupTermsMissing)?;
    let opener = valid(configured.attested_key(key))?;
    Ok((configured, opener))
}

/// [D1] the session of the configured issuers, all of them, for the key that is named after what the openers signed.
fn keygen_settings(inputs: &mut Inputs<'_>) -> Result<SessionSettings, StartError> {
    let (configured, opener) = openers(inputs)?;
    let payload = inputs.payload();
    let settings = inputs.settings::<Keygen>(payload)?;
    let issuers = &configured.issuers;
    let same = settings.roster.len() == issuers.identities().count()
        && settings
            .roster
            .iter()
            .zip(issuers.identities())
            .all(|(entry, (party, key))| entry.id == party && entry.evidence_key.as_ref() == Some(key));
    if !same || settings.threshold != issuers.threshold() || settings.key_id != key_id(&opener) {
        return Err(SetupError::GroupTermsInvalid.into());
    }
    Ok(settings)
}

impl Offered for Keygen {
    /// Seals the share.
    type Kept = Arc<DataKey>;

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let settings = keygen_settings(&mut inputs)?;
        let identity = Some(inputs.identity()?);
        let kept = Arc::clone(&inputs.vault()?.key);
        Ok(Prepared { settings, identity, input: (), kept })
    }

    fn done(share: IssuerShare, key: &mut Arc<DataKey>) -> proto::Done {
        share_done::<Shared<ToIssue>>(&share, key)
    }
}

impl Judged for Keygen {
    fn agreed(inputs: &mut Inputs<'_>) -> Result<SessionSettings, SetupError> {
        keygen_settings(inputs).map_err(|error| match error {
            StartError::Setup(error) => error,
            StartError::Undecodable | StartError::Unseal => SetupError::GroupTermsInvalid,
        })
    }
}

impl Offered for Publish {
    type Kept = ();

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let (_, opener) = openers(&mut inputs)?;
        let payload = inputs.payload();
        let sealed_share = inputs.sealed_share(ToIssue::FAMILY)?;
        let settings = inputs.settings::<Self>(payload)?;
        let share = Arc::new(Shared::<ToIssue>::unseal(&sealed_share)?);
        let input = PublishInput { share, opener };
        Ok(Prepared { settings, identity: None, input, kept: () })
    }

    fn done(group: GroupPublic, (): &mut ()) -> proto::Done {
        proto::Done { group: group.encode(), ..proto::Done::default() }
    }
}

/// The key and the group that a member's key is sealed under.
pub(crate) struct Sealing {
    key: Arc<DataKey>,
    group: Arc<AttestedGroup>,
}

impl Offered for Join {
    type Kept = Sealing;

    /// [T0] the run is the one that this vault has counted for the session. From the moment it is taken out it is used
    /// up, whatever comes of it.
    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let terms = inputs.group_terms()?;
        if terms.openers.is_some() {
            return Err(SetupError::InputUnexpected.into());
        }
        let configured = Configured::new(terms.parties.as_ref())?;
        let group = Arc::new(valid(configured.group(&terms.attested))?);
        let me = inputs.own()?;
        let issues = configured.issuers.identity(me).is_some();
        let share = if issues { Some(inputs.share_of(label(&group, me))?) } else { None };
        let mut settings = inputs.settings::<Self>(Vec::new())?;
        let identity = Some(inputs.identity()?);
        let vault = inputs.vault()?;
        let share = share.as_ref().map(Shared::<ToIssue>::unseal).transpose()?;
        let side = if issues { Side::Issuer } else { Side::Member };
        let run = vault.runs.take(settings.session_id.as_bytes(), side).ok_or(SetupError::RunUnknown)?;
        let (attempt, secret) = match run {
            Run::Issuer(attempt) => (attempt, None),
            Run::Member(attempt, secret) => (attempt, Some(secret)),
        };
        let terms = JoinTerms { group: Arc::clone(&group), attempt };
        settings.payload = terms.payload().to_vec();
        let input = match (share, secret) {
            (Some(share), None) => JoinInput::Issuer { terms, share: Arc::new(share) },
            (None, Some(secret)) => JoinInput::Member { terms, secret: *secret },
            (Some(_), Some(_)) | (None, None) => return Err(SetupError::InputUnexpected.into()),
        };
        let kept = Sealing { key: Arc::clone(&vault.key), group };
        Ok(Prepared { settings, identity, input, kept })
    }

    fn done(output: JoinOutput, Sealing { key, group }: &mut Sealing) -> proto::Done {
        match output {
            JoinOutput::Answered => proto::Done::default(),
            JoinOutput::Joined(member) => {
                let (kind, digest) = (SealKind::Member, group.group().digest());
                let blob = key.seal(kind, &[], digest, &member.encode(), &mut os_rng());
                proto::Done { sealed_share: sealed(blob), ..proto::Done::default() }
            }
        }
    }
}

/// The label of an issuer's share of the group's key.
pub(crate) fn label(group: &AttestedGroup, party: PartyId) -> ShareLabel {
    let issuers = group.issuers();
    ShareLabel {
        family: ToIssue::FAMILY.to_owned(),
        key_id: Public::key_id(issuers.as_ref()).to_owned(),
        party,
        epoch: Public::epoch(issuers.as_ref()),
        threshold: issuers.threshold(),
    }
}
