//! The base of every protocol of the core: rounds, envelopes, transcripts, blame and sealing.
//!
//! No signature scheme is known here, and nothing reads a clock, a socket or a file, starts a thread or writes a log.

#![forbid(unsafe_code)]

mod admission;
pub mod body;
mod broadcast;
mod claim;
pub mod context;
mod disclosure;
mod dispute;
pub mod envelope;
pub mod error;
pub mod evidence;
pub mod fault;
#[cfg(feature = "forge")]
pub mod forge;
mod handover;
mod hedged;
mod limits;
mod mailbox;
pub mod notice;
pub mod party;
mod private;
pub mod protocol;
pub mod rounds;
mod runs;
pub mod seal;
pub mod session;
pub mod tags;
pub mod transcript;
pub mod view;
pub mod wire;

pub use body::{Body, BroadcastBody, PrivateBody, Route, parse};
pub use context::{MAX_KEY_ID_BYTES, ProtocolId, RosterEntry, SessionContext, SessionId, SessionSettings};
pub use envelope::Envelope;
pub use error::{Abort, AbortCause, Advice, Reject, SetupError};
pub use evidence::{EVIDENCE_KEY_BYTES, EvidenceKey, EvidencePublicKey, SIGNATURE_BYTES};
pub use fault::Fault;
pub use handover::hand_over;
pub use hedged::hedged;
pub use mailbox::Inbox;
pub use party::{MAX_PARTIES, PartyId, PartySet, Threshold};
pub use primitives::Secret;
pub use private::{SEALED_ENVELOPE_FORMAT, SEALED_OVERHEAD_BYTES};
pub use protocol::{History, Next, Outbox, Protocol};
pub use rounds::{Delivery, RoundRule};
pub use session::{Progress, Session, Step};
pub use tags::Tag;
pub use transcript::Transcript;
pub use view::View;
