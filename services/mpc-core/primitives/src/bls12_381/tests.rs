use blst::{
    blst_p1, blst_p1_add_or_double, blst_p1_affine, blst_p1_from_affine, blst_p2, blst_p2_affine,
    blst_p2_from_affine, blst_p2_mult,
};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::affine::{affine1, affine2};
use super::combine::{combine1, combine2, multiply1};
use super::*;
use crate::Secret;

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
            (in_g2.to_uncompressed().to_vec(), &|b| G2::from_uncompressed(b.try_into().unwrap()).is_some()),
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
        assert!(G1::from_compressed(&core::array::from_fn(|at| if at == 0 { first } else { 0 })).is_none());
        assert!(
            CurveG1::from_uncompressed(&core::array::from_fn(|at| if at == 0 { first } else { 0 })).is_none()
        );
        assert!(G2::from_compressed(&core::array::from_fn(|at| if at == 0 { first } else { 0 })).is_none());
        assert!(G2::from_uncompressed(&core::array::from_fn(|at| if at == 0 { first } else { 0 })).is_none());
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
fn combinations_in_the_subgroup_agree_with_single_multiplications() {
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    // z^2 and its neighbours, where the halves of a scalar change places, and the ends of the field.
    let square = Scalar::from_u64(0xd201_0000_0001_0000);
    let square = square.mul(&square);
    let minus = |scalar: &Scalar| Scalar::zero().sub(scalar);
    let mut edges = vec![Scalar::zero(), minus(&square), square.copy()];
    for edge in [Scalar::zero(), square.copy(), minus(&square), square.mul(&Scalar::from_u64(31))] {
        edges.extend((1..40).flat_map(|step| {
            let step = Scalar::from_u64(step);
            [edge.add(&step), edge.sub(&step)]
        }));
    }
    edges.extend((0..64).map(|_| random(&mut rng).expose().copy()));
    for count in [1usize, 2, 3, 23, 24] {
        for scalars in edges.chunks(count) {
            let mut points: Vec<G1> = scalars.iter().map(|_| G1::mul_generator(&random(&mut rng))).collect();
            if let [first, .., last] = points.as_mut_slice() {
                *last = *first; // sums meet
            }
            let expected = points.iter().zip(scalars).fold(None::<G1>, |sum, (point, scalar)| {
                let product = point.times_secret(&Secret::new(scalar.copy()));
                Some(sum.map_or(product, |sum| sum.plus(&product)))
            });
            assert_eq!(Some(G1::combination(&points, scalars)), expected, "{scalars:?}");
        }
    }
}

#[test]
fn combinations_agree_with_single_multiplications() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    for count in [1usize, 2, 3, 19, 23, 24, 31, 32, 33, 41] {
        for bits in [1usize, 4, 7, 8, 64, 128, 173, 255] {
            let points: Vec<blst_p1_affine> =
                (0..count).map(|_| G1::mul_generator(&random(&mut rng)).0).collect();
            let message = HashedMessage::new(b"m", b"test");
            let in_g2: Vec<blst_p2_affine> = (0..count).map(|_| message.sign(&random(&mut rng)).0).collect();
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
    let x =
        "052926add2207b76ca4fa57a8734416c8dc95e24501772c814278700eed6d1e4e8cf62d9c09db0fac349612b759e79a1";
    let y =
        "08ba738453bfed09cb546dbb0783dbb3a5f1f566ed67bb6be0e8c67e2e81a4cc68ee29813bb7994998f3eae0c9c6a265";
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

#[test]
fn statements_stand_and_fall_together() {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let secrets: Vec<_> = (0..3).map(|_| random(&mut rng)).collect();
    let statement = |number: usize| {
        let secret = &secrets[number % secrets.len()];
        let message = HashedMessage::new(&[u8::try_from(number / 2).unwrap()], b"test");
        Statement { key: G1::mul_generator(secret), signature: message.sign(secret), message }
    };
    assert!(verify_all(&[], &mut rng));
    let right: Vec<Statement> = (0..7).map(statement).collect();
    for count in 1..=right.len() {
        assert!(verify_all(&right[..count], &mut rng));
    }
    for place in 0..right.len() {
        let with = |change: &dyn Fn(&mut Statement)| {
            let mut changed = right.clone();
            change(&mut changed[place]);
            verify_all(&changed, &mut ChaCha20Rng::seed_from_u64(6))
        };
        assert!(with(&|_| ()));
        assert!(!with(&|one| one.signature = one.signature.plus(&G2::generator())));
        assert!(!with(&|one| one.message = HashedMessage::new(b"another", b"test")));
        assert!(!with(&|one| one.key = G1::mul_generator(&Secret::new(Scalar::from_u64(7)))));
        assert!(!with(&|one| one.key = G1::mul_generator(&Secret::new(Scalar::zero()))));
    }
    // Two that are wrong, and whose sum is right.
    let (one, two) = (&right[0], &right[1]);
    let minus = G2::mul_generator(&Secret::new(Scalar::zero().sub(&Scalar::one())));
    let wrong = [
        Statement { signature: one.signature.plus(&G2::generator()), ..one.clone() },
        Statement { signature: two.signature.plus(&minus), ..two.clone() },
    ];
    assert!(!verify_all(&wrong, &mut rng));
}
