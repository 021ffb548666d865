//! The garbler's side: tables ahead of time, then labels for inputs, and the proof that the tables are right.

use primitives::hedge::HedgedRng;
use rand_core::{CryptoRng, Rng};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::abort::Abort;
use super::bits::{Link, Share, mask};
use super::digest::same;
use super::gates::{gate_checks, open_results, read};
use super::inputs::{Entry, FixedInput};
use super::pair::{Pair, Role};
use super::prepared::{GateShares, Part, Prepared};
use crate::circuit::Circuit;
use crate::line::Line;

/// Tweaks of tables start here, beyond those of triples.
pub(super) const TABLES: u128 = 1 << 100;
/// Steps of an evaluation are numbered from here, beyond those of its preparation.
pub(super) const ONLINE: u64 = 1 << 32;

/// [Garbling 8] Draws labels, and sends the table of each AND gate with the colour of its result.
pub(super) fn make_tables<L: Line>(
    link: &mut Link<'_, L>,
    circuit: &Circuit,
    inputs: &[Share],
    gates: &[GateShares],
    rng: &mut dyn CryptoRng,
) -> Result<Part, Abort> {
    let delta = *link.delta;
    let session = link.session();
    let mut rng = HedgedRng::new("labels", &[&delta.to_le_bytes(), &session], rng);
    let mut drawn = Zeroizing::new(vec![0u8; 16 * inputs.len()]);
    rng.fill_bytes(&mut drawn);
    let mut labels = Zeroizing::new(Vec::with_capacity(inputs.len()));
    labels.extend(drawn.as_chunks::<16>().0.iter().map(|bytes| u128::from_le_bytes(*bytes)));
    let mut zeros = Zeroizing::new(vec![0u128; circuit.slots as usize]);
    for (wire, label) in zeros.iter_mut().skip(1).zip(labels.iter()) {
        *wire = *label;
    }
    let mut outs = Zeroizing::new(Vec::with_capacity(gates.len()));
    let mut shares = gates.iter();
    // This party's part of λ·Δ.
    let part = |share: &Share| share.key ^ (delta & mask(share.bit));
    let mut tweak = TABLES;
    for gate in &circuit.gates {
        let (a, b) = (read(&zeros, gate.a, delta), read(&zeros, gate.b, delta));
        let out = if gate.is_and() {
            let share = shares.next().ok_or(Abort::Caller("the circuit has more gates than prepared"))?;
            let [a0, a1, b0, b1] =
                link.key.tweaked([(a, tweak), (a ^ delta, tweak), (b, tweak + 1), (b ^ delta, tweak + 1)]);
            tweak += 2;
            let table = [a0 ^ a1 ^ part(&share.right), b0 ^ b1 ^ part(&share.left) ^ a];
            link.channel.send_blocks(&table)?;
            let out = a0 ^ b0 ^ part(&share.out) ^ part(&share.product);
            outs.push(out);
            out
        } else {
            a ^ b
        };
        if let Some(wire) = zeros.get_mut(gate.out() as usize) {
            *wire = out;
        }
    }
    link.send_bits(outs.iter().map(|label| (label & 1) as u8))?;
    link.channel.flush()?;
    Ok(Part::Garbler { inputs: labels, gates: outs })
}

/// [Garbling 9 to 13] The garbler's part of an evaluation.
pub(super) async fn garble_prepared<L: Line>(
    pair: &Pair,
    prepared: &Prepared,
    entry: Entry<'_>,
    kept: usize,
    channel: &mut L,
) -> Result<(Vec<bool>, FixedInput), Abort> {
    let Part::Garbler { inputs: labels, gates: outs } = &prepared.part else {
        return Err(Abort::Caller("this was prepared by an evaluator"));
    };
    let mut link = Link::resume(pair, prepared.session, ONLINE, channel);
    let delta = *link.delta;
    let circuit = &prepared.circuit;
    let active = |label: &u128, public: &u8| label ^ (delta & mask(*public));
    let (first_masks, second_masks) = prepared.input_masks();
    let own = masked_input(pair, &entry, prepared)?;
    // [Garbling 9] The public bits of the evaluator's input.
    if let Some(agreed) = entry.agreed(&prepared.session)
        && !same(&agreed, &link.channel.block().await?)
    {
        return Err(Abort::Disagreement);
    }
    let theirs = link.receive_bits(second_masks.len()).await?;
    if let Some(expected) = entry.expected(&mut link, second_masks, &theirs)
        && !same(&expected, &link.channel.block().await?)
    {
        return Err(Abort::Input);
    }
    // [Garbling 10] Those of this party's input, and the labels of both and of the public input.
    link.send_bits(own.iter().copied())?;
    if let Some(proof) = entry.proof(&mut link, first_masks) {
        link.channel.send(&proof)?;
    }
    for (label, public) in labels.iter().zip(own.iter().chain(&theirs).chain(entry.public())) {
        link.channel.send_blocks(&[active(label, public)])?;
    }
    link.channel.flush()?;
    // [Garbling 11] The evaluator has the labels of the public bits that it names.
    let step = link.step("coterie/authenticated-garbling-labels/1", Role::Evaluator);
    let named = link.receive_bits(outs.len()).await?;
    let digest = link.channel.block::<32>().await?;
    let mut hash = Sha256::new();
    hash.update(step);
    for (label, public) in outs.iter().zip(&named) {
        hash.update(active(label, public).to_le_bytes());
    }
    if !same(&hash.finalize().into(), &digest) {
        return Err(Abort::Label);
    }
    let (publics, results) = propagate(circuit, own.iter().chain(&theirs).chain(entry.public()), &named);
    // [Garbling 12] The tables are right.
    let mut hash = Sha256::new();
    hash.update(link.step("coterie/authenticated-garbling-tables/1", Role::Garbler));
    for share in gate_checks(&link, &prepared.gates, &publics).iter() {
        hash.update(share.mac.to_le_bytes());
    }
    let digest: [u8; 32] = hash.finalize().into();
    link.channel.say(&digest)?;
    open_results(&mut link, prepared, &results, kept).await
}

/// A party's input under its masks.
pub(super) fn masked_input(pair: &Pair, entry: &Entry<'_>, prepared: &Prepared) -> Result<Vec<u8>, Abort> {
    prepared.belongs(pair)?;
    entry.belongs(pair)?;
    let (bits, masks) = (entry.bits(), &prepared.own_masks);
    let public = entry.public();
    let (first, second) = prepared.input_masks();
    let theirs = (first.len() + second.len()).saturating_sub(masks.len());
    if bits.len() != masks.len()
        || !entry.fixes(bits.len(), theirs)
        || public.len() != prepared.public_bits()
        || bits.iter().chain(public).fold(0, |all, bit| all | bit) > 1
    {
        return Err(Abort::Caller("the input is not made of as many bits as the circuit takes"));
    }
    Ok(bits.iter().zip(masks.iter()).map(|(bit, mask)| bit ^ mask).collect())
}

/// The public bits of each AND gate's inputs and output, and of the results, from those of inputs and of AND gates.
fn propagate<'a>(
    circuit: &Circuit,
    inputs: impl Iterator<Item = &'a u8>,
    named: &[u8],
) -> (Vec<[u8; 3]>, Vec<u8>) {
    let mut wires = vec![0u8; circuit.slots as usize];
    for (wire, public) in wires.iter_mut().skip(1).zip(inputs) {
        *wire = *public;
    }
    let mut gates = Vec::with_capacity(named.len());
    let mut named = named.iter();
    for gate in &circuit.gates {
        let (a, b) = (read(&wires, gate.a, 1), read(&wires, gate.b, 1));
        let out = if gate.is_and() {
            let out = named.next().copied().unwrap_or(0);
            gates.push([a, b, out]);
            out
        } else {
            a ^ b
        };
        if let Some(wire) = wires.get_mut(gate.out() as usize) {
            *wire = out;
        }
    }
    (gates, circuit.results.iter().map(|lit| read(&wires, *lit, 1)).collect())
}
