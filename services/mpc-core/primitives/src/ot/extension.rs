//! The extension: one message of the receiver turns the trees of a set-up into [`EXTENDED`] correlated transfers of one
//! session.
//!
//! Written as columns of bits, one bit for each transfer, tree i with leaves r_x gives the receiver u_i = Σ r_x and k
//! columns v_{i,b} = Σ_{x has bit b} r_x; the sender, who lacks the leaf at Δ_i, computes w_{i,b} = v_{i,b} ⊕
//! Δ_{i,b}·u_i. The receiver's choice bits are u_0; the message carries u_i ⊕ u_0 for the other trees, which the sender
//! folds in, so that all columns have the same choice bits. A receiver that sends other differences than these is
//! caught by a hash of each column, linear over F_2, under a key drawn from the message itself: it must satisfy h(w) =
//! h(v) ⊕ Δ·h(u). The last block of each column enters the hash unmultiplied: it hides what the hash would tell about
//! the rest, and is thrown away.

use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use super::block::{Permutation, absorb, half, hash, transpose};
use super::check::{OtError, same_digest};
use super::pads::{JointKey, Pads, RowHash, SALT_BYTES, SenderSalt, Sent};
use super::parameters::{CORRELATION_BITS, FIELD_BITS, LEAVES, TREES};
use crate::Secret;

/// Correlated transfers a session: one multiplication of 256-bit scalars with 80 bits of statistical security needs
/// so many.
pub const EXTENDED: usize = 416;

/// Blocks of a column that hold transfers; the last one is only part used.
const DATA_BLOCKS: usize = EXTENDED.div_ceil(128);
/// Bits used of the last of them.
const LAST_BITS: usize = EXTENDED - 128 * (DATA_BLOCKS - 1);
/// With the block that hides the hash.
const BLOCKS: usize = DATA_BLOCKS + 1;
/// A column on the wire: the used bits, then the hiding block.
const COLUMN_BYTES: usize = EXTENDED / 8 + 16;
const DIFFERENCE_BYTES: usize = (TREES - 1) * COLUMN_BYTES;
/// Salt, differences, hash of the choice column, digest of the hashes of the other columns.
pub const EXTENSION_BYTES: usize = SALT_BYTES + DIFFERENCE_BYTES + 16 + 32;

const LEAF: &str = "coterie/ot-leaf/2";
const CHALLENGE: &str = "coterie/ot-challenge/1";
const COLUMN_HASHES: &str = "coterie/ot-column-hashes/1";

type Column = [u128; BLOCKS];

/// The receiver's side of one session.
pub struct ReceiverCorrelation {
    /// Choice bit i is bit i mod 128 of block i / 128.
    choices: Zeroizing<Vec<u128>>,
    pub(super) rows: Zeroizing<Vec<u128>>,
    sent: Sent,
}

impl ReceiverCorrelation {
    /// The choice bit of each transfer, as 0 or 1.
    pub(crate) fn choices(&self) -> impl Iterator<Item = u8> + '_ {
        self.choices.iter().flat_map(|block| (0..128).map(move |bit| (block >> bit) as u8 & 1)).take(EXTENDED)
    }

    /// The key of this session, with the salt that the sender answered with.
    pub(crate) fn key(&self, salt: &SenderSalt) -> JointKey {
        JointKey::new(&self.sent, salt)
    }

    /// The pads of the chosen branch.
    pub(crate) fn pads<const N: usize>(&self, key: &JointKey) -> Pads<N> {
        RowHash::new(key).pads(&self.rows)
    }

    /// The key of the chosen branch of the first [`CORRELATION_BITS`] transfers, as base transfers give it.
    pub(super) fn keys(&self, salt: &SenderSalt) -> Zeroizing<Vec<u128>> {
        first_keys(&RowHash::new(&self.key(salt)), &self.rows)
    }
}

/// The sender's side of one session.
pub struct SenderCorrelation {
    pub(super) delta: Secret<u128>,
    pub(super) rows: Zeroizing<Vec<u128>>,
    sent: Sent,
}

impl SenderCorrelation {
    /// The key of this session, with the salt that goes to the receiver with the answer.
    pub(crate) fn key(&self, salt: &SenderSalt) -> JointKey {
        JointKey::new(&self.sent, salt)
    }

    /// A digest of the binding and the receiver's message.
    pub(super) fn received(&self) -> &[u8] {
        self.sent.as_bytes()
    }

    /// The pads of both branches.
    pub(crate) fn pads<const N: usize>(&self, key: &JointKey) -> [Pads<N>; 2] {
        let row_hash = RowHash::new(key);
        [row_hash.pads(&self.rows), row_hash.pads(&self.flipped())]
    }

    /// Both keys of the first [`CORRELATION_BITS`] transfers, as base transfers give them.
    pub(super) fn key_pairs(&self, salt: &SenderSalt) -> Zeroizing<Vec<[u128; 2]>> {
        let row_hash = RowHash::new(&self.key(salt));
        let (zeros, ones) = (first_keys(&row_hash, &self.rows), first_keys(&row_hash, &self.flipped()));
        Zeroizing::new(zeros.iter().zip(ones.iter()).map(|(zero, one)| [*zero, *one]).collect())
    }

    fn flipped(&self) -> Zeroizing<Vec<u128>> {
        Zeroizing::new(self.rows.iter().map(|row| row ^ self.delta.expose()).collect())
    }
}

fn first_keys(row_hash: &RowHash, rows: &[u128]) -> Zeroizing<Vec<u128>> {
    let pads = row_hash.pads::<1>(rows.get(..CORRELATION_BITS).unwrap_or(rows));
    Zeroizing::new(pads.iter().map(|[block]| u128::from_le_bytes(*block)).collect())
}

/// Turns the leaves of a pair into the columns of one session: block i of leaf x is π(x ⊕ i) ⊕ x, with a permutation
/// that hashes binding and receiver's salt. See `docs/protocols/ecdsa.md` for what is claimed of it.
struct Expansion(Permutation);

impl Expansion {
    fn new(binding: &[u8; 32], salt: &[u8]) -> Self {
        Self(Permutation::new(LEAF, &[binding, salt]))
    }

    /// The columns of some leaves of one tree.
    fn columns(&self, leaves: &[u128]) -> Zeroizing<Vec<Column>> {
        let mut blocks = Zeroizing::new(vec![[0u8; 16]; BLOCKS * leaves.len()]);
        for (blocks, leaf) in blocks.as_chunks_mut::<BLOCKS>().0.iter_mut().zip(leaves) {
            for (place, block) in (0u128..).zip(blocks) {
                *block = (leaf ^ place).to_le_bytes();
            }
        }
        self.0.apply(&mut blocks);
        let mut columns = Zeroizing::new(vec![[0; BLOCKS]; leaves.len()]);
        for ((column, blocks), leaf) in columns.iter_mut().zip(blocks.as_chunks::<BLOCKS>().0).zip(leaves) {
            for (word, block) in column.iter_mut().zip(blocks) {
                *word = u128::from_le_bytes(*block) ^ leaf;
            }
            if let Some(last) = column.get_mut(DATA_BLOCKS - 1) {
                *last &= (1 << LAST_BITS) - 1;
            }
        }
        columns
    }
}

/// The hash of columns, keyed by everything the receiver sent before it.
struct ColumnHash(Polyval);

impl ColumnHash {
    fn new(binding: &[u8; 32], sent: &[u8]) -> Self {
        Self(Polyval::new(&half(&hash(CHALLENGE, &[binding, sent])).into()))
    }

    fn apply(&self, column: &Column) -> u128 {
        let mut state = self.0.clone();
        let mut mask = 0;
        for (place, block) in column.iter().enumerate() {
            if place < DATA_BLOCKS {
                state.update(&[block.to_le_bytes().into()]);
            } else {
                mask = *block;
            }
        }
        u128::from_le_bytes(state.finalize().into()) ^ mask
    }
}

/// The receiver's columns of one session.
struct Columns {
    choice: Zeroizing<Column>,
    all: Zeroizing<[Column; CORRELATION_BITS]>,
}

impl Columns {
    /// Computes them, and appends the differences of the trees' choice columns to `message`.
    fn new(expansion: &Expansion, leaves: &[u128], message: &mut Vec<u8>) -> Self {
        let mut choice: Zeroizing<Column> = Zeroizing::new([0; BLOCKS]);
        let mut all = Zeroizing::new([[0; BLOCKS]; CORRELATION_BITS]);
        let trees = leaves.chunks_exact(LEAVES).zip(all.chunks_exact_mut(FIELD_BITS)).enumerate();
        for (tree, (leaves, columns)) in trees {
            let mut sum: Zeroizing<Column> = Zeroizing::new([0; BLOCKS]);
            for (place, column) in expansion.columns(leaves).iter().enumerate() {
                add(&mut sum, column);
                add_to_bits(columns, place, column);
            }
            if tree == 0 {
                *choice = *sum;
            } else {
                add(&mut sum, &choice);
                write_column(&sum, message);
            }
        }
        Self { choice, all }
    }

    /// Appends the check of everything that `message` holds.
    fn prove(&self, binding: &[u8; 32], message: &mut Vec<u8>) {
        let column_hash = ColumnHash::new(binding, message);
        message.extend_from_slice(&column_hash.apply(&self.choice).to_le_bytes());
        message.extend_from_slice(&hash_columns(self.all.iter().map(|column| column_hash.apply(column))));
    }
}

/// Everything the receiver does for one session.
pub(crate) fn receive(
    binding: &[u8; 32],
    leaves: &[u128],
    rng: &mut dyn CryptoRng,
) -> (ReceiverCorrelation, Vec<u8>) {
    let mut message = Vec::with_capacity(EXTENSION_BYTES);
    let mut salt = [0u8; SALT_BYTES];
    rng.fill_bytes(&mut salt);
    message.extend_from_slice(&salt);
    let columns = Columns::new(&Expansion::new(binding, &salt), leaves, &mut message);
    columns.prove(binding, &mut message);
    let choices = Zeroizing::new(columns.choice.iter().take(DATA_BLOCKS).copied().collect());
    let correlation =
        ReceiverCorrelation { choices, rows: rows(&columns.all), sent: Sent::new(binding, &message) };
    (correlation, message)
}

/// Everything the sender does for one session. `leaves` by difference to Δ.
pub(crate) fn send(
    binding: &[u8; 32],
    delta: u128,
    leaves: &[u128],
    message: &[u8; EXTENSION_BYTES],
) -> Result<SenderCorrelation, OtError> {
    let (sent, check) = message.split_at(SALT_BYTES + DIFFERENCE_BYTES);
    let (choice_hash, digest) = check.split_first_chunk::<16>().ok_or(OtError::Malformed)?;
    let digest = digest.try_into().map_err(|_| OtError::Malformed)?;
    let (salt, differences) = sent.split_at(SALT_BYTES);
    let expansion = Expansion::new(binding, salt);

    let mut columns = Zeroizing::new([[0; BLOCKS]; CORRELATION_BITS]);
    for (leaves, columns) in leaves.chunks_exact(LEAVES - 1).zip(columns.chunks_exact_mut(FIELD_BITS)) {
        for (difference, column) in (1..).zip(expansion.columns(leaves).iter()) {
            add_to_bits(columns, difference, column);
        }
    }
    let differences = differences.as_chunks::<COLUMN_BYTES>().0;
    for (column, bit) in columns.iter_mut().zip(0..).skip(FIELD_BITS) {
        if let Some(difference) = differences.get(bit / FIELD_BITS - 1) {
            add_if(column, &read_column(difference), mask_of(delta, bit));
        }
    }

    let column_hash = ColumnHash::new(binding, sent);
    let choice_hash = u128::from_le_bytes(*choice_hash);
    let hashes = columns
        .iter()
        .zip(0..)
        .map(|(column, bit)| column_hash.apply(column) ^ (choice_hash & mask_of(delta, bit)));
    if !same_digest(&hash_columns(hashes), digest) {
        return Err(OtError::CheckFailed);
    }
    Ok(SenderCorrelation {
        delta: Secret::new(delta),
        rows: rows(&columns),
        sent: Sent::new(binding, message),
    })
}

/// All ones if bit `bit` of Δ is set, else zero. Without the barrier the optimiser sees that a mask is one of two
/// values and makes a branch on the bit of it.
fn mask_of(delta: u128, bit: usize) -> u128 {
    0u128.wrapping_sub(core::hint::black_box((delta >> bit) & 1))
}

fn add(sum: &mut Column, column: &Column) {
    add_if(sum, column, u128::MAX);
}

fn add_if(sum: &mut Column, column: &Column, mask: u128) {
    for (sum, block) in sum.iter_mut().zip(column) {
        *sum ^= block & mask;
    }
}

/// Adds a leaf's column to those of the bits that its place in the tree has set. The place is public on both sides.
fn add_to_bits(columns: &mut [Column], place: usize, leaf: &Column) {
    for (bit, column) in columns.iter_mut().enumerate() {
        if (place >> bit) & 1 == 1 {
            add(column, leaf);
        }
    }
}

fn write_column(column: &Column, message: &mut Vec<u8>) {
    let mut left = EXTENDED / 8;
    for (place, block) in column.iter().enumerate() {
        let used = if place < DATA_BLOCKS { left.min(16) } else { 16 };
        message.extend(block.to_le_bytes().iter().take(used));
        left -= used.min(left);
    }
}

fn read_column(bytes: &[u8; COLUMN_BYTES]) -> Column {
    let (data, mask) = bytes.split_at(EXTENDED / 8);
    let mut column = [0; BLOCKS];
    for (block, chunk) in column.iter_mut().zip(data.chunks(16).chain([mask])) {
        let mut padded = [0u8; 16];
        for (byte, value) in padded.iter_mut().zip(chunk) {
            *byte = *value;
        }
        *block = u128::from_le_bytes(padded);
    }
    column
}

fn hash_columns(hashes: impl Iterator<Item = u128>) -> [u8; 32] {
    let mut state = Sha256::new();
    absorb(&mut state, COLUMN_HASHES.as_bytes());
    for mut hash in hashes {
        state.update(hash.to_le_bytes());
        hash.zeroize();
    }
    state.finalize().into()
}

/// The first [`EXTENDED`] rows of the matrix whose columns these are.
fn rows(columns: &[Column; CORRELATION_BITS]) -> Zeroizing<Vec<u128>> {
    let mut rows = Zeroizing::new(Vec::with_capacity(128 * DATA_BLOCKS));
    for place in 0..DATA_BLOCKS {
        let mut square = Zeroizing::new([0u128; 128]);
        for (word, column) in square.iter_mut().zip(columns) {
            *word = column.get(place).copied().unwrap_or_default();
        }
        transpose(&mut square);
        rows.extend_from_slice(square.as_slice());
    }
    rows.truncate(EXTENDED);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINDING: [u8; 32] = [6; 32];
    const DELTA: u128 = 0x7000_0000_0000_0000_0000_0000_0000_5a01;

    /// The receiver's leaves, and the sender's by difference to Δ.
    fn trees() -> (Vec<u128>, Vec<u128>) {
        let all: Vec<u128> = (0..(TREES * LEAVES) as u128).map(|n| n * 0x1234_5677 + 1).collect();
        let kept = all
            .chunks(LEAVES)
            .enumerate()
            .flat_map(|(tree, leaves)| {
                let digit = (DELTA >> (FIELD_BITS * tree)) as usize & (LEAVES - 1);
                (1..LEAVES).map(move |difference| leaves[digit ^ difference])
            })
            .collect();
        (all, kept)
    }

    /// The selective failure attack: a receiver that uses other choices in one tree, and proves as if Δ's digit there
    /// were `guess`, passes exactly if it is.
    #[test]
    fn cheating_receiver_passes_only_by_guessing_the_digit() {
        let (all, kept) = trees();
        for tree in [1, 2, 7, TREES - 1] {
            let digit = (DELTA >> (FIELD_BITS * tree)) & (LEAVES as u128 - 1);
            for guess in 0..LEAVES as u128 {
                let mut message = vec![9u8; SALT_BYTES];
                let expansion = Expansion::new(&BINDING, &message);
                let mut columns = Columns::new(&expansion, &all, &mut message);
                let mut error: Column = [0; BLOCKS];
                error[1] = 1 << 77;
                message[SALT_BYTES + (tree - 1) * COLUMN_BYTES + 16 + 9] ^= 1 << 5;
                for bit in 0..FIELD_BITS {
                    let place = FIELD_BITS * tree + bit;
                    add_if(&mut columns.all[place], &error, mask_of(guess, bit));
                }
                columns.prove(&BINDING, &mut message);
                let result = send(&BINDING, DELTA, &kept, message.as_slice().try_into().unwrap());
                assert_eq!(result.is_ok(), guess == digit, "tree {tree} guess {guess}");
            }
        }
    }

    #[test]
    fn column_encoding_keeps_what_is_used() {
        let mut column: Column = core::array::from_fn(|place| 0x0123_4567_89ab_cdef << place);
        column[DATA_BLOCKS - 1] &= (1 << LAST_BITS) - 1;
        let mut bytes = Vec::new();
        write_column(&column, &mut bytes);
        assert_eq!(bytes.len(), COLUMN_BYTES);
        assert_eq!(read_column(bytes.as_slice().try_into().unwrap()), column);
    }
}
