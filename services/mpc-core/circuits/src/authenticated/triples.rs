//! Random AND triples: leaky ones, of which buckets are made.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use primitives::hedge::HedgedRng;
use rand_core::{CryptoRng, Rng};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::abort::Abort;
use super::bits::{Link, Share, mask};
use super::digest::{same, tagged};
use super::pair::Role;
use crate::line::Line;

/// The probability that a deviating party is left with a triple of which it knows a bit is at most 2^-80.
const STATISTICAL_BITS: f64 = 80.0;
/// Triples whose messages travel together.
const BATCH: usize = 1 << 15;

/// Shares of random bits x, y and z = x·y.
#[derive(Clone, Copy, Default)]
pub struct Triple {
    pub x: Share,
    pub y: Share,
    pub z: Share,
}

impl zeroize::DefaultIsZeroes for Triple {}

/// Leaky triples that one good one is made of, where this many good ones are made together.
///
/// A party that deviates in a leaky triple learns its bit x or is caught, each with probability 1/2. After m undetected
/// attempts among n·B triples that fall into n buckets of B at random, some bucket holds B of the m with probability at
/// most n·C(m, B) / C(n·B, B); so the attack gains with at most the greatest n·C(m, B)·2^-m / C(n·B, B).
#[must_use]
pub fn bucket_size(count: usize) -> usize {
    let choose = |n: f64, k: usize| -> f64 { (0..k).map(|i| ((n - i as f64) / (k - i) as f64).log2()).sum() };
    let n = count.max(1) as f64;
    (2..)
        .find(|size| {
            let attempts = (*size..8 * size + 8).map(|m| choose(m as f64, *size) - m as f64);
            let best = attempts.fold(f64::NEG_INFINITY, f64::max);
            // With one bucket only, all triples in it must be known.
            let ways = choose(n * *size as f64, *size);
            n.log2() + best - ways <= -STATISTICAL_BITS || (*size as f64 >= STATISTICAL_BITS && n < 2.0)
        })
        .unwrap_or(usize::MAX)
}

/// [Garbling 3 to 6] This many random triples.
pub async fn random_triples<L: Line>(
    link: &mut Link<'_, L>,
    count: usize,
    rng: &mut (dyn CryptoRng + Send),
) -> Result<Zeroizing<Vec<Triple>>, Abort> {
    let size = bucket_size(count);
    let total = count.checked_mul(size).ok_or(Abort::Caller("the circuit is too large"))?;
    let leaky = leaky_triples(link, total, rng).await?;
    let order = shuffled(total, &permutation_seed(link, rng).await?);
    combine(link, &leaky, &order, size).await
}

/// Leaky triples: all x, all y and all z.
struct Leaky {
    shares: Zeroizing<Vec<Share>>,
    count: usize,
}

impl Leaky {
    fn parts(&self) -> [&[Share]; 3] {
        let (x, rest) = self.shares.split_at(self.count);
        let (y, z) = rest.split_at(self.count);
        [x, y, z]
    }
}

/// [Garbling 3, 4] Triples of which a deviating peer may know x, at the risk of being caught.
async fn leaky_triples<L: Line>(
    link: &mut Link<'_, L>,
    count: usize,
    rng: &mut (dyn CryptoRng + Send),
) -> Result<Leaky, Abort> {
    let mut shares = link.random_shares(3 * count, rng).await?;
    let mut digest = Sha256::new();
    digest.update(link.step("coterie/authenticated-garbling-triples/1", Role::Garbler));
    let mut number = 0u128;
    let (x, rest) = shares.split_at_mut(count);
    let (y, z) = rest.split_at_mut(count);
    for ((x, y), z) in x.chunks(BATCH).zip(y.chunks(BATCH)).zip(z.chunks_mut(BATCH)) {
        check_batch(link, x, y, z, number, &mut digest).await?;
        number += x.len() as u128;
    }
    let own: [u8; 32] = digest.finalize().into();
    let theirs = link.exchange(&own, rng).await?;
    if !same(&own, &theirs) {
        return Err(Abort::Triple);
    }
    link.go_on()?;
    Ok(Leaky { shares, count })
}

/// Makes z = x·y of the random z of a batch, and absorbs what must be equal on both sides.
async fn check_batch<L: Line>(
    link: &mut Link<'_, L>,
    x: &[Share],
    y: &[Share],
    z: &mut [Share],
    first: u128,
    digest: &mut Sha256,
) -> Result<(), Abort> {
    let delta = *link.delta;
    // The peer's x is hashed with an even tweak by the garbler, and with an odd one by the evaluator.
    let (keys_tweak, macs_tweak) = match link.role() {
        Role::Garbler => (0, 1),
        Role::Evaluator => (1, 0),
    };
    // C = y·Δ ⊕ K[y] ⊕ M[y]; both C together are y·(Δ_A ⊕ Δ_B).
    let mut sums = Zeroizing::new(Vec::with_capacity(x.len()));
    let mut masked = Vec::with_capacity(x.len());
    for ((i, x), (y, z)) in (first..).zip(x).zip(y.iter().zip(z.iter())) {
        let tweak = 2 * i + keys_tweak;
        let [zero, one, own] =
            link.key.tweaked([(x.key, tweak), (x.key ^ delta, tweak), (x.mac, 2 * i + macs_tweak)]);
        let c = (delta & mask(y.bit)) ^ y.key ^ y.mac;
        masked.push(zero ^ one ^ c);
        let z = (delta & mask(z.bit)) ^ z.key ^ z.mac;
        sums.push(zero ^ own ^ z ^ (c & mask(x.bit)));
    }
    let mut theirs = vec![0u128; x.len()];
    link.exchange_blocks(&masked, &mut theirs).await?;
    for ((sum, x), block) in sums.iter_mut().zip(x).zip(&theirs) {
        *sum ^= block & mask(x.bit);
    }
    // Both sums together are (xy ⊕ z)(Δ_A ⊕ Δ_B), whose lowest bit tells what to add to z.
    let own: Vec<u8> = sums.iter().map(|sum| (*sum & 1) as u8).collect();
    let other = link.exchange_bits(&own).await?;
    for ((z, sum), (own, other)) in z.iter_mut().zip(sums.iter()).zip(own.iter().zip(&other)) {
        let public = own ^ other;
        *z = link.add_public(*z, public);
        digest.update((sum ^ (delta & mask(public))).to_le_bytes());
    }
    Ok(())
}

/// [Garbling 5] A seed that neither party chose.
async fn permutation_seed<L: Line>(
    link: &mut Link<'_, L>,
    rng: &mut (dyn CryptoRng + Send),
) -> Result<[u8; 32], Abort> {
    let mut own = [0u8; 32];
    let session = link.session();
    HedgedRng::new("permutation", &[&link.delta.to_le_bytes(), &session], rng).fill_bytes(&mut own);
    let theirs = link.exchange(&own, rng).await?;
    let [first, second] = match link.role() {
        Role::Garbler => [&own, &theirs],
        Role::Evaluator => [&theirs, &own],
    };
    Ok(tagged("coterie/authenticated-garbling-permutation/1", &[&session, first, second]))
}

/// The numbers below `count` in a random order (Fisher, Yates), drawn from a seed.
fn shuffled(count: usize, seed: &[u8; 32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).map(|number| u32::try_from(number).unwrap_or(u32::MAX)).collect();
    let mut key = [0u8; 16];
    key.copy_from_slice(seed.split_at(16).0);
    let cipher = Aes128::new(&key.into());
    let mut counter = 0u128;
    let mut blocks = [[0u8; 16]; 32];
    let mut words: Vec<u64> = Vec::new();
    for last in (1..order.len()).rev() {
        if words.is_empty() {
            for block in &mut blocks {
                *block = counter.to_le_bytes();
                counter += 1;
            }
            cipher.encrypt_blocks(Block::cast_slice_from_core_mut(&mut blocks));
            words.extend(
                blocks.as_flattened().as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)),
            );
        }
        // 64 bits for at most 2^32 places: each place is as likely as another up to a factor of 1 + 2^-32.
        let word = words.pop().unwrap_or(0);
        order.swap(last, (word % (last as u64 + 1)) as usize);
    }
    order
}

/// [Garbling 6] One triple of each bucket: x is the sum of all x, so that it is known only to who knows each of them.
async fn combine<L: Line>(
    link: &mut Link<'_, L>,
    leaky: &Leaky,
    order: &[u32],
    size: usize,
) -> Result<Zeroizing<Vec<Triple>>, Abort> {
    let [x, y, z] = leaky.parts();
    let at = |shares: &[Share], number: &u32| shares.get(*number as usize).copied().unwrap_or_default();
    let mut differences = Zeroizing::new(Vec::with_capacity(order.len()));
    for bucket in order.chunks_exact(size) {
        let Some((first, rest)) = bucket.split_first() else { continue };
        let first = at(y, first);
        differences.extend(rest.iter().map(|number| first ^ at(y, number)));
    }
    let opened = link.open(&differences).await?;
    let mut triples = Zeroizing::new(Vec::with_capacity(order.len() / size));
    triples.extend(order.chunks_exact(size).zip(opened.chunks(size - 1)).map(|(bucket, opened)| {
        let Some((first, rest)) = bucket.split_first() else { return Triple::default() };
        let first = Triple { x: at(x, first), y: at(y, first), z: at(z, first) };
        rest.iter().zip(opened).fold(first, |sum, (number, difference)| {
            let x = at(x, number);
            Triple { x: sum.x ^ x, y: sum.y, z: sum.z ^ at(z, number) ^ x.times(*difference) }
        })
    }));
    Ok(triples)
}

#[cfg(test)]
mod tests {
    use super::super::wire::{Edit, both, honest, seeded, set_up};
    use super::*;

    #[test]
    fn both_parties_choose_the_order() {
        let pairs = set_up(1);
        let seed = |words: [u64; 2]| {
            let seeds = both([honest(), honest()], words, async |index, word, channel| {
                let link = &mut Link::resume(&pairs[index], [1; 32], 0, channel);
                permutation_seed(link, &mut seeded(word, index)).await.unwrap()
            })
            .results;
            assert_eq!(seeds[0], seeds[1]);
            seeds[0]
        };
        let first = seed([1, 1]);
        assert_eq!(first, seed([1, 1]));
        assert!(first != seed([2, 1]) && first != seed([1, 2]));
    }

    /// The same shares twice: under the same tweak the second message would be the first.
    #[test]
    fn no_two_triples_are_hashed_alike() {
        let pairs = set_up(2);
        let (tell, told) = std::sync::mpsc::channel();
        let edits: [Edit; 2] = std::array::from_fn(|_| -> Edit {
            let tell = tell.clone();
            Box::new(move |number, _, bytes| {
                if number == 1 {
                    tell.send(bytes.clone()).unwrap();
                }
            })
        });
        both(edits, [0, 1], async |index, _: usize, channel| {
            let mut link = Link::resume(&pairs[index], [1; 32], 0, channel);
            let shares = link.random_shares(3, &mut seeded(1, index)).await.unwrap();
            let [x, y, mut z] = [0, 1, 2].map(|i| [shares[i]; 2]);
            check_batch(&mut link, &x, &y, &mut z, 0, &mut Sha256::new()).await.unwrap();
        });
        for _ in 0..2 {
            let blocks = told.recv().unwrap();
            assert!(blocks.len() == 32 && blocks[..16] != blocks[16..]);
        }
    }

    #[test]
    fn buckets_are_as_small_as_80_bits_allow() {
        let sizes = [1_000, 57_947, 640_000, 10_000_000].map(bucket_size);
        assert_eq!(sizes, [8, 6, 5, 5]);
        assert!(bucket_size(1) >= 40 && bucket_size(2) >= bucket_size(100));
    }

    #[test]
    fn a_shuffle_is_a_permutation_that_depends_on_the_seed() {
        let order = |seed| shuffled(1000, &[seed; 32]);
        assert_ne!(order(1), order(2));
        assert_eq!(order(1), order(1));
        let mut all = order(1);
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
    }
}
