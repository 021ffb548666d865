#![no_main]

//! Any bytes as a session configuration, an identity and a share, through the C interface.

#[path = "../../abi/tests/common/start_parts.rs"]
mod start_parts;

use coterie_mpc::*;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [config, identity, share] =
        start_parts::split(data).map(|part| mpc_view { data: part.as_ptr(), len: part.len() });
    let mut vault = std::ptr::null_mut();
    let key = [1u8; 32];
    // Views of live bytes, writable outputs, and each handle freed once.
    unsafe {
        let code = mpc_vault_open(mpc_view { data: key.as_ptr(), len: 32 }, &mut vault);
        assert_eq!(code, MPC_OK);
        let mut session = std::ptr::null_mut();
        let mut step = mpc_buffer { data: std::ptr::null_mut(), len: 0 };
        let mut detail = mpc_buffer { data: std::ptr::null_mut(), len: 0 };
        let code = mpc_session_start(vault, config, identity, share, &mut session, &mut step, &mut detail);
        assert_ne!(code, MPC_INTERNAL);
        mpc_buffer_free(&mut step);
        mpc_buffer_free(&mut detail);
        mpc_session_free(session);
        mpc_vault_free(vault);
    }
});
