//! A party that need not follow the rules: in the core by the lies of [`sim::lies`], in the agreement by [`Deceit`].

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use engine::{Envelope, PartyId};
use rand_chacha::ChaCha20Rng;
use sim::lies::{Cover, Liar};
use sim::schedule::pick;

use crate::Message;
use crate::common::{evidence_key, party};
use crate::run::{End, Running, Turn};
use crate::scheme::{Name, Order, Scheme, encoded};
use crate::statement::{Certificate, Pen, Report, Signed, Statement};

/// One way to deviate in the agreement on a renewal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Deceit {
    /// Stores its end, and tells nobody.
    KeepsBack,
    /// Stores its end, and tells some parties only.
    TellsSome,
    /// Says to one that it has stored, and to another that it never will.
    Equivocates,
    /// Says both to the same party.
    SaysBoth,
    /// Declines what it has stored, or could have.
    Declines,
    /// Signs other public data.
    SignsOtherData,
    /// Signs another epoch.
    SignsOtherEpoch,
    /// Signs what it has not finished.
    SignsUnseen,
    /// Signs long after.
    SignsLate,
    /// Sends another party's statement as its own.
    ReplaysStatement,
    /// Sends its own statement of another session.
    SendsOtherStatement,
    /// Shows a whole certificate to one party.
    ShowsCertificate,
    /// Shows a certificate in which signatures are missing or doubled.
    ShowsHalf,
    /// Shows a certificate of another session.
    ShowsOther,
    /// Asks as if it had nothing.
    Asks,
    /// Runs a session again, from the store as it was before.
    RunsAgain,
    /// Stops a run, as if restored to before it.
    Restored,
}

impl Deceit {
    pub const ALL: [Deceit; 17] = [
        Deceit::KeepsBack,
        Deceit::TellsSome,
        Deceit::Equivocates,
        Deceit::SaysBoth,
        Deceit::Declines,
        Deceit::SignsOtherData,
        Deceit::SignsOtherEpoch,
        Deceit::SignsUnseen,
        Deceit::SignsLate,
        Deceit::ReplaysStatement,
        Deceit::SendsOtherStatement,
        Deceit::ShowsCertificate,
        Deceit::ShowsHalf,
        Deceit::ShowsOther,
        Deceit::Asks,
        Deceit::RunsAgain,
        Deceit::Restored,
    ];
}

/// Everything that it has ever had; it forgets only what helps it.
pub struct Corrupt<S: Scheme> {
    pub number: u32,
    pen: Pen,
    runs: Vec<(Rc<Order<S>>, Running<S>)>,
    early: Vec<(Name, u32, Vec<u8>)>,
    /// Shares of every epoch, by the exact bytes of the public data.
    pub shares: Vec<(Vec<u8>, Rc<S::Share>)>,
    orders: BTreeMap<Name, Rc<Order<S>>>,
    finished: BTreeMap<Name, Statement>,
    /// Statements of all parties that it has heard, by session and signer.
    heard: BTreeMap<Name, (Statement, BTreeMap<u32, Signed>)>,
    signed: BTreeSet<Name>,
    pub liar: Liar,
    pub deceits: BTreeMap<Deceit, usize>,
    /// Whether it declines every session that it has finished, to sign it later.
    patient: bool,
    /// Whether it follows the rules now.
    pub behaves: bool,
}

impl<S: Scheme> Corrupt<S> {
    pub fn new(number: u32, percent: usize, patient: bool) -> Self {
        let first = S::shares().get(&number).map(S::reopen);
        let shares = first.map(|share| (encoded::<S>(S::public_of(&share)), Rc::new(share)));
        Self {
            number,
            pen: Pen::of(number),
            runs: Vec::new(),
            early: Vec::new(),
            shares: shares.into_iter().collect(),
            orders: BTreeMap::new(),
            finished: BTreeMap::new(),
            heard: BTreeMap::new(),
            signed: BTreeSet::new(),
            liar: Liar::new(percent, evidence_key),
            deceits: BTreeMap::new(),
            patient,
            behaves: false,
        }
    }

    /// It refuses no order.
    pub fn begin(&mut self, order: &Rc<Order<S>>, rng: &mut ChaCha20Rng, out: &mut Vec<Message<S>>) {
        self.orders.insert(order.session, Rc::clone(order));
        let share = if order.dealers().contains(&self.number) {
            let base = encoded::<S>(&order.base);
            let Some((_, share)) = self.shares.iter().find(|(public, _)| *public == base) else { return };
            Some(S::reopen(share))
        } else {
            None
        };
        let Some((running, turn)) = Running::start(order, self.number, share, rng) else { return };
        self.runs.push((Rc::clone(order), running));
        self.apply(self.runs.len() - 1, turn, rng, out);
        let early = std::mem::take(&mut self.early);
        let (now, later) = early.into_iter().partition(|(session, ..)| *session == order.session);
        self.early = later;
        let now: Vec<(Name, u32, Vec<u8>)> = now;
        for (session, from, bytes) in now {
            self.handle(session, from, &bytes, rng, out);
        }
    }

    /// Shows an envelope to all of its runs.
    pub fn handle(
        &mut self,
        session: Name,
        from: u32,
        bytes: &[u8],
        rng: &mut ChaCha20Rng,
        out: &mut Vec<Message<S>>,
    ) {
        let mut known = false;
        for at in 0..self.runs.len() {
            if self.runs[at].0.session == session {
                known = true;
                let turn = self.runs[at].1.open(from, bytes, rng);
                self.apply(at, turn, rng, out);
            }
        }
        if !known {
            self.early.push((session, from, bytes.to_vec()));
        }
    }

    fn apply(&mut self, at: usize, turn: Turn<S>, rng: &mut ChaCha20Rng, out: &mut Vec<Message<S>>) {
        let (order, running) = &self.runs[at];
        let order = Rc::clone(order);
        let others: Vec<u32> = order.parties().into_iter().filter(|to| *to != self.number).collect();
        for (recipient, bytes) in turn.outgoing {
            let recipients: Vec<PartyId> = others
                .iter()
                .filter(|to| recipient.is_none_or(|recipient| recipient == **to))
                .map(|to| party(*to))
                .collect();
            if self.behaves {
                let Some(bytes) = running.sealed(&bytes, rng) else { continue };
                out.extend(recipients.iter().map(|to| self.envelope(*to, order.session, bytes.clone())));
                continue;
            }
            for told in self.liar.says(rng, &bytes, &recipients) {
                let Ok(envelope) = Envelope::decode(&told.bytes) else { continue };
                let mut bytes = told.bytes;
                if envelope.recipient().is_some() && told.cover != Cover::None {
                    let Some(sealed) = running.sealed(&bytes, rng) else { continue };
                    bytes = sealed;
                    if told.cover == Cover::Broken {
                        let last = bytes.len() - 1 - pick(rng, bytes.len());
                        bytes[last] ^= 1;
                    }
                }
                out.push(self.envelope(told.to, order.session, bytes));
            }
        }
        let End::Made(made) = turn.end else { return };
        let (public, share) = *made;
        let bytes = encoded::<S>(&public);
        let epoch = S::facts(&public).epoch;
        let statement = Statement { session: order.session, epoch, public: Rc::new(bytes.clone()) };
        self.finished.insert(order.session, statement.clone());
        if let Some(share) = share {
            self.shares.push((bytes, Rc::new(share)));
        }
        if self.patient && !self.behaves {
            self.counts(Deceit::Declines);
            let declines = |to| Message::Declined { from: self.number, to, session: order.session };
            out.extend(others.iter().map(|to| declines(*to)));
        }
        let told: Vec<u32> = match if self.patient { 2 } else { pick(rng, 3) } {
            _ if self.behaves => others,
            0 => others,
            1 => {
                self.counts(Deceit::TellsSome);
                others.into_iter().filter(|_| pick(rng, 2) == 0).collect()
            }
            _ => {
                self.counts(Deceit::KeepsBack);
                Vec::new()
            }
        };
        told.into_iter().for_each(|to| out.push(self.completed(to, &statement)));
    }

    fn envelope(&self, to: PartyId, session: Name, bytes: Vec<u8>) -> Message<S> {
        Message::Envelope { from: self.number, to: to.get().into(), session, bytes }
    }

    fn counts(&mut self, deceit: Deceit) {
        *self.deceits.entry(deceit).or_default() += 1;
    }

    fn completed(&mut self, to: u32, statement: &Statement) -> Message<S> {
        self.signed.insert(statement.session);
        let signature = self.pen.signs(statement);
        self.shows(to, statement, signature, None)
    }

    fn shows(
        &self,
        to: u32,
        statement: &Statement,
        signature: Signed,
        certificate: Option<Certificate>,
    ) -> Message<S> {
        let (statement, active) = (statement.clone(), certificate.is_some());
        let report = Report { statement, signature, active, certificate, asks: true };
        Message::Completed { from: self.number, to, report }
    }

    /// Hears what the others say; if it behaves it answers as it should.
    pub fn hears(&mut self, from: u32, report: Report, out: &mut Vec<Message<S>>) {
        let Report { statement, signature, certificate, asks, .. } = report;
        let session = statement.session;
        let heard = self.heard.entry(session).or_insert_with(|| (statement.clone(), BTreeMap::new()));
        if heard.0 == statement {
            heard.1.insert(from, signature);
            if let (Some(certificate), Some(order)) = (certificate, self.orders.get(&session)) {
                heard.1.extend(order.parties().into_iter().zip(certificate.0));
            }
        }
        if self.behaves && asks {
            match self.finished.get(&session).cloned() {
                Some(statement) => out.push(self.completed(from, &statement)),
                None => out.push(Message::Declined { from: self.number, to: from, session }),
            }
        }
    }

    /// Nobody follows its runs any more.
    pub fn gives_up_runs(&mut self) {
        self.runs.clear();
        self.early.clear();
    }

    /// Says or does something that nobody has asked for.
    pub fn acts(&mut self, honest: &[u32], rng: &mut ChaCha20Rng, out: &mut Vec<Message<S>>) {
        let deceit = Deceit::ALL[pick(rng, Deceit::ALL.len())];
        if self.deceives(deceit, honest, rng, out).is_some() {
            self.counts(deceit);
        }
    }

    /// Statements of sessions that it could sign: those that it knows the public data of.
    fn known(&self) -> Vec<Statement> {
        let heard = self.heard.values().map(|(statement, _)| statement);
        let unheard = self.finished.values().filter(|done| !self.heard.contains_key(&done.session));
        heard.chain(unheard).cloned().collect()
    }

    /// A certificate as far as it can be put together.
    fn signatures(&self, statement: &Statement) -> Option<(Vec<Signed>, bool)> {
        let members = self.orders.get(&statement.session)?.parties();
        let (_, heard) = self.heard.get(&statement.session)?;
        let all: Vec<Signed> = members
            .iter()
            .filter_map(|member| {
                if *member == self.number {
                    Some(self.pen.signs(statement))
                } else {
                    heard.get(member).cloned()
                }
            })
            .collect();
        let whole = all.len() == members.len();
        Some((all, whole))
    }

    /// Acts out a deceit; `None` if there is nothing to do it with.
    fn deceives(
        &mut self,
        deceit: Deceit,
        honest: &[u32],
        rng: &mut ChaCha20Rng,
        out: &mut Vec<Message<S>>,
    ) -> Option<()> {
        let one = honest[pick(rng, honest.len())];
        let another = honest[pick(rng, honest.len())];
        let known = self.known();
        if matches!(deceit, Deceit::RunsAgain | Deceit::Restored) {
            if deceit == Deceit::Restored {
                let at = pick(rng, self.runs.len());
                return (at < self.runs.len()).then(|| drop(self.runs.remove(at)));
            }
            let order = self.orders.values().nth(pick(rng, self.orders.len())).cloned()?;
            self.begin(&order, rng, out);
            return Some(());
        }
        // Most deceits are about the latest sessions.
        let latest = known.iter().map(|statement| statement.epoch).max()?;
        let recent: Vec<&Statement> =
            known.iter().filter(|statement| statement.epoch == latest || pick(rng, 3) == 0).collect();
        let statement = recent[pick(rng, recent.len())].clone();
        let session = statement.session;
        let number = self.number;
        let declines = |to| Message::Declined { from: number, to, session };
        match deceit {
            Deceit::KeepsBack | Deceit::TellsSome | Deceit::RunsAgain | Deceit::Restored => return None,
            Deceit::Equivocates => {
                if one == another {
                    return None;
                }
                out.push(self.completed(one, &statement));
                out.push(declines(another));
            }
            Deceit::SaysBoth => {
                out.push(self.completed(one, &statement));
                out.push(declines(one));
            }
            Deceit::Declines => out.push(declines(one)),
            Deceit::SignsOtherData => {
                let mut bytes = statement.public.to_vec();
                let at = pick(rng, bytes.len());
                bytes[at] ^= 1;
                let other = Statement { public: Rc::new(bytes), ..statement };
                out.push(self.completed(one, &other));
            }
            Deceit::SignsOtherEpoch => {
                let epoch = statement.epoch + 1 + pick(rng, 2) as u32;
                out.push(self.completed(one, &Statement { epoch, ..statement }));
            }
            Deceit::SignsUnseen => {
                if self.finished.contains_key(&session) {
                    return None;
                }
                out.push(self.completed(one, &statement));
            }
            Deceit::SignsLate => {
                if !self.finished.contains_key(&session) || self.signed.contains(&session) {
                    return None;
                }
                out.push(self.completed(one, &statement));
            }
            Deceit::ReplaysStatement => {
                let (_, heard) = self.heard.get(&session)?;
                let signed = heard.values().nth(pick(rng, heard.len()))?.clone();
                out.push(self.shows(one, &statement, signed, None));
            }
            Deceit::SendsOtherStatement => {
                let other = known.iter().find(|other| other.session != session)?;
                let signed = self.pen.signs(other);
                out.push(self.shows(one, &statement, signed, None));
            }
            Deceit::ShowsCertificate | Deceit::ShowsHalf | Deceit::ShowsOther => {
                let (mut signatures, whole) = self.signatures(&statement)?;
                let mut about = statement.clone();
                match deceit {
                    Deceit::ShowsCertificate if !whole => return None,
                    Deceit::ShowsHalf => {
                        let members = self.orders.get(&session)?.parties().len();
                        if whole {
                            signatures.remove(pick(rng, members));
                        }
                        if pick(rng, 2) == 0 {
                            signatures.resize_with(members, || self.pen.signs(&statement));
                        }
                    }
                    Deceit::ShowsOther => {
                        about = known.iter().find(|other| other.session != session)?.clone();
                    }
                    _ => (),
                }
                let signed = self.pen.signs(&about);
                out.push(self.shows(one, &about, signed, Some(Certificate(signatures))));
            }
            Deceit::Asks => {
                let signature = self.pen.signs(&statement);
                let report = Report { statement, signature, active: false, certificate: None, asks: true };
                out.push(Message::Completed { from: self.number, to: one, report });
            }
        }
        Some(())
    }
}
