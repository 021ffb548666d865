//! The groups modulo whose order the numbers that daBits make are read.

use std::ops::{Add, Mul, Neg, Sub};

use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use primitives::secp256k1;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use super::super::abort::Abort;

/// A group of prime order with a base point, or one whose points of that order can be told from the others.
pub trait Group {
    /// A number modulo the order.
    type Scalar: Copy
        + Default
        + Zeroize
        + From<u64>
        + Add<Output = Self::Scalar>
        + Sub<Output = Self::Scalar>
        + Mul<Output = Self::Scalar>
        + Neg<Output = Self::Scalar>;
    /// A point.
    type Point: Copy
        + Add<Output = Self::Point>
        + Sub<Output = Self::Point>
        + Mul<Self::Scalar, Output = Self::Point>;
    /// A point as it is sent.
    type Encoding: AsRef<[u8]> + AsMut<[u8]> + Copy + for<'a> TryFrom<&'a [u8]>;

    /// Bits that hide a share: a number of so many bits is uniform modulo the order up to 2^-127, since a power of 2 is
    /// so close to it.
    const SHARE_BITS: usize;

    /// A number of 256 bits, the lower half first, modulo the order.
    fn reduce(number: &[u128; 2]) -> Self::Scalar;
    /// A scalar of 32 bytes, the lowest first.
    ///
    /// # Errors
    /// A number that is not below the order.
    fn scalar(bytes: &[u8; 32]) -> Result<Self::Scalar, Abort>;
    /// The 32 bytes of a scalar, the lowest first.
    fn bytes(scalar: &Self::Scalar) -> [u8; 32];
    /// A scalar times the base point, in constant time.
    fn mul_base(scalar: &Self::Scalar) -> Self::Point;
    /// A point as it is sent.
    fn encode(point: &Self::Point) -> Self::Encoding;
    /// A point that was sent. It may have a part of small order.
    ///
    /// # Errors
    /// Bytes that encode no point.
    fn decode(bytes: &Self::Encoding) -> Result<Self::Point, Abort>;
    /// Whether a point has no part of small order.
    fn has_prime_order(point: &Self::Point) -> bool;

    /// Whether two encodings are equal, in constant time.
    fn same(a: &Self::Encoding, b: &Self::Encoding) -> bool {
        a.as_ref().ct_eq(b.as_ref()).into()
    }

    /// The number that these scalars make as digits to the base 2, the lowest first.
    fn number(digits: impl DoubleEndedIterator<Item = Self::Scalar>) -> Zeroizing<Self::Scalar> {
        let mut sum = Zeroizing::new(Self::Scalar::default());
        for digit in digits.rev() {
            *sum = *sum + *sum + digit;
        }
        sum
    }
}

/// A number of 256 bits as bytes, the lowest first.
fn little_endian(number: &[u128; 2]) -> Zeroizing<[u8; 32]> {
    let [low, high] = number;
    let mut bytes = Zeroizing::new([0u8; 32]);
    let (first, second) = bytes.split_at_mut(16);
    first.copy_from_slice(&low.to_le_bytes());
    second.copy_from_slice(&high.to_le_bytes());
    bytes
}

/// The curve of Ed25519; q is some 2^252.
pub enum Ed25519 {}

impl Group for Ed25519 {
    type Scalar = Scalar;
    type Point = EdwardsPoint;
    type Encoding = [u8; 32];

    const SHARE_BITS: usize = 252;

    fn reduce(number: &[u128; 2]) -> Scalar {
        Scalar::from_bytes_mod_order(*little_endian(number))
    }

    fn scalar(bytes: &[u8; 32]) -> Result<Scalar, Abort> {
        Option::from(Scalar::from_canonical_bytes(*bytes)).ok_or(Abort::Malformed)
    }

    fn bytes(scalar: &Scalar) -> [u8; 32] {
        scalar.to_bytes()
    }

    fn mul_base(scalar: &Scalar) -> EdwardsPoint {
        EdwardsPoint::mul_base(scalar)
    }

    fn encode(point: &EdwardsPoint) -> [u8; 32] {
        point.compress().to_bytes()
    }

    fn decode(bytes: &[u8; 32]) -> Result<EdwardsPoint, Abort> {
        CompressedEdwardsY(*bytes).decompress().ok_or(Abort::Malformed)
    }

    fn has_prime_order(point: &EdwardsPoint) -> bool {
        point.is_torsion_free()
    }
}

/// A canonical scalar.
pub(crate) fn scalar(bytes: &[u8; 32]) -> Result<Scalar, Abort> {
    Ed25519::scalar(bytes)
}

/// A point of any order.
pub(crate) fn point(bytes: &[u8; 32]) -> Result<EdwardsPoint, Abort> {
    Ed25519::decode(bytes)
}

/// The curve of Bitcoin and Ethereum; q is 2^256 less some 2^128.
pub enum Secp256k1 {}

impl Group for Secp256k1 {
    type Scalar = secp256k1::Scalar;
    type Point = secp256k1::Point;
    type Encoding = [u8; secp256k1::POINT_BYTES];

    const SHARE_BITS: usize = 256;

    fn reduce(number: &[u128; 2]) -> secp256k1::Scalar {
        let mut bytes = little_endian(number);
        bytes.reverse();
        secp256k1::reduce(&bytes)
    }

    fn scalar(bytes: &[u8; 32]) -> Result<secp256k1::Scalar, Abort> {
        let mut bytes = Zeroizing::new(*bytes);
        bytes.reverse();
        secp256k1::decode_scalar(&bytes).ok_or(Abort::Malformed)
    }

    fn bytes(scalar: &secp256k1::Scalar) -> [u8; 32] {
        let mut bytes = secp256k1::encode_scalar(scalar);
        bytes.reverse();
        bytes
    }

    fn mul_base(scalar: &secp256k1::Scalar) -> secp256k1::Point {
        secp256k1::mul_generator(scalar)
    }

    fn encode(point: &secp256k1::Point) -> [u8; secp256k1::POINT_BYTES] {
        secp256k1::encode_point(point)
    }

    fn decode(bytes: &[u8; secp256k1::POINT_BYTES]) -> Result<secp256k1::Point, Abort> {
        secp256k1::decode_point(bytes).ok_or(Abort::Malformed)
    }

    fn has_prime_order(_: &secp256k1::Point) -> bool {
        true
    }
}
