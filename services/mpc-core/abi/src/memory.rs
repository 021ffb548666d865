//! Memory that held secrets and is given back: the heap, block by block, and the stack, after every call.
//!
//! [`engine::Secret`] wipes what is known to be secret. This wipes the rest: buffers that a library freed, moved values,
//! locals of the arithmetic. What is left are registers.

use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;
use std::alloc::System;

/// Bytes of stack that are wiped after a call. None goes deeper: `tests/wiping.rs` measures it.
pub const WIPED_STACK_BYTES: usize = 128 * 1024;

#[global_allocator]
static HEAP: Wiping = Wiping;

/// The system's allocator; every block is wiped before it goes back.
struct Wiping;

// SAFETY: blocks are the system's. A block that is given back is writable over the size of its layout, by the contract of
// `dealloc`. `realloc` is the provided one, which allocates, copies and gives the old block back.
unsafe impl GlobalAlloc for Wiping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract. The compiler cannot leave the writing out, as the barrier may read.
        unsafe {
            block.write_bytes(0, layout.size());
            System.dealloc(black_box(block), layout);
        }
    }
}

/// Runs `call`, and wipes the stack that it used.
pub(crate) fn on_wiped_stack<T>(call: impl FnOnce() -> T) -> T {
    let result = in_own_frame(call);
    wipe_stack();
    result
}

/// Never part of the caller's frame, which is not wiped.
#[inline(never)]
fn in_own_frame<T>(call: impl FnOnce() -> T) -> T {
    call()
}

#[inline(never)]
fn wipe_stack() {
    black_box(&mut [0u8; WIPED_STACK_BYTES]);
}
