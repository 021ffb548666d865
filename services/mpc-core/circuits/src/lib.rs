//! The MPCL language, its compiler to Boolean circuits, and two-party garbling.
//!
//! A program in this Go-like language names the inputs of a garbler and of an evaluator and computes on them; see
//! `docs/language`. [`program`] reads it with its packages, [`compile`] evaluates it into gates, [`build`] keeps the
//! gates few, and receivers of gates ([`circuit`]) record, count, evaluate or garble them as they come, in memory
//! bounded by the values that are live.

pub mod authenticated;
pub mod build;
pub mod circuit;
pub mod compile;
pub mod dialogue;
pub mod ed25519;
pub mod garble;
pub mod hardened;
pub mod line;
pub mod notation;
pub mod program;
pub mod report;
pub mod stack;
pub mod syntax;
#[cfg(feature = "command")]
pub mod testing;
pub mod types;
