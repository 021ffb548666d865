//! The circuits in the clear, against a plain implementation and all vectors.

use num_bigint::BigUint;
use primitives::Secret;
use primitives::secp256k1::{Scalar, decode_scalar, encode_point, encode_scalar, mul_generator};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha512};

use super::circuit::{MASK_BITS, SUM_BITS, bytes};
use super::tests::{child, hex, hmac, parse, root};
use super::vectors::{BIP84, HARDENED, SLIP10, SLIP10_SECP256K1, SOLANA, VECTORS, WALLET};
use super::{Step, StepCircuit, split_seed};
use crate::authenticated::wire::percent;

/// Bits of bytes, the lowest first.
fn bits(bytes: &[u8]) -> impl Iterator<Item = bool> {
    bytes.iter().flat_map(|byte| (0..8).map(move |i| byte >> i & 1 == 1))
}

/// The child that the circuit computes in the clear, of a key that is the sum of these three numbers modulo the order.
fn evaluated(
    circuit: &StepCircuit,
    parts: [&[u8; 32]; 3],
    chain: &[u8; 32],
    index: u32,
) -> ([u8; 32], bool, [u8; 32]) {
    let masks = [[0xff; MASK_BITS / 8], [0x35; MASK_BITS / 8]];
    let secret = (0..2).flat_map(|party| bits(parts[party]).chain(bits(&masks[party])));
    let public = circuit.public_wires(&[parts[2], chain, &index.to_le_bytes()]);
    let inputs: Vec<bool> = secret.chain(public.into_iter().map(|bit| bit == 1)).collect();
    let results = circuit.private.evaluate(&inputs);
    let digits: Vec<u8> = results[..SUM_BITS].iter().map(|bit| u8::from(*bit)).collect();
    let masked = BigUint::from_radix_le(&digits, 2).unwrap();
    let mut left =
        (masked - BigUint::from_bytes_le(&masks[0]) - BigUint::from_bytes_le(&masks[1])).to_bytes_be();
    left.splice(0..0, vec![0; 32 - left.len()]);
    (left.try_into().unwrap(), results[SUM_BITS], bytes(&results[SUM_BITS + 1..]).unwrap())
}

fn order() -> BigUint {
    BigUint::from_bytes_be(&encode_scalar(&-Scalar::ONE)) + 1u32
}

fn little(number: &BigUint) -> [u8; 32] {
    let mut bytes = number.to_bytes_le();
    bytes.resize(32, 0);
    bytes.try_into().unwrap()
}

/// Random keys, and those at the edges of the addition modulo the order.
#[test]
fn the_circuit_computes_what_a_plain_implementation_does() {
    let circuit = StepCircuit::new(Step::Child).unwrap();
    let rng = &mut ChaCha20Rng::seed_from_u64(5);
    let order = &order();
    let most = BigUint::from_bytes_be(&[0xff; 32]);
    let edges = [
        [most.clone(), most.clone(), order - 1u32],
        [most.clone(), most.clone(), BigUint::ZERO],
        [most.clone(), BigUint::ZERO, BigUint::ZERO],
        [order.clone(), order.clone(), BigUint::from(1u32)],
        [order - 1u32, BigUint::ZERO, BigUint::ZERO],
        [order - 1u32, BigUint::from(1u32), BigUint::ZERO],
        [order.clone(), BigUint::ZERO, order - 1u32],
        [BigUint::from(1u32), BigUint::ZERO, BigUint::ZERO],
        [BigUint::from(1u32) << 255u32, BigUint::from(1u32) << 255u32, BigUint::ZERO],
    ];
    let random = (0..(400 * percent()).div_ceil(100)).map(|_| {
        [(); 3].map(|()| {
            let mut bytes = [0; 32];
            rng.fill_bytes(&mut bytes);
            BigUint::from_bytes_be(&bytes)
        })
    });
    for (number, mut parts) in edges.into_iter().chain(random).enumerate() {
        parts[2] %= order;
        let sum = (parts.iter().sum::<BigUint>() % order).to_bytes_be();
        let mut key = [0; 32];
        key[32 - sum.len()..].copy_from_slice(&sum);
        let chain = [number as u8; 32];
        let index = HARDENED + 77 * number as u32;
        let expected = hmac(&chain, &[&[0], &key, &index.to_be_bytes()]);
        let parts = parts.each_ref().map(little);
        let (left, valid, right) = evaluated(&circuit, parts.each_ref(), &chain, index);
        assert_eq!([left, right], expected, "{number}");
        assert_eq!(valid, BigUint::from_bytes_be(&left) < *order);
    }
}

/// Chain code and public key of each node of a path: the circuit computes the hardened levels, and a plain
/// implementation the others.
fn walk_bip32(circuit: &StepCircuit, seed: &[u8], path: &[u32]) -> Vec<([u8; 32], [u8; 33])> {
    let (mut key, mut chain) = root(seed);
    let mut nodes = Vec::new();
    for index in path {
        if *index < HARDENED {
            (key, chain) = child(&key, &chain, *index);
        } else {
            let parent = decode_scalar(&key).unwrap();
            key.reverse();
            let (left, valid, right) = evaluated(circuit, [&[0; 32], &[0; 32], &key], &chain, *index);
            assert!(valid);
            (key, chain) = (encode_scalar(&(decode_scalar(&left).unwrap() + parent)), right);
        }
        nodes.push((chain, encode_point(&mul_generator(&decode_scalar(&key).unwrap()))));
    }
    nodes
}

#[test]
fn the_circuit_computes_all_vectors_of_bip32() {
    let circuit = StepCircuit::new(Step::Child).unwrap();
    for (seed, levels) in VECTORS {
        let path: Vec<u32> = levels.iter().map(|(number, _)| *number).collect();
        let expected: Vec<_> = levels.iter().map(|(_, extended)| parse(extended)).collect();
        assert_eq!(walk_bip32(&circuit, &hex(seed), &path), expected);
    }
    let nodes = walk_bip32(&circuit, &hex(WALLET), &[84 + HARDENED, HARDENED, HARDENED, 0, 0]);
    assert_eq!(nodes[2], parse(BIP84[0]));
    assert_eq!(nodes[4].1.as_slice(), hex(BIP84[1]));
}

#[test]
fn the_circuit_computes_all_vectors_of_slip10_for_secp256k1() {
    let circuit = StepCircuit::new(Step::Child).unwrap();
    for (seed, levels) in SLIP10_SECP256K1 {
        let path: Vec<u32> = levels.iter().map(|(number, _)| *number).collect();
        let nodes = walk_bip32(&circuit, &hex(seed), &path);
        for ((_, [chain, private, public]), (node_chain, node_public)) in levels.iter().zip(nodes) {
            assert_eq!((node_chain.as_slice(), node_public.as_slice()), (&*hex(chain), &*hex(public)));
            let key = decode_scalar(&hex(private).try_into().unwrap()).unwrap();
            assert_eq!(encode_point(&mul_generator(&key)), node_public);
        }
    }
}

/// Results of a circuit whose inputs are only secret, as bytes without those under masks, and the number under the
/// masks.
fn evaluated_secret(
    circuit: &StepCircuit,
    secret: &[u8],
    known: &[&[u8]],
    masked: bool,
) -> (BigUint, Vec<bool>) {
    let random: Vec<u8> = (0..secret.len()).map(|i| (i * 89 + 5) as u8).collect();
    let rest: Vec<u8> = random.iter().zip(secret).map(|(a, b)| a ^ b).collect();
    let masks = [[0xff; MASK_BITS / 8], [0xc7; MASK_BITS / 8]];
    let mask = |party: usize| bits(&masks[party]).take(if masked { MASK_BITS } else { 0 });
    let mut inputs: Vec<bool> = bits(&random).chain(mask(0)).chain(bits(&rest)).chain(mask(1)).collect();
    inputs.extend(circuit.public_wires(known).into_iter().map(|bit| bit == 1));
    let results = circuit.private.evaluate(&inputs);
    let (sum, rest) = results.split_at(if masked { SUM_BITS } else { 0 });
    let digits: Vec<u8> = sum.iter().map(|bit| u8::from(*bit)).collect();
    let number = BigUint::from_radix_le(&digits, 2).unwrap_or_default();
    let masks: BigUint = masks.iter().map(|mask| BigUint::from_bytes_le(mask)).sum();
    (if masked { number - masks } else { number }, rest.to_vec())
}

#[test]
fn the_circuit_of_a_root_computes_what_a_plain_implementation_does() {
    let rng = &mut ChaCha20Rng::seed_from_u64(8);
    for length in [16, 17, 32, 63, 64] {
        let circuit = StepCircuit::new(Step::Master(length)).unwrap();
        let mut seed = vec![0; length];
        rng.fill_bytes(&mut seed);
        let (left, rest) = evaluated_secret(&circuit, &seed, &[], true);
        let (key, chain) = root(&seed);
        assert_eq!(left, BigUint::from_bytes_be(&key));
        assert!(rest[0] && bytes::<32>(&rest[1..]).unwrap() == chain);
    }
    for length in [0, 15, 65] {
        assert!(StepCircuit::new(Step::Master(length)).is_none());
        assert!(StepCircuit::new(Step::Slip10Master(length)).is_none());
        let seed = Secret::new(vec![1; length]);
        assert!(split_seed(&seed, 3, rng).is_none());
    }
    for parties in [0, 1, 21] {
        assert!(split_seed(&Secret::new(vec![1; 16]), parties, rng).is_none());
    }
}

/// Chain code and private key of each node of a path, and the public key and the prefix of that.
fn walk_slip10(
    [child, key]: &[StepCircuit; 2],
    seed: &[u8],
    path: &[u32],
) -> Vec<([u8; 64], [u8; 32], [u8; 32])> {
    let root = StepCircuit::new(Step::Slip10Master(seed.len())).unwrap();
    let (_, results) = evaluated_secret(&root, seed, &[], false);
    let mut node: [u8; 64] = bytes(&results).unwrap();
    assert_eq!([&node[32..], &node[..32]].concat(), hmac(b"ed25519 seed", &[seed]).concat());
    path.iter()
        .map(|number| {
            let index = (number | HARDENED).to_le_bytes();
            let (_, results) = evaluated_secret(child, &node[32..], &[&node[..32], &index], false);
            node = bytes(&results).unwrap();
            let (scalar, prefix) = evaluated_secret(key, &node[32..], &[], true);
            // Below 2^255.
            let scalar = curve25519_dalek::Scalar::from_bytes_mod_order(little(&scalar));
            let point = curve25519_dalek::EdwardsPoint::mul_base(&scalar).compress().to_bytes();
            (node, point, bytes(&prefix).unwrap())
        })
        .collect()
}

#[test]
fn the_circuits_compute_all_vectors_of_slip10_for_ed25519() {
    let circuits = [Step::Slip10Child, Step::Slip10Key].map(|step| StepCircuit::new(step).unwrap());
    for (seed, levels) in SLIP10 {
        let path: Vec<u32> = levels.iter().map(|(number, _)| *number).collect();
        let nodes = walk_slip10(&circuits, &hex(seed), &path);
        for ((_, [chain, private, public]), (node, point, prefix)) in levels.iter().zip(nodes) {
            assert_eq!(node.as_slice(), [hex(chain), hex(private)].concat());
            assert_eq!(point.as_slice(), hex(public));
            assert_eq!(prefix, Sha512::digest(hex(private))[32..]);
        }
    }
    let nodes = walk_slip10(&circuits, &hex(WALLET), &[44, 501, 0, 0]);
    assert_eq!(nodes[3].1.as_slice(), hex(SOLANA));
}
