//! Circuits some of whose inputs are known to all who evaluate them.

use super::{Circuit, Gate, Lit};

/// A circuit in two parts: all that depends on public inputs alone, which everybody evaluates in the clear, and the
/// rest.
#[derive(Clone, Debug)]
pub struct Split {
    /// Takes the public input, and gives the wires that the rest reads.
    pub public: Circuit,
    /// Takes the private inputs, and then those wires as its last input.
    pub private: Circuit,
}

/// A value in one of both parts.
#[derive(Clone, Copy)]
enum Wire {
    Public(Lit),
    Private(Operand),
}

/// A value in the private part, before its slots are known.
#[derive(Clone, Copy)]
enum Operand {
    Input(Lit),
    /// A wire of the public part, by its number among those that are read.
    Read(u32, bool),
    /// The result of a gate.
    Gate(u32, bool),
}

fn invert(wire: Wire, by: bool) -> Wire {
    let flip = |lit: Lit| if by { !lit } else { lit };
    match wire {
        Wire::Public(lit) => Wire::Public(flip(lit)),
        Wire::Private(Operand::Input(lit)) => Wire::Private(Operand::Input(flip(lit))),
        Wire::Private(Operand::Read(n, inverted)) => Wire::Private(Operand::Read(n, inverted ^ by)),
        Wire::Private(Operand::Gate(n, inverted)) => Wire::Private(Operand::Gate(n, inverted ^ by)),
    }
}

impl Split {
    /// Splits a circuit whose last input is public.
    #[must_use]
    pub fn new(circuit: &Circuit) -> Split {
        let (public_bits, private_inputs) = match circuit.inputs.split_last() {
            Some((last, rest)) => (*last, rest.to_vec()),
            None => (0, Vec::new()),
        };
        let private_bits: usize = private_inputs.iter().sum();
        let mut public = Circuit { inputs: vec![public_bits], ..Circuit::default() };
        public.slots = number(1 + public_bits);
        let mut wires = vec![Wire::Public(Lit::FALSE); circuit.slots as usize];
        for (i, wire) in wires.iter_mut().enumerate().skip(1).take(private_bits + public_bits) {
            *wire = match i.checked_sub(private_bits) {
                Some(place @ 1..) => Wire::Public(Lit::wire(number(place))),
                _ => Wire::Private(Operand::Input(Lit::wire(number(i)))),
            };
        }
        // The number of each wire of the public part among those that the private part reads.
        let mut reads: Vec<Option<u32>> = vec![None; public.slots as usize];
        let mut gates: Vec<(bool, Operand, Operand)> = Vec::new();
        let lower = |public: &mut Circuit, reads: &[Option<u32>], wire: Wire| match wire {
            Wire::Private(operand) => (operand, None),
            Wire::Public(lit) if lit.value().is_some() => (Operand::Input(lit), None),
            Wire::Public(lit) => match reads.get(lit.slot() as usize).copied().flatten() {
                Some(n) => (Operand::Read(n, lit.inverted()), None),
                None => {
                    let n = number(public.results.len());
                    public.results.push(Lit::wire(lit.slot()));
                    (Operand::Read(n, lit.inverted()), Some((lit.slot(), n)))
                }
            },
        };
        let note = |reads: &mut Vec<Option<u32>>, read: Option<(u32, u32)>| {
            if let Some((slot, n)) = read {
                let slot = slot as usize;
                if reads.len() <= slot {
                    reads.resize(slot + 1, None);
                }
                if let Some(place) = reads.get_mut(slot) {
                    *place = Some(n);
                }
            }
        };
        let read = |wires: &[Wire], lit: Lit| {
            invert(
                wires.get(lit.slot() as usize).copied().unwrap_or(Wire::Public(Lit::FALSE)),
                lit.inverted(),
            )
        };
        for gate in &circuit.gates {
            let out = match (read(&wires, gate.a), read(&wires, gate.b)) {
                (Wire::Public(a), Wire::Public(b)) => {
                    let slot = public.slots;
                    public.slots += 1;
                    public.gates.push(Gate::new(gate.is_and(), a, b, slot));
                    Wire::Public(Lit::wire(slot))
                }
                (a, b) => {
                    let mut operands = [Operand::Input(Lit::FALSE); 2];
                    for (operand, wire) in operands.iter_mut().zip([a, b]) {
                        let (lowered, first) = lower(&mut public, &reads, wire);
                        note(&mut reads, first);
                        *operand = lowered;
                    }
                    let [a, b] = operands;
                    gates.push((gate.is_and(), a, b));
                    Wire::Private(Operand::Gate(number(gates.len() - 1), false))
                }
            };
            if let Some(wire) = wires.get_mut(gate.out() as usize) {
                *wire = out;
            }
        }
        let mut results = Vec::with_capacity(circuit.results.len());
        for lit in &circuit.results {
            let (operand, first) = lower(&mut public, &reads, read(&wires, *lit));
            note(&mut reads, first);
            results.push(operand);
        }
        public.outputs = vec![public.results.len()];
        let first_read = 1 + private_bits;
        let first_gate = first_read + public.results.len();
        let place = |operand: Operand| {
            let (lit, inverted) = match operand {
                Operand::Input(lit) => (lit, false),
                Operand::Read(n, inverted) => (Lit::wire(number(first_read) + n), inverted),
                Operand::Gate(n, inverted) => (Lit::wire(number(first_gate) + n), inverted),
            };
            if inverted { !lit } else { lit }
        };
        let mut private = Circuit {
            inputs: private_inputs,
            outputs: circuit.outputs.clone(),
            gates: (0..)
                .zip(&gates)
                .map(|(n, (and, a, b))| Gate::new(*and, place(*a), place(*b), number(first_gate) + n))
                .collect(),
            results: results.into_iter().map(place).collect(),
            slots: number(first_gate + gates.len()),
        };
        private.inputs.push(public.results.len());
        Split { public: public.compact(), private: private.compact() }
    }
}

/// Circuits have fewer than 2^30 wires.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Builder;
    use crate::circuit::Recorder;

    #[test]
    fn both_parts_together_compute_the_circuit() {
        let mut recorder = Recorder::default();
        let mut builder = Builder::new(&mut recorder);
        let (a, b, p) = (builder.input(0, 4), builder.input(1, 4), builder.input(2, 8));
        let (low, high) = p.split_at(4);
        let public = builder.add(low, high, Lit::FALSE, 4);
        let secret = builder.add(&a, &b, Lit::FALSE, 4);
        let sum = builder.add(&secret, &public, Lit::FALSE, 4);
        let less = builder.less(&sum, low);
        let results: Vec<Lit> =
            sum.iter().chain(&public).copied().chain([less, !less, Lit::TRUE, a[1], !low[2]]).collect();
        builder.finish(&results).unwrap();
        let circuit = recorder.circuit;
        let split = Split::new(&circuit);
        let ands = |circuit: &Circuit| circuit.gates.iter().filter(|gate| gate.is_and()).count();
        assert_eq!((ands(&split.public), ands(&split.private), ands(&circuit)), (3, 10, 13));
        for input in 0..1u32 << 16 {
            let bits: Vec<bool> = (0..16).map(|i| input >> i & 1 == 1).collect();
            let known = split.public.evaluate(&bits[8..]);
            let all: Vec<bool> = bits[..8].iter().copied().chain(known).collect();
            assert_eq!(split.private.evaluate(&all), circuit.evaluate(&bits));
        }
    }
}
