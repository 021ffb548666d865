//! The language, through programs with vectors and programs with mistakes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests are test code")]

use std::path::{Path, PathBuf};

use circuits::circuit::{Plain, Recorder, bristol};
use circuits::compile::{Limits, compile};
use circuits::notation::{sizes, tests};
use circuits::program::Program;
use circuits::stack::with_stack;
use circuits::testing::{self, Clear, input_bits};

fn programs(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(folder);
    let mut found: Vec<PathBuf> = std::fs::read_dir(&root)
        .unwrap_or_else(|e| panic!("{}: {e}", root.display()))
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "mpcl"))
        .collect();
    found.sort();
    found
}

fn check_all(folder: &str, limits: Limits) -> usize {
    let mut lines = 0;
    for path in programs(folder) {
        let program = Program::load(&path, &[]).unwrap_or_else(|e| panic!("{e}"));
        let outcomes =
            testing::run(&program, &Clear, limits).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(!outcomes.is_empty(), "{} has no @Test line", path.display());
        for outcome in outcomes {
            assert_eq!(outcome.failure, None, "{}\n{}", path.display(), outcome.line);
            lines += 1;
        }
    }
    lines
}

#[test]
fn programs_of_each_feature_give_their_vectors() {
    let lines = with_stack(|| check_all("lang", Limits::default())).expect("no panic");
    assert!(lines >= 90, "only {lines} vectors were read");
}

#[test]
fn public_vectors_of_the_standard_library_hold() {
    let limits = Limits::default();
    let lines = with_stack(|| check_all("crypto", limits) + check_all("library", limits)).expect("no panic");
    assert!(lines >= 40, "only {lines} vectors were read");
}

#[test]
fn public_vectors_of_elliptic_curves_hold() {
    let percent: u64 = std::env::var("COTERIE_RUNS_PERCENT").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let folders: &[&str] = if percent >= 100 { &["long", "soak"] } else { &["long"] };
    let lines: usize = with_stack(|| folders.iter().map(|folder| check_all(folder, Limits::default())).sum())
        .expect("no panic");
    assert_eq!(lines, folders.len() + 1);
}

#[test]
fn wires_are_used_again_only_after_their_last_reader() {
    let eager = Limits { collect_after: Some(1), ..Limits::default() };
    with_stack(|| check_all("lang", eager)).expect("no panic");
}

#[test]
fn mistakes_are_named_with_file_line_column_and_source_line() {
    let mut checked = 0;
    for path in programs("errors") {
        let text = std::fs::read_to_string(&path).unwrap();
        let wanted = text.lines().find_map(|l| l.trim().strip_prefix("// error ")).expect("an expectation");
        let (place, message) = wanted.split_once(": ").expect("place and message");
        let report = with_stack(|| report_of(&path)).expect("no panic");
        let first = report.lines().next().unwrap_or("");
        assert!(first.contains(&format!("{}:{place}: ", path.display())), "{report}\nwanted {wanted}");
        assert!(first.contains(message), "{report}\nwanted {wanted}");
        let line: usize = place.split(':').next().unwrap().parse().unwrap();
        let source = text.lines().nth(line - 1).unwrap_or("").replace('\t', " ");
        assert_eq!(report.lines().nth(1).map(str::trim), Some(source.trim()), "{report}");
        checked += 1;
    }
    assert!(checked >= 60, "only {checked} mistakes were read");
}

/// The error of a program that must not compile with one-byte inputs.
fn report_of(path: &Path) -> String {
    match Program::load(path, &[]) {
        Err(error) => error.0,
        Ok(program) => {
            match compile(&program, &[vec![8], vec![8]], Limits::default(), &mut Recorder::default()) {
                Err(error) => program.sources.render(&error),
                Ok(_) => panic!("{} compiles", path.display()),
            }
        }
    }
}

#[test]
fn a_circuit_keeps_its_meaning_through_pruning_and_bristol_fashion() {
    with_stack(|| {
        for path in programs("lang") {
            let program = Program::load(&path, &[]).unwrap();
            for line in tests(&program.main().unwrap().comment).unwrap() {
                let given: Vec<_> = line.inputs.iter().map(|w| sizes(w)).collect();
                let inputs = input_bits(&program, &line).unwrap();
                let mut plain = Plain::new(inputs.clone());
                compile(&program, &given, Limits::default(), &mut plain).unwrap();
                let mut recorder = Recorder::default();
                let interface = compile(&program, &given, Limits::default(), &mut recorder).unwrap();
                let mut circuit = recorder.circuit;
                circuit.outputs = interface.outputs.iter().map(|p| p.ty.size().unwrap()).collect();
                circuit.prune();
                let bits = inputs.concat();
                assert_eq!(circuit.evaluate(&bits), plain.outputs, "{}", path.display());
                let compact = circuit.compact();
                assert_eq!(compact.evaluate(&bits), plain.outputs, "{}", path.display());
                assert!(compact.slots <= circuit.slots);
                let read = bristol::read(&bristol::write(&circuit)).unwrap();
                assert_eq!(read.evaluate(&bits), plain.outputs, "{}", path.display());
                assert_eq!((read.inputs, read.outputs), (circuit.inputs, circuit.outputs));
            }
        }
    })
    .expect("no panic");
}
