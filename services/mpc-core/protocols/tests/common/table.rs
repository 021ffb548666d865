//! Three parties at a table, of which the third may do anything: every scheme's protocols with signed envelopes,
//! started, delivered and recorded.

#![allow(dead_code, reason = "every test binary uses its own part")]

use std::collections::BTreeMap;

use engine::forge::{Forged, notice, sealed};
use engine::session::{NOTICE_ROUND, Progress, Session};
use engine::{Abort, AbortCause, Protocol, Reject};
use protocols::dealing;
use protocols::frost::{Bip340, Ed25519, Suite};
use protocols::{bls, ecdsa, frost};
use rand_core::Rng;

use crate::common::{Started, evidence_key, keygen, party, reopen, rng, settings, start_keygen};
use crate::{ecdsa_common, harness};

/// The party that does not follow the rules.
pub const CORRUPT: u32 = 3;
pub const ALL: [u32; 3] = [1, 2, 3];

/// A message on its way.
#[derive(Clone)]
pub struct Mail {
    pub from: u32,
    pub to: u32,
    pub bytes: Vec<u8>,
}

/// The check that a test makes of one protocol. `start` starts the session of one party; another seed is another run of
/// it.
pub trait Check {
    /// Whether it is about the protocol at a place of [`every_protocol`]; by default about all.
    fn wants(&self, _place: usize) -> bool {
        true
    }

    fn check<P: Protocol>(&mut self, name: &str, start: &dyn Fn(u32, u64) -> Started<P>);
}

/// The protocols with signed envelopes.
pub const PROTOCOLS: usize = 12;
/// Of each scheme: key generation, refresh, reshare.
const OF_A_SCHEME: usize = 3;

/// Calls `check` for every protocol with signed envelopes that it wants.
pub fn every_protocol(check: &mut impl Check) {
    if check.wants(0) {
        check.check("bls/keygen", &|me, run| start_keygen(me, &ALL, 2, 1, run));
    }
    if check.wants(1) || check.wants(2) {
        bls_renewals(check);
    }
    schnorr::<Ed25519>(check, "ed25519", OF_A_SCHEME);
    schnorr::<Bip340>(check, "bip340", 2 * OF_A_SCHEME);
    ecdsa_protocols(check, 3 * OF_A_SCHEME);
}

fn bls_renewals(check: &mut impl Check) {
    let shares = keygen(&ALL, 2, 9);
    let public = shares[&1].public();
    if check.wants(1) {
        check.check("bls/refresh", &|me, run| {
            let mut payload = engine::wire::Writer::default();
            dealing::Public::encode(public, &mut payload);
            let mut settings = settings(Some(party(me)), &ALL, 2, 77, &payload.finish());
            settings.epoch = public.epoch + 1;
            started::<bls::Refresh>(me, settings, reopen(&shares[&me]), run)
        });
    }
    if check.wants(2) {
        let (dealers, receivers) = ([1, 3], [2, 3]);
        check.check("bls/reshare", &|me, run| {
            let share = dealers.contains(&me).then(|| reopen(&shares[&me]));
            let terms = bls::ReshareTerms {
                dealers: dealers.into_iter().map(party).collect(),
                receivers: receivers.into_iter().map(party).collect(),
                base: public.clone(),
            };
            let mut settings = settings(Some(party(me)), &ALL, 2, 5, &terms.encode());
            settings.epoch = public.epoch + 1;
            started::<bls::Reshare>(me, settings, share, run)
        });
    }
}

fn ecdsa_protocols(check: &mut impl Check, first: usize) {
    if check.wants(first) {
        check.check("ecdsa/keygen", &|me, run| ecdsa_common::start_keygen(me, &ALL, 2, 1, run));
    }
    if !check.wants(first + 1) && !check.wants(first + 2) {
        return;
    }
    let shares = ecdsa_common::keygen(&ALL, 2, 9);
    let public = shares[&1].public();
    if check.wants(first + 1) {
        check.check("ecdsa/refresh", &|me, run| {
            let settings = ecdsa_common::refresh_settings(me, public);
            let share = ecdsa_common::reopen(&shares[&me]);
            started::<ecdsa::Refresh>(me, settings, share, run)
        });
    }
    if check.wants(first + 2) {
        let change = ecdsa_common::Change { dealers: &[1, 3], receivers: &[2, 3], t: 2 };
        check.check("ecdsa/reshare", &|me, run| {
            let share = change.dealers.contains(&me).then(|| ecdsa_common::reopen(&shares[&me]));
            let settings = ecdsa_common::reshare_settings(Some(me), public, &change, 5);
            started::<ecdsa::Reshare>(me, settings, share, run)
        });
    }
}

fn schnorr<S: Suite + core::fmt::Debug>(check: &mut impl Check, name: &str, first: usize) {
    if check.wants(first) {
        check.check(&format!("{name}/keygen"), &|me, run| {
            started::<frost::Keygen<S>>(me, settings(Some(party(me)), &ALL, 2, 1, &[]), (), run)
        });
    }
    if !check.wants(first + 1) && !check.wants(first + 2) {
        return;
    }
    let shares = harness::keygen::<S>(&ALL, 2, 9);
    let public = shares[&1].public();
    if check.wants(first + 1) {
        check.check(&format!("{name}/refresh"), &|me, run| {
            let settings = harness::refresh_settings(me, public);
            started::<frost::Refresh<S>>(me, settings, harness::reopen(&shares[&me]), run)
        });
    }
    if check.wants(first + 2) {
        let change = harness::Change { dealers: &[1, 3], receivers: &[2, 3], t: 2 };
        check.check(&format!("{name}/reshare"), &|me, run| {
            let share = change.dealers.contains(&me).then(|| harness::reopen(&shares[&me]));
            let settings = harness::reshare_settings(Some(me), public, &change, 5);
            started::<frost::Reshare<S>>(me, settings, share, run)
        });
    }
}

fn started<P: Protocol>(me: u32, settings: engine::SessionSettings, input: P::Input, run: u64) -> Started<P> {
    let mut rng = rng(run << 8 | u64::from(me));
    Session::start(settings, Some(evidence_key(party(me))), input, &mut rng).unwrap()
}

/// The sessions of all parties, what they have sent, and how they ended.
pub struct Table<P: Protocol> {
    pub sessions: BTreeMap<u32, Session<P>>,
    pub queue: Vec<Mail>,
    /// Everything that a party's own code sent.
    pub sent: Vec<Mail>,
    pub done: BTreeMap<u32, usize>,
    pub aborts: BTreeMap<u32, Vec<Abort>>,
    pub rejects: Vec<(u32, u32, Reject)>,
    pub waiting: BTreeMap<u32, Vec<u32>>,
}

impl<P: Protocol> Table<P> {
    pub fn start(start: &dyn Fn(u32, u64) -> Started<P>) -> Self {
        let mut table = Self {
            sessions: BTreeMap::new(),
            queue: Vec::new(),
            sent: Vec::new(),
            done: BTreeMap::new(),
            aborts: BTreeMap::new(),
            rejects: Vec::new(),
            waiting: BTreeMap::new(),
        };
        for me in ALL {
            let (session, step) = start(me, 1);
            table.post(me, &step.outgoing);
            table.sessions.insert(me, session);
        }
        table
    }

    fn post(&mut self, from: u32, outgoing: &[engine::Envelope]) {
        for envelope in outgoing {
            for to in ALL.into_iter().filter(|to| *to != from) {
                if envelope.recipient().is_none_or(|recipient| recipient == party(to)) {
                    let mail = Mail { from, to, bytes: envelope.encode() };
                    self.sent.push(mail.clone());
                    self.queue.push(mail);
                }
            }
        }
    }

    pub fn deliver(&mut self, mail: &Mail) {
        let session = self.sessions.get_mut(&mail.to).unwrap();
        let rng = &mut rng(u64::from(mail.to) + 99);
        // As it travels: a private one sealed to its recipient, whoever made it.
        let bytes = sealed(session.context(), &evidence_key(party(mail.from)), &mail.bytes, rng);
        let step = session.open(party(mail.from), &bytes, rng);
        self.post(mail.to, &step.outgoing);
        match step.progress {
            Progress::Waiting { missing } => {
                let missing = missing.iter().map(|party| u32::from(party.get())).collect();
                self.waiting.insert(mail.to, missing);
            }
            Progress::Dropped(reject) => self.rejects.push((mail.from, mail.to, reject)),
            Progress::Done(_) => *self.done.entry(mail.to).or_default() += 1,
            Progress::Aborted(abort) => self.aborts.entry(mail.to).or_default().push(abort),
        }
    }

    /// Delivers until nothing is left; `tamper` turns what the corrupt party's code sends into what it sends instead.
    pub fn run(&mut self, mut tamper: impl FnMut(&Mail) -> Vec<Vec<u8>>) {
        while !self.queue.is_empty() {
            let mail = self.queue.remove(0);
            if mail.from == CORRUPT {
                for bytes in tamper(&mail) {
                    self.deliver(&Mail { bytes, ..mail.clone() });
                }
            } else {
                self.deliver(&mail);
            }
        }
    }

    /// An envelope of the corrupt party's, to one party.
    pub fn forge(&self, round: u8, body: Vec<u8>) -> Vec<u8> {
        let own = self.sent.iter().find(|mail| mail.from == CORRUPT).unwrap();
        let context = self.sessions[&1].context();
        let mut forged = Forged::new(P::ID.number, context, round, party(CORRUPT), body);
        forged.run = Forged::open(&own.bytes).unwrap().run;
        forged.encode(&evidence_key(party(CORRUPT)))
    }

    pub fn notice(&self, cause: AbortCause, accused: u32, evidence: &[Vec<u8>]) -> Vec<u8> {
        self.forge(NOTICE_ROUND, notice(cause, u16::try_from(accused).unwrap(), evidence))
    }

    /// Gives one party a message of the corrupt one, and delivers what follows from it.
    pub fn tell(&mut self, to: u32, bytes: Vec<u8>) {
        self.deliver(&Mail { from: CORRUPT, to, bytes });
        self.run(|_| Vec::new());
    }

    /// The message that a party has sent to all, or to `to`, in a round.
    pub fn message(&self, from: u32, round: u8, to: u32) -> Vec<u8> {
        let found = self.sent.iter().find(|m| m.from == from && m.to == to && round_of(&m.bytes) == round);
        found.unwrap().bytes.clone()
    }

    /// Nobody who follows the rules is blamed, blames itself or is left without anybody named.
    pub fn assert_no_honest_party_is_blamed(&self, what: &str) {
        for me in [1, 2] {
            let aborts = self.aborts.get(&me).map(Vec::as_slice).unwrap_or_default();
            for abort in aborts {
                let name = format!("{what}: party {me} says: {abort}");
                assert!(abort.culprits.iter().all(|culprit| *culprit == party(CORRUPT)), "{name}");
                assert!(!abort.culprits.is_empty() || !abort.suspects.is_empty(), "{name}");
                assert!(abort.reporter.is_some(), "{name}");
            }
        }
        let aborts: Vec<&Abort> = [1, 2].iter().filter_map(|me| self.aborts.get(me)).flatten().collect();
        let corrupt = party(CORRUPT);
        let named = |abort: &&Abort| {
            abort.culprits.contains(&corrupt)
                || abort.suspects.contains(&corrupt)
                || abort.reporter == Some(corrupt)
        };
        assert!(aborts.is_empty() || aborts.iter().any(named), "{what}: {aborts:?}");
        // Whom one of them blames, the other has heard of.
        let blames = |me: u32| self.aborts.get(&me).into_iter().flatten().any(|a| !a.culprits.is_empty());
        assert_eq!(blames(1), blames(2), "{what}: {aborts:?} {:?}", self.rejects);
    }
}

pub fn round_of(bytes: &[u8]) -> u8 {
    Forged::open(bytes).unwrap().round
}

/// Signs again after a change.
pub fn resigned(bytes: &[u8], change: impl FnOnce(&mut Forged)) -> Vec<u8> {
    let mut forged = Forged::open(bytes).unwrap();
    change(&mut forged);
    forged.encode(&evidence_key(forged.sender))
}

/// Below `count`.
pub fn pick(rng: &mut impl Rng, count: usize) -> usize {
    usize::try_from(rng.next_u64() % u64::try_from(count.max(1)).unwrap()).unwrap()
}
