//! Every (t, n) up to five parties and samples up to twenty: keys agree, quorums sign in both ways, outside libraries
//! accept.

use protocols::frost::Target;
use sim::Faults;

use crate::frost::both_suites;
use crate::harness::{
    Tested, by_number, check, keygen, message, payload, presign, sign_presigned, sign_with,
};

fn run<S: Tested>(parties: &[u32], t: u32, quorums: &[Vec<u32>]) {
    let shares = keygen::<S>(parties, t, u64::from(t) << 8 | parties.len() as u64);
    let public = shares[&parties[0]].public().clone();
    assert!(shares.values().all(|share| share.public() == &public));
    assert_eq!(public.parties().len(), parties.len());
    let targets = S::targets();
    for (number, quorum) in (1u8..).zip(quorums) {
        let target = &targets[usize::from(number) % targets.len()];
        let mut request = payload(message(number), target);
        let signatures = by_number(sign_with(&shares, quorum, number, &request, Faults::default()));
        assert_eq!(signatures.len(), quorum.len() + 1);
        check(&public, &request, &signatures);
        let presignatures = presign(&shares, quorum, number, target);
        request.presignature = Some(*presignatures[&quorum[0]].id());
        let signatures =
            by_number(sign_presigned(&public, presignatures, number, &request, Faults::default()));
        assert_eq!(signatures.len(), quorum.len() + 1);
        check(&public, &request, &signatures);
    }
}

/// All subsets with at least t members.
fn quorums(parties: &[u32], t: u32) -> Vec<Vec<u32>> {
    (0u32..1 << parties.len())
        .filter(|mask| mask.count_ones() >= t)
        .map(|mask| (0..parties.len()).filter(|bit| mask >> bit & 1 == 1).map(|bit| parties[bit]).collect())
        .collect()
}

fn all_quorums_up_to_five_parties<S: Tested>() {
    for n in 2..=5 {
        let parties: Vec<u32> = (1..=n).collect();
        for t in 2..=n {
            run::<S>(&parties, t, &quorums(&parties, t));
        }
    }
}

fn party_numbers_need_not_be_consecutive<S: Tested>() {
    run::<S>(&[2, 300, 65_535], 2, &quorums(&[2, 300, 65_535], 2));
}

fn samples_up_to_twenty_parties<S: Tested>() {
    for (t, n) in [(4, 7), (3, 20), (20, 20)] {
        let parties: Vec<u32> = (1..=n).collect();
        run::<S>(&parties, t, &[parties[..t as usize].to_vec(), parties[(n - t) as usize..].to_vec()]);
    }
}

/// Every target, so that every combination of parities of key, tweaked key and nonce occurs.
fn every_target_signs<S: Tested>() {
    for seed in 0..12u8 {
        let shares = keygen::<S>(&[1, 2, 3], 2, 1000 + u64::from(seed));
        let public = shares[&1].public();
        let mut keys = Vec::new();
        for target in S::targets() {
            let request = payload(message(seed), &target);
            let signatures = by_number(sign_with(&shares, &[1, 3], seed, &request, Faults::default()));
            check(public, &request, &signatures);
            keys.push(public.verifier_key(&target).unwrap());
        }
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert_eq!(keys.first().copied(), public.verifier_key(&Target::default()));
    }
}

both_suites!(
    all_quorums_up_to_five_parties,
    party_numbers_need_not_be_consecutive,
    samples_up_to_twenty_parties,
    every_target_signs,
);
