//! The other implementation, driven as its own tests drive it. Sizes are those of its binary encoding (postcard).

use std::collections::BTreeMap;
use std::time::Duration;

use dkls23::protocols::dkg_session::DkgSession;
use dkls23::protocols::sign_session::SignSession;
use dkls23::protocols::signing::SignData;
use dkls23::protocols::{Parameters, Party, PartyIndex};
use k256::Secp256k1;
use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use serde::Serialize;

use crate::ecdsa_harness::processor_time;

fn size<T: Serialize>(message: &T) -> usize {
    postcard::to_allocvec(message).unwrap().len()
}

/// Adds the time that `work` takes to one party's.
fn timed<T>(meter: &mut Duration, work: impl FnOnce() -> T) -> T {
    let begun = processor_time();
    let result = work();
    *meter += processor_time() - begun;
    result
}

fn index(place: usize) -> PartyIndex {
    PartyIndex::new(place as u8 + 1).unwrap()
}

pub fn keygen(t: u8, n: u8, rng: &mut ChaCha20Rng) -> (Duration, usize, Vec<Party<Secp256k1>>) {
    let count = usize::from(n);
    let mut session_id = [0u8; 32];
    rng.fill_bytes(&mut session_id);
    let mut meters = vec![Duration::ZERO; count];
    let mut sent = vec![0; count];
    let parameters = Parameters { threshold: t, share_count: n };
    let mut sessions: Vec<DkgSession<Secp256k1>> = (0..count)
        .map(|place| DkgSession::new(parameters.clone(), index(place), session_id.to_vec()))
        .collect();
    let fragments: Vec<_> =
        sessions.iter().zip(&mut meters).map(|(s, meter)| timed(meter, || s.phase1())).collect();
    sent.iter_mut().for_each(|sent| *sent += 32 * (count - 1));
    let (mut proofs, mut zero_2, mut bip_2) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (place, session) in sessions.iter_mut().enumerate() {
        let mine: Vec<_> = fragments.iter().map(|row| row[place]).collect();
        let (proof, zero, bip) = timed(&mut meters[place], || session.phase2(&mine).unwrap());
        sent[place] += (size(&proof) + size(&bip)) * (count - 1) + zero.iter().map(size).sum::<usize>();
        proofs.push(proof);
        zero_2.extend(zero);
        bip_2.insert(index(place), bip);
    }
    let (mut zero_3, mut mul_3, mut bip_3) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (place, session) in sessions.iter_mut().enumerate() {
        let (zero, mul, bip) = timed(&mut meters[place], || session.phase3().unwrap());
        sent[place] += size(&bip) * (count - 1)
            + zero.iter().map(size).sum::<usize>()
            + mul.iter().map(size).sum::<usize>();
        zero_3.extend(zero);
        mul_3.extend(mul);
        bip_3.insert(index(place), bip);
    }
    let mut parties = Vec::new();
    for (place, session) in sessions.into_iter().enumerate() {
        let me = index(place);
        let zero_2: Vec<_> = zero_2.iter().filter(|m| m.parties.receiver == me).cloned().collect();
        let zero_3: Vec<_> = zero_3.iter().filter(|m| m.parties.receiver == me).cloned().collect();
        let mul_3: Vec<_> = mul_3.iter().filter(|m| m.parties.receiver == me).cloned().collect();
        let (party, _) = timed(&mut meters[place], || {
            session.phase4(&proofs, &zero_2, &zero_3, &mul_3, &bip_2, &bip_3, |_| String::new()).unwrap()
        });
        parties.push(party);
    }
    (meters.into_iter().max().unwrap(), sent.into_iter().max().unwrap(), parties)
}

pub fn sign(parties: &[Party<Secp256k1>], t: u8, rng: &mut ChaCha20Rng) -> (Duration, usize) {
    let count = usize::from(t);
    let mut sign_id = [0u8; 32];
    rng.fill_bytes(&mut sign_id);
    let mut meters = vec![Duration::ZERO; count];
    let mut sent = vec![0; count];
    let (mut sessions, mut first) = (Vec::new(), Vec::new());
    for place in 0..count {
        let data = SignData {
            sign_id: sign_id.to_vec(),
            counterparties: (0..count).filter(|other| *other != place).map(index).collect(),
            message_hash: [7; 32].into(),
        };
        let (session, messages) =
            timed(&mut meters[place], || SignSession::new(&parties[place], data).unwrap());
        sent[place] += messages.iter().map(size).sum::<usize>();
        sessions.push(session);
        first.extend(messages);
    }
    let mut second = Vec::new();
    for (place, session) in sessions.iter_mut().enumerate() {
        let mine: Vec<_> = first.iter().filter(|m| m.parties.receiver == index(place)).cloned().collect();
        let messages = timed(&mut meters[place], || session.phase2(&mine).unwrap());
        sent[place] += messages.iter().map(size).sum::<usize>();
        second.extend(messages);
    }
    let mut broadcasts = Vec::new();
    for (place, session) in sessions.iter_mut().enumerate() {
        let mine: Vec<_> = second.iter().filter(|m| m.parties.receiver == index(place)).cloned().collect();
        let message = timed(&mut meters[place], || session.phase3(&mine).unwrap());
        sent[place] += size(&message) * (count - 1);
        broadcasts.push(message);
    }
    for (place, session) in sessions.into_iter().enumerate() {
        timed(&mut meters[place], || session.phase4(&broadcasts, true).unwrap());
    }
    (meters.into_iter().max().unwrap(), sent.into_iter().max().unwrap())
}
