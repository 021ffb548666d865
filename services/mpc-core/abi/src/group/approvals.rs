//! Approvals: made by a member, counted by anybody, opened by enough openers.

use engine::SetupError;
use engine::seal::{SealKind, ShareLabel};
use group_signatures::{Approval, ApprovalError, Decision, MemberKey, OpeningShare, Request, count, open};
use threshold_issuer::OpenerShare;

use super::caller::{Caller, exactly, group};
use crate::group_parties::{contributions, party};
use crate::inputs::StartError;
use crate::os_rng::os_rng;
use crate::proto::group_call::{
    ApprovalDecision, ApprovalRequest, Approve, CombineOpening, CountApprovals, ShareOpening,
};
use crate::proto::group_reply::{ApprovalsCounted, Approved, Opened, OpeningShared};
use crate::refusal::Failure;

/// Most approvals of one call.
const MAX_APPROVALS: usize = 1024;

fn request(given: Option<&ApprovalRequest>) -> Result<Request, Failure> {
    let given = given.ok_or_else(|| Failure::malformed("the request"))?;
    let decision = match ApprovalDecision::try_from(given.decision) {
        Ok(ApprovalDecision::Approve) => Decision::Approve,
        Ok(ApprovalDecision::Reject) => Decision::Reject,
        Ok(ApprovalDecision::Unspecified) | Err(_) => return Err(Failure::malformed("the decision")),
    };
    Ok(Request { digest: exactly(&given.digest, "the request's digest")?, decision })
}

/// [S] the member.
pub(super) fn approve(caller: &Caller<'_>, call: &Approve) -> Result<Approved, Failure> {
    let group = group(call.group.as_ref())?;
    let public = group.group();
    let request = request(call.request.as_ref())?;
    let stored = caller.unseal(SealKind::Member, public.digest(), &call.sealed_member)?;
    let member = MemberKey::decode(public, stored.expose())?;
    // The key was decoded for this group.
    let approval = member.approve(public, &request, &mut os_rng()).ok_or(SetupError::InputUnexpected)?;
    Ok(Approved { approval: approval.encode().to_vec(), tag: approval.tag().0.to_vec() })
}

/// [V], [C] everybody.
pub(super) fn count_approvals(call: &CountApprovals) -> Result<ApprovalsCounted, Failure> {
    let group = group(call.group.as_ref())?;
    let request = request(call.request.as_ref())?;
    if call.approvals.len() > MAX_APPROVALS {
        return Err(Failure::malformed("the list of approvals"));
    }
    let decoded = call.approvals.iter().enumerate().map(|(place, bytes)| {
        Approval::decode(bytes).map_err(|error: ApprovalError| Failure::approval_at(place, error))
    });
    let approvals = decoded.collect::<Result<Vec<_>, _>>()?;
    let needed = usize::try_from(call.needed).unwrap_or(usize::MAX);
    let tags = count(group.group(), &request, &approvals, needed, &mut os_rng())?;
    Ok(ApprovalsCounted { tags: tags.into_iter().map(|tag| tag.0.to_vec()).collect() })
}

/// [O1] an opener.
pub(super) fn share_opening(caller: &Caller<'_>, call: &ShareOpening) -> Result<OpeningShared, Failure> {
    let group = group(call.group.as_ref())?;
    let request = request(call.request.as_ref())?;
    let approval = Approval::decode(&call.approval)?;
    let share = opener_share(caller, call)?.open(group.group(), &request, &approval, &mut os_rng())?;
    Ok(OpeningShared { share: share.encode() })
}

/// The opener's share. Its label is the one that it has: whether it is a share of the group's key shows in its point.
fn opener_share(caller: &Caller<'_>, call: &ShareOpening) -> Result<OpenerShare, Failure> {
    let me = party(call.party)?;
    if call.sealed_share.is_empty() {
        return Err(SetupError::ShareMissing.into());
    }
    let label = ShareLabel::peek(&call.sealed_share).map_err(|_| StartError::Unseal)?;
    if label.party != me {
        return Err(SetupError::ShareMismatch.into());
    }
    caller.labelled(&label, &call.sealed_share)
}

/// [O2], [O3] whoever asked for the opening.
pub(super) fn combine_opening(call: &CombineOpening) -> Result<Opened, Failure> {
    let group = group(call.group.as_ref())?;
    let request = request(call.request.as_ref())?;
    let approval = Approval::decode(&call.approval)?;
    let shares = contributions(&call.shares, "the share", OpeningShare::decode)?;
    let point = open(group.group(), &request, &approval, &shares)?;
    Ok(Opened { point: point.to_compressed().to_vec() })
}
