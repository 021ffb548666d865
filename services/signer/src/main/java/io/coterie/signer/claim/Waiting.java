package io.coterie.signer.claim;

import io.coterie.trust.Member;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A session that waits until others remember its claim. */
final class Waiting {
  /** The others must remember so many. */
  final long claims;

  /** The other parties of the session. */
  final List<Integer> peers;

  /** The parties that hold a share of the key. */
  final List<Integer> holders;

  /** The coordinator that ordered the session. */
  final Member coordinator;

  final Runnable then;

  /** Since when it waits for those outside it alone. */
  @Nullable Long heldNanos;

  Waiting(
      long claims, List<Integer> peers, List<Integer> holders, Member coordinator, Runnable then) {
    this.claims = claims;
    this.peers = peers;
    this.holders = holders;
    this.coordinator = coordinator;
    this.then = then;
  }

  /**
   * The parties that are told of its claim at once: its peers and the holders of the key, of whom
   * one outside it is enough; everybody if none of these is waited for, or they are late. In a
   * large installation the others would have most of the work of a session, and decide nothing.
   *
   * @param outside the parties outside it of which it waits for one
   * @param reachable parties that can be reached
   */
  Set<Integer> toldAtOnce(Set<Integer> outside, Set<Integer> reachable, long nowNanos) {
    Set<Integer> told = new HashSet<>(peers);
    told.addAll(holders);
    boolean late = heldNanos != null && nowNanos - heldNanos > Witness.GRACE_NANOS;
    if (late || Collections.disjoint(outside, holders)) {
      told.addAll(reachable);
    }
    return told;
  }
}
