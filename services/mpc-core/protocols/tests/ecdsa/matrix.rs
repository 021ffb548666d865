//! Every (t, n) up to five parties and samples up to twenty: keys agree, every quorum signs, libsecp256k1 accepts.

use crate::ecdsa_common::{by_number, keygen, payload, presign, sign_presigned, sign_with, verify_outside};
use sim::Faults;

fn check(parties: &[u32], t: u32, quorums: &[Vec<u32>]) {
    let shares = keygen(parties, t, u64::from(t) << 8 | parties.len() as u64);
    let public = shares[&parties[0]].public().clone();
    assert!(shares.values().all(|share| share.public() == &public));
    assert_eq!(public.parties().len(), parties.len());
    for (position, quorum) in (1u8..).zip(quorums) {
        let path = [u32::from(position), 7];
        let request = payload([position; 32], &path[..usize::from(position % 3)]);
        let child = public.derive(&request.path).unwrap().public_key;
        let signatures = by_number(sign_with(&shares, quorum, position, &request, Faults::default()));
        assert_eq!(signatures.len(), quorum.len() + 1);
        assert!(signatures.values().all(|signature| signature == &signatures[&0]));
        verify_outside(&child, request.digest, &signatures[&0]);
    }
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
    for n in 2..=5 {
        let parties: Vec<u32> = (1..=n).collect();
        for t in 2..=n {
            check(&parties, t, &quorums(&parties, t));
        }
    }
}

#[test]
fn party_numbers_need_not_be_consecutive() {
    check(&[2, 300, 65_535], 2, &quorums(&[2, 300, 65_535], 2));
}

#[test]
fn samples_up_to_twenty_parties() {
    for (t, n) in [(4, 7), (3, 20)] {
        let parties: Vec<u32> = (1..=n).collect();
        let first = parties[..t as usize].to_vec();
        let last = parties[(n - t) as usize..].to_vec();
        check(&parties, t, &[first, last]);
    }
    let parties: Vec<u32> = (1..=20).collect();
    check(&parties, 20, std::slice::from_ref(&parties));
}

#[test]
fn presigned_signatures_verify() {
    for (t, n) in [(2, 2), (2, 3), (3, 5)] {
        let parties: Vec<u32> = (1..=n).collect();
        let shares = keygen(&parties, t, 99);
        let public = shares[&1].public().clone();
        for (session, quorum) in (1u8..).step_by(2).zip(quorums(&parties, t).into_iter().take(6)) {
            let path = [u32::from(session)];
            let presignatures = presign(&shares, &quorum, session, &path);
            let mut request = payload([session; 32], &path);
            request.presignature = Some(*presignatures[&quorum[0]].id());
            let signatures =
                by_number(sign_presigned(&public, presignatures, session + 1, &request, Faults::default()));
            assert!(signatures.values().all(|signature| signature == &signatures[&0]));
            let child = public.derive(&request.path).unwrap().public_key;
            verify_outside(&child, request.digest, &signatures[&0]);
        }
    }
}
