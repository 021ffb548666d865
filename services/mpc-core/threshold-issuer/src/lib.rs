//! Membership of a group issued by t of n parties.

#![forbid(unsafe_code)]

pub mod multiply;
pub mod tags;
