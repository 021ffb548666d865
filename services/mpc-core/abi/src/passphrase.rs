//! A key from a passphrase: Argon2id, RFC 9106, by the crate `argon2`.

use argon2::{Algorithm, Argon2, Block, Params, Version};
use zeroize::Zeroize;

const MAX_MEMORY_KIB: u32 = 256 * 1024;
const MAX_PASSES: u32 = 64;
const MAX_LANES: u32 = 16;
const MAX_SALT: usize = 64;
const KEY_BYTES: usize = 32;

/// Why there is no key.
pub enum Refused {
    /// Something is outside the limits of the header.
    Argument,
    /// The memory cannot be had.
    Memory,
}

/// 32 bytes that cost an attacker `passes` passes over `memory_kib` KiB for each guess.
pub fn argon2id(
    passphrase: &[u8],
    salt: &[u8],
    memory_kib: u32,
    passes: u32,
    lanes: u32,
) -> Result<Vec<u8>, Refused> {
    // The crate knows the lower limits.
    if memory_kib > MAX_MEMORY_KIB || passes > MAX_PASSES || lanes > MAX_LANES || salt.len() > MAX_SALT {
        return Err(Refused::Argument);
    }
    let params = Params::new(memory_kib, passes, lanes, Some(KEY_BYTES)).map_err(|_| Refused::Argument)?;
    let count = params.block_count();
    let mut memory: Vec<Block> = Vec::new();
    memory.try_reserve_exact(count).map_err(|_| Refused::Memory)?;
    memory.resize(count, Block::default());
    let mut key = vec![0; KEY_BYTES];
    let done = Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hash_password_into_with_memory(
        passphrase,
        salt,
        &mut key,
        &mut memory,
    );
    memory.iter_mut().for_each(Zeroize::zeroize);
    done.map(|()| key).map_err(|_| Refused::Argument)
}
