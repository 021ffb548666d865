//! The messages of dealing, round by round.

use engine::wire::{Reader, Writer};
use engine::{
    AbortCause, Body, BroadcastBody, Delivery, MAX_PARTIES, PartyId, PrivateBody, RoundRule, Route, Secret,
    SessionContext,
};

use rand_core::CryptoRng;

use crate::hash_input::{HashInput, hash_input};

use super::companion::Companion;
use super::joint::DIGEST_BYTES;
use super::proof::{Proof, proof_bytes, read_scalar};
use super::scheme::{PointOf, ScalarOf, Scheme};
use super::tags;
use super::terms::{Operation, roles_of};
use crate::curve::{Curve, Polynomial, SCALAR_BYTES, encoding, evaluate_public};

/// Most points that an opening can have and still be looked at: twice as many as any honest one has, so that a vector
/// that is too long is blamed and not only dropped.
const MAX_POINTS: usize = 2 * MAX_PARTIES;

type MessageOf<S> = <<S as Scheme>::Companion as Companion>::Message;

hash_input! {
    /// The values that round 1 commits to.
    CommittedTo<'a> under tags::COMMITMENT {
        sender: PartyId,
        opening: &'a [u8],
    }
}

hash_input! {
    /// The prover knows the constant term of the polynomial with these points.
    ConstantTerm<'a> under tags::CONSTANT_TERM {
        prover: PartyId,
        points: &'a [u8],
    }
}

/// Round 1: commitment to the opening.
pub struct Commitment {
    pub(super) digest: [u8; DIGEST_BYTES],
}

/// Round 2: the opening of the commitment.
pub struct Opening<S: Scheme> {
    /// The sender's polynomial in the exponent, constant term first; `threshold` of them. In a refresh the first one is
    /// the identity and does not travel. Empty of a party that does not deal.
    pub(super) points: Vec<PointOf<S>>,
    /// All of them, one after another, as they are hashed; zeros for the identity.
    pub(super) encoded: Vec<u8>,
    /// Of the constant term. None in a refresh, and of a party that does not deal.
    pub(super) proof: Option<Proof<S::Curve>>,
    /// To the chain code and to everything that later rounds are bound to.
    pub(super) contribution: [u8; DIGEST_BYTES],
}

/// Round 3: from a dealer to a receiver, the sender's polynomial at the recipient's number; between receivers, what
/// begins the exchange of the pair.
pub struct Share<S: Scheme> {
    pub(super) value: Option<Secret<ScalarOf<S>>>,
    pub(super) companion: MessageOf<S>,
}

/// A round of the pairs' exchange: the `STEP`th after the shares.
pub struct Exchange<S: Scheme, const STEP: u8>(pub(super) MessageOf<S>);

/// The last round: the sender knows the signing share that the commitments say it has. Parties without a share send no
/// proof; the echo digest still shows that they saw the same broadcasts.
pub struct Confirmation<S: Scheme> {
    pub(super) proof: Option<Proof<S::Curve>>,
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

impl<S: Scheme> Body for Opening<S> {
    const ROUND: u8 = 2;

    fn encode(&self, writer: &mut Writer) {
        let bytes = S::Curve::POINT_BYTES;
        let unsent = if self.proof.is_none() { bytes } else { 0 };
        let travelling = self.encoded.get(unsent..).unwrap_or_default();
        writer.u8(u8::try_from(travelling.len() / bytes).unwrap_or(u8::MAX));
        writer.bytes(travelling);
        if let Some(proof) = &self.proof {
            proof.encode(writer);
        }
        writer.bytes(&self.contribution);
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause> {
        let bytes = S::Curve::POINT_BYTES;
        let constant = (Operation::of::<S>(ctx) == Operation::Refresh).then(S::Curve::identity);
        let deals = roles_of::<S>(ctx)?.deals(route.sender);
        let degree_and_one = if deals { ctx.threshold().get() } else { 0 };
        let travelling = degree_and_one - usize::from(constant.is_some());
        if usize::from(reader.u8()?) != travelling {
            return Err(AbortCause::WrongDegree);
        }
        let travelled = reader.bytes(travelling * bytes)?;
        let mut encoded = constant.iter().flat_map(encoding::<S::Curve>).collect::<Vec<u8>>();
        encoded.extend_from_slice(travelled);
        let decoded = travelled
            .chunks_exact(bytes)
            .map(|point| S::Curve::decode_point(point).ok_or(AbortCause::InvalidPoint));
        let points = constant.into_iter().map(Ok).chain(decoded).collect::<Result<_, _>>()?;
        let proof = if deals && constant.is_none() { Some(Proof::decode(reader)?) } else { None };
        Ok(Self { points, encoded, proof, contribution: *reader.array()? })
    }
}

impl<S: Scheme> BroadcastBody for Opening<S> {}

impl<S: Scheme> Opening<S> {
    /// The opening of a polynomial, with a proof of its constant term unless that is zero for everybody.
    pub(super) fn new(
        ctx: &SessionContext,
        sender: PartyId,
        polynomial: &Polynomial<S::Curve>,
        contribution: [u8; DIGEST_BYTES],
        rng: &mut dyn CryptoRng,
    ) -> Self {
        let points = polynomial.points();
        let encoded: Vec<u8> = points.iter().flat_map(encoding::<S::Curve>).collect();
        let provable = Operation::of::<S>(ctx) != Operation::Refresh;
        let constant = polynomial.constant().zip(encoded.get(..S::Curve::POINT_BYTES)).filter(|_| provable);
        let proof = constant.map(|(constant, point)| {
            let statement = ConstantTerm { prover: sender, points: &encoded };
            Proof::new(ctx, &statement, (constant.expose(), point), rng)
        });
        Self { points, encoded, proof, contribution }
    }

    /// The commitment of round 1 to this opening.
    pub(super) fn digest(&self, ctx: &SessionContext, sender: PartyId) -> [u8; DIGEST_BYTES] {
        let mut writer = Writer::default();
        self.encode(&mut writer);
        commitment_to(ctx, sender, &writer.finish())
    }

    /// Whether the sender knows its constant term.
    pub(super) fn proves_constant(&self, ctx: &SessionContext, sender: PartyId) -> bool {
        let constant = self.points.first().zip(self.encoded.get(..S::Curve::POINT_BYTES));
        match (&self.proof, constant) {
            (Some(proof), Some(constant)) => {
                proof.verifies(ctx, &ConstantTerm { prover: sender, points: &self.encoded }, constant)
            }
            // Zero is known to everybody; without polynomial there is nothing to know.
            (None, constant) => Operation::of::<S>(ctx) == Operation::Refresh || constant.is_none(),
            (Some(_), None) => false,
        }
    }
}

/// The commitment to an encoded opening.
fn commitment_to(ctx: &SessionContext, sender: PartyId, opening: &[u8]) -> [u8; DIGEST_BYTES] {
    CommittedTo { sender, opening }.digest(ctx)
}

/// For tests: the body of the commitment to any bytes as an opening.
#[cfg(feature = "forge")]
pub fn forged_commitment(ctx: &SessionContext, sender: PartyId, opening: &[u8]) -> Vec<u8> {
    commitment_to(ctx, sender, opening).to_vec()
}

impl<S: Scheme> Body for Share<S> {
    const ROUND: u8 = 3;

    fn encode(&self, writer: &mut Writer) {
        if let Some(value) = &self.value {
            writer.bytes(&S::Curve::encode_scalar(value.expose()));
        }
        S::Companion::encode(&self.companion, writer);
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause> {
        let roles = roles_of::<S>(ctx)?;
        let recipient = route.recipient.ok_or(AbortCause::MalformedBody)?;
        let mut value = None;
        if roles.deals(route.sender) && roles.receives(recipient) {
            value = Some(Secret::new(read_scalar::<S::Curve>(reader)?));
        }
        Ok(Self { value, companion: S::Companion::decode(0, reader, &roles, route)? })
    }
}

impl<S: Scheme> PrivateBody for Share<S> {}

/// Whether a dealt value is on the polynomial of these points.
pub(super) fn on_polynomial<S: Scheme>(
    value: &Secret<ScalarOf<S>>,
    points: &[PointOf<S>],
    recipient: PartyId,
) -> bool {
    S::Curve::mul_generator(value.expose()) == evaluate_public::<S::Curve>(points, recipient)
}

impl<S: Scheme, const STEP: u8> Body for Exchange<S, STEP> {
    const ROUND: u8 = Share::<S>::ROUND + STEP;

    fn encode(&self, writer: &mut Writer) {
        S::Companion::encode(&self.0, writer);
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause> {
        S::Companion::decode(STEP, reader, &roles_of::<S>(ctx)?, route).map(Self)
    }
}

impl<S: Scheme, const STEP: u8> PrivateBody for Exchange<S, STEP> {}

impl<S: Scheme> Body for Confirmation<S> {
    const ROUND: u8 = Share::<S>::ROUND + S::Companion::ROUNDS + 1;

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

impl<S: Scheme> BroadcastBody for Confirmation<S> {}

/// The rounds of a scheme: three, those of the exchange, and the last one.
pub(super) const fn rounds<S: Scheme>() -> &'static [RoundRule] {
    const { Rules::<S>::ALL.split_at(Confirmation::<S>::ROUND as usize).0 }
}

struct Rules<S: Scheme>(core::marker::PhantomData<S>);

impl<S: Scheme> Rules<S> {
    const CONFIRMATION: RoundRule =
        RoundRule { delivery: Delivery::Broadcast, max_body: proof_bytes::<S::Curve>() };
    const ALL: &'static [RoundRule] = &[
        RoundRule { delivery: Delivery::Broadcast, max_body: DIGEST_BYTES },
        RoundRule {
            delivery: Delivery::Broadcast,
            max_body: 1 + MAX_POINTS * S::Curve::POINT_BYTES + proof_bytes::<S::Curve>() + DIGEST_BYTES,
        },
        RoundRule { delivery: Delivery::Private, max_body: SCALAR_BYTES + S::Companion::MAX_MESSAGE[0] },
        Self::exchange(1),
        Self::exchange(2),
        Self::CONFIRMATION,
    ];

    const fn exchange(step: u8) -> RoundRule {
        if step > S::Companion::ROUNDS {
            Self::CONFIRMATION
        } else {
            let [_, first, second] = S::Companion::MAX_MESSAGE;
            let max_body = if step == 1 { first } else { second };
            RoundRule { delivery: Delivery::Private, max_body }
        }
    }
}
