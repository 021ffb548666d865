//! Refresh: new shares of the same key, old ones of no use; and signing over a network that fails.

use crate::common;
use crate::common::{evidence_key, party, rng, settings};
use crate::ecdsa_common::{
    by_number, keygen, payload, refresh_settings, refresh_with, reopen, sign_with, verify_outside,
};
use engine::forge::Forged;
use engine::session::Session;
use engine::{AbortCause, SessionSettings, SetupError};
use protocols::ecdsa::{KeyPublic, KeyShare, Refresh};
use sim::{Faults, Packet, World};

const PARTIES: [u32; 3] = [1, 2, 3];
const DIGEST: [u8; 32] = [0x5a; 32];

#[test]
fn refreshed_shares_sign_for_the_same_key() {
    let old = keygen(&PARTIES, 2, 1);
    let new = by_number(refresh_with(&old, Faults::default()));
    let (before, after) = (old[&1].public(), new[&1].public());
    assert_eq!((after.public_key, after.chain_code, after.epoch), (before.public_key, before.chain_code, 2));
    for (share, (old, new)) in
        new.values().zip(before.verification_shares.iter().zip(&after.verification_shares))
    {
        assert_eq!(share.public(), after);
        assert_ne!(old, new);
    }
    // The shares interpolate to the key; one of each epoch do not.
    let at_zero = |first: &KeyPublic, second: &KeyPublic| {
        let (one, two) = (first.verification_shares[0].1, second.verification_shares[1].1);
        one + one - two
    };
    assert_eq!(at_zero(after, after), before.public_key);
    assert_ne!(at_zero(before, after), before.public_key);
    // A session of the new epoch takes no old share, and the other way round.
    let request = payload(DIGEST, &[1, 2]);
    let start = |share: &KeyShare, epoch: u32| {
        let mut settings = settings(Some(party(1)), &[1, 2], 2, 1, &request.encode());
        settings.epoch = epoch;
        let input = protocols::ecdsa::SignInput::Party(Box::new(reopen(share)));
        Session::<protocols::ecdsa::Signing>::start(settings, None, input, &mut rng(1))
    };
    assert_eq!(start(&old[&1], 2).err(), Some(SetupError::ShareMismatch));
    assert_eq!(start(&new[&1], 1).err(), Some(SetupError::ShareMismatch));
    let started = [1u32, 2].map(|number| {
        let mut settings = settings(Some(party(number)), &[1, 2], 2, 1, &request.encode());
        settings.epoch = 2;
        let input = protocols::ecdsa::SignInput::Party(Box::new(reopen(&new[&number])));
        let session =
            Session::<protocols::ecdsa::Signing>::start(settings, None, input, &mut rng(u64::from(number)));
        (Some(party(number)), session.unwrap())
    });
    let signatures = by_number(World::new(3, Faults::default(), started).run());
    let child = before.derive(&request.path).unwrap().public_key;
    verify_outside(&child, DIGEST, &signatures[&1]);
}

#[test]
fn refresh_refuses_other_keys_parties_epochs() {
    let shares = keygen(&PARTIES, 2, 2);
    let start = |change: &dyn Fn(&mut SessionSettings)| {
        let mut settings = refresh_settings(1, shares[&1].public());
        change(&mut settings);
        Session::<Refresh>::start(settings, Some(evidence_key(party(1))), reopen(&shares[&1]), &mut rng(1))
            .err()
    };
    assert_eq!(start(&|_| ()), None);
    assert_eq!(start(&|s| s.epoch = 1), Some(SetupError::EpochRange));
    assert_eq!(start(&|s| s.epoch = 3), Some(SetupError::EpochRange));
    assert_eq!(start(&|s| s.roster.truncate(2)), Some(SetupError::SigningSetNotOfKey));
    assert_eq!(start(&|s| s.threshold = common::threshold(3)), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.payload[40] ^= 1), Some(SetupError::PayloadInvalid));
    assert_eq!(start(&|s| s.payload.clear()), Some(SetupError::PayloadInvalid));
}

/// A party that would shift the key, deal a wrong share, or confirm what it does not know.
#[test]
fn deviations_in_refresh_name_the_party() {
    let shares = keygen(&PARTIES, 2, 3);
    type Change = fn(&mut Vec<u8>);
    let cases: [(u8, Change, AbortCause); 3] = [
        // One point more, as if the polynomial had a constant term.
        (2, |body| body[0] += 1, AbortCause::WrongDegree),
        (3, |body| body[31] ^= 1, AbortCause::WrongShare),
        (6, |body| body[64] ^= 1, AbortCause::WrongProof),
    ];
    for (round, change, cause) in cases {
        let tamper = move |packet: Packet| {
            let mut forged = Forged::open(&packet.bytes).unwrap();
            if packet.from != party(2) || forged.round != round {
                return vec![packet];
            }
            change(&mut forged.body);
            vec![Packet { bytes: forged.encode(&evidence_key(packet.from)), ..packet }]
        };
        let outcomes = refresh_with(&shares, Faults { tamper: Some(Box::new(tamper)), ..Faults::default() });
        for honest in [1, 3] {
            let abort = outcomes[&Some(party(honest))].abort().unwrap();
            assert_eq!((abort.cause, abort.culprits.as_slice()), (cause, [party(2)].as_slice()));
        }
    }
}

/// Messages late, twice, lost, and parties that stop: a signature or none, never two, never a wrong one, nobody blamed.
#[test]
fn signing_over_a_network_that_fails() {
    let shares = keygen(&PARTIES, 2, 4);
    let public = shares[&1].public().clone();
    let (mut signed, mut stuck) = (0, 0);
    for session in 0..150u8 {
        let request = payload([session; 32], &[]);
        let faults = Faults {
            duplicated_percent: 30,
            dropped_percent: u32::from(session % 3) * 4,
            crash: (session % 5 == 4).then(|| (party(2), usize::from(session % 4))),
            ..Faults::default()
        };
        let outcomes = sign_with(&shares, &[1, 2], session, &request, faults);
        assert!(outcomes.values().all(|outcome| outcome.aborts.is_empty()));
        let mut signatures = outcomes.values().filter_map(|outcome| outcome.done.as_ref());
        match signatures.next() {
            Some(signature) => {
                assert!(signatures.all(|other| other == signature));
                verify_outside(&public.public_key, request.digest, signature);
                signed += 1;
            }
            None => stuck += 1,
        }
    }
    assert!(signed > 70 && stuck > 5, "{signed} signed, {stuck} stuck");
}
