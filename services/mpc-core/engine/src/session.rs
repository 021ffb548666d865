//! Runs one protocol for one party: admits messages, turns rounds, and settles who is to blame when they fail.
//!
//! A protocol describes its rounds by [`Protocol`]; everything that does not depend on the scheme is done here once.
//! The rules, with their reasons, are in `docs/protocols/bls.md` section "Blame".

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::broadcast::{BroadcastLog, read_envelopes, write_envelopes};
use crate::context::{ProtocolId, SessionContext, SessionSettings};
use crate::envelope::{Delivery, ENVELOPE_OVERHEAD_BYTES, Envelope, MAX_BODY_BYTES};
use crate::evidence::EvidenceKey;
use crate::fault::{Abort, AbortCause, Fault, Reject, SetupError};
use crate::mailbox::{Inbox, Mailbox, Posted, Window};
use crate::party::{PartyId, PartySet};
use crate::wire::{Malformed, Reader, Writer};

/// Round number of a notice: "I abort, for this reason, and here is why you should too". Accepted in every round.
pub const NOTICE_ROUND: u8 = 255;
/// Round number of a disclosure: "our views differ, here is mine". Accepted in every round.
pub const DISCLOSURE_ROUND: u8 = 254;

/// How often a notice may be about a notice. Honest parties stay below it; it bounds the work that a forged chain causes.
const MAX_NOTICE_DEPTH: usize = 2;

/// What the envelopes of one round look like.
#[derive(Clone, Copy, Debug)]
pub struct RoundRule {
    /// To all or to one.
    pub delivery: Delivery,
    /// Longest body, in bytes.
    pub max_body: usize,
}

/// The body of one kind of message.
pub trait Body: Sized {
    /// The round it belongs to, from 1.
    const ROUND: u8;

    /// Writes the encoding.
    fn encode(&self, writer: &mut Writer);

    /// Reads and checks everything that can be checked without another message. The cause says what was wrong.
    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause>;
}

/// Between whom a body travels: what it consists of may depend on their roles.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Who sent it.
    pub sender: PartyId,
    /// Whom it is for; `None` for all.
    pub recipient: Option<PartyId>,
}

/// A body that all parties get alike.
pub trait BroadcastBody: Body {}

/// A body that one party gets. Implementations hold what is secret in [`crate::Secret`].
pub trait PrivateBody: Body {}

impl From<Malformed> for AbortCause {
    fn from(_: Malformed) -> Self {
        AbortCause::MalformedBody
    }
}

/// Decodes the whole body of an envelope.
pub fn parse<B: Body>(ctx: &SessionContext, envelope: &Envelope) -> Result<B, AbortCause> {
    if envelope.round() != B::ROUND {
        return Err(AbortCause::MalformedBody);
    }
    let mut reader = Reader::new(envelope.body());
    let route = Route { sender: envelope.sender(), recipient: envelope.recipient() };
    let body = B::decode(&mut reader, ctx, route)?;
    reader.finish()?;
    Ok(body)
}

/// What a step sends. Headers, echo digests and signatures are added by the session.
#[derive(Default)]
pub struct Outbox(Vec<Draft>);

struct Draft {
    round: u8,
    recipient: Option<PartyId>,
    body: Zeroizing<Vec<u8>>,
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

    fn push<B: Body>(&mut self, recipient: Option<PartyId>, body: &B) {
        let mut writer = Writer::default();
        body.encode(&mut writer);
        self.0.push(Draft { round: B::ROUND, recipient, body: Zeroizing::new(writer.finish()) });
    }
}

/// Where a step of a protocol leads.
pub enum Next<P: Protocol> {
    /// To the next round, with its messages.
    Round(P, Outbox),
    /// Nowhere yet: the round stays open for those whose message is missing.
    Stay(P),
    /// To the end.
    Done(P::Output),
}

/// One party's part in one protocol, as the enum of its rounds. A step consumes the old round and makes the next one,
/// so what must be used once is used once.
pub trait Protocol: Sized {
    /// Scheme, operation and version.
    const ID: ProtocolId;
    /// Whether envelopes carry evidence signatures and echo digests, so that blame can be transferred.
    const SIGNED: bool;
    /// The rounds, the first one first.
    const ROUNDS: &'static [RoundRule];
    /// What it starts from, consumed: key share, presignature, public data.
    type Input;
    /// What it makes: key share, presignature or verified signature.
    type Output;

    /// Checks the input against the context and makes the first round with its messages.
    fn start(
        ctx: &SessionContext,
        input: Self::Input,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError>;

    /// Whether [`Protocol::advance`] can do something with unused messages of `waiting`. By default: all peers'.
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

    /// Whether `evidence`, genuine signed envelopes of this session, shows that `accused` deviated in the way `cause`
    /// says. A pure function of its arguments, so that all honest parties come to the same verdict.
    fn judge(ctx: &SessionContext, cause: AbortCause, accused: PartyId, evidence: &[Arc<Envelope>]) -> bool;
}

/// The broadcasts of earlier rounds, for a step that has to show them as evidence.
pub struct History<'a> {
    log: &'a BroadcastLog,
    round: u8,
}

impl History<'_> {
    /// All of them, in order of round and party; own ones included.
    pub fn broadcasts(&self) -> Vec<Arc<Envelope>> {
        self.log.before(self.round).map(Arc::clone).collect()
    }

    /// The broadcast of one party in one earlier round.
    pub fn broadcast(&self, round: u8, sender: PartyId) -> Option<Arc<Envelope>> {
        self.log.before(self.round).find(|e| e.round() == round && e.sender() == sender).map(Arc::clone)
    }
}

/// The echo digest that an envelope of `round` must carry if its sender saw exactly `broadcasts` before. For judging
/// evidence that only means something in the light of what came before it.
pub fn echo_of(ctx: &SessionContext, round: u8, broadcasts: &[Arc<Envelope>]) -> [u8; 32] {
    let mut log = BroadcastLog::default();
    for envelope in broadcasts {
        if envelope.delivery() == Delivery::Broadcast {
            log.witness(envelope);
        }
    }
    log.echo(ctx, round)
}

/// What one call produced.
pub struct Step<T> {
    /// To be sent whatever the progress says.
    pub outgoing: Vec<Envelope>,
    /// The round this party is in now; 0 after the end.
    pub round: u8,
    /// What became of the run.
    pub progress: Progress<T>,
}

/// What became of the run in one call.
pub enum Progress<T> {
    /// It needs the message of these parties.
    Waiting {
        /// Ascending. Empty after the end.
        missing: PartySet,
    },
    /// The message was ignored.
    Dropped(Reject),
    /// It is done.
    Done(T),
    /// It is over without a result. May follow a [`Progress::Done`], and an abort without culprit, when another party
    /// proves what this one could not see.
    Aborted(Abort),
}

enum Phase<P> {
    /// Boxed, so that a round that is over is nowhere in the session.
    Running(Box<P>),
    /// Views differ: comparing disclosures.
    Disputing,
    /// Done, or aborted without a culprit. Proof of a deviation is still heard, and disclosures are answered.
    Ended,
    /// Nothing is heard any more.
    Over,
}

/// One party's run of one protocol. Every effect is in arguments and return values.
pub struct Session<P: Protocol> {
    ctx: SessionContext,
    evidence_key: Option<EvidenceKey>,
    phase: Phase<P>,
    round: u8,
    mailbox: Mailbox,
    /// Disclosures of peers by sender, kept until the dispute is settled.
    disclosures: BTreeMap<PartyId, Arc<Envelope>>,
    /// Envelopes of the current round whose echo digest differs from ours: the claims to be supported in a dispute.
    claims: Vec<Arc<Envelope>>,
    log: BroadcastLog,
    disclosed: bool,
}

enum Place {
    Round(Window),
    Notice,
    Disclosure,
}

impl<P: Protocol> Session<P> {
    /// Checks the settings, starts the protocol, and goes as far as that is possible alone.
    ///
    /// `evidence_key` is needed by protocols with signed envelopes, and must be the one that the roster names.
    pub fn start(
        settings: SessionSettings,
        evidence_key: Option<EvidenceKey>,
        input: P::Input,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Step<P::Output>), SetupError> {
        let ctx = SessionContext::new(P::ID, P::SIGNED, settings)?;
        if let (true, Some(me)) = (P::SIGNED, ctx.me()) {
            let own = evidence_key.as_ref().ok_or(SetupError::IdentityMissing)?;
            if ctx.evidence_key(me) != Some(&own.public()) {
                return Err(SetupError::IdentityMismatch);
            }
        }
        let (first, outbox) = P::start(&ctx, input, rng)?;
        let mut session = Self {
            ctx,
            evidence_key: evidence_key.filter(|_| P::SIGNED),
            phase: Phase::Running(Box::new(first)),
            round: 1,
            mailbox: Mailbox::default(),
            disclosures: BTreeMap::new(),
            claims: Vec::new(),
            log: BroadcastLog::default(),
            disclosed: false,
        };
        let mut outgoing = Vec::new();
        session.send(outbox, &mut outgoing);
        let progress = session.turn_rounds(&mut outgoing, rng);
        let step = session.step(outgoing, progress);
        Ok((session, step))
    }

    /// Takes one received message, of which the channel proved that `from` sent it.
    pub fn handle(&mut self, from: PartyId, bytes: &[u8], rng: &mut dyn CryptoRng) -> Step<P::Output> {
        let mut outgoing = Vec::new();
        let progress = match self.receive(from, bytes, &mut outgoing, rng) {
            Ok(progress) => progress,
            Err(reject) => Progress::Dropped(reject),
        };
        self.step(outgoing, progress)
    }

    /// Ends the run for a reason that lies outside of it. Does nothing after the end.
    pub fn stop(&mut self, fault: Fault) -> Step<P::Output> {
        let mut outgoing = Vec::new();
        let progress = match self.phase {
            Phase::Running(_) | Phase::Disputing => self.abort(fault, None, &mut outgoing),
            Phase::Ended | Phase::Over => Progress::Dropped(Reject::RoundPast),
        };
        self.step(outgoing, progress)
    }

    /// What was agreed before the first message.
    pub fn context(&self) -> &SessionContext {
        &self.ctx
    }

    /// The round this party is in; 0 after the end.
    pub fn round(&self) -> u8 {
        match self.phase {
            Phase::Running(_) | Phase::Disputing => self.round,
            Phase::Ended | Phase::Over => 0,
        }
    }

    fn step(&self, outgoing: Vec<Envelope>, progress: Progress<P::Output>) -> Step<P::Output> {
        Step { outgoing, round: self.round(), progress }
    }

    fn receive(
        &mut self,
        from: PartyId,
        bytes: &[u8],
        outgoing: &mut Vec<Envelope>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Progress<P::Output>, Reject> {
        let envelope = Arc::new(Envelope::decode(bytes)?);
        let window = match self.admit(from, &envelope)? {
            Place::Notice => return self.hear_notice(envelope, outgoing),
            Place::Disclosure => return self.hear_disclosure(envelope, outgoing),
            Place::Round(window) => window,
        };
        let conflict = match self.mailbox.post(window, &envelope) {
            Posted::Again => return Err(Reject::Duplicate),
            Posted::Stored if P::SIGNED && envelope.delivery() == Delivery::Broadcast => {
                self.log.witness(&envelope)
            }
            Posted::Stored => None,
            Posted::Conflict(held) => Some(held),
        };
        match conflict {
            None => Ok(self.turn_rounds(outgoing, rng)),
            Some(held) if P::SIGNED => {
                let culprit = envelope.sender();
                let fault = Fault::proven(AbortCause::Equivocation, culprit, vec![held, envelope]);
                Ok(self.abort(fault, None, outgoing))
            }
            Some(_) => Err(Reject::Duplicate),
        }
    }

    /// Decides whether a message belongs here at all. Until every check has passed nobody is blamed for it.
    fn admit(&self, from: PartyId, envelope: &Envelope) -> Result<Place, Reject> {
        if envelope.protocol != P::ID.number {
            return Err(Reject::Protocol);
        }
        if &envelope.session != self.ctx.digest() {
            return Err(Reject::Session);
        }
        let sender = envelope.sender();
        if sender != from || Some(sender) == self.ctx.me() || !self.ctx.parties().contains(sender) {
            return Err(Reject::Sender);
        }
        if envelope.recipient().is_some_and(|recipient| Some(recipient) != self.ctx.me()) {
            return Err(Reject::Recipient);
        }
        let place = self.place(envelope.round())?;
        let rule = rule_of::<P>(&self.ctx, envelope.round()).ok_or(Reject::RoundFuture)?;
        if envelope.delivery() != rule.delivery || envelope.signature.is_some() != P::SIGNED {
            return Err(Reject::Delivery);
        }
        if envelope.body().len() > rule.max_body {
            return Err(Reject::Size);
        }
        if P::SIGNED && !envelope.signature_verifies(&self.ctx) {
            return Err(Reject::Signature);
        }
        Ok(place)
    }

    fn place(&self, round: u8) -> Result<Place, Reject> {
        let running = match self.phase {
            Phase::Over => return Err(Reject::RoundPast),
            Phase::Running(_) => true,
            Phase::Disputing | Phase::Ended => false,
        };
        match round {
            NOTICE_ROUND if P::SIGNED => Ok(Place::Notice),
            DISCLOSURE_ROUND if P::SIGNED => Ok(Place::Disclosure),
            _ if !running || round < self.round => Err(Reject::RoundPast),
            _ if round == self.round => Ok(Place::Round(Window::Current)),
            _ if round == self.round + 1 => Ok(Place::Round(Window::Next)),
            _ => Err(Reject::RoundFuture),
        }
    }

    /// Advances while there is enough to advance with.
    fn turn_rounds(&mut self, outgoing: &mut Vec<Envelope>, rng: &mut dyn CryptoRng) -> Progress<P::Output> {
        loop {
            let state = match core::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Running(state) => state,
                phase @ (Phase::Disputing | Phase::Ended | Phase::Over) => {
                    self.phase = phase;
                    return Progress::Waiting { missing: PartySet::new() };
                }
            };
            if !state.ready(&self.ctx, &self.mailbox.waiting()) {
                self.phase = Phase::Running(state);
                return self.waiting();
            }
            let inbox = self.mailbox.take();
            if P::SIGNED && self.views_differ(&inbox) {
                return self.dispute(outgoing);
            }
            let history = History { log: &self.log, round: self.round };
            match (*state).advance(&self.ctx, inbox, &history, rng) {
                Ok(Next::Round(state, outbox)) => {
                    self.phase = Phase::Running(Box::new(state));
                    self.round += 1;
                    self.mailbox.turn();
                    self.send(outbox, outgoing);
                }
                Ok(Next::Stay(state)) => {
                    self.phase = Phase::Running(Box::new(state));
                    return self.waiting();
                }
                Ok(Next::Done(output)) => {
                    self.phase = if P::SIGNED { Phase::Ended } else { Phase::Over };
                    self.mailbox.clear();
                    return Progress::Done(output);
                }
                Err(fault) => return self.abort(fault, None, outgoing),
            }
        }
    }

    fn waiting(&self) -> Progress<P::Output> {
        Progress::Waiting { missing: self.ctx.peers().minus(&self.mailbox.arrived()) }
    }

    /// Compares the echo digest of every message of this round with ours, before anything in them is judged: a verdict
    /// on different views could hit an honest party.
    fn views_differ(&mut self, inbox: &Inbox) -> bool {
        let ours = self.log.echo(&self.ctx, self.round);
        self.claims = inbox.iter().filter(|envelope| envelope.echo != Some(ours)).map(Arc::clone).collect();
        !self.claims.is_empty()
    }

    fn dispute(&mut self, outgoing: &mut Vec<Envelope>) -> Progress<P::Output> {
        self.phase = Phase::Disputing;
        self.mailbox.clear();
        self.disclose(outgoing);
        self.settle_dispute(outgoing)
    }

    fn disclose(&mut self, outgoing: &mut Vec<Envelope>) {
        if !self.disclosed {
            self.disclosed = true;
            let body = Zeroizing::new(self.log.disclose());
            outgoing.extend(self.envelope(DISCLOSURE_ROUND, None, body));
        }
    }

    /// With every disclosure at hand, and no two signed messages in conflict, nobody can be shown to have lied, unless
    /// by [`Session::lie`].
    fn settle_dispute(&mut self, outgoing: &mut Vec<Envelope>) -> Progress<P::Output> {
        if let Some(fault) = self.lie() {
            return self.abort(fault, None, outgoing);
        }
        let missing = self.ctx.peers().minus(&self.disclosures.keys().copied().collect());
        if missing.is_empty() {
            self.abort(Fault::nobody(AbortCause::BroadcastMismatch), None, outgoing)
        } else {
            Progress::Waiting { missing }
        }
    }

    /// A claim about what was seen that its own maker's disclosure does not support.
    fn lie(&self) -> Option<Fault> {
        self.claims.iter().find_map(|claim| {
            let disclosure = self.disclosures.get(&claim.sender())?;
            if supports::<P>(&self.ctx, disclosure, claim) {
                return None;
            }
            let evidence = vec![Arc::clone(claim), Arc::clone(disclosure)];
            Some(Fault::proven(AbortCause::FalseComplaint, claim.sender(), evidence))
        })
    }

    fn hear_disclosure(
        &mut self,
        envelope: Arc<Envelope>,
        outgoing: &mut Vec<Envelope>,
    ) -> Result<Progress<P::Output>, Reject> {
        let sender = envelope.sender();
        if let Some(held) = self.disclosures.get(&sender) {
            if held.content_digest() == envelope.content_digest() {
                return Err(Reject::Duplicate);
            }
            let evidence = vec![Arc::clone(held), envelope];
            return Ok(self.abort(Fault::proven(AbortCause::Equivocation, sender, evidence), None, outgoing));
        }
        self.disclosures.insert(sender, Arc::clone(&envelope));
        let Ok(shown) = open_disclosure::<P>(&self.ctx, &envelope) else {
            let fault = Fault::proven(AbortCause::MalformedBody, sender, vec![envelope]);
            return Ok(self.abort(fault, None, outgoing));
        };
        for theirs in shown {
            if let Some(ours) = self.log.witness(&theirs) {
                let culprit = ours.sender();
                let fault = Fault::proven(AbortCause::Equivocation, culprit, vec![ours, theirs]);
                return Ok(self.abort(fault, None, outgoing));
            }
        }
        match self.phase {
            Phase::Running(_) => Ok(self.dispute(outgoing)),
            Phase::Disputing => Ok(self.settle_dispute(outgoing)),
            Phase::Ended => {
                self.disclose(outgoing);
                match self.lie() {
                    Some(fault) => Ok(self.abort(fault, None, outgoing)),
                    None => Ok(Progress::Waiting { missing: PartySet::new() }),
                }
            }
            Phase::Over => Err(Reject::RoundPast),
        }
    }

    fn hear_notice(
        &mut self,
        envelope: Arc<Envelope>,
        outgoing: &mut Vec<Envelope>,
    ) -> Result<Progress<P::Output>, Reject> {
        let reporter = envelope.sender();
        let notice = Notice::decode::<P>(&self.ctx, &envelope).map_err(|Malformed| Reject::Malformed)?;
        let ended = matches!(self.phase, Phase::Ended);
        let Some(accused) = notice.accused else {
            return if ended {
                Err(Reject::RoundPast)
            } else {
                Ok(self.abort(Fault::nobody(notice.cause), Some(reporter), outgoing))
            };
        };
        match judge::<P>(&self.ctx, notice.cause, accused, &notice.evidence, MAX_NOTICE_DEPTH) {
            Verdict::Proven => {
                let fault = Fault::proven(notice.cause, accused, notice.evidence);
                Ok(self.abort(fault, Some(reporter), outgoing))
            }
            Verdict::Refuted if ended => Err(Reject::RoundPast),
            Verdict::Refuted => {
                let fault = Fault::proven(AbortCause::FalseComplaint, reporter, vec![envelope]);
                Ok(self.abort(fault, None, outgoing))
            }
            Verdict::TooDeep => Err(Reject::Malformed),
        }
    }

    fn abort(
        &mut self,
        fault: Fault,
        reporter: Option<PartyId>,
        outgoing: &mut Vec<Envelope>,
    ) -> Progress<P::Output> {
        let Fault { cause, mut culprits, evidence } = fault;
        culprits.sort_unstable();
        self.mailbox.clear();
        if P::SIGNED {
            let notice = Notice { cause, accused: culprits.first().copied(), evidence };
            let body = Zeroizing::new(notice.encode());
            outgoing.extend(self.envelope(NOTICE_ROUND, None, body));
            self.phase = if culprits.is_empty() { Phase::Ended } else { Phase::Over };
            let evidence = notice.evidence.iter().map(|envelope| envelope.encode()).collect();
            Progress::Aborted(Abort { round: self.round, cause, culprits, evidence, reporter })
        } else {
            self.phase = Phase::Over;
            Progress::Aborted(Abort { round: self.round, cause, culprits, evidence: Vec::new(), reporter })
        }
    }

    fn send(&mut self, outbox: Outbox, outgoing: &mut Vec<Envelope>) {
        for Draft { round, recipient, body } in outbox.0 {
            outgoing.extend(self.envelope(round, recipient, body));
        }
    }

    /// `None` for an observer, which sends nothing.
    fn envelope(
        &mut self,
        round: u8,
        recipient: Option<PartyId>,
        body: Zeroizing<Vec<u8>>,
    ) -> Option<Envelope> {
        let sender = self.ctx.me()?;
        let echo = match (P::SIGNED, round) {
            (false, _) => None,
            (true, NOTICE_ROUND | DISCLOSURE_ROUND) => Some([0; 32]),
            (true, _) => Some(self.log.echo(&self.ctx, round)),
        };
        let session = *self.ctx.digest();
        let mut envelope = Envelope {
            protocol: P::ID.number,
            session,
            round,
            sender,
            recipient,
            echo,
            body,
            signature: None,
        };
        if let (true, Some(key)) = (P::SIGNED, &self.evidence_key) {
            envelope.sign(key);
            if recipient.is_none() && round != NOTICE_ROUND && round != DISCLOSURE_ROUND {
                self.log.witness(&Arc::new(envelope.duplicate()));
            }
        }
        Some(envelope)
    }
}

/// The rule for a round number, if there is such a round.
fn rule_of<P: Protocol>(ctx: &SessionContext, round: u8) -> Option<RoundRule> {
    match round {
        NOTICE_ROUND => Some(RoundRule { delivery: Delivery::Broadcast, max_body: MAX_BODY_BYTES }),
        DISCLOSURE_ROUND => Some(RoundRule {
            delivery: Delivery::Broadcast,
            max_body: disclosure_bytes::<P>(ctx).min(MAX_BODY_BYTES),
        }),
        _ => P::ROUNDS.get(usize::from(round).checked_sub(1)?).copied(),
    }
}

/// Length of a disclosure in which every broadcast has its greatest length.
fn disclosure_bytes<P: Protocol>(ctx: &SessionContext) -> usize {
    let of_one_party: usize = P::ROUNDS
        .iter()
        .filter(|rule| rule.delivery == Delivery::Broadcast)
        .map(|rule| rule.max_body + ENVELOPE_OVERHEAD_BYTES + 4)
        .sum();
    2 + ctx.parties().len() * of_one_party
}

/// Most envelopes that a disclosure, or the evidence in a notice, can consist of.
fn max_envelopes<P: Protocol>(ctx: &SessionContext) -> usize {
    ctx.parties().len() * P::ROUNDS.len() + 2
}

/// Whether an envelope out of a notice or a disclosure was signed in this session by the sender it names, and is one
/// that a party following the rules could have accepted.
fn genuine<P: Protocol>(ctx: &SessionContext, envelope: &Envelope) -> bool {
    envelope.protocol == P::ID.number
        && &envelope.session == ctx.digest()
        && ctx.parties().contains(envelope.sender())
        && envelope.recipient().is_none_or(|recipient| ctx.parties().contains(recipient))
        && rule_of::<P>(ctx, envelope.round()).is_some_and(|rule| {
            envelope.delivery() == rule.delivery && envelope.body().len() <= rule.max_body
        })
        && envelope.signature_verifies(ctx)
}

/// The broadcasts that a disclosure shows, all of them genuine, each place once.
fn open_disclosure<P: Protocol>(
    ctx: &SessionContext,
    disclosure: &Envelope,
) -> Result<Vec<Arc<Envelope>>, Malformed> {
    let mut reader = Reader::new(disclosure.body());
    let shown = read_envelopes(&mut reader, max_envelopes::<P>(ctx))?;
    reader.finish()?;
    let mut places = std::collections::BTreeSet::new();
    for envelope in &shown {
        let broadcast_of_a_round =
            envelope.delivery() == Delivery::Broadcast && usize::from(envelope.round()) <= P::ROUNDS.len();
        let new_place = places.insert((envelope.round(), envelope.sender()));
        if !broadcast_of_a_round || !new_place || !genuine::<P>(ctx, envelope) {
            return Err(Malformed);
        }
    }
    Ok(shown)
}

/// Whether what a party disclosed is what it had claimed, by its echo digest, to have seen.
fn supports<P: Protocol>(ctx: &SessionContext, disclosure: &Envelope, claim: &Envelope) -> bool {
    open_disclosure::<P>(ctx, disclosure)
        .is_ok_and(|shown| claim.echo == Some(echo_of(ctx, claim.round(), &shown)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Proven,
    Refuted,
    /// A notice about a notice about a notice: nobody is held to anything.
    TooDeep,
}

impl Verdict {
    fn of(proven: bool) -> Self {
        if proven { Verdict::Proven } else { Verdict::Refuted }
    }
}

/// A pure function of the context and the evidence, so that all honest parties come to the same verdict.
fn judge<P: Protocol>(
    ctx: &SessionContext,
    cause: AbortCause,
    accused: PartyId,
    evidence: &[Arc<Envelope>],
    depth: usize,
) -> Verdict {
    let by_accused = |envelope: &Arc<Envelope>| envelope.sender() == accused;
    if !evidence.iter().all(|envelope| genuine::<P>(ctx, envelope)) || !evidence.iter().any(by_accused) {
        return Verdict::Refuted;
    }
    match (cause, evidence) {
        (AbortCause::Equivocation, [one, other]) => Verdict::of(
            by_accused(one)
                && by_accused(other)
                && one.round() == other.round()
                && one.round() != NOTICE_ROUND
                && one.recipient() == other.recipient()
                && one.content_digest() != other.content_digest(),
        ),
        (AbortCause::MalformedBody, [disclosure]) if disclosure.round() == DISCLOSURE_ROUND => {
            Verdict::of(open_disclosure::<P>(ctx, disclosure).is_err())
        }
        (AbortCause::FalseComplaint, [complaint]) if complaint.round() == NOTICE_ROUND => {
            judge_complaint::<P>(ctx, complaint, depth)
        }
        (AbortCause::FalseComplaint, [claim, disclosure]) => Verdict::of(
            by_accused(claim)
                && by_accused(disclosure)
                && usize::from(claim.round()) <= P::ROUNDS.len()
                && disclosure.round() == DISCLOSURE_ROUND
                && !supports::<P>(ctx, disclosure, claim),
        ),
        _ => Verdict::of(P::judge(ctx, cause, accused, evidence)),
    }
}

/// Whether a notice is false.
fn judge_complaint<P: Protocol>(ctx: &SessionContext, complaint: &Envelope, depth: usize) -> Verdict {
    let Some(depth) = depth.checked_sub(1) else { return Verdict::TooDeep };
    let Ok(Notice { cause, accused: Some(accused), evidence }) = Notice::decode::<P>(ctx, complaint) else {
        return Verdict::Refuted;
    };
    match judge::<P>(ctx, cause, accused, &evidence, depth) {
        Verdict::Proven => Verdict::Refuted,
        Verdict::Refuted => Verdict::Proven,
        Verdict::TooDeep => Verdict::TooDeep,
    }
}

/// Why a party aborted, and what convinces others that `accused` is the reason.
struct Notice {
    cause: AbortCause,
    accused: Option<PartyId>,
    evidence: Vec<Arc<Envelope>>,
}

impl Notice {
    fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u8(self.cause.number());
        writer.u16(self.accused.map_or(0, PartyId::get));
        writer.bytes(&Zeroizing::new(write_envelopes(self.evidence.iter())));
        writer.finish()
    }

    fn decode<P: Protocol>(ctx: &SessionContext, envelope: &Envelope) -> Result<Self, Malformed> {
        let mut reader = Reader::new(envelope.body());
        let cause = AbortCause::from_number(reader.u8()?).ok_or(Malformed)?;
        let accused = PartyId::new(reader.u16()?.into());
        let evidence = read_envelopes(&mut reader, max_envelopes::<P>(ctx))?;
        reader.finish()?;
        let plausible = match accused {
            Some(party) => ctx.parties().contains(party),
            None => !cause.needs_culprit() && evidence.is_empty(),
        };
        if plausible { Ok(Self { cause, accused, evidence }) } else { Err(Malformed) }
    }
}
