//! The side that waits for the peer: strangers may come before it, and keep nobody waiting.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustls::{ServerConfig, ServerConnection};

use super::failure::Failure;
use super::handshake::{Handshake, Progress, wait_for};
use super::secured::{Secured, tls};

/// Handshakes at once, at most. The one that has taken longest gives way to the next caller.
const AT_ONCE: usize = 32;

/// Callers whose handshakes are under way, by the time at which they came.
struct Callers<'a> {
    under_way: VecDeque<(SocketAddr, Handshake)>,
    /// The last that was refused, as an error shows it.
    refused: String,
    say: &'a dyn Fn(&str),
}

impl Callers<'_> {
    fn add(&mut self, from: SocketAddr, handshake: io::Result<Handshake>) {
        match handshake {
            Ok(handshake) => self.under_way.push_back((from, handshake)),
            Err(e) => self.refuse(from, e),
        }
        if self.under_way.len() > AT_ONCE
            && let Some((from, _)) = self.under_way.pop_front()
        {
            self.refuse_since(from, "it was silent in the handshake while others came");
        }
    }

    /// Goes on with each. The first that has ended well is the peer.
    fn go_on(&mut self) -> Option<Secured> {
        for (from, handshake) in std::mem::take(&mut self.under_way) {
            match handshake.go_on() {
                Ok(Progress::Open(handshake)) => self.under_way.push_back((from, handshake)),
                Ok(Progress::Done(secured)) => return Some(secured),
                Err(e) => self.refuse(from, e),
            }
        }
        None
    }

    fn refuse(&mut self, from: SocketAddr, e: io::Error) {
        match Failure::from(e) {
            Failure::Gone(_) => self.refuse_since(
                from,
                "it left or fell silent in the handshake, perhaps since it refuses this party's certificate",
            ),
            other => self.refuse_since(from, other.text()),
        }
    }

    fn refuse_since(&mut self, from: SocketAddr, text: &str) {
        (self.say)(&format!("refused {from}: {text}"));
        self.refused = format!("; last came {from}, refused: {text}");
    }
}

/// Waits for the peer until a time; later it may be silent for as long as `wait`.
pub fn listen(
    config: &Arc<ServerConfig>,
    place: &str,
    wait: Duration,
    until: Instant,
    say: &dyn Fn(&str),
) -> Result<Secured, Failure> {
    let failed = |e: io::Error| Failure::Own(format!("cannot listen on {place}: {e}"));
    let listener = TcpListener::bind(place).map_err(failed)?;
    // A caller that hangs up before it is accepted must not make this wait.
    listener.set_nonblocking(true).map_err(failed)?;
    say(&format!("listening on {}", listener.local_addr().map_err(failed)?));
    let mut callers = Callers { under_way: VecDeque::new(), refused: String::new(), say };
    loop {
        // A caller that came in time may end its handshake.
        let accepts = Instant::now() < until;
        let ends = callers.under_way.iter().map(|(_, handshake)| handshake.until);
        let Some(next) = ends.chain(accepts.then_some(until)).min() else {
            return Err(Failure::Gone(format!(
                "no peer came in {} s: look at its side, or give a longer --wait{}",
                wait.as_secs(),
                callers.refused
            )));
        };
        let mut sockets: Vec<_> = callers.under_way.iter().map(|(_, handshake)| handshake.next()).collect();
        if accepts {
            sockets.push(PollFd::new(&listener, PollFlags::IN));
        }
        wait_for(&mut sockets, next).map_err(failed)?;
        if let Some(peer) = callers.go_on() {
            return Ok(peer);
        }
        if !accepts {
            continue;
        }
        match listener.accept() {
            Ok((stream, from)) => {
                let server = ServerConnection::new(config.clone()).map_err(tls);
                callers.add(from, server.and_then(|server| Handshake::new(server.into(), stream, wait)));
            }
            Err(e) if exhausted(&e) => return Err(failed(e)),
            // Nobody is there, the caller hung up, or the network failed it.
            Err(_) => {}
        }
    }
}

/// Whether this machine has no room for another connection, which waiting does not mend.
fn exhausted(e: &io::Error) -> bool {
    matches!(Errno::from_io_error(e), Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}
