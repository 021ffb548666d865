//! The field of integers modulo the group order r.

use core::fmt;

use blst::{
    blst_bendian_from_scalar, blst_fr, blst_fr_add, blst_fr_eucl_inverse, blst_fr_from_scalar,
    blst_fr_inverse, blst_fr_mul, blst_fr_sub, blst_scalar, blst_scalar_fr_check, blst_scalar_from_be_bytes,
    blst_scalar_from_bendian, blst_scalar_from_fr,
};
use rand_core::CryptoRng;
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroize;

use crate::declassify::published;

/// Bytes of an encoded scalar.
pub const SCALAR_BYTES: usize = 32;

/// An integer modulo r. Wiped on drop, whether it is secret or not; a secret one lives in a [`crate::Secret`].
///
/// Arithmetic takes constant time, except [`Scalar::inverse_of_public`].
#[derive(Default)]
pub struct Scalar(blst_fr);

impl Scalar {
    /// Zero.
    pub fn zero() -> Self {
        Self::default()
    }

    /// One.
    pub fn one() -> Self {
        Self::from_u64(1)
    }

    /// A small number.
    pub fn from_u64(number: u64) -> Self {
        let mut wide = [0u8; 64];
        let (_, tail) = wide.split_at_mut(56);
        tail.copy_from_slice(&number.to_be_bytes());
        Self::from_wide(&wide)
    }

    /// 64 bytes, big-endian, reduced: uniform up to 2^-256 if the bytes are.
    pub fn from_wide(bytes: &[u8; 64]) -> Self {
        let mut raw = blst_scalar::default();
        let mut out = blst_fr::default();
        // SAFETY: `bytes` is readable for the given length; the outputs are valid places.
        unsafe {
            blst_scalar_from_be_bytes(&mut raw, bytes.as_ptr(), bytes.len());
            blst_fr_from_scalar(&mut out, &raw);
        }
        raw.zeroize();
        Self(out)
    }

    /// Uniform.
    pub fn random(rng: &mut dyn CryptoRng) -> Self {
        let mut wide = [0u8; 64];
        rng.fill_bytes(&mut wide);
        let scalar = Self::from_wide(&wide);
        wide.zeroize();
        scalar
    }

    /// 32 bytes, big-endian; `None` unless below r.
    pub fn from_bytes(bytes: &[u8; SCALAR_BYTES]) -> Option<Self> {
        let mut raw = blst_scalar::default();
        let mut out = blst_fr::default();
        // SAFETY: `bytes` has the 32 bytes that blst reads; the outputs are valid places.
        let canonical = unsafe {
            blst_scalar_from_bendian(&mut raw, bytes.as_ptr());
            let canonical = blst_scalar_fr_check(&raw);
            blst_fr_from_scalar(&mut out, &raw);
            canonical
        };
        raw.zeroize();
        // Whether it is a scalar at all: own shares always are, and a peer knows what it sent.
        published(canonical).then_some(Self(out))
    }

    /// 32 bytes, big-endian. As secret as the scalar.
    pub fn to_bytes(&self) -> [u8; SCALAR_BYTES] {
        let mut raw = self.to_raw();
        let mut bytes = [0u8; SCALAR_BYTES];
        // SAFETY: blst writes 32 bytes.
        unsafe { blst_bendian_from_scalar(bytes.as_mut_ptr(), &raw) };
        raw.zeroize();
        bytes
    }

    /// A second one with the same value. Not `Clone`, so that a secret is not copied without a decision.
    #[must_use]
    pub fn copy(&self) -> Scalar {
        Self(self.0)
    }

    /// Sum.
    #[must_use]
    pub fn add(&self, other: &Scalar) -> Scalar {
        let mut out = blst_fr::default();
        // SAFETY: three valid places.
        unsafe { blst_fr_add(&mut out, &self.0, &other.0) };
        Self(out)
    }

    /// Difference.
    #[must_use]
    pub fn sub(&self, other: &Scalar) -> Scalar {
        let mut out = blst_fr::default();
        // SAFETY: three valid places.
        unsafe { blst_fr_sub(&mut out, &self.0, &other.0) };
        Self(out)
    }

    /// Product.
    #[must_use]
    pub fn mul(&self, other: &Scalar) -> Scalar {
        let mut out = blst_fr::default();
        // SAFETY: three valid places.
        unsafe { blst_fr_mul(&mut out, &self.0, &other.0) };
        Self(out)
    }

    /// Inverse; zero for zero.
    #[must_use]
    pub fn inverse(&self) -> Scalar {
        let mut out = blst_fr::default();
        // SAFETY: two valid places.
        unsafe { blst_fr_inverse(&mut out, &self.0) };
        Self(out)
    }

    /// Inverse of a number that everybody may know, faster; zero for zero.
    #[must_use]
    pub fn inverse_of_public(&self) -> Scalar {
        let mut out = blst_fr::default();
        // SAFETY: two valid places.
        unsafe { blst_fr_eucl_inverse(&mut out, &self.0) };
        Self(out)
    }

    /// Whether it is zero, in constant time.
    pub fn is_zero(&self) -> bool {
        published(self.ct_eq(&Scalar::zero()).into())
    }

    /// The form in which blst multiplies points: little-endian bytes. The caller wipes it if it is secret.
    pub(crate) fn to_raw(&self) -> blst_scalar {
        let mut raw = blst_scalar::default();
        // SAFETY: two valid places.
        unsafe { blst_scalar_from_fr(&mut raw, &self.0) };
        raw
    }
}

impl ConstantTimeEq for Scalar {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.l.ct_eq(&other.0.l)
    }
}

impl Zeroize for Scalar {
    fn zeroize(&mut self) {
        self.0.l.zeroize();
    }
}

impl Drop for Scalar {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scalar(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: [u8; 32] = [
        0x73, 0xed, 0xa7, 0x53, 0x29, 0x9d, 0x7d, 0x48, 0x33, 0x39, 0xd8, 0x08, 0x09, 0xa1, 0xd8, 0x05, 0x53,
        0xbd, 0xa4, 0x02, 0xff, 0xfe, 0x5b, 0xfe, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x01,
    ];

    #[test]
    fn bytes_are_canonical() {
        assert!(Scalar::from_bytes(&ORDER).is_none());
        assert!(Scalar::from_bytes(&[0xff; 32]).is_none());
        let mut largest = ORDER;
        largest[31] = 0;
        assert_eq!(Scalar::from_bytes(&largest).unwrap().to_bytes(), largest);
        assert!(Scalar::from_bytes(&[0; 32]).unwrap().is_zero());
    }

    #[test]
    fn wide_bytes_are_reduced() {
        let mut wide = [0u8; 64];
        wide[32..].copy_from_slice(&ORDER);
        assert!(Scalar::from_wide(&wide).is_zero());
        wide[63] = 2;
        assert_eq!(Scalar::from_wide(&wide).to_bytes(), Scalar::one().to_bytes());
    }

    #[test]
    fn arithmetic_is_that_of_the_field() {
        let (six, seven) = (Scalar::from_u64(6), Scalar::from_u64(7));
        assert_eq!(six.mul(&seven).to_bytes(), Scalar::from_u64(42).to_bytes());
        assert_eq!(seven.sub(&six).add(&six).to_bytes(), seven.to_bytes());
        assert_eq!(seven.inverse().mul(&seven).to_bytes(), Scalar::one().to_bytes());
        assert_eq!(seven.inverse().to_bytes(), seven.inverse_of_public().to_bytes());
    }
}
