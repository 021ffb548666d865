//! Shamir sharing over the scalar field: interpolation at zero.

use crate::bls12_381::Scalar;

/// Coefficients with which values of a polynomial at given points combine to its value at zero.
pub enum Weights {
    /// Numerators over one denominator, all of them small. So it is for small party numbers, and several times faster.
    Small {
        /// In the order of the points.
        numerators: Vec<i64>,
        /// Above zero.
        denominator: u64,
    },
    /// Any scalars, in the order of the points.
    Large(Vec<Scalar>),
}

impl Weights {
    /// For distinct points other than zero; `None` otherwise, or if there are no points.
    pub fn at_zero(points: &[u16]) -> Option<Self> {
        let distinct = points.iter().enumerate().all(|(i, x)| points.iter().take(i).all(|y| x != y));
        if points.is_empty() || points.contains(&0) || !distinct {
            return None;
        }
        Some(small(points).unwrap_or_else(|| Weights::Large(large(points))))
    }

    /// The same as scalars.
    pub fn to_scalars(&self) -> Vec<Scalar> {
        match self {
            Weights::Large(scalars) => scalars.iter().map(Scalar::copy).collect(),
            Weights::Small { numerators, denominator } => {
                let inverse = Scalar::from_u64(*denominator).inverse_of_public();
                let signed = |number: i64| {
                    let magnitude = Scalar::from_u64(number.unsigned_abs()).mul(&inverse);
                    if number < 0 { Scalar::zero().sub(&magnitude) } else { magnitude }
                };
                numerators.iter().map(|number| signed(*number)).collect()
            }
        }
    }
}

/// Reduced fractions brought to one denominator; `None` if any number on the way is too large.
fn small(points: &[u16]) -> Option<Weights> {
    let mut fractions = Vec::with_capacity(points.len());
    let mut denominator: i128 = 1;
    for xi in points {
        let (mut top, mut bottom): (i128, i128) = (1, 1);
        for xj in points.iter().filter(|xj| *xj != xi) {
            top = top.checked_mul(i128::from(*xj))?;
            bottom = bottom.checked_mul(i128::from(*xj) - i128::from(*xi))?;
            let common = gcd(top.unsigned_abs(), bottom.unsigned_abs());
            let common = i128::try_from(common).ok()?;
            (top, bottom) = (top / common, bottom / common);
        }
        if bottom < 0 {
            (top, bottom) = (-top, -bottom);
        }
        let common = i128::try_from(gcd(denominator.unsigned_abs(), bottom.unsigned_abs())).ok()?;
        denominator = denominator.checked_mul(bottom / common)?;
        fractions.push((top, bottom));
    }
    let numerators: Option<Vec<i64>> = fractions
        .into_iter()
        .map(|(top, bottom)| i64::try_from(top.checked_mul(denominator / bottom)?).ok())
        .collect();
    Some(Weights::Small { numerators: numerators?, denominator: u64::try_from(denominator).ok()? })
}

fn large(points: &[u16]) -> Vec<Scalar> {
    let weight = |xi: u16| {
        let (mut top, mut bottom) = (Scalar::one(), Scalar::one());
        let at = Scalar::from_u64(u64::from(xi));
        for xj in points.iter().filter(|xj| **xj != xi) {
            let xj = Scalar::from_u64(u64::from(*xj));
            top = top.mul(&xj);
            bottom = bottom.mul(&xj.sub(&at));
        }
        top.mul(&bottom.inverse_of_public())
    };
    points.iter().map(|xi| weight(*xi)).collect()
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn interpolates(points: &[u16]) {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let coefficients: Vec<Scalar> = points.iter().map(|_| Scalar::random(&mut rng)).collect();
        let value = |x: u16| {
            let x = Scalar::from_u64(u64::from(x));
            coefficients.iter().rev().fold(Scalar::zero(), |value, term| value.mul(&x).add(term))
        };
        let weights = Weights::at_zero(points).unwrap();
        let combined = points
            .iter()
            .zip(weights.to_scalars())
            .fold(Scalar::zero(), |sum, (x, weight)| sum.add(&value(*x).mul(&weight)));
        assert_eq!(combined.to_bytes(), value(0).to_bytes());
        for (a, b) in large(points).iter().zip(weights.to_scalars()) {
            assert_eq!(a.to_bytes(), b.to_bytes());
        }
    }

    #[test]
    fn weights_interpolate_at_zero() {
        interpolates(&[1]);
        interpolates(&[3, 1, 7]);
        interpolates(&(1..=20).collect::<Vec<u16>>());
        interpolates(&[65_535, 65_534, 65_531, 65_521, 1, 2, 17, 1009, 30_011, 40_009]);
    }

    #[test]
    fn small_party_numbers_have_small_weights() {
        let weights = Weights::at_zero(&(1..=10).collect::<Vec<u16>>()).unwrap();
        assert!(matches!(&weights, Weights::Small { numerators, denominator: 1 } if numerators[4] == 252));
        assert!(matches!(Weights::at_zero(&(1..=20).collect::<Vec<u16>>()).unwrap(), Weights::Small { .. }));
        let spread: Vec<u16> = (0..20).map(|i| 65_535 - 97 * i).collect();
        assert!(matches!(Weights::at_zero(&spread).unwrap(), Weights::Large(_)));
    }

    #[test]
    fn zero_and_duplicate_points_are_refused() {
        assert!(Weights::at_zero(&[]).is_none());
        assert!(Weights::at_zero(&[1, 0]).is_none());
        assert!(Weights::at_zero(&[2, 1, 2]).is_none());
    }
}
