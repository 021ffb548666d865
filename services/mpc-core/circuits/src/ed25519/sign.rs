//! Signing by two parties.

use std::hint::black_box;
use std::io;

use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::Scalar;
use primitives::Secret;
use rand_core::CryptoRng;
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

use super::nonce::{MASK_BITS, NonceCircuit};
use super::rfc8032::{challenge, signature};
use crate::authenticated::bits::Link;
use crate::authenticated::dabits::{Ed25519, point, scalar};
use crate::authenticated::digest::tagged;
use crate::authenticated::{Abort, DaBits, Entry, FixedInput, Pair, Prepared, Role, evaluate};
use crate::line::Line;

/// A party's durable record of the nonce points that it has used: one for all of its peers, and kept as long as the
/// key.
pub trait NonceRecord {
    /// Gives the nonce point that is recorded for this key and message (its SHA-512 digest), after recording this one
    /// if there is none. When it returns, the record is on stable storage, and no other call, process or replica will
    /// give another point.
    ///
    /// # Errors
    /// The record could not be read or written; nothing is signed then.
    fn settle(&mut self, key: &[u8; 32], message: &[u8; 64], nonce: &[u8; 32]) -> io::Result<[u8; 32]>;
}

/// A key as two of its parties hold it.
pub struct PairKey {
    pub(super) public_key: [u8; 32],
    /// This party's part of the secret scalar for this pair: both parts add up to it.
    pub(super) share: Secret<[u8; 32]>,
    pub(super) point: EdwardsPoint,
    pub(super) their_point: EdwardsPoint,
    /// Both shares of the prefix.
    pub(super) prefix: FixedInput,
}

/// One signature prepared up to the message, which may have as many blocks as it was prepared for. It is used once, by
/// value.
#[must_use]
#[cfg_attr(test, derive(Clone))]
pub struct Ready {
    blocks: usize,
    prepared: Prepared,
    masks: DaBits,
}

impl Ready {
    /// [Ed25519 4] Prepares a signature: nothing of key or message goes into it.
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub async fn new<L: Line>(
        pair: &Pair,
        circuit: &NonceCircuit,
        channel: &mut L,
        rng: &mut (dyn CryptoRng + Send),
    ) -> Result<Ready, Abort> {
        let (prepared, masks) =
            Prepared::with_dabits(pair, &circuit.private, MASK_BITS, channel, rng).await?;
        Ok(Ready { blocks: circuit.blocks(), prepared, masks })
    }

    /// Tells this preparation from every other. The same at both parties, and no secret.
    #[must_use]
    pub fn session(&self) -> [u8; 32] {
        self.prepared.session()
    }
}

/// A signature between its halves: both parties know the nonce point, and neither has said anything under it. It is
/// used once, by value.
#[must_use]
pub struct OpenNonce {
    /// The set-up's identity.
    pair: [u8; 32],
    session: [u8; 32],
    key: [u8; 32],
    /// The public wires of the message, and its digest.
    public: Vec<u8>,
    digest: [u8; 64],
    /// This party's part of the nonce.
    own: Zeroizing<Scalar>,
    own_point: EdwardsPoint,
    their_point: EdwardsPoint,
    point: [u8; 32],
}

impl OpenNonce {
    /// The preparation that was used up, as [`Ready::session`].
    #[must_use]
    pub fn session(&self) -> [u8; 32] {
        self.session
    }

    /// SHA-512 of the message.
    #[must_use]
    pub fn message(&self) -> &[u8; 64] {
        &self.digest
    }

    /// The nonce point, R of the signature.
    #[must_use]
    pub fn point(&self) -> &[u8; 32] {
        &self.point
    }
}

/// Steps of the signature are numbered from here, beyond those of the evaluation.
const SIGNING: u64 = 1 << 34;

impl PairKey {
    /// A key that was made as shares: the points are those of both parties' parts of the secret scalar.
    pub(crate) fn new(
        share: &Scalar,
        point: EdwardsPoint,
        their_point: EdwardsPoint,
        prefix: FixedInput,
    ) -> PairKey {
        let public_key = (point + their_point).compress().to_bytes();
        PairKey { public_key, share: Secret::new(share.to_bytes()), point, their_point, prefix }
    }

    /// This party's part of the secret scalar, to be shared anew among all parties: both parts add up to it.
    pub fn share(&self) -> &Secret<[u8; 32]> {
        &self.share
    }

    /// The points of this party's part and of the peer's.
    #[must_use]
    pub fn points(&self) -> [[u8; 32]; 2] {
        [self.point, self.their_point].map(|point| point.compress().to_bytes())
    }

    /// The public key.
    #[must_use]
    pub fn public_key(&self) -> &[u8; 32] {
        &self.public_key
    }

    /// [Ed25519 5 to 9] Signs a message; both parties get the signature, which is the one of RFC 8032.
    ///
    /// # Errors
    /// A message of another number of blocks, a record that fails, a broken connection, or a peer that deviates: see
    /// [`Abort`].
    pub async fn sign<L: Line>(
        &self,
        pair: &Pair,
        circuit: &NonceCircuit,
        ready: Ready,
        message: &[u8],
        record: &mut (dyn NonceRecord + Send),
        channel: &mut L,
    ) -> Result<[u8; 64], Abort> {
        let nonce = self.open_nonce(pair, circuit, ready, message, channel).await?;
        let settled = record.settle(&self.public_key, nonce.message(), nonce.point());
        let recorded = settled.map_err(Abort::Record)?;
        self.answer(pair, circuit, nonce, message, &recorded, channel).await
    }

    /// [Ed25519 5, 6] The first half of a signature, up to the record.
    ///
    /// # Errors
    /// As [`PairKey::sign`].
    pub async fn open_nonce<L: Line>(
        &self,
        pair: &Pair,
        circuit: &NonceCircuit,
        ready: Ready,
        message: &[u8],
        channel: &mut L,
    ) -> Result<OpenNonce, Abort> {
        let Ready { blocks, prepared, masks } = ready;
        let public = (blocks == circuit.blocks())
            .then(|| circuit.public_wires(message))
            .flatten()
            .ok_or(Abort::Caller("the message takes another number of blocks than was prepared"))?;
        let digest: [u8; 64] = Sha512::digest(message).into();
        let purpose = tagged("coterie/ed25519-sign/1", &[&self.public_key, &digest]);
        let input = FixedInput::joined(&[&self.prefix, masks.input()]);
        let session = prepared.session();
        // [Ed25519 5] The nonce under both masks.
        let entry = Entry::Fixed { input: &input, public: &public, purpose };
        let masked = number(&evaluate(pair, prepared, entry, channel).await?);
        pair.guard(async {
            let mut link = Link::resume(pair, session, SIGNING, channel);
            let garbles = pair.role() == Role::Garbler;
            // [Ed25519 6] r = c - ρ_A - ρ_B; the garbler's part is c - ρ_A. The evaluator's goes with its masks of the
            // results.
            let mask = masks.number::<Ed25519>(0..MASK_BITS)?;
            let known = |garbles: bool| if garbles { masked } else { Scalar::ZERO };
            let own = Zeroizing::new(known(garbles) - mask.value());
            let own_point = EdwardsPoint::mul_base(&own);
            let mut opening = [0u8; 64];
            let (first, second) = opening.split_at_mut(32);
            first.copy_from_slice(own_point.compress().as_bytes());
            second.copy_from_slice(&mask.tag());
            let their_point = exchange(&mut link, Role::Evaluator, &opening, |theirs| {
                let (first, tag) = theirs.split_first_chunk::<32>().ok_or(Abort::Malformed)?;
                let their_point = point(first)?;
                let tag = tag.try_into().map_err(|_| Abort::Malformed)?;
                mask.check(&(EdwardsPoint::mul_base(&known(!garbles)) - their_point), tag)?;
                Ok(their_point)
            })
            .await?;
            let point = (own_point + their_point).compress().to_bytes();
            let key = self.public_key;
            Ok(OpenNonce {
                pair: pair.identity(),
                session,
                key,
                public,
                digest,
                own,
                own_point,
                their_point,
                point,
            })
        })
        .await
    }

    /// [Ed25519 7 to 9] The second half: `recorded` is the nonce point that this party has on stable storage for key
    /// and message, as [`NonceRecord::settle`] gives it.
    ///
    /// # Errors
    /// As [`PairKey::sign`].
    pub async fn answer<L: Line>(
        &self,
        pair: &Pair,
        circuit: &NonceCircuit,
        nonce: OpenNonce,
        message: &[u8],
        recorded: &[u8; 32],
        channel: &mut L,
    ) -> Result<[u8; 64], Abort> {
        pair.guard(async {
            pair.owns(Some(nonce.pair))?;
            if nonce.key != self.public_key {
                return Err(Abort::Caller("this nonce is one of another key"));
            }
            // [Ed25519 7] One nonce point for each message, for ever.
            if *recorded != nonce.point {
                return Err(Abort::OtherNonce);
            }
            // [Ed25519 8] Both contributions to S.
            let challenge = self.challenge(circuit, &nonce.point, message, &nonce.public, &nonce.digest)?;
            let damaged = Abort::Caller("this party's share is damaged");
            let Ok(share) = scalar(self.share.expose()).map(Zeroizing::new) else { return Err(damaged) };
            let own = Zeroizing::new(*nonce.own + challenge * *share);
            if EdwardsPoint::mul_base(&own) != nonce.own_point + self.point * challenge {
                return Err(damaged);
            }
            let mut link = Link::resume(pair, nonce.session, SIGNING, channel);
            let theirs = exchange(&mut link, Role::Garbler, own.as_bytes(), |theirs| {
                let theirs = scalar(theirs)?;
                let fits =
                    EdwardsPoint::mul_base(&theirs) == nonce.their_point + self.their_point * challenge;
                if fits { Ok(theirs) } else { Err(Abort::Partial) }
            })
            .await?;
            // [Ed25519 9] The equation of RFC 8032 follows from both checks, since the points of the shares add up to
            // the key.
            Ok(signature(&nonce.point, &(*own + theirs)))
        })
        .await
    }

    /// k of a message, computed twice and from the message that the nonce and the record are of: a second k with the
    /// same nonce, by a fault in either, gives this party's share away.
    pub(super) fn challenge(
        &self,
        circuit: &NonceCircuit,
        nonce_point: &[u8; 32],
        message: &[u8],
        public: &[u8],
        digest: &[u8; 64],
    ) -> Result<Scalar, Abort> {
        let of = |message: &[u8]| challenge(nonce_point, &self.public_key, message);
        let first = of(message);
        // Behind a barrier, so that nothing of the first time is taken again.
        let again = black_box(message);
        let same = of(again) == first
            && Sha512::digest(again).as_slice() == digest
            && circuit.public_wires(again).is_some_and(|wires| wires == public);
        if same { Ok(first) } else { Err(Abort::Caller("the message changed in memory while it was signed")) }
    }
}

/// Sends bytes and checks as many that it receives. The party that speaks second says nothing if the other's are wrong.
async fn exchange<L: Line, const N: usize, T>(
    link: &mut Link<'_, L>,
    first: Role,
    own: &[u8; N],
    check: impl FnOnce(&[u8; N]) -> Result<T, Abort>,
) -> Result<T, Abort> {
    let begins = link.role() == first;
    if begins {
        link.go_on()?;
        link.channel.say(own)?;
    }
    let theirs = check(&link.channel.block().await?)?;
    if !begins {
        link.go_on()?;
        link.channel.say(own)?;
    }
    Ok(theirs)
}

/// The number of these bits modulo q, the lowest first.
fn number(bits: &[bool]) -> Scalar {
    bits.iter().rev().fold(Scalar::ZERO, |sum, bit| sum + sum + Scalar::from(u8::from(*bit)))
}
