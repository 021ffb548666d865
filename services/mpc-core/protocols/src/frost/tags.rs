//! Domain separators of FROST. Both suites share them: the session's digest names the protocol.

use engine::Tag;

/// The nonces, drawn from randomness, the signing share and the session.
pub const NONCE: Tag = Tag::new("coterie/frost/sign/nonce/1");
/// All nonce commitments, and what they may be used for.
pub const COMMITMENTS: Tag = Tag::new("coterie/frost/sign/commitments/1");

/// All of the above.
pub const ALL: [Tag; 2] = [NONCE, COMMITMENTS];
