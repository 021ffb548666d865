//! The syntax tree. Types and expressions share one tree, because only evaluation tells them apart.

use std::rc::Rc;

use num_bigint::BigInt;

use crate::report::Span;

/// A name in a program.
pub type Name = Rc<str>;

/// An expression or a type, with its place.
#[derive(Debug)]
pub struct Expr {
    /// The form.
    pub kind: ExprKind,
    /// The place in the source.
    pub span: Span,
}

/// One element of a composite literal: an optional key and its value.
pub type Element = (Option<Expr>, Expr);

/// The forms of expressions and types.
#[derive(Debug)]
pub enum ExprKind {
    /// A name.
    Name(Name),
    /// An integer or rune.
    Int(BigInt),
    /// A string.
    Str(Rc<[u8]>),
    /// `op x`; `*` and `&` included.
    Unary(&'static str, Box<Expr>),
    /// `x op y`.
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `f(x, y)`, a conversion included.
    Call(Box<Expr>, Vec<Expr>),
    /// `x[i]`.
    Index(Box<Expr>, Box<Expr>),
    /// `x[i:j]`.
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    /// `x.name`.
    Select(Box<Expr>, Name),
    /// `T{...}`, or `{...}` inside another literal.
    Composite(Option<Box<Expr>>, Vec<Element>),
    /// `[n]T`; without a length where `[...]T` is written.
    ArrayType(Option<Box<Expr>>, Box<Expr>),
    /// `[]T`.
    SliceType(Box<Expr>),
    /// `struct { ... }`.
    StructType(Vec<Parameter>),
}

/// A parameter, result or field. Results without a name have none.
#[derive(Debug)]
pub struct Parameter {
    /// The name.
    pub name: Option<Name>,
    /// The type's expression; fields that share a type share it.
    pub ty: Rc<Expr>,
    /// The place of the name.
    pub span: Span,
}

/// A statement with its place.
#[derive(Debug)]
pub struct Stmt {
    /// The form.
    pub kind: StmtKind,
    /// The place in the source.
    pub span: Span,
}

/// Statements in braces.
pub type Block = Vec<Stmt>;

/// `const` or `var`: names, an optional type, and values.
#[derive(Debug)]
pub struct Binding {
    /// Names, `_` included.
    pub names: Vec<(Name, Span)>,
    /// The type, if written.
    pub ty: Option<Expr>,
    /// The values, if written.
    pub values: Vec<Expr>,
    /// The place.
    pub span: Span,
}

/// `type name = T` or `type name T`.
#[derive(Debug)]
pub struct TypeDecl {
    /// The new name.
    pub name: Name,
    /// `=` was written: another name for the same type.
    pub alias: bool,
    /// The type it stands for.
    pub ty: Expr,
    /// The place.
    pub span: Span,
}

/// The forms of statements.
#[derive(Debug)]
pub enum StmtKind {
    /// `const` in a function.
    Const(Binding),
    /// `var` in a function.
    Var(Binding),
    /// `type` in a function.
    Type(Rc<TypeDecl>),
    /// An expression for its effect.
    Expr(Expr),
    /// `a, b = x, y` or `a op= x`.
    Assign(Vec<Expr>, Option<&'static str>, Vec<Expr>),
    /// `a, b := x, y`.
    Define(Vec<(Name, Span)>, Vec<Expr>),
    /// `if init; cond { } else { }`.
    If(Option<Box<Stmt>>, Expr, Block, Option<Block>),
    /// `for init; cond; post { }`.
    For(Option<Box<Stmt>>, Option<Expr>, Option<Box<Stmt>>, Block),
    /// `for key, value := range x { }`; `true` where the variables are new.
    Range(Vec<Expr>, bool, Expr, Block),
    /// `return x, y`.
    Return(Vec<Expr>),
    /// `{ }`.
    Block(Block),
}

/// A function or method.
#[derive(Debug)]
pub struct Function {
    /// The name.
    pub name: Name,
    /// The receiver of a method.
    pub receiver: Option<Parameter>,
    /// Parameters in order.
    pub parameters: Vec<Parameter>,
    /// Results in order.
    pub results: Vec<Parameter>,
    /// The body.
    pub body: Block,
    /// The lines of the comment directly above.
    pub comment: Vec<String>,
    /// The place of the name.
    pub span: Span,
}

/// `import alias "path"`.
#[derive(Debug)]
pub struct Import {
    /// The name in this file: the alias or the last part of the path.
    pub name: Name,
    /// The path.
    pub path: String,
    /// The place.
    pub span: Span,
}

/// A declaration at the top of a file.
#[derive(Debug)]
pub enum Decl {
    /// `const`.
    Const(Rc<Binding>),
    /// `var`.
    Var(Rc<Binding>),
    /// `type`.
    Type(Rc<TypeDecl>),
    /// `func`.
    Function(Rc<Function>),
}

/// One parsed file.
#[derive(Debug)]
pub struct File {
    /// The name after `package`.
    pub package: Name,
    /// Imports in order.
    pub imports: Vec<Import>,
    /// Declarations in order.
    pub declarations: Vec<Decl>,
}
