//! Lies of corrupt parties, which take the place of the messages that the rules ask for.
//!
//! A corrupt party runs the real code, so that its lies reach every round, and a [`Liar`] turns each envelope that the
//! code makes into what is sent. One liar speaks for all corrupt parties of a schedule, over all sessions and runs, and
//! knows everything that any of them has sent or received.

use std::collections::BTreeMap;

use engine::forge::{Forged, disclosure, notice};
use engine::session::{DISCLOSURE_ROUND, NOTICE_ROUND};
use engine::{AbortCause, EvidenceKey, PartyId};
use rand_core::Rng;

use crate::schedule::pick;

/// One way to deviate. The names say what the corrupt party does with the envelope that is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lie {
    /// Sends it to nobody.
    Withholds,
    /// Leaves one recipient out.
    LeavesOneOut,
    /// Cuts the body.
    Truncates,
    /// Makes the body longer.
    Extends,
    /// Changes a bit of the body, the same for all: a wrong point, proof, share or opening.
    Alters,
    /// Changes a bit for one recipient of several.
    Equivocates,
    /// Sends two versions to everybody.
    Doubles,
    /// Puts a body meant for another party, or of another party, into it.
    Swaps,
    /// Puts a body of another run or session into it.
    Replays,
    /// Sends an older envelope as it was instead.
    Resends,
    /// Claims to have seen other broadcasts.
    ClaimsOtherEcho,
    /// Gives it the run nonce of another run.
    ClaimsOtherRun,
    /// Moves it to another round.
    ClaimsOtherRound,
    /// Sends a private envelope unsealed.
    Unseals,
    /// Breaks the seal of a private envelope.
    BreaksSeal,
    /// Ends the run of some parties by its word, without evidence.
    AbortsSelectively,
    /// Accuses a party by evidence made of what is known.
    Accuses,
    /// Discloses a view made of what is known.
    Discloses,
}

impl Lie {
    /// Those that fit every protocol.
    pub const OF_ALL: [Lie; 12] = [
        Lie::Withholds,
        Lie::LeavesOneOut,
        Lie::Truncates,
        Lie::Extends,
        Lie::Alters,
        Lie::Equivocates,
        Lie::Doubles,
        Lie::Swaps,
        Lie::Replays,
        Lie::Resends,
        Lie::ClaimsOtherRun,
        Lie::ClaimsOtherRound,
    ];
    /// Those that need signed envelopes.
    pub const OF_SIGNED: [Lie; 6] = [
        Lie::ClaimsOtherEcho,
        Lie::Unseals,
        Lie::BreaksSeal,
        Lie::AbortsSelectively,
        Lie::Accuses,
        Lie::Discloses,
    ];
}

/// How a private envelope of a protocol with signed envelopes is to travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cover {
    /// Sealed to its recipient.
    Sealed,
    /// Not sealed.
    None,
    /// Sealed, and changed afterwards.
    Broken,
}

/// An envelope that a corrupt party sends.
#[derive(Clone, Debug)]
pub struct Told {
    /// The recipient.
    pub to: PartyId,
    /// The plain envelope.
    pub bytes: Vec<u8>,
    /// How it travels, if it is private.
    pub cover: Cover,
}

/// How often each lie was told.
pub type Coverage = BTreeMap<Lie, usize>;

/// The lies that fit and were never told: those that need signed envelopes only where envelopes are `signed`.
pub fn untold(coverage: &Coverage, signed: bool) -> Vec<Lie> {
    let special: &[Lie] = if signed { &Lie::OF_SIGNED } else { &[] };
    Lie::OF_ALL.iter().chain(special).copied().filter(|lie| !coverage.contains_key(lie)).collect()
}

/// Schedules in which everything must have happened that is not rare. An event that happens 17 times in so many, each
/// time in another schedule, fails to happen with a probability of 4e-8.
pub const MANY: usize = 1_000;
/// Schedules in which everything must have happened.
pub const ENOUGH: usize = 10 * MANY;

/// Of what never happened in so many schedules, what should have. `rare` is what happens in fewer than 17 of 1,000.
pub fn overdue<T: PartialEq>(never: Vec<T>, rare: &[T], schedules: usize) -> Vec<T> {
    let due = |what: &T| schedules >= if rare.contains(what) { ENOUGH } else { MANY };
    never.into_iter().filter(due).collect()
}

/// Speaks for the corrupt parties of one schedule.
pub struct Liar {
    /// Of every 100 envelopes this many are lied about.
    percent: usize,
    key: fn(PartyId) -> EvidenceKey,
    /// Plain envelopes, oldest first.
    known: Vec<Vec<u8>>,
    told: Coverage,
}

fn any<'a, T>(rng: &mut impl Rng, of: &'a [T]) -> Option<&'a T> {
    of.get(pick(rng, of.len()))
}

impl Liar {
    /// Lies about `percent` of every 100 envelopes and signs by `key`.
    pub fn new(percent: usize, key: fn(PartyId) -> EvidenceKey) -> Self {
        Self { percent, key, known: Vec::new(), told: Coverage::new() }
    }

    /// Remembers a plain envelope that a corrupt party was sent.
    pub fn hears(&mut self, bytes: &[u8]) {
        if !self.known.iter().any(|known| known == bytes) {
            self.known.push(bytes.to_vec());
        }
    }

    /// Everything heard and said.
    pub fn known(&self) -> &[Vec<u8>] {
        &self.known
    }

    /// How often each lie was told.
    pub fn coverage(&self) -> &Coverage {
        &self.told
    }

    /// The envelopes sent in place of one that a corrupt party's code made for `recipients`.
    pub fn says(&mut self, rng: &mut impl Rng, bytes: &[u8], recipients: &[PartyId]) -> Vec<Told> {
        let sent = match Forged::open(bytes).filter(|_| pick(rng, 100) < self.percent) {
            Some(forged) => self.lies(rng, &forged, recipients),
            None => all(recipients, bytes),
        };
        self.hears(bytes);
        for told in &sent {
            self.hears(&told.bytes);
        }
        sent
    }

    fn lies(&mut self, rng: &mut impl Rng, due: &Forged, recipients: &[PartyId]) -> Vec<Told> {
        let signed = due.echo.is_some();
        let kinds = Lie::OF_ALL.len() + if signed { Lie::OF_SIGNED.len() } else { 0 };
        let kind = pick(rng, kinds);
        let lie = Lie::OF_ALL.get(kind).or_else(|| Lie::OF_SIGNED.get(kind - Lie::OF_ALL.len()));
        let sent = lie.and_then(|lie| Some((*lie, self.tell(rng, *lie, due, recipients)?)));
        match sent {
            Some((lie, sent)) => {
                *self.told.entry(lie).or_default() += 1;
                sent
            }
            None => all(recipients, &self.sign(due)),
        }
    }

    fn sign(&self, forged: &Forged) -> Vec<u8> {
        forged.encode(&(self.key)(forged.sender))
    }

    fn changed(&self, due: &Forged, change: impl FnOnce(&mut Forged)) -> Vec<u8> {
        let mut forged = copy(due);
        change(&mut forged);
        self.sign(&forged)
    }

    /// `None` if there is nothing to tell it with.
    fn tell(
        &mut self,
        rng: &mut impl Rng,
        lie: Lie,
        due: &Forged,
        recipients: &[PartyId],
    ) -> Option<Vec<Told>> {
        let genuine = self.sign(due);
        let private = due.recipient.is_some();
        let at = rng.next_u64();
        let altered = self.changed(due, |forged| flip(forged, at));
        let one = pick(rng, recipients.len());
        Some(match lie {
            Lie::Withholds => Vec::new(),
            Lie::LeavesOneOut => {
                let mut sent = all(recipients, &genuine);
                sent.remove(one);
                sent
            }
            Lie::Truncates => {
                let left = pick(rng, due.body.len());
                all(recipients, &self.changed(due, |forged| forged.body.truncate(left)))
            }
            Lie::Extends => all(recipients, &self.changed(due, |forged| forged.body.push(0))),
            Lie::Alters => all(recipients, &altered),
            Lie::Equivocates => {
                let mut sent = all(recipients, &genuine);
                if recipients.len() < 2 {
                    return None;
                }
                sent.get_mut(one)?.bytes = altered;
                sent
            }
            Lie::Doubles => [all(recipients, &genuine), all(recipients, &altered)].concat(),
            Lie::Swaps | Lie::Replays => {
                let other = self.body_of_another(rng, due, lie == Lie::Replays)?;
                all(recipients, &self.changed(due, |forged| forged.body = other))
            }
            Lie::Resends => {
                let fits = |forged: &Forged| forged.sender == due.sender && forged.recipient == due.recipient;
                let older: Vec<&Vec<u8>> = self
                    .known
                    .iter()
                    .filter(|bytes| Forged::open(bytes).is_some_and(|forged| fits(&forged)))
                    .collect();
                all(recipients, any(rng, &older)?)
            }
            Lie::ClaimsOtherRun => {
                let other = self.run_of_another(rng, due);
                let sent = self.changed(due, |forged| forged.run = other);
                if pick(rng, 2) == 0 {
                    all(recipients, &sent)
                } else {
                    [all(recipients, &genuine), all(recipients, &sent)].concat()
                }
            }
            Lie::ClaimsOtherRound => {
                all(recipients, &self.changed(due, |forged| forged.round = 1 + (at % 7) as u8))
            }
            Lie::ClaimsOtherEcho => {
                all(recipients, &self.changed(due, |forged| forged.echo = Some([at as u8; 32])))
            }
            Lie::Unseals | Lie::BreaksSeal if private => {
                let cover = if lie == Lie::Unseals { Cover::None } else { Cover::Broken };
                let mut sent = all(recipients, &genuine);
                sent.iter_mut().for_each(|told| told.cover = cover);
                sent
            }
            Lie::Unseals | Lie::BreaksSeal => return None,
            Lie::AbortsSelectively => {
                let causes = [
                    AbortCause::Internal,
                    AbortCause::BroadcastMismatch,
                    AbortCause::TransferCheckFailed,
                    AbortCause::DegenerateKey,
                    AbortCause::PartyRestarted,
                ];
                let cause = *any(rng, &causes)?;
                // A restart may be told with the name of a party.
                let accused = match cause {
                    AbortCause::PartyRestarted => any(rng, recipients).map_or(0, |party| party.get()),
                    _ => 0,
                };
                let word = self.special(due, NOTICE_ROUND, notice(cause, accused, &[]));
                let told: Vec<PartyId> = recipients.iter().copied().filter(|_| pick(rng, 2) == 0).collect();
                [all(&told, &word), all(recipients, &genuine)].concat()
            }
            Lie::Accuses => {
                let accusation = self.accusation(rng, due, recipients)?;
                let told: Vec<PartyId> = recipients.iter().copied().filter(|_| pick(rng, 3) > 0).collect();
                [all(&told, &accusation), all(recipients, &genuine)].concat()
            }
            Lie::Discloses => {
                let shown: Vec<Vec<u8>> =
                    (0..pick(rng, 5)).filter_map(|_| any(rng, &self.known).cloned()).collect();
                let claims = [any(rng, &self.known)?.clone(), any(rng, &self.known)?.clone()];
                let body = disclosure([&claims[0], &claims[1]], &shown)?;
                [all(recipients, &self.special(due, DISCLOSURE_ROUND, body)), all(recipients, &genuine)]
                    .concat()
            }
        })
    }

    /// A body of the same round: of another run or session, or, in this one, for or by another party.
    fn body_of_another(&self, rng: &mut impl Rng, due: &Forged, elsewhere: bool) -> Option<Vec<u8>> {
        let fits = |other: &Forged| {
            let here = other.session == due.session && other.run == due.run;
            other.protocol == due.protocol
                && other.round == due.round
                && other.body != due.body
                && if elsewhere { other.sender == due.sender && !here } else { other.session == due.session }
        };
        let others: Vec<Forged> =
            self.known.iter().filter_map(|bytes| Forged::open(bytes)).filter(|other| fits(other)).collect();
        any(rng, &others).map(|other| other.body.clone())
    }

    fn run_of_another(&self, rng: &mut impl Rng, due: &Forged) -> [u8; 16] {
        let known = any(rng, &self.known).and_then(|bytes| Forged::open(bytes));
        let mut run = known.map_or(due.run, |other| other.run);
        if run == due.run {
            run = run.map(|byte| byte ^ 1);
        }
        run
    }

    /// A notice or a disclosure beside the envelope that is due.
    fn special(&self, due: &Forged, round: u8, body: Vec<u8>) -> Vec<u8> {
        self.changed(due, |forged| {
            forged.round = round;
            forged.recipient = None;
            forged.echo = Some([0; 32]);
            forged.body = body;
        })
    }

    /// An accusation as a judge wants it, with evidence of this session that may not show it.
    fn accusation(&self, rng: &mut impl Rng, due: &Forged, recipients: &[PartyId]) -> Option<Vec<u8>> {
        let accused = *any(rng, recipients)?;
        let of_session: Vec<(Forged, &Vec<u8>)> = self
            .known
            .iter()
            .filter_map(|bytes| Some((Forged::open(bytes)?, bytes)))
            .filter(|(forged, _)| forged.session == due.session)
            .collect();
        let by_accused: Vec<&(Forged, &Vec<u8>)> =
            of_session.iter().filter(|(forged, _)| forged.sender == accused).collect();
        let cause = *any(rng, &AbortCause::ALL)?;
        let evidence: Vec<Vec<u8>> = match pick(rng, 4) {
            0 => (0..pick(rng, 4)).filter_map(|_| any(rng, &of_session)).map(|(_, b)| b.to_vec()).collect(),
            1 => (0..2).filter_map(|_| any(rng, &by_accused)).map(|(_, b)| b.to_vec()).collect(),
            // A history, of which the accused's word of a later round is the last.
            2 => {
                let (last, bytes) = any(rng, &by_accused)?;
                let earlier = of_session.iter().filter(|(forged, _)| {
                    forged.recipient.is_none() && forged.round < last.round && forged.round < DISCLOSURE_ROUND
                });
                earlier.map(|(_, bytes)| bytes.to_vec()).chain([bytes.to_vec()]).collect()
            }
            _ => any(rng, &by_accused).map(|(_, bytes)| bytes.to_vec()).into_iter().collect(),
        };
        Some(self.special(due, NOTICE_ROUND, notice(cause, accused.get(), &evidence)))
    }
}

fn all(recipients: &[PartyId], bytes: &[u8]) -> Vec<Told> {
    recipients.iter().map(|to| Told { to: *to, bytes: bytes.to_vec(), cover: Cover::Sealed }).collect()
}

fn copy(forged: &Forged) -> Forged {
    Forged { body: forged.body.clone(), ..*forged }
}

fn flip(forged: &mut Forged, at: u64) {
    let bits = 8 * u64::try_from(forged.body.len()).unwrap_or(u64::MAX);
    let bit = at.checked_rem(bits).unwrap_or(0);
    let place = usize::try_from(bit / 8).unwrap_or(0);
    if let Some(byte) = forged.body.get_mut(place) {
        *byte ^= 1 << (bit % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::{Coverage, ENOUGH, Lie, MANY, overdue, untold};

    #[test]
    fn a_lie_that_is_never_told_is_overdue() {
        let mut coverage: Coverage =
            Lie::OF_ALL.into_iter().chain(Lie::OF_SIGNED).map(|lie| (lie, 1)).collect();
        coverage.retain(|lie, _| ![Lie::Swaps, Lie::Unseals].contains(lie));
        let never = |runs| overdue(untold(&coverage, true), &[Lie::Unseals], runs);
        assert_eq!(never(MANY - 1), []);
        assert_eq!(never(MANY), [Lie::Swaps]);
        assert_eq!(never(ENOUGH), [Lie::Swaps, Lie::Unseals]);
    }
}
