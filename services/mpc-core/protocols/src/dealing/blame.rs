//! Blame: the evidence of an honest party, and the checks of everybody else.

use std::sync::Arc;

use engine::{AbortCause, Body, Envelope, Fault, PartyId, SessionContext, View, parse};

use super::companion::Companion;
use super::messages::{Commitment, Confirmation, Exchange, Opening, Share, on_polynomial};
use super::openings::join;
use super::scheme::Scheme;
use super::terms::{Operation, ReshareTerms};

/// Decodes a body; the envelope alone shows the faults of its bytes.
pub(crate) fn read<B: Body>(ctx: &SessionContext, envelope: &Arc<Envelope>) -> Result<B, Fault> {
    parse(ctx, envelope).map_err(|cause| Fault::proven(cause, envelope.sender(), vec![Arc::clone(envelope)]))
}

pub(super) fn judge<S: Scheme>(
    ctx: &SessionContext,
    cause: AbortCause,
    accused: PartyId,
    evidence: &[Arc<Envelope>],
) -> bool {
    match cause {
        AbortCause::MalformedBody
        | AbortCause::InvalidPoint
        | AbortCause::InvalidScalar
        | AbortCause::WrongDegree => matches!(
            evidence,
            [envelope] if envelope.sender() == accused && body_fault::<S>(ctx, envelope) == Some(cause)
        ),
        AbortCause::WrongOpening => match evidence {
            [commitment, opening] => opening_differs::<S>(ctx, accused, commitment, opening),
            [opening] => part_differs::<S>(ctx, accused, opening),
            _ => false,
        },
        AbortCause::WrongShare => {
            matches!(evidence, [opening, share] if share_differs::<S>(ctx, accused, opening, share))
        }
        AbortCause::WrongProof => match evidence {
            [opening] => constant_unproven::<S>(ctx, accused, opening),
            [earlier @ .., confirmation] => share_unproven::<S>(ctx, accused, earlier, confirmation),
            [] => false,
        },
        AbortCause::Internal
        | AbortCause::FalseComplaint
        | AbortCause::Equivocation
        | AbortCause::BroadcastMismatch
        | AbortCause::WrongPartialSignature
        | AbortCause::NotEnoughPartials
        | AbortCause::DegenerateKey
        | AbortCause::TransferCheckFailed
        | AbortCause::WrongProduct
        | AbortCause::InconsistentShares
        | AbortCause::InvalidSignature
        | AbortCause::PartyRestarted
        | AbortCause::TripleCheckFailed
        | AbortCause::WrongAuthenticator
        | AbortCause::WrongLabel
        | AbortCause::WrongTable
        | AbortCause::DabitCheckFailed
        | AbortCause::WrongInput
        | AbortCause::CircuitMismatch
        | AbortCause::OtherNonce
        | AbortCause::WrongTestSignature => false,
    }
}

/// The fault of a body on its own.
fn body_fault<S: Scheme>(ctx: &SessionContext, envelope: &Envelope) -> Option<AbortCause> {
    let step = envelope.round().checked_sub(Share::<S>::ROUND);
    match envelope.round() {
        Commitment::ROUND => parse::<Commitment>(ctx, envelope).err(),
        round if round == Opening::<S>::ROUND => parse::<Opening<S>>(ctx, envelope).err(),
        round if round == Share::<S>::ROUND => parse::<Share<S>>(ctx, envelope).err(),
        round if round == Confirmation::<S>::ROUND => parse::<Confirmation<S>>(ctx, envelope).err(),
        _ if step == Some(1) && S::Companion::ROUNDS >= 1 => parse::<Exchange<S, 1>>(ctx, envelope).err(),
        _ if step == Some(2) && S::Companion::ROUNDS >= 2 => parse::<Exchange<S, 2>>(ctx, envelope).err(),
        _ => None,
    }
}

/// Whether two envelopes, both of the accused, show `fault` together. Bodies that do not decode show nothing here.
pub(crate) fn shown_by_both<A: Body, B: Body>(
    ctx: &SessionContext,
    accused: PartyId,
    (first, second): (&Envelope, &Envelope),
    fault: impl FnOnce(A, B) -> bool,
) -> bool {
    if first.sender() != accused || second.sender() != accused {
        return false;
    }
    match (parse(ctx, first), parse(ctx, second)) {
        (Ok(first), Ok(second)) => fault(first, second),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

fn opening_differs<S: Scheme>(
    ctx: &SessionContext,
    accused: PartyId,
    commitment: &Envelope,
    opening: &Envelope,
) -> bool {
    shown_by_both(ctx, accused, (commitment, opening), |commitment: Commitment, opening: Opening<S>| {
        commitment.digest != opening.digest(ctx, accused)
    })
}

/// Whether the opening of a reshare has a constant term that is not its maker's.
fn part_differs<S: Scheme>(ctx: &SessionContext, accused: PartyId, opening: &Envelope) -> bool {
    Operation::of::<S>(ctx) == Operation::Reshare
        && opening.sender() == accused
        && match (ReshareTerms::<S>::of(ctx), parse::<Opening<S>>(ctx, opening)) {
            (Some(terms), Ok(opening)) => !terms.allow(accused, &opening.points),
            (None, _) | (_, Err(_)) => false,
        }
}

fn share_differs<S: Scheme>(
    ctx: &SessionContext,
    accused: PartyId,
    opening: &Envelope,
    share: &Envelope,
) -> bool {
    let Some(recipient) = share.recipient() else { return false };
    shown_by_both(ctx, accused, (opening, share), |opening: Opening<S>, share: Share<S>| {
        share.value.is_some_and(|value| !on_polynomial::<S>(&value, &opening.points, recipient))
    })
}

fn constant_unproven<S: Scheme>(ctx: &SessionContext, accused: PartyId, opening: &Envelope) -> bool {
    opening.sender() == accused
        && parse::<Opening<S>>(ctx, opening).is_ok_and(|opening| !opening.proves_constant(ctx, accused))
}

/// Whether a confirmation is wrong in the light of the view that its own echo digest says its sender had. An honest
/// sender has checked that, so only what it signed on top of it can be held against it.
fn share_unproven<S: Scheme>(
    ctx: &SessionContext,
    accused: PartyId,
    earlier: &[Arc<Envelope>],
    confirmation: &Envelope,
) -> bool {
    let view = View::from_evidence(ctx, Confirmation::<S>::ROUND, earlier);
    let Some(view) = view.filter(|view| confirmation.sender() == accused && view.is_claimed_by(confirmation))
    else {
        return false;
    };
    let joint = view.bodies::<Opening<S>>(ctx).and_then(|openings| join(ctx, &openings));
    match (joint, parse::<Confirmation<S>>(ctx, confirmation)) {
        (Ok(joint), Ok(confirmation)) => !joint.proves_share(ctx, accused, confirmation.proof.as_ref()),
        (Err(_), _) | (_, Err(_)) => false,
    }
}
