//! The description of the presignatures that a session makes.

use engine::wire::{Malformed, Reader, Writer};

use crate::bip32::DerivationPath;

/// Most presignatures that one session makes. Their round 2 is 165 KB to each peer; services carry envelopes of up to
/// 256 KB.
pub const MAX_BATCH: u8 = 4;

/// The description of the presignatures that a session makes. Its encoding is the payload of the session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PresignPayload {
    /// The child key that the presignatures are for.
    pub path: DerivationPath,
    /// How many: 1 to [`MAX_BATCH`].
    pub count: u8,
}

impl PresignPayload {
    /// The path, then the count.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.path.encode(&mut writer);
        writer.u8(self.count);
        writer.finish()
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let path = DerivationPath::decode(&mut reader)?;
        let count = reader.u8()?;
        reader.finish()?;
        if (1..=MAX_BATCH).contains(&count) { Ok(Self { path, count }) } else { Err(Malformed) }
    }
}
