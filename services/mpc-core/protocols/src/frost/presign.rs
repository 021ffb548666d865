//! Presignatures: nonce commitments exchanged before there is a message. Anybody that can use one twice has the key
//! share of its party.
//!
//! Specification: `docs/protocols/frost.md`; steps are cited as [P1].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::seal::{DataKey, SealKind, UnsealFailed};
use engine::session::History;
use engine::wire::{Malformed, Reader, Writer};
use engine::{
    AbortCause, Body, BroadcastBody, Delivery, Envelope, Fault, Inbox, MAX_KEY_ID_BYTES, MAX_PARTIES, Next,
    Outbox, PartyId, PartySet, Protocol, ProtocolId, RoundRule, Route, SessionContext, SetupError,
};
use frost_core::round1::{Nonce, SigningNonces};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::key::KeyShare;
use super::signing::{
    AllCommitments, Commitments, DIGEST_BYTES, Nonces, Terms, commitments_id, draw_nonces, read,
};
use super::suite::{SCALAR_BYTES, Suite, decode_scalar, encode_scalar_of};
use super::target::Target;
use crate::dealing::Public;

/// Bytes of the number that names a presignature, the same at all its parties.
pub const PRESIGNATURE_ID_BYTES: usize = DIGEST_BYTES;

/// Most presignatures that one session makes. The costs of a session beside its presignatures, orders, reports and
/// envelopes, are then small for each, and the work at the one message that ends it, points of all peers to decode, is
/// still a matter of milliseconds.
pub const MAX_BATCH: u8 = 16;

const SEAL_LABEL: &[u8] = b"frost presignature 1";

/// The description of the presignatures that a session makes. Its encoding is the payload of the session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PresignPayload {
    /// The key that the presignatures are for.
    pub target: Target,
    /// How many: 1 to [`MAX_BATCH`].
    pub count: u8,
}

impl PresignPayload {
    /// The target, then the count.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.target.encode(&mut writer);
        writer.u8(self.count);
        writer.finish()
    }

    fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let target = Target::decode(&mut reader)?;
        let count = reader.u8()?;
        reader.finish()?;
        if (1..=MAX_BATCH).contains(&count) { Ok(Self { target, count }) } else { Err(Malformed) }
    }
}

/// One party's contribution to a presignature. Not `Clone`: signing takes it by value.
#[must_use]
pub struct Presignature<S: Suite> {
    pub(super) id: [u8; PRESIGNATURE_ID_BYTES],
    /// Shared by those that one session made.
    pub(super) share: Arc<KeyShare<S>>,
    pub(super) target: Target,
    pub(super) nonces: Nonces<S>,
    /// The commitments of all signers, this party's included.
    pub(super) commitments: AllCommitments<S>,
}

impl<S: Suite> Presignature<S> {
    /// Names it, the same at all its parties.
    pub fn id(&self) -> &[u8; PRESIGNATURE_ID_BYTES] {
        &self.id
    }

    /// The party whose contribution it is.
    pub fn party(&self) -> PartyId {
        self.share.party
    }

    /// The parties that have to take part in its use: all of those that made it.
    pub fn signers(&self) -> PartySet {
        self.commitments.keys().copied().collect()
    }

    /// The key it is bound to.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Seals it. The values that it is bound to (id, family, key, epoch, party, signers, target) stay readable.
    pub fn seal(self, key: &DataKey, rng: &mut dyn CryptoRng) -> Option<Vec<u8>> {
        let mut secret = Writer::with_capacity(4096);
        self.share.encode(&mut secret);
        for nonce in [self.nonces.0.hiding(), self.nonces.0.binding()] {
            secret.bytes(&encode_scalar_of::<S>(&nonce.to_scalar()));
        }
        for commitments in self.commitments.values() {
            secret.bytes(&commitments.bytes);
        }
        let secret = Zeroizing::new(secret.finish());
        key.seal(SealKind::Other, &self.public_part(), SEAL_LABEL, &secret, rng)
    }

    /// Opens a sealed presignature.
    pub fn unseal(key: &DataKey, blob: &[u8]) -> Result<Self, UnsealFailed> {
        let unsealed = key.unseal(SealKind::Other, SEAL_LABEL, blob)?;
        let presignature = Self::decode(&unsealed.public, unsealed.secret.expose());
        match presignature {
            Ok(presignature) if presignature.public_part() == unsealed.public => Ok(presignature),
            Ok(_) | Err(Malformed) => Err(UnsealFailed),
        }
    }

    fn public_part(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.bytes(&self.id);
        writer.sized(S::FAMILY.as_bytes());
        writer.sized(self.share.public.key_id.as_bytes());
        writer.u32(self.share.public.epoch);
        writer.u16(self.share.party.get());
        writer.u8(u8::try_from(self.commitments.len()).unwrap_or(u8::MAX));
        for signer in self.commitments.keys() {
            writer.u16(signer.get());
        }
        self.target.encode(&mut writer);
        writer.finish()
    }

    fn decode(public: &[u8], secret: &[u8]) -> Result<Self, Malformed> {
        let mut public = Reader::new(public);
        let id = *public.array()?;
        if public.sized(S::FAMILY.len())? != S::FAMILY.as_bytes() {
            return Err(Malformed);
        }
        // Key, epoch and party are those of the share; the caller compares the encodings.
        public.sized(MAX_KEY_ID_BYTES)?;
        public.u32()?;
        public.u16()?;
        let count = usize::from(public.u8()?);
        let signers = (0..count.min(MAX_PARTIES))
            .map(|_| PartyId::new(public.u16()?.into()).ok_or(Malformed))
            .collect::<Result<PartySet, Malformed>>()?;
        let target = Target::decode(&mut public)?;
        public.finish()?;
        let mut secret = Reader::new(secret);
        let share = Arc::new(KeyShare::<S>::decode(&mut secret)?);
        let mut nonce = || {
            let bytes = secret.bytes(SCALAR_BYTES)?;
            decode_scalar::<S>(bytes).map(Nonce::from_scalar).ok_or(Malformed)
        };
        let nonces = Nonces(Box::new(SigningNonces::from_nonces(nonce()?, nonce()?)));
        let mut commitments = BTreeMap::new();
        for signer in signers.iter() {
            let read = if signer == share.party {
                let own = Commitments::of(&nonces.0).ok_or(Malformed)?;
                (secret.bytes(Commitments::<S>::BYTES)? == own.bytes).then_some(own).ok_or(Malformed)?
            } else {
                Commitments::read_own(&mut secret).map_err(|_| Malformed)?
            };
            commitments.insert(signer, read);
        }
        secret.finish()?;
        if commitments.len() != count || !commitments.contains_key(&share.party) {
            return Err(Malformed);
        }
        Ok(Self { id, share, target, nonces, commitments })
    }
}

/// The only round: the sender's commitments for each presignature, in order.
struct CommitAll<S: Suite>(Vec<Commitments<S>>);

impl<S: Suite> Body for CommitAll<S> {
    const ROUND: u8 = 1;

    fn encode(&self, writer: &mut Writer) {
        for commitments in &self.0 {
            writer.bytes(&commitments.bytes);
        }
    }

    /// [P2] as many as were ordered, and no point twice: a party that shows one again has used a nonce again.
    fn decode(reader: &mut Reader<'_>, ctx: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        let PresignPayload { count, .. } = PresignPayload::decode(ctx.payload())?;
        let all = (0..count).map(|_| Commitments::read(reader)).collect::<Result<Vec<_>, AbortCause>>()?;
        if points_differ(&all) { Ok(Self(all)) } else { Err(AbortCause::MalformedBody) }
    }
}

impl<S: Suite> BroadcastBody for CommitAll<S> {}

fn points_differ<S: Suite>(all: &[Commitments<S>]) -> bool {
    let mut seen = BTreeSet::new();
    all.iter()
        .flat_map(|commitments| commitments.bytes.chunks(S::POINT_BYTES))
        .all(|point| seen.insert(point))
}

/// Makes presignatures of one signing set, key and target, in one round.
pub struct Presigning<S: Suite> {
    share: KeyShare<S>,
    target: Target,
    nonces: Vec<Nonces<S>>,
    own: Vec<Commitments<S>>,
}

impl<S: Suite> Protocol for Presigning<S> {
    const ID: ProtocolId = S::PRESIGN;
    const SIGNED: bool = false;
    const ROUNDS: &'static [RoundRule] = &[RoundRule {
        delivery: Delivery::Broadcast,
        max_body: MAX_BATCH as usize * Commitments::<S>::BYTES,
    }];
    /// The payload of the session is the encoding of a [`PresignPayload`].
    type Input = KeyShare<S>;
    /// As many as were ordered, in the order that all parties have them in.
    type Output = Vec<Presignature<S>>;

    fn held_alike(share: &KeyShare<S>) -> Option<[u8; 32]> {
        Some(share.public.digest())
    }

    /// [P1] draw nonces, [P2] show their commitments.
    fn start(
        ctx: &SessionContext,
        share: KeyShare<S>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let PresignPayload { target, count } =
            PresignPayload::decode(ctx.payload()).map_err(|Malformed| SetupError::PayloadInvalid)?;
        if ctx.me().ok_or(SetupError::ObserverNotAllowed)? != share.party {
            return Err(SetupError::ShareMismatch);
        }
        // Whether such a key can sign at all shows here and not when the presignature is used.
        let Terms { public, target, .. } = Terms::of_party(ctx, share.public, target, Vec::new())?;
        let share = KeyShare { public, ..share };
        let nonces = draw_nonces(ctx, &share, count, rng);
        let own: Option<Vec<_>> = nonces.iter().map(|pair| Commitments::<S>::of(&pair.0)).collect();
        let sent = CommitAll(own.ok_or(SetupError::ShareInvalid)?);
        let mut outbox = Outbox::new();
        outbox.broadcast(&sent);
        Ok((Self { share, target, nonces, own: sent.0 }, outbox))
    }

    /// [P3] name what was seen.
    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        _: &History<'_>,
        _: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        let Self { share, target, nonces, own } = self;
        let me = share.party;
        let mut shown: Vec<AllCommitments<S>> =
            own.into_iter().map(|commitments| BTreeMap::from([(me, commitments)])).collect();
        for envelope in inbox.iter() {
            let CommitAll(all) = read::<CommitAll<S>>(ctx, envelope)?;
            for (place, commitments) in shown.iter_mut().zip(all) {
                place.insert(envelope.sender(), commitments);
            }
        }
        let share = Arc::new(share);
        let made = nonces.into_iter().zip(shown).map(|(nonces, commitments)| Presignature {
            id: commitments_id(ctx, &target, &commitments),
            share: Arc::clone(&share),
            target: target.clone(),
            nonces,
            commitments,
        });
        Ok(Next::Done(made.collect()))
    }

    fn judge(_: &SessionContext, _: AbortCause, _: PartyId, _: &[Arc<Envelope>]) -> bool {
        false
    }
}
