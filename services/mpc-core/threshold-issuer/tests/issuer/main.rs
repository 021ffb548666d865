//! Issuing by several parties: key, registration, joins, and the refusal of each deviation with its culprit.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod attestation;
#[path = "../../../protocols/tests/common/corpus.rs"]
mod corpus;
mod hostile;
mod images;
mod installation;
mod joins;
mod keys;
mod malicious;
mod openers;
mod registration;
mod schedules;
