//! Opening what a party keeps of a key, the same for every scheme.

use engine::seal::{DataKey, SealKind, ShareLabel};
use engine::wire::{Malformed, Reader};

/// Why a sealed share was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenShareError {
    /// It says that it is of another family, key, party, epoch or threshold.
    Mismatch,
    /// Wrong data key or altered blob.
    Unseal,
    /// Genuine, but not a key share of this version.
    Invalid,
}

/// Opens a sealed share that must be the one of `expected`, and reads all of it.
pub(crate) fn unseal<T>(
    key: &DataKey,
    blob: &[u8],
    expected: &ShareLabel,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, OpenShareError> {
    let label = ShareLabel::peek(blob).map_err(|Malformed| OpenShareError::Unseal)?;
    if &label != expected {
        return Err(OpenShareError::Mismatch);
    }
    let unsealed = key.unseal(SealKind::KeyShare, &[], blob).map_err(|_| OpenShareError::Unseal)?;
    let mut reader = Reader::new(unsealed.secret.expose());
    let share = read(&mut reader).map_err(|Malformed| OpenShareError::Invalid)?;
    reader.finish().map_err(|Malformed| OpenShareError::Invalid)?;
    Ok(share)
}
