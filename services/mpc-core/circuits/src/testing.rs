//! Running the `@Test` lines of a program.

use crate::circuit::Plain;
use crate::compile::{Interface, Limits, compile};
use crate::notation::{TestLine, leaf, leaves, sizes, tests, unsigned};
use crate::program::Program;
use crate::report::Error;

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
