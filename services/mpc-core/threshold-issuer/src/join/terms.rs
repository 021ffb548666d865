//! The terms of a join, checked against its session.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    EvidencePublicKey, PartyId, PartySet, RosterEntry, Secret, SessionContext, SessionId, SessionSettings,
    SetupError,
};
use group_signatures::{Attempt, GroupPublic, MemberKey};
use primitives::bls12_381::{G1, Scalar};

use crate::attest::AttestedGroup;
use crate::key::IssuerShare;

/// The terms that all sides start from.
pub struct JoinTerms {
    /// The group, with the issuers that have signed it.
    pub group: Arc<AttestedGroup>,
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
        self.attempt.terms(&[&self.group.issuers().hash()])
    }

    /// [T0] the session of the join, as `me` starts it: the one that the identity has ordered, among these issuers,
    /// with their configured keys. The member, under a number that is none of the issuers', signs with the identity's
    /// key, so nobody else takes its place.
    pub fn settings(
        &self,
        me: PartyId,
        member: PartyId,
        chosen: &PartySet,
    ) -> Result<SessionSettings, SetupError> {
        let (Some(session), Some(identity)) = (self.attempt.session(), self.attempt.identity()) else {
            return Err(SetupError::PayloadInvalid);
        };
        let (group, named) = (self.group.group(), self.group.named());
        if named.identity(member).is_some() {
            return Err(SetupError::PartyCount);
        }
        let mut roster = vec![RosterEntry { id: member, evidence_key: Some(identity) }];
        for issuer in chosen.iter() {
            let key = named.identity(issuer).ok_or(SetupError::SigningSetNotOfKey)?;
            roster.push(RosterEntry { id: issuer, evidence_key: Some(key.clone()) });
        }
        roster.sort_by_key(|entry| entry.id);
        Ok(SessionSettings {
            session_id: SessionId::new(*session),
            me: Some(me),
            roster,
            threshold: self.group.issuers().threshold(),
            key_id: group.name().to_owned(),
            epoch: group.epoch(),
            payload: self.payload().to_vec(),
        })
    }

    fn check(&self, ctx: &SessionContext) -> Result<Places, SetupError> {
        let Self { group: attested, attempt } = self;
        let (group, issuers) = (attested.group(), attested.issuers());
        let same = ctx.key_id() == group.name()
            && ctx.epoch() == group.epoch()
            && ctx.threshold() == issuers.threshold();
        if !same || attempt.group() != group.digest() {
            return Err(SetupError::ShareMismatch);
        }
        let known = issuers.parties();
        let mut others = ctx.parties().minus(&known).iter().collect::<Vec<_>>().into_iter();
        let (Some(member), None) = (others.next(), others.next()) else { return Err(SetupError::PartyCount) };
        let chosen: PartySet = ctx.parties().iter().filter(|party| *party != member).collect();
        let weights = issuers.weights(&chosen).ok_or(SetupError::SigningSetTooSmall)?;
        // [T0] the session that the ticket's identity has ordered, with its key and those of the configured issuers.
        let ordered = attempt.session().map(|session| SessionId::new(*session));
        if ordered != Some(ctx.session_id()) || ctx.payload() != self.payload() {
            return Err(SetupError::PayloadInvalid);
        }
        let identity = attempt.identity().ok_or(SetupError::PayloadInvalid)?;
        let signs = |party: PartyId, key: &EvidencePublicKey| ctx.evidence_key(party) == Some(key);
        let issuer_signs = |party| attested.named().identity(party).is_some_and(|key| signs(party, key));
        if !signs(member, &identity) || !chosen.iter().all(issuer_signs) {
            return Err(SetupError::EvidenceKeyInvalid);
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
                if share.party() != me || share.issuers() != terms.group.issuers().as_ref() {
                    return Err(SetupError::ShareMismatch);
                }
                let weight = weights.get(&me).ok_or(SetupError::SigningSetNotOfKey)?;
                let key = Secret::new(share.secret().expose().mul(weight));
                Ok(Self { me, member, group: Arc::clone(terms.group.group()), points, key, secret: None })
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
        Ok(Self { me, member, group: Arc::clone(terms.group.group()), points, key, secret: Some(secret) })
    }
}
