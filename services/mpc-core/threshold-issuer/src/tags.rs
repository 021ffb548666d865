//! Domain separators of this crate.

use engine::Tag;

/// Multiplication: the public vector.
pub const GADGET: Tag = Tag::new("coterie/threshold-issuer/gadget/1");
/// Multiplication: everything that both sides have sent before the check.
pub const MULTIPLICATION: Tag = Tag::new("coterie/threshold-issuer/multiplication/1");
/// Multiplication: the hash of the check values.
pub const MULTIPLICATION_CHECK: Tag = Tag::new("coterie/threshold-issuer/multiplication-check/1");
/// Multiplication: where the pads of one run begin.
pub const PADS: Tag = Tag::new("coterie/threshold-issuer/pads/1");
/// Publication: commitment of an issuer to its nonce.
pub const NONCE_COMMITMENT: Tag = Tag::new("coterie/threshold-issuer/nonce-commitment/1");
/// Publication: everything that the issuers have opened.
pub const OPENINGS: Tag = Tag::new("coterie/threshold-issuer/openings/1");
/// Publication: an issuer's signature of the group and of who shares its key.
pub const ATTESTATION: Tag = Tag::new("coterie/threshold-issuer/attestation/1");
/// Registration: the element from which the issuers' part of a member's secret follows.
pub const PART: Tag = Tag::new("coterie/threshold-issuer/part/1");
/// Registration: an issuer's share of it.
pub const PART_PROOF: Tag = Tag::new("coterie/threshold-issuer/part-proof/1");
/// Registration: the issuers' part as a number.
pub const PART_SCALAR: Tag = Tag::new("coterie/threshold-issuer/part-scalar/1");
/// Join: the public data of the issuers.
pub const ISSUERS: Tag = Tag::new("coterie/threshold-issuer/issuers/1");
/// Join: the set-up of a pair.
pub const PAIR: Tag = Tag::new("coterie/threshold-issuer/pair/1");
/// Join: the seed of a pair.
pub const SEED: Tag = Tag::new("coterie/threshold-issuer/seed/1");
/// Join: a share of zero.
pub const ZERO_SHARE: Tag = Tag::new("coterie/threshold-issuer/zero-share/1");
/// Join: one multiplication of one pair.
pub const JOIN_MULTIPLICATION: Tag = Tag::new("coterie/threshold-issuer/join-multiplication/1");

/// Publication: the nonce of an issuer.
pub const PUBLICATION_RANDOMNESS: Tag = Tag::new("coterie/threshold-issuer/publication-randomness/1");
/// Registration: nonce of the proof of a share.
pub const PART_RANDOMNESS: Tag = Tag::new("coterie/threshold-issuer/part-randomness/1");
/// Join: set-ups of pairs and halves of their seeds.
pub const PAIR_RANDOMNESS: Tag = Tag::new("coterie/threshold-issuer/pair-randomness/1");
/// Join: mask and factors of a party.
pub const SAMPLE_RANDOMNESS: Tag = Tag::new("coterie/threshold-issuer/sample-randomness/1");
/// Join: answers of a party in its multiplications.
pub const ANSWER_RANDOMNESS: Tag = Tag::new("coterie/threshold-issuer/answer-randomness/1");

/// All of the above.
pub const ALL: [Tag; 20] = [
    GADGET,
    MULTIPLICATION,
    MULTIPLICATION_CHECK,
    PADS,
    NONCE_COMMITMENT,
    OPENINGS,
    ATTESTATION,
    PART,
    PART_PROOF,
    PART_SCALAR,
    ISSUERS,
    PAIR,
    SEED,
    ZERO_SHARE,
    JOIN_MULTIPLICATION,
    PUBLICATION_RANDOMNESS,
    PART_RANDOMNESS,
    PAIR_RANDOMNESS,
    SAMPLE_RANDOMNESS,
    ANSWER_RANDOMNESS,
];

#[cfg(test)]
mod tests {
    #[test]
    fn tags_differ_and_none_begins_another() {
        let others = engine::tags::ALL.into_iter().chain(group_signatures::tags::ALL);
        let others = others.chain(protocols::dealing::tags::ALL).chain(protocols::tags::ALL);
        let all: Vec<_> = others.chain(super::ALL).collect();
        for (position, tag) in all.iter().enumerate() {
            for other in &all[position + 1..] {
                assert!(!tag.as_bytes().starts_with(other.as_bytes()), "{tag:?} {other:?}");
                assert!(!other.as_bytes().starts_with(tag.as_bytes()), "{tag:?} {other:?}");
            }
        }
    }
}
