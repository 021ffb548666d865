//! How long each kind of message can be, and whether an envelope that somebody shows is genuine.
//!
//! A notice can be about a notice, and a party that blames must be heard: so the evidence in a notice is bounded by
//! what the rounds of the protocol can produce, and a notice about a notice may be longer by exactly what the wrapping
//! adds.

use crate::context::SessionContext;
use crate::envelope::{CLAIM_BYTES, ENVELOPE_OVERHEAD_BYTES, Envelope, MAX_BODY_BYTES};
use crate::rounds::{DISCLOSURE_ROUND, Delivery, NOTICE_ROUND, RoundRule};

/// The length of an embedded envelope.
const LENGTH_BYTES: usize = 4;
/// The number of embedded envelopes.
const COUNT_BYTES: usize = 2;
/// Cause and accused.
const ACCUSATION_BYTES: usize = 3;

/// The rule for a round number, if there is such a round.
pub(crate) fn rule_of(ctx: &SessionContext, round: u8) -> Option<RoundRule> {
    let max_body = match round {
        NOTICE_ROUND => complaint_bytes(ctx),
        DISCLOSURE_ROUND => disclosure_bytes(ctx),
        _ => return ctx.rounds().get(usize::from(round).checked_sub(1)?).copied(),
    };
    Some(RoundRule { delivery: Delivery::Broadcast, max_body: max_body.min(MAX_BODY_BYTES) })
}

/// Whether an envelope out of a notice or a disclosure was signed in this session by the sender it names, and is one
/// that a party following the rules could have accepted.
pub(crate) fn genuine(ctx: &SessionContext, envelope: &Envelope) -> bool {
    envelope.protocol == ctx.protocol().number
        && &envelope.session == ctx.digest()
        && ctx.parties().contains(envelope.sender())
        && envelope.recipient().is_none_or(|recipient| ctx.parties().contains(recipient))
        && rule_of(ctx, envelope.round()).is_some_and(|rule| {
            envelope.delivery() == rule.delivery && envelope.body().len() <= rule.max_body
        })
        && envelope.signature_verifies(ctx)
}

/// Most envelopes that a disclosure, or the evidence in a notice, can consist of.
pub(crate) fn max_envelopes(ctx: &SessionContext) -> usize {
    ctx.parties().len() * ctx.rounds().len() + 2
}

/// Longest body of a notice whose evidence holds no other notice.
pub(crate) fn accusation_bytes(ctx: &SessionContext) -> usize {
    let rounds = ctx.rounds().iter().map(|rule| rule.max_body).max().unwrap_or(0);
    let largest = rounds.max(disclosure_bytes(ctx)) + ENVELOPE_OVERHEAD_BYTES + LENGTH_BYTES;
    ACCUSATION_BYTES + COUNT_BYTES + 2 * largest
}

/// Longest body of a notice: one about another notice, which holds no third one.
fn complaint_bytes(ctx: &SessionContext) -> usize {
    ACCUSATION_BYTES + COUNT_BYTES + LENGTH_BYTES + ENVELOPE_OVERHEAD_BYTES + accusation_bytes(ctx)
}

/// Length of a disclosure in which every broadcast has its greatest length.
fn disclosure_bytes(ctx: &SessionContext) -> usize {
    let of_one_party: usize = ctx
        .rounds()
        .iter()
        .filter(|rule| rule.delivery == Delivery::Broadcast)
        .map(|rule| rule.max_body + ENVELOPE_OVERHEAD_BYTES + LENGTH_BYTES)
        .sum();
    2 * CLAIM_BYTES + COUNT_BYTES + ctx.parties().len() * of_one_party
}
