//! The messages of `proto/coterie/core/v1/core.proto`, by hand, so that no compiler is needed to build the core.
//!
//! `tests/drift.rs` compares names, numbers and types with the file.

pub mod group_call;
pub mod group_reply;
pub mod import;

use prost::{Enumeration, Message, Oneof};
use zeroize::Zeroize;

/// `ProtocolId`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum ProtocolId {
    /// Not a protocol.
    Unspecified = 0,
    /// Key generation.
    BlsKeygen = 1,
    /// Signing.
    BlsSign = 2,
    /// Key generation.
    EcdsaKeygen = 3,
    /// Signing in three rounds.
    EcdsaSign = 4,
    /// A presignature.
    EcdsaPresign = 5,
    /// Signing with a presignature.
    EcdsaSignPresigned = 6,
    /// New shares for the same parties.
    EcdsaRefresh = 7,
    /// New shares for other parties or another threshold.
    EcdsaReshare = 8,
    /// New shares for the same parties.
    BlsRefresh = 9,
    /// New shares for other parties or another threshold.
    BlsReshare = 10,
    /// Key generation.
    Ed25519Keygen = 16,
    /// Signing in two rounds.
    Ed25519Sign = 17,
    /// A presignature.
    Ed25519Presign = 18,
    /// Signing with a presignature.
    Ed25519SignPresigned = 19,
    /// New shares for the same parties.
    Ed25519Refresh = 20,
    /// New shares for other parties or another threshold.
    Ed25519Reshare = 21,
    /// Key generation.
    Bip340Keygen = 24,
    /// Signing in two rounds.
    Bip340Sign = 25,
    /// A presignature.
    Bip340Presign = 26,
    /// Signing with a presignature.
    Bip340SignPresigned = 27,
    /// New shares for the same parties.
    Bip340Refresh = 28,
    /// New shares for other parties or another threshold.
    Bip340Reshare = 29,
    /// Set-up of a pair.
    Ed25519ExactPair = 48,
    /// Preparation of one signature.
    Ed25519ExactPrepare = 49,
    /// The nonce of a message.
    Ed25519ExactNonce = 50,
    /// The signature.
    Ed25519ExactAnswer = 51,
    /// A child of an ECDSA key.
    HardenedEcdsaChild = 52,
    /// Set-up of a pair with a seed.
    HardenedSeedPair = 53,
    /// A child of a seed.
    HardenedSeedEcdsaChild = 54,
    /// A node of SLIP-10.
    HardenedSlip10Node = 55,
    /// Its key.
    HardenedSlip10Key = 56,
    /// Key generation.
    IssuingKeygen = 65,
    /// New shares for the same issuers.
    IssuingRefresh = 66,
    /// The group's public data.
    IssuingPublish = 68,
    /// A member's join.
    IssuingJoin = 69,
    /// Key generation.
    OpeningKeygen = 70,
}

/// `Party`.
#[derive(Clone, PartialEq, Message)]
pub struct Party {
    /// 1 to 65535.
    #[prost(uint32, tag = "1")]
    pub id: u32,
    /// Ed25519 public key.
    #[prost(bytes = "vec", tag = "2")]
    pub evidence_key: Vec<u8>,
}

/// `SessionConfig`.
#[derive(Clone, PartialEq, Message)]
pub struct SessionConfig {
    /// Number from the registry.
    #[prost(enumeration = "ProtocolId", tag = "1")]
    pub protocol: i32,
    /// 32 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub session_id: Vec<u8>,
    /// `self`, which is no name in Rust; 0 for an observer.
    #[prost(uint32, tag = "3")]
    pub own: u32,
    /// Ascending.
    #[prost(message, repeated, tag = "4")]
    pub parties: Vec<Party>,
    /// Parties needed to sign.
    #[prost(uint32, tag = "5")]
    pub threshold: u32,
    /// Our name for the key.
    #[prost(string, tag = "6")]
    pub key_id: String,
    /// From 1.
    #[prost(uint32, tag = "7")]
    pub epoch: u32,
    /// The payload that is signed.
    #[prost(bytes = "vec", tag = "8")]
    pub payload: Vec<u8>,
    /// For an observer, and in a reshare.
    #[prost(message, optional, tag = "9")]
    pub key_public: Option<KeyPublic>,
    /// Hardened in hardened derivation alone.
    #[prost(uint32, repeated, tag = "10")]
    pub derivation_path: Vec<u32>,
    /// 32 bytes, or empty.
    #[prost(bytes = "vec", tag = "11")]
    pub presignature_id: Vec<u8>,
    /// The presignature of a party that signs with one.
    #[prost(bytes = "vec", tag = "12")]
    pub sealed_presignature: Vec<u8>,
    /// Reshare.
    #[prost(uint32, repeated, tag = "13")]
    pub dealers: Vec<u32>,
    /// Reshare.
    #[prost(uint32, repeated, tag = "14")]
    pub receivers: Vec<u32>,
    /// For Taproot's tweak.
    #[prost(bytes = "vec", optional, tag = "15")]
    pub taproot_merkle_root: Option<Vec<u8>>,
    /// Presigning.
    #[prost(uint32, tag = "16")]
    pub presignature_count: u32,
    /// Sessions of issuers.
    #[prost(message, optional, tag = "17")]
    pub group: Option<GroupTerms>,
    /// Preparation of an exact signature.
    #[prost(uint32, tag = "18")]
    pub message_blocks: u32,
    /// 32 bytes, or empty.
    #[prost(bytes = "vec", tag = "19")]
    pub recorded_nonce: Vec<u8>,
    /// For an observer that verifies elsewhere.
    #[prost(bool, tag = "20")]
    pub unverified: bool,
    /// Hardened derivation.
    #[prost(string, tag = "21")]
    pub child_key_id: String,
}

/// `GroupTerms`.
#[derive(Clone, PartialEq, Message)]
pub struct GroupTerms {
    /// From the caller's configuration.
    #[prost(message, optional, tag = "1")]
    pub parties: Option<GroupParties>,
    /// Signed by all of them.
    #[prost(message, optional, tag = "2")]
    pub openers: Option<OpenersKey>,
    /// Join.
    #[prost(bytes = "vec", tag = "3")]
    pub attested: Vec<u8>,
}

/// `GroupParties`.
#[derive(Clone, PartialEq, Message)]
pub struct GroupParties {
    /// Its name.
    #[prost(string, tag = "1")]
    pub installation: String,
    /// Ascending.
    #[prost(message, repeated, tag = "2")]
    pub issuers: Vec<Party>,
    /// How many issuers it takes.
    #[prost(uint32, tag = "3")]
    pub issuer_threshold: u32,
    /// Ascending.
    #[prost(message, repeated, tag = "4")]
    pub openers: Vec<Party>,
    /// How many openers it takes.
    #[prost(uint32, tag = "5")]
    pub opener_threshold: u32,
}

/// `OpenersKey`.
#[derive(Clone, PartialEq, Message)]
pub struct OpenersKey {
    /// Its name.
    #[prost(string, tag = "1")]
    pub group: String,
    /// Of the group, from 1.
    #[prost(uint32, tag = "2")]
    pub epoch: u32,
    /// With the openers' points.
    #[prost(message, optional, tag = "3")]
    pub key: Option<KeyPublic>,
    /// Of all openers.
    #[prost(message, repeated, tag = "4")]
    pub signatures: Vec<PartyBytes>,
}

/// `PartyBytes`.
#[derive(Clone, PartialEq, Message)]
pub struct PartyBytes {
    /// Whose.
    #[prost(uint32, tag = "1")]
    pub party: u32,
    /// A signature or a share.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// `KeyPublic`.
#[derive(Clone, PartialEq, Message)]
pub struct KeyPublic {
    /// Compressed.
    #[prost(bytes = "vec", tag = "1")]
    pub public_key: Vec<u8>,
    /// Parties needed to sign.
    #[prost(uint32, tag = "2")]
    pub threshold: u32,
    /// Our name for the key.
    #[prost(string, tag = "3")]
    pub key_id: String,
    /// Generation of the shares.
    #[prost(uint32, tag = "4")]
    pub epoch: u32,
    /// Ascending by party.
    #[prost(message, repeated, tag = "5")]
    pub verification_shares: Vec<VerificationShare>,
    /// 96 bytes for BLS.
    #[prost(bytes = "vec", tag = "6")]
    pub proof_of_possession: Vec<u8>,
    /// 32 bytes where keys are derived.
    #[prost(bytes = "vec", tag = "7")]
    pub chain_code: Vec<u8>,
}

/// `VerificationShare`.
#[derive(Clone, PartialEq, Message)]
pub struct VerificationShare {
    /// Whose.
    #[prost(uint32, tag = "1")]
    pub party: u32,
    /// Compressed.
    #[prost(bytes = "vec", tag = "2")]
    pub point: Vec<u8>,
}

/// `Step`.
#[derive(PartialEq, Message)]
pub struct Step {
    /// To be sent whatever the progress says.
    #[prost(message, repeated, tag = "1")]
    pub outgoing: Vec<Outgoing>,
    /// 0 after the end.
    #[prost(uint32, tag = "2")]
    pub round: u32,
    /// The effect on the run.
    #[prost(oneof = "Progress", tags = "3, 4, 5, 6")]
    pub progress: Option<Progress>,
}

/// `Step.progress`.
#[derive(Clone, PartialEq, Oneof)]
pub enum Progress {
    /// Messages are missing.
    #[prost(message, tag = "3")]
    Waiting(Waiting),
    /// The message was ignored.
    #[prost(message, tag = "4")]
    Dropped(Dropped),
    /// The result.
    #[prost(message, tag = "5")]
    Done(Done),
    /// The end without a result.
    #[prost(message, tag = "6")]
    Abort(Abort),
}

/// `Outgoing`. No `Clone`, and a `Debug` without the envelope, which may be secret.
#[derive(PartialEq, Message)]
#[prost(skip_debug)]
pub struct Outgoing {
    /// 0 for all.
    #[prost(uint32, tag = "1")]
    pub recipient: u32,
    /// Opaque. With a recipient and signed: encrypted to it.
    #[prost(bytes = "vec", tag = "2")]
    pub envelope: Vec<u8>,
    /// It belongs to this round.
    #[prost(uint32, tag = "3")]
    pub round: u32,
}

/// `Waiting`.
#[derive(Clone, PartialEq, Message)]
pub struct Waiting {
    /// Whose message of this round has not come.
    #[prost(uint32, repeated, tag = "1")]
    pub missing: Vec<u32>,
}

/// `Dropped`.
#[derive(Clone, PartialEq, Message)]
pub struct Dropped {
    /// `RejectReason`; the numbers are [`engine::Reject`]'s.
    #[prost(int32, tag = "1")]
    pub reason: i32,
}

/// `Done`.
#[derive(Clone, PartialEq, Message)]
pub struct Done {
    /// Key generation.
    #[prost(bytes = "vec", tag = "1")]
    pub sealed_share: Vec<u8>,
    /// Key generation.
    #[prost(message, optional, tag = "2")]
    pub key_public: Option<KeyPublic>,
    /// Signing.
    #[prost(bytes = "vec", tag = "3")]
    pub signature: Vec<u8>,
    /// Left out.
    #[prost(message, repeated, tag = "4")]
    pub culprits: Vec<Culprit>,
    /// ECDSA.
    #[prost(uint32, optional, tag = "5")]
    pub recovery_id: Option<u32>,
    /// Presigning.
    #[prost(message, repeated, tag = "6")]
    pub presignatures: Vec<Presignature>,
    /// Publication.
    #[prost(bytes = "vec", tag = "7")]
    pub group: Vec<u8>,
    /// The nonce point of an exact signature.
    #[prost(bytes = "vec", tag = "8")]
    pub nonce_point: Vec<u8>,
    /// SLIP-10.
    #[prost(bytes = "vec", tag = "9")]
    pub chain_code: Vec<u8>,
}

/// `Presignature`.
#[derive(Clone, PartialEq, Message)]
pub struct Presignature {
    /// 32 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub id: Vec<u8>,
    /// One party's contribution.
    #[prost(bytes = "vec", tag = "2")]
    pub sealed: Vec<u8>,
}

/// `Culprit`.
#[derive(Clone, PartialEq, Message)]
pub struct Culprit {
    /// The party that deviated.
    #[prost(uint32, tag = "1")]
    pub party: u32,
    /// `AbortCause`; the numbers are [`engine::AbortCause`]'s.
    #[prost(int32, tag = "2")]
    pub cause: i32,
}

/// `Abort`.
#[derive(Clone, PartialEq, Message)]
pub struct Abort {
    /// The round this party was in.
    #[prost(uint32, tag = "1")]
    pub round: u32,
    /// `AbortCause`.
    #[prost(int32, tag = "2")]
    pub cause: i32,
    /// Shown to have deviated.
    #[prost(uint32, repeated, tag = "3")]
    pub culprits: Vec<u32>,
    /// `Advice`; the numbers are [`engine::Advice`]'s.
    #[prost(int32, tag = "4")]
    pub advice: i32,
    /// Signed envelopes.
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub evidence: Vec<Vec<u8>>,
    /// For people.
    #[prost(string, tag = "6")]
    pub detail: String,
    /// Replaces the stored one.
    #[prost(bytes = "vec", tag = "7")]
    pub sealed_share: Vec<u8>,
    /// One of them may have caused it.
    #[prost(uint32, repeated, tag = "8")]
    pub suspects: Vec<u32>,
    /// Found it; 0 for an observer's own finding.
    #[prost(uint32, tag = "9")]
    pub reporter: u32,
}

impl core::fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { recipient, envelope, round } = self;
        write!(f, "Outgoing(round {round} to {recipient}, {} bytes)", envelope.len())
    }
}

/// `Accusation`.
#[derive(Clone, PartialEq, Message)]
pub struct Accusation {
    /// `AbortCause`.
    #[prost(int32, tag = "1")]
    pub cause: i32,
    /// Is said to have deviated.
    #[prost(uint32, tag = "2")]
    pub accused: u32,
    /// Signed envelopes; of a restart two signed headers.
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub evidence: Vec<Vec<u8>>,
}

/// `VerifyCall`.
#[derive(Clone, PartialEq, Message)]
pub struct VerifyCall {
    /// Number from the registry, of a protocol that signs.
    #[prost(enumeration = "ProtocolId", tag = "1")]
    pub protocol: i32,
    /// Bytes that may be signatures.
    #[prost(message, repeated, tag = "2")]
    pub claims: Vec<SignatureClaim>,
}

/// `SignatureClaim`.
#[derive(Clone, PartialEq, Message)]
pub struct SignatureClaim {
    /// Encoded as the scheme does.
    #[prost(bytes = "vec", tag = "1")]
    pub public_key: Vec<u8>,
    /// The input of the scheme.
    #[prost(bytes = "vec", tag = "2")]
    pub payload: Vec<u8>,
    /// Encoded as the scheme does.
    #[prost(bytes = "vec", tag = "3")]
    pub signature: Vec<u8>,
}

/// `Verdict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Verdict {
    /// The evidence convicts the accused.
    Proven = 1,
    /// It shows that the accused ran the session twice.
    Restarted = 2,
    /// It shows nothing of anybody.
    Refuted = 3,
    /// It shows something of another party.
    Another = 4,
    /// It is a notice by which the accused ended the session without proof.
    Told = 5,
}

impl Step {
    /// The encoding; the envelopes in it may be secret, so this copy of them is wiped.
    pub fn encode_and_wipe(mut self) -> Vec<u8> {
        let bytes = self.encode_to_vec();
        for outgoing in &mut self.outgoing {
            outgoing.envelope.zeroize();
        }
        bytes
    }
}
