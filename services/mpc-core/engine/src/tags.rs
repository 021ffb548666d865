//! Domain separators of the engine. Protocols keep theirs in their own file; a test there checks that all differ.

/// Says what a hash or a signature is about, with a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag(&'static str);

impl Tag {
    /// Starts with `coterie/` and ends with a version.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// The bytes that enter the hash.
    pub fn as_bytes(self) -> &'static [u8] {
        self.0.as_bytes()
    }
}

/// The terms on which the parties of a session agreed before its first message.
pub const SESSION: Tag = Tag::new("coterie/session/1");
/// Signature of an envelope that may have to serve as evidence.
pub const ENVELOPE_SIGNATURE: Tag = Tag::new("coterie/envelope-signature/2");
/// Signature of a statement that the service makes in its party's name.
pub const STATEMENT_SIGNATURE: Tag = Tag::new("coterie/statement-signature/1");
/// One broadcast, as the echo digest names it.
pub const ENVELOPE_DIGEST: Tag = Tag::new("coterie/envelope-digest/2");
/// All broadcasts seen before a round.
pub const ECHO: Tag = Tag::new("coterie/echo/1");
/// Randomness mixed with a secret and the session.
pub const HEDGED_RANDOMNESS: Tag = Tag::new("coterie/hedged-randomness/1");
/// The nonce that marks the envelopes of one run of a session.
pub const RUN_NONCE: Tag = Tag::new("coterie/run-nonce/1");
/// Encryption of a private envelope to its recipient, and its randomness.
pub const PRIVATE_ENVELOPE: Tag = Tag::new("coterie/private-envelope/1");
/// Commitment to the key of a private envelope.
pub const PRIVATE_ENVELOPE_COMMITMENT: Tag = Tag::new("coterie/private-envelope-commitment/1");
/// Encryption of a secret to a party outside of any session.
pub const HANDOVER: Tag = Tag::new("coterie/handover/1");
/// Commitment to the key of such a secret.
pub const HANDOVER_COMMITMENT: Tag = Tag::new("coterie/handover-commitment/1");

/// All of the above.
pub const ALL: [Tag; 11] = [
    SESSION,
    ENVELOPE_SIGNATURE,
    STATEMENT_SIGNATURE,
    ENVELOPE_DIGEST,
    ECHO,
    HEDGED_RANDOMNESS,
    RUN_NONCE,
    PRIVATE_ENVELOPE,
    PRIVATE_ENVELOPE_COMMITMENT,
    HANDOVER,
    HANDOVER_COMMITMENT,
];
