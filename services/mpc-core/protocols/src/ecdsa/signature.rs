//! ECDSA signatures on secp256k1 as wallets want them: low s, recovery id, compact and DER encodings.

use primitives::secp256k1::{
    Point, SCALAR_BYTES, Scalar, combine_public, decode_scalar, encode_scalar, reduce, x_coordinate,
};

/// Bytes of a digest to sign.
pub const DIGEST_BYTES: usize = 32;
/// Bytes of the compact encoding: r, then s.
pub const COMPACT_BYTES: usize = 64;

/// A signature with s in the lower half of its range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    r: Scalar,
    s: Scalar,
    recovery_id: u8,
}

impl Signature {
    /// The signature with this nonce point and s, normalised, if it is one of `digest` under `public_key`.
    pub(super) fn from_parts(
        nonce_point: &Point,
        s: Scalar,
        public_key: &Point,
        digest: &[u8; DIGEST_BYTES],
    ) -> Option<Self> {
        let (r, y_is_odd, x_overflows) = x_coordinate(nonce_point);
        let high = is_high(&s);
        let s = if high { -s } else { s };
        let recovery_id = u8::from(y_is_odd ^ high) | (u8::from(x_overflows) << 1);
        let signature = Self { r, s, recovery_id };
        let effective = if high { -*nonce_point } else { *nonce_point };
        (signature.nonce_point(public_key, digest)? == effective).then_some(signature)
    }

    /// r, then s, big-endian.
    pub fn to_compact(&self) -> [u8; COMPACT_BYTES] {
        let mut bytes = [0u8; COMPACT_BYTES];
        let (r, s) = bytes.split_at_mut(SCALAR_BYTES);
        r.copy_from_slice(&encode_scalar(&self.r));
        s.copy_from_slice(&encode_scalar(&self.s));
        bytes
    }

    /// Bit 0: y of the nonce point is odd. Bit 1: its x is at least the group order.
    pub fn recovery_id(&self) -> u8 {
        self.recovery_id
    }

    /// The ASN.1 sequence of r and s, at most 71 bytes.
    pub fn to_der(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(2 * (SCALAR_BYTES + 3));
        for scalar in [&self.r, &self.s] {
            let bytes = encode_scalar(scalar);
            let digits: Vec<u8> = bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
            let sign = digits.first().is_none_or(|byte| *byte >= 0x80);
            body.push(0x02);
            body.push(digits.len() as u8 + u8::from(sign));
            body.extend(sign.then_some(0));
            body.extend(digits);
        }
        [&[0x30, body.len() as u8], body.as_slice()].concat()
    }

    /// Whether this is a signature of `digest` under `public_key`.
    pub fn verifies(&self, public_key: &Point, digest: &[u8; DIGEST_BYTES]) -> bool {
        self.nonce_point(public_key, digest).is_some_and(|point| {
            let (r, y_is_odd, x_overflows) = x_coordinate(&point);
            r == self.r && self.recovery_id == u8::from(y_is_odd) | (u8::from(x_overflows) << 1)
        })
    }

    /// The signature that `bytes` encode, for verification: both scalars in range and not zero, s low.
    pub fn from_compact(bytes: &[u8; COMPACT_BYTES], recovery_id: u8) -> Option<Self> {
        let (r, s) = bytes.split_first_chunk::<SCALAR_BYTES>()?;
        let (r, s) = (decode_scalar(r)?, decode_scalar(s.try_into().ok()?)?);
        let zero = r == Scalar::ZERO || s == Scalar::ZERO;
        (!zero && !is_high(&s) && recovery_id < 4).then_some(Self { r, s, recovery_id })
    }

    /// The point that the verification equation gives: z/s·G + r/s·P.
    fn nonce_point(&self, public_key: &Point, digest: &[u8; DIGEST_BYTES]) -> Option<Point> {
        let inverse = self.s.invert().into_option()?;
        let point = combine_public(&(reduce(digest) * inverse), &(self.r * inverse), public_key);
        (point != Point::IDENTITY && self.r != Scalar::ZERO).then_some(point)
    }
}

fn is_high(s: &Scalar) -> bool {
    use primitives::secp256k1::IsHigh;
    s.is_high().into()
}
