#![no_main]

#[path = "../../protocols/tests/common/anything.rs"]
mod anything;
#[path = "../../protocols/tests/common/mod.rs"]
mod common;
#[path = "../../protocols/tests/ecdsa_common/mod.rs"]
mod ecdsa_common;
#[allow(dead_code, reason = "the part that is about whole sessions")]
#[path = "../../protocols/tests/frost/harness.rs"]
mod harness;
#[path = "../../protocols/tests/common/table.rs"]
mod table;

libfuzzer_sys::fuzz_target!(|data: &[u8]| anything::history_of(data));
