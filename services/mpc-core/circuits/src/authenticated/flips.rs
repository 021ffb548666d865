//! Runs in which a bit of one message changes on its way, in each message: a party ends with a cause, or both have the
//! right result and the bit is one that the peer does not read.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use rand_core::Rng;

use super::wire::{Edit, End, both, flip, honest, percent, seeded};
use super::*;
use crate::circuit::{Circuit, Gate, Lit};

/// Bytes of a message that the peer reads for one value of a bit, and does not for the other. The bit is uniform, and
/// the sender does not know it.
pub struct Unread {
    pub by: usize,
    pub message: usize,
    pub bytes: Range<usize>,
}

/// Notes how long the messages of a party are.
fn noted(lengths: &Arc<Mutex<Vec<usize>>>) -> Edit {
    let lengths = Arc::clone(lengths);
    Box::new(move |number, start, bytes| {
        let mut lengths = lengths.lock().unwrap();
        let count = lengths.len().max(number + 1);
        lengths.resize(count, 0);
        lengths[number] = start + bytes.len();
    })
}

/// Flips a bit at random places of each message, this many, and a hundred times as many where all runs are made. A run
/// gives the results of both parties, and whether their set-ups have ended.
pub fn everywhere<T: PartialEq + Debug>(
    places: usize,
    unread: &[Unread],
    expected: &T,
    run: impl Fn([Edit; 2]) -> ([Result<T, Abort>; 2], [bool; 2]),
) {
    let lengths: [Arc<Mutex<Vec<usize>>>; 2] = Default::default();
    let (results, _) = run(lengths.each_ref().map(noted));
    results.iter().for_each(|result| assert_eq!(result.as_ref().unwrap(), expected));
    let lengths = lengths.map(|lengths| lengths.lock().unwrap().clone());
    let mut passed = BTreeMap::new();
    for (by, lengths) in lengths.iter().enumerate() {
        let rng = &mut seeded(1, by);
        for (message, length) in lengths.iter().enumerate() {
            for _ in 0..places * percent().clamp(1, 100) {
                let place = (rng.next_u64() % *length as u64) as usize;
                let mut edits = [honest(), honest()];
                edits[by] = flip(message, place, 1 << (rng.next_u32() % 8));
                let name = format!("byte {place} of {length} in message {message} of {by}");
                let found = ends(&name, expected, run(edits));
                let known = unread.iter().position(|field| {
                    (field.by, field.message) == (by, message) && field.bytes.contains(&place)
                });
                match known {
                    Some(field) => passed.entry(field).or_insert([0; 2])[usize::from(found)] += 1,
                    None => assert!(found, "{name}: nobody noticed"),
                }
            }
        }
    }
    // No byte is left that nobody ever reads.
    let enough = |[missed, found]: &[u32; 2]| missed + found < 20 || (*missed > 0 && *found > 0);
    assert!(passed.values().all(enough), "{passed:?}");
}

/// Whether a party has noticed the change.
fn ends<T: PartialEq + Debug>(
    name: &str,
    expected: &T,
    (results, ended): ([Result<T, Abort>; 2], [bool; 2]),
) -> bool {
    let mut found = false;
    let mut left = false;
    for (result, ended) in results.into_iter().zip(ended) {
        match result {
            Ok(result) => assert_eq!(result, *expected, "{name}"),
            Err(Abort::Channel(_)) => left = true,
            Err(abort) => {
                assert!(!matches!(abort, Abort::Caller(_) | Abort::Record(_)), "{name}: {abort:?}");
                assert_eq!(ended, abort.excludes_peer(), "{name}");
                found = true;
            }
        }
    }
    assert!(found || !left, "{name}: one has no result, and nobody a cause");
    found
}

/// AND gates on private bits, on a public one, and on results of others.
fn circuit() -> Circuit {
    let and = |a, b, out| Gate::new(true, Lit::wire(a), Lit::wire(b), out);
    Circuit {
        inputs: vec![2, 2, 1],
        outputs: vec![3],
        gates: vec![and(1, 3, 6), and(2, 4, 7), and(6, 5, 8), and(7, 8, 9)],
        results: vec![Lit::wire(7), Lit::wire(8), Lit::wire(9)],
        slots: 10,
    }
}

/// The steps that are prepared and evaluated alike by all: fixed inputs, a preparation with daBits, an evaluation.
async fn evaluation(pair: &Pair, index: usize, channel: &mut End<'_>) -> Result<Vec<bool>, Abort> {
    let rng = &mut seeded(2, index);
    let own = PrivateInput::new(vec![1; 2]);
    let input = FixedInput::new(pair, &[1; 32], &own, channel, rng).await?;
    let (prepared, _) = Prepared::with_dabits(pair, &circuit(), 4, channel, rng).await?;
    let entry = Entry::Fixed { input: &input, public: &[1], purpose: [2; 32] };
    evaluate(pair, prepared, entry, channel).await
}

const ROLES: [Role; 2] = [Role::Garbler, Role::Evaluator];

async fn begin(role: Role, index: usize, channel: &mut End<'_>) -> Result<Pair, Abort> {
    Pair::set_up(role, &[7; 32], channel, &mut seeded(1, index)).await
}

/// The leak budget of the protocol's page explains each of them.
const UNREAD: &[Unread] = &[
    // Leaky triples, a block each: for the peer's bit x.
    Unread { by: 0, message: 7, bytes: 0..1664 },
    Unread { by: 1, message: 6, bytes: 0..1664 },
    // Tables: for the public bits of a gate's inputs. The colours after them are read.
    Unread { by: 0, message: 17, bytes: 0..128 },
    // Columns of daBits: for a bit of the verifier's key, which is this session's only. The evaluator's challenge comes
    // before them.
    Unread { by: 0, message: 19, bytes: 0..278_528 },
    Unread { by: 1, message: 15, bytes: 32..278_560 },
];

#[test]
fn a_bit_that_changes_in_any_message_is_noticed_or_not_read() {
    everywhere(1, UNREAD, &vec![true; 3], |edits| {
        let ran = both(edits, ROLES, async |index, role, channel| match begin(role, index, channel).await {
            Ok(pair) => (evaluation(&pair, index, channel).await, pair.ended()),
            Err(abort) => (Err(abort), true),
        });
        let [(first, one), (second, other)] = ran.results;
        ([first, second], [one, other])
    });
}

/// A set-up has two sums for each bit of Δ, each way, of which the party with this Δ can read one. A peer that changes
/// some guesses which they are: it passes with all bits right, and then has no other effect.
#[test]
fn other_sums_in_a_set_up_pass_by_a_guess_of_bits_of_delta() {
    let transfers = [0usize, 50, 127];
    let honest_pairs = both([honest(), honest()], ROLES, async |index, role, channel| {
        begin(role, index, channel).await.unwrap()
    })
    .results;
    // The message with the sums, and their place in it.
    for (by, message, start) in [(0, 1, 16), (1, 0, 32)] {
        let delta = *honest_pairs[1 - by].state.sender.global_key();
        // Bits of a digit of Δ from the highest down: a clear one leaves the first sum unread.
        let right = transfers.map(|transfer| (delta >> (4 * (transfer / 4) + 3 - transfer % 4) & 1) as usize);
        for guess in 0..1 << transfers.len() {
            let guess: [usize; 3] = std::array::from_fn(|i| guess >> i & 1);
            let places: Vec<usize> =
                transfers.iter().zip(guess).map(|(transfer, bit)| start + 32 * transfer + 16 * bit).collect();
            let mut edits = [honest(), honest()];
            edits[by] = Box::new(move |number, first, bytes| {
                for place in places.iter().filter(|place| number == message && **place >= first) {
                    if let Some(byte) = bytes.get_mut(place - first) {
                        *byte ^= 4;
                    }
                }
            });
            let ran = both(edits, ROLES, async |index, role, channel| begin(role, index, channel).await);
            let results = ran.results;
            if guess != right {
                assert!(matches!(results[1 - by], Err(Abort::Transfer)), "{guess:?} by {by}");
                continue;
            }
            let mut pairs = results.map(Result::unwrap);
            let run = |pairs: &[Pair; 2]| {
                both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
                    evaluation(&pairs[index], index, channel).await
                })
                .results
            };
            // Changed on its way: both find out before they do anything with it.
            assert!(run(&pairs).iter().all(|result| matches!(result, Err(Abort::Disagreement))));
            // The peer's own doing, which it knows: it has learnt the bits, and the results are right.
            pairs[by].identity = pairs[1 - by].identity;
            assert!(run(&pairs).into_iter().all(|result| result.unwrap() == [true; 3]));
            assert!(pairs.iter().all(|pair| !pair.ended()));
        }
    }
}
