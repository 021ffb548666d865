//! The openers' key: made by the openers alone, signed for one group, and used for openings only.

use engine::seal::DataKey;
use engine::session::Session;
use engine::{PartyId, Secret, Threshold};
use group_signatures::{GroupId, OpenerError, Openers};
use protocols::OpenShareError;
use sim::{Faults, World};
use threshold_issuer::{IssuerShare, OpenerShare, OpeningKeygen};

use crate::installation::{evidence_key, party, rng, settings};

const KEY: &str = "approvers/openers";

fn parties(numbers: &[u32]) -> Vec<PartyId> {
    numbers.iter().map(|number| party(*number)).collect()
}

fn generate(threshold: u32, openers: &[u32], session: u64) -> Vec<OpenerShare> {
    let parties = parties(openers);
    let started = parties.iter().map(|me| {
        let threshold = Threshold::new(threshold).unwrap();
        let settings = settings(*me, &parties, threshold, (KEY, 1), (session, &[]));
        let mut rng = rng(session << 16 | u64::from(me.get()));
        let started = Session::<OpeningKeygen>::start(settings, Some(evidence_key(*me)), (), &mut rng);
        (Some(*me), started.unwrap())
    });
    let mut outcomes = World::<OpeningKeygen>::new(session, Faults::default(), started).run();
    outcomes.values_mut().map(|outcome| outcome.done.take().unwrap()).collect()
}

fn configured(threshold: usize, numbers: &[u32]) -> Openers {
    let keys: Vec<_> = parties(numbers).into_iter().map(|me| (me, evidence_key(me).public())).collect();
    Openers::new(threshold, &keys).unwrap()
}

#[test]
fn openers_make_and_sign_a_key() {
    for (threshold, numbers) in [(2, [1, 2, 3].as_slice()), (3, &[2, 5, 9, 20])] {
        let shares = generate(threshold, numbers, u64::from(threshold));
        let openers = configured(usize::try_from(threshold).unwrap(), numbers);
        let group = GroupId::new("approvers", 1).unwrap();
        let signed: Vec<_> = shares
            .iter()
            .map(|share| {
                let me = share.party();
                (me, share.attest(&openers, &group, &evidence_key(me)).unwrap())
            })
            .collect();
        let key = shares[0].holders().of(&openers).unwrap();
        assert!(key.key() == shares[1].holders().public_key());
        assert!(key.attested(group, &signed).is_ok());
    }
}

/// An auditor is party 1 of 1.
#[test]
fn one_auditor_has_a_key_of_its_own() {
    let auditor = OpenerShare::alone(KEY, party(4), &mut rng(1)).unwrap();
    let openers = configured(1, &[4]);
    let group = GroupId::new("approvers", 1).unwrap();
    let signature = auditor.attest(&openers, &group, &evidence_key(party(4))).unwrap();
    let key = auditor.holders().of(&openers).unwrap();
    assert!(key.attested(group, &[(party(4), signature)]).is_ok());
    assert!(OpenerShare::alone("", party(4), &mut rng(1)).is_none());
}

#[test]
fn openers_sign_their_own_key_with_their_own_identity() {
    let shares = generate(2, &[1, 2, 3], 7);
    let group = GroupId::new("approvers", 1).unwrap();
    let sign =
        |openers: &Openers, key: u32| shares[1].attest(openers, &group, &evidence_key(party(key))).err();
    assert_eq!(sign(&configured(2, &[1, 2, 3]), 2), None);
    assert_eq!(sign(&configured(2, &[1, 2, 3]), 3), Some(OpenerError::WrongShare(party(2))));
    // Another threshold, of which the points would be shares as well, and other openers.
    assert_eq!(sign(&configured(3, &[1, 2, 3]), 2), Some(OpenerError::Sharing));
    assert_eq!(sign(&configured(2, &[1, 2, 4]), 2), Some(OpenerError::Members));
    assert_eq!(sign(&configured(2, &[1, 2]), 2), Some(OpenerError::Members));
}

/// A share of one key is no share of the other, under any label.
#[test]
fn an_openers_share_issues_nothing() {
    let key = DataKey::new(Secret::new([1; 32]));
    let auditor = OpenerShare::alone(KEY, party(4), &mut rng(1)).unwrap();
    let sealed = auditor.seal(&key, &mut rng(2)).unwrap();
    assert!(OpenerShare::unseal(&key, &sealed, &auditor.label()).is_ok());
    let mut label = auditor.label();
    for family in ["wbb-opening", "wbb-issuing"] {
        label.family = family.to_owned();
        let opened = IssuerShare::unseal(&key, &sealed, &label).err();
        assert_eq!(opened, Some(OpenShareError::Mismatch));
    }
}
