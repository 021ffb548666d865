//! Refresh and reshare of BLS keys: the public key stays, shares change, and bad requests are refused.

use engine::session::Session;
use engine::{SessionSettings, SetupError};
use primitives::bls12_381::{G1, HashedMessage, UncheckedG2, verify};
use protocols::OpenShareError;
use protocols::bls::{KeyPublic, KeyShare, POSSESSION_DOMAIN, Refresh, Reshared, SIGNATURE_DOMAIN};
use sim::Faults;

use crate::common::{evidence_key, party, rng, settings, start_sign, threshold};
use crate::dealing::harness::{
    Bls, Change, Shares, Tested, by_number, data_key, refresh_settings, refresh_with, reshare_with, set,
    start_reshare,
};

fn verifies(public: &KeyPublic, message: &[u8], domain: &[u8], signature: &[u8; 96]) -> bool {
    let key = G1::from_compressed(&public.public_key).unwrap();
    let signature = UncheckedG2::from_compressed(signature).unwrap().check().unwrap();
    verify(&key, &HashedMessage::new(message, domain), &signature)
}

/// A quorum with shares of any epoch signs; none if the sessions do not fit each other or the result is no signature.
fn sign(shares: &Shares<Bls>, quorum: &[u32]) -> Option<[u8; 96]> {
    let started: Vec<_> = quorum
        .iter()
        .map(|number| {
            let share = Bls::reopen(&shares[number]);
            let public = share.public();
            let t = u32::try_from(public.threshold.get()).unwrap();
            let mut settings = settings(Some(party(*number)), quorum, t, 5, b"message");
            settings.epoch = public.epoch;
            let input = protocols::bls::SignInput::Party(Box::new(share));
            let started = Session::<protocols::bls::Signing>::start(settings, None, input, &mut rng(2));
            (Some(party(*number)), started.unwrap())
        })
        .collect();
    let outcomes = sim::World::new(1, Faults::default(), started).run();
    let done: Option<Vec<_>> =
        outcomes.values().map(|outcome| Some(outcome.done.as_ref()?.signature)).collect();
    done.map(|all| all[0])
}

fn reshare(shares: &Shares<Bls>, change: &Change<'_>) -> Shares<Bls> {
    let reshared = by_number(reshare_with::<Bls>(shares, change, 9, Faults::default()));
    let public = reshared.values().next().unwrap().public.clone();
    let mut new = Shares::<Bls>::new();
    for (number, Reshared { public: seen, share }) in reshared {
        assert_eq!(seen, public);
        assert_eq!(share.is_some(), change.receivers.contains(&number));
        new.extend(share.map(|share| (number, share)));
    }
    new
}

/// Key and proof of possession stay byte for byte; every verification share is another one; every quorum signs.
fn the_same_key(old: &KeyPublic, new: &Shares<Bls>, quorums: &[&[u32]]) {
    for share in new.values() {
        let public = share.public();
        assert_eq!(public.public_key, old.public_key);
        assert_eq!(public.proof_of_possession, old.proof_of_possession);
        assert_eq!(public.epoch, old.epoch + 1);
        assert!(verifies(public, &public.public_key, POSSESSION_DOMAIN, &public.proof_of_possession));
        assert!(public.verification_shares.iter().all(|share| !old.verification_shares.contains(share)));
    }
    for quorum in quorums {
        let signature = sign(new, quorum).unwrap();
        assert!(verifies(old, b"message", SIGNATURE_DOMAIN, &signature), "{quorum:?}");
    }
}

/// To deal, a party looks whether its share is the one whose point the public data have. To sign it need not: others
/// refuse what a wrong share makes.
#[test]
fn a_share_that_is_not_that_of_the_public_data_deals_nothing() {
    let shares = Bls::keys(&[1, 2, 3], 2, 4);
    let open = |share: &KeyShare| {
        let blob = share.seal(&data_key(), &mut rng(1)).unwrap();
        let signs = KeyShare::unseal(&data_key(), &blob, &share.label()).is_ok();
        (signs, KeyShare::unseal_to_deal(&data_key(), &blob, &share.label()).err())
    };
    assert_eq!(open(&shares[&1]), (true, None));
    assert_eq!(open(&Bls::reopen(&shares[&1]).shifted()), (true, Some(OpenShareError::Invalid)));
}

#[test]
fn refreshed_shares_sign_for_the_same_key_at_every_size() {
    for (t, n) in [(2, 2), (2, 3), (3, 3), (3, 5), (5, 5), (4, 7), (7, 10), (11, 20)] {
        let parties: Vec<u32> = (1..=n).collect();
        let old = Bls::keys(&parties, t, u64::from(t) << 8 | u64::from(n));
        let new = by_number(refresh_with::<Bls>(&old, 1, Faults::default()));
        let (first, last) = (&parties[..t as usize], &parties[(n - t) as usize..]);
        the_same_key(old[&1].public(), &new, &[first, last]);
        assert_eq!(new[&1].public().threshold, threshold(t));
    }
}

/// The shares of before, who deals and receives, and quorums of the receivers that sign.
type Case<'a> = (&'a Shares<Bls>, Change<'a>, &'a [&'a [u32]]);

#[test]
fn the_key_stays_and_the_parties_change() {
    let of_one = Bls::keys(&[1, 2], 1, 1);
    let of_three = Bls::keys(&[1, 2, 3], 2, 1);
    let of_five = Bls::keys(&[1, 3, 4, 7, 9], 3, 2);
    let cases: [Case<'_>; 6] = [
        // Party 2 lost its share and gets one from the others.
        (
            &of_three,
            Change { dealers: &[1, 3], receivers: &[1, 2, 3], t: 2 },
            &[&[1, 2], &[2, 3], &[1, 2, 3]],
        ),
        // One leaves, one joins.
        (&of_three, Change { dealers: &[1, 2, 3], receivers: &[1, 2, 8], t: 2 }, &[&[1, 8], &[2, 8]]),
        (
            &of_three,
            Change { dealers: &[1, 2], receivers: &[2, 3, 4, 5, 6], t: 3 },
            &[&[2, 4, 6], &[3, 4, 5, 6]],
        ),
        // Nobody in common.
        (&of_five, Change { dealers: &[1, 4, 7, 9], receivers: &[20, 300], t: 2 }, &[&[20, 300]]),
        (&of_five, Change { dealers: &[3, 4, 9], receivers: &[1, 3, 4, 7, 9], t: 5 }, &[&[1, 3, 4, 7, 9]]),
        // A key that each party held whole becomes a shared one.
        (&of_one, Change { dealers: &[2], receivers: &[2, 5], t: 2 }, &[&[2, 5]]),
    ];
    for (old, change, quorums) in cases {
        let before = old.values().next().unwrap().public();
        let new = reshare(old, &change);
        the_same_key(before, &new, quorums);
        let after = new.values().next().unwrap().public();
        assert_eq!((after.threshold, after.parties()), (threshold(change.t), set(change.receivers)));
        // Again, from the new shares.
        let all: Vec<u32> = new.keys().copied().collect();
        let again = reshare(&new, &Change { dealers: &all, receivers: &all, t: change.t });
        the_same_key(after, &again, &[quorums[0]]);
    }
}

#[test]
fn shares_of_two_epochs_do_not_sign_together() {
    let mut old = Bls::keys(&[1, 2, 3], 2, 3);
    let mut new = by_number(refresh_with::<Bls>(&old, 1, Faults::default()));
    assert!(sign(&new, &[1, 2]).is_some());
    new.insert(2, old.remove(&2).unwrap());
    assert!(sign(&new, &[1, 2]).is_none());
    // Nor when one of them lies about its epoch, which only its own messages would show: the combination is no
    // signature.
    assert!(start_sign(&old[&1], &[1, 3], 1, b"message").is_ok());
}

#[test]
fn what_cannot_be_is_refused() {
    let shares = Bls::keys(&[1, 2, 3], 2, 5);
    let public = shares[&1].public();
    let start = |change: &dyn Fn(&mut SessionSettings)| {
        let mut settings = refresh_settings::<Bls>(Some(1), public, 1);
        change(&mut settings);
        let own = Bls::reopen(&shares[&1]);
        Session::<Refresh>::start(settings, Some(evidence_key(party(1))), own, &mut rng(1)).err()
    };
    assert_eq!(start(&|_| ()), None);
    assert_eq!(start(&|s| s.epoch += 1), Some(SetupError::EpochRange));
    assert_eq!(start(&|s| s.threshold = threshold(3)), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.key_id.push('x')), Some(SetupError::ShareMismatch));
    assert_eq!(start(&|s| s.payload[40] ^= 1), Some(SetupError::PayloadInvalid));
    assert_eq!(start(&|s| s.payload.clear()), Some(SetupError::PayloadInvalid));

    let whole = Bls::keys(&[1, 2], 1, 5).remove(&1).unwrap();
    let settings = refresh_settings::<Bls>(Some(1), whole.public(), 1);
    let refused = Session::<Refresh>::start(settings, Some(evidence_key(party(1))), whole, &mut rng(1)).err();
    assert_eq!(refused, Some(SetupError::ThresholdRange));

    let own = || Some(Bls::reopen(&shares[&1]));
    let reshare = |share, change: Change<'_>| start_reshare::<Bls>(1, share, public, &change, 1).err();
    assert_eq!(reshare(own(), Change { dealers: &[1, 2], receivers: &[2, 3], t: 2 }), None);
    let few = Change { dealers: &[1], receivers: &[2, 3], t: 2 };
    assert_eq!(reshare(own(), few), Some(SetupError::RolesInvalid));
    let stranger = Change { dealers: &[1, 4], receivers: &[2, 3], t: 2 };
    assert_eq!(reshare(own(), stranger), Some(SetupError::SigningSetNotOfKey));
    let alone = Change { dealers: &[1, 2], receivers: &[2, 3], t: 1 };
    assert_eq!(reshare(own(), alone), Some(SetupError::ThresholdRange));
    let raised = Change { dealers: &[1, 2], receivers: &[2, 3], t: 3 };
    assert_eq!(reshare(own(), raised), Some(SetupError::ThresholdRange));
    let missing = Change { dealers: &[1, 2], receivers: &[2, 3], t: 2 };
    assert_eq!(reshare(None, missing), Some(SetupError::ShareMissing));
    let unwanted = Change { dealers: &[2, 3], receivers: &[1, 3], t: 2 };
    assert_eq!(reshare(own(), unwanted), Some(SetupError::InputUnexpected));
}
