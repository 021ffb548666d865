//! The parts of a key: its public data, and one party's share.

use engine::seal::{DataKey, SealKind, ShareLabel};
use engine::wire::{Malformed, Reader, Writer};
use engine::{
    MAX_KEY_ID_BYTES, MAX_PARTIES, PartyId, PartySet, Secret, SessionContext, SetupError, Threshold,
};
use frost_core::VerifyingKey;
use frost_core::keys::SigningShare;
use primitives::declassify::{published, published_bytes};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::bip32::CHAIN_CODE_BYTES;
use crate::share::{self, OpenShareError};

use super::suite::{
    PointOf, SCALAR_BYTES, ScalarOf, SecretScalar, Suite, VERIFIER_KEY_BYTES, decode_point_of, decode_scalar,
    encode_point, encode_scalar_of, identity, zero,
};
use super::target::Target;

/// The public data of a key, the same for all parties.
#[derive(Debug)]
pub struct KeyPublic<S: Suite> {
    /// Our name for the key.
    pub key_id: String,
    /// Generation of its shares.
    pub epoch: u32,
    /// Parties needed to sign.
    pub threshold: Threshold,
    /// The joint key: a compressed point of the suite.
    pub public_key: Vec<u8>,
    /// Its BIP-32 chain code; zeros in suites without derivation.
    pub chain_code: [u8; CHAIN_CODE_BYTES],
    /// The public point of each party's signing share, compressed, ascending by party. Decoded only where a wrong
    /// partial signature has to be found.
    pub verification_shares: Vec<(PartyId, Vec<u8>)>,
    /// The suite, which is all that tells one type from the other.
    pub suite: core::marker::PhantomData<fn() -> S>,
}

impl<S: Suite> Clone for KeyPublic<S> {
    fn clone(&self) -> Self {
        Self {
            key_id: self.key_id.clone(),
            public_key: self.public_key.clone(),
            verification_shares: self.verification_shares.clone(),
            ..*self
        }
    }
}

impl<S: Suite> PartialEq for KeyPublic<S> {
    fn eq(&self, other: &Self) -> bool {
        let parts = |key: &Self| (key.epoch, key.threshold, key.chain_code);
        parts(self) == parts(other)
            && self.key_id == other.key_id
            && self.public_key == other.public_key
            && self.verification_shares == other.verification_shares
    }
}

impl<S: Suite> Eq for KeyPublic<S> {}

/// The key that signs in a session.
pub(super) struct TargetKey<S: Suite> {
    /// The joint key's child, before Taproot's tweak.
    pub(super) child: PointOf<S>,
    /// The child's secret minus the joint secret. Public.
    pub(super) tweak: ScalarOf<S>,
    /// The child minus the joint key.
    pub(super) tweak_point: PointOf<S>,
}

impl<S: Suite> KeyPublic<S> {
    /// All parties of the key.
    pub fn parties(&self) -> PartySet {
        self.verification_shares.iter().map(|(party, _)| *party).collect()
    }

    /// The key that signatures for `target` verify under, as outside verifiers take it: 32 bytes of RFC 8032, or the x
    /// coordinate of BIP-340; with Taproot's tweak the output key of BIP-341. `None` if the suite, or BIP-32, has no
    /// such key.
    pub fn verifier_key(&self, target: &Target) -> Option<[u8; VERIFIER_KEY_BYTES]> {
        let key = self.target_key(target, decode_point_of::<S>)?;
        let public = frost_core::keys::PublicKeyPackage::new(
            std::collections::BTreeMap::new(),
            VerifyingKey::new(key.child),
            None,
        );
        let public = match &target.taproot {
            Some(taproot) => S::tweak_public(public, taproot)?,
            None => public,
        };
        S::verifier_key(public.verifying_key())
    }

    /// `decode` is how far the public data have to be checked: [`Suite::decode_own`] if they are out of this party's
    /// own sealed share, else [`decode_point_of`].
    pub(super) fn target_key(
        &self,
        target: &Target,
        decode: fn(&[u8]) -> Option<PointOf<S>>,
    ) -> Option<TargetKey<S>> {
        let public_key = decode(&self.public_key)?;
        if target.path.steps().is_empty() {
            let (tweak, tweak_point) = (zero::<S>(), identity::<S>());
            return Some(TargetKey { child: public_key, tweak, tweak_point });
        }
        let tweak = S::derivation_tweak(&public_key, &self.chain_code, &target.path)?;
        let tweak_point = S::mul_generator(&tweak);
        let child = public_key + tweak_point;
        (child != identity::<S>()).then_some(TargetKey { child, tweak, tweak_point })
    }

    /// One party's verification share as it was made; `None` if there is none or it is not a valid one.
    pub(super) fn verification_point(&self, party: PartyId) -> Option<PointOf<S>> {
        let (_, point) = self.verification_shares.iter().find(|(holder, _)| *holder == party)?;
        decode_point_of::<S>(point)
    }

    /// The encoding inside sealed shares.
    pub fn encode(&self, writer: &mut Writer) {
        writer.sized(self.key_id.as_bytes());
        writer.u32(self.epoch);
        writer.u16(u16::try_from(self.threshold.get()).unwrap_or(u16::MAX));
        writer.bytes(&self.public_key);
        if S::DERIVES {
            writer.bytes(&self.chain_code);
        }
        writer.u16(u16::try_from(self.verification_shares.len()).unwrap_or(u16::MAX));
        for (party, point) in &self.verification_shares {
            writer.u16(party.get());
            writer.bytes(point);
        }
    }

    /// Reads what [`KeyPublic::encode`] wrote, checked as far as [`KeyPublic::well_formed`] does.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let key_id = core::str::from_utf8(published_bytes(reader.sized(MAX_KEY_ID_BYTES)?))
            .map_err(|_| Malformed)?
            .to_owned();
        let epoch = reader.u32()?;
        let threshold = Threshold::new(reader.u16()?.into()).ok_or(Malformed)?;
        let public_key = published_bytes(reader.bytes(S::POINT_BYTES)?).to_vec();
        let chain_code = if S::DERIVES { published(*reader.array()?) } else { [0; CHAIN_CODE_BYTES] };
        let count = usize::from(reader.u16()?);
        if count > MAX_PARTIES {
            return Err(Malformed);
        }
        let verification_shares = (0..count)
            .map(|_| {
                let party = PartyId::new(reader.u16()?.into()).ok_or(Malformed)?;
                Ok((party, published_bytes(reader.bytes(S::POINT_BYTES)?).to_vec()))
            })
            .collect::<Result<Vec<_>, Malformed>>()?;
        let suite = core::marker::PhantomData;
        let public = Self { key_id, epoch, threshold, public_key, chain_code, verification_shares, suite };
        if public.well_formed() { Ok(public) } else { Err(Malformed) }
    }

    /// Whether counts, lengths and order are right: 2 <= threshold <= parties <= [`MAX_PARTIES`], parties strictly
    /// ascending. Says nothing about the points.
    pub fn well_formed(&self) -> bool {
        let shares = &self.verification_shares;
        (2..=shares.len()).contains(&self.threshold.get())
            && shares.len() <= MAX_PARTIES
            && shares.is_sorted_by(|(a, _), (b, _)| a < b)
            && shares.iter().all(|(_, point)| point.len() == S::POINT_BYTES)
            && self.public_key.len() == S::POINT_BYTES
            && !self.key_id.is_empty()
            && self.key_id.len() <= MAX_KEY_ID_BYTES
            && self.epoch > 0
            && (S::DERIVES || self.chain_code == [0; CHAIN_CODE_BYTES])
    }

    /// Whether a signing session of this context is one of this key.
    pub(super) fn check(&self, ctx: &SessionContext) -> Result<(), SetupError> {
        if !self.well_formed() {
            return Err(SetupError::KeyPublicInvalid);
        }
        let of_this_key = self.key_id == ctx.key_id() && self.epoch == ctx.epoch();
        if !of_this_key || self.threshold != ctx.threshold() {
            return Err(if ctx.me().is_some() {
                SetupError::ShareMismatch
            } else {
                SetupError::KeyPublicInvalid
            });
        }
        if !ctx.parties().minus(&self.parties()).is_empty() {
            return Err(SetupError::SigningSetNotOfKey);
        }
        if ctx.parties().len() < ctx.threshold().get() {
            return Err(SetupError::SigningSetTooSmall);
        }
        Ok(())
    }
}

/// All that one party keeps for a key.
#[must_use]
pub struct KeyShare<S: Suite> {
    pub(super) public: KeyPublic<S>,
    pub(super) party: PartyId,
    pub(super) signing_share: SecretScalar<S>,
}

/// For tests: shares as a party that does not follow the rules would have them.
#[cfg(feature = "forge")]
impl<S: Suite> KeyShare<S> {
    /// The share under other public data, as a party would use that has kept a share of an older epoch.
    pub fn posing_as(self, public: &KeyPublic<S>) -> Self {
        Self { public: public.clone(), ..self }
    }

    /// The share with its secret off by one, as a dealer would need it to deal something else than its contribution.
    pub fn shifted(mut self) -> Self {
        let one = super::suite::one::<S>();
        *self.signing_share.expose_mut() = SigningShare::new(self.signing_share.expose().to_scalar() + one);
        self
    }
}

impl<S: Suite> KeyShare<S> {
    /// The public data of the key.
    pub fn public(&self) -> &KeyPublic<S> {
        &self.public
    }

    /// Whose share it is.
    pub fn party(&self) -> PartyId {
        self.party
    }

    /// Seals the share. Its label (family, key, party, epoch, threshold) stays readable and is bound to it.
    pub fn seal(&self, key: &DataKey, rng: &mut dyn CryptoRng) -> Option<Vec<u8>> {
        let mut writer = Writer::with_capacity(2048);
        self.encode(&mut writer);
        let secret = Zeroizing::new(writer.finish());
        key.seal(SealKind::KeyShare, &self.label().encode(), &[], &secret, rng)
    }

    /// Opens a sealed share that must be the one of `expected`, and checks that it is whole.
    pub fn unseal(key: &DataKey, blob: &[u8], expected: &ShareLabel) -> Result<Self, OpenShareError> {
        let share = share::unseal(key, blob, expected, Self::decode)?;
        if &share.label() == expected { Ok(share) } else { Err(OpenShareError::Invalid) }
    }

    /// The readable label of the sealed share.
    pub fn label(&self) -> ShareLabel {
        ShareLabel {
            family: S::FAMILY.to_owned(),
            key_id: self.public.key_id.clone(),
            party: self.party,
            epoch: self.public.epoch,
            threshold: self.public.threshold,
        }
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        self.public.encode(writer);
        writer.u16(self.party.get());
        writer.bytes(&encode_scalar_of::<S>(&self.signing_share.expose().to_scalar()));
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let public = KeyPublic::<S>::decode(reader)?;
        let party = PartyId::new(reader.u16()?.into()).ok_or(Malformed)?;
        let scalar = decode_scalar::<S>(reader.bytes(SCALAR_BYTES)?).ok_or(Malformed)?;
        let signing_share = Secret::new(SigningShare::new(scalar));
        let point = encode_point::<S>(&published(S::mul_generator(&scalar))).ok_or(Malformed)?;
        if !public.verification_shares.contains(&(party, point)) {
            return Err(Malformed);
        }
        Ok(Self { public, party, signing_share })
    }
}
