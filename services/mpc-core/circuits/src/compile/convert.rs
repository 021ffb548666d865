//! Types from expressions, conversions, and what may be assigned to what.

use std::rc::Rc;

use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive;

use super::value::{Bits, Value, literals};
use super::{Compiler, Global};
use crate::circuit::Lit;
use crate::report::{Res, Span, fail, fail_with};
use crate::syntax::ast::{Expr, ExprKind, Name};
use crate::types::{Field, MAX_BITS, NamedType, StructType, Type, UNSIZED};

impl Compiler<'_, '_> {
    /// The type that an expression names.
    pub(super) fn type_of(&mut self, e: &Expr) -> Res<Type> {
        match &e.kind {
            ExprKind::ArrayType(Some(length), of) => {
                let length = self.constant_index(length)?;
                let of = self.type_of(of)?;
                if of.settled().size().and_then(|s| s.max(1).checked_mul(length)).is_none_or(|s| s > MAX_BITS)
                {
                    return fail_with(e.span, "this array is too large", "values have at most 2^28 bits");
                }
                Ok(Type::Array(Rc::new(of), length))
            }
            ExprKind::ArrayType(None, of) | ExprKind::SliceType(of) => {
                Ok(Type::Array(Rc::new(self.type_of(of)?), UNSIZED))
            }
            ExprKind::StructType(_) => self.struct_type(None, e),
            ExprKind::Unary("*", to) => Ok(Type::Pointer(Rc::new(self.type_of(to)?))),
            _ => match self.value(e)? {
                Value::Type(ty) => Ok(ty),
                other => fail(
                    e.span,
                    format!("expected a type, but this is {}", other.describe(&self.program.packages)),
                ),
            },
        }
    }

    fn struct_type(&mut self, name: Option<(usize, Name)>, e: &Expr) -> Res<Type> {
        let ExprKind::StructType(declared) = &e.kind else {
            return self.type_of(e);
        };
        let mut fields: Vec<Field> = Vec::new();
        for p in declared {
            let ty = self.type_of(&p.ty)?;
            let field = p.name.clone().unwrap_or_else(|| "".into());
            if &*field != "_" && fields.iter().any(|f| f.name == field) {
                return fail(p.span, format!("the field {field} is declared twice"));
            }
            fields.push(Field { name: field, ty: ty.settled(), declared: ty });
        }
        let ty = Type::Struct(Rc::new(StructType { name, fields }));
        match ty.size() {
            Some(_) => Ok(ty),
            None => fail_with(e.span, "this struct is too large", "values have at most 2^28 bits"),
        }
    }

    /// Evaluates `type name T` in the present frame.
    pub(super) fn declared_type(&mut self, t: &crate::syntax::ast::TypeDecl) -> Res<Type> {
        if t.alias {
            return self.type_of(&t.ty);
        }
        let name = (self.frame.package, t.name.clone());
        if matches!(t.ty.kind, ExprKind::StructType(_)) {
            return self.struct_type(Some(name), &t.ty);
        }
        match self.type_of(&t.ty)? {
            Type::Struct(s) => {
                Ok(Type::Struct(Rc::new(StructType { name: Some(name), fields: s.fields.clone() })))
            }
            other => Ok(Type::Named(Rc::new(NamedType { name, underlying: other.underlying().clone() }))),
        }
    }

    /// A value as one of a type pattern, where the language converts without being asked: constants that fit, and
    /// open sizes that take the value's.
    pub(super) fn assignable(&mut self, value: Value, pattern: &Type, span: Span) -> Res<Value> {
        match value {
            Value::Untyped(n) => self.fitted(&n, pattern, span),
            Value::Nil => match pattern.underlying() {
                Type::Pointer(_) => Ok(self.integer(pattern.clone(), &BigInt::ZERO)),
                Type::Array(of, _) => {
                    let ty = Type::Array(of.clone(), 0);
                    Ok(self.data(ty, Vec::new()))
                }
                _ => fail(span, format!("nil is no value of type {pattern}")),
            },
            Value::Data(ty, bits) => {
                if let Some(ty) = matched(&ty, pattern) {
                    return Ok(Value::Data(ty, bits));
                }
                if let (Type::Str(n), Type::Str(m)) = (&ty, pattern)
                    && n < m
                    && bits.is_constant()
                {
                    let mut long = bits.to_vec();
                    long.resize(*m, Lit::FALSE);
                    return Ok(self.data(pattern.clone(), long));
                }
                if ty.is_integer()
                    && pattern.is_integer()
                    && let Some(n) = self.known_integer(&Value::Data(ty.clone(), bits))
                {
                    return self.fitted(&n, pattern, span);
                }
                fail_with(
                    span,
                    format!("a value of type {ty} is used where {pattern} is expected"),
                    format!("convert it: {pattern}(...)"),
                )
            }
            other => fail(
                span,
                format!(
                    "{} is used where a value of type {pattern} is expected",
                    other.describe(&self.program.packages)
                ),
            ),
        }
    }

    /// A constant as a value of an integer type.
    fn fitted(&mut self, n: &BigInt, pattern: &Type, span: Span) -> Res<Value> {
        let bits = usize::try_from(n.bits()).unwrap_or(usize::MAX);
        let (ty, fits) = match pattern.underlying() {
            Type::Int(UNSIZED) => (default_int(n), true),
            Type::Uint(UNSIZED) => (Type::Uint(if bits <= 32 { 32 } else { bits }), n.sign() != Sign::Minus),
            Type::Int(m) => {
                let smallest =
                    n.sign() == Sign::Minus && n.magnitude().trailing_zeros() == Some(n.bits() - 1);
                (pattern.clone(), bits < *m || (bits == *m && smallest))
            }
            Type::Uint(m) => (pattern.clone(), bits <= *m && n.sign() != Sign::Minus),
            _ => {
                return fail(
                    span,
                    format!("the constant {n} is used where a value of type {pattern} is expected"),
                );
            }
        };
        if !fits {
            return fail_with(
                span,
                format!("the constant {n} does not fit in {pattern}"),
                "use a wider type, or convert it to keep only the low bits",
            );
        }
        Ok(self.integer(ty, n))
    }

    /// A value with a type: constants become `int32`, or wider where they need it.
    pub(super) fn typed(&mut self, value: Value, span: Span) -> Res<Value> {
        match value {
            Value::Untyped(n) => Ok(self.integer(default_int(&n), &n)),
            Value::Nil => fail_with(span, "nil has no type here", "declare the variable with a pointer type"),
            Value::Tuple(list) => fail(span, format!("{} values stand where one is expected", list.len())),
            other => Ok(other),
        }
    }

    /// The integer, if the value is one and known.
    pub(super) fn known_integer(&self, value: &Value) -> Option<BigInt> {
        match value {
            Value::Untyped(n) => Some(n.clone()),
            Value::Data(ty, bits) => {
                let n = bits.number()?;
                match ty.underlying() {
                    Type::Uint(_) => Some(n),
                    Type::Int(m) => {
                        let negative = *m > 0 && bits.to_vec().last() == Some(&Lit::TRUE);
                        Some(if negative { n - (BigInt::from(1) << *m) } else { n })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `T(value)`.
    pub(super) fn convert(&mut self, ty: &Type, value: Value, span: Span) -> Res<Value> {
        if let Value::Untyped(n) = &value {
            return match ty.underlying() {
                Type::Int(UNSIZED) | Type::Uint(UNSIZED) => self.fitted(n, ty, span),
                Type::Int(m) | Type::Uint(m) => Ok(self.data(ty.clone(), literals(n, *m))),
                Type::Str(_) => Ok(self.data(Type::Str(8), literals(n, 8))),
                _ => fail(span, format!("the constant {n} cannot become {ty}")),
            };
        }
        let Value::Data(from, bits) = value else {
            return self.assignable(value, ty, span);
        };
        if let Some(same) = matched(from.underlying(), ty.underlying()) {
            let relabelled =
                if matches!(ty, Type::Named(_)) || ty.name().is_some() { ty.clone() } else { same };
            return Ok(Value::Data(relabelled, bits));
        }
        match (from.underlying(), ty.underlying()) {
            (Type::Int(m) | Type::Uint(m), Type::Int(n) | Type::Uint(n)) => {
                let n = if *n == UNSIZED { *m } else { *n };
                let extended = self.extend(&from, &bits, n);
                let to = match ty.underlying() {
                    Type::Int(UNSIZED) => Type::Int(n),
                    Type::Uint(UNSIZED) => Type::Uint(n),
                    _ => ty.clone(),
                };
                Ok(self.data(to, extended))
            }
            (Type::Int(_) | Type::Uint(_), Type::Str(_)) => {
                let byte = self.extend(&from, &bits, 8);
                Ok(self.data(Type::Str(8), byte))
            }
            (Type::Array(of, n), Type::Str(m)) if **of == Type::Uint(8) && (*m == UNSIZED || *m == n * 8) => {
                Ok(Value::Data(Type::Str(n * 8), bits))
            }
            (Type::Str(n), Type::Array(of, m)) if **of == Type::Uint(8) && (*m == UNSIZED || m * 8 == *n) => {
                Ok(Value::Data(Type::Array(of.clone(), n / 8), bits))
            }
            (Type::Struct(a), Type::Struct(b))
                if a.fields.len() == b.fields.len()
                    && a.fields.iter().zip(&b.fields).all(|(x, y)| x.name == y.name && x.ty == y.ty) =>
            {
                Ok(Value::Data(ty.clone(), bits))
            }
            _ => fail_with(
                span,
                format!("a value of type {from} cannot become {ty}"),
                "integers convert to integers, and strings and byte slices to each other",
            ),
        }
    }

    /// An integer's bits in `n` bits, the sign extended for signed types.
    pub(super) fn extend(&self, ty: &Type, bits: &Bits, n: usize) -> Vec<Lit> {
        let mut out = bits.to_vec();
        let fill = match ty.underlying() {
            Type::Int(_) => out.last().copied().unwrap_or(Lit::FALSE),
            _ => Lit::FALSE,
        };
        out.resize(n, fill);
        out
    }

    /// The meaning of a name of a package.
    pub(super) fn global(&mut self, package: usize, name: &str, span: Span) -> Res<super::places::Found> {
        use super::places::Found;
        use crate::program::Item;
        let key: (usize, Name) = (package, name.into());
        match self.globals.get(&key) {
            Some(Global::Done(value)) => return Ok(Found::Value(value.clone())),
            Some(Global::Variable(cell)) => return Ok(Found::Variable(cell.clone())),
            Some(Global::Evaluating) => {
                return fail_with(
                    span,
                    format!("{name} is defined by itself"),
                    "break the circle of definitions",
                );
            }
            None => {}
        }
        let Some(item) = self.program.packages.get(package).and_then(|p| p.items.get(name)) else {
            let path = self.program.packages.get(package).map_or("", |p| &p.path);
            return fail(span, format!("the package {path} has no {name}"));
        };
        if let Item::Function(file, f) = item {
            return Ok(Found::Value(Value::Function(package, *file, f.clone())));
        }
        if self.callers.len() >= self.limits.depth {
            return fail(span, "definitions refer to each other too deeply");
        }
        self.globals.insert(key.clone(), Global::Evaluating);
        let file = match item {
            Item::Const(file, ..) | Item::Var(file, ..) | Item::Type(file, _) | Item::Function(file, _) => {
                *file
            }
        };
        self.enter(package, file);
        let result = self.define_global(item);
        self.leave();
        match &result {
            Ok(Found::Value(value)) => self.globals.insert(key, Global::Done(value.clone())),
            Ok(Found::Variable(cell)) => self.globals.insert(key, Global::Variable(cell.clone())),
            Err(_) => self.globals.remove(&key),
        };
        result
    }

    fn define_global(&mut self, item: &crate::program::Item) -> Res<super::places::Found> {
        use super::places::Found;
        use crate::program::Item;
        match item {
            Item::Const(_, binding, i) => Ok(Found::Value(self.nth_value(binding, *i, true)?)),
            Item::Var(_, binding, i) => {
                let value = self.nth_value(binding, *i, false)?;
                let declared = binding.ty.as_ref().map(|ty| self.type_of(ty)).transpose()?;
                let cell = std::rc::Rc::new(super::Cell {
                    depth: 0,
                    born: 0,
                    declared,
                    constant: false,
                    value: std::cell::RefCell::new(value),
                });
                Ok(Found::Variable(cell))
            }
            Item::Type(_, t) => Ok(Found::Value(Value::Type(self.declared_type(t)?))),
            Item::Function(file, f) => {
                Ok(Found::Value(Value::Function(self.frame.package, *file, f.clone())))
            }
        }
    }
}

/// The type of an integer constant that nothing else decides.
pub(super) fn default_int(n: &BigInt) -> Type {
    let bits = n.bits().to_usize().unwrap_or(usize::MAX);
    Type::Int(match bits {
        0..=31 => 32,
        32..=63 => 64,
        more => more.saturating_add(1),
    })
}

/// The value's type under a pattern, if the pattern allows it.
pub(super) fn matched(ty: &Type, pattern: &Type) -> Option<Type> {
    match (ty, pattern) {
        (Type::Int(_), Type::Int(UNSIZED))
        | (Type::Uint(_), Type::Uint(UNSIZED))
        | (Type::Str(_), Type::Str(UNSIZED)) => Some(ty.clone()),
        (Type::Array(a, n), Type::Array(b, m)) => {
            (*m == UNSIZED || n == m).then_some(())?;
            Some(Type::Array(Rc::new(matched(a, b)?), *n))
        }
        (Type::Struct(a), Type::Struct(b)) => match (&a.name, &b.name) {
            (Some(x), Some(y)) => (x == y).then(|| ty.clone()),
            _ => (ty == pattern).then(|| ty.clone()),
        },
        (Type::Named(a), Type::Named(b)) => (a.name == b.name).then(|| ty.clone()),
        (Type::Pointer(a), Type::Pointer(b)) => Some(Type::Pointer(Rc::new(matched(a, b)?))),
        _ => (ty == pattern).then(|| ty.clone()),
    }
}
