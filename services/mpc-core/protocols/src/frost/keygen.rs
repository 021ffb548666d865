//! Key generation: Pedersen's with Feldman commitments, committed before opened. And refresh, which is the same with polynomials that
//! are zero at zero, added to the shares there are.
//!
//! Specification: `docs/protocols/frost.md`; steps are cited as [K1.2].

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::session::{History, echo_of, parse};
use engine::wire::{Reader, Writer};
use engine::{
    AbortCause, Body, BroadcastBody, Delivery, Envelope, Fault, Inbox, MAX_PARTIES, Next, Outbox, PartyId,
    PrivateBody, Protocol, ProtocolId, RoundRule, Route, Secret, SessionContext, SetupError,
};
use frost_core::keys::SigningShare;
use rand_core::CryptoRng;

use crate::ecdsa::key::CHAIN_CODE_BYTES;

use super::key::{KeyPublic, KeyShare};
use super::proof::{Proof, proof_bytes, read_point, read_scalar, write_point};
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
    /// identity and does not travel.
    points: Vec<PointOf<S>>,
    /// Of the constant term. None in a refresh.
    proof: Option<Proof<S>>,
    /// To the chain code and to everything that later rounds are bound to.
    contribution: [u8; DIGEST_BYTES],
}

/// Round 3: the sender's polynomial at the recipient's number.
pub struct Share<S: Suite> {
    value: SecretScalar<S>,
}

/// Round 4: the sender knows the signing share that the commitments say it has.
pub struct Confirmation<S: Suite> {
    proof: Proof<S>,
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
        let points = self.points.iter().skip(usize::from(self.proof.is_none()));
        writer.u8(u8::try_from(points.len()).unwrap_or(u8::MAX));
        for point in points {
            write_point::<S>(point, writer);
        }
        if let Some(proof) = &self.proof {
            proof.encode(writer);
        }
        writer.bytes(&self.contribution);
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        let constant = is_refresh::<S>(ctx).then_some(identity::<S>());
        let travelling = ctx.threshold().get() - usize::from(constant.is_some());
        if usize::from(reader.u8()?) != travelling {
            return Err(AbortCause::WrongDegree);
        }
        let travelled = (0..travelling).map(|_| read_point::<S>(reader));
        let points = constant.into_iter().map(Ok).chain(travelled).collect::<Result<_, _>>()?;
        let proof = if constant.is_none() { Some(Proof::decode(reader)?) } else { None };
        Ok(Self { points, proof, contribution: *reader.array()? })
    }
}

impl<S: Suite> BroadcastBody for Opening<S> {}

impl<S: Suite> Body for Share<S> {
    const ROUND: u8 = 3;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&encode_scalar_of::<S>(&self.value.expose().to_scalar()));
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        read_scalar::<S>(reader).map(|value| Self { value: Secret::new(SigningShare::new(value)) })
    }
}

impl<S: Suite> PrivateBody for Share<S> {}

impl<S: Suite> Body for Confirmation<S> {
    const ROUND: u8 = 4;

    fn encode(&self, writer: &mut Writer) {
        self.proof.encode(writer);
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        Proof::decode(reader).map(|proof| Self { proof })
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

/// Makes a key.
pub struct Keygen<S: Suite>(Dealing<S>);

/// Makes new shares of a key for the same parties and threshold. The old shares, of the epoch before, fit them no more. The payload of
/// the session is the encoding of the key's public data as it was.
pub struct Refresh<S: Suite>(Dealing<S>);

/// Where a party is in either of them.
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

/// Where a step of either leads.
enum Turn<S: Suite> {
    Round(Dealing<S>, Outbox),
    Done(KeyShare<S>),
}

/// State of round 1.
struct Committed<S: Suite> {
    me: PartyId,
    /// The share so far; zero in key generation.
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
    joint: Joint<S>,
    /// The share so far, and the value of our own polynomial at our own number.
    own_share: SecretScalar<S>,
    /// Everyone's points, to check the shares against.
    points: BTreeMap<PartyId, Vec<PointOf<S>>>,
}

/// State of round 4.
struct Confirmed<S: Suite> {
    me: PartyId,
    joint: Joint<S>,
    signing_share: SecretScalar<S>,
}

/// What follows from all openings together.
struct Joint<S: Suite> {
    public_key: PointOf<S>,
    verification_shares: Vec<(PartyId, PointOf<S>)>,
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
        let (state, outbox) = deal::<S>(ctx, me, Secret::new(SigningShare::new(zero::<S>())), rng)?;
        Ok((Self(state), outbox))
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        Ok(match self.0.step(ctx, &inbox, history, rng)? {
            Turn::Round(state, outbox) => Next::Round(Self(state), outbox),
            Turn::Done(share) => Next::Done(share),
        })
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
        let (state, outbox) = deal::<S>(ctx, me, signing_share, rng)?;
        Ok((Self(state), outbox))
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        Ok(match self.0.step(ctx, &inbox, history, rng)? {
            Turn::Round(state, outbox) => Next::Round(Self(state), outbox),
            Turn::Done(share) => Next::Done(share),
        })
    }

    fn judge(ctx: &SessionContext, cause: AbortCause, accused: PartyId, evidence: &[Arc<Envelope>]) -> bool {
        judge::<S>(ctx, cause, accused, evidence)
    }
}

/// In a refresh, the key as it was: all parties agreed on it as the payload.
fn base_of<S: Suite>(ctx: &SessionContext) -> Option<KeyPublic<S>> {
    let mut reader = Reader::new(ctx.payload());
    let public = KeyPublic::decode(&mut reader).ok()?;
    reader.finish().ok().map(|()| public)
}

/// [K1] draw a polynomial, commit to it.
fn deal<S: Suite>(
    ctx: &SessionContext,
    me: PartyId,
    base: SecretScalar<S>,
    rng: &mut dyn CryptoRng,
) -> Result<(Dealing<S>, Outbox), SetupError> {
    // [K1.1] a random polynomial, and its points. In a refresh it is zero at zero.
    let secret = encode_scalar_of::<S>(&base.expose().to_scalar());
    let mut random = HedgedRng::new(ctx, tags::COEFFICIENT, &secret, rng);
    let mut polynomial: Vec<SecretScalar<S>> =
        (0..ctx.threshold().get()).map(|_| random.scalar::<S>()).collect();
    let constant = polynomial.first_mut().ok_or(SetupError::ThresholdRange)?;
    let refresh = is_refresh::<S>(ctx);
    if refresh {
        *constant.expose_mut() = SigningShare::new(zero::<S>());
    }
    let constant = constant.expose().to_scalar();
    let points: Vec<PointOf<S>> =
        polynomial.iter().map(|coefficient| S::mul_generator(&coefficient.expose().to_scalar())).collect();
    // [K1.2] proof of knowledge of the constant term, contribution to the randomness.
    let statement = statement_of::<S>(&points);
    let point = points.first().copied().unwrap_or(identity::<S>());
    let proof = (!refresh)
        .then(|| Proof::new(ctx, (tags::COEFFICIENT_PROOF, me), &statement, (&constant, &point), rng));
    let mut contribution = [0u8; DIGEST_BYTES];
    rng.fill_bytes(&mut contribution);
    let opening = Opening { points, proof, contribution };
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
            openings.insert(sender, opening);
        }
        // [K3.3] the joint key and every verification share; none may be the identity.
        let joint = Joint::of(ctx, &openings).map_err(Fault::nobody)?;
        // [K3.4] a share for each peer.
        let mut outbox = Outbox::new();
        for peer in ctx.peers().iter() {
            outbox.private(peer, &Share::<S> { value: evaluate::<S>(&polynomial, peer)? });
        }
        let own_value = evaluate::<S>(&polynomial, me)?;
        let own_share = sum::<S>(&base, &own_value);
        let points = openings.into_iter().map(|(party, opening)| (party, opening.points)).collect();
        Ok((Dealt { me, joint, own_share, points }, outbox))
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
        let Self { me, joint, own_share, points } = self;
        let mut signing_share = own_share;
        for envelope in inbox.iter() {
            let sender = envelope.sender();
            let share: Share<S> = read(ctx, envelope)?;
            // [K4.1] the share is on the committed polynomial.
            let points = points.get(&sender).ok_or_else(Fault::internal)?;
            if !on_polynomial::<S>(&share, points, me) {
                let opening = history.broadcast(Opening::<S>::ROUND, sender).ok_or_else(Fault::internal)?;
                let evidence = vec![opening, Arc::clone(envelope)];
                return Err(Fault::proven(AbortCause::WrongShare, sender, evidence));
            }
            signing_share = sum::<S>(&signing_share, &share.value);
        }
        // [K4.2] proof of knowledge of the signing share, bound to all openings.
        let point = joint.verification_share(me).ok_or_else(Fault::internal)?;
        let secret = signing_share.expose().to_scalar();
        let proof = Proof::new(ctx, (tags::SHARE_PROOF, me), &joint.digest, (&secret, point), rng);
        let mut outbox = Outbox::new();
        outbox.broadcast(&Confirmation::<S> { proof });
        Ok((Confirmed { me, joint, signing_share }, outbox))
    }
}

impl<S: Suite> Confirmed<S> {
    /// [K5] check the confirmations, put the key together.
    fn finish(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        history: &History<'_>,
    ) -> Result<KeyShare<S>, Fault> {
        let Self { me, joint, signing_share } = self;
        for envelope in inbox.iter() {
            let confirmation: Confirmation<S> = read(ctx, envelope)?;
            if !joint.proves_share(ctx, envelope.sender(), &confirmation) {
                let mut evidence = history.broadcasts();
                evidence.push(Arc::clone(envelope));
                return Err(Fault::proven(AbortCause::WrongProof, envelope.sender(), evidence));
            }
        }
        let encode = |point: &PointOf<S>| encode_point::<S>(point).ok_or_else(Fault::internal);
        let verification_shares = joint
            .verification_shares
            .iter()
            .map(|(party, point)| Ok((*party, encode(point)?)))
            .collect::<Result<_, Fault>>()?;
        let public = KeyPublic {
            key_id: ctx.key_id().to_owned(),
            epoch: ctx.epoch(),
            threshold: ctx.threshold(),
            public_key: encode(&joint.public_key)?,
            chain_code: joint.chain_code,
            verification_shares,
            suite: core::marker::PhantomData,
        };
        Ok(KeyShare { public, party: me, signing_share })
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
            transcript.append("points", &statement_of::<S>(&opening.points));
            transcript.append("contribution", &opening.contribution);
        }
        let digest = transcript.digest();
        let mut public_key = points.first().copied().unwrap_or(identity::<S>());
        let mut verification_shares: Vec<(PartyId, PointOf<S>)> =
            ctx.parties().iter().map(|party| (party, evaluate_public::<S>(&points, party))).collect();
        let mut chain_code = chain_code_of::<S>(ctx, &digest);
        if is_refresh::<S>(ctx) {
            let base = base_of::<S>(ctx).ok_or(AbortCause::Internal)?;
            public_key = public_key + decode_point_of::<S>(&base.public_key).ok_or(AbortCause::Internal)?;
            chain_code = base.chain_code;
            for (party, point) in &mut verification_shares {
                *point = *point + base.verification_point(*party).ok_or(AbortCause::Internal)?;
            }
        }
        let degenerate = verification_shares.iter().any(|(_, point)| *point == identity::<S>());
        if degenerate || public_key == identity::<S>() {
            return Err(AbortCause::DegenerateKey);
        }
        Ok(Self { public_key, verification_shares, chain_code, digest })
    }

    fn verification_share(&self, party: PartyId) -> Option<&PointOf<S>> {
        self.verification_shares.iter().find(|(holder, _)| *holder == party).map(|(_, point)| point)
    }

    fn proves_share(&self, ctx: &SessionContext, party: PartyId, confirmation: &Confirmation<S>) -> bool {
        self.verification_share(party).is_some_and(|point| {
            confirmation.proof.verifies(ctx, (tags::SHARE_PROOF, party), &self.digest, point)
        })
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

fn on_polynomial<S: Suite>(share: &Share<S>, points: &[PointOf<S>], recipient: PartyId) -> bool {
    S::mul_generator(&share.value.expose().to_scalar()) == evaluate_public::<S>(points, recipient)
}

/// All points of a polynomial, one after another.
fn statement_of<S: Suite>(points: &[PointOf<S>]) -> Vec<u8> {
    let mut writer = Writer::with_capacity(points.len() * S::POINT_BYTES);
    points.iter().for_each(|point| write_point::<S>(point, &mut writer));
    writer.finish()
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
    let statement = statement_of::<S>(&opening.points);
    match (&opening.proof, opening.points.first()) {
        (Some(proof), Some(point)) => {
            proof.verifies(ctx, (tags::COEFFICIENT_PROOF, sender), &statement, point)
        }
        // Zero is known to everybody.
        (None, _) => is_refresh::<S>(ctx),
        (Some(_), None) => false,
    }
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
        (Ok(opening), Ok(share)) => !on_polynomial::<S>(&share, &opening.points, recipient),
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
