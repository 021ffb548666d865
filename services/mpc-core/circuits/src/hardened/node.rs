//! Keys of BIP-32 that two parties share, and their children.

use hmac::{Hmac, KeyInit, Mac};
use primitives::Secret;
use primitives::secp256k1::{
    POINT_BYTES, Point, Scalar, decode_point, decode_scalar, encode_point, encode_scalar, mul_generator,
};
use sha2::Sha512;
use zeroize::Zeroizing;

use super::circuit::{Ready, SUM_BITS, Step, StepCircuit, bytes};
use super::opened::Opened;
use crate::authenticated::dabits::{Group, Secp256k1};
use crate::authenticated::digest::{same, tagged};
use crate::authenticated::{Abort, Entry, FixedInput, Pair, Role, evaluate_keeping};
use crate::line::Line;

/// The highest bit of a child's number, which says that it is hardened.
const HARDENED: u32 = 1 << 31;

/// The public part of a node: BIP-32's extended public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicNode {
    /// The public key, compressed.
    pub public_key: [u8; POINT_BYTES],
    /// The chain code.
    pub chain_code: [u8; 32],
}

/// A share of a key, and the public key of that share, of this party and of its peer.
pub struct KeyShares<'a> {
    /// This party's share, the highest byte first.
    pub share: &'a Secret<[u8; 32]>,
    /// The point of this party's share.
    pub point: &'a [u8; POINT_BYTES],
    /// The point of the peer's share.
    pub their_point: &'a [u8; POINT_BYTES],
}

/// One of two shares of a key as Shamir's scheme with threshold 2 has them.
pub struct ShamirShare<const POINT: usize> {
    /// This party's share, in the byte order of the curve's standard.
    pub share: Secret<[u8; 32]>,
    /// The points of this party's share and of the peer's, compressed.
    pub points: [[u8; POINT]; 2],
}

/// A key of BIP-32 as two of its parties hold it: shares that add up to the private key.
pub struct Node {
    public: PublicNode,
    /// This party's share, the highest byte first.
    pub(super) share: Secret<[u8; 32]>,
    point: Point,
    their_point: Point,
}

impl Node {
    /// [Hardened 1] A key whose private key is the sum of two shares; `None` if a share is not that of its point, or
    /// the points do not add up to the public key.
    #[must_use]
    pub fn from_sum(public: PublicNode, shares: &KeyShares<'_>) -> Option<Node> {
        Self::weighted(public, shares, &Scalar::ONE, &Scalar::ONE)
    }

    /// [Hardened 1] A key that is shared by Shamir's scheme with threshold 2, for the parties of these numbers; `None`
    /// as for a sum, and for numbers that are zero or equal.
    #[must_use]
    pub fn from_shamir(public: PublicNode, shares: &KeyShares<'_>, own: u16, peer: u16) -> Option<Node> {
        let (own, their) = weights(own, peer)?;
        Self::weighted(public, shares, &own, &their)
    }

    /// Both shares as Shamir's scheme with threshold 2 has them, for the parties of these numbers: a reshare to more
    /// parties takes them, and so does [`Node::from_shamir`]. `None` for numbers that are zero or equal, and if a share
    /// is zero: a peer that chooses its mask can have that, and no honest party does.
    #[must_use]
    pub fn to_shamir(&self, own: u16, peer: u16) -> Option<ShamirShare<POINT_BYTES>> {
        let (own, their) = weights(own, peer)?;
        let inverse = |weight: Scalar| Option::<Scalar>::from(weight.invert());
        let (own, their) = (inverse(own)?, inverse(their)?);
        let share = Zeroizing::new(decode_scalar(self.share.expose())?);
        let share = Zeroizing::new(*share * own);
        let points = [encode_point(&(self.point * own)), encode_point(&(self.their_point * their))];
        // The identity has no encoding that is read.
        points.iter().map(decode_point).collect::<Option<Vec<_>>>()?;
        Some(ShamirShare { share: Secret::new(encode_scalar(&share)), points })
    }

    fn weighted(public: PublicNode, shares: &KeyShares<'_>, own: &Scalar, their: &Scalar) -> Option<Node> {
        let share = Zeroizing::new(decode_scalar(shares.share.expose())?);
        let (point, their_point) = (decode_point(shares.point)?, decode_point(shares.their_point)?);
        if encode_point(&mul_generator(&share)) != *shares.point {
            return None;
        }
        let share = Zeroizing::new(*share * own);
        Self::sum(public.chain_code, &share, point * own, their_point * their)
            .filter(|node| node.public == public)
    }

    /// The key of both shares; `None` if it is zero.
    pub(super) fn sum(
        chain_code: [u8; 32],
        share: &Scalar,
        point: Point,
        their_point: Point,
    ) -> Option<Node> {
        let public_key = encode_point(&(point + their_point));
        // The identity has no encoding that is read.
        decode_point(&public_key)?;
        let public = PublicNode { public_key, chain_code };
        Some(Node { public, share: Secret::new(encode_scalar(share)), point, their_point })
    }

    /// Public key and chain code. A second pair of the key's parties derives the same ones, or one of both has other
    /// secrets.
    #[must_use]
    pub fn public(&self) -> &PublicNode {
        &self.public
    }

    /// This party's share of the private key, for signing or to be shared anew among all parties: both parties' shares
    /// add up to it.
    pub fn share(&self) -> &Secret<[u8; 32]> {
        &self.share
    }

    /// The points of this party's share and of the peer's, compressed.
    #[must_use]
    pub fn points(&self) -> [[u8; POINT_BYTES]; 2] {
        [encode_point(&self.point), encode_point(&self.their_point)]
    }

    /// The child of this number that is not hardened, which each party computes for itself; `None` if there is none,
    /// and for numbers from 2^31 on.
    #[must_use]
    pub fn normal(&self, role: Role, index: u32) -> Option<Node> {
        if index >= HARDENED {
            return None;
        }
        let mut mac = Hmac::<Sha512>::new_from_slice(&self.public.chain_code).ok()?;
        mac.update(&self.public.public_key);
        mac.update(&index.to_be_bytes());
        let digest: [u8; 64] = mac.finalize().into_bytes().into();
        let (left, right) = digest.split_first_chunk::<32>()?;
        let tweak = decode_scalar(left)?;
        let share = Zeroizing::new(decode_scalar(self.share.expose())?);
        let moved = mul_generator(&tweak);
        // The garbler's share moves.
        let (own, their) = match role {
            Role::Garbler => (self.point + moved, self.their_point),
            Role::Evaluator => (self.point, self.their_point + moved),
        };
        let share = Zeroizing::new(if role == Role::Garbler { *share + tweak } else { *share });
        Node::sum(right.try_into().ok()?, &share, own, their)
    }

    /// [Hardened 3 to 6] The hardened child of this number, which is written with an apostrophe and is below 2^31.
    /// `None` if BIP-32 has no such child, which happens once in 2^127 children: the next number has one.
    ///
    /// # Errors
    /// A number that is too large, something prepared for another step, a broken connection, or a peer that deviates:
    /// see [`Abort`].
    pub async fn hardened<L: Line>(
        &self,
        pair: &Pair,
        circuit: &StepCircuit,
        ready: Ready,
        index: u32,
        channel: &mut L,
    ) -> Result<Option<Node>, Abort> {
        let (prepared, mut masks) = ready.open(pair, circuit, |step| step == Step::Child)?;
        if index >= HARDENED {
            return Err(Abort::Caller("a child's number is below 2^31"));
        }
        let session = prepared.session();
        let [first, second] = match pair.role() {
            Role::Garbler => self.points(),
            Role::Evaluator => {
                let [own, their] = self.points();
                [their, own]
            }
        };
        let chain = self.public.chain_code;
        let purpose =
            tagged("coterie/hardened-child/1", &[&session, &first, &second, &chain, &index.to_be_bytes()]);
        // Parties that mean different keys or children find out before the first check, which would exclude the peer.
        pair.guard(async { agree(pair.role(), &purpose, channel).await }).await?;
        // [Hardened 3] Both shares are those of their points.
        let share = Zeroizing::new(
            decode_scalar(self.share.expose()).ok_or(Abort::Caller("this party's share is damaged"))?,
        );
        let bound = masks
            .take(Secp256k1::SHARE_BITS)
            .bind_share::<Secp256k1, _>(pair, &prepared, &share, &self.their_point, channel)
            .await?;
        let [first, second] = bound.corrections;
        let correction = Secp256k1::bytes(&(first + second));
        // [Hardened 4] I, its left half under both masks.
        let input = FixedInput::joined(&[&bound.input, masks.input()]);
        let public = circuit.public_wires(&[&correction, &chain, &(index | HARDENED).to_le_bytes()]);
        let entry = Entry::Fixed { input: &input, public: &public, purpose };
        let (results, _) = evaluate_keeping(pair, prepared, entry, 0, channel).await?;
        let Some(Halves { masked, chain }) = Halves::of(&results)? else { return Ok(None) };
        // [Hardened 5, 6] The shares of both move by those of the left half.
        let left = Opened::<Secp256k1>::new(pair, session, &masks, masked, channel).await?;
        let share = Zeroizing::new(*share + *left.share);
        Ok(Node::sum(chain, &share, self.point + left.point, self.their_point + left.their_point))
    }
}

/// The coefficients of Lagrange's at 0 of the line through two parties' shares. Both numbers are public.
fn weights(own: u16, peer: u16) -> Option<(Scalar, Scalar)> {
    if own == 0 || peer == 0 {
        return None;
    }
    let (x, y) = (Scalar::from(u32::from(own)), Scalar::from(u32::from(peer)));
    let inverse = Option::<Scalar>::from((y - x).invert())?;
    Some((y * inverse, -(x * inverse)))
}

/// The garbler says what is to be done, and the evaluator goes on if it is the same.
pub(super) async fn agree<L: Line>(role: Role, purpose: &[u8; 32], channel: &mut L) -> Result<(), Abort> {
    match role {
        Role::Garbler => Ok(channel.send(purpose)?),
        Role::Evaluator if same(purpose, &channel.block().await?) => Ok(()),
        Role::Evaluator => Err(Abort::Disagreement),
    }
}

/// BIP-32's I.
pub(super) struct Halves<'a> {
    /// The left half, under both masks.
    pub(super) masked: &'a [bool],
    /// The right half.
    pub(super) chain: [u8; 32],
}

impl Halves<'_> {
    /// The halves in the results of a circuit; `None` if the left one is no key.
    pub(super) fn of(results: &[bool]) -> Result<Option<Halves<'_>>, Abort> {
        let (masked, rest) = results.split_at(SUM_BITS.min(results.len()));
        let (valid, chain) =
            rest.split_first().ok_or(Abort::Caller("the circuit has results of another length"))?;
        let chain = bytes::<32>(chain)?;
        Ok(valid.then_some(Halves { masked, chain }))
    }
}
