//! The manager's proof to one member, once an epoch, beside its parameters: the manager's modulus has no
//! small factor.
//!
//! `Pi_fac` (eprint 2021/060, figure 28), with commitments under the member's parameters; steps are cited as [P3].

use std::sync::Arc;

use engine::Transcript;
use engine::wire::{Reader, Writer};
use primitives::hedge::HedgedRng;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::number::{Calc, Failure, Number};
use crate::proofs::{
    SLACK_BITS, blinding_bits, blinding_response_bytes, challenge, read_below, respond, response_bytes,
};
use crate::setup::{HIDING_BITS, Parameters, SecretParameters, SetUpError, read_number};
use crate::tags;

/// A manager's parameters, with the proof about its factors verified by this member.
pub struct Issuer {
    pub(crate) parameters: Arc<Parameters>,
}

/// Both factors of n are below 2^(half of its length + 257), so neither is small.
pub struct FactorProof {
    first: First,
    sigma: Number,
    responses: [Number; 2],
    blinding_responses: [Number; 2],
    product_response: Number,
}

/// The first message of the proof. The challenge is drawn from it and sigma.
struct First {
    /// s^p t^mu and s^q t^nu.
    factors: [Number; 2],
    /// s^alpha t^x and s^beta t^y.
    masks: [Number; 2],
    /// (second of `factors`)^alpha t^r.
    product: Number,
}

/// Lengths in bits, for a modulus n under parameters of the same length.
struct Lengths {
    factor: usize,
    sigma: usize,
}

impl Lengths {
    fn new(n: &Parameters, under: &Parameters) -> Self {
        let factor = n.bits().get() / 2;
        Self { factor, sigma: blinding_bits(under.bits().get()) + factor + HIDING_BITS }
    }
}

impl FactorProof {
    /// [P3] proves it to the owner of `member`.
    pub fn prove(
        own: &SecretParameters,
        member: &Parameters,
        rng: &mut dyn CryptoRng,
    ) -> Result<Self, Failure> {
        let lengths = Lengths::new(own.public(), member);
        let blinding = blinding_bits(member.bits().get());
        let (p, q) = (&own.factors.p.value, &own.factors.q.value);
        // Two proofs with one mask show p, so no two members' masks are alike even if the generator's are.
        let known = Zeroizing::new(p.to_bytes(own.public().modulus.bytes)?);
        let parts: [&[u8]; 4] =
            [tags::FACTOR_RANDOMNESS.as_bytes(), &known, own.public().digest(), member.digest()];
        let rng = &mut HedgedRng::new("paillier-issuer", &parts, rng);
        let alpha = Number::random_bits(lengths.factor + SLACK_BITS, rng)?;
        let beta = Number::random_bits(lengths.factor + SLACK_BITS, rng)?;
        let (mu, nu) = (Number::random_bits(blinding, rng)?, Number::random_bits(blinding, rng)?);
        let x = Number::random_bits(blinding + SLACK_BITS, rng)?;
        let y = Number::random_bits(blinding + SLACK_BITS, rng)?;
        let sigma = Number::random_bits(lengths.sigma, rng)?;
        let r = Number::random_bits(lengths.sigma + SLACK_BITS, rng)?;
        let second = member.commit(q, &nu)?;
        let n = &member.modulus.n;
        let product = second.power(&alpha, n)?.times_modulo(&member.commit(&Number::from_u32(0)?, &r)?, n)?;
        let first = First {
            factors: [member.commit(p, &mu)?, second],
            masks: [member.commit(&alpha, &x)?, member.commit(&beta, &y)?],
            product,
        };
        let e = first.challenge(own.public(), member, &sigma)?;
        // sigma is longer than nu p by so much that the difference is negative with chance 2^-128 only.
        let rest = sigma.minus(&nu.times(p)?)?;
        Ok(Self {
            responses: [respond(&alpha, &e, p)?, respond(&beta, &e, q)?],
            blinding_responses: [respond(&x, &e, &mu)?, respond(&y, &e, &nu)?],
            product_response: respond(&r, &e, &rest)?,
            first,
            sigma,
        })
    }

    fn verify(&self, issuer: &Parameters, own: &SecretParameters) -> Calc<bool> {
        let member = own.public();
        let n = &member.modulus.n;
        let lengths = Lengths::new(issuer, member);
        if self.responses.iter().any(|response| response.bits() > lengths.factor + SLACK_BITS) {
            return Ok(false);
        }
        for number in &self.first.factors {
            if !number.is_unit(n)? {
                return Ok(false);
            }
        }
        let e = self.first.challenge(issuer, member, &self.sigma)?;
        let rows = self.first.factors.iter().zip(&self.first.masks);
        for ((factor, mask), (response, blinding)) in
            rows.zip(self.responses.iter().zip(&self.blinding_responses))
        {
            if own.commit(response, blinding)? != factor.power_public(&e, n)?.times_modulo(mask, n)? {
                return Ok(false);
            }
        }
        let [alpha, _] = &self.responses;
        let [_, second] = &self.first.factors;
        let left = second
            .power_public(alpha, n)?
            .times_modulo(&own.commit(&Number::from_u32(0)?, &self.product_response)?, n)?;
        let shown = own.commit(&issuer.modulus.n, &self.sigma)?;
        Ok(left == shown.power_public(&e, n)?.times_modulo(&self.first.product, n)?)
    }

    /// All numbers with their fixed lengths.
    pub fn encode(&self, issuer: &Parameters, member: &Parameters) -> Result<Vec<u8>, Failure> {
        let lengths = Lengths::new(issuer, member);
        let mut writer = Writer::default();
        let First { factors, masks, product } = &self.first;
        for number in factors.iter().chain(masks).chain([product]) {
            writer.bytes(&number.to_bytes(member.modulus.bytes)?);
        }
        writer.bytes(&self.sigma.to_bytes(lengths.sigma.div_ceil(8))?);
        for number in &self.responses {
            writer.bytes(&number.to_bytes(response_bytes(lengths.factor))?);
        }
        for number in &self.blinding_responses {
            writer.bytes(&number.to_bytes(blinding_response_bytes(member.bits().get()))?);
        }
        writer.bytes(&self.product_response.to_bytes(response_bytes(lengths.sigma))?);
        Ok(writer.finish())
    }

    fn decode(bytes: &[u8], issuer: &Parameters, member: &Parameters) -> Result<Self, SetUpError> {
        let lengths = Lengths::new(issuer, member);
        let modulus = &member.modulus;
        let mut reader = Reader::new(bytes);
        let below = |reader: &mut Reader<'_>| read_below(reader, &modulus.n, modulus.bytes);
        let first = First {
            factors: [below(&mut reader)?, below(&mut reader)?],
            masks: [below(&mut reader)?, below(&mut reader)?],
            product: below(&mut reader)?,
        };
        let sigma = read_number(&mut reader, lengths.sigma.div_ceil(8))?;
        let factor = response_bytes(lengths.factor);
        let responses = [read_number(&mut reader, factor)?, read_number(&mut reader, factor)?];
        let blinding = blinding_response_bytes(member.bits().get());
        let blinding_responses = [read_number(&mut reader, blinding)?, read_number(&mut reader, blinding)?];
        let product_response = read_number(&mut reader, response_bytes(lengths.sigma))?;
        reader.finish()?;
        Ok(Self { first, sigma, responses, blinding_responses, product_response })
    }
}

impl First {
    fn challenge(&self, issuer: &Parameters, member: &Parameters, sigma: &Number) -> Calc<Number> {
        let mut transcript = Transcript::new(tags::FACTOR_PROOF);
        transcript.append("issuer", issuer.digest());
        transcript.append("member", member.digest());
        for number in self.factors.iter().chain(&self.masks).chain([&self.product]) {
            transcript.append("number", &number.to_bytes(member.modulus.bytes)?);
        }
        transcript.append("sigma", &sigma.to_bytes(Lengths::new(issuer, member).sigma.div_ceil(8))?);
        challenge(transcript)
    }
}

impl Issuer {
    /// [P4] takes a manager's checked parameters, if the proof about their factors holds for this member.
    pub fn check(
        parameters: Arc<Parameters>,
        proof: &[u8],
        own: &SecretParameters,
    ) -> Result<Self, SetUpError> {
        if parameters.bits() != own.public().bits() {
            return Err(SetUpError::Modulus);
        }
        let proof = FactorProof::decode(proof, &parameters, own.public())?;
        if proof.verify(&parameters, own)? { Ok(Self { parameters }) } else { Err(SetUpError::FactorProof) }
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}
