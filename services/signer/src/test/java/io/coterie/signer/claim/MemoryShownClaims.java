package io.coterie.signer.claim;

import io.coterie.platform.ledger.LedgerHead;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.signer.share.KeyShareStore;
import io.coterie.signer.share.MemoryShares;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/** The memory of ledgers, in memory, beside the ledger and the shares that it is about. */
public final class MemoryShownClaims implements ShownClaims {
  /** The peers that were found to have gone back, as often as they were. */
  public final List<Integer> peersBack = new CopyOnWriteArrayList<>();

  /** The forgotten positions of this party that it was told of, as often as it was. */
  public final List<LedgerPosition> selfBack = new CopyOnWriteArrayList<>();

  /** The answer to a forgotten position, in place of one at once. */
  public volatile @Nullable CompletableFuture<List<String>> heldBack;

  private final Map<Integer, Shown> shown = new ConcurrentHashMap<>();
  private final MemoryLedger ledger;
  private final MemoryShares shares;

  /** Nothing was shown yet. */
  public MemoryShownClaims(MemoryLedger ledger, MemoryShares shares) {
    this.ledger = ledger;
    this.shares = shares;
  }

  @Override
  public List<Shown> shown() {
    return List.copyOf(shown.values());
  }

  @Override
  public CompletionStage<Boolean> show(Shown shown) {
    this.shown.put(shown.party(), shown);
    return CompletableFuture.completedFuture(true);
  }

  @Override
  public CompletionStage<List<String>> wentBack(int party) {
    peersBack.add(party);
    return CompletableFuture.completedFuture(shares.wentBack(party));
  }

  /** The times of heads of earlier logs that were forgotten. */
  public final List<java.time.Instant> earlier = new CopyOnWriteArrayList<>();

  @Override
  public CompletionStage<?> forgotten(LedgerHead head) {
    earlier.add(head.time());
    CompletableFuture<List<String>> answer = heldBack;
    return answer == null ? CompletableFuture.completedFuture(true) : answer;
  }

  @Override
  public CompletionStage<List<String>> wentBack(LedgerHead head) {
    LedgerPosition forgotten = head.position();
    selfBack.add(forgotten);
    CompletableFuture<List<String>> answer = heldBack;
    if (answer != null) {
      return answer;
    }
    if (ledger.knows(forgotten)) {
      return CompletableFuture.completedFuture(List.of());
    }
    ledger.learn(forgotten);
    return CompletableFuture.completedFuture(shares.wentBack(KeyShareStore.ITSELF));
  }
}
