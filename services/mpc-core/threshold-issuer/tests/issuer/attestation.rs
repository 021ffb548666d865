//! Verifiers take a group for one of several issuers if all of these have signed it.

use std::sync::{Arc, OnceLock};

use engine::{EvidencePublicKey, PartyId, SIGNATURE_BYTES, Threshold};
use group_signatures::{GroupError, GroupPublic, OpenerError};
use protocols::dealing::Public;
use threshold_issuer::key::forge::{deal, shifted};
use threshold_issuer::{AttestationError, AttestedGroup, Issuers, NamedIssuers};

use crate::installation::{Installation, evidence_key, party, published, rng};

type Signatures = Vec<(PartyId, [u8; SIGNATURE_BYTES])>;

fn threshold(number: u32) -> Threshold {
    Threshold::new(number).unwrap()
}

fn identities(numbers: &[u32]) -> Vec<(PartyId, EvidencePublicKey)> {
    numbers.iter().map(|number| (party(*number), evidence_key(party(*number)).public())).collect()
}

fn configured(installation: &str, takes: u32, numbers: &[u32]) -> NamedIssuers {
    NamedIssuers::new(installation, threshold(takes), &identities(numbers)).unwrap()
}

/// The configuration of all parties.
fn named() -> NamedIssuers {
    configured("acme", 2, &[11, 12, 13])
}

/// The signatures of all issuers of an installation, under a configuration.
fn signed(installation: &Installation, named: &NamedIssuers) -> Signatures {
    let sign = |share: &threshold_issuer::IssuerShare| {
        let me = share.party();
        (me, share.attest(&installation.group, named, &evidence_key(me)).unwrap())
    };
    installation.shares.iter().map(sign).collect()
}

fn signatures() -> Signatures {
    static SIGNATURES: OnceLock<Signatures> = OnceLock::new();
    SIGNATURES.get_or_init(|| signed(Installation::usual(), &named())).clone()
}

/// The refusal of a verifier with this configuration.
fn refused(named: &NamedIssuers, signatures: &Signatures) -> Option<AttestationError> {
    let Installation { group, issuers, .. } = Installation::usual();
    AttestedGroup::new(Arc::clone(group), Arc::clone(issuers), named, signatures).err()
}

#[test]
fn a_group_that_all_issuers_have_signed_is_taken() {
    let Installation { group, issuers, custody, .. } = Installation::usual();
    let attested =
        AttestedGroup::new(Arc::clone(group), Arc::clone(issuers), &named(), &signatures()).unwrap();
    let bytes = attested.encode();
    let read = AttestedGroup::decode(&bytes, &custody.openers, &named()).unwrap();
    assert_eq!(read.group().digest(), group.digest());
    assert!(read.issuers() == issuers);
    assert_eq!(read.encode(), bytes);
    // In any order.
    let mut reversed = signatures();
    reversed.reverse();
    assert_eq!(refused(&named(), &reversed), None);
}

/// One signature that is missing, altered, another issuer's, twice there, or of somebody who is no issuer.
#[test]
fn every_issuers_own_signature_is_needed() {
    for (place, number) in [11, 12, 13].into_iter().enumerate() {
        let culprit = Some(AttestationError::NotAttested(party(number)));
        let mut missing = signatures();
        missing.remove(place);
        assert_eq!(refused(&named(), &missing), culprit);
        for byte in [0, 31, 32, 63] {
            let mut altered = signatures();
            altered[place].1[byte] ^= 1;
            assert_eq!(refused(&named(), &altered), culprit, "byte {byte}");
        }
        let mut others = signatures();
        others[place].1 = others[(place + 1) % 3].1;
        assert_eq!(refused(&named(), &others), culprit);
        let mut twice = signatures();
        twice.push(twice[place]);
        assert_eq!(refused(&named(), &twice), Some(AttestationError::Members));
    }
    let mut stranger = signatures();
    stranger.push((party(14), stranger[0].1));
    assert_eq!(refused(&named(), &stranger), Some(AttestationError::Members));
    assert_eq!(refused(&named(), &Vec::new()), Some(AttestationError::NotAttested(party(11))));
}

/// Signatures mean nothing in another installation, for other issuers or keys of theirs, or another threshold.
#[test]
fn signatures_are_for_one_configuration() {
    let first = Some(AttestationError::NotAttested(party(11)));
    assert_eq!(refused(&configured("other", 2, &[11, 12, 13]), &signatures()), first);
    let threshold_of_all = configured("acme", 3, &[11, 12, 13]);
    assert_eq!(refused(&threshold_of_all, &signatures()), Some(AttestationError::WrongThreshold));
    for numbers in [[11, 12, 14].as_slice(), &[11, 12], &[11, 12, 13, 14]] {
        let others = configured("acme", 2, numbers);
        assert_eq!(refused(&others, &signatures()), Some(AttestationError::Members));
    }
    // Issuer 13 has another key now: the statement names all keys, so no signature of it is one of the new one.
    let mut renewed = identities(&[11, 12, 13]);
    renewed[2].1 = evidence_key(party(99)).public();
    let renewed = NamedIssuers::new("acme", threshold(2), &renewed).unwrap();
    assert_eq!(refused(&renewed, &signatures()), first);
}

/// Somebody who has what the openers have signed publishes the same group and epoch with a key of its own, and shares
/// it with itself in the issuers' names.
#[test]
fn a_group_with_the_key_of_one_hand_is_no_group_of_the_issuers() {
    let Installation { issuers, custody, .. } = Installation::usual();
    let opener = custody.attested("approvers", 1).unwrap();
    let parties = [11, 12, 13].map(party);
    let (shares, key) = deal(&opener, threshold(2), &parties, &mut rng(500));
    let group = Arc::new(published(opener, &key));
    assert!(GroupPublic::decode(&group.encode(), &custody.openers).is_ok());
    let invented = Arc::new(shares[0].issuers().clone());
    let take = |issuers: &Arc<Issuers>, signatures: &Signatures| {
        AttestedGroup::new(Arc::clone(&group), Arc::clone(issuers), &named(), signatures).err()
    };
    // With the signatures of the real group; with the real issuers' points; with t - 1 corrupt issuers.
    assert_eq!(take(&invented, &signatures()), Some(AttestationError::NotAttested(party(11))));
    assert_eq!(take(issuers, &signatures()), Some(AttestationError::OtherKey));
    let mut corrupt = signatures();
    corrupt[0].1 = shares[0].attest(&group, &named(), &evidence_key(party(11))).unwrap();
    assert_eq!(take(&invented, &corrupt), Some(AttestationError::NotAttested(party(12))));
    // An honest issuer does not sign it with its share of the real key.
    let own = Installation::usual().share(party(12));
    let signed = own.attest(&group, &named(), &evidence_key(party(12)));
    assert_eq!(signed.err(), Some(AttestationError::OtherKey));
}

/// The same key under another epoch, other openers' data, or other points of the shares.
#[test]
fn signatures_are_for_one_group_and_one_sharing() {
    let installation = Installation::usual();
    let Installation { issuers, custody, key, .. } = installation;
    let own = installation.share(party(11));
    for (name, epoch) in [("approvers", 2), ("others", 1)] {
        let group = Arc::new(published(custody.attested(name, epoch).unwrap(), key));
        let signed = own.attest(&group, &named(), &evidence_key(party(11)));
        assert_eq!(signed.err(), Some(AttestationError::OtherKey), "{name} {epoch}");
        let taken = AttestedGroup::new(group, Arc::clone(issuers), &named(), &signatures());
        assert_eq!(taken.err(), Some(AttestationError::OtherKey), "{name} {epoch}");
    }
    // The epoch of the shares, as after a refresh: the same key, name, parties and points.
    let mut bytes = issuers.to_bytes();
    let epoch = 4 + Public::key_id(issuers.as_ref()).len() + 3;
    assert_eq!(bytes[epoch], 1);
    bytes[epoch] = 2;
    let refreshed = Arc::new(Issuers::from_bytes(&bytes).unwrap());
    let taken = AttestedGroup::new(Arc::clone(&installation.group), refreshed, &named(), &signatures());
    assert_eq!(taken.err(), Some(AttestationError::NotAttested(party(11))));
}

#[test]
fn an_issuer_signs_for_its_own_share_and_with_its_own_key() {
    let installation = Installation::usual();
    let own = || installation.share(party(12));
    let sign = |share: threshold_issuer::IssuerShare, named: &NamedIssuers, key: u32| {
        share.attest(&installation.group, named, &evidence_key(party(key))).err()
    };
    assert_eq!(sign(own(), &named(), 12), None);
    let culprit = Some(AttestationError::WrongShare(party(12)));
    assert_eq!(sign(own(), &named(), 13), culprit);
    assert_eq!(sign(shifted(own()), &named(), 12), culprit);
    let other = configured("acme", 3, &[11, 12, 13]);
    assert_eq!(sign(own(), &other, 12), Some(AttestationError::WrongThreshold));
    let other = configured("acme", 2, &[12, 13, 14]);
    assert_eq!(sign(own(), &other, 12), Some(AttestationError::Members));
}

#[test]
fn configurations_without_several_issuers_are_refused() {
    let made = |installation: &str, takes, named: &[(PartyId, EvidencePublicKey)]| {
        NamedIssuers::new(installation, threshold(takes), named).is_some()
    };
    let three = identities(&[11, 12, 13]);
    assert!(made("acme", 2, &three) && made("acme", 3, &three));
    assert!(!made("", 2, &three) && !made(&"a".repeat(64), 2, &three));
    assert!(!made("acme", 1, &three) && !made("acme", 4, &three));
    let (mut one_number, mut one_key) = (three.clone(), three);
    one_number[1].0 = party(11);
    one_key[1].1 = one_key[0].1.clone();
    assert!(!made("acme", 2, &one_number) && !made("acme", 2, &one_key));
    let all: Vec<u32> = (1..=21).collect();
    assert!(!made("acme", 2, &identities(&all)) && made("acme", 19, &identities(&all[..20])));
    assert!(!made("acme", 20, &identities(&all[..20])));
}

#[test]
fn encodings_that_were_altered_are_refused() {
    let Installation { group, issuers, custody, .. } = Installation::usual();
    let attested =
        AttestedGroup::new(Arc::clone(group), Arc::clone(issuers), &named(), &signatures()).unwrap();
    let bytes = attested.encode();
    let read = |bytes: &[u8]| AttestedGroup::decode(bytes, &custody.openers, &named()).err();
    assert_eq!(read(&bytes), None);
    let malformed = Some(AttestationError::Malformed);
    assert_eq!(read(&bytes[..bytes.len() - 1]), malformed);
    assert_eq!(read(&[&bytes[..], &[0]].concat()), malformed);
    let list = bytes.len() - 3 * 66;
    let changed = |place: usize, with: &[u8]| {
        let mut changed = bytes.clone();
        changed[place..place + with.len()].copy_from_slice(with);
        read(&changed)
    };
    // The number of signatures; a number twice, and not ascending; no number.
    assert_eq!(changed(list - 1, &[2]), malformed);
    assert_eq!(changed(list - 1, &[21]), malformed);
    assert_eq!(changed(list + 66, &[0, 11]), malformed);
    assert_eq!(changed(list + 66, &[0, 14]), malformed);
    assert_eq!(changed(list, &[0, 0]), malformed);
    // The issuers' points, and the group itself, whose openers have signed its name.
    let place = 4 + group.encode().len();
    assert_eq!(changed(place + 4 + issuers.to_bytes().len() - 1, &[0xff]), malformed);
    let refused = changed(4 + 4, b"b");
    let opener = OpenerError::NotAttested(party(1));
    assert_eq!(refused, Some(AttestationError::Group(GroupError::Opener(opener))));
}
