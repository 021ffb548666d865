//! Generators that repeat themselves, opening keys that are not the openers', issuing keys of two epochs.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use engine::{EvidenceKey, PartyId, Secret};
use group_signatures::forge::{Custody, admit, claim};
use group_signatures::{
    Applicant, Approval, ApprovalError, CountError, Decision, GroupError, GroupId, GroupPublic, IssuingKey,
    MemberKey, OpenerError, OpenerKey, Openers, OpeningShare, Request, count,
};
use primitives::bls12_381::{G1, Scalar};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use sim::Stuck;

const TICKET: [u8; 32] = [1; 32];

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn scalar(rng: &mut ChaCha20Rng) -> Secret<Scalar> {
    Secret::new(Scalar::random(rng))
}

fn party(number: u32) -> PartyId {
    PartyId::new(number).unwrap()
}

struct World {
    issuing_key: IssuingKey,
    custody: Custody,
    group: GroupPublic,
}

fn world() -> World {
    let mut rng = rng(1);
    let custody = Custody::new(2, 3, &mut rng).unwrap();
    let (issuing_key, group) = custody.group("approvers", 3, &mut rng).unwrap();
    World { issuing_key, custody, group }
}

fn request(number: u8) -> Request {
    Request { digest: [number; 32], decision: Decision::Approve }
}

fn approval(world: &World, number: u8) -> Approval {
    let member = admit(&world.issuing_key, &world.group, &scalar(&mut rng(2))).unwrap();
    member.approve(&world.group, &request(number), &mut rng(7)).unwrap()
}

/// The exponent that two proofs with one nonce give away, as a point. The challenge is at `place`, and the response
/// follows it.
fn extracted(first: &[u8], second: &[u8], place: usize) -> G1 {
    extracted_from(first, second, (place, place + 32))
}

fn extracted_from(first: &[u8], second: &[u8], (challenge, response): (usize, usize)) -> G1 {
    let scalar = |bytes: &[u8], place: usize| {
        Scalar::from_bytes(&bytes[place..place + 32].try_into().unwrap()).unwrap()
    };
    let challenges = scalar(first, challenge).sub(&scalar(second, challenge));
    let responses = scalar(first, response).sub(&scalar(second, response));
    G1::mul_generator(&Secret::new(responses.mul(&challenges.inverse())))
}

#[test]
fn repeated_generator_does_not_show_an_applicants_half() {
    let world = world();
    let identity = EvidenceKey::generate(&mut rng(3));
    let apply = |ticket: [u8; 32]| {
        let applicant = Applicant::new(&world.group, &ticket, &mut rng(3));
        applicant.apply(&identity, &mut rng(4)).encode()
    };
    let (first, second) = (apply(TICKET), apply([2; 32]));
    assert_ne!(first[..48], second[..48]);
    assert_ne!(extracted(&first, &second, 48).to_compressed()[..], first[..48]);
}

/// Two approvals of different requests: their elements differ, and no response gives sk_i, rho or k away.
#[test]
fn repeated_generator_does_not_show_a_members_secret() {
    let world = world();
    let (first, second) = (approval(&world, 1).encode(), approval(&world, 2).encode());
    let element = |bytes: &[u8], number: usize| bytes[48 * number..48 * (number + 1)].to_vec();
    for number in 0..6 {
        assert_ne!(element(&first, number), element(&second, number), "element {number}");
    }
    // g1^{sk_i}, and g1^rho and g1^k, which are elements.
    let member = admit(&world.issuing_key, &world.group, &scalar(&mut rng(2))).unwrap();
    let mut exponents = vec![member.point().to_compressed().to_vec()];
    exponents.extend([&first, &second].iter().flat_map(|bytes| [element(*bytes, 0), element(*bytes, 4)]));
    let challenge = 6 * 48;
    for number in 1..=3 {
        let shown = extracted_from(&first, &second, (challenge, challenge + 32 * number)).to_compressed();
        assert!(!exponents.contains(&shown.to_vec()), "response {number}");
    }
}

#[test]
fn repeated_generator_does_not_show_an_openers_share() {
    let world = world();
    let (me, secret) = (party(1), world.custody.share(party(1)));
    let share = |number: u8| {
        let (request, approval) = (request(number), approval(&world, number));
        let made = OpeningShare::new(&world.group, &request, &approval, me, &secret, &mut rng(3));
        made.unwrap().encode()
    };
    assert_ne!(extracted(&share(1), &share(2), 48), G1::mul_generator(&secret));
}

#[test]
fn repeated_generator_gives_each_epoch_another_issuing_key() {
    let custody = world().custody;
    let (first, third) = custody.group("approvers", 3, &mut rng(3)).unwrap();
    let (second, fourth) = custody.group("approvers", 4, &mut rng(3)).unwrap();
    assert_ne!(third.issuer(), fourth.issuer());
    let shown = extracted(&third.encode(), &fourth.encode(), third.encode().len() - 64);
    assert!(shown != G1::mul_generator(first.scalar()) && shown != G1::mul_generator(second.scalar()));
}

/// Weights that are known beforehand let the errors of several approvals cancel, and weights of zero hide all.
#[test]
fn stuck_generator_counts_no_strangers() {
    let world = world();
    let (stranger, elsewhere) = world.custody.group("approvers", 3, &mut rng(5)).unwrap();
    let forged = claim(admit(&stranger, &elsewhere, &scalar(&mut rng(6))).unwrap(), &world.group);
    let forged = forged.approve(&world.group, &request(1), &mut rng(8)).unwrap();
    let counted = count(&world.group, &request(1), &[approval(&world, 1), forged], 2, &mut Stuck(0));
    assert_eq!(counted, Err(CountError::Refused(1, ApprovalError::NotIssued)));
}

/// A corrupt manager with an opener's key of its own, for each way in which it may say that the key is the openers'.
#[test]
fn opening_key_that_is_not_the_openers_is_refused() {
    let world = world();
    let mut rng = rng(10);
    let decode = |bytes: &[u8]| GroupPublic::decode(bytes, &world.custody.openers).err();
    assert_eq!(decode(&world.group.encode()), None);
    let refused = |party_number: u32| Some(GroupError::Opener(OpenerError::NotAttested(party(party_number))));

    // Its own openers, under the right numbers.
    let own = Custody::new(2, 3, &mut rng).unwrap();
    let (_, group) = own.group("approvers", 3, &mut rng).unwrap();
    assert_eq!(decode(&group.encode()), refused(1));

    // Alone, in the place of all.
    let own = Custody::new(1, 1, &mut rng).unwrap();
    let (_, group) = own.group("approvers", 3, &mut rng).unwrap();
    assert_eq!(decode(&group.encode()), Some(GroupError::Opener(OpenerError::Members)));

    // The openers' signatures for another epoch or another group.
    for (name, epoch) in [("approvers", 4), ("auditors!", 3)] {
        let (_, other) = world.custody.group(name, epoch, &mut rng).unwrap();
        let mut bytes = other.encode();
        bytes[..4 + 9 + 4].copy_from_slice(&world.group.encode()[..4 + 9 + 4]);
        assert_eq!(decode(&bytes), refused(1), "{name} {epoch}");
    }

    // The threshold is signed: others cannot be told that fewer open.
    let bytes = world.group.encode();
    let fewer = lowered(&world);
    assert!(matches!(GroupPublic::decode(&bytes, &fewer), Err(GroupError::Opener(OpenerError::Sharing))));

    // One opener's signature is missing or another's, or its point is moved.
    let first = 4 + 9 + 4 + 48 + 96 + 4;
    for number in 1..=3u32 {
        let start = first + usize::try_from(number - 1).unwrap() * (4 + 48 + 64);
        let mut changed = bytes.clone();
        changed[start + 4 + 48 + 3] ^= 1;
        assert_eq!(decode(&changed), refused(number), "signature of opener {number}");
        let mut changed = bytes.clone();
        changed[start + 4..start + 4 + 48].copy_from_slice(&G1::generator().to_compressed());
        let sharing = Some(GroupError::Opener(OpenerError::Sharing));
        assert_eq!(decode(&changed), sharing, "point of opener {number}");
        let mut changed = bytes.clone();
        changed[start + 3] = 9;
        assert!(decode(&changed).is_some(), "number of opener {number}");
    }
}

#[test]
fn group_data_that_do_not_belong_together_are_refused() {
    let world = world();
    let (_, other) = world.custody.group("approvers", 3, &mut rng(8)).unwrap();
    let (other, encoded) = (other.encode(), world.group.encode());
    let decode = |bytes: &[u8]| GroupPublic::decode(bytes, &world.custody.openers).err();
    let start = 4 + "approvers".len() + 4;
    let mut mixed = encoded.clone();
    mixed[start..start + 48].copy_from_slice(&other[start..start + 48]);
    assert_eq!(decode(&mixed), Some(GroupError::DifferentKeys));
    let mut unproven = encoded.clone();
    *unproven.last_mut().unwrap() ^= 1;
    assert_eq!(decode(&unproven), Some(GroupError::Proof));
    let mut renamed = encoded.clone();
    renamed[4] ^= 1;
    assert_eq!(decode(&renamed), Some(GroupError::Opener(OpenerError::NotAttested(party(1)))));
    // Both points of another key, with the proof for this one.
    let mut swapped = encoded.clone();
    swapped[start..start + 48 + 96].copy_from_slice(&other[start..start + 48 + 96]);
    assert_eq!(decode(&swapped), Some(GroupError::Proof));
    assert_eq!(decode(&encoded[1..]), Some(GroupError::Malformed));
}

#[test]
fn every_altered_byte_of_a_group_is_refused() {
    let world = world();
    let bytes = world.group.encode();
    assert!(GroupPublic::decode(&bytes, &world.custody.openers).is_ok());
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        assert!(GroupPublic::decode(&changed, &world.custody.openers).is_err(), "byte {place}");
    }
}

/// The same openers with a threshold of 1.
fn lowered(world: &World) -> Openers {
    let keys: Vec<_> = world.custody.openers.identities().map(|(party, key)| (party, key.clone())).collect();
    Openers::new(1, &keys).unwrap()
}

#[test]
fn openers_sign_what_their_share_belongs_to_only() {
    let world = world();
    let key = world.custody.key().unwrap();
    let group = GroupId::new("approvers", 3).unwrap();
    let identity = EvidenceKey::generate(&mut rng(11));
    let wrong = key.attest(&group, party(1), &world.custody.share(party(2)), &identity);
    assert_eq!(wrong, Err(OpenerError::WrongShare(party(1))));
    let made = key.attest(&group, party(1), &world.custody.share(party(1)), &identity).unwrap();
    let refused = key.clone().attested(group.clone(), &[(party(1), made)]).err();
    assert_eq!(refused, Some(OpenerError::NotAttested(party(1))));
    assert_eq!(key.attested(group, &[]).err(), Some(OpenerError::NotAttested(party(1))));
    let few = OpenerKey::new(&world.custody.openers, &[(party(1), G1::generator())]).err();
    assert_eq!(few, Some(OpenerError::Members));
    let keys = [(party(1), identity.public()), (party(2), identity.public())];
    assert!(Openers::new(1, &keys).is_none() && Openers::new(1, &[]).is_none());
    assert!(Openers::new(0, &keys[..1]).is_none() && Openers::new(2, &keys[..1]).is_none());
    assert!(Openers::new(1, &keys[..1]).is_some());
}

/// An issuing key is made with its group, so a member that is not admitted again does not stay; a manager that takes
/// the same key all the same is found by whoever knows the earlier epoch.
#[test]
fn key_of_one_epoch_admits_nobody_to_the_next() {
    let world = world();
    let member = admit(&world.issuing_key, &world.group, &scalar(&mut rng(12))).unwrap();
    let (next_key, next) = world.custody.group("approvers", 4, &mut rng(13)).unwrap();
    assert!(MemberKey::decode(&next, &member.encode()).is_err());
    assert_ne!(next_key.group(), world.issuing_key.group());
    assert_eq!(next.check_after(&world.group), Ok(()));
    assert_eq!(world.group.check_after(&next), Err(GroupError::NotLater));
    assert_eq!(next.check_after(&next), Err(GroupError::NotLater));
    let (_, other) = world.custody.group("others", 4, &mut rng(13)).unwrap();
    assert_eq!(other.check_after(&world.group), Err(GroupError::NotLater));
    let again = world.issuing_key.reused(world.custody.attested("approvers", 4).unwrap(), &mut rng(14));
    let again = GroupPublic::decode(&again.encode(), &world.custody.openers).unwrap();
    assert!(MemberKey::decode(&again, &member.encode()).is_ok());
    assert_eq!(again.check_after(&world.group), Err(GroupError::KeyOfEarlierEpoch));
}
