//! The end of a session whose parties saw different broadcasts: each shows its own, and the liar is found.
//!
//! A disclosure holds two claims, headers of one round by two parties with different echo digests, and all broadcasts
//! that its sender has seen. The claims say why it is made: without them nobody can make others stop and disclose.
//! Every party discloses once, with claims of its own finding or those that it was shown. Then for each of the two
//! claimants either its disclosure does not support its claim, which convicts it, or both views are complete and differ
//! in a place, for which their disclosures hold two signed messages of one party.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::broadcast::{BroadcastLog, read_envelopes, write_envelopes};
use crate::claim::Claim;
use crate::context::SessionContext;
use crate::envelope::Envelope;
use crate::limits::{genuine, max_envelopes};
use crate::rounds::Delivery;
use crate::view::View;
use crate::wire::{Malformed, Reader, Writer};

/// Two parties that cannot have seen the same broadcasts.
#[derive(Clone)]
pub(crate) struct Difference([Claim; 2]);

impl Difference {
    /// `None` unless both are of one round of the protocol, of different parties and with different echo digests.
    pub(crate) fn new(one: Claim, other: Claim) -> Option<Self> {
        let of_one_round = one.of_a_round() && one.round() == other.round();
        let differ = one.sender() != other.sender() && of_one_round && one.echo() != other.echo();
        differ.then_some(Self([one, other]))
    }

    /// The first of these messages that is of the round of `ours` and says that its sender saw something else.
    pub(crate) fn find<'a>(
        ours: &Claim,
        messages: impl IntoIterator<Item = &'a Arc<Envelope>>,
    ) -> Option<Self> {
        let mut of_this_round = messages.into_iter().filter(|envelope| envelope.round() == ours.round());
        let theirs = of_this_round.find(|envelope| envelope.echo() != ours.echo())?;
        Self::new(ours.clone(), Claim::of(theirs)?)
    }

    pub(crate) fn claims(&self) -> &[Claim; 2] {
        &self.0
    }
}

/// The content of a disclosure, checked.
pub(crate) struct Disclosure {
    pub(crate) difference: Difference,
    pub(crate) shown: Vec<Arc<Envelope>>,
}

impl Disclosure {
    pub(crate) fn encode(difference: &Difference, log: &BroadcastLog) -> Vec<u8> {
        let mut writer = Writer::default();
        difference.0.iter().for_each(|claim| claim.encode(&mut writer));
        write_envelopes(&mut writer, log.iter());
        writer.finish()
    }

    /// Genuine claims that differ, and genuine broadcasts, each place once and each party's from one run. A party that
    /// follows the rules sends nothing else.
    pub(crate) fn open(ctx: &SessionContext, disclosure: &Envelope) -> Result<Self, Malformed> {
        let mut reader = Reader::new(disclosure.body());
        let (one, other) = (Claim::decode(&mut reader)?, Claim::decode(&mut reader)?);
        let shown = read_envelopes(&mut reader, max_envelopes(ctx))?;
        reader.finish()?;
        let claims_genuine = one.genuine(ctx) && other.genuine(ctx);
        let difference = Difference::new(one, other).filter(|_| claims_genuine).ok_or(Malformed)?;
        let (mut places, mut runs) = (BTreeSet::new(), BTreeMap::new());
        for envelope in &shown {
            let broadcast_of_a_round = envelope.delivery() == Delivery::Broadcast
                && usize::from(envelope.round()) <= ctx.rounds().len();
            let new_place = places.insert((envelope.round(), envelope.sender()));
            let run = runs.insert(envelope.sender(), envelope.run());
            let one_run = run.is_none_or(|run| run == envelope.run());
            if !(broadcast_of_a_round && new_place && one_run && genuine(ctx, envelope)) {
                return Err(Malformed);
            }
        }
        Ok(Self { difference, shown })
    }

    /// Whether what was shown is a view that a party could have had when it sent `claim`, and the one that it claimed.
    fn supports(&self, ctx: &SessionContext, claim: &Claim) -> bool {
        let before = self.shown.iter().filter(|envelope| envelope.round() < claim.round());
        View::assemble(ctx, claim.round(), before).is_some_and(|view| claim.echo() == Some(view.echo()))
    }
}

/// A disclosure and its content.
pub(crate) type Opened = (Arc<Envelope>, Disclosure);

/// Whether a claim in `carrier` is by the sender of `disclosure`, from the same run, and is not supported by it.
pub(crate) fn lied(ctx: &SessionContext, carrier: &Opened, disclosure: &Opened) -> bool {
    let (envelope, content) = disclosure;
    carrier.1.difference.claims().iter().any(|claim| {
        claim.sender() == envelope.sender() && claim.run() == envelope.run() && !content.supports(ctx, claim)
    })
}
