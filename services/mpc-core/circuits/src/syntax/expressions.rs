//! Expressions and types.

use std::rc::Rc;

use super::ast::{Element, Expr, ExprKind, Parameter};
use super::lexer::Token;
use super::parser::Parser;
use crate::report::{Res, Span, fail, fail_with};

/// How tightly a binary operator binds, as in Go; 0 for other marks.
fn precedence(mark: &str) -> u8 {
    match mark {
        "||" => 1,
        "&&" => 2,
        "==" | "!=" | "<" | "<=" | ">" | ">=" => 3,
        "+" | "-" | "|" | "^" => 4,
        "*" | "/" | "%" | "<<" | ">>" | "&" | "&^" => 5,
        _ => 0,
    }
}

impl Parser<'_> {
    /// One or more expressions with commas.
    pub(super) fn expressions(&mut self) -> Res<Vec<Expr>> {
        let mut out = vec![self.expression()?];
        while self.eat(",") {
            out.push(self.expression()?);
        }
        Ok(out)
    }

    /// An expression.
    pub(super) fn expression(&mut self) -> Res<Expr> {
        self.binary(1)
    }

    fn binary(&mut self, least: u8) -> Res<Expr> {
        self.nested(|p| {
            let mut left = p.unary()?;
            let mut operators = 0;
            while let Token::Mark(mark) = *p.peek() {
                let level = precedence(mark);
                if level < least || level == 0 {
                    break;
                }
                operators += 1;
                if operators > 2000 {
                    return fail_with(p.span(), "this expression is too long", "split it into statements");
                }
                p.next();
                let right = p.binary(level + 1)?;
                let span = left.span.to(right.span);
                left = Expr { kind: ExprKind::Binary(mark, Box::new(left), Box::new(right)), span };
            }
            Ok(left)
        })
    }

    fn unary(&mut self) -> Res<Expr> {
        if let Token::Mark(mark @ ("+" | "-" | "!" | "^" | "*" | "&")) = *self.peek() {
            let start = self.span();
            self.next();
            let operand = self.nested(Self::unary)?;
            let span = start.to(operand.span);
            return Ok(Expr { kind: ExprKind::Unary(mark, Box::new(operand)), span });
        }
        self.primary()
    }

    fn primary(&mut self) -> Res<Expr> {
        let start = self.span();
        let mut e = self.operand()?;
        let mut links = 0;
        loop {
            links += 1;
            if links > 500 {
                return fail_with(self.span(), "this chain is too long", "split it into statements");
            }
            let kind = if self.eat(".") {
                let (name, _) = self.name("a field, method or package member")?;
                ExprKind::Select(Box::new(e), name)
            } else if self.at("(") {
                self.next();
                ExprKind::Call(Box::new(e), self.arguments()?)
            } else if self.at("[") {
                self.next();
                self.index(e)?
            } else if self.at("{") && self.literals && is_type(&e) {
                ExprKind::Composite(Some(Box::new(e)), self.elements()?)
            } else {
                return Ok(e);
            };
            e = Expr { kind, span: start.to(self.last_span()) };
        }
    }

    fn operand(&mut self) -> Res<Expr> {
        let span = self.span();
        let kind = match self.next() {
            Token::Name(name) => ExprKind::Name(name),
            Token::Int(value) => ExprKind::Int(value),
            Token::Str(bytes) => ExprKind::Str(bytes),
            Token::Mark("(") => {
                let outer = std::mem::replace(&mut self.literals, true);
                let e = self.expression()?;
                self.literals = outer;
                self.expect(")", "after an expression in parentheses")?;
                return Ok(Expr { kind: e.kind, span: span.to(self.last_span()) });
            }
            Token::Mark("[") => return self.array_type(span),
            Token::Mark("struct") => return self.struct_type(span),
            Token::Mark("func") => {
                return fail_with(
                    span,
                    "the language has no function values",
                    "declare a function with a name",
                );
            }
            Token::Mark(word @ ("map" | "chan" | "interface")) => {
                return fail(span, format!("the language has no {word}"));
            }
            _ => {
                // The failing token was taken: name it, not the one after it.
                let found = match self.tokens_before() {
                    Some(text) => text,
                    None => self.found(),
                };
                return fail(span, format!("expected an expression, found {found}"));
            }
        };
        Ok(Expr { kind, span })
    }

    fn arguments(&mut self) -> Res<Vec<Expr>> {
        let outer = std::mem::replace(&mut self.literals, true);
        let mut out = Vec::new();
        while !self.eat(")") {
            self.eat(";");
            out.push(self.expression()?);
            if !self.eat(",") && !self.at(")") {
                return fail(self.span(), format!("expected ',' or ')' in a call, found {}", self.found()));
            }
        }
        self.literals = outer;
        Ok(out)
    }

    fn index(&mut self, of: Expr) -> Res<ExprKind> {
        let outer = std::mem::replace(&mut self.literals, true);
        let from = if self.at(":") { None } else { Some(Box::new(self.expression()?)) };
        let kind = if self.eat(":") {
            let to = if self.at("]") { None } else { Some(Box::new(self.expression()?)) };
            ExprKind::Slice(Box::new(of), from, to)
        } else {
            match from {
                Some(index) => ExprKind::Index(Box::new(of), index),
                None => return fail(self.span(), "expected an index"),
            }
        };
        self.literals = outer;
        self.expect("]", "after an index")?;
        Ok(kind)
    }

    /// The elements of a literal, from its `{`.
    fn elements(&mut self) -> Res<Vec<Element>> {
        let outer = std::mem::replace(&mut self.literals, true);
        let list = self.nested(|p| {
            p.expect("{", "before the elements of a literal")?;
            let mut out = Vec::new();
            while !p.eat("}") {
                let mut value = p.element()?;
                let mut key = None;
                if p.eat(":") {
                    key = Some(value);
                    value = p.element()?;
                }
                out.push((key, value));
                if !p.eat(",") && !p.at("}") {
                    return fail_with(
                        p.span(),
                        format!("expected ',' or '}}' in a literal, found {}", p.found()),
                        "the last element before a line end has a comma too",
                    );
                }
            }
            Ok(out)
        });
        self.literals = outer;
        list
    }

    fn element(&mut self) -> Res<Expr> {
        if !self.at("{") {
            return self.expression();
        }
        let start = self.span();
        let elements = self.elements()?;
        Ok(Expr { kind: ExprKind::Composite(None, elements), span: start.to(self.last_span()) })
    }

    /// A type.
    pub(super) fn type_expr(&mut self) -> Res<Expr> {
        self.nested(|p| {
            let span = p.span();
            match p.next() {
                Token::Name(name) => {
                    let mut e = Expr { kind: ExprKind::Name(name), span };
                    if p.eat(".") {
                        let (member, _) = p.name("a type's name")?;
                        e = Expr {
                            kind: ExprKind::Select(Box::new(e), member),
                            span: span.to(p.last_span()),
                        };
                    }
                    Ok(e)
                }
                Token::Mark("*") => {
                    let to = p.type_expr()?;
                    let span = span.to(to.span);
                    Ok(Expr { kind: ExprKind::Unary("*", Box::new(to)), span })
                }
                Token::Mark("(") => {
                    let e = p.type_expr()?;
                    p.expect(")", "after a type in parentheses")?;
                    Ok(e)
                }
                Token::Mark("[") => p.array_type(span),
                Token::Mark("struct") => p.struct_type(span),
                _ => fail(span, "expected a type"),
            }
        })
    }

    fn array_type(&mut self, start: Span) -> Res<Expr> {
        let kind = if self.eat("]") {
            ExprKind::SliceType(Box::new(self.type_expr()?))
        } else if self.eat("...") {
            self.expect("]", "after ...")?;
            ExprKind::ArrayType(None, Box::new(self.type_expr()?))
        } else {
            let outer = std::mem::replace(&mut self.literals, true);
            let length = self.expression()?;
            self.literals = outer;
            self.expect("]", "after an array's length")?;
            ExprKind::ArrayType(Some(Box::new(length)), Box::new(self.type_expr()?))
        };
        Ok(Expr { kind, span: start.to(self.last_span()) })
    }

    fn struct_type(&mut self, start: Span) -> Res<Expr> {
        self.expect("{", "after struct")?;
        let mut fields = Vec::new();
        while !self.eat("}") {
            let mut names = vec![self.name("a field's name")?];
            while self.eat(",") {
                names.push(self.name("a field's name")?);
            }
            let ty = Rc::new(self.type_expr()?);
            fields.extend(names.into_iter().map(|(n, span)| Parameter {
                name: Some(n),
                ty: ty.clone(),
                span,
            }));
            if !self.eat(";") && !self.at("}") {
                return fail(
                    self.span(),
                    format!("expected the end of the line after a field, found {}", self.found()),
                );
            }
        }
        Ok(Expr { kind: ExprKind::StructType(fields), span: start.to(self.last_span()) })
    }

    fn tokens_before(&self) -> Option<String> {
        let shown = match self.before() {
            Token::Mark(";") => "the end of the line".to_string(),
            Token::Mark(mark) => format!("{mark:?}"),
            Token::End => "the end of the file".to_string(),
            _ => return None,
        };
        Some(shown)
    }
}

/// Whether `e {` may start a literal.
fn is_type(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Name(_) | ExprKind::ArrayType(..) | ExprKind::SliceType(_) | ExprKind::StructType(_) => {
            true
        }
        ExprKind::Select(of, _) => matches!(of.kind, ExprKind::Name(_)),
        _ => false,
    }
}
