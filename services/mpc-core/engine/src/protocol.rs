//! The form of a protocol: rounds and steps.

use std::sync::Arc;

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::body::{Body, BroadcastBody, PrivateBody};
use crate::broadcast::BroadcastLog;
use crate::context::{ProtocolId, SessionContext};
use crate::envelope::Envelope;
use crate::error::{AbortCause, SetupError};
use crate::fault::Fault;
use crate::mailbox::Inbox;
use crate::party::{PartyId, PartySet};
use crate::rounds::RoundRule;
use crate::view::View;
use crate::wire::Writer;

/// The messages that a step sends. Headers, echo digests and signatures are added by the session.
#[derive(Default)]
pub struct Outbox(pub(crate) Vec<Draft>);

pub(crate) struct Draft {
    pub(crate) round: u8,
    pub(crate) recipient: Option<PartyId>,
    pub(crate) body: Zeroizing<Vec<u8>>,
}

impl Outbox {
    /// Nothing to send.
    pub fn new() -> Self {
        Self::default()
    }

    /// One body for all.
    pub fn broadcast<B: BroadcastBody>(&mut self, body: &B) {
        self.push(None, body);
    }

    /// One body for one party.
    pub fn private<B: PrivateBody>(&mut self, recipient: PartyId, body: &B) {
        self.push(Some(recipient), body);
    }

    /// One body for one party, in a round that only the run of the protocol tells.
    pub fn private_in(&mut self, round: u8, recipient: PartyId, body: Vec<u8>) {
        self.0.push(Draft { round, recipient: Some(recipient), body: Zeroizing::new(body) });
    }

    fn push<B: Body>(&mut self, recipient: Option<PartyId>, body: &B) {
        let mut writer = Writer::default();
        body.encode(&mut writer);
        self.0.push(Draft { round: B::ROUND, recipient, body: Zeroizing::new(writer.finish()) });
    }
}

/// Where a step of a protocol leads.
pub enum Next<P: Protocol> {
    /// The next round, with its messages.
    Round(P, Outbox),
    /// The same round, which stays open for the parties whose message is missing.
    Stay(P),
    /// The end.
    Done(P::Output),
}

/// One party's side of one protocol, as the enum of its rounds. A step consumes the old round and makes the
/// next one, so what must be used once is used once.
pub trait Protocol: Sized {
    /// Scheme, operation and version.
    const ID: ProtocolId;
    /// Whether envelopes carry evidence signatures and echo digests, so that blame can be transferred.
    const SIGNED: bool;
    /// The rounds, the first one first.
    const ROUNDS: &'static [RoundRule];
    /// The input that it starts from, consumed: key share, presignature, public data.
    type Input;
    /// The result that it makes: key share, presignature or verified signature.
    type Output;

    /// Hash of what all who take part hold alike and the settings do not name: the public data of a key. It is part of
    /// the session's digest, so parties that hold different data do not understand each other, and none of them can
    /// take for a deviation what follows from the difference. `None` where nothing of the kind is held, or the payload
    /// names it.
    fn held_alike(_: &Self::Input) -> Option<[u8; 32]> {
        None
    }

    /// Checks the input against the context and makes the first round with its messages.
    fn start(
        ctx: &SessionContext,
        input: Self::Input,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError>;

    /// Whether [`Protocol::advance`] can do something with unused messages of `waiting`. By default: all peers'. Not
    /// asked in a protocol with signed envelopes, where nobody may advance without having seen everybody's message.
    fn ready(&self, ctx: &SessionContext, waiting: &PartySet) -> bool {
        ctx.peers().minus(waiting).is_empty()
    }

    /// One step. In a protocol with signed envelopes all echo digests of the inbox have been compared before.
    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault>;

    /// Whether `evidence` shows that `accused` deviated in the way `cause` says: genuine signed envelopes of this
    /// session's rounds, no two of them different messages for one place, all of a party's from one run. Evidence that
    /// only means something in the light of earlier broadcasts is judged by a [`View`] made from them. A pure function
    /// of its arguments, so that all honest parties come to the same verdict.
    fn judge(ctx: &SessionContext, cause: AbortCause, accused: PartyId, evidence: &[Arc<Envelope>]) -> bool;
}

/// The broadcasts of earlier rounds, for a step that has to show them as evidence.
pub struct History<'a> {
    pub(crate) ctx: &'a SessionContext,
    pub(crate) log: &'a BroadcastLog,
    pub(crate) round: u8,
}

impl History<'_> {
    /// All of them, own ones included.
    pub fn view(&self) -> Result<View, Fault> {
        View::assemble(self.ctx, self.round, self.log.before(self.round)).ok_or_else(Fault::internal)
    }

    /// The broadcast of one party in one earlier round.
    pub fn broadcast(&self, round: u8, sender: PartyId) -> Result<Arc<Envelope>, Fault> {
        let earlier = self.log.before(self.round);
        let found = earlier.into_iter().find(|e| e.round() == round && e.sender() == sender);
        found.map(Arc::clone).ok_or_else(Fault::internal)
    }
}
