//! Imported Ed25519 keys that sign exactly as RFC 8032 says, through the interface. Steps are cited as [Ed25519 2]
//! (`docs/protocols/ed25519-rfc8032.md`).
//!
//! A set-up of a pair, prepared signatures and open nonces live in the vault and have no form in which they could be
//! stored.

mod call;

use std::sync::Arc;

use circuit_sessions::{
    Answer, AnswerInput, Nonce, NonceInput, OpenNonce, Paired, Pairing, Preparing, PreparingInput, Subject,
    Talk,
};
use circuits::ed25519::{ImportedShare, MAX_BLOCKS, Ready, blocks};
use engine::seal::{SealKind, ShareLabel};
use engine::{PartyId, SessionSettings, SetupError, Threshold};

use crate::inputs::{Inputs, SealedShare, StartError};
use crate::pairs::{Exact, Made, PairName, Place};
use crate::proto;
use crate::session::{Offered, Prepared};

pub(crate) use call::{call, holders, number};

const FAMILY: &str = "ed25519-exact";
/// Shares of an imported key or seed have one generation, and its threshold is two.
pub(crate) const EPOCH: u32 = 1;

/// The label of a share of an imported key or seed.
pub(crate) fn imported(family: &str, key_id: &str, party: PartyId) -> Result<ShareLabel, SetupError> {
    let threshold = Threshold::new(2).ok_or(SetupError::ThresholdRange)?;
    if key_id.is_empty() || key_id.len() > engine::MAX_KEY_ID_BYTES {
        return Err(SetupError::KeyIdLength);
    }
    Ok(ShareLabel { family: family.to_owned(), key_id: key_id.to_owned(), party, epoch: EPOCH, threshold })
}

fn label(key_id: &str, party: PartyId) -> Result<ShareLabel, SetupError> {
    imported(FAMILY, key_id, party)
}

/// The public data of the key that a share is of; `None` if the share is not one.
fn key_public(share: &ImportedShare, key_id: &str) -> Option<proto::KeyPublic> {
    let point = |(party, point): (u16, [u8; 32])| proto::VerificationShare {
        party: party.into(),
        point: point.to_vec(),
    };
    Some(proto::KeyPublic {
        public_key: share.public_key.to_vec(),
        threshold: 2,
        key_id: key_id.to_owned(),
        epoch: EPOCH,
        verification_shares: share.points()?.into_iter().map(point).collect(),
        ..proto::KeyPublic::default()
    })
}

/// Opens an imported share that must be that of the session's key or seed, and party.
pub(crate) fn open<T>(
    sealed: &SealedShare<'_>,
    decode: impl FnOnce(&[u8]) -> Option<T>,
) -> Result<T, StartError> {
    let label = ShareLabel::peek(sealed.blob).map_err(|_| StartError::Unseal)?;
    if label != sealed.label {
        return Err(SetupError::ShareMismatch.into());
    }
    let unsealed = sealed.key.unseal(SealKind::KeyShare, &[], sealed.blob).map_err(|_| StartError::Unseal)?;
    decode(unsealed.secret.expose()).ok_or(SetupError::ShareInvalid.into())
}

/// The settings of a session of two parties of an imported key or seed, and their name in the vault.
pub(crate) fn pair<S: Subject>(
    inputs: &mut Inputs<'_>,
    payload: Vec<u8>,
) -> Result<(SessionSettings, PairName), SetupError> {
    let (settings, name) = two::<S>(inputs, payload)?;
    if settings.epoch == EPOCH { Ok((settings, name)) } else { Err(SetupError::EpochRange) }
}

/// The settings of a session of two parties, and their name in the vault.
pub(crate) fn two<S: Subject>(
    inputs: &mut Inputs<'_>,
    payload: Vec<u8>,
) -> Result<(SessionSettings, PairName), SetupError> {
    let settings = inputs.settings::<Talk<S>>(payload)?;
    let me = settings.me.ok_or(SetupError::ObserverNotAllowed)?;
    let peers: Vec<PartyId> =
        settings.roster.iter().map(|entry| entry.id).filter(|party| *party != me).collect();
    let ([peer], 2) = (peers.as_slice(), settings.roster.len()) else { return Err(SetupError::PartyCount) };
    let name = PairName { key_id: settings.key_id.clone(), me, peer: *peer };
    Ok((settings, name))
}

/// The place in the vault of what a session makes.
pub(crate) struct Kept<T> {
    stock: Exact,
    name: PairName,
    session: [u8; 32],
    with: T,
}

impl<T> Kept<T> {
    fn new(
        inputs: &Inputs<'_>,
        name: PairName,
        settings: &SessionSettings,
        with: T,
    ) -> Result<Self, SetupError> {
        let stock = inputs.vault()?.exact.clone();
        Ok(Self { stock, name, session: *settings.session_id.as_bytes(), with })
    }
}

/// [Ed25519 2, 3]
impl Offered for Talk<Pairing> {
    type Kept = Kept<proto::KeyPublic>;

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let sealed = inputs.sealed_share(FAMILY)?;
        let (settings, name) = pair::<Pairing>(&mut inputs, Vec::new())?;
        let share = open(&sealed, ImportedShare::decode)?;
        let public = key_public(&share, &name.key_id).ok_or(SetupError::ShareInvalid)?;
        let kept = Kept::new(&inputs, name, &settings, public)?;
        Ok(Prepared { settings, identity: None, input: share, kept })
    }

    fn done(paired: Paired, kept: &mut Self::Kept) -> proto::Done {
        kept.stock.put_pair(kept.name.clone(), paired);
        proto::Done { key_public: Some(kept.with.clone()), ..proto::Done::default() }
    }
}

/// The parts that a preparation was begun with.
type Begun = Option<Made<()>>;

/// [Ed25519 4]
impl Offered for Talk<Preparing> {
    type Kept = Kept<Begun>;

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let blocks = inputs.message_blocks() as usize;
        if !(1..=MAX_BLOCKS).contains(&blocks) {
            return Err(SetupError::MessageBlocks.into());
        }
        let (settings, name) = pair::<Preparing>(&mut inputs, Vec::new())?;
        let stock = &inputs.vault()?.exact;
        let paired = stock.pair(&name)?;
        let place = stock.reserve(blocks)?;
        let circuit = stock.circuit(blocks)?;
        let input = PreparingInput { paired: Arc::clone(&paired), circuit: Arc::clone(&circuit) };
        let begun = Some(Made { paired, circuit, place, what: () });
        let kept = Kept::new(&inputs, name, &settings, begun)?;
        Ok(Prepared { settings, identity: None, input, kept })
    }

    fn done(ready: Ready, kept: &mut Self::Kept) -> proto::Done {
        let id = kept.session;
        if let Some(begun) = kept.with.take() {
            kept.stock.put_ready(id, kept.name.clone(), begun.with(ready));
        }
        let presignature = proto::Presignature { id: id.to_vec(), sealed: Vec::new() };
        proto::Done { presignatures: vec![presignature], ..proto::Done::default() }
    }
}

/// [Ed25519 5, 6]
impl Offered for Talk<OpenNonce> {
    type Kept = Kept<Option<Place>>;

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let (id, message) = (inputs.presignature_id()?, inputs.payload());
        let count = blocks(message.len());
        let (settings, name) = pair::<OpenNonce>(&mut inputs, message)?;
        // From here on it is used up, whatever comes of it.
        let Made { paired, circuit, place, what } = inputs.vault()?.exact.take_ready(&id, &name, count)?;
        let kept = Kept::new(&inputs, name, &settings, Some(place))?;
        let input = NonceInput { paired, circuit, ready: what };
        Ok(Prepared { settings, identity: None, input, kept })
    }

    fn done(nonce: Nonce, kept: &mut Self::Kept) -> proto::Done {
        let nonce_point = nonce.point().to_vec();
        if let Some(place) = kept.with.take() {
            kept.stock.put_nonce(kept.session, kept.name.clone(), nonce, place);
        }
        proto::Done { nonce_point, ..proto::Done::default() }
    }
}

/// [Ed25519 7 to 9]
impl Offered for Talk<Answer> {
    type Kept = ();

    fn prepare(mut inputs: Inputs<'_>) -> Result<Prepared<Self>, StartError> {
        inputs.party_only()?;
        let (id, recorded, message) = (inputs.presignature_id()?, inputs.recorded_nonce()?, inputs.payload());
        let (settings, name) = pair::<Answer>(&mut inputs, message)?;
        let nonce = inputs.vault()?.exact.take_nonce(&id, &name)?;
        Ok(Prepared { settings, identity: None, input: AnswerInput { nonce, recorded }, kept: () })
    }

    fn done(signature: [u8; 64], (): &mut ()) -> proto::Done {
        proto::Done { signature: signature.to_vec(), ..proto::Done::default() }
    }
}
