//! The messages of the pairwise rounds, and how they are posted and read.

use std::collections::BTreeMap;

use engine::session::parse;
use engine::wire::{Reader, Writer};
use engine::{AbortCause, Body, Envelope, Fault, Inbox, Outbox, PartyId, PrivateBody, Route, SessionContext};
use primitives::secp256k1::{POINT_BYTES, Point, SCALAR_BYTES, Scalar, encode_points, encode_scalar};
use primitives::vole::{MULTIPLY_BYTES, PRODUCTS, SAMPLE_BYTES};

use super::binding::DIGEST_BYTES;
use super::payload::PresignPayload;
use crate::ecdsa::read::{read_point, read_scalar};

/// Length of a round 1 body, in bytes.
pub(in crate::ecdsa) const COMMIT_BYTES: usize = DIGEST_BYTES + SAMPLE_BYTES;
/// Length of a round 2 body, in bytes.
pub(in crate::ecdsa) const MULTIPLY_BODY_BYTES: usize =
    2 * DIGEST_BYTES + 4 * POINT_BYTES + SCALAR_BYTES + MULTIPLY_BYTES;

/// Bodies of the presignatures that a session makes, in order.
struct All<B>(Vec<B>);

impl<B: Body> Body for All<B> {
    const ROUND: u8 = B::ROUND;

    fn encode(&self, writer: &mut Writer) {
        self.0.iter().for_each(|body| body.encode(writer));
    }

    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, route: Route) -> Result<Self, AbortCause> {
        let PresignPayload { count, .. } = PresignPayload::decode(ctx.payload())?;
        (0..count).map(|_| B::decode(reader, ctx, route)).collect::<Result<_, AbortCause>>().map(Self)
    }
}

impl<B: PrivateBody> PrivateBody for All<B> {}

/// The body that goes to each peer, or came from each.
pub(in crate::ecdsa) type ByPeer<B> = BTreeMap<PartyId, B>;

/// Round 1: commitment to the nonce point, the same to all, and Bob's message of the pair's multiplication.
pub struct Commit {
    pub(super) commitment: [u8; DIGEST_BYTES],
    pub(super) sample: Box<[u8; SAMPLE_BYTES]>,
}

/// Round 2: the opening, the key point, Alice's message, and what lets the recipient check and remove its factor.
pub struct Multiply {
    /// Hash of all commitments as the sender saw them.
    pub(super) commitments: [u8; DIGEST_BYTES],
    pub(super) salt: [u8; DIGEST_BYTES],
    pub(super) nonce_point: Point,
    pub(super) key_point: Point,
    pub(super) product_points: [Point; PRODUCTS],
    pub(super) mask_minus_factor: Scalar,
    pub(super) message: Box<[u8; MULTIPLY_BYTES]>,
}

impl Body for Commit {
    const ROUND: u8 = 1;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.commitment);
        writer.bytes(self.sample.as_slice());
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        Ok(Self { commitment: *reader.array()?, sample: Box::new(*reader.array()?) })
    }
}

impl PrivateBody for Commit {}

impl Body for Multiply {
    const ROUND: u8 = 2;

    fn encode(&self, writer: &mut Writer) {
        let [first, second] = self.product_points;
        writer.bytes(&self.commitments);
        writer.bytes(&self.salt);
        for point in encode_points(&[self.nonce_point, self.key_point, first, second]) {
            writer.bytes(&point);
        }
        writer.bytes(&encode_scalar(&self.mask_minus_factor));
        writer.bytes(self.message.as_slice());
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        Ok(Self {
            commitments: *reader.array()?,
            salt: *reader.array()?,
            nonce_point: read_point(reader)?,
            key_point: read_point(reader)?,
            product_points: [read_point(reader)?, read_point(reader)?],
            mask_minus_factor: read_scalar(reader)?,
            message: Box::new(*reader.array()?),
        })
    }
}

impl PrivateBody for Multiply {}

/// To each peer its bodies of all places, in one envelope.
pub(super) fn post_all<B: PrivateBody>(places: Vec<ByPeer<B>>) -> Outbox {
    let mut by_peer: ByPeer<Vec<B>> = BTreeMap::new();
    for (peer, body) in places.into_iter().flatten() {
        by_peer.entry(peer).or_default().push(body);
    }
    let mut outbox = Outbox::new();
    for (peer, bodies) in by_peer {
        outbox.private(peer, &All(bodies));
    }
    outbox
}

/// The bodies that came, by place.
pub(super) fn read_all<B: Body>(
    ctx: &SessionContext,
    inbox: &Inbox,
    count: usize,
) -> Result<Vec<ByPeer<B>>, Fault> {
    let mut places: Vec<ByPeer<B>> = (0..count).map(|_| BTreeMap::new()).collect();
    for envelope in inbox.iter() {
        let All(bodies) = read::<All<B>>(ctx, envelope)?;
        for (place, body) in places.iter_mut().zip(bodies) {
            place.insert(envelope.sender(), body);
        }
    }
    Ok(places)
}

/// To each peer its body, of a session that makes one.
pub(in crate::ecdsa) fn post<B: PrivateBody>(bodies: ByPeer<B>) -> Outbox {
    let mut outbox = Outbox::new();
    for (peer, body) in bodies {
        outbox.private(peer, &body);
    }
    outbox
}

/// The body that came from each peer, in a session that makes one.
pub(in crate::ecdsa) fn read_each<B: Body>(ctx: &SessionContext, inbox: &Inbox) -> Result<ByPeer<B>, Fault> {
    inbox.iter().map(|envelope| Ok((envelope.sender(), read(ctx, envelope)?))).collect()
}

/// Decodes a body. Nobody else can check who sent it, so the blame stays with this party.
pub(in crate::ecdsa) fn read<B: Body>(ctx: &SessionContext, envelope: &Envelope) -> Result<B, Fault> {
    parse(ctx, envelope).map_err(|cause| Fault::evident(cause, vec![envelope.sender()]))
}
