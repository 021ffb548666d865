//! The signature schemes, one module each. A scheme brings its rounds; `engine` runs them.

#![forbid(unsafe_code)]

pub mod bip32;
pub mod bls;
mod curve;
pub mod dealing;
pub mod ecdsa;
pub mod frost;
mod hash_input;
mod hedged;
mod share;
pub mod tags;

pub use hedged::HedgedRng;
pub use share::OpenShareError;

/// Longest message that can be signed as it is, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024;
