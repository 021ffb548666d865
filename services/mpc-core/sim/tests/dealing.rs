//! Key generation, refresh and reshare of every scheme, from seeds, among parties of whom up to t - 1 are corrupt.
//!
//! The corrupt parties tell every lie of [`sim::lies`]. They also order the messages, repeat orders to themselves, and
//! kill honest parties, start them again from an older store, or start a copy of their store beside them, so that an
//! honest party runs one session several times. The checks read the wire and the outcomes alone: see [`Checker`]. Each
//! has a control: a [`Mutant`] of the world in which it must find something.
//!
//! `SEED=<number>` repeats one seed, `RUNS=<count>` runs that many; see [`sim::seeds`].

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

#[path = "dealing/checker.rs"]
mod checker;
#[path = "../../protocols/tests/common/mod.rs"]
mod common;
#[allow(dead_code, reason = "the part that is about whole sessions")]
#[path = "../../protocols/tests/dealing/harness.rs"]
mod harness;
#[path = "dealing/world.rs"]
mod world;

use core::any::type_name;

use checker::Counts;
use common::{party, settings};
use engine::wire::Writer;
use engine::{AbortCause, Protocol};
use harness::{Bip340, Bls, Change, Ecdsa, Ed25519, Shares, Tested, refresh_settings, reshare_settings};
use protocols::dealing::{Keygen, Public, Refresh, Reshare, Reshared, Scheme};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use sim::lies::{self, Lie, MANY};
use sim::schedule::pick;
use sim::seeds;
use world::{Case, schedule};

/// How a world departs from the rules of honest parties and storage, so that a check has something to find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// A party that is started again draws the same values.
    GeneratorRepeats,
    /// A party says in this round of each session what it said there first.
    ValuesStay(u8),
    /// A party that is started again signs with the run nonce that it had.
    RunNonceStays,
    /// Parties forget whom they suspect and whom they wait for.
    NamesForgotten,
    /// A party encapsulates one key in all its private envelopes.
    EncapsulatedKeyStays,
    /// Parties forget the evidence of their convictions.
    EvidenceForgotten,
    /// A party keeps the key of an earlier session for that of this one.
    KeyStays,
    /// An honest party is not started again after the faults.
    StaysDown,
}

/// Rare lies that [`MANY`] schedules may leave untold.
const FEW: usize = 1;

/// A scheme whose keys are made, refreshed and reshared.
trait Dealt: Tested {
    type Keygen: Protocol<Input = (), Output = Self::Share>;
    /// Lies that fit few of its envelopes.
    const RARE_LIES: &'static [Lie] = &[Lie::Unseals, Lie::BreaksSeal];
    /// In which proofs are shown, in each of the three protocols.
    const LAST_ROUND: u8 = Self::Keygen::ROUNDS.len() as u8;
}

impl Dealt for Bls {
    type Keygen = protocols::bls::Keygen;
}

impl Dealt for Ed25519 {
    type Keygen = Keygen<Self>;
}

impl Dealt for Bip340 {
    type Keygen = Keygen<Self>;
}

impl Dealt for Ecdsa {
    type Keygen = Keygen<Self>;
    /// Most of its envelopes are private.
    const RARE_LIES: &'static [Lie] = &[];
}

/// Keys made by parties that follow the rules: two of three parties sign, three of four.
struct Keys<S: Scheme>([Shares<S>; 2]);

impl<S: Dealt> Keys<S> {
    fn new() -> Self {
        Self([S::keys(&[1, 2, 3], 2, 1), S::keys(&[1, 2, 3, 4], 3, 1)])
    }

    /// One schedule of one of the three protocols.
    fn run(&self, seed: u64, mutant: Mutant) -> (Vec<String>, Counts) {
        let rng = &mut ChaCha20Rng::seed_from_u64(seed);
        let large = pick(rng, 4) == 0;
        let shares = &self.0[usize::from(large)];
        let base = S::public_of(&shares[&1]);
        let parties: Vec<u32> = shares.keys().copied().collect();
        let t = base.threshold().get() as u32;
        let most_corrupt = base.threshold().max_corrupt().get();
        let encoded = |public: &S::Public| {
            let mut writer = Writer::default();
            public.encode(&mut writer);
            writer.finish()
        };
        match pick(rng, 3) {
            0 => {
                let settings = |me: Option<u32>, session| settings(me.map(party), &parties, t, session, &[]);
                let key = |share: &S::Share| encoded(S::public_of(share));
                let case: Case<'_, S::Keygen> = Case {
                    parties: parties.clone(),
                    most_corrupt,
                    settings: &settings,
                    input: &|_| (),
                    key: &key,
                };
                schedule(&case, rng, mutant)
            }
            1 => {
                let settings = |me, session| refresh_settings::<S>(me, base, session);
                let input = |me: u32| S::reopen(&shares[&me]);
                let key = |share: &S::Share| encoded(S::public_of(share));
                let case: Case<'_, Refresh<S>> = Case {
                    parties: parties.clone(),
                    most_corrupt,
                    settings: &settings,
                    input: &input,
                    key: &key,
                };
                schedule(&case, rng, mutant)
            }
            _ => {
                // With as many dealers as the threshold or more; to the same number of parties, of whom one may be new.
                let dealers = &parties[pick(rng, parties.len() - t as usize + 1)..];
                let joins = parties.len() as u32 + 1;
                let receivers =
                    if pick(rng, 2) == 0 { parties.clone() } else { [&parties[1..], &[joins]].concat() };
                let change = Change { dealers, receivers: &receivers, t };
                let settings = |me, session| reshare_settings::<S>(me, base, &change, session);
                let input = |me: u32| dealers.contains(&me).then(|| S::reopen(&shares[&me]));
                let key = |reshared: &Reshared<S>| encoded(&reshared.public);
                let parties = change.everybody();
                let case: Case<'_, Reshare<S>> =
                    Case { parties, most_corrupt, settings: &settings, input: &input, key: &key };
                schedule(&case, rng, mutant)
            }
        }
    }
}

fn nobody_honest_is_convicted_and_nothing_is_used_twice<S: Dealt>()
where
    Keys<S>: Sync,
{
    let keys = Keys::<S>::new();
    let seeds = seeds::wanted(&format!("dealing {}", type_name::<S>()), 10_000);
    let mut total = Counts::default();
    seeds::run_all(
        &seeds,
        |seed| keys.run(seed, Mutant::None),
        |violations, counts| {
            total.add(counts);
            violations.clone()
        },
    );
    let runs = seeds.len();
    let untold = lies::untold(&total.lies, true);
    println!("{runs} schedules: {total:?}; never told: {untold:?}");
    if runs >= 100 {
        assert!(total.finished > runs && total.restarts > runs / 10 && total.stragglers > 0, "{total:?}");
        assert!(total.convictions.values().sum::<usize>() > runs / 10, "{total:?}");
        assert!(total.suspicions.contains_key(&AbortCause::PartyRestarted.number()), "{total:?}");
    }
    assert!(runs < MANY || untold.len() <= FEW, "{total:?}");
    assert_eq!(lies::overdue(untold, S::RARE_LIES, runs), [], "{total:?}");
}

/// The checks find what each mutant does wrong, at or after a seed that has shown it.
fn each_check_finds_its_mutant<S: Dealt>() {
    let keys = Keys::<S>::new();
    for (mutant, expected, first) in [
        (Mutant::GeneratorRepeats, "run nonces of two processes are the same", 10),
        (Mutant::ValuesStay(1), "commitments of two processes are the same", 0),
        (Mutant::ValuesStay(2), "contributions of two processes are the same", 0),
        (Mutant::ValuesStay(3), "private blocks of two processes are the same", 0),
        (Mutant::ValuesStay(S::LAST_ROUND), "nonce points of proofs of two processes are the same", 0),
        (Mutant::EncapsulatedKeyStays, "an encapsulated key was used twice", 0),
        (Mutant::RunNonceStays, "convicts an honest party", 1),
        (Mutant::RunNonceStays, "is proven", 20),
        (Mutant::RunNonceStays, "blames an error of its own", 1),
        (Mutant::EvidenceForgotten, "convicts without evidence that convinces others", 8),
        (Mutant::NamesForgotten, "names nobody", 1),
        (Mutant::NamesForgotten, "waits for nobody", 0),
        (Mutant::NamesForgotten, "names honest parties only", 14),
        (Mutant::NamesForgotten, "no corrupt party is named", 2),
        (Mutant::KeyStays, "two keys of one session", 1),
        (Mutant::KeyStays, "parties have different keys", 1),
        (Mutant::StaysDown, "a session without faults does not end", 0),
    ] {
        let run = |seed| keys.run(seed, mutant).0;
        seeds::must_find(first..first + 200, &format!("{mutant:?}"), expected, run);
    }
}

macro_rules! schemes {
    ($($scheme:ident in $module:ident),+) => {
        $(mod $module {
            #[test]
            fn nobody_honest_is_convicted_and_nothing_is_used_twice() {
                super::nobody_honest_is_convicted_and_nothing_is_used_twice::<super::$scheme>();
            }

            #[test]
            fn each_check_finds_its_mutant() {
                super::each_check_finds_its_mutant::<super::$scheme>();
            }
        })+
    };
}

schemes!(Bls in bls, Ed25519 in ed25519, Bip340 in bip340, Ecdsa in ecdsa);

/// A schedule that found a defect: a corrupt party kept the word by which party 2 had ended its run, and showed it to
/// party 2 when that ran the session again. Party 2 took that for an error of its own, and named nobody.
#[test]
fn a_party_that_is_shown_its_word_of_another_run_names_itself() {
    assert_eq!(Keys::<Ecdsa>::new().run(5237, Mutant::None).0, Vec::<String>::new());
}
