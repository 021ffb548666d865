//! Two-party evaluation of circuits by authenticated garbling, against a party that deviates in any way.
//!
//! | Step | From |
//! |---|---|
//! | authenticated bits | `primitives::ot::authenticated`: SoftSpoken extension (Roy 2022) |
//! | leaky AND triples, check, half-leaky buckets | Katz, Ranellucci, Rosulek, Wang 2018 (eprint 2018/578), section 4 |
//! | half gates over authenticated masks, one bit and two blocks an AND | the same, section 5 |
//! | hash of labels and of keys: π(π(x) ⊕ i) ⊕ π(x) | Guo, Katz, Wang, Yu 2020 (eprint 2019/074), section 7.4 |
//!
//! The steps are numbered in `docs/protocols/garbling.md`, which says what is claimed, what leaks and what an abort
//! tells. The garbler's Δ is odd and the evaluator's even. A value z of a wire is never seen: both know the public bit
//! Λ = z ⊕ λ, and have shares of its mask λ with MACs under the other's Δ.
//!
//! Everything up to [`Prepared`] is independent of inputs; it is used once, by value, and wiped.

mod abort;
pub(crate) mod bits;
pub(crate) mod dabits;
pub(crate) mod digest;
mod evaluation;
mod evaluator;
#[cfg(test)]
pub(crate) mod flips;
mod garbler;
mod gates;
mod inputs;
mod pair;
mod preparation;
mod prepared;
#[cfg(test)]
mod tests;
mod triples;
#[cfg(test)]
pub(crate) mod wire;

pub use abort::Abort;
pub use dabits::DaBits;
pub use evaluation::evaluate;
pub(crate) use evaluation::evaluate_keeping;
pub use inputs::{Entry, FixedInput, PrivateInput};
pub use pair::{Pair, Role};
pub use preparation::{MAX_ANDS, expected_bytes};
pub use prepared::Prepared;
pub use triples::bucket_size;
