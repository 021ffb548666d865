//! Powers modulo n^2 in about half the time that a library for any modulus takes.
//!
//! A number is kept in two halves, a - b n. Montgomery's reduction of a^2 finds a' and q with a^2 + q n = R a', so
//! (a - b n)^2 / R = a' - ((2ab + q) / R) n modulo n^2. Reductions included, a square takes 3.5 products of the length
//! of n, and one modulo any number of twice the length takes 6.
//!
//! Nothing depends on the numbers but the sums themselves. Limbs have 60 bits, so that a column of products fits 128
//! bits; R is more than 2^8 times n, so halves below 2n stay below 2n without a last subtraction.

use subtle::{ConditionallySelectable, ConstantTimeEq};
use zeroize::{Zeroize, Zeroizing};

use crate::number::{Calc, Failure, Number};

const LIMB_BITS: usize = 60;
const LIMB: u64 = (1 << LIMB_BITS) - 1;
/// Bytes of two limbs.
const PAIR_BYTES: usize = 2 * LIMB_BITS / 8;
/// Columns that are summed at a time: one limb is multiplied by so many at once.
const COLUMNS: usize = 4;
/// Zeros at both ends of a number, so that its last columns are like all others.
const EDGE: usize = COLUMNS;
/// Limbs that are multiplied in one turn of a loop.
const TURN: usize = 8;
/// A column has up to three products of 2^120 for each limb, and carries.
const MAX_LIMBS: usize = 84;
/// How much longer than n R is.
const SPARE_BITS: usize = 8;
/// Bits of a public exponent that one multiplication takes in.
const PUBLIC_WINDOW: usize = 6;
/// The same for a secret one, whose table is read as a whole each time.
const SECRET_WINDOW: usize = 4;

type Sums = [u128; COLUMNS];

/// Arithmetic modulo n^2.
pub(crate) struct Halves {
    n: Number,
    square: Number,
    limbs: Limbs,
    /// -1/n modulo 2^60.
    negative_inverse: u64,
    /// R^2, which takes a number into Montgomery's form.
    entry: Pair,
}

/// Limbs, lowest first, between zeros. Wiped on drop.
struct Limbs(Zeroizing<Vec<u64>>);

/// low - high n.
struct Pair {
    low: Limbs,
    high: Limbs,
}

/// Places for what a product computes.
struct Scratch {
    low_quotient: Limbs,
    high_quotient: Limbs,
    doubled: Limbs,
    product: Pair,
}

impl Limbs {
    fn zero(count: usize) -> Self {
        Self(Zeroizing::new(vec![0; count + 2 * EDGE]))
    }

    fn one(count: usize) -> Self {
        let mut out = Self::zero(count);
        out.all_mut().iter_mut().take(1).for_each(|limb| *limb = 1);
        out
    }

    /// A failure if the number is longer.
    fn of(number: &Number, count: usize) -> Calc<Self> {
        let mut out = Self::zero(count);
        let bytes = number.to_bytes(count * LIMB_BITS / 8)?;
        for (limbs, bytes) in out.all_mut().chunks_mut(2).zip(bytes.rchunks(PAIR_BYTES)) {
            let both = bytes.iter().fold(0u128, |sum, byte| sum << 8 | u128::from(*byte));
            for (at, limb) in limbs.iter_mut().enumerate() {
                *limb = (both >> (at * LIMB_BITS)) as u64 & LIMB;
            }
        }
        Ok(out)
    }

    fn number(&self) -> Calc<Number> {
        let limbs = self.all();
        let mut bytes = Zeroizing::new(vec![0u8; limbs.len() * LIMB_BITS / 8]);
        for (bytes, limbs) in bytes.rchunks_mut(PAIR_BYTES).zip(limbs.chunks(2)) {
            let both = limbs.iter().rev().fold(0u128, |sum, limb| sum << LIMB_BITS | u128::from(*limb));
            bytes.copy_from_slice(both.to_be_bytes().split_at(size_of::<u128>() - PAIR_BYTES).1);
        }
        Number::from_bytes(&bytes)
    }

    fn count(&self) -> usize {
        self.0.len() - 2 * EDGE
    }

    fn all(&self) -> &[u64] {
        self.span(0, self.count())
    }

    fn span(&self, from: usize, to: usize) -> &[u64] {
        self.0.get(from + EDGE..to + EDGE).unwrap_or_default()
    }

    fn all_mut(&mut self) -> &mut [u64] {
        let end = self.count() + EDGE;
        self.0.get_mut(EDGE..end).unwrap_or_default()
    }

    fn block_mut(&mut self, from: usize) -> &mut [u64] {
        self.0.get_mut(from + EDGE..from + EDGE + COLUMNS).unwrap_or_default()
    }

    /// The limbs that limbs `from` up to `to` of another number meet in the columns from `column` on, and their
    /// neighbours.
    fn facing(&self, column: usize, from: usize, to: usize) -> &[u64] {
        self.0.get(column + EDGE + 1 - to..column + EDGE + COLUMNS - from).unwrap_or_default()
    }
}

impl Pair {
    fn zero(count: usize) -> Self {
        Self { low: Limbs::zero(count), high: Limbs::zero(count) }
    }

    /// Takes the place of `self` with the pair in `table` at a secret place.
    fn select(&mut self, table: &[Pair], place: u8) {
        for (at, pair) in (0u8..).zip(table) {
            let chosen = at.ct_eq(&place);
            for (to, from) in [(&mut self.low, &pair.low), (&mut self.high, &pair.high)] {
                for (to, from) in to.0.iter_mut().zip(from.0.iter()) {
                    to.conditional_assign(from, chosen);
                }
            }
        }
    }

    fn copy(&self) -> Self {
        let of = |limbs: &Limbs| Limbs(limbs.0.clone());
        Self { low: of(&self.low), high: of(&self.high) }
    }
}

impl Scratch {
    fn new(count: usize) -> Self {
        let zero = || Limbs::zero(count);
        Self { low_quotient: zero(), high_quotient: zero(), doubled: zero(), product: Pair::zero(count) }
    }
}

/// Adds x_j times the limbs facing it to each column.
#[inline(always)]
fn add_products(sums: &mut Sums, limbs: &[u64], facing: &[u64]) {
    let mut local = *sums;
    let (turns, rest) = limbs.as_chunks::<TURN>();
    let facing = add_turns::<TURN, { TURN + EDGE - 1 }>(&mut local, turns, facing);
    add_turns::<2, { 2 + EDGE - 1 }>(&mut local, rest.as_chunks::<2>().0, facing);
    *sums = local;
}

/// T limbs at a time, which meet S of the other number. Returns those that the next ones meet.
#[inline(always)]
fn add_turns<'a, const T: usize, const S: usize>(
    sums: &mut Sums,
    turns: &[[u64; T]],
    mut facing: &'a [u64],
) -> &'a [u64] {
    for turn in turns {
        let Some((_, met)) = facing.split_last_chunk::<S>() else { break };
        for (limb, others) in turn.iter().zip(met.array_windows::<COLUMNS>().rev()) {
            for (sum, other) in sums.iter_mut().zip(others) {
                *sum = sum.wrapping_add(u128::from(*limb).wrapping_mul(u128::from(*other)));
            }
        }
        facing = facing.split_last_chunk::<T>().map_or(facing, |(rest, _)| rest);
    }
    facing
}

/// Adds the product of both numbers to the columns from `column` on.
#[inline(always)]
fn add_product(sums: &mut Sums, x: &Limbs, y: &Limbs, column: usize) {
    let from = column.saturating_sub(y.count());
    let to = x.count().min(column + COLUMNS);
    add_products(sums, x.span(from, to), y.facing(column, from, to));
}

/// The same of the square of x, whose limbs are there doubled too.
#[inline(always)]
fn add_square(sums: &mut Sums, x: &Limbs, doubled: &Limbs, column: usize) {
    let from = column.saturating_sub(x.count());
    // Pairs of different limbs whose lower one meets only higher ones in all these columns.
    let to = column / 2;
    add_products(sums, doubled.span(from, to), x.facing(column, from, to));
    for at in to..to + COLUMNS / 2 {
        let (Some(limb), Some(twice)) = (x.all().get(at), doubled.all().get(at)) else { break };
        let first = (2 * at).saturating_sub(column);
        for (sum, (place, other)) in
            sums.iter_mut().skip(first).zip((at..).zip(x.span(at, x.count() + COLUMNS)))
        {
            let factor = if place == at { limb } else { twice };
            *sum = sum.wrapping_add(u128::from(*factor).wrapping_mul(u128::from(*other)));
        }
    }
}

/// Leaves the limbs of these columns in `out`, and returns what is carried to the next one.
#[inline(always)]
fn settle(sums: Sums, mut carry: u128, out: &mut [u64]) -> u128 {
    for (sum, limb) in sums.into_iter().zip(out) {
        let sum = sum.wrapping_add(carry);
        *limb = sum as u64 & LIMB;
        carry = sum >> LIMB_BITS;
    }
    carry
}

impl Halves {
    /// For an odd n of at most 5032 bits.
    pub(crate) fn new(n: &Number) -> Calc<Self> {
        let count = (n.bits() + SPARE_BITS).div_ceil(LIMB_BITS).next_multiple_of(COLUMNS);
        if count > MAX_LIMBS || !n.is_bit_set(0) {
            return Err(Failure);
        }
        let (n, square, limbs) = (n.copy()?, n.times(n)?, Limbs::of(n, count)?);
        let lowest = limbs.all().first().copied().unwrap_or(1);
        // Newton's iteration doubles the bits that are right: an odd number is its own inverse modulo 8.
        let inverse = (0..5)
            .fold(lowest, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(lowest.wrapping_mul(inverse))));
        let negative_inverse = inverse.wrapping_neg() & LIMB;
        let entry = Number::power_of_two(2 * count * LIMB_BITS)?.modulo(&square)?;
        let entry = split(&entry, &n, count)?;
        Ok(Self { n, square, limbs, negative_inverse, entry })
    }

    /// A power with an exponent that everybody may know.
    pub(crate) fn power_public(&self, base: &Number, exponent: &Number) -> Calc<Number> {
        let mut scratch = Scratch::new(self.limbs.count());
        let base = self.enter(base, &mut scratch)?;
        let power = self.raise_public(base, exponent, &mut scratch);
        self.leave(power, &mut scratch)
    }

    /// A power with a secret exponent of at most `bits` bits.
    pub(crate) fn power(&self, base: &Number, exponent: &Number, bits: usize) -> Calc<Number> {
        let mut scratch = Scratch::new(self.limbs.count());
        let base = self.enter(base, &mut scratch)?;
        let power = self.raise(&base, &exponent.to_bytes(bits.div_ceil(8))?, &mut scratch);
        self.leave(power, &mut scratch)
    }

    fn raise_public(&self, base: Pair, exponent: &Number, scratch: &mut Scratch) -> Pair {
        // The odd powers.
        let mut square = base.copy();
        self.square(&mut square, scratch);
        let mut next = base;
        let mut table = Vec::with_capacity(1 << (PUBLIC_WINDOW - 1));
        for _ in 0..1 << (PUBLIC_WINDOW - 1) {
            table.push(next.copy());
            self.multiply(&mut next, &square, scratch);
        }
        let mut power = self.one(scratch);
        let mut end = exponent.bits();
        while let Some(highest) = end.checked_sub(1) {
            if !exponent.is_bit_set(highest) {
                self.square(&mut power, scratch);
                end = highest;
                continue;
            }
            let lowest = end.saturating_sub(PUBLIC_WINDOW);
            let lowest = (lowest..end).find(|bit| exponent.is_bit_set(*bit)).unwrap_or(highest);
            let above = (lowest + 1..end).rev();
            let place = above.fold(0, |place, bit| 2 * place + usize::from(exponent.is_bit_set(bit)));
            (lowest..end).for_each(|_| self.square(&mut power, scratch));
            if let Some(odd) = table.get(place) {
                self.multiply(&mut power, odd, scratch);
            }
            end = lowest;
        }
        power
    }

    /// With a secret exponent: big-endian.
    fn raise(&self, base: &Pair, exponent: &[u8], scratch: &mut Scratch) -> Pair {
        let mut next = self.one(scratch);
        let mut table = Vec::with_capacity(1 << SECRET_WINDOW);
        for _ in 0..1 << SECRET_WINDOW {
            table.push(next.copy());
            self.multiply(&mut next, base, scratch);
        }
        let (mut power, mut chosen) = (self.one(scratch), Pair::zero(self.limbs.count()));
        for byte in exponent {
            for digit in [byte >> SECRET_WINDOW, byte & ((1 << SECRET_WINDOW) - 1)] {
                (0..SECRET_WINDOW).for_each(|_| self.square(&mut power, scratch));
                chosen.select(&table, digit);
                self.multiply(&mut power, &chosen, scratch);
            }
        }
        power
    }

    fn one(&self, scratch: &mut Scratch) -> Pair {
        let count = self.limbs.count();
        let mut one = Pair { low: Limbs::one(count), high: Limbs::zero(count) };
        self.multiply(&mut one, &self.entry, scratch);
        one
    }

    fn enter(&self, base: &Number, scratch: &mut Scratch) -> Calc<Pair> {
        let mut pair = split(&base.modulo(&self.square)?, &self.n, self.limbs.count())?;
        self.multiply(&mut pair, &self.entry, scratch);
        Ok(pair)
    }

    fn leave(&self, mut pair: Pair, scratch: &mut Scratch) -> Calc<Number> {
        let count = self.limbs.count();
        self.multiply(&mut pair, &Pair { low: Limbs::one(count), high: Limbs::zero(count) }, scratch);
        // Halves are below 2n.
        let high = self.n.plus(&self.n)?.minus(&pair.high.number()?)?;
        high.times(&self.n)?.plus(&pair.low.number()?)?.modulo(&self.square)
    }

    /// x^2 / R.
    fn square(&self, x: &mut Pair, scratch: &mut Scratch) {
        let mut doubled = core::mem::replace(&mut scratch.doubled, Limbs(Zeroizing::default()));
        for (twice, limb) in doubled.0.iter_mut().zip(x.low.0.iter()) {
            *twice = limb << 1;
        }
        self.reduce(
            scratch,
            |sums, column| add_square(sums, &x.low, &doubled, column),
            |sums, column| add_product(sums, &doubled, &x.high, column),
        );
        scratch.doubled = doubled;
        core::mem::swap(x, &mut scratch.product);
    }

    /// x y / R.
    fn multiply(&self, x: &mut Pair, y: &Pair, scratch: &mut Scratch) {
        self.reduce(
            scratch,
            |sums, column| add_product(sums, &x.low, &y.low, column),
            |sums, column| {
                add_product(sums, &x.low, &y.high, column);
                add_product(sums, &x.high, &y.low, column);
            },
        );
        core::mem::swap(x, &mut scratch.product);
    }

    /// Both halves of a product whose columns the arguments add.
    #[inline(always)]
    fn reduce(
        &self,
        scratch: &mut Scratch,
        add_low: impl Fn(&mut Sums, usize),
        add_high: impl Fn(&mut Sums, usize),
    ) {
        let count = self.limbs.count();
        let Scratch { low_quotient, high_quotient, product, .. } = scratch;
        let (mut low_carry, mut high_carry) = (0, 0);
        for column in (0..count).step_by(COLUMNS) {
            let mut sums = Sums::default();
            add_low(&mut sums, column);
            low_carry = self.cancel(sums, low_carry, low_quotient, column);
            let mut sums = Sums::default();
            add_high(&mut sums, column);
            for (sum, limb) in sums.iter_mut().zip(low_quotient.span(column, column + COLUMNS)) {
                *sum = sum.wrapping_add(u128::from(*limb));
            }
            high_carry = self.cancel(sums, high_carry, high_quotient, column);
        }
        for column in (count..2 * count).step_by(COLUMNS) {
            let mut sums = Sums::default();
            add_low(&mut sums, column);
            add_product(&mut sums, low_quotient, &self.limbs, column);
            low_carry = settle(sums, low_carry, product.low.block_mut(column - count));
            let mut sums = Sums::default();
            add_high(&mut sums, column);
            add_product(&mut sums, high_quotient, &self.limbs, column);
            high_carry = settle(sums, high_carry, product.high.block_mut(column - count));
        }
    }

    /// Finds the limbs of the quotient from `column` on, with which these columns become zero.
    #[inline(always)]
    fn cancel(&self, mut sums: Sums, mut carry: u128, quotient: &mut Limbs, column: usize) -> u128 {
        add_products(&mut sums, quotient.span(0, column), self.limbs.facing(column, 0, column));
        let lowest = self.limbs.span(0, COLUMNS);
        let mut found = [0u64; COLUMNS];
        for (at, sum) in sums.into_iter().enumerate() {
            let mut sum = sum.wrapping_add(carry);
            let known = found.iter().take(at);
            for (quotient, limb) in known.zip(lowest.iter().skip(1).take(at).rev()) {
                sum = sum.wrapping_add(u128::from(*quotient).wrapping_mul(u128::from(*limb)));
            }
            let next = (sum as u64).wrapping_mul(self.negative_inverse) & LIMB;
            for (place, limb) in found.iter_mut().skip(at).take(1).zip(lowest) {
                *place = next;
                sum = sum.wrapping_add(u128::from(next).wrapping_mul(u128::from(*limb)));
            }
            carry = sum >> LIMB_BITS;
        }
        quotient.block_mut(column).copy_from_slice(&found);
        found.zeroize();
        carry
    }
}

/// low - high n for a number below n^2.
fn split(number: &Number, n: &Number, count: usize) -> Calc<Pair> {
    let high = n.minus(&number.over(n)?)?;
    // a + c n is a - (n - c) n modulo n^2.
    Ok(Pair { low: Limbs::of(&number.modulo(n)?, count)?, high: Limbs::of(&high, count)? })
}

/// For the check of constant time: powers from limbs to limbs, where the library takes no part.
#[cfg(feature = "forge")]
pub mod forge {
    use rand_core::CryptoRng;

    use super::{Halves, LIMB, LIMB_BITS, Pair, Scratch};
    use crate::number::{Failure, Number};

    /// Powers modulo the square of an odd number.
    pub struct Powers(Halves);

    /// A number modulo the square, in halves.
    pub struct Base(Pair);

    impl Powers {
        /// A failure unless the number is odd and of a usable length.
        pub fn new(n: &[u8]) -> Result<Self, Failure> {
            Ok(Self(Halves::new(&Number::from_bytes(n)?)?))
        }

        /// A random one.
        pub fn base(&self, rng: &mut dyn CryptoRng) -> Base {
            let mut pair = Pair::zero(self.0.limbs.count());
            let below = self.0.n.bits() / LIMB_BITS;
            for half in [&mut pair.low, &mut pair.high] {
                half.all_mut().iter_mut().take(below).for_each(|limb| *limb = rng.next_u64() & LIMB);
            }
            Base(pair)
        }

        /// The exponent is big-endian.
        pub fn with_secret_exponent(&self, base: &Base, exponent: &[u8]) -> Base {
            Base(self.0.raise(&base.0, exponent, &mut Scratch::new(self.0.limbs.count())))
        }

        /// With n as the exponent.
        pub fn with_public_exponent(&self, base: &Base) -> Base {
            let mut scratch = Scratch::new(self.0.limbs.count());
            Base(self.0.raise_public(base.0.copy(), &self.0.n, &mut scratch))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn odd(number: Number) -> Number {
        if number.is_bit_set(0) { number } else { number.plus_one().unwrap() }
    }

    /// Against libcrypto: lengths around those of the limbs, the largest and the smallest number of each, and bases at
    /// both ends.
    #[test]
    fn powers_are_those_of_the_library() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for bits in [8usize, 60, 111, 112, 113, 231, 232, 233, 512, 1536, 3072, 4572, 5032] {
            let top = Number::power_of_two(bits - 1).unwrap();
            let largest = Number::power_of_two(bits).unwrap().minus_one().unwrap();
            let some = odd(top.plus(&Number::random_bits(bits - 1, &mut rng).unwrap()).unwrap());
            for n in [odd(top), some, largest] {
                let halves = Halves::new(&n).unwrap();
                let square = n.times(&n).unwrap();
                let exponents =
                    [0usize, 1, 7, 64, 255].map(|bits| Number::random_bits(bits, &mut rng).unwrap());
                let bases = [
                    Number::from_u32(0).unwrap(),
                    Number::from_u32(1).unwrap(),
                    n.minus_one().unwrap(),
                    n.copy().unwrap(),
                    square.minus_one().unwrap(),
                    Number::random_below(&square, &mut rng).unwrap(),
                ];
                for base in &bases {
                    for exponent in &exponents {
                        let expected = base.power_public(exponent, &square).unwrap();
                        assert!(halves.power_public(base, exponent).unwrap() == expected, "{bits} bits");
                        assert!(halves.power(base, exponent, 255).unwrap() == expected, "{bits} bits");
                    }
                }
            }
        }
    }

    #[test]
    fn unusable_moduli_are_refused() {
        let even = Number::from_u32(1000).unwrap();
        assert!(Halves::new(&even).is_err());
        let long = Number::power_of_two(5040).unwrap().plus_one().unwrap();
        assert!(Halves::new(&long).is_err());
    }
}
