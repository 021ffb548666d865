//! Gates, the wires between them, and where they go.
//!
//! A circuit is a stream of AND and XOR gates over wires. Inversion costs nothing in every protocol we use, so it is
//! not a gate: a literal is a wire with a sign. Wires are slots, which are used again.

use std::ops::Not;

/// A wire or its inverse, or one of the constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lit(pub(crate) u32);

impl Lit {
    /// The constant 0.
    pub const FALSE: Lit = Lit(0);
    /// The constant 1.
    pub const TRUE: Lit = Lit(1);

    /// The literal of a wire.
    #[must_use]
    pub fn wire(slot: u32) -> Lit {
        Lit(slot << 1)
    }

    /// The constant of this value.
    #[must_use]
    pub fn constant(value: bool) -> Lit {
        Lit(u32::from(value))
    }

    /// The wire's slot; 0 for the constants.
    #[must_use]
    pub fn slot(self) -> u32 {
        self.0 >> 1
    }

    /// Whether the wire is inverted; for the constants, their value.
    #[must_use]
    pub fn inverted(self) -> bool {
        self.0 & 1 == 1
    }

    /// The value of a constant.
    #[must_use]
    pub fn value(self) -> Option<bool> {
        (self.0 < 2).then_some(self.0 == 1)
    }

    /// The wire without inversion; for the constants, 0.
    pub(crate) fn plain(self) -> Lit {
        Lit(self.0 & !1)
    }
}

impl Not for Lit {
    type Output = Lit;
    fn not(self) -> Lit {
        Lit(self.0 ^ 1)
    }
}

/// One gate. The inputs of an XOR are never inverted; those of an AND may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The first input.
    pub a: Lit,
    /// The second input.
    pub b: Lit,
    /// The output slot, shifted left by one, with 1 for an AND.
    code: u32,
}

impl Gate {
    /// A gate of the given kind.
    #[must_use]
    pub fn new(and: bool, a: Lit, b: Lit, out: u32) -> Gate {
        Gate { a, b, code: out << 1 | u32::from(and) }
    }

    /// Whether this is an AND; otherwise it is an XOR.
    #[must_use]
    pub fn is_and(self) -> bool {
        self.code & 1 == 1
    }

    /// The slot that takes the result. It may be that of an input.
    #[must_use]
    pub fn out(self) -> u32 {
        self.code >> 1
    }
}

/// The receiver of a circuit, gate by gate. Slot 0 is the constant 0.
pub trait Sink {
    /// Declares the next input of a party, in slots `first .. first + bits`, before any gate.
    ///
    /// # Errors
    /// A reason to stop, such as a lost connection or missing input.
    fn input(&mut self, party: usize, first: u32, bits: u32) -> Result<(), String>;

    /// Takes gates in order; every slot they read has been written before.
    ///
    /// # Errors
    /// A reason to stop.
    fn gates(&mut self, gates: &[Gate]) -> Result<(), String>;

    /// Takes the outputs, after all gates.
    ///
    /// # Errors
    /// A reason to stop.
    fn outputs(&mut self, outputs: &[Lit]) -> Result<(), String>;
}
