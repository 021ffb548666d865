//! Parts of values: where they lie, and which types they have.

use std::rc::Rc;

use super::{Cell, Step};
use crate::report::{Res, Span, fail};
use crate::types::{Field, NamedType, StructType, Type, UNSIZED};

/// Number of elements of an array, slice or string.
pub(super) fn length_of(ty: &Type, span: Span) -> Res<usize> {
    match ty.underlying() {
        Type::Array(_, n) => Ok(*n),
        Type::Str(n) => Ok(n / 8),
        _ => fail(span, format!("{ty} has no elements")),
    }
}

/// Type of the elements; a byte for others than arrays.
pub(super) fn element_of(ty: &Type) -> Type {
    match ty.underlying() {
        Type::Array(of, _) => (**of).clone(),
        _ => Type::Uint(8),
    }
}

/// Bits of an element, and the type of a range of them.
pub(super) fn range_type(ty: &Type, from: usize, to: usize) -> (usize, Type) {
    match ty.underlying() {
        Type::Array(of, _) => (of.size().unwrap_or(0), Type::Array(of.clone(), to - from)),
        _ => (8, Type::Str(8 * (to - from))),
    }
}

/// The first bit and type of a part.
pub(super) fn walk(ty: &Type, path: &[Step]) -> Option<(usize, Type)> {
    let mut at = 0;
    let mut ty = ty.clone();
    for step in path {
        let next = match (step, ty.underlying()) {
            (Step::Field(i), Type::Struct(s)) => {
                at += s.fields.iter().take(*i).filter_map(|f| f.ty.size()).sum::<usize>();
                s.fields.get(*i)?.ty.clone()
            }
            (Step::Element(i), Type::Array(..) | Type::Str(_)) => {
                let of = element_of(&ty);
                if *i >= length_of(&ty, Span::default()).ok()? {
                    return None;
                }
                at += i * of.size()?;
                of
            }
            (Step::Range(from, to), Type::Array(..) | Type::Str(_)) => {
                if *to > length_of(&ty, Span::default()).ok()? {
                    return None;
                }
                let (step, ty) = range_type(&ty, *from, *to);
                at += from * step;
                ty
            }
            _ => return None,
        };
        ty = next;
    }
    Some((at, ty))
}

/// The declared type of a place; `None` where only the present type is known.
pub(super) fn pattern_at(cell: &Cell, whole: &Type, path: &[Step]) -> Option<Type> {
    match path.split_last() {
        None => match (&cell.declared, whole) {
            (Some(declared), _) => Some(declared.clone()),
            // A variable that := made takes slices and strings of any length.
            (None, Type::Array(of, _)) => Some(Type::Array(of.clone(), UNSIZED)),
            (None, Type::Str(_)) => Some(Type::Str(UNSIZED)),
            (None, _) => None,
        },
        Some((Step::Field(i), rest)) => match walk(whole, rest)?.1.underlying() {
            Type::Struct(s) => s.fields.get(*i).map(|f| f.declared.clone()),
            _ => None,
        },
        Some(_) => None,
    }
}

/// The whole's type after a part has become `new`.
pub(super) fn retype(whole: &Type, path: &[Step], new: &Type) -> Option<Type> {
    let Some((first, rest)) = path.split_first() else {
        return Some(new.clone());
    };
    match (first, whole) {
        (_, Type::Named(n)) => Some(Type::Named(Rc::new(NamedType {
            name: n.name.clone(),
            underlying: retype(&n.underlying, path, new)?,
        }))),
        (Step::Field(i), Type::Struct(s)) => {
            let mut fields: Vec<Field> = s.fields.clone();
            let field = fields.get_mut(*i)?;
            field.ty = retype(&field.ty, rest, new)?;
            Some(Type::Struct(Rc::new(StructType { name: s.name.clone(), fields })))
        }
        _ => None,
    }
}
