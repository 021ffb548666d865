#![no_main]

#[path = "../../protocols/tests/common/accusation.rs"]
mod accusation;
#[path = "../../protocols/tests/common/mod.rs"]
mod common;
#[path = "../../protocols/tests/ecdsa_common/mod.rs"]
mod ecdsa_common;
#[path = "../../protocols/tests/common/ecdsa_hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = hostile::sealed(data);
});
