//! Changes of representation: blst adds in projective coordinates, points are kept and sent in affine ones.

use blst::{
    blst_p1, blst_p1_affine, blst_p1_cneg, blst_p1_from_affine, blst_p1_to_affine, blst_p2, blst_p2_affine,
    blst_p2_cneg, blst_p2_from_affine, blst_p2_to_affine,
};

pub(super) fn affine1(point: &blst_p1) -> blst_p1_affine {
    let mut out = blst_p1_affine::default();
    // SAFETY: valid places.
    unsafe { blst_p1_to_affine(&mut out, point) };
    out
}

pub(super) fn affine2(point: &blst_p2) -> blst_p2_affine {
    let mut out = blst_p2_affine::default();
    // SAFETY: valid places.
    unsafe { blst_p2_to_affine(&mut out, point) };
    out
}

pub(super) fn negate1(point: &blst_p1_affine) -> blst_p1_affine {
    let mut projective = blst_p1::default();
    // SAFETY: valid places.
    unsafe {
        blst_p1_from_affine(&mut projective, point);
        blst_p1_cneg(&mut projective, true);
    }
    affine1(&projective)
}

pub(super) fn negate2(point: &blst_p2_affine) -> blst_p2_affine {
    let mut projective = blst_p2::default();
    // SAFETY: valid places.
    unsafe {
        blst_p2_from_affine(&mut projective, point);
        blst_p2_cneg(&mut projective, true);
    }
    affine2(&projective)
}
