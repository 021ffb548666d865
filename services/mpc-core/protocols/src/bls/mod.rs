//! Threshold BLS signatures over BLS12-381, in Ethereum's proof-of-possession suite.
//!
//! Specification with numbered steps: `docs/protocols/bls.md`. Public keys are in G1 (48 bytes), signatures in G2 (96
//! bytes).

pub mod key;
pub mod keygen;
mod scheme;
pub mod sign;
mod verify;

pub use crate::MAX_MESSAGE_BYTES;
pub use crate::share::OpenShareError;
pub use key::{FAMILY, KeyPublic, KeyShare, POSSESSION_DOMAIN, VerificationShare};
pub use keygen::Keygen;
pub use scheme::{Bls, Refresh, Reshare, ReshareTerms, Reshared, Subgroup};
pub use sign::{SIGNATURE_DOMAIN, SignInput, SignOutput, Signing};
pub use verify::{Claim, verify_all};
