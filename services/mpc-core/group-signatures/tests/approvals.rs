//! Approvals: only members make them, each member counts once, and only t openers name the member.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use engine::{PartyId, Secret};
use group_signatures::forge::{accepts, claim, simulate};
use group_signatures::{
    APPROVAL_BYTES, Approval, ApprovalError, CountError, Decision, GroupPublic, IssuingKey, MemberKey,
    OpeningShare, Request, complete, count, open,
};
use primitives::bls12_381::{G1, Scalar};
use primitives::shamir::Polynomial;
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
    issuing_key: IssuingKey,
    group: GroupPublic,
    /// The opener's key, shared 2 of 3.
    opener: Polynomial,
    members: Vec<MemberKey>,
}

fn scalar(rng: &mut ChaCha20Rng) -> Secret<Scalar> {
    Secret::new(Scalar::random(rng))
}

/// A group whose members' keys are made with all secrets in one hand.
fn world(seed: u64, members: usize) -> World {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let issuing_key = IssuingKey::generate(&mut rng);
    let opener = Polynomial::new(vec![scalar(&mut rng), scalar(&mut rng)]);
    let key = G1::mul_generator(&opener.coefficients()[0]);
    let group = issuing_key.group("approvers", 3, key, &mut rng).unwrap();
    let group = GroupPublic::decode(&group.encode()).unwrap();
    let members = (0..members).map(|_| issue(&issuing_key, &group, &scalar(&mut rng))).collect();
    World { rng, issuing_key, group, opener, members }
}

fn issue(key: &IssuingKey, group: &GroupPublic, secret: &Secret<Scalar>) -> MemberKey {
    let sum = Secret::new(key.scalar().expose().add(secret.expose()));
    let credential = G1::mul_generator(&Secret::new(sum.expose().inverse()));
    complete(group, Secret::new(secret.expose().copy()), credential).unwrap()
}

fn request(number: u8) -> Request {
    Request { digest: [number; 32], decision: Decision::Approve }
}

fn party(number: u16) -> PartyId {
    PartyId::new(number.into()).unwrap()
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
    // The same issuing key in another epoch.
    let next = world.issuing_key.group("approvers", 4, *world.group.opener(), &mut world.rng).unwrap();
    assert_eq!(approval.verify(&next, &request(1)).err(), refused);
    assert!(world.members[0].approve(&next, &request(1), &mut world.rng).is_none());
    assert!(MemberKey::decode(&next, &world.members[0].encode()).is_ok());
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
    let stranger = IssuingKey::generate(&mut world.rng);
    let elsewhere = stranger.group("approvers", 3, *world.group.opener(), &mut world.rng).unwrap();
    let foreign = issue(&stranger, &elsewhere, &scalar(&mut world.rng));
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
    for seed in sim::seeds::wanted(1_000) {
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

/// The result of opening an approval with these holders of the opener's key.
fn opened(world: &mut World, approval: &Approval, holders: &[u16]) -> Option<G1> {
    let shares = holders.iter().map(|number| {
        let share = world.opener.evaluate(*number);
        let made = OpeningShare::new(&world.group, approval, &share, &mut world.rng);
        let read = OpeningShare::decode(&made.encode()).unwrap();
        assert!(read.verify(&world.group, approval, &G1::mul_generator(&share)));
        (party(*number), read)
    });
    let shares: Vec<_> = shares.collect();
    open(approval, &shares)
}

#[test]
fn opening_names_the_member_and_nobody_else() {
    for seed in sim::seeds::wanted(10_000) {
        let mut world = world(seed, 3);
        let who = usize::try_from(world.rng.next_u64() % 3).unwrap();
        let approval = world.members[who].approve(&world.group, &request(1), &mut world.rng).unwrap();
        let holders = [[1u16, 2], [1, 3], [3, 2]][usize::try_from(world.rng.next_u64() % 3).unwrap()];
        let found = opened(&mut world, &approval, &holders);
        let named: Vec<usize> =
            (0..3).filter(|member| Some(world.members[*member].point()) == found).collect();
        assert_eq!(named, [who], "seed {seed}");
        // Fewer holders than the key needs name nobody.
        let found = opened(&mut world, &approval, &holders[..1]);
        assert!(world.members.iter().all(|member| Some(member.point()) != found), "seed {seed}");
    }
}

#[test]
fn shares_of_openings_are_proven() {
    let mut world = world(7, 2);
    let first = world.members[0].approve(&world.group, &request(1), &mut world.rng).unwrap();
    let second = world.members[1].approve(&world.group, &request(1), &mut world.rng).unwrap();
    let (share, other) = (world.opener.evaluate(1), world.opener.evaluate(2));
    let point = G1::mul_generator(&share);
    let made = OpeningShare::new(&world.group, &first, &share, &mut world.rng);
    assert!(made.verify(&world.group, &first, &point));
    assert!(!made.verify(&world.group, &second, &point));
    assert!(!made.verify(&world.group, &first, &G1::mul_generator(&other)));
    let bytes = made.encode();
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        let holds = OpeningShare::decode(&changed)
            .is_some_and(|changed| changed.verify(&world.group, &first, &point));
        assert!(!holds, "byte {place}");
    }
    let again = OpeningShare::new(&world.group, &first, &share, &mut world.rng);
    assert!(open(&first, &[(party(1), made), (party(1), again)]).is_none());
    assert!(open(&first, &[]).is_none());
}
