//! One party's part in key generation, round by round.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    AbortCause, Body, Fault, History, Inbox, Next, Outbox, PartyId, Secret, SessionContext, SetupError,
};
use primitives::bls12_381::{CurveG1, G1, G2, HashedMessage, Scalar, UncheckedG2, verify_batch};
use primitives::schnorr::{self, Statement};
use primitives::shamir::Weights;
use rand_core::CryptoRng;

use crate::bls::key::{KeyPublic, KeyShare, VerificationShare};
use crate::bls::scheme::Subgroup;
use crate::curve::{Curve, Polynomial};
use crate::dealing::read;
use crate::hedged::HedgedRng;
use crate::tags;

use super::blame::{body_fault, constant_term_unproven, first_fault, wrong_confirmation, wrong_share};
use super::joint::Joint;
use super::messages::{Commitment, Confirmation, DIGEST_BYTES, Opening, Share};

/// One party's part in key generation.
pub enum Keygen {
    /// Waiting for commitments.
    Committed(Committed),
    /// Waiting for openings.
    Opened(Opened),
    /// Waiting for shares.
    Dealt(Dealt),
    /// Waiting for confirmations.
    Confirmed(Box<Confirmed>),
}

/// State of round 1.
pub struct Committed {
    pub(super) me: PartyId,
    pub(super) polynomial: Polynomial<Subgroup>,
    pub(super) opening: Opening,
}

/// State of round 2.
pub struct Opened {
    me: PartyId,
    polynomial: Polynomial<Subgroup>,
    opening: Opening,
    commitments: BTreeMap<PartyId, [u8; DIGEST_BYTES]>,
}

/// State of round 3.
pub struct Dealt {
    me: PartyId,
    /// The value of our own polynomial at our own number.
    own_share: Secret<Scalar>,
    joint: Joint,
    /// Everyone's points, to find out whose share is wrong.
    points: BTreeMap<PartyId, Vec<CurveG1>>,
}

/// State of round 4.
pub struct Confirmed {
    me: PartyId,
    signing_share: Secret<Scalar>,
    joint: Joint,
    verification_points: BTreeMap<PartyId, G1>,
    message: HashedMessage,
    own_partial: G2,
}

/// [K1] draw a polynomial, commit to it.
pub(super) fn start(ctx: &SessionContext, rng: &mut dyn CryptoRng) -> Result<(Keygen, Outbox), SetupError> {
    let me = ctx.me().ok_or(SetupError::ObserverNotAllowed)?;
    if ctx.threshold().get() > ctx.parties().len() {
        return Err(SetupError::ThresholdRange);
    }
    if ctx.epoch() != 1 {
        return Err(SetupError::EpochRange);
    }
    if !ctx.payload().is_empty() {
        return Err(SetupError::PayloadLength);
    }
    // [K1.1] a polynomial of `threshold` terms and its points.
    let mut drawn = HedgedRng::new(ctx, tags::BLS_COEFFICIENT, &[], rng);
    let polynomial = Polynomial::draw(ctx.threshold().get(), None, &mut drawn);
    let points = polynomial.points().into_iter().map(CurveG1::from).collect();
    Committed::commit(ctx, me, (polynomial, points), rng)
}

/// From which the weights of a batch are drawn. A party that could tell them beforehand could send values whose errors
/// cancel; a secret of this party keeps them unknown also with a bad generator.
fn weights_rng(ctx: &SessionContext, secret: Option<&Secret<Scalar>>, rng: &mut dyn CryptoRng) -> HedgedRng {
    let secret = secret.map(|secret| Subgroup::encode_scalar(secret.expose())).unwrap_or_default();
    HedgedRng::new(ctx, tags::BLS_BATCH_WEIGHTS, &secret, rng)
}

impl Committed {
    /// Commits to a polynomial with these points; the points are those of the polynomial, except in tests.
    pub(super) fn commit(
        ctx: &SessionContext,
        me: PartyId,
        (polynomial, points): (Polynomial<Subgroup>, Vec<CurveG1>),
        rng: &mut dyn CryptoRng,
    ) -> Result<(Keygen, Outbox), SetupError> {
        let constant_term = polynomial.constant().ok_or(SetupError::ThresholdRange)?;
        let opening = Opening::new(ctx, me, (constant_term, points), rng);
        // [K1.4] commit.
        let mut outbox = Outbox::new();
        outbox.broadcast(&Commitment { digest: opening.digest(ctx, me) });
        Ok((Keygen::Committed(Self { me, polynomial, opening }), outbox))
    }

    /// [K2] keep the commitments, broadcast the opening.
    pub(super) fn advance(self, ctx: &SessionContext, inbox: &Inbox) -> Result<Next<Keygen>, Fault> {
        let mut commitments = BTreeMap::new();
        for envelope in inbox.iter() {
            let commitment: Commitment = read(ctx, envelope)?;
            commitments.insert(envelope.sender(), commitment.digest);
        }
        let Self { me, polynomial, opening } = self;
        let mut outbox = Outbox::new();
        outbox.broadcast(&opening);
        Ok(Next::Round(Keygen::Opened(Opened { me, polynomial, opening, commitments }), outbox))
    }
}

impl Opened {
    /// [K3] check the openings, deal the shares.
    pub(super) fn advance(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Keygen>, Fault> {
        let Self { me, polynomial, opening, commitments } = self;
        let mut openings = BTreeMap::new();
        for envelope in inbox.iter() {
            let sender = envelope.sender();
            let opening: Opening = read(ctx, envelope)?;
            // [K3.1] it is what was committed to.
            if commitments.get(&sender) != Some(&opening.digest(ctx, sender)) {
                let commitment = history.broadcast(Commitment::ROUND, sender)?;
                let evidence = vec![commitment, Arc::clone(envelope)];
                return Err(Fault::proven(AbortCause::WrongOpening, sender, evidence));
            }
            openings.insert(sender, opening);
        }
        // [K3.2] every sender knows its constant term.
        let statements: Vec<Statement> =
            openings.iter().map(|(sender, opening)| opening.constant_term(ctx, *sender)).collect();
        if !schnorr::verify_batch(&statements, &mut weights_rng(ctx, polynomial.constant(), rng)) {
            return Err(first_fault(inbox, AbortCause::WrongProof, |envelope| {
                constant_term_unproven(ctx, envelope.sender(), envelope)
            }));
        }
        openings.insert(me, opening);
        // [K3.3] the joint polynomial; all of it in the subgroup.
        let joint = match Joint::of(ctx, &openings) {
            Ok(joint) => joint,
            Err(AbortCause::InvalidPoint) => {
                return Err(first_fault(inbox, AbortCause::InvalidPoint, |envelope| {
                    body_fault(ctx, envelope) == Some(AbortCause::InvalidPoint)
                }));
            }
            Err(cause) => return Err(Fault::nobody(cause)),
        };
        // [K3.4] one share for each peer.
        let mut outbox = Outbox::new();
        for peer in ctx.peers().iter() {
            outbox.private(peer, &Share { value: polynomial.at(peer) });
        }
        let own_share = polynomial.at(me);
        let points = openings.into_iter().map(|(party, opening)| (party, opening.points)).collect();
        Ok(Next::Round(Keygen::Dealt(Dealt { me, own_share, joint, points }), outbox))
    }
}

impl Dealt {
    /// [K4] check the shares, confirm the own signing share.
    pub(super) fn advance(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Keygen>, Fault> {
        let Self { me, own_share, joint, points } = self;
        // [K4.1] the signing share is the sum; its point must be the one that the commitments give.
        let mut sum = own_share;
        for envelope in inbox.iter() {
            let share: Share = read(ctx, envelope)?;
            sum = Secret::new(sum.expose().add(share.value.expose()));
        }
        let signing_share = sum;
        let verification_points: BTreeMap<PartyId, G1> =
            ctx.parties().iter().map(|party| (party, joint.verification_point(party))).collect();
        let own_point = G1::mul_generator(&signing_share);
        if verification_points.get(&me) != Some(&own_point) {
            return Err(wrong_share(ctx, me, &points, inbox, history));
        }
        if verification_points.values().any(G1::is_identity) {
            return Err(Fault::nobody(AbortCause::DegenerateKey));
        }
        // [K4.2] proof of knowledge of the signing share, bound to all openings.
        let proof = joint.prove_share(ctx, me, (&signing_share, &own_point), rng);
        // [K4.3] partial proof of possession of the joint key.
        let message = joint.possession_message().ok_or_else(Fault::internal)?;
        let own_partial = message.sign(&signing_share);
        let mut outbox = Outbox::new();
        outbox.broadcast(&Confirmation { proof, partial_possession: own_partial });
        let state = Confirmed { me, signing_share, joint, verification_points, message, own_partial };
        Ok(Next::Round(Keygen::Confirmed(Box::new(state)), outbox))
    }
}

impl Confirmed {
    /// [K5] check the confirmations, put the key together.
    pub(super) fn advance(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Keygen>, Fault> {
        let mut confirmations = BTreeMap::new();
        for envelope in inbox.iter() {
            confirmations.insert(envelope.sender(), read::<Confirmation>(ctx, envelope)?);
        }
        // [K5.1] every sender knows its signing share.
        let mut statements = Vec::with_capacity(confirmations.len());
        let mut keys = Vec::with_capacity(confirmations.len());
        let mut partials = Vec::with_capacity(confirmations.len());
        for (sender, confirmation) in &confirmations {
            let point = *self.verification_points.get(sender).ok_or_else(Fault::internal)?;
            statements.push(self.joint.share_equation(ctx, *sender, &point, &confirmation.proof));
            keys.push(point);
            partials.push(confirmation.partial_possession);
        }
        // [K5.2] every partial proof of possession verifies under its sender's verification share.
        let mut weights = weights_rng(ctx, Some(&self.signing_share), rng);
        let sound = schnorr::verify_batch(&statements, &mut weights)
            && verify_batch(&keys, &self.message, &partials, &mut weights);
        if !sound {
            return Err(wrong_confirmation(ctx, inbox, history));
        }
        // [K5.3] any `threshold` of them combine into the same proof of possession.
        let mut signers: Vec<(PartyId, UncheckedG2)> = confirmations
            .iter()
            .map(|(sender, confirmation)| (*sender, confirmation.partial_possession.into()))
            .collect();
        signers.push((self.me, self.own_partial.into()));
        signers.sort_unstable_by_key(|(party, _)| *party);
        signers.truncate(ctx.threshold().get());
        let numbers: Vec<u16> = signers.iter().map(|(party, _)| party.get()).collect();
        let partials: Vec<UncheckedG2> = signers.into_iter().map(|(_, partial)| partial).collect();
        let weights = Weights::at_zero(&numbers).ok_or_else(Fault::internal)?;
        let proof_of_possession = UncheckedG2::combine(&partials, &weights).to_compressed();
        let [public_key, ..] = self.joint.points.as_slice() else { return Err(Fault::internal()) };
        let public = KeyPublic {
            public_key: public_key.to_compressed(),
            threshold: ctx.threshold(),
            key_id: ctx.key_id().to_owned(),
            epoch: ctx.epoch(),
            verification_shares: self
                .verification_points
                .iter()
                .map(|(party, point)| VerificationShare { party: *party, point: point.to_compressed() })
                .collect(),
            proof_of_possession,
        };
        Ok(Next::Done(KeyShare { party: self.me, signing_share: self.signing_share, public }))
    }
}
