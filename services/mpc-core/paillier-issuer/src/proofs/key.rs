//! `Pi_log*` (eprint 2021/060, figure 25): a ciphertext under the prover's modulus holds the logarithm of a point,
//! in range.

use engine::Transcript;
use engine::wire::{Reader, Writer};
use primitives::Secret;
use primitives::bls12_381::{G1, G1_COMPRESSED_BYTES};
use rand_core::CryptoRng;

use super::{
    SCALAR_BITS, SLACK_BITS, blinding_bits, blinding_response_bytes, challenge, in_range, read_below,
    respond, response_bytes,
};
use crate::number::{Calc, Failure, Number};
use crate::setup::{Parameters, SecretParameters, SetUpError, read_number};

/// The statement of a proof.
pub(crate) struct KeyStatement<'a> {
    /// The prover's.
    pub(crate) prover: &'a Parameters,
    /// The verifier's, which commitments are under.
    pub(crate) verifier: &'a Parameters,
    /// g1^a.
    pub(crate) point: &'a G1,
    /// (1 + n)^a rho^n.
    pub(crate) ciphertext: &'a Number,
}

/// The prover's secrets.
pub(crate) struct KeyWitness<'a> {
    pub(crate) own: &'a SecretParameters,
    pub(crate) secret: &'a Number,
    pub(crate) randomness: &'a Number,
}

pub(crate) struct KeyProof {
    /// s^a t^mu.
    commitment: Number,
    /// (1 + n)^alpha r^n.
    masked_ciphertext: Number,
    /// g1^alpha.
    masked_point: G1,
    /// s^alpha t^gamma.
    masked_commitment: Number,
    /// alpha + e a.
    secret_response: Number,
    /// r rho^e.
    randomness_response: Number,
    /// gamma + e mu.
    blinding_response: Number,
}

impl KeyProof {
    pub(crate) fn prove(
        transcript: Transcript,
        statement: &KeyStatement<'_>,
        witness: &KeyWitness<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Calc<Self> {
        let own = &statement.prover.modulus;
        let blinding = blinding_bits(statement.verifier.modulus.bits());
        let alpha = Number::random_bits(SCALAR_BITS + SLACK_BITS, rng)?;
        let mu = Number::random_bits(blinding, rng)?;
        let gamma = Number::random_bits(blinding + SLACK_BITS, rng)?;
        let r = own.random_unit(rng)?;
        let secret = witness.secret;
        let commitment = statement.verifier.commit(secret, &mu)?;
        let mask = witness.own.factors.nth_power(&r)?;
        let masked_ciphertext = own.embed(&alpha)?.times_modulo(&mask, &own.square)?;
        let masked_point = G1::mul_generator(&Secret::new(alpha.to_scalar()?));
        let masked_commitment = statement.verifier.commit(&alpha, &gamma)?;
        let first = First { commitment, masked_ciphertext, masked_point, masked_commitment };
        let e = first.challenge(transcript, statement)?;
        let randomness_response = r.times_modulo(&witness.randomness.power(&e, &own.n)?, &own.n)?;
        Ok(Self {
            secret_response: respond(&alpha, &e, secret)?,
            randomness_response,
            blinding_response: respond(&gamma, &e, &mu)?,
            commitment: first.commitment,
            masked_ciphertext: first.masked_ciphertext,
            masked_point,
            masked_commitment: first.masked_commitment,
        })
    }

    /// Whether it holds. The verifier knows the primes of its own modulus.
    pub(crate) fn verify(
        &self,
        transcript: Transcript,
        statement: &KeyStatement<'_>,
        verifier: &SecretParameters,
    ) -> Calc<bool> {
        let (theirs, ours) = (&statement.prover.modulus, &statement.verifier.modulus);
        if !in_range(&self.secret_response, SCALAR_BITS)
            || !self.randomness_response.is_unit(&theirs.n)?
            || !self.commitment.is_unit(&ours.n)?
        {
            return Ok(false);
        }
        let first = First {
            commitment: self.commitment.copy()?,
            masked_ciphertext: self.masked_ciphertext.copy()?,
            masked_point: self.masked_point,
            masked_commitment: self.masked_commitment.copy()?,
        };
        let e = first.challenge(transcript, statement)?;
        let z = &self.secret_response;
        let scalar = z.to_scalar()?;
        let expected_point = self.masked_point.plus(&statement.point.times_public(&e.to_scalar()?));
        if G1::generator().times_public(&scalar) != expected_point {
            return Ok(false);
        }
        let left = verifier.commit(z, &self.blinding_response)?;
        let right =
            self.commitment.power_public(&e, &ours.n)?.times_modulo(&self.masked_commitment, &ours.n)?;
        if left != right {
            return Ok(false);
        }
        let power = theirs.nth_power(&self.randomness_response)?;
        let left = theirs.embed(z)?.times_modulo(&power, &theirs.square)?;
        let right = theirs.halves.power_public(statement.ciphertext, &e)?;
        Ok(left == right.times_modulo(&self.masked_ciphertext, &theirs.square)?)
    }

    /// Bytes of an encoding.
    pub(crate) const fn length(prover_bits: usize, verifier_bits: usize) -> usize {
        let (theirs, ours) = (prover_bits.div_ceil(8), verifier_bits.div_ceil(8));
        3 * theirs
            + 2 * ours
            + G1_COMPRESSED_BYTES
            + response_bytes(SCALAR_BITS)
            + blinding_response_bytes(verifier_bits)
    }

    pub(crate) fn encode(&self, prover: &Parameters, verifier: &Parameters, writer: &mut Writer) -> Calc<()> {
        let (theirs, ours) = (&prover.modulus, &verifier.modulus);
        writer.bytes(&self.commitment.to_bytes(ours.bytes)?);
        writer.bytes(&self.masked_ciphertext.to_bytes(2 * theirs.bytes)?);
        writer.bytes(&self.masked_point.to_compressed());
        writer.bytes(&self.masked_commitment.to_bytes(ours.bytes)?);
        writer.bytes(&self.secret_response.to_bytes(response_bytes(SCALAR_BITS))?);
        writer.bytes(&self.randomness_response.to_bytes(theirs.bytes)?);
        writer.bytes(&self.blinding_response.to_bytes(blinding_response_bytes(ours.bits()))?);
        Ok(())
    }

    pub(crate) fn decode(
        reader: &mut Reader<'_>,
        prover: &Parameters,
        verifier: &Parameters,
    ) -> Result<Self, SetUpError> {
        let (theirs, ours) = (&prover.modulus, &verifier.modulus);
        Ok(Self {
            commitment: read_below(reader, &ours.n, ours.bytes)?,
            masked_ciphertext: read_below(reader, &theirs.square, 2 * theirs.bytes)?,
            masked_point: G1::from_compressed(reader.array()?).ok_or(SetUpError::Malformed)?,
            masked_commitment: read_below(reader, &ours.n, ours.bytes)?,
            secret_response: read_number(reader, response_bytes(SCALAR_BITS))?,
            randomness_response: read_below(reader, &theirs.n, theirs.bytes)?,
            blinding_response: read_number(reader, blinding_response_bytes(ours.bits()))?,
        })
    }
}

/// The first message of the proof, from which the challenge is drawn.
struct First {
    commitment: Number,
    masked_ciphertext: Number,
    masked_point: G1,
    masked_commitment: Number,
}

impl First {
    fn challenge(&self, mut transcript: Transcript, statement: &KeyStatement<'_>) -> Result<Number, Failure> {
        let (theirs, ours) = (&statement.prover.modulus, &statement.verifier.modulus);
        transcript.append("prover", statement.prover.digest());
        transcript.append("verifier", statement.verifier.digest());
        transcript.append("point", &statement.point.to_compressed());
        transcript.append("ciphertext", &statement.ciphertext.to_bytes(2 * theirs.bytes)?);
        transcript.append("commitment", &self.commitment.to_bytes(ours.bytes)?);
        transcript.append("masked ciphertext", &self.masked_ciphertext.to_bytes(2 * theirs.bytes)?);
        transcript.append("masked point", &self.masked_point.to_compressed());
        transcript.append("masked commitment", &self.masked_commitment.to_bytes(ours.bytes)?);
        challenge(transcript)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TAG, parameters, rng};
    use super::*;
    use primitives::bls12_381::Scalar;

    /// Proves a + multiple q for a key a: every equation holds whatever the multiple is, and only the range tells.
    fn proof_of_shifted_key(multiple: &Number) -> bool {
        let (own, verifier) = parameters();
        let mut rng = rng(1);
        let key = Scalar::random(&mut rng);
        let order = Number::group_order().unwrap();
        let secret = Number::from_scalar(&key).unwrap().plus(&multiple.times(&order).unwrap()).unwrap();
        let modulus = &own.public().modulus;
        let randomness = modulus.random_unit(&mut rng).unwrap();
        let mask = own.factors.nth_power(&randomness).unwrap();
        let ciphertext = modulus.embed(&secret).unwrap().times_modulo(&mask, &modulus.square).unwrap();
        let point = G1::mul_generator(&Secret::new(key));
        let statement = KeyStatement {
            prover: own.public(),
            verifier: verifier.public(),
            point: &point,
            ciphertext: &ciphertext,
        };
        let witness = KeyWitness { own, secret: &secret, randomness: &randomness };
        let proof = KeyProof::prove(Transcript::new(TAG), &statement, &witness, &mut rng).unwrap();
        proof.verify(Transcript::new(TAG), &statement, verifier).unwrap()
    }

    #[test]
    fn key_out_of_range_is_refused() {
        assert!(proof_of_shifted_key(&Number::from_u32(0).unwrap()));
        assert!(proof_of_shifted_key(&Number::from_u32(1).unwrap()));
        for bits in [SLACK_BITS + 1, 600] {
            assert!(!proof_of_shifted_key(&Number::power_of_two(bits).unwrap()), "{bits} bits");
        }
    }
}
