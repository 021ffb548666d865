#![no_main]

//! Any bytes as a call about groups, and genuine calls that bytes change, through the C interface.

use std::sync::LazyLock;

#[path = "../../abi/tests/common/mod.rs"]
mod common;
#[allow(dead_code, reason = "the part that makes first inputs")]
#[path = "../../abi/tests/common/group_calls.rs"]
mod group_calls;
#[path = "../../abi/tests/common/groups.rs"]
mod groups;

/// Vaults may be used by several threads; so may what only reads them.
struct Shared(group_calls::Calls);
unsafe impl Sync for Shared {}
unsafe impl Send for Shared {}

static CALLS: LazyLock<Shared> = LazyLock::new(|| Shared(group_calls::Calls::new()));

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = CALLS.0.hostile(data);
});
