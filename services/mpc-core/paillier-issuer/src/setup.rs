//! Each side's own modulus with two bases for commitments (ring-Pedersen parameters), proven well formed once an
//! epoch.
//!
//! Specification: `docs/protocols/wbb.md`; steps are cited as [P1]. Proofs: Canetti, Gennaro, Goldfeder,
//! Makriyannis, Peled (eprint 2021/060), figures 16 (`Pi_mod`) and 17 (`Pi_prm`).

use core::fmt;

use engine::wire::{Malformed, Reader, Writer};
use engine::{Tag, Transcript};
use primitives::hedge::HedgedRng;
use rand_core::CryptoRng;

use crate::modulus::{Factors, Modulus};
use crate::number::{Calc, Failure, Number};
use crate::tags;

/// Repetitions of proofs that catch a cheat with chance one half each.
const REPETITIONS: usize = 128;
/// Bits by which randomness is longer than what it hides: it tells at most 2^-128.
pub(crate) const HIDING_BITS: usize = 128;
/// No prime below this divides an acceptable modulus.
const TRIAL_DIVISORS: u32 = 1 << 10;

/// How long moduli are, in bits. Both sides use one length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModulusBits(pub(crate) usize);

impl ModulusBits {
    /// 128 bits of security.
    pub const STANDARD: Self = Self(3072);
    /// That of the paper's measurements.
    pub const PAPER: Self = Self(4572);

    /// The length.
    pub fn get(self) -> usize {
        self.0
    }
}

/// Why a peer's parameters are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetUpError {
    /// The encoding has another length, or a number is not below the modulus.
    Malformed,
    /// The modulus is even, prime, of another length, or has a small factor.
    Modulus,
    /// A base is no unit, or is 1.
    Base,
    /// The modulus is not shown to be the product of two primes of the right form.
    ModulusProof,
    /// The first base is not shown to be a power of the second.
    BasesProof,
    /// The modulus is not shown to be without a small factor.
    FactorProof,
    /// This side could not compute.
    Internal,
}

impl From<Failure> for SetUpError {
    fn from(_: Failure) -> Self {
        SetUpError::Internal
    }
}

impl From<Malformed> for SetUpError {
    fn from(_: Malformed) -> Self {
        SetUpError::Malformed
    }
}

impl fmt::Display for SetUpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SetUpError::Malformed => "parameters are malformed",
            SetUpError::Modulus => "the modulus is even, prime, of another length, or has a small factor",
            SetUpError::Base => "a base is not usable",
            SetUpError::ModulusProof => "the proof of the modulus does not verify",
            SetUpError::BasesProof => "the proof of the bases does not verify",
            SetUpError::FactorProof => "the proof about the factors does not verify",
            SetUpError::Internal => "internal error",
        })
    }
}

impl std::error::Error for SetUpError {}

/// A modulus with two bases, checked or made here.
pub struct Parameters {
    pub(crate) modulus: Modulus,
    /// A power of `t`.
    s: Number,
    /// A square.
    t: Number,
    digest: [u8; 32],
}

/// Parameters with the secrets of their owner. Wiped on drop.
pub struct SecretParameters {
    pub(crate) factors: Factors,
    /// s = t^lambda.
    lambda: Number,
    public: Parameters,
    proven: Vec<u8>,
}

struct Root {
    fourth: Number,
    nth: Number,
    negated: bool,
    turned: bool,
}

impl SecretParameters {
    /// [P1] fresh parameters with their proofs. `label` says whose they are and in which group and epoch.
    pub fn generate(bits: ModulusBits, label: &[u8], rng: &mut dyn CryptoRng) -> Result<Self, Failure> {
        let parts = [tags::SETUP_RANDOMNESS.as_bytes(), label];
        let mut rng = HedgedRng::new("paillier-issuer", &parts, rng);
        Self::from_factors(Factors::generate(bits.0, &mut rng)?, label, &mut rng)
    }

    fn from_factors(factors: Factors, label: &[u8], rng: &mut dyn CryptoRng) -> Result<Self, Failure> {
        let modulus = Modulus::new(factors.modulus.n.copy()?)?;
        let order = factors.order()?;
        let t = {
            let root = modulus.random_unit(rng)?;
            root.times_modulo(&root, &modulus.n)?
        };
        let lambda = Number::random_below(&order, rng)?;
        let s = factors.power(&t, &lambda)?;
        let digest = digest(&modulus, &s, &t, label)?;
        let public = Parameters { modulus, s, t, digest };
        let mut writer = Writer::default();
        public.encode(&mut writer)?;
        prove_modulus(&factors, &public, &mut writer, rng)?;
        prove_bases(&factors, &public, &lambda, &order, &mut writer, rng)?;
        Ok(Self { factors, lambda, public, proven: writer.finish() })
    }

    /// The parameters, without proofs.
    pub fn public(&self) -> &Parameters {
        &self.public
    }

    /// The encoding that the peer checks: parameters and proofs.
    pub fn proven(&self) -> &[u8] {
        &self.proven
    }

    /// s^x t^r, by the primes.
    pub(crate) fn commit(&self, x: &Number, r: &Number) -> Calc<Number> {
        self.factors.power(&self.public.t, &x.times(&self.lambda)?.plus(r)?)
    }
}

impl Parameters {
    /// [P2] takes a peer's parameters, if all proofs hold.
    pub fn check(bytes: &[u8], bits: ModulusBits, label: &[u8]) -> Result<Self, SetUpError> {
        let mut reader = Reader::new(bytes);
        let length = bits.0.div_ceil(8);
        let n = read_number(&mut reader, length)?;
        let (s, t) = (read_number(&mut reader, length)?, read_number(&mut reader, length)?);
        // [P2.1] odd, of the length, without a small factor, not prime.
        if n.bits() != bits.0 || !n.is_bit_set(0) || has_small_factor(&n)? || n.is_prime()? {
            return Err(SetUpError::Modulus);
        }
        let modulus = Modulus::new(n)?;
        // [P2.2] the bases are units, and not 1.
        let one = Number::from_u32(1)?;
        for base in [&s, &t] {
            if !base.is_unit(&modulus.n)? || *base == one {
                return Err(SetUpError::Base);
            }
        }
        let digest = digest(&modulus, &s, &t, label)?;
        let parameters = Self { modulus, s, t, digest };
        check_modulus(&parameters, &mut reader)?;
        check_bases(&parameters, &mut reader)?;
        reader.finish()?;
        Ok(parameters)
    }

    /// Hash of modulus, bases and label.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The length of the modulus.
    pub fn bits(&self) -> ModulusBits {
        ModulusBits(self.modulus.bits())
    }

    /// s^x t^r of secret x and r.
    pub(crate) fn commit(&self, x: &Number, r: &Number) -> Calc<Number> {
        let n = &self.modulus.n;
        self.s.power(x, n)?.times_modulo(&self.t.power(r, n)?, n)
    }

    fn encode(&self, writer: &mut Writer) -> Calc<()> {
        for number in [&self.modulus.n, &self.s, &self.t] {
            writer.bytes(&number.to_bytes(self.modulus.bytes)?);
        }
        Ok(())
    }
}

fn digest(modulus: &Modulus, s: &Number, t: &Number, label: &[u8]) -> Calc<[u8; 32]> {
    let mut transcript = Transcript::new(tags::PARAMETERS);
    transcript.append("label", label);
    for (name, number) in [("n", &modulus.n), ("s", s), ("t", t)] {
        transcript.append(name, &number.to_bytes(modulus.bytes)?);
    }
    Ok(transcript.digest())
}

pub(crate) fn read_number(reader: &mut Reader<'_>, length: usize) -> Result<Number, SetUpError> {
    Ok(Number::from_bytes(reader.bytes(length)?)?)
}

fn has_small_factor(n: &Number) -> Calc<bool> {
    for divisor in (3..TRIAL_DIVISORS).step_by(2) {
        if n.modulo_small(divisor)? == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Number `index` of those that follow from a digest: uniform below `bound` up to 2^-128.
fn expand(digest: &[u8; 32], index: usize, bound: &Number) -> Calc<Number> {
    let length = (bound.bits() + HIDING_BITS).div_ceil(8);
    let mut bytes = Vec::with_capacity(length + 64);
    let mut counter = 0u64;
    while bytes.len() < length {
        let mut transcript = Transcript::new(tags::EXPANSION);
        transcript.append("digest", digest);
        transcript.append_u64("index", index as u64);
        transcript.append_u64("counter", counter);
        bytes.extend_from_slice(&transcript.wide());
        counter += 1;
    }
    bytes.truncate(length);
    Number::from_bytes(&bytes)?.modulo(bound)
}

fn challenge(tag: Tag, parameters: &Parameters, items: &[Number]) -> Calc<[u8; 32]> {
    let mut transcript = Transcript::new(tag);
    transcript.append("parameters", &parameters.digest);
    for item in items {
        transcript.append("item", &item.to_bytes(parameters.modulus.bytes)?);
    }
    Ok(transcript.digest())
}

/// `Pi_mod`: n is a product of two different primes that are 3 modulo 4, and shares no factor with the order of its
/// units.
fn prove_modulus(
    factors: &Factors,
    parameters: &Parameters,
    writer: &mut Writer,
    rng: &mut dyn CryptoRng,
) -> Calc<()> {
    let modulus = &parameters.modulus;
    let w = factors.non_square(rng)?;
    let order = factors.order()?;
    let nth = modulus.n.modulo(&order)?.inverse(&order)?;
    writer.bytes(&w.to_bytes(modulus.bytes)?);
    let digest = challenge(tags::MODULUS_PROOF, parameters, core::slice::from_ref(&w))?;
    for index in 0..REPETITIONS {
        let y = expand(&digest, index, &modulus.n)?;
        let (fourth, negated, turned) = factors.fourth_root(&y, &w)?;
        writer.bytes(&fourth.to_bytes(modulus.bytes)?);
        writer.bytes(&factors.power(&y, &nth)?.to_bytes(modulus.bytes)?);
        writer.u8(u8::from(negated) | u8::from(turned) << 1);
    }
    Ok(())
}

fn check_modulus(parameters: &Parameters, reader: &mut Reader<'_>) -> Result<(), SetUpError> {
    let modulus = &parameters.modulus;
    let (n, four) = (&modulus.n, Number::from_u32(4)?);
    let w = read_number(reader, modulus.bytes)?;
    // [P2.3] with w = 0 everything would be a fourth power.
    if !w.is_unit(n)? {
        return Err(SetUpError::ModulusProof);
    }
    let digest = challenge(tags::MODULUS_PROOF, parameters, core::slice::from_ref(&w))?;
    for index in 0..REPETITIONS {
        let y = expand(&digest, index, n)?;
        let root = Root {
            fourth: read_number(reader, modulus.bytes)?,
            nth: read_number(reader, modulus.bytes)?,
            negated: false,
            turned: false,
        };
        let flags = reader.u8()?;
        let root = match flags {
            0..=3 => Root { negated: flags & 1 == 1, turned: flags & 2 == 2, ..root },
            _ => return Err(SetUpError::Malformed),
        };
        let right = root.fourth < *n
            && root.nth < *n
            && y.is_unit(n)?
            && root.nth.power_public(n, n)? == y
            && root.fourth.power_public(&four, n)? == turned(&y, &w, &root, n)?;
        if !right {
            return Err(SetUpError::ModulusProof);
        }
    }
    Ok(())
}

/// (-1)^a w^b y.
fn turned(y: &Number, w: &Number, root: &Root, n: &Number) -> Calc<Number> {
    let y = if root.turned { y.times_modulo(w, n)? } else { y.copy()? };
    if root.negated { n.minus(&y) } else { Ok(y) }
}

/// `Pi_prm`: s is a power of t, so that a commitment under them hides. The commitments of the proof follow from its
/// responses.
fn prove_bases(
    factors: &Factors,
    parameters: &Parameters,
    lambda: &Number,
    order: &Number,
    writer: &mut Writer,
    rng: &mut dyn CryptoRng,
) -> Calc<()> {
    let masks = (0..REPETITIONS).map(|_| Number::random_below(order, rng)).collect::<Calc<Vec<_>>>()?;
    let commitments =
        masks.iter().map(|mask| factors.power(&parameters.t, mask)).collect::<Calc<Vec<_>>>()?;
    let digest = challenge(tags::BASES_PROOF, parameters, &commitments)?;
    writer.bytes(&digest);
    for (index, mask) in masks.iter().enumerate() {
        let response = if bit(&digest, index) { mask.plus(lambda)?.modulo(order)? } else { mask.copy()? };
        writer.bytes(&response.to_bytes(parameters.modulus.bytes)?);
    }
    Ok(())
}

fn check_bases(parameters: &Parameters, reader: &mut Reader<'_>) -> Result<(), SetUpError> {
    let modulus = &parameters.modulus;
    let digest = *reader.array::<32>()?;
    let inverse = parameters.s.inverse_public(&modulus.n)?.ok_or(SetUpError::Base)?;
    let mut commitments = Vec::with_capacity(REPETITIONS);
    for index in 0..REPETITIONS {
        let response = read_number(reader, modulus.bytes)?;
        if response >= modulus.n {
            return Err(SetUpError::BasesProof);
        }
        let power = parameters.t.power_public(&response, &modulus.n)?;
        commitments.push(if bit(&digest, index) { power.times_modulo(&inverse, &modulus.n)? } else { power });
    }
    // [P2.4] the commitments that the responses lead to are those that the challenge was drawn from.
    if challenge(tags::BASES_PROOF, parameters, &commitments)? == digest {
        Ok(())
    } else {
        Err(SetUpError::BasesProof)
    }
}

/// One bit of the challenge; there are twice as many as repetitions.
fn bit(digest: &[u8; 32], index: usize) -> bool {
    digest.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

/// For tests: parameters that are too short, or not well formed.
#[cfg(feature = "forge")]
pub mod forge {
    use rand_core::CryptoRng;

    use super::{ModulusBits, SecretParameters};
    use crate::modulus::Factors;
    use crate::number::{Failure, Number};

    /// Long enough for every range of the protocol, and not for security.
    pub const SHORT: ModulusBits = ModulusBits(1536);

    /// Parameters from two numbers that need not be primes, with proofs as the code makes them.
    pub fn from_factors(
        p: &[u8],
        q: &[u8],
        label: &[u8],
        rng: &mut dyn CryptoRng,
    ) -> Result<SecretParameters, Failure> {
        let factors = Factors::new(Number::from_bytes(p)?, Number::from_bytes(q)?)?;
        SecretParameters::from_factors(factors, label, rng)
    }
}
