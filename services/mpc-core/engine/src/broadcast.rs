//! Every broadcast that a party has seen, and lists of envelopes as they travel.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use crate::context::SessionContext;
use crate::envelope::{Envelope, MAX_ENVELOPE_BYTES};
use crate::party::PartyId;
use crate::view::echo_digest;
use crate::wire::{Malformed, Reader, Writer};

/// Broadcasts of the session, one for each round and sender.
#[derive(Default)]
pub(crate) struct BroadcastLog(BTreeMap<(u8, PartyId), Seen>);

struct Seen {
    envelope: Arc<Envelope>,
    digest: [u8; 32],
}

impl BroadcastLog {
    /// Remembers a broadcast whose signature has been verified. Another one in its place is returned instead.
    pub(crate) fn witness(&mut self, envelope: &Arc<Envelope>) -> Option<Arc<Envelope>> {
        let digest = envelope.content_digest();
        match self.0.entry((envelope.round(), envelope.sender())) {
            Entry::Vacant(place) => {
                place.insert(Seen { envelope: Arc::clone(envelope), digest });
                None
            }
            Entry::Occupied(held) if held.get().digest == digest => None,
            Entry::Occupied(held) => Some(Arc::clone(&held.get().envelope)),
        }
    }

    /// Another broadcast that holds the place of this one.
    pub(crate) fn conflict(&self, envelope: &Envelope) -> Option<Arc<Envelope>> {
        let held = self.0.get(&(envelope.round(), envelope.sender()))?;
        (held.digest != envelope.content_digest()).then(|| Arc::clone(&held.envelope))
    }

    /// Hash of all broadcasts of rounds before `round`, in order of round and party.
    pub(crate) fn echo(&self, ctx: &SessionContext, round: u8) -> [u8; 32] {
        let before = self.0.iter().filter(|((of_round, _), _)| *of_round < round);
        echo_digest(ctx, round, before.map(|(place, seen)| (*place, seen.digest)))
    }

    /// Broadcasts of rounds before `round`, in order of round and party.
    pub(crate) fn before(&self, round: u8) -> impl Iterator<Item = &Arc<Envelope>> {
        self.0.iter().filter(move |((of_round, _), _)| *of_round < round).map(|(_, seen)| &seen.envelope)
    }

    /// All of them, in order of round and party.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Envelope>> {
        self.0.values().map(|seen| &seen.envelope)
    }
}

/// A count, then each envelope with its length.
pub(crate) fn write_envelopes<'a>(
    writer: &mut Writer,
    envelopes: impl ExactSizeIterator<Item = &'a Arc<Envelope>>,
) {
    writer.u16(u16::try_from(envelopes.len()).unwrap_or(u16::MAX));
    for envelope in envelopes {
        writer.sized(&envelope.encode());
    }
}

/// At most `limit` envelopes.
pub(crate) fn read_envelopes(reader: &mut Reader<'_>, limit: usize) -> Result<Vec<Arc<Envelope>>, Malformed> {
    let count = usize::from(reader.u16()?);
    if count > limit {
        return Err(Malformed);
    }
    let mut envelopes = Vec::with_capacity(count);
    for _ in 0..count {
        let bytes = reader.sized(MAX_ENVELOPE_BYTES)?;
        envelopes.push(Arc::new(Envelope::decode(bytes).map_err(|_| Malformed)?));
    }
    Ok(envelopes)
}
