//! sk_m and o, shared t of n: dealt as every key of the core is, and kept by each issuer or opener. Steps are cited as
//! [D1] (`docs/protocols/wbb.md`).
//!
//! The name of an issuing key is the digest of what the openers have signed, so it is made for one epoch of one group
//! and is the key of no other. Its generation is that of the core's other schemes: committed polynomials with proofs,
//! signed messages, blame with evidence. Refresh comes with it.

use core::marker::PhantomData;
use core::ops::RangeInclusive;
use std::sync::Arc;

use engine::seal::{DataKey, SealKind, ShareLabel};
use engine::wire::{Malformed, Reader, Writer};
use engine::{
    AbortCause, Envelope, Fault, History, Inbox, MAX_KEY_ID_BYTES, MAX_PARTIES, Next, Outbox, PartyId,
    PartySet, Protocol, ProtocolId, RoundRule, Secret, SessionContext, SetupError, Threshold, Transcript,
};
use group_signatures::AttestedKey;
use primitives::bls12_381::{G1, Scalar};
use primitives::declassify::{published, published_bytes};
use primitives::shamir::Weights;
use protocols::OpenShareError;
use protocols::bip32::CHAIN_CODE_BYTES;
use protocols::bls::Subgroup;
use protocols::dealing::{self, Generated, Held, Joint, Public, Scheme};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::tags;

/// The use that a shared key is for. The shares of one use are no shares of another.
pub trait Purpose: Send + Sync + 'static {
    /// The family named in the label of a sealed share.
    const FAMILY: &'static str;
    /// The thresholds of its keys.
    const THRESHOLDS: RangeInclusive<usize>;
    /// Key generation.
    const KEYGEN: ProtocolId;
    /// New shares for the same parties.
    const REFRESH: ProtocolId;
    /// New shares for other parties.
    const RESHARE: ProtocolId;
}

/// To issue memberships.
pub enum ToIssue {}
/// To open approvals.
pub enum ToOpen {}

impl Purpose for ToIssue {
    const FAMILY: &'static str = "wbb-issuing";
    const THRESHOLDS: RangeInclusive<usize> = 2..=MAX_THRESHOLD;
    const KEYGEN: ProtocolId = ProtocolId { number: 65, name: "wbb/issuing-keygen/1" };
    const REFRESH: ProtocolId = ProtocolId { number: 66, name: "wbb/issuing-refresh/1" };
    const RESHARE: ProtocolId = ProtocolId { number: 67, name: "wbb/issuing-reshare/1" };
}

impl Purpose for ToOpen {
    const FAMILY: &'static str = "wbb-opening";
    const THRESHOLDS: RangeInclusive<usize> = 1..=MAX_PARTIES;
    const KEYGEN: ProtocolId = ProtocolId { number: 70, name: "wbb/opening-keygen/1" };
    const REFRESH: ProtocolId = ProtocolId { number: 71, name: "wbb/opening-refresh/1" };
    const RESHARE: ProtocolId = ProtocolId { number: 72, name: "wbb/opening-reshare/1" };
}

/// Keys for one use, as dealing sees them.
pub struct Shared<K>(PhantomData<fn() -> K>);

/// Issuing keys, as dealing sees them.
pub type Issuing = Shared<ToIssue>;
/// Openers' keys, as dealing sees them.
pub type Opening = Shared<ToOpen>;

/// The largest threshold of an issuing key: a join has as many issuers and the member.
pub const MAX_THRESHOLD: usize = MAX_PARTIES - 1;

/// [D1] makes an issuing key. The session's key id is [`key_id`], its epoch 1.
pub struct Keygen(dealing::Keygen<Issuing>);
/// New shares for the same issuers. There is no reshare: other issuers know nothing of the tickets that these have
/// bound, so they make a key of their own, for another epoch of the group.
pub type Refresh = dealing::Refresh<Issuing>;
/// [G1] makes an openers' key. Its points are in the group's public data, so it is neither refreshed nor reshared: the
/// next epoch of the group has another one.
pub type OpeningKeygen = dealing::Keygen<Opening>;

impl Protocol for Keygen {
    const ID: ProtocolId = <dealing::Keygen<Issuing> as Protocol>::ID;
    const SIGNED: bool = <dealing::Keygen<Issuing> as Protocol>::SIGNED;
    const ROUNDS: &'static [RoundRule] = <dealing::Keygen<Issuing> as Protocol>::ROUNDS;
    type Input = ();
    type Output = IssuerShare;

    fn start(ctx: &SessionContext, (): (), rng: &mut dyn CryptoRng) -> Result<(Self, Outbox), SetupError> {
        // A key that no join can use.
        if ctx.threshold().get() > MAX_THRESHOLD {
            return Err(SetupError::ThresholdRange);
        }
        let (state, outbox) = dealing::Keygen::start(ctx, (), rng)?;
        Ok((Self(state), outbox))
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        history: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        Ok(match self.0.advance(ctx, inbox, history, rng)? {
            Next::Round(state, outbox) => Next::Round(Self(state), outbox),
            Next::Stay(state) => Next::Stay(Self(state)),
            Next::Done(share) => Next::Done(share),
        })
    }

    fn judge(ctx: &SessionContext, cause: AbortCause, accused: PartyId, evidence: &[Arc<Envelope>]) -> bool {
        dealing::Keygen::<Issuing>::judge(ctx, cause, accused, evidence)
    }
}

/// The name of the issuing key of the group and epoch that the openers have signed.
pub fn key_id(opener: &AttestedKey) -> String {
    opener.digest().iter().fold(String::with_capacity(64), |mut name, byte| {
        for digit in [byte >> 4, byte & 15] {
            name.extend(char::from_digit(u32::from(digit), 16));
        }
        name
    })
}

/// The holders of a key with their points, the same at every one of them.
pub struct Holders<K> {
    key_id: String,
    epoch: u32,
    threshold: Threshold,
    public_key: G1,
    shares: Vec<(PartyId, G1)>,
    purpose: PhantomData<fn() -> K>,
}

/// The issuers with their points.
pub type Issuers = Holders<ToIssue>;
/// The openers with their points.
pub type KeyOfOpeners = Holders<ToOpen>;

impl<K> Clone for Holders<K> {
    fn clone(&self) -> Self {
        Self { key_id: self.key_id.clone(), shares: self.shares.clone(), ..*self }
    }
}

impl<K> PartialEq for Holders<K> {
    fn eq(&self, other: &Self) -> bool {
        self.key_id == other.key_id
            && self.epoch == other.epoch
            && self.threshold == other.threshold
            && self.public_key == other.public_key
            && self.shares == other.shares
    }
}

impl<K: Purpose> Holders<K> {
    /// `None` unless it has the form of the public data of a key, and the points are shares of it ([D2]).
    pub fn new(
        (key_id, epoch): (&str, u32),
        threshold: Threshold,
        public_key: G1,
        shares: Vec<(PartyId, G1)>,
    ) -> Option<Self> {
        let key_id = key_id.to_owned();
        let made = Self { key_id, epoch, threshold, public_key, shares, purpose: PhantomData };
        (made.well_formed() && made.consistent()).then_some(made)
    }

    fn well_formed(&self) -> bool {
        let count = self.shares.len();
        count <= MAX_PARTIES
            && self.threshold.get() <= count
            && K::THRESHOLDS.contains(&self.threshold.get())
            && self.shares.is_sorted_by(|(a, _), (b, _)| a < b)
            && (1..=MAX_KEY_ID_BYTES).contains(&self.key_id.len())
            && self.epoch > 0
    }

    /// g1 to the key.
    pub fn public_key(&self) -> &G1 {
        &self.public_key
    }

    /// The name of the key: [`key_id`] of what the openers of its group have signed.
    pub(crate) fn name(&self) -> &str {
        &self.key_id
    }

    /// How many issuers it takes.
    pub fn threshold(&self) -> Threshold {
        self.threshold
    }

    /// All issuers.
    pub fn parties(&self) -> PartySet {
        self.shares.iter().map(|(party, _)| *party).collect()
    }

    /// How many issuers bind a ticket before it gives a member: half of all issuers and of the threshold together. Any
    /// two such sets share as many issuers as the threshold says, so an honest one among them binds the ticket once.
    pub fn quorum(&self) -> usize {
        (self.shares.len() + self.threshold.get()).div_ceil(2)
    }

    /// g1^{s_j}, the public point of an issuer's share.
    pub fn share(&self, party: PartyId) -> Option<&G1> {
        self.shares.iter().find(|(holder, _)| *holder == party).map(|(_, point)| point)
    }

    /// The coefficient with which each of `chosen` enters sk_m, in their order. `None` unless all are issuers and as
    /// many as the threshold.
    pub(crate) fn weights(&self, chosen: &PartySet) -> Option<Vec<Scalar>> {
        if chosen.len() < self.threshold.get() || !chosen.minus(&self.parties()).is_empty() {
            return None;
        }
        let numbers: Vec<u16> = chosen.iter().map(PartyId::get).collect();
        Some(Weights::at_zero(&numbers)?.to_scalars())
    }

    /// Whether the points of these issuers lead to the key as if they were enough.
    fn lead_to_key<'a>(&self, chosen: impl Iterator<Item = &'a PartyId>) -> bool {
        let chosen: PartySet = chosen.copied().collect();
        let numbers: Vec<u16> = chosen.iter().map(PartyId::get).collect();
        let points: Vec<G1> = chosen.iter().filter_map(|party| self.share(party)).copied().collect();
        let weights = Weights::at_zero(&numbers).map(|weights| weights.to_scalars());
        weights.is_some_and(|weights| G1::combination(&points, &weights) == self.public_key)
    }

    /// [D2] whether the points are shares of the key for the threshold, and for no smaller one. A member gets them from
    /// one issuer and checks them against g1^{sk_m} of the group.
    pub(crate) fn consistent(&self) -> bool {
        let parties: Vec<PartyId> = self.parties().iter().collect();
        let Some((first, others)) = parties.split_at_checked(self.threshold.get()) else { return false };
        let Some((_, fixed)) = first.split_last() else { return false };
        // The key and all but one of the first fix the polynomial; each other share has to lie on it.
        self.lead_to_key(first.iter())
            && others.iter().all(|other| self.lead_to_key(fixed.iter().chain([other])))
            && !self.lead_to_key(fixed.iter())
    }

    /// The encoding that issuers agree on.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.encode(&mut writer);
        writer.finish()
    }

    /// Takes what [`Issuers::to_bytes`] made, with all points checked.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let holders = <Self as Public<Subgroup>>::decode(&mut reader)?;
        reader.finish()?;
        if holders.consistent() { Ok(holders) } else { Err(Malformed) }
    }

    /// Hash of the encoding.
    pub(crate) fn hash(&self) -> [u8; 32] {
        let mut transcript = Transcript::new(tags::ISSUERS);
        transcript.append("issuers", &self.to_bytes());
        transcript.digest()
    }
}

impl<K: Purpose> Public<Subgroup> for Holders<K> {
    fn encode(&self, writer: &mut Writer) {
        writer.sized(self.key_id.as_bytes());
        writer.u32(self.epoch);
        writer.u16(u16::try_from(self.threshold.get()).unwrap_or(u16::MAX));
        writer.bytes(&self.public_key.to_compressed());
        writer.u8(u8::try_from(self.shares.len()).unwrap_or(u8::MAX));
        for (party, point) in &self.shares {
            writer.u16(party.get());
            writer.bytes(&point.to_compressed());
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let key_id = core::str::from_utf8(reader.sized(MAX_KEY_ID_BYTES)?).map_err(|_| Malformed)?.to_owned();
        let epoch = reader.u32()?;
        let threshold = Threshold::new(reader.u16()?.into()).ok_or(Malformed)?;
        let public_key = G1::from_compressed(reader.array()?).ok_or(Malformed)?;
        let count = usize::from(reader.u8()?);
        if count > MAX_PARTIES {
            return Err(Malformed);
        }
        let mut shares = Vec::with_capacity(count);
        for _ in 0..count {
            let party = PartyId::new(reader.u16()?.into()).ok_or(Malformed)?;
            shares.push((party, G1::from_compressed(reader.array()?).ok_or(Malformed)?));
        }
        let holders = Self { key_id, epoch, threshold, public_key, shares, purpose: PhantomData };
        if holders.well_formed() { Ok(holders) } else { Err(Malformed) }
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
        Some(self.public_key)
    }

    fn verification_point(&self, party: PartyId) -> Option<G1> {
        self.share(party).copied()
    }

    fn chain_code(&self) -> [u8; CHAIN_CODE_BYTES] {
        [0; CHAIN_CODE_BYTES]
    }
}

/// All that one party keeps of a key. Wiped on drop.
#[must_use]
pub struct KeyShare<K> {
    holders: Holders<K>,
    party: PartyId,
    share: Secret<Scalar>,
}

/// All that one issuer keeps of the issuing key.
pub type IssuerShare = KeyShare<ToIssue>;
/// All that one opener keeps of the openers' key.
pub type OpenerShare = KeyShare<ToOpen>;

impl IssuerShare {
    /// The public data of the key.
    pub fn issuers(&self) -> &Issuers {
        &self.holders
    }
}

impl OpenerShare {
    /// The key of one opener alone, an auditor say.
    pub fn alone(key_id: &str, party: PartyId, rng: &mut dyn CryptoRng) -> Option<Self> {
        let share = Secret::new(Scalar::random(rng));
        let point = G1::mul_generator(&share);
        let holders = Holders::new((key_id, 1), Threshold::new(1)?, point, vec![(party, point)])?;
        Some(Self { holders, party, share })
    }
}

impl<K: Purpose> KeyShare<K> {
    /// The public data of the key.
    pub fn holders(&self) -> &Holders<K> {
        &self.holders
    }

    /// The party that holds it.
    pub fn party(&self) -> PartyId {
        self.party
    }

    /// s_j, or o_j.
    pub(crate) fn secret(&self) -> &Secret<Scalar> {
        &self.share
    }

    /// The readable label of the sealed share.
    pub fn label(&self) -> ShareLabel {
        ShareLabel {
            family: K::FAMILY.to_owned(),
            key_id: self.holders.key_id.clone(),
            party: self.party,
            epoch: self.holders.epoch,
            threshold: self.holders.threshold,
        }
    }

    /// The share as a blob under the issuer's data key. `None` if the label is too long to be one of ours.
    pub fn seal(&self, key: &DataKey, rng: &mut dyn CryptoRng) -> Option<Vec<u8>> {
        let mut writer = Writer::with_capacity(2048);
        writer.bytes(Zeroizing::new(self.share.expose().to_bytes()).as_slice());
        writer.bytes(&self.holders.to_bytes());
        let plain = Zeroizing::new(writer.finish());
        key.seal(SealKind::KeyShare, &self.label().encode(), &[], &plain, rng)
    }

    /// Opens a sealed share that must be the one of `expected`, and whose point the public data have.
    pub fn unseal(key: &DataKey, blob: &[u8], expected: &ShareLabel) -> Result<Self, OpenShareError> {
        let label = ShareLabel::peek(blob).map_err(|Malformed| OpenShareError::Unseal)?;
        if &label != expected || label.family != K::FAMILY {
            return Err(OpenShareError::Mismatch);
        }
        let unsealed = key.unseal(SealKind::KeyShare, &[], blob).map_err(|_| OpenShareError::Unseal)?;
        let read = |bytes: &[u8]| {
            let (share, public) = bytes.split_first_chunk().ok_or(Malformed)?;
            let share = Secret::new(Scalar::from_bytes(share).ok_or(Malformed)?);
            // Every holder has the same public data, so they may choose a branch.
            let mut reader = Reader::new(published_bytes(public));
            let holders = <Holders<K> as Public<Subgroup>>::decode(&mut reader)?;
            reader.finish()?;
            let point = published(G1::mul_generator(&share));
            let ours = holders.share(expected.party) == Some(&point);
            let share = Self { holders, party: expected.party, share };
            if ours && &share.label() == expected { Ok(share) } else { Err(Malformed) }
        };
        read(unsealed.secret.expose()).map_err(|Malformed| OpenShareError::Invalid)
    }
}

impl<K: Purpose> Scheme for Shared<K> {
    type Curve = Subgroup;
    type Companion = ();
    type Public = Holders<K>;
    type Share = KeyShare<K>;

    const REFRESH: ProtocolId = K::REFRESH;
    const RESHARE: ProtocolId = K::RESHARE;
    const CHAINED: bool = false;

    fn open(KeyShare { holders, party, share }: KeyShare<K>) -> Held<Self> {
        Held { public: holders, party, signing_share: share }
    }

    fn public(ctx: &SessionContext, joint: Joint<Subgroup>, base: Option<Holders<K>>) -> Option<Holders<K>> {
        let public_key = G1::from_compressed(joint.public_key.as_slice().try_into().ok()?)?;
        let shares = joint.verification_shares.into_iter();
        let made = Holders {
            key_id: ctx.key_id().to_owned(),
            epoch: ctx.epoch(),
            threshold: ctx.threshold(),
            public_key,
            shares: shares.map(|(party, point, _)| (party, point)).collect(),
            purpose: PhantomData,
        };
        // The shares of a key stay with the issuers that have bound its tickets.
        let kept = base.is_none_or(|base| {
            base.public_key == public_key
                && base.threshold == made.threshold
                && Holders::parties(&base) == Holders::parties(&made)
        });
        kept.then_some(made)
    }

    fn share(holders: Holders<K>, party: PartyId, share: Secret<Scalar>, (): ()) -> KeyShare<K> {
        KeyShare { holders, party, share }
    }
}

impl<K: Purpose> Generated for Shared<K> {
    const KEYGEN: ProtocolId = K::KEYGEN;
}

/// For tests: shares dealt by one hand, and what no issuer that follows the rules has.
#[cfg(feature = "forge")]
pub mod forge {
    use core::marker::PhantomData;

    use engine::{PartyId, Secret, Threshold};
    use group_signatures::AttestedKey;
    use primitives::bls12_381::{G1, Scalar};
    use rand_core::CryptoRng;

    use super::{IssuerShare, Issuers, key_id};

    /// Shares of a fresh key, as key generation gives them, and the key.
    pub fn deal(
        opener: &AttestedKey,
        threshold: Threshold,
        parties: &[PartyId],
        rng: &mut dyn CryptoRng,
    ) -> (Vec<IssuerShare>, Secret<Scalar>) {
        let polynomial: Vec<Scalar> = (0..threshold.get()).map(|_| Scalar::random(rng)).collect();
        let at = |number: u16| {
            let x = Scalar::from_u64(u64::from(number));
            polynomial.iter().rev().fold(Scalar::zero(), |value, term| value.mul(&x).add(term))
        };
        let key = Secret::new(at(0));
        let point = |party: &PartyId| (*party, G1::mul_generator(&Secret::new(at(party.get()))));
        let issuers = Issuers {
            key_id: key_id(opener),
            epoch: 1,
            threshold,
            public_key: G1::mul_generator(&key),
            shares: parties.iter().map(point).collect(),
            purpose: PhantomData,
        };
        let share = |party: &PartyId| IssuerShare {
            holders: issuers.clone(),
            party: *party,
            share: Secret::new(at(party.get())),
        };
        (parties.iter().map(share).collect(), key)
    }

    /// A second holder of a share.
    pub fn copy(share: &IssuerShare) -> IssuerShare {
        let secret = Secret::new(share.share.expose().copy());
        IssuerShare { holders: share.holders.clone(), party: share.party, share: secret }
    }

    /// s_j, in the open.
    pub fn secret(share: &IssuerShare) -> &Secret<Scalar> {
        &share.share
    }

    /// The share off by one.
    pub fn shifted(mut share: IssuerShare) -> IssuerShare {
        let other = share.share.expose().add(&Scalar::one());
        *share.share.expose_mut() = other;
        share
    }
}
