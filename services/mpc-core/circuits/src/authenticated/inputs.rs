//! Inputs that a party cannot choose anew: bits that were authenticated before, and bits that both parties know.

use primitives::Secret;
use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::abort::Abort;
use super::bits::{Link, Share, mask};
use super::digest::tagged;
use super::pair::{Pair, Role};
use crate::line::Line;

/// A party's own input: its bits, 0 or 1.
pub type PrivateInput = Secret<Vec<u8>>;

/// Bits of both parties that each has authenticated to the other under the Δ of their [`Pair`]. A party that enters
/// them into an evaluation can enter no others.
#[derive(Default)]
#[cfg_attr(test, derive(Clone))]
pub struct FixedInput {
    /// The pair's; none if these are bits of several pairs, which no evaluation takes.
    pub(super) identity: Option<[u8; 32]>,
    /// This party's bits, 0 or 1.
    pub(super) bits: Zeroizing<Vec<u8>>,
    /// Their MACs under the peer's Δ.
    pub(super) macs: Zeroizing<Vec<u128>>,
    /// The keys of the peer's bits under this party's Δ.
    pub(super) keys: Zeroizing<Vec<u128>>,
}

impl FixedInput {
    /// Fixes inputs, this many bits of each party, for any number of evaluations. `purpose` is the same on both sides.
    ///
    /// # Errors
    /// A broken connection, a peer that fixes another number of bits or for another purpose, or one that fails a check.
    pub async fn new<L: Line>(
        pair: &Pair,
        purpose: &[u8; 32],
        own: &PrivateInput,
        channel: &mut L,
        rng: &mut (dyn CryptoRng + Send),
    ) -> Result<FixedInput, Abort> {
        pair.guard(async {
            let count = own.expose().len();
            let agreed =
                tagged("coterie/authenticated-garbling-fixed/1", &[purpose, &(count as u64).to_be_bytes()]);
            let mut link = Link::begin(pair, agreed, channel, rng).await?;
            let shares = link.random_shares(count, rng).await?;
            let mut fixed = FixedInput::of(link.identity(), &shares);
            let mut corrections = Zeroizing::new(Vec::with_capacity(count));
            for (own, random) in own.expose().iter().zip(fixed.bits.iter_mut()) {
                if *own > 1 {
                    return Err(Abort::Caller("the input is not made of bits"));
                }
                corrections.push(own ^ *random);
                *random = *own;
            }
            let theirs = link.exchange_bits(&corrections).await?;
            for (key, correction) in fixed.keys.iter_mut().zip(&theirs) {
                *key ^= *link.delta & mask(*correction);
            }
            Ok(fixed)
        })
        .await
    }

    /// The bits of both parties in shares of random ones.
    pub(super) fn of(identity: [u8; 32], shares: &[Share]) -> FixedInput {
        let mut fixed = FixedInput {
            identity: Some(identity),
            bits: Zeroizing::new(Vec::with_capacity(shares.len())),
            macs: Zeroizing::new(Vec::with_capacity(shares.len())),
            keys: Zeroizing::new(Vec::with_capacity(shares.len())),
        };
        fixed.bits.extend(shares.iter().map(|share| share.bit));
        fixed.macs.extend(shares.iter().map(|share| share.mac));
        fixed.keys.extend(shares.iter().map(|share| share.key));
        fixed
    }

    /// The first bits of both parties, which are no longer here.
    pub(super) fn take(&mut self, count: usize) -> FixedInput {
        FixedInput {
            identity: self.identity,
            bits: take(&mut self.bits, count),
            macs: take(&mut self.macs, count),
            keys: take(&mut self.keys, count),
        }
    }

    /// Several inputs, one after the other.
    #[must_use]
    pub fn joined(parts: &[&FixedInput]) -> FixedInput {
        let total = parts.iter().map(|part| part.bits.len()).sum();
        let first = parts.first().and_then(|part| part.identity);
        let mut all = FixedInput {
            identity: first.filter(|_| parts.iter().all(|part| part.identity == first)),
            bits: Zeroizing::new(Vec::with_capacity(total)),
            macs: Zeroizing::new(Vec::with_capacity(total)),
            keys: Zeroizing::new(Vec::with_capacity(total)),
        };
        for part in parts {
            all.bits.extend_from_slice(&part.bits);
            all.macs.extend_from_slice(&part.macs);
            all.keys.extend_from_slice(&part.keys);
        }
        all
    }
}

/// A party's input to an evaluation.
#[derive(Clone, Copy)]
pub enum Entry<'a> {
    /// Bits that it chooses now; the circuit takes no public ones.
    Free(&'a PrivateInput),
    /// Bits that it fixed before, as the peer does.
    Fixed {
        /// Those bits.
        input: &'a FixedInput,
        /// The circuit's third input, which both parties know, as bits.
        public: &'a [u8],
        /// A digest of the purpose of the evaluation, on which both parties must agree.
        purpose: [u8; 32],
    },
}

impl Entry<'_> {
    pub(super) fn bits(&self) -> &[u8] {
        match self {
            Entry::Free(input) => input.expose(),
            Entry::Fixed { input, .. } => &input.bits,
        }
    }

    /// Refuses bits that were fixed under another set-up.
    pub(super) fn belongs(&self, pair: &Pair) -> Result<(), Abort> {
        match self {
            Entry::Free(_) => Ok(()),
            Entry::Fixed { input, .. } => pair.owns(input.identity),
        }
    }

    /// Whether it fixes all bits that a circuit takes of this party and of the peer, or none.
    pub(super) fn fixes(&self, own: usize, theirs: usize) -> bool {
        match self {
            Entry::Free(_) => true,
            Entry::Fixed { input, .. } => input.macs.len() == own && input.keys.len() == theirs,
        }
    }

    pub(super) fn public(&self) -> &[u8] {
        match self {
            Entry::Free(_) => &[],
            Entry::Fixed { public, .. } => public,
        }
    }

    /// A digest on which both parties must agree before they say anything of their inputs.
    pub(super) fn agreed(&self, session: &[u8; 32]) -> Option<[u8; 32]> {
        match self {
            Entry::Free(_) => None,
            Entry::Fixed { public, purpose, .. } => {
                Some(tagged("coterie/authenticated-garbling-public/1", &[session, purpose, public]))
            }
        }
    }

    /// [Garbling 9, 10] A digest of the MACs of this party's public bits, which shows that they are those of its fixed
    /// input.
    pub(super) fn proof<L: Line>(&self, link: &mut Link<'_, L>, masks: &[Share]) -> Option<[u8; 32]> {
        let Entry::Fixed { input, .. } = self else { return None };
        let mut hash = Sha256::new();
        hash.update(link.step("coterie/authenticated-garbling-input/1", link.role()));
        for (mac, share) in input.macs.iter().zip(masks) {
            hash.update((mac ^ share.mac).to_le_bytes());
        }
        Some(hash.finalize().into())
    }

    /// [Garbling 9, 10] The proof that the peer must give for its public bits; `None` if its input is free.
    pub(super) fn expected<L: Line>(
        &self,
        link: &mut Link<'_, L>,
        masks: &[Share],
        publics: &[u8],
    ) -> Option<[u8; 32]> {
        let Entry::Fixed { input, .. } = self else { return None };
        let peer = match link.role() {
            Role::Garbler => Role::Evaluator,
            Role::Evaluator => Role::Garbler,
        };
        let mut hash = Sha256::new();
        hash.update(link.step("coterie/authenticated-garbling-input/1", peer));
        for (key, (share, public)) in input.keys.iter().zip(masks.iter().zip(publics)) {
            let bit = public ^ share.bit;
            hash.update((key ^ share.key ^ (*link.delta & mask(bit))).to_le_bytes());
        }
        Some(hash.finalize().into())
    }
}

/// The first elements, which are no longer there.
pub(super) fn take<T: Clone + zeroize::Zeroize>(
    list: &mut Zeroizing<Vec<T>>,
    count: usize,
) -> Zeroizing<Vec<T>> {
    let rest = Zeroizing::new(list.get(count..).unwrap_or(&[]).to_vec());
    let mut first = std::mem::replace(list, rest);
    // The tail is wiped in place before it is cut off.
    first.iter_mut().skip(count).for_each(zeroize::Zeroize::zeroize);
    first.truncate(count);
    first
}
