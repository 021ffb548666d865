//! Everything that can go wrong, as data.
//!
//! A [`SetupError`] blames the caller's arguments, a [`Reject`] drops one message, an [`Abort`] ends the run.
//! All of them carry ids and digests, never values.

use core::fmt;

use crate::party::PartyId;
use crate::wire::Malformed;

/// Why a received message was ignored. The run goes on and nobody is blamed.
///
/// The numbers are those of `RejectReason` in `core.proto`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Reject {
    /// Not an envelope at all.
    Malformed = 1,
    /// An envelope of another format version.
    Version = 2,
    /// Meant for another protocol.
    Protocol = 3,
    /// Meant for another session, or for this one with other parties, threshold, key, public data of the key or
    /// payload.
    Session = 4,
    /// The sender is not in the session, is this party itself, or is not whom the channel proved.
    Sender = 5,
    /// The message is for another party.
    Recipient = 6,
    /// The message belongs to a round that is over.
    RoundPast = 7,
    /// The message belongs to a round beyond the next one.
    RoundFuture = 8,
    /// The message is broadcast where private was due, the other way round, or unsigned where signed was due.
    Delivery = 9,
    /// Longer than any body of that round.
    Size = 10,
    /// The evidence signature does not verify.
    Signature = 11,
    /// The same message again.
    Duplicate = 12,
    /// A private message that is not sealed to this party, or does not open.
    Unsealing = 13,
}

impl Reject {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Reject; 13] = [
        Reject::Malformed,
        Reject::Version,
        Reject::Protocol,
        Reject::Session,
        Reject::Sender,
        Reject::Recipient,
        Reject::RoundPast,
        Reject::RoundFuture,
        Reject::Delivery,
        Reject::Size,
        Reject::Signature,
        Reject::Duplicate,
        Reject::Unsealing,
    ];

    /// The stable number.
    pub fn number(self) -> u8 {
        self as u8
    }
}

/// Why a run ended without a result.
///
/// The numbers are those of `AbortCause` in `core.proto` and travel in notices between parties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum AbortCause {
    /// A broken invariant of ours.
    Internal = 1,
    /// A body that does not decode, from an authenticated sender.
    MalformedBody = 2,
    /// Point not on the curve, not in the subgroup, the identity, or not canonical.
    InvalidPoint = 3,
    /// Scalar not below the group order, or zero where that is not allowed.
    InvalidScalar = 4,
    /// The vector of commitments is longer or shorter than the threshold.
    WrongDegree = 5,
    /// The opening is not what its sender had committed to.
    WrongOpening = 6,
    /// A proof that does not verify.
    WrongProof = 7,
    /// A share that does not match its sender's commitments.
    WrongShare = 8,
    /// An accusation, or a claim about what was seen, that the claimant's own signed messages refute.
    FalseComplaint = 9,
    /// Two different signed messages where there can be one.
    Equivocation = 10,
    /// The parties saw different broadcasts and nobody can be shown to have caused it.
    BroadcastMismatch = 11,
    /// A partial signature that does not verify under its sender's verification share.
    WrongPartialSignature = 12,
    /// Fewer good partial signatures than the threshold.
    NotEnoughPartials = 13,
    /// The joint public key, or a verification share, came out as the identity.
    DegenerateKey = 14,
    /// A consistency check of oblivious transfers or of a multiplication built on them failed. The pair must never use
    /// again what it shares: each further attempt could tell the peer more of this party's secrets.
    TransferCheckFailed = 15,
    /// The input of a party to a multiplication is not the logarithm of the points it shows.
    WrongProduct = 16,
    /// The parties' shares are not shares of the key, and nobody can be shown to have caused it.
    InconsistentShares = 17,
    /// The combined signature does not verify. The culprits, if any, showed another nonce point than the others.
    InvalidSignature = 18,
    /// A party ran this session twice: its messages carry two run nonces. It may have been restored, so nobody is
    /// blamed.
    PartyRestarted = 19,
    /// The check of a pair's AND triples failed.
    TripleCheckFailed = 20,
    /// Bits of a garbled circuit, or a point made of them, were opened without their authenticator.
    WrongAuthenticator = 21,
    /// Public bits were named whose labels the sender cannot have.
    WrongLabel = 22,
    /// A garbled table does not compute its gate.
    WrongTable = 23,
    /// The check of bits that are shared as scalars too failed.
    DabitCheckFailed = 24,
    /// Other bits were entered into a circuit than those that were fixed before.
    WrongInput = 25,
    /// The parties do not run the same circuit.
    CircuitMismatch = 26,
    /// A message has another nonce point than the recorded one: the peer's deviation, wrong shares or a wrong record.
    /// The pair must never sign with this key again.
    OtherNonce = 27,
    /// The test signature that ends an import is not the owner's: the peer's deviation, or wrong shares.
    WrongTestSignature = 28,
}

impl AbortCause {
    /// Every cause, in the order of their numbers.
    pub const ALL: [AbortCause; 28] = [
        AbortCause::Internal,
        AbortCause::MalformedBody,
        AbortCause::InvalidPoint,
        AbortCause::InvalidScalar,
        AbortCause::WrongDegree,
        AbortCause::WrongOpening,
        AbortCause::WrongProof,
        AbortCause::WrongShare,
        AbortCause::FalseComplaint,
        AbortCause::Equivocation,
        AbortCause::BroadcastMismatch,
        AbortCause::WrongPartialSignature,
        AbortCause::NotEnoughPartials,
        AbortCause::DegenerateKey,
        AbortCause::TransferCheckFailed,
        AbortCause::WrongProduct,
        AbortCause::InconsistentShares,
        AbortCause::InvalidSignature,
        AbortCause::PartyRestarted,
        AbortCause::TripleCheckFailed,
        AbortCause::WrongAuthenticator,
        AbortCause::WrongLabel,
        AbortCause::WrongTable,
        AbortCause::DabitCheckFailed,
        AbortCause::WrongInput,
        AbortCause::CircuitMismatch,
        AbortCause::OtherNonce,
        AbortCause::WrongTestSignature,
    ];

    /// The stable number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The cause with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.number() == number)
    }

    /// Whether this cause is always some party's doing. Decides what a notice without an accused may say.
    pub fn needs_culprit(self) -> bool {
        match self {
            AbortCause::MalformedBody
            | AbortCause::InvalidPoint
            | AbortCause::InvalidScalar
            | AbortCause::WrongDegree
            | AbortCause::WrongOpening
            | AbortCause::WrongProof
            | AbortCause::WrongShare
            | AbortCause::FalseComplaint
            | AbortCause::Equivocation
            | AbortCause::WrongPartialSignature
            | AbortCause::TripleCheckFailed
            | AbortCause::WrongAuthenticator
            | AbortCause::WrongLabel
            | AbortCause::WrongTable
            | AbortCause::DabitCheckFailed
            | AbortCause::WrongInput => true,
            AbortCause::Internal
            | AbortCause::BroadcastMismatch
            | AbortCause::NotEnoughPartials
            | AbortCause::DegenerateKey
            | AbortCause::TransferCheckFailed
            | AbortCause::WrongProduct
            | AbortCause::InconsistentShares
            | AbortCause::InvalidSignature
            | AbortCause::PartyRestarted
            | AbortCause::CircuitMismatch
            | AbortCause::OtherNonce
            | AbortCause::WrongTestSignature => false,
        }
    }
}

impl From<Malformed> for AbortCause {
    fn from(_: Malformed) -> Self {
        AbortCause::MalformedBody
    }
}

impl fmt::Display for AbortCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AbortCause::Internal => "internal error",
            AbortCause::MalformedBody => "malformed body",
            AbortCause::InvalidPoint => "invalid point",
            AbortCause::InvalidScalar => "invalid scalar",
            AbortCause::WrongDegree => "wrong number of commitments",
            AbortCause::WrongOpening => "opening does not match the commitment",
            AbortCause::WrongProof => "proof does not verify",
            AbortCause::WrongShare => "share does not match the commitments",
            AbortCause::FalseComplaint => "complaint is refuted by its own evidence",
            AbortCause::Equivocation => "two different signed messages for one place",
            AbortCause::BroadcastMismatch => "parties saw different broadcasts",
            AbortCause::WrongPartialSignature => "partial signature does not verify",
            AbortCause::NotEnoughPartials => "fewer good partial signatures than the threshold",
            AbortCause::DegenerateKey => "key is the identity",
            AbortCause::TransferCheckFailed => "consistency check of a pair's transfers failed",
            AbortCause::WrongProduct => "multiplication does not match the points shown",
            AbortCause::InconsistentShares => "shares do not add up to the key",
            AbortCause::InvalidSignature => "combined signature does not verify",
            AbortCause::PartyRestarted => "a party ran the session twice",
            AbortCause::TripleCheckFailed => "check of AND triples failed",
            AbortCause::WrongAuthenticator => "value opened without its authenticator",
            AbortCause::WrongLabel => "bits named without their labels",
            AbortCause::WrongTable => "garbled table does not compute its gate",
            AbortCause::DabitCheckFailed => "check of bits that are scalars too failed",
            AbortCause::WrongInput => "other input than the one that was fixed",
            AbortCause::CircuitMismatch => "parties run different circuits",
            AbortCause::OtherNonce => "nonce differs from the recorded one",
            AbortCause::WrongTestSignature => "test signature is not the owner's",
        })
    }
}

/// The action to take after an abort.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Advice {
    /// A new session, with a new session id, may succeed.
    Retry = 1,
    /// Leave the culprits out of every later session of this key.
    ExcludeParty = 2,
    /// Use the key no more.
    FreezeKey = 3,
}

/// The end of a run without a result.
pub struct Abort {
    /// The round this party was in.
    pub round: u8,
    /// Why.
    pub cause: AbortCause,
    /// Those shown to have deviated, ascending. Empty when nobody can be, and never this party.
    pub culprits: Vec<PartyId>,
    /// If there are no culprits, those of whom one may have caused it, ascending. Empty only for an
    /// [`AbortCause::Internal`] of our own.
    pub suspects: Vec<PartyId>,
    /// Evidence that convinces anybody, if the cause has any: signed envelopes; the notice by whose word the run ended;
    /// of [`AbortCause::PartyRestarted`] two signed headers.
    pub evidence: Vec<Vec<u8>>,
    /// The party that found it: the one whose notice ended our run, that of the first who said so where others passed
    /// it on, or this one; `None` for an observer's own finding.
    pub reporter: Option<PartyId>,
}

impl Abort {
    /// The action that the driver should take next.
    pub fn advice(&self) -> Advice {
        if self.culprits.is_empty() { Advice::Retry } else { Advice::ExcludeParty }
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round {}: {}", self.round, self.cause)?;
        for (parties, title) in [(&self.culprits, "; culprits "), (&self.suspects, "; suspects ")] {
            for (position, party) in parties.iter().enumerate() {
                write!(f, "{}{party}", if position == 0 { title } else { ", " })?;
            }
        }
        match self.reporter {
            Some(reporter) => write!(f, "; reported by party {reporter}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Abort({self})")
    }
}

/// A session that could not start: the caller's arguments do not describe one that this core can run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetupError {
    /// The protocol number is not in the registry.
    UnknownProtocol,
    /// The session id is not 32 bytes.
    SessionIdLength,
    /// A party number is 0 or above 65535.
    PartyIdRange,
    /// Party numbers are not strictly ascending.
    PartiesNotAscending,
    /// No party, or more than [`crate::MAX_PARTIES`].
    PartyCount,
    /// Not 1 <= threshold <= parties of the key.
    ThresholdRange,
    /// Fewer signers than the threshold.
    SigningSetTooSmall,
    /// A signer that holds no share of the key.
    SigningSetNotOfKey,
    /// This party is not among the parties.
    SelfNotInParties,
    /// An observer cannot run this protocol.
    ObserverNotAllowed,
    /// The key id is empty or longer than [`crate::MAX_KEY_ID_BYTES`].
    KeyIdLength,
    /// The epoch is 0, or not 1 in key generation.
    EpochRange,
    /// The payload is longer than the protocol allows, or there is one where none belongs.
    PayloadLength,
    /// An evidence key is not a valid Ed25519 public key, has small order, or is another than is due for its party.
    EvidenceKeyInvalid,
    /// Two parties have the same evidence key, so a signature would not tell them apart.
    EvidenceKeyShared,
    /// The sealed identity is missing.
    IdentityMissing,
    /// The identity is not the one the parties list names for this party.
    IdentityMismatch,
    /// The vault is missing.
    VaultMissing,
    /// The sealed share is missing.
    ShareMissing,
    /// A share, an identity or public data was given to a protocol that takes none.
    InputUnexpected,
    /// The share is of another protocol family, key, party, epoch or threshold than the configuration says.
    ShareMismatch,
    /// The share or the public data inside the sealed blob is not valid.
    ShareInvalid,
    /// An observer got no public data of the key.
    KeyPublicMissing,
    /// The public data of the key is not valid, or not of this key, epoch and threshold.
    KeyPublicInvalid,
    /// The payload does not say what the protocol needs to know.
    PayloadInvalid,
    /// The share holds nothing for one of the signers, which was excluded after a failed check.
    PeerExcluded,
    /// The derivation path is too long, or has a hardened step.
    DerivationPathInvalid,
    /// No presignature is to be made, or more than one session makes.
    PresignatureCount,
    /// The presignature's id is not 32 bytes.
    PresignatureIdLength,
    /// The sealed presignature is missing.
    PresignatureMissing,
    /// The vault has no presignature of this id: it was used, dropped, or made by another vault.
    PresignatureUnknown,
    /// The vault has as many presignatures as it can have.
    PresignaturesFull,
    /// The terms of a session of issuers are missing.
    GroupTermsMissing,
    /// The parties of a group, what they have signed, or the group itself is not valid, or the session is not of them.
    GroupTermsInvalid,
    /// The vault has no counted run of a join for this session: it has begun, was dropped, or was counted elsewhere.
    RunUnknown,
    /// The vault has no set-up with this peer under this key, or one whose check has failed.
    PairUnknown,
    /// A message of an exact signature takes another number of blocks than was said, or more than are allowed.
    MessageBlocks,
    /// The recorded nonce point is not 32 bytes.
    NonceLength,
    /// The recorded nonce point is another than that which was opened: the pair's set-up has ended.
    OtherNonce,
    /// The dealers are fewer than the old threshold, or dealers and receivers together are not the parties.
    RolesInvalid,
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SetupError::UnknownProtocol => "unknown protocol",
            SetupError::SessionIdLength => "session_id is not 32 bytes",
            SetupError::PartyIdRange => "a party id is not within 1..65535",
            SetupError::PartiesNotAscending => "party ids are not strictly ascending",
            SetupError::PartyCount => "the number of parties is not within 1..20",
            SetupError::ThresholdRange => "threshold is not within 1..number of parties",
            SetupError::SigningSetTooSmall => "fewer signers than the threshold",
            SetupError::SigningSetNotOfKey => "a signer holds no share of the key",
            SetupError::SelfNotInParties => "self is not among the parties",
            SetupError::ObserverNotAllowed => "an observer cannot run this protocol",
            SetupError::KeyIdLength => "key_id is empty or too long",
            SetupError::EpochRange => "epoch is not possible here",
            SetupError::PayloadLength => "payload has a length that the protocol does not allow",
            SetupError::EvidenceKeyInvalid => "an evidence key is not valid, or not that of its party",
            SetupError::EvidenceKeyShared => "two parties have the same evidence key",
            SetupError::IdentityMissing => "sealed identity is missing",
            SetupError::IdentityMismatch => "identity does not match the evidence key of self",
            SetupError::VaultMissing => "vault is missing",
            SetupError::ShareMissing => "sealed share is missing",
            SetupError::InputUnexpected => "an input was given that the protocol does not take",
            SetupError::ShareMismatch => "the share is of another protocol, key, party, epoch or threshold",
            SetupError::ShareInvalid => "the share is not valid",
            SetupError::KeyPublicMissing => "key_public is missing",
            SetupError::KeyPublicInvalid => "key_public is not valid for this key, epoch and threshold",
            SetupError::PayloadInvalid => "payload does not say what the protocol needs",
            SetupError::PeerExcluded => "a signer is excluded by this party's share",
            SetupError::DerivationPathInvalid => "derivation_path is too long or has a hardened step",
            SetupError::PresignatureCount => "presignature_count is not one that a session can make",
            SetupError::PresignatureIdLength => "presignature_id is not 32 bytes",
            SetupError::PresignatureMissing => "sealed presignature is missing",
            SetupError::PresignatureUnknown => {
                "the vault has no such presignature, or had it and it was used"
            }
            SetupError::RolesInvalid => "dealers and receivers do not fit the parties and the old threshold",
            SetupError::PresignaturesFull => "the vault has as many presignatures as it can have",
            SetupError::GroupTermsMissing => "the terms of the group are missing",
            SetupError::GroupTermsInvalid => {
                "the terms of the group are not valid, or the session is not of them"
            }
            SetupError::RunUnknown => "the vault has no counted run of the join for this session",
            SetupError::PairUnknown => "the vault has no set-up with this peer, or its check has failed",
            SetupError::MessageBlocks => "message_blocks is not the number of blocks of a message",
            SetupError::NonceLength => "recorded_nonce is not 32 bytes",
            SetupError::OtherNonce => "the recorded nonce is another than the opened one",
        })
    }
}

impl std::error::Error for SetupError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_stable_and_without_gaps() {
        for (position, cause) in AbortCause::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(cause.number()), position + 1);
            assert_eq!(AbortCause::from_number(cause.number()), Some(cause));
        }
        for (position, reject) in Reject::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(reject.number()), position + 1);
        }
        assert_eq!(AbortCause::from_number(0), None);
        assert_eq!(AbortCause::from_number(29), None);
    }
}
