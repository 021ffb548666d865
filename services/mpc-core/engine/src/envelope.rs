//! One message between parties: a header that says exactly where it belongs, and a body.
//!
//! ```text
//! offset  bytes
//!      0  1      format version, 2
//!      1  2      protocol number
//!      3  32     session digest: session id, parties, threshold, key, epoch, payload
//!     35  1      round
//!     36  1      delivery: 0 broadcast, 1 private
//!     37  2      sender
//!     39  2      recipient, 0 for all
//!     41  1      1 if signed, else 0
//!     42  4      length of the body
//!     46  16     run nonce, drawn when the sender started the session: another one means that it started it again
//!     62  32     echo digest, only if signed: all broadcasts the sender saw in earlier rounds
//!      .  n      body
//!      .  64     Ed25519 signature over everything before the body and the body's hash, only if signed
//! ```
//!
//! The signature covers the hash of the body, so that a header can be shown with its signature and without its body.

use core::fmt;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::context::SessionContext;
use crate::error::Reject;
use crate::evidence::{EvidenceKey, SIGNATURE_BYTES};
use crate::party::PartyId;
pub use crate::rounds::Delivery;
use crate::tags::{self, Tag};
use crate::wire::{Malformed, Reader, Writer};

/// The format this core speaks.
pub const ENVELOPE_VERSION: u8 = 2;
/// Bytes of a run nonce.
pub const RUN_NONCE_BYTES: usize = 16;
/// Everything before the echo digest, in bytes.
const HEAD_BYTES: usize = 46 + RUN_NONCE_BYTES;
/// Longest body of any protocol, in bytes.
pub const MAX_BODY_BYTES: usize = 2 * 1024 * 1024;
/// Header, echo digest and signature: an envelope adds at most so many bytes to its body.
pub const ENVELOPE_OVERHEAD_BYTES: usize = HEAD_BYTES + 32 + SIGNATURE_BYTES;
/// A signed envelope of which only the hash of the body is there, in bytes: header, echo digest, hash, signature.
pub(crate) const CLAIM_BYTES: usize = HEAD_BYTES + 32 + 32 + SIGNATURE_BYTES;
/// Longest envelope, in bytes.
pub const MAX_ENVELOPE_BYTES: usize = MAX_BODY_BYTES + ENVELOPE_OVERHEAD_BYTES;

/// A message with its authenticated header. The body is wiped on drop, as it may carry a share.
pub struct Envelope {
    /// Protocol number.
    pub(crate) protocol: u16,
    /// [`SessionContext::digest`].
    pub(crate) session: [u8; 32],
    /// Round it belongs to, from 1; see also [`crate::rounds::NOTICE_ROUND`].
    pub(crate) round: u8,
    /// The party that made it.
    pub(crate) sender: PartyId,
    /// Whom it is for; `None` for all.
    pub(crate) recipient: Option<PartyId>,
    /// Number of the sender's run, drawn when it started the session.
    pub(crate) run: [u8; RUN_NONCE_BYTES],
    /// Only in signed envelopes: hash of the broadcasts that the sender saw in earlier rounds.
    pub(crate) echo: Option<[u8; 32]>,
    /// The encoded body.
    pub(crate) body: Zeroizing<Vec<u8>>,
    /// Only in signed envelopes.
    pub(crate) signature: Option<[u8; SIGNATURE_BYTES]>,
}

impl Envelope {
    /// The party that made it.
    pub fn sender(&self) -> PartyId {
        self.sender
    }

    /// Whom it is for; `None` for all.
    pub fn recipient(&self) -> Option<PartyId> {
        self.recipient
    }

    /// The round it belongs to, from 1; notices and disclosures have numbers of their own.
    pub fn round(&self) -> u8 {
        self.round
    }

    /// Hash of the broadcasts that the sender says it saw in earlier rounds; only signed envelopes have one.
    pub fn echo(&self) -> Option<&[u8; 32]> {
        self.echo.as_ref()
    }

    /// Says which of its sender's runs of the session it is from. A party that follows the rules has one.
    pub fn run(&self) -> &[u8; RUN_NONCE_BYTES] {
        &self.run
    }

    /// The encoded body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// To all or to one.
    pub fn delivery(&self) -> Delivery {
        if self.recipient.is_some() { Delivery::Private } else { Delivery::Broadcast }
    }

    /// The bytes that travel. Secret if the delivery is private.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(self.body.len() + ENVELOPE_OVERHEAD_BYTES);
        self.head().write(&mut writer);
        writer.bytes(&self.body);
        if let Some(signature) = &self.signature {
            writer.bytes(signature);
        }
        writer.finish()
    }

    /// Takes bytes apart. Says nothing yet about whether the envelope belongs to any session.
    pub fn decode(bytes: &[u8]) -> Result<Self, Reject> {
        if bytes.len() > MAX_ENVELOPE_BYTES {
            return Err(Reject::Size);
        }
        let mut reader = Reader::new(bytes);
        match reader.u8() {
            Ok(ENVELOPE_VERSION) => Self::decode_rest(&mut reader).map_err(|Malformed| Reject::Malformed),
            Ok(_) => Err(Reject::Version),
            Err(Malformed) => Err(Reject::Malformed),
        }
    }

    /// Hash of everything but the signature, under which broadcasts are compared. Leaving the signature out means that
    /// a second signature over the same content is no second message.
    pub fn content_digest(&self) -> [u8; 32] {
        Sha256::digest(self.head().statement(tags::ENVELOPE_DIGEST, &self.body_digest())).into()
    }

    /// For our own log of what we broadcast. Envelopes have no `Clone`, as private ones carry secrets.
    pub(crate) fn duplicate(&self) -> Self {
        Self { body: self.body.clone(), ..*self }
    }

    pub(crate) fn sign(&mut self, key: &EvidenceKey) {
        self.signature =
            Some(key.sign(&self.head().statement(tags::ENVELOPE_SIGNATURE, &self.body_digest())));
    }

    /// Whether the sender's pinned evidence key made the signature.
    pub(crate) fn signature_verifies(&self, ctx: &SessionContext) -> bool {
        self.signature
            .is_some_and(|signature| self.head().signature_verifies(ctx, &self.body_digest(), &signature))
    }

    pub(crate) fn body_digest(&self) -> [u8; 32] {
        Sha256::digest(self.body.as_slice()).into()
    }

    pub(crate) fn head(&self) -> Head {
        Head {
            protocol: self.protocol,
            session: self.session,
            round: self.round,
            sender: self.sender,
            recipient: self.recipient,
            length: u32::try_from(self.body.len()).unwrap_or(u32::MAX),
            run: self.run,
            echo: self.echo,
        }
    }

    fn decode_rest(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let Head { protocol, session, round, sender, recipient, length, run, echo } =
            Head::read_rest(reader)?;
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        let body = Zeroizing::new(reader.bytes(length)?.to_vec());
        let signature = if echo.is_some() { Some(*reader.array()?) } else { None };
        core::mem::replace(reader, Reader::new(&[])).finish()?;
        Ok(Self { protocol, session, round, sender, recipient, run, echo, body, signature })
    }
}

/// Everything before the body.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) protocol: u16,
    pub(crate) session: [u8; 32],
    pub(crate) round: u8,
    pub(crate) sender: PartyId,
    pub(crate) recipient: Option<PartyId>,
    /// Of the body.
    length: u32,
    pub(crate) run: [u8; RUN_NONCE_BYTES],
    /// Only if signed.
    pub(crate) echo: Option<[u8; 32]>,
}

impl Head {
    pub(crate) fn delivery(&self) -> Delivery {
        if self.recipient.is_some() { Delivery::Private } else { Delivery::Broadcast }
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.u8(ENVELOPE_VERSION);
        writer.u16(self.protocol);
        writer.bytes(&self.session);
        writer.u8(self.round);
        writer.u8(match self.delivery() {
            Delivery::Broadcast => 0,
            Delivery::Private => 1,
        });
        writer.u16(self.sender.get());
        writer.u16(self.recipient.map_or(0, PartyId::get));
        writer.u8(u8::from(self.echo.is_some()));
        writer.u32(self.length);
        writer.bytes(&self.run);
        if let Some(echo) = &self.echo {
            writer.bytes(echo);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        if reader.u8()? == ENVELOPE_VERSION { Self::read_rest(reader) } else { Err(Malformed) }
    }

    /// After the version.
    fn read_rest(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let protocol = reader.u16()?;
        let session = *reader.array()?;
        let round = reader.u8()?;
        let private = read_flag(reader)?;
        let sender = PartyId::new(reader.u16()?.into()).ok_or(Malformed)?;
        let recipient = PartyId::new(reader.u16()?.into());
        if recipient.is_some() != private {
            return Err(Malformed);
        }
        let signed = read_flag(reader)?;
        let length = reader.u32()?;
        let run = *reader.array()?;
        let echo = if signed { Some(*reader.array()?) } else { None };
        Ok(Self { protocol, session, round, sender, recipient, length, run, echo })
    }

    /// Whether the sender's pinned evidence key signed this with a body of this hash.
    pub(crate) fn signature_verifies(
        &self,
        ctx: &SessionContext,
        body_digest: &[u8; 32],
        signature: &[u8; SIGNATURE_BYTES],
    ) -> bool {
        ctx.evidence_key(self.sender)
            .is_some_and(|key| key.verify(&self.statement(tags::ENVELOPE_SIGNATURE, body_digest), signature))
    }

    fn statement(&self, tag: Tag, body_digest: &[u8; 32]) -> Vec<u8> {
        let mut writer = Writer::with_capacity(tag.as_bytes().len() + HEAD_BYTES + 64);
        writer.bytes(tag.as_bytes());
        self.write(&mut writer);
        writer.bytes(body_digest);
        writer.finish()
    }
}

fn read_flag(reader: &mut Reader<'_>) -> Result<bool, Malformed> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed),
    }
}

impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Envelope(round {} from {} to ", self.round, self.sender)?;
        match self.recipient {
            Some(recipient) => write!(f, "{recipient}")?,
            None => f.write_str("all")?,
        }
        write!(f, ", {} bytes)", self.body.len())
    }
}
