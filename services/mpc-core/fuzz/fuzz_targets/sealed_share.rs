#![no_main]

#[path = "../../protocols/tests/common/accusation.rs"]
mod accusation;
#[path = "../../protocols/tests/common/mod.rs"]
mod common;
#[path = "../../protocols/tests/common/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = hostile::sealed_share(data);
});
