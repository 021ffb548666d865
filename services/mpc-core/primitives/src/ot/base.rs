//! Endemic base transfers on Ristretto (Masny, Rindal 2019, figure 8 with Diffie-Hellman as key agreement).
//!
//! For each place the requester sends two points, one random, one chosen so that hashing the other onto it gives a
//! point whose logarithm it knows. Which one, nothing shows. The answer is one point A = y·G for all places; the two
//! keys of a place are hashes of y times its two hashed points. Both sides may choose their own keys as they like (this
//! is what *endemic* means), but the requester learns only one of each two, under the gap Diffie-Hellman assumption
//! with random oracles.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_TABLE;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use rand_core::CryptoRng;
use sha2::{Digest, Sha256, Sha512};
use subtle::{Choice, ConditionallySelectable};
use zeroize::{Zeroize, Zeroizing};

use super::block::{absorb, half};
use super::check::OtError;
use super::parameters::CORRELATION_BITS;

const POINT_BYTES: usize = 32;
/// Two points for each place.
pub(crate) const REQUEST_BYTES: usize = CORRELATION_BITS * 2 * POINT_BYTES;
/// One point.
pub(crate) const ANSWER_BYTES: usize = POINT_BYTES;

const HASH_TO_POINT: &str = "coterie/ot-base-point/1";
const KEY: &str = "coterie/ot-base-key/1";

/// A random oracle into the group, doubled like everything here that is encoded in batches.
///
/// The batch encoder returns the encoding of twice each point; so every point of the protocol is held as its half.
fn half_point(binding: &[u8; 32], place: u8, branch: u8, other: &[u8; POINT_BYTES]) -> RistrettoPoint {
    let mut hash = Sha512::new();
    for part in [HASH_TO_POINT.as_bytes(), binding, &[place, branch], other] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    RistrettoPoint::from_uniform_bytes(&hash.finalize().into())
}

/// The hash that makes keys out of shared points, with all that is the same for the whole set-up absorbed already.
fn key_hash(binding: &[u8; 32], answer: &[u8; ANSWER_BYTES]) -> Sha256 {
    let mut hash = Sha256::new();
    absorb(&mut hash, KEY.as_bytes());
    absorb(&mut hash, binding);
    absorb(&mut hash, answer);
    hash
}

fn key(
    hash: &Sha256,
    place: u8,
    branch: u8,
    pair: &[[u8; POINT_BYTES]; 2],
    shared: &CompressedRistretto,
) -> u128 {
    let mut hash = hash.clone();
    hash.update([place, branch]);
    for part in pair {
        hash.update(part);
    }
    hash.update(shared.as_bytes());
    let mut digest: [u8; 32] = hash.finalize().into();
    let key = u128::from_le_bytes(half(&digest));
    digest.zeroize();
    key
}

/// The side that learns one key of each two: the sender of the extension.
pub(crate) struct Requester {
    binding: [u8; 32],
    choices: Zeroizing<[u8; CORRELATION_BITS]>,
    exponents: Zeroizing<Vec<Scalar>>,
    pairs: Vec<[[u8; POINT_BYTES]; 2]>,
}

impl Requester {
    /// One choice (0 or 1) for each place.
    pub(crate) fn new(
        binding: &[u8; 32],
        choices: &Zeroizing<[u8; CORRELATION_BITS]>,
        rng: &mut dyn CryptoRng,
    ) -> (Self, Vec<u8>) {
        let mut uniform = Zeroizing::new([0u8; 64]);
        let mut draw = || {
            rng.fill_bytes(uniform.as_mut());
            *uniform
        };
        // Which of the two points of a place is which tells the choice: all of them are wiped.
        let others: Zeroizing<Vec<RistrettoPoint>> =
            Zeroizing::new(choices.iter().map(|_| RistrettoPoint::from_uniform_bytes(&draw())).collect());
        let exponents: Zeroizing<Vec<Scalar>> =
            Zeroizing::new(choices.iter().map(|_| Scalar::from_bytes_mod_order_wide(&draw())).collect());
        let others = Zeroizing::new(RistrettoPoint::double_and_compress_batch(others.iter()));

        let chosen: Vec<RistrettoPoint> = (0u8..)
            .zip(choices.iter())
            .zip(exponents.iter())
            .zip(others.iter())
            .map(|(((place, choice), exponent), other)| {
                RISTRETTO_BASEPOINT_TABLE * exponent - half_point(binding, place, *choice, other.as_bytes())
            })
            .collect();
        let chosen = Zeroizing::new(chosen);
        let chosen = Zeroizing::new(RistrettoPoint::double_and_compress_batch(chosen.iter()));

        let pairs: Vec<[[u8; POINT_BYTES]; 2]> = choices
            .iter()
            .zip(chosen.iter().zip(others.iter()))
            .map(|(choice, (chosen, other))| {
                let second = Choice::from(*choice);
                let pick = |a: &CompressedRistretto, b: &CompressedRistretto| {
                    let mut point = a.to_bytes();
                    for (byte, alternative) in point.iter_mut().zip(b.as_bytes()) {
                        byte.conditional_assign(alternative, second);
                    }
                    point
                };
                [pick(chosen, other), pick(other, chosen)]
            })
            .collect();
        let request = pairs.iter().flatten().flatten().copied().collect();
        (Self { binding: *binding, choices: choices.clone(), exponents, pairs }, request)
    }

    /// The chosen key of each place.
    pub(crate) fn receive(self, answer: &[u8; ANSWER_BYTES]) -> Result<Zeroizing<Vec<u128>>, OtError> {
        let point = decode(answer)?;
        let table = RistrettoBasepointTable::create(&point);
        let shared: Zeroizing<Vec<RistrettoPoint>> =
            Zeroizing::new(self.exponents.iter().map(|exponent| &table * exponent).collect());
        // The chosen point is twice `exponent`·G, and the encoder doubles once more.
        let doubled: Zeroizing<Vec<RistrettoPoint>> =
            Zeroizing::new(shared.iter().map(|point| point + point).collect());
        let encoded = Zeroizing::new(RistrettoPoint::double_and_compress_batch(doubled.iter()));
        let hash = key_hash(&self.binding, answer);
        Ok(Zeroizing::new(
            (0u8..)
                .zip(self.choices.iter())
                .zip(self.pairs.iter().zip(encoded.iter()))
                .map(|((place, choice), (pair, shared))| key(&hash, place, *choice, pair, shared))
                .collect(),
        ))
    }
}

/// Both keys of each place.
pub(crate) type KeyPairs = Zeroizing<Vec<[u128; 2]>>;

/// A requester's message, decoded: as long as an answer needs it, so that no point is decompressed twice.
pub(crate) struct Request {
    pub(crate) bytes: Box<[u8; REQUEST_BYTES]>,
    points: Vec<[RistrettoPoint; 2]>,
}

impl Request {
    pub(crate) fn decode(bytes: &[u8; REQUEST_BYTES]) -> Result<Self, OtError> {
        let mut points = Vec::with_capacity(CORRELATION_BITS);
        for pair in bytes.as_chunks::<{ 2 * POINT_BYTES }>().0 {
            let [first, second] = halves(pair);
            points.push([decode(&first)?, decode(&second)?]);
        }
        Ok(Self { bytes: Box::new(*bytes), points })
    }
}

/// Both keys of each place, and the point that lets the requester compute one of them.
pub(crate) fn answer(
    binding: &[u8; 32],
    request: &Request,
    rng: &mut dyn CryptoRng,
) -> (KeyPairs, [u8; ANSWER_BYTES]) {
    let mut uniform = Zeroizing::new([0u8; 64]);
    rng.fill_bytes(uniform.as_mut());
    let secret = Zeroizing::new(Scalar::from_bytes_mod_order_wide(&uniform));
    let answer = (RISTRETTO_BASEPOINT_TABLE * &*secret).compress().to_bytes();
    let hash = key_hash(binding, &answer);

    let mut pairs = Vec::with_capacity(CORRELATION_BITS);
    let mut shared = Zeroizing::new(Vec::with_capacity(2 * CORRELATION_BITS));
    let received = request.bytes.as_chunks::<{ 2 * POINT_BYTES }>().0.iter().zip(&request.points);
    for (place, (pair, [a, b])) in (0u8..).zip(received) {
        let [first, second] = halves(pair);
        let (hashed_a, hashed_b) =
            (half_point(binding, place, 0, &second), half_point(binding, place, 1, &first));
        shared.push((a + hashed_a + hashed_a) * *secret);
        shared.push((b + hashed_b + hashed_b) * *secret);
        pairs.push([first, second]);
    }
    let encoded = Zeroizing::new(RistrettoPoint::double_and_compress_batch(shared.iter()));
    let keys = (0u8..)
        .zip(pairs.iter().zip(encoded.as_chunks::<2>().0))
        .map(|(place, (pair, [a, b]))| [key(&hash, place, 0, pair, a), key(&hash, place, 1, pair, b)])
        .collect();
    (Zeroizing::new(keys), answer)
}

fn halves(pair: &[u8; 2 * POINT_BYTES]) -> [[u8; POINT_BYTES]; 2] {
    let (mut first, mut second) = ([0u8; POINT_BYTES], [0u8; POINT_BYTES]);
    let (head, tail) = pair.split_at(POINT_BYTES);
    first.copy_from_slice(head);
    second.copy_from_slice(tail);
    [first, second]
}

/// Whether these are a canonical point other than the identity.
pub(crate) fn is_point(bytes: &[u8; POINT_BYTES]) -> bool {
    decode(bytes).is_ok()
}

/// A canonical point other than the identity.
fn decode(bytes: &[u8; POINT_BYTES]) -> Result<RistrettoPoint, OtError> {
    CompressedRistretto(*bytes)
        .decompress()
        .filter(|point| *point != RistrettoPoint::identity())
        .ok_or(OtError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn choices() -> Zeroizing<[u8; CORRELATION_BITS]> {
        Zeroizing::new(core::array::from_fn(|place| u8::from(place % 3 == 1)))
    }

    fn decoded(request: &[u8]) -> Request {
        Request::decode(request.try_into().unwrap()).unwrap()
    }

    #[test]
    fn requester_learns_exactly_its_choice() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (requester, request) = Requester::new(&[7; 32], &choices(), &mut rng);
        let (keys, answer) = answer(&[7; 32], &decoded(&request), &mut rng);
        let received = requester.receive(&answer).unwrap();
        for ((choice, got), pair) in choices().iter().zip(received.iter()).zip(keys.iter()) {
            assert_eq!(*got, pair[usize::from(*choice)]);
            assert_ne!(*got, pair[usize::from(1 - *choice)]);
        }
    }

    #[test]
    fn keys_depend_on_the_binding() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let (requester, request) = Requester::new(&[7; 32], &choices(), &mut rng);
        let (keys, answer) = answer(&[8; 32], &decoded(&request), &mut rng);
        let received = requester.receive(&answer).unwrap();
        assert!(received.iter().zip(keys.iter()).all(|(got, pair)| !pair.contains(got)));
    }

    #[test]
    fn identity_and_non_canonical_points_are_refused() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        for bad in [[0u8; 32], [0xff; 32], {
            let mut odd = [0u8; 32];
            odd[0] = 1;
            odd
        }] {
            let (requester, request) = Requester::new(&[7; 32], &choices(), &mut rng);
            assert_eq!(requester.receive(&bad).err(), Some(OtError::Malformed));
            let mut request: [u8; REQUEST_BYTES] = request.try_into().unwrap();
            request[64 * 5..64 * 5 + 32].copy_from_slice(&bad);
            assert_eq!(Request::decode(&request).err(), Some(OtError::Malformed));
        }
    }
}
