//! Runs of a join that were counted and have not begun.
//!
//! They live as long as the vault and are taken out by the session that they are for, so that a run begins once at
//! most, in the process that has counted it, whatever is stored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::Secret;
use group_signatures::Attempt;
use protocols::dealing::ScalarOf;
use threshold_issuer::key::Issuing;

/// Most runs that a vault can have.
const MAX_RUNS: usize = 1024;

/// One counted run, at one side of the join.
pub(crate) enum Run {
    /// At an issuer.
    Issuer(Attempt),
    /// At the member, with sk_i. Boxed, so that no copy of it stays behind when the map moves its entries.
    Member(Attempt, Box<Secret<ScalarOf<Issuing>>>),
}

/// The side of a join that a run was counted at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// One that issues.
    Issuer,
    /// The one that joins.
    Member,
}

type Table = BTreeMap<([u8; 32], Side), Run>;

/// The runs of a vault, by session and side.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<Mutex<Table>>);

/// The vault has as many runs as it can have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunsFull;

impl Runs {
    /// Keeps a run until it begins or is dropped. A later one for the same session takes its place.
    pub(crate) fn keep(&self, session: [u8; 32], run: Run) -> Result<(), RunsFull> {
        let side = match run {
            Run::Issuer(_) => Side::Issuer,
            Run::Member(..) => Side::Member,
        };
        let mut table = self.table();
        if table.len() >= MAX_RUNS && !table.contains_key(&(session, side)) {
            return Err(RunsFull);
        }
        table.insert((session, side), run);
        Ok(())
    }

    /// Hands out a run, once.
    pub(crate) fn take(&self, session: &[u8; 32], side: Side) -> Option<Run> {
        self.table().remove(&(*session, side))
    }

    /// Makes the runs of a session useless.
    pub(crate) fn discard(&self, session: &[u8; 32]) {
        for side in [Side::Issuer, Side::Member] {
            self.take(session, side);
        }
    }

    /// Every operation leaves the table whole, so one that panicked elsewhere does not spoil it.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use group_signatures::GroupPublic;
    use group_signatures::forge::{Custody, attempt};

    use crate::os_rng::os_rng;

    fn group() -> GroupPublic {
        let custody = Custody::new(1, 1, &mut os_rng()).unwrap();
        custody.group("approvers", 1, &mut os_rng()).unwrap().1
    }

    #[test]
    fn a_run_is_handed_out_once_at_its_side() {
        let (runs, group) = (Runs::default(), group());
        let run = |number| Run::Issuer(attempt(&group, [1; 32], number, *group.issuer()));
        assert!(runs.keep([1; 32], run(1)).is_ok());
        assert!(runs.take(&[1; 32], Side::Member).is_none());
        assert!(runs.take(&[2; 32], Side::Issuer).is_none());
        assert!(runs.take(&[1; 32], Side::Issuer).is_some());
        assert!(runs.take(&[1; 32], Side::Issuer).is_none());
        // A later one takes the place of an earlier one of the session; a dropped one is gone.
        assert!(runs.keep([1; 32], run(2)).is_ok() && runs.keep([1; 32], run(3)).is_ok());
        let kept = runs.take(&[1; 32], Side::Issuer);
        assert!(matches!(kept, Some(Run::Issuer(attempt)) if attempt.number() == 3));
        assert!(runs.keep([1; 32], run(4)).is_ok());
        runs.discard(&[1; 32]);
        assert!(runs.take(&[1; 32], Side::Issuer).is_none());
    }

    #[test]
    fn table_of_runs_is_bounded() {
        let (runs, group) = (Runs::default(), group());
        let run = || Run::Issuer(attempt(&group, [1; 32], 1, *group.issuer()));
        let session = |number: usize| {
            let mut session = [0; 32];
            session[..8].copy_from_slice(&(number as u64).to_be_bytes());
            session
        };
        for number in 0..MAX_RUNS {
            assert!(runs.keep(session(number), run()).is_ok());
        }
        assert_eq!(runs.keep(session(MAX_RUNS), run()), Err(RunsFull));
        assert!(runs.keep(session(0), run()).is_ok(), "the place of another");
        runs.discard(&session(0));
        assert!(runs.keep(session(MAX_RUNS), run()).is_ok());
    }
}
