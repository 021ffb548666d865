//! How a prover commits to its bits, and how a verifier finds out whether they are bits, and the same in all columns
//! and in both readings.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use curve25519_dalek::scalar::Scalar;
use primitives::hedge::HedgedRng;
use rand_core::{CryptoRng, Rng};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::super::abort::Abort;
use super::super::bits::{Link, Share, mask};
use super::super::digest::{same, tagged};
use super::super::pair::Role;
use super::group::{Ed25519, Group, scalar};
use crate::line::Line;

/// Bits of Γ, and columns.
pub(super) const COLUMNS: usize = 128;
/// Bits that hide the opened parities.
pub(super) const PARITIES: usize = 128;
/// Blocks of a column for the two scalars that hide the opened sums: 64 bytes each.
const HIDING: usize = 8;
/// Tweaks of the pads' seeds start here, beyond those of triples and tables.
const SEEDS: u128 = 1 << 101;

/// Bytes of a prover's answer: the sum of its scalars, a digest of the columns' MACs, the two coefficients of the
/// products, the parities and a digest of their MACs.
pub(super) const ANSWER_BYTES: usize = 32 + 32 + 64 + 16 + 32;
/// One party's part of each bit in each column, and of the two hiding scalars.
pub(super) struct Columns {
    /// One column after the other.
    bits: Zeroizing<Vec<u128>>,
    rows: usize,
    hiding: Zeroizing<Vec<[Scalar; 2]>>,
}

impl Columns {
    fn new(rows: usize) -> Columns {
        Columns {
            bits: Zeroizing::new(Vec::with_capacity(COLUMNS * rows)),
            rows,
            hiding: Zeroizing::new(Vec::with_capacity(COLUMNS)),
        }
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u128], &[Scalar; 2])> + ExactSizeIterator {
        self.bits.chunks_exact(self.rows).zip(self.hiding.iter())
    }

    /// Σ 2^j of the columns, for each bit: an integer of 256 bits, the lower half first.
    pub(super) fn integers(&self) -> Zeroizing<Vec<[u128; 2]>> {
        let mut sums = Zeroizing::new(vec![[0u128; 2]; self.rows]);
        for (column, _) in self.iter().rev() {
            for ([low, high], word) in sums.iter_mut().zip(column) {
                *high = *high << 1 | *low >> 127;
                let (sum, carry) = (*low << 1).overflowing_add(*word);
                *low = sum;
                *high = high.wrapping_add(u128::from(carry));
            }
        }
        sums
    }

    /// The same modulo q.
    fn numbers(&self) -> Zeroizing<Vec<Scalar>> {
        let integers = self.integers();
        let mut numbers = Zeroizing::new(Vec::with_capacity(self.rows));
        numbers.extend(integers.iter().map(Ed25519::reduce));
        numbers
    }

    /// Σ 2^j of the second hiding scalar.
    fn hiding_number(&self) -> Scalar {
        self.hiding.iter().rev().fold(Scalar::ZERO, |sum, [_, second]| sum + sum + second)
    }

    /// The lowest bits of the columns, for each bit.
    fn vectors(&self) -> Zeroizing<Vec<u128>> {
        let mut vectors = Zeroizing::new(vec![0u128; self.rows]);
        for (column, _) in self.iter().rev() {
            for (vector, word) in vectors.iter_mut().zip(column) {
                *vector = *vector << 1 | (word & 1);
            }
        }
        vectors
    }

    /// The weighted sum of each column.
    fn sums(&self, challenge: &Challenge) -> Zeroizing<Vec<Scalar>> {
        let mut sums = Zeroizing::new(Vec::with_capacity(COLUMNS));
        sums.extend(self.iter().map(|(column, [first, second])| {
            let mut sum = Zeroizing::new([0u64; 8]);
            for (word, weight) in column.iter().zip(&challenge.weights) {
                add_product(&mut sum, *word, *weight);
            }
            let mut bytes = Zeroizing::new([0u8; 64]);
            for (place, limb) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(sum.iter()) {
                *place = limb.to_le_bytes();
            }
            Scalar::from_bytes_mod_order_wide(&bytes) + first + second * challenge.hiding_weight
        }));
        sums
    }
}

/// Adds a product to a sum of fewer than 2^64 of them.
fn add_product(sum: &mut [u64; 8], a: u128, b: u128) {
    let low = |x: u128| x & u128::from(u64::MAX);
    let (products, middle) = {
        let [a0, a1, b0, b1] = [low(a), a >> 64, low(b), b >> 64];
        let middle = [a0 * b1, a1 * b0];
        ([a0 * b0, a1 * b1], middle)
    };
    let [first, last] = products;
    let second = (first >> 64) + low(middle[0]) + low(middle[1]);
    let third = low(last) + (middle[0] >> 64) + (middle[1] >> 64) + (second >> 64);
    let limbs = [low(first), low(second), low(third), (last >> 64) + (third >> 64), 0];
    let mut carry = 0;
    for (place, limb) in sum.iter_mut().zip(limbs) {
        let total = u128::from(*place) + limb + carry;
        *place = total as u64;
        carry = total >> 64;
    }
}

/// The random weights of a check.
pub(super) struct Challenge {
    /// One for each bit.
    weights: Vec<u128>,
    hiding_weight: Scalar,
    /// For each bit but those that hide the parities, the parities that it belongs to.
    parities: Vec<u128>,
}

impl Challenge {
    pub(super) fn new(step: &[u8; 32], word: &[u8; 32], count: usize) -> Challenge {
        let key = tagged("coterie/dabits-challenge/1", &[step, word]);
        let mut stream = pads(key.first_chunk().unwrap_or(&[0; 16]), 2 * count + PARITIES + 1);
        let parities = stream.split_off(count + PARITIES + 1);
        let hiding_weight = Scalar::from(stream.pop().unwrap_or_default());
        Challenge { weights: stream.to_vec(), hiding_weight, parities }
    }

    /// The parities of some bits with those that hide them, given what there is for each bit.
    fn parities(&self, values: &[u128]) -> Zeroizing<Vec<u128>> {
        let (values, hiding) = values.split_at(self.parities.len().min(values.len()));
        let mut sums = Zeroizing::new(hiding.to_vec());
        for (value, places) in values.iter().zip(&self.parities) {
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum ^= value & mask((places >> i) as u8);
            }
        }
        sums
    }
}

/// The pseudorandom blocks of a seed.
fn pads(seed: &[u8; 16], count: usize) -> Zeroizing<Vec<u128>> {
    let mut blocks = Zeroizing::new(vec![[0u8; 16]; count]);
    for (number, block) in (0u128..).zip(blocks.iter_mut()) {
        *block = number.to_le_bytes();
    }
    Aes128::new(seed.into()).encrypt_blocks(Block::cast_slice_from_core_mut(&mut blocks));
    let mut pads = Zeroizing::new(Vec::with_capacity(count));
    pads.extend(blocks.iter().map(|block| u128::from_le_bytes(*block)));
    pads
}

/// The pads of a column: one block for each bit, and the two hiding scalars.
fn column_pads(seed: u128, rows: usize) -> (Zeroizing<Vec<u128>>, Zeroizing<[Scalar; 2]>) {
    let mut blocks = pads(&seed.to_le_bytes(), rows + HIDING);
    let mut hiding = Zeroizing::new([Scalar::ZERO; 2]);
    for (scalar, words) in hiding.iter_mut().zip(blocks.split_at(rows).1.chunks_exact(4)) {
        let mut bytes = Zeroizing::new([0u8; 64]);
        for (place, word) in bytes.as_chunks_mut::<16>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        *scalar = Scalar::from_bytes_mod_order_wide(&bytes);
    }
    blocks.truncate(rows);
    (blocks, hiding)
}

/// Tweaks of a direction's seeds.
fn tweaks(prover: Role) -> impl Iterator<Item = u128> {
    let first = SEEDS + if prover == Role::Garbler { 0 } else { COLUMNS as u128 };
    first..
}

/// The side whose bits are authenticated.
pub(super) struct Prover {
    pub(super) columns: Columns,
    hiding: Zeroizing<[Scalar; 2]>,
}

impl Prover {
    /// [Garbling 14] Sends the difference of both pads of each column, less the bits.
    pub(super) fn correct<L: Line>(
        link: &mut Link<'_, L>,
        step: &[u8; 32],
        bits: &[Share],
        choices: &[Share],
        rng: &mut dyn CryptoRng,
    ) -> Result<Prover, Abort> {
        let delta = *link.delta;
        let mut rng = HedgedRng::new("daBits", &[&delta.to_le_bytes(), step], rng);
        let mut wide = Zeroizing::new([[0u8; 64]; 2]);
        rng.fill_bytes(wide.as_flattened_mut());
        let hiding = Zeroizing::new(wide.each_ref().map(Scalar::from_bytes_mod_order_wide));
        let mut columns = Columns::new(bits.len());
        for (choice, tweak) in choices.iter().zip(tweaks(link.role())) {
            let seeds = Zeroizing::new(link.key.tweaked([(choice.key, tweak), (choice.key ^ delta, tweak)]));
            let [first, second] = &*seeds;
            let (own, own_hiding) = column_pads(*first, bits.len());
            let (mut other, other_hiding) = column_pads(*second, bits.len());
            for ((other, own), share) in other.iter_mut().zip(own.iter()).zip(bits) {
                *other = own.wrapping_sub(*other).wrapping_sub(u128::from(share.bit));
            }
            link.channel.send_blocks(&other)?;
            for ((own, other), value) in own_hiding.iter().zip(other_hiding.iter()).zip(hiding.iter()) {
                link.channel.send((own - other - value).as_bytes())?;
            }
            columns.bits.extend_from_slice(&own);
            columns.hiding.push(*own_hiding);
        }
        Ok(Prover { columns, hiding })
    }

    /// [Garbling 16] Answers a challenge.
    pub(super) fn answer(&self, bits: &[Share], challenge: &Challenge) -> [u8; ANSWER_BYTES] {
        let numbers = self.columns.numbers();
        let [first, second] = *self.hiding;
        let mut sum = Zeroizing::new(first + second * challenge.hiding_weight);
        let mut constant = Zeroizing::new(self.columns.hiding_number());
        let mut slope = Zeroizing::new(-second);
        for ((share, number), weight) in bits.iter().zip(numbers.iter()).zip(&challenge.weights) {
            let bit = Scalar::from(share.bit);
            let weight = Scalar::from(*weight);
            let weighted = weight * number;
            *sum += weight * bit;
            *constant += weighted * number;
            *slope += weighted * (Scalar::ONE - bit - bit);
        }
        let mut own = Zeroizing::new(Vec::with_capacity(bits.len()));
        own.extend(bits.iter().map(|share| u128::from(share.bit & 1)));
        let parities = pack(&challenge.parities(&own));
        let mut macs = Zeroizing::new(Vec::with_capacity(bits.len()));
        macs.extend(bits.iter().map(|share| share.mac));
        let tags = [challenge.parities(&self.columns.vectors()), challenge.parities(&macs)];
        let mut answer = [0u8; ANSWER_BYTES];
        let parts: [&[u8]; 6] = [
            sum.as_bytes(),
            &digest(&self.columns.sums(challenge)),
            constant.as_bytes(),
            slope.as_bytes(),
            &parities.to_le_bytes(),
            &digest_tags(&tags),
        ];
        for (place, byte) in answer.iter_mut().zip(parts.into_iter().flatten()) {
            *place = *byte;
        }
        answer
    }
}

/// The side that holds the keys.
pub(super) struct Verifier {
    pub(super) columns: Columns,
    /// The bits of Γ.
    choices: Zeroizing<Vec<u128>>,
    pub(super) gamma: Zeroizing<u128>,
}

impl Verifier {
    /// [Garbling 14] Receives the corrections.
    pub(super) async fn receive<L: Line>(
        link: &mut Link<'_, L>,
        bits: &[Share],
        choices: &[Share],
    ) -> Result<Verifier, Abort> {
        let prover = match link.role() {
            Role::Garbler => Role::Evaluator,
            Role::Evaluator => Role::Garbler,
        };
        let mut columns = Columns::new(bits.len());
        let mut corrections = vec![0u128; bits.len()];
        for (choice, tweak) in choices.iter().zip(tweaks(prover)) {
            let [seed] = link.key.tweaked([(choice.mac, tweak)]);
            let (mut pads, mut hiding) = column_pads(seed, bits.len());
            link.channel.receive_blocks(&mut corrections).await?;
            for (pad, correction) in pads.iter_mut().zip(&corrections) {
                *pad = pad.wrapping_add(correction & mask(choice.bit));
            }
            for pad in hiding.iter_mut() {
                *pad += scalar(&link.channel.block().await?)? * Scalar::from(choice.bit);
            }
            columns.bits.extend_from_slice(&pads);
            columns.hiding.push(*hiding);
        }
        let mut bits = Zeroizing::new(Vec::with_capacity(COLUMNS));
        bits.extend(choices.iter().map(|choice| u128::from(choice.bit)));
        let gamma = Zeroizing::new(pack(&bits));
        Ok(Verifier { columns, choices: bits, gamma })
    }

    /// [Garbling 17] Checks an answer.
    pub(super) fn check(
        &self,
        bits: &[Share],
        delta: u128,
        challenge: &Challenge,
        answer: &[u8; ANSWER_BYTES],
    ) -> Result<(), Abort> {
        let (scalars, rest) = answer.split_at(128);
        let [sum, columns, constant, slope] = scalars.as_chunks::<32>().0 else {
            return Err(Abort::Malformed);
        };
        let (sum, constant, slope) = (scalar(sum)?, scalar(constant)?, scalar(slope)?);
        let Some((parities, [tags])) =
            rest.split_first_chunk::<16>().map(|(p, t)| (p, t.as_chunks::<32>().0))
        else {
            return Err(Abort::Malformed);
        };
        // The same scalars in every column.
        let mut expected = self.columns.sums(challenge);
        for (key, choice) in expected.iter_mut().zip(self.choices.iter()) {
            *key += sum * Scalar::from(*choice);
        }
        let same_columns = same(&digest(&expected), columns);
        // Each of them a bit: x(x - 1) = 0.
        let gamma = Zeroizing::new(Scalar::from(*self.gamma));
        let mut products = Zeroizing::new(self.columns.hiding_number());
        for (number, weight) in self.columns.numbers().iter().zip(&challenge.weights) {
            *products += Scalar::from(*weight) * number * (number + *gamma);
        }
        let all_bits = same(products.as_bytes(), (constant + slope * *gamma).as_bytes());
        // The bits that are authenticated under Δ.
        let parities = u128::from_le_bytes(*parities);
        let mut keys = Zeroizing::new(Vec::with_capacity(bits.len()));
        keys.extend(bits.iter().map(|share| share.key));
        let mut expected = [challenge.parities(&self.columns.vectors()), challenge.parities(&keys)];
        for (tags, key) in expected.iter_mut().zip([*self.gamma, delta]) {
            for (i, tag) in tags.iter_mut().enumerate() {
                *tag ^= key & mask((parities >> i) as u8);
            }
        }
        let same_bits = same(&digest_tags(&expected), tags);
        // One cause and one time for all: which of the checks failed tells the prover nothing.
        if same_columns & all_bits & same_bits { Ok(()) } else { Err(Abort::DaBit) }
    }
}

/// The number whose bits these are.
fn pack(bits: &[u128]) -> u128 {
    bits.iter().rev().fold(0, |number, bit| number << 1 | bit)
}

fn digest(sums: &[Scalar]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"coterie/dabits-columns/1");
    sums.iter().for_each(|sum| hash.update(sum.as_bytes()));
    hash.finalize().into()
}

fn digest_tags(tags: &[Zeroizing<Vec<u128>>; 2]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"coterie/dabits-parities/1");
    tags.iter().flat_map(|tags| tags.iter()).for_each(|tag| hash.update(tag.to_le_bytes()));
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::super::MAX_ANDS;
    use super::super::super::garbler::TABLES;
    use super::super::super::wire::{both, honest, seeded, set_up};
    use super::*;
    use crate::line::now;

    #[test]
    fn weights_follow_the_verifiers_word_and_no_two_are_the_same() {
        let of = |step, word| Challenge::new(&[step; 32], &[word; 32], 100);
        let challenges = [of(1, 1), of(1, 2), of(2, 1)];
        let all = challenges.iter().flat_map(|c| c.weights.iter().chain(&c.parities));
        assert_eq!(all.collect::<HashSet<_>>().len(), 3 * (100 + PARITIES + 100));
        assert_eq!((challenges[0].weights.len(), challenges[0].parities.len()), (100 + PARITIES, 100));
        assert!(challenges.iter().all(|c| c.hiding_weight != Scalar::ZERO));
    }

    #[test]
    fn each_parity_is_hidden_by_a_bit_of_its_own() {
        let challenge = Challenge::new(&[1; 32], &[2; 32], 100);
        let values = vec![0u128; 100 + PARITIES];
        let plain = pack(&challenge.parities(&values));
        for i in 0..PARITIES {
            let mut hidden = values.clone();
            hidden[100 + i] = 1;
            assert_eq!(pack(&challenge.parities(&hidden)), plain ^ 1 << i);
        }
    }

    #[test]
    fn seeds_of_both_provers_and_tables_have_tweaks_of_their_own() {
        let all = [Role::Garbler, Role::Evaluator].map(|prover| tweaks(prover).take(COLUMNS));
        let all: HashSet<u128> = all.into_iter().flatten().collect();
        assert_eq!(all.len(), 2 * COLUMNS);
        let last_of_tables = TABLES + 2 * MAX_ANDS as u128;
        assert!(all.iter().all(|tweak| *tweak > last_of_tables));
    }

    #[test]
    fn what_hides_the_sums_is_drawn_for_each_prover() {
        let pairs = set_up(1);
        let [hiding, _] = both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
            let mut link = Link::resume(&pairs[index], [1; 32], 0, channel);
            let shares = link.random_shares(PARITIES + COLUMNS, &mut seeded(1, index)).await.unwrap();
            let (bits, choices) = shares.split_at(PARITIES);
            [1, 2].map(|step| {
                if index == 1 {
                    now(Verifier::receive(&mut link, bits, choices)).unwrap();
                    return [Scalar::ZERO; 2];
                }
                let rng = &mut seeded(1, index);
                let prover = Prover::correct(&mut link, &[step; 32], bits, choices, rng).unwrap();
                link.channel.flush().unwrap();
                *prover.hiding
            })
        })
        .results;
        let all: HashSet<[u8; 32]> = hiding.as_flattened().iter().map(Scalar::to_bytes).collect();
        assert!(all.len() == 4 && !all.contains(&[0; 32]));
    }
}
