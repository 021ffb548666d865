//! Why a run ends without a result.

use std::fmt;

use crate::line::Irregular;

/// Why a run ended without a result. Where [`Abort::excludes_peer`] says so, the peer has deviated: the pair's set-up
/// must be destroyed, and the peer may have learnt what the page of the protocol says.
#[derive(Debug)]
pub enum Abort {
    /// The connection broke.
    Channel(std::io::Error),
    /// The circuit or the input is not one that this engine evaluates.
    Caller(&'static str),
    /// The peer runs another circuit, has another set-up, or speaks another version.
    Disagreement,
    /// A message is not an encoding of what belongs there.
    Malformed,
    /// The check of an oblivious transfer failed.
    Transfer,
    /// The check of AND triples failed.
    Triple,
    /// A commitment was opened to another value.
    Commitment,
    /// Bits were opened without their MACs.
    Opening,
    /// The evaluator named public bits whose labels it does not have.
    Label,
    /// A garbled table does not compute its gate.
    Table,
    /// The check of bits that are shared as scalars too failed.
    DaBit,
    /// The peer entered other bits than those that it fixed.
    Input,
    /// A point was opened without its MAC.
    Point,
    /// The peer's contribution to a signature does not fit its share of the key.
    Partial,
    /// The nonce point of this message differs from the recorded one.
    OtherNonce,
    /// The test that ends an import has another result than the importer's.
    Import,
    /// The record of nonces could not be read or written.
    Record(std::io::Error),
}

impl Abort {
    /// A stable number of the cause, for logs and metrics.
    #[must_use]
    pub fn number(&self) -> u32 {
        match self {
            Abort::Channel(_) => 1,
            Abort::Caller(_) => 2,
            Abort::Disagreement => 3,
            Abort::Malformed => 4,
            Abort::Transfer => 5,
            Abort::Triple => 6,
            Abort::Commitment => 7,
            Abort::Opening => 8,
            Abort::Label => 9,
            Abort::Table => 10,
            Abort::DaBit => 11,
            Abort::Input => 12,
            Abort::Point => 13,
            Abort::Partial => 14,
            Abort::OtherNonce => 15,
            Abort::Import => 16,
            Abort::Record(_) => 17,
        }
    }

    /// Whether nothing may be done with the peer again: it has shown that it does not follow the protocol.
    /// [`Abort::OtherNonce`] and [`Abort::Import`] may have another cause: the owner of the key gave wrong shares, or a
    /// record is wrong.
    #[must_use]
    pub fn excludes_peer(&self) -> bool {
        match self {
            Abort::Channel(_) | Abort::Caller(_) | Abort::Disagreement | Abort::Record(_) => false,
            Abort::Malformed
            | Abort::Transfer
            | Abort::Triple
            | Abort::Commitment
            | Abort::Opening
            | Abort::Label
            | Abort::Table
            | Abort::DaBit
            | Abort::Input
            | Abort::Point
            | Abort::Partial
            | Abort::OtherNonce
            | Abort::Import => true,
        }
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Abort::Channel(e) => write!(f, "the connection to the peer broke: {e}"),
            Abort::Caller(e) => f.write_str(e),
            Abort::Disagreement => f.write_str("the peer runs another circuit, or has another set-up"),
            Abort::Malformed => f.write_str("the peer sent a message that cannot be read"),
            Abort::Transfer => f.write_str("the peer failed the check of an oblivious transfer"),
            Abort::Triple => f.write_str("the peer failed the check of AND triples"),
            Abort::Commitment => f.write_str("the peer opened a commitment to another value"),
            Abort::Opening => f.write_str("the peer opened bits that are not its own"),
            Abort::Label => f.write_str("the peer named public bits whose labels it does not have"),
            Abort::Table => f.write_str("the peer garbled a gate wrongly"),
            Abort::DaBit => f.write_str("the peer failed the check of bits that are scalars too"),
            Abort::Input => f.write_str("the peer entered other bits than it had fixed"),
            Abort::Point => f.write_str("the peer opened a point that is not its own"),
            Abort::Partial => {
                f.write_str("the peer's part of the signature does not fit its share of the key")
            }
            Abort::OtherNonce => f.write_str("this message has another nonce than before"),
            Abort::Record(e) => write!(f, "the record of nonces failed: {e}"),
            Abort::Import => {
                f.write_str("the test that ends the import has another result than the importer's")
            }
        }
    }
}

impl std::error::Error for Abort {}

impl From<std::io::Error> for Abort {
    fn from(e: std::io::Error) -> Self {
        match e.get_ref().is_some_and(|cause| cause.is::<Irregular>()) {
            true => Abort::Malformed,
            false => Abort::Channel(e),
        }
    }
}
