//! The checks of what is seen on the wire, and how often everything happened.

use core::ops::Range;
use std::collections::BTreeMap;

use engine::forge::Forged;
use engine::{PartyId, SEALED_ENVELOPE_FORMAT};
use sim::lies::Coverage;
use sim::schedule::sum;

/// Where the encapsulated key stands in a sealed envelope.
pub const ENCAPSULATED_KEY: Range<usize> = 40..72;

/// The checks over all sessions of a schedule.
#[derive(Default)]
pub struct Checker {
    /// Values that honest parties must show once: the process that showed them first.
    once: BTreeMap<(&'static str, Vec<u8>), usize>,
    pub violations: Vec<String>,
    /// For a mutant: the first body of each sender to each recipient in the round that it is about.
    pub first_bodies: BTreeMap<(PartyId, Option<PartyId>), Vec<u8>>,
}

impl Checker {
    pub fn say(&mut self, violation: String) {
        self.violations.push(violation);
    }

    fn once(&mut self, what: &'static str, process: usize, value: &[u8]) {
        if *self.once.entry((what, value.to_vec())).or_insert(process) != process {
            self.say(format!("{what} of two processes are the same"));
        }
    }

    /// One-time values of an honest party's envelope: of each kind of message the parts that are drawn for it.
    pub fn sees(&mut self, process: usize, message: &Forged, rounds: u8) {
        self.once("run nonces", process, &message.run);
        let body = &message.body;
        match message.round {
            1 => self.once("commitments", process, body),
            2 => self.once("contributions", process, &body[body.len() - 32..]),
            round if round == rounds && !body.is_empty() => {
                self.once("nonce points of proofs", process, &body[..32]);
            }
            // Shares of polynomials, and the messages of the transfers.
            round if round < rounds => {
                body.rchunks_exact(32).for_each(|block| self.once("private blocks", process, block));
            }
            _ => (),
        }
    }

    pub fn sees_sealed(&mut self, process: usize, bytes: &[u8]) {
        assert_eq!(bytes[0], SEALED_ENVELOPE_FORMAT);
        if self.once.insert(("encapsulated keys", bytes[ENCAPSULATED_KEY].to_vec()), process).is_some() {
            self.say("an encapsulated key was used twice".to_owned());
        }
    }
}

#[derive(Default, Debug)]
pub struct Counts {
    pub sessions: usize,
    pub finished: usize,
    pub convictions: BTreeMap<u8, usize>,
    pub suspicions: BTreeMap<u8, usize>,
    pub stragglers: usize,
    pub restarts: usize,
    pub kills: usize,
    pub runs_doubled: usize,
    pub lies: Coverage,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.sessions += other.sessions;
        self.finished += other.finished;
        self.stragglers += other.stragglers;
        self.restarts += other.restarts;
        self.kills += other.kills;
        self.runs_doubled += other.runs_doubled;
        sum(&mut self.convictions, &other.convictions);
        sum(&mut self.suspicions, &other.suspicions);
        sum(&mut self.lies, &other.lies);
    }
}
