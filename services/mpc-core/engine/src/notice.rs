//! Notices of parties that aborted, and the judge of what they accuse others of.
//!
//! The judge is a pure function of the context and the envelopes, so that all parties come to the same verdict. A
//! notice is about something that happened in the rounds or in a dispute, or about such a notice. A notice about
//! that is not looked at: a party that hears a complaint about a notice judges that notice itself, and passes on
//! either what it proves or that it proves nothing. So no honest party ever sends a notice that others would not hear.
//!
//! A notice without evidence is a word: its sender asks to be believed that the run must end. A party that ends its run
//! by a word passes on the word as it was signed, so that all name who said it, and nobody names who carried it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::claim::Claim;
use crate::context::{SessionContext, SessionSettings};
use crate::disclosure::{Disclosure, lied};
use crate::envelope::{Envelope, MAX_ENVELOPE_BYTES};
use crate::error::{AbortCause, Reject, SetupError};
use crate::fault::{Evidence, Fault};
use crate::limits::{accusation_bytes, genuine, max_envelopes};
use crate::party::{PartyId, PartySet};
use crate::protocol::Protocol;
use crate::rounds::{DISCLOSURE_ROUND, NOTICE_ROUND};
use crate::wire::{Malformed, Reader, Writer};

/// Most notices of one peer that are judged. A party that follows the rules sends at most two: that it aborted without
/// knowing why, and then, when another has shown it, why.
const MAX_NOTICES: usize = 2;

/// The result of an accusation.
pub enum Verdict {
    /// The fault is shown to everybody. Whom it convicts need not be whom the accusation named.
    Proven(Fault),
    /// A party ran the session twice: it is named and not blamed.
    Restarted(Fault),
    /// A party ended the run by its word: it and whom it points at are named, and nobody is blamed.
    Told(Fault),
    /// Nothing is shown: the accuser broke the rules.
    Refuted,
}

/// Why a party aborted, and what convinces others that `accused` is the reason.
pub(crate) struct Notice {
    pub(crate) cause: AbortCause,
    /// Whom the evidence is about; of a word whom it points at, if anybody; `None` where a word of another is passed
    /// on.
    pub(crate) accused: Option<PartyId>,
    pub(crate) evidence: Evidence,
}

impl Notice {
    /// Of what ends a run. Of another's word that word alone is passed on.
    pub(crate) fn of(
        cause: AbortCause,
        culprits: &[PartyId],
        suspects: &PartySet,
        evidence: Evidence,
    ) -> Self {
        let passed_on = culprits.is_empty() && matches!(&evidence, Evidence::Envelopes(e) if !e.is_empty());
        let only = (suspects.len() == 1 && !passed_on).then(|| suspects.iter().next()).flatten();
        Self { cause, accused: culprits.first().copied().or(only), evidence }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u8(self.cause.number());
        writer.u16(self.accused.map_or(0, PartyId::get));
        write_items(&mut writer, &self.evidence.items());
        writer.finish()
    }

    pub(crate) fn decode(ctx: &SessionContext, envelope: &Envelope) -> Result<Self, Malformed> {
        let mut reader = Reader::new(envelope.body());
        let cause = AbortCause::from_number(reader.u8()?).ok_or(Malformed)?;
        let accused = PartyId::new(reader.u16()?.into());
        let items = read_items(&mut reader, max_envelopes(ctx))?;
        reader.finish()?;
        let notice = Self { cause, accused, evidence: Evidence::from_items(cause, items.into_iter())? };
        let foreign = accused.is_some_and(|party| !ctx.parties().contains(party));
        let plausible = !foreign && (accused.is_some() || !notice.accuses());
        let fits = notice.complaint().is_some() || envelope.body().len() <= accusation_bytes(ctx);
        if plausible && fits { Ok(notice) } else { Err(Malformed) }
    }

    /// Whether it stands or falls with its evidence.
    fn accuses(&self) -> bool {
        self.cause.needs_culprit() || self.cause == AbortCause::PartyRestarted
    }

    /// Whether it asks to be believed without evidence.
    fn is_word(&self) -> bool {
        self.evidence.is_none() && !self.accuses()
    }

    /// The word by which the run is to end: `envelope`, of which this is the content, or what it passes on.
    pub(crate) fn word(&self, ctx: &SessionContext, envelope: &Arc<Envelope>) -> Option<Fault> {
        if self.is_word() {
            // Its sender last.
            let suspects = self.accused.into_iter().chain([envelope.sender()]).collect();
            return Some(Fault::told(self.cause, suspects, Arc::clone(envelope)));
        }
        match (&self.evidence, self.accused) {
            (Evidence::Envelopes(passed_on), None) => word_in(ctx, self.cause, passed_on),
            (Evidence::Envelopes(_), Some(_)) | (Evidence::Runs(_), _) => None,
        }
    }

    /// The notice that it is about.
    fn complaint(&self) -> Option<&Arc<Envelope>> {
        match (self.cause, &self.evidence) {
            (AbortCause::FalseComplaint, Evidence::Envelopes(evidence)) => match evidence.as_slice() {
                [complaint] if complaint.round() == NOTICE_ROUND => Some(complaint),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Digests of the notices of each peer that have been judged.
#[derive(Default)]
pub(crate) struct NoticesHeard(BTreeMap<PartyId, Vec<[u8; 32]>>);

impl NoticesHeard {
    /// Refuses a notice that has been judged, and one too many.
    pub(crate) fn count(&mut self, envelope: &Envelope) -> Result<(), Reject> {
        let judged = self.0.entry(envelope.sender()).or_default();
        let digest = envelope.content_digest();
        if judged.len() == MAX_NOTICES || judged.contains(&digest) {
            return Err(Reject::Duplicate);
        }
        judged.push(digest);
        Ok(())
    }
}

/// The word, about `cause`, that is all of `evidence`.
fn word_in(ctx: &SessionContext, cause: AbortCause, evidence: &[Arc<Envelope>]) -> Option<Fault> {
    let [word] = evidence else { return None };
    if word.round() != NOTICE_ROUND || !genuine(ctx, word) {
        return None;
    }
    let notice = Notice::decode(ctx, word).ok()?;
    (notice.cause == cause && notice.is_word()).then(|| notice.word(ctx, word)).flatten()
}

fn write_items(writer: &mut Writer, items: &[Vec<u8>]) {
    writer.u16(u16::try_from(items.len()).unwrap_or(u16::MAX));
    items.iter().for_each(|item| writer.sized(item));
}

/// At most `limit`.
fn read_items<'a>(reader: &mut Reader<'a>, limit: usize) -> Result<Vec<&'a [u8]>, Malformed> {
    let count = usize::from(reader.u16()?);
    if count > limit {
        return Err(Malformed);
    }
    (0..count).map(|_| reader.sized(MAX_ENVELOPE_BYTES)).collect()
}

/// The verdict on a notice. Malformed if it is a complaint about something that accuses nobody, that its accused did
/// not sign, or that is a complaint itself: nobody needs those.
pub(crate) fn judge_notice<P: Protocol>(ctx: &SessionContext, notice: Notice) -> Result<Verdict, Malformed> {
    let Some(complaint) = notice.complaint() else { return weigh::<P>(ctx, &notice).ok_or(Malformed) };
    let inner = Notice::decode(ctx, complaint)?;
    let signed_by_accused = notice.accused == Some(complaint.sender()) && genuine(ctx, complaint);
    if !signed_by_accused || inner.complaint().is_some() {
        return Err(Malformed);
    }
    Ok(match weigh::<P>(ctx, &inner).ok_or(Malformed)? {
        Verdict::Refuted => Verdict::Proven(false_complaint(complaint)),
        verdict @ (Verdict::Proven(_) | Verdict::Restarted(_) | Verdict::Told(_)) => verdict,
    })
}

/// The sender of a notice accused somebody of what its evidence does not show.
pub(crate) fn false_complaint(notice: &Arc<Envelope>) -> Fault {
    Fault::proven(AbortCause::FalseComplaint, notice.sender(), vec![Arc::clone(notice)])
}

/// The verdict on an accusation that is no complaint. `None` if it accuses nobody, or only by its word.
fn weigh<P: Protocol>(ctx: &SessionContext, notice: &Notice) -> Option<Verdict> {
    let (cause, Some(accused)) = (notice.cause, notice.accused) else { return None };
    if !notice.accuses() {
        return None;
    }
    let evidence = match &notice.evidence {
        Evidence::Envelopes(envelopes) => envelopes,
        Evidence::Runs(claims) => {
            return Some(if ran_twice(ctx, accused, claims) {
                Verdict::Restarted(Fault::restarted(accused, Some((**claims).clone())))
            } else {
                Verdict::Refuted
            });
        }
    };
    if !evidence.iter().all(|envelope| genuine(ctx, envelope)) {
        return Some(Verdict::Refuted);
    }
    // A party that signed two messages for one place has itself to blame, and nothing else is read from such evidence.
    if let Some([one, other]) = double_place(evidence) {
        let both = vec![Arc::clone(one), Arc::clone(other)];
        return Some(Verdict::Proven(Fault::proven(AbortCause::Equivocation, one.sender(), both)));
    }
    let by_accused = evidence.iter().any(|envelope| envelope.sender() == accused);
    let shown = by_accused && one_run_each(evidence) && shows::<P>(ctx, cause, accused, evidence);
    Some(if shown {
        Verdict::Proven(Fault::proven(cause, accused, evidence.clone()))
    } else {
        Verdict::Refuted
    })
}

/// The checks that everybody makes, cause by cause. The evidence is genuine, holds no place twice and one run of each
/// party.
fn shows<P: Protocol>(
    ctx: &SessionContext,
    cause: AbortCause,
    accused: PartyId,
    evidence: &[Arc<Envelope>],
) -> bool {
    match (cause, evidence) {
        (AbortCause::MalformedBody, [disclosure]) if disclosure.round() == DISCLOSURE_ROUND => {
            Disclosure::open(ctx, disclosure).is_err()
        }
        (AbortCause::FalseComplaint, [disclosure]) => lies(ctx, accused, disclosure, disclosure),
        (AbortCause::FalseComplaint, [carrier, disclosure]) => lies(ctx, accused, carrier, disclosure),
        (AbortCause::FalseComplaint | AbortCause::Equivocation | AbortCause::PartyRestarted, _) => false,
        _ if evidence.iter().any(|envelope| rule_round(ctx, envelope).is_none()) => false,
        _ => P::judge(ctx, cause, accused, evidence),
    }
}

/// Whether the disclosure of `accused` does not support its claim in `carrier`, which may be the same disclosure.
fn lies(ctx: &SessionContext, accused: PartyId, carrier: &Arc<Envelope>, disclosure: &Arc<Envelope>) -> bool {
    let open = |envelope: &Arc<Envelope>| {
        let disclosed = envelope.round() == DISCLOSURE_ROUND;
        let content = disclosed.then(|| Disclosure::open(ctx, envelope).ok()).flatten()?;
        Some((Arc::clone(envelope), content))
    };
    disclosure.sender() == accused
        && open(carrier)
            .zip(open(disclosure))
            .is_some_and(|(carrier, disclosure)| lied(ctx, &carrier, &disclosure))
}

/// The round of an envelope that is of one of the protocol's own.
fn rule_round(ctx: &SessionContext, envelope: &Envelope) -> Option<u8> {
    (usize::from(envelope.round()) <= ctx.rounds().len()).then_some(envelope.round())
}

/// Two envelopes of one run for one place. A party may send several notices, and none of them refers to a place.
fn double_place(evidence: &[Arc<Envelope>]) -> Option<[&Arc<Envelope>; 2]> {
    let mut places = BTreeMap::new();
    evidence.iter().filter(|envelope| envelope.round() != NOTICE_ROUND).find_map(|envelope| {
        let place = (envelope.round(), envelope.sender(), envelope.recipient(), envelope.run());
        let held = places.insert(place, envelope)?;
        (held.content_digest() != envelope.content_digest()).then_some([held, envelope])
    })
}

fn one_run_each(evidence: &[Arc<Envelope>]) -> bool {
    let mut runs = BTreeMap::new();
    evidence.iter().all(|envelope| {
        runs.insert(envelope.sender(), envelope.run()).is_none_or(|run| run == envelope.run())
    })
}

/// Two headers that `party` signed in different runs.
fn ran_twice(ctx: &SessionContext, party: PartyId, [one, other]: &[Claim; 2]) -> bool {
    let genuine = |claim: &Claim| claim.sender() == party && claim.genuine(ctx);
    genuine(one) && genuine(other) && one.run() != other.run()
}

/// The verdict on an accusation that somebody reports about a session with these settings. Evidence that does not
/// decode, or of a kind that no party that follows the rules sends, shows nothing.
pub fn judge_report<P: Protocol>(
    settings: SessionSettings,
    cause: AbortCause,
    accused: PartyId,
    evidence: &[Vec<u8>],
) -> Result<Verdict, SetupError> {
    let ctx = SessionContext::new(P::ID, P::SIGNED, P::ROUNDS, settings, None)?;
    if evidence.len() > max_envelopes(&ctx) || !ctx.parties().contains(accused) {
        return Ok(Verdict::Refuted);
    }
    let Ok(evidence) = Evidence::from_items(cause, evidence.iter().map(Vec::as_slice)) else {
        return Ok(Verdict::Refuted);
    };
    let word = match &evidence {
        Evidence::Envelopes(envelopes) => word_in(&ctx, cause, envelopes),
        Evidence::Runs(_) => None,
    };
    if let Some(told) = word.filter(|told| told.suspects.last() == Some(&accused)) {
        return Ok(Verdict::Told(told));
    }
    let notice = Notice { cause, accused: Some(accused), evidence };
    Ok(judge_notice::<P>(&ctx, notice).unwrap_or(Verdict::Refuted))
}
