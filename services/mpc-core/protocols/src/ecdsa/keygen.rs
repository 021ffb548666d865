//! Key generation: Pedersen's with Feldman commitments, committed before opened, with the set-up of all pairs' transfers. Refresh,
//! which is the same with polynomials that are zero at zero, added to the shares there are. And reshare, the same with polynomials
//! whose constant terms are the dealers' parts of the key, for other parties or another threshold.
//!
//! Specification: `docs/protocols/ecdsa.md`; steps are cited as [K1.2].

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::session::{History, echo_of, parse};
use engine::wire::{Malformed, Reader, Writer};
use engine::{
    AbortCause, Body, BroadcastBody, Delivery, Envelope, Fault, Inbox, MAX_PARTIES, Next, Outbox, PartyId,
    PrivateBody, Protocol, ProtocolId, RoundRule, Route, Secret, SessionContext, SetupError, Transcript,
};
use primitives::ot::{
    CORRECTION_BYTES, Initiator, OtError, REQUEST_BYTES, RESPONSE_BYTES, Responder, is_request, is_response,
};
use primitives::secp256k1::{
    POINT_BYTES, Point, SCALAR_BYTES, Scalar, encode_point, encode_scalar, evaluate_public, mul_generator,
    random_scalar,
};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::key::{CHAIN_CODE_BYTES, KeyPublic, KeyShare, Pair, ZERO_SEED_BYTES};
use super::proof::{PROOF_BYTES, Proof, read_point, read_scalar};
use super::reshare::ReshareTerms;
use super::tags;
use crate::roles::Roles;

/// Bytes of a commitment, and of a contribution to the joint randomness.
const DIGEST_BYTES: usize = 32;
/// Twice as many points as any honest opening has, so that a vector that is too long is blamed and not only dropped.
const MAX_OPENING_BYTES: usize = 1 + 2 * MAX_PARTIES * POINT_BYTES + PROOF_BYTES + DIGEST_BYTES;
/// A transfer message with its length.
const fn transfer_bytes(message: usize) -> usize {
    4 + message
}

/// Round 1: commitment to the opening.
pub struct Commitment {
    digest: [u8; DIGEST_BYTES],
}

/// Round 2: what was committed to.
pub struct Opening {
    /// The sender's polynomial in the exponent, constant term first; `threshold` of them. In a refresh the first one is the
    /// identity and does not travel. None of a party that does not deal.
    points: Vec<Point>,
    /// Of the constant term. None in a refresh, and of a party that does not deal.
    proof: Option<Proof>,
    /// To the chain code and to everything that later rounds are bound to.
    contribution: [u8; DIGEST_BYTES],
}

/// Round 3: from a dealer to a receiver, the sender's polynomial at the recipient's number; between receivers, the sender's part of
/// the pair's seed and, to higher parties, the request of the transfers.
pub struct Share {
    value: Option<Secret<Scalar>>,
    zero_seed: Option<Secret<[u8; ZERO_SEED_BYTES]>>,
    request: Vec<u8>,
}

/// Round 4: to lower parties, the response to their request.
pub struct Response(Vec<u8>);

/// Round 5: to higher parties, what completes the transfers the other way.
pub struct Corrections(Vec<u8>);

/// Round 6: the sender knows the signing share that the commitments say it has. Without proof, of a party that gets none: it has seen
/// the same broadcasts.
pub struct Confirmation {
    proof: Option<Proof>,
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

impl Body for Opening {
    const ROUND: u8 = 2;

    fn encode(&self, writer: &mut Writer) {
        let points = self.points.iter().skip(usize::from(self.proof.is_none()));
        writer.u8(u8::try_from(points.len()).unwrap_or(u8::MAX));
        for point in points {
            writer.bytes(&encode_point(point));
        }
        if let Some(proof) = &self.proof {
            proof.encode(writer);
        }
        writer.bytes(&self.contribution);
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause> {
        let constant = is_refresh(ctx).then_some(Point::IDENTITY);
        let deals = roles_of(ctx)?.deals(route.sender);
        let degree_and_one = if deals { ctx.threshold().get() } else { 0 };
        let travelling = degree_and_one - usize::from(constant.is_some());
        if usize::from(reader.u8()?) != travelling {
            return Err(AbortCause::WrongDegree);
        }
        let travelled = (0..travelling).map(|_| read_point(reader));
        let points = constant.into_iter().map(Ok).chain(travelled).collect::<Result<_, _>>()?;
        let proof = if deals && constant.is_none() { Some(Proof::decode(reader)?) } else { None };
        Ok(Self { points, proof, contribution: *reader.array()? })
    }
}

impl BroadcastBody for Opening {}

impl Body for Share {
    const ROUND: u8 = 3;

    fn encode(&self, writer: &mut Writer) {
        if let Some(value) = &self.value {
            writer.bytes(Zeroizing::new(encode_scalar(value.expose())).as_slice());
        }
        if let Some(zero_seed) = &self.zero_seed {
            writer.bytes(zero_seed.expose());
        }
        writer.sized(&self.request);
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause> {
        let roles = roles_of(ctx)?;
        let recipient = route.recipient.ok_or(AbortCause::MalformedBody)?;
        let (mut value, mut zero_seed) = (None, None);
        if roles.deals(route.sender) && roles.receives(recipient) {
            value = Some(Secret::new(read_scalar(reader)?));
        }
        if roles.paired(route.sender, recipient) {
            zero_seed = Some(Secret::new(*reader.array()?));
        }
        Ok(Self { value, zero_seed, request: read_transfer(reader, REQUEST_BYTES)? })
    }
}

impl PrivateBody for Share {}

impl Body for Response {
    const ROUND: u8 = 4;

    fn encode(&self, writer: &mut Writer) {
        writer.sized(&self.0);
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        read_transfer(reader, RESPONSE_BYTES).map(Self)
    }
}

impl PrivateBody for Response {}

impl Body for Corrections {
    const ROUND: u8 = 5;

    fn encode(&self, writer: &mut Writer) {
        writer.sized(&self.0);
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        read_transfer(reader, CORRECTION_BYTES).map(Self)
    }
}

impl PrivateBody for Corrections {}

impl Body for Confirmation {
    const ROUND: u8 = 6;

    fn encode(&self, writer: &mut Writer) {
        if let Some(proof) = &self.proof {
            proof.encode(writer);
        }
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause> {
        let receives = roles_of(ctx)?.receives(route.sender);
        let proof = if receives { Some(Proof::decode(reader)?) } else { None };
        Ok(Self { proof })
    }
}

impl BroadcastBody for Confirmation {}

/// Nothing, or exactly `length` bytes.
fn read_transfer(reader: &mut Reader<'_>, length: usize) -> Result<Vec<u8>, AbortCause> {
    let bytes = reader.sized(length)?;
    if bytes.is_empty() || bytes.len() == length {
        Ok(bytes.to_vec())
    } else {
        Err(AbortCause::MalformedBody)
    }
}

/// Makes a key.
pub struct Keygen(Dealing);

/// Makes new shares of a key for the same parties and threshold. The old shares, of the epoch before, fit them no more. The payload of
/// the session is the encoding of the key's public data as it was.
pub struct Refresh(Dealing);

/// Makes new shares of a key for other parties, or with another threshold. The payload of the session is the encoding of
/// [`ReshareTerms`].
pub struct Reshare(Dealing);

/// What a party of a reshare ends with.
pub struct Reshared {
    /// The key's public data as they are now.
    pub public: KeyPublic,
    /// The new share; none of a party that only dealt.
    pub share: Option<KeyShare>,
}

/// One party's part in any of the three.
enum Dealing {
    /// Waiting for commitments.
    Committed(Committed),
    /// Waiting for openings.
    Opened(Opened),
    /// Waiting for shares, and for requests from lower parties.
    Dealt(Box<Dealt>),
    /// Waiting for responses from higher parties.
    Answered(Box<Answered>),
    /// Waiting for corrections from lower parties.
    Corrected(Box<Corrected>),
    /// Waiting for confirmations.
    Confirmed(Box<Confirmed>),
}

/// Where a step leads.
enum Turn {
    Round(Dealing, Outbox),
    Done(Reshared),
}

const REFRESH_ID: ProtocolId = ProtocolId { number: 7, name: "ecdsa/refresh/2" };
const RESHARE_ID: ProtocolId = ProtocolId { number: 8, name: "ecdsa/reshare/2" };

fn is_refresh(ctx: &SessionContext) -> bool {
    ctx.protocol() == REFRESH_ID
}

fn is_reshare(ctx: &SessionContext) -> bool {
    ctx.protocol() == RESHARE_ID
}

/// Who deals and who receives. The payload was checked when the session started.
fn roles_of(ctx: &SessionContext) -> Result<Roles, AbortCause> {
    if is_reshare(ctx) {
        Roles::decode(&mut Reader::new(ctx.payload())).map_err(|Malformed| AbortCause::Internal)
    } else {
        Ok(Roles::everybody(ctx))
    }
}

/// State of round 1.
struct Committed {
    me: PartyId,
    /// To which the new share is added: the old one in a refresh, else zero.
    base: Secret<Scalar>,
    polynomial: Vec<Secret<Scalar>>,
    opening: Opening,
}

/// State of round 2.
struct Opened {
    me: PartyId,
    base: Secret<Scalar>,
    polynomial: Vec<Secret<Scalar>>,
    opening: Opening,
    commitments: BTreeMap<PartyId, [u8; DIGEST_BYTES]>,
}

/// State of round 3.
struct Dealt {
    me: PartyId,
    roles: Roles,
    joint: Joint,
    /// The share so far, and the value of our own polynomial at our own number; zero if we get none.
    own_share: Secret<Scalar>,
    /// Everyone's points, to check the shares against.
    points: BTreeMap<PartyId, Vec<Point>>,
    zero_seeds: BTreeMap<PartyId, Secret<[u8; ZERO_SEED_BYTES]>>,
    initiated: BTreeMap<PartyId, Initiator>,
}

/// What no later round changes.
struct Settled {
    me: PartyId,
    roles: Roles,
    joint: Joint,
    signing_share: Secret<Scalar>,
    zero_seeds: BTreeMap<PartyId, Secret<[u8; ZERO_SEED_BYTES]>>,
}

/// State of round 4.
struct Answered {
    settled: Settled,
    initiated: BTreeMap<PartyId, Initiator>,
    responders: BTreeMap<PartyId, Responder>,
}

/// State of round 5.
struct Corrected {
    settled: Settled,
    pairs: BTreeMap<PartyId, Pair>,
    responders: BTreeMap<PartyId, Responder>,
}

/// State of round 6.
struct Confirmed {
    settled: Settled,
    pairs: BTreeMap<PartyId, Pair>,
}

/// What follows from all openings together.
struct Joint {
    public_key: Point,
    verification_shares: Vec<(PartyId, Point)>,
    chain_code: [u8; CHAIN_CODE_BYTES],
    /// Hash of all openings, contributions included.
    digest: [u8; DIGEST_BYTES],
}

const ROUNDS: &[RoundRule] = &[
    RoundRule { delivery: Delivery::Broadcast, max_body: DIGEST_BYTES },
    RoundRule { delivery: Delivery::Broadcast, max_body: MAX_OPENING_BYTES },
    RoundRule {
        delivery: Delivery::Private,
        max_body: SCALAR_BYTES + ZERO_SEED_BYTES + transfer_bytes(REQUEST_BYTES),
    },
    RoundRule { delivery: Delivery::Private, max_body: transfer_bytes(RESPONSE_BYTES) },
    RoundRule { delivery: Delivery::Private, max_body: transfer_bytes(CORRECTION_BYTES) },
    RoundRule { delivery: Delivery::Broadcast, max_body: PROOF_BYTES },
];

impl Protocol for Keygen {
    const ID: ProtocolId = ProtocolId { number: 3, name: "ecdsa/keygen/2" };
    const SIGNED: bool = true;
    const ROUNDS: &'static [RoundRule] = ROUNDS;
    type Input = ();
    type Output = KeyShare;

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
        let constant = Secret::new(random_scalar(rng));
        let (state, outbox) = Dealing::deal(ctx, me, Secret::new(Scalar::ZERO), Some(constant), rng);
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
        judge(ctx, cause, accused, evidence)
    }
}

impl Protocol for Refresh {
    const ID: ProtocolId = REFRESH_ID;
    const SIGNED: bool = true;
    const ROUNDS: &'static [RoundRule] = ROUNDS;
    type Input = KeyShare;
    type Output = KeyShare;

    fn start(
        ctx: &SessionContext,
        share: KeyShare,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let me = ctx.me().ok_or(SetupError::ObserverNotAllowed)?;
        let KeyShare { public, party, signing_share, .. } = share;
        if party != me || public.key_id != ctx.key_id() || public.threshold != ctx.threshold() {
            return Err(SetupError::ShareMismatch);
        }
        if public.epoch.checked_add(1) != Some(ctx.epoch()) {
            return Err(SetupError::EpochRange);
        }
        if &public.parties() != ctx.parties() {
            return Err(SetupError::SigningSetNotOfKey);
        }
        if base_of(ctx).as_ref() != Some(&public) {
            return Err(SetupError::PayloadInvalid);
        }
        let (state, outbox) = Dealing::deal(ctx, me, signing_share, Some(Secret::new(Scalar::ZERO)), rng);
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
        judge(ctx, cause, accused, evidence)
    }
}

impl Protocol for Reshare {
    const ID: ProtocolId = RESHARE_ID;
    const SIGNED: bool = true;
    const ROUNDS: &'static [RoundRule] = ROUNDS;
    /// The old share, of a dealer.
    type Input = Option<KeyShare>;
    type Output = Reshared;

    fn start(
        ctx: &SessionContext,
        share: Option<KeyShare>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let me = ctx.me().ok_or(SetupError::ObserverNotAllowed)?;
        let terms = ReshareTerms::of(ctx).ok_or(SetupError::PayloadInvalid)?;
        // [H1] what is agreed fits together, and is what the own share says.
        terms.check(ctx)?;
        let constant = match share {
            Some(_) if !terms.dealers.contains(me) => return Err(SetupError::InputUnexpected),
            None if terms.dealers.contains(me) => return Err(SetupError::ShareMissing),
            Some(share) if share.party != me || share.public != terms.base => {
                return Err(SetupError::ShareMismatch);
            }
            Some(KeyShare { signing_share, .. }) => {
                let weight = terms.weight(me).ok_or(SetupError::SigningSetNotOfKey)?;
                Some(Secret::new(weight * signing_share.expose()))
            }
            None => None,
        };
        let (state, outbox) = Dealing::deal(ctx, me, Secret::new(Scalar::ZERO), constant, rng);
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
        judge(ctx, cause, accused, evidence)
    }
}

fn share_of(reshared: Reshared) -> Option<KeyShare> {
    reshared.share
}

/// In a refresh or reshare, the key as it was: all parties agreed on it as the payload or a part of it.
fn base_of(ctx: &SessionContext) -> Option<KeyPublic> {
    if is_reshare(ctx) {
        return ReshareTerms::of(ctx).map(|terms| terms.base);
    }
    let mut reader = Reader::new(ctx.payload());
    let public = KeyPublic::decode(&mut reader).ok()?;
    reader.finish().ok().map(|()| public)
}

impl Turn {
    fn lead_to<P: Protocol>(
        self,
        protocol: impl FnOnce(Dealing) -> P,
        output: impl FnOnce(Reshared) -> Option<P::Output>,
    ) -> Result<Next<P>, Fault> {
        match self {
            Turn::Round(state, outbox) => Ok(Next::Round(protocol(state), outbox)),
            Turn::Done(reshared) => output(reshared).map(Next::Done).ok_or_else(Fault::internal),
        }
    }
}

impl Dealing {
    /// [K1] draw a polynomial, commit to it. Without a constant term, a party does not deal.
    fn deal(
        ctx: &SessionContext,
        me: PartyId,
        base: Secret<Scalar>,
        constant: Option<Secret<Scalar>>,
        rng: &mut dyn CryptoRng,
    ) -> (Self, Outbox) {
        // [K1.1] a random polynomial with this constant term, and its points.
        let mut polynomial: Vec<Secret<Scalar>> = constant.into_iter().collect();
        if !polynomial.is_empty() {
            polynomial.extend((1..ctx.threshold().get()).map(|_| Secret::new(random_scalar(rng))));
        }
        let points: Vec<Point> =
            polynomial.iter().map(|coefficient| mul_generator(coefficient.expose())).collect();
        // [K1.2] proof of knowledge of the constant term, contribution to the randomness.
        let statement = statement_of(&points);
        let proof = polynomial.first().filter(|_| !is_refresh(ctx)).map(|constant| {
            Proof::new(ctx, (tags::COEFFICIENT_PROOF, me), &statement, constant.expose(), rng)
        });
        let mut contribution = [0u8; DIGEST_BYTES];
        rng.fill_bytes(&mut contribution);
        let opening = Opening { points, proof, contribution };
        // [K1.3] commitment to all of it.
        let mut outbox = Outbox::new();
        outbox.broadcast(&Commitment { digest: commitment_digest(ctx, me, &opening) });
        (Self::Committed(Committed { me, base, polynomial, opening }), outbox)
    }

    fn step(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Turn, Fault> {
        match self {
            Self::Committed(state) => state.advance(ctx, inbox),
            Self::Opened(state) => state.advance(ctx, inbox, history, rng),
            Self::Dealt(state) => state.advance(ctx, inbox, history, rng),
            Self::Answered(state) => state.advance(ctx, inbox, rng),
            Self::Corrected(state) => state.advance(ctx, inbox, rng),
            Self::Confirmed(state) => state.advance(ctx, inbox, history),
        }
    }
}

fn judge(ctx: &SessionContext, cause: AbortCause, accused: PartyId, evidence: &[Arc<Envelope>]) -> bool {
    match (cause, evidence) {
        (AbortCause::WrongOpening, [commitment, opening]) => {
            opening_differs(ctx, accused, commitment, opening)
        }
        (AbortCause::WrongOpening, [opening]) => part_differs(ctx, accused, opening),
        (AbortCause::WrongShare, [opening, share]) => share_differs(ctx, accused, opening, share),
        (AbortCause::WrongProof, [opening]) => coefficient_unproven(ctx, accused, opening),
        (AbortCause::WrongProof, [earlier @ .., confirmation]) => {
            share_unproven(ctx, accused, earlier, confirmation)
        }
        (_, [envelope]) => envelope.sender() == accused && body_fault(ctx, envelope) == Some(cause),
        _ => false,
    }
}

impl Committed {
    /// [K2] keep the commitments, open the own one.
    fn advance(self, ctx: &SessionContext, inbox: &Inbox) -> Result<Turn, Fault> {
        let mut commitments = BTreeMap::new();
        for envelope in inbox.iter() {
            commitments.insert(envelope.sender(), read::<Commitment>(ctx, envelope)?.digest);
        }
        let Self { me, base, polynomial, opening } = self;
        let mut outbox = Outbox::new();
        outbox.broadcast(&opening);
        Ok(Turn::Round(Dealing::Opened(Opened { me, base, polynomial, opening, commitments }), outbox))
    }
}

impl Opened {
    /// [K3] check the openings, deal.
    fn advance(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Turn, Fault> {
        let Self { me, base, polynomial, opening, commitments } = self;
        let roles = roles_of(ctx).map_err(Fault::nobody)?;
        let terms = is_reshare(ctx).then(|| ReshareTerms::of(ctx).ok_or_else(Fault::internal)).transpose()?;
        let mut openings = BTreeMap::from([(me, opening)]);
        for envelope in inbox.iter() {
            let sender = envelope.sender();
            let opening: Opening = read(ctx, envelope)?;
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
        // [K3.4] a share and half of a seed for each peer, and a request for each higher one.
        let mut outbox = Outbox::new();
        let mut zero_seeds = BTreeMap::new();
        let mut initiated = BTreeMap::new();
        for peer in ctx.peers().iter() {
            let deals = roles.deals(me) && roles.receives(peer);
            let mut share = Share {
                value: deals.then(|| evaluate(&polynomial, peer)),
                zero_seed: None,
                request: Vec::new(),
            };
            if roles.paired(me, peer) {
                let mut half = Zeroizing::new([0u8; ZERO_SEED_BYTES]);
                rng.fill_bytes(half.as_mut());
                zero_seeds.insert(peer, Secret::new(*half));
                share.zero_seed = Some(Secret::new(*half));
                if me < peer {
                    let (initiator, message) = Initiator::begin(&joint.transfer_binding(ctx, me, peer), rng);
                    initiated.insert(peer, initiator);
                    share.request = message;
                }
            }
            outbox.private(peer, &share);
        }
        let mut own_share = Secret::new(Scalar::ZERO);
        if roles.receives(me) {
            *own_share.expose_mut() = evaluate(&polynomial, me).expose() + base.expose();
        }
        let points = openings.into_iter().map(|(party, opening)| (party, opening.points)).collect();
        let state = Dealt { me, roles, joint, own_share, points, zero_seeds, initiated };
        Ok(Turn::Round(Dealing::Dealt(Box::new(state)), outbox))
    }
}

impl Dealt {
    /// [K4] check the shares, respond to lower parties.
    fn advance(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Turn, Fault> {
        let Self { me, roles, joint, own_share, points, mut zero_seeds, initiated } = self;
        let mut signing_share = own_share;
        let mut outbox = Outbox::new();
        let mut responders = BTreeMap::new();
        for envelope in inbox.iter() {
            let sender = envelope.sender();
            let share: Share = read(ctx, envelope)?;
            // [K4.1] the share is on the committed polynomial.
            if let Some(value) = &share.value {
                let points = points.get(&sender).ok_or_else(Fault::internal)?;
                if mul_generator(value.expose()) != evaluate_public(points, me.get()) {
                    let opening = history.broadcast(Opening::ROUND, sender).ok_or_else(Fault::internal)?;
                    let evidence = vec![opening, Arc::clone(envelope)];
                    return Err(Fault::proven(AbortCause::WrongShare, sender, evidence));
                }
                *signing_share.expose_mut() += value.expose();
            }
            // [K4.2] the pair's seed: a hash of both halves.
            if let Some(their_half) = &share.zero_seed {
                let own_half = zero_seeds.remove(&sender).ok_or_else(Fault::internal)?;
                zero_seeds.insert(sender, joint.zero_seed(ctx, (me, &own_half), (sender, their_half)));
            }
            // [K4.3] the response to a lower party.
            let mut response = Vec::new();
            if roles.paired(sender, me) && sender < me {
                let request = share.request.as_slice().try_into().map_err(|_| malformed(envelope))?;
                let binding = joint.transfer_binding(ctx, sender, me);
                let (responder, message) = Responder::answer(&binding, request, rng)
                    .map_err(|error| transfer_fault(error, envelope))?;
                responders.insert(sender, responder);
                response = message;
            } else if !share.request.is_empty() {
                return Err(malformed(envelope));
            }
            outbox.private(sender, &Response(response));
        }
        let settled = Settled { me, roles, joint, signing_share, zero_seeds };
        let state = Answered { settled, initiated, responders };
        Ok(Turn::Round(Dealing::Answered(Box::new(state)), outbox))
    }
}

impl Answered {
    /// [K5] finish with higher parties.
    fn advance(self, ctx: &SessionContext, inbox: &Inbox, rng: &mut dyn CryptoRng) -> Result<Turn, Fault> {
        let Self { mut settled, mut initiated, responders } = self;
        let mut outbox = Outbox::new();
        let mut pairs = BTreeMap::new();
        for envelope in inbox.iter() {
            let sender = envelope.sender();
            let Response(response) = read(ctx, envelope)?;
            let mut corrections = Vec::new();
            if let Some(initiator) = initiated.remove(&sender) {
                // [K5.1] check what it sent; both directions stand from here on.
                let response = response.as_slice().try_into().map_err(|_| malformed(envelope))?;
                let (transfers, message) =
                    initiator.finish(response, rng).map_err(|error| transfer_fault(error, envelope))?;
                let zero_seed = settled.zero_seeds.remove(&sender).ok_or_else(Fault::internal)?;
                pairs.insert(sender, Pair { zero_seed, transfers });
                corrections = message;
            } else if !response.is_empty() {
                return Err(malformed(envelope));
            }
            outbox.private(sender, &Corrections(corrections));
        }
        let state = Corrected { settled, pairs, responders };
        Ok(Turn::Round(Dealing::Corrected(Box::new(state)), outbox))
    }
}

impl Corrected {
    /// [K6] finish with lower parties, confirm the own signing share.
    fn advance(self, ctx: &SessionContext, inbox: &Inbox, rng: &mut dyn CryptoRng) -> Result<Turn, Fault> {
        let Self { mut settled, mut pairs, mut responders } = self;
        for envelope in inbox.iter() {
            let sender = envelope.sender();
            let Corrections(corrections) = read(ctx, envelope)?;
            if let Some(responder) = responders.remove(&sender) {
                let corrections = corrections.as_slice().try_into().map_err(|_| malformed(envelope))?;
                let transfers =
                    responder.finish(corrections).map_err(|error| transfer_fault(error, envelope))?;
                let zero_seed = settled.zero_seeds.remove(&sender).ok_or_else(Fault::internal)?;
                pairs.insert(sender, Pair { zero_seed, transfers });
            } else if !corrections.is_empty() {
                return Err(malformed(envelope));
            }
        }
        // [K6.2] proof of knowledge of the signing share, bound to all openings.
        let proof = settled.roles.receives(settled.me).then(|| {
            let of_share = (tags::SHARE_PROOF, settled.me);
            Proof::new(ctx, of_share, &settled.joint.digest, settled.signing_share.expose(), rng)
        });
        let mut outbox = Outbox::new();
        outbox.broadcast(&Confirmation { proof });
        Ok(Turn::Round(Dealing::Confirmed(Box::new(Confirmed { settled, pairs })), outbox))
    }
}

impl Confirmed {
    /// [K7] check the confirmations, put the key together.
    fn advance(self, ctx: &SessionContext, inbox: &Inbox, history: &History<'_>) -> Result<Turn, Fault> {
        let Self { settled, pairs } = self;
        for envelope in inbox.iter() {
            let confirmation: Confirmation = read(ctx, envelope)?;
            if !settled.joint.proves_share(ctx, envelope.sender(), &confirmation) {
                let mut evidence = history.broadcasts();
                evidence.push(Arc::clone(envelope));
                return Err(Fault::proven(AbortCause::WrongProof, envelope.sender(), evidence));
            }
        }
        let Settled { me, roles, joint, signing_share, .. } = settled;
        let public = KeyPublic {
            key_id: ctx.key_id().to_owned(),
            epoch: ctx.epoch(),
            threshold: ctx.threshold(),
            chain_code: joint.chain_code,
            public_key: joint.public_key,
            verification_shares: joint.verification_shares,
        };
        let share =
            roles.receives(me).then(|| KeyShare { public: public.clone(), party: me, signing_share, pairs });
        Ok(Turn::Done(Reshared { public, share }))
    }
}

impl Joint {
    fn of(ctx: &SessionContext, openings: &BTreeMap<PartyId, Opening>) -> Result<Self, AbortCause> {
        let mut points = vec![Point::IDENTITY; ctx.threshold().get()];
        let mut transcript = ctx.transcript();
        for (party, opening) in openings {
            for (sum, point) in points.iter_mut().zip(&opening.points) {
                *sum += point;
            }
            transcript.append_u64("party", u64::from(party.get()));
            transcript.append("points", &statement_of(&opening.points));
            transcript.append("contribution", &opening.contribution);
        }
        let digest = transcript.digest();
        let mut public_key = points.first().copied().unwrap_or(Point::IDENTITY);
        let roles = roles_of(ctx)?;
        let receivers = ctx.parties().iter().filter(|party| roles.receives(*party));
        let mut verification_shares: Vec<(PartyId, Point)> =
            receivers.map(|party| (party, evaluate_public(&points, party.get()))).collect();
        let mut chain_code = chain_code(ctx, &digest);
        if is_refresh(ctx) || is_reshare(ctx) {
            let base = base_of(ctx).ok_or(AbortCause::Internal)?;
            chain_code = base.chain_code;
            if is_refresh(ctx) {
                public_key += base.public_key;
                for ((_, point), (_, old)) in verification_shares.iter_mut().zip(&base.verification_shares) {
                    *point += old;
                }
            }
            // [H3] whatever the openings were, the key is the same.
            if public_key != base.public_key {
                return Err(AbortCause::Internal);
            }
        }
        let degenerate = verification_shares.iter().any(|(_, point)| *point == Point::IDENTITY);
        if degenerate || public_key == Point::IDENTITY {
            return Err(AbortCause::DegenerateKey);
        }
        Ok(Self { public_key, verification_shares, chain_code, digest })
    }

    fn fork(&self, ctx: &SessionContext, tag: engine::Tag, party: PartyId) -> Transcript {
        let mut transcript = ctx.transcript().fork(tag, party);
        transcript.append("openings", &self.digest);
        transcript
    }

    /// What the transfers of a pair are bound to.
    fn transfer_binding(&self, ctx: &SessionContext, lower: PartyId, higher: PartyId) -> [u8; 32] {
        let mut transcript = self.fork(ctx, tags::TRANSFER_SETUP, lower);
        transcript.append_u64("higher", u64::from(higher.get()));
        transcript.digest()
    }

    /// The seed of a pair: secret while one of the two halves is.
    fn zero_seed(
        &self,
        ctx: &SessionContext,
        (a, half_a): (PartyId, &Secret<[u8; ZERO_SEED_BYTES]>),
        (b, half_b): (PartyId, &Secret<[u8; ZERO_SEED_BYTES]>),
    ) -> Secret<[u8; ZERO_SEED_BYTES]> {
        let (lower, higher) = if a < b { ((a, half_a), (b, half_b)) } else { ((b, half_b), (a, half_a)) };
        let mut transcript = self.fork(ctx, tags::ZERO_SEED, lower.0);
        transcript.append("lower", lower.1.expose());
        transcript.append_u64("higher", u64::from(higher.0.get()));
        transcript.append("higher", higher.1.expose());
        Secret::new(transcript.digest())
    }

    /// Whether a party proves its new share, if it has one.
    fn proves_share(&self, ctx: &SessionContext, party: PartyId, confirmation: &Confirmation) -> bool {
        let share = self.verification_shares.iter().find(|(holder, _)| *holder == party);
        match (share, &confirmation.proof) {
            (Some((_, point)), Some(proof)) => {
                proof.verifies(ctx, (tags::SHARE_PROOF, party), &self.digest, point)
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

/// The chain code of a new key: a hash of all contributions.
fn chain_code(ctx: &SessionContext, openings: &[u8; DIGEST_BYTES]) -> [u8; CHAIN_CODE_BYTES] {
    let mut transcript = ctx.transcript();
    transcript.append("purpose", tags::CHAIN_CODE.as_bytes());
    transcript.append("openings", openings);
    transcript.digest()
}

/// The polynomial at a party's number, by Horner's rule.
fn evaluate(polynomial: &[Secret<Scalar>], party: PartyId) -> Secret<Scalar> {
    let x = Scalar::from(u64::from(party.get()));
    let mut value = Secret::new(Scalar::ZERO);
    for coefficient in polynomial.iter().rev() {
        *value.expose_mut() = *value.expose() * x + coefficient.expose();
    }
    value
}

/// All points of a polynomial, one after another.
fn statement_of(points: &[Point]) -> Vec<u8> {
    points.iter().flat_map(encode_point).collect()
}

fn commitment_digest(ctx: &SessionContext, sender: PartyId, opening: &Opening) -> [u8; DIGEST_BYTES] {
    let mut writer = Writer::default();
    opening.encode(&mut writer);
    let mut transcript = ctx.transcript().fork(tags::KEYGEN_COMMITMENT, sender);
    transcript.append("opening", &writer.finish());
    transcript.digest()
}

fn proves_coefficient(ctx: &SessionContext, sender: PartyId, opening: &Opening) -> bool {
    let statement = statement_of(&opening.points);
    match (&opening.proof, opening.points.first()) {
        (Some(proof), Some(point)) => {
            proof.verifies(ctx, (tags::COEFFICIENT_PROOF, sender), &statement, point)
        }
        // Zero is known to everybody; without polynomial there is nothing to know.
        (None, point) => is_refresh(ctx) || point.is_none(),
        (Some(_), None) => false,
    }
}

/// Whether a dealer's constant term is its part of the key, and another party deals nothing.
fn deals_its_part(terms: &ReshareTerms, sender: PartyId, opening: &Opening) -> bool {
    let expected = terms.dealers.contains(sender).then(|| terms.constant_point(sender)).flatten();
    opening.points.first() == expected.as_ref()
}

// Blame: what an honest party shows, and what everybody checks.

/// Decodes a body; what is wrong with it is shown by the envelope alone.
fn read<B: Body>(ctx: &SessionContext, envelope: &Arc<Envelope>) -> Result<B, Fault> {
    parse(ctx, envelope).map_err(|cause| Fault::proven(cause, envelope.sender(), vec![Arc::clone(envelope)]))
}

/// The transfer message is there where none belongs, or missing, or holds a point that is none.
fn malformed(envelope: &Arc<Envelope>) -> Fault {
    Fault::proven(AbortCause::MalformedBody, envelope.sender(), vec![Arc::clone(envelope)])
}

/// A failed check of the transfers convinces only the party that failed it: nobody is blamed, and no state survives.
fn transfer_fault(error: OtError, envelope: &Arc<Envelope>) -> Fault {
    match error {
        OtError::Malformed => malformed(envelope),
        OtError::CheckFailed => Fault::nobody(AbortCause::TransferCheckFailed),
    }
}

/// What is wrong with a body on its own.
fn body_fault(ctx: &SessionContext, envelope: &Envelope) -> Option<AbortCause> {
    let roles = roles_of(ctx).ok()?;
    let pair = envelope.recipient().filter(|recipient| roles.paired(envelope.sender(), *recipient));
    let to_higher = pair.is_some_and(|recipient| envelope.sender() < recipient);
    let to_lower = pair.is_some_and(|recipient| envelope.sender() > recipient);
    let unexpected = |transfer: &[u8], expected: bool, well_formed: fn(&[u8]) -> bool| {
        (transfer.is_empty() == expected || (expected && !well_formed(transfer)))
            .then_some(AbortCause::MalformedBody)
    };
    match envelope.round() {
        Commitment::ROUND => parse::<Commitment>(ctx, envelope).err(),
        Opening::ROUND => parse::<Opening>(ctx, envelope).err(),
        Share::ROUND => match parse::<Share>(ctx, envelope) {
            Ok(share) => unexpected(&share.request, to_higher, is_request),
            Err(cause) => Some(cause),
        },
        Response::ROUND => match parse::<Response>(ctx, envelope) {
            Ok(Response(response)) => unexpected(&response, to_lower, is_response),
            Err(cause) => Some(cause),
        },
        Corrections::ROUND => match parse::<Corrections>(ctx, envelope) {
            Ok(Corrections(corrections)) => {
                unexpected(&corrections, to_higher, |bytes| bytes.len() == CORRECTION_BYTES)
            }
            Err(cause) => Some(cause),
        },
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
    if commitment.sender() != accused || opening.sender() != accused {
        return false;
    }
    match (parse::<Commitment>(ctx, commitment), parse::<Opening>(ctx, opening)) {
        (Ok(commitment), Ok(opening)) => commitment.digest != commitment_digest(ctx, accused, &opening),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

fn part_differs(ctx: &SessionContext, accused: PartyId, opening: &Envelope) -> bool {
    is_reshare(ctx)
        && opening.sender() == accused
        && match (ReshareTerms::of(ctx), parse::<Opening>(ctx, opening)) {
            (Some(terms), Ok(opening)) => !deals_its_part(&terms, accused, &opening),
            (None, _) | (_, Err(_)) => false,
        }
}

fn share_differs(ctx: &SessionContext, accused: PartyId, opening: &Envelope, share: &Envelope) -> bool {
    let (true, true, Some(recipient)) =
        (opening.sender() == accused, share.sender() == accused, share.recipient())
    else {
        return false;
    };
    match (parse::<Opening>(ctx, opening), parse::<Share>(ctx, share)) {
        (Ok(opening), Ok(Share { value: Some(value), .. })) => {
            mul_generator(value.expose()) != evaluate_public(&opening.points, recipient.get())
        }
        (Ok(_), Ok(Share { value: None, .. })) => false,
        (Err(_), _) | (_, Err(_)) => false,
    }
}

fn coefficient_unproven(ctx: &SessionContext, accused: PartyId, opening: &Envelope) -> bool {
    opening.sender() == accused
        && parse::<Opening>(ctx, opening).is_ok_and(|opening| !proves_coefficient(ctx, accused, &opening))
}

/// Whether a confirmation is wrong in the light of the broadcasts that its own echo digest says its sender had seen. An honest
/// sender has checked those, so only what it signed on top of them can be held against it.
fn share_unproven(
    ctx: &SessionContext,
    accused: PartyId,
    earlier: &[Arc<Envelope>],
    confirmation: &Envelope,
) -> bool {
    let claimed = echo_of(ctx, Confirmation::ROUND, earlier);
    if confirmation.sender() != accused || confirmation.echo() != Some(&claimed) {
        return false;
    }
    let mut openings = BTreeMap::new();
    for envelope in earlier.iter().filter(|envelope| envelope.round() == Opening::ROUND) {
        let Ok(opening) = parse::<Opening>(ctx, envelope) else { return false };
        openings.insert(envelope.sender(), opening);
    }
    if openings.len() != ctx.parties().len() {
        return false;
    }
    match (Joint::of(ctx, &openings), parse::<Confirmation>(ctx, confirmation)) {
        (Ok(joint), Ok(confirmation)) => !joint.proves_share(ctx, accused, &confirmation),
        (Err(_), _) | (_, Err(_)) => false,
    }
}
