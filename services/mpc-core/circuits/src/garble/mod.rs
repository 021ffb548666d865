//! Two-party evaluation of programs by garbling, against parties that follow the protocol.
//!
//! | Step | From |
//! |---|---|
//! | half gates: two blocks of 16 bytes an AND, none an XOR | Zahur, Rosulek, Evans 2015 (eprint 2014/756), figure 1 |
//! | hash of labels: π(σ(x) ⊕ i) ⊕ σ(x) ⊕ i, fixed-key AES | Guo, Katz, Wang, Yu 2020 (eprint 2019/074), section 7.3 |
//! | the evaluator's labels by oblivious transfer | `primitives::ot`, which withstands malicious parties |
//!
//! Both parties compile the program and meet gate by gate: the garbler sends the tables of a batch of gates as soon as
//! it has them, and memory is bounded by the wires that are live.
//!
//! **Limits.** A garbler that deviates can garble another circuit, and an evaluator can lie about the result. So no key
//! may enter: [`Inputs`] is made of the plain bits of a party's own input and of nothing else, no type of the key
//! stores converts to it, and programs that touch keys are evaluated by another engine.

mod channel;
mod evaluator;
mod garbler;
mod hash;
mod transfer;

use sha2::{Digest, Sha256};

pub use channel::{Channel, Transport};
pub use evaluator::evaluate;
pub use garbler::garble;
pub(crate) use hash::SessionKey;

use crate::compile::{Interface, Port};
use crate::program::Program;

/// A party's own input to a program that holds no key.
#[derive(Clone, Debug)]
pub struct Inputs(Vec<bool>);

impl Inputs {
    /// The bits of an input, in the order of its type.
    #[must_use]
    pub fn new(bits: Vec<bool>) -> Inputs {
        Inputs(bits)
    }
}

/// Why a run failed.
#[derive(Debug)]
pub enum RunError {
    /// The connection broke.
    Channel(std::io::Error),
    /// The program does not compile, or does not take the input.
    Program(String),
    /// The peer sent what no honest party sends, or runs another program.
    Peer(&'static str),
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::Channel(e) => write!(f, "the connection to the peer broke: {e}"),
            RunError::Program(e) => f.write_str(e),
            RunError::Peer(e) => write!(f, "the peer {e}"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<std::io::Error> for RunError {
    fn from(e: std::io::Error) -> Self {
        RunError::Channel(e)
    }
}

/// The end of a run: the result, which both parties learn, and how much it took.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The output bits.
    pub outputs: Vec<bool>,
    /// Inputs, outputs and gates of the program.
    pub interface: Interface,
    /// Bytes that this party sent.
    pub sent: u64,
}

/// A digest of all that both parties must agree on: the program and the types of its inputs.
fn agreement(program: &Program, ports: &[Port]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"coterie/circuit-agreement/2");
    hash.update(program.digest());
    for port in ports {
        let ty = format!("{:?}", port.ty);
        hash.update((ty.len() as u64).to_be_bytes());
        hash.update(ty.as_bytes());
    }
    hash.finalize().into()
}

/// The digest of a session: the agreement and both parties' fresh words.
fn session(agreement: &[u8; 32], garbler: &[u8; 32], evaluator: &[u8; 32], tag: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [b"coterie/circuit-session/1".as_slice(), agreement, garbler, evaluator, tag] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
