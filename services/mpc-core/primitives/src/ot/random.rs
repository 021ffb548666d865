//! Random transfers: the pads of one extension as keys, for callers outside this crate that transfer strings of their
//! own.

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::extension::{ReceiverCorrelation, SenderCorrelation};
use super::pads::{SALT_BYTES, SenderSalt};
use crate::hedge::HedgedRng;

/// Bytes of the sender's salt, which it sends once it has the receiver's message.
pub const TRANSFER_SALT_BYTES: usize = SALT_BYTES;

impl ReceiverCorrelation {
    /// The random choice bit, 0 or 1, of each of the [`super::EXTENDED`] transfers.
    pub fn choice_bits(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.choices().collect())
    }

    /// The key of each choice.
    pub fn transfers(&self, salt: &[u8; TRANSFER_SALT_BYTES]) -> Zeroizing<Vec<u128>> {
        let pads = self.pads::<1>(&self.key(&SenderSalt::new(salt)));
        Zeroizing::new(pads.iter().map(|[pad]| u128::from_le_bytes(*pad)).collect())
    }
}

impl SenderCorrelation {
    /// The salt to send, and both keys of each transfer.
    pub fn transfers(
        &self,
        rng: &mut dyn CryptoRng,
    ) -> ([u8; TRANSFER_SALT_BYTES], Zeroizing<Vec<[u128; 2]>>) {
        // With what the salt answers as well, so that a repeated generator answers another message with another salt.
        let delta = Zeroizing::new(self.delta.expose().to_le_bytes());
        let parts: [&[u8]; 2] = [delta.as_ref(), self.received()];
        let mut rng = HedgedRng::new("sender of random transfers", &parts, rng);
        let salt = SenderSalt::draw(&mut rng);
        let [zeros, ones] = self.pads::<1>(&self.key(&salt));
        let keys = zeros.iter().zip(ones.iter());
        let pairs =
            keys.map(|([zero], [one])| [u128::from_le_bytes(*zero), u128::from_le_bytes(*one)]).collect();
        (*salt.as_bytes(), Zeroizing::new(pairs))
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    use crate::ot::{EXTENDED, Initiator, Responder};

    #[test]
    fn a_generator_that_repeats_gives_another_salt_under_another_binding_or_for_another_message() {
        let seeded = |seed| ChaCha20Rng::seed_from_u64(seed);
        let rng = &mut seeded(3);
        let (initiator, request) = Initiator::begin(&[1; 32], rng);
        let (responder, response) =
            Responder::answer(&[1; 32], request.as_slice().try_into().unwrap(), rng).unwrap();
        let (first, corrections) = initiator.finish(response.as_slice().try_into().unwrap(), rng).unwrap();
        let second = responder.finish(corrections.as_slice().try_into().unwrap()).unwrap();
        let salt = |binding: u8, receiver: u64, sender: u64| {
            let (_, message) = second.receiver.extend(&[binding; 32], &mut seeded(receiver));
            let sent = first.sender.extend(&[binding; 32], message.as_slice().try_into().unwrap()).unwrap();
            sent.transfers(&mut seeded(sender)).0
        };
        assert_eq!(salt(5, 1, 1), salt(5, 1, 1));
        assert_ne!(salt(5, 1, 1), salt(6, 1, 1));
        assert_ne!(salt(5, 1, 1), salt(5, 2, 1));
        assert_ne!(salt(5, 1, 1), salt(5, 1, 2));
    }

    #[test]
    fn the_receiver_has_the_key_of_its_choice_and_not_the_other() {
        let rng = &mut ChaCha20Rng::seed_from_u64(3);
        let (initiator, request) = Initiator::begin(&[1; 32], rng);
        let (responder, response) =
            Responder::answer(&[1; 32], request.as_slice().try_into().unwrap(), rng).unwrap();
        let (first, corrections) = initiator.finish(response.as_slice().try_into().unwrap(), rng).unwrap();
        let second = responder.finish(corrections.as_slice().try_into().unwrap()).unwrap();
        let (received, message) = second.receiver.extend(&[5; 32], rng);
        let sent = first.sender.extend(&[5; 32], message.as_slice().try_into().unwrap()).unwrap();
        let (salt, pairs) = sent.transfers(rng);
        let keys = received.transfers(&salt);
        assert_eq!((pairs.len(), keys.len()), (EXTENDED, EXTENDED));
        let choices = received.choice_bits();
        for (([zero, one], key), choice) in pairs.iter().zip(keys.iter()).zip(choices.iter()) {
            assert_eq!(key, if *choice == 1 { one } else { zero });
            assert_ne!(zero, one);
        }
    }
}
