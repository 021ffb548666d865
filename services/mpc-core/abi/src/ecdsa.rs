//! Threshold ECDSA through the interface.

use std::sync::Arc;

use engine::seal::{DataKey, ShareLabel};
use engine::session::{Progress, Protocol, Session, Step};
use engine::{Abort, AbortCause, Fault, PartyId, SetupError, Threshold};
use protocols::ecdsa::presign::MAX_BATCH;
use protocols::ecdsa::{
    DerivationPath, Ecdsa, FAMILY, KeyPublic, KeyShare, OpenShareError, PresignPayload, Presignature,
    PresignedSigning, Presigning, SignInput, SignPayload, Signature, Signing, decode_point, encode_point,
};

use crate::dealing::Dealt;
use crate::inputs::{Inputs, SealedShare, StartError, bounded_shares};
use crate::os_rng::os_rng;
use crate::proto;
use crate::session::{Offered, Prepared, sealed};
use crate::vault::{Exclusions, ReservedPlaces};

/// A share as a session began with it, for the case that a peer has to be excluded from it.
pub(crate) struct KeptShare {
    blob: Vec<u8>,
    label: ShareLabel,
    key: Arc<DataKey>,
    exclusions: Exclusions,
}

impl Offered for Signing {
    /// None at an observer.
    type Kept = Option<KeptShare>;

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        let payload = sign_payload(&mut inputs, None)?;
        if inputs.is_observer() {
            let input = SignInput::Observer(Box::new(key_public(&inputs.key_public()?)?));
            let settings = inputs.settings::<Self>(payload)?;
            return Ok(Prepared { settings, identity: None, input, kept: None });
        }
        let sealed_share = inputs.sealed_share(FAMILY)?;
        let settings = inputs.settings::<Self>(payload)?;
        let (share, kept) = usable(&inputs, sealed_share)?;
        let input = SignInput::Party(Box::new(share));
        Ok(Prepared { settings, identity: None, input, kept: Some(kept) })
    }

    fn done(signature: Signature, _: &mut Option<KeptShare>) -> proto::Done {
        signature_done(&signature)
    }

    fn settle(
        session: &mut Session<Self>,
        kept: &Option<KeptShare>,
        round: u8,
        step: Step<Signature>,
    ) -> Step<Signature> {
        match kept {
            Some(share) => share.settle(session, round, step),
            None => step,
        }
    }

    fn share_after(abort: &Abort, kept: &mut Option<KeptShare>) -> Vec<u8> {
        kept.as_ref().map_or_else(Vec::new, |share| share.after(abort))
    }
}

impl Offered for Presigning {
    type Kept = (KeptShare, ReservedPlaces);

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let count = inputs.presignature_count(MAX_BATCH)?;
        let payload = PresignPayload { path: path(&mut inputs)?, count }.encode();
        let sealed_share = inputs.sealed_share(FAMILY)?;
        let settings = inputs.settings::<Self>(payload)?;
        let (input, kept) = usable(&inputs, sealed_share)?;
        let places = inputs.vault()?.one_time_keys.reserve(count)?;
        Ok(Prepared { settings, identity: None, input, kept: (kept, places) })
    }

    fn done(made: Vec<Presignature>, (_, places): &mut Self::Kept) -> proto::Done {
        let name = |presignature: &Presignature| (*presignature.id(), presignature.party());
        let made = places.fill_all(made, name, |presignature, key| presignature.seal(key, &mut os_rng()));
        proto::Done { presignatures: sealed(made), ..proto::Done::default() }
    }

    fn settle(
        session: &mut Session<Self>,
        (share, _): &Self::Kept,
        round: u8,
        step: Step<Vec<Presignature>>,
    ) -> Step<Vec<Presignature>> {
        share.settle(session, round, step)
    }

    fn share_after(abort: &Abort, (share, _): &mut Self::Kept) -> Vec<u8> {
        share.after(abort)
    }
}

impl Offered for PresignedSigning {
    type Kept = ();

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        let id = inputs.presignature_id()?;
        let payload = sign_payload(&mut inputs, Some(id))?;
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

/// The rounds of signing and presigning in which transfers are used.
const TRANSFER_ROUNDS: core::ops::RangeInclusive<u8> = 1..=2;

impl KeptShare {
    /// A peer of this session has failed a check in another one that ran beside it. Each check tells a peer whether a
    /// guess at this party's secrets was right, so one failure has to be the last one: otherwise a peer could make as
    /// many guesses as sessions run at a time. So what a step has found leaves only if nothing of the kind has left
    /// another session before.
    fn settle<P: Protocol>(
        &self,
        session: &mut Session<P>,
        round: u8,
        step: Step<P::Output>,
    ) -> Step<P::Output> {
        let failed = match &step.progress {
            Progress::Aborted(abort) if abort.cause == AbortCause::TransferCheckFailed => {
                abort.culprits.as_slice()
            }
            // Nothing has been computed.
            Progress::Dropped(_) => return step,
            Progress::Waiting { .. } | Progress::Done(_) | Progress::Aborted(_) => &[],
        };
        if !TRANSFER_ROUNDS.contains(&round) {
            return step;
        }
        match self.exclusions.settle(&self.label, &session.context().peers(), failed) {
            Ok(()) => step,
            Err(earlier) => session.overrule(Fault::evident(AbortCause::TransferCheckFailed, earlier)),
        }
    }

    /// The share again, without what it had in common with those that failed a check of the transfers.
    fn after(&self, abort: &Abort) -> Vec<u8> {
        if abort.cause != AbortCause::TransferCheckFailed || abort.culprits.is_empty() {
            return Vec::new();
        }
        let excluded = self.exclusions.add(&self.label, &abort.culprits);
        let share = KeyShare::unseal(&self.key, &self.blob, &self.label).ok();
        sealed(share.and_then(|mut share| {
            excluded.iter().for_each(|peer| share.exclude(peer));
            share.seal(&self.key, &mut os_rng())
        }))
    }
}

fn open(share: &SealedShare<'_>) -> Result<KeyShare, StartError> {
    KeyShare::unseal(&share.key, share.blob, &share.label).map_err(StartError::from)
}

/// A share to multiply with. Peers that another session has excluded since it was sealed are excluded here too.
fn usable(inputs: &Inputs<'_>, sealed: SealedShare<'_>) -> Result<(KeyShare, KeptShare), StartError> {
    let mut share = open(&sealed)?;
    let exclusions = inputs.vault()?.exclusions.clone();
    exclusions.of(&sealed.label).iter().for_each(|peer| share.exclude(peer));
    let kept = KeptShare { blob: sealed.blob.to_vec(), label: sealed.label, key: sealed.key, exclusions };
    Ok((share, kept))
}

fn path(inputs: &mut Inputs<'_>) -> Result<DerivationPath, SetupError> {
    DerivationPath::new(&inputs.derivation_path()).ok_or(SetupError::DerivationPathInvalid)
}

fn sign_payload(inputs: &mut Inputs<'_>, presignature: Option<[u8; 32]>) -> Result<Vec<u8>, SetupError> {
    let digest = inputs.payload().as_slice().try_into().map_err(|_| SetupError::PayloadLength)?;
    Ok(SignPayload { digest, path: path(inputs)?, presignature }.encode())
}

impl Dealt for Ecdsa {
    const FAMILY: &'static str = FAMILY;

    fn unseal(share: &SealedShare<'_>) -> Result<KeyShare, OpenShareError> {
        KeyShare::unseal(&share.key, share.blob, &share.label)
    }

    fn seal(share: &KeyShare, key: &DataKey) -> Option<Vec<u8>> {
        share.seal(key, &mut os_rng())
    }

    fn public_of(share: &KeyShare) -> &KeyPublic {
        share.public()
    }

    fn from_message(public: &proto::KeyPublic) -> Result<KeyPublic, SetupError> {
        key_public(public)
    }

    fn to_message(public: &KeyPublic) -> proto::KeyPublic {
        key_public_message(public)
    }
}

fn signature_done(signature: &Signature) -> proto::Done {
    proto::Done {
        signature: signature.to_compact().to_vec(),
        recovery_id: Some(signature.recovery_id().into()),
        ..proto::Done::default()
    }
}

fn key_public(public: &proto::KeyPublic) -> Result<KeyPublic, SetupError> {
    let point = |bytes: &[u8]| decode_point(bytes.try_into().ok()?);
    let share = |share: &proto::VerificationShare| Some((PartyId::new(share.party)?, point(&share.point)?));
    let decode = || {
        let shares = bounded_shares(public)?;
        let decoded = KeyPublic {
            key_id: public.key_id.clone(),
            epoch: public.epoch,
            threshold: Threshold::new(public.threshold)?,
            public_key: point(&public.public_key)?,
            chain_code: public.chain_code.as_slice().try_into().ok()?,
            verification_shares: shares.iter().map(share).collect::<Option<_>>()?,
        };
        (public.proof_of_possession.is_empty() && decoded.well_formed()).then_some(decoded)
    };
    decode().ok_or(SetupError::KeyPublicInvalid)
}

fn key_public_message(public: &KeyPublic) -> proto::KeyPublic {
    proto::KeyPublic {
        public_key: encode_point(&public.public_key).to_vec(),
        threshold: u32::try_from(public.threshold.get()).unwrap_or(u32::MAX),
        key_id: public.key_id.clone(),
        epoch: public.epoch,
        verification_shares: public
            .verification_shares
            .iter()
            .map(|(party, point)| proto::VerificationShare {
                party: party.get().into(),
                point: encode_point(point).to_vec(),
            })
            .collect(),
        proof_of_possession: Vec::new(),
        chain_code: public.chain_code.to_vec(),
    }
}
