package io.coterie.coordinator.custody.key;

import io.coterie.channel.SecureChannel;
import io.coterie.coordinator.custody.request.StoreUnavailableException;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

/** How far the keys are from not being able to sign. */
public final class QuorumMargin {
  /** How old what the database said may be: new keys are rare, readings of a gauge are not. */
  private static final Duration MAX_AGE = Duration.ofSeconds(10);

  private final KeyStore store;
  private final PartyLink link;
  private final LongSupplier nanoTime;
  private List<KeyStore.Quorums> quorums = List.of();
  private long readNanos;
  private boolean read;

  /**
   * @param nanoTime monotonic clock, ns
   */
  public QuorumMargin(KeyStore store, PartyLink link, LongSupplier nanoTime) {
    this.store = store;
    this.link = link;
    this.nanoTime = nanoTime;
  }

  /**
   * How many more parties may become unreachable before some active key cannot sign; negative if
   * there is one that cannot now. Not a number if there are no keys, or the database does not say.
   */
  public synchronized double parties() {
    long now = nanoTime.getAsLong();
    if (!read || now - readNanos > MAX_AGE.toNanos()) {
      try {
        quorums = store.quorums();
      } catch (StoreUnavailableException e) {
        return Double.NaN;
      }
      read = true;
      readNanos = now;
    }
    Set<Integer> reachable =
        link.channel().map(SecureChannel::reachable).orElse(Set.of()).stream()
            .map(Member::partyId)
            .collect(Collectors.toSet());
    return quorums.stream()
        .mapToDouble(
            key -> key.parties().stream().filter(reachable::contains).count() - key.threshold())
        .min()
        .orElse(Double.NaN);
  }
}
