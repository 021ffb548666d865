//! Hostile bytes at the decoders of groups and in the messages of a join. The fuzzer chooses them, and tests replay
//! what it kept.

use engine::{EvidenceKey, Secret};
use group_signatures::forge::Records;
use group_signatures::{
    Applicant, Application, Approval, Candidate, Decision, GroupPublic, Invitation, MemberKey, OpeningShare,
    Request, RunOrder, Ticket,
};
use primitives::bls12_381::Scalar;
use threshold_issuer::{AttestedGroup, Issuers, Part, PartShare, Reservation};

use crate::installation::{Installation, party, rng};
use crate::malicious::{WAYS, altered};
use crate::registration::Shelf;

/// Decoders that [`decoder`] has.
pub const DECODERS: u8 = 14;

/// The bytes after the first at the decoder that it chooses. Whether they are an encoding, which has to be the one that
/// its content is encoded to.
pub fn decoder(data: &[u8]) -> bool {
    let Some((which, bytes)) = data.split_first() else { return false };
    let Installation { group, attested, custody, .. } = Installation::usual();
    let encoded = match which % DECODERS {
        0 => Approval::decode(bytes).ok().map(|decoded| decoded.encode().to_vec()),
        1 => OpeningShare::decode(bytes).map(|decoded| decoded.encode()),
        2 => Application::decode(bytes).ok().map(|decoded| decoded.encode()),
        3 => Applicant::decode(bytes).ok().map(|decoded| decoded.encode().to_vec()),
        4 => Candidate::decode(bytes).ok().map(|decoded| decoded.encode().to_vec()),
        5 => Ticket::decode(bytes).ok().map(|decoded| decoded.encode()),
        6 => RunOrder::decode(bytes).ok().map(|decoded| decoded.encode()),
        7 => Reservation::decode(bytes).ok().map(|decoded| decoded.encode()),
        8 => PartShare::decode(bytes).map(|decoded| decoded.encode()),
        9 => bytes.try_into().ok().and_then(Part::decode).map(|decoded| decoded.encode().to_vec()),
        10 => Issuers::from_bytes(bytes).ok().map(|decoded| decoded.to_bytes()),
        11 => GroupPublic::decode(bytes, &custody.openers).ok().map(|decoded| decoded.encode()),
        12 => AttestedGroup::decode(bytes, &custody.openers, attested.named())
            .ok()
            .map(|decoded| decoded.encode()),
        _ => MemberKey::decode(group, bytes).ok().map(|decoded| decoded.encode().to_vec()),
    };
    if let Some(encoded) = &encoded {
        assert!(encoded == bytes, "decoder {which}: another encoding of the same");
    }
    encoded.is_some()
}

/// A genuine encoding for each decoder.
pub fn genuine() -> Vec<Vec<u8>> {
    let installation = Installation::usual();
    let Installation { group, issuers, attested, custody, .. } = installation;
    let mut source = rng(900);
    let identity = EvidenceKey::generate(&mut source);
    let invitation = Invitation { ticket: [3; 32], identity: identity.public() };
    let applicant = Applicant::new(group, &invitation.ticket, &mut source);
    let application = applicant.apply(&identity, &mut source);
    let empty = (&Records::default() as _, &Shelf::default() as _);
    let reservation = Reservation::make(group, &invitation, empty, &application).unwrap();
    let answer = |issuer| {
        let share = installation.share(party(issuer));
        (party(issuer), reservation.answer(group, &share, &mut rng(901)).unwrap())
    };
    let shares = || [11, 12, 13].map(answer);
    let part = Part::combine(group, issuers, &invitation, &application, &shares()).unwrap();
    let (mut candidate, acceptance) =
        applicant.accept(&part.answer(group, &invitation, &application).unwrap(), &identity).unwrap();
    let ticket = reservation.register(group, issuers, &Records::default(), &shares(), &acceptance).unwrap();
    let stored = candidate.encode().to_vec();
    let (order, ..) = candidate.order_run(1, [4; 32], &identity).unwrap();
    let own = Secret::new(Scalar::from_u64(5));
    let credential = installation.credential(&own).to_compressed();
    let key = [&own.expose().to_bytes()[..], &credential].concat();
    let member = MemberKey::decode(group, &key).unwrap();
    let request = Request { digest: [6; 32], decision: Decision::Approve };
    let approval = member.approve(group, &request, &mut source).unwrap();
    let secret = custody.share(party(1));
    let opening = OpeningShare::new(group, &request, &approval, party(1), &secret, &mut source).unwrap();
    let encodings = [
        approval.encode().to_vec(),
        opening.encode(),
        application.encode(),
        applicant.encode().to_vec(),
        stored,
        ticket.encode(),
        order.encode(),
        reservation.encode(),
        shares()[0].1.encode(),
        part.encode().to_vec(),
        issuers.to_bytes(),
        group.encode(),
        attested.encode(),
        key,
    ];
    (0..).zip(encodings).map(|(which, encoding)| [&[which][..], &encoding].concat()).collect()
}

/// In a join, the message of one round from one party to another is what the bytes say: the first chooses the way, the
/// second the round, the third whether the rest is the body or changes the genuine one at places. Whether the join has
/// gone well nevertheless.
pub fn join_body(data: &[u8]) -> bool {
    let Some(([way, round, changes], bytes)) = data.split_first_chunk::<3>() else { return false };
    let (way, round) = (WAYS[usize::from(*way) % WAYS.len()], 1 + round % 6);
    let change = |body: &mut Vec<u8>| match changes % 2 {
        0 => *body = bytes.to_vec(),
        _ => alter(body, bytes),
    };
    let outcomes = altered(way, round, 1, &change);
    let issuers = outcomes.iter().filter(|(address, _)| **address != Some(party(way.member)));
    issuers.map(|(_, outcome)| outcome).all(|outcome| outcome.done.is_some() && outcome.aborts.is_empty())
}

/// Changes a byte for every three: place and difference.
fn alter(body: &mut [u8], changes: &[u8]) {
    for [high, low, difference] in changes.as_chunks::<3>().0 {
        let place = usize::from(u16::from_be_bytes([*high, *low])).checked_rem(body.len()).unwrap_or(0);
        if let Some(byte) = body.get_mut(place) {
            *byte ^= difference;
        }
    }
}

/// Each body of a genuine join, for the recipient on each way, and the genuine one unchanged.
pub fn genuine_bodies() -> Vec<Vec<u8>> {
    let unchanged = (0..6).map(|way| vec![way, 0, 1]);
    let changed = (0..6).flat_map(|way| (0..6).map(move |round| vec![way, round, 1, 0, 9, 1]));
    unchanged.chain(changed).collect()
}

#[cfg(test)]
mod tests {
    use super::{DECODERS, decoder, genuine, genuine_bodies, join_body};
    use crate::corpus;

    #[test]
    fn what_the_fuzzer_kept() {
        if std::env::var("SEEDS").is_ok_and(|value| value == "write") {
            corpus::add("group_decoder", genuine());
            corpus::add("group_join_body", genuine_bodies());
        }
        assert!(genuine().len() == usize::from(DECODERS) && genuine().iter().all(|seed| decoder(seed)));
        let kept = corpus::kept("group_decoder");
        for which in 0..DECODERS {
            let reached = |input: &Vec<u8>| input[0] % DECODERS == which && decoder(input);
            assert!(kept.iter().any(reached), "no kept input is decoded to its end by decoder {which}");
        }
        corpus::replay("group_decoder", decoder);
        corpus::replay_that_reaches("group_join_body", join_body);
    }
}
