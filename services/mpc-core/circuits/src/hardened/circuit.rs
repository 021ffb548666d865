//! The circuits of derivation. None of them depends on a key, so that all are prepared ahead.

use rand_core::CryptoRng;

use crate::authenticated::dabits::{Group, Secp256k1};
use crate::authenticated::{Abort, DaBits, Pair, Prepared};
use crate::circuit::public::Split;
use crate::circuit::{Circuit, Recorder};
use crate::compile::{Limits, compile};
use crate::line::Line;
use crate::program::Program;
use crate::stack::with_stack;

/// Bits of a mask: a masked number of 256 bits tells of it at most 2^-96.
pub(super) const MASK_BITS: usize = 352;
/// Bits of a masked number: two masks and a smaller number make two carries.
pub(super) const SUM_BITS: usize = MASK_BITS + 2;
/// Bytes of a seed, as BIP-32 bounds them.
pub const SEED_BYTES: std::ops::RangeInclusive<usize> = 16..=64;

/// A step of a derivation, which one circuit computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The root of BIP-32 for a seed of so many bytes.
    Master(usize),
    /// A hardened child of BIP-32.
    Child,
    /// The root of SLIP-10 for Ed25519 and a seed of so many bytes.
    Slip10Master(usize),
    /// A child of SLIP-10 for Ed25519.
    Slip10Child,
    /// The signing key of a node of SLIP-10 for Ed25519.
    Slip10Key,
}

impl Step {
    fn program(self) -> &'static str {
        match self {
            Step::Master(_) => include_str!("master.mpcl"),
            Step::Child => include_str!("child.mpcl"),
            Step::Slip10Master(_) => include_str!("slip10_master.mpcl"),
            Step::Slip10Child => include_str!("slip10_child.mpcl"),
            Step::Slip10Key => include_str!("slip10_key.mpcl"),
        }
    }

    /// Bits that a party enters beside its daBits.
    fn own_bits(self) -> usize {
        match self {
            Step::Master(seed) | Step::Slip10Master(seed) => 8 * seed,
            Step::Child => 0,
            Step::Slip10Child | Step::Slip10Key => 256,
        }
    }

    /// daBits of each party.
    fn dabits(self) -> usize {
        match self {
            Step::Master(_) | Step::Slip10Key => MASK_BITS,
            Step::Child => Secp256k1::SHARE_BITS + MASK_BITS,
            Step::Slip10Master(_) | Step::Slip10Child => 0,
        }
    }

    /// Bits that both parties know.
    fn public_bits(self) -> usize {
        match self {
            Step::Master(_) | Step::Slip10Master(_) | Step::Slip10Key => 0,
            Step::Child => 256 + 256 + 32,
            Step::Slip10Child => 256 + 32,
        }
    }

    /// Results, the last ones, that stay shared.
    pub(super) fn kept(self) -> usize {
        match self {
            Step::Master(_) | Step::Child => 0,
            Step::Slip10Master(_) | Step::Slip10Child | Step::Slip10Key => 256,
        }
    }
}

/// The circuit of a step. Both parties compile it for themselves.
pub struct StepCircuit {
    pub(super) step: Step,
    /// The gates that depend on public inputs alone, computed in the clear.
    public: Circuit,
    /// Inputs: those of the garbler, those of the evaluator, and the wires that the public part gives.
    pub(super) private: Circuit,
}

impl StepCircuit {
    /// The circuit; `None` for a seed of a length that BIP-32 does not know.
    #[must_use]
    pub fn new(step: Step) -> Option<StepCircuit> {
        Self::of(step, step.program())
    }

    /// The circuit of a program with the ports of the step's own.
    pub(super) fn of(step: Step, program: &str) -> Option<StepCircuit> {
        if let Step::Master(seed) | Step::Slip10Master(seed) = step
            && !SEED_BYTES.contains(&seed)
        {
            return None;
        }
        let text = program.replace("SEED", &(step.own_bits() / 8).to_string());
        let mut circuit = with_stack(move || {
            let program = Program::from_text("step.mpcl", &text, &[]).ok()?;
            let mut recorder = Recorder::default();
            compile(&program, &[vec![], vec![]], Limits::default(), &mut recorder).ok()?;
            Some(recorder.circuit)
        })??;
        circuit.prune();
        let own = step.own_bits() + step.dabits();
        circuit.inputs = vec![own, own, step.public_bits()];
        let Split { public, private } = Split::new(&circuit);
        Some(StepCircuit { step, public, private })
    }

    /// The step that this is for.
    #[must_use]
    pub fn step(&self) -> Step {
        self.step
    }

    /// AND gates that are garbled.
    #[must_use]
    pub fn ands(&self) -> usize {
        self.private.gates.iter().filter(|gate| gate.is_and()).count()
    }

    /// The public wires for bytes that both parties know, in the order of the program.
    pub(super) fn public_wires(&self, known: &[&[u8]]) -> Vec<u8> {
        let bits: Vec<bool> = known
            .iter()
            .flat_map(|part| part.iter())
            .flat_map(|byte| (0..8).map(move |i| byte >> i & 1 == 1))
            .collect();
        self.public.evaluate(&bits).into_iter().map(u8::from).collect()
    }
}

/// One step prepared up to its inputs. It is used once, by value.
#[must_use]
#[cfg_attr(test, derive(Clone))]
pub struct Ready {
    step: Step,
    pub(super) prepared: Prepared,
    pub(super) bits: DaBits,
}

impl Ready {
    /// [Hardened 2] Prepares a step: nothing of a key goes into it.
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub async fn new<L: Line>(
        pair: &Pair,
        circuit: &StepCircuit,
        channel: &mut L,
        rng: &mut (dyn CryptoRng + Send),
    ) -> Result<Ready, Abort> {
        let (prepared, bits) =
            Prepared::with_dabits(pair, &circuit.private, circuit.step.dabits(), channel, rng).await?;
        Ok(Ready { step: circuit.step, prepared, bits })
    }

    /// The parts, if this was prepared by this pair, for the step that is to be done and for this circuit.
    pub(super) fn open(
        self,
        pair: &Pair,
        circuit: &StepCircuit,
        fits: impl Fn(Step) -> bool,
    ) -> Result<(Prepared, DaBits), Abort> {
        if self.step != circuit.step || !fits(self.step) {
            return Err(Abort::Caller("this was prepared for another step"));
        }
        self.prepared.belongs(pair)?;
        Ok((self.prepared, self.bits))
    }
}

/// The bytes that bits make, the lowest bit first.
pub(super) fn bytes<const N: usize>(bits: &[bool]) -> Result<[u8; N], Abort> {
    let mut bytes = [0u8; N];
    if bits.len() != 8 * N {
        return Err(Abort::Caller("the circuit has results of another length"));
    }
    for (byte, bits) in bytes.iter_mut().zip(bits.as_chunks::<8>().0) {
        *byte = bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    }
    Ok(bytes)
}
