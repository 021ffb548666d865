//! BLS12-381 by blst: scalars, both groups, pairing checks.
//!
//! Every call into blst is in this module; nothing outside needs `unsafe`. Files build on each other in this order:
//! `affine.rs` and `combine.rs`, `generator.rs`, `g1.rs` and `g2.rs`, `pairing.rs`.
//!
//! Two kinds of points are told apart by type. [`CurveG1`] is on the curve and nothing more; [`G1`] and [`G2`] are in
//! the subgroup of prime order. Sums of unchecked points use complete addition only: blst's window method inverts many
//! denominators at once and returns the identity if one of them is zero, which a point of small order can bring about.

#![allow(unsafe_code)]

mod affine;
mod combine;
mod g1;
mod g2;
mod generator;
mod pairing;
mod scalar;
#[cfg(test)]
mod tests;

pub use g1::{CurveG1, G1, G1_COMPRESSED_BYTES, G1_UNCOMPRESSED_BYTES};
pub use g2::{G2, G2_COMPRESSED_BYTES, G2_UNCOMPRESSED_BYTES, HashedMessage, UncheckedG2};
pub use pairing::{Statement, pairings_are_equal, verify, verify_all, verify_batch};
pub use scalar::{SCALAR_BYTES, Scalar};
