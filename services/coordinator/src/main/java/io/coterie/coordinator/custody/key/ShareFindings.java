package io.coterie.coordinator.custody.key;

import io.coterie.coordinator.custody.key.KeyRecord.Holder;
import io.coterie.coordinator.custody.request.Failure;
import io.coterie.coordinator.session.RefusalScope;
import io.coterie.coordinator.session.SessionOutcome;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.error.SessionFailures;
import io.coterie.proto.party.v1.RefusalReason;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Decides from the ends of the sessions for one piece of work whether a later session can succeed,
 * and who may deal in it. Does no I/O and reads no clock; confined to one thread.
 */
final class ShareFindings {
  private final ShareWork work;

  /** Dealers that said that they have no share to deal with. */
  private final Set<Integer> shareless = new HashSet<>();

  /** Culprits of earlier sessions. */
  private final Set<Integer> blamed = new HashSet<>();

  private boolean incomplete;

  /**
   * Findings before the first session of this process.
   *
   * @param orderedBefore whether an earlier process ordered a session of the work
   */
  ShareFindings(ShareWork work, boolean orderedBefore) {
    this.work = work;
    this.incomplete = !orderedBefore;
  }

  /**
   * Whether the work may fail now: no party can use its shares, because no session was ordered or a
   * party of the last one showed that it holds none. A new key may fail at any time.
   */
  boolean mayFail() {
    return incomplete || !work.replacesShares();
  }

  /** Whether a party of the last session showed that it holds no share of the work. */
  boolean isIncomplete() {
    return incomplete;
  }

  /** The dealers that have not said that they cannot deal. */
  Set<Integer> dealers() {
    Set<Integer> dealers = ids(work.dealers());
    dealers.removeAll(shareless);
    return dealers;
  }

  /**
   * Whether these dealers suffice: at least the old threshold deals, and fewer than that are left
   * behind with an old share. The parties insist on it. True if the work is no reshare.
   */
  boolean canDeal(Set<Integer> dealing) {
    if (!(work.change() instanceof ShareWork.Reshare reshare)) {
      return true;
    }
    Set<Integer> leftBehind = ids(work.dealers());
    leftBehind.removeAll(dealing);
    leftBehind.removeAll(ids(work.parties()));
    int threshold = reshare.from().getThreshold();
    return dealing.size() >= threshold && leftBehind.size() < threshold;
  }

  /**
   * Takes in the end of a session that made no shares.
   *
   * @param failure why it made none
   * @param past whether the time of the work was over when the session ended
   * @return the failure of the work if no later session can succeed; null if one may
   */
  @Nullable Failure learn(SessionOutcome outcome, Failure failure, boolean past) {
    incomplete = showsMissingShare(outcome);
    return switch (outcome) {
      case SessionOutcome.Refused refused -> refused(refused, past);
      case SessionOutcome.Aborted aborted -> {
        if (!aborted.culprits().isEmpty()) {
          yield blamesForGood(aborted.culprits()) ? failure : null;
        }
        yield aborted.hopeless() ? failure.as(work.failure()) : null;
      }
      case SessionOutcome.Undecided _,
          SessionOutcome.TimedOut _,
          SessionOutcome.Unsent _,
          SessionOutcome.Stopped _,
          SessionOutcome.Created _ ->
          null;
      case SessionOutcome.Bound _ ->
          throw new IllegalStateException("a key generation session answered for a signature");
      case SessionOutcome.Signed _ ->
          throw new IllegalStateException("a key generation session made a signature");
      case SessionOutcome.Presigned _ ->
          throw new IllegalStateException("a key generation session made a presignature");
    };
  }

  /**
   * Whether a party without a share took part. A party that holds one would have said so, and no
   * share is used before all parties hold theirs.
   */
  private static boolean showsMissingShare(SessionOutcome outcome) {
    return switch (outcome) {
      case SessionOutcome.Refused refused ->
          refused.by().values().stream().anyMatch(RefusalScope::showsMissingShare);
      case SessionOutcome.Aborted _ -> true;
      case SessionOutcome.Undecided undecided -> !undecided.without().isEmpty();
      case SessionOutcome.TimedOut timedOut -> timedOut.round() > 0;
      default -> false;
    };
  }

  private @Nullable Failure refused(SessionOutcome.Refused refused, boolean past) {
    for (Map.Entry<Integer, RefusalReason> refusal : refused.by().entrySet()) {
      int party = refusal.getKey();
      RefusalReason reason = refusal.getValue();
      RefusalScope scope = RefusalScope.of(reason);
      // Parties report an expired intent also when an order reached them too late.
      boolean late = reason == RefusalReason.REFUSAL_REASON_INTENT_EXPIRED && !past;
      if (isDispensable(party, reason)) {
        shareless.add(party);
      } else if (scope != RefusalScope.PARTY && !late && RefusalScope.showsMissingShare(reason)) {
        return Failure.parties(
                scope == RefusalScope.EPOCH
                    ? ErrorReason.EPOCH_MISMATCH
                    : SessionFailures.reason(reason),
                work.key(),
                names(List.of(party)),
                0,
                reason.name())
            .detailed(refused.detail(party));
      }
    }
    return null;
  }

  /** Whether a party cannot deal, for want of a share of that epoch, and the others can without. */
  private boolean isDispensable(int party, RefusalReason reason) {
    Set<Integer> rest = dealers();
    return (reason == RefusalReason.REFUSAL_REASON_UNKNOWN_KEY
            || reason == RefusalReason.REFUSAL_REASON_WRONG_EPOCH)
        && rest.remove(party)
        && canDeal(rest);
  }

  /**
   * Whether one of the culprits ends the work. In a renewal it must be blamed twice: while parties
   * switch, an honest one may deal with a share that fits no other.
   */
  private boolean blamesForGood(Set<Integer> culprits) {
    boolean again = culprits.stream().anyMatch(blamed::contains);
    blamed.addAll(culprits);
    return again || !work.replacesShares();
  }

  private Collection<String> names(Collection<Integer> partyIds) {
    Map<Integer, String> names = new HashMap<>();
    work.dealers().forEach(holder -> names.put(holder.partyId(), holder.name()));
    work.parties().forEach(holder -> names.put(holder.partyId(), holder.name()));
    return partyIds.stream().map(names::get).toList();
  }

  private static Set<Integer> ids(List<Holder> holders) {
    return holders.stream().map(Holder::partyId).collect(Collectors.toCollection(HashSet::new));
  }
}
