//! A generator that repeats its output, as that of a cloned machine does, shows nothing.

use core::convert::Infallible;
use std::collections::BTreeSet;

use engine::forge::Forged;
use engine::session::{Session, Step};
use engine::{Envelope, Protocol};
use protocols::dealing::Generated;
use protocols::frost;
use rand_core::{TryCryptoRng, TryRng};

use crate::common::{evidence_key, party, settings};
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

/// With one generator state in two sessions, no point and no nonce point is the same in both, so that two responses of
/// a proof never share a nonce.
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

/// In a refresh the share hedges too: with the same generator state and the same session, another share draws other
/// points.
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

/// A generator that gives the same bytes for ever.
struct Stuck;

impl TryRng for Stuck {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(0x0707_0707)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(0x0707_0707_0707_0707)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(7);
        Ok(())
    }
}

impl TryCryptoRng for Stuck {}

/// A polynomial with equal coefficients is known from any share of it.
fn stuck_generator_repeats_no_coefficient<P: Protocol<Input = ()>>(point: usize) {
    let start = |me: u32| {
        let settings = settings(Some(party(me)), &[1, 2, 3], 3, 1, &[]);
        Session::<P>::start(settings, Some(evidence_key(party(me))), (), &mut Stuck).unwrap()
    };
    let (mut one, _) = start(1);
    let mut opening = Vec::new();
    for peer in [2, 3] {
        let (_, step) = start(peer);
        opening = bodies(&one.handle(party(peer), &step.outgoing[0].encode(), &mut Stuck));
    }
    let points: BTreeSet<&[u8]> = opening[0][1..].chunks(point).take(3).collect();
    assert_eq!(points.len(), 3);
}

#[test]
fn stuck_generator_repeats_no_coefficient_in_any_scheme() {
    stuck_generator_repeats_no_coefficient::<protocols::bls::Keygen>(96);
    stuck_generator_repeats_no_coefficient::<protocols::ecdsa::Keygen>(33);
    stuck_generator_repeats_no_coefficient::<frost::Keygen<frost::Ed25519>>(32);
    stuck_generator_repeats_no_coefficient::<frost::Keygen<frost::Bip340>>(33);
}

for_schemes!(Ecdsa as ecdsa, Ed25519 as ed25519, Bip340 as bip340:
    [a_generator_that_repeats_repeats_no_coefficient_and_no_nonce, a_refresh_draws_from_the_share_too]);
for_schemes!(Bls as bls: [a_refresh_draws_from_the_share_too]);
