//! The rounds of a protocol: senders, recipients and sizes.

/// Round number of a notice: "I abort, for this reason, and here is why you should too". Accepted in every round.
pub const NOTICE_ROUND: u8 = 255;
/// Round number of a disclosure: "these two saw different broadcasts; here is what I saw". Accepted in every round.
pub const DISCLOSURE_ROUND: u8 = 254;

/// To all parties alike, or to one alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// One body for all.
    Broadcast,
    /// One body for one recipient, over a confidential channel.
    Private,
}

/// The form of the envelopes of one round. In a protocol with signed envelopes every party sends in every round: in a
/// round of broadcasts one to all, in a private round one to each peer.
#[derive(Clone, Copy, Debug)]
pub struct RoundRule {
    /// To all or to one.
    pub delivery: Delivery,
    /// Longest body, in bytes.
    pub max_body: usize,
}
