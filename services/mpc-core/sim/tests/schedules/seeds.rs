//! Which schedules are run, and on how many processors.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// What `SEED` and `RUNS` say, or so many from zero.
pub fn wanted(default_runs: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("SEED") {
        Some(seed) => seed..seed + number("RUNS").unwrap_or(1),
        None => 0..number("RUNS").unwrap_or(default_runs),
    }
}

/// Runs schedules on every processor. `look` gets what each of them came to and says what is wrong with it; the first with which
/// something is says its seed.
pub fn run_all<C, T>(
    seeds: &Range<u64>,
    run: impl Fn(u64) -> (C, T) + Sync,
    look: impl FnMut(&C, &T) -> Vec<String> + Send,
) {
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let look = Mutex::new(look);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (run, look, seeds) = (&run, &look, seeds.clone());
            scope.spawn(move || {
                for seed in seeds.filter(|seed| seed % workers == worker) {
                    if seed % 1000 == 0 {
                        println!("seed {seed}");
                    }
                    let came_to = catch_unwind(AssertUnwindSafe(|| run(seed)));
                    let (checked, counted) = came_to.unwrap_or_else(|_| panic!("seed {seed}"));
                    let violations = (*look.lock().unwrap())(&checked, &counted);
                    assert!(violations.is_empty(), "seed {seed}: {violations:?}");
                }
            });
        }
    });
}
