//! Variables and their parts: reading, writing, pointers, and the merging of branches.

use std::rc::Rc;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::parts::{element_of, length_of, pattern_at, range_type, retype, walk};
use super::value::{Bits, Value};
use super::{Cell, Compiler, Journal, Place, Step};
use crate::circuit::Lit;
use crate::report::{Res, Span, fail, fail_with};
use crate::syntax::ast::{Expr, ExprKind};
use crate::types::Type;

/// A part of some bits that has not been copied out yet.
pub(super) struct View {
    pub bits: Bits,
    pub at: usize,
    pub ty: Type,
}

/// Variables with their values before or after a branch.
pub(super) type Written = Vec<(Rc<Cell>, Value)>;

/// The value of an expression before it is copied.
pub(super) enum Viewed {
    View(View),
    Other(Value),
}

impl Compiler<'_, '_> {
    /// The place that an expression names, for writing or for its address.
    pub(super) fn place(&mut self, e: &Expr) -> Res<Place> {
        match &e.kind {
            ExprKind::Name(name) => match self.find(name, e.span)? {
                Found::Variable(cell) if cell.constant => {
                    fail_with(e.span, format!("{name} is a constant"), "declare it with var to write it")
                }
                Found::Variable(cell) => Ok(Place { cell, path: Vec::new() }),
                Found::Value(value) => {
                    let described = value.describe(&self.program.packages);
                    fail(e.span, format!("{name} is {described}, which cannot be written"))
                }
            },
            ExprKind::Unary("*", to) => {
                let pointer = self.value(to)?;
                self.target(&pointer, to.span)
            }
            ExprKind::Select(of, name) => {
                if let Some(package) = self.package_of(of) {
                    return match self.global(package, name, e.span)? {
                        Found::Variable(cell) => Ok(Place { cell, path: Vec::new() }),
                        Found::Value(_) => fail(e.span, format!("{name} is not a variable")),
                    };
                }
                let mut place = self.place_through(of)?;
                let ty = self.type_at(&place, of.span)?;
                match ty.field(name) {
                    Some((index, _, _)) => {
                        place.path.push(Step::Field(index));
                        Ok(place)
                    }
                    None => no_field(&ty, name, e.span),
                }
            }
            ExprKind::Index(of, index) => {
                let mut place = self.place_through(of)?;
                let ty = self.type_at(&place, of.span)?;
                let index = self.constant_index(index)?;
                let length = length_of(&ty, of.span)?;
                if index >= length {
                    return fail(e.span, format!("index {index} is beyond the end of {ty}"));
                }
                place.path.push(Step::Element(index));
                Ok(place)
            }
            ExprKind::Slice(of, from, to) => {
                let mut place = self.place_through(of)?;
                let ty = self.type_at(&place, of.span)?;
                let (from, to) = self.slice_bounds(&ty, from.as_deref(), to.as_deref(), e.span)?;
                place.path.push(Step::Range(from, to));
                Ok(place)
            }
            _ => {
                let value = self.value(e)?;
                if let Value::Data(Type::Pointer(_), _) = &value {
                    return self.target(&value, e.span);
                }
                fail_with(e.span, "this is not a variable", "assign it to a variable first")
            }
        }
    }

    /// As [`Self::place`], and through the pointer where the place holds one.
    fn place_through(&mut self, e: &Expr) -> Res<Place> {
        let place = self.place(e)?;
        if let Type::Pointer(_) = self.type_at(&place, e.span)?.underlying() {
            let pointer = self.read(&place, e.span)?;
            return self.target(&pointer, e.span);
        }
        Ok(place)
    }

    /// The place that a pointer names.
    pub(super) fn target(&mut self, pointer: &Value, span: Span) -> Res<Place> {
        let Value::Data(ty, bits) = pointer else {
            let described = pointer.describe(&self.program.packages);
            return fail(span, format!("{described} is not a pointer"));
        };
        let Type::Pointer(_) = ty.underlying() else {
            return fail(span, format!("a value of type {ty} is not a pointer"));
        };
        match bits.number().and_then(|n| n.to_usize()) {
            None => fail_with(
                span,
                "which place this pointer names depends on an input",
                "choose between the values, not between pointers to them",
            ),
            Some(0) => fail_with(span, "this pointer is nil", "point it at a variable first"),
            Some(n) => match self.pointers.get(n - 1) {
                Some(place) => Ok(place.clone()),
                None => fail(span, "this pointer names a variable of a call that has ended"),
            },
        }
    }

    /// A pointer to a place.
    pub(super) fn pointer(&mut self, place: Place, span: Span) -> Res<Value> {
        let ty = self.type_at(&place, span)?;
        let known =
            self.pointers.iter().rposition(|p| Rc::ptr_eq(&p.cell, &place.cell) && p.path == place.path);
        let index = known.unwrap_or_else(|| {
            self.pointers.push(place);
            self.pointers.len() - 1
        });
        Ok(self.integer(Type::Pointer(Rc::new(ty)), &BigInt::from(index + 1)))
    }

    /// The type of the value at a place.
    pub(super) fn type_at(&self, place: &Place, span: Span) -> Res<Type> {
        match &*place.cell.value.borrow() {
            Value::Data(ty, _) => match walk(ty, &place.path) {
                Some((_, ty)) => Ok(ty),
                None => fail(span, "this place has changed its shape since its address was taken"),
            },
            other => fail(span, format!("{} has no parts", other.describe(&self.program.packages))),
        }
    }

    pub(super) fn read(&mut self, place: &Place, span: Span) -> Res<Value> {
        let viewed = self.view_place(place, span)?;
        Ok(self.copy_out(viewed))
    }

    fn view_place(&mut self, place: &Place, span: Span) -> Res<Viewed> {
        let value = place.cell.value.borrow().clone();
        match value {
            Value::Data(whole, bits) => match walk(&whole, &place.path) {
                Some((at, ty)) => Ok(Viewed::View(View { bits, at, ty })),
                None => fail(span, "this place has changed its shape since its address was taken"),
            },
            other => Ok(Viewed::Other(other)),
        }
    }

    /// Copies a view's bits, unless it is of the whole value.
    pub(super) fn copy_out(&mut self, viewed: Viewed) -> Value {
        match viewed {
            Viewed::Other(value) => value,
            Viewed::View(view) => {
                let size = view.ty.size().unwrap_or(0);
                if view.at == 0 && size == view.bits.len() {
                    return Value::Data(view.ty, view.bits);
                }
                let bits = view.bits.range(view.at, size);
                self.data(view.ty, bits)
            }
        }
    }

    /// An expression's value without copying what an index or a field picks from.
    pub(super) fn view(&mut self, e: &Expr) -> Res<Viewed> {
        match &e.kind {
            ExprKind::Name(name) => {
                let value = match self.find(name, e.span)? {
                    Found::Variable(cell) => cell.value.borrow().clone(),
                    Found::Value(value) => value,
                };
                Ok(viewed(value))
            }
            ExprKind::Unary("*", to) => {
                let pointer = self.value(to)?;
                if let Value::Type(ty) = pointer {
                    return Ok(Viewed::Other(Value::Type(Type::Pointer(Rc::new(ty)))));
                }
                let place = self.target(&pointer, to.span)?;
                self.view_place(&place, e.span)
            }
            ExprKind::Select(of, name) => {
                if let Some(package) = self.package_of(of) {
                    let value = match self.global(package, name, e.span)? {
                        Found::Variable(cell) => cell.value.borrow().clone(),
                        Found::Value(value) => value,
                    };
                    return Ok(viewed(value));
                }
                let view = self.view_through(of)?;
                match view.ty.field(name).map(|(_, at, field)| (at, field.ty.clone())) {
                    Some((at, ty)) => Ok(Viewed::View(View { bits: view.bits, at: view.at + at, ty })),
                    None => no_field(&view.ty, name, e.span),
                }
            }
            ExprKind::Index(of, index) => {
                let view = self.view_through(of)?;
                let index_value = self.value(index)?;
                let length = length_of(&view.ty, of.span)?;
                let of = element_of(&view.ty);
                let width = of.size().unwrap_or(0);
                if let Some(i) = self.known_index(&index_value, index.span)? {
                    if i >= length {
                        return fail(index.span, format!("index {i} is beyond the end of {}", view.ty));
                    }
                    return Ok(Viewed::View(View { bits: view.bits, at: view.at + i * width, ty: of }));
                }
                let Value::Data(_, index_bits) = index_value else {
                    return fail(index.span, "an index is an integer");
                };
                let elements = view.bits.range(view.at, length * width);
                let found = self.builder.lookup(&elements, width, &index_bits.to_vec());
                Ok(viewed(self.data(of, found)))
            }
            ExprKind::Slice(of, from, to) => {
                let view = self.view_through(of)?;
                let (from, to) = self.slice_bounds(&view.ty, from.as_deref(), to.as_deref(), e.span)?;
                let (step, ty) = range_type(&view.ty, from, to);
                Ok(Viewed::View(View { bits: view.bits, at: view.at + from * step, ty }))
            }
            _ => self.value(e).map(viewed),
        }
    }

    /// A view of data, through the pointer where the expression gives one.
    fn view_through(&mut self, e: &Expr) -> Res<View> {
        let mut seen = self.view(e)?;
        if let Viewed::View(view) = &seen
            && matches!(view.ty.underlying(), Type::Pointer(_))
        {
            let pointer = self.copy_out(seen);
            let place = self.target(&pointer, e.span)?;
            seen = self.view_place(&place, e.span)?;
        }
        match seen {
            Viewed::View(view) => Ok(view),
            Viewed::Other(other) => {
                fail(e.span, format!("{} has no parts", other.describe(&self.program.packages)))
            }
        }
    }

    fn slice_bounds(
        &mut self,
        ty: &Type,
        from: Option<&Expr>,
        to: Option<&Expr>,
        span: Span,
    ) -> Res<(usize, usize)> {
        let length = length_of(ty, span)?;
        let from = from.map_or(Ok(0), |e| self.constant_index(e))?;
        let to = to.map_or(Ok(length), |e| self.constant_index(e))?;
        if from > to || to > length {
            return fail(span, format!("the range {from}:{to} does not lie in {ty}"));
        }
        Ok((from, to))
    }

    pub(super) fn constant_index(&mut self, e: &Expr) -> Res<usize> {
        let value = self.value(e)?;
        match self.known_index(&value, e.span)? {
            Some(index) => Ok(index),
            None => fail_with(
                e.span,
                "this must be known when the program is compiled, but it depends on an input",
                "go through all elements in a loop and choose with an if; only an index that is read may be secret",
            ),
        }
    }

    fn known_index(&self, value: &Value, span: Span) -> Res<Option<usize>> {
        let Some(number) = self.known_integer(value) else {
            return match value {
                Value::Data(ty, _) if ty.is_integer() => Ok(None),
                other => fail(span, format!("{} is not an integer", other.describe(&self.program.packages))),
            };
        };
        match number.to_usize() {
            Some(index) => Ok(Some(index)),
            None => fail(span, format!("{number} is not a position")),
        }
    }

    /// Writes a value to a place: on the paths only that have not returned.
    pub(super) fn store(&mut self, place: &Place, value: Value, span: Span) -> Res<()> {
        let cell = place.cell.clone();
        if !self.may_write(cell.depth) {
            return fail(span, "a function that is recorded writes outside its own variables");
        }
        let old = cell.value.borrow().clone();
        let Value::Data(whole, old_bits) = &old else {
            return fail(span, "this variable does not hold a value that can be written");
        };
        let Some((at, current)) = walk(whole, &place.path) else {
            return fail(span, "this place has changed its shape since its address was taken");
        };
        let pattern = pattern_at(&cell, whole, &place.path).unwrap_or_else(|| current.clone());
        let Value::Data(ty, bits) = self.assignable(value, &pattern, span)? else {
            return fail(span, "only values can be stored in variables");
        };
        let size = current.size().unwrap_or(0);
        let live = self.live_for(cell.depth);
        if live != Lit::TRUE && ty != current {
            return fail_with(
                span,
                format!("this would change {current} to {ty} on some paths only"),
                "return later, or give both paths the same length",
            );
        }
        if ty.has_pointer() && cell.depth < self.callers.len() {
            self.escaped = true;
        }
        self.record(&cell, &old);
        let new = bits.to_vec();
        let new =
            if live == Lit::TRUE { new } else { self.builder.select(live, &new, &old_bits.range(at, size)) };
        if ty == current {
            drop(old);
            self.splice(&cell, at, &new);
            return Ok(());
        }
        let Some(ty_whole) = retype(whole, &place.path, &ty) else {
            return fail(span, format!("a value of type {ty} does not fit here"));
        };
        let mut all = old_bits.range(0, at);
        all.extend(new);
        all.extend(old_bits.range(at + size, old_bits.len().saturating_sub(at + size)));
        let value = self.data(ty_whole, all);
        cell.value.replace(value);
        Ok(())
    }

    /// Overwrites bits of a variable, in place where nobody shares them.
    fn splice(&mut self, cell: &Rc<Cell>, at: usize, new: &[Lit]) {
        let mut value = cell.value.borrow_mut();
        let Value::Data(_, bits) = &mut *value else { return };
        if Rc::strong_count(&bits.0) > 1 {
            let copy = bits.to_vec();
            *bits = self.bits(copy);
        }
        for (slot, lit) in bits.0.borrow_mut().iter_mut().skip(at).zip(new) {
            *slot = *lit;
        }
    }

    /// Whether the path on which a variable of this depth would be written has not returned.
    fn live_for(&mut self, depth: usize) -> Lit {
        let mut live = if self.callers.len() > depth { self.frame.live } else { Lit::TRUE };
        let waiting: Vec<Lit> = self.callers.iter().skip(depth + 1).map(|f| f.live).collect();
        for other in waiting {
            live = self.builder.and(live, other);
        }
        live
    }

    /// Notes a variable's value before its first change in a branch.
    fn record(&mut self, cell: &Rc<Cell>, old: &Value) {
        if let Some(journal) = self.journals.last_mut()
            && cell.born <= journal.born
            && !journal.written.iter().any(|(c, _)| Rc::ptr_eq(c, cell))
        {
            journal.written.push((cell.clone(), old.clone()));
        }
    }

    /// Evaluates something while noting the older variables that it writes.
    pub(super) fn journaled<T>(&mut self, body: impl FnOnce(&mut Self) -> Res<T>) -> Res<(T, Written)> {
        self.journals.push(Journal { born: self.born, written: Vec::new() });
        let result = body(self);
        let written = self.journals.pop().map(|j| j.written).unwrap_or_default();
        Ok((result?, written))
    }

    /// Gives variables their earlier values back, and returns those that they had.
    pub(super) fn undo(&mut self, written: &[(Rc<Cell>, Value)]) -> Vec<Value> {
        written.iter().map(|(cell, old)| cell.value.replace(old.clone())).collect()
    }

    /// Sets a variable that a branch wrote, outside the rules of assignment.
    pub(super) fn overwrite(&mut self, cell: &Rc<Cell>, value: Value) {
        let old = cell.value.borrow().clone();
        self.record(cell, &old);
        cell.value.replace(value);
    }

    /// `a` where `choice` is 1, otherwise `b`.
    pub(super) fn merge(&mut self, choice: Lit, a: Value, b: Value, span: Span) -> Res<Value> {
        match (a, b) {
            (Value::Data(ta, a), Value::Data(tb, b)) => {
                if ta == tb {
                    if Rc::ptr_eq(&a.0, &b.0) {
                        return Ok(Value::Data(ta, a));
                    }
                    let chosen = self.builder.select(choice, &a.to_vec(), &b.to_vec());
                    return Ok(self.data(ta, chosen));
                }
                let wide = match (&ta, &tb) {
                    (Type::Int(x), Type::Int(y)) => Type::Int(*x.max(y)),
                    (Type::Uint(x), Type::Uint(y)) => Type::Uint(*x.max(y)),
                    _ => {
                        return fail_with(
                            span,
                            format!("a value is {ta} on one path and {tb} on another"),
                            "give it the same length on both; an input decides which path is taken",
                        );
                    }
                };
                let a = self.extend(&ta, &a, wide.size().unwrap_or(0));
                let b = self.extend(&tb, &b, wide.size().unwrap_or(0));
                let chosen = self.builder.select(choice, &a, &b);
                Ok(self.data(wide, chosen))
            }
            (Value::Untyped(a), Value::Untyped(b)) if a == b => Ok(Value::Untyped(a)),
            (Value::Type(a), Value::Type(b)) if a == b => Ok(Value::Type(a)),
            _ => fail(
                span,
                "a variable is a different kind of thing on two paths, and an input decides between them",
            ),
        }
    }
}

/// The meaning of a name.
pub(super) enum Found {
    Variable(Rc<Cell>),
    Value(Value),
}

fn viewed(value: Value) -> Viewed {
    match value {
        Value::Data(ty, bits) => Viewed::View(View { bits, at: 0, ty }),
        other => Viewed::Other(other),
    }
}

fn no_field<T>(ty: &Type, name: &str, span: Span) -> Res<T> {
    let advice = match ty.underlying() {
        Type::Struct(s) => {
            format!("its fields are {}", s.fields.iter().map(|f| &*f.name).collect::<Vec<_>>().join(", "))
        }
        _ => "only structs have fields".to_string(),
    };
    fail_with(span, format!("{ty} has no field {name}"), advice)
}
