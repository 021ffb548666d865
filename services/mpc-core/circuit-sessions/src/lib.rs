//! Protocols on garbled circuits as sessions of the core: the two parties of a pair exchange frames in rounds.
//!
//! [`Talk`] gives a dialogue of the library `circuits` the form of [`engine::Protocol`]. [`Pairing`], [`Preparing`],
//! [`OpenNonce`] and [`Answer`] are the dialogues of imported Ed25519 keys (`docs/protocols/ed25519-rfc8032.md`);
//! [`Deriving`], [`SeedPairing`], [`SeedDeriving`], [`Slip10Deriving`] and [`Slip10Keying`] those of hardened
//! derivation (`docs/protocols/hardened-derivation.md`).

mod exact;
mod hardened;
mod talk;

pub use exact::{
    Answer, AnswerInput, Nonce, NonceInput, OpenNonce, Paired, Pairing, Preparing, PreparingInput,
};
pub use hardened::{
    Child, Derivation, Deriving, DerivingInput, MAX_LEVELS, MAX_STEPS, PairedSeed, SeedDeriving,
    SeedDerivingInput, SeedPairing, SeedPairingInput, Slip10Deriving, Slip10DerivingInput, Slip10Key,
    Slip10Keying, Slip10KeyingInput, Slip10Level, Slip10Start,
};
pub use talk::{MAX_ROUNDS, Started, Subject, Talk, With};
