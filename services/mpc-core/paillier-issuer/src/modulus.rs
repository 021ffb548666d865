//! Moduli of two primes: arithmetic for everybody, and faster with the primes; Paillier encryption modulo their
//! squares.

use rand_core::CryptoRng;

use crate::halves::Halves;
use crate::number::{Calc, Failure, Number};

/// An odd modulus n, and n^2.
pub(crate) struct Modulus {
    pub(crate) n: Number,
    pub(crate) square: Number,
    /// Powers modulo n^2.
    pub(crate) halves: Halves,
    /// Bytes of a number below n; one below n^2 has twice as many.
    pub(crate) bytes: usize,
}

impl Modulus {
    pub(crate) fn new(n: Number) -> Calc<Self> {
        let (square, halves) = (n.times(&n)?, Halves::new(&n)?);
        let bytes = n.bits().div_ceil(8);
        Ok(Self { n, square, halves, bytes })
    }

    pub(crate) fn bits(&self) -> usize {
        self.n.bits()
    }

    /// (1 + n)^m = 1 + m n modulo n^2.
    pub(crate) fn embed(&self, m: &Number) -> Calc<Number> {
        m.modulo(&self.n)?.times(&self.n)?.plus_one()
    }

    /// base^n modulo n^2. The base may be secret.
    pub(crate) fn nth_power(&self, base: &Number) -> Calc<Number> {
        self.halves.power_public(base, &self.n)
    }

    /// Uniform among the numbers that have an inverse, but for a chance below 2^-128.
    pub(crate) fn random_unit(&self, rng: &mut dyn CryptoRng) -> Calc<Number> {
        Number::random_below(&self.n, rng)
    }
}

/// The primes of a modulus, with what makes arithmetic by them fast. Everything that enters a power here is treated
/// as secret.
pub(crate) struct Factors {
    pub(crate) modulus: Modulus,
    pub(crate) p: Prime,
    pub(crate) q: Prime,
    /// 1/q modulo p, and 1/q^2 modulo p^2.
    q_inverse: Number,
    q_square_inverse: Number,
}

/// One of the primes.
pub(crate) struct Prime {
    pub(crate) value: Number,
    square: Number,
    /// value - 1, the order of the units modulo it.
    pub(crate) order: Number,
    /// The order of the units modulo the square.
    square_order: Number,
    /// The other prime modulo `order`.
    other: Number,
    /// 1 / L((1 + n)^(value - 1) modulo value^2) modulo value, with L(x) = (x - 1) / value.
    decryption: Number,
}

impl Prime {
    fn new(value: Number, other: &Number) -> Calc<Self> {
        let square = value.times(&value)?;
        let order = value.minus_one()?;
        let square_order = value.times(&order)?;
        // (1 + n)^(p - 1) = 1 + (p - 1) n modulo p^2, so L of it is (p - 1) q, which is -q modulo p.
        let decryption = value.minus(&other.modulo(&value)?)?.inverse(&value)?;
        let other = other.modulo(&order)?;
        Ok(Self { value, square, order, square_order, other, decryption })
    }

    fn power(&self, base: &Number, exponent: &Number) -> Calc<Number> {
        base.modulo(&self.value)?.power(&exponent.modulo(&self.order)?, &self.value)
    }

    fn power_square(&self, base: &Number, exponent: &Number) -> Calc<Number> {
        base.modulo(&self.square)?.power(&exponent.modulo(&self.square_order)?, &self.square)
    }

    /// base^n modulo the square. With n = p q: (base^q)^p depends on base^q modulo p only.
    fn nth_power(&self, base: &Number) -> Calc<Number> {
        base.modulo(&self.value)?.power(&self.other, &self.value)?.power(&self.value, &self.square)
    }

    fn decrypt(&self, ciphertext: &Number) -> Calc<Number> {
        let power = ciphertext.modulo(&self.square)?.power(&self.order, &self.square)?;
        power.minus_one()?.over(&self.value)?.times_modulo(&self.decryption, &self.value)
    }

    /// Whether a number is a square modulo the prime. The number asked about is published with the answer.
    fn is_square(&self, number: &Number) -> Calc<bool> {
        let half = self.order.over(&Number::from_u32(2)?)?;
        Ok(self.power(number, &half)? == Number::from_u32(1)?)
    }
}

impl Factors {
    /// From the primes, which must be different.
    pub(crate) fn new(p: Number, q: Number) -> Calc<Self> {
        let modulus = Modulus::new(p.times(&q)?)?;
        let q_inverse = q.modulo(&p)?.inverse(&p)?;
        let (p, q) = (Prime::new(p.copy()?, &q)?, Prime::new(q, &p)?);
        let q_square_inverse = q.square.modulo(&p.square)?.inverse(&p.square)?;
        Ok(Self { modulus, p, q, q_inverse, q_square_inverse })
    }

    /// Fresh primes p = 3 modulo 4, of half of `bits` each, where (p - 1) / 2 is a product of two primes of half
    /// that: the squares modulo n have no small subgroup, as with safe primes, at a fraction of the search.
    pub(crate) fn generate(bits: usize, rng: &mut dyn CryptoRng) -> Calc<Self> {
        if !bits.is_multiple_of(4) {
            return Err(Failure);
        }
        let p = search_prime(bits / 2, rng)?;
        let q = search_prime(bits / 2, rng)?;
        if p == q { Err(Failure) } else { Self::new(p, q) }
    }

    /// base^exponent modulo n.
    pub(crate) fn power(&self, base: &Number, exponent: &Number) -> Calc<Number> {
        let (in_p, in_q) = (self.p.power(base, exponent)?, self.q.power(base, exponent)?);
        self.join(&in_p, &in_q)
    }

    /// base^exponent modulo n^2.
    pub(crate) fn power_square(&self, base: &Number, exponent: &Number) -> Calc<Number> {
        self.join_square(&self.p.power_square(base, exponent)?, &self.q.power_square(base, exponent)?)
    }

    /// base^n modulo n^2.
    pub(crate) fn nth_power(&self, base: &Number) -> Calc<Number> {
        self.join_square(&self.p.nth_power(base)?, &self.q.nth_power(base)?)
    }

    /// The plaintext of a unit modulo n^2, from 0 to n - 1.
    pub(crate) fn decrypt(&self, ciphertext: &Number) -> Calc<Number> {
        self.join(&self.p.decrypt(ciphertext)?, &self.q.decrypt(ciphertext)?)
    }

    /// The order of the units modulo n.
    pub(crate) fn order(&self) -> Calc<Number> {
        self.p.order.times(&self.q.order)
    }

    /// A fourth root of (-1)^a w^b y, with the a and b for which there is one. w is a square modulo exactly one of
    /// the primes.
    pub(crate) fn fourth_root(&self, y: &Number, w: &Number) -> Calc<(Number, bool, bool)> {
        let n = &self.modulus.n;
        // -1 is a square modulo neither prime: w decides whether both answers are alike, -1 turns both.
        let b = self.p.is_square(y)? != self.q.is_square(y)?;
        let y = if b { y.times_modulo(w, n)? } else { y.copy()? };
        let a = !self.p.is_square(&y)?;
        let y = if a { n.minus(&y)? } else { y };
        // Modulo p = 3 modulo 4 the square root that is a square itself is the power (p + 1) / 4.
        let root = |prime: &Prime| {
            let quarter = prime.value.plus_one()?.over(&Number::from_u32(4)?)?;
            prime.power(&y, &quarter.times_modulo(&quarter, &prime.order)?)
        };
        Ok((self.join(&root(&self.p)?, &root(&self.q)?)?, a, b))
    }

    /// A number that is a square modulo exactly one of the primes.
    pub(crate) fn non_square(&self, rng: &mut dyn CryptoRng) -> Calc<Number> {
        loop {
            let w = self.modulus.random_unit(rng)?;
            if self.p.is_square(&w)? != self.q.is_square(&w)? {
                return Ok(w);
            }
        }
    }

    fn join(&self, in_p: &Number, in_q: &Number) -> Calc<Number> {
        remainder(in_p, in_q, &self.p.value, &self.q.value, &self.q_inverse)
    }

    fn join_square(&self, in_p: &Number, in_q: &Number) -> Calc<Number> {
        remainder(in_p, in_q, &self.p.square, &self.q.square, &self.q_square_inverse)
    }
}

/// The number below p q that is `in_p` modulo p and `in_q` modulo q.
fn remainder(in_p: &Number, in_q: &Number, p: &Number, q: &Number, q_inverse: &Number) -> Calc<Number> {
    let difference = in_p.minus_modulo(&in_q.modulo(p)?, p)?;
    difference.times_modulo(q_inverse, p)?.times(q)?.plus(in_q)
}

/// A prime 2 a b + 1 of `bits` bits with its two highest bits set, where a and b are primes of half the length.
fn search_prime(bits: usize, rng: &mut dyn CryptoRng) -> Calc<Number> {
    let two = Number::from_u32(2)?;
    let (mut longer, mut shorter) = (Vec::new(), Vec::new());
    loop {
        // Every pair of two primes is a candidate: about thirty of each are needed.
        let a = two.times(&half_prime(bits / 2, rng)?)?;
        for b in &shorter {
            if let Some(found) = prime_after(&a, b)? {
                return Ok(found);
            }
        }
        longer.push(a);
        let b = half_prime(bits / 2 - 1, rng)?;
        for a in &longer {
            if let Some(found) = prime_after(a, &b)? {
                return Ok(found);
            }
        }
        shorter.push(b);
    }
}

fn prime_after(a: &Number, b: &Number) -> Calc<Option<Number>> {
    let candidate = a.times(b)?.plus_one()?;
    Ok(candidate.is_prime()?.then_some(candidate))
}

/// A prime whose three highest bits are set, so that the product of two is at least three quarters of the next
/// power of two.
fn half_prime(bits: usize, rng: &mut dyn CryptoRng) -> Calc<Number> {
    let top =
        Number::power_of_two(bits)?.minus(&Number::power_of_two(bits.checked_sub(3).ok_or(Failure)?)?)?;
    loop {
        let candidate = top.plus(&Number::random_bits(bits - 3, rng)?)?;
        let candidate = if candidate.is_bit_set(0) { candidate } else { candidate.plus_one()? };
        if candidate.is_prime()? {
            return Ok(candidate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    const BITS: usize = 512;

    fn factors(seed: u64) -> (Factors, ChaCha20Rng) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        (Factors::generate(BITS, &mut rng).unwrap(), rng)
    }

    #[test]
    fn generated_primes_have_the_wanted_form() {
        let (factors, _) = factors(1);
        assert_eq!(factors.modulus.bits(), BITS);
        for prime in [&factors.p, &factors.q] {
            assert_eq!(prime.value.bits(), BITS / 2);
            assert_eq!(prime.value.modulo_small(4).unwrap(), 3);
            let half = prime.order.over(&Number::from_u32(2).unwrap()).unwrap();
            for small in 3..1000 {
                assert_ne!(half.modulo_small(small).unwrap(), 0);
            }
        }
    }

    #[test]
    fn powers_by_the_primes_are_the_powers() {
        let (factors, mut rng) = factors(2);
        let (n, square) = (&factors.modulus.n, &factors.modulus.square);
        for bits in [1usize, 255, 600, 1500] {
            let base = Number::random_below(square, &mut rng).unwrap();
            let exponent = Number::random_bits(bits, &mut rng).unwrap();
            let expected = base.power_public(&exponent, square).unwrap();
            assert!(factors.power_square(&base, &exponent).unwrap() == expected);
            let expected = base.power_public(&exponent, n).unwrap();
            assert!(factors.power(&base, &exponent).unwrap() == expected);
        }
        let base = Number::random_below(n, &mut rng).unwrap();
        assert!(factors.nth_power(&base).unwrap() == base.power_public(n, square).unwrap());
    }

    #[test]
    fn decryption_undoes_encryption_and_adds() {
        let (factors, mut rng) = factors(3);
        let modulus = &factors.modulus;
        let encrypt = |m: &Number, rng: &mut ChaCha20Rng| {
            let mask = modulus.random_unit(rng).unwrap().power_public(&modulus.n, &modulus.square).unwrap();
            modulus.embed(m).unwrap().times_modulo(&mask, &modulus.square).unwrap()
        };
        for bits in [0usize, 1, 255, BITS - 1] {
            let m = Number::random_bits(bits, &mut rng).unwrap();
            let ciphertext = encrypt(&m, &mut rng);
            assert!(factors.decrypt(&ciphertext).unwrap() == m);
            let other = encrypt(&Number::from_u32(9).unwrap(), &mut rng);
            let sum = m.plus(&Number::from_u32(9).unwrap()).unwrap().modulo(&modulus.n).unwrap();
            let added = ciphertext.times_modulo(&other, &modulus.square).unwrap();
            assert!(factors.decrypt(&added).unwrap() == sum);
        }
    }

    #[test]
    fn fourth_roots_are_roots() {
        let (factors, mut rng) = factors(4);
        let n = &factors.modulus.n;
        let w = factors.non_square(&mut rng).unwrap();
        for _ in 0..20 {
            let y = factors.modulus.random_unit(&mut rng).unwrap();
            let (x, a, b) = factors.fourth_root(&y, &w).unwrap();
            let fourth = x.power_public(&Number::from_u32(4).unwrap(), n).unwrap();
            let expected = if b { y.times_modulo(&w, n).unwrap() } else { y };
            let expected = if a { n.minus(&expected).unwrap() } else { expected };
            assert!(fourth == expected);
        }
    }
}
