//! The leaks that must be seen, and what the core computes with secrets outside of sessions.

use std::hint::black_box;
use std::sync::LazyLock;

use engine::seal::{DataKey, SealKind};
use engine::{EvidenceKey, PartyId, Secret};
use primitives::bls12_381::{G1, HashedMessage, Scalar as BlsScalar};
use primitives::declassify::publish;
use primitives::ot::{Initiator, PAIR_STATE_BYTES, PairState, ReceiverState, Responder, SenderState};
use primitives::{secp256k1, vole};
use protocols::bls::Subgroup;
use protocols::dealing::Polynomial;

use crate::tainted::{Source, bytes, data_key};

/// A branch on a secret bit.
#[inline(never)]
pub fn branch() {
    let secret: [u8; 1] = bytes(1);
    if black_box(secret[0]) & 1 == 1 {
        black_box(branch as fn());
    }
}

/// A table that is read at a secret place.
#[inline(never)]
pub fn address() {
    static TABLE: [u8; 256] = [7; 256];
    let secret: [u8; 1] = bytes(2);
    black_box(black_box(&TABLE)[usize::from(black_box(secret[0]))]);
}

pub fn secp256k1() {
    let a = secp256k1::reduce_wide(&bytes(3));
    let b = secp256k1::random_scalar(&mut Source::secret(4));
    let sum = a + b * a - secp256k1::reduce(&bytes(5));
    black_box(secp256k1::encode_scalar(&sum.invert().unwrap_or(a)));
    let point = secp256k1::mul_generator(&a);
    black_box(secp256k1::encode_point(&secp256k1::combine_two(&a, &point, &b, &point)));
}

pub fn bls12_381() {
    let a = Secret::new(BlsScalar::from_wide(&bytes(6)));
    let b = BlsScalar::random(&mut Source::secret(7));
    let sum = a.expose().add(&b.mul(a.expose())).sub(&b).inverse();
    black_box(sum.to_bytes());
    let again = Secret::new(BlsScalar::from_bytes(&sum.to_bytes()).unwrap());
    black_box(G1::mul_generator(&again).to_compressed());
    black_box(HashedMessage::new(b"m", b"domain").sign(&again).to_compressed());
    let three = PartyId::new(3).unwrap();
    black_box(Polynomial::<Subgroup>::of(vec![a, again]).at(three).expose().to_bytes());
}

pub fn evidence() {
    let key = EvidenceKey::from_seed(&Secret::new(bytes(8)));
    black_box(key.sign_statement(b"statement"));
}

/// Both sides of a set-up with secrets of their own.
fn set_up() -> (PairState, PairState) {
    let (mut one, mut other) = (Source::secret(9), Source::secret(10));
    let (initiator, request) = Initiator::begin(&[1; 32], &mut one);
    publish(request.as_slice());
    let (responder, response) =
        Responder::answer(&[1; 32], request.as_slice().try_into().unwrap(), &mut other).unwrap();
    publish(response.as_slice());
    let (first, corrections) = initiator.finish(response.as_slice().try_into().unwrap(), &mut one).unwrap();
    publish(corrections.as_slice());
    (first, responder.finish(corrections.as_slice().try_into().unwrap()).unwrap())
}

pub fn base_transfers() {
    LazyLock::force(&STATES);
}

/// The states that go with each other, through their stored form.
pub static STATES: LazyLock<(SenderState, ReceiverState)> = LazyLock::new(|| {
    let (first, second) = set_up();
    let reload = |state: &PairState| {
        let bytes: [u8; PAIR_STATE_BYTES] = state.to_bytes().as_slice().try_into().unwrap();
        PairState::from_bytes(&bytes)
    };
    (reload(&first).sender, reload(&second).receiver)
});

pub fn extension() {
    let (sender, receiver) = &*STATES;
    let (received, message) = receiver.extend(&[5; 32], &mut Source::secret(11));
    publish(message.as_slice());
    black_box(sender.extend(&[5; 32], message.as_slice().try_into().unwrap()).unwrap());
    black_box(received);
}

pub fn multiplication() {
    let (sender, receiver) = &*STATES;
    let (bob, sampled) = vole::sample(&[5; 32], receiver, &mut Source::secret(12));
    publish(sampled.as_slice());
    let mut alice = Source::secret(13);
    let scalars = Secret::new([0; vole::PRODUCTS].map(|_| secp256k1::random_scalar(&mut alice)));
    let (shares, message) =
        vole::multiply(&[5; 32], sender, sampled.as_slice().try_into().unwrap(), &scalars, &mut alice)
            .unwrap();
    publish(message.as_slice());
    let _ = black_box(bob.finish(message.as_slice().try_into().unwrap()).unwrap());
    let _ = black_box(shares);
}

pub fn unsealing() {
    let plain = DataKey::new(Secret::new([9; 32]));
    let blob = plain.seal(SealKind::Other, b"public", b"label", &[3; 64], &mut Source::plain(14)).unwrap();
    let unsealed = data_key().unseal(SealKind::Other, b"label", &blob).unwrap();
    assert_eq!(unsealed.public, b"public");
    black_box(unsealed.secret.expose());
}
