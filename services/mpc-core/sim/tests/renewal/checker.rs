//! Everything that is seen from outside, and how often it happened.

use std::collections::{BTreeMap, BTreeSet};

use sim::lies::Coverage;
use sim::schedule::sum;

use crate::corrupt::Deceit;
use crate::scheme::{Facts, Name};
use crate::statement::Statement;
use crate::world::Misorder;

#[derive(Default)]
pub struct Checker {
    pub key: Vec<u8>,
    pub switched: BTreeMap<Name, Statement>,
    pub epochs: BTreeMap<u32, BTreeSet<Name>>,
    pub violations: Vec<String>,
}

impl Checker {
    pub fn say(&mut self, violation: impl Into<String>) {
        let violation = violation.into();
        if !self.violations.contains(&violation) {
            self.violations.push(violation);
        }
    }

    /// An honest party has switched.
    pub fn switched(&mut self, statement: &Statement, facts: &Facts) {
        if facts.key != self.key {
            self.say("another key");
        }
        let first = self.switched.entry(statement.session).or_insert_with(|| statement.clone());
        if first != statement {
            self.say("switched to two different things in one session");
        }
        self.epochs.entry(facts.epoch).or_default().insert(statement.session);
    }
}

#[derive(Default, Debug)]
pub struct Counts {
    pub refreshed: usize,
    pub reshared: usize,
    pub abandoned: usize,
    pub followed_after_all: usize,
    pub crashes: usize,
    pub deadlines: usize,
    pub corrupt: usize,
    pub rolled_back: usize,
    pub cloned: usize,
    pub convictions: usize,
    pub suspicions: usize,
    /// Schedules in which a silent corrupt party kept a renewal undecided to the end.
    pub held_up: usize,
    /// Schedules in which the honest parties alone were too few to sign at the end.
    pub too_few: usize,
    /// Schedules in which two sessions made one epoch, for a moment.
    pub epoch_twice: usize,
    pub deceits: BTreeMap<Deceit, usize>,
    pub misorders: BTreeMap<Misorder, usize>,
    pub lies: Coverage,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.refreshed += other.refreshed;
        self.reshared += other.reshared;
        self.abandoned += other.abandoned;
        self.followed_after_all += other.followed_after_all;
        self.crashes += other.crashes;
        self.deadlines += other.deadlines;
        self.corrupt += other.corrupt;
        self.rolled_back += other.rolled_back;
        self.cloned += other.cloned;
        self.convictions += other.convictions;
        self.suspicions += other.suspicions;
        self.held_up += other.held_up;
        self.too_few += other.too_few;
        self.epoch_twice += other.epoch_twice;
        sum(&mut self.deceits, &other.deceits);
        sum(&mut self.misorders, &other.misorders);
        sum(&mut self.lies, &other.lies);
    }
}
