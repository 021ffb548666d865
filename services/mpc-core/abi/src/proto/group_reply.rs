//! The replies of `proto/coterie/core/v1/group.proto`, by hand as those of `core.proto`.
//!
//! `tests/drift.rs` compares names, numbers and types with the file.

use prost::{Enumeration, Message, Oneof};

use super::KeyPublic;

/// `GroupReply`.
#[derive(Clone, PartialEq, Message)]
pub struct GroupReply {
    /// One of them.
    #[prost(oneof = "Reply", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18")]
    pub reply: Option<Reply>,
}

/// `GroupReply.reply`.
#[derive(Clone, PartialEq, Oneof)]
pub enum Reply {
    /// `GroupRefused`.
    #[prost(message, tag = "1")]
    GroupRefused(GroupRefused),
    /// `OpenerKeyCreated`.
    #[prost(message, tag = "2")]
    OpenerKeyCreated(OpenerKeyCreated),
    /// `Attested`.
    #[prost(message, tag = "3")]
    Attested(Attested),
    /// `IssuingKeyNamed`.
    #[prost(message, tag = "4")]
    IssuingKeyNamed(IssuingKeyNamed),
    /// `GroupChecked`.
    #[prost(message, tag = "5")]
    GroupChecked(GroupChecked),
    /// `Applied`.
    #[prost(message, tag = "6")]
    Applied(Applied),
    /// `Reserved`.
    #[prost(message, tag = "7")]
    Reserved(Reserved),
    /// `ApplicationAnswered`.
    #[prost(message, tag = "8")]
    ApplicationAnswered(ApplicationAnswered),
    /// `AnswersAccepted`.
    #[prost(message, tag = "9")]
    AnswersAccepted(AnswersAccepted),
    /// `MemberRegistered`.
    #[prost(message, tag = "10")]
    MemberRegistered(MemberRegistered),
    /// `RunOrdered`.
    #[prost(message, tag = "11")]
    RunOrdered(RunOrdered),
    /// `RunCounted`.
    #[prost(message, tag = "12")]
    RunCounted(RunCounted),
    /// `RunDropped`.
    #[prost(message, tag = "13")]
    RunDropped(RunDropped),
    /// `Approved`.
    #[prost(message, tag = "14")]
    Approved(Approved),
    /// `ApprovalsCounted`.
    #[prost(message, tag = "15")]
    ApprovalsCounted(ApprovalsCounted),
    /// `OpeningShared`.
    #[prost(message, tag = "16")]
    OpeningShared(OpeningShared),
    /// `Opened`.
    #[prost(message, tag = "17")]
    Opened(Opened),
    /// `RegistrationChecked`.
    #[prost(message, tag = "18")]
    RegistrationChecked(RegistrationChecked),
}

/// `OpenerKeyCreated`.
#[derive(Clone, PartialEq, Message)]
pub struct OpenerKeyCreated {
    /// Sealed share.
    #[prost(bytes = "vec", tag = "1")]
    pub sealed_share: Vec<u8>,
    /// Key public.
    #[prost(message, optional, tag = "2")]
    pub key_public: Option<KeyPublic>,
}

/// `Attested`.
#[derive(Clone, PartialEq, Message)]
pub struct Attested {
    /// 64 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub signature: Vec<u8>,
}

/// `IssuingKeyNamed`.
#[derive(Clone, PartialEq, Message)]
pub struct IssuingKeyNamed {
    /// Key id.
    #[prost(string, tag = "1")]
    pub key_id: String,
}

/// `GroupChecked`.
#[derive(Clone, PartialEq, Message)]
pub struct GroupChecked {
    /// AttestedGroup.
    #[prost(bytes = "vec", tag = "1")]
    pub attested: Vec<u8>,
    /// Name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Epoch.
    #[prost(uint32, tag = "3")]
    pub epoch: u32,
    /// 32 bytes, which stand for the group in approvals and records.
    #[prost(bytes = "vec", tag = "4")]
    pub digest: Vec<u8>,
    /// The issuing key with the issuers' points.
    #[prost(message, optional, tag = "5")]
    pub issuers: Option<KeyPublic>,
}

/// `Applied`.
#[derive(Clone, PartialEq, Message)]
pub struct Applied {
    /// To be stored before the application is sent.
    #[prost(bytes = "vec", tag = "1")]
    pub sealed_applicant: Vec<u8>,
    /// Application.
    #[prost(bytes = "vec", tag = "2")]
    pub application: Vec<u8>,
}

/// `Reserved`.
#[derive(Clone, PartialEq, Message)]
pub struct Reserved {
    /// To be stored durably before AnswerApplication.
    #[prost(bytes = "vec", tag = "1")]
    pub reservation: Vec<u8>,
}

/// `ApplicationAnswered`.
#[derive(Clone, PartialEq, Message)]
pub struct ApplicationAnswered {
    /// For the applicant and, by it, for the other issuers.
    #[prost(bytes = "vec", tag = "1")]
    pub share: Vec<u8>,
}

/// `AnswersAccepted`.
#[derive(Clone, PartialEq, Message)]
pub struct AnswersAccepted {
    /// To be stored; the applicant is needed no more.
    #[prost(bytes = "vec", tag = "1")]
    pub sealed_candidate: Vec<u8>,
    /// 64 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub acceptance: Vec<u8>,
    /// The member's.
    #[prost(bytes = "vec", tag = "3")]
    pub point: Vec<u8>,
}

/// `MemberRegistered`.
#[derive(Clone, PartialEq, Message)]
pub struct MemberRegistered {
    /// The member's record, to be stored durably if no other member has its point.
    #[prost(bytes = "vec", tag = "1")]
    pub member: Vec<u8>,
    /// The issuers' part, to be stored with it.
    #[prost(bytes = "vec", tag = "2")]
    pub part: Vec<u8>,
    /// The member's, unique in the issuer's store.
    #[prost(bytes = "vec", tag = "3")]
    pub point: Vec<u8>,
    /// The ticket's.
    #[prost(bytes = "vec", tag = "4")]
    pub identity: Vec<u8>,
    /// For the registry.
    #[prost(bytes = "vec", tag = "5")]
    pub acceptance: Vec<u8>,
}

/// `RunOrdered`.
#[derive(Clone, PartialEq, Message)]
pub struct RunOrdered {
    /// To be stored before the order is sent. The vault has the run until it begins.
    #[prost(bytes = "vec", tag = "1")]
    pub sealed_candidate: Vec<u8>,
    /// For the issuers.
    #[prost(bytes = "vec", tag = "2")]
    pub order: Vec<u8>,
}

/// `RunCounted`.
#[derive(Clone, PartialEq, Message)]
pub struct RunCounted {
    /// The record, to be stored before the run begins. The vault has the run until then.
    #[prost(bytes = "vec", tag = "1")]
    pub member: Vec<u8>,
    /// Number.
    #[prost(uint32, tag = "2")]
    pub number: u32,
}

/// `RunDropped`.
#[derive(Clone, PartialEq, Message)]
pub struct RunDropped {}

/// `Approved`.
#[derive(Clone, PartialEq, Message)]
pub struct Approved {
    /// 416 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub approval: Vec<u8>,
    /// The same in all approvals of one member for one request and decision.
    #[prost(bytes = "vec", tag = "2")]
    pub tag: Vec<u8>,
}

/// `ApprovalsCounted`.
#[derive(Clone, PartialEq, Message)]
pub struct ApprovalsCounted {
    /// One of each approval, in their order.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub tags: Vec<Vec<u8>>,
}

/// `OpeningShared`.
#[derive(Clone, PartialEq, Message)]
pub struct OpeningShared {
    /// Share.
    #[prost(bytes = "vec", tag = "1")]
    pub share: Vec<u8>,
}

/// `Opened`.
#[derive(Clone, PartialEq, Message)]
pub struct Opened {
    /// Of the member, for the registry.
    #[prost(bytes = "vec", tag = "1")]
    pub point: Vec<u8>,
}

/// `RegistrationChecked`.
#[derive(Clone, PartialEq, Message)]
pub struct RegistrationChecked {}

/// `GroupRefused`.
#[derive(Clone, PartialEq, Message)]
pub struct GroupRefused {
    /// Reason.
    #[prost(enumeration = "GroupRefusal", tag = "1")]
    pub reason: i32,
    /// The issuer or opener whose contribution it was, or 0.
    #[prost(uint32, tag = "2")]
    pub party: u32,
    /// The place of the approval, from 0.
    #[prost(uint32, optional, tag = "3")]
    pub place: Option<u32>,
    /// TOO_FEW: how many there were.
    #[prost(uint32, tag = "4")]
    pub count: u32,
    /// For people; without secrets.
    #[prost(string, tag = "5")]
    pub detail: String,
}

/// `GroupRefusal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum GroupRefusal {
    /// None.
    Unspecified = 0,
    /// The bytes are not what they should be.
    Malformed = 1,
    /// The group's name is empty or too long, or its epoch is 0.
    Name = 2,
    /// The key is not shared among the configured parties, or a signature is none of theirs.
    Members = 3,
    /// The points are not shares of one key for the threshold.
    Sharing = 4,
    /// It takes another number of issuers than the configuration says.
    WrongThreshold = 5,
    /// The issuers' key is not that of the group.
    OtherKey = 6,
    /// The share is not the party's, or it signs with another key.
    WrongShare = 7,
    /// The party has not signed it.
    NotAttested = 8,
    /// The issuing key's two points have different logarithms.
    DifferentKeys = 9,
    /// A proof of knowledge does not verify.
    Proof = 10,
    /// It is no later epoch of the same group.
    NotLater = 11,
    /// The issuing key is that of an earlier epoch.
    KeyOfEarlierEpoch = 12,
    /// It is not signed by the identity that the ticket is for.
    Identity = 13,
    /// The ticket is bound to another application.
    TicketBound = 14,
    /// The identity has another ticket.
    IdentityTaken = 15,
    /// The member's point is the identity element, or registered.
    PointTaken = 16,
    /// There are as many members as an issuing key may have.
    GroupFull = 17,
    /// The answer or acceptance does not belong to the application.
    WrongAnswer = 18,
    /// The member has not accepted its point.
    NotAccepted = 19,
    /// The stored record is not one of this group and issuer.
    WrongRecord = 20,
    /// The ticket has paid for the run with this number, or for as many as it can.
    AttemptsSpent = 21,
    /// The party is no issuer of the group.
    NotAnIssuer = 22,
    /// The party has more than one share.
    Twice = 23,
    /// There are fewer than it takes.
    TooFew = 24,
    /// An element of the approval is not in the group.
    InvalidElement = 25,
    /// The approval's proof does not verify for the request.
    WrongProof = 26,
    /// The approval is not by a member of the group.
    NotIssued = 27,
    /// The member has approved the request by an earlier approval of the list.
    CountedTwice = 28,
    /// The party is no opener of the group.
    NotAnOpener = 29,
    /// The stored key is not a member's of the group.
    Credential = 30,
    /// The vault has as many runs as it can have.
    RunsFull = 31,
}
