//! Seeded schedules: messages late, twice, lost, and parties that stop. A signature or none, never two, never a wrong
//! one, nobody blamed.

use protocols::frost::Target;
use sim::Faults;

use crate::common::party;
use crate::frost::both_suites;
use crate::harness::{Tested, keygen, keygen_with, message, payload, sign_with};

fn faults(seed: u8) -> Faults<'static> {
    Faults {
        duplicated_percent: 30,
        dropped_percent: u32::from(seed % 3) * 4,
        crash: (seed % 5 == 4).then(|| (party(2), usize::from(seed % 4))),
        ..Faults::default()
    }
}

fn signing_over_a_network_that_fails<S: Tested>() {
    let shares = keygen::<S>(&[1, 2, 3], 2, 4);
    let public = shares[&1].public();
    let (mut signed, mut stuck) = (0, 0);
    for seed in 0..200u8 {
        let request = payload(message(seed), &Target::default());
        let outcomes = sign_with(&shares, &[1, 2, 3], seed, &request, faults(seed));
        assert!(outcomes.values().all(|outcome| outcome.aborts.is_empty()), "seed {seed}");
        let mut signatures = outcomes.values().filter_map(|outcome| outcome.done.as_ref());
        match signatures.next() {
            Some(signature) => {
                assert!(signatures.all(|other| other == signature), "seed {seed}");
                let key = public.verifier_key(&request.target).unwrap();
                assert!(S::verify_outside(&key, &request.message, signature), "seed {seed}");
                signed += 1;
            }
            None => stuck += 1,
        }
    }
    assert!(signed > 60 && stuck > 5, "{signed} signed, {stuck} stuck");
}

fn key_generation_over_a_network_that_fails<S: Tested>() {
    let (mut made, mut stuck) = (0, 0);
    for seed in 0..60u8 {
        let outcomes = keygen_with::<S>(&[1, 2, 3], 2, (1, seed.into()), faults(seed));
        assert!(outcomes.values().all(|outcome| outcome.aborts.is_empty()), "seed {seed}");
        let mut shares = outcomes.values().filter_map(|outcome| outcome.done.as_ref());
        match shares.next() {
            Some(share) => {
                assert!(shares.all(|other| other.public() == share.public()), "seed {seed}");
                made += 1;
            }
            None => stuck += 1,
        }
    }
    assert!(made > 15 && stuck > 3, "{made} made, {stuck} stuck");
}

both_suites!(signing_over_a_network_that_fails, key_generation_over_a_network_that_fails);
