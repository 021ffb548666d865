//! Imported Ed25519 keys that sign as RFC 8032 says. Steps are cited as [Ed25519 2]
//! (`docs/protocols/ed25519-rfc8032.md`).
//!
//! A pair, with its key, and prepared signatures live as long as the process: nothing here has a form in which it could
//! be stored. After a restart the pair does [`Pairing`] again, from the share that each party keeps.

use std::io;
use std::sync::Arc;

use circuits::authenticated::Pair;
use circuits::dialogue::{Dialogue, DialogueLine, DialogueRng};
use circuits::ed25519::{ImportedShare, NonceCircuit, NonceRecord, OpenNonce as HalfOpen, PairKey, Ready};
use engine::{ProtocolId, SetupError};
use rand_core::CryptoRng;

use crate::talk::{Started, Subject, With};

/// A set-up of two parties with their parts of a key, for any number of signatures.
pub struct Paired {
    pair: Pair,
    key: PairKey,
    /// The numbers of this party and of its peer.
    between: [u16; 2],
}

impl Paired {
    /// The key.
    #[must_use]
    pub fn public_key(&self) -> &[u8; 32] {
        self.key.public_key()
    }

    /// Tells this set-up from every other. The same at both parties, and no secret.
    #[must_use]
    pub fn identity(&self) -> [u8; 32] {
        self.pair.identity()
    }

    /// Whether a check failed, or the caller ended it, so that nothing is done with this set-up any more.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.pair.ended()
    }

    /// Ends this set-up, for sessions that are under way too.
    pub fn end(&self) {
        self.pair.end();
    }

    fn is_between(&self, with: &With<'_>) -> Result<(), SetupError> {
        let same = self.between == [with.me.get(), with.peer.get()];
        if same { Ok(()) } else { Err(SetupError::ShareMismatch) }
    }
}

/// [Ed25519 2, 3] Two parties set up, and take a key over; it ends with the owner's test signature.
pub struct Pairing;

/// The test signature's nonce point is the owner's, or the run has ended: there is nothing to look up.
struct Owners;

impl NonceRecord for Owners {
    fn settle(&mut self, _: &[u8; 32], _: &[u8; 64], nonce: &[u8; 32]) -> io::Result<[u8; 32]> {
        Ok(*nonce)
    }
}

impl Subject for Pairing {
    const ID: ProtocolId = ProtocolId { number: 48, name: "ed25519-exact/pair/1" };
    type Input = ImportedShare;
    type Output = Paired;

    fn held_alike(share: &ImportedShare) -> Option<[u8; 32]> {
        Some(share.public_key)
    }

    fn start(
        with: &With<'_>,
        share: ImportedShare,
        rng: &mut dyn CryptoRng,
    ) -> Result<Started<Paired>, SetupError> {
        let between = [with.me.get(), with.peer.get()];
        if share.number != between[0] || share.peers().all(|peer| peer != between[1]) {
            return Err(SetupError::ShareMismatch);
        }
        let (role, binding) = (with.role(), *with.ctx.digest());
        let protocol = async move |mut line: DialogueLine, mut rng: DialogueRng| {
            let pair = Pair::set_up(role, &binding, &mut line, &mut rng).await?;
            let key = share.join(&pair, between[1], &mut line, &mut rng).await?;
            let key = key.confirm(&pair, &mut Owners, &mut line, &mut rng).await?;
            Ok(Paired { pair, key, between })
        };
        Ok(Dialogue::start(protocol, rng))
    }
}

/// [Ed25519 4] A pair prepares one signature.
pub struct Preparing;

/// The input of [`Preparing`].
pub struct PreparingInput {
    /// The pair.
    pub paired: Arc<Paired>,
    /// The circuit for messages of some length.
    pub circuit: Arc<NonceCircuit>,
}

impl Subject for Preparing {
    const ID: ProtocolId = ProtocolId { number: 49, name: "ed25519-exact/prepare/1" };
    type Input = PreparingInput;
    type Output = Ready;

    fn held_alike(input: &PreparingInput) -> Option<[u8; 32]> {
        Some(input.paired.identity())
    }

    fn start(
        with: &With<'_>,
        PreparingInput { paired, circuit }: PreparingInput,
        rng: &mut dyn CryptoRng,
    ) -> Result<Started<Ready>, SetupError> {
        paired.is_between(with)?;
        let protocol = async move |mut line: DialogueLine, mut rng: DialogueRng| {
            Ready::new(&paired.pair, &circuit, &mut line, &mut rng).await
        };
        Ok(Dialogue::start(protocol, rng))
    }
}

/// [Ed25519 5, 6] A pair opens the nonce of a message, up to the record: the payload of the session is the message.
pub struct OpenNonce;

/// The input of [`OpenNonce`].
pub struct NonceInput {
    /// The pair.
    pub paired: Arc<Paired>,
    /// The circuit that was prepared.
    pub circuit: Arc<NonceCircuit>,
    /// The prepared signature, used up.
    pub ready: Ready,
}

/// A signature up to the record.
pub struct Nonce {
    paired: Arc<Paired>,
    circuit: Arc<NonceCircuit>,
    nonce: HalfOpen,
    message: Vec<u8>,
}

impl Nonce {
    /// R, to be stored before [`Answer`] starts.
    #[must_use]
    pub fn point(&self) -> &[u8; 32] {
        self.nonce.point()
    }

    /// Whether the set-up that it is of has ended.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.paired.ended()
    }

    /// SHA-512 of the message, under which R is stored.
    #[must_use]
    pub fn message(&self) -> &[u8; 64] {
        self.nonce.message()
    }
}

impl Subject for OpenNonce {
    const ID: ProtocolId = ProtocolId { number: 50, name: "ed25519-exact/nonce/1" };
    type Input = NonceInput;
    type Output = Nonce;

    fn held_alike(input: &NonceInput) -> Option<[u8; 32]> {
        Some(input.ready.session())
    }

    fn start(
        with: &With<'_>,
        NonceInput { paired, circuit, ready }: NonceInput,
        rng: &mut dyn CryptoRng,
    ) -> Result<Started<Nonce>, SetupError> {
        paired.is_between(with)?;
        let message = with.ctx.payload().to_vec();
        let protocol = async move |mut line: DialogueLine, _: DialogueRng| {
            let nonce = paired.key.open_nonce(&paired.pair, &circuit, ready, &message, &mut line).await?;
            Ok(Nonce { paired, circuit, nonce, message })
        };
        Ok(Dialogue::start(protocol, rng))
    }
}

/// [Ed25519 7 to 9] A pair signs the message whose nonce is open: the payload of the session is the message again.
pub struct Answer;

/// The input of [`Answer`].
pub struct AnswerInput {
    /// The first half, used up.
    pub nonce: Nonce,
    /// R as this party's record has it for key and message, on stable storage.
    pub recorded: [u8; 32],
}

impl Subject for Answer {
    const ID: ProtocolId = ProtocolId { number: 51, name: "ed25519-exact/answer/1" };
    type Input = AnswerInput;
    type Output = [u8; 64];

    fn held_alike(input: &AnswerInput) -> Option<[u8; 32]> {
        Some(input.nonce.nonce.session())
    }

    fn start(
        with: &With<'_>,
        AnswerInput { nonce, recorded }: AnswerInput,
        rng: &mut dyn CryptoRng,
    ) -> Result<Started<[u8; 64]>, SetupError> {
        let Nonce { paired, circuit, nonce, message } = nonce;
        paired.is_between(with)?;
        if with.ctx.payload() != message {
            return Err(SetupError::PayloadInvalid);
        }
        let protocol = async move |mut line: DialogueLine, _: DialogueRng| {
            paired.key.answer(&paired.pair, &circuit, nonce, &message, &recorded, &mut line).await
        };
        Ok(Dialogue::start(protocol, rng))
    }
}
