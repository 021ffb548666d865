//! Memory that held secrets and is given back: the heap, block by block, and the stack, after every call.
//!
//! [`engine::Secret`] wipes what is known to be secret. This wipes the rest: buffers that a library freed, moved
//! values, locals of the arithmetic. Only registers are left.

use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};
use std::alloc::System;

use rustix::mm::{Advice, madvise, mlock};
use rustix::param::page_size;
use rustix::process::{DumpableBehavior, Resource, Rlimit, dumpable_behavior, getrlimit};
use rustix::process::{set_dumpable_behavior, setrlimit};

/// Bytes of stack that are wiped after a call. None goes deeper: `tests/wiping.rs` measures it.
pub const WIPED_STACK_BYTES: usize = 192 * 1024;

#[global_allocator]
static HEAP: Wiping = Wiping;

/// The system's allocator; every block is wiped before it goes back.
struct Wiping;

// SAFETY: blocks are the system's. A block that is given back is writable over the size of its layout, by the contract
// of `dealloc`. `realloc` is the provided one, which allocates, copies and gives the old block back.
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

/// Other processes of the user cannot read this one's memory, and it leaves no core dump: `PR_SET_DUMPABLE` is 0.
pub const MPC_PROTECTED_UNREADABLE: i32 = 1;
/// The greatest size of a core dump is 0 and cannot be raised: `RLIMIT_CORE`.
pub const MPC_PROTECTED_NO_CORE: i32 = 2;
/// Every data key is locked in memory, so that none reaches a swap device, and kept out of core dumps.
pub const MPC_PROTECTED_LOCKED: i32 = 4;

/// Whether some key could not be locked: `RLIMIT_MEMLOCK` is too small.
static UNLOCKED: AtomicBool = AtomicBool::new(false);

/// Protects the whole process as far as the system lets us, for ever.
pub(crate) fn protect() {
    // A failure is seen in `protections`.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

/// Which protections hold.
pub(crate) fn protections() -> i32 {
    let unreadable = matches!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
    let no_core = getrlimit(Resource::Core).maximum == Some(0);
    let locked = !UNLOCKED.load(Ordering::Relaxed);
    let bits = [
        (unreadable, MPC_PROTECTED_UNREADABLE),
        (no_core, MPC_PROTECTED_NO_CORE),
        (locked, MPC_PROTECTED_LOCKED),
    ];
    bits.iter().filter(|(holds, _)| *holds).map(|(_, bit)| bit).sum()
}

/// Locks the pages of a key that lives long. They stay locked: another key may be in them.
pub(crate) fn lock<const N: usize>(key: &[u8; N]) {
    let page = page_size();
    let start = key.as_ptr().addr() / page * page;
    let length = key.as_ptr().addr() + N - start;
    let pages = core::ptr::with_exposed_provenance_mut::<core::ffi::c_void>(start);
    // SAFETY: neither call changes what is in the pages, which hold `key`.
    let done = unsafe {
        mlock(pages, length)
            .and_then(|()| madvise(pages, length.next_multiple_of(page), Advice::LinuxDontDump))
    };
    if done.is_err() {
        UNLOCKED.store(true, Ordering::Relaxed);
    }
}
