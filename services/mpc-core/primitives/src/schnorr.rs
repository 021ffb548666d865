//! Proofs of knowledge of a discrete logarithm in G1 (Schnorr), with the challenge supplied by the caller.
//!
//! The equation is checked up to points of cofactor order, so that a single check and a batched one agree on points
//! outside the subgroup; those are told apart elsewhere. The proof shows knowledge of the logarithm of the component in
//! the subgroup.

use rand_core::CryptoRng;

use crate::Secret;
use crate::bls12_381::{CurveG1, G1, Scalar};

/// The prover's secret nonce and its commitment R. Consumed by the response, so that it is used once.
#[must_use]
pub struct Nonce {
    secret: Secret<Scalar>,
    commitment: G1,
}

impl Nonce {
    /// From 64 bytes that nobody else can predict.
    pub fn new(bytes: &Secret<[u8; 64]>) -> Self {
        let secret = Secret::new(Scalar::from_wide(bytes.expose()));
        let commitment = G1::mul_generator(&secret);
        Self { secret, commitment }
    }

    /// R = k G.
    pub fn commitment(&self) -> &G1 {
        &self.commitment
    }

    /// z = k + c x.
    pub fn respond(self, challenge: &Scalar, secret: &Secret<Scalar>) -> Scalar {
        self.secret.expose().add(&challenge.mul(secret.expose()))
    }
}

/// One proof with what it is about: z G = R + c X.
pub struct Statement {
    /// X.
    pub point: CurveG1,
    /// R.
    pub commitment: CurveG1,
    /// c.
    pub challenge: Scalar,
    /// z.
    pub response: Scalar,
}

/// Whether one proof holds.
pub fn verify(statement: &Statement) -> bool {
    holds(&[(statement, Scalar::one())])
}

/// Whether all proofs hold; a set with a wrong one passes with chance 2^-128. An empty set holds.
pub fn verify_batch(statements: &[Statement], rng: &mut dyn CryptoRng) -> bool {
    let weighted: Vec<_> = statements
        .iter()
        .map(|statement| {
            let mut bytes = [0u8; 64];
            let (_, low) = bytes.split_at_mut(48);
            rng.fill_bytes(low);
            (statement, Scalar::from_wide(&bytes))
        })
        .collect();
    weighted.is_empty() || holds(&weighted)
}

fn holds(weighted: &[(&Statement, Scalar)]) -> bool {
    let mut points = Vec::with_capacity(2 * weighted.len() + 1);
    let mut scalars = Vec::with_capacity(2 * weighted.len() + 1);
    let mut total = Scalar::zero();
    for (statement, weight) in weighted {
        total = total.add(&weight.mul(&statement.response));
        points.push(statement.commitment);
        scalars.push(weight.copy());
        points.push(statement.point);
        scalars.push(weight.mul(&statement.challenge));
    }
    points.push(CurveG1::from(G1::generator()));
    scalars.push(Scalar::zero().sub(&total));
    CurveG1::combination_vanishes(&points, &scalars)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

    fn statement(rng: &mut ChaCha20Rng) -> Statement {
        let secret = Secret::new(Scalar::random(rng));
        let mut bytes = Secret::new([0u8; 64]);
        rng.fill_bytes(bytes.expose_mut());
        let nonce = Nonce::new(&bytes);
        let challenge = Scalar::random(rng);
        Statement {
            point: G1::mul_generator(&secret).into(),
            commitment: (*nonce.commitment()).into(),
            response: nonce.respond(&challenge, &secret),
            challenge,
        }
    }

    #[test]
    fn honest_proofs_hold_alone_and_together() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for count in 0..=20 {
            let statements: Vec<_> = (0..count).map(|_| statement(&mut rng)).collect();
            assert!(statements.iter().all(verify));
            assert!(verify_batch(&statements, &mut rng));
        }
    }

    #[test]
    fn one_wrong_proof_spoils_the_batch() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let mut statements: Vec<_> = (0..5).map(|_| statement(&mut rng)).collect();
        statements[3].response = statements[3].response.add(&Scalar::one());
        assert!(!verify(&statements[3]));
        assert!(!verify_batch(&statements, &mut rng));
    }
}
