package io.coterie.platform.error;

import io.grpc.Status;
import java.time.Duration;
import java.util.Optional;

/**
 * Why a call failed. The name is part of the API: it is the {@code reason} of {@code
 * google.rpc.ErrorInfo} and the value of metric labels, and it never changes its meaning. {@code
 * docs/reference/errors.md} is generated from this list.
 */
public enum ErrorReason {
  REQUEST_ID_REUSED(
      Status.Code.ALREADY_EXISTS,
      "the request id was used before with another intent",
      "The first one may be signed: send the same intent bytes again, or cancel the request, and sign"
          + " its payload under no other id before NOT_SIGNED. Another payload takes a new id."),
  INTENT_MALFORMED(
      Status.Code.INVALID_ARGUMENT,
      "the signed intent is not well-formed",
      "Correct the field that the metadata key problem names, and sign the intent again."),
  INTENT_EXPIRED(
      Status.Code.FAILED_PRECONDITION,
      "the intent's not_after has passed",
      "It may have been signed before: cancel the request. After NOT_SIGNED, sign a new intent with a"
          + " later not_after and a new request id; check the clocks."),
  INTENT_SIGNATURE_INVALID(
      Status.Code.UNAUTHENTICATED,
      "the signature does not belong to this intent and requester",
      "Sign PAE(payload_type, payload) with the private key of the public key that is configured"
          + " for this requester."),
  UNKNOWN_REQUESTER(
      Status.Code.PERMISSION_DENIED,
      "no such requester is configured here",
      "Check keyid; each service has requesters in its configuration, and parties believe those of"
          + " the trust file alone."),
  FORBIDDEN(
      Status.Code.PERMISSION_DENIED,
      "the requester may not do this",
      "Ask the operators of the parties to allow the operation, scheme or key to this requester."),
  CLIENT_NOT_ALLOWED(
      Status.Code.PERMISSION_DENIED,
      "the client certificate may not use this method",
      "Use a client certificate that the coordinator's configuration allows for this requester."),
  RESOURCE_NAME_INVALID(
      Status.Code.INVALID_ARGUMENT,
      "the resource name is not well-formed",
      "Keys are keys/{key}, signings are keys/{key}/signings/{signing}, groups are"
          + " groups/{group}/epochs/{epoch}."),
  CHALLENGE_INVALID(
      Status.Code.INVALID_ARGUMENT,
      "the challenge does not have 32 bytes",
      "Draw 32 random bytes for each call, or leave the challenge out."),
  KEY_NOT_FOUND(Status.Code.NOT_FOUND, "there is no such key", "List the keys; check the name."),
  KEY_EXISTS(
      Status.Code.ALREADY_EXISTS,
      "a key of that name exists",
      "For a new key choose another name, or repeat the original request to get the existing one."
          + " A reshare goes to no party that holds another key of the name: leave it out."),
  KEY_NOT_ACTIVE(
      Status.Code.FAILED_PRECONDITION,
      "the key is not active",
      "Wait until its creation has finished, or create it again if that failed."),
  KEY_FROZEN(
      Status.Code.FAILED_PRECONDITION,
      "a party has frozen the key",
      "The party could not store an exclusion from it. Its operator mends the disk and lifts the"
          + " freeze; the runbook of the alert CoterieKeyFrozen says how."),
  ON_HOLD(
      Status.Code.FAILED_PRECONDITION,
      "parties hold the key, the requester, or everything",
      "Ask the operators of the parties why. Cancel the request: after NOT_SIGNED, sign a new intent"
          + " with a new request id once they have lifted the hold."),
  KEY_NEEDS_REFRESH(
      Status.Code.FAILED_PRECONDITION,
      "a party's store went back to an earlier state",
      "Refresh the key, or reshare it to the same parties if the party's share is of an older"
          + " epoch."),
  REQUEST_FENCED(
      Status.Code.FAILED_PRECONDITION,
      "parties may have forgotten what they did for this request",
      "Their stores went back to an earlier state after the request id was drawn, and it may be"
          + " signed: look at the chain. A new intent has a new request id and excludes the first"
          + " one on the chain (same nonce or input)."),
  KEY_RESHARED(
      Status.Code.FAILED_PRECONDITION,
      "the key was reshared since, or the intent names a reshare that is not known",
      "Get the key, and cancel the request with the reshare_epoch of its own intent: once enough of"
          + " the parties of that time say that they never sign it, sign a new intent that names the"
          + " present one."),
  REQUEST_CANCELLED(
      Status.Code.FAILED_PRECONDITION,
      "the requester has cancelled the request",
      "Cancel it again to get the receipts of the parties. Sign a new intent with a new request id"
          + " only after NOT_SIGNED."),
  END_UNKNOWN(
      Status.Code.ABORTED,
      "the parties have not shown how the request ended",
      "Repeat Sign with the same intent, which gets the signature if there is one, or cancel again"
          + " when the named parties answer. Ask for the payload under no other id, unless the two"
          + " exclude each other on the chain (same nonce or input)."),
  KEY_CREATION_FAILED(
      Status.Code.ABORTED,
      "key generation ended without a key",
      "Look at the metadata, then try again under another name: if the coordinator lies, the first"
          + " key exists, and could be shown in place of the second."),
  GROUP_NOT_FOUND(
      Status.Code.NOT_FOUND, "there is no such group", "List the groups; check name and epoch."),
  GROUP_EXISTS(
      Status.Code.ALREADY_EXISTS,
      "the group has this epoch or a later one, or parties have begun to make it",
      "An epoch is made once. Repeat the original request to get it, or ask for a later epoch."),
  GROUP_CREATION_FAILED(
      Status.Code.ABORTED,
      "the group was not made",
      "Look at the metadata, then ask for the next epoch with a new request id: parties may have"
          + " signed for this one, and sign no other."),
  TICKET_BOUND(
      Status.Code.FAILED_PRECONDITION,
      "the ticket is bound to another application, or its identity has another ticket",
      "Join with the file that applied first. If it is lost, the identity has to wait for the next"
          + " epoch of the group."),
  TICKET_SPENT(
      Status.Code.FAILED_PRECONDITION,
      "the ticket has paid for as many joins as it can, or the group is full",
      "Ask the requester for a ticket of the next epoch; if joins keep failing, look at the parties"
          + " first."),
  APPLICANT_INVALID(
      Status.Code.INVALID_ARGUMENT,
      "the application is not that of the ticket's identity",
      "Apply with the member's file that the ticket was made for."),
  APPROVAL_INVALID(
      Status.Code.INVALID_ARGUMENT,
      "the approval does not hold for the request",
      "Openers open approvals that hold, and no others: check group, epoch, request and decision."),
  APPROVALS_MISSING(
      Status.Code.FAILED_PRECONDITION,
      "too few members of the group of approvers approve the request",
      "The detail says which approval does not count, or how many it takes. Send the same intent with"
          + " approvals that hold: while it has not expired, the request is worked on again."),
  GROUP_STEP_FAILED(
      Status.Code.ABORTED,
      "too few parties have taken a step about the group",
      "Look at the metadata, then repeat the step: the same request gets the same answers."),
  EPOCH_MISMATCH(
      Status.Code.FAILED_PRECONDITION,
      "the key's shares are of another epoch",
      "Get the key. If it still needs new shares, sign an intent that names its epoch, with a new"
          + " request id."),
  REFRESH_RUNNING(
      Status.Code.ABORTED,
      "another refresh or reshare of the key is running",
      "Wait until it has ended, repeat the request that started it, or cancel it."),
  REFRESH_FAILED(
      Status.Code.ABORTED,
      "the refresh ended without new shares",
      "The key is as it was. Look at the metadata, then try again with a new request id."),
  RESHARE_FAILED(
      Status.Code.ABORTED,
      "the reshare ended without new shares",
      "The key is as it was. Look at the metadata, then try again with a new request id."),
  OPERATION_CANCELLED(
      Status.Code.ABORTED,
      "the refresh or reshare was cancelled",
      "The key is as it was. Ask again with a new request id if it still needs new shares."),
  OPERATION_NOT_RUNNING(
      Status.Code.FAILED_PRECONDITION,
      "no refresh or reshare of the key is running under that request id",
      "Get the key: its epoch says whether it has new shares."),
  OPERATION_DECIDED(
      Status.Code.FAILED_PRECONDITION,
      "the parties use the new shares already",
      "Nothing can be cancelled any more. Another refresh or reshare may follow."),
  PAYLOAD_INVALID(
      Status.Code.INVALID_ARGUMENT,
      "the payload is malformed, cannot be read, or may not be signed with this key",
      "Correct the field that the metadata key problem names. Cancel the request before you sign a"
          + " new intent, unless the two exclude each other on the chain."),
  SIGNING_NOT_FOUND(
      Status.Code.NOT_FOUND,
      "there is no such signing",
      "Use the name that Sign returned, or repeat Sign with the same intent."),
  UNSUPPORTED_SCHEME(
      Status.Code.INVALID_ARGUMENT,
      "the scheme is unknown or does not fit the key",
      "Use the scheme of the key."),
  THRESHOLD_INVALID(
      Status.Code.INVALID_ARGUMENT,
      "the threshold is below 1 (new BLS keys) or 2 (other schemes, refresh, reshare), or above the"
          + " number of parties",
      "Choose at most 20 parties and at most as high a threshold; at least 1 for a new BLS key,"
          + " else 2."),
  PARTY_UNKNOWN(
      Status.Code.FAILED_PRECONDITION,
      "a party is not in the roster",
      "Use the names of the roster's parties; the metadata key party says which one is unknown."),
  QUORUM_UNAVAILABLE(
      Status.Code.UNAVAILABLE,
      "fewer parties than the threshold can be reached",
      "Retry with the same intent; if it lasts, look at the signers' readiness."),
  PARTY_MISBEHAVED(
      Status.Code.ABORTED,
      "a party was shown to have deviated from the protocol",
      "The metadata names party, round and cause. Treat that party as compromised until its"
          + " operator has explained it."),
  PARTY_UNRESPONSIVE(
      Status.Code.UNAVAILABLE,
      "a party did not answer in time",
      "Retry with the same intent; the metadata names party and round."),
  SESSION_FAILED(
      Status.Code.ABORTED,
      "the protocol ended without a result and nobody can be blamed",
      "Retry with the same intent; the metadata names round and cause."),
  DEADLINE_TOO_SHORT(
      Status.Code.DEADLINE_EXCEEDED,
      "the call's deadline leaves no time for a session",
      "Call with a longer deadline."),
  PAGE_TOKEN_INVALID(
      Status.Code.INVALID_ARGUMENT,
      "the page token is not one of this list",
      "Start again without a page token."),
  PAGE_SIZE_INVALID(
      Status.Code.INVALID_ARGUMENT,
      "the page size is negative",
      "Leave it out for the default, or give the most elements you want."),
  REQUEST_TOO_LARGE(
      Status.Code.INVALID_ARGUMENT,
      "the request is larger than allowed",
      "A message or another payload has at most 64 KiB and a signed intent at most 128 KiB."),
  OVERLOADED(
      Status.Code.RESOURCE_EXHAUSTED,
      "too many requests are in flight",
      "Retry with the same intent after a pause that grows."),
  REQUESTER_OVERLOADED(
      Status.Code.RESOURCE_EXHAUSTED,
      "too many requests of this requester are in flight",
      "Wait for the ends of earlier requests, then retry with the same intent. Others have places"
          + " that this requester does not get."),
  DRAINING(
      Status.Code.UNAVAILABLE,
      "the service is stopping",
      "Retry with the same intent; another replica or the next start will answer."),
  STORE_UNAVAILABLE(
      Status.Code.UNAVAILABLE,
      "the database cannot be reached",
      "Retry with the same intent; nothing is lost or signed twice."),
  PATH_UNKNOWN(
      Status.Code.NOT_FOUND,
      "the edge knows no such path",
      "Use a method and path of the annotations in proto/coterie/custody/v1."),
  REQUEST_MALFORMED(
      Status.Code.INVALID_ARGUMENT,
      "the edge cannot read the JSON or the parameters of the request",
      "Correct what the message names: bytes are base64, and parameters are those of the"
          + " annotations in proto/coterie/custody/v1."),
  COORDINATOR_UNREACHABLE(
      Status.Code.UNAVAILABLE,
      "the edge cannot reach a coordinator",
      "Retry with the same intent; if it lasts, look at the coordinators' readiness."),
  INTERNAL(
      Status.Code.INTERNAL,
      "a bug or a broken installation",
      "Nothing is known to be wrong with the request. Give the trace id to the operator.");

  /** The {@code domain} of every {@code google.rpc.ErrorInfo} of this system. */
  public static final String DOMAIN = "coterie.io";

  private final Status.Code code;
  private final String text;
  private final String advice;

  ErrorReason(Status.Code code, String text, String advice) {
    this.code = code;
    this.text = text;
    this.advice = advice;
  }

  /** The gRPC status that carries this reason. */
  public Status.Code code() {
    return code;
  }

  /** Whether its status is one after which clients ask again. */
  public boolean isTransient() {
    return switch (code) {
      case UNAVAILABLE, ABORTED, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED -> true;
      default -> false;
    };
  }

  /**
   * How long a client waits at least before it asks again: {@code google.rpc.RetryInfo} says so in
   * every answer with this reason.
   */
  public Optional<Duration> retryAfter() {
    return code == Status.Code.RESOURCE_EXHAUSTED
        ? Optional.of(Duration.ofSeconds(1))
        : Optional.empty();
  }

  /** One line for people, without values. */
  public String text() {
    return text;
  }

  /** The advice to the caller or the operator. */
  public String advice() {
    return advice;
  }
}
