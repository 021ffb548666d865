//! A share of an imported key as bytes, in which it travels to its party and is kept there. They are secret: callers
//! seal them.
//!
//! ```text
//! offset  bytes
//!      0  1      format version, 1
//!      1  2      number of the party, not 0
//!      3  1      other parties of the key, 1 to 19
//!      4  32     public key
//!     36  32     slope of the line through the secret scalar, as a point
//!     68  32     share of the secret scalar
//!    100  64     the owner's signature of the test message
//!    164  34     for each other party, ascending: its number, and the share of the prefix with it
//! ```

use std::collections::BTreeMap;

use ed25519_dalek::{Signature, VerifyingKey};
use primitives::Secret;
use zeroize::Zeroizing;

use super::import::{ImportedShare, MAX_PARTIES, TEST_MESSAGE};

const VERSION: u8 = 1;
/// Bytes before the shares of the prefix.
const HEAD_BYTES: usize = 164;
/// Bytes for each other party.
const PEER_BYTES: usize = 34;

impl ImportedShare {
    /// The other parties of the key, ascending.
    pub fn peers(&self) -> impl Iterator<Item = u16> {
        self.prefixes.keys().copied()
    }

    /// The share as bytes, all of them secret.
    pub fn encode(&self) -> Secret<Vec<u8>> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + PEER_BYTES * self.prefixes.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.number.to_be_bytes());
        // At most 19.
        bytes.push(u8::try_from(self.prefixes.len()).unwrap_or(u8::MAX));
        bytes.extend_from_slice(&self.public_key);
        bytes.extend_from_slice(&self.slope);
        bytes.extend_from_slice(self.share.expose());
        bytes.extend_from_slice(&self.test_signature);
        for (peer, prefix) in &self.prefixes {
            bytes.extend_from_slice(&peer.to_be_bytes());
            bytes.extend_from_slice(prefix.expose());
        }
        Secret::new(bytes)
    }

    /// Reads what [`ImportedShare::encode`] wrote; `None` for anything else. The share is that of its party and of the
    /// public key, and the owner signed the test message with that key. Shares of the prefix are random bytes: each
    /// pair finds out by the test signature whether they are right.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<ImportedShare> {
        let mut rest = Rest(bytes);
        let [version] = rest.take()?;
        let number = u16::from_be_bytes(rest.take()?);
        let [peers] = rest.take()?;
        if version != VERSION || number == 0 || !(1..MAX_PARTIES).contains(&u16::from(peers)) {
            return None;
        }
        let (public_key, slope) = (rest.take()?, rest.take()?);
        let share = rest.secret()?;
        let test_signature = rest.take()?;
        let mut prefixes = BTreeMap::new();
        for _ in 0..peers {
            let peer = u16::from_be_bytes(rest.take()?);
            let ascending = prefixes.last_key_value().map_or(0, |(last, _)| *last) < peer;
            if !ascending || peer == number {
                return None;
            }
            prefixes.insert(peer, rest.secret()?);
        }
        if !rest.0.is_empty() {
            return None;
        }
        let decoded = ImportedShare { number, public_key, slope, share, prefixes, test_signature };
        let key = VerifyingKey::from_bytes(&public_key).ok()?;
        key.verify_strict(TEST_MESSAGE, &Signature::from_bytes(&test_signature)).ok()?;
        decoded.checked().map(|_| decoded)
    }
}

/// Bytes that were not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn secret(&mut self) -> Option<Secret<[u8; 32]>> {
        let taken = Zeroizing::new(self.take::<32>()?);
        let mut secret = Secret::new([0u8; 32]);
        secret.expose_mut().copy_from_slice(taken.as_slice());
        Some(secret)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Import;
    use super::*;
    use curve25519_dalek::constants::EIGHT_TORSION;
    use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
    use curve25519_dalek::scalar::{Scalar, clamp_integer};
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;
    use sha2::{Digest, Sha512};

    fn import(seed: u8, parties: u16) -> Import {
        let rng = &mut ChaCha20Rng::seed_from_u64(seed.into());
        Import::from_seed(&Secret::new([seed; 32]), parties, rng).unwrap()
    }

    fn bytes(seed: u8, parties: u16, number: usize) -> Vec<u8> {
        import(seed, parties).shares[number - 1].encode().expose().clone()
    }

    #[test]
    fn a_share_is_read_as_it_was_written() {
        for parties in [2, 3, 20] {
            for share in import(5, parties).shares {
                let written = share.encode();
                assert_eq!(written.expose().len(), HEAD_BYTES + PEER_BYTES * (usize::from(parties) - 1));
                let read = ImportedShare::decode(written.expose()).unwrap();
                assert_eq!((read.number, read.public_key), (share.number, share.public_key));
                assert_eq!(read.encode().expose(), written.expose());
            }
        }
    }

    #[test]
    fn parties_have_any_ascending_numbers_and_one_line() {
        let split = |numbers: &[u16]| {
            let rng = &mut ChaCha20Rng::seed_from_u64(4);
            Import::from_seed_for(&Secret::new([5; 32]), numbers, rng)
        };
        let numbers = [3, 700, u16::MAX];
        let import = split(&numbers).unwrap();
        let points = import.shares[0].points().unwrap();
        assert_eq!(points.iter().map(|(number, _)| *number).collect::<Vec<_>>(), numbers);
        for (share, (number, point)) in import.shares.iter().zip(&points) {
            let read = ImportedShare::decode(share.encode().expose()).unwrap();
            assert_eq!((read.number, read.points().as_ref()), (*number, Some(&points)));
            let own = Scalar::from_canonical_bytes(*read.share.expose()).unwrap();
            assert_eq!(EdwardsPoint::mul_base(&own).compress().to_bytes(), *point);
        }
        let many: Vec<u16> = (1..=21).collect();
        for wrong in [&[][..], &[1], &[0, 1], &[1, 1], &[2, 1], &many] {
            assert!(split(wrong).is_none(), "{wrong:?}");
        }
        assert!(split(&many[1..]).is_some());
    }

    /// Of the shares of the prefix every value is one.
    #[test]
    fn no_byte_but_those_of_the_prefix_can_be_another() {
        let right = bytes(5, 3, 2);
        for place in 0..right.len() {
            let peer = place.checked_sub(HEAD_BYTES).map(|place| place % PEER_BYTES);
            for bits in [1, 0x10, 0x80, 0xff] {
                let mut wrong = right.clone();
                wrong[place] ^= bits;
                let read = ImportedShare::decode(&wrong);
                match peer {
                    // Another number of a peer may be ascending.
                    Some(0 | 1) => assert!(read.is_none_or(|read| read.encode().expose() == &wrong)),
                    Some(_) => assert!(read.is_some(), "byte {place}"),
                    None => assert!(read.is_none(), "byte {place}"),
                }
            }
        }
    }

    #[test]
    fn numbers_are_not_zero_ascend_and_are_those_of_others() {
        let right = bytes(5, 3, 2);
        let with = |peers: [u8; 2]| {
            let mut changed = right.clone();
            (changed[HEAD_BYTES + 1], changed[HEAD_BYTES + PEER_BYTES + 1]) = (peers[0], peers[1]);
            ImportedShare::decode(&changed).is_some()
        };
        assert!(with([1, 3]) && with([3, 9]));
        for wrong in [[0, 1], [1, 0], [1, 1], [3, 1], [1, 2], [2, 3]] {
            assert!(!with(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn other_lengths_and_parts_of_other_keys_are_refused() {
        let right = bytes(5, 3, 2);
        for length in 0..right.len() {
            assert!(ImportedShare::decode(&right[..length]).is_none(), "{length} bytes");
        }
        assert!(ImportedShare::decode(&[right.as_slice(), &[0; PEER_BYTES]].concat()).is_none());
        let other = bytes(6, 3, 2);
        // Public key, slope, share and test signature of another key.
        for part in [4..36, 36..68, 68..100, 100..164] {
            let mut mixed = right.clone();
            mixed[part.clone()].copy_from_slice(&other[part.clone()]);
            assert!(ImportedShare::decode(&mixed).is_none(), "{part:?}");
        }
        // As many peers as a key can have, none, and one more.
        for (peers, fits) in [(19, true), (0, false), (20, false)] {
            let numbers =
                (3..3 + u16::from(peers)).flat_map(|n| [n.to_be_bytes().as_slice(), &[7; 32]].concat());
            let mut many = [&right[..HEAD_BYTES], &numbers.collect::<Vec<u8>>()].concat();
            many[3] = peers;
            assert_eq!(ImportedShare::decode(&many).is_some(), fits, "{peers} peers");
        }
    }

    /// With a point of small order added the equation of the line may hold; with the identity as key all signatures do.
    #[test]
    fn points_with_a_part_of_small_order_are_refused() {
        let right = bytes(5, 3, 2);
        for part in [4..36, 36..68] {
            let point: [u8; 32] = right[part.clone()].try_into().unwrap();
            let point = CompressedEdwardsY(point).decompress().unwrap();
            for torsion in &EIGHT_TORSION {
                let mut wrong = right.clone();
                wrong[part.clone()].copy_from_slice(torsion.compress().as_bytes());
                assert!(ImportedShare::decode(&wrong).is_none());
                wrong[part.clone()].copy_from_slice((point + torsion).compress().as_bytes());
                assert_eq!(ImportedShare::decode(&wrong).is_some(), wrong == right);
            }
        }
    }

    /// A slope of zero would make every share the key itself.
    #[test]
    fn a_line_without_a_slope_is_refused() {
        let digest: [u8; 64] = Sha512::digest([5; 32]).into();
        let secret = Scalar::from_bytes_mod_order(clamp_integer(*digest.first_chunk().unwrap()));
        let mut flat = bytes(5, 3, 2);
        flat[36..68].copy_from_slice(EdwardsPoint::default().compress().as_bytes());
        flat[68..100].copy_from_slice(&secret.to_bytes());
        assert!(ImportedShare::decode(&flat).is_none());
    }
}
