//! The set-up of two parties, and its end.

use std::sync::atomic::{AtomicBool, Ordering};

use primitives::ot::{CORRECTION_BYTES, Initiator, PairState, REQUEST_BYTES, RESPONSE_BYTES, Responder};
use rand_core::CryptoRng;

use super::abort::Abort;
use super::digest::tagged;
use crate::line::Line;

/// The two parts of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Makes the tables.
    Garbler,
    /// Opens them.
    Evaluator,
}

/// The set-up that two parties keep for circuits: apart from every other set-up of theirs, since the garbler's Δ is
/// odd.
///
/// The first check that fails here ends it, for all runs that are under way: failing or not told the peer whether its
/// guess was right.
pub struct Pair {
    pub(super) role: Role,
    pub(super) state: PairState,
    /// A digest of the set-up's messages, by which what is made under this Δ is told from what is made under another.
    pub(super) identity: [u8; 32],
    pub(super) ended: AtomicBool,
}

impl Pair {
    /// This party's part.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether a check failed, or the caller ended it, so that nothing is done with this set-up any more.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Ends this set-up, for runs that are under way too: they stop at their next check, without a result.
    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    /// Tells this set-up from every other. The same at both parties, and no secret.
    #[must_use]
    pub fn identity(&self) -> [u8; 32] {
        self.identity
    }

    /// Stops a run whose peer failed a check in this run or another. Each run asks this between a check that tells of a
    /// guess and the next message, so that guesses in several runs at a time tell no more than one.
    pub(crate) fn go_on(&self) -> Result<(), Abort> {
        if self.ended() { Err(Abort::Caller("this set-up has ended")) } else { Ok(()) }
    }

    /// Refuses the caller that brings what belongs to another set-up: the check of it would fail, and exclude an honest
    /// peer.
    pub(crate) fn owns(&self, identity: Option<[u8; 32]>) -> Result<(), Abort> {
        match identity == Some(self.identity) {
            true => Ok(()),
            false => Err(Abort::Caller("this was prepared or fixed under another set-up")),
        }
    }

    /// Does a step with the peer, and ends this set-up if the peer deviates.
    pub(crate) async fn guard<T>(&self, step: impl Future<Output = Result<T, Abort>>) -> Result<T, Abort> {
        self.go_on()?;
        step.await.inspect_err(|abort| {
            if abort.excludes_peer() {
                self.end();
            }
        })
    }

    /// Sets up with the peer. `binding` names both parties and the purpose, and is the same on both sides.
    ///
    /// # Errors
    /// A broken connection, or a peer that fails a check.
    pub async fn set_up<L: Line>(
        role: Role,
        binding: &[u8; 32],
        channel: &mut L,
        rng: &mut (dyn CryptoRng + Send),
    ) -> Result<Pair, Abort> {
        let failed = |_| Abort::Transfer;
        let identity = |request: &[u8], response: &[u8], corrections: &[u8]| {
            tagged("coterie/authenticated-garbling-pair/1", &[binding, request, response, corrections])
        };
        let (state, identity) = match role {
            Role::Garbler => {
                let (initiator, request) = Initiator::begin_odd(binding, rng);
                channel.say(&request)?;
                let response = channel.block::<RESPONSE_BYTES>().await?;
                let (state, corrections) = initiator.finish(&response, rng).map_err(failed)?;
                channel.say(&corrections)?;
                (state, identity(&request, &response, &corrections))
            }
            Role::Evaluator => {
                let request = channel.block::<REQUEST_BYTES>().await?;
                let (responder, response) = Responder::answer_even(binding, &request, rng).map_err(failed)?;
                channel.say(&response)?;
                let corrections = channel.block::<CORRECTION_BYTES>().await?;
                let state = responder.finish(&corrections).map_err(failed)?;
                (state, identity(&request, &response, &corrections))
            }
        };
        Ok(Pair { role, state, identity, ended: AtomicBool::new(false) })
    }
}
