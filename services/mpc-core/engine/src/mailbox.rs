//! Messages that have arrived and are not yet used: one slot for each sender in this round and the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::envelope::Envelope;
use crate::party::{PartyId, PartySet};

enum Slot {
    Held(Arc<Envelope>),
    /// Used in a step that left the round open.
    Used,
}

/// Bounded by construction: two rounds, one message of each sender in each.
#[derive(Default)]
pub(crate) struct Mailbox {
    current: BTreeMap<PartyId, Slot>,
    next: BTreeMap<PartyId, Slot>,
}

pub(crate) enum Posted {
    Stored,
    /// The same content is there, or its place has been used up.
    Again,
    /// Something else from the same sender is there.
    Conflict(Arc<Envelope>),
}

/// Which of the two rounds a message is for.
#[derive(Clone, Copy)]
pub(crate) enum Window {
    Current,
    Next,
}

impl Mailbox {
    pub(crate) fn post(&mut self, window: Window, envelope: &Arc<Envelope>) -> Posted {
        let slots = match window {
            Window::Current => &mut self.current,
            Window::Next => &mut self.next,
        };
        match slots.get(&envelope.sender()) {
            None => {
                slots.insert(envelope.sender(), Slot::Held(Arc::clone(envelope)));
                Posted::Stored
            }
            Some(Slot::Used) => Posted::Again,
            Some(Slot::Held(held)) if held.content_digest() == envelope.content_digest() => Posted::Again,
            Some(Slot::Held(held)) => Posted::Conflict(Arc::clone(held)),
        }
    }

    /// Senders with an unused message of this round.
    pub(crate) fn waiting(&self) -> PartySet {
        self.current
            .iter()
            .filter(|(_, slot)| matches!(slot, Slot::Held(_)))
            .map(|(sender, _)| *sender)
            .collect()
    }

    /// Senders whose message of this round has come, used or not.
    pub(crate) fn arrived(&self) -> PartySet {
        self.current.keys().copied().collect()
    }

    /// The unused messages of this round.
    pub(crate) fn held(&self) -> impl Iterator<Item = &Arc<Envelope>> {
        self.current.values().filter_map(|slot| match slot {
            Slot::Held(envelope) => Some(envelope),
            Slot::Used => None,
        })
    }

    /// Hands out the unused messages of this round.
    pub(crate) fn take(&mut self) -> Inbox {
        let mut taken = BTreeMap::new();
        for (sender, slot) in &mut self.current {
            if let Slot::Held(envelope) = core::mem::replace(slot, Slot::Used) {
                taken.insert(*sender, envelope);
            }
        }
        Inbox(taken)
    }

    /// The next round becomes the current one.
    pub(crate) fn turn(&mut self) {
        self.current = core::mem::take(&mut self.next);
    }

    pub(crate) fn clear(&mut self) {
        self.current.clear();
        self.next.clear();
    }
}

/// The messages of one round, at most one of each sender, in party order.
pub struct Inbox(BTreeMap<PartyId, Arc<Envelope>>);

impl Inbox {
    /// Ascending by sender.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Envelope>> {
        self.0.values()
    }

    /// The message of one sender.
    pub fn from(&self, sender: PartyId) -> Option<&Arc<Envelope>> {
        self.0.get(&sender)
    }
}
