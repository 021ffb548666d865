//! Oblivious transfer: endemic base transfers, and their extension, both secure against malicious parties.
//!
//! Two parties set up once, in three messages: [`Initiator::begin`], [`Responder::answer`], [`Initiator::finish`],
//! [`Responder::finish`]. Base transfers run one way only; the first extension of that state takes their place the
//! other way, which halves the public-key work. Both end with a [`PairState`], which holds one state for each
//! direction. From then on every session extends by one message of the receiver: [`ReceiverState::extend`], then
//! [`SenderState::extend`]. The result is [`EXTENDED`] correlated transfers: the receiver holds choice bits β and rows
//! v, the sender a fixed Δ and rows w, with w = v ⊕ β·Δ in each row.
//!
//! | Step | From |
//! |---|---|
//! | base transfers on Ristretto | Masny, Rindal 2019 (eprint 2019/706), endemic, one sender point for all |
//! | all-but-one transfers from trees | Roy 2022 (eprint 2022/192), section 6, with its check |
//! | extension over F_2^k, repetition code | the same, sections 3 and 4, checked by a universal hash of each column |
//!
//! The roles are those of the extension: its *sender* is the receiver of the base transfers.
//!
//! A failed check is not harmless: by failing or not it tells the peer up to one bit of Δ for each bit it had guessed.
//! The caller must never use the state with that peer again, see [`OtError::CheckFailed`].
//!
//! `binding` is in every call a hash of all that must be the same on both sides: session, roles, parties. It should
//! never repeat, and nothing here breaks if it does: every step draws what it draws hedged with all that the step
//! knows, and pads are keyed by a fresh part of each side, see [`pads`].

pub mod authenticated;
mod base;
pub(crate) mod block;
mod extension;
pub(crate) mod pads;
mod random;
mod tree;

use rand_core::{CryptoRng, Rng};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use crate::Secret;
use crate::declassify::published;
use crate::hedge::HedgedRng;
pub use extension::{EXTENDED, EXTENSION_BYTES, ReceiverCorrelation, SenderCorrelation};
use pads::{SALT_BYTES, SenderSalt};
pub use random::TRANSFER_SALT_BYTES;

/// Bits of Δ, and number of base transfers: the computational security parameter.
pub const CORRELATION_BITS: usize = 128;
/// k: each tree has 2^k leaves. Chosen by measurement: see `docs/protocols/ecdsa.md`.
pub const FIELD_BITS: usize = 4;
/// 2^k.
const LEAVES: usize = 1 << FIELD_BITS;
/// 128/k trees.
const TREES: usize = CORRELATION_BITS / FIELD_BITS;

/// Bytes of the initiator's first message.
pub const REQUEST_BYTES: usize = base::REQUEST_BYTES;
/// Bytes of the responder's message.
pub const RESPONSE_BYTES: usize = base::ANSWER_BYTES + tree::CORRECTION_BYTES + EXTENSION_BYTES;
/// Bytes of the initiator's second message: its salt, then the corrections of the trees.
pub const CORRECTION_BYTES: usize = SALT_BYTES + tree::CORRECTION_BYTES;
/// Bytes of a stored [`PairState`].
pub const PAIR_STATE_BYTES: usize = SENDER_STATE_BYTES + RECEIVER_STATE_BYTES;
/// Bytes of a stored [`SenderState`].
const SENDER_STATE_BYTES: usize = 16 + 16 * TREES * (LEAVES - 1);
/// Bytes of a stored [`ReceiverState`].
const RECEIVER_STATE_BYTES: usize = 32 + 16 * TREES;

/// Why a step of a transfer failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtError {
    /// Not an encoding of the message: wrong length, or a point that is not canonical.
    Malformed,
    /// The consistency check failed. The state of this pair must never be used again.
    CheckFailed,
}

/// An initiator's first message: points where points belong.
pub struct Request(base::Request);

impl Request {
    /// `None` if one of the points is not canonical, or the identity.
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        base::Request::decode(bytes).ok().map(Self)
    }

    /// As it came.
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

/// What one party keeps for one peer: a state for each direction.
pub struct PairState {
    /// For extensions that the peer starts.
    pub sender: SenderState,
    /// For extensions that this party starts.
    pub receiver: ReceiverState,
}

impl PairState {
    /// Secret bytes, [`PAIR_STATE_BYTES`] long, from which [`PairState::from_bytes`] makes the same state.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(PAIR_STATE_BYTES));
        bytes.extend_from_slice(&self.sender.delta.expose().to_le_bytes());
        bytes.extend(self.sender.leaves.iter().flat_map(|leaf| leaf.to_le_bytes()));
        bytes.extend_from_slice(&self.receiver.binding);
        bytes.extend(self.receiver.roots.iter().flat_map(|root| root.to_le_bytes()));
        bytes
    }

    /// The state that was stored.
    pub fn from_bytes(bytes: &[u8; PAIR_STATE_BYTES]) -> Self {
        let (sender, receiver) = bytes.split_at(SENDER_STATE_BYTES);
        let mut blocks = block::read_all(sender);
        let leaves = Zeroizing::new(blocks.split_off(1));
        let delta = Secret::new(blocks.first().copied().unwrap_or_default());
        blocks.zeroize();
        let (head, roots) = receiver.split_at(32);
        let mut binding = [0u8; 32];
        binding.copy_from_slice(head);
        Self {
            sender: SenderState { delta, leaves },
            receiver: ReceiverState { binding, roots: Zeroizing::new(block::read_all(roots)) },
        }
    }
}

/// What the sender of the extension keeps: Δ and, for each tree, all leaves but one.
pub struct SenderState {
    delta: Secret<u128>,
    /// Tree by tree, by the difference (never 0) of the leaf's place to Δ's.
    leaves: Zeroizing<Vec<u128>>,
}

impl SenderState {
    /// Answers the receiver's message of one session. After [`OtError::CheckFailed`] the state must be destroyed.
    pub fn extend(
        &self,
        binding: &[u8; 32],
        message: &[u8; EXTENSION_BYTES],
    ) -> Result<SenderCorrelation, OtError> {
        extension::send(binding, *self.delta.expose(), &self.leaves, message)
    }

    /// Δ, to hedge with.
    pub(crate) fn delta_bytes(&self) -> Zeroizing<[u8; 16]> {
        Zeroizing::new(self.delta.expose().to_le_bytes())
    }
}

/// What the receiver of the extension keeps: the roots of its trees.
pub struct ReceiverState {
    /// The binding of the set-up, which parametrises the trees.
    binding: [u8; 32],
    roots: Zeroizing<Vec<u128>>,
}

impl ReceiverState {
    fn generate(binding: &[u8; 32], rng: &mut dyn CryptoRng) -> Self {
        let mut seed = Zeroizing::new([0u8; 16 * TREES]);
        rng.fill_bytes(seed.as_mut());
        Self { binding: *binding, roots: Zeroizing::new(block::read_all(seed.as_ref())) }
    }

    /// Starts one session: random choice bits, and the message that lets the sender correct its side.
    pub fn extend(&self, binding: &[u8; 32], rng: &mut dyn CryptoRng) -> (ReceiverCorrelation, Vec<u8>) {
        let mut roots = Zeroizing::new(Vec::with_capacity(16 * TREES));
        roots.extend(self.roots.iter().flat_map(|root| root.to_le_bytes()));
        let mut rng = HedgedRng::new("receiver extends", &[binding, &roots], rng);
        let leaves = tree::leaves(&self.binding, &self.roots);
        extension::receive(binding, &leaves, &mut rng)
    }
}

/// Whether two digests are equal, in constant time.
pub(crate) fn same_digest(a: &[u8; 32], b: &[u8; 32]) -> bool {
    published(a.as_slice().ct_eq(b.as_slice()).into()) // a failure ends the session for all to see
}

#[cfg(test)]
mod tests {
    use super::*;
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
