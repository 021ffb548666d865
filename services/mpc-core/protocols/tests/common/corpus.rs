//! What the fuzzer found worth keeping, replayed in every test run: `fuzz/corpus/<target>.txt` has one input a line, in hexadecimal.

use std::path::Path;

/// Gives every kept input of a fuzz target to its code.
pub fn replay(target: &str, code: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let kept = std::fs::read_to_string(folder.join(format!("{target}.txt"))).unwrap();
    assert!(!kept.is_empty());
    for line in kept.lines() {
        code(&hex::decode(line).unwrap());
    }
}
