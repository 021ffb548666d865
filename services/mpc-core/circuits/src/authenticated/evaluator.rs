//! The evaluator's side: keeps the tables, opens one row of each, and checks them all before it says anything about the
//! result.

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::abort::Abort;
use super::bits::{Link, mask};
use super::digest::same;
use super::garbler::{ONLINE, TABLES, masked_input};
use super::gates::{gate_checks, open_results, read};
use super::inputs::{Entry, FixedInput};
use super::pair::{Pair, Role};
use super::prepared::{Part, Prepared};
use crate::line::Line;

/// [Garbling 8] Receives the tables.
pub(super) async fn take_tables<L: Line>(link: &mut Link<'_, L>, ands: usize) -> Result<Part, Abort> {
    let mut tables = vec![[0u128; 2]; ands];
    link.channel.receive_blocks(tables.as_flattened_mut()).await?;
    let colours = link.receive_bits(ands).await?;
    Ok(Part::Evaluator { tables, colours })
}

/// [Garbling 9 to 13] The evaluator's part of an evaluation.
pub(super) async fn evaluate_prepared<L: Line>(
    pair: &Pair,
    prepared: &Prepared,
    entry: Entry<'_>,
    kept: usize,
    channel: &mut L,
) -> Result<(Vec<bool>, FixedInput), Abort> {
    let Part::Evaluator { tables, colours } = &prepared.part else {
        return Err(Abort::Caller("this was prepared by a garbler"));
    };
    let mut link = Link::resume(pair, prepared.session, ONLINE, channel);
    let circuit = &prepared.circuit;
    let own = masked_input(pair, &entry, prepared)?;
    let (first_masks, second_masks) = prepared.input_masks();
    // [Garbling 9] The public bits of this party's input.
    if let Some(agreed) = entry.agreed(&prepared.session) {
        link.channel.send(&agreed)?;
    }
    link.send_bits(own.iter().copied())?;
    if let Some(proof) = entry.proof(&mut link, second_masks) {
        link.channel.send(&proof)?;
    }
    link.channel.flush()?;
    // [Garbling 10] Those of the garbler's, and the labels of all inputs.
    let mut publics = vec![0u8; circuit.slots as usize];
    let mut labels = Zeroizing::new(vec![0u128; circuit.slots as usize]);
    let theirs = link.receive_bits(first_masks.len()).await?;
    if let Some(expected) = entry.expected(&mut link, first_masks, &theirs)
        && !same(&expected, &link.channel.block().await?)
    {
        return Err(Abort::Input);
    }
    let mut active = Zeroizing::new(vec![0u128; prepared.inputs.len()]);
    link.channel.receive_blocks(&mut active).await?;
    let known = theirs.iter().chain(&own).chain(entry.public());
    for ((wire, label), (public, given)) in
        publics.iter_mut().zip(labels.iter_mut()).skip(1).zip(known.zip(active.iter()))
    {
        (*wire, *label) = (*public, *given);
    }
    let mut gates = Vec::with_capacity(tables.len());
    let mut digest = Sha256::new();
    digest.update(link.step("coterie/authenticated-garbling-labels/1", Role::Evaluator));
    let mut prepared_gates = prepared.gates.iter().zip(tables.iter().zip(colours));
    let mut tweak = TABLES;
    for gate in &circuit.gates {
        let (a, b) = (read(&labels, gate.a, 0), read(&labels, gate.b, 0));
        let (x, y) = (read(&publics, gate.a, 1), read(&publics, gate.b, 1));
        let (label, public) = if gate.is_and() {
            let Some((share, ([left, right], colour))) = prepared_gates.next() else {
                return Err(Abort::Caller("the circuit has more gates than prepared"));
            };
            let [ha, hb] = link.key.tweaked([(a, tweak), (b, tweak + 1)]);
            tweak += 2;
            let label = ha
                ^ hb
                ^ share.out.mac
                ^ share.product.mac
                ^ (mask(x) & (left ^ share.right.mac))
                ^ (mask(y) & (right ^ share.left.mac ^ a));
            let public = colour ^ (label & 1) as u8;
            digest.update(label.to_le_bytes());
            gates.push([x, y, public]);
            (label, public)
        } else {
            (a ^ b, x ^ y)
        };
        if let (Some(wire), Some(place)) =
            (labels.get_mut(gate.out() as usize), publics.get_mut(gate.out() as usize))
        {
            (*wire, *place) = (label, public);
        }
    }
    // [Garbling 11] Names the public bits, and shows that it has their labels.
    link.send_bits(gates.iter().map(|[_, _, public]| *public))?;
    let digest: [u8; 32] = digest.finalize().into();
    link.channel.say(&digest)?;
    // [Garbling 12] The garbler's shares of what must be zero are this party's.
    let mut hash = Sha256::new();
    hash.update(link.step("coterie/authenticated-garbling-tables/1", Role::Garbler));
    for share in gate_checks(&link, &prepared.gates, &gates).iter() {
        hash.update((share.key ^ (*link.delta & mask(share.bit))).to_le_bytes());
    }
    if !same(&hash.finalize().into(), &link.channel.block().await?) {
        return Err(Abort::Table);
    }
    let results: Vec<u8> = circuit.results.iter().map(|lit| read(&publics, *lit, 1)).collect();
    open_results(&mut link, prepared, &results, kept).await
}
