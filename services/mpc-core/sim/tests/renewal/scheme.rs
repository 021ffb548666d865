//! The schemes whose keys are renewed, and the orders that renew them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use engine::wire::Writer;
use engine::{SessionId, SessionSettings};
use protocols::dealing::{Curve, Public, ReshareTerms};
use protocols::frost;
use sim::Faults;

use crate::PARTIES;
use crate::common::{self, party, roster, threshold};
use crate::dealing::{Bip340, Bls, Ecdsa, Ed25519, Shares, Tested, numbers, set};
use crate::{ecdsa_common, harness};

/// The id of a session.
pub type Name = [u8; 32];

/// The facts that everybody may know of a key.
#[derive(Clone, PartialEq, Debug)]
pub struct Facts {
    pub key: Vec<u8>,
    pub epoch: u32,
    pub threshold: u32,
    pub parties: Vec<u32>,
}

/// Everything that the schedules need of a scheme.
pub trait Scheme: Tested + 'static {
    fn shares() -> &'static Shares<Self>;
    /// Signs with these shares and has the signature verified.
    fn signs(shares: &Shares<Self>, signers: &[u32]);

    fn facts(public: &Self::Public) -> Facts {
        Facts {
            key: Self::Curve::encode_point(&public.public_point().unwrap()).unwrap(),
            epoch: public.epoch(),
            threshold: public.threshold().get() as u32,
            parties: numbers(&public.parties()),
        }
    }
}

impl Scheme for Bls {
    fn shares() -> &'static Shares<Self> {
        static SHARES: LazyLock<Shares<Bls>> = LazyLock::new(|| Bls::keys(&PARTIES[..3], 2, 1));
        &SHARES
    }

    fn signs(shares: &Shares<Self>, signers: &[u32]) {
        let outcomes = common::sign_with(shares, signers, b"renewed", 1, Faults::default());
        // The core verifies each signature under the key before it gives it out.
        let signatures: BTreeSet<_> =
            outcomes.into_values().map(|outcome| outcome.done.unwrap().signature).collect();
        assert_eq!(signatures.len(), 1);
    }
}

impl Scheme for Ecdsa {
    fn shares() -> &'static Shares<Self> {
        static SHARES: LazyLock<Shares<Ecdsa>> = LazyLock::new(|| Ecdsa::keys(&PARTIES[..3], 2, 1));
        &SHARES
    }

    fn signs(shares: &Shares<Self>, signers: &[u32]) {
        let request = ecdsa_common::payload([0x21; 32], &[]);
        let outcomes = ecdsa_common::sign_with(shares, signers, 1, &request, Faults::default());
        let key = shares[&signers[0]].public().public_key;
        for signature in ecdsa_common::by_number(outcomes).values() {
            ecdsa_common::verify_outside(&key, request.digest, signature);
        }
    }
}

macro_rules! schnorr {
    ($($suite:ident),+) => {
        $(impl Scheme for $suite {
            fn shares() -> &'static Shares<Self> {
                static SHARES: LazyLock<Shares<$suite>> = LazyLock::new(|| $suite::keys(&PARTIES[..3], 2, 1));
                &SHARES
            }

            fn signs(shares: &Shares<Self>, signers: &[u32]) {
                type Suite = frost::$suite;
                let target = <Suite as harness::Tested>::targets().remove(0);
                let request = harness::payload(harness::message(1), &target);
                let outcomes = harness::sign_with(shares, signers, 1, &request, Faults::default());
                harness::check(shares[&signers[0]].public(), &request, &harness::by_number(outcomes));
            }
        })+
    };
}

schnorr!(Ed25519, Bip340);

/// The work that a coordinator orders from signers, with the key as it believes it to be.
pub struct Order<S: Scheme> {
    pub session: Name,
    /// Sessions may be ordered again and again for one request of the key's owner.
    pub request: u64,
    pub base: S::Public,
    /// Dealers, receivers, threshold; none of it in a refresh.
    pub change: Option<(Vec<u32>, Vec<u32>, u32)>,
}

impl<S: Scheme> Order<S> {
    pub fn dealers(&self) -> Vec<u32> {
        match &self.change {
            None => S::facts(&self.base).parties,
            Some((dealers, ..)) => dealers.clone(),
        }
    }

    pub fn parties(&self) -> Vec<u32> {
        match &self.change {
            None => S::facts(&self.base).parties,
            Some((dealers, receivers, _)) => {
                dealers.iter().chain(receivers).copied().collect::<BTreeSet<_>>().into_iter().collect()
            }
        }
    }

    /// The context of one of its parties, or of a judge.
    pub fn settings(&self, me: Option<u32>) -> SessionSettings {
        let base = S::facts(&self.base);
        let payload = match &self.change {
            None => encoded::<S>(&self.base),
            Some((dealers, receivers, _)) => {
                let (dealers, receivers) = (set(dealers), set(receivers));
                ReshareTerms::<S> { dealers, receivers, base: self.base.clone() }.encode()
            }
        };
        SessionSettings {
            session_id: SessionId::new(self.session),
            me: me.map(party),
            roster: roster(&self.parties()),
            threshold: threshold(self.change.as_ref().map_or(base.threshold, |(_, _, t)| *t)),
            key_id: common::KEY_ID.to_owned(),
            epoch: base.epoch + 1,
            payload,
        }
    }
}

pub fn encoded<S: Scheme>(public: &S::Public) -> Vec<u8> {
    let mut writer = Writer::default();
    public.encode(&mut writer);
    writer.finish()
}
