//! Multiplication of two parties' secrets into additive shares: random vector oblivious linear evaluation (Doerner, Kondi, Lee,
//! shelat 2023, eprint 2023/765, protocol 5.2).
//!
//! Bob draws a random b; Alice brings two scalars a; Alice gets c and Bob d with c + d = a·b for each. Bob speaks first (an extension
//! of the transfers), Alice answers, and that is all: Bob's b is the sum of a public gadget vector over his choice bits, Alice masks
//! her scalars with the transferred pads, and one check value for each transfer, a random combination of all columns, shows Bob that
//! she used the same scalars everywhere.
//!
//! | Symbol | Here | Value |
//! |---|---|---|
//! | ξ | [`EXTENDED`] | 416 = 256 + 2·80 choice bits: b stays uniform to 2^-80 whatever Alice learns by guessing bits |
//! | ℓ | [`PRODUCTS`] | 2 |
//! | ρ | 1 check column | a false answer passes with probability 2^-256 for each query of the hash |
//!
//! A failed check tells Alice bits of b that she guessed, as in [`crate::ot`]: the pair must never multiply again under this set-up.

use std::sync::LazyLock;

use rand_core::CryptoRng;
use sha2::{Digest, Sha256, Sha512};
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

use crate::Secret;
use crate::ot::block::{absorb, hash};
use crate::ot::{
    EXTENDED, EXTENSION_BYTES, OtError, ReceiverCorrelation, ReceiverState, SenderState, same_digest,
};
use crate::secp256k1::{
    SCALAR_BYTES, Scalar, decode_scalar, encode_scalar, random_scalar, reduce, reduce_wide,
};

/// Scalars that Alice brings.
pub const PRODUCTS: usize = 2;
/// Columns of pads: one for each product, one for the check.
const COLUMNS: usize = PRODUCTS + 1;
/// Blocks of pad for each transfer: two for each scalar.
const PAD_BLOCKS: usize = 2 * COLUMNS;

const MASKED_BYTES: usize = EXTENDED * COLUMNS * SCALAR_BYTES;
/// Bytes of Alice's message: the masked scalars, the check scalar, the check digest.
pub const MULTIPLY_BYTES: usize = MASKED_BYTES + SCALAR_BYTES + 32;
/// Bytes of Bob's message.
pub const SAMPLE_BYTES: usize = EXTENSION_BYTES;

const GADGET: &[u8] = b"coterie/vole-gadget/1";
const CHALLENGE: &str = "coterie/vole-challenge/1";
const CHECK: &str = "coterie/vole-check/1";

/// The public vector g: uniform scalars that nobody chose.
static GADGET_VECTOR: LazyLock<Vec<Scalar>> = LazyLock::new(|| {
    let element = |place: u32| {
        let mut hash = Sha512::new_with_prefix(GADGET);
        hash.update(place.to_be_bytes());
        reduce_wide(&hash.finalize().into())
    };
    (0..).take(EXTENDED).map(element).collect()
});

/// Bob between his message and Alice's. Used once.
#[must_use]
pub struct Bob {
    binding: [u8; 32],
    correlation: ReceiverCorrelation,
    factor: Secret<Scalar>,
}

/// Draws b, and makes Bob's message.
pub fn sample(binding: &[u8; 32], state: &ReceiverState, rng: &mut dyn CryptoRng) -> (Bob, Vec<u8>) {
    let (correlation, message) = state.extend(&hash(CHALLENGE, &[binding, b"ot"]), rng);
    let mut factor = Secret::new(Scalar::ZERO);
    for (choice, element) in correlation.choices().zip(GADGET_VECTOR.iter()) {
        *factor.expose_mut() += select(element, choice);
    }
    let binding = hash(CHALLENGE, &[binding, &message]);
    (Bob { binding, correlation, factor }, message)
}

/// Alice's whole part: her shares of a·b for each of her scalars, and the answer to Bob's message.
pub fn multiply(
    binding: &[u8; 32],
    state: &SenderState,
    sample: &[u8; SAMPLE_BYTES],
    scalars: &Secret<[Scalar; PRODUCTS]>,
    rng: &mut dyn CryptoRng,
) -> Result<(Secret<[Scalar; PRODUCTS]>, Vec<u8>), OtError> {
    let correlation = state.extend(&hash(CHALLENGE, &[binding, b"ot"]), sample)?;
    let binding = hash(CHALLENGE, &[binding, sample]);

    let rows = &correlation.rows;
    let flipped: Zeroizing<Vec<u128>> =
        Zeroizing::new(rows.iter().map(|row| row ^ correlation.delta.expose()).collect());
    let pads_zero = correlation.row_hash.pads::<PAD_BLOCKS>(rows);
    let pads_one = correlation.row_hash.pads::<PAD_BLOCKS>(&flipped);

    let [first, second] = *scalars.expose();
    let check_scalar = Secret::new(random_scalar(rng));
    let inputs = Secret::new([first, second, *check_scalar.expose()]);
    let mut message = Vec::with_capacity(MULTIPLY_BYTES);
    let mut zeros: Zeroizing<Vec<[Scalar; COLUMNS]>> = Zeroizing::new(Vec::with_capacity(EXTENDED));
    let mut shares = Secret::new([Scalar::ZERO; PRODUCTS]);
    for ((zero, one), element) in pads_zero.iter().zip(pads_one.iter()).zip(GADGET_VECTOR.iter()) {
        let (zero, one) = (pad_scalars(zero), pad_scalars(one));
        for ((input, zero), one) in inputs.expose().iter().zip(&zero).zip(&one) {
            message.extend_from_slice(&encode_scalar(&(zero - one + input)));
        }
        for (share, zero) in shares.expose_mut().iter_mut().zip(&zero) {
            *share -= element * zero;
        }
        zeros.push(zero);
    }

    let challenge = challenge(&binding, &message);
    let [theta_first, theta_second] = challenge;
    let response = check_scalar.expose() + theta_first * first + theta_second * second;
    let mut check = CheckDigest::new(&binding);
    for row in zeros.iter() {
        check.add(&combine(&challenge, row));
    }
    message.extend_from_slice(&encode_scalar(&response));
    message.extend_from_slice(&check.finish());
    Ok((shares, message))
}

impl Bob {
    /// b.
    pub fn factor(&self) -> &Secret<Scalar> {
        &self.factor
    }

    /// Checks Alice's answer and gives Bob's shares of the products.
    pub fn finish(self, message: &[u8; MULTIPLY_BYTES]) -> Result<Secret<[Scalar; PRODUCTS]>, OtError> {
        let (masked, rest) = message.split_at(MASKED_BYTES);
        let challenge = challenge(&self.binding, masked);
        let (response, digest) = rest.split_first_chunk::<SCALAR_BYTES>().ok_or(OtError::Malformed)?;
        let response = decode_scalar(response).ok_or(OtError::Malformed)?;
        let digest = digest.try_into().map_err(|_| OtError::Malformed)?;

        let pads = self.correlation.row_hash.pads::<PAD_BLOCKS>(&self.correlation.rows);
        let mut check = CheckDigest::new(&self.binding);
        let mut shares = Secret::new([Scalar::ZERO; PRODUCTS]);
        let rows = masked.as_chunks::<{ COLUMNS * SCALAR_BYTES }>().0;
        let transfers = pads.iter().zip(rows).zip(self.correlation.choices()).zip(GADGET_VECTOR.iter());
        for (((pad, masked), choice), element) in transfers {
            let mut row = Secret::new(pad_scalars(pad));
            for (scalar, masked) in row.expose_mut().iter_mut().zip(masked.as_chunks().0) {
                *scalar += select(&decode_scalar(masked).ok_or(OtError::Malformed)?, choice);
            }
            check.add(&(combine(&challenge, row.expose()) - select(&response, choice)));
            for (share, scalar) in shares.expose_mut().iter_mut().zip(row.expose()) {
                *share += element * scalar;
            }
        }
        if same_digest(&check.finish(), digest) { Ok(shares) } else { Err(OtError::CheckFailed) }
    }
}

/// `scalar` if `choice` is 1, zero if it is 0, in constant time.
fn select(scalar: &Scalar, choice: u8) -> Scalar {
    Scalar::conditional_select(&Scalar::ZERO, scalar, Choice::from(choice))
}

/// The pad of each column as a scalar.
fn pad_scalars(pad: &[[u8; 16]; PAD_BLOCKS]) -> [Scalar; COLUMNS] {
    let mut scalars = [Scalar::ZERO; COLUMNS];
    for (scalar, bytes) in scalars.iter_mut().zip(pad.as_flattened().as_chunks().0) {
        *scalar = reduce(bytes);
    }
    scalars
}

/// The check column plus the random combination of the others.
fn combine(challenge: &[Scalar; PRODUCTS], row: &[Scalar; COLUMNS]) -> Scalar {
    let ([theta_first, theta_second], [first, second, check]) = (challenge, row);
    check + (theta_first * first + theta_second * second)
}

fn challenge(binding: &[u8; 32], masked: &[u8]) -> [Scalar; PRODUCTS] {
    let seed = hash(CHALLENGE, &[binding, masked]);
    [0u8, 1].map(|place| reduce(&hash(CHALLENGE, &[&seed, &[place]])))
}

/// The hash of the check value of every transfer.
struct CheckDigest(Sha256);

impl CheckDigest {
    fn new(binding: &[u8; 32]) -> Self {
        let mut hash = Sha256::new();
        absorb(&mut hash, CHECK.as_bytes());
        absorb(&mut hash, binding);
        Self(hash)
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

    /// Every part of Alice's message: an altered mask is used where Bob's bit is 1, and enters the challenge everywhere.
    #[test]
    fn altered_answer_fails_the_check() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let (sender, receiver) = pair(&mut rng);
        let (_, sampled) = sample(&BINDING, &receiver, &mut rng);
        for place in
            [31, 32 + 31, 64 + 31, 96 * 200 + 20, MASKED_BYTES - 1, MASKED_BYTES + 31, MULTIPLY_BYTES - 1]
        {
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
