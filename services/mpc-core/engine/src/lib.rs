//! What every protocol of the core stands on: rounds, envelopes, transcripts, blame and sealing.
//!
//! No signature scheme is known here, and nothing reads a clock, a socket or a file, starts a thread or writes a log.

#![forbid(unsafe_code)]

mod broadcast;
pub mod context;
pub mod envelope;
pub mod evidence;
pub mod fault;
#[cfg(feature = "forge")]
pub mod forge;
mod mailbox;
pub mod party;
pub mod seal;
pub mod session;
pub mod tags;
pub mod transcript;
pub mod wire;

pub use context::{MAX_KEY_ID_BYTES, ProtocolId, RosterEntry, SessionContext, SessionId, SessionSettings};
pub use envelope::{Delivery, Envelope};
pub use evidence::{EvidenceKey, EvidencePublicKey};
pub use fault::{Abort, AbortCause, Advice, Fault, Reject, SetupError};
pub use mailbox::Inbox;
pub use party::{MAX_PARTIES, PartyId, PartySet, Threshold};
pub use primitives::Secret;
pub use session::{
    Body, BroadcastBody, Next, Outbox, PrivateBody, Progress, Protocol, RoundRule, Route, Session, Step,
};
pub use tags::Tag;
pub use transcript::{Transcript, hedged};
