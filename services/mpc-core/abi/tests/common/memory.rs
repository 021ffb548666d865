//! A search of this process's memory for what was ever in a `Secret`.

use std::collections::BTreeSet;

use primitives::witness;

/// The secrets of which something is in memory: the file and line that wrapped it, and the kind of memory it is in.
pub fn found() -> BTreeSet<(String, u32, String)> {
    let looking = || {
        let mut all = BTreeSet::new();
        for line in std::fs::read_to_string("/proc/self/maps").unwrap().lines() {
            let mut words = line.split_whitespace();
            let (range, mode) = (words.next().unwrap(), words.next().unwrap());
            if !mode.starts_with("rw") {
                continue;
            }
            let (from, to) = range.split_once('-').unwrap();
            let [from, to] = [from, to].map(|end| usize::from_str_radix(end, 16).unwrap());
            // SAFETY: mapped and readable; nothing is unmapped while this thread alone runs.
            let hits = unsafe { witness::search(from, to - from) };
            let kind = words.nth(3).unwrap_or("a stack, or large blocks");
            all.extend(hits.into_iter().map(|hit| (hit.file.to_owned(), hit.line, kind.to_owned())));
        }
        all
    };
    std::thread::spawn(looking).join().unwrap()
}

pub fn nothing_found(when: &str) {
    assert!(witness::remembered() > 0, "{when}: nothing was watched");
    assert_eq!(found(), BTreeSet::new(), "{when}");
}

/// Apart from what a session still has to have: the key that signs its evidence.
pub fn no_share_found(when: &str) {
    assert!(witness::remembered() > 0, "{when}: nothing was watched");
    let kept = |file: &str| file.ends_with("engine/src/evidence.rs") || file.ends_with("abi/src/vault.rs");
    let others: BTreeSet<_> = found().into_iter().filter(|(file, ..)| !kept(file)).collect();
    assert_eq!(others, BTreeSet::new(), "{when}");
}
