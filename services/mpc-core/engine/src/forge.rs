//! For tests: envelopes as a party that does not follow the rules would make them.

use zeroize::Zeroizing;

use crate::context::SessionContext;
use crate::envelope::Envelope;
use crate::evidence::EvidenceKey;
use crate::party::PartyId;

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
            echo: envelope.echo,
            body: envelope.body.to_vec(),
        })
    }

    /// A message of a session, from nothing.
    pub fn new(protocol: u16, ctx: &SessionContext, round: u8, sender: PartyId, body: Vec<u8>) -> Self {
        Self { protocol, session: *ctx.digest(), round, sender, recipient: None, echo: Some([0; 32]), body }
    }

    /// The bytes, signed with `key` if there is an echo digest, as signed envelopes have one.
    pub fn encode(&self, key: &EvidenceKey) -> Vec<u8> {
        let mut envelope = Envelope {
            protocol: self.protocol,
            session: self.session,
            round: self.round,
            sender: self.sender,
            recipient: self.recipient,
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
