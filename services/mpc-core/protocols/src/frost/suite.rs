//! The two signature schemes: their differences, and the arithmetic that key generation needs beside the
//! crates' own.

use curve25519_dalek_for_frost as dalek;
use engine::{PartyId, ProtocolId, Secret};
use frost_core::keys::{KeyPackage, PublicKeyPackage, SigningShare};
use frost_core::{Ciphersuite, Element, Field, Group, Identifier, Scalar, VerifyingKey};
use frost_ed25519::Ed25519Sha512;
use frost_secp256k1_tr::Secp256K1Sha256TR;
use frost_secp256k1_tr::keys::Tweak;
use k256::elliptic_curve::bigint::U512;
use k256::elliptic_curve::ops::{LinearCombination, MulByGenerator, Reduce};
use k256::elliptic_curve::point::AffineCoordinates;
use k256_for_frost as k256;
use primitives::secp256k1::{decode_point, encode_scalar};
use zeroize::{Zeroize, Zeroizing};

use crate::MAX_MESSAGE_BYTES;
use crate::bip32::{CHAIN_CODE_BYTES, DerivationPath, derive};
use crate::dealing::Curve;
pub(super) use crate::hedged::HedgedRng;

use super::target::Taproot;

pub use crate::dealing::SCALAR_BYTES;
/// Bytes of the key that outside verifiers take, in both suites.
pub const VERIFIER_KEY_BYTES: usize = 32;

/// A signature scheme that FROST makes signatures of.
pub trait Suite:
    Curve<Point = Element<<Self as Suite>::Cipher>, Scalar = Scalar<<Self as Suite>::Cipher>>
    + Curve<Scalar: Zeroize>
{
    /// The description of the suite in the FROST crate.
    type Cipher: Ciphersuite;

    /// Which protocols can use the shares.
    const FAMILY: &'static str;
    /// Whether keys have a chain code, children and Taproot outputs.
    const DERIVES: bool;
    /// Key generation.
    const KEYGEN: ProtocolId;
    /// Signing in two rounds.
    const SIGN: ProtocolId;
    /// A presignature.
    const PRESIGN: ProtocolId;
    /// Signing with a presignature.
    const SIGN_PRESIGNED: ProtocolId;
    /// New shares for the same parties.
    const REFRESH: ProtocolId;
    /// New shares for other parties, or with another threshold.
    const RESHARE: ProtocolId;

    /// Whether `point` begins as the one encoding of a point does that is accepted here.
    fn canonical(point: &[u8]) -> bool;

    /// A point that this party encoded itself and kept sealed: the costly check that it is of prime order is left out.
    fn decode_own(point: &[u8]) -> Option<Element<Self::Cipher>>;

    /// Whether a message of this length can be signed.
    fn message_fits(length: usize) -> bool;

    /// The scalar that has to be added to the secret key to come to the child at `path`. `None` if there is no such
    /// child.
    fn derivation_tweak(
        public_key: &Element<Self::Cipher>,
        chain_code: &[u8; CHAIN_CODE_BYTES],
        path: &DerivationPath,
    ) -> Option<Scalar<Self::Cipher>>;

    /// One party's material after Taproot's tweak. `None` if the scheme has none.
    fn tweak_share(key: KeyPackage<Self::Cipher>, taproot: &Taproot) -> Option<KeyPackage<Self::Cipher>>;

    /// All parties' public material after Taproot's tweak. `None` if the scheme has none.
    fn tweak_public(
        key: PublicKeyPackage<Self::Cipher>,
        taproot: &Taproot,
    ) -> Option<PublicKeyPackage<Self::Cipher>>;

    /// The key as outside verifiers take it.
    fn verifier_key(key: &VerifyingKey<Self::Cipher>) -> Option<[u8; VERIFIER_KEY_BYTES]>;
}

/// Ed25519 (RFC 8032), FROST(Ed25519, SHA-512).
#[derive(Debug)]
pub struct Ed25519;

/// BIP-340 over secp256k1, with BIP-32 children and BIP-341 output keys.
#[derive(Debug)]
pub struct Bip340;

/// The functions that both suites' groups have from their crate.
macro_rules! group_of_the_crate {
    () => {
        fn identity() -> Self::Point {
            identity::<Self>()
        }

        fn add_points(a: &Self::Point, b: &Self::Point) -> Self::Point {
            a + b
        }

        fn mul_point(point: &Self::Point, scalar: &Self::Scalar) -> Self::Point {
            point * scalar
        }

        fn encode_point(point: &Self::Point) -> Option<Vec<u8>> {
            encode_point::<Self>(point)
        }

        fn decode_point(bytes: &[u8]) -> Option<Self::Point> {
            decode_point_of::<Self>(bytes)
        }

        fn scalar(number: u16) -> Self::Scalar {
            Self::Scalar::from(u64::from(number))
        }

        fn add(a: &Self::Scalar, b: &Self::Scalar) -> Self::Scalar {
            a + b
        }

        fn sub(a: &Self::Scalar, b: &Self::Scalar) -> Self::Scalar {
            a - b
        }

        fn mul(a: &Self::Scalar, b: &Self::Scalar) -> Self::Scalar {
            a * b
        }

        fn invert_public(scalar: &Self::Scalar) -> Option<Self::Scalar> {
            FieldOf::<Self>::invert(scalar).ok()
        }

        fn encode_scalar(scalar: &Self::Scalar) -> Zeroizing<Vec<u8>> {
            encode_scalar_of::<Self>(scalar)
        }

        fn decode_scalar(bytes: &[u8]) -> Option<Self::Scalar> {
            decode_scalar::<Self>(bytes)
        }
    };
}

impl Curve for Ed25519 {
    type Point = dalek::EdwardsPoint;
    type Scalar = dalek::Scalar;

    const POINT_BYTES: usize = 32;

    group_of_the_crate!();

    fn mul_generator(scalar: &dalek::Scalar) -> dalek::EdwardsPoint {
        dalek::EdwardsPoint::mul_base(scalar)
    }

    fn combine_public(
        a: &dalek::Scalar,
        b: &dalek::Scalar,
        point: &dalek::EdwardsPoint,
    ) -> dalek::EdwardsPoint {
        dalek::EdwardsPoint::vartime_double_scalar_mul_basepoint(b, point, a)
    }

    fn reduce_wide(bytes: &[u8; 64]) -> dalek::Scalar {
        dalek::Scalar::from_bytes_mod_order_wide(bytes)
    }
}

impl Curve for Bip340 {
    type Point = k256::ProjectivePoint;
    type Scalar = k256::Scalar;

    const POINT_BYTES: usize = 33;

    group_of_the_crate!();

    fn mul_generator(scalar: &k256::Scalar) -> k256::ProjectivePoint {
        k256::ProjectivePoint::mul_by_generator(scalar)
    }

    fn combine_public(
        a: &k256::Scalar,
        b: &k256::Scalar,
        point: &k256::ProjectivePoint,
    ) -> k256::ProjectivePoint {
        k256::ProjectivePoint::lincomb(&k256::ProjectivePoint::GENERATOR, a, point, b)
    }

    fn reduce_wide(bytes: &[u8; 64]) -> k256::Scalar {
        <k256::Scalar as Reduce<U512>>::reduce(U512::from_be_slice(bytes))
    }
}

impl Suite for Ed25519 {
    type Cipher = Ed25519Sha512;

    const FAMILY: &'static str = "frost-ed25519";
    const DERIVES: bool = false;
    const KEYGEN: ProtocolId = ProtocolId { number: 16, name: "ed25519/keygen/2" };
    const SIGN: ProtocolId = ProtocolId { number: 17, name: "ed25519/sign/1" };
    const PRESIGN: ProtocolId = ProtocolId { number: 18, name: "ed25519/presign/1" };
    const SIGN_PRESIGNED: ProtocolId = ProtocolId { number: 19, name: "ed25519/sign-presigned/1" };
    const REFRESH: ProtocolId = ProtocolId { number: 20, name: "ed25519/refresh/2" };
    const RESHARE: ProtocolId = ProtocolId { number: 21, name: "ed25519/reshare/2" };

    /// The crate refuses every encoding but one.
    fn canonical(_: &[u8]) -> bool {
        true
    }

    fn decode_own(point: &[u8]) -> Option<dalek::EdwardsPoint> {
        dalek::edwards::CompressedEdwardsY::from_slice(point).ok()?.decompress()
    }

    fn message_fits(length: usize) -> bool {
        length <= MAX_MESSAGE_BYTES
    }

    fn derivation_tweak(
        _: &dalek::EdwardsPoint,
        _: &[u8; CHAIN_CODE_BYTES],
        path: &DerivationPath,
    ) -> Option<dalek::Scalar> {
        path.steps().is_empty().then_some(dalek::Scalar::ZERO)
    }

    fn tweak_share(_: KeyPackage<Ed25519Sha512>, _: &Taproot) -> Option<KeyPackage<Ed25519Sha512>> {
        None
    }

    fn tweak_public(
        _: PublicKeyPackage<Ed25519Sha512>,
        _: &Taproot,
    ) -> Option<PublicKeyPackage<Ed25519Sha512>> {
        None
    }

    fn verifier_key(key: &VerifyingKey<Ed25519Sha512>) -> Option<[u8; VERIFIER_KEY_BYTES]> {
        Some(key.to_element().compress().to_bytes())
    }
}

impl Suite for Bip340 {
    type Cipher = Secp256K1Sha256TR;

    const FAMILY: &'static str = "frost-bip340";
    const DERIVES: bool = true;
    const KEYGEN: ProtocolId = ProtocolId { number: 24, name: "bip340/keygen/2" };
    const SIGN: ProtocolId = ProtocolId { number: 25, name: "bip340/sign/1" };
    const PRESIGN: ProtocolId = ProtocolId { number: 26, name: "bip340/presign/1" };
    const SIGN_PRESIGNED: ProtocolId = ProtocolId { number: 27, name: "bip340/sign-presigned/1" };
    const REFRESH: ProtocolId = ProtocolId { number: 28, name: "bip340/refresh/2" };
    const RESHARE: ProtocolId = ProtocolId { number: 29, name: "bip340/reshare/2" };

    /// The crate also takes the "compact" form, a second encoding of half the points.
    fn canonical(point: &[u8]) -> bool {
        matches!(point, [2 | 3, ..])
    }

    /// All points of this curve are of prime order.
    fn decode_own(point: &[u8]) -> Option<k256::ProjectivePoint> {
        decode_point_of::<Self>(point)
    }

    fn message_fits(length: usize) -> bool {
        length == 32
    }

    fn derivation_tweak(
        public_key: &k256::ProjectivePoint,
        chain_code: &[u8; CHAIN_CODE_BYTES],
        path: &DerivationPath,
    ) -> Option<k256::Scalar> {
        if path.steps().is_empty() {
            return Some(k256::Scalar::ZERO);
        }
        // The library of the rest of this core, one generation ahead of the crates'.
        let public_key = decode_point(&encode_point::<Self>(public_key)?.as_slice().try_into().ok()?)?;
        let tweak = derive(&public_key, chain_code, path)?.tweak;
        decode_scalar::<Self>(&encode_scalar(&tweak))
    }

    fn tweak_share(
        key: KeyPackage<Secp256K1Sha256TR>,
        taproot: &Taproot,
    ) -> Option<KeyPackage<Secp256K1Sha256TR>> {
        Some(key.tweak(taproot.root()))
    }

    fn tweak_public(
        key: PublicKeyPackage<Secp256K1Sha256TR>,
        taproot: &Taproot,
    ) -> Option<PublicKeyPackage<Secp256K1Sha256TR>> {
        Some(key.tweak(taproot.root()))
    }

    /// The x coordinate (BIP-340).
    fn verifier_key(key: &VerifyingKey<Secp256K1Sha256TR>) -> Option<[u8; VERIFIER_KEY_BYTES]> {
        Some(key.to_element().to_affine().x().into())
    }
}

/// A point of a suite's group.
pub type PointOf<S> = Element<<S as Suite>::Cipher>;
/// A scalar of a suite's group.
pub type ScalarOf<S> = Scalar<<S as Suite>::Cipher>;
type GroupOf<S> = <<S as Suite>::Cipher as Ciphersuite>::Group;
type FieldOf<S> = <GroupOf<S> as Group>::Field;

/// A secret scalar in the crates' own wrapper, which can be wiped.
pub type SecretScalar<S> = Secret<SigningShare<<S as Suite>::Cipher>>;

/// The identity.
pub(super) fn identity<S: Suite>() -> PointOf<S> {
    GroupOf::<S>::identity()
}

/// Zero.
pub(super) fn zero<S: Suite>() -> ScalarOf<S> {
    FieldOf::<S>::zero()
}

/// One.
#[cfg(feature = "forge")]
pub(super) fn one<S: Suite>() -> ScalarOf<S> {
    FieldOf::<S>::one()
}

/// Compressed. `None` for the identity, which no decoder accepts.
pub fn encode_point<S: Suite>(point: &PointOf<S>) -> Option<Vec<u8>> {
    GroupOf::<S>::serialize(point).ok().map(|bytes| bytes.as_ref().to_vec())
}

/// The point, unless `bytes` is not the canonical encoding of one of prime order.
pub fn decode_point_of<S: Suite>(bytes: &[u8]) -> Option<PointOf<S>> {
    S::canonical(bytes).then_some(())?;
    GroupOf::<S>::deserialize(&bytes.try_into().ok()?).ok()
}

/// The encoding of the suite.
pub(super) fn encode_scalar_of<S: Suite>(scalar: &ScalarOf<S>) -> Zeroizing<Vec<u8>> {
    let mut bytes = FieldOf::<S>::serialize(scalar);
    let encoding = Zeroizing::new(bytes.as_ref().to_vec());
    bytes.as_mut().zeroize();
    encoding
}

/// The scalar, unless `bytes` is not below the group order.
#[inline(never)] // so that the constant-time check can name it: whether an own scalar is canonical is no secret
pub(super) fn decode_scalar<S: Suite>(bytes: &[u8]) -> Option<ScalarOf<S>> {
    FieldOf::<S>::deserialize(&bytes.try_into().ok()?).ok()
}

/// The point at which a party's share is the value of the polynomial; also its name within the crates.
pub(super) fn identifier<S: Suite>(party: PartyId) -> Option<Identifier<S::Cipher>> {
    Identifier::try_from(party.get()).ok()
}

impl frost_ed25519::rand_core::RngCore for HedgedRng {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        u32::from_be_bytes(bytes)
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_be_bytes(bytes)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.fill(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), frost_ed25519::rand_core::Error> {
        self.fill(bytes);
        Ok(())
    }
}

impl frost_ed25519::rand_core::CryptoRng for HedgedRng {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every encoding whose y is at least the modulus 2^255 - 19, with either sign, and every point of small order.
    #[test]
    fn an_ed25519_point_has_one_encoding_and_is_of_prime_order() {
        for low in 0xed..=0xffu8 {
            for top in [0x7f, 0xff] {
                let mut bytes = [0xff; 32];
                (bytes[0], bytes[31]) = (low, top);
                assert!(Ed25519::decode_point(&bytes).is_none(), "{low:x} {top:x}");
            }
        }
        let generator = Ed25519::mul_generator(&dalek::Scalar::ONE);
        for torsion in dalek::constants::EIGHT_TORSION {
            for point in [torsion, generator + torsion] {
                let bytes = point.compress().to_bytes();
                let genuine = point == generator;
                assert_eq!(Ed25519::decode_point(&bytes).is_some(), genuine);
                let mut other_sign = bytes;
                other_sign[31] ^= 0x80;
                assert_eq!(Ed25519::decode_point(&other_sign).is_some(), genuine);
            }
        }
    }
}
