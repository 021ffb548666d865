//! No secret of a group is anywhere in this process's memory once it is no longer needed: of issuers, openers and
//! members, after keys, registration, joins, approvals and openings, and after a run that never began.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
#[path = "common/groups.rs"]
mod groups;
#[path = "common/memory.rs"]
mod memory;

use coterie_mpc::proto::group_call::ApprovalDecision;
use coterie_mpc::proto::group_reply::Reply;
use primitives::witness;

use common::parties;
use groups::{Member, World, call, request};
use memory::{found, no_share_found, nothing_found};

/// One test, as one thread at a time must run: the search reads the memory of all.
#[test]
fn what_was_secret_of_a_group_is_nowhere_in_memory_after_its_use() {
    // The random value of the process stays: it is drawn before anything is watched.
    drop(parties(1));
    witness::watch();
    let world = World::new();
    no_share_found("keys");
    let member = world.admitted(9);
    no_share_found("join");
    let asked = || request(1, ApprovalDecision::Approve);
    let (approval, _) = member.approve(&world, asked());
    no_share_found("approval");
    let opened = call(Some(&world.opener(4).vault), &[], world.opening(4, asked(), &approval));
    assert!(matches!(opened, Ok(Reply::OpeningShared(_))));
    no_share_found("opening");
    // A run that was ordered stays in the vault, and nowhere after that.
    let mut idle = Member::new(&world, 10);
    world.registered(&mut idle);
    no_share_found("registration");
    idle.order(&world, 1, 11);
    assert!(found().iter().any(|(file, ..)| file.contains("registration")), "the run is found in the vault");
    drop((world, member, idle));
    nothing_found("vaults closed");
    witness::forget();
}
