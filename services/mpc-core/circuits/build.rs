//! Lists the files of the standard library, so that the compiler carries them.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=std");
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("std");
    let mut files = Vec::new();
    walk(&root, "", &mut files)?;
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

fn walk(folder: &Path, prefix: &str, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{name}/"), files)?;
        } else if name.ends_with(".mpcl") {
            files.push(name);
        }
    }
    Ok(())
}
