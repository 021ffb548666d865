//! `Pi_aff-g` (eprint 2021/060, figure 15) for one combination: e2 = e1^x (1 + n)^y rho^n under the verifier's
//! modulus, with x and y in range, and x Y = y G on the curve for the prover's registered point Y. So y is x times
//! the logarithm of Y.

use engine::Transcript;
use engine::wire::{Reader, Writer};
use primitives::Secret;
use primitives::bls12_381::{G1, G1_COMPRESSED_BYTES, Scalar};
use rand_core::CryptoRng;

use super::{
    SCALAR_BITS, SLACK_BITS, blinding_bits, blinding_response_bytes, challenge, in_range, read_below,
    respond, response_bytes,
};
use crate::number::{Calc, Failure, Number};
use crate::setup::{HIDING_BITS, Parameters, SecretParameters, SetUpError, read_number};

/// Bits of y: those of a multiple of the group order that hides x (a + sk_i) for the largest a that
/// [`super::KeyProof`] admits.
pub(crate) const COMBINATION_BITS: usize = SCALAR_BITS + MULTIPLE_BITS + 1;
/// Bits of the multiple, r2: x (a + sk_i) is below q 2^(`SCALAR_BITS` + `SLACK_BITS` + 1).
pub(crate) const MULTIPLE_BITS: usize = HIDING_BITS + SCALAR_BITS + SLACK_BITS + 1;

/// The statement of a proof.
pub(crate) struct CombinationStatement<'a> {
    /// The verifier's, whose modulus ciphertexts and commitments are under.
    pub(crate) verifier: &'a Parameters,
    /// e1.
    pub(crate) received: &'a Number,
    /// e2.
    pub(crate) combined: &'a Number,
    /// Y.
    pub(crate) point: &'a G1,
}

/// The prover's secrets.
pub(crate) struct CombinationWitness<'a> {
    pub(crate) factor: &'a Number,
    pub(crate) summand: &'a Number,
    pub(crate) randomness: &'a Number,
}

pub(crate) struct CombinationProof {
    first: First,
    /// alpha + e x.
    factor_response: Number,
    /// beta + e y.
    summand_response: Number,
    /// gamma + e m.
    factor_blinding_response: Number,
    /// delta + e mu.
    summand_blinding_response: Number,
    /// r rho^e.
    randomness_response: Number,
}

/// The first message of the proof, from which the challenge is drawn.
struct First {
    /// s^x t^m and s^y t^mu.
    factor_commitment: Number,
    summand_commitment: Number,
    /// e1^alpha (1 + n)^beta r^n.
    masked_ciphertext: Number,
    /// alpha Y - beta G.
    masked_point: G1,
    /// s^alpha t^gamma and s^beta t^delta.
    masked_factor_commitment: Number,
    masked_summand_commitment: Number,
}

impl CombinationProof {
    pub(crate) fn prove(
        transcript: Transcript,
        statement: &CombinationStatement<'_>,
        witness: &CombinationWitness<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Calc<Self> {
        let theirs = &statement.verifier.modulus;
        let blinding = blinding_bits(theirs.bits());
        let alpha = Number::random_bits(SCALAR_BITS + SLACK_BITS, rng)?;
        let beta = Number::random_bits(COMBINATION_BITS + SLACK_BITS, rng)?;
        let m = Number::random_bits(blinding, rng)?;
        let mu = Number::random_bits(blinding, rng)?;
        let gamma = Number::random_bits(blinding + SLACK_BITS, rng)?;
        let delta = Number::random_bits(blinding + SLACK_BITS, rng)?;
        let r = theirs.random_unit(rng)?;
        let curve = |x: &Number, y: &Number| -> Calc<G1> {
            let (x, y) = (Secret::new(x.to_scalar()?), Secret::new(y.to_scalar()?));
            Ok(statement.point.times_secret(&x).plus(&G1::mul_generator(&y).negated()))
        };
        let first = First {
            factor_commitment: statement.verifier.commit(witness.factor, &m)?,
            summand_commitment: statement.verifier.commit(witness.summand, &mu)?,
            masked_ciphertext: combine_with(
                statement.verifier,
                (statement.received, SCALAR_BITS + SLACK_BITS),
                &alpha,
                &beta,
                &r,
            )?,
            masked_point: curve(&alpha, &beta)?,
            masked_factor_commitment: statement.verifier.commit(&alpha, &gamma)?,
            masked_summand_commitment: statement.verifier.commit(&beta, &delta)?,
        };
        let e = first.challenge(transcript, statement)?;
        Ok(Self {
            first,
            factor_response: respond(&alpha, &e, witness.factor)?,
            summand_response: respond(&beta, &e, witness.summand)?,
            factor_blinding_response: respond(&gamma, &e, &m)?,
            summand_blinding_response: respond(&delta, &e, &mu)?,
            randomness_response: r
                .times_modulo(&witness.randomness.power_public(&e, &theirs.n)?, &theirs.n)?,
        })
    }

    /// Whether it holds. The verifier knows the primes.
    pub(crate) fn verify(
        &self,
        transcript: Transcript,
        statement: &CombinationStatement<'_>,
        verifier: &SecretParameters,
    ) -> Calc<bool> {
        let ours = &statement.verifier.modulus;
        let (z1, z2) = (&self.factor_response, &self.summand_response);
        if !in_range(z1, SCALAR_BITS) || !in_range(z2, COMBINATION_BITS) {
            return Ok(false);
        }
        for commitment in [&self.first.factor_commitment, &self.first.summand_commitment] {
            if !commitment.is_unit(&ours.n)? {
                return Ok(false);
            }
        }
        let e = self.first.challenge(transcript, statement)?;
        let (x, y): (Scalar, Scalar) = (z1.to_scalar()?, z2.to_scalar()?);
        let shown = statement.point.times_public(&x);
        if shown != self.first.masked_point.plus(&G1::generator().times_public(&y)) {
            return Ok(false);
        }
        let opens = |z: &Number, blinding: &Number, commitment: &Number, masked: &Number| -> Calc<bool> {
            let right = commitment.power_public(&e, &ours.n)?.times_modulo(masked, &ours.n)?;
            Ok(verifier.commit(z, blinding)? == right)
        };
        let first = &self.first;
        if !opens(
            z1,
            &self.factor_blinding_response,
            &first.factor_commitment,
            &first.masked_factor_commitment,
        )? || !opens(
            z2,
            &self.summand_blinding_response,
            &first.summand_commitment,
            &first.masked_summand_commitment,
        )? {
            return Ok(false);
        }
        let power = verifier.factors.power_square(statement.received, z1)?;
        let mask = verifier.factors.nth_power(&self.randomness_response)?;
        let left = power.times_modulo(&ours.embed(z2)?, &ours.square)?.times_modulo(&mask, &ours.square)?;
        let right = ours.halves.power_public(statement.combined, &e)?;
        Ok(left == right.times_modulo(&self.first.masked_ciphertext, &ours.square)?)
    }

    /// Bytes of an encoding.
    pub(crate) const fn length(bits: usize) -> usize {
        let bytes = bits.div_ceil(8);
        7 * bytes
            + G1_COMPRESSED_BYTES
            + response_bytes(SCALAR_BITS)
            + response_bytes(COMBINATION_BITS)
            + 2 * blinding_response_bytes(bits)
    }

    pub(crate) fn encode(&self, verifier: &Parameters, writer: &mut Writer) -> Calc<()> {
        let ours = &verifier.modulus;
        let first = &self.first;
        writer.bytes(&first.factor_commitment.to_bytes(ours.bytes)?);
        writer.bytes(&first.summand_commitment.to_bytes(ours.bytes)?);
        writer.bytes(&first.masked_ciphertext.to_bytes(2 * ours.bytes)?);
        writer.bytes(&first.masked_point.to_compressed());
        writer.bytes(&first.masked_factor_commitment.to_bytes(ours.bytes)?);
        writer.bytes(&first.masked_summand_commitment.to_bytes(ours.bytes)?);
        writer.bytes(&self.factor_response.to_bytes(response_bytes(SCALAR_BITS))?);
        writer.bytes(&self.summand_response.to_bytes(response_bytes(COMBINATION_BITS))?);
        let blinding = blinding_response_bytes(ours.bits());
        writer.bytes(&self.factor_blinding_response.to_bytes(blinding)?);
        writer.bytes(&self.summand_blinding_response.to_bytes(blinding)?);
        writer.bytes(&self.randomness_response.to_bytes(ours.bytes)?);
        Ok(())
    }

    pub(crate) fn decode(reader: &mut Reader<'_>, verifier: &Parameters) -> Result<Self, SetUpError> {
        let ours = &verifier.modulus;
        let blinding = blinding_response_bytes(ours.bits());
        Ok(Self {
            first: First {
                factor_commitment: read_below(reader, &ours.n, ours.bytes)?,
                summand_commitment: read_below(reader, &ours.n, ours.bytes)?,
                masked_ciphertext: read_below(reader, &ours.square, 2 * ours.bytes)?,
                masked_point: G1::from_compressed(reader.array()?).ok_or(SetUpError::Malformed)?,
                masked_factor_commitment: read_below(reader, &ours.n, ours.bytes)?,
                masked_summand_commitment: read_below(reader, &ours.n, ours.bytes)?,
            },
            factor_response: read_number(reader, response_bytes(SCALAR_BITS))?,
            summand_response: read_number(reader, response_bytes(COMBINATION_BITS))?,
            factor_blinding_response: read_number(reader, blinding)?,
            summand_blinding_response: read_number(reader, blinding)?,
            randomness_response: read_below(reader, &ours.n, ours.bytes)?,
        })
    }
}

/// e1^x (1 + n)^y r^n, for secret x, y and r; x has at most the bits that stand beside e1.
pub(crate) fn combine_with(
    verifier: &Parameters,
    (received, bits): (&Number, usize),
    x: &Number,
    y: &Number,
    r: &Number,
) -> Calc<Number> {
    let theirs = &verifier.modulus;
    let mask = theirs.nth_power(r)?;
    theirs
        .halves
        .power(received, x, bits)?
        .times_modulo(&theirs.embed(y)?, &theirs.square)?
        .times_modulo(&mask, &theirs.square)
}

impl First {
    fn challenge(
        &self,
        mut transcript: Transcript,
        statement: &CombinationStatement<'_>,
    ) -> Result<Number, Failure> {
        let ours = &statement.verifier.modulus;
        transcript.append("verifier", statement.verifier.digest());
        transcript.append("received", &statement.received.to_bytes(2 * ours.bytes)?);
        transcript.append("combined", &statement.combined.to_bytes(2 * ours.bytes)?);
        transcript.append("point", &statement.point.to_compressed());
        transcript.append("factor commitment", &self.factor_commitment.to_bytes(ours.bytes)?);
        transcript.append("summand commitment", &self.summand_commitment.to_bytes(ours.bytes)?);
        transcript.append("masked ciphertext", &self.masked_ciphertext.to_bytes(2 * ours.bytes)?);
        transcript.append("masked point", &self.masked_point.to_compressed());
        transcript.append("masked factor", &self.masked_factor_commitment.to_bytes(ours.bytes)?);
        transcript.append("masked summand", &self.masked_summand_commitment.to_bytes(ours.bytes)?);
        challenge(transcript)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TAG, parameters, rng};
    use super::*;

    /// Proves a combination with multiples of the order added to x and y, and `moved` to y: with multiples alone every
    /// equation holds, and only the ranges tell.
    fn proof_of_shifted_combination(of_x: &Number, of_y: &Number, moved: u32) -> bool {
        let (_, verifier) = parameters();
        let mut rng = rng(2);
        let (secret, factor) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
        let order = Number::group_order().unwrap();
        let shift = |scalar: &Scalar, multiple: &Number| {
            Number::from_scalar(scalar).unwrap().plus(&multiple.times(&order).unwrap()).unwrap()
        };
        let x = shift(&factor, of_x);
        let y = shift(&factor.mul(&secret), of_y).plus(&Number::from_u32(moved).unwrap()).unwrap();
        let public = verifier.public();
        let (received, randomness) =
            (public.modulus.random_unit(&mut rng).unwrap(), public.modulus.random_unit(&mut rng).unwrap());
        let combined = combine_with(public, (&received, x.bits()), &x, &y, &randomness).unwrap();
        let point = G1::mul_generator(&Secret::new(secret));
        let statement = CombinationStatement {
            verifier: public,
            received: &received,
            combined: &combined,
            point: &point,
        };
        let witness = CombinationWitness { factor: &x, summand: &y, randomness: &randomness };
        let proof = CombinationProof::prove(Transcript::new(TAG), &statement, &witness, &mut rng).unwrap();
        proof.verify(Transcript::new(TAG), &statement, verifier).unwrap()
    }

    #[test]
    fn factor_and_summand_out_of_range_are_refused() {
        let none = Number::from_u32(0).unwrap();
        let large = |bits: usize| Number::power_of_two(bits).unwrap();
        assert!(proof_of_shifted_combination(&none, &large(MULTIPLE_BITS - 1), 0));
        assert!(!proof_of_shifted_combination(&large(SLACK_BITS + 1), &none, 0));
        assert!(!proof_of_shifted_combination(&none, &large(MULTIPLE_BITS + SLACK_BITS + 2), 0));
    }

    #[test]
    fn summand_of_another_secret_is_refused() {
        assert!(!proof_of_shifted_combination(
            &Number::from_u32(0).unwrap(),
            &Number::from_u32(0).unwrap(),
            1
        ));
    }
}
