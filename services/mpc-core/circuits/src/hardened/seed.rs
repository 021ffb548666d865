//! Seeds of wallets: split where their owner is, taken over by a pair of parties, and the roots that they have.

use std::collections::BTreeMap;

use hmac::{Hmac, KeyInit, Mac};
use primitives::Secret;
use primitives::secp256k1::{Scalar, decode_scalar, encode_point, mul_generator};
use rand_core::CryptoRng;
use sha2::Sha512;
use zeroize::Zeroizing;

use super::circuit::{Ready, SEED_BYTES, Step, StepCircuit, bytes};
use super::node::{Halves, Node, PublicNode};
use super::opened::Opened;
use super::slip10::Slip10Node;
use crate::authenticated::dabits::Secp256k1;
use crate::authenticated::digest::tagged;
use crate::authenticated::{Abort, Entry, FixedInput, Pair, Role, evaluate_keeping};
use crate::line::Line;

/// Parties of a seed, at most.
pub(super) const MAX_PARTIES: usize = 20;

/// One party's part of a seed: for each other party a share that gives the seed by exclusive or with that party's. It
/// is for nobody else, and lives sealed for its party until it arrives.
pub struct SeedShare {
    /// The party, from 1.
    pub number: u16,
    /// The root of BIP-32 for this seed, which every pair must find.
    pub root: PublicNode,
    pub(super) shares: BTreeMap<u16, Secret<Vec<u8>>>,
}

/// [Hardened 7] Splits a seed of 16 to 64 bytes for so many parties, numbered from 1; see [`split_seed_for`].
pub fn split_seed(seed: &Secret<Vec<u8>>, parties: u16, rng: &mut dyn CryptoRng) -> Option<Vec<SeedShare>> {
    split_seed_for(seed, &(1..=parties).collect::<Vec<u16>>(), rng)
}

/// [Hardened 7] Splits a seed of 16 to 64 bytes for parties of these numbers. `None` unless they are 2 to 20, none of
/// them zero, and ascend; and for a seed that has no root in BIP-32, which is one in 2^127.
pub fn split_seed_for(
    seed: &Secret<Vec<u8>>,
    parties: &[u16],
    rng: &mut dyn CryptoRng,
) -> Option<Vec<SeedShare>> {
    let seed = seed.expose();
    let ascending = parties.is_sorted_by(|a, b| a < b) && parties.first().is_some_and(|first| *first > 0);
    if !ascending || !(2..=MAX_PARTIES).contains(&parties.len()) || !SEED_BYTES.contains(&seed.len()) {
        return None;
    }
    let root = root_of(seed)?;
    let mut parts: Vec<SeedShare> =
        parties.iter().map(|number| SeedShare { number: *number, root, shares: BTreeMap::new() }).collect();
    for (first, one) in parties.iter().enumerate() {
        for (second, other) in parties.iter().enumerate().skip(first + 1) {
            let mut random = Secret::new(vec![0u8; seed.len()]);
            rng.fill_bytes(random.expose_mut());
            let mut rest = Secret::new(vec![0u8; seed.len()]);
            for (place, (a, b)) in rest.expose_mut().iter_mut().zip(random.expose().iter().zip(seed)) {
                *place = a ^ b;
            }
            parts.get_mut(first)?.shares.insert(*other, random);
            parts.get_mut(second)?.shares.insert(*one, rest);
        }
    }
    Some(parts)
}

/// The root of BIP-32 for a whole seed.
fn root_of(seed: &[u8]) -> Option<PublicNode> {
    let mut mac = Hmac::<Sha512>::new_from_slice(b"Bitcoin seed").ok()?;
    mac.update(seed);
    let digest: Zeroizing<[u8; 64]> = Zeroizing::new(mac.finalize().into_bytes().into());
    let (left, right) = digest.split_first_chunk::<32>()?;
    let key = Zeroizing::new(decode_scalar(left)?);
    let chain_code = right.try_into().ok()?;
    (*key != Scalar::ZERO).then(|| PublicNode { public_key: encode_point(&mul_generator(&key)), chain_code })
}

/// A pair's seed whose root has not been found yet: a share of it may be wrong.
#[must_use]
#[cfg_attr(test, derive(Clone))]
pub struct UnconfirmedSeed(PairSeed);

/// A seed as two of its parties hold it.
#[cfg_attr(test, derive(Clone))]
pub struct PairSeed {
    root: PublicNode,
    bytes: usize,
    seed: FixedInput,
}

impl SeedShare {
    /// [Hardened 8] Takes the seed over together with a peer: fixes both shares of it. The party with the lower number
    /// garbles.
    ///
    /// # Errors
    /// A set-up in the other role, a broken connection, or a peer that deviates.
    pub async fn join<L: Line>(
        &self,
        pair: &Pair,
        peer: u16,
        channel: &mut L,
        rng: &mut (dyn CryptoRng + Send),
    ) -> Result<UnconfirmedSeed, Abort> {
        let role = if self.number < peer { Role::Garbler } else { Role::Evaluator };
        let Some(share) = self.shares.get(&peer).filter(|_| role == pair.role()) else {
            return Err(Abort::Caller(
                "the peer has no share of this seed, or the other role in this set-up",
            ));
        };
        let mut bits = Secret::new(Vec::with_capacity(8 * share.expose().len()));
        bits.expose_mut().extend(share.expose().iter().flat_map(|byte| (0..8).map(move |i| byte >> i & 1)));
        let purpose = tagged("coterie/hardened-seed/1", &[&self.root.public_key, &self.root.chain_code]);
        let seed = FixedInput::new(pair, &purpose, &bits, channel, rng).await?;
        Ok(UnconfirmedSeed(PairSeed { root: self.root, bytes: share.expose().len(), seed }))
    }
}

impl UnconfirmedSeed {
    /// The seed, for tests of what follows.
    #[cfg(test)]
    pub(super) fn unchecked(self) -> PairSeed {
        self.0
    }

    /// Bytes of the seed.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// [Hardened 9] Ends the import with the root of BIP-32, which must be the owner's. Otherwise some share of the
    /// seed is wrong: the owner's, or the peer's.
    ///
    /// # Errors
    /// As [`PairSeed::root`].
    pub async fn confirm<L: Line>(
        self,
        pair: &Pair,
        circuit: &StepCircuit,
        ready: Ready,
        channel: &mut L,
    ) -> Result<(PairSeed, Node), Abort> {
        let root = self.0.root(pair, circuit, ready, channel).await?;
        Ok((self.0, root))
    }
}

impl PairSeed {
    /// Bytes of the seed.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn purpose(&self, step: &str) -> [u8; 32] {
        tagged(step, &[&self.root.public_key, &self.root.chain_code])
    }

    /// [Hardened 9] The root of BIP-32.
    ///
    /// # Errors
    /// Something prepared for another step or a seed of another length, a broken connection, another root than the
    /// owner's, or a peer that deviates: see [`Abort`].
    pub async fn root<L: Line>(
        &self,
        pair: &Pair,
        circuit: &StepCircuit,
        ready: Ready,
        channel: &mut L,
    ) -> Result<Node, Abort> {
        let (prepared, masks) = ready.open(pair, circuit, |step| step == Step::Master(self.bytes))?;
        let session = prepared.session();
        let input = FixedInput::joined(&[&self.seed, masks.input()]);
        let purpose = self.purpose("coterie/hardened-root/1");
        let entry = Entry::Fixed { input: &input, public: &circuit.public_wires(&[]), purpose };
        let (results, _) = evaluate_keeping(pair, prepared, entry, 0, channel).await?;
        // The owner's seed has a root, so that this one is another seed.
        let Some(Halves { masked, chain }) = Halves::of(&results)? else {
            return pair.guard(async { Err(Abort::Import) }).await;
        };
        let key = Opened::<Secp256k1>::new(pair, session, &masks, masked, channel).await?;
        let node = Node::sum(chain, &key.share, key.point, key.their_point);
        pair.guard(async { node.filter(|node| *node.public() == self.root).ok_or(Abort::Import) }).await
    }

    /// [Hardened 10] The root of SLIP-10 for Ed25519. Its key stays shared.
    ///
    /// # Errors
    /// As [`PairSeed::root`].
    pub async fn slip10<L: Line>(
        &self,
        pair: &Pair,
        circuit: &StepCircuit,
        ready: Ready,
        channel: &mut L,
    ) -> Result<Slip10Node, Abort> {
        let (prepared, _) = ready.open(pair, circuit, |step| step == Step::Slip10Master(self.bytes))?;
        let purpose = self.purpose("coterie/slip10-root/1");
        let entry = Entry::Fixed { input: &self.seed, public: &circuit.public_wires(&[]), purpose };
        let (chain, key) = evaluate_keeping(pair, prepared, entry, circuit.step().kept(), channel).await?;
        Ok(Slip10Node { key, chain_code: bytes(&chain)? })
    }
}
