//! The hash of labels.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};

/// A public permutation of blocks: AES-128 under a key that both parties know.
pub trait Permutation {
    /// The images of some blocks.
    fn apply<const N: usize>(&self, blocks: [u128; N]) -> [u128; N];
}

/// AES of the library, for processors without instructions for it that this crate knows.
pub struct Portable(Aes128);

impl Permutation for Portable {
    #[inline]
    fn apply<const N: usize>(&self, blocks: [u128; N]) -> [u128; N] {
        let mut blocks = blocks.map(u128::to_le_bytes);
        self.0.encrypt_blocks(Block::cast_slice_from_core_mut(&mut blocks));
        blocks.map(u128::from_le_bytes)
    }
}

/// The key of a session, ready for the processor.
pub enum SessionKey {
    /// With the library's AES.
    Portable(Portable),
    /// With the processor's instructions, inlined into the loop over gates.
    #[cfg(target_arch = "x86_64")]
    Native(native::Native),
}

impl SessionKey {
    pub fn new(key: &[u8; 16]) -> SessionKey {
        #[cfg(target_arch = "x86_64")]
        if let Some(native) = native::Native::new(key) {
            return SessionKey::Native(native);
        }
        SessionKey::Portable(Portable(Aes128::new(&(*key).into())))
    }

    /// π(π(x) ⊕ i) ⊕ π(x) for some x with their i: correlation robust also where the peer chose x or i (Guo, Katz, Wang
    /// and Yu, section 7.4), which [`hash`] is not.
    #[inline]
    pub fn tweaked<const N: usize>(&self, inputs: [(u128, u128); N]) -> [u128; N] {
        match self {
            SessionKey::Portable(key) => tweaked(key, inputs),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this variant exists only where the processor has the instructions.
            SessionKey::Native(key) => unsafe { native::tweaked_natively(key, inputs) },
        }
    }
}

#[inline(always)]
fn tweaked<P: Permutation, const N: usize>(permutation: &P, inputs: [(u128, u128); N]) -> [u128; N] {
    let inner = permutation.apply(inputs.map(|(x, _)| x));
    let mut masked = inner;
    for (masked, (_, i)) in masked.iter_mut().zip(inputs) {
        *masked ^= i;
    }
    let mut out = permutation.apply(masked);
    for (out, inner) in out.iter_mut().zip(inner) {
        *out ^= inner;
    }
    out
}

/// H(x, i) = π(σ(x) ⊕ i) ⊕ σ(x) ⊕ i for some x with their i, which is the circular correlation robust hash of Guo,
/// Katz, Wang and Yu at the point x ⊕ σ⁻¹(i). π is AES-128 under a key that is drawn for each session, so that an
/// attacker of many sessions has to work on each: after q gates and p computations of AES the bound is about q·p /
/// 2^128 for a session.
#[inline(always)]
pub fn hash<P: Permutation, const N: usize>(permutation: &P, inputs: [(u128, u128); N]) -> [u128; N] {
    let masked = inputs.map(|(x, i)| sigma(x) ^ i);
    let mut out = permutation.apply(masked);
    for (out, masked) in out.iter_mut().zip(masked) {
        *out ^= masked;
    }
    out
}

/// σ(l ‖ r) = (l ⊕ r) ‖ l: linear, and x ↦ σ(x) ⊕ x is a permutation too.
#[inline(always)]
fn sigma(x: u128) -> u128 {
    let left = x >> 64;
    let right = x & u128::from(u64::MAX);
    (left ^ right) << 64 | left
}

/// AES by the processor's instructions.
#[cfg(target_arch = "x86_64")]
pub mod native {
    use core::arch::x86_64::{
        __m128i, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_aeskeygenassist_si128, _mm_shuffle_epi32,
        _mm_slli_si128, _mm_xor_si128,
    };

    use super::Permutation;

    /// The round keys. Exists only where the processor has the instructions.
    pub struct Native([__m128i; 11]);

    impl Native {
        /// `None` without the instructions.
        pub fn new(key: &[u8; 16]) -> Option<Native> {
            // SAFETY: the processor has the instructions.
            std::arch::is_x86_feature_detected!("aes").then(|| unsafe { expand(u128::from_le_bytes(*key)) })
        }
    }

    #[inline(always)]
    fn load(block: u128) -> __m128i {
        // SAFETY: both are 16 bytes of plain data.
        unsafe { core::mem::transmute(block) }
    }

    #[inline(always)]
    fn store(block: __m128i) -> u128 {
        // SAFETY: both are 16 bytes of plain data.
        unsafe { core::mem::transmute(block) }
    }

    #[target_feature(enable = "aes")]
    pub fn tweaked_natively<const N: usize>(key: &Native, inputs: [(u128, u128); N]) -> [u128; N] {
        super::tweaked(key, inputs)
    }

    /// The key schedule of FIPS 197, section 5.2.
    #[target_feature(enable = "aes")]
    fn expand(key: u128) -> Native {
        let mut keys = [load(key); 11];
        let mut last = load(key);
        macro_rules! round {
            ($($place:literal $constant:literal),*) => {$(
                let word = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<$constant>(last));
                let mut next = _mm_xor_si128(last, _mm_slli_si128::<4>(last));
                next = _mm_xor_si128(next, _mm_slli_si128::<8>(next));
                last = _mm_xor_si128(next, word);
                keys[$place] = last;
            )*};
        }
        round!(1 0x01, 2 0x02, 3 0x04, 4 0x08, 5 0x10, 6 0x20, 7 0x40, 8 0x80, 9 0x1b, 10 0x36);
        Native(keys)
    }

    impl Permutation for Native {
        #[inline(always)]
        fn apply<const N: usize>(&self, blocks: [u128; N]) -> [u128; N] {
            let [first, middle @ .., last] = &self.0;
            // SAFETY: a Native exists only where the processor has the instructions.
            unsafe {
                let mut blocks = blocks.map(|block| _mm_xor_si128(load(block), *first));
                for key in middle {
                    for block in &mut blocks {
                        *block = _mm_aesenc_si128(*block, *key);
                    }
                }
                for block in &mut blocks {
                    *block = _mm_aesenclast_si128(*block, *last);
                }
                blocks.map(store)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigma_is_linear_and_leaves_no_point_fixed_but_zero() {
        let points = [1u128, 3 << 64, u128::MAX, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef, 1 << 127];
        for a in points {
            assert_ne!(sigma(a), a);
            for b in points {
                assert_eq!(sigma(a ^ b), sigma(a) ^ sigma(b));
            }
        }
    }

    #[test]
    fn a_hash_depends_on_label_index_and_key() {
        let portable = |byte| Portable(Aes128::new(&[byte; 16].into()));
        let [a, b, c] = hash(&portable(1), [(1, 0), (1, 1), (2, 0)]);
        let [d] = hash(&portable(2), [(1, 0)]);
        assert!(a != b && a != c && b != c && a != d);
        assert_eq!(hash(&portable(1), [(1, 0)]), [a]);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_processors_aes_is_the_librarys() {
        for byte in [0u8, 1, 0x5a, 0xff] {
            let key: [u8; 16] = core::array::from_fn(|i| byte.wrapping_mul(31).wrapping_add(i as u8));
            let Some(native) = native::Native::new(&key) else { return };
            let portable = Portable(Aes128::new(&key.into()));
            let blocks = [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef];
            assert_eq!(native.apply(blocks), portable.apply(blocks));
            let inputs = blocks.map(|block| (block, block >> 3));
            let [keys, other] = [SessionKey::Native(native), SessionKey::Portable(portable)];
            assert_eq!(keys.tweaked(inputs), other.tweaked(inputs));
        }
    }
}
