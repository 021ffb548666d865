//! One presignature, round by round. Steps are cited as [P1.2] from `docs/protocols/ecdsa.md`.
//!
//! Symbols of the paper (Doerner, Kondi, Lee, shelat 2023, protocol 3.6):
//!
//! | paper | here |
//! |---|---|
//! | r_i, R_i | `nonce`, `nonce_point` |
//! | φ_i | `mask` |
//! | sk_i, pk_i | `key`, `key_point`: additive share of the (derived) secret key, re-randomised by a share of zero |
//! | χ_(i,j) | `bob.factor()` |
//! | c^u, c^v and d^u, d^v | `products` of Alice and of Bob |
//! | Γ^u, Γ^v | `product_points` |
//! | ψ_(i,j) | `mask_minus_factor` |
//! | u_i, v_i | `masked_nonce`, `masked_key` |

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::wire::Writer;
use engine::{AbortCause, Fault, PartyId, Secret, SessionContext, hedged};
use primitives::declassify::{publish, published};
use primitives::ot::OtError;
use primitives::secp256k1::{Point, SCALAR_BYTES, Scalar, encode_scalar, mul_generator, reduce_wide};
use primitives::vole;
use primitives::vole::{Bob, PRODUCTS};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::binding::{DIGEST_BYTES, commitment_of, digest_of, multiplication, zero_share};
use super::material::Material;
use super::messages::{ByPeer, Commit, Multiply};
use crate::dealing::Public;
use crate::ecdsa::presignature::Presignature;
use crate::ecdsa::tags;

/// State of round 1.
pub struct Committed {
    pub(super) material: Arc<Material>,
    pub(super) place: u8,
    pub(super) nonce: Secret<Scalar>,
    pub(super) mask: Secret<Scalar>,
    pub(super) nonce_point: Point,
    /// Wiped, as an abort leaves the commitment closed.
    pub(super) salt: Zeroizing<[u8; DIGEST_BYTES]>,
    pub(super) commitment: [u8; DIGEST_BYTES],
    pub(super) bobs: BTreeMap<PartyId, Bob>,
}

/// State of round 2.
pub struct Multiplied {
    material: Arc<Material>,
    place: u8,
    /// The share of the key, re-randomised.
    key: Secret<Scalar>,
    nonce: Secret<Scalar>,
    mask: Secret<Scalar>,
    nonce_point: Point,
    key_point: Point,
    commitments: BTreeMap<PartyId, [u8; DIGEST_BYTES]>,
    agreed: [u8; DIGEST_BYTES],
    bobs: BTreeMap<PartyId, Bob>,
    /// Sum of Alice's shares of all products: for the nonce, for the key.
    products: Secret<[Scalar; PRODUCTS]>,
}

impl Committed {
    /// [P1] nonce and mask, commitment, Bob's message for each peer.
    ///
    /// `place` tells what one session makes side by side from each other: nothing of one fits another.
    pub(in crate::ecdsa) fn new(
        ctx: &SessionContext,
        material: Arc<Material>,
        place: u8,
        rng: &mut dyn CryptoRng,
    ) -> (Self, ByPeer<Commit>) {
        // [P1.1] all mixed with the key share, so that a bad generator is not fatal.
        let mut hedge = Writer::with_capacity(SCALAR_BYTES + 1);
        hedge.bytes(Zeroizing::new(encode_scalar(material.key.expose())).as_slice());
        hedge.u8(place);
        let hedge = Zeroizing::new(hedge.finish());
        let mut wide = |tag| hedged(ctx, tag, hedge.as_slice(), rng);
        let [nonce, mask] = [tags::NONCE, tags::MASK].map(|tag| Secret::new(reduce_wide(wide(tag).expose())));
        let nonce_point = mul_generator(nonce.expose());
        // [P1.2] half of what is drawn is as long as the digest that it blinds.
        let mut salt = Zeroizing::new([0u8; DIGEST_BYTES]);
        salt.copy_from_slice(&wide(tags::SALT).expose()[..DIGEST_BYTES]);
        let commitment = commitment_of(ctx, (material.me, place), &nonce_point, &salt);
        // [P1.3]
        let mut bodies = BTreeMap::new();
        let mut bobs = BTreeMap::new();
        for (peer, pair) in material.pairs.iter().filter(|(peer, _)| ctx.parties().contains(**peer)) {
            let binding = multiplication(ctx, place, *peer, material.me);
            let (bob, sample) = vole::sample(&binding, &pair.transfers.receiver, rng);
            bobs.insert(*peer, bob);
            if let Ok(sample) = sample.try_into().map(Box::new) {
                bodies.insert(*peer, Commit { commitment, sample });
            }
        }
        (Self { material, place, nonce, mask, nonce_point, salt, commitment, bobs }, bodies)
    }

    /// [P2] multiply with each peer, open the commitment.
    pub(in crate::ecdsa) fn advance(
        self,
        ctx: &SessionContext,
        shown: &ByPeer<Commit>,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Multiplied, ByPeer<Multiply>), Fault> {
        let Self { material, place, nonce, mask, nonce_point, salt, commitment, bobs } = self;
        let me = material.me;
        let mut commitments: BTreeMap<_, _> =
            shown.iter().map(|(peer, body)| (*peer, body.commitment)).collect();
        commitments.insert(me, commitment);
        // [P2.1] all commitments enter the shares of zero and are compared in round 2.
        let agreed = digest_of(ctx, place, &commitments);
        let mut key = Secret::new(*material.key.expose());
        for (peer, pair) in material.pairs.iter().filter(|(peer, _)| ctx.parties().contains(**peer)) {
            let share = zero_share(ctx, &agreed, (me, *peer), &pair.zero_seed);
            *key.expose_mut() += share.expose();
        }
        let key_point = mul_generator(key.expose());
        // [P2.2] Alice's step towards each peer. A failed check ends everything before anything depends on it.
        let inputs = Secret::new([*nonce.expose(), *key.expose()]);
        let mut products = Secret::new([Scalar::ZERO; PRODUCTS]);
        let mut bodies = BTreeMap::new();
        for (peer, Commit { sample, .. }) in shown {
            let pair = material.pairs.get(peer).ok_or_else(Fault::internal)?;
            let binding = multiplication(ctx, place, me, *peer);
            let (shares, message) = vole::multiply(&binding, &pair.transfers.sender, sample, &inputs, rng)
                .map_err(|error| pair_fault(error, *peer))?;
            let bob = bobs.get(peer).ok_or_else(Fault::internal)?;
            let message = message.try_into().map(Box::new).map_err(|_| Fault::internal())?;
            let product_points = shares.expose().map(|share| mul_generator(&share));
            let mask_minus_factor = mask.expose() - bob.factor().expose();
            for (sum, share) in products.expose_mut().iter_mut().zip(shares.expose()) {
                *sum += share;
            }
            let body = Multiply {
                commitments: agreed,
                salt: *salt,
                nonce_point,
                key_point,
                product_points,
                mask_minus_factor,
                message,
            };
            bodies.insert(*peer, body);
        }
        let state = Multiplied {
            material,
            place,
            key,
            nonce,
            mask,
            nonce_point,
            key_point,
            commitments,
            agreed,
            bobs,
            products,
        };
        Ok((state, bodies))
    }
}

impl Multiplied {
    /// [P3] check everything, and put the presignature together.
    pub(in crate::ecdsa) fn finish(
        self,
        ctx: &SessionContext,
        shown: &ByPeer<Multiply>,
    ) -> Result<Presignature, Fault> {
        let Self { material, place, key, nonce, mask, commitments, agreed, mut bobs, products, .. } = self;
        let (mut nonce_point, mut key_point) = (self.nonce_point, self.key_point);
        let mut masks = Secret::new(*mask.expose());
        let mut sums = products;
        // All of them have been posted.
        publish(&agreed);
        publish(&nonce_point);
        publish(&key_point);
        // [P3.1] everybody saw the same commitments; else nobody can be shown to have caused it.
        if shown.values().any(|body| body.commitments != agreed) {
            return Err(Fault::nobody(AbortCause::BroadcastMismatch));
        }
        for (peer, body) in shown {
            // [P3.2] the nonce point is the one committed to.
            let commitment = commitment_of(ctx, (*peer, place), &body.nonce_point, &body.salt);
            if commitments.get(peer) != Some(&commitment) {
                return Err(Fault::evident(AbortCause::WrongOpening, vec![*peer]));
            }
            // [P3.3] Bob's shares, after the check of Alice's message.
            let bob = bobs.remove(peer).ok_or_else(Fault::internal)?;
            let factor = Secret::new(*bob.factor().expose());
            let shares = bob.finish(&body.message).map_err(|error| pair_fault(error, *peer))?;
            // [P3.4] what Alice multiplied is the logarithm of her nonce point and of her key point.
            let inputs = [&body.nonce_point, &body.key_point];
            let checks = inputs.iter().zip(&body.product_points).zip(shares.expose());
            for ((input, product_point), share) in checks {
                if published(**input * factor.expose() - product_point != mul_generator(share)) {
                    return Err(Fault::evident(AbortCause::WrongProduct, vec![*peer]));
                }
            }
            for (sum, share) in sums.expose_mut().iter_mut().zip(shares.expose()) {
                *sum += share;
            }
            *masks.expose_mut() += &body.mask_minus_factor;
            nonce_point += &body.nonce_point;
            key_point += &body.key_point;
        }
        // [P3.5] the key shares are shares of the key.
        if key_point != material.child_key {
            return Err(Fault::nobody(AbortCause::InconsistentShares));
        }
        if nonce_point == Point::IDENTITY {
            return Err(Fault::nobody(AbortCause::DegenerateKey));
        }
        // [P3.6] shares of nonce·mask and of key·mask.
        let [nonce_products, key_products] = sums.expose();
        let masked_nonce = Secret::new(nonce.expose() * masks.expose() + nonce_products);
        let masked_key = Secret::new(key.expose() * masks.expose() + key_products);
        Ok(Presignature {
            id: agreed,
            party: material.me,
            signers: ctx.parties().clone(),
            key_id: material.public.key_id.clone(),
            epoch: material.public.epoch,
            key_digest: material.public.digest(),
            path: material.path.clone(),
            child_key: material.child_key,
            nonce_point,
            masked_nonce,
            mask,
            masked_key,
        })
    }
}

/// A failed check of a multiplication: this pair must never multiply again with the same set-up.
fn pair_fault(error: OtError, peer: PartyId) -> Fault {
    match error {
        OtError::Malformed => Fault::evident(AbortCause::MalformedBody, vec![peer]),
        OtError::CheckFailed => Fault::evident(AbortCause::TransferCheckFailed, vec![peer]),
    }
}
