//! The evaluator's labels by oblivious transfer: the set-up of a session, and as many extensions as its input needs.

use std::io::{Read, Write};

use primitives::ot::{
    CORRECTION_BYTES, EXTENDED, EXTENSION_BYTES, Initiator, PairState, REQUEST_BYTES, RESPONSE_BYTES,
    Responder, TRANSFER_SALT_BYTES,
};
use rand_core::CryptoRng;

use super::{Channel, RunError};
use crate::line::Line;

const FAILED: RunError = RunError::Peer("failed the check of an oblivious transfer");

/// The garbler's side of the set-up.
pub fn set_up_sender<R: Read, W: Write>(
    binding: &[u8; 32],
    channel: &mut Channel<R, W>,
    rng: &mut dyn CryptoRng,
) -> Result<PairState, RunError> {
    let (initiator, request) = Initiator::begin(binding, rng);
    channel.say(&request)?;
    let response = channel.block::<RESPONSE_BYTES>()?;
    let (state, corrections) = initiator.finish(&response, rng).map_err(|_| FAILED)?;
    channel.say(&corrections)?;
    Ok(state)
}

/// The evaluator's side of the set-up.
pub fn set_up_receiver<R: Read, W: Write>(
    binding: &[u8; 32],
    channel: &mut Channel<R, W>,
    rng: &mut dyn CryptoRng,
) -> Result<PairState, RunError> {
    let request = channel.block::<REQUEST_BYTES>()?;
    let (responder, response) = Responder::answer(binding, &request, rng).map_err(|_| FAILED)?;
    channel.say(&response)?;
    let corrections = channel.block::<CORRECTION_BYTES>()?;
    responder.finish(&corrections).map_err(|_| FAILED)
}

/// The binding of the n-th extension of a session.
fn binding(session: &[u8; 32], n: usize) -> [u8; 32] {
    super::session(session, &[0; 32], &[0; 32], &(n as u64).to_be_bytes())
}

/// Sends one of each pair of labels.
pub fn send<R: Read, W: Write>(
    state: &PairState,
    session: &[u8; 32],
    labels: &[[u128; 2]],
    channel: &mut Channel<R, W>,
    rng: &mut dyn CryptoRng,
) -> Result<(), RunError> {
    for (n, chunk) in labels.chunks(EXTENDED).enumerate() {
        let message = channel.block::<EXTENSION_BYTES>()?;
        let flips = channel.block::<{ EXTENDED.div_ceil(8) }>()?;
        let correlation = state.sender.extend(&binding(session, n), &message).map_err(|_| FAILED)?;
        let (salt, keys) = correlation.transfers(rng);
        channel.send(&salt)?;
        for (i, (label, key)) in chunk.iter().zip(keys.iter()).enumerate() {
            let flip = flips.get(i / 8).is_some_and(|byte| byte >> (i % 8) & 1 == 1);
            let [zero, one] = *label;
            let [first, second] = if flip { [key[1], key[0]] } else { *key };
            channel.send(&(zero ^ first).to_le_bytes())?;
            channel.send(&(one ^ second).to_le_bytes())?;
        }
        channel.flush()?;
    }
    Ok(())
}

/// Receives the label of each choice.
pub fn receive<R: Read, W: Write>(
    state: &PairState,
    session: &[u8; 32],
    choices: &[bool],
    channel: &mut Channel<R, W>,
    rng: &mut dyn CryptoRng,
) -> Result<Vec<u128>, RunError> {
    let mut labels = Vec::with_capacity(choices.len());
    for (n, chunk) in choices.chunks(EXTENDED).enumerate() {
        let (correlation, message) = state.receiver.extend(&binding(session, n), rng);
        channel.send(&message)?;
        let mut flips = [0u8; EXTENDED.div_ceil(8)];
        for (i, (choice, random)) in chunk.iter().zip(correlation.choice_bits().iter()).enumerate() {
            if let Some(byte) = flips.get_mut(i / 8) {
                *byte |= (u8::from(*choice) ^ random) << (i % 8);
            }
        }
        channel.say(&flips)?;
        let salt = channel.block::<TRANSFER_SALT_BYTES>()?;
        for (choice, key) in chunk.iter().zip(correlation.transfers(&salt).iter()) {
            let zero = u128::from_le_bytes(channel.block()?);
            let one = u128::from_le_bytes(channel.block()?);
            labels.push(key ^ if *choice { one } else { zero });
        }
    }
    Ok(labels)
}
