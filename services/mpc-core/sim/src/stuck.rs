//! A generator that a fault has stuck.

use core::convert::Infallible;

use rand_core::{TryCryptoRng, TryRng};

/// Gives this byte for ever.
pub struct Stuck(pub u8);

impl TryRng for Stuck {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_be_bytes([self.0; 4]))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_be_bytes([self.0; 8]))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(self.0);
        Ok(())
    }
}

impl TryCryptoRng for Stuck {}
