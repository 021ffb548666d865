//! Blame: the evidence of an honest party, and the checks of everybody else.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{AbortCause, Body, Envelope, Fault, History, Inbox, PartyId, SessionContext, View, parse};
use primitives::bls12_381::{CurveG1, G1, verify};
use primitives::schnorr;

use crate::dealing::shown_by_both;

use super::joint::Joint;
use super::messages::{Commitment, Confirmation, Opening, Share};

pub(super) fn judge(
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
            [envelope] if envelope.sender() == accused && body_fault(ctx, envelope) == Some(cause)
        ),
        AbortCause::WrongOpening => {
            matches!(evidence, [commitment, opening] if opening_differs(ctx, accused, commitment, opening))
        }
        AbortCause::WrongShare => {
            matches!(evidence, [opening, share] if share_differs(ctx, accused, opening, share))
        }
        AbortCause::WrongProof | AbortCause::WrongPartialSignature => match evidence {
            [opening] => cause == AbortCause::WrongProof && constant_term_unproven(ctx, accused, opening),
            [earlier @ .., confirmation] => {
                View::from_evidence(ctx, Confirmation::ROUND, earlier)
                    .and_then(|view| confirmation_fault(ctx, accused, &view, confirmation))
                    == Some(cause)
            }
            [] => false,
        },
        AbortCause::Internal
        | AbortCause::FalseComplaint
        | AbortCause::Equivocation
        | AbortCause::BroadcastMismatch
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
pub(super) fn body_fault(ctx: &SessionContext, envelope: &Envelope) -> Option<AbortCause> {
    match envelope.round() {
        Commitment::ROUND => parse::<Commitment>(ctx, envelope).err(),
        Opening::ROUND => match parse::<Opening>(ctx, envelope) {
            Ok(opening) if opening.points.iter().all(|point| point.check().is_some()) => None,
            Ok(_) => Some(AbortCause::InvalidPoint),
            Err(cause) => Some(cause),
        },
        Share::ROUND => parse::<Share>(ctx, envelope).err(),
        Confirmation::ROUND => parse::<Confirmation>(ctx, envelope).err(),
        _ => None,
    }
}

fn opening_differs(
    ctx: &SessionContext,
    accused: PartyId,
    commitment: &Envelope,
    opening: &Envelope,
) -> bool {
    shown_by_both(ctx, accused, (commitment, opening), |commitment: Commitment, opening: Opening| {
        commitment.digest != opening.digest(ctx, accused)
    })
}

fn share_differs(ctx: &SessionContext, accused: PartyId, opening: &Envelope, share: &Envelope) -> bool {
    let Some(recipient) = share.recipient() else { return false };
    shown_by_both(ctx, accused, (opening, share), |opening: Opening, share: Share| {
        !CurveG1::evaluates_to(&opening.points, recipient.get(), &G1::mul_generator(&share.value))
    })
}

pub(super) fn constant_term_unproven(ctx: &SessionContext, accused: PartyId, opening: &Envelope) -> bool {
    opening.sender() == accused
        && parse::<Opening>(ctx, opening)
            .is_ok_and(|opening| !schnorr::verify(&opening.constant_term(ctx, accused)))
}

/// The fault of a confirmation, in the light of the view that its own echo digest says its sender had. An honest sender
/// has checked that, so only what it signed on top of it can be held against it.
fn confirmation_fault(
    ctx: &SessionContext,
    accused: PartyId,
    view: &View,
    confirmation: &Envelope,
) -> Option<AbortCause> {
    if confirmation.sender() != accused || !view.is_claimed_by(confirmation) {
        return None;
    }
    let openings = view.bodies::<Opening>(ctx).ok()?;
    let joint = Joint::of(ctx, &openings).ok()?;
    let confirmation: Confirmation = parse(ctx, confirmation).ok()?;
    let point = joint.verification_point(accused);
    if !schnorr::verify(&joint.share_equation(ctx, accused, &point, &confirmation.proof)) {
        return Some(AbortCause::WrongProof);
    }
    let message = joint.possession_message()?;
    (!verify(&point, &message, &confirmation.partial_possession)).then_some(AbortCause::WrongPartialSignature)
}

/// The first sender whose message has the fault that the batch showed someone to have.
pub(super) fn first_fault(
    inbox: &Inbox,
    cause: AbortCause,
    faulty: impl Fn(&Arc<Envelope>) -> bool,
) -> Fault {
    match inbox.iter().find(|envelope| faulty(envelope)) {
        Some(envelope) => Fault::proven(cause, envelope.sender(), vec![Arc::clone(envelope)]),
        None => Fault::internal(),
    }
}

pub(super) fn wrong_share(
    ctx: &SessionContext,
    me: PartyId,
    points: &BTreeMap<PartyId, Vec<CurveG1>>,
    inbox: &Inbox,
    history: &History<'_>,
) -> Fault {
    for envelope in inbox.iter() {
        let sender = envelope.sender();
        let (Ok(share), Some(points)) = (parse::<Share>(ctx, envelope), points.get(&sender)) else {
            return Fault::internal();
        };
        if !CurveG1::evaluates_to(points, me.get(), &G1::mul_generator(&share.value)) {
            return match history.broadcast(Opening::ROUND, sender) {
                Ok(opening) => {
                    Fault::proven(AbortCause::WrongShare, sender, vec![opening, Arc::clone(envelope)])
                }
                Err(fault) => fault,
            };
        }
    }
    Fault::internal()
}

pub(super) fn wrong_confirmation(ctx: &SessionContext, inbox: &Inbox, history: &History<'_>) -> Fault {
    let view = match history.view() {
        Ok(view) => view,
        Err(fault) => return fault,
    };
    for envelope in inbox.iter() {
        if let Some(cause) = confirmation_fault(ctx, envelope.sender(), &view, envelope) {
            return Fault::proven(cause, envelope.sender(), view.evidence(envelope));
        }
    }
    Fault::internal()
}
