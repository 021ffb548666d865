//! No secret of an imported key is anywhere in this process's memory once it is no longer needed: of its owner, and of
//! a pair that sets up, prepares and signs.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
#[path = "common/exact.rs"]
mod exact;
#[path = "common/memory.rs"]
mod memory;
#[path = "common/stack.rs"]
mod stack;

use primitives::witness;

use common::parties;
use exact::Keys;
use memory::{found, no_share_found, nothing_found};
use stack::on_wiped_stack;

/// One test, as one thread at a time must run: the search reads the memory of all.
#[test]
fn what_was_secret_of_an_imported_key_is_nowhere_in_memory_after_its_use() {
    // The random value of the process stays: it is drawn before anything is watched.
    drop(parties(1));
    witness::watch();
    // On the heap, where it is wiped when it is dropped.
    let seed: Vec<u8> = (3..35).map(|place: u8| place.wrapping_mul(37)).collect();
    let keys = on_wiped_stack("import", || Keys::of(&seed));
    drop(seed);
    no_share_found("import");
    on_wiped_stack("set-up", || keys.pair(1));
    assert!(!found().is_empty(), "the set-up is found in the vaults");
    on_wiped_stack("preparation", || keys.prepare(2));
    on_wiped_stack("another preparation", || keys.prepare(3));
    let nonce = on_wiped_stack("nonce", || keys.nonce(4, 2));
    on_wiped_stack("answer", || keys.answer(5, 4, &nonce));
    // A prepared signature stays in the vaults, and nowhere after that.
    drop(keys);
    nothing_found("vaults closed");
    witness::forget();
}
