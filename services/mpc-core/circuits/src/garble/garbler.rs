//! The garbler: draws labels, and sends the tables of gates.

use std::io::{Read, Write};

use primitives::hedge::HedgedRng;
use primitives::ot::PairState;
use rand_core::{CryptoRng, Rng};

#[cfg(target_arch = "x86_64")]
use super::hash::native::Native;
use super::hash::{Permutation, SessionKey, hash};
use super::{Channel, Inputs, Outcome, RunError, agreement, session, transfer};
use crate::circuit::{Gate, Lit, Sink};
use crate::compile::{Limits, Sizes, compile, inputs};
use crate::line::Line;
use crate::program::Program;

/// A label's colour is its lowest bit; that of the difference is 1, so the labels of a wire have different colours.
const COLOUR: u128 = 1;

struct Garbler<'a, R: Read, W: Write> {
    channel: &'a mut Channel<R, W>,
    rng: &'a mut dyn CryptoRng,
    pair: &'a PairState,
    session: [u8; 32],
    key: SessionKey,
    delta: u128,
    /// The label that stands for 0, of each slot.
    zeros: Vec<u128>,
    ands: u128,
    input: Option<Vec<bool>>,
    /// The two blocks of each AND of a batch.
    tables: Vec<[u128; 2]>,
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
    rng.fill_bytes(&mut word);
    channel.send(&agreed)?;
    channel.say(&word)?;
    let theirs = channel.block::<32>()?;
    let their_word = channel.block::<32>()?;
    if theirs != agreed {
        return Err(RunError::Peer("runs another program, or takes inputs of other sizes"));
    }
    let session = session(&agreed, &word, &their_word, b"transfers");
    // A generator whose state repeats meets another word of the peer, and two inputs never share labels.
    let own: Vec<u8> = input.0.iter().map(|bit| u8::from(*bit)).collect();
    let rng = &mut HedgedRng::new("garbler", &[&session, &own], rng);
    let mut key = [0u8; 16];
    let mut delta = [0u8; 16];
    rng.fill_bytes(&mut key);
    rng.fill_bytes(&mut delta);
    channel.say(&key)?;
    let pair = transfer::set_up_sender(&session, channel, rng)?;
    let mut garbler = Garbler {
        channel,
        rng,
        pair: &pair,
        session,
        key: SessionKey::new(&key),
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
        let ands = gates.iter().filter(|g| g.is_and()).count();
        self.tables.resize(ands, [0; 2]);
        let wires = Wires { zeros: &mut self.zeros, delta: self.delta, ands: &mut self.ands };
        match &self.key {
            SessionKey::Portable(key) => garble_gates(key, wires, gates, &mut self.tables),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this variant exists only where the processor has the instructions.
            SessionKey::Native(key) => unsafe { garble_natively(key, wires, gates, &mut self.tables) },
        }
        let result = self.channel.send_blocks(self.tables.as_flattened()).map_err(RunError::from);
        self.note(result)
    }

    fn outputs(&mut self, outputs: &[Lit]) -> Result<(), String> {
        let result = self.give_outputs(outputs);
        self.note(result)
    }
}

/// The state of wires between two batches of gates.
struct Wires<'a> {
    zeros: &'a mut [u128],
    delta: u128,
    ands: &'a mut u128,
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "aes")]
fn garble_natively(key: &Native, wires: Wires<'_>, gates: &[Gate], tables: &mut [[u128; 2]]) {
    garble_gates(key, wires, gates, tables);
}

/// Garbles gates in order; one table for each AND.
#[inline(always)]
fn garble_gates<P: Permutation>(key: &P, wires: Wires<'_>, gates: &[Gate], tables: &mut [[u128; 2]]) {
    let Wires { zeros, delta, ands } = wires;
    let mut tables = tables.iter_mut();
    let zero = |zeros: &[u128], lit: Lit| {
        let label = zeros.get(lit.slot() as usize).copied().unwrap_or(0);
        label ^ (delta & u128::from(lit.inverted()).wrapping_neg())
    };
    let mask = |bit: u128, value: u128| value & (bit & COLOUR).wrapping_neg();
    for gate in gates {
        let (a, b) = (zero(zeros, gate.a), zero(zeros, gate.b));
        let out = if gate.is_and() {
            // Two halves: a ∧ colour(b), which the garbler knows, and a ∧ (b ⊕ colour(b)), which the evaluator knows.
            let (i, j) = (2 * *ands, 2 * *ands + 1);
            *ands += 1;
            let [a0, a1, b0, b1] = hash(key, [(a, i), (a ^ delta, i), (b, j), (b ^ delta, j)]);
            let generator = a0 ^ a1 ^ mask(b, delta);
            let evaluator = b0 ^ b1 ^ a;
            if let Some(table) = tables.next() {
                *table = [generator, evaluator];
            }
            a0 ^ mask(a, generator) ^ b0 ^ mask(b, evaluator ^ a)
        } else {
            a ^ b
        };
        if let Some(slot) = zeros.get_mut(gate.out() as usize) {
            *slot = out;
        }
    }
}
