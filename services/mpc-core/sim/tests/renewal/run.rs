//! One party's run of a session of the core.

use engine::session::{Progress, Session, Step};
use engine::{Abort, Envelope, PartyId, Protocol};
use protocols::dealing::{Refresh, Reshare, Reshared};
use rand_chacha::ChaCha20Rng;

use crate::common::{evidence_key, party};
use crate::scheme::{Order, Scheme};

/// The result of a session: the key's public data, and the new share unless its party leaves.
pub type Made<S> =
    (<S as protocols::dealing::Scheme>::Public, Option<<S as protocols::dealing::Scheme>::Share>);

pub enum End<S: Scheme> {
    /// The parties for which the run waits, if the step says so.
    Not(Option<Vec<PartyId>>),
    Made(Box<Made<S>>),
    Aborted(Abort),
}

pub struct Turn<S: Scheme> {
    /// Envelopes to one party or to all, as they were signed.
    pub outgoing: Vec<(Option<u32>, Vec<u8>)>,
    pub end: End<S>,
}

pub enum Running<S: Scheme> {
    Refresh(Session<Refresh<S>>),
    Reshare(Session<Reshare<S>>),
}

fn turn<S: Scheme, T>(step: Step<T>, made: impl FnOnce(T) -> Made<S>) -> Turn<S> {
    let outgoing = step
        .outgoing
        .iter()
        .map(|envelope| (envelope.recipient().map(|to| to.get().into()), envelope.encode()))
        .collect();
    let end = match step.progress {
        Progress::Done(output) => End::Made(Box::new(made(output))),
        Progress::Aborted(abort) => End::Aborted(abort),
        Progress::Waiting { missing } => End::Not(Some(missing.iter().collect())),
        Progress::Dropped(_) => End::Not(None),
    };
    Turn { outgoing, end }
}

fn refreshed<S: Scheme>(share: S::Share) -> Made<S> {
    (S::public_of(&share).clone(), Some(share))
}

fn reshared<S: Scheme>(Reshared { public, share }: Reshared<S>) -> Made<S> {
    (public, share)
}

impl<S: Scheme> Running<S> {
    /// `None` if the core refuses the order.
    pub fn start(
        order: &Order<S>,
        me: u32,
        share: Option<S::Share>,
        rng: &mut ChaCha20Rng,
    ) -> Option<(Self, Turn<S>)> {
        let (settings, key) = (order.settings(Some(me)), Some(evidence_key(party(me))));
        Some(match order.change {
            None => {
                let (session, step) = Session::<Refresh<S>>::start(settings, key, share?, rng).ok()?;
                (Self::Refresh(session), turn(step, refreshed::<S>))
            }
            Some(_) => {
                let (session, step) = Session::<Reshare<S>>::start(settings, key, share, rng).ok()?;
                (Self::Reshare(session), turn(step, reshared::<S>))
            }
        })
    }

    pub fn open(&mut self, from: u32, bytes: &[u8], rng: &mut ChaCha20Rng) -> Turn<S> {
        match self {
            Self::Refresh(session) => turn(session.open(party(from), bytes, rng), refreshed::<S>),
            Self::Reshare(session) => turn(session.open(party(from), bytes, rng), reshared::<S>),
        }
    }

    /// A signed envelope as it travels. `None` if it cannot be sealed.
    pub fn sealed(&self, bytes: &[u8], rng: &mut ChaCha20Rng) -> Option<Vec<u8>> {
        fn seal<P: Protocol>(session: &Session<P>, bytes: &[u8], rng: &mut ChaCha20Rng) -> Option<Vec<u8>> {
            let envelope = Envelope::decode(bytes).ok()?;
            match envelope.recipient() {
                Some(_) => session.seal(&envelope, rng),
                None => Some(bytes.to_vec()),
            }
        }
        match self {
            Self::Refresh(session) => seal(session, bytes, rng),
            Self::Reshare(session) => seal(session, bytes, rng),
        }
    }
}
