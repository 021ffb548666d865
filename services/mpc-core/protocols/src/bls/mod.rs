//! Threshold BLS signatures over BLS12-381, in Ethereum's proof-of-possession suite.
//!
//! Specification with numbered steps: `docs/protocols/bls.md`. Public keys are in G1 (48 bytes), signatures in G2 (96
//! bytes).

pub mod key;
pub mod keygen;
mod scheme;
pub mod sign;

pub use crate::MAX_MESSAGE_BYTES;
pub use crate::share::OpenShareError;
pub use key::{FAMILY, KeyPublic, KeyShare, VerificationShare};
pub use keygen::Keygen;
pub use scheme::{Bls, Refresh, Reshare, ReshareTerms, Reshared};
pub use sign::{SignInput, SignOutput, Signing};

/// Domain separation tag of signatures (draft-irtf-cfrg-bls-signature, section 4.2.3).
pub const SIGNATURE_DOMAIN: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
/// Domain separation tag of proofs of possession (the same).
pub const POSSESSION_DOMAIN: &[u8] = b"BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
