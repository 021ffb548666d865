//! Hardened derivation of keys that exist only as shares of two parties: BIP-32 on secp256k1, and SLIP-10 for Ed25519.
//!
//! HMAC-SHA512 of the parent's private key, or of a seed, is computed under authenticated garbling. Shares of a key
//! enter bound to its public key. Results that stay secret leave as shares by daBits, with a point that opens under its
//! MAC, or stay shared for the next circuit. The steps are numbered in `docs/protocols/hardened-derivation.md`, which
//! says what is claimed.

#[cfg(test)]
mod attacks;
mod circuit;
#[cfg(test)]
mod clear;
mod encoding;
mod node;
mod opened;
mod seed;
mod slip10;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

pub use circuit::{Ready, SEED_BYTES, Step, StepCircuit};
pub use node::{KeyShares, Node, PublicNode, ShamirShare};
pub use seed::{PairSeed, SeedShare, UnconfirmedSeed, split_seed, split_seed_for};
pub use slip10::Slip10Node;
