//! Statements: declarations, assignments, branches and loops.

use std::rc::Rc;

use num_bigint::BigInt;

use super::parts::{element_of, length_of};
use super::value::Value;
use super::{Cell, Compiler, Place, Step};
use crate::circuit::Lit;
use crate::report::{Res, Span, fail, fail_with};
use crate::syntax::ast::{Binding, Block, Expr, ExprKind, Name, Stmt, StmtKind};
use crate::types::Type;

impl Compiler<'_, '_> {
    /// Evaluates statements in a scope of their own, until all paths have returned.
    pub(super) fn block(&mut self, block: &Block) -> Res<()> {
        let scope = self.frame.locals.len();
        let result = block.iter().try_for_each(|s| self.statement(s));
        self.frame.locals.truncate(scope);
        result
    }

    fn statement(&mut self, s: &Stmt) -> Res<()> {
        if self.frame.live == Lit::FALSE {
            return Ok(());
        }
        self.statements += 1;
        if self.statements > self.limits.statements {
            return fail_with(s.span, "the program takes too many steps to compile", "shorten its loops");
        }
        if self.builder.count().and > self.limits.gates {
            return fail_with(s.span, "the program has too many gates", "shorten its loops or its numbers");
        }
        if self.builder.wants_collection() {
            self.collect();
            self.check_sink(s.span)?;
        }
        match &s.kind {
            StmtKind::Const(b) => {
                for (i, (name, _)) in b.names.iter().enumerate() {
                    let value = self.nth_value(b, i, true)?;
                    self.born += 1;
                    let cell = Cell {
                        depth: self.callers.len(),
                        born: self.born,
                        declared: None,
                        constant: true,
                        value: value.into(),
                    };
                    self.declare(name, Rc::new(cell));
                }
                Ok(())
            }
            StmtKind::Var(b) => self.var(b),
            StmtKind::Type(t) => {
                let ty = self.declared_type(t)?;
                let cell = self.new_cell(None, Value::Type(ty));
                self.declare(&t.name, cell);
                Ok(())
            }
            StmtKind::Expr(e) => {
                if !matches!(e.kind, ExprKind::Call(..)) {
                    return fail_with(e.span, "this value is not used", "assign it, or remove it");
                }
                self.value(e).map(|_| ())
            }
            StmtKind::Assign(targets, op, values) => self.assign(targets, *op, values, s.span),
            StmtKind::Define(names, values) => self.define(names, values, s.span),
            StmtKind::If(init, condition, then, otherwise) => {
                let scope = self.frame.locals.len();
                if let Some(init) = init {
                    self.statement(init)?;
                }
                let result = self.branch(condition, then, otherwise.as_ref());
                self.frame.locals.truncate(scope);
                result
            }
            StmtKind::For(init, condition, post, body) => {
                let scope = self.frame.locals.len();
                let result =
                    self.for_loop(init.as_deref(), condition.as_ref(), post.as_deref(), body, s.span);
                self.frame.locals.truncate(scope);
                result
            }
            StmtKind::Range(names, new, over, body) => {
                let scope = self.frame.locals.len();
                let result = self.range_loop(names, *new, over, body, s.span);
                self.frame.locals.truncate(scope);
                result
            }
            StmtKind::Return(values) => self.return_values(values, s.span),
            StmtKind::Block(block) => self.block(block),
        }
    }

    /// The value of the n-th name of a `const` or `var`.
    pub(super) fn nth_value(&mut self, b: &Binding, n: usize, constant: bool) -> Res<Value> {
        let ty = b.ty.as_ref().map(|ty| self.type_of(ty)).transpose()?;
        let value = match (b.values.get(n), b.values.as_slice()) {
            (_, []) => None,
            (_, [one]) if b.names.len() > 1 => match self.value(one)? {
                Value::Tuple(mut list) if list.len() == b.names.len() => Some(list.swap_remove(n)),
                // One value for several names is given to each.
                Value::Tuple(list) => {
                    return fail(b.span, format!("{} values for {} names", list.len(), b.names.len()));
                }
                value => Some(value),
            },
            (Some(e), all) if all.len() == b.names.len() => Some(self.value(e)?),
            (_, all) => return fail(b.span, format!("{} values for {} names", all.len(), b.names.len())),
        };
        match (ty, value) {
            (Some(ty), Some(value)) => self.assignable(value, &ty, b.span),
            (Some(ty), None) => self.zero(&ty, b.span),
            (None, Some(value)) if constant => Ok(value),
            (None, Some(value)) => self.typed(value, b.span),
            (None, None) => fail(b.span, "a variable needs a type or a value"),
        }
    }

    fn var(&mut self, b: &Binding) -> Res<()> {
        let declared = b.ty.as_ref().map(|ty| self.type_of(ty)).transpose()?;
        let mut values = Vec::new();
        for i in 0..b.names.len() {
            values.push(self.nth_value(b, i, false)?);
        }
        for ((name, _), value) in b.names.iter().zip(values) {
            let pattern = match (&declared, &value) {
                (Some(Type::Int(_) | Type::Uint(_)), Value::Data(ty, _)) => Some(ty.clone()),
                (other, _) => other.clone(),
            };
            let cell = self.new_cell(pattern, value);
            self.declare(name, cell);
        }
        Ok(())
    }

    fn define(&mut self, names: &[(Name, Span)], values: &[Expr], span: Span) -> Res<()> {
        let values = self.arguments_for(values, names.len(), span)?;
        let scope = self.frame.locals.len();
        for ((name, place), value) in names.iter().zip(values) {
            let value = self.typed(value, *place)?;
            // With several names, those of this function that exist are assigned.
            let known = if names.len() > 1 {
                self.frame.locals.iter().take(scope).rev().find(|(n, _)| n == name).map(|(_, c)| c.clone())
            } else {
                None
            };
            match known {
                Some(cell) if !cell.constant && matches!(*cell.value.borrow(), Value::Data(..)) => {
                    self.store(&Place { cell: cell.clone(), path: Vec::new() }, value, *place)?;
                }
                _ => {
                    let cell = self.new_cell(None, value);
                    self.declare(name, cell);
                }
            }
        }
        Ok(())
    }

    fn arguments_for(&mut self, values: &[Expr], wanted: usize, span: Span) -> Res<Vec<Value>> {
        let values = self.arguments(values)?;
        if values.len() == wanted {
            return Ok(values);
        }
        fail(span, format!("{} values are given to {wanted} names", values.len()))
    }

    fn assign(&mut self, targets: &[Expr], op: Option<&str>, values: &[Expr], span: Span) -> Res<()> {
        if let (Some(op), [target], [value]) = (op, targets, values) {
            let place = self.place(target)?;
            let old = self.read(&place, target.span)?;
            let value = self.value(value)?;
            let new = self.binary(op, old, value, span)?;
            return self.store(&place, new, span);
        }
        if op.is_some() {
            return fail(span, "this assignment takes one target");
        }
        let values = self.arguments_for(values, targets.len(), span)?;
        for (target, value) in targets.iter().zip(values) {
            if matches!(&target.kind, ExprKind::Name(name) if &**name == "_") {
                continue;
            }
            let place = self.place(target)?;
            self.store(&place, value, target.span)?;
        }
        Ok(())
    }

    fn branch(&mut self, condition: &Expr, then: &Block, otherwise: Option<&Block>) -> Res<()> {
        let choice = self.condition(condition)?;
        match choice.value() {
            Some(true) => return self.block(then),
            Some(false) => return otherwise.map_or(Ok(()), |block| self.block(block)),
            None => {}
        }
        let span = condition.span;
        let before_live = self.frame.live;
        let before = self.frame.results.clone();
        // Literals that are needed after the branches are kept where the search for dead wires sees them.
        let held = self.bits(vec![choice, before_live]);
        let ((), written) = self.journaled(|c| c.block(then))?;
        let after_then = self.undo(&written);
        let then_live = std::mem::replace(&mut self.frame.live, before_live);
        let then_results = std::mem::replace(&mut self.frame.results, before);
        let held_then = self.bits(vec![then_live]);
        let ((), written_else) = match otherwise {
            Some(block) => self.journaled(|c| c.block(block))?,
            None => ((), Vec::new()),
        };
        let after_else = self.undo(&written_else);

        // The value of each variable before, and after each branch.
        let mut merged: Vec<(Rc<Cell>, Value, Value)> = Vec::new();
        for ((cell, old), new) in written.into_iter().zip(after_then) {
            merged.push((cell, new, old));
        }
        for ((cell, old), new) in written_else.into_iter().zip(after_else) {
            match merged.iter_mut().find(|(c, ..)| Rc::ptr_eq(c, &cell)) {
                Some(entry) => entry.2 = new,
                None => merged.push((cell, old, new)),
            }
        }
        for (cell, a, b) in merged {
            if Rc::strong_count(&cell) > 1 {
                let value = self.merge(choice, a, b, span)?;
                self.overwrite(&cell, value);
            }
        }
        self.frame.live = self.builder.mux(choice, then_live, self.frame.live);
        let other = std::mem::take(&mut self.frame.results);
        for (a, b) in then_results.into_iter().zip(other) {
            let value = match (a, b) {
                (Some(a), Some(b)) => Some(self.merge(choice, a, b, span)?),
                (a, b) => a.or(b),
            };
            self.frame.results.push(value);
        }
        drop((held, held_then));
        Ok(())
    }

    fn for_loop(
        &mut self,
        init: Option<&Stmt>,
        condition: Option<&Expr>,
        post: Option<&Stmt>,
        body: &Block,
        span: Span,
    ) -> Res<()> {
        if let Some(init) = init {
            self.statement(init)?;
        }
        for _ in 0..self.limits.turns {
            if let Some(condition) = condition {
                match self.condition(condition)?.value() {
                    Some(true) => {}
                    Some(false) => return Ok(()),
                    None => {
                        return fail_with(
                            condition.span,
                            "the end of this loop depends on an input",
                            "loop to a bound that is known when the program is compiled, with an if inside",
                        );
                    }
                }
            }
            self.block(body)?;
            if self.frame.live == Lit::FALSE {
                return Ok(());
            }
            if let Some(post) = post {
                self.statement(post)?;
            }
        }
        self.too_long(span)
    }

    fn too_long(&self, span: Span) -> Res<()> {
        fail_with(
            span,
            format!("this loop takes more than {} turns", self.limits.turns),
            "check its condition; every turn becomes gates of its own",
        )
    }

    fn range_loop(&mut self, names: &[Expr], new: bool, over: &Expr, body: &Block, span: Span) -> Res<()> {
        if names.len() > 2 {
            return fail(span, "a range gives an index and a value");
        }
        let mut value = self.value(over)?;
        if let Value::Untyped(n) = &value {
            value = Value::Untyped(n.clone());
        } else if matches!(&value, Value::Data(ty, _) if matches!(ty.underlying(), Type::Pointer(_))) {
            let place = self.target(&value, over.span)?;
            value = self.read(&place, over.span)?;
        }
        let (length, elements) = match (&value, self.known_integer(&value)) {
            (_, Some(n)) => (usize::try_from(n).unwrap_or(0), None),
            (Value::Data(ty, bits), _) => (length_of(ty, over.span)?, Some((element_of(ty), bits.clone()))),
            _ => {
                return fail(
                    over.span,
                    format!("{} has no elements", value.describe(&self.program.packages)),
                );
            }
        };
        if length > self.limits.turns {
            return self.too_long(span);
        }
        for i in 0..length {
            let scope = self.frame.locals.len();
            let index = self.integer(Type::Int(32), &BigInt::from(i));
            let mut given = vec![index];
            if names.len() == 2 {
                let Some((ty, bits)) = &elements else {
                    return fail(over.span, "a range over a number gives an index only");
                };
                let width = ty.size().unwrap_or(0);
                let bits = bits.range(i * width, width);
                given.push(self.data(ty.clone(), bits));
            }
            for (target, value) in names.iter().zip(given) {
                match &target.kind {
                    ExprKind::Name(name) if new => {
                        let cell = self.new_cell(None, value);
                        self.declare(name, cell);
                    }
                    ExprKind::Name(name) if &**name == "_" => {}
                    _ => {
                        let place = self.place(target)?;
                        self.store(&place, value, target.span)?;
                    }
                }
            }
            self.block(body)?;
            self.frame.locals.truncate(scope);
            if self.frame.live == Lit::FALSE {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Copies elements from one array to another; the parts may overlap. Gives the number of elements.
    pub(super) fn copy(&mut self, to: &Expr, from: &Expr, span: Span) -> Res<Value> {
        let source = self.value(from)?;
        let source = match &source {
            Value::Data(ty, _) if matches!(ty.underlying(), Type::Pointer(_)) => {
                let place = self.target(&source, from.span)?;
                self.read(&place, from.span)?
            }
            _ => source,
        };
        let (source_ty, bits) = self.expect_data(source, from.span)?;
        let mut place = self.place(to)?;
        if let Type::Pointer(_) = self.type_at(&place, to.span)?.underlying() {
            let pointer = self.read(&place, to.span)?;
            place = self.target(&pointer, to.span)?;
        }
        let ty = self.type_at(&place, to.span)?;
        let (of, from_of) = (element_of(&ty), element_of(&source_ty));
        let count = length_of(&ty, to.span)?.min(length_of(&source_ty, from.span)?);
        if of != from_of {
            return fail(
                span,
                format!("elements of type {from_of} cannot be copied to elements of type {of}"),
            );
        }
        let bits = bits.range(0, count * of.size().unwrap_or(0));
        place.path.push(Step::Range(0, count));
        let part = match ty.underlying() {
            Type::Array(of, _) => Type::Array(of.clone(), count),
            _ => Type::Str(8 * count),
        };
        let value = self.data(part, bits);
        self.store(&place, value, span)?;
        Ok(self.integer(Type::Int(32), &BigInt::from(count)))
    }
}
