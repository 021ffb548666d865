//! secp256k1: strict encodings, hashing to scalars, and the constant-time multiplications of `k256`.
//!
//! Points on the wire are compressed (33 bytes, SEC 1), scalars big-endian (32 bytes). Decoders accept one encoding of
//! each value only and never the identity.

use k256::elliptic_curve::PrimeField;
use k256::elliptic_curve::group::{Curve, Group, GroupEncoding};
use k256::elliptic_curve::ops::{LinearCombination, MulByGeneratorVartime, Reduce};
use k256::elliptic_curve::point::AffineCoordinates;
use k256::{U256, WideBytes};
use rand_core::CryptoRng;
use zeroize::Zeroize;

use crate::declassify::{publish, published};

pub use k256::elliptic_curve::scalar::IsHigh;
pub use k256::{ProjectivePoint as Point, Scalar};

/// Bytes of a scalar.
pub const SCALAR_BYTES: usize = 32;
/// Bytes of a compressed point.
pub const POINT_BYTES: usize = 33;

/// The scalar, unless `bytes` is not below the group order.
pub fn decode_scalar(bytes: &[u8; SCALAR_BYTES]) -> Option<Scalar> {
    let scalar = Scalar::from_repr((*bytes).into());
    // Own scalars always are, and a peer knows what it sent.
    let canonical = published(bool::from(scalar.is_some()));
    canonical.then(|| scalar.unwrap_or(Scalar::ZERO))
}

/// Big-endian.
pub fn encode_scalar(scalar: &Scalar) -> [u8; SCALAR_BYTES] {
    scalar.to_repr().into()
}

/// The point, unless `bytes` is not the compressed encoding of one, or is the identity.
pub fn decode_point(bytes: &[u8; POINT_BYTES]) -> Option<Point> {
    publish(bytes);
    // The library also takes the "compact" form, a second encoding of half the points.
    if !matches!(bytes, [2 | 3, ..]) {
        return None;
    }
    let point = Point::from_bytes(&(*bytes).into()).into_option()?;
    (!bool::from(point.is_identity())).then_some(point)
}

/// Compressed; all zeros for the identity, which no decoder here accepts. For points that are posted.
pub fn encode_point(point: &Point) -> [u8; POINT_BYTES] {
    publish(point);
    point.to_affine().to_bytes().into()
}

/// The encodings of several points at the price of one inversion.
pub fn encode_points<const N: usize>(points: &[Point; N]) -> [[u8; POINT_BYTES]; N] {
    let mut affine = [k256::AffinePoint::IDENTITY; N];
    publish(points);
    Point::batch_normalize(points, &mut affine);
    affine.map(|point| point.to_bytes().into())
}

/// 32 uniform bytes reduced modulo the group order. As the order is within 2^129 of 2^256, the result is within 2^-127
/// of uniform.
pub fn reduce(bytes: &[u8; SCALAR_BYTES]) -> Scalar {
    <Scalar as Reduce<U256>>::reduce(&U256::from_be_slice(bytes))
}

/// 64 uniform bytes reduced modulo the group order.
pub fn reduce_wide(bytes: &[u8; 64]) -> Scalar {
    let mut wide = WideBytes::from(*bytes);
    let scalar = <Scalar as Reduce<WideBytes>>::reduce(&wide);
    wide.zeroize();
    scalar
}

/// A uniform scalar; zero has probability 2^-256.
pub fn random_scalar(rng: &mut dyn CryptoRng) -> Scalar {
    let mut bytes = [0u8; 64];
    rng.fill_bytes(&mut bytes);
    let scalar = reduce_wide(&bytes);
    bytes.zeroize();
    scalar
}

/// A scalar as the little-endian words that [`ProductSum`] takes. Any 256 bits will do.
pub(crate) fn words(bytes: &[u8; SCALAR_BYTES]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0.iter().rev()) {
        *word = u64::from_be_bytes(*bytes);
    }
    words
}

/// A sum of products that is reduced modulo the group order once, at its end: room for 2^64 of them. In constant time.
#[derive(Default)]
pub(crate) struct ProductSum([u64; 9]);

impl ProductSum {
    /// Adds `a·b`.
    #[inline]
    pub(crate) fn add(&mut self, a: &[u64; 4], b: &[u64; 4]) {
        let mut product = [0u64; 8];
        for (place, a) in a.iter().enumerate() {
            let mut carry = 0;
            let mut row = product.iter_mut().skip(place);
            // In this order: a pair is taken from the longer one only while the shorter one has one.
            for (b, word) in b.iter().zip(row.by_ref()) {
                (*word, carry) = multiply_add(*word, *a, *b, carry);
            }
            if let Some(word) = row.next() {
                *word = carry;
            }
        }
        let mut carry = 0;
        let (low, high) = self.0.split_at_mut(8);
        for (sum, word) in low.iter_mut().zip(&product) {
            (*sum, carry) = multiply_add(*sum, *word, 1, carry);
        }
        for top in high {
            // An overflow check would be a branch on a secret; 2^64 products never come together.
            *top = top.wrapping_add(carry);
        }
    }

    /// The sum modulo the group order.
    pub(crate) fn reduce(&self) -> Scalar {
        let [low @ .., top] = &self.0;
        let mut bytes = [0u8; 64];
        for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(low.iter().rev()) {
            *bytes = word.to_be_bytes();
        }
        let two_to_512 = reduce_wide(&[0xff; 64]) + Scalar::ONE;
        let sum = reduce_wide(&bytes) + Scalar::from(*top) * two_to_512;
        bytes.zeroize();
        sum
    }
}

impl Drop for ProductSum {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The low and the high word of `a·b + word + carry`.
#[inline]
fn multiply_add(word: u64, a: u64, b: u64, carry: u64) -> (u64, u64) {
    // At most (2^64 - 1)^2 + 2 (2^64 - 1) = 2^128 - 1: nothing wraps.
    let sum = u128::from(a)
        .wrapping_mul(u128::from(b))
        .wrapping_add(u128::from(word))
        .wrapping_add(u128::from(carry));
    (sum as u64, (sum >> 64) as u64)
}

/// `scalar` times the generator, in constant time.
pub fn mul_generator(scalar: &Scalar) -> Point {
    Point::mul_by_generator(scalar)
}

/// `a·A + b·B`, in constant time.
pub fn combine_two(a: &Scalar, point_a: &Point, b: &Scalar, point_b: &Point) -> Point {
    Point::lincomb(&[(*point_a, *a), (*point_b, *b)])
}

/// `a·G + b·B` in time that depends on the scalars: for public values only.
pub fn combine_public(a: &Scalar, b: &Scalar, point: &Point) -> Point {
    Point::mul_by_generator_and_mul_add_vartime(a, b, point)
}

/// Public points of a polynomial, constant term first, evaluated at a small number by Horner's rule.
pub fn evaluate_public(points: &[Point], x: u16) -> Point {
    points.iter().rev().fold(Point::IDENTITY, |value, point| mul_small(&value, x) + point)
}

/// Double and add: for public values only.
fn mul_small(point: &Point, factor: u16) -> Point {
    (0..u16::BITS - factor.leading_zeros()).rev().fold(Point::IDENTITY, |value, bit| {
        let doubled = value.double();
        if (factor >> bit) & 1 == 1 { doubled + point } else { doubled }
    })
}

/// The affine x coordinate as an integer, reduced modulo the group order, with what the reduction and the sign of y
/// lost: (x mod q, y is odd, x was at least q). Zero coordinates for the identity.
pub fn x_coordinate(point: &Point) -> (Scalar, bool, bool) {
    let affine = point.to_affine();
    let x: [u8; SCALAR_BYTES] = affine.x().into();
    (reduce(&x), bool::from(affine.y_is_odd()), decode_scalar(&x).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_products_is_that_of_the_products() {
        let mut sum = ProductSum::default();
        let mut expected = Scalar::ZERO;
        for place in 0..1000u64 {
            // The largest words first: every carry there is.
            let a = if place < 500 { [0xff; 32] } else { encode_scalar(&Scalar::from(place * place + 1)) };
            let b = if place % 3 == 0 { [0xff; 32] } else { encode_scalar(&-Scalar::from(place)) };
            sum.add(&words(&a), &words(&b));
            expected += reduce(&a) * reduce(&b);
            assert_eq!(sum.reduce(), expected, "{place}");
        }
        assert_eq!(ProductSum::default().reduce(), Scalar::ZERO);
    }

    #[test]
    fn order_and_above_are_no_scalars() {
        let order = [
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
            0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
        ];
        assert!(decode_scalar(&order).is_none());
        assert!(decode_scalar(&[0xff; 32]).is_none());
        assert_eq!(reduce(&order), Scalar::ZERO);
        let mut below = order;
        below[31] -= 1;
        assert_eq!(decode_scalar(&below), Some(-Scalar::ONE));
    }

    #[test]
    fn identity_and_bad_prefixes_are_no_points() {
        assert!(decode_point(&encode_point(&Point::IDENTITY)).is_none());
        let good = encode_point(&Point::GENERATOR);
        assert_eq!(decode_point(&good), Some(Point::GENERATOR));
        for prefix in [0, 1, 4, 5, 6, 7, 0xff] {
            let mut bad = good;
            bad[0] = prefix;
            assert!(decode_point(&bad).is_none());
        }
        let mut above_field = [0xff; POINT_BYTES];
        above_field[0] = 2;
        assert!(decode_point(&above_field).is_none());
    }

    #[test]
    fn combinations_agree_with_plain_arithmetic() {
        let (a, b) = (reduce(&[0x5a; 32]), reduce(&[0xc3; 32]));
        let point = mul_generator(&reduce(&[0x77; 32]));
        assert_eq!(mul_generator(&a), Point::GENERATOR * a);
        assert_eq!(combine_two(&a, &Point::GENERATOR, &b, &point), Point::GENERATOR * a + point * b);
        assert_eq!(combine_public(&a, &b, &point), Point::GENERATOR * a + point * b);
        for x in [0, 1, 2, 3, 20, 65_535] {
            let expected = point
                + Point::GENERATOR * Scalar::from(u64::from(x))
                + point * Scalar::from(u64::from(x).pow(2));
            assert_eq!(evaluate_public(&[point, Point::GENERATOR, point], x), expected);
        }
        assert_eq!(encode_points(&[point, Point::GENERATOR])[0], encode_point(&point));
        let wide = reduce_wide(&[0xff; 64]);
        let two_128 = Scalar::from(u128::MAX) + Scalar::ONE;
        assert_eq!(wide, two_128 * two_128 * two_128 * two_128 - Scalar::ONE);
    }
}
