//! daBits: random bits of one party that are authenticated to the other twice, as bits and as scalars of a group.
//!
//! The steps are numbered in `docs/protocols/garbling.md`. The verifier has a key Γ of 128 bits for this session, drawn
//! as authenticated bits, so that each bit of Γ is the choice of an oblivious transfer. With it the prover's bit x is
//! authenticated in each column j *over the integers below 2^128*: M_j = K_j + x·Γ_j. The lowest bits of all M_j are a
//! MAC of x as a bit under Γ as a vector, and Σ 2^j M_j is a MAC of x as a scalar under Γ as a number: one commitment,
//! read in two ways, the second one modulo any order, since it holds over the integers. Only the prover sends anything
//! that depends on its bits, so there is nothing with which a verifier could make the run fail for one value of a bit
//! and not for the other.

mod check;
mod group;
#[cfg(test)]
mod tests;

use primitives::hedge::HedgedRng;
use rand_core::{CryptoRng, Rng};
use zeroize::Zeroizing;

use super::abort::Abort;
use super::bits::Link;
use super::inputs::{FixedInput, take};
use super::pair::{Pair, Role};
use super::prepared::Prepared;
use crate::line::Line;
use check::{COLUMNS, Challenge, PARITIES, Prover, Verifier};
pub(crate) use group::{Ed25519, Group, Secp256k1, point, scalar};

/// Random bits of both parties. The values that one party holds of its own and of the peer's bits fit those of the
/// other.
#[cfg_attr(test, derive(Clone))]
pub struct DaBits {
    input: FixedInput,
    /// The MACs of this party's bits as integers, under the peer's Γ.
    tags: Zeroizing<Vec<[u128; 2]>>,
    /// The keys of the peer's bits as integers.
    keys: Zeroizing<Vec<[u128; 2]>>,
    /// This party's Γ.
    gamma: Zeroizing<u128>,
}

/// A scalar of each party: this party's with its MAC, and the key of the peer's.
pub(crate) struct ScalarShare<G: Group> {
    value: Zeroizing<G::Scalar>,
    tag: Zeroizing<G::Scalar>,
    key: Zeroizing<G::Scalar>,
    gamma: Zeroizing<G::Scalar>,
}

/// Steps of binding shares are numbered from here, beyond those of preparation and evaluation.
const BINDING: u64 = 1 << 33;

impl<G: Group> ScalarShare<G> {
    /// This party's scalar.
    pub(crate) fn value(&self) -> &G::Scalar {
        &self.value
    }

    /// This party's MAC times the base point: it opens a point that the peer knows or gets.
    pub(crate) fn tag(&self) -> G::Encoding {
        G::encode(&G::mul_base(&self.tag))
    }

    /// [Garbling 18] Checks that a point is the peer's scalar times the base point. A point with a part of small order
    /// is refused before that: Γ times that part is guessed easily.
    pub(crate) fn check(&self, point: &G::Point, tag: &G::Encoding) -> Result<(), Abort> {
        let expected = G::mul_base(&self.key) + *point * *self.gamma;
        if !G::has_prime_order(point) || !G::same(&G::encode(&expected), tag) {
            return Err(Abort::Point);
        }
        Ok(())
    }
}

impl DaBits {
    /// The bits, for an evaluation.
    #[must_use]
    pub fn input(&self) -> &FixedInput {
        &self.input
    }

    /// The numbers that some of the bits make, the lowest first, modulo the order of a group.
    ///
    /// # Errors
    /// Not all of these bits are here: fewer would make a smaller mask, and none at all would unmask what they should
    /// hide.
    pub(crate) fn number<G: Group>(&self, range: std::ops::Range<usize>) -> Result<ScalarShare<G>, Abort> {
        let missing = Abort::Caller("there are fewer daBits than the number has bits");
        let (Some(bits), Some(tags), Some(keys)) =
            (self.input.bits.get(range.clone()), self.tags.get(range.clone()), self.keys.get(range))
        else {
            return Err(missing);
        };
        let part = |list: &[[u128; 2]]| G::number(list.iter().map(G::reduce));
        Ok(ScalarShare {
            value: G::number(bits.iter().map(|bit| G::Scalar::from(u64::from(*bit)))),
            tag: part(tags),
            key: part(keys),
            gamma: Zeroizing::new(G::reduce(&[*self.gamma, 0])),
        })
    }

    /// [Garbling 14 to 17] Makes this many of each party.
    pub(super) async fn random<L: Line>(
        link: &mut Link<'_, L>,
        count: usize,
        rng: &mut (dyn CryptoRng + Send),
    ) -> Result<DaBits, Abort> {
        let shares = link.random_shares(count + PARITIES + COLUMNS, rng).await?;
        let (bits, choices) = shares.split_at(count + PARITIES);
        let steps = [Role::Garbler, Role::Evaluator].map(|prover| link.step("coterie/dabits/1", prover));
        let [own, theirs] = match link.role() {
            Role::Garbler => steps,
            Role::Evaluator => [steps[1], steps[0]],
        };
        let mut word = [0u8; 32];
        HedgedRng::new("daBits challenge", &[&link.delta.to_le_bytes(), &theirs], rng).fill_bytes(&mut word);
        // Each challenge comes after the corrections that it is about.
        let (prover, verifier) = match link.role() {
            Role::Garbler => {
                let prover = Prover::correct(link, &own, bits, choices, rng)?;
                link.channel.flush()?;
                let challenge = link.channel.block().await?;
                let verifier = Verifier::receive(link, bits, choices).await?;
                let answer = prover.answer(bits, &Challenge::new(&own, &challenge, count));
                link.channel.send(&answer)?;
                link.channel.say(&word)?;
                (prover, verifier)
            }
            Role::Evaluator => {
                let verifier = Verifier::receive(link, bits, choices).await?;
                link.channel.send(&word)?;
                (Prover::correct(link, &own, bits, choices, rng)?, verifier)
            }
        };
        link.channel.flush()?;
        let answer = link.channel.block().await?;
        verifier.check(bits, *link.delta, &Challenge::new(&theirs, &word, count), &answer)?;
        link.go_on()?;
        if link.role() == Role::Evaluator {
            let challenge = link.channel.block().await?;
            link.channel.say(&prover.answer(bits, &Challenge::new(&own, &challenge, count)))?;
        }
        Ok(DaBits {
            input: FixedInput::of(link.identity(), bits.split_at(count).0),
            tags: take(&mut prover.columns.integers(), count),
            keys: take(&mut verifier.columns.integers(), count),
            gamma: verifier.gamma,
        })
    }

    /// The first bits, which are no longer here: each is used for one purpose.
    #[must_use]
    pub fn take(&mut self, count: usize) -> DaBits {
        DaBits {
            input: self.input.take(count),
            tags: take(&mut self.tags, count),
            keys: take(&mut self.keys, count),
            gamma: self.gamma.clone(),
        }
    }

    /// [Garbling 19] Binds a share of a key to [`Group::SHARE_BITS`] bits of each party: c = share - Σ 2^i x_i mod q is
    /// opened, and checked in the exponent against the point that the peer's share is known to have. A circuit that
    /// takes both c as public input and adds the bits modulo q computes on the shares, and on nothing else.
    ///
    /// # Errors
    /// A broken connection, or a peer whose share is not that of its point.
    pub(crate) async fn bind_share<G: Group, L: Line>(
        self,
        pair: &Pair,
        prepared: &Prepared,
        share: &G::Scalar,
        their_point: &G::Point,
        channel: &mut L,
    ) -> Result<BoundShare<G>, Abort> {
        if self.tags.len() != G::SHARE_BITS {
            return Err(Abort::Caller("a share is bound to as many daBits as the order has bits"));
        }
        pair.guard(async {
            prepared.belongs(pair)?;
            pair.owns(self.input.identity)?;
            let mut link = Link::resume(pair, prepared.session(), BINDING, channel);
            let number = self.number::<G>(0..G::SHARE_BITS)?;
            let own = *share - *number.value;
            // The garbler speaks first.
            let garbles = pair.role() == Role::Garbler;
            let say = |link: &mut Link<'_, L>| -> Result<(), Abort> {
                link.go_on()?;
                link.channel.send(&G::bytes(&own))?;
                Ok(link.channel.say(number.tag().as_ref())?)
            };
            if garbles {
                say(&mut link)?;
            }
            let theirs = G::scalar(&link.channel.block().await?)?;
            let mut tag = number.tag();
            link.channel.receive(tag.as_mut()).await?;
            number.check(&(*their_point - G::mul_base(&theirs)), &tag)?;
            if !garbles {
                say(&mut link)?;
            }
            let corrections = if garbles { [own, theirs] } else { [theirs, own] };
            Ok(BoundShare { input: self.input, corrections })
        })
        .await
    }
}

/// Shares of a key as inputs of an evaluation.
pub(crate) struct BoundShare<G: Group> {
    /// The secret part: [`Group::SHARE_BITS`] bits of each party.
    pub(crate) input: FixedInput,
    /// The public part, added modulo q to the garbler's bits and to the evaluator's.
    pub(crate) corrections: [G::Scalar; 2],
}
