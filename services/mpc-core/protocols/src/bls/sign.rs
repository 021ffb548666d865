//! Signing: one broadcast of a partial signature, combined by whoever wants the result.
//!
//! Specification: `docs/protocols/bls.md`; steps are cited as [S1]. Partial signatures are judged by pairing against
//! public verification shares, so that nobody has to sign envelopes for blame to be possible.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::session::{History, parse};
use engine::wire::{Reader, Writer};
use engine::{
    AbortCause, Body, BroadcastBody, Delivery, Envelope, Fault, Inbox, Next, Outbox, PartyId, PartySet,
    Protocol, ProtocolId, RoundRule, Route, SessionContext, SetupError,
};
use primitives::bls12_381::{G1, G2_COMPRESSED_BYTES, HashedMessage, UncheckedG2, verify};
use primitives::shamir::Weights;
use rand_core::CryptoRng;

use super::key::{KeyPublic, KeyShare};
use crate::MAX_MESSAGE_BYTES;
use crate::dealing::Public;

/// Domain separation tag of signatures (draft-irtf-cfrg-bls-signature, section 4.2.3).
pub const SIGNATURE_DOMAIN: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

/// The input that signing starts from.
pub enum SignInput {
    /// A party with its share.
    Party(Box<KeyShare>),
    /// An observer, who combines but does not contribute.
    Observer(Box<KeyPublic>),
    /// An observer who does not verify the result either: [`super::verify_all`] does that for many at once. If it is no
    /// signature, [`SignInput::Observer`] finds out whose partial signature is wrong.
    Combiner(Box<KeyPublic>),
}

/// The result.
pub struct SignOutput {
    /// Compressed point of G2, verified under the public key; a combiner's is not.
    pub signature: [u8; G2_COMPRESSED_BYTES],
    /// Parties whose partial signature was wrong and left out, ascending, with what was wrong.
    pub culprits: Vec<(PartyId, AbortCause)>,
}

/// Round 1: the hashed message times the sender's signing share.
pub struct PartialSignature {
    point: UncheckedG2,
}

impl Body for PartialSignature {
    const ROUND: u8 = 1;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.point.to_compressed());
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        UncheckedG2::from_compressed(reader.array()?)
            .map(|point| Self { point })
            .ok_or(AbortCause::InvalidPoint)
    }
}

impl BroadcastBody for PartialSignature {}

/// A partial signature that may count.
#[derive(Clone, Copy)]
struct Candidate {
    point: UncheckedG2,
    /// Verified under the verification share of its sender.
    good: bool,
}

/// One party's or observer's part in signing.
pub struct Signing {
    public: KeyPublic,
    /// The public key. Of a party, decoded when there is something to verify: the own partial signature does not wait
    /// for it.
    key: Option<G1>,
    /// None at a combiner.
    message: Option<HashedMessage>,
    candidates: BTreeMap<PartyId, Candidate>,
    culprits: BTreeMap<PartyId, AbortCause>,
}

impl Protocol for Signing {
    const ID: ProtocolId = ProtocolId { number: 2, name: "bls/sign/1" };
    const SIGNED: bool = false;
    const ROUNDS: &'static [RoundRule] =
        &[RoundRule { delivery: Delivery::Broadcast, max_body: G2_COMPRESSED_BYTES }];
    type Input = SignInput;
    type Output = SignOutput;

    fn held_alike(input: &SignInput) -> Option<[u8; 32]> {
        Some(match input {
            SignInput::Party(share) => share.public.digest(),
            SignInput::Observer(public) | SignInput::Combiner(public) => public.digest(),
        })
    }

    fn start(
        ctx: &SessionContext,
        input: SignInput,
        _: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        if ctx.payload().len() > MAX_MESSAGE_BYTES {
            return Err(SetupError::PayloadLength);
        }
        let public = match &input {
            SignInput::Party(share) => share.public(),
            SignInput::Observer(public) | SignInput::Combiner(public) => public,
        };
        check_key(ctx, public)?;
        let key = match &input {
            SignInput::Party(_) | SignInput::Combiner(_) => None,
            // Told by somebody: checked before anything else.
            SignInput::Observer(_) => Some(public.point().ok_or(SetupError::KeyPublicInvalid)?),
        };
        let message = match &input {
            SignInput::Party(_) | SignInput::Observer(_) => {
                Some(HashedMessage::new(ctx.payload(), SIGNATURE_DOMAIN))
            }
            SignInput::Combiner(_) => None,
        };
        let mut outbox = Outbox::new();
        let mut candidates = BTreeMap::new();
        let public = match input {
            SignInput::Party(share) => {
                if ctx.me() != Some(share.party) {
                    return Err(SetupError::ShareMismatch);
                }
                // [S1] the own partial signature.
                let message = message.as_ref().ok_or(SetupError::ShareMismatch)?;
                let point = message.sign(&share.signing_share).into();
                outbox.broadcast(&PartialSignature { point });
                candidates.insert(share.party, Candidate { point, good: false });
                share.public
            }
            SignInput::Observer(_) | SignInput::Combiner(_) if ctx.me().is_some() => {
                return Err(SetupError::ShareMissing);
            }
            SignInput::Observer(public) | SignInput::Combiner(public) => *public,
        };
        Ok((Self { public, key, message, candidates, culprits: BTreeMap::new() }, outbox))
    }

    fn ready(&self, ctx: &SessionContext, waiting: &PartySet) -> bool {
        !waiting.is_empty() || self.candidates.len() >= ctx.threshold().get()
    }

    fn advance(
        mut self,
        ctx: &SessionContext,
        inbox: Inbox,
        _: &History<'_>,
        _: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        for envelope in inbox.iter() {
            match parse::<PartialSignature>(ctx, envelope) {
                Ok(partial) => {
                    self.candidates
                        .insert(envelope.sender(), Candidate { point: partial.point, good: false });
                }
                Err(cause) => {
                    self.culprits.insert(envelope.sender(), cause);
                }
            }
        }
        let threshold = ctx.threshold().get();
        let Some(message) = self.message.clone() else { return self.combined(ctx) };
        let key = self.key.or_else(|| self.public.own_point()).ok_or_else(Fault::internal)?;
        self.key = Some(key);
        // [S2] optimistically: combine the first `threshold` candidates, the verified ones before the others, and
        // verify once. [S3] if that fails: verify each, leave the wrong ones out, and go on with the good ones.
        while self.candidates.len() >= threshold {
            if let Some(signature) = self.combine(&key, &message, threshold).ok_or_else(Fault::internal)? {
                let culprits = self.culprits.into_iter().collect();
                return Ok(Next::Done(SignOutput { signature, culprits }));
            }
            if self.candidates.values().all(|candidate| candidate.good) {
                return Err(Fault::internal());
            }
            self.verify_each(ctx, &message)?;
        }
        self.with_too_few(ctx)
    }

    fn judge(_: &SessionContext, _: AbortCause, _: PartyId, _: &[Arc<Envelope>]) -> bool {
        false
    }
}

impl Signing {
    /// The combination of `threshold` candidates, if it is a signature. The outer `None` cannot be.
    #[expect(
        clippy::option_option,
        reason = "a broken invariant and a failed verification are different things"
    )]
    fn combine(
        &self,
        key: &G1,
        message: &HashedMessage,
        threshold: usize,
    ) -> Option<Option<[u8; G2_COMPRESSED_BYTES]>> {
        let combined = self.combination(threshold)?;
        let verified = combined.check().is_some_and(|signature| verify(key, message, &signature));
        Some(verified.then(|| combined.to_compressed()))
    }

    /// [S2] without the verification.
    fn combined(self, ctx: &SessionContext) -> Result<Next<Self>, Fault> {
        let threshold = ctx.threshold().get();
        if self.candidates.len() < threshold {
            return self.with_too_few(ctx);
        }
        let signature = self.combination(threshold).ok_or_else(Fault::internal)?.to_compressed();
        let culprits = self.culprits.into_iter().collect();
        Ok(Next::Done(SignOutput { signature, culprits }))
    }

    /// Waits for more partial signatures, if as many as are needed can still come.
    fn with_too_few(self, ctx: &SessionContext) -> Result<Next<Self>, Fault> {
        if ctx.parties().len() - self.culprits.len() < ctx.threshold().get() {
            let culprits = self.culprits.into_keys().collect();
            return Err(Fault::evident(AbortCause::NotEnoughPartials, culprits));
        }
        Ok(Next::Stay(self))
    }

    /// The combination of the first `threshold` candidates, the verified ones before the others.
    fn combination(&self, threshold: usize) -> Option<UncheckedG2> {
        let mut chosen: Vec<(&PartyId, &Candidate)> = self.candidates.iter().collect();
        chosen.sort_by_key(|(party, candidate)| (!candidate.good, **party));
        chosen.truncate(threshold);
        let numbers: Vec<u16> = chosen.iter().map(|(party, _)| party.get()).collect();
        let points: Vec<UncheckedG2> = chosen.iter().map(|(_, candidate)| candidate.point).collect();
        Some(UncheckedG2::combine(&points, &Weights::at_zero(&numbers)?))
    }

    fn verify_each(&mut self, ctx: &SessionContext, message: &HashedMessage) -> Result<(), Fault> {
        for (party, candidate) in &mut self.candidates {
            if candidate.good {
                continue;
            }
            let key = self.public.verification_point(*party).ok_or_else(Fault::internal)?;
            match candidate.point.check() {
                None => {
                    self.culprits.insert(*party, AbortCause::InvalidPoint);
                }
                Some(partial) if verify(&key, message, &partial) => candidate.good = true,
                Some(_) => {
                    self.culprits.insert(*party, AbortCause::WrongPartialSignature);
                }
            }
        }
        self.candidates.retain(|_, candidate| candidate.good);
        // Our own partial signature is wrong only if our share is: nobody else's fault.
        match ctx.me() {
            Some(me) if self.culprits.contains_key(&me) => Err(Fault::internal()),
            Some(_) | None => Ok(()),
        }
    }
}

fn check_key(ctx: &SessionContext, public: &KeyPublic) -> Result<(), SetupError> {
    if !public.well_formed() {
        return Err(SetupError::KeyPublicInvalid);
    }
    let of_this_key = public.key_id == ctx.key_id() && public.epoch == ctx.epoch();
    if !of_this_key || public.threshold != ctx.threshold() {
        return Err(if ctx.me().is_some() {
            SetupError::ShareMismatch
        } else {
            SetupError::KeyPublicInvalid
        });
    }
    if !ctx.parties().minus(&public.parties()).is_empty() {
        return Err(SetupError::SigningSetNotOfKey);
    }
    if ctx.parties().len() < ctx.threshold().get() {
        return Err(SetupError::SigningSetTooSmall);
    }
    Ok(())
}
