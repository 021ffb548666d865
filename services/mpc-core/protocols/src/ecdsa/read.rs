//! Points and scalars of messages.

use engine::AbortCause;
use engine::wire::{Malformed, Reader};
use primitives::secp256k1::{Point, Scalar, decode_point, decode_scalar};

/// A point that is not the identity, or the cause to abort for.
pub(super) fn read_point(reader: &mut Reader<'_>) -> Result<Point, AbortCause> {
    let bytes = reader.array().map_err(|Malformed| AbortCause::MalformedBody)?;
    decode_point(bytes).ok_or(AbortCause::InvalidPoint)
}

/// A scalar below the group order, or the cause to abort for.
pub(super) fn read_scalar(reader: &mut Reader<'_>) -> Result<Scalar, AbortCause> {
    let bytes = reader.array().map_err(|Malformed| AbortCause::MalformedBody)?;
    decode_scalar(bytes).ok_or(AbortCause::InvalidScalar)
}
