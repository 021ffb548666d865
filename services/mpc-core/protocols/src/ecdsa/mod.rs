//! Threshold ECDSA over secp256k1, any t of n, without an honest majority: DKLs23 (Doerner, Kondi, Lee, shelat 2024, eprint 2023/765).
//!
//! Specification with numbered steps: `docs/protocols/ecdsa.md`.

pub mod derivation;
pub mod key;
pub mod keygen;
pub mod presign;
pub mod presignature;
mod proof;
pub mod reshare;
pub mod sign;
pub mod signature;
pub mod tags;

pub use crate::bls::OpenShareError;
pub use derivation::{DerivationPath, Derived};
pub use key::{FAMILY, KeyPublic, KeyShare};
pub use keygen::{Keygen, Refresh, Reshare, Reshared};
pub use presign::{PresignPayload, Presigning};
pub use presignature::Presignature;
pub use primitives::secp256k1::{Point, decode_point, encode_point};
pub use reshare::ReshareTerms;
pub use sign::{PresignedSigning, SignInput, SignPayload, Signing};
pub use signature::Signature;
