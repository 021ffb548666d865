//! From text to a syntax tree.

pub mod ast;
pub mod expressions;
pub mod lexer;
pub mod parser;

pub use parser::parse;
