package io.coterie.signer.config;

import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.proto.custody.v1.SignedIntent;
import io.coterie.proto.party.v1.RefusalReason;
import io.coterie.signer.order.PolicyGate;
import io.coterie.signer.order.RefusedException;
import java.io.File;
import java.nio.file.Path;
import java.util.Optional;

/**
 * The room on the party's disk. With too little of it no request is admitted, so that exclusions,
 * freezes and the operator's holds can still be written.
 */
final class Room implements PolicyGate {
  private static final long MEBIBYTE = 1 << 20;

  private final File folder;
  private final long minFree;
  private final PolicyGate policy;

  /**
   * @param minFree bytes
   * @param policy asked if there is room
   */
  Room(Path folder, long minFree, PolicyGate policy) {
    this.folder = folder.toFile();
    this.minFree = minFree;
    this.policy = policy;
  }

  /** Bytes that this process can still write; 0 if there is no folder yet. */
  long free() {
    return folder.getUsableSpace();
  }

  /** Bytes of the file system; 0 if there is no folder yet. */
  long total() {
    return folder.getTotalSpace();
  }

  /** One line that says what is missing; empty if nothing is. */
  Optional<String> problem() {
    long free = free();
    return free >= minFree || !folder.exists()
        ? Optional.empty()
        : Optional.of(
            "%s has %d MiB left, and %d are needed: enlarge the volume"
                .formatted(folder, free / MEBIBYTE, minFree / MEBIBYTE));
  }

  @Override
  public VerifiedIntent admit(SignedIntent intent) throws RefusedException {
    RefusedException.unless(
        problem().isEmpty(),
        RefusalReason.REFUSAL_REASON_NOT_READY,
        "this party's disk is nearly full");
    return policy.admit(intent);
  }

  @Override
  public boolean isStrict(String requester) {
    return policy.isStrict(requester);
  }
}
