//! Issuers with shares of a key, and runs of the join among some of them and a member.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use engine::session::Session;
use engine::{
    EvidenceKey, EvidencePublicKey, PartyId, RosterEntry, Secret, SessionId, SessionSettings, Threshold,
};
use group_signatures::forge::{Custody, attempt, ordered};
use group_signatures::{Attempt, AttestedKey, GroupDraft, GroupPublic, MemberKey};
use primitives::bls12_381::{G1, G2, Scalar};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use sim::{Address, Faults, Outcome, World};
use threshold_issuer::key::forge::{copy, deal};
use threshold_issuer::{
    AttestedGroup, IssuerShare, Issuers, Join, JoinInput, JoinOutput, JoinTerms, NamedIssuers,
};

pub const TICKET: [u8; 32] = [5; 32];
/// The session of joins that have no number of their own.
pub const SESSION: u64 = 80;
/// A member whose number is above or below all issuers', which are 11, 12 and so on.
pub const ABOVE: u32 = 100;
pub const BELOW: u32 = 3;

pub type Outcomes = BTreeMap<Address, Outcome<JoinOutput>>;

pub fn party(number: u32) -> PartyId {
    PartyId::new(number).unwrap()
}

pub fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// The key that a party signs its messages with.
pub fn evidence_key(party: PartyId) -> EvidenceKey {
    let mut seed = [7; 32];
    seed[..2].copy_from_slice(&party.get().to_be_bytes());
    EvidenceKey::from_seed(&Secret::new(seed))
}

/// The ticket's identity: the key of a member with this number.
pub fn identity(member: u32) -> EvidencePublicKey {
    evidence_key(party(member)).public()
}

/// The id of a session.
pub fn session_id(session: u64) -> [u8; 32] {
    let mut id = [0; 32];
    id[..8].copy_from_slice(&session.to_be_bytes());
    id
}

/// The group, signed by all issuers of the installation that every party is configured for.
pub fn attest(group: &Arc<GroupPublic>, shares: &[IssuerShare]) -> Arc<AttestedGroup> {
    let issuers = Arc::new(shares[0].issuers().clone());
    let keys: Vec<_> = issuers.parties().iter().map(|party| (party, evidence_key(party).public())).collect();
    let named = NamedIssuers::new("acme", issuers.threshold(), &keys).unwrap();
    let sign = |share: &IssuerShare| {
        let me = share.party();
        (me, share.attest(group, &named, &evidence_key(me)).unwrap())
    };
    let signatures: Vec<_> = shares.iter().map(sign).collect();
    Arc::new(AttestedGroup::new(Arc::clone(group), issuers, &named, &signatures).unwrap())
}

pub fn duplicate(secret: &Secret<Scalar>) -> Secret<Scalar> {
    Secret::new(secret.expose().copy())
}

/// A session of these parties.
pub fn settings(
    me: PartyId,
    parties: &[PartyId],
    threshold: Threshold,
    (key_id, epoch): (&str, u32),
    (session, payload): (u64, &[u8]),
) -> SessionSettings {
    let entry = |id: &PartyId| RosterEntry { id: *id, evidence_key: Some(evidence_key(*id).public()) };
    SessionSettings {
        session_id: SessionId::new(session_id(session)),
        me: Some(me),
        roster: parties.iter().map(entry).collect(),
        threshold,
        key_id: key_id.to_owned(),
        epoch,
        payload: payload.to_vec(),
    }
}

/// Issuers of one group.
pub struct Installation {
    pub group: Arc<GroupPublic>,
    pub issuers: Arc<Issuers>,
    pub attested: Arc<AttestedGroup>,
    pub shares: Vec<IssuerShare>,
    /// sk_m, which nobody has.
    pub key: Secret<Scalar>,
    pub custody: Custody,
}

/// A group whose key is in one hand for a moment.
pub fn published(opener: AttestedKey, key: &Secret<Scalar>) -> GroupPublic {
    let draft = GroupDraft::new(opener, G1::mul_generator(key), G2::mul_generator(key)).unwrap();
    let nonce = Scalar::from_u64(77);
    let challenge = draft.challenge(&G1::mul_generator(&Secret::new(nonce.copy())));
    let response = nonce.add(&challenge.mul(key.expose()));
    draft.prove(challenge, response).unwrap()
}

impl Installation {
    pub fn new(threshold: u32, count: u32) -> Self {
        let mut rng = rng(u64::from(threshold * 100 + count));
        let custody = Custody::new(2, 3, &mut rng).unwrap();
        let opener = custody.attested("approvers", 1).unwrap();
        let parties: Vec<PartyId> = (11..11 + count).map(party).collect();
        let (shares, key) = deal(&opener, Threshold::new(threshold).unwrap(), &parties, &mut rng);
        let group = published(opener, &key);
        let group = Arc::new(GroupPublic::decode(&group.encode(), &custody.openers).unwrap());
        let issuers = Arc::new(Issuers::from_bytes(&shares[0].issuers().to_bytes()).unwrap());
        let attested = attest(&group, &shares);
        Self { group, issuers, attested, shares, key, custody }
    }

    /// The one that most tests use: 2 of 3.
    pub fn usual() -> &'static Self {
        static USUAL: OnceLock<Installation> = OnceLock::new();
        USUAL.get_or_init(|| Self::new(2, 3))
    }

    pub fn share(&self, issuer: PartyId) -> IssuerShare {
        copy(self.shares.iter().find(|share| share.party() == issuer).unwrap())
    }

    pub fn terms(&self, attempt: Attempt) -> JoinTerms {
        JoinTerms { group: Arc::clone(&self.attested), attempt }
    }

    /// The run of this member's in this session.
    pub fn attempt(&self, (member, secret): (u32, &Secret<Scalar>), session: u64) -> Attempt {
        let run = attempt(&self.group, TICKET, 1, G1::mul_generator(secret));
        ordered(run, session_id(session), &identity(member))
    }

    pub fn issuer_input(&self, issuer: PartyId, attempt: Attempt) -> JoinInput {
        JoinInput::Issuer { terms: self.terms(attempt), share: Arc::new(self.share(issuer)) }
    }

    /// g1^{1/(sk_m + sk_i)}, with both secrets in one hand.
    pub fn credential(&self, secret: &Secret<Scalar>) -> G1 {
        let sum = self.key.expose().add(secret.expose());
        G1::mul_generator(&Secret::new(sum.inverse()))
    }

    pub fn settings(
        &self,
        me: PartyId,
        parties: &[PartyId],
        session: u64,
        payload: &[u8],
    ) -> SessionSettings {
        let key = (self.group.name(), self.group.epoch());
        settings(me, parties, self.issuers.threshold(), key, (session, payload))
    }

    /// A join of this secret among these issuers in which `faults` happen.
    pub fn join(
        &self,
        issuers: &[u32],
        (member, secret): (u32, &Secret<Scalar>),
        session: u64,
        faults: Faults<'_>,
    ) -> Outcomes {
        let inputs = issuers
            .iter()
            .map(|issuer| {
                (*issuer, self.issuer_input(party(*issuer), self.attempt((member, secret), session)))
            })
            .chain([{
                let terms = self.terms(self.attempt((member, secret), session));
                (member, JoinInput::Member { terms, secret: duplicate(secret) })
            }]);
        self.run(inputs.collect(), session, faults)
    }

    /// A join with these inputs.
    pub fn run(&self, mut inputs: Vec<(u32, JoinInput)>, session: u64, faults: Faults<'_>) -> Outcomes {
        inputs.sort_by_key(|(number, _)| *number);
        let parties: Vec<PartyId> = inputs.iter().map(|(number, _)| party(*number)).collect();
        let payload = match &inputs[0].1 {
            JoinInput::Issuer { terms, .. }
            | JoinInput::Member { terms, .. }
            | JoinInput::Liar { terms, .. } => terms.payload(),
        };
        let started = inputs.into_iter().map(|(number, input)| {
            let me = party(number);
            let settings = self.settings(me, &parties, session, &payload);
            let mut rng = rng(session << 16 | u64::from(number));
            let started = Session::<Join>::start(settings, Some(evidence_key(me)), input, &mut rng).unwrap();
            (Some(me), started)
        });
        let started: Vec<_> = started.collect();
        World::new(session, faults, started).run()
    }
}

/// The member's key, if it has joined.
pub fn key_of(outcomes: &mut Outcomes, member: u32) -> Option<MemberKey> {
    match outcomes.get_mut(&Some(party(member))).unwrap().done.take()? {
        JoinOutput::Joined(key) => Some(*key),
        JoinOutput::Answered => panic!("the member has answered"),
    }
}
