package io.coterie.coordinator.custody.key;

import com.google.protobuf.ByteString;
import io.coterie.channel.SecureChannel;
import io.coterie.channel.SecureChannel.SendOptions;
import io.coterie.coordinator.custody.request.Caller;
import io.coterie.coordinator.session.EpochListener;
import io.coterie.coordinator.session.PartyLink;
import io.coterie.coordinator.telemetry.CoordinatorMetrics;
import io.coterie.platform.attestation.CurrentStatement;
import io.coterie.platform.error.CustodyException;
import io.coterie.platform.error.ErrorReason;
import io.coterie.platform.limit.Rate;
import io.coterie.platform.scheme.KeyFingerprint;
import io.coterie.proto.core.v1.KeyPublic;
import io.coterie.proto.custody.v1.EpochStatement;
import io.coterie.proto.party.v1.EpochAnswer;
import io.coterie.proto.party.v1.EpochQuestion;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.trust.Member;
import io.coterie.trust.Roster;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

/**
 * Asks the parties of a key, for a client, which epoch they use, and collects what they sign. The
 * answers are for the client: this coordinator only leaves out those that no client would believe.
 * Thread-safe.
 */
public final class EpochQuestions implements EpochListener {
  /** How long parties are waited for. */
  public static final Duration WAIT = Duration.ofSeconds(2);

  /** Questions that wait for their answers at once. */
  public static final int MAX_WAITING = 64;

  /** The same of one client, so that no client takes the room of the others. */
  public static final int MAX_WAITING_OF_CLIENT = 8;

  /** Questions of one client that are put to the parties at once, and each second after that. */
  public static final int BURST_OF_CLIENT = 16;

  public static final int PER_SECOND_OF_CLIENT = 4;

  /**
   * Questions of all clients, below the rate at which each party answers a coordinator: beyond it
   * nobody would get an answer.
   */
  public static final int BURST = 64;

  public static final int PER_SECOND = 16;

  /** A statement is smaller: larger ones are not kept until the question ends. */
  private static final int MAX_STATEMENT_BYTES = 256;

  /** One question: the parties that were asked, and the first message of each. */
  private static final class Question {
    final String client;
    final String key;
    final ByteString challenge;
    final Set<Integer> asked;
    final Map<Integer, EpochStatement> answers = new ConcurrentSkipListMap<>();
    final CountDownLatch missing;

    Question(String client, String key, ByteString challenge, Set<Integer> asked) {
      this.client = client;
      this.key = key;
      this.challenge = challenge;
      this.asked = asked;
      this.missing = new CountDownLatch(asked.size());
    }
  }

  private final PartyLink link;
  private final CoordinatorMetrics metrics;
  private final Duration wait;
  private final LongSupplier nanoTime;
  private final Rate rate;

  /** By the name of the client in this coordinator's configuration. */
  private final Map<String, Rate> ratesOfClients = new HashMap<>();

  private final Set<Question> waiting = ConcurrentHashMap.newKeySet();

  /**
   * Nobody has been asked yet.
   *
   * @param wait how long parties are waited for; {@link #WAIT} but in tests
   * @param nanoTime monotonic clock of the rates, ns
   */
  public EpochQuestions(
      PartyLink link, CoordinatorMetrics metrics, Duration wait, LongSupplier nanoTime) {
    this.link = link;
    this.metrics = metrics;
    this.wait = wait;
    this.nanoTime = nanoTime;
    this.rate = new Rate(BURST, PER_SECOND, nanoTime.getAsLong());
  }

  /**
   * Asks the parties of a key that can be reached, and waits for them until the caller's deadline,
   * or for a fixed time at most.
   *
   * @param client on whose behalf
   * @return the statements that verify, in ascending order of the parties; none if the key is not
   *     active
   * @throws CustodyException if the challenge is none, or too many questions wait
   */
  public List<EpochStatement> ask(String client, KeyRecord key, ByteString challenge, Caller caller)
      throws InterruptedException {
    if (challenge.size() != CurrentStatement.CHALLENGE_BYTES) {
      throw new CustodyException(ErrorReason.CHALLENGE_INVALID);
    }
    KeyPublic keyPublic = key.keyPublic();
    SecureChannel channel = link.channel().orElse(null);
    if (keyPublic == null || channel == null || caller.deadlineNanos() <= System.nanoTime()) {
      return List.of();
    }
    List<Member> parties = reachable(key, channel);
    Question question =
        new Question(
            client,
            key.name(),
            challenge,
            parties.stream().map(Member::partyId).collect(Collectors.toUnmodifiableSet()));
    begin(question);
    try {
      byte[] message =
          PartyMessage.newBuilder()
              .setEpochQuestion(
                  EpochQuestion.newBuilder().setKey(key.name()).setChallenge(challenge))
              .build()
              .toByteArray();
      if (!parties.isEmpty()) {
        channel
            .broadcast(parties, message, SendOptions.online(caller.trace().traceparent()))
            .exceptionally(_ -> null);
      }
      long nanos = Math.min(wait.toNanos(), caller.deadlineNanos() - System.nanoTime());
      boolean _ = question.missing.await(nanos, TimeUnit.NANOSECONDS);
    } finally {
      waiting.remove(question);
    }
    return believable(question, channel.roster(), KeyFingerprint.of(keyPublic));
  }

  private static List<Member> reachable(KeyRecord key, SecureChannel channel) {
    Set<Member> reachable = channel.reachable();
    return key.parties().stream()
        .flatMap(holder -> channel.roster().byPartyId(holder.partyId()).stream())
        .filter(reachable::contains)
        .toList();
  }

  /** One after another, so that the bounds hold. */
  private synchronized void begin(Question question) {
    long ofClient = waiting.stream().filter(q -> q.client.equals(question.client)).count();
    long now = nanoTime.getAsLong();
    Rate client =
        ratesOfClients.computeIfAbsent(
            question.client, _ -> new Rate(BURST_OF_CLIENT, PER_SECOND_OF_CLIENT, now));
    if (waiting.size() >= MAX_WAITING
        || ofClient >= MAX_WAITING_OF_CLIENT
        || !client.take(now)
        || !rate.take(now)) {
      throw new CustodyException(ErrorReason.OVERLOADED);
    }
    waiting.add(question);
  }

  @Override
  public void answered(Member party, EpochAnswer answer) {
    if (answer.getStatement().getSerializedSize() > MAX_STATEMENT_BYTES) {
      metrics.dropped("unexpected");
      return;
    }
    boolean wanted = false;
    for (Question question : waiting) {
      if (question.asked.contains(party.partyId())
          && question.challenge.equals(answer.getChallenge())
          && question.key.equals(answer.getKey())
          && question.answers.putIfAbsent(party.partyId(), answer.getStatement()) == null) {
        question.missing.countDown();
        wanted = true;
      }
    }
    if (!wanted) {
      metrics.dropped("unexpected");
    }
  }

  private List<EpochStatement> believable(
      Question question, Roster roster, ByteString fingerprint) {
    List<EpochStatement> believable = new ArrayList<>();
    question.answers.forEach(
        (party, sent) -> {
          if (sent.getParty() == party
              && CurrentStatement.isSigned(
                  roster, question.key, fingerprint, sent, question.challenge)) {
            // Without fields that nobody knows: clients refuse those.
            believable.add(
                EpochStatement.newBuilder()
                    .setParty(party)
                    .setEpoch(sent.getEpoch())
                    .setSessionId(sent.getSessionId())
                    .setKeyPublicDigest(sent.getKeyPublicDigest())
                    .setUndecided(sent.getUndecided())
                    .setSignature(sent.getSignature())
                    .build());
          } else {
            metrics.dropped("bad_evidence_signature");
          }
        });
    return believable;
  }
}
