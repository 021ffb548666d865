//! The evaluator: has one label of each wire, and opens one row of each table.

use std::io::{Read, Write};

use primitives::ot::PairState;
use rand_core::CryptoRng;

#[cfg(target_arch = "x86_64")]
use super::hash::native::Native;
use super::hash::{Permutation, SessionKey, hash};
use super::{Channel, Inputs, Outcome, RunError, agreement, session, transfer};
use crate::circuit::{Gate, Lit, Sink};
use crate::compile::{Limits, Sizes, compile, inputs};
use crate::line::Line;
use crate::program::Program;

const COLOUR: u128 = 1;

struct Evaluator<'a, R: Read, W: Write> {
    channel: &'a mut Channel<R, W>,
    rng: &'a mut dyn CryptoRng,
    pair: &'a PairState,
    session: [u8; 32],
    key: SessionKey,
    /// The label of each slot.
    labels: Vec<u128>,
    ands: u128,
    input: Option<Vec<bool>>,
    /// The two blocks of each AND of a batch.
    tables: Vec<[u128; 2]>,
    outputs: Vec<bool>,
    failure: Option<RunError>,
}

/// Evaluates a program that a garbler garbles. The sizes are those of both parties' open input fields.
///
/// # Errors
/// As for the garbler.
pub fn evaluate<R: Read, W: Write>(
    program: &Program,
    sizes: &[Sizes],
    input: Inputs,
    limits: Limits,
    channel: &mut Channel<R, W>,
    rng: &mut dyn CryptoRng,
) -> Result<Outcome, RunError> {
    let ports = inputs(program, sizes).map_err(|e| RunError::Program(program.sources.render(&e)))?;
    let agreed = agreement(program, &ports);
    let mut word = [0u8; 32];
    rng.fill_bytes(&mut word);
    channel.send(&agreed)?;
    channel.say(&word)?;
    let theirs = channel.block::<32>()?;
    let their_word = channel.block::<32>()?;
    if theirs != agreed {
        return Err(RunError::Peer("runs another program, or takes inputs of other sizes"));
    }
    let session = session(&agreed, &their_word, &word, b"transfers");
    let key = channel.block::<16>()?;
    let pair = transfer::set_up_receiver(&session, channel, rng)?;
    let mut evaluator = Evaluator {
        channel,
        rng,
        pair: &pair,
        session,
        key: SessionKey::new(&key),
        labels: vec![0],
        ands: 0,
        input: Some(input.0),
        tables: Vec::new(),
        outputs: Vec::new(),
        failure: None,
    };
    let compiled = compile(program, sizes, limits, &mut evaluator);
    let Evaluator { outputs, failure, .. } = evaluator;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let interface = compiled.map_err(|e| RunError::Program(program.sources.render(&e)))?;
    Ok(Outcome { outputs, interface, sent: channel.sent() })
}

impl<R: Read, W: Write> Evaluator<'_, R, W> {
    fn label(&self, lit: Lit) -> u128 {
        self.labels.get(lit.slot() as usize).copied().unwrap_or(0)
    }

    fn reach(&mut self, slots: u32) {
        if slots as usize > self.labels.len() {
            self.labels.resize(slots as usize, 0);
        }
    }

    fn take_inputs(&mut self, party: usize, first: u32, bits: u32) -> Result<(), RunError> {
        self.reach(first + bits);
        let labels = if party == 1 {
            let input = self.input.take().unwrap_or_default();
            if input.len() != bits as usize {
                return Err(RunError::Program(format!(
                    "the input has {} bits, and the program takes {bits}",
                    input.len()
                )));
            }
            transfer::receive(self.pair, &self.session, &input, self.channel, self.rng)?
        } else {
            let mut labels = Vec::with_capacity(bits as usize);
            for _ in 0..bits {
                labels.push(u128::from_le_bytes(self.channel.block()?));
            }
            labels
        };
        for (slot, label) in self.labels.iter_mut().skip(first as usize).zip(labels) {
            *slot = label;
        }
        Ok(())
    }

    fn open_outputs(&mut self, outputs: &[Lit]) -> Result<(), RunError> {
        let mut colours = vec![0u8; outputs.len()];
        self.channel.receive(&mut colours)?;
        if colours.iter().any(|c| *c > 1) {
            return Err(RunError::Peer("sent a colour that is no bit"));
        }
        // A constant has no label: its colours are made to differ by its value.
        self.outputs = outputs
            .iter()
            .zip(&colours)
            .map(|(lit, colour)| match lit.value() {
                Some(value) => value,
                None => self.label(*lit) & COLOUR != u128::from(*colour),
            })
            .collect();
        let results: Vec<u8> = self.outputs.iter().map(|bit| u8::from(*bit)).collect();
        Ok(self.channel.say(&results)?)
    }

    fn note(&mut self, result: Result<(), RunError>) -> Result<(), String> {
        result.map_err(|e| {
            let text = e.to_string();
            self.failure = Some(e);
            text
        })
    }
}

impl<R: Read, W: Write> Sink for Evaluator<'_, R, W> {
    fn input(&mut self, party: usize, first: u32, bits: u32) -> Result<(), String> {
        let result = self.take_inputs(party, first, bits);
        self.note(result)
    }

    fn gates(&mut self, gates: &[Gate]) -> Result<(), String> {
        self.reach(gates.iter().map(|g| g.out() + 1).max().unwrap_or(0));
        let ands = gates.iter().filter(|g| g.is_and()).count();
        self.tables.resize(ands, [0; 2]);
        let read = self.channel.receive_blocks(self.tables.as_flattened_mut()).map_err(RunError::from);
        self.note(read)?;
        let (labels, ands) = (self.labels.as_mut_slice(), &mut self.ands);
        match &self.key {
            SessionKey::Portable(key) => evaluate_gates(key, labels, ands, gates, &self.tables),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this variant exists only where the processor has the instructions.
            SessionKey::Native(key) => unsafe { evaluate_natively(key, labels, ands, gates, &self.tables) },
        }
        Ok(())
    }

    fn outputs(&mut self, outputs: &[Lit]) -> Result<(), String> {
        let result = self.open_outputs(outputs);
        self.note(result)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "aes")]
fn evaluate_natively(
    key: &Native,
    labels: &mut [u128],
    ands: &mut u128,
    gates: &[Gate],
    tables: &[[u128; 2]],
) {
    evaluate_gates(key, labels, ands, gates, tables);
}

/// Evaluates gates in order, with one table for each AND.
#[inline(always)]
fn evaluate_gates<P: Permutation>(
    key: &P,
    labels: &mut [u128],
    ands: &mut u128,
    gates: &[Gate],
    tables: &[[u128; 2]],
) {
    let mut tables = tables.iter();
    let label = |labels: &[u128], lit: Lit| labels.get(lit.slot() as usize).copied().unwrap_or(0);
    let mask = |bit: u128, value: u128| value & (bit & COLOUR).wrapping_neg();
    for gate in gates {
        let (a, b) = (label(labels, gate.a), label(labels, gate.b));
        let out = if gate.is_and() {
            let [generator, evaluator] = tables.next().copied().unwrap_or([0; 2]);
            let (i, j) = (2 * *ands, 2 * *ands + 1);
            *ands += 1;
            let [ha, hb] = hash(key, [(a, i), (b, j)]);
            ha ^ mask(a, generator) ^ hb ^ mask(b, evaluator ^ a)
        } else {
            a ^ b
        };
        if let Some(slot) = labels.get_mut(gate.out() as usize) {
            *slot = out;
        }
    }
}
