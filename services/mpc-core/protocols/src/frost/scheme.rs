//! How the keys of a suite are dealt.

use core::marker::PhantomData;

use engine::wire::{Malformed, Reader, Writer};
use engine::{PartyId, PartySet, ProtocolId, Secret, SessionContext, Threshold};
use frost_core::keys::SigningShare;

use crate::bip32::CHAIN_CODE_BYTES;
use crate::dealing::{self, Generated, Held, Joint, Public, Scheme};

use super::key::{KeyPublic, KeyShare};
use super::suite::{PointOf, ScalarOf, Suite, decode_point_of};

/// The scheme of a suite, as dealing sees it.
pub struct Frost<S: Suite>(PhantomData<S>);

/// Key generation.
pub type Keygen<S> = dealing::Keygen<Frost<S>>;
/// New shares for the same parties.
pub type Refresh<S> = dealing::Refresh<Frost<S>>;
/// New shares for other parties, or with another threshold.
pub type Reshare<S> = dealing::Reshare<Frost<S>>;
/// The terms that the parties of a reshare agree on.
pub type ReshareTerms<S> = dealing::ReshareTerms<Frost<S>>;
/// The result that a party of a reshare ends with.
pub type Reshared<S> = dealing::Reshared<Frost<S>>;

impl<S: Suite> Scheme for Frost<S> {
    type Curve = S;
    type Companion = ();
    type Public = KeyPublic<S>;
    type Share = KeyShare<S>;

    const REFRESH: ProtocolId = S::REFRESH;
    const RESHARE: ProtocolId = S::RESHARE;
    const CHAINED: bool = S::DERIVES;

    fn open(KeyShare { public, party, signing_share }: KeyShare<S>) -> Held<Self> {
        Held { public, party, signing_share: Secret::new(signing_share.expose().to_scalar()) }
    }

    fn public(ctx: &SessionContext, joint: Joint<S>, _: Option<KeyPublic<S>>) -> Option<KeyPublic<S>> {
        let shares = joint.verification_shares.into_iter();
        Some(KeyPublic {
            key_id: ctx.key_id().to_owned(),
            epoch: ctx.epoch(),
            threshold: ctx.threshold(),
            public_key: joint.public_key,
            chain_code: joint.chain_code,
            verification_shares: shares.map(|(party, _, encoded)| (party, encoded)).collect(),
            suite: PhantomData,
        })
    }

    fn share(
        public: KeyPublic<S>,
        party: PartyId,
        signing_share: Secret<ScalarOf<S>>,
        (): (),
    ) -> KeyShare<S> {
        KeyShare { public, party, signing_share: Secret::new(SigningShare::new(*signing_share.expose())) }
    }
}

impl<S: Suite> Generated for Frost<S> {
    const KEYGEN: ProtocolId = S::KEYGEN;
}

impl<S: Suite> Public<S> for KeyPublic<S> {
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

    fn public_point(&self) -> Option<PointOf<S>> {
        decode_point_of::<S>(&self.public_key)
    }

    fn verification_point(&self, party: PartyId) -> Option<PointOf<S>> {
        Self::verification_point(self, party)
    }

    fn chain_code(&self) -> [u8; CHAIN_CODE_BYTES] {
        self.chain_code
    }
}
