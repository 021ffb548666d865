//! The stored parts of a key: the public data, the same at every party, and one party's share.

use engine::seal::{DataKey, SealKind, ShareLabel};
use engine::wire::{Malformed, Reader, Writer};
use engine::{MAX_KEY_ID_BYTES, MAX_PARTIES, PartyId, PartySet, Secret, Threshold};
use primitives::bls12_381::{G1, G1_COMPRESSED_BYTES, G2_COMPRESSED_BYTES, Scalar};
use primitives::declassify::published;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::share::{self, OpenShareError};

/// The family named in the label of a sealed share.
pub const FAMILY: &str = "bls12-381";
/// Domain separation tag of proofs of possession (draft-irtf-cfrg-bls-signature, section 4.2.3).
pub const POSSESSION_DOMAIN: &[u8] = b"BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

/// The public point of one party's signing share.
///
/// Encoded: it is decoded, and then checked, only where a wrong partial signature has to be found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerificationShare {
    /// Whose.
    pub party: PartyId,
    /// Compressed point of G1.
    pub point: [u8; G1_COMPRESSED_BYTES],
}

/// The public data of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyPublic {
    /// The key that verifiers use: compressed point of G1.
    pub public_key: [u8; G1_COMPRESSED_BYTES],
    /// Parties needed to sign.
    pub threshold: Threshold,
    /// Our name for the key.
    pub key_id: String,
    /// Generation of the shares.
    pub epoch: u32,
    /// One for each party of the key, ascending by party.
    pub verification_shares: Vec<VerificationShare>,
    /// Signature of the public key by itself under [`POSSESSION_DOMAIN`]: compressed point of G2.
    pub proof_of_possession: [u8; G2_COMPRESSED_BYTES],
}

impl KeyPublic {
    /// All parties of the key.
    pub fn parties(&self) -> PartySet {
        self.verification_shares.iter().map(|share| share.party).collect()
    }

    /// The public key as a point; `None` if it is not a valid one.
    pub fn point(&self) -> Option<G1> {
        G1::from_compressed(&self.public_key)
    }

    /// The public key as a point, if this is out of an own sealed share: checked when that was made.
    pub fn own_point(&self) -> Option<G1> {
        G1::from_own_compressed(&self.public_key)
    }

    /// One party's verification share as a point; `None` if there is none or it is not a valid one.
    pub fn verification_point(&self, party: PartyId) -> Option<G1> {
        let share = self.verification_shares.iter().find(|share| share.party == party)?;
        G1::from_compressed(&share.point)
    }

    /// Whether counts, lengths and order are right: at most [`MAX_PARTIES`], strictly ascending, threshold not above
    /// them.
    pub fn well_formed(&self) -> bool {
        let shares = &self.verification_shares;
        self.threshold.get() <= shares.len()
            && shares.len() <= MAX_PARTIES
            && shares.is_sorted_by(|a, b| a.party < b.party)
            && !self.key_id.is_empty()
            && self.key_id.len() <= MAX_KEY_ID_BYTES
            && self.epoch > 0
    }

    fn write(&self, writer: &mut Writer) {
        writer.bytes(&self.public_key);
        writer.bytes(&self.proof_of_possession);
        writer.u8(u8::try_from(self.verification_shares.len()).unwrap_or(u8::MAX));
        for share in &self.verification_shares {
            writer.u16(share.party.get());
            writer.bytes(&share.point);
        }
    }

    fn read(
        reader: &mut Reader<'_>,
        (key_id, epoch, threshold): (String, u32, Threshold),
    ) -> Result<Self, Malformed> {
        let public_key = published(*reader.array()?);
        let proof_of_possession = published(*reader.array()?);
        let count = usize::from(reader.u8()?);
        let mut verification_shares = Vec::with_capacity(count);
        for _ in 0..count {
            let party = PartyId::new(reader.u16()?.into()).ok_or(Malformed)?;
            verification_shares.push(VerificationShare { party, point: published(*reader.array()?) });
        }
        let public = Self { public_key, threshold, key_id, epoch, verification_shares, proof_of_possession };
        if public.well_formed() { Ok(public) } else { Err(Malformed) }
    }

    /// Writes the data that the parties of a refresh or reshare agree on: name, epoch and threshold, then what a share
    /// holds.
    pub fn encode(&self, writer: &mut Writer) {
        writer.sized(self.key_id.as_bytes());
        writer.u32(self.epoch);
        writer.u16(u16::try_from(self.threshold.get()).unwrap_or(u16::MAX));
        self.write(writer);
    }

    /// Reads what [`KeyPublic::encode`] wrote, checked as far as [`KeyPublic::well_formed`] does.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let key_id = core::str::from_utf8(reader.sized(MAX_KEY_ID_BYTES)?).map_err(|_| Malformed)?.to_owned();
        let epoch = reader.u32()?;
        let threshold = Threshold::new(reader.u16()?.into()).ok_or(Malformed)?;
        Self::read(reader, (key_id, epoch, threshold))
    }
}

/// All that one party keeps of a key. Wiped on drop.
pub struct KeyShare {
    pub(crate) party: PartyId,
    pub(crate) signing_share: Secret<Scalar>,
    pub(crate) public: KeyPublic,
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

    /// The share as a blob under the party's data key. `None` if the label is too long to be one of ours.
    pub fn seal(&self, key: &DataKey, rng: &mut dyn CryptoRng) -> Option<Vec<u8>> {
        let mut writer = Writer::with_capacity(2048);
        writer.bytes(Zeroizing::new(self.signing_share.expose().to_bytes()).as_slice());
        self.public.write(&mut writer);
        let plain = Zeroizing::new(writer.finish());
        key.seal(SealKind::KeyShare, &self.label().encode(), &[], &plain, rng)
    }

    /// Opens a sealed share that must be the one of `expected`.
    pub fn unseal(key: &DataKey, blob: &[u8], expected: &ShareLabel) -> Result<Self, OpenShareError> {
        share::unseal(key, blob, expected, |reader| Self::read(reader, expected))
    }

    /// As [`KeyShare::unseal`], and the share is the one whose point the public data have. Signing does without: a
    /// wrong share makes a partial signature that others refuse. A renewal with one would convict its own party.
    pub fn unseal_to_deal(key: &DataKey, blob: &[u8], expected: &ShareLabel) -> Result<Self, OpenShareError> {
        let share = Self::unseal(key, blob, expected)?;
        let point = published(G1::mul_generator(&share.signing_share).to_compressed());
        let own = VerificationShare { party: share.party, point };
        if share.public.verification_shares.contains(&own) { Ok(share) } else { Err(OpenShareError::Invalid) }
    }

    fn read(reader: &mut Reader<'_>, label: &ShareLabel) -> Result<Self, Malformed> {
        let signing_share = Secret::new(Scalar::from_bytes(reader.array()?).ok_or(Malformed)?);
        let ShareLabel { key_id, epoch, threshold, .. } = label.clone();
        let public = KeyPublic::read(reader, (key_id, epoch, threshold))?;
        let ours = public.parties().contains(label.party) && !signing_share.expose().is_zero();
        if ours { Ok(Self { party: label.party, signing_share, public }) } else { Err(Malformed) }
    }
}

/// For tests: shares as a party that does not follow the rules would have them.
#[cfg(feature = "forge")]
impl KeyShare {
    /// The share with its secret off by one, as a dealer would need it to deal something else than its contribution.
    pub fn shifted(self) -> Self {
        let signing_share = Secret::new(self.signing_share.expose().add(&Scalar::one()));
        Self { signing_share, ..self }
    }
}
