//! Files, declarations and statements.

use std::rc::Rc;

use super::ast::{
    Binding, Block, Decl, Expr, ExprKind, File, Function, Import, Name, Parameter, Stmt, StmtKind, TypeDecl,
};
use super::lexer::{Comment, Token, lex};
use crate::report::{Res, Span, fail, fail_with};

/// Nesting beyond this is refused, so that no program exhausts the stack.
const MAX_DEPTH: usize = 200;

/// A parser over one file's tokens.
pub struct Parser<'a> {
    tokens: Vec<(Token, Span)>,
    comments: Vec<Comment>,
    text: &'a str,
    at: usize,
    depth: usize,
    /// False between a control keyword and its block, where `T {` does not start a literal.
    pub(super) literals: bool,
}

/// Parses one file.
///
/// # Errors
/// The first place that no rule of the grammar allows.
pub fn parse(text: &str, file: u32) -> Res<File> {
    let tokens = lex(text, file)?;
    let mut parser =
        Parser { tokens: tokens.tokens, comments: tokens.comments, text, at: 0, depth: 0, literals: true };
    parser.file()
}

impl Parser<'_> {
    pub(super) fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |(t, _)| t)
    }

    pub(super) fn span(&self) -> Span {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(Span::default(), |(_, s)| *s)
    }

    pub(super) fn last_span(&self) -> Span {
        self.tokens.get(self.at.saturating_sub(1)).map_or(Span::default(), |(_, s)| *s)
    }

    /// The token taken last.
    pub(super) fn before(&self) -> &Token {
        self.tokens.get(self.at.saturating_sub(1)).map_or(&Token::End, |(t, _)| t)
    }

    pub(super) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len());
        token
    }

    pub(super) fn at(&self, mark: &str) -> bool {
        matches!(self.peek(), Token::Mark(m) if *m == mark)
    }

    fn at_after(&self, ahead: usize, mark: &str) -> bool {
        matches!(self.tokens.get(self.at + ahead), Some((Token::Mark(m), _)) if *m == mark)
    }

    pub(super) fn eat(&mut self, mark: &str) -> bool {
        let found = self.at(mark);
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn expect(&mut self, mark: &str, after: &str) -> Res<()> {
        if self.eat(mark) {
            return Ok(());
        }
        fail(self.span(), format!("expected {mark:?} {after}, found {}", self.found()))
    }

    pub(super) fn found(&self) -> String {
        match self.peek() {
            Token::Name(name) => format!("the name {name:?}"),
            Token::Int(value) => format!("the number {value}"),
            Token::Str(_) => "a string".into(),
            Token::Mark(";") => "the end of the line".into(),
            Token::Mark(mark) => format!("{mark:?}"),
            Token::End => "the end of the file".into(),
        }
    }

    pub(super) fn name(&mut self, role: &str) -> Res<(Name, Span)> {
        let span = self.span();
        match self.peek().clone() {
            Token::Name(name) => {
                self.at += 1;
                Ok((name, span))
            }
            _ => fail(span, format!("expected {role}, found {}", self.found())),
        }
    }

    /// Runs `body` one level deeper.
    pub(super) fn nested<T>(&mut self, body: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        if self.depth >= MAX_DEPTH {
            return fail_with(self.span(), "this is nested too deeply", "split it into named parts");
        }
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        result
    }

    fn file(&mut self) -> Res<File> {
        if !self.eat("package") {
            return fail_with(self.span(), "a file starts with its package", "write `package main` first");
        }
        let (package, _) = self.name("the package's name")?;
        self.end_of_statement("the package clause")?;
        let mut imports = Vec::new();
        while self.eat("import") {
            if self.eat("(") {
                while !self.eat(")") {
                    imports.push(self.import()?);
                    if !self.eat(";") && !self.at(")") {
                        return fail(self.span(), format!("expected an import, found {}", self.found()));
                    }
                }
            } else {
                imports.push(self.import()?);
            }
            self.end_of_statement("the import")?;
        }
        let mut declarations = Vec::new();
        while *self.peek() != Token::End {
            if !self.eat(";") {
                self.declaration(&mut declarations)?;
                self.end_of_statement("the declaration")?;
            }
        }
        Ok(File { package, imports, declarations })
    }

    fn import(&mut self) -> Res<Import> {
        let span = self.span();
        let alias = match self.peek().clone() {
            Token::Name(name) => {
                self.at += 1;
                Some(name)
            }
            _ => None,
        };
        let Token::Str(bytes) = self.peek().clone() else {
            return fail(self.span(), format!("expected an import path in quotes, found {}", self.found()));
        };
        self.at += 1;
        let path = String::from_utf8_lossy(&bytes).into_owned();
        let last: Name = path.rsplit('/').next().unwrap_or("").into();
        Ok(Import { name: alias.unwrap_or(last), path, span: span.to(self.last_span()) })
    }

    fn declaration(&mut self, out: &mut Vec<Decl>) -> Res<()> {
        if self.eat("const") {
            self.group(|p| {
                let binding = p.binding(true)?;
                out.push(Decl::Const(Rc::new(binding)));
                Ok(())
            })
        } else if self.eat("var") {
            self.group(|p| {
                let binding = p.binding(false)?;
                out.push(Decl::Var(Rc::new(binding)));
                Ok(())
            })
        } else if self.eat("type") {
            self.group(|p| {
                let declared = p.type_decl()?;
                out.push(Decl::Type(Rc::new(declared)));
                Ok(())
            })
        } else if self.at("func") {
            let function = self.function()?;
            out.push(Decl::Function(Rc::new(function)));
            Ok(())
        } else {
            fail_with(
                self.span(),
                format!("expected a declaration, found {}", self.found()),
                "the top of a file has const, var, type and func; statements stand in functions",
            )
        }
    }

    /// One item, or several in parentheses.
    fn group(&mut self, mut item: impl FnMut(&mut Self) -> Res<()>) -> Res<()> {
        if !self.eat("(") {
            return item(self);
        }
        while !self.eat(")") {
            item(self)?;
            if !self.eat(";") && !self.at(")") {
                return fail(self.span(), format!("expected the end of the line, found {}", self.found()));
            }
        }
        Ok(())
    }

    fn binding(&mut self, constant: bool) -> Res<Binding> {
        let mut names = vec![self.name("a name")?];
        while self.eat(",") {
            names.push(self.name("a name")?);
        }
        let span = names.first().map_or(Span::default(), |(_, s)| *s);
        let ty = if self.at("=") { None } else { Some(self.type_expr()?) };
        let values = if self.eat("=") { self.expressions()? } else { Vec::new() };
        if constant && values.is_empty() {
            return fail(span, "a constant needs a value");
        }
        Ok(Binding { names, ty, values, span: span.to(self.last_span()) })
    }

    fn type_decl(&mut self) -> Res<TypeDecl> {
        let (name, span) = self.name("the type's name")?;
        let alias = self.eat("=");
        let ty = self.type_expr()?;
        Ok(TypeDecl { name, alias, ty, span })
    }

    fn function(&mut self) -> Res<Function> {
        let comment = self.comment_above();
        self.expect("func", "before a function")?;
        let receiver = if self.at("(") {
            let mut list = self.parameters()?;
            match (list.pop(), list.is_empty()) {
                (Some(one), true) => Some(one),
                _ => return fail(self.last_span(), "a method has one receiver"),
            }
        } else {
            None
        };
        let (name, span) = self.name("the function's name")?;
        let parameters = self.parameters()?;
        let results = if self.at("(") {
            self.parameters()?
        } else if self.at("{") {
            Vec::new()
        } else {
            let span = self.span();
            vec![Parameter { name: None, ty: Rc::new(self.type_expr()?), span }]
        };
        for p in receiver.iter().chain(&parameters) {
            if p.name.is_none() {
                return fail_with(p.span, "a parameter needs a name", "write `name type`, or `_ type`");
            }
        }
        let body = self.block()?;
        Ok(Function { name, receiver, parameters, results, body, comment, span })
    }

    /// `(a, b T, c U)` or `(T, U)`.
    fn parameters(&mut self) -> Res<Vec<Parameter>> {
        self.expect("(", "before parameters")?;
        let mut items: Vec<(Expr, Option<Expr>)> = Vec::new();
        while !self.eat(")") {
            let first = self.type_expr()?;
            let second = if self.at(",") || self.at(")") { None } else { Some(self.type_expr()?) };
            items.push((first, second));
            self.eat(";");
            if !self.eat(",") && !self.at(")") {
                return fail(self.span(), format!("expected ',' or ')', found {}", self.found()));
            }
        }
        let named = items.iter().any(|(_, ty)| ty.is_some());
        let mut out: Vec<Parameter> = Vec::new();
        let mut waiting = 0;
        for (first, second) in items {
            let span = first.span;
            if !named {
                out.push(Parameter { name: None, ty: Rc::new(first), span });
                continue;
            }
            let ExprKind::Name(name) = first.kind else {
                return fail(span, "expected a parameter's name before its type");
            };
            let typed = second.is_some();
            // Names before the type wait for it; the placeholder is replaced just below.
            let ty = Rc::new(second.unwrap_or(Expr { kind: ExprKind::Name(name.clone()), span }));
            out.push(Parameter { name: Some(name), ty: ty.clone(), span });
            if typed {
                let from = out.len().saturating_sub(1 + waiting);
                for p in out.iter_mut().skip(from) {
                    p.ty = ty.clone();
                }
                waiting = 0;
            } else {
                waiting += 1;
            }
        }
        if waiting > 0 {
            return fail(self.last_span(), "the last parameter has no type");
        }
        Ok(out)
    }

    /// The comment that ends on the line above the next token.
    fn comment_above(&self) -> Vec<String> {
        let start = self.span().start as usize;
        let line = self.text.get(..start).unwrap_or("").matches('\n').count();
        let mut lines = Vec::new();
        let mut wanted = line;
        for comment in self.comments.iter().rev() {
            if comment.line as usize >= line {
                continue;
            }
            if comment.line as usize + 1 != wanted {
                break;
            }
            wanted -= 1;
            lines.push(comment.text.clone());
        }
        lines.reverse();
        lines
    }

    /// A block in braces.
    pub(super) fn block(&mut self) -> Res<Block> {
        let outer = std::mem::replace(&mut self.literals, true);
        let block = self.nested(|p| {
            p.expect("{", "before a block")?;
            let mut statements = Vec::new();
            while !p.eat("}") {
                if p.eat(";") {
                    continue;
                }
                if *p.peek() == Token::End {
                    return fail(p.span(), "a block is not closed before the end of the file");
                }
                p.statement(&mut statements)?;
                if !p.at("}") {
                    p.end_of_statement("a statement")?;
                }
            }
            Ok(statements)
        });
        self.literals = outer;
        block
    }

    fn end_of_statement(&mut self, what: &str) -> Res<()> {
        if self.eat(";") || *self.peek() == Token::End {
            return Ok(());
        }
        fail(self.span(), format!("expected the end of the line after {what}, found {}", self.found()))
    }

    fn statement(&mut self, out: &mut Vec<Stmt>) -> Res<()> {
        let start = self.span();
        if self.eat("const") {
            return self.group(|p| {
                let binding = p.binding(true)?;
                out.push(Stmt { span: binding.span, kind: StmtKind::Const(binding) });
                Ok(())
            });
        }
        if self.eat("var") {
            return self.group(|p| {
                let binding = p.binding(false)?;
                out.push(Stmt { span: binding.span, kind: StmtKind::Var(binding) });
                Ok(())
            });
        }
        if self.eat("type") {
            return self.group(|p| {
                let declared = p.type_decl()?;
                out.push(Stmt { span: declared.span, kind: StmtKind::Type(Rc::new(declared)) });
                Ok(())
            });
        }
        let kind = if self.eat("return") {
            let ends = self.at(";") || self.at("}");
            StmtKind::Return(if ends { Vec::new() } else { self.expressions()? })
        } else if self.eat("if") {
            return self.if_statement(start).map(|s| out.push(s));
        } else if self.eat("for") {
            self.for_statement()?
        } else if self.at("{") {
            StmtKind::Block(self.block()?)
        } else {
            return self.simple().map(|s| out.push(s));
        };
        out.push(Stmt { kind, span: start.to(self.last_span()) });
        Ok(())
    }

    fn if_statement(&mut self, start: Span) -> Res<Stmt> {
        self.nested(|p| {
            let outer = std::mem::replace(&mut p.literals, false);
            let mut init = None;
            let mut first = p.simple()?;
            if p.eat(";") {
                init = Some(Box::new(first));
                first = p.simple()?;
            }
            p.literals = outer;
            let StmtKind::Expr(condition) = first.kind else {
                return fail(first.span, "the condition of an if is an expression");
            };
            let then = p.block()?;
            let mut otherwise = None;
            if p.eat("else") {
                let span = p.span();
                otherwise = Some(if p.eat("if") { vec![p.if_statement(span)?] } else { p.block()? });
            }
            let span = start.to(condition.span);
            Ok(Stmt { kind: StmtKind::If(init, condition, then, otherwise), span })
        })
    }

    fn for_statement(&mut self) -> Res<StmtKind> {
        let outer = std::mem::replace(&mut self.literals, false);
        let (mut init, mut condition, mut post, mut ranged) = (None, None, None, None);
        if self.eat("range") {
            ranged = Some((Vec::new(), false, self.expression()?));
        } else if !self.at("{") {
            if !self.at(";") {
                let first = self.range_or_simple(&mut ranged)?;
                init = first.map(Box::new);
            }
            if ranged.is_some() {
            } else if self.eat(";") {
                if !self.at(";") {
                    condition = Some(self.expression()?);
                }
                self.expect(";", "after the condition of a for")?;
                if !self.at("{") {
                    post = Some(Box::new(self.simple()?));
                }
            } else if let Some(statement) = init.take() {
                let StmtKind::Expr(e) = statement.kind else {
                    return fail(statement.span, "the condition of a for is an expression");
                };
                condition = Some(e);
            }
        }
        self.literals = outer;
        let body = self.block()?;
        Ok(match ranged {
            Some((names, new, over)) => StmtKind::Range(names, new, over, body),
            None => StmtKind::For(init, condition, post, body),
        })
    }

    fn range_or_simple(&mut self, ranged: &mut Option<(Vec<Expr>, bool, Expr)>) -> Res<Option<Stmt>> {
        let start = self.at;
        let names = self.expressions()?;
        let new = self.at(":=");
        if (new || self.at("=")) && self.at_after(1, "range") {
            self.at += 2;
            *ranged = Some((names, new, self.expression()?));
            return Ok(None);
        }
        self.at = start;
        self.simple().map(Some)
    }

    /// An assignment, definition, increment or expression.
    fn simple(&mut self) -> Res<Stmt> {
        if let Token::Mark(word @ ("break" | "continue" | "switch" | "goto" | "defer" | "go" | "select")) =
            self.peek()
        {
            return fail_with(
                self.span(),
                format!("the language has no {word}"),
                "a circuit has no jumps: use if, else and loops with conditions",
            );
        }
        let start = self.span();
        let left = self.expressions()?;
        let Token::Mark(mark) = *self.peek() else {
            return self.single(left, start);
        };
        let kind = match mark {
            ":=" => {
                self.at += 1;
                let mut names = Vec::new();
                for e in left {
                    let ExprKind::Name(name) = e.kind else {
                        return fail_with(
                            e.span,
                            "only names stand left of :=",
                            "use = to assign to a place",
                        );
                    };
                    names.push((name, e.span));
                }
                StmtKind::Define(names, self.expressions()?)
            }
            "=" => {
                self.at += 1;
                StmtKind::Assign(left, None, self.expressions()?)
            }
            "+=" | "-=" | "*=" | "/=" | "%=" | "|=" | "^=" | "&=" | "&^=" | "<<=" | ">>=" => {
                self.at += 1;
                let value = self.expression()?;
                let op = match mark {
                    "+=" => "+",
                    "-=" => "-",
                    "*=" => "*",
                    "/=" => "/",
                    "%=" => "%",
                    "|=" => "|",
                    "^=" => "^",
                    "&=" => "&",
                    "&^=" => "&^",
                    "<<=" => "<<",
                    _ => ">>",
                };
                StmtKind::Assign(left, Some(op), vec![value])
            }
            "++" | "--" => {
                self.at += 1;
                let one = Expr { kind: ExprKind::Int(1.into()), span: self.last_span() };
                StmtKind::Assign(left, Some(if mark == "++" { "+" } else { "-" }), vec![one])
            }
            _ => return self.single(left, start),
        };
        Ok(Stmt { kind, span: start.to(self.last_span()) })
    }

    fn single(&mut self, mut left: Vec<Expr>, start: Span) -> Res<Stmt> {
        match (left.pop(), left.is_empty()) {
            (Some(e), true) => Ok(Stmt { kind: StmtKind::Expr(e), span: start.to(self.last_span()) }),
            _ => fail(start.to(self.last_span()), "several expressions stand where a statement was expected"),
        }
    }
}
