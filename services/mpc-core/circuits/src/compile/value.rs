//! Values while a program is evaluated: constants without a type, and bits that may be constants or wires.

use std::cell::RefCell;
use std::rc::Rc;

use num_bigint::BigInt;

use crate::build::constant;
use crate::circuit::Lit;
use crate::program::Package;
use crate::syntax::ast::Function;
use crate::types::Type;

/// The bits of a value, lowest first. Copies share them; a writer that is not alone copies first.
#[derive(Clone, Debug)]
pub struct Bits(pub(super) Rc<RefCell<Vec<Lit>>>);

impl Bits {
    /// A copy of the literals.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Lit> {
        self.0.borrow().clone()
    }

    /// A copy of some of the literals; none beyond the end.
    #[must_use]
    pub fn range(&self, at: usize, length: usize) -> Vec<Lit> {
        self.0.borrow().get(at..at.saturating_add(length)).map(<[Lit]>::to_vec).unwrap_or_default()
    }

    /// Number of bits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Whether there are no bits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all bits are constants.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.0.borrow().iter().all(|b| b.value().is_some())
    }

    /// The unsigned number, if all bits are constants.
    #[must_use]
    pub fn number(&self) -> Option<BigInt> {
        number(&self.0.borrow())
    }
}

/// The unsigned number that constant bits stand for.
#[must_use]
pub fn number(bits: &[Lit]) -> Option<BigInt> {
    if bits.len() <= 128 {
        return constant(bits).map(BigInt::from);
    }
    let mut bytes = vec![0u8; bits.len().div_ceil(8)];
    for (byte, chunk) in bytes.iter_mut().zip(bits.chunks(8)) {
        *byte = u8::try_from(constant(chunk)?).ok()?;
    }
    Some(BigInt::from_bytes_le(num_bigint::Sign::Plus, &bytes))
}

/// The low `n` bits of a number in two's complement.
#[must_use]
pub fn literals(value: &BigInt, n: usize) -> Vec<Lit> {
    let bytes = value.to_signed_bytes_le();
    let fill = if value.sign() == num_bigint::Sign::Minus { 0xff } else { 0 };
    (0..n)
        .map(|i| {
            let byte = bytes.get(i / 8).copied().unwrap_or(fill);
            Lit::constant(byte >> (i % 8) & 1 == 1)
        })
        .collect()
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// An integer constant that has no type yet.
    Untyped(BigInt),
    /// Bits of a type.
    Data(Type, Bits),
    /// A type.
    Type(Type),
    /// The results of a function with several.
    Tuple(Vec<Value>),
    /// `nil`.
    Nil,
    /// A function of a package.
    Function(usize, usize, Rc<Function>),
    /// An imported package.
    Package(usize),
    /// A built-in function.
    Builtin(&'static str),
}

impl Value {
    /// For error messages.
    #[must_use]
    pub fn describe(&self, packages: &[Package]) -> String {
        match self {
            Value::Untyped(n) => format!("the constant {n}"),
            Value::Data(ty, _) => format!("a value of type {ty}"),
            Value::Type(ty) => format!("the type {ty}"),
            Value::Tuple(v) => format!("{} values", v.len()),
            Value::Nil => "nil".into(),
            Value::Function(_, _, f) => format!("the function {}", f.name),
            Value::Package(i) => format!("the package {}", packages.get(*i).map_or("", |p| &p.path)),
            Value::Builtin(name) => format!("the built-in function {name}"),
        }
    }
}
