//! The two pairwise rounds of signing, which need no message: nonce, mask, and the multiplications of all pairs.
//!
//! Specification: `docs/protocols/ecdsa.md`; steps are cited as [P1.2].

mod binding;
mod material;
mod messages;
mod payload;
mod rounds;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
mod tests;

use std::sync::Arc;

use engine::session::History;
use engine::wire::Malformed;
use engine::{
    AbortCause, Delivery, Envelope, Fault, Inbox, Next, Outbox, PartyId, Protocol, ProtocolId, RoundRule,
    SessionContext, SetupError,
};
use rand_core::CryptoRng;

use crate::dealing::Public as _;
use crate::ecdsa::key::KeyShare;
use crate::ecdsa::presignature::Presignature;
use messages::{post_all, read_all};

pub(super) use material::{Material, check_key, pairwise_ready};
pub(super) use messages::{COMMIT_BYTES, MULTIPLY_BODY_BYTES, post, read, read_each};
pub use messages::{Commit, Multiply};
pub use payload::{MAX_BATCH, PresignPayload};
pub use rounds::{Committed, Multiplied};

/// Makes presignatures of one signing set, key and derivation, in two rounds.
pub enum Presigning {
    /// Waiting for commitments.
    Committed(Vec<Committed>),
    /// Waiting for the multiplications.
    Multiplied(Vec<Multiplied>),
}

impl Protocol for Presigning {
    const ID: ProtocolId = ProtocolId { number: 5, name: "ecdsa/presign/2" };
    const SIGNED: bool = false;
    const ROUNDS: &'static [RoundRule] = &[
        RoundRule { delivery: Delivery::Private, max_body: MAX_BATCH as usize * COMMIT_BYTES },
        RoundRule { delivery: Delivery::Private, max_body: MAX_BATCH as usize * MULTIPLY_BODY_BYTES },
    ];
    /// The payload of the session is the encoding of a [`PresignPayload`].
    type Input = KeyShare;
    /// As many as were ordered, in the order that all parties have them in.
    type Output = Vec<Presignature>;

    fn held_alike(share: &KeyShare) -> Option<[u8; 32]> {
        Some(share.public.digest())
    }

    fn start(
        ctx: &SessionContext,
        share: KeyShare,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let PresignPayload { path, count } =
            PresignPayload::decode(ctx.payload()).map_err(|Malformed| SetupError::PayloadInvalid)?;
        let material = Arc::new(Material::new(ctx, share, path)?);
        let (states, bodies): (Vec<_>, Vec<_>) =
            (0..count).map(|place| Committed::new(ctx, Arc::clone(&material), place, rng)).unzip();
        Ok((Self::Committed(states), post_all(bodies)))
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        _: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        match self {
            Self::Committed(states) => {
                // All of them before anything is sent: no check has failed then.
                let shown = read_all::<Commit>(ctx, &inbox, states.len())?;
                let advanced = states
                    .into_iter()
                    .zip(&shown)
                    .map(|(state, shown)| state.advance(ctx, shown, rng))
                    .collect::<Result<Vec<_>, Fault>>()?;
                let (states, bodies) = advanced.into_iter().unzip();
                Ok(Next::Round(Self::Multiplied(states), post_all(bodies)))
            }
            Self::Multiplied(states) => {
                let shown = read_all::<Multiply>(ctx, &inbox, states.len())?;
                let made = states.into_iter().zip(&shown).map(|(state, shown)| state.finish(ctx, shown));
                made.collect::<Result<_, Fault>>().map(Next::Done)
            }
        }
    }

    fn judge(_: &SessionContext, _: AbortCause, _: PartyId, _: &[Arc<Envelope>]) -> bool {
        false
    }
}
