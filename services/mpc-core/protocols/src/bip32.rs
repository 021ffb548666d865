//! Non-hardened child keys (BIP-32, public derivation): a path, and the additive tweak it means.

use engine::wire::{Malformed, Reader, Writer};
use hmac::{Hmac, KeyInit, Mac};
use primitives::secp256k1::{Point, Scalar, decode_scalar, encode_point, mul_generator};
use sha2::{Digest, Sha256, Sha512};

/// Bytes of a chain code.
pub const CHAIN_CODE_BYTES: usize = 32;
/// Longest path, in steps.
pub const MAX_PATH_STEPS: usize = 10;
/// Version bytes of extended public keys of the main network.
const XPUB_VERSION: [u8; 4] = [0x04, 0x88, 0xb2, 0x1e];
const EXTENDED_KEY_BYTES: usize = 78;
const CHECKSUM_BYTES: usize = 4;
const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/// From this number on an index means hardened derivation, which needs the secret key in one place.
const HARDENED: u32 = 1 << 31;

/// Child numbers from the joint key down. Empty for the joint key itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DerivationPath(Vec<u32>);

impl DerivationPath {
    /// `None` if longer than [`MAX_PATH_STEPS`] or if a step is hardened.
    pub fn new(steps: &[u32]) -> Option<Self> {
        (steps.len() <= MAX_PATH_STEPS && steps.iter().all(|step| *step < HARDENED))
            .then(|| Self(steps.to_vec()))
    }

    /// The steps, each below 2^31.
    pub fn steps(&self) -> &[u32] {
        &self.0
    }

    /// A count, then the steps.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u8(u8::try_from(self.0.len()).unwrap_or(u8::MAX));
        for step in &self.0 {
            writer.u32(*step);
        }
    }

    /// Reads what [`DerivationPath::encode`] wrote.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = reader.u8()?;
        let steps = (0..count).map(|_| reader.u32()).collect::<Result<Vec<u32>, Malformed>>()?;
        Self::new(&steps).ok_or(Malformed)
    }
}

/// The joint key as a BIP-32 extended public key (`xpub`, depth 0), from which wallets derive the same children.
pub fn extended_public_key(public_key: &Point, chain_code: &[u8; CHAIN_CODE_BYTES]) -> String {
    let mut writer = Writer::with_capacity(EXTENDED_KEY_BYTES);
    writer.bytes(&XPUB_VERSION);
    // Depth, fingerprint of the parent, child number: of a key without a parent.
    writer.bytes(&[0; 9]);
    writer.bytes(chain_code);
    writer.bytes(&encode_point(public_key));
    let mut bytes = writer.finish();
    let checksum = Sha256::digest(Sha256::digest(&bytes));
    bytes.extend(checksum.iter().take(CHECKSUM_BYTES));
    base58(&bytes)
}

/// The number that the bytes are, in Bitcoin's alphabet. For bytes that do not begin with zero.
fn base58(bytes: &[u8]) -> String {
    let mut digits: Vec<u8> = Vec::new();
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += u32::from(*digit) << 8;
            *digit = (carry % 58) as u8;
            carry /= 58;
        }
        while carry > 0 {
            digits.push((carry % 58) as u8);
            carry /= 58;
        }
    }
    digits
        .iter()
        .rev()
        .filter_map(|digit| BASE58.get(usize::from(*digit)))
        .map(|letter| char::from(*letter))
        .collect()
}

/// A child key, and how to get there.
pub struct Derived {
    /// The child's public key.
    pub public_key: Point,
    /// The child's chain code.
    pub chain_code: [u8; CHAIN_CODE_BYTES],
    /// Child secret minus joint secret. Public.
    pub tweak: Scalar,
}

/// Derives the child. `None` in the case, of probability 2^-127 a step, for which BIP-32 says to take the next index.
pub fn derive(
    public_key: &Point,
    chain_code: &[u8; CHAIN_CODE_BYTES],
    path: &DerivationPath,
) -> Option<Derived> {
    let mut child = Derived { public_key: *public_key, chain_code: *chain_code, tweak: Scalar::ZERO };
    for step in path.steps() {
        let mut mac = Hmac::<Sha512>::new_from_slice(&child.chain_code).ok()?;
        mac.update(&encode_point(&child.public_key));
        mac.update(&step.to_be_bytes());
        let output: [u8; 64] = mac.finalize().into_bytes().into();
        let (tweak, chain_code) = output.split_first_chunk::<32>()?;
        let tweak = decode_scalar(tweak)?;
        child.public_key += mul_generator(&tweak);
        child.chain_code = chain_code.try_into().ok()?;
        child.tweak += tweak;
        if child.public_key == Point::IDENTITY {
            return None;
        }
    }
    Some(child)
}

#[cfg(test)]
mod tests {
    use super::*;
    use primitives::secp256k1::decode_point;

    /// Chain code and public key of an extended public key in base58 with checksum.
    fn parse(xpub: &str) -> ([u8; 32], Point) {
        let mut bytes = [0u8; 82];
        for digit in xpub.chars() {
            let mut carry = BASE58.iter().position(|letter| char::from(*letter) == digit).unwrap();
            for byte in bytes.iter_mut().rev() {
                carry += usize::from(*byte) * 58;
                *byte = carry as u8;
                carry >>= 8;
            }
            assert_eq!(carry, 0);
        }
        assert_eq!(bytes[78..], Sha256::digest(Sha256::digest(&bytes[..78]))[..4]);
        (bytes[13..45].try_into().unwrap(), decode_point(bytes[45..78].try_into().unwrap()).unwrap())
    }

    /// BIP-32, test vectors 1 and 2: every step that is not hardened.
    #[test]
    fn bip32_vectors() {
        let chains: [(&str, &[u32], &str); 4] = [
            (
                "xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9xv5ski8PX9rL2dZXvgGDnw",
                &[1],
                "xpub6ASuArnXKPbfEwhqN6e3mwBcDTgzisQN1wXN9BJcM47sSikHjJf3UFHKkNAWbWMiGj7Wf5uMash7SyYq527Hqck2AxYysAA7xmALppuCkwQ",
            ),
            (
                "xpub6D4BDPcP2GT577Vvch3R8wDkScZWzQzMMUm3PWbmWvVJrZwQY4VUNgqFJPMM3No2dFDFGTsxxpG5uJh7n7epu4trkrX7x7DogT5Uv6fcLW5",
                &[2],
                "xpub6FHa3pjLCk84BayeJxFW2SP4XRrFd1JYnxeLeU8EqN3vDfZmbqBqaGJAyiLjTAwm6ZLRQUMv1ZACTj37sR62cfN7fe5JnJ7dh8zL4fiyLHV",
            ),
            (
                "xpub6D4BDPcP2GT577Vvch3R8wDkScZWzQzMMUm3PWbmWvVJrZwQY4VUNgqFJPMM3No2dFDFGTsxxpG5uJh7n7epu4trkrX7x7DogT5Uv6fcLW5",
                &[2, 1_000_000_000],
                "xpub6H1LXWLaKsWFhvm6RVpEL9P4KfRZSW7abD2ttkWP3SSQvnyA8FSVqNTEcYFgJS2UaFcxupHiYkro49S8yGasTvXEYBVPamhGW6cFJodrTHy",
            ),
            (
                "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB",
                &[0],
                "xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb7ap6r1D3tgFxHmwMkQTPH",
            ),
        ];
        for (parent, steps, child) in chains {
            let (chain_code, public_key) = parse(parent);
            let derived = derive(&public_key, &chain_code, &DerivationPath::new(steps).unwrap()).unwrap();
            assert_eq!((derived.chain_code, derived.public_key), parse(child));
            assert_eq!(public_key + mul_generator(&derived.tweak), derived.public_key);
        }
    }

    /// The roots of BIP-32, test vectors 1 and 2.
    #[test]
    fn extended_public_keys_are_those_of_bip32() {
        for root in [
            "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8",
            "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB",
        ] {
            let (chain_code, public_key) = parse(root);
            assert_eq!(extended_public_key(&public_key, &chain_code), root);
        }
    }

    #[test]
    fn hardened_and_overlong_paths_are_refused() {
        assert!(DerivationPath::new(&[HARDENED]).is_none());
        assert!(DerivationPath::new(&[0; MAX_PATH_STEPS + 1]).is_none());
        assert!(DerivationPath::new(&[HARDENED - 1; MAX_PATH_STEPS]).is_some());
        assert_eq!(DerivationPath::decode(&mut Reader::new(&[1, 0x80, 0, 0, 0])), Err(Malformed));
        assert_eq!(DerivationPath::decode(&mut Reader::new(&[2, 0, 0, 0, 0])), Err(Malformed));
    }
}
