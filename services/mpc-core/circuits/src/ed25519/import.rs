//! An Ed25519 key that existed before: split where its owner is, and taken over by a pair of parties.

use std::collections::BTreeMap;

use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use primitives::Secret;
use rand_core::CryptoRng;
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

use super::nonce::{NonceCircuit, blocks};
use super::rfc8032::{challenge, signature};
use super::sign::{NonceRecord, PairKey, Ready};
use crate::authenticated::dabits::{point, scalar};
use crate::authenticated::digest::tagged;
use crate::authenticated::{Abort, FixedInput, Pair, Role};
use crate::line::Line;

/// Parties of an imported key, at most.
pub(super) const MAX_PARTIES: u16 = 20;

/// The message whose signature ends an import. No application signs it: it is not a transaction of any chain.
pub const TEST_MESSAGE: &[u8] = b"coterie/ed25519-import-test/1";

/// A key split into shares, any two of which sign.
pub struct Import {
    /// The public key, as RFC 8032 encodes it.
    pub public_key: [u8; 32],
    /// The parties' shares, numbered from 1.
    pub shares: Vec<ImportedShare>,
}

/// One party's share of an imported key. It is for nobody else, and is sealed for that party until it arrives.
pub struct ImportedShare {
    /// The party, from 1.
    pub number: u16,
    /// The public key.
    pub public_key: [u8; 32],
    /// The public slope of the line through the secret scalar on which all shares are.
    pub(super) slope: [u8; 32],
    /// This party's point of the line: its secret part.
    pub(super) share: Secret<[u8; 32]>,
    /// This party's share of the prefix for each other party.
    pub(super) prefixes: BTreeMap<u16, Secret<[u8; 32]>>,
    /// The signature of [`TEST_MESSAGE`] by the owner.
    pub(super) test_signature: [u8; 64],
}

/// The public line on which the points of all shares are.
pub(super) struct PublicLine {
    key: EdwardsPoint,
    slope: EdwardsPoint,
}

impl PublicLine {
    fn at(&self, number: u16) -> EdwardsPoint {
        self.key + self.slope * Scalar::from(number)
    }
}

impl Import {
    /// Splits the key of a 32-byte seed for so many parties, 2 to 20, numbered from 1; `None` for another number.
    pub fn from_seed(seed: &Secret<[u8; 32]>, parties: u16, rng: &mut dyn CryptoRng) -> Option<Import> {
        Import::from_seed_for(seed, &(1..=parties).collect::<Vec<u16>>(), rng)
    }

    /// Splits an expanded key for so many parties, numbered from 1; see [`Import::from_expanded_for`].
    pub fn from_expanded(
        expanded: &Secret<[u8; 64]>,
        parties: u16,
        rng: &mut dyn CryptoRng,
    ) -> Option<Import> {
        Import::from_expanded_for(expanded, &(1..=parties).collect::<Vec<u16>>(), rng)
    }

    /// Splits the key of a 32-byte seed for parties of these numbers; see [`Import::from_expanded_for`].
    pub fn from_seed_for(
        seed: &Secret<[u8; 32]>,
        parties: &[u16],
        rng: &mut dyn CryptoRng,
    ) -> Option<Import> {
        let mut expanded = Secret::new([0u8; 64]);
        let digest: Zeroizing<[u8; 64]> = Zeroizing::new(Sha512::digest(seed.expose()).into());
        expanded.expose_mut().copy_from_slice(digest.as_slice());
        let (low, _) = expanded.expose_mut().split_at_mut(32);
        let clamped = Zeroizing::new(clamp_integer(low.try_into().ok()?));
        low.copy_from_slice(&*clamped);
        Import::from_expanded_for(&expanded, parties, rng)
    }

    /// Splits an expanded key, the secret scalar and then the prefix, for parties of these numbers. `None` unless they
    /// are 2 to 20, none of them zero, and ascend.
    pub fn from_expanded_for(
        expanded: &Secret<[u8; 64]>,
        parties: &[u16],
        rng: &mut dyn CryptoRng,
    ) -> Option<Import> {
        let ascending = parties.is_sorted_by(|a, b| a < b) && parties.first().is_some_and(|first| *first > 0);
        if !ascending || !(2..=usize::from(MAX_PARTIES)).contains(&parties.len()) {
            return None;
        }
        let (low, prefix) = expanded.expose().split_first_chunk::<32>()?;
        let secret = Zeroizing::new(Scalar::from_bytes_mod_order(*low));
        let slope = Zeroizing::new(random_scalar(rng));
        let public_key = EdwardsPoint::mul_base(&secret).compress().to_bytes();
        let slope_point = EdwardsPoint::mul_base(&slope).compress().to_bytes();
        let test_signature = sign(&secret, prefix, &public_key, TEST_MESSAGE);
        let mut shares: Vec<ImportedShare> = parties
            .iter()
            .map(|number| ImportedShare {
                number: *number,
                public_key,
                slope: slope_point,
                share: Secret::new((*secret + Scalar::from(*number) * *slope).to_bytes()),
                prefixes: BTreeMap::new(),
                test_signature,
            })
            .collect();
        for (first, one) in parties.iter().enumerate() {
            for (second, other) in parties.iter().enumerate().skip(first + 1) {
                let mut random = Secret::new([0u8; 32]);
                rng.fill_bytes(random.expose_mut());
                let mut rest = Secret::new([0u8; 32]);
                for (place, (a, b)) in
                    rest.expose_mut().iter_mut().zip(random.expose().iter().zip(prefix.iter()))
                {
                    *place = a ^ b;
                }
                shares.get_mut(first)?.prefixes.insert(*other, random);
                shares.get_mut(second)?.prefixes.insert(*one, rest);
            }
        }
        Some(Import { public_key, shares })
    }
}

/// The signature by the whole key.
fn sign(secret: &Scalar, prefix: &[u8], public_key: &[u8; 32], message: &[u8]) -> [u8; 64] {
    let digest: Zeroizing<[u8; 64]> =
        Zeroizing::new(Sha512::new().chain_update(prefix).chain_update(message).finalize().into());
    let nonce = Zeroizing::new(Scalar::from_bytes_mod_order_wide(&digest));
    let nonce_point = EdwardsPoint::mul_base(&nonce).compress().to_bytes();
    let response = *nonce + challenge(&nonce_point, public_key, message) * secret;
    signature(&nonce_point, &response)
}

fn random_scalar(rng: &mut dyn CryptoRng) -> Scalar {
    let mut wide = Zeroizing::new([0u8; 64]);
    rng.fill_bytes(wide.as_mut_slice());
    Scalar::from_bytes_mod_order_wide(&wide)
}

/// A pair's key that has not made the test signature yet.
#[must_use]
pub struct Unconfirmed {
    key: PairKey,
    test_signature: [u8; 64],
}

impl ImportedShare {
    /// The line of the key, and this party's share, which is that of its point; `None` if it is not, or if a point has
    /// a part of small order.
    pub(super) fn checked(&self) -> Option<(PublicLine, Zeroizing<Scalar>)> {
        let line = PublicLine { key: point(&self.public_key).ok()?, slope: point(&self.slope).ok()? };
        let share = Zeroizing::new(scalar(self.share.expose()).ok()?);
        let points = line.key.is_torsion_free() && line.slope.is_torsion_free();
        // With a slope of zero every share would be the key.
        let splits = line.slope != EdwardsPoint::default();
        (points && splits && EdwardsPoint::mul_base(&share) == line.at(self.number)).then_some((line, share))
    }

    /// The points of all parties' shares, ascending by number; `None` if the share is not one.
    #[must_use]
    pub fn points(&self) -> Option<Vec<(u16, [u8; 32])>> {
        let (line, _) = self.checked()?;
        let mut numbers: Vec<u16> = self.peers().chain([self.number]).collect();
        numbers.sort_unstable();
        Some(numbers.into_iter().map(|number| (number, line.at(number).compress().to_bytes())).collect())
    }

    /// [Ed25519 2] Takes the key over together with a peer: checks the share against its public point, and fixes both
    /// shares of the prefix.
    ///
    /// # Errors
    /// A share that does not fit its point, a set-up in the other role, a broken connection, or a peer that deviates.
    /// The party with the lower number garbles.
    pub async fn join<L: Line>(
        &self,
        pair: &Pair,
        peer: u16,
        channel: &mut L,
        rng: &mut (dyn CryptoRng + Send),
    ) -> Result<Unconfirmed, Abort> {
        let role = if self.number < peer { Role::Garbler } else { Role::Evaluator };
        let prefix = self.prefixes.get(&peer).filter(|_| role == pair.role());
        let Some(prefix) = prefix else {
            return Err(Abort::Caller("the peer has no share of this key, or the other role in this set-up"));
        };
        let not_ours = Abort::Caller("the share is not one of this key");
        let Some((line, share)) = self.checked() else { return Err(not_ours) };
        // Lagrange's coefficients of the line at 0.
        let (own, other) = (Scalar::from(self.number), Scalar::from(peer));
        let (own_weight, their_weight) = (other * (other - own).invert(), own * (own - other).invert());
        let mut bits = Secret::new(Vec::with_capacity(256));
        bits.expose_mut().extend(prefix.expose().iter().flat_map(|byte| (0..8).map(move |i| byte >> i & 1)));
        let purpose = tagged("coterie/ed25519-prefix/1", &[&self.public_key, &self.slope]);
        let prefix = FixedInput::new(pair, &purpose, &bits, channel, rng).await?;
        let key = PairKey {
            public_key: self.public_key,
            share: Secret::new((*share * own_weight).to_bytes()),
            point: line.at(self.number) * own_weight,
            their_point: line.at(peer) * their_weight,
            prefix,
        };
        Ok(Unconfirmed { key, test_signature: self.test_signature })
    }
}

impl Unconfirmed {
    /// The key, for tests with another circuit than that of the test signature.
    #[cfg(test)]
    pub(super) fn unchecked(self) -> PairKey {
        self.key
    }

    /// [Ed25519 3] Ends the import with the test signature, which must be the owner's. Otherwise some share of the
    /// prefix is wrong: the owner's, or the peer's.
    ///
    /// # Errors
    /// As for signing, and another signature.
    pub async fn confirm<L: Line>(
        self,
        pair: &Pair,
        record: &mut (dyn NonceRecord + Send),
        channel: &mut L,
        rng: &mut (dyn CryptoRng + Send),
    ) -> Result<PairKey, Abort> {
        let circuit = NonceCircuit::new(blocks(TEST_MESSAGE.len())).ok_or(Abort::Caller("no circuit"))?;
        let ready = Ready::new(pair, &circuit, channel, rng).await?;
        let nonce = self.key.open_nonce(pair, &circuit, ready, TEST_MESSAGE, channel).await?;
        // Another nonce is not recorded, so that the import can be repeated.
        if !self.test_signature.starts_with(nonce.point()) {
            return pair.guard(async { Err(Abort::Import) }).await;
        }
        let settled = record.settle(&self.key.public_key, nonce.message(), nonce.point());
        let recorded = settled.map_err(Abort::Record)?;
        let signature = self.key.answer(pair, &circuit, nonce, TEST_MESSAGE, &recorded, channel).await?;
        let same = signature == self.test_signature;
        pair.guard(async { if same { Ok(self.key) } else { Err(Abort::Import) } }).await
    }
}
