//! Values as text: inputs on the command line, and the `@Test` lines above `main`.

use num_bigint::{BigInt, Sign};

use crate::circuit::Lit;
use crate::compile::value::literals;
use crate::compile::{Port, Sizes};
use crate::types::{Type, UNSIZED};

/// How numbers are to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notation {
    /// Numbers without a prefix are hexadecimal.
    pub hex: bool,
    /// The first byte that is written is the lowest.
    pub first_is_lowest: bool,
}

/// One written value: its number, and its size where the type leaves it open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The number.
    pub number: BigInt,
    /// Bits that the notation takes.
    pub bits: usize,
}

/// One `@Test` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestLine {
    /// The line as written.
    pub text: String,
    /// For each party the values of its fields.
    pub inputs: Vec<Vec<Written>>,
    /// Values of the flattened results.
    pub outputs: Vec<Written>,
}

/// Reads the test lines of a comment. Other annotations are ignored.
///
/// # Errors
/// A test line that cannot be read.
pub fn tests(comment: &[String]) -> Result<Vec<TestLine>, String> {
    let mut notation = Notation::default();
    let lines: Vec<&str> = comment.iter().map(|l| l.trim()).collect();
    for line in &lines {
        match *line {
            "@Hex" => notation.hex = true,
            "@LSB" => notation.first_is_lowest = true,
            _ => {}
        }
    }
    let mut out = Vec::new();
    for line in lines {
        let Some(rest) = line.strip_prefix("@Test").filter(|r| r.starts_with([' ', '\t'])) else { continue };
        let Some((inputs, outputs)) = rest.split_once('=') else {
            return Err(format!("the test line {line:?} has no ="));
        };
        let fields =
            |text: &str| text.split(',').map(|f| number(f, notation)).collect::<Result<Vec<_>, String>>();
        let inputs = inputs.split_whitespace().map(fields).collect::<Result<Vec<_>, String>>()?;
        let outputs = outputs.split_whitespace().map(fields).collect::<Result<Vec<_>, String>>()?.concat();
        out.push(TestLine { text: line.to_string(), inputs, outputs });
    }
    Ok(out)
}

/// Reads one value: a decimal, `0x`, `0o`, `0b`, `NxHH` for N times the bytes HH, `true`, `false`, or `_` for nothing.
///
/// # Errors
/// Text that is none of these.
pub fn number(text: &str, notation: Notation) -> Result<Written, String> {
    let wrong = || {
        format!("{text:?} is not a value: write a decimal, 0x, 0o or 0b and digits, NxHH, true, false or _")
    };
    match text {
        "_" => return Ok(Written { number: BigInt::ZERO, bits: 0 }),
        "true" => return Ok(Written { number: 1.into(), bits: 1 }),
        "false" => return Ok(Written { number: BigInt::ZERO, bits: 1 }),
        _ => {}
    }
    if let Some((count, digits)) = text.split_once(['x', 'X'])
        && count.bytes().all(|b| b.is_ascii_digit())
    {
        let times = match count {
            "0" => 1,
            _ => count
                .parse::<usize>()
                .ok()
                .filter(|n| n.saturating_mul(digits.len()) <= 1 << 24)
                .ok_or_else(wrong)?,
        };
        if times == 1 && digits.is_empty() {
            return Ok(Written { number: BigInt::ZERO, bits: 0 });
        }
        return hex(&digits.repeat(times), notation).ok_or_else(wrong);
    }
    let base = |digits: &str, radix: u32, each: usize| {
        let number = BigInt::parse_bytes(digits.as_bytes(), radix).filter(|n| n.sign() != Sign::Minus)?;
        Some(Written { number, bits: each * digits.len() })
    };
    if let Some(digits) = text.strip_prefix("0b") {
        return base(digits, 2, 1).ok_or_else(wrong);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return base(digits, 8, 3).ok_or_else(wrong);
    }
    if notation.hex && !text.starts_with('-') {
        return hex(text, notation).ok_or_else(wrong);
    }
    if text.len() > 1 << 16 {
        return Err("a decimal number has at most 65,536 digits".into());
    }
    let number = BigInt::parse_bytes(text.as_bytes(), 10).ok_or_else(wrong)?;
    let bits = usize::try_from(number.bits()).unwrap_or(0) + usize::from(number.sign() == Sign::Minus);
    Ok(Written { number, bits })
}

fn hex(digits: &str, notation: Notation) -> Option<Written> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let padded = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_string() };
    let magnitude = BigInt::parse_bytes(padded.as_bytes(), 16)?;
    let mut bytes = magnitude.to_bytes_be().1;
    let missing = (padded.len() / 2).saturating_sub(bytes.len());
    bytes.splice(0..0, std::iter::repeat_n(0, missing));
    let number = if notation.first_is_lowest {
        BigInt::from_bytes_le(Sign::Plus, &bytes)
    } else {
        BigInt::from_bytes_be(Sign::Plus, &bytes)
    };
    Some(Written { number, bits: 4 * digits.len() })
}

/// The types of the single values in a type, structs taken apart.
#[must_use]
pub fn leaves(ty: &Type) -> Vec<Type> {
    match ty {
        Type::Struct(s) => s.fields.iter().flat_map(|f| leaves(&f.ty)).collect(),
        Type::Named(n) => leaves(&n.underlying),
        other => vec![other.clone()],
    }
}

/// The sizes that written inputs give to a party's open fields.
#[must_use]
pub fn sizes(written: &[Written]) -> Sizes {
    written.iter().map(|w| w.bits).collect()
}

/// The bits of a party's input of this type.
///
/// # Errors
/// A wrong number of values, or one that does not fit its field.
pub fn bits(port: &Port, written: &[Written]) -> Result<Vec<bool>, String> {
    let leaves = leaves(&port.ty);
    if leaves.len() != written.len() {
        return Err(format!(
            "the input {} has {} values, and {} are given",
            port.name,
            leaves.len(),
            written.len()
        ));
    }
    let mut out = Vec::new();
    for (ty, value) in leaves.iter().zip(written) {
        out.extend(leaf(ty, value)?);
    }
    Ok(out)
}

/// The bits of one value of this type.
///
/// # Errors
/// A number that does not fit.
pub fn leaf(ty: &Type, value: &Written) -> Result<Vec<bool>, String> {
    let size = ty.size().filter(|s| *s != UNSIZED).ok_or(format!("the size of {ty} is not known"))?;
    let bits = usize::try_from(value.number.bits()).unwrap_or(usize::MAX);
    let smallest = || value.number.magnitude().trailing_zeros() == Some(value.number.bits() - 1);
    let fits = match value.number.sign() {
        Sign::Minus => bits < size || (bits == size && smallest()),
        _ => bits <= size,
    };
    if !fits {
        return Err(format!("{} does not fit in {ty}", value.number));
    }
    Ok(literals(&value.number, size).into_iter().map(|l| l == Lit::TRUE).collect())
}

/// The number that bits stand for, as unsigned.
#[must_use]
pub fn unsigned(bits: &[bool]) -> BigInt {
    let mut bytes = vec![0u8; bits.len().div_ceil(8)];
    for (byte, chunk) in bytes.iter_mut().zip(bits.chunks(8)) {
        *byte = chunk.iter().rev().fold(0, |b, bit| b << 1 | u8::from(*bit));
    }
    BigInt::from_bytes_le(Sign::Plus, &bytes)
}

/// A result as text: integers in decimal, truth as a word, byte arrays and strings as their bytes in hexadecimal.
#[must_use]
pub fn show(ty: &Type, bits: &[bool]) -> String {
    match ty.underlying() {
        Type::Bool => bits.first().copied().unwrap_or(false).to_string(),
        Type::Int(n) if bits.last().copied().unwrap_or(false) => {
            (unsigned(bits) - (BigInt::from(1) << *n)).to_string()
        }
        Type::Array(of, _) if **of == Type::Uint(8) => bytes(bits),
        Type::Str(_) => bytes(bits),
        Type::Array(of, _) => {
            let width = of.size().unwrap_or(1).max(1);
            let parts: Vec<String> = bits.chunks(width).map(|c| show(of, c)).collect();
            format!("[{}]", parts.join(" "))
        }
        Type::Struct(s) => {
            let mut at = 0;
            let mut parts = Vec::new();
            for f in &s.fields {
                let size = f.ty.size().unwrap_or(0);
                parts.push(format!("{}: {}", f.name, show(&f.ty, bits.get(at..at + size).unwrap_or(&[]))));
                at += size;
            }
            format!("{{{}}}", parts.join(", "))
        }
        _ => unsigned(bits).to_string(),
    }
}

fn bytes(bits: &[bool]) -> String {
    bits.chunks(8)
        .map(|c| format!("{:02x}", c.iter().rev().fold(0u8, |b, bit| b << 1 | u8::from(*bit))))
        .collect()
}
