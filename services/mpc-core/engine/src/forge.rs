//! For tests: envelopes as a party that does not follow the rules would make them.

use std::sync::Arc;

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::broadcast::BroadcastLog;
use crate::claim::Claim;
use crate::context::{SessionContext, SessionSettings};
use crate::envelope::{Envelope, RUN_NONCE_BYTES};
use crate::error::{AbortCause, SetupError};
use crate::evidence::EvidenceKey;
use crate::party::PartyId;
use crate::private;
use crate::protocol::Protocol;
use crate::wire::Writer;

impl SessionContext {
    /// The context that a session of `P` with these settings has, if its parties hold nothing beside them.
    pub fn for_test<P: Protocol>(settings: SessionSettings) -> Result<Self, SetupError> {
        Self::new(P::ID, P::SIGNED, P::ROUNDS, settings, None)
    }
}

/// Everything in an envelope, open to change. [`Forged::encode`] signs it again if it was signed.
pub struct Forged {
    /// Protocol number.
    pub protocol: u16,
    /// Session digest.
    pub session: [u8; 32],
    /// Round number.
    pub round: u8,
    /// Whom it says it is from.
    pub sender: PartyId,
    /// Whom it is for.
    pub recipient: Option<PartyId>,
    /// Run nonce.
    pub run: [u8; RUN_NONCE_BYTES],
    /// Echo digest, if signed.
    pub echo: Option<[u8; 32]>,
    /// The body.
    pub body: Vec<u8>,
}

impl Forged {
    /// Takes a genuine envelope apart; `None` if it is not one.
    pub fn open(bytes: &[u8]) -> Option<Self> {
        let envelope = Envelope::decode(bytes).ok()?;
        Some(Self {
            protocol: envelope.protocol,
            session: envelope.session,
            round: envelope.round,
            sender: envelope.sender,
            recipient: envelope.recipient,
            run: envelope.run,
            echo: envelope.echo,
            body: envelope.body.to_vec(),
        })
    }

    /// A message of a session, from nothing.
    pub fn new(protocol: u16, ctx: &SessionContext, round: u8, sender: PartyId, body: Vec<u8>) -> Self {
        Self {
            protocol,
            session: *ctx.digest(),
            round,
            sender,
            recipient: None,
            run: [0; RUN_NONCE_BYTES],
            echo: Some([0; 32]),
            body,
        }
    }

    /// The bytes, signed with `key` if there is an echo digest, as signed envelopes have one.
    pub fn encode(&self, key: &EvidenceKey) -> Vec<u8> {
        let mut envelope = Envelope {
            protocol: self.protocol,
            session: self.session,
            round: self.round,
            sender: self.sender,
            recipient: self.recipient,
            run: self.run,
            echo: self.echo,
            body: Zeroizing::new(self.body.clone()),
            signature: None,
        };
        if self.echo.is_some() {
            envelope.sign(key);
        }
        envelope.encode()
    }
}

/// The echo digest that an envelope of `round` carries if its sender saw exactly these of earlier rounds, one for each
/// place.
pub fn echo_of(ctx: &SessionContext, round: u8, broadcasts: &[Arc<Envelope>]) -> [u8; 32] {
    let mut log = BroadcastLog::default();
    for envelope in broadcasts.iter().filter(|envelope| envelope.recipient.is_none()) {
        log.witness(envelope);
    }
    log.echo(ctx, round)
}

/// The body of a notice.
pub fn notice(cause: AbortCause, accused: u16, evidence: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.u8(cause.number());
    writer.u16(accused);
    write_list(&mut writer, evidence);
    writer.finish()
}

/// The header of a signed envelope as evidence of a restart holds it; `None` if it is no signed envelope.
pub fn header(envelope: &[u8]) -> Option<Vec<u8>> {
    Some(Claim::of(&Envelope::decode(envelope).ok()?)?.to_bytes())
}

/// An envelope in the bytes in which it leaves the core of the party with this key, whoever made it. Bytes that are no
/// envelope, and a broadcast, stay as they are.
pub fn sealed(ctx: &SessionContext, key: &EvidenceKey, envelope: &[u8], rng: &mut dyn CryptoRng) -> Vec<u8> {
    let decoded = Envelope::decode(envelope).ok().filter(|decoded| decoded.recipient.is_some());
    let sealed = decoded.and_then(|decoded| private::seal(ctx, key, &decoded, rng));
    sealed.unwrap_or_else(|| envelope.to_vec())
}

/// The body of a disclosure with the headers of two signed envelopes as claims; `None` if one is no signed envelope.
pub fn disclosure(claims: [&[u8]; 2], shown: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut writer = Writer::default();
    for claim in claims {
        Claim::of(&Envelope::decode(claim).ok()?)?.encode(&mut writer);
    }
    write_list(&mut writer, shown);
    Some(writer.finish())
}

fn write_list(writer: &mut Writer, envelopes: &[Vec<u8>]) {
    writer.u16(u16::try_from(envelopes.len()).unwrap_or(u16::MAX));
    envelopes.iter().for_each(|envelope| writer.sized(envelope));
}
