//! The group G1, where public keys live, and the curve it is a part of.
//!
//! Encodings are those of the IETF BLS draft and of Ethereum ("ZCash format"): big-endian, flags in the top three bits.

use blst::{
    BLST_ERROR, blst_hash_to_g1, blst_p1, blst_p1_add_or_double_affine, blst_p1_affine,
    blst_p1_affine_compress, blst_p1_affine_generator, blst_p1_affine_in_g1, blst_p1_affine_is_inf,
    blst_p1_affine_serialize, blst_p1_deserialize, blst_p1_from_affine, blst_p1_is_inf, blst_p1_uncompress,
    blst_sign_pk_in_g2,
};
use zeroize::Zeroize;

use super::affine::{affine1, negate1};
use super::combine::{combine1, combine1_in_subgroup, horner, multiply1};
use super::generator::generator_table;
use super::scalar::Scalar;
use crate::Secret;
use crate::declassify::published;

/// Bytes of a compressed point of G1.
pub const G1_COMPRESSED_BYTES: usize = 48;
/// Bytes of an uncompressed point of G1. Decoding costs no square root, which matters where there are hundreds.
pub const G1_UNCOMPRESSED_BYTES: usize = 96;

/// 1 - z for the curve's parameter z: maps every point of the curve over Fp into G1, and G1 onto itself.
const EFFECTIVE_COFACTOR_G1: u64 = 0xd201_0000_0001_0001;

/// A point of the curve over Fp other than the identity, perhaps outside the subgroup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CurveG1(pub(super) blst_p1_affine);

/// An element of the subgroup of prime order over Fp, where public keys live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct G1(pub(super) blst_p1_affine);

impl CurveG1 {
    /// `None` unless a canonical encoding of a point on the curve other than the identity.
    pub fn from_uncompressed(bytes: &[u8; G1_UNCOMPRESSED_BYTES]) -> Option<Self> {
        let mut point = blst_p1_affine::default();
        // An uncompressed encoding has no compression bit; blst would otherwise read a compressed one.
        let flagged = bytes.first().is_none_or(|first| first & 0x80 != 0);
        // SAFETY: `bytes` has the 96 bytes that blst reads.
        let decoded = unsafe { blst_p1_deserialize(&mut point, bytes.as_ptr()) } == BLST_ERROR::BLST_SUCCESS;
        // SAFETY: a valid place.
        (decoded && !flagged && !unsafe { blst_p1_affine_is_inf(&point) }).then_some(Self(point))
    }

    /// 96 bytes.
    pub fn to_uncompressed(&self) -> [u8; G1_UNCOMPRESSED_BYTES] {
        let mut bytes = [0u8; G1_UNCOMPRESSED_BYTES];
        // SAFETY: blst writes 96 bytes.
        unsafe { blst_p1_affine_serialize(bytes.as_mut_ptr(), &self.0) };
        bytes
    }

    /// The same point, known to be in the subgroup; `None` if it is not.
    pub fn check(&self) -> Option<G1> {
        // SAFETY: a valid point of the curve.
        unsafe { blst_p1_affine_in_g1(&self.0) }.then_some(G1(self.0))
    }

    /// The sum of points; `None` if it is the identity.
    pub fn sum<'a>(points: impl Iterator<Item = &'a CurveG1>) -> Option<Self> {
        let mut sum = blst_p1::default();
        for point in points {
            // SAFETY: valid places; the addition is complete and may work in place.
            unsafe { blst_p1_add_or_double_affine(&mut sum, &sum, &point.0) };
        }
        let sum = affine1(&sum);
        // SAFETY: a valid place.
        (!unsafe { blst_p1_affine_is_inf(&sum) }).then_some(Self(sum))
    }

    /// Whether sum over k of x^k * coefficients\[k\] is `expected`: the check of a share against Feldman's commitments.
    pub fn evaluates_to(coefficients: &[CurveG1], x: u16, expected: &G1) -> bool {
        affine1(&horner(coefficients.iter().map(|point| &point.0), x)) == expected.0
    }

    /// Whether a combination is the identity up to a point of cofactor order. Complete for any points of the curve.
    pub fn combination_vanishes(points: &[CurveG1], scalars: &[Scalar]) -> bool {
        let affine: Vec<blst_p1_affine> = points.iter().map(|point| point.0).collect();
        let raw: Vec<[u8; 32]> = scalars.iter().map(|scalar| scalar.to_raw().b).collect();
        let cleared = multiply1(&combine1(&affine, &raw, 255), &EFFECTIVE_COFACTOR_G1.to_le_bytes());
        // SAFETY: a valid place.
        unsafe { blst_p1_is_inf(&cleared) }
    }
}

impl From<G1> for CurveG1 {
    fn from(point: G1) -> Self {
        Self(point.0)
    }
}

impl G1 {
    /// The standard generator.
    pub fn generator() -> Self {
        // SAFETY: blst returns the address of a constant.
        Self(unsafe { *blst_p1_affine_generator() })
    }

    /// The generator times a secret, in constant time.
    pub fn mul_generator(scalar: &Secret<Scalar>) -> Self {
        let mut raw = scalar.expose().to_raw();
        let product = generator_table().multiply(&raw.b);
        raw.zeroize();
        Self(published(affine1(&product))) // a commitment, or a verification share
    }

    /// `None` unless a canonical encoding of an element of the subgroup other than the identity.
    pub fn from_compressed(bytes: &[u8; G1_COMPRESSED_BYTES]) -> Option<Self> {
        // SAFETY: a valid point of the curve.
        Self::from_own_compressed(bytes).filter(|point| unsafe { blst_p1_affine_in_g1(&point.0) })
    }

    /// An element that this party has checked before and kept sealed since: not checked again to be in the subgroup.
    pub fn from_own_compressed(bytes: &[u8; G1_COMPRESSED_BYTES]) -> Option<Self> {
        let mut point = blst_p1_affine::default();
        // SAFETY: `bytes` has the 48 bytes that blst reads.
        let decoded = unsafe { blst_p1_uncompress(&mut point, bytes.as_ptr()) } == BLST_ERROR::BLST_SUCCESS;
        // SAFETY: a valid place.
        (decoded && !unsafe { blst_p1_affine_is_inf(&point) }).then_some(Self(point))
    }

    /// 48 bytes.
    pub fn to_compressed(&self) -> [u8; G1_COMPRESSED_BYTES] {
        let mut bytes = [0u8; G1_COMPRESSED_BYTES];
        // SAFETY: blst writes 48 bytes.
        unsafe { blst_p1_affine_compress(bytes.as_mut_ptr(), &self.0) };
        bytes
    }

    /// 96 bytes.
    pub fn to_uncompressed(&self) -> [u8; G1_UNCOMPRESSED_BYTES] {
        CurveG1(self.0).to_uncompressed()
    }

    /// The identity, which no decoder accepts.
    pub fn identity() -> Self {
        Self(blst_p1_affine::default())
    }

    /// The sum of two elements. Variable time: everything is public.
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = blst_p1::default();
        for point in [self, other] {
            // SAFETY: valid places; the addition is complete and may work in place.
            unsafe { blst_p1_add_or_double_affine(&mut sum, &sum, &point.0) };
        }
        Self(affine1(&sum))
    }

    /// A multiple. Variable time: everything is public.
    pub fn times_public(&self, scalar: &Scalar) -> Self {
        Self(affine1(&combine1(&[self.0], &[scalar.to_raw().b], 255)))
    }

    /// A secret multiple that is published, in constant time.
    pub fn times_secret(&self, scalar: &Secret<Scalar>) -> Self {
        let mut raw = scalar.expose().to_raw();
        let (mut base, mut product) = (blst_p1::default(), blst_p1::default());
        // SAFETY: valid places.
        unsafe {
            blst_p1_from_affine(&mut base, &self.0);
            blst_sign_pk_in_g2(&mut product, &base, &raw);
        }
        raw.zeroize();
        Self(published(affine1(&product)))
    }

    /// The negative.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self(negate1(&self.0))
    }

    /// Sum of scalar times element over pairs of both lists. Variable time: everything is public.
    pub fn combination(points: &[G1], scalars: &[Scalar]) -> Self {
        let affine: Vec<blst_p1_affine> = points.iter().map(|point| point.0).collect();
        let raw: Vec<[u8; 32]> = scalars.iter().map(|scalar| scalar.to_raw().b).collect();
        Self(affine1(&combine1_in_subgroup(&affine, &raw)))
    }

    /// Hash-to-curve of RFC 9380, suite BLS12381G1_XMD:SHA-256_SSWU_RO_, with this domain separation tag. Nobody knows
    /// the logarithm of the result.
    pub fn hash(message: &[u8], domain: &[u8]) -> Self {
        let mut projective = blst_p1::default();
        // SAFETY: both slices are readable for their length; there is no augmentation.
        unsafe {
            blst_hash_to_g1(
                &mut projective,
                message.as_ptr(),
                message.len(),
                domain.as_ptr(),
                domain.len(),
                core::ptr::null(),
                0,
            );
        }
        Self(affine1(&projective))
    }

    /// Whether it is the identity.
    pub fn is_identity(&self) -> bool {
        // SAFETY: a valid place.
        unsafe { blst_p1_affine_is_inf(&self.0) }
    }

    /// Sum over k of x^k * coefficients\[k\]. Variable time: everything is public.
    pub fn evaluate(coefficients: &[G1], x: u16) -> Self {
        Self(affine1(&horner(coefficients.iter().map(|point| &point.0), x)))
    }
}
