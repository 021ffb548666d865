//! Running the `@Test` lines of a program.

use std::os::unix::net::UnixStream;

use getrandom::SysRng;
use primitives::Secret;
use rand_core::UnwrapErr;

use crate::authenticated::{self, Abort, Entry, Pair, Prepared, PrivateInput, Role};
use crate::circuit::{Circuit, Plain, Recorder};
use crate::compile::{Interface, Limits, compile};
use crate::garble::{Channel, Inputs, evaluate, garble};
use crate::line::now;
use crate::notation::{TestLine, leaf, leaves, sizes, tests, unsigned};
use crate::program::Program;
use crate::report::Error;
use crate::stack::STACK;

/// How a test line ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The line as written.
    pub line: String,
    /// The error message if it failed.
    pub failure: Option<String>,
    /// AND gates of the circuit.
    pub gates: u64,
}

/// A way to compute a program on both parties' inputs.
pub trait Engine {
    /// The outputs, and the program's interface.
    ///
    /// # Errors
    /// A program that does not compile, or an engine's failure, as text.
    fn run(
        &self,
        program: &Program,
        line: &TestLine,
        limits: Limits,
    ) -> Result<(Vec<bool>, Interface), String>;
}

/// Evaluation in the clear.
#[derive(Debug)]
pub struct Clear;

impl Engine for Clear {
    fn run(
        &self,
        program: &Program,
        line: &TestLine,
        limits: Limits,
    ) -> Result<(Vec<bool>, Interface), String> {
        let render = |e: Box<Error>| program.sources.render(&e);
        let given: Vec<_> = line.inputs.iter().map(|w| sizes(w)).collect();
        let inputs = input_bits(program, line)?;
        let mut plain = Plain::new(inputs);
        let interface = compile(program, &given, limits, &mut plain).map_err(render)?;
        Ok((plain.outputs, interface))
    }
}

/// Evaluation by garbling between two threads.
#[derive(Debug)]
pub struct Garbled;

impl Engine for Garbled {
    fn run(
        &self,
        program: &Program,
        line: &TestLine,
        limits: Limits,
    ) -> Result<(Vec<bool>, Interface), String> {
        let sizes: Vec<_> = line.inputs.iter().map(|w| sizes(w)).collect();
        let mut bits = input_bits(program, line)?.into_iter().map(Inputs::new);
        let (Some(first), Some(second)) = (bits.next(), bits.next()) else {
            return Err("garbling takes two parties".into());
        };
        let connection = |e: std::io::Error| e.to_string();
        let (left, right) = UnixStream::pair().map_err(connection)?;
        let mut garbling = Channel::new(left.try_clone().map_err(connection)?, left);
        let mut evaluating = Channel::new(right.try_clone().map_err(connection)?, right);
        let copy = program.copy();
        let (garbled, evaluated) = std::thread::scope(|scope| {
            let sizes = &sizes;
            let evaluator = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
                let program = copy.load().map_err(|e| e.to_string())?;
                let rng = &mut UnwrapErr(SysRng);
                let outcome = evaluate(&program, sizes, second, limits, &mut evaluating, rng);
                outcome.map(|o| o.outputs).map_err(|e| e.to_string())
            });
            let rng = &mut UnwrapErr(SysRng);
            let garbled =
                garble(program, sizes, first, limits, &mut garbling, rng).map_err(|e| e.to_string());
            // The other side must see the end of the connection if this one failed.
            drop(garbling);
            let evaluated = evaluator.map(|thread| thread.join());
            (garbled, evaluated)
        });
        let garbled = garbled?;
        match evaluated {
            Ok(Ok(Ok(evaluated))) if evaluated == garbled.outputs => Ok((garbled.outputs, garbled.interface)),
            Ok(Ok(Ok(_))) => Err("garbler and evaluator have different results".into()),
            Ok(Ok(Err(e))) => Err(e),
            _ => Err("the evaluator's thread failed".into()),
        }
    }
}

/// Evaluation by authenticated garbling between two threads, each with its own end of a connection and its own set-up.
#[derive(Debug)]
pub struct Authenticated;

impl Engine for Authenticated {
    fn run(
        &self,
        program: &Program,
        line: &TestLine,
        limits: Limits,
    ) -> Result<(Vec<bool>, Interface), String> {
        let given: Vec<_> = line.inputs.iter().map(|w| sizes(w)).collect();
        let mut bits = input_bits(program, line)?
            .into_iter()
            .map(|input| Secret::new(input.into_iter().map(u8::from).collect::<Vec<u8>>()));
        // A program may have one input, or none: the other party then has an empty one.
        let inputs = [bits.next(), bits.next()].map(|input| input.unwrap_or_else(|| Secret::new(Vec::new())));
        let mut recorder = Recorder { limit: MAX_RECORDED, ..Recorder::default() };
        let interface =
            compile(program, &given, limits, &mut recorder).map_err(|e| program.sources.render(&e))?;
        let mut circuit = recorder.circuit;
        circuit.prune();
        let mut circuit = circuit.compact();
        circuit.inputs.resize(2, 0);
        let [first, second] = &inputs;
        let (left, right) = UnixStream::pair().map_err(|e| e.to_string())?;
        let circuit = &circuit;
        let (garbled, evaluated) = std::thread::scope(|scope| {
            let evaluator = std::thread::Builder::new()
                .spawn_scoped(scope, move || authenticated_side(Role::Evaluator, circuit, second, right));
            let garbled = authenticated_side(Role::Garbler, circuit, first, left);
            (garbled, evaluator.map(std::thread::ScopedJoinHandle::join))
        });
        let garbled = garbled?;
        match evaluated {
            Ok(Ok(Ok(evaluated))) if evaluated == garbled => Ok((garbled, interface)),
            Ok(Ok(Ok(_))) => Err("garbler and evaluator have different results".into()),
            Ok(Ok(Err(e))) => Err(e),
            _ => Err("the evaluator's thread failed".into()),
        }
    }
}

/// Gates that are held in memory, at most.
const MAX_RECORDED: usize = 20_000_000;

/// One party's whole run over its end of a connection, which ends with it.
fn authenticated_side(
    role: Role,
    circuit: &Circuit,
    input: &PrivateInput,
    stream: UnixStream,
) -> Result<Vec<bool>, String> {
    let mut channel = Channel::new(stream.try_clone().map_err(|e| e.to_string())?, stream);
    let rng = &mut UnwrapErr(SysRng);
    let run = async {
        let pair = Pair::set_up(role, &[0; 32], &mut channel, rng).await?;
        let prepared = Prepared::new(&pair, circuit, &mut channel, rng).await?;
        authenticated::evaluate(&pair, prepared, Entry::Free(input), &mut channel).await
    };
    now(run).map_err(|abort: Abort| abort.to_string())
}

/// The bits of both parties' inputs in a test line.
///
/// # Errors
/// Values that do not fit the types of `main`.
pub fn input_bits(program: &Program, line: &TestLine) -> Result<Vec<Vec<bool>>, String> {
    let given: Vec<_> = line.inputs.iter().map(|w| sizes(w)).collect();
    let ports = crate::compile::inputs(program, &given).map_err(|e| program.sources.render(&e))?;
    if ports.len() != line.inputs.len() {
        return Err(format!(
            "main has {} parameters, and the test gives {} inputs",
            ports.len(),
            line.inputs.len()
        ));
    }
    ports.iter().zip(&line.inputs).map(|(port, written)| crate::notation::bits(port, written)).collect()
}

/// Runs every test line above `main`.
///
/// # Errors
/// A program without `main` or with a test line that cannot be read.
pub fn run(program: &Program, engine: &dyn Engine, limits: Limits) -> Result<Vec<Outcome>, String> {
    let main = program.main().map_err(|e| program.sources.render(&e))?;
    let lines = tests(&main.comment)?;
    Ok(lines
        .iter()
        .map(|line| match engine.run(program, line, limits) {
            Err(failure) => Outcome { line: line.text.clone(), failure: Some(failure), gates: 0 },
            Ok((bits, interface)) => {
                let failure = check(line, &bits, &interface).err();
                Outcome { line: line.text.clone(), failure, gates: interface.count.and }
            }
        })
        .collect())
}

fn check(line: &TestLine, bits: &[bool], interface: &Interface) -> Result<(), String> {
    let types: Vec<_> = interface.outputs.iter().flat_map(|p| leaves(&p.ty)).collect();
    if types.len() != line.outputs.len() {
        return Err(format!(
            "main gives {} values, and the test expects {}",
            types.len(),
            line.outputs.len()
        ));
    }
    let mut at = 0;
    for (i, (ty, expected)) in types.iter().zip(&line.outputs).enumerate() {
        let size = ty.size().unwrap_or(0);
        let got = bits.get(at..at + size).unwrap_or(&[]);
        at += size;
        let wanted = leaf(ty, expected).map_err(|e| format!("result {i}: expected {e}"))?;
        if got != wanted {
            return Err(format!(
                "result {i} of type {ty} is {:#x}, expected {:#x}",
                unsigned(got),
                unsigned(&wanted)
            ));
        }
    }
    Ok(())
}
