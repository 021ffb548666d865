//! Two parties of a session in one thread, whose envelopes may change on their way.

#![allow(dead_code, reason = "every test binary uses its own part")]

use circuit_sessions::{Subject, Talk};
use engine::forge::Forged;
use engine::session::{Progress, Session, Step};
use engine::{
    Abort, AbortCause, EvidenceKey, PartyId, RosterEntry, SessionId, SessionSettings, SetupError, Threshold,
};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

pub fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub fn party(number: u32) -> PartyId {
    PartyId::new(number).unwrap()
}

pub fn settings(me: u32, parties: &[u32], payload: &[u8]) -> SessionSettings {
    SessionSettings {
        session_id: SessionId::new([7; 32]),
        me: PartyId::new(me),
        roster: parties.iter().map(|id| RosterEntry { id: party(*id), evidence_key: None }).collect(),
        threshold: Threshold::new(2).unwrap(),
        key_id: "imported".to_owned(),
        epoch: 1,
        payload: payload.to_vec(),
    }
}

/// Changes an envelope, given its sender and its number.
pub type Change<'a> = &'a mut dyn FnMut(u32, usize, Vec<u8>) -> Vec<u8>;

pub struct Ran<T> {
    pub done: [Option<T>; 2],
    pub aborts: [Option<Abort>; 2],
    pub envelopes: [usize; 2],
}

impl<T> Ran<T> {
    pub fn both(self) -> [T; 2] {
        assert!(self.aborts.iter().all(Option::is_none), "{:?}", self.aborts);
        self.done.map(Option::unwrap)
    }
}

pub fn honest(_: u32, _: usize, envelope: Vec<u8>) -> Vec<u8> {
    envelope
}

/// A session of party 1 or 2 with the other one, and its first step.
pub fn talk<S: Subject>(me: u32, input: S::Input, payload: &[u8]) -> (Session<Talk<S>>, Step<S::Output>) {
    Session::start(settings(me, &[1, 2], payload), None, input, &mut rng(me.into())).unwrap()
}

/// Runs a session of parties 1 and 2.
pub fn run<S: Subject>(inputs: [S::Input; 2], payload: &[u8], change: Change<'_>) -> Ran<S::Output> {
    run_from::<S>(3, inputs, payload, change)
}

/// The same with other random numbers.
pub fn run_from<S: Subject>(
    seed: u64,
    inputs: [S::Input; 2],
    payload: &[u8],
    change: Change<'_>,
) -> Ran<S::Output> {
    let rng = &mut rng(seed);
    let mut ran = Ran { done: [None, None], aborts: [None, None], envelopes: [0, 0] };
    let mut waiting: Vec<(usize, Vec<u8>)> = Vec::new();
    let mut sessions = Vec::new();
    let mut started = Vec::new();
    for (me, input) in (1..).zip(inputs) {
        let (session, step) =
            Session::<Talk<S>>::start(settings(me, &[1, 2], payload), None, input, rng).unwrap();
        sessions.push(session);
        started.push(step);
    }
    let mut take =
        |ran: &mut Ran<S::Output>, side: usize, session: &Session<Talk<S>>, step: Step<S::Output>| {
            match step.progress {
                Progress::Done(output) => ran.done[side] = Some(output),
                Progress::Aborted(abort) => ran.aborts[side] = Some(abort),
                Progress::Waiting { .. } => {}
                Progress::Dropped(reject) => panic!("{reject:?}"),
            }
            step.outgoing
                .iter()
                .map(|envelope| {
                    let bytes = session.seal(envelope, &mut self::rng(1)).unwrap();
                    ran.envelopes[side] += 1;
                    (side, change(side as u32 + 1, ran.envelopes[side] - 1, bytes))
                })
                .collect::<Vec<_>>()
        };
    for (side, step) in started.into_iter().enumerate() {
        waiting.extend(take(&mut ran, side, &sessions[side], step));
    }
    while let Some((from, envelope)) = waiting.pop() {
        let to = 1 - from;
        let step = sessions[to].handle(party(from as u32 + 1), &envelope, rng);
        waiting.extend(take(&mut ran, to, &sessions[to], step));
    }
    ran
}

/// The body of an envelope, changed.
pub fn body(envelope: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut forged = Forged::open(envelope).unwrap();
    change(&mut forged.body);
    forged.encode(&EvidenceKey::generate(&mut rng(1)))
}

/// An envelope with a bit flipped in the middle of its message.
pub fn flipped(envelope: &[u8]) -> Vec<u8> {
    body(envelope, |body| {
        let place = body.len() / 2;
        body[place] ^= 1;
    })
}

/// Cause, culprits and suspects of the party that hears a changed frame.
pub fn found<T>(ran: &Ran<T>, sender: u32) -> (AbortCause, Vec<PartyId>, Vec<PartyId>) {
    let victim = 2 - sender as usize;
    assert!(ran.done[victim].is_none());
    let abort = ran.aborts[victim].as_ref().unwrap();
    (abort.cause, abort.culprits.clone(), abort.suspects.clone())
}

/// The refusal of a start with these settings.
pub fn refused<S: Subject>(settings: SessionSettings, input: S::Input) -> SetupError {
    match Session::<Talk<S>>::start(settings, None, input, &mut rng(1)) {
        Err(error) => error,
        Ok(_) => panic!("it starts"),
    }
}
