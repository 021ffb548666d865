//! The disclosures of one session, and what each comes to. The session acts on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::broadcast::BroadcastLog;
use crate::claim::Claim;
use crate::context::SessionContext;
use crate::disclosure::{Difference, Disclosure, Opened, lied};
use crate::envelope::Envelope;
use crate::error::{AbortCause, Reject};
use crate::fault::Fault;
use crate::notice::Verdict;
use crate::party::PartyId;
use crate::runs::Runs;

/// The disclosures of all parties, this one's included.
#[derive(Default)]
pub(crate) struct Dispute {
    disclosures: BTreeMap<PartyId, Opened>,
    /// The broadcasts that others have disclosed.
    shown: BroadcastLog,
}

/// The result of one disclosure.
pub(crate) struct Heard {
    /// To be answered by a disclosure of our own, if there was none, before the verdict is acted on.
    pub(crate) difference: Option<Difference>,
    /// `None`: it is weighed with the others.
    pub(crate) verdict: Option<Verdict>,
}

impl Dispute {
    /// Whether a party has disclosed.
    pub(crate) fn holds(&self, sender: PartyId) -> bool {
        self.disclosures.contains_key(&sender)
    }

    pub(crate) fn add(&mut self, envelope: Arc<Envelope>, disclosure: Disclosure) {
        self.disclosures.insert(envelope.sender(), (envelope, disclosure));
    }

    /// Takes the disclosure of a peer; `log` holds the broadcasts that this party has sent and received.
    pub(crate) fn hear(
        &mut self,
        ctx: &SessionContext,
        runs: &mut Runs,
        log: &BroadcastLog,
        envelope: &Arc<Envelope>,
    ) -> Result<Heard, Reject> {
        let unanswered = |verdict| Ok(Heard { difference: None, verdict: Some(verdict) });
        let sender = envelope.sender();
        if let Some(fault) = runs.witness(envelope) {
            return unanswered(Verdict::Restarted(fault));
        }
        if let Some((held, _)) = self.disclosures.get(&sender) {
            if held.content_digest() == envelope.content_digest() {
                return Err(Reject::Duplicate);
            }
            let both = vec![Arc::clone(held), Arc::clone(envelope)];
            return unanswered(Verdict::Proven(Fault::proven(AbortCause::Equivocation, sender, both)));
        }
        let Ok(disclosure) = Disclosure::open(ctx, envelope) else {
            let evidence = vec![Arc::clone(envelope)];
            return unanswered(Verdict::Proven(Fault::proven(AbortCause::MalformedBody, sender, evidence)));
        };
        let difference = Some(disclosure.difference.clone());
        let verdict = self.compare(runs, log, &disclosure);
        if verdict.is_none() {
            self.add(Arc::clone(envelope), disclosure);
        }
        Ok(Heard { difference, verdict })
    }

    /// The verdict that a disclosure gives beside all that was seen before.
    fn compare(&mut self, runs: &mut Runs, log: &BroadcastLog, disclosure: &Disclosure) -> Option<Verdict> {
        for theirs in &disclosure.shown {
            if let Some(fault) = runs.witness(theirs) {
                return Some(Verdict::Restarted(fault));
            }
            if let Some(ours) = log.conflict(theirs).or_else(|| self.shown.witness(theirs)) {
                let culprit = ours.sender();
                let both = vec![ours, Arc::clone(theirs)];
                return Some(Verdict::Proven(Fault::proven(AbortCause::Equivocation, culprit, both)));
            }
        }
        // A claim from another run than its maker's other messages is no lie, and cannot be supported.
        let mut claims = disclosure.difference.claims().iter();
        claims.find_map(|claim| runs.contradicted(claim)).map(Verdict::Restarted)
    }

    /// The fault of the first party whose disclosure does not support its claim.
    pub(crate) fn lie(&self, ctx: &SessionContext) -> Option<Fault> {
        self.disclosures.values().find_map(|carrier| {
            let (liar, _) = self.disclosures.values().find(|disclosed| lied(ctx, carrier, disclosed))?;
            let mut evidence = vec![Arc::clone(liar)];
            if carrier.0.sender() != liar.sender() {
                evidence.insert(0, Arc::clone(&carrier.0));
            }
            Some(Fault::proven(AbortCause::FalseComplaint, liar.sender(), evidence))
        })
    }

    /// Claimants whose disclosure is not there.
    pub(crate) fn missing(&self) -> impl Iterator<Item = PartyId> + '_ {
        let claims = self.disclosures.values().flat_map(|(_, disclosure)| disclosure.difference.claims());
        claims.map(Claim::sender).filter(|sender| !self.holds(*sender))
    }
}
