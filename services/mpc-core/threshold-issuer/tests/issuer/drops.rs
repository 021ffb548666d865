//! Joins in which messages are lost or come twice, and parties stop: nobody is blamed, and the ticket's next run goes
//! well.

use engine::{AbortCause, PartyId, Secret};
use primitives::bls12_381::Scalar;
use rand_core::Rng;
use sim::Faults;

use crate::installation::{ABOVE, BELOW, Installation, key_of, party, rng};

const FULL: u64 = 10_000;

/// The violations of one seed's join, and whether the member has joined.
fn run(seed: u64) -> (Vec<String>, bool) {
    let installation = Installation::usual();
    let mut choices = rng(seed);
    let secret = Secret::new(Scalar::random(&mut choices));
    let sets: [&[u32]; 4] = [&[11, 12], &[11, 13], &[12, 13], &[11, 12, 13]];
    let mut choose = |count: u32| choices.next_u32() % count;
    let set = sets[usize::try_from(choose(4)).unwrap()];
    let member = [ABOVE, BELOW][usize::try_from(choose(2)).unwrap()];
    let parties: Vec<PartyId> = set.iter().chain([&member]).map(|number| party(*number)).collect();
    let stopped = parties[usize::try_from(choose(u32::try_from(parties.len()).unwrap())).unwrap()];
    let faults = match choose(4) {
        0 => Faults { duplicated_percent: 40, ..Faults::default() },
        1 => Faults { duplicated_percent: 10, dropped_percent: 3, ..Faults::default() },
        2 => Faults { dropped_percent: 20, ..Faults::default() },
        _ => Faults { crash: Some((stopped, usize::try_from(choose(16)).unwrap())), ..Faults::default() },
    };
    let lossless = faults.dropped_percent == 0 && faults.crash.is_none();
    let mut violations = Vec::new();
    let mut outcomes = installation.join(set, (member, &secret), seed >> 1, faults);
    for (address, outcome) in &outcomes {
        if !outcome.aborts.is_empty() {
            violations.push(format!("{address:?}: {:?}", outcome.aborts));
        }
    }
    let key = key_of(&mut outcomes, member);
    let mut joined = key.is_some();
    if lossless && !joined {
        violations.push("nothing was lost, and the member has not joined".to_owned());
    }
    // A member that goes without: the next run of its ticket, with a new session id, among any issuers.
    let key = key.or_else(|| {
        let again = seed.wrapping_add(1) >> 1 ^ 1 << 62;
        let again = installation.join(&[11, 12], (member, &secret), again, Faults::default());
        joined = false;
        key_of(&mut { again }, member)
    });
    match key {
        Some(key) if *key.credential() == installation.credential(&secret) => {}
        Some(_) => violations.push("another credential".to_owned()),
        None => violations.push("the next run failed".to_owned()),
    }
    (violations, joined)
}

#[test]
fn lost_and_repeated_messages_blame_nobody() {
    let seeds = sim::seeds::wanted("threshold-join", FULL);
    let (mut joined, mut lost) = (0, 0);
    sim::seeds::run_all(&seeds, run, |violations, has_joined| {
        joined += u32::from(*has_joined);
        lost += u32::from(!has_joined);
        violations.clone()
    });
    // Both kinds of runs were seen.
    assert!(seeds.len() < 50 || (joined > 5 && lost > 5), "{joined} joined, {lost} did not");
}

/// The control: a mutant of the world that alters a message is found.
#[test]
fn an_altered_message_would_be_found() {
    let installation = Installation::usual();
    let secret = Secret::new(Scalar::from_u64(5));
    let tamper = |mut packet: sim::Packet| {
        let mut forged = engine::forge::Forged::open(&packet.bytes).unwrap();
        if forged.round == 4 {
            forged.body[0] ^= 1;
            packet.bytes = forged.encode(&crate::installation::evidence_key(packet.from));
        }
        vec![packet]
    };
    let faults = Faults { tamper: Some(Box::new(tamper)), ..Faults::default() };
    let outcomes = installation.join(&[11, 12], (ABOVE, &secret), 1, faults);
    assert!(outcomes.values().any(|outcome| {
        outcome.aborts.iter().any(|abort| abort.cause == AbortCause::TransferCheckFailed)
    }));
}
