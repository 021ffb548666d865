//! Threshold ECDSA.

mod golden;
mod hostile_bytes;
mod malicious;
mod matrix;
mod refresh;
mod replay;
mod reshare;
mod vectors;
