//! The checks of what is seen on the wire and of the answers.

use std::collections::{BTreeMap, BTreeSet};

use engine::forge::Forged;

use super::{Digest, Name, Scheme};

/// Its kind, its sender, its value.
type OneTime = (&'static str, u32, Vec<u8>);
/// Session, run nonce, process.
type RunName = (Name, [u8; 16], usize);

/// Watches the wire and the answers.
pub struct Checker<S: Scheme> {
    /// One-time values: the run in which they were first seen.
    once: BTreeMap<OneTime, RunName>,
    /// The process whose message is looked at, where a party may have several.
    pub process: usize,
    /// Last words by (sender, nonce point).
    partials: BTreeMap<(u32, Vec<u8>), Vec<u8>>,
    /// By the nonce point of each signature: it, and the digest that was signed.
    signed: BTreeMap<Vec<u8>, (S::Signature, Digest)>,
    /// The messages asked for under each request, and the one digest of it that was signed.
    pub requested: BTreeSet<(u8, Digest)>,
    settled: BTreeMap<u8, Digest>,
    answered: BTreeMap<u8, S::Signature>,
    pub violations: Vec<String>,
}

impl<S: Scheme> Checker<S> {
    pub fn new() -> Self {
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
    pub fn signature(&mut self, request: u8, digest: Digest, signature: &S::Signature) {
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
    pub fn nonce_of(&mut self, digest: Digest, signature: &S::Signature) {
        let nonce = S::nonce_point(signature);
        let (other, of) = self.signed.entry(nonce).or_insert_with(|| (signature.clone(), digest));
        if other != signature || *of != digest {
            self.violations.push("one nonce in two signatures".to_owned());
        }
    }

    pub fn answer(&mut self, request: u8, signature: &S::Signature) {
        if self.answered.entry(request).or_insert_with(|| signature.clone()) != signature {
            self.violations.push(format!("request {request}: two answers"));
        }
    }
}
