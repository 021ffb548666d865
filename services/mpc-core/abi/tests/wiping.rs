//! Nothing that was ever in a `Secret` is anywhere in this process's memory once it is no longer needed: when a party
//! has its result, when a session is freed, and when a run was aborted.
//!
//! Memory is looked at whole: every mapping that can be written, the stacks and the heap among them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
#[path = "common/memory.rs"]
mod memory;
#[path = "common/stack.rs"]
mod stack;

use std::collections::BTreeMap;

use common::{Ends, Party, Session, config, parties};
use coterie_mpc::proto::{Done, ProtocolId, SessionConfig, Step};
use engine::forge::Forged;
use engine::seal::{DataKey, SealKind};
use engine::{EvidenceKey, Secret};
use memory::{found, no_share_found, nothing_found};
use primitives::witness;
use prost::Message;
use stack::{apart, on_wiped_stack};

type Running = BTreeMap<u32, (Session, Step)>;

/// One test, as one thread at a time must run: the search reads the memory of all.
#[test]
fn what_was_secret_is_nowhere_in_memory_after_its_use() {
    a_copy_that_was_not_wiped_is_found();
    nothing_of_a_share_or_a_nonce_outlives_its_use();
    nothing_of_a_share_or_a_nonce_outlives_an_abort();
}

struct Scheme {
    keygen: ProtocolId,
    sign: ProtocolId,
    presign: Option<(ProtocolId, ProtocolId)>,
    renewals: (ProtocolId, ProtocolId),
    spoiled: Spoiled,
}

/// A message of signing with one bit flipped, and the cause of the abort that this leads to.
struct Spoiled {
    round: u8,
    /// Where, counted from the end, in an envelope of so many bytes.
    from_end: fn(usize) -> usize,
    cause: i32,
}

const TRANSFER_CHECK_FAILED: i32 = 15;
const WRONG_PARTIAL_SIGNATURE: i32 = 12;
const NOT_ENOUGH_PARTIALS: i32 = 13;

const SCHEMES: [Scheme; 4] = [
    Scheme {
        keygen: ProtocolId::BlsKeygen,
        sign: ProtocolId::BlsSign,
        presign: None,
        renewals: (ProtocolId::BlsRefresh, ProtocolId::BlsReshare),
        spoiled: Spoiled { round: 1, from_end: |_| 1, cause: NOT_ENOUGH_PARTIALS },
    },
    Scheme {
        keygen: ProtocolId::EcdsaKeygen,
        sign: ProtocolId::EcdsaSign,
        presign: Some((ProtocolId::EcdsaPresign, ProtocolId::EcdsaSignPresigned)),
        renewals: (ProtocolId::EcdsaRefresh, ProtocolId::EcdsaReshare),
        spoiled: Spoiled { round: 2, from_end: |length| length / 2, cause: TRANSFER_CHECK_FAILED },
    },
    Scheme {
        keygen: ProtocolId::Ed25519Keygen,
        sign: ProtocolId::Ed25519Sign,
        presign: Some((ProtocolId::Ed25519Presign, ProtocolId::Ed25519SignPresigned)),
        renewals: (ProtocolId::Ed25519Refresh, ProtocolId::Ed25519Reshare),
        spoiled: Spoiled { round: 2, from_end: |_| 32, cause: WRONG_PARTIAL_SIGNATURE },
    },
    Scheme {
        keygen: ProtocolId::Bip340Keygen,
        sign: ProtocolId::Bip340Sign,
        presign: Some((ProtocolId::Bip340Presign, ProtocolId::Bip340SignPresigned)),
        renewals: (ProtocolId::Bip340Refresh, ProtocolId::Bip340Reshare),
        spoiled: Spoiled { round: 2, from_end: |_| 1, cause: WRONG_PARTIAL_SIGNATURE },
    },
];

fn start(
    parties: &[Party],
    config: impl Fn(&Party) -> SessionConfig,
    shares: &BTreeMap<u32, Done>,
) -> Running {
    parties
        .iter()
        .map(|party| {
            let share = shares.get(&party.id).map_or(&[][..], |done| &done.sealed_share);
            let config = config(party).encode_to_vec();
            (party.id, Session::start(Some(&party.vault), &config, &party.identity, share).unwrap())
        })
        .collect()
}

/// Delivers everything. Messages to one party in a protocol that deals shares show nothing that was ever secret.
/// Everything else that was sent is no secret any more.
fn deliver(sessions: &mut Running, mut tamper: impl FnMut(u32, &mut Vec<u8>)) -> Ends {
    let mut published = Vec::new();
    let (done, aborts) = common::deliver(sessions, |from, _, bytes| {
        // SAFETY: the bytes of a vector.
        let readable = unsafe { witness::search(bytes.as_ptr().expose_provenance(), bytes.len()) };
        let allowed = Forged::open(bytes).is_some_and(|sent| sent.recipient.is_none() || sent.echo.is_none());
        assert!(allowed || readable.is_empty(), "from {from}: {readable:?}");
        published.push(bytes.clone());
        tamper(from, bytes);
        published.push(bytes.clone());
    });
    published.iter().for_each(|bytes| witness::published(bytes));
    done.values().for_each(|done| witness::published(&done.encode_to_vec()));
    (done, aborts)
}

/// Runs sessions to their end and looks for their secrets while they are open, and again when they are freed.
fn run(when: &str, start: impl FnOnce() -> Running) -> BTreeMap<u32, Done> {
    let (sessions, (done, aborts)) = on_wiped_stack(when, || {
        let mut sessions = start();
        let ends = deliver(&mut sessions, |_, _| ());
        (sessions, ends)
    });
    assert!(aborts.is_empty(), "{when}: {aborts:?}");
    assert_eq!(done.len(), sessions.len(), "{when}");
    no_share_found(&format!("{when} done"));
    drop(sessions);
    no_share_found(&format!("{when} freed"));
    done
}

fn all(parties: &[Party]) -> Vec<&Party> {
    parties.iter().collect()
}

/// A refresh of shares of this epoch.
fn refreshing(protocol: ProtocolId, party: &Party, parties: &[Party], epoch: u32) -> SessionConfig {
    SessionConfig { epoch, ..config(protocol, party.id, &all(parties), 2) }
}

const DEALERS: [u32; 2] = [1, 2];

/// A reshare in which party 3 only receives.
fn resharing(
    protocol: ProtocolId,
    party: &Party,
    parties: &[Party],
    epoch: u32,
    shares: &BTreeMap<u32, Done>,
) -> SessionConfig {
    SessionConfig {
        epoch,
        dealers: DEALERS.to_vec(),
        receivers: vec![1, 2, 3],
        key_public: shares[&1].key_public.clone(),
        ..config(protocol, party.id, &all(parties), 2)
    }
}

fn of_dealers(shares: &BTreeMap<u32, Done>) -> BTreeMap<u32, Done> {
    DEALERS.iter().map(|id| (*id, shares[id].clone())).collect()
}

fn nothing_of_a_share_or_a_nonce_outlives_its_use() {
    let parties = parties(3);
    witness::watch();
    for scheme in SCHEMES {
        let when = |what: ProtocolId| format!("{what:?}");
        let keygen = |party: &Party| config(scheme.keygen, party.id, &all(&parties), 2);
        let shares = run(&when(scheme.keygen), || start(&parties, keygen, &BTreeMap::new()));
        let signing = |protocol, party: &Party| SessionConfig {
            payload: vec![0xd1; 32],
            ..config(protocol, party.id, &all(&parties[..2]), 2)
        };
        run(&when(scheme.sign), || start(&parties[..2], |party| signing(scheme.sign, party), &shares));
        if let Some((presign, presigned)) = scheme.presign {
            let presigning = |party: &Party| SessionConfig {
                payload: Vec::new(),
                presignature_count: 1,
                ..signing(presign, party)
            };
            let made = run(&when(presign), || start(&parties[..2], presigning, &shares));
            let using = |party: &Party| SessionConfig {
                presignature_id: made[&party.id].presignatures[0].id.clone(),
                sealed_presignature: made[&party.id].presignatures[0].sealed.clone(),
                ..signing(presigned, party)
            };
            run(&when(presigned), || start(&parties[..2], using, &BTreeMap::new()));
        }
        let (refresh, reshare) = scheme.renewals;
        let shares =
            run(&when(refresh), || start(&parties, |party| refreshing(refresh, party, &parties, 1), &shares));
        run(&when(reshare), || {
            start(&parties, |party| resharing(reshare, party, &parties, 2, &shares), &of_dealers(&shares))
        });
    }
    drop(parties);
    nothing_found("vaults closed");
    witness::forget();
}

fn nothing_of_a_share_or_a_nonce_outlives_an_abort() {
    let parties = parties(3);
    let key = identity_of(&parties[0]);
    witness::watch();
    for scheme in SCHEMES {
        let keygen = |party: &Party| config(scheme.keygen, party.id, &all(&parties), 2);
        dealing_aborts(scheme.keygen, &key, || start(&parties, keygen, &BTreeMap::new()));
    }
    for scheme in SCHEMES {
        let made = |parties: &[Party]| {
            let keygen = |party: &Party| config(scheme.keygen, party.id, &all(parties), 2);
            run(&format!("{:?}", scheme.keygen), || start(parties, keygen, &BTreeMap::new()))
        };
        let shares = made(&parties);
        signing_aborts(scheme.sign, &scheme.spoiled, &parties, &shares);
        // Presigning of FROST is one broadcast, which nothing that follows can spoil. The vaults are others, as in
        // these the pair multiplies no more with the key of the transfer that failed.
        if let (Some((presign, _)), ProtocolId::EcdsaSign) = (scheme.presign, scheme.sign) {
            let others = common::parties(3);
            signing_aborts(presign, &scheme.spoiled, &others, &made(&others));
        }
        let (refresh, reshare) = scheme.renewals;
        dealing_aborts(refresh, &key, || {
            start(&parties, |party| refreshing(refresh, party, &parties, 1), &shares)
        });
        dealing_aborts(reshare, &key, || {
            start(&parties, |party| resharing(reshare, party, &parties, 1, &shares), &of_dealers(&shares))
        });
    }
    drop((parties, key));
    nothing_found("aborted and closed");
    witness::forget();
}

/// The last broadcast of party 1 before private bodies travel, an opening, a proof or a polynomial, is wrong. All hold
/// polynomials then, and in a renewal their old shares.
fn dealing_aborts(protocol: ProtocolId, key: &EvidenceKey, start: impl FnOnce() -> Running) {
    let mut altered = false;
    let (sessions, (done, aborts)) = apart(|| {
        let mut sessions = start();
        let ends = deliver(&mut sessions, |from, bytes| {
            let Some(mut envelope) = Forged::open(bytes) else { return };
            if from == 1 && envelope.round == 2 && envelope.recipient.is_none() {
                *envelope.body.last_mut().unwrap() ^= 1;
                *bytes = envelope.encode(key);
                altered = true;
            }
        });
        (sessions, ends)
    });
    assert!(altered && done.is_empty() && aborts.len() >= 2, "{protocol:?}: {done:?} {aborts:?}");
    no_share_found(&format!("{protocol:?} aborted"));
    drop(sessions);
    no_share_found(&format!("{protocol:?} aborted and freed"));
}

/// A wrong message of party 2 ends signing or presigning at party 1, which then holds nonces and, with ECDSA, the
/// choices of its transfers and the factors of its multiplications.
fn signing_aborts(protocol: ProtocolId, spoiled: &Spoiled, parties: &[Party], shares: &BTreeMap<u32, Done>) {
    let presigns = protocol == ProtocolId::EcdsaPresign;
    let signing = |party: &Party| SessionConfig {
        payload: if presigns { Vec::new() } else { vec![0xd1; 32] },
        presignature_count: presigns.into(),
        ..config(protocol, party.id, &all(&parties[..2]), 2)
    };
    let Spoiled { round, from_end, cause } = *spoiled;
    let mut altered = false;
    let (mut sessions, aborts) = apart(|| {
        let mut sessions = start(&parties[..2], signing, shares);
        let (_, aborts) = deliver(&mut sessions, |from, bytes| {
            if from == 2 && Forged::open(bytes).unwrap().round == round {
                let place = bytes.len() - from_end(bytes.len());
                bytes[place] ^= 1;
                altered = true;
            }
        });
        (sessions, aborts)
    });
    let abort = aborts.get(&1).unwrap_or_else(|| panic!("{protocol:?}: {aborts:?}"));
    assert!(altered && aborts.len() == 1, "{protocol:?}: {aborts:?}");
    assert_eq!((abort.cause, abort.culprits.as_slice()), (cause, &[2][..]), "{protocol:?}");
    // Party 2 may wait for more, and holds what it needs for that.
    sessions.remove(&2);
    no_share_found(&format!("{protocol:?} aborted"));
    drop(sessions);
    no_share_found(&format!("{protocol:?} aborted and freed"));
}

fn identity_of(party: &Party) -> EvidenceKey {
    let vault = DataKey::new(Secret::new([u8::try_from(party.id).unwrap(); 32]));
    let seed =
        vault.unseal(SealKind::Identity, &[], &party.identity).unwrap_or_else(|_| panic!("its own vault"));
    EvidenceKey::from_seed(&Secret::new(seed.secret.expose().as_slice().try_into().unwrap()))
}

/// The search finds what is there, wherever that is, and not what is gone.
fn a_copy_that_was_not_wiped_is_found() {
    witness::watch();
    let mut heap = Box::new([0u8; 100]);
    let mut copy = |seed: u8, order: fn(&mut [u8])| {
        let mut secret = Secret::new([0u8; 32]);
        for (place, byte) in (0u8..).zip(secret.expose_mut()) {
            *byte = seed.wrapping_add(place.wrapping_mul(41));
        }
        heap[3..35].copy_from_slice(secret.expose());
        order(&mut heap[3..35]);
        drop(secret);
        std::hint::black_box(&mut heap);
        let origins = found();
        heap[11..35].fill(0);
        std::hint::black_box(&mut heap);
        (origins.len(), found().len())
    };
    assert_eq!(copy(1, |_| ()), (1, 0));
    assert_eq!(copy(2, <[u8]>::reverse), (1, 0), "the other order of bytes");
    witness::forget();
}
