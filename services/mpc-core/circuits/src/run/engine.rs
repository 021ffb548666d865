//! One party's evaluation, by the engine that the program asks for.

use std::io::{Read, Write};

use circuits::authenticated::{self, Entry, MAX_ANDS, Pair, Prepared, Role, expected_bytes};
use circuits::circuit::{Gate, Lit, Recorder, Sink};
use circuits::compile::{Interface, Limits, Sizes, compile};
use circuits::garble::{Channel, Inputs, evaluate, garble};
use circuits::line::now;
use circuits::program::Program;
use getrandom::SysRng;
use primitives::Secret;
use rand_core::UnwrapErr;
use zeroize::Zeroizing;

use super::failure::Failure;

/// Gates of all kinds that are held in memory, at most.
const MAX_RECORDED: usize = 20_000_000;

/// Bits of both inputs that the authenticated engine takes: it holds shares and a label of each in memory. The peer
/// chooses the sizes of its open inputs.
pub const MAX_CHECKED_INPUT: usize = 1 << 21;

const TOO_MANY: &str = "the program has more than 2^20 AND gates, which only the engine against curious parties takes: \
    if neither party would deviate, write `// @SemiHonest` above main on both sides";

/// The program that both parties agreed to evaluate.
pub struct Task<'a> {
    pub program: &'a Program,
    /// Of both parties' inputs.
    pub sizes: &'a [Sizes],
    pub role: Role,
    /// Of this connection alone.
    pub binding: [u8; 32],
}

impl Task<'_> {
    /// Half gates, gate by gate, between parties that do not deviate.
    pub fn stream<R: Read, W: Write>(
        &self,
        bits: Zeroizing<Vec<u8>>,
        channel: &mut Channel<R, W>,
    ) -> Result<(Vec<bool>, Interface), Failure> {
        let inputs = Inputs::new(bits.iter().map(|bit| *bit == 1).collect());
        let rng = &mut UnwrapErr(SysRng);
        let limits = Limits::default();
        let outcome = match self.role {
            Role::Garbler => garble(self.program, self.sizes, inputs, limits, channel, rng),
            Role::Evaluator => evaluate(self.program, self.sizes, inputs, limits, channel, rng),
        }?;
        Ok((outcome.outputs, outcome.interface))
    }

    /// Authenticated garbling, against a party that deviates in any way. `expected` hears about how many bytes it
    /// takes.
    pub fn authenticated<R: Read, W: Write>(
        &self,
        mut bits: Zeroizing<Vec<u8>>,
        channel: &mut Channel<R, W>,
        expected: &dyn Fn(f64),
    ) -> Result<(Vec<bool>, Interface), Failure> {
        let mut held = Held { recorder: Recorder { limit: MAX_RECORDED, ..Recorder::default() }, ands: 0 };
        let interface = compile(self.program, self.sizes, Limits::default(), &mut held)
            .map_err(|e| self.program.sources.render(&e))?;
        let mut circuit = held.recorder.circuit;
        circuit.prune();
        let mut circuit = circuit.compact();
        circuit.inputs.resize(2, 0);
        let ands = circuit.gates.iter().filter(|gate| gate.is_and()).count();
        if ands > MAX_ANDS {
            return Err(Failure::Own(TOO_MANY.into()));
        }
        expected(expected_bytes(ands));
        let input = Secret::new(std::mem::take(&mut *bits));
        let rng = &mut UnwrapErr(SysRng);
        let outputs = now(async {
            let pair = Pair::set_up(self.role, &self.binding, channel, rng).await?;
            let prepared = Prepared::new(&pair, &circuit, channel, rng).await?;
            authenticated::evaluate(&pair, prepared, Entry::Free(&input), channel).await
        })?;
        Ok((outputs, interface))
    }
}

/// Records a circuit up to the size that the engine takes.
struct Held {
    recorder: Recorder,
    ands: usize,
}

impl Sink for Held {
    fn input(&mut self, party: usize, first: u32, bits: u32) -> Result<(), String> {
        self.recorder.input(party, first, bits)
    }

    fn gates(&mut self, gates: &[Gate]) -> Result<(), String> {
        self.ands += gates.iter().filter(|gate| gate.is_and()).count();
        // Some of them may be removed again.
        match self.ands > 2 * MAX_ANDS {
            true => Err(TOO_MANY.into()),
            false => self.recorder.gates(gates),
        }
    }

    fn outputs(&mut self, outputs: &[Lit]) -> Result<(), String> {
        self.recorder.outputs(outputs)
    }
}
