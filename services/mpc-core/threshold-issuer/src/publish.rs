//! Issuers publish a group: pk_m = g2^{sk_m}, and the proof that they know sk_m, for what the openers have signed.
//! Steps are cited as [D3] (`docs/protocols/wbb.md`).
//!
//! Three rounds: commitments to nonces, openings with each issuer's part of pk_m, responses. The proof is Schnorr's, as
//! one manager makes it; commitments keep an issuer from choosing its nonce after it has seen the others'. Nobody who
//! checks a group sees how many hands its key is in.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::wire::{Reader, Writer};
use engine::{
    AbortCause, Body, BroadcastBody, Delivery, Envelope, Fault, History, Inbox, Next, Outbox, PartyId,
    Protocol, ProtocolId, RoundRule, Route, Secret, SessionContext, SetupError, parse,
};
use group_signatures::{AttestedKey, GroupDraft, GroupPublic};
use primitives::bls12_381::{
    G1, G1_COMPRESSED_BYTES, G2, G2_COMPRESSED_BYTES, SCALAR_BYTES, Scalar, pairings_are_equal,
};
use primitives::declassify::publish;
use protocols::HedgedRng;
use protocols::dealing::Public;
use rand_core::{CryptoRng, Rng};
use zeroize::Zeroizing;

use crate::key::{IssuerShare, Issuers, key_id};
use crate::tags;

const DIGEST_BYTES: usize = 32;
const OPENING_BYTES: usize = 2 * DIGEST_BYTES + G1_COMPRESSED_BYTES + G2_COMPRESSED_BYTES;
const RESPONSE_BYTES: usize = DIGEST_BYTES + SCALAR_BYTES;

/// The input of an issuer.
pub struct PublishInput {
    /// Its share.
    pub share: Arc<IssuerShare>,
    /// The openers' key, signed for the group and epoch that the issuing key is named after.
    pub opener: AttestedKey,
}

/// Round 1.
struct Commitment {
    digest: [u8; DIGEST_BYTES],
}

/// Round 2.
struct Opening {
    /// Hash of all commitments as the sender saw them.
    commitments: [u8; DIGEST_BYTES],
    salt: [u8; DIGEST_BYTES],
    nonce_point: G1,
    /// g2 to the sender's weighted share.
    part: G2,
}

/// Round 3.
struct Response {
    /// Hash of all openings as the sender saw them.
    openings: [u8; DIGEST_BYTES],
    value: Scalar,
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
        writer.bytes(&self.commitments);
        writer.bytes(&self.salt);
        writer.bytes(&self.nonce_point.to_compressed());
        writer.bytes(&self.part.to_compressed());
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        Ok(Self {
            commitments: *reader.array()?,
            salt: *reader.array()?,
            nonce_point: G1::from_compressed(reader.array()?).ok_or(AbortCause::InvalidPoint)?,
            part: G2::from_compressed(reader.array()?).ok_or(AbortCause::InvalidPoint)?,
        })
    }
}

impl BroadcastBody for Opening {}

impl Body for Response {
    const ROUND: u8 = 3;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.openings);
        writer.bytes(&self.value.to_bytes());
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        Ok(Self {
            openings: *reader.array()?,
            value: Scalar::from_bytes(reader.array()?).ok_or(AbortCause::InvalidScalar)?,
        })
    }
}

impl BroadcastBody for Response {}

/// An issuer's run of it.
pub enum Publish {
    /// Waiting for commitments.
    Committed(Box<Committed>),
    /// Waiting for openings.
    Opened(Box<Opened>),
    /// Waiting for responses.
    Responded(Box<Responded>),
}

/// State of round 1.
pub struct Committed {
    me: PartyId,
    opener: AttestedKey,
    /// Each issuer of the session with g1 to its weighted share.
    points: BTreeMap<PartyId, G1>,
    /// The own weighted share.
    share: Secret<Scalar>,
    nonce: Secret<Scalar>,
    opening: Opening,
    commitment: [u8; DIGEST_BYTES],
}

/// State of round 2.
pub struct Opened {
    of: Committed,
    commitments: BTreeMap<PartyId, [u8; DIGEST_BYTES]>,
}

/// State of round 3.
pub struct Responded {
    draft: GroupDraft,
    points: BTreeMap<PartyId, G1>,
    nonce_points: BTreeMap<PartyId, G1>,
    openings: [u8; DIGEST_BYTES],
    challenge: Scalar,
    /// The sum of responses, so far the own one.
    response: Scalar,
}

impl Protocol for Publish {
    const ID: ProtocolId = ProtocolId { number: 68, name: "wbb/issuing-publish/1" };
    const SIGNED: bool = false;
    const ROUNDS: &'static [RoundRule] = &[
        RoundRule { delivery: Delivery::Broadcast, max_body: DIGEST_BYTES },
        RoundRule { delivery: Delivery::Broadcast, max_body: OPENING_BYTES },
        RoundRule { delivery: Delivery::Broadcast, max_body: RESPONSE_BYTES },
    ];
    type Input = PublishInput;
    type Output = GroupPublic;

    fn held_alike(input: &PublishInput) -> Option<[u8; 32]> {
        Some(input.share.issuers().hash())
    }

    fn start(
        ctx: &SessionContext,
        input: PublishInput,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let me = ctx.me().ok_or(SetupError::ObserverNotAllowed)?;
        let PublishInput { share, opener } = input;
        let issuers = share.issuers();
        let same = ctx.key_id() == issuers.key_id()
            && ctx.epoch() == issuers.epoch()
            && ctx.threshold() == issuers.threshold();
        // The key was made for this group and epoch, and is the key of no other.
        if share.party() != me || !same || key_id(&opener) != ctx.key_id() {
            return Err(SetupError::ShareMismatch);
        }
        if !ctx.payload().is_empty() {
            return Err(SetupError::PayloadLength);
        }
        let (points, own) = weighted(ctx, issuers, &share, me)?;
        let state = Committed::new(ctx, me, opener, points, own, rng);
        let mut outbox = Outbox::new();
        outbox.broadcast(&Commitment { digest: state.commitment });
        Ok((Self::Committed(Box::new(state)), outbox))
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        _: &History<'_>,
        _: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        match self {
            Self::Committed(state) => state.advance(ctx, &inbox),
            Self::Opened(state) => state.advance(ctx, &inbox),
            Self::Responded(state) => state.finish(ctx, &inbox),
        }
    }

    /// Messages are not signed.
    fn judge(_: &SessionContext, _: AbortCause, _: PartyId, _: &[Arc<Envelope>]) -> bool {
        false
    }
}

/// Each issuer's point, and the own share, with the weights with which they enter sk_m.
fn weighted(
    ctx: &SessionContext,
    issuers: &Issuers,
    share: &IssuerShare,
    me: PartyId,
) -> Result<(BTreeMap<PartyId, G1>, Secret<Scalar>), SetupError> {
    let weights = issuers.weights(ctx.parties()).ok_or(SetupError::SigningSetNotOfKey)?;
    let mut points = BTreeMap::new();
    let mut own = Err(SetupError::SigningSetNotOfKey);
    for (party, weight) in ctx.parties().iter().zip(&weights) {
        let point = issuers.share(party).ok_or(SetupError::SigningSetNotOfKey)?;
        points.insert(party, point.times_public(weight));
        if party == me {
            own = Ok(Secret::new(share.secret().expose().mul(weight)));
        }
    }
    Ok((points, own?))
}

impl Committed {
    /// [D3.1] draws a nonce, commits to it.
    fn new(
        ctx: &SessionContext,
        me: PartyId,
        opener: AttestedKey,
        points: BTreeMap<PartyId, G1>,
        share: Secret<Scalar>,
        rng: &mut dyn CryptoRng,
    ) -> Self {
        let known = Zeroizing::new(share.expose().to_bytes());
        let mut rng = HedgedRng::new(ctx, tags::PUBLICATION_RANDOMNESS, known.as_slice(), rng);
        let nonce = Secret::new(Scalar::random(&mut rng));
        let mut salt = [0u8; DIGEST_BYTES];
        rng.fill_bytes(&mut salt);
        let nonce_point = G1::mul_generator(&nonce);
        let part = G2::mul_generator(&share);
        let commitment = commitment(ctx, me, &nonce_point, &salt);
        publish(&commitment); // broadcast at once
        let opening = Opening { commitments: [0; DIGEST_BYTES], salt, nonce_point, part };
        Self { me, opener, points, share, nonce, opening, commitment }
    }

    /// [D3.2] opens, with g2 to the weighted share.
    fn advance(mut self, ctx: &SessionContext, inbox: &Inbox) -> Result<Next<Publish>, Fault> {
        let mut commitments = BTreeMap::from([(self.me, self.commitment)]);
        for envelope in inbox.iter() {
            commitments.insert(envelope.sender(), read::<Commitment>(ctx, envelope)?.digest);
        }
        publish(&self.opening.salt); // it opens the commitment now
        self.opening.commitments = digest_of(ctx, commitments.values().map(|digest| digest.to_vec()));
        let mut outbox = Outbox::new();
        outbox.broadcast(&self.opening);
        Ok(Next::Round(Publish::Opened(Box::new(Opened { of: self, commitments })), outbox))
    }
}

impl Opened {
    /// [D3.3] checks openings and parts, responds to the challenge.
    fn advance(self, ctx: &SessionContext, inbox: &Inbox) -> Result<Next<Publish>, Fault> {
        let Self { of: Committed { me, opener, points, share, nonce, opening, .. }, commitments } = self;
        let agreed = opening.commitments;
        let mut openings = BTreeMap::from([(me, opening)]);
        for envelope in inbox.iter() {
            openings.insert(envelope.sender(), read::<Opening>(ctx, envelope)?);
        }
        // Everybody saw the same commitments; else nobody can be shown to have caused it.
        if openings.values().any(|opening| opening.commitments != agreed) {
            return Err(Fault::nobody(AbortCause::BroadcastMismatch));
        }
        for (party, opening) in openings.iter().filter(|(party, _)| **party != me) {
            let expected = commitment(ctx, *party, &opening.nonce_point, &opening.salt);
            if commitments.get(party) != Some(&expected) {
                return Err(Fault::evident(AbortCause::WrongOpening, vec![*party]));
            }
            // e(g1^{s}, g2) = e(g1, g2^{s}) for the weighted share s.
            let point = points.get(party).ok_or_else(Fault::internal)?;
            if !pairings_are_equal((point, &G2::generator()), (&G1::generator(), &opening.part)) {
                return Err(Fault::evident(AbortCause::WrongShare, vec![*party]));
            }
        }
        let issuer = sum(points.values());
        let mut parts = openings.values().map(|opening| opening.part);
        let first = parts.next().ok_or_else(Fault::internal)?;
        let issuer_in_g2 = parts.fold(first, |sum, part| sum.plus(&part));
        let draft = GroupDraft::new(opener, issuer, issuer_in_g2)
            .map_err(|_| Fault::nobody(AbortCause::InconsistentShares))?;
        let commitment = sum(openings.values().map(|opening| &opening.nonce_point));
        let challenge = draft.challenge(&commitment);
        let response = nonce.expose().add(&challenge.mul(share.expose()));
        publish(&response); // broadcast below
        let encoded = openings.iter().map(|(party, opening)| {
            let mut writer = Writer::default();
            writer.u16(party.get());
            opening.encode(&mut writer);
            writer.finish()
        });
        let openings_digest = digest_of(ctx, encoded);
        let body = Response { openings: openings_digest, value: response };
        let mut outbox = Outbox::new();
        outbox.broadcast(&body);
        let nonce_points = openings.iter().map(|(party, opening)| (*party, opening.nonce_point)).collect();
        let Response { openings, value: response } = body;
        let state = Responded { draft, points, nonce_points, openings, challenge, response };
        Ok(Next::Round(Publish::Responded(Box::new(state)), outbox))
    }
}

impl Responded {
    /// [D3.4] checks every response by itself, puts the group together.
    fn finish(self, ctx: &SessionContext, inbox: &Inbox) -> Result<Next<Publish>, Fault> {
        let Self { draft, points, nonce_points, openings, challenge, mut response } = self;
        let mut responses = Vec::with_capacity(points.len());
        for envelope in inbox.iter() {
            responses.push((envelope.sender(), read::<Response>(ctx, envelope)?));
        }
        if responses.iter().any(|(_, response)| response.openings != openings) {
            return Err(Fault::nobody(AbortCause::BroadcastMismatch));
        }
        for (party, Response { value, .. }) in responses {
            let point = points.get(&party).ok_or_else(Fault::internal)?;
            let nonce_point = nonce_points.get(&party).ok_or_else(Fault::internal)?;
            let expected = nonce_point.plus(&point.times_public(&challenge));
            if G1::generator().times_public(&value) != expected {
                return Err(Fault::evident(AbortCause::WrongPartialSignature, vec![party]));
            }
            response = response.add(&value);
        }
        draft.prove(challenge, response).map(Next::Done).map_err(|_| Fault::internal())
    }
}

fn sum<'a>(points: impl Iterator<Item = &'a G1>) -> G1 {
    points.fold(G1::identity(), |sum, point| sum.plus(point))
}

fn commitment(ctx: &SessionContext, party: PartyId, nonce_point: &G1, salt: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut transcript = ctx.transcript().fork(tags::NONCE_COMMITMENT, party);
    transcript.append("nonce_point", &nonce_point.to_compressed());
    transcript.append("salt", salt);
    transcript.digest()
}

fn digest_of(ctx: &SessionContext, items: impl ExactSizeIterator<Item = Vec<u8>>) -> [u8; DIGEST_BYTES] {
    let mut transcript = ctx.transcript();
    transcript.append("tag", tags::OPENINGS.as_bytes());
    transcript.append_list("items", items);
    transcript.digest()
}

fn read<B: Body>(ctx: &SessionContext, envelope: &Envelope) -> Result<B, Fault> {
    parse(ctx, envelope).map_err(|cause| Fault::evident(cause, vec![envelope.sender()]))
}
