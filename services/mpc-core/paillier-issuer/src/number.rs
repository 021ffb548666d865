//! Whole numbers of thousands of bits, by OpenSSL's libcrypto.
//!
//! Numbers are never negative here, because the sign is what libcrypto's addition branches on. Powers with a secret
//! exponent take the fixed-window path that reads every entry of its table. Every number is wiped when it is
//! dropped.

use core::cmp::Ordering;

use openssl::bn::{BigNum, BigNumContext};
use openssl::error::ErrorStack;
use primitives::bls12_381::{SCALAR_BYTES, Scalar};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// The order of the groups of BLS12-381, q.
const GROUP_ORDER: [u8; SCALAR_BYTES] = [
    0x73, 0xed, 0xa7, 0x53, 0x29, 0x9d, 0x7d, 0x48, 0x33, 0x39, 0xd8, 0x08, 0x09, 0xa1, 0xd8, 0x05, 0x53,
    0xbd, 0xa4, 0x02, 0xff, 0xfe, 0x5b, 0xfe, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x01,
];

/// Bits by which a random number is longer than the modulus it is reduced by: uniform up to 2^-128.
const REDUCTION_BITS: usize = 128;

/// The library could not compute: it is out of memory, or an invariant is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure;

impl From<ErrorStack> for Failure {
    fn from(_: ErrorStack) -> Self {
        Failure
    }
}

pub(crate) type Calc<T> = Result<T, Failure>;

/// A whole number, not negative.
pub(crate) struct Number(BigNum);

impl Drop for Number {
    fn drop(&mut self) {
        self.0.clear();
    }
}

impl Number {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Calc<Self> {
        Ok(Self(BigNum::from_slice(bytes)?))
    }

    pub(crate) fn from_u32(number: u32) -> Calc<Self> {
        Ok(Self(BigNum::from_u32(number)?))
    }

    /// 2^`bits`.
    pub(crate) fn power_of_two(bits: usize) -> Calc<Self> {
        let mut out = BigNum::new()?;
        out.set_bit(i32::try_from(bits).map_err(|_| Failure)?)?;
        Ok(Self(out))
    }

    /// The order of the groups.
    pub(crate) fn group_order() -> Calc<Self> {
        Self::from_bytes(&GROUP_ORDER)
    }

    /// Big-endian, with zeros in front up to `length` bytes; a failure if it is longer.
    pub(crate) fn to_bytes(&self, length: usize) -> Calc<Zeroizing<Vec<u8>>> {
        let length = i32::try_from(length).map_err(|_| Failure)?;
        Ok(Zeroizing::new(self.0.to_vec_padded(length)?))
    }

    /// Uniform below 2^`bits`.
    pub(crate) fn random_bits(bits: usize, rng: &mut dyn CryptoRng) -> Calc<Self> {
        let mut bytes = Zeroizing::new(vec![0u8; bits.div_ceil(8)]);
        rng.fill_bytes(&mut bytes);
        if let (Some(first), unused @ 1..) = (bytes.first_mut(), bits.next_multiple_of(8) - bits) {
            *first &= 0xff >> unused;
        }
        Self::from_bytes(&bytes)
    }

    /// Uniform below `bound`.
    pub(crate) fn random_below(bound: &Number, rng: &mut dyn CryptoRng) -> Calc<Self> {
        Self::random_bits(bound.bits() + REDUCTION_BITS, rng)?.modulo(bound)
    }

    pub(crate) fn from_scalar(scalar: &Scalar) -> Calc<Self> {
        Self::from_bytes(Zeroizing::new(scalar.to_bytes()).as_slice())
    }

    /// The rest modulo the order of the groups.
    pub(crate) fn to_scalar(&self) -> Calc<Scalar> {
        let rest = self.modulo(&Self::group_order()?)?.to_bytes(SCALAR_BYTES)?;
        let bytes = rest.as_slice().try_into().map_err(|_| Failure)?;
        Scalar::from_bytes(bytes).ok_or(Failure)
    }

    /// Length in bits. Of a secret number: only asked where its length is public.
    pub(crate) fn bits(&self) -> usize {
        usize::try_from(self.0.num_bits()).unwrap_or(0)
    }

    pub(crate) fn is_bit_set(&self, bit: usize) -> bool {
        i32::try_from(bit).is_ok_and(|bit| self.0.is_bit_set(bit))
    }

    pub(crate) fn copy(&self) -> Calc<Self> {
        Ok(Self(self.0.to_owned()?))
    }

    pub(crate) fn plus(&self, other: &Number) -> Calc<Self> {
        let mut out = BigNum::new()?;
        out.checked_add(&self.0, &other.0)?;
        Ok(Self(out))
    }

    /// A failure if the difference would be negative.
    pub(crate) fn minus(&self, other: &Number) -> Calc<Self> {
        let mut out = BigNum::new()?;
        out.checked_sub(&self.0, &other.0)?;
        let out = Self(out);
        if out.0.is_negative() { Err(Failure) } else { Ok(out) }
    }

    pub(crate) fn plus_one(&self) -> Calc<Self> {
        self.plus(&Number::from_u32(1)?)
    }

    pub(crate) fn minus_one(&self) -> Calc<Self> {
        self.minus(&Number::from_u32(1)?)
    }

    pub(crate) fn times(&self, other: &Number) -> Calc<Self> {
        let mut out = BigNum::new()?;
        out.checked_mul(&self.0, &other.0, &mut *context()?)?;
        Ok(Self(out))
    }

    pub(crate) fn over(&self, divisor: &Number) -> Calc<Self> {
        let mut out = BigNum::new()?;
        out.checked_div(&self.0, &divisor.0, &mut *context()?)?;
        Ok(Self(out))
    }

    pub(crate) fn modulo(&self, modulus: &Number) -> Calc<Self> {
        let mut out = BigNum::new()?;
        out.checked_rem(&self.0, &modulus.0, &mut *context()?)?;
        Ok(Self(out))
    }

    /// The rest modulo a small prime.
    pub(crate) fn modulo_small(&self, prime: u32) -> Calc<u64> {
        Ok(self.0.mod_word(prime)?)
    }

    pub(crate) fn times_modulo(&self, other: &Number, modulus: &Number) -> Calc<Self> {
        let mut out = BigNum::new()?;
        out.mod_mul(&self.0, &other.0, &modulus.0, &mut *context()?)?;
        Ok(Self(out))
    }

    /// (self - other) modulo `modulus`, for numbers below it.
    pub(crate) fn minus_modulo(&self, other: &Number, modulus: &Number) -> Calc<Self> {
        self.plus(modulus)?.minus(other)?.modulo(modulus)
    }

    /// A power with a secret exponent. The modulus is odd.
    pub(crate) fn power(&self, exponent: &Number, modulus: &Number) -> Calc<Self> {
        let mut exponent = exponent.copy()?;
        exponent.0.set_const_time();
        self.power_public(&exponent, modulus)
    }

    /// A power with an exponent that everybody may know.
    pub(crate) fn power_public(&self, exponent: &Number, modulus: &Number) -> Calc<Self> {
        let mut out = BigNum::new()?;
        out.mod_exp(&self.0, &exponent.0, &modulus.0, &mut *context()?)?;
        Ok(Self(out))
    }

    /// The inverse of a secret number; a failure if there is none.
    pub(crate) fn inverse(&self, modulus: &Number) -> Calc<Self> {
        let mut own = self.copy()?;
        own.0.set_const_time();
        own.inverse_public(modulus)?.ok_or(Failure)
    }

    /// The inverse of a public number; `None` if there is none.
    pub(crate) fn inverse_public(&self, modulus: &Number) -> Calc<Option<Self>> {
        let mut out = BigNum::new()?;
        // The library reports the lack of an inverse as an error like any other.
        Ok(out.mod_inverse(&self.0, &modulus.0, &mut *context()?).is_ok().then_some(Self(out)))
    }

    /// Whether a public number is below `modulus` and has an inverse.
    pub(crate) fn is_unit(&self, modulus: &Number) -> Calc<bool> {
        Ok(self < modulus && self.inverse_public(modulus)?.is_some())
    }

    /// Whether it is prime, but for a chance below 2^-128.
    pub(crate) fn is_prime(&self) -> Calc<bool> {
        // 0: as many rounds as the library holds to be right for any input.
        Ok(self.0.is_prime_fasttest(0, &mut *context()?, true)?)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.0.cmp(&other.0))
    }
}

/// A place for the library's intermediate values; the library wipes them when the context is dropped.
fn context() -> Calc<BigNumContext> {
    Ok(BigNumContext::new()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    #[test]
    fn random_numbers_have_the_wanted_range() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for bits in [1usize, 7, 8, 9, 255, 256] {
            let largest = (0..200).map(|_| Number::random_bits(bits, &mut rng).unwrap().bits()).max();
            assert_eq!(largest, Some(bits));
        }
        let bound = Number::from_u32(5).unwrap();
        let drawn: Vec<bool> =
            (0..100).map(|_| Number::random_below(&bound, &mut rng).unwrap() < bound).collect();
        assert!(drawn.into_iter().all(|below| below));
    }

    #[test]
    fn scalars_are_reduced() {
        let order = Number::group_order().unwrap();
        assert!(order.to_scalar().unwrap().is_zero());
        let seven = order.plus(&Number::from_u32(7).unwrap()).unwrap().to_scalar().unwrap();
        assert_eq!(seven.to_bytes(), Scalar::from_u64(7).to_bytes());
        assert!(Number::from_scalar(&seven).unwrap() == Number::from_u32(7).unwrap());
    }

    #[test]
    fn differences_are_not_negative() {
        let (two, three) = (Number::from_u32(2).unwrap(), Number::from_u32(3).unwrap());
        assert!(two.minus(&three).is_err());
        assert!(three.minus(&two).unwrap() == Number::from_u32(1).unwrap());
        let five = Number::from_u32(5).unwrap();
        assert!(two.minus_modulo(&three, &five).unwrap() == Number::from_u32(4).unwrap());
    }
}
