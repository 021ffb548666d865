//! The way to the peer, as the protocols see it: bytes in order, for which a party may have to wait.
//!
//! A protocol is a future that waits for its peer's bytes and for nothing else. On a [`Line`] that blocks it is over at
//! once ([`now`]); in a [`crate::dialogue::Dialogue`] it stops where the peer's next message is missing, so that no
//! thread waits.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use zeroize::Zeroizing;

/// Blocks that are turned into bytes together.
const BLOCKS: usize = 256;

/// Both directions to the peer.
pub trait Line: Sized {
    /// Sends bytes, with those of later calls up to the next flush.
    ///
    /// # Errors
    /// The connection broke.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Ends a message: the peer gets all that was sent.
    ///
    /// # Errors
    /// The connection broke.
    fn flush(&mut self) -> io::Result<()>;

    /// Fills `bytes` with the peer's next ones; takes none while there are not as many.
    ///
    /// # Errors
    /// The connection broke.
    fn poll_receive(&mut self, bytes: &mut [u8]) -> Poll<io::Result<()>>;

    /// Sends and flushes.
    ///
    /// # Errors
    /// The connection broke.
    fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send(bytes)?;
        self.flush()
    }

    /// Sends blocks, the lowest byte first.
    ///
    /// # Errors
    /// The connection broke.
    fn send_blocks(&mut self, blocks: &[u128]) -> io::Result<()> {
        for chunk in blocks.chunks(BLOCKS) {
            let mut bytes = [0u8; 16 * BLOCKS];
            for (place, block) in bytes.as_chunks_mut::<16>().0.iter_mut().zip(chunk) {
                *place = block.to_le_bytes();
            }
            self.send(bytes.get(..16 * chunk.len()).unwrap_or(&[]))?;
        }
        Ok(())
    }

    /// Receives as many bytes as fit.
    fn receive<'a>(&'a mut self, bytes: &'a mut [u8]) -> Receive<'a, Self> {
        Receive { line: self, bytes }
    }

    /// Receives a block of a fixed length.
    fn block<const N: usize>(&mut self) -> ReceiveBlock<'_, Self, N> {
        ReceiveBlock { line: self }
    }

    /// Receives blocks that [`Line::send_blocks`] sent.
    fn receive_blocks<'a>(&'a mut self, blocks: &'a mut [u128]) -> ReceiveBlocks<'a, Self> {
        ReceiveBlocks { line: self, blocks, filled: 0 }
    }
}

/// The error of a line whose peer sent a message of another length than the protocol's: a deviation, where every other
/// error is a connection that broke.
#[derive(Debug)]
pub struct Irregular;

impl fmt::Display for Irregular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message has another length than belongs there")
    }
}

impl std::error::Error for Irregular {}

impl From<Irregular> for io::Error {
    fn from(error: Irregular) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// See [`Line::receive`].
#[must_use = "nothing is received before it is awaited"]
pub struct Receive<'a, L> {
    line: &'a mut L,
    bytes: &'a mut [u8],
}

impl<L: Line> Future for Receive<'_, L> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Receive { line, bytes } = self.get_mut();
        line.poll_receive(bytes)
    }
}

/// See [`Line::block`].
#[must_use = "nothing is received before it is awaited"]
pub struct ReceiveBlock<'a, L, const N: usize> {
    line: &'a mut L,
}

impl<L: Line, const N: usize> Future for ReceiveBlock<'_, L, N> {
    type Output = io::Result<[u8; N]>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<[u8; N]>> {
        let mut bytes = [0u8; N];
        let filled = self.get_mut().line.poll_receive(&mut bytes);
        filled.map(|result| result.map(|()| bytes))
    }
}

/// See [`Line::receive_blocks`].
#[must_use = "nothing is received before it is awaited"]
pub struct ReceiveBlocks<'a, L> {
    line: &'a mut L,
    blocks: &'a mut [u128],
    filled: usize,
}

impl<L: Line> Future for ReceiveBlocks<'_, L> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ReceiveBlocks { line, blocks, filled } = self.get_mut();
        let mut bytes = Zeroizing::new([0u8; 16 * BLOCKS]);
        while let Some(rest) = blocks.get_mut(*filled..).filter(|rest| !rest.is_empty()) {
            let count = rest.len().min(BLOCKS);
            let part = bytes.get_mut(..16 * count).unwrap_or(&mut []);
            match line.poll_receive(part) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Pending => return Poll::Pending,
            }
            for (block, place) in rest.iter_mut().zip(part.as_chunks::<16>().0) {
                *block = u128::from_le_bytes(*place);
            }
            *filled += count;
        }
        Poll::Ready(Ok(()))
    }
}

/// The result of a protocol on a line that blocks until it has what is asked for.
pub fn now<T>(protocol: impl Future<Output = T>) -> T {
    let mut protocol = pin!(protocol);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = protocol.as_mut().poll(&mut context) {
            return result;
        }
    }
}
