//! Groups of anonymous approvers through the interface: the life of one, every refusal with its culprit, hostile bytes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
#[path = "../../protocols/tests/common/corpus.rs"]
mod corpus;
#[path = "common/group_calls.rs"]
mod group_calls;
#[path = "common/groups.rs"]
mod groups;

use std::sync::OnceLock;

use coterie_mpc::proto::group_call::{
    Apply, ApprovalDecision, Call, CheckGroup, CheckRegistration, CreateOpenerKey, DropRun, Group,
    IssuerRecords, NameIssuingKey, Reserve,
};
use coterie_mpc::proto::group_reply::{GroupRefusal, Reply};
use coterie_mpc::proto::{GroupTerms, OpenersKey, ProtocolId, SessionConfig};
use coterie_mpc::*;
use prost::Message;

use common::{Party, Session, Vault, run_with};
use groups::{
    MEMBER, Member, Stored, World, call, encoded, from, raw, reason, refusal, reply, request, session,
};

const APPROVE: ApprovalDecision = ApprovalDecision::Approve;
const REJECT: ApprovalDecision = ApprovalDecision::Reject;

/// Vaults may be used by several threads; so may what only reads them.
struct Shared(World);
unsafe impl Sync for Shared {}
unsafe impl Send for Shared {}

fn world() -> &'static World {
    static WORLD: OnceLock<Shared> = OnceLock::new();
    &WORLD.get_or_init(|| Shared(World::new())).0
}

/// From keys to an opened approval: two members, one of whom is named.
#[test]
fn members_approve_and_openers_name_one() {
    let world = world();
    let members = [world.admitted(21), world.admitted(22)];
    let asked = || request(7, APPROVE);
    let made: Vec<_> = members.iter().map(|member| member.approve(world, asked())).collect();
    let again = members[0].approve(world, asked());
    assert!(made[0].1 == again.1 && made[0].0 != again.0, "one tag, and nothing else alike");
    assert_ne!(made[0].1, made[1].1);
    for other in [request(8, APPROVE), request(7, REJECT)] {
        assert_ne!(members[0].approve(world, other).1, made[0].1);
    }
    let list: Vec<&[u8]> = made.iter().map(|(approval, _)| approval.as_slice()).collect();
    let counted = reply!(ApprovalsCounted, call(None, &[], world.counted(asked(), &list, 2)));
    assert_eq!(counted.tags, [made[0].1.clone(), made[1].1.clone()]);

    let shares: Vec<_> = [4, 6]
        .map(|opener| {
            let party = world.opener(opener);
            let reply = call(Some(&party.vault), &[], world.opening(opener, asked(), list[1]));
            from(opener, reply!(OpeningShared, reply).share)
        })
        .to_vec();
    let opened = reply!(Opened, call(None, &[], world.opened(asked(), list[1], shares)));
    let entry = members[1].registered.as_ref().unwrap();
    assert!(opened.point == members[1].point && opened.point == entry.point);
    let named = |identity: &[u8]| {
        let check = CheckRegistration {
            group: world.group(),
            ticket: members[1].ticket.clone(),
            identity: identity.to_vec(),
            point: opened.point.clone(),
            acceptance: entry.acceptance.clone(),
        };
        call(None, &[], Call::CheckRegistration(check))
    };
    assert!(matches!(named(&entry.identity), Ok(Reply::RegistrationChecked(_))));
    assert_eq!(reason(named(&members[0].person.evidence_key)), GroupRefusal::NotAccepted);
}

#[test]
fn wrong_approvals_are_refused_with_their_place() {
    let world = world();
    let (one, two) = (world.admitted(23), world.admitted(24));
    let asked = || request(9, APPROVE);
    let [first, second, again] = [&one, &two, &one].map(|member| member.approve(world, asked()).0);
    let count = |list: &[&[u8]], needed| call(None, &[], world.counted(asked(), list, needed));
    let at = |list: &[&[u8]]| {
        let refused = refusal(count(list, 1));
        (GroupRefusal::try_from(refused.reason).unwrap(), refused.place)
    };
    assert_eq!(at(&[&first, &second, &again]), (GroupRefusal::CountedTwice, Some(2)));
    assert_eq!(at(&[&first, &second[1..]]), (GroupRefusal::Malformed, Some(1)));
    let mut altered = second.clone();
    altered[0] ^= 1;
    assert_eq!(at(&[&first, &altered]).1, Some(1));
    let mut altered = second.clone();
    altered[415] ^= 1;
    assert_eq!(at(&[&first, &altered]), (GroupRefusal::WrongProof, Some(1)));
    let other = two.approve(world, request(9, REJECT)).0;
    assert_eq!(at(&[&other]), (GroupRefusal::WrongProof, Some(0)));
    let few = refusal(count(&[&first, &second], 3));
    assert!(few.reason == i32::from(GroupRefusal::TooFew) && few.count == 2 && few.place.is_none());
    assert!(matches!(count(&[], 0), Ok(Reply::ApprovalsCounted(_))));
    // A request without a digest or a decision.
    for wrong in [request(9, ApprovalDecision::Unspecified), Default::default()] {
        assert_eq!(reason(call(None, &[], world.counted(wrong, &[&first], 1))), GroupRefusal::Malformed);
    }
}

#[test]
fn openings_are_for_one_approval_with_its_openers_shares() {
    let world = world();
    let member = world.admitted(25);
    let asked = || request(10, APPROVE);
    let (approval, other) = (member.approve(world, asked()).0, member.approve(world, asked()).0);
    let share = |opener: u32, approval: &[u8]| {
        let party = world.opener(opener);
        let reply = call(Some(&party.vault), &[], world.opening(opener, asked(), approval));
        from(opener, reply!(OpeningShared, reply).share)
    };
    let refused = |shares| {
        let refused = refusal(call(None, &[], world.opened(asked(), &approval, shares)));
        (GroupRefusal::try_from(refused.reason).unwrap(), refused.party)
    };
    let good = || share(4, &approval);
    assert_eq!(refused(vec![good()]), (GroupRefusal::TooFew, 0));
    assert_eq!(refused(vec![good(), good()]), (GroupRefusal::Twice, 4));
    assert_eq!(refused(vec![good(), share(5, &other)]), (GroupRefusal::WrongShare, 5));
    assert_eq!(refused(vec![good(), from(6, good().value)]), (GroupRefusal::WrongShare, 6));
    assert_eq!(refused(vec![good(), from(9, good().value)]), (GroupRefusal::NotAnOpener, 9));
    assert_eq!(refused(vec![good(), from(5, vec![1; 4])]), (GroupRefusal::Malformed, 5));
    // An opener decrypts nothing but an approval of the request.
    let party = world.opener(4);
    let said = world.opening(4, request(11, APPROVE), &approval);
    assert_eq!(reason(call(Some(&party.vault), &[], said)), GroupRefusal::WrongProof);
    // An issuer's share opens nothing, and no vault opens another's.
    let Call::ShareOpening(mut said) = world.opening(4, asked(), &approval) else { panic!() };
    let foreign = call(Some(&world.opener(5).vault), &[], Call::ShareOpening(said.clone()));
    assert_eq!(foreign, Err((MPC_UNSEAL_FAILED, String::new())));
    said.sealed_share = world.issuing[&1].sealed_share.clone();
    said.party = 1;
    let issuer = call(Some(&world.issuer(1).vault), &[], Call::ShareOpening(said));
    assert_eq!(issuer.map_err(|(code, _)| code), Err(MPC_SETUP_REFUSED));
}

#[test]
fn a_ticket_is_bound_to_its_first_application() {
    let world = world();
    let member = Member::new(world, 26);
    let mut stored = Stored::default();
    world.ask(1, &member, &mut stored);
    let bound = stored.reservation.clone();
    world.ask(1, &member, &mut stored);
    assert_eq!(stored.reservation, bound, "the same application again");
    let refused = |reserve: &Reserve| reason(call(None, &[], Call::Reserve(reserve.clone())));
    // The same identity applies again, with another half.
    let apply = Apply { group: world.group(), ticket: member.ticket.clone() };
    let application = reply!(Applied, member.call(Call::Apply(apply))).application;
    let mut other = Reserve { application, ..world.reserve(&member, &stored) };
    assert_eq!(refused(&other), GroupRefusal::TicketBound);
    other.records = Some(IssuerRecords { reservation: vec![1, 2, 3], ..IssuerRecords::default() });
    assert_eq!(refused(&other), GroupRefusal::WrongRecord);
    other.records = Some(IssuerRecords { identity_reserved: true, ..IssuerRecords::default() });
    assert_eq!(refused(&other), GroupRefusal::IdentityTaken);
    other.records = Some(IssuerRecords { identity_registered: true, ..IssuerRecords::default() });
    assert_eq!(refused(&other), GroupRefusal::IdentityTaken);
    other.records = Some(IssuerRecords { members: 1 << 14, ..IssuerRecords::default() });
    assert_eq!(refused(&other), GroupRefusal::GroupFull);
    other.records = None;
    assert!(call(None, &[], Call::Reserve(other.clone())).is_ok());
    other.identity = Member::new(world, 38).person.evidence_key;
    assert_eq!(refused(&other), GroupRefusal::Identity);
    other.identity.pop();
    assert_eq!(refused(&other), GroupRefusal::Malformed);
    other.ticket.pop();
    assert_eq!(refused(&other), GroupRefusal::Malformed);
}

#[test]
fn shares_of_a_part_are_refused_with_their_issuer() {
    let world = world();
    let mut member = Member::new(world, 27);
    let mut stores: Vec<Stored> = vec![Stored::default(); 3];
    let shares: Vec<_> =
        stores.iter_mut().zip(1..).map(|(stored, issuer)| world.ask(issuer, &member, stored)).collect();
    let refused = |shares: Vec<proto::PartyBytes>| {
        let refused = refusal(member.call(member.accepting(world, &shares)));
        (GroupRefusal::try_from(refused.reason).unwrap(), refused.party)
    };
    let share = |place: usize| shares[place].clone();
    assert_eq!(refused(shares[..2].to_vec()), (GroupRefusal::TooFew, 0));
    assert_eq!(refused(vec![share(0), share(1), share(1)]), (GroupRefusal::Twice, 2));
    let swapped = vec![share(0), share(1), from(3, share(1).value)];
    assert_eq!(refused(swapped.clone()), (GroupRefusal::WrongShare, 3));
    assert_eq!(refused(vec![share(0), share(1), from(9, share(2).value)]), (GroupRefusal::NotAnIssuer, 9));
    assert_eq!(refused(vec![share(0), share(1), from(3, vec![0; 112])]), (GroupRefusal::Malformed, 3));
    let acceptance = member.accept(world, &shares);
    let register = |shares: &[proto::PartyBytes], acceptance: &[u8]| {
        call(None, &[], Call::RegisterMember(world.register(&stores[0], shares, acceptance)))
    };
    assert_eq!(refusal(register(&swapped, &acceptance)).party, 3);
    assert_eq!(reason(register(&shares[..2], &acceptance)), GroupRefusal::TooFew);
    assert_eq!(reason(register(&shares, &[1; 64])), GroupRefusal::WrongAnswer);
    assert_eq!(reason(register(&shares, &[1; 63])), GroupRefusal::Malformed);
    let registered = reply!(MemberRegistered, register(&shares, &acceptance));
    assert!(registered.point == member.point && registered.identity == member.person.evidence_key);
    // Another's share, or another's vault.
    let mut answer = world.answer(1, &stores[0]);
    let wrong = call(Some(&world.issuer(2).vault), &[], Call::AnswerApplication(answer.clone()));
    assert_eq!(wrong, Err((MPC_UNSEAL_FAILED, String::new())));
    answer.party = 2;
    let wrong = call(Some(&world.issuer(1).vault), &[], Call::AnswerApplication(answer));
    assert_eq!(wrong.map_err(|(code, _)| code), Err(MPC_SETUP_REFUSED));
}

/// A run is counted at each side, begins once, in the vault that has counted it, and for its own session.
#[test]
fn a_run_begins_once_in_its_own_session() {
    let world = world();
    let mut member = Member::new(world, 28);
    let mut stores = world.registered(&mut member);
    let joining = |member: &Member, own, id| world.joining(own, &[1, 2], member, id);
    let refused = |member: &Member, own: u32, config: &SessionConfig| {
        world.start(own, config, member).err().map(|(code, text)| {
            assert_eq!(code, MPC_SETUP_REFUSED, "{text}");
            text
        })
    };
    let unknown = Some("the vault has no counted run of the join for this session".to_owned());
    // Nobody has counted a run.
    assert_eq!(refused(&member, MEMBER, &joining(&member, MEMBER, 40)), unknown);
    let order = member.order(world, 2, 40);
    assert_eq!(refused(&member, 1, &joining(&member, 1, 40)), unknown);
    let mut count = |order: &[u8], session: &[u8]| {
        let counted = world.count(1, stores.get_mut(&1).unwrap(), order, session);
        counted.map_err(|refused| GroupRefusal::try_from(refused.reason).unwrap())
    };
    // The session of somebody else has the run that its member has ordered.
    assert_eq!(count(&order, &[39; 32]), Err(GroupRefusal::Identity));
    assert_eq!(refused(&member, 1, &joining(&member, 1, 39)), unknown);
    assert_eq!(count(&order, &[40; 32]), Ok(2), "nothing was counted");
    assert_eq!(count(&order, &[40; 32]), Err(GroupRefusal::AttemptsSpent));
    // For another session there is none, and in this one it begins once.
    assert_eq!(refused(&member, 1, &joining(&member, 1, 41)), unknown);
    assert_eq!(refused(&member, 1, &joining(&member, 1, 40)), None);
    assert_eq!(refused(&member, 1, &joining(&member, 1, 40)), unknown);
    assert_eq!(refused(&member, MEMBER, &joining(&member, MEMBER, 40)), None);
    assert_eq!(refused(&member, MEMBER, &joining(&member, MEMBER, 40)), unknown);
    // A member that counts: no number again, and none above 8.
    for number in [0, 1, 2, 9, 300] {
        let spent = member.call(member.ordering(world, number, 42));
        assert_eq!(reason(spent), GroupRefusal::AttemptsSpent, "{number}");
    }
    // An order that somebody else has signed.
    let order = member.order(world, 3, 43);
    for byte in [0, 1, 33, 96] {
        let mut altered = order.clone();
        altered[byte] ^= 1;
        assert_eq!(count(&altered, &altered[1..33]), Err(GroupRefusal::Identity), "{byte}");
    }
    // A run that is dropped does not begin.
    assert_eq!(count(&order, &[43; 32]), Ok(3));
    let dropped = Call::DropRun(DropRun { session_id: vec![43; 32] });
    assert!(call(Some(&world.issuer(1).vault), &[], dropped).is_ok());
    assert_eq!(refused(&member, 1, &joining(&member, 1, 43)), unknown);
    // The next one goes well.
    let (done, aborts) = world.join(&mut member, &mut stores, &[2, 3], (4, 44));
    assert!(aborts.is_empty() && !done[&MEMBER].sealed_share.is_empty());
}

/// [T0]: every key of the session is the configured one or the identity's, or it does not start.
#[test]
fn a_join_has_the_keys_of_its_order() {
    let world = world();
    let mut member = Member::new(world, 29);
    let mut stores = world.registered(&mut member);
    let stranger = Member::new(world, 30).person.evidence_key;
    let key = "an evidence key is not valid, or not that of its party".to_owned();
    let terms = "the terms of the group are not valid, or the session is not of them".to_owned();
    let mut number = 0;
    let mut refused = |change: &dyn Fn(&mut SessionConfig)| {
        number += 1;
        let id = 50 + u8::try_from(number).unwrap();
        let order = member.order(world, number, id);
        assert_eq!(world.count(1, stores.get_mut(&1).unwrap(), &order, &[id; 32]), Ok(number));
        let mut config = world.joining(1, &[1, 2], &member, id);
        change(&mut config);
        world.start(1, &config, &member).err().map(|(_, text)| text)
    };
    assert_eq!(refused(&|_| ()), None);
    for place in [1, 2] {
        let change = |config: &mut SessionConfig| config.parties[place].evidence_key.clone_from(&stranger);
        assert_eq!(refused(&change), Some(key.clone()), "{place}");
    }
    // A group that one issuer has not signed, and one of other parties.
    let change = |config: &mut SessionConfig| {
        let attested = &mut config.group.as_mut().unwrap().attested;
        let last = attested.len() - 1;
        attested[last] ^= 1;
    };
    assert_eq!(refused(&change), Some(terms.clone()));
    let change = |config: &mut SessionConfig| {
        "other".clone_into(&mut config.group.as_mut().unwrap().parties.as_mut().unwrap().installation);
    };
    assert_eq!(refused(&change), Some(terms));
    let missing = refused(&|config: &mut SessionConfig| config.group = None);
    assert_eq!(missing, Some("the terms of the group are missing".to_owned()));
}

/// A group without the signature of every issuer, of every opener, or of these parties is none.
#[test]
fn a_group_is_signed_by_everybody() {
    let world = world();
    for place in 0..3 {
        let mut signatures = world.signatures();
        let missing = signatures.remove(place).party;
        let refused = world.assembled(signatures).unwrap_err();
        assert_eq!((refused.reason, refused.party), (GroupRefusal::NotAttested.into(), missing));
    }
    let check = |group: Group, earlier: Vec<Group>| {
        call(None, &[], Call::CheckGroup(CheckGroup { group: Some(group), earlier }))
    };
    let checked = reply!(GroupChecked, check(world.group.clone(), Vec::new()));
    assert_eq!(checked.attested, world.group.attested);
    assert_eq!(checked.issuers, world.issuing_key());
    assert_eq!(reason(check(world.group.clone(), vec![world.group.clone()])), GroupRefusal::NotLater);
    let mut other = world.group.clone();
    other.parties.as_mut().unwrap().issuers[0].evidence_key = Member::new(world, 31).person.evidence_key;
    let refused = refusal(check(other, Vec::new()));
    assert_eq!((refused.reason, refused.party), (GroupRefusal::NotAttested.into(), 1));
    let mut fewer = world.group.clone();
    fewer.parties.as_mut().unwrap().opener_threshold = 1;
    assert_eq!(reason(check(fewer, Vec::new())), GroupRefusal::Sharing);
    let named = |key: OpenersKey| {
        let call_ = NameIssuingKey { openers: Some(key), parties: Some(world.config.clone()) };
        call(None, &[], Call::NameIssuingKey(call_))
    };
    let mut unsigned = world.openers_key.clone();
    unsigned.signatures.pop();
    let refused = refusal(named(unsigned));
    assert_eq!((refused.reason, refused.party), (GroupRefusal::NotAttested.into(), 6));
    let mut renamed = world.openers_key.clone();
    renamed.epoch = 2;
    assert_eq!(reason(named(renamed)), GroupRefusal::NotAttested);
    // A key that is none comes from others, too.
    let mut broken = world.openers_key.clone();
    broken.key.as_mut().unwrap().public_key[1] ^= 1;
    assert_eq!(reason(named(broken)), GroupRefusal::Malformed);
    assert_eq!(reason(named(OpenersKey { key: None, ..world.openers_key.clone() })), GroupRefusal::Malformed);
}

/// An issuing key is made by the configured issuers for what the openers have signed, or not at all.
#[test]
fn an_issuing_key_is_made_for_its_group() {
    let world = world();
    let name = world.issuing_key().unwrap().key_id;
    let start = |change: &dyn Fn(&mut SessionConfig)| {
        let mut config = SessionConfig {
            group: Some(GroupTerms {
                parties: Some(world.config.clone()),
                openers: Some(world.openers_key.clone()),
                attested: Vec::new(),
            }),
            ..session(ProtocolId::IssuingKeygen, 1, &world.issuers, (&name, 1), 60)
        };
        change(&mut config);
        let Party { vault, identity, .. } = world.issuer(1);
        Session::start(Some(vault), &config.encode_to_vec(), identity, &[]).err().map(|(_, text)| text)
    };
    assert_eq!(start(&|_| ()), None);
    let terms = Some("the terms of the group are not valid, or the session is not of them".to_owned());
    assert_eq!(start(&|config| config.key_id = "another".to_owned()), terms);
    assert_eq!(start(&|config| config.threshold = 3), terms);
    assert_eq!(start(&|config| drop(config.parties.pop())), terms);
    assert_eq!(start(&|config| config.group.as_mut().unwrap().openers.as_mut().unwrap().epoch = 2), terms);
    let unexpected = Some("an input was given that the protocol does not take".to_owned());
    assert_eq!(start(&|config| config.group.as_mut().unwrap().attested = vec![1]), unexpected);
    // Nor does any other protocol take the terms.
    assert_eq!(start(&|config| config.protocol = ProtocolId::BlsKeygen.into()), unexpected);
}

/// New shares of the issuing key: the group is signed again, and members go on joining.
#[test]
fn a_group_outlives_a_refresh_of_its_issuers() {
    let mut world = World::new();
    let name = world.issuing_key().unwrap().key_id;
    let sessions = world.issuers.iter().map(|issuer| {
        let config = session(ProtocolId::IssuingRefresh, issuer.id, &world.issuers, (&name, 1), 70);
        let share = &world.issuing[&issuer.id].sealed_share;
        let config = config.encode_to_vec();
        (issuer.id, Session::start(Some(&issuer.vault), &config, &issuer.identity, share).unwrap())
    });
    let (renewed, aborts) = run_with(sessions.collect(), |_, _, _| ());
    assert!(aborts.is_empty(), "{aborts:?}");
    let before = world.admitted(32);
    let earlier = world.group.clone();
    world.issuing = renewed;
    world.group.attested = world.assembled(world.signatures()).unwrap();
    assert_ne!(world.group.attested, earlier.attested);
    let after = world.admitted(33);
    let asked = || request(12, APPROVE);
    let (one, two) = (before.approve(&world, asked()).0, after.approve(&world, asked()).0);
    let counted = call(None, &[], world.counted(asked(), &[&one, &two], 2));
    assert_eq!(reply!(ApprovalsCounted, counted).tags.len(), 2);
}

/// One auditor may be all openers.
#[test]
fn an_auditor_draws_its_key_alone() {
    let vault = Vault::new(34);
    let create = |party, key_id: &str| {
        let create = CreateOpenerKey { key_id: key_id.to_owned(), party };
        call(Some(&vault), &[], Call::CreateOpenerKey(create))
    };
    let made = reply!(OpenerKeyCreated, create(4, "approvers/1/openers"));
    let public = made.key_public.unwrap();
    assert!(public.threshold == 1 && public.verification_shares[0].point == public.public_key);
    assert!(create(0, "name").is_err() && create(4, "").is_err());
    assert!(create(4, &"n".repeat(129)).is_err());
}

/// No secret of a group leaves the core, under whatever label, and each blob is what it is and nothing else.
#[test]
fn sealed_secrets_of_a_group_open_for_their_use_only() {
    let world = world();
    let member = world.admitted(35);
    let digest = reply!(
        GroupChecked,
        call(None, &[], Call::CheckGroup(CheckGroup { group: world.group(), earlier: Vec::new() }))
    )
    .digest;
    for blob in [&member.applicant, &member.candidate, &member.key] {
        for label in [digest.as_slice(), &[]] {
            let mut out = common::stale();
            let vault = member.person.vault.0;
            let code = unsafe { mpc_vault_unseal(vault, common::view(label), common::view(blob), &mut out) };
            assert_eq!(code, MPC_UNSEAL_FAILED);
        }
    }
    let used = |key: &[u8]| {
        let used = Member { key: key.to_vec(), ..Member::new(world, 35) };
        used.call(used.approving(world, request(1, APPROVE)))
    };
    assert!(used(&member.key).is_ok(), "the same vault key");
    for wrong in [&member.candidate, &member.applicant] {
        assert_eq!(used(wrong), Err((MPC_UNSEAL_FAILED, String::new())));
    }
    let stranger = Member { key: member.key.clone(), ..Member::new(world, 36) };
    let said = stranger.approving(world, request(1, APPROVE));
    assert_eq!(stranger.call(said), Err((MPC_UNSEAL_FAILED, String::new())));
    let without = member.approving(world, request(1, APPROVE));
    assert_eq!(call(None, &[], without), Err((MPC_SETUP_REFUSED, "vault is missing".to_owned())));
}

/// A good call with one byte altered, or cut off anywhere, says so and the library stands.
#[test]
fn hostile_bytes_end_in_a_code_or_a_refusal() {
    let world = world();
    let member = world.admitted(37);
    let asked = || request(13, APPROVE);
    let approval = member.approve(world, asked()).0;
    let stored = Stored { reservation: Vec::new(), member: member.registered.clone() };
    let calls = [
        world.counted(asked(), &[&approval], 1),
        world.opening(4, asked(), &approval),
        world.opened(asked(), &approval, vec![from(4, vec![1; 112])]),
        Call::Reserve(world.reserve(&member, &stored)),
        member.approving(world, asked()),
        member.ordering(world, 5, 80),
        member.accepting(world, &[from(1, vec![1; 112])]),
    ];
    let vaults = [None, Some(&member.person.vault), Some(&world.opener(4).vault)];
    for (which, good) in calls.into_iter().map(encoded).enumerate() {
        let step = good.len() / 97 + 1;
        for place in (which % step..good.len()).step_by(step) {
            let mut altered = good.clone();
            altered[place] ^= 1 << (place % 8);
            for bytes in [&altered, &good[..place].to_vec()] {
                for vault in vaults {
                    match raw(vault, &member.person.identity, bytes) {
                        Ok(reply) => {
                            assert!(proto::group_reply::GroupReply::decode(reply.as_slice()).is_ok())
                        }
                        Err((code, _)) => assert!(
                            [MPC_INVALID_ARGUMENT, MPC_UNSEAL_FAILED, MPC_SETUP_REFUSED].contains(&code),
                            "{code}"
                        ),
                    }
                }
            }
        }
    }
    for junk in [&[][..], &[0xff; 40], &[0x0a, 0], b"nothing"] {
        assert!(raw(None, &[], junk).is_err() || junk == [0x0a, 0]);
    }
}

#[test]
fn what_the_fuzzer_kept() {
    if std::env::var("SEEDS").is_ok_and(|value| value == "write") {
        corpus::add("group_call", group_calls::seeds());
    }
    let calls = group_calls::Calls::new();
    let kept = corpus::kept("group_call");
    for which in 0..group_calls::CALLS {
        let well = |input: &Vec<u8>| usize::from(input[0]) == which && calls.hostile(input);
        assert!(kept.iter().any(well), "no kept input does call {which}");
    }
    corpus::replay("group_call", |input| calls.hostile(input));
}
