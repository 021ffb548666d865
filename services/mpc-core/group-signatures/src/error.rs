//! Why a group's public data, or its opener's key, are refused.

use core::fmt;

use engine::PartyId;
use engine::wire::Malformed;

/// Why an opener's key is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenerError {
    /// There is not one point for each opener.
    Members,
    /// The points are not shares of one key for the threshold, or a point or the key is the identity.
    Sharing,
    /// This opener's share has another point.
    WrongShare(PartyId),
    /// This opener has not signed the key for this group and epoch.
    NotAttested(PartyId),
}

impl fmt::Display for OpenerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenerError::Members => f.write_str("there is not one point for each opener"),
            OpenerError::Sharing => f.write_str("the openers' points are not shares of one key"),
            OpenerError::WrongShare(party) => write!(f, "the share of opener {party} has another point"),
            OpenerError::NotAttested(party) => write!(f, "opener {party} has not signed the opener's key"),
        }
    }
}

impl std::error::Error for OpenerError {}

/// Why a group's public data are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupError {
    /// The encoding is wrong, or an element is the identity or outside its subgroup.
    Malformed,
    /// The name is empty or too long, or the epoch is 0.
    Name,
    /// The opener's key is not that of the configured openers.
    Opener(OpenerError),
    /// The issuing key's two points have different logarithms.
    DifferentKeys,
    /// The maker of the group does not prove that it knows the issuing key.
    Proof,
    /// It is not a later epoch of the same group.
    NotLater,
    /// The issuing key is that of an earlier epoch, so that its members would be members of both.
    KeyOfEarlierEpoch,
}

impl From<Malformed> for GroupError {
    fn from(_: Malformed) -> Self {
        GroupError::Malformed
    }
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            GroupError::Malformed => "the group's public data are malformed",
            GroupError::Name => "the group's name is empty or too long, or its epoch is 0",
            GroupError::Opener(error) => return error.fmt(f),
            GroupError::DifferentKeys => "the points of the issuing key do not belong together",
            GroupError::Proof => "the proof of the issuing key does not verify",
            GroupError::NotLater => "the data are not those of a later epoch of the group",
            GroupError::KeyOfEarlierEpoch => "the issuing key was that of an earlier epoch",
        };
        f.write_str(text)
    }
}

impl std::error::Error for GroupError {}

impl From<OpenerError> for GroupError {
    fn from(error: OpenerError) -> Self {
        GroupError::Opener(error)
    }
}
