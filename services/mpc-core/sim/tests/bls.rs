//! Whole sessions from seeds: the promises that hold whatever the network and up to n - 1 corrupt parties do.
//!
//! `make sim SEED=<number>` repeats one seed, `make sim RUNS=<count>` runs that many. A failing test has printed its
//! seed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unreachable,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

#[path = "../../protocols/tests/common/mod.rs"]
mod common;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use common::{evidence_key, keygen, keygen_with, party, sign_with};
use engine::PartyId;
use engine::forge::Forged;
use engine::session::NOTICE_ROUND;
use protocols::bls::KeyShare;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sim::schedule::pick;
use sim::{Address, Faults, Outcome, Packet, seeds};

struct Plan {
    parties: Vec<u32>,
    t: u32,
    corrupt: BTreeSet<PartyId>,
    faults: (u32, u32),
    crash: Option<(PartyId, usize)>,
}

fn plan(rng: &mut ChaCha20Rng) -> Plan {
    let n = 1 + pick(rng, 6);
    let mut numbers = BTreeSet::new();
    while numbers.len() < n {
        numbers.insert(1 + pick(rng, 12) as u32);
    }
    let parties: Vec<u32> = numbers.into_iter().collect();
    let t = 1 + pick(rng, n) as u32;
    let corrupt = match pick(rng, 3) {
        0 => BTreeSet::new(),
        _ => (0..pick(rng, n)).map(|_| party(parties[pick(rng, n)])).collect(),
    };
    let faults = if pick(rng, 2) == 0 { (0, 0) } else { (pick(rng, 30) as u32, pick(rng, 5) as u32) };
    let crash = (pick(rng, 8) == 0).then(|| (party(parties[pick(rng, n)]), pick(rng, 4 * n)));
    Plan { parties, t, corrupt, faults, crash }
}

/// One random change to one message of a corrupt party, signed again.
fn bend(rng: &mut ChaCha20Rng, old: &[Packet], packet: Packet) -> Vec<Packet> {
    let Some(mut forged) = Forged::open(&packet.bytes) else { return vec![packet] };
    let length = forged.body.len();
    match pick(rng, 12) {
        0 => return vec![],
        1 if length > 0 => forged.body[pick(rng, length)] ^= 1 << pick(rng, 8),
        2 => forged.body.truncate(pick(rng, length + 1)),
        3 => forged.body.push(0),
        4 => forged.echo = forged.echo.map(|_| [1; 32]),
        5 => forged.round = rng.next_u32() as u8,
        6 if !old.is_empty() => {
            // Another message in the place of this one.
            let other = Forged::open(&old[pick(rng, old.len())].bytes).unwrap();
            forged.body = other.body;
        }
        7 if !old.is_empty() => {
            // An accusation with somebody's genuine messages as evidence.
            let evidence: Vec<&Packet> = (0..1 + pick(rng, 3)).map(|_| &old[pick(rng, old.len())]).collect();
            let accused = evidence[0].from.get();
            let mut body = vec![1 + pick(rng, 14) as u8];
            body.extend(accused.to_be_bytes());
            body.extend((evidence.len() as u16).to_be_bytes());
            for packet in evidence {
                body.extend((packet.bytes.len() as u32).to_be_bytes());
                body.extend(&packet.bytes);
            }
            forged.round = NOTICE_ROUND;
            forged.recipient = None;
            forged.body = body;
        }
        8 => forged.session[0] ^= 1,
        9 => return vec![packet.clone(), packet],
        _ => return vec![packet],
    }
    let bent = Packet { bytes: forged.encode(&evidence_key(packet.from)), ..packet.clone() };
    if pick(rng, 3) == 0 { vec![packet, bent] } else { vec![bent] }
}

/// `heard` keeps every message, so that a later run of the session can meet messages of an earlier one.
fn faults<'a>(plan: &'a Plan, seed: u64, heard: &'a RefCell<Vec<Packet>>) -> Faults<'a> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed ^ 0x5eed);
    let tamper = move |packet: Packet| {
        let packets = if plan.corrupt.contains(&packet.from) && pick(&mut rng, 3) == 0 {
            bend(&mut rng, &heard.borrow(), packet.clone())
        } else {
            vec![packet.clone()]
        };
        heard.borrow_mut().push(packet);
        packets
    };
    Faults {
        duplicated_percent: plan.faults.0,
        dropped_percent: plan.faults.1,
        crash: plan.crash,
        tamper: Some(Box::new(tamper)),
    }
}

/// No honest party is ever blamed, by anybody; and where one corrupt party is all there is, all that blame agree on it.
fn nobody_honest_is_blamed<T>(plan: &Plan, outcomes: &BTreeMap<Address, Outcome<T>>) {
    for (address, outcome) in outcomes {
        // A corrupt party may say anything of others.
        if address.is_some_and(|id| plan.corrupt.contains(&id)) {
            continue;
        }
        for abort in &outcome.aborts {
            assert!(
                abort.culprits.iter().all(|culprit| plan.corrupt.contains(culprit)),
                "{address:?}: {abort}"
            );
            if plan.corrupt.is_empty() {
                panic!("{address:?} aborted among honest parties: {abort}");
            }
        }
    }
}

/// An honest party that runs and has no result names culprits or suspects, or whom it waits for.
fn whoever_failed_is_named<T>(plan: &Plan, outcomes: &BTreeMap<Address, Outcome<T>>) -> usize {
    let runs = |address: &Address| {
        address.is_none_or(|id| !plan.corrupt.contains(&id) && plan.crash.is_none_or(|(dead, _)| dead != id))
    };
    let without = outcomes.iter().filter(|(address, outcome)| runs(address) && outcome.done.is_none());
    let mut failed = 0;
    for (address, outcome) in without {
        let named = match outcome.abort() {
            Some(abort) => !abort.culprits.is_empty() || !abort.suspects.is_empty(),
            None => !outcome.missing.is_empty(),
        };
        assert!(named, "{address:?} has no result and names nobody");
        failed += 1;
    }
    failed
}

#[test]
fn key_generation_holds_its_promises() {
    let (mut finished, mut blamed) = (0, 0);
    let seeds = seeds::wanted("key generation of BLS", 10_000);
    for &seed in &seeds {
        println!("seed {seed}");
        let plan = plan(&mut ChaCha20Rng::seed_from_u64(seed));
        let heard = RefCell::default();
        let outcomes = keygen_with(&plan.parties, plan.t, seed, faults(&plan, seed, &heard));
        nobody_honest_is_blamed(&plan, &outcomes);
        whoever_failed_is_named(&plan, &outcomes);
        let honest: Vec<&Outcome<KeyShare>> = outcomes
            .iter()
            .filter(|(address, _)| !address.is_some_and(|id| plan.corrupt.contains(&id)))
            .map(|(_, outcome)| outcome)
            .collect();
        let calm = plan.corrupt.is_empty() && plan.faults.1 == 0 && plan.crash.is_none();
        let done: Vec<_> = honest.iter().filter_map(|outcome| outcome.done.as_ref()).collect();
        assert!(!calm || done.len() == honest.len(), "progress without faults");
        blamed +=
            usize::from(honest.iter().any(|outcome| outcome.abort().is_some_and(|a| !a.culprits.is_empty())));
        // Those who finish, and are not told otherwise, have the same key.
        let standing: Vec<_> = honest
            .iter()
            .filter(|outcome| outcome.aborts.is_empty())
            .filter_map(|o| o.done.as_ref())
            .collect();
        assert!(standing.windows(2).all(|pair| pair[0].public() == pair[1].public()), "one key");
        // If all honest parties finished, any t of them can sign.
        if done.len() == honest.len() && done.len() >= plan.t as usize && plan.crash.is_none() {
            finished += 1;
            let shares: BTreeMap<u32, KeyShare> =
                done.iter().map(|share| (u32::from(share.party().get()), common::reopen(share))).collect();
            let signers: Vec<u32> = shares.keys().copied().take(plan.t as usize).collect();
            let signed = sign_with(&shares, &signers, b"m", seed, Faults::default());
            assert!(signed.values().all(|outcome| outcome.done.is_some()));
        }
    }
    if seeds.len() >= 100 {
        let some = seeds.len() / 20;
        assert!(
            finished > some && blamed > some,
            "the plans are worth running: {finished} finished, {blamed} blamed"
        );
    }
}

#[test]
fn signing_holds_its_promises() {
    let keys: Vec<(Vec<u32>, u32)> = vec![(vec![1, 2, 3], 2), (vec![2, 5, 6, 9, 11], 3), (vec![1, 2], 2)];
    let keys: Vec<_> = keys.into_iter().map(|(p, t)| (keygen(&p, t, 1), p, t)).collect();
    let expected: Vec<_> = keys
        .iter()
        .map(|(shares, p, _)| {
            sign_with(shares, p, b"m", 0, Faults::default())[&None].done.as_ref().unwrap().signature
        })
        .collect();
    let (mut again, mut failed) = (0, 0);
    let seeds = seeds::wanted("signing of BLS", 10_000);
    for &seed in &seeds {
        println!("seed {seed}");
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let which = pick(&mut rng, keys.len());
        let (shares, parties, t) = &keys[which];
        let mut plan = plan(&mut rng);
        plan.parties.clone_from(parties);
        plan.t = *t;
        plan.corrupt = (0..pick(&mut rng, parties.len()))
            .map(|_| party(parties[pick(&mut rng, parties.len())]))
            .collect();
        // The crash is of a party of this key.
        plan.crash = plan.crash.map(|(_, after)| (party(parties[pick(&mut rng, parties.len())]), after));
        // The same order comes up to twice more: at parties whose stores were put back, or at copies of them. Corrupt
        // parties have the messages of every earlier run.
        let heard = RefCell::default();
        let runs = 1 + pick(&mut rng, 3);
        again += usize::from(runs > 1);
        for run in 0..runs {
            let seed = seed ^ (run as u64) << 48;
            let outcomes = sign_with(shares, parties, b"m", seed, faults(&plan, seed, &heard));
            nobody_honest_is_blamed(&plan, &outcomes);
            failed += usize::from(whoever_failed_is_named(&plan, &outcomes) > 0);
            for (address, outcome) in &outcomes {
                if let Some(done) = &outcome.done {
                    assert_eq!(done.signature, expected[which], "one signature");
                    assert!(
                        address.is_some_and(|id| plan.corrupt.contains(&id))
                            || done.culprits.iter().all(|(culprit, _)| plan.corrupt.contains(culprit))
                    );
                }
            }
        }
    }
    if seeds.len() >= 100 {
        let some = seeds.len() / 20;
        assert!(again > some && failed > some, "the plans are worth running: {again} again, {failed} failed");
    }
}
