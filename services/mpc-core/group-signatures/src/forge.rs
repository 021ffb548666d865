//! For tests: members that nobody has admitted, and openers in one hand.

use engine::{EvidenceKey, EvidencePublicKey, PartyId, Secret};
use primitives::bls12_381::{G1, Scalar};
use rand_core::CryptoRng;

pub use crate::approval::forge::{Simulated, accepts, simulate};
use crate::error::GroupError;
use crate::group::{GroupPublic, IssuingKey};
use crate::group_id::GroupId;
use crate::member::{MemberKey, complete};
use crate::opener::{AttestedKey, OpenerKey, Openers};
use crate::registration::{Attempt, Ordered, Register, RunOrder, TICKET_BYTES, Ticket};

/// The key of another group, said to be one of this.
pub fn claim(mut key: MemberKey, group: &GroupPublic) -> MemberKey {
    key.group = *group.digest();
    key
}

/// A member made with all secrets in one hand.
pub fn admit(key: &IssuingKey, group: &GroupPublic, secret: &Secret<Scalar>) -> Option<MemberKey> {
    let sum = Secret::new(key.scalar().expose().add(secret.expose()));
    let credential = G1::mul_generator(&Secret::new(sum.expose().inverse()));
    complete(group, Secret::new(secret.expose().copy()), credential).ok()
}

/// A run of the join that nobody has counted.
pub fn attempt(group: &GroupPublic, ticket: [u8; TICKET_BYTES], number: u8, member: G1) -> Attempt {
    Attempt { group: *group.digest(), ticket, number, member, order: None }
}

/// An order of a run by an identity that does not count.
pub fn order(
    group: &GroupPublic,
    ticket: &[u8; TICKET_BYTES],
    run: (u8, [u8; 32]),
    identity: &EvidenceKey,
) -> RunOrder {
    RunOrder::sign(group.digest(), ticket, run, identity)
}

/// An uncounted run, as if this identity, the ticket's, had ordered it for a session.
pub fn ordered(mut attempt: Attempt, session: [u8; 32], identity: &EvidencePublicKey) -> Attempt {
    attempt.order = Some(Ordered { session, identity: *identity.as_bytes() });
    attempt
}

/// Ticket records in memory.
#[derive(Clone, Default)]
pub struct Records {
    /// The records that are kept.
    pub tickets: Vec<Ticket>,
    /// Members besides.
    pub others: usize,
}

impl Records {
    /// Stores a record in the place of the one with its ticket.
    pub fn store(&mut self, ticket: &Ticket) {
        self.tickets.retain(|other| other.name() != ticket.name());
        self.tickets.push(ticket.clone());
    }
}

impl Register for Records {
    fn members(&self) -> usize {
        self.tickets.len() + self.others
    }

    fn ticket(&self, name: &[u8; TICKET_BYTES]) -> Option<Ticket> {
        self.tickets.iter().find(|ticket| ticket.name() == name).cloned()
    }

    fn has_point(&self, point: &G1) -> bool {
        self.tickets.iter().any(|ticket| ticket.member().as_ref() == Ok(point))
    }

    fn has_identity(&self, identity: &EvidencePublicKey) -> bool {
        self.tickets.iter().any(|ticket| ticket.identity() == identity.as_bytes())
    }
}

/// All openers' secrets.
pub struct Custody {
    /// Coefficients of the polynomial whose values are the openers' secrets, constant term first.
    sharing: Vec<Secret<Scalar>>,
    identities: Vec<(PartyId, EvidenceKey)>,
    /// The configuration that all parties have.
    pub openers: Openers,
}

impl Custody {
    /// Openers 1 to `count`. `None` if there cannot be so many.
    pub fn new(threshold: usize, count: u16, rng: &mut dyn CryptoRng) -> Option<Self> {
        let sharing = (0..threshold).map(|_| Secret::new(Scalar::random(rng))).collect();
        let identities: Option<Vec<_>> = (1..=u32::from(count))
            .map(|number| Some((PartyId::new(number)?, EvidenceKey::generate(rng))))
            .collect();
        let identities = identities?;
        let known: Vec<_> = identities.iter().map(|(party, key)| (*party, key.public())).collect();
        Some(Self { sharing, openers: Openers::new(threshold, &known)?, identities })
    }

    /// o_j.
    pub fn share(&self, party: PartyId) -> Secret<Scalar> {
        let x = Scalar::from_u64(u64::from(party.get()));
        let terms = self.sharing.iter().rev();
        Secret::new(terms.fold(Scalar::zero(), |value, term| value.mul(&x).add(term.expose())))
    }

    /// O with the openers' points.
    pub fn key(&self) -> Result<OpenerKey, GroupError> {
        let point = |(party, _): &(PartyId, _)| (*party, G1::mul_generator(&self.share(*party)));
        let shares: Vec<_> = self.identities.iter().map(point).collect();
        Ok(OpenerKey::new(&self.openers, &shares)?)
    }

    /// The same, signed by all.
    pub fn attested(&self, name: &str, epoch: u32) -> Result<AttestedKey, GroupError> {
        let (key, group) = (self.key()?, GroupId::new(name, epoch)?);
        let mut attestations = Vec::new();
        for (party, identity) in &self.identities {
            attestations.push((*party, key.attest(&group, *party, &self.share(*party), identity)?));
        }
        Ok(key.attested(group, &attestations)?)
    }

    /// A group of theirs with a fresh issuing key.
    pub fn group(
        &self,
        name: &str,
        epoch: u32,
        rng: &mut dyn CryptoRng,
    ) -> Result<(IssuingKey, GroupPublic), GroupError> {
        IssuingKey::create(self.attested(name, epoch)?, rng)
    }
}
