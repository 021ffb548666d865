//! secp256k1 as dealing sees it.

use primitives::secp256k1::{
    self, POINT_BYTES, Point, Scalar, combine_public, decode_point, decode_scalar, encode_point,
    encode_scalar, mul_generator,
};
use zeroize::{Zeroize, Zeroizing};

use crate::curve::Curve;

/// secp256k1 as the library of this core has it.
pub enum Secp256k1 {}

impl Curve for Secp256k1 {
    type Point = Point;
    type Scalar = Scalar;

    const POINT_BYTES: usize = POINT_BYTES;

    fn identity() -> Point {
        Point::IDENTITY
    }

    fn add_points(a: &Point, b: &Point) -> Point {
        *a + b
    }

    fn mul_point(point: &Point, scalar: &Scalar) -> Point {
        *point * scalar
    }

    fn mul_generator(scalar: &Scalar) -> Point {
        mul_generator(scalar)
    }

    fn combine_public(a: &Scalar, b: &Scalar, point: &Point) -> Point {
        combine_public(a, b, point)
    }

    fn encode_point(point: &Point) -> Option<Vec<u8>> {
        (*point != Point::IDENTITY).then(|| encode_point(point).to_vec())
    }

    fn decode_point(bytes: &[u8]) -> Option<Point> {
        decode_point(bytes.try_into().ok()?)
    }

    fn scalar(number: u16) -> Scalar {
        Scalar::from(u64::from(number))
    }

    fn add(a: &Scalar, b: &Scalar) -> Scalar {
        *a + b
    }

    fn sub(a: &Scalar, b: &Scalar) -> Scalar {
        *a - b
    }

    fn mul(a: &Scalar, b: &Scalar) -> Scalar {
        *a * b
    }

    fn invert_public(scalar: &Scalar) -> Option<Scalar> {
        scalar.invert().into_option()
    }

    fn encode_scalar(scalar: &Scalar) -> Zeroizing<Vec<u8>> {
        let mut bytes = encode_scalar(scalar);
        let encoding = Zeroizing::new(bytes.to_vec());
        bytes.zeroize();
        encoding
    }

    fn decode_scalar(bytes: &[u8]) -> Option<Scalar> {
        decode_scalar(bytes.try_into().ok()?)
    }

    fn reduce_wide(bytes: &[u8; 64]) -> Scalar {
        secp256k1::reduce_wide(bytes)
    }
}
