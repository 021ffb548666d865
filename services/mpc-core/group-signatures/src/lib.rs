//! Group signatures from weak Boneh-Boyen signatures on BLS12-381: anonymous approvals that an auditor can open one
//! by one.
//!
//! Specification with numbered steps: `docs/protocols/wbb.md`.

mod approval;
mod error;
#[cfg(feature = "forge")]
pub mod forge;
mod group;
mod group_id;
mod member;
mod opener;
mod opening;
mod registration;
mod sigma;
pub mod tags;

pub use approval::{
    APPROVAL_BYTES, Approval, ApprovalError, ApprovalTag, CountError, Decision, REQUEST_BYTES, Request, count,
};
pub use error::{GroupError, OpenerError};
pub use group::{GroupDraft, GroupPublic, IssuingKey};
pub use group_id::{GroupId, MAX_GROUP_BYTES};
pub use member::{CredentialError, MemberKey, complete};
pub use opener::{AttestedKey, MAX_OPENERS, OpenerKey, Openers};
pub use opening::{OPENING_SHARE_BYTES, OpeningError, OpeningShare, open};
pub use registration::{
    Acceptance, Answer, Applicant, Application, Attempt, Candidate, Invitation, MAX_ATTEMPTS, MAX_MEMBERS,
    Register, Registrar, RegistrarKey, RegistrationError, RunOrder, TICKET_BYTES, Ticket,
};
