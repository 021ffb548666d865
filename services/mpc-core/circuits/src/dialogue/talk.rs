//! Two dialogues with each other in one thread, whose frames may change on their way.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::{Dialogue, Turn};
use crate::authenticated::Abort;

/// A side that has started.
pub type Started<T> = Result<(Dialogue<T>, Turn<T>), Abort>;

/// Changes a frame, given its sender and its number.
pub type Change<'a> = &'a mut dyn FnMut(usize, usize, &mut Vec<u8>);

/// The results, `None` of a side that waits, and the frames that each has said.
pub struct Talked<T> {
    pub results: [Option<Result<T, Abort>>; 2],
    pub frames: [Vec<Vec<u8>>; 2],
}

impl<T> Talked<T> {
    fn take(&mut self, side: usize, turn: Result<Turn<T>, Abort>) -> Option<Vec<u8>> {
        let frame = match turn {
            Ok(Turn::Listen) => None,
            Ok(Turn::Say(frame)) => Some(frame),
            Ok(Turn::Done(result, frame)) => {
                self.results[side] = Some(Ok(result));
                frame
            }
            Err(abort) => {
                self.results[side] = Some(Err(abort));
                None
            }
        };
        self.frames[side].extend(frame.clone());
        frame
    }
}

/// Lets both talk until nobody has anything to say.
pub fn talk<T>(sides: [Started<T>; 2], change: Change<'_>) -> Talked<T> {
    talk_until(sides, change, usize::MAX)
}

/// Lets both talk until so many frames have arrived; then they leave.
pub fn talk_until<T>(sides: [Started<T>; 2], change: Change<'_>, most: usize) -> Talked<T> {
    let rng = &mut ChaCha20Rng::seed_from_u64(5);
    let mut talked = Talked { results: [None, None], frames: [vec![], vec![]] };
    let mut dialogues = [None, None];
    let mut next = None;
    for (side, started) in sides.into_iter().enumerate() {
        let turn = started.map(|(dialogue, turn)| {
            dialogues[side] = Some(dialogue);
            turn
        });
        if let Some(frame) = talked.take(side, turn) {
            assert!(next.is_none(), "both speak first");
            next = Some((side, frame));
        }
    }
    for _ in 0..most {
        let Some((from, mut frame)) = next.take() else { break };
        change(from, talked.frames[from].len() - 1, &mut frame);
        let Some(dialogue) = &mut dialogues[1 - from] else { break };
        let turn = dialogue.hear(&frame, rng);
        next = talked.take(1 - from, turn).map(|frame| (1 - from, frame));
    }
    talked
}
