//! The state that a party keeps for a peer, and how a session extends it.

use rand_core::CryptoRng;
use zeroize::{Zeroize, Zeroizing};

use super::check::OtError;
use super::extension::{self, EXTENSION_BYTES, ReceiverCorrelation, SenderCorrelation};
use super::parameters::{LEAVES, TREES};
use super::{block, tree};
use crate::Secret;
use crate::hedge::HedgedRng;

/// Bytes of a stored [`PairState`].
pub const PAIR_STATE_BYTES: usize = SENDER_STATE_BYTES + RECEIVER_STATE_BYTES;
/// Bytes of a stored [`SenderState`].
const SENDER_STATE_BYTES: usize = 16 + 16 * TREES * (LEAVES - 1);
/// Bytes of a stored [`ReceiverState`].
const RECEIVER_STATE_BYTES: usize = 32 + 16 * TREES;

/// The state of one party for one peer, in each direction.
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

/// The state of the sender of the extension: Δ and, for each tree, all leaves but one.
pub struct SenderState {
    pub(super) delta: Secret<u128>,
    /// Tree by tree, by the difference (never 0) of the leaf's place to Δ's.
    pub(super) leaves: Zeroizing<Vec<u128>>,
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

/// The state of the receiver of the extension: the roots of its trees.
pub struct ReceiverState {
    /// The binding of the set-up, which parametrises the trees.
    pub(super) binding: [u8; 32],
    pub(super) roots: Zeroizing<Vec<u128>>,
}

impl ReceiverState {
    pub(super) fn generate(binding: &[u8; 32], rng: &mut dyn CryptoRng) -> Self {
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
