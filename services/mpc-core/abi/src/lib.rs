//! C interface of the core. The contract is `include/coterie_mpc.h`; a test compares the two.
//!
//! No cryptography lives here: bytes are checked, handed to `engine` and `protocols`, and handed back.

mod ffi;
mod os_rng;
mod vault;

pub use ffi::*;
