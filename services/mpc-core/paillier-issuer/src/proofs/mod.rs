//! The two proofs of a join, with the lengths and the challenge that they share.
//!
//! Every secret is a number from 0 up to a known length, and its mask is uniform and [`SLACK_BITS`] longer. A
//! response is accepted below the mask's bound. So an honest proof hides its secret up to 2^-128 and fails with
//! chance 2^-128, and an accepted one shows a secret whose absolute value is below the mask's bound.

mod combination;
mod key;

pub(crate) use combination::{
    CombinationProof, CombinationStatement, CombinationWitness, MULTIPLE_BITS, combine_with,
};
pub(crate) use key::{KeyProof, KeyStatement, KeyWitness};

use engine::Transcript;
use engine::wire::Reader;

use crate::number::{Calc, Number};
use crate::setup::{HIDING_BITS, SetUpError, read_number};

/// Bits of a challenge. All factors of acceptable moduli, and of the orders of their squares, are longer.
pub(crate) const CHALLENGE_BITS: usize = 128;
/// How much longer than its secret a mask is.
pub(crate) const SLACK_BITS: usize = CHALLENGE_BITS + HIDING_BITS;
/// Bits of a scalar.
pub(crate) const SCALAR_BITS: usize = 255;

/// The challenge that a finished transcript leads to.
pub(crate) fn challenge(transcript: Transcript) -> Calc<Number> {
    let digest = transcript.digest();
    let (head, _) = digest.split_at(CHALLENGE_BITS / 8);
    Number::from_bytes(head)
}

/// Bits of the randomness of a commitment modulo a number of `bits` bits.
pub(crate) const fn blinding_bits(bits: usize) -> usize {
    bits + HIDING_BITS
}

/// Bytes of the response for a commitment's randomness.
pub(crate) const fn blinding_response_bytes(bits: usize) -> usize {
    response_bytes(blinding_bits(bits))
}

/// Bytes of a response for a secret of `bits` bits, with room for its rare carry.
pub(crate) const fn response_bytes(bits: usize) -> usize {
    (bits + SLACK_BITS + 1).div_ceil(8)
}

/// mask + challenge * secret.
pub(crate) fn respond(mask: &Number, challenge: &Number, secret: &Number) -> Calc<Number> {
    mask.plus(&challenge.times(secret)?)
}

/// A response that shows a secret to be in its range; `None` if it does not.
pub(crate) fn in_range(response: &Number, bits: usize) -> bool {
    response.bits() <= bits + SLACK_BITS
}

/// A number below `modulus`.
pub(crate) fn read_below(
    reader: &mut Reader<'_>,
    modulus: &Number,
    length: usize,
) -> Result<Number, SetUpError> {
    let number = read_number(reader, length)?;
    if number < *modulus { Ok(number) } else { Err(SetUpError::Malformed) }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use engine::Tag;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    use crate::setup::{ModulusBits, SecretParameters};

    pub(super) const TAG: Tag = Tag::new("coterie/test/1");

    pub(super) fn rng(seed: u64) -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(seed)
    }

    /// The prover's and the verifier's parameters, long enough for every range.
    pub(super) fn parameters() -> (&'static SecretParameters, &'static SecretParameters) {
        static PARAMETERS: OnceLock<[SecretParameters; 2]> = OnceLock::new();
        let [first, second] = PARAMETERS.get_or_init(|| {
            [1, 2].map(|seed| SecretParameters::generate(ModulusBits(1536), b"test", &mut rng(seed)).unwrap())
        });
        (first, second)
    }
}
