//! The join: manager and member compute g1^{1/(sk_m + sk_i)} for the member, and neither learns the other's secret.
//!
//! Three messages: encrypted issuing key; its combination with the member's secret, masked; the masked signature.
//! Steps are cited as [J1] (`docs/protocols/wbb.md`). The payload hashes all inputs of both, so every challenge does.
//!
//! | paper | here |
//! |---|---|
//! | e1, e2 | `encrypted_key`, `combined` |
//! | r1, r2, r-bar | `factor`, `multiple`, `randomness` |
//! | sigma*, sigma | `masked`, credential |

#[cfg(feature = "forge")]
pub mod unproven;

use std::sync::Arc;

use engine::wire::{Reader, Writer};
use engine::{
    AbortCause, Body, Delivery, Envelope, Fault, History, Inbox, Next, Outbox, PartyId, PartySet,
    PrivateBody, Protocol, ProtocolId, RoundRule, Route, Secret, SessionContext, SetupError, Transcript,
    parse,
};
use group_signatures::{Attempt, GroupPublic, IssuingKey, MemberKey, complete};
use primitives::bls12_381::{G1, G1_COMPRESSED_BYTES, Scalar};
use protocols::HedgedRng;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::number::{Calc, Failure, Number};
use crate::pair::Issuer;
use crate::proofs::{
    CombinationProof, CombinationStatement, CombinationWitness, KeyProof, KeyStatement, KeyWitness,
    MULTIPLE_BITS, SCALAR_BITS, combine_with, read_below,
};
use crate::setup::{ModulusBits, Parameters, SecretParameters, SetUpError};
use crate::tags;

const LONGEST: usize = ModulusBits::PAPER.0;
const CIPHERTEXT_BYTES: usize = 2 * LONGEST.div_ceil(8);
const SIZE_BYTES: usize = 4;
const MAX_KEY_BODY: usize = SIZE_BYTES + CIPHERTEXT_BYTES + KeyProof::length(LONGEST, LONGEST);
const MAX_COMBINED_BODY: usize = SIZE_BYTES + CIPHERTEXT_BYTES + CombinationProof::length(LONGEST);

/// The terms that both sides start from.
pub struct JoinTerms {
    /// The group.
    pub group: Arc<GroupPublic>,
    /// The run, as this side has counted it.
    pub attempt: Attempt,
}

/// The manager's side.
pub struct ManagerInput {
    /// The agreed terms.
    pub terms: JoinTerms,
    /// sk_m.
    pub issuing_key: Arc<IssuingKey>,
    /// The manager's parameters.
    pub own: Arc<SecretParameters>,
    /// The member's parameters, checked by the manager.
    pub peer: Arc<Parameters>,
}

/// The member's side.
pub struct MemberInput {
    /// The agreed terms.
    pub terms: JoinTerms,
    /// sk_i.
    pub secret: Secret<Scalar>,
    /// The member's parameters.
    pub own: Arc<SecretParameters>,
    /// The manager's key and parameters, checked by this member.
    pub issuer: Arc<Issuer>,
}

/// Input of a session.
pub enum JoinInput {
    /// At the manager.
    Manager(ManagerInput),
    /// At the member.
    Member(MemberInput),
}

/// Output of a session.
pub enum JoinOutput {
    /// The manager has sent the answer. Whether it arrived, it does not know.
    Answered,
    /// The member has its key, verified.
    Joined(Box<MemberKey>),
}

impl JoinTerms {
    /// The session's payload.
    pub fn payload(&self, manager: &Parameters, member: &Parameters) -> [u8; 32] {
        self.attempt.terms(&[manager.digest(), member.digest()])
    }

    fn check(
        &self,
        ctx: &SessionContext,
        manager: &Parameters,
        member: &Parameters,
    ) -> Result<PartyId, SetupError> {
        ctx.me().ok_or(SetupError::ObserverNotAllowed)?;
        let mut peers = ctx.peers().iter().collect::<Vec<_>>().into_iter();
        let (Some(peer), None) = (peers.next(), peers.next()) else { return Err(SetupError::PartyCount) };
        let same = ctx.key_id() == self.group.name() && ctx.epoch() == self.group.epoch();
        if !same || self.attempt.group() != self.group.digest() {
            return Err(SetupError::ShareMismatch);
        }
        if ctx.payload() != self.payload(manager, member) {
            return Err(SetupError::PayloadInvalid);
        }
        Ok(peer)
    }
}

/// A message: its parts have lengths that follow from the parameters, which its decoder does not know.
struct Packed<const ROUND: u8> {
    bytes: Vec<u8>,
}

impl<const ROUND: u8> Body for Packed<ROUND> {
    const ROUND: u8 = ROUND;

    fn encode(&self, writer: &mut Writer) {
        writer.sized(&self.bytes);
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        Ok(Self { bytes: reader.sized(MAX_KEY_BODY.max(MAX_COMBINED_BODY))?.to_vec() })
    }
}

impl<const ROUND: u8> PrivateBody for Packed<ROUND> {}

/// Round 1: the issuing key, encrypted.
type EncryptedKey = Packed<1>;
/// Round 2: its combination with the member's secret.
type Combined = Packed<2>;

/// Round 3: the masked signature.
struct Masked {
    point: G1,
}

impl Body for Masked {
    const ROUND: u8 = 3;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.point.to_compressed());
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        let point = G1::from_compressed(reader.array()?).ok_or(AbortCause::InvalidPoint)?;
        Ok(Self { point })
    }
}

impl PrivateBody for Masked {}

/// One side of a join.
pub enum Join {
    /// The manager has sent the encrypted key, and passes to the round of the answer.
    Offered(Box<Offered>),
    /// The manager waits for the combination.
    Awaiting(Box<Offered>),
    /// The manager has answered.
    Answered,
    /// The member waits for the encrypted key.
    Applied(Box<Applied>),
    /// The member has sent the combination, and passes to the round of the answer.
    Sent(Box<Sent>),
    /// The member waits for the masked signature.
    Blinded(Box<Sent>),
}

/// The manager's state.
pub struct Offered {
    input: ManagerInput,
    member: PartyId,
    encrypted_key: Number,
}

/// The member's state before the combination.
pub struct Applied {
    input: MemberInput,
    manager: PartyId,
}

/// The member's state after it.
pub struct Sent {
    group: Arc<GroupPublic>,
    secret: Secret<Scalar>,
    /// r1.
    factor: Secret<Scalar>,
    manager: PartyId,
}

impl Protocol for Join {
    const ID: ProtocolId = ProtocolId { number: 64, name: "wbb/paillier-join/1" };
    const SIGNED: bool = false;
    const ROUNDS: &'static [RoundRule] = &[
        RoundRule { delivery: Delivery::Private, max_body: MAX_KEY_BODY },
        RoundRule { delivery: Delivery::Private, max_body: MAX_COMBINED_BODY },
        RoundRule { delivery: Delivery::Private, max_body: G1_COMPRESSED_BYTES },
    ];
    type Input = JoinInput;
    type Output = JoinOutput;

    fn start(
        ctx: &SessionContext,
        input: JoinInput,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        match input {
            JoinInput::Manager(input) => {
                let member = input.terms.check(ctx, input.own.public(), &input.peer)?;
                if input.issuing_key.group() != input.terms.group.digest() {
                    return Err(SetupError::ShareInvalid);
                }
                let (encrypted_key, body) =
                    offer(ctx, &input, rng).map_err(|Failure| SetupError::ShareInvalid)?;
                let mut outbox = Outbox::new();
                outbox.private(member, &EncryptedKey { bytes: body });
                Ok((Join::Offered(Box::new(Offered { input, member, encrypted_key })), outbox))
            }
            JoinInput::Member(input) => {
                let manager = input.terms.check(ctx, &input.issuer.parameters, input.own.public())?;
                let member = input.terms.attempt.member();
                if G1::mul_generator(&input.secret) != *member || member.is_identity() {
                    return Err(SetupError::ShareInvalid);
                }
                Ok((Join::Applied(Box::new(Applied { input, manager })), Outbox::new()))
            }
        }
    }

    /// A side that sends passes on at once; one that waits needs the other's message.
    fn ready(&self, ctx: &SessionContext, waiting: &PartySet) -> bool {
        match self {
            Join::Offered(_) | Join::Answered | Join::Sent(_) => true,
            Join::Awaiting(_) | Join::Applied(_) | Join::Blinded(_) => ctx.peers().minus(waiting).is_empty(),
        }
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        _: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        // A side that only passes on was to get no message in its round.
        if let (Join::Offered(_) | Join::Sent(_), Some(envelope)) = (&self, inbox.iter().next()) {
            return Err(Fault::evident(AbortCause::MalformedBody, vec![envelope.sender()]));
        }
        match self {
            Join::Offered(state) => Ok(Next::Round(Join::Awaiting(state), Outbox::new())),
            Join::Awaiting(state) => state.answer(ctx, &inbox),
            Join::Answered => Ok(Next::Done(JoinOutput::Answered)),
            Join::Applied(state) => state.combine(ctx, &inbox, rng),
            Join::Sent(state) => Ok(Next::Round(Join::Blinded(state), Outbox::new())),
            Join::Blinded(state) => state.finish(ctx, &inbox),
        }
    }

    /// Messages are not signed: one side cannot show others the faults that it finds.
    fn judge(_: &SessionContext, _: AbortCause, _: PartyId, _: &[Arc<Envelope>]) -> bool {
        false
    }
}

/// [J1] e1 = (1 + n)^{sk_m} rho^n, with the proof that it holds the logarithm of the issuer's point.
fn offer(ctx: &SessionContext, input: &ManagerInput, rng: &mut dyn CryptoRng) -> Calc<(Number, Vec<u8>)> {
    let key = input.issuing_key.scalar();
    let known = Zeroizing::new(key.expose().to_bytes());
    let mut rng = HedgedRng::new(ctx, tags::MANAGER_RANDOMNESS, known.as_slice(), rng);
    let modulus = &input.own.public().modulus;
    let randomness = modulus.random_unit(&mut rng)?;
    let mask = input.own.factors.nth_power(&randomness)?;
    let secret = Number::from_scalar(key.expose())?;
    let encrypted_key = modulus.embed(&secret)?.times_modulo(&mask, &modulus.square)?;
    let statement = KeyStatement {
        prover: input.own.public(),
        verifier: &input.peer,
        point: input.terms.group.issuer(),
        ciphertext: &encrypted_key,
    };
    let witness = KeyWitness { own: &input.own, secret: &secret, randomness: &randomness };
    let proof = KeyProof::prove(key_transcript(ctx), &statement, &witness, &mut rng)?;
    let mut writer = Writer::default();
    writer.bytes(&encrypted_key.to_bytes(2 * modulus.bytes)?);
    proof.encode(statement.prover, statement.verifier, &mut writer)?;
    Ok((encrypted_key, writer.finish()))
}

impl Applied {
    /// [J2] checks the encrypted key; e2 = e1^{r1} (1 + n)^{r1 sk_i + r2 q} r-bar^n, with its proof.
    fn combine(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Join>, Fault> {
        let Self { input, manager } = self;
        let body: EncryptedKey = read(ctx, inbox, manager)?;
        let encrypted_key = accept_key(ctx, &input, &body.bytes).map_err(|refusal| refusal.fault(manager))?;
        let known = Zeroizing::new(input.secret.expose().to_bytes());
        let mut rng = HedgedRng::new(ctx, tags::MEMBER_RANDOMNESS, known.as_slice(), rng);
        let (factor, body) = blind(ctx, &input, &encrypted_key, &mut rng).map_err(internal)?;
        let mut outbox = Outbox::new();
        outbox.private(manager, &Combined { bytes: body });
        let MemberInput { terms, secret, .. } = input;
        let sent = Sent { group: terms.group, secret, factor, manager };
        Ok(Next::Round(Join::Sent(Box::new(sent)), outbox))
    }
}

fn accept_key(ctx: &SessionContext, input: &MemberInput, body: &[u8]) -> Result<Number, Refusal> {
    let theirs = &input.issuer.parameters;
    let mut reader = Reader::new(body);
    let encrypted_key = read_below(&mut reader, &theirs.modulus.square, 2 * theirs.modulus.bytes)?;
    let proof = KeyProof::decode(&mut reader, theirs, input.own.public())?;
    reader.finish().map_err(|_| Refusal::Peer(AbortCause::MalformedBody))?;
    // [J2.1] a unit: its residue modulo n has an inverse.
    if !encrypted_key.modulo(&theirs.modulus.n)?.is_unit(&theirs.modulus.n)? {
        return Err(Refusal::Peer(AbortCause::InvalidScalar));
    }
    let statement = KeyStatement {
        prover: theirs,
        verifier: input.own.public(),
        point: input.terms.group.issuer(),
        ciphertext: &encrypted_key,
    };
    // [J2.2] the key that the group is under, and in range.
    if !proof.verify(key_transcript(ctx), &statement, &input.own)? {
        return Err(Refusal::Peer(AbortCause::WrongProof));
    }
    Ok(encrypted_key)
}

fn blind(
    ctx: &SessionContext,
    input: &MemberInput,
    encrypted_key: &Number,
    rng: &mut dyn CryptoRng,
) -> Calc<(Secret<Scalar>, Vec<u8>)> {
    let theirs = &input.issuer.parameters;
    // [J2.3] zero has probability below 2^-250, and ends the join without harm.
    let factor = Secret::new(Scalar::random(rng));
    let x = Number::from_scalar(factor.expose())?;
    let multiple = Number::random_bits(MULTIPLE_BITS, rng)?;
    let secret = Number::from_scalar(input.secret.expose())?;
    let summand = x.times(&secret)?.plus(&multiple.times(&Number::group_order()?)?)?;
    let randomness = theirs.modulus.random_unit(rng)?;
    let combined = combine_with(theirs, (encrypted_key, SCALAR_BITS), &x, &summand, &randomness)?;
    let statement = CombinationStatement {
        verifier: theirs,
        received: encrypted_key,
        combined: &combined,
        point: input.terms.attempt.member(),
    };
    let witness = CombinationWitness { factor: &x, summand: &summand, randomness: &randomness };
    let proof = CombinationProof::prove(combination_transcript(ctx), &statement, &witness, rng)?;
    let mut writer = Writer::default();
    writer.bytes(&combined.to_bytes(2 * theirs.modulus.bytes)?);
    proof.encode(theirs, &mut writer)?;
    Ok((factor, writer.finish()))
}

impl Offered {
    /// [J3] checks the combination, decrypts x = r1 (sk_m + sk_i) modulo q, answers g1^{1/x}.
    fn answer(self, ctx: &SessionContext, inbox: &Inbox) -> Result<Next<Join>, Fault> {
        let body: Combined = read(ctx, inbox, self.member)?;
        let point = self.masked(ctx, &body.bytes).map_err(|refusal| refusal.fault(self.member))?;
        let mut outbox = Outbox::new();
        outbox.private(self.member, &Masked { point });
        Ok(Next::Round(Join::Answered, outbox))
    }

    fn masked(&self, ctx: &SessionContext, body: &[u8]) -> Result<G1, Refusal> {
        let own = self.input.own.public();
        let mut reader = Reader::new(body);
        let combined = read_below(&mut reader, &own.modulus.square, 2 * own.modulus.bytes)?;
        let proof = CombinationProof::decode(&mut reader, own)?;
        reader.finish().map_err(|_| Refusal::Peer(AbortCause::MalformedBody))?;
        // [J3.1] a unit.
        if !combined.modulo(&own.modulus.n)?.is_unit(&own.modulus.n)? {
            return Err(Refusal::Peer(AbortCause::InvalidScalar));
        }
        let statement = CombinationStatement {
            verifier: own,
            received: &self.encrypted_key,
            combined: &combined,
            point: self.input.terms.attempt.member(),
        };
        // [J3.2] made of the encrypted key, in range, for the registered secret.
        if !proof.verify(combination_transcript(ctx), &statement, &self.input.own)? {
            return Err(Refusal::Peer(AbortCause::WrongProof));
        }
        // [J3.3] the proof admits a negative plaintext, which lies above n / 2.
        let plaintext = self.input.own.factors.decrypt(&combined)?;
        let x = if plaintext.times(&Number::from_u32(2)?)? > own.modulus.n {
            Scalar::zero().sub(&own.modulus.n.minus(&plaintext)?.to_scalar()?)
        } else {
            plaintext.to_scalar()?
        };
        // [J3.4] zero means that r1 is zero modulo q: there is no answer.
        if x.is_zero() {
            return Err(Refusal::Peer(AbortCause::InvalidScalar));
        }
        Ok(G1::mul_generator(&Secret::new(x.inverse())))
    }
}

impl Sent {
    /// [J4] unmasks the signature; [J5] accepts it only if it verifies by pairing.
    fn finish(self, ctx: &SessionContext, inbox: &Inbox) -> Result<Next<Join>, Fault> {
        let body: Masked = read(ctx, inbox, self.manager)?;
        let credential = body.point.times_secret(&self.factor);
        match complete(&self.group, self.secret, credential) {
            Ok(key) => Ok(Next::Done(JoinOutput::Joined(Box::new(key)))),
            // Everything that came before was proven, so the answer is what is wrong.
            Err(_) => Err(Fault::evident(AbortCause::WrongPartialSignature, vec![self.manager])),
        }
    }
}

/// Why a message is not accepted.
enum Refusal {
    Peer(AbortCause),
    Internal,
}

impl Refusal {
    fn fault(self, peer: PartyId) -> Fault {
        match self {
            Refusal::Peer(cause) => Fault::evident(cause, vec![peer]),
            Refusal::Internal => Fault::internal(),
        }
    }
}

impl From<Failure> for Refusal {
    fn from(_: Failure) -> Self {
        Refusal::Internal
    }
}

impl From<SetUpError> for Refusal {
    fn from(error: SetUpError) -> Self {
        match error {
            SetUpError::Internal => Refusal::Internal,
            SetUpError::Malformed
            | SetUpError::Modulus
            | SetUpError::Base
            | SetUpError::ModulusProof
            | SetUpError::BasesProof
            | SetUpError::FactorProof => Refusal::Peer(AbortCause::MalformedBody),
        }
    }
}

fn internal(_: Failure) -> Fault {
    Fault::internal()
}

fn read<B: Body>(ctx: &SessionContext, inbox: &Inbox, from: PartyId) -> Result<B, Fault> {
    let envelope = inbox.iter().find(|envelope| envelope.sender() == from).ok_or_else(Fault::internal)?;
    parse(ctx, envelope).map_err(|cause| Fault::evident(cause, vec![from]))
}

fn key_transcript(ctx: &SessionContext) -> Transcript {
    let mut transcript = ctx.transcript();
    transcript.append("tag", tags::KEY_PROOF.as_bytes());
    transcript
}

fn combination_transcript(ctx: &SessionContext) -> Transcript {
    let mut transcript = ctx.transcript();
    transcript.append("tag", tags::COMBINATION_PROOF.as_bytes());
    transcript
}
