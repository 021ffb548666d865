//! Domain separators of dealing. All schemes share them: the session's digest names the protocol.

use engine::Tag;

/// Coefficients of the secret polynomial.
pub const POLYNOMIAL: Tag = Tag::new("coterie/dealing/polynomial/2");
/// A party's contribution to the joint randomness.
pub const CONTRIBUTION: Tag = Tag::new("coterie/dealing/contribution/2");
/// The randomness that a party draws for the exchanges of its pairs.
pub const EXCHANGE: Tag = Tag::new("coterie/dealing/exchange/2");
/// The nonce of a proof.
pub const PROOF_NONCE: Tag = Tag::new("coterie/dealing/proof-nonce/2");
/// Commitment to a party's opening.
pub const COMMITMENT: Tag = Tag::new("coterie/dealing/commitment/2");
/// Statement: the prover knows the constant term of its polynomial.
pub const CONSTANT_TERM: Tag = Tag::new("coterie/dealing/constant-term/2");
/// Statement: the prover knows its signing share.
pub const SIGNING_SHARE: Tag = Tag::new("coterie/dealing/signing-share/2");
/// Challenge of a proof.
pub const CHALLENGE: Tag = Tag::new("coterie/dealing/challenge/2");
/// All openings together.
pub const OPENINGS: Tag = Tag::new("coterie/dealing/openings/2");
/// The joint chain code.
pub const CHAIN_CODE: Tag = Tag::new("coterie/dealing/chain-code/2");

/// The public data of a key, as a session of signing names them.
pub const KEY_PUBLIC: Tag = Tag::new("coterie/dealing/key-public/2");

/// All of the above.
pub const ALL: [Tag; 11] = [
    POLYNOMIAL,
    CONTRIBUTION,
    EXCHANGE,
    PROOF_NONCE,
    COMMITMENT,
    CONSTANT_TERM,
    SIGNING_SHARE,
    CHALLENGE,
    OPENINGS,
    CHAIN_CODE,
    KEY_PUBLIC,
];
