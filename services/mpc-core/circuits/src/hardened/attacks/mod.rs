//! Parties that deviate while they derive. Some gates take the place of HMAC-SHA512, so that there is time for many
//! runs; everything before and after them is the code that derives.

mod child;
mod seed;

use crate::authenticated::Abort;
use crate::authenticated::wire::{Edit, flip, honest, percent};

/// A change of one message by one role, with the causes that the honest peer may give. `always` if each such change is
/// found.
pub(super) struct Row {
    name: &'static str,
    by: usize,
    message: usize,
    places: &'static [usize],
    causes: &'static [u32],
    always: bool,
}

pub(super) const fn row(
    name: &'static str,
    by: usize,
    message: usize,
    places: &'static [usize],
    causes: &'static [u32],
) -> Row {
    Row { name, by, message, places, causes, always: true }
}

/// As [`row`], where some places do not matter: the labels of bits that no AND gate reads.
pub(super) const fn labels(name: &'static str, by: usize, message: usize, places: &'static [usize]) -> Row {
    Row { name, by, message, places, causes: &[9, 10], always: false }
}

/// Makes the first change of each row, or all where all runs are made, one in each run: the honest party ends with a
/// cause that fits, and its set-up with it; or the change did nothing.
fn check<T: PartialEq + std::fmt::Debug>(
    rows: &[Row],
    expected: &T,
    run: impl Fn([Edit; 2]) -> ([Result<T, Abort>; 2], [bool; 2]),
) {
    for row in rows {
        let mut found = 0;
        let places = if percent() >= 100 { row.places } else { row.places.split_at(1).0 };
        for place in places {
            let mut edits = [honest(), honest()];
            edits[row.by] = flip(row.message, *place, 2);
            let (results, ended) = run(edits);
            let name = format!("{} of {} at {place}", row.name, row.by);
            let mut aborted = false;
            for (index, result) in results.into_iter().enumerate() {
                match result {
                    Ok(result) => assert_eq!(result, *expected, "{name}"),
                    Err(Abort::Channel(_)) => {}
                    Err(abort) => {
                        aborted = true;
                        assert!(row.causes.contains(&abort.number()), "{name}: {abort:?}");
                        assert_eq!(ended[index], abort.excludes_peer(), "{name}");
                        // A changed label may show first at the garbler, in the evaluator's names of what it got.
                        assert!(index != row.by || row.causes.contains(&9), "{name}");
                    }
                }
            }
            assert!(aborted || !row.always, "{name}: nobody noticed");
            found += usize::from(aborted);
        }
        assert!(found > 0, "{} of {}", row.name, row.by);
    }
}
