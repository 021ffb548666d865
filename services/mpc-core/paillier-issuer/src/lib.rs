//! Membership of a group issued by one manager, with Paillier encryption: the mode of the paper.
//!
//! *Secure Two-Party Computation for weak Boneh-Boyen Signature* (Seckar, Ricci), with the zero-knowledge proofs
//! and the pairing verification that its authors left to be done. The manager alone holds the issuing key, so
//! approvals are worth as much as that machine: this crate is there to be measured and compared with, and the
//! production library does not contain it. Specification with numbered steps: `docs/protocols/wbb.md`.

#![forbid(unsafe_code)]

mod halves;
pub mod join;
mod modulus;
mod number;
pub mod pair;
mod proofs;
pub mod setup;
pub mod tags;

#[cfg(feature = "forge")]
pub use halves::forge;
pub use join::{Join, JoinInput, JoinOutput, JoinTerms, ManagerInput, MemberInput};
pub use number::Failure;
pub use pair::{FactorProof, Issuer};
pub use setup::{ModulusBits, Parameters, SecretParameters, SetUpError};
