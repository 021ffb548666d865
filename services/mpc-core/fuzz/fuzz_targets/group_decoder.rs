#![no_main]

#[allow(dead_code, reason = "every target uses its own part")]
#[path = "../../threshold-issuer/tests/issuer/hostile.rs"]
mod hostile;
#[allow(dead_code, reason = "every target uses its own part")]
#[path = "../../threshold-issuer/tests/issuer/installation.rs"]
mod installation;
#[allow(dead_code, unused_imports, reason = "the part that is about whole joins")]
#[path = "../../threshold-issuer/tests/issuer/malicious.rs"]
mod malicious;
#[allow(dead_code, unused_imports, reason = "the part that stores reservations")]
#[path = "../../threshold-issuer/tests/issuer/registration.rs"]
mod registration;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = hostile::decoder(data);
});
