//! The arguments of `circuit run`, and a party's own input.

use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use circuits::authenticated::Role;
use circuits::notation::{self, Notation, Written};
use circuits::types::Type;
use zeroize::Zeroizing;

use super::hello::{MAX_INPUT, MAX_VALUES};
use super::tls::{Address, Files};

/// Seconds to wait for the peer, and for each word of it, unless told.
const WAIT: u64 = 300;
/// Bytes of a written input, at most: binary digits of the greatest, and some room.
const MAX_WRITTEN: u64 = 2 * MAX_INPUT as u64;

/// The options of one run.
#[derive(Debug)]
pub struct Options {
    pub program: PathBuf,
    pub library: Vec<PathBuf>,
    pub role: Role,
    /// A value as text, `@FILE`, or `-` for the standard input.
    pub input: Option<Zeroizing<String>>,
    pub address: Address,
    pub files: Files,
    pub wait: Duration,
}

impl Options {
    /// Reads the arguments.
    pub fn parse(arguments: &[String]) -> Result<Options, String> {
        let (mut program, mut library, mut input) = (None, Vec::new(), None);
        let (mut role, mut address, mut wait) = (None, None, WAIT);
        let (mut certificate, mut key, mut peer) = (None, None, None);
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if !argument.starts_with('-') {
                once(&mut program, argument.into(), "give one program")?;
                continue;
            }
            let name = name(argument);
            let value = rest.next().cloned().ok_or(format!("{name} needs a value"))?;
            let twice = format!("{name} is given twice");
            match argument.as_str() {
                "--party" => {
                    let part = match value.as_str() {
                        "garbler" => Role::Garbler,
                        "evaluator" => Role::Evaluator,
                        _ => return Err("--party is garbler or evaluator".into()),
                    };
                    once(&mut role, part, &twice)?;
                }
                "--input" | "-i" => once(&mut input, Zeroizing::new(value), &twice)?,
                "--listen" => once(&mut address, Address::Listen(value), "give --listen or --connect once")?,
                "--connect" => {
                    once(&mut address, Address::Connect(value), "give --listen or --connect once")?
                }
                "--certificate" => once(&mut certificate, value.into(), &twice)?,
                "--key" => once(&mut key, value.into(), &twice)?,
                "--peer" => once(&mut peer, value.into(), &twice)?,
                "--library" => library.push(value.into()),
                "--wait" => {
                    let seconds = value.parse().ok().filter(|s| (1..=604_800).contains(s));
                    wait = seconds.ok_or("--wait is a number of seconds, up to a week")?;
                }
                _ => return Err(format!("run has no option {name}: see circuit help")),
            }
        }
        let given = |what: Option<PathBuf>, name: &str| what.ok_or(format!("give {name}: see circuit help"));
        Ok(Options {
            program: program.ok_or("give a program")?,
            library,
            role: role.ok_or("give --party garbler or --party evaluator")?,
            input,
            address: address.ok_or("give --listen HOST:PORT or --connect HOST:PORT")?,
            files: Files {
                certificate: given(certificate, "--certificate")?,
                key: given(key, "--key")?,
                peer: given(peer, "--peer")?,
            },
            wait: Duration::from_secs(wait),
        })
    }

    /// This party's values, for an input of these types. No error repeats any of them.
    pub fn values(&self, types: &[Type]) -> Result<Vec<Written>, String> {
        let Some(input) = &self.input else { return Ok(Vec::new()) };
        let text = match (input.as_str(), input.strip_prefix('@')) {
            ("-", _) => read(std::io::stdin().lock(), "the standard input")?,
            (_, Some(path)) => {
                let file =
                    std::fs::File::open(path).map_err(|e| format!("cannot read the input {path}: {e}"))?;
                read(file, path)?
            }
            _ => input.clone(),
        };
        let fields: Vec<&str> = text.trim().split(',').map(str::trim).collect();
        if fields.len() > MAX_VALUES {
            return Err(format!("the input has more than {MAX_VALUES} values"));
        }
        let mut values = Vec::with_capacity(fields.len());
        for (i, field) in fields.iter().enumerate() {
            // Bytes are read as they are shown: from left to right.
            let bytes =
                types.get(i).is_some_and(|ty| matches!(ty.underlying(), Type::Array(..) | Type::Str(_)));
            let notation = Notation { first_is_lowest: bytes, ..Notation::default() };
            values.push(notation::number(field, notation).map_err(|_| {
                format!(
                    "value {} of the input cannot be read: write a decimal, 0x, 0o or 0b and digits, NxHH, true, false or _",
                    i + 1
                )
            })?);
        }
        Ok(values)
    }
}

/// The name of an option as an error may repeat it: text behind `=`, or a number below zero, may be an input.
fn name(argument: &str) -> &str {
    let name = argument.split('=').next().unwrap_or_default();
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    if plain { name } else { "of that form" }
}

fn once<T>(place: &mut Option<T>, value: T, twice: &str) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(twice.into()),
    }
}

fn read(from: impl std::io::Read, name: &str) -> Result<Zeroizing<String>, String> {
    let mut text = Zeroizing::new(String::new());
    from.take(MAX_WRITTEN + 1)
        .read_to_string(&mut text)
        .map_err(|e| format!("cannot read the input from {name}: {e}"))?;
    match text.len() as u64 > MAX_WRITTEN {
        true => Err(format!("{name} has more than {MAX_WRITTEN} bytes")),
        false => Ok(text),
    }
}
