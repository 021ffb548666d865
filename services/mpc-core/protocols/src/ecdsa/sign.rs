//! Signing: three rounds from a key share, or one from a presignature. Everybody that gets the last round, an observer
//! too, has the signature.
//!
//! Specification: `docs/protocols/ecdsa.md`; steps are cited as [O1].

use std::sync::Arc;

use engine::session::History;
use engine::wire::{Malformed, Reader, Writer};
use engine::{
    AbortCause, Body, BroadcastBody, Delivery, Envelope, Fault, Inbox, Next, Outbox, PartyId, PartySet,
    Protocol, ProtocolId, RoundRule, Route, SessionContext, SetupError,
};
use primitives::declassify::publish;
use primitives::secp256k1::{POINT_BYTES, Point, SCALAR_BYTES, Scalar, encode_point, encode_scalar, reduce};
use rand_core::CryptoRng;

use super::key::{KeyPublic, KeyShare};
use super::presign::{
    COMMIT_BYTES, Committed, MULTIPLY_BODY_BYTES, Material, Multiplied, check_key, pairwise_ready, post,
    read, read_each,
};
use super::presignature::{PRESIGNATURE_ID_BYTES, PartialScalars, Presignature, nonce_shift, shifted};
use super::read::{read_point, read_scalar};
use super::signature::{DIGEST_BYTES, Signature};
use crate::bip32::DerivationPath;
use crate::dealing::Public;

/// The digest that is signed, and the child key that signs it. Their encoding is the payload of a signing session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignPayload {
    /// The digest.
    pub digest: [u8; DIGEST_BYTES],
    /// The child key.
    pub path: DerivationPath,
    /// In sessions that use one up: the presignature.
    pub presignature: Option<[u8; PRESIGNATURE_ID_BYTES]>,
}

impl SignPayload {
    /// The digest, the path, then the presignature's id if there is one.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.bytes(&self.digest);
        self.path.encode(&mut writer);
        if let Some(id) = &self.presignature {
            writer.bytes(id);
        }
        writer.finish()
    }

    fn decode(payload: &[u8], presigned: bool) -> Result<Self, SetupError> {
        let read = |reader: &mut Reader<'_>| {
            let digest = *reader.array()?;
            let path = DerivationPath::decode(reader)?;
            let presignature = if presigned { Some(*reader.array()?) } else { None };
            core::mem::replace(reader, Reader::new(&[])).finish()?;
            Ok(Self { digest, path, presignature })
        };
        read(&mut Reader::new(payload)).map_err(|Malformed| SetupError::PayloadInvalid)
    }
}

/// The input that signing starts from: at a party `T`, at an observer the key's public data.
pub enum SignInput<T> {
    /// A party, with what it uses up.
    Party(Box<T>),
    /// An observer, who combines but does not contribute.
    Observer(Box<KeyPublic>),
}

/// The last round: nonce point before any shift, and the sender's two scalars.
pub struct Partial<const ROUND: u8> {
    nonce_point: Point,
    scalars: PartialScalars,
}

const PARTIAL_BYTES: usize = POINT_BYTES + 2 * SCALAR_BYTES;

impl<const ROUND: u8> Body for Partial<ROUND> {
    const ROUND: u8 = ROUND;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&encode_point(&self.nonce_point));
        writer.bytes(&encode_scalar(&self.scalars.masked_nonce));
        writer.bytes(&encode_scalar(&self.scalars.masked_signature));
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        Ok(Self {
            nonce_point: read_point(reader)?,
            scalars: PartialScalars {
                masked_nonce: read_scalar(reader)?,
                masked_signature: read_scalar(reader)?,
            },
        })
    }
}

impl<const ROUND: u8> BroadcastBody for Partial<ROUND> {}

/// The subject of the last round, and the contribution of this party to it.
pub struct Combining {
    child_key: Point,
    digest: [u8; DIGEST_BYTES],
    /// Whether the nonce is shifted: always with a presignature, whose nonce point was known before the digest.
    shift: bool,
    own: Option<(Point, PartialScalars)>,
}

impl Combining {
    /// [O1] the own partial signature.
    fn contribute<const ROUND: u8>(&mut self, ctx: &SessionContext, presignature: Presignature) -> Outbox {
        let base = presignature.nonce_point;
        let shift = self.shift_of(ctx, &base);
        let (_, scalars) = presignature.sign(&reduce(&self.digest), &shift);
        publish(&base); // both are posted
        publish(&scalars);
        let mut outbox = Outbox::new();
        let body = Partial::<ROUND> { nonce_point: base, scalars };
        outbox.broadcast(&body);
        self.own = Some((base, body.scalars));
        outbox
    }

    fn shift_of(&self, ctx: &SessionContext, nonce_point: &Point) -> Scalar {
        if self.shift { nonce_shift(ctx, &self.child_key, nonce_point, &self.digest) } else { Scalar::ZERO }
    }

    /// [O2] sum the scalars of all signers, divide, normalise, verify.
    fn combine<const ROUND: u8>(self, ctx: &SessionContext, inbox: &Inbox) -> Result<Signature, Fault> {
        let mut partials = Vec::with_capacity(ctx.parties().len());
        for envelope in inbox.iter() {
            let body: Partial<ROUND> = read(ctx, envelope)?;
            partials.push((envelope.sender(), body));
        }
        let shift_of = |point: &Point| self.shift_of(ctx, point);
        let own_point = self.own.as_ref().map(|(point, _)| *point);
        let nonce_point = own_point
            .or_else(|| partials.first().map(|(_, body)| body.nonce_point))
            .ok_or_else(Fault::internal)?;
        // All signers have agreed on the nonce point by now: one that shows another deviates. An observer has none to
        // compare with.
        let other: Vec<PartyId> = partials
            .iter()
            .filter(|(_, body)| body.nonce_point != nonce_point)
            .map(|(sender, _)| *sender)
            .collect();
        if !other.is_empty() {
            let named = if own_point.is_some() { other } else { Vec::new() };
            return Err(Fault::evident(AbortCause::InvalidSignature, named));
        }
        let nonce_point = shifted(&nonce_point, &shift_of(&nonce_point));
        let own = self.own.map(|(_, scalars)| scalars);
        let (mut masked_nonce, mut masked_signature) = (Scalar::ZERO, Scalar::ZERO);
        for scalars in partials.into_iter().map(|(_, body)| body.scalars).chain(own) {
            masked_nonce += &scalars.masked_nonce;
            masked_signature += &scalars.masked_signature;
        }
        let s = masked_nonce.invert().into_option().map(|inverse| masked_signature * inverse);
        s.and_then(|s| Signature::from_parts(&nonce_point, s, &self.child_key, &self.digest))
            .ok_or_else(|| Fault::nobody(AbortCause::InvalidSignature))
    }
}

/// Signs with a key share, in three rounds.
pub enum Signing {
    /// Waiting for commitments.
    Committed(Box<(Committed, Combining)>),
    /// Waiting for the multiplications.
    Multiplied(Box<(Multiplied, Combining)>),
    /// An observer, which has no part in the pairwise rounds and passes over them.
    Observing(Combining, u8),
    /// Waiting for the partial signatures.
    Combining(Combining),
}

impl Protocol for Signing {
    const ID: ProtocolId = ProtocolId { number: 4, name: "ecdsa/sign/2" };
    const SIGNED: bool = false;
    const ROUNDS: &'static [RoundRule] = &[
        RoundRule { delivery: Delivery::Private, max_body: COMMIT_BYTES },
        RoundRule { delivery: Delivery::Private, max_body: MULTIPLY_BODY_BYTES },
        RoundRule { delivery: Delivery::Broadcast, max_body: PARTIAL_BYTES },
    ];
    /// The payload of the session is the encoding of a [`SignPayload`] without presignature.
    type Input = SignInput<KeyShare>;
    type Output = Signature;

    fn held_alike(input: &Self::Input) -> Option<[u8; 32]> {
        Some(match input {
            SignInput::Party(share) => share.public.digest(),
            SignInput::Observer(public) => public.digest(),
        })
    }

    fn start(
        ctx: &SessionContext,
        input: Self::Input,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let payload = SignPayload::decode(ctx.payload(), false)?;
        match input {
            SignInput::Party(share) => {
                let combining = combining(ctx, share.public(), &payload, false)?;
                let material = Arc::new(Material::new(ctx, *share, payload.path)?);
                let (state, bodies) = Committed::new(ctx, material, 0, rng);
                Ok((Self::Committed(Box::new((state, combining))), post(bodies)))
            }
            SignInput::Observer(_) if ctx.me().is_some() => Err(SetupError::ShareMissing),
            SignInput::Observer(public) => {
                Ok((Self::Observing(combining(ctx, &public, &payload, false)?, 1), Outbox::new()))
            }
        }
    }

    fn ready(&self, ctx: &SessionContext, waiting: &PartySet) -> bool {
        match self {
            Self::Committed(_) | Self::Multiplied(_) | Self::Observing(..) => pairwise_ready(ctx, waiting),
            Self::Combining(_) => ctx.peers().minus(waiting).is_empty(),
        }
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        _: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        match self {
            Self::Committed(state) => {
                let (state, combining) = *state;
                let (state, bodies) = state.advance(ctx, &read_each(ctx, &inbox)?, rng)?;
                Ok(Next::Round(Self::Multiplied(Box::new((state, combining))), post(bodies)))
            }
            Self::Multiplied(state) => {
                let (state, mut combining) = *state;
                let presignature = state.finish(ctx, &read_each(ctx, &inbox)?)?;
                let outbox = combining.contribute::<3>(ctx, presignature);
                Ok(Next::Round(Self::Combining(combining), outbox))
            }
            Self::Observing(combining, 1) => Ok(Next::Round(Self::Observing(combining, 2), Outbox::new())),
            Self::Observing(combining, _) => Ok(Next::Round(Self::Combining(combining), Outbox::new())),
            Self::Combining(combining) => combining.combine::<3>(ctx, &inbox).map(Next::Done),
        }
    }

    fn judge(_: &SessionContext, _: AbortCause, _: PartyId, _: &[Arc<Envelope>]) -> bool {
        false
    }
}

/// Signs with a presignature, in one round.
pub struct PresignedSigning(Combining);

impl Protocol for PresignedSigning {
    const ID: ProtocolId = ProtocolId { number: 6, name: "ecdsa/sign-presigned/2" };
    const SIGNED: bool = false;
    const ROUNDS: &'static [RoundRule] =
        &[RoundRule { delivery: Delivery::Broadcast, max_body: PARTIAL_BYTES }];
    /// The payload of the session is the encoding of a [`SignPayload`] with presignature.
    type Input = SignInput<Presignature>;
    type Output = Signature;

    fn held_alike(input: &Self::Input) -> Option<[u8; 32]> {
        Some(match input {
            SignInput::Party(presignature) => presignature.key_digest,
            SignInput::Observer(public) => public.digest(),
        })
    }

    fn start(
        ctx: &SessionContext,
        input: Self::Input,
        _: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let payload = SignPayload::decode(ctx.payload(), true)?;
        match input {
            SignInput::Party(presignature) => {
                let presignature = *presignature;
                let bound_to_this = Some(presignature.id) == payload.presignature
                    && Some(presignature.party) == ctx.me()
                    && &presignature.signers == ctx.parties()
                    && presignature.key_id == ctx.key_id()
                    && presignature.epoch == ctx.epoch()
                    && presignature.path == payload.path;
                if !bound_to_this {
                    return Err(SetupError::ShareMismatch);
                }
                let child_key = presignature.child_key;
                let mut combining = Combining { child_key, digest: payload.digest, shift: true, own: None };
                let outbox = combining.contribute::<1>(ctx, presignature);
                Ok((Self(combining), outbox))
            }
            SignInput::Observer(_) if ctx.me().is_some() => Err(SetupError::ShareMissing),
            SignInput::Observer(public) => {
                Ok((Self(combining(ctx, &public, &payload, true)?), Outbox::new()))
            }
        }
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        _: &History<'_>,
        _: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        self.0.combine::<1>(ctx, &inbox).map(Next::Done)
    }

    fn judge(_: &SessionContext, _: AbortCause, _: PartyId, _: &[Arc<Envelope>]) -> bool {
        false
    }
}

fn combining(
    ctx: &SessionContext,
    public: &KeyPublic,
    payload: &SignPayload,
    shift: bool,
) -> Result<Combining, SetupError> {
    check_key(ctx, public)?;
    let child_key = public.derive(&payload.path).ok_or(SetupError::PayloadInvalid)?.public_key;
    Ok(Combining { child_key, digest: payload.digest, shift, own: None })
}
