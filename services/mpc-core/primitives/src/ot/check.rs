//! How a step fails.

use subtle::ConstantTimeEq;

use crate::declassify::published;

/// Why a step of a transfer failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtError {
    /// Not an encoding of the message: wrong length, or a point that is not canonical.
    Malformed,
    /// The consistency check failed. The state of this pair must never be used again.
    CheckFailed,
}

/// Whether two digests are equal, in constant time.
pub(crate) fn same_digest(a: &[u8; 32], b: &[u8; 32]) -> bool {
    published(a.as_slice().ct_eq(b.as_slice()).into()) // a failure ends the session for all to see
}
