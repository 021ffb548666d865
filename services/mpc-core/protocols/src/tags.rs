//! Domain separators of all protocols, in one place so that a test can tell that they differ.

use engine::Tag;

/// Keygen round 1: commitment to an opening.
pub const BLS_COMMITMENT: Tag = Tag::new("coterie/bls/keygen/commitment/1");
/// Keygen: coefficients of the secret polynomial.
pub const BLS_COEFFICIENT: Tag = Tag::new("coterie/bls/keygen/coefficient/1");
/// Keygen: weights with which many equations are checked at once.
pub const BLS_BATCH_WEIGHTS: Tag = Tag::new("coterie/bls/keygen/batch-weights/1");
/// Keygen: a party's contribution to the joint randomness.
pub const BLS_CONTRIBUTION: Tag = Tag::new("coterie/bls/keygen/contribution/1");
/// Keygen round 2: proof of knowledge of the constant term.
pub const BLS_CONSTANT_TERM_PROOF: Tag = Tag::new("coterie/bls/keygen/constant-term-proof/1");
/// Keygen: all openings together.
pub const BLS_OPENINGS: Tag = Tag::new("coterie/bls/keygen/openings/1");
/// Keygen round 4: proof of knowledge of the signing share.
pub const BLS_SIGNING_SHARE_PROOF: Tag = Tag::new("coterie/bls/keygen/signing-share-proof/1");

/// All of the above.
pub const ALL: [Tag; 7] = [
    BLS_COMMITMENT,
    BLS_BATCH_WEIGHTS,
    BLS_COEFFICIENT,
    BLS_CONTRIBUTION,
    BLS_CONSTANT_TERM_PROOF,
    BLS_OPENINGS,
    BLS_SIGNING_SHARE_PROOF,
];

#[cfg(test)]
mod tests {
    #[test]
    fn tags_differ_and_none_begins_another() {
        let schemes = crate::ecdsa::tags::ALL.into_iter().chain(crate::frost::tags::ALL);
        let protocols = super::ALL.into_iter().chain(crate::dealing::tags::ALL).chain(schemes);
        let all: Vec<_> = engine::tags::ALL.into_iter().chain(protocols).collect();
        for (position, tag) in all.iter().enumerate() {
            for other in &all[position + 1..] {
                assert!(!tag.as_bytes().starts_with(other.as_bytes()), "{tag:?} {other:?}");
                assert!(!other.as_bytes().starts_with(tag.as_bytes()), "{tag:?} {other:?}");
            }
        }
    }
}
