//! A program and the packages it imports, read and parsed but not yet evaluated.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sha2::{Digest as _, Sha256};

use crate::report::{Error, Res, Sources, Span, fail_with};
use crate::syntax::ast::{Binding, Decl, File, Function, Name, TypeDecl};
use crate::syntax::parse;

include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// A name declared in a package, and the index of its file there.
#[derive(Clone, Debug)]
pub enum Item {
    /// The n-th name of a `const`.
    Const(usize, Rc<Binding>, usize),
    /// The n-th name of a `var`.
    Var(usize, Rc<Binding>, usize),
    /// A type.
    Type(usize, Rc<TypeDecl>),
    /// A function.
    Function(usize, Rc<Function>),
}

/// One package.
#[derive(Debug, Default)]
pub struct Package {
    /// The import path; `main` for the program itself.
    pub path: String,
    /// For each file, the packages that its imports name.
    pub imports: Vec<HashMap<Name, usize>>,
    /// For each file, its index in the sources.
    pub files: Vec<u32>,
    /// Declarations by name.
    pub items: HashMap<Name, Item>,
    /// Methods by receiver type and name.
    pub methods: HashMap<(Name, Name), (usize, Rc<Function>)>,
}

/// A parsed program.
#[derive(Debug, Default)]
pub struct Program {
    /// All texts, for error messages.
    pub sources: Sources,
    /// Package 0 is the program's own.
    pub packages: Vec<Package>,
    by_path: HashMap<String, usize>,
    /// Folders that are searched for packages after the standard library.
    library: Vec<PathBuf>,
}

/// A program's text and where its packages are.
#[derive(Clone, Debug)]
pub struct Source {
    main: Option<crate::report::SourceFile>,
    library: Vec<PathBuf>,
}

impl Source {
    /// Parses the program again.
    ///
    /// # Errors
    /// As [`Program::load`].
    pub fn load(&self) -> Result<Program, LoadError> {
        match &self.main {
            Some(file) => Program::from_text(&file.name, &file.text, &self.library),
            None => Err(LoadError("there is no program".into())),
        }
    }
}

/// A program could not be read; the text says why and where.
#[derive(Debug)]
pub struct LoadError(pub String);

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}

impl Program {
    /// Reads a program from a file; its packages from the standard library, then from `library`, then from the
    /// folder of the file.
    ///
    /// # Errors
    /// A file that cannot be read or parsed, or an import that names no package.
    pub fn load(path: &Path, library: &[PathBuf]) -> Result<Program, LoadError> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| LoadError(format!("cannot read {}: {e}", path.display())))?;
        let mut library = library.to_vec();
        library.extend(path.parent().map(Path::to_path_buf));
        Self::from_text(&path.display().to_string(), &text, &library)
    }

    /// Parses a program from its text.
    ///
    /// # Errors
    /// As [`Program::load`].
    pub fn from_text(name: &str, text: &str, library: &[PathBuf]) -> Result<Program, LoadError> {
        let mut program = Program { library: library.to_vec(), ..Program::default() };
        match program.package("main", vec![(name.to_string(), text.to_string())]) {
            Ok(_) => Ok(program),
            Err(error) => Err(LoadError(program.sources.render(&error))),
        }
    }

    /// The sources from which another thread parses the same program: parsed programs stay on their thread.
    #[must_use]
    pub fn copy(&self) -> Source {
        let main = self.sources.0.first().cloned();
        Source { main, library: self.library.clone() }
    }

    /// A digest of all that decides the circuit beside the sizes of inputs: the texts, and the circuits in files that
    /// they name.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"coterie/circuit-program/1");
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        for file in &self.sources.0 {
            part(file.text.as_bytes());
            let folder = Path::new(&file.name).parent().unwrap_or(Path::new(""));
            // Pieces between quotes, and those between two such pieces: neither is missed.
            for name in file.text.split('"').filter(|piece| native_file(piece)) {
                part(&std::fs::read(folder.join(name)).unwrap_or_default());
            }
        }
        hash.finalize().into()
    }

    /// The function `main`.
    ///
    /// # Errors
    /// The program has none.
    pub fn main(&self) -> Res<Rc<Function>> {
        match self.packages.first().and_then(|p| p.items.get("main")) {
            Some(Item::Function(_, f)) => Ok(f.clone()),
            _ => fail_with(
                Span::default(),
                "the program has no function main",
                "write `func main(a T, b U) R`: a is the garbler's input and b the evaluator's",
            ),
        }
    }

    fn package(&mut self, path: &str, texts: Vec<(String, String)>) -> Res<usize> {
        let index = self.packages.len();
        self.by_path.insert(path.into(), index);
        self.packages.push(Package { path: path.into(), ..Package::default() });
        for (name, text) in texts {
            let file = self.sources.add(name, text.clone());
            let parsed = parse(&text, file)?;
            let mut imports = HashMap::new();
            for import in &parsed.imports {
                imports.insert(import.name.clone(), self.import(&import.path, import.span)?);
            }
            if let Some(package) = self.packages.get_mut(index) {
                package.imports.push(imports);
                package.files.push(file);
                declare(package, parsed)?;
            }
        }
        Ok(index)
    }

    fn import(&mut self, path: &str, span: Span) -> Res<usize> {
        if let Some(index) = self.by_path.get(path) {
            return Ok(*index);
        }
        let mut texts: Vec<(String, String)> = LIBRARY
            .iter()
            .filter(|(name, _)| name.rsplit_once('/').is_some_and(|(folder, _)| folder == path))
            .map(|(name, text)| (format!("std/{name}"), (*text).to_string()))
            .collect();
        if texts.is_empty() && !path.split('/').any(|part| part == "..") {
            texts = self
                .library
                .iter()
                .map(|root| read_folder(&root.join(path)))
                .find(|t| !t.is_empty())
                .unwrap_or_default();
        }
        if texts.is_empty() {
            return fail_with(
                span,
                format!("there is no package {path:?}"),
                "packages are folders of .mpcl files in the standard library, a --library folder, or beside the program",
            );
        }
        self.package(path, texts)
    }
}

/// Whether this names a circuit that stands in a file beside the source.
#[must_use]
pub fn native_file(name: &str) -> bool {
    (name.ends_with(".bristol") || name.ends_with(".txt")) && !name.contains("..") && !name.contains('\n')
}

fn read_folder(folder: &Path) -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|entries| entries.filter_map(|e| e.ok().map(|e| e.path())).collect())
        .unwrap_or_default();
    paths.retain(|p| p.extension().is_some_and(|e| e == "mpcl"));
    paths.sort();
    paths
        .into_iter()
        .filter_map(|p| std::fs::read_to_string(&p).ok().map(|text| (p.display().to_string(), text)))
        .collect()
}

fn declare(package: &mut Package, file: File) -> Res<()> {
    let index = package.imports.len().saturating_sub(1);
    let mut items: Vec<(Name, Item, Span)> = Vec::new();
    for declaration in file.declarations {
        match declaration {
            Decl::Const(b) => {
                for (i, (name, span)) in b.names.iter().enumerate() {
                    items.push((name.clone(), Item::Const(index, b.clone(), i), *span));
                }
            }
            Decl::Var(b) => {
                for (i, (name, span)) in b.names.iter().enumerate() {
                    items.push((name.clone(), Item::Var(index, b.clone(), i), *span));
                }
            }
            Decl::Type(t) => items.push((t.name.clone(), Item::Type(index, t.clone()), t.span)),
            Decl::Function(f) => match &f.receiver {
                None => items.push((f.name.clone(), Item::Function(index, f.clone()), f.span)),
                Some(receiver) => {
                    let Some(ty) = receiver_type(&receiver.ty) else {
                        return fail_with(
                            receiver.span,
                            "a receiver is a declared type or a pointer to one",
                            "write `(x T)` or `(x *T)`",
                        );
                    };
                    let key = (ty, f.name.clone());
                    if package.methods.insert(key, (index, f.clone())).is_some() {
                        return duplicate(f.span, &f.name);
                    }
                }
            },
        }
    }
    for (name, item, span) in items {
        if &*name != "_" && package.items.insert(name.clone(), item).is_some() {
            return duplicate(span, &name);
        }
    }
    Ok(())
}

fn duplicate<T>(span: Span, name: &str) -> Res<T> {
    Err(Box::new(Error {
        span,
        message: format!("{name} is declared twice in this package"),
        advice: Some("rename one of them".into()),
        calls: Vec::new(),
    }))
}

fn receiver_type(e: &crate::syntax::ast::Expr) -> Option<Name> {
    use crate::syntax::ast::ExprKind;
    match &e.kind {
        ExprKind::Name(name) => Some(name.clone()),
        ExprKind::Unary("*", to) => receiver_type(to),
        _ => None,
    }
}
