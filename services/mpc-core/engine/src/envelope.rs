//! One message between parties: a header that says exactly where it belongs, and a body.
//!
//! ```text
//! offset  bytes
//!      0  1      format version, 1
//!      1  2      protocol number
//!      3  32     session digest: session id, parties, threshold, key, epoch, payload
//!     35  1      round
//!     36  1      delivery: 0 broadcast, 1 private
//!     37  2      sender
//!     39  2      recipient, 0 for all
//!     41  1      1 if signed, else 0
//!     42  4      length of the body
//!     46  32     echo digest, only if signed: all broadcasts the sender saw in earlier rounds
//!      .  n      body
//!      .  64     Ed25519 signature over everything before it, only if signed
//! ```

use core::fmt;

use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use crate::context::SessionContext;
use crate::evidence::{EvidenceKey, SIGNATURE_BYTES};
use crate::fault::Reject;
use crate::party::PartyId;
use crate::tags;
use crate::wire::{Malformed, Reader, Writer};

/// The format this core speaks.
pub const ENVELOPE_VERSION: u8 = 1;
/// Longest body of any protocol, in bytes.
pub const MAX_BODY_BYTES: usize = 2 * 1024 * 1024;
/// Header, echo digest and signature: what an envelope adds to its body at most, in bytes.
pub const ENVELOPE_OVERHEAD_BYTES: usize = 46 + 32 + SIGNATURE_BYTES;
/// Longest envelope, in bytes.
pub const MAX_ENVELOPE_BYTES: usize = MAX_BODY_BYTES + ENVELOPE_OVERHEAD_BYTES;

/// To all parties alike, or to one alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// One body for all.
    Broadcast,
    /// One body for one recipient, over a confidential channel.
    Private,
}

/// A message with its authenticated header. The body is wiped on drop, as it may carry a share.
pub struct Envelope {
    /// Protocol number.
    pub(crate) protocol: u16,
    /// [`SessionContext::digest`].
    pub(crate) session: [u8; 32],
    /// Round it belongs to, from 1; see also [`crate::session::NOTICE_ROUND`].
    pub(crate) round: u8,
    /// Who made it.
    pub(crate) sender: PartyId,
    /// Whom it is for; `None` for all.
    pub(crate) recipient: Option<PartyId>,
    /// Only in signed envelopes: hash of the broadcasts that the sender saw in earlier rounds.
    pub(crate) echo: Option<[u8; 32]>,
    /// The encoded body.
    pub(crate) body: Zeroizing<Vec<u8>>,
    /// Only in signed envelopes.
    pub(crate) signature: Option<[u8; SIGNATURE_BYTES]>,
}

impl Envelope {
    /// Who made it.
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
        self.write_unsigned(&mut writer);
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
        let mut writer = Writer::with_capacity(self.body.len() + ENVELOPE_OVERHEAD_BYTES);
        writer.bytes(tags::ENVELOPE_DIGEST.as_bytes());
        self.write_unsigned(&mut writer);
        let mut bytes = writer.finish();
        let digest = Sha256::digest(&bytes).into();
        bytes.zeroize();
        digest
    }

    /// For our own log of what we broadcast. Envelopes have no `Clone`, as private ones carry secrets.
    pub(crate) fn duplicate(&self) -> Self {
        Self { body: self.body.clone(), ..*self }
    }

    pub(crate) fn sign(&mut self, key: &EvidenceKey) {
        self.signature = Some(key.sign(&self.signed_message()));
    }

    /// Whether the sender's pinned evidence key made the signature.
    pub(crate) fn signature_verifies(&self, ctx: &SessionContext) -> bool {
        match (&self.signature, ctx.evidence_key(self.sender)) {
            (Some(signature), Some(key)) => key.verify(&self.signed_message(), signature),
            (None, _) | (_, None) => false,
        }
    }

    fn signed_message(&self) -> Zeroizing<Vec<u8>> {
        let mut writer = Writer::with_capacity(self.body.len() + ENVELOPE_OVERHEAD_BYTES);
        writer.bytes(tags::ENVELOPE_SIGNATURE.as_bytes());
        self.write_unsigned(&mut writer);
        Zeroizing::new(writer.finish())
    }

    fn write_unsigned(&self, writer: &mut Writer) {
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
        writer.u32(u32::try_from(self.body.len()).unwrap_or(u32::MAX));
        if let Some(echo) = &self.echo {
            writer.bytes(echo);
        }
        writer.bytes(&self.body);
    }

    fn decode_rest(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let protocol = reader.u16()?;
        let session = *reader.array()?;
        let round = reader.u8()?;
        let private = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(Malformed),
        };
        let sender = PartyId::new(reader.u16()?.into()).ok_or(Malformed)?;
        let recipient = PartyId::new(reader.u16()?.into());
        if recipient.is_some() != private {
            return Err(Malformed);
        }
        let signed = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(Malformed),
        };
        let length = usize::try_from(reader.u32()?).map_err(|_| Malformed)?;
        let echo = if signed { Some(*reader.array()?) } else { None };
        let body = Zeroizing::new(reader.bytes(length)?.to_vec());
        let signature = if signed { Some(*reader.array()?) } else { None };
        core::mem::replace(reader, Reader::new(&[])).finish()?;
        Ok(Self { protocol, session, round, sender, recipient, echo, body, signature })
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
