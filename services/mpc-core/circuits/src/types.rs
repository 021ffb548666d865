//! Types of values, and patterns of types whose sizes a use fixes.

use std::fmt;
use std::rc::Rc;

use crate::syntax::ast::Name;

/// The size of a type that is fixed where it is used: `int`, `uint`, `string` and `[]T`.
pub const UNSIZED: usize = usize::MAX;

/// Values larger than this are refused: 2^28 bits are 1 GB of wire numbers.
pub const MAX_BITS: usize = 1 << 28;

/// Bits of a pointer: it is a constant that names a place.
pub const POINTER_BITS: usize = 32;

/// A type. Sizes are bits; [`UNSIZED`] occurs only in patterns.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// `bool`, one bit.
    Bool,
    /// `intN`, two's complement.
    Int(usize),
    /// `uintN`.
    Uint(usize),
    /// `stringN`; N is a multiple of eight.
    Str(usize),
    /// `[n]T`, and `[]T` of a known length.
    Array(Rc<Type>, usize),
    /// A struct.
    Struct(Rc<StructType>),
    /// `type A B` where B is not a struct.
    Named(Rc<NamedType>),
    /// `*T`.
    Pointer(Rc<Type>),
}

/// The package index and name of a declared type.
pub type TypeName = (usize, Name);

/// A struct's name and fields.
#[derive(Debug, PartialEq)]
pub struct StructType {
    /// Its name, if declared.
    pub name: Option<TypeName>,
    /// Fields in order.
    pub fields: Vec<Field>,
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name.
    pub name: Name,
    /// The type in this value.
    pub ty: Type,
    /// The type as declared, which may leave sizes open.
    pub declared: Type,
}

/// A declared type that is not a struct.
#[derive(Debug, PartialEq)]
pub struct NamedType {
    /// Its name.
    pub name: TypeName,
    /// The type it is made of.
    pub underlying: Type,
}

impl Type {
    /// Bits of a value; `None` where the size is open or beyond [`MAX_BITS`].
    #[must_use]
    pub fn size(&self) -> Option<usize> {
        let size = match self {
            Type::Bool => 1,
            Type::Int(n) | Type::Uint(n) | Type::Str(n) => *n,
            Type::Array(_, UNSIZED) => return None,
            Type::Array(of, n) => of.size()?.checked_mul(*n)?,
            Type::Struct(s) => s.fields.iter().try_fold(0usize, |sum, f| sum.checked_add(f.ty.size()?))?,
            Type::Named(n) => n.underlying.size()?,
            Type::Pointer(_) => POINTER_BITS,
        };
        (size <= MAX_BITS).then_some(size)
    }

    /// The type behind its names.
    #[must_use]
    pub fn underlying(&self) -> &Type {
        match self {
            Type::Named(n) => n.underlying.underlying(),
            other => other,
        }
    }

    /// Whether values are integers.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        matches!(self.underlying(), Type::Int(_) | Type::Uint(_))
    }

    /// Whether a value holds a pointer.
    #[must_use]
    pub fn has_pointer(&self) -> bool {
        match self {
            Type::Pointer(_) => true,
            Type::Array(of, _) => of.has_pointer(),
            Type::Struct(s) => s.fields.iter().any(|f| f.ty.has_pointer()),
            Type::Named(n) => n.underlying.has_pointer(),
            _ => false,
        }
    }

    /// The name under which methods are declared.
    #[must_use]
    pub fn name(&self) -> Option<&TypeName> {
        match self {
            Type::Struct(s) => s.name.as_ref(),
            Type::Named(n) => Some(&n.name),
            _ => None,
        }
    }

    /// The first bit, type and declared type of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<(usize, usize, &Field)> {
        let Type::Struct(s) = self.underlying() else { return None };
        let mut at = 0usize;
        for (i, field) in s.fields.iter().enumerate() {
            if &*field.name == name {
                return Some((i, at, field));
            }
            at = at.checked_add(field.ty.size()?)?;
        }
        None
    }

    /// The type with the sizes that an unset variable has: numbers 32 bits, slices and strings empty.
    #[must_use]
    pub fn settled(&self) -> Type {
        match self {
            Type::Int(UNSIZED) => Type::Int(32),
            Type::Uint(UNSIZED) => Type::Uint(32),
            Type::Str(UNSIZED) => Type::Str(0),
            Type::Array(of, n) => Type::Array(Rc::new(of.settled()), if *n == UNSIZED { 0 } else { *n }),
            Type::Struct(s) => {
                let fields = s
                    .fields
                    .iter()
                    .map(|f| Field { ty: f.declared.settled(), ..f.clone() })
                    .collect::<Vec<_>>();
                Type::Struct(Rc::new(StructType { name: s.name.clone(), fields }))
            }
            Type::Named(n) => {
                Type::Named(Rc::new(NamedType { name: n.name.clone(), underlying: n.underlying.settled() }))
            }
            other => other.clone(),
        }
    }

    /// The built-in type of this name.
    #[must_use]
    pub fn builtin(name: &str) -> Option<Type> {
        let sized = |prefix: &str| {
            let digits = name.strip_prefix(prefix)?;
            if digits.is_empty() {
                return Some(UNSIZED);
            }
            if digits.starts_with('0') && digits != "0" || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            digits.parse::<usize>().ok().filter(|n| *n <= MAX_BITS)
        };
        match name {
            "bool" => Some(Type::Bool),
            "byte" => Some(Type::Uint(8)),
            "rune" => Some(Type::Int(32)),
            _ => sized("uint")
                .map(Type::Uint)
                .or_else(|| sized("int").map(Type::Int))
                .or_else(|| sized("string").map(Type::Str)),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sized = |f: &mut fmt::Formatter<'_>, name: &str, n: usize| match n {
            UNSIZED => f.write_str(name),
            _ => write!(f, "{name}{n}"),
        };
        match self {
            Type::Bool => f.write_str("bool"),
            Type::Int(n) => sized(f, "int", *n),
            Type::Uint(8) => f.write_str("byte"),
            Type::Uint(n) => sized(f, "uint", *n),
            Type::Str(n) => sized(f, "string", *n),
            Type::Array(of, UNSIZED) => write!(f, "[]{of}"),
            Type::Array(of, n) => write!(f, "[{n}]{of}"),
            Type::Struct(s) => f.write_str(s.name.as_ref().map_or("struct", |(_, n)| n)),
            Type::Named(n) => f.write_str(&n.name.1),
            Type::Pointer(to) => write!(f, "*{to}"),
        }
    }
}
