//! Key generation, refresh and reshare of every scheme through the interface.

use std::sync::Arc;

use engine::seal::DataKey;
use engine::wire::Writer;
use engine::{SessionSettings, SetupError};
use protocols::OpenShareError;
use protocols::dealing::{Generated, Keygen, Public, Refresh, Reshare, ReshareTerms, Reshared, Scheme};

use crate::inputs::{Inputs, SealedShare, StartError};
use crate::judge::Judged;
use crate::proto;
use crate::session::{Offered, Prepared, sealed};

/// A scheme's keys and shares as they cross the interface.
pub(crate) trait Dealt: Scheme {
    /// Names the scheme's shares.
    const FAMILY: &'static str;

    /// Opens a stored share.
    fn unseal(share: &SealedShare<'_>) -> Result<Self::Share, OpenShareError>;

    /// Seals a share.
    fn seal(share: &Self::Share, key: &DataKey) -> Option<Vec<u8>>;

    /// The public data inside a share.
    fn public_of(share: &Self::Share) -> &Self::Public;

    /// Public data as the caller gave them.
    fn from_message(public: &proto::KeyPublic) -> Result<Self::Public, SetupError>;

    /// Public data for the caller.
    fn to_message(public: &Self::Public) -> proto::KeyPublic;
}

/// A new share: sealed, with the public data.
pub(crate) fn share_done<S: Dealt>(share: &S::Share, key: &DataKey) -> proto::Done {
    proto::Done {
        sealed_share: sealed(S::seal(share, key)),
        key_public: Some(S::to_message(S::public_of(share))),
        ..proto::Done::default()
    }
}

impl<S: Dealt + Generated> Offered for Keygen<S> {
    /// Seals the share.
    type Kept = Arc<DataKey>;

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        let payload = inputs.payload();
        inputs.party_only()?;
        let settings = inputs.settings::<Self>(payload)?;
        let identity = Some(inputs.identity()?);
        let kept = Arc::clone(&inputs.vault()?.key);
        Ok(Prepared { settings, identity, input: (), kept })
    }

    fn done(share: S::Share, key: &mut Arc<DataKey>) -> proto::Done {
        share_done::<S>(&share, key)
    }
}

impl<S: Dealt> Offered for Refresh<S> {
    /// Seals the share.
    type Kept = Arc<DataKey>;

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let sealed_share = inputs.sealed_share(S::FAMILY)?;
        let mut settings = inputs.settings::<Self>(Vec::new())?;
        let identity = Some(inputs.identity()?);
        let share = S::unseal(&sealed_share)?;
        refreshed::<S>(&mut settings, S::public_of(&share))?;
        Ok(Prepared { settings, identity, input: share, kept: sealed_share.key })
    }

    fn done(share: S::Share, key: &mut Arc<DataKey>) -> proto::Done {
        share_done::<S>(&share, key)
    }
}

impl<S: Dealt> Offered for Reshare<S> {
    /// Seals the share.
    type Kept = Arc<DataKey>;

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let (dealers, receivers) = inputs.roles()?;
        let base = S::from_message(&inputs.key_public()?)?;
        let sealed_share = if inputs.is_one_of(&dealers) {
            let mut share = inputs.sealed_share(S::FAMILY)?;
            // The configuration has the new one.
            share.label.threshold = base.threshold();
            Some(share)
        } else {
            None
        };
        let terms = ReshareTerms::<S> { dealers, receivers, base };
        let mut settings = inputs.settings::<Self>(terms.encode())?;
        let identity = Some(inputs.identity()?);
        let input = sealed_share.as_ref().map(S::unseal).transpose()?;
        settings.epoch = settings.epoch.checked_add(1).ok_or(SetupError::EpochRange)?;
        Ok(Prepared { settings, identity, input, kept: Arc::clone(&inputs.vault()?.key) })
    }

    fn done(Reshared { public, share }: Reshared<S>, key: &mut Arc<DataKey>) -> proto::Done {
        match share {
            Some(share) => share_done::<S>(&share, key),
            None => proto::Done { key_public: Some(S::to_message(&public)), ..proto::Done::default() },
        }
    }
}

impl<S: Dealt + Generated> Judged for Keygen<S> {
    fn agreed(inputs: &mut Inputs<'_>) -> Result<SessionSettings, SetupError> {
        let payload = inputs.payload();
        inputs.settings::<Self>(payload)
    }
}

impl<S: Dealt> Judged for Refresh<S> {
    fn agreed(inputs: &mut Inputs<'_>) -> Result<SessionSettings, SetupError> {
        let base = S::from_message(&inputs.key_public()?)?;
        let mut settings = inputs.settings::<Self>(Vec::new())?;
        refreshed::<S>(&mut settings, &base)?;
        Ok(settings)
    }
}

impl<S: Dealt> Judged for Reshare<S> {
    fn agreed(inputs: &mut Inputs<'_>) -> Result<SessionSettings, SetupError> {
        let (dealers, receivers) = inputs.roles()?;
        let base = S::from_message(&inputs.key_public()?)?;
        let terms = ReshareTerms::<S> { dealers, receivers, base };
        let mut settings = inputs.settings::<Self>(terms.encode())?;
        settings.epoch = settings.epoch.checked_add(1).ok_or(SetupError::EpochRange)?;
        Ok(settings)
    }
}

/// The session is one of the epoch that it makes, and about the key as it was.
fn refreshed<S: Dealt>(settings: &mut SessionSettings, base: &S::Public) -> Result<(), SetupError> {
    settings.epoch = settings.epoch.checked_add(1).ok_or(SetupError::EpochRange)?;
    let mut payload = Writer::default();
    base.encode(&mut payload);
    settings.payload = payload.finish();
    Ok(())
}

impl From<OpenShareError> for StartError {
    fn from(error: OpenShareError) -> Self {
        match error {
            OpenShareError::Mismatch => SetupError::ShareMismatch.into(),
            OpenShareError::Unseal => StartError::Unseal,
            OpenShareError::Invalid => SetupError::ShareInvalid.into(),
        }
    }
}
