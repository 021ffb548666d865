//! The run of a session that each party's messages belong to. A party that follows the rules has one, so another one
//! means that it was started again.

use std::collections::BTreeMap;

use rand_core::CryptoRng;

use crate::claim::Claim;
use crate::context::SessionContext;
use crate::envelope::{Envelope, RUN_NONCE_BYTES};
use crate::fault::Fault;
use crate::hedged::hedged;
use crate::party::PartyId;
use crate::tags;

/// The run of everybody heard of, this party included.
pub(crate) struct Runs(BTreeMap<PartyId, RunSeen>);

struct RunSeen {
    nonce: [u8; RUN_NONCE_BYTES],
    /// The first header that said so, if envelopes are signed.
    header: Option<Claim>,
}

impl Runs {
    /// Draws this party's own; an observer has none.
    pub(crate) fn start(ctx: &SessionContext, rng: &mut dyn CryptoRng) -> Self {
        let own = ctx.me().map(|me| (me, RunSeen { nonce: run_nonce(ctx, rng), header: None }));
        Self(own.into_iter().collect())
    }

    pub(crate) fn nonce(&self, party: PartyId) -> Option<[u8; RUN_NONCE_BYTES]> {
        self.0.get(&party).map(|seen| seen.nonce)
    }

    /// Remembers this party's own header, if it is the first.
    pub(crate) fn sent(&mut self, own: &Claim) {
        if let Some(seen) = self.0.get_mut(&own.sender()) {
            seen.header.get_or_insert_with(|| own.clone());
        }
    }

    /// The fault, if the envelope is not from the run of its sender that was seen first.
    pub(crate) fn witness(&mut self, envelope: &Envelope) -> Option<Fault> {
        let first = || RunSeen { nonce: envelope.run, header: Claim::of(envelope) };
        let seen = self.0.entry(envelope.sender()).or_insert_with(first);
        (seen.nonce != envelope.run).then(|| seen.restarted(envelope.sender(), Claim::of(envelope)))
    }

    /// The fault, if the claim is not from the run of its maker that was seen first. It is not remembered.
    pub(crate) fn contradicted(&self, claim: &Claim) -> Option<Fault> {
        let seen = self.0.get(&claim.sender()).filter(|seen| &seen.nonce != claim.run())?;
        Some(seen.restarted(claim.sender(), Some(claim.clone())))
    }
}

impl RunSeen {
    /// `party` has two runs: this one, and that of `other`.
    fn restarted(&self, party: PartyId, other: Option<Claim>) -> Fault {
        let runs = self.header.clone().zip(other).map(|(first, other)| [first, other]);
        Fault::restarted(party, runs)
    }
}

/// Differs in every run of a session, also if the generator repeats itself as far as hedging can tell.
fn run_nonce(ctx: &SessionContext, rng: &mut dyn CryptoRng) -> [u8; RUN_NONCE_BYTES] {
    let bytes = hedged(ctx, tags::RUN_NONCE, &[], rng);
    let mut nonce = [0; RUN_NONCE_BYTES];
    nonce.iter_mut().zip(bytes.expose()).for_each(|(out, byte)| *out = *byte);
    nonce
}
