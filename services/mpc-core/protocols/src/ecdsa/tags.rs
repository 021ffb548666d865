//! Domain separators of threshold ECDSA.

use engine::Tag;

/// Commitment to a party's opening in key generation.
pub const KEYGEN_COMMITMENT: Tag = Tag::new("coterie/ecdsa/keygen/commitment/1");
/// Proof of knowledge of the constant coefficient.
pub const COEFFICIENT_PROOF: Tag = Tag::new("coterie/ecdsa/keygen/coefficient-proof/1");
/// Proof of knowledge of the signing share.
pub const SHARE_PROOF: Tag = Tag::new("coterie/ecdsa/keygen/share-proof/1");
/// The joint chain code.
pub const CHAIN_CODE: Tag = Tag::new("coterie/ecdsa/keygen/chain-code/1");
/// Set-up of the transfers of a pair.
pub const TRANSFER_SETUP: Tag = Tag::new("coterie/ecdsa/keygen/transfer-setup/1");
/// The seed from which a pair draws shares of zero.
pub const ZERO_SEED: Tag = Tag::new("coterie/ecdsa/keygen/zero-seed/1");
/// The nonce share, drawn from randomness and the signing share.
pub const NONCE: Tag = Tag::new("coterie/ecdsa/presign/nonce/1");
/// The mask share, drawn likewise.
pub const MASK: Tag = Tag::new("coterie/ecdsa/presign/mask/1");
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
pub const ALL: [Tag; 13] = [
    KEYGEN_COMMITMENT,
    COEFFICIENT_PROOF,
    SHARE_PROOF,
    CHAIN_CODE,
    TRANSFER_SETUP,
    ZERO_SEED,
    NONCE,
    MASK,
    NONCE_COMMITMENT,
    COMMITMENTS,
    MULTIPLICATION,
    ZERO_SHARE,
    NONCE_SHIFT,
];

#[cfg(test)]
mod tests {
    #[test]
    fn tags_differ_and_none_begins_another() {
        let all: Vec<_> = engine::tags::ALL.into_iter().chain(crate::tags::ALL).chain(super::ALL).collect();
        for (position, tag) in all.iter().enumerate() {
            for other in &all[position + 1..] {
                assert!(!tag.as_bytes().starts_with(other.as_bytes()), "{tag:?} {other:?}");
                assert!(!other.as_bytes().starts_with(tag.as_bytes()), "{tag:?} {other:?}");
            }
        }
    }
}
