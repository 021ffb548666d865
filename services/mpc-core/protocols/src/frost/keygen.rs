//! Key generation: Pedersen's with Feldman commitments, committed before opened. And refresh, which is the same with polynomials that
//! are zero at zero, added to the shares there are. And reshare, the same with polynomials whose constant terms are the dealers' parts
//! of the key, for whoever is to have a share.
//!
//! Specification: `docs/protocols/frost.md`; steps are cited as [K1.2].

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::session::{History, echo_of, parse};
use engine::wire::{Malformed, Reader, Writer};
use engine::{
    AbortCause, Body, BroadcastBody, Delivery, Envelope, Fault, Inbox, MAX_PARTIES, Next, Outbox, PartyId,
    PrivateBody, Protocol, ProtocolId, RoundRule, Route, Secret, SessionContext, SetupError,
};
use frost_core::keys::SigningShare;
use rand_core::CryptoRng;

use crate::ecdsa::key::CHAIN_CODE_BYTES;
use crate::roles::Roles;

use super::key::{KeyPublic, KeyShare};
use super::proof::{Proof, encoding, proof_bytes, read_scalar};
use super::reshare::ReshareTerms;
use super::suite::{
    HedgedRng, PointOf, SCALAR_BYTES, ScalarOf, SecretScalar, Suite, decode_point_of, encode_point,
    encode_scalar_of, evaluate_public, identifier, identity, zero,
};
use super::tags;

/// Bytes of a commitment, and of a contribution to the joint randomness.
const DIGEST_BYTES: usize = 32;
/// Most points that an opening can have and still be looked at: twice as many as any honest one has, so that a vector that is
/// too long is blamed and not only dropped.
const MAX_POINTS: usize = 2 * MAX_PARTIES;

/// Round 1: commitment to the opening.
pub struct Commitment {
    digest: [u8; DIGEST_BYTES],
}

/// Round 2: what was committed to.
pub struct Opening<S: Suite> {
    /// The sender's polynomial in the exponent, constant term first; `threshold` of them. In a refresh the first one is the
    /// identity and does not travel. Empty of a party that does not deal.
    points: Vec<PointOf<S>>,
    /// All of them, one after another, as they are hashed; zeros for the identity.
    encoded: Vec<u8>,
    /// Of the constant term. None in a refresh, and of a party that does not deal.
    proof: Option<Proof<S>>,
    /// To the chain code and to everything that later rounds are bound to.
    contribution: [u8; DIGEST_BYTES],
}

/// Round 3: the sender's polynomial at the recipient's number. Nothing from who does not deal, or to who gets no share.
pub struct Share<S: Suite> {
    value: Option<SecretScalar<S>>,
}

/// Round 4: the sender knows the signing share that the commitments say it has. Without proof, of a party that gets none: it has seen
/// the same broadcasts.
pub struct Confirmation<S: Suite> {
    proof: Option<Proof<S>>,
}

impl Body for Commitment {
    const ROUND: u8 = 1;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.digest);
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        Ok(Self { digest: *reader.array()? })
    }
}

impl BroadcastBody for Commitment {}

impl<S: Suite> Body for Opening<S> {
    const ROUND: u8 = 2;

    fn encode(&self, writer: &mut Writer) {
        let unsent = if self.proof.is_none() { S::POINT_BYTES } else { 0 };
        let travelling = self.encoded.get(unsent..).unwrap_or_default();
        writer.u8(u8::try_from(travelling.len() / S::POINT_BYTES).unwrap_or(u8::MAX));
        writer.bytes(travelling);
        if let Some(proof) = &self.proof {
            proof.encode(writer);
        }
        writer.bytes(&self.contribution);
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause> {
        let constant = is_refresh::<S>(ctx).then_some(identity::<S>());
        let deals = roles_of::<S>(ctx)?.deals(route.sender);
        let degree_and_one = if deals { ctx.threshold().get() } else { 0 };
        let travelling = degree_and_one - usize::from(constant.is_some());
        if usize::from(reader.u8()?) != travelling {
            return Err(AbortCause::WrongDegree);
        }
        let travelled = reader.bytes(travelling * S::POINT_BYTES)?;
        let mut encoded = constant.iter().flat_map(encoding::<S>).collect::<Vec<u8>>();
        encoded.extend_from_slice(travelled);
        let decoded = travelled
            .chunks_exact(S::POINT_BYTES)
            .map(|point| decode_point_of::<S>(point).ok_or(AbortCause::InvalidPoint));
        let points = constant.into_iter().map(Ok).chain(decoded).collect::<Result<_, _>>()?;
        let proof = if deals && constant.is_none() { Some(Proof::decode(reader)?) } else { None };
        Ok(Self { points, encoded, proof, contribution: *reader.array()? })
    }
}

impl<S: Suite> BroadcastBody for Opening<S> {}

impl<S: Suite> Body for Share<S> {
    const ROUND: u8 = 3;

    fn encode(&self, writer: &mut Writer) {
        if let Some(value) = &self.value {
            writer.bytes(&encode_scalar_of::<S>(&value.expose().to_scalar()));
        }
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause> {
        let roles = roles_of::<S>(ctx)?;
        let recipient = route.recipient.ok_or(AbortCause::MalformedBody)?;
        if !roles.deals(route.sender) || !roles.receives(recipient) {
            return Ok(Self { value: None });
        }
        read_scalar::<S>(reader).map(|value| Self { value: Some(Secret::new(SigningShare::new(value))) })
    }
}

impl<S: Suite> PrivateBody for Share<S> {}

impl<S: Suite> Body for Confirmation<S> {
    const ROUND: u8 = 4;

    fn encode(&self, writer: &mut Writer) {
        if let Some(proof) = &self.proof {
            proof.encode(writer);
        }
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause> {
        let receives = roles_of::<S>(ctx)?.receives(route.sender);
        let proof = if receives { Some(Proof::decode(reader)?) } else { None };
        Ok(Self { proof })
    }
}

impl<S: Suite> BroadcastBody for Confirmation<S> {}

const fn rounds<S: Suite>() -> [RoundRule; 4] {
    let opening = 1 + MAX_POINTS * S::POINT_BYTES + proof_bytes::<S>() + DIGEST_BYTES;
    [
        RoundRule { delivery: Delivery::Broadcast, max_body: DIGEST_BYTES },
        RoundRule { delivery: Delivery::Broadcast, max_body: opening },
        RoundRule { delivery: Delivery::Private, max_body: SCALAR_BYTES },
        RoundRule { delivery: Delivery::Broadcast, max_body: proof_bytes::<S>() },
    ]
}

fn is_refresh<S: Suite>(ctx: &SessionContext) -> bool {
    ctx.protocol() == S::REFRESH
}

fn is_reshare<S: Suite>(ctx: &SessionContext) -> bool {
    ctx.protocol() == S::RESHARE
}

/// Who deals and who receives. The payload was checked when the session started.
fn roles_of<S: Suite>(ctx: &SessionContext) -> Result<Roles, AbortCause> {
    if is_reshare::<S>(ctx) {
        Roles::decode(&mut Reader::new(ctx.payload())).map_err(|Malformed| AbortCause::Internal)
    } else {
        Ok(Roles::everybody(ctx))
    }
}

/// Makes a key.
pub struct Keygen<S: Suite>(Dealing<S>);

/// Makes new shares of a key for the same parties and threshold. The old shares, of the epoch before, fit them no more. The payload of
/// the session is the encoding of the key's public data as it was.
pub struct Refresh<S: Suite>(Dealing<S>);

/// Makes new shares of a key for other parties, or with another threshold. Also repairs a share that was lost: its party only receives.
/// The payload of the session is the encoding of [`ReshareTerms`].
pub struct Reshare<S: Suite>(Dealing<S>);

/// What a party of a reshare ends with.
pub struct Reshared<S: Suite> {
    /// The key's public data as they are now.
    pub public: KeyPublic<S>,
    /// The new share; none of a party that only dealt.
    pub share: Option<KeyShare<S>>,
}

/// Where a party is in any of them.
enum Dealing<S: Suite> {
    /// Waiting for commitments.
    Committed(Committed<S>),
    /// Waiting for openings.
    Opened(Opened<S>),
    /// Waiting for shares.
    Dealt(Dealt<S>),
    /// Waiting for confirmations.
    Confirmed(Confirmed<S>),
}

/// Where a step leads.
enum Turn<S: Suite> {
    Round(Dealing<S>, Outbox),
    Done(Reshared<S>),
}

impl<S: Suite> Turn<S> {
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

/// State of round 1.
struct Committed<S: Suite> {
    me: PartyId,
    /// To which the new share is added: the old one in a refresh, else zero.
    base: SecretScalar<S>,
    polynomial: Vec<SecretScalar<S>>,
    opening: Opening<S>,
}

/// State of round 2.
struct Opened<S: Suite> {
    of: Committed<S>,
    commitments: BTreeMap<PartyId, [u8; DIGEST_BYTES]>,
}

/// State of round 3.
struct Dealt<S: Suite> {
    me: PartyId,
    roles: Roles,
    joint: Joint<S>,
    /// The share so far, and the value of our own polynomial at our own number; zero if we get none.
    own_share: SecretScalar<S>,
    /// Everyone's points, to check the shares against.
    points: BTreeMap<PartyId, Vec<PointOf<S>>>,
}

/// State of round 4.
struct Confirmed<S: Suite> {
    me: PartyId,
    roles: Roles,
    joint: Joint<S>,
    signing_share: SecretScalar<S>,
}

/// What follows from all openings together.
struct Joint<S: Suite> {
    /// Encoded.
    public_key: Vec<u8>,
    /// With their encodings.
    verification_shares: Vec<(PartyId, PointOf<S>, Vec<u8>)>,
    chain_code: [u8; CHAIN_CODE_BYTES],
    /// Hash of all openings, contributions included.
    digest: [u8; DIGEST_BYTES],
}

impl<S: Suite> Protocol for Keygen<S> {
    const ID: ProtocolId = S::KEYGEN;
    const SIGNED: bool = true;
    const ROUNDS: &'static [RoundRule] = &rounds::<S>();
    type Input = ();
    type Output = KeyShare<S>;

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
        let none = Secret::new(SigningShare::new(zero::<S>()));
        let (state, outbox) = deal::<S>(ctx, me, none, Constant::Random, rng)?;
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

impl<S: Suite> Protocol for Refresh<S> {
    const ID: ProtocolId = S::REFRESH;
    const SIGNED: bool = true;
    const ROUNDS: &'static [RoundRule] = &rounds::<S>();
    type Input = KeyShare<S>;
    type Output = KeyShare<S>;

    fn start(
        ctx: &SessionContext,
        share: KeyShare<S>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let me = ctx.me().ok_or(SetupError::ObserverNotAllowed)?;
        let KeyShare { public, party, signing_share } = share;
        if party != me || public.key_id != ctx.key_id() || public.threshold != ctx.threshold() {
            return Err(SetupError::ShareMismatch);
        }
        if public.epoch.checked_add(1) != Some(ctx.epoch()) {
            return Err(SetupError::EpochRange);
        }
        if &public.parties() != ctx.parties() {
            return Err(SetupError::SigningSetNotOfKey);
        }
        if base_of::<S>(ctx).as_ref() != Some(&public) {
            return Err(SetupError::PayloadInvalid);
        }
        let zero = Constant::Fixed(Secret::new(SigningShare::new(zero::<S>())));
        let (state, outbox) = deal::<S>(ctx, me, signing_share, zero, rng)?;
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

impl<S: Suite> Protocol for Reshare<S> {
    const ID: ProtocolId = S::RESHARE;
    const SIGNED: bool = true;
    const ROUNDS: &'static [RoundRule] = &rounds::<S>();
    /// The old share, of a dealer.
    type Input = Option<KeyShare<S>>;
    type Output = Reshared<S>;

    fn start(
        ctx: &SessionContext,
        share: Option<KeyShare<S>>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let me = ctx.me().ok_or(SetupError::ObserverNotAllowed)?;
        let terms = ReshareTerms::<S>::of(ctx).ok_or(SetupError::PayloadInvalid)?;
        // [H1] what is agreed fits together, and is what the own share says.
        terms.check(ctx)?;
        let constant = match share {
            Some(_) if !terms.dealers.contains(me) => return Err(SetupError::InputUnexpected),
            None if terms.dealers.contains(me) => return Err(SetupError::ShareMissing),
            Some(share) if share.party != me || share.public != terms.base => {
                return Err(SetupError::ShareMismatch);
            }
            Some(KeyShare { signing_share, .. }) => {
                let weight: ScalarOf<S> = terms.weight(me).ok_or(SetupError::SigningSetNotOfKey)?;
                let part = SigningShare::new(weight * signing_share.expose().to_scalar());
                Constant::Fixed(Secret::new(part))
            }
            None => Constant::None,
        };
        let none = Secret::new(SigningShare::new(zero::<S>()));
        let (state, outbox) = deal::<S>(ctx, me, none, constant, rng)?;
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

fn share_of<S: Suite>(reshared: Reshared<S>) -> Option<KeyShare<S>> {
    reshared.share
}

/// In a refresh or reshare, the key as it was: all parties agreed on it as the payload or a part of it.
fn base_of<S: Suite>(ctx: &SessionContext) -> Option<KeyPublic<S>> {
    if is_reshare::<S>(ctx) {
        return ReshareTerms::<S>::of(ctx).map(|terms| terms.base);
    }
    let mut reader = Reader::new(ctx.payload());
    let public = KeyPublic::decode(&mut reader).ok()?;
    reader.finish().ok().map(|()| public)
}

/// Which constant term a party's polynomial has.
enum Constant<S: Suite> {
    /// A random one: its part of a new key.
    Random,
    /// This one.
    Fixed(SecretScalar<S>),
    /// It has no polynomial.
    None,
}

/// [K1] draw a polynomial, commit to it.
fn deal<S: Suite>(
    ctx: &SessionContext,
    me: PartyId,
    base: SecretScalar<S>,
    constant: Constant<S>,
    rng: &mut dyn CryptoRng,
) -> Result<(Dealing<S>, Outbox), SetupError> {
    // [K1.1] a random polynomial with this constant term, and its points.
    let known = match &constant {
        Constant::Fixed(part) => part.expose().to_scalar() + base.expose().to_scalar(),
        Constant::Random | Constant::None => base.expose().to_scalar(),
    };
    let mut random = HedgedRng::new(ctx, tags::COEFFICIENT, &encode_scalar_of::<S>(&known), rng);
    let mut polynomial: Vec<SecretScalar<S>> = match constant {
        Constant::None => Vec::new(),
        Constant::Random | Constant::Fixed(_) => {
            (0..ctx.threshold().get()).map(|_| random.scalar::<S>()).collect()
        }
    };
    if let (Constant::Fixed(part), Some(first)) = (constant, polynomial.first_mut()) {
        *first = part;
    }
    let points: Vec<PointOf<S>> =
        polynomial.iter().map(|coefficient| S::mul_generator(&coefficient.expose().to_scalar())).collect();
    // [K1.2] proof of knowledge of the constant term, contribution to the randomness.
    let encoded: Vec<u8> = points.iter().flat_map(encoding::<S>).collect();
    let constant_point = encoded.get(..S::POINT_BYTES);
    let proof =
        polynomial.first().zip(constant_point).filter(|_| !is_refresh::<S>(ctx)).map(|(constant, point)| {
            let pair = (&constant.expose().to_scalar(), point);
            Proof::new(ctx, (tags::COEFFICIENT_PROOF, me), &encoded, pair, rng)
        });
    let mut contribution = [0u8; DIGEST_BYTES];
    rng.fill_bytes(&mut contribution);
    let opening = Opening { points, encoded, proof, contribution };
    // [K1.3] commitment to all of it.
    let mut outbox = Outbox::new();
    outbox.broadcast(&Commitment { digest: commitment_digest(ctx, me, &opening) });
    Ok((Dealing::Committed(Committed { me, base, polynomial, opening }), outbox))
}

impl<S: Suite> Dealing<S> {
    fn step(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Turn<S>, Fault> {
        match self {
            Self::Committed(state) => {
                let (state, outbox) = state.advance(ctx, inbox)?;
                Ok(Turn::Round(Self::Opened(state), outbox))
            }
            Self::Opened(state) => {
                let (state, outbox) = state.advance(ctx, inbox, history)?;
                Ok(Turn::Round(Self::Dealt(state), outbox))
            }
            Self::Dealt(state) => {
                let (state, outbox) = state.advance(ctx, inbox, history, rng)?;
                Ok(Turn::Round(Self::Confirmed(state), outbox))
            }
            Self::Confirmed(state) => state.finish(ctx, inbox, history).map(Turn::Done),
        }
    }
}

impl<S: Suite> Committed<S> {
    /// [K2] keep the commitments, open the own one.
    fn advance(self, ctx: &SessionContext, inbox: &Inbox) -> Result<(Opened<S>, Outbox), Fault> {
        let mut commitments = BTreeMap::new();
        for envelope in inbox.iter() {
            commitments.insert(envelope.sender(), read::<Commitment>(ctx, envelope)?.digest);
        }
        let mut outbox = Outbox::new();
        outbox.broadcast(&self.opening);
        Ok((Opened { of: self, commitments }, outbox))
    }
}

impl<S: Suite> Opened<S> {
    /// [K3] check the openings, deal.
    fn advance(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        history: &History<'_>,
    ) -> Result<(Dealt<S>, Outbox), Fault> {
        let Self { of: Committed { me, base, polynomial, opening }, commitments } = self;
        let roles = roles_of::<S>(ctx).map_err(Fault::nobody)?;
        let terms = is_reshare::<S>(ctx)
            .then(|| ReshareTerms::<S>::of(ctx).ok_or_else(Fault::internal))
            .transpose()?;
        let mut openings = BTreeMap::from([(me, opening)]);
        for envelope in inbox.iter() {
            let sender = envelope.sender();
            let opening: Opening<S> = read(ctx, envelope)?;
            // [K3.1] the opening is what was committed to.
            if commitments.get(&sender) != Some(&commitment_digest(ctx, sender, &opening)) {
                let commitment = history.broadcast(Commitment::ROUND, sender).ok_or_else(Fault::internal)?;
                let evidence = vec![commitment, Arc::clone(envelope)];
                return Err(Fault::proven(AbortCause::WrongOpening, sender, evidence));
            }
            // [K3.2] its maker knows the constant term.
            if !proves_coefficient(ctx, sender, &opening) {
                return Err(Fault::proven(AbortCause::WrongProof, sender, vec![Arc::clone(envelope)]));
            }
            // [H2] in a reshare, the constant term is its maker's part of the key.
            if terms.as_ref().is_some_and(|terms| !deals_its_part(terms, sender, &opening)) {
                return Err(Fault::proven(AbortCause::WrongOpening, sender, vec![Arc::clone(envelope)]));
            }
            openings.insert(sender, opening);
        }
        // [K3.3] the joint key and every verification share; none may be the identity.
        let joint = Joint::of(ctx, &openings).map_err(Fault::nobody)?;
        // [K3.4] a share for each peer.
        let mut outbox = Outbox::new();
        for peer in ctx.peers().iter() {
            let deals = roles.deals(me) && roles.receives(peer);
            let value = deals.then(|| evaluate::<S>(&polynomial, peer)).transpose()?;
            outbox.private(peer, &Share::<S> { value });
        }
        let own_share = if roles.receives(me) {
            sum::<S>(&base, &evaluate::<S>(&polynomial, me)?)
        } else {
            Secret::new(SigningShare::new(zero::<S>()))
        };
        let points = openings.into_iter().map(|(party, opening)| (party, opening.points)).collect();
        Ok((Dealt { me, roles, joint, own_share, points }, outbox))
    }
}

impl<S: Suite> Dealt<S> {
    /// [K4] check the shares, confirm the own signing share.
    fn advance(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Confirmed<S>, Outbox), Fault> {
        let Self { me, roles, joint, own_share, points } = self;
        let mut signing_share = own_share;
        for envelope in inbox.iter() {
            let sender = envelope.sender();
            let share: Share<S> = read(ctx, envelope)?;
            let Some(value) = &share.value else { continue };
            // [K4.1] the share is on the committed polynomial.
            let points = points.get(&sender).ok_or_else(Fault::internal)?;
            if !on_polynomial::<S>(value, points, me) {
                let opening = history.broadcast(Opening::<S>::ROUND, sender).ok_or_else(Fault::internal)?;
                let evidence = vec![opening, Arc::clone(envelope)];
                return Err(Fault::proven(AbortCause::WrongShare, sender, evidence));
            }
            signing_share = sum::<S>(&signing_share, value);
        }
        // [K4.2] proof of knowledge of the signing share, bound to all openings.
        let proof = joint.verification_share(me).map(|(_, encoded)| {
            let pair = (&signing_share.expose().to_scalar(), encoded);
            Proof::new(ctx, (tags::SHARE_PROOF, me), &joint.digest, pair, rng)
        });
        let mut outbox = Outbox::new();
        outbox.broadcast(&Confirmation::<S> { proof });
        Ok((Confirmed { me, roles, joint, signing_share }, outbox))
    }
}

impl<S: Suite> Confirmed<S> {
    /// [K5] check the confirmations, put the key together.
    fn finish(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        history: &History<'_>,
    ) -> Result<Reshared<S>, Fault> {
        let Self { me, roles, joint, signing_share } = self;
        for envelope in inbox.iter() {
            let confirmation: Confirmation<S> = read(ctx, envelope)?;
            if !joint.proves_share(ctx, envelope.sender(), &confirmation) {
                let mut evidence = history.broadcasts();
                evidence.push(Arc::clone(envelope));
                return Err(Fault::proven(AbortCause::WrongProof, envelope.sender(), evidence));
            }
        }
        let shares = joint.verification_shares.into_iter();
        let public = KeyPublic {
            key_id: ctx.key_id().to_owned(),
            epoch: ctx.epoch(),
            threshold: ctx.threshold(),
            public_key: joint.public_key,
            chain_code: joint.chain_code,
            verification_shares: shares.map(|(party, _, encoded)| (party, encoded)).collect(),
            suite: core::marker::PhantomData,
        };
        let share = roles.receives(me).then(|| KeyShare { public: public.clone(), party: me, signing_share });
        Ok(Reshared { public, share })
    }
}

impl<S: Suite> Joint<S> {
    fn of(ctx: &SessionContext, openings: &BTreeMap<PartyId, Opening<S>>) -> Result<Self, AbortCause> {
        let mut points = vec![identity::<S>(); ctx.threshold().get()];
        let mut transcript = ctx.transcript();
        transcript.append("purpose", tags::OPENINGS.as_bytes());
        for (party, opening) in openings {
            for (sum, point) in points.iter_mut().zip(&opening.points) {
                *sum = *sum + *point;
            }
            transcript.append_u64("party", u64::from(party.get()));
            transcript.append("points", &opening.encoded);
            transcript.append("contribution", &opening.contribution);
        }
        let digest = transcript.digest();
        let mut public_key = points.first().copied().unwrap_or(identity::<S>());
        let roles = roles_of::<S>(ctx)?;
        let receivers = ctx.parties().iter().filter(|party| roles.receives(*party));
        let mut verification_shares: Vec<(PartyId, PointOf<S>)> =
            receivers.map(|party| (party, evaluate_public::<S>(&points, party))).collect();
        let mut chain_code = chain_code_of::<S>(ctx, &digest);
        if is_refresh::<S>(ctx) || is_reshare::<S>(ctx) {
            let base = base_of::<S>(ctx).ok_or(AbortCause::Internal)?;
            let old_key = decode_point_of::<S>(&base.public_key).ok_or(AbortCause::Internal)?;
            chain_code = base.chain_code;
            if is_refresh::<S>(ctx) {
                public_key = public_key + old_key;
                for (party, point) in &mut verification_shares {
                    *point = *point + base.verification_point(*party).ok_or(AbortCause::Internal)?;
                }
            }
            // [H3] whatever the openings were, the key is the same.
            if public_key != old_key {
                return Err(AbortCause::Internal);
            }
        }
        // The identity has no encoding.
        let encode = |point: &PointOf<S>| encode_point::<S>(point).ok_or(AbortCause::DegenerateKey);
        let verification_shares = verification_shares
            .into_iter()
            .map(|(party, point)| Ok((party, point, encode(&point)?)))
            .collect::<Result<_, AbortCause>>()?;
        Ok(Self { public_key: encode(&public_key)?, verification_shares, chain_code, digest })
    }

    /// A party's verification share and its encoding.
    fn verification_share(&self, party: PartyId) -> Option<(&PointOf<S>, &[u8])> {
        let share = self.verification_shares.iter().find(|(holder, _, _)| *holder == party);
        share.map(|(_, point, encoded)| (point, encoded.as_slice()))
    }

    fn proves_share(&self, ctx: &SessionContext, party: PartyId, confirmation: &Confirmation<S>) -> bool {
        match (self.verification_share(party), &confirmation.proof) {
            (Some(share), Some(proof)) => {
                proof.verifies(ctx, (tags::SHARE_PROOF, party), &self.digest, share)
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

/// The chain code of a new key: a hash of all contributions. Zeros in a suite without derivation.
fn chain_code_of<S: Suite>(ctx: &SessionContext, openings: &[u8; DIGEST_BYTES]) -> [u8; CHAIN_CODE_BYTES] {
    if !S::DERIVES {
        return [0; CHAIN_CODE_BYTES];
    }
    let mut transcript = ctx.transcript();
    transcript.append("purpose", tags::CHAIN_CODE.as_bytes());
    transcript.append("openings", openings);
    transcript.digest()
}

/// The polynomial at a party's number, by Horner's rule.
fn evaluate<S: Suite>(polynomial: &[SecretScalar<S>], party: PartyId) -> Result<SecretScalar<S>, Fault> {
    let x: ScalarOf<S> = identifier::<S>(party).ok_or_else(Fault::internal)?.to_scalar();
    let mut value = Secret::new(SigningShare::new(zero::<S>()));
    for coefficient in polynomial.iter().rev() {
        let next = value.expose().to_scalar() * x + coefficient.expose().to_scalar();
        *value.expose_mut() = SigningShare::new(next);
    }
    Ok(value)
}

fn sum<S: Suite>(one: &SecretScalar<S>, other: &SecretScalar<S>) -> SecretScalar<S> {
    Secret::new(SigningShare::new(one.expose().to_scalar() + other.expose().to_scalar()))
}

fn on_polynomial<S: Suite>(value: &SecretScalar<S>, points: &[PointOf<S>], recipient: PartyId) -> bool {
    S::mul_generator(&value.expose().to_scalar()) == evaluate_public::<S>(points, recipient)
}

fn commitment_digest<S: Suite>(
    ctx: &SessionContext,
    sender: PartyId,
    opening: &Opening<S>,
) -> [u8; DIGEST_BYTES] {
    let mut writer = Writer::default();
    opening.encode(&mut writer);
    let mut transcript = ctx.transcript().fork(tags::KEYGEN_COMMITMENT, sender);
    transcript.append("opening", &writer.finish());
    transcript.digest()
}

fn proves_coefficient<S: Suite>(ctx: &SessionContext, sender: PartyId, opening: &Opening<S>) -> bool {
    let constant = opening.points.first().zip(opening.encoded.get(..S::POINT_BYTES));
    match (&opening.proof, constant) {
        (Some(proof), Some(constant)) => {
            proof.verifies(ctx, (tags::COEFFICIENT_PROOF, sender), &opening.encoded, constant)
        }
        // Zero is known to everybody; without polynomial there is nothing to know.
        (None, constant) => is_refresh::<S>(ctx) || constant.is_none(),
        (Some(_), None) => false,
    }
}

/// Whether a dealer's constant term is its part of the key, and another party deals nothing.
fn deals_its_part<S: Suite>(terms: &ReshareTerms<S>, sender: PartyId, opening: &Opening<S>) -> bool {
    let expected = terms.dealers.contains(sender).then(|| terms.constant_point(sender)).flatten();
    opening.points.first() == expected.as_ref()
}

// Blame: what an honest party shows, and what everybody checks.

fn judge<S: Suite>(
    ctx: &SessionContext,
    cause: AbortCause,
    accused: PartyId,
    evidence: &[Arc<Envelope>],
) -> bool {
    match (cause, evidence) {
        (AbortCause::WrongOpening, [commitment, opening]) => {
            opening_differs::<S>(ctx, accused, commitment, opening)
        }
        (AbortCause::WrongOpening, [opening]) => part_differs::<S>(ctx, accused, opening),
        (AbortCause::WrongShare, [opening, share]) => share_differs::<S>(ctx, accused, opening, share),
        (AbortCause::WrongProof, [opening]) => coefficient_unproven::<S>(ctx, accused, opening),
        (AbortCause::WrongProof, [earlier @ .., confirmation]) => {
            share_unproven::<S>(ctx, accused, earlier, confirmation)
        }
        (_, [envelope]) => envelope.sender() == accused && body_fault::<S>(ctx, envelope) == Some(cause),
        _ => false,
    }
}

/// Decodes a body; what is wrong with it is shown by the envelope alone.
fn read<B: Body>(ctx: &SessionContext, envelope: &Arc<Envelope>) -> Result<B, Fault> {
    parse(ctx, envelope).map_err(|cause| Fault::proven(cause, envelope.sender(), vec![Arc::clone(envelope)]))
}

/// What is wrong with a body on its own.
fn body_fault<S: Suite>(ctx: &SessionContext, envelope: &Envelope) -> Option<AbortCause> {
    match envelope.round() {
        1 => parse::<Commitment>(ctx, envelope).err(),
        2 => parse::<Opening<S>>(ctx, envelope).err(),
        3 => parse::<Share<S>>(ctx, envelope).err(),
        4 => parse::<Confirmation<S>>(ctx, envelope).err(),
        _ => None,
    }
}

fn opening_differs<S: Suite>(
    ctx: &SessionContext,
    accused: PartyId,
    commitment: &Envelope,
    opening: &Envelope,
) -> bool {
    if commitment.sender() != accused || opening.sender() != accused {
        return false;
    }
    match (parse::<Commitment>(ctx, commitment), parse::<Opening<S>>(ctx, opening)) {
        (Ok(commitment), Ok(opening)) => commitment.digest != commitment_digest(ctx, accused, &opening),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// Whether the opening of a reshare has a constant term that is not its maker's.
fn part_differs<S: Suite>(ctx: &SessionContext, accused: PartyId, opening: &Envelope) -> bool {
    is_reshare::<S>(ctx)
        && opening.sender() == accused
        && match (ReshareTerms::<S>::of(ctx), parse::<Opening<S>>(ctx, opening)) {
            (Some(terms), Ok(opening)) => !deals_its_part(&terms, accused, &opening),
            (None, _) | (_, Err(_)) => false,
        }
}

fn share_differs<S: Suite>(
    ctx: &SessionContext,
    accused: PartyId,
    opening: &Envelope,
    share: &Envelope,
) -> bool {
    let (true, true, Some(recipient)) =
        (opening.sender() == accused, share.sender() == accused, share.recipient())
    else {
        return false;
    };
    match (parse::<Opening<S>>(ctx, opening), parse::<Share<S>>(ctx, share)) {
        (Ok(opening), Ok(share)) => {
            share.value.is_some_and(|value| !on_polynomial::<S>(&value, &opening.points, recipient))
        }
        (Err(_), _) | (_, Err(_)) => false,
    }
}

fn coefficient_unproven<S: Suite>(ctx: &SessionContext, accused: PartyId, opening: &Envelope) -> bool {
    opening.sender() == accused
        && parse::<Opening<S>>(ctx, opening).is_ok_and(|opening| !proves_coefficient(ctx, accused, &opening))
}

/// Whether a confirmation is wrong in the light of the broadcasts that its own echo digest says its sender had seen. An honest
/// sender has checked those, so only what it signed on top of them can be held against it.
fn share_unproven<S: Suite>(
    ctx: &SessionContext,
    accused: PartyId,
    earlier: &[Arc<Envelope>],
    confirmation: &Envelope,
) -> bool {
    let claimed = echo_of(ctx, Confirmation::<S>::ROUND, earlier);
    if confirmation.sender() != accused || confirmation.echo() != Some(&claimed) {
        return false;
    }
    let mut openings = BTreeMap::new();
    for envelope in earlier.iter().filter(|envelope| envelope.round() == Opening::<S>::ROUND) {
        let Ok(opening) = parse::<Opening<S>>(ctx, envelope) else { return false };
        openings.insert(envelope.sender(), opening);
    }
    if openings.len() != ctx.parties().len() {
        return false;
    }
    match (Joint::of(ctx, &openings), parse::<Confirmation<S>>(ctx, confirmation)) {
        (Ok(joint), Ok(confirmation)) => !joint.proves_share(ctx, accused, &confirmation),
        (Err(_), _) | (_, Err(_)) => false,
    }
}
