//! Signing sessions, with the secrets of one party marked: its share and all it draws.

use engine::session::Session;
use engine::{PartyId, Protocol};
use protocols::{bls, ecdsa, frost};

use crate::common::{self, Started, party, settings};
use crate::harness::Keyed;
use crate::tainted::{self, Source, TESTED};
use crate::{ecdsa_common, harness};

const SIGNERS: [u32; 2] = [1, 2];
const T: u32 = 2;

/// A session of both signers with `input` for each.
fn start<P: Protocol>(payload: &[u8], mut input: impl FnMut(u32) -> P::Input) -> Vec<(PartyId, Started<P>)> {
    SIGNERS
        .iter()
        .map(|number| {
            let me = party(*number);
            let settings = settings(Some(me), &SIGNERS, T, 2, payload);
            (me, Session::start(settings, None, input(*number), &mut Source::of(me)).unwrap())
        })
        .collect()
}

pub fn bls() {
    let shares = common::keygen(&SIGNERS, T, 1);
    let plain = engine::seal::DataKey::new(engine::Secret::new([9; 32]));
    tainted::run(start::<bls::Signing>(b"message", |number| {
        let share = &shares[&number];
        let blob = share.seal(&plain, &mut common::rng(1)).unwrap();
        let key = if number == TESTED { &tainted::data_key() } else { &plain };
        bls::SignInput::Party(Box::new(bls::KeyShare::unseal(key, &blob, &share.label()).unwrap()))
    }));
}

fn frost_share<S: Keyed>(number: u32) -> frost::KeyShare<S> {
    let share = &S::keyed()[&number];
    let blob = share.seal(&harness::data_key(), &mut common::rng(1)).unwrap();
    let key = if number == TESTED { tainted::data_key() } else { harness::data_key() };
    frost::KeyShare::unseal(&key, &blob, &share.label()).unwrap()
}

pub fn frost<S: Keyed>() {
    for target in S::targets() {
        let payload = harness::payload(harness::message(1), &target).encode();
        tainted::run(start::<frost::Signing<S>>(&payload, |number| {
            frost::SignInput::Party(Box::new(frost_share(number)))
        }));
    }
}

pub fn presigned_frost<S: Keyed>() {
    let target = S::targets().pop().unwrap();
    let presigning = frost::PresignPayload { target: target.clone(), count: 1 }.encode();
    let mut made = tainted::run(start::<frost::Presigning<S>>(&presigning, frost_share));
    let mut payload = harness::payload(harness::message(1), &target);
    payload.presignature = Some(*made[&party(2)][0].id());
    tainted::run(start::<frost::PresignedSigning<S>>(&payload.encode(), |number| {
        let presignature = made.get_mut(&party(number)).unwrap().pop().unwrap();
        frost::SignInput::Party(Box::new(presignature))
    }));
}

fn ecdsa_shares() -> &'static ecdsa_common::Shares {
    static SHARES: std::sync::LazyLock<ecdsa_common::Shares> =
        std::sync::LazyLock::new(|| ecdsa_common::keygen(&SIGNERS, T, 1));
    &SHARES
}

fn ecdsa_share(number: u32) -> ecdsa::KeyShare {
    let share = &ecdsa_shares()[&number];
    let blob = share.seal(&ecdsa_common::data_key(), &mut common::rng(1)).unwrap();
    let key = if number == TESTED { tainted::data_key() } else { ecdsa_common::data_key() };
    ecdsa::KeyShare::unseal(&key, &blob, &share.label()).unwrap()
}

pub fn ecdsa() {
    let payload = ecdsa_common::payload([7; 32], &[44, 0]).encode();
    tainted::run(start::<ecdsa::Signing>(&payload, |number| {
        ecdsa::SignInput::Party(Box::new(ecdsa_share(number)))
    }));
}

pub fn presigned_ecdsa() {
    let path: &[u32] = &[44, 0];
    let presigning = ecdsa_common::presign_payload(path, 1);
    let mut made = tainted::run(start::<ecdsa::Presigning>(&presigning, ecdsa_share));
    let mut payload = ecdsa_common::payload([7; 32], path);
    payload.presignature = Some(*made[&party(2)][0].id());
    tainted::run(start::<ecdsa::PresignedSigning>(&payload.encode(), |number| {
        let presignature = made.get_mut(&party(number)).unwrap().pop().unwrap();
        ecdsa::SignInput::Party(Box::new(presignature))
    }));
}
