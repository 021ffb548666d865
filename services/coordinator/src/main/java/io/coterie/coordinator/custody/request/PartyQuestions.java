package io.coterie.coordinator.custody.request;

import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.coordinator.session.ReplicaTime;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.limit.Rate;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

/**
 * Puts questions to parties for whoever asks, within bounds, and collects the first answer of each
 * party. Nothing of an answer is believed here. Thread-safe.
 *
 * @param <Q> the subject of a question, by which its answers are known; compared by value
 * @param <A> an answer
 */
public final class PartyQuestions<Q, A> {
  /**
   * How much is asked.
   *
   * @param patience how long parties are waited for
   * @param waiting questions that wait for their answers at once
   * @param waitingOfAsker the same of one asker, so that no asker takes the room of the others
   * @param burstOfAsker questions of one asker that are put at once
   * @param perSecondOfAsker and each second after that
   * @param burst all questions that are put at once, below the rate at which each party answers a
   *     coordinator: beyond it nobody would get an answer
   * @param perSecond and each second after that
   */
  public record Limits(
      Duration patience,
      int waiting,
      int waitingOfAsker,
      int burstOfAsker,
      int perSecondOfAsker,
      int burst,
      int perSecond) {}

  /**
   * One question: the parties that were asked, and the first answer of each. Compared by identity,
   * since its answers change while it waits.
   */
  private static final class Question<Q, A> {
    final String asker;
    final Q about;
    final Set<Integer> asked;
    final Map<Integer, A> answers = new ConcurrentSkipListMap<>();
    final AtomicInteger missing;

    /** Completes with the last answer. */
    final CompletableFuture<Void> answered = new CompletableFuture<>();

    Question(String asker, Q about, Set<Integer> asked) {
      this.asker = asker;
      this.about = about;
      this.asked = asked;
      this.missing = new AtomicInteger(asked.size());
    }
  }

  private final CoordinatorMetrics metrics;
  private final Limits limits;
  private final ReplicaTime time;
  private final LongSupplier nanoTime;
  private final Rate rate;

  /** By the name of the asker in this coordinator's configuration. */
  private final Map<String, Rate> ratesOfAskers = new HashMap<>();

  private final Set<Question<Q, A>> waiting = ConcurrentHashMap.newKeySet();

  /**
   * Nobody has been asked yet.
   *
   * @param time in which answers are waited for
   * @param nanoTime monotonic clock of the rates, ns
   */
  public PartyQuestions(
      CoordinatorMetrics metrics, Limits limits, ReplicaTime time, LongSupplier nanoTime) {
    this.metrics = metrics;
    this.limits = limits;
    this.time = time;
    this.nanoTime = nanoTime;
    this.rate = new Rate(limits.burst(), limits.perSecond(), nanoTime.getAsLong());
  }

  /**
   * Asks those of the parties that can be reached, and waits for them until the caller's deadline,
   * or for a fixed time at most.
   *
   * @param asker on whose behalf
   * @param about the answers name it
   * @param parties their ids
   * @return the answers by party, ascending; unchecked
   * @throws CustodyException if too many questions wait, or come
   */
  public Map<Integer, A> ask(
      SecureChannel channel,
      String asker,
      Q about,
      Collection<Integer> parties,
      PartyMessage message,
      Caller caller)
      throws InterruptedException {
    Set<Member> reachable = channel.reachable();
    List<Member> recipients =
        parties.stream()
            .flatMap(party -> channel.roster().byPartyId(party).stream())
            .filter(reachable::contains)
            .toList();
    Question<Q, A> question =
        new Question<>(
            asker,
            about,
            recipients.stream().map(Member::partyId).collect(Collectors.toUnmodifiableSet()));
    begin(question);
    try {
      if (!recipients.isEmpty()) {
        channel
            .broadcast(
                recipients, message.toByteArray(), SendOptions.online(caller.trace().traceparent()))
            .exceptionally(_ -> null);
        long patience = caller.deadlineNanos() - time.nanos();
        boolean _ = time.await(question.answered, Math.min(limits.patience().toNanos(), patience));
      }
    } finally {
      waiting.remove(question);
    }
    return new TreeMap<>(question.answers);
  }

  /** One after another, so that the bounds hold. */
  private synchronized void begin(Question<Q, A> question) {
    long ofAsker = waiting.stream().filter(q -> q.asker.equals(question.asker)).count();
    long now = nanoTime.getAsLong();
    Rate asker =
        ratesOfAskers.computeIfAbsent(
            question.asker, _ -> new Rate(limits.burstOfAsker(), limits.perSecondOfAsker(), now));
    if (waiting.size() >= limits.waiting()
        || ofAsker >= limits.waitingOfAsker()
        || !asker.take(now)
        || !rate.take(now)) {
      throw new CustodyException(ErrorReason.OVERLOADED);
    }
    waiting.add(question);
  }

  /** An answer came; one that nobody waits for is counted and ignored. */
  public void answered(Member party, Q about, A answer) {
    boolean wanted = false;
    for (Question<Q, A> question : waiting) {
      if (question.asked.contains(party.partyId())
          && question.about.equals(about)
          && question.answers.putIfAbsent(party.partyId(), answer) == null) {
        if (question.missing.decrementAndGet() == 0) {
          question.answered.complete(null);
        }
        wanted = true;
      }
    }
    if (!wanted) {
      metrics.dropped("unexpected");
    }
  }
}
