//! Evaluation whose last results stay shared.

use std::io::{Read, Write};

use super::abort::Abort;
use super::evaluator::evaluate_prepared;
use super::garbler::garble_prepared;
use super::inputs::{Entry, FixedInput};
use super::pair::{Pair, Role};
use super::prepared::Prepared;
use crate::garble::Channel;

/// Evaluates a prepared circuit whose last results stay shared, this many of them: both parties learn the others. The
/// bits that stay are fixed as inputs of any further evaluation of the pair, each the exclusive or of both parties'
/// bits.
///
/// # Errors
/// As [`super::garble`] and [`super::evaluate`].
pub(crate) fn evaluate_keeping<R: Read, W: Write>(
    pair: &Pair,
    prepared: Prepared,
    entry: Entry<'_>,
    kept: usize,
    channel: &mut Channel<R, W>,
) -> Result<(Vec<bool>, FixedInput), Abort> {
    pair.guard(|| match pair.role {
        Role::Garbler => garble_prepared(pair, &prepared, entry, kept, channel),
        Role::Evaluator => evaluate_prepared(pair, &prepared, entry, kept, channel),
    })
}
