//! Programs evaluated by garbling between two threads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests are test code")]

use std::os::unix::net::UnixStream;
use std::path::Path;

use circuits::compile::Limits;
use circuits::garble::{Channel, Inputs, Outcome, RunError, evaluate, garble};
use circuits::program::Program;
use circuits::stack::with_stack;
use circuits::testing::{self, Garbled};
use rand_chacha::ChaCha12Rng;
use rand_core::SeedableRng;

fn path(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

#[test]
fn programs_give_their_vectors_when_they_are_garbled() {
    with_stack(|| {
        let mut lines = 0;
        for name in [
            "lang/arithmetic_signed",
            "lang/karatsuba",
            "lang/secret_index_nested",
            "lang/struct_with_slice",
            "lang/methods",
            "lang/early_return",
            "lang/hamming",
            "lang/odd_widths",
            "lang/logic",
            "lang/literals",
            "crypto/sha256",
            "crypto/aes128",
            "crypto/poly1305",
            "library/sort",
        ] {
            let program = Program::load(&path(&format!("{name}.mpcl")), &[]).unwrap();
            for outcome in testing::run(&program, &Garbled, Limits::default()).unwrap() {
                assert_eq!(outcome.failure, None, "{name}\n{}", outcome.line);
                lines += 1;
            }
        }
        assert!(lines > 30);
    })
    .expect("no panic");
}

/// Runs both sides with texts and sizes of their own; gives both ends.
fn run(texts: [&str; 2], sizes: [usize; 2], bits: [Vec<bool>; 2]) -> [Result<(Vec<bool>, u64), String>; 2] {
    let (left, right) = UnixStream::pair().unwrap();
    let [first, second] = texts.map(str::to_string);
    let [mine, theirs] = bits;
    let side = move |text: String, garbles: bool, size: usize, bits: Vec<bool>, stream: UnixStream| {
        let program = Program::from_text("text", &text, &[]).unwrap();
        let mut channel = Channel::new(stream.try_clone().unwrap(), stream);
        let rng = &mut ChaCha12Rng::seed_from_u64(u64::from(garbles));
        let sizes = [vec![size], vec![size]];
        let run = if garbles { garble } else { evaluate };
        let result: Result<Outcome, RunError> =
            run(&program, &sizes, Inputs::new(bits), Limits::default(), &mut channel, rng);
        result.map(|o| (o.outputs, o.sent)).map_err(|e| e.to_string())
    };
    let evaluator = std::thread::spawn(move || side(second, false, sizes[1], theirs, right));
    let garbler = side(first, true, sizes[0], mine, left);
    [garbler, evaluator.join().unwrap()]
}

fn bits(value: u64, n: usize) -> Vec<bool> {
    (0..n).map(|i| value >> i & 1 == 1).collect()
}

const MULTIPLY: &str = "package main\nfunc main(a, b uint) uint {\n\treturn a * b\n}\n";

#[test]
fn both_parties_learn_the_result_and_an_and_gate_costs_32_bytes() {
    let [garbler, evaluator] =
        run([MULTIPLY, MULTIPLY], [64, 64], [bits(123_456_789, 64), bits(987_654_321, 64)]);
    let (outputs, sent) = garbler.unwrap();
    assert_eq!(outputs, bits(123_456_789 * 987_654_321, 64));
    assert_eq!(evaluator.unwrap().0, outputs);
    let [small, _] = run([MULTIPLY, MULTIPLY], [32, 32], [bits(3, 32), bits(5, 32)]);
    // A product of n bits takes n(n - 1) + 1 gates less what is known to be zero; inputs and outputs grow with n.
    let growth = sent - small.unwrap().1;
    assert!((32 * 2000..32 * 3400).contains(&growth), "{growth} bytes");
}

#[test]
fn parties_with_different_programs_or_sizes_stop_before_any_label() {
    let add = "package main\nfunc main(a, b uint) uint {\n\treturn a + b\n}\n";
    for (texts, sizes) in [([MULTIPLY, add], [8, 8]), ([MULTIPLY, MULTIPLY], [8, 16])] {
        let ends = run(texts, sizes, [bits(1, sizes[0]), bits(2, sizes[1])]);
        assert!(ends.iter().any(|e| e.as_ref().is_err_and(|e| e.contains("another program"))), "{ends:?}");
        assert!(ends.iter().all(Result::is_err), "{ends:?}");
    }
}

#[test]
fn a_peer_that_leaves_or_sends_nonsense_is_an_error() {
    let (left, right) = UnixStream::pair().unwrap();
    drop(right);
    let program = Program::from_text("text", MULTIPLY, &[]).unwrap();
    let mut channel = Channel::new(left.try_clone().unwrap(), left);
    let rng = &mut ChaCha12Rng::seed_from_u64(1);
    let sizes = [vec![8], vec![8]];
    let input = Inputs::new(bits(1, 8));
    let end = garble(&program, &sizes, input, Limits::default(), &mut channel, rng);
    assert!(matches!(end, Err(RunError::Channel(_))));

    let nonsense = vec![7u8; 1 << 20];
    let mut channel = Channel::new(nonsense.as_slice(), std::io::sink());
    let end = evaluate(&program, &sizes, Inputs::new(bits(1, 8)), Limits::default(), &mut channel, rng);
    assert!(matches!(end, Err(RunError::Peer(_))));
}

#[test]
fn an_input_of_a_wrong_length_is_refused() {
    let ends = run([MULTIPLY, MULTIPLY], [8, 8], [bits(1, 9), bits(2, 8)]);
    assert!(ends[0].as_ref().is_err_and(|e| e.contains("9 bits")), "{ends:?}");
}
