//! Bristol Fashion, the text format that other tools read: gates XOR, AND, INV, EQ and EQW.

use std::fmt::Write as _;

use super::{Circuit, Lit, Recorder};
use crate::build::Builder;

/// Writes a circuit. Outputs are the last wires, each made by an EQW, EQ or INV gate of its own.
#[must_use]
pub fn write(circuit: &Circuit) -> String {
    let inputs: usize = circuit.inputs.iter().sum();
    let mut body = String::new();
    let mut gates = 0usize;
    let mut next = inputs;
    // The wire of each slot, and of its inverse where one was made.
    let mut wires: Vec<usize> = (0..circuit.slots as usize).map(|slot| slot.saturating_sub(1)).collect();
    let mut inverses: Vec<Option<usize>> = vec![None; circuit.slots as usize];
    let read = |lit: Lit,
                wires: &[usize],
                inverses: &mut Vec<Option<usize>>,
                body: &mut String,
                next: &mut usize,
                gates: &mut usize| {
        let slot = lit.slot() as usize;
        let wire = wires.get(slot).copied().unwrap_or(0);
        if !lit.inverted() {
            return wire;
        }
        if let Some(inverse) = inverses.get(slot).copied().flatten() {
            return inverse;
        }
        let inverse = *next;
        let _ = writeln!(body, "1 1 {wire} {inverse} INV");
        *gates += 1;
        *next += 1;
        if let Some(place) = inverses.get_mut(slot) {
            *place = Some(inverse);
        }
        inverse
    };
    for gate in &circuit.gates {
        let a = read(gate.a, &wires, &mut inverses, &mut body, &mut next, &mut gates);
        let b = read(gate.b, &wires, &mut inverses, &mut body, &mut next, &mut gates);
        let _ = writeln!(body, "2 1 {a} {b} {next} {}", if gate.is_and() { "AND" } else { "XOR" });
        let slot = gate.out() as usize;
        if let (Some(wire), Some(inverse)) = (wires.get_mut(slot), inverses.get_mut(slot)) {
            *wire = next;
            *inverse = None;
        }
        next += 1;
        gates += 1;
    }
    for lit in &circuit.results {
        let wire = wires.get(lit.slot() as usize).copied().unwrap_or(0);
        let _ = match (lit.value(), lit.inverted()) {
            (Some(value), _) => writeln!(body, "1 1 {} {next} EQ", u8::from(value)),
            (None, true) => writeln!(body, "1 1 {wire} {next} INV"),
            (None, false) => writeln!(body, "1 1 {wire} {next} EQW"),
        };
        next += 1;
        gates += 1;
    }
    let list = |sizes: &[usize]| {
        let mut text = sizes.len().to_string();
        sizes.iter().for_each(|s| {
            let _ = write!(text, " {s}");
        });
        text
    };
    format!("{gates} {next}\n{}\n{}\n\n{body}", list(&circuit.inputs), list(&circuit.outputs))
}

/// Reads a circuit.
///
/// # Errors
/// A header that does not agree with the gates, a wire that is read before it is written, or an unknown gate.
pub fn read(text: &str) -> Result<Circuit, String> {
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    let mut header = || -> Result<Vec<usize>, String> {
        let line = lines.next().ok_or("the header is cut short")?;
        line.split_whitespace().map(|w| w.parse().map_err(|_| format!("{w:?} is not a number"))).collect()
    };
    let (gates, wires) = match header()?.as_slice() {
        [gates, wires] => (*gates, *wires),
        _ => return Err("the first line has the numbers of gates and wires".into()),
    };
    let mut sizes = || -> Result<Vec<usize>, String> {
        match header()?.split_first() {
            Some((count, sizes)) if *count == sizes.len() => Ok(sizes.to_vec()),
            _ => Err("a line of inputs or outputs has its count first".into()),
        }
    };
    let inputs = sizes()?;
    let outputs = sizes()?;
    let total = |sizes: &[usize]| sizes.iter().try_fold(0usize, |a, b| a.checked_add(*b));
    let (Some(taken), Some(given)) = (total(&inputs), total(&outputs)) else {
        return Err("the inputs are too large".into());
    };
    // Every wire needs some text, so this bounds what a short file can claim.
    if wires > text.len() + taken || taken > wires || given > wires || taken > crate::types::MAX_BITS {
        return Err("the header claims more wires than the file can have".into());
    }
    let mut recorder = Recorder::default();
    let mut builder = Builder::new(&mut recorder);
    let mut values: Vec<Option<Lit>> = Vec::new();
    for size in &inputs {
        values.extend(builder.input(0, *size).into_iter().map(Some));
    }
    values.resize(wires, None);
    let mut seen = 0usize;
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((kind, numbers)) = words.split_last() else { continue };
        let numbers: Vec<usize> = numbers
            .iter()
            .map(|w| w.parse().map_err(|_| format!("{w:?} is not a number")))
            .collect::<Result<_, String>>()?;
        let wire = |w: usize| {
            values.get(w).copied().flatten().ok_or(format!("wire {w} is read before it is written"))
        };
        let (out, lit) = match (*kind, numbers.as_slice()) {
            ("XOR", [2, 1, a, b, out]) => (*out, builder.xor(wire(*a)?, wire(*b)?)),
            ("AND", [2, 1, a, b, out]) => (*out, builder.and(wire(*a)?, wire(*b)?)),
            ("INV" | "NOT", [1, 1, a, out]) => (*out, !wire(*a)?),
            ("EQW", [1, 1, a, out]) => (*out, wire(*a)?),
            ("EQ", [1, 1, value @ (0 | 1), out]) => (*out, Lit::constant(*value == 1)),
            _ => return Err(format!("{line:?} is not a gate that we know: XOR, AND, INV, EQ and EQW are")),
        };
        match values.get_mut(out) {
            Some(place @ None) => *place = Some(lit),
            _ => return Err(format!("wire {out} is written twice or does not exist")),
        }
        seen += 1;
    }
    if seen != gates {
        return Err(format!("the header says {gates} gates, and there are {seen}"));
    }
    let results: Option<Vec<Lit>> = values.iter().skip(wires - given).copied().collect();
    let Some(results) = results else { return Err("an output wire is never written".into()) };
    builder.finish(&results)?;
    recorder.circuit.inputs = inputs;
    recorder.circuit.outputs = outputs;
    recorder.circuit.slots = recorder.circuit.slots.max(1);
    Ok(recorder.circuit)
}
