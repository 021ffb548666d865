//! Whole sessions of threshold ECDSA in one call.

#![allow(dead_code, reason = "every test binary uses its own part")]

use std::collections::{BTreeMap, BTreeSet};

use engine::session::Session;
use engine::{PartySet, Protocol, SessionSettings, SetupError};
use protocols::ecdsa::{
    DerivationPath, KeyPublic, KeyShare, Keygen, PresignPayload, Presignature, PresignedSigning, Presigning,
    Refresh, Reshare, ReshareTerms, Reshared, SignInput, SignPayload, Signature, Signing,
};
use sim::{Address, Faults, Outcome, World};

use crate::common::{Started, evidence_key, party, rng, settings};

pub type Shares = BTreeMap<u32, KeyShare>;

pub fn data_key() -> engine::seal::DataKey {
    engine::seal::DataKey::new(engine::Secret::new([9; 32]))
}

pub fn start_keygen(me: u32, parties: &[u32], t: u32, session: u8, seed: u64) -> Started<Keygen> {
    let me = party(me);
    let mut rng = rng(seed ^ u64::from(me.get()) << 32);
    let settings = settings(Some(me), parties, t, session, &[]);
    Session::start(settings, Some(evidence_key(me)), (), &mut rng).unwrap()
}

pub fn keygen_with(
    parties: &[u32],
    t: u32,
    seed: u64,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<KeyShare>> {
    let started =
        parties.iter().map(|number| (Some(party(*number)), start_keygen(*number, parties, t, 1, seed)));
    World::new(seed, faults, started).run()
}

/// A whole key generation in which nothing happens: the shares by party number.
pub fn keygen(parties: &[u32], t: u32, seed: u64) -> Shares {
    by_number(keygen_with(parties, t, seed, Faults::default()))
}

pub fn by_number<T>(outcomes: BTreeMap<Address, Outcome<T>>) -> BTreeMap<u32, T> {
    outcomes
        .into_iter()
        .map(|(address, outcome)| {
            assert!(outcome.aborts.is_empty(), "{:?}", outcome.aborts);
            (address.map_or(0, |party| u32::from(party.get())), outcome.done.unwrap())
        })
        .collect()
}

/// A second share like the first: tests sign more than once with one key generation.
pub fn reopen(share: &KeyShare) -> KeyShare {
    let blob = share.seal(&data_key(), &mut rng(1)).unwrap();
    KeyShare::unseal(&data_key(), &blob, &share.label()).unwrap()
}

pub fn payload(digest: [u8; 32], path: &[u32]) -> SignPayload {
    SignPayload { digest, path: DerivationPath::new(path).unwrap(), presignature: None }
}

fn threshold_of(public: &KeyPublic) -> u32 {
    u32::try_from(public.threshold.get()).unwrap()
}

pub fn start_sign(
    share: KeyShare,
    signers: &[u32],
    session: u8,
    payload: &SignPayload,
) -> Result<Started<Signing>, SetupError> {
    let me = share.party();
    let mut settings = settings(Some(me), signers, threshold_of(share.public()), session, &payload.encode());
    settings.epoch = share.public().epoch;
    let mut rng = rng(u64::from(session) << 32 | u64::from(me.get()));
    Session::start(settings, None, SignInput::Party(Box::new(share)), &mut rng)
}

pub fn start_observer<P: Protocol<Input = SignInput<T>>, T>(
    public: &KeyPublic,
    signers: &[u32],
    session: u8,
    payload: &SignPayload,
) -> Result<Started<P>, SetupError> {
    let mut settings = settings(None, signers, threshold_of(public), session, &payload.encode());
    settings.epoch = public.epoch;
    Session::start(settings, None, SignInput::Observer(Box::new(public.clone())), &mut rng(2))
}

/// A whole signing in three rounds, observer included, in which `faults` happen.
pub fn sign_with(
    shares: &Shares,
    signers: &[u32],
    session: u8,
    payload: &SignPayload,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<Signature>> {
    let public = shares.values().next().unwrap().public();
    let mut started: Vec<_> = signers
        .iter()
        .map(|number| {
            (Some(party(*number)), start_sign(reopen(&shares[number]), signers, session, payload).unwrap())
        })
        .collect();
    started.push((None, start_observer(public, signers, session, payload).unwrap()));
    World::new(u64::from(session), faults, started).run()
}

pub fn presign_payload(path: &[u32], count: u8) -> Vec<u8> {
    PresignPayload { path: DerivationPath::new(path).unwrap(), count }.encode()
}

pub fn start_presign(
    share: KeyShare,
    signers: &[u32],
    session: u8,
    payload: &[u8],
) -> Result<Started<Presigning>, SetupError> {
    let me = share.party();
    let settings = settings(Some(me), signers, threshold_of(share.public()), session, payload);
    let mut rng = rng(u64::from(session) << 32 | u64::from(me.get()));
    Session::start(settings, None, share, &mut rng)
}

pub fn presign_with(
    shares: &Shares,
    signers: &[u32],
    session: u8,
    (path, count): (&[u32], u8),
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<Vec<Presignature>>> {
    let payload = presign_payload(path, count);
    let started: Vec<_> = signers
        .iter()
        .map(|number| {
            let session = start_presign(reopen(&shares[number]), signers, session, &payload);
            (Some(party(*number)), session.unwrap())
        })
        .collect();
    World::new(u64::from(session), faults, started).run()
}

/// A whole pre-signing of one presignature in which nothing happens: by party number.
pub fn presign(shares: &Shares, signers: &[u32], session: u8, path: &[u32]) -> BTreeMap<u32, Presignature> {
    presign_all(shares, signers, session, (path, 1)).pop().unwrap()
}

/// A whole pre-signing in which nothing happens: in order, by party number.
pub fn presign_all(
    shares: &Shares,
    signers: &[u32],
    session: u8,
    wanted: (&[u32], u8),
) -> Vec<BTreeMap<u32, Presignature>> {
    let mut places: Vec<_> = (0..wanted.1).map(|_| BTreeMap::new()).collect();
    for (number, made) in by_number(presign_with(shares, signers, session, wanted, Faults::default())) {
        assert_eq!(made.len(), places.len());
        for (place, presignature) in places.iter_mut().zip(made) {
            place.insert(number, presignature);
        }
    }
    places
}

pub fn start_presigned(
    presignature: Presignature,
    public: &KeyPublic,
    (me, signers): (u32, &[u32]),
    session: u8,
    payload: &SignPayload,
) -> Result<Started<PresignedSigning>, SetupError> {
    let settings = settings(Some(party(me)), signers, threshold_of(public), session, &payload.encode());
    Session::start(settings, None, SignInput::Party(Box::new(presignature)), &mut rng(3))
}

/// A whole signing in one round, observer included.
pub fn sign_presigned(
    public: &KeyPublic,
    presignatures: BTreeMap<u32, Presignature>,
    session: u8,
    payload: &SignPayload,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<Signature>> {
    let signers: Vec<u32> = presignatures.keys().copied().collect();
    let mut started: Vec<_> = presignatures
        .into_iter()
        .map(|(number, presignature)| {
            let started = start_presigned(presignature, public, (number, &signers), session, payload);
            (Some(party(number)), started.unwrap())
        })
        .collect();
    started.push((None, start_observer(public, &signers, session, payload).unwrap()));
    World::new(u64::from(session), faults, started).run()
}

/// A refresh of a key by all its parties.
pub fn refresh_settings(me: u32, public: &KeyPublic) -> SessionSettings {
    let mut payload = engine::wire::Writer::default();
    public.encode(&mut payload);
    let parties: Vec<u32> = public.parties().iter().map(|party| party.get().into()).collect();
    let mut settings = settings(Some(party(me)), &parties, threshold_of(public), 77, &payload.finish());
    settings.epoch = public.epoch + 1;
    settings
}

pub fn refresh_with(shares: &Shares, faults: Faults<'_>) -> BTreeMap<Address, Outcome<KeyShare>> {
    let started: Vec<_> = shares
        .iter()
        .map(|(number, share)| {
            let settings = refresh_settings(*number, share.public());
            let key = evidence_key(party(*number));
            let session =
                Session::<Refresh>::start(settings, Some(key), reopen(share), &mut rng(u64::from(*number)));
            (Some(party(*number)), session.unwrap())
        })
        .collect();
    World::new(7, faults, started).run()
}

/// The dealers, the receivers, and the new threshold.
pub struct Change<'a> {
    pub dealers: &'a [u32],
    pub receivers: &'a [u32],
    pub t: u32,
}

pub fn set(numbers: &[u32]) -> PartySet {
    numbers.iter().map(|number| party(*number)).collect()
}

pub fn everybody(change: &Change<'_>) -> Vec<u32> {
    change.dealers.iter().chain(change.receivers).copied().collect::<BTreeSet<_>>().into_iter().collect()
}

pub fn reshare_settings(
    me: Option<u32>,
    base: &KeyPublic,
    change: &Change<'_>,
    session: u8,
) -> SessionSettings {
    let terms =
        ReshareTerms { dealers: set(change.dealers), receivers: set(change.receivers), base: base.clone() };
    let me = me.map(party);
    let mut settings = settings(me, &everybody(change), change.t, session, &terms.encode());
    settings.epoch = base.epoch + 1;
    settings
}

pub fn start_reshare(
    me: u32,
    share: Option<KeyShare>,
    base: &KeyPublic,
    change: &Change<'_>,
    session: u8,
) -> Result<Started<Reshare>, SetupError> {
    let settings = reshare_settings(Some(me), base, change, session);
    Session::start(settings, Some(evidence_key(party(me))), share, &mut rng(u64::from(me)))
}

pub fn reshare_from(
    shares: &Shares,
    deal: impl Fn(u32, KeyShare) -> KeyShare,
    change: &Change<'_>,
    session: u8,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<Reshared>> {
    let base = shares.values().next().unwrap().public();
    let started: Vec<_> = everybody(change)
        .into_iter()
        .map(|me| {
            let share = change.dealers.contains(&me).then(|| deal(me, reopen(&shares[&me])));
            (Some(party(me)), start_reshare(me, share, base, change, session).unwrap())
        })
        .collect();
    World::new(u64::from(session), faults, started).run()
}

pub fn reshare_with(
    shares: &Shares,
    change: &Change<'_>,
    session: u8,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<Reshared>> {
    reshare_from(shares, |_, share| share, change, session, faults)
}

/// Verified by libsecp256k1: the signature, its low s, and the key that its recovery id gives.
pub fn verify_outside(public_key: &protocols::ecdsa::Point, digest: [u8; 32], signature: &Signature) {
    use secp256k1::ecdsa::{self, RecoverableSignature, RecoveryId};
    let expected =
        secp256k1::PublicKey::from_slice(&primitives::secp256k1::encode_point(public_key)).unwrap();
    let message = secp256k1::Message::from_digest(digest);
    let compact = ecdsa::Signature::from_compact(&signature.to_compact()).unwrap();
    ecdsa::verify(&compact, message, &expected).unwrap();
    let der = ecdsa::Signature::from_der(&signature.to_der()).unwrap();
    assert_eq!(der, compact);
    let mut normal = compact;
    normal.normalize_s();
    assert_eq!(normal, compact);
    let recovery_id = RecoveryId::try_from(i32::from(signature.recovery_id())).unwrap();
    let recoverable = RecoverableSignature::from_compact(&signature.to_compact(), recovery_id).unwrap();
    assert_eq!(recoverable.recover_ecdsa(message).unwrap(), expected);
    assert!(signature.verifies(public_key, &digest));
}
