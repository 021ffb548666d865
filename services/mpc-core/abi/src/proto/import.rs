//! The messages of `proto/coterie/core/v1/import.proto`, by hand as those of `core.proto`.
//!
//! `tests/drift.rs` compares names, numbers and types with the file.

use prost::{Message, Oneof};

use super::{KeyPublic, Party, PartyBytes};

/// `ImportCall`.
#[derive(Clone, PartialEq, Message)]
pub struct ImportCall {
    /// One of them.
    #[prost(oneof = "ImportCallKind", tags = "1, 2, 3, 4, 5, 6")]
    pub call: Option<ImportCallKind>,
}

/// `ImportCall.call`.
#[derive(Clone, PartialEq, Oneof)]
pub enum ImportCallKind {
    /// `SplitKey`.
    #[prost(message, tag = "1")]
    SplitKey(SplitKey),
    /// `TakeShare`.
    #[prost(message, tag = "2")]
    TakeShare(TakeShare),
    /// `DropPair`.
    #[prost(message, tag = "3")]
    DropPair(DropPair),
    /// `FindPair`.
    #[prost(message, tag = "4")]
    FindPair(FindPair),
    /// `SplitSeed`.
    #[prost(message, tag = "5")]
    SplitSeed(SplitSeed),
    /// `TakeSeedShare`.
    #[prost(message, tag = "6")]
    TakeSeedShare(TakeSeedShare),
}

/// `ImportReply`.
#[derive(Clone, PartialEq, Message)]
pub struct ImportReply {
    /// One of them.
    #[prost(oneof = "ImportReplyKind", tags = "1, 2, 3, 4, 5")]
    pub reply: Option<ImportReplyKind>,
}

/// `ImportReply.reply`.
#[derive(Clone, PartialEq, Oneof)]
pub enum ImportReplyKind {
    /// `KeySplit`.
    #[prost(message, tag = "1")]
    KeySplit(KeySplit),
    /// `ShareTaken`.
    #[prost(message, tag = "2")]
    ShareTaken(ShareTaken),
    /// `PairDropped`.
    #[prost(message, tag = "3")]
    PairDropped(PairDropped),
    /// `ShareRefused`.
    #[prost(message, tag = "4")]
    ShareRefused(ShareRefused),
    /// `PairFound`.
    #[prost(message, tag = "5")]
    PairFound(PairFound),
}

/// `SplitSeed`.
#[derive(Clone, PartialEq, Message)]
pub struct SplitSeed {
    /// 16 to 64 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub seed: Vec<u8>,
    /// Our name for the seed.
    #[prost(string, tag = "2")]
    pub key_id: String,
    /// Ascending.
    #[prost(message, repeated, tag = "3")]
    pub parties: Vec<Party>,
}

/// `TakeSeedShare`.
#[derive(Clone, PartialEq, Message)]
pub struct TakeSeedShare {
    /// Our name for the seed.
    #[prost(string, tag = "1")]
    pub key_id: String,
    /// This party.
    #[prost(uint32, tag = "2")]
    pub party: u32,
    /// Encrypted to it.
    #[prost(bytes = "vec", tag = "3")]
    pub share: Vec<u8>,
}

/// `SplitKey`.
#[derive(Clone, PartialEq, Message)]
pub struct SplitKey {
    /// 32 or 64 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub secret: Vec<u8>,
    /// Our name for the key.
    #[prost(string, tag = "2")]
    pub key_id: String,
    /// Ascending.
    #[prost(message, repeated, tag = "3")]
    pub parties: Vec<Party>,
}

/// `KeySplit`.
#[derive(Clone, PartialEq, Message)]
pub struct KeySplit {
    /// Of the key.
    #[prost(message, optional, tag = "1")]
    pub key_public: Option<KeyPublic>,
    /// Encrypted.
    #[prost(message, repeated, tag = "2")]
    pub shares: Vec<PartyBytes>,
}

/// `TakeShare`.
#[derive(Clone, PartialEq, Message)]
pub struct TakeShare {
    /// Our name for the key.
    #[prost(string, tag = "1")]
    pub key_id: String,
    /// This party.
    #[prost(uint32, tag = "2")]
    pub party: u32,
    /// Encrypted to it.
    #[prost(bytes = "vec", tag = "3")]
    pub share: Vec<u8>,
}

/// `ShareTaken`.
#[derive(Clone, PartialEq, Message)]
pub struct ShareTaken {
    /// Under the vault's key.
    #[prost(bytes = "vec", tag = "1")]
    pub sealed_share: Vec<u8>,
    /// Of the key.
    #[prost(message, optional, tag = "2")]
    pub key_public: Option<KeyPublic>,
}

/// `ShareRefused`.
#[derive(Clone, PartialEq, Message)]
pub struct ShareRefused {}

/// `DropPair`.
#[derive(Clone, PartialEq, Message)]
pub struct DropPair {
    /// Our name for the key.
    #[prost(string, tag = "1")]
    pub key_id: String,
    /// This party.
    #[prost(uint32, tag = "2")]
    pub party: u32,
    /// The other one of the pair.
    #[prost(uint32, tag = "3")]
    pub peer: u32,
    /// The only one that is meant.
    #[prost(bytes = "vec", tag = "4")]
    pub set_up: Vec<u8>,
}

/// `PairDropped`.
#[derive(Clone, PartialEq, Message)]
pub struct PairDropped {}

/// `FindPair`.
#[derive(Clone, PartialEq, Message)]
pub struct FindPair {
    /// Our name for the key.
    #[prost(string, tag = "1")]
    pub key_id: String,
    /// This party.
    #[prost(uint32, tag = "2")]
    pub party: u32,
    /// The other one of the pair.
    #[prost(uint32, tag = "3")]
    pub peer: u32,
}

/// `PairFound`.
#[derive(Clone, PartialEq, Message)]
pub struct PairFound {
    /// Empty if there is none.
    #[prost(bytes = "vec", tag = "1")]
    pub set_up: Vec<u8>,
}
