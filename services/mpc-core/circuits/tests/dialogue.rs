//! A long message costs a dialogue as many bytes as it has, and no more for its frames.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use circuits::dialogue::{Dialogue, DialogueLine, DialogueRng, FRAME_BYTES, Turn};
use circuits::line::Line;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// The system's allocator, with the sum of all that was asked for.
struct Counted;

static ASKED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;

#[test]
fn the_frames_of_a_message_take_as_many_bytes_as_it_has() {
    const FRAMES: usize = 40;
    let rng = &mut ChaCha20Rng::seed_from_u64(1);
    let protocol = async move |mut line: DialogueLine, _: DialogueRng| {
        line.say(&vec![7; FRAMES * (FRAME_BYTES - 1)])?;
        Ok(line.block::<1>().await?)
    };
    let (mut dialogue, first) = Dialogue::start(protocol, rng).unwrap();
    let mut last = first;
    let before = ASKED.load(Ordering::Relaxed);
    for _ in 1..FRAMES {
        assert!(
            matches!(&last, Turn::Say(frame) if frame.len() == FRAME_BYTES && frame.starts_with(&[1, 7]))
        );
        last = dialogue.hear(&[2], rng).unwrap();
    }
    assert!(matches!(&last, Turn::Say(frame) if frame.len() == FRAME_BYTES && frame.starts_with(&[0, 7])));
    let asked = ASKED.load(Ordering::Relaxed) - before;
    assert!(asked < (FRAMES + 1) * FRAME_BYTES, "{asked} bytes for {FRAMES} frames");
    assert!(matches!(dialogue.hear(&[0, 9], rng), Ok(Turn::Done([9], None))));
}
