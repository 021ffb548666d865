package io.coterie.signer.claim;

import com.google.protobuf.ByteString;
import io.coterie.platform.audit.AuditEvent;
import io.coterie.platform.ledger.LedgerPosition;
import io.coterie.platform.protocol.SessionId;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** A claim ledger in memory: it grants claims at once, or when the test says so. */
public class MemoryLedger implements ClaimLedger {
  private static final LedgerPosition FIRST =
      LedgerPosition.NONE.next(new byte[LedgerPosition.HASH_BYTES]);

  /** The account of a coordinator. */
  public static final String COORDINATOR = DiskShares.ofCoordinator("coordinator");

  /** While set, claims wait in {@link #waiting} and change nothing here. */
  public volatile boolean held;

  public final List<CompletableFuture<Outcome>> waiting = new CopyOnWriteArrayList<>();
  public final List<AuditEvent> accepted = new CopyOnWriteArrayList<>();
  public final Set<SessionId> sessions = ConcurrentHashMap.newKeySet();
  public final Set<SessionId> declined = ConcurrentHashMap.newKeySet();
  public final Map<SessionId, Multiplication> multiplications = new ConcurrentHashMap<>();

  /** Requests with an id before it may be forgotten; empty: none is. */
  public volatile String fence = "";

  /** Bytes that are free on the disk, in the ledger's file, and not to be taken: the test says. */
  public volatile long diskBytes = Long.MAX_VALUE / 4;

  public volatile long fileBytes;
  public volatile long minFreeBytes;

  /** By account. */
  public final Map<String, Long> kept = new ConcurrentHashMap<>();

  /** Bytes that a claim is taken to leave, beside its intent. */
  public static final long ROWS = 1_000;

  private final Map<Request, ByteString> digests = new HashMap<>();
  private final Map<Request, Binding> bound = new HashMap<>();

  /** The last position of each start, the current one last. */
  private final List<LedgerPosition> starts = new ArrayList<>(List.of(FIRST));

  private final Set<Request> never = new HashSet<>();

  private record Request(String requester, String id) {
    static Request of(Binding binding) {
      return new Request(binding.requester(), binding.requestId());
    }
  }

  /** As if the claim of the binding's session had been granted before. */
  public synchronized void bind(Binding binding) {
    bound.put(Request.of(binding), binding);
  }

  @Override
  public CompletionStage<Outcome> claimOnce(Claim claim, AuditEvent accepted) {
    this.accepted.add(accepted);
    CompletableFuture<Outcome> outcome = new CompletableFuture<>();
    if (held) {
      return waits(outcome, claim.session(), claim.multiplication());
    }
    outcome.complete(claim(claim));
    return outcome;
  }

  /** The test says how the claim ends; a session that is granted multiplies then. */
  private CompletionStage<Outcome> waits(
      CompletableFuture<Outcome> outcome,
      SessionId session,
      @Nullable Multiplication multiplication) {
    waiting.add(outcome);
    return outcome.thenApply(
        said -> {
          if (said == Outcome.CLAIMED) {
            countClaim();
            multiplies(session, multiplication);
          }
          return said;
        });
  }

  private synchronized Outcome claim(Claim claim) {
    Request request = new Request(claim.requester(), claim.requestId());
    if (never.contains(request)) {
      return Outcome.NEVER;
    }
    ByteString digest = digests.putIfAbsent(request, claim.intentDigest());
    if (digest != null && !digest.equals(claim.intentDigest())) {
      return Outcome.REQUEST_ID_REUSED;
    }
    @Nullable String account = digest == null ? claim.requester() : claim.again();
    if (account == null) {
      return Outcome.ORDERED_TOO_OFTEN;
    }
    kept.merge(account, digest == null ? claim.signedIntent().size() : 0L, Long::sum);
    if (!sessions.add(claim.session())) {
      return Outcome.SESSION_REPLAYED;
    }
    if (claim.binding() != null) {
      Binding before = bound.get(request);
      if (before != null && !before.session().equals(claim.instead())) {
        declined.add(claim.session());
        countClaim();
        return Outcome.REQUEST_BOUND;
      }
      bind(claim.binding());
    }
    kept.merge(account, ROWS, Long::sum);
    countClaim();
    multiplies(claim.session(), claim.multiplication());
    return Outcome.CLAIMED;
  }

  @Override
  public CompletionStage<Outcome> claimSession(
      SessionId session, String account, @Nullable Multiplication multiplication) {
    CompletableFuture<Outcome> outcome = new CompletableFuture<>();
    if (held) {
      return waits(outcome, session, multiplication);
    }
    if (sessions.add(session)) {
      // Nobody asked for the session, so saying that it is not run here stays possible.
      declined.add(session);
      kept.merge(account, ROWS, Long::sum);
      countClaim();
      multiplies(session, multiplication);
      outcome.complete(Outcome.CLAIMED);
    } else {
      outcome.complete(Outcome.SESSION_REPLAYED);
    }
    return outcome;
  }

  private void multiplies(SessionId session, @Nullable Multiplication multiplication) {
    if (multiplication != null) {
      multiplications.put(session, multiplication);
    }
  }

  /**
   * @throws AssertionError if the session does not multiply
   */
  /** Sessions whose contribution is not on disk any more. */
  public final Set<SessionId> withheld = ConcurrentHashMap.newKeySet();

  /** Withholding comes back when this is complete. */
  public volatile CompletableFuture<Void> withholding = CompletableFuture.completedFuture(null);

  @Override
  public CompletionStage<?> withhold(String requester, String requestId, SessionId session) {
    return withholding.thenRun(() -> withheld(new Request(requester, requestId), session));
  }

  private synchronized void withheld(Request request, SessionId session) {
    withheld.add(session);
    Binding binding = bound.get(request);
    if (binding != null && binding.session().equals(session) && !binding.envelope().isEmpty()) {
      bind(
          new Binding(
              binding.requester(),
              binding.requestId(),
              session,
              binding.order(),
              ByteString.EMPTY,
              binding.notAfter()));
      countClaim();
    }
  }

  @Override
  public boolean isFenced(String requestId) {
    return requestId.compareTo(fence) < 0;
  }

  @Override
  public void multiplied(SessionId session) {
    if (multiplications.remove(session) == null) {
      throw new AssertionError(session + " did not multiply");
    }
  }

  @Override
  public synchronized LedgerPosition position() {
    return starts.getLast();
  }

  @Override
  public boolean remembers(LedgerPosition position) {
    return knows(position);
  }

  /** Positions of earlier logs that it has forgotten. */
  public final Set<LedgerPosition> lost = ConcurrentHashMap.newKeySet();

  @Override
  public boolean recalls(LedgerPosition position) {
    return knows(position) && !lost.contains(position);
  }

  /** As if a session had been claimed. */
  public synchronized void countClaim() {
    starts.add(starts.removeLast().claimed(ByteString.EMPTY));
  }

  /** As if the ledger had been opened once more. */
  public synchronized void start(byte[] random) {
    starts.add(position().next(random));
  }

  /** As if the ledger had been at a position before its current start. */
  public synchronized void wasAt(LedgerPosition before) {
    starts.addFirst(before);
  }

  /** See {@link #remembers}; no test makes it fail. */
  synchronized boolean knows(LedgerPosition told) {
    return position().log().number() > told.log().number()
        || starts.stream()
            .anyMatch(
                start ->
                    start.mark().equals(told.mark())
                        && start.starts() == told.starts()
                        && start.claims() >= told.claims());
  }

  /** Goes on above a position that was forgotten. */
  synchronized void learn(LedgerPosition told) {
    byte[] random = new byte[LedgerPosition.HASH_BYTES];
    random[0] = (byte) starts.size();
    starts.add(position().reopened(told, random));
  }

  @Override
  public CompletionStage<Boolean> decline(
      SessionId session, String account, @Nullable String requestId) {
    boolean forgotten = requestId == null ? !fence.isEmpty() : requestId.compareTo(fence) < 0;
    if (!forgotten && sessions.add(session)) {
      declined.add(session);
      kept.merge(account, ROWS, Long::sum);
      countClaim();
    }
    return CompletableFuture.completedFuture(declined.contains(session));
  }

  @Override
  public synchronized CompletionStage<Never> never(
      String requester,
      String requestId,
      @Nullable SessionId over,
      ByteString cancellation,
      ByteString digest,
      AuditEvent said) {
    Never already = neverAlready(requester, requestId, over).orElse(null);
    if (already != null) {
      return CompletableFuture.completedFuture(already);
    }
    Request request = new Request(requester, requestId);
    never.add(request);
    bound.remove(request);
    accepted.add(said);
    countClaim();
    return CompletableFuture.completedFuture(new Never.Said(true));
  }

  @Override
  public synchronized Optional<Never> neverAlready(
      String requester, String requestId, @Nullable SessionId over) {
    Request request = new Request(requester, requestId);
    if (requestId.compareTo(fence) < 0) {
      return Optional.of(new Never.Forgotten());
    }
    if (never.contains(request)) {
      return Optional.of(new Never.Said(false));
    }
    ByteString claimedFor = digests.get(request);
    Binding binding = bound.get(request);
    boolean givesWay = binding != null && over != null && binding.session().equals(over);
    return claimedFor != null && !givesWay
        ? Optional.of(new Never.Claimed(claimedFor))
        : Optional.empty();
  }

  @Override
  public synchronized List<Binding> bindings(int limit) {
    return bound.values().stream()
        .sorted(Comparator.comparing(Binding::notAfter).reversed())
        .limit(limit)
        .toList()
        .reversed();
  }

  @Override
  public Room room() {
    return new Room(kept, diskBytes, fileBytes, minFreeBytes);
  }

  /** The counter outside; it comes back when this is complete. */
  public volatile CompletableFuture<Void> outside = CompletableFuture.completedFuture(null);

  /** How often it was to follow. */
  public final AtomicInteger noted = new AtomicInteger();

  @Override
  public void noteOutside() {
    noted.incrementAndGet();
    outside.join();
  }

  @Override
  public void forgetRequests(Duration running) {
    // It does not live as long as a request.
  }
}
