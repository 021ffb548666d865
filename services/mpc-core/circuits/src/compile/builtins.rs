//! Built-in functions.

use std::rc::Rc;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::Compiler;
use super::parts::length_of;
use super::value::Value;
use crate::report::{Res, Span, fail, fail_with};
use crate::syntax::ast::Expr;
use crate::types::{MAX_BITS, Type, UNSIZED};

impl Compiler<'_, '_> {
    pub(super) fn builtin(&mut self, name: &str, arguments: &[Expr], span: Span) -> Res<Value> {
        match (name, arguments) {
            ("len", [of]) => {
                let ty = self.argument_type(of)?;
                let length = length_of(&ty, of.span)?;
                Ok(self.integer(Type::Int(32), &BigInt::from(length)))
            }
            ("size", [of]) => {
                let ty = self.argument_type(of)?;
                match ty.size() {
                    Some(size) => Ok(self.integer(Type::Int(32), &BigInt::from(size))),
                    None => fail(span, format!("{ty} has no size of its own")),
                }
            }
            ("copy", [to, from]) => self.copy(to, from, span),
            ("make", [ty, length]) => {
                let ty = self.type_of(ty)?;
                let length = self.constant_index(length)?;
                if length > MAX_BITS {
                    return fail_with(span, "this is too large", "values have at most 2^28 bits");
                }
                match ty {
                    Type::Int(_) => Ok(Value::Type(Type::Int(length))),
                    Type::Uint(_) => Ok(Value::Type(Type::Uint(length))),
                    Type::Str(_) => Ok(Value::Type(Type::Str(length))),
                    Type::Array(of, UNSIZED) => self.zero(&Type::Array(Rc::new(of.settled()), length), span),
                    other => fail_with(
                        span,
                        format!("make cannot make {other}"),
                        "it makes intN, uintN, stringN and []T",
                    ),
                }
            }
            ("panic", _) => {
                let mut text = Vec::new();
                for e in arguments {
                    text.push(match self.value(e)? {
                        Value::Data(Type::Str(n), bits) => {
                            let bytes = bits.number().map(|n| n.to_bytes_le().1).unwrap_or_default();
                            String::from_utf8_lossy(bytes.get(..n / 8).unwrap_or(&bytes)).into_owned()
                        }
                        value => self.known_integer(&value).map_or_else(|| "?".into(), |n| n.to_string()),
                    });
                }
                fail_with(
                    span,
                    format!("the program stops here: {}", text.join(" ")),
                    "this path must not be reached",
                )
            }
            ("floorPow2", [of]) => {
                let n = self.known(of)?;
                let floor = if n.sign() == num_bigint::Sign::Plus {
                    BigInt::from(1) << (n.bits() - 1)
                } else {
                    BigInt::ZERO
                };
                Ok(Value::Untyped(floor))
            }
            ("base10Digits", [of]) => {
                let bits = self.known(of)?.to_u32().filter(|b| *b <= 1 << 16);
                match bits {
                    Some(bits) => {
                        let digits = ((BigInt::from(1) << bits) - 1u8).to_string().len();
                        Ok(self.integer(Type::Int(32), &BigInt::from(digits)))
                    }
                    None => fail(span, "base10Digits takes a number of bits"),
                }
            }
            ("wideMul", [a, b]) => {
                let a = self.value(a)?;
                let (ta, a) = self.expect_data(a, span)?;
                let b = self.value(b)?;
                let (tb, b) = self.expect_data(b, span)?;
                let n = a.len() + b.len();
                match (ta.underlying(), tb.underlying()) {
                    (Type::Uint(_), Type::Uint(_)) => {
                        let product = self.builder.multiply(&a.to_vec(), &b.to_vec(), n);
                        Ok(self.data(Type::Uint(n), product))
                    }
                    (Type::Int(_), Type::Int(_)) => {
                        let a = self.extend(&ta, &a, n);
                        let b = self.extend(&tb, &b, n);
                        let product = self.builder.multiply(&a, &b, n);
                        Ok(self.data(Type::Int(n), product))
                    }
                    _ => fail(span, format!("wideMul takes two integers of one sign, not {ta} and {tb}")),
                }
            }
            ("intern", [of]) => self.value(of),
            ("native", [first, rest @ ..]) => {
                let Value::Data(Type::Str(_), bits) = self.value(first)? else {
                    return fail(first.span, "the first argument of native is the name of a circuit");
                };
                let name = bits.number().map(|n| String::from_utf8_lossy(&n.to_bytes_le().1).into_owned());
                let values = self.arguments(rest)?;
                self.native(&name.unwrap_or_default(), values, span)
            }
            _ => fail(span, format!("{name} does not take {} arguments", arguments.len())),
        }
    }

    fn known(&mut self, e: &Expr) -> Res<BigInt> {
        let value = self.value(e)?;
        match self.known_integer(&value) {
            Some(n) => Ok(n),
            None => fail_with(
                e.span,
                "this must be known when the program is compiled, but it depends on an input",
                "use len or size of a parameter, or a constant",
            ),
        }
    }

    /// The type of a value, through a pointer, or the type itself.
    fn argument_type(&mut self, e: &Expr) -> Res<Type> {
        let ty = match self.value(e)? {
            Value::Type(ty) => ty,
            value => self.expect_data(value, e.span)?.0,
        };
        match ty {
            Type::Pointer(_) => {
                let pointer = self.value(e)?;
                let place = self.target(&pointer, e.span)?;
                self.type_at(&place, e.span)
            }
            ty => Ok(ty),
        }
    }

    /// `native(name, arguments)`: a built-in circuit, or one in a file beside the source.
    fn native(&mut self, name: &str, arguments: Vec<Value>, span: Span) -> Res<Value> {
        let mut inputs = Vec::new();
        for value in arguments {
            inputs.push(self.expect_data(value, span)?.1.to_vec());
        }
        if name == "hamming" {
            let [a, b] = inputs.as_slice() else {
                return fail(span, "hamming takes two arguments");
            };
            let width = a.len().max(b.len());
            let mut differences = Vec::with_capacity(width);
            for i in 0..width {
                let (x, y) = (crate::build::bit(a, i), crate::build::bit(b, i));
                differences.push(self.builder.xor(x, y));
            }
            let mut count = self.builder.population(&differences);
            count.resize(width.max(count.len()), crate::circuit::Lit::FALSE);
            return Ok(self.data(Type::Uint(count.len()), count));
        }
        let source =
            self.program.sources.0.get(span.file as usize).map(|f| f.name.clone()).unwrap_or_default();
        let beside = std::path::Path::new(&source).parent().unwrap_or(std::path::Path::new("")).join(name);
        if !crate::program::native_file(name) {
            return fail_with(
                span,
                format!("there is no native circuit {name:?}"),
                "it is \"hamming\", or a file in Bristol Fashion beside the source, ending in .bristol or .txt",
            );
        }
        let text = match std::fs::read_to_string(&beside) {
            Ok(text) => text,
            Err(e) => return fail(span, format!("cannot read {}: {e}", beside.display())),
        };
        let circuit = match crate::circuit::bristol::read(&text) {
            Ok(circuit) => circuit,
            Err(e) => return fail(span, format!("{}: {e}", beside.display())),
        };
        let sizes: Vec<usize> = inputs.iter().map(Vec::len).collect();
        if sizes != circuit.inputs {
            return fail(
                span,
                format!("{name} takes inputs of {:?} bits, and {sizes:?} are given", circuit.inputs),
            );
        }
        let outputs = self.builder.embed(&circuit, &inputs.concat());
        let mut at = 0;
        let mut results = Vec::new();
        for size in &circuit.outputs {
            let bits = outputs.get(at..at + size).map(<[_]>::to_vec).unwrap_or_default();
            at += size;
            results.push(self.data(Type::Uint(*size), bits));
        }
        if results.len() == 1
            && let Some(one) = results.pop()
        {
            return Ok(one);
        }
        Ok(Value::Tuple(results))
    }
}
