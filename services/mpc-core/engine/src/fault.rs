//! A deviation or failure that a step, a judge or another party's notice has found, with the evidence that shows it.

use std::sync::Arc;

use crate::claim::Claim;
use crate::context::SessionContext;
use crate::envelope::Envelope;
use crate::error::AbortCause;
use crate::party::{PartyId, PartySet};
use crate::wire::Malformed;

/// A fault that a protocol step found. The session adds the round and turns it into an [`Abort`](crate::error::Abort).
pub struct Fault {
    pub(crate) cause: AbortCause,
    pub(crate) culprits: Vec<PartyId>,
    pub(crate) suspects: Vec<PartyId>,
    pub(crate) evidence: Evidence,
}

impl Fault {
    /// Nobody can be shown to have caused it: every peer is a suspect.
    pub fn nobody(cause: AbortCause) -> Self {
        Self::suspected(cause, Vec::new())
    }

    /// One of `suspects` may have caused it, and nobody can be shown to have.
    pub fn suspected(cause: AbortCause, suspects: Vec<PartyId>) -> Self {
        Self { cause, culprits: Vec::new(), suspects, evidence: Evidence::none() }
    }

    /// `party` ran the session twice, as headers of both runs, where envelopes are signed, show to everybody.
    pub(crate) fn restarted(party: PartyId, runs: Option<[Claim; 2]>) -> Self {
        let evidence = runs.map_or_else(Evidence::none, |runs| Evidence::Runs(Box::new(runs)));
        Self { evidence, ..Self::suspected(AbortCause::PartyRestarted, vec![party]) }
    }

    /// The sender of `word`, a notice that asks to be believed, ended the run. One of `suspects` caused that.
    pub(crate) fn told(cause: AbortCause, suspects: Vec<PartyId>, word: Arc<Envelope>) -> Self {
        Self { evidence: Evidence::Envelopes(vec![word]), ..Self::suspected(cause, suspects) }
    }

    /// A broken invariant of ours.
    pub fn internal() -> Self {
        Self::nobody(AbortCause::Internal)
    }

    /// `culprit` did it, and `evidence` (its own signed envelopes, and what they refer to) convinces everybody.
    pub fn proven(cause: AbortCause, culprit: PartyId, evidence: Vec<Arc<Envelope>>) -> Self {
        let evidence = Evidence::Envelopes(evidence);
        Self { cause, culprits: vec![culprit], suspects: Vec::new(), evidence }
    }

    /// The notice by whose word the run ended.
    pub(crate) fn word(&self) -> Option<&Arc<Envelope>> {
        match &self.evidence {
            Evidence::Envelopes(envelopes) if self.culprits.is_empty() => envelopes.first(),
            Evidence::Envelopes(_) | Evidence::Runs(_) => None,
        }
    }

    /// Nobody beside culprits, or when the broken invariant is ours. All peers, unless it names some.
    pub(crate) fn suspects_among(&self, ctx: &SessionContext) -> PartySet {
        match (self.suspects.as_slice(), self.cause) {
            _ if !self.culprits.is_empty() => PartySet::new(),
            ([], AbortCause::Internal) => PartySet::new(),
            ([], _) => ctx.peers(),
            (named, _) => named.iter().copied().collect(),
        }
    }

    /// Those it convicts.
    pub fn culprits(&self) -> &[PartyId] {
        &self.culprits
    }

    /// `culprits` did it, as everybody can see for himself without evidence.
    pub fn evident(cause: AbortCause, culprits: Vec<PartyId>) -> Self {
        Self { cause, culprits, suspects: Vec::new(), evidence: Evidence::none() }
    }
}

/// The evidence that a notice carries.
#[derive(Clone)]
pub(crate) enum Evidence {
    /// Signed envelopes.
    Envelopes(Vec<Arc<Envelope>>),
    /// Two signed headers of one party, without their bodies: a private body from a run that nobody blames could tell a
    /// secret of a party that was restored.
    Runs(Box<[Claim; 2]>),
}

impl Evidence {
    /// Nothing but the sender's word.
    pub(crate) fn none() -> Self {
        Evidence::Envelopes(Vec::new())
    }

    /// Each item, encoded.
    pub(crate) fn items(&self) -> Vec<Vec<u8>> {
        match self {
            Evidence::Envelopes(envelopes) => envelopes.iter().map(|envelope| envelope.encode()).collect(),
            Evidence::Runs(claims) => claims.iter().map(Claim::to_bytes).collect(),
        }
    }

    /// The items that a notice with this cause has.
    pub(crate) fn from_items<'a>(
        cause: AbortCause,
        mut items: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Result<Self, Malformed> {
        if cause != AbortCause::PartyRestarted {
            let envelopes = items.map(|bytes| Envelope::decode(bytes).map(Arc::new).map_err(|_| Malformed));
            return envelopes.collect::<Result<_, _>>().map(Evidence::Envelopes);
        }
        let (Some(one), Some(other), None) = (items.next(), items.next(), items.next()) else {
            return Err(Malformed);
        };
        Ok(Evidence::Runs(Box::new([Claim::from_bytes(one)?, Claim::from_bytes(other)?])))
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Evidence::Envelopes(envelopes) if envelopes.is_empty())
    }
}
