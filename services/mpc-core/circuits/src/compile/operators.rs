//! Unary and binary operators.

use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive, Zero};

use super::Compiler;
use super::value::{Bits, Value, literals};
use crate::build::arithmetic::shift_by;
use crate::build::constant;
use crate::circuit::Lit;
use crate::report::{Res, Span, fail, fail_with};
use crate::types::Type;

/// Constants longer than this are refused.
const MAX_CONSTANT: u64 = 1 << 20;

impl Compiler<'_, '_> {
    pub(super) fn unary(&mut self, op: &str, operand: Value, span: Span) -> Res<Value> {
        match (op, operand) {
            ("+", Value::Untyped(n)) => Ok(Value::Untyped(n)),
            ("-", Value::Untyped(n)) => Ok(Value::Untyped(-n)),
            ("^", Value::Untyped(n)) => Ok(Value::Untyped(-n - 1)),
            ("!", Value::Data(ty, bits)) if *ty.underlying() == Type::Bool => {
                let inverse = bits.to_vec().into_iter().map(|b| !b).collect();
                Ok(self.data(ty, inverse))
            }
            ("+", Value::Data(ty, bits)) if ty.is_integer() => Ok(Value::Data(ty, bits)),
            ("-", Value::Data(ty, bits)) if ty.is_integer() => {
                let negative = self.builder.negate(&bits.to_vec());
                Ok(self.data(ty, negative))
            }
            ("^", Value::Data(ty, bits)) if ty.is_integer() => {
                let inverse = bits.to_vec().into_iter().map(|b| !b).collect();
                Ok(self.data(ty, inverse))
            }
            (_, other) => {
                let described = other.describe(&self.program.packages);
                fail(span, format!("the operator {op} does not apply to {described}"))
            }
        }
    }

    pub(super) fn binary(&mut self, op: &str, a: Value, b: Value, span: Span) -> Res<Value> {
        if let ("<<" | ">>", _) = (op, ()) {
            return self.shift(op == "<<", a, b, span);
        }
        let (a, b) = self.same_type(op, a, b, span)?;
        let (ty, a, b) = match (a, b) {
            (Value::Untyped(a), Value::Untyped(b)) => return self.fold(op, &a, &b, span),
            (Value::Nil, Value::Nil) if op == "==" || op == "!=" => {
                return Ok(self.boolean(Lit::constant(op == "==")));
            }
            (Value::Data(ta, a), Value::Data(_, b)) => (ta, a, b),
            (a, _) => {
                let described = a.describe(&self.program.packages);
                return fail(span, format!("the operator {op} does not apply to {described}"));
            }
        };
        let left = a.to_vec();
        let right = b.to_vec();
        if let "==" | "!=" = op {
            let equal =
                if left.len() == right.len() { self.builder.equal(&left, &right) } else { Lit::FALSE };
            return Ok(self.boolean(if op == "==" { equal } else { !equal }));
        }
        match ty.underlying().clone() {
            Type::Int(_) | Type::Uint(_) => self.integers(op, ty, &left, &right, span),
            Type::Str(_) if op == "+" => {
                let joined = [left, right].concat();
                Ok(self.data(Type::Str(joined.len()), joined))
            }
            Type::Array(of, n) if op == "+" => {
                let more = of.size().and_then(|s| right.len().checked_div(s)).unwrap_or(0);
                let joined = [left, right].concat();
                Ok(self.data(Type::Array(of, n.saturating_add(more)), joined))
            }
            Type::Str(_) if matches!(op, "<" | "<=" | ">" | ">=") => {
                // The first byte weighs most.
                let order = |v: &[Lit]| -> Vec<Lit> { v.chunks(8).rev().flatten().copied().collect() };
                let width = left.len().max(right.len());
                let pad = |mut v: Vec<Lit>| {
                    v.resize(width, Lit::FALSE);
                    v
                };
                let (x, y) = (order(&pad(left)), order(&pad(right)));
                let result = self.compare(op, false, &x, &y);
                Ok(self.boolean(result))
            }
            Type::Bool if matches!(op, "&" | "|" | "^") => self.integers(op, ty, &left, &right, span),
            _ => fail(span, format!("the operator {op} does not apply to values of type {ty}")),
        }
    }

    /// Gives two operands one type, where one is a constant that fits the other's.
    fn same_type(&mut self, op: &str, a: Value, b: Value, span: Span) -> Res<(Value, Value)> {
        match (&a, &b) {
            (Value::Untyped(_) | Value::Nil, Value::Data(ty, _)) => {
                let ty = ty.clone();
                Ok((self.assignable(a, &ty, span)?, b))
            }
            (Value::Data(ty, _), Value::Untyped(_) | Value::Nil) => {
                let ty = ty.clone();
                let b = self.assignable(b, &ty, span)?;
                Ok((a, b))
            }
            (Value::Data(ta, va), Value::Data(tb, vb)) => {
                let (ta, tb) = (ta.clone(), tb.clone());
                let joins = match (ta.underlying(), tb.underlying()) {
                    (Type::Str(_), Type::Str(_)) => true,
                    (Type::Array(x, _), Type::Array(y, _)) => x == y,
                    _ => false,
                };
                if ta == tb || (joins && matches!(op, "+" | "==" | "!=" | "<" | "<=" | ">" | ">=")) {
                    return Ok((a, b));
                }
                if ta.is_integer() && tb.is_integer() {
                    let (ca, cb) = (va.is_constant(), vb.is_constant());
                    let wider = ta.size() >= tb.size();
                    if cb && (!ca || wider) {
                        return Ok((a, self.assignable(b, &ta, span)?));
                    }
                    if ca {
                        return Ok((self.assignable(a, &tb, span)?, b));
                    }
                }
                fail_with(
                    span,
                    format!("the operator {op} has operands of different types, {ta} and {tb}"),
                    format!("convert one of them: {ta}(...) or {tb}(...)"),
                )
            }
            _ => Ok((a, b)),
        }
    }

    fn integers(&mut self, op: &str, ty: Type, a: &[Lit], b: &[Lit], span: Span) -> Res<Value> {
        let signed = matches!(ty.underlying(), Type::Int(_));
        let n = a.len();
        if let (Some(x), Some(y)) = (constant(a), constant(b))
            && n <= 128
            && let Some(result) = small(op, x, y, n, signed)
        {
            return Ok(match result {
                Small::Number(x) => self.data(ty, literals(&BigInt::from(x), n)),
                Small::Truth(t) => self.boolean(Lit::constant(t)),
            });
        }
        let builder = &mut self.builder;
        let bits = match op {
            "+" => builder.add(a, b, Lit::FALSE, n),
            "-" => builder.sub(a, b, n),
            "*" => builder.multiply(a, b, n),
            "/" if signed => builder.divide_signed(a, b).0,
            "/" => builder.divide(a, b).0,
            "%" if signed => builder.divide_signed(a, b).1,
            "%" => builder.divide(a, b).1,
            "&" => a.iter().zip(b).map(|(x, y)| builder.and(*x, *y)).collect(),
            "|" => a.iter().zip(b).map(|(x, y)| builder.or(*x, *y)).collect(),
            "^" => a.iter().zip(b).map(|(x, y)| builder.xor(*x, *y)).collect(),
            "&^" => a.iter().zip(b).map(|(x, y)| builder.and(*x, !*y)).collect(),
            "<" | "<=" | ">" | ">=" => {
                let result = self.compare(op, signed, a, b);
                return Ok(self.boolean(result));
            }
            _ => return fail(span, format!("the operator {op} does not apply to values of type {ty}")),
        };
        Ok(self.data(ty, bits))
    }

    fn compare(&mut self, op: &str, signed: bool, a: &[Lit], b: &[Lit]) -> Lit {
        let (a, b) = if matches!(op, ">" | "<=") { (b, a) } else { (a, b) };
        let less = if signed { self.builder.less_signed(a, b) } else { self.builder.less(a, b) };
        if matches!(op, "<=" | ">=") { !less } else { less }
    }

    fn shift(&mut self, left: bool, a: Value, count: Value, span: Span) -> Res<Value> {
        let known = self.known_integer(&count);
        if known.as_ref().is_some_and(|n| n.sign() == Sign::Minus) {
            return fail(span, "a shift count is negative");
        }
        match (a, known, count) {
            (Value::Untyped(n), Some(by), _) => {
                let by = by.to_u64().filter(|by| !left || n.bits().saturating_add(*by) <= MAX_CONSTANT);
                match by {
                    Some(by) if left => Ok(Value::Untyped(n << by)),
                    Some(by) => Ok(Value::Untyped(n >> by)),
                    None if !left => Ok(Value::Untyped(BigInt::ZERO)),
                    None => fail(span, "this constant is too large"),
                }
            }
            (Value::Data(ty, bits), known, count) if ty.is_integer() => {
                let a = bits.to_vec();
                let fill = match ty.underlying() {
                    Type::Int(_) if !left => a.last().copied().unwrap_or(Lit::FALSE),
                    _ => Lit::FALSE,
                };
                let shifted = match (known, count) {
                    (Some(by), _) => {
                        shift_by(&a, by.to_usize().unwrap_or(usize::MAX).min(a.len()), left, fill)
                    }
                    (None, Value::Data(Type::Uint(_), by)) => {
                        self.builder.shift(&a, &by.to_vec(), left, fill)
                    }
                    _ => {
                        return fail_with(
                            span,
                            "this shift count is not known when the program is compiled",
                            "convert it to an unsigned type, so that every value of it is a count",
                        );
                    }
                };
                Ok(self.data(ty, shifted))
            }
            (a, ..) => {
                let described = a.describe(&self.program.packages);
                fail_with(span, format!("{described} cannot be shifted"), "give it a type first")
            }
        }
    }

    /// An operator on constants without a type.
    fn fold(&mut self, op: &str, a: &BigInt, b: &BigInt, span: Span) -> Res<Value> {
        let truth = match op {
            "==" => Some(a == b),
            "!=" => Some(a != b),
            "<" => Some(a < b),
            "<=" => Some(a <= b),
            ">" => Some(a > b),
            ">=" => Some(a >= b),
            _ => None,
        };
        if let Some(truth) = truth {
            return Ok(self.boolean(Lit::constant(truth)));
        }
        if a.bits().saturating_add(b.bits()) > MAX_CONSTANT {
            return fail(span, "this constant is too large");
        }
        if matches!(op, "/" | "%") && b.is_zero() {
            return fail(span, "a constant is divided by zero");
        }
        Ok(Value::Untyped(match op {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            "/" => a / b,
            "%" => a.abs() % b.abs(),
            "&" => a & b,
            "|" => a | b,
            "^" => a ^ b,
            "&^" => a & !b.clone(),
            _ => return fail(span, format!("the operator {op} does not apply to constants")),
        }))
    }

    /// The bits of a value that is data.
    pub(super) fn expect_data(&mut self, value: Value, span: Span) -> Res<(Type, Bits)> {
        match self.typed(value, span)? {
            Value::Data(ty, bits) => Ok((ty, bits)),
            other => fail(
                span,
                format!("a value is expected, but this is {}", other.describe(&self.program.packages)),
            ),
        }
    }
}

enum Small {
    Number(u128),
    Truth(bool),
}

/// An operator on constants of at most 128 bits, without the way through gates. Division is left to the gates, so that
/// there is one rule for it.
fn small(op: &str, x: u128, y: u128, n: usize, signed: bool) -> Option<Small> {
    let mask = 1u128.checked_shl(u32::try_from(n).ok()?).map_or(u128::MAX, |top| top.wrapping_sub(1));
    // Signed numbers are in order once their top bits are flipped.
    let flip = if signed { mask ^ (mask >> 1) } else { 0 };
    Some(match op {
        "+" => Small::Number(x.wrapping_add(y) & mask),
        "-" => Small::Number(x.wrapping_sub(y) & mask),
        "*" => Small::Number(x.wrapping_mul(y) & mask),
        "<" => Small::Truth((x ^ flip) < (y ^ flip)),
        "<=" => Small::Truth((x ^ flip) <= (y ^ flip)),
        ">" => Small::Truth((x ^ flip) > (y ^ flip)),
        ">=" => Small::Truth((x ^ flip) >= (y ^ flip)),
        _ => return None,
    })
}
