//! Measures garbling against a floor of bare AES, in one run: `cargo run --release -p circuits --example measure`.
//!
//! Prints CSV lines `scenario,scheme,t,n,mode,phase,metric,unit,median,p95,runs`, the format of
//! `build/bench/results.csv`. Times are processor time of the party's thread, so that other work on the machine
//! disturbs them as little as possible; `wall` is the time that passes with both parties on this machine. Arguments:
//! the number of runs, 5 by default; `long` adds the whole Ed25519 program, RSA with 256 and 512 bits and the longer
//! messages; `rsa-1024` adds RSA of that size; `ed25519` measures signing by two parties alone, `hardened` derivation
//! by two parties, and `half-gates` what is garbled as it is compiled.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a measurement ends where it cannot measure"
)]

#[path = "measure/hardened.rs"]
mod hardened;
#[path = "measure/streamed.rs"]
mod streamed;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use circuits::authenticated::{self, Entry, Pair, Prepared, Role, bucket_size};
use circuits::circuit::{Circuit, Recorder};
use circuits::compile::{Limits, compile};
use circuits::ed25519::{Import, NonceCircuit, NonceRecord, Ready, blocks};
use circuits::garble::Channel;
use circuits::line::now;
use circuits::program::Program;
use circuits::stack::with_stack;
use getrandom::SysRng;
use primitives::Secret;
use rand_core::UnwrapErr;
use rustix::time::{ClockId, clock_gettime};

const BLOCKS: &str = "package main

import \"crypto/sha512\"

// main computes the nonce of RFC 8032 before its reduction, of a prefix that is shared.
func main(garbler [32]byte, evaluator [32]byte) [64]byte {
	var prefix [32]byte
	for i := range prefix {
		prefix[i] = garbler[i] ^ evaluator[i]
	}
	return sha512.Sum512(prefix[:] + make([]byte, LENGTH))
}
";

/// Blocks of SHA-512 in a signature, and the bytes of a message that takes so many.
const MESSAGES: [(usize, usize); 3] = [(1, 64), (5, 576), (11, 1344)];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, scenario, name, runs] = arguments.as_slice()
        && word == streamed::WORD
    {
        with_stack(|| streamed::measure(scenario, name, runs.parse().unwrap()));
        return;
    }
    let runs = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(5);
    let given = |word: &str| arguments.iter().any(|argument| argument == word);
    let parts = ["half-gates", "ed25519", "hardened"];
    let all = !parts.iter().any(|part| given(part));
    let long = given("long");
    println!("scenario,scheme,t,n,mode,phase,metric,unit,median,p95,runs");
    with_stack(|| {
        floor(runs);
        if all || given("half-gates") {
            half_gates(runs, long);
        }
        if given("rsa-1024") {
            streamed::rows("rsa-1024", "rsa-1024", 1);
        }
        for (blocks, length) in MESSAGES.into_iter().filter(|(blocks, _)| long || *blocks == 1) {
            if all {
                let text = BLOCKS.replace("LENGTH", &length.to_string());
                prepared(&format!("sha512-{blocks}-blocks"), &text, runs);
            }
            if all || given("ed25519") {
                streamed::rows(&format!("ed25519-{blocks}-blocks"), &format!("nonce-{length}"), runs);
                signed(blocks, length, runs);
            }
        }
        if all || given("ed25519") {
            masks(runs);
        }
        if all || given("hardened") {
            hardened::rows(runs, long || !all);
        }
    });
}

/// Whole programs. The long ones run once.
fn half_gates(runs: usize, long: bool) {
    streamed::rows("sha512-64-blocks", "sha512-64-blocks", runs);
    streamed::rows("rsa-128", "rsa-128", runs);
    for name in ["rsa-256", "rsa-512", "ed25519-whole"].into_iter().filter(|_| long) {
        streamed::rows(name, name, 1);
    }
}

#[derive(Default)]
struct Table(BTreeMap<(String, &'static str, &'static str), Vec<f64>>);

impl Table {
    fn add(&mut self, phase: &str, metric: &'static str, unit: &'static str, value: f64) {
        self.0.entry((phase.into(), metric, unit)).or_default().push(value);
    }

    fn print(self, scenario: &str, mode: &str) {
        for ((phase, metric, unit), mut values) in self.0 {
            values.sort_by(f64::total_cmp);
            let at = |part: f64| values.get((part * (values.len() - 1) as f64).round() as usize).unwrap();
            println!(
                "{scenario},circuit,2,2,{mode},{phase},{metric},{unit},{:.3},{:.3},{}",
                at(0.5),
                at(0.95),
                values.len()
            );
        }
    }
}

/// Processor time of this thread.
fn spent() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.try_into().unwrap(), now.tv_nsec.try_into().unwrap())
}

fn timed<T>(body: impl FnOnce() -> T) -> (T, f64) {
    let before = spent();
    let result = body();
    (result, (spent() - before).as_secs_f64())
}

/// Blocks of AES-128 that the library encrypts in a second; a garbler needs four an AND gate, an evaluator two.
fn floor(runs: usize) {
    let mut table = Table::default();
    let cipher = Aes128::new(&[1; 16].into());
    let mut blocks = vec![[0u8; 16]; 1 << 12];
    for _ in 0..runs {
        let ((), seconds) = timed(|| {
            for _ in 0..256 {
                cipher.encrypt_blocks(Block::cast_slice_from_core_mut(black_box(&mut blocks)));
            }
        });
        table.add("floor", "aes-blocks", "million/s", (blocks.len() * 256) as f64 / seconds / 1e6);
    }
    table.print("aes", "bare");
}

fn circuit(text: &str) -> Circuit {
    let program = Program::from_text("bench", text, &[]).unwrap_or_else(|e| panic!("{e}"));
    let mut recorder = Recorder::default();
    compile(&program, &[vec![], vec![]], Limits::default(), &mut recorder).unwrap();
    let mut circuit = recorder.circuit;
    circuit.prune();
    circuit.compact()
}

/// The phases of a party, each with its time and the bytes that it sends.
struct Phases<'a> {
    channel: &'a mut Channel<UnixStream, UnixStream>,
    passed: Vec<(&'static str, f64, f64, u64)>,
}

impl Phases<'_> {
    fn run<T>(
        &mut self,
        name: &'static str,
        body: impl FnOnce(&mut Channel<UnixStream, UnixStream>) -> T,
    ) -> T {
        let before = self.channel.sent();
        let start = Instant::now();
        let (result, seconds) = timed(|| body(self.channel));
        let wall = start.elapsed().as_secs_f64();
        self.passed.push((name, wall, seconds, self.channel.sent() - before));
        result
    }
}

/// Runs both parties through phases, and adds their times to a table. Both must get the same.
fn phases<T: PartialEq + std::fmt::Debug + Send>(
    table: &mut Table,
    side: impl Fn(Role, &mut Phases<'_>) -> T + Sync,
) {
    let (left, right) = UnixStream::pair().unwrap();
    let run = |role: Role, stream: UnixStream| {
        let mut channel = Channel::new(stream.try_clone().unwrap(), stream);
        let mut phases = Phases { channel: &mut channel, passed: Vec::new() };
        let result = side(role, &mut phases);
        (result, phases.passed)
    };
    let (garbler, evaluator) = std::thread::scope(|scope| {
        let evaluator = scope.spawn(|| run(Role::Evaluator, right));
        (run(Role::Garbler, left), evaluator.join().unwrap())
    });
    assert_eq!(garbler.0, evaluator.0);
    for (first, second) in garbler.1.iter().zip(&evaluator.1) {
        table.add(first.0, "wall", "ms", 1e3 * first.1.max(second.1));
        table.add(first.0, "garbler", "ms", 1e3 * first.2);
        table.add(first.0, "evaluator", "ms", 1e3 * second.2);
        table.add(first.0, "bytes", "MB", (first.3 + second.3) as f64 / 1e6);
    }
}

/// A circuit with both parts of its preparation, then its evaluation.
fn prepared(name: &str, text: &str, runs: usize) {
    let circuit = &circuit(text);
    let ands = circuit.gates.iter().filter(|gate| gate.is_and()).count();
    let mut table = Table::default();
    for _ in 0..runs {
        table.add("program", "and-gates", "count", ands as f64);
        table.add("program", "bucket", "count", bucket_size(ands) as f64);
        phases(&mut table, |role, phases| {
            let rng = &mut UnwrapErr(SysRng);
            let input = Secret::new(vec![1u8; 256]);
            let pair =
                phases.run("set-up", |channel| now(Pair::set_up(role, &[1; 32], channel, rng)).unwrap());
            let ready =
                phases.run("prepare", |channel| now(Prepared::new(&pair, circuit, channel, rng)).unwrap());
            phases.run("online", |channel| {
                now(authenticated::evaluate(&pair, ready, Entry::Free(&input), channel)).unwrap()
            })
        });
    }
    table.print(name, "malicious-80");
}

/// As many daBits of each party as a signature takes, alone.
fn masks(runs: usize) {
    let text = "package main\n\nfunc main(a, b uint1) uint1 {\n\treturn a ^ b\n}\n";
    let circuit = &circuit(text);
    let mut table = Table::default();
    for _ in 0..runs {
        phases(&mut table, |role, phases| {
            let rng = &mut UnwrapErr(SysRng);
            let pair =
                phases.run("set-up", |channel| now(Pair::set_up(role, &[1; 32], channel, rng)).unwrap());
            phases.run("prepare", |channel| {
                let _made = now(Prepared::with_dabits(&pair, circuit, 608, channel, rng)).unwrap();
            });
        });
    }
    table.print("dabits-608", "malicious-80");
}

struct Memory(BTreeMap<Vec<u8>, [u8; 32]>);

impl NonceRecord for Memory {
    fn settle(&mut self, key: &[u8; 32], message: &[u8; 64], nonce: &[u8; 32]) -> io::Result<[u8; 32]> {
        Ok(*self.0.entry([key.as_slice(), message].concat()).or_insert(*nonce))
    }
}

/// A signature as RFC 8032 says: the import with its test signature, the preparation, and the signature.
fn signed(count: usize, length: usize, runs: usize) {
    let circuit = &NonceCircuit::new(count).unwrap();
    assert_eq!(blocks(length), count);
    let import = Import::from_seed(&Secret::new([7; 32]), 2, &mut UnwrapErr(SysRng)).unwrap();
    let message = vec![5u8; length];
    let mut table = Table::default();
    for _ in 0..runs {
        table.add("program", "and-gates", "count", circuit.ands() as f64);
        table.add("program", "bucket", "count", bucket_size(circuit.ands()) as f64);
        phases(&mut table, |role, phases| {
            let rng = &mut UnwrapErr(SysRng);
            let share = &import.shares[usize::from(role == Role::Evaluator)];
            let record = &mut Memory(BTreeMap::new());
            let pair =
                phases.run("set-up", |channel| now(Pair::set_up(role, &[1; 32], channel, rng)).unwrap());
            let key = phases.run("import", |channel| {
                let key = now(share.join(&pair, 3 - share.number, channel, rng)).unwrap();
                now(key.confirm(&pair, record, channel, rng)).unwrap()
            });
            let ready =
                phases.run("prepare", |channel| now(Ready::new(&pair, circuit, channel, rng)).unwrap());
            phases.run("online", |channel| {
                now(key.sign(&pair, circuit, ready, &message, record, channel)).unwrap()
            })
        });
    }
    table.print(&format!("ed25519-{count}-blocks"), "malicious-80");
}
