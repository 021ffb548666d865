//! Presignatures: nonce commitments exchanged before there is a message. Whoever can use one twice has the key share of its party.
//!
//! Specification: `docs/protocols/frost.md`; steps are cited as [P1].

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::seal::{DataKey, SealKind, UnsealFailed};
use engine::session::History;
use engine::wire::{Malformed, Reader, Writer};
use engine::{
    AbortCause, Delivery, Envelope, Fault, Inbox, MAX_KEY_ID_BYTES, MAX_PARTIES, Next, Outbox, PartyId,
    PartySet, Protocol, ProtocolId, RoundRule, SessionContext, SetupError,
};
use frost_core::round1::{Nonce, SigningNonces};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::key::KeyShare;
use super::signing::{
    AllCommitments, Commit, Commitments, DIGEST_BYTES, Terms, commitments_id, draw_nonces, read,
};
use super::suite::{SCALAR_BYTES, Suite, decode_scalar, encode_scalar_of};
use super::target::Target;

/// Bytes of the number that names a presignature, the same at all its parties.
pub const PRESIGNATURE_ID_BYTES: usize = DIGEST_BYTES;

const SEAL_LABEL: &[u8] = b"frost presignature 1";

/// One party's part of a presignature. Not `Clone`: signing takes it by value.
#[must_use]
pub struct Presignature<S: Suite> {
    pub(super) id: [u8; PRESIGNATURE_ID_BYTES],
    pub(super) share: KeyShare<S>,
    pub(super) target: Target,
    pub(super) nonces: SigningNonces<S::Cipher>,
    /// Of all signers, the own ones included.
    pub(super) commitments: AllCommitments<S>,
}

impl<S: Suite> Presignature<S> {
    /// Names it, the same at all its parties.
    pub fn id(&self) -> &[u8; PRESIGNATURE_ID_BYTES] {
        &self.id
    }

    /// Whose part it is.
    pub fn party(&self) -> PartyId {
        self.share.party
    }

    /// Who has to take part in its use: all of those that made it.
    pub fn signers(&self) -> PartySet {
        self.commitments.keys().copied().collect()
    }

    /// The key it is bound to.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Seals it. What it is bound to (id, family, key, epoch, party, signers, target) stays readable.
    pub fn seal(self, key: &DataKey, rng: &mut dyn CryptoRng) -> Option<Vec<u8>> {
        let mut secret = Writer::with_capacity(4096);
        self.share.encode(&mut secret);
        for nonce in [self.nonces.hiding(), self.nonces.binding()] {
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
        let share = KeyShare::<S>::decode(&mut secret)?;
        let mut nonce = || {
            let bytes = secret.bytes(SCALAR_BYTES)?;
            decode_scalar::<S>(bytes).map(Nonce::from_scalar).ok_or(Malformed)
        };
        let nonces = SigningNonces::from_nonces(nonce()?, nonce()?);
        let mut commitments = BTreeMap::new();
        for signer in signers.iter() {
            let read = if signer == share.party {
                let own = Commitments::of(&nonces).ok_or(Malformed)?;
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

/// Makes a presignature of one signing set, key and target, in one round.
pub struct Presigning<S: Suite> {
    share: KeyShare<S>,
    target: Target,
    nonces: SigningNonces<S::Cipher>,
    own: Commitments<S>,
}

impl<S: Suite> Protocol for Presigning<S> {
    const ID: ProtocolId = S::PRESIGN;
    const SIGNED: bool = false;
    const ROUNDS: &'static [RoundRule] =
        &[RoundRule { delivery: Delivery::Broadcast, max_body: Commitments::<S>::BYTES }];
    /// The payload of the session is the encoding of a [`Target`].
    type Input = KeyShare<S>;
    type Output = Presignature<S>;

    /// [P1] draw nonces, [P2] show their commitments.
    fn start(
        ctx: &SessionContext,
        share: KeyShare<S>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let mut reader = Reader::new(ctx.payload());
        let target = Target::decode(&mut reader).map_err(|Malformed| SetupError::PayloadInvalid)?;
        reader.finish().map_err(|Malformed| SetupError::PayloadInvalid)?;
        if ctx.me().ok_or(SetupError::ObserverNotAllowed)? != share.party {
            return Err(SetupError::ShareMismatch);
        }
        // Whether such a key can sign at all shows here and not when the presignature is used.
        let Terms { public, target, .. } = Terms::of_party(ctx, share.public, target, Vec::new())?;
        let share = KeyShare { public, ..share };
        let nonces = draw_nonces(ctx, &share, rng);
        let sent = Commit(Commitments::<S>::of(&nonces).ok_or(SetupError::ShareInvalid)?);
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
        let mut commitments = BTreeMap::from([(share.party, own)]);
        for envelope in inbox.iter() {
            commitments.insert(envelope.sender(), read::<Commit<S>>(ctx, envelope)?.0);
        }
        let id = commitments_id(ctx, &target, &commitments);
        Ok(Next::Done(Presignature { id, share, target, nonces, commitments }))
    }

    fn judge(_: &SessionContext, _: AbortCause, _: PartyId, _: &[Arc<Envelope>]) -> bool {
        false
    }
}
