//! The join: t issuers and a member compute g1^{1/(sk_m + sk_i)} for the member, and nobody learns another's secret.
//! Steps are cited as [T1] (`docs/protocols/wbb.md`).
//!
//! Three rounds set up each pair of parties, afresh for each join. Two rounds are those of presigning (Doerner, Kondi,
//! Lee, shelat 2023, eprint 2023/765, protocol 3.6) over G1, with the member as one more party of the joint key sk_m +
//! sk_i, whose point X_m Y_i everybody knows. In the last one the issuers give the member, and nobody else, what it
//! divides. Messages are signed, and sealed to their recipients, so it does not matter who carries them.
//!
//! | paper | here |
//! |---|---|
//! | φ_i | `mask` |
//! | sk_i, pk_i | `share`, `key_points`: additive share of the joint key, re-randomised by shares of zero |
//! | χ_(i,j) | `bob.factor()` |
//! | c^v, d^v | `product` of Alice and of Bob |
//! | Γ^v | `product_point` |
//! | ψ_(i,j) | `mask_minus_factor` |
//! | v_i | `masked_key` |
//!
//! Deviations: there is no nonce, so one product instead of two, and nothing to commit to; pairs are set up in the
//! session, so shares of zero follow from fresh seeds; and the points of these shares are shown to all, so that each
//! party's input to the multiplications is checked against its verification share, and a wrong one has a culprit.

mod messages;
mod pair;
mod rounds;
mod terms;

use std::sync::Arc;

use engine::{
    AbortCause, Envelope, Fault, History, Inbox, Next, Outbox, PartyId, Protocol, ProtocolId, RoundRule,
    SessionContext, SetupError,
};
use rand_core::CryptoRng;

use messages::{ROUNDS, body_fault};
use rounds::{Multiplied, Sampled, SetUp, SettingUp, Waiting};
use terms::Setting;
pub use terms::{JoinInput, JoinOutput, JoinTerms};

/// One party's side of a join.
pub enum Join {
    /// Setting up the pairs, which takes three rounds.
    SettingUp(Box<SettingUp>),
    /// Waiting for the peers' first messages of the multiplications.
    Sampled(Box<Sampled>),
    /// Waiting for their answers.
    Multiplied(Box<Multiplied>),
    /// Waiting for the issuers' parts, at the member; for the others to have come as far, at an issuer.
    Waiting(Box<Waiting>),
}

impl Protocol for Join {
    const ID: ProtocolId = ProtocolId { number: 69, name: "wbb/threshold-join/1" };
    const SIGNED: bool = true;
    const ROUNDS: &'static [RoundRule] = ROUNDS;
    type Input = JoinInput;
    type Output = JoinOutput;

    fn start(
        ctx: &SessionContext,
        input: JoinInput,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let (state, outbox) = SettingUp::begin(ctx, Setting::new(ctx, input)?, rng);
        Ok((Self::SettingUp(Box::new(state)), outbox))
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        _: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        match self {
            Self::SettingUp(state) => match state.advance(ctx, &inbox, rng)? {
                (SetUp::GoesOn(state), outbox) => Ok(Next::Round(Self::SettingUp(Box::new(state)), outbox)),
                (SetUp::Done(state), outbox) => Ok(Next::Round(Self::Sampled(Box::new(state)), outbox)),
            },
            Self::Sampled(state) => {
                let (state, outbox) = state.advance(ctx, &inbox, rng)?;
                Ok(Next::Round(Self::Multiplied(Box::new(state)), outbox))
            }
            Self::Multiplied(state) => {
                let (state, outbox) = state.advance(ctx, &inbox)?;
                Ok(Next::Round(Self::Waiting(Box::new(state)), outbox))
            }
            Self::Waiting(state) => state.finish(ctx, &inbox).map(Next::Done),
        }
    }

    /// Faults of bytes are everybody's to see; the others convince the party whose secrets they were checked with.
    fn judge(ctx: &SessionContext, cause: AbortCause, accused: PartyId, evidence: &[Arc<Envelope>]) -> bool {
        match cause {
            AbortCause::MalformedBody | AbortCause::InvalidPoint | AbortCause::InvalidScalar => matches!(
                evidence,
                [envelope] if envelope.sender() == accused && body_fault(ctx, envelope) == Some(cause)
            ),
            AbortCause::Internal
            | AbortCause::WrongDegree
            | AbortCause::WrongOpening
            | AbortCause::WrongProof
            | AbortCause::WrongShare
            | AbortCause::FalseComplaint
            | AbortCause::Equivocation
            | AbortCause::BroadcastMismatch
            | AbortCause::WrongPartialSignature
            | AbortCause::NotEnoughPartials
            | AbortCause::DegenerateKey
            | AbortCause::TransferCheckFailed
            | AbortCause::WrongProduct
            | AbortCause::InconsistentShares
            | AbortCause::InvalidSignature
            | AbortCause::PartyRestarted
            | AbortCause::TripleCheckFailed
            | AbortCause::WrongAuthenticator
            | AbortCause::WrongLabel
            | AbortCause::WrongTable
            | AbortCause::DabitCheckFailed
            | AbortCause::WrongInput
            | AbortCause::CircuitMismatch
            | AbortCause::OtherNonce
            | AbortCause::WrongTestSignature => false,
        }
    }
}
