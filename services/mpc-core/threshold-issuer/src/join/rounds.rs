//! A join, round by round. Steps are cited as [T4.1] from `docs/protocols/wbb.md`; symbols are in the module above.

use std::collections::BTreeMap;

use engine::wire::Writer;
use engine::{AbortCause, Fault, Inbox, Outbox, PartyId, Secret, SessionContext, Tag};
use group_signatures::complete;
use primitives::bls12_381::{G1, SCALAR_BYTES, Scalar};
use primitives::declassify::published;
use protocols::HedgedRng;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::messages::{
    Answer, ByPeer, Correction, Multiply, Parts, Request, Response, Sample, post, read_each,
};
use super::pair::{Pair, SetUps, pair_fault};
use super::terms::{JoinOutput, Setting};
use crate::multiply::{self, Bob};
use crate::tags;

/// State of rounds 1 to 3.
pub struct SettingUp {
    setting: Setting,
    set_ups: SetUps,
    round: u8,
}

/// Where a round of the set-up leads. There is one at a time, so its size is no matter.
#[allow(clippy::large_enum_variant, reason = "both are boxed by the caller")]
pub enum SetUp {
    /// To the next one.
    GoesOn(SettingUp),
    /// To the multiplications.
    Done(Sampled),
}

/// State of round 4.
pub struct Sampled {
    setting: Setting,
    pairs: BTreeMap<PartyId, Pair>,
    /// Drawn with the factors, since the peers learn the differences.
    mask: Secret<Scalar>,
    bobs: BTreeMap<PartyId, Bob>,
}

/// State of round 5.
pub struct Multiplied {
    setting: Setting,
    /// The own share of the joint key, re-randomised.
    share: Secret<Scalar>,
    mask: Secret<Scalar>,
    zero_points: BTreeMap<PartyId, G1>,
    bobs: BTreeMap<PartyId, Bob>,
    /// Sum of Alice's shares of the products.
    products: Secret<Scalar>,
}

/// State of round 6.
pub struct Waiting {
    setting: Setting,
    /// At the member: its own part.
    own: Option<Parts>,
}

impl SettingUp {
    pub(super) fn begin(ctx: &SessionContext, setting: Setting, rng: &mut dyn CryptoRng) -> (Self, Outbox) {
        let mut rng = setting.hedged(ctx, tags::PAIR_RANDOMNESS, &[], rng);
        let (set_ups, requests) = SetUps::begin(ctx, setting.me, &mut rng);
        (Self { setting, set_ups, round: 1 }, post(requests))
    }

    pub(super) fn advance(
        mut self,
        ctx: &SessionContext,
        inbox: &Inbox,
        rng: &mut dyn CryptoRng,
    ) -> Result<(SetUp, Outbox), Fault> {
        // With everything that came, so that a party that runs twice answers other messages with other randomness.
        let heard = heard(inbox);
        let mut hedged = self.setting.hedged(ctx, tags::PAIR_RANDOMNESS, &heard, rng);
        let outbox = match self.round {
            1 => post(self.set_ups.respond(ctx, read_each::<Request>(ctx, inbox)?, &mut hedged)?),
            2 => post(self.set_ups.correct(ctx, read_each::<Response>(ctx, inbox)?, &mut hedged)?),
            _ => {
                let pairs = self.set_ups.complete(ctx, read_each::<Correction>(ctx, inbox)?)?;
                let (state, outbox) = Sampled::begin(ctx, self.setting, pairs, rng)?;
                return Ok((SetUp::Done(state), outbox));
            }
        };
        self.round += 1;
        Ok((SetUp::GoesOn(self), outbox))
    }
}

impl Sampled {
    /// [T4.2] the mask, and a random factor for each peer. The peers learn their differences, so all of them are drawn
    /// together: a party that runs round 5 twice with two masks and the same factors would show the difference of the
    /// masks, and with two answers of round 6 the joint key.
    fn begin(
        ctx: &SessionContext,
        setting: Setting,
        pairs: BTreeMap<PartyId, Pair>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), Fault> {
        let mut hedged = setting.hedged(ctx, tags::SAMPLE_RANDOMNESS, &[], rng);
        let mask = Secret::new(Scalar::random(&mut hedged));
        let (mut bobs, mut bodies) = (BTreeMap::new(), BTreeMap::new());
        for (peer, pair) in &pairs {
            let binding = binding(ctx, *peer, setting.me);
            let (bob, message) = multiply::sample(&binding, &pair.transfers.receiver, &mut hedged);
            let message = message.try_into().map(Box::new).map_err(|_| Fault::internal())?;
            bobs.insert(*peer, bob);
            bodies.insert(*peer, Sample { message });
        }
        Ok((Self { setting, pairs, mask, bobs }, post(bodies)))
    }

    /// [T5] multiplies with each peer. The set-ups of the pairs end here.
    pub(super) fn advance(
        self,
        ctx: &SessionContext,
        inbox: &Inbox,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Multiplied, Outbox), Fault> {
        let Self { setting, pairs, mask, bobs } = self;
        let samples: ByPeer<Sample> = read_each(ctx, inbox)?;
        // [T5.1] the own share with its shares of zero.
        let mut share = Secret::new(setting.key.expose().copy());
        for (peer, pair) in &pairs {
            let sum = if setting.me < *peer {
                share.expose().add(pair.zero.expose())
            } else {
                share.expose().sub(pair.zero.expose())
            };
            *share.expose_mut() = sum;
        }
        // [T5.2] salts and check scalars, with everything of the peers that could differ in a second run.
        let mut hedged = setting.hedged(ctx, tags::ANSWER_RANDOMNESS, &heard(inbox), rng);
        let zero_points: BTreeMap<_, _> = pairs.iter().map(|(peer, pair)| (*peer, pair.zero_point)).collect();
        // [T5.3] Alice's step towards each peer. A failed check ends everything before anything depends on it.
        let mut products = Secret::new(Scalar::zero());
        let mut bodies = BTreeMap::new();
        for (peer, Sample { message }) in &samples {
            let pair = pairs.get(peer).ok_or_else(Fault::internal)?;
            let bob = bobs.get(peer).ok_or_else(Fault::internal)?;
            let binding = binding(ctx, setting.me, *peer);
            let sender = &pair.transfers.sender;
            let (product, message) = multiply::multiply(&binding, sender, message, &share, &mut hedged)
                .map_err(|error| pair_fault(error, *peer))?;
            let sum = products.expose().add(product.expose());
            *products.expose_mut() = sum;
            let body = Multiply {
                zero_points: zero_points.values().copied().collect(),
                product_point: G1::mul_generator(&product),
                mask_minus_factor: mask.expose().sub(bob.factor().expose()),
                message: message.try_into().map(Box::new).map_err(|_| Fault::internal())?,
            };
            bodies.insert(*peer, body);
        }
        let state = Multiplied { setting, share, mask, zero_points, bobs, products };
        Ok((state, post(bodies)))
    }
}

impl Multiplied {
    /// [T6] checks everything, and gives the member its parts.
    pub(super) fn advance(self, ctx: &SessionContext, inbox: &Inbox) -> Result<(Waiting, Outbox), Fault> {
        let Self { setting, share, mask, zero_points, mut bobs, products } = self;
        let shown: ByPeer<Multiply> = read_each(ctx, inbox)?;
        // [T6.1] what each party multiplies follows from its verification share, or from the member's point.
        let key_points = key_points(ctx, &setting, &zero_points, &shown)?;
        let mut masks = Secret::new(mask.expose().copy());
        let mut products = products;
        for (peer, body) in &shown {
            // [T6.2] Bob's share, after the check of Alice's message.
            let bob = bobs.remove(peer).ok_or_else(Fault::internal)?;
            let factor = Secret::new(bob.factor().expose().copy());
            let product = bob.finish(&body.message).map_err(|error| pair_fault(error, *peer))?;
            // [T6.3] what Alice multiplied is the logarithm of her key point.
            let key_point = key_points.get(peer).ok_or_else(Fault::internal)?;
            let joint = body.product_point.plus(&G1::mul_generator(&product));
            if published(key_point.times_secret(&factor) != joint) {
                return Err(Fault::evident(AbortCause::WrongProduct, vec![*peer]));
            }
            let sum = products.expose().add(product.expose());
            *products.expose_mut() = sum;
            let sum = masks.expose().add(&body.mask_minus_factor);
            *masks.expose_mut() = sum;
        }
        // [T6.4] a share of (sk_m + sk_i) times the sum of the masks.
        let masked_key = Secret::new(share.expose().mul(masks.expose()).add(products.expose()));
        let parts = Parts { mask_point: G1::mul_generator(&mask), masked_key };
        let mut bodies: ByPeer<Answer> =
            ctx.peers().iter().map(|peer| (peer, Answer { parts: None })).collect();
        let own = if setting.me == setting.member {
            Some(parts)
        } else {
            bodies.insert(setting.member, Answer { parts: Some(parts) });
            None
        };
        Ok((Waiting { setting, own }, post(bodies)))
    }
}

impl Waiting {
    /// [T7] the member's credential, accepted if it verifies by pairing.
    pub(super) fn finish(self, ctx: &SessionContext, inbox: &Inbox) -> Result<JoinOutput, Fault> {
        let Self { setting: Setting { me, member, group, secret, .. }, own } = self;
        let answers: ByPeer<Answer> = read_each(ctx, inbox)?;
        // The member has nothing to answer, and an issuer something for the member alone.
        if let Some((sender, _)) = answers.iter().find(|(_, answer)| answer.parts.is_some() != (me == member))
        {
            return Err(Fault::evident(AbortCause::InvalidSignature, vec![*sender]));
        }
        let (Some(own), Some(secret)) = (own, secret) else { return Ok(JoinOutput::Answered) };
        // [T7.1] sums of the points and of the shares.
        let Parts { mut mask_point, mut masked_key } = own;
        for parts in answers.into_values().filter_map(|answer| answer.parts) {
            mask_point = mask_point.plus(&parts.mask_point);
            let sum = masked_key.expose().add(parts.masked_key.expose());
            *masked_key.expose_mut() = sum;
        }
        // [T7.2] sigma = Phi^{1/v}. A wrong part shows only in the sum, so one of the issuers has made it.
        let inverse = Secret::new(masked_key.expose().inverse());
        let credential = mask_point.times_secret(&inverse);
        match complete(&group, secret, credential) {
            Ok(key) => Ok(JoinOutput::Joined(Box::new(key))),
            Err(_) => Err(Fault::suspected(AbortCause::InvalidSignature, ctx.peers().iter().collect())),
        }
    }
}

impl Setting {
    /// Randomness that is good while the generator is, or while the own share is secret.
    fn hedged(&self, ctx: &SessionContext, purpose: Tag, heard: &[u8], rng: &mut dyn CryptoRng) -> HedgedRng {
        let mut known = Writer::with_capacity(SCALAR_BYTES + heard.len());
        known.bytes(Zeroizing::new(self.key.expose().to_bytes()).as_slice());
        known.bytes(heard);
        HedgedRng::new(ctx, purpose, Zeroizing::new(known.finish()).as_slice(), rng)
    }
}

/// Digests of the messages of one round.
fn heard(inbox: &Inbox) -> Vec<u8> {
    inbox.iter().flat_map(|envelope| envelope.content_digest()).collect()
}

/// The points of everybody's re-randomised share. A share of zero that a party shows in another way than its own pair
/// holds it convicts it; where two others differ, one of them lies.
fn key_points(
    ctx: &SessionContext,
    setting: &Setting,
    own: &BTreeMap<PartyId, G1>,
    shown: &ByPeer<Multiply>,
) -> Result<BTreeMap<PartyId, G1>, Fault> {
    let cause = AbortCause::InconsistentShares;
    let pair = |one: PartyId, other: PartyId| (one.min(other), one.max(other));
    let of = |sender: PartyId| ctx.parties().iter().filter(move |party| *party != sender);
    let mut zeros: BTreeMap<(PartyId, PartyId), G1> = BTreeMap::new();
    for (peer, point) in own {
        zeros.insert(pair(setting.me, *peer), *point);
    }
    for (sender, body) in shown {
        let mine = of(*sender).zip(&body.zero_points).find(|(other, _)| *other == setting.me);
        if mine.map(|(_, point)| point) != own.get(sender) {
            return Err(Fault::evident(cause, vec![*sender]));
        }
    }
    for (sender, body) in shown {
        for (other, point) in of(*sender).zip(&body.zero_points) {
            let (lower, higher) = pair(*sender, other);
            if zeros.entry((lower, higher)).or_insert(*point) != point {
                return Err(Fault::suspected(cause, vec![lower, higher]));
            }
        }
    }
    let mut points = setting.points.clone();
    for ((lower, higher), zero) in zeros {
        for (party, zero) in [(lower, zero), (higher, zero.negated())] {
            let point = points.get_mut(&party).ok_or_else(Fault::internal)?;
            *point = point.plus(&zero);
        }
    }
    Ok(points)
}

/// The digest that one multiplication is bound to.
fn binding(ctx: &SessionContext, alice: PartyId, bob: PartyId) -> [u8; 32] {
    let mut transcript = ctx.transcript().fork(tags::JOIN_MULTIPLICATION, alice);
    transcript.append_u64("bob", u64::from(bob.get()));
    transcript.digest()
}
