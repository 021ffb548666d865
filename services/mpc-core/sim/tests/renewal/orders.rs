//! Orders that a coordinator gives, and orders that it should not give.

use std::rc::Rc;

use rand_core::Rng;

use super::World;
use crate::scheme::{Facts, Order, Scheme};
use crate::signer::Held;
use crate::{Message, PARTIES};

/// One way in which a coordinator gives orders that it should not give.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Misorder {
    /// Over shares of an epoch that is gone.
    Outdated,
    /// To some of the parties.
    ToSome,
    /// The same once more.
    Again,
    /// With the session id of another one.
    SameId,
    /// Leaving as many old parties out as can sign.
    LeavesTooManyOut,
}

impl Misorder {
    pub const ALL: [Misorder; 5] =
        [Misorder::Outdated, Misorder::ToSome, Misorder::Again, Misorder::SameId, Misorder::LeavesTooManyOut];
}

impl<S: Scheme> World<S> {
    /// How many of the old parties a reshare may leave out. An honest party of both of two reshares of one epoch
    /// settles which of them counts. With a bad party the signers' own rule does not see to it that there is one, so
    /// here the owner's requests do.
    fn may_leave_out(&self, base: &Facts) -> usize {
        let (n, t) = (base.parties.len(), base.threshold as usize);
        if self.any_bad() { (n - t) / 2 } else { t - 1 }
    }

    /// Other parties or another threshold.
    fn change(&mut self, base: &Facts, too_many_out: bool) -> Option<(Vec<u32>, Vec<u32>, u32)> {
        let most = self.may_leave_out(base);
        if too_many_out {
            let (dealers, left) = base.parties.split_at(base.parties.len() - base.threshold as usize);
            let stay = |number: &u32| !left.contains(number);
            let receivers = PARTIES.into_iter().filter(stay).collect();
            return (!dealers.is_empty()).then(|| (dealers.to_vec(), receivers, 2));
        }
        for _ in 0..50 {
            let receivers = self.some_of(&PARTIES, 2);
            let t = 2 + self.pick(receivers.len() - 1) as u32;
            let dealers = self.some_of(&base.parties, base.threshold as usize);
            let left = base.parties.iter().filter(|p| !dealers.contains(p) && !receivers.contains(p)).count();
            if left <= most {
                return Some((dealers, receivers, t));
            }
        }
        None
    }

    /// A coordinator that takes the key for what one of its parties, perhaps one that is behind, says it is.
    pub(super) fn order(&mut self) {
        let misorder = (self.faulty && self.pick(4) == 0).then(|| Misorder::ALL[self.pick(5)]);
        let holders: Vec<&Held<S>> =
            self.signers.values().filter_map(|signer| signer.store.active()).collect();
        let bases: Vec<S::Public> = holders.iter().map(|held| held.public.clone()).collect();
        let mut base = bases[self.pick(bases.len())].clone();
        let earlier = (!self.orders.is_empty()).then(|| {
            let at = self.pick(self.orders.len());
            Rc::clone(&self.orders[at])
        });
        let mut session = [0; 32];
        self.rng.fill_bytes(&mut session);
        let mut request = self.rng.next_u64();
        match (misorder, &earlier) {
            (Some(Misorder::Again), Some(earlier)) => {
                self.misordered(Misorder::Again);
                let order = Rc::clone(earlier);
                order.parties().into_iter().for_each(|to| self.order_one(to, &order));
                return;
            }
            (Some(Misorder::Outdated), Some(earlier)) if earlier.base != base => {
                self.misordered(Misorder::Outdated);
                base = earlier.base.clone();
            }
            (Some(Misorder::SameId), Some(earlier)) => {
                self.misordered(Misorder::SameId);
                session = earlier.session;
            }
            _ => (),
        }
        let facts = S::facts(&base);
        let too_many_out = misorder == Some(Misorder::LeavesTooManyOut);
        let mut change = None;
        if too_many_out || self.pick(2) == 0 {
            change = self.change(&facts, too_many_out);
        }
        if too_many_out && change.is_some() {
            self.misordered(Misorder::LeavesTooManyOut);
        }
        // The same request once more, with another session.
        if let Some(last) = self.orders.last().cloned()
            && last.base == base
            && session != last.session
            && !too_many_out
            && self.pick(2) == 0
        {
            request = last.request;
            change = last.change.clone();
        }
        let order = Rc::new(Order { session, request, base, change });
        self.orders.push(Rc::clone(&order));
        let mut to = order.parties();
        if misorder == Some(Misorder::ToSome) {
            self.misordered(Misorder::ToSome);
            to = self.some_of(&to, 1);
        }
        to.into_iter().for_each(|to| self.order_one(to, &order));
    }

    fn misordered(&mut self, misorder: Misorder) {
        *self.counts.misorders.entry(misorder).or_default() += 1;
    }

    pub(super) fn order_one(&mut self, to: u32, order: &Rc<Order<S>>) {
        self.post(Message::Order { to, order: Rc::clone(order) });
    }
}
