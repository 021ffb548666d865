//! The command `circuit`, from its arguments to its exit status.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

struct Ended {
    status: i32,
    output: String,
    errors: String,
}

fn circuit(arguments: &[&str]) -> Ended {
    let output = Command::new(env!("CARGO_BIN_EXE_circuit")).args(arguments).output().expect("it starts");
    Ended {
        status: output.status.code().expect("no signal"),
        output: String::from_utf8(output.stdout).expect("text"),
        errors: String::from_utf8(output.stderr).expect("text"),
    }
}

/// A file of this test alone, removed at its end.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = std::env::temp_dir().join(format!("coterie-circuit-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const ADD: &str = "package main

// @Test 3 4 = 7
// @Test 250 10 = 4
func main(a, b uint8) uint8 {
\treturn a + b
}
";

#[test]
fn test_lines_pass_in_every_engine_and_a_wrong_one_fails() {
    let right = File::new("right.mpcl", ADD);
    for engine in [&[][..], &["--garble"], &["--authenticated"]] {
        let ended = circuit(&[&["test", right.path()], engine].concat());
        assert_eq!((ended.status, ended.errors.as_str()), (0, ""), "{engine:?}");
        assert_eq!(ended.output, "1 programs, 2 tests passed, 0 failed\n", "{engine:?}");
    }
    let wrong = File::new("wrong.mpcl", &ADD.replace("= 4", "= 5"));
    for engine in [&[][..], &["--garble"], &["--authenticated"]] {
        let ended = circuit(&[&["test", wrong.path()], engine].concat());
        assert_eq!(ended.status, 1, "{engine:?}");
        assert!(ended.output.contains("1 tests passed, 1 failed"), "{}", ended.output);
        assert!(ended.output.contains("is 0x4, expected 0x5"), "{}", ended.output);
    }
    let both = circuit(&["test", right.path(), "--garble", "--authenticated"]);
    assert!(both.status == 1 && both.errors.contains("choose one"), "{}", both.errors);
}

/// A program that takes a day to compile, since it counts to a thousand million in constants.
const ENDLESS: &str = "package main

// @Test 3 4 = 7
func main(a, b uint8) uint8 {
\tx := 0
\tfor i := 0; i < 1000000; i++ {
\t\tfor j := 0; j < 1000000; j++ {
\t\t\tx = i ^ j
\t\t}
\t}
\treturn a + b + uint8(x&1)
}
";

/// It is ended when it has said something.
#[test]
fn long_runs_say_how_far_they_are() {
    let program = File::new("endless.mpcl", ENDLESS);
    for command in ["compile", "stats", "test"] {
        let mut running = Command::new(env!("CARGO_BIN_EXE_circuit"))
            .args([command, program.path()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(running.stderr.take().unwrap()).read_line(&mut line).unwrap();
        running.kill().unwrap();
        running.wait().unwrap();
        let (seconds, state) = line.trim_end().split_once(" s: ").unwrap_or_else(|| panic!("{line}"));
        assert!(seconds.parse::<u64>().unwrap() >= 2, "{line}");
        match command {
            "test" => assert_eq!(state, format!("program 1 of 1, {}", program.path())),
            _ => assert_eq!(state, "0 AND gates, 0 XOR gates"),
        }
    }
}

#[test]
fn stats_counts_gates_and_bytes() {
    let file = File::new("stats.mpcl", ADD);
    let ended = circuit(&["stats", file.path()]);
    assert_eq!(ended.status, 0, "{}", ended.errors);
    for line in ["AND gates    7", "AND depth    7", "garbled      224 bytes (half gates, 32 an AND)"] {
        assert!(ended.output.lines().any(|l| l == line), "{line}\n{}", ended.output);
    }
    assert!(ended.output.contains("leaky triples an AND"), "{}", ended.output);
}

#[test]
fn compile_writes_a_circuit_that_native_reads_again() {
    let source = File::new("source.mpcl", ADD);
    let written = File::new("written.bristol", "");
    let ended = circuit(&["compile", source.path(), "-o", written.path()]);
    assert_eq!((ended.status, ended.errors.as_str()), (0, ""));
    let name = written.0.file_name().unwrap().to_str().unwrap();
    let body = ADD.replace("a + b", &format!("native(\"{name}\", a, b)"));
    let reader = File::new("reader.mpcl", &body);
    let ended = circuit(&["test", reader.path()]);
    assert_eq!((ended.status, ended.output.as_str()), (0, "1 programs, 2 tests passed, 0 failed\n"));
}

#[test]
fn mistakes_are_told_with_status_1() {
    let file = File::new("mistake.mpcl", &ADD.replace("a + b", "a + c"));
    let ended = circuit(&["stats", file.path()]);
    assert_eq!(ended.status, 1);
    assert!(ended.errors.contains("mistake.mpcl:6:13: "), "{}", ended.errors);
    for arguments in [&[][..], &["fly"], &["test", "--wings"], &["test", "/nowhere/at/all.mpcl"]] {
        let ended = circuit(arguments);
        assert!(ended.status == 1 && !ended.errors.is_empty(), "{arguments:?}");
    }
}
