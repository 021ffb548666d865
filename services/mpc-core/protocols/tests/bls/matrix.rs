//! Every (t, n) up to five parties and samples up to twenty: keys agree, every quorum signs, nobody is blamed.

use crate::common::{keygen, sign_with};
use primitives::bls12_381::{G1, HashedMessage, UncheckedG2, verify};
use protocols::bls::{KeyPublic, POSSESSION_DOMAIN, SIGNATURE_DOMAIN};
use sim::Faults;

fn verifies(public: &KeyPublic, message: &[u8], domain: &[u8], signature: &[u8; 96]) -> bool {
    let key = G1::from_compressed(&public.public_key).unwrap();
    let signature = UncheckedG2::from_compressed(signature).unwrap().check().unwrap();
    verify(&key, &HashedMessage::new(message, domain), &signature)
}

fn check(parties: &[u32], t: u32, quorums: &[Vec<u32>]) {
    let shares = keygen(parties, t, u64::from(t) << 8 | parties.len() as u64);
    let public = shares[&parties[0]].public().clone();
    assert!(shares.values().all(|share| share.public() == &public));
    assert_eq!(public.parties().len(), parties.len());
    assert!(verifies(&public, &public.public_key, POSSESSION_DOMAIN, &public.proof_of_possession));
    let mut signatures = Vec::new();
    for (position, quorum) in quorums.iter().enumerate() {
        let outcomes = sign_with(&shares, quorum, b"message", position as u64, Faults::default());
        assert_eq!(outcomes.len(), quorum.len() + 1);
        for outcome in outcomes.values() {
            let done = outcome.done.as_ref().unwrap();
            assert!(done.culprits.is_empty());
            signatures.push(done.signature);
        }
    }
    assert!(signatures.windows(2).all(|pair| pair[0] == pair[1]));
    assert!(verifies(&public, b"message", SIGNATURE_DOMAIN, &signatures[0]));
    assert!(!verifies(&public, b"massage", SIGNATURE_DOMAIN, &signatures[0]));
}

/// All subsets with at least t members.
fn quorums(parties: &[u32], t: u32) -> Vec<Vec<u32>> {
    (0u32..1 << parties.len())
        .filter(|mask| mask.count_ones() >= t)
        .map(|mask| (0..parties.len()).filter(|bit| mask >> bit & 1 == 1).map(|bit| parties[bit]).collect())
        .collect()
}

#[test]
fn all_quorums_up_to_five_parties() {
    for n in 1..=5 {
        let parties: Vec<u32> = (1..=n).collect();
        for t in 1..=n {
            check(&parties, t, &quorums(&parties, t));
        }
    }
}

#[test]
fn party_numbers_need_not_be_consecutive() {
    check(&[2, 7, 300, 65_535], 3, &quorums(&[2, 7, 300, 65_535], 3));
}

#[test]
fn samples_up_to_twenty_parties() {
    for (t, n) in [(4, 7), (7, 10), (1, 20), (10, 20), (20, 20)] {
        let parties: Vec<u32> = (1..=n).collect();
        let first = parties[..t as usize].to_vec();
        let last = parties[(n - t) as usize..].to_vec();
        check(&parties, t, &[first, last, parties.clone()]);
    }
}
