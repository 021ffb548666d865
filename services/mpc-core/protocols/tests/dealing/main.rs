//! Key generation, refresh and reshare: the same tests for every scheme that deals its shares by the common protocol.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod colluders;
#[path = "../common/mod.rs"]
mod common;
mod complaints;
mod deviations;
mod harness;
mod hedging;
mod renewal;

/// Each test for the schemes named.
macro_rules! for_schemes {
    ($($scheme:ident as $module:ident),+ : $names:tt) => {
        $(crate::for_schemes!(@one $scheme as $module : $names);)+
    };
    (@one $scheme:ident as $module:ident : [$($name:ident),+ $(,)?]) => {
        mod $module {
            $(#[test] fn $name() { super::$name::<crate::harness::$scheme>(); })+
        }
    };
}
pub(crate) use for_schemes;
