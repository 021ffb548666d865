//! The messages of a join. Every party sends one to every peer in every round, empty where nothing is due.

use core::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use engine::wire::{Reader, Writer};
use engine::{
    AbortCause, Body, Delivery, Envelope, Fault, Inbox, MAX_PARTIES, Outbox, PartyId, PrivateBody, RoundRule,
    Route, Secret, SessionContext, parse,
};
use primitives::bls12_381::{G1, G1_COMPRESSED_BYTES, SCALAR_BYTES, Scalar};
use primitives::ot::{self, CORRECTION_BYTES, REQUEST_BYTES, RESPONSE_BYTES};

use crate::multiply::{MULTIPLY_BYTES, SAMPLE_BYTES};

/// Bytes of the seed of a pair, and of each half of it.
pub(super) const SEED_BYTES: usize = 32;
const LENGTH_BYTES: usize = 4;

/// The rounds of a join.
pub(super) const ROUNDS: &[RoundRule] = &[
    private(SEED_BYTES + LENGTH_BYTES + REQUEST_BYTES),
    private(LENGTH_BYTES + RESPONSE_BYTES),
    private(LENGTH_BYTES + CORRECTION_BYTES),
    private(SAMPLE_BYTES),
    private((MAX_PARTIES + 1) * G1_COMPRESSED_BYTES + SCALAR_BYTES + MULTIPLY_BYTES),
    private(1 + G1_COMPRESSED_BYTES + SCALAR_BYTES),
];

const fn private(max_body: usize) -> RoundRule {
    RoundRule { delivery: Delivery::Private, max_body }
}

/// The body that goes to each peer, or came from each.
pub(super) type ByPeer<B> = BTreeMap<PartyId, B>;

/// Round 1: half of the pair's seed; from the initiator the request for transfers.
pub(super) struct Request {
    pub(super) half: Secret<[u8; SEED_BYTES]>,
    pub(super) transfer: Asked,
}

/// The request for transfers.
pub(super) enum Asked {
    /// One that goes out, or nothing.
    Bytes(Vec<u8>),
    /// One that came, decoded once: its points cost as much as a tenth of the answer.
    Points(Box<ot::Request>),
}

/// Round 2: from the other party of the pair its response.
pub(super) struct Response {
    pub(super) transfer: Vec<u8>,
}

/// Round 3: from the initiator the corrections.
pub(super) struct Correction {
    pub(super) transfer: Vec<u8>,
}

/// Round 4: Bob's message of the pair's multiplication.
pub(super) struct Sample {
    pub(super) message: Box<[u8; SAMPLE_BYTES]>,
}

/// Round 5: Alice's message, and what lets the recipient check it and remove its own factor.
pub(super) struct Multiply {
    /// The points of the sender's shares of zero, one for each of its peers in ascending order.
    pub(super) zero_points: Vec<G1>,
    /// g1 to Alice's share of the product.
    pub(super) product_point: G1,
    pub(super) mask_minus_factor: Scalar,
    pub(super) message: Box<[u8; MULTIPLY_BYTES]>,
}

/// Round 6: from an issuer to the member what it divides; to others nothing.
pub(super) struct Answer {
    pub(super) parts: Option<Parts>,
}

/// An issuer's part of the answer.
pub(super) struct Parts {
    /// Phi_j = g1^{phi_j}.
    pub(super) mask_point: G1,
    /// v_j, a share of (sk_m + sk_i) phi.
    pub(super) masked_key: Secret<Scalar>,
}

/// Reads the transfer's part of a message: `length` bytes if it is the sender's turn, and none if not.
fn read_transfer(reader: &mut Reader<'_>, due: bool, length: usize) -> Result<Vec<u8>, AbortCause> {
    let bytes = reader.sized(length)?;
    let expected = if due { length } else { 0 };
    if bytes.len() == expected { Ok(bytes.to_vec()) } else { Err(AbortCause::MalformedBody) }
}

/// Whether `one` is the initiator of its pair with `other`. To answer costs more than to ask, so each party asks those
/// that follow it in the circle of all parties, up to half of them, and answers the rest.
pub(super) fn initiates(ctx: &SessionContext, one: PartyId, other: PartyId) -> bool {
    let count = ctx.parties().len();
    let place = |of: PartyId| ctx.parties().iter().take_while(|party| *party < of).count();
    let ahead = (count + place(other) - place(one)) % count.max(1);
    match (2 * ahead).cmp(&count) {
        Ordering::Less => true,
        Ordering::Equal => one < other,
        Ordering::Greater => false,
    }
}

/// Whether the message goes from the initiator of its pair to the other.
fn outward(ctx: &SessionContext, route: Route) -> Result<bool, AbortCause> {
    let recipient = route.recipient.ok_or(AbortCause::MalformedBody)?;
    Ok(initiates(ctx, route.sender, recipient))
}

fn read_point(reader: &mut Reader<'_>) -> Result<G1, AbortCause> {
    G1::from_compressed(reader.array()?).ok_or(AbortCause::InvalidPoint)
}

fn read_scalar(reader: &mut Reader<'_>) -> Result<Scalar, AbortCause> {
    Scalar::from_bytes(reader.array()?).ok_or(AbortCause::InvalidScalar)
}

impl Body for Request {
    const ROUND: u8 = 1;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(self.half.expose());
        match &self.transfer {
            Asked::Bytes(bytes) => writer.sized(bytes),
            Asked::Points(request) => writer.sized(request.as_bytes()),
        }
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause> {
        let half = Secret::new(*reader.array()?);
        let transfer = read_transfer(reader, outward(ctx, route)?, REQUEST_BYTES)?;
        let transfer = match transfer.as_slice().try_into() {
            Ok(points) => {
                Asked::Points(Box::new(ot::Request::decode(points).ok_or(AbortCause::InvalidPoint)?))
            }
            Err(_) => Asked::Bytes(transfer),
        };
        Ok(Self { half, transfer })
    }
}

impl PrivateBody for Request {}

impl Body for Response {
    const ROUND: u8 = 2;

    fn encode(&self, writer: &mut Writer) {
        writer.sized(&self.transfer);
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause> {
        let transfer = read_transfer(reader, !outward(ctx, route)?, RESPONSE_BYTES)?;
        if !transfer.is_empty() && !ot::is_response(&transfer) {
            return Err(AbortCause::InvalidPoint);
        }
        Ok(Self { transfer })
    }
}

impl PrivateBody for Response {}

impl Body for Correction {
    const ROUND: u8 = 3;

    fn encode(&self, writer: &mut Writer) {
        writer.sized(&self.transfer);
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause> {
        Ok(Self { transfer: read_transfer(reader, outward(ctx, route)?, CORRECTION_BYTES)? })
    }
}

impl PrivateBody for Correction {}

impl Body for Sample {
    const ROUND: u8 = 4;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(self.message.as_slice());
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        Ok(Self { message: Box::new(*reader.array()?) })
    }
}

impl PrivateBody for Sample {}

impl Body for Multiply {
    const ROUND: u8 = 5;

    fn encode(&self, writer: &mut Writer) {
        for point in &self.zero_points {
            writer.bytes(&point.to_compressed());
        }
        writer.bytes(&self.product_point.to_compressed());
        writer.bytes(&self.mask_minus_factor.to_bytes());
        writer.bytes(self.message.as_slice());
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        let peers = ctx.parties().len().saturating_sub(1);
        Ok(Self {
            zero_points: (0..peers).map(|_| read_point(reader)).collect::<Result<_, _>>()?,
            product_point: read_point(reader)?,
            mask_minus_factor: read_scalar(reader)?,
            message: Box::new(*reader.array()?),
        })
    }
}

impl PrivateBody for Multiply {}

impl Body for Answer {
    const ROUND: u8 = 6;

    fn encode(&self, writer: &mut Writer) {
        writer.u8(u8::from(self.parts.is_some()));
        if let Some(Parts { mask_point, masked_key }) = &self.parts {
            writer.bytes(&mask_point.to_compressed());
            writer.bytes(zeroize::Zeroizing::new(masked_key.expose().to_bytes()).as_slice());
        }
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        let parts = match reader.u8()? {
            0 => None,
            1 => {
                Some(Parts { mask_point: read_point(reader)?, masked_key: Secret::new(read_scalar(reader)?) })
            }
            _ => return Err(AbortCause::MalformedBody),
        };
        Ok(Self { parts })
    }
}

impl PrivateBody for Answer {}

/// To each peer its body.
pub(super) fn post<B: PrivateBody>(bodies: ByPeer<B>) -> Outbox {
    let mut outbox = Outbox::new();
    for (peer, body) in bodies {
        outbox.private(peer, &body);
    }
    outbox
}

/// The body that came from each peer. An envelope shows the faults of its bytes to everybody.
pub(super) fn read_each<B: Body>(ctx: &SessionContext, inbox: &Inbox) -> Result<ByPeer<B>, Fault> {
    inbox.iter().map(|envelope| Ok((envelope.sender(), read(ctx, envelope)?))).collect()
}

fn read<B: Body>(ctx: &SessionContext, envelope: &Arc<Envelope>) -> Result<B, Fault> {
    parse(ctx, envelope).map_err(|cause| Fault::proven(cause, envelope.sender(), vec![Arc::clone(envelope)]))
}

/// The fault of the bytes of a body, as everybody sees it.
pub(super) fn body_fault(ctx: &SessionContext, envelope: &Envelope) -> Option<AbortCause> {
    match envelope.round() {
        1 => parse::<Request>(ctx, envelope).err(),
        2 => parse::<Response>(ctx, envelope).err(),
        3 => parse::<Correction>(ctx, envelope).err(),
        4 => parse::<Sample>(ctx, envelope).err(),
        5 => parse::<Multiply>(ctx, envelope).err(),
        6 => parse::<Answer>(ctx, envelope).err(),
        _ => None,
    }
}
