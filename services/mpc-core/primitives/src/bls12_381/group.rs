//! The groups G1 and G2, their encodings, and signature checks by pairing.
//!
//! Encodings are those of the IETF BLS draft and of Ethereum ("ZCash format"): big-endian, flags in the top three bits.

use std::sync::OnceLock;

use blst::{
    BLST_ERROR, blst_final_exp, blst_fp12, blst_fp12_is_one, blst_hash_to_g1, blst_hash_to_g2,
    blst_miller_loop_n, blst_p1, blst_p1_add_or_double, blst_p1_add_or_double_affine, blst_p1_affine,
    blst_p1_affine_compress, blst_p1_affine_generator, blst_p1_affine_in_g1, blst_p1_affine_is_inf,
    blst_p1_affine_serialize, blst_p1_cneg, blst_p1_deserialize, blst_p1_double, blst_p1_from_affine,
    blst_p1_is_inf, blst_p1_to_affine, blst_p1_uncompress, blst_p1s_mult_pippenger_scratch_sizeof,
    blst_p1s_tile_pippenger, blst_p2, blst_p2_add_or_double_affine, blst_p2_affine, blst_p2_affine_compress,
    blst_p2_affine_generator, blst_p2_affine_in_g2, blst_p2_affine_is_inf, blst_p2_affine_serialize,
    blst_p2_cneg, blst_p2_deserialize, blst_p2_from_affine, blst_p2_mult, blst_p2_to_affine,
    blst_p2_uncompress, blst_p2s_mult_pippenger, blst_p2s_mult_pippenger_scratch_sizeof, blst_sign_pk_in_g1,
    blst_sign_pk_in_g2, blst_sk_to_pk_in_g2, limb_t,
};
use rand_core::CryptoRng;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroize;

use super::scalar::{SCALAR_BYTES, Scalar};
use crate::Secret;
use crate::declassify::published;
use crate::shamir::Weights;

/// Bytes of a compressed point of G1.
pub const G1_COMPRESSED_BYTES: usize = 48;
/// Bytes of an uncompressed point of G1. Decoding costs no square root, which matters where there are hundreds.
pub const G1_UNCOMPRESSED_BYTES: usize = 96;
/// Bytes of a compressed point of G2.
pub const G2_COMPRESSED_BYTES: usize = 96;
/// Bytes of an uncompressed point of G2.
pub const G2_UNCOMPRESSED_BYTES: usize = 192;

/// 1 - z for the curve's parameter z: maps every point of the curve over Fp into G1, and G1 onto itself.
const EFFECTIVE_COFACTOR_G1: u64 = 0xd201_0000_0001_0001;

/// Bits of the random coefficients with which checks are batched: a false statement passes with chance 2^-128.
const BATCH_COEFFICIENT_BITS: usize = 128;

/// A point of the curve over Fp other than the identity, perhaps outside the subgroup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CurveG1(blst_p1_affine);

/// An element of the subgroup of prime order over Fp, where public keys live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct G1(blst_p1_affine);

/// An element of the subgroup of prime order over Fp2, where signatures live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct G2(blst_p2_affine);

/// A decoded signature: a point of the curve over Fp2 other than the identity, perhaps outside the subgroup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UncheckedG2(blst_p2_affine);

impl CurveG1 {
    /// `None` unless a canonical encoding of a point on the curve other than the identity.
    pub fn from_uncompressed(bytes: &[u8; G1_UNCOMPRESSED_BYTES]) -> Option<Self> {
        let mut point = blst_p1_affine::default();
        // An uncompressed encoding has no compression bit; blst would otherwise read a compressed one.
        let flagged = bytes.first().is_none_or(|first| first & 0x80 != 0);
        // SAFETY: `bytes` has the 96 bytes that blst reads.
        let decoded = unsafe { blst_p1_deserialize(&mut point, bytes.as_ptr()) } == BLST_ERROR::BLST_SUCCESS;
        // SAFETY: a valid place.
        (decoded && !flagged && !unsafe { blst_p1_affine_is_inf(&point) }).then_some(Self(point))
    }

    /// 96 bytes.
    pub fn to_uncompressed(&self) -> [u8; G1_UNCOMPRESSED_BYTES] {
        let mut bytes = [0u8; G1_UNCOMPRESSED_BYTES];
        // SAFETY: blst writes 96 bytes.
        unsafe { blst_p1_affine_serialize(bytes.as_mut_ptr(), &self.0) };
        bytes
    }

    /// The same point, known to be in the subgroup; `None` if it is not.
    pub fn check(&self) -> Option<G1> {
        // SAFETY: a valid point of the curve.
        unsafe { blst_p1_affine_in_g1(&self.0) }.then_some(G1(self.0))
    }

    /// The sum of points; `None` if it is the identity.
    pub fn sum<'a>(points: impl Iterator<Item = &'a CurveG1>) -> Option<Self> {
        let mut sum = blst_p1::default();
        for point in points {
            // SAFETY: valid places; the addition is complete and may work in place.
            unsafe { blst_p1_add_or_double_affine(&mut sum, &sum, &point.0) };
        }
        let sum = affine1(&sum);
        // SAFETY: a valid place.
        (!unsafe { blst_p1_affine_is_inf(&sum) }).then_some(Self(sum))
    }

    /// Whether sum over k of x^k * coefficients\[k\] is `expected`: the check of a share against Feldman's commitments.
    pub fn evaluates_to(coefficients: &[CurveG1], x: u16, expected: &G1) -> bool {
        affine1(&horner(coefficients.iter().map(|point| &point.0), x)) == expected.0
    }

    /// Whether a combination is the identity up to a point of cofactor order. Complete for any points of the curve.
    pub fn combination_vanishes(points: &[CurveG1], scalars: &[Scalar]) -> bool {
        let affine: Vec<blst_p1_affine> = points.iter().map(|point| point.0).collect();
        let raw: Vec<[u8; 32]> = scalars.iter().map(|scalar| scalar.to_raw().b).collect();
        let cleared = multiply1(&combine1(&affine, &raw, 255), &EFFECTIVE_COFACTOR_G1.to_le_bytes());
        // SAFETY: a valid place.
        unsafe { blst_p1_is_inf(&cleared) }
    }
}

impl From<G1> for CurveG1 {
    fn from(point: G1) -> Self {
        Self(point.0)
    }
}

impl G1 {
    /// The standard generator.
    pub fn generator() -> Self {
        // SAFETY: blst returns the address of a constant.
        Self(unsafe { *blst_p1_affine_generator() })
    }

    /// The generator times a secret, in constant time.
    pub fn mul_generator(scalar: &Secret<Scalar>) -> Self {
        let mut raw = scalar.expose().to_raw();
        let product = generator_table().multiply(&raw.b);
        raw.zeroize();
        Self(published(affine1(&product))) // a commitment, or a verification share
    }

    /// `None` unless a canonical encoding of an element of the subgroup other than the identity.
    pub fn from_compressed(bytes: &[u8; G1_COMPRESSED_BYTES]) -> Option<Self> {
        // SAFETY: a valid point of the curve.
        Self::from_own_compressed(bytes).filter(|point| unsafe { blst_p1_affine_in_g1(&point.0) })
    }

    /// An element that this party has checked before and kept sealed since: not checked again to be in the subgroup.
    pub fn from_own_compressed(bytes: &[u8; G1_COMPRESSED_BYTES]) -> Option<Self> {
        let mut point = blst_p1_affine::default();
        // SAFETY: `bytes` has the 48 bytes that blst reads.
        let decoded = unsafe { blst_p1_uncompress(&mut point, bytes.as_ptr()) } == BLST_ERROR::BLST_SUCCESS;
        // SAFETY: a valid place.
        (decoded && !unsafe { blst_p1_affine_is_inf(&point) }).then_some(Self(point))
    }

    /// 48 bytes.
    pub fn to_compressed(&self) -> [u8; G1_COMPRESSED_BYTES] {
        let mut bytes = [0u8; G1_COMPRESSED_BYTES];
        // SAFETY: blst writes 48 bytes.
        unsafe { blst_p1_affine_compress(bytes.as_mut_ptr(), &self.0) };
        bytes
    }

    /// 96 bytes.
    pub fn to_uncompressed(&self) -> [u8; G1_UNCOMPRESSED_BYTES] {
        CurveG1(self.0).to_uncompressed()
    }

    /// The identity, which no decoder accepts.
    pub fn identity() -> Self {
        Self(blst_p1_affine::default())
    }

    /// The sum of two elements. Variable time: everything is public.
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = blst_p1::default();
        for point in [self, other] {
            // SAFETY: valid places; the addition is complete and may work in place.
            unsafe { blst_p1_add_or_double_affine(&mut sum, &sum, &point.0) };
        }
        Self(affine1(&sum))
    }

    /// A multiple. Variable time: everything is public.
    pub fn times_public(&self, scalar: &Scalar) -> Self {
        Self(affine1(&combine1(&[self.0], &[scalar.to_raw().b], 255)))
    }

    /// A secret multiple that is published, in constant time.
    pub fn times_secret(&self, scalar: &Secret<Scalar>) -> Self {
        let mut raw = scalar.expose().to_raw();
        let (mut base, mut product) = (blst_p1::default(), blst_p1::default());
        // SAFETY: valid places.
        unsafe {
            blst_p1_from_affine(&mut base, &self.0);
            blst_sign_pk_in_g2(&mut product, &base, &raw);
        }
        raw.zeroize();
        Self(published(affine1(&product)))
    }

    /// The negative.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self(negate1(&self.0))
    }

    /// Sum of scalar times element over pairs of both lists. Variable time: everything is public.
    pub fn combination(points: &[G1], scalars: &[Scalar]) -> Self {
        let affine: Vec<blst_p1_affine> = points.iter().map(|point| point.0).collect();
        let raw: Vec<[u8; 32]> = scalars.iter().map(|scalar| scalar.to_raw().b).collect();
        Self(affine1(&combine1(&affine, &raw, 255)))
    }

    /// Hash-to-curve of RFC 9380, suite BLS12381G1_XMD:SHA-256_SSWU_RO_, with this domain separation tag. Nobody knows
    /// the logarithm of the result.
    pub fn hash(message: &[u8], domain: &[u8]) -> Self {
        let mut projective = blst_p1::default();
        // SAFETY: both slices are readable for their length; there is no augmentation.
        unsafe {
            blst_hash_to_g1(
                &mut projective,
                message.as_ptr(),
                message.len(),
                domain.as_ptr(),
                domain.len(),
                core::ptr::null(),
                0,
            );
        }
        Self(affine1(&projective))
    }

    /// Whether it is the identity.
    pub fn is_identity(&self) -> bool {
        // SAFETY: a valid place.
        unsafe { blst_p1_affine_is_inf(&self.0) }
    }

    /// Sum over k of x^k * coefficients\[k\]. Variable time: everything is public.
    pub fn evaluate(coefficients: &[G1], x: u16) -> Self {
        Self(affine1(&horner(coefficients.iter().map(|point| &point.0), x)))
    }
}

impl G2 {
    /// The standard generator.
    pub fn generator() -> Self {
        // SAFETY: blst returns the address of a constant.
        Self(unsafe { *blst_p2_affine_generator() })
    }

    /// The generator times a secret, in constant time.
    pub fn mul_generator(scalar: &Secret<Scalar>) -> Self {
        let mut raw = scalar.expose().to_raw();
        let mut product = blst_p2::default();
        // SAFETY: valid places.
        unsafe { blst_sk_to_pk_in_g2(&mut product, &raw) };
        raw.zeroize();
        // A public key, or a point that only goes into a check whose result is published.
        Self(published(affine2(&product)))
    }

    /// The sum of two elements. Variable time: everything is public.
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = blst_p2::default();
        for point in [self, other] {
            // SAFETY: valid places; the addition is complete and may work in place.
            unsafe { blst_p2_add_or_double_affine(&mut sum, &sum, &point.0) };
        }
        Self(affine2(&sum))
    }

    /// Whether it is the identity, which no decoder accepts.
    pub fn is_identity(&self) -> bool {
        // SAFETY: a valid place.
        unsafe { blst_p2_affine_is_inf(&self.0) }
    }

    /// `None` unless a canonical encoding of an element of the subgroup other than the identity.
    pub fn from_compressed(bytes: &[u8; G2_COMPRESSED_BYTES]) -> Option<Self> {
        UncheckedG2::from_compressed(bytes)?.check()
    }

    /// `None` unless a canonical encoding of an element of the subgroup other than the identity.
    pub fn from_uncompressed(bytes: &[u8; G2_UNCOMPRESSED_BYTES]) -> Option<Self> {
        let mut point = blst_p2_affine::default();
        let flagged = bytes.first().is_none_or(|first| first & 0x80 != 0);
        // SAFETY: `bytes` has the 192 bytes that blst reads.
        let decoded = unsafe { blst_p2_deserialize(&mut point, bytes.as_ptr()) } == BLST_ERROR::BLST_SUCCESS;
        // SAFETY: a valid place.
        let valid = decoded && !flagged && !unsafe { blst_p2_affine_is_inf(&point) };
        if valid { UncheckedG2(point).check() } else { None }
    }

    /// 192 bytes.
    pub fn to_uncompressed(&self) -> [u8; G2_UNCOMPRESSED_BYTES] {
        UncheckedG2(self.0).to_uncompressed()
    }

    /// 96 bytes.
    pub fn to_compressed(&self) -> [u8; G2_COMPRESSED_BYTES] {
        UncheckedG2(self.0).to_compressed()
    }
}

impl From<G2> for UncheckedG2 {
    fn from(point: G2) -> Self {
        Self(point.0)
    }
}

impl UncheckedG2 {
    /// `None` unless a canonical encoding of a point on the curve other than the identity.
    pub fn from_compressed(bytes: &[u8; G2_COMPRESSED_BYTES]) -> Option<Self> {
        let mut point = blst_p2_affine::default();
        // SAFETY: `bytes` has the 96 bytes that blst reads.
        let decoded = unsafe { blst_p2_uncompress(&mut point, bytes.as_ptr()) } == BLST_ERROR::BLST_SUCCESS;
        // SAFETY: a valid place.
        (decoded && !unsafe { blst_p2_affine_is_inf(&point) }).then_some(Self(point))
    }

    /// 96 bytes.
    pub fn to_compressed(&self) -> [u8; G2_COMPRESSED_BYTES] {
        let mut bytes = [0u8; G2_COMPRESSED_BYTES];
        // SAFETY: blst writes 96 bytes.
        unsafe { blst_p2_affine_compress(bytes.as_mut_ptr(), &self.0) };
        bytes
    }

    /// 192 bytes.
    pub fn to_uncompressed(&self) -> [u8; G2_UNCOMPRESSED_BYTES] {
        let mut bytes = [0u8; G2_UNCOMPRESSED_BYTES];
        // SAFETY: blst writes 192 bytes.
        unsafe { blst_p2_affine_serialize(bytes.as_mut_ptr(), &self.0) };
        bytes
    }

    /// The same point, known to be in the subgroup; `None` if it is not.
    pub fn check(&self) -> Option<G2> {
        // SAFETY: a valid point of the curve.
        unsafe { blst_p2_affine_in_g2(&self.0) }.then_some(G2(self.0))
    }

    /// The Lagrange combination of partial signatures. If one of them is outside the subgroup the result is some point
    /// or the identity, so it is a signature only once [`verify`] has said so.
    pub fn combine(points: &[UncheckedG2], weights: &Weights) -> Self {
        let mut affine: Vec<blst_p2_affine> = points.iter().map(|point| point.0).collect();
        match weights {
            Weights::Large(scalars) => {
                let raw: Vec<[u8; 32]> = scalars.iter().map(|scalar| scalar.to_raw().b).collect();
                Self(affine2(&combine2(&affine, &raw, 255)))
            }
            Weights::Small { numerators, denominator } => {
                for (point, numerator) in affine.iter_mut().zip(numerators) {
                    if *numerator < 0 {
                        *point = negate2(point);
                    }
                }
                let raw: Vec<[u8; 32]> = numerators.iter().map(|n| little_endian(n.unsigned_abs())).collect();
                let bits = numerators.iter().map(|n| bit_length(n.unsigned_abs())).max().unwrap_or(1);
                let mut sum = combine2(&affine, &raw, bits);
                if *denominator != 1 {
                    let inverse = Scalar::from_u64(*denominator).inverse_of_public().to_raw();
                    let unscaled = sum;
                    // SAFETY: valid places; the scalar has the 32 bytes that 255 bits take.
                    unsafe { blst_p2_mult(&mut sum, &unscaled, inverse.b.as_ptr(), 255) };
                }
                Self(affine2(&sum))
            }
        }
    }
}

/// A message hashed to G2, ready to be signed or verified any number of times.
#[derive(Clone)]
pub struct HashedMessage {
    projective: blst_p2,
    affine: blst_p2_affine,
}

impl HashedMessage {
    /// Hash-to-curve of RFC 9380, suite BLS12381G2_XMD:SHA-256_SSWU_RO_, with this domain separation tag.
    pub fn new(message: &[u8], domain: &[u8]) -> Self {
        let mut projective = blst_p2::default();
        // SAFETY: both slices are readable for their length; there is no augmentation.
        unsafe {
            blst_hash_to_g2(
                &mut projective,
                message.as_ptr(),
                message.len(),
                domain.as_ptr(),
                domain.len(),
                core::ptr::null(),
                0,
            );
        }
        Self { projective, affine: affine2(&projective) }
    }

    /// The hash times a secret, in constant time.
    pub fn sign(&self, key: &Secret<Scalar>) -> G2 {
        let mut raw = key.expose().to_raw();
        let mut out = blst_p2::default();
        // SAFETY: valid places.
        unsafe { blst_sign_pk_in_g1(&mut out, &self.projective, &raw) };
        raw.zeroize();
        G2(published(affine2(&out))) // a partial signature
    }
}

/// Whether `signature` is that of `message` under `key`: e(key, message) = e(generator, signature).
pub fn verify(key: &G1, message: &HashedMessage, signature: &G2) -> bool {
    // SAFETY: valid places.
    let degenerate = key.is_identity() || unsafe { blst_p2_affine_is_inf(&signature.0) };
    !degenerate && pairing_product_is_one(&[(&key.0, &message.affine), (&negated_generator(), &signature.0)])
}

/// Whether every one of `signatures` is that of `message` under the key at the same place. One pairing check over a
/// random combination; a wrong set passes with chance 2^-128. An empty set holds.
pub fn verify_batch(
    keys: &[G1],
    message: &HashedMessage,
    signatures: &[G2],
    rng: &mut dyn CryptoRng,
) -> bool {
    if keys.len() != signatures.len() || keys.iter().any(G1::is_identity) {
        return false;
    }
    if keys.is_empty() {
        return true;
    }
    let coefficients: Vec<[u8; 32]> = keys.iter().map(|_| batch_coefficient(rng)).collect();
    let keys: Vec<blst_p1_affine> = keys.iter().map(|key| key.0).collect();
    let signatures: Vec<blst_p2_affine> = signatures.iter().map(|signature| signature.0).collect();
    let key = affine1(&combine1(&keys, &coefficients, BATCH_COEFFICIENT_BITS));
    let signature = affine2(&combine2(&signatures, &coefficients, BATCH_COEFFICIENT_BITS));
    pairing_product_is_one(&[(&key, &message.affine), (&negated_generator(), &signature)])
}

/// Whether e(left.0, left.1) = e(right.0, right.1).
pub fn pairings_are_equal(left: (&G1, &G2), right: (&G1, &G2)) -> bool {
    pairing_product_is_one(&[(&left.0.0, &left.1.0), (&negate1(&right.0.0), &right.1.0)])
}

const DIGITS: usize = 16;

/// Multiples of the generator: row w holds d 16^w G for the digits d. Half the time of a general multiplication.
struct GeneratorTable(Vec<[blst_p1_affine; DIGITS]>);

/// Made at first use; a constant, about 100 KB.
fn generator_table() -> &'static GeneratorTable {
    static TABLE: OnceLock<GeneratorTable> = OnceLock::new();
    TABLE.get_or_init(GeneratorTable::new)
}

impl GeneratorTable {
    fn new() -> Self {
        let mut base = blst_p1::default();
        // SAFETY: valid places; the generator is a constant of blst.
        unsafe { blst_p1_from_affine(&mut base, blst_p1_affine_generator()) };
        let rows = (0..2 * SCALAR_BYTES)
            .map(|_| {
                let mut multiple = blst_p1::default();
                let row = core::array::from_fn(|_| {
                    let entry = affine1(&multiple);
                    // SAFETY: valid places; the addition is complete and may work in place.
                    unsafe { blst_p1_add_or_double(&mut multiple, &multiple, &base) };
                    entry
                });
                base = multiple;
                row
            })
            .collect();
        Self(rows)
    }

    /// Reads every entry of every row, whatever the scalar (little-endian), and adds one of each.
    fn multiply(&self, scalar: &[u8; SCALAR_BYTES]) -> blst_p1 {
        let mut sum = blst_p1::default();
        let digits = scalar.iter().flat_map(|byte| [byte & 0x0f, byte >> 4]);
        for (row, digit) in self.0.iter().zip(digits) {
            let mut chosen = blst_p1_affine::default();
            for (entry, index) in row.iter().zip(0u8..) {
                let is_it = index.ct_eq(&digit);
                for (limb, value) in chosen.x.l.iter_mut().zip(&entry.x.l) {
                    limb.conditional_assign(value, is_it);
                }
                for (limb, value) in chosen.y.l.iter_mut().zip(&entry.y.l) {
                    limb.conditional_assign(value, is_it);
                }
            }
            // SAFETY: valid places; the addition is complete, takes constant time, and may work in place.
            unsafe { blst_p1_add_or_double_affine(&mut sum, &sum, &chosen) };
        }
        sum
    }
}

fn batch_coefficient(rng: &mut dyn CryptoRng) -> [u8; 32] {
    let mut coefficient = [0u8; 32];
    let (low, _) = coefficient.split_at_mut(BATCH_COEFFICIENT_BITS / 8);
    rng.fill_bytes(low);
    coefficient
}

fn negated_generator() -> blst_p1_affine {
    let mut point = blst_p1::default();
    // SAFETY: valid places; the generator is a constant of blst.
    unsafe {
        blst_p1_from_affine(&mut point, blst_p1_affine_generator());
        blst_p1_cneg(&mut point, true);
    }
    affine1(&point)
}

/// A pair with the identity contributes one, as it should.
fn pairing_product_is_one(pairs: &[(&blst_p1_affine, &blst_p2_affine)]) -> bool {
    // SAFETY: valid places.
    let finite = |pair: &&(&blst_p1_affine, &blst_p2_affine)| unsafe {
        !blst_p1_affine_is_inf(pair.0) && !blst_p2_affine_is_inf(pair.1)
    };
    let (in_g1, in_g2): (Vec<*const blst_p1_affine>, Vec<*const blst_p2_affine>) = pairs
        .iter()
        .filter(finite)
        .map(|(left, right)| (core::ptr::from_ref(*left), core::ptr::from_ref(*right)))
        .unzip();
    if in_g1.is_empty() {
        return true;
    }
    let mut product = blst_fp12::default();
    let mut reduced = blst_fp12::default();
    // SAFETY: two lists of the same length of pointers to points that outlive the call.
    unsafe {
        blst_miller_loop_n(&mut product, in_g2.as_ptr(), in_g1.as_ptr(), in_g1.len());
        blst_final_exp(&mut reduced, &product);
        blst_fp12_is_one(&reduced)
    }
}

fn affine1(point: &blst_p1) -> blst_p1_affine {
    let mut out = blst_p1_affine::default();
    // SAFETY: valid places.
    unsafe { blst_p1_to_affine(&mut out, point) };
    out
}

fn affine2(point: &blst_p2) -> blst_p2_affine {
    let mut out = blst_p2_affine::default();
    // SAFETY: valid places.
    unsafe { blst_p2_to_affine(&mut out, point) };
    out
}

fn negate1(point: &blst_p1_affine) -> blst_p1_affine {
    let mut projective = blst_p1::default();
    // SAFETY: valid places.
    unsafe {
        blst_p1_from_affine(&mut projective, point);
        blst_p1_cneg(&mut projective, true);
    }
    affine1(&projective)
}

fn negate2(point: &blst_p2_affine) -> blst_p2_affine {
    let mut projective = blst_p2::default();
    // SAFETY: valid places.
    unsafe {
        blst_p2_from_affine(&mut projective, point);
        blst_p2_cneg(&mut projective, true);
    }
    affine2(&projective)
}

/// Horner's rule with a public x of at most 16 bits, by complete additions.
fn horner<'a>(coefficients: impl DoubleEndedIterator<Item = &'a blst_p1_affine>, x: u16) -> blst_p1 {
    let mut sum = blst_p1::default();
    for coefficient in coefficients.rev() {
        let base = sum;
        sum = blst_p1::default();
        for bit in (0..u16::BITS - x.leading_zeros()).rev() {
            // SAFETY: valid places; the operations are complete and may work in place.
            unsafe {
                blst_p1_double(&mut sum, &sum);
                if x >> bit & 1 == 1 {
                    blst_p1_add_or_double(&mut sum, &sum, &base);
                }
            }
        }
        // SAFETY: as above.
        unsafe { blst_p1_add_or_double_affine(&mut sum, &sum, coefficient) };
    }
    sum
}

/// From this many points on the bucket method is the faster one.
const POINTS_OF_BUCKETS: usize = 24;

/// Sum of scalar times point by doublings that all points share, and a table of the first multiples of each. Additions
/// are complete: right for any points of the curve. Scalars are little-endian and below 2^`bits`.
fn interleave1(points: &[blst_p1_affine], scalars: &[[u8; 32]], bits: usize) -> blst_p1 {
    const WINDOW: usize = 4;
    let tables: Vec<[blst_p1; (1 << WINDOW) - 1]> = points
        .iter()
        .zip(scalars)
        .map(|(point, _)| {
            let mut multiple = blst_p1::default();
            core::array::from_fn(|_| {
                // SAFETY: valid places; the addition is complete and may work in place.
                unsafe { blst_p1_add_or_double_affine(&mut multiple, &multiple, point) };
                multiple
            })
        })
        .collect();
    let mut sum = blst_p1::default();
    for window in (0..bits.div_ceil(WINDOW)).rev() {
        // SAFETY: valid places; doublings may work in place.
        (0..WINDOW).for_each(|_| unsafe { blst_p1_double(&mut sum, &sum) });
        for (table, scalar) in tables.iter().zip(scalars) {
            let byte = scalar.get(window / 2).map_or(0, |byte| *byte);
            let digit = usize::from(if window % 2 == 0 { byte & 0xf } else { byte >> WINDOW });
            if let Some(multiple) = digit.checked_sub(1).and_then(|place| table.get(place)) {
                // SAFETY: valid places; the addition is complete and may work in place.
                unsafe { blst_p1_add_or_double(&mut sum, &sum, multiple) };
            }
        }
    }
    sum
}

/// Sum of scalar times point by the bucket method, whose additions are complete: right for any points of the curve.
/// Scalars are little-endian and below 2^`bits`.
fn combine1(points: &[blst_p1_affine], scalars: &[[u8; 32]], bits: usize) -> blst_p1 {
    const WINDOW: usize = 4;
    /// From this many points on blst's scratch is large enough for `WINDOW`.
    const POINTS_OF_WINDOW: usize = 32;
    let mut sum = blst_p1::default();
    let count = points.len().min(scalars.len());
    // The bucket method pays for its buckets however few the points are, and reads a second point in any case.
    if count < POINTS_OF_BUCKETS {
        return interleave1(points, scalars, bits);
    }
    let points: Vec<*const blst_p1_affine> = points.iter().take(count).map(core::ptr::from_ref).collect();
    let scalars: Vec<*const u8> = scalars.iter().take(count).map(|scalar| scalar.as_ptr()).collect();
    // SAFETY: a function of its argument alone.
    let scratch_bytes = unsafe { blst_p1s_mult_pippenger_scratch_sizeof(count.max(POINTS_OF_WINDOW)) };
    let mut scratch = vec![0 as limb_t; scratch_bytes / size_of::<limb_t>()];
    // The topmost window holds what is left over, and if nothing is, the carry of the signed digits below it.
    for window in (0..=bits / WINDOW).rev() {
        let mut tile = blst_p1::default();
        // SAFETY: `count` >= 2 pointers to points and to scalars of `bits` bits; scratch that is zero and that blst
        // leaves zero, for windows at least as large as WINDOW; additions are complete and may work in place.
        unsafe {
            for _ in 0..WINDOW {
                blst_p1_double(&mut sum, &sum);
            }
            blst_p1s_tile_pippenger(
                &mut tile,
                points.as_ptr(),
                count,
                scalars.as_ptr(),
                bits,
                scratch.as_mut_ptr(),
                window * WINDOW,
                WINDOW,
            );
            blst_p1_add_or_double(&mut sum, &sum, &tile);
        }
    }
    sum
}

/// Public scalar (little-endian) times point, by complete additions.
fn multiply1(base: &blst_p1, scalar: &[u8]) -> blst_p1 {
    let mut product = blst_p1::default();
    for byte in scalar.iter().rev() {
        for bit in (0..u8::BITS).rev() {
            // SAFETY: valid places; the operations are complete and may work in place.
            unsafe {
                blst_p1_double(&mut product, &product);
                if byte >> bit & 1 == 1 {
                    blst_p1_add_or_double(&mut product, &product, base);
                }
            }
        }
    }
    product
}

/// Sum of scalar times point by blst's fastest method; some point or the identity if one is outside the subgroup.
fn combine2(points: &[blst_p2_affine], scalars: &[[u8; 32]], bits: usize) -> blst_p2 {
    let count = points.len().min(scalars.len());
    let mut sum = blst_p2::default();
    if count == 0 {
        return sum;
    }
    let points: Vec<*const blst_p2_affine> = points.iter().take(count).map(core::ptr::from_ref).collect();
    let scalars: Vec<*const u8> = scalars.iter().take(count).map(|scalar| scalar.as_ptr()).collect();
    // SAFETY: `count` is above zero; as many pointers to points and to scalars of at least `bits` bits; enough scratch.
    unsafe {
        let scratch_bytes = blst_p2s_mult_pippenger_scratch_sizeof(count);
        let mut scratch = vec![0 as limb_t; scratch_bytes / size_of::<limb_t>()];
        blst_p2s_mult_pippenger(
            &mut sum,
            points.as_ptr(),
            count,
            scalars.as_ptr(),
            bits,
            scratch.as_mut_ptr(),
        );
    }
    sum
}

fn little_endian(number: u64) -> [u8; 32] {
    let mut bytes = [0u8; 32];
    let (low, _) = bytes.split_at_mut(8);
    low.copy_from_slice(&number.to_le_bytes());
    bytes
}

fn bit_length(number: u64) -> usize {
    usize::try_from(u64::BITS - number.leading_zeros()).unwrap_or(64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    /// (x, y) of a point of order 11, and of its negative.
    const ORDER_11: [&str; 3] = [
        "19b3e2c8c6bbf59d3c326b531fc1e639d29200c28624ac604f251a12908c9b7f735318617f625954cc71cdf03229b1ef",
        "15d1455562b9a28d0f11a69ecd34f5a8ade01df410168a09cf16ccfbcbfc69403c7c5771a05d217a122b795529939e03",
        "042fcc94d6c6440d3c0a01177616b72eb6972d90e36e88b5981a05a52ab48ce3e22fa88d10f6de85a7d386aad66c0ca8",
    ];

    fn small_order(y: usize) -> CurveG1 {
        let text = [ORDER_11[0], ORDER_11[y]].concat();
        let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
        CurveG1::from_uncompressed(&core::array::from_fn(byte)).unwrap()
    }

    /// The modulus p of the coordinates.
    const MODULUS: &str =
        "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";

    /// Adds p to a coordinate without the flags above it. `None` where the sum does not fit under them.
    fn plus_modulus(coordinate: &[u8]) -> Option<Vec<u8>> {
        let mut sum = coordinate.to_vec();
        let mut carry = 0u16;
        for (at, byte) in sum.iter_mut().enumerate().rev() {
            let digit = u16::from_str_radix(&MODULUS[2 * at..2 * at + 2], 16).unwrap();
            carry += u16::from(*byte) + digit;
            *byte = carry as u8;
            carry >>= 8;
        }
        (carry == 0 && sum[0] < 0x20).then_some(sum)
    }

    /// `encoding` with p added to one coordinate, wherever that fits.
    fn larger(encoding: &[u8]) -> Vec<Vec<u8>> {
        let flags = encoding[0] & 0xe0;
        let coordinates = 0..encoding.len() / 48;
        let other = |place: usize| {
            let mut bytes = encoding.to_vec();
            bytes[0] &= 0x1f;
            let sum = plus_modulus(&bytes[48 * place..48 * (place + 1)])?;
            bytes[48 * place..48 * (place + 1)].copy_from_slice(&sum);
            bytes[0] |= flags;
            Some(bytes)
        };
        coordinates.filter_map(other).collect()
    }

    type Decodes<'a> = &'a dyn Fn(&[u8]) -> bool;

    /// Coordinates of at least p, and every combination of the three flags with the same coordinates.
    #[test]
    fn a_point_has_one_encoding_of_each_form() {
        let mut rng = ChaCha20Rng::seed_from_u64(6);
        let mut larger_ones = [0; 4];
        for _ in 0..40 {
            let scalar = random(&mut rng);
            let (in_g1, in_g2) = (G1::mul_generator(&scalar), G2::mul_generator(&scalar));
            let read: [(Vec<u8>, Decodes<'_>); 4] = [
                (in_g1.to_compressed().to_vec(), &|b| G1::from_compressed(b.try_into().unwrap()).is_some()),
                (in_g1.to_uncompressed().to_vec(), &|b| {
                    CurveG1::from_uncompressed(b.try_into().unwrap()).is_some()
                }),
                (in_g2.to_compressed().to_vec(), &|b| G2::from_compressed(b.try_into().unwrap()).is_some()),
                (in_g2.to_uncompressed().to_vec(), &|b| {
                    G2::from_uncompressed(b.try_into().unwrap()).is_some()
                }),
            ];
            for (form, (encoding, decodes)) in read.iter().enumerate() {
                for flags in 0..8u8 {
                    let mut bytes = encoding.clone();
                    bytes[0] = bytes[0] & 0x1f | flags << 5;
                    // The lowest flag of a compressed point chooses between it and its negative.
                    let expected = if form % 2 == 0 { flags & 6 == 4 } else { flags == 0 };
                    assert_eq!(decodes(&bytes), expected, "form {form} flags {flags}");
                }
                for bytes in larger(encoding) {
                    assert!(!decodes(&bytes), "form {form}");
                    larger_ones[form] += 1;
                }
            }
        }
        assert!(larger_ones.iter().all(|count| *count > 0), "{larger_ones:?}");
        for first in [0x40u8, 0xc0, 0x60, 0xe0, 0] {
            assert!(
                G1::from_compressed(&core::array::from_fn(|at| if at == 0 { first } else { 0 })).is_none()
            );
            assert!(
                CurveG1::from_uncompressed(&core::array::from_fn(|at| if at == 0 { first } else { 0 }))
                    .is_none()
            );
            assert!(
                G2::from_compressed(&core::array::from_fn(|at| if at == 0 { first } else { 0 })).is_none()
            );
            assert!(
                G2::from_uncompressed(&core::array::from_fn(|at| if at == 0 { first } else { 0 })).is_none()
            );
        }
    }

    fn random(rng: &mut ChaCha20Rng) -> Secret<Scalar> {
        Secret::new(Scalar::random(rng))
    }

    #[test]
    fn table_multiplies_as_blst_does() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let one = Scalar::one();
        let edges = [one.copy(), Scalar::from_u64(16), Scalar::zero().sub(&one), Scalar::from_u64(u64::MAX)];
        let scalars = edges.into_iter().map(Secret::new).chain((0..50).map(|_| random(&mut rng)));
        for scalar in scalars.collect::<Vec<_>>() {
            let mut expected = blst_p1::default();
            // SAFETY: valid places.
            unsafe { blst::blst_sk_to_pk_in_g1(&mut expected, &scalar.expose().to_raw()) };
            assert_eq!(G1::mul_generator(&scalar).0, affine1(&expected));
        }
        assert!(G1::mul_generator(&Secret::new(Scalar::zero())).is_identity());
    }

    #[test]
    fn combinations_agree_with_single_multiplications() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        for count in [1usize, 2, 3, 19, 23, 24, 31, 32, 33, 41] {
            for bits in [1usize, 4, 7, 8, 64, 128, 173, 255] {
                let points: Vec<blst_p1_affine> =
                    (0..count).map(|_| G1::mul_generator(&random(&mut rng)).0).collect();
                let message = HashedMessage::new(b"m", b"test");
                let in_g2: Vec<blst_p2_affine> =
                    (0..count).map(|_| message.sign(&random(&mut rng)).0).collect();
                let scalars: Vec<[u8; 32]> = (0..count)
                    .map(|_| {
                        let mut raw = random(&mut rng).expose().to_raw().b;
                        for bit in bits..256 {
                            raw[bit / 8] &= !(1 << (bit % 8));
                        }
                        raw
                    })
                    .collect();
                let mut one_by_one = blst_p1::default();
                let mut one_by_one_g2 = blst_p2::default();
                for ((point, other), scalar) in points.iter().zip(&in_g2).zip(&scalars) {
                    let mut base = blst_p1::default();
                    let (mut base_g2, mut product_g2) = (blst_p2::default(), blst_p2::default());
                    // SAFETY: valid places; the scalar has the 32 bytes that 256 bits take.
                    unsafe {
                        blst_p1_from_affine(&mut base, point);
                        let product = multiply1(&base, scalar);
                        blst_p1_add_or_double(&mut one_by_one, &one_by_one, &product);
                        blst_p2_from_affine(&mut base_g2, other);
                        blst_p2_mult(&mut product_g2, &base_g2, scalar.as_ptr(), 256);
                        blst::blst_p2_add_or_double(&mut one_by_one_g2, &one_by_one_g2, &product_g2);
                    }
                }
                let case = format!("{count} points, {bits} bits");
                assert_eq!(affine1(&combine1(&points, &scalars, bits)), affine1(&one_by_one), "{case}");
                assert_eq!(affine2(&combine2(&in_g2, &scalars, bits)), affine2(&one_by_one_g2), "{case}");
            }
        }
    }

    #[test]
    fn points_of_small_order_do_not_make_a_combination_vanish() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let good = CurveG1::from(G1::mul_generator(&random(&mut rng)));
        for count in [2usize, 5, 40] {
            let mut points = vec![good; count - 1];
            points.push(small_order(1));
            let scalars: Vec<Scalar> = (0..count).map(|_| Scalar::random(&mut rng)).collect();
            assert!(!CurveG1::combination_vanishes(&points, &scalars));
        }
        // Alone it vanishes up to a component of cofactor order, which is what the equation is checked up to.
        assert!(CurveG1::combination_vanishes(
            &[small_order(1), small_order(2)],
            &[Scalar::one(), Scalar::one()]
        ));
        assert!(CurveG1::combination_vanishes(&[small_order(1)], &[Scalar::one()]));
        assert!(small_order(1).check().is_none());
        assert!(CurveG1::sum([small_order(1), small_order(2)].iter()).is_none());
    }

    #[test]
    fn share_of_a_foreign_component_is_not_a_share() {
        let secret = Secret::new(Scalar::from_u64(5));
        let point = G1::mul_generator(&secret);
        assert!(CurveG1::evaluates_to(&[point.into()], 7, &point));
        let moved = CurveG1::sum([point.into(), small_order(1)].iter()).unwrap();
        assert!(!CurveG1::evaluates_to(&[moved], 7, &point));
    }

    #[test]
    fn pairings_of_equal_products_are_equal() {
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let (a, b) = (random(&mut rng), random(&mut rng));
        let product = Secret::new(a.expose().mul(b.expose()));
        let (in_g1, in_g2) = (G1::mul_generator(&a), G2::mul_generator(&b));
        assert!(pairings_are_equal((&in_g1, &in_g2), (&G1::mul_generator(&product), &G2::generator())));
        assert!(pairings_are_equal((&in_g1, &in_g2), (&G1::generator(), &G2::mul_generator(&product))));
        assert!(!pairings_are_equal((&in_g1, &in_g2), (&in_g1, &G2::generator())));
        assert_eq!(G1::generator().times_secret(&a).times_secret(&b), G1::mul_generator(&product));
        let sum = Secret::new(a.expose().add(b.expose()));
        assert_eq!(G2::mul_generator(&a).plus(&in_g2), G2::mul_generator(&sum));
        assert!(in_g1.plus(&in_g1.negated()).is_identity());
        assert!(!G2::generator().is_identity());
        let combined = G1::combination(&[G1::generator(), in_g1], &[b.expose().copy(), Scalar::one()]);
        assert_eq!(combined, G1::mul_generator(&sum));
    }

    /// RFC 9380, J.9.1: the suite's vector for the empty message.
    #[test]
    fn hash_to_g1_is_that_of_the_standard() {
        let point = G1::hash(b"", b"QUUX-V01-CS02-with-BLS12381G1_XMD:SHA-256_SSWU_RO_");
        let x = "052926add2207b76ca4fa57a8734416c8dc95e24501772c814278700eed6d1e4e8cf62d9c09db0fac349612b759e79a1";
        let y = "08ba738453bfed09cb546dbb0783dbb3a5f1f566ed67bb6be0e8c67e2e81a4cc68ee29813bb7994998f3eae0c9c6a265";
        let text: String = point.to_uncompressed().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, [x, y].concat());
    }

    #[test]
    fn batch_of_signatures_stands_and_falls_together() {
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let message = HashedMessage::new(b"m", b"test");
        let secrets: Vec<_> = (0..5).map(|_| random(&mut rng)).collect();
        let keys: Vec<G1> = secrets.iter().map(G1::mul_generator).collect();
        let mut signatures: Vec<G2> = secrets.iter().map(|secret| message.sign(secret)).collect();
        assert!(verify_batch(&keys, &message, &signatures, &mut rng));
        assert!(!verify_batch(&keys[1..], &message, &signatures, &mut rng));
        signatures.swap(1, 2);
        assert!(!verify_batch(&keys, &message, &signatures, &mut rng));
        assert!(verify_batch(&[], &message, &[], &mut rng));
        let nobody = G1::mul_generator(&Secret::new(Scalar::zero()));
        assert!(!verify_batch(&[nobody], &message, &signatures[..1], &mut rng));
        assert!(!verify(&nobody, &message, &signatures[0]));
    }
}
