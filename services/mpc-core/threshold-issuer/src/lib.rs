//! Membership of a group issued by t of n parties: no single machine can invent members.
//!
//! The issuing key is dealt as every key of the core is. A join multiplies by oblivious transfer, between the issuers
//! and the member alike; the member ends with the same credential that one manager would give it, so approvals do not
//! change. Specification with numbered steps: `docs/protocols/wbb.md`.

#![forbid(unsafe_code)]

pub mod attest;
pub mod join;
pub mod key;
pub mod multiply;
mod opener;
pub mod publish;
pub mod tags;
pub mod ticket;

pub use attest::{AttestationError, AttestedGroup, MAX_INSTALLATION_BYTES, NamedIssuers};
pub use join::{Join, JoinInput, JoinOutput, JoinTerms};
pub use key::{IssuerShare, Issuers, KeyOfOpeners, Keygen, OpenerShare, OpeningKeygen, Refresh, key_id};
pub use publish::{Publish, PublishInput};
pub use ticket::{PART_SHARE_BYTES, Part, PartError, PartShare, RegisterError, Reservation, Reservations};
