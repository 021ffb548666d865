//! Everything that two parties do before they know their inputs.

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::abort::Abort;
use super::bits::{Link, Share};
use super::dabits::DaBits;
use super::digest::digest_of;
use super::evaluator::take_tables;
use super::garbler::make_tables;
use super::gates::products;
use super::pair::{Pair, Role};
use super::prepared::Prepared;
use super::triples::{bucket_size, random_triples};
use crate::circuit::Circuit;
use crate::line::Line;

/// AND gates of a circuit, at most: the triples of so many take some 1 GB while they are made.
pub const MAX_ANDS: usize = 1 << 20;

/// Bytes both ways of a leaky triple: a block, a bit and three authenticated bits of each party.
const LEAKY_BYTES: f64 = 2.0 * (16.0 + 0.125 + 3.0 * 31.0 / 8.0 + 0.125);
/// Bytes both ways of an AND gate beside its triples: a table, its mask, two opened differences, its public bit.
const GATE_BYTES: f64 = 32.125 + 2.0 * 31.0 / 8.0 + 0.5 + 0.125;

impl Prepared {
    /// Prepares one evaluation: both parts, the one that is independent of the circuit and the other.
    ///
    /// # Errors
    /// A broken connection, a circuit that is not the peer's, or a peer that fails a check: see [`Abort`].
    pub async fn new<L: Line>(
        pair: &Pair,
        circuit: &Circuit,
        channel: &mut L,
        rng: &mut (dyn CryptoRng + Send),
    ) -> Result<Prepared, Abort> {
        pair.guard(async {
            Self::prepare(&mut Link::begin(pair, digest_of(circuit), channel, rng).await?, circuit, rng).await
        })
        .await
    }

    /// Prepares one evaluation together with random bits that are shared as scalars too, this many of each party.
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub async fn with_dabits<L: Line>(
        pair: &Pair,
        circuit: &Circuit,
        count: usize,
        channel: &mut L,
        rng: &mut (dyn CryptoRng + Send),
    ) -> Result<(Prepared, DaBits), Abort> {
        pair.guard(async {
            let mut link = Link::begin(pair, digest_of(circuit), channel, rng).await?;
            let prepared = Self::prepare(&mut link, circuit, rng).await?;
            Ok((prepared, DaBits::random(&mut link, count, rng).await?))
        })
        .await
    }

    async fn prepare<L: Line>(
        link: &mut Link<'_, L>,
        circuit: &Circuit,
        rng: &mut (dyn CryptoRng + Send),
    ) -> Result<Prepared, Abort> {
        let ([first, second] | [first, second, _]) = circuit.inputs.as_slice() else {
            return Err(Abort::Caller("the circuit takes one input of each party, and one that is public"));
        };
        let ands = circuit.gates.iter().filter(|gate| gate.is_and()).count();
        if ands > MAX_ANDS {
            return Err(Abort::Caller("the circuit has more than 2^20 AND gates"));
        }
        let triples = random_triples(link, ands, rng).await?;
        let bits = first + second;
        let masks = link.random_shares(bits + ands, rng).await?;
        let (own, outs) = masks.split_at(bits);
        // The mask of a public input is zero: its public bit is its value.
        let mut inputs = Zeroizing::new(vec![Share::default(); circuit.inputs.iter().sum()]);
        for (mask, share) in inputs.iter_mut().zip(own) {
            *mask = *share;
        }
        let gates = products(link, circuit, &inputs, outs, &triples).await?;
        drop(triples);
        let (first, second) = own.split_at(*first);
        // Each party's masks are opened to it alone: the evaluator speaks first.
        let own_masks = match link.role() {
            Role::Garbler => {
                let own = link.receive_opened(first).await?;
                link.open_to_peer(second)?;
                own
            }
            Role::Evaluator => {
                link.open_to_peer(first)?;
                link.receive_opened(second).await?
            }
        };
        let part = match link.role() {
            Role::Garbler => make_tables(link, circuit, &inputs, &gates, rng)?,
            Role::Evaluator => take_tables(link, ands).await?,
        };
        let (circuit, identity, session) = (circuit.clone(), link.identity(), link.session());
        Ok(Prepared { circuit, identity, session, part, inputs, gates, own_masks })
    }
}

/// Bytes both ways of an authenticated evaluation, about.
#[must_use]
pub fn expected_bytes(ands: usize) -> f64 {
    ands as f64 * (LEAKY_BYTES * bucket_size(ands.max(1)) as f64 + GATE_BYTES)
}
