//! Hardened derivation through the interface: children of ECDSA keys that the parties share, and of seeds that an owner
//! has split. Steps are cited as [Hardened 3] (`docs/protocols/hardened-derivation.md`).
//!
//! The result of a derivation is a key of two parties, sealed as any share is: the input of a reshare to all of them.

mod call;
mod child;

use circuit_sessions::{
    Child, Derivation, Deriving, DerivingInput, PairedSeed, SeedDeriving, SeedDerivingInput, SeedPairing,
    SeedPairingInput, Slip10Deriving, Slip10DerivingInput, Slip10Key, Slip10Keying, Slip10KeyingInput,
    Slip10Level, Slip10Start, Talk,
};
use circuits::hardened::{SeedShare, Step};
use protocols::dealing::Public;
use protocols::ecdsa::{self, Ecdsa};

use crate::dealing::Dealt;
use crate::exact::{open, pair, two};
use crate::inputs::{Inputs, StartError};
use crate::pairs::{PairName, Place};
use crate::proto;
use crate::seeds::Seeds;
use crate::session::{Offered, Prepared};

use call::FAMILY;
pub(crate) use call::{split_seed, take_share};
use child::Making;

/// Blocks of SHA-512 in a circuit, at most: a session prepares one circuit at a time, and needs room for it.
const BLOCKS: usize = 2;

/// A path from a key or a seed on.
fn bip32(inputs: &mut Inputs<'_>) -> Derivation {
    Derivation { child_key_id: inputs.child_key_id(), known: 0, path: inputs.derivation_path() }
}

/// [Hardened 1 to 6] a child of an ECDSA key.
impl Offered for Talk<Deriving> {
    type Kept = Making;

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let sealed = inputs.sealed_share(ecdsa::FAMILY)?;
        let derivation = bip32(&mut inputs);
        let (settings, name) = two::<Deriving>(&mut inputs, derivation.encode()?)?;
        let share = Ecdsa::unseal(&sealed)?;
        let held = share.public().digest();
        let parent = child::node(share, &name)?;
        let vault = inputs.vault()?;
        let place = vault.exact.reserve(BLOCKS)?;
        let circuit = vault.seeds.circuit(Step::Child)?;
        let kept = Making::new(&inputs, name, derivation.child_key_id, place)?;
        Ok(Prepared { settings, identity: None, input: DerivingInput { parent, held, circuit }, kept })
    }

    fn done(child: Option<Child>, kept: &mut Making) -> proto::Done {
        kept.ecdsa_done(child)
    }
}

/// The place in the vault of what a session makes, and the room that it needs until then.
pub(crate) struct Kept {
    seeds: Seeds,
    name: PairName,
    session: [u8; 32],
    place: Option<Place>,
}

/// [Hardened 8, 9]
impl Offered for Talk<SeedPairing> {
    type Kept = Kept;

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let share = open(&inputs.sealed_share(FAMILY)?, SeedShare::decode)?;
        let (settings, name) = pair::<SeedPairing>(&mut inputs, SeedPairing::payload(&share))?;
        let vault = inputs.vault()?;
        let place = Some(vault.exact.reserve(BLOCKS)?);
        let circuit = vault.seeds.circuit(Step::Master(share.bytes()))?;
        let input = SeedPairingInput { share, circuit };
        let session = *settings.session_id.as_bytes();
        let kept = Kept { seeds: vault.seeds.clone(), name, session, place };
        Ok(Prepared { settings, identity: None, input, kept })
    }

    fn done(paired: PairedSeed, kept: &mut Kept) -> proto::Done {
        drop(kept.place.take());
        let root = call::root_public(paired.root(), &kept.name.key_id);
        kept.seeds.put_pair(kept.name.clone(), paired);
        proto::Done { key_public: Some(root), ..proto::Done::default() }
    }
}

/// [Hardened 2 to 6] a child of a seed.
impl Offered for Talk<SeedDeriving> {
    type Kept = Making;

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let derivation = bip32(&mut inputs);
        let (settings, name) = pair::<SeedDeriving>(&mut inputs, derivation.encode()?)?;
        let vault = inputs.vault()?;
        let paired = vault.seeds.pair(&name)?;
        let place = vault.exact.reserve(BLOCKS)?;
        let circuit = vault.seeds.circuit(Step::Child)?;
        let kept = Making::new(&inputs, name, derivation.child_key_id, place)?;
        Ok(Prepared { settings, identity: None, input: SeedDerivingInput { paired, circuit }, kept })
    }

    fn done(child: Option<Child>, kept: &mut Making) -> proto::Done {
        kept.ecdsa_done(child)
    }
}

/// [Hardened 10, 11]
impl Offered for Talk<Slip10Deriving> {
    type Kept = Kept;

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let earlier = inputs.earlier_session()?;
        let below = inputs.derivation_path();
        let vault = inputs.vault()?;
        let level = match earlier {
            Some(session) => Some(vault.seeds.node(&session, &inputs.pair_name()?)?),
            None => None,
        };
        let known = level.as_ref().map_or(&[][..], |level| level.path());
        let path = [known, &below].concat();
        let derivation = Derivation { child_key_id: String::new(), known: known.len(), path };
        let (settings, name) = pair::<Slip10Deriving>(&mut inputs, derivation.encode()?)?;
        vault.seeds.has_room()?;
        let start = match level {
            Some(level) => Slip10Start::Level(level),
            None => {
                let paired = vault.seeds.pair(&name)?;
                let circuit = vault.seeds.circuit(Step::Slip10Master(paired.bytes()))?;
                Slip10Start::Seed(paired, circuit)
            }
        };
        let place = Some(vault.exact.reserve(BLOCKS)?);
        let circuit = vault.seeds.circuit(Step::Slip10Child)?;
        let session = *settings.session_id.as_bytes();
        let kept = Kept { seeds: vault.seeds.clone(), name, session, place };
        Ok(Prepared { settings, identity: None, input: Slip10DerivingInput { start, circuit }, kept })
    }

    fn done(level: Slip10Level, kept: &mut Kept) -> proto::Done {
        drop(kept.place.take());
        let chain_code = level.chain_code().to_vec();
        kept.seeds.put_node(kept.session, kept.name.clone(), level);
        proto::Done { chain_code, ..proto::Done::default() }
    }
}

/// [Hardened 12]
impl Offered for Talk<Slip10Keying> {
    /// With the chain code of the node.
    type Kept = (Making, [u8; 32]);

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let session = inputs.presignature_id()?;
        let vault = inputs.vault()?;
        let level = vault.seeds.node(&session, &inputs.pair_name()?)?;
        let path = level.path().to_vec();
        let derivation = Derivation { child_key_id: inputs.child_key_id(), known: path.len(), path };
        let (settings, name) = pair::<Slip10Keying>(&mut inputs, derivation.encode()?)?;
        let place = vault.exact.reserve(BLOCKS)?;
        let circuit = vault.seeds.circuit(Step::Slip10Key)?;
        let chain_code = *level.chain_code();
        let kept = (Making::new(&inputs, name, derivation.child_key_id, place)?, chain_code);
        let input = Slip10KeyingInput { level, circuit };
        Ok(Prepared { settings, identity: None, input, kept })
    }

    fn done(key: Slip10Key, (making, chain_code): &mut Self::Kept) -> proto::Done {
        proto::Done { chain_code: chain_code.to_vec(), ..making.ed25519_done(&key) }
    }
}
