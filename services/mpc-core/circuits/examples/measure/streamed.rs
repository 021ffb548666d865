//! Programs that are garbled as they are compiled, each in a process of its own, whose memory is that of both parties.

use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Instant;

use circuits::circuit::Nowhere;
use circuits::compile::{Limits, compile};
use circuits::garble::{Channel, Inputs, evaluate, garble};
use circuits::program::Program;
use circuits::stack::STACK;
use getrandom::SysRng;
use rand_core::UnwrapErr;

use super::{Table, timed};

/// The argument that makes this command the process of one program.
pub const WORD: &str = "streamed";

const HASH: &str = "package main

import \"crypto/sha512\"

func main(garbler [32]byte, evaluator []byte) [64]byte {
	return sha512.Sum512(garbler[:] + evaluator)
}
";

const ED25519: &str = include_str!("../../tests/programs/long/ed25519.mpcl");

/// RSA with a secret message and an exponent that both have a share of, as the seed's author measures it.
const RSA: &str = "package main

import \"crypto/rsa\"

type Garbler struct {
	message, share uintBITS
}

type Evaluator struct {
	modulus, share uintBITS
}

func main(g Garbler, e Evaluator) uintBITS {
	return rsa.Decrypt(g.message, g.share+e.share, e.modulus)
}
";

/// The nonce of an Ed25519 signature under masks of both, for a message that both know. All else of a signature is
/// linear.
const NONCE: &str = "package main

import \"crypto/sha512\"

type Party struct {
	prefix [32]byte
	mask   uint608
}

func main(garbler, evaluator Party) uint610 {
	var data [LENGTH + 32]byte
	for i := range garbler.prefix {
		data[i] = garbler.prefix[i] ^ evaluator.prefix[i]
	}
	copy(data[32:], []byte(\"MESSAGE\"))
	hash := sha512.Sum512(data[:])
	var nonce uint610
	for i := range hash {
		nonce |= uint610(hash[i]) << (8 * i)
	}
	return nonce + uint610(garbler.mask) + uint610(evaluator.mask)
}
";

struct Streamed {
    text: String,
    /// Of the fields whose types leave them open.
    sizes: [Vec<usize>; 2],
    /// Of each party's input.
    bits: [usize; 2],
}

/// The program of a row.
fn program(name: &str) -> Streamed {
    if let Some(bits) = name.strip_prefix("rsa-") {
        let all = 2 * bits.parse::<usize>().unwrap();
        return Streamed { text: RSA.replace("BITS", bits), sizes: [vec![], vec![]], bits: [all; 2] };
    }
    if let Some(length) = name.strip_prefix("nonce-") {
        let letters = (0..length.parse().unwrap()).map(|at| (b'a' + (at % 26) as u8) as char);
        let text = NONCE.replace("LENGTH", length).replace("MESSAGE", &letters.collect::<String>());
        return Streamed { text, sizes: [vec![], vec![]], bits: [256 + 608; 2] };
    }
    match name {
        "sha512-64-blocks" => {
            let bits = 8 * 128 * 63;
            Streamed { text: HASH.into(), sizes: [vec![], vec![bits]], bits: [256, bits] }
        }
        "ed25519-whole" => Streamed { text: ED25519.into(), sizes: [vec![], vec![0, 8]], bits: [256, 264] },
        other => panic!("no program {other}"),
    }
}

/// The rows of a program, measured in a process of its own.
pub fn rows(scenario: &str, name: &str, runs: usize) {
    let command = std::env::current_exe().unwrap();
    let ended = Command::new(command).args([WORD, scenario, name, &runs.to_string()]).status().unwrap();
    assert!(ended.success(), "{scenario}");
}

/// Measures one scenario in this process.
pub fn measure(scenario: &str, name: &str, runs: usize) {
    let Streamed { text, sizes, bits } = program(name);
    let mut table = Table::default();
    for _ in 0..runs {
        let program = Program::from_text(name, &text, &[]).unwrap_or_else(|e| panic!("{e}"));
        let (counted, seconds) =
            timed(|| compile(&program, &sizes, Limits::default(), &mut Nowhere).unwrap());
        let count = counted.count;
        let ands = count.and as f64;
        table.add("program", "and-gates", "count", ands);
        table.add("program", "gates", "count", (count.and + count.xor) as f64);
        table.add("compile", "rate", "million-and/s", ands / seconds / 1e6);
        let (left, right) = UnixStream::pair().unwrap();
        let side = |garbles: bool, stream: UnixStream| {
            let program = Program::from_text(name, &text, &[]).unwrap();
            let mut channel = Channel::new(stream.try_clone().unwrap(), stream);
            let input = Inputs::new(vec![true; bits[usize::from(!garbles)]]);
            let run = if garbles { garble } else { evaluate };
            let rng = &mut UnwrapErr(SysRng);
            timed(|| run(&program, &sizes, input, Limits::default(), &mut channel, rng).unwrap().sent)
        };
        let start = Instant::now();
        let (garbled, evaluated) = std::thread::scope(|scope| {
            let evaluator = std::thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, || side(false, right))
                .unwrap();
            (side(true, left), evaluator.join().unwrap())
        });
        table.add("run", "wall", "s", start.elapsed().as_secs_f64());
        table.add("garble", "rate", "million-and/s", ands / garbled.1 / 1e6);
        table.add("evaluate", "rate", "million-and/s", ands / evaluated.1 / 1e6);
        table.add("run", "bytes", "MB", (garbled.0 + evaluated.0) as f64 / 1e6);
    }
    table.add("run", "peak-memory-of-both", "MB", peak_resident() / 1e6);
    table.print(scenario, "semi-honest");
}

/// Most bytes of memory that this process has had at a time.
fn peak_resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: f64 = line.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    1024.0 * kib
}
