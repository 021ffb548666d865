//! Source files, places in them, and errors that show the line they speak of.

use std::fmt;

/// A stretch of bytes in one source file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Index of the file in [`Sources`].
    pub file: u32,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The stretch from the start of `self` to the end of `other`.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start, end: other.end.max(self.start) }
    }
}

/// One source file: its name as errors print it, and its text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// A path, or `std/...` for a file of the standard library.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// All files that a program was read from, in the order of reading.
#[derive(Clone, Debug, Default)]
pub struct Sources(pub Vec<SourceFile>);

impl Sources {
    /// Adds a file and returns its index.
    pub fn add(&mut self, name: String, text: String) -> u32 {
        self.0.push(SourceFile { name, text });
        u32::try_from(self.0.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// Formats an error as `file:line:column: message`, the source line with a mark, and the advice.
    #[must_use]
    pub fn render(&self, error: &Error) -> String {
        let mut out = String::new();
        let Some(file) = self.0.get(error.span.file as usize) else {
            return format!("error: {error}");
        };
        let (line, column, text) = locate(&file.text, error.span.start as usize);
        out.push_str(&format!("{}:{line}:{column}: {}\n", file.name, error.message));
        let shown: String = text.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
        out.push_str(&format!("    {shown}\n    {}", " ".repeat(column.saturating_sub(1))));
        let width = (error.span.end.saturating_sub(error.span.start) as usize)
            .clamp(1, text.chars().count().saturating_sub(column.saturating_sub(1)).max(1));
        out.push_str(&"^".repeat(width));
        if let Some(advice) = &error.advice {
            out.push_str(&format!("\n  {advice}"));
        }
        for (name, span) in &error.calls {
            let (line, column, _) =
                locate(self.0.get(span.file as usize).map_or("", |f| &f.text), span.start as usize);
            let file = self.0.get(span.file as usize).map_or("", |f| &f.name);
            out.push_str(&format!("\n  in {name}, called at {file}:{line}:{column}"));
        }
        out
    }
}

/// Line and column, both from 1, the column in characters, and the line's text.
fn locate(text: &str, at: usize) -> (usize, usize, &str) {
    let mut start = 0;
    for (number, line) in text.split('\n').enumerate() {
        let end = start + line.len();
        if at <= end {
            let column = line.char_indices().take_while(|(i, _)| start + i < at).count() + 1;
            return (number + 1, column, line.trim_end_matches('\r'));
        }
        start = end + 1;
    }
    (text.split('\n').count(), 1, "")
}

/// Why a program was refused, where, and the way to mend it.
#[derive(Clone, Debug)]
pub struct Error {
    /// The place in the source.
    pub span: Span,
    /// One sentence without its final stop.
    pub message: String,
    /// One sentence on how to mend it.
    pub advice: Option<String>,
    /// The calls that led there, innermost first: function and place of the call.
    pub calls: Vec<(String, Span)>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// A result whose error is boxed, because errors are large and rare.
pub type Res<T> = Result<T, Box<Error>>;

/// An error without advice.
pub fn fail<T>(span: Span, message: impl Into<String>) -> Res<T> {
    Err(Box::new(Error { span, message: message.into(), advice: None, calls: Vec::new() }))
}

/// An error with advice.
pub fn fail_with<T>(span: Span, message: impl Into<String>, advice: impl Into<String>) -> Res<T> {
    Err(Box::new(Error { span, message: message.into(), advice: Some(advice.into()), calls: Vec::new() }))
}
