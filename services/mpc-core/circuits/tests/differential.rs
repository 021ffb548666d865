//! Random programs: their circuits compute the same as an interpreter that shares nothing with the compiler.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use std::fmt::Write as _;

use circuits::circuit::Plain;
use circuits::compile::{Limits, compile};
use circuits::program::Program;
use circuits::stack::with_stack;
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};

/// The value of a variable, as the interpreter holds it: the low `width` bits count.
#[derive(Clone, Copy)]
struct Number {
    bits: u128,
    width: u32,
    signed: bool,
}

impl Number {
    fn new(bits: u128, width: u32, signed: bool) -> Number {
        Number { bits: bits & mask(width), width, signed }
    }

    /// As a whole number with its sign.
    fn whole(self) -> i128 {
        let top = self.bits >> (self.width - 1) & 1 == 1;
        if self.signed && top { self.bits as i128 - (1i128 << self.width) } else { self.bits as i128 }
    }

    fn with(self, whole: i128) -> Number {
        Number::new(whole as u128, self.width, self.signed)
    }
}

fn mask(width: u32) -> u128 {
    (1u128 << width) - 1
}

/// One random program: its text grows while its value is computed.
struct Machine {
    rng: ChaCha12Rng,
    text: String,
    variables: Vec<(String, Number)>,
}

impl Machine {
    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.rng.next_u64() % n as u64).unwrap()
    }

    /// An expression of this type: its text and its value.
    fn expression(&mut self, width: u32, signed: bool, depth: usize) -> (String, Number) {
        let leaf = depth == 0 || self.below(5) == 0;
        if leaf {
            let fitting: Vec<usize> = (0..self.variables.len())
                .filter(|i| self.variables[*i].1.width == width && self.variables[*i].1.signed == signed)
                .collect();
            if fitting.is_empty() || self.below(4) == 0 {
                let largest = if signed { mask(width) >> 1 } else { mask(width) };
                let value = (u128::from(self.rng.next_u64()) & largest) >> self.below(width as usize);
                return (value.to_string(), Number::new(value, width, signed));
            }
            let chosen = fitting[self.below(fitting.len())];
            let (name, value) = &self.variables[chosen];
            return (name.clone(), *value);
        }
        let zero = Number::new(0, width, signed);
        match self.below(16) {
            choice @ 0..=8 => {
                let (a, x) = self.expression(width, signed, depth - 1);
                let (b, y) = self.expression(width, signed, depth - 1);
                // Constants alone are folded at any size, so one side has a type of its own.
                let a = format!("{}({a})", name_of(width, signed));
                let (x_whole, y_whole) = (x.whole(), y.whole());
                let (op, value) = match choice {
                    0 => ("+", zero.with(x_whole.wrapping_add(y_whole))),
                    1 => ("-", zero.with(x_whole.wrapping_sub(y_whole))),
                    2 => ("*", zero.with(x_whole.wrapping_mul(y_whole))),
                    3 => ("&", zero.with((x.bits & y.bits) as i128)),
                    4 => ("|", zero.with((x.bits | y.bits) as i128)),
                    5 => ("^", zero.with((x.bits ^ y.bits) as i128)),
                    6 => ("&^", zero.with((x.bits & !y.bits) as i128)),
                    7 if y_whole == 0 => ("/", zero.with(-1)),
                    7 => ("/", zero.with(x_whole / y_whole)),
                    _ if y_whole == 0 => ("%", zero.with(x_whole.abs())),
                    _ => ("%", zero.with(x_whole.abs() % y_whole.abs())),
                };
                (format!("({a} {op} {b})"), value)
            }
            9 => {
                let (a, x) = self.expression(width, signed, depth - 1);
                let by = self.below(width as usize + 3);
                let a = format!("{}({a})", name_of(width, signed));
                if self.below(2) == 0 {
                    let bits = if by >= 100 { 0 } else { x.bits << by };
                    return (format!("({a} << {by})"), Number::new(bits, width, signed));
                }
                (format!("({a} >> {by})"), zero.with(x.whole() >> by.min(100)))
            }
            10 => {
                let (a, x) = self.expression(width, signed, depth - 1);
                (format!("(-{}({a}))", name_of(width, signed)), zero.with(-x.whole()))
            }
            11 => {
                let (a, x) = self.expression(width, signed, depth - 1);
                (format!("(^{}({a}))", name_of(width, signed)), Number::new(!x.bits, width, signed))
            }
            // A function that is called again and again, so that its circuit is copied.
            14 | 15 => {
                let (a, x) = self.expression(width, signed, depth - 1);
                let (b, y) = self.expression(width, signed, depth - 1);
                let (name, ty) = (if signed { "blend" } else { "mix" }, name_of(width, signed));
                let (x_whole, y_whole) = (x.whole(), y.whole());
                let product = zero.with(x_whole.wrapping_mul(y_whole)).whole();
                let other = zero.with((x.bits ^ y.bits) as i128).whole();
                let value = zero.with(product.wrapping_add(other));
                (format!("{name}({ty}({a}), {ty}({b}))"), value)
            }
            _ => {
                let (other, sign) = self.some_type();
                let (a, x) = self.expression(other, sign, depth - 1);
                let a = format!("{}({a})", name_of(other, sign));
                (format!("{}({a})", name_of(width, signed)), zero.with(x.whole()))
            }
        }
    }

    fn condition(&mut self) -> (String, bool) {
        let (width, signed) = self.some_type();
        let (a, x) = self.expression(width, signed, 2);
        let (b, y) = self.expression(width, signed, 2);
        let (op, value) = match self.below(6) {
            0 => ("<", x.whole() < y.whole()),
            1 => ("<=", x.whole() <= y.whole()),
            2 => (">", x.whole() > y.whole()),
            3 => (">=", x.whole() >= y.whole()),
            4 => ("==", x.whole() == y.whole()),
            _ => ("!=", x.whole() != y.whole()),
        };
        (format!("{}({a}) {op} {b}", name_of(width, signed)), value)
    }

    fn some_type(&mut self) -> (u32, bool) {
        let width = [1, 3, 8, 13, 16, 24, 33, 50][self.below(8)];
        (width, width > 1 && self.below(2) == 0)
    }

    /// Statements; they take effect in the interpreter only where `live`.
    fn statements(&mut self, count: usize, live: bool, indent: &str, depth: usize) {
        for _ in 0..count {
            if depth > 0 && self.below(4) == 0 {
                let (text, value) = self.condition();
                writeln!(self.text, "{indent}if {text} {{").unwrap();
                let inner = format!("{indent}\t");
                self.statements(2, live && value, &inner, depth - 1);
                writeln!(self.text, "{indent}}} else {{").unwrap();
                self.statements(1, live && !value, &inner, depth - 1);
                writeln!(self.text, "{indent}}}").unwrap();
                continue;
            }
            let target = self.below(self.variables.len());
            let Number { width, signed, .. } = self.variables[target].1;
            let (text, value) = self.expression(width, signed, 3);
            writeln!(self.text, "{indent}{} = {text}", self.variables[target].0).unwrap();
            if live {
                self.variables[target].1 = value;
            }
        }
    }
}

fn name_of(width: u32, signed: bool) -> String {
    format!("{}{width}", if signed { "int" } else { "uint" })
}

fn check(seed: u64) {
    let mut m = Machine { rng: ChaCha12Rng::seed_from_u64(seed), text: String::new(), variables: Vec::new() };
    let mut inputs = Vec::new();
    let mut parameters = Vec::new();
    for name in ["a", "b"] {
        let (width, signed) = m.some_type();
        let value = Number::new(u128::from(m.rng.next_u64()) >> m.below(20), width, signed);
        inputs.push((0..width).map(|i| value.bits >> i & 1 == 1).collect::<Vec<bool>>());
        parameters.push(format!("{name} {}", name_of(width, signed)));
        m.variables.push((name.into(), value));
    }
    let mut head = format!("package main\n\nfunc main({}) (", parameters.join(", "));
    let mut declared = String::new();
    for i in 0..4 {
        let (width, signed) = m.some_type();
        m.variables.push((format!("v{i}"), Number::new(0, width, signed)));
        writeln!(declared, "\tvar v{i} {}", name_of(width, signed)).unwrap();
    }
    m.statements(8, true, "\t", 2);
    let results: Vec<String> = m.variables.iter().map(|(_, n)| name_of(n.width, n.signed)).collect();
    let names: Vec<String> = m.variables.iter().map(|(name, _)| name.clone()).collect();
    let functions = ["mix", "blend"]
        .map(|f| (f, if f == "mix" { "uint" } else { "int" }))
        .map(|(f, t)| format!("\nfunc {f}(a, b {t}) {t} {{\n\treturn a*b + (a ^ b)\n}}\n"))
        .concat();
    write!(
        head,
        "{}) {{\n{declared}{}\treturn {}\n}}\n{functions}",
        results.join(", "),
        m.text,
        names.join(", ")
    )
    .unwrap();

    let program =
        Program::from_text("random", &head, &[]).unwrap_or_else(|e| panic!("seed {seed}\n{e}\n{head}"));
    let mut plain = Plain::new(inputs);
    let collect_after = Some(1 + usize::try_from(seed % 7).unwrap() * 100);
    let limits = Limits { collect_after, ..Limits::default() };
    if let Err(e) = compile(&program, &[vec![], vec![]], limits, &mut plain) {
        panic!("seed {seed}\n{}\n{head}", program.sources.render(&e));
    }
    let expected: Vec<bool> =
        m.variables.iter().flat_map(|(_, n)| (0..n.width).map(|i| n.bits >> i & 1 == 1)).collect();
    assert_eq!(plain.outputs, expected, "seed {seed}\n{head}");
}

#[test]
fn circuits_of_random_programs_compute_what_the_interpreter_does() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
    };
    let (first, count) = (number("SEED", 1), number("PROGRAMS", 400));
    with_stack(|| (first..first + count).for_each(check)).expect("no panic");
}

/// A number times itself takes gates of its own, up to the widths where Karatsuba's method begins.
#[test]
fn squares_of_every_width_are_products() {
    let check = |width: u32, value: u128| {
        let text = format!(
            "package main\n\nfunc main(a, b uint{width}) (uint{0}, uint{0}) {{\n\treturn wideMul(a, a), wideMul(b, b)\n}}\n",
            2 * width
        );
        let program = Program::from_text("square", &text, &[]).unwrap();
        let other = mask(width) - value;
        let bits = |number: u128, width: u32| (0..width).map(move |i| number >> i & 1 == 1);
        let mut plain = Plain::new(vec![bits(value, width).collect(), bits(other, width).collect()]);
        compile(&program, &[vec![], vec![]], Limits::default(), &mut plain).unwrap();
        let expected: Vec<bool> =
            bits(value * value, 2 * width).chain(bits(other * other, 2 * width)).collect();
        assert_eq!(plain.outputs, expected, "{value} of {width} bits");
    };
    with_stack(|| {
        (1..=5).for_each(|width| (0..=mask(width)).for_each(|value| check(width, value)));
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        for width in 6..=44 {
            for value in [0, 1, u128::from(rng.next_u64()) & mask(width)] {
                check(width, value);
            }
        }
    })
    .expect("no panic");
}
