//! Whole sessions in one call, and signatures verified by libraries that are not ours.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use engine::session::Session;
use engine::wire::Writer;
use engine::{PartySet, Protocol, SessionSettings, SetupError};
use protocols::bip32::DerivationPath;
use protocols::frost::{
    Bip340, Ed25519, KeyPublic, KeyShare, Keygen, PresignPayload, Presignature, PresignedSigning, Presigning,
    Refresh, Reshare, ReshareTerms, Reshared, SignInput, SignPayload, Signature, Signing, Suite, Taproot,
    Target,
};
use sim::{Address, Faults, Outcome, World};

use crate::common::{Started, evidence_key, party, rng, settings};

pub type Shares<S> = BTreeMap<u32, KeyShare<S>>;

/// Everything that the tests need of a suite beside what it is.
pub trait Tested: Suite + core::fmt::Debug {
    /// Where flipping the lowest bit of a scalar is.
    const LOW_BYTE: usize;
    /// 32 bytes that are no scalar.
    const NO_SCALAR: [u8; 32];

    /// By a library that none of our code uses for that.
    fn verify_outside(key: &[u8; 32], message: &[u8], signature: &Signature) -> bool;

    /// Targets to sign for.
    fn targets() -> Vec<Target>;
}

impl Tested for Ed25519 {
    const LOW_BYTE: usize = 0;
    const NO_SCALAR: [u8; 32] = [0x1f; 32];

    fn verify_outside(key: &[u8; 32], message: &[u8], signature: &Signature) -> bool {
        let key = ed25519_dalek::VerifyingKey::from_bytes(key).unwrap();
        key.verify_strict(message, &ed25519_dalek::Signature::from_bytes(signature)).is_ok()
    }

    fn targets() -> Vec<Target> {
        vec![Target::default()]
    }
}

impl Tested for Bip340 {
    const LOW_BYTE: usize = 31;
    const NO_SCALAR: [u8; 32] = [0xff; 32];

    fn verify_outside(key: &[u8; 32], message: &[u8], signature: &Signature) -> bool {
        let key = secp256k1::XOnlyPublicKey::from_byte_array(*key).unwrap();
        let signature = secp256k1::schnorr::Signature::from_byte_array(*signature);
        secp256k1::schnorr::verify(&signature, message, &key).is_ok()
    }

    fn targets() -> Vec<Target> {
        let path = |steps: &[u32]| DerivationPath::new(steps).unwrap();
        vec![
            Target::default(),
            Target { path: path(&[]), taproot: Some(Taproot::KeyOnly) },
            Target { path: path(&[86, 0, 3]), taproot: None },
            Target { path: path(&[86, 0, 4]), taproot: Some(Taproot::KeyOnly) },
            Target { path: path(&[9]), taproot: Some(Taproot::MerkleRoot([0xab; 32])) },
        ]
    }
}

/// A suite with a key of three parties, two of whom sign, that is made once.
pub trait Keyed: Tested + 'static {
    fn keyed() -> &'static Shares<Self>;
}

impl Keyed for Ed25519 {
    fn keyed() -> &'static Shares<Self> {
        static SHARES: LazyLock<Shares<Ed25519>> = LazyLock::new(|| keygen(&[1, 2, 3], 2, 11));
        &SHARES
    }
}

impl Keyed for Bip340 {
    fn keyed() -> &'static Shares<Self> {
        static SHARES: LazyLock<Shares<Bip340>> = LazyLock::new(|| keygen(&[1, 2, 3], 2, 11));
        &SHARES
    }
}

pub fn message(number: u8) -> Vec<u8> {
    vec![number; 32]
}

pub fn data_key() -> engine::seal::DataKey {
    engine::seal::DataKey::new(engine::Secret::new([9; 32]))
}

pub fn start_keygen<S: Suite>(
    me: u32,
    parties: &[u32],
    t: u32,
    session: u8,
    seed: u64,
) -> Started<Keygen<S>> {
    let me = party(me);
    let mut rng = rng(seed ^ u64::from(me.get()) << 32);
    let settings = settings(Some(me), parties, t, session, &[]);
    Session::start(settings, Some(evidence_key(me)), (), &mut rng).unwrap()
}

pub fn keygen_with<S: Suite>(
    parties: &[u32],
    t: u32,
    (session, seed): (u8, u64),
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<KeyShare<S>>> {
    let started = parties
        .iter()
        .map(|number| (Some(party(*number)), start_keygen::<S>(*number, parties, t, session, seed)));
    World::new(seed, faults, started).run()
}

/// A whole key generation in which nothing happens: the shares by party number.
pub fn keygen<S: Suite>(parties: &[u32], t: u32, seed: u64) -> Shares<S> {
    by_number(keygen_with(parties, t, (1, seed), Faults::default()))
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
pub fn reopen<S: Suite>(share: &KeyShare<S>) -> KeyShare<S> {
    let blob = share.seal(&data_key(), &mut rng(1)).unwrap();
    KeyShare::unseal(&data_key(), &blob, &share.label()).unwrap()
}

pub fn payload(message: Vec<u8>, target: &Target) -> SignPayload {
    SignPayload { target: target.clone(), presignature: None, message }
}

fn threshold_of<S: Suite>(public: &KeyPublic<S>) -> u32 {
    u32::try_from(public.threshold.get()).unwrap()
}

pub fn start_sign<S: Suite>(
    share: KeyShare<S>,
    signers: &[u32],
    session: u8,
    payload: &SignPayload,
) -> Result<Started<Signing<S>>, SetupError> {
    let me = share.party();
    let mut settings = settings(Some(me), signers, threshold_of(share.public()), session, &payload.encode());
    settings.epoch = share.public().epoch;
    let mut rng = rng(u64::from(session) << 32 | u64::from(me.get()));
    Session::start(settings, None, SignInput::Party(Box::new(share)), &mut rng)
}

pub fn start_observer<S: Suite, P: Protocol<Input = SignInput<S, T>>, T>(
    public: &KeyPublic<S>,
    signers: &[u32],
    session: u8,
    payload: &SignPayload,
) -> Result<Started<P>, SetupError> {
    let mut settings = settings(None, signers, threshold_of(public), session, &payload.encode());
    settings.epoch = public.epoch;
    Session::start(settings, None, SignInput::Observer(Box::new(public.clone())), &mut rng(2))
}

/// A whole signing in two rounds, observer included, in which `faults` happen.
pub fn sign_with<S: Suite>(
    shares: &Shares<S>,
    signers: &[u32],
    session: u8,
    payload: &SignPayload,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<Signature>> {
    let public = shares.values().next().unwrap().public();
    let mut started: Vec<_> = signers
        .iter()
        .map(|number| {
            let session = start_sign(reopen(&shares[number]), signers, session, payload);
            (Some(party(*number)), session.unwrap())
        })
        .collect();
    started.push((None, start_observer(public, signers, session, payload).unwrap()));
    World::new(u64::from(session), faults, started).run()
}

pub fn start_presign<S: Suite>(
    share: KeyShare<S>,
    signers: &[u32],
    session: u8,
    payload: &[u8],
) -> Result<Started<Presigning<S>>, SetupError> {
    let me = share.party();
    let t = threshold_of(share.public());
    let mut rng = rng(u64::from(session) << 32 | u64::from(me.get()));
    Session::start(settings(Some(me), signers, t, session, payload), None, share, &mut rng)
}

pub fn presign_with<S: Suite>(
    shares: &Shares<S>,
    signers: &[u32],
    session: u8,
    (target, count): (&Target, u8),
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<Vec<Presignature<S>>>> {
    let payload = PresignPayload { target: target.clone(), count }.encode();
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
pub fn presign<S: Suite>(
    shares: &Shares<S>,
    signers: &[u32],
    session: u8,
    target: &Target,
) -> BTreeMap<u32, Presignature<S>> {
    presign_all(shares, signers, session, (target, 1)).pop().unwrap()
}

/// A whole pre-signing in which nothing happens: in order, by party number.
pub fn presign_all<S: Suite>(
    shares: &Shares<S>,
    signers: &[u32],
    session: u8,
    wanted: (&Target, u8),
) -> Vec<BTreeMap<u32, Presignature<S>>> {
    let mut places: Vec<_> = (0..wanted.1).map(|_| BTreeMap::new()).collect();
    for (number, made) in by_number(presign_with(shares, signers, session, wanted, Faults::default())) {
        assert_eq!(made.len(), places.len());
        for (place, presignature) in places.iter_mut().zip(made) {
            place.insert(number, presignature);
        }
    }
    places
}

pub fn start_presigned<S: Suite>(
    presignature: Presignature<S>,
    public: &KeyPublic<S>,
    (me, signers): (u32, &[u32]),
    session: u8,
    payload: &SignPayload,
) -> Result<Started<PresignedSigning<S>>, SetupError> {
    let settings = settings(Some(party(me)), signers, threshold_of(public), session, &payload.encode());
    Session::start(settings, None, SignInput::Party(Box::new(presignature)), &mut rng(3))
}

/// A whole signing in one round, observer included; every presignature has been sealed and opened before.
pub fn sign_presigned<S: Suite>(
    public: &KeyPublic<S>,
    presignatures: BTreeMap<u32, Presignature<S>>,
    session: u8,
    payload: &SignPayload,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<Signature>> {
    let signers: Vec<u32> = presignatures.keys().copied().collect();
    let mut started: Vec<_> = presignatures
        .into_iter()
        .map(|(number, presignature)| {
            let blob = presignature.seal(&data_key(), &mut rng(4)).unwrap();
            let presignature = Presignature::unseal(&data_key(), &blob).unwrap();
            let started = start_presigned(presignature, public, (number, &signers), session, payload);
            (Some(party(number)), started.unwrap())
        })
        .collect();
    started.push((None, start_observer(public, &signers, session, payload).unwrap()));
    World::new(u64::from(session), faults, started).run()
}

/// A refresh of a key by all its parties.
pub fn refresh_settings<S: Suite>(me: u32, public: &KeyPublic<S>) -> SessionSettings {
    let mut payload = Writer::default();
    public.encode(&mut payload);
    let parties: Vec<u32> = public.parties().iter().map(|party| party.get().into()).collect();
    let mut settings = settings(Some(party(me)), &parties, threshold_of(public), 77, &payload.finish());
    settings.epoch = public.epoch + 1;
    settings
}

pub fn refresh_with<S: Suite>(
    shares: &Shares<S>,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<KeyShare<S>>> {
    let started: Vec<_> = shares
        .iter()
        .map(|(number, share)| {
            let settings = refresh_settings(*number, share.public());
            let key = evidence_key(party(*number));
            let mut rng = rng(u64::from(*number));
            let session = Session::<Refresh<S>>::start(settings, Some(key), reopen(share), &mut rng);
            (Some(party(*number)), session.unwrap())
        })
        .collect();
    World::new(7, faults, started).run()
}

/// From whom to whom.
pub struct Change<'a> {
    pub dealers: &'a [u32],
    pub receivers: &'a [u32],
    pub t: u32,
}

pub fn set(numbers: &[u32]) -> PartySet {
    numbers.iter().map(|number| party(*number)).collect()
}

pub fn everybody(change: &Change<'_>) -> Vec<u32> {
    let all: BTreeSet<u32> = change.dealers.iter().chain(change.receivers).copied().collect();
    all.into_iter().collect()
}

pub fn reshare_settings<S: Suite>(
    me: Option<u32>,
    base: &KeyPublic<S>,
    change: &Change<'_>,
    session: u8,
) -> SessionSettings {
    let terms =
        ReshareTerms { dealers: set(change.dealers), receivers: set(change.receivers), base: base.clone() };
    let mut settings = settings(me.map(party), &everybody(change), change.t, session, &terms.encode());
    settings.epoch = base.epoch + 1;
    settings
}

pub fn start_reshare<S: Suite>(
    me: u32,
    share: Option<KeyShare<S>>,
    base: &KeyPublic<S>,
    change: &Change<'_>,
    session: u8,
) -> Result<Started<Reshare<S>>, SetupError> {
    let settings = reshare_settings(Some(me), base, change, session);
    Session::start(settings, Some(evidence_key(party(me))), share, &mut rng(u64::from(me)))
}

pub fn reshare_with<S: Suite>(
    shares: &Shares<S>,
    change: &Change<'_>,
    session: u8,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<Reshared<S>>> {
    let base = shares.values().next().unwrap().public();
    let started: Vec<_> = everybody(change)
        .into_iter()
        .map(|me| {
            let share = change.dealers.contains(&me).then(|| reopen(&shares[&me]));
            (Some(party(me)), start_reshare(me, share, base, change, session).unwrap())
        })
        .collect();
    World::new(u64::from(session), faults, started).run()
}

/// All have the same signature, and outside libraries accept it for this key and message only.
pub fn check<S: Tested>(public: &KeyPublic<S>, payload: &SignPayload, signatures: &BTreeMap<u32, Signature>) {
    let signature = signatures.values().next().unwrap();
    assert!(signatures.values().all(|other| other == signature));
    let key = public.verifier_key(&payload.target).unwrap();
    assert!(S::verify_outside(&key, &payload.message, signature));
    let mut other = payload.message.clone();
    other[0] ^= 1;
    assert!(!S::verify_outside(&key, &other, signature));
}
