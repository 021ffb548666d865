//! Sums of public multiples of points, in variable time.

use blst::{
    blst_p1, blst_p1_add_or_double, blst_p1_add_or_double_affine, blst_p1_affine, blst_p1_double,
    blst_p1s_mult_pippenger_scratch_sizeof, blst_p1s_tile_pippenger, blst_p2, blst_p2_affine,
    blst_p2s_mult_pippenger, blst_p2s_mult_pippenger_scratch_sizeof, limb_t,
};

/// Horner's rule with a public x of at most 16 bits, by complete additions.
pub(super) fn horner<'a>(
    coefficients: impl DoubleEndedIterator<Item = &'a blst_p1_affine>,
    x: u16,
) -> blst_p1 {
    let mut sum = blst_p1::default();
    for coefficient in coefficients.rev() {
        let base = sum;
        sum = blst_p1::default();
        for bit in (0..u16::BITS - x.leading_zeros()).rev() {
            // SAFETY: valid places; the operations are complete and may work in place.
            unsafe {
                blst_p1_double(&mut sum, &sum);
                if x >> bit & 1 == 1 {
                    blst_p1_add_or_double(&mut sum, &sum, &base);
                }
            }
        }
        // SAFETY: as above.
        unsafe { blst_p1_add_or_double_affine(&mut sum, &sum, coefficient) };
    }
    sum
}

/// From this many points on the bucket method is the faster one.
const POINTS_OF_BUCKETS: usize = 24;

/// Sum of scalar times point by doublings that all points share, and a table of the first multiples of each. Additions
/// are complete: right for any points of the curve. Scalars are little-endian and below 2^`bits`.
fn interleave1(points: &[blst_p1_affine], scalars: &[[u8; 32]], bits: usize) -> blst_p1 {
    const WINDOW: usize = 4;
    let tables: Vec<[blst_p1; (1 << WINDOW) - 1]> = points
        .iter()
        .zip(scalars)
        .map(|(point, _)| {
            let mut multiple = blst_p1::default();
            core::array::from_fn(|_| {
                // SAFETY: valid places; the addition is complete and may work in place.
                unsafe { blst_p1_add_or_double_affine(&mut multiple, &multiple, point) };
                multiple
            })
        })
        .collect();
    let mut sum = blst_p1::default();
    for window in (0..bits.div_ceil(WINDOW)).rev() {
        // SAFETY: valid places; doublings may work in place.
        (0..WINDOW).for_each(|_| unsafe { blst_p1_double(&mut sum, &sum) });
        for (table, scalar) in tables.iter().zip(scalars) {
            let byte = scalar.get(window / 2).map_or(0, |byte| *byte);
            let digit = usize::from(if window % 2 == 0 { byte & 0xf } else { byte >> WINDOW });
            if let Some(multiple) = digit.checked_sub(1).and_then(|place| table.get(place)) {
                // SAFETY: valid places; the addition is complete and may work in place.
                unsafe { blst_p1_add_or_double(&mut sum, &sum, multiple) };
            }
        }
    }
    sum
}

/// Sum of scalar times point by the bucket method, whose additions are complete: right for any points of the curve.
/// Scalars are little-endian and below 2^`bits`.
pub(super) fn combine1(points: &[blst_p1_affine], scalars: &[[u8; 32]], bits: usize) -> blst_p1 {
    const WINDOW: usize = 4;
    /// From this many points on blst's scratch is large enough for `WINDOW`.
    const POINTS_OF_WINDOW: usize = 32;
    let mut sum = blst_p1::default();
    let count = points.len().min(scalars.len());
    // The bucket method pays for its buckets however few the points are, and reads a second point in any case.
    if count < POINTS_OF_BUCKETS {
        return interleave1(points, scalars, bits);
    }
    let points: Vec<*const blst_p1_affine> = points.iter().take(count).map(core::ptr::from_ref).collect();
    let scalars: Vec<*const u8> = scalars.iter().take(count).map(|scalar| scalar.as_ptr()).collect();
    // SAFETY: a function of its argument alone.
    let scratch_bytes = unsafe { blst_p1s_mult_pippenger_scratch_sizeof(count.max(POINTS_OF_WINDOW)) };
    let mut scratch = vec![0 as limb_t; scratch_bytes / size_of::<limb_t>()];
    // The topmost window holds what is left over, and if nothing is, the carry of the signed digits below it.
    for window in (0..=bits / WINDOW).rev() {
        let mut tile = blst_p1::default();
        // SAFETY: `count` >= 2 pointers to points and to scalars of `bits` bits; scratch that is zero and that blst
        // leaves zero, for windows at least as large as WINDOW; additions are complete and may work in place.
        unsafe {
            for _ in 0..WINDOW {
                blst_p1_double(&mut sum, &sum);
            }
            blst_p1s_tile_pippenger(
                &mut tile,
                points.as_ptr(),
                count,
                scalars.as_ptr(),
                bits,
                scratch.as_mut_ptr(),
                window * WINDOW,
                WINDOW,
            );
            blst_p1_add_or_double(&mut sum, &sum, &tile);
        }
    }
    sum
}

/// Public scalar (little-endian) times point, by complete additions.
pub(super) fn multiply1(base: &blst_p1, scalar: &[u8]) -> blst_p1 {
    let mut product = blst_p1::default();
    for byte in scalar.iter().rev() {
        for bit in (0..u8::BITS).rev() {
            // SAFETY: valid places; the operations are complete and may work in place.
            unsafe {
                blst_p1_double(&mut product, &product);
                if byte >> bit & 1 == 1 {
                    blst_p1_add_or_double(&mut product, &product, base);
                }
            }
        }
    }
    product
}

/// Sum of scalar times point by blst's fastest method; some point or the identity if one is outside the subgroup.
pub(super) fn combine2(points: &[blst_p2_affine], scalars: &[[u8; 32]], bits: usize) -> blst_p2 {
    let count = points.len().min(scalars.len());
    let mut sum = blst_p2::default();
    if count == 0 {
        return sum;
    }
    let points: Vec<*const blst_p2_affine> = points.iter().take(count).map(core::ptr::from_ref).collect();
    let scalars: Vec<*const u8> = scalars.iter().take(count).map(|scalar| scalar.as_ptr()).collect();
    // SAFETY: `count` is above zero; as many pointers to points and to scalars of at least `bits` bits; enough scratch.
    unsafe {
        let scratch_bytes = blst_p2s_mult_pippenger_scratch_sizeof(count);
        let mut scratch = vec![0 as limb_t; scratch_bytes / size_of::<limb_t>()];
        blst_p2s_mult_pippenger(
            &mut sum,
            points.as_ptr(),
            count,
            scalars.as_ptr(),
            bits,
            scratch.as_mut_ptr(),
        );
    }
    sum
}
