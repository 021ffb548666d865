//! How large the transfers are.

/// Bits of Δ, and number of base transfers: the computational security parameter.
pub const CORRELATION_BITS: usize = 128;
/// k: each tree has 2^k leaves. Chosen by measurement: see `docs/protocols/ecdsa.md`.
pub const FIELD_BITS: usize = 4;
/// 2^k.
pub(super) const LEAVES: usize = 1 << FIELD_BITS;
/// 128/k trees.
pub(super) const TREES: usize = CORRELATION_BITS / FIELD_BITS;
