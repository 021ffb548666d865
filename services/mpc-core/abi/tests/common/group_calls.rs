//! Genuine calls about groups, and what hostile bytes make of them. Keys are drawn anew in each process.

use coterie_mpc::proto::group_call::{
    Apply, ApprovalDecision, AssembleGroup, AttestGroup, AttestOpenersKey, Call, CheckGroup,
    CheckRegistration, CountRun, CreateOpenerKey, DropRun, Group, NameIssuingKey,
};
use coterie_mpc::proto::group_reply::{GroupReply, Reply};
use coterie_mpc::*;
use prost::Message;

use crate::common::{Party, Vault};
use crate::groups::{Member, Stored, World, call, encoded, from, raw, reply, request};

/// Calls of each kind.
pub const CALLS: usize = 19;

/// A call with the vault and the identity of its caller.
struct Genuine {
    caller: Caller,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Caller {
    Nobody,
    Issuer,
    Opener,
    /// Before it has its secret.
    Applicant,
    /// Before it has its key.
    Candidate,
    Member,
}

pub struct Calls {
    world: World,
    applicant: Member,
    candidate: Member,
    member: Member,
    genuine: Vec<Genuine>,
}

impl Calls {
    /// Every call once, each as it goes well.
    pub fn new() -> Self {
        let world = World::new();
        let member = world.admitted(90);
        let mut candidate = Member::new(&world, 91);
        let stores = world.registered(&mut candidate);
        let mut applicant = Member::new(&world, 92);
        let mut reserved = Stored::default();
        let _ = world.ask(1, &applicant, &mut reserved);
        let shares: Vec<_> =
            (1..=3).map(|issuer| world.ask(issuer, &applicant, &mut Stored::default())).collect();
        let accepting = applicant.accepting(&world, &shares);
        let acceptance = applicant.accept(&world, &shares);
        let order = candidate.order(&world, 1, 93);
        let registered = stores[&1].member.clone().unwrap();
        let asked = || request(94, ApprovalDecision::Approve);
        let approval = member.approve(&world, asked()).0;
        let openings = [4, 6].map(|opener| {
            let made =
                call(Some(&world.opener(opener).vault), &[], world.opening(opener, asked(), &approval));
            from(opener, reply!(OpeningShared, made).share)
        });
        let mut unsigned = world.openers_key.clone();
        unsigned.signatures.clear();
        let (group, parties) = (|| world.group(), || Some(world.config.clone()));
        let entry = member.registered.clone().unwrap();
        let calls = [
            (Caller::Opener, Call::CreateOpenerKey(CreateOpenerKey { key_id: "a/1/o".to_owned(), party: 4 })),
            (
                Caller::Opener,
                Call::AttestOpenersKey(AttestOpenersKey {
                    openers: Some(unsigned),
                    parties: parties(),
                    party: 4,
                    sealed_share: world.opener_shares[&4].clone(),
                }),
            ),
            (
                Caller::Nobody,
                Call::NameIssuingKey(NameIssuingKey {
                    openers: Some(world.openers_key.clone()),
                    parties: parties(),
                }),
            ),
            (
                Caller::Issuer,
                Call::AttestGroup(AttestGroup {
                    parties: parties(),
                    published: world.published.clone(),
                    party: 1,
                    issuers: world.issuing_key(),
                    sealed_share: world.issuing[&1].sealed_share.clone(),
                }),
            ),
            (
                Caller::Nobody,
                Call::AssembleGroup(AssembleGroup {
                    parties: parties(),
                    published: world.published.clone(),
                    issuers: world.issuing_key(),
                    signatures: world.signatures(),
                }),
            ),
            (Caller::Nobody, Call::CheckGroup(CheckGroup { group: group(), earlier: Vec::<Group>::new() })),
            (Caller::Member, Call::Apply(Apply { group: group(), ticket: vec![95; 32] })),
            (Caller::Nobody, Call::Reserve(world.reserve(&applicant, &Stored::default()))),
            (Caller::Issuer, Call::AnswerApplication(world.answer(1, &reserved))),
            (Caller::Applicant, accepting),
            (Caller::Nobody, Call::RegisterMember(world.register(&reserved, &shares, &acceptance))),
            (Caller::Candidate, candidate.ordering(&world, 2, 96)),
            (
                Caller::Issuer,
                Call::CountRun(CountRun {
                    group: group(),
                    member: registered.member.clone(),
                    part: registered.part.clone(),
                    order,
                    session_id: vec![93; 32],
                }),
            ),
            (Caller::Issuer, Call::DropRun(DropRun { session_id: vec![93; 32] })),
            (Caller::Member, member.approving(&world, asked())),
            (Caller::Nobody, world.counted(asked(), &[&approval], 1)),
            (Caller::Opener, world.opening(4, asked(), &approval)),
            (Caller::Nobody, world.opened(asked(), &approval, openings.to_vec())),
            (
                Caller::Nobody,
                Call::CheckRegistration(CheckRegistration {
                    group: group(),
                    ticket: member.ticket.clone(),
                    identity: entry.identity,
                    point: entry.point,
                    acceptance: entry.acceptance,
                }),
            ),
        ];
        let genuine = calls.map(|(caller, call)| Genuine { caller, bytes: encoded(call) }).into();
        Self { world, applicant, candidate, member, genuine }
    }

    fn party(&self, caller: Caller) -> (Option<&Vault>, &[u8]) {
        match caller {
            Caller::Nobody => (None, &[]),
            Caller::Issuer => pair(self.world.issuer(1)),
            Caller::Opener => pair(self.world.opener(4)),
            Caller::Applicant => pair(&self.applicant.person),
            Caller::Candidate => pair(&self.candidate.person),
            Caller::Member => pair(&self.member.person),
        }
    }

    /// The first byte chooses a genuine call, or the bytes themselves as one; the second how the rest changes it:
    /// bytes at places, the end, or nothing but the length. Whether the call went well.
    pub fn hostile(&self, data: &[u8]) -> bool {
        let Some(([which, kind], rest)) = data.split_first_chunk::<2>() else { return false };
        let which = usize::from(*which) % (CALLS + 1);
        let (caller, bytes) = match self.genuine.get(which) {
            Some(Genuine { caller, bytes }) => (*caller, changed(bytes, *kind, rest)),
            None => {
                let callers = [Caller::Nobody, Caller::Issuer, Caller::Opener, Caller::Member];
                (callers[usize::from(*kind) % callers.len()], rest.to_vec())
            }
        };
        let (vault, identity) = self.party(caller);
        match raw(vault, identity, &bytes) {
            Ok(reply) => {
                let reply = GroupReply::decode(reply.as_slice()).unwrap().reply.unwrap();
                !matches!(reply, Reply::GroupRefused(_))
            }
            Err((code, _)) => {
                assert!(
                    [MPC_INVALID_ARGUMENT, MPC_UNSEAL_FAILED, MPC_SETUP_REFUSED].contains(&code),
                    "{code}"
                );
                false
            }
        }
    }
}

fn pair(party: &Party) -> (Option<&Vault>, &[u8]) {
    (Some(&party.vault), &party.identity)
}

fn changed(genuine: &[u8], kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = genuine.to_vec();
    let place = |high: u8, low: u8| usize::from(u16::from_be_bytes([high, low])) % genuine.len().max(1);
    match (kind % 3, rest) {
        (0, _) => {
            for [high, low, difference] in rest.as_chunks::<3>().0 {
                bytes[place(*high, *low)] ^= difference;
            }
        }
        (1, [high, low, end @ ..]) => {
            bytes.truncate(place(*high, *low));
            bytes.extend_from_slice(end);
        }
        (2, [high, low, middle @ ..]) => {
            let at = place(*high, *low);
            bytes.splice(at..at, middle.iter().copied());
        }
        _ => {}
    }
    bytes
}

/// Each genuine call as it is, and with a byte changed.
pub fn seeds() -> Vec<Vec<u8>> {
    let calls = 0..u8::try_from(CALLS).unwrap();
    calls.flat_map(|which| [vec![which, 0], vec![which, 0, 0, 40, 1], vec![which, 1, 0, 20]]).collect()
}
