//! Randomness that stays good when the generator is not.

use core::convert::Infallible;

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes256, Block};
use rand_core::{CryptoRng, TryCryptoRng, TryRng};
use sha2::{Digest, Sha512};
use zeroize::{Zeroize, Zeroizing};

const HEDGE: &str = "coterie/hedge/2";

/// The randomness of one step: AES-256 in counter mode under a hash of fresh randomness, of the secrets that the step
/// has, and of everything it answers. Nobody can predict it who lacks the randomness or one of the secrets; and a
/// generator whose state repeats (a machine started twice from one image) repeats this only if everything else repeats
/// as well.
pub struct HedgedRng {
    cipher: Aes256,
    counter: u128,
}

impl HedgedRng {
    /// `parts`: secret and public alike, each hashed with its length.
    #[must_use]
    pub fn new(purpose: &str, parts: &[&[u8]], rng: &mut dyn CryptoRng) -> Self {
        let mut fresh = Zeroizing::new([0u8; 32]);
        rng.fill_bytes(fresh.as_mut());
        let mut hash = Sha512::new();
        for part in
            [HEDGE.as_bytes(), purpose.as_bytes(), fresh.as_ref()].into_iter().chain(parts.iter().copied())
        {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let mut digest: [u8; 64] = hash.finalize().into();
        let mut key = Zeroizing::new([0u8; 32]);
        key.copy_from_slice(digest.split_at(32).0);
        digest.zeroize();
        Self { cipher: Aes256::new((&*key).into()), counter: 0 }
    }
}

impl TryRng for HedgedRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0u8; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0u8; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, output: &mut [u8]) -> Result<(), Infallible> {
        let mut blocks = Zeroizing::new([[0u8; 16]; 8]);
        for chunk in output.chunks_mut(blocks.as_flattened().len()) {
            for block in blocks.iter_mut() {
                *block = self.counter.to_le_bytes();
                self.counter = self.counter.wrapping_add(1);
            }
            self.cipher.encrypt_blocks(Block::cast_slice_from_core_mut(blocks.as_mut()));
            for (byte, random) in chunk.iter_mut().zip(blocks.as_flattened()) {
                *byte = *random;
            }
        }
        Ok(())
    }
}

impl TryCryptoRng for HedgedRng {}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

    fn output(purpose: &str, parts: &[&[u8]], seed: u64) -> [u8; 300] {
        let mut bytes = [0u8; 300];
        HedgedRng::new(purpose, parts, &mut ChaCha20Rng::seed_from_u64(seed)).fill_bytes(&mut bytes);
        bytes
    }

    #[test]
    fn everything_that_goes_in_changes_what_comes_out() {
        let first = output("a", &[b"secret", b"message"], 1);
        assert_eq!(first, output("a", &[b"secret", b"message"], 1));
        assert_ne!(first, output("b", &[b"secret", b"message"], 1));
        assert_ne!(first, output("a", &[b"secret", b"message"], 2));
        assert_ne!(first, output("a", &[b"secret", b"massage"], 1));
        assert_ne!(first, output("a", &[b"secretm", b"essage"], 1));
    }

    #[test]
    fn no_block_comes_twice() {
        let mut rng = HedgedRng::new("a", &[], &mut ChaCha20Rng::seed_from_u64(1));
        let mut seen: Vec<[u8; 16]> = Vec::new();
        for length in [16, 1, 128, 129, 16] {
            let mut bytes = vec![0u8; length];
            rng.fill_bytes(&mut bytes);
            for block in bytes.as_chunks::<16>().0 {
                assert!(!seen.contains(block));
                seen.push(*block);
            }
        }
        assert_ne!(rng.next_u32(), rng.next_u32());
        assert_ne!(rng.next_u64(), rng.next_u64());
    }
}
