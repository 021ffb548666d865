//! Generators that repeat themselves, openers' keys that are not the openers', stolen tickets, stores that went back.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use core::convert::Infallible;

use engine::Secret;
use group_signatures::forge::claim;
use group_signatures::{
    Applicant, Approval, ApprovalError, CountError, Decision, GroupPublic, IssuingKey, MemberKey,
    OpeningShare, Request, complete, count,
};
use primitives::bls12_381::{G1, Scalar};
use rand_chacha::ChaCha20Rng;
use rand_core::{SeedableRng, TryCryptoRng, TryRng};

const TICKET: [u8; 32] = [1; 32];

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn scalar(rng: &mut ChaCha20Rng) -> Secret<Scalar> {
    Secret::new(Scalar::random(rng))
}

fn issue(key: &IssuingKey, group: &GroupPublic, secret: &Secret<Scalar>) -> MemberKey {
    let sum = Secret::new(key.scalar().expose().add(secret.expose()));
    let credential = G1::mul_generator(&Secret::new(sum.expose().inverse()));
    complete(group, Secret::new(secret.expose().copy()), credential).unwrap()
}

struct World {
    issuing_key: IssuingKey,
    opener: Secret<Scalar>,
    group: GroupPublic,
}

fn world() -> World {
    let mut rng = rng(1);
    let issuing_key = IssuingKey::generate(&mut rng);
    let opener = scalar(&mut rng);
    let group = issuing_key.group("approvers", 3, G1::mul_generator(&opener), &mut rng).unwrap();
    World { issuing_key, opener, group }
}

fn request(number: u8) -> Request {
    Request { digest: [number; 32], decision: Decision::Approve }
}

fn approval(world: &World, number: u8) -> Approval {
    let member = issue(&world.issuing_key, &world.group, &scalar(&mut rng(2)));
    member.approve(&world.group, &request(number), &mut rng(7)).unwrap()
}

/// The exponent that two proofs with one nonce give away, as a point. Challenge and response are at `place`.
fn extracted(first: &[u8], second: &[u8], place: usize) -> G1 {
    let scalar = |bytes: &[u8], place: usize| {
        Scalar::from_bytes(&bytes[place..place + 32].try_into().unwrap()).unwrap()
    };
    let challenges = scalar(first, place).sub(&scalar(second, place));
    let responses = scalar(first, place + 32).sub(&scalar(second, place + 32));
    G1::mul_generator(&Secret::new(responses.mul(&challenges.inverse())))
}

#[test]
fn repeated_generator_does_not_show_an_applicants_half() {
    let world = world();
    let (_, first) = Applicant::apply(&world.group, &TICKET, &mut rng(3));
    let (_, second) = Applicant::apply(&world.group, &[2; 32], &mut rng(3));
    let (first, second) = (first.encode(), second.encode());
    assert_ne!(first[..48], second[..48]);
    assert_ne!(extracted(&first, &second, 48).to_compressed()[..], first[..48]);
}

#[test]
fn repeated_generator_does_not_show_an_openers_share() {
    let world = world();
    let share = |number: u8| {
        OpeningShare::new(&world.group, &approval(&world, number), &world.opener, &mut rng(3)).encode()
    };
    assert_ne!(extracted(&share(1), &share(2), 48), *world.group.opener());
}

#[test]
fn repeated_generator_does_not_show_the_issuing_key() {
    let World { issuing_key, opener, .. } = world();
    let make = |epoch: u32| {
        let group = issuing_key.group("approvers", epoch, G1::mul_generator(&opener), &mut rng(3)).unwrap();
        group.encode()
    };
    let (first, second) = (make(3), make(4));
    assert_ne!(extracted(&first, &second, first.len() - 64), G1::mul_generator(issuing_key.scalar()));
}

/// Returns nothing but zeros.
struct Stuck;

impl TryRng for Stuck {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(0)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(0)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(0);
        Ok(())
    }
}

impl TryCryptoRng for Stuck {}

/// Weights that are known beforehand let the errors of several approvals cancel, and weights of zero hide all.
#[test]
fn stuck_generator_counts_no_strangers() {
    let world = world();
    let stranger = IssuingKey::generate(&mut rng(4));
    let elsewhere = stranger.group("approvers", 3, *world.group.opener(), &mut rng(5)).unwrap();
    let forged = claim(issue(&stranger, &elsewhere, &scalar(&mut rng(6))), &world.group);
    let forged = forged.approve(&world.group, &request(1), &mut rng(8)).unwrap();
    let counted = count(&world.group, &request(1), &[approval(&world, 1), forged], 2, &mut Stuck);
    assert_eq!(counted, Err(CountError::Refused(1, ApprovalError::NotIssued)));
}
