//! Approvals: only members make them, each member counts once, and only t openers name the member.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use engine::{PartyId, Secret};
use group_signatures::forge::{Custody, accepts, admit, claim, simulate};
use group_signatures::{
    APPROVAL_BYTES, Approval, ApprovalError, CountError, Decision, GroupPublic, MemberKey, OpeningError,
    OpeningShare, Request, count, open,
};
use primitives::bls12_381::{G1, Scalar};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

const POINT: usize = 48;
/// Places of the elements in an encoding.
const ELEMENTS: [&str; 6] =
    ["blinded generator", "blinded credential", "bound credential", "tag", "ephemeral", "encrypted member"];
const TAG: usize = 3;
/// x of a point of order 11 with the sign bit clear, compressed.
const ORDER_11: &str =
    "99b3e2c8c6bbf59d3c326b531fc1e639d29200c28624ac604f251a12908c9b7f735318617f625954cc71cdf03229b1ef";

struct World {
    rng: ChaCha20Rng,
    group: GroupPublic,
    custody: Custody,
    members: Vec<MemberKey>,
}

fn scalar(rng: &mut ChaCha20Rng) -> Secret<Scalar> {
    Secret::new(Scalar::random(rng))
}

/// A group whose members' keys are made with all secrets in one hand, and whose openers are 2 of 3.
fn world(seed: u64, members: usize) -> World {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let custody = Custody::new(2, 3, &mut rng).unwrap();
    let (issuing_key, group) = custody.group("approvers", 3, &mut rng).unwrap();
    let group = GroupPublic::decode(&group.encode(), &custody.openers).unwrap();
    let members = (0..members).map(|_| admit(&issuing_key, &group, &scalar(&mut rng)).unwrap()).collect();
    World { rng, group, custody, members }
}

fn request(number: u8) -> Request {
    Request { digest: [number; 32], decision: Decision::Approve }
}

fn party(number: u32) -> PartyId {
    PartyId::new(number).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

#[test]
fn members_approve_and_others_verify_after_decoding() {
    let mut world = world(1, 3);
    let mut tags = Vec::new();
    for member in &world.members {
        let approval = member.approve(&world.group, &request(1), &mut world.rng).unwrap();
        let bytes = approval.encode();
        let decoded = Approval::decode(&bytes).unwrap();
        assert_eq!(decoded.encode(), bytes);
        tags.push(decoded.verify(&world.group, &request(1)).unwrap());
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3);
}

#[test]
fn tags_are_alike_for_one_member_and_request_only() {
    let mut world = world(2, 2);
    let mut tag = |member: usize, request: Request| {
        world.members[member].approve(&world.group, &request, &mut world.rng).unwrap().tag()
    };
    let first = tag(0, request(1));
    assert_eq!(first, tag(0, request(1)));
    assert_ne!(first, tag(1, request(1)));
    assert_ne!(first, tag(0, request(2)));
    assert_ne!(first, tag(0, Request { decision: Decision::Reject, ..request(1) }));
    // Two approvals of one member have nothing else in common.
    let approvals: Vec<_> = (0..2)
        .map(|_| world.members[0].approve(&world.group, &request(1), &mut world.rng).unwrap().encode())
        .collect();
    for (number, name) in ELEMENTS.iter().enumerate() {
        let place = number * POINT..(number + 1) * POINT;
        assert_eq!(approvals[0][place.clone()] == approvals[1][place], number == TAG, "{name}");
    }
}

#[test]
fn an_approval_says_nothing_of_another_request_decision_or_group() {
    let mut world = world(3, 1);
    let approval = world.members[0].approve(&world.group, &request(1), &mut world.rng).unwrap();
    let refused = Some(ApprovalError::WrongProof);
    assert_eq!(approval.verify(&world.group, &request(2)).err(), refused);
    let rejection = Request { decision: Decision::Reject, ..request(1) };
    assert_eq!(approval.verify(&world.group, &rejection).err(), refused);
    let (_, next) = world.custody.group("approvers", 4, &mut world.rng).unwrap();
    assert_eq!(approval.verify(&next, &request(1)).err(), refused);
    assert!(world.members[0].approve(&next, &request(1), &mut world.rng).is_none());
    assert!(MemberKey::decode(&next, &world.members[0].encode()).is_err());
}

#[test]
fn every_altered_byte_is_refused() {
    let mut world = world(4, 1);
    let bytes = world.members[0].approve(&world.group, &request(1), &mut world.rng).unwrap().encode();
    let verify = |bytes: &[u8]| {
        Approval::decode(bytes).and_then(|approval| approval.verify(&world.group, &request(1))).err()
    };
    assert_eq!(verify(&bytes), None);
    for place in 0..APPROVAL_BYTES {
        for bit in [0, 7] {
            let mut changed = bytes;
            changed[place] ^= 1 << bit;
            assert!(verify(&changed).is_some(), "byte {place}, bit {bit}");
        }
    }
    for (number, name) in ELEMENTS.iter().enumerate() {
        let place = number * POINT;
        let with = |point: &[u8]| {
            let mut changed = bytes;
            changed[place..place + POINT].copy_from_slice(point);
            verify(&changed)
        };
        let mut identity = [0u8; POINT];
        identity[0] = 0xc0;
        assert_eq!(with(&identity), Some(ApprovalError::InvalidElement), "{name}: identity");
        assert_eq!(with(&hex(ORDER_11)), Some(ApprovalError::InvalidElement), "{name}: order 11");
        assert_eq!(with(&[0xff; POINT]), Some(ApprovalError::InvalidElement), "{name}: no point");
        let other = G1::mul_generator(&scalar(&mut world.rng)).to_compressed();
        assert_eq!(with(&other), Some(ApprovalError::WrongProof), "{name}: other element");
    }
    for number in 0..4 {
        let place = ELEMENTS.len() * POINT + number * 32;
        let mut changed = bytes;
        changed[place..place + 32].fill(0xff);
        assert_eq!(verify(&changed), Some(ApprovalError::Malformed), "scalar {number}");
    }
    assert_eq!(verify(&bytes[1..]), Some(ApprovalError::Malformed));
    assert_eq!(verify(&[&bytes[..], &[0]].concat()), Some(ApprovalError::Malformed));
}

/// The proof holds for any secret and any point in the place of its signature; the pairing is what tells members
/// from others.
#[test]
fn secrets_that_the_issuer_has_not_signed_are_refused() {
    let mut world = world(5, 2);
    let (stranger, elsewhere) = world.custody.group("approvers", 3, &mut world.rng).unwrap();
    let foreign = admit(&stranger, &elsewhere, &scalar(&mut world.rng)).unwrap();
    assert!(MemberKey::decode(&world.group, &foreign.encode()).is_err());
    let forged = claim(foreign, &world.group);
    let forged = forged.approve(&world.group, &request(1), &mut world.rng).unwrap();
    assert_eq!(forged.verify(&world.group, &request(1)).err(), Some(ApprovalError::NotIssued));
    let good = world.members[0].approve(&world.group, &request(1), &mut world.rng).unwrap();
    let refused = count(&world.group, &request(1), &[good, forged], 1, &mut world.rng);
    assert_eq!(refused.err(), Some(CountError::Refused(1, ApprovalError::NotIssued)));
}

#[test]
fn members_are_counted_once_and_the_wrong_approval_is_named() {
    let mut world = world(6, 4);
    let approve = |world: &mut World, members: &[usize]| -> Vec<Approval> {
        let one = |member: &usize| {
            world.members[*member].approve(&world.group, &request(1), &mut world.rng).unwrap()
        };
        members.iter().map(one).collect()
    };
    let approvals = approve(&mut world, &[0, 1, 2]);
    assert_eq!(count(&world.group, &request(1), &approvals, 3, &mut world.rng).map(|tags| tags.len()), Ok(3));
    let too_few = count(&world.group, &request(1), &approvals, 4, &mut world.rng);
    assert_eq!(too_few, Err(CountError::TooFew(3)));
    assert_eq!(count(&world.group, &request(1), &[], 1, &mut world.rng), Err(CountError::TooFew(0)));
    let approvals = approve(&mut world, &[3, 1, 3]);
    let twice = count(&world.group, &request(1), &approvals, 2, &mut world.rng);
    assert_eq!(twice, Err(CountError::Refused(2, ApprovalError::CountedTwice)));
    let approvals = approve(&mut world, &[0, 1]);
    let other = count(&world.group, &request(2), &approvals, 2, &mut world.rng);
    assert_eq!(other, Err(CountError::Refused(0, ApprovalError::WrongProof)));
}

/// An approval tells nothing of its maker: the group's public data alone lead to approvals that the
/// verifier accepts where its hash function is programmed, and refuses where it is not.
#[test]
fn approvals_can_be_simulated_without_a_member() {
    for seed in sim::seeds::wanted("simulated approvals", 1_000) {
        let mut world = world(seed, 1);
        let real = world.members[0].approve(&world.group, &request(1), &mut world.rng).unwrap();
        let simulated = simulate(&world.group, &request(1), &mut world.rng);
        assert!(accepts(&world.group, &request(1), &simulated, &simulated.approval), "seed {seed}");
        assert!(accepts(&world.group, &request(1), &simulated, &real), "seed {seed}");
        let unprogrammed = simulated.approval.verify(&world.group, &request(1)).err();
        assert_eq!(unprogrammed, Some(ApprovalError::WrongProof), "seed {seed}");
        let another = simulate(&world.group, &request(1), &mut world.rng);
        assert!(!accepts(&world.group, &request(1), &simulated, &another.approval), "seed {seed}");
    }
}

/// The shares of these openers, as others read them.
fn shares(world: &mut World, approval: &Approval, openers: &[u32]) -> Vec<(PartyId, OpeningShare)> {
    let make = |number: &u32| {
        let (party, rng) = (party(*number), &mut world.rng);
        let share = world.custody.share(party);
        let made = OpeningShare::new(&world.group, &request(1), approval, party, &share, rng).unwrap();
        (party, OpeningShare::decode(&made.encode()).unwrap())
    };
    openers.iter().map(make).collect()
}

#[test]
fn opening_names_the_member_and_nobody_else() {
    for seed in sim::seeds::wanted("openings", 10_000) {
        let mut world = world(seed, 3);
        let who = usize::try_from(world.rng.next_u64() % 3).unwrap();
        let approval = world.members[who].approve(&world.group, &request(1), &mut world.rng).unwrap();
        let openers = [[1u32, 2], [1, 3], [3, 2]][usize::try_from(world.rng.next_u64() % 3).unwrap()];
        let shares = shares(&mut world, &approval, &openers);
        let found = open(&world.group, &request(1), &approval, &shares).unwrap();
        let named: Vec<usize> = (0..3).filter(|member| world.members[*member].point() == found).collect();
        assert_eq!(named, [who], "seed {seed}");
        let alone = open(&world.group, &request(1), &approval, &shares[..1]);
        assert_eq!(alone, Err(OpeningError::TooFew(1)), "seed {seed}");
    }
}

#[test]
fn shares_of_openings_are_proven() {
    let mut world = world(7, 2);
    let first = world.members[0].approve(&world.group, &request(1), &mut world.rng).unwrap();
    let second = world.members[1].approve(&world.group, &request(1), &mut world.rng).unwrap();
    let (_, made) = shares(&mut world, &first, &[1]).remove(0);
    assert!(made.verify(&world.group, &first, party(1)));
    assert!(!made.verify(&world.group, &second, party(1)));
    assert!(!made.verify(&world.group, &first, party(2)));
    assert!(!made.verify(&world.group, &first, party(4)));
    let bytes = made.encode();
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        let holds = OpeningShare::decode(&changed)
            .is_some_and(|changed| changed.verify(&world.group, &first, party(1)));
        assert!(!holds, "byte {place}");
    }
}

#[test]
fn openings_take_enough_shares_of_openers_for_this_approval_only() {
    let mut world = world(8, 2);
    let first = world.members[0].approve(&world.group, &request(1), &mut world.rng).unwrap();
    let second = world.members[1].approve(&world.group, &request(1), &mut world.rng).unwrap();
    let mut opened = |approval: &Approval, of: &Approval, openers: &[u32], said: &[u32]| {
        let made = shares(&mut world, of, openers).into_iter().map(|(_, share)| share);
        let made: Vec<_> = said.iter().map(|number| party(*number)).zip(made).collect();
        open(&world.group, &request(1), approval, &made).map(|_| ())
    };
    assert_eq!(opened(&first, &first, &[1, 2, 3], &[1, 2, 3]), Ok(()));
    assert_eq!(opened(&first, &first, &[], &[]), Err(OpeningError::TooFew(0)));
    assert_eq!(opened(&first, &first, &[1, 1], &[1, 1]), Err(OpeningError::Twice(party(1))));
    assert_eq!(opened(&first, &first, &[1, 2], &[1, 4]), Err(OpeningError::NotAnOpener(party(4))));
    assert_eq!(opened(&first, &first, &[1, 2], &[1, 3]), Err(OpeningError::WrongShare(party(3))));
    assert_eq!(opened(&first, &second, &[1, 2], &[1, 2]), Err(OpeningError::WrongShare(party(1))));
}

/// Openers are not a machine that decrypts: a member that sends another's ciphertext as its own gets no share.
#[test]
fn openers_decrypt_nothing_but_approvals_of_the_request() {
    let mut world = world(9, 2);
    let mut approve =
        |member: usize| world.members[member].approve(&world.group, &request(1), &mut world.rng).unwrap();
    let (victim, own) = (approve(0), approve(1));
    let mut mixed = own.encode();
    mixed[4 * POINT..6 * POINT].copy_from_slice(&victim.encode()[4 * POINT..6 * POINT]);
    let mixed = Approval::decode(&mixed).unwrap();
    let share = world.custody.share(party(1));
    let mut made = |request: &Request, approval: &Approval, me: u32| {
        OpeningShare::new(&world.group, request, approval, party(me), &share, &mut world.rng).map(|_| ())
    };
    let refused = Err(OpeningError::Approval(ApprovalError::WrongProof));
    assert_eq!(made(&request(1), &mixed, 1), refused);
    assert_eq!(made(&request(2), &victim, 1), refused);
    assert_eq!(made(&request(1), &victim, 2), Err(OpeningError::NotAnOpener(party(2))));
    assert_eq!(made(&request(1), &victim, 1), Ok(()));
}
