//! Domain separators of this crate.

use engine::Tag;

/// Set-up: challenges of the proof that a modulus is well formed.
pub const MODULUS_PROOF: Tag = Tag::new("coterie/paillier/modulus-proof/1");
/// Set-up: challenge of the proof that one base is a power of the other.
pub const BASES_PROOF: Tag = Tag::new("coterie/paillier/bases-proof/1");
/// Set-up: digest of checked parameters.
pub const PARAMETERS: Tag = Tag::new("coterie/paillier/parameters/1");
/// Numbers of any length from a digest.
pub const EXPANSION: Tag = Tag::new("coterie/paillier/expansion/1");
/// Pair: challenge of the proof that a modulus has no small factor.
pub const FACTOR_PROOF: Tag = Tag::new("coterie/paillier/factor-proof/1");
/// Join round 1: challenge of the proof about the encrypted issuing key.
pub const KEY_PROOF: Tag = Tag::new("coterie/paillier/join/key-proof/1");
/// Join round 2: challenge of the proof about the combined ciphertext.
pub const COMBINATION_PROOF: Tag = Tag::new("coterie/paillier/join/combination-proof/1");

/// Set-up: primes, bases and masks.
pub const SETUP_RANDOMNESS: Tag = Tag::new("coterie/paillier/setup-randomness/1");
/// Pair: masks of the proof about the factors.
pub const FACTOR_RANDOMNESS: Tag = Tag::new("coterie/paillier/factor-randomness/1");
/// Join: everything that the manager draws.
pub const MANAGER_RANDOMNESS: Tag = Tag::new("coterie/paillier/join/manager-randomness/1");
/// Join: everything that the member draws.
pub const MEMBER_RANDOMNESS: Tag = Tag::new("coterie/paillier/join/member-randomness/1");

/// All of the above.
pub const ALL: [Tag; 11] = [
    MODULUS_PROOF,
    BASES_PROOF,
    PARAMETERS,
    EXPANSION,
    FACTOR_PROOF,
    KEY_PROOF,
    COMBINATION_PROOF,
    SETUP_RANDOMNESS,
    FACTOR_RANDOMNESS,
    MANAGER_RANDOMNESS,
    MEMBER_RANDOMNESS,
];

#[cfg(test)]
mod tests {
    #[test]
    fn tags_differ_and_none_begins_another() {
        let others = engine::tags::ALL.into_iter().chain(group_signatures::tags::ALL);
        let all: Vec<_> = others.chain(super::ALL).collect();
        for (position, tag) in all.iter().enumerate() {
            for other in &all[position + 1..] {
                assert!(!tag.as_bytes().starts_with(other.as_bytes()), "{tag:?} {other:?}");
                assert!(!other.as_bytes().starts_with(tag.as_bytes()), "{tag:?} {other:?}");
            }
        }
    }
}
