//! A generator whose output nobody can predict while the machine's generator is good or a secret is unknown.

use core::convert::Infallible;

use engine::{Secret, SessionContext, Tag, hedged};
use rand_core::{CryptoRng, TryCryptoRng, TryRng};
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

/// SHA-512 in counter mode over a seed from [`hedged`]. Everything secret that dealing draws comes out of one.
pub struct HedgedRng {
    seed: Secret<[u8; 64]>,
    drawn: u64,
}

impl HedgedRng {
    /// A generator for one purpose in one session. `secret` is what the party knows and others do not; it may be empty.
    pub fn new(ctx: &SessionContext, purpose: Tag, secret: &[u8], rng: &mut dyn CryptoRng) -> Self {
        Self { seed: hedged(ctx, purpose, secret, rng), drawn: 0 }
    }

    /// The next 64 bytes.
    pub(crate) fn block(&mut self) -> Zeroizing<[u8; 64]> {
        let mut hash = Sha512::new();
        hash.update(self.seed.expose());
        hash.update(self.drawn.to_be_bytes());
        self.drawn += 1;
        Zeroizing::new(hash.finalize().into())
    }

    /// Any number of bytes.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(64) {
            for (byte, drawn) in chunk.iter_mut().zip(self.block().iter()) {
                *byte = *drawn;
            }
        }
    }
}

impl TryRng for HedgedRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        Ok(u32::from_be_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        Ok(u64::from_be_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.fill(bytes);
        Ok(())
    }
}

impl TryCryptoRng for HedgedRng {}
