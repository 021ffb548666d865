//! Set-up and multiplication of one pair, each side alone.
#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use primitives::Secret;
use primitives::ot::{Initiator, Responder};
use primitives::secp256k1::{Scalar, random_scalar};
use primitives::vole;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

fn pair(c: &mut Criterion) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let binding = [1; 32];
    let (initiator, request) = Initiator::begin(&binding, &mut rng);
    let request = request.as_slice().try_into().unwrap();
    let (responder, response) = Responder::answer(&binding, request, &mut rng).unwrap();
    let (first, corrections) = initiator.finish(response.as_slice().try_into().unwrap(), &mut rng).unwrap();
    let second = responder.finish(corrections.as_slice().try_into().unwrap()).unwrap();
    let (sender, receiver) = (first.sender, second.receiver);

    c.bench_function("set-up/initiator begins", |b| b.iter(|| Initiator::begin(&binding, &mut rng)));
    c.bench_function("set-up/responder answers", |b| {
        b.iter(|| Responder::answer(&binding, request, &mut rng).unwrap())
    });
    let mut begun = {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        move || {
            let (initiator, request) = Initiator::begin(&binding, &mut rng);
            let request = request.as_slice().try_into().unwrap();
            (initiator, Responder::answer(&binding, request, &mut rng).unwrap())
        }
    };
    c.bench_function("set-up/initiator finishes", |b| {
        b.iter_batched(
            &mut begun,
            |(initiator, (_, response))| {
                initiator.finish(response.as_slice().try_into().unwrap(), &mut rng).unwrap()
            },
            BatchSize::SmallInput,
        )
    });
    c.bench_function("set-up/responder finishes", |b| {
        b.iter_batched(
            || {
                let (initiator, (responder, response)) = begun();
                let mut rng = ChaCha20Rng::seed_from_u64(3);
                (responder, initiator.finish(response.as_slice().try_into().unwrap(), &mut rng).unwrap().1)
            },
            |(responder, corrections)| responder.finish(corrections.as_slice().try_into().unwrap()).unwrap(),
            BatchSize::SmallInput,
        )
    });

    let scalars: Secret<[Scalar; 2]> = Secret::new([random_scalar(&mut rng), random_scalar(&mut rng)]);
    let (_, sampled) = vole::sample(&[2; 32], &receiver, &mut rng);
    let sampled = sampled.as_slice().try_into().unwrap();
    c.bench_function("multiply/bob samples", |b| b.iter(|| vole::sample(&[2; 32], &receiver, &mut rng)));
    c.bench_function("multiply/alice", |b| {
        b.iter(|| vole::multiply(&[2; 32], &sender, sampled, &scalars, &mut rng).unwrap())
    });
    c.bench_function("multiply/bob finishes", |b| {
        b.iter_batched(
            || {
                let (bob, sampled) = vole::sample(&[2; 32], &receiver, &mut rng);
                let sampled = sampled.as_slice().try_into().unwrap();
                (bob, vole::multiply(&[2; 32], &sender, sampled, &scalars, &mut rng).unwrap().1)
            },
            |(bob, answer)| bob.finish(answer.as_slice().try_into().unwrap()).unwrap(),
            BatchSize::SmallInput,
        )
    });
}

criterion_group!(benches, pair);
criterion_main!(benches);
