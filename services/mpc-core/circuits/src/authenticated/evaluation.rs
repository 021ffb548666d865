//! Evaluation of prepared circuits, by either party.

use super::abort::Abort;
use super::evaluator::evaluate_prepared;
use super::garbler::garble_prepared;
use super::inputs::{Entry, FixedInput};
use super::pair::{Pair, Role};
use super::prepared::Prepared;
use crate::line::Line;

/// Evaluates a prepared circuit; both parties learn the result.
///
/// # Errors
/// A broken connection, an input of another length, or a peer that deviates: see [`Abort`].
pub async fn evaluate<L: Line>(
    pair: &Pair,
    prepared: Prepared,
    entry: Entry<'_>,
    channel: &mut L,
) -> Result<Vec<bool>, Abort> {
    Ok(evaluate_keeping(pair, prepared, entry, 0, channel).await?.0)
}

/// Evaluates a prepared circuit whose last results stay shared, this many of them: both parties learn the others. The
/// bits that stay are fixed as inputs of any further evaluation of the pair, each the exclusive or of both parties'
/// bits.
///
/// # Errors
/// As [`evaluate`].
pub(crate) async fn evaluate_keeping<L: Line>(
    pair: &Pair,
    prepared: Prepared,
    entry: Entry<'_>,
    kept: usize,
    channel: &mut L,
) -> Result<(Vec<bool>, FixedInput), Abort> {
    pair.guard(async {
        match pair.role {
            Role::Garbler => garble_prepared(pair, &prepared, entry, kept, channel).await,
            Role::Evaluator => evaluate_prepared(pair, &prepared, entry, kept, channel).await,
        }
    })
    .await
}
