//! A handshake on a socket that nothing waits for, so that several are under way at once.

use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustls::Connection;

use super::secured::Secured;

/// A handshake takes so long at most, whoever it is with.
const LONGEST: Duration = Duration::from_secs(10);

/// A connection whose handshake is under way.
pub struct Handshake {
    connection: Connection,
    stream: TcpStream,
    began: Instant,
    silence: Duration,
    /// It fails at this time, however slowly the peer sends.
    pub until: Instant,
}

/// How far a handshake has come.
pub enum Progress {
    /// The peer's next message is not here yet.
    Open(Handshake),
    Done(Secured),
}

impl Handshake {
    /// A new one. After it the peer may be silent for so long.
    pub fn new(connection: Connection, stream: TcpStream, silence: Duration) -> io::Result<Handshake> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let began = Instant::now();
        Ok(Handshake { connection, stream, began, silence, until: began + LONGEST.min(silence) })
    }

    /// Goes on as far as the peer's messages reach.
    pub fn go_on(mut self) -> io::Result<Progress> {
        while self.connection.is_handshaking() || self.connection.wants_write() {
            if Instant::now() >= self.until {
                return Err(ErrorKind::TimedOut.into());
            }
            match self.connection.complete_io(&mut self.stream) {
                Ok((0, 0)) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Progress::Open(self)),
                Err(e) => return Err(e),
            }
        }
        Secured::new(self.connection, self.stream, self.began, self.silence).map(Progress::Done)
    }

    /// Goes on to the end, and waits for the peer's messages.
    pub fn finish(mut self) -> io::Result<Secured> {
        loop {
            match self.go_on()? {
                Progress::Open(open) => self = open,
                Progress::Done(secured) => return Ok(secured),
            }
            wait_for(&mut [self.next()], self.until)?;
        }
    }

    /// The event that it waits for.
    pub fn next(&self) -> PollFd<'_> {
        let writes = if self.connection.wants_write() { PollFlags::OUT } else { PollFlags::empty() };
        PollFd::new(&self.stream, PollFlags::IN | writes)
    }
}

/// Waits for what happens first on these sockets, up to a time.
pub fn wait_for(sockets: &mut [PollFd<'_>], until: Instant) -> io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).map_err(io::Error::other)?;
    match poll(sockets, Some(&left)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
