//! Dealing shares: key generation, refresh and reshare of every scheme, generic over the curve and over what pairs of
//! parties set up beside their shares.
//!
//! Key generation is Pedersen's with Feldman commitments, committed before opened. Refresh is the same with polynomials
//! that are zero at zero, added to the shares there are. Reshare is the same with polynomials whose constant terms are
//! the dealers' contributions to the key, for whoever is to have a share.
//!
//! Specification: `docs/protocols/frost.md` and `docs/protocols/ecdsa.md`; steps are cited as [K1.2].

mod blame;
mod companion;
mod joint;
mod messages;
mod openings;
mod operations;
mod proof;
mod roles;
mod rounds;
mod scheme;
pub mod tags;
mod terms;

pub use crate::curve::{Curve, Polynomial, SCALAR_BYTES};
pub use companion::{CheckFailed, Companion, Setting};
pub use joint::Joint;
#[cfg(feature = "forge")]
pub use messages::forged_commitment;
pub use messages::{Commitment, Confirmation, Exchange, Opening, Share};
pub use operations::{Keygen, Refresh, Reshare};
pub use roles::Roles;
pub use rounds::Reshared;
pub use scheme::{Generated, Held, PointOf, Public, ScalarOf, Scheme};
pub use terms::ReshareTerms;

pub(crate) use crate::curve::lagrange;
pub(crate) use blame::{read, shown_by_both};
