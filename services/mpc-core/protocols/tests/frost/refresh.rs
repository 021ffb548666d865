//! Refresh: new shares of the same key, old ones of no use.

use engine::forge::Forged;
use engine::session::Session;
use engine::{AbortCause, SessionSettings, SetupError};
use protocols::frost::{KeyShare, Refresh, Target};
use sim::{Faults, Packet, World};

use crate::common::{evidence_key, party, rng, settings, threshold};
use crate::frost::both_suites;
use crate::harness::{
    Tested, by_number, check, keygen, message, payload, presign, refresh_settings, refresh_with, reopen,
    sign_with, start_presigned, start_sign,
};

const PARTIES: [u32; 3] = [1, 2, 3];

fn refreshed_shares_sign_for_the_same_key<S: Tested>() {
    let old = keygen::<S>(&PARTIES, 2, 1);
    let new = by_number(refresh_with(&old, Faults::default()));
    let (before, after) = (old[&1].public(), new[&1].public());
    assert_eq!(
        (&after.public_key, after.chain_code, after.epoch),
        (&before.public_key, before.chain_code, 2)
    );
    for (share, (old, new)) in
        new.values().zip(before.verification_shares.iter().zip(&after.verification_shares))
    {
        assert_eq!(share.public(), after);
        assert_ne!(old, new);
    }
    for target in S::targets() {
        let request = payload(message(3), &target);
        check(before, &request, &by_number(sign_with(&new, &[1, 2], 5, &request, Faults::default())));
    }
    // A session of the new epoch takes neither an old share nor an old presignature, and the other way round.
    let request = payload(message(1), &Target::default());
    let start = |share: &KeyShare<S>, epoch: u32| {
        let mut settings = settings(Some(party(1)), &[1, 2], 2, 1, &request.encode());
        settings.epoch = epoch;
        let input = protocols::frost::SignInput::Party(Box::new(reopen(share)));
        Session::<protocols::frost::Signing<S>>::start(settings, None, input, &mut rng(1)).err()
    };
    assert_eq!(start(&old[&1], 2), Some(SetupError::ShareMismatch));
    assert_eq!(start(&new[&1], 1), Some(SetupError::ShareMismatch));
    let mut presignatures = presign(&old, &[1, 2], 9, &Target::default());
    let mut request = request;
    request.presignature = Some(*presignatures[&1].id());
    let mut settings = settings(Some(party(1)), &[1, 2], 2, 1, &request.encode());
    settings.epoch = 2;
    let input = protocols::frost::SignInput::Party(Box::new(presignatures.remove(&1).unwrap()));
    let stale = Session::<protocols::frost::PresignedSigning<S>>::start(settings, None, input, &mut rng(1));
    assert_eq!(stale.err(), Some(SetupError::ShareMismatch));
}

/// One share of each epoch: all verify together only if all are of one.
fn shares_of_two_epochs_do_not_sign_together<S: Tested>() {
    let mut old = keygen::<S>(&PARTIES, 2, 2);
    let mut mixed = by_number(refresh_with(&old, Faults::default()));
    // Party 2 keeps its old share and says it is the new one.
    let stale = old.remove(&2).unwrap();
    let request = payload(message(1), &Target::default());
    assert!(start_sign(reopen(&mixed[&1]), &[1, 2], 1, &request).is_ok());
    mixed.insert(2, stale);
    let sessions: Vec<_> = [1, 2]
        .map(|number| {
            let started = start_sign(reopen(&mixed[&number]), &[1, 2], 1, &request);
            (Some(party(number)), started.unwrap())
        })
        .into();
    let outcomes = World::new(1, Faults::default(), sessions).run();
    // The sessions are of different epochs, so that neither hears the other.
    assert!(outcomes.values().all(|outcome| outcome.done.is_none() && outcome.aborts.is_empty()));
    assert!(outcomes.values().all(|outcome| !outcome.rejects.is_empty()));
}

fn refresh_refuses_other_keys_parties_epochs<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 2);
    let start = |change: &dyn Fn(&mut SessionSettings)| {
        let mut settings = refresh_settings(1, shares[&1].public());
        change(&mut settings);
        Session::<Refresh<S>>::start(settings, Some(evidence_key(party(1))), reopen(&shares[&1]), &mut rng(1))
            .err()
    };
    assert_eq!(start(&|_| ()), None);
    assert_eq!(start(&|s| s.epoch = 1), Some(SetupError::EpochRange));
    assert_eq!(start(&|s| s.epoch = 3), Some(SetupError::EpochRange));
    assert_eq!(start(&|s| s.roster.truncate(2)), Some(SetupError::SigningSetNotOfKey));
    assert_eq!(start(&|s| s.threshold = threshold(3)), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.payload[40] ^= 1), Some(SetupError::PayloadInvalid));
    assert_eq!(start(&|s| s.payload.clear()), Some(SetupError::PayloadInvalid));
}

/// A party that would shift the key, deal a wrong share, or confirm what it does not know.
fn deviations_in_refresh_name_the_party<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 3);
    type Change = fn(&mut Vec<u8>, usize);
    let cases: [(u8, Change, AbortCause); 8] = [
        // It has signed the commitment that fits, too: its echo digests say so.
        (1, |body, _| body[0] ^= 1, AbortCause::Equivocation),
        (2, |body, _| *body.last_mut().unwrap() ^= 1, AbortCause::WrongOpening),
        (2, |body, _| body[1..=S::POINT_BYTES].fill(0xff), AbortCause::InvalidPoint),
        (2, |body, _| body.truncate(40), AbortCause::MalformedBody),
        (3, |body, _| body.clear(), AbortCause::MalformedBody),
        // One point more, as if the polynomial had a constant term.
        (2, |body, _| body[0] += 1, AbortCause::WrongDegree),
        (3, |body, low| body[low] ^= 1, AbortCause::WrongShare),
        (4, |body, low| *body.iter_mut().rev().nth(31 - low).unwrap() ^= 1, AbortCause::WrongProof),
    ];
    for (round, change, cause) in cases {
        let tamper = move |packet: Packet| {
            let mut forged = Forged::open(&packet.bytes).unwrap();
            if packet.from != party(2) || forged.round != round {
                return vec![packet];
            }
            change(&mut forged.body, S::LOW_BYTE);
            vec![Packet { bytes: forged.encode(&evidence_key(packet.from)), ..packet }]
        };
        let outcomes = refresh_with(&shares, Faults { tamper: Some(Box::new(tamper)), ..Faults::default() });
        for honest in [1, 3] {
            let abort = outcomes[&Some(party(honest))].abort().unwrap();
            assert_eq!((abort.cause, abort.culprits.as_slice()), (cause, [party(2)].as_slice()));
        }
    }
}

/// The values that a presignature is bound to.
fn presignatures_fit_their_own_session_only<S: Tested>() {
    let shares = keygen::<S>(&PARTIES, 2, 4);
    let public = shares[&1].public();
    let targets = S::targets();
    let start = |change: &dyn Fn(&mut protocols::frost::SignPayload), signers: &[u32], me: u32| {
        let mut made = presign(&shares, &[1, 2], 9, &targets[0]);
        let mut request = payload(message(1), &targets[0]);
        request.presignature = Some(*made[&1].id());
        change(&mut request);
        start_presigned(made.remove(&1).unwrap(), public, (me, signers), 3, &request).err()
    };
    let mismatch = Some(SetupError::ShareMismatch);
    assert_eq!(start(&|_| (), &[1, 2], 1), None);
    assert_eq!(start(&|r| r.message.push(0), &[1, 2], 1).is_none(), !S::DERIVES);
    assert_eq!(start(&|r| r.presignature = Some([1; 32]), &[1, 2], 1), mismatch);
    assert_eq!(start(&|r| r.presignature = None, &[1, 2], 1), Some(SetupError::PayloadInvalid));
    assert_eq!(start(&|_| (), &[1, 3], 1), mismatch);
    assert_eq!(start(&|_| (), &[1, 2, 3], 1), mismatch);
    assert_eq!(start(&|_| (), &[1, 2], 2), mismatch);
    for other in &targets[1..] {
        assert_eq!(start(&|r| r.target = other.clone(), &[1, 2], 1), mismatch);
    }
}

both_suites!(
    refreshed_shares_sign_for_the_same_key,
    shares_of_two_epochs_do_not_sign_together,
    refresh_refuses_other_keys_parties_epochs,
    deviations_in_refresh_name_the_party,
    presignatures_fit_their_own_session_only,
);
