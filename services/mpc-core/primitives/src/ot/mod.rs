//! Oblivious transfer: endemic base transfers, and their extension, both secure against malicious parties.
//!
//! Two parties set up once, in three messages: [`Initiator::begin`], [`Responder::answer`], [`Initiator::finish`],
//! [`Responder::finish`]. Base transfers run one way only; the first extension of that state takes their place the
//! other way, which halves the public-key work. Both end with a [`PairState`], which holds one state for each
//! direction. From then on every session extends by one message of the receiver: [`ReceiverState::extend`], then
//! [`SenderState::extend`]. The result is [`EXTENDED`] correlated transfers: the receiver holds choice bits β and rows
//! v, the sender a fixed Δ and rows w, with w = v ⊕ β·Δ in each row.
//!
//! | Step | From |
//! |---|---|
//! | base transfers on Ristretto | Masny, Rindal 2019 (eprint 2019/706), endemic, one sender point for all |
//! | all-but-one transfers from trees | Roy 2022 (eprint 2022/192), section 6, with its check |
//! | extension over F_2^k, repetition code | the same, sections 3 and 4, checked by a universal hash of each column |
//!
//! The roles are those of the extension: its *sender* is the receiver of the base transfers.
//!
//! A failed check is not harmless: by failing or not it tells the peer up to one bit of Δ for each bit it had guessed.
//! The caller must never use the state with that peer again, see [`OtError::CheckFailed`].
//!
//! `binding` is in every call a hash of all that must be the same on both sides: session, roles, parties. It should
//! never repeat, and nothing here breaks if it does: every step draws what it draws hedged with all that the step
//! knows, and pads are keyed by a fresh part of each side, see [`pads`].

pub mod authenticated;
mod base;
pub(crate) mod block;
mod check;
mod extension;
pub(crate) mod pads;
mod parameters;
mod random;
mod setup;
mod state;
mod tree;

pub use check::OtError;
pub(crate) use check::same_digest;
pub use extension::{EXTENDED, EXTENSION_BYTES, ReceiverCorrelation, SenderCorrelation};
pub use parameters::{CORRELATION_BITS, FIELD_BITS};
pub use random::TRANSFER_SALT_BYTES;
pub use setup::{
    CORRECTION_BYTES, Initiator, REQUEST_BYTES, RESPONSE_BYTES, Request, Responder, is_response,
};
pub use state::{PAIR_STATE_BYTES, PairState, ReceiverState, SenderState};
