//! A generator that repeats its output in another session, or for another share, repeats no nonce of a signature, as a
//! nonce that is used twice shows the signing share.

use crate::ecdsa_common;
use crate::harness;
use std::collections::BTreeSet;

use crate::common::{Started, party, rng, settings};
use crate::harness::Keyed;
use engine::Protocol;
use engine::forge::Forged;
use engine::session::{Session, Step};
use protocols::frost::{self, Bip340, Ed25519};
use protocols::{bip32::DerivationPath, ecdsa};

const SIGNERS: [u32; 2] = [1, 2];
/// Presignatures that a session makes here.
const COUNT: u8 = 2;
const DIGEST: usize = 32;
const POINT: usize = 33;

/// Where the salt and the nonce point are in round 2 of ECDSA, behind the hash of all commitments.
const SALT_AND_NONCE_POINT: [core::ops::Range<usize>; 2] =
    [DIGEST..2 * DIGEST, 2 * DIGEST..2 * DIGEST + POINT];

/// `shown` gives what party 1 shows of its nonces in a session, with its own share or with another.
fn no_nonce_comes_back(shown: impl Fn(u8, bool) -> Vec<Vec<u8>>) {
    let first = shown(1, false);
    assert_eq!(first, shown(1, false), "the generator repeats its output");
    let all = [first, shown(2, false), shown(1, true)].concat();
    let distinct: BTreeSet<&Vec<u8>> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "{all:?}");
}

/// Every session of a party starts with the same state of its generator.
fn start<P: Protocol>(me: u32, session: u8, payload: &[u8], input: P::Input) -> Started<P> {
    let settings = settings(Some(party(me)), &SIGNERS, 2, session, payload);
    Session::start(settings, None, input, &mut rng(u64::from(me))).unwrap()
}

fn body<T>(step: &Step<T>) -> Vec<u8> {
    Forged::open(&step.outgoing[0].encode()).unwrap().body
}

fn frost_commitments<S: Keyed>() {
    let share = |other: bool| {
        let own = harness::reopen(&S::keyed()[&1]);
        if other { own.shifted() } else { own }
    };
    let points = |body: Vec<u8>, count: usize| {
        assert_eq!(body.len(), count * 2 * S::POINT_BYTES);
        body.chunks(S::POINT_BYTES).map(<[u8]>::to_vec).collect()
    };
    let target = S::targets().pop().unwrap();
    let request = harness::payload(harness::message(1), &target).encode();
    no_nonce_comes_back(|session, other| {
        let input = frost::SignInput::Party(Box::new(share(other)));
        points(body(&start::<frost::Signing<S>>(1, session, &request, input).1), 1)
    });
    let order = frost::PresignPayload { target, count: COUNT }.encode();
    no_nonce_comes_back(|session, other| {
        let (_, step) = start::<frost::Presigning<S>>(1, session, &order, share(other));
        points(body(&step), usize::from(COUNT))
    });
}

#[test]
fn frost_nonces_of_another_session_or_share_differ() {
    frost_commitments::<Ed25519>();
    frost_commitments::<Bip340>();
}

/// Salts and nonce points that party 1 opens in round 2, after round 1 of party 2.
fn ecdsa_openings<P: Protocol>(
    payload: &[u8],
    count: u8,
    (session, other): (u8, bool),
    input: impl Fn(ecdsa::KeyShare) -> P::Input,
) -> Vec<Vec<u8>> {
    let share = |me: u32| ecdsa_common::reopen(&keys()[&me]);
    let own = if other { share(1).shifted() } else { share(1) };
    let (mut one, _) = start::<P>(1, session, payload, input(own));
    let (_, step) = start::<P>(2, session, payload, input(share(2)));
    let body = body(&one.handle(party(2), &step.outgoing[0].encode(), &mut rng(1)));
    let places = body.chunks(body.len() / usize::from(count));
    places.flat_map(|place| SALT_AND_NONCE_POINT.map(|part| place[part].to_vec())).collect()
}

fn keys() -> &'static ecdsa_common::Shares {
    static KEYS: std::sync::LazyLock<ecdsa_common::Shares> =
        std::sync::LazyLock::new(|| ecdsa_common::keygen(&SIGNERS, 2, 3));
    &KEYS
}

#[test]
fn ecdsa_nonces_and_salts_of_another_session_or_share_differ() {
    let request = ecdsa_common::payload([0x60; 32], &[3]).encode();
    no_nonce_comes_back(|session, other| {
        let input = |share| ecdsa::SignInput::Party(Box::new(share));
        ecdsa_openings::<ecdsa::Signing>(&request, 1, (session, other), input)
    });
    let path = DerivationPath::new(&[3]).unwrap();
    let order = ecdsa::PresignPayload { path, count: COUNT }.encode();
    no_nonce_comes_back(|session, other| {
        ecdsa_openings::<ecdsa::Presigning>(&order, COUNT, (session, other), |share| share)
    });
}
