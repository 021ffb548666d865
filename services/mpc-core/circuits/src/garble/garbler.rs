//! The garbler: draws labels, and sends the tables of gates.

use std::io::{Read, Write};

use primitives::ot::PairState;
use rand_core::CryptoRng;

use super::hash::LabelHash;
use super::{Channel, Inputs, Outcome, RunError, agreement, session, transfer};
use crate::build::{Gate, Lit, Sink};
use crate::compile::{Limits, Sizes, compile, inputs};
use crate::program::Program;

/// A label's colour is its lowest bit; that of the difference is 1, so the labels of a wire have different colours.
const COLOUR: u128 = 1;

struct Garbler<'a, R: Read, W: Write> {
    channel: &'a mut Channel<R, W>,
    rng: &'a mut dyn CryptoRng,
    pair: &'a PairState,
    session: [u8; 32],
    hash: LabelHash,
    delta: u128,
    /// The label that stands for 0, of each slot.
    zeros: Vec<u128>,
    ands: u128,
    input: Option<Vec<bool>>,
    tables: Vec<u8>,
    outputs: Vec<bool>,
    failure: Option<RunError>,
}

/// Garbles a program for an evaluator. The sizes are those of both parties' open input fields.
///
/// # Errors
/// A broken connection, a program that does not compile, or a peer that deviates where that shows.
pub fn garble<R: Read, W: Write>(
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
    let mut key = [0u8; 16];
    let mut delta = [0u8; 16];
    rng.fill_bytes(&mut word);
    rng.fill_bytes(&mut key);
    rng.fill_bytes(&mut delta);
    channel.send(&agreed)?;
    channel.send(&word)?;
    channel.say(&key)?;
    let theirs = channel.block::<32>()?;
    let their_word = channel.block::<32>()?;
    if theirs != agreed {
        return Err(RunError::Peer("runs another program, or takes inputs of other sizes"));
    }
    let session = session(&agreed, &word, &their_word, b"transfers");
    let pair = transfer::set_up_sender(&session, channel, rng)?;
    let mut garbler = Garbler {
        channel,
        rng,
        pair: &pair,
        session,
        hash: LabelHash::new(&key),
        delta: u128::from_le_bytes(delta) | COLOUR,
        zeros: vec![0],
        ands: 0,
        input: Some(input.0),
        tables: Vec::new(),
        outputs: Vec::new(),
        failure: None,
    };
    let compiled = compile(program, sizes, limits, &mut garbler);
    let Garbler { outputs, failure, .. } = garbler;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let interface = compiled.map_err(|e| RunError::Program(program.sources.render(&e)))?;
    Ok(Outcome { outputs, interface, sent: channel.sent() })
}

impl<R: Read, W: Write> Garbler<'_, R, W> {
    fn zero(&self, lit: Lit) -> u128 {
        let label = self.zeros.get(lit.slot() as usize).copied().unwrap_or(0);
        if lit.inverted() { label ^ self.delta } else { label }
    }

    fn reach(&mut self, slots: u32) {
        if slots as usize > self.zeros.len() {
            self.zeros.resize(slots as usize, 0);
        }
    }

    fn give_inputs(&mut self, party: usize, first: u32, bits: u32) -> Result<(), RunError> {
        self.reach(first + bits);
        let mut bytes = vec![0u8; 16 * bits as usize];
        self.rng.fill_bytes(&mut bytes);
        let zeros: Vec<u128> = bytes.as_chunks::<16>().0.iter().map(|b| u128::from_le_bytes(*b)).collect();
        for (slot, zero) in self.zeros.iter_mut().skip(first as usize).zip(&zeros) {
            *slot = *zero;
        }
        if party == 1 {
            let pairs: Vec<[u128; 2]> = zeros.iter().map(|zero| [*zero, zero ^ self.delta]).collect();
            return transfer::send(self.pair, &self.session, &pairs, self.channel, self.rng);
        }
        let input = self.input.take().unwrap_or_default();
        if input.len() != zeros.len() {
            return Err(RunError::Program(format!(
                "the input has {} bits, and the program takes {}",
                input.len(),
                zeros.len()
            )));
        }
        for (zero, bit) in zeros.iter().zip(input) {
            let label = if bit { zero ^ self.delta } else { *zero };
            self.channel.send(&label.to_le_bytes())?;
        }
        Ok(self.channel.flush()?)
    }

    fn give_outputs(&mut self, outputs: &[Lit]) -> Result<(), RunError> {
        let colours: Vec<u8> = outputs.iter().map(|lit| u8::from(self.zero(*lit) & COLOUR == 1)).collect();
        self.channel.say(&colours)?;
        let mut results = vec![0u8; outputs.len()];
        self.channel.receive(&mut results)?;
        if results.iter().any(|r| *r > 1) {
            return Err(RunError::Peer("sent a result that is no bit"));
        }
        self.outputs = results.iter().map(|r| *r == 1).collect();
        Ok(())
    }

    fn note(&mut self, result: Result<(), RunError>) -> Result<(), String> {
        result.map_err(|e| {
            let text = e.to_string();
            self.failure = Some(e);
            text
        })
    }
}

impl<R: Read, W: Write> Sink for Garbler<'_, R, W> {
    fn input(&mut self, party: usize, first: u32, bits: u32) -> Result<(), String> {
        let result = self.give_inputs(party, first, bits);
        self.note(result)
    }

    fn gates(&mut self, gates: &[Gate]) -> Result<(), String> {
        self.reach(gates.iter().map(|g| g.out() + 1).max().unwrap_or(0));
        self.tables.clear();
        for gate in gates {
            let (a, b) = (self.zero(gate.a), self.zero(gate.b));
            let out = if gate.is_and() {
                // Two halves: a ∧ colour(b), which the garbler knows, and a ∧ (b ⊕ colour(b)), which the evaluator knows.
                let (i, j) = (2 * self.ands, 2 * self.ands + 1);
                self.ands += 1;
                let [a0, a1, b0, b1] =
                    self.hash.hash([(a, i), (a ^ self.delta, i), (b, j), (b ^ self.delta, j)]);
                let mask = |bit: u128, value: u128| value & (bit & COLOUR).wrapping_neg();
                let generator = a0 ^ a1 ^ mask(b, self.delta);
                let evaluator = b0 ^ b1 ^ a;
                self.tables.extend_from_slice(&generator.to_le_bytes());
                self.tables.extend_from_slice(&evaluator.to_le_bytes());
                a0 ^ mask(a, generator) ^ b0 ^ mask(b, evaluator ^ a)
            } else {
                a ^ b
            };
            if let Some(slot) = self.zeros.get_mut(gate.out() as usize) {
                *slot = out;
            }
        }
        let result = self.channel.send(&self.tables).map_err(RunError::from);
        self.note(result)
    }

    fn outputs(&mut self, outputs: &[Lit]) -> Result<(), String> {
        let result = self.give_outputs(outputs);
        self.note(result)
    }
}
