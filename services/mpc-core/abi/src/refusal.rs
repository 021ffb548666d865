//! Refusals of calls about groups: one list of reasons for all that the libraries below say.

use core::fmt::Display;

use engine::{PartyId, SetupError};
use group_signatures::{
    ApprovalError, CountError, CredentialError, GroupError, OpenerError, OpeningError, RegistrationError,
};
use threshold_issuer::{AttestationError, PartError, RegisterError};

use crate::inputs::StartError;
use crate::proto::group_reply::{GroupRefusal, GroupRefused};

/// Why a call did not do it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The caller's arguments.
    Start(StartError),
    /// The data that the call is about.
    Refused(GroupRefused),
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Failure::Start(error)
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        Failure::Start(error.into())
    }
}

impl Failure {
    /// Bytes that are not what they should be.
    pub(crate) fn malformed(what: &str) -> Self {
        refused(GroupRefusal::Malformed, format!("{what} is malformed"))
    }

    /// The same, from this party.
    pub(crate) fn malformed_from(party: PartyId, what: &str) -> Self {
        of(party, GroupRefusal::Malformed, format!("{what} of party {party} is malformed"))
    }

    /// The vault can keep no further run.
    pub(crate) fn runs_full() -> Self {
        refused(GroupRefusal::RunsFull, "the vault has as many runs as it can have")
    }

    /// The approval at this place.
    pub(crate) fn approval_at(place: usize, error: ApprovalError) -> Self {
        CountError::Refused(place, error).into()
    }
}

fn refused(reason: GroupRefusal, detail: impl Display) -> Failure {
    Failure::Refused(GroupRefused {
        reason: reason.into(),
        detail: detail.to_string(),
        ..GroupRefused::default()
    })
}

fn of(party: PartyId, reason: GroupRefusal, detail: impl Display) -> Failure {
    Failure::Refused(GroupRefused {
        reason: reason.into(),
        party: party.get().into(),
        detail: detail.to_string(),
        ..GroupRefused::default()
    })
}

fn too_few(count: usize, detail: impl Display) -> Failure {
    Failure::Refused(GroupRefused {
        reason: GroupRefusal::TooFew.into(),
        count: u32::try_from(count).unwrap_or(u32::MAX),
        detail: detail.to_string(),
        ..GroupRefused::default()
    })
}

impl From<OpenerError> for Failure {
    fn from(error: OpenerError) -> Self {
        match error {
            OpenerError::Members => refused(GroupRefusal::Members, error),
            OpenerError::Sharing => refused(GroupRefusal::Sharing, error),
            OpenerError::WrongShare(party) => of(party, GroupRefusal::WrongShare, error),
            OpenerError::NotAttested(party) => of(party, GroupRefusal::NotAttested, error),
        }
    }
}

impl From<GroupError> for Failure {
    fn from(error: GroupError) -> Self {
        let reason = match error {
            GroupError::Malformed => GroupRefusal::Malformed,
            GroupError::Name => GroupRefusal::Name,
            GroupError::Opener(error) => return error.into(),
            GroupError::DifferentKeys => GroupRefusal::DifferentKeys,
            GroupError::Proof => GroupRefusal::Proof,
            GroupError::NotLater => GroupRefusal::NotLater,
            GroupError::KeyOfEarlierEpoch => GroupRefusal::KeyOfEarlierEpoch,
        };
        refused(reason, error)
    }
}

impl From<AttestationError> for Failure {
    fn from(error: AttestationError) -> Self {
        match error {
            AttestationError::Malformed => refused(GroupRefusal::Malformed, error),
            AttestationError::Group(error) => error.into(),
            AttestationError::Members => refused(GroupRefusal::Members, error),
            AttestationError::WrongThreshold => refused(GroupRefusal::WrongThreshold, error),
            AttestationError::OtherKey => refused(GroupRefusal::OtherKey, error),
            AttestationError::WrongShare(party) => of(party, GroupRefusal::WrongShare, error),
            AttestationError::NotAttested(party) => of(party, GroupRefusal::NotAttested, error),
        }
    }
}

impl From<RegistrationError> for Failure {
    fn from(error: RegistrationError) -> Self {
        let reason = match error {
            RegistrationError::Malformed => GroupRefusal::Malformed,
            RegistrationError::Identity => GroupRefusal::Identity,
            RegistrationError::Proof => GroupRefusal::Proof,
            RegistrationError::TicketBound => GroupRefusal::TicketBound,
            RegistrationError::IdentityTaken => GroupRefusal::IdentityTaken,
            RegistrationError::PointTaken => GroupRefusal::PointTaken,
            RegistrationError::GroupFull => GroupRefusal::GroupFull,
            RegistrationError::WrongAnswer => GroupRefusal::WrongAnswer,
            RegistrationError::NotAccepted => GroupRefusal::NotAccepted,
            RegistrationError::WrongRecord => GroupRefusal::WrongRecord,
            RegistrationError::AttemptsSpent => GroupRefusal::AttemptsSpent,
        };
        refused(reason, error)
    }
}

impl From<PartError> for Failure {
    fn from(error: PartError) -> Self {
        match error {
            PartError::NotAnIssuer(party) => of(party, GroupRefusal::NotAnIssuer, error),
            PartError::WrongShare(party) => of(party, GroupRefusal::WrongShare, error),
            PartError::Twice(party) => of(party, GroupRefusal::Twice, error),
            PartError::TooFew(count) => too_few(count, error),
            PartError::WrongIssuers => refused(GroupRefusal::OtherKey, error),
        }
    }
}

impl From<RegisterError> for Failure {
    fn from(error: RegisterError) -> Self {
        match error {
            RegisterError::Part(error) => error.into(),
            RegisterError::Registration(error) => error.into(),
        }
    }
}

impl From<ApprovalError> for Failure {
    fn from(error: ApprovalError) -> Self {
        refused(approval_reason(error), error)
    }
}

fn approval_reason(error: ApprovalError) -> GroupRefusal {
    match error {
        ApprovalError::Malformed => GroupRefusal::Malformed,
        ApprovalError::InvalidElement => GroupRefusal::InvalidElement,
        ApprovalError::WrongProof => GroupRefusal::WrongProof,
        ApprovalError::NotIssued => GroupRefusal::NotIssued,
        ApprovalError::CountedTwice => GroupRefusal::CountedTwice,
    }
}

impl From<CountError> for Failure {
    fn from(error: CountError) -> Self {
        match error {
            CountError::Refused(place, cause) => Failure::Refused(GroupRefused {
                reason: approval_reason(cause).into(),
                place: u32::try_from(place).ok(),
                detail: error.to_string(),
                ..GroupRefused::default()
            }),
            CountError::TooFew(count) => too_few(count, error),
        }
    }
}

impl From<OpeningError> for Failure {
    fn from(error: OpeningError) -> Self {
        match error {
            OpeningError::Approval(error) => error.into(),
            OpeningError::NotAnOpener(party) => of(party, GroupRefusal::NotAnOpener, error),
            OpeningError::WrongShare(party) => of(party, GroupRefusal::WrongShare, error),
            OpeningError::Twice(party) => of(party, GroupRefusal::Twice, error),
            OpeningError::TooFew(count) => too_few(count, error),
        }
    }
}

impl From<CredentialError> for Failure {
    fn from(error: CredentialError) -> Self {
        refused(GroupRefusal::Credential, error)
    }
}
