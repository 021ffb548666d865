//! How shares of a BLS key are renewed. New keys come from rounds of their own, which check many points at once and
//! make the proof of possession.

use engine::wire::{Malformed, Reader, Writer};
use engine::{PartyId, PartySet, ProtocolId, Secret, SessionContext, Threshold};
use primitives::bls12_381::{G1, G1_COMPRESSED_BYTES, Scalar};
use zeroize::{Zeroize, Zeroizing};

use crate::bip32::CHAIN_CODE_BYTES;
use crate::dealing::{self, Curve, Held, Joint, Public, Scheme};

use super::key::{KeyPublic, KeyShare, VerificationShare};

/// Threshold BLS, as dealing sees it.
pub enum Bls {}

/// New shares for the same parties.
pub type Refresh = dealing::Refresh<Bls>;
/// New shares for other parties, or with another threshold.
pub type Reshare = dealing::Reshare<Bls>;
/// The terms that the parties of a reshare agree on.
pub type ReshareTerms = dealing::ReshareTerms<Bls>;
/// The result that a party of a reshare ends with.
pub type Reshared = dealing::Reshared<Bls>;

/// The subgroup of prime order in G1. Every decoded point is checked to be in it.
pub enum Subgroup {}

impl Curve for Subgroup {
    type Point = G1;
    type Scalar = Scalar;

    const POINT_BYTES: usize = G1_COMPRESSED_BYTES;

    fn identity() -> G1 {
        G1::identity()
    }

    fn add_points(a: &G1, b: &G1) -> G1 {
        a.plus(b)
    }

    fn mul_point(point: &G1, scalar: &Scalar) -> G1 {
        point.times_public(scalar)
    }

    fn mul_generator(scalar: &Scalar) -> G1 {
        G1::mul_generator(&Secret::new(scalar.copy()))
    }

    fn combine_public(a: &Scalar, b: &Scalar, point: &G1) -> G1 {
        G1::generator().times_public(a).plus(&point.times_public(b))
    }

    fn encode_point(point: &G1) -> Option<Vec<u8>> {
        (!point.is_identity()).then(|| point.to_compressed().to_vec())
    }

    fn decode_point(bytes: &[u8]) -> Option<G1> {
        G1::from_compressed(bytes.try_into().ok()?)
    }

    fn scalar(number: u16) -> Scalar {
        Scalar::from_u64(u64::from(number))
    }

    fn add(a: &Scalar, b: &Scalar) -> Scalar {
        a.add(b)
    }

    fn sub(a: &Scalar, b: &Scalar) -> Scalar {
        a.sub(b)
    }

    fn mul(a: &Scalar, b: &Scalar) -> Scalar {
        a.mul(b)
    }

    fn invert_public(scalar: &Scalar) -> Option<Scalar> {
        (!scalar.is_zero()).then(|| scalar.inverse_of_public())
    }

    fn encode_scalar(scalar: &Scalar) -> Zeroizing<Vec<u8>> {
        let mut bytes = scalar.to_bytes();
        let encoding = Zeroizing::new(bytes.to_vec());
        bytes.zeroize();
        encoding
    }

    fn decode_scalar(bytes: &[u8]) -> Option<Scalar> {
        Scalar::from_bytes(bytes.try_into().ok()?)
    }

    fn reduce_wide(bytes: &[u8; 64]) -> Scalar {
        Scalar::from_wide(bytes)
    }
}

impl Scheme for Bls {
    type Curve = Subgroup;
    type Companion = ();
    type Public = KeyPublic;
    type Share = KeyShare;

    const REFRESH: ProtocolId = ProtocolId { number: 9, name: "bls/refresh/1" };
    const RESHARE: ProtocolId = ProtocolId { number: 10, name: "bls/reshare/1" };
    const CHAINED: bool = false;

    fn open(KeyShare { public, party, signing_share }: KeyShare) -> Held<Self> {
        Held { public, party, signing_share }
    }

    /// Key and proof of possession stay, byte for byte.
    fn public(ctx: &SessionContext, joint: Joint<Subgroup>, base: Option<KeyPublic>) -> Option<KeyPublic> {
        let KeyPublic { public_key, proof_of_possession, .. } = base?;
        let share = |(party, point, _): (PartyId, G1, Vec<u8>)| VerificationShare {
            party,
            point: point.to_compressed(),
        };
        (joint.public_key == public_key).then(|| KeyPublic {
            public_key,
            threshold: ctx.threshold(),
            key_id: ctx.key_id().to_owned(),
            epoch: ctx.epoch(),
            verification_shares: joint.verification_shares.into_iter().map(share).collect(),
            proof_of_possession,
        })
    }

    fn share(public: KeyPublic, party: PartyId, signing_share: Secret<Scalar>, (): ()) -> KeyShare {
        KeyShare { public, party, signing_share }
    }
}

impl Public<Subgroup> for KeyPublic {
    fn encode(&self, writer: &mut Writer) {
        Self::encode(self, writer);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::decode(reader)
    }

    fn key_id(&self) -> &str {
        &self.key_id
    }

    fn epoch(&self) -> u32 {
        self.epoch
    }

    fn threshold(&self) -> Threshold {
        self.threshold
    }

    fn parties(&self) -> PartySet {
        Self::parties(self)
    }

    fn public_point(&self) -> Option<G1> {
        self.point()
    }

    fn verification_point(&self, party: PartyId) -> Option<G1> {
        Self::verification_point(self, party)
    }

    fn chain_code(&self) -> [u8; CHAIN_CODE_BYTES] {
        [0; CHAIN_CODE_BYTES]
    }
}
