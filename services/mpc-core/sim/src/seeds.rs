//! How many runs a randomised test makes, from which seeds, and on how many processors.
//!
//! A test names its full count. `COTERIE_RUNS_PERCENT` says how many per cent of it are made: 1 where it says nothing,
//! as in `make test`; 100 in `make soak`. `RUNS=count` and `SEED=number` choose runs by hand.

#![allow(clippy::panic, clippy::print_stdout, reason = "it runs in tests, which fail by panicking")]

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// The runs to make of a test whose full count is `full`; one at least.
pub fn runs(full: u64) -> u64 {
    (full.saturating_mul(number("COTERIE_RUNS_PERCENT").unwrap_or(1)) / 100).max(1)
}

/// As [`runs`], for the `cases` of a property test.
pub fn cases(full: u32) -> u32 {
    u32::try_from(runs(full.into())).unwrap_or(u32::MAX)
}

/// The seeds to run of a test: always the same for this name, and one that is drawn now and printed. `SEED` and `RUNS`
/// choose others. The name is mixed into each, so that no two tests run the same schedules; a seed that a failure
/// prints is given to `SEED` as it is.
pub fn wanted(test: &str, full: u64) -> Vec<u64> {
    let mixed = |count: u64| (0..count).map(|number| mix(test, number));
    let seeds: Vec<u64> = match (number("SEED"), number("RUNS")) {
        (Some(first), count) => (first..first.saturating_add(count.unwrap_or(1))).collect(),
        (None, Some(count)) => mixed(count).collect(),
        (None, None) => {
            let fresh = RandomState::new().build_hasher().finish();
            println!("fresh seed {fresh}");
            mixed(runs(full)).chain([fresh]).collect()
        }
    };
    println!("{} seeds", seeds.len());
    seeds
}

/// FNV-1a over both, stirred by the last step of SplitMix64.
fn mix(test: &str, number: u64) -> u64 {
    let bytes = test.bytes().chain(number.to_be_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let stirred = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let stirred = (stirred ^ (stirred >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    stirred ^ (stirred >> 31)
}

/// Runs each seed, on every processor. `look` gets what a run came to and says what is wrong with it. The first seed
/// with which something is wrong is named in a panic.
///
/// # Panics
/// If a run panics, or something is wrong with it.
pub fn run_all<C, T>(
    seeds: &[u64],
    run: impl Fn(u64) -> (C, T) + Sync,
    look: impl FnMut(&C, &T) -> Vec<String> + Send,
) {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let look = Mutex::new(look);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (run, look) = (&run, &look);
            scope.spawn(move || {
                for (index, &seed) in seeds.iter().enumerate().skip(worker).step_by(workers) {
                    if index % 1000 == 0 {
                        println!("progress: schedule {index} of {}", seeds.len());
                    }
                    let came_to = catch_unwind(AssertUnwindSafe(|| run(seed)));
                    let (checked, counted) = came_to.unwrap_or_else(|_| panic!("seed {seed}"));
                    let violations = match look.lock() {
                        Ok(mut look) => look(&checked, &counted),
                        Err(_) => return, // another seed has failed
                    };
                    assert!(violations.is_empty(), "seed {seed}: {violations:?}");
                }
            });
        }
    });
}

/// The control of a check: runs a mutant with these seeds until `expected` is part of a violation that `run` returns,
/// and prints the seed at which that was.
///
/// # Panics
/// If it is at none.
pub fn must_find(
    seeds: impl IntoIterator<Item = u64>,
    mutant: &str,
    expected: &str,
    run: impl Fn(u64) -> Vec<String>,
) {
    let finds = |seed: &u64| run(*seed).iter().any(|violation| violation.contains(expected));
    let found = seeds.into_iter().find(finds);
    println!("{mutant}: {expected:?} at seed {found:?}");
    assert!(found.is_some(), "{mutant}: no check finds {expected:?}");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::mix;

    #[test]
    fn tests_have_seeds_of_their_own() {
        let of = |test: &str| (0..10_000).map(|number| mix(test, number)).collect::<BTreeSet<_>>();
        let (one, other) = (of("one"), of("other"));
        assert_eq!((one.len(), other.len()), (10_000, 10_000));
        assert!(one.is_disjoint(&other));
        assert_eq!(one, of("one"));
    }
}
