//! How two parties set up, in three messages.

use rand_core::{CryptoRng, Rng};
use zeroize::Zeroizing;

use super::check::OtError;
use super::extension::{EXTENSION_BYTES, ReceiverCorrelation};
use super::pads::{SALT_BYTES, SenderSalt};
use super::state::{PairState, ReceiverState, SenderState};
use super::{base, block, tree};
use crate::Secret;
use crate::declassify::published;
use crate::hedge::HedgedRng;

/// Bytes of the initiator's first message.
pub const REQUEST_BYTES: usize = base::REQUEST_BYTES;
/// Bytes of the responder's message.
pub const RESPONSE_BYTES: usize = base::ANSWER_BYTES + tree::CORRECTION_BYTES + EXTENSION_BYTES;
/// Bytes of the initiator's second message: its salt, then the corrections of the trees.
pub const CORRECTION_BYTES: usize = SALT_BYTES + tree::CORRECTION_BYTES;
/// An initiator's first message: points where points belong.
pub struct Request(base::Request);

impl Request {
    /// `None` if one of the points is not canonical, or the identity.
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        base::Request::decode(bytes).ok().map(Self)
    }

    /// The bytes that were decoded.
    pub fn as_bytes(&self) -> &[u8; REQUEST_BYTES] {
        &self.0.bytes
    }
}

/// Whether `bytes` are a responder's message at all: a point where one belongs.
pub fn is_response(bytes: &[u8]) -> bool {
    bytes.len() == RESPONSE_BYTES && bytes.first_chunk().is_some_and(base::is_point)
}

/// The side of a set-up that speaks first, between its messages.
pub struct Initiator {
    binding: [u8; 32],
    delta: Secret<u128>,
    base: base::Requester,
}

impl Initiator {
    /// Draws Δ and asks for the keys of its complement.
    pub fn begin(binding: &[u8; 32], rng: &mut dyn CryptoRng) -> (Self, Vec<u8>) {
        Self::begin_with("initiator begins", 0, binding, rng)
    }

    /// The same with the lowest bit of Δ set, as garbling needs it: 127 bits of Δ are secret.
    pub fn begin_odd(binding: &[u8; 32], rng: &mut dyn CryptoRng) -> (Self, Vec<u8>) {
        Self::begin_with("initiator begins for circuits", 1, binding, rng)
    }

    fn begin_with(purpose: &str, set: u128, binding: &[u8; 32], rng: &mut dyn CryptoRng) -> (Self, Vec<u8>) {
        let mut rng = HedgedRng::new(purpose, &[binding], rng);
        let mut bytes = Zeroizing::new([0u8; 16]);
        rng.fill_bytes(bytes.as_mut());
        let delta = Secret::new(u128::from_le_bytes(*bytes) | set);
        let (base, request) = base::Requester::new(binding, &tree::choices(*delta.expose()), &mut rng);
        (Self { binding: *binding, delta, base }, request)
    }

    /// Checks the response, and makes the message that completes the other direction.
    pub fn finish(
        self,
        response: &[u8; RESPONSE_BYTES],
        rng: &mut dyn CryptoRng,
    ) -> Result<(PairState, Vec<u8>), OtError> {
        let (answer, rest) = split::<{ base::ANSWER_BYTES }>(response)?;
        let (corrections, extension) = split::<{ tree::CORRECTION_BYTES }>(rest)?;
        let extension = extension.try_into().map_err(|_| OtError::Malformed)?;
        let keys = self.base.receive(answer)?;
        let leaves = tree::puncture(&self.binding, *self.delta.expose(), &keys, corrections)?;
        let sender = SenderState { delta: self.delta, leaves };

        let reverse = reverse_binding(&self.binding);
        let correlation = sender.extend(&reverse, extension)?;
        let delta = sender.delta_bytes();
        let mut rng = HedgedRng::new("initiator finishes", &[&reverse, delta.as_ref(), response], rng);
        let salt = SenderSalt::draw(&mut rng);
        let keys = correlation.key_pairs(&salt);
        let receiver = ReceiverState::generate(&reverse, &mut rng);
        let mut message = Vec::with_capacity(CORRECTION_BYTES);
        message.extend_from_slice(salt.as_bytes());
        tree::correct(&reverse, &receiver.roots, &keys, &mut message);
        Ok((PairState { sender, receiver }, message))
    }
}

/// The side of a set-up that answers, while it waits for the initiator's second message.
pub struct Responder {
    binding: [u8; 32],
    receiver: ReceiverState,
    delta: Secret<u128>,
    correlation: ReceiverCorrelation,
}

impl Responder {
    /// [`Responder::respond`] to a request as it came.
    pub fn answer(
        binding: &[u8; 32],
        request: &[u8; REQUEST_BYTES],
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Vec<u8>), OtError> {
        let request = Request::decode(request).ok_or(OtError::Malformed)?;
        Ok(Self::respond(binding, &request, rng))
    }

    /// The same with the lowest bit of its own Δ clear: the counterpart of [`Initiator::begin_odd`].
    pub fn answer_even(
        binding: &[u8; 32],
        request: &[u8; REQUEST_BYTES],
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Vec<u8>), OtError> {
        let request = Request::decode(request).ok_or(OtError::Malformed)?;
        Ok(Self::respond_where(|delta| published(delta & 1) == 0, binding, &request, rng))
    }

    /// Answers the request, and uses the new state at once to choose its own Δ.
    pub fn respond(binding: &[u8; 32], request: &Request, rng: &mut dyn CryptoRng) -> (Self, Vec<u8>) {
        Self::respond_where(|_| true, binding, request, rng)
    }

    /// Repeats the choice of its Δ, with a fresh salt, until it is acceptable. The condition is known to everybody.
    fn respond_where(
        acceptable: impl Fn(u128) -> bool,
        binding: &[u8; 32],
        request: &Request,
        rng: &mut dyn CryptoRng,
    ) -> (Self, Vec<u8>) {
        let mut rng = HedgedRng::new("responder answers", &[binding, request.as_bytes()], rng);
        let (keys, answer) = base::answer(binding, &request.0, &mut rng);
        let receiver = ReceiverState::generate(binding, &mut rng);
        let mut response = Vec::with_capacity(RESPONSE_BYTES);
        response.extend_from_slice(&answer);
        tree::correct(binding, &receiver.roots, &keys, &mut response);
        let (correlation, extension, delta) = loop {
            let (correlation, extension) = receiver.extend(&reverse_binding(binding), &mut rng);
            let delta = Secret::new(tree::delta_of(correlation.choices()));
            if acceptable(*delta.expose()) {
                break (correlation, extension, delta);
            }
        };
        response.extend_from_slice(&extension);
        (Self { binding: *binding, receiver, delta, correlation }, response)
    }

    /// Checks the initiator's second message.
    pub fn finish(self, corrections: &[u8; CORRECTION_BYTES]) -> Result<PairState, OtError> {
        let binding = reverse_binding(&self.binding);
        let (salt, corrections) = split::<SALT_BYTES>(corrections)?;
        let corrections = corrections.try_into().map_err(|_| OtError::Malformed)?;
        let keys = self.correlation.keys(&SenderSalt::new(salt));
        let leaves = tree::puncture(&binding, *self.delta.expose(), &keys, corrections)?;
        Ok(PairState { sender: SenderState { delta: self.delta, leaves }, receiver: self.receiver })
    }
}

/// The binding of the direction in which the initiator is the receiver.
fn reverse_binding(binding: &[u8; 32]) -> [u8; 32] {
    block::hash("coterie/ot-reverse/1", &[binding])
}

fn split<const N: usize>(bytes: &[u8]) -> Result<(&[u8; N], &[u8]), OtError> {
    bytes.split_first_chunk::<N>().ok_or(OtError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ot::extension::EXTENDED;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn set_up(rng: &mut ChaCha20Rng) -> (PairState, PairState) {
        let (initiator, request) = Initiator::begin(&[1; 32], rng);
        let (responder, response) =
            Responder::answer(&[1; 32], request.as_slice().try_into().unwrap(), rng).unwrap();
        assert_eq!(response.len(), RESPONSE_BYTES);
        let (first, corrections) = initiator.finish(response.as_slice().try_into().unwrap(), rng).unwrap();
        (first, responder.finish(corrections.as_slice().try_into().unwrap()).unwrap())
    }

    #[test]
    fn both_directions_are_correlated() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (first, second) = set_up(&mut rng);
        assert_ne!(first.sender.delta.expose(), second.sender.delta.expose());
        let second = PairState::from_bytes(second.to_bytes().as_slice().try_into().unwrap());
        for (sender, receiver) in [(&first.sender, &second.receiver), (&second.sender, &first.receiver)] {
            let (received, message) = receiver.extend(&[5; 32], &mut rng);
            let sent = sender.extend(&[5; 32], message.as_slice().try_into().unwrap()).unwrap();
            assert_eq!(sent.rows.len(), EXTENDED);
            for ((w, v), choice) in sent.rows.iter().zip(received.rows.iter()).zip(received.choices()) {
                assert_eq!(w ^ v, if choice == 1 { *sender.delta.expose() } else { 0 });
            }
            let ones = received.choices().filter(|choice| *choice == 1).count();
            assert!((150..266).contains(&ones), "{ones} of 416 choices");
        }
    }

    /// A receiver that uses another choice column in one tree learns whether Δ's digit there is zero; it is caught
    /// unless it is.
    #[test]
    fn inconsistent_choices_are_caught() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let (first, second) = set_up(&mut rng);
        let (_, message) = second.receiver.extend(&[5; 32], &mut rng);
        for byte in (16..EXTENSION_BYTES - 48).step_by(31) {
            let mut altered: [u8; EXTENSION_BYTES] = message.as_slice().try_into().unwrap();
            altered[byte] ^= 1;
            assert_eq!(first.sender.extend(&[5; 32], &altered).err(), Some(OtError::CheckFailed));
        }
    }

    /// A set-up that starts twice from one state of the initiator's generator, and a responder that says something else
    /// the second time: no key of the reverse transfers, no root and no salt comes twice. With the generator at the
    /// same place and the same response, the same message.
    #[test]
    fn initiator_that_repeats_its_generator_masks_nothing_twice() {
        let corrections = |responder_seed: u64| {
            let (initiator, request) = Initiator::begin(&[1; 32], &mut ChaCha20Rng::seed_from_u64(1));
            let mut other = ChaCha20Rng::seed_from_u64(responder_seed);
            let request = request.as_slice().try_into().unwrap();
            let (responder, response) = Responder::answer(&[1; 32], request, &mut other).unwrap();
            let response = response.as_slice().try_into().unwrap();
            let (_, message) = initiator.finish(response, &mut ChaCha20Rng::seed_from_u64(2)).unwrap();
            assert!(responder.finish(message.as_slice().try_into().unwrap()).is_ok());
            message
        };
        let (first, second) = (corrections(10), corrections(11));
        assert_eq!(first, corrections(10));
        assert!(first.as_chunks::<16>().0.iter().zip(second.as_chunks::<16>().0).all(|(a, b)| a != b));
    }

    /// The responder derives its keys of the reverse direction with the initiator's salt: with another one nothing
    /// fits.
    #[test]
    fn altered_salt_of_the_initiator_fails() {
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        for place in [0, SALT_BYTES - 1] {
            let (initiator, request) = Initiator::begin(&[1; 32], &mut rng);
            let (responder, response) =
                Responder::answer(&[1; 32], request.as_slice().try_into().unwrap(), &mut rng).unwrap();
            let (_, corrections) =
                initiator.finish(response.as_slice().try_into().unwrap(), &mut rng).unwrap();
            let mut altered: [u8; CORRECTION_BYTES] = corrections.as_slice().try_into().unwrap();
            altered[place] ^= 1;
            assert_eq!(responder.finish(&altered).err(), Some(OtError::CheckFailed));
        }
    }

    #[test]
    fn altered_set_up_fails() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        for place in [40, 32 + 16, RESPONSE_BYTES - 1, RESPONSE_BYTES - EXTENSION_BYTES + 3] {
            let (initiator, request) = Initiator::begin(&[1; 32], &mut rng);
            let (_, response) =
                Responder::answer(&[1; 32], request.as_slice().try_into().unwrap(), &mut rng).unwrap();
            // Both sums of a transfer, so that the side taken is hit whatever Δ is.
            let mut altered: [u8; RESPONSE_BYTES] = response.as_slice().try_into().unwrap();
            altered[place] ^= 1;
            altered[place ^ 16] ^= 1;
            assert_eq!(
                initiator.finish(&altered, &mut rng).err(),
                Some(OtError::CheckFailed),
                "byte {place}"
            );
        }
        let (initiator, request) = Initiator::begin(&[1; 32], &mut rng);
        let (_, response) =
            Responder::answer(&[2; 32], request.as_slice().try_into().unwrap(), &mut rng).unwrap();
        let result = initiator.finish(response.as_slice().try_into().unwrap(), &mut rng);
        assert_eq!(result.err(), Some(OtError::CheckFailed));
    }
}
