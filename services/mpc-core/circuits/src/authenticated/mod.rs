//! Two-party evaluation of circuits by authenticated garbling, against a party that deviates in any way.
//!
//! | Step | From |
//! |---|---|
//! | authenticated bits | `primitives::ot::authenticated`: SoftSpoken extension (Roy 2022) |
//! | leaky AND triples, check, half-leaky buckets | Katz, Ranellucci, Rosulek, Wang 2018 (eprint 2018/578), section 4 |
//! | half gates over authenticated masks, one bit and two blocks an AND | the same, section 5 |
//! | hash of labels and of keys: π(π(x) ⊕ i) ⊕ π(x) | Guo, Katz, Wang, Yu 2020 (eprint 2019/074), section 7.4 |
//!
//! The steps are numbered in `docs/protocols/garbling.md`, which says what is claimed, what leaks and what an abort
//! tells. The garbler's Δ is odd and the evaluator's even. A value z of a wire is never seen: both know the public bit
//! Λ = z ⊕ λ, and have shares of its mask λ with MACs under the other's Δ.
//!
//! Everything up to [`Prepared`] is independent of inputs; it is used once, by value, and wiped.

pub(crate) mod bits;
pub(crate) mod dabits;
mod evaluator;
mod garbler;
mod inputs;
#[cfg(test)]
mod tests;
mod triples;
#[cfg(test)]
pub(crate) mod wire;

use std::fmt;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use primitives::Secret;
use primitives::ot::{CORRECTION_BYTES, Initiator, PairState, REQUEST_BYTES, RESPONSE_BYTES, Responder};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::build::Lit;
use crate::circuit::Circuit;
use crate::garble::Channel;
use bits::{Link, Share, digest_of, tagged};
pub use dabits::DaBits;
pub use evaluator::evaluate;
pub use garbler::garble;
pub use inputs::{Entry, FixedInput};
pub use triples::bucket_size;

/// AND gates of a circuit, at most: the triples of so many take some 1 GB while they are made.
pub const MAX_ANDS: usize = 1 << 20;

/// A party's own input: its bits, 0 or 1.
pub type PrivateInput = Secret<Vec<u8>>;

/// The two parts of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Makes the tables.
    Garbler,
    /// Opens them.
    Evaluator,
}

/// Why a run ended without a result. Where [`Abort::excludes_peer`] says so, the peer has deviated: the pair's set-up
/// must be destroyed, and the peer may have learnt what the page of the protocol says.
#[derive(Debug)]
pub enum Abort {
    /// The connection broke.
    Channel(std::io::Error),
    /// The circuit or the input is not one that this engine evaluates.
    Caller(&'static str),
    /// The peer runs another circuit, or speaks another version.
    Disagreement,
    /// A message is not an encoding of what belongs there.
    Malformed,
    /// The check of an oblivious transfer failed.
    Transfer,
    /// The check of AND triples failed.
    Triple,
    /// A commitment was opened to another value.
    Commitment,
    /// Bits were opened without their MACs.
    Opening,
    /// The evaluator named public bits whose labels it does not have.
    Label,
    /// A garbled table does not compute its gate.
    Table,
    /// The check of bits that are shared as scalars too failed.
    DaBit,
    /// The peer entered other bits than those that it fixed.
    Input,
    /// A point was opened without its MAC.
    Point,
    /// The peer's part of a signature does not fit its share of the key.
    Partial,
    /// The nonce point of this message differs from the recorded one.
    OtherNonce,
    /// The test that ends an import has another result than the importer's.
    Import,
    /// The record of nonces could not be read or written.
    Record(std::io::Error),
}

impl Abort {
    /// A stable number of the cause, for logs and metrics.
    #[must_use]
    pub fn number(&self) -> u32 {
        match self {
            Abort::Channel(_) => 1,
            Abort::Caller(_) => 2,
            Abort::Disagreement => 3,
            Abort::Malformed => 4,
            Abort::Transfer => 5,
            Abort::Triple => 6,
            Abort::Commitment => 7,
            Abort::Opening => 8,
            Abort::Label => 9,
            Abort::Table => 10,
            Abort::DaBit => 11,
            Abort::Input => 12,
            Abort::Point => 13,
            Abort::Partial => 14,
            Abort::OtherNonce => 15,
            Abort::Import => 16,
            Abort::Record(_) => 17,
        }
    }

    /// Whether nothing may be done with the peer again: it has shown that it does not follow the protocol.
    /// [`Abort::OtherNonce`] and [`Abort::Import`] may have another cause: the owner of the key gave wrong shares, or a
    /// record is wrong.
    #[must_use]
    pub fn excludes_peer(&self) -> bool {
        match self {
            Abort::Channel(_) | Abort::Caller(_) | Abort::Disagreement | Abort::Record(_) => false,
            Abort::Malformed
            | Abort::Transfer
            | Abort::Triple
            | Abort::Commitment
            | Abort::Opening
            | Abort::Label
            | Abort::Table
            | Abort::DaBit
            | Abort::Input
            | Abort::Point
            | Abort::Partial
            | Abort::OtherNonce
            | Abort::Import => true,
        }
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Abort::Channel(e) => write!(f, "the connection to the peer broke: {e}"),
            Abort::Caller(e) => f.write_str(e),
            Abort::Disagreement => f.write_str("the peer runs another circuit"),
            Abort::Malformed => f.write_str("the peer sent a message that cannot be read"),
            Abort::Transfer => f.write_str("the peer failed the check of an oblivious transfer"),
            Abort::Triple => f.write_str("the peer failed the check of AND triples"),
            Abort::Commitment => f.write_str("the peer opened a commitment to another value"),
            Abort::Opening => f.write_str("the peer opened bits that are not its own"),
            Abort::Label => f.write_str("the peer named public bits whose labels it does not have"),
            Abort::Table => f.write_str("the peer garbled a gate wrongly"),
            Abort::DaBit => f.write_str("the peer failed the check of bits that are scalars too"),
            Abort::Input => f.write_str("the peer entered other bits than it had fixed"),
            Abort::Point => f.write_str("the peer opened a point that is not its own"),
            Abort::Partial => {
                f.write_str("the peer's part of the signature does not fit its share of the key")
            }
            Abort::OtherNonce => f.write_str("this message has another nonce than before"),
            Abort::Record(e) => write!(f, "the record of nonces failed: {e}"),
            Abort::Import => {
                f.write_str("the test that ends the import has another result than the importer's")
            }
        }
    }
}

impl std::error::Error for Abort {}

impl From<std::io::Error> for Abort {
    fn from(e: std::io::Error) -> Self {
        Abort::Channel(e)
    }
}

/// The set-up that two parties keep for circuits: apart from every other set-up of theirs, since the garbler's Δ is
/// odd.
///
/// The first check that fails here ends it, for all runs that are under way: failing or not told the peer whether its
/// guess was right.
pub struct Pair {
    role: Role,
    state: PairState,
    /// A digest of the set-up's messages, by which what is made under this Δ is told from what is made under another.
    identity: [u8; 32],
    ended: AtomicBool,
}

impl Pair {
    /// This party's part.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether a check failed, so that nothing is done with this set-up any more.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Stops a run whose peer failed a check in this run or another. Each run asks this between a check that tells of a
    /// guess and the next message, so that guesses in several runs at a time tell no more than one.
    pub(crate) fn go_on(&self) -> Result<(), Abort> {
        if self.ended() { Err(Abort::Caller("this set-up ended with a failed check")) } else { Ok(()) }
    }

    /// Refuses the caller that brings what belongs to another set-up: the check of it would fail, and exclude an honest
    /// peer.
    pub(crate) fn owns(&self, identity: Option<[u8; 32]>) -> Result<(), Abort> {
        match identity == Some(self.identity) {
            true => Ok(()),
            false => Err(Abort::Caller("this was prepared or fixed under another set-up")),
        }
    }

    /// Does a step with the peer, and ends this set-up if the peer deviates.
    pub(crate) fn guard<T>(&self, step: impl FnOnce() -> Result<T, Abort>) -> Result<T, Abort> {
        self.go_on()?;
        step().inspect_err(|abort| {
            if abort.excludes_peer() {
                self.ended.store(true, Ordering::SeqCst);
            }
        })
    }

    /// Sets up with the peer. `binding` names both parties and the purpose, and is the same on both sides.
    ///
    /// # Errors
    /// A broken connection, or a peer that fails a check.
    pub fn set_up<R: Read, W: Write>(
        role: Role,
        binding: &[u8; 32],
        channel: &mut Channel<R, W>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Pair, Abort> {
        let failed = |_| Abort::Transfer;
        let identity = |request: &[u8], response: &[u8], corrections: &[u8]| {
            tagged("coterie/authenticated-garbling-pair/1", &[binding, request, response, corrections])
        };
        let (state, identity) = match role {
            Role::Garbler => {
                let (initiator, request) = Initiator::begin_odd(binding, rng);
                channel.say(&request)?;
                let response = channel.block::<RESPONSE_BYTES>()?;
                let (state, corrections) = initiator.finish(&response, rng).map_err(failed)?;
                channel.say(&corrections)?;
                (state, identity(&request, &response, &corrections))
            }
            Role::Evaluator => {
                let request = channel.block::<REQUEST_BYTES>()?;
                let (responder, response) = Responder::answer_even(binding, &request, rng).map_err(failed)?;
                channel.say(&response)?;
                let corrections = channel.block::<CORRECTION_BYTES>()?;
                let state = responder.finish(&corrections).map_err(failed)?;
                (state, identity(&request, &response, &corrections))
            }
        };
        Ok(Pair { role, state, identity, ended: AtomicBool::new(false) })
    }
}

/// One evaluation of one circuit, prepared up to its inputs. It is used once, by value.
#[must_use]
pub struct Prepared {
    circuit: Circuit,
    /// Of the pair.
    identity: [u8; 32],
    session: [u8; 32],
    /// The part of this party: its labels or its tables.
    part: Part,
    /// This party's share of the mask of each input bit.
    inputs: Zeroizing<Vec<Share>>,
    /// Shares for each AND gate in order.
    gates: Zeroizing<Vec<GateShares>>,
    /// The masks of this party's own input bits, opened to it.
    own_masks: Zeroizing<Vec<u8>>,
}

impl Prepared {
    /// Refuses the pair of another preparation.
    pub(crate) fn belongs(&self, pair: &Pair) -> Result<(), Abort> {
        pair.owns(Some(self.identity))
    }

    /// The session of the preparation, which the evaluation and all that follows it belong to.
    pub(crate) fn session(&self) -> [u8; 32] {
        self.session
    }

    /// Shares of the masks of the garbler's input bits and of the evaluator's.
    fn input_masks(&self) -> (&[Share], &[Share]) {
        let bits = |i: usize| self.circuit.inputs.get(i).copied().unwrap_or(0);
        let (first, rest) = self.inputs.split_at(bits(0).min(self.inputs.len()));
        (first, rest.split_at(bits(1).min(rest.len())).0)
    }

    /// Bits of the public input.
    fn public_bits(&self) -> usize {
        self.circuit.inputs.get(2).copied().unwrap_or(0)
    }
}

enum Part {
    Garbler {
        /// The label of public bit 0, of each input bit.
        inputs: Zeroizing<Vec<u128>>,
        /// The label of public bit 0 of each AND gate's result.
        gates: Zeroizing<Vec<u128>>,
    },
    Evaluator {
        tables: Vec<[u128; 2]>,
        /// The colour of the label of public bit 0, of each AND gate's result.
        colours: Vec<u8>,
    },
}

/// A party's material for an AND gate: shares of the masks of its inputs, of its output, and of the product of the
/// first two.
#[derive(Clone, Copy, Default)]
struct GateShares {
    left: Share,
    right: Share,
    out: Share,
    product: Share,
}

impl zeroize::DefaultIsZeroes for GateShares {}

impl Prepared {
    /// Prepares one evaluation: both parts, the one that is independent of the circuit and the other.
    ///
    /// # Errors
    /// A broken connection, a circuit that is not the peer's, or a peer that fails a check: see [`Abort`].
    pub fn new<R: Read, W: Write>(
        pair: &Pair,
        circuit: &Circuit,
        channel: &mut Channel<R, W>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Prepared, Abort> {
        pair.guard(|| Self::prepare(&mut Link::begin(pair, digest_of(circuit), channel, rng)?, circuit, rng))
    }

    /// Prepares one evaluation together with random bits that are shared as scalars too, this many of each party.
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub fn with_dabits<R: Read, W: Write>(
        pair: &Pair,
        circuit: &Circuit,
        count: usize,
        channel: &mut Channel<R, W>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Prepared, DaBits), Abort> {
        pair.guard(|| {
            let mut link = Link::begin(pair, digest_of(circuit), channel, rng)?;
            let prepared = Self::prepare(&mut link, circuit, rng)?;
            Ok((prepared, DaBits::random(&mut link, count, rng)?))
        })
    }

    fn prepare<R: Read, W: Write>(
        link: &mut Link<'_, R, W>,
        circuit: &Circuit,
        rng: &mut dyn CryptoRng,
    ) -> Result<Prepared, Abort> {
        let ([first, second] | [first, second, _]) = circuit.inputs.as_slice() else {
            return Err(Abort::Caller("the circuit takes one input of each party, and one that is public"));
        };
        let ands = circuit.gates.iter().filter(|gate| gate.is_and()).count();
        if ands > MAX_ANDS {
            return Err(Abort::Caller("the circuit has more than 2^20 AND gates"));
        }
        let triples = triples::random_triples(link, ands, rng)?;
        let bits = first + second;
        let masks = link.random_shares(bits + ands, rng)?;
        let (own, outs) = masks.split_at(bits);
        // The mask of a public input is zero: its public bit is its value.
        let mut inputs = Zeroizing::new(vec![Share::default(); circuit.inputs.iter().sum()]);
        for (mask, share) in inputs.iter_mut().zip(own) {
            *mask = *share;
        }
        let gates = products(link, circuit, &inputs, outs, &triples)?;
        drop(triples);
        let (first, second) = own.split_at(*first);
        // Each party's masks are opened to it alone: the evaluator speaks first.
        let own_masks = match link.role() {
            Role::Garbler => {
                let own = link.receive_opened(first)?;
                link.open_to_peer(second)?;
                own
            }
            Role::Evaluator => {
                link.open_to_peer(first)?;
                link.receive_opened(second)?
            }
        };
        let part = match link.role() {
            Role::Garbler => garbler::make_tables(link, circuit, &inputs, &gates, rng)?,
            Role::Evaluator => evaluator::take_tables(link, ands)?,
        };
        let (circuit, identity, session) = (circuit.clone(), link.identity(), link.session());
        Ok(Prepared { circuit, identity, session, part, inputs, gates, own_masks })
    }
}

/// The value that a literal has among values by slot, where inversion adds `one`.
fn read<T: Copy + Default + std::ops::BitXor<Output = T>>(values: &[T], lit: Lit, one: T) -> T {
    let value = values.get(lit.slot() as usize).copied().unwrap_or_default();
    if lit.inverted() { value ^ one } else { value }
}

/// [Garbling 7] Shares of the product of each AND gate's input masks, each made of one random triple by opening two
/// bits.
fn products<R: Read, W: Write>(
    link: &mut Link<'_, R, W>,
    circuit: &Circuit,
    inputs: &[Share],
    outs: &[Share],
    triples: &[triples::Triple],
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
    let differences = link.open(&opened)?;
    for ((gate, triple), pair) in gates.iter_mut().zip(triples).zip(differences.as_chunks::<2>().0) {
        let [d, e] = *pair;
        gate.product = link.add_public(triple.z ^ triple.y.times(d) ^ triple.x.times(e), d & e);
    }
    Ok(gates)
}

/// [Garbling 12] This party's share of what must be zero for each AND gate: (Λ_a ⊕ λ_a)(Λ_b ⊕ λ_b) ⊕ Λ_c ⊕ λ_c.
fn gate_checks<R: Read, W: Write>(
    link: &Link<'_, R, W>,
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

/// Evaluates a prepared circuit whose last results stay shared, this many of them: both parties learn the others. The
/// bits that stay are fixed as inputs of any further evaluation of the pair, each the exclusive or of both parties'
/// bits.
///
/// # Errors
/// As [`garble`] and [`evaluate`].
pub(crate) fn evaluate_keeping<R: Read, W: Write>(
    pair: &Pair,
    prepared: Prepared,
    entry: Entry<'_>,
    kept: usize,
    channel: &mut Channel<R, W>,
) -> Result<(Vec<bool>, FixedInput), Abort> {
    pair.guard(|| match pair.role {
        Role::Garbler => garbler::garble_prepared(pair, &prepared, entry, kept, channel),
        Role::Evaluator => evaluator::evaluate_prepared(pair, &prepared, entry, kept, channel),
    })
}

/// [Garbling 13] Opens the masks of the results; both parties know the results' public bits. Of the last ones, this
/// many, no mask is opened: a result is its public bit plus its mask, and shares of that are authenticated already.
fn open_results<R: Read, W: Write>(
    link: &mut Link<'_, R, W>,
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
    let opened = link.open(open)?;
    let mut shares = Zeroizing::new(Vec::with_capacity(shared.len()));
    let rest = publics.iter().skip(open.len());
    shares.extend(shared.iter().zip(rest).map(|(mask, public)| link.add_public(*mask, *public)));
    let results = opened.iter().zip(publics).map(|(mask, public)| mask ^ public == 1).collect();
    Ok((results, FixedInput::of(link.identity(), &shares)))
}
