//! Evaluation of a program into gates.
//!
//! Everything but the values of inputs is known when a program is compiled: sizes, bounds of loops, targets of calls.
//! So compiling is evaluating, with literals in place of bits: operations on constants give constants, and the others
//! give gates. An `if` whose condition is a wire evaluates both branches and merges what they wrote by multiplexers.

mod builtins;
mod calls;
mod composite;
mod convert;
mod expressions;
mod operators;
mod parts;
mod places;
mod recordings;
mod replay;
mod statements;
pub mod value;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use num_bigint::BigInt;

use crate::build::{Builder, Count};
use crate::circuit::{Lit, Nowhere, Sink};
use crate::program::Program;
use crate::report::{Error, Res, Span, fail, fail_with};
use crate::syntax::ast::Name;
use crate::types::{Type, UNSIZED};
use recordings::Recordings;
use value::{Bits, Value, literals};

/// Bounds on the work of the compiler.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Turns of one loop.
    pub turns: usize,
    /// Calls within calls.
    pub depth: usize,
    /// Statements in all.
    pub statements: u64,
    /// AND gates in all.
    pub gates: u64,
    /// Wires taken between two searches for dead ones; `None` for the default.
    pub collect_after: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { turns: 1 << 20, depth: 400, statements: 1 << 40, gates: 1 << 48, collect_after: None }
    }
}

/// The type of one value that goes in or comes out.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The parameter's or result's name, empty if it has none.
    pub name: String,
    /// The type, with all sizes.
    pub ty: Type,
}

/// Inputs and outputs of a compiled program.
#[derive(Clone, Debug)]
pub struct Interface {
    /// One input for each party: the garbler's, then the evaluator's.
    pub inputs: Vec<Port>,
    /// Results in order.
    pub outputs: Vec<Port>,
    /// Gates.
    pub count: Count,
    /// Wires in use together, at most.
    pub slots: u32,
}

/// A variable.
#[derive(Debug)]
struct Cell {
    /// Depth of the frame it belongs to; 0 for a package's.
    depth: usize,
    /// A number that grows with each new variable.
    born: u64,
    /// The declared type, which may leave sizes open.
    declared: Option<Type>,
    constant: bool,
    value: RefCell<Value>,
}

/// One call under evaluation.
struct Frame {
    package: usize,
    file: usize,
    locals: Vec<(Name, Rc<Cell>)>,
    /// 1 on the paths that have not returned.
    live: Lit,
    results: Vec<Option<Value>>,
    result_types: Vec<Type>,
    named: Vec<Rc<Cell>>,
}

impl Frame {
    fn new(package: usize, file: usize) -> Frame {
        Frame {
            package,
            file,
            locals: Vec::new(),
            live: Lit::TRUE,
            results: Vec::new(),
            result_types: Vec::new(),
            named: Vec::new(),
        }
    }
}

/// The writes of a branch: each older variable with its value before.
struct Journal {
    born: u64,
    written: Vec<(Rc<Cell>, Value)>,
}

/// A variable or a part of it.
#[derive(Clone, Debug)]
struct Place {
    cell: Rc<Cell>,
    path: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Field(usize),
    Element(usize),
    Range(usize, usize),
}

enum Global {
    Evaluating,
    Done(Value),
    Variable(Rc<Cell>),
}

struct Compiler<'p, 's> {
    program: &'p Program,
    builder: Builder<'s>,
    limits: Limits,
    /// The call under evaluation, and those that wait for it.
    frame: Frame,
    callers: Vec<Frame>,
    globals: HashMap<(usize, Name), Global>,
    pointers: Vec<Place>,
    /// A pointer was stored where it outlives the call that made it.
    escaped: bool,
    journals: Vec<Journal>,
    registry: Vec<Weak<RefCell<Vec<Lit>>>>,
    purge_at: usize,
    recordings: Recordings,
    born: u64,
    statements: u64,
}

/// Sizes in bits of a party's input fields whose types leave them open, in order of the flattened fields; fields of a
/// fixed size have an entry too, which is not used.
pub type Sizes = Vec<usize>;

/// Compiles `main` and sends its circuit to `sink`, gate by gate.
///
/// # Errors
/// The first mistake in the program, or the sink's reason to stop.
pub fn compile(program: &Program, sizes: &[Sizes], limits: Limits, sink: &mut dyn Sink) -> Res<Interface> {
    let main = program.main()?;
    if main.parameters.len() > 2 {
        return fail_with(
            main.span,
            format!("main has {} parameters", main.parameters.len()),
            "there are two parties: give each one parameter, a struct where it has several inputs",
        );
    }
    let mut builder = Builder::new(sink);
    if let Some(after) = limits.collect_after {
        builder.collect_after(after);
    }
    let mut compiler = Compiler::new(program, builder, limits);
    compiler.run(&main, sizes)
}

/// The inputs of `main`, one for each party, with their open sizes filled.
///
/// # Errors
/// As [`compile`], for the types of the parameters.
pub fn inputs(program: &Program, sizes: &[Sizes]) -> Res<Vec<Port>> {
    let main = program.main()?;
    let mut nowhere = Nowhere;
    let mut compiler = Compiler::new(program, Builder::new(&mut nowhere), Limits::default());
    compiler.frame.file = compiler.file_of(main.span);
    compiler.inputs(&main, sizes)
}

impl<'p, 's> Compiler<'p, 's> {
    fn new(program: &'p Program, builder: Builder<'s>, limits: Limits) -> Self {
        Compiler {
            program,
            builder,
            limits,
            frame: Frame::new(0, 0),
            callers: Vec::new(),
            globals: HashMap::new(),
            pointers: Vec::new(),
            escaped: false,
            journals: Vec::new(),
            registry: Vec::new(),
            purge_at: 1 << 16,
            recordings: Recordings::default(),
            born: 0,
            statements: 0,
        }
    }

    fn run(&mut self, main: &Rc<crate::syntax::ast::Function>, sizes: &[Sizes]) -> Res<Interface> {
        let file = self.file_of(main.span);
        self.frame.file = file;
        let inputs = self.inputs(main, sizes)?;
        let mut arguments = Vec::new();
        for (party, port) in inputs.iter().enumerate() {
            let bits = self.builder.input(party, port.ty.size().unwrap_or(0));
            arguments.push(self.data(port.ty.clone(), bits));
        }
        self.check_sink(main.span)?;
        let results = self.call(0, file, main, None, arguments, main.span)?;
        let results = match results {
            Value::Tuple(list) => list,
            one => vec![one],
        };
        let mut outputs = Vec::new();
        let mut literals = Vec::new();
        for (i, result) in results.into_iter().enumerate() {
            let declared = main.results.get(i);
            let Value::Data(ty, bits) = result else {
                return fail(main.span, "main gives something that is not a value");
            };
            if ty.has_pointer() {
                return fail_with(main.span, "main gives a pointer", "give the value that it points to");
            }
            literals.extend(bits.to_vec());
            outputs
                .push(Port { name: declared.and_then(|p| p.name.as_deref()).unwrap_or("").to_string(), ty });
        }
        self.check_sink(main.span)?;
        let slots = self.builder.slots();
        match self.builder.finish(&literals) {
            Ok(count) => Ok(Interface { inputs, outputs, count, slots }),
            Err(reason) => fail(main.span, reason),
        }
    }

    fn inputs(&mut self, main: &crate::syntax::ast::Function, sizes: &[Sizes]) -> Res<Vec<Port>> {
        let mut ports = Vec::new();
        for (party, p) in main.parameters.iter().enumerate() {
            let pattern = self.type_of(&p.ty)?;
            let ty = fix(&pattern, &mut sizes.get(party).cloned().unwrap_or_default().into_iter());
            if ty.size().is_none() {
                return fail_with(
                    p.span,
                    format!("the input {ty} is too large"),
                    "inputs have at most 2^28 bits",
                );
            }
            if ty.has_pointer() {
                return fail_with(p.span, "an input holds a pointer", "take the value itself");
            }
            ports.push(Port { name: p.name.as_deref().unwrap_or("").to_string(), ty });
        }
        Ok(ports)
    }

    fn file_of(&self, span: Span) -> usize {
        self.program.packages.first().and_then(|p| p.files.iter().position(|f| *f == span.file)).unwrap_or(0)
    }

    fn enter(&mut self, package: usize, file: usize) {
        let caller = std::mem::replace(&mut self.frame, Frame::new(package, file));
        self.callers.push(caller);
    }

    fn leave(&mut self) -> Frame {
        let caller = self.callers.pop().unwrap_or_else(|| Frame::new(0, 0));
        std::mem::replace(&mut self.frame, caller)
    }

    /// Registers bits, so that the search for dead wires sees them.
    fn bits(&mut self, bits: Vec<Lit>) -> Bits {
        let shared = Rc::new(RefCell::new(bits));
        if self.registry.len() >= self.purge_at {
            self.registry.retain(|weak| weak.strong_count() > 0);
            self.purge_at = (2 * self.registry.len()).max(1 << 16);
        }
        self.registry.push(Rc::downgrade(&shared));
        Bits(shared)
    }

    fn data(&mut self, ty: Type, bits: Vec<Lit>) -> Value {
        Value::Data(ty, self.bits(bits))
    }

    fn boolean(&mut self, lit: Lit) -> Value {
        self.data(Type::Bool, vec![lit])
    }

    fn integer(&mut self, ty: Type, value: &BigInt) -> Value {
        let size = ty.size().unwrap_or(0);
        self.data(ty, literals(value, size))
    }

    fn collect(&mut self) {
        self.registry.retain(|weak| weak.strong_count() > 0);
        let frames: Vec<Lit> = self.callers.iter().map(|f| f.live).chain([self.frame.live]).collect();
        let registry = &self.registry;
        self.builder.collect(|mark| {
            frames.iter().for_each(|lit| mark(*lit));
            for bits in registry.iter().filter_map(Weak::upgrade) {
                bits.borrow().iter().for_each(|lit| mark(*lit));
            }
        });
    }

    fn check_sink(&mut self, span: Span) -> Res<()> {
        match self.builder.stopped() {
            Some(reason) => fail(span, reason.to_string()),
            None => Ok(()),
        }
    }

    fn new_cell(&mut self, declared: Option<Type>, value: Value) -> Rc<Cell> {
        self.born += 1;
        Rc::new(Cell {
            depth: self.callers.len(),
            born: self.born,
            declared,
            constant: false,
            value: RefCell::new(value),
        })
    }

    fn declare(&mut self, name: &Name, cell: Rc<Cell>) {
        if &**name != "_" {
            self.frame.locals.push((name.clone(), cell));
        }
    }
}

/// Fills the open sizes of an input's type.
fn fix(pattern: &Type, sizes: &mut impl Iterator<Item = usize>) -> Type {
    match pattern {
        Type::Struct(s) => {
            let fields = s
                .fields
                .iter()
                .map(|f| crate::types::Field { ty: fix(&f.declared, sizes), ..f.clone() })
                .collect::<Vec<_>>();
            Type::Struct(Rc::new(crate::types::StructType { name: s.name.clone(), fields }))
        }
        Type::Named(n) => Type::Named(Rc::new(crate::types::NamedType {
            name: n.name.clone(),
            underlying: fix(&n.underlying, sizes),
        })),
        other => {
            let size = sizes.next().unwrap_or(0);
            match other {
                Type::Int(UNSIZED) => Type::Int(size.max(1)),
                Type::Uint(UNSIZED) => Type::Uint(size.max(1)),
                Type::Str(UNSIZED) => Type::Str(size.div_ceil(8) * 8),
                Type::Array(of, UNSIZED) => {
                    let of = of.settled();
                    let each = of.size().unwrap_or(1).max(1);
                    Type::Array(Rc::new(of), size.div_ceil(each))
                }
                sized => sized.settled(),
            }
        }
    }
}

/// Adds the call to the error's trail, up to a few.
fn called(mut error: Box<Error>, name: &str, span: Span) -> Box<Error> {
    if error.calls.len() < 8 {
        error.calls.push((name.to_string(), span));
    }
    error
}
