//! The issuing key: made by the issuers alone, published with a proof, renewed, and kept sealed.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::forge::Forged;
use engine::seal::DataKey;
use engine::session::{Protocol, Session};
use engine::{AbortCause, PartyId, Secret, SetupError, Threshold};
use group_signatures::forge::{attempt, ordered};
use group_signatures::{AttestedKey, GroupError, GroupPublic};
use primitives::bls12_381::{G1, G2, Scalar, UncheckedG2, pairings_are_equal};
use protocols::OpenShareError;
use protocols::dealing::{Public, Reshare, ReshareTerms};
use rand_core::Rng;
use sim::{Address, Faults, Outcome, Packet, World};
use threshold_issuer::key::Issuing;
use threshold_issuer::key::forge::{copy, deal, secret, shifted};
use threshold_issuer::{
    IssuerShare, Issuers, JoinInput, JoinTerms, Keygen, Publish, PublishInput, Refresh, key_id,
};

use crate::installation::{
    ABOVE, Installation, attest, duplicate, evidence_key, identity, key_of, party, rng, session_id, settings,
};
use crate::malicious::small_order;

fn parties(numbers: &[u32]) -> Vec<PartyId> {
    numbers.iter().map(|number| party(*number)).collect()
}

/// The terms of a session, but for its parties.
struct About<'a> {
    key_id: &'a str,
    epoch: u32,
    threshold: u32,
    session: u64,
    payload: &'a [u8],
}

/// A session of any of the protocols.
fn run<P: Protocol>(
    about: &About<'_>,
    inputs: Vec<(PartyId, P::Input)>,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<P::Output>> {
    let parties: Vec<PartyId> = inputs.iter().map(|(party, _)| *party).collect();
    let started: Vec<_> = inputs
        .into_iter()
        .map(|(me, input)| {
            let threshold = Threshold::new(about.threshold).unwrap();
            let named = (about.key_id, about.epoch);
            let settings = settings(me, &parties, threshold, named, (about.session, about.payload));
            let key = P::SIGNED.then(|| evidence_key(me));
            let mut rng = rng(about.session << 16 | u64::from(me.get()));
            (Some(me), Session::<P>::start(settings, key, input, &mut rng).unwrap())
        })
        .collect();
    World::new(about.session, faults, started).run()
}

fn done<T>(mut outcomes: BTreeMap<Address, Outcome<T>>) -> Vec<T> {
    outcomes.values_mut().map(|outcome| outcome.done.take().expect("an issuer has no result")).collect()
}

fn generate(opener: &AttestedKey, threshold: u32, issuers: &[u32], session: u64) -> Vec<IssuerShare> {
    let key_id = key_id(opener);
    let about = About { key_id: &key_id, epoch: 1, threshold, session, payload: &[] };
    let inputs = parties(issuers).into_iter().map(|party| (party, ())).collect();
    done(run::<Keygen>(&about, inputs, Faults::default()))
}

fn publish(
    opener: &AttestedKey,
    shares: &[&IssuerShare],
    session: u64,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<GroupPublic>> {
    let issuers = shares[0].issuers();
    let key_id = key_id(opener);
    let threshold = u32::try_from(issuers.threshold().get()).unwrap();
    let about = About { key_id: &key_id, epoch: issuers.epoch(), threshold, session, payload: &[] };
    let input = |share: &&IssuerShare| {
        (share.party(), PublishInput { share: Arc::new(copy(share)), opener: opener.clone() })
    };
    run::<Publish>(&about, shares.iter().map(input).collect(), faults)
}

/// The whole life: key generation, publication by some and by all, a join, new shares, and a join with those.
#[test]
fn issuers_make_publish_and_renew_a_key() {
    for (threshold, numbers) in [(2, [11, 12, 13].as_slice()), (3, &[2, 5, 9, 20])] {
        let custody = &Installation::usual().custody;
        let opener = custody.attested("approvers", 7).unwrap();
        let shares = generate(&opener, threshold, numbers, 100);
        let issuers = Arc::new(shares[0].issuers().clone());
        assert!(shares.iter().all(|share| share.issuers() == issuers.as_ref()));
        assert!(Issuers::from_bytes(&issuers.to_bytes()).is_ok());

        let few: Vec<&IssuerShare> = shares.iter().take(usize::try_from(threshold).unwrap()).collect();
        let all: Vec<&IssuerShare> = shares.iter().collect();
        let mut digests = Vec::new();
        let mut groups = Vec::new();
        for (session, publishing) in [(101, &few), (102, &all)] {
            for group in done(publish(&opener, publishing, session, Faults::default())) {
                let group = GroupPublic::decode(&group.encode(), &custody.openers).unwrap();
                assert_eq!((group.name(), group.epoch()), ("approvers", 7));
                assert_eq!(group.issuer(), issuers.public_key());
                let points = ((group.issuer(), &G2::generator()), (&G1::generator(), group.issuer_in_g2()));
                assert!(pairings_are_equal(points.0, points.1));
                digests.push(*group.digest());
                groups.push(Arc::new(group));
            }
        }
        digests.dedup();
        assert_eq!(digests.len(), 1, "whoever publishes it, it is one group");

        let renewed = refresh(&shares, threshold, &opener);
        let fewer = &numbers[..usize::try_from(threshold).unwrap()];
        assert!(joins(&groups[0], &shares, fewer, 104));
        assert!(joins(&groups[0], &renewed, fewer, 105));
        assert!(renewed[0].issuers() != issuers.as_ref());
    }
}

fn refresh(shares: &[IssuerShare], threshold: u32, opener: &AttestedKey) -> Vec<IssuerShare> {
    let key_id = key_id(opener);
    let payload = shares[0].issuers().to_bytes();
    let about = About { key_id: &key_id, epoch: 2, threshold, session: 103, payload: &payload };
    let inputs = shares.iter().map(|share| (share.party(), copy(share))).collect();
    done(run::<Refresh>(&about, inputs, Faults::default()))
}

/// Whether a join among these issuers gives a credential of the group.
fn joins(group: &Arc<GroupPublic>, shares: &[IssuerShare], chosen: &[u32], session: u64) -> bool {
    let own = Secret::new(Scalar::random(&mut rng(session)));
    let attested = attest(group, shares);
    let terms = || {
        let run = attempt(group, [1; 32], 1, G1::mul_generator(&own));
        JoinTerms {
            group: Arc::clone(&attested),
            attempt: ordered(run, session_id(session), &identity(ABOVE)),
        }
    };
    let payload = terms().payload();
    let mut inputs: Vec<(PartyId, JoinInput)> = shares
        .iter()
        .filter(|share| chosen.contains(&u32::from(share.party().get())))
        .map(|share| {
            let share = Arc::new(copy(share));
            (share.party(), JoinInput::Issuer { terms: terms(), share })
        })
        .collect();
    inputs.push((party(ABOVE), JoinInput::Member { terms: terms(), secret: duplicate(&own) }));
    let threshold = u32::try_from(attested.issuers().threshold().get()).unwrap();
    let about = About { key_id: group.name(), epoch: group.epoch(), threshold, session, payload: &payload };
    let mut outcomes = run::<threshold_issuer::Join>(&about, inputs, Faults::default());
    key_of(&mut outcomes, ABOVE).is_some_and(|key| key.point() == G1::mul_generator(&own))
}

/// Other issuers, or another threshold, take no key over: they would know nothing of the tickets that are bound. The
/// same issuers with the same threshold would.
#[test]
fn a_key_does_not_move_to_other_issuers() {
    let opener = Installation::usual().custody.attested("approvers", 8).unwrap();
    let shares = generate(&opener, 2, &[11, 12, 13], 110);
    let key_id = key_id(&opener);
    let moved = |receivers: &[u32], threshold, session| {
        let terms = ReshareTerms::<Issuing> {
            dealers: parties(&[11, 13]).into_iter().collect(),
            receivers: parties(receivers).into_iter().collect(),
            base: shares[0].issuers().clone(),
        };
        let payload = terms.encode();
        let about = About { key_id: &key_id, epoch: 2, threshold, session, payload: &payload };
        let deals = |number: u32| [11, 13].contains(&number);
        let mut all: Vec<u32> = receivers.iter().copied().chain([11, 13]).collect();
        all.sort_unstable();
        all.dedup();
        let inputs = all.into_iter().map(|number| {
            let share = shares.iter().find(|share| share.party() == party(number)).filter(|_| deals(number));
            (party(number), share.map(copy))
        });
        let outcomes = run::<Reshare<Issuing>>(&about, inputs.collect(), Faults::default());
        outcomes.values().filter(|outcome| outcome.done.is_some()).count()
    };
    assert_eq!(moved(&[11, 12, 13], 2, 112), 3);
    assert_eq!(moved(&[11, 12, 13], 3, 113), 0, "another threshold");
    assert_eq!(moved(&[12, 13, 14], 2, 114), 0, "another issuer");
    assert_eq!(moved(&[11, 12, 13, 14], 2, 115), 0, "one more");
}

/// A join has t issuers and a member, so a key whose threshold is all places of a session would be used by nobody.
#[test]
fn a_threshold_that_leaves_no_place_for_a_member_is_refused() {
    let opener = Installation::usual().custody.attested("approvers", 9).unwrap();
    let key_id = key_id(&opener);
    let all: Vec<PartyId> = (1..=20).map(party).collect();
    let start = |threshold| {
        let threshold = Threshold::new(threshold).unwrap();
        let settings = settings(party(1), &all, threshold, (&key_id, 1), (120, &[]));
        Session::<Keygen>::start(settings, Some(evidence_key(party(1))), (), &mut rng(1)).err()
    };
    assert_eq!(start(19), None);
    assert_eq!(start(20), Some(SetupError::ThresholdRange));
    let shown = |threshold| {
        let (shares, _) = deal(&opener, Threshold::new(threshold).unwrap(), &all, &mut rng(1));
        Issuers::from_bytes(&shares[0].issuers().to_bytes()).is_ok()
    };
    assert!(shown(19) && !shown(20));
}

fn publishing() -> (AttestedKey, [IssuerShare; 2]) {
    let installation = Installation::usual();
    let opener = installation.custody.attested("approvers", 1).unwrap();
    (opener, [11, 12].map(|number| installation.share(party(number))))
}

/// A key is made for what openers have signed, and is not published for anything else.
#[test]
fn a_key_is_published_for_its_own_group() {
    let (_, [share, _]) = publishing();
    let installation = Installation::usual();
    let named = share.issuers().key_id().to_owned();
    let start = |opener: AttestedKey, key_id: &str, payload: &[u8]| {
        let pair = parties(&[11, 12]);
        let settings = settings(party(11), &pair, Threshold::new(2).unwrap(), (key_id, 1), (1, payload));
        let input = PublishInput { share: Arc::new(copy(&share)), opener };
        Session::<Publish>::start(settings, None, input, &mut rng(1)).err()
    };
    let opener = |name: &str, epoch| installation.custody.attested(name, epoch).unwrap();
    assert_eq!(start(opener("approvers", 1), &named, &[]), None);
    for other in [opener("approvers", 2), opener("others", 1)] {
        let name = key_id(&other);
        assert_eq!(start(other.clone(), &named, &[]), Some(SetupError::ShareMismatch));
        assert_eq!(start(other, &name, &[]), Some(SetupError::ShareMismatch));
    }
    assert_eq!(start(opener("approvers", 1), &named, &[1]), Some(SetupError::PayloadLength));
}

/// A point of the curve over Fp2, and in the subgroup by no chance.
fn outside_in_g2() -> Vec<u8> {
    let on_curve = |x: u8| {
        let mut bytes = [0u8; 96];
        (bytes[0], bytes[95]) = (0x80, x);
        UncheckedG2::from_compressed(&bytes).map(|_| bytes.to_vec())
    };
    (1..).find_map(on_curve).unwrap()
}

/// One deviation of issuer 11 in a publication, and the verdict of issuer 12.
#[test]
fn every_altered_field_of_a_publication_is_refused() {
    const CULPRIT: &[u32] = &[11];
    let (opener, [first, second]) = publishing();
    let generator = G1::generator().to_compressed();
    let generator_in_g2 = G2::generator().to_compressed();
    let rows = [
        ("commitment", 1u8, 0, vec![1; 32], AbortCause::BroadcastMismatch, [].as_slice()),
        ("commitments", 2, 0, vec![1; 32], AbortCause::BroadcastMismatch, &[]),
        ("salt", 2, 32, vec![1; 32], AbortCause::WrongOpening, CULPRIT),
        ("nonce point", 2, 64, generator.to_vec(), AbortCause::WrongOpening, CULPRIT),
        ("nonce point, no point", 2, 64, vec![0xff; 48], AbortCause::InvalidPoint, CULPRIT),
        ("nonce point, small order", 2, 64, small_order(), AbortCause::InvalidPoint, CULPRIT),
        ("part", 2, 112, generator_in_g2.to_vec(), AbortCause::WrongShare, CULPRIT),
        ("part, no point", 2, 112, vec![0xff; 96], AbortCause::InvalidPoint, CULPRIT),
        ("part, outside the subgroup", 2, 112, outside_in_g2(), AbortCause::InvalidPoint, CULPRIT),
        ("openings", 3, 0, vec![1; 32], AbortCause::BroadcastMismatch, &[]),
        ("response", 3, 32, vec![1; 32], AbortCause::WrongPartialSignature, CULPRIT),
        ("response, no scalar", 3, 32, vec![0xff; 32], AbortCause::InvalidScalar, CULPRIT),
    ];
    for (session, (name, round, start, bytes, cause, culprits)) in (200..).zip(rows) {
        let tamper = |mut packet: Packet| {
            let mut forged = Forged::open(&packet.bytes).unwrap();
            if packet.from == party(11) && forged.round == round {
                forged.body[start..start + bytes.len()].copy_from_slice(&bytes);
                packet.bytes = forged.encode(&evidence_key(party(11)));
            }
            vec![packet]
        };
        let faults = Faults { tamper: Some(Box::new(tamper)), ..Faults::default() };
        let outcomes = publish(&opener, &[&first, &second], session, faults);
        let abort = outcomes[&Some(party(12))].abort().expect(name);
        let expected: Vec<PartyId> = parties(culprits);
        assert_eq!((abort.cause, &abort.culprits), (cause, &expected), "{name}");
    }
    // An issuer whose share is not that of its point.
    let outcomes = publish(&opener, &[&shifted(first), &second], 220, Faults::default());
    let abort = outcomes[&Some(party(12))].abort().unwrap();
    assert_eq!((abort.cause, abort.culprits.clone()), (AbortCause::WrongShare, parties(CULPRIT)));
}

/// A group that one hand published for points that do not belong together, or without the key.
#[test]
fn points_without_one_logarithm_are_no_group() {
    let installation = Installation::usual();
    let opener = || installation.custody.attested("approvers", 1).unwrap();
    let draft = |issuer: G1, in_g2: G2| group_signatures::GroupDraft::new(opener(), issuer, in_g2);
    let in_g2 = G2::mul_generator(&installation.key);
    assert_eq!(draft(G1::generator(), in_g2).err(), Some(GroupError::DifferentKeys));
    assert_eq!(draft(G1::identity(), in_g2).err(), Some(GroupError::Malformed));
    let unproven = draft(*installation.group.issuer(), in_g2).unwrap();
    let refused = unproven.prove(Scalar::one(), Scalar::one());
    assert_eq!(refused.err(), Some(GroupError::Proof));
}

#[test]
fn public_data_that_do_not_fit_are_refused() {
    let installation = Installation::usual();
    let bytes = installation.issuers.to_bytes();
    let key_id = installation.issuers.key_id().len();
    let generator = G1::generator().to_compressed();
    let public_key = 4 + key_id + 4 + 2;
    let shares = public_key + 48 + 1;
    let changed = |start: usize, with: &[u8]| {
        let mut changed = bytes.clone();
        changed[start..start + with.len()].copy_from_slice(with);
        Issuers::from_bytes(&changed).is_err()
    };
    assert!(!changed(0, &[]));
    assert!(changed(public_key, &generator), "another key");
    assert!(changed(public_key, &small_order()) && changed(shares + 2, &small_order()));
    for share in 0..3 {
        assert!(changed(shares + 50 * share + 2, &generator), "share {share} of another polynomial");
    }
    assert!(changed(public_key - 2, &[0, 1]), "threshold 1");
    assert!(changed(public_key - 2, &[0, 3]), "threshold 3");
    assert!(changed(public_key - 2, &[0, 4]), "more than issuers");
    assert!(changed(shares, &[0, 12]), "one issuer twice");
    assert!(Issuers::from_bytes(&bytes[..bytes.len() - 1]).is_err());
}

#[test]
fn a_sealed_share_opens_for_its_label_only() {
    let share = Installation::usual().share(party(12));
    let mut rng = rng(130);
    let mut data_key = || {
        let mut key = Secret::new([0; 32]);
        rng.fill_bytes(key.expose_mut());
        DataKey::new(key)
    };
    let (key, other_key) = (data_key(), data_key());
    let label = share.label();
    let blob = share.seal(&key, &mut rng).unwrap();
    let opened = IssuerShare::unseal(&key, &blob, &label).unwrap();
    assert!(opened.issuers() == share.issuers() && opened.party() == party(12));
    assert_eq!(secret(&opened).expose().to_bytes(), secret(&share).expose().to_bytes());
    assert_eq!(IssuerShare::unseal(&other_key, &blob, &label).err(), Some(OpenShareError::Unseal));
    let mut altered = blob.clone();
    *altered.last_mut().unwrap() ^= 1;
    assert_eq!(IssuerShare::unseal(&key, &altered, &label).err(), Some(OpenShareError::Unseal));
    let mut other = label.clone();
    other.party = party(11);
    assert_eq!(IssuerShare::unseal(&key, &blob, &other).err(), Some(OpenShareError::Mismatch));
    let wrong = shifted(share).seal(&key, &mut rng).unwrap();
    assert_eq!(IssuerShare::unseal(&key, &wrong, &label).err(), Some(OpenShareError::Invalid));
}
