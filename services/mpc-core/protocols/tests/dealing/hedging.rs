//! A generator that repeats its output, as that of a cloned machine does, shows nothing.

use engine::Envelope;
use engine::forge::Forged;
use engine::session::Step;
use protocols::dealing::Generated;

use crate::for_schemes;
use crate::harness::{Tested, start_keygen, start_refresh};

/// The bodies of what a step sends.
fn bodies<T>(step: &Step<T>) -> Vec<Vec<u8>> {
    step.outgoing.iter().map(|envelope: &Envelope| Forged::open(&envelope.encode()).unwrap().body).collect()
}

/// Goes on alone up to the opening, by giving party 1 the commitment of its only peer.
macro_rules! opening_of {
    ($first:expr, $second:expr) => {{
        let ((mut one, _), (_, step)) = ($first, $second);
        let commitment = step.outgoing[0].encode();
        let step = one.handle(crate::common::party(2), &commitment, &mut crate::common::rng(1));
        bodies(&step).remove(0)
    }};
}

/// With one generator state in two sessions, no point and no nonce point is the same in both, so that two responses of a proof
/// never share a nonce.
fn a_generator_that_repeats_repeats_no_coefficient_and_no_nonce<S: Tested + Generated>() {
    let opening = |session: u8| {
        let start = |me| start_keygen::<S>(me, &[1, 2], 2, (session, 5));
        opening_of!(start(1), start(2))
    };
    let (one, other) = (opening(1), opening(2));
    assert_eq!(one.len(), other.len());
    // Two points and the nonce point of the proof.
    for place in 0..3 {
        let part = 1 + place * S::POINT..1 + (place + 1) * S::POINT;
        assert_ne!(one[part.clone()], other[part], "place {place}");
    }
    assert_ne!(one[one.len() - 32..], other[other.len() - 32..], "contribution");
}

/// In a refresh the share hedges too: with the same generator state and the same session, another share draws other points.
fn a_refresh_draws_from_the_share_too<S: Tested>() {
    let shares = S::keys(&[1, 2], 2, 3);
    let opening = |shift: bool| {
        let own = S::reopen(&shares[&1]);
        let own = if shift { S::shifted(own) } else { own };
        opening_of!(start_refresh::<S>(1, own, 1), start_refresh::<S>(2, S::reopen(&shares[&2]), 1))
    };
    let (one, other) = (opening(false), opening(true));
    assert_ne!(one[1..1 + S::POINT], other[1..1 + S::POINT]);
    assert_ne!(one[1 + S::POINT..], other[1 + S::POINT..]);
}

for_schemes!(Ecdsa as ecdsa, Ed25519 as ed25519, Bip340 as bip340:
    [a_generator_that_repeats_repeats_no_coefficient_and_no_nonce, a_refresh_draws_from_the_share_too]);
for_schemes!(Bls as bls: [a_refresh_draws_from_the_share_too]);
