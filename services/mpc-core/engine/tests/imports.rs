//! The arrows: abi -> threshold-issuer -> group-signatures, protocols -> engine -> primitives; abi -> circuit-sessions
//! -> circuits, engine; circuits -> primitives; paillier-issuer -> group-signatures, protocols, and nothing that ships
//! uses it; sim -> engine, and only tests and measurements use sim.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// (crate, crates of ours that its own code may use).
const MAY_IMPORT: [(&str, &[&str]); 11] = [
    ("primitives", &[]),
    ("engine", &["primitives"]),
    ("protocols", &["engine", "primitives"]),
    ("abi", &["circuit-sessions", "circuits", "engine", "group-signatures", "protocols", "threshold-issuer"]),
    ("circuits", &["primitives"]),
    ("circuit-sessions", &["circuits", "engine", "primitives"]),
    ("sim", &["engine"]),
    ("bench-core", &["engine", "protocols"]),
    ("group-signatures", &["engine", "primitives"]),
    ("paillier-issuer", &["engine", "group-signatures", "primitives", "protocols"]),
    ("threshold-issuer", &["engine", "group-signatures", "primitives", "protocols"]),
];

/// Crates with which code could reach out of the computation; only the named crates of ours may use them. The boundary
/// draws randomness, and locks the memory of keys.
const REACHES_OUT: [(&str, &[&str]); 3] = [
    ("getrandom", &["abi", "bench-core", "circuits"]),
    ("openssl", &["paillier-issuer"]),
    // The command of circuits waits for its peer with it.
    ("rustix", &["abi", "bench-core", "circuits"]),
];

/// Paths of the standard library that read a clock or the environment, talk to the system, or start a thread.
const FORBIDDEN_IN_CORE: [&str; 10] = [
    "std::time",
    "std::net",
    "std::fs",
    "std::thread",
    "std::env",
    "std::process",
    "std::io",
    "println!",
    "eprintln!",
    "SystemTime",
];

/// Crates whose files form no circle.
const WITHOUT_CIRCLES: [&str; 6] =
    ["primitives", "engine", "protocols", "group-signatures", "threshold-issuer", "abi"];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Names in the `[dependencies]` table.
fn dependencies(of: &str) -> BTreeSet<String> {
    let manifest = fs::read_to_string(workspace().join(of).join("Cargo.toml")).unwrap();
    manifest
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

fn sources(of: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![workspace().join(of).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// The module that a file holds, from the root of its crate.
fn module(of: &str, file: &Path) -> Vec<String> {
    let inside = file.strip_prefix(workspace().join(of).join("src")).unwrap().with_extension("");
    let names = inside.iter().map(|name| name.to_str().unwrap().to_owned());
    names.filter(|name| name != "mod" && name != "lib").collect()
}

/// The paths into its own crate that a file's code names, unit tests apart, from the root of the crate. A file does not
/// need what it exports of its child modules.
fn paths_named(module: &[String], code: &str, is_module: &dyn Fn(&[String]) -> bool) -> Vec<Vec<String>> {
    let needed = code.split("#[cfg(test)]\nmod ").next().unwrap();
    let lines = needed.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut found = Vec::new();
    for line in lines {
        assert!(!line.contains("crate::{"), "an import of its own for each module, not: {line}");
        for word in line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
            let mut names = word.split("::").filter(|name| !name.is_empty());
            let mut path = match names.next() {
                Some("crate") if word != "crate" => Vec::new(),
                Some("self") if word.contains("::") => module.to_vec(),
                Some("super") if word.contains("::") => module.split_last().unwrap().1.to_vec(),
                Some(child) if !line.starts_with("pub use ") && !line.starts_with("pub(crate) use ") => {
                    let path = [module, &[child.to_owned()]].concat();
                    if !word.contains("::") && !line.starts_with("use ") || !is_module(&path) {
                        continue;
                    }
                    path
                }
                _ => continue,
            };
            path.extend(names.map(str::to_owned));
            found.push(path);
        }
    }
    found
}

/// Each file's module, and the modules of the files that it imports from.
fn imports(of: &str) -> BTreeMap<String, BTreeSet<String>> {
    let files: BTreeMap<String, (Vec<String>, PathBuf)> = sources(of)
        .into_iter()
        .map(|path| (module(of, &path), path))
        .map(|(module, path)| (module.join("::"), (module, path)))
        .collect();
    let imports_of = |(name, (module, path)): (&String, &(Vec<String>, PathBuf))| {
        let code = fs::read_to_string(path).unwrap();
        let mut imported = BTreeSet::new();
        for path in paths_named(module, &code, &|path| files.contains_key(&path.join("::"))) {
            let longest = (0..=path.len()).rev().filter_map(|length| Some(path.get(..length)?.join("::")));
            let file = longest.into_iter().find(|prefix| files.contains_key(prefix));
            imported.extend(file.filter(|file| file != name));
        }
        (name.clone(), imported)
    };
    files.iter().map(imports_of).collect()
}

/// The files from which imports lead back to themselves.
fn in_circles(imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&str> {
    let leads_back = |start: &String| {
        let mut reached = BTreeSet::new();
        let mut open = vec![start];
        while let Some(file) = open.pop() {
            open.extend(imports[file].iter().filter(|next| reached.insert(*next)));
        }
        reached.contains(start)
    };
    imports.keys().filter(|file| leads_back(file)).map(String::as_str).collect()
}

#[test]
fn files_of_a_crate_form_no_circle() {
    for name in WITHOUT_CIRCLES {
        let imports = imports(name);
        let circular = in_circles(&imports);
        assert!(circular.is_empty(), "files of {name} in a circle: {circular:?}, imports {imports:#?}");
    }
}

#[test]
fn circles_are_found() {
    let graph = |edges: &[(&str, &str)]| {
        let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in edges {
            imports.entry((*to).to_owned()).or_default();
            imports.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        imports
    };
    assert!(in_circles(&graph(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    let circle = graph(&[("a", "b"), ("b", "c"), ("c", "b")]);
    assert_eq!(in_circles(&circle), BTreeSet::from(["b", "c"]));
    let code =
        "use super::c::D;\n// crate::no\nuse crate::e::F;\npub use own::A;\nfn f() { child::g(other::h) }";
    let child = ["a", "b", "child"];
    let named = paths_named(&["a".to_owned(), "b".to_owned()], code, &|path| path == child);
    assert!(named.contains(&vec!["a".to_owned(), "c".to_owned(), "D".to_owned()]));
    assert!(named.contains(&vec!["e".to_owned(), "F".to_owned()]));
    assert!(named.contains(&["a", "b", "child", "g"].map(str::to_owned).to_vec()));
    assert_eq!(named.len(), 3, "{named:?}");
}

#[test]
fn crates_import_only_what_lies_below_them() {
    let ours: BTreeSet<&str> = MAY_IMPORT.iter().map(|(name, _)| *name).collect();
    for (name, allowed) in MAY_IMPORT {
        for dependency in dependencies(name) {
            let foreign = !ours.contains(dependency.as_str());
            assert!(foreign || allowed.contains(&dependency.as_str()), "{name} must not import {dependency}");
            for (reaching, may) in REACHES_OUT {
                assert!(dependency != reaching || may.contains(&name), "{name} must not import {dependency}");
            }
        }
    }
}

#[test]
fn only_the_boundary_knows_its_encoding() {
    for (name, _) in MAY_IMPORT.into_iter().filter(|(name, _)| *name != "abi") {
        assert!(!dependencies(name).contains("prost"), "{name} must not know protobuf");
    }
}

#[test]
fn computation_only() {
    for name in ["primitives", "engine", "protocols", "group-signatures", "threshold-issuer"] {
        for path in sources(name) {
            let text = fs::read_to_string(&path).unwrap();
            for forbidden in FORBIDDEN_IN_CORE {
                assert!(!text.contains(forbidden), "{} uses {forbidden}", path.display());
            }
        }
    }
}

#[test]
fn engine_knows_no_scheme() {
    for path in sources("engine") {
        let text = fs::read_to_string(&path).unwrap();
        for scheme in ["bls12_381", "secp256k1", "ecdsa", "frost"] {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            assert!(code.into_iter().all(|line| !line.contains(scheme)), "{} names {scheme}", path.display());
        }
    }
}
