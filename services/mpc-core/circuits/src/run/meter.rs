//! Progress of a long run: a line now and then on the standard error stream.

use std::time::Duration;

use crate::progress::{EVERY, FIRST};

/// Bytes of an AND gate's table in half gates.
const TABLE: u64 = 32;

/// The work that the bytes of a run stand for.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Nothing yet: the parties agree on what to do.
    Greeting,
    /// Tables of a circuit of unknown size, gate by gate.
    Streamed,
    /// About so many bytes both ways.
    Expected(f64),
}

/// Counts bytes both ways.
#[derive(Debug)]
pub struct Meter {
    pub work: Work,
    pub sent: u64,
    pub received: u64,
    next: Duration,
}

impl Meter {
    pub fn new() -> Meter {
        Meter { work: Work::Greeting, sent: 0, received: 0, next: FIRST }
    }

    /// The line to print at this time since the start, if one is due.
    pub fn due(&mut self, elapsed: Duration) -> Option<String> {
        if elapsed < self.next {
            return None;
        }
        self.next = elapsed + EVERY;
        let bytes = self.sent + self.received;
        let seconds = elapsed.as_secs();
        match self.work {
            Work::Greeting => None,
            Work::Streamed => Some(format!("{seconds} s: {} AND gates, {}", bytes / TABLE, size(bytes))),
            Work::Expected(total) => {
                // The estimate may be a little low.
                let percent = (100.0 * bytes as f64 / total.max(1.0)).min(99.0);
                Some(format!("{seconds} s: {percent:.0} % of about {:.1} MB", total / 1e6))
            }
        }
    }
}

/// Bytes as text.
pub fn size(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_after_two_seconds_and_then_every_five() {
        let mut meter = Meter { work: Work::Streamed, sent: 64_000_000, received: 0, ..Meter::new() };
        let due: Vec<u64> =
            (0..20).filter(|second| meter.due(Duration::from_secs(*second)).is_some()).collect();
        assert_eq!(due, [2, 7, 12, 17]);
        assert_eq!(meter.due(Duration::from_secs(22)), Some("22 s: 2000000 AND gates, 64.0 MB".into()));
    }

    #[test]
    fn a_share_of_what_is_expected_stays_under_all() {
        let mut meter =
            Meter { work: Work::Expected(8e6), sent: 3_000_000, received: 1_000_000, ..Meter::new() };
        assert_eq!(meter.due(Duration::from_secs(3)), Some("3 s: 50 % of about 8.0 MB".into()));
        meter.received = 9_000_000;
        assert_eq!(meter.due(Duration::from_secs(9)), Some("9 s: 99 % of about 8.0 MB".into()));
    }
}
