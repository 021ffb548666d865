//! Parties that use the library as C does.

#![allow(dead_code, reason = "every test binary uses its own part")]

use std::collections::{BTreeMap, VecDeque};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use coterie_mpc::proto::{self, Progress, SessionConfig, Step};
use coterie_mpc::*;
use prost::Message;

pub const NOTHING: mpc_view = mpc_view { data: null(), len: 0 };

pub fn view(bytes: &[u8]) -> mpc_view {
    mpc_view { data: bytes.as_ptr(), len: bytes.len() }
}

pub fn empty() -> mpc_buffer {
    mpc_buffer { data: null_mut(), len: 0 }
}

/// Something that a failing call has to clear.
pub fn stale() -> mpc_buffer {
    mpc_buffer { data: std::ptr::without_provenance_mut(8), len: 99 }
}

pub fn is_empty(buffer: &mpc_buffer) -> bool {
    buffer.data.is_null() && buffer.len == 0
}

pub fn take(mut buffer: mpc_buffer) -> Vec<u8> {
    if buffer.data.is_null() {
        return Vec::new();
    }
    let bytes = unsafe { std::slice::from_raw_parts(buffer.data, buffer.len) }.to_vec();
    unsafe { mpc_buffer_free(&mut buffer) };
    assert!(is_empty(&buffer));
    bytes
}

pub struct Vault(pub *mut mpc_vault);

impl Vault {
    pub fn new(byte: u8) -> Self {
        let mut vault = null_mut();
        assert_eq!(unsafe { mpc_vault_open(view(&[byte; 32]), &mut vault) }, MPC_OK);
        Self(vault)
    }

    pub fn identity(&self, name: &str) -> (Vec<u8>, Vec<u8>) {
        let (mut sealed, mut public) = (empty(), empty());
        let code = unsafe { mpc_identity_create(self.0, view(name.as_bytes()), &mut sealed, &mut public) };
        assert_eq!(code, MPC_OK);
        (take(sealed), take(public))
    }
}

impl Drop for Vault {
    fn drop(&mut self) {
        unsafe { mpc_vault_free(self.0) };
    }
}

/// Code and detail.
pub type Refused = (i32, String);

/// A function that takes a call and makes a reply.
pub type Replying =
    unsafe extern "C" fn(*const mpc_vault, mpc_view, mpc_view, *mut mpc_buffer, *mut mpc_buffer) -> mpc_code;

/// One call as a C program makes it.
pub fn replied(
    function: Replying,
    vault: Option<&Vault>,
    identity: &[u8],
    call: &[u8],
) -> Result<Vec<u8>, Refused> {
    let vault = vault.map_or(null(), |vault| vault.0.cast_const());
    let (mut reply, mut detail) = (stale(), stale());
    calling();
    let code = unsafe { function(vault, view(identity), view(call), &mut reply, &mut detail) };
    if code == MPC_OK {
        assert!(is_empty(&detail));
        return Ok(take(reply));
    }
    assert!(is_empty(&reply));
    Err((code, String::from_utf8(take(detail)).unwrap()))
}

/// The lowest place of the stack from which the library was called.
pub static LOWEST_CALLER: AtomicUsize = AtomicUsize::new(usize::MAX);

#[inline(always)]
fn calling() {
    let here = 0u8;
    LOWEST_CALLER.fetch_min((&raw const here).addr(), Ordering::Relaxed);
}

pub struct Session(pub *mut mpc_session);

impl Session {
    pub fn start(
        vault: Option<&Vault>,
        config: &[u8],
        identity: &[u8],
        share: &[u8],
    ) -> Result<(Self, Step), (i32, String)> {
        let vault = vault.map_or(null(), |vault| vault.0.cast_const());
        let (mut session, mut step, mut detail) = (std::ptr::without_provenance_mut(8), stale(), stale());
        calling();
        let code = unsafe {
            mpc_session_start(
                vault,
                view(config),
                view(identity),
                view(share),
                &mut session,
                &mut step,
                &mut detail,
            )
        };
        if code == MPC_OK {
            assert!(is_empty(&detail));
            return Ok((Self(session), Step::decode(take(step).as_slice()).unwrap()));
        }
        assert!(session.is_null() && is_empty(&step));
        Err((code, String::from_utf8(take(detail)).unwrap()))
    }

    pub fn handle(&mut self, from: u32, envelope: &[u8]) -> Step {
        let mut step = stale();
        calling();
        assert_eq!(unsafe { mpc_session_handle(self.0, from, view(envelope), &mut step) }, MPC_OK);
        Step::decode(take(step).as_slice()).unwrap()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        unsafe { mpc_session_free(self.0) };
    }
}

pub struct Party {
    pub id: u32,
    pub vault: Vault,
    pub identity: Vec<u8>,
    pub evidence_key: Vec<u8>,
}

pub fn parties(count: u32) -> Vec<Party> {
    (1..=count)
        .map(|id| {
            let vault = Vault::new(u8::try_from(id).unwrap());
            let (identity, evidence_key) = vault.identity(&format!("party-{id}"));
            Party { id, vault, identity, evidence_key }
        })
        .collect()
}

pub fn config(protocol: proto::ProtocolId, own: u32, parties: &[&Party], threshold: u32) -> SessionConfig {
    SessionConfig {
        protocol: protocol.into(),
        session_id: vec![5; 32],
        own,
        parties: parties
            .iter()
            .map(|party| proto::Party { id: party.id, evidence_key: party.evidence_key.clone() })
            .collect(),
        threshold,
        key_id: "keys/ffi".to_owned(),
        epoch: 1,
        ..SessionConfig::default()
    }
}

/// Delivers everything, first come first served; nothing may abort.
pub fn run(sessions: BTreeMap<u32, (Session, Step)>) -> BTreeMap<u32, proto::Done> {
    let (done, aborts) = run_with(sessions, |_, _, _| ());
    assert!(aborts.is_empty(), "{aborts:?}");
    done
}

/// Results and aborts, by party.
pub type Ends = (BTreeMap<u32, proto::Done>, BTreeMap<u32, proto::Abort>);

/// As [`run`]; `tamper` may change each envelope on its way from a party to another.
pub fn run_with(
    mut sessions: BTreeMap<u32, (Session, Step)>,
    tamper: impl FnMut(u32, u32, &mut Vec<u8>),
) -> Ends {
    deliver(&mut sessions, tamper)
}

/// As [`run_with`], with sessions that stay open.
pub fn deliver(
    sessions: &mut BTreeMap<u32, (Session, Step)>,
    mut tamper: impl FnMut(u32, u32, &mut Vec<u8>),
) -> Ends {
    let (mut done, mut aborts) = (BTreeMap::new(), BTreeMap::new());
    let mut queue = VecDeque::new();
    let all: Vec<u32> = sessions.keys().copied().collect();
    let mut settle = |id: u32, step: Step, queue: &mut VecDeque<(u32, u32, Vec<u8>)>| {
        for outgoing in step.outgoing {
            for to in
                all.iter().filter(|to| **to != id && (outgoing.recipient == 0 || **to == outgoing.recipient))
            {
                let mut envelope = outgoing.envelope.clone();
                tamper(id, *to, &mut envelope);
                queue.push_back((id, *to, envelope));
            }
        }
        match step.progress.unwrap() {
            Progress::Done(result) => {
                done.insert(id, result);
            }
            Progress::Abort(abort) => {
                aborts.insert(id, abort);
            }
            Progress::Waiting(_) | Progress::Dropped(_) => {}
        }
    };
    for (id, (_, step)) in sessions.iter_mut() {
        settle(*id, std::mem::take(step), &mut queue);
    }
    while let Some((from, to, envelope)) = queue.pop_front() {
        let step = sessions.get_mut(&to).unwrap().0.handle(from, &envelope);
        settle(to, step, &mut queue);
    }
    (done, aborts)
}
