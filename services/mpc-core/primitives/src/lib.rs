//! Groups, scalars, secret sharing and proofs.
//!
//! Nothing here knows that parties, sessions or messages exist; `engine` and `protocols` build those on top.

#![deny(unsafe_code)]

pub mod bls12_381;
pub mod declassify;
pub mod hedge;
pub mod ot;
pub mod schnorr;
pub mod secp256k1;
pub mod secret;
pub mod shamir;
pub mod vole;
#[cfg(feature = "witness")]
pub mod witness;

pub use secret::Secret;
