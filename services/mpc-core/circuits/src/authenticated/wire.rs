//! Two parties in one test, over a connection whose messages may change on their way.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use primitives::ot::PairState;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::{Pair, Role};
use crate::garble::Channel;
use crate::line::now;

/// Changes what a party sends, given the number of the message, the place of these bytes in it, and the bytes. Without
/// bytes left, the connection ends there.
pub type Edit = Box<dyn FnMut(usize, usize, &mut Vec<u8>) + Send>;

/// Changes nothing.
pub fn honest() -> Edit {
    Box::new(|_, _, _| {})
}

/// Flips bits of one byte of one message.
pub fn flip(message: usize, place: usize, bits: u8) -> Edit {
    Box::new(move |number, start, bytes| {
        if number == message
            && let Some(byte) = place.checked_sub(start).and_then(|at| bytes.get_mut(at))
        {
            *byte ^= bits;
        }
    })
}

/// Ends the connection instead of one message.
pub fn cut(message: usize) -> Edit {
    Box::new(move |number, _, bytes| {
        if number == message {
            bytes.clear();
        }
    })
}

/// Waits before one message. Gives, beside the edit, what tells that it waits, and what lets it go on.
pub fn hold(message: usize) -> (Edit, Receiver<()>, Sender<()>) {
    let ((tell, reached), (go_on, wait)) = (channel(), channel());
    let edit: Edit = Box::new(move |number, start, _| {
        if number == message && start == 0 {
            tell.send(()).unwrap();
            wait.recv().unwrap();
        }
    });
    (edit, reached, go_on)
}

/// The sending half of a connection.
pub struct Wire<'a> {
    stream: UnixStream,
    /// Bytes of each message that was sent.
    lengths: Vec<usize>,
    written: usize,
    sent: &'a AtomicUsize,
    edit: Edit,
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut copy = bytes.to_vec();
        (self.edit)(self.lengths.len(), self.written, &mut copy);
        if copy.is_empty() {
            self.stream.shutdown(std::net::Shutdown::Both)?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.stream.write_all(&copy)?;
        self.written += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.written > 0 {
            self.lengths.push(std::mem::take(&mut self.written));
            self.sent.store(self.lengths.len(), Ordering::SeqCst);
        }
        Ok(())
    }
}

/// One party's end of the connection.
pub type End<'a> = Channel<UnixStream, Wire<'a>>;

/// The results of both sides, and how many messages each sent.
pub struct Ran<T> {
    pub results: [T; 2],
    pub sent: [usize; 2],
}

/// Runs the garbler's side and the evaluator's.
pub fn both<A: Send, T: Send>(
    edits: [Edit; 2],
    given: [A; 2],
    side: impl AsyncFn(usize, A, &mut End<'_>) -> T + Sync,
) -> Ran<T> {
    let (left, right) = UnixStream::pair().unwrap();
    let sent = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let run = |index: usize, stream: UnixStream, edit: Edit, given: A| {
        let wire = Wire {
            stream: stream.try_clone().unwrap(),
            lengths: vec![],
            written: 0,
            sent: &sent[index],
            edit,
        };
        let mut channel = Channel::new(stream, wire);
        let result = now(side(index, given, &mut channel));
        // Ends the connection, so that the other side does not wait.
        let _ = channel.close();
        result
    };
    let ([first, second], [own, other]) = (edits, given);
    let results = std::thread::scope(|scope| {
        let evaluator = scope.spawn(|| run(1, right, second, other));
        [run(0, left, first, own), evaluator.join().unwrap()]
    });
    Ran { results, sent: sent.each_ref().map(|count| count.load(Ordering::SeqCst)) }
}

/// A generator that is the same in each run.
pub fn seeded(seed: u64, index: usize) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(2 * seed + index as u64)
}

/// A set-up of both.
pub fn set_up(seed: u64) -> [Pair; 2] {
    both([honest(), honest()], [Role::Garbler, Role::Evaluator], async |index, role, channel| {
        Pair::set_up(role, &[7; 32], channel, &mut seeded(seed, index)).await.unwrap()
    })
    .results
}

/// The same set-up again, for a run beside others that begin alike.
pub fn again(pairs: &[Pair; 2]) -> [Pair; 2] {
    pairs.each_ref().map(|pair| Pair {
        role: pair.role,
        state: PairState::from_bytes(pair.state.to_bytes().as_slice().try_into().unwrap()),
        identity: pair.identity,
        ended: AtomicBool::new(pair.ended()),
    })
}

/// How much of what takes long is run: all of it only by whoever asks for it.
pub fn percent() -> usize {
    std::env::var("COTERIE_RUNS_PERCENT").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}
