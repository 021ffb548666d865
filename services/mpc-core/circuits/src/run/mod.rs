//! `circuit run`: one party of a program, with the other in another process, over TLS.
//!
//! | Step | Where |
//! |---|---|
//! | own arguments, program, input and files are checked before anything is sent | [`options`], [`tls::Identity`] |
//! | TLS 1.3 with both certificates pinned | [`tls`], [`pinned`], [`listener`], [`handshake`] |
//! | both say what they run, and the sizes of their inputs | [`hello`] |
//! | authenticated garbling, or streaming where the program says `@SemiHonest` | [`engine`] |

pub mod certificate;
mod engine;
mod failure;
mod handshake;
mod hello;
mod listener;
mod meter;
mod options;
mod pinned;
mod secured;
mod tls;

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::rc::Rc;

use circuits::authenticated::Role;
use circuits::compile::{Interface, Port, Sizes, inputs};
use circuits::garble::Channel;
use circuits::notation::{self, Written};
use circuits::program::Program;
use circuits::types::Type;
use zeroize::Zeroizing;

use crate::output::{describe, print, say};
use failure::Failure;
use hello::{Hello, MAX_INPUT, MAX_VALUES};
use options::Options;
use secured::Secured;
use tls::Identity;

/// The line above `main` that asks for the engine against parties that are only curious.
const SEMI_HONEST: &str = "@SemiHonest";

/// Runs one party and prints the result.
pub fn command(arguments: &[String]) -> ExitCode {
    let ran = Options::parse(arguments).map_err(Failure::Own).and_then(|options| run(&options));
    match ran {
        Ok(lines) => {
            lines.iter().for_each(|line| print(line));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            say(failure.text());
            failure.status()
        }
    }
}

/// The connection as the two ends that an engine takes.
struct Half(Rc<RefCell<Secured>>);

impl Read for Half {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.borrow_mut().read(bytes)
    }
}

impl Write for Half {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

fn run(options: &Options) -> Result<Vec<String>, Failure> {
    let program = Program::load(&options.program, &options.library).map_err(|e| e.to_string())?;
    let main = program.main().map_err(|e| program.sources.render(&e))?;
    let semi_honest = main.comment.iter().any(|line| line.trim() == SEMI_HONEST);
    let (own, other) = match options.role {
        Role::Garbler => (0, 1),
        Role::Evaluator => (1, 0),
    };
    let mut sizes = vec![Sizes::new(), Sizes::new()];
    let ports = inputs(&program, &sizes).map_err(|e| program.sources.render(&e))?;
    let written = options.values(&types(ports.get(own)))?;
    if let Some(place) = sizes.get_mut(own) {
        *place = notation::sizes(&written);
    }
    let ports = inputs(&program, &sizes).map_err(|e| program.sources.render(&e))?;
    let bits = bits(ports.get(own), &written)?;
    let hello = Hello {
        role: options.role,
        compiler: compiler(),
        program: program.digest(),
        sizes: port_sizes(ports.get(own)),
    };
    if bits.len() > MAX_INPUT || hello.sizes.len() > MAX_VALUES {
        return Err(Failure::Own("an input has at most 2^24 bits in 2^12 values".into()));
    }

    let identity = Identity::load(&options.files)?;
    if semi_honest {
        say(
            "this program asks by @SemiHonest for the engine against curious parties: a peer that deviates may learn the input",
        );
    }
    let mut stream = identity.meet(&options.address, options.wait, &say)?;
    stream.say = say;
    // The side that listened speaks first, so that the other has nothing under way when it is refused.
    let peer = if stream.listened() {
        hello.say(&mut stream)?;
        Hello::hear(&mut stream)?
    } else {
        let peer = Hello::hear(&mut stream)?;
        hello.say(&mut stream)?;
        peer
    };
    hello.agrees(&peer)?;
    for (party, given) in [(own, &hello.sizes), (other, &peer.sizes)] {
        if let Some(place) = sizes.get_mut(party) {
            place.clone_from(given);
        }
    }
    let ports = inputs(&program, &sizes).map_err(|e| program.sources.render(&e))?;
    if port_sizes(ports.get(other)) != peer.sizes {
        return Err(Failure::Deviates("the peer's input has sizes that the program does not take".into()));
    }
    let total: usize = hello.sizes.iter().chain(&peer.sizes).sum();
    if !semi_honest && total > engine::MAX_CHECKED_INPUT {
        return Err(Failure::Own(format!(
            "both inputs have {total} bits, and the engine against parties that deviate takes 2^21: one must take less"
        )));
    }
    say(&format!("met the peer; inputs {}", describe(&ports)));

    let binding = stream.binding(&hello.program)?;
    let stream = Rc::new(RefCell::new(stream));
    let mut channel = Channel::new(Half(stream.clone()), Half(stream.clone()));
    let work = |work| stream.borrow_mut().meter.work = work;
    let task = engine::Task { program: &program, sizes: &sizes, role: options.role, binding };
    let (outputs, interface) = if semi_honest {
        work(meter::Work::Streamed);
        task.stream(bits, &mut channel)?
    } else {
        task.authenticated(bits, &mut channel, &|bytes| work(meter::Work::Expected(bytes)))?
    };
    channel.close()?;
    let mut stream = stream.borrow_mut();
    stream.close();
    say(&format!(
        "{}: {} AND gates, {} sent, {} received, {:.1} s",
        if semi_honest { "semi-honest, streamed" } else { "authenticated" },
        interface.count.and,
        meter::size(stream.meter.sent),
        meter::size(stream.meter.received),
        stream.elapsed().as_secs_f64()
    ));
    Ok(results(&interface, &outputs))
}

/// A digest of the compiler's sources, made when this was built.
fn compiler() -> [u8; 8] {
    u64::from_str_radix(env!("CIRCUIT_COMPILER"), 16).unwrap_or(0).to_be_bytes()
}

/// The types of the single values of an input.
fn types(port: Option<&Port>) -> Vec<Type> {
    port.map(|port| notation::leaves(&port.ty)).unwrap_or_default()
}

/// Bits of each value of an input.
fn port_sizes(port: Option<&Port>) -> Vec<usize> {
    types(port).iter().map(|ty| ty.size().unwrap_or(0)).collect()
}

/// The bits of this party's values. No error repeats any of them.
fn bits(port: Option<&Port>, written: &[Written]) -> Result<Zeroizing<Vec<u8>>, String> {
    let types = types(port);
    if types.len() != written.len() {
        return Err(format!(
            "this party's input has {} values, and {} are given: give them by --input, with commas between them",
            types.len(),
            written.len()
        ));
    }
    let mut bits = Zeroizing::new(Vec::with_capacity(types.iter().filter_map(|ty| ty.size()).sum()));
    for (i, (ty, value)) in types.iter().zip(written).enumerate() {
        let leaf = notation::leaf(ty, value);
        let leaf = leaf.map_err(|_| format!("value {} of the input does not fit in {ty}", i + 1))?;
        bits.extend(Zeroizing::new(leaf).iter().map(|bit| u8::from(*bit)));
    }
    Ok(bits)
}

/// A line for each result.
fn results(interface: &Interface, bits: &[bool]) -> Vec<String> {
    let mut at = 0;
    let mut lines = Vec::new();
    for port in &interface.outputs {
        let size = port.ty.size().unwrap_or(0);
        let shown = notation::show(&port.ty, bits.get(at..at + size).unwrap_or(&[]));
        lines.push(format!("{} {shown}", port.name).trim().to_string());
        at += size;
    }
    lines
}
