//! Measures the core alone.

fn main() {}
