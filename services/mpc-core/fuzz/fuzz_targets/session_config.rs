#![no_main]

//! Any bytes as a session configuration, an identity or a share, through the C interface.

use coterie_mpc::*;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let view = mpc_view { data: data.as_ptr(), len: data.len() };
    let mut vault = std::ptr::null_mut();
    let key = [1u8; 32];
    // Views of live bytes, writable outputs, and each handle freed once.
    unsafe {
        let code = mpc_vault_open(mpc_view { data: key.as_ptr(), len: 32 }, &mut vault);
        assert_eq!(code, MPC_OK);
        let mut session = std::ptr::null_mut();
        let mut step = mpc_buffer { data: std::ptr::null_mut(), len: 0 };
        let mut detail = mpc_buffer { data: std::ptr::null_mut(), len: 0 };
        let code = mpc_session_start(vault, view, view, view, &mut session, &mut step, &mut detail);
        assert_ne!(code, MPC_INTERNAL);
        mpc_buffer_free(&mut step);
        mpc_buffer_free(&mut detail);
        mpc_session_free(session);
        mpc_vault_free(vault);
    }
});
