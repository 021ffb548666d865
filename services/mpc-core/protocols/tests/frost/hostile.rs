//! Hostile bytes at every decoder: nothing may panic, nobody but the sender is blamed, what decodes encodes to the same.

use engine::forge::Forged;
use engine::seal::SealKind;
use engine::session::Progress;
use engine::wire::{Reader, Writer};
use proptest::prelude::*;
use protocols::frost::{KeyPublic, KeyShare, Presignature, Suite, Target};
use sim::{Faults, Packet};

use crate::both_suites;
use crate::common::{evidence_key, party, rng};
use crate::harness::{
    Shares, Tested, data_key, keygen, keygen_with, message, payload, presign, sign_presigned, sign_with,
    start_keygen,
};

fn runs<V: core::fmt::Debug>(values: impl Strategy<Value = V>, test: impl Fn(V)) {
    let config = ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() };
    proptest::test_runner::TestRunner::new(config)
        .run(&values, |value| {
            test(value);
            Ok(())
        })
        .unwrap();
}

fn bytes(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..longest)
}

/// Party 2's body of one round replaced, or changed in one byte.
fn replaced<'a>(round: u8, body: &'a [u8], place: Option<usize>) -> Faults<'a> {
    let tamper = move |packet: Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        if packet.from != party(2) || forged.round != round {
            return vec![packet];
        }
        match (place, body.first()) {
            (Some(place), Some(byte)) => {
                let place = place % forged.body.len();
                forged.body[place] ^= byte;
            }
            _ => forged.body = body.to_vec(),
        }
        vec![Packet { bytes: forged.encode(&evidence_key(packet.from)), ..packet }]
    };
    Faults { tamper: Some(Box::new(tamper)), ..Faults::default() }
}

fn bodies_of_key_generation<S: Tested>() {
    runs((1..=4u8, bytes(300), proptest::option::of(0..300usize)), |(round, body, place)| {
        let outcomes = keygen_with::<S>(&[1, 2, 3], 2, (1, 11), replaced(round, &body, place));
        for number in [1, 3] {
            let outcome = &outcomes[&Some(party(number))];
            assert!(outcome.aborts.iter().all(|abort| abort.culprits.iter().all(|c| *c == party(2))));
        }
    });
}

fn bodies_of_signing<S: Tested>() {
    let shares: Shares<S> = keygen(&[1, 2, 3], 2, 11);
    let target = S::targets().pop().unwrap();
    runs((1..=3u8, bytes(150), proptest::option::of(0..150usize)), |(round, body, place)| {
        let mut request = payload(message(1), &target);
        let outcomes = if round == 3 {
            let presignatures = presign(&shares, &[1, 2], 1, &target);
            request.presignature = Some(*presignatures[&1].id());
            sign_presigned(shares[&1].public(), presignatures, 2, &request, replaced(1, &body, place))
        } else {
            sign_with(&shares, &[1, 2], 1, &request, replaced(round, &body, place))
        };
        for address in [Some(party(1)), None] {
            let outcome = &outcomes[&address];
            assert!(outcome.aborts.iter().all(|abort| abort.culprits.iter().all(|c| *c == party(2))));
            if let Some(signature) = &outcome.done {
                let key = shares[&1].public().verifier_key(&target).unwrap();
                assert!(S::verify_outside(&key, &request.message, signature));
            }
        }
    });
}

fn messages_of_key_generation<S: Tested>() {
    runs(bytes(300), |data| {
        let (mut session, _) = start_keygen::<S>(1, &[1, 2, 3], 2, 1, 11);
        let step = session.handle(party(2), &data, &mut rng(1));
        assert!(matches!(step.progress, Progress::Dropped(_)));
    });
}

fn sealed_contents<S: Tested>() {
    let shares: Shares<S> = keygen(&[1, 2], 2, 11);
    let (key, label) = (data_key(), shares[&1].label());
    runs(bytes(600), |data| {
        assert!(KeyShare::<S>::unseal(&key, &data, &label).is_err());
        assert!(Presignature::<S>::unseal(&key, &data).is_err());
        let blob = key.seal(SealKind::KeyShare, &label.encode(), &[], &data, &mut rng(1)).unwrap();
        assert!(KeyShare::<S>::unseal(&key, &blob, &label).is_err());
        let (public, secret) = data.split_at(data.len() / 2);
        let blob = key.seal(SealKind::Other, public, b"frost presignature 1", secret, &mut rng(1)).unwrap();
        assert!(Presignature::<S>::unseal(&key, &blob).is_err());
    });
}

fn public_data_and_targets<S: Suite>() {
    runs(bytes(200), |data| {
        if let Ok(public) = KeyPublic::<S>::decode(&mut Reader::new(&data)) {
            let mut writer = Writer::default();
            public.encode(&mut writer);
            assert!(data.starts_with(&writer.finish()));
        }
        if let Ok(target) = Target::decode(&mut Reader::new(&data)) {
            assert!(data.starts_with(&target.to_bytes()));
        }
    });
}

both_suites!(
    bodies_of_key_generation,
    bodies_of_signing,
    messages_of_key_generation,
    sealed_contents,
    public_data_and_targets,
);
