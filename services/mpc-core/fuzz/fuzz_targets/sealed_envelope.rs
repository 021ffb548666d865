#![no_main]

#[path = "../../protocols/tests/common/mod.rs"]
mod common;
#[path = "../../protocols/tests/ecdsa_common/mod.rs"]
mod ecdsa_common;
#[path = "../../protocols/tests/common/sealed_hostile.rs"]
mod sealed_hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealed_hostile::sealed_envelope(data));
