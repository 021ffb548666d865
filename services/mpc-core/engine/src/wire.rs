//! The byte encoding of everything that parties exchange: big-endian, fixed order, every length bounded.

use primitives::declassify::published;
use zeroize::Zeroize;

/// The bytes are not an encoding of what was expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// Builds an encoding. The bytes that it held are wiped, also when it grows, because bodies may carry secrets.
#[derive(Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Room for `bytes` without growing.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    /// Two bytes, big-endian.
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    /// Four bytes, big-endian.
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Bytes whose number the reader knows.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let needed = self.0.len() + bytes.len();
        if needed > self.0.capacity() {
            let mut larger = Vec::with_capacity(needed.max(2 * self.0.capacity()));
            larger.extend_from_slice(&self.0);
            self.0.zeroize();
            self.0 = larger;
        }
        self.0.extend_from_slice(bytes);
    }

    /// A four-byte length, then the bytes. Nothing this core builds comes near four gigabytes.
    pub fn sized(&mut self, bytes: &[u8]) {
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.bytes(bytes);
    }

    /// The encoding.
    pub fn finish(mut self) -> Vec<u8> {
        core::mem::take(&mut self.0)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Takes an encoding apart without ever reading past its end. Numbers in it are public: counts, lengths, parties.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = tail;
        Ok(head)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Malformed> {
        let (head, tail) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = tail;
        Ok(head)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| published(*byte))
    }

    /// Two bytes, big-endian.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(|bytes| published(u16::from_be_bytes(*bytes)))
    }

    /// Four bytes, big-endian.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(|bytes| published(u32::from_be_bytes(*bytes)))
    }

    /// A four-byte length of at most `limit`, then that many bytes.
    pub fn sized(&mut self, limit: usize) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.u32()?).map_err(|_| Malformed)?;
        if length > limit {
            return Err(Malformed);
        }
        self.bytes(length)
    }

    /// Refuses bytes left over.
    pub fn finish(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_returns_what_writer_wrote() {
        let mut writer = Writer::with_capacity(1);
        writer.u8(7);
        writer.u16(0x0102);
        writer.u32(0x0304_0506);
        writer.sized(b"abc");
        let bytes = writer.finish();
        assert_eq!(bytes, [7, 1, 2, 3, 4, 5, 6, 0, 0, 0, 3, b'a', b'b', b'c']);
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.u8(), Ok(7));
        assert_eq!(reader.u16(), Ok(0x0102));
        assert_eq!(reader.u32(), Ok(0x0304_0506));
        assert_eq!(reader.sized(3), Ok(&b"abc"[..]));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn reader_refuses_short_long_and_left_over() {
        assert_eq!(Reader::new(&[1]).u16(), Err(Malformed));
        assert_eq!(Reader::new(&[0, 0, 0, 2, 1, 1]).sized(1), Err(Malformed));
        assert_eq!(Reader::new(&[255, 255, 255, 255]).sized(usize::MAX), Err(Malformed));
        assert_eq!(Reader::new(&[1]).finish(), Err(Malformed));
    }
}
