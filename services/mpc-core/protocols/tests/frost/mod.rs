//! Threshold Schnorr signatures: the same tests for both suites.

mod hostile;
mod malicious;
mod matrix;
mod network;
mod refresh;
mod reshare;
mod stored;
mod vectors;

/// Each test for Ed25519 and for BIP-340.
macro_rules! both_suites {
    ($($name:ident),+ $(,)?) => {
        mod ed25519 {
            $(#[test] fn $name() { super::$name::<protocols::frost::Ed25519>(); })+
        }
        mod bip340 {
            $(#[test] fn $name() { super::$name::<protocols::frost::Bip340>(); })+
        }
    };
}
pub(crate) use both_suites;
