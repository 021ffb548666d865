//! One party's part in a dealing, round by round. Steps are cited as [K1.2] from the pages of the schemes.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::session::History;
use engine::{
    AbortCause, Body, Envelope, Fault, Inbox, Outbox, PartyId, PrivateBody, Secret, SessionContext,
};
use rand_core::CryptoRng;

use crate::hedged::HedgedRng;

use super::blame::read;
use super::companion::{CheckFailed, Companion, Setting};
use super::joint::{DIGEST_BYTES, Joint};
use super::messages::{Commitment, Confirmation, Exchange, Opening, Share, on_polynomial};
use super::openings::join;
use super::roles::Roles;
use super::scheme::{PointOf, ScalarOf, Scheme};
use super::tags;
use super::terms::{Operation, ReshareTerms, base_of, roles_of};
use crate::curve::{Curve, Polynomial, sum};

type Messages<S> = BTreeMap<PartyId, <<S as Scheme>::Companion as Companion>::Message>;

/// The result that a party ends with.
pub struct Reshared<S: Scheme> {
    /// The key's public data as they are now.
    pub public: S::Public,
    /// The new share; none of a party that only dealt.
    pub share: Option<S::Share>,
}

/// Which constant term a party's polynomial has.
pub(super) enum Constant<S: Scheme> {
    /// A random one: its contribution to a new key.
    Random,
    /// This one.
    Fixed(Secret<ScalarOf<S>>),
    /// It has no polynomial.
    None,
}

/// Where a party is.
pub(super) enum Dealing<S: Scheme> {
    /// Waiting for commitments.
    Committed(Committed<S>),
    /// Waiting for openings.
    Opened(Opened<S>),
    /// Waiting for shares.
    Dealt(Box<Dealt<S>>),
    /// Waiting for the messages of one step of the exchange.
    Exchanging(Box<Exchanging<S>>),
    /// Waiting for confirmations.
    Confirmed(Box<Confirmed<S>>),
}

/// Where a step leads.
pub(super) enum Turn<S: Scheme> {
    Round(Dealing<S>, Outbox),
    Done(Reshared<S>),
}

/// State of round 1.
pub(super) struct Committed<S: Scheme> {
    me: PartyId,
    /// To which the new share is added: the old one in a refresh, else zero.
    base: Secret<ScalarOf<S>>,
    polynomial: Polynomial<S::Curve>,
    opening: Opening<S>,
}

/// State of round 2.
pub(super) struct Opened<S: Scheme> {
    of: Committed<S>,
    commitments: BTreeMap<PartyId, [u8; DIGEST_BYTES]>,
}

/// State of round 3.
pub(super) struct Dealt<S: Scheme> {
    settled: Settled<S>,
    /// Everyone's points, to check the shares against.
    points: BTreeMap<PartyId, Vec<PointOf<S>>>,
}

/// The state of a party that has dealt.
struct Settled<S: Scheme> {
    me: PartyId,
    roles: Roles,
    joint: Joint<S::Curve>,
    /// The signing share as far as it has come in; zero of a party that gets none.
    signing_share: Secret<ScalarOf<S>>,
    companion: S::Companion,
}

/// State of the rounds of the exchange.
pub(super) struct Exchanging<S: Scheme> {
    settled: Settled<S>,
    step: u8,
}

/// State of the last round.
pub(super) struct Confirmed<S: Scheme>(Settled<S>);

/// [K1] draw a polynomial, commit to it.
pub(super) fn deal<S: Scheme>(
    ctx: &SessionContext,
    me: PartyId,
    base: Secret<ScalarOf<S>>,
    constant: Constant<S>,
    rng: &mut dyn CryptoRng,
) -> (Dealing<S>, Outbox) {
    // [K1.1] a random polynomial with this constant term, and its points.
    let terms = ctx.threshold().get();
    let known = match &constant {
        Constant::Fixed(part) => sum::<S::Curve>(part, &base),
        Constant::Random | Constant::None => sum::<S::Curve>(&Secret::new(S::Curve::scalar(0)), &base),
    };
    let known = S::Curve::encode_scalar(known.expose());
    let mut hedged = HedgedRng::new(ctx, tags::POLYNOMIAL, &known, rng);
    let polynomial = match constant {
        Constant::None => Polynomial::none(),
        Constant::Random => Polynomial::draw(terms, None, &mut hedged),
        Constant::Fixed(part) => Polynomial::draw(terms, Some(part), &mut hedged),
    };
    // [K1.2] contribution to the randomness, proof of knowledge of the constant term.
    let mut contribution = [0u8; DIGEST_BYTES];
    HedgedRng::new(ctx, tags::CONTRIBUTION, &known, rng).fill(&mut contribution);
    let opening = Opening::new(ctx, me, &polynomial, contribution, rng);
    // [K1.3] commitment to all of it.
    let mut outbox = Outbox::new();
    outbox.broadcast(&Commitment { digest: opening.digest(ctx, me) });
    (Dealing::Committed(Committed { me, base, polynomial, opening }), outbox)
}

impl<S: Scheme> Dealing<S> {
    pub(super) fn step(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Turn<S>, Fault> {
        match self {
            Self::Committed(state) => state.advance(ctx, inbox),
            Self::Opened(state) => state.advance(ctx, inbox, history, rng),
            Self::Dealt(state) => state.advance(ctx, inbox, history, rng),
            Self::Exchanging(state) => state.advance(ctx, inbox, rng),
            Self::Confirmed(state) => state.finish(ctx, inbox, history),
        }
    }
}

impl<S: Scheme> Committed<S> {
    /// [K2] keep the commitments, open the own one.
    fn advance(self, ctx: &SessionContext, inbox: &Inbox) -> Result<Turn<S>, Fault> {
        let mut commitments = BTreeMap::new();
        for envelope in inbox.iter() {
            commitments.insert(envelope.sender(), read::<Commitment>(ctx, envelope)?.digest);
        }
        let mut outbox = Outbox::new();
        outbox.broadcast(&self.opening);
        Ok(Turn::Round(Dealing::Opened(Opened { of: self, commitments }), outbox))
    }
}

impl<S: Scheme> Opened<S> {
    /// [K3] check the openings, deal.
    fn advance(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Turn<S>, Fault> {
        let Self { of: Committed { me, base, polynomial, opening }, commitments } = self;
        let roles = roles_of::<S>(ctx).map_err(Fault::nobody)?;
        let terms = match Operation::of::<S>(ctx) {
            Operation::Reshare => Some(ReshareTerms::<S>::of(ctx).ok_or_else(Fault::internal)?),
            Operation::Keygen | Operation::Refresh => None,
        };
        let mut openings = BTreeMap::from([(me, opening)]);
        for envelope in inbox.iter() {
            let sender = envelope.sender();
            let opening: Opening<S> = read(ctx, envelope)?;
            // [K3.1] the opening is what was committed to.
            if commitments.get(&sender) != Some(&opening.digest(ctx, sender)) {
                let commitment = history.broadcast(Commitment::ROUND, sender)?;
                let evidence = vec![commitment, Arc::clone(envelope)];
                return Err(Fault::proven(AbortCause::WrongOpening, sender, evidence));
            }
            // [K3.2] its maker knows the constant term.
            if !opening.proves_constant(ctx, sender) {
                return Err(Fault::proven(AbortCause::WrongProof, sender, vec![Arc::clone(envelope)]));
            }
            // [H2] in a reshare, the constant term is its maker's contribution to the key.
            if terms.as_ref().is_some_and(|terms| !terms.allow(sender, &opening.points)) {
                return Err(Fault::proven(AbortCause::WrongOpening, sender, vec![Arc::clone(envelope)]));
            }
            openings.insert(sender, opening);
        }
        // [K3.3] the joint key and every verification share; none may be the identity.
        let joint = join(ctx, &openings).map_err(Fault::nobody)?;
        // [K3.4] a share for each receiver, and what begins the exchange of each pair.
        let mut signing_share = Secret::new(S::Curve::scalar(0));
        if roles.receives(me) {
            signing_share = sum::<S::Curve>(&base, &polynomial.at(me));
        }
        let setting = Setting { ctx, me, roles: &roles, openings: &joint.digest };
        let mut hedged = companion_rng::<S>(ctx, &signing_share, rng);
        let (companion, messages) = S::Companion::begin(&setting, &mut hedged);
        let mut outbox = Outbox::new();
        for (peer, companion) in messages {
            let deals = roles.deals(me) && roles.receives(peer);
            let value = deals.then(|| polynomial.at(peer));
            outbox.private(peer, &Share::<S> { value, companion });
        }
        let points = openings.into_iter().map(|(party, opening)| (party, opening.points)).collect();
        let settled = Settled { me, roles, joint, signing_share, companion };
        Ok(Turn::Round(Dealing::Dealt(Box::new(Dealt { settled, points })), outbox))
    }
}

/// From which the exchange draws: unpredictable also with a bad generator, as the party's share is a secret.
fn companion_rng<S: Scheme>(
    ctx: &SessionContext,
    share: &Secret<ScalarOf<S>>,
    rng: &mut dyn CryptoRng,
) -> HedgedRng {
    HedgedRng::new(ctx, tags::EXCHANGE, &S::Curve::encode_scalar(share.expose()), rng)
}

impl<S: Scheme> Dealt<S> {
    /// [K4] check the shares.
    fn advance(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Turn<S>, Fault> {
        let Self { mut settled, points } = self;
        let (mut messages, mut shares) = (BTreeMap::new(), Vec::new());
        for envelope in inbox.iter() {
            let Share { value, companion } = read::<Share<S>>(ctx, envelope)?;
            if let Some(value) = value {
                settled.signing_share = sum::<S::Curve>(&settled.signing_share, &value);
                shares.push((envelope, value));
            }
            messages.insert(envelope.sender(), companion);
        }
        // [K4.1] the sum is on the sum of the committed polynomials: errors that cancel change nothing. Only if it is
        // not is each share looked at, to name whose is wrong.
        if settled.roles.receives(settled.me) && !settled.is_shared() {
            for (envelope, value) in shares {
                let sender = envelope.sender();
                let points = points.get(&sender).ok_or_else(Fault::internal)?;
                if !on_polynomial::<S>(&value, points, settled.me) {
                    let opening = history.broadcast(Opening::<S>::ROUND, sender)?;
                    let evidence = vec![opening, Arc::clone(envelope)];
                    return Err(Fault::proven(AbortCause::WrongShare, sender, evidence));
                }
            }
            // Nobody's share is wrong, so the own contribution is. A proof with it would convict this party.
            return Err(Fault::internal());
        }
        settled.exchange(ctx, 0, messages, rng)
    }
}

impl<S: Scheme> Settled<S> {
    /// Whether the signing share is the one whose point the openings give.
    fn is_shared(&self) -> bool {
        let point = S::Curve::mul_generator(self.signing_share.expose());
        self.joint.verification_share(self.me).is_some_and(|(expected, _)| *expected == point)
    }

    /// Takes the messages of a step of the exchange, and makes those of the next round.
    fn exchange(
        mut self,
        ctx: &SessionContext,
        step: u8,
        received: Messages<S>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Turn<S>, Fault> {
        let Self { me, roles, joint, signing_share, companion } = &mut self;
        let setting = Setting { ctx, me: *me, roles, openings: &joint.digest };
        let mut hedged = companion_rng::<S>(ctx, signing_share, rng);
        // A failed check convinces only the party that failed it.
        let messages = companion
            .advance(step, &setting, received, &mut hedged)
            .map_err(|CheckFailed(peer)| Fault::suspected(AbortCause::TransferCheckFailed, vec![peer]))?;
        let outbox = match step + 1 {
            next if next > S::Companion::ROUNDS => return Ok(self.confirm(ctx, rng)),
            1 => sent(messages, Exchange::<S, 1>),
            _ => sent(messages, Exchange::<S, 2>),
        };
        let state = Exchanging { settled: self, step: step + 1 };
        Ok(Turn::Round(Dealing::Exchanging(Box::new(state)), outbox))
    }

    /// Proof of knowledge of the signing share, bound to all openings.
    fn confirm(self, ctx: &SessionContext, rng: &mut dyn CryptoRng) -> Turn<S> {
        let proof = self.joint.prove_share(ctx, self.me, &self.signing_share, rng);
        let mut outbox = Outbox::new();
        outbox.broadcast(&Confirmation::<S> { proof });
        Turn::Round(Dealing::Confirmed(Box::new(Confirmed(self))), outbox)
    }
}

fn sent<M, B: PrivateBody>(messages: BTreeMap<PartyId, M>, body: impl Fn(M) -> B) -> Outbox {
    let mut outbox = Outbox::new();
    for (peer, message) in messages {
        outbox.private(peer, &body(message));
    }
    outbox
}

impl<S: Scheme> Exchanging<S> {
    /// One step of the exchange.
    fn advance(self, ctx: &SessionContext, inbox: &Inbox, rng: &mut dyn CryptoRng) -> Result<Turn<S>, Fault> {
        let Self { settled, step } = self;
        let message = |envelope: &Arc<Envelope>| match step {
            1 => read::<Exchange<S, 1>>(ctx, envelope).map(|Exchange(message)| message),
            _ => read::<Exchange<S, 2>>(ctx, envelope).map(|Exchange(message)| message),
        };
        let mut messages = BTreeMap::new();
        for envelope in inbox.iter() {
            messages.insert(envelope.sender(), message(envelope)?);
        }
        settled.exchange(ctx, step, messages, rng)
    }
}

impl<S: Scheme> Confirmed<S> {
    /// Checks the confirmations, puts the key together.
    fn finish(self, ctx: &SessionContext, inbox: &Inbox, history: &History<'_>) -> Result<Turn<S>, Fault> {
        let Self(Settled { me, roles, joint, signing_share, companion }) = self;
        for envelope in inbox.iter() {
            let confirmation: Confirmation<S> = read(ctx, envelope)?;
            if !joint.proves_share(ctx, envelope.sender(), confirmation.proof.as_ref()) {
                let evidence = history.view()?.evidence(envelope);
                return Err(Fault::proven(AbortCause::WrongProof, envelope.sender(), evidence));
            }
        }
        let public = S::public(ctx, joint, base_of::<S>(ctx)).ok_or_else(Fault::internal)?;
        let share =
            roles.receives(me).then(|| S::share(public.clone(), me, signing_share, companion.finish()));
        Ok(Turn::Done(Reshared { public, share }))
    }
}
