//! The group that shares are dealt in, and polynomials over its scalars.

use engine::{PartyId, PartySet, Secret};
use zeroize::{Zeroize, Zeroizing};

use crate::hedged::HedgedRng;

/// Bytes of a scalar, on every curve here.
pub const SCALAR_BYTES: usize = 32;

/// A group of prime order with one encoding of each element.
pub trait Curve: Sized + Send + Sync + 'static {
    /// An element of the group.
    type Point: Copy + PartialEq;
    /// An integer modulo its order.
    type Scalar: Zeroize;

    /// Bytes of an encoded point.
    const POINT_BYTES: usize;

    /// The identity.
    fn identity() -> Self::Point;

    /// The sum of two points.
    fn add_points(a: &Self::Point, b: &Self::Point) -> Self::Point;

    /// A multiple of a point. For public values only.
    fn mul_point(point: &Self::Point, scalar: &Self::Scalar) -> Self::Point;

    /// `scalar` times the generator, in constant time.
    fn mul_generator(scalar: &Self::Scalar) -> Self::Point;

    /// `a` times the generator plus `b` times `point`. For public values only.
    fn combine_public(a: &Self::Scalar, b: &Self::Scalar, point: &Self::Point) -> Self::Point;

    /// `None` for the identity, which no decoder accepts.
    fn encode_point(point: &Self::Point) -> Option<Vec<u8>>;

    /// The point, unless `bytes` is not the canonical encoding of one of prime order.
    fn decode_point(bytes: &[u8]) -> Option<Self::Point>;

    /// A small number as a scalar.
    fn scalar(number: u16) -> Self::Scalar;

    /// The sum of two scalars, in constant time.
    fn add(a: &Self::Scalar, b: &Self::Scalar) -> Self::Scalar;

    /// The difference of two scalars, in constant time.
    fn sub(a: &Self::Scalar, b: &Self::Scalar) -> Self::Scalar;

    /// The product of two scalars, in constant time.
    fn mul(a: &Self::Scalar, b: &Self::Scalar) -> Self::Scalar;

    /// The inverse of a public scalar; `None` for zero.
    fn invert_public(scalar: &Self::Scalar) -> Option<Self::Scalar>;

    /// [`SCALAR_BYTES`], in the byte order of the curve's standard.
    fn encode_scalar(scalar: &Self::Scalar) -> Zeroizing<Vec<u8>>;

    /// The scalar, unless `bytes` is not below the group order.
    fn decode_scalar(bytes: &[u8]) -> Option<Self::Scalar>;

    /// 64 uniform bytes modulo the group order.
    fn reduce_wide(bytes: &[u8; 64]) -> Self::Scalar;
}

/// The encoding, or zeros in place of the identity, which nobody who follows the rules sends and nobody accepts.
pub(crate) fn encoding<C: Curve>(point: &C::Point) -> Vec<u8> {
    C::encode_point(point).unwrap_or_else(|| vec![0; C::POINT_BYTES])
}

/// The coefficient with which `party`'s share enters the secret when `holders` combine: Π x_j / (x_j − x_i).
pub(crate) fn lagrange<C: Curve>(holders: &PartySet, party: PartyId) -> Option<C::Scalar> {
    let own = C::scalar(party.get());
    let (mut numerator, mut denominator) = (C::scalar(1), C::scalar(1));
    for other in holders.iter().filter(|other| *other != party) {
        let other = C::scalar(other.get());
        numerator = C::mul(&numerator, &other);
        denominator = C::mul(&denominator, &C::sub(&other, &own));
    }
    C::invert_public(&denominator).map(|inverse| C::mul(&numerator, &inverse))
}

/// Points of a polynomial, constant term first, at a party's number: Horner's rule with doublings and additions. For
/// public values only.
pub(crate) fn evaluate_public<C: Curve>(points: &[C::Point], party: PartyId) -> C::Point {
    let times_party = |point: C::Point| {
        (0..u16::BITS - party.get().leading_zeros()).rev().fold(C::identity(), |sum, bit| {
            let doubled = C::add_points(&sum, &sum);
            if party.get() >> bit & 1 == 1 { C::add_points(&doubled, &point) } else { doubled }
        })
    };
    points.iter().rev().fold(C::identity(), |value, point| C::add_points(&times_party(value), point))
}

/// A secret polynomial, constant term first; without coefficients, of a party that does not deal.
pub struct Polynomial<C: Curve>(Vec<Secret<C::Scalar>>);

impl<C: Curve> Polynomial<C> {
    /// That of a party that does not deal.
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    /// With these coefficients, constant term first.
    pub fn of(coefficients: Vec<Secret<C::Scalar>>) -> Self {
        Self(coefficients)
    }

    /// `terms` random coefficients, of which `constant` replaces the first.
    pub(crate) fn draw(terms: usize, constant: Option<Secret<C::Scalar>>, rng: &mut HedgedRng) -> Self {
        let mut coefficients: Vec<_> = (0..terms).map(|_| rng.scalar::<C>()).collect();
        if let (Some(constant), Some(first)) = (constant, coefficients.first_mut()) {
            *first = constant;
        }
        Self(coefficients)
    }

    /// The constant term.
    pub(crate) fn constant(&self) -> Option<&Secret<C::Scalar>> {
        self.0.first()
    }

    /// The coefficients in the exponent.
    pub fn points(&self) -> Vec<C::Point> {
        self.0.iter().map(|coefficient| C::mul_generator(coefficient.expose())).collect()
    }

    /// The value at a party's number, by Horner's rule.
    pub fn at(&self, party: PartyId) -> Secret<C::Scalar> {
        let x = C::scalar(party.get());
        self.0.iter().rev().fold(Secret::new(C::scalar(0)), |value, coefficient| {
            let product = Secret::new(C::mul(value.expose(), &x));
            Secret::new(C::add(product.expose(), coefficient.expose()))
        })
    }
}

/// The sum of two secrets.
pub(crate) fn sum<C: Curve>(a: &Secret<C::Scalar>, b: &Secret<C::Scalar>) -> Secret<C::Scalar> {
    Secret::new(C::add(a.expose(), b.expose()))
}

impl HedgedRng {
    /// A uniform scalar; zero has probability below 2^-250.
    pub(crate) fn scalar<C: Curve>(&mut self) -> Secret<C::Scalar> {
        Secret::new(C::reduce_wide(&self.block()))
    }
}
