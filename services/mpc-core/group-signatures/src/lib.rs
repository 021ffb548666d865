//! Group signatures from weak Boneh-Boyen signatures on BLS12-381: anonymous approvals that an auditor can open one
//! by one.
//!
//! Specification with numbered steps: `docs/protocols/wbb.md`.

mod approval;
mod group;
mod member;
mod opening;
mod registration;
mod sigma;
pub mod tags;

pub use approval::{
    APPROVAL_BYTES, Approval, ApprovalError, ApprovalTag, CountError, Decision, REQUEST_BYTES, Request, count,
};
pub use group::{GroupError, GroupPublic, IssuingKey, MAX_GROUP_BYTES};
pub use member::{CredentialError, MemberKey, complete};
pub use opening::{OPENING_SHARE_BYTES, OpeningShare, open};
pub use registration::{
    Applicant, Application, MAX_ATTEMPTS, RegistrationError, TICKET_BYTES, Ticket, join_terms,
};

/// For tests: members that nobody has admitted.
#[cfg(feature = "forge")]
pub mod forge {
    use super::{GroupPublic, MemberKey};

    pub use crate::approval::forge::{Simulated, accepts, simulate};

    /// The key of another group, said to be one of this.
    pub fn claim(mut key: MemberKey, group: &GroupPublic) -> MemberKey {
        key.group = *group.digest();
        key
    }
}
