//! Constant time, checked: the core's work on secrets, run under valgrind with every secret marked undefined.
//!
//! Memcheck follows undefined bits through all arithmetic and reports a conditional jump, or an address, that depends
//! on one. Secrets are what the data key, the sealed shares and the generator of the party under test give; they become
//! public where the party posts a message, and where the core calls [`primitives::declassify::publish`]. Each report
//! that is left is a finding, or a line with its reason in `suppressions`.
//!
//! Built with the optimiser's decisions of a release (profile `constant-time`). The processor that valgrind shows has
//! AES-NI, PCLMULQDQ and AVX2, but neither ADX nor SHA instructions: those paths of `blst` and `sha2` are not covered.
//!
//! `.ci/rust constant-time` runs it. The output is that of cargo's tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a check fails by panicking"
)]

#[path = "../../protocols/tests/common/mod.rs"]
mod common;
#[path = "../../protocols/tests/ecdsa_common/mod.rs"]
mod ecdsa_common;
mod groups;
#[allow(dead_code, reason = "the part that is about whole sessions")]
#[path = "../../protocols/tests/frost/harness.rs"]
mod harness;
mod operations;
mod sessions;
mod tainted;

use std::process::ExitCode;
use std::time::Instant;

use primitives::declassify::memcheck;

/// Leaks that must be seen: a branch and an address that depend on a secret, and both in a function for public values.
/// A checker that reports nothing here checks nothing.
const LEAKS: [(&str, fn()); 3] = [
    ("a_branch_is_seen", operations::branch),
    ("an_address_is_seen", operations::address),
    ("a_multiple_in_variable_time_is_seen", groups::variable_time),
];

const CLEAN: [(&str, fn()); 23] = [
    ("scalars_of_secp256k1", operations::secp256k1),
    ("scalars_and_points_of_bls12_381", operations::bls12_381),
    ("evidence_keys", operations::evidence),
    ("base_transfers", operations::base_transfers),
    ("transfer_extension", operations::extension),
    ("multiplication", operations::multiplication),
    ("unsealing", operations::unsealing),
    ("bls_signing", sessions::bls),
    ("ed25519_signing", sessions::frost::<protocols::frost::Ed25519>),
    ("bip340_signing", sessions::frost::<protocols::frost::Bip340>),
    ("ed25519_presigned_signing", sessions::presigned_frost::<protocols::frost::Ed25519>),
    ("bip340_presigned_signing", sessions::presigned_frost::<protocols::frost::Bip340>),
    ("ecdsa_signing", sessions::ecdsa),
    ("ecdsa_presigned_signing", sessions::presigned_ecdsa),
    ("group_applicant", groups::applicant),
    ("group_approval", groups::approval),
    ("group_opening_share", groups::opening),
    ("group_multiplication", groups::multiplication),
    ("group_reservation", groups::reservation),
    ("group_publication", groups::publication),
    ("group_join_of_issuer", groups::join_of_issuer),
    ("group_join_of_member", groups::join_of_member),
    ("group_powers_modulo_a_square", groups::powers),
];

fn main() -> ExitCode {
    if !memcheck::is_here() {
        eprintln!("run it under valgrind: .ci/rust constant-time");
        return ExitCode::from(2);
    }
    let only: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|part| name.contains(part));
    let (mut passed, mut failed) = (0, 0);
    let leaks = LEAKS.iter().map(|(name, run)| (name, run, true));
    let clean = CLEAN.iter().map(|(name, run)| (name, run, false));
    for (name, run, leaks) in leaks.chain(clean).filter(|(name, ..)| wanted(name)) {
        let (before, begin) = (memcheck::errors(), Instant::now());
        run();
        let reported = memcheck::errors() - before;
        if (reported > 0) == leaks {
            println!("test {name} ... ok ({} ms)", begin.elapsed().as_millis());
            passed += 1;
        } else {
            println!("test {name} ... FAILED, {reported} reported");
            failed += 1;
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {verdict}. {passed} passed; {failed} failed;");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
