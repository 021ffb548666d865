//! From encoded configuration to a running protocol, and from its steps to encoded ones.

use std::sync::Arc;

use engine::seal::{DataKey, ShareLabel};
use engine::session::{Progress, Protocol, Session, Step};
use engine::{
    EvidenceKey, EvidencePublicKey, PartyId, RosterEntry, SessionId, SessionSettings, SetupError, Threshold,
};
use prost::Message;
use protocols::bls::{
    self, KeyShare, Keygen, OpenShareError, SignInput, SignOutput, Signing, VerificationShare,
};

use crate::os_rng::OsRng;
use crate::proto;
use crate::vault::Vault;

/// Why no session was started.
#[derive(Debug, PartialEq, Eq)]
pub enum StartError {
    /// The configuration does not decode.
    Undecodable,
    /// A sealed input does not open.
    Unseal,
    /// The inputs do not fit each other.
    Setup(SetupError),
}

impl From<SetupError> for StartError {
    fn from(error: SetupError) -> Self {
        StartError::Setup(error)
    }
}

/// A running session of any protocol.
pub enum AnySession {
    /// BLS key generation. The finished share is sealed under the key.
    BlsKeygen(Box<Session<Keygen>>, Arc<DataKey>),
    /// BLS signing.
    BlsSign(Box<Session<Signing>>),
}

impl AnySession {
    /// Starts what `config` describes; also returns the first step, encoded.
    pub fn start(
        vault: Option<&Vault>,
        config: &[u8],
        sealed_identity: &[u8],
        sealed_share: &[u8],
    ) -> Result<(Self, Vec<u8>), StartError> {
        let config = proto::SessionConfig::decode(config).map_err(|_| StartError::Undecodable)?;
        match proto::ProtocolId::try_from(config.protocol) {
            Ok(proto::ProtocolId::BlsKeygen1) => start_keygen(vault, config, sealed_identity, sealed_share),
            Ok(proto::ProtocolId::BlsSign1) => start_sign(vault, config, sealed_share),
            Ok(proto::ProtocolId::Unspecified) | Err(_) => Err(SetupError::UnknownProtocol.into()),
        }
    }

    /// Hands one envelope to the session; returns the step, encoded.
    pub fn handle(&mut self, sender: u32, envelope: &[u8]) -> Vec<u8> {
        let Some(sender) = PartyId::new(sender) else { return self.unknown_sender() };
        match self {
            AnySession::BlsKeygen(session, key) => {
                encode_step(session.handle(sender, envelope, &mut OsRng), |share| keygen_done(&share, key))
            }
            AnySession::BlsSign(session) => {
                encode_step(session.handle(sender, envelope, &mut OsRng), sign_done)
            }
        }
    }
}

impl AnySession {
    fn unknown_sender(&self) -> Vec<u8> {
        let round = match self {
            AnySession::BlsKeygen(session, _) => session.round(),
            AnySession::BlsSign(session) => session.round(),
        };
        let dropped = proto::Dropped { reason: i32::from(engine::Reject::Sender.number()) };
        let progress = Some(proto::Progress::Dropped(dropped));
        proto::Step { outgoing: Vec::new(), round: round.into(), progress }.encode_and_wipe()
    }
}

fn start_keygen(
    vault: Option<&Vault>,
    config: proto::SessionConfig,
    sealed_identity: &[u8],
    sealed_share: &[u8],
) -> Result<(AnySession, Vec<u8>), StartError> {
    if !sealed_share.is_empty() || config.key_public.is_some() {
        return Err(SetupError::InputUnexpected.into());
    }
    if config.own == 0 {
        return Err(SetupError::ObserverNotAllowed.into());
    }
    let settings = settings::<Keygen>(config)?;
    let vault = vault.ok_or(SetupError::VaultMissing)?;
    let identity = open_identity(vault, sealed_identity)?;
    let key = Arc::clone(&vault.key);
    let (session, step) = Session::<Keygen>::start(settings, Some(identity), (), &mut OsRng)?;
    let step = encode_step(step, |share| keygen_done(&share, &key));
    Ok((AnySession::BlsKeygen(Box::new(session), key), step))
}

fn start_sign(
    vault: Option<&Vault>,
    config: proto::SessionConfig,
    sealed_share: &[u8],
) -> Result<(AnySession, Vec<u8>), StartError> {
    let (input, settings) = if config.own == 0 {
        if !sealed_share.is_empty() {
            return Err(SetupError::InputUnexpected.into());
        }
        let mut config = config;
        let public = key_public(config.key_public.take().ok_or(SetupError::KeyPublicMissing)?)?;
        (SignInput::Observer(Box::new(public)), settings::<Signing>(config)?)
    } else {
        if config.key_public.is_some() {
            return Err(SetupError::InputUnexpected.into());
        }
        let settings = settings::<Signing>(config)?;
        let vault = vault.ok_or(SetupError::VaultMissing)?;
        (SignInput::Party(Box::new(open_share(vault, &settings, sealed_share)?)), settings)
    };
    let (session, step) = Session::<Signing>::start(settings, None, input, &mut OsRng)?;
    Ok((AnySession::BlsSign(Box::new(session)), encode_step(step, sign_done)))
}

fn open_identity(vault: &Vault, sealed: &[u8]) -> Result<EvidenceKey, StartError> {
    if sealed.is_empty() {
        return Err(SetupError::IdentityMissing.into());
    }
    vault.open_identity(sealed).map_err(|_| StartError::Unseal)
}

fn open_share(vault: &Vault, settings: &SessionSettings, sealed: &[u8]) -> Result<KeyShare, StartError> {
    if sealed.is_empty() {
        return Err(SetupError::ShareMissing.into());
    }
    let expected = ShareLabel {
        family: bls::FAMILY.to_owned(),
        key_id: settings.key_id.clone(),
        party: settings.me.ok_or(SetupError::SelfNotInParties)?,
        epoch: settings.epoch,
        threshold: settings.threshold,
    };
    KeyShare::unseal(&vault.key, sealed, &expected).map_err(|error| match error {
        OpenShareError::Mismatch => SetupError::ShareMismatch.into(),
        OpenShareError::Unseal => StartError::Unseal,
        OpenShareError::Invalid => SetupError::ShareInvalid.into(),
    })
}

fn settings<P: Protocol>(config: proto::SessionConfig) -> Result<SessionSettings, SetupError> {
    let session_id: [u8; 32] =
        config.session_id.as_slice().try_into().map_err(|_| SetupError::SessionIdLength)?;
    let me = match config.own {
        0 => None,
        number => Some(PartyId::new(number).ok_or(SetupError::PartyIdRange)?),
    };
    if config.parties.len() > engine::MAX_PARTIES {
        return Err(SetupError::PartyCount);
    }
    let roster = config.parties.iter().map(roster_entry::<P>).collect::<Result<_, _>>()?;
    Ok(SessionSettings {
        session_id: SessionId::new(session_id),
        me,
        roster,
        threshold: Threshold::new(config.threshold).ok_or(SetupError::ThresholdRange)?,
        key_id: config.key_id,
        epoch: config.epoch,
        payload: config.payload,
    })
}

/// Evidence keys matter, and are looked at, only where envelopes are signed.
fn roster_entry<P: Protocol>(party: &proto::Party) -> Result<RosterEntry, SetupError> {
    let id = PartyId::new(party.id).ok_or(SetupError::PartyIdRange)?;
    let evidence_key = if P::SIGNED {
        Some(EvidencePublicKey::from_bytes(&party.evidence_key).ok_or(SetupError::EvidenceKeyInvalid)?)
    } else {
        None
    };
    Ok(RosterEntry { id, evidence_key })
}

fn key_public(public: proto::KeyPublic) -> Result<bls::KeyPublic, SetupError> {
    let invalid = SetupError::KeyPublicInvalid;
    let share = |share: &proto::VerificationShare| {
        let party = PartyId::new(share.party)?;
        Some(VerificationShare { party, point: share.point.as_slice().try_into().ok()? })
    };
    let shares: Option<Vec<VerificationShare>> = public.verification_shares.iter().map(share).collect();
    Ok(bls::KeyPublic {
        public_key: public.public_key.as_slice().try_into().map_err(|_| invalid.clone())?,
        threshold: Threshold::new(public.threshold).ok_or(invalid.clone())?,
        key_id: public.key_id,
        epoch: public.epoch,
        verification_shares: shares.ok_or(invalid.clone())?,
        proof_of_possession: public.proof_of_possession.as_slice().try_into().map_err(|_| invalid)?,
    })
}

fn key_public_message(public: &bls::KeyPublic) -> proto::KeyPublic {
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

/// A share that cannot be sealed must not be lost silently: the call unwinds to the entry point, which says so.
fn keygen_done(share: &KeyShare, key: &DataKey) -> proto::Done {
    let Some(sealed_share) = share.seal(key, &mut OsRng) else { std::panic::resume_unwind(Box::new(())) };
    proto::Done {
        sealed_share,
        key_public: Some(key_public_message(share.public())),
        ..proto::Done::default()
    }
}

fn sign_done(output: SignOutput) -> proto::Done {
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

fn encode_step<T>(step: Step<T>, done: impl FnOnce(T) -> proto::Done) -> Vec<u8> {
    let numbers =
        |parties: &mut dyn Iterator<Item = PartyId>| parties.map(|party| u32::from(party.get())).collect();
    let progress = match step.progress {
        Progress::Waiting { missing } => {
            proto::Progress::Waiting(proto::Waiting { missing: numbers(&mut missing.iter()) })
        }
        Progress::Dropped(reject) => {
            proto::Progress::Dropped(proto::Dropped { reason: i32::from(reject.number()) })
        }
        Progress::Done(output) => proto::Progress::Done(done(output)),
        Progress::Aborted(abort) => proto::Progress::Abort(proto::Abort {
            round: abort.round.into(),
            cause: i32::from(abort.cause.number()),
            culprits: numbers(&mut abort.culprits.iter().copied()),
            advice: abort.advice() as i32,
            detail: abort.to_string(),
            evidence: abort.evidence,
            sealed_share: Vec::new(),
        }),
    };
    let outgoing = step
        .outgoing
        .iter()
        .map(|envelope| proto::Outgoing {
            recipient: envelope.recipient().map_or(0, |party| party.get().into()),
            envelope: envelope.encode(),
            round: envelope.round().into(),
        })
        .collect();
    proto::Step { outgoing, round: step.round.into(), progress: Some(progress) }.encode_and_wipe()
}
