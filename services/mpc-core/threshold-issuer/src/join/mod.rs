//! The join: t issuers and a member compute g1^{1/(sk_m + sk_i)} for the member, and nobody learns another's secret.
//! Steps are cited as [T1] (`docs/protocols/wbb.md`).
//!
//! Three rounds set up each pair of parties, afresh for each join. Two rounds are those of presigning (Doerner, Kondi,
//! Lee, shelat 2023, eprint 2023/765, protocol 3.6) over G1, with the member as one more party of the joint key sk_m +
//! sk_i, whose point X_m Y_i everybody knows. In the last one the issuers give the member, and nobody else, what it
//! divides. Messages are signed, and sealed to their recipients, so it does not matter who carries them.
//!
//! | paper | here |
//! |---|---|
//! | φ_i | `mask` |
//! | sk_i, pk_i | `share`, `key_points`: additive share of the joint key, re-randomised by shares of zero |
//! | χ_(i,j) | `bob.factor()` |
//! | c^v, d^v | `product` of Alice and of Bob |
//! | Γ^v | `product_point` |
//! | ψ_(i,j) | `mask_minus_factor` |
//! | v_i | `masked_key` |
//!
//! Deviations: there is no nonce, so one product instead of two, and nothing to commit to; pairs are set up in the
//! session, so shares of zero follow from fresh seeds; and the points of these shares are shown to all, so that each
//! party's input to the multiplications is checked against its verification share, and a wrong one has a culprit.

mod messages;
mod pair;
mod rounds;

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    AbortCause, Envelope, Fault, History, Inbox, Next, Outbox, PartyId, PartySet, Protocol, ProtocolId,
    RoundRule, Secret, SessionContext, SetupError,
};
use group_signatures::{Attempt, GroupPublic, MemberKey};
use primitives::bls12_381::{G1, Scalar};
use rand_core::CryptoRng;

use crate::key::{IssuerShare, Issuers};
use messages::{ROUNDS, body_fault};
use rounds::{Multiplied, Sampled, SettingUp, Waiting};

/// The terms that all sides start from.
pub struct JoinTerms {
    /// The group.
    pub group: Arc<GroupPublic>,
    /// The public data of the issuing key.
    pub issuers: Arc<Issuers>,
    /// The run, as this side has counted it.
    pub attempt: Attempt,
}

/// Input of a session.
pub enum JoinInput {
    /// At an issuer.
    Issuer {
        /// The agreed terms.
        terms: JoinTerms,
        /// The issuer's share of sk_m.
        share: Arc<IssuerShare>,
    },
    /// At the member.
    Member {
        /// The agreed terms.
        terms: JoinTerms,
        /// sk_i.
        secret: Secret<Scalar>,
    },
    /// For tests: a member that enters another secret than the registered one.
    #[cfg(feature = "forge")]
    Liar {
        /// The agreed terms.
        terms: JoinTerms,
        /// The other secret.
        secret: Secret<Scalar>,
    },
}

/// Output of a session.
pub enum JoinOutput {
    /// The issuer has sent its part of the answer, and everybody else has come as far. Whether the member has its key,
    /// the issuer does not know.
    Answered,
    /// The member has its key, verified.
    Joined(Box<MemberKey>),
}

/// Everything that a party of a join knows from its start.
pub(crate) struct Setting {
    me: PartyId,
    member: PartyId,
    group: Arc<GroupPublic>,
    /// Each party's additive share of the joint key as a point, before shares of zero.
    points: BTreeMap<PartyId, G1>,
    /// The own share.
    key: Secret<Scalar>,
    /// sk_i, at the member.
    secret: Option<Secret<Scalar>>,
}

/// The parties of a session in their places.
struct Places {
    member: PartyId,
    /// Each party's additive share of the joint key as a point.
    points: BTreeMap<PartyId, G1>,
    /// With which factor each issuer's share enters sk_m.
    weights: BTreeMap<PartyId, Scalar>,
}

impl JoinTerms {
    /// The session's payload. Parties and threshold are in the session's digest beside it.
    pub fn payload(&self) -> [u8; 32] {
        self.attempt.terms(&[&self.issuers.hash()])
    }

    fn check(&self, ctx: &SessionContext) -> Result<Places, SetupError> {
        let Self { group, issuers, attempt } = self;
        let same = ctx.key_id() == group.name()
            && ctx.epoch() == group.epoch()
            && ctx.threshold() == issuers.threshold();
        if !same || attempt.group() != group.digest() {
            return Err(SetupError::ShareMismatch);
        }
        if issuers.public_key() != group.issuer() {
            return Err(SetupError::KeyPublicInvalid);
        }
        let known = issuers.parties();
        let mut others = ctx.parties().minus(&known).iter().collect::<Vec<_>>().into_iter();
        let (Some(member), None) = (others.next(), others.next()) else { return Err(SetupError::PartyCount) };
        let chosen: PartySet = ctx.parties().iter().filter(|party| *party != member).collect();
        let weights = issuers.weights(&chosen).ok_or(SetupError::SigningSetTooSmall)?;
        if ctx.payload() != self.payload() {
            return Err(SetupError::PayloadInvalid);
        }
        // A joint key of zero has no signature, and no registered member has it.
        let point = attempt.member();
        if point.is_identity() || point.plus(group.issuer()).is_identity() {
            return Err(SetupError::PayloadInvalid);
        }
        let weights: BTreeMap<PartyId, Scalar> = chosen.iter().zip(weights).collect();
        let mut points = BTreeMap::from([(member, *point)]);
        for (party, weight) in &weights {
            let share = issuers.share(*party).ok_or(SetupError::SigningSetNotOfKey)?;
            points.insert(*party, share.times_public(weight));
        }
        Ok(Places { member, points, weights })
    }
}

impl Setting {
    fn new(ctx: &SessionContext, input: JoinInput) -> Result<Self, SetupError> {
        let me = ctx.me().ok_or(SetupError::ObserverNotAllowed)?;
        match input {
            JoinInput::Issuer { terms, share } => {
                let Places { member, points, weights } = terms.check(ctx)?;
                if share.party() != me || share.issuers() != terms.issuers.as_ref() {
                    return Err(SetupError::ShareMismatch);
                }
                let weight = weights.get(&me).ok_or(SetupError::SigningSetNotOfKey)?;
                let key = Secret::new(share.secret().expose().mul(weight));
                Ok(Self { me, member, group: terms.group, points, key, secret: None })
            }
            JoinInput::Member { terms, secret } => {
                if G1::mul_generator(&secret) != *terms.attempt.member() {
                    return Err(SetupError::ShareInvalid);
                }
                Self::of_member(ctx, me, terms, secret)
            }
            #[cfg(feature = "forge")]
            JoinInput::Liar { terms, secret } => Self::of_member(ctx, me, terms, secret),
        }
    }

    fn of_member(
        ctx: &SessionContext,
        me: PartyId,
        terms: JoinTerms,
        secret: Secret<Scalar>,
    ) -> Result<Self, SetupError> {
        let Places { member, points, .. } = terms.check(ctx)?;
        if member != me {
            return Err(SetupError::InputUnexpected);
        }
        let key = Secret::new(secret.expose().copy());
        Ok(Self { me, member, group: terms.group, points, key, secret: Some(secret) })
    }
}

/// One party's side of a join.
pub enum Join {
    /// Setting up the pairs, which takes three rounds.
    SettingUp(Box<SettingUp>),
    /// Waiting for the peers' first messages of the multiplications.
    Sampled(Box<Sampled>),
    /// Waiting for their answers.
    Multiplied(Box<Multiplied>),
    /// Waiting for the issuers' parts, at the member; for the others to have come as far, at an issuer.
    Waiting(Box<Waiting>),
}

impl Protocol for Join {
    const ID: ProtocolId = ProtocolId { number: 69, name: "wbb/threshold-join/1" };
    const SIGNED: bool = true;
    const ROUNDS: &'static [RoundRule] = ROUNDS;
    type Input = JoinInput;
    type Output = JoinOutput;

    fn start(
        ctx: &SessionContext,
        input: JoinInput,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Self, Outbox), SetupError> {
        let (state, outbox) = SettingUp::begin(ctx, Setting::new(ctx, input)?, rng);
        Ok((Self::SettingUp(Box::new(state)), outbox))
    }

    fn advance(
        self,
        ctx: &SessionContext,
        inbox: Inbox,
        _: &History<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Next<Self>, Fault> {
        match self {
            Self::SettingUp(state) => state.advance(ctx, &inbox, rng),
            Self::Sampled(state) => state.advance(ctx, &inbox, rng),
            Self::Multiplied(state) => state.advance(ctx, &inbox),
            Self::Waiting(state) => state.finish(ctx, &inbox),
        }
    }

    /// Faults of bytes are everybody's to see; the others convince the party whose secrets they were checked with.
    fn judge(ctx: &SessionContext, cause: AbortCause, accused: PartyId, evidence: &[Arc<Envelope>]) -> bool {
        match cause {
            AbortCause::MalformedBody | AbortCause::InvalidPoint | AbortCause::InvalidScalar => matches!(
                evidence,
                [envelope] if envelope.sender() == accused && body_fault(ctx, envelope) == Some(cause)
            ),
            AbortCause::Internal
            | AbortCause::WrongDegree
            | AbortCause::WrongOpening
            | AbortCause::WrongProof
            | AbortCause::WrongShare
            | AbortCause::FalseComplaint
            | AbortCause::Equivocation
            | AbortCause::BroadcastMismatch
            | AbortCause::WrongPartialSignature
            | AbortCause::NotEnoughPartials
            | AbortCause::DegenerateKey
            | AbortCause::TransferCheckFailed
            | AbortCause::WrongProduct
            | AbortCause::InconsistentShares
            | AbortCause::InvalidSignature
            | AbortCause::PartyRestarted => false,
        }
    }
}
