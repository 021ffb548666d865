//! Joins between manager and member: their result, and the refusal of each side when the other one deviates.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use engine::forge::Forged;
use engine::session::Session;
use engine::{
    AbortCause, EvidenceKey, PartyId, RosterEntry, Secret, SessionId, SessionSettings, SetupError, Threshold,
};
use group_signatures::forge::{Custody, Records, attempt};
use group_signatures::{
    Applicant, Application, Attempt, Candidate, Decision, GroupPublic, Invitation, IssuingKey, MemberKey,
    RegistrarKey, Request, Ticket,
};
use openssl::bn::BigNum;
use paillier_issuer::setup::forge::{SHORT, from_factors};
use paillier_issuer::{
    FactorProof, Issuer, Join, JoinInput, JoinOutput, JoinTerms, ManagerInput, MemberInput, Parameters,
    SecretParameters, SetUpError,
};
use primitives::bls12_381::{G1, Scalar};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use sim::{Address, Faults, Outcome, World};

const MANAGER: u32 = 1;
const MEMBER: u32 = 2;
const TICKET: [u8; 32] = [5; 32];

fn party(number: u32) -> PartyId {
    PartyId::new(number).unwrap()
}

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// Keys and parameters of one epoch.
struct Pair {
    group: Arc<GroupPublic>,
    issuing_key: Arc<IssuingKey>,
    custody: Custody,
    manager: Arc<SecretParameters>,
    member: Arc<SecretParameters>,
    manager_public: Arc<Parameters>,
    member_public: Arc<Parameters>,
    issuer: Arc<Issuer>,
}

fn pair() -> &'static Pair {
    static PAIR: OnceLock<Pair> = OnceLock::new();
    PAIR.get_or_init(|| {
        let mut rng = rng(1);
        let custody = Custody::new(2, 3, &mut rng).unwrap();
        let (issuing_key, group) = custody.group("approvers", 1, &mut rng).unwrap();
        let manager = SecretParameters::generate(SHORT, b"manager", &mut rng).unwrap();
        let member = SecretParameters::generate(SHORT, b"member", &mut rng).unwrap();
        let member_public = Parameters::check(member.proven(), SHORT, b"member").unwrap();
        let proof = FactorProof::prove(&manager, &member_public, &mut rng).unwrap();
        let proof = proof.encode(manager.public(), &member_public).unwrap();
        let manager_public = Arc::new(Parameters::check(manager.proven(), SHORT, b"manager").unwrap());
        let issuer = Issuer::check(Arc::clone(&manager_public), &proof, &member).unwrap();
        Pair {
            group: Arc::new(GroupPublic::decode(&group.encode(), &custody.openers).unwrap()),
            issuing_key: Arc::new(issuing_key),
            custody,
            manager_public,
            member_public: Arc::new(member_public),
            issuer: Arc::new(issuer),
            manager: Arc::new(manager),
            member: Arc::new(member),
        }
    })
}

/// Issuer and member of one ticket, registered and accepted.
struct Registered {
    ticket: Ticket,
    candidate: Candidate,
    registrar: RegistrarKey,
}

impl Registered {
    fn new(seed: u64) -> Self {
        let (group, mut rng) = (&pair().group, rng(seed));
        let (registrar, identity) = (RegistrarKey::generate(&mut rng), EvidenceKey::generate(&mut rng));
        let invitation = Invitation { ticket: TICKET, identity: identity.public() };
        let applicant = Applicant::new(group, &TICKET, &mut rng);
        let application = Application::decode(&applicant.apply(&identity, &mut rng).encode()).unwrap();
        let records = Records::default();
        let mut ticket = Ticket::bind(group, &invitation, &records, &application, &registrar).unwrap();
        let (candidate, acceptance) = applicant.accept(&ticket.answer(), &identity).unwrap();
        ticket.accept(group, &acceptance).unwrap();
        Self { ticket: Ticket::decode(&ticket.encode()).unwrap(), candidate, registrar }
    }

    /// Counts a run at both sides, and does it.
    fn join(&mut self, session: u8, faults: Faults<'_>) -> BTreeMap<Address, Outcome<JoinOutput>> {
        let pair = pair();
        let attempt = self.ticket.begin_attempt(&pair.group, &self.registrar).unwrap();
        let (own, secret) = self.candidate.begin_attempt(attempt.number()).unwrap();
        run(attempt, own, secret, session, faults)
    }
}

/// A registered member's secret with its ticket.
fn register(seed: u64) -> (Secret<Scalar>, Ticket) {
    let Registered { ticket, mut candidate, .. } = Registered::new(seed);
    (candidate.begin_attempt(1).unwrap().1, ticket)
}

fn terms(member: G1, number: u8) -> JoinTerms {
    let group = Arc::clone(&pair().group);
    JoinTerms { attempt: attempt(&group, TICKET, number, member), group }
}

fn settings(me: u32, session: u8, payload: &[u8]) -> SessionSettings {
    let roster = [MANAGER, MEMBER].map(|number| RosterEntry { id: party(number), evidence_key: None });
    SessionSettings {
        session_id: SessionId::new([session; 32]),
        me: Some(party(me)),
        roster: roster.to_vec(),
        threshold: Threshold::new(2).unwrap(),
        key_id: pair().group.name().to_owned(),
        epoch: 1,
        payload: payload.to_vec(),
    }
}

fn manager_input(member: G1, attempt: u8) -> ManagerInput {
    ManagerInput {
        terms: terms(member, attempt),
        issuing_key: Arc::clone(&pair().issuing_key),
        own: Arc::clone(&pair().manager),
        peer: Arc::clone(&pair().member_public),
    }
}

fn member_input(secret: Secret<Scalar>, attempt: u8) -> MemberInput {
    MemberInput {
        terms: terms(G1::mul_generator(&secret), attempt),
        secret,
        own: Arc::clone(&pair().member),
        issuer: Arc::clone(&pair().issuer),
    }
}

fn copy(secret: &Secret<Scalar>) -> Secret<Scalar> {
    Secret::new(secret.expose().copy())
}

/// A join of this secret in which `faults` happen.
fn join(secret: &Secret<Scalar>, session: u8, faults: Faults<'_>) -> BTreeMap<Address, Outcome<JoinOutput>> {
    let attempt = || attempt(&pair().group, TICKET, 1, G1::mul_generator(secret));
    run(attempt(), attempt(), copy(secret), session, faults)
}

fn run(
    manager: Attempt,
    member: Attempt,
    secret: Secret<Scalar>,
    session: u8,
    faults: Faults<'_>,
) -> BTreeMap<Address, Outcome<JoinOutput>> {
    let pair = pair();
    let [manager, member] =
        [manager, member].map(|attempt| JoinTerms { group: Arc::clone(&pair.group), attempt });
    let payload = manager.payload(&pair.manager_public, &pair.member_public);
    let point = *manager.attempt.member();
    let manager = ManagerInput { terms: manager, ..manager_input(point, 1) };
    let member = MemberInput { terms: member, ..member_input(secret, 1) };
    let started =
        [(MANAGER, JoinInput::Manager(manager)), (MEMBER, JoinInput::Member(member))].map(|(me, input)| {
            let mut rng = rng(u64::from(me) << 32 | u64::from(session));
            let session =
                Session::<Join>::start(settings(me, session, &payload), None, input, &mut rng).unwrap();
            (Some(party(me)), session)
        });
    World::new(u64::from(session), faults, started).run()
}

fn key_of(outcomes: &mut BTreeMap<Address, Outcome<JoinOutput>>) -> Option<MemberKey> {
    match outcomes.get_mut(&Some(party(MEMBER))).unwrap().done.take()? {
        JoinOutput::Joined(key) => Some(*key),
        JoinOutput::Answered => panic!("the member has answered"),
    }
}

#[test]
fn member_gets_the_signature_of_its_secret() {
    let (secret, ticket) = register(2);
    let mut outcomes = join(&secret, 1, Faults::default());
    let manager = outcomes[&Some(party(MANAGER))].done.as_ref();
    assert!(matches!(manager, Some(JoinOutput::Answered)));
    let key = key_of(&mut outcomes).unwrap();
    assert_eq!(key.point(), ticket.member().unwrap());
    // With both secrets in one hand: the same element.
    let sum = pair().issuing_key.scalar().expose().add(secret.expose());
    assert_eq!(*key.credential(), G1::mul_generator(&Secret::new(sum.inverse())));
    let again = MemberKey::decode(&pair().group, &key.encode()).unwrap();
    assert_eq!(again.credential(), key.credential());
    let mut wrong = key.encode().to_vec();
    wrong[31] ^= 1;
    assert!(MemberKey::decode(&pair().group, &wrong).is_err());
}

#[test]
fn two_joins_of_one_ticket_show_nothing_alike_and_give_one_signature() {
    let (secret, _) = register(3);
    let mut bodies = Vec::new();
    let mut keys = Vec::new();
    for session in [2, 3] {
        let record = |packet: sim::Packet| {
            bodies.push(Forged::open(&packet.bytes).unwrap().body);
            vec![packet]
        };
        let faults = Faults { tamper: Some(Box::new(record)), ..Faults::default() };
        keys.push(key_of(&mut join(&secret, session, faults)).unwrap());
    }
    assert_eq!(keys[0].credential(), keys[1].credential());
    // The member that has two keys, as one whose first join's answer came late, has one tag.
    let request = Request { digest: [8; 32], decision: Decision::Approve };
    let tags = [4, 5].map(|seed| {
        let key = keys.pop().unwrap();
        key.approve(&pair().group, &request, &mut rng(seed)).unwrap().verify(&pair().group, &request)
    });
    assert!(tags[0].is_ok() && tags[0] == tags[1]);
    assert_eq!(bodies.len(), 6);
    for (first, second) in bodies[..3].iter().zip(&bodies[3..]) {
        assert_ne!(first, second);
    }
}

/// A change of the body of one message.
type Change = fn(&mut Vec<u8>);

/// One deviation: its round, the change, and the cause that the other side must give.
struct Row {
    name: &'static str,
    round: u8,
    change: Change,
    cause: AbortCause,
}

const N: usize = 1536 / 8;
const POINT: usize = 48;
/// Lengths of responses: for a scalar, for the combination's summand, for a commitment's randomness.
const SCALAR_RESPONSE: usize = (255 + 256_usize + 1).div_ceil(8);
const SUMMAND_RESPONSE: usize = (896 + 256_usize + 1).div_ceil(8);
const BLINDING_RESPONSE: usize = (1536 + 128 + 256_usize + 1).div_ceil(8);
/// The length in front of a body.
const SIZE: usize = 4;

/// Fields of the first message in order, with their lengths.
const KEY_FIELDS: [(&str, usize); 8] = [
    ("encrypted key", 2 * N),
    ("commitment", N),
    ("masked ciphertext", 2 * N),
    ("masked point", POINT),
    ("masked commitment", N),
    ("secret response", SCALAR_RESPONSE),
    ("randomness response", N),
    ("blinding response", BLINDING_RESPONSE),
];

/// The same of the second message.
const COMBINED_FIELDS: [(&str, usize); 12] = [
    ("combined", 2 * N),
    ("factor commitment", N),
    ("summand commitment", N),
    ("masked ciphertext", 2 * N),
    ("masked point", POINT),
    ("masked factor commitment", N),
    ("masked summand commitment", N),
    ("factor response", SCALAR_RESPONSE),
    ("summand response", SUMMAND_RESPONSE),
    ("factor blinding response", BLINDING_RESPONSE),
    ("summand blinding response", BLINDING_RESPONSE),
    ("randomness response", N),
];

/// Runs a join in which the message of `round` is changed, and returns what its recipient says.
fn altered(round: u8, session: u8, change: impl Fn(&mut Vec<u8>)) -> (AbortCause, Vec<PartyId>) {
    let (secret, _) = register(4);
    let tamper = |mut packet: sim::Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        if forged.round == round {
            change(&mut forged.body);
            packet.bytes = forged.encode(&EvidenceKey::from_seed(&Secret::new([1; 32])));
        }
        vec![packet]
    };
    let faults = Faults { tamper: Some(Box::new(tamper)), ..Faults::default() };
    let mut outcomes = join(&secret, session, faults);
    assert!(round == 2 || key_of(&mut outcomes).is_none());
    let victim = party(if round == 2 { MANAGER } else { MEMBER });
    let abort = outcomes[&Some(victim)].abort().expect("the victim aborts");
    (abort.cause, abort.culprits.clone())
}

/// Every field of both proofs: its lowest bit, which keeps it in range, and its highest, which does not.
#[test]
fn every_altered_field_is_refused_with_the_sender_as_culprit() {
    for (round, sender, fields) in
        [(1u8, MANAGER, KEY_FIELDS.as_slice()), (2, MEMBER, COMBINED_FIELDS.as_slice())]
    {
        let mut start = SIZE;
        for (name, length) in fields {
            let end = start + length;
            let (cause, culprits) = altered(round, 10, |body| body[end - 1] ^= 1);
            let curve = *name == "masked point";
            let allowed = if curve { AbortCause::MalformedBody } else { AbortCause::WrongProof };
            assert_eq!(
                (cause, culprits),
                (allowed, vec![party(sender)]),
                "round {round}: {name}, lowest bit"
            );
            let (cause, culprits) = altered(round, 11, |body| body[start..end].fill(0xff));
            assert!(
                matches!(cause, AbortCause::MalformedBody | AbortCause::WrongProof),
                "round {round}: {name} too large: {cause}"
            );
            assert_eq!(culprits, vec![party(sender)], "round {round}: {name} too large");
            let (cause, culprits) = altered(round, 12, |body| body[start..end].fill(0));
            assert!(
                matches!(
                    cause,
                    AbortCause::MalformedBody | AbortCause::WrongProof | AbortCause::InvalidScalar
                ),
                "round {round}: {name} zero: {cause}"
            );
            assert_eq!(culprits, vec![party(sender)], "round {round}: {name} zero");
            start = end;
        }
    }
}

#[test]
fn malformed_messages_and_a_wrong_answer_are_refused() {
    let generator = |body: &mut Vec<u8>| body.copy_from_slice(&G1::generator().to_compressed());
    let rows = [
        Row {
            name: "short",
            round: 1,
            change: |b| b.truncate(b.len() - 1),
            cause: AbortCause::MalformedBody,
        },
        Row { name: "long", round: 1, change: |b| b.push(0), cause: AbortCause::MalformedBody },
        Row { name: "empty", round: 2, change: Vec::clear, cause: AbortCause::MalformedBody },
        Row { name: "long", round: 2, change: |b| b.push(0), cause: AbortCause::MalformedBody },
        Row {
            name: "not a unit",
            round: 1,
            change: |b| b[4..4 + 2 * N].fill(0),
            cause: AbortCause::InvalidScalar,
        },
        Row {
            name: "not a unit",
            round: 2,
            change: |b| b[4..4 + 2 * N].fill(0),
            cause: AbortCause::InvalidScalar,
        },
        Row { name: "other point", round: 3, change: generator, cause: AbortCause::WrongPartialSignature },
        Row {
            name: "identity",
            round: 3,
            change: |b| {
                b.fill(0);
                b[0] = 0xc0;
            },
            cause: AbortCause::InvalidPoint,
        },
        Row { name: "no point", round: 3, change: |b| b.fill(0xff), cause: AbortCause::InvalidPoint },
        Row {
            name: "small order",
            round: 3,
            change: |b| b.copy_from_slice(&small_order()),
            cause: AbortCause::InvalidPoint,
        },
        Row {
            name: "masked point of small order",
            round: 1,
            change: |b| b[SIZE + 5 * N..SIZE + 5 * N + POINT].copy_from_slice(&small_order()),
            cause: AbortCause::MalformedBody,
        },
        Row {
            name: "masked point of small order",
            round: 2,
            change: |b| b[SIZE + 6 * N..SIZE + 6 * N + POINT].copy_from_slice(&small_order()),
            cause: AbortCause::MalformedBody,
        },
    ];
    for (number, row) in (20u8..).zip(rows) {
        let culprit = party(if row.round == 2 { MEMBER } else { MANAGER });
        let said = altered(row.round, number, row.change);
        assert_eq!(said, (row.cause, vec![culprit]), "round {}: {}", row.round, row.name);
    }
}

/// A point of order 11, compressed.
fn small_order() -> Vec<u8> {
    hex("99b3e2c8c6bbf59d3c326b531fc1e639d29200c28624ac604f251a12908c9b7f735318617f625954cc71cdf03229b1ef")
}

/// Messages of one session mean nothing in another: the body fits, and the proof is bound to the session.
#[test]
fn messages_of_another_session_are_refused() {
    let (secret, _) = register(4);
    for (round, culprit) in [(1u8, MANAGER), (2, MEMBER)] {
        let mut earlier = Vec::new();
        let record = |packet: sim::Packet| {
            let forged = Forged::open(&packet.bytes).unwrap();
            if forged.round == round {
                earlier = forged.body;
            }
            vec![packet]
        };
        join(&secret, 40, Faults { tamper: Some(Box::new(record)), ..Faults::default() });
        let said = altered(round, 41, |body| body.clone_from(&earlier));
        assert_eq!(said, (AbortCause::WrongProof, vec![party(culprit)]));
    }
}

#[test]
fn a_member_cannot_enter_another_secret() {
    let pair = pair();
    let (secret, _) = register(5);
    let (other, _) = register(6);
    let point = G1::mul_generator(&other);
    let payload = terms(point, 1).payload(&pair.manager_public, &pair.member_public);
    let mut input = member_input(copy(&secret), 1);
    input.terms = terms(point, 1);
    let refused =
        Session::<Join>::start(settings(MEMBER, 50, &payload), None, JoinInput::Member(input), &mut rng(1));
    assert_eq!(refused.err(), Some(SetupError::ShareInvalid));
    // A manager with the key of another epoch.
    let mut input = manager_input(point, 1);
    let (key, _) = pair.custody.group("approvers", 2, &mut rng(51)).unwrap();
    input.issuing_key = Arc::new(key);
    let refused =
        Session::<Join>::start(settings(MANAGER, 50, &payload), None, JoinInput::Manager(input), &mut rng(1));
    assert_eq!(refused.err(), Some(SetupError::ShareInvalid));
    // Sides that were told different things do not hear each other.
    let input = manager_input(point, 2);
    let refused =
        Session::<Join>::start(settings(MANAGER, 50, &payload), None, JoinInput::Manager(input), &mut rng(1));
    assert_eq!(refused.err(), Some(SetupError::PayloadInvalid));
}

/// A join that ends without a signature costs one of the ticket's runs, and neither the ticket nor the secret.
#[test]
fn aborted_join_keeps_ticket_and_secret() {
    let mut registered = Registered::new(70);
    let spoil = |mut packet: sim::Packet| {
        let mut forged = Forged::open(&packet.bytes).unwrap();
        if forged.round == 3 {
            forged.body.copy_from_slice(&G1::generator().to_compressed());
            packet.bytes = forged.encode(&EvidenceKey::from_seed(&Secret::new([1; 32])));
        }
        vec![packet]
    };
    let faults = Faults { tamper: Some(Box::new(spoil)), ..Faults::default() };
    let mut outcomes = registered.join(60, faults);
    assert!(key_of(&mut outcomes).is_none());
    assert!(outcomes[&Some(party(MEMBER))].abort().is_some());
    // Both sides stop, and go on from what they have stored.
    registered.ticket = Ticket::decode(&registered.ticket.encode()).unwrap();
    registered.candidate = Candidate::decode(&registered.candidate.encode()).unwrap();
    let key = key_of(&mut registered.join(61, Faults::default())).unwrap();
    assert_eq!(key.point(), registered.ticket.member().unwrap());
}

/// A run that was counted for another group, or is not the same one at both sides.
#[test]
fn runs_of_another_group_or_number_do_not_start() {
    let pair = pair();
    let mut registered = Registered::new(71);
    let (_, other) = pair.custody.group("approvers", 2, &mut rng(72)).unwrap();
    let start = |attempt: Attempt, payload: &[u8]| {
        let point = *attempt.member();
        let terms = JoinTerms { group: Arc::clone(&pair.group), attempt };
        let input = ManagerInput { terms, ..manager_input(point, 1) };
        Session::<Join>::start(settings(MANAGER, 80, payload), None, JoinInput::Manager(input), &mut rng(1))
            .err()
    };
    let counted = registered.ticket.begin_attempt(&pair.group, &registered.registrar).unwrap();
    let point = *counted.member();
    let payload = terms(point, 2).payload(&pair.manager_public, &pair.member_public);
    assert_eq!(start(counted, &payload), Some(SetupError::PayloadInvalid));
    let foreign = attempt(&other, TICKET, 2, point);
    assert_eq!(start(foreign, &payload), Some(SetupError::ShareMismatch));
    let counted = registered.ticket.begin_attempt(&pair.group, &registered.registrar).unwrap();
    assert_eq!(start(counted, &payload), None);
}

#[test]
fn parameters_that_are_not_proven_are_refused() {
    let pair = pair();
    let check = |bytes: &[u8], label: &[u8]| Parameters::check(bytes, SHORT, label).err();
    let proven = pair.manager.proven();
    assert_eq!(check(proven, b"manager"), None);
    assert_eq!(check(proven, b"somebody else"), Some(SetUpError::ModulusProof));
    assert_eq!(check(&proven[..proven.len() - 1], b"manager"), Some(SetUpError::Malformed));
    // modulus, s, t, w, then roots of 2 N + 1 bytes, then the challenge and its responses.
    let bases = 4 * N + 128 * (2 * N + 1);
    for (place, expected) in [
        (N - 1, SetUpError::Modulus),
        (2 * N - 1, SetUpError::ModulusProof),
        (3 * N - 1, SetUpError::ModulusProof),
        (4 * N - 1, SetUpError::ModulusProof),
        (5 * N - 1, SetUpError::ModulusProof),
        (6 * N - 1, SetUpError::ModulusProof),
        (bases, SetUpError::BasesProof),
        (bases + 32 + N - 1, SetUpError::BasesProof),
        (bases + 32 + 128 * N - 1, SetUpError::BasesProof),
    ] {
        let mut changed = proven.to_vec();
        changed[place] ^= if place == N - 1 { 1 } else { 2 };
        assert_eq!(check(&changed, b"manager"), Some(expected), "byte {place}");
    }
    let mut without_root = proven.to_vec();
    without_root[3 * N..4 * N].fill(0);
    assert_eq!(check(&without_root, b"manager"), Some(SetUpError::ModulusProof));
}

/// Moduli and bases that no proof is even looked at for.
#[test]
fn bad_moduli_and_bases_are_refused() {
    let proven = pair().manager.proven();
    let refused = |place: usize, number: &[u8]| {
        let mut changed = proven.to_vec();
        changed[place..place + N].copy_from_slice(number);
        Parameters::check(&changed, SHORT, b"manager").err()
    };
    let n = &proven[..N];
    let prime = BigNum::get_rfc3526_prime_1536().unwrap().to_vec();
    let even: Vec<u8> =
        n.iter().enumerate().map(|(at, byte)| byte & if at == N - 1 { 0xfe } else { 0xff }).collect();
    let short: Vec<u8> =
        n.iter().enumerate().map(|(at, byte)| byte & if at == 0 { 0x7f } else { 0xff }).collect();
    // A multiple of three.
    for modulus in [prime, even, short, vec![0xff; N], vec![0; N]] {
        assert_eq!(refused(0, &modulus), Some(SetUpError::Modulus));
    }
    let (zero, mut one) = (vec![0; N], vec![0; N]);
    one[N - 1] = 1;
    for place in [N, 2 * N] {
        for base in [&zero[..], &one, n, &[0xff; N]] {
            assert_eq!(refused(place, base), Some(SetUpError::Base), "byte {place}");
        }
    }
    // A base that shares a factor with the modulus, and shows it.
    let (p, q) = (hex(include_str!("data/prime-636.txt")), hex(include_str!("data/prime-900.txt")));
    let known = from_factors(&p, &q, b"known", &mut rng(90)).unwrap();
    let mut changed = known.proven().to_vec();
    changed[2 * N..3 * N].fill(0);
    changed[3 * N - p.len()..3 * N].copy_from_slice(&p);
    assert_eq!(Parameters::check(&changed, SHORT, b"known").err(), Some(SetUpError::Base));
}

/// Two primes of the right length, one of which is 1 modulo 4: then -1 is a square, and not every number has a root
/// that the proof asks for.
#[test]
fn modulus_that_is_no_blum_number_is_refused() {
    let prime = |remainder: u32| {
        let (step, remainder) = (BigNum::from_u32(4).unwrap(), BigNum::from_u32(remainder).unwrap());
        let mut prime = BigNum::new().unwrap();
        // Two primes above three quarters of their range have a product of full length.
        while prime.to_vec().first().is_none_or(|&byte| byte < 0xc0) {
            prime.generate_prime(1536 / 2, false, Some(&step), Some(&remainder)).unwrap();
        }
        prime.to_vec()
    };
    let bad = from_factors(&prime(1), &prime(3), b"bad", &mut rng(91)).unwrap();
    let refused = Parameters::check(bad.proven(), SHORT, b"bad").err();
    assert_eq!(refused, Some(SetUpError::ModulusProof));
}

/// A modulus of two primes of unlike length is a product of two primes, but one of them is smaller than allowed.
#[test]
fn proof_about_factors_belongs_to_the_pair() {
    let pair = pair();
    let mut rng = rng(9);
    let stranger = SecretParameters::generate(SHORT, b"stranger", &mut rng).unwrap();
    let stranger_public = Parameters::check(stranger.proven(), SHORT, b"stranger").unwrap();
    let proof = FactorProof::prove(&pair.manager, &stranger_public, &mut rng).unwrap();
    let proof = proof.encode(pair.manager.public(), &stranger_public).unwrap();
    let manager = || Arc::clone(&pair.manager_public);
    assert!(Issuer::check(manager(), &proof, &stranger).is_ok());
    // Its numbers may be too large for the other member's modulus.
    let refused = Issuer::check(manager(), &proof, &pair.member).err();
    assert!(matches!(refused, Some(SetUpError::FactorProof | SetUpError::Malformed)), "{refused:?}");
    for place in (0..proof.len()).step_by(97) {
        let mut changed = proof.clone();
        changed[place] ^= 1;
        let refused = Issuer::check(manager(), &changed, &stranger).err();
        let named = matches!(refused, Some(SetUpError::FactorProof | SetUpError::Malformed));
        assert!(named, "byte {place}: {refused:?}");
    }
    // p of 636 bits, q of 900: the prover follows the protocol, and the response for q is out of range.
    let p = hex(include_str!("data/prime-636.txt"));
    let q = hex(include_str!("data/prime-900.txt"));
    let lopsided = from_factors(&p, &q, b"lopsided", &mut rng).unwrap();
    let lopsided_public = Parameters::check(lopsided.proven(), SHORT, b"lopsided").unwrap();
    let proof = FactorProof::prove(&lopsided, &stranger_public, &mut rng).unwrap();
    let proof = proof.encode(lopsided.public(), &stranger_public).unwrap();
    assert_eq!(
        Issuer::check(Arc::new(lopsided_public), &proof, &stranger).err(),
        Some(SetUpError::FactorProof)
    );
}

/// A machine started twice from one image: two proofs with one mask would show the manager's prime, and two owners
/// would have one modulus.
#[test]
fn repeated_generator_shows_no_factor() {
    let pair = pair();
    let another = SecretParameters::generate(SHORT, b"another", &mut rng(80)).unwrap();
    let stranger = SecretParameters::generate(SHORT, b"stranger", &mut rng(80)).unwrap();
    assert_ne!(another.proven()[..N], stranger.proven()[..N]);
    let proof = |member: &SecretParameters| {
        let proof = FactorProof::prove(&pair.manager, member.public(), &mut rng(81)).unwrap();
        proof.encode(pair.manager.public(), member.public()).unwrap()
    };
    let (first, second) = (proof(&pair.member), proof(&stranger));
    // sigma is drawn like the masks, and is sent as it is, after five numbers.
    let sigma = 5 * N..5 * N + 64;
    assert_ne!(first[sigma.clone()], second[sigma]);
}

fn hex(text: &str) -> Vec<u8> {
    let text = text.trim();
    let padded = if text.len().is_multiple_of(2) { text.to_owned() } else { format!("0{text}") };
    (0..padded.len() / 2).map(|at| u8::from_str_radix(&padded[2 * at..2 * at + 2], 16).unwrap()).collect()
}

/// Messages that arrive twice or never: the member joins or waits, and neither side blames the other.
#[test]
fn lost_and_repeated_messages_blame_nobody() {
    for seed in sim::seeds::wanted("join", 400) {
        let (secret, _) = register(seed ^ 0xabcd);
        let session = u8::try_from(seed % 200).unwrap() + 50;
        let faults = Faults { duplicated_percent: 40, dropped_percent: 20, ..Faults::default() };
        let mut outcomes = join(&secret, session, faults);
        for outcome in outcomes.values() {
            assert!(outcome.aborts.is_empty(), "seed {seed}");
        }
        let manager_waits = outcomes[&Some(party(MANAGER))].done.is_none();
        let joined = key_of(&mut outcomes).is_some();
        assert!(!(joined && manager_waits), "seed {seed}");
    }
}
