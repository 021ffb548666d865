//! Composite literals and zero values.

use std::rc::Rc;

use super::Compiler;
use super::value::Value;
use crate::circuit::Lit;
use crate::report::{Res, Span, fail, fail_with};
use crate::syntax::ast::{Element, Expr, ExprKind};
use crate::types::{Field, MAX_BITS, NamedType, StructType, Type, UNSIZED};

impl Compiler<'_, '_> {
    /// The value of an unset variable: all bits 0.
    pub(super) fn zero(&mut self, ty: &Type, span: Span) -> Res<Value> {
        let ty = ty.settled();
        match ty.size() {
            Some(size) => Ok(self.data(ty, vec![Lit::FALSE; size])),
            None => fail_with(span, format!("{ty} is too large"), "values have at most 2^28 bits"),
        }
    }

    /// `T{...}`.
    pub(super) fn composite(&mut self, ty: &Type, elements: &[Element], span: Span) -> Res<Value> {
        match ty {
            Type::Named(named) => {
                let value = self.composite(&named.underlying, elements, span)?;
                let Value::Data(underlying, bits) = value else { return Ok(value) };
                let ty = Type::Named(Rc::new(NamedType { name: named.name.clone(), underlying }));
                Ok(Value::Data(ty, bits))
            }
            Type::Array(of, n) => self.array_literal(of, *n, elements, span),
            Type::Struct(s) => self.struct_literal(s, elements, span),
            other => fail(span, format!("{other} has no elements to list")),
        }
    }

    fn element(&mut self, e: &Expr, pattern: &Type) -> Res<Value> {
        let value = match &e.kind {
            ExprKind::Composite(None, elements) => self.composite(pattern, elements, e.span)?,
            _ => self.value(e)?,
        };
        self.assignable(value, pattern, e.span)
    }

    fn array_literal(&mut self, of: &Rc<Type>, n: usize, elements: &[Element], span: Span) -> Res<Value> {
        let mut given: Vec<(usize, Type, super::Bits)> = Vec::new();
        let mut next = 0usize;
        let mut length = 0;
        for (key, e) in elements {
            if let Some(key) = key {
                next = self.constant_index(key)?;
            }
            if n != UNSIZED && next >= n {
                return fail(e.span, format!("this literal has more elements than [{n}]{of}"));
            }
            let Value::Data(ty, bits) = self.element(e, of)? else {
                return fail(e.span, "an element is a value");
            };
            given.push((next, ty, bits));
            next = next.saturating_add(1);
            length = length.max(next);
        }
        let n = if n == UNSIZED { length } else { n };
        // Elements of an open size share the size of the widest.
        let mut ty = given.first().map_or_else(|| of.settled(), |(_, ty, _)| ty.clone());
        for (_, other, _) in &given {
            if ty == *other {
                continue;
            }
            ty = match (&ty, other) {
                (Type::Int(a), Type::Int(b)) => Type::Int(*a.max(b)),
                (Type::Uint(a), Type::Uint(b)) => Type::Uint(*a.max(b)),
                (a, b) => {
                    return fail_with(
                        span,
                        format!("the elements have different types, {a} and {b}"),
                        "all elements of an array have one length",
                    );
                }
            };
        }
        let width = ty.size().unwrap_or(0);
        let Some(size) = width.checked_mul(n).filter(|s| *s <= MAX_BITS) else {
            return fail_with(span, "this literal is too large", "values have at most 2^28 bits");
        };
        let mut all = vec![Lit::FALSE; size];
        for (i, own, bits) in given {
            let bits = self.extend(&own, &bits, width);
            for (slot, lit) in all.iter_mut().skip(i * width).zip(bits) {
                *slot = lit;
            }
        }
        Ok(self.data(Type::Array(Rc::new(ty), n), all))
    }

    fn struct_literal(&mut self, s: &Rc<StructType>, elements: &[Element], span: Span) -> Res<Value> {
        let mut values: Vec<Option<Value>> = vec![None; s.fields.len()];
        let keyed = elements.iter().any(|(key, _)| key.is_some());
        if !keyed && elements.len() > s.fields.len() {
            return fail(
                span,
                format!("this literal has {} values for {} fields", elements.len(), s.fields.len()),
            );
        }
        for (i, (key, e)) in elements.iter().enumerate() {
            let index = match key.as_ref().map(|k| &k.kind) {
                None if keyed => return fail(e.span, "a literal names all its fields or none"),
                None => i,
                Some(ExprKind::Name(name)) => match s.fields.iter().position(|f| f.name == *name) {
                    Some(index) => index,
                    None => return fail(e.span, format!("the struct has no field {name}")),
                },
                Some(_) => return fail(e.span, "the key of a struct's literal is a field's name"),
            };
            let Some(field) = s.fields.get(index) else { continue };
            let value = self.element(e, &field.declared)?;
            if let Some(slot) = values.get_mut(index)
                && slot.replace(value).is_some()
            {
                return fail(e.span, format!("the field {} is given twice", field.name));
            }
        }
        let mut fields = Vec::new();
        let mut all = Vec::new();
        for (field, value) in s.fields.iter().zip(values) {
            let value = match value {
                Some(value) => value,
                None => self.zero(&field.declared, span)?,
            };
            let Value::Data(ty, bits) = value else { continue };
            all.extend(bits.to_vec());
            fields.push(Field { ty, ..field.clone() });
        }
        Ok(self.data(Type::Struct(Rc::new(StructType { name: s.name.clone(), fields })), all))
    }
}
