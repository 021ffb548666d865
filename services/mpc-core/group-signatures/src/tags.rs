//! Domain separators of group signatures.

use engine::Tag;

/// Everything public about a group.
pub const GROUP: Tag = Tag::new("coterie/wbb/group/1");
/// The openers' signatures of their key.
pub const OPENER_ATTESTATION: Tag = Tag::new("coterie/wbb/opener-attestation/1");
/// The issuing key.
pub const ISSUING_KEY: Tag = Tag::new("coterie/wbb/issuing-key/1");
/// Proof of knowledge of the issuing key.
pub const ISSUING_KEY_PROOF: Tag = Tag::new("coterie/wbb/issuing-key-proof/1");
/// Proof of knowledge of the applicant's half of a member's secret.
pub const APPLICATION_PROOF: Tag = Tag::new("coterie/wbb/application-proof/1");
/// An identity's signature of an applicant's point.
pub const APPLICATION_SIGNATURE: Tag = Tag::new("coterie/wbb/application-signature/1");
/// An identity's signature of its point as a member.
pub const ACCEPTANCE_SIGNATURE: Tag = Tag::new("coterie/wbb/acceptance-signature/1");
/// An identity's order of one run of the join.
pub const RUN_SIGNATURE: Tag = Tag::new("coterie/wbb/run-signature/1");
/// The issuer's part of a member's secret.
pub const ISSUER_PART: Tag = Tag::new("coterie/wbb/issuer-part/1");
/// The agreed terms of a join.
pub const JOIN_TERMS: Tag = Tag::new("coterie/wbb/join-terms/1");
/// Challenge of an approval.
pub const APPROVAL: Tag = Tag::new("coterie/wbb/approval/1");
/// Everything that a member draws for an approval.
pub const APPROVAL_RANDOMNESS: Tag = Tag::new("coterie/wbb/approval-randomness/1");
/// Challenge of a share of an opening.
pub const OPENING_PROOF: Tag = Tag::new("coterie/wbb/opening-proof/1");

/// Nonce of a proof of knowledge.
pub const KNOWLEDGE_NONCE: Tag = Tag::new("coterie/wbb/knowledge-nonce/1");
/// The applicant's half of a member's secret.
pub const APPLICANT_HALF: Tag = Tag::new("coterie/wbb/applicant-half/1");
/// Nonce of a share of an opening.
pub const OPENING_NONCE: Tag = Tag::new("coterie/wbb/opening-nonce/1");
/// Weights with which approvals are counted together.
pub const BATCH: Tag = Tag::new("coterie/wbb/batch/1");

/// All of the above.
pub const ALL: [Tag; 17] = [
    GROUP,
    OPENER_ATTESTATION,
    ISSUING_KEY,
    ISSUING_KEY_PROOF,
    APPLICATION_PROOF,
    APPLICATION_SIGNATURE,
    ACCEPTANCE_SIGNATURE,
    RUN_SIGNATURE,
    ISSUER_PART,
    JOIN_TERMS,
    APPROVAL,
    APPROVAL_RANDOMNESS,
    OPENING_PROOF,
    KNOWLEDGE_NONCE,
    APPLICANT_HALF,
    OPENING_NONCE,
    BATCH,
];

#[cfg(test)]
mod tests {
    #[test]
    fn tags_differ_and_none_begins_another() {
        let schemes = protocols::ecdsa::tags::ALL.into_iter().chain(protocols::frost::tags::ALL);
        let protocols = protocols::tags::ALL.into_iter().chain(protocols::dealing::tags::ALL).chain(schemes);
        let others = engine::tags::ALL.into_iter().chain(protocols);
        let all: Vec<_> = others.chain(super::ALL).collect();
        for (position, tag) in all.iter().enumerate() {
            for other in &all[position + 1..] {
                assert!(!tag.as_bytes().starts_with(other.as_bytes()), "{tag:?} {other:?}");
                assert!(!other.as_bytes().starts_with(tag.as_bytes()), "{tag:?} {other:?}");
            }
        }
    }
}
