//! Secret multiples of the generator of G1, in constant time.

use std::sync::OnceLock;

use blst::{
    blst_p1, blst_p1_add_or_double, blst_p1_add_or_double_affine, blst_p1_affine, blst_p1_affine_generator,
    blst_p1_from_affine,
};
use subtle::{ConditionallySelectable, ConstantTimeEq};

use super::affine::affine1;
use super::scalar::SCALAR_BYTES;

const DIGITS: usize = 16;

/// Multiples of the generator: row w holds d 16^w G for the digits d. Half the time of a general multiplication.
pub(super) struct GeneratorTable(Vec<[blst_p1_affine; DIGITS]>);

/// Made at first use; a constant, about 100 KB.
pub(super) fn generator_table() -> &'static GeneratorTable {
    static TABLE: OnceLock<GeneratorTable> = OnceLock::new();
    TABLE.get_or_init(GeneratorTable::new)
}

impl GeneratorTable {
    fn new() -> Self {
        let mut base = blst_p1::default();
        // SAFETY: valid places; the generator is a constant of blst.
        unsafe { blst_p1_from_affine(&mut base, blst_p1_affine_generator()) };
        let rows = (0..2 * SCALAR_BYTES)
            .map(|_| {
                let mut multiple = blst_p1::default();
                let row = core::array::from_fn(|_| {
                    let entry = affine1(&multiple);
                    // SAFETY: valid places; the addition is complete and may work in place.
                    unsafe { blst_p1_add_or_double(&mut multiple, &multiple, &base) };
                    entry
                });
                base = multiple;
                row
            })
            .collect();
        Self(rows)
    }

    /// Reads every entry of every row, whatever the scalar (little-endian), and adds one of each.
    pub(super) fn multiply(&self, scalar: &[u8; SCALAR_BYTES]) -> blst_p1 {
        let mut sum = blst_p1::default();
        let digits = scalar.iter().flat_map(|byte| [byte & 0x0f, byte >> 4]);
        for (row, digit) in self.0.iter().zip(digits) {
            let mut chosen = blst_p1_affine::default();
            for (entry, index) in row.iter().zip(0u8..) {
                let is_it = index.ct_eq(&digit);
                for (limb, value) in chosen.x.l.iter_mut().zip(&entry.x.l) {
                    limb.conditional_assign(value, is_it);
                }
                for (limb, value) in chosen.y.l.iter_mut().zip(&entry.y.l) {
                    limb.conditional_assign(value, is_it);
                }
            }
            // SAFETY: valid places; the addition is complete, takes constant time, and may work in place.
            unsafe { blst_p1_add_or_double_affine(&mut sum, &sum, &chosen) };
        }
        sum
    }
}
