//! Division by shift and subtract.

use super::{Builder, bit};
use crate::circuit::Lit;

impl Builder<'_> {
    /// Quotient and remainder of unsigned numbers of `a.len()` bits: about n² gates. Division by zero gives a quotient
    /// of ones and the remainder `a`.
    pub fn divide(&mut self, a: &[Lit], b: &[Lit]) -> (Vec<Lit>, Vec<Lit>) {
        let n = a.len();
        // A divisor whose top bit is known to be 1 bounds every rest by its length.
        let bound = b.iter().rposition(|l| *l != Lit::FALSE).filter(|top| bit(b, *top) == Lit::TRUE);
        let mut quotient = vec![Lit::FALSE; n];
        let mut rest: Vec<Lit> = Vec::new();
        // Entry w: whether the divisor has a bit at or above w, so that a rest of w bits is below it.
        let mut above = vec![Lit::FALSE; n.max(b.len()) + 1];
        for w in (0..above.len().saturating_sub(1)).rev() {
            let higher = bit(&above, w + 1);
            let has = self.or(higher, bit(b, w));
            if let Some(place) = above.get_mut(w) {
                *place = has;
            }
        }
        for i in (0..n).rev() {
            rest.insert(0, bit(a, i));
            let width = rest.len();
            let divisor: Vec<Lit> = (0..width).map(|j| bit(b, j)).collect();
            let difference = self.sub(&rest, &divisor, width + 1);
            // One bit longer than its operands: the top bit tells whether it went below zero.
            let below = bit(&difference, width);
            let fits = self.and(!below, !bit(&above, width));
            if let Some(place) = quotient.get_mut(i) {
                *place = fits;
            }
            rest = self.select(fits, difference.get(..width).unwrap_or(&[]), &rest);
            if let Some(top) = bound {
                rest.truncate(top + 1);
            }
        }
        rest.resize(n, Lit::FALSE);
        (quotient, rest)
    }

    /// Quotient and remainder of two's complement numbers of equal width. The quotient is rounded towards zero; the
    /// remainder is |a| mod |b|, never negative, as programs of this language expect.
    pub fn divide_signed(&mut self, a: &[Lit], b: &[Lit]) -> (Vec<Lit>, Vec<Lit>) {
        let sign = |v: &[Lit]| v.last().copied().unwrap_or(Lit::FALSE);
        let (sa, sb) = (sign(a), sign(b));
        let size_a = self.negate_if(sa, a);
        let size_b = self.negate_if(sb, b);
        let (quotient, rest) = self.divide(&size_a, &size_b);
        let differs = self.xor(sa, sb);
        let zero = !self.any(b);
        let negative = self.and(differs, !zero);
        (self.negate_if(negative, &quotient), rest)
    }
}
