//! The builder, which makes as few gates as it can.
//!
//! A slot that no live value names is used again, so that memory is bounded by the values that are live and not by the
//! length of the circuit.

pub mod arithmetic;
pub mod divide;
pub mod multiply;

use crate::circuit::{Circuit, Gate, Lit, Recorder, Sink};

/// Gates made so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// AND gates.
    pub and: u64,
    /// XOR gates.
    pub xor: u64,
}

const BATCH: usize = 4096;
/// Entries of each hash table; a newer gate replaces an older one in its place.
const CACHE: usize = 1 << 16;
/// Slots taken between two searches for dead ones, at least.
const COLLECT_AFTER: usize = 1 << 19;
/// The same for a builder that records one call: its circuit is small, and few slots keep a replay in the processor's
/// cache.
const COLLECT_RECORDED_AFTER: usize = 1 << 12;
/// Entries of its hash tables.
const RECORDER_CACHE: usize = 1 << 15;

/// Where a builder's gates go: on to a sink, or into a circuit in memory that is replayed later.
enum Target<'s> {
    Sink(&'s mut dyn Sink),
    Recorder(Box<Recorder>),
}

/// Makes gates from literals and sends them on.
pub struct Builder<'s> {
    target: Target<'s>,
    batch: Vec<Gate>,
    next: u32,
    free: Vec<u32>,
    taken: usize,
    threshold: usize,
    ands: Vec<(Lit, Lit, Lit)>,
    xors: Vec<(Lit, Lit, Lit)>,
    /// For replays.
    map: Vec<Lit>,
    count: Count,
    stopped: Option<String>,
}

impl Target<'_> {
    fn sink(&mut self) -> &mut dyn Sink {
        match self {
            Target::Sink(sink) => *sink,
            Target::Recorder(recorder) => recorder.as_mut(),
        }
    }
}

impl<'s> Builder<'s> {
    /// A builder that sends its gates to `sink`.
    pub fn new(sink: &'s mut dyn Sink) -> Builder<'s> {
        Builder::with_target(Target::Sink(sink), CACHE, COLLECT_AFTER)
    }

    /// A builder that keeps its gates, up to a number of them, for [`Builder::recorded`].
    #[must_use]
    pub fn recording(limit: usize) -> Builder<'s> {
        let recorder = Box::new(Recorder { limit, ..Recorder::default() });
        Builder::with_target(Target::Recorder(recorder), RECORDER_CACHE, COLLECT_RECORDED_AFTER)
    }

    /// The circuit that was recorded, without gates that no result needs. `None` if there were too many gates, or this
    /// builder does not record.
    #[must_use]
    pub fn recorded(mut self, results: &[Lit]) -> Option<Circuit> {
        self.finish(results).ok()?;
        let Target::Recorder(recorder) = self.target else { return None };
        let mut circuit = recorder.circuit;
        circuit.prune();
        Some(circuit.compact())
    }

    fn with_target(target: Target<'s>, cache: usize, threshold: usize) -> Builder<'s> {
        let empty = (Lit::FALSE, Lit::FALSE, Lit::FALSE);
        Builder {
            target,
            batch: Vec::with_capacity(BATCH),
            next: 1,
            free: Vec::new(),
            taken: 0,
            threshold,
            ands: vec![empty; cache],
            xors: vec![empty; cache],
            map: Vec::new(),
            count: Count::default(),
            stopped: None,
        }
    }

    /// Searches for dead slots after this many new ones; 1 finds mistakes in what is thought dead.
    pub fn collect_after(&mut self, slots: usize) {
        self.threshold = slots;
    }

    /// Gates made so far.
    #[must_use]
    pub fn count(&self) -> Count {
        self.count
    }

    /// Slots that were ever in use together, about.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.next
    }

    /// Why the sink stopped, if it did.
    #[must_use]
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Declares an input of a party.
    pub fn input(&mut self, party: usize, bits: usize) -> Vec<Lit> {
        let first = self.next;
        let Some(end) = u32::try_from(bits).ok().and_then(|b| first.checked_add(b)).filter(|e| *e < 1 << 30)
        else {
            self.stopped = Some("the inputs are too large".into());
            return vec![Lit::FALSE; bits];
        };
        self.next = end;
        if self.stopped.is_none()
            && let Err(reason) = self.target.sink().input(party, first, end - first)
        {
            self.stopped = Some(reason);
        }
        (first..end).map(Lit::wire).collect()
    }

    /// Sends the remaining gates and the outputs.
    ///
    /// # Errors
    /// The reason for which the sink stopped.
    pub fn finish(&mut self, outputs: &[Lit]) -> Result<Count, String> {
        self.flush();
        if let Some(reason) = self.stopped.take() {
            return Err(reason);
        }
        self.target.sink().outputs(outputs)?;
        Ok(self.count)
    }

    fn flush(&mut self) {
        if self.stopped.is_none()
            && let Err(reason) = self.target.sink().gates(&self.batch)
        {
            self.stopped = Some(reason);
        }
        self.batch.clear();
    }

    fn take_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let slot = self.next;
            if slot < 1 << 30 {
                self.next += 1;
            } else {
                self.stopped.get_or_insert("the program has more live values than fit".into());
            }
            slot
        })
    }

    fn push(&mut self, and: bool, a: Lit, b: Lit) -> Lit {
        self.taken += 1;
        let slot = self.take_slot();
        self.batch.push(Gate::new(and, a, b, slot));
        if self.batch.len() >= BATCH {
            self.flush();
        }
        Lit::wire(slot)
    }

    /// `a & b`.
    pub fn and(&mut self, a: Lit, b: Lit) -> Lit {
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        if a == Lit::FALSE || a == !b {
            return Lit::FALSE;
        }
        if a == Lit::TRUE || a == b {
            return b;
        }
        let place = hash(a, b) & (self.ands.len() - 1);
        if let Some((x, y, out)) = self.ands.get(place)
            && (*x, *y) == (a, b)
        {
            return *out;
        }
        self.count.and += 1;
        let out = self.push(true, a, b);
        if let Some(entry) = self.ands.get_mut(place) {
            *entry = (a, b, out);
        }
        out
    }

    /// `a ^ b`.
    pub fn xor(&mut self, a: Lit, b: Lit) -> Lit {
        let invert = (a.0 ^ b.0) & 1;
        let (a, b) = (a.plain(), b.plain());
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        if a == b {
            return Lit(invert);
        }
        if a == Lit::FALSE {
            return Lit(b.0 ^ invert);
        }
        let place = hash(a, b) & (self.xors.len() - 1);
        if let Some((x, y, out)) = self.xors.get(place)
            && (*x, *y) == (a, b)
        {
            return Lit(out.0 ^ invert);
        }
        self.count.xor += 1;
        let out = self.push(false, a, b);
        if let Some(entry) = self.xors.get_mut(place) {
            *entry = (a, b, out);
        }
        Lit(out.0 ^ invert)
    }

    /// Sends the gates of a recorded, compact circuit again, with these literals as its inputs; gives its outputs. The
    /// inputs are different wires, so there is nothing to simplify.
    pub fn replay(&mut self, circuit: &Circuit, inputs: &[Lit]) -> Vec<Lit> {
        // The meaning of each slot of the circuit here. Slots above the inputs' get one of ours each.
        let mut map = std::mem::take(&mut self.map);
        map.clear();
        map.push(Lit::FALSE);
        map.extend_from_slice(inputs);
        while map.len() < circuit.slots as usize {
            let slot = self.take_slot();
            map.push(Lit::wire(slot));
        }
        let read = |map: &[Lit], lit: Lit| Lit(map.get(lit.slot() as usize).map_or(0, |l| l.0) ^ (lit.0 & 1));
        for gate in &circuit.gates {
            let (a, b) = (read(&map, gate.a), read(&map, gate.b));
            let Some(out) = map.get_mut(gate.out() as usize) else { continue };
            let slot = out.slot();
            if gate.is_and() {
                self.count.and += 1;
                *out = Lit::wire(slot);
                self.batch.push(Gate::new(true, a, b, slot));
            } else {
                self.count.xor += 1;
                *out = Lit(slot << 1 | (a.0 ^ b.0) & 1);
                self.batch.push(Gate::new(false, a.plain(), b.plain(), slot));
            }
            if self.batch.len() >= BATCH {
                self.flush();
            }
        }
        let results: Vec<Lit> = circuit.results.iter().map(|lit| read(&map, *lit)).collect();
        let mut kept: Vec<u32> = results.iter().map(|lit| lit.slot()).collect();
        kept.sort_unstable();
        self.taken += kept.len();
        let ours = map.iter().skip(1 + inputs.len()).rev().map(|lit| lit.slot());
        self.free.extend(ours.filter(|slot| kept.binary_search(slot).is_err()));
        self.map = map;
        results
    }

    /// Builds a circuit's gates on other literals; gives its outputs.
    pub fn embed(&mut self, circuit: &Circuit, inputs: &[Lit]) -> Vec<Lit> {
        let mut slots = vec![Lit::FALSE; circuit.slots as usize];
        for (slot, lit) in slots.iter_mut().skip(1).zip(inputs) {
            *slot = *lit;
        }
        let read = |slots: &[Lit], lit: Lit| {
            let value = slots.get(lit.slot() as usize).copied().unwrap_or(Lit::FALSE);
            if lit.inverted() { !value } else { value }
        };
        for gate in &circuit.gates {
            let (a, b) = (read(&slots, gate.a), read(&slots, gate.b));
            let out = if gate.is_and() { self.and(a, b) } else { self.xor(a, b) };
            if let Some(slot) = slots.get_mut(gate.out() as usize) {
                *slot = out;
            }
        }
        circuit.results.iter().map(|lit| read(&slots, *lit)).collect()
    }

    /// `a | b`.
    pub fn or(&mut self, a: Lit, b: Lit) -> Lit {
        !self.and(!a, !b)
    }

    /// `a` if `choice`, otherwise `b`.
    pub fn mux(&mut self, choice: Lit, a: Lit, b: Lit) -> Lit {
        let difference = self.xor(a, b);
        let change = self.and(choice, difference);
        self.xor(b, change)
    }

    /// Whether enough slots were taken since the last search for dead ones.
    #[must_use]
    pub fn wants_collection(&self) -> bool {
        let live = (self.next as usize).saturating_sub(self.free.len());
        self.taken >= self.threshold && (self.threshold == 1 || self.taken >= live / 2)
    }

    /// Frees every slot that `live` does not name.
    pub fn collect(&mut self, mut live: impl FnMut(&mut dyn FnMut(Lit))) {
        let mut marks = vec![false; self.next as usize];
        live(&mut |lit: Lit| {
            if let Some(mark) = marks.get_mut(lit.slot() as usize) {
                *mark = true;
            }
        });
        self.free.clear();
        self.free.extend((1..self.next).rev().filter(|s| !marks.get(*s as usize).copied().unwrap_or(true)));
        self.taken = 0;
        let empty = (Lit::FALSE, Lit::FALSE, Lit::FALSE);
        self.ands.fill(empty);
        self.xors.fill(empty);
    }
}

fn hash(a: Lit, b: Lit) -> usize {
    let mixed = (u64::from(a.0) << 32 | u64::from(b.0)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 48) as usize
}

/// Bit `i` of a number, 0 beyond its end.
#[must_use]
pub fn bit(bits: &[Lit], i: usize) -> Lit {
    bits.get(i).copied().unwrap_or(Lit::FALSE)
}

/// The value of a number whose bits are all constants, if it has at most 128.
#[must_use]
pub fn constant(bits: &[Lit]) -> Option<u128> {
    let mut value = 0u128;
    for (i, lit) in bits.iter().enumerate() {
        if lit.value()? {
            value |= 1u128.checked_shl(u32::try_from(i).ok()?).filter(|_| i < 128)?;
        }
    }
    Some(value)
}
