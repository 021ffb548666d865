//! The material that is ready before the inputs are known.

use zeroize::Zeroizing;

use super::abort::Abort;
use super::bits::Share;
use super::pair::Pair;
use crate::circuit::Circuit;

/// One evaluation of one circuit, prepared up to its inputs. It is used once, by value.
#[must_use]
#[cfg_attr(test, derive(Clone))]
pub struct Prepared {
    pub(super) circuit: Circuit,
    /// Of the pair.
    pub(super) identity: [u8; 32],
    pub(super) session: [u8; 32],
    /// The part of this party: its labels or its tables.
    pub(super) part: Part,
    /// This party's share of the mask of each input bit.
    pub(super) inputs: Zeroizing<Vec<Share>>,
    /// Shares for each AND gate in order.
    pub(super) gates: Zeroizing<Vec<GateShares>>,
    /// The masks of this party's own input bits, opened to it.
    pub(super) own_masks: Zeroizing<Vec<u8>>,
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
    pub(super) fn input_masks(&self) -> (&[Share], &[Share]) {
        let bits = |i: usize| self.circuit.inputs.get(i).copied().unwrap_or(0);
        let (first, rest) = self.inputs.split_at(bits(0).min(self.inputs.len()));
        (first, rest.split_at(bits(1).min(rest.len())).0)
    }

    /// Bits of the public input.
    pub(super) fn public_bits(&self) -> usize {
        self.circuit.inputs.get(2).copied().unwrap_or(0)
    }
}

/// The things that the garbler and the evaluator have prepared apart from each other.
#[cfg_attr(test, derive(Clone))]
pub(super) enum Part {
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
pub(super) struct GateShares {
    pub(super) left: Share,
    pub(super) right: Share,
    pub(super) out: Share,
    pub(super) product: Share,
}

impl zeroize::DefaultIsZeroes for GateShares {}
