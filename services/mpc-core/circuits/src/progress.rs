//! Progress of a long computation of this process alone: a line now and then on the standard error stream.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use circuits::circuit::{Gate, Lit, Sink};

use crate::output::say;

/// The first line comes after this long, so that short runs print none.
pub const FIRST: Duration = Duration::from_secs(2);
/// And then one in so long.
pub const EVERY: Duration = Duration::from_secs(5);

/// Does the work, and says meanwhile how far it is.
pub fn during<T>(state: impl Fn() -> String + Sync, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let line = || format!("{} s: {}", started.elapsed().as_secs(), state());
    at([FIRST, EVERY], || say(&line()), work)
}

/// Does the work, and calls `tell` after the first of two times, and then each time the other has passed.
fn at<T>([first, every]: [Duration; 2], tell: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        // Dropped when the work is over, or has panicked, so that the other thread ends.
        let (_end, over) = channel::<()>();
        let watch = move || {
            let (mut tell, mut wait) = (tell, first);
            while over.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                tell();
                wait = every;
            }
        };
        // Without a thread the work is done without lines.
        let _watching = std::thread::Builder::new().spawn_scoped(scope, watch);
        work()
    })
}

/// Counts of gates that another thread can read.
#[derive(Debug, Default)]
pub struct Gates {
    ands: AtomicU64,
    xors: AtomicU64,
}

impl Gates {
    /// As text.
    pub fn line(&self) -> String {
        let [ands, xors] = [&self.ands, &self.xors].map(|count| count.load(Ordering::Relaxed));
        format!("{ands} AND gates, {xors} XOR gates")
    }
}

/// Gates that are counted on their way to another receiver.
pub struct Counted<'a, S> {
    pub sink: &'a mut S,
    pub gates: &'a Gates,
}

impl<S: Sink> Sink for Counted<'_, S> {
    fn input(&mut self, party: usize, first: u32, bits: u32) -> Result<(), String> {
        self.sink.input(party, first, bits)
    }

    fn gates(&mut self, gates: &[Gate]) -> Result<(), String> {
        let ands = gates.iter().filter(|gate| gate.is_and()).count();
        self.gates.ands.fetch_add(ands as u64, Ordering::Relaxed);
        self.gates.xors.fetch_add((gates.len() - ands) as u64, Ordering::Relaxed);
        self.sink.gates(gates)
    }

    fn outputs(&mut self, outputs: &[Lit]) -> Result<(), String> {
        self.sink.outputs(outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_until_the_work_is_over() {
        let (told, heard) = channel();
        let tell = move || told.send(()).unwrap_or(());
        let result = at([Duration::ZERO; 2], tell, || {
            (0..3).filter(|_| heard.recv_timeout(Duration::from_secs(60)).is_ok()).count()
        });
        assert_eq!(result, 3);
        // Nobody tells any more.
        while heard.try_recv().is_ok() {}
        assert!(heard.recv().is_err());
    }

    #[test]
    fn work_that_is_over_at_once_is_not_waited_for() {
        let started = Instant::now();
        let hour = Duration::from_secs(3600);
        assert_eq!(at([hour; 2], || panic!("nothing to tell"), || 7), 7);
        assert!(started.elapsed() < hour);
    }
}
