//! The calls of `proto/coterie/core/v1/group.proto`, by hand as those of `core.proto`.
//!
//! `tests/drift.rs` compares names, numbers and types with the file.

use prost::{Enumeration, Message, Oneof};

use super::{GroupParties, KeyPublic, OpenersKey, PartyBytes};

/// `GroupCall`.
#[derive(Clone, PartialEq, Message)]
pub struct GroupCall {
    /// One of them.
    #[prost(oneof = "Call", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19")]
    pub call: Option<Call>,
}

/// `GroupCall.call`.
#[derive(Clone, PartialEq, Oneof)]
pub enum Call {
    /// `CreateOpenerKey`.
    #[prost(message, tag = "1")]
    CreateOpenerKey(CreateOpenerKey),
    /// `AttestOpenersKey`.
    #[prost(message, tag = "2")]
    AttestOpenersKey(AttestOpenersKey),
    /// `NameIssuingKey`.
    #[prost(message, tag = "3")]
    NameIssuingKey(NameIssuingKey),
    /// `AttestGroup`.
    #[prost(message, tag = "4")]
    AttestGroup(AttestGroup),
    /// `AssembleGroup`.
    #[prost(message, tag = "5")]
    AssembleGroup(AssembleGroup),
    /// `CheckGroup`.
    #[prost(message, tag = "6")]
    CheckGroup(CheckGroup),
    /// `Apply`.
    #[prost(message, tag = "7")]
    Apply(Apply),
    /// `Reserve`.
    #[prost(message, tag = "8")]
    Reserve(Reserve),
    /// `AnswerApplication`.
    #[prost(message, tag = "9")]
    AnswerApplication(AnswerApplication),
    /// `AcceptAnswers`.
    #[prost(message, tag = "10")]
    AcceptAnswers(AcceptAnswers),
    /// `RegisterMember`.
    #[prost(message, tag = "11")]
    RegisterMember(RegisterMember),
    /// `OrderRun`.
    #[prost(message, tag = "12")]
    OrderRun(OrderRun),
    /// `CountRun`.
    #[prost(message, tag = "13")]
    CountRun(CountRun),
    /// `DropRun`.
    #[prost(message, tag = "14")]
    DropRun(DropRun),
    /// `Approve`.
    #[prost(message, tag = "15")]
    Approve(Approve),
    /// `CountApprovals`.
    #[prost(message, tag = "16")]
    CountApprovals(CountApprovals),
    /// `ShareOpening`.
    #[prost(message, tag = "17")]
    ShareOpening(ShareOpening),
    /// `CombineOpening`.
    #[prost(message, tag = "18")]
    CombineOpening(CombineOpening),
    /// `CheckRegistration`.
    #[prost(message, tag = "19")]
    CheckRegistration(CheckRegistration),
}

/// `Group`.
#[derive(Clone, PartialEq, Message)]
pub struct Group {
    /// From the caller's own configuration, never from who shows the group.
    #[prost(message, optional, tag = "1")]
    pub parties: Option<GroupParties>,
    /// AttestedGroup: the group's public data with the signatures of all issuers. Nothing is taken without
    /// all of them.
    #[prost(bytes = "vec", tag = "2")]
    pub attested: Vec<u8>,
}

/// `ApprovalRequest`.
#[derive(Clone, PartialEq, Message)]
pub struct ApprovalRequest {
    /// 32 bytes, of the signed intent, request id included.
    #[prost(bytes = "vec", tag = "1")]
    pub digest: Vec<u8>,
    /// Decision.
    #[prost(enumeration = "ApprovalDecision", tag = "2")]
    pub decision: i32,
}

/// `IssuerRecords`.
#[derive(Clone, PartialEq, Message)]
pub struct IssuerRecords {
    /// The reservation of the ticket; empty if there is none.
    #[prost(bytes = "vec", tag = "1")]
    pub reservation: Vec<u8>,
    /// The member's record of the ticket; empty if there is none.
    #[prost(bytes = "vec", tag = "2")]
    pub member: Vec<u8>,
    /// Whether a ticket of this identity is reserved.
    #[prost(bool, tag = "3")]
    pub identity_reserved: bool,
    /// Whether this identity is a member.
    #[prost(bool, tag = "4")]
    pub identity_registered: bool,
    /// How many members are registered.
    #[prost(uint32, tag = "5")]
    pub members: u32,
}

/// `CreateOpenerKey`.
#[derive(Clone, PartialEq, Message)]
pub struct CreateOpenerKey {
    /// Key id.
    #[prost(string, tag = "1")]
    pub key_id: String,
    /// The auditor's number.
    #[prost(uint32, tag = "2")]
    pub party: u32,
}

/// `AttestOpenersKey`.
#[derive(Clone, PartialEq, Message)]
pub struct AttestOpenersKey {
    /// Without signatures.
    #[prost(message, optional, tag = "1")]
    pub openers: Option<OpenersKey>,
    /// Parties.
    #[prost(message, optional, tag = "2")]
    pub parties: Option<GroupParties>,
    /// This opener.
    #[prost(uint32, tag = "3")]
    pub party: u32,
    /// Its share of the key.
    #[prost(bytes = "vec", tag = "4")]
    pub sealed_share: Vec<u8>,
}

/// `NameIssuingKey`.
#[derive(Clone, PartialEq, Message)]
pub struct NameIssuingKey {
    /// With all signatures.
    #[prost(message, optional, tag = "1")]
    pub openers: Option<OpenersKey>,
    /// Parties.
    #[prost(message, optional, tag = "2")]
    pub parties: Option<GroupParties>,
}

/// `AttestGroup`.
#[derive(Clone, PartialEq, Message)]
pub struct AttestGroup {
    /// Parties.
    #[prost(message, optional, tag = "1")]
    pub parties: Option<GroupParties>,
    /// Done.group of the publication.
    #[prost(bytes = "vec", tag = "2")]
    pub published: Vec<u8>,
    /// This issuer.
    #[prost(uint32, tag = "3")]
    pub party: u32,
    /// Of the issuing key.
    #[prost(message, optional, tag = "4")]
    pub issuers: Option<KeyPublic>,
    /// Its share of the key.
    #[prost(bytes = "vec", tag = "5")]
    pub sealed_share: Vec<u8>,
}

/// `AssembleGroup`.
#[derive(Clone, PartialEq, Message)]
pub struct AssembleGroup {
    /// Parties.
    #[prost(message, optional, tag = "1")]
    pub parties: Option<GroupParties>,
    /// Done.group of the publication.
    #[prost(bytes = "vec", tag = "2")]
    pub published: Vec<u8>,
    /// Of the issuing key.
    #[prost(message, optional, tag = "3")]
    pub issuers: Option<KeyPublic>,
    /// One of each issuer.
    #[prost(message, repeated, tag = "4")]
    pub signatures: Vec<PartyBytes>,
}

/// `CheckGroup`.
#[derive(Clone, PartialEq, Message)]
pub struct CheckGroup {
    /// The group that it is about.
    #[prost(message, optional, tag = "1")]
    pub group: Option<Group>,
    /// The epochs that the caller knows, with the parties of their time: its key must be none of theirs.
    #[prost(message, repeated, tag = "2")]
    pub earlier: Vec<Group>,
}

/// `Apply`.
#[derive(Clone, PartialEq, Message)]
pub struct Apply {
    /// The group that it is about.
    #[prost(message, optional, tag = "1")]
    pub group: Option<Group>,
    /// 32 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub ticket: Vec<u8>,
}

/// `Reserve`.
#[derive(Clone, PartialEq, Message)]
pub struct Reserve {
    /// The group that it is about.
    #[prost(message, optional, tag = "1")]
    pub group: Option<Group>,
    /// 32 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub ticket: Vec<u8>,
    /// The Ed25519 key that the ticket is for.
    #[prost(bytes = "vec", tag = "3")]
    pub identity: Vec<u8>,
    /// Application.
    #[prost(bytes = "vec", tag = "4")]
    pub application: Vec<u8>,
    /// Records.
    #[prost(message, optional, tag = "5")]
    pub records: Option<IssuerRecords>,
}

/// `AnswerApplication`.
#[derive(Clone, PartialEq, Message)]
pub struct AnswerApplication {
    /// The group that it is about.
    #[prost(message, optional, tag = "1")]
    pub group: Option<Group>,
    /// As it was stored.
    #[prost(bytes = "vec", tag = "2")]
    pub reservation: Vec<u8>,
    /// This issuer.
    #[prost(uint32, tag = "3")]
    pub party: u32,
    /// Its share of the issuing key.
    #[prost(bytes = "vec", tag = "4")]
    pub sealed_share: Vec<u8>,
}

/// `AcceptAnswers`.
#[derive(Clone, PartialEq, Message)]
pub struct AcceptAnswers {
    /// The group that it is about.
    #[prost(message, optional, tag = "1")]
    pub group: Option<Group>,
    /// Sealed applicant.
    #[prost(bytes = "vec", tag = "2")]
    pub sealed_applicant: Vec<u8>,
    /// Of at least ceil((n + t) / 2) issuers.
    #[prost(message, repeated, tag = "3")]
    pub shares: Vec<PartyBytes>,
}

/// `RegisterMember`.
#[derive(Clone, PartialEq, Message)]
pub struct RegisterMember {
    /// The group that it is about.
    #[prost(message, optional, tag = "1")]
    pub group: Option<Group>,
    /// As it was stored.
    #[prost(bytes = "vec", tag = "2")]
    pub reservation: Vec<u8>,
    /// Of at least ceil((n + t) / 2) issuers.
    #[prost(message, repeated, tag = "3")]
    pub shares: Vec<PartyBytes>,
    /// Acceptance.
    #[prost(bytes = "vec", tag = "4")]
    pub acceptance: Vec<u8>,
    /// Records.
    #[prost(message, optional, tag = "5")]
    pub records: Option<IssuerRecords>,
}

/// `OrderRun`.
#[derive(Clone, PartialEq, Message)]
pub struct OrderRun {
    /// The group that it is about.
    #[prost(message, optional, tag = "1")]
    pub group: Option<Group>,
    /// Sealed candidate.
    #[prost(bytes = "vec", tag = "2")]
    pub sealed_candidate: Vec<u8>,
    /// Above all numbers so far, at most 8.
    #[prost(uint32, tag = "3")]
    pub number: u32,
    /// 32 bytes, never used before.
    #[prost(bytes = "vec", tag = "4")]
    pub session_id: Vec<u8>,
}

/// `CountRun`.
#[derive(Clone, PartialEq, Message)]
pub struct CountRun {
    /// The group that it is about.
    #[prost(message, optional, tag = "1")]
    pub group: Option<Group>,
    /// The member's record, as it was stored.
    #[prost(bytes = "vec", tag = "2")]
    pub member: Vec<u8>,
    /// Stored with it.
    #[prost(bytes = "vec", tag = "3")]
    pub part: Vec<u8>,
    /// Order.
    #[prost(bytes = "vec", tag = "4")]
    pub order: Vec<u8>,
    /// 32 bytes, of the session that the caller is about to start. An order for another one is refused.
    #[prost(bytes = "vec", tag = "5")]
    pub session_id: Vec<u8>,
}

/// `DropRun`.
#[derive(Clone, PartialEq, Message)]
pub struct DropRun {
    /// 32 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub session_id: Vec<u8>,
}

/// `Approve`.
#[derive(Clone, PartialEq, Message)]
pub struct Approve {
    /// The group that it is about.
    #[prost(message, optional, tag = "1")]
    pub group: Option<Group>,
    /// The subject of the approvals.
    #[prost(message, optional, tag = "2")]
    pub request: Option<ApprovalRequest>,
    /// Done.sealed_share of the join.
    #[prost(bytes = "vec", tag = "3")]
    pub sealed_member: Vec<u8>,
}

/// `CountApprovals`.
#[derive(Clone, PartialEq, Message)]
pub struct CountApprovals {
    /// The group that it is about.
    #[prost(message, optional, tag = "1")]
    pub group: Option<Group>,
    /// The subject of the approvals.
    #[prost(message, optional, tag = "2")]
    pub request: Option<ApprovalRequest>,
    /// At most 1024.
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub approvals: Vec<Vec<u8>>,
    /// Needed.
    #[prost(uint32, tag = "4")]
    pub needed: u32,
}

/// `ShareOpening`.
#[derive(Clone, PartialEq, Message)]
pub struct ShareOpening {
    /// The group that it is about.
    #[prost(message, optional, tag = "1")]
    pub group: Option<Group>,
    /// The subject of the approvals.
    #[prost(message, optional, tag = "2")]
    pub request: Option<ApprovalRequest>,
    /// Approval.
    #[prost(bytes = "vec", tag = "3")]
    pub approval: Vec<u8>,
    /// This opener.
    #[prost(uint32, tag = "4")]
    pub party: u32,
    /// Its share of the openers' key.
    #[prost(bytes = "vec", tag = "5")]
    pub sealed_share: Vec<u8>,
}

/// `CombineOpening`.
#[derive(Clone, PartialEq, Message)]
pub struct CombineOpening {
    /// The group that it is about.
    #[prost(message, optional, tag = "1")]
    pub group: Option<Group>,
    /// The subject of the approvals.
    #[prost(message, optional, tag = "2")]
    pub request: Option<ApprovalRequest>,
    /// Approval.
    #[prost(bytes = "vec", tag = "3")]
    pub approval: Vec<u8>,
    /// Of at least as many openers as it takes.
    #[prost(message, repeated, tag = "4")]
    pub shares: Vec<PartyBytes>,
}

/// `CheckRegistration`.
#[derive(Clone, PartialEq, Message)]
pub struct CheckRegistration {
    /// The group that it is about.
    #[prost(message, optional, tag = "1")]
    pub group: Option<Group>,
    /// 32 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub ticket: Vec<u8>,
    /// 32 bytes.
    #[prost(bytes = "vec", tag = "3")]
    pub identity: Vec<u8>,
    /// The member's.
    #[prost(bytes = "vec", tag = "4")]
    pub point: Vec<u8>,
    /// Of the registry's entry.
    #[prost(bytes = "vec", tag = "5")]
    pub acceptance: Vec<u8>,
}

/// `ApprovalDecision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum ApprovalDecision {
    /// None.
    Unspecified = 0,
    /// It may be done.
    Approve = 1,
    /// It must not be done.
    Reject = 2,
}
