//! The arrows: abi -> protocols -> engine -> primitives; group-signatures -> engine; paillier-issuer ->
//! group-signatures, protocols, and nothing that ships uses either; circuits -> primitives; sim -> engine, and only
//! tests and measurements use sim.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// (crate, crates of ours that its own code may use).
const MAY_IMPORT: [(&str, &[&str]); 9] = [
    ("primitives", &[]),
    ("engine", &["primitives"]),
    ("protocols", &["engine", "primitives"]),
    ("abi", &["engine", "protocols"]),
    ("circuits", &["primitives"]),
    ("sim", &["engine"]),
    ("bench-core", &["engine", "protocols"]),
    ("group-signatures", &["engine", "primitives"]),
    ("paillier-issuer", &["engine", "group-signatures", "primitives", "protocols"]),
];

/// Crates with which code could reach out of the computation; only the named crates of ours may use them. The boundary
/// draws randomness, and locks the memory of keys.
const REACHES_OUT: [(&str, &[&str]); 3] = [
    ("getrandom", &["abi", "bench-core", "circuits"]),
    ("openssl", &["paillier-issuer"]),
    ("rustix", &["abi", "bench-core"]),
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
    for name in ["primitives", "engine", "protocols", "group-signatures"] {
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
