//! Runs one protocol for one party: admits messages, turns rounds, and settles who is to blame when they fail.
//!
//! A protocol describes its rounds by [`Protocol`]; everything that does not depend on the scheme is done here once.
//! The rules, with their reasons, are in `docs/protocols/bls.md` section "Blame".

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_core::CryptoRng;
use zeroize::Zeroizing;

pub use crate::body::parse;
use crate::broadcast::BroadcastLog;
use crate::claim::Claim;
use crate::context::{SessionContext, SessionSettings};
use crate::disclosure::{Difference, Disclosure, Dispute};
use crate::envelope::{Delivery, ENVELOPE_OVERHEAD_BYTES, Envelope, RUN_NONCE_BYTES};
use crate::error::{Abort, AbortCause, Reject, SetupError};
use crate::evidence::EvidenceKey;
use crate::fault::{Evidence, Fault};
use crate::hedged::hedged;
use crate::limits::rule_of;
use crate::mailbox::{Mailbox, Posted, Window};
use crate::notice::{Notice, Verdict, false_complaint, judge_notice};
use crate::party::{PartyId, PartySet};
use crate::private;
use crate::protocol::Draft;
pub use crate::protocol::{History, Next, Outbox, Protocol};
use crate::rounds::RoundRule;
pub use crate::rounds::{DISCLOSURE_ROUND, NOTICE_ROUND};
use crate::tags;
use crate::wire::Malformed;

/// Most notices of one peer that are judged. A party that follows the rules sends at most two: that it aborted without
/// knowing why, and then, when another has shown it, why.
const MAX_NOTICES: usize = 2;

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
    /// The broadcasts that this party has sent and received.
    log: BroadcastLog,
    /// The broadcasts that others have disclosed.
    shown: BroadcastLog,
    /// The run of everybody heard of, this party included.
    runs: BTreeMap<PartyId, RunSeen>,
    /// Our header of the current round.
    claim: Option<Claim>,
    dispute: Dispute,
    /// Digests of the notices of each peer that have been judged.
    notices: BTreeMap<PartyId, Vec<[u8; 32]>>,
}

/// The run that a party's messages of this session belong to.
struct RunSeen {
    nonce: [u8; RUN_NONCE_BYTES],
    /// The first header that said so, if envelopes are signed.
    header: Option<Claim>,
}

/// Where a message says that it belongs.
struct Header<'a> {
    protocol: u16,
    session: &'a [u8; 32],
    round: u8,
    sender: PartyId,
    recipient: Option<PartyId>,
}

enum Place {
    Round(Window),
    Notice,
    Disclosure,
    /// Of this round or the next, after the run has ended here.
    Late,
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
        let run = ctx.me().map(|me| (me, RunSeen { nonce: run_nonce(&ctx, rng), header: None }));
        let (first, outbox) = P::start(&ctx, input, rng)?;
        let mut session = Self {
            ctx,
            evidence_key: evidence_key.filter(|_| P::SIGNED),
            phase: Phase::Running(Box::new(first)),
            round: 1,
            mailbox: Mailbox::default(),
            log: BroadcastLog::default(),
            shown: BroadcastLog::default(),
            runs: run.into_iter().collect(),
            claim: None,
            dispute: Dispute::default(),
            notices: BTreeMap::new(),
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
        let opened = match &self.evidence_key {
            Some(key) if private::is_sealed(bytes) => {
                self.admit_cover(from, bytes).and_then(|()| private::open(&self.ctx, key, bytes)).map(Some)
            }
            Some(_) => Envelope::decode(bytes).and_then(|envelope| match envelope.delivery() {
                Delivery::Broadcast => Ok(None),
                Delivery::Private => Err(Reject::Unsealing),
            }),
            None => Ok(None),
        };
        match opened {
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
            Place::Notice => return self.hear_notice(&envelope, outgoing),
            Place::Disclosure => return self.hear_disclosure(envelope, outgoing),
            Place::Late => return self.hear_late(&envelope, outgoing),
            Place::Round(window) => window,
        };
        if !self.same_run(&envelope) {
            // In a session of one round nothing that the other run says can contradict what this one said.
            if P::ROUNDS.len() == 1 {
                return Err(Reject::Duplicate);
            }
            return Ok(self.restarted(envelope.sender(), Claim::of(&envelope), outgoing));
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

    /// Whether everything of the envelope's sender that this session has seen is from one run. What was seen first
    /// counts.
    fn same_run(&mut self, envelope: &Envelope) -> bool {
        let first = || RunSeen { nonce: envelope.run, header: Claim::of(envelope) };
        self.runs.entry(envelope.sender()).or_insert_with(first).nonce == envelope.run
    }

    /// Ends the run because `party` has two: what was heard of it first, and `other`.
    fn restarted(
        &mut self,
        party: PartyId,
        other: Option<Claim>,
        outgoing: &mut Vec<Envelope>,
    ) -> Progress<P::Output> {
        let first = self.runs.get(&party).and_then(|seen| seen.header.clone());
        let runs = first.zip(other).map(|(first, other)| [first, other]);
        self.give_up(Fault::restarted(party, runs), None, outgoing)
    }

    /// Ends the run without a culprit, unless two have seen different broadcasts: who made them different could end it
    /// like this before anybody compares.
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

    /// A run that is over here goes on at others: what they say now can still show that one party told them something
    /// else.
    fn hear_late(
        &mut self,
        envelope: &Arc<Envelope>,
        outgoing: &mut Vec<Envelope>,
    ) -> Result<Progress<P::Output>, Reject> {
        if !self.same_run(envelope) {
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

    /// Decides whether a message belongs here at all. Until every check has passed nobody is blamed for it.
    fn admit(&self, from: PartyId, envelope: &Envelope) -> Result<Place, Reject> {
        let (place, rule) = self.admit_header(
            from,
            &Header {
                protocol: envelope.protocol,
                session: &envelope.session,
                round: envelope.round(),
                sender: envelope.sender(),
                recipient: envelope.recipient(),
            },
        )?;
        if envelope.signature.is_some() != P::SIGNED {
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

    /// Decides from the outside of a sealed envelope whether it is worth opening.
    fn admit_cover(&self, from: PartyId, bytes: &[u8]) -> Result<(), Reject> {
        let cover = private::Cover::read(bytes).map_err(|Malformed| Reject::Malformed)?;
        let (_, rule) = self.admit_header(
            from,
            &Header {
                protocol: cover.protocol,
                session: &cover.session,
                round: cover.round,
                sender: cover.sender,
                recipient: Some(cover.recipient),
            },
        )?;
        if cover.inside > rule.max_body + ENVELOPE_OVERHEAD_BYTES {
            return Err(Reject::Size);
        }
        Ok(())
    }

    /// The part of [`Session::admit`] that costs nothing: where the message says that it belongs.
    fn admit_header(&self, from: PartyId, header: &Header<'_>) -> Result<(Place, RoundRule), Reject> {
        if header.protocol != P::ID.number {
            return Err(Reject::Protocol);
        }
        if header.session != self.ctx.digest() {
            return Err(Reject::Session);
        }
        let sender = header.sender;
        if sender != from || Some(sender) == self.ctx.me() || !self.ctx.parties().contains(sender) {
            return Err(Reject::Sender);
        }
        if header.recipient.is_some_and(|recipient| Some(recipient) != self.ctx.me()) {
            return Err(Reject::Recipient);
        }
        let place = self.place(header.round)?;
        let rule = rule_of(&self.ctx, header.round).ok_or(Reject::RoundFuture)?;
        let delivery = if header.recipient.is_some() { Delivery::Private } else { Delivery::Broadcast };
        if delivery != rule.delivery {
            return Err(Reject::Delivery);
        }
        Ok((place, rule))
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
            _ if round < self.round => Err(Reject::RoundPast),
            _ if round > self.round + 1 => Err(Reject::RoundFuture),
            _ if !running => Ok(Place::Late),
            _ if round == self.round => Ok(Place::Round(Window::Current)),
            _ => Ok(Place::Round(Window::Next)),
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
        let ours = self.claim.as_ref().filter(|_| P::SIGNED)?;
        let of_this_round = messages.into_iter().filter(|envelope| envelope.round() == ours.round());
        let theirs = of_this_round.into_iter().find(|envelope| envelope.echo() != ours.echo())?;
        Difference::new(ours.clone(), Claim::of(theirs)?)
    }

    /// Once: what this party has seen before anybody showed it more.
    fn disclose(&mut self, difference: &Difference, outgoing: &mut Vec<Envelope>) {
        let Some(me) = self.ctx.me().filter(|me| self.dispute.of(*me).is_none()) else { return };
        let body = Zeroizing::new(Disclosure::encode(difference, &self.log));
        if let Some(envelope) = self.envelope(DISCLOSURE_ROUND, None, body) {
            let own = Arc::new(envelope.duplicate());
            if let Ok(disclosure) = Disclosure::open(&self.ctx, &own) {
                self.dispute.add(own, disclosure);
            }
            debug_assert!(self.dispute.of(me).is_some());
            outgoing.push(envelope);
        }
    }

    /// With the disclosures of all claimants at hand, one of them has lied, or two signed messages were in conflict
    /// when they were heard.
    fn settle_dispute(&mut self, outgoing: &mut Vec<Envelope>) -> Progress<P::Output> {
        self.phase = Phase::Disputing;
        self.mailbox.clear();
        if let Some((liar, evidence)) = self.dispute.liar(&self.ctx) {
            return self.abort(Fault::proven(AbortCause::FalseComplaint, liar, evidence), None, outgoing);
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
        envelope: Arc<Envelope>,
        outgoing: &mut Vec<Envelope>,
    ) -> Result<Progress<P::Output>, Reject> {
        let sender = envelope.sender();
        let ended = matches!(self.phase, Phase::Ended);
        if !self.same_run(&envelope) {
            let other = Claim::of(&envelope);
            return if ended { Err(Reject::RoundPast) } else { Ok(self.restarted(sender, other, outgoing)) };
        }
        if let Some(held) = self.dispute.of(sender) {
            if held.content_digest() == envelope.content_digest() {
                return Err(Reject::Duplicate);
            }
            let evidence = vec![Arc::clone(held), envelope];
            return Ok(self.abort(Fault::proven(AbortCause::Equivocation, sender, evidence), None, outgoing));
        }
        let Ok(disclosure) = Disclosure::open(&self.ctx, &envelope) else {
            let fault = Fault::proven(AbortCause::MalformedBody, sender, vec![envelope]);
            return Ok(self.abort(fault, None, outgoing));
        };
        self.disclose(&disclosure.difference, outgoing);
        for theirs in &disclosure.shown {
            if !self.same_run(theirs) {
                let (sender, other) = (theirs.sender(), Claim::of(theirs));
                return if ended {
                    Err(Reject::RoundPast)
                } else {
                    Ok(self.restarted(sender, other, outgoing))
                };
            }
            if let Some(ours) = self.log.conflict(theirs).or_else(|| self.shown.witness(theirs)) {
                let culprit = ours.sender();
                let fault = Fault::proven(AbortCause::Equivocation, culprit, vec![ours, Arc::clone(theirs)]);
                return Ok(self.abort(fault, None, outgoing));
            }
        }
        // A claim from another run than its maker's other messages is no lie, and cannot be supported.
        let claims = disclosure.difference.claims();
        let of_another =
            |claim: &&Claim| self.runs.get(&claim.sender()).is_some_and(|seen| &seen.nonce != claim.run());
        if let Some(claim) = claims.iter().find(of_another) {
            let (sender, other) = (claim.sender(), Some(claim.clone()));
            return if ended { Err(Reject::RoundPast) } else { Ok(self.restarted(sender, other, outgoing)) };
        }
        self.dispute.add(envelope, disclosure);
        self.weigh_dispute(outgoing)
    }

    /// The verdict that follows from the disclosures there are.
    fn weigh_dispute(&mut self, outgoing: &mut Vec<Envelope>) -> Result<Progress<P::Output>, Reject> {
        match self.phase {
            Phase::Running(_) | Phase::Disputing => Ok(self.settle_dispute(outgoing)),
            Phase::Ended => match self.dispute.liar(&self.ctx) {
                Some((liar, evidence)) => {
                    let fault = Fault::proven(AbortCause::FalseComplaint, liar, evidence);
                    Ok(self.abort(fault, None, outgoing))
                }
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
        let reporter = envelope.sender();
        let judged = self.notices.entry(reporter).or_default();
        let digest = envelope.content_digest();
        if judged.len() == MAX_NOTICES || judged.contains(&digest) {
            return Err(Reject::Duplicate);
        }
        judged.push(digest);
        let notice = Notice::decode(&self.ctx, envelope).map_err(|Malformed| Reject::Malformed)?;
        let ended = matches!(self.phase, Phase::Ended);
        if let Some(told) = notice.word(&self.ctx, envelope) {
            return if ended { Err(Reject::RoundPast) } else { Ok(self.hear_word(told, outgoing)) };
        }
        match judge_notice::<P>(&self.ctx, notice).map_err(|Malformed| Reject::Malformed)? {
            Verdict::Proven(fault) => Ok(self.abort(fault, Some(reporter), outgoing)),
            Verdict::Restarted(_) | Verdict::Told(_) | Verdict::Refuted if ended => Err(Reject::RoundPast),
            Verdict::Restarted(fault) => Ok(self.give_up(fault, Some(reporter), outgoing)),
            Verdict::Told(told) => Ok(self.hear_word(told, outgoing)),
            Verdict::Refuted => Ok(self.abort(false_complaint(envelope), None, outgoing)),
        }
    }

    /// Ends the run by the word of one party, whoever brought it.
    fn hear_word(&mut self, told: Fault, outgoing: &mut Vec<Envelope>) -> Progress<P::Output> {
        let Some(word) = told.word().map(Arc::clone) else { return self.abort(told, None, outgoing) };
        if Some(word.sender()) == self.ctx.me() {
            // This run has said no such thing: the word is of another run of ours, or of a copy.
            return self.abort(Fault::internal(), None, outgoing);
        }
        if !self.same_run(&word) {
            return self.restarted(word.sender(), Claim::of(&word), outgoing);
        }
        self.give_up(told, Some(word.sender()), outgoing)
    }

    /// Ends the run and tells the others. What convicts this party itself shows that it, or a copy of it, is broken:
    /// that is an error of ours, not one that others could make us exclude ourselves for.
    fn abort(
        &mut self,
        fault: Fault,
        reporter: Option<PartyId>,
        outgoing: &mut Vec<Envelope>,
    ) -> Progress<P::Output> {
        let me = self.ctx.me();
        let own = me.is_some_and(|me| fault.culprits.contains(&me));
        let (fault, reporter) = if own { (Fault::internal(), None) } else { (fault, reporter) };
        let Fault { cause, mut culprits, suspects, evidence } = fault;
        culprits.sort_unstable();
        let suspects: PartySet = match (suspects.as_slice(), cause) {
            _ if !culprits.is_empty() => PartySet::new(),
            ([], AbortCause::Internal) => PartySet::new(),
            ([], _) => self.ctx.peers(),
            (named, _) => named.iter().copied().collect(),
        };
        self.mailbox.clear();
        let heard_on = P::SIGNED && culprits.is_empty() && !own;
        self.phase = if heard_on { Phase::Ended } else { Phase::Over };
        let mut shown = Vec::new();
        if P::SIGNED {
            // Of another's word that word alone is passed on.
            let passed_on =
                culprits.is_empty() && matches!(&evidence, Evidence::Envelopes(e) if !e.is_empty());
            let only = (suspects.len() == 1 && !passed_on).then(|| suspects.iter().next()).flatten();
            let accused = culprits.first().copied().or(only);
            let notice = Notice { cause, accused, evidence };
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
            run: self.runs.get(&sender)?.nonce,
            echo,
            body,
            signature: None,
        };
        if let (true, Some(key)) = (P::SIGNED, &self.evidence_key) {
            envelope.sign(key);
            if of_a_round {
                self.claim = Claim::of(&envelope);
                if let Some(own) = self.runs.get_mut(&sender) {
                    own.header = own.header.take().or_else(|| self.claim.clone());
                }
                if recipient.is_none() {
                    self.log.witness(&Arc::new(envelope.duplicate()));
                }
            }
        }
        Some(envelope)
    }
}

/// Differs in every run of a session, also if the generator repeats itself as far as hedging can tell.
fn run_nonce(ctx: &SessionContext, rng: &mut dyn CryptoRng) -> [u8; RUN_NONCE_BYTES] {
    let bytes = hedged(ctx, tags::RUN_NONCE, &[], rng);
    let mut nonce = [0; RUN_NONCE_BYTES];
    nonce.iter_mut().zip(bytes.expose()).for_each(|(out, byte)| *out = *byte);
    nonce
}
