//! The signature schemes, one module each.

#![forbid(unsafe_code)]
