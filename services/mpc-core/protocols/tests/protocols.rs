//! The protocols against vectors, outside verifiers, golden transcripts, parties that deviate and bytes of any kind.
//!
//! One program for all: each program would compile every protocol anew for every curve.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

#[path = "common/accusation.rs"]
mod accusation;
mod all_schemes;
#[path = "common/anything.rs"]
mod anything;
mod bls;
mod common;
#[path = "common/corpus.rs"]
mod corpus;
mod dealing;
mod ecdsa;
mod ecdsa_common;
#[path = "common/ecdsa_hostile.rs"]
mod ecdsa_hostile;
mod frost;
#[path = "common/frost_hostile.rs"]
mod frost_hostile;
#[path = "frost/harness.rs"]
mod harness;
#[path = "common/hostile.rs"]
mod hostile;
#[path = "common/sealed_hostile.rs"]
mod sealed_hostile;
#[path = "common/table.rs"]
mod table;
