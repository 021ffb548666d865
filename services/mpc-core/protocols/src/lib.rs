//! The signature schemes, one module each. A scheme brings its rounds; `engine` runs them.

#![forbid(unsafe_code)]

pub mod bls;
pub mod ecdsa;
pub mod frost;
mod roles;
pub mod tags;
