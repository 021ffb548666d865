//! Bytes between the two parties.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::task::Poll;

use crate::line::{Line, now};

/// A connection that can be read and written: a TLS stream, a socket, or the end of a pipe.
pub trait Transport: Read + Write {}

impl<T: Read + Write> Transport for T {}

const BUFFER: usize = 1 << 16;

/// A buffered connection that counts what it sends.
pub struct Channel<R: Read, W: Write> {
    reader: BufReader<R>,
    writer: BufWriter<W>,
    sent: u64,
}

impl<R: Read, W: Write> Channel<R, W> {
    /// A channel over both directions of a connection.
    pub fn new(reader: R, writer: W) -> Self {
        Channel {
            reader: BufReader::with_capacity(BUFFER, reader),
            writer: BufWriter::with_capacity(BUFFER, writer),
            sent: 0,
        }
    }

    /// Sends what is buffered and gives both ends back, so that the caller can close them.
    ///
    /// # Errors
    /// The connection broke.
    pub fn close(self) -> io::Result<(R, W)> {
        let writer = self.writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok((self.reader.into_inner(), writer))
    }

    /// Bytes sent so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn receive(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.reader.read_exact(bytes)
    }

    pub(crate) fn block<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0u8; N];
        self.receive(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn receive_blocks(&mut self, blocks: &mut [u128]) -> io::Result<()> {
        now(Line::receive_blocks(self, blocks))
    }
}

/// Blocks until the peer has sent what is asked for.
impl<R: Read, W: Write> Line for Channel<R, W> {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sent += bytes.len() as u64;
        self.writer.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    fn poll_receive(&mut self, bytes: &mut [u8]) -> Poll<io::Result<()>> {
        Poll::Ready(self.reader.read_exact(bytes))
    }
}
