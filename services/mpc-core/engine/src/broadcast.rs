//! Agreement on broadcasts: what was seen, the digest that stands for it, and its disclosure when digests differ.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use crate::context::SessionContext;
use crate::envelope::Envelope;
use crate::party::PartyId;
use crate::tags;
use crate::transcript::Transcript;
use crate::wire::{Malformed, Reader, Writer};

/// Every broadcast of the session that this party has sent, received or been shown, one for each round and sender.
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

    /// Hash of all broadcasts of rounds before `round`, in order of round and party.
    pub(crate) fn echo(&self, ctx: &SessionContext, round: u8) -> [u8; 32] {
        let mut transcript = Transcript::new(tags::ECHO);
        transcript.append("session", ctx.digest());
        transcript.append_u64("round", u64::from(round));
        for ((of_round, sender), seen) in &self.0 {
            if *of_round < round {
                transcript.append_u64("of_round", u64::from(*of_round));
                transcript.append_u64("sender", u64::from(sender.get()));
                transcript.append("content", &seen.digest);
            }
        }
        transcript.digest()
    }

    /// Broadcasts of rounds before `round`, in order of round and party.
    pub(crate) fn before(&self, round: u8) -> impl Iterator<Item = &Arc<Envelope>> {
        self.0.iter().filter(move |((of_round, _), _)| *of_round < round).map(|(_, seen)| &seen.envelope)
    }

    /// The body of a disclosure: everything in here.
    pub(crate) fn disclose(&self) -> Vec<u8> {
        write_envelopes(self.0.values().map(|seen| &seen.envelope))
    }
}

/// A count, then each envelope with its length.
pub(crate) fn write_envelopes<'a>(envelopes: impl ExactSizeIterator<Item = &'a Arc<Envelope>>) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.u16(u16::try_from(envelopes.len()).unwrap_or(u16::MAX));
    for envelope in envelopes {
        writer.sized(&envelope.encode());
    }
    writer.finish()
}

/// At most `limit` envelopes.
pub(crate) fn read_envelopes(reader: &mut Reader<'_>, limit: usize) -> Result<Vec<Arc<Envelope>>, Malformed> {
    let count = usize::from(reader.u16()?);
    if count > limit {
        return Err(Malformed);
    }
    let mut envelopes = Vec::with_capacity(count);
    for _ in 0..count {
        let bytes = reader.sized(crate::envelope::MAX_ENVELOPE_BYTES)?;
        envelopes.push(Arc::new(Envelope::decode(bytes).map_err(|_| Malformed)?));
    }
    Ok(envelopes)
}
