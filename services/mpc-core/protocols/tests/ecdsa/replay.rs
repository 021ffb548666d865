//! A session that runs twice at an honest party, with a corrupt peer that says the same both times: after a store was
//! put back, or because one number was given out twice. No pad may serve twice, so the attack that takes the key from
//! two answers under one pad finds nothing.

use std::collections::BTreeMap;

use crate::common::{Started, evidence_key, party, rng, settings};
use crate::ecdsa_common::{
    Change, Shares, by_number, keygen, payload, presign_payload, refresh_settings, reopen, reshare_settings,
    start_keygen, start_observer, start_presigned, verify_outside,
};
use engine::forge::Forged;
use engine::session::Session;
use engine::{AbortCause, PartyId, Protocol};
use primitives::ot::{CORRECTION_BYTES, EXTENDED, REQUEST_BYTES, RESPONSE_BYTES};
use primitives::secp256k1::{
    Point, Scalar, decode_scalar, encode_point, mul_generator, reduce, reduce_wide, x_coordinate,
};
use primitives::vole::MULTIPLY_BYTES;
use protocols::ecdsa::{
    Keygen, Presignature, PresignedSigning, Presigning, Refresh, Reshare, SignInput, Signature, Signing, tags,
};
use sim::{Address, Faults, Outcome, Packet, World};

const SIGNERS: [u32; 2] = [1, 2];
/// Where Alice's masked scalars begin in her message, after her salt.
const MASKED: usize = 16;
/// The generator of the corrupt party, the same in every run.
const CORRUPT_SEED: u64 = 4242;

/// By sender and round: the body of each private message.
type Bodies = BTreeMap<(u32, u8), Vec<u8>>;

/// Runs a session. `replace` may put something else in the place of a body before it is sent.
fn run<P: Protocol>(
    started: Vec<(Address, Started<P>)>,
    seed: u64,
    mut replace: impl FnMut(u32, u8, &mut Vec<u8>),
) -> (BTreeMap<Address, Outcome<P::Output>>, Bodies) {
    let mut bodies = Bodies::new();
    let tamper = |packet: Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        let from = u32::from(packet.from.get());
        replace(from, forged.round, &mut forged.body);
        bodies.insert((from, forged.round), forged.body.clone());
        vec![Packet { bytes: forged.encode(&evidence_key(packet.from)), ..packet }]
    };
    let faults = Faults { tamper: Some(Box::new(tamper)), ..Faults::default() };
    let outcomes = World::new(seed, faults, started).run();
    (outcomes, bodies)
}

fn nothing(_: u32, _: u8, _: &mut Vec<u8>) {}

/// The seed of a party's generator in a run in which `honest` has this one.
fn seed_of(number: u32, honest: u32, honest_seed: u64) -> u64 {
    if number == honest { honest_seed } else { CORRUPT_SEED }
}

fn start_signing(
    shares: &Shares,
    digest: [u8; 32],
    seeds: impl Fn(u32) -> u64,
) -> Vec<(Address, Started<Signing>)> {
    let start = |number: u32| {
        let settings = settings(Some(party(number)), &SIGNERS, 2, 9, &payload(digest, &[]).encode());
        let input = SignInput::Party(Box::new(reopen(&shares[&number])));
        Session::start(settings, None, input, &mut rng(seeds(number))).unwrap()
    };
    SIGNERS.map(|number| (Some(party(number)), start(number))).into()
}

fn start_presigning(
    shares: &Shares,
    count: u8,
    seeds: impl Fn(u32) -> u64,
) -> Vec<(Address, Started<Presigning>)> {
    let start = |number: u32| {
        let settings = settings(Some(party(number)), &SIGNERS, 2, 9, &presign_payload(&[], count));
        Session::start(settings, None, reopen(&shares[&number]), &mut rng(seeds(number))).unwrap()
    };
    SIGNERS.map(|number| (Some(party(number)), start(number))).into()
}

/// The differences that two of Alice's answers under the same pads would have: in each row, the difference of what they
/// mask in a column.
fn differences(first: &[u8], second: &[u8], column: usize) -> Vec<Scalar> {
    let masked = |body: &[u8], row: usize| {
        let message = &body[body.len() - MULTIPLY_BYTES + MASKED..];
        decode_scalar(message[96 * row + 32 * column..][..32].try_into().unwrap()).unwrap()
    };
    (0..EXTENDED).map(|row| masked(first, row) - masked(second, row)).collect()
}

fn all_differ(differences: &[Scalar]) -> bool {
    differences.iter().enumerate().all(|(place, one)| !differences[..place].contains(one))
}

/// The values that the attack needs of a signature: r, s, digest, and by how much the nonce was shifted.
struct Signed {
    r: Scalar,
    s: Scalar,
    digest: Scalar,
    shift: Scalar,
}

fn signed(signature: &Signature, digest: &[u8; 32], shift: Scalar) -> Signed {
    let scalar = |bytes: &[u8]| decode_scalar(bytes.try_into().unwrap()).unwrap();
    let compact = signature.to_compact();
    Signed { r: scalar(&compact[..32]), s: scalar(&compact[32..]), digest: reduce(digest), shift }
}

/// The attack: two signatures whose nonces differ by what the corrupt party believes give the key. Whether one of its
/// beliefs, one for each row, does.
fn finds_key(public_key: &Point, beliefs: &[Scalar], first: &Signed, second: &Signed) -> bool {
    let signs = [(first.s, second.s), (-first.s, second.s), (first.s, -second.s), (-first.s, -second.s)];
    signs.into_iter().any(|(a, b)| {
        let (a, b) = (a.invert().unwrap(), b.invert().unwrap());
        let denominator = (first.r * a - second.r * b).invert().unwrap();
        beliefs.iter().any(|belief| {
            let nonces = *belief + first.shift - second.shift;
            mul_generator(&((nonces - first.digest * a + second.digest * b) * denominator)) == *public_key
        })
    })
}

fn done<T>(outcomes: &mut BTreeMap<Address, Outcome<T>>, number: u32) -> T {
    outcomes.remove(&Some(party(number))).unwrap().done.unwrap()
}

#[test]
fn signing_twice_with_a_peer_that_repeats_itself_gives_no_key() {
    let shares = keygen(&[1, 2, 3], 2, 1);
    let digest = [0x5a; 32];
    for honest in SIGNERS {
        let corrupt = 3 - honest;
        let once = |honest_seed: u64| {
            let started = start_signing(&shares, digest, |number| seed_of(number, honest, honest_seed));
            let (mut outcomes, bodies) = run(started, honest_seed, nothing);
            let signature = done(&mut outcomes, corrupt);
            verify_outside(&shares[&1].public().public_key, digest, &signature);
            (signed(&signature, &digest, Scalar::ZERO), bodies)
        };
        let (first, seen_first) = once(1001);
        let (second, seen_second) = once(2002);
        assert_eq!(seen_first[&(corrupt, 1)], seen_second[&(corrupt, 1)], "the peer says the same");
        assert_ne!(first.r, second.r, "nonces are fresh");
        for column in 0..3 {
            assert!(all_differ(&differences(&seen_first[&(honest, 2)], &seen_second[&(honest, 2)], column)));
        }
        let beliefs = differences(&seen_first[&(honest, 2)], &seen_second[&(honest, 2)], 0);
        assert!(!finds_key(&shares[&1].public().public_key, &beliefs, &first, &second));
    }
}

/// The attack itself works: told the true difference of the nonces, it finds the key. So the tests that it fails say
/// something.
#[test]
fn the_attack_finds_the_key_where_pads_repeat() {
    let secret = Scalar::from(0x1234_5678u64);
    let sign = |nonce: u64, digest: [u8; 32]| {
        let nonce = Scalar::from(nonce);
        let (r, _, _) = x_coordinate(&mul_generator(&nonce));
        let s = nonce.invert().unwrap() * (reduce(&digest) + r * secret);
        Signed { r, s, digest: reduce(&digest), shift: Scalar::ZERO }
    };
    let (first, mut second) = (sign(1111, [1; 32]), sign(777, [2; 32]));
    second.s = -second.s;
    let public_key = mul_generator(&secret);
    assert!(finds_key(&public_key, &[Scalar::from(5u64), Scalar::from(1111u64 - 777)], &first, &second));
    assert!(!finds_key(&public_key, &[Scalar::from(5u64)], &first, &second));
}

#[test]
fn a_presigning_order_that_runs_twice_gives_no_key_at_any_place() {
    const COUNT: u8 = 4;
    let shares = keygen(&[1, 2, 3], 2, 1);
    for honest in SIGNERS {
        let corrupt = 3 - honest;
        let once = |honest_seed: u64, session: u8, digest: [u8; 32]| {
            let started = start_presigning(&shares, COUNT, |number| seed_of(number, honest, honest_seed));
            let (made, bodies) = run(started, honest_seed, nothing);
            let mut made = by_number(made);
            let signatures: Vec<Signed> = (0..COUNT)
                .map(|_| made.iter_mut().map(|(number, all)| (*number, all.remove(0))).collect())
                .map(|one| sign_presigned(&shares, one, session, digest))
                .collect();
            (signatures, bodies)
        };
        let (first, seen_first) = once(1001, 20, [0x11; 32]);
        let (second, seen_second) = once(2002, 21, [0x22; 32]);
        assert_eq!(seen_first[&(corrupt, 1)], seen_second[&(corrupt, 1)], "the peer says the same");
        let (answers, again) = (&seen_first[&(honest, 2)], &seen_second[&(honest, 2)]);
        let length = answers.len() / usize::from(COUNT);
        let places: Vec<_> = answers.chunks(length).zip(again.chunks(length)).collect();
        assert_eq!(places.len(), first.len());
        for (place, (first, second)) in places.into_iter().zip(first.iter().zip(&second)) {
            let beliefs = differences(place.0, place.1, 0);
            assert!(all_differ(&beliefs) && all_differ(&differences(place.0, place.1, 1)));
            assert!(!finds_key(&shares[&1].public().public_key, &beliefs, first, second));
        }
        // Nor does the pad of one place serve another of the same session.
        let all: Vec<_> = answers.chunks(length).collect();
        for pair in all.windows(2) {
            assert!(all_differ(&differences(pair[0], pair[1], 0)));
        }
    }
}

/// Signs with the presignatures of one place, and says by how much the nonce was shifted.
fn sign_presigned(
    shares: &Shares,
    made: BTreeMap<u32, Presignature>,
    session: u8,
    digest: [u8; 32],
) -> Signed {
    let public = shares[&1].public();
    let mut request = payload(digest, &[]);
    request.presignature = Some(*made[&1].id());
    let started: Vec<_> = made
        .into_iter()
        .map(|(number, one)| {
            let started = start_presigned(one, public, (number, &SIGNERS), session, &request);
            (Some(party(number)), started.unwrap())
        })
        .collect();
    let (outcomes, bodies) = run(started, 1, nothing);
    let signature = by_number(outcomes).remove(&2).unwrap();
    verify_outside(&public.public_key, digest, &signature);
    let (observer, _) = start_observer::<PresignedSigning, _>(public, &SIGNERS, session, &request).unwrap();
    let mut transcript = observer.context().transcript();
    transcript.append("purpose", tags::NONCE_SHIFT.as_bytes());
    transcript.append("child_key", &encode_point(&public.public_key));
    transcript.append("nonce_point", &bodies[&(1, 1)][..33]);
    transcript.append("digest", &digest);
    signed(&signature, &digest, reduce_wide(&transcript.wide()))
}

/// The generator of the honest party repeats too, so its nonce does, but the peer says something else: pads are other
/// ones still.
#[test]
fn a_generator_that_repeats_brings_no_pad_back_once_the_peer_says_something_else() {
    let shares = keygen(&[1, 2, 3], 2, 1);
    for honest in SIGNERS {
        let corrupt = 3 - honest;
        let answer = |corrupt_seed: u64| {
            let seeds = |number| if number == honest { 77 } else { corrupt_seed };
            run(start_signing(&shares, [0x5a; 32], seeds), 5, nothing).1
        };
        let (first, same, other) = (answer(1), answer(1), answer(2));
        let place = (honest, 2);
        assert_eq!(first[&place], same[&place], "all repeats: the same answer, which tells nothing new");
        assert_ne!(first[&(corrupt, 1)], other[&(corrupt, 1)]);
        assert_eq!(first[&(honest, 1)], other[&(honest, 1)], "the generator repeats");
        for column in 0..3 {
            assert!(all_differ(&differences(&first[&place], &other[&place], column)));
        }
    }
}

/// A corrupt Alice sends the answer of the first run again: it does not fit what the honest Bob has sent since.
#[test]
fn an_answer_of_the_first_run_is_refused_in_the_second() {
    let shares = keygen(&[1, 2, 3], 2, 1);
    for honest in SIGNERS {
        let corrupt = 3 - honest;
        let (_, first) =
            run(start_signing(&shares, [0x5a; 32], |number| seed_of(number, honest, 1001)), 1, nothing);
        let answer = &first[&(corrupt, 2)];
        let started = start_signing(&shares, [0x5a; 32], |number| seed_of(number, honest, 2002));
        let (outcomes, second) = run(started, 2, |from, round, body| {
            if (from, round) == (corrupt, 2) {
                // With the hash of the commitments of this run, which it knows.
                body[32..].copy_from_slice(&answer[32..]);
            }
        });
        assert_ne!(first[&(honest, 1)][32..], second[&(honest, 1)][32..], "Bob's salt is fresh");
        let abort = outcomes[&Some(party(honest))].abort().unwrap();
        assert_eq!(abort.cause, AbortCause::TransferCheckFailed);
        assert_eq!(abort.culprits, [party(corrupt)]);
    }
}

const CHANGE: Change<'static> = Change { dealers: &[1, 2], receivers: &[1, 2], t: 2 };

/// The set-up of transfers, as the three protocols that have one start it: by party and seed.
fn with_each_setup(check: impl Fn(&str, &dyn Fn(u32, u64, &Replayed<'_>) -> Setup)) {
    let shares = keygen(&SIGNERS, 2, 1);
    check("keygen", &|honest, seed, replayed| {
        let start = |number: u32| start_keygen(number, &SIGNERS, 2, 9, seed_of(number, honest, seed));
        setup::<Keygen>(SIGNERS.map(|number| (Some(party(number)), start(number))).into(), seed, replayed)
    });
    check("refresh", &|honest, seed, replayed| {
        let start = |number: u32| {
            let settings = refresh_settings(number, shares[&number].public());
            let key = Some(evidence_key(party(number)));
            let mut rng = rng(seed_of(number, honest, seed));
            Session::start(settings, key, reopen(&shares[&number]), &mut rng).unwrap()
        };
        setup::<Refresh>(SIGNERS.map(|number| (Some(party(number)), start(number))).into(), seed, replayed)
    });
    check("reshare", &|honest, seed, replayed| {
        let start = |number: u32| {
            let settings = reshare_settings(Some(number), shares[&1].public(), &CHANGE, 9);
            let key = Some(evidence_key(party(number)));
            let mut rng = rng(seed_of(number, honest, seed));
            Session::start(settings, key, Some(reopen(&shares[&number])), &mut rng).unwrap()
        };
        setup::<Reshare>(SIGNERS.map(|number| (Some(party(number)), start(number))).into(), seed, replayed)
    });
}

/// The message that a corrupt party sends again in the place of its own: sender, round, the transfer message.
type Replayed<'a> = Option<(u32, u8, &'a [u8])>;

/// The transfer messages of one run by sender and round, and the cause of each party's abort.
struct Setup {
    messages: Bodies,
    aborts: BTreeMap<u32, (AbortCause, Vec<PartyId>)>,
}

fn transfer(round: u8, body: &[u8]) -> Option<usize> {
    let length = match round {
        3 => REQUEST_BYTES,
        4 => RESPONSE_BYTES,
        5 => CORRECTION_BYTES,
        _ => return None,
    };
    body.len().checked_sub(length)
}

fn setup<P: Protocol>(started: Vec<(Address, Started<P>)>, seed: u64, replayed: &Replayed<'_>) -> Setup {
    let (outcomes, bodies) = run(started, seed, |from, round, body| {
        if let (Some((sender, of, message)), Some(start)) = (replayed, transfer(round, body))
            && (from, round) == (*sender, *of)
        {
            body[start..].copy_from_slice(message);
        }
    });
    let messages = bodies
        .into_iter()
        .filter_map(|(place, body)| Some((place, body[transfer(place.1, &body)?..].to_vec())))
        .collect();
    let aborts = outcomes
        .iter()
        .filter_map(|(address, outcome)| {
            let abort = outcome.abort()?;
            Some((u32::from((*address)?.get()), (abort.cause, abort.culprits.clone())))
        })
        .collect();
    Setup { messages, aborts }
}

/// Whether two messages have a block in common at the same place.
fn share_a_block(first: &[u8], second: &[u8]) -> bool {
    first.as_chunks::<16>().0.iter().zip(second.as_chunks::<16>().0).any(|(a, b)| a == b)
}

#[test]
fn transfers_set_up_twice_under_one_session_share_nothing() {
    with_each_setup(|name, run| {
        for honest in SIGNERS {
            let (first, second) = (run(honest, 1001, &None), run(honest, 2002, &None));
            assert!(first.aborts.is_empty() && second.aborts.is_empty(), "{name}");
            let rounds: Vec<u8> =
                first.messages.keys().filter(|(from, _)| *from == honest).map(|(_, round)| *round).collect();
            assert_eq!(rounds, if honest == 1 { vec![3, 5] } else { vec![4] }, "{name}");
            for round in rounds {
                let place = (honest, round);
                assert!(
                    !share_a_block(&first.messages[&place], &second.messages[&place]),
                    "{name} {place:?}"
                );
            }
        }
    });
}

/// Each message of the corrupt party's part of the set-up, sent again in a second run of the session.
#[test]
fn a_replayed_message_of_a_set_up_reveals_no_mask_twice() {
    with_each_setup(|name, run| {
        for (corrupt, round) in [(1, 3), (2, 4), (1, 5)] {
            let honest = 3 - corrupt;
            let first = run(honest, 1001, &None);
            let message = first.messages[&(corrupt, round)].clone();
            let second = run(honest, 2002, &Some((corrupt, round, &message)));
            assert_eq!(second.messages[&(corrupt, round)], message, "{name}: it was sent again");
            for (place, answer) in second.messages.iter().filter(|((from, _), _)| *from == honest) {
                assert!(!share_a_block(&first.messages[place], answer), "{name} {place:?}");
            }
            // An old request is as good as a new one to who answers it; an old answer fits nothing that was asked
            // since.
            if round > 3 {
                let (cause, _) = &second.aborts[&honest];
                assert_eq!(*cause, AbortCause::TransferCheckFailed, "{name} {round}");
            }
        }
    });
}
