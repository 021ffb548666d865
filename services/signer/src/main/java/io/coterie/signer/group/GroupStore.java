package io.coterie.signer.group;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionStage;

/**
 * The groups of this party, on its disk. Every stage completes once the disk has it, and fails if
 * the store did; then nothing has changed.
 */
public interface GroupStore {
  /**
   * Begins an epoch of a group for one request, for ever.
   *
   * @param begun without any result
   * @return false, and nothing is begun, if the party knows that epoch or a later one
   */
  CompletionStage<Boolean> begin(GroupRecord begun);

  /** The epoch of a group. */
  Optional<GroupRecord> find(String group, int epoch);

  /** The epochs of a group that all of its issuers have signed, ascending. */
  List<GroupRecord> attested(String group);

  /**
   * Keeps this party's share of the openers' key, once for an epoch.
   *
   * @return false, and nothing is kept, if there is one
   */
  CompletionStage<Boolean> keepOpening(
      String group, int epoch, GroupRecord.Share share, AuditEvent made);

  /** The same for the issuing key. */
  CompletionStage<Boolean> keepIssuing(
      String group, int epoch, GroupRecord.Share share, AuditEvent made);

  /** The same for the public data that this issuer signs. */
  CompletionStage<Boolean> keepPublished(
      String group, int epoch, ByteString published, AuditEvent made);

  /** The same for the group with the signatures of all issuers. */
  CompletionStage<Boolean> keepAttested(
      String group, int epoch, ByteString attested, AuditEvent made);
}
