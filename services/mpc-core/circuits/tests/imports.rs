//! Files of the crates that `engine/tests/imports.rs` leaves out form no circle either, and are not long.
//!
//! A name that a module only passes on leads to the file that it comes from, and a module needs what it passes on if
//! it uses it itself. A command's files are apart from those of the library beside it. A module within a file counts as
//! the file, and its `super` as the module above.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const CRATES: [&str; 9] = [
    "circuits",
    "circuit-sessions",
    "group-signatures",
    "paillier-issuer",
    "threshold-issuer",
    "sim",
    "bench-core",
    "bench-dkls23",
    "constant-time",
];
/// Lines of a file, at most.
const LONGEST: usize = 550;

/// A path from the root of a crate: a module, or what stands in one.
type Names = Vec<String>;

/// One file: its imports, and the words and paths of its other code.
#[derive(Default)]
struct File {
    imports: Vec<Import>,
    words: BTreeSet<String>,
    paths: Vec<Names>,
}

struct Import {
    path: Names,
    /// The name here.
    name: String,
    public: bool,
}

/// The code of each file by its module.
type Code = BTreeMap<Names, String>;

fn names(path: &str) -> Names {
    path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let rust = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    rust.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

fn source_folder(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(of).join("src")
}

/// The modules of the library, and those of the command.
fn trees(of: &str) -> [Code; 2] {
    let folder = source_folder(of);
    let command = fs::read_to_string(folder.join("main.rs")).unwrap_or_default();
    let ours: Vec<&str> = command
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'))
        .collect();
    let mut trees = [Code::new(), Code::new()];
    for path in sources(&folder) {
        let place = path.strip_prefix(&folder).unwrap().with_extension("");
        let mut module: Names = place.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
        let first = module.first().unwrap().as_str();
        let tree = usize::from(first == "main" || ours.contains(&first));
        module.retain(|name| !["mod", "lib", "main"].contains(&name.as_str()));
        trees[tree].insert(module, fs::read_to_string(path).unwrap());
    }
    trees
}

/// The modules that a file declares and that lie in no file of the tree: those of another crate's tests.
fn elsewhere(code: &Code) -> BTreeSet<Names> {
    let declared = code.iter().flat_map(|(module, text)| {
        let lines = text.lines().map(|line| line.trim_start_matches("pub "));
        let children = lines.filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
        children.map(|child| [module.as_slice(), &[child.to_owned()]].concat())
    });
    declared.filter(|module| !code.contains_key(module)).collect()
}

/// The code without comments, texts and unit tests.
fn bare(code: &str) -> String {
    let mut bare = String::new();
    let mut rest = code;
    while let Some(next) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if next == '"' {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, c)| {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                ends
            });
            end.unwrap().0 + 1
        } else if let Some(character) = ["'\"'", "'\\\"'", "'/'"].iter().find(|c| rest.starts_with(**c)) {
            character.len()
        } else {
            bare.push(next);
            next.len_utf8()
        };
        rest = &rest[length..];
    }
    match bare.find("#[cfg(test)]\nmod tests {") {
        Some(tests) => bare[..tests].to_owned(),
        None => bare,
    }
}

/// The paths of an import, each with the name that it gets.
fn expanded(before: &str, tree: &str) -> Vec<(String, String)> {
    let tree = tree.trim();
    if let Some((path, list)) = tree.split_once('{') {
        let list = list.strip_suffix('}').unwrap();
        let mut depth = 0;
        let parts = list.split(|c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        });
        let before = format!("{before}{path}");
        return parts
            .filter(|part| !part.trim().is_empty())
            .flat_map(|part| expanded(&before, part))
            .collect();
    }
    let (path, name) = tree.split_once(" as ").unwrap_or((tree, tree));
    let path = format!("{before}{path}");
    let path = path.strip_suffix("::self").unwrap_or(&path).to_owned();
    let name = if name == "self" { &path } else { name };
    let name = name.rsplit("::").next().unwrap().to_owned();
    vec![(path, name)]
}

/// A path from the root of the crate; `None` if it leads elsewhere.
fn absolute(module: &[String], path: &str, code: &Code) -> Option<Names> {
    let mut path = names(path);
    let mut base = module.to_vec();
    match path.first()?.as_str() {
        "crate" => base.clear(),
        "self" => {}
        "super" => {
            while path.get(1).is_some_and(|name| name == "super") {
                base.pop();
                path.remove(0);
            }
            base.pop();
        }
        child => {
            base.push(child.to_owned());
            if !code.contains_key(&base) {
                return None;
            }
        }
    }
    base.extend(path.drain(1..));
    Some(base)
}

fn read(module: &[String], text: &str, code: &Code) -> File {
    let mut file = File::default();
    let bare = bare(text);
    let mut words = String::new();
    for (i, statement) in bare.split_inclusive(';').enumerate() {
        let used = statement.find("use ").filter(|at| {
            let before = statement[..*at].trim_end();
            i == 0 && before.is_empty()
                || before.is_empty()
                || before.ends_with(['}', '{', ']'])
                || before.ends_with("pub")
                || before.ends_with("pub(crate)")
                || before.ends_with("pub(super)")
        });
        let Some(at) = used else {
            words.push_str(statement);
            continue;
        };
        words.push_str(&statement[..at]);
        let public = statement[..at].trim_end().ends_with([')', 'b']);
        for (path, name) in expanded("", statement[at + 4..].trim_end_matches(';')) {
            if let Some(path) = absolute(module, &path, code) {
                file.imports.push(Import { path, name, public });
            }
        }
    }
    let split = words.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    for word in split.filter(|word| !word.is_empty()) {
        file.words.extend(names(word).into_iter().take(1));
        file.paths.extend(word.contains("::").then(|| absolute(module, word, code)).flatten());
    }
    file
}

/// The file that a path leads to, through modules that pass names on.
fn origin<'a>(path: &[String], files: &'a BTreeMap<Names, File>, left: usize) -> Option<&'a Names> {
    let length = (0..=path.len()).rev().find(|length| files.contains_key(&path[..*length]))?;
    let (module, file) = files.get_key_value(&path[..length])?;
    let passed = path.get(length).filter(|_| left > 0).and_then(|name| {
        let import = file.imports.iter().find(|import| import.public && import.name == *name)?;
        origin(&[&import.path, &path[length + 1..]].concat(), files, left - 1)
    });
    Some(passed.unwrap_or(module))
}

/// Each file's module, and the modules of the files that it needs.
fn imports(code: &Code) -> BTreeMap<String, BTreeSet<String>> {
    let files: BTreeMap<Names, File> =
        code.iter().map(|(module, text)| (module.clone(), read(module, text, code))).collect();
    let elsewhere = elsewhere(code);
    let needs = |module: &Names, file: &File| {
        let needed = file.imports.iter().filter(|import| !import.public || file.words.contains(&import.name));
        let paths = needed
            .map(|import| &import.path)
            .chain(&file.paths)
            .filter(|path| !elsewhere.iter().any(|module| path.starts_with(module)));
        let origins = paths.filter_map(|path| origin(path, &files, 8));
        origins.filter(|origin| *origin != module).map(|origin| origin.join("::")).collect()
    };
    files.iter().map(|(module, file)| (module.join("::"), needs(module, file))).collect()
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
    for name in CRATES {
        for tree in trees(name) {
            let imports = imports(&tree);
            let circular = in_circles(&imports);
            let shown: Vec<_> = imports.iter().filter(|(file, _)| circular.contains(file.as_str())).collect();
            assert!(circular.is_empty(), "files of {name} in a circle: {shown:#?}");
        }
    }
}

#[test]
fn circles_are_found() {
    let graph = |files: &[(&str, &str)]| {
        let code: Code = files.iter().map(|(module, text)| (names(module), (*text).to_owned())).collect();
        imports(&code)
    };
    for (files, circle) in [
        (vec![("", "mod a;\npub use a::A;"), ("a", "use std::fmt;")], vec![]),
        (vec![("a", "use crate::b::B;"), ("b", "fn f() { crate::a::g() }")], vec!["a", "b"]),
        (vec![("", "mod a;\nfn f() { a::g() }"), ("a", "fn g() { crate::f() }")], vec!["", "a"]),
        (vec![("a", "use crate::b::B;"), ("b", "// use crate::a::A;\nfn f() { \"crate::a\" }")], vec![]),
        (
            vec![("a", "use crate::b::B;"), ("b", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}")],
            vec![],
        ),
        // Unit tests in a file of their own hide nothing of what comes after them.
        (vec![("a", "#[cfg(test)]\nmod tests;\nuse b::B;"), ("a::b", "use super::A;")], vec!["a", "a::b"]),
        // In lists over several lines, by other names, and from a module above.
        (
            vec![
                ("a", "use crate::{\n    c::{self as d, C},\n    b::B,\n};"),
                ("b", "use super::a;"),
                ("c", ""),
            ],
            vec!["a", "b"],
        ),
        // Through a module that only passes names on, and in one that uses what it passes on.
        (
            vec![("m", "pub use a::A;\npub use b::B;"), ("m::a", "use super::B;"), ("m::b", "use super::A;")],
            vec!["m::a", "m::b"],
        ),
        (
            vec![("m", "pub use a::A;\nfn f(a: A) {}\nstruct S;"), ("m::a", "use super::S;")],
            vec!["m", "m::a"],
        ),
        (vec![("m", "pub use a::A;\nstruct S;"), ("m::a", "use super::S;")], vec![]),
        // A module of another crate is no part of the one above it here.
        (
            vec![
                ("", "#[path = \"../../x.rs\"]\nmod x;\nmod a;\nfn f() { a::g() }"),
                ("a", "use crate::x::X;"),
            ],
            vec![],
        ),
    ] {
        let imports = graph(&files);
        assert_eq!(in_circles(&imports), circle.into_iter().collect(), "{files:?}: {imports:?}");
    }
}

#[test]
fn files_are_not_long() {
    for path in CRATES.iter().flat_map(|name| sources(&source_folder(name))) {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= LONGEST, "{} has {lines} lines", path.display());
    }
}
