//! Whole admissions under faults, from ticket to credential: messages are lost, come twice, or come again from earlier,
//! and member and issuers are killed at every step and go on from what they have stored. Nobody is blamed, a ticket
//! gives one member, no run begins twice, and once the faults end the member joins, unless its runs are spent.

use std::collections::{BTreeMap, BTreeSet};

use engine::session::Session;
use engine::{AbortCause, EvidenceKey, PartyId, PartySet, Secret};
use group_signatures::{
    Acceptance, Applicant, Application, Attempt, Candidate, Decision, Invitation, MAX_ATTEMPTS, MemberKey,
    RegistrationError, Request, RunOrder,
};
use primitives::bls12_381::Scalar;
use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use sim::schedule::{pick, sum};
use sim::{Faults, Outcome, Packet, World};
use threshold_issuer::{Join, JoinInput, JoinOutput, Part, PartShare, Reservations};

use crate::installation::{
    ABOVE, BELOW, Installation, Outcomes, evidence_key, key_of, party, rng, session_id,
};
use crate::registration::Store;

const FULL: u64 = 10_000;
const ISSUERS: [u32; 3] = [11, 12, 13];
/// Most starts of the member's command in a schedule.
const STARTS: usize = 40;

/// A step of an admission.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Step {
    Apply,
    Accept,
    Register,
    Order,
    Join,
    Keep,
}

/// Something that happens in schedules.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Lost(Step),
    AnswerLost(Step),
    Repeated(Step),
    Replayed(Step),
    /// Before anything was stored for the step, or after that and before anything was sent.
    MemberKilled(Step),
    IssuerKilledBefore(Step),
    IssuerKilledAfter(Step),
    JoinedAtOnce,
    JoinedLater,
    /// Of several runs.
    SeveralCredentials,
    Spent,
}

impl Event {
    fn all() -> Vec<Self> {
        let requests = [Step::Apply, Step::Register, Step::Order];
        let of_requests = requests.into_iter().flat_map(|step| {
            [
                Self::Lost(step),
                Self::AnswerLost(step),
                Self::Repeated(step),
                Self::Replayed(step),
                Self::IssuerKilledBefore(step),
                Self::IssuerKilledAfter(step),
            ]
        });
        let of_join =
            [Self::Lost, Self::Repeated, Self::Replayed, Self::IssuerKilledAfter].map(|of| of(Step::Join));
        let of_member = [Step::Apply, Step::Accept, Step::Register, Step::Order, Step::Join, Step::Keep];
        let ends = [Self::JoinedAtOnce, Self::JoinedLater, Self::SeveralCredentials, Self::Spent];
        of_requests.chain(of_join).chain(of_member.map(Self::MemberKilled)).chain(ends).collect()
    }
}

/// Controls: a party that does not store what it must store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// An issuer does not store that it has counted a run.
    ForgetsRun,
    /// The member does not store its half before it sends the application.
    ForgetsHalf,
}

/// An issuer: its disk, and the runs that it has counted and not begun, which a kill takes.
#[derive(Default)]
struct Issuer {
    store: Store,
    part: Option<Part>,
    counted: BTreeMap<[u8; 32], Attempt>,
}

/// The member's folder.
#[derive(Default)]
struct Folder {
    applicant: Option<Vec<u8>>,
    accepted: Option<Accepted>,
    registered: BTreeSet<u32>,
    key: Option<Vec<u8>>,
}

/// The member's store once it has its secret.
struct Accepted {
    candidate: Vec<u8>,
    acceptance: Acceptance,
    shares: Vec<(u32, Vec<u8>)>,
}

impl Accepted {
    fn shares(&self) -> Vec<(PartyId, PartShare)> {
        self.shares
            .iter()
            .map(|(issuer, share)| (party(*issuer), PartShare::decode(share).unwrap()))
            .collect()
    }
}

struct Admission {
    choices: ChaCha20Rng,
    /// Of 100 steps this many go wrong.
    percent: usize,
    mutant: Mutant,
    /// The member's number in sessions.
    member: u32,
    identity: EvidenceKey,
    invitation: Invitation,
    folder: Folder,
    issuers: BTreeMap<u32, Issuer>,
    /// Everything that the member has sent to issuers, for replays.
    applications: Vec<Application>,
    orders: Vec<RunOrder>,
    packets: Vec<Packet>,
    /// Each member that has begun a run, with the number of that run.
    begun: BTreeSet<(u32, u8)>,
    credentials: Vec<MemberKey>,
    events: BTreeMap<Event, usize>,
    violations: Vec<String>,
}

impl Admission {
    fn new(seed: u64, mutant: Mutant) -> Self {
        let mut choices = rng(seed);
        let member = [ABOVE, BELOW][pick(&mut choices, 2)];
        let identity = evidence_key(party(member));
        let mut ticket = [0; 32];
        choices.fill_bytes(&mut ticket);
        Self {
            percent: 0,
            mutant,
            member,
            invitation: Invitation { ticket, identity: identity.public() },
            identity,
            folder: Folder::default(),
            issuers: ISSUERS.map(|issuer| (issuer, Issuer::default())).into(),
            applications: Vec::new(),
            orders: Vec::new(),
            packets: Vec::new(),
            begun: BTreeSet::new(),
            credentials: Vec::new(),
            events: BTreeMap::new(),
            violations: Vec::new(),
            choices,
        }
    }

    fn happens(&mut self, event: Event) {
        *self.events.entry(event).or_default() += 1;
    }

    fn goes_wrong(&mut self) -> bool {
        pick(&mut self.choices, 100) < self.percent
    }

    /// Whether the member is killed here.
    fn dies(&mut self, step: Step) -> bool {
        let dies = self.goes_wrong();
        if dies {
            self.happens(Event::MemberKilled(step));
        }
        dies
    }

    /// One request of the member to one issuer, and the answer that arrives.
    fn request<T>(
        &mut self,
        step: Step,
        issuer: u32,
        handle: impl Fn(&mut Self, u32) -> Option<T>,
    ) -> Option<T> {
        if !self.goes_wrong() {
            return handle(self, issuer);
        }
        match pick(&mut self.choices, 5) {
            0 => self.happens(Event::Lost(step)),
            1 => {
                self.happens(Event::AnswerLost(step));
                let _ = handle(self, issuer);
            }
            2 => {
                self.happens(Event::Repeated(step));
                let first = handle(self, issuer);
                return handle(self, issuer).or(first);
            }
            3 => {
                self.happens(Event::IssuerKilledBefore(step));
                self.kill(issuer);
            }
            _ => {
                self.happens(Event::IssuerKilledAfter(step));
                let _ = handle(self, issuer);
                self.kill(issuer);
            }
        }
        None
    }

    /// The disk stays, and the memory goes.
    fn kill(&mut self, issuer: u32) {
        self.issuers.get_mut(&issuer).unwrap().counted.clear();
    }

    fn issuer(&mut self, issuer: u32) -> &mut Issuer {
        self.issuers.get_mut(&issuer).unwrap()
    }

    /// [R1] the stored half, or a new one that is stored before anything is sent.
    fn applicant(&mut self) -> Applicant {
        let stored = self.folder.applicant.clone();
        let applicant = stored.map(|stored| Applicant::decode(&stored).unwrap()).unwrap_or_else(|| {
            Applicant::new(&Installation::usual().group, &self.invitation.ticket, &mut self.choices)
        });
        if self.mutant != Mutant::ForgetsHalf {
            self.folder.applicant = Some(applicant.encode().to_vec());
        }
        applicant
    }

    /// [U1], [U2] at one issuer.
    fn reserve(&mut self, issuer: u32, application: usize) -> Option<(u32, Vec<u8>)> {
        let store = &mut self.issuers.get_mut(&issuer).unwrap().store;
        match store.ask(issuer, &self.invitation, &self.applications[application]) {
            Ok((_, share)) => Some((issuer, share.encode())),
            Err(refused) => {
                self.violations.push(format!("issuer {issuer} refuses an application: {refused}"));
                None
            }
        }
    }

    /// [U4] at one issuer.
    fn register(&mut self, issuer: u32) -> Option<()> {
        let Installation { group, issuers, .. } = Installation::usual();
        let Accepted { acceptance, .. } = self.folder.accepted.as_ref().unwrap();
        let (ticket, shares) = (self.invitation.ticket, || self.folder.accepted.as_ref().unwrap().shares());
        let Issuer { store, part, .. } = self.issuers.get_mut(&issuer).unwrap();
        let Some(reservation) = store.reservations.reservation(&ticket) else {
            self.violations.push(format!("issuer {issuer} has lost its reservation"));
            return None;
        };
        let made = reservation
            .part(group, issuers, &shares())
            .and_then(|part| store.register(&ticket, &shares(), acceptance).map(|_| part));
        match made {
            Ok(made) => *part = Some(Part::decode(&made.encode()).unwrap()),
            Err(refused) => {
                self.violations.push(format!("issuer {issuer} refuses a registration: {refused}"));
                return None;
            }
        }
        Some(())
    }

    /// [U5] at one issuer: counts the run and stores that. A run that was counted already gives no second one.
    fn count(&mut self, issuer: u32, order: usize) -> Option<()> {
        let order = RunOrder::decode(&self.orders[order].encode()).unwrap();
        let mutant = self.mutant;
        let Issuer { store, part, counted } = self.issuer(issuer);
        let mut record = store.records.tickets.first()?.clone();
        match record.begin_ordered(&Installation::usual().group, part.as_ref()?, &order) {
            Ok(run) => {
                if mutant != Mutant::ForgetsRun {
                    store.records.store(&record);
                }
                counted.insert(*order.session(), run);
                self.begins(issuer, order.number());
                Some(())
            }
            Err(RegistrationError::AttemptsSpent) => None,
            Err(refused) => {
                self.violations.push(format!("issuer {issuer} refuses an order: {refused}"));
                None
            }
        }
    }

    fn begins(&mut self, who: u32, number: u8) {
        if !self.begun.insert((who, number)) {
            self.violations.push(format!("party {who} begins run {number} twice"));
        }
    }

    /// An old request of the member comes again.
    fn replay(&mut self, step: Step) {
        let issuer = ISSUERS[pick(&mut self.choices, ISSUERS.len())];
        let (applications, orders) = (self.applications.len(), self.orders.len());
        match step {
            Step::Apply if applications > 1 => {
                let old = pick(&mut self.choices, applications - 1);
                let _ = self.reserve(issuer, old);
            }
            Step::Register if self.folder.registered.contains(&issuer) => {
                let _ = self.register(issuer);
            }
            Step::Order if orders > 1 => {
                let old = pick(&mut self.choices, orders - 1);
                let _ = self.count(issuer, old);
            }
            _ => return,
        }
        self.happens(Event::Replayed(step));
    }

    /// The member's command starts, and goes on where it was. Whether it has ended for good.
    fn start(&mut self) -> bool {
        if self.folder.accepted.is_none() && !self.apply() {
            return false;
        }
        if self.dies(Step::Register) {
            return false;
        }
        for issuer in ISSUERS {
            if !self.folder.registered.contains(&issuer)
                && self.request(Step::Register, issuer, Self::register).is_some()
            {
                self.folder.registered.insert(issuer);
            }
        }
        if self.goes_wrong() {
            self.replay(Step::Register);
        }
        let registered: Vec<u32> = self.folder.registered.iter().copied().collect();
        registered.len() >= 2 && self.join(&registered)
    }

    /// [R1] to [U3]. Whether the member has its secret.
    fn apply(&mut self) -> bool {
        let applicant = self.applicant();
        if self.dies(Step::Apply) {
            return false;
        }
        let application = applicant.apply(&self.identity, &mut self.choices).encode();
        let application = Application::decode(&application).unwrap();
        self.applications.push(application);
        let last = self.applications.len() - 1;
        if self.goes_wrong() {
            self.replay(Step::Apply);
        }
        let mut shares = Vec::new();
        for issuer in ISSUERS {
            let ask = |admission: &mut Self, issuer: u32| admission.reserve(issuer, last);
            shares.extend(self.request(Step::Apply, issuer, ask));
        }
        let Installation { group, issuers, .. } = Installation::usual();
        if shares.len() < issuers.quorum() || self.dies(Step::Accept) {
            return false;
        }
        let decoded: Vec<_> = shares
            .iter()
            .map(|(issuer, share)| (party(*issuer), PartShare::decode(share).unwrap()))
            .collect();
        let application = &self.applications[last];
        let part = Part::combine(group, issuers, &self.invitation, application, &decoded).unwrap();
        let answer = part.answer(group, &self.invitation, application).unwrap();
        let (candidate, acceptance) = applicant.accept(&answer, &self.identity).unwrap();
        self.folder.accepted = Some(Accepted { candidate: candidate.encode().to_vec(), acceptance, shares });
        true
    }

    /// [R6] to [T7] among some of these issuers. Whether the member has a key, or no run is left.
    fn join(&mut self, registered: &[u32]) -> bool {
        let accepted = self.folder.accepted.as_mut().unwrap();
        let mut candidate = Candidate::decode(&accepted.candidate).unwrap();
        let number = accepted.candidate.last().unwrap() + 1;
        let session = session_id(self.choices.next_u64());
        let (order, run, secret) = match candidate.order_run(number, session, &self.identity) {
            Ok(ordered) => ordered,
            Err(refused) => {
                if (number, refused) != (MAX_ATTEMPTS + 1, RegistrationError::AttemptsSpent) {
                    self.violations.push(format!("the member begins no run {number}: {refused}"));
                }
                self.happens(Event::Spent);
                return true;
            }
        };
        accepted.candidate = candidate.encode().to_vec();
        self.begins(self.member, number);
        self.orders.push(order);
        if self.dies(Step::Order) {
            return false;
        }
        if self.goes_wrong() {
            self.replay(Step::Order);
        }
        let mut chosen = registered.to_vec();
        // More issuers than it takes cost time, so a few schedules have them.
        if chosen.len() > 2 && pick(&mut self.choices, 8) > 0 {
            chosen.remove(pick(&mut self.choices, 3));
        }
        let last = self.orders.len() - 1;
        for issuer in &chosen {
            let count = |admission: &mut Self, issuer: u32| admission.count(issuer, last);
            let _ = self.request(Step::Order, *issuer, count);
        }
        let faulty = self.goes_wrong();
        let mut outcomes = self.session(&chosen, session, (run, secret), faulty);
        for (address, outcome) in &outcomes {
            if !outcome.aborts.is_empty() {
                self.violations.push(format!("run {number}, {address:?}: {:?}", outcome.aborts));
            }
        }
        let Some(key) = key_of(&mut outcomes, self.member) else { return false };
        let stored = key.encode().to_vec();
        self.credentials.push(key);
        if self.dies(Step::Keep) {
            return false;
        }
        self.folder.key = Some(stored);
        self.happens(if number == 1 { Event::JoinedAtOnce } else { Event::JoinedLater });
        true
    }

    /// The session of one run: of the member, and of the chosen issuers that still have it in memory.
    fn session(
        &mut self,
        chosen: &[u32],
        session: [u8; 32],
        (run, secret): (Attempt, Secret<Scalar>),
        faulty: bool,
    ) -> Outcomes {
        let installation = Installation::usual();
        let member = party(self.member);
        let issuers: PartySet = chosen.iter().map(|issuer| party(*issuer)).collect();
        let mut started = Vec::new();
        let mut start = |me: PartyId, run: Attempt, secret: Option<Secret<Scalar>>| {
            let terms = installation.terms(run);
            let settings = terms.settings(me, member, &issuers).unwrap();
            let input = match secret {
                Some(secret) => JoinInput::Member { terms, secret },
                None => JoinInput::Issuer { terms, share: installation.share(me).into() },
            };
            let mut own = rng(self.choices.next_u64());
            let session = Session::<Join>::start(settings, Some(evidence_key(me)), input, &mut own).unwrap();
            started.push((Some(me), session));
        };
        start(member, run, Some(secret));
        for issuer in chosen {
            if let Some(run) = self.issuers.get_mut(issuer).unwrap().counted.remove(&session) {
                start(party(*issuer), run, None);
            }
        }
        let parties: Vec<PartyId> = issuers.iter().chain([member]).collect();
        let (mut sent, mut replayed) = (Vec::new(), Vec::new());
        let mut faults = Faults::default();
        let kind = if faulty { pick(&mut self.choices, 5) } else { usize::MAX };
        match kind {
            0 => {
                faults.duplicated_percent = 40;
                self.happens(Event::Repeated(Step::Join));
            }
            1 => {
                (faults.duplicated_percent, faults.dropped_percent) = (10, 20);
                self.happens(Event::Lost(Step::Join));
            }
            2 if !self.packets.is_empty() => self.happens(Event::Replayed(Step::Join)),
            2..=4 => {
                let killed = parties[pick(&mut self.choices, parties.len())];
                faults.crash = Some((killed, pick(&mut self.choices, 16)));
                let event = if killed == member { Event::MemberKilled } else { Event::IssuerKilledAfter };
                self.happens(event(Step::Join));
            }
            _ => {}
        }
        // Those of the run before come again beside those of this one.
        if kind == 2 {
            replayed.clone_from(&self.packets);
        }
        let record = |packet: Packet| {
            sent.push(packet.clone());
            replayed.pop().into_iter().chain([packet]).collect()
        };
        faults.tamper = Some(Box::new(record));
        let outcomes = World::new(self.choices.next_u64(), faults, started).run();
        self.packets = sent;
        outcomes
    }

    /// Checks at the end.
    fn ended(&mut self) {
        let installation = Installation::usual();
        let Some(accepted) = &self.folder.accepted else {
            self.violations.push("the member has no secret".to_owned());
            return;
        };
        let mut candidate = Candidate::decode(&accepted.candidate).unwrap();
        let point = candidate.point();
        let known = |issuer: &&Issuer| !issuer.store.records.tickets.is_empty();
        for issuer in self.issuers.values().filter(known) {
            let members: Vec<_> =
                issuer.store.records.tickets.iter().map(|record| record.member().ok()).collect();
            if members != [Some(point)] {
                self.violations.push("another member, or more than one".to_owned());
            }
        }
        let spent = self.events.contains_key(&Event::Spent);
        if spent != candidate.begin_attempt(MAX_ATTEMPTS).is_err() && self.folder.key.is_none() {
            self.violations.push("no key, and runs are left".to_owned());
        }
        let request = Request { digest: [9; 32], decision: Decision::Approve };
        let mut tags = BTreeSet::new();
        for key in &self.credentials {
            let expected =
                key.point() == point && MemberKey::decode(&installation.group, &key.encode()).is_ok();
            if !expected {
                self.violations.push("a credential of another member".to_owned());
            }
            let approval = key.approve(&installation.group, &request, &mut self.choices).unwrap();
            tags.extend(approval.verify(&installation.group, &request));
        }
        if tags.len() != usize::from(!self.credentials.is_empty()) {
            self.violations.push(format!("{} tags of {} credentials", tags.len(), self.credentials.len()));
        }
        if self.credentials.len() > 1 {
            self.happens(Event::SeveralCredentials);
        }
        // Neither another half for the ticket, nor another ticket for the identity.
        let issuer = ISSUERS[pick(&mut self.choices, ISSUERS.len())];
        let other = Invitation { ticket: [1; 32], identity: self.identity.public() };
        for (invitation, cause) in [
            (self.invitation.clone(), RegistrationError::TicketBound),
            (other, RegistrationError::IdentityTaken),
        ] {
            let applicant = Applicant::new(&installation.group, &invitation.ticket, &mut self.choices);
            let application = applicant.apply(&self.identity, &mut self.choices);
            let refused = self.issuers.get_mut(&issuer).unwrap().store.ask(issuer, &invitation, &application);
            if refused.map(|_| ()) != Err(cause) {
                self.violations.push(format!("issuer {issuer} does not say that {cause}"));
            }
        }
    }
}

/// The violations of one seed's admission, and what happened in it.
fn run(seed: u64, mutant: Mutant) -> (Vec<String>, BTreeMap<Event, usize>) {
    let mut admission = Admission::new(seed, mutant);
    // A schedule in twenty goes wrong so often that the ticket's runs are spent.
    let hard = pick(&mut admission.choices, 20) == 0;
    let faulty = if hard { STARTS } else { pick(&mut admission.choices, 6) };
    let percent = if hard { 25 } else { 12 };
    for number in 0..=STARTS {
        admission.percent = if number < faulty { percent } else { 0 };
        if admission.start() {
            break;
        }
    }
    admission.ended();
    (admission.violations, admission.events)
}

#[test]
fn kills_and_lost_or_repeated_messages_blame_nobody_and_give_one_member() {
    let seeds = sim::seeds::wanted("threshold-join", FULL);
    let mut total = BTreeMap::new();
    sim::seeds::run_all(
        &seeds,
        |seed| run(seed, Mutant::None),
        |violations, events| {
            sum(&mut total, events);
            violations.clone()
        },
    );
    let never = Event::all().into_iter().filter(|event| !total.contains_key(event)).collect();
    assert_eq!(
        sim::lies::overdue(never, &[Event::Spent, Event::Replayed(Step::Join)], seeds.len()),
        [],
        "{total:?}"
    );
    assert!(
        seeds.len() < 50
            || total.contains_key(&Event::JoinedAtOnce) && total.contains_key(&Event::JoinedLater)
    );
}

#[test]
fn each_check_finds_its_mutant() {
    for (mutant, expected) in [(Mutant::ForgetsRun, "twice"), (Mutant::ForgetsHalf, "refuses an application")]
    {
        sim::seeds::must_find(0..200, &format!("{mutant:?}"), expected, |seed| run(seed, mutant).0);
    }
}

/// The control: a mutant of the world that alters a message is found.
#[test]
fn an_altered_message_would_be_found() {
    let installation = Installation::usual();
    let secret = Secret::new(Scalar::from_u64(5));
    let tamper = |mut packet: Packet| {
        let mut forged = engine::forge::Forged::open(&packet.bytes).unwrap();
        if forged.round == 4 {
            forged.body[0] ^= 1;
            packet.bytes = forged.encode(&evidence_key(packet.from));
        }
        vec![packet]
    };
    let faults = Faults { tamper: Some(Box::new(tamper)), ..Faults::default() };
    let outcomes = installation.join(&[11, 12], (ABOVE, &secret), 1, faults);
    let found = |outcome: &Outcome<JoinOutput>| {
        outcome.aborts.iter().any(|abort| abort.cause == AbortCause::TransferCheckFailed)
    };
    assert!(outcomes.values().any(found));
}
