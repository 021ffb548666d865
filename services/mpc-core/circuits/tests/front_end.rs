//! Text that is no program: the front end refuses it with an error and never stops by a panic.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests are test code"
)]

use circuits::circuit::{Nowhere, bristol};
use circuits::compile::{Limits, compile};
use circuits::program::Program;
use circuits::stack::with_stack;
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};

const LIMITS: Limits = Limits { turns: 64, depth: 20, statements: 2000, gates: 1 << 18, collect_after: None };

/// Programs that use most of the language, to be damaged.
const SEEDS: &[&str] = &[
    include_str!("programs/lang/composite.mpcl"),
    include_str!("programs/lang/methods.mpcl"),
    include_str!("programs/lang/pointers.mpcl"),
    include_str!("programs/lang/slices.mpcl"),
    include_str!("programs/lang/loops.mpcl"),
    include_str!("programs/lang/specialise.mpcl"),
    include_str!("programs/lang/struct_with_slice.mpcl"),
    include_str!("programs/lang/secret_index_nested.mpcl"),
    include_str!("programs/lang/if_merge.mpcl"),
    include_str!("programs/lang/native_file.mpcl"),
];

const WORDS: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ";",
    "\n",
    ":=",
    "=",
    "+",
    "-",
    "*",
    "&",
    "<<",
    ">>",
    "/",
    "%",
    "0",
    "1",
    "-1",
    "99999999999999999999",
    "0x",
    "'a'",
    "\"s\"",
    "uint8",
    "int",
    "[]byte",
    "[4]uint16",
    "nil",
    "true",
    "len(",
    "size(",
    "make(",
    "copy(",
    "native(",
    "panic(",
    "for ",
    "if ",
    "else ",
    "return ",
    "range ",
    "struct {",
    "type ",
    "var ",
    "const ",
    "func ",
    "a",
    "b",
    ".",
    "_",
    "uint0",
    "string7",
    "int1",
    "1<<70",
    "[:]",
    "&a",
    "*a",
];

fn feed(text: &str) -> bool {
    match Program::from_text("fuzz.mpcl", text, &[]) {
        Err(error) => !error.0.is_empty(),
        Ok(program) => match compile(&program, &[vec![16; 4], vec![8; 4]], LIMITS, &mut Nowhere) {
            Err(error) => !program.sources.render(&error).is_empty(),
            Ok(_) => true,
        },
    }
}

fn below(rng: &mut ChaCha12Rng, n: usize) -> usize {
    usize::try_from(rng.next_u64() % n.max(1) as u64).unwrap()
}

#[test]
fn damaged_programs_never_stop_the_compiler_by_a_panic() {
    let runs = std::env::var("FUZZ_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(2000);
    let seed = std::env::var("FUZZ_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(22);
    let done = with_stack(|| {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        for run in 0..runs {
            let mut text: Vec<u8> = SEEDS[below(&mut rng, SEEDS.len())].as_bytes().to_vec();
            for _ in 0..=below(&mut rng, 4) {
                let at = below(&mut rng, text.len());
                match below(&mut rng, 4) {
                    0 => {
                        let end = (at + below(&mut rng, 12)).min(text.len());
                        text.drain(at..end);
                    }
                    1 => text[at] = u8::try_from(rng.next_u64() & 0x7f).unwrap(),
                    2 => {
                        let end = (at + below(&mut rng, 30)).min(text.len());
                        let copy = text[at..end].to_vec();
                        let to = below(&mut rng, text.len());
                        text.splice(to..to, copy);
                    }
                    _ => {
                        let word = WORDS[below(&mut rng, WORDS.len())];
                        text.splice(at..at, word.bytes());
                    }
                }
                if text.is_empty() {
                    text.push(b' ');
                }
            }
            let text = String::from_utf8_lossy(&text).into_owned();
            let survived = std::panic::catch_unwind(|| feed(&text));
            assert!(survived.is_ok_and(|ok| ok), "seed {seed}, run {run}:\n{text}");
        }
    });
    assert!(done.is_some(), "the compiler panicked");
}

#[test]
fn random_bytes_are_refused() {
    let mut rng = ChaCha12Rng::seed_from_u64(7);
    for _ in 0..500 {
        let mut bytes = vec![0u8; below(&mut rng, 200)];
        rng.fill_bytes(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(Program::from_text("bytes", &text, &[]).is_err(), "{text:?} parses");
        assert!(bristol::read(&text).is_err());
    }
}

#[test]
fn deep_nesting_is_refused() {
    for open in ["(", "-", "[]", "*", "{", "if a {", "f("] {
        let text = format!("package main\nfunc main(a, b int8) int8 {{ return {} }}", open.repeat(5000));
        assert!(Program::from_text("deep", &text, &[]).is_err());
    }
}

#[test]
fn circuits_with_a_false_header_or_loose_wires_are_refused() {
    for text in [
        "1 3\n2 1 1\n1 1\n\n2 1 0 1 1 AND",
        "1 3\n2 1 1\n1 1\n\n2 1 0 2 2 AND",
        "2 3\n2 1 1\n1 1\n\n2 1 0 1 2 AND",
        "1 3\n2 1 1\n1 1\n\n2 1 0 1 2 NAND",
        "1 99999999999\n2 1 1\n1 1\n\n2 1 0 1 2 AND",
        "1 3\n2 18446744073709551615 1\n1 1\n\n2 1 0 1 2 AND",
        "0 3\n2 1 1\n1 1\n",
    ] {
        assert!(bristol::read(text).is_err(), "{text:?} is read");
    }
}
