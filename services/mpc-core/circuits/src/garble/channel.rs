//! Bytes between the two parties.

use std::io::{self, BufReader, BufWriter, Read, Write};

/// A connection that can be read and written: a TLS stream, a socket, or the end of a pipe.
pub trait Transport: Read + Write {}

impl<T: Read + Write> Transport for T {}

const BUFFER: usize = 1 << 16;
/// Blocks that are turned into bytes together.
const BLOCKS: usize = 256;

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

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sent += bytes.len() as u64;
        self.writer.write_all(bytes)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Sends and flushes.
    pub(crate) fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send(bytes)?;
        self.flush()
    }

    pub(crate) fn receive(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.reader.read_exact(bytes)
    }

    pub(crate) fn block<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0u8; N];
        self.receive(&mut bytes)?;
        Ok(bytes)
    }

    /// Sends blocks, the lowest byte first.
    pub(crate) fn send_blocks(&mut self, blocks: &[u128]) -> io::Result<()> {
        for chunk in blocks.chunks(BLOCKS) {
            let mut bytes = [0u8; 16 * BLOCKS];
            for (place, block) in bytes.as_chunks_mut::<16>().0.iter_mut().zip(chunk) {
                *place = block.to_le_bytes();
            }
            self.send(bytes.get(..16 * chunk.len()).unwrap_or(&[]))?;
        }
        Ok(())
    }

    pub(crate) fn receive_blocks(&mut self, blocks: &mut [u128]) -> io::Result<()> {
        for chunk in blocks.chunks_mut(BLOCKS) {
            let mut bytes = [0u8; 16 * BLOCKS];
            self.receive(bytes.get_mut(..16 * chunk.len()).unwrap_or(&mut []))?;
            for (block, place) in chunk.iter_mut().zip(bytes.as_chunks::<16>().0) {
                *block = u128::from_le_bytes(*place);
            }
        }
        Ok(())
    }
}
