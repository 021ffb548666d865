//! A share of a seed as bytes, in which it travels to its party and is kept there. They are secret: callers seal them.
//!
//! ```text
//! offset  bytes
//!      0  1      format version, 1
//!      1  2      number of the party, not 0
//!      3  1      other parties of the seed, 1 to 19
//!      4  1      bytes of the seed, 16 to 64
//!      5  33     public key of the root of BIP-32
//!     38  32     its chain code
//!     70  2 + n  for each other party, ascending: its number, and the share of the seed with it
//! ```

use std::collections::BTreeMap;

use primitives::Secret;
use primitives::secp256k1::{POINT_BYTES, decode_point};

use super::circuit::SEED_BYTES;
use super::node::PublicNode;
use super::seed::{MAX_PARTIES, SeedShare};

const VERSION: u8 = 1;
/// Bytes before the shares.
const HEAD_BYTES: usize = 70;

impl SeedShare {
    /// The other parties of the seed, ascending.
    pub fn peers(&self) -> impl Iterator<Item = u16> {
        self.shares.keys().copied()
    }

    /// Bytes of the seed.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.shares.first_key_value().map_or(0, |(_, share)| share.expose().len())
    }

    /// The share as bytes, all of them secret.
    pub fn encode(&self) -> Secret<Vec<u8>> {
        let length = self.bytes();
        let mut bytes = Vec::with_capacity(HEAD_BYTES + (2 + length) * self.shares.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.number.to_be_bytes());
        // At most 19 and 64.
        bytes.extend([self.shares.len(), length].map(|count| u8::try_from(count).unwrap_or(u8::MAX)));
        bytes.extend_from_slice(&self.root.public_key);
        bytes.extend_from_slice(&self.root.chain_code);
        for (peer, share) in &self.shares {
            bytes.extend_from_slice(&peer.to_be_bytes());
            bytes.extend_from_slice(share.expose());
        }
        Secret::new(bytes)
    }

    /// Reads what [`SeedShare::encode`] wrote; `None` for anything else. Shares are random bytes: each pair finds out
    /// by the root whether they are right.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<SeedShare> {
        let (&[version, high, low, peers, length], rest) = bytes.split_first_chunk::<5>()?;
        let (public_key, rest) = rest.split_first_chunk::<POINT_BYTES>()?;
        let (chain_code, mut rest) = rest.split_first_chunk::<32>()?;
        let (number, length) = (u16::from_be_bytes([high, low]), usize::from(length));
        let counts = (1..MAX_PARTIES).contains(&usize::from(peers)) && SEED_BYTES.contains(&length);
        if version != VERSION || number == 0 || !counts {
            return None;
        }
        decode_point(public_key)?;
        let root = PublicNode { public_key: *public_key, chain_code: *chain_code };
        let mut shares: BTreeMap<u16, Secret<Vec<u8>>> = BTreeMap::new();
        for _ in 0..peers {
            let (peer, after) = rest.split_first_chunk::<2>()?;
            let (share, after) = after.split_at_checked(length)?;
            let peer = u16::from_be_bytes(*peer);
            let ascending = shares.last_key_value().map_or(0, |(last, _)| *last) < peer;
            if !ascending || peer == number {
                return None;
            }
            shares.insert(peer, Secret::new(share.to_vec()));
            rest = after;
        }
        rest.is_empty().then_some(SeedShare { number, root, shares })
    }
}

#[cfg(test)]
mod tests {
    use super::super::split_seed_for;
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn split(length: usize, numbers: &[u16]) -> Option<Vec<SeedShare>> {
        let rng = &mut ChaCha20Rng::seed_from_u64(4);
        split_seed_for(&Secret::new(vec![5; length]), numbers, rng)
    }

    fn bytes(length: usize) -> Vec<u8> {
        split(length, &[1, 2, 3]).unwrap()[1].encode().expose().clone()
    }

    #[test]
    fn a_share_is_read_as_it_was_written_and_both_of_a_pair_give_the_seed() {
        let many: Vec<u16> = (1..=20).collect();
        for (length, numbers) in [(16, &[1, 2][..]), (33, &[3, 700, u16::MAX]), (64, &many)] {
            let shares = split(length, numbers).unwrap();
            assert_eq!(shares.iter().map(|share| share.number).collect::<Vec<_>>(), numbers);
            for share in &shares {
                let written = share.encode();
                assert_eq!(written.expose().len(), HEAD_BYTES + (2 + length) * (numbers.len() - 1));
                let read = SeedShare::decode(written.expose()).unwrap();
                assert_eq!((read.number, read.root, read.bytes()), (share.number, share.root, length));
                assert_eq!(read.encode().expose(), written.expose());
                for other in shares.iter().filter(|other| other.number != read.number) {
                    let halves = [&read.shares[&other.number], &other.shares[&read.number]];
                    let mut both = halves[0].expose().iter().zip(halves[1].expose());
                    assert!(both.all(|(a, b)| a ^ b == 5));
                }
            }
        }
        for wrong in [&[][..], &[1], &[0, 1], &[1, 1], &[2, 1], &(1..=21).collect::<Vec<u16>>()] {
            assert!(split(16, wrong).is_none(), "{wrong:?}");
        }
    }

    /// Of the shares and the chain code every value is one; the public key is a point.
    #[test]
    fn what_cannot_be_is_refused() {
        for length in [16, 64] {
            let right = bytes(length);
            for cut in 0..right.len() {
                assert!(SeedShare::decode(&right[..cut]).is_none(), "{cut} bytes");
            }
            assert!(SeedShare::decode(&[right.as_slice(), &[0]].concat()).is_none());
            for place in 0..right.len() {
                for bits in [1, 0x10, 0x80, 0xff] {
                    let mut wrong = right.clone();
                    wrong[place] ^= bits;
                    match SeedShare::decode(&wrong) {
                        Some(read) => assert_eq!(read.encode().expose(), &wrong, "byte {place}"),
                        None => {
                            let inside = place.checked_sub(HEAD_BYTES).map(|place| place % (2 + length));
                            assert!(inside.is_none_or(|inside| inside < 2), "byte {place}");
                            assert!(!(38..HEAD_BYTES).contains(&place), "byte {place}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_counts_and_lengths_are_bounded() {
        let right = bytes(16);
        let with = |changes: &[(usize, u8)]| {
            let mut changed = right.clone();
            changes.iter().for_each(|(place, value)| changed[*place] = *value);
            SeedShare::decode(&changed).is_some()
        };
        let (first, second) = (HEAD_BYTES + 1, HEAD_BYTES + 18 + 1);
        assert!(with(&[(first, 1), (second, 3)]) && with(&[(first, 3), (second, 9)]));
        for [one, other] in [[0, 1], [1, 0], [1, 1], [3, 1], [1, 2], [2, 3]] {
            assert!(!with(&[(first, one), (second, other)]), "{one} {other}");
        }
        for wrong in
            [(0, 0), (0, 2), (2, 0), (3, 0), (3, 1), (3, 3), (3, 20), (4, 0), (4, 15), (4, 65), (5, 4)]
        {
            assert!(!with(&[wrong]), "{wrong:?}");
        }
    }
}
