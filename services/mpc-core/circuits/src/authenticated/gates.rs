//! The computation of both parties on the masks around each gate: products, checks and results.

use std::ops::BitXor;

use zeroize::Zeroizing;

use super::abort::Abort;
use super::bits::{Link, Share};
use super::inputs::FixedInput;
use super::prepared::{GateShares, Prepared};
use super::triples::Triple;
use crate::circuit::{Circuit, Lit};
use crate::line::Line;

/// The value that a literal has among values by slot, where inversion adds `one`.
pub(super) fn read<T: Copy + Default + BitXor<Output = T>>(values: &[T], lit: Lit, one: T) -> T {
    let value = values.get(lit.slot() as usize).copied().unwrap_or_default();
    if lit.inverted() { value ^ one } else { value }
}

/// [Garbling 7] Shares of the product of each AND gate's input masks, each made of one random triple by opening two
/// bits.
pub(super) async fn products<L: Line>(
    link: &mut Link<'_, L>,
    circuit: &Circuit,
    inputs: &[Share],
    outs: &[Share],
    triples: &[Triple],
) -> Result<Zeroizing<Vec<GateShares>>, Abort> {
    let mut wires = Zeroizing::new(vec![Share::default(); circuit.slots as usize]);
    for (wire, share) in wires.iter_mut().skip(1).zip(inputs) {
        *wire = *share;
    }
    let mut gates = Zeroizing::new(Vec::with_capacity(outs.len()));
    let mut opened = Zeroizing::new(Vec::with_capacity(2 * outs.len()));
    let mut next = outs.iter().zip(triples);
    for gate in &circuit.gates {
        // Inversion flips the public bit, not the mask.
        let left = read(&wires, gate.a, Share::default());
        let right = read(&wires, gate.b, Share::default());
        let out = if gate.is_and() {
            let (out, triple) =
                next.next().ok_or(Abort::Caller("the circuit has more gates than prepared"))?;
            gates.push(GateShares { left, right, out: *out, product: Share::default() });
            opened.push(left ^ triple.x);
            opened.push(right ^ triple.y);
            *out
        } else {
            left ^ right
        };
        if let Some(wire) = wires.get_mut(gate.out() as usize) {
            *wire = out;
        }
    }
    let differences = link.open(&opened).await?;
    for ((gate, triple), pair) in gates.iter_mut().zip(triples).zip(differences.as_chunks::<2>().0) {
        let [d, e] = *pair;
        gate.product = link.add_public(triple.z ^ triple.y.times(d) ^ triple.x.times(e), d & e);
    }
    Ok(gates)
}

/// [Garbling 12] This party's share of what must be zero for each AND gate: (Λ_a ⊕ λ_a)(Λ_b ⊕ λ_b) ⊕ Λ_c ⊕ λ_c.
pub(super) fn gate_checks<L: Line>(
    link: &Link<'_, L>,
    gates: &[GateShares],
    publics: &[[u8; 3]],
) -> Zeroizing<Vec<Share>> {
    let mut checks = Zeroizing::new(Vec::with_capacity(gates.len()));
    checks.extend(gates.iter().zip(publics).map(|(gate, [left, right, out])| {
        let masked = gate.right.times(*left) ^ gate.left.times(*right) ^ gate.product ^ gate.out;
        link.add_public(masked, (left & right) ^ out)
    }));
    checks
}

/// [Garbling 13] Opens the masks of the results; both parties know the results' public bits. Of the last ones, this
/// many, no mask is opened: a result is its public bit plus its mask, and shares of that are authenticated already.
pub(super) async fn open_results<L: Line>(
    link: &mut Link<'_, L>,
    prepared: &Prepared,
    publics: &[u8],
    kept: usize,
) -> Result<(Vec<bool>, FixedInput), Abort> {
    let mut wires = Zeroizing::new(vec![Share::default(); prepared.circuit.slots as usize]);
    for (wire, share) in wires.iter_mut().skip(1).zip(prepared.inputs.iter()) {
        *wire = *share;
    }
    let mut outs = prepared.gates.iter().map(|gate| gate.out);
    for gate in &prepared.circuit.gates {
        let out = if gate.is_and() {
            outs.next().unwrap_or_default()
        } else {
            read(&wires, gate.a, Share::default()) ^ read(&wires, gate.b, Share::default())
        };
        if let Some(wire) = wires.get_mut(gate.out() as usize) {
            *wire = out;
        }
    }
    let results = &prepared.circuit.results;
    let masks: Zeroizing<Vec<Share>> =
        Zeroizing::new(results.iter().map(|lit| read(&wires, *lit, Share::default())).collect());
    let (open, shared) = masks.split_at(masks.len().saturating_sub(kept));
    let opened = link.open(open).await?;
    let mut shares = Zeroizing::new(Vec::with_capacity(shared.len()));
    let rest = publics.iter().skip(open.len());
    shares.extend(shared.iter().zip(rest).map(|(mask, public)| link.add_public(*mask, *public)));
    let results = opened.iter().zip(publics).map(|(mask, public)| mask ^ public == 1).collect();
    Ok((results, FixedInput::of(link.identity(), &shares)))
}
