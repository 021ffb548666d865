//! A connection whose two ends have proved their certificates.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustls::Connection;

use super::failure::Failure;
use super::meter::Meter;

/// The protocol above TLS, so that another service's peer is told apart before any of its bytes are read.
pub const PROTOCOL: &[u8] = b"coterie-circuit/1";
const LABEL: &[u8] = b"EXPORTER-coterie-circuit-run/1";

/// A connection to the peer that both certificates name.
pub struct Secured {
    connection: Connection,
    stream: TcpStream,
    began: Instant,
    pub meter: Meter,
    /// Takes the lines of progress.
    pub say: fn(&str),
}

impl Secured {
    /// Takes over from a handshake that began at this time and has ended. From here on the peer may be silent for so
    /// long.
    pub fn new(
        connection: Connection,
        stream: TcpStream,
        began: Instant,
        silence: Duration,
    ) -> io::Result<Secured> {
        // The library takes a peer that names no protocol at all: another service with this certificate would be such a
        // peer.
        if connection.alpn_protocol() != Some(PROTOCOL) {
            return Err(tls(rustls::Error::NoApplicationProtocol));
        }
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(silence))?;
        stream.set_write_timeout(Some(silence))?;
        Ok(Secured { connection, stream, began, meter: Meter::new(), say: |_| {} })
    }

    /// Bytes that only the two ends of this connection know (RFC 8446, section 7.5).
    pub fn binding(&self, context: &[u8]) -> Result<[u8; 32], Failure> {
        let exported = match &self.connection {
            Connection::Client(client) => client.export_keying_material([0; 32], LABEL, Some(context)),
            Connection::Server(server) => server.export_keying_material([0; 32], LABEL, Some(context)),
        };
        exported.map_err(|e| tls(e).into())
    }

    /// Whether this party waited for the other.
    pub fn listened(&self) -> bool {
        matches!(self.connection, Connection::Server(_))
    }

    /// Time since the peers met.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Says that nothing more comes.
    pub fn close(&mut self) {
        self.connection.send_close_notify();
        // The result is there, whether or not the peer still hears this.
        let _ = self.flush();
    }

    fn progress(&mut self) {
        if let Some(line) = self.meter.due(self.began.elapsed()) {
            (self.say)(&line);
        }
    }
}

impl Read for Secured {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.connection {
            Connection::Client(client) => rustls::Stream::new(client, &mut self.stream).read(bytes),
            Connection::Server(server) => rustls::Stream::new(server, &mut self.stream).read(bytes),
        }?;
        self.meter.received += count as u64;
        self.progress();
        Ok(count)
    }
}

impl Write for Secured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = match &mut self.connection {
            Connection::Client(client) => rustls::Stream::new(client, &mut self.stream).write(bytes),
            Connection::Server(server) => rustls::Stream::new(server, &mut self.stream).write(bytes),
        }?;
        self.meter.sent += count as u64;
        self.progress();
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.connection {
            Connection::Client(client) => rustls::Stream::new(client, &mut self.stream).flush(),
            Connection::Server(server) => rustls::Stream::new(server, &mut self.stream).flush(),
        }
    }
}

/// An error of TLS as one of the connection.
pub fn tls(e: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, e)
}
