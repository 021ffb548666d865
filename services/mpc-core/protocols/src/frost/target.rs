//! Which key signs: the joint key, a child of it, or the output key that Taproot makes of one.

use engine::wire::{Malformed, Reader, Writer};

use crate::ecdsa::DerivationPath;

/// Bytes of the root of a Taproot script tree.
pub const MERKLE_ROOT_BYTES: usize = 32;

/// How Taproot (BIP-341) tweaks a key into an output key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taproot {
    /// No script path can spend (BIP-86): the tweak hashes the internal key alone.
    KeyOnly,
    /// The tweak hashes the internal key and this root.
    MerkleRoot([u8; MERKLE_ROOT_BYTES]),
}

impl Taproot {
    /// `bytes` is empty for [`Taproot::KeyOnly`], or a root. `None` for any other length.
    pub fn from_root(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::KeyOnly);
        }
        bytes.try_into().ok().map(Self::MerkleRoot)
    }

    /// The root, if there is one.
    pub fn root(&self) -> Option<&[u8]> {
        match self {
            Self::KeyOnly => None,
            Self::MerkleRoot(root) => Some(root),
        }
    }
}

/// The key that signs. By default the joint key as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Target {
    /// BIP-32 child numbers from the joint key down.
    pub path: DerivationPath,
    /// The tweak of that child.
    pub taproot: Option<Taproot>,
}

impl Target {
    /// The path, then 0, 1 or 2 for no tweak, one without and one with a root, then the root.
    pub fn encode(&self, writer: &mut Writer) {
        self.path.encode(writer);
        match &self.taproot {
            None => writer.u8(0),
            Some(Taproot::KeyOnly) => writer.u8(1),
            Some(Taproot::MerkleRoot(root)) => {
                writer.u8(2);
                writer.bytes(root);
            }
        }
    }

    /// Reads what [`Target::encode`] wrote.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let path = DerivationPath::decode(reader)?;
        let taproot = match reader.u8()? {
            0 => None,
            1 => Some(Taproot::KeyOnly),
            2 => Some(Taproot::MerkleRoot(*reader.array()?)),
            _ => return Err(Malformed),
        };
        Ok(Self { path, taproot })
    }

    /// The encoding alone.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.encode(&mut writer);
        writer.finish()
    }
}
