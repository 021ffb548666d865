//! Two corrupt parties of a refresh or reshare shift what they bring or deal by amounts that make up for each other, so
//! that every sum is right. Shifted shares of the key convict them; shifted dealt shares change nothing at all.

use std::collections::BTreeMap;

use engine::AbortCause;
use engine::forge::Forged;
use protocols::dealing::Curve;
use sim::{Address, Faults, Outcome, Packet, World};

use crate::common::{evidence_key, party};
use crate::for_schemes;
use crate::harness::{
    Change, Shares, Tested, by_number, number_of, refresh_with, reshare_with, start_refresh, start_reshare,
};

const PARTIES: [u32; 4] = [1, 2, 3, 4];
/// At 1, 2 and 3 the weights of parties 1 and 2 are 3 and -3: what both add to their shares is not in the key.
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

/// Shares of another polynomial with the same key.
fn colluders_with_shares_that_make_up_for_each_other_are_named<S: Tested>() {
    let old = S::keys(&PARTIES, 3, 23);
    let started = PARTIES.map(|me| (Some(party(me)), start_refresh::<S>(me, share_of::<S>(&old, me), 1)));
    let outcomes = World::new(1, Faults::default(), started).run();
    convicted("refresh", &outcomes, &[AbortCause::WrongProof]);
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
        let tamper = |packet: Packet| {
            let mut forged = Forged::open(&packet.bytes).unwrap();
            if forged.round == 3 && number_of(packet.from) < 3 && packet.to == Some(party(4)) {
                let (dealt, one) =
                    (S::Curve::decode_scalar(&forged.body[..32]).unwrap(), S::Curve::scalar(1));
                let change = if packet.from == party(1) { S::Curve::add } else { S::Curve::sub };
                forged.body[..32].copy_from_slice(&S::Curve::encode_scalar(&change(&dealt, &one)));
            }
            vec![Packet { bytes: forged.encode(&evidence_key(packet.from)), ..packet }]
        };
        Faults { tamper: Some(Box::new(tamper)), ..Faults::default() }
    };
    let refreshed = by_number(refresh_with::<S>(&old, 1, faults()));
    let reshared = by_number(reshare_with::<S>(&old, &CHANGE, 2, faults()));
    let reshared = reshared.into_iter().map(|(me, end)| (me, end.share.unwrap())).collect();
    for shares in [refreshed, reshared] {
        // In which all prove that their shares are those of the public data, and nobody fails to.
        by_number(refresh_with::<S>(&shares, 3, Faults::default()));
    }
}

for_schemes!(Bls as bls, Ed25519 as ed25519, Bip340 as bip340, Ecdsa as ecdsa: [
    colluders_with_shares_that_make_up_for_each_other_are_named,
    colluders_whose_dealt_shares_make_up_for_each_other_change_nothing,
]);
