#![no_main]

#[path = "../../protocols/tests/common/accusation.rs"]
mod accusation;
#[path = "../../protocols/tests/common/mod.rs"]
mod common;
#[allow(dead_code, reason = "the part that is about whole sessions")]
#[path = "../../protocols/tests/frost/harness.rs"]
mod harness;
#[allow(dead_code, reason = "every target uses its own part")]
#[path = "../../protocols/tests/common/frost_hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::frost_sealed(data));
