//! Threshold Schnorr signatures (Ed25519, BIP-340) through the interface.

use core::marker::PhantomData;
use engine::seal::DataKey;
use engine::{PartyId, SetupError, Threshold};
use protocols::bip32::DerivationPath;
use protocols::frost::presign::MAX_BATCH;
use protocols::frost::{
    Frost, KeyPublic, KeyShare, OpenShareError, PresignPayload, Presignature, PresignedSigning, Presigning,
    SignInput, SignPayload, Signature, Signing, Suite, Taproot, Target,
};

use crate::dealing::Dealt;
use crate::inputs::{Inputs, SealedShare, StartError, bounded_shares};
use crate::os_rng::os_rng;
use crate::proto;
use crate::session::{Offered, Prepared, sealed};
use crate::vault::ReservedPlaces;

impl<S: Suite> Offered for Signing<S> {
    type Kept = ();

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        let payload = sign_payload::<S>(&mut inputs, None)?;
        if inputs.is_observer() {
            let input = SignInput::Observer(Box::new(key_public(&inputs.key_public()?)?));
            let settings = inputs.settings::<Self>(payload)?;
            return Ok(Prepared { settings, identity: None, input, kept: () });
        }
        let sealed_share = inputs.sealed_share(S::FAMILY)?;
        let settings = inputs.settings::<Self>(payload)?;
        let input = SignInput::Party(Box::new(open::<S>(&sealed_share)?));
        Ok(Prepared { settings, identity: None, input, kept: () })
    }

    fn done(signature: Signature, (): &mut ()) -> proto::Done {
        signature_done(&signature)
    }
}

impl<S: Suite> Offered for Presigning<S> {
    type Kept = ReservedPlaces;

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let count = inputs.presignature_count(MAX_BATCH)?;
        let payload = PresignPayload { target: target::<S>(&mut inputs)?, count }.encode();
        let sealed_share = inputs.sealed_share(S::FAMILY)?;
        let settings = inputs.settings::<Self>(payload)?;
        let input = open::<S>(&sealed_share)?;
        let kept = inputs.vault()?.one_time_keys.reserve(count)?;
        Ok(Prepared { settings, identity: None, input, kept })
    }

    fn done(made: Vec<Presignature<S>>, places: &mut ReservedPlaces) -> proto::Done {
        let name = |presignature: &Presignature<S>| (*presignature.id(), presignature.party());
        let made = places.fill_all(made, name, |presignature, key| presignature.seal(key, &mut os_rng()));
        proto::Done { presignatures: sealed(made), ..proto::Done::default() }
    }
}

impl<S: Suite> Offered for PresignedSigning<S> {
    type Kept = ();

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        let id = inputs.presignature_id()?;
        let payload = sign_payload::<S>(&mut inputs, Some(id))?;
        if inputs.is_observer() {
            let input = SignInput::Observer(Box::new(key_public(&inputs.key_public()?)?));
            let settings = inputs.settings::<Self>(payload)?;
            return Ok(Prepared { settings, identity: None, input, kept: () });
        }
        let vault = inputs.vault()?;
        let blob = inputs.sealed_presignature()?;
        let settings = inputs.settings::<Self>(payload)?;
        let party = settings.me.ok_or(SetupError::SelfNotInParties)?;
        // From here on it is used up, whatever comes of it.
        let key = vault.one_time_keys.take(&id, party).ok_or(SetupError::PresignatureUnknown)?;
        let presignature = Presignature::unseal(&key, &blob).map_err(|_| StartError::Unseal)?;
        let input = SignInput::Party(Box::new(presignature));
        Ok(Prepared { settings, identity: None, input, kept: () })
    }

    fn done(signature: Signature, (): &mut ()) -> proto::Done {
        signature_done(&signature)
    }
}

fn open<S: Suite>(share: &SealedShare<'_>) -> Result<KeyShare<S>, StartError> {
    KeyShare::unseal(&share.key, share.blob, &share.label).map_err(StartError::from)
}

fn target<S: Suite>(inputs: &mut Inputs<'_>) -> Result<Target, SetupError> {
    let path = DerivationPath::new(&inputs.derivation_path()).ok_or(SetupError::DerivationPathInvalid)?;
    let root = inputs.taproot_merkle_root();
    if !S::DERIVES && (!path.steps().is_empty() || root.is_some()) {
        return Err(SetupError::InputUnexpected);
    }
    let taproot = match root {
        Some(root) => Some(Taproot::from_root(&root).ok_or(SetupError::PayloadInvalid)?),
        None => None,
    };
    Ok(Target { path, taproot })
}

fn sign_payload<S: Suite>(
    inputs: &mut Inputs<'_>,
    presignature: Option<[u8; 32]>,
) -> Result<Vec<u8>, SetupError> {
    let message = inputs.payload();
    Ok(SignPayload { target: target::<S>(inputs)?, presignature, message }.encode())
}

impl<S: Suite> Dealt for Frost<S> {
    const FAMILY: &'static str = S::FAMILY;

    fn unseal(share: &SealedShare<'_>) -> Result<KeyShare<S>, OpenShareError> {
        KeyShare::unseal(&share.key, share.blob, &share.label)
    }

    fn seal(share: &KeyShare<S>, key: &DataKey) -> Option<Vec<u8>> {
        share.seal(key, &mut os_rng())
    }

    fn public_of(share: &KeyShare<S>) -> &KeyPublic<S> {
        share.public()
    }

    fn from_message(public: &proto::KeyPublic) -> Result<KeyPublic<S>, SetupError> {
        key_public(public)
    }

    fn to_message(public: &KeyPublic<S>) -> proto::KeyPublic {
        key_public_message(public)
    }
}

fn signature_done(signature: &Signature) -> proto::Done {
    proto::Done { signature: signature.to_vec(), ..proto::Done::default() }
}

fn key_public<S: Suite>(public: &proto::KeyPublic) -> Result<KeyPublic<S>, SetupError> {
    let share = |share: &proto::VerificationShare| Some((PartyId::new(share.party)?, share.point.clone()));
    let decode = || {
        let chain_code = public.chain_code.as_slice();
        let decoded = KeyPublic {
            key_id: public.key_id.clone(),
            epoch: public.epoch,
            threshold: Threshold::new(public.threshold)?,
            public_key: public.public_key.clone(),
            chain_code: if S::DERIVES { chain_code.try_into().ok()? } else { [0; 32] },
            verification_shares: bounded_shares(public)?.iter().map(share).collect::<Option<_>>()?,
            suite: PhantomData,
        };
        let whole = S::DERIVES || chain_code.is_empty();
        (whole && public.proof_of_possession.is_empty() && decoded.well_formed()).then_some(decoded)
    };
    decode().ok_or(SetupError::KeyPublicInvalid)
}

fn key_public_message<S: Suite>(public: &KeyPublic<S>) -> proto::KeyPublic {
    proto::KeyPublic {
        public_key: public.public_key.clone(),
        threshold: u32::try_from(public.threshold.get()).unwrap_or(u32::MAX),
        key_id: public.key_id.clone(),
        epoch: public.epoch,
        verification_shares: public
            .verification_shares
            .iter()
            .map(|(party, point)| proto::VerificationShare {
                party: party.get().into(),
                point: point.clone(),
            })
            .collect(),
        proof_of_possession: Vec::new(),
        chain_code: if S::DERIVES { public.chain_code.to_vec() } else { Vec::new() },
    }
}
