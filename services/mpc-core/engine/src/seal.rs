//! Sealed blobs: the only form in which a secret leaves the core.
//!
//! ```text
//! offset  bytes
//!      0  1      format version, 1
//!      1  1      kind: 1 key share, 2 identity, 3 other, 4 applicant, 5 candidate and 6 member of a group
//!      2  2      length of the public part
//!      4  p      public part, readable without the key, bound to the secret part
//!      .  12     nonce
//!      .  n      AES-256-GCM-SIV ciphertext and 16-byte tag
//! ```
//! Associated data is everything before the nonce and a label that is not stored. AES-256-GCM-SIV (RFC 8452), because a
//! repeated random nonce, as after the clone of a virtual machine, reveals no more than that two plaintexts are equal.

use aes_gcm_siv::aead::{Aead, KeyInit, Payload};
use aes_gcm_siv::{Aes256GcmSiv, Nonce};
use primitives::Secret;
use rand_core::CryptoRng;

use crate::context::MAX_KEY_ID_BYTES;
use crate::party::{PartyId, Threshold};
use crate::wire::{Malformed, Reader, Writer};

/// Bytes of a data key.
pub const DATA_KEY_BYTES: usize = 32;
/// Longest label or name bound to a blob, in bytes.
pub const MAX_LABEL_BYTES: usize = 255;

const SEAL_VERSION: u8 = 1;
const NONCE_BYTES: usize = 12;
const MAX_PUBLIC_BYTES: usize = 512;

/// Wrong key, wrong label, wrong kind, or an altered blob. Which one is not said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnsealFailed;

/// The content of a blob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SealKind {
    /// A key share of some protocol family.
    KeyShare = 1,
    /// An evidence key.
    Identity = 2,
    /// Another secret of the service.
    Other = 3,
    /// An applicant's half of a secret.
    Applicant = 4,
    /// A registered member's secret, before it has its key.
    Candidate = 5,
    /// A member's key.
    Member = 6,
}

/// The key under which one party's secrets are sealed. Wiped on drop.
pub struct DataKey(Secret<[u8; DATA_KEY_BYTES]>);

impl DataKey {
    /// Takes the key over; the caller wipes its own copy.
    pub fn new(key: Secret<[u8; DATA_KEY_BYTES]>) -> Self {
        Self(key)
    }

    /// Seals `secret`. `public` is stored readable, `label` is not stored; both are bound to the secret.
    /// `None` if `public` or `label` is too long.
    pub fn seal(
        &self,
        kind: SealKind,
        public: &[u8],
        label: &[u8],
        secret: &[u8],
        rng: &mut dyn CryptoRng,
    ) -> Option<Vec<u8>> {
        if public.len() > MAX_PUBLIC_BYTES || label.len() > MAX_LABEL_BYTES {
            return None;
        }
        let mut head = Writer::with_capacity(4 + public.len());
        head.u8(SEAL_VERSION);
        head.u8(kind as u8);
        head.u16(u16::try_from(public.len()).ok()?);
        head.bytes(public);
        let mut blob = head.finish();
        let mut nonce = [0u8; NONCE_BYTES];
        rng.fill_bytes(&mut nonce);
        let associated = associated_data(&blob, label);
        let payload = Payload { msg: secret, aad: &associated };
        let ciphertext = self.cipher()?.encrypt(&Nonce::from(nonce), payload).ok()?;
        blob.extend_from_slice(&nonce);
        blob.extend_from_slice(&ciphertext);
        Some(blob)
    }

    /// Opens a blob of `kind` that was sealed with `label`.
    pub fn unseal(&self, kind: SealKind, label: &[u8], blob: &[u8]) -> Result<Unsealed, UnsealFailed> {
        let Parts { head, public, rest } = split(kind, blob).map_err(|Malformed| UnsealFailed)?;
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(UnsealFailed)?;
        let associated = associated_data(head, label);
        let payload = Payload { msg: ciphertext, aad: &associated };
        let cipher = self.cipher().ok_or(UnsealFailed)?;
        let secret = cipher.decrypt(&Nonce::from(*nonce), payload).map_err(|_| UnsealFailed)?;
        Ok(Unsealed { public: public.to_vec(), secret: Secret::new(secret) })
    }

    fn cipher(&self) -> Option<Aes256GcmSiv> {
        Aes256GcmSiv::new_from_slice(self.0.expose()).ok()
    }
}

/// The content of an opened blob.
pub struct Unsealed {
    /// The readable part, now known to be genuine.
    pub public: Vec<u8>,
    /// The secret part.
    pub secret: Secret<Vec<u8>>,
}

/// The facts that the readable part of a sealed key share names. They decide whether a share fits a session at all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShareLabel {
    /// Which protocols can use the share, for example `bls12-381`.
    pub family: String,
    /// Our name for the key.
    pub key_id: String,
    /// Whose share it is.
    pub party: PartyId,
    /// Generation of the shares.
    pub epoch: u32,
    /// Parties needed to sign.
    pub threshold: Threshold,
}

impl ShareLabel {
    /// The encoding that is bound to the share.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.sized(self.family.as_bytes());
        writer.sized(self.key_id.as_bytes());
        writer.u16(self.party.get());
        writer.u32(self.epoch);
        writer.u16(u16::try_from(self.threshold.get()).unwrap_or(u16::MAX));
        writer.finish()
    }

    /// The label of a sealed share, readable without its key and genuine only once the share has been unsealed.
    pub fn peek(blob: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(split(SealKind::KeyShare, blob)?.public);
        let label = Self {
            family: text(reader.sized(MAX_LABEL_BYTES)?)?,
            key_id: text(reader.sized(MAX_KEY_ID_BYTES)?)?,
            party: PartyId::new(reader.u16()?.into()).ok_or(Malformed)?,
            epoch: reader.u32()?,
            threshold: Threshold::new(reader.u16()?.into()).ok_or(Malformed)?,
        };
        reader.finish()?;
        Ok(label)
    }
}

fn text(bytes: &[u8]) -> Result<String, Malformed> {
    core::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Malformed)
}

/// A blob taken apart: everything before the nonce, the public part in it, and what follows.
struct Parts<'a> {
    head: &'a [u8],
    public: &'a [u8],
    rest: &'a [u8],
}

fn split(kind: SealKind, blob: &[u8]) -> Result<Parts<'_>, Malformed> {
    let mut reader = Reader::new(blob);
    if reader.u8()? != SEAL_VERSION || reader.u8()? != kind as u8 {
        return Err(Malformed);
    }
    let length = usize::from(reader.u16()?);
    let public = reader.bytes(length)?;
    let (head, rest) = blob.split_at_checked(4 + length).ok_or(Malformed)?;
    Ok(Parts { head, public, rest })
}

fn associated_data(head: &[u8], label: &[u8]) -> Vec<u8> {
    let mut writer = Writer::with_capacity(head.len() + label.len() + 4);
    writer.bytes(head);
    writer.sized(label);
    writer.finish()
}
