//! Threshold BLS beside blst's own multiplications, measured in the same run: read the times as multiples of those.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a bench fails by panicking"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::hint::black_box;

use common::{evidence_key, keygen, party, reopen, rng, settings};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use engine::session::{Progress, Session};
use primitives::Secret;
use primitives::bls12_381::{CurveG1, G1, G2, HashedMessage, Scalar, UncheckedG2, verify, verify_batch};
use primitives::schnorr::{self, Nonce, Statement};
use primitives::shamir::Weights;
use protocols::bls::{Keygen, SIGNATURE_DOMAIN, SignInput, Signing, Subgroup};
use protocols::dealing::Polynomial;

fn secrets(count: u64) -> Vec<Secret<Scalar>> {
    let mut rng = rng(count);
    (0..count).map(|_| Secret::new(Scalar::random(&mut rng))).collect()
}

fn floor(c: &mut Criterion) {
    let mut group = c.benchmark_group("blst");
    let key = secrets(1).remove(0);
    group.bench_function("multiply_g1", |b| b.iter(|| G1::mul_generator(&key)));
    group.bench_function("hash_to_g2", |b| b.iter(|| HashedMessage::new(black_box(b"m"), SIGNATURE_DOMAIN)));
    let message = HashedMessage::new(b"m", SIGNATURE_DOMAIN);
    group.bench_function("multiply_g2", |b| b.iter(|| message.sign(&key)));
    let (public, signature) = (G1::mul_generator(&key), message.sign(&key));
    group.bench_function("verify", |b| b.iter(|| verify(&public, &message, &signature)));
    let point = CurveG1::from(public);
    group.bench_function("subgroup_g1", |b| b.iter(|| point.check()));
    let point = UncheckedG2::from(signature);
    group.bench_function("subgroup_g2", |b| b.iter(|| point.check()));
    group.finish();
}

fn parts(c: &mut Criterion) {
    let mut group = c.benchmark_group("parts");
    let mut generator = rng(1);
    let message = HashedMessage::new(b"m", SIGNATURE_DOMAIN);
    for (kind, first) in [("small", 1u16), ("large", 60_000)] {
        for t in [3u16, 5, 10, 20] {
            let signers: Vec<u16> = (0..t).map(|i| first + i * if first > 1 { 97 } else { 1 }).collect();
            let polynomial = Polynomial::<Subgroup>::of(secrets(u64::from(t)));
            let partials: Vec<UncheckedG2> =
                signers.iter().map(|x| message.sign(&polynomial.at(party(u32::from(*x)))).into()).collect();
            group.bench_function(format!("combine_{kind}_numbers/{t}"), |b| {
                b.iter(|| UncheckedG2::combine(&partials, &Weights::at_zero(&signers).unwrap()));
            });
        }
    }
    let keys = secrets(19);
    let points: Vec<G1> = keys.iter().map(G1::mul_generator).collect();
    let signatures: Vec<G2> = keys.iter().map(|key| message.sign(key)).collect();
    group.bench_function("verify_batch/19", |b| {
        b.iter(|| verify_batch(&points, &message, &signatures, &mut generator));
    });
    let statements: Vec<Statement> = keys
        .iter()
        .zip(&points)
        .map(|(key, point)| {
            let nonce = Nonce::new(&Secret::new([7; 64]));
            let commitment = (*nonce.commitment()).into();
            let challenge = Scalar::from_wide(&[9; 64]);
            Statement {
                point: (*point).into(),
                commitment,
                response: nonce.respond(&challenge, key),
                challenge,
            }
        })
        .collect();
    group.bench_function("schnorr_batch/19", |b| {
        b.iter(|| assert!(schnorr::verify_batch(&statements, &mut generator)));
    });
    group.bench_function("feldman/10", |b| b.iter(|| G1::evaluate(&points[..10], black_box(17))));
    group.finish();
}

/// Everything that party 1 computes in one key generation.
fn keygen_of_one(c: &mut Criterion) {
    let mut group = c.benchmark_group("keygen");
    group.sample_size(10);
    for (t, n) in [(2, 3), (5, 5), (7, 10), (10, 20)] {
        let parties: Vec<u32> = (1..=n).collect();
        // The others' messages are the same in every repetition, as everything follows from the seed.
        let mut incoming = Vec::new();
        let record = |packet: sim::Packet| {
            if packet.to == Some(party(1)) {
                incoming.push((packet.from, packet.bytes.clone()));
            }
            vec![packet]
        };
        let faults = sim::Faults { tamper: Some(Box::new(record)), ..sim::Faults::default() };
        common::keygen_with(&parties, t, 5, faults);
        let replay = |mut generator: rand_chacha::ChaCha20Rng| {
            let settings = settings(Some(party(1)), &parties, t, 1, &[]);
            let identity = Some(evidence_key(party(1)));
            let (mut session, _) = Session::<Keygen>::start(settings, identity, (), &mut generator).unwrap();
            for (from, bytes) in &incoming {
                if let Progress::Done(share) = session.handle(*from, bytes, &mut generator).progress {
                    return share;
                }
            }
            panic!("not done");
        };
        let generator = || rng(5 ^ 1 << 32);
        group.bench_function(format!("{t}_of_{n}"), |b| {
            b.iter_batched(generator, replay, BatchSize::SmallInput)
        });
    }
    group.finish();
}

fn signing(c: &mut Criterion) {
    let mut group = c.benchmark_group("sign");
    for (t, n) in [(2, 3), (3, 5), (7, 10), (10, 20)] {
        let parties: Vec<u32> = (1..=n).collect();
        let shares = keygen(&parties, t, 1);
        let signers: Vec<u32> = (1..=t).collect();
        let public = shares[&1].public().clone();
        let start = |id: u32| {
            let settings = settings(Some(party(id)), &signers, t, 2, b"message");
            let input = SignInput::Party(Box::new(reopen(&shares[&id])));
            move || Session::<Signing>::start(settings, None, input, &mut rng(1)).unwrap()
        };
        group.bench_function(format!("partial/{t}_of_{n}"), |b| {
            b.iter_batched(|| start(1), |start| start().1, BatchSize::SmallInput);
        });
        let partials: BTreeMap<u32, Vec<u8>> =
            signers.iter().map(|id| (*id, start(*id)().1.outgoing[0].encode())).collect();
        let observe = || {
            let settings = settings(None, &signers, t, 2, b"message");
            let input = SignInput::Observer(Box::new(public.clone()));
            Session::<Signing>::start(settings, None, input, &mut rng(1)).unwrap().0
        };
        group.bench_function(format!("combine/{t}_of_{n}"), |b| {
            b.iter_batched(
                observe,
                |mut session| {
                    partials
                        .iter()
                        .any(|(id, bytes)| {
                            let step = session.handle(party(*id), bytes, &mut rng(1));
                            matches!(step.progress, Progress::Done(_))
                        })
                        .then_some(())
                        .unwrap();
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, floor, parts, keygen_of_one, signing);
criterion_main!(benches);
