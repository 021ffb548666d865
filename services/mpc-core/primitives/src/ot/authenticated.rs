//! Authenticated bits: an extension of any length, whose rows are used as they are.
//!
//! The receiver has random bits x and MACs M, the sender its Δ and keys K, with M = K ⊕ x·Δ in each row. This is the
//! correlation of [`super::extension`], with each leaf of a tree as an AES key whose counter mode gives a column of any
//! length, and the same check: a linear hash of each column under a key drawn from the message. A receiver that
//! deviates guesses bits of Δ and is caught unless all its guesses are right; as there, [`OtError::CheckFailed`] ends
//! the use of the state with that peer.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use rand_core::{CryptoRng, Rng};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::block::{Permutation, absorb, half, hash, read_all, transpose};
use super::check::{OtError, same_digest};
use super::parameters::{CORRELATION_BITS, FIELD_BITS, LEAVES, TREES};
use super::state::{ReceiverState, SenderState};
use super::tree;
use crate::hedge::HedgedRng;

/// Bytes of the receiver's salt.
const SALT_BYTES: usize = 16;
/// Blocks of a column that are expanded and added together, so that they stay in the processor's cache.
const STRIPE: usize = 32;

const SEED: &str = "coterie/ot-authenticated-seed/1";
const CHALLENGE: &str = "coterie/ot-authenticated-challenge/1";
const HASHES: &str = "coterie/ot-authenticated-hashes/1";

/// Blocks of a column: the bits, then one block that hides its hash.
const fn blocks(count: usize) -> usize {
    count.div_ceil(128) + 1
}

/// Bytes of the message that authenticates this many bits.
#[must_use]
pub const fn authentication_bytes(count: usize) -> usize {
    SALT_BYTES + (TREES - 1) * 16 * blocks(count) + 16 + 32
}

/// The receiver's half: random bits and their MACs.
pub struct AuthenticatedBits {
    /// The bits, 0 or 1.
    pub bits: Zeroizing<Vec<u8>>,
    /// The MAC of each.
    pub macs: Zeroizing<Vec<u128>>,
}

impl ReceiverState {
    /// Authenticates random bits: the bits with their MACs, and the message for the sender.
    pub fn authenticate(
        &self,
        binding: &[u8; 32],
        count: usize,
        rng: &mut dyn CryptoRng,
    ) -> (AuthenticatedBits, Vec<u8>) {
        let mut roots = Zeroizing::new(Vec::with_capacity(16 * TREES));
        roots.extend(self.roots.iter().flat_map(|root| root.to_le_bytes()));
        let mut rng = HedgedRng::new("receiver authenticates", &[binding, &roots], rng);
        let mut salt = [0u8; SALT_BYTES];
        rng.fill_bytes(&mut salt);
        let leaves = tree::leaves(&self.binding, &self.roots);
        let length = blocks(count);
        let mut message = Vec::with_capacity(authentication_bytes(count));
        message.extend_from_slice(&salt);
        let mut choice = Zeroizing::new(Vec::new());
        let mut columns = Columns::new(length);
        let seeds = seeds(binding, &salt, &leaves);
        for (tree, (seeds, columns)) in
            seeds.chunks_exact(LEAVES).zip(columns.0.chunks_exact_mut(FIELD_BITS * length)).enumerate()
        {
            let mut sum = Zeroizing::new(vec![0u128; length]);
            expand(seeds, 0, Some(&mut sum), columns, length);
            if tree == 0 {
                choice = sum;
            } else {
                message
                    .extend(sum.iter().zip(choice.iter()).flat_map(|(sum, own)| (sum ^ own).to_le_bytes()));
            }
        }
        let column_hash = ColumnHash::new(binding, &message);
        message.extend_from_slice(&column_hash.apply(&choice).to_le_bytes());
        message.extend_from_slice(&digest(columns.iter().map(|column| column_hash.apply(column))));
        let mut bits = Zeroizing::new(Vec::with_capacity(count));
        bits.extend(
            (0..count).map(|i| choice.get(i / 128).map_or(0, |block| (block >> (i % 128)) as u8 & 1)),
        );
        (AuthenticatedBits { bits, macs: columns.rows(count) }, message)
    }
}

impl SenderState {
    /// The keys of the bits that the receiver's message authenticates. After [`OtError::CheckFailed`] the state must be
    /// destroyed.
    pub fn authenticate(
        &self,
        binding: &[u8; 32],
        count: usize,
        message: &[u8],
    ) -> Result<Zeroizing<Vec<u128>>, OtError> {
        if message.len() != authentication_bytes(count) {
            return Err(OtError::Malformed);
        }
        let length = blocks(count);
        let delta = *self.delta.expose();
        let (sent, check) = message.split_at(message.len() - 48);
        let (choice_hash, expected) = check.split_first_chunk::<16>().ok_or(OtError::Malformed)?;
        let expected = expected.try_into().map_err(|_| OtError::Malformed)?;
        let (salt, differences) = sent.split_first_chunk::<SALT_BYTES>().ok_or(OtError::Malformed)?;
        let differences = read_all(differences);
        let mut columns = Columns::new(length);
        let seeds = seeds(binding, salt, &self.leaves);
        for (seeds, columns) in
            seeds.chunks_exact(LEAVES - 1).zip(columns.0.chunks_exact_mut(FIELD_BITS * length))
        {
            expand(seeds, 1, None, columns, length);
        }
        for (bit, column) in columns.0.chunks_exact_mut(length).enumerate().skip(FIELD_BITS) {
            let mask = mask_of(delta, bit);
            let difference = differences.chunks_exact(length).nth(bit / FIELD_BITS - 1).unwrap_or(&[]);
            for (block, difference) in column.iter_mut().zip(difference) {
                *block ^= difference & mask;
            }
        }
        let column_hash = ColumnHash::new(binding, sent);
        let choice_hash = u128::from_le_bytes(*choice_hash);
        let hashes = columns
            .iter()
            .enumerate()
            .map(|(bit, column)| column_hash.apply(column) ^ (choice_hash & mask_of(delta, bit)));
        if !same_digest(&digest(hashes), expected) {
            return Err(OtError::CheckFailed);
        }
        Ok(columns.rows(count))
    }

    /// Δ itself: the key of every MAC that this side can check.
    pub fn global_key(&self) -> Zeroizing<u128> {
        Zeroizing::new(*self.delta.expose())
    }
}

/// All columns, one after the other.
struct Columns(Zeroizing<Vec<u128>>, usize);

impl Columns {
    fn new(length: usize) -> Self {
        Self(Zeroizing::new(vec![0; CORRELATION_BITS * length]), length)
    }

    fn iter(&self) -> impl Iterator<Item = &[u128]> {
        self.0.chunks_exact(self.1)
    }

    /// The first rows of the matrix, without the hiding block.
    fn rows(&self, count: usize) -> Zeroizing<Vec<u128>> {
        let mut rows = Zeroizing::new(Vec::with_capacity(128 * (self.1 - 1)));
        for place in 0..self.1 - 1 {
            let mut square = Zeroizing::new([0u128; 128]);
            for (word, column) in square.iter_mut().zip(self.iter()) {
                *word = column.get(place).copied().unwrap_or_default();
            }
            transpose(&mut square);
            rows.extend_from_slice(square.as_slice());
        }
        rows.truncate(count);
        rows
    }
}

/// The key of each leaf in this extension.
fn seeds(binding: &[u8; 32], salt: &[u8; SALT_BYTES], leaves: &[u128]) -> Zeroizing<Vec<u128>> {
    Permutation::new(SEED, &[binding, salt]).compress(leaves)
}

/// Adds the column of each seed to those of the bits that its place in the tree has set, and to the sum of all if asked
/// for.
fn expand(
    seeds: &[u128],
    first_place: usize,
    mut sum: Option<&mut Zeroizing<Vec<u128>>>,
    columns: &mut [u128],
    length: usize,
) {
    let ciphers: Vec<Aes128> = seeds.iter().map(|seed| Aes128::new(&seed.to_le_bytes().into())).collect();
    let mut stream = Zeroizing::new([[0u8; 16]; STRIPE]);
    for start in (0..length).step_by(STRIPE) {
        let end = length.min(start + STRIPE);
        for (place, cipher) in (first_place..).zip(&ciphers) {
            for (number, block) in (start as u128..).zip(stream.iter_mut()) {
                *block = number.to_le_bytes();
            }
            cipher.encrypt_blocks(Block::cast_slice_from_core_mut(stream.as_mut_slice()));
            let add = |column: Option<&mut [u128]>| {
                for (block, word) in column.into_iter().flatten().zip(stream.iter()) {
                    *block ^= u128::from_le_bytes(*word);
                }
            };
            if let Some(sum) = &mut sum {
                add(sum.get_mut(start..end));
            }
            for (bit, column) in columns.chunks_exact_mut(length).enumerate() {
                if (place >> bit) & 1 == 1 {
                    add(column.get_mut(start..end));
                }
            }
        }
    }
}

/// A linear hash of columns, keyed by everything that the receiver sent before it.
struct ColumnHash(Polyval);

impl ColumnHash {
    fn new(binding: &[u8; 32], sent: &[u8]) -> Self {
        Self(Polyval::new(&half(&hash(CHALLENGE, &[binding, sent])).into()))
    }

    fn apply(&self, column: &[u128]) -> u128 {
        let mut state = self.0.clone();
        let Some((mask, data)) = column.split_last() else { return 0 };
        for stripe in data.chunks(STRIPE) {
            let mut bytes = [polyval::Block::default(); STRIPE];
            for (place, block) in bytes.iter_mut().zip(stripe) {
                *place = block.to_le_bytes().into();
            }
            state.update(bytes.get(..stripe.len()).unwrap_or(&[]));
        }
        u128::from_le_bytes(state.finalize().into()) ^ mask
    }
}

fn digest(hashes: impl Iterator<Item = u128>) -> [u8; 32] {
    let mut state = Sha256::new();
    absorb(&mut state, HASHES.as_bytes());
    for hash in hashes {
        state.update(hash.to_le_bytes());
    }
    state.finalize().into()
}

/// All ones if bit `bit` of Δ is set, else zero; behind a barrier, so that no branch is made of it.
fn mask_of(delta: u128, bit: usize) -> u128 {
    0u128.wrapping_sub(core::hint::black_box((delta >> bit) & 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ot::{Initiator, PairState, Responder};
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn pair(rng: &mut ChaCha20Rng) -> (PairState, PairState) {
        let (initiator, request) = Initiator::begin_odd(&[1; 32], rng);
        let (responder, response) =
            Responder::answer_even(&[1; 32], request.as_slice().try_into().unwrap(), rng).unwrap();
        let (first, corrections) = initiator.finish(response.as_slice().try_into().unwrap(), rng).unwrap();
        (first, responder.finish(corrections.as_slice().try_into().unwrap()).unwrap())
    }

    #[test]
    fn every_bit_has_its_mac_in_both_directions_and_at_any_length() {
        for seed in 0..4 {
            let rng = &mut ChaCha20Rng::seed_from_u64(seed);
            let (first, second) = pair(rng);
            assert_eq!((*first.sender.global_key() & 1, *second.sender.global_key() & 1), (1, 0));
            for (sender, receiver) in [(&first.sender, &second.receiver), (&second.sender, &first.receiver)] {
                for count in [1, 127, 128, 129, 4096, 5000] {
                    let (own, message) = receiver.authenticate(&[5; 32], count, rng);
                    assert_eq!(message.len(), authentication_bytes(count));
                    let keys = sender.authenticate(&[5; 32], count, &message).unwrap();
                    assert_eq!((keys.len(), own.bits.len(), own.macs.len()), (count, count, count));
                    let delta = *sender.global_key();
                    for ((key, mac), bit) in keys.iter().zip(own.macs.iter()).zip(own.bits.iter()) {
                        assert_eq!(*mac, key ^ (delta * u128::from(*bit)));
                    }
                    let ones = own.bits.iter().filter(|bit| **bit == 1).count();
                    assert!(count < 4096 || ones.abs_diff(count / 2) < count / 10);
                }
            }
        }
    }

    #[test]
    fn bits_and_macs_of_one_binding_never_repeat() {
        let rng = &mut ChaCha20Rng::seed_from_u64(9);
        let (_, second) = pair(rng);
        let (first, _) = second.receiver.authenticate(&[5; 32], 256, rng);
        let (again, _) = second.receiver.authenticate(&[5; 32], 256, rng);
        assert!(first.macs.iter().all(|mac| !again.macs.contains(mac)));
        assert_ne!(*first.bits, *again.bits);
    }

    /// Another bit in one tree's difference is another choice there: caught unless Δ's digit is zero, and then without
    /// effect.
    #[test]
    fn an_altered_message_is_refused_or_without_effect() {
        let rng = &mut ChaCha20Rng::seed_from_u64(2);
        let (first, second) = pair(rng);
        let (own, message) = second.receiver.authenticate(&[5; 32], 300, rng);
        let delta = *first.sender.global_key();
        for place in (0..message.len()).step_by(13) {
            let mut altered = message.clone();
            altered[place] ^= 0x10;
            match first.sender.authenticate(&[5; 32], 300, &altered) {
                Err(error) => assert_eq!(error, OtError::CheckFailed),
                Ok(keys) => {
                    for ((key, mac), bit) in keys.iter().zip(own.macs.iter()).zip(own.bits.iter()) {
                        assert_eq!(*mac, key ^ (delta * u128::from(*bit)), "byte {place}");
                    }
                }
            }
        }
        for length in [0, 20, message.len() - 1, message.len() + 1] {
            let mut other = message.clone();
            other.resize(length, 0);
            assert_eq!(first.sender.authenticate(&[5; 32], 300, &other).err(), Some(OtError::Malformed));
        }
        assert_eq!(first.sender.authenticate(&[6; 32], 300, &message).err(), Some(OtError::CheckFailed));
    }

    /// The selective failure attack: other choices in one tree, with a proof for a guess of Δ's digit, pass exactly if
    /// it is right.
    #[test]
    fn a_cheating_receiver_passes_only_by_guessing_the_digit() {
        let rng = &mut ChaCha20Rng::seed_from_u64(3);
        let (first, second) = pair(rng);
        let delta = *first.sender.global_key();
        let length = blocks(300);
        for tree in [1, 9, TREES - 1] {
            let digit = (delta >> (FIELD_BITS * tree)) & (LEAVES as u128 - 1);
            for guess in 0..LEAVES as u128 {
                let (_, mut message) = second.receiver.authenticate(&[5; 32], 300, rng);
                // The receiver's own columns, again from its message's salt.
                let leaves = tree::leaves(&second.receiver.binding, &second.receiver.roots);
                let salt = message[..SALT_BYTES].try_into().unwrap();
                let seeds = seeds(&[5; 32], &salt, &leaves);
                let mut columns = Columns::new(length);
                let mut choice = Zeroizing::new(vec![0u128; length]);
                for (number, (seeds, columns)) in
                    seeds.chunks(LEAVES).zip(columns.0.chunks_mut(FIELD_BITS * length)).enumerate()
                {
                    expand(seeds, 0, (number == 0).then_some(&mut choice), columns, length);
                }
                message[SALT_BYTES + (tree - 1) * 16 * length + 16 + 9] ^= 1 << 5;
                for bit in (0..FIELD_BITS).filter(|bit| guess >> bit & 1 == 1) {
                    columns.0[(FIELD_BITS * tree + bit) * length + 1] ^= 1 << 77;
                }
                message.truncate(message.len() - 48);
                let column_hash = ColumnHash::new(&[5; 32], &message);
                message.extend_from_slice(&column_hash.apply(&choice).to_le_bytes());
                message.extend_from_slice(&digest(columns.iter().map(|column| column_hash.apply(column))));
                let result = first.sender.authenticate(&[5; 32], 300, &message);
                assert_eq!(result.is_ok(), guess == digit, "tree {tree} guess {guess}");
            }
        }
    }
}
