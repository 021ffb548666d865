//! Threshold ECDSA, the core alone on one thread: for each number of parties the computation of the busiest party, what
//! the one that sends most sends, and rounds. `cargo bench -p protocols --bench ecdsa` prints the table; `-- 2/3 3/5`
//! only these, `-- scale` n of n for n = 2 to 20.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement prints, and fails by panicking"
)]

mod ecdsa_harness;

use ecdsa_harness::{Run, Store, keygen, median, presign, refresh, reshare, seeded, sign, sign_presigned};

const TABLE: [(usize, usize); 9] =
    [(2, 2), (2, 3), (3, 3), (3, 5), (5, 5), (5, 9), (7, 10), (10, 20), (20, 20)];

fn print<T>(operation: &str, (t, n): (usize, usize), run: &Run<T>) {
    println!(
        "{operation:<16} {t:>2}/{n:<2} {:>10.3} ms {:>10} B {:>3} rounds",
        run.time.as_secs_f64() * 1e3,
        run.sent,
        run.rounds
    );
}

/// Whether an argument is "t/n"; the program's own path has a slash as well.
fn shape(argument: &str) -> bool {
    argument.split_once('/').is_some_and(|(t, n)| t.parse::<usize>().is_ok() && n.parse::<usize>().is_ok())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let wanted: Vec<&String> = arguments.iter().filter(|argument| shape(argument)).collect();
    let table = if arguments.iter().any(|argument| argument == "scale") {
        (2..=20).map(|n| (n, n)).collect()
    } else {
        TABLE.to_vec()
    };
    let mut rng = seeded(1);
    for (t, n) in table {
        if !wanted.is_empty() && !wanted.contains(&&format!("{t}/{n}")) {
            continue;
        }
        let repeat = if n <= 5 { 21 } else { 3 };
        let run = median((0..repeat).map(|_| keygen(t, n, &mut rng)).collect());
        print("key generation", (t, n), &run);
        let store = Store::new(run.outputs, &mut rng);
        print("refresh", (t, n), &median((0..repeat).map(|_| refresh(&store, &mut rng)).collect()));
        print("reshare", (t, n), &median((0..repeat).map(|_| reshare(&store, &mut rng)).collect()));
        let repeat = if t <= 5 { 101 } else { 5 };
        print("sign", (t, n), &median((0..repeat).map(|_| sign(&store, &mut rng)).collect()));
        let presigned = median((0..repeat).map(|_| presign(&store, &mut rng)).collect());
        print("presign", (t, n), &presigned);
        let runs = (0..repeat).map(|_| {
            let presignatures = presign(&store, &mut rng).outputs;
            sign_presigned(&store, presignatures, &mut rng)
        });
        print("sign presigned", (t, n), &median(runs.collect()));
    }
}
