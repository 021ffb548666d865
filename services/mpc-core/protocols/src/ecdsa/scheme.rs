//! How keys of threshold ECDSA are dealt.

use engine::wire::{Malformed, Reader, Writer};
use engine::{PartyId, PartySet, ProtocolId, Secret, SessionContext, Threshold};
use primitives::secp256k1::{Point, Scalar};

use crate::bip32::CHAIN_CODE_BYTES;
use crate::dealing::{self, Curve, Generated, Held, Joint, Public, Scheme};

use super::curve::Secp256k1;
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
/// The terms that the parties of a reshare agree on.
pub type ReshareTerms = dealing::ReshareTerms<Ecdsa>;
/// The result that a party of a reshare ends with.
pub type Reshared = dealing::Reshared<Ecdsa>;

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
