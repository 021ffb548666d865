//! A party of a join that is resumed twice from one image of its memory.

use std::collections::BTreeMap;

use engine::session::{Progress, Session};
use engine::{PartyId, Secret};
use primitives::bls12_381::{G1, Scalar};
use threshold_issuer::{Join, JoinInput};

use crate::installation::{ABOVE, Installation, duplicate, evidence_key, party, rng};

/// Round, sender, recipient, body.
type Sent = Vec<(u8, PartyId, PartyId, Vec<u8>)>;

/// A join whose party 11 is resumed from an image taken in round 4; `variant` is its generator after that.
fn run(variant: u64) -> Sent {
    let installation = Installation::usual();
    let own = Secret::new(Scalar::from_u64(99));
    let parties = [party(11), party(12), party(ABOVE)];
    let payload = installation.terms(installation.attempt((ABOVE, &own), 1)).payload();
    let mut sent: Sent = Vec::new();
    let mut queue = Vec::new();
    let mut sessions = BTreeMap::new();
    for me in parties {
        let input = if me == party(ABOVE) {
            JoinInput::Member {
                terms: installation.terms(installation.attempt((ABOVE, &own), 1)),
                secret: duplicate(&own),
            }
        } else {
            installation.issuer_input(me, installation.attempt((ABOVE, &own), 1))
        };
        let settings = installation.settings(me, &parties, 1, &payload);
        let (session, step) =
            Session::<Join>::start(settings, Some(evidence_key(me)), input, &mut rng(u64::from(me.get())))
                .unwrap();
        queue.extend(step.outgoing);
        sessions.insert(me, session);
    }
    let mut joined = false;
    while !queue.is_empty() {
        let envelope = queue.remove(0);
        let to = envelope.recipient().unwrap();
        let session = sessions.get_mut(&to).unwrap();
        let round = session.round();
        let extra = if to == party(11) && round >= 4 { variant } else { 0 };
        let mut own_rng = rng(u64::from(to.get()) << 32 | u64::from(round) << 8 | extra);
        let bytes = envelope.encode();
        sent.push((envelope.round(), envelope.sender(), to, envelope.body().to_vec()));
        let step = session.handle(envelope.sender(), &bytes, &mut own_rng);
        queue.extend(step.outgoing);
        joined |= matches!(step.progress, Progress::Done(_));
        assert!(!matches!(step.progress, Progress::Aborted(_)));
    }
    assert!(joined);
    sent
}

/// Masks that differ would show (sk_m + sk_i) times their difference, which every peer knows.
#[test]
fn an_image_of_round_4_has_one_mask() {
    let body = |sent: &Sent, round: u8, to: u32| {
        let message = |(number, from, recipient, _): &&(u8, PartyId, PartyId, Vec<u8>)| {
            (*number, *from, *recipient) == (round, party(11), party(to))
        };
        sent.iter().find(message).unwrap().3.clone()
    };
    let (first, second) = (run(1), run(2));
    for round in 1..=4 {
        assert_eq!(body(&first, round, 12), body(&second, round, 12), "the image is of round 4");
    }
    // The generators differ after it: the answers in the multiplications do.
    assert_ne!(body(&first, 5, 12), body(&second, 5, 12));
    let difference =
        |sent: &Sent| Scalar::from_bytes(body(sent, 5, 12)[3 * 48..][..32].try_into().unwrap()).unwrap();
    assert!(difference(&first).sub(&difference(&second)).is_zero(), "two masks for one factor");
    let point = |sent: &Sent| G1::from_compressed(body(sent, 6, ABOVE)[1..49].try_into().unwrap()).unwrap();
    assert_eq!(point(&first), point(&second));
}
