//! A generator whose output is secret, and sessions of which one party is under test.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

use engine::session::{Progress, Protocol, Step};
use engine::{Envelope, PartyId, Secret};
use primitives::declassify::{memcheck, publish};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng, TryCryptoRng, TryRng};

use crate::common::Started;

/// Whose secrets are marked.
pub const TESTED: u32 = 1;

/// A generator: of secrets for the party under test, of plain numbers for its peers.
pub struct Source {
    inner: ChaCha20Rng,
    secret: bool,
}

impl Source {
    pub fn secret(seed: u64) -> Self {
        Self { inner: ChaCha20Rng::seed_from_u64(seed), secret: true }
    }

    pub fn plain(seed: u64) -> Self {
        Self { inner: ChaCha20Rng::seed_from_u64(seed), secret: false }
    }

    pub fn of(party: PartyId) -> Self {
        Self { secret: party == crate::common::party(TESTED), ..Self::plain(party.get().into()) }
    }
}

impl TryRng for Source {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.inner.fill_bytes(bytes);
        if self.secret {
            memcheck::make_undefined(bytes);
        }
        Ok(())
    }
}

impl TryCryptoRng for Source {}

/// Secret bytes.
pub fn bytes<const N: usize>(seed: u64) -> [u8; N] {
    let mut bytes = [0; N];
    Source::secret(seed).fill_bytes(&mut bytes);
    bytes
}

/// The data key of the party under test, which makes everything secret that it opens.
pub fn data_key() -> engine::seal::DataKey {
    let mut key = [9; 32];
    memcheck::make_undefined(&mut key);
    engine::seal::DataKey::new(Secret::new(key))
}

/// Runs a session to its end. Messages that the party under test posts are public.
pub fn run<P: Protocol>(started: Vec<(PartyId, Started<P>)>) -> BTreeMap<PartyId, P::Output> {
    let mut done = BTreeMap::new();
    let mut sessions = BTreeMap::new();
    let mut under_way = VecDeque::new();
    let mut sources: BTreeMap<PartyId, Source> =
        started.iter().map(|(party, _)| (*party, Source::of(*party))).collect();
    let parties: Vec<PartyId> = sources.keys().copied().collect();
    let mut apply = |party: PartyId, step: Step<P::Output>, under_way: &mut VecDeque<_>| {
        match step.progress {
            Progress::Done(output) => {
                done.insert(party, output);
            }
            Progress::Aborted(abort) => panic!("{party:?}: {abort}"),
            Progress::Dropped(reject) => panic!("{party:?}: {reject:?}"),
            Progress::Waiting { .. } => {}
        }
        under_way.extend(step.outgoing.iter().flat_map(|envelope| addressed(party, envelope, &parties)));
    };
    for (party, (session, step)) in started {
        sessions.insert(party, session);
        apply(party, step, &mut under_way);
    }
    while let Some((from, to, bytes)) = under_way.pop_front() {
        let step = sessions.get_mut(&to).unwrap().handle(from, &bytes, sources.get_mut(&to).unwrap());
        apply(to, step, &mut under_way);
    }
    assert_eq!(done.len(), parties.len(), "all are done");
    done
}

fn addressed(from: PartyId, envelope: &Envelope, parties: &[PartyId]) -> Vec<(PartyId, PartyId, Vec<u8>)> {
    let bytes = envelope.encode();
    publish(bytes.as_slice());
    let to: Vec<PartyId> = match envelope.recipient() {
        Some(recipient) => vec![recipient],
        None => parties.iter().copied().filter(|party| *party != from).collect(),
    };
    to.into_iter().map(|to| (from, to, bytes.clone())).collect()
}
