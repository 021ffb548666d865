//! The recordings of calls, and what tells calls of equal circuits from others.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use num_bigint::BigInt;

use super::value::Value;
use crate::circuit::{Circuit, Lit};
use crate::types::Type;

/// The function, by the address of its syntax, which lives as long as the program.
pub(super) type FunctionId = usize;

/// The part of an argument that is known when the program is compiled.
#[derive(PartialEq)]
pub(super) enum Argument {
    Data(Type),
    Untyped(BigInt),
}

/// Everything that the circuit of a call depends on.
#[derive(PartialEq)]
pub(super) struct Shape {
    pub(super) package: usize,
    pub(super) arguments: Vec<Argument>,
    /// Each bit of the arguments: 0 or 1 for a constant, otherwise 2 more than twice the number of the wire, in the
    /// order in which the wires appear, and 1 more if it is inverted where the first use of the wire is not.
    pub(super) bits: Vec<u32>,
}

pub(super) enum Stage {
    /// Called once.
    Seen,
    /// Never to be recorded: too large, or refused.
    Streamed,
    Recorded(Rc<Recording>),
}

pub(super) struct Recording {
    pub(super) circuit: Circuit,
    pub(super) results: Vec<Type>,
}

/// The recordings of a compiler.
#[derive(Default)]
pub(super) struct Recordings {
    pub(super) calls: HashMap<(FunctionId, u64), Vec<(Shape, Stage)>>,
    /// Functions that write outside their own variables.
    pub(super) impure: HashSet<FunctionId>,
    pub(super) gates: usize,
    /// A package's variable was written: from there on the circuit of a call may depend on it.
    pub(super) global_written: bool,
    /// While a call is recorded: variables of shallower frames must not be written.
    pub(super) floor: Option<usize>,
    /// A write below the floor was refused.
    pub(super) refused: bool,
}

/// The shape of a call, its wires in the order of their appearance, and a hash of the shape. `None` if an argument is
/// no plain value.
pub(super) fn shape(package: usize, values: &[Value]) -> Option<(Shape, Vec<Lit>, u64)> {
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
