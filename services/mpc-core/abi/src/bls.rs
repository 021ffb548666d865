//! Threshold BLS through the interface.

use std::sync::Arc;

use engine::seal::DataKey;
use engine::{PartyId, SessionSettings, SetupError, Threshold};
use protocols::bls::{
    Bls, FAMILY, KeyPublic, KeyShare, Keygen, OpenShareError, SignInput, SignOutput, Signing,
    VerificationShare,
};

use crate::dealing::{Dealt, share_done};
use crate::inputs::{Inputs, SealedShare, StartError, bounded_shares};
use crate::judge::Judged;
use crate::os_rng::os_rng;
use crate::proto;
use crate::session::{Offered, Prepared};

impl Offered for Keygen {
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

    fn done(share: KeyShare, key: &mut Arc<DataKey>) -> proto::Done {
        share_done::<Bls>(&share, key)
    }
}

impl Judged for Keygen {
    fn agreed(inputs: &mut Inputs<'_>) -> Result<SessionSettings, SetupError> {
        let payload = inputs.payload();
        inputs.settings::<Self>(payload)
    }
}

impl Offered for Signing {
    type Kept = ();

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        let payload = inputs.payload();
        if inputs.is_observer() {
            let public = Box::new(key_public(inputs.key_public()?)?);
            let unverified = inputs.unverified();
            let settings = inputs.settings::<Self>(payload)?;
            let input = if unverified { SignInput::Combiner(public) } else { SignInput::Observer(public) };
            return Ok(Prepared { settings, identity: None, input, kept: () });
        }
        let share = inputs.sealed_share(FAMILY)?;
        let settings = inputs.settings::<Self>(payload)?;
        let input = SignInput::Party(Box::new(open(&share)?));
        Ok(Prepared { settings, identity: None, input, kept: () })
    }

    fn done(output: SignOutput, (): &mut ()) -> proto::Done {
        let culprit = |(party, cause): (PartyId, engine::AbortCause)| proto::Culprit {
            party: party.get().into(),
            cause: i32::from(cause.number()),
        };
        proto::Done {
            signature: output.signature.to_vec(),
            culprits: output.culprits.into_iter().map(culprit).collect(),
            ..proto::Done::default()
        }
    }
}

fn open(share: &SealedShare<'_>) -> Result<KeyShare, StartError> {
    KeyShare::unseal(&share.key, share.blob, &share.label).map_err(StartError::from)
}

impl Dealt for Bls {
    const FAMILY: &'static str = FAMILY;

    fn unseal(share: &SealedShare<'_>) -> Result<KeyShare, OpenShareError> {
        KeyShare::unseal_to_deal(&share.key, share.blob, &share.label)
    }

    fn seal(share: &KeyShare, key: &DataKey) -> Option<Vec<u8>> {
        share.seal(key, &mut os_rng())
    }

    fn public_of(share: &KeyShare) -> &KeyPublic {
        share.public()
    }

    fn from_message(public: &proto::KeyPublic) -> Result<KeyPublic, SetupError> {
        key_public(public.clone())
    }

    fn to_message(public: &KeyPublic) -> proto::KeyPublic {
        key_public_message(public)
    }
}

fn key_public(public: proto::KeyPublic) -> Result<KeyPublic, SetupError> {
    let share = |share: &proto::VerificationShare| {
        let party = PartyId::new(share.party)?;
        Some(VerificationShare { party, point: share.point.as_slice().try_into().ok()? })
    };
    let decode = || {
        let decoded = KeyPublic {
            public_key: public.public_key.as_slice().try_into().ok()?,
            threshold: Threshold::new(public.threshold)?,
            key_id: public.key_id.clone(),
            epoch: public.epoch,
            verification_shares: bounded_shares(&public)?.iter().map(share).collect::<Option<_>>()?,
            proof_of_possession: public.proof_of_possession.as_slice().try_into().ok()?,
        };
        (public.chain_code.is_empty() && decoded.well_formed()).then_some(decoded)
    };
    decode().ok_or(SetupError::KeyPublicInvalid)
}

fn key_public_message(public: &KeyPublic) -> proto::KeyPublic {
    proto::KeyPublic {
        public_key: public.public_key.to_vec(),
        threshold: u32::try_from(public.threshold.get()).unwrap_or(u32::MAX),
        key_id: public.key_id.clone(),
        epoch: public.epoch,
        verification_shares: public
            .verification_shares
            .iter()
            .map(|share| proto::VerificationShare {
                party: share.party.get().into(),
                point: share.point.to_vec(),
            })
            .collect(),
        proof_of_possession: public.proof_of_possession.to_vec(),
        chain_code: Vec::new(),
    }
}
