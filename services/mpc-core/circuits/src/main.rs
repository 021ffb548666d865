//! The command `circuit`: compile programs, measure them, run their tests, and run them with a peer.

mod output;
mod progress;
mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use circuits::authenticated::{MAX_ANDS, bucket_size, expected_bytes};
use circuits::circuit::{Depth, Recorder, Sink, bristol};
use circuits::compile::{Interface, Limits, Sizes, compile};
use circuits::notation::{self, Notation};
use circuits::program::Program;
use circuits::testing::{self, Authenticated, Clear, Engine, Garbled};
use output::{describe, print, say};
use progress::{Counted, Gates};

const USAGE: &str = "\
circuit compile FILE [--input GARBLER] [--input EVALUATOR] [-o FILE]   write the circuit in Bristol Fashion
circuit stats   FILE [--input GARBLER] [--input EVALUATOR]             gates by kind, depth, wires and bytes
circuit test    PATH... [--garble | --authenticated]                   check the @Test lines, if asked by garbling
circuit run     FILE --party garbler|evaluator --listen|--connect HOST:PORT [--input VALUE]
                --certificate FILE --key FILE --peer FILE [--wait SECONDS]
                                                                       compute with a peer that does the same over TLS
circuit certificate FOLDER --name NAME                                 make NAME.pem and NAME.key for run

--garble is secure against parties that are curious, --authenticated against parties that deviate.
--input gives the sizes of inputs whose types leave them open: values with commas, such as 0x0011 or 32x00 (32 zeros).
--library FOLDER adds a folder of packages. A PATH that is a folder stands for all programs below it that have tests.

run takes this party's input alone: @FILE reads it from a file and - from the standard input, so that no list of
processes shows it. --peer is the peer's certificate, and no other peer is heard. --wait (300) bounds the time until the
peer comes, and each silence of it. The engine is the one of --authenticated, and that of --garble if the program has
@SemiHonest above main. The result is on the standard output, and all else on the standard error stream.

Exit status: 0 done, 1 a mistake here that the message explains, or a failed test, 2 a fault of this command,
3 the peer is not there or went away, 4 it is another peer or runs another program, 5 it does not follow the protocol.";

/// Gates that `compile` holds in memory at most: 1 GB.
const MAX_RECORDED: usize = 80_000_000;

/// AND gates a second of one party that compiles and streams, on a usual core: see `docs/protocols/garbling.md`.
const STREAMED_A_SECOND: f64 = 15e6;
struct Options {
    paths: Vec<PathBuf>,
    inputs: Vec<String>,
    library: Vec<PathBuf>,
    output: Option<PathBuf>,
    garble: bool,
    authenticated: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match circuits::stack::with_stack(|| run(&arguments)) {
        Some(Ok(code)) => code,
        Some(Err(message)) => {
            say(&message);
            ExitCode::from(1)
        }
        None => ExitCode::from(2),
    }
}

fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(USAGE.into());
    };
    match command.as_str() {
        "run" => return Ok(run::command(rest)),
        "certificate" => return certificate(rest),
        _ => {}
    }
    let options = parse(rest)?;
    match command.as_str() {
        "compile" => compile_command(&options),
        "stats" => stats(&options),
        "test" => test(&options),
        "help" | "--help" | "-h" => {
            print(USAGE);
            Ok(ExitCode::SUCCESS)
        }
        other => Err(format!("there is no command {other:?}\n{USAGE}")),
    }
}

fn parse(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options {
        paths: Vec::new(),
        inputs: Vec::new(),
        library: Vec::new(),
        output: None,
        garble: false,
        authenticated: false,
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().cloned().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--input" | "-i" => options.inputs.push(value()?),
            "--library" => options.library.push(value()?.into()),
            "--garble" => options.garble = true,
            "--authenticated" => options.authenticated = true,
            "-o" => options.output = Some(value()?.into()),
            option if option.starts_with('-') => return Err(format!("there is no option {option}\n{USAGE}")),
            path => options.paths.push(path.into()),
        }
    }
    Ok(options)
}

fn certificate(arguments: &[String]) -> Result<ExitCode, String> {
    let (folder, name) = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [folder, "--name", name] | ["--name", name, folder] => (folder.to_string(), name.to_string()),
        _ => return Err("write circuit certificate FOLDER --name NAME".into()),
    };
    let written = run::certificate::write_pair(Path::new(&folder), &name)?;
    print(&format!("key          {} (keep it here)", written.key.display()));
    print(&format!("certificate  {} (give it to the peer)", written.certificate.display()));
    print(&format!("SHA-256      {} (compare it with the peer by another way)", written.fingerprint));
    Ok(ExitCode::SUCCESS)
}

fn one_program(options: &Options) -> Result<(Program, Vec<Vec<usize>>), String> {
    let [path] = options.paths.as_slice() else {
        return Err("give one program".into());
    };
    let program = Program::load(path, &options.library).map_err(|e| e.to_string())?;
    let mut sizes = Vec::new();
    for input in &options.inputs {
        let fields = input
            .split(',')
            .map(|f| notation::number(f, Notation::default()))
            .collect::<Result<Vec<_>, _>>()?;
        sizes.push(notation::sizes(&fields));
    }
    Ok((program, sizes))
}

/// Compiles, and says meanwhile how many gates there are.
fn compile_with_progress(
    program: &Program,
    sizes: &[Sizes],
    sink: &mut impl Sink,
) -> Result<Interface, String> {
    let gates = &Gates::default();
    progress::during(
        || gates.line(),
        || {
            compile(program, sizes, Limits::default(), &mut Counted { sink, gates })
                .map_err(|e| program.sources.render(&e))
        },
    )
}

fn compile_command(options: &Options) -> Result<ExitCode, String> {
    let (program, sizes) = one_program(options)?;
    let mut recorder = Recorder { limit: MAX_RECORDED, ..Recorder::default() };
    let interface = compile_with_progress(&program, &sizes, &mut recorder)?;
    let mut circuit = recorder.circuit;
    circuit.outputs = interface.outputs.iter().map(|p| p.ty.size().unwrap_or(0)).collect();
    circuit.prune();
    let text = bristol::write(&circuit);
    match &options.output {
        Some(path) => {
            std::fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?
        }
        None => print(text.trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

fn stats(options: &Options) -> Result<ExitCode, String> {
    let (program, sizes) = one_program(options)?;
    let mut depth = Depth::default();
    let started = std::time::Instant::now();
    let interface = compile_with_progress(&program, &sizes, &mut depth)?;
    let seconds = started.elapsed().as_secs_f64();
    let Interface { inputs, outputs, count, slots } = interface;
    print(&format!("inputs       {}", describe(&inputs)));
    print(&format!("outputs      {}", describe(&outputs)));
    print(&format!("AND gates    {}", count.and));
    print(&format!("XOR gates    {}", count.xor));
    print(&format!("AND depth    {}", depth.deepest));
    print(&format!("live wires   {slots}"));
    print(&format!("garbled      {} bytes (half gates, 32 an AND)", 32 * u128::from(count.and)));
    let estimate = count.and as f64 / STREAMED_A_SECOND;
    print(&format!(
        "takes        about {estimate:.3} s of each party's computing, {STREAMED_A_SECOND:e} AND a second"
    ));
    if let Some(ands) = usize::try_from(count.and).ok().filter(|ands| (1..=MAX_ANDS).contains(ands)) {
        let bucket = bucket_size(ands);
        let bytes = expected_bytes(ands);
        print(&format!("authenticated {bytes:.0} bytes, about, with {bucket} leaky triples an AND"));
    }
    print(&format!("compiled in  {seconds:.3} s"));
    Ok(ExitCode::SUCCESS)
}

fn test(options: &Options) -> Result<ExitCode, String> {
    let mut programs = Vec::new();
    for path in &options.paths {
        find(path, &mut programs)?;
    }
    programs.sort();
    let engine: &dyn Engine = match (options.authenticated, options.garble) {
        (true, false) => &Authenticated,
        (false, true) => &Garbled,
        (false, false) => &Clear,
        (true, true) => return Err("choose one of --garble and --authenticated".into()),
    };
    let started = AtomicUsize::new(0);
    let state = || {
        let number = started.load(Ordering::Relaxed);
        let name = programs.get(number.saturating_sub(1)).map_or(Path::new(""), PathBuf::as_path);
        format!("program {number} of {}, {}", programs.len(), name.display())
    };
    let [passed, failed] = progress::during(state, || {
        test_all(&programs, options, engine, &|number| {
            started.store(number, Ordering::Relaxed);
        })
    })?;
    print(&format!("{} programs, {passed} tests passed, {failed} failed", programs.len()));
    Ok(if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Counts of tests that passed and that failed. `started` hears the number of each program, from 1.
fn test_all(
    programs: &[PathBuf],
    options: &Options,
    engine: &dyn Engine,
    started: &dyn Fn(usize),
) -> Result<[usize; 2], String> {
    let (mut passed, mut failed) = (0, 0);
    for (number, path) in (1..).zip(programs) {
        started(number);
        let program = Program::load(path, &options.library).map_err(|e| e.to_string())?;
        for outcome in testing::run(&program, engine, Limits::default())
            .map_err(|e| format!("{}: {e}", path.display()))?
        {
            match outcome.failure {
                None => passed += 1,
                Some(failure) => {
                    failed += 1;
                    print(&format!("FAILED {}\n  {}\n  {failure}", path.display(), outcome.line));
                }
            }
        }
    }
    Ok([passed, failed])
}

/// The programs with tests at or below a path.
fn find(path: &Path, out: &mut Vec<PathBuf>) -> Result<(), String> {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        for entry in entries {
            find(&entry.map_err(|e| e.to_string())?.path(), out)?;
        }
        return Ok(());
    }
    if path.extension().is_some_and(|e| e == "mpcl") {
        let text =
            std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        if text.contains("// @Test ") {
            out.push(path.to_path_buf());
        }
        return Ok(());
    }
    match path.exists() {
        true => Ok(()),
        false => Err(format!("there is no {}", path.display())),
    }
}
