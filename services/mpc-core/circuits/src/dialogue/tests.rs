//! Frames, with protocols of a few lines.

use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

use super::talk::{Started, talk};
use super::*;

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(3)
}

/// Says a message of some length, and hears one of the other.
fn speaker(own: usize, theirs: usize) -> Started<Vec<u8>> {
    let protocol = async move |mut line: DialogueLine, _: DialogueRng| {
        line.say(&vec![7; own])?;
        let mut heard = vec![0; theirs];
        line.receive(&mut heard).await?;
        Ok(heard)
    };
    Dialogue::start(protocol, &mut rng())
}

/// Hears first.
fn listener(own: usize, theirs: usize) -> Started<Vec<u8>> {
    let protocol = async move |mut line: DialogueLine, _: DialogueRng| {
        let mut heard = vec![0; theirs];
        // In parts, as tables are read.
        for part in heard.chunks_mut(1000) {
            line.receive(part).await?;
        }
        line.say(&vec![9; own])?;
        Ok(heard)
    };
    Dialogue::start(protocol, &mut rng())
}

#[test]
fn messages_of_any_length_arrive_in_frames() {
    let lengths = [1, FRAME_BYTES - 2, FRAME_BYTES - 1, FRAME_BYTES, 3 * FRAME_BYTES];
    for first in lengths {
        for second in lengths {
            let talked = talk([speaker(first, second), listener(second, first)], &mut |_, _, _| {});
            let [left, right] = talked.results.map(|result| result.unwrap().unwrap());
            assert!(left == vec![9; second] && right == vec![7; first], "{first} {second}");
            let all: Vec<&Vec<u8>> = talked.frames.iter().flatten().collect();
            assert!(all.iter().all(|frame| frame.len() <= FRAME_BYTES));
            let parts: usize = [first, second].map(|length| length.div_ceil(FRAME_BYTES - 1)).iter().sum();
            assert_eq!(
                all.len(),
                2 * parts - 2,
                "{first} {second}: each part but the last of a message is answered"
            );
        }
    }
}

type Heard = Result<Turn<Vec<u8>>, Abort>;

/// A frame in place of the first that the listener hears.
fn in_place_of_the_first(frame: &[u8]) -> (Dialogue<Vec<u8>>, Heard) {
    let (mut dialogue, turn) = listener(5, 10).unwrap();
    assert!(matches!(turn, Turn::Listen));
    let turn = dialogue.hear(frame, &mut rng());
    (dialogue, turn)
}

#[test]
fn a_frame_that_has_no_place_ends_the_run() {
    let long = |kind: u8, length: usize| {
        let mut frame = vec![1; length];
        frame[0] = kind;
        frame
    };
    let wrong: [Vec<u8>; 13] = [
        vec![],
        vec![LAST],
        vec![GO_ON],
        vec![MORE],
        vec![3],
        vec![255; 11],
        long(LAST, 10),
        long(LAST, 12),
        long(GO_ON, 11),
        long(MORE, 11),
        long(MORE, FRAME_BYTES - 1),
        long(MORE, FRAME_BYTES + 1),
        long(LAST, FRAME_BYTES + 1),
    ];
    for frame in wrong {
        let (mut dialogue, turn) = in_place_of_the_first(&frame);
        let place = (frame.first(), frame.len());
        assert!(matches!(turn, Err(Abort::Malformed)), "{place:?}");
        let after = dialogue.hear(&long(LAST, 11), &mut rng());
        assert!(matches!(after, Err(Abort::Caller(_))), "{place:?}: nothing is heard any more");
    }
    let (_, turn) = in_place_of_the_first(&long(LAST, 11));
    assert!(matches!(turn, Ok(Turn::Done(_, Some(frame))) if frame == [[LAST].as_slice(), &[9; 5]].concat()));
}

/// The message has ten bytes, so that more of them than a frame holds are too many.
#[test]
fn a_message_that_does_not_end_is_refused_with_its_first_frame() {
    let mut frame = vec![1; FRAME_BYTES];
    frame[0] = MORE;
    let (_, turn) = in_place_of_the_first(&frame);
    assert!(matches!(turn, Err(Abort::Malformed)));
}

#[test]
fn a_party_that_has_more_to_say_hears_only_that_it_may() {
    let wrong: [&[u8]; 6] = [&[], &[LAST], &[MORE], &[GO_ON, 0], &[LAST, 9], &[3]];
    for frame in wrong {
        let (mut dialogue, turn) = speaker(FRAME_BYTES, 1).unwrap();
        assert!(matches!(turn, Turn::Say(_)));
        assert!(matches!(dialogue.hear(frame, &mut rng()), Err(Abort::Malformed)), "{frame:?}");
        assert!(matches!(dialogue.hear(&[GO_ON], &mut rng()), Err(Abort::Caller(_))), "{frame:?}");
    }
}

/// The result waits for the last frame, and is gone if the peer does not ask for it.
#[test]
fn a_result_comes_with_the_last_frame() {
    let long = FRAME_BYTES + 7;
    let (mut dialogue, _) = listener(long, 1).unwrap();
    let turn = dialogue.hear(&[LAST, 7], &mut rng()).unwrap();
    assert!(matches!(turn, Turn::Say(frame) if frame.len() == FRAME_BYTES));
    let turn = dialogue.hear(&[GO_ON], &mut rng()).unwrap();
    assert!(matches!(turn, Turn::Done(heard, Some(frame)) if heard == [7] && frame.len() == 9));
    assert!(matches!(dialogue.hear(&[GO_ON], &mut rng()), Err(Abort::Caller(_))));

    let (mut dialogue, _) = listener(long, 1).unwrap();
    let _frame = dialogue.hear(&[LAST, 7], &mut rng()).unwrap();
    assert!(matches!(dialogue.hear(&[LAST, 7], &mut rng()), Err(Abort::Malformed)));
}

#[test]
fn a_dialogue_that_is_dropped_or_over_holds_nothing_of_its_protocol() {
    let held = Arc::new(());
    let start = || {
        let held = Arc::clone(&held);
        let protocol = async move |mut line: DialogueLine, _: DialogueRng| {
            let word = line.block::<1>().await?;
            drop(held);
            Ok(word)
        };
        Dialogue::start(protocol, &mut rng()).unwrap().0
    };
    let dropped = start();
    assert_eq!(Arc::strong_count(&held), 2);
    drop(dropped);
    assert_eq!(Arc::strong_count(&held), 1);
    let mut over = start();
    assert!(over.hear(&[3], &mut rng()).is_err());
    assert_eq!(Arc::strong_count(&held), 1);
}

/// A process that was copied while it waited, and its copy, draw other numbers from there on.
#[test]
fn randomness_is_drawn_anew_in_each_step() {
    let drawn = |first: u64, second: u64| {
        let protocol = async move |mut line: DialogueLine, mut rng: DialogueRng| {
            let before = rng.next_u64();
            line.block::<1>().await?;
            Ok([before, rng.next_u64()])
        };
        let (mut dialogue, _) = Dialogue::start(protocol, &mut ChaCha20Rng::seed_from_u64(first)).unwrap();
        match dialogue.hear(&[LAST, 0], &mut ChaCha20Rng::seed_from_u64(second)) {
            Ok(Turn::Done(drawn, None)) => drawn,
            _ => panic!("it ends"),
        }
    };
    let [one, copy, other] = [drawn(1, 1), drawn(1, 2), drawn(2, 1)];
    assert_eq!(one, drawn(1, 1));
    assert!(one[0] == copy[0] && one[1] != copy[1]);
    assert!(one[0] != other[0] && one[1] != other[1]);
}
