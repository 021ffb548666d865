//! Multiplication: rows of partial products for small numbers, Karatsuba's method above, signed digits for constants.

use std::iter::once;

use super::{Builder, bit};
use crate::circuit::Lit;

/// Numbers shorter than this are multiplied row by row: below it Karatsuba's additions cost more than they save.
const KARATSUBA: usize = 20;

impl Builder<'_> {
    /// The low `n` bits of `a * b`, both unsigned.
    pub fn multiply(&mut self, a: &[Lit], b: &[Lit], n: usize) -> Vec<Lit> {
        let a = trim(a.get(..n.min(a.len())).unwrap_or(a));
        let b = trim(b.get(..n.min(b.len())).unwrap_or(b));
        let mut out = if is_constant(b) {
            self.multiply_constant(a, b, n)
        } else if is_constant(a) {
            self.multiply_constant(b, a, n)
        } else if n >= a.len() + b.len() {
            self.full(a, b)
        } else {
            self.low(a, b, n)
        };
        out.resize(n, Lit::FALSE);
        out
    }

    /// All `a.len() + b.len()` bits.
    fn full(&mut self, a: &[Lit], b: &[Lit]) -> Vec<Lit> {
        let n = a.len() + b.len();
        if a == b && n < 2 * KARATSUBA {
            return self.square(a);
        }
        if a.len().min(b.len()) < KARATSUBA || a.len().max(b.len()) > 2 * a.len().min(b.len()) {
            return self.rows(a, b, n);
        }
        let half = a.len().max(b.len()).div_ceil(2);
        let (a0, a1) = a.split_at(half.min(a.len()));
        let (b0, b1) = b.split_at(half.min(b.len()));
        let low = self.full(a0, b0);
        let high = self.full(a1, b1);
        let a01 = self.add(a0, a1, Lit::FALSE, half + 1);
        let b01 = self.add(b0, b1, Lit::FALSE, half + 1);
        let both = self.full(&a01, &b01);
        let width = 2 * half + 2;
        let less = self.sub(&both, &low, width);
        let mut cross = self.sub(&less, &high, width);
        // a0 b1 + a1 b0 < 2^(2 half + 1): the top bit is 0.
        cross.truncate(2 * half + 1);
        let mut out = low.clone();
        out.resize(2 * half, Lit::FALSE);
        out.extend_from_slice(&high);
        out.resize(n, Lit::FALSE);
        let (kept, upper) = out.split_at(half.min(n));
        let sum = self.add(upper, &cross, Lit::FALSE, n - half);
        [kept, &sum].concat()
    }

    /// The square of a short number: each product of two different bits counts twice, so it is made once.
    fn square(&mut self, a: &[Lit]) -> Vec<Lit> {
        let mut out = vec![Lit::FALSE; 2 * a.len()];
        for (i, x) in a.iter().enumerate() {
            // Bit 2i has been left free by the rows before, or holds what they carried.
            let row: Vec<Lit> = once(*x)
                .chain(once(Lit::FALSE))
                .chain(a.iter().skip(i + 1).map(|y| self.and(*x, *y)))
                .collect();
            let at = 2 * i;
            let width = (row.len() + 1).min(out.len() - at);
            let upper: Vec<Lit> = (at..at + width).map(|j| bit(&out, j)).collect();
            let sum = self.add(&upper, &row, Lit::FALSE, width);
            for (place, lit) in out.iter_mut().skip(at).zip(sum) {
                *place = lit;
            }
        }
        out
    }

    /// The low `n` bits, where the product is longer.
    fn low(&mut self, a: &[Lit], b: &[Lit], n: usize) -> Vec<Lit> {
        if n < 2 * KARATSUBA {
            return self.rows(a, b, n);
        }
        let half = n.div_ceil(2);
        let (a0, a1) = a.split_at(half.min(a.len()));
        let (b0, b1) = b.split_at(half.min(b.len()));
        let base = self.full(a0, b0);
        let left = self.multiply(a0, b1, n - half);
        let right = self.multiply(a1, b0, n - half);
        let cross = self.add(&left, &right, Lit::FALSE, n - half);
        let upper: Vec<Lit> = (half..n).map(|i| bit(&base, i)).collect();
        let sum = self.add(&upper, &cross, Lit::FALSE, n - half);
        let mut out: Vec<Lit> = (0..half).map(|i| bit(&base, i)).collect();
        out.extend(sum);
        out
    }

    /// One row for each bit of the shorter number, each added to the sum so far.
    fn rows(&mut self, a: &[Lit], b: &[Lit], n: usize) -> Vec<Lit> {
        let (a, b) = if a.len() >= b.len() { (a, b) } else { (b, a) };
        let mut out = vec![Lit::FALSE; n];
        for (i, y) in b.iter().enumerate().take(n) {
            let width = (a.len() + 1).min(n - i);
            let row: Vec<Lit> = a.iter().take(width).map(|x| self.and(*x, *y)).collect();
            let upper: Vec<Lit> = (i..i + width).map(|j| bit(&out, j)).collect();
            let sum = self.add(&upper, &row, Lit::FALSE, width);
            for (place, lit) in out.iter_mut().skip(i).zip(sum) {
                *place = lit;
            }
        }
        out
    }

    /// `a` times a constant: an addition or subtraction for each digit of its non-adjacent form.
    fn multiply_constant(&mut self, a: &[Lit], constant: &[Lit], n: usize) -> Vec<Lit> {
        let mut out = vec![Lit::FALSE; n];
        let mut carry = false;
        for i in 0..=constant.len().min(n) {
            let here = bit(constant, i) == Lit::TRUE;
            let next = bit(constant, i + 1) == Lit::TRUE;
            if here == carry {
                continue; // 0 + 0 gives digit 0; 1 + 1 gives 0 and keeps the carry
            }
            // A digit is +1, or -1 with a carry where the next bit is 1 too.
            let negative = next;
            carry = negative;
            let Some(width) = n.checked_sub(i) else { break };
            let upper: Vec<Lit> = out.iter().skip(i).copied().collect();
            let sum =
                if negative { self.sub(&upper, a, width) } else { self.add(&upper, a, Lit::FALSE, width) };
            for (place, lit) in out.iter_mut().skip(i).zip(sum) {
                *place = lit;
            }
        }
        out
    }
}

fn is_constant(bits: &[Lit]) -> bool {
    bits.iter().all(|b| b.value().is_some())
}

/// The bits below the constant zeros at the top.
fn trim(bits: &[Lit]) -> &[Lit] {
    let length = bits.iter().rposition(|b| *b != Lit::FALSE).map_or(0, |i| i + 1);
    bits.get(..length).unwrap_or(bits)
}
