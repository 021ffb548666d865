package io.coterie.signer.share;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * A share that may become active, or whose session still runs, and its parties' reports of it.
 * Confined to the lane of {@link KeyActivation}.
 */
final class ShareCandidate {
  final String key;

  /** Ids of the parties of the session, in the order in which they are told. */
  final Set<Integer> parties;

  /** The latest statement of each peer. */
  final Map<Integer, ShareAgreement.Report> reports = new HashMap<>();

  /** Peers that could be reached when they were last looked at. */
  final Set<Integer> reachable = new HashSet<>();

  /** When each peer was last told of the share. */
  final Map<Integer, Long> toldNanos = new HashMap<>();

  /** This party's own; null while the session runs. */
  @Nullable KeyShare own;

  /** Since when it has waited as it does now. */
  long sinceNanos;

  /** Whether the store is about to change what it is. */
  boolean changing;

  /** Whether a peer had to be asked for its report. */
  boolean asked;

  ShareCandidate(String key, Set<Integer> parties) {
    this.key = key;
    this.parties = Collections.unmodifiableSet(new TreeSet<>(parties));
  }

  /** Whether a peer has signed that it has stored what belongs to the own share. */
  boolean hasFrom(int party) {
    ShareAgreement.Report report = reports.get(party);
    return own != null && report != null && report.isOf(own);
  }

  /**
   * Whether a peer may say that it has no share of the session: it counts while this party's own
   * one is provisional and may be abandoned.
   */
  boolean mayBeDeclined(int party) {
    return own != null
        && own.state() == KeyShare.State.PROVISIONAL
        && own.epoch() > 1
        && !changing
        && parties.contains(party);
  }
}
