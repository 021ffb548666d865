//! SLIP-10 for Ed25519: all levels are hardened, and a private key is not a scalar but what RFC 8032 calls a seed.

use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use primitives::Secret;
use zeroize::Zeroizing;

use super::circuit::{Ready, SUM_BITS, Step, StepCircuit, bytes};
use super::node::ShamirShare;
use super::opened::Opened;
use crate::authenticated::dabits::{Ed25519, point, scalar};
use crate::authenticated::digest::tagged;
use crate::authenticated::{Abort, Entry, FixedInput, Pair, evaluate_keeping};
use crate::ed25519::PairKey;
use crate::line::Line;

/// The highest bit of a child's number, which SLIP-10 sets for every child.
const HARDENED: u32 = 1 << 31;

/// A node of SLIP-10 for Ed25519 as two parties hold it: its private key is shared by exclusive or, in bits that are
/// fixed as inputs of this pair. It has no public key until that is asked for.
pub struct Slip10Node {
    pub(super) key: FixedInput,
    pub(super) chain_code: [u8; 32],
}

impl Slip10Node {
    /// The chain code, which both parties know.
    #[must_use]
    pub fn chain_code(&self) -> &[u8; 32] {
        &self.chain_code
    }

    /// [Hardened 11] The child of this number, which is below 2^31.
    ///
    /// # Errors
    /// A number that is too large, something prepared for another step, a broken connection, or a peer that deviates:
    /// see [`Abort`].
    pub async fn child<L: Line>(
        &self,
        pair: &Pair,
        circuit: &StepCircuit,
        ready: Ready,
        index: u32,
        channel: &mut L,
    ) -> Result<Slip10Node, Abort> {
        let (prepared, _) = ready.open(pair, circuit, |step| step == Step::Slip10Child)?;
        if index >= HARDENED {
            return Err(Abort::Caller("a child's number is below 2^31"));
        }
        let public = circuit.public_wires(&[&self.chain_code, &(index | HARDENED).to_le_bytes()]);
        let purpose = tagged("coterie/slip10-child/1", &[&self.chain_code, &index.to_be_bytes()]);
        let entry = Entry::Fixed { input: &self.key, public: &public, purpose };
        let (chain, key) = evaluate_keeping(pair, prepared, entry, circuit.step().kept(), channel).await?;
        Ok(Slip10Node { key, chain_code: bytes(&chain)? })
    }

    /// [Hardened 12] The key that signs for this node, with RFC 8032's prefix shared: its public key and nothing else
    /// is opened.
    ///
    /// # Errors
    /// As [`Slip10Node::child`].
    pub async fn key<L: Line>(
        &self,
        pair: &Pair,
        circuit: &StepCircuit,
        ready: Ready,
        channel: &mut L,
    ) -> Result<PairKey, Abort> {
        let (prepared, masks) = ready.open(pair, circuit, |step| step == Step::Slip10Key)?;
        let session = prepared.session();
        let input = FixedInput::joined(&[&self.key, masks.input()]);
        let purpose = tagged("coterie/slip10-key/1", &[&self.chain_code]);
        let entry = Entry::Fixed { input: &input, public: &circuit.public_wires(&[]), purpose };
        let (masked, prefix) =
            evaluate_keeping(pair, prepared, entry, circuit.step().kept(), channel).await?;
        if masked.len() != SUM_BITS {
            return Err(Abort::Caller("the circuit has results of another length"));
        }
        let scalar = Opened::<Ed25519>::new(pair, session, &masks, &masked, channel).await?;
        Ok(PairKey::new(&scalar.share, scalar.point, scalar.their_point, prefix))
    }
}

impl PairKey {
    /// Both shares of the secret scalar as Shamir's scheme with threshold 2 has them, for the parties of these numbers:
    /// a reshare to more parties takes them. `None` for numbers that are zero or equal, and if a share is zero: a peer
    /// that chooses its mask can have that, and no honest party does.
    #[must_use]
    pub fn to_shamir(&self, own: u16, peer: u16) -> Option<ShamirShare<32>> {
        if own == 0 || peer == 0 || own == peer {
            return None;
        }
        let (x, y) = (Scalar::from(own), Scalar::from(peer));
        // The inverses of Lagrange's coefficients at 0; both numbers are public.
        let (own, their) = ((y - x) * y.invert(), (x - y) * x.invert());
        let share = Zeroizing::new(scalar(self.share().expose()).ok()?);
        let share = Zeroizing::new(*share * own);
        let [own_point, their_point] = self.points();
        let points = [point(&own_point).ok()? * own, point(&their_point).ok()? * their];
        if points.iter().any(IsIdentity::is_identity) {
            return None;
        }
        let points = points.map(|point| point.compress().to_bytes());
        Some(ShamirShare { share: Secret::new(share.to_bytes()), points })
    }
}
