//! Two corrupt parties of a refresh or reshare shift what they bring, deal or prove by amounts that make up for each
//! other, so that every sum is right. Shifted shares of the key and shifted proofs convict them; shifted dealt shares
//! change nothing at all.

use std::collections::BTreeMap;

use engine::forge::Forged;
use engine::{AbortCause, PartyId, Protocol};
use protocols::dealing::{Curve, Refresh};
use sim::{Address, Faults, Outcome, Packet, World};

use crate::common::{evidence_key, party};
use crate::dealing::for_schemes;
use crate::dealing::harness::{
    Change, Shares, Tested, by_number, number_of, refresh_with, reshare_with, start_refresh, start_reshare,
};

const PARTIES: [u32; 4] = [1, 2, 3, 4];
/// At 1, 2 and 3 the weights of parties 1 and 2 are 3 and -3: a value that both add to their shares is not in the key.
const CHANGE: Change<'static> = Change { dealers: &[1, 2, 3], receivers: &[1, 2, 3, 4], t: 3 };

/// The share with which a party runs: a colluder's is off by one. No store holds such a share: none would open it.
fn share_of<S: Tested>(shares: &Shares<S>, number: u32) -> S::Share {
    let share = S::reopen(&shares[&number]);
    if number < 3 { S::shifted(share) } else { share }
}

/// The honest parties end without a result and convict colluders only, at least one of them.
fn convicted<T>(what: &str, outcomes: &BTreeMap<Address, Outcome<T>>, causes: &[AbortCause]) {
    for honest in [3, 4] {
        let outcome = &outcomes[&Some(party(honest))];
        let abort = outcome.abort().unwrap_or_else(|| panic!("{what}: party {honest} took it"));
        assert!(causes.contains(&abort.cause), "{what}: {abort}");
        assert!(!abort.culprits.is_empty(), "{what}: {abort}");
        assert!(abort.culprits.iter().all(|culprit| number_of(*culprit) < 3), "{what}: {abort}");
        assert!(outcome.done.is_none(), "{what}: party {honest}");
    }
}

/// Adds one to a scalar that party 1 sends, and takes one from that of party 2.
fn shifted<S: Tested>(sender: PartyId, scalar: &mut [u8]) {
    let (sent, one) = (S::Curve::decode_scalar(scalar).unwrap(), S::Curve::scalar(1));
    let change = if sender == party(1) { S::Curve::add } else { S::Curve::sub };
    scalar.copy_from_slice(&S::Curve::encode_scalar(&change(&sent, &one)));
}

/// A network on which colluders alter the bodies that they send in a round.
fn colluding<'a>(round: u8, alter: impl Fn(PartyId, Address, &mut [u8]) + 'a) -> Faults<'a> {
    let tamper = move |packet: Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        if forged.round == round && number_of(packet.from) < 3 {
            alter(packet.from, packet.to, &mut forged.body);
        }
        vec![Packet { bytes: forged.encode(&evidence_key(packet.from)), ..packet }]
    };
    Faults { tamper: Some(Box::new(tamper)), ..Faults::default() }
}

/// Proofs of their shares in a refresh, and shares of another polynomial with the same key in a reshare.
fn colluders_with_shares_that_make_up_for_each_other_are_named<S: Tested>() {
    let old = S::keys(&PARTIES, 3, 23);
    let last = u8::try_from(Refresh::<S>::ROUNDS.len()).unwrap();
    let proofs = colluding(last, |sender, _, body| {
        let response = body.len() - 32;
        shifted::<S>(sender, &mut body[response..]);
    });
    convicted("refresh", &refresh_with::<S>(&old, 1, proofs), &[AbortCause::WrongProof]);
    let base = S::public_of(&old[&3]);
    let started = PARTIES.map(|me| {
        let share = CHANGE.dealers.contains(&me).then(|| share_of::<S>(&old, me));
        (Some(party(me)), start_reshare::<S>(me, share, base, &CHANGE, 2).unwrap())
    });
    convicted("reshare", &World::new(2, Faults::default(), started).run(), &[AbortCause::WrongOpening]);
}

/// Two dealers send one receiver shares that are off by one, upwards and downwards: its share is the same as without.
fn colluders_whose_dealt_shares_make_up_for_each_other_change_nothing<S: Tested>() {
    let old = S::keys(&PARTIES, 3, 24);
    let faults = || {
        colluding(3, |sender, recipient, body| {
            if recipient == Some(party(4)) {
                shifted::<S>(sender, &mut body[..32]);
            }
        })
    };
    let refreshed = by_number(refresh_with::<S>(&old, 1, faults()));
    let reshared = by_number(reshare_with::<S>(&old, &CHANGE, 2, faults()));
    let reshared = reshared.into_iter().map(|(me, end)| (me, end.share.unwrap())).collect();
    for shares in [refreshed, reshared] {
        // In which all prove that their shares are those of the public data, and nobody fails to.
        by_number(refresh_with::<S>(&shares, 3, Faults::default()));
    }
}

/// A party whose own share is not the one of the public data, which only a fault of its own can bring about: it says
/// that the fault is internal before it has proven anything, and nobody can convict it.
fn a_party_whose_own_share_is_wrong_convicts_nobody_and_is_not_convicted<S: Tested>() {
    let old = S::keys(&[1, 2, 3], 2, 25);
    let start = |me: u32| {
        let share = S::reopen(&old[&me]);
        (Some(party(me)), start_refresh::<S>(me, if me == 1 { S::shifted(share) } else { share }, 1))
    };
    let outcomes = World::new(1, Faults::default(), [1, 2, 3].map(start)).run();
    for (address, outcome) in &outcomes {
        let abort = outcome.abort().unwrap_or_else(|| panic!("{address:?} took it"));
        assert!(outcome.done.is_none() && abort.culprits.is_empty(), "{address:?}: {abort}");
        let suspects: &[PartyId] = if *address == Some(party(1)) { &[] } else { &[party(1)] };
        assert_eq!(abort.suspects, suspects, "{address:?}: {abort}");
    }
    assert_eq!(outcomes[&Some(party(1))].abort().unwrap().cause, AbortCause::Internal);
}

for_schemes!(Bls as bls, Ed25519 as ed25519, Bip340 as bip340, Ecdsa as ecdsa: [
    a_party_whose_own_share_is_wrong_convicts_nobody_and_is_not_convicted,
    colluders_with_shares_that_make_up_for_each_other_are_named,
    colluders_whose_dealt_shares_make_up_for_each_other_change_nothing,
]);
