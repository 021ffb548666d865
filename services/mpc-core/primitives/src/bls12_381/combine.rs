//! Sums of public multiples of points, in variable time.

use blst::{
    blst_fp, blst_fp_from_bendian, blst_fp_mul, blst_p1, blst_p1_add_or_double, blst_p1_add_or_double_affine,
    blst_p1_affine, blst_p1_cneg, blst_p1_double, blst_p1_from_affine,
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

/// The curve's parameter z without its sign.
const Z: u64 = 0xd201_0000_0001_0000;
/// A cube root of one in Fp: (x, y) -> (BETA x, y) is multiplication by -z^2 in the subgroup, and nowhere else.
const BETA: [u8; 48] = [
    0, 0, 0, 0, 0, 0, 0, 0, 0x5f, 0x19, 0x67, 0x2f, 0xdf, 0x76, 0xce, 0x51, 0xba, 0x69, 0xc6, 0x07, 0x6a,
    0x0f, 0x77, 0xea, 0xdd, 0xb3, 0xa9, 0x3b, 0xe6, 0xf8, 0x96, 0x88, 0xde, 0x17, 0xd8, 0x13, 0x62, 0x0a,
    0x00, 0x02, 0x2e, 0x01, 0xff, 0xff, 0xff, 0xfe, 0xff, 0xfe,
];

/// Sum of scalar times element of the subgroup, by half as many doublings as [`combine1`] needs for few of them: a
/// scalar is a + b z^2 (Gallant, Lambert, Vanstone 2001), and the multiple of b is that of a point which costs one
/// multiplication in Fp. Additions are complete. Scalars are little-endian and below the order.
pub(super) fn combine1_in_subgroup(elements: &[blst_p1_affine], scalars: &[[u8; 32]]) -> blst_p1 {
    if elements.len().min(scalars.len()) >= POINTS_OF_BUCKETS {
        return combine1(elements, scalars, 255);
    }
    let mut beta = blst_fp::default();
    // SAFETY: a valid place, and the 48 bytes that blst reads.
    unsafe { blst_fp_from_bendian(&mut beta, BETA.as_ptr()) };
    let rows: Vec<_> = elements
        .iter()
        .zip(scalars)
        .flat_map(|(element, scalar)| {
            let multiples = odd_multiples(element);
            let mut mapped = multiples;
            for multiple in &mut mapped {
                // SAFETY: valid places; the operations may work in place. In these coordinates x is X over Z^2.
                unsafe {
                    blst_fp_mul(&mut multiple.x, &multiple.x, &beta);
                    blst_p1_cneg(multiple, true);
                }
            }
            let (low, high) = halves(scalar);
            [(multiples, signed_digits(low)), (mapped, signed_digits(high))]
        })
        .collect();
    let mut sum = blst_p1::default();
    for place in (0..rows.iter().map(|(_, digits)| digits.len()).max().unwrap_or(0)).rev() {
        // SAFETY: a valid place; doublings may work in place.
        unsafe { blst_p1_double(&mut sum, &sum) };
        for (multiples, digits) in &rows {
            let digit = digits.get(place).copied().unwrap_or(0);
            let multiple = multiples.get(usize::from(digit.unsigned_abs() / 2)).filter(|_| digit != 0);
            if let Some(mut multiple) = multiple.copied() {
                // SAFETY: valid places; the addition is complete and may work in place.
                unsafe {
                    blst_p1_cneg(&mut multiple, digit < 0);
                    blst_p1_add_or_double(&mut sum, &sum, &multiple);
                }
            }
        }
    }
    sum
}

/// Bits of a signed digit, which is odd or zero and below half of 2^5 in size.
const DIGIT_BITS: u32 = 5;

/// 1, 3, 5 ... 15 times the point.
fn odd_multiples(point: &blst_p1_affine) -> [blst_p1; 1 << (DIGIT_BITS - 2)] {
    let (mut multiple, mut twice) = (blst_p1::default(), blst_p1::default());
    // SAFETY: valid places.
    unsafe {
        blst_p1_from_affine(&mut multiple, point);
        blst_p1_double(&mut twice, &multiple);
    }
    core::array::from_fn(|place| {
        if place > 0 {
            // SAFETY: valid places; the addition is complete and may work in place.
            unsafe { blst_p1_add_or_double(&mut multiple, &multiple, &twice) };
        }
        multiple
    })
}

/// a and b below z^2 with scalar = a + b z^2.
fn halves(scalar: &[u8; 32]) -> (u128, u128) {
    let mut words: [u64; 4] = core::array::from_fn(|word| {
        scalar.iter().skip(8 * word).take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    });
    let mut divided_by_z = || {
        let mut rest = 0u128;
        for word in words.iter_mut().rev() {
            let dividend = rest << 64 | u128::from(*word);
            // The rest is below z, so the quotient has 64 bits.
            *word = (dividend / u128::from(Z)) as u64;
            rest = dividend % u128::from(Z);
        }
        rest
    };
    let low = divided_by_z();
    let low = low + divided_by_z() * u128::from(Z);
    let [word, next, ..] = words;
    (low, u128::from(next) << 64 | u128::from(word))
}

/// Digits whose sum times powers of two is the number, the lowest first; of any five in a row at most one is not zero.
fn signed_digits(mut number: u128) -> Vec<i8> {
    let mut digits = Vec::with_capacity(129);
    while number > 0 {
        let mut digit = 0i8;
        if number & 1 == 1 {
            let window = (number & ((1 << DIGIT_BITS) - 1)) as i8;
            digit = if window < 1 << (DIGIT_BITS - 1) { window } else { window - (1 << DIGIT_BITS) };
            // Numbers are below z^2, so what a negative digit adds does not overflow.
            number = number.wrapping_add_signed(-i128::from(digit));
        }
        digits.push(digit);
        number >>= 1;
    }
    digits
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
