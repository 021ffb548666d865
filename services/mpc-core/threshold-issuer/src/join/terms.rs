//! The terms of a join, checked against its session.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{PartyId, PartySet, Secret, SessionContext, SetupError};
use group_signatures::{Attempt, GroupPublic, MemberKey};
use primitives::bls12_381::{G1, Scalar};

use crate::key::{IssuerShare, Issuers};

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
pub(super) struct Setting {
    pub(super) me: PartyId,
    pub(super) member: PartyId,
    pub(super) group: Arc<GroupPublic>,
    /// Each party's additive share of the joint key as a point, before shares of zero.
    pub(super) points: BTreeMap<PartyId, G1>,
    /// The own share.
    pub(super) key: Secret<Scalar>,
    /// sk_i, at the member.
    pub(super) secret: Option<Secret<Scalar>>,
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
        // A run that the ticket's identity has ordered. The payload has the session of the order, and the caller sees
        // to it that this is the session that runs.
        if attempt.session().is_none() || ctx.payload() != self.payload() {
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
    pub(super) fn new(ctx: &SessionContext, input: JoinInput) -> Result<Self, SetupError> {
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
