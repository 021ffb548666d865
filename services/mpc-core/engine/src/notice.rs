//! Notices of parties that aborted, and the judge of what they accuse others of.
//!
//! The judge is a pure function of the context and the envelopes, so that all parties come to the same verdict. A notice
//! is about something that happened in the rounds or in a dispute, or about such a notice. Whatever wraps it further is
//! not looked at: a party that hears a complaint about a notice judges that notice itself, and passes on either what it
//! proves or that it proves nothing. So no honest party ever sends a notice that others would not hear.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::broadcast::{read_envelopes, write_envelopes};
use crate::context::{SessionContext, SessionSettings};
use crate::disclosure::{Disclosure, lied};
use crate::envelope::Envelope;
use crate::fault::{AbortCause, Fault, SetupError};
use crate::limits::{accusation_bytes, genuine, max_envelopes};
use crate::party::PartyId;
use crate::protocol::Protocol;
use crate::rounds::{DISCLOSURE_ROUND, Delivery, NOTICE_ROUND};
use crate::wire::{Malformed, Reader, Writer};

/// What an accusation comes to.
pub enum Verdict {
    /// The fault is shown to everybody. Whom it convicts need not be whom the accusation named.
    Proven(Fault),
    /// A party ran the session twice: it is named and not blamed.
    Restarted(Fault),
    /// Nothing is shown: who made the accusation broke the rules.
    Refuted,
}

/// Why a party aborted, and what convinces others that `accused` is the reason.
pub(crate) struct Notice {
    pub(crate) cause: AbortCause,
    pub(crate) accused: Option<PartyId>,
    pub(crate) evidence: Vec<Arc<Envelope>>,
}

impl Notice {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u8(self.cause.number());
        writer.u16(self.accused.map_or(0, PartyId::get));
        write_envelopes(&mut writer, self.evidence.iter());
        writer.finish()
    }

    pub(crate) fn decode(ctx: &SessionContext, envelope: &Envelope) -> Result<Self, Malformed> {
        let mut reader = Reader::new(envelope.body());
        let cause = AbortCause::from_number(reader.u8()?).ok_or(Malformed)?;
        let accused = PartyId::new(reader.u16()?.into());
        let evidence = read_envelopes(&mut reader, max_envelopes(ctx))?;
        reader.finish()?;
        let notice = Self { cause, accused, evidence };
        let plausible = match accused {
            Some(party) => {
                ctx.parties().contains(party)
                    && (cause.needs_culprit() || cause == AbortCause::PartyRestarted)
            }
            None => !cause.needs_culprit() && notice.evidence.is_empty(),
        };
        let fits = notice.complaint().is_some() || envelope.body().len() <= accusation_bytes(ctx);
        if plausible && fits { Ok(notice) } else { Err(Malformed) }
    }

    /// Whether it asks to be believed without evidence.
    pub(crate) fn is_word(&self) -> bool {
        self.evidence.is_empty() && !self.cause.needs_culprit()
    }

    /// The notice that it is about.
    fn complaint(&self) -> Option<&Arc<Envelope>> {
        match (self.cause, self.evidence.as_slice()) {
            (AbortCause::FalseComplaint, [complaint]) if complaint.round() == NOTICE_ROUND => Some(complaint),
            _ => None,
        }
    }
}

/// The verdict on a notice. Malformed if it is a complaint about something that accuses nobody, that its accused did not
/// sign, or that is a complaint itself: nobody needs those.
pub(crate) fn judge_notice<P: Protocol>(ctx: &SessionContext, notice: Notice) -> Result<Verdict, Malformed> {
    let Some(complaint) = notice.complaint() else { return weigh::<P>(ctx, &notice).ok_or(Malformed) };
    let inner = Notice::decode(ctx, complaint)?;
    let signed_by_accused = notice.accused == Some(complaint.sender()) && genuine(ctx, complaint);
    if !signed_by_accused || inner.complaint().is_some() {
        return Err(Malformed);
    }
    Ok(match weigh::<P>(ctx, &inner).ok_or(Malformed)? {
        Verdict::Refuted => Verdict::Proven(false_complaint(complaint)),
        verdict @ (Verdict::Proven(_) | Verdict::Restarted(_)) => verdict,
    })
}

/// The sender of a notice accused somebody of what its evidence does not show.
pub(crate) fn false_complaint(notice: &Arc<Envelope>) -> Fault {
    Fault::proven(AbortCause::FalseComplaint, notice.sender(), vec![Arc::clone(notice)])
}

/// The verdict on an accusation that is no complaint. `None` if it accuses nobody, or only by its word.
fn weigh<P: Protocol>(ctx: &SessionContext, notice: &Notice) -> Option<Verdict> {
    let Notice { cause, accused: Some(accused), evidence } = notice else { return None };
    if notice.is_word() {
        return None;
    }
    if !evidence.iter().all(|envelope| genuine(ctx, envelope)) {
        return Some(Verdict::Refuted);
    }
    // Whoever signed two messages for one place has itself to blame, and nothing else is read from such evidence.
    if let Some([one, other]) = double_place(evidence) {
        let both = vec![Arc::clone(one), Arc::clone(other)];
        return Some(Verdict::Proven(Fault::proven(AbortCause::Equivocation, one.sender(), both)));
    }
    if cause == &AbortCause::PartyRestarted {
        let restarted = matches!(evidence.as_slice(), [one, other] if ran_twice(ctx, *accused, one, other));
        return Some(if restarted {
            Verdict::Restarted(Fault::restarted(*accused, evidence.clone()))
        } else {
            Verdict::Refuted
        });
    }
    let by_accused = evidence.iter().any(|envelope| envelope.sender() == *accused);
    let shown = by_accused && one_run_each(evidence) && shows::<P>(ctx, *cause, *accused, evidence);
    Some(if shown {
        Verdict::Proven(Fault::proven(*cause, *accused, evidence.clone()))
    } else {
        Verdict::Refuted
    })
}

/// What everybody checks, cause by cause. The evidence is genuine, holds no place twice and one run of each party.
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

/// Two broadcasts of `party` from different runs.
fn ran_twice(ctx: &SessionContext, party: PartyId, one: &Envelope, other: &Envelope) -> bool {
    let broadcast = |envelope: &Envelope| {
        envelope.sender() == party
            && envelope.delivery() == Delivery::Broadcast
            && rule_round(ctx, envelope).is_some()
    };
    broadcast(one) && broadcast(other) && one.run() != other.run()
}

/// The verdict on an accusation that somebody reports about a session with these settings. Evidence that does not decode, or
/// of a kind that no party that follows the rules sends, shows nothing.
pub fn judge_report<P: Protocol>(
    settings: SessionSettings,
    cause: AbortCause,
    accused: PartyId,
    evidence: &[Vec<u8>],
) -> Result<Verdict, SetupError> {
    let ctx = SessionContext::new(P::ID, P::SIGNED, P::ROUNDS, settings)?;
    if evidence.len() > max_envelopes(&ctx) || !ctx.parties().contains(accused) {
        return Ok(Verdict::Refuted);
    }
    let decoded = evidence.iter().map(|bytes| Envelope::decode(bytes).map(Arc::new));
    let Ok(evidence) = decoded.collect::<Result<Vec<_>, _>>() else { return Ok(Verdict::Refuted) };
    let notice = Notice { cause, accused: Some(accused), evidence };
    Ok(judge_notice::<P>(&ctx, notice).unwrap_or(Verdict::Refuted))
}
