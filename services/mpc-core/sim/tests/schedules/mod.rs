//! Coordinators, signers and their stores over a network that fails, from seeds: orders for signing, presigning and
//! signing with presignatures, messages that are late, lost or come twice, crashes and restarts at any moment, stores
//! put back to an older copy, a coordinator that orders one presignature for two requests.
//!
//! The rules, seen from the wire and from the answers alone ([`Checker`]): nothing that may be used once is used twice,
//! one answer a request, and nothing signed that was not asked for. And when the faults end, every request gets its
//! answer.
//!
//! `make sim SEED=<number>` repeats one seed, `make sim RUNS=<count>` runs that many; see [`sim::seeds`].

use core::any::type_name;
use std::collections::{BTreeMap, BTreeSet};

use engine::forge::Forged;
use engine::session::{Progress, Session, Step};
use engine::{Abort, PartyId, Protocol, SessionId, SessionSettings};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sim::lies::Lie;
use sim::seeds;

pub use checker::Checker;
use signer::{Coordinator, Signer};

use crate::common::{self, party, roster, threshold};

mod checker;
pub mod hostile;
mod signer;

/// How a world departs from the rules, so that a check has something to find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// Presignatures outlive their use and their process.
    PresignaturesStay,
    /// Signers forget which digest a request has.
    ClaimsForgotten,
    /// The coordinator forgets its answers when it stops.
    AnswersForgotten,
    /// The coordinator takes the answer to one request for that to another.
    AnswersMixed,
    /// The coordinator orders what nobody asked for.
    OrdersInvented,
    /// The channel changes messages.
    ChannelAlters,
    /// Signers too many to sign without are not started again after the faults.
    StayDown,
}

/// The digest that a request asks to have signed.
fn digest_of(request: u8) -> Digest {
    [0x40 | request; 32]
}

fn all_but(left_out: usize) -> Vec<u32> {
    (0..).zip(PARTIES).filter(|(at, _)| *at != left_out).map(|(_, number)| number).collect()
}

pub const PARTIES: [u32; 3] = [1, 2, 3];
pub const T: u32 = 2;
/// Requests of one schedule.
const REQUESTS: u8 = 3;
/// Things that happen while faults do.
const FAULTY_EVENTS: usize = 150;
/// Things that may happen after they ended, before every request must have its answer.
const HEALING_EVENTS: usize = 4_000;

pub type Digest = [u8; 32];
/// Presignatures that one session makes.
pub const BATCH: u8 = 2;

/// Of a session, or of a presignature.
pub type Name = [u8; 32];

/// Everything that the schedules need of a scheme.
pub trait Scheme: Sized + 'static {
    type Share: 'static;
    type Presignature;
    type Signature: Clone + PartialEq;
    /// The data that [`Scheme::seen`] remembers of earlier messages.
    type Memory: Default;
    type Presigning: Protocol<Input = Self::Share, Output = Vec<Self::Presignature>>;
    type Signing: Protocol<Output = Self::Signature>;
    type PresignedSigning: Protocol<Output = Self::Signature>;
    /// Lies that fit few of its envelopes.
    const RARE_LIES: &'static [Lie];
    /// The values that [`Scheme::seen`] tells of, each with the round of a protocol that shows it.
    const ONE_TIME: &'static [(&'static str, u8)];

    /// Of [`PARTIES`], [`T`] of whom sign; by party number.
    fn shares() -> &'static BTreeMap<u32, Self::Share>;
    fn reopen(share: &Self::Share) -> Self::Share;

    /// Of a session that makes [`BATCH`].
    fn presign_payload() -> Vec<u8>;
    fn sign_payload(digest: Digest, presignature: Option<Name>) -> Vec<u8>;
    fn party(share: Self::Share) -> <Self::Signing as Protocol>::Input;
    fn observer() -> <Self::Signing as Protocol>::Input;
    fn holder(presignature: Self::Presignature) -> <Self::PresignedSigning as Protocol>::Input;
    fn presigned_observer() -> <Self::PresignedSigning as Protocol>::Input;

    fn id(presignature: &Self::Presignature) -> Name;
    fn seal(presignature: Self::Presignature, rng: &mut ChaCha20Rng) -> Vec<u8>;
    fn unseal(blob: &[u8]) -> Option<Self::Presignature>;

    /// Of parties 1 to 5, three of whom sign.
    fn large_committee() -> &'static BTreeMap<u32, Self::Share>;
    /// Under the key of this share.
    fn verifies_with(share: &Self::Share, signature: &Self::Signature, digest: &Digest) -> bool;

    fn verifies(signature: &Self::Signature, digest: &Digest) -> bool {
        Self::verifies_with(&Self::shares()[&1], signature, digest)
    }

    /// The nonce point, which must be another for every signature.
    fn nonce_point(signature: &Self::Signature) -> Vec<u8>;
    /// Tells the checker what of a message may be seen once only, and what it is the last word on.
    fn seen(message: &Forged, memory: &mut Self::Memory, checker: &mut Checker<Self>);
}

/// The work that a coordinator orders from the signers.
#[derive(Clone, Debug)]
struct Order {
    session: Name,
    /// When, counted in events.
    given: usize,
    signers: Vec<u32>,
    work: Work,
}

#[derive(Clone, Debug)]
enum Work {
    Presign,
    Sign { request: u8, digest: Digest, presignature: Option<Name> },
}

/// Under way. 0 is the coordinator.
#[derive(Clone, Debug)]
enum Message {
    Order { to: u32, order: Order },
    Envelope { from: u32, to: u32, session: Name, bytes: Vec<u8> },
    Made { from: u32, session: Name, presignatures: Vec<Name> },
    Refused { presignature: Option<Name>, session: Name },
}

enum Running<S: Scheme> {
    Presign(Session<S::Presigning>),
    Sign(Session<S::Signing>),
    Presigned(Session<S::PresignedSigning>),
}

/// The result of a session at a signer or an observer.
enum Made<S: Scheme> {
    Presignatures(Vec<S::Presignature>),
    Signature(S::Signature),
}

struct Turn<S: Scheme> {
    outgoing: Vec<(u32, Vec<u8>)>,
    made: Option<Made<S>>,
    aborted: Option<Abort>,
    /// The parties it waits for now, if it does.
    missing: Option<Vec<PartyId>>,
}

fn turn<S: Scheme, T>(step: Step<T>, made: impl FnOnce(T) -> Made<S>) -> Turn<S> {
    let outgoing = step
        .outgoing
        .iter()
        .map(|envelope| (envelope.recipient().map_or(0, |to| u32::from(to.get())), envelope.encode()))
        .collect();
    let mut turn = Turn { outgoing, made: None, aborted: None, missing: None };
    match step.progress {
        Progress::Done(output) => turn.made = Some(made(output)),
        Progress::Aborted(abort) => turn.aborted = Some(abort),
        Progress::Waiting { missing } => turn.missing = Some(missing.iter().collect()),
        Progress::Dropped(_) => (),
    }
    turn
}

impl<S: Scheme> Running<S> {
    fn handle(&mut self, from: u32, bytes: &[u8], rng: &mut ChaCha20Rng) -> Turn<S> {
        let from = party(from);
        match self {
            Running::Presign(session) => turn(session.handle(from, bytes, rng), Made::Presignatures),
            Running::Sign(session) => turn(session.handle(from, bytes, rng), Made::Signature),
            Running::Presigned(session) => turn(session.handle(from, bytes, rng), Made::Signature),
        }
    }
}

fn start<P: Protocol>(settings: SessionSettings, input: P::Input, rng: &mut ChaCha20Rng) -> Session<P> {
    Session::<P>::start(settings, None, input, rng).unwrap().0
}

fn settings(me: u32, order: &Order, payload: Vec<u8>) -> SessionSettings {
    settings_of((me, T), order, payload)
}

fn settings_of((me, t): (u32, u32), order: &Order, payload: Vec<u8>) -> SessionSettings {
    SessionSettings {
        session_id: SessionId::new(order.session),
        me: (me != 0).then(|| party(me)),
        roster: roster(&order.signers),
        threshold: threshold(t),
        key_id: common::KEY_ID.to_owned(),
        epoch: 1,
        payload,
    }
}

#[derive(Default, Debug)]
struct Counts {
    presigned: usize,
    interactive: usize,
    presignatures: usize,
    crashes: usize,
    mixed: usize,
    refused: usize,
}

struct World<S: Scheme> {
    mutant: Mutant,
    rng: ChaCha20Rng,
    signers: BTreeMap<u32, Signer<S>>,
    coordinator: Coordinator<S>,
    network: Vec<Message>,
    remembered: S::Memory,
    checker: Checker<S>,
    counts: Counts,
    dropped_percent: u64,
    duplicated_percent: u64,
    faulty: bool,
    now: usize,
}

impl<S: Scheme> World<S> {
    fn new(seed: u64, mutant: Mutant) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let signers = PARTIES.map(|number| (number, Signer::new(number, mutant)));
        let (dropped_percent, duplicated_percent) = (rng.next_u64() % 12, rng.next_u64() % 30);
        Self {
            mutant,
            rng,
            signers: signers.into_iter().collect(),
            coordinator: Coordinator::with(BTreeMap::new()),
            network: Vec::new(),
            remembered: S::Memory::default(),
            checker: Checker::new(),
            counts: Counts::default(),
            dropped_percent,
            duplicated_percent,
            faulty: true,
            now: 0,
        }
    }

    fn pick(&mut self, count: usize) -> usize {
        (self.rng.next_u64() % count as u64) as usize
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.faulty && self.rng.next_u64() % 100 < percent
    }

    fn name(&mut self) -> Name {
        let mut name = [0; 32];
        self.rng.fill_bytes(&mut name);
        name
    }

    fn post(&mut self, mut message: Message) {
        if let Message::Envelope { bytes, .. } = &mut message {
            S::seen(&Forged::open(bytes).unwrap(), &mut self.remembered, &mut self.checker);
            if self.mutant == Mutant::ChannelAlters {
                *bytes.last_mut().unwrap() ^= 1;
            }
        }
        if self.chance(self.dropped_percent) {
            return;
        }
        if self.chance(self.duplicated_percent) {
            self.network.push(message.clone());
        }
        self.network.push(message);
    }

    fn order(&mut self, order: &Order) {
        for to in order.signers.clone() {
            self.post(Message::Order { to, order: order.clone() });
        }
    }

    /// A client asks, and asks again until it has its answer. A request id belongs to the digest that came with it
    /// first.
    fn request(&mut self, request: u8, mut digest: Digest) {
        self.checker.requested.insert((request, digest));
        if self.mutant == Mutant::OrdersInvented {
            digest[1] ^= 1;
        }
        if let Some(signature) = self.coordinator.answers.get(&request).cloned() {
            self.checker.answer(request, &signature);
            return;
        }
        let (name, signers) = match self.coordinator.pool.pop() {
            Some((name, signers)) => (Some(name), signers),
            None => {
                let left_out = self.pick(PARTIES.len() + 1);
                (None, all_but(left_out))
            }
        };
        self.attempt(request, digest, name, &signers);
        // A coordinator that orders the same presignature for another request: signers must see through it.
        let other = (request + 1) % REQUESTS;
        if name.is_some() && self.chance(25) {
            self.counts.mixed += 1;
            self.checker.requested.insert((other, digest_of(other)));
            self.attempt(other, digest_of(other), name, &signers);
        }
    }

    fn attempt(&mut self, request: u8, digest: Digest, presignature: Option<Name>, signers: &[u32]) {
        let work = Work::Sign { request, digest, presignature };
        let order = Order { session: self.name(), given: self.now, signers: signers.to_vec(), work };
        let observed = settings(0, &order, S::sign_payload(digest, presignature));
        let observer = if presignature.is_some() {
            Running::Presigned(start::<S::PresignedSigning>(observed, S::presigned_observer(), &mut self.rng))
        } else {
            Running::Sign(start::<S::Signing>(observed, S::observer(), &mut self.rng))
        };
        self.coordinator.attempts.insert(order.session, (request, digest, observer));
        self.order(&order);
    }

    fn presign(&mut self) {
        let left_out = self.pick(PARTIES.len());
        let signers = all_but(left_out);
        let order =
            Order { session: self.name(), given: self.now, signers: signers.clone(), work: Work::Presign };
        self.coordinator.making.insert(order.session, (signers, BTreeSet::new()));
        self.order(&order);
    }

    fn deliver(&mut self) {
        let at = self.pick(self.network.len());
        match self.network.swap_remove(at) {
            Message::Order { to, order } => self.hear_order(to, &order),
            Message::Envelope { from, to: 0, session, bytes } => self.observe(from, session, &bytes),
            Message::Envelope { from, to, session, bytes } => {
                let memory = &mut self.signers.get_mut(&to).unwrap().memory;
                match memory.sessions.get_mut(&session) {
                    None => memory.early.entry(session).or_default().push((from, bytes)),
                    Some((order, running)) => {
                        let (order, turn) = (order.clone(), running.handle(from, &bytes, &mut self.rng));
                        self.apply(to, &order, turn);
                    }
                }
            }
            Message::Made { from, session, presignatures } => {
                let Some((signers, reported)) = self.coordinator.making.get_mut(&session) else { return };
                reported.insert(from);
                if reported.len() == signers.len() {
                    let (signers, _) = self.coordinator.making.remove(&session).unwrap();
                    self.counts.presignatures += presignatures.len();
                    let pool = &mut self.coordinator.pool;
                    pool.extend(presignatures.into_iter().map(|name| (name, signers.clone())));
                }
            }
            Message::Refused { presignature, session } => {
                self.counts.refused += 1;
                self.coordinator.attempts.remove(&session);
                self.coordinator.pool.retain(|(name, _)| Some(*name) != presignature);
            }
        }
    }

    fn hear_order(&mut self, to: u32, order: &Order) {
        if self.mutant == Mutant::StayDown && !self.faulty && to >= T {
            return;
        }
        let signer = self.signers.get_mut(&to).unwrap();
        let Some((running, first)) = signer.begin(order, &mut self.rng) else {
            let presignature = match &order.work {
                Work::Sign { presignature, .. } => *presignature,
                Work::Presign => None,
            };
            // An order that came twice is nothing to report.
            if !signer.memory.sessions.contains_key(&order.session) {
                self.post(Message::Refused { presignature, session: order.session });
            }
            return;
        };
        signer.memory.sessions.insert(order.session, (order.clone(), running));
        let early = signer.memory.early.remove(&order.session).unwrap_or_default();
        self.apply(to, order, first);
        for (from, bytes) in early {
            self.network.push(Message::Envelope { from, to, session: order.session, bytes });
        }
    }

    /// Takes what a signer's session sent and made.
    fn apply(&mut self, from: u32, order: &Order, turn: Turn<S>) {
        self.look_for_aborts(&turn);
        let session = order.session;
        for (recipient, bytes) in turn.outgoing {
            let all = order.signers.iter().copied().chain([0]);
            let to: Vec<u32> =
                if recipient == 0 { all.filter(|to| *to != from).collect() } else { vec![recipient] };
            for to in to {
                self.post(Message::Envelope { from, to, session, bytes: bytes.clone() });
            }
        }
        match (turn.made, &order.work) {
            (Some(Made::Presignatures(made)), _) => {
                let presignatures: Vec<Name> = made.iter().map(S::id).collect();
                let signer = self.signers.get_mut(&from).unwrap();
                for (name, mut made) in presignatures.iter().zip(made) {
                    if self.mutant == Mutant::PresignaturesStay {
                        let blob = S::seal(made, &mut self.rng);
                        made = S::unseal(&blob).unwrap();
                        signer.copies.insert(*name, blob);
                    }
                    signer.memory.pool.insert(*name, made);
                }
                self.post(Message::Made { from, session, presignatures });
            }
            (Some(Made::Signature(signature)), Work::Sign { request, digest, .. }) => {
                self.checker.signature(*request, *digest, &signature);
            }
            (Some(Made::Signature(_)), Work::Presign) | (None, _) => (),
        }
    }

    /// The coordinator hears the last round.
    fn observe(&mut self, from: u32, session: Name, bytes: &[u8]) {
        let Some((request, digest, observer)) = self.coordinator.attempts.get_mut(&session) else { return };
        let (request, digest) = (*request, *digest);
        let turn = observer.handle(from, bytes, &mut self.rng);
        let presigned = matches!(observer, Running::Presigned(_));
        self.look_for_aborts(&turn);
        let Some(Made::Signature(signature)) = turn.made else { return };
        let count = if presigned { &mut self.counts.presigned } else { &mut self.counts.interactive };
        *count += 1;
        self.coordinator.attempts.remove(&session);
        let digest = if self.mutant == Mutant::AnswersMixed { digest_of(REQUESTS) } else { digest };
        self.checker.signature(request, digest, &signature);
        // The first one is stored before anybody is told, and it is the one that everybody is told.
        let answer = self.coordinator.answers.entry(request).or_insert(signature).clone();
        self.checker.answer(request, &answer);
    }

    /// Among parties that all follow the rules nothing can fail.
    fn look_for_aborts(&mut self, turn: &Turn<S>) {
        let found = turn.aborted.iter().map(|abort| format!("an abort among honest parties: {abort}"));
        self.checker.violations.extend(found);
    }

    fn something_happens(&mut self, restores: bool) {
        match self.pick(100) {
            0..7 => {
                let request = self.pick(usize::from(REQUESTS)) as u8;
                let mut digest = digest_of(request);
                // A client that uses a request id again for something else. After a restore this signer or that one
                // has forgotten the first use, so there it is not tried.
                if !restores && self.chance(10) {
                    digest[0] ^= 1;
                }
                self.request(request, digest);
            }
            7..12 => self.presign(),
            12 | 13 => {
                let at = self.pick(PARTIES.len());
                let restore = restores && self.pick(2) == 0;
                self.counts.crashes += 1;
                self.signers.get_mut(&PARTIES[at]).unwrap().crash(restore, self.now);
            }
            14 => {
                self.counts.crashes += 1;
                self.coordinator.crash();
                if self.mutant == Mutant::AnswersForgotten {
                    self.coordinator.answers.clear();
                }
            }
            15 | 16 => {
                let at = self.pick(PARTIES.len());
                let signer = self.signers.get_mut(&PARTIES[at]).unwrap();
                signer.older = signer.store.clone();
            }
            _ if self.network.is_empty() => (),
            _ => self.deliver(),
        }
    }

    /// Runs it.
    fn run(mut self) -> (Checker<S>, Counts) {
        let restores = self.pick(3) == 0;
        for now in 0..FAULTY_EVENTS {
            self.now = now;
            self.something_happens(restores);
        }
        (self.faulty, self.now) = (false, FAULTY_EVENTS);
        let mut abandoned = BTreeSet::new();
        for _ in 0..HEALING_EVENTS {
            if !self.network.is_empty() {
                self.deliver();
                continue;
            }
            // Nothing is under way: a requester without an answer asks again.
            self.coordinator.attempts.clear();
            let closed =
                |request: &u8| self.coordinator.answers.contains_key(request) || abandoned.contains(request);
            let open = (0..REQUESTS).find(|request| !closed(request));
            let Some(request) = open else { return (self.checker, self.counts) };
            // With the digest that the request id belongs to, if signers hold one to it.
            let claims = self.signers.values().filter_map(|signer| signer.store.claims.get(&request));
            let claimed: BTreeSet<Digest> = claims.copied().collect();
            match claimed.len() {
                0 | 1 => self.request(request, claimed.first().copied().unwrap_or(digest_of(request))),
                // A client that used it for two, and signers that heard one each: that is between them.
                _ => {
                    abandoned.insert(request);
                }
            }
        }
        self.checker.violations.push("a request without an answer after the faults".to_owned());
        (self.checker, self.counts)
    }
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.presigned += other.presigned;
        self.interactive += other.interactive;
        self.presignatures += other.presignatures;
        self.crashes += other.crashes;
        self.mixed += other.mixed;
        self.refused += other.refused;
    }
}

/// The test of a scheme.
pub fn nothing_is_used_twice_and_every_request_has_one_answer<S: Scheme>() {
    let seeds = seeds::wanted(&format!("requests {}", type_name::<S>()), 10_000);
    let mut counts = Counts::default();
    seeds::run_all(
        &seeds,
        |seed| World::<S>::new(seed, Mutant::None).run(),
        |checker, of_one| {
            counts.add(of_one);
            checker.violations.clone()
        },
    );
    let runs = seeds.len();
    println!("{runs} schedules: {counts:?}");
    if runs >= 100 {
        assert!(counts.presigned > runs / 2 && counts.interactive > runs / 2, "{counts:?}");
        assert!(counts.mixed > 0 && counts.refused > runs / 4 && counts.crashes > runs, "{counts:?}");
    }
}

/// The checks find what each mutant does wrong, at or after a seed that has shown it.
pub fn each_check_of_requests_finds_its_mutant<S: Scheme>() {
    for (mutant, expected, first) in [
        (Mutant::PresignaturesStay, "two partial signatures for one nonce", 0),
        (Mutant::PresignaturesStay, "in two runs", 0),
        (Mutant::ClaimsForgotten, "two digests signed", 9),
        (Mutant::AnswersForgotten, "two answers", 0),
        (Mutant::AnswersMixed, "not a signature", 0),
        (Mutant::AnswersMixed, "one nonce in two signatures", 0),
        (Mutant::OrdersInvented, "signed what was not asked for", 0),
        (Mutant::ChannelAlters, "an abort among honest parties", 0),
        (Mutant::StayDown, "a request without an answer", 0),
    ] {
        let run = |seed| World::<S>::new(seed, mutant).run().0.violations;
        seeds::must_find(first..first + 200, &format!("{mutant:?}"), expected, run);
    }
}
