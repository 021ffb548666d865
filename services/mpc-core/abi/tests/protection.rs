//! The protection of the process's memory, as the kernel sees it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use common::Vault;
use coterie_mpc::*;

fn proc(file: &str, line: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap();
    text.lines().find_map(|candidate| candidate.strip_prefix(line)).unwrap().trim().to_owned()
}

#[test]
fn a_protected_process_locks_its_keys_and_leaves_no_core() {
    let locked = |proc: String| -> u64 { proc.trim_end_matches(" kB").parse().unwrap() };
    let before = mpc_process_protect(0);
    assert_eq!(before & MPC_PROTECTED_UNREADABLE, 0, "asking changes nothing");
    let _vault = Vault::new(1);
    let reported = mpc_process_protect(0) & MPC_PROTECTED_LOCKED != 0;
    assert_eq!(locked(proc("status", "VmLck:")) > 0, reported, "the report is what the kernel did");

    let after = mpc_process_protect(1);
    assert_eq!(after & !MPC_PROTECTED_LOCKED, MPC_PROTECTED_UNREADABLE | MPC_PROTECTED_NO_CORE);
    let limits: Vec<String> =
        proc("limits", "Max core file size").split_whitespace().map(str::to_owned).collect();
    assert_eq!(limits[..2], ["0", "0"]);
    assert_eq!(mpc_process_protect(0), after, "it stays");
}
