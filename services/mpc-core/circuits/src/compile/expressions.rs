//! Expressions, and the names in them.

use super::Compiler;
use super::places::Found;
use super::value::{Value, literals};
use crate::circuit::Lit;
use crate::report::{Res, Span, fail, fail_with};
use crate::syntax::ast::{Expr, ExprKind};
use crate::types::Type;

const BUILTINS: &[&str] =
    &["len", "size", "copy", "make", "native", "panic", "floorPow2", "base10Digits", "wideMul", "intern"];

impl Compiler<'_, '_> {
    /// The meaning of a name: a local, a name of the package or file, or something built in.
    pub(super) fn find(&mut self, name: &str, span: Span) -> Res<Found> {
        if let Some((_, cell)) = self.frame.locals.iter().rev().find(|(n, _)| &**n == name) {
            return Ok(Found::Variable(cell.clone()));
        }
        let (package, file) = (self.frame.package, self.frame.file);
        let here = self.program.packages.get(package);
        if here.is_some_and(|p| p.items.contains_key(name)) {
            return self.global(package, name, span);
        }
        if let Some(index) = here.and_then(|p| p.imports.get(file)).and_then(|i| i.get(name)) {
            return Ok(Found::Value(Value::Package(*index)));
        }
        if let Some(builtin) = BUILTINS.iter().find(|b| **b == name) {
            return Ok(Found::Value(Value::Builtin(builtin)));
        }
        if let Some(ty) = Type::builtin(name) {
            return Ok(Found::Value(Value::Type(ty)));
        }
        match name {
            "true" => Ok(Found::Value(self.boolean(Lit::TRUE))),
            "false" => Ok(Found::Value(self.boolean(Lit::FALSE))),
            "nil" => Ok(Found::Value(Value::Nil)),
            "_" => fail(span, "_ has no value"),
            "append" | "cap" | "delete" | "print" | "println" | "new" => fail_with(
                span,
                format!("the language has no {name}"),
                "slices are values of a known length: join them with +, or make one and copy into it",
            ),
            "float32" | "float64" | "complex64" | "complex128" => {
                fail_with(span, "the language has no floating-point numbers", "use integers of a fixed scale")
            }
            _ => fail_with(
                span,
                format!("nothing is called {name} here"),
                self.similar(name)
                    .map_or("declare it, or import its package".into(), |s| format!("did you mean {s}?")),
            ),
        }
    }

    /// The visible name nearest to a misspelt one.
    fn similar(&self, name: &str) -> Option<String> {
        let items = self.program.packages.get(self.frame.package).into_iter().flat_map(|p| p.items.keys());
        let locals = self.frame.locals.iter().map(|(n, _)| n);
        locals
            .chain(items)
            .map(|n| (distance(n, name), n.to_string()))
            .filter(|(d, n)| *d <= 1 + n.len() / 4)
            .min()
            .map(|(_, n)| n)
    }

    /// The package that an expression names, if it does.
    pub(super) fn package_of(&mut self, e: &Expr) -> Option<usize> {
        let ExprKind::Name(name) = &e.kind else { return None };
        match self.find(name, e.span) {
            Ok(Found::Value(Value::Package(index))) => Some(index),
            _ => None,
        }
    }

    /// Evaluates an expression.
    pub(super) fn value(&mut self, e: &Expr) -> Res<Value> {
        match &e.kind {
            ExprKind::Int(n) => Ok(Value::Untyped(n.clone())),
            ExprKind::Str(bytes) => {
                let bits = bytes.iter().flat_map(|b| literals(&(*b).into(), 8)).collect();
                Ok(self.data(Type::Str(8 * bytes.len()), bits))
            }
            ExprKind::Name(_)
            | ExprKind::Select(..)
            | ExprKind::Index(..)
            | ExprKind::Slice(..)
            | ExprKind::Unary("*", _) => {
                let viewed = self.view(e)?;
                Ok(self.copy_out(viewed))
            }
            ExprKind::Unary("&", of) => {
                if let ExprKind::Composite(..) = of.kind {
                    let value = self.value(of)?;
                    let cell = self.new_cell(None, value);
                    return self.pointer(super::Place { cell, path: Vec::new() }, e.span);
                }
                let place = self.place(of)?;
                self.pointer(place, e.span)
            }
            ExprKind::Unary(op, of) => {
                let operand = self.value(of)?;
                self.unary(op, operand, e.span)
            }
            ExprKind::Binary(op @ ("&&" | "||"), a, b) => self.shortcut(op, a, b, e.span),
            ExprKind::Binary(op, a, b) => {
                let left = self.value(a)?;
                let right = self.value(b)?;
                self.binary(op, left, right, e.span)
            }
            ExprKind::Call(f, arguments) => self.call_expression(f, arguments, e.span),
            ExprKind::Composite(Some(ty), elements) => {
                let ty = self.type_of(ty)?;
                self.composite(&ty, elements, e.span)
            }
            ExprKind::Composite(None, _) => {
                fail_with(e.span, "this literal has no type", "write its type before the brace")
            }
            ExprKind::ArrayType(..) | ExprKind::SliceType(_) | ExprKind::StructType(_) => {
                Ok(Value::Type(self.type_of(e)?))
            }
        }
    }

    /// `a && b` and `a || b`: `b` is evaluated, and writes, only where `a` does not decide.
    fn shortcut(&mut self, op: &str, a: &Expr, b: &Expr, span: Span) -> Res<Value> {
        let left = self.condition(a)?;
        let decided = op == "||";
        match left.value() {
            Some(value) if value == decided => return Ok(self.boolean(left)),
            Some(_) => {
                let right = self.condition(b)?;
                return Ok(self.boolean(right));
            }
            None => {}
        }
        let held = self.bits(vec![left]);
        let (right, written) = self.journaled(|c| c.condition(b))?;
        let goes = if decided { !left } else { left };
        let after = self.undo(&written);
        for ((cell, before), after) in written.iter().zip(after) {
            if std::rc::Rc::strong_count(cell) > 1 {
                let merged = self.merge(goes, after, before.clone(), span)?;
                self.overwrite(cell, merged);
            }
        }
        drop(held);
        let result = if decided { self.builder.or(left, right) } else { self.builder.and(left, right) };
        Ok(self.boolean(result))
    }

    /// The literal of a condition.
    pub(super) fn condition(&mut self, e: &Expr) -> Res<Lit> {
        match self.value(e)? {
            Value::Data(ty, bits) if *ty.underlying() == Type::Bool => {
                Ok(bits.to_vec().first().copied().unwrap_or(Lit::FALSE))
            }
            other => fail_with(
                e.span,
                format!("a condition is a bool, but this is {}", other.describe(&self.program.packages)),
                "compare it with something",
            ),
        }
    }
}

/// Edits between two names, up to their length.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut last = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (y, above) in b.iter().zip(row.iter().skip(1)) {
            let cost = (last + usize::from(x != *y)).min(above + 1).min(left + 1);
            last = *above;
            left = cost;
            next.push(cost);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}
