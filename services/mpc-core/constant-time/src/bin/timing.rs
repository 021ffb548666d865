//! Statistics of time: each operation with one fixed secret and with fresh ones, by turns that a coin decides, and
//! Welch's t-test between the two (Reparaz, Balasch, Verbauwhede 2017, eprint 2016/1123, section 3).
//!
//! Memcheck shows that no branch and no address depends on a secret. This looks for what it cannot see: instructions
//! whose own time depends on their operands. The control does a little more work for a secret with more one bits, and
//! must be found, else the machine is too noisy to say anything.
//!
//! `.ci/rust timing` runs it; `SECONDS_EACH` (60) is how long each operation is measured.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a check fails by panicking"
)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use engine::{EvidenceKey, PartyId, Secret};
use primitives::bls12_381::{G1, HashedMessage, Scalar as BlsScalar};
use primitives::secp256k1;
use protocols::bls::Subgroup;
use protocols::dealing::Polynomial;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// From here on two means differ: the paper's 4.5 is for one test, and each operation is tested at several cuts.
const DIFFERENT: f64 = 6.0;
/// Slower measurements than this share of all are interrupts and not the operation: each cut is a test of its own.
const CUTS: [f64; 4] = [0.5, 0.8, 0.95, 1.0];
/// Measurements from which the cuts are taken.
const PILOT: usize = 2_000;

/// From which the fixed secret is drawn.
const FIXED: [u8; 32] = [7; 32];

/// Mean and variance, one value at a time (Welford 1962).
#[derive(Default, Clone, Copy)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn push(&mut self, value: f64) {
        self.count += 1.0;
        let away = value - self.mean;
        self.mean += away / self.count;
        self.squares += away * (value - self.mean);
    }

    fn of_mean(&self) -> f64 {
        self.squares / (self.count - 1.0) / self.count
    }
}

/// Welch's t of two classes; 0 while one has too few values to say anything.
fn welch([fixed, fresh]: &[Moments; 2]) -> f64 {
    if fixed.count < 100.0 || fresh.count < 100.0 {
        return 0.0;
    }
    let deviation = (fixed.of_mean() + fresh.of_mean()).sqrt();
    if deviation == 0.0 { 0.0 } else { (fixed.mean - fresh.mean) / deviation }
}

/// Measures `run` for `seconds` with secrets from `draw`: the largest |t| of all cuts, and how many were measured.
fn compare<S, R>(
    seconds: Duration,
    mut draw: impl FnMut(&mut ChaCha20Rng) -> S,
    mut run: impl FnMut(&S) -> R,
) -> (f64, u64) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let begin = Instant::now();
    let mut pilot = Vec::with_capacity(PILOT);
    let mut limits: Option<[f64; CUTS.len()]> = None;
    let mut classes = [[Moments::default(); 2]; CUTS.len()];
    let mut count = 0;
    while begin.elapsed() < seconds || limits.is_none() {
        let class = usize::from(rng.next_u32() & 1 == 1);
        // One draw in both classes, so that nothing but the secret differs: neither the steps before the operation, nor
        // where in memory the secret lies.
        let fresh = bytes::<32>(&mut rng);
        // Without a branch, which the processor would foresee for one class and not for the other.
        let mask = black_box((class as u8).wrapping_neg());
        let seed = core::array::from_fn(|i| (fresh[i] & mask) | (FIXED[i] & !mask));
        let secret = black_box(draw(&mut ChaCha20Rng::from_seed(seed)));
        let start = Instant::now();
        black_box(run(black_box(&secret)));
        let nanos = start.elapsed().as_nanos() as f64;
        let Some(limits) = limits else {
            pilot.push(nanos);
            if pilot.len() == PILOT {
                pilot.sort_by(f64::total_cmp);
                limits =
                    Some(CUTS.map(|cut| {
                        if cut < 1.0 { pilot[(PILOT as f64 * cut) as usize] } else { f64::INFINITY }
                    }));
            }
            continue;
        };
        count += 1;
        for (limit, cut) in limits.iter().zip(&mut classes) {
            if nanos <= *limit {
                cut[class].push(nanos);
            }
        }
    }
    (classes.iter().map(|cut| welch(cut).abs()).fold(0.0, f64::max), count)
}

/// Some work for each one bit of a secret.
#[inline(never)]
fn leak(secret: &[u8; 32]) {
    for byte in secret {
        for bit in 0..8 {
            if black_box(byte >> bit) & 1 == 1 {
                black_box(byte.wrapping_mul(bit));
            }
        }
    }
}

fn bytes<const N: usize>(rng: &mut ChaCha20Rng) -> [u8; N] {
    let mut bytes = [0; N];
    rng.fill_bytes(&mut bytes);
    bytes
}

fn bls_scalar(rng: &mut ChaCha20Rng) -> Secret<BlsScalar> {
    Secret::new(BlsScalar::from_wide(&bytes(rng)))
}

fn main() -> ExitCode {
    let seconds = std::env::var("SECONDS_EACH").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let each = Duration::from_secs(seconds);
    let message = HashedMessage::new(b"message", b"domain");
    let point = secp256k1::mul_generator(&secp256k1::reduce_wide(&[3; 64]));
    let scalar = |rng: &mut ChaCha20Rng| secp256k1::reduce_wide(&bytes(rng));
    let seed = |rng: &mut ChaCha20Rng| Secret::new(bytes::<32>(rng));

    let mut failed = 0;
    let mut report = |name: &str, (t, count): (f64, u64), leaks: bool| {
        let ok = (t > DIFFERENT) == leaks;
        failed += u32::from(!ok);
        println!("{name}: |t| {t:.2}, {count} measurements, {}", if ok { "ok" } else { "FAILED" });
    };
    let drawn = |rng: &mut ChaCha20Rng| {
        let mut secret = bytes::<32>(rng);
        secret.iter_mut().for_each(|byte| *byte |= 1);
        secret
    };
    report("control: a loop over one bits", compare(each, drawn, leak), true);
    let multiply = |secret: &_| secp256k1::mul_generator(secret);
    report("secp256k1: generator times secret", compare(each, scalar, multiply), false);
    let combine = |secret: &_| secp256k1::combine_two(secret, &point, secret, &point);
    report("secp256k1: two points times secret", compare(each, scalar, combine), false);
    let invert = |secret: &secp256k1::Scalar| secret.invert();
    report("secp256k1: inverse", compare(each, scalar, invert), false);
    let multiply = |secret: &_| G1::mul_generator(secret);
    report("BLS12-381: generator of G1 times secret", compare(each, bls_scalar, multiply), false);
    let sign = |secret: &_| message.sign(secret);
    report("BLS12-381: partial signature", compare(each, bls_scalar, sign), false);
    let invert = |secret: &Secret<BlsScalar>| secret.expose().inverse();
    report("BLS12-381: inverse", compare(each, bls_scalar, invert), false);
    let polynomial =
        |rng: &mut ChaCha20Rng| Polynomial::of(vec![bls_scalar(rng), bls_scalar(rng), bls_scalar(rng)]);
    let three = PartyId::new(3).expect("a party's number");
    let evaluate = |secret: &Polynomial<Subgroup>| secret.at(three);
    report("BLS12-381: value of a polynomial", compare(each, polynomial, evaluate), false);
    let key = |rng: &mut ChaCha20Rng| EvidenceKey::from_seed(&seed(rng));
    let sign = |secret: &EvidenceKey| secret.sign_statement(b"statement");
    report("Ed25519: statement of an evidence key", compare(each, key, sign), false);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
