//! Addition, comparison, selection and shifts. Numbers are slices of literals, the lowest bit first; all costs are in
//! AND gates.

use super::{Builder, bit};
use crate::circuit::Lit;

impl Builder<'_> {
    /// `a + b + carry`, `n` bits: n - 1 gates (Boyar and Peralta's full adder).
    pub fn add(&mut self, a: &[Lit], b: &[Lit], carry: Lit, n: usize) -> Vec<Lit> {
        let mut c = carry;
        let mut out = Vec::with_capacity(n);
        for i in 0..n {
            let (x, y) = (bit(a, i), bit(b, i));
            let xc = self.xor(x, c);
            out.push(self.xor(xc, y));
            if i + 1 < n {
                let yc = self.xor(y, c);
                let change = self.and(xc, yc);
                c = self.xor(c, change);
            }
        }
        out
    }

    /// `a - b`, `n` bits.
    pub fn sub(&mut self, a: &[Lit], b: &[Lit], n: usize) -> Vec<Lit> {
        let inverse: Vec<Lit> = (0..n).map(|i| !bit(b, i)).collect();
        self.add(a, &inverse, Lit::TRUE, n)
    }

    /// `-a`, as many bits as `a`.
    pub fn negate(&mut self, a: &[Lit]) -> Vec<Lit> {
        self.sub(&[], a, a.len())
    }

    /// `-a` if `sign`, otherwise `a`: n - 1 gates.
    pub fn negate_if(&mut self, sign: Lit, a: &[Lit]) -> Vec<Lit> {
        let flipped: Vec<Lit> = a.iter().map(|x| self.xor(*x, sign)).collect();
        self.add(&flipped, &[], sign, a.len())
    }

    /// Whether `a < b` as unsigned numbers: n gates.
    pub fn less(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        let mut borrow = Lit::FALSE;
        for i in 0..a.len().max(b.len()) {
            // The next borrow is the majority of !x, y and the borrow.
            let xb = self.xor(!bit(a, i), borrow);
            let yb = self.xor(bit(b, i), borrow);
            let change = self.and(xb, yb);
            borrow = self.xor(borrow, change);
        }
        borrow
    }

    /// Whether `a < b` as two's complement numbers of equal width.
    pub fn less_signed(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        let flip = |v: &[Lit]| -> Vec<Lit> {
            let last = v.len().saturating_sub(1);
            v.iter().enumerate().map(|(i, l)| if i == last { !*l } else { *l }).collect()
        };
        self.less(&flip(a), &flip(b))
    }

    /// Whether all bits are equal: n - 1 gates.
    pub fn equal(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        let same: Vec<Lit> = (0..a.len().max(b.len())).map(|i| !self.xor(bit(a, i), bit(b, i))).collect();
        self.all(same)
    }

    /// Whether all literals are 1, as a balanced tree.
    pub fn all(&mut self, mut bits: Vec<Lit>) -> Lit {
        while bits.len() > 1 {
            bits = bits
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => self.and(*a, *b),
                    _ => bit(pair, 0),
                })
                .collect();
        }
        bits.first().copied().unwrap_or(Lit::TRUE)
    }

    /// Whether some literal is 1.
    pub fn any(&mut self, bits: &[Lit]) -> Lit {
        !self.all(bits.iter().map(|b| !*b).collect())
    }

    /// `a` if `choice`, otherwise `b`, bit by bit.
    pub fn select(&mut self, choice: Lit, a: &[Lit], b: &[Lit]) -> Vec<Lit> {
        (0..a.len().max(b.len())).map(|i| self.mux(choice, bit(a, i), bit(b, i))).collect()
    }

    /// The element that `index` names among elements of `width` bits: as many low bits of the index as the number of
    /// elements needs; 0 beyond the last.
    pub fn lookup(&mut self, elements: &[Lit], width: usize, index: &[Lit]) -> Vec<Lit> {
        if width == 0 {
            return Vec::new();
        }
        let mut level: Vec<Vec<Lit>> = elements.chunks(width).map(<[Lit]>::to_vec).collect();
        let zero = vec![Lit::FALSE; width];
        let mut i = 0;
        while level.len() > 1 {
            let choice = bit(index, i);
            level = level
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => self.select(choice, b, a),
                    [a] => self.select(choice, &zero, a),
                    _ => zero.clone(),
                })
                .collect();
            i += 1;
        }
        level.pop().unwrap_or(zero)
    }

    /// `a` shifted by a secret count: left where `left`, otherwise right with `fill` from above.
    pub fn shift(&mut self, a: &[Lit], count: &[Lit], left: bool, fill: Lit) -> Vec<Lit> {
        let n = a.len();
        let mut value = a.to_vec();
        let mut beyond = Vec::new();
        for (i, step) in count.iter().enumerate() {
            match 1usize.checked_shl(u32::try_from(i).unwrap_or(u32::MAX)).filter(|by| *by < n.max(1)) {
                Some(by) => {
                    let moved = shift_by(&value, by, left, fill);
                    value = self.select(*step, &moved, &value);
                }
                None => beyond.push(*step),
            }
        }
        let gone = self.any(&beyond);
        let empty = vec![if left { Lit::FALSE } else { fill }; n];
        self.select(gone, &empty, &value)
    }

    /// How many of the bits are 1, by full adders: about n gates.
    pub fn population(&mut self, bits: &[Lit]) -> Vec<Lit> {
        if bits.len() < 2 {
            return bits.to_vec();
        }
        let (carry, rest) = match bits.split_last() {
            Some((last, rest)) if bits.len() % 2 == 1 => (*last, rest),
            _ => (Lit::FALSE, bits),
        };
        let (left, right) = rest.split_at(rest.len() / 2);
        let a = self.population(left);
        let b = self.population(right);
        self.add(&a, &b, carry, a.len().max(b.len()) + 1)
    }
}

/// `a` shifted by a known count.
#[must_use]
pub fn shift_by(a: &[Lit], by: usize, left: bool, fill: Lit) -> Vec<Lit> {
    (0..a.len())
        .map(|i| match left {
            true => i.checked_sub(by).map_or(Lit::FALSE, |j| bit(a, j)),
            false => i.checked_add(by).and_then(|j| a.get(j)).copied().unwrap_or(fill),
        })
        .collect()
}
