//! Threshold ECDSA of this core beside the crate `dkls23` 0.6.2 and beside local signatures, in one run on one thread.
//!
//! Times are of the processor, not of the clock on the wall.
//! `cargo run --release --manifest-path bench-dkls23/Cargo.toml`. For each operation: computation of the busiest party
//! (median of the runs, which alternate between both), what the party that sends most sends, and the ratio.

#[path = "../../protocols/benches/ecdsa_harness/mod.rs"]
#[allow(dead_code)]
mod ecdsa_harness;
mod other;

use std::hint::black_box;
use std::time::Duration;

use ecdsa_harness::{Store, keygen, presign, processor_time, seeded, sign, sign_presigned};

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn print(operation: &str, (t, n): (usize, usize), ours: (Duration, usize), theirs: (Duration, usize)) {
    println!(
        "{operation:<15} {t}/{n}   ours {:>8.3} ms {:>7} B   dkls23 {:>8.3} ms {:>7} B   {:>5.1}x faster, {:.2}x the bytes",
        ms(ours.0),
        ours.1,
        ms(theirs.0),
        theirs.1,
        theirs.0.as_secs_f64() / ours.0.as_secs_f64(),
        ours.1 as f64 / theirs.1 as f64,
    );
}

fn local() {
    let secret = secp256k1::SecretKey::from_secret_bytes([7; 32]).unwrap();
    let message = secp256k1::Message::from_digest([9; 32]);
    let time = |mut work: Box<dyn FnMut()>| {
        median(
            (0..501)
                .map(|_| {
                    let begun = processor_time();
                    work();
                    processor_time() - begun
                })
                .collect(),
        )
    };
    let libsecp = time(Box::new(move || {
        black_box(secp256k1::ecdsa::sign(message, &secret));
    }));
    let key = k256::ecdsa::SigningKey::from_slice(&[7; 32]).unwrap();
    let rust = time(Box::new(move || {
        use k256::ecdsa::signature::hazmat::PrehashSigner;
        let signature: k256::ecdsa::Signature = key.sign_prehash(&[9; 32]).unwrap();
        black_box(signature);
    }));
    println!("local signature  libsecp256k1 {:.3} ms   k256 {:.3} ms", ms(libsecp), ms(rust));
}

fn main() {
    let mut rng = seeded(1);
    local();
    for (t, n) in [(2, 2), (2, 3), (3, 5)] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let (mut sent, mut sent_theirs) = (0, 0);
        let mut store = None;
        let mut parties = None;
        for _ in 0..7 {
            let run = keygen(t, n, &mut rng);
            ours.push(run.time);
            sent = run.sent;
            store = Some(Store::new(run.outputs, &mut rng));
            let (time, bytes, made) = other::keygen(t as u8, n as u8, &mut rng);
            theirs.push(time);
            sent_theirs = bytes;
            parties = Some(made);
        }
        print("key generation", (t, n), (median(ours), sent), (median(theirs), sent_theirs));

        let (store, parties) = (store.unwrap(), parties.unwrap());
        let (mut ours, mut theirs, mut online, mut offline) = (vec![], vec![], vec![], vec![]);
        for _ in 0..51 {
            let run = sign(&store, &mut rng);
            ours.push(run.time);
            sent = run.sent;
            let (time, bytes) = other::sign(&parties, t as u8, &mut rng);
            theirs.push(time);
            sent_theirs = bytes;
            let presigned = presign(&store, &mut rng);
            offline.push(presigned.time);
            online.push(sign_presigned(&store, presigned.outputs, &mut rng).time);
        }
        print("sign", (t, n), (median(ours), sent), (median(theirs), sent_theirs));
        println!(
            "presigned       {t}/{n}   before the digest {:.3} ms, after it {:.3} ms",
            ms(median(offline)),
            ms(median(online))
        );
    }
}
