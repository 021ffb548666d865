//! Randomness that does not rest on the generator alone.

use rand_core::CryptoRng;
use sha2::{Digest, Sha512};
use zeroize::Zeroize;

use primitives::Secret;

use crate::context::SessionContext;
use crate::tags::{self, Tag};

/// 64 secret bytes from fresh randomness, a secret and the session: unpredictable while either of the first two is,
/// and different in every session, so that a bad generator or a cloned machine is not fatal.
pub fn hedged(
    ctx: &SessionContext,
    purpose: Tag,
    secret: &[u8],
    rng: &mut dyn CryptoRng,
) -> Secret<[u8; 64]> {
    let mut fresh = [0u8; 32];
    rng.fill_bytes(&mut fresh);
    let mut hash = Sha512::new();
    for part in [tags::HEDGED_RANDOMNESS.as_bytes(), purpose.as_bytes(), ctx.digest(), &fresh, secret] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    fresh.zeroize();
    Secret::new(hash.finalize().into())
}
