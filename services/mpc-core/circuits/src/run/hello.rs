//! The first message of both parties: the program that they are about to run, and the sizes of their inputs.
//!
//! It is the only message whose length its sender chooses; both know the lengths of all others from the circuit.

use std::io::{self, Read, Write};

use circuits::authenticated::Role;

use super::failure::Failure;

const TAG: &[u8; 24] = b"coterie/circuit-run/1\0\0\0";
/// Values of one party's input, at most.
pub const MAX_VALUES: usize = 1 << 12;
/// Bits of one party's input, at most: 2 MiB.
pub const MAX_INPUT: usize = 1 << 24;

/// The first message of each party.
#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    pub role: Role,
    /// A digest of the compiler: another one may make another circuit of the same program.
    pub compiler: [u8; 8],
    /// A digest of the program's texts.
    pub program: [u8; 32],
    /// Bits of each value of the sender's input. Its type fixes them, but where it leaves them open.
    pub sizes: Vec<usize>,
}

impl Hello {
    /// Sends it.
    pub fn say(&self, stream: &mut impl Write) -> io::Result<()> {
        let mut bytes = TAG.to_vec();
        bytes.push(u8::from(self.role == Role::Evaluator));
        bytes.extend_from_slice(&self.compiler);
        bytes.extend_from_slice(&self.program);
        for number in [self.sizes.len()].iter().chain(&self.sizes) {
            bytes.extend_from_slice(&u32::try_from(*number).unwrap_or(u32::MAX).to_be_bytes());
        }
        stream.write_all(&bytes)?;
        stream.flush()
    }

    /// Reads the peer's.
    pub fn hear(stream: &mut impl Read) -> Result<Hello, Failure> {
        let mut word = |length: usize| -> Result<Vec<u8>, Failure> {
            let mut bytes = vec![0u8; length];
            stream.read_exact(&mut bytes)?;
            Ok(bytes)
        };
        let malformed = || {
            Failure::Deviates(
                "the peer's first message cannot be read: ask what it runs, and use the same build".into(),
            )
        };
        if word(TAG.len())? != TAG {
            return Err(malformed());
        }
        let role = match word(1)?.as_slice() {
            [0] => Role::Garbler,
            [1] => Role::Evaluator,
            _ => return Err(malformed()),
        };
        let compiler = word(8)?.try_into().map_err(|_| malformed())?;
        let program = word(32)?.try_into().map_err(|_| malformed())?;
        let mut number = || -> Result<usize, Failure> {
            let bytes: [u8; 4] = word(4)?.try_into().map_err(|_| malformed())?;
            usize::try_from(u32::from_be_bytes(bytes)).map_err(|_| malformed())
        };
        let count = number()?;
        if count > MAX_VALUES {
            return Err(malformed());
        }
        let sizes = (0..count).map(|_| number()).collect::<Result<Vec<_>, _>>()?;
        if sizes.iter().try_fold(0usize, |sum, size| sum.checked_add(*size)).is_none_or(|sum| sum > MAX_INPUT)
        {
            return Err(Failure::Other("the peer's input has more than 2^24 bits: it must take less".into()));
        }
        Ok(Hello { role, compiler, program, sizes })
    }

    /// Whether both do the same, in different parts.
    pub fn agrees(&self, peer: &Hello) -> Result<(), Failure> {
        let short =
            |digest: &[u8]| -> String { digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect() };
        let other = |text: String| Err(Failure::Other(text));
        if self.compiler != peer.compiler {
            return other("the peer's command is of another build: install the same on both sides".into());
        }
        if self.program != peer.program {
            return other(format!(
                "the peer runs another program, {}, and this one is {}: give both the same files",
                short(&peer.program),
                short(&self.program)
            ));
        }
        if self.role == peer.role {
            return other(
                "both parties take the same part: one is --party garbler, the other --party evaluator".into(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello { role: Role::Evaluator, compiler: [3; 8], program: [7; 32], sizes: vec![0, 64, 1 << 20] }
    }

    fn bytes() -> Vec<u8> {
        let mut bytes = Vec::new();
        hello().say(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_was_said_is_heard() {
        assert_eq!(Hello::hear(&mut bytes().as_slice()).unwrap(), hello());
    }

    #[test]
    fn every_shorter_message_is_a_peer_that_went_away() {
        for length in 0..bytes().len() {
            let heard = Hello::hear(&mut &bytes()[..length]);
            assert!(matches!(heard, Err(Failure::Gone(_))), "{length}: {heard:?}");
        }
    }

    #[test]
    fn other_tags_roles_counts_and_sizes_are_refused() {
        let at = TAG.len();
        let count = at + 1 + 8 + 32;
        for (place, value) in [(0, b'C'), (at - 1, 1), (at, 2), (count, 1), (count + 4, 1), (count + 8, 0xff)]
        {
            let mut bytes = bytes();
            bytes[place] = value;
            // So many values as the count may claim.
            bytes.resize(1 << 17, 0);
            let heard = Hello::hear(&mut bytes.as_slice());
            assert!(matches!(heard, Err(Failure::Deviates(_) | Failure::Other(_))), "{place}: {heard:?}");
        }
    }

    #[test]
    fn a_difference_is_named() {
        let own = Hello { role: Role::Garbler, ..hello() };
        assert!(own.agrees(&hello()).is_ok());
        for (peer, word) in [
            (own.clone(), "same part"),
            (
                Hello { program: [8; 32], ..hello() },
                "another program, 0808080808080808, and this one is 0707",
            ),
            (Hello { compiler: [4; 8], ..hello() }, "another build"),
        ] {
            let Err(Failure::Other(text)) = own.agrees(&peer) else { panic!("{peer:?} agrees") };
            assert!(text.contains(word), "{text}");
        }
    }
}
