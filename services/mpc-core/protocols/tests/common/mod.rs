//! The common code of the tests of all schemes: parties with evidence keys, and whole sessions in one call.

#![allow(dead_code, reason = "every test binary uses its own part")]

use std::collections::BTreeMap;

use engine::session::{Session, Step};
use engine::{
    EvidenceKey, PartyId, RosterEntry, Secret, SessionContext, SessionId, SessionSettings, SetupError,
    Threshold,
};
use protocols::bls::{KeyPublic, KeyShare, Keygen, SignInput, SignOutput, Signing};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use sim::{Address, Faults, Outcome, World};

pub const KEY_ID: &str = "keys/test";

pub fn party(number: u32) -> PartyId {
    PartyId::new(number).unwrap()
}

pub fn threshold(number: u32) -> Threshold {
    Threshold::new(number).unwrap()
}

pub fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// The same key every time, so that a test can sign as any party.
pub fn evidence_key(id: PartyId) -> EvidenceKey {
    let mut seed = [7u8; 32];
    seed[..2].copy_from_slice(&id.get().to_be_bytes());
    EvidenceKey::from_seed(&Secret::new(seed))
}

pub fn roster(parties: &[u32]) -> Vec<RosterEntry> {
    parties
        .iter()
        .map(|number| {
            let id = party(*number);
            RosterEntry { id, evidence_key: Some(evidence_key(id).public()) }
        })
        .collect()
}

pub fn settings(me: Address, parties: &[u32], t: u32, session: u8, payload: &[u8]) -> SessionSettings {
    SessionSettings {
        session_id: SessionId::new([session; 32]),
        me,
        roster: roster(parties),
        threshold: threshold(t),
        key_id: KEY_ID.to_owned(),
        epoch: 1,
        payload: payload.to_vec(),
    }
}

pub type Started<P> = (Session<P>, Step<<P as engine::Protocol>::Output>);

pub fn start_keygen(me: u32, parties: &[u32], t: u32, session: u8, seed: u64) -> Started<Keygen> {
    let me = party(me);
    let mut rng = rng(seed ^ u64::from(me.get()) << 32);
    let settings = settings(Some(me), parties, t, session, &[]);
    Session::start(settings, Some(evidence_key(me)), (), &mut rng).unwrap()
}

pub fn keygen_context(parties: &[u32], t: u32, session: u8) -> SessionContext {
    SessionContext::for_test::<Keygen>(settings(None, parties, t, session, &[])).unwrap()
}

/// A whole key generation in which `faults` happen.
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
pub fn keygen(parties: &[u32], t: u32, seed: u64) -> BTreeMap<u32, KeyShare> {
    keygen_with(parties, t, seed, Faults::default())
        .into_iter()
        .map(|(address, outcome)| (u32::from(address.unwrap().get()), outcome.done.unwrap()))
        .collect()
}

/// A second share like the first: tests sign more than once with one key generation.
pub fn reopen(share: &KeyShare) -> KeyShare {
    let key = engine::seal::DataKey::new(Secret::new([9; 32]));
    let blob = share.seal(&key, &mut rng(1)).unwrap();
    KeyShare::unseal(&key, &blob, &share.label()).unwrap()
}

pub fn start_sign(
    share: &KeyShare,
    signers: &[u32],
    session: u8,
    message: &[u8],
) -> Result<Started<Signing>, SetupError> {
    let t = u32::try_from(share.public().threshold.get()).unwrap();
    let mut settings = settings(Some(share.party()), signers, t, session, message);
    settings.epoch = share.public().epoch;
    Session::start(settings, None, SignInput::Party(Box::new(reopen(share))), &mut rng(2))
}

pub fn start_observer(
    public: &KeyPublic,
    signers: &[u32],
    session: u8,
    message: &[u8],
) -> Result<Started<Signing>, SetupError> {
    let t = u32::try_from(public.threshold.get()).unwrap();
    let mut settings = settings(None, signers, t, session, message);
    settings.epoch = public.epoch;
    Session::start(settings, None, SignInput::Observer(Box::new(public.clone())), &mut rng(2))
}

/// A whole signing, observer included, in which `faults` happen.
pub fn sign_with(
    shares: &BTreeMap<u32, KeyShare>,
    signers: &[u32],
    message: &[u8],
    seed: u64,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<SignOutput>> {
    let public = shares.values().next().unwrap().public();
    let mut started: Vec<_> = signers
        .iter()
        .map(|number| (Some(party(*number)), start_sign(&shares[number], signers, 2, message).unwrap()))
        .collect();
    started.push((None, start_observer(public, signers, 2, message).unwrap()));
    World::new(seed, faults, started).run()
}

/// Makes [`bent`] leave everything as it is.
pub const AS_IT_IS: [u8; 3] = [1, 0, 0];

/// `data` itself, or, if its first byte is odd, `genuine` with the rest laid over it from a place that the next two
/// bytes say.
pub fn bent(genuine: &[u8], data: &[u8]) -> Vec<u8> {
    match data.split_first_chunk::<3>() {
        Some(([mode, high, low], bytes)) if mode & 1 == 1 && !genuine.is_empty() => {
            let at = usize::from(u16::from_be_bytes([*high, *low])) % genuine.len();
            let mut bent = genuine.to_vec();
            for (place, byte) in bent[at..].iter_mut().zip(bytes) {
                *place ^= byte;
            }
            bent
        }
        _ => data.to_vec(),
    }
}
