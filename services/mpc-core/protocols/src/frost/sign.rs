//! Signing: two rounds from a key share, or one from a presignature. Everybody that gets the last round, an observer
//! too, has the signature.
//!
//! Specification: `docs/protocols/frost.md`; steps are cited as [S1].

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::session::History;
use engine::wire::{Malformed, Reader, Writer};
use engine::{
    AbortCause, Body, BroadcastBody, Delivery, Envelope, Fault, Inbox, Next, Outbox, PartyId, Protocol,
    ProtocolId, RoundRule, Route, SessionContext, SetupError,
};
use frost_core::round2::SignatureShare;
use rand_core::CryptoRng;

use super::key::{KeyPublic, KeyShare};
use super::presign::{PRESIGNATURE_ID_BYTES, Presignature};
use super::signing::{
    AllCommitments, Commit, Commitments, DIGEST_BYTES, Nonces, Signature, Terms, commitments_id, draw_nonces,
    read, read_partial,
};
use super::suite::{SCALAR_BYTES, Suite};
use super::target::Target;
use crate::dealing::Public;

/// The message that is signed, and the key that signs it. Their encoding is the payload of a signing session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignPayload {
    /// The key.
    pub target: Target,
    /// In sessions that use one up: the presignature.
    pub presignature: Option<[u8; PRESIGNATURE_ID_BYTES]>,
    /// Ed25519: the message. BIP-340: 32 bytes, the digest.
    pub message: Vec<u8>,
}

impl SignPayload {
    /// The target, the presignature's id if there is one, then the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.target.encode(&mut writer);
        if let Some(id) = &self.presignature {
            writer.bytes(id);
        }
        writer.sized(&self.message);
        writer.finish()
    }

    fn decode<S: Suite>(payload: &[u8], presigned: bool) -> Result<Self, SetupError> {
        let read = |reader: &mut Reader<'_>| {
            let target = Target::decode(reader)?;
            let presignature = if presigned { Some(*reader.array()?) } else { None };
            let message = reader.sized(payload.len())?.to_vec();
            core::mem::replace(reader, Reader::new(&[])).finish()?;
            Ok(Self { target, presignature, message })
        };
        let decoded = read(&mut Reader::new(payload)).map_err(|Malformed| SetupError::PayloadInvalid)?;
        if S::message_fits(decoded.message.len()) { Ok(decoded) } else { Err(SetupError::PayloadLength) }
    }
}

/// The input that signing starts from: at a party `T`, at an observer the key's public data.
pub enum SignInput<S: Suite, T> {
    /// A party, with what it uses up.
    Party(Box<T>),
    /// An observer, who combines but does not contribute.
    Observer(Box<KeyPublic<S>>),
}

/// Round 2: the sender's partial signature, and the name of the commitments it was made for.
pub struct Partial<S: Suite> {
    commitments: [u8; DIGEST_BYTES],
    value: SignatureShare<S::Cipher>,
}

impl<S: Suite> Body for Partial<S> {
    const ROUND: u8 = 2;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.commitments);
        writer.bytes(&self.value.serialize());
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        Ok(Self { commitments: *reader.array()?, value: read_partial::<S>(reader)? })
    }
}

impl<S: Suite> BroadcastBody for Partial<S> {}

/// The only round with a presignature: the sender's commitments again, for observers, and its partial signature.
pub struct PresignedPartial<S: Suite> {
    commitments: Vec<u8>,
    value: SignatureShare<S::Cipher>,
}

impl<S: Suite> Body for PresignedPartial<S> {
    const ROUND: u8 = 1;

    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.commitments);
        writer.bytes(&self.value.serialize());
    }

    fn decode(reader: &mut Reader<'_>, _: &SessionContext, _: Route) -> Result<Self, AbortCause> {
        let commitments = reader.bytes(Commitments::<S>::BYTES)?.to_vec();
        Ok(Self { commitments, value: read_partial::<S>(reader)? })
    }
}

impl<S: Suite> BroadcastBody for PresignedPartial<S> {}

/// Signs with a key share, in two rounds.
pub enum Signing<S: Suite> {
    /// Waiting for nonce commitments.
    Committed(Box<Committed<S>>),
    /// Waiting for partial signatures.
    Signed(Box<Signed<S>>),
}

/// State of round 1.
pub struct Committed<S: Suite> {
    terms: Terms<S>,
    /// None at an observer.
    own: Option<Secrets<S>>,
}

/// The data that a party signs with.
struct Secrets<S: Suite> {
    share: KeyShare<S>,
    nonces: Nonces<S>,
    commitments: Commitments<S>,
}

/// State of round 2.
pub struct Signed<S: Suite> {
    terms: Terms<S>,
    commitments: AllCommitments<S>,
    id: [u8; DIGEST_BYTES],
    /// None at an observer.
    own: Option<(PartyId, SignatureShare<S::Cipher>)>,
}

impl<S: Suite> Protocol for Signing<S> {
    const ID: ProtocolId = S::SIGN;
    const SIGNED: bool = false;
    const ROUNDS: &'static [RoundRule] = &[
        RoundRule { delivery: Delivery::Broadcast, max_body: Commitments::<S>::BYTES },
        RoundRule { delivery: Delivery::Broadcast, max_body: DIGEST_BYTES + SCALAR_BYTES },
    ];
    /// The payload of the session is the encoding of a [`SignPayload`] without presignature.
    type Input = SignInput<S, KeyShare<S>>;
    type Output = Signature;

    fn held_alike(input: &Self::Input) -> Option<[u8; 32]> {
        Some(match input {
            SignInput::Party(share) => share.public.digest(),
            SignInput::Observer(public) => public.digest(),
        })
    }

    /// [S1] draw nonces, show their commitments.
    fn start(
        ctx: &SessionContext,
        input: Self::Input,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let SignPayload { target, message, .. } = SignPayload::decode::<S>(ctx.payload(), false)?;
        let mut outbox = Outbox::new();
        let state = match input {
            SignInput::Party(share) => {
                if ctx.me() != Some(share.party) {
                    return Err(SetupError::ShareMismatch);
                }
                let terms = Terms::of_party(ctx, share.public.clone(), target, message)?;
                let nonces = draw_nonces(ctx, &share, 1, rng).pop().ok_or(SetupError::ShareInvalid)?;
                let sent = Commit(Commitments::of(&nonces.0).ok_or(SetupError::ShareInvalid)?);
                outbox.broadcast(&sent);
                Committed { terms, own: Some(Secrets { share: *share, nonces, commitments: sent.0 }) }
            }
            SignInput::Observer(_) if ctx.me().is_some() => return Err(SetupError::ShareMissing),
            SignInput::Observer(public) => {
                Committed { terms: Terms::of_observer(ctx, *public, target, message)?, own: None }
            }
        };
        Ok((Self::Committed(Box::new(state)), outbox))
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        _: &History<'_>,
        _: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        match self {
            Self::Committed(state) => {
                let (state, outbox) = state.advance(ctx, &inbox)?;
                Ok(Next::Round(Self::Signed(Box::new(state)), outbox))
            }
            Self::Signed(state) => state.finish(ctx, &inbox).map(Next::Done),
        }
    }

    fn judge(_: &SessionContext, _: AbortCause, _: PartyId, _: &[Arc<Envelope>]) -> bool {
        false
    }
}

impl<S: Suite> Committed<S> {
    /// [S2] the own partial signature, for exactly the commitments that were seen.
    fn advance(self, ctx: &SessionContext, inbox: &Inbox) -> Result<(Signed<S>, Outbox), Fault> {
        let Self { terms, own } = self;
        let mut commitments = BTreeMap::new();
        for envelope in inbox.iter() {
            commitments.insert(envelope.sender(), read::<Commit<S>>(ctx, envelope)?.0);
        }
        let mut outbox = Outbox::new();
        let Some(Secrets { share, nonces, commitments: mine }) = own else {
            let id = commitments_id(ctx, &terms.target, &commitments);
            return Ok((Signed { terms, commitments, id, own: None }, outbox));
        };
        commitments.insert(share.party, mine);
        let id = commitments_id(ctx, &terms.target, &commitments);
        let package = terms.package(&commitments).ok_or_else(Fault::internal)?;
        let value = terms.sign(&share, nonces, &package)?;
        outbox.broadcast(&Partial::<S> { commitments: id, value });
        Ok((Signed { terms, commitments, id, own: Some((share.party, value)) }, outbox))
    }
}

impl<S: Suite> Signed<S> {
    fn finish(self, ctx: &SessionContext, inbox: &Inbox) -> Result<Signature, Fault> {
        let mut partials: BTreeMap<_, _> = self.own.into_iter().collect();
        let mut views_differ = false;
        for envelope in inbox.iter() {
            let Partial { commitments, value } = read::<Partial<S>>(ctx, envelope)?;
            views_differ |= commitments != self.id;
            partials.insert(envelope.sender(), value);
        }
        // [S2.1] a party that signed for other commitments was lied to, or lies: its contribution cannot be judged.
        if views_differ {
            return Err(Fault::nobody(AbortCause::BroadcastMismatch));
        }
        let package = self.terms.package(&self.commitments).ok_or_else(Fault::internal)?;
        self.terms.combine(ctx, &package, &partials)
    }
}

/// Signs with a presignature, in one round.
pub struct PresignedSigning<S: Suite> {
    terms: Terms<S>,
    id: [u8; PRESIGNATURE_ID_BYTES],
    /// None at an observer.
    own: Option<Own<S>>,
}

/// The state of a party in the round with a presignature.
struct Own<S: Suite> {
    me: PartyId,
    value: SignatureShare<S::Cipher>,
    commitments: AllCommitments<S>,
}

impl<S: Suite> Protocol for PresignedSigning<S> {
    const ID: ProtocolId = S::SIGN_PRESIGNED;
    const SIGNED: bool = false;
    const ROUNDS: &'static [RoundRule] =
        &[RoundRule { delivery: Delivery::Broadcast, max_body: Commitments::<S>::BYTES + SCALAR_BYTES }];
    /// The payload of the session is the encoding of a [`SignPayload`] with presignature.
    type Input = SignInput<S, Presignature<S>>;
    type Output = Signature;

    fn held_alike(input: &Self::Input) -> Option<[u8; 32]> {
        Some(match input {
            SignInput::Party(presignature) => presignature.share.public.digest(),
            SignInput::Observer(public) => public.digest(),
        })
    }

    /// [O1] check that the presignature is bound to this, use it up.
    fn start(
        ctx: &SessionContext,
        input: Self::Input,
        _: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let payload = SignPayload::decode::<S>(ctx.payload(), true)?;
        let id = payload.presignature.ok_or(SetupError::PayloadInvalid)?;
        let mut outbox = Outbox::new();
        match input {
            SignInput::Party(presignature) => {
                let Presignature { id: held, share, target, nonces, commitments } = *presignature;
                let bound_to_this = held == id
                    && Some(share.party) == ctx.me()
                    && target == payload.target
                    && commitments.keys().copied().eq(ctx.parties().iter());
                if !bound_to_this {
                    return Err(SetupError::ShareMismatch);
                }
                let terms = Terms::of_party(ctx, share.public.clone(), target, payload.message)?;
                let invalid = SetupError::ShareInvalid;
                let package = terms.package(&commitments).ok_or(invalid.clone())?;
                let value = terms.sign(&share, nonces, &package).map_err(|_| invalid.clone())?;
                let me = share.party;
                let bytes = commitments.get(&me).ok_or(invalid)?.bytes.clone();
                outbox.broadcast(&PresignedPartial::<S> { commitments: bytes, value });
                Ok((Self { terms, id, own: Some(Own { me, value, commitments }) }, outbox))
            }
            SignInput::Observer(_) if ctx.me().is_some() => Err(SetupError::ShareMissing),
            SignInput::Observer(public) => {
                let terms = Terms::of_observer(ctx, *public, payload.target, payload.message)?;
                Ok((Self { terms, id, own: None }, outbox))
            }
        }
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        _: &History<'_>,
        _: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        let Self { terms, id, own } = self;
        let mut partials = BTreeMap::new();
        let mut shown = BTreeMap::new();
        for envelope in inbox.iter() {
            let partial: PresignedPartial<S> = read(ctx, envelope)?;
            partials.insert(envelope.sender(), partial.value);
            shown.insert(envelope.sender(), partial.commitments);
        }
        let commitments = match own {
            Some(Own { me, value, commitments }) => {
                partials.insert(me, value);
                // [O2] what is shown is what was shown when the presignature was made.
                let differs = |party: &PartyId, bytes: &Vec<u8>| {
                    commitments.get(party).is_none_or(|held| &held.bytes != bytes)
                };
                let liars: Vec<PartyId> =
                    shown.iter().filter(|(party, bytes)| differs(party, bytes)).map(|(p, _)| *p).collect();
                if !liars.is_empty() {
                    return Err(Fault::evident(AbortCause::WrongOpening, liars));
                }
                commitments
            }
            None => observed(ctx, &terms, &id, shown)?,
        };
        let package = terms.package(&commitments).ok_or_else(Fault::internal)?;
        terms.combine(ctx, &package, &partials).map(Next::Done)
    }

    fn judge(_: &SessionContext, _: AbortCause, _: PartyId, _: &[Arc<Envelope>]) -> bool {
        false
    }
}

/// [O2] an observer was not there when the presignature was made; together, what is shown must have its name.
fn observed<S: Suite>(
    ctx: &SessionContext,
    terms: &Terms<S>,
    id: &[u8; PRESIGNATURE_ID_BYTES],
    shown: BTreeMap<PartyId, Vec<u8>>,
) -> Result<AllCommitments<S>, Fault> {
    let mut commitments = BTreeMap::new();
    for (party, bytes) in shown {
        let read = Commitments::read(&mut Reader::new(&bytes));
        commitments.insert(party, read.map_err(|cause| Fault::evident(cause, vec![party]))?);
    }
    if &commitments_id(ctx, &terms.target, &commitments) != id {
        return Err(Fault::nobody(AbortCause::BroadcastMismatch));
    }
    Ok(commitments)
}
