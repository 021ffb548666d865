//! Coordinators, signers and their stores over a network that fails, from seeds: orders for signing, presigning and
//! signing with presignatures, messages that are late, lost or come twice, crashes and restarts at any moment, stores
//! put back to an older copy, a coordinator that orders one presignature for two requests.
//!
//! What must hold, seen from the wire and from the answers alone ([`Checker`]): nothing that may be used once is used
//! twice, one answer a request, and nothing signed that was not asked for. And when the faults end, every request gets
//! its answer.
//!
//! `make sim SEED=<number>` repeats one seed, `make sim RUNS=<count>` runs that many; see [`sim::seeds`].

use core::any::type_name;
use std::collections::{BTreeMap, BTreeSet};

use engine::forge::Forged;
use engine::session::{Progress, Session, Step};
use engine::{Abort, PartyId, Protocol, SessionId, SessionSettings};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sim::seeds;

use crate::common::{self, party, roster, threshold};

pub mod hostile;

/// What a request asks to have signed.
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

/// What the schedules need of a scheme.
pub trait Scheme: Sized + 'static {
    type Share: 'static;
    type Presignature;
    type Signature: Clone + PartialEq;
    /// What [`Scheme::seen`] remembers of earlier messages.
    type Memory: Default;
    type Presigning: Protocol<Input = Self::Share, Output = Vec<Self::Presignature>>;
    type Signing: Protocol<Output = Self::Signature>;
    type PresignedSigning: Protocol<Output = Self::Signature>;

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

    /// What must be another for every signature.
    fn nonce_point(signature: &Self::Signature) -> Vec<u8>;
    /// Tells the checker what of a message may be seen once only, and what it is the last word on.
    fn seen(message: &Forged, memory: &mut Self::Memory, checker: &mut Checker<Self>);
}

/// What a coordinator tells the signers to do.
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

/// What comes out of a session at a signer or an observer.
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

impl<S: Scheme> Turn<S> {
    /// Among parties that all follow the rules nothing can fail.
    fn assert_no_abort(&self) {
        assert!(self.aborted.is_none(), "{:?}", self.aborted);
    }
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

/// What a signer's disk holds.
#[derive(Clone, Default)]
struct Store {
    claims: BTreeMap<u8, Digest>,
    sessions: BTreeSet<Name>,
}

/// What a signer loses when it stops.
struct Memory<S: Scheme> {
    sessions: BTreeMap<Name, (Order, Running<S>)>,
    pool: BTreeMap<Name, S::Presignature>,
    /// Came before their order.
    early: BTreeMap<Name, Vec<(u32, Vec<u8>)>>,
}

impl<S: Scheme> Default for Memory<S> {
    fn default() -> Self {
        Self { sessions: BTreeMap::new(), pool: BTreeMap::new(), early: BTreeMap::new() }
    }
}

struct Signer<S: Scheme> {
    number: u32,
    store: Store,
    older: Store,
    memory: Memory<S>,
    /// Orders from before this moment are refused, as if past their deadline. This is so only that each request here
    /// has one answer: `hostile.rs` repeats an order to a signer whose store was put back.
    not_before: usize,
    /// For the test of the checker: copies of presignatures, which outlive use and restart.
    careless: Option<BTreeMap<Name, Vec<u8>>>,
}

impl<S: Scheme> Signer<S> {
    fn crash(&mut self, restore: bool, now: usize) {
        self.memory = Memory::default();
        if restore {
            self.store = self.older.clone();
            self.not_before = now;
        }
    }

    fn take_presignature(&mut self, name: &Name) -> Option<S::Presignature> {
        let kept = self.memory.pool.remove(name);
        let copy = self.careless.as_ref().and_then(|copies| copies.get(name));
        kept.or_else(|| S::unseal(copy?))
    }

    /// Checks an order, claims it, starts it. `None` if it is refused.
    fn begin(&mut self, order: &Order, rng: &mut ChaCha20Rng) -> Option<(Running<S>, Turn<S>)> {
        let share = &S::shares()[&self.number];
        if order.given < self.not_before || !self.store.sessions.insert(order.session) {
            return None;
        }
        let Work::Sign { request, digest, presignature } = &order.work else {
            let settings = settings(self.number, order, S::presign_payload());
            let (session, step) =
                Session::<S::Presigning>::start(settings, None, S::reopen(share), rng).ok()?;
            return Some((Running::Presign(session), turn(step, Made::Presignatures)));
        };
        // Out of the pool before anything else, never to come back.
        let burnt = presignature.and_then(|name| self.take_presignature(&name));
        if self.store.claims.get(request).is_some_and(|claimed| claimed != digest) {
            return None;
        }
        self.store.claims.insert(*request, *digest);
        let settings = settings(self.number, order, S::sign_payload(*digest, *presignature));
        if presignature.is_some() {
            let input = S::holder(burnt?);
            let (session, step) = Session::<S::PresignedSigning>::start(settings, None, input, rng).ok()?;
            Some((Running::Presigned(session), turn(step, Made::Signature)))
        } else {
            let input = S::party(S::reopen(share));
            let (session, step) = Session::<S::Signing>::start(settings, None, input, rng).ok()?;
            Some((Running::Sign(session), turn(step, Made::Signature)))
        }
    }
}

struct Coordinator<S: Scheme> {
    /// Durable.
    answers: BTreeMap<u8, S::Signature>,
    /// Running attempts with their observers.
    attempts: BTreeMap<Name, (u8, Digest, Running<S>)>,
    /// Presignings, and who has reported.
    making: BTreeMap<Name, (Vec<u32>, BTreeSet<u32>)>,
    pool: Vec<(Name, Vec<u32>)>,
}

impl<S: Scheme> Coordinator<S> {
    fn with(answers: BTreeMap<u8, S::Signature>) -> Self {
        Self { answers, attempts: BTreeMap::new(), making: BTreeMap::new(), pool: Vec::new() }
    }

    /// Only the answers are on disk.
    fn crash(&mut self) {
        *self = Self::with(core::mem::take(&mut self.answers));
    }
}

/// Its kind, its sender, its value.
type OneTime = (&'static str, u32, Vec<u8>);
/// Session, run nonce, process.
type RunName = (Name, [u8; 16], usize);

/// Watches the wire and the answers.
pub struct Checker<S: Scheme> {
    /// One-time values: the run in which they were first seen.
    once: BTreeMap<OneTime, RunName>,
    /// The process whose message is looked at, where a party may have several.
    process: usize,
    /// Last words by (sender, nonce point).
    partials: BTreeMap<(u32, Vec<u8>), Vec<u8>>,
    /// Nonce point of each signature: what was signed.
    signed: BTreeMap<Vec<u8>, (S::Signature, Digest)>,
    /// What was asked for under each request, and the one digest of it that was signed.
    requested: BTreeSet<(u8, Digest)>,
    settled: BTreeMap<u8, Digest>,
    answered: BTreeMap<u8, S::Signature>,
    pub violations: Vec<String>,
}

impl<S: Scheme> Checker<S> {
    fn new() -> Self {
        Self {
            once: BTreeMap::new(),
            process: 0,
            partials: BTreeMap::new(),
            signed: BTreeMap::new(),
            requested: BTreeSet::new(),
            settled: BTreeMap::new(),
            answered: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    /// A value that must not be seen in another session, or in another run of this one.
    pub fn once(&mut self, what: &'static str, message: &Forged, value: &[u8]) {
        let from = u32::from(message.sender.get());
        let run = (message.session, message.run, self.process);
        if *self.once.entry((what, from, value.to_vec())).or_insert(run) != run {
            self.violations.push(format!("{what} of party {from} in two runs"));
        }
    }

    /// A partial signature: there must be no other with that nonce.
    pub fn partial(&mut self, message: &Forged, nonce_point: &[u8]) {
        let from = u32::from(message.sender.get());
        let said = self.partials.entry((from, nonce_point.to_vec())).or_insert_with(|| message.body.clone());
        if *said != message.body {
            self.violations.push(format!("party {from} gave two partial signatures for one nonce"));
        }
    }

    /// Anybody's result.
    fn signature(&mut self, request: u8, digest: Digest, signature: &S::Signature) {
        if !S::verifies(signature, &digest) {
            self.violations.push(format!("request {request}: not a signature"));
        }
        if !self.requested.contains(&(request, digest)) {
            self.violations.push(format!("request {request}: signed what was not asked for"));
        }
        if *self.settled.entry(request).or_insert(digest) != digest {
            self.violations.push(format!("request {request}: two digests signed"));
        }
        self.nonce_of(digest, signature);
    }

    /// There must be no other signature with that nonce.
    fn nonce_of(&mut self, digest: Digest, signature: &S::Signature) {
        let nonce = S::nonce_point(signature);
        let (other, of) = self.signed.entry(nonce).or_insert_with(|| (signature.clone(), digest));
        if other != signature || *of != digest {
            self.violations.push("one nonce in two signatures".to_owned());
        }
    }

    fn answer(&mut self, request: u8, signature: &S::Signature) {
        if self.answered.entry(request).or_insert_with(|| signature.clone()) != signature {
            self.violations.push(format!("request {request}: two answers"));
        }
    }
}

#[derive(Default, Debug)]
pub struct Counts {
    presigned: usize,
    interactive: usize,
    presignatures: usize,
    crashes: usize,
    mixed: usize,
    refused: usize,
}

pub struct World<S: Scheme> {
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
    /// One schedule; with `careless` signers the checker has something to find.
    pub fn new(seed: u64, careless: bool) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let signers = PARTIES.map(|number| {
            let careless = careless.then(BTreeMap::new);
            let memory = Memory::default();
            (
                number,
                Signer {
                    number,
                    store: Store::default(),
                    older: Store::default(),
                    memory,
                    not_before: 0,
                    careless,
                },
            )
        });
        let (dropped_percent, duplicated_percent) = (rng.next_u64() % 12, rng.next_u64() % 30);
        Self {
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

    fn post(&mut self, message: Message) {
        if let Message::Envelope { bytes, .. } = &message {
            S::seen(&Forged::open(bytes).unwrap(), &mut self.remembered, &mut self.checker);
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
    fn request(&mut self, request: u8, digest: Digest) {
        self.checker.requested.insert((request, digest));
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

    /// What a signer's session sent and made.
    fn apply(&mut self, from: u32, order: &Order, turn: Turn<S>) {
        turn.assert_no_abort();
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
                for (name, made) in presignatures.iter().zip(made) {
                    let made = match &mut signer.careless {
                        None => made,
                        Some(copies) => {
                            let blob = S::seal(made, &mut self.rng);
                            copies.insert(*name, blob.clone());
                            S::unseal(&blob).unwrap()
                        }
                    };
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
        turn.assert_no_abort();
        let Some(Made::Signature(signature)) = turn.made else { return };
        match observer {
            Running::Presigned(_) => self.counts.presigned += 1,
            Running::Sign(_) | Running::Presign(_) => self.counts.interactive += 1,
        }
        self.coordinator.attempts.remove(&session);
        self.checker.signature(request, digest, &signature);
        // The first one is stored before anybody is told, and it is the one that everybody is told.
        let answer = self.coordinator.answers.entry(request).or_insert(signature).clone();
        self.checker.answer(request, &answer);
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
    pub fn run(mut self) -> (Checker<S>, Counts) {
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
            // Nothing is under way: whoever has no answer asks again.
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
        |seed| World::<S>::new(seed, false).run(),
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

/// Signers whose presignatures outlive them are caught by what they send.
pub fn the_checker_sees_presignatures_that_come_back<S: Scheme>() {
    let caught = (0..60).any(|seed| {
        let (checker, _) = World::<S>::new(seed, true).run();
        checker.violations.iter().any(|violation| violation.contains("for one nonce"))
    });
    assert!(caught);
}
