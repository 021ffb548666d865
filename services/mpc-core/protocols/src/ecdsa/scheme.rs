//! How keys of threshold ECDSA are dealt.

use engine::wire::{Malformed, Reader, Writer};
use engine::{PartyId, PartySet, ProtocolId, Secret, SessionContext, Threshold};
use primitives::secp256k1::{
    self, POINT_BYTES, Point, Scalar, combine_public, decode_point, decode_scalar, encode_point,
    encode_scalar, mul_generator,
};
use zeroize::{Zeroize, Zeroizing};

use crate::bip32::CHAIN_CODE_BYTES;
use crate::dealing::{self, Curve, Generated, Held, Joint, Public, Scheme};

use super::key::{KeyPublic, KeyShare};
use super::transfers::{Pairs, Transfers};

/// Threshold ECDSA over secp256k1, as dealing sees it.
pub enum Ecdsa {}

/// Key generation.
pub type Keygen = dealing::Keygen<Ecdsa>;
/// New shares for the same parties.
pub type Refresh = dealing::Refresh<Ecdsa>;
/// New shares for other parties, or with another threshold.
pub type Reshare = dealing::Reshare<Ecdsa>;
/// What the parties of a reshare agree on.
pub type ReshareTerms = dealing::ReshareTerms<Ecdsa>;
/// What a party of a reshare ends with.
pub type Reshared = dealing::Reshared<Ecdsa>;

/// secp256k1 as the library of this core has it.
pub enum Secp256k1 {}

impl Curve for Secp256k1 {
    type Point = Point;
    type Scalar = Scalar;

    const POINT_BYTES: usize = POINT_BYTES;

    fn identity() -> Point {
        Point::IDENTITY
    }

    fn add_points(a: &Point, b: &Point) -> Point {
        *a + b
    }

    fn mul_point(point: &Point, scalar: &Scalar) -> Point {
        *point * scalar
    }

    fn mul_generator(scalar: &Scalar) -> Point {
        mul_generator(scalar)
    }

    fn combine_public(a: &Scalar, b: &Scalar, point: &Point) -> Point {
        combine_public(a, b, point)
    }

    fn encode_point(point: &Point) -> Option<Vec<u8>> {
        (*point != Point::IDENTITY).then(|| encode_point(point).to_vec())
    }

    fn decode_point(bytes: &[u8]) -> Option<Point> {
        decode_point(bytes.try_into().ok()?)
    }

    fn scalar(number: u16) -> Scalar {
        Scalar::from(u64::from(number))
    }

    fn add(a: &Scalar, b: &Scalar) -> Scalar {
        *a + b
    }

    fn sub(a: &Scalar, b: &Scalar) -> Scalar {
        *a - b
    }

    fn mul(a: &Scalar, b: &Scalar) -> Scalar {
        *a * b
    }

    fn invert_public(scalar: &Scalar) -> Option<Scalar> {
        scalar.invert().into_option()
    }

    fn encode_scalar(scalar: &Scalar) -> Zeroizing<Vec<u8>> {
        let mut bytes = encode_scalar(scalar);
        let encoding = Zeroizing::new(bytes.to_vec());
        bytes.zeroize();
        encoding
    }

    fn decode_scalar(bytes: &[u8]) -> Option<Scalar> {
        decode_scalar(bytes.try_into().ok()?)
    }

    fn reduce_wide(bytes: &[u8; 64]) -> Scalar {
        secp256k1::reduce_wide(bytes)
    }
}

impl Scheme for Ecdsa {
    type Curve = Secp256k1;
    type Companion = Transfers;
    type Public = KeyPublic;
    type Share = KeyShare;

    const REFRESH: ProtocolId = ProtocolId { number: 7, name: "ecdsa/refresh/2" };
    const RESHARE: ProtocolId = ProtocolId { number: 8, name: "ecdsa/reshare/2" };
    const CHAINED: bool = true;

    fn open(share: KeyShare) -> Held<Self> {
        let KeyShare { public, party, signing_share, .. } = share;
        Held { public, party, signing_share }
    }

    fn public(ctx: &SessionContext, joint: Joint<Secp256k1>, _: Option<KeyPublic>) -> Option<KeyPublic> {
        let shares = joint.verification_shares.into_iter();
        Some(KeyPublic {
            key_id: ctx.key_id().to_owned(),
            epoch: ctx.epoch(),
            threshold: ctx.threshold(),
            chain_code: joint.chain_code,
            public_key: Secp256k1::decode_point(&joint.public_key)?,
            verification_shares: shares.map(|(party, point, _)| (party, point)).collect(),
        })
    }

    fn share(public: KeyPublic, party: PartyId, signing_share: Secret<Scalar>, pairs: Pairs) -> KeyShare {
        KeyShare { public, party, signing_share, pairs }
    }
}

impl Generated for Ecdsa {
    const KEYGEN: ProtocolId = ProtocolId { number: 3, name: "ecdsa/keygen/2" };
}

impl Public<Secp256k1> for KeyPublic {
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

    fn public_point(&self) -> Option<Point> {
        Some(self.public_key)
    }

    fn verification_point(&self, party: PartyId) -> Option<Point> {
        let share = self.verification_shares.iter().find(|(holder, _)| *holder == party);
        share.map(|(_, point)| *point)
    }

    fn chain_code(&self) -> [u8; CHAIN_CODE_BYTES] {
        self.chain_code
    }
}
