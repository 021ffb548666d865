//! Calls about groups of anonymous approvers that need no session. Steps are cited as [U1]
//! (`docs/protocols/wbb.md`).
//!
//! A fault of bytes of others is a reply that says so; a code is for the caller's own arguments.

mod approvals;
mod caller;
mod keys;
mod registration;

use prost::Message;

use crate::inputs::StartError;
use crate::proto::group_call::{Call, GroupCall};
use crate::proto::group_reply::{GroupReply, Reply, RunDropped};
use crate::refusal::Failure;
use crate::vault::Vault;

use caller::{Caller, exactly};

/// Does one encoded call; returns the encoded reply.
pub fn call(vault: Option<&Vault>, sealed_identity: &[u8], call: &[u8]) -> Result<Vec<u8>, StartError> {
    let call = GroupCall::decode(call).map_err(|_| StartError::Undecodable)?;
    let caller = Caller { vault, sealed_identity };
    let reply = match done(&caller, call.call.ok_or(StartError::Undecodable)?) {
        Ok(reply) => reply,
        Err(Failure::Refused(refusal)) => Reply::GroupRefused(refusal),
        Err(Failure::Start(error)) => return Err(error),
    };
    Ok(GroupReply { reply: Some(reply) }.encode_to_vec())
}

fn done(caller: &Caller<'_>, call: Call) -> Result<Reply, Failure> {
    Ok(match call {
        Call::CreateOpenerKey(call) => Reply::OpenerKeyCreated(keys::create_opener_key(caller, &call)?),
        Call::AttestOpenersKey(call) => Reply::Attested(keys::attest_openers_key(caller, &call)?),
        Call::NameIssuingKey(call) => Reply::IssuingKeyNamed(keys::name_issuing_key(&call)?),
        Call::AttestGroup(call) => Reply::Attested(keys::attest_group(caller, &call)?),
        Call::AssembleGroup(call) => Reply::GroupChecked(keys::assemble_group(&call)?),
        Call::CheckGroup(call) => Reply::GroupChecked(keys::check_group(&call)?),
        Call::Apply(call) => Reply::Applied(registration::apply(caller, &call)?),
        Call::Reserve(call) => Reply::Reserved(registration::reserve(&call)?),
        Call::AnswerApplication(call) => {
            Reply::ApplicationAnswered(registration::answer_application(caller, &call)?)
        }
        Call::AcceptAnswers(call) => Reply::AnswersAccepted(registration::accept_answers(caller, &call)?),
        Call::RegisterMember(call) => Reply::MemberRegistered(registration::register_member(&call)?),
        Call::OrderRun(call) => Reply::RunOrdered(registration::order_run(caller, &call)?),
        Call::CountRun(call) => Reply::RunCounted(registration::count_run(caller, &call)?),
        Call::DropRun(call) => {
            caller.vault()?.runs.discard(&exactly(&call.session_id, "the session id")?);
            Reply::RunDropped(RunDropped {})
        }
        Call::Approve(call) => Reply::Approved(approvals::approve(caller, &call)?),
        Call::CountApprovals(call) => Reply::ApprovalsCounted(approvals::count_approvals(&call)?),
        Call::ShareOpening(call) => Reply::OpeningShared(approvals::share_opening(caller, &call)?),
        Call::CombineOpening(call) => Reply::Opened(approvals::combine_opening(&call)?),
        Call::CheckRegistration(call) => Reply::RegistrationChecked(registration::check_registration(&call)?),
    })
}
