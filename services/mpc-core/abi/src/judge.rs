//! The judge of what a party reports of another, for those that took no part: no vault, no identity, no session.

use engine::notice::{Verdict, judge_report};
use engine::{AbortCause, PartyId, SessionSettings, SetupError};
use prost::Message;
use protocols::{bls, ecdsa, frost};

use crate::inputs::{Inputs, StartError};
use crate::proto;
use crate::session::Offered;

/// A protocol with signed envelopes.
pub(crate) trait Judged: Offered {
    /// The agreement of all parties, from a configuration without a party of its own and with the key's public data as
    /// they were where there is a key.
    fn agreed(inputs: &mut Inputs<'_>) -> Result<SessionSettings, SetupError>;
}

type Judge = fn(&mut Inputs<'_>, &Accusation) -> Result<Verdict, SetupError>;

struct Accusation {
    cause: AbortCause,
    accused: PartyId,
    evidence: Vec<Vec<u8>>,
}

const JUDGES: &[(u16, Judge)] = &[
    judge_of::<bls::Keygen>(),
    judge_of::<bls::Refresh>(),
    judge_of::<bls::Reshare>(),
    judge_of::<ecdsa::Keygen>(),
    judge_of::<ecdsa::Refresh>(),
    judge_of::<ecdsa::Reshare>(),
    judge_of::<frost::Keygen<frost::Ed25519>>(),
    judge_of::<frost::Refresh<frost::Ed25519>>(),
    judge_of::<frost::Reshare<frost::Ed25519>>(),
    judge_of::<frost::Keygen<frost::Bip340>>(),
    judge_of::<frost::Refresh<frost::Bip340>>(),
    judge_of::<frost::Reshare<frost::Bip340>>(),
    judge_of::<threshold_issuer::Keygen>(),
    judge_of::<threshold_issuer::Refresh>(),
    judge_of::<threshold_issuer::OpeningKeygen>(),
];

const fn judge_of<P: Judged>() -> (u16, Judge) {
    (P::ID.number, |inputs, accusation| {
        let Accusation { cause, accused, evidence } = accusation;
        judge_report::<P>(P::agreed(inputs)?, *cause, *accused, evidence)
    })
}

/// The verdict on an encoded accusation about the session that an encoded configuration describes.
pub fn judge(config: &[u8], accusation: &[u8]) -> Result<proto::Verdict, StartError> {
    let config = proto::SessionConfig::decode(config).map_err(|_| StartError::Undecodable)?;
    let accusation = proto::Accusation::decode(accusation).map_err(|_| StartError::Undecodable)?;
    let cause = u8::try_from(accusation.cause).ok().and_then(AbortCause::from_number);
    let accused = PartyId::new(accusation.accused).ok_or(SetupError::PartyIdRange)?;
    let cause = cause.ok_or(StartError::Undecodable)?;
    let accusation = Accusation { cause, accused, evidence: accusation.evidence };
    let (_, judge) = JUDGES
        .iter()
        .find(|(number, _)| i32::from(*number) == config.protocol)
        .ok_or(SetupError::UnknownProtocol)?;
    let mut inputs = Inputs::new(None, config, &[], &[]);
    if !inputs.is_observer() {
        return Err(SetupError::InputUnexpected.into());
    }
    Ok(match judge(&mut inputs, &accusation)? {
        Verdict::Proven(fault) if fault.culprits() == [accused] => proto::Verdict::Proven,
        Verdict::Restarted(_) if cause == AbortCause::PartyRestarted => proto::Verdict::Restarted,
        Verdict::Proven(_) | Verdict::Restarted(_) => proto::Verdict::Another,
        Verdict::Told(_) => proto::Verdict::Told,
        Verdict::Refuted => proto::Verdict::Refuted,
    })
}
