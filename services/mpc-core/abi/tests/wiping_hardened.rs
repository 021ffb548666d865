//! No secret of a seed is anywhere in this process's memory once it is no longer needed: of its owner, and of a pair
//! that sets up and derives.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
#[path = "common/exact.rs"]
mod exact;
#[path = "common/hardened.rs"]
mod hardened;
#[path = "common/memory.rs"]
mod memory;
#[path = "common/stack.rs"]
mod stack;

use coterie_mpc::proto::ProtocolId;
use primitives::witness;

use common::parties;
use hardened::{H, Holders, child, key_of, node};
use memory::{found, no_share_found, nothing_found};
use stack::on_wiped_stack;

/// One test, as one thread at a time must run: the search reads the memory of all.
#[test]
fn what_was_secret_of_a_seed_is_nowhere_in_memory_after_its_use() {
    // The random value of the process stays: it is drawn before anything is watched.
    drop(parties(1));
    witness::watch();
    // On the heap, where it is wiped when it is dropped.
    let seed: Vec<u8> = (3..19).map(|place: u8| place.wrapping_mul(37)).collect();
    let holders = on_wiped_stack("import", || Holders::of(&seed));
    drop(seed);
    no_share_found("import");
    let pair = [1, 2];
    on_wiped_stack("set-up", || holders.join(pair, 1));
    assert!(!found().is_empty(), "the set-up is found in the vaults");
    let both = |protocol, session, change: hardened::Change<'_>| {
        on_wiped_stack("derivation", || holders.both(protocol, pair, session, change))
    };
    let done = both(ProtocolId::HardenedSeedEcdsaChild, 2, &child(&[H]));
    both(ProtocolId::HardenedSlip10Node, 3, &node(None, &[H]));
    both(ProtocolId::HardenedSlip10Key, 4, &key_of(3));
    // A node and the set-up stay in the vaults, and nowhere after that.
    assert!(done.values().all(|done| !done.sealed_share.is_empty()));
    drop(holders);
    nothing_found("vaults closed");
    witness::forget();
}
