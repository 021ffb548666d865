//! Calls of functions and methods.

use std::rc::Rc;

use super::value::Value;
use super::{Compiler, Place, called};
use crate::circuit::Lit;
use crate::report::{Res, Span, fail, fail_with};
use crate::syntax::ast::{Expr, ExprKind, Function};
use crate::types::Type;

impl Compiler<'_, '_> {
    /// `f(arguments)`: a conversion, a built-in function, a method or a function.
    pub(super) fn call_expression(&mut self, f: &Expr, arguments: &[Expr], span: Span) -> Res<Value> {
        if let ExprKind::Select(of, name) = &f.kind
            && self.package_of(of).is_none()
            && let Some(result) = self.method(of, name, arguments, span)?
        {
            return Ok(result);
        }
        let callee = self.value(f)?;
        match callee {
            Value::Type(ty) => match arguments {
                [one] => {
                    let value = self.value(one)?;
                    self.convert(&ty, value, span)
                }
                _ => fail(span, format!("a conversion to {ty} takes one value")),
            },
            Value::Builtin(name) => self.builtin(name, arguments, span),
            Value::Function(package, file, function) => {
                let values = self.arguments(arguments)?;
                self.call(package, file, &function, None, values, span)
            }
            other => fail(f.span, format!("{} cannot be called", other.describe(&self.program.packages))),
        }
    }

    /// Values of arguments; one call with several results gives several.
    pub(super) fn arguments(&mut self, arguments: &[Expr]) -> Res<Vec<Value>> {
        let mut values = Vec::with_capacity(arguments.len());
        for e in arguments {
            match self.value(e)? {
                Value::Tuple(list) if arguments.len() == 1 => values = list,
                Value::Tuple(list) => {
                    return fail(e.span, format!("{} values stand where one is expected", list.len()));
                }
                value => values.push(value),
            }
        }
        Ok(values)
    }

    /// Calls a method, if the expression's type has it.
    fn method(&mut self, of: &Expr, name: &str, arguments: &[Expr], span: Span) -> Res<Option<Value>> {
        let place = self.place(of).ok();
        let (mut place, mut value) = match place {
            Some(place) => (Some(place), None),
            None => (None, Some(self.value(of)?)),
        };
        let mut ty = match (&place, &value) {
            (Some(place), _) => self.type_at(place, of.span)?,
            (_, Some(Value::Data(ty, _))) => ty.clone(),
            _ => return Ok(None),
        };
        if let Type::Pointer(to) = ty.clone() {
            if self.find_method(&to, name).is_none() {
                return Ok(None);
            }
            let pointer = match (&place, value.take()) {
                (Some(place), _) => self.read(place, of.span)?,
                (None, Some(value)) => value,
                (None, None) => return Ok(None),
            };
            place = Some(self.target(&pointer, of.span)?);
            ty = (*to).clone();
        }
        let Some((package, file, function)) = self.find_method(&ty, name) else { return Ok(None) };
        let by_pointer =
            function.receiver.as_ref().is_some_and(|r| matches!(r.ty.kind, ExprKind::Unary("*", _)));
        let receiver = match (by_pointer, place, value) {
            (true, Some(place), _) => self.pointer(place, of.span)?,
            (true, None, Some(value)) => {
                let cell = self.new_cell(None, value);
                self.pointer(Place { cell, path: Vec::new() }, of.span)?
            }
            (false, Some(place), _) => self.read(&place, of.span)?,
            (_, None, Some(value)) => value,
            (_, None, None) => return Ok(None),
        };
        let values = self.arguments(arguments)?;
        self.call(package, file, &function, Some(receiver), values, span).map(Some)
    }

    fn find_method(&self, ty: &Type, name: &str) -> Option<(usize, usize, Rc<Function>)> {
        let (package, type_name) = ty.name()?;
        let (file, f) =
            self.program.packages.get(*package)?.methods.get(&(type_name.clone(), name.into()))?;
        Some((*package, *file, f.clone()))
    }

    /// Calls a function with its arguments' values.
    pub(super) fn call(
        &mut self,
        package: usize,
        file: usize,
        function: &Rc<Function>,
        receiver: Option<Value>,
        arguments: Vec<Value>,
        span: Span,
    ) -> Res<Value> {
        if self.callers.len() >= self.limits.depth {
            return fail_with(
                span,
                format!("calls are nested more than {} deep", self.limits.depth),
                "a recursion ends only on a condition that is known when the program is compiled",
            );
        }
        let expected = function.parameters.len();
        if arguments.len() != expected {
            return fail_with(
                span,
                format!("{} takes {expected} arguments, and {} are given", function.name, arguments.len()),
                "give one argument for each parameter",
            );
        }
        let values: Vec<Value> = receiver.iter().chain(&arguments).cloned().collect();
        if let Some(results) = self.replayed(package, file, function, &values, receiver.is_some(), span) {
            return Ok(results);
        }
        drop(values);
        let pointers = self.pointers.len();
        self.enter(package, file);
        let result = self.run_body(function, receiver, arguments, span);
        let frame = self.leave();
        result.map_err(|e| called(e, &function.name, span))?;
        let mut results = Vec::new();
        for (i, value) in frame.results.into_iter().enumerate() {
            match value {
                Some(value) => results.push(value),
                None => {
                    return fail(
                        function.span,
                        format!("result {} of {} is never set", i + 1, function.name),
                    );
                }
            }
        }
        // Places in variables of this call are forgotten, unless something still points there.
        if !self.escaped && !results.iter().any(|v| matches!(v, Value::Data(ty, _) if ty.has_pointer())) {
            self.pointers.truncate(pointers);
        }
        Ok(one_or_tuple(results))
    }

    pub(super) fn run_body(
        &mut self,
        f: &Rc<Function>,
        receiver: Option<Value>,
        arguments: Vec<Value>,
        span: Span,
    ) -> Res<()> {
        for (p, value) in f.receiver.iter().zip(receiver).chain(f.parameters.iter().zip(arguments)) {
            let pattern = self.type_of(&p.ty)?;
            let value = self.assignable(value, &pattern, span)?;
            // A slice or string parameter may later hold another length; a number keeps its size.
            let declared = match (&pattern, &value) {
                (Type::Int(_) | Type::Uint(_), Value::Data(ty, _)) => ty.clone(),
                _ => pattern,
            };
            let cell = self.new_cell(Some(declared), value);
            if let Some(name) = &p.name {
                self.declare(name, cell);
            }
        }
        for p in &f.results {
            let pattern = self.type_of(&p.ty)?;
            if let Some(name) = &p.name {
                let zero = self.zero(&pattern, p.span)?;
                let cell = self.new_cell(Some(pattern.clone()), zero);
                self.declare(name, cell.clone());
                self.frame.named.push(cell);
            }
            self.frame.result_types.push(pattern);
            self.frame.results.push(None);
        }
        self.block(&f.body)?;
        if self.frame.live == Lit::FALSE || f.results.is_empty() {
            return Ok(());
        }
        if !self.frame.named.is_empty() {
            return self.return_values(&[], f.span);
        }
        fail_with(
            f.span,
            format!("{} can end without a return", f.name),
            "return a value on every path; where an input decides, also on the path that cannot be taken",
        )
    }

    /// `return values`.
    pub(super) fn return_values(&mut self, values: &[Expr], span: Span) -> Res<()> {
        let expected = self.frame.result_types.len();
        let given = if values.is_empty() && expected > 0 {
            if self.frame.named.len() != expected {
                return fail(span, format!("{expected} values are expected here, and none is returned"));
            }
            self.frame.named.iter().map(|cell| cell.value.borrow().clone()).collect()
        } else {
            self.arguments(values)?
        };
        if given.len() != expected {
            return fail(
                span,
                format!("{expected} values are expected here, and {} are returned", given.len()),
            );
        }
        for (i, value) in given.into_iter().enumerate() {
            let Some(pattern) = self.frame.result_types.get(i).cloned() else { continue };
            let value = self.assignable(value, &pattern, span)?;
            let old = self.frame.results.get_mut(i).and_then(Option::take);
            let merged = match old {
                Some(old) => self.merge(self.frame.live, value, old, span)?,
                None => value,
            };
            if let Some(slot) = self.frame.results.get_mut(i) {
                *slot = Some(merged);
            }
        }
        self.frame.live = Lit::FALSE;
        Ok(())
    }
}

/// The value of a call with these results.
pub(super) fn one_or_tuple(mut results: Vec<Value>) -> Value {
    match results.pop() {
        Some(one) if results.is_empty() => one,
        Some(last) => {
            results.push(last);
            Value::Tuple(results)
        }
        None => Value::Tuple(results),
    }
}
