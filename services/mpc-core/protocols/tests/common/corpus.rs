//! Inputs that the fuzzer found worth keeping, replayed in every test run: `fuzz/corpus/<target>.txt` has one input a
//! line, in hexadecimal.

#![allow(dead_code, reason = "every test binary uses its own part")]

use std::fs;
use std::path::PathBuf;

/// Gives every kept input of a fuzz target to its code: the results.
pub fn replay<T>(target: &str, code: impl Fn(&[u8]) -> T) -> Vec<T> {
    let inputs = kept(target);
    assert!(!inputs.is_empty());
    inputs.iter().map(|input| code(input)).collect()
}

/// The same, where the code tells whether it came to the end of a decoder: some input must.
pub fn replay_that_reaches(target: &str, code: impl Fn(&[u8]) -> bool) {
    assert!(replay(target, code).contains(&true), "no input kept for {target} is decoded to its end");
}

fn path(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../fuzz/corpus/{target}.txt"))
}

/// The inputs kept for a target.
pub fn kept(target: &str) -> Vec<Vec<u8>> {
    let lines = fs::read_to_string(path(target)).unwrap_or_default();
    lines.lines().map(|line| hex::decode(line).unwrap()).collect()
}

/// Adds inputs that are not there.
pub fn add(target: &str, seeds: Vec<Vec<u8>>) {
    let mut all = kept(target);
    for seed in seeds {
        if !all.contains(&seed) {
            all.push(seed);
        }
    }
    let lines: Vec<String> = all.iter().map(|input| hex::encode(input) + "\n").collect();
    fs::write(path(target), lines.concat()).unwrap();
}
