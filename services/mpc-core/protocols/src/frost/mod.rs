//! Threshold Schnorr signatures by FROST (RFC 9591): Ed25519, and BIP-340 over secp256k1 with Taproot's key-path tweak.
//!
//! The signing formulas are those of the crates `frost-ed25519` and `frost-secp256k1-tr`. This module has what they
//! leave open: key generation bound to a session, agreement on broadcasts, refresh and reshare, presignatures that are
//! used once.
//!
//! Specification with numbered steps: `docs/protocols/frost.md`.

pub mod key;
pub mod presign;
mod scheme;
pub mod sign;
mod signing;
pub mod suite;
pub mod tags;
pub mod target;

pub use crate::share::OpenShareError;
pub use key::{KeyPublic, KeyShare};
pub use presign::{PresignPayload, Presignature, Presigning};
pub use scheme::{Frost, Keygen, Refresh, Reshare, ReshareTerms, Reshared};
pub use sign::{PresignedSigning, SignInput, SignPayload, Signing};
pub use signing::{SIGNATURE_BYTES, Signature};
pub use suite::{Bip340, Ed25519, Suite};
pub use target::{Taproot, Target};
