//! Domain separators of FROST. Both suites share them: the session's digest names the protocol.

use engine::Tag;

/// Commitment to a party's opening in key generation.
pub const KEYGEN_COMMITMENT: Tag = Tag::new("coterie/frost/keygen/commitment/1");
/// Coefficients of the secret polynomial, drawn from randomness and, in a refresh, the signing share.
pub const COEFFICIENT: Tag = Tag::new("coterie/frost/keygen/coefficient/1");
/// Proof of knowledge of the constant coefficient.
pub const COEFFICIENT_PROOF: Tag = Tag::new("coterie/frost/keygen/coefficient-proof/1");
/// Proof of knowledge of the signing share.
pub const SHARE_PROOF: Tag = Tag::new("coterie/frost/keygen/share-proof/1");
/// All openings together.
pub const OPENINGS: Tag = Tag::new("coterie/frost/keygen/openings/1");
/// The joint chain code.
pub const CHAIN_CODE: Tag = Tag::new("coterie/frost/keygen/chain-code/1");
/// The nonces, drawn from randomness, the signing share and the session.
pub const NONCE: Tag = Tag::new("coterie/frost/sign/nonce/1");
/// All nonce commitments, and what they may be used for.
pub const COMMITMENTS: Tag = Tag::new("coterie/frost/sign/commitments/1");

/// All of the above.
pub const ALL: [Tag; 8] = [
    KEYGEN_COMMITMENT,
    COEFFICIENT,
    COEFFICIENT_PROOF,
    SHARE_PROOF,
    OPENINGS,
    CHAIN_CODE,
    NONCE,
    COMMITMENTS,
];

#[cfg(test)]
mod tests {
    #[test]
    fn tags_differ_and_none_begins_another() {
        let protocols = crate::tags::ALL.into_iter().chain(crate::ecdsa::tags::ALL);
        let all: Vec<_> = engine::tags::ALL.into_iter().chain(protocols).chain(super::ALL).collect();
        for (position, tag) in all.iter().enumerate() {
            for other in &all[position + 1..] {
                assert!(!tag.as_bytes().starts_with(other.as_bytes()), "{tag:?} {other:?}");
                assert!(!other.as_bytes().starts_with(tag.as_bytes()), "{tag:?} {other:?}");
            }
        }
    }
}
