//! The two pairwise rounds of signing, which need no message: nonce, mask, and the multiplications of all pairs.
//!
//! Specification: `docs/protocols/ecdsa.md`; steps are cited as [P1.2]. Symbols of the paper (Doerner, Kondi, Lee,
//! shelat 2023, protocol 3.6):
//!
//! | paper | here |
//! |---|---|
//! | r_i, R_i | `nonce`, `nonce_point` |
//! | φ_i | `mask` |
//! | sk_i, pk_i | `key`, `key_point`: additive share of the (derived) secret key, re-randomised by a share of zero |
//! | χ_(i,j) | `bob.factor()` |
//! | c^u, c^v and d^u, d^v | `products` of Alice and of Bob |
//! | Γ^u, Γ^v | `product_points` |
//! | ψ_(i,j) | `mask_minus_factor` |
//! | u_i, v_i | `masked_nonce`, `masked_key` |

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::session::{History, parse};
use engine::wire::{Malformed, Reader, Writer};
use engine::{
    AbortCause, Body, Delivery, Envelope, Fault, Inbox, Next, Outbox, PartyId, PartySet, PrivateBody,
    Protocol, ProtocolId, RoundRule, Route, Secret, SessionContext, SetupError, hedged,
};
use primitives::declassify::{publish, published};
use primitives::ot::OtError;
use primitives::secp256k1::{
    POINT_BYTES, Point, SCALAR_BYTES, Scalar, encode_points, encode_scalar, mul_generator, reduce_wide,
};
use primitives::vole::{self, Bob, MULTIPLY_BYTES, PRODUCTS, SAMPLE_BYTES};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::key::{KeyPublic, KeyShare, Pair, lagrange};
use super::presignature::Presignature;
use super::read::{read_point, read_scalar};
use super::tags;
use crate::bip32::DerivationPath;
use crate::dealing::Public;

/// Most presignatures that one session makes. Their round 2 is 165 KB to each peer; services carry envelopes of up to
/// 256 KB.
pub const MAX_BATCH: u8 = 4;

const DIGEST_BYTES: usize = 32;
/// Length of a round 1 body, in bytes.
pub(super) const COMMIT_BYTES: usize = DIGEST_BYTES + SAMPLE_BYTES;
/// Length of a round 2 body, in bytes.
pub(super) const MULTIPLY_BODY_BYTES: usize =
    3 * DIGEST_BYTES - DIGEST_BYTES + 4 * POINT_BYTES + SCALAR_BYTES + MULTIPLY_BYTES;

/// What a session makes. Its encoding is the payload of the session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PresignPayload {
    /// The child key that the presignatures are for.
    pub path: DerivationPath,
    /// How many: 1 to [`MAX_BATCH`].
    pub count: u8,
}

impl PresignPayload {
    /// The path, then the count.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.path.encode(&mut writer);
        writer.u8(self.count);
        writer.finish()
    }

    fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let path = DerivationPath::decode(&mut reader)?;
        let count = reader.u8()?;
        reader.finish()?;
        if (1..=MAX_BATCH).contains(&count) { Ok(Self { path, count }) } else { Err(Malformed) }
    }
}

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

/// What goes to each peer, or came from each.
pub(super) type ByPeer<B> = BTreeMap<PartyId, B>;

/// Round 1: commitment to the nonce point, the same to all, and Bob's message of the pair's multiplication.
pub struct Commit {
    commitment: [u8; DIGEST_BYTES],
    sample: Box<[u8; SAMPLE_BYTES]>,
}

/// Round 2: the opening, the key point, Alice's message, and what lets the recipient check and remove its factor.
pub struct Multiply {
    /// Hash of all commitments as the sender saw them.
    commitments: [u8; DIGEST_BYTES],
    salt: [u8; DIGEST_BYTES],
    nonce_point: Point,
    key_point: Point,
    product_points: [Point; PRODUCTS],
    mask_minus_factor: Scalar,
    message: Box<[u8; MULTIPLY_BYTES]>,
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

/// What a session of a party starts from, checked against its context.
pub(super) struct Material {
    me: PartyId,
    public: KeyPublic,
    path: DerivationPath,
    /// The key that is signed for: the joint key, or its child at `path`.
    child_key: Point,
    /// Additive share of that key's secret among the signers.
    key: Secret<Scalar>,
    pairs: BTreeMap<PartyId, Pair>,
}

impl Material {
    pub(super) fn new(
        ctx: &SessionContext,
        share: KeyShare,
        path: DerivationPath,
    ) -> Result<Self, SetupError> {
        let me = ctx.me().ok_or(SetupError::ObserverNotAllowed)?;
        let KeyShare { public, party, signing_share, pairs } = share;
        if party != me {
            return Err(SetupError::ShareMismatch);
        }
        check_key(ctx, &public)?;
        if ctx.peers().iter().any(|peer| !pairs.contains_key(&peer)) {
            return Err(SetupError::PeerExcluded);
        }
        let derived = public.derive(&path).ok_or(SetupError::PayloadInvalid)?;
        // The tweak is the same at every number, so adding it to each share adds it to the secret.
        let weight = lagrange(ctx.parties(), me).ok_or(SetupError::SigningSetNotOfKey)?;
        let key = Secret::new((signing_share.expose() + derived.tweak) * weight);
        Ok(Self { me, public, path, child_key: derived.public_key, key, pairs })
    }
}

/// Whether the key is the one, and its parties include the signers, that the context names.
pub(super) fn check_key(ctx: &SessionContext, public: &KeyPublic) -> Result<(), SetupError> {
    let of_this_key = public.key_id == ctx.key_id() && public.epoch == ctx.epoch();
    if !of_this_key || public.threshold != ctx.threshold() {
        return Err(if ctx.me().is_some() {
            SetupError::ShareMismatch
        } else {
            SetupError::KeyPublicInvalid
        });
    }
    if !ctx.parties().minus(&public.parties()).is_empty() {
        return Err(SetupError::SigningSetNotOfKey);
    }
    if ctx.parties().len() < ctx.threshold().get() {
        return Err(SetupError::SigningSetTooSmall);
    }
    Ok(())
}

/// State of round 1.
pub struct Committed {
    material: Arc<Material>,
    place: u8,
    nonce: Secret<Scalar>,
    mask: Secret<Scalar>,
    nonce_point: Point,
    salt: [u8; DIGEST_BYTES],
    commitment: [u8; DIGEST_BYTES],
    bobs: BTreeMap<PartyId, Bob>,
}

/// State of round 2.
pub struct Multiplied {
    material: Arc<Material>,
    place: u8,
    /// The share of the key, re-randomised.
    key: Secret<Scalar>,
    nonce: Secret<Scalar>,
    mask: Secret<Scalar>,
    nonce_point: Point,
    key_point: Point,
    commitments: BTreeMap<PartyId, [u8; DIGEST_BYTES]>,
    agreed: [u8; DIGEST_BYTES],
    bobs: BTreeMap<PartyId, Bob>,
    /// Sum of Alice's shares of all products: for the nonce, for the key.
    products: Secret<[Scalar; PRODUCTS]>,
}

impl Committed {
    /// [P1] nonce and mask, commitment, Bob's message for each peer.
    ///
    /// `place` tells what one session makes side by side from each other: nothing of one fits another.
    pub(super) fn new(
        ctx: &SessionContext,
        material: Arc<Material>,
        place: u8,
        rng: &mut dyn CryptoRng,
    ) -> (Self, ByPeer<Commit>) {
        // [P1.1] all mixed with the key share, so that a bad generator is not fatal.
        let mut hedge = Writer::with_capacity(SCALAR_BYTES + 1);
        hedge.bytes(Zeroizing::new(encode_scalar(material.key.expose())).as_slice());
        hedge.u8(place);
        let hedge = Zeroizing::new(hedge.finish());
        let mut wide = |tag| hedged(ctx, tag, hedge.as_slice(), rng);
        let [nonce, mask] = [tags::NONCE, tags::MASK].map(|tag| Secret::new(reduce_wide(wide(tag).expose())));
        let nonce_point = mul_generator(nonce.expose());
        // [P1.2] half of what is drawn is as long as the digest that it blinds.
        let mut salt = [0u8; DIGEST_BYTES];
        salt.copy_from_slice(&wide(tags::SALT).expose()[..DIGEST_BYTES]);
        let commitment = commitment_of(ctx, (material.me, place), &nonce_point, &salt);
        // [P1.3]
        let mut bodies = BTreeMap::new();
        let mut bobs = BTreeMap::new();
        for (peer, pair) in material.pairs.iter().filter(|(peer, _)| ctx.parties().contains(**peer)) {
            let binding = multiplication(ctx, place, *peer, material.me);
            let (bob, sample) = vole::sample(&binding, &pair.transfers.receiver, rng);
            bobs.insert(*peer, bob);
            if let Ok(sample) = sample.try_into().map(Box::new) {
                bodies.insert(*peer, Commit { commitment, sample });
            }
        }
        (Self { material, place, nonce, mask, nonce_point, salt, commitment, bobs }, bodies)
    }

    /// [P2] multiply with each peer, open the commitment.
    pub(super) fn advance(
        self,
        ctx: &SessionContext,
        shown: &ByPeer<Commit>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Multiplied, ByPeer<Multiply>), Fault> {
        let Self { material, place, nonce, mask, nonce_point, salt, commitment, bobs } = self;
        let me = material.me;
        let mut commitments: BTreeMap<_, _> =
            shown.iter().map(|(peer, body)| (*peer, body.commitment)).collect();
        commitments.insert(me, commitment);
        // [P2.1] all commitments enter the shares of zero and are compared in round 2.
        let agreed = digest_of(ctx, place, &commitments);
        let mut key = Secret::new(*material.key.expose());
        for (peer, pair) in material.pairs.iter().filter(|(peer, _)| ctx.parties().contains(**peer)) {
            let share = zero_share(ctx, &agreed, (me, *peer), &pair.zero_seed);
            *key.expose_mut() += share.expose();
        }
        let key_point = mul_generator(key.expose());
        // [P2.2] Alice's part towards each peer. A failed check ends everything before anything depends on it.
        let inputs = Secret::new([*nonce.expose(), *key.expose()]);
        let mut products = Secret::new([Scalar::ZERO; PRODUCTS]);
        let mut bodies = BTreeMap::new();
        for (peer, Commit { sample, .. }) in shown {
            let pair = material.pairs.get(peer).ok_or_else(Fault::internal)?;
            let binding = multiplication(ctx, place, me, *peer);
            let (shares, message) = vole::multiply(&binding, &pair.transfers.sender, sample, &inputs, rng)
                .map_err(|error| pair_fault(error, *peer))?;
            let bob = bobs.get(peer).ok_or_else(Fault::internal)?;
            let message = message.try_into().map(Box::new).map_err(|_| Fault::internal())?;
            let product_points = shares.expose().map(|share| mul_generator(&share));
            let mask_minus_factor = mask.expose() - bob.factor().expose();
            for (sum, share) in products.expose_mut().iter_mut().zip(shares.expose()) {
                *sum += share;
            }
            let body = Multiply {
                commitments: agreed,
                salt,
                nonce_point,
                key_point,
                product_points,
                mask_minus_factor,
                message,
            };
            bodies.insert(*peer, body);
        }
        let state = Multiplied {
            material,
            place,
            key,
            nonce,
            mask,
            nonce_point,
            key_point,
            commitments,
            agreed,
            bobs,
            products,
        };
        Ok((state, bodies))
    }
}

impl Multiplied {
    /// [P3] check everything, and put the presignature together.
    pub(super) fn finish(
        self,
        ctx: &SessionContext,
        shown: &ByPeer<Multiply>,
    ) -> Result<Presignature, Fault> {
        let Self { material, place, key, nonce, mask, commitments, agreed, mut bobs, products, .. } = self;
        let (mut nonce_point, mut key_point) = (self.nonce_point, self.key_point);
        let mut masks = Secret::new(*mask.expose());
        let mut sums = products;
        // All of them have been posted.
        publish(&agreed);
        publish(&nonce_point);
        publish(&key_point);
        // [P3.1] everybody saw the same commitments; else nobody can be shown to have caused it.
        if shown.values().any(|body| body.commitments != agreed) {
            return Err(Fault::nobody(AbortCause::BroadcastMismatch));
        }
        for (peer, body) in shown {
            // [P3.2] the nonce point is the one committed to.
            let commitment = commitment_of(ctx, (*peer, place), &body.nonce_point, &body.salt);
            if commitments.get(peer) != Some(&commitment) {
                return Err(Fault::evident(AbortCause::WrongOpening, vec![*peer]));
            }
            // [P3.3] Bob's shares, after the check of Alice's message.
            let bob = bobs.remove(peer).ok_or_else(Fault::internal)?;
            let factor = Secret::new(*bob.factor().expose());
            let shares = bob.finish(&body.message).map_err(|error| pair_fault(error, *peer))?;
            // [P3.4] what Alice multiplied is the logarithm of her nonce point and of her key point.
            let inputs = [&body.nonce_point, &body.key_point];
            let checks = inputs.iter().zip(&body.product_points).zip(shares.expose());
            for ((input, product_point), share) in checks {
                if published(**input * factor.expose() - product_point != mul_generator(share)) {
                    return Err(Fault::evident(AbortCause::WrongProduct, vec![*peer]));
                }
            }
            for (sum, share) in sums.expose_mut().iter_mut().zip(shares.expose()) {
                *sum += share;
            }
            *masks.expose_mut() += &body.mask_minus_factor;
            nonce_point += &body.nonce_point;
            key_point += &body.key_point;
        }
        // [P3.5] the key shares are shares of the key.
        if key_point != material.child_key {
            return Err(Fault::nobody(AbortCause::InconsistentShares));
        }
        if nonce_point == Point::IDENTITY {
            return Err(Fault::nobody(AbortCause::DegenerateKey));
        }
        // [P3.6] shares of nonce·mask and of key·mask.
        let [nonce_products, key_products] = sums.expose();
        let masked_nonce = Secret::new(nonce.expose() * masks.expose() + nonce_products);
        let masked_key = Secret::new(key.expose() * masks.expose() + key_products);
        Ok(Presignature {
            id: agreed,
            party: material.me,
            signers: ctx.parties().clone(),
            key_id: material.public.key_id.clone(),
            epoch: material.public.epoch,
            key_digest: material.public.digest(),
            path: material.path.clone(),
            child_key: material.child_key,
            nonce_point,
            masked_nonce,
            mask,
            masked_key,
        })
    }
}

/// Makes presignatures of one signing set, key and derivation, in two rounds.
pub enum Presigning {
    /// Waiting for commitments.
    Committed(Vec<Committed>),
    /// Waiting for the multiplications.
    Multiplied(Vec<Multiplied>),
}

impl Protocol for Presigning {
    const ID: ProtocolId = ProtocolId { number: 5, name: "ecdsa/presign/2" };
    const SIGNED: bool = false;
    const ROUNDS: &'static [RoundRule] = &[
        RoundRule { delivery: Delivery::Private, max_body: MAX_BATCH as usize * COMMIT_BYTES },
        RoundRule { delivery: Delivery::Private, max_body: MAX_BATCH as usize * MULTIPLY_BODY_BYTES },
    ];
    /// The payload of the session is the encoding of a [`PresignPayload`].
    type Input = KeyShare;
    /// As many as were ordered, in the order that all parties have them in.
    type Output = Vec<Presignature>;

    fn held_alike(share: &KeyShare) -> Option<[u8; 32]> {
        Some(share.public.digest())
    }

    fn start(
        ctx: &SessionContext,
        share: KeyShare,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let PresignPayload { path, count } =
            PresignPayload::decode(ctx.payload()).map_err(|Malformed| SetupError::PayloadInvalid)?;
        let material = Arc::new(Material::new(ctx, share, path)?);
        let (states, bodies): (Vec<_>, Vec<_>) =
            (0..count).map(|place| Committed::new(ctx, Arc::clone(&material), place, rng)).unzip();
        Ok((Self::Committed(states), post_all(bodies)))
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        _: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        match self {
            Self::Committed(states) => {
                // All of them before anything is sent: no check has failed then.
                let shown = read_all::<Commit>(ctx, &inbox, states.len())?;
                let advanced = states
                    .into_iter()
                    .zip(&shown)
                    .map(|(state, shown)| state.advance(ctx, shown, rng))
                    .collect::<Result<Vec<_>, Fault>>()?;
                let (states, bodies) = advanced.into_iter().unzip();
                Ok(Next::Round(Self::Multiplied(states), post_all(bodies)))
            }
            Self::Multiplied(states) => {
                let shown = read_all::<Multiply>(ctx, &inbox, states.len())?;
                let made = states.into_iter().zip(&shown).map(|(state, shown)| state.finish(ctx, shown));
                made.collect::<Result<_, Fault>>().map(Next::Done)
            }
        }
    }

    fn judge(_: &SessionContext, _: AbortCause, _: PartyId, _: &[Arc<Envelope>]) -> bool {
        false
    }
}

/// To each peer its bodies of all places, in one envelope.
fn post_all<B: PrivateBody>(places: Vec<ByPeer<B>>) -> Outbox {
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

/// What came, by place.
fn read_all<B: Body>(ctx: &SessionContext, inbox: &Inbox, count: usize) -> Result<Vec<ByPeer<B>>, Fault> {
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
pub(super) fn post<B: PrivateBody>(bodies: ByPeer<B>) -> Outbox {
    let mut outbox = Outbox::new();
    for (peer, body) in bodies {
        outbox.private(peer, &body);
    }
    outbox
}

/// What came from each peer, in a session that makes one.
pub(super) fn read_each<B: Body>(ctx: &SessionContext, inbox: &Inbox) -> Result<ByPeer<B>, Fault> {
    inbox.iter().map(|envelope| Ok((envelope.sender(), read(ctx, envelope)?))).collect()
}

/// Decodes a body. Nobody else can check who sent it, so the blame stays with this party.
pub(super) fn read<B: Body>(ctx: &SessionContext, envelope: &Envelope) -> Result<B, Fault> {
    parse(ctx, envelope).map_err(|cause| Fault::evident(cause, vec![envelope.sender()]))
}

/// A failed check of a multiplication: this pair must never multiply again with the same set-up.
fn pair_fault(error: OtError, peer: PartyId) -> Fault {
    match error {
        OtError::Malformed => Fault::evident(AbortCause::MalformedBody, vec![peer]),
        OtError::CheckFailed => Fault::evident(AbortCause::TransferCheckFailed, vec![peer]),
    }
}

fn commitment_of(
    ctx: &SessionContext,
    (party, place): (PartyId, u8),
    nonce_point: &Point,
    salt: &[u8; DIGEST_BYTES],
) -> [u8; DIGEST_BYTES] {
    let [point] = encode_points(&[*nonce_point]);
    let mut transcript = ctx.transcript().fork(tags::NONCE_COMMITMENT, party);
    transcript.append_u64("place", u64::from(place));
    transcript.append("nonce_point", &point);
    transcript.append("salt", salt);
    transcript.digest()
}

fn digest_of(
    ctx: &SessionContext,
    place: u8,
    commitments: &BTreeMap<PartyId, [u8; DIGEST_BYTES]>,
) -> [u8; DIGEST_BYTES] {
    let mut transcript = ctx.transcript();
    transcript.append("purpose", tags::COMMITMENTS.as_bytes());
    transcript.append_u64("place", u64::from(place));
    for (party, commitment) in commitments {
        transcript.append_u64("party", u64::from(party.get()));
        transcript.append("commitment", commitment);
    }
    transcript.digest()
}

/// What one multiplication is bound to.
fn multiplication(ctx: &SessionContext, place: u8, alice: PartyId, bob: PartyId) -> [u8; DIGEST_BYTES] {
    let mut transcript = ctx.transcript().fork(tags::MULTIPLICATION, alice);
    transcript.append_u64("place", u64::from(place));
    transcript.append_u64("bob", u64::from(bob.get()));
    transcript.digest()
}

/// What `me` adds for the pair with `peer`; the peer subtracts it.
fn zero_share(
    ctx: &SessionContext,
    agreed: &[u8; DIGEST_BYTES],
    (me, peer): (PartyId, PartyId),
    seed: &Secret<[u8; 32]>,
) -> Secret<Scalar> {
    let mut transcript = ctx.transcript().fork(tags::ZERO_SHARE, me.min(peer));
    transcript.append_u64("higher", u64::from(me.max(peer).get()));
    transcript.append("commitments", agreed);
    transcript.append("seed", seed.expose());
    let share = reduce_wide(&Zeroizing::new(transcript.wide()));
    Secret::new(if me < peer { share } else { -share })
}

/// The peers whose messages a session still needs. An observer needs none in the pairwise rounds.
pub(super) fn pairwise_ready(ctx: &SessionContext, waiting: &PartySet) -> bool {
    ctx.me().is_none() || ctx.peers().minus(waiting).is_empty()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use std::collections::BTreeMap;

    use engine::session::Session;
    use engine::{EvidenceKey, RosterEntry, SessionId, SessionSettings, Threshold};
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;
    use sim::{Address, Faults, Outcome, World};

    use super::*;
    use crate::ecdsa::Keygen;

    /// Presigning by parties that choose their nonces: commitments keep a real one from choosing by another's.
    struct Chosen(Presigning);

    impl Protocol for Chosen {
        const ID: ProtocolId = Presigning::ID;
        const SIGNED: bool = Presigning::SIGNED;
        const ROUNDS: &'static [RoundRule] = Presigning::ROUNDS;
        type Input = (KeyShare, Scalar);
        type Output = Vec<Presignature>;

        fn start(
            ctx: &SessionContext,
            (share, nonce): Self::Input,
            rng: &mut dyn CryptoRng,
        ) -> Result<(Self, Outbox), SetupError> {
            let material = Arc::new(Material::new(ctx, share, DerivationPath::default())?);
            let (mut state, mut bodies) = Committed::new(ctx, material, 0, rng);
            state.nonce_point = mul_generator(&nonce);
            state.nonce = Secret::new(nonce);
            state.commitment = commitment_of(ctx, (state.material.me, 0), &state.nonce_point, &state.salt);
            bodies.values_mut().for_each(|body| body.commitment = state.commitment);
            Ok((Self(Presigning::Committed(vec![state])), post_all(vec![bodies])))
        }

        fn advance(
            self,
            ctx: &SessionContext,
            inbox: Inbox,
            history: &History<'_>,
            rng: &mut dyn CryptoRng,
        ) -> Result<Next<Self>, Fault> {
            Ok(match self.0.advance(ctx, inbox, history, rng)? {
                Next::Round(state, outbox) => Next::Round(Self(state), outbox),
                Next::Done(made) => Next::Done(made),
                _ => panic!("presigning ends with its second round"),
            })
        }

        fn judge(_: &SessionContext, _: AbortCause, _: PartyId, _: &[Arc<Envelope>]) -> bool {
            false
        }
    }

    const PARTIES: [u32; 2] = [1, 2];

    fn party(number: u32) -> PartyId {
        PartyId::new(number).unwrap()
    }

    fn evidence_key(number: u32) -> EvidenceKey {
        EvidenceKey::from_seed(&Secret::new([u8::try_from(number).unwrap(); 32]))
    }

    fn run<P: Protocol>(
        payload: &[u8],
        input: impl Fn(u32) -> P::Input,
    ) -> BTreeMap<Address, Outcome<P::Output>> {
        let started = PARTIES.map(|number| {
            let settings = SessionSettings {
                session_id: SessionId::new([3; 32]),
                me: Some(party(number)),
                roster: PARTIES
                    .map(|id| RosterEntry { id: party(id), evidence_key: Some(evidence_key(id).public()) })
                    .into(),
                threshold: Threshold::new(2).unwrap(),
                key_id: "key".to_owned(),
                epoch: 1,
                payload: payload.to_vec(),
            };
            let key = P::SIGNED.then(|| evidence_key(number));
            let rng = &mut ChaCha20Rng::seed_from_u64(number.into());
            (Some(party(number)), Session::<P>::start(settings, key, input(number), rng).unwrap())
        });
        World::new(1, Faults::default(), started).run()
    }

    /// No signature can be made from a nonce point of zero, and one of the others has chosen its nonce by this party's.
    /// Nothing shows which one, so the others are suspects.
    #[test]
    fn nonces_that_cancel_make_no_presignature() {
        let nonce = Scalar::from(7u64);
        for (other, degenerate) in [(-nonce, true), (nonce, false)] {
            let mut shares = run::<Keygen>(&[], |_| ());
            let shares: BTreeMap<u32, _> = PARTIES
                .map(|number| (number, shares.remove(&Some(party(number))).unwrap().done.unwrap()))
                .into();
            let shares = std::cell::RefCell::new(shares);
            let payload = PresignPayload { path: DerivationPath::default(), count: 1 }.encode();
            let outcomes = run::<Chosen>(&payload, |number| {
                let share = shares.borrow_mut().remove(&number).unwrap();
                (share, if number == 1 { nonce } else { other })
            });
            for (me, peer) in [(1, 2), (2, 1)] {
                let Outcome { done, aborts, .. } = &outcomes[&Some(party(me))];
                if !degenerate {
                    assert_eq!(done.as_ref().unwrap()[0].nonce_point, mul_generator(&(nonce + nonce)));
                    continue;
                }
                let [abort] = aborts.as_slice() else { panic!("party {me}: one abort") };
                assert_eq!((abort.cause, &*abort.culprits), (AbortCause::DegenerateKey, &[][..]), "{abort}");
                assert_eq!((&*abort.suspects, abort.reporter), (&[party(peer)][..], Some(party(me))));
                assert!(done.is_none());
            }
        }
    }
}
