//! Calls that were compiled before: their gates are recorded and sent again.
//!
//! The circuit of a call depends on the arguments' types and constants and on which of their bits are the same wire.
//! Calls that agree in these have equal circuits, unless the function writes outside its own variables. The first such
//! call streams its gates, the second is recorded, and the later ones are copies of the recording, at a fraction of the
//! compiler's work for each gate.

use std::rc::Rc;

use super::calls::one_or_tuple;
use super::recordings::{Argument, FunctionId, Recording, Shape, Stage, shape};
use super::value::Value;
use super::{Compiler, Frame};
use crate::build::Builder;
use crate::circuit::Lit;
use crate::report::{Res, Span, fail};
use crate::syntax::ast::Function;

/// Gates of one recording, at most: 24 MB.
const MAX_GATES: usize = 2_000_000;
/// Gates of all recordings, at most: 240 MB.
const MAX_GATES_IN_ALL: usize = 20_000_000;

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
        Some(one_or_tuple(results))
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
                None => fail(function.span, "a result is never set"),
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
