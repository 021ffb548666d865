//! Keys of all parties as keys of two, and keys of two as shares that are reshared to all.

use std::marker::PhantomData;
use std::sync::Arc;

use circuit_sessions::{Child, Slip10Key};
use circuits::hardened::{KeyShares, Node, PublicNode};
use engine::seal::DataKey;
use engine::{PartyId, Secret, SetupError, Threshold};
use protocols::dealing::{Companion, Curve, Held, Public, Scheme};
use protocols::ecdsa::{Ecdsa, KeyPublic, KeyShare, decode_point, encode_point};
use protocols::frost;

use crate::dealing::share_done;
use crate::inputs::Inputs;
use crate::pairs::{PairName, Place};
use crate::proto;
use crate::session::sealed;

/// FROST on the curve of Ed25519.
type Ed25519 = frost::Frost<frost::Ed25519>;

/// Shares of a child begin here; the reshare to all parties makes the next epoch.
const EPOCH: u32 = 1;

/// [Hardened 1] A key with threshold 2 as two of its parties hold it.
pub(super) fn node(share: KeyShare, name: &PairName) -> Result<Node, SetupError> {
    let Held::<Ecdsa> { public, signing_share, .. } = Ecdsa::open(share);
    if public.threshold.get() != 2 {
        return Err(SetupError::ThresholdRange);
    }
    let point = |party| public.verification_point(party).map(|point| encode_point(&point));
    let (Some(point), Some(their_point)) = (point(name.me), point(name.peer)) else {
        return Err(SetupError::SigningSetNotOfKey);
    };
    let encoded = <<Ecdsa as Scheme>::Curve as Curve>::encode_scalar(signing_share.expose());
    let mut share = Secret::new([0; 32]);
    let encoded: &[u8; 32] = encoded.as_slice().try_into().map_err(|_| SetupError::ShareInvalid)?;
    share.expose_mut().copy_from_slice(encoded);
    let known = PublicNode { public_key: encode_point(&public.public_key), chain_code: public.chain_code };
    let shares = KeyShares { share: &share, point: &point, their_point: &their_point };
    Node::from_shamir(known, &shares, name.me.get(), name.peer.get()).ok_or(SetupError::ShareInvalid)
}

/// The things from which the end of a derivation makes a key of two parties.
pub(crate) struct Making {
    key: Arc<DataKey>,
    name: PairName,
    child_key_id: String,
    /// Room of what the session prepares; given back at its end.
    place: Option<Place>,
}

impl Making {
    pub(super) fn new(
        inputs: &Inputs<'_>,
        name: PairName,
        child_key_id: String,
        place: Place,
    ) -> Result<Self, SetupError> {
        Ok(Self { key: Arc::clone(&inputs.vault()?.key), name, child_key_id, place: Some(place) })
    }

    /// The child of an ECDSA key or a seed; empty if there is none.
    pub(super) fn ecdsa_done(&mut self, child: Option<Child>) -> proto::Done {
        drop(self.place.take());
        match child {
            Some(child) => share_done::<Ecdsa>(&sealed(self.ecdsa(&child)), &self.key),
            None => proto::Done::default(),
        }
    }

    /// The key of a node of SLIP-10.
    pub(super) fn ed25519_done(&mut self, key: &Slip10Key) -> proto::Done {
        drop(self.place.take());
        share_done::<Ed25519>(&sealed(self.ed25519(key)), &self.key)
    }

    fn ecdsa(&self, Child { public, shares }: &Child) -> Option<KeyShare> {
        let points = self.by_party(shares.points).map(|(party, point)| Some((party, decode_point(&point)?)));
        let public = KeyPublic {
            key_id: self.child_key_id.clone(),
            epoch: EPOCH,
            threshold: Threshold::new(2)?,
            public_key: decode_point(&public.public_key)?,
            chain_code: public.chain_code,
            verification_shares: points.into_iter().collect::<Option<_>>()?,
        };
        self.share::<Ecdsa>(public, &shares.share)
    }

    fn ed25519(
        &self,
        Slip10Key { public_key, shares }: &Slip10Key,
    ) -> Option<frost::KeyShare<frost::Ed25519>> {
        let points = self.by_party(shares.points).map(|(party, point)| (party, point.to_vec()));
        let public = frost::KeyPublic {
            key_id: self.child_key_id.clone(),
            epoch: EPOCH,
            threshold: Threshold::new(2)?,
            public_key: public_key.to_vec(),
            // A key of FROST on this curve has no children.
            chain_code: [0; 32],
            verification_shares: points.into(),
            suite: PhantomData,
        };
        self.share::<Ed25519>(public, &shares.share)
    }

    /// The points of this party's share and of its peer's, ascending by party.
    fn by_party<T>(&self, [own, theirs]: [T; 2]) -> [(PartyId, T); 2] {
        let (me, peer) = (self.name.me, self.name.peer);
        if me < peer { [(me, own), (peer, theirs)] } else { [(peer, theirs), (me, own)] }
    }

    /// With nothing that the two have in common beside their shares: it cannot sign by ECDSA before a reshare.
    fn share<S>(&self, public: S::Public, share: &Secret<[u8; 32]>) -> Option<S::Share>
    where
        S: Scheme<Companion: Companion<Output: Default>>,
    {
        let scalar = Secret::new(S::Curve::decode_scalar(share.expose())?);
        Some(S::share(public, self.name.me, scalar, Default::default()))
    }
}
