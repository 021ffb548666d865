//! From encoded configuration to a running protocol, and from its steps to encoded ones.
//!
//! A scheme is a module that implements [`Offered`] for its protocols, and a line for each of them in [`REGISTRY`].

use circuit_sessions::{
    Answer, Deriving, OpenNonce, Pairing, Preparing, SeedDeriving, SeedPairing, Slip10Deriving, Slip10Keying,
    Talk,
};
use engine::session::{Progress, Protocol, Session, Step};
use engine::{Abort, EvidenceKey, PartyId, SessionSettings, SetupError};
use prost::Message;
use protocols::frost;

use crate::inputs::{Inputs, StartError};
use crate::os_rng::os_rng;
use crate::proto;
use crate::vault::Vault;

/// A protocol as this interface offers it.
pub(crate) trait Offered: Protocol {
    /// Data that stay beside the running session because its end needs them.
    type Kept;

    /// Takes from the inputs what the protocol needs. [`Inputs::settings`] refuses the rest.
    fn prepare(inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError>;

    /// The result, encoded and where it is secret sealed.
    fn done(output: Self::Output, kept: &mut Self::Kept) -> proto::Done;

    /// The step that leaves in place of `step`, which began in `round`, because of events outside of the session.
    fn settle(
        _session: &mut Session<Self>,
        _kept: &Self::Kept,
        _round: u8,
        step: Step<Self::Output>,
    ) -> Step<Self::Output> {
        step
    }

    /// The sealed key share that must replace the stored one after this abort. Empty if the stored one stays.
    fn share_after(_abort: &Abort, _kept: &mut Self::Kept) -> Vec<u8> {
        Vec::new()
    }
}

/// Everything that a session starts from.
pub(crate) struct Prepared<P: Offered> {
    pub(crate) settings: SessionSettings,
    /// Of parties in protocols with signed envelopes.
    pub(crate) identity: Option<EvidenceKey>,
    pub(crate) input: P::Input,
    pub(crate) kept: P::Kept,
}

type Start = fn(Inputs<'_>) -> Result<(AnySession, Vec<u8>), StartError>;

/// Every protocol there is, once.
const REGISTRY: &[(u16, Start)] = &[
    entry::<protocols::bls::Keygen>(),
    entry::<protocols::bls::Signing>(),
    entry::<protocols::bls::Refresh>(),
    entry::<protocols::bls::Reshare>(),
    entry::<protocols::ecdsa::Keygen>(),
    entry::<protocols::ecdsa::Signing>(),
    entry::<protocols::ecdsa::Presigning>(),
    entry::<protocols::ecdsa::PresignedSigning>(),
    entry::<protocols::ecdsa::Refresh>(),
    entry::<protocols::ecdsa::Reshare>(),
    entry::<frost::Keygen<frost::Ed25519>>(),
    entry::<frost::Signing<frost::Ed25519>>(),
    entry::<frost::Presigning<frost::Ed25519>>(),
    entry::<frost::PresignedSigning<frost::Ed25519>>(),
    entry::<frost::Refresh<frost::Ed25519>>(),
    entry::<frost::Reshare<frost::Ed25519>>(),
    entry::<frost::Keygen<frost::Bip340>>(),
    entry::<frost::Signing<frost::Bip340>>(),
    entry::<frost::Presigning<frost::Bip340>>(),
    entry::<frost::PresignedSigning<frost::Bip340>>(),
    entry::<frost::Refresh<frost::Bip340>>(),
    entry::<frost::Reshare<frost::Bip340>>(),
    entry::<Talk<Pairing>>(),
    entry::<Talk<Preparing>>(),
    entry::<Talk<OpenNonce>>(),
    entry::<Talk<Answer>>(),
    entry::<Talk<Deriving>>(),
    entry::<Talk<SeedPairing>>(),
    entry::<Talk<SeedDeriving>>(),
    entry::<Talk<Slip10Deriving>>(),
    entry::<Talk<Slip10Keying>>(),
    entry::<threshold_issuer::Keygen>(),
    entry::<threshold_issuer::Refresh>(),
    entry::<threshold_issuer::Publish>(),
    entry::<threshold_issuer::Join>(),
    entry::<threshold_issuer::OpeningKeygen>(),
];

const fn entry<P: Offered>() -> (u16, Start)
where
    Run<P>: Running + 'static,
{
    (P::ID.number, start::<P>)
}

fn start<P: Offered>(inputs: Inputs<'_>) -> Result<(AnySession, Vec<u8>), StartError>
where
    Run<P>: Running + 'static,
{
    let Prepared { settings, identity, input, mut kept } = P::prepare(inputs)?;
    let (session, step) = Session::<P>::start(settings, identity, input, &mut os_rng())?;
    let step = encode_step(&session, step, &mut kept);
    Ok((AnySession(Box::new(Run { session, kept })), step))
}

/// A running session of any protocol.
pub struct AnySession(Box<dyn Running>);

impl AnySession {
    /// Starts what `config` describes; also returns the first step, encoded.
    pub fn start(
        vault: Option<&Vault>,
        config: &[u8],
        sealed_identity: &[u8],
        sealed_share: &[u8],
    ) -> Result<(Self, Vec<u8>), StartError> {
        let config = proto::SessionConfig::decode(config).map_err(|_| StartError::Undecodable)?;
        let (_, start) = REGISTRY
            .iter()
            .find(|(number, _)| i32::from(*number) == config.protocol)
            .ok_or(SetupError::UnknownProtocol)?;
        start(Inputs::new(vault, config, sealed_identity, sealed_share))
    }

    /// Hands one envelope to the session; returns the step, encoded.
    pub fn handle(&mut self, sender: u32, envelope: &[u8]) -> Vec<u8> {
        match PartyId::new(sender) {
            Some(sender) => self.0.handle(sender, envelope),
            None => {
                let reason = i32::from(engine::Reject::Sender.number());
                let progress = Some(proto::Progress::Dropped(proto::Dropped { reason }));
                proto::Step { outgoing: Vec::new(), round: self.0.round().into(), progress }.encode_and_wipe()
            }
        }
    }
}

/// A session whose protocol no longer matters.
trait Running: Send {
    fn handle(&mut self, sender: PartyId, envelope: &[u8]) -> Vec<u8>;

    fn round(&self) -> u8;
}

struct Run<P: Offered> {
    session: Session<P>,
    kept: P::Kept,
}

impl<P: Offered> Running for Run<P>
where
    Session<P>: Send,
    P::Kept: Send,
{
    fn handle(&mut self, sender: PartyId, envelope: &[u8]) -> Vec<u8> {
        let Self { session, kept } = self;
        let round = session.round();
        let step = session.open(sender, envelope, &mut os_rng());
        let step = P::settle(session, kept, round, step);
        encode_step(session, step, kept)
    }

    fn round(&self) -> u8 {
        self.session.round()
    }
}

fn encode_step<P: Offered>(session: &Session<P>, step: Step<P::Output>, kept: &mut P::Kept) -> Vec<u8> {
    let numbers =
        |parties: &mut dyn Iterator<Item = PartyId>| parties.map(|party| u32::from(party.get())).collect();
    let progress = match step.progress {
        Progress::Waiting { missing } => {
            proto::Progress::Waiting(proto::Waiting { missing: numbers(&mut missing.iter()) })
        }
        Progress::Dropped(reject) => {
            proto::Progress::Dropped(proto::Dropped { reason: i32::from(reject.number()) })
        }
        Progress::Done(output) => proto::Progress::Done(P::done(output, kept)),
        Progress::Aborted(abort) => proto::Progress::Abort(proto::Abort {
            round: abort.round.into(),
            cause: i32::from(abort.cause.number()),
            culprits: numbers(&mut abort.culprits.iter().copied()),
            advice: abort.advice() as i32,
            detail: abort.to_string(),
            sealed_share: P::share_after(&abort, kept),
            suspects: numbers(&mut abort.suspects.iter().copied()),
            reporter: abort.reporter.map_or(0, |party| party.get().into()),
            evidence: abort.evidence,
        }),
    };
    let outgoing = step
        .outgoing
        .iter()
        .map(|envelope| proto::Outgoing {
            recipient: envelope.recipient().map_or(0, |party| party.get().into()),
            envelope: sealed(session.seal(envelope, &mut os_rng())),
            round: envelope.round().into(),
        })
        .collect();
    proto::Step { outgoing, round: step.round.into(), progress: Some(progress) }.encode_and_wipe()
}

/// A result that cannot be sealed must not be lost silently: the call unwinds to the entry point, which says so.
pub(crate) fn sealed<T>(made: Option<T>) -> T {
    made.unwrap_or_else(|| std::panic::resume_unwind(Box::new(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_the_contract_is_registered_once() {
        let mut registered: Vec<i32> = REGISTRY.iter().map(|(number, _)| i32::from(*number)).collect();
        registered.sort_unstable();
        let numbers: Vec<i32> = (1..=255).filter(|n| proto::ProtocolId::try_from(*n).is_ok()).collect();
        assert_eq!(registered, numbers);
    }
}
