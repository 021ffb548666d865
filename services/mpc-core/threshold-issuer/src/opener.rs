//! An opener's share at work: it signs the openers' key for a group, and opens single approvals. Steps are cited as
//! [G1.2] (`docs/protocols/wbb.md`).

use engine::{EvidenceKey, SIGNATURE_BYTES};
use group_signatures::{
    Approval, GroupId, GroupPublic, OpenerError, OpenerKey, Openers, OpeningError, OpeningShare, Request,
};
use rand_core::CryptoRng;

use crate::key::{KeyOfOpeners, OpenerShare};

impl KeyOfOpeners {
    /// [G1.1] the key as that of the configured openers.
    pub fn of(&self, openers: &Openers) -> Result<OpenerKey, OpenerError> {
        // Fewer points than the configured threshold would lead to the key of a smaller one as well.
        if self.threshold().get() != openers.threshold() {
            return Err(OpenerError::Sharing);
        }
        let point = |party| Some((party, *self.share(party)?));
        let shares: Vec<_> = self.parties().iter().filter_map(point).collect();
        OpenerKey::new(openers, &shares)
    }
}

impl OpenerShare {
    /// [G1.2] this opener says that the key is the openers', for one group and epoch. It signs one key for each group
    /// and epoch, with its own configured identity.
    pub fn attest(
        &self,
        openers: &Openers,
        group: &GroupId,
        identity: &EvidenceKey,
    ) -> Result<[u8; SIGNATURE_BYTES], OpenerError> {
        let (me, key) = (self.party(), self.holders().of(openers)?);
        let own = identity.public();
        if !openers.identities().any(|(party, configured)| party == me && *configured == own) {
            return Err(OpenerError::WrongShare(me));
        }
        key.attest(group, me, self.secret(), identity)
    }

    /// [O1] its share of the opening of one approval, which must hold for the request.
    pub fn open(
        &self,
        group: &GroupPublic,
        request: &Request,
        approval: &Approval,
        rng: &mut dyn CryptoRng,
    ) -> Result<OpeningShare, OpeningError> {
        OpeningShare::new(group, request, approval, self.party(), self.secret(), rng)
    }
}
