//! Two keys under one name and epoch, as a restored store or a lying coordinator could leave them with two parties that
//! both follow the rules: they do not understand each other, and nobody is blamed for what it holds.

use crate::common;
use crate::ecdsa_common;
use crate::harness;
use std::collections::BTreeMap;

use crate::common::{Started, party};
use engine::{Protocol, Reject};
use protocols::frost::{Bip340, Ed25519, KeyShare, PresignPayload, Suite, Target};
use protocols::{bls, ecdsa};
use sim::{Address, Faults, Outcome, World};

const SIGNERS: [u32; 2] = [1, 2];

fn run<P: Protocol>(
    started: impl IntoIterator<Item = (u32, Started<P>)>,
) -> BTreeMap<Address, Outcome<P::Output>> {
    let address = |number: u32| (number > 0).then(|| party(number));
    let started = started.into_iter().map(|(number, started)| (address(number), started));
    World::new(1, Faults::default(), started).run()
}

/// Each ends with nothing, waits for all others, and knows that what it heard was of another session.
fn strangers<P: Protocol>(started: impl IntoIterator<Item = (u32, Started<P>)>) {
    let outcomes = run(started);
    for (address, outcome) in &outcomes {
        let name = format!("{} {address:?}", P::ID.name);
        assert!(outcome.aborts.is_empty(), "{name}: {:?}", outcome.aborts);
        assert!(outcome.done.is_none(), "{name}");
        assert!(!outcome.rejects.is_empty(), "{name}");
        assert!(outcome.rejects.iter().all(|(_, reject)| *reject == Reject::Session), "{name}");
    }
}

/// The parties finish, and the observer is the only one that understands nobody.
fn strange_observer<P: Protocol>(started: impl IntoIterator<Item = (u32, Started<P>)>) {
    let mut outcomes = run(started);
    let observer = outcomes.remove(&None).unwrap();
    assert!(observer.aborts.is_empty(), "{}: {:?}", P::ID.name, observer.aborts);
    assert!(observer.done.is_none(), "{}", P::ID.name);
    assert!(observer.rejects.iter().all(|(_, reject)| *reject == Reject::Session), "{}", P::ID.name);
    assert!(outcomes.values().all(|outcome| outcome.done.is_some()), "{}", P::ID.name);
}

#[test]
fn bls_signers_with_other_keys_blame_nobody() {
    let [ours, theirs] = [1, 2].map(|seed| common::keygen(&SIGNERS, 2, seed));
    let sign = |share: &bls::KeyShare| common::start_sign(share, &SIGNERS, 2, b"m").unwrap();
    strangers([(1, sign(&ours[&1])), (2, sign(&theirs[&2]))]);
    let observer = common::start_observer(theirs[&1].public(), &SIGNERS, 2, b"m").unwrap();
    strange_observer([(1, sign(&ours[&1])), (2, sign(&ours[&2])), (0, observer)]);
}

#[test]
fn ecdsa_signers_with_other_keys_blame_nobody() {
    let [ours, theirs] = [1, 2].map(|seed| ecdsa_common::keygen(&SIGNERS, 2, seed));
    let request = ecdsa_common::payload([7; 32], &[]);
    let sign = |share: &ecdsa::KeyShare| {
        ecdsa_common::start_sign(ecdsa_common::reopen(share), &SIGNERS, 2, &request).unwrap()
    };
    strangers([(1, sign(&ours[&1])), (2, sign(&theirs[&2]))]);
    let order = ecdsa_common::presign_payload(&[], 1);
    let presign = |share: &ecdsa::KeyShare| {
        ecdsa_common::start_presign(ecdsa_common::reopen(share), &SIGNERS, 3, &order).unwrap()
    };
    strangers([(1, presign(&ours[&1])), (2, presign(&theirs[&2]))]);
    let observer =
        || ecdsa_common::start_observer::<ecdsa::Signing, _>(theirs[&1].public(), &SIGNERS, 2, &request);
    strange_observer([(1, sign(&ours[&1])), (2, sign(&ours[&2])), (0, observer().unwrap())]);

    let made = ecdsa_common::presign(&ours, &SIGNERS, 4, &[]);
    let used = ecdsa::SignPayload { presignature: Some(*made[&1].id()), ..request.clone() };
    let observer = ecdsa_common::start_observer(theirs[&1].public(), &SIGNERS, 5, &used).unwrap();
    let presigned = made.into_iter().map(|(number, one)| {
        // Stored, it still knows of which key it is.
        let blob = one.seal(&ecdsa_common::data_key(), &mut common::rng(1)).unwrap();
        let one = ecdsa::Presignature::unseal(&ecdsa_common::data_key(), &blob).unwrap();
        let started = ecdsa_common::start_presigned(one, ours[&1].public(), (number, &SIGNERS), 5, &used);
        (number, started.unwrap())
    });
    strange_observer(presigned.chain([(0, observer)]));
}

fn schnorr<S: Suite + core::fmt::Debug>() {
    let [ours, theirs] = [1, 2].map(|seed| harness::keygen::<S>(&SIGNERS, 2, seed));
    let target = Target::default();
    let request = harness::payload(vec![7; 32], &target);
    let sign = |share: KeyShare<S>| harness::start_sign(share, &SIGNERS, 2, &request).unwrap();
    strangers([(1, sign(harness::reopen(&ours[&1]))), (2, sign(harness::reopen(&theirs[&2])))]);
    // The share fits, and what it stands in does not.
    let posing = harness::reopen(&ours[&2]).posing_as(theirs[&2].public());
    strangers([(1, sign(harness::reopen(&ours[&1]))), (2, sign(posing))]);
    let mut bent = ours[&2].public().clone();
    bent.verification_shares[0].1 = theirs[&1].public().verification_shares[0].1.clone();
    let posing = || harness::reopen(&ours[&2]).posing_as(&bent);
    strangers([(1, sign(harness::reopen(&ours[&1]))), (2, sign(posing()))]);

    let order = PresignPayload { target: target.clone(), count: 1 }.encode();
    let presign = |share: KeyShare<S>| harness::start_presign(share, &SIGNERS, 3, &order).unwrap();
    strangers([(1, presign(harness::reopen(&ours[&1]))), (2, presign(posing()))]);

    let made = harness::presign(&ours, &SIGNERS, 4, &target);
    let used = protocols::frost::SignPayload { presignature: Some(*made[&1].id()), ..request.clone() };
    let observer = harness::start_observer(theirs[&1].public(), &SIGNERS, 5, &used).unwrap();
    let presigned = made.into_iter().map(|(number, one)| {
        let started = harness::start_presigned(one, ours[&1].public(), (number, &SIGNERS), 5, &used);
        (number, started.unwrap())
    });
    strange_observer(presigned.chain([(0, observer)]));
}

#[test]
fn ed25519_signers_with_other_keys_blame_nobody() {
    schnorr::<Ed25519>();
}

#[test]
fn bip340_signers_with_other_keys_blame_nobody() {
    schnorr::<Bip340>();
}
