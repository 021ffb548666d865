//! Signatures of several sessions, verified at once: no vault, no session.

use engine::SetupError;
use engine::session::Protocol;
use prost::Message;
use protocols::bls;

use crate::inputs::StartError;
use crate::os_rng::os_rng;
use crate::proto;

/// Claims of one call, so that what a caller waits for has a bound.
pub const MAX_CLAIMS: usize = 64;

/// Whether every claim of an encoded call is true.
pub fn verify(call: &[u8]) -> Result<bool, StartError> {
    let call = proto::VerifyCall::decode(call).map_err(|_| StartError::Undecodable)?;
    if call.protocol != i32::from(bls::Signing::ID.number) {
        return Err(SetupError::UnknownProtocol.into());
    }
    if call.claims.len() > MAX_CLAIMS {
        return Err(SetupError::InputUnexpected.into());
    }
    let claims: Vec<bls::Claim<'_>> = call
        .claims
        .iter()
        .map(|claim| bls::Claim {
            public_key: &claim.public_key,
            message: &claim.payload,
            signature: &claim.signature,
        })
        .collect();
    Ok(bls::verify_all(&claims, &mut os_rng()))
}
