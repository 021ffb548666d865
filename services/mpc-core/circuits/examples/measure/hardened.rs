//! Hardened derivation: a level of BIP-32, and whole paths from a seed.

use circuits::authenticated::{Pair, Role, bucket_size};
use circuits::hardened::{KeyShares, Node, PublicNode, Ready, Step, StepCircuit, split_seed};
use circuits::line::now;
use getrandom::SysRng;
use primitives::Secret;
use primitives::secp256k1::{encode_point, encode_scalar, mul_generator, random_scalar};
use rand_core::UnwrapErr;

use super::{Phases, Table, phases};

/// Bytes of the seed that BIP-39 makes of words.
const SEED: usize = 64;

/// The row of a level, and those of whole paths.
pub fn rows(runs: usize, paths: bool) {
    let child = StepCircuit::new(Step::Child).unwrap();
    level(&child, runs);
    if !paths {
        return;
    }
    let root = StepCircuit::new(Step::Master(SEED)).unwrap();
    bip32(&root, &child, &[44, 0, 0], runs);
    let circuits = [Step::Slip10Master(SEED), Step::Slip10Child, Step::Slip10Key]
        .map(|step| StepCircuit::new(step).unwrap());
    slip10(&circuits, &[44, 501, 0, 0], runs);
}

fn table(circuits: &[&StepCircuit]) -> Table {
    let mut table = Table::default();
    table.add(
        "program",
        "and-gates",
        "count",
        circuits.iter().map(|circuit| circuit.ands()).sum::<usize>() as f64,
    );
    table.add("program", "steps", "count", circuits.len() as f64);
    let bucket = circuits.iter().map(|circuit| bucket_size(circuit.ands())).max().unwrap();
    table.add("program", "bucket", "count", bucket as f64);
    table
}

fn set_up(role: Role, phases: &mut Phases<'_>) -> Pair {
    let rng = &mut UnwrapErr(SysRng);
    phases.run("set-up", |channel| now(Pair::set_up(role, &[1; 32], channel, rng)).unwrap())
}

/// Material for all steps of a path.
fn prepare(pair: &Pair, circuits: &[&StepCircuit], phases: &mut Phases<'_>) -> std::vec::IntoIter<Ready> {
    let rng = &mut UnwrapErr(SysRng);
    let ready: Vec<Ready> = phases.run("prepare", |channel| {
        circuits.iter().map(|circuit| now(Ready::new(pair, circuit, channel, rng)).unwrap()).collect()
    });
    ready.into_iter()
}

/// One hardened level of a shared key.
fn level(circuit: &StepCircuit, runs: usize) {
    let keys = [(); 2].map(|()| random_scalar(&mut UnwrapErr(SysRng)));
    let points = keys.map(|key| mul_generator(&key));
    let public = PublicNode { public_key: encode_point(&(points[0] + points[1])), chain_code: [3; 32] };
    let mut table = table(&[circuit]);
    for _ in 0..runs {
        phases(&mut table, |role, phases| {
            let own = usize::from(role == Role::Evaluator);
            let share = Secret::new(encode_scalar(&keys[own]));
            let [point, their_point] = [points[own], points[1 - own]].map(|point| encode_point(&point));
            let shares = KeyShares { share: &share, point: &point, their_point: &their_point };
            let node = Node::from_sum(public, &shares).unwrap();
            let pair = set_up(role, phases);
            let ready = prepare(&pair, &[circuit], phases).next().unwrap();
            phases.run("online", |channel| {
                *now(node.hardened(&pair, circuit, ready, 44, channel)).unwrap().unwrap().public()
            })
        });
    }
    table.print("bip32-level", "malicious-80");
}

/// A path of BIP-32 from a seed, its root included.
fn bip32(root: &StepCircuit, child: &StepCircuit, path: &[u32], runs: usize) {
    let shares = split_seed(&Secret::new(vec![9; SEED]), 2, &mut UnwrapErr(SysRng)).unwrap();
    let circuits: Vec<&StepCircuit> = std::iter::once(root).chain(path.iter().map(|_| child)).collect();
    let mut table = table(&circuits);
    for _ in 0..runs {
        phases(&mut table, |role, phases| {
            let share = &shares[usize::from(role == Role::Evaluator)];
            let pair = set_up(role, phases);
            let seed = phases.run("import", |channel| {
                now(share.join(&pair, 3 - share.number, channel, &mut UnwrapErr(SysRng))).unwrap()
            });
            let mut ready = prepare(&pair, &circuits, phases);
            phases.run("online", |channel| {
                let (_, mut node) = now(seed.confirm(&pair, root, ready.next().unwrap(), channel)).unwrap();
                for number in path {
                    let ready = ready.next().unwrap();
                    node = now(node.hardened(&pair, child, ready, *number, channel)).unwrap().unwrap();
                }
                *node.public()
            })
        });
    }
    table.print("bip32-seed-m/44'/0'/0'", "malicious-80");
}

/// A path of SLIP-10 for Ed25519 from a seed, whose import is over, down to the key that signs.
fn slip10([root, child, key]: &[StepCircuit; 3], path: &[u32], runs: usize) {
    let shares = split_seed(&Secret::new(vec![9; SEED]), 2, &mut UnwrapErr(SysRng)).unwrap();
    let confirming = &StepCircuit::new(Step::Master(SEED)).unwrap();
    let circuits: Vec<&StepCircuit> =
        std::iter::once(root).chain(path.iter().map(|_| child)).chain([key]).collect();
    let mut table = table(&circuits);
    for _ in 0..runs {
        phases(&mut table, |role, phases| {
            let share = &shares[usize::from(role == Role::Evaluator)];
            let pair = set_up(role, phases);
            let (seed, _) = phases.run("import", |channel| {
                let rng = &mut UnwrapErr(SysRng);
                let seed = now(share.join(&pair, 3 - share.number, channel, rng)).unwrap();
                let ready = now(Ready::new(&pair, confirming, channel, rng)).unwrap();
                now(seed.confirm(&pair, confirming, ready, channel)).unwrap()
            });
            let mut ready = prepare(&pair, &circuits, phases);
            phases.run("online", |channel| {
                let mut node = now(seed.slip10(&pair, root, ready.next().unwrap(), channel)).unwrap();
                for number in path {
                    node = now(node.child(&pair, child, ready.next().unwrap(), *number, channel)).unwrap();
                }
                *now(node.key(&pair, key, ready.next().unwrap(), channel)).unwrap().public_key()
            })
        });
    }
    table.print("slip10-seed-m/44'/501'/0'/0'", "malicious-80");
}
