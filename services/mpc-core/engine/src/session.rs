//! Runs one protocol for one party: admits messages, turns rounds, and settles who is to blame when they fail.
//!
//! A protocol describes its rounds by [`Protocol`]; everything that does not depend on the scheme is done here once.
//! The rules, with their reasons, are in `docs/protocols/bls.md` section "Blame".

use std::sync::Arc;

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::admission::{Admission, Hearing, Place};
pub use crate::body::parse;
use crate::broadcast::BroadcastLog;
use crate::claim::Claim;
use crate::context::{SessionContext, SessionSettings};
use crate::disclosure::{Difference, Disclosure};
use crate::dispute::Dispute;
use crate::envelope::{Delivery, Envelope};
use crate::error::{Abort, AbortCause, Reject, SetupError};
use crate::evidence::EvidenceKey;
use crate::fault::Fault;
use crate::mailbox::{Mailbox, Posted};
use crate::notice::{Notice, NoticesHeard, Verdict, false_complaint, judge_notice};
use crate::party::{PartyId, PartySet};
use crate::private;
use crate::protocol::Draft;
pub use crate::protocol::{History, Next, Outbox, Protocol};
pub use crate::rounds::{DISCLOSURE_ROUND, NOTICE_ROUND};
use crate::runs::Runs;
use crate::wire::Malformed;

/// The results of one call.
pub struct Step<T> {
    /// To be sent whatever the progress says.
    pub outgoing: Vec<Envelope>,
    /// The round this party is in now; 0 after the end.
    pub round: u8,
    /// The effect on the run.
    pub progress: Progress<T>,
}

/// The effect of one call on the run.
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
    /// The broadcasts that this party has sent and received.
    log: BroadcastLog,
    runs: Runs,
    /// Our header of the current round.
    claim: Option<Claim>,
    dispute: Dispute,
    notices: NoticesHeard,
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
        let ctx = SessionContext::new(P::ID, P::SIGNED, P::ROUNDS, settings, P::held_alike(&input))?;
        if let (true, Some(me)) = (P::SIGNED, ctx.me()) {
            let own = evidence_key.as_ref().ok_or(SetupError::IdentityMissing)?;
            if ctx.evidence_key(me) != Some(&own.public()) {
                return Err(SetupError::IdentityMismatch);
            }
        }
        let runs = Runs::start(&ctx, rng);
        let (first, outbox) = P::start(&ctx, input, rng)?;
        let mut session = Self {
            ctx,
            evidence_key: evidence_key.filter(|_| P::SIGNED),
            phase: Phase::Running(Box::new(first)),
            round: 1,
            mailbox: Mailbox::default(),
            log: BroadcastLog::default(),
            runs,
            claim: None,
            dispute: Dispute::default(),
            notices: NoticesHeard::default(),
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

    /// The bytes in which an envelope of this session leaves the core: a private one that is signed is sealed to its
    /// recipient. `None` if that fails, which the checked roster excludes.
    pub fn seal(&self, envelope: &Envelope, rng: &mut dyn CryptoRng) -> Option<Vec<u8>> {
        match &self.evidence_key {
            Some(key) if envelope.recipient().is_some() => private::seal(&self.ctx, key, envelope, rng),
            Some(_) | None => Some(envelope.encode()),
        }
    }

    /// [`Session::handle`], for a message in the bytes that [`Session::seal`] made. A private one that does not open,
    /// or was not sealed, counts as not sent. One whose cover belongs to another place is not opened: opening costs
    /// more than writing a cover.
    pub fn open(&mut self, from: PartyId, bytes: &[u8], rng: &mut dyn CryptoRng) -> Step<P::Output> {
        match self.admission().open(self.evidence_key.as_ref(), from, bytes) {
            Ok(Some(plain)) => self.handle(from, &plain, rng),
            Ok(None) => self.handle(from, bytes, rng),
            Err(reject) => self.step(Vec::new(), Progress::Dropped(reject)),
        }
    }

    /// Ends the run for a reason that lies outside of it, whatever the last step made of it. The caller drops that
    /// step: nothing of it has left.
    pub fn overrule(&mut self, fault: Fault) -> Step<P::Output> {
        let mut outgoing = Vec::new();
        let progress = self.abort(fault, None, &mut outgoing);
        self.step(outgoing, progress)
    }

    /// The terms that were agreed before the first message.
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
        let window = match self.admission().admit(from, &envelope)? {
            Place::Notice => return self.hear_notice(&envelope, outgoing),
            Place::Disclosure => return self.hear_disclosure(&envelope, outgoing),
            Place::Late => return self.hear_late(&envelope, outgoing),
            Place::Round(window) => window,
        };
        if let Some(fault) = self.runs.witness(&envelope) {
            // In a session of one round nothing that the other run says can contradict what this one said.
            if P::ROUNDS.len() == 1 {
                return Err(Reject::Duplicate);
            }
            return Ok(self.give_up(fault, None, outgoing));
        }
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

    /// Ends the run without a culprit, unless two have seen different broadcasts: a sender that made them different
    /// could end it like this before anybody compares.
    fn give_up(
        &mut self,
        fault: Fault,
        reporter: Option<PartyId>,
        outgoing: &mut Vec<Envelope>,
    ) -> Progress<P::Output> {
        let running = matches!(self.phase, Phase::Running(_));
        let difference = running.then(|| self.difference(self.mailbox.held())).flatten();
        let Some(difference) = difference else { return self.abort(fault, reporter, outgoing) };
        self.disclose(&difference, outgoing);
        self.settle_dispute(outgoing)
    }

    /// A run that is over here goes on at others: their messages can still show that one party told them something
    /// else.
    fn hear_late(
        &mut self,
        envelope: &Arc<Envelope>,
        outgoing: &mut Vec<Envelope>,
    ) -> Result<Progress<P::Output>, Reject> {
        if self.runs.witness(envelope).is_some() {
            return Err(Reject::RoundPast);
        }
        let broadcast = envelope.delivery() == Delivery::Broadcast;
        if let Some(held) = broadcast.then(|| self.log.witness(envelope)).flatten() {
            let evidence = vec![held, Arc::clone(envelope)];
            let fault = Fault::proven(AbortCause::Equivocation, envelope.sender(), evidence);
            return Ok(self.abort(fault, None, outgoing));
        }
        let Some(difference) = self.difference(core::iter::once(envelope)) else {
            return Err(Reject::RoundPast);
        };
        self.disclose(&difference, outgoing);
        self.weigh_dispute(outgoing)
    }

    fn admission(&self) -> Admission<'_> {
        let hearing = match self.phase {
            Phase::Running(_) => Hearing::Rounds,
            Phase::Disputing | Phase::Ended => Hearing::Deviations,
            Phase::Over => Hearing::Nothing,
        };
        Admission { ctx: &self.ctx, signed: P::SIGNED, hearing, round: self.round }
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
            let waiting = self.mailbox.waiting();
            let ready = if P::SIGNED {
                self.ctx.peers().minus(&waiting).is_empty()
            } else {
                state.ready(&self.ctx, &waiting)
            };
            if !ready {
                self.phase = Phase::Running(state);
                return self.waiting();
            }
            let inbox = self.mailbox.take();
            if let Some(difference) = self.difference(inbox.iter()) {
                self.disclose(&difference, outgoing);
                return self.settle_dispute(outgoing);
            }
            let history = History { ctx: &self.ctx, log: &self.log, round: self.round };
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
    fn difference<'a>(&self, messages: impl IntoIterator<Item = &'a Arc<Envelope>>) -> Option<Difference> {
        Difference::find(self.claim.as_ref().filter(|_| P::SIGNED)?, messages)
    }

    /// Once: the broadcasts that this party has seen before anybody showed it more.
    fn disclose(&mut self, difference: &Difference, outgoing: &mut Vec<Envelope>) {
        let Some(me) = self.ctx.me().filter(|me| !self.dispute.holds(*me)) else { return };
        let body = Zeroizing::new(Disclosure::encode(difference, &self.log));
        if let Some(envelope) = self.envelope(DISCLOSURE_ROUND, None, body) {
            let own = Arc::new(envelope.duplicate());
            if let Ok(disclosure) = Disclosure::open(&self.ctx, &own) {
                self.dispute.add(own, disclosure);
            }
            debug_assert!(self.dispute.holds(me));
            outgoing.push(envelope);
        }
    }

    /// With the disclosures of all claimants at hand, one of them has lied, or two signed messages were in conflict
    /// when they were heard.
    fn settle_dispute(&mut self, outgoing: &mut Vec<Envelope>) -> Progress<P::Output> {
        self.phase = Phase::Disputing;
        self.mailbox.clear();
        if let Some(fault) = self.dispute.lie(&self.ctx) {
            return self.abort(fault, None, outgoing);
        }
        let missing: PartySet = self.dispute.missing().collect();
        if missing.is_empty() {
            self.abort(Fault::internal(), None, outgoing)
        } else {
            Progress::Waiting { missing }
        }
    }

    fn hear_disclosure(
        &mut self,
        envelope: &Arc<Envelope>,
        outgoing: &mut Vec<Envelope>,
    ) -> Result<Progress<P::Output>, Reject> {
        let heard = self.dispute.hear(&self.ctx, &mut self.runs, &self.log, envelope)?;
        if let Some(difference) = heard.difference {
            self.disclose(&difference, outgoing);
        }
        match heard.verdict {
            Some(verdict) => self.act_on(verdict, envelope, None, outgoing),
            None => self.weigh_dispute(outgoing),
        }
    }

    /// The verdict that follows from the disclosures there are.
    fn weigh_dispute(&mut self, outgoing: &mut Vec<Envelope>) -> Result<Progress<P::Output>, Reject> {
        match self.phase {
            Phase::Running(_) | Phase::Disputing => Ok(self.settle_dispute(outgoing)),
            Phase::Ended => match self.dispute.lie(&self.ctx) {
                Some(fault) => Ok(self.abort(fault, None, outgoing)),
                None => Ok(Progress::Waiting { missing: PartySet::new() }),
            },
            Phase::Over => Err(Reject::RoundPast),
        }
    }

    fn hear_notice(
        &mut self,
        envelope: &Arc<Envelope>,
        outgoing: &mut Vec<Envelope>,
    ) -> Result<Progress<P::Output>, Reject> {
        self.notices.count(envelope)?;
        let notice = Notice::decode(&self.ctx, envelope).map_err(|Malformed| Reject::Malformed)?;
        let verdict = match notice.word(&self.ctx, envelope) {
            Some(told) => Verdict::Told(told),
            None => judge_notice::<P>(&self.ctx, notice).map_err(|Malformed| Reject::Malformed)?,
        };
        self.act_on(verdict, envelope, Some(envelope.sender()), outgoing)
    }

    /// Does what follows from `heard`, a notice or disclosure. After the end only proof counts.
    fn act_on(
        &mut self,
        verdict: Verdict,
        heard: &Arc<Envelope>,
        reporter: Option<PartyId>,
        outgoing: &mut Vec<Envelope>,
    ) -> Result<Progress<P::Output>, Reject> {
        let ended = matches!(self.phase, Phase::Ended);
        match verdict {
            Verdict::Proven(fault) => Ok(self.abort(fault, reporter, outgoing)),
            Verdict::Restarted(_) | Verdict::Told(_) | Verdict::Refuted if ended => Err(Reject::RoundPast),
            Verdict::Restarted(fault) => Ok(self.give_up(fault, reporter, outgoing)),
            Verdict::Told(told) => Ok(self.hear_word(told, outgoing)),
            Verdict::Refuted => Ok(self.abort(false_complaint(heard), None, outgoing)),
        }
    }

    /// Ends the run by the word of one party, whoever brought it.
    fn hear_word(&mut self, told: Fault, outgoing: &mut Vec<Envelope>) -> Progress<P::Output> {
        let Some(word) = told.word().map(Arc::clone) else { return self.abort(told, None, outgoing) };
        // A word of our own that this run has not said shows that we ran the session twice.
        if let Some(fault) = self.runs.witness(&word) {
            return self.give_up(fault, None, outgoing);
        }
        self.give_up(told, Some(word.sender()), outgoing)
    }

    /// Ends the run and tells the others. A fault that convicts this party itself shows that it, or a copy of it, is
    /// broken: that is an error of ours, not one that others could make us exclude ourselves for.
    fn abort(
        &mut self,
        fault: Fault,
        reporter: Option<PartyId>,
        outgoing: &mut Vec<Envelope>,
    ) -> Progress<P::Output> {
        let me = self.ctx.me();
        let own = me.is_some_and(|me| fault.culprits.contains(&me));
        let (fault, reporter) = if own { (Fault::internal(), None) } else { (fault, reporter) };
        let suspects = fault.suspects_among(&self.ctx);
        let Fault { cause, mut culprits, evidence, .. } = fault;
        culprits.sort_unstable();
        self.mailbox.clear();
        let heard_on = P::SIGNED && culprits.is_empty() && !own;
        self.phase = if heard_on { Phase::Ended } else { Phase::Over };
        let mut shown = Vec::new();
        if P::SIGNED {
            let notice = Notice::of(cause, &culprits, &suspects, evidence);
            let body = Zeroizing::new(notice.encode());
            outgoing.extend(self.envelope(NOTICE_ROUND, None, body));
            shown = notice.evidence.items();
        }
        Progress::Aborted(Abort {
            round: self.round,
            cause,
            culprits,
            suspects: suspects.iter().collect(),
            evidence: shown,
            reporter: reporter.or(me),
        })
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
        let of_a_round = round != NOTICE_ROUND && round != DISCLOSURE_ROUND;
        let echo = P::SIGNED.then(|| if of_a_round { self.log.echo(&self.ctx, round) } else { [0; 32] });
        let mut envelope = Envelope {
            protocol: P::ID.number,
            session: *self.ctx.digest(),
            round,
            sender,
            recipient,
            run: self.runs.nonce(sender)?,
            echo,
            body,
            signature: None,
        };
        if let (true, Some(key)) = (P::SIGNED, &self.evidence_key) {
            envelope.sign(key);
            if of_a_round {
                self.claim = Claim::of(&envelope);
                if let Some(own) = &self.claim {
                    self.runs.sent(own);
                }
                if recipient.is_none() {
                    self.log.witness(&Arc::new(envelope.duplicate()));
                }
            }
        }
        Some(envelope)
    }
}
