//! Threshold BLS.

mod golden;
mod hostile_bytes;
mod keygen_malicious;
mod matrix;
mod sign_malicious;
mod vectors;
