//! Distributed key generation: Pedersen's with Feldman commitments, committed before opened, in four rounds.
//!
//! Specification, blame rules and reasons for deviations: `docs/protocols/bls.md`; steps are cited as [K1.2].
//!
//! | paper | here |
//! |---|---|
//! | a_k, f | `polynomial` of `rounds::Committed` |
//! | C_(j,k) | `points` of party j's `messages::Opening` |
//! | C_k | `joint::Joint::points` |
//! | s_(j,i) | `messages::Share` |
//! | x_i, X_i | `signing_share`, `verification_points` of `rounds::Confirmed` |

mod blame;
#[cfg(feature = "forge")]
pub mod forge;
mod joint;
mod messages;
mod proof;
mod rounds;

use std::sync::Arc;

use engine::{
    AbortCause, Delivery, Envelope, Fault, History, Inbox, Next, Outbox, PartyId, Protocol, ProtocolId,
    RoundRule, SessionContext, SetupError,
};
use primitives::bls12_381::{G2_UNCOMPRESSED_BYTES, SCALAR_BYTES};
use rand_core::CryptoRng;

use crate::bls::key::KeyShare;

use messages::{DIGEST_BYTES, MAX_OPENING_BYTES};
use proof::PROOF_BYTES;

pub use rounds::{Committed, Confirmed, Dealt, Keygen, Opened};

impl Protocol for Keygen {
    const ID: ProtocolId = ProtocolId { number: 1, name: "bls/keygen/1" };
    const SIGNED: bool = true;
    const ROUNDS: &'static [RoundRule] = &[
        RoundRule { delivery: Delivery::Broadcast, max_body: DIGEST_BYTES },
        RoundRule { delivery: Delivery::Broadcast, max_body: MAX_OPENING_BYTES },
        RoundRule { delivery: Delivery::Private, max_body: SCALAR_BYTES },
        RoundRule { delivery: Delivery::Broadcast, max_body: PROOF_BYTES + G2_UNCOMPRESSED_BYTES },
    ];
    type Input = ();
    type Output = KeyShare;

    fn start(ctx: &SessionContext, (): (), rng: &mut dyn CryptoRng) -> Result<(Self, Outbox), SetupError> {
        rounds::start(ctx, rng)
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        match self {
            Keygen::Committed(round) => round.advance(ctx, &inbox),
            Keygen::Opened(round) => round.advance(ctx, &inbox, history, rng),
            Keygen::Dealt(round) => round.advance(ctx, &inbox, history, rng),
            Keygen::Confirmed(round) => round.advance(ctx, &inbox, history, rng),
        }
    }

    fn judge(ctx: &SessionContext, cause: AbortCause, accused: PartyId, evidence: &[Arc<Envelope>]) -> bool {
        blame::judge(ctx, cause, accused, evidence)
    }
}
