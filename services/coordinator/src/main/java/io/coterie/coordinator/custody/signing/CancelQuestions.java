package io.coterie.coordinator.custody.signing;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.coordinator.session.CancelListener;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.intent.VerifiedIntent;
import io.coterie.platform.limit.Rate;
import io.coterie.proto.party.v1.CancelAnswer;
import io.coterie.proto.party.v1.CancelQuestion;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.trust.Member;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

/**
 * Puts the cancellation of a request to parties and collects what they say. Nothing of it is
 * believed here. Thread-safe.
 */
public final class CancelQuestions implements CancelListener {
  /** How long parties are waited for. */
  public static final Duration WAIT = Duration.ofSeconds(3);

  /** Questions that wait for their answers at once. */
  static final int MAX_WAITING = 128;

  /** Cancellations of one requester that are put to the parties at once. */
  static final int BURST_OF_REQUESTER = 50;

  /** And each second after that. */
  static final int PER_SECOND_OF_REQUESTER = 10;

  /** All cancellations, below the rate at which each party answers a coordinator. */
  private static final int BURST = 150;

  private static final int PER_SECOND = 40;

  /** A receipt and a signature take less: larger answers are not kept until the question ends. */
  private static final int MAX_ANSWER_BYTES = 2048;

  /** One question: the parties that were asked, and the first message of each. */
  private record Question(
      ByteString intentDigest,
      Set<Integer> asked,
      Map<Integer, CancelAnswer> answers,
      CountDownLatch missing) {}

  private final PartyLink link;
  private final CoordinatorMetrics metrics;
  private final Duration wait;
  private final LongSupplier nanoTime;
  private final Rate rate;
  private final Map<String, Rate> ratesOfRequesters = new HashMap<>();
  private final Set<Question> waiting = ConcurrentHashMap.newKeySet();

  /**
   * Nobody has been asked yet.
   *
   * @param wait how long parties are waited for; {@link #WAIT} but in tests
   * @param nanoTime monotonic clock of the rates, ns
   */
  public CancelQuestions(
      PartyLink link, CoordinatorMetrics metrics, Duration wait, LongSupplier nanoTime) {
    this.link = link;
    this.metrics = metrics;
    this.wait = wait;
    this.nanoTime = nanoTime;
    this.rate = new Rate(BURST, PER_SECOND, nanoTime.getAsLong());
  }

  /**
   * Asks the parties of these ids that can be reached, and waits for them until the caller's
   * deadline, or for a fixed time at most.
   *
   * @return the answers by party; unchecked
   * @throws CustodyException if too many questions wait
   */
  Map<Integer, CancelAnswer> ask(
      VerifiedIntent.Cancellation intent, Set<Integer> holders, Caller caller)
      throws InterruptedException {
    SecureChannel channel = link.channel().orElse(null);
    if (channel == null) {
      return Map.of();
    }
    Set<Member> reachable = channel.reachable();
    List<Member> parties =
        holders.stream()
            .flatMap(party -> channel.roster().byPartyId(party).stream())
            .filter(reachable::contains)
            .toList();
    Question question =
        new Question(
            intent.digest(),
            parties.stream().map(Member::partyId).collect(Collectors.toUnmodifiableSet()),
            new ConcurrentSkipListMap<>(),
            new CountDownLatch(parties.size()));
    begin(question, intent.requester());
    try {
      if (!parties.isEmpty()) {
        channel
            .broadcast(parties, message(intent), SendOptions.online(caller.trace().traceparent()))
            .exceptionally(_ -> null);
      }
      long nanos = Math.min(wait.toNanos(), caller.deadlineNanos() - System.nanoTime());
      boolean _ = question.missing().await(nanos, TimeUnit.NANOSECONDS);
    } finally {
      waiting.remove(question);
    }
    return new TreeMap<>(question.answers());
  }

  private static byte[] message(VerifiedIntent.Cancellation intent) {
    return PartyMessage.newBuilder()
        .setCancelQuestion(CancelQuestion.newBuilder().setSignedIntent(intent.envelope()))
        .build()
        .toByteArray();
  }

  /** One after another, so that the bounds hold. */
  private synchronized void begin(Question question, String requester) {
    long now = nanoTime.getAsLong();
    Rate own =
        ratesOfRequesters.computeIfAbsent(
            requester, _ -> new Rate(BURST_OF_REQUESTER, PER_SECOND_OF_REQUESTER, now));
    if (waiting.size() >= MAX_WAITING || !own.take(now) || !rate.take(now)) {
      throw new CustodyException(ErrorReason.OVERLOADED);
    }
    waiting.add(question);
  }

  @Override
  public void cancelled(Member party, CancelAnswer answer) {
    boolean wanted = false;
    if (answer.getSerializedSize() <= MAX_ANSWER_BYTES) {
      for (Question question : waiting) {
        if (question.asked().contains(party.partyId())
            && question.intentDigest().equals(answer.getIntentDigest())
            && question.answers().putIfAbsent(party.partyId(), answer) == null) {
          question.missing().countDown();
          wanted = true;
        }
      }
    }
    if (!wanted) {
      metrics.dropped("unexpected");
    }
  }
}
