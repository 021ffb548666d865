//! Calls that were compiled before: their gates are recorded and sent again.
//!
//! The circuit of a call depends on the arguments' types and constants and on which of their bits are the same wire.
//! Calls that agree in these have equal circuits, unless the function writes outside its own variables. The first such
//! call streams its gates, the second is recorded, and the later ones are copies of the recording, at a fraction of the
//! compiler's work for each gate.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use num_bigint::BigInt;

use super::value::Value;
use super::{Compiler, Frame};
use crate::build::{Builder, Lit};
use crate::circuit::Circuit;
use crate::report::{Res, Span};
use crate::syntax::ast::Function;
use crate::types::Type;

/// Gates of one recording, at most: 24 MB.
const MAX_GATES: usize = 2_000_000;
/// Gates of all recordings, at most: 240 MB.
const MAX_GATES_IN_ALL: usize = 20_000_000;

/// The function, by the address of its syntax, which lives as long as the program.
type FunctionId = usize;

/// The part of an argument that is known when the program is compiled.
#[derive(PartialEq)]
enum Argument {
    Data(Type),
    Untyped(BigInt),
}

/// Everything that the circuit of a call depends on.
#[derive(PartialEq)]
struct Shape {
    package: usize,
    arguments: Vec<Argument>,
    /// Each bit of the arguments: 0 or 1 for a constant, otherwise 2 more than twice the number of the wire, in the
    /// order in which the wires appear, and 1 more if it is inverted where the first use of the wire is not.
    bits: Vec<u32>,
}

enum Stage {
    /// Called once.
    Seen,
    /// Never to be recorded: too large, or refused.
    Streamed,
    Recorded(Rc<Recording>),
}

struct Recording {
    circuit: Circuit,
    results: Vec<Type>,
}

/// The recordings of a compiler.
#[derive(Default)]
pub(super) struct Recordings {
    calls: HashMap<(FunctionId, u64), Vec<(Shape, Stage)>>,
    /// Functions that write outside their own variables.
    impure: HashSet<FunctionId>,
    gates: usize,
    /// A package's variable was written: from there on the circuit of a call may depend on it.
    pub(super) global_written: bool,
    /// While a call is recorded: variables of shallower frames must not be written.
    pub(super) floor: Option<usize>,
    /// A write below the floor was refused.
    pub(super) refused: bool,
}

impl Compiler<'_, '_> {
    /// The results of a call from its recording; `None` if it is to be compiled.
    pub(super) fn replayed(
        &mut self,
        package: usize,
        file: usize,
        function: &Rc<Function>,
        values: &[Value],
        has_receiver: bool,
        span: Span,
    ) -> Option<Value> {
        let id: FunctionId = Rc::as_ptr(function).addr();
        if self.recordings.global_written || self.recordings.impure.contains(&id) {
            return None;
        }
        let (shape, wires, hash) = shape(package, values)?;
        if wires.is_empty() {
            return None;
        }
        let key = (id, hash);
        let known = self.recordings.calls.entry(key).or_default();
        let recording = match known.iter_mut().find(|(s, _)| *s == shape) {
            None => {
                known.push((shape, Stage::Seen));
                return None;
            }
            Some((_, Stage::Streamed)) => return None,
            Some((_, Stage::Recorded(recording))) => recording.clone(),
            Some((_, Stage::Seen)) => {
                let made = self.record_call(package, file, function, &shape, has_receiver, wires.len(), span);
                if std::mem::take(&mut self.recordings.refused) {
                    self.recordings.impure.insert(id);
                }
                let made = made.map(Rc::new);
                let stage = made.clone().map_or(Stage::Streamed, Stage::Recorded);
                let entries = self.recordings.calls.get_mut(&key)?;
                entries.iter_mut().find(|(s, _)| *s == shape)?.1 = stage;
                made?
            }
        };
        let literals = self.builder.replay(&recording.circuit, &wires);
        let mut rest = literals.as_slice();
        let mut results = Vec::with_capacity(recording.results.len());
        for ty in &recording.results {
            let (bits, after) = rest.split_at_checked(ty.size()?)?;
            rest = after;
            results.push(self.data(ty.clone(), bits.to_vec()));
        }
        Some(super::calls::one_or_tuple(results))
    }

    /// Compiles a call into a circuit of its own, with fresh wires for those of its arguments.
    #[allow(clippy::too_many_arguments, reason = "what a call is made of")]
    fn record_call(
        &mut self,
        package: usize,
        file: usize,
        function: &Rc<Function>,
        shape: &Shape,
        has_receiver: bool,
        wires: usize,
        span: Span,
    ) -> Option<Recording> {
        let room = MAX_GATES.min(MAX_GATES_IN_ALL.saturating_sub(self.recordings.gates));
        if room == 0 {
            return None;
        }
        let outer = std::mem::replace(&mut self.builder, Builder::recording(room));
        let registry = std::mem::take(&mut self.registry);
        let floor = self.recordings.floor.replace(self.callers.len() + 1);
        let (pointers, escaped, statements) = (self.pointers.len(), self.escaped, self.statements);
        let depth = self.callers.len();
        let inputs = self.builder.input(0, wires);
        let result = self.record_values(package, file, function, shape, has_receiver, &inputs, span);
        // An error leaves the frames of the calls that it came through.
        while self.callers.len() > depth {
            self.leave();
        }
        self.pointers.truncate(pointers);
        (self.escaped, self.statements) = (escaped, statements);
        self.recordings.floor = floor;
        let builder = std::mem::replace(&mut self.builder, outer);
        // A package's variable that was first used here stays, and its bits must still be found.
        let made = std::mem::replace(&mut self.registry, registry);
        self.registry.extend(made.into_iter().filter(|weak| weak.strong_count() > 0));
        let mut literals = Vec::new();
        let mut results = Vec::new();
        for value in result.ok()? {
            let Value::Data(ty, bits) = value else { return None };
            if ty.has_pointer() || ty.size() != Some(bits.len()) {
                return None;
            }
            literals.extend(bits.to_vec());
            results.push(ty);
        }
        let circuit = builder.recorded(&literals)?;
        self.recordings.gates += circuit.gates.len();
        Some(Recording { circuit, results })
    }

    #[allow(clippy::too_many_arguments, reason = "what a call is made of")]
    fn record_values(
        &mut self,
        package: usize,
        file: usize,
        function: &Rc<Function>,
        shape: &Shape,
        has_receiver: bool,
        inputs: &[Lit],
        span: Span,
    ) -> Res<Vec<Value>> {
        let literal = |code: u32| match code.checked_sub(2) {
            None => Lit::constant(code == 1),
            Some(code) => {
                let wire = inputs.get(code as usize / 2).copied().unwrap_or(Lit::FALSE);
                if code & 1 == 1 { !wire } else { wire }
            }
        };
        let mut bits = shape.bits.iter().map(|code| literal(*code));
        let mut values = Vec::with_capacity(shape.arguments.len());
        for argument in &shape.arguments {
            values.push(match argument {
                Argument::Untyped(number) => Value::Untyped(number.clone()),
                Argument::Data(ty) => {
                    let literals = bits.by_ref().take(ty.size().unwrap_or(0)).collect();
                    self.data(ty.clone(), literals)
                }
            });
        }
        let receiver = if has_receiver { Some(values.remove(0)) } else { None };
        self.enter(package, file);
        self.run_body(function, receiver, values, span)?;
        let Frame { results, .. } = self.leave();
        results
            .into_iter()
            .map(|value| match value {
                Some(value) => Ok(value),
                None => crate::report::fail(function.span, "a result is never set"),
            })
            .collect()
    }

    /// Whether a variable of this depth may be written; notes it if a recording has to be abandoned.
    pub(super) fn may_write(&mut self, depth: usize) -> bool {
        if self.recordings.floor.is_some_and(|floor| depth < floor) {
            self.recordings.refused = true;
            return false;
        }
        self.recordings.global_written |= depth == 0;
        true
    }
}

/// The shape of a call, its wires in the order of their appearance, and a hash of the shape. `None` if an argument is
/// no plain value.
fn shape(package: usize, values: &[Value]) -> Option<(Shape, Vec<Lit>, u64)> {
    let mut arguments = Vec::with_capacity(values.len());
    let mut bits = Vec::new();
    let mut wires: Vec<Lit> = Vec::new();
    let mut numbers: HashMap<u32, u32> = HashMap::new();
    for value in values {
        let (ty, data) = match value {
            Value::Data(ty, data) => (ty, data),
            Value::Untyped(number) => {
                arguments.push(Argument::Untyped(number.clone()));
                continue;
            }
            _ => return None,
        };
        if ty.has_pointer() || ty.size() != Some(data.len()) {
            return None;
        }
        arguments.push(Argument::Data(ty.clone()));
        for lit in data.0.borrow().iter() {
            bits.push(match lit.value() {
                Some(value) => u32::from(value),
                None => {
                    let next = u32::try_from(wires.len()).ok()?;
                    let number = *numbers.entry(lit.slot()).or_insert(next);
                    if number == next {
                        wires.push(*lit);
                    }
                    let first = wires.get(number as usize)?;
                    2 + 2 * number + u32::from(first.inverted() != lit.inverted())
                }
            });
        }
    }
    let hash = bits.iter().fold(bits.len() as u64, |hash, code| {
        (hash ^ u64::from(*code)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)
    });
    Some((Shape { package, arguments, bits }, wires, hash))
}
