//! Elements outside the subgroup: a genuine element with a part of small order would be a second one with the same
//! logarithm. And members that come twice: by two epochs, or with a point that has no signature.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use engine::{EVIDENCE_KEY_BYTES, EvidenceKey, PartyId, Secret};
use group_signatures::forge::{Custody, Records, admit};
use group_signatures::{
    Applicant, Application, Approval, ApprovalError, CountError, Decision, GroupError, GroupPublic,
    Invitation, IssuingKey, MemberKey, OpeningShare, Registrar, RegistrationError, Request, Ticket, count,
};
use primitives::bls12_381::{CurveG1, G1, Scalar, UncheckedG2};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

const POINT: usize = 48;
const TAG: usize = 3 * POINT;
const TICKET: [u8; 32] = [1; 32];
const REQUEST: Request = Request { digest: [7; 32], decision: Decision::Approve };
/// x and y of a point of order 11.
const ORDER_11: &str = "\
19b3e2c8c6bbf59d3c326b531fc1e639d29200c28624ac604f251a12908c9b7f735318617f625954cc71cdf03229b1ef\
15d1455562b9a28d0f11a69ecd34f5a8ade01df410168a09cf16ccfbcbfc69403c7c5771a05d217a122b795529939e03";

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// This element and its negative, each with a part of order 11.
fn with_small_order(element: &[u8]) -> [[u8; POINT]; 2] {
    let byte = |at: usize| u8::from_str_radix(&ORDER_11[2 * at..2 * at + 2], 16).unwrap();
    let small = CurveG1::from_uncompressed(&core::array::from_fn(byte)).unwrap();
    let element = G1::from_compressed(element.try_into().unwrap()).unwrap();
    let sum = CurveG1::sum([element.into(), small].iter()).unwrap().to_uncompressed();
    [0x80, 0xa0].map(|flags| core::array::from_fn(|at| if at == 0 { sum[0] | flags } else { sum[at] }))
}

/// The encoding with either in the place of an element.
fn altered(bytes: &[u8], place: usize) -> [Vec<u8>; 2] {
    with_small_order(&bytes[place..place + POINT]).map(|element| {
        let mut bytes = bytes.to_vec();
        bytes[place..place + POINT].copy_from_slice(&element);
        bytes
    })
}

struct World {
    custody: Custody,
    key: IssuingKey,
    group: GroupPublic,
}

fn world() -> World {
    let custody = Custody::new(2, 3, &mut rng(1)).unwrap();
    let (key, group) = custody.group("approvers", 1, &mut rng(2)).unwrap();
    World { custody, key, group }
}

fn member(world: &World) -> MemberKey {
    admit(&world.key, &world.group, &Secret::new(Scalar::random(&mut rng(3)))).unwrap()
}

#[test]
fn no_element_of_an_approval_has_a_part_of_small_order() {
    let world = world();
    let approval = member(&world).approve(&world.group, &REQUEST, &mut rng(4)).unwrap().encode();
    for place in (0..6 * POINT).step_by(POINT) {
        for bytes in altered(&approval, place) {
            assert_eq!(Approval::decode(&bytes).err(), Some(ApprovalError::InvalidElement), "byte {place}");
        }
    }
    assert_eq!(altered(&approval, TAG)[0].len(), approval.len());
}

#[test]
fn no_element_of_a_registration_a_group_or_an_opening_has_one() {
    let world = world();
    let identity = EvidenceKey::generate(&mut rng(5));
    let application =
        Applicant::new(&world.group, &TICKET, &mut rng(6)).apply(&identity, &mut rng(7)).encode();
    for bytes in altered(&application, 0) {
        assert_eq!(Application::decode(&bytes).err(), Some(RegistrationError::Malformed));
    }
    let group = world.group.encode();
    let start = 4 + "approvers".len() + 4;
    for bytes in altered(&group, start) {
        let refused = GroupPublic::decode(&bytes, &world.custody.openers).err();
        assert_eq!(refused, Some(GroupError::Malformed));
    }
    // Of the curve over Fp2, and in the subgroup by no chance.
    let on_curve = |x: u8| {
        let mut bytes = [0u8; 96];
        (bytes[0], bytes[95]) = (0x80, x);
        UncheckedG2::from_compressed(&bytes).map(|_| bytes)
    };
    let mut outside = group.clone();
    outside[start + POINT..start + POINT + 96].copy_from_slice(&(1..).find_map(on_curve).unwrap());
    assert_eq!(GroupPublic::decode(&outside, &world.custody.openers).err(), Some(GroupError::Malformed));
    let approval = member(&world).approve(&world.group, &REQUEST, &mut rng(4)).unwrap();
    let me = PartyId::new(1).unwrap();
    let share = world.custody.share(me);
    let share = OpeningShare::new(&world.group, &REQUEST, &approval, me, &share, &mut rng(8)).unwrap();
    for bytes in altered(&share.encode(), 0) {
        assert!(OpeningShare::decode(&bytes).is_none());
    }
}

/// A member has one tag however often it has joined, and keys of two epochs do not count together.
#[test]
fn a_member_that_has_joined_twice_counts_once() {
    let world = world();
    let secret = Secret::new(Scalar::random(&mut rng(9)));
    // The answer to its first join was lost.
    let approvals = [10, 11].map(|seed| {
        let key = admit(&world.key, &world.group, &secret).unwrap();
        key.approve(&world.group, &REQUEST, &mut rng(seed)).unwrap()
    });
    assert_eq!(approvals[0].tag(), approvals[1].tag());
    let twice = count(&world.group, &REQUEST, &approvals, 2, &mut rng(12));
    assert_eq!(twice, Err(CountError::Refused(1, ApprovalError::CountedTwice)));
    // The group was rotated, and the member has joined again, with the same secret even.
    let (next_key, next) = world.custody.group("approvers", 2, &mut rng(13)).unwrap();
    let key = admit(&next_key, &next, &secret).unwrap();
    let of_next = || key.approve(&next, &REQUEST, &mut rng(14)).unwrap();
    let [first, _] = approvals;
    assert_ne!(first.tag(), of_next().tag());
    let both = [first, of_next()];
    let refused = count(&world.group, &REQUEST, &both, 2, &mut rng(15));
    assert_eq!(refused, Err(CountError::Refused(1, ApprovalError::WrongProof)));
    let [first, second] = both;
    let refused = count(&next, &REQUEST, &[second, first], 2, &mut rng(16));
    assert_eq!(refused, Err(CountError::Refused(1, ApprovalError::WrongProof)));
}

/// An issuer that answers with what suits it.
struct Chosen(Scalar);

impl Registrar for Chosen {
    fn part(
        &self,
        _: &GroupPublic,
        _: &[u8; 32],
        _: &[u8; EVIDENCE_KEY_BYTES],
        _: &[u8; POINT],
    ) -> Option<Scalar> {
        Some(self.0.copy())
    }
}

#[test]
fn points_that_have_no_signature_are_registered_by_nobody() {
    let world = world();
    let identity = EvidenceKey::generate(&mut rng(17));
    // A half of 5, as it is stored.
    let mut stored = [&world.group.digest()[..], &TICKET, &[0; 32]].concat();
    *stored.last_mut().unwrap() = 5;
    let applicant = Applicant::decode(&stored).unwrap();
    let application = applicant.apply(&identity, &mut rng(18));
    let invitation = Invitation { ticket: TICKET, identity: identity.public() };
    let bind = |part: Scalar| {
        Ticket::bind(&world.group, &invitation, &Records::default(), &application, &Chosen(part))
    };
    let to_identity = Scalar::zero().sub(&Scalar::from_u64(5));
    let to_negative_key = to_identity.sub(world.key.scalar().expose());
    assert_eq!(bind(to_identity.copy()), Err(RegistrationError::PointTaken));
    assert_eq!(bind(to_negative_key), Err(RegistrationError::PointTaken));
    assert!(bind(Scalar::from_u64(6)).is_ok());
    // An answer that leads there is none for the applicant either.
    let answer = group_signatures::Answer::decode(to_identity.to_bytes());
    assert_eq!(applicant.accept(&answer, &identity).err(), Some(RegistrationError::WrongAnswer));
}
