//! Ed25519 exactly as RFC 8032, by two of the parties that share an imported key.
//!
//! The nonce r = SHA-512(prefix ‖ M) is computed under authenticated garbling from shares of the prefix that were fixed
//! at import. It leaves the circuit only as c = r + ρ_A + ρ_B, where ρ_A and ρ_B are made of daBits of each party; so r
//! mod q is shared and authenticated, R is opened under MACs, and both contributions to S are checked against points.
//! The steps are numbered in `docs/protocols/ed25519-rfc8032.md`, which says what is claimed.

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod dialogues;
mod encoding;
mod import;
mod nonce;
mod rfc8032;
mod sign;
#[cfg(test)]
mod tests;

pub use import::{Import, ImportedShare, TEST_MESSAGE, Unconfirmed};
pub use nonce::{MAX_BLOCKS, NonceCircuit, blocks};
pub use sign::{NonceRecord, OpenNonce, PairKey, Ready};
