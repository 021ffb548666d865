//! Runs whole sessions on one thread and measures each party by itself: computation, bytes sent, rounds.

use std::collections::VecDeque;
use std::time::Duration;

use engine::seal::DataKey;
use engine::session::{Progress, Session, Step};
use engine::wire::Writer;
use engine::{EvidenceKey, PartyId, Protocol, RosterEntry, Secret, SessionId, SessionSettings, Threshold};
use protocols::ecdsa::{
    DerivationPath, KeyPublic, KeyShare, Keygen, PresignPayload, Presignature, PresignedSigning, Presigning,
    Refresh, Reshare, ReshareTerms, Reshared, SignInput, SignPayload, Signature, Signing,
};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// The processor time of this thread so far: unlike the time of day, the same on a machine that does other things too.
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// One run: the party that computed longest, the one that sent most, and what came out.
pub struct Run<T> {
    pub time: Duration,
    pub sent: usize,
    pub rounds: usize,
    pub outputs: Vec<T>,
}

/// The median of the times; the rest is the same in every run.
pub fn median<T>(mut runs: Vec<Run<T>>) -> Run<T> {
    runs.sort_by_key(|run| run.time);
    let middle = runs.len() / 2;
    runs.swap_remove(middle)
}

pub fn party(number: usize) -> PartyId {
    PartyId::new(number as u32).unwrap()
}

pub fn evidence_key(id: PartyId) -> EvidenceKey {
    EvidenceKey::from_seed(&Secret::new([id.get() as u8; 32]))
}

pub fn settings(
    me: PartyId,
    signers: &[PartyId],
    t: usize,
    payload: Vec<u8>,
    session: [u8; 32],
) -> SessionSettings {
    let roster = signers
        .iter()
        .map(|id| RosterEntry { id: *id, evidence_key: Some(evidence_key(*id).public()) })
        .collect();
    SessionSettings {
        session_id: SessionId::new(session),
        me: Some(me),
        roster,
        threshold: Threshold::new(t as u32).unwrap(),
        key_id: "keys/bench".to_owned(),
        epoch: 1,
        payload,
    }
}

/// Starts every party and delivers until all are done. Everything that a party has before a session begins is prepared
/// outside of the measurement: the roster with the evidence keys in it, its own, and its share or presignature, opened.
pub fn run<P: Protocol>(
    parties: &[PartyId],
    rng: &mut ChaCha20Rng,
    mut prepare: impl FnMut(PartyId, [u8; 32]) -> (SessionSettings, P::Input),
) -> Run<P::Output> {
    let mut sessions = Vec::new();
    let mut meters = vec![(Duration::ZERO, 0usize); parties.len()];
    let mut queue: VecDeque<(usize, usize, Vec<u8>)> = VecDeque::new();
    let mut outputs = Vec::new();
    let mut settle =
        |me: usize, step: Step<P::Output>, meters: &mut Vec<(Duration, usize)>, queue: &mut VecDeque<_>| {
            for envelope in &step.outgoing {
                let bytes = envelope.encode();
                meters[me].1 += bytes.len() * envelope.recipient().map_or(parties.len() - 1, |_| 1);
                for (to, id) in parties.iter().enumerate() {
                    if to != me && envelope.recipient().is_none_or(|recipient| recipient == *id) {
                        queue.push_back((me, to, bytes.clone()));
                    }
                }
            }
            match step.progress {
                Progress::Done(output) => outputs.push(output),
                Progress::Waiting { .. } => (),
                Progress::Dropped(reject) => panic!("{reject:?}"),
                Progress::Aborted(abort) => panic!("{abort:?}"),
            }
        };
    let mut session_id = [0u8; 32];
    rng.fill_bytes(&mut session_id);
    for (place, id) in parties.iter().enumerate() {
        let (settings, input) = prepare(*id, session_id);
        let key = evidence_key(*id);
        let begun = processor_time();
        let (session, step) = Session::<P>::start(settings, Some(key), input, rng).unwrap();
        meters[place].0 += processor_time() - begun;
        sessions.push(session);
        settle(place, step, &mut meters, &mut queue);
    }
    while let Some((from, to, bytes)) = queue.pop_front() {
        let begun = processor_time();
        let step = sessions[to].handle(parties[from], &bytes, rng);
        meters[to].0 += processor_time() - begun;
        settle(to, step, &mut meters, &mut queue);
    }
    assert_eq!(outputs.len(), parties.len());
    Run {
        time: meters.iter().map(|(time, _)| *time).max().unwrap(),
        sent: meters.iter().map(|(_, sent)| *sent).max().unwrap(),
        rounds: P::ROUNDS.len(),
        outputs,
    }
}

pub fn keygen(t: usize, n: usize, rng: &mut ChaCha20Rng) -> Run<KeyShare> {
    let parties: Vec<PartyId> = (1..=n).map(party).collect();
    run::<Keygen>(&parties, rng, |me, session| (settings(me, &parties, t, Vec::new(), session), ()))
}

/// Shares as a service keeps them; opening one is not part of what is measured.
pub struct Store {
    key: DataKey,
    blobs: Vec<(KeyShare, Vec<u8>)>,
    public: KeyPublic,
}

impl Store {
    pub fn new(shares: Vec<KeyShare>, rng: &mut ChaCha20Rng) -> Self {
        let key = DataKey::new(Secret::new([1; 32]));
        let public = shares.first().unwrap().public().clone();
        let blobs = shares
            .into_iter()
            .map(|share| {
                let blob = share.seal(&key, rng).unwrap();
                (share, blob)
            })
            .collect();
        Self { key, blobs, public }
    }

    fn open(&self, id: PartyId) -> KeyShare {
        let (share, blob) = self.blobs.iter().find(|(share, _)| share.party() == id).unwrap();
        KeyShare::unseal(&self.key, blob, &share.label()).unwrap()
    }

    fn t(&self) -> usize {
        self.public.threshold.get()
    }

    fn parties(&self) -> Vec<PartyId> {
        (1..=self.blobs.len()).map(party).collect()
    }

    fn signers(&self) -> Vec<PartyId> {
        (1..=self.t()).map(party).collect()
    }
}

fn payload(presignature: Option<[u8; 32]>) -> Vec<u8> {
    SignPayload { digest: [7; 32], path: DerivationPath::default(), presignature }.encode()
}

pub fn sign(store: &Store, rng: &mut ChaCha20Rng) -> Run<Signature> {
    let signers = store.signers();
    let mut shares: Vec<KeyShare> = signers.iter().rev().map(|id| store.open(*id)).collect();
    run::<Signing>(&signers, rng, |me, session| {
        let input = SignInput::Party(Box::new(shares.pop().unwrap()));
        (settings(me, &signers, store.t(), payload(None), session), input)
    })
}

pub fn presign(store: &Store, rng: &mut ChaCha20Rng) -> Run<Vec<Presignature>> {
    let signers = store.signers();
    let mut shares: Vec<KeyShare> = signers.iter().rev().map(|id| store.open(*id)).collect();
    run::<Presigning>(&signers, rng, |me, session| {
        let payload = PresignPayload { path: DerivationPath::default(), count: 1 }.encode();
        (settings(me, &signers, store.t(), payload, session), shares.pop().unwrap())
    })
}

pub fn sign_presigned(store: &Store, made: Vec<Vec<Presignature>>, rng: &mut ChaCha20Rng) -> Run<Signature> {
    let signers = store.signers();
    let mut presignatures: Vec<Presignature> = made.into_iter().flatten().collect();
    let id = *presignatures.first().unwrap().id();
    run::<PresignedSigning>(&signers, rng, |me, session| {
        let place = presignatures.iter().position(|presignature| presignature.party() == me).unwrap();
        let input = SignInput::Party(Box::new(presignatures.swap_remove(place)));
        (settings(me, &signers, store.t(), payload(Some(id)), session), input)
    })
}

/// The settings of a renewal, whose session is of the epoch that it makes.
pub fn renewal(
    me: PartyId,
    parties: &[PartyId],
    t: usize,
    payload: Vec<u8>,
    session: [u8; 32],
) -> SessionSettings {
    SessionSettings { epoch: 2, ..settings(me, parties, t, payload, session) }
}

pub fn refresh(store: &Store, rng: &mut ChaCha20Rng) -> Run<KeyShare> {
    let parties = store.parties();
    let mut payload = Writer::default();
    store.public.encode(&mut payload);
    let payload = payload.finish();
    run::<Refresh>(&parties, rng, |me, session| {
        (renewal(me, &parties, store.t(), payload.clone(), session), store.open(me))
    })
}

/// A reshare among the parties that the key has, all of them dealers and receivers.
pub fn reshare(store: &Store, rng: &mut ChaCha20Rng) -> Run<Reshared> {
    let parties = store.parties();
    let all = || parties.iter().copied().collect();
    let terms = ReshareTerms { dealers: all(), receivers: all(), base: store.public.clone() }.encode();
    run::<Reshare>(&parties, rng, |me, session| {
        (renewal(me, &parties, store.t(), terms.clone(), session), Some(store.open(me)))
    })
}

pub fn seeded(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}
