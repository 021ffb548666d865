//! An installation with a group: three issuers, three openers, and members, each with a vault of its own.

#![allow(dead_code, unused_imports, reason = "every test binary uses its own part")]

use std::collections::BTreeMap;

use coterie_mpc::proto::group_call::{
    AcceptAnswers, AnswerApplication, Apply, ApprovalDecision, ApprovalRequest, Approve, AssembleGroup,
    AttestGroup, AttestOpenersKey, Call, CombineOpening, CountApprovals, CountRun, Group, GroupCall,
    IssuerRecords, NameIssuingKey, OrderRun, RegisterMember, Reserve, ShareOpening,
};
use coterie_mpc::proto::group_reply::{GroupRefusal, GroupRefused, GroupReply, MemberRegistered, Reply};
use coterie_mpc::proto::{
    Done, GroupParties, GroupTerms, KeyPublic, OpenersKey, PartyBytes, ProtocolId, SessionConfig, Step,
};
use coterie_mpc::*;
use prost::Message;

use crate::common::{Ends, Party, Refused, Session, Vault, parties, replied, run};

/// The number under which members take part in joins.
pub const MEMBER: u32 = 100;

/// One call as a C program makes it.
pub fn raw(vault: Option<&Vault>, identity: &[u8], call: &[u8]) -> Result<Vec<u8>, Refused> {
    replied(mpc_group_call, vault, identity, call)
}

pub fn encoded(call: Call) -> Vec<u8> {
    GroupCall { call: Some(call) }.encode_to_vec()
}

pub fn call(vault: Option<&Vault>, identity: &[u8], call: Call) -> Result<Reply, (i32, String)> {
    let reply = raw(vault, identity, &encoded(call))?;
    Ok(GroupReply::decode(reply.as_slice()).unwrap().reply.unwrap())
}

/// The refusal of a call.
pub fn refusal(reply: Result<Reply, (i32, String)>) -> GroupRefused {
    match reply {
        Ok(Reply::GroupRefused(refused)) => {
            assert!(!refused.detail.is_empty());
            refused
        }
        other => panic!("{other:?}"),
    }
}

/// Its reason.
pub fn reason(reply: Result<Reply, (i32, String)>) -> GroupRefusal {
    GroupRefusal::try_from(refusal(reply).reason).unwrap()
}

/// The reply of one kind.
macro_rules! reply {
    ($kind:ident, $reply:expr) => {
        match $reply {
            Ok(coterie_mpc::proto::group_reply::Reply::$kind(reply)) => reply,
            other => panic!("{other:?}"),
        }
    };
}
pub(crate) use reply;

/// The records of one ticket at an issuer.
#[derive(Clone, Default)]
pub struct Stored {
    pub reservation: Vec<u8>,
    pub member: Option<MemberRegistered>,
}

impl Stored {
    pub fn records(&self) -> IssuerRecords {
        IssuerRecords {
            reservation: self.reservation.clone(),
            member: self.member.as_ref().map_or_else(Vec::new, |member| member.member.clone()),
            ..IssuerRecords::default()
        }
    }
}

pub struct World {
    pub issuers: Vec<Party>,
    pub openers: Vec<Party>,
    pub config: GroupParties,
    pub openers_key: OpenersKey,
    pub opener_shares: BTreeMap<u32, Vec<u8>>,
    pub issuing: BTreeMap<u32, Done>,
    pub published: Vec<u8>,
    pub group: Group,
}

fn listed(parties: &[Party]) -> Vec<proto::Party> {
    let one = |party: &Party| proto::Party { id: party.id, evidence_key: party.evidence_key.clone() };
    parties.iter().map(one).collect()
}

pub fn from(party: u32, value: Vec<u8>) -> PartyBytes {
    PartyBytes { party, value }
}

/// A session of these parties.
pub fn session(protocol: ProtocolId, own: u32, parties: &[Party], key: (&str, u32), id: u8) -> SessionConfig {
    SessionConfig {
        protocol: protocol.into(),
        session_id: vec![id; 32],
        own,
        parties: listed(parties),
        threshold: 2,
        key_id: key.0.to_owned(),
        epoch: key.1,
        ..SessionConfig::default()
    }
}

fn all(
    parties: &[Party],
    config: impl Fn(u32) -> SessionConfig,
    share: impl Fn(u32) -> Vec<u8>,
) -> BTreeMap<u32, Done> {
    let start = |party: &Party| {
        let config = config(party.id).encode_to_vec();
        (party.id, Session::start(Some(&party.vault), &config, &party.identity, &share(party.id)).unwrap())
    };
    run(parties.iter().map(start).collect())
}

impl World {
    pub fn new() -> Self {
        let mut issuers = parties(6);
        let openers = issuers.split_off(3);
        let config = GroupParties {
            installation: "acme".to_owned(),
            issuers: listed(&issuers),
            issuer_threshold: 2,
            openers: listed(&openers),
            opener_threshold: 2,
        };
        let key = ("approvers/1/openers", 1);
        let made = all(&openers, |own| session(ProtocolId::OpeningKeygen, own, &openers, key, 1), |_| vec![]);
        let mut openers_key = OpenersKey {
            group: "approvers".to_owned(),
            epoch: 1,
            key: made[&4].key_public.clone(),
            signatures: Vec::new(),
        };
        let signatures = openers.iter().map(|opener| {
            let signed = AttestOpenersKey {
                openers: Some(openers_key.clone()),
                parties: Some(config.clone()),
                party: opener.id,
                sealed_share: made[&opener.id].sealed_share.clone(),
            };
            let reply = call(Some(&opener.vault), &opener.identity, Call::AttestOpenersKey(signed));
            from(opener.id, reply!(Attested, reply).signature)
        });
        openers_key.signatures = signatures.collect();
        let named = NameIssuingKey { openers: Some(openers_key.clone()), parties: Some(config.clone()) };
        let key_id = reply!(IssuingKeyNamed, call(None, &[], Call::NameIssuingKey(named))).key_id;
        let terms = GroupTerms {
            parties: Some(config.clone()),
            openers: Some(openers_key.clone()),
            attested: Vec::new(),
        };
        let of = |protocol, own, id| SessionConfig {
            group: Some(terms.clone()),
            ..session(protocol, own, &issuers, (&key_id, 1), id)
        };
        let issuing = all(&issuers, |own| of(ProtocolId::IssuingKeygen, own, 2), |_| vec![]);
        let share = |own: u32| issuing[&own].sealed_share.clone();
        let groups = all(&issuers, |own| of(ProtocolId::IssuingPublish, own, 3), share);
        let published = groups[&1].group.clone();
        assert!(groups.values().all(|done| done.group.len() == published.len()));
        let opener_shares = made.into_iter().map(|(party, done)| (party, done.sealed_share)).collect();
        let group = Group { parties: Some(config.clone()), attested: Vec::new() };
        let mut world =
            Self { issuers, openers, config, openers_key, opener_shares, issuing, published, group };
        world.group.attested = world.assembled(world.signatures()).unwrap();
        world
    }

    /// The public data of the issuing key.
    pub fn issuing_key(&self) -> Option<KeyPublic> {
        self.issuing[&1].key_public.clone()
    }

    pub fn signatures(&self) -> Vec<PartyBytes> {
        let sign = |issuer: &Party| {
            let signed = AttestGroup {
                parties: Some(self.config.clone()),
                published: self.published.clone(),
                party: issuer.id,
                issuers: self.issuing_key(),
                sealed_share: self.issuing[&issuer.id].sealed_share.clone(),
            };
            let reply = call(Some(&issuer.vault), &issuer.identity, Call::AttestGroup(signed));
            from(issuer.id, reply!(Attested, reply).signature)
        };
        self.issuers.iter().map(sign).collect()
    }

    pub fn assembled(&self, signatures: Vec<PartyBytes>) -> Result<Vec<u8>, GroupRefused> {
        let assemble = AssembleGroup {
            parties: Some(self.config.clone()),
            published: self.published.clone(),
            issuers: self.issuing_key(),
            signatures,
        };
        match call(None, &[], Call::AssembleGroup(assemble)) {
            Ok(Reply::GroupChecked(checked)) => {
                assert_eq!((checked.name.as_str(), checked.epoch), ("approvers", 1));
                Ok(checked.attested)
            }
            other => Err(refusal(other)),
        }
    }

    pub fn group(&self) -> Option<Group> {
        Some(self.group.clone())
    }

    pub fn reserve(&self, member: &Member, stored: &Stored) -> Reserve {
        Reserve {
            group: self.group(),
            ticket: member.ticket.clone(),
            identity: member.person.evidence_key.clone(),
            application: member.application.clone(),
            records: Some(stored.records()),
        }
    }

    /// Binds the ticket at an issuer, and answers.
    pub fn ask(&self, issuer: u32, member: &Member, stored: &mut Stored) -> PartyBytes {
        let party = self.issuer(issuer);
        let reply = call(None, &[], Call::Reserve(self.reserve(member, stored)));
        stored.reservation = reply!(Reserved, reply).reservation;
        let answer = self.answer(issuer, stored);
        let reply = call(Some(&party.vault), &[], Call::AnswerApplication(answer));
        from(issuer, reply!(ApplicationAnswered, reply).share)
    }

    pub fn answer(&self, issuer: u32, stored: &Stored) -> AnswerApplication {
        AnswerApplication {
            group: self.group(),
            reservation: stored.reservation.clone(),
            party: issuer,
            sealed_share: self.issuing[&issuer].sealed_share.clone(),
        }
    }

    pub fn issuer(&self, id: u32) -> &Party {
        self.issuers.iter().find(|issuer| issuer.id == id).unwrap()
    }

    /// Every issuer has the member's record.
    pub fn registered(&self, member: &mut Member) -> BTreeMap<u32, Stored> {
        let mut stores: BTreeMap<u32, Stored> = (1..=3).map(|issuer| (issuer, Stored::default())).collect();
        let shares: Vec<_> =
            stores.iter_mut().map(|(issuer, stored)| self.ask(*issuer, member, stored)).collect();
        let acceptance = member.accept(self, &shares);
        for stored in stores.values_mut() {
            let call_ = self.register(stored, &shares, &acceptance);
            stored.member = Some(reply!(MemberRegistered, call(None, &[], Call::RegisterMember(call_))));
        }
        stores
    }

    pub fn register(&self, stored: &Stored, shares: &[PartyBytes], acceptance: &[u8]) -> RegisterMember {
        RegisterMember {
            group: self.group(),
            reservation: stored.reservation.clone(),
            shares: shares.to_vec(),
            acceptance: acceptance.to_vec(),
            records: Some(stored.records()),
        }
    }

    /// Counts a run that a member has ordered, for this session.
    pub fn count(
        &self,
        issuer: u32,
        stored: &mut Stored,
        order: &[u8],
        session: &[u8],
    ) -> Result<u32, GroupRefused> {
        let member = stored.member.as_mut().unwrap();
        let run = CountRun {
            group: self.group(),
            member: member.member.clone(),
            part: member.part.clone(),
            order: order.to_vec(),
            session_id: session.to_vec(),
        };
        match call(Some(&self.issuer(issuer).vault), &[], Call::CountRun(run)) {
            Ok(Reply::RunCounted(counted)) => {
                member.member = counted.member;
                Ok(counted.number)
            }
            other => Err(refusal(other)),
        }
    }

    /// The configuration of a side of a join.
    pub fn joining(&self, own: u32, issuers: &[u32], member: &Member, id: u8) -> SessionConfig {
        let mut chosen: Vec<proto::Party> =
            self.config.issuers.iter().filter(|party| issuers.contains(&party.id)).cloned().collect();
        chosen.push(proto::Party { id: MEMBER, evidence_key: member.person.evidence_key.clone() });
        SessionConfig {
            parties: chosen,
            group: Some(GroupTerms {
                parties: Some(self.config.clone()),
                openers: None,
                attested: self.group.attested.clone(),
            }),
            ..session(ProtocolId::IssuingJoin, own, &[], ("approvers", 1), id)
        }
    }

    /// Starts a side of a join.
    pub fn start(
        &self,
        own: u32,
        config: &SessionConfig,
        member: &Member,
    ) -> Result<(Session, Step), (i32, String)> {
        let config = config.encode_to_vec();
        if own == MEMBER {
            let Party { vault, identity, .. } = &member.person;
            return Session::start(Some(vault), &config, identity, &[]);
        }
        let Party { vault, identity, .. } = self.issuer(own);
        Session::start(Some(vault), &config, identity, &self.issuing[&own].sealed_share)
    }

    /// A join among these issuers, which the member has ordered and all have counted.
    pub fn join(
        &self,
        member: &mut Member,
        stores: &mut BTreeMap<u32, Stored>,
        issuers: &[u32],
        (number, id): (u32, u8),
    ) -> Ends {
        let order = member.order(self, number, id);
        for issuer in issuers {
            assert_eq!(self.count(*issuer, stores.get_mut(issuer).unwrap(), &order, &[id; 32]), Ok(number));
        }
        let sides = issuers.iter().copied().chain([MEMBER]);
        let sessions =
            sides.map(|own| (own, self.start(own, &self.joining(own, issuers, member, id), member).unwrap()));
        crate::common::run_with(sessions.collect(), |_, _, _| ())
    }

    /// A member that has joined.
    pub fn admitted(&self, number: u8) -> Member {
        let mut member = Member::new(self, number);
        let mut stores = self.registered(&mut member);
        let (done, aborts) = self.join(&mut member, &mut stores, &[1, 3], (1, number));
        assert!(aborts.is_empty(), "{aborts:?}");
        assert!(done[&1].sealed_share.is_empty());
        member.key = done[&MEMBER].sealed_share.clone();
        member.registered = stores[&1].member.clone();
        member
    }

    pub fn counted(&self, request: ApprovalRequest, approvals: &[&[u8]], needed: u32) -> Call {
        Call::CountApprovals(CountApprovals {
            group: self.group(),
            request: Some(request),
            approvals: approvals.iter().map(|approval| approval.to_vec()).collect(),
            needed,
        })
    }

    pub fn opening(&self, opener: u32, request: ApprovalRequest, approval: &[u8]) -> Call {
        Call::ShareOpening(ShareOpening {
            group: self.group(),
            request: Some(request),
            approval: approval.to_vec(),
            party: opener,
            sealed_share: self.opener_shares[&opener].clone(),
        })
    }

    pub fn opener(&self, id: u32) -> &Party {
        self.openers.iter().find(|opener| opener.id == id).unwrap()
    }

    pub fn opened(&self, request: ApprovalRequest, approval: &[u8], shares: Vec<PartyBytes>) -> Call {
        Call::CombineOpening(CombineOpening {
            group: self.group(),
            request: Some(request),
            approval: approval.to_vec(),
            shares,
        })
    }
}

/// A person with a ticket.
pub struct Member {
    pub person: Party,
    pub ticket: Vec<u8>,
    pub applicant: Vec<u8>,
    pub application: Vec<u8>,
    pub candidate: Vec<u8>,
    pub point: Vec<u8>,
    pub key: Vec<u8>,
    pub registered: Option<MemberRegistered>,
}

impl Member {
    pub fn new(world: &World, number: u8) -> Self {
        let vault = Vault::new(number);
        let (identity, evidence_key) = vault.identity("member");
        let person = Party { id: MEMBER, vault, identity, evidence_key };
        let ticket = vec![number; 32];
        let apply = Apply { group: world.group(), ticket: ticket.clone() };
        let applied = reply!(Applied, call(Some(&person.vault), &person.identity, Call::Apply(apply)));
        Self {
            person,
            ticket,
            applicant: applied.sealed_applicant,
            application: applied.application,
            candidate: Vec::new(),
            point: Vec::new(),
            key: Vec::new(),
            registered: None,
        }
    }

    pub fn call(&self, said: Call) -> Result<Reply, (i32, String)> {
        call(Some(&self.person.vault), &self.person.identity, said)
    }

    pub fn accepting(&self, world: &World, shares: &[PartyBytes]) -> Call {
        Call::AcceptAnswers(AcceptAnswers {
            group: world.group(),
            sealed_applicant: self.applicant.clone(),
            shares: shares.to_vec(),
        })
    }

    /// Becomes a candidate; returns its acceptance.
    pub fn accept(&mut self, world: &World, shares: &[PartyBytes]) -> Vec<u8> {
        let accepted = reply!(AnswersAccepted, self.call(self.accepting(world, shares)));
        self.candidate = accepted.sealed_candidate;
        self.point = accepted.point;
        accepted.acceptance
    }

    pub fn ordering(&self, world: &World, number: u32, id: u8) -> Call {
        Call::OrderRun(OrderRun {
            group: world.group(),
            sealed_candidate: self.candidate.clone(),
            number,
            session_id: vec![id; 32],
        })
    }

    pub fn order(&mut self, world: &World, number: u32, id: u8) -> Vec<u8> {
        let ordered = reply!(RunOrdered, self.call(self.ordering(world, number, id)));
        self.candidate = ordered.sealed_candidate;
        ordered.order
    }

    pub fn approving(&self, world: &World, request: ApprovalRequest) -> Call {
        Call::Approve(Approve {
            group: world.group(),
            request: Some(request),
            sealed_member: self.key.clone(),
        })
    }

    /// Approval and tag.
    pub fn approve(&self, world: &World, request: ApprovalRequest) -> (Vec<u8>, Vec<u8>) {
        let approved = reply!(Approved, self.call(self.approving(world, request)));
        (approved.approval, approved.tag)
    }
}

pub fn request(byte: u8, decision: ApprovalDecision) -> ApprovalRequest {
    ApprovalRequest { digest: vec![byte; 32], decision: decision.into() }
}
