//! A protocol of two parties as frames that they exchange in turns: no thread waits for the peer, and no socket is
//! known here.
//!
//! A message is all that a party says before it needs the peer. It travels in frames of at most [`FRAME_BYTES`]: a byte
//! that says what follows, and a part of the message.
//!
//! | first byte | content |
//! |---|---|
//! | 0 | the end of a message, and the peer's turn |
//! | 1 | [`FRAME_BYTES`] less one bytes of a message that goes on; the peer answers with 2 |
//! | 2 | nothing: go on |
//!
//! So each frame of one party follows one of the other, and a party holds one frame of its peer beside what the
//! protocol waits for, whatever the peer does. A message that is shorter or longer than the protocol's ends the run as
//! one that cannot be read ([`Abort::Malformed`]), and the set-up with it, unless it is the last one and longer.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use primitives::hedge::HedgedRng;
use rand_core::{CryptoRng, Rng, TryCryptoRng, TryRng};
use zeroize::Zeroizing;

use crate::authenticated::Abort;
use crate::line::{Irregular, Line};

/// Longest frame, in bytes.
pub const FRAME_BYTES: usize = 1 << 20;

const LAST: u8 = 0;
const MORE: u8 = 1;
const GO_ON: u8 = 2;

const OVER: Abort = Abort::Caller("this dialogue is over");

/// One party's side of a protocol with the result `T`.
///
/// Dropping it is leaving: the peer sees a connection that broke.
pub struct Dialogue<T> {
    shared: Arc<Mutex<Shared>>,
    /// `None` once it has a result or failed.
    protocol: Option<Protocol<T>>,
    /// The result, while the last message is still on its way.
    result: Option<T>,
    /// Whether the next frame of the peer asks for the rest of a message of ours.
    telling: bool,
}

type Protocol<T> = Pin<Box<dyn Future<Output = Result<T, Abort>> + Send>>;

/// The state of a dialogue after a step.
#[must_use]
pub enum Turn<T> {
    /// The peer has the word.
    Listen,
    /// To be sent; then the peer has the word.
    Say(Vec<u8>),
    /// The end, after which nothing is heard: the result, and the last frame to be sent, if there is one.
    Done(T, Option<Vec<u8>>),
}

impl<T> Dialogue<T> {
    /// Starts a protocol, which gets its line to the peer and its randomness. The latter is drawn anew in each step,
    /// so that two processes made from one image part ways.
    ///
    /// # Errors
    /// The protocol ended without having heard anything.
    pub fn start<F>(
        protocol: impl FnOnce(DialogueLine, DialogueRng) -> F,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Turn<T>), Abort>
    where
        F: Future<Output = Result<T, Abort>> + Send + 'static,
    {
        let shared = Arc::new(Mutex::new(Shared::new(rng)));
        let protocol = protocol(DialogueLine(Arc::clone(&shared)), DialogueRng(Arc::clone(&shared)));
        let mut dialogue =
            Dialogue { shared, protocol: Some(Box::pin(protocol)), result: None, telling: false };
        let turn = dialogue.step()?;
        Ok((dialogue, turn))
    }

    /// Takes the peer's next frame.
    ///
    /// # Errors
    /// As the protocol; and [`Abort::Malformed`] for a frame that has no place here. The dialogue is over then.
    pub fn hear(&mut self, frame: &[u8], rng: &mut dyn CryptoRng) -> Result<Turn<T>, Abort> {
        if self.protocol.is_none() && self.result.is_none() {
            return Err(OVER);
        }
        self.shared().refresh(rng);
        let heard = frame.split_first().filter(|_| frame.len() <= FRAME_BYTES);
        if self.telling {
            return match heard {
                Some((&GO_ON, [])) => Ok(self.tell()),
                _ => Err(self.refuse()),
            };
        }
        let Some((kind, part)) = heard else { return Err(self.refuse()) };
        match *kind {
            LAST => self.shared().hear(part, Peer::Spoken),
            MORE if frame.len() == FRAME_BYTES => self.shared().hear(part, Peer::Speaking),
            _ => return Err(self.refuse()),
        }
        let turn = self.step()?;
        match turn {
            // The peer's message goes on.
            Turn::Listen if *kind == MORE => Ok(Turn::Say(vec![GO_ON])),
            turn => Ok(turn),
        }
    }

    /// Goes on with the protocol until it waits for the peer.
    fn step(&mut self) -> Result<Turn<T>, Abort> {
        let Some(protocol) = &mut self.protocol else { return Err(OVER) };
        match protocol.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => {}
            Poll::Ready(result) => {
                self.protocol = None;
                self.result = Some(result?);
                if self.shared().unread() {
                    return Err(self.refuse());
                }
            }
        }
        let waits = self.protocol.is_some() && self.shared().said.is_empty();
        Ok(if waits { Turn::Listen } else { self.tell() })
    }

    /// The next frame of what the protocol has said.
    fn tell(&mut self) -> Turn<T> {
        let frame = self.shared().frame();
        self.telling = frame.as_ref().is_some_and(|frame| frame.starts_with(&[MORE]));
        match (self.telling, self.result.take()) {
            (false, Some(result)) => Turn::Done(result, frame),
            (_, result) => {
                self.result = result;
                frame.map_or(Turn::Listen, Turn::Say)
            }
        }
    }

    /// Ends the protocol as one that heard nonsense, so that its set-up ends as well.
    fn refuse(&mut self) -> Abort {
        self.result = None;
        self.shared().irregular = true;
        let ended = self.protocol.take().map(|mut protocol| {
            match protocol.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Err(abort)) => abort,
                Poll::Ready(Ok(_)) | Poll::Pending => Abort::Malformed,
            }
        });
        ended.unwrap_or(Abort::Malformed)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }
}

/// Every operation leaves the state whole.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far the peer is with its message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Peer {
    /// It has not had the word yet.
    Silent,
    /// Its message goes on.
    Speaking,
    /// Its message is all here.
    Spoken,
}

/// The bytes between the protocol and the frames.
struct Shared {
    /// Of the peer's message, and how many of them the protocol has read.
    heard: Zeroizing<Vec<u8>>,
    read: usize,
    peer: Peer,
    /// A frame had no place: the protocol is to end.
    irregular: bool,
    /// The message that is being said, empty once all of it is in frames, and how many of its bytes are.
    said: Zeroizing<Vec<u8>>,
    told: usize,
    rng: HedgedRng,
}

impl Shared {
    fn new(rng: &mut dyn CryptoRng) -> Shared {
        Shared {
            heard: Zeroizing::default(),
            read: 0,
            peer: Peer::Silent,
            irregular: false,
            said: Zeroizing::default(),
            told: 0,
            rng: HedgedRng::new("dialogue", &[], rng),
        }
    }

    fn refresh(&mut self, rng: &mut dyn CryptoRng) {
        let mut carried = Zeroizing::new([0u8; 32]);
        self.rng.fill_bytes(carried.as_mut());
        self.rng = HedgedRng::new("dialogue", &[carried.as_ref()], rng);
    }

    fn rest(&self) -> &[u8] {
        self.heard.get(self.read..).unwrap_or(&[])
    }

    fn unread(&self) -> bool {
        self.peer == Peer::Speaking || !self.rest().is_empty()
    }

    fn hear(&mut self, part: &[u8], peer: Peer) {
        let mut heard = Zeroizing::new(Vec::with_capacity(self.rest().len() + part.len()));
        heard.extend_from_slice(self.rest());
        heard.extend_from_slice(part);
        (self.heard, self.read, self.peer) = (heard, 0, peer);
    }

    /// The next frame; `None` if nothing is left to say.
    fn frame(&mut self) -> Option<Vec<u8>> {
        let rest = self.said.get(self.told..).filter(|rest| !rest.is_empty())?;
        let count = rest.len().min(FRAME_BYTES - 1);
        let kind = if count == rest.len() { LAST } else { MORE };
        let mut frame = Vec::with_capacity(1 + count);
        frame.push(kind);
        frame.extend_from_slice(rest.get(..count)?);
        match kind {
            LAST => (self.said, self.told) = (Zeroizing::default(), 0),
            _ => self.told += count,
        }
        Some(frame)
    }
}

/// The line of a protocol that runs as a [`Dialogue`].
pub struct DialogueLine(Arc<Mutex<Shared>>);

impl Line for DialogueLine {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut shared = lock(&self.0);
        // The peer has said more than belongs to its message.
        if shared.unread() || shared.irregular {
            return Err(Irregular.into());
        }
        shared.said.extend_from_slice(bytes);
        Ok(())
    }

    /// A message ends where the party needs the peer.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn poll_receive(&mut self, bytes: &mut [u8]) -> Poll<io::Result<()>> {
        let mut shared = lock(&self.0);
        if shared.irregular {
            return Poll::Ready(Err(Irregular.into()));
        }
        if let Some(next) = shared.rest().get(..bytes.len()) {
            bytes.copy_from_slice(next);
            shared.read += bytes.len();
            return Poll::Ready(Ok(()));
        }
        // The peer waits for this party, which has nothing to say before it has heard more.
        if shared.peer == Peer::Spoken && shared.said.is_empty() {
            return Poll::Ready(Err(Irregular.into()));
        }
        Poll::Pending
    }
}

/// The randomness of a protocol that runs as a [`Dialogue`].
pub struct DialogueRng(Arc<Mutex<Shared>>);

impl TryRng for DialogueRng {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        lock(&self.0).rng.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        lock(&self.0).rng.try_next_u64()
    }

    fn try_fill_bytes(&mut self, output: &mut [u8]) -> Result<(), Self::Error> {
        lock(&self.0).rng.try_fill_bytes(output)
    }
}

impl TryCryptoRng for DialogueRng {}

#[cfg(test)]
pub(crate) mod talk;
#[cfg(test)]
mod tests;
