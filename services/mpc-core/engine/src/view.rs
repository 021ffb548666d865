//! The broadcasts that a party must have seen before it could send anything in a round: their one source, for steps and
//! for judges.
//!
//! A party that follows the rules sends in a round only when it holds exactly one broadcast of every party in every
//! earlier round of broadcasts, each party's from one run. A list that is not like that is no view of any such party,
//! so nothing that is judged in its light can convict one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::body::{BroadcastBody, parse};
use crate::context::SessionContext;
use crate::envelope::Envelope;
use crate::error::AbortCause;
use crate::limits::genuine;
use crate::party::PartyId;
use crate::rounds::Delivery;
use crate::tags;
use crate::transcript::Transcript;

/// All broadcasts of the rounds before one round.
pub struct View {
    round: u8,
    broadcasts: BTreeMap<(u8, PartyId), Arc<Envelope>>,
    echo: [u8; 32],
}

impl View {
    /// The view before `round` that `envelopes` make up: genuine broadcasts, exactly one of every party in every
    /// earlier round of broadcasts, each party's with one run nonce. `None` if one is foreign, is missing or is there
    /// twice.
    pub fn from_evidence(ctx: &SessionContext, round: u8, envelopes: &[Arc<Envelope>]) -> Option<Self> {
        if !envelopes.iter().all(|envelope| genuine(ctx, envelope)) {
            return None;
        }
        Self::assemble(ctx, round, envelopes.iter())
    }

    /// The same, of envelopes that have been found genuine before.
    pub(crate) fn assemble<'a>(
        ctx: &SessionContext,
        round: u8,
        envelopes: impl Iterator<Item = &'a Arc<Envelope>>,
    ) -> Option<Self> {
        let mut broadcasts = BTreeMap::new();
        let mut runs = BTreeMap::new();
        for envelope in envelopes {
            let (of_round, sender) = (envelope.round(), envelope.sender());
            let foreign = of_round >= round || envelope.delivery() != Delivery::Broadcast;
            let other_run = runs.insert(sender, envelope.run()).is_some_and(|run| run != envelope.run());
            if foreign || other_run || broadcasts.insert((of_round, sender), Arc::clone(envelope)).is_some() {
                return None;
            }
        }
        let earlier = ctx.rounds().iter().take(usize::from(round).saturating_sub(1));
        let rounds = earlier.filter(|rule| rule.delivery == Delivery::Broadcast).count();
        // Each is of an earlier round of broadcasts and of a party of the session, and no place is there twice.
        if broadcasts.len() != rounds * ctx.parties().len() {
            return None;
        }
        let contents = broadcasts.iter().map(|(place, envelope)| (*place, envelope.content_digest()));
        let echo = echo_digest(ctx, round, contents);
        Some(Self { round, broadcasts, echo })
    }

    /// Whether `envelope` says that its sender had this view when it sent it.
    pub fn is_claimed_by(&self, envelope: &Envelope) -> bool {
        envelope.round() == self.round && envelope.echo() == Some(&self.echo)
    }

    /// The broadcast of one party in one earlier round.
    pub fn broadcast(&self, round: u8, sender: PartyId) -> Option<&Arc<Envelope>> {
        self.broadcasts.get(&(round, sender))
    }

    /// Everyone's body of one earlier round.
    pub fn bodies<B: BroadcastBody>(&self, ctx: &SessionContext) -> Result<BTreeMap<PartyId, B>, AbortCause> {
        let of_round = self.broadcasts.iter().filter(|((round, _), _)| *round == B::ROUND);
        of_round.map(|((_, sender), envelope)| Ok((*sender, parse(ctx, envelope)?))).collect()
    }

    /// All of it, in order of round and party, and then `last`: enough to convince others of the fault that
    /// was found with `last`.
    pub fn evidence(&self, last: &Arc<Envelope>) -> Vec<Arc<Envelope>> {
        self.broadcasts.values().chain([last]).map(Arc::clone).collect()
    }

    pub(crate) fn echo(&self) -> &[u8; 32] {
        &self.echo
    }
}

/// Hash of broadcasts of rounds before `round`, given by place and content digest in order of round and party.
pub(crate) fn echo_digest(
    ctx: &SessionContext,
    round: u8,
    contents: impl Iterator<Item = ((u8, PartyId), [u8; 32])>,
) -> [u8; 32] {
    let mut transcript = Transcript::new(tags::ECHO);
    transcript.append("session", ctx.digest());
    transcript.append_u64("round", u64::from(round));
    for ((of_round, sender), digest) in contents {
        transcript.append_u64("of_round", u64::from(of_round));
        transcript.append_u64("sender", u64::from(sender.get()));
        transcript.append("content", &digest);
    }
    transcript.digest()
}
