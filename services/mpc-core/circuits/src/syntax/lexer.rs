//! Tokens, with semicolons inserted at line ends as in Go.

use std::rc::Rc;

use num_bigint::BigInt;

use crate::report::{Res, Span, fail, fail_with};

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A name.
    Name(Rc<str>),
    /// An integer or rune literal.
    Int(BigInt),
    /// A string literal, as bytes.
    Str(Rc<[u8]>),
    /// A keyword, operator or punctuation mark. A `;` may be one that a line end stands for.
    Mark(&'static str),
    /// The end of the file.
    End,
}

/// A line comment and the line, from 0, it stands on.
#[derive(Clone, Debug)]
pub struct Comment {
    /// Line number from 0.
    pub line: u32,
    /// The text after `//`.
    pub text: String,
}

/// The tokens of a file, each with its place, and its line comments.
#[derive(Debug, Default)]
pub struct Tokens {
    /// Tokens; the last is [`Token::End`].
    pub tokens: Vec<(Token, Span)>,
    /// Comments that are alone on their line.
    pub comments: Vec<Comment>,
}

const KEYWORDS: &[&str] = &[
    "package",
    "import",
    "const",
    "var",
    "type",
    "struct",
    "func",
    "return",
    "if",
    "else",
    "for",
    "range",
    "break",
    "continue",
    "switch",
    "goto",
    "defer",
    "go",
    "map",
    "chan",
    "interface",
    "select",
    "case",
    "default",
    "fallthrough",
];

// Longest first, so that the first match is the right one.
const OPERATORS: &[&str] = &[
    "<<=", ">>=", "&^=", "...", "&^", "<<", ">>", "&&", "||", "==", "!=", "<=", ">=", ":=", "+=", "-=", "*=",
    "/=", "%=", "|=", "^=", "&=", "++", "--", "+", "-", "*", "/", "%", "&", "|", "^", "!", "<", ">", "=",
    "(", ")", "[", "]", "{", "}", ",", ".", ":", ";",
];

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    file: u32,
}

/// Splits a file into tokens.
///
/// # Errors
/// A character that starts no token, an unfinished comment or literal, or a digit outside its base.
pub fn lex(text: &str, file: u32) -> Res<Tokens> {
    let mut lexer = Lexer { text, at: 0, line: 0, file };
    let mut out = Tokens::default();
    let mut ends = false; // a line end here stands for a semicolon
    let mut alone = true; // nothing but blanks so far on this line
    loop {
        let start = lexer.at;
        let Some(c) = lexer.peek() else { break };
        match c {
            '\n' => {
                lexer.bump();
                lexer.line += 1;
                if ends {
                    out.tokens.push((Token::Mark(";"), lexer.span(start)));
                }
                (ends, alone) = (false, true);
            }
            ' ' | '\t' | '\r' | '\u{feff}' => lexer.bump(),
            _ if lexer.rest().starts_with("//") => {
                let comment = lexer.rest().split('\n').next().unwrap_or("");
                if alone {
                    let body = comment.get(2..).unwrap_or("").trim_end_matches('\r').to_string();
                    out.comments.push(Comment { line: lexer.line, text: body });
                }
                lexer.at += comment.len();
            }
            _ if lexer.rest().starts_with("/*") => {
                let Some(length) = lexer.rest().find("*/") else {
                    return fail_with(lexer.span(start), "this comment has no end", "close it with */");
                };
                let comment = lexer.rest().get(..length).unwrap_or("");
                let lines = comment.matches('\n').count();
                lexer.line += u32::try_from(lines).unwrap_or(0);
                lexer.at += length + 2;
                if lines > 0 && ends {
                    out.tokens.push((Token::Mark(";"), lexer.span(start)));
                    ends = false;
                }
            }
            _ => {
                let token = lexer.token(c, start)?;
                ends = match &token {
                    Token::Mark(m) => {
                        matches!(*m, ")" | "]" | "}" | "return" | "++" | "--" | "break" | "continue")
                    }
                    _ => true,
                };
                alone = false;
                out.tokens.push((token, lexer.span(start)));
            }
        }
    }
    let end = lexer.span(lexer.at);
    if ends {
        out.tokens.push((Token::Mark(";"), end));
    }
    out.tokens.push((Token::End, end));
    Ok(out)
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }

    fn span(&self, start: usize) -> Span {
        let clip = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Span { file: self.file, start: clip(start), end: clip(self.at) }
    }

    fn token(&mut self, c: char, start: usize) -> Res<Token> {
        if c.is_alphabetic() || c == '_' {
            while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
                self.bump();
            }
            let name = self.text.get(start..self.at).unwrap_or("");
            return Ok(match KEYWORDS.iter().find(|k| **k == name) {
                Some(keyword) => Token::Mark(keyword),
                None => Token::Name(name.into()),
            });
        }
        match c {
            '0'..='9' => self.number(start),
            '"' => self.string(start),
            '`' => self.raw_string(start),
            '\'' => {
                self.bump();
                let value = match self.peek() {
                    Some('\\') => u32::from(self.escape(start, '\'')?),
                    Some(c) if c != '\'' && c != '\n' => {
                        self.bump();
                        u32::from(c)
                    }
                    _ => return fail(self.span(start), "this rune is empty"),
                };
                if self.peek() != Some('\'') {
                    return fail_with(self.span(start), "this rune has no end", "close it with '");
                }
                self.bump();
                Ok(Token::Int(value.into()))
            }
            _ => {
                let Some(mark) = OPERATORS.iter().find(|o| self.rest().starts_with(**o)) else {
                    self.bump();
                    return fail(
                        self.span(start),
                        format!("the character {c:?} starts nothing in this language"),
                    );
                };
                self.at += mark.len();
                Ok(Token::Mark(mark))
            }
        }
    }

    fn number(&mut self, start: usize) -> Res<Token> {
        while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            self.bump();
        }
        let text = self.text.get(start..self.at).unwrap_or("").replace('_', "");
        let lower = text.to_ascii_lowercase();
        let (digits, base) = match lower.get(..2) {
            Some("0x") => (lower.get(2..), 16),
            Some("0b") => (lower.get(2..), 2),
            Some("0o") => (lower.get(2..), 8),
            _ if lower.len() > 1 && lower.starts_with('0') => (lower.get(1..), 8),
            _ => (Some(lower.as_str()), 10),
        };
        match digits.and_then(|d| BigInt::parse_bytes(d.as_bytes(), base)) {
            Some(value) => Ok(Token::Int(value)),
            None => fail_with(
                self.span(start),
                format!("{text:?} is not a number in base {base}"),
                "prefixes are 0x, 0o or 0 for octal, and 0b; there are no floating-point numbers",
            ),
        }
    }

    fn string(&mut self, start: usize) -> Res<Token> {
        self.bump();
        let mut bytes = Vec::new();
        loop {
            match self.peek() {
                None | Some('\n') => {
                    return fail_with(self.span(start), "this string has no end", "close it with \"");
                }
                Some('"') => break,
                Some('\\') => bytes.push(self.escape(start, '"')?),
                Some(c) => {
                    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    self.bump();
                }
            }
        }
        self.bump();
        Ok(Token::Str(bytes.into()))
    }

    fn raw_string(&mut self, start: usize) -> Res<Token> {
        self.bump();
        let Some(length) = self.rest().find('`') else {
            return fail_with(self.span(start), "this string has no end", "close it with `");
        };
        let body = self.rest().get(..length).unwrap_or("").to_string();
        self.line += u32::try_from(body.matches('\n').count()).unwrap_or(0);
        self.at += length + 1;
        Ok(Token::Str(body.into_bytes().into()))
    }

    fn escape(&mut self, start: usize, quote: char) -> Res<u8> {
        self.bump();
        let c = self.peek();
        self.bump();
        let take = |lexer: &mut Self, count: usize, base: u32| {
            let digits = lexer.rest().get(..count).unwrap_or("").to_string();
            lexer.at += digits.len();
            u8::from_str_radix(&digits, base).ok().filter(|_| digits.len() == count)
        };
        let value = match c {
            Some('a') => Some(7),
            Some('b') => Some(8),
            Some('f') => Some(12),
            Some('n') => Some(10),
            Some('r') => Some(13),
            Some('t') => Some(9),
            Some('v') => Some(11),
            Some('\\') => Some(b'\\'),
            Some(c) if c == quote => u8::try_from(c).ok(),
            Some('x') => take(self, 2, 16),
            Some('0'..='7') => {
                self.at -= 1;
                take(self, 3, 8)
            }
            _ => None,
        };
        match value {
            Some(value) => Ok(value),
            None => fail_with(
                self.span(start),
                "this escape is unknown",
                "known are \\a \\b \\f \\n \\r \\t \\v \\\\ \\xHH \\OOO and the quote",
            ),
        }
    }
}
