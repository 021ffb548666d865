package io.coterie.signer.party;

import com.google.protobuf.ByteString;
import io.coterie.platform.ledger.ClockStatement;
import io.coterie.platform.limit.Rate;
import io.coterie.proto.party.v1.ClockAnswer;
import io.coterie.proto.party.v1.ClockQuestion;
import io.coterie.proto.party.v1.PartyMessage;
import io.coterie.trust.Member;
import java.time.Duration;
import java.time.InstantSource;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.function.UnaryOperator;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;

/**
 * How far this party's clock is from those of its peers. Expiry, deadlines and fences are decided
 * by it, so a party whose clock is alone says so. A peer that does not answer counts as one that
 * agrees: this clock is only judged by more than half of all peers, so that those who can keep
 * others away, or lie alone, put no party out of service. Thread-safe.
 */
public final class PeerClocks implements AutoCloseable {
  /** A party whose clock is further from its peers' is not ready. */
  public static final Duration TOLERANCE = Duration.ofSeconds(30);

  private static final Duration PERIOD = Duration.ofSeconds(20);

  /**
   * The time before the first question. While a peer that can be reached has not said the time, the
   * next one comes after twice as long, up to {@link #PERIOD}: each takes the place of the one
   * before, and an answer has its way to make.
   */
  private static final Duration FIRST = Duration.ofSeconds(1);

  /** An answer that took longer says too little. */
  private static final Duration LONGEST_WAY = Duration.ofSeconds(10);

  /** A reading is forgotten after it: its party is away. */
  private static final Duration FRESH = Duration.ofMinutes(5);

  /** Answers to one party at once, and a second. */
  private static final int BURST = 4;

  /** Answers of one party that are verified at once, and one a second after that. */
  private static final int HEARD_BURST = 8;

  private final PartyNetwork network;
  private final UnaryOperator<ByteString> signature;
  private final WorkPool pool;
  private final InstantSource clock;
  private final RandomGenerator random;
  private final Map<Integer, Reading> readings = new ConcurrentHashMap<>();
  private final Map<Integer, Rate> answered = new ConcurrentHashMap<>();
  private final Map<Integer, Rate> heard = new ConcurrentHashMap<>();

  /** Where signatures are made and verified: the channel has one thread for all that comes. */
  private final WorkPool.Lane lane;

  private final Future<?> asking;

  /** The last question, and when it was put: they change together. */
  private volatile Asked asked = new Asked(ByteString.EMPTY, 0);

  private record Asked(ByteString challenge, long nanos) {}

  /** How long after the last question the next one comes if a peer has not been heard. */
  private volatile Duration patience = FIRST;

  /**
   * A peer's clock.
   *
   * @param aheadMs how far it is ahead of this party's
   * @param nanos when that was found
   */
  private record Reading(long aheadMs, long nanos) {}

  /**
   * Asks the parties of the roster from time to time until it is closed.
   *
   * @param signature of this party under a statement
   * @param clock this party's
   * @param random no peer knows the next question
   */
  public PeerClocks(
      PartyNetwork network,
      UnaryOperator<ByteString> signature,
      WorkPool pool,
      InstantSource clock,
      RandomGenerator random) {
    this.network = network;
    this.signature = signature;
    this.pool = pool;
    this.clock = clock;
    this.random = random;
    this.lane = pool.lane();
    this.asking = pool.every(FIRST, this::askIfDue);
  }

  /** Asks again when all readings are old, and sooner for a peer of which there is none. */
  private void askIfDue() {
    Duration since = Duration.ofNanos(pool.nanos() - asked.nanos());
    boolean unheard = peers().stream().anyMatch(peer -> !readings.containsKey(peer.partyId()));
    if (asked.challenge().isEmpty() || since.compareTo(unheard ? patience : PERIOD) >= 0) {
      ask();
    }
  }

  private List<Member> peers() {
    return network.reachable().stream().filter(m -> m.role() == Member.Role.PARTY).toList();
  }

  void ask() {
    byte[] challenge = new byte[ClockStatement.CHALLENGE_BYTES];
    random.nextBytes(challenge);
    Asked next = new Asked(ByteString.copyFrom(challenge), pool.nanos());
    Duration longer = patience.multipliedBy(2);
    patience = longer.compareTo(PERIOD) > 0 ? PERIOD : longer;
    asked = next;
    List<Member> peers = peers();
    if (!peers.isEmpty()) {
      network.broadcast(
          peers,
          PartyMessage.newBuilder()
              .setClockQuestion(ClockQuestion.newBuilder().setChallenge(next.challenge()))
              .build(),
          null);
    }
  }

  /** A peer asks what time it is here. */
  public void asked(Member sender, ClockQuestion question) {
    long now = pool.nanos();
    if (sender.role() == Member.Role.PARTY
        && question.getChallenge().size() == ClockStatement.CHALLENGE_BYTES
        && answered.computeIfAbsent(sender.partyId(), _ -> new Rate(BURST, 1, now)).take(now)) {
      // It outlives the message that it came in.
      ByteString challenge = ByteString.copyFrom(question.getChallenge().toByteArray());
      lane.execute(() -> tell(sender, challenge));
    }
  }

  private void tell(Member asker, ByteString challenge) {
    ClockStatement says =
        new ClockStatement(
            network.roster().installation(),
            network.self().partyId(),
            asker.partyId(),
            challenge,
            clock.millis());
    network.send(
        asker,
        PartyMessage.newBuilder()
            .setClockAnswer(
                ClockAnswer.newBuilder()
                    .setChallenge(says.challenge())
                    .setUnixMs(says.unixMs())
                    .setSignature(signature.apply(says.statement())))
            .build(),
        null);
  }

  /** A peer says what time it is there. */
  public void answered(Member sender, ClockAnswer answer) {
    Asked last = asked;
    long now = pool.nanos();
    long way = now - last.nanos();
    if (sender.role() == Member.Role.PARTY
        && !last.challenge().isEmpty()
        && answer.getChallenge().equals(last.challenge())
        && way <= LONGEST_WAY.toNanos()
        && heard.computeIfAbsent(sender.partyId(), _ -> new Rate(HEARD_BURST, 1, now)).take(now)) {
      long here = clock.millis() - Duration.ofNanos(way / 2).toMillis();
      // Far away is far away, however far: no overflow.
      long ahead = Math.clamp(answer.getUnixMs(), 0, Long.MAX_VALUE / 2) - here;
      ClockStatement says =
          new ClockStatement(
              network.roster().installation(),
              sender.partyId(),
              network.self().partyId(),
              last.challenge(),
              answer.getUnixMs());
      ByteString signed = ByteString.copyFrom(answer.getSignature().toByteArray());
      lane.execute(
          () -> {
            if (says.isSigned(signed, sender.evidenceKey())) {
              readings.put(sender.partyId(), new Reading(ahead, now));
            }
          });
    }
  }

  /**
   * How far the peers are ahead of this party, negative if they are behind: their median, or of the
   * two middle ones what speaks for this party. A peer without an answer counts as in step with it.
   */
  public Duration ahead() {
    long now = pool.nanos();
    int self = network.self().partyId();
    long[] sorted =
        network.roster().members().stream()
            .filter(peer -> peer.role() == Member.Role.PARTY && peer.partyId() != self)
            .mapToLong(peer -> aheadMs(readings.get(peer.partyId()), now))
            .sorted()
            .toArray();
    if (sorted.length == 0) {
      return Duration.ZERO;
    }
    long lower = sorted[(sorted.length - 1) / 2];
    long upper = sorted[sorted.length / 2];
    return Duration.ofMillis(lower > 0 ? lower : Math.min(upper, 0));
  }

  /**
   * How far the slowest clock of some parties is behind this one by their last word, however old
   * that is: as much as is tolerated at most, so that a liar delays nothing for longer. A peer that
   * has not been heard since the start may be behind by as much.
   */
  public Duration behind(Collection<Integer> parties) {
    long most = 0;
    int self = network.self().partyId();
    for (int party : parties) {
      Reading reading = readings.get(party);
      long behindMs = reading == null ? TOLERANCE.toMillis() : -reading.aheadMs();
      most = Math.max(most, party == self ? 0 : behindMs);
    }
    return Duration.ofMillis(Math.min(most, TOLERANCE.toMillis()));
  }

  private static long aheadMs(@Nullable Reading reading, long now) {
    return reading == null || now - reading.nanos() > FRESH.toNanos() ? 0 : reading.aheadMs();
  }

  /** Whether {@link #ahead} is more than is tolerated. */
  public boolean isApart() {
    return ahead().abs().compareTo(TOLERANCE) > 0;
  }

  @Override
  public void close() {
    asking.cancel(false);
  }
}
