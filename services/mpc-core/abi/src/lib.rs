//! C interface of the core. The contract is `include/coterie_mpc.h`; a test compares the two.
//!
//! No cryptography lives here: bytes are checked, handed to `engine` and `protocols`, and handed back.

mod bls;
mod dealing;
mod ecdsa;
mod exact;
mod ffi;
mod frost;
pub mod group;
mod group_parties;
mod hardened;
mod inputs;
mod issuing;
pub mod judge;
mod memory;
mod os_rng;
mod pairs;
mod passphrase;
pub mod proto;
mod refusal;
mod runs;
mod seeds;
mod session;
mod vault;
pub mod verify;

pub use ffi::*;
pub use memory::{MPC_PROTECTED_LOCKED, MPC_PROTECTED_NO_CORE, MPC_PROTECTED_UNREADABLE, WIPED_STACK_BYTES};

/// The header's promise about threads, kept by the compiler.
const _: () = {
    const fn by_several_threads<T: Send + Sync>() {}
    const fn by_one_at_a_time<T: Send>() {}
    by_several_threads::<mpc_vault>();
    by_one_at_a_time::<mpc_session>();
};
