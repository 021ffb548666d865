//! The only source of randomness in the core.

use core::convert::Infallible;

use getrandom::SysRng;
use rand_core::{TryCryptoRng, TryRng};

/// The operating system's generator, with no state in the process that a fork or a clone could duplicate.
///
/// If the system gives no randomness nothing safe can be done: the call unwinds to the entry point, which answers
/// `MPC_INTERNAL` and poisons the session.
pub struct OsRng;

impl TryRng for OsRng {
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
        if SysRng.try_fill_bytes(bytes).is_err() {
            std::panic::resume_unwind(Box::new(()));
        }
        Ok(())
    }
}

impl TryCryptoRng for OsRng {}
