//! Domain separators of dealing. All schemes share them: the session's digest names the protocol.

use engine::Tag;

/// Commitment to a party's opening.
pub const COMMITMENT: Tag = Tag::new("coterie/frost/keygen/commitment/1");
/// Coefficients of the secret polynomial.
pub const COEFFICIENT: Tag = Tag::new("coterie/frost/keygen/coefficient/1");
/// Proof of knowledge of the constant coefficient.
pub const COEFFICIENT_PROOF: Tag = Tag::new("coterie/frost/keygen/coefficient-proof/1");
/// Proof of knowledge of the signing share.
pub const SHARE_PROOF: Tag = Tag::new("coterie/frost/keygen/share-proof/1");
/// All openings together.
pub const OPENINGS: Tag = Tag::new("coterie/frost/keygen/openings/1");
/// The joint chain code.
pub const CHAIN_CODE: Tag = Tag::new("coterie/frost/keygen/chain-code/1");
/// What a party draws for the exchanges of its pairs.
pub const COMPANION: Tag = Tag::new("coterie/frost/keygen/companion/1");

/// All of the above.
pub const ALL: [Tag; 7] =
    [COMMITMENT, COEFFICIENT, COEFFICIENT_PROOF, SHARE_PROOF, OPENINGS, CHAIN_CODE, COMPANION];
