//! The parts of a key: its public data, and one party's share.

use std::collections::BTreeMap;

use engine::seal::{DataKey, SealKind, ShareLabel};
use engine::wire::{Malformed, Reader, Writer};
use engine::{MAX_KEY_ID_BYTES, MAX_PARTIES, PartyId, PartySet, Secret, Threshold};
use primitives::declassify::{published, published_bytes};
use primitives::ot::{PAIR_STATE_BYTES, PairState};
use primitives::secp256k1::{
    Point, Scalar, decode_point, decode_scalar, encode_point, encode_scalar, mul_generator,
};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::bip32::{CHAIN_CODE_BYTES, DerivationPath, Derived, derive, extended_public_key};
use crate::dealing;
use crate::share::{self, OpenShareError};

use super::curve::Secp256k1;

/// Which protocols can use these shares.
pub const FAMILY: &str = "ecdsa-secp256k1";
/// Bytes of the seed from which a pair draws shares of zero.
pub(super) const ZERO_SEED_BYTES: usize = 32;

/// The public data of a key, the same for all parties.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyPublic {
    /// Our name for the key.
    pub key_id: String,
    /// Generation of its shares.
    pub epoch: u32,
    /// Parties needed to sign.
    pub threshold: Threshold,
    /// The joint key.
    pub public_key: Point,
    /// Its BIP-32 chain code.
    pub chain_code: [u8; CHAIN_CODE_BYTES],
    /// The public point of each party's signing share, ascending by party.
    pub verification_shares: Vec<(PartyId, Point)>,
}

impl KeyPublic {
    /// All parties of the key.
    pub fn parties(&self) -> PartySet {
        self.verification_shares.iter().map(|(party, _)| *party).collect()
    }

    /// The child key at `path`.
    pub fn derive(&self, path: &DerivationPath) -> Option<Derived> {
        derive(&self.public_key, &self.chain_code, path)
    }

    /// The joint key as an `xpub`.
    pub fn extended_public_key(&self) -> String {
        extended_public_key(&self.public_key, &self.chain_code)
    }

    /// The encoding inside sealed shares.
    pub fn encode(&self, writer: &mut Writer) {
        writer.sized(self.key_id.as_bytes());
        writer.u32(self.epoch);
        writer.u16(u16::try_from(self.threshold.get()).unwrap_or(u16::MAX));
        writer.bytes(&encode_point(&self.public_key));
        writer.bytes(&self.chain_code);
        writer.u16(u16::try_from(self.verification_shares.len()).unwrap_or(u16::MAX));
        for (party, point) in &self.verification_shares {
            writer.u16(party.get());
            writer.bytes(&encode_point(point));
        }
    }

    /// Reads what [`KeyPublic::encode`] wrote, checked: parties ascending, 2 <= threshold <= parties, no point the
    /// identity.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let key_id = core::str::from_utf8(published_bytes(reader.sized(MAX_KEY_ID_BYTES)?))
            .map_err(|_| Malformed)?
            .to_owned();
        let epoch = reader.u32()?;
        let threshold = Threshold::new(reader.u16()?.into()).ok_or(Malformed)?;
        let public_key = decode_point(reader.array()?).ok_or(Malformed)?;
        let chain_code = published(*reader.array()?);
        let count = usize::from(reader.u16()?);
        if count > MAX_PARTIES {
            return Err(Malformed);
        }
        let verification_shares = (0..count)
            .map(|_| {
                let party = PartyId::new(reader.u16()?.into()).ok_or(Malformed)?;
                Ok((party, decode_point(reader.array()?).ok_or(Malformed)?))
            })
            .collect::<Result<Vec<_>, Malformed>>()?;
        let public = Self { key_id, epoch, threshold, public_key, chain_code, verification_shares };
        if public.well_formed() { Ok(public) } else { Err(Malformed) }
    }

    /// Whether counts and order are right: 2 <= threshold <= parties <= [`MAX_PARTIES`], parties strictly ascending.
    pub fn well_formed(&self) -> bool {
        let shares = &self.verification_shares;
        (2..=shares.len()).contains(&self.threshold.get())
            && shares.len() <= MAX_PARTIES
            && shares.is_sorted_by(|(a, _), (b, _)| a < b)
            && !self.key_id.is_empty()
            && self.key_id.len() <= MAX_KEY_ID_BYTES
            && self.epoch > 0
    }
}

/// The data that a party shares with one peer.
pub struct Pair {
    pub(super) zero_seed: Secret<[u8; ZERO_SEED_BYTES]>,
    pub(super) transfers: PairState,
}

/// All that one party keeps for a key.
#[must_use]
pub struct KeyShare {
    pub(super) public: KeyPublic,
    pub(super) party: PartyId,
    pub(super) signing_share: Secret<Scalar>,
    pub(super) pairs: BTreeMap<PartyId, Pair>,
}

impl KeyShare {
    /// The public data of the key.
    pub fn public(&self) -> &KeyPublic {
        &self.public
    }

    /// Whose share it is.
    pub fn party(&self) -> PartyId {
        self.party
    }

    /// The peers with whom this share can sign: all but those whose transfers were destroyed.
    pub fn usable_peers(&self) -> PartySet {
        self.pairs.keys().copied().collect()
    }

    /// Destroys what is shared with `peer`, for ever. This must follow an abort that excludes it, because each further
    /// failed check would tell it more about this party's secrets.
    pub fn exclude(&mut self, peer: PartyId) {
        self.pairs.remove(&peer);
    }

    /// Seals the share. Its label (family, key, party, epoch, threshold) stays readable and is bound to it.
    pub fn seal(&self, key: &DataKey, rng: &mut dyn CryptoRng) -> Option<Vec<u8>> {
        let mut writer = Writer::with_capacity(4096 + self.pairs.len() * (PAIR_STATE_BYTES + 64));
        self.encode(&mut writer);
        let secret = Zeroizing::new(writer.finish());
        key.seal(SealKind::KeyShare, &self.label().encode(), &[], &secret, rng)
    }

    /// Opens a sealed share that must be the one of `expected`, and checks that it is whole.
    pub fn unseal(key: &DataKey, blob: &[u8], expected: &ShareLabel) -> Result<Self, OpenShareError> {
        let share = share::unseal(key, blob, expected, Self::decode)?;
        if &share.label() == expected { Ok(share) } else { Err(OpenShareError::Invalid) }
    }

    /// The readable label of the sealed share.
    pub fn label(&self) -> ShareLabel {
        ShareLabel {
            family: FAMILY.to_owned(),
            key_id: self.public.key_id.clone(),
            party: self.party,
            epoch: self.public.epoch,
            threshold: self.public.threshold,
        }
    }

    fn encode(&self, writer: &mut Writer) {
        self.public.encode(writer);
        writer.u16(self.party.get());
        writer.bytes(Zeroizing::new(encode_scalar(self.signing_share.expose())).as_slice());
        writer.u16(u16::try_from(self.pairs.len()).unwrap_or(u16::MAX));
        for (peer, pair) in &self.pairs {
            writer.u16(peer.get());
            writer.bytes(pair.zero_seed.expose());
            writer.bytes(&pair.transfers.to_bytes());
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let public = KeyPublic::decode(reader)?;
        let party = PartyId::new(reader.u16()?.into()).ok_or(Malformed)?;
        let signing_share = Secret::new(decode_scalar(reader.array()?).ok_or(Malformed)?);
        let point = published(mul_generator(signing_share.expose()));
        if !public.verification_shares.contains(&(party, point)) {
            return Err(Malformed);
        }
        let parties = public.parties();
        let mut pairs = BTreeMap::new();
        for _ in 0..reader.u16()? {
            let peer = PartyId::new(reader.u16()?.into()).ok_or(Malformed)?;
            let zero_seed = Secret::new(*reader.array()?);
            let transfers = PairState::from_bytes(reader.array::<PAIR_STATE_BYTES>()?);
            if peer == party || !parties.contains(peer) {
                return Err(Malformed);
            }
            if pairs.insert(peer, Pair { zero_seed, transfers }).is_some() {
                return Err(Malformed);
            }
        }
        Ok(Self { public, party, signing_share, pairs })
    }
}

/// The coefficient with which `party`'s share enters the secret when `signers` sign.
pub(super) fn lagrange(signers: &PartySet, party: PartyId) -> Option<Scalar> {
    dealing::lagrange::<Secp256k1>(signers, party)
}

/// For tests: shares as a party that does not follow the rules would have them.
#[cfg(feature = "forge")]
impl KeyShare {
    /// The share with its secret off by one, as a dealer would need it to deal something else than its contribution.
    pub fn shifted(mut self) -> Self {
        *self.signing_share.expose_mut() += Scalar::ONE;
        self
    }
}
