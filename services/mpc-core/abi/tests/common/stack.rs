//! How much of the stack a call uses, and so whether all of it is wiped.

use std::sync::atomic::Ordering;

use coterie_mpc::WIPED_STACK_BYTES;

use crate::common::LOWEST_CALLER;

/// Stack between a session and what looks for its secrets, so that the search does not write over them.
const APART_BYTES: usize = 16 * 1024;

/// Stack of the library's entry points above the part that they wipe, at most.
const FRAME_BYTES: usize = 4 * 1024;

/// More than any call may use, in bytes.
const PAINTED_BYTES: usize = 2 * WIPED_STACK_BYTES;
const PAINT: u8 = 0xc5;

/// How much of the stack `run` used, in bytes, and how much of it until it called the library.
fn depth(run: impl FnOnce()) -> (usize, usize) {
    #[inline(never)]
    fn paint() {
        std::hint::black_box(&mut [PAINT; PAINTED_BYTES + 4096]);
    }
    let here = (&raw const run).addr();
    LOWEST_CALLER.store(here, Ordering::Relaxed);
    paint();
    run();
    let painted = |below: &usize| {
        // SAFETY: in the part of this thread's stack that `paint` wrote; nothing is in it now.
        unsafe { std::ptr::with_exposed_provenance::<u8>(here - below).read_volatile() == PAINT }
    };
    let used = PAINTED_BYTES - (0..PAINTED_BYTES).rev().take_while(painted).count();
    (used, here - LOWEST_CALLER.load(Ordering::Relaxed))
}

/// Deeper in the stack than what looks at it afterwards.
#[inline(never)]
pub fn apart<T>(run: impl FnOnce() -> T) -> T {
    std::hint::black_box(&mut [0u8; APART_BYTES]);
    run()
}

/// Runs calls, none of which may use more of the stack than is wiped.
pub fn on_wiped_stack<T>(when: &str, run: impl FnOnce() -> T) -> T {
    let mut ran = None;
    let (used, before) = depth(|| apart(|| ran = Some(run())));
    let wiped = before + FRAME_BYTES + WIPED_STACK_BYTES;
    assert!(used < wiped, "{when} used {used} bytes of stack, of which {wiped} are wiped");
    ran.unwrap()
}
