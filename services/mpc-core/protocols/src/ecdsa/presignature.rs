//! A presignature: everything of a signature but the message. It is used once, and it is worth the key share to whoever
//! can use it twice.

use engine::seal::{DataKey, SealKind, UnsealFailed};
use engine::wire::{Malformed, Reader, Writer};
use engine::{MAX_KEY_ID_BYTES, MAX_PARTIES, PartyId, PartySet, Secret, SessionContext};
use primitives::declassify::published;
use primitives::secp256k1::{
    Point, Scalar, decode_point, decode_scalar, encode_point, encode_scalar, mul_generator, reduce_wide,
    x_coordinate,
};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::signature::DIGEST_BYTES;
use super::tags;
use crate::bip32::DerivationPath;
use crate::hash_input::{HashInput, hash_input};

/// Bytes of the number that names a presignature, the same at all its parties.
pub const PRESIGNATURE_ID_BYTES: usize = 32;

const KEY_DIGEST_BYTES: usize = 32;

const SEAL_LABEL: &[u8] = b"ecdsa-secp256k1 presignature 1";

/// One party's contribution to a presignature. Not `Clone`: signing takes it by value.
#[must_use]
pub struct Presignature {
    pub(super) id: [u8; PRESIGNATURE_ID_BYTES],
    pub(super) party: PartyId,
    pub(super) signers: PartySet,
    pub(super) key_id: String,
    pub(super) epoch: u32,
    pub(super) path: DerivationPath,
    /// Names the public data that its makers held of the key.
    pub(super) key_digest: [u8; KEY_DIGEST_BYTES],
    /// The key it signs for.
    pub(super) child_key: Point,
    pub(super) nonce_point: Point,
    /// u_i: shares of nonce·mask.
    pub(super) masked_nonce: Secret<Scalar>,
    /// φ_i: shares of the mask.
    pub(super) mask: Secret<Scalar>,
    /// v_i: shares of key·mask.
    pub(super) masked_key: Secret<Scalar>,
}

/// One party's last message: shares of nonce·mask and of (digest + r·key)·mask.
pub(super) struct PartialScalars {
    pub(super) masked_nonce: Scalar,
    pub(super) masked_signature: Scalar,
}

impl Presignature {
    /// Names it, the same at all its parties.
    pub fn id(&self) -> &[u8; PRESIGNATURE_ID_BYTES] {
        &self.id
    }

    /// The parties that have to take part in its use: all of those that made it.
    pub fn signers(&self) -> &PartySet {
        &self.signers
    }

    /// The party whose contribution it is.
    pub fn party(&self) -> PartyId {
        self.party
    }

    /// The derivation it is bound to.
    pub fn path(&self) -> &DerivationPath {
        &self.path
    }

    /// [O1] uses it up: the nonce point, shifted by `shift`·G, and this party's scalars.
    pub(super) fn sign(self, digest: &Scalar, shift: &Scalar) -> (Point, PartialScalars) {
        let nonce_point = shifted(&self.nonce_point, shift);
        let (r, _, _) = x_coordinate(&nonce_point);
        let masked_nonce = self.masked_nonce.expose() + shift * self.mask.expose();
        let masked_signature = digest * self.mask.expose() + r * self.masked_key.expose();
        (nonce_point, PartialScalars { masked_nonce, masked_signature })
    }

    /// Seals it. The values that it is bound to (id, key, epoch, party, signers, derivation) stay readable.
    pub fn seal(self, key: &DataKey, rng: &mut dyn CryptoRng) -> Option<Vec<u8>> {
        let mut public = Writer::default();
        self.encode_public(&mut public);
        let mut secret = Writer::with_capacity(256);
        secret.bytes(&self.key_digest);
        secret.bytes(&encode_point(&self.child_key));
        secret.bytes(&encode_point(&self.nonce_point));
        for scalar in [&self.masked_nonce, &self.mask, &self.masked_key] {
            secret.bytes(Zeroizing::new(encode_scalar(scalar.expose())).as_slice());
        }
        let secret = Zeroizing::new(secret.finish());
        key.seal(SealKind::Other, &public.finish(), SEAL_LABEL, &secret, rng)
    }

    /// Opens a sealed presignature.
    pub fn unseal(key: &DataKey, blob: &[u8]) -> Result<Self, UnsealFailed> {
        let unsealed = key.unseal(SealKind::Other, SEAL_LABEL, blob)?;
        Self::decode(&unsealed.public, unsealed.secret.expose()).map_err(|Malformed| UnsealFailed)
    }

    fn encode_public(&self, writer: &mut Writer) {
        writer.bytes(&self.id);
        writer.sized(self.key_id.as_bytes());
        writer.u32(self.epoch);
        writer.u16(self.party.get());
        writer.u8(u8::try_from(self.signers.len()).unwrap_or(u8::MAX));
        for signer in self.signers.iter() {
            writer.u16(signer.get());
        }
        self.path.encode(writer);
    }

    fn decode(public: &[u8], secret: &[u8]) -> Result<Self, Malformed> {
        let mut public = Reader::new(public);
        let id = *public.array()?;
        let key_id = core::str::from_utf8(public.sized(MAX_KEY_ID_BYTES)?).map_err(|_| Malformed)?.to_owned();
        let epoch = public.u32()?;
        let party = PartyId::new(public.u16()?.into()).ok_or(Malformed)?;
        let count = usize::from(public.u8()?);
        let signers = (0..count.min(MAX_PARTIES))
            .map(|_| PartyId::new(public.u16()?.into()).ok_or(Malformed))
            .collect::<Result<PartySet, Malformed>>()?;
        let path = DerivationPath::decode(&mut public)?;
        public.finish()?;
        if signers.len() != count || !signers.contains(party) {
            return Err(Malformed);
        }
        let mut secret = Reader::new(secret);
        let key_digest = published(*secret.array()?);
        let child_key = decode_point(secret.array()?).ok_or(Malformed)?;
        let nonce_point = decode_point(secret.array()?).ok_or(Malformed)?;
        let mut scalar = || decode_scalar(secret.array()?).map(Secret::new).ok_or(Malformed);
        let (masked_nonce, mask, masked_key) = (scalar()?, scalar()?, scalar()?);
        secret.finish()?;
        Ok(Self {
            id,
            party,
            signers,
            key_id,
            epoch,
            path,
            key_digest,
            child_key,
            nonce_point,
            masked_nonce,
            mask,
            masked_key,
        })
    }
}

/// [O1.1] a shift that depends on session and digest. Without it, whoever knows the nonce points of unused
/// presignatures and may choose digests forges (Groth, Shoup 2021, eprint 2021/1330). An attacker that chooses order
/// and digest can compute it beforehand, and is left with finding digests and shifts that fit a linear relation: an
/// argument about a random oracle, not their theorem.
pub(super) fn nonce_shift(
    ctx: &SessionContext,
    child_key: &Point,
    nonce_point: &Point,
    digest: &[u8; DIGEST_BYTES],
) -> Scalar {
    let depends_on =
        NonceShift { child_key: &encode_point(child_key), nonce_point: &encode_point(nonce_point), digest };
    reduce_wide(&depends_on.wide(ctx))
}

hash_input! {
    /// The shift depends on the key that signs, the nonce point before it, and the digest that is signed.
    NonceShift<'a> under tags::NONCE_SHIFT as "purpose" {
        child_key: &'a [u8],
        nonce_point: &'a [u8],
        digest: &'a [u8; DIGEST_BYTES],
    }
}

/// The nonce point moved by a shift.
pub(super) fn shifted(nonce_point: &Point, shift: &Scalar) -> Point {
    if *shift == Scalar::ZERO { *nonce_point } else { *nonce_point + mul_generator(shift) }
}
