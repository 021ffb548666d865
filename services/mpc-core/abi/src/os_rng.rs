//! The only source of randomness in the core.

use core::convert::Infallible;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use engine::Secret;
use getrandom::SysRng;
use rand_core::{TryCryptoRng, TryRng};
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

const SEED_TAG: &[u8] = b"coterie/randomness-seed/1";
const BLOCK_TAG: &[u8] = b"coterie/randomness-block/1";
const PROCESS_TAG: &[u8] = b"coterie/randomness-process/1";

/// Bytes taken from the operating system for each draw.
const FRESH_BYTES: usize = 32;
const BLOCK_BYTES: usize = 64;

/// The operating system's generator, hashed with the wall clock, a random value of this process, the process id and a
/// counter of draws.
///
/// Each draw takes new bytes from the system, so it is as good as the system's generator whatever the rest is. The rest
/// is for the day when that generator repeats itself: after the clone or the rollback of a virtual machine, or because
/// it is broken. One process then still never draws the same value twice, and two processes do only if they have the
/// same process value, process id and count in the same nanosecond.
///
/// If the system gives no randomness nothing safe can be done: the call unwinds to the entry point, which answers
/// `MPC_INTERNAL` and poisons the session.
pub(crate) fn os_rng() -> Mixed<SysRng> {
    Mixed(SysRng)
}

/// [`os_rng`], whatever generator is under it.
pub(crate) struct Mixed<G>(G);

/// The random part of what tells this process from others; made at first use.
static PROCESS: OnceLock<Secret<[u8; 64]>> = OnceLock::new();
/// Draws of this process.
static DRAWS: AtomicU64 = AtomicU64::new(0);

impl<G: TryRng> Mixed<G> {
    fn fresh(&mut self) -> Secret<[u8; FRESH_BYTES]> {
        let mut fresh = Secret::new([0; FRESH_BYTES]);
        if self.0.try_fill_bytes(fresh.expose_mut()).is_err() {
            std::panic::resume_unwind(Box::new(()));
        }
        fresh
    }

    /// A seed that no two draws have in common. The process id is part of it because a fork shares the process value.
    fn seed(&mut self) -> Secret<[u8; 64]> {
        let process = PROCESS.get_or_init(|| {
            let fresh = self.fresh();
            Secret::new(digest(
                PROCESS_TAG,
                &[fresh.expose(), &now(), &(&raw const fresh as usize).to_be_bytes()],
            ))
        });
        let draw = DRAWS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let id = std::process::id().to_be_bytes();
        Secret::new(digest(SEED_TAG, &[self.fresh().expose(), process.expose(), &id, &now(), &draw]))
    }
}

/// Nanoseconds of the wall clock. A clock before 1970 is as good as any other.
fn now() -> [u8; 16] {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_else(|error| error.duration())
        .as_nanos()
        .to_be_bytes()
}

fn digest(tag: &[u8], parts: &[&[u8]]) -> [u8; 64] {
    let mut hash = Sha512::new_with_prefix(tag);
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

impl<G: TryRng> TryRng for Mixed<G> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        let seed = self.seed();
        for (number, block) in (0u64..).zip(bytes.chunks_mut(BLOCK_BYTES)) {
            let random = Zeroizing::new(digest(BLOCK_TAG, &[seed.expose(), &number.to_be_bytes()]));
            block.iter_mut().zip(random.iter()).for_each(|(byte, random)| *byte = *random);
        }
        Ok(())
    }
}

impl<G: TryCryptoRng> TryCryptoRng for Mixed<G> {}

#[cfg(test)]
mod tests {
    use rand_core::Rng;
    use sim::Stuck;

    use super::*;

    fn draw<const N: usize>() -> [u8; N] {
        let mut bytes = [0; N];
        Mixed(Stuck(7)).fill_bytes(&mut bytes);
        bytes
    }

    #[test]
    fn a_generator_that_repeats_itself_draws_no_value_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            assert!(seen.insert(draw::<32>()));
        }
        // One that asks again, or for numbers, is another draw.
        assert_ne!(Mixed(Stuck(7)).next_u64(), Mixed(Stuck(7)).next_u64());
    }

    #[test]
    fn blocks_of_one_long_draw_differ() {
        let bytes = draw::<{ 64 * 5 + 3 }>();
        let blocks: Vec<&[u8]> = bytes.chunks(64).collect();
        assert_eq!(blocks.len(), 6);
        for (place, block) in blocks.iter().enumerate() {
            assert!(blocks.iter().skip(place + 1).all(|other| !block.starts_with(&other[..3])));
        }
    }

    #[test]
    fn clock_process_and_number_of_the_draw_each_make_a_difference() {
        let parts = |fresh: u8, process: u8, id: u8, clock: u8, draw: u8| {
            digest(SEED_TAG, &[&[fresh; 32], &[process; 64], &[id; 4], &[clock; 16], &[draw; 8]])
        };
        let base = parts(0, 0, 0, 0, 0);
        for other in [
            parts(1, 0, 0, 0, 0),
            parts(0, 1, 0, 0, 0),
            parts(0, 0, 1, 0, 0),
            parts(0, 0, 0, 1, 0),
            parts(0, 0, 0, 0, 1),
        ] {
            assert_ne!(base, other);
        }
        assert_ne!(now(), [0; 16]);
    }
}
