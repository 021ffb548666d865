//! Threshold Schnorr signatures beside the bare crates, in one run on one thread: the computation of the busiest party
//! in processor time. `cargo bench -p protocols --bench frost` prints the table; `-- 2/3` only that.
//!
//! Both hold keys, rosters and nonces opened in memory before the clock runs, and encode and decode all that travels.
//! The bare crates run as their documentation shows. They sign no envelopes, compare no broadcasts, keep no transcript,
//! hold no commitment before the opening, and prove no signing share: the work that their user would have to add
//! for the same result is on our side only.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement prints, and fails by panicking"
)]

#[allow(dead_code, reason = "the part that is about ECDSA")]
mod ecdsa_harness;

use std::collections::BTreeMap;
use std::time::Duration;

use ecdsa_harness::{Run, median, party, processor_time, renewal, run, seeded, settings};
use engine::seal::DataKey;
use engine::wire::Writer;
use engine::{PartyId, Secret};
use frost_core::keys::dkg;
use frost_core::keys::{KeyPackage, PublicKeyPackage, VerifiableSecretSharingCommitment};
use frost_core::round1::{self, NonceCommitment, SigningCommitments};
use frost_core::round2::{self, SignatureShare};
use frost_core::{Identifier, SigningPackage, aggregate};
use protocols::frost::{
    Bip340, Ed25519, KeyShare, Keygen, PresignPayload, Presignature, PresignedSigning, Presigning, Refresh,
    Reshare, ReshareTerms, Reshared, SignInput, SignPayload, Signature, Signing, Suite, Target,
};
use rand_chacha::ChaCha20Rng;
use rand_core::Rng;

const TABLE: [(usize, usize); 5] = [(2, 2), (2, 3), (3, 5), (7, 10), (11, 20)];
const MESSAGE: [u8; 32] = [7; 32];

/// The generator of the harness under the crates' trait.
struct Old<'a>(&'a mut ChaCha20Rng);

impl frost_ed25519::rand_core::RngCore for Old<'_> {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), frost_ed25519::rand_core::Error> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

impl frost_ed25519::rand_core::CryptoRng for Old<'_> {}

fn keygen<S: Suite>((t, n): (usize, usize), rng: &mut ChaCha20Rng) -> Run<KeyShare<S>> {
    let parties: Vec<PartyId> = (1..=n).map(party).collect();
    run::<Keygen<S>>(&parties, rng, |me, session| (settings(me, &parties, t, Vec::new(), session), ()))
}

/// A second share like the first, outside of what is measured.
fn reopen<S: Suite>(share: &KeyShare<S>, rng: &mut ChaCha20Rng) -> KeyShare<S> {
    let key = DataKey::new(Secret::new([1; 32]));
    let blob = share.seal(&key, rng).unwrap();
    KeyShare::unseal(&key, &blob, &share.label()).unwrap()
}

struct Bench<S: Suite> {
    shares: Vec<KeyShare<S>>,
    signers: Vec<PartyId>,
    t: usize,
}

impl<S: Suite> Bench<S> {
    fn open(&self, rng: &mut ChaCha20Rng) -> BTreeMap<PartyId, KeyShare<S>> {
        let chosen = self.shares.iter().filter(|share| self.signers.contains(&share.party()));
        chosen.map(|share| (share.party(), reopen(share, rng))).collect()
    }

    /// Shares opened, of every party that the key has.
    fn open_all(&self, rng: &mut ChaCha20Rng) -> BTreeMap<PartyId, KeyShare<S>> {
        self.shares.iter().map(|share| (share.party(), reopen(share, rng))).collect()
    }

    fn refresh(&self, rng: &mut ChaCha20Rng) -> Run<KeyShare<S>> {
        let mut shares = self.open_all(rng);
        let parties: Vec<PartyId> = shares.keys().copied().collect();
        let mut payload = Writer::default();
        self.shares[0].public().encode(&mut payload);
        let payload = payload.finish();
        run::<Refresh<S>>(&parties, rng, |me, session| {
            (renewal(me, &parties, self.t, payload.clone(), session), shares.remove(&me).unwrap())
        })
    }

    /// A reshare among the parties that the key has, all of them dealers and receivers.
    fn reshare(&self, rng: &mut ChaCha20Rng) -> Run<Reshared<S>> {
        let mut shares = self.open_all(rng);
        let parties: Vec<PartyId> = shares.keys().copied().collect();
        let all = || parties.iter().copied().collect();
        let base = self.shares[0].public().clone();
        let terms = ReshareTerms::<S> { dealers: all(), receivers: all(), base }.encode();
        run::<Reshare<S>>(&parties, rng, |me, session| {
            (renewal(me, &parties, self.t, terms.clone(), session), shares.remove(&me))
        })
    }

    fn payload(presignature: Option<[u8; 32]>) -> Vec<u8> {
        SignPayload { target: Target::default(), presignature, message: MESSAGE.to_vec() }.encode()
    }

    fn sign(&self, rng: &mut ChaCha20Rng) -> Run<Signature> {
        let mut shares = self.open(rng);
        run::<Signing<S>>(&self.signers, rng, |me, session| {
            let input = SignInput::Party(Box::new(shares.remove(&me).unwrap()));
            (settings(me, &self.signers, self.t, Self::payload(None), session), input)
        })
    }

    fn presign(&self, rng: &mut ChaCha20Rng) -> Run<Vec<Presignature<S>>> {
        let mut shares = self.open(rng);
        run::<Presigning<S>>(&self.signers, rng, |me, session| {
            let payload = PresignPayload { target: Target::default(), count: 1 }.encode();
            (settings(me, &self.signers, self.t, payload, session), shares.remove(&me).unwrap())
        })
    }

    fn sign_presigned(&self, made: Vec<Presignature<S>>, rng: &mut ChaCha20Rng) -> Run<Signature> {
        let id = *made[0].id();
        let mut made: BTreeMap<_, _> = made.into_iter().map(|one| (one.party(), one)).collect();
        run::<PresignedSigning<S>>(&self.signers, rng, |me, session| {
            let input = SignInput::Party(Box::new(made.remove(&me).unwrap()));
            (settings(me, &self.signers, self.t, Self::payload(Some(id)), session), input)
        })
    }
}

/// Adds what a step of a party takes to its account.
fn charge<T>(meter: &mut Duration, step: impl FnOnce() -> T) -> T {
    let begun = processor_time();
    let result = step();
    *meter += processor_time() - begun;
    result
}

type Keys<S> = (KeyPackage<<S as Suite>::Cipher>, PublicKeyPackage<<S as Suite>::Cipher>);

/// The crates' own key generation: the time of the busiest party.
fn bare_keygen<S: Suite>((t, n): (usize, usize), rng: &mut ChaCha20Rng) -> (Duration, Vec<Keys<S>>) {
    let ids: Vec<Identifier<S::Cipher>> = (1..=n as u16).map(|i| i.try_into().unwrap()).collect();
    let mut meters = vec![Duration::ZERO; n];
    let (mut secrets, mut sent) = (Vec::new(), Vec::new());
    for (id, meter) in ids.iter().zip(&mut meters) {
        let (secret, package) = charge(meter, || {
            let (secret, package) = dkg::part1(*id, n as u16, t as u16, Old(rng)).unwrap();
            let proof = package.proof_of_knowledge().serialize().unwrap();
            (secret, (package.commitment().serialize().unwrap(), proof))
        });
        secrets.push(secret);
        sent.push(package);
    }
    let (mut received, mut second, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    for ((place, secret), meter) in secrets.into_iter().enumerate().zip(&mut meters) {
        let (packages, (secret, outgoing)) = charge(meter, || {
            let others = (0..n).filter(|other| *other != place);
            let packages: BTreeMap<_, _> = others
                .map(|other| {
                    let (commitment, proof) = &sent[other];
                    let commitment = VerifiableSecretSharingCommitment::deserialize(commitment).unwrap();
                    let proof = frost_core::Signature::deserialize(proof).unwrap();
                    (ids[other], dkg::round1::Package::new(commitment, proof))
                })
                .collect();
            let out = dkg::part2(secret, &packages).unwrap();
            (packages, out)
        });
        received.push(packages);
        second.push(secret);
        shares.push(outgoing);
    }
    let mut keys = Vec::new();
    for (place, meter) in meters.iter_mut().enumerate() {
        let incoming: BTreeMap<_, _> = (0..n)
            .filter(|other| *other != place)
            .map(|other| (ids[other], shares[other][&ids[place]].clone()))
            .collect();
        keys.push(charge(meter, || dkg::part3(&second[place], &received[place], &incoming).unwrap()));
    }
    (meters.into_iter().max().unwrap(), keys)
}

/// The crates' own commit, sign and aggregate: the time of the busiest party in the first, and in the other two.
fn bare_sign<S: Suite>(keys: &[Keys<S>], rng: &mut ChaCha20Rng) -> (Duration, Duration) {
    let mut commit = vec![Duration::ZERO; keys.len()];
    let mut rest = commit.clone();
    let (mut nonces, mut sent) = (Vec::new(), Vec::new());
    for ((key, _), meter) in keys.iter().zip(&mut commit) {
        let (secret, shown) = charge(meter, || {
            let (secret, shown) = round1::commit(key.signing_share(), &mut Old(rng));
            let bytes = (shown.hiding().serialize().unwrap(), shown.binding().serialize().unwrap());
            (secret, (*key.identifier(), shown, bytes))
        });
        nonces.push(secret);
        sent.push(shown);
    }
    let (mut packages, mut shares) = (Vec::new(), Vec::new());
    for (place, (key, _)) in keys.iter().enumerate() {
        let commitments: BTreeMap<_, _> = charge(&mut commit[place], || {
            sent.iter()
                .map(|(id, shown, (hiding, binding))| {
                    if id == key.identifier() {
                        return (*id, *shown);
                    }
                    let point = |bytes: &[u8]| NonceCommitment::deserialize(bytes).unwrap();
                    (*id, SigningCommitments::new(point(hiding), point(binding)))
                })
                .collect()
        });
        let (package, share) = charge(&mut rest[place], || {
            let package = SigningPackage::<S::Cipher>::new(commitments, &MESSAGE);
            let share = round2::sign(&package, &nonces[place], key).unwrap();
            (package, (*key.identifier(), share.serialize()))
        });
        packages.push(package);
        shares.push(share);
    }
    for ((package, (_, public)), meter) in packages.iter().zip(keys).zip(&mut rest) {
        charge(meter, || {
            let read = |bytes: &[u8]| SignatureShare::deserialize(bytes).unwrap();
            let shares = shares.iter().map(|(id, bytes)| (*id, read(bytes))).collect();
            aggregate(package, &shares, public).unwrap().serialize().unwrap()
        });
    }
    (commit.into_iter().max().unwrap(), rest.into_iter().max().unwrap())
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn print(operation: &str, (t, n): (usize, usize), ours: Duration, bare: Duration, sent: usize) {
    let (ours, bare) = (ours.as_secs_f64() * 1e3, bare.as_secs_f64() * 1e3);
    let ratio = ours / bare;
    println!("{operation:<24} {t:>2}/{n:<2} {ours:>8.3} ms, bare {bare:>8.3} ms, {ratio:>5.2}x {sent:>7} B");
}

fn table<S: Suite>(wanted: &[String]) {
    let mut rng = seeded(1);
    for (t, n) in TABLE {
        if !wanted.is_empty() && !wanted.contains(&format!("{t}/{n}")) {
            continue;
        }
        let name = |operation: &str| format!("{} {operation}", S::FAMILY.trim_start_matches("frost-"));
        let repeat = if n <= 5 { 51 } else { 5 };
        // Turn by turn, so that both meet the same machine.
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..repeat {
            ours.push(keygen::<S>((t, n), &mut rng));
            bare.push(bare_keygen::<S>((t, n), &mut rng));
        }
        let ours = median(ours);
        let (times, mut keys): (Vec<_>, Vec<_>) = bare.into_iter().unzip();
        let bare = middle(times);
        print(&name("key generation"), (t, n), ours.time, bare, ours.sent);
        let bench = Bench { shares: ours.outputs, signers: (1..=t).map(party).collect(), t };
        // The crates' key generation is what a renewal is held against: it deals and checks as many polynomials.
        let refresh = median((0..repeat).map(|_| bench.refresh(&mut rng)).collect());
        print(&name("refresh"), (t, n), refresh.time, bare, refresh.sent);
        let reshare = median((0..repeat).map(|_| bench.reshare(&mut rng)).collect());
        print(&name("reshare"), (t, n), reshare.time, bare, reshare.sent);
        let mut keys = keys.pop().unwrap();
        keys.truncate(t);
        let (mut sign, mut presign, mut presigned) = (Vec::new(), Vec::new(), Vec::new());
        let (mut commit, mut rest, mut both) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..4 * repeat {
            sign.push(bench.sign(&mut rng));
            let (first, second) = bare_sign::<S>(&keys, &mut rng);
            commit.push(first);
            rest.push(second);
            both.push(first + second);
            let Run { time, sent, rounds, outputs } = bench.presign(&mut rng);
            presign.push(Run { time, sent, rounds, outputs: Vec::<()>::new() });
            presigned.push(bench.sign_presigned(outputs.into_iter().flatten().collect(), &mut rng));
        }
        let (sign, presign, presigned) = (median(sign), median(presign), median(presigned));
        print(&name("sign"), (t, n), sign.time, middle(both), sign.sent);
        print(&name("presign"), (t, n), presign.time, middle(commit), presign.sent);
        print(&name("sign presigned"), (t, n), presigned.time, middle(rest), presigned.sent);
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| argument.contains('/')).collect();
    table::<Ed25519>(&wanted);
    table::<Bip340>(&wanted);
}
