//! One schedule: parties, the network between them, a coordinator, and whoever works against them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use engine::notice::{Verdict, judge_report};
use engine::{Abort, AbortCause};
use protocols::dealing::{Refresh, Reshare};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sim::schedule::pick;

use crate::checker::{Checker, Counts};
use crate::common::party;
use crate::corrupt::Corrupt;
use crate::run::{End, Turn};
use crate::scheme::{Facts, Name, Order, Scheme};
use crate::signer::{Signer, State, Store};
use crate::{Message, Mutant, PARTIES};

#[path = "orders.rs"]
mod orders;

pub use orders::Misorder;

/// Things that happen while faults do.
const FAULTY_EVENTS: usize = 350;
/// Rounds of telling each other that may follow before all must have decided.
const HEALING_ROUNDS: usize = 12;
/// Renewals that are ordered once the faults have ended, one of which must succeed.
const RENEWALS: usize = 6;

pub struct World<S: Scheme> {
    rng: ChaCha20Rng,
    /// Those that follow the rules.
    signers: BTreeMap<u32, Signer<S>>,
    corrupt: Option<Corrupt<S>>,
    /// The one honest party whose store may go back.
    rolls_back: Option<u32>,
    copies: Vec<Store<S>>,
    network: Vec<Message<S>>,
    orders: Vec<Rc<Order<S>>>,
    checker: Checker,
    counts: Counts,
    dropped_percent: u64,
    duplicated_percent: u64,
    /// Nobody honest is killed or late, and nothing is lost.
    reliable: bool,
    faulty: bool,
    /// The corrupt party says nothing any more.
    silent: bool,
}

impl<S: Scheme> World<S> {
    pub fn new(seed: u64, mutant: Mutant) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let kind = pick(&mut rng, 10);
        let (hostile, rolls) = ((3..8).contains(&kind) || kind == 9, kind >= 8);
        let bad = 1 + pick(&mut rng, 3) as u32;
        let percent = [2, 4, 10, 30][pick(&mut rng, 4)];
        let patient = pick(&mut rng, 2) == 0;
        let corrupt = hostile.then(|| Corrupt::new(bad, percent, patient));
        let rolls_back = rolls.then(|| 1 + (bad % 3));
        let signers = PARTIES
            .into_iter()
            .filter(|number| !hostile || *number != bad)
            .map(|number| (number, Signer::new(number, mutant)));
        let first = S::facts(S::public_of(&S::shares()[&1]));
        let reliable = hostile && !rolls && pick(&mut rng, 4) == 0;
        let (dropped, duplicated_percent) = (rng.next_u64() % 4, rng.next_u64() % 30);
        Self {
            signers: signers.collect(),
            corrupt,
            rolls_back,
            copies: Vec::new(),
            network: Vec::new(),
            orders: Vec::new(),
            checker: Checker { key: first.key, ..Checker::default() },
            counts: Counts::default(),
            dropped_percent: if reliable { 0 } else { dropped },
            duplicated_percent,
            reliable,
            faulty: true,
            silent: false,
            rng,
        }
    }

    /// With a corrupt party and a store that goes back there are two bad parties, which is as many as sign: the pages
    /// promise that the key stays what it is and that nobody honest is convicted, and nothing else.
    fn promised(&self) -> bool {
        self.corrupt.is_none() || self.rolls_back.is_none()
    }

    fn any_bad(&self) -> bool {
        self.corrupt.is_some() || self.rolls_back.is_some()
    }

    fn is_corrupt(&self, number: u32) -> bool {
        self.corrupt.as_ref().is_some_and(|corrupt| corrupt.number == number)
    }

    /// Follows the rules, and its store does.
    fn is_good(&self, number: u32) -> bool {
        !self.is_corrupt(number) && self.rolls_back != Some(number)
    }

    fn pick(&mut self, count: usize) -> usize {
        pick(&mut self.rng, count)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.faulty && self.rng.next_u64() % 100 < percent
    }

    /// At least `least` of these, in order.
    fn some_of(&mut self, from: &[u32], least: usize) -> Vec<u32> {
        let mut chosen: BTreeSet<u32> = BTreeSet::new();
        let wanted = least + self.pick(from.len() - least + 1);
        while chosen.len() < wanted {
            chosen.insert(from[self.pick(from.len())]);
        }
        chosen.into_iter().collect()
    }

    fn post(&mut self, message: Message<S>) {
        if self.silent && self.is_corrupt(message.recipient()) {
            return;
        }
        if self.chance(self.dropped_percent) {
            return;
        }
        if self.chance(self.duplicated_percent) {
            self.network.push(message.clone());
        }
        self.network.push(message);
    }

    fn post_all(&mut self, messages: Vec<Message<S>>) {
        messages.into_iter().for_each(|message| self.post(message));
    }

    fn deliver(&mut self) {
        let at = self.pick(self.network.len());
        let message = self.network.swap_remove(at);
        let to = message.recipient();
        let mut out = Vec::new();
        if self.is_corrupt(to) {
            self.show_corrupt(message, &mut out);
            self.post_all(out);
            return;
        }
        let signer = self.signers.get_mut(&to).unwrap();
        let mut begun = None;
        match message {
            Message::Order { order, .. } => {
                if let Some(turn) = signer.begin(&order, &mut self.rng, &mut out) {
                    let early = signer.memory.early.remove(&order.session).unwrap_or_default();
                    let again = early.into_iter().map(|(from, bytes)| Message::Envelope {
                        from,
                        to,
                        session: order.session,
                        bytes,
                    });
                    self.network.extend(again);
                    begun = Some(turn);
                }
            }
            Message::Envelope { from, session, bytes, .. } => {
                let run = signer.memory.running.as_mut().filter(|run| run.order.session == session);
                if let Some(run) = run {
                    begun = Some(run.running.open(from, &bytes, &mut self.rng));
                } else if !signer.store.claimed.contains(&session) {
                    signer.memory.early.entry(session).or_default().push((from, bytes));
                }
            }
            Message::Completed { from, report, .. } => {
                let was = signer.store.of(report.statement.session).map(|held| held.state.clone());
                signer.take(from, report, &mut out);
                if matches!(was, Some(State::Abandoned(_))) && !signer.switches.is_empty() {
                    self.counts.followed_after_all += 1;
                }
            }
            Message::Declined { from, session, .. } => {
                let provisional = |signer: &Signer<S>| signer.store.provisional().is_some();
                let before = provisional(signer);
                signer.declined(from, session, &mut out);
                self.counts.abandoned += usize::from(before && !provisional(signer));
            }
        }
        if let Some(turn) = begun {
            self.apply(to, turn, &mut out);
        }
        self.post_all(out);
        self.look(to);
    }

    fn show_corrupt(&mut self, message: Message<S>, out: &mut Vec<Message<S>>) {
        let Some(corrupt) = &mut self.corrupt else { return };
        match message {
            Message::Order { order, .. } => corrupt.begin(&order, &mut self.rng, out),
            Message::Envelope { from, session, bytes, .. } => {
                corrupt.handle(session, from, &bytes, &mut self.rng, out);
            }
            Message::Completed { from, report, .. } => corrupt.hears(from, report, out),
            Message::Declined { .. } => (),
        }
    }

    /// Takes what a signer's session sent and made.
    fn apply(&mut self, from: u32, turn: Turn<S>, out: &mut Vec<Message<S>>) {
        let signer = self.signers.get_mut(&from).unwrap();
        let run = signer.memory.running.as_mut().unwrap();
        let order = Rc::clone(&run.order);
        let session = order.session;
        for (recipient, bytes) in &turn.outgoing {
            let sealed = run.running.sealed(bytes, &mut self.rng).unwrap();
            for to in order.parties().into_iter().filter(|to| *to != from) {
                if recipient.is_some_and(|recipient| recipient != to) {
                    continue;
                }
                if let Some(corrupt) = self.corrupt.as_mut().filter(|corrupt| corrupt.number == to) {
                    corrupt.liar.hears(bytes);
                }
                out.push(Message::Envelope { from, to, session, bytes: sealed.clone() });
            }
        }
        match turn.end {
            End::Not(missing) => {
                if let Some(missing) = missing {
                    run.missing = missing;
                }
            }
            End::Made(made) => signer.store(&order, *made, out),
            End::Aborted(abort) => {
                signer.forget(session);
                self.aborted(from, &order, &abort);
            }
        }
    }

    fn aborted(&mut self, me: u32, order: &Order<S>, abort: &Abort) {
        if abort.culprits.is_empty() {
            self.counts.suspicions += 1;
        } else {
            self.counts.convictions += 1;
        }
        let mut faults = Vec::new();
        if !self.any_bad() {
            faults.push("fails among parties that follow the rules");
        }
        if !abort.culprits.iter().all(|culprit| self.is_corrupt(culprit.get().into())) {
            faults.push("convicts an honest party");
        }
        if abort.reporter.is_none() || abort.culprits.is_empty() && abort.suspects.is_empty() {
            faults.push("names nobody");
        }
        if abort.cause == AbortCause::Internal && abort.reporter == Some(party(me)) {
            faults.push("blames an error of its own");
        }
        let named = abort.culprits.iter().chain(&abort.suspects).any(|id| self.is_corrupt(id.get().into()));
        if self.reliable && !named {
            faults.push("names honest parties only");
        }
        if let Some(culprit) = abort.culprits.first() {
            let (settings, evidence) = (order.settings(None), &abort.evidence);
            let verdict = match order.change {
                None => judge_report::<Refresh<S>>(settings, abort.cause, *culprit, evidence),
                Some(_) => judge_report::<Reshare<S>>(settings, abort.cause, *culprit, evidence),
            };
            if !matches!(verdict, Ok(Verdict::Proven(fault)) if fault.culprits() == [*culprit]) {
                faults.push("convicts without evidence that convinces others");
            }
        }
        for fault in faults {
            self.checker.say(format!("party {me} {fault}: {abort}"));
        }
    }

    /// Checks each session that a party switched to: could every good party of it follow?
    fn look(&mut self, number: u32) {
        let signer = self.signers.get_mut(&number).unwrap();
        for session in std::mem::take(&mut signer.switches) {
            let Some(held) = self.signers[&number].store.of(session).cloned() else { continue };
            if !self.is_good(number) {
                continue;
            }
            self.checker.switched(&held.statement, &held.facts);
            let followed = held.members.iter().filter(|member| self.is_good(**member)).all(|member| {
                self.signers[member]
                    .store
                    .of(session)
                    .is_some_and(|theirs| theirs.statement == held.statement)
                    || self.signers[member].store.of(session).is_none()
                        && self.signers[member].can_follow(session, held.facts.epoch)
            });
            if !followed && self.promised() {
                self.checker.say("switched to what another honest party does not hold");
            }
        }
    }

    fn something_happens(&mut self) {
        let one = PARTIES[self.pick(PARTIES.len())];
        let good: Vec<u32> = self.signers.keys().copied().collect();
        match self.pick(100) {
            0..5 if self.pick(6) == 0
                || self.signers.values().all(|signer| signer.memory.running.is_none()) =>
            {
                self.order();
            }
            19 | 20 if self.is_corrupt(one) || self.reliable => (),
            19 => {
                self.counts.crashes += 1;
                self.signers.get_mut(&one).unwrap().restart(None);
            }
            20 => self.deadline(one),
            5..9 if !self.is_corrupt(one) => self.ask(one),
            9..17 => {
                let mut out = Vec::new();
                if let Some(corrupt) = &mut self.corrupt {
                    corrupt.acts(&good, &mut self.rng, &mut out);
                }
                self.post_all(out);
            }
            17 | 18 => self.roll_back(),
            _ if self.network.is_empty() => (),
            _ => self.deliver(),
        }
    }

    fn deadline(&mut self, number: u32) {
        let signer = self.signers.get_mut(&number).unwrap();
        if let Some(run) = signer.memory.running.take() {
            self.counts.deadlines += 1;
            signer.forget(run.order.session);
            if run.missing.is_empty() {
                self.checker.say(format!("party {number} waits for nobody"));
            }
        }
    }

    fn ask(&mut self, number: u32) {
        let mut out = Vec::new();
        self.signers.get_mut(&number).unwrap().asks(&mut out);
        self.post_all(out);
    }

    /// Copies a store, puts an earlier copy back, or lets two copies go on in turns.
    fn roll_back(&mut self) {
        let Some(number) = self.rolls_back else { return };
        let now = self.signers[&number].store.clone();
        if self.copies.is_empty() || self.pick(2) == 0 {
            self.copies.push(now);
            return;
        }
        let at = self.pick(self.copies.len());
        let mut older = self.copies[at].clone();
        if self.pick(2) == 0 {
            self.counts.cloned += 1;
            std::mem::swap(&mut self.copies[at], &mut older);
            self.copies[at] = now;
        }
        self.counts.rolled_back += 1;
        self.signers.get_mut(&number).unwrap().restart(Some(older));
    }

    /// Sessions whose shares can sign: as many good parties as the threshold hold their shares, or all good parties of
    /// it do, who then lack only parties that may refuse any signature. Shares that are undecided count once a party
    /// has switched.
    fn usable(&self) -> BTreeMap<Name, Facts> {
        let mut held: BTreeMap<Name, (usize, &Facts)> = BTreeMap::new();
        for signer in self.signers.values().filter(|signer| self.is_good(signer.number)) {
            for one in signer.store.held.iter().filter(|one| one.share.is_some()) {
                if one.is_active() || self.checker.switched.contains_key(&one.session()) {
                    held.entry(one.session()).or_insert((0, &one.facts)).0 += 1;
                }
            }
        }
        let enough = |count: usize, facts: &Facts| {
            let good = facts.parties.iter().filter(|party| self.is_good(**party)).count();
            count >= good.min(facts.threshold as usize)
        };
        held.into_iter()
            .filter(|(_, (count, facts))| enough(*count, facts))
            .map(|(session, (_, facts))| (session, facts.clone()))
            .collect()
    }

    /// The highest epoch that a good party uses.
    fn newest(&self) -> u32 {
        let good = self.signers.values().filter(|signer| self.is_good(signer.number));
        good.filter_map(|signer| signer.store.active()).map(|held| held.facts.epoch).max().unwrap_or(0)
    }

    /// Nobody who is good waits for a decision about an epoch that has not come.
    fn decided(&self) -> bool {
        let newest = self.newest();
        let mut good = self.signers.values().filter(|signer| self.is_good(signer.number));
        good.all(|signer| signer.store.provisional().is_none_or(|held| held.facts.epoch <= newest))
    }

    /// Nothing fails any more: all decide.
    fn heal(&mut self) {
        self.faulty = false;
        let mut calm = 0;
        for _ in 0..HEALING_ROUNDS {
            while !self.network.is_empty() {
                self.deliver();
            }
            // A run that has not ended by now misses a message that was lost.
            let running: Vec<u32> = self.signers.keys().copied().collect();
            running.into_iter().for_each(|number| self.deadline(number));
            if let Some(corrupt) = &mut self.corrupt {
                corrupt.gives_up_runs();
            }
            if self.decided() {
                calm += 1;
            }
            if calm > 2 {
                return;
            }
            let all: Vec<u32> = self.signers.keys().copied().collect();
            all.into_iter().for_each(|number| self.ask(number));
        }
        if self.silent && !self.decided() {
            self.counts.held_up = 1;
        } else if self.promised() {
            self.checker.say("undecided after the faults");
        }
    }

    /// One session's shares are usable, all good parties have them, and they sign. `None` if they are too few.
    fn check_the_end(&mut self) -> Option<S::Public> {
        let newest = self.newest();
        let usable: Vec<(Name, Facts)> =
            self.usable().into_iter().filter(|(_, facts)| facts.epoch == newest).collect();
        let [(session, facts)] = &usable[..] else {
            let epochs: Vec<u32> = usable.iter().map(|(_, facts)| facts.epoch).collect();
            self.checker.say(format!("usable at the end: {epochs:?}"));
            return None;
        };
        let mut shares: BTreeMap<u32, S::Share> = BTreeMap::new();
        let mut public = None;
        for signer in self.signers.values() {
            let of_it = signer.store.active().filter(|held| held.session() == *session);
            if let Some(held) = of_it {
                public = Some(held.public.clone());
                shares.extend(held.share.as_ref().map(|share| (signer.number, S::reopen(share))));
            } else if self.is_good(signer.number) && facts.parties.contains(&signer.number) {
                self.checker.say(format!("epoch {newest} is not at all of its parties"));
                return None;
            }
        }
        let numbers: Vec<u32> = shares.keys().copied().collect();
        if numbers.len() < facts.threshold as usize {
            self.counts.too_few = 1;
            return None;
        }
        let signers = self.some_of(&numbers, facts.threshold as usize);
        S::signs(&shares, &signers);
        public
    }

    /// A renewal among those who are up to date, for everybody who behaves.
    fn renew(&mut self, base: &S::Public, with_corrupt: bool) {
        let facts = S::facts(base);
        let up_to_date = |number: &u32| {
            let signer = self.signers.get(number);
            let active = signer.and_then(|signer| signer.store.active());
            active.is_some_and(|held| held.public == *base && held.share.is_some())
        };
        let dealers: Vec<u32> = facts.parties.iter().copied().filter(up_to_date).collect();
        let receivers: Vec<u32> =
            PARTIES.into_iter().filter(|number| with_corrupt || !self.is_corrupt(*number)).collect();
        let mut session = [0; 32];
        self.rng.fill_bytes(&mut session);
        let order = Rc::new(Order {
            session,
            request: self.rng.next_u64(),
            base: base.clone(),
            change: Some((dealers, receivers, 2)),
        });
        self.orders.push(Rc::clone(&order));
        order.parties().into_iter().for_each(|to| self.order_one(to, &order));
        self.heal();
    }

    pub fn run(mut self) -> (Vec<String>, Counts) {
        for _ in 0..FAULTY_EVENTS {
            self.something_happens();
            if self.promised() && self.usable().is_empty() {
                self.checker.say("no epoch is usable");
            }
        }
        self.silent = self.pick(2) == 0 && self.corrupt.is_some();
        if let Some(corrupt) = &mut self.corrupt {
            corrupt.behaves = true;
        }
        self.heal();
        if self.promised() && self.checker.violations.is_empty() {
            self.goes_on();
        }
        self.finish()
    }

    /// The key signs and can be renewed, whoever was left out or behaves.
    fn goes_on(&mut self) {
        let Some(base) = self.check_the_end() else { return };
        if self.counts.held_up > 0 {
            // The page: it can stop every renewal by silence in its middle. The old epoch signs.
            return;
        }
        let before = self.newest();
        for attempt in 0..RENEWALS {
            self.renew(&base, !self.silent && attempt % 2 == 0);
            if self.newest() > before {
                self.check_the_end();
                return;
            }
        }
        self.checker.say("no renewal succeeds after the faults");
    }

    fn finish(mut self) -> (Vec<String>, Counts) {
        let twice = self.checker.epochs.values().any(|sessions| sessions.len() > 1);
        if twice && !self.any_bad() {
            self.checker.say("an epoch was made twice");
        }
        self.counts.epoch_twice = usize::from(twice);
        for session in self.checker.switched.keys() {
            let of_it = self.orders.iter().find(|order| order.session == *session);
            match of_it.map(|order| order.change.is_some()) {
                Some(false) => self.counts.refreshed += 1,
                _ => self.counts.reshared += 1,
            }
        }
        if let Some(corrupt) = self.corrupt {
            self.counts.corrupt = 1;
            self.counts.lies = corrupt.liar.coverage().clone();
            self.counts.deceits = corrupt.deceits;
        }
        (self.checker.violations, self.counts)
    }
}
