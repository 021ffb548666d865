//! Key generation, refresh and reshare: the same tests for every scheme that deals its shares by the common protocol.

mod colluders;
mod complaints;
mod deviations;
pub(crate) mod harness;
mod hedging;
mod renewal;

/// Each test for the schemes named.
macro_rules! for_schemes {
    ($($scheme:ident as $module:ident),+ : $names:tt) => {
        $(crate::dealing::for_schemes!(@one $scheme as $module : $names);)+
    };
    (@one $scheme:ident as $module:ident : [$($name:ident),+ $(,)?]) => {
        mod $module {
            $(#[test] fn $name() { super::$name::<crate::dealing::harness::$scheme>(); })+
        }
    };
}
pub(crate) use for_schemes;
