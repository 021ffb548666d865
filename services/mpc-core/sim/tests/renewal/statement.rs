//! Signed statements of parties that they have stored their end of a session.

use std::rc::Rc;

use crate::scheme::Name;

/// A party's evidence key: the only way to a [`Signed`] of that party.
pub struct Pen(u32);

impl Pen {
    /// Each party is given its own, once.
    pub fn of(party: u32) -> Self {
        Self(party)
    }

    pub fn signs(&self, statement: &Statement) -> Signed {
        Signed { signer: self.0, statement: statement.clone() }
    }
}

/// Without its party. The name of the key is always the same here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    pub session: Name,
    pub epoch: u32,
    /// The exact bytes of the key's public data.
    pub public: Rc<Vec<u8>>,
}

/// Anybody may show it again, and nobody else can make it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed {
    signer: u32,
    statement: Statement,
}

impl Signed {
    pub fn verifies(&self, signer: u32, statement: &Statement) -> bool {
        self.signer == signer && self.statement == *statement
    }
}

/// Of all parties of a session, in ascending order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate(pub Vec<Signed>);

impl Certificate {
    pub fn certifies(&self, statement: &Statement, members: &[u32]) -> bool {
        self.0.len() == members.len()
            && self.0.iter().zip(members).all(|(signed, member)| signed.verifies(*member, statement))
    }
}

/// "I have stored my end of it", perhaps with a certificate.
#[derive(Clone, Debug)]
pub struct Report {
    pub statement: Statement,
    pub signature: Signed,
    pub active: bool,
    pub certificate: Option<Certificate>,
    /// "Have you?" In the signer that is how long ago the other was told.
    pub asks: bool,
}
