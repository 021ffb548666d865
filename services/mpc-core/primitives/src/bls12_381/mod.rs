//! BLS12-381 by blst: scalars, both groups, pairing checks.
//!
//! Every call into blst is in this module, in `scalar.rs` or in `group.rs`; nothing outside needs `unsafe`.
//!
//! Two kinds of points are told apart by type. [`CurveG1`] is on the curve and nothing more; [`G1`] and [`G2`] are in
//! the subgroup of prime order. Sums of unchecked points use complete addition only: blst's window method inverts many
//! denominators at once and returns the identity if one of them is zero, which a point of small order can bring about.

#![allow(unsafe_code)]

mod group;
mod scalar;

pub use group::{
    CurveG1, G1, G1_COMPRESSED_BYTES, G1_UNCOMPRESSED_BYTES, G2, G2_COMPRESSED_BYTES, G2_UNCOMPRESSED_BYTES,
    HashedMessage, UncheckedG2, pairings_are_equal, verify, verify_batch,
};
pub use scalar::{SCALAR_BYTES, Scalar};
