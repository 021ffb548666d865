//! Whole sessions of any scheme in one call.

use std::collections::{BTreeMap, BTreeSet};

use engine::seal::DataKey;
use engine::session::Session;
use engine::wire::Writer;
use engine::{PartyId, PartySet, Secret, SessionSettings, SetupError};
use protocols::dealing::{Generated, Keygen, Public, Refresh, Reshare, ReshareTerms, Reshared, Scheme};
use protocols::frost::Frost;
use protocols::{bls, ecdsa, frost};
use sim::{Address, Faults, Outcome, World};

use crate::common::{Started, evidence_key, party, rng, settings};

pub use protocols::bls::Bls;
pub use protocols::ecdsa::Ecdsa;
pub type Ed25519 = Frost<frost::Ed25519>;
pub type Bip340 = Frost<frost::Bip340>;

pub type Shares<S> = BTreeMap<u32, <S as Scheme>::Share>;

pub fn data_key() -> DataKey {
    DataKey::new(Secret::new([9; 32]))
}

/// Everything that the tests need of a scheme beside what it is.
pub trait Tested: Scheme {
    /// Bytes of an encoded point.
    const POINT: usize;
    /// 32 bytes that are no scalar.
    const NO_SCALAR: [u8; 32];
    /// Where flipping the lowest bit of a scalar is.
    const LOW_BYTE: usize;

    /// A new key: the shares by party number.
    fn keys(parties: &[u32], t: u32, seed: u64) -> Shares<Self>;
    fn reopen(share: &Self::Share) -> Self::Share;
    /// With a secret that is off by one.
    fn shifted(share: Self::Share) -> Self::Share;
    fn public_of(share: &Self::Share) -> &Self::Public;
}

macro_rules! tested {
    ($scheme:ty, $share:ty, $point:literal, $low:literal, $no_scalar:expr, $keys:expr) => {
        impl Tested for $scheme {
            const POINT: usize = $point;
            const NO_SCALAR: [u8; 32] = $no_scalar;
            const LOW_BYTE: usize = $low;

            fn keys(parties: &[u32], t: u32, seed: u64) -> Shares<Self> {
                $keys(parties, t, seed)
            }

            fn reopen(share: &$share) -> $share {
                let blob = share.seal(&data_key(), &mut rng(1)).unwrap();
                <$share>::unseal(&data_key(), &blob, &share.label()).unwrap()
            }

            fn shifted(share: $share) -> $share {
                share.shifted()
            }

            fn public_of(share: &$share) -> &Self::Public {
                share.public()
            }
        }
    };
}

tested!(Bls, bls::KeyShare, 48, 31, [0xff; 32], crate::common::keygen);
tested!(Ecdsa, ecdsa::KeyShare, 33, 31, [0xff; 32], keygen::<Ecdsa>);
tested!(Ed25519, frost::KeyShare<frost::Ed25519>, 32, 0, [0x1f; 32], keygen::<Ed25519>);
tested!(Bip340, frost::KeyShare<frost::Bip340>, 33, 31, [0xff; 32], keygen::<Bip340>);

pub fn set(numbers: &[u32]) -> PartySet {
    numbers.iter().map(|number| party(*number)).collect()
}

pub fn numbers(parties: &PartySet) -> Vec<u32> {
    parties.iter().map(|party| u32::from(party.get())).collect()
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

pub fn start_keygen<S: Generated>(
    me: u32,
    parties: &[u32],
    t: u32,
    (session, seed): (u8, u64),
) -> Started<Keygen<S>> {
    let me = party(me);
    let mut rng = rng(seed ^ u64::from(me.get()) << 32);
    let settings = settings(Some(me), parties, t, session, &[]);
    Session::start(settings, Some(evidence_key(me)), (), &mut rng).unwrap()
}

pub fn keygen_with<S: Generated>(
    parties: &[u32],
    t: u32,
    (session, seed): (u8, u64),
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<S::Share>> {
    let start =
        |number: &u32| (Some(party(*number)), start_keygen::<S>(*number, parties, t, (session, seed)));
    World::new(seed, faults, parties.iter().map(start)).run()
}

pub fn keygen<S: Generated>(parties: &[u32], t: u32, seed: u64) -> Shares<S> {
    by_number(keygen_with::<S>(parties, t, (1, seed), Faults::default()))
}

pub fn refresh_settings<S: Scheme>(me: Option<u32>, public: &S::Public, session: u8) -> SessionSettings {
    let mut payload = Writer::default();
    public.encode(&mut payload);
    let t = u32::try_from(public.threshold().get()).unwrap();
    let parties = numbers(&public.parties());
    let mut settings = settings(me.map(party), &parties, t, session, &payload.finish());
    settings.epoch = public.epoch() + 1;
    settings
}

pub fn start_refresh<S: Tested>(me: u32, share: S::Share, session: u8) -> Started<Refresh<S>> {
    let settings = refresh_settings::<S>(Some(me), S::public_of(&share), session);
    Session::start(settings, Some(evidence_key(party(me))), share, &mut rng(u64::from(me))).unwrap()
}

pub fn refresh_with<S: Tested>(
    shares: &Shares<S>,
    session: u8,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<S::Share>> {
    let start = |(number, share): (&u32, &S::Share)| {
        (Some(party(*number)), start_refresh::<S>(*number, S::reopen(share), session))
    };
    World::new(7, faults, shares.iter().map(start)).run()
}

/// From whom to whom.
pub struct Change<'a> {
    pub dealers: &'a [u32],
    pub receivers: &'a [u32],
    pub t: u32,
}

impl Change<'_> {
    pub fn everybody(&self) -> Vec<u32> {
        let all: BTreeSet<u32> = self.dealers.iter().chain(self.receivers).copied().collect();
        all.into_iter().collect()
    }
}

pub fn reshare_settings<S: Scheme>(
    me: Option<u32>,
    base: &S::Public,
    change: &Change<'_>,
    session: u8,
) -> SessionSettings {
    let (dealers, receivers) = (set(change.dealers), set(change.receivers));
    let terms = ReshareTerms::<S> { dealers, receivers, base: base.clone() };
    let mut settings = settings(me.map(party), &change.everybody(), change.t, session, &terms.encode());
    settings.epoch = base.epoch() + 1;
    settings
}

pub fn start_reshare<S: Tested>(
    me: u32,
    share: Option<S::Share>,
    base: &S::Public,
    change: &Change<'_>,
    session: u8,
) -> Result<Started<Reshare<S>>, SetupError> {
    let settings = reshare_settings::<S>(Some(me), base, change, session);
    Session::start(settings, Some(evidence_key(party(me))), share, &mut rng(u64::from(me)))
}

pub fn reshare_with<S: Tested>(
    shares: &Shares<S>,
    change: &Change<'_>,
    session: u8,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<Reshared<S>>> {
    let base = S::public_of(shares.values().next().unwrap());
    let start = |me: u32| {
        let share = change.dealers.contains(&me).then(|| S::reopen(&shares[&me]));
        (Some(party(me)), start_reshare::<S>(me, share, base, change, session).unwrap())
    };
    World::new(u64::from(session), faults, change.everybody().into_iter().map(start)).run()
}

pub fn number_of(party: PartyId) -> u32 {
    u32::from(party.get())
}
