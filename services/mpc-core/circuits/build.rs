//! Lists the files of the standard library, so that the compiler carries them, and takes a digest of the compiler
//! itself, so that two parties notice when theirs differ.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

/// Sources that decide the circuit of a program, beside the standard library, and how the parties evaluate it.
const COMPILER: &[&str] = &["authenticated", "build", "circuit", "compile", "garble", "syntax"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=std");
    let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!(
        "cargo::rustc-env=CIRCUIT_COMPILER={:016x}",
        digest_of_compiler(&Path::new(&folder).join("src"))?
    );
    let root = Path::new(&folder).join("std");
    let mut files = Vec::new();
    walk(&root, "", ".mpcl", &mut files)?;
    files.sort();
    let mut out = String::from(
        "/// Files of the standard library: path and text.\npub const LIBRARY: &[(&str, &str)] = &[\n",
    );
    for file in &files {
        let path = root.join(file);
        let _ = writeln!(out, "    ({file:?}, include_str!({:?})),", path.display().to_string());
    }
    out.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("library.rs"), out)
}

/// FNV-1a over the sources: differences are accidents, and what a peer says of itself is not proved anyway.
fn digest_of_compiler(root: &Path) -> io::Result<u64> {
    let mut files = Vec::from(["program.rs", "types.rs"].map(String::from));
    for part in COMPILER {
        println!("cargo::rerun-if-changed=src/{part}");
        walk(&root.join(part), &format!("{part}/"), ".rs", &mut files)?;
    }
    files.sort();
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for file in &files {
        for byte in fs::read(root.join(file))? {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    println!("cargo::rerun-if-changed=src/program.rs");
    println!("cargo::rerun-if-changed=src/types.rs");
    Ok(digest)
}

fn walk(folder: &Path, prefix: &str, ending: &str, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{name}/"), ending, files)?;
        } else if name.ends_with(ending) {
            files.push(name);
        }
    }
    Ok(())
}
