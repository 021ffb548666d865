//! The exported functions. Every pointer rule of the header is enforced or stated here and nowhere else.

// The names are the header's.
#![allow(non_camel_case_types)]

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use std::panic::{catch_unwind, set_hook, take_hook};
use std::sync::Once;

use zeroize::Zeroize;

use crate::exact;
use crate::group;
use crate::inputs::StartError;
use crate::judge;
use crate::memory::{self, on_wiped_stack};
use crate::passphrase;
use crate::session::AnySession;
use crate::vault::{StatementError, Vault};
use crate::verify;

/// `MPC_ABI_VERSION`.
pub const MPC_ABI_VERSION: i32 = 1;
/// `MPC_MAX_INPUT`.
pub const MPC_MAX_INPUT: usize = 4_194_304;
/// `MPC_MAX_PRESIGNATURES`.
pub const MPC_MAX_PRESIGNATURES: usize = crate::vault::MAX_PRESIGNATURES;
/// `MPC_MAX_STATEMENT`.
pub const MPC_MAX_STATEMENT: usize = crate::vault::MAX_STATEMENT_BYTES;

/// Result of a call.
pub type mpc_code = i32;
/// The call did what it says.
pub const MPC_OK: mpc_code = 0;
/// A null, oversized or undecodable argument.
pub const MPC_INVALID_ARGUMENT: mpc_code = 1;
/// Wrong data key, wrong label, or an altered blob.
pub const MPC_UNSEAL_FAILED: mpc_code = 2;
/// The arguments do not describe a session that this core can run.
pub const MPC_SETUP_REFUSED: mpc_code = 3;
/// The session can only be freed.
pub const MPC_POISONED: mpc_code = 4;
/// A panic was caught.
pub const MPC_INTERNAL: mpc_code = 5;

/// Bytes borrowed for the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mpc_view {
    /// May be null when `len` is 0.
    pub data: *const u8,
    /// In bytes.
    pub len: usize,
}

/// Bytes owned by the library.
#[repr(C)]
pub struct mpc_buffer {
    /// Null when empty.
    pub data: *mut u8,
    /// In bytes.
    pub len: usize,
}

/// Opaque: the data key of one party.
pub struct mpc_vault(Vault);

/// Opaque: one party's run of one protocol.
pub struct mpc_session {
    running: AnySession,
    poisoned: bool,
}

impl mpc_view {
    /// The borrowed bytes; `None` if the view is not one.
    ///
    /// # Safety
    /// `data` points to `len` readable bytes that nobody writes during the call.
    unsafe fn bytes<'a>(self) -> Option<&'a [u8]> {
        if self.len > MPC_MAX_INPUT {
            None
        } else if self.len == 0 {
            Some(&[])
        } else if self.data.is_null() {
            None
        } else {
            // SAFETY: not null, at most MPC_MAX_INPUT, readable for `len` by this function's contract.
            Some(unsafe { core::slice::from_raw_parts(self.data, self.len) })
        }
    }
}

impl mpc_buffer {
    fn from_vec(bytes: Vec<u8>) -> Self {
        if bytes.is_empty() {
            return Self::EMPTY;
        }
        let boxed = exact(bytes);
        let len = boxed.len();
        Self { data: Box::into_raw(boxed).cast::<u8>(), len }
    }
}

/// The value of an output to which nothing was put.
trait Empty {
    const EMPTY: Self;
}

impl Empty for mpc_buffer {
    const EMPTY: Self = Self { data: core::ptr::null_mut(), len: 0 };
}

impl<T> Empty for *mut T {
    const EMPTY: Self = core::ptr::null_mut();
}

impl Empty for i32 {
    const EMPTY: Self = 0;
}

/// An output of a call, empty until something is put there.
struct Out<T>(NonNull<T>);

impl<T: Empty> Out<T> {
    /// Empties the place; `None` if it is null.
    ///
    /// # Safety
    /// `place` is null, or writable for as long as the output lives.
    unsafe fn at(place: *mut T) -> Option<Self> {
        let place = NonNull::new(place)?;
        // SAFETY: not null, and writable by this function's contract.
        unsafe { place.write(T::EMPTY) };
        Some(Self(place))
    }

    fn put(self, value: T) {
        // SAFETY: writable for as long as `self` lives, by the contract of `at`. It held an empty value: nothing leaks.
        unsafe { self.0.write(value) };
    }
}

/// The code of a call that an error ended, whose text goes to `detail`. Of sealed inputs nothing is told.
fn refused(error: StartError, undecodable: &str, detail: Out<mpc_buffer>) -> mpc_code {
    let (code, text) = match error {
        StartError::Unseal => return MPC_UNSEAL_FAILED,
        StartError::Undecodable => (MPC_INVALID_ARGUMENT, undecodable.to_owned()),
        StartError::Setup(error) => (MPC_SETUP_REFUSED, error.to_string()),
    };
    detail.put(mpc_buffer::from_vec(text.into_bytes()));
    code
}

/// The bytes in an allocation of exactly their size. Where that takes a copy the original is wiped.
fn exact(mut bytes: Vec<u8>) -> Box<[u8]> {
    if bytes.len() == bytes.capacity() {
        return bytes.into_boxed_slice();
    }
    let copy: Box<[u8]> = bytes.as_slice().into();
    bytes.zeroize();
    copy
}

thread_local! {
    static IN_CALL: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body`, turns a panic into `MPC_INTERNAL`, and wipes the stack.
fn guarded(body: impl FnOnce() -> mpc_code) -> mpc_code {
    static QUIET: Once = Once::new();
    // The code says what happened; a message on standard error could only add what must not be there.
    QUIET.call_once(|| {
        let outside = take_hook();
        set_hook(Box::new(move |info| {
            if !IN_CALL.get() {
                outside(info);
            }
        }));
    });
    IN_CALL.set(true);
    let code = on_wiped_stack(|| catch_unwind(AssertUnwindSafe(body)).unwrap_or(MPC_INTERNAL));
    IN_CALL.set(false);
    code
}

/// Version of this interface.
#[unsafe(no_mangle)]
pub extern "C" fn mpc_abi_version() -> i32 {
    MPC_ABI_VERSION
}

/// Protects the process's memory if `protect` is not 0; says which `MPC_PROTECTED_` bits hold.
#[unsafe(no_mangle)]
pub extern "C" fn mpc_process_protect(protect: i32) -> i32 {
    if protect != 0 {
        memory::protect();
    }
    memory::protections()
}

/// Argon2id (RFC 9106) in memory that is wiped and given back.
///
/// # Safety
/// The views are valid, `out` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_argon2id(
    passphrase: mpc_view,
    salt: mpc_view,
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    out: *mut mpc_buffer,
) -> mpc_code {
    // SAFETY: null or writable by contract.
    let Some(out) = (unsafe { Out::at(out) }) else { return MPC_INVALID_ARGUMENT };
    guarded(|| {
        // SAFETY: valid views by contract.
        let (Some(passphrase), Some(salt)) = (unsafe { (passphrase.bytes(), salt.bytes()) }) else {
            return MPC_INVALID_ARGUMENT;
        };
        match passphrase::argon2id(passphrase, salt, memory_kib, passes, lanes) {
            Ok(key) => {
                out.put(mpc_buffer::from_vec(key));
                MPC_OK
            }
            Err(passphrase::Refused::Argument) => MPC_INVALID_ARGUMENT,
            Err(passphrase::Refused::Memory) => MPC_INTERNAL,
        }
    })
}

/// Takes a copy of a 32-byte data key.
///
/// # Safety
/// `data_key32` is a valid view; `out` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_vault_open(data_key32: mpc_view, out: *mut *mut mpc_vault) -> mpc_code {
    // SAFETY: null or writable by contract.
    let Some(out) = (unsafe { Out::at(out) }) else { return MPC_INVALID_ARGUMENT };
    guarded(|| {
        // SAFETY: a valid view by contract.
        let Some(key) = (unsafe { data_key32.bytes() }) else { return MPC_INVALID_ARGUMENT };
        let Ok(vault) = Vault::open(key) else { return MPC_INVALID_ARGUMENT };
        out.put(Box::into_raw(Box::new(mpc_vault(vault))));
        MPC_OK
    })
}

/// Wipes and frees a vault.
///
/// # Safety
/// `vault` is null or came from [`mpc_vault_open`] and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_vault_free(vault: *mut mpc_vault) {
    if !vault.is_null() {
        guarded(|| {
            // SAFETY: made by Box::into_raw and not freed before, by contract.
            drop(unsafe { Box::from_raw(vault) });
            MPC_OK
        });
    }
}

/// Seals bytes for this vault under a label.
///
/// # Safety
/// `vault` is a live vault or null, the views are valid, `out` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_vault_seal(
    vault: *const mpc_vault,
    label: mpc_view,
    plaintext: mpc_view,
    out: *mut mpc_buffer,
) -> mpc_code {
    // SAFETY: null or writable by contract.
    let Some(out) = (unsafe { Out::at(out) }) else { return MPC_INVALID_ARGUMENT };
    guarded(|| {
        // SAFETY: live or null, and valid views, by contract.
        let (vault, label, plaintext) = unsafe { (vault.as_ref(), label.bytes(), plaintext.bytes()) };
        let (Some(vault), Some(label), Some(plaintext)) = (vault, label, plaintext) else {
            return MPC_INVALID_ARGUMENT;
        };
        let Ok(sealed) = vault.0.seal(label, plaintext) else { return MPC_INVALID_ARGUMENT };
        out.put(mpc_buffer::from_vec(sealed));
        MPC_OK
    })
}

/// Opens what [`mpc_vault_seal`] made.
///
/// # Safety
/// `vault` is a live vault or null, the views are valid, `out` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_vault_unseal(
    vault: *const mpc_vault,
    label: mpc_view,
    sealed: mpc_view,
    out: *mut mpc_buffer,
) -> mpc_code {
    // SAFETY: null or writable by contract.
    let Some(out) = (unsafe { Out::at(out) }) else { return MPC_INVALID_ARGUMENT };
    guarded(|| {
        // SAFETY: live or null, and valid views, by contract.
        let (vault, label, sealed) = unsafe { (vault.as_ref(), label.bytes(), sealed.bytes()) };
        let (Some(vault), Some(label), Some(sealed)) = (vault, label, sealed) else {
            return MPC_INVALID_ARGUMENT;
        };
        let Ok(plaintext) = vault.0.unseal(label, sealed) else { return MPC_UNSEAL_FAILED };
        out.put(mpc_buffer::from_vec(plaintext.into_bytes()));
        MPC_OK
    })
}

/// Makes a presignature useless without using it.
///
/// # Safety
/// `vault` is a live vault or null, the view is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_vault_drop_presignature(
    vault: *const mpc_vault,
    presignature_id: mpc_view,
) -> mpc_code {
    guarded(|| {
        // SAFETY: live or null, and a valid view, by contract.
        let (Some(vault), Some(id)) = (unsafe { (vault.as_ref(), presignature_id.bytes()) }) else {
            return MPC_INVALID_ARGUMENT;
        };
        if vault.0.drop_presignature(id).is_ok() { MPC_OK } else { MPC_INVALID_ARGUMENT }
    })
}

/// Makes an evidence key.
///
/// # Safety
/// `vault` is a live vault or null, the view is valid, the outputs are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_identity_create(
    vault: *const mpc_vault,
    party_name: mpc_view,
    sealed_identity: *mut mpc_buffer,
    evidence_public_key: *mut mpc_buffer,
) -> mpc_code {
    // SAFETY: null or writable by contract.
    let (Some(sealed_identity), Some(evidence_public_key)) =
        (unsafe { (Out::at(sealed_identity), Out::at(evidence_public_key)) })
    else {
        return MPC_INVALID_ARGUMENT;
    };
    guarded(|| {
        // SAFETY: live or null, and a valid view, by contract.
        let (Some(vault), Some(name)) = (unsafe { (vault.as_ref(), party_name.bytes()) }) else {
            return MPC_INVALID_ARGUMENT;
        };
        let Ok((sealed, public)) = vault.0.create_identity(name) else { return MPC_INVALID_ARGUMENT };
        sealed_identity.put(mpc_buffer::from_vec(sealed));
        evidence_public_key.put(mpc_buffer::from_vec(public));
        MPC_OK
    })
}

/// Signs a statement with an evidence key.
///
/// # Safety
/// `vault` is a live vault or null, the views are valid, `signature64` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_identity_sign(
    vault: *const mpc_vault,
    sealed_identity: mpc_view,
    statement: mpc_view,
    signature64: *mut mpc_buffer,
) -> mpc_code {
    // SAFETY: null or writable by contract.
    let Some(signature64) = (unsafe { Out::at(signature64) }) else { return MPC_INVALID_ARGUMENT };
    guarded(|| {
        // SAFETY: live or null, and valid views, by contract.
        let (vault, identity, statement) =
            unsafe { (vault.as_ref(), sealed_identity.bytes(), statement.bytes()) };
        let (Some(vault), Some(identity), Some(statement)) = (vault, identity, statement) else {
            return MPC_INVALID_ARGUMENT;
        };
        match vault.0.sign_statement(identity, statement) {
            Ok(signature) => {
                signature64.put(mpc_buffer::from_vec(signature));
                MPC_OK
            }
            Err(StatementError::Long) => MPC_INVALID_ARGUMENT,
            Err(StatementError::Unseal) => MPC_UNSEAL_FAILED,
        }
    })
}

/// Starts one session.
///
/// # Safety
/// `vault` is a live vault or null, the views are valid, the outputs are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_session_start(
    vault: *const mpc_vault,
    config: mpc_view,
    sealed_identity: mpc_view,
    sealed_share: mpc_view,
    out: *mut *mut mpc_session,
    step: *mut mpc_buffer,
    error_detail: *mut mpc_buffer,
) -> mpc_code {
    // SAFETY: null or writable by contract.
    let (Some(out), Some(step), Some(error_detail)) =
        (unsafe { (Out::at(out), Out::at(step), Out::at(error_detail)) })
    else {
        return MPC_INVALID_ARGUMENT;
    };
    guarded(|| {
        // SAFETY: live or null, and valid views, by contract.
        let (vault, config, identity, share) =
            unsafe { (vault.as_ref(), config.bytes(), sealed_identity.bytes(), sealed_share.bytes()) };
        let (Some(config), Some(identity), Some(share)) = (config, identity, share) else {
            return MPC_INVALID_ARGUMENT;
        };
        match AnySession::start(vault.map(|vault| &vault.0), config, identity, share) {
            Ok((running, first)) => {
                out.put(Box::into_raw(Box::new(mpc_session { running, poisoned: false })));
                step.put(mpc_buffer::from_vec(first));
                MPC_OK
            }
            Err(error) => refused(error, "config is not a SessionConfig", error_detail),
        }
    })
}

/// Hands one received envelope to a session.
///
/// # Safety
/// `session` is a live session or null, used by one thread at a time; the view is valid; `step` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_session_handle(
    session: *mut mpc_session,
    authenticated_sender: u32,
    envelope: mpc_view,
    step: *mut mpc_buffer,
) -> mpc_code {
    // SAFETY: null or writable by contract.
    let Some(step) = (unsafe { Out::at(step) }) else { return MPC_INVALID_ARGUMENT };
    // SAFETY: live or null by contract.
    let Some(session) = (unsafe { session.as_mut() }) else { return MPC_INVALID_ARGUMENT };
    if session.poisoned {
        return MPC_POISONED;
    }
    let code = guarded(|| {
        // SAFETY: a valid view by contract.
        let Some(envelope) = (unsafe { envelope.bytes() }) else { return MPC_INVALID_ARGUMENT };
        let encoded = session.running.handle(authenticated_sender, envelope);
        step.put(mpc_buffer::from_vec(encoded));
        MPC_OK
    });
    session.poisoned = code == MPC_INTERNAL;
    code
}

/// Judges what a party reports of another.
///
/// # Safety
/// The views are valid, the outputs are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_judge(
    config: mpc_view,
    accusation: mpc_view,
    verdict: *mut i32,
    error_detail: *mut mpc_buffer,
) -> mpc_code {
    // SAFETY: null or writable by contract.
    let (Some(verdict), Some(error_detail)) = (unsafe { (Out::at(verdict), Out::at(error_detail)) }) else {
        return MPC_INVALID_ARGUMENT;
    };
    guarded(|| {
        // SAFETY: valid views by contract.
        let (Some(config), Some(accusation)) = (unsafe { (config.bytes(), accusation.bytes()) }) else {
            return MPC_INVALID_ARGUMENT;
        };
        match judge::judge(config, accusation) {
            Ok(found) => {
                verdict.put(found as i32);
                MPC_OK
            }
            Err(error) => refused(error, "config or accusation does not decode", error_detail),
        }
    })
}

/// Verifies signatures of several sessions at once.
///
/// # Safety
/// The view is valid, the outputs are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_verify(
    call: mpc_view,
    valid: *mut i32,
    error_detail: *mut mpc_buffer,
) -> mpc_code {
    // SAFETY: null or writable by contract.
    let (Some(valid), Some(error_detail)) = (unsafe { (Out::at(valid), Out::at(error_detail)) }) else {
        return MPC_INVALID_ARGUMENT;
    };
    guarded(|| {
        // SAFETY: a valid view by contract.
        let Some(call) = (unsafe { call.bytes() }) else { return MPC_INVALID_ARGUMENT };
        match verify::verify(call) {
            Ok(found) => {
                valid.put(i32::from(found));
                MPC_OK
            }
            Err(error) => refused(error, "call is not a VerifyCall", error_detail),
        }
    })
}

/// A function that does an encoded call and makes the encoded reply.
type Call = fn(Option<&Vault>, &[u8], &[u8]) -> Result<Vec<u8>, StartError>;

/// Does a call that needs no session; `undecodable` says that it does not decode.
///
/// # Safety
/// `vault` is a live vault or null, the views are valid, the outputs are null or writable.
unsafe fn replied(
    (does, undecodable): (Call, &str),
    vault: *const mpc_vault,
    sealed_identity: mpc_view,
    call: mpc_view,
    reply: *mut mpc_buffer,
    error_detail: *mut mpc_buffer,
) -> mpc_code {
    // SAFETY: null or writable by contract.
    let (Some(reply), Some(error_detail)) = (unsafe { (Out::at(reply), Out::at(error_detail)) }) else {
        return MPC_INVALID_ARGUMENT;
    };
    guarded(|| {
        // SAFETY: live or null, and valid views, by contract.
        let (vault, identity, call) = unsafe { (vault.as_ref(), sealed_identity.bytes(), call.bytes()) };
        let (Some(identity), Some(call)) = (identity, call) else { return MPC_INVALID_ARGUMENT };
        match does(vault.map(|vault| &vault.0), identity, call) {
            Ok(done) => {
                reply.put(mpc_buffer::from_vec(done));
                MPC_OK
            }
            Err(error) => refused(error, undecodable, error_detail),
        }
    })
}

/// Does a call about a group that needs no session.
///
/// # Safety
/// `vault` is a live vault or null, the views are valid, the outputs are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_group_call(
    vault: *const mpc_vault,
    sealed_identity: mpc_view,
    call: mpc_view,
    reply: *mut mpc_buffer,
    error_detail: *mut mpc_buffer,
) -> mpc_code {
    let group: (Call, _) = (group::call, "call is not a GroupCall");
    // SAFETY: the caller's contract.
    unsafe { replied(group, vault, sealed_identity, call, reply, error_detail) }
}

/// Does a call about an imported key or seed that needs no session.
///
/// # Safety
/// `vault` is a live vault or null, the views are valid, the outputs are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_import_call(
    vault: *const mpc_vault,
    sealed_identity: mpc_view,
    call: mpc_view,
    reply: *mut mpc_buffer,
    error_detail: *mut mpc_buffer,
) -> mpc_code {
    let import: (Call, _) = (exact::call, "call is not an ImportCall");
    // SAFETY: the caller's contract.
    unsafe { replied(import, vault, sealed_identity, call, reply, error_detail) }
}

/// Wipes and frees a session.
///
/// # Safety
/// `session` is null or came from [`mpc_session_start`] and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_session_free(session: *mut mpc_session) {
    if !session.is_null() {
        guarded(|| {
            // SAFETY: made by Box::into_raw and not freed before, by contract.
            drop(unsafe { Box::from_raw(session) });
            MPC_OK
        });
    }
}

/// Wipes and frees the bytes of a buffer, and clears it.
///
/// # Safety
/// `buffer` is null or writable, and holds what the library put there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpc_buffer_free(buffer: *mut mpc_buffer) {
    // SAFETY: null or valid by contract.
    let Some(buffer) = (unsafe { buffer.as_mut() }) else { return };
    let mpc_buffer { data, len } = core::mem::replace(buffer, mpc_buffer::EMPTY);
    if !data.is_null() {
        // SAFETY: made by from_vec, which gives an allocation of exactly `len` bytes.
        let mut bytes = unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(data, len)) };
        bytes.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_a_code() {
        assert_eq!(guarded(|| panic!("inside")), MPC_INTERNAL);
        assert_eq!(guarded(|| MPC_OK), MPC_OK);
    }

    #[test]
    fn poisoned_session_answers_nothing_else() {
        let config = crate::proto::SessionConfig {
            protocol: crate::proto::ProtocolId::BlsKeygen.into(),
            session_id: vec![1; 32],
            own: 1,
            parties: Vec::new(),
            threshold: 1,
            key_id: "keys/poison".to_owned(),
            epoch: 1,
            payload: Vec::new(),
            ..crate::proto::SessionConfig::default()
        };
        let vault = Vault::open(&[1; 32]).unwrap();
        let (identity, evidence_key) = vault.create_identity(b"me").unwrap();
        let parties = vec![crate::proto::Party { id: 1, evidence_key }];
        let config = prost::Message::encode_to_vec(&crate::proto::SessionConfig { parties, ..config });
        let (running, _) = AnySession::start(Some(&vault), &config, &identity, &[]).unwrap();
        let mut session = mpc_session { running, poisoned: true };
        let mut step = mpc_buffer::EMPTY;
        let nothing = mpc_view { data: core::ptr::null(), len: 0 };
        // SAFETY: a live session and a writable output.
        assert_eq!(unsafe { mpc_session_handle(&mut session, 1, nothing, &mut step) }, MPC_POISONED);
        assert!(step.data.is_null());
    }

    #[test]
    fn buffer_has_exactly_its_bytes() {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend([1, 2, 3]);
        let mut buffer = mpc_buffer::from_vec(bytes);
        assert_eq!(buffer.len, 3);
        // SAFETY: holds what the library put there.
        unsafe { mpc_buffer_free(&mut buffer) };
        assert!(buffer.data.is_null() && buffer.len == 0);
    }
}
