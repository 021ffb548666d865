//! Domain separators of threshold ECDSA.

use engine::Tag;

/// Set-up of the transfers of a pair.
pub const TRANSFER_SETUP: Tag = Tag::new("coterie/ecdsa/keygen/transfer-setup/2");
/// The seed from which a pair draws shares of zero.
pub const ZERO_SEED: Tag = Tag::new("coterie/ecdsa/keygen/zero-seed/2");
/// The nonce share, drawn from randomness and the signing share.
pub const NONCE: Tag = Tag::new("coterie/ecdsa/presign/nonce/1");
/// The mask share, drawn likewise.
pub const MASK: Tag = Tag::new("coterie/ecdsa/presign/mask/1");
/// The salt of the commitment to a nonce point, drawn likewise.
pub const SALT: Tag = Tag::new("coterie/ecdsa/presign/salt/1");
/// Commitment to a nonce point.
pub const NONCE_COMMITMENT: Tag = Tag::new("coterie/ecdsa/presign/nonce-commitment/1");
/// All commitments of a session, as each party saw them.
pub const COMMITMENTS: Tag = Tag::new("coterie/ecdsa/presign/commitments/1");
/// One multiplication of one pair.
pub const MULTIPLICATION: Tag = Tag::new("coterie/ecdsa/presign/multiplication/1");
/// A share of zero.
pub const ZERO_SHARE: Tag = Tag::new("coterie/ecdsa/presign/zero-share/1");
/// The shift that makes the nonce of a presignature depend on what is signed.
pub const NONCE_SHIFT: Tag = Tag::new("coterie/ecdsa/sign/nonce-shift/1");

/// All of the above.
pub const ALL: [Tag; 10] = [
    TRANSFER_SETUP,
    ZERO_SEED,
    NONCE,
    MASK,
    SALT,
    NONCE_COMMITMENT,
    COMMITMENTS,
    MULTIPLICATION,
    ZERO_SHARE,
    NONCE_SHIFT,
];
