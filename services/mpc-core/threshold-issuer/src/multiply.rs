//! Multiplication of two parties' secrets into additive shares, over the scalars of BLS12-381: random vector oblivious
//! linear evaluation (Doerner, Kondi, Lee, shelat 2023, eprint 2023/765, protocol 5.2), as `primitives::vole` has it
//! over those of secp256k1. Steps are cited as [M1] (`docs/protocols/wbb.md`).
//!
//! Bob draws a random b; Alice brings a; Alice gets c and Bob d with c + d = a·b. Bob speaks first with an extension of
//! the transfers of `primitives::ot`, Alice answers, and that is all: b is the sum of a public vector over Bob's choice
//! bits, Alice masks her scalar with pads that the transfers give, and one check value for each transfer, a random
//! combination of both columns, shows Bob that she used the same scalar everywhere.
//!
//! | Symbol | Here | Value |
//! |---|---|---|
//! | κ | bits of a scalar | 255 |
//! | ξ | [`EXTENDED`] | 416 = κ + 2·80 + 1 choice bits: b stays uniform to 2^-80 if Alice guesses bits of it |
//! | ℓ | columns of products | 1 |
//! | ρ | columns of checks | 1: a false answer passes with probability 2^-254 for each query of the hash |
//!
//! A transfer gives 128 bits, the key of AES-128 in counter mode, from which each pad takes 384 bits: modulo the group
//! order they are uniform to 2^-129. The counter begins at a hash of the run and has the number of the transfer in it,
//! so that no work on one run's or one transfer's keys helps against another's.
//!
//! A failed check tells Alice bits of b that she guessed, so a pair must never multiply again under the same set-up.

use std::sync::LazyLock;

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use engine::{Secret, Transcript};
use primitives::bls12_381::{SCALAR_BYTES, Scalar};
use primitives::declassify::published;
use primitives::hedge::HedgedRng;
use primitives::ot::{
    EXTENDED, EXTENSION_BYTES, OtError, ReceiverCorrelation, ReceiverState, SenderState, TRANSFER_SALT_BYTES,
};
use rand_core::CryptoRng;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::tags;

/// The product, then the check.
const COLUMNS: usize = 2;
// b stays uniform to 2^-80 although Alice guesses bits of it: claim for a scalar of 255 bits.
const _: () = assert!(EXTENDED > 255 + 2 * 80);
/// Bytes that become one pad.
const PAD_BYTES: usize = 48;
const BLOCKS: usize = COLUMNS * PAD_BYTES / 16;

const MASKED_BYTES: usize = EXTENDED * COLUMNS * SCALAR_BYTES;
const DIGEST_BYTES: usize = 32;
/// Bytes of Alice's message: her salt, the masked scalars, the check scalar, the check digest.
pub const MULTIPLY_BYTES: usize = TRANSFER_SALT_BYTES + MASKED_BYTES + SCALAR_BYTES + DIGEST_BYTES;
/// Bytes of Bob's message.
pub const SAMPLE_BYTES: usize = EXTENSION_BYTES;

type Row = [Scalar; COLUMNS];

/// Uniform scalars that nobody chose.
static GADGET_VECTOR: LazyLock<Vec<Scalar>> = LazyLock::new(|| {
    let element = |place: u64| {
        let mut transcript = Transcript::new(tags::GADGET);
        transcript.append_u64("place", place);
        Scalar::from_wide(&transcript.wide())
    };
    (0..).take(EXTENDED).map(element).collect()
});

/// Bob between his message and Alice's. Used once.
#[must_use]
pub struct Bob {
    correlation: ReceiverCorrelation,
    run: Run,
    factor: Secret<Scalar>,
}

/// [M1] draws b, and makes Bob's message. `binding` names the run; it should never repeat.
pub fn sample(binding: &[u8; 32], state: &ReceiverState, rng: &mut dyn CryptoRng) -> (Bob, Vec<u8>) {
    let (correlation, message) = state.extend(binding, rng);
    let mut factor = Secret::new(Scalar::zero());
    for (choice, element) in correlation.choice_bits().iter().zip(GADGET_VECTOR.iter()) {
        *factor.expose_mut() = factor.expose().add(&element.mul(&bit(*choice)));
    }
    let run = Run::new(binding, &message);
    (Bob { correlation, run, factor }, message)
}

/// [M2] Alice's whole part: her share of a·b, and the answer to Bob's message.
pub fn multiply(
    binding: &[u8; 32],
    state: &SenderState,
    sample: &[u8; SAMPLE_BYTES],
    scalar: &Secret<Scalar>,
    rng: &mut dyn CryptoRng,
) -> Result<(Secret<Scalar>, Vec<u8>), OtError> {
    // [M2.1] the transfers, whose own check covers Bob's message.
    let correlation = state.extend(binding, sample)?;
    // Salt and check scalar are fresh whenever she multiplies another scalar or answers another message.
    let known = Zeroizing::new(scalar.expose().to_bytes());
    let mut rng = HedgedRng::new("alice multiplies in BLS12-381", &[binding, sample, known.as_slice()], rng);
    let (salt, keys) = correlation.transfers(&mut rng);
    let mask = Secret::new(Scalar::random(&mut rng));
    let run = Run::new(binding, sample);
    let pads = run.pads(&salt);

    // [M2.2] both scalars, masked for each transfer.
    let mut message = Vec::with_capacity(MULTIPLY_BYTES);
    message.extend_from_slice(&salt);
    let mut zeros: Vec<Row> = Vec::with_capacity(EXTENDED);
    let mut share = Secret::new(Scalar::zero());
    for ((number, [zero, one]), element) in (0u64..).zip(keys.iter()).zip(GADGET_VECTOR.iter()) {
        let (zero, one) = (pads.of(number, *zero), pads.of(number, *one));
        for (input, (zero, one)) in [scalar, &mask].into_iter().zip(zero.iter().zip(&one)) {
            message.extend_from_slice(&zero.sub(one).add(input.expose()).to_bytes());
        }
        let [product, _] = &zero;
        *share.expose_mut() = share.expose().sub(&element.mul(product));
        zeros.push(zero);
    }

    // [M2.3] the check.
    let challenge = run.challenge(&message);
    let response = combine(&challenge, scalar.expose(), mask.expose());
    let mut check = run.check(&salt);
    for [product, mask] in &zeros {
        check.add(&combine(&challenge, product, mask));
    }
    message.extend_from_slice(&response.to_bytes());
    message.extend_from_slice(&check.finish());
    Ok((share, message))
}

impl Bob {
    /// b.
    pub fn factor(&self) -> &Secret<Scalar> {
        &self.factor
    }

    /// [M3] checks Alice's answer and gives Bob's share of the product.
    pub fn finish(self, message: &[u8; MULTIPLY_BYTES]) -> Result<Secret<Scalar>, OtError> {
        let malformed = OtError::Malformed;
        let (salt, rest) = message.split_first_chunk::<TRANSFER_SALT_BYTES>().ok_or(malformed)?;
        let (masked, rest) = rest.split_at(MASKED_BYTES);
        let (response, digest) = rest.split_first_chunk::<SCALAR_BYTES>().ok_or(malformed)?;
        let response = Scalar::from_bytes(response).ok_or(malformed)?;
        let digest: &[u8; DIGEST_BYTES] = digest.try_into().map_err(|_| malformed)?;

        let (before_check, _) = message.split_at(TRANSFER_SALT_BYTES + MASKED_BYTES);
        let challenge = self.run.challenge(before_check);
        let keys = self.correlation.transfers(salt);
        let pads = self.run.pads(salt);
        let mut check = self.run.check(salt);
        let mut share = Secret::new(Scalar::zero());
        let choices = self.correlation.choice_bits();
        let rows = masked.as_chunks::<{ COLUMNS * SCALAR_BYTES }>().0;
        let keys = (0u64..).zip(keys.iter());
        let transfers = keys.zip(rows).zip(choices.iter()).zip(GADGET_VECTOR.iter());
        for ((((number, key), masked), choice), element) in transfers {
            let choice = bit(*choice);
            let mut row = pads.of(number, *key);
            for (scalar, masked) in row.iter_mut().zip(masked.as_chunks().0) {
                let masked = Scalar::from_bytes(masked).ok_or(malformed)?;
                *scalar = scalar.add(&masked.mul(&choice));
            }
            let [product, mask] = &row;
            check.add(&combine(&challenge, product, mask).sub(&response.mul(&choice)));
            *share.expose_mut() = share.expose().add(&element.mul(product));
        }
        // A failure ends the session for all to see.
        let same = published(check.finish().ct_eq(digest).into());
        if same { Ok(share) } else { Err(OtError::CheckFailed) }
    }
}

/// The words of both sides about one run, up to Bob's message.
struct Run([u8; 32]);

impl Run {
    fn new(binding: &[u8; 32], sample: &[u8]) -> Self {
        let mut transcript = Transcript::new(tags::MULTIPLICATION);
        transcript.append("binding", binding);
        transcript.append("sample", sample);
        Self(transcript.digest())
    }

    fn transcript(&self, tag: engine::Tag) -> Transcript {
        let mut transcript = Transcript::new(tag);
        transcript.append("run", &self.0);
        transcript
    }

    /// The weight of the product in the check, from everything that Alice has sent before it.
    fn challenge(&self, answer: &[u8]) -> Scalar {
        let mut transcript = self.transcript(tags::MULTIPLICATION);
        transcript.append("answer", answer);
        Scalar::from_wide(&transcript.wide())
    }

    fn pads(&self, salt: &[u8; TRANSFER_SALT_BYTES]) -> Pads {
        let mut transcript = self.transcript(tags::PADS);
        transcript.append("salt", salt);
        let digest = transcript.digest();
        let start = digest.as_chunks::<16>().0.iter().fold(0, |sum, half| sum ^ u128::from_le_bytes(*half));
        Pads { start }
    }

    fn check(&self, salt: &[u8; TRANSFER_SALT_BYTES]) -> Check {
        let mut transcript = self.transcript(tags::MULTIPLICATION_CHECK);
        transcript.append("salt", salt);
        Check(transcript)
    }
}

/// The generator of pads of one run.
struct Pads {
    start: u128,
}

impl Pads {
    /// The pads of both columns under the key of one transfer. The number of the transfer is in the counter, so that a
    /// key that two transfers have by chance gives each its own pads, and work on one helps against no other.
    fn of(&self, number: u64, key: u128) -> Row {
        let key = Zeroizing::new(key.to_le_bytes());
        let mut blocks = Zeroizing::new([[0u8; 16]; BLOCKS]);
        let first = u128::from(number) << 64;
        for (place, block) in (0u128..).zip(blocks.iter_mut()) {
            *block = (self.start ^ first ^ place).to_le_bytes();
        }
        Aes128::new((&*key).into()).encrypt_blocks(Block::cast_slice_from_core_mut(blocks.as_mut()));
        let (pads, _) = blocks.as_flattened().as_chunks::<PAD_BYTES>();
        let mut row = [Scalar::zero(), Scalar::zero()];
        for (scalar, pad) in row.iter_mut().zip(pads) {
            let mut wide = Zeroizing::new([0u8; 64]);
            let (_, low) = wide.split_at_mut(64 - PAD_BYTES);
            low.copy_from_slice(pad);
            *scalar = Scalar::from_wide(&wide);
        }
        row
    }
}

/// The hash of the check value of every transfer.
struct Check(Transcript);

impl Check {
    fn add(&mut self, value: &Scalar) {
        self.0.append("value", Zeroizing::new(value.to_bytes()).as_slice());
    }

    fn finish(self) -> [u8; DIGEST_BYTES] {
        self.0.digest()
    }
}

/// 0 or 1 as a scalar, in constant time.
fn bit(choice: u8) -> Scalar {
    Scalar::from_u64(u64::from(choice))
}

fn combine(challenge: &Scalar, product: &Scalar, mask: &Scalar) -> Scalar {
    challenge.mul(product).add(mask)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use primitives::ot::{Initiator, PairState, Responder};
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    const BINDING: [u8; 32] = [3; 32];

    fn seeded(seed: u64) -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(seed)
    }

    fn pair(rng: &mut ChaCha20Rng) -> (PairState, PairState) {
        let (initiator, request) = Initiator::begin(&[1; 32], rng);
        let (responder, response) =
            Responder::answer(&[1; 32], request.as_slice().try_into().unwrap(), rng).unwrap();
        let (first, corrections) = initiator.finish(response.as_slice().try_into().unwrap(), rng).unwrap();
        (first, responder.finish(corrections.as_slice().try_into().unwrap()).unwrap())
    }

    fn secret(scalar: &Scalar) -> Secret<Scalar> {
        Secret::new(scalar.copy())
    }

    fn same(a: &Scalar, b: &Scalar) -> bool {
        a.to_bytes() == b.to_bytes()
    }

    fn answer(
        state: &SenderState,
        sampled: &[u8],
        input: &Scalar,
        seed: u64,
    ) -> Result<(Secret<Scalar>, Vec<u8>), OtError> {
        multiply(&BINDING, state, sampled.try_into().unwrap(), &secret(input), &mut seeded(seed))
    }

    #[test]
    fn shares_sum_to_the_product_in_both_directions() {
        let mut rng = seeded(1);
        let (first, second) = pair(&mut rng);
        let largest = Scalar::zero().sub(&Scalar::one());
        let inputs = [Scalar::zero(), Scalar::one(), largest, Scalar::random(&mut rng)];
        let mut factors = Vec::new();
        for (number, input) in (0u8..).zip(&inputs) {
            for (sender, receiver) in [(&first.sender, &second.receiver), (&second.sender, &first.receiver)] {
                let binding = [number; 32];
                let (bob, sampled) = sample(&binding, receiver, &mut rng);
                assert_eq!(sampled.len(), SAMPLE_BYTES);
                let factor = secret(bob.factor().expose());
                let sampled = sampled.as_slice().try_into().unwrap();
                let (alice, message) = multiply(&binding, sender, sampled, &secret(input), &mut rng).unwrap();
                assert_eq!(message.len(), MULTIPLY_BYTES);
                let bob = bob.finish(message.as_slice().try_into().unwrap()).unwrap();
                assert!(same(&alice.expose().add(bob.expose()), &input.mul(factor.expose())));
                factors.push(factor.expose().to_bytes());
            }
        }
        factors.sort_unstable();
        factors.dedup();
        assert_eq!(factors.len(), 2 * inputs.len());
    }

    /// Every part of Bob's message that a cheating Bob could alter, and a message for another run.
    #[test]
    fn altered_or_replayed_sample_fails_the_check() {
        let (first, second) = pair(&mut seeded(2));
        let (_bob, sampled) = sample(&BINDING, &second.receiver, &mut seeded(3));
        let ends = [SAMPLE_BYTES - 1, SAMPLE_BYTES - 33, SAMPLE_BYTES - 48];
        for place in (0..SAMPLE_BYTES).step_by(67).chain(ends) {
            let mut altered = sampled.clone();
            altered[place] ^= 4;
            let refused = answer(&first.sender, &altered, &Scalar::one(), 4).err();
            assert_eq!(refused, Some(OtError::CheckFailed), "byte {place}");
        }
        let (_, other) = sample(&[4; 32], &second.receiver, &mut seeded(3));
        assert_eq!(answer(&first.sender, &other, &Scalar::one(), 4).err(), Some(OtError::CheckFailed));
    }

    /// Every part of Alice's message. A masked scalar that Bob does not choose is altered without effect on his share,
    /// so both of a row are, and the challenge depends on every byte.
    #[test]
    fn altered_answer_fails_the_check() {
        let (first, second) = pair(&mut seeded(5));
        let finish = |message: &[u8]| {
            let (bob, sampled) = sample(&BINDING, &second.receiver, &mut seeded(6));
            let (_, genuine) = answer(&first.sender, &sampled, &Scalar::from_u64(7), 8).unwrap();
            let message = if message.is_empty() { genuine.as_slice() } else { message };
            (bob.finish(message.try_into().unwrap()).err(), genuine)
        };
        let (accepted, message) = finish(&[]);
        assert_eq!(accepted, None);
        let ends = [MULTIPLY_BYTES - 1, MULTIPLY_BYTES - 33];
        for place in (0..MULTIPLY_BYTES).step_by(1009).chain(ends) {
            let mut altered = message.clone();
            altered[place] ^= 1;
            let refused = finish(&altered).0;
            assert!(
                matches!(refused, Some(OtError::CheckFailed | OtError::Malformed)),
                "byte {place}: {refused:?}"
            );
        }
        let mut out_of_range = message;
        out_of_range[TRANSFER_SALT_BYTES..TRANSFER_SALT_BYTES + SCALAR_BYTES].fill(0xff);
        assert_eq!(finish(&out_of_range).0, Some(OtError::Malformed));
    }

    /// Alice masks another scalar in one row and computes everything else as the rules say, for that row too: she is
    /// caught whenever Bob has chosen it, which is half of the time, and otherwise learns that he has not.
    #[test]
    fn another_scalar_in_one_row_is_caught_when_the_row_is_chosen() {
        let (first, second) = pair(&mut seeded(9));
        let mut refused = 0;
        let rows = 24;
        for row in 0..rows {
            let (bob, sampled) = sample(&BINDING, &second.receiver, &mut seeded(10));
            let chosen = bob.correlation.choice_bits()[row] == 1;
            let message = cheat(&first.sender, &sampled, row);
            let result = bob.finish(message.as_slice().try_into().unwrap());
            assert_eq!(result.err(), chosen.then_some(OtError::CheckFailed), "row {row}");
            refused += usize::from(chosen);
        }
        assert!(refused > 4 && refused < rows - 4, "{refused} of {rows} rows");
    }

    /// [`multiply`] with 1 in place of 7 in one row.
    fn cheat(state: &SenderState, sampled: &[u8], cheated: usize) -> Vec<u8> {
        let correlation = state.extend(&BINDING, sampled.try_into().unwrap()).unwrap();
        let (salt, keys) = correlation.transfers(&mut seeded(11));
        let run = Run::new(&BINDING, sampled);
        let pads = run.pads(&salt);
        let (seven, mask) = (Scalar::from_u64(7), Scalar::from_u64(8));
        let mut message = salt.to_vec();
        for (number, [zero, one]) in (0u64..).zip(keys.iter()) {
            let here = number == u64::try_from(cheated).unwrap();
            let input = if here { Scalar::one() } else { seven.copy() };
            let (zero, one) = (pads.of(number, *zero), pads.of(number, *one));
            for (input, (zero, one)) in [&input, &mask].into_iter().zip(zero.iter().zip(&one)) {
                message.extend_from_slice(&zero.sub(one).add(input).to_bytes());
            }
        }
        let challenge = run.challenge(&message);
        let mut check = run.check(&salt);
        for (number, [zero, _]) in (0u64..).zip(keys.iter()) {
            let [product, mask] = pads.of(number, *zero);
            check.add(&combine(&challenge, &product, &mask));
        }
        message.extend_from_slice(&combine(&challenge, &seven, &mask).to_bytes());
        message.extend_from_slice(&check.finish());
        message
    }

    /// One key in two rows, in two columns, and in two runs.
    #[test]
    fn pads_of_two_rows_under_one_key_differ() {
        let pads = |salt: u8, number: u64, key: u128| {
            let pads = Run::new(&BINDING, b"sample").pads(&[salt; TRANSFER_SALT_BYTES]);
            pads.of(number, key).map(|pad| pad.to_bytes())
        };
        assert_eq!(pads(0, 7, 5), pads(0, 7, 5));
        let mut seen = Vec::new();
        for number in [0, 1, 2, 415] {
            for (salt, key) in [(0, 5), (0, 6), (1, 5)] {
                seen.extend(pads(salt, number, key));
            }
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 4 * 3 * COLUMNS);
    }

    /// Two answers to one message, as of a party that was restored: the differences of masked scalars of one answer to
    /// those of the other would show the difference of the scalars if a pad came twice.
    #[test]
    fn answers_to_one_message_share_no_pad() {
        let (first, second) = pair(&mut seeded(12));
        let (_bob, sampled) = sample(&BINDING, &second.receiver, &mut seeded(13));
        let of =
            |input: u64, seed| answer(&first.sender, &sampled, &Scalar::from_u64(input), seed).unwrap().1;
        let masked = |message: &[u8]| -> Vec<Scalar> {
            let masked = &message[TRANSFER_SALT_BYTES..][..MASKED_BYTES];
            masked.as_chunks().0.iter().map(|bytes| Scalar::from_bytes(bytes).unwrap()).collect()
        };
        // Another generator; and the same one with another scalar.
        for (one, other) in [(of(5, 1), of(6, 2)), (of(5, 1), of(5, 2)), (of(5, 1), of(6, 1))] {
            let (one, other) = (masked(&one), masked(&other));
            let mut differences: Vec<_> = one.iter().zip(&other).map(|(a, b)| a.sub(b).to_bytes()).collect();
            let count = differences.len();
            differences.sort_unstable();
            differences.dedup();
            assert_eq!(differences.len(), count);
        }
        assert_eq!(of(5, 1), of(5, 1));
    }
}
