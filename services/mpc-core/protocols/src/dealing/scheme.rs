//! The facts that a signature scheme tells of itself so that its keys can be dealt.

use engine::wire::{Malformed, Reader, Writer};
use engine::{PartyId, PartySet, ProtocolId, Secret, SessionContext, Threshold, Transcript};
use primitives::declassify::published;

use crate::bip32::CHAIN_CODE_BYTES;

use super::companion::Companion;
use super::joint::Joint;
use super::tags;
use crate::curve::Curve;

/// A scheme whose keys are shared by polynomials with Feldman commitments.
pub trait Scheme: Sized + Send + Sync + 'static {
    /// Where the shares live.
    type Curve: Curve;
    /// The set-up of each pair of parties beside the shares.
    type Companion: Companion;
    /// The public data of a key.
    type Public: Public<Self::Curve>;
    /// The data that one party keeps of a key.
    type Share;

    /// New shares for the same parties and threshold.
    const REFRESH: ProtocolId;
    /// New shares for other parties, or with another threshold.
    const RESHARE: ProtocolId;
    /// Whether keys have a BIP-32 chain code.
    const CHAINED: bool;

    /// Takes a share apart; its party's set-up with others is wiped.
    fn open(share: Self::Share) -> Held<Self>;

    /// The public data of the key that was made, or of the key `base` with its new shares. `None` if it can have none.
    fn public(
        ctx: &SessionContext,
        joint: Joint<Self::Curve>,
        base: Option<Self::Public>,
    ) -> Option<Self::Public>;

    /// Puts a share together.
    fn share(
        public: Self::Public,
        party: PartyId,
        signing_share: Secret<ScalarOf<Self>>,
        companion: <Self::Companion as Companion>::Output,
    ) -> Self::Share;
}

/// A scheme whose keys this protocol also makes.
pub trait Generated: Scheme {
    /// Key generation.
    const KEYGEN: ProtocolId;
}

/// A point of a scheme's curve.
pub type PointOf<S> = <<S as Scheme>::Curve as Curve>::Point;
/// A scalar of a scheme's curve.
pub type ScalarOf<S> = <<S as Scheme>::Curve as Curve>::Scalar;

/// A share taken apart.
pub struct Held<S: Scheme> {
    /// The public data of its key.
    pub public: S::Public,
    /// Whose it is.
    pub party: PartyId,
    /// The value of the joint polynomial at the party's number.
    pub signing_share: Secret<ScalarOf<S>>,
}

/// The public data of a key, as far as dealing reads them.
pub trait Public<C: Curve>: Clone + PartialEq {
    /// The encoding that parties agree on.
    fn encode(&self, writer: &mut Writer);

    /// Reads what [`Public::encode`] wrote, with counts, order and lengths checked.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Hash of the encoding: two parties have the same one if, and only if, they hold the same data.
    fn digest(&self) -> [u8; 32] {
        let mut writer = Writer::default();
        self.encode(&mut writer);
        let mut transcript = Transcript::new(tags::KEY_PUBLIC);
        transcript.append("key_public", &writer.finish());
        published(transcript.digest())
    }

    /// Our name for the key.
    fn key_id(&self) -> &str;

    /// Generation of its shares.
    fn epoch(&self) -> u32;

    /// Parties needed to sign.
    fn threshold(&self) -> Threshold;

    /// Everyone with a share.
    fn parties(&self) -> PartySet;

    /// The joint key; `None` if it is not a valid point.
    fn public_point(&self) -> Option<C::Point>;

    /// The point of one party's signing share; `None` if there is none or it is not a valid one.
    fn verification_point(&self, party: PartyId) -> Option<C::Point>;

    /// The BIP-32 chain code; zeros if the scheme has none.
    fn chain_code(&self) -> [u8; CHAIN_CODE_BYTES];
}
