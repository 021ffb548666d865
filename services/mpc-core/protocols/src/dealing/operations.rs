//! The three protocols: which parties may start them, and with which inputs.

use std::sync::Arc;

use engine::session::History;
use engine::{
    AbortCause, Envelope, Fault, Inbox, Next, Outbox, PartyId, Protocol, ProtocolId, RoundRule, Secret,
    SessionContext, SetupError,
};
use rand_core::CryptoRng;

use super::blame::judge;
use super::messages::rounds;
use super::rounds::{Constant, Dealing, Reshared, Turn, deal};
use super::scheme::{Generated, Held, Public, Scheme};
use super::terms::{ReshareTerms, base_of};
use crate::curve::Curve;

/// Makes a key.
pub struct Keygen<S: Generated>(Dealing<S>);

/// Makes new shares of a key for the same parties and threshold. The old shares, of the epoch before, fit them no more.
/// The payload of the session is the encoding of the key's public data as it was.
pub struct Refresh<S: Scheme>(Dealing<S>);

/// Makes new shares of a key for other parties, or with another threshold. Also repairs a share that was lost: its
/// party only receives. The payload of the session is the encoding of [`ReshareTerms`].
pub struct Reshare<S: Scheme>(Dealing<S>);

impl<S: Scheme> Turn<S> {
    fn lead_to<P: Protocol>(
        self,
        protocol: impl FnOnce(Dealing<S>) -> P,
        output: impl FnOnce(Reshared<S>) -> Option<P::Output>,
    ) -> Result<Next<P>, Fault> {
        match self {
            Turn::Round(state, outbox) => Ok(Next::Round(protocol(state), outbox)),
            Turn::Done(reshared) => output(reshared).map(Next::Done).ok_or_else(Fault::internal),
        }
    }
}

fn share_of<S: Scheme>(reshared: Reshared<S>) -> Option<S::Share> {
    reshared.share
}

impl<S: Generated> Protocol for Keygen<S> {
    const ID: ProtocolId = S::KEYGEN;
    const SIGNED: bool = true;
    const ROUNDS: &'static [RoundRule] = rounds::<S>();
    type Input = ();
    type Output = S::Share;

    fn start(ctx: &SessionContext, (): (), rng: &mut dyn CryptoRng) -> Result<(Self, Outbox), SetupError> {
        let me = ctx.me().ok_or(SetupError::ObserverNotAllowed)?;
        if !(2..=ctx.parties().len()).contains(&ctx.threshold().get()) {
            return Err(SetupError::ThresholdRange);
        }
        if ctx.epoch() != 1 {
            return Err(SetupError::EpochRange);
        }
        if !ctx.payload().is_empty() {
            return Err(SetupError::PayloadLength);
        }
        let (state, outbox) = deal(ctx, me, Secret::new(S::Curve::scalar(0)), Constant::Random, rng);
        Ok((Self(state), outbox))
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        self.0.step(ctx, &inbox, history, rng)?.lead_to(Self, share_of)
    }

    fn judge(ctx: &SessionContext, cause: AbortCause, accused: PartyId, evidence: &[Arc<Envelope>]) -> bool {
        judge::<S>(ctx, cause, accused, evidence)
    }
}

impl<S: Scheme> Protocol for Refresh<S> {
    const ID: ProtocolId = S::REFRESH;
    const SIGNED: bool = true;
    const ROUNDS: &'static [RoundRule] = rounds::<S>();
    type Input = S::Share;
    type Output = S::Share;

    fn start(
        ctx: &SessionContext,
        share: S::Share,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let me = ctx.me().ok_or(SetupError::ObserverNotAllowed)?;
        let Held { public, party, signing_share } = S::open(share);
        if party != me || public.key_id() != ctx.key_id() || public.threshold() != ctx.threshold() {
            return Err(SetupError::ShareMismatch);
        }
        // A key that every party holds whole has nothing to renew.
        if ctx.threshold().get() < 2 {
            return Err(SetupError::ThresholdRange);
        }
        if public.epoch().checked_add(1) != Some(ctx.epoch()) {
            return Err(SetupError::EpochRange);
        }
        if &public.parties() != ctx.parties() {
            return Err(SetupError::SigningSetNotOfKey);
        }
        if base_of::<S>(ctx).as_ref() != Some(&public) {
            return Err(SetupError::PayloadInvalid);
        }
        let zero = Constant::Fixed(Secret::new(S::Curve::scalar(0)));
        let (state, outbox) = deal(ctx, me, signing_share, zero, rng);
        Ok((Self(state), outbox))
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        self.0.step(ctx, &inbox, history, rng)?.lead_to(Self, share_of)
    }

    fn judge(ctx: &SessionContext, cause: AbortCause, accused: PartyId, evidence: &[Arc<Envelope>]) -> bool {
        judge::<S>(ctx, cause, accused, evidence)
    }
}

impl<S: Scheme> Protocol for Reshare<S> {
    const ID: ProtocolId = S::RESHARE;
    const SIGNED: bool = true;
    const ROUNDS: &'static [RoundRule] = rounds::<S>();
    /// The old share, of a dealer.
    type Input = Option<S::Share>;
    type Output = Reshared<S>;

    fn start(
        ctx: &SessionContext,
        share: Option<S::Share>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let me = ctx.me().ok_or(SetupError::ObserverNotAllowed)?;
        let terms = ReshareTerms::<S>::of(ctx).ok_or(SetupError::PayloadInvalid)?;
        // [H1] what is agreed fits together, and is what the own share says.
        terms.check(ctx)?;
        let constant = match share.map(S::open) {
            Some(_) if !terms.dealers.contains(me) => return Err(SetupError::InputUnexpected),
            None if terms.dealers.contains(me) => return Err(SetupError::ShareMissing),
            Some(held) if held.party != me || held.public != terms.base => {
                return Err(SetupError::ShareMismatch);
            }
            Some(Held { signing_share, .. }) => {
                let weight = terms.weight(me).ok_or(SetupError::SigningSetNotOfKey)?;
                Constant::Fixed(Secret::new(S::Curve::mul(&weight, signing_share.expose())))
            }
            None => Constant::None,
        };
        let (state, outbox) = deal(ctx, me, Secret::new(S::Curve::scalar(0)), constant, rng);
        Ok((Self(state), outbox))
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        self.0.step(ctx, &inbox, history, rng)?.lead_to(Self, Some)
    }

    fn judge(ctx: &SessionContext, cause: AbortCause, accused: PartyId, evidence: &[Arc<Envelope>]) -> bool {
        judge::<S>(ctx, cause, accused, evidence)
    }
}
