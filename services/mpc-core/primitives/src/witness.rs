//! For tests: remembers, masked, every value that was ever in a [`crate::Secret`], and finds it in memory.
//!
//! Off until [`watch`] is called.

#![allow(unsafe_code, reason = "looks at raw memory, which is its purpose")]

use core::panic::Location;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of the shortest piece of a secret that is looked for.
const PIECE: usize = 16;
/// Secrets are remembered with each byte changed by this, so that the memory of them is no copy.
const MASK: u8 = 0xa7;
/// A piece with fewer different bytes than this may be anywhere by chance: zeros, small numbers, pointers.
const DISTINCT: usize = 10;

static WATCHING: AtomicBool = AtomicBool::new(false);
static PIECES: Mutex<Pieces> = Mutex::new(Pieces(None));

/// Pieces, masked, with where the value was wrapped.
struct Pieces(Option<HashMap<u128, &'static Location<'static>>>);

fn pieces() -> MutexGuard<'static, Pieces> {
    PIECES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, values are remembered.
pub fn watch() {
    WATCHING.store(true, Ordering::Relaxed);
}

/// Forgets all values, and stops remembering.
pub fn forget() {
    WATCHING.store(false, Ordering::Relaxed);
    pieces().0 = None;
}

/// How many pieces of values are remembered.
pub fn remembered() -> usize {
    pieces().0.as_ref().map_or(0, HashMap::len)
}

/// Remembers a value byte by byte, as it stands and in reverse: the encoding of many scalars is the reverse of their
/// limbs.
pub(crate) fn record<T>(value: &T, origin: &'static Location<'static>) -> &'static Location<'static> {
    if !WATCHING.load(Ordering::Relaxed) {
        return origin;
    }
    let size = size_of::<T>();
    let masked = |at: usize| {
        // SAFETY: within `value`. The types that secrets are made of have no padding.
        unsafe { core::ptr::from_ref(value).cast::<u8>().add(at).read_volatile() ^ MASK }
    };
    for start in (0..(size + 1).saturating_sub(PIECE)).step_by(8) {
        let forward: [u8; PIECE] = core::array::from_fn(|at| masked(start + at));
        let backward: [u8; PIECE] = core::array::from_fn(|at| masked(size - 1 - start - at));
        for piece in [forward, backward] {
            if piece.iter().collect::<BTreeSet<_>>().len() >= DISTINCT {
                pieces().0.get_or_insert_default().entry(u128::from_le_bytes(piece)).or_insert(origin);
            }
        }
    }
    origin
}

/// Forgets what is in `bytes`: everybody was told.
pub fn published(bytes: &[u8]) {
    if let Some(known) = &mut pieces().0 {
        for window in bytes.windows(PIECE) {
            let piece: [u8; PIECE] = core::array::from_fn(|at| window.get(at).map_or(0, |byte| byte ^ MASK));
            known.remove(&u128::from_le_bytes(piece));
        }
    }
}

/// A piece of a remembered value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// Where it is.
    pub address: usize,
    /// The file that wrapped the value.
    pub file: &'static str,
    /// The line there.
    pub line: u32,
}

/// Looks at `length` bytes from `address` for remembered values.
///
/// # Safety
/// The bytes are mapped and readable.
pub unsafe fn search(address: usize, length: usize) -> Vec<Found> {
    let pieces = pieces();
    let Some(known) = &pieces.0 else { return Vec::new() };
    // One bit for each remembered piece, so that nearly all of memory is passed over without a look at the map.
    let mut bits = vec![0u64; 1 << 14];
    let place = |window: u128| ((window >> 6 & 0x3fff) as usize, 1u64 << (window & 63));
    for piece in known.keys() {
        let (at, bit) = place(*piece);
        if let Some(word) = bits.get_mut(at) {
            *word |= bit;
        }
    }
    let mut found = Vec::new();
    let mut window = 0u128;
    for at in address..address + length {
        // SAFETY: by contract.
        let byte = unsafe { core::ptr::with_exposed_provenance::<u8>(at).read_volatile() } ^ MASK;
        window = window >> 8 | u128::from(byte) << 120;
        let (place, bit) = place(window);
        if bits.get(place).is_some_and(|word| word & bit != 0)
            && let Some(origin) = known.get(&window)
        {
            found.push(Found { address: at + 1 - PIECE, file: origin.file(), line: origin.line() });
        }
    }
    found
}
