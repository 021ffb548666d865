//! For measurements: the three steps of the paper, without proofs. They are not safe against a side that deviates.

use group_signatures::IssuingKey;
use primitives::Secret;
use primitives::bls12_381::{G1, Scalar};
use rand_core::CryptoRng;

use crate::modulus::Factors;
use crate::number::{Failure, Number};
use crate::proofs::{MULTIPLE_BITS, SCALAR_BITS};
use crate::setup::{ModulusBits, Parameters, SecretParameters};

/// A ciphertext.
pub struct Ciphertext(Number);

/// r-bar^n, which depends on nothing that the manager sends but its modulus.
pub struct Prepared(Number);

/// A side makes its modulus, without bases.
pub fn set_up(bits: ModulusBits, rng: &mut dyn CryptoRng) -> Result<(), Failure> {
    Factors::generate(bits.get(), rng).map(|_| ())
}

/// The manager encrypts its key.
pub fn encrypt(
    key: &IssuingKey,
    own: &SecretParameters,
    rng: &mut dyn CryptoRng,
) -> Result<Ciphertext, Failure> {
    let modulus = &own.public().modulus;
    let mask = own.factors.nth_power(&modulus.random_unit(rng)?)?;
    let key = Number::from_scalar(key.scalar().expose())?;
    Ok(Ciphertext(modulus.embed(&key)?.times_modulo(&mask, &modulus.square)?))
}

/// The member raises its randomness before the join.
pub fn prepare(manager: &Parameters, rng: &mut dyn CryptoRng) -> Result<Prepared, Failure> {
    Ok(Prepared(manager.modulus.nth_power(&manager.modulus.random_unit(rng)?)?))
}

/// The member combines; r1 comes with the ciphertext.
pub fn combine(
    secret: &Secret<Scalar>,
    manager: &Parameters,
    received: &Ciphertext,
    prepared: Prepared,
    rng: &mut dyn CryptoRng,
) -> Result<(Secret<Scalar>, Ciphertext), Failure> {
    let factor = Secret::new(Scalar::random(rng));
    let x = Number::from_scalar(factor.expose())?;
    let multiple = Number::random_bits(MULTIPLE_BITS, rng)?.times(&Number::group_order()?)?;
    let summand = x.times(&Number::from_scalar(secret.expose())?)?.plus(&multiple)?;
    let modulus = &manager.modulus;
    let power = modulus.halves.power(&received.0, &x, SCALAR_BITS)?;
    let combined = power.times_modulo(&modulus.embed(&summand)?, &modulus.square)?;
    Ok((factor, Ciphertext(combined.times_modulo(&prepared.0, &modulus.square)?)))
}

/// The manager decrypts and answers.
pub fn answer(own: &SecretParameters, combined: &Ciphertext) -> Result<G1, Failure> {
    let x = own.factors.decrypt(&combined.0)?.to_scalar()?;
    Ok(G1::mul_generator(&Secret::new(x.inverse())))
}

/// One power with an exponent as long as n, modulo n^2, in constant time and by libcrypto: the unit in which the others
/// are read.
pub fn power(manager: &Parameters, rng: &mut dyn CryptoRng) -> Result<(), Failure> {
    let modulus = &manager.modulus;
    modulus.random_unit(rng)?.power(&modulus.n, &modulus.square).map(|_| ())
}
