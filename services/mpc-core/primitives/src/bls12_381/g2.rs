//! The group G2, where signatures live, the curve it is a part of, and messages hashed to it.
//!
//! Encodings are those of the IETF BLS draft and of Ethereum ("ZCash format"): big-endian, flags in the top three bits.

use blst::{
    BLST_ERROR, blst_hash_to_g2, blst_p2, blst_p2_add_or_double_affine, blst_p2_affine,
    blst_p2_affine_compress, blst_p2_affine_generator, blst_p2_affine_in_g2, blst_p2_affine_is_inf,
    blst_p2_affine_serialize, blst_p2_deserialize, blst_p2_mult, blst_p2_uncompress, blst_sign_pk_in_g1,
    blst_sk_to_pk_in_g2,
};
use zeroize::Zeroize;

use super::affine::{affine2, negate2};
use super::combine::combine2;
use super::scalar::Scalar;
use crate::Secret;
use crate::declassify::published;
use crate::shamir::Weights;

/// Bytes of a compressed point of G2.
pub const G2_COMPRESSED_BYTES: usize = 96;
/// Bytes of an uncompressed point of G2.
pub const G2_UNCOMPRESSED_BYTES: usize = 192;

/// An element of the subgroup of prime order over Fp2, where signatures live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct G2(pub(super) blst_p2_affine);

/// A decoded signature: a point of the curve over Fp2 other than the identity, perhaps outside the subgroup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UncheckedG2(pub(super) blst_p2_affine);

impl G2 {
    /// The standard generator.
    pub fn generator() -> Self {
        // SAFETY: blst returns the address of a constant.
        Self(unsafe { *blst_p2_affine_generator() })
    }

    /// The generator times a secret, in constant time.
    pub fn mul_generator(scalar: &Secret<Scalar>) -> Self {
        let mut raw = scalar.expose().to_raw();
        let mut product = blst_p2::default();
        // SAFETY: valid places.
        unsafe { blst_sk_to_pk_in_g2(&mut product, &raw) };
        raw.zeroize();
        // A public key, or a point that only goes into a check whose result is published.
        Self(published(affine2(&product)))
    }

    /// The sum of two elements. Variable time: everything is public.
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = blst_p2::default();
        for point in [self, other] {
            // SAFETY: valid places; the addition is complete and may work in place.
            unsafe { blst_p2_add_or_double_affine(&mut sum, &sum, &point.0) };
        }
        Self(affine2(&sum))
    }

    /// Whether it is the identity, which no decoder accepts.
    pub fn is_identity(&self) -> bool {
        // SAFETY: a valid place.
        unsafe { blst_p2_affine_is_inf(&self.0) }
    }

    /// `None` unless a canonical encoding of an element of the subgroup other than the identity.
    pub fn from_compressed(bytes: &[u8; G2_COMPRESSED_BYTES]) -> Option<Self> {
        UncheckedG2::from_compressed(bytes)?.check()
    }

    /// `None` unless a canonical encoding of an element of the subgroup other than the identity.
    pub fn from_uncompressed(bytes: &[u8; G2_UNCOMPRESSED_BYTES]) -> Option<Self> {
        let mut point = blst_p2_affine::default();
        let flagged = bytes.first().is_none_or(|first| first & 0x80 != 0);
        // SAFETY: `bytes` has the 192 bytes that blst reads.
        let decoded = unsafe { blst_p2_deserialize(&mut point, bytes.as_ptr()) } == BLST_ERROR::BLST_SUCCESS;
        // SAFETY: a valid place.
        let valid = decoded && !flagged && !unsafe { blst_p2_affine_is_inf(&point) };
        if valid { UncheckedG2(point).check() } else { None }
    }

    /// 192 bytes.
    pub fn to_uncompressed(&self) -> [u8; G2_UNCOMPRESSED_BYTES] {
        UncheckedG2(self.0).to_uncompressed()
    }

    /// 96 bytes.
    pub fn to_compressed(&self) -> [u8; G2_COMPRESSED_BYTES] {
        UncheckedG2(self.0).to_compressed()
    }
}

impl From<G2> for UncheckedG2 {
    fn from(point: G2) -> Self {
        Self(point.0)
    }
}

impl UncheckedG2 {
    /// `None` unless a canonical encoding of a point on the curve other than the identity.
    pub fn from_compressed(bytes: &[u8; G2_COMPRESSED_BYTES]) -> Option<Self> {
        let mut point = blst_p2_affine::default();
        // SAFETY: `bytes` has the 96 bytes that blst reads.
        let decoded = unsafe { blst_p2_uncompress(&mut point, bytes.as_ptr()) } == BLST_ERROR::BLST_SUCCESS;
        // SAFETY: a valid place.
        (decoded && !unsafe { blst_p2_affine_is_inf(&point) }).then_some(Self(point))
    }

    /// 96 bytes.
    pub fn to_compressed(&self) -> [u8; G2_COMPRESSED_BYTES] {
        let mut bytes = [0u8; G2_COMPRESSED_BYTES];
        // SAFETY: blst writes 96 bytes.
        unsafe { blst_p2_affine_compress(bytes.as_mut_ptr(), &self.0) };
        bytes
    }

    /// 192 bytes.
    pub fn to_uncompressed(&self) -> [u8; G2_UNCOMPRESSED_BYTES] {
        let mut bytes = [0u8; G2_UNCOMPRESSED_BYTES];
        // SAFETY: blst writes 192 bytes.
        unsafe { blst_p2_affine_serialize(bytes.as_mut_ptr(), &self.0) };
        bytes
    }

    /// The same point, known to be in the subgroup; `None` if it is not.
    pub fn check(&self) -> Option<G2> {
        // SAFETY: a valid point of the curve.
        unsafe { blst_p2_affine_in_g2(&self.0) }.then_some(G2(self.0))
    }

    /// The Lagrange combination of partial signatures. If one of them is outside the subgroup the result is some point
    /// or the identity, so it is a signature only once [`super::verify`] has said so.
    pub fn combine(points: &[UncheckedG2], weights: &Weights) -> Self {
        let mut affine: Vec<blst_p2_affine> = points.iter().map(|point| point.0).collect();
        match weights {
            Weights::Large(scalars) => {
                let raw: Vec<[u8; 32]> = scalars.iter().map(|scalar| scalar.to_raw().b).collect();
                Self(affine2(&combine2(&affine, &raw, 255)))
            }
            Weights::Small { numerators, denominator } => {
                for (point, numerator) in affine.iter_mut().zip(numerators) {
                    if *numerator < 0 {
                        *point = negate2(point);
                    }
                }
                let raw: Vec<[u8; 32]> = numerators.iter().map(|n| little_endian(n.unsigned_abs())).collect();
                let bits = numerators.iter().map(|n| bit_length(n.unsigned_abs())).max().unwrap_or(1);
                let mut sum = combine2(&affine, &raw, bits);
                if *denominator != 1 {
                    let inverse = Scalar::from_u64(*denominator).inverse_of_public().to_raw();
                    let unscaled = sum;
                    // SAFETY: valid places; the scalar has the 32 bytes that 255 bits take.
                    unsafe { blst_p2_mult(&mut sum, &unscaled, inverse.b.as_ptr(), 255) };
                }
                Self(affine2(&sum))
            }
        }
    }
}

/// A message hashed to G2, ready to be signed or verified any number of times.
#[derive(Clone)]
pub struct HashedMessage {
    projective: blst_p2,
    pub(super) affine: blst_p2_affine,
}

impl HashedMessage {
    /// Hash-to-curve of RFC 9380, suite BLS12381G2_XMD:SHA-256_SSWU_RO_, with this domain separation tag.
    pub fn new(message: &[u8], domain: &[u8]) -> Self {
        let mut projective = blst_p2::default();
        // SAFETY: both slices are readable for their length; there is no augmentation.
        unsafe {
            blst_hash_to_g2(
                &mut projective,
                message.as_ptr(),
                message.len(),
                domain.as_ptr(),
                domain.len(),
                core::ptr::null(),
                0,
            );
        }
        Self { projective, affine: affine2(&projective) }
    }

    /// The hash times a secret, in constant time.
    pub fn sign(&self, key: &Secret<Scalar>) -> G2 {
        let mut raw = key.expose().to_raw();
        let mut out = blst_p2::default();
        // SAFETY: valid places.
        unsafe { blst_sign_pk_in_g1(&mut out, &self.projective, &raw) };
        raw.zeroize();
        G2(published(affine2(&out))) // a partial signature
    }
}

fn little_endian(number: u64) -> [u8; 32] {
    let mut bytes = [0u8; 32];
    let (low, _) = bytes.split_at_mut(8);
    low.copy_from_slice(&number.to_le_bytes());
    bytes
}

fn bit_length(number: u64) -> usize {
    usize::try_from(u64::BITS - number.leading_zeros()).unwrap_or(64).max(1)
}
