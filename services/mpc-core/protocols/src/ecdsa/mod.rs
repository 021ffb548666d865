//! Threshold ECDSA over secp256k1, any t of n, without an honest majority: DKLs23 (Doerner, Kondi, Lee, shelat 2024,
//! eprint 2023/765).
//!
//! Specification with numbered steps: `docs/protocols/ecdsa.md`.

mod curve;
pub mod key;
pub mod presign;
pub mod presignature;
mod read;
mod scheme;
pub mod sign;
pub mod signature;
pub mod tags;
mod transfers;

pub use crate::bip32::{DerivationPath, Derived};
pub use crate::share::OpenShareError;
pub use key::{FAMILY, KeyPublic, KeyShare};
pub use presign::{PresignPayload, Presigning};
pub use presignature::Presignature;
pub use primitives::secp256k1::{Point, decode_point, encode_point};
pub use scheme::{Ecdsa, Keygen, Refresh, Reshare, ReshareTerms, Reshared};
pub use sign::{PresignedSigning, SignInput, SignPayload, Signing};
pub use signature::Signature;
