//! Multiplication of two parties' secrets into additive shares: random vector oblivious linear evaluation (Doerner,
//! Kondi, Lee, shelat 2023, eprint 2023/765, protocol 5.2).
//!
//! Bob draws a random b; Alice brings two scalars a; Alice gets c and Bob d with c + d = a·b for each. Bob speaks first
//! (an extension of the transfers), Alice answers, and that is all: Bob's b is the sum of a public gadget vector over
//! his choice bits, Alice masks her scalars with the transferred pads, and one check value for each transfer, a random
//! combination of all columns, shows Bob that she used the same scalars everywhere. Pads, challenge and check are keyed
//! by Bob's message and by a salt that Alice draws after she has it ([`crate::ot::pads`]), so that neither can make the
//! other mask two values with one pad.
//!
//! | Symbol | Here | Value |
//! |---|---|---|
//! | ξ | [`EXTENDED`] | 416 = 256 + 2·80 choice bits: b stays uniform to 2^-80 whatever Alice learns by guessing bits |
//! | ℓ | [`PRODUCTS`] | 2 |
//! | ρ | 1 check column | a false answer passes with probability 2^-256 for each query of the hash |
//!
//! A failed check tells Alice bits of b that she guessed, as in [`crate::ot`]: the pair must never multiply again under
//! this set-up.

use std::sync::LazyLock;

use rand_core::CryptoRng;
use sha2::{Digest, Sha256, Sha512};
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

use crate::Secret;
use crate::hedge::HedgedRng;
use crate::ot::pads::{JointKey, SALT_BYTES, SenderSalt};
use crate::ot::{
    EXTENDED, EXTENSION_BYTES, OtError, ReceiverCorrelation, ReceiverState, SenderState, same_digest,
};
use crate::secp256k1::{
    ProductSum, SCALAR_BYTES, Scalar, decode_scalar, encode_scalar, random_scalar, reduce, reduce_wide, words,
};

/// Scalars that Alice brings.
pub const PRODUCTS: usize = 2;
/// Columns of pads: one for each product, one for the check.
const COLUMNS: usize = PRODUCTS + 1;
/// Blocks of pad for each transfer: two for each scalar.
const PAD_BLOCKS: usize = 2 * COLUMNS;

const MASKED_BYTES: usize = EXTENDED * COLUMNS * SCALAR_BYTES;
/// Bytes of Alice's message: her salt, the masked scalars, the check scalar, the check digest.
pub const MULTIPLY_BYTES: usize = SALT_BYTES + MASKED_BYTES + SCALAR_BYTES + 32;
/// Bytes of Bob's message.
pub const SAMPLE_BYTES: usize = EXTENSION_BYTES;

const GADGET: &[u8] = b"coterie/vole-gadget/1";
const CHALLENGE: &str = "coterie/vole-challenge/2";
const COEFFICIENT: &str = "coterie/vole-coefficient/2";
const CHECK: &str = "coterie/vole-check/2";

/// An element of the public vector, for sums of products as its words as well.
struct Element {
    scalar: Scalar,
    words: [u64; 4],
}

/// The public vector g: uniform scalars that nobody chose.
static GADGET_VECTOR: LazyLock<Vec<Element>> = LazyLock::new(|| {
    let element = |place: u32| {
        let mut hash = Sha512::new_with_prefix(GADGET);
        hash.update(place.to_be_bytes());
        let scalar = reduce_wide(&hash.finalize().into());
        Element { scalar, words: words(&encode_scalar(&scalar)) }
    };
    (0..).take(EXTENDED).map(element).collect()
});

/// Bob between his message and Alice's. Used once.
#[must_use]
pub struct Bob {
    correlation: ReceiverCorrelation,
    factor: Secret<Scalar>,
}

/// Draws b, and makes Bob's message.
pub fn sample(binding: &[u8; 32], state: &ReceiverState, rng: &mut dyn CryptoRng) -> (Bob, Vec<u8>) {
    let (correlation, message) = state.extend(binding, rng);
    let mut factor = Secret::new(Scalar::ZERO);
    for (choice, element) in correlation.choices().zip(GADGET_VECTOR.iter()) {
        *factor.expose_mut() += select(&element.scalar, choice);
    }
    (Bob { correlation, factor }, message)
}

/// Alice's whole part: her shares of a·b for each of her scalars, and the answer to Bob's message.
pub fn multiply(
    binding: &[u8; 32],
    state: &SenderState,
    sample: &[u8; SAMPLE_BYTES],
    scalars: &Secret<[Scalar; PRODUCTS]>,
    rng: &mut dyn CryptoRng,
) -> Result<(Secret<[Scalar; PRODUCTS]>, Vec<u8>), OtError> {
    let correlation = state.extend(binding, sample)?;
    // The salt and the check scalar: nobody has seen them before, whatever repeats.
    let mut rng = hedged(binding, state, sample, scalars, rng);
    let salt = SenderSalt::draw(&mut rng);
    let mut inputs = Secret::new([Scalar::ZERO; COLUMNS]);
    let known = scalars.expose().iter();
    for (input, scalar) in inputs.expose_mut().iter_mut().zip(known.chain([&random_scalar(&mut rng)])) {
        *input = *scalar;
    }
    let key = correlation.key(&salt);
    let [pads_zero, pads_one] = correlation.pads::<PAD_BLOCKS>(&key);

    let mut message = Vec::with_capacity(MULTIPLY_BYTES);
    message.extend_from_slice(salt.as_bytes());
    let mut zeros = Zeroizing::new(vec![[Scalar::ZERO; COLUMNS]; EXTENDED]);
    let mut one = Secret::new([Scalar::ZERO; COLUMNS]);
    let mut sums: [ProductSum; PRODUCTS] = Default::default();
    let pads = pads_zero.iter().zip(pads_one.iter()).zip(GADGET_VECTOR.iter());
    for (zero, ((pad_zero, pad_one), element)) in zeros.iter_mut().zip(pads) {
        read_pad(zero, pad_zero);
        read_pad(one.expose_mut(), pad_one);
        for ((input, zero), one) in inputs.expose().iter().zip(&*zero).zip(one.expose()) {
            message.extend_from_slice(&encode_scalar(&(zero - one + input)));
        }
        for (sum, bytes) in sums.iter_mut().zip(scalars_of(pad_zero)) {
            sum.add(&element.words, &words(bytes));
        }
    }
    let shares = Secret::new(sums.map(|sum| -sum.reduce()));

    let challenge = challenge(&key, message.split_at(SALT_BYTES).1);
    let response = combine(&challenge, inputs.expose());
    let mut check = CheckDigest::new(&key);
    for row in zeros.iter() {
        check.add(&combine(&challenge, row));
    }
    message.extend_from_slice(&encode_scalar(&response));
    message.extend_from_slice(&check.finish());
    Ok((shares, message))
}

/// The randomness of Alice's answer: good while her generator is, or while Δ or her scalars are secret; and fresh
/// whenever she multiplies other scalars or answers another message.
fn hedged(
    binding: &[u8; 32],
    state: &SenderState,
    sample: &[u8; SAMPLE_BYTES],
    scalars: &Secret<[Scalar; PRODUCTS]>,
    rng: &mut dyn CryptoRng,
) -> HedgedRng {
    let delta = state.delta_bytes();
    let [first, second] = scalars.expose();
    let (first, second) = (Zeroizing::new(encode_scalar(first)), Zeroizing::new(encode_scalar(second)));
    let parts: [&[u8]; 5] = [binding, sample, delta.as_ref(), first.as_ref(), second.as_ref()];
    HedgedRng::new("alice multiplies", &parts, rng)
}

impl Bob {
    /// b.
    pub fn factor(&self) -> &Secret<Scalar> {
        &self.factor
    }

    /// Checks Alice's answer and gives Bob's shares of the products.
    pub fn finish(self, message: &[u8; MULTIPLY_BYTES]) -> Result<Secret<[Scalar; PRODUCTS]>, OtError> {
        let (salt, rest) = message.split_first_chunk::<SALT_BYTES>().ok_or(OtError::Malformed)?;
        let (masked, rest) = rest.split_at(MASKED_BYTES);
        let (response, digest) = rest.split_first_chunk::<SCALAR_BYTES>().ok_or(OtError::Malformed)?;
        let response = decode_scalar(response).ok_or(OtError::Malformed)?;
        let digest = digest.try_into().map_err(|_| OtError::Malformed)?;

        let key = self.correlation.key(&SenderSalt::new(salt));
        let challenge = challenge(&key, masked);
        let pads = self.correlation.pads::<PAD_BLOCKS>(&key);
        let mut check = CheckDigest::new(&key);
        let mut sums: [ProductSum; PRODUCTS] = Default::default();
        let mut row = Secret::new([Scalar::ZERO; COLUMNS]);
        let rows = masked.as_chunks::<{ COLUMNS * SCALAR_BYTES }>().0;
        let transfers = pads.iter().zip(rows).zip(self.correlation.choices()).zip(GADGET_VECTOR.iter());
        for (((pad, masked), choice), element) in transfers {
            read_pad(row.expose_mut(), pad);
            for (scalar, masked) in row.expose_mut().iter_mut().zip(masked.as_chunks().0) {
                *scalar += select(&decode_scalar(masked).ok_or(OtError::Malformed)?, choice);
            }
            check.add(&(combine(&challenge, row.expose()) - select(&response, choice)));
            for (sum, scalar) in sums.iter_mut().zip(row.expose()) {
                sum.add(&element.words, &words(&encode_scalar(scalar)));
            }
        }
        let shares = Secret::new(sums.map(|sum| sum.reduce()));
        if same_digest(&check.finish(), digest) { Ok(shares) } else { Err(OtError::CheckFailed) }
    }
}

/// `scalar` if `choice` is 1, zero if it is 0, in constant time.
fn select(scalar: &Scalar, choice: u8) -> Scalar {
    Scalar::conditional_select(&Scalar::ZERO, scalar, Choice::from(choice))
}

/// The pad of each column as a scalar.
fn read_pad(scalars: &mut [Scalar; COLUMNS], pad: &[[u8; 16]; PAD_BLOCKS]) {
    for (scalar, bytes) in scalars.iter_mut().zip(scalars_of(pad)) {
        *scalar = reduce(bytes);
    }
}

/// The bytes of each column's pad.
fn scalars_of(pad: &[[u8; 16]; PAD_BLOCKS]) -> &[[u8; SCALAR_BYTES]] {
    pad.as_flattened().as_chunks().0
}

/// The check column plus the random combination of the others.
fn combine(challenge: &[Scalar; PRODUCTS], row: &[Scalar; COLUMNS]) -> Scalar {
    let ([theta_first, theta_second], [first, second, check]) = (challenge, row);
    check + (theta_first * first + theta_second * second)
}

fn challenge(key: &JointKey, masked: &[u8]) -> [Scalar; PRODUCTS] {
    let seed = key.hash(CHALLENGE, &[masked]);
    [0u8, 1].map(|place| reduce(&key.hash(COEFFICIENT, &[&seed, &[place]])))
}

/// The hash of the check value of every transfer.
struct CheckDigest(Sha256);

impl CheckDigest {
    fn new(key: &JointKey) -> Self {
        Self(key.hasher(CHECK))
    }

    fn add(&mut self, value: &Scalar) {
        self.0.update(encode_scalar(value));
    }

    fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ot::{Initiator, PairState, Responder};
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    const BINDING: [u8; 32] = [3; 32];

    fn pair(rng: &mut ChaCha20Rng) -> (SenderState, ReceiverState) {
        let (initiator, request) = Initiator::begin(&[1; 32], rng);
        let (responder, response) =
            Responder::answer(&[1; 32], request.as_slice().try_into().unwrap(), rng).unwrap();
        let (first, corrections) = initiator.finish(response.as_slice().try_into().unwrap(), rng).unwrap();
        let second = responder.finish(corrections.as_slice().try_into().unwrap()).unwrap();
        let reload =
            |state: &PairState| PairState::from_bytes(state.to_bytes().as_slice().try_into().unwrap());
        (reload(&first).sender, reload(&second).receiver)
    }

    fn inputs() -> Secret<[Scalar; PRODUCTS]> {
        Secret::new([Scalar::from(1234u64).invert().unwrap(), Scalar::from(99u64)])
    }

    #[test]
    fn shares_sum_to_the_products() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (sender, receiver) = pair(&mut rng);
        let mut factors = Vec::new();
        for session in 0..4u8 {
            let (bob, sampled) = sample(&[session; 32], &receiver, &mut rng);
            assert_eq!(sampled.len(), SAMPLE_BYTES);
            let factor = *bob.factor().expose();
            let (alice, message) = multiply(
                &[session; 32],
                &sender,
                sampled.as_slice().try_into().unwrap(),
                &inputs(),
                &mut rng,
            )
            .unwrap();
            assert_eq!(message.len(), MULTIPLY_BYTES);
            let bob = bob.finish(message.as_slice().try_into().unwrap()).unwrap();
            for ((a, c), d) in inputs().expose().iter().zip(alice.expose()).zip(bob.expose()) {
                assert_eq!(c + d, a * &factor);
            }
            factors.push(factor);
        }
        for (place, factor) in factors.iter().enumerate() {
            assert!(!factors[..place].contains(factor));
        }
    }

    /// Every part of Bob's message that a cheating Bob could alter.
    #[test]
    fn altered_sample_fails_the_check_or_the_other_binding() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let (sender, receiver) = pair(&mut rng);
        let (_bob, sampled) = sample(&BINDING, &receiver, &mut rng);
        for place in
            (0..SAMPLE_BYTES).step_by(67).chain([SAMPLE_BYTES - 1, SAMPLE_BYTES - 33, SAMPLE_BYTES - 48])
        {
            let mut altered: [u8; SAMPLE_BYTES] = sampled.as_slice().try_into().unwrap();
            altered[place] ^= 4;
            let result = multiply(&BINDING, &sender, &altered, &inputs(), &mut rng);
            assert_eq!(result.err(), Some(OtError::CheckFailed), "byte {place}");
        }
        let replayed =
            multiply(&[4; 32], &sender, sampled.as_slice().try_into().unwrap(), &inputs(), &mut rng);
        assert_eq!(replayed.err(), Some(OtError::CheckFailed));
    }

    /// The masked scalars of Alice's message, row by row.
    fn masked(message: &[u8]) -> Vec<[Scalar; COLUMNS]> {
        let rows = message[SALT_BYTES..][..MASKED_BYTES].as_chunks::<{ COLUMNS * SCALAR_BYTES }>().0;
        let scalar = |row: &[u8], column| *row.as_chunks::<SCALAR_BYTES>().0.get::<usize>(column).unwrap();
        rows.iter().map(|row| core::array::from_fn(|c| decode_scalar(&scalar(row, c)).unwrap())).collect()
    }

    /// Whether no row of one answer and the same row of the other show the difference of what they mask.
    fn no_pad_twice(first: &[u8], second: &[u8]) -> bool {
        let differences: Vec<[Scalar; COLUMNS]> = masked(first)
            .iter()
            .zip(masked(second))
            .map(|(a, b)| core::array::from_fn(|column| a[column] - b[column]))
            .collect();
        (0..COLUMNS).all(|column| {
            differences.iter().enumerate().all(|(row, difference)| {
                differences[..row].iter().all(|earlier| earlier[column] != difference[column])
            })
        })
    }

    /// A binding that runs twice at Alice, and a Bob who sends the same both times.
    #[test]
    fn answers_to_one_message_share_no_pad() {
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let (sender, receiver) = pair(&mut rng);
        let (_, sampled) = sample(&BINDING, &receiver, &mut rng);
        let sampled = sampled.as_slice().try_into().unwrap();
        let answer = |inputs: &Secret<[Scalar; PRODUCTS]>, seed| {
            multiply(&BINDING, &sender, sampled, inputs, &mut ChaCha20Rng::seed_from_u64(seed)).unwrap().1
        };
        let others = Secret::new([Scalar::from(5u64), Scalar::from(6u64)]);
        assert!(no_pad_twice(&answer(&inputs(), 1), &answer(&others, 2)));
        assert!(no_pad_twice(&answer(&inputs(), 1), &answer(&inputs(), 2)));
        // The generator repeats as well: other scalars get other pads, and the same ones the same answer.
        assert!(no_pad_twice(&answer(&inputs(), 1), &answer(&others, 1)));
        assert_eq!(answer(&inputs(), 1), answer(&inputs(), 1));
    }

    /// A binding and a state of the generator that repeat at Alice, and a Bob who says something else the second time.
    #[test]
    fn answers_to_two_messages_share_no_pad_though_the_generator_repeats() {
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let (sender, receiver) = pair(&mut rng);
        let mut answer = || {
            let (_, sampled) = sample(&BINDING, &receiver, &mut rng);
            let sampled = sampled.as_slice().try_into().unwrap();
            multiply(&BINDING, &sender, sampled, &inputs(), &mut ChaCha20Rng::seed_from_u64(1)).unwrap().1
        };
        let (first, second) = (answer(), answer());
        assert_ne!(first[..SALT_BYTES], second[..SALT_BYTES]);
        assert!(no_pad_twice(&first, &second));
    }

    /// A binding that runs twice at Bob: his own salt renews his columns, and an old answer does not fit.
    #[test]
    fn samples_of_one_binding_share_nothing_and_take_no_answer_to_another() {
        let mut rng = ChaCha20Rng::seed_from_u64(6);
        let (sender, receiver) = pair(&mut rng);
        let (bob, first) = sample(&BINDING, &receiver, &mut rng);
        let (again, second) = sample(&BINDING, &receiver, &mut rng);
        assert_ne!(bob.factor().expose(), again.factor().expose());
        let same = first.as_chunks::<16>().0.iter().zip(second.as_chunks::<16>().0).filter(|(a, b)| a == b);
        assert_eq!(same.count(), 0);
        let first = first.as_slice().try_into().unwrap();
        let (_, answer) = multiply(&BINDING, &sender, first, &inputs(), &mut rng).unwrap();
        let answer = answer.as_slice().try_into().unwrap();
        assert!(bob.finish(answer).is_ok());
        assert_eq!(again.finish(answer).err(), Some(OtError::CheckFailed));
    }

    /// Alice masks another scalar in one row, and computes the check as if Bob's bit there were `guess`.
    fn cheat(sender: &SenderState, sampled: &[u8; SAMPLE_BYTES], row: usize, guess: u8) -> Vec<u8> {
        let correlation = sender.extend(&BINDING, sampled).unwrap();
        let salt = SenderSalt::new(&[7; SALT_BYTES]);
        let key = correlation.key(&salt);
        let [zeros, ones] = correlation.pads::<PAD_BLOCKS>(&key);
        let [first, second] = *inputs().expose();
        let used = [first, second, Scalar::from(77u64)];
        let error = Scalar::from(5u64);
        let mut message = salt.as_bytes().to_vec();
        let mut rows = Vec::new();
        for (place, (pad_zero, pad_one)) in zeros.iter().zip(ones.iter()).enumerate() {
            let (mut zero, mut one) = ([Scalar::ZERO; COLUMNS], [Scalar::ZERO; COLUMNS]);
            read_pad(&mut zero, pad_zero);
            read_pad(&mut one, pad_one);
            for column in 0..COLUMNS {
                let mut masked = zero[column] - one[column] + used[column];
                if (place, column) == (row, 0) {
                    masked += error;
                }
                message.extend_from_slice(&encode_scalar(&masked));
            }
            rows.push(zero);
        }
        let challenge = challenge(&key, &message[SALT_BYTES..]);
        let mut check = CheckDigest::new(&key);
        for (place, zero) in rows.iter().enumerate() {
            let shift = if (place, guess) == (row, 1) { challenge[0] * error } else { Scalar::ZERO };
            check.add(&(combine(&challenge, zero) + shift));
        }
        message.extend_from_slice(&encode_scalar(&combine(&challenge, &used)));
        message.extend_from_slice(&check.finish());
        message
    }

    /// The selective failure attack of Alice: it passes exactly if she guesses Bob's bit.
    #[test]
    fn cheating_alice_passes_only_by_guessing_the_choice() {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let (sender, receiver) = pair(&mut rng);
        let mut choices = [0; 2];
        for row in [0, 1, 2, 3, 127, 128, 300, EXTENDED - 1] {
            for guess in [0, 1] {
                let (bob, sampled) = sample(&BINDING, &receiver, &mut rng);
                let choice = bob.correlation.choices().nth(row).unwrap();
                choices[usize::from(choice)] += 1;
                let message = cheat(&sender, sampled.as_slice().try_into().unwrap(), row, guess);
                let result = bob.finish(message.as_slice().try_into().unwrap());
                assert_eq!(result.is_ok(), choice == guess, "row {row}");
                assert!(result.is_ok() || matches!(result, Err(OtError::CheckFailed)));
            }
        }
        assert!(choices.iter().all(|count| *count > 0), "both bits occurred: {choices:?}");
    }

    /// Every part of Alice's message: an altered mask is used where Bob's bit is 1, and enters the challenge
    /// everywhere.
    #[test]
    fn altered_answer_fails_the_check() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let (sender, receiver) = pair(&mut rng);
        let (_, sampled) = sample(&BINDING, &receiver, &mut rng);
        for place in [
            0,
            SALT_BYTES + 31,
            SALT_BYTES + 95,
            96 * 200 + 20,
            MASKED_BYTES - 1,
            MULTIPLY_BYTES - 33,
            MULTIPLY_BYTES - 1,
        ] {
            let (bob, sampled_again) = sample(&BINDING, &receiver, &mut rng);
            let (_, message) = multiply(
                &BINDING,
                &sender,
                sampled_again.as_slice().try_into().unwrap(),
                &inputs(),
                &mut rng,
            )
            .unwrap();
            let mut altered: [u8; MULTIPLY_BYTES] = message.as_slice().try_into().unwrap();
            altered[place] ^= 1;
            assert_eq!(bob.finish(&altered).err(), Some(OtError::CheckFailed), "byte {place}");
        }
        let (bob, _) = sample(&BINDING, &receiver, &mut rng);
        let (_, other) =
            multiply(&BINDING, &sender, sampled.as_slice().try_into().unwrap(), &inputs(), &mut rng).unwrap();
        assert_eq!(bob.finish(other.as_slice().try_into().unwrap()).err(), Some(OtError::CheckFailed));
        let (bob, _) = sample(&BINDING, &receiver, &mut rng);
        assert_eq!(bob.finish(&[0xff; MULTIPLY_BYTES]).err(), Some(OtError::Malformed));
    }
}
