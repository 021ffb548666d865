//! Protocols on garbled circuits as sessions of the core: the two parties of a pair exchange frames in rounds.
//!
//! [`Talk`] gives a dialogue of the library `circuits` the form of [`engine::Protocol`]. [`Pairing`], [`Preparing`],
//! [`OpenNonce`] and [`Answer`] are the dialogues of imported Ed25519 keys (`docs/protocols/ed25519-rfc8032.md`).

mod exact;
mod talk;

pub use exact::{
    Answer, AnswerInput, Nonce, NonceInput, OpenNonce, Paired, Pairing, Preparing, PreparingInput,
};
pub use talk::{MAX_ROUNDS, Started, Subject, Talk, With};
