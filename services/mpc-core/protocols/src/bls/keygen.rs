//! Distributed key generation: Pedersen's with Feldman commitments, committed before opened, in four rounds.
//!
//! Specification, blame rules and reasons for deviations: `docs/protocols/bls.md`; steps are cited as [K1.2].
//!
//! | paper | here |
//! |---|---|
//! | a_k, f | `coefficients` of the `Polynomial` |
//! | C_(j,k) | `Opening::points` of party j |
//! | C_k | `joint_points` |
//! | s_(j,i) | `Share` |
//! | x_i, X_i | `signing_share`, `verification_points` |

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::wire::{Reader, Writer};
use engine::{
    AbortCause, Body, BroadcastBody, Delivery, Envelope, Fault, History, Inbox, MAX_PARTIES, Next, Outbox,
    PartyId, PrivateBody, Protocol, ProtocolId, RoundRule, Route, Secret, SessionContext, SetupError, Tag,
    Transcript, View, hedged, parse,
};
use primitives::bls12_381::{
    CurveG1, G1, G1_UNCOMPRESSED_BYTES, G2, G2_UNCOMPRESSED_BYTES, HashedMessage, SCALAR_BYTES, Scalar,
    UncheckedG2, verify, verify_batch,
};
use primitives::schnorr::{self, Nonce, Statement};
use primitives::shamir::Weights;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::POSSESSION_DOMAIN;
use super::key::{KeyPublic, KeyShare, VerificationShare};
use super::scheme::Subgroup;
use crate::dealing::{Polynomial, read, shown_by_both};
use crate::hedged::HedgedRng;
use crate::tags;

/// Bytes of a commitment, and of a contribution to the joint randomness.
const DIGEST_BYTES: usize = 32;
const PROOF_BYTES: usize = G1_UNCOMPRESSED_BYTES + SCALAR_BYTES;
/// Twice as many points as any honest opening has, so that a vector that is too long is blamed and not only dropped.
const MAX_OPENING_BYTES: usize = 1 + 2 * MAX_PARTIES * G1_UNCOMPRESSED_BYTES + PROOF_BYTES + DIGEST_BYTES;

/// Round 1: commitment to the opening.
pub struct Commitment {
    digest: [u8; DIGEST_BYTES],
}

/// Round 2: what was committed to.
pub struct Opening {
    /// The sender's polynomial in the exponent, constant term first; `threshold` of them.
    points: Vec<CurveG1>,
    /// Of the constant term.
    proof: Proof,
    /// To the randomness that round 4 is bound to.
    contribution: [u8; DIGEST_BYTES],
}

/// Round 3: the sender's polynomial at the recipient's number.
pub struct Share {
    value: Secret<Scalar>,
}

/// Round 4: the sender holds the share that the commitments say it does.
pub struct Confirmation {
    /// Of the signing share.
    proof: Proof,
    /// Signature of the joint public key under the sender's signing share.
    partial_possession: G2,
}

/// A Schnorr proof as it travels.
struct Proof {
    commitment: CurveG1,
    response: Scalar,
}

impl Proof {
    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.commitment.to_uncompressed());
        writer.bytes(&self.response.to_bytes());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, AbortCause> {
        Ok(Self { commitment: read_point(reader)?, response: read_scalar(reader)? })
    }

    fn statement(&self, point: CurveG1, challenge: Scalar) -> Statement {
        Statement { point, commitment: self.commitment, challenge, response: self.response.copy() }
    }
}

fn read_point(reader: &mut Reader<'_>) -> Result<CurveG1, AbortCause> {
    CurveG1::from_uncompressed(reader.array()?).ok_or(AbortCause::InvalidPoint)
}

fn read_scalar(reader: &mut Reader<'_>) -> Result<Scalar, AbortCause> {
    Scalar::from_bytes(reader.array()?).ok_or(AbortCause::InvalidScalar)
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
        writer.u8(u8::try_from(self.points.len()).unwrap_or(u8::MAX));
        for point in &self.points {
            writer.bytes(&point.to_uncompressed());
        }
        self.proof.encode(writer);
        writer.bytes(&self.contribution);
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        if usize::from(reader.u8()?) != ctx.threshold().get() {
            return Err(AbortCause::WrongDegree);
        }
        let points = (0..ctx.threshold().get()).map(|_| read_point(reader)).collect::<Result<_, _>>()?;
        Ok(Self { points, proof: Proof::decode(reader)?, contribution: *reader.array()? })
    }
}

impl BroadcastBody for Opening {}

impl Body for Share {
    const ROUND: u8 = 3;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(Zeroizing::new(self.value.expose().to_bytes()).as_slice());
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        let value = Secret::new(read_scalar(reader)?);
        if value.expose().is_zero() { Err(AbortCause::InvalidScalar) } else { Ok(Self { value }) }
    }
}

impl PrivateBody for Share {}

impl Body for Confirmation {
    const ROUND: u8 = 4;

    fn encode(&self, writer: &mut Writer) {
        self.proof.encode(writer);
        writer.bytes(&self.partial_possession.to_uncompressed());
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        let proof = Proof::decode(reader)?;
        let partial_possession = G2::from_uncompressed(reader.array()?).ok_or(AbortCause::InvalidPoint)?;
        Ok(Self { proof, partial_possession })
    }
}

impl BroadcastBody for Confirmation {}

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
    me: PartyId,
    polynomial: Polynomial<Subgroup>,
    opening: Opening,
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

/// What follows from all openings together.
struct Joint {
    /// The joint polynomial in the exponent; the first one is the public key.
    points: Vec<G1>,
    /// Hash of all openings, contributions included.
    digest: [u8; DIGEST_BYTES],
}

impl Protocol for Keygen {
    const ID: ProtocolId = ProtocolId { number: 1, name: "bls/keygen/1" };
    const SIGNED: bool = true;
    const ROUNDS: &'static [RoundRule] = &[
        RoundRule { delivery: Delivery::Broadcast, max_body: DIGEST_BYTES },
        RoundRule { delivery: Delivery::Broadcast, max_body: MAX_OPENING_BYTES },
        RoundRule { delivery: Delivery::Private, max_body: SCALAR_BYTES },
        RoundRule { delivery: Delivery::Broadcast, max_body: PROOF_BYTES + G2_UNCOMPRESSED_BYTES },
    ];
    type Input = ();
    type Output = KeyShare;

    fn start(ctx: &SessionContext, (): (), rng: &mut dyn CryptoRng) -> Result<(Self, Outbox), SetupError> {
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
        Committed::commit(ctx, me, polynomial, points, rng)
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        match self {
            Keygen::Committed(round) => round.advance(ctx, &inbox),
            Keygen::Opened(round) => round.advance(ctx, &inbox, history, rng),
            Keygen::Dealt(round) => round.advance(ctx, &inbox, history, rng),
            Keygen::Confirmed(round) => round.advance(ctx, &inbox, history, rng),
        }
    }

    fn judge(ctx: &SessionContext, cause: AbortCause, accused: PartyId, evidence: &[Arc<Envelope>]) -> bool {
        match cause {
            AbortCause::MalformedBody
            | AbortCause::InvalidPoint
            | AbortCause::InvalidScalar
            | AbortCause::WrongDegree => {
                matches!(evidence, [envelope] if body_fault(ctx, envelope) == Some(cause))
            }
            AbortCause::WrongOpening => {
                matches!(evidence, [commitment, opening] if opening_differs(ctx, accused, commitment, opening))
            }
            AbortCause::WrongShare => {
                matches!(evidence, [opening, share] if share_differs(ctx, accused, opening, share))
            }
            AbortCause::WrongProof => match evidence {
                [opening] => constant_term_unproven(ctx, accused, opening),
                [earlier @ .., confirmation] => {
                    View::from_evidence(ctx, Confirmation::ROUND, earlier)
                        .and_then(|view| confirmation_fault(ctx, accused, &view, confirmation))
                        == Some(cause)
                }
                [] => false,
            },
            AbortCause::WrongPartialSignature => match evidence {
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
            | AbortCause::PartyRestarted => false,
        }
    }
}

impl Committed {
    fn commit(
        ctx: &SessionContext,
        me: PartyId,
        polynomial: Polynomial<Subgroup>,
        points: Vec<CurveG1>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Keygen, Outbox), SetupError> {
        // [K1.2] proof of knowledge of the constant term, bound to everything agreed and to all points.
        let constant_term = polynomial.constant().ok_or(SetupError::ThresholdRange)?;
        let transcript = constant_term_transcript(ctx, me, &points);
        let proof = prove(ctx, tags::BLS_CONSTANT_TERM_PROOF, constant_term, &transcript, rng);
        // [K1.3] 32 bytes of randomness, which also hide the commitment.
        let contribution = contribution(ctx, rng);
        let opening = Opening { points, proof, contribution };
        // [K1.4] commit.
        let mut outbox = Outbox::new();
        outbox.broadcast(&Commitment { digest: commitment_digest(ctx, me, &opening) });
        Ok((Keygen::Committed(Self { me, polynomial, opening }), outbox))
    }

    /// [K2] keep the commitments, broadcast the opening.
    fn advance(self, ctx: &SessionContext, inbox: &Inbox) -> Result<Next<Keygen>, Fault> {
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
    fn advance(
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
            if commitments.get(&sender) != Some(&commitment_digest(ctx, sender, &opening)) {
                let commitment = history.broadcast(Commitment::ROUND, sender)?;
                let evidence = vec![commitment, Arc::clone(envelope)];
                return Err(Fault::proven(AbortCause::WrongOpening, sender, evidence));
            }
            openings.insert(sender, opening);
        }
        // [K3.2] every sender knows its constant term.
        let statements: Vec<Statement> =
            openings.iter().map(|(sender, opening)| constant_term_statement(ctx, *sender, opening)).collect();
        if !schnorr::verify_batch(&statements, rng) {
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
    fn advance(
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
            ctx.parties().iter().map(|party| (party, G1::evaluate(&joint.points, party.get()))).collect();
        let own_point = G1::mul_generator(&signing_share);
        if verification_points.get(&me) != Some(&own_point) {
            return Err(wrong_share(ctx, me, &points, inbox, history));
        }
        if verification_points.values().any(G1::is_identity) {
            return Err(Fault::nobody(AbortCause::DegenerateKey));
        }
        // [K4.2] proof of knowledge of the signing share, bound to all openings.
        let transcript = signing_share_transcript(ctx, me, &joint, &own_point);
        let proof = prove(ctx, tags::BLS_SIGNING_SHARE_PROOF, &signing_share, &transcript, rng);
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
    fn advance(
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
            statements.push(signing_share_statement(ctx, *sender, &self.joint, &point, confirmation));
            keys.push(point);
            partials.push(confirmation.partial_possession);
        }
        // [K5.2] every partial proof of possession verifies under its sender's verification share.
        let sound =
            schnorr::verify_batch(&statements, rng) && verify_batch(&keys, &self.message, &partials, rng);
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

impl Joint {
    /// Sums the points term by term. Each sum is checked to be in the subgroup, exactly and without randomness; sums
    /// are all that the key is made of. Only if one fails is every sender's point looked at.
    fn of(ctx: &SessionContext, openings: &BTreeMap<PartyId, Opening>) -> Result<Self, AbortCause> {
        let mut points = Vec::with_capacity(ctx.threshold().get());
        for term in 0..ctx.threshold().get() {
            let sum = CurveG1::sum(openings.values().filter_map(|opening| opening.points.get(term)))
                .ok_or(AbortCause::DegenerateKey)?;
            points.push(sum.check().ok_or(AbortCause::InvalidPoint)?);
        }
        let mut transcript = ctx.transcript();
        transcript.append("openings", tags::BLS_OPENINGS.as_bytes());
        for (party, opening) in openings {
            transcript.append_u64("party", u64::from(party.get()));
            append_points(&mut transcript, &opening.points);
            transcript.append("contribution", &opening.contribution);
        }
        Ok(Self { points, digest: transcript.digest() })
    }

    fn possession_message(&self) -> Option<HashedMessage> {
        let public_key = self.points.first()?;
        Some(HashedMessage::new(&public_key.to_compressed(), POSSESSION_DOMAIN))
    }
}

// Hashes and challenges.

fn append_points(transcript: &mut Transcript, points: &[CurveG1]) {
    transcript.append_list("points", points.iter().map(CurveG1::to_uncompressed));
}

fn contribution(ctx: &SessionContext, rng: &mut dyn CryptoRng) -> [u8; DIGEST_BYTES] {
    let wide = hedged(ctx, tags::BLS_CONTRIBUTION, &[], rng);
    let mut contribution = [0u8; DIGEST_BYTES];
    for (out, byte) in contribution.iter_mut().zip(wide.expose()) {
        *out = *byte;
    }
    contribution
}

fn commitment_digest(ctx: &SessionContext, sender: PartyId, opening: &Opening) -> [u8; DIGEST_BYTES] {
    let mut transcript = ctx.transcript().fork(tags::BLS_COMMITMENT, sender);
    append_points(&mut transcript, &opening.points);
    transcript.append("proof commitment", &opening.proof.commitment.to_uncompressed());
    transcript.append("proof response", &opening.proof.response.to_bytes());
    transcript.append("contribution", &opening.contribution);
    transcript.digest()
}

/// Everything that the proof of a constant term states.
fn constant_term_transcript(ctx: &SessionContext, prover: PartyId, points: &[CurveG1]) -> Transcript {
    let mut transcript = ctx.transcript().fork(tags::BLS_CONSTANT_TERM_PROOF, prover);
    append_points(&mut transcript, points);
    transcript
}

/// Everything that the proof of a signing share states.
fn signing_share_transcript(ctx: &SessionContext, prover: PartyId, joint: &Joint, point: &G1) -> Transcript {
    let mut transcript = ctx.transcript().fork(tags::BLS_SIGNING_SHARE_PROOF, prover);
    transcript.append("openings", &joint.digest);
    transcript.append("verification share", &point.to_uncompressed());
    transcript
}

fn challenge(statement: &Transcript, commitment: &CurveG1) -> Scalar {
    let mut transcript = statement.clone();
    transcript.append("proof commitment", &commitment.to_uncompressed());
    Scalar::from_wide(&transcript.wide())
}

/// The nonce depends on the secret and on the statement, so that a generator that repeats gives no nonce twice for two
/// challenges.
fn prove(
    ctx: &SessionContext,
    purpose: Tag,
    secret: &Secret<Scalar>,
    statement: &Transcript,
    rng: &mut dyn CryptoRng,
) -> Proof {
    let secret_bytes = Zeroizing::new(secret.expose().to_bytes());
    let mut known = Zeroizing::new(Vec::with_capacity(SCALAR_BYTES + DIGEST_BYTES));
    known.extend_from_slice(secret_bytes.as_slice());
    known.extend_from_slice(&statement.clone().digest());
    let nonce = Nonce::new(&hedged(ctx, purpose, &known, rng));
    let commitment = CurveG1::from(*nonce.commitment());
    let challenge = challenge(statement, &commitment);
    Proof { commitment, response: nonce.respond(&challenge, secret) }
}

fn constant_term_statement(ctx: &SessionContext, sender: PartyId, opening: &Opening) -> Statement {
    let transcript = constant_term_transcript(ctx, sender, &opening.points);
    let challenge = challenge(&transcript, &opening.proof.commitment);
    // Decoding has made sure of `threshold` >= 1 points; without one the generator stands for a statement that is
    // false.
    let point = opening.points.first().copied().unwrap_or_else(|| G1::generator().into());
    opening.proof.statement(point, challenge)
}

fn signing_share_statement(
    ctx: &SessionContext,
    sender: PartyId,
    joint: &Joint,
    point: &G1,
    confirmation: &Confirmation,
) -> Statement {
    let transcript = signing_share_transcript(ctx, sender, joint, point);
    let challenge = challenge(&transcript, &confirmation.proof.commitment);
    confirmation.proof.statement((*point).into(), challenge)
}

// Blame: what an honest party shows, and what everybody checks.

/// The first sender whose message has the fault that the batch showed someone to have.
fn first_fault(inbox: &Inbox, cause: AbortCause, faulty: impl Fn(&Arc<Envelope>) -> bool) -> Fault {
    match inbox.iter().find(|envelope| faulty(envelope)) {
        Some(envelope) => Fault::proven(cause, envelope.sender(), vec![Arc::clone(envelope)]),
        None => Fault::internal(),
    }
}

fn wrong_share(
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

fn wrong_confirmation(ctx: &SessionContext, inbox: &Inbox, history: &History<'_>) -> Fault {
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

/// What is wrong with a body on its own.
fn body_fault(ctx: &SessionContext, envelope: &Envelope) -> Option<AbortCause> {
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
        commitment.digest != commitment_digest(ctx, accused, &opening)
    })
}

fn share_differs(ctx: &SessionContext, accused: PartyId, opening: &Envelope, share: &Envelope) -> bool {
    let Some(recipient) = share.recipient() else { return false };
    shown_by_both(ctx, accused, (opening, share), |opening: Opening, share: Share| {
        !CurveG1::evaluates_to(&opening.points, recipient.get(), &G1::mul_generator(&share.value))
    })
}

fn constant_term_unproven(ctx: &SessionContext, accused: PartyId, opening: &Envelope) -> bool {
    opening.sender() == accused
        && parse::<Opening>(ctx, opening)
            .is_ok_and(|opening| !schnorr::verify(&constant_term_statement(ctx, accused, &opening)))
}

/// What is wrong with a confirmation, in the light of the view that its own echo digest says its sender had. An honest
/// sender has checked that, so only what it signed on top of it can be held against it.
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
    let point = G1::evaluate(&joint.points, accused.get());
    if !schnorr::verify(&signing_share_statement(ctx, accused, &joint, &point, &confirmation)) {
        return Some(AbortCause::WrongProof);
    }
    let message = joint.possession_message()?;
    (!verify(&point, &message, &confirmation.partial_possession)).then_some(AbortCause::WrongPartialSignature)
}

/// For tests: what a party that does not follow the rules would need to be consistent with itself.
#[cfg(feature = "forge")]
pub mod forge {
    use engine::wire::{Reader, Writer};
    use engine::{Body, Outbox, PartyId, Protocol, Route, SessionContext, SetupError};
    use primitives::bls12_381::CurveG1;
    use rand_core::CryptoRng;

    use super::{Commitment, Committed, Keygen, Opening, commitment_digest};

    /// The body of the commitment that `opening`, an encoded body that need not be valid otherwise, belongs to.
    pub fn commitment(ctx: &SessionContext, sender: PartyId, opening: &[u8]) -> Option<Vec<u8>> {
        let route = Route { sender, recipient: None };
        let opening = Opening::decode(&mut Reader::new(opening), ctx, route).ok()?;
        let mut writer = Writer::default();
        Commitment { digest: commitment_digest(ctx, sender, &opening) }.encode(&mut writer);
        Some(writer.finish())
    }

    /// Starts with other points than those of the polynomial, and proofs and commitment that fit them.
    pub fn start(
        ctx: &SessionContext,
        change: impl FnOnce(&mut Vec<CurveG1>),
        rng: &mut dyn CryptoRng,
    ) -> Result<(Keygen, Outbox), SetupError> {
        let (honest, _) = Keygen::start(ctx, (), rng)?;
        let Keygen::Committed(Committed { me, polynomial, opening }) = honest else {
            return Err(SetupError::UnknownProtocol);
        };
        let mut points = opening.points;
        change(&mut points);
        Committed::commit(ctx, me, polynomial, points, rng)
    }
}
