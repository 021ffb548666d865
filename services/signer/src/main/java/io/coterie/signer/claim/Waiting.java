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

  /** Since when parties without a share of the key are told of it, too. */
  private @Nullable Long othersNanos;

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
   * one outside it is enough; everybody if none of these is waited for, or they are slow. In a
   * large installation the others would have most of the work of a session, and decide nothing.
   *
   * @param outside the parties outside it of which it waits for one
   * @param reachable parties that can be reached
   */
  Set<Integer> toldAtOnce(Set<Integer> outside, Set<Integer> reachable, long nowNanos) {
    Set<Integer> told = new HashSet<>(peers);
    told.addAll(holders);
    boolean slow = heldNanos != null && nowNanos - heldNanos > Witness.SLOW_NANOS;
    if (othersNanos == null && (slow || Collections.disjoint(outside, holders))) {
      othersNanos = nowNanos;
    }
    if (othersNanos != null) {
      told.addAll(reachable);
    }
    return told;
  }

  /**
   * Since when it counts against a party that the session waits for it: not before those without a
   * share are told, among them one that can be reached only later.
   *
   * @param held {@link #heldNanos}
   * @param tellNanos when it is told if it was not so far
   */
  long waitsSince(int other, long held, long tellNanos) {
    if (holders.contains(other)) {
      return held;
    }
    Long told = othersNanos;
    if (told == null) {
      return tellNanos;
    }
    // The difference decides, because the clock may overflow.
    return told - held > 0 ? told : held;
  }
}
