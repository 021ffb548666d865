//! The set-up of each two parties of a join: oblivious transfers in both directions, and a seed for a share of zero.
//! It is made in the join's first three rounds and dropped, and so wiped, with its last. Steps are cited as [T1].

use std::collections::BTreeMap;

use engine::{AbortCause, Fault, PartyId, Secret, SessionContext};
use primitives::bls12_381::{G1, Scalar};
use primitives::ot::{Initiator, OtError, PairState, Responder};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::messages::{Asked, Correction, Request, Response, SEED_BYTES, initiates};
use crate::tags;

type Half = Secret<[u8; SEED_BYTES]>;

/// The set-ups of one party with all its peers, while they are made.
pub(super) struct SetUps {
    me: PartyId,
    halves: BTreeMap<PartyId, Half>,
    initiators: BTreeMap<PartyId, Initiator>,
    responders: BTreeMap<PartyId, Responder>,
    pairs: BTreeMap<PartyId, Pair>,
}

/// The secrets that two parties share in one join.
pub(super) struct Pair {
    pub(super) transfers: PairState,
    /// The lower one adds it to its share and the higher one subtracts it.
    pub(super) zero: Secret<Scalar>,
    pub(super) zero_point: G1,
}

impl SetUps {
    /// [T1] half of a seed for each peer, a request for those towards which the party is the initiator.
    pub(super) fn begin(
        ctx: &SessionContext,
        me: PartyId,
        rng: &mut dyn CryptoRng,
    ) -> (Self, BTreeMap<PartyId, Request>) {
        let mut set_ups = Self {
            me,
            halves: BTreeMap::new(),
            initiators: BTreeMap::new(),
            responders: BTreeMap::new(),
            pairs: BTreeMap::new(),
        };
        let mut requests = BTreeMap::new();
        for peer in ctx.peers().iter() {
            let mut half = Secret::new([0u8; SEED_BYTES]);
            rng.fill_bytes(half.expose_mut());
            let sent = Secret::new(*half.expose());
            set_ups.halves.insert(peer, half);
            let mut transfer = Vec::new();
            if initiates(ctx, me, peer) {
                let (initiator, request) = Initiator::begin(&set_up_binding(ctx, me, peer), rng);
                set_ups.initiators.insert(peer, initiator);
                transfer = request;
            }
            requests.insert(peer, Request { half: sent, transfer: Asked::Bytes(transfer) });
        }
        (set_ups, requests)
    }

    /// [T2] answers requests.
    pub(super) fn respond(
        &mut self,
        ctx: &SessionContext,
        received: BTreeMap<PartyId, Request>,
        rng: &mut dyn CryptoRng,
    ) -> Result<BTreeMap<PartyId, Response>, Fault> {
        let mut responses = BTreeMap::new();
        for (peer, Request { half, transfer }) in received {
            let own = self.halves.remove(&peer).ok_or_else(Fault::internal)?;
            let seed = if self.me < peer { [own, half] } else { [half, own] };
            self.halves.insert(peer, joined(ctx, self.me.min(peer), self.me.max(peer), &seed));
            let mut answer = Vec::new();
            if let Asked::Points(request) = transfer {
                let (responder, response) =
                    Responder::respond(&set_up_binding(ctx, peer, self.me), &request, rng);
                self.responders.insert(peer, responder);
                answer = response;
            }
            responses.insert(peer, Response { transfer: answer });
        }
        Ok(responses)
    }

    /// [T3] checks responses; for the initiator both directions stand from here on.
    pub(super) fn correct(
        &mut self,
        ctx: &SessionContext,
        received: BTreeMap<PartyId, Response>,
        rng: &mut dyn CryptoRng,
    ) -> Result<BTreeMap<PartyId, Correction>, Fault> {
        let mut corrections = BTreeMap::new();
        for (peer, Response { transfer }) in received {
            let mut answer = Vec::new();
            if let Some(initiator) = self.initiators.remove(&peer) {
                let response = transfer.as_slice().try_into().map_err(|_| Fault::internal())?;
                let (transfers, correction) =
                    initiator.finish(response, rng).map_err(|error| pair_fault(error, peer))?;
                self.stand(ctx, peer, transfers)?;
                answer = correction;
            }
            corrections.insert(peer, Correction { transfer: answer });
        }
        Ok(corrections)
    }

    /// [T4.1] checks corrections, and has all pairs.
    pub(super) fn complete(
        mut self,
        ctx: &SessionContext,
        received: BTreeMap<PartyId, Correction>,
    ) -> Result<BTreeMap<PartyId, Pair>, Fault> {
        for (peer, Correction { transfer }) in received {
            if let Some(responder) = self.responders.remove(&peer) {
                let correction = transfer.as_slice().try_into().map_err(|_| Fault::internal())?;
                let transfers = responder.finish(correction).map_err(|error| pair_fault(error, peer))?;
                self.stand(ctx, peer, transfers)?;
            }
        }
        Ok(self.pairs)
    }

    fn stand(&mut self, ctx: &SessionContext, peer: PartyId, transfers: PairState) -> Result<(), Fault> {
        let seed = self.halves.remove(&peer).ok_or_else(Fault::internal)?;
        let mut transcript = pair(ctx, tags::ZERO_SHARE, self.me.min(peer), self.me.max(peer));
        transcript.append("seed", seed.expose());
        let zero = Secret::new(Scalar::from_wide(&Zeroizing::new(transcript.wide())));
        let zero_point = G1::mul_generator(&zero);
        self.pairs.insert(peer, Pair { transfers, zero, zero_point });
        Ok(())
    }
}

/// A failed check of a set-up or of a multiplication on it.
pub(super) fn pair_fault(error: OtError, peer: PartyId) -> Fault {
    match error {
        // Bodies are decoded before, so this is a scalar or a point inside the message of a multiplication.
        OtError::Malformed | OtError::CheckFailed => {
            Fault::evident(AbortCause::TransferCheckFailed, vec![peer])
        }
    }
}

fn pair(ctx: &SessionContext, tag: engine::Tag, lower: PartyId, higher: PartyId) -> engine::Transcript {
    let mut transcript = ctx.transcript().fork(tag, lower);
    transcript.append_u64("higher", u64::from(higher.get()));
    transcript
}

/// The digest that the transfers of a pair are bound to.
fn set_up_binding(ctx: &SessionContext, initiator: PartyId, responder: PartyId) -> [u8; 32] {
    let mut transcript = ctx.transcript().fork(tags::PAIR, initiator);
    transcript.append_u64("responder", u64::from(responder.get()));
    transcript.digest()
}

/// The seed of a pair: secret while one of the halves is, the lower party's first.
fn joined(ctx: &SessionContext, lower: PartyId, higher: PartyId, halves: &[Half; 2]) -> Half {
    let mut transcript = pair(ctx, tags::SEED, lower, higher);
    for half in halves {
        transcript.append("half", half.expose());
    }
    Secret::new(transcript.digest())
}
