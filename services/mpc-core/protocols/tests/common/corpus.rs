//! What the fuzzer found worth keeping, replayed in every test run: `fuzz/corpus/<target>.txt` has one input a line, in hexadecimal.

#![allow(dead_code, reason = "every test binary uses its own part")]

use std::path::Path;

/// Gives every kept input of a fuzz target to its code.
pub fn replay<T>(target: &str, code: impl Fn(&[u8]) -> T) {
    results(target, code);
}

/// The same, where the code tells whether it came to the end of a decoder: some input must.
pub fn replay_that_reaches(target: &str, code: impl Fn(&[u8]) -> bool) {
    assert!(results(target, code).contains(&true), "no input kept for {target} is decoded to its end");
}

fn results<T>(target: &str, code: impl Fn(&[u8]) -> T) -> Vec<T> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let kept = std::fs::read_to_string(folder.join(format!("{target}.txt"))).unwrap();
    assert!(!kept.is_empty());
    kept.lines().map(|line| code(&hex::decode(line).unwrap())).collect()
}
