//! The output of the command: results on the standard output, and all else on the standard error stream.

use std::io::Write as _;

use circuits::compile::Port;

/// Prints a line of the result.
pub fn print(text: &str) {
    // A closed pipe is no failure of the command.
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Tells the operator something, on the standard error stream.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Names and types of inputs or outputs.
pub fn describe(ports: &[Port]) -> String {
    ports.iter().map(|p| format!("{} {}", p.name, p.ty).trim().to_string()).collect::<Vec<_>>().join(", ")
}
