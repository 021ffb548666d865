//! A group's name and epoch.

use crate::error::GroupError;

/// Longest name of a group, in bytes.
pub const MAX_GROUP_BYTES: usize = 128;

/// A group's name with its epoch, from 1: a new one has a new issuing key, and the members join again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupId {
    name: String,
    epoch: u32,
}

impl GroupId {
    /// Refused unless the name has 1 to [`MAX_GROUP_BYTES`] bytes and the epoch is above 0.
    pub fn new(name: &str, epoch: u32) -> Result<Self, GroupError> {
        if name.is_empty() || name.len() > MAX_GROUP_BYTES || epoch == 0 {
            return Err(GroupError::Name);
        }
        Ok(Self { name: name.to_owned(), epoch })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The epoch.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }
}
