//! Whole circuits, and receivers of gates that record, count or evaluate them.

pub mod bristol;
mod gate;
pub mod public;

pub use gate::{Gate, Lit, Sink};

/// A circuit in memory. Slots may be used again, so gates are read in order only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Circuit {
    /// Bits of each input, in order; their slots start at 1.
    pub inputs: Vec<usize>,
    /// Bits of each output value.
    pub outputs: Vec<usize>,
    /// The gates in order.
    pub gates: Vec<Gate>,
    /// The output literals in order.
    pub results: Vec<Lit>,
    /// Slots in use: 1 more than the highest.
    pub slots: u32,
}

impl Circuit {
    /// Removes gates that no output needs.
    pub fn prune(&mut self) {
        let mut needed = vec![false; self.slots as usize];
        let mark = |needed: &mut Vec<bool>, lit: Lit, value: bool| {
            if let Some(n) = needed.get_mut(lit.slot() as usize) {
                *n = value;
            }
        };
        self.results.iter().for_each(|lit| mark(&mut needed, *lit, true));
        let mut kept = Vec::with_capacity(self.gates.len());
        for gate in self.gates.iter().rev() {
            if needed.get(gate.out() as usize).copied().unwrap_or(false) {
                mark(&mut needed, Lit::wire(gate.out()), false);
                mark(&mut needed, gate.a, true);
                mark(&mut needed, gate.b, true);
                kept.push(*gate);
            }
        }
        kept.reverse();
        self.gates = kept;
    }

    /// Gives every value's slot to a later value as soon as the last gate has read it; those of the inputs stay. Values
    /// that are read next then lie close together in memory.
    #[must_use]
    pub fn compact(&self) -> Circuit {
        const NEVER: u32 = u32::MAX;
        let first = 1 + self.inputs.iter().sum::<usize>();
        // The number of the gate that made the value now in a slot, and the last gate that reads each gate's value.
        let mut makers = vec![NEVER; self.slots as usize];
        let mut last = vec![NEVER; self.gates.len()];
        for (i, gate) in (0u32..).zip(&self.gates) {
            for lit in [gate.a, gate.b] {
                let maker = makers.get(lit.slot() as usize).copied().unwrap_or(NEVER);
                if let Some(reader) = last.get_mut(maker as usize) {
                    *reader = i;
                }
            }
            if let Some(maker) = makers.get_mut(gate.out() as usize) {
                *maker = i;
            }
        }
        for lit in &self.results {
            let maker = makers.get(lit.slot() as usize).copied().unwrap_or(NEVER);
            if let Some(reader) = last.get_mut(maker as usize) {
                *reader = NEVER;
            }
        }
        // The new slot of each old one, and the last reader of what is in it.
        let mut places: Vec<(u32, u32)> = (0..self.slots).map(|slot| (slot, NEVER)).collect();
        let mut next = u32::try_from(first).unwrap_or(u32::MAX);
        let mut free = Vec::new();
        let moved = |places: &[(u32, u32)], lit: Lit| {
            let (slot, _) = places.get(lit.slot() as usize).copied().unwrap_or_default();
            if lit.inverted() { !Lit::wire(slot) } else { Lit::wire(slot) }
        };
        let mut gates = Vec::with_capacity(self.gates.len());
        for (i, (gate, reader)) in (0u32..).zip(self.gates.iter().zip(&last)) {
            let (a, b) = (moved(&places, gate.a), moved(&places, gate.b));
            for lit in [gate.a, gate.b] {
                if let Some((slot, reader)) = places.get_mut(lit.slot() as usize)
                    && *reader == i
                {
                    free.push(*slot);
                    *reader = NEVER;
                }
            }
            let out = free.pop().unwrap_or_else(|| {
                next += 1;
                next - 1
            });
            if let Some(place) = places.get_mut(gate.out() as usize) {
                *place = (out, *reader);
            }
            gates.push(Gate::new(gate.is_and(), a, b, out));
        }
        let results = self.results.iter().map(|lit| moved(&places, *lit)).collect();
        Circuit { inputs: self.inputs.clone(), outputs: self.outputs.clone(), gates, results, slots: next }
    }

    /// Evaluates the circuit on plain bits.
    #[must_use]
    pub fn evaluate(&self, inputs: &[bool]) -> Vec<bool> {
        let mut plain = Plain { values: vec![false], inputs: vec![inputs.to_vec()], outputs: Vec::new() };
        let bits = u32::try_from(inputs.len()).unwrap_or(u32::MAX);
        let _ = plain.input(0, 1, bits);
        let _ = plain.gates(&self.gates);
        let _ = plain.outputs(&self.results);
        plain.outputs
    }
}

/// Records a circuit.
#[derive(Debug, Default)]
pub struct Recorder {
    /// The circuit so far.
    pub circuit: Circuit,
    /// Gates beyond this number are refused; 0 for no bound.
    pub limit: usize,
}

impl Sink for Recorder {
    fn input(&mut self, _party: usize, first: u32, bits: u32) -> Result<(), String> {
        self.circuit.inputs.push(bits as usize);
        self.circuit.slots = self.circuit.slots.max(first + bits);
        Ok(())
    }

    fn gates(&mut self, gates: &[Gate]) -> Result<(), String> {
        if self.limit > 0 && self.circuit.gates.len() + gates.len() > self.limit {
            return Err(format!(
                "the circuit has more than {} gates, too many to hold in memory",
                self.limit
            ));
        }
        self.circuit.gates.extend_from_slice(gates);
        let highest = gates.iter().map(|g| g.out() + 1).max().unwrap_or(0);
        self.circuit.slots = self.circuit.slots.max(highest);
        Ok(())
    }

    fn outputs(&mut self, outputs: &[Lit]) -> Result<(), String> {
        self.circuit.results = outputs.to_vec();
        Ok(())
    }
}

/// Evaluates gates on plain bits as they come: the reference for every protocol.
#[derive(Debug, Default)]
pub struct Plain {
    values: Vec<bool>,
    /// Bits of each party's inputs.
    pub inputs: Vec<Vec<bool>>,
    /// The outputs, once they are known.
    pub outputs: Vec<bool>,
}

impl Plain {
    /// An evaluator for these inputs, one for each party.
    #[must_use]
    pub fn new(inputs: Vec<Vec<bool>>) -> Plain {
        Plain { values: vec![false], inputs, outputs: Vec::new() }
    }

    fn read(&self, lit: Lit) -> bool {
        self.values.get(lit.slot() as usize).copied().unwrap_or(false) ^ lit.inverted()
    }

    fn write(&mut self, slot: u32, value: bool) {
        let slot = slot as usize;
        if slot >= self.values.len() {
            self.values.resize(slot + 1, false);
        }
        if let Some(place) = self.values.get_mut(slot) {
            *place = value;
        }
    }
}

impl Sink for Plain {
    fn input(&mut self, party: usize, first: u32, bits: u32) -> Result<(), String> {
        let Some(values) = self.inputs.get_mut(party).map(std::mem::take) else {
            return Err(format!("party {party} has no input"));
        };
        if values.len() != bits as usize {
            return Err(format!(
                "party {party} has {} bits of input, and the program takes {bits}",
                values.len()
            ));
        }
        for (slot, value) in (first..).zip(values) {
            self.write(slot, value);
        }
        Ok(())
    }

    fn gates(&mut self, gates: &[Gate]) -> Result<(), String> {
        for gate in gates {
            let (a, b) = (self.read(gate.a), self.read(gate.b));
            self.write(gate.out(), if gate.is_and() { a & b } else { a ^ b });
        }
        Ok(())
    }

    fn outputs(&mut self, outputs: &[Lit]) -> Result<(), String> {
        self.outputs = outputs.iter().map(|lit| self.read(*lit)).collect();
        Ok(())
    }
}

/// Measures the multiplicative depth: AND gates on the longest path.
#[derive(Debug, Default)]
pub struct Depth {
    depths: Vec<u32>,
    /// The depth so far.
    pub deepest: u32,
}

impl Sink for Depth {
    fn input(&mut self, _party: usize, _first: u32, _bits: u32) -> Result<(), String> {
        Ok(())
    }

    fn gates(&mut self, gates: &[Gate]) -> Result<(), String> {
        for gate in gates {
            let read = |lit: Lit| self.depths.get(lit.slot() as usize).copied().unwrap_or(0);
            let depth = read(gate.a).max(read(gate.b)) + u32::from(gate.is_and());
            let slot = gate.out() as usize;
            if slot >= self.depths.len() {
                self.depths.resize(slot + 1, 0);
            }
            if let Some(place) = self.depths.get_mut(slot) {
                *place = depth;
            }
            self.deepest = self.deepest.max(depth);
        }
        Ok(())
    }

    fn outputs(&mut self, _outputs: &[Lit]) -> Result<(), String> {
        Ok(())
    }
}

/// Drops everything: for counting, and for questions about types.
#[derive(Debug)]
pub struct Nowhere;

impl Sink for Nowhere {
    fn input(&mut self, _party: usize, _first: u32, _bits: u32) -> Result<(), String> {
        Ok(())
    }

    fn gates(&mut self, _gates: &[Gate]) -> Result<(), String> {
        Ok(())
    }

    fn outputs(&mut self, _outputs: &[Lit]) -> Result<(), String> {
        Ok(())
    }
}
