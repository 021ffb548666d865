//! A dialogue as a protocol of the engine.
//!
//! One party speaks first. In each round it sends one frame, and the other answers with one. So a session has as many
//! rounds as one party has frames, and in each of them two envelopes, both private and unsigned: the two parties are
//! alone, and neither could show anybody else more than its own word.

use std::sync::Arc;

use circuits::authenticated::{Abort, Role};
use circuits::dialogue::{Dialogue, FRAME_BYTES, Turn};
use engine::{
    AbortCause, Delivery, Envelope, Fault, History, Inbox, Next, Outbox, PartyId, Protocol, ProtocolId,
    RoundRule, SessionContext, SetupError,
};
use rand_core::CryptoRng;

/// Rounds of a session, at most: a preparation for eleven blocks of message takes some 230.
pub const MAX_ROUNDS: usize = 250;

const ROUNDS: [RoundRule; MAX_ROUNDS] =
    [RoundRule { delivery: Delivery::Private, max_body: FRAME_BYTES }; MAX_ROUNDS];

/// The subject of a dialogue: a computation of two parties.
pub trait Subject: Sized {
    /// Name and number.
    const ID: ProtocolId;
    /// The input of a party.
    type Input;
    /// The result.
    type Output;

    /// Hash of what both parties hold alike; see [`Protocol::held_alike`].
    fn held_alike(input: &Self::Input) -> Option<[u8; 32]>;

    /// Starts the dialogue with the peer.
    fn start(
        with: &With<'_>,
        input: Self::Input,
        rng: &mut dyn CryptoRng,
    ) -> Result<Started<Self::Output>, SetupError>;
}

/// A dialogue that has started.
pub type Started<T> = Result<(Dialogue<T>, Turn<T>), Abort>;

/// The session of a dialogue, and the two in it.
pub struct With<'a> {
    pub(crate) ctx: &'a SessionContext,
    pub(crate) me: PartyId,
    pub(crate) peer: PartyId,
}

impl With<'_> {
    /// The party with the lower number garbles.
    pub(crate) fn role(&self) -> Role {
        if self.me < self.peer { Role::Garbler } else { Role::Evaluator }
    }
}

/// A party's side of a dialogue.
pub struct Talk<S: Subject> {
    state: State<S::Output>,
    peer: PartyId,
    /// The round that the next frame belongs to.
    round: u8,
}

enum State<T> {
    Talking(Dialogue<T>),
    Over(T),
}

impl<S: Subject> Talk<S> {
    /// The protocol after a step of its dialogue, with the frame that it sends.
    fn after(self, turn: Turn<S::Output>) -> Result<(Self, Outbox), Fault> {
        let Self { state, peer, round } = self;
        let mut outbox = Outbox::new();
        let (state, frame) = match (turn, state) {
            (Turn::Listen, state) => (state, None),
            (Turn::Say(frame), state) => (state, Some(frame)),
            (Turn::Done(output, frame), _) => (State::Over(output), frame),
        };
        let frames = frame.is_some();
        if let Some(frame) = frame {
            if usize::from(round) > MAX_ROUNDS {
                return Err(Fault::internal());
            }
            outbox.private_in(round, peer, frame);
        }
        Ok((Self { state, peer, round: round + u8::from(frames) }, outbox))
    }
}

impl<S: Subject> Protocol for Talk<S> {
    const ID: ProtocolId = S::ID;
    const SIGNED: bool = false;
    const ROUNDS: &'static [RoundRule] = &ROUNDS;
    type Input = S::Input;
    type Output = S::Output;

    fn held_alike(input: &Self::Input) -> Option<[u8; 32]> {
        S::held_alike(input)
    }

    fn start(
        ctx: &SessionContext,
        input: Self::Input,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let me = ctx.me().ok_or(SetupError::ObserverNotAllowed)?;
        let mut peers = ctx.peers().iter().collect::<Vec<_>>().into_iter();
        let (Some(peer), None) = (peers.next(), peers.next()) else { return Err(SetupError::PartyCount) };
        if ctx.threshold().get() != 2 {
            return Err(SetupError::ThresholdRange);
        }
        let started = S::start(&With { ctx, me, peer }, input, rng)?;
        // Nothing has been heard yet, so that it can only be the caller's mistake, or its record's.
        let (dialogue, turn) = started.map_err(|abort| match abort {
            Abort::OtherNonce => SetupError::OtherNonce,
            _ => SetupError::ShareMismatch,
        })?;
        let talk = Self { state: State::Talking(dialogue), peer, round: 1 };
        talk.after(turn).map_err(|_| SetupError::ShareMismatch)
    }

    fn ready(&self, ctx: &SessionContext, waiting: &engine::PartySet) -> bool {
        matches!(self.state, State::Over(_)) || ctx.peers().minus(waiting).is_empty()
    }

    fn advance(
        mut self,
        _: &SessionContext,
        inbox: Inbox,
        _: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        let dialogue = match &mut self.state {
            State::Talking(dialogue) => dialogue,
            State::Over(_) => {
                let State::Over(output) = self.state else { return Err(Fault::internal()) };
                return Ok(Next::Done(output));
            }
        };
        let frame = inbox.from(self.peer).ok_or_else(Fault::internal)?;
        let turn = dialogue.hear(frame.body(), rng).map_err(|abort| fault(&abort, self.peer))?;
        match turn {
            Turn::Done(output, None) => Ok(Next::Done(output)),
            turn => {
                let (talk, outbox) = self.after(turn)?;
                Ok(Next::Round(talk, outbox))
            }
        }
    }

    /// Nothing is signed, so that nobody is convicted by it.
    fn judge(_: &SessionContext, _: AbortCause, _: PartyId, _: &[Arc<Envelope>]) -> bool {
        false
    }
}

/// The fault that an end of the dialogue is, in the engine's words.
fn fault(abort: &Abort, peer: PartyId) -> Fault {
    let cause = match abort {
        Abort::Malformed => AbortCause::MalformedBody,
        Abort::Transfer => AbortCause::TransferCheckFailed,
        Abort::Triple => AbortCause::TripleCheckFailed,
        Abort::Commitment => AbortCause::WrongOpening,
        Abort::Opening | Abort::Point => AbortCause::WrongAuthenticator,
        Abort::Label => AbortCause::WrongLabel,
        Abort::Table => AbortCause::WrongTable,
        Abort::DaBit => AbortCause::DabitCheckFailed,
        Abort::Input => AbortCause::WrongInput,
        Abort::Partial => AbortCause::WrongPartialSignature,
        // The peer's doing, or the owner's or the record's.
        Abort::OtherNonce => return Fault::nobody(AbortCause::OtherNonce),
        Abort::Import => return Fault::nobody(AbortCause::WrongTestSignature),
        Abort::Disagreement => return Fault::nobody(AbortCause::CircuitMismatch),
        Abort::Caller(_) | Abort::Record(_) | Abort::Channel(_) => return Fault::internal(),
    };
    Fault::evident(cause, vec![peer])
}
