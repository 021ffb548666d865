//! Hardened children of keys that two parties share, and of seeds. Steps are cited as [Hardened 3]
//! (`docs/protocols/hardened-derivation.md`).
//!
//! A derivation prepares its circuits itself: it is rare, and nothing of a preparation outlives its session. A set-up
//! with the pair's part of a seed, and nodes of SLIP-10, live as long as the process: they have no form in which they
//! could be stored.

use std::sync::Arc;

use circuits::authenticated::{Abort, Pair};
use circuits::dialogue::{Dialogue, DialogueLine, DialogueRng};
use circuits::hardened::{
    Node, PairSeed, PublicNode, Ready, SeedShare, ShamirShare, Slip10Node, StepCircuit,
};
use engine::wire::{Malformed, Reader, Writer};
use engine::{MAX_KEY_ID_BYTES, ProtocolId, SetupError};
use primitives::secp256k1::POINT_BYTES;
use rand_core::CryptoRng;

use crate::talk::{Started, Subject, With};

/// The highest bit of a child's number, which says that it is hardened.
const HARDENED: u32 = 1 << 31;

/// Circuits that a session evaluates, at most: each takes some 75 of its rounds.
pub const MAX_STEPS: usize = 3;

/// Levels of a path, at most.
pub const MAX_LEVELS: usize = 10;

/// The child that a session derives: its payload, so that both parties mean the same.
///
/// ```text
/// bytes
/// 4 + k  length and bytes of the name of the key that is made; none where none is
/// 1      levels that earlier sessions have derived
/// 1      levels
/// 4      for each level, the number of the child
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Derivation {
    /// Our name for the key that is made; empty where none is.
    pub child_key_id: String,
    /// Levels that earlier sessions have derived.
    pub known: usize,
    /// The number of the child at each level, from the key or the seed on.
    pub path: Vec<u32>,
}

impl Derivation {
    /// The payload.
    ///
    /// # Errors
    /// A path or a name that is too long.
    pub fn encode(&self) -> Result<Vec<u8>, SetupError> {
        if self.path.len() > MAX_LEVELS {
            return Err(SetupError::DerivationPathInvalid);
        }
        if self.child_key_id.len() > MAX_KEY_ID_BYTES {
            return Err(SetupError::KeyIdLength);
        }
        let count = |levels: usize| u8::try_from(levels).map_err(|_| SetupError::DerivationPathInvalid);
        let mut writer = Writer::default();
        writer.sized(self.child_key_id.as_bytes());
        writer.u8(count(self.known)?);
        writer.u8(count(self.path.len())?);
        self.path.iter().for_each(|number| writer.u32(*number));
        Ok(writer.finish())
    }

    fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let name = core::str::from_utf8(reader.sized(MAX_KEY_ID_BYTES)?).map_err(|_| Malformed)?;
        let (known, levels) = (usize::from(reader.u8()?), usize::from(reader.u8()?));
        if levels > MAX_LEVELS || known > levels {
            return Err(Malformed);
        }
        let path = (0..levels).map(|_| reader.u32()).collect::<Result<_, Malformed>>()?;
        reader.finish()?;
        Ok(Self { child_key_id: name.to_owned(), known, path })
    }

    /// That of a session, which makes a key or not.
    fn of(with: &With<'_>, makes_key: bool) -> Result<Self, SetupError> {
        let derivation = Self::decode(with.ctx.payload()).map_err(|Malformed| SetupError::PayloadInvalid)?;
        // A child never has its parent's name: their shares would have one label.
        let named = !derivation.child_key_id.is_empty() && derivation.child_key_id != with.ctx.key_id();
        let fits = if makes_key { named } else { derivation.child_key_id.is_empty() };
        if fits { Ok(derivation) } else { Err(SetupError::KeyIdLength) }
    }

    /// The path of a session of BIP-32: some of it is hardened, and no more than a session does.
    fn bip32(with: &With<'_>) -> Result<Vec<u32>, SetupError> {
        let Self { known, path, .. } = Self::of(with, true)?;
        match path.iter().filter(|number| **number >= HARDENED).count() {
            1..=MAX_STEPS if known == 0 => Ok(path),
            0..=MAX_STEPS => Err(SetupError::PayloadInvalid),
            _ => Err(SetupError::DerivationPathInvalid),
        }
    }
}

/// A key on secp256k1 as the two parties that have derived it hold it.
pub struct Child {
    /// Public key and chain code.
    pub public: PublicNode,
    /// Its shares, for the numbers of the two.
    pub shares: ShamirShare<POINT_BYTES>,
}

/// An Ed25519 key as the two parties that have derived it hold it.
pub struct Slip10Key {
    /// The public key.
    pub public_key: [u8; 32],
    /// Its shares, for the numbers of the two.
    pub shares: ShamirShare<32>,
}

/// The shares, unless the peer has chosen its own to be zero: then the set-up ends.
fn whole<const POINT: usize>(
    pair: &Pair,
    shares: Option<ShamirShare<POINT>>,
) -> Result<ShamirShare<POINT>, Abort> {
    shares.ok_or_else(|| {
        pair.end();
        Abort::Malformed
    })
}

/// A pair that derives, the numbers of this party and of its peer, and the line between them.
struct Derivers<'a> {
    pair: &'a Pair,
    between: [u16; 2],
    line: DialogueLine,
    rng: DialogueRng,
}

impl Derivers<'_> {
    /// [Hardened 2 to 6] The node at the end of a path; `None` if BIP-32 has none there.
    async fn descend(
        &mut self,
        circuit: &StepCircuit,
        parent: &Node,
        path: &[u32],
    ) -> Result<Option<Child>, Abort> {
        let Self { pair, between: [own, peer], line, rng } = self;
        let mut reached: Option<Node> = None;
        for number in path {
            let node = reached.as_ref().unwrap_or(parent);
            let child = match number.checked_sub(HARDENED) {
                None => node.normal(pair.role(), *number),
                Some(index) => {
                    let ready = Ready::new(pair, circuit, line, rng).await?;
                    node.hardened(pair, circuit, ready, index, line).await?
                }
            };
            let Some(child) = child else { return Ok(None) };
            reached = Some(child);
        }
        let node = reached.as_ref().unwrap_or(parent);
        let shares = whole(pair, node.to_shamir(*own, *peer))?;
        Ok(Some(Child { public: *node.public(), shares }))
    }
}

/// [Hardened 1 to 6] Two parties of a key on secp256k1 set up and derive a child of it.
pub struct Deriving;

/// The input of [`Deriving`].
pub struct DerivingInput {
    /// The key.
    pub parent: Node,
    /// Hash of the key's public data.
    pub held: [u8; 32],
    /// The circuit of a hardened child.
    pub circuit: Arc<StepCircuit>,
}

impl Subject for Deriving {
    const ID: ProtocolId = ProtocolId { number: 52, name: "hardened/ecdsa-child/1" };
    type Input = DerivingInput;
    /// `None` if BIP-32 has no such child.
    type Output = Option<Child>;

    fn held_alike(input: &DerivingInput) -> Option<[u8; 32]> {
        Some(input.held)
    }

    fn start(
        with: &With<'_>,
        DerivingInput { parent, circuit, .. }: DerivingInput,
        rng: &mut dyn CryptoRng,
    ) -> Result<Started<Option<Child>>, SetupError> {
        let path = Derivation::bip32(with)?;
        let (role, binding) = (with.role(), *with.ctx.digest());
        let between = [with.me.get(), with.peer.get()];
        let protocol = async move |mut line: DialogueLine, mut rng: DialogueRng| {
            let pair = &Pair::set_up(role, &binding, &mut line, &mut rng).await?;
            Derivers { pair, between, line, rng }.descend(&circuit, &parent, &path).await
        };
        Ok(Dialogue::start(protocol, rng))
    }
}

/// A set-up of two parties with their parts of a seed, for any number of derivations.
pub struct PairedSeed {
    pair: Pair,
    seed: PairSeed,
    root: Node,
    /// The numbers of this party and of its peer.
    between: [u16; 2],
}

impl PairedSeed {
    /// The root of BIP-32, which is the owner's.
    #[must_use]
    pub fn root(&self) -> &PublicNode {
        self.root.public()
    }

    /// Bytes of the seed.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.seed.bytes()
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

/// [Hardened 8, 9] Two parties set up, and take a seed over; it ends with the owner's root, which is the payload.
pub struct SeedPairing;

impl SeedPairing {
    /// The payload for a share: public key and chain code of the root.
    #[must_use]
    pub fn payload(share: &SeedShare) -> Vec<u8> {
        [share.root.public_key.as_slice(), &share.root.chain_code].concat()
    }
}

/// The input of [`SeedPairing`].
pub struct SeedPairingInput {
    /// This party's share of the seed.
    pub share: SeedShare,
    /// The circuit of the root for a seed of its length.
    pub circuit: Arc<StepCircuit>,
}

impl Subject for SeedPairing {
    const ID: ProtocolId = ProtocolId { number: 53, name: "hardened/seed-pair/1" };
    type Input = SeedPairingInput;
    type Output = PairedSeed;

    fn held_alike(_: &SeedPairingInput) -> Option<[u8; 32]> {
        None
    }

    fn start(
        with: &With<'_>,
        SeedPairingInput { share, circuit }: SeedPairingInput,
        rng: &mut dyn CryptoRng,
    ) -> Result<Started<PairedSeed>, SetupError> {
        if with.ctx.payload() != Self::payload(&share) {
            return Err(SetupError::PayloadInvalid);
        }
        let between = [with.me.get(), with.peer.get()];
        if share.number != between[0] || share.peers().all(|peer| peer != between[1]) {
            return Err(SetupError::ShareMismatch);
        }
        let (role, binding) = (with.role(), *with.ctx.digest());
        let protocol = async move |mut line: DialogueLine, mut rng: DialogueRng| {
            let pair = Pair::set_up(role, &binding, &mut line, &mut rng).await?;
            let seed = share.join(&pair, between[1], &mut line, &mut rng).await?;
            let ready = Ready::new(&pair, &circuit, &mut line, &mut rng).await?;
            let (seed, root) = seed.confirm(&pair, &circuit, ready, &mut line).await?;
            Ok(PairedSeed { pair, seed, root, between })
        };
        Ok(Dialogue::start(protocol, rng))
    }
}

/// [Hardened 2 to 6] A pair derives a child of a seed's root by BIP-32.
pub struct SeedDeriving;

/// The input of [`SeedDeriving`].
pub struct SeedDerivingInput {
    /// The pair.
    pub paired: Arc<PairedSeed>,
    /// The circuit of a hardened child.
    pub circuit: Arc<StepCircuit>,
}

impl Subject for SeedDeriving {
    const ID: ProtocolId = ProtocolId { number: 54, name: "hardened/seed-ecdsa-child/1" };
    type Input = SeedDerivingInput;
    /// `None` if BIP-32 has no such child.
    type Output = Option<Child>;

    fn held_alike(input: &SeedDerivingInput) -> Option<[u8; 32]> {
        Some(input.paired.identity())
    }

    fn start(
        with: &With<'_>,
        SeedDerivingInput { paired, circuit }: SeedDerivingInput,
        rng: &mut dyn CryptoRng,
    ) -> Result<Started<Option<Child>>, SetupError> {
        paired.is_between(with)?;
        let path = Derivation::bip32(with)?;
        let protocol = async move |line: DialogueLine, rng: DialogueRng| {
            let PairedSeed { pair, root, between, .. } = paired.as_ref();
            Derivers { pair, between: *between, line, rng }.descend(&circuit, root, &path).await
        };
        Ok(Dialogue::start(protocol, rng))
    }
}

/// A node of SLIP-10 for Ed25519 as a pair holds it.
pub struct Slip10Level {
    paired: Arc<PairedSeed>,
    node: Slip10Node,
    path: Vec<u32>,
}

impl Slip10Level {
    /// The numbers that lead to it from the seed.
    #[must_use]
    pub fn path(&self) -> &[u32] {
        &self.path
    }

    /// The chain code.
    #[must_use]
    pub fn chain_code(&self) -> &[u8; 32] {
        self.node.chain_code()
    }

    /// Whether the set-up that it is of has ended.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.paired.ended()
    }
}

/// [Hardened 10, 11] A pair derives a node of SLIP-10 for Ed25519.
pub struct Slip10Deriving;

/// Where a derivation by SLIP-10 begins.
pub enum Slip10Start {
    /// At the seed, with the circuit of the root for a seed of its length.
    Seed(Arc<PairedSeed>, Arc<StepCircuit>),
    /// At a node.
    Level(Arc<Slip10Level>),
}

impl Slip10Start {
    fn paired(&self) -> &Arc<PairedSeed> {
        match self {
            Slip10Start::Seed(paired, _) => paired,
            Slip10Start::Level(level) => &level.paired,
        }
    }
}

/// The input of [`Slip10Deriving`].
pub struct Slip10DerivingInput {
    /// The beginning.
    pub start: Slip10Start,
    /// The circuit of a child.
    pub circuit: Arc<StepCircuit>,
}

impl Subject for Slip10Deriving {
    const ID: ProtocolId = ProtocolId { number: 55, name: "hardened/slip10-node/1" };
    type Input = Slip10DerivingInput;
    type Output = Slip10Level;

    fn held_alike(input: &Slip10DerivingInput) -> Option<[u8; 32]> {
        Some(input.start.paired().identity())
    }

    fn start(
        with: &With<'_>,
        Slip10DerivingInput { start, circuit }: Slip10DerivingInput,
        rng: &mut dyn CryptoRng,
    ) -> Result<Started<Slip10Level>, SetupError> {
        start.paired().is_between(with)?;
        let Derivation { known, path, .. } = Derivation::of(with, false)?;
        let (before, steps) = match &start {
            Slip10Start::Seed(..) => (&[][..], 1 + path.len()),
            Slip10Start::Level(level) => (level.path(), path.len().saturating_sub(known)),
        };
        if path.split_at_checked(known).is_none_or(|(first, new)| first != before || new.is_empty())
            || path.iter().any(|number| *number < HARDENED)
        {
            return Err(SetupError::PayloadInvalid);
        }
        if steps > MAX_STEPS {
            return Err(SetupError::DerivationPathInvalid);
        }
        let protocol = async move |mut line: DialogueLine, mut rng: DialogueRng| {
            let paired = Arc::clone(start.paired());
            let mut reached = None;
            if let Slip10Start::Seed(_, circuit) = &start {
                let ready = Ready::new(&paired.pair, circuit, &mut line, &mut rng).await?;
                reached = Some(paired.seed.slip10(&paired.pair, circuit, ready, &mut line).await?);
            }
            for number in path.iter().skip(known) {
                let node = match (&reached, &start) {
                    (Some(node), _) => node,
                    (None, Slip10Start::Level(level)) => &level.node,
                    (None, Slip10Start::Seed(..)) => return Err(Abort::Caller("there is no node yet")),
                };
                let ready = Ready::new(&paired.pair, &circuit, &mut line, &mut rng).await?;
                let index = number & !HARDENED;
                reached = Some(node.child(&paired.pair, &circuit, ready, index, &mut line).await?);
            }
            let node = reached.ok_or(Abort::Caller("a path has a level"))?;
            Ok(Slip10Level { paired, node, path })
        };
        Ok(Dialogue::start(protocol, rng))
    }
}

/// [Hardened 12] A pair derives the signing key of a node of SLIP-10 for Ed25519.
pub struct Slip10Keying;

/// The input of [`Slip10Keying`].
pub struct Slip10KeyingInput {
    /// The node.
    pub level: Arc<Slip10Level>,
    /// The circuit of a node's key.
    pub circuit: Arc<StepCircuit>,
}

impl Subject for Slip10Keying {
    const ID: ProtocolId = ProtocolId { number: 56, name: "hardened/slip10-key/1" };
    type Input = Slip10KeyingInput;
    type Output = Slip10Key;

    fn held_alike(input: &Slip10KeyingInput) -> Option<[u8; 32]> {
        Some(input.level.paired.identity())
    }

    fn start(
        with: &With<'_>,
        Slip10KeyingInput { level, circuit }: Slip10KeyingInput,
        rng: &mut dyn CryptoRng,
    ) -> Result<Started<Slip10Key>, SetupError> {
        level.paired.is_between(with)?;
        let Derivation { known, path, .. } = Derivation::of(with, true)?;
        if known != path.len() || path != level.path {
            return Err(SetupError::PayloadInvalid);
        }
        let protocol = async move |mut line: DialogueLine, mut rng: DialogueRng| {
            let PairedSeed { pair, between: [own, peer], .. } = level.paired.as_ref();
            let ready = Ready::new(pair, &circuit, &mut line, &mut rng).await?;
            let key = level.node.key(pair, &circuit, ready, &mut line).await?;
            let shares = whole(pair, key.to_shamir(*own, *peer))?;
            Ok(Slip10Key { public_key: *key.public_key(), shares })
        };
        Ok(Dialogue::start(protocol, rng))
    }
}
