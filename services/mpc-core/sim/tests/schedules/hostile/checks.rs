//! The checks of how sessions ended.

use engine::AbortCause;

use super::{Mutant, Process, Scheme, World};

impl<S: Scheme> World<S> {
    /// An honest party's run names somebody if it fails, and nobody that follows the rules as the culprit.
    pub fn check_runs(&mut self, process: &Process<S>, alive: bool) {
        let me = process.party;
        let mut found = Vec::new();
        for run in process.runs.values() {
            for abort in &run.aborts {
                let of = match abort.culprits.is_empty() {
                    true => &mut self.counts.suspicions,
                    false => &mut self.counts.convictions,
                };
                *of.entry(abort.cause.number()).or_default() += 1;
                let forgotten = self.mutant == Mutant::NamesForgotten;
                let named = !abort.culprits.is_empty() || !abort.suspects.is_empty() && !forgotten;
                if !abort.culprits.iter().all(|culprit| self.corrupt.has_party(*culprit)) {
                    found.push(format!("party {me} convicts an honest party: {abort}"));
                }
                if abort.reporter.is_none() || !named {
                    found.push(format!("party {me} names nobody: {abort}"));
                }
                let internal = abort.cause == AbortCause::Internal;
                if internal || self.mutant == Mutant::CausesForgotten {
                    found.push(format!("party {me} blames an error of its own: {abort}"));
                }
            }
            if alive && !run.done && run.aborts.is_empty() {
                self.counts.stragglers += 1;
                let missing = if self.mutant == Mutant::NamesForgotten { &[][..] } else { &run.missing };
                if missing.is_empty() {
                    found.push(format!("party {me} waits for nobody"));
                }
            }
        }
        found.into_iter().for_each(|violation| self.say(violation));
    }

    /// In a session that all honest signers were given once and nothing disturbed, a failure points at a corrupt party.
    pub fn check_names(&mut self) {
        let mut found = Vec::new();
        for order in self.orders.iter().filter(|order| !self.disturbed.contains(&order.session)) {
            let (mut failed, mut named) = (Vec::new(), false);
            for process in self.processes.iter().filter(|process| !self.corrupt.has(process.party)) {
                let Some(run) = process.runs.get(&order.session).filter(|run| !run.done) else { continue };
                failed.push((process.party, &run.aborts, &run.missing));
                let forgotten = self.mutant == Mutant::NamesForgotten;
                let suspects = run.aborts.iter().flat_map(|abort| &abort.suspects).filter(|_| !forgotten);
                let of_abort = run.aborts.iter().flat_map(|abort| &abort.culprits).chain(suspects);
                let waited_for = run.missing.iter().filter(|_| run.aborts.is_empty() && !forgotten);
                named |= of_abort.chain(waited_for).any(|id| self.corrupt.has_party(*id));
            }
            if !failed.is_empty() && !named {
                found.push(format!(
                    "no corrupt party is named in {:?} of {:?}: {failed:?}",
                    order.work, order.signers
                ));
            }
        }
        found.into_iter().for_each(|violation| self.say(violation));
    }
}
