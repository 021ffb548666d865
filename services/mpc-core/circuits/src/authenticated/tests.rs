//! Several runs of one pair at a time, inputs of other lengths, and what a run must not repeat.

use primitives::ot::authenticated::authentication_bytes;

use super::bits::Link;
use super::prepared::Part;
use super::wire::{Edit, both, flip, hold, honest, seeded, set_up};
use super::*;
use crate::circuit::{Circuit, Gate, Lit};
use crate::line::now;

const DABITS: usize = 4;

/// One AND gate, made twice: no builder makes that, but a garbler may be given it.
fn twice() -> Circuit {
    let [a, b] = [1, 2].map(Lit::wire);
    Circuit {
        inputs: vec![1, 1],
        outputs: vec![2],
        gates: vec![Gate::new(true, a, b, 3), Gate::new(true, a, b, 4)],
        results: vec![Lit::wire(3), Lit::wire(4)],
        slots: 5,
    }
}

/// The garbler's result, and how many messages it sent.
fn prepared(pairs: &[Pair; 2], edits: [Edit; 2]) -> (Result<(Prepared, DaBits), Abort>, usize) {
    let ran = both(edits, [&pairs[0], &pairs[1]], async |index, pair, channel| {
        Prepared::with_dabits(pair, &twice(), DABITS, channel, &mut seeded(1, index)).await
    });
    let [garbler, _] = ran.results;
    (garbler, ran.sent[0])
}

/// An evaluator that guesses digits of Δ in many runs at once would learn all of Δ from one set-up, if each of them
/// went on to say whether its guess was right. So the first failed check stops them all: here each run waits at another
/// message until another one has failed, and then the garbler says nothing that depends on the guess.
#[test]
fn the_first_failed_check_stops_the_runs_that_are_under_way() {
    // The evaluator's message that holds a guess, and the messages of a garbler that stops there.
    for (message, sent) in [(1, 2), (4, 6), (7, 10), (10, 14), (12, 16)] {
        let pairs = set_up(7);
        let (held, reached, go_on) = hold(message);
        std::thread::scope(|scope| {
            let run = scope.spawn(|| prepared(&pairs, [honest(), held]));
            reached.recv().unwrap();
            let wrong = flip(1, authentication_bytes(1) - 1, 1);
            let (garbler, _) = prepared(&pairs, [honest(), wrong]);
            assert!(matches!(garbler, Err(Abort::Transfer)) && pairs[0].ended());
            go_on.send(()).unwrap();
            let (garbler, count) = run.join().unwrap();
            assert!(matches!(garbler, Err(Abort::Caller(_))), "message {message}");
            assert_eq!(count, sent, "message {message}");
        });
    }
}

/// The evaluator has fixed as many bits as the garbler, and enters more.
#[test]
fn bits_beyond_the_fixed_ones_are_not_entered() {
    let pairs = set_up(8);
    let inputs = [1usize, 3];
    let circuit = Circuit {
        inputs: inputs.to_vec(),
        outputs: vec![1],
        gates: vec![Gate::new(true, Lit::wire(1), Lit::wire(4), 5)],
        results: vec![Lit::wire(5)],
        slots: 6,
    };
    let [garbler, _] = both([honest(), honest()], inputs, async |index, count, channel| {
        let rng = &mut seeded(1, index);
        let one = PrivateInput::new(vec![1]);
        let mut input = FixedInput::new(&pairs[index], &[1; 32], &one, channel, rng).await.unwrap();
        input.bits.resize(count, 1);
        let prepared = Prepared::new(&pairs[index], &circuit, channel, rng).await.unwrap();
        let entry = Entry::Fixed { input: &input, public: &[], purpose: [2; 32] };
        evaluate(&pairs[index], prepared, entry, channel).await
    })
    .results;
    assert!(matches!(garbler, Err(Abort::Caller(_))), "{garbler:?}");
}

/// Each would fail a check, and exclude the honest peer.
#[test]
fn what_belongs_to_another_set_up_is_refused_and_excludes_nobody() {
    let (old, new) = (set_up(9), set_up(10));
    let circuit = Circuit { inputs: vec![2, 2], ..twice() };
    let both_results = both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
        let rng = &mut seeded(1, index);
        let pairs = [&old[index], &new[index]];
        let fixed = pairs.map(|pair| {
            now(FixedInput::new(pair, &[1; 32], &PrivateInput::new(vec![1]), channel, rng)).unwrap()
        });
        let mixed = FixedInput::joined(&[&fixed[0], &fixed[1]]);
        let whole = FixedInput::joined(&[&fixed[1], &fixed[1]]);
        let stale = FixedInput::joined(&[&fixed[0], &fixed[0]]);
        [(1, 1, &mixed), (1, 1, &stale), (0, 1, &whole), (0, 0, &whole), (1, 1, &whole)].map(
            |(prepares, runs, input)| {
                let prepared = now(Prepared::new(pairs[prepares], &circuit, channel, rng)).unwrap();
                let entry = Entry::Fixed { input, public: &[], purpose: [2; 32] };
                now(evaluate(pairs[runs], prepared, entry, channel))
            },
        )
    });
    for results in both_results.results {
        let [refused @ .., right] = results;
        assert!(refused.iter().all(|result| matches!(result, Err(Abort::Caller(_)))), "{refused:?}");
        assert!(right.is_ok(), "{right:?}");
    }
    assert!(old.iter().chain(&new).all(|pair| !pair.ended()));
}

/// Under the same tweak the first block of both tables would be the same.
#[test]
fn no_two_gates_are_hashed_alike() {
    let pairs = set_up(9);
    let [_, evaluator] = both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
        Prepared::new(&pairs[index], &twice(), channel, &mut seeded(1, index)).await.unwrap()
    })
    .results;
    let Part::Evaluator { tables, .. } = &evaluator.part else { panic!("the evaluator has the tables") };
    assert!(tables[0][0] != tables[1][0] && tables[0][1] != tables[1][1]);
}

#[test]
fn no_two_steps_have_one_digest() {
    let pairs = set_up(10);
    both([honest(), honest()], [0, 1], async |index, _: usize, channel| {
        let mut link = Link::resume(&pairs[index], [1; 32], 0, channel);
        let steps = [Role::Garbler, Role::Garbler, Role::Evaluator].map(|role| link.step("step", role));
        let mut other = Link::resume(&pairs[index], [2; 32], 0, link.channel);
        let other = other.step("step", Role::Garbler);
        assert!(steps[0] != steps[1] && steps[1] != steps[2] && steps[0] != other);
        let mut again = Link::resume(&pairs[index], [1; 32], 1, link.channel);
        assert_eq!(again.step("step", Role::Garbler), steps[1]);
        assert_ne!(again.step("step", Role::Evaluator), steps[1]);
    });
}
